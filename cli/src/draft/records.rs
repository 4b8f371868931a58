//! Finds the records in the answer of a web service, where they are not at its root.

use serde_json::{Value, json};
use weir::control::operations::sources::{DataSource, SourceFailure, read_shape};
use weir::serving::ServingGateway;
use weir_plugin_host::AdapterFailure;

/// Returns the source with the place of its records, and a note on it, if the answer has one list of records in a place other
/// than the one the source names. Where it has several, the failure that follows names them.
pub(super) async fn with_records(
    gateway: &ServingGateway,
    mut source: DataSource,
) -> (DataSource, Option<String>) {
    if source.adapter != "rest" || !source.settings["list"]["records"].is_null() {
        return (source, None);
    }
    let failure = read_shape(gateway, &source).await.err();
    match failure.map(|failure| lists(&failure)).as_deref() {
        Some([only]) => {
            source.settings["list"]["records"] = json!(only);
            let note = format!("The records are read from `{only}` of the answer.");
            (source, Some(note))
        }
        _ => (source, None),
    }
}

/// Returns the places of lists that the adapter has found in the answer.
fn lists(failure: &SourceFailure) -> Vec<String> {
    let SourceFailure::Adapter(AdapterFailure::Guest(error)) = failure else {
        return Vec::new();
    };
    let details = error.details.as_deref().unwrap_or_default();
    let details: Value = serde_json::from_str(details).unwrap_or_default();
    serde_json::from_value(details["lists"].clone()).unwrap_or_default()
}
