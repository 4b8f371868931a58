//! A record of a collection, read as a resource: a call of the lookup that publishes it, with all its checks and records.

use serde_json::{Map, Value, json};
use weir_schema::text;

use super::{CallError, CallOutcome, CallReceipt, CallRequest, call_tool, item::ItemOutcome};
use crate::{
    catalogue::{CatalogueItem, CatalogueViewer},
    codes::{FailureCode, TABLE},
    identity::CallerIdentity,
    serving::ServingGateway,
};

/// Reads a record. `key` comes from the URI, which is `request.tool`.
pub(super) async fn read(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    request: &CallRequest<'_>,
    template: &CatalogueItem,
    key: &str,
) -> (Result<ItemOutcome, CallError>, CallReceipt) {
    let mut proof = CallReceipt {
        call_id: "none".into(),
        receipt: None,
    };
    let uri = request.tool;
    let tool = template.lookup.as_ref().and_then(|lookup| {
        let tool = request.snapshot.catalogue.tool(
            request.endpoint,
            &lookup.tool,
            CatalogueViewer::Caller(caller),
        )?;
        tool.target.collection().map(|_| (tool, lookup))
    });
    let Some((tool, lookup)) = tool else {
        return (Err(CallError::unknown()), proof);
    };
    let value = text::value(
        &tool.checks().schema()["properties"][&*lookup.argument],
        &[key],
    );
    let arguments =
        Value::Object(Map::from_iter([(lookup.argument.to_string(), value)])).to_string();
    let call = CallRequest {
        tool: &tool.name,
        arguments: Some(&arguments),
        ..request.clone()
    };
    let result = match Box::pin(call_tool(gateway, caller, &call)).await {
        CallOutcome::Complete(result) => result,
        _ => return (Err(CallError::unknown()), proof),
    };
    proof.receipt = result.receipt;
    let structured = result.structured.unwrap_or_default();
    if !result.is_error {
        let content = json!({ "uri": uri, "mimeType": "application/json", "text": structured });
        let members = Map::from_iter([("contents".to_owned(), json!([content]))]);
        return (Ok(ItemOutcome::Complete(members)), proof);
    }
    let structured: Value = serde_json::from_str(&structured).unwrap_or_default();
    if let Some(call_id) = structured["call_id"].as_str() {
        proof.call_id = call_id.into();
    }
    (Err(failed(&structured)), proof)
}

/// Returns the error of a failed read. An impossible key is treated like a key that no record has.
fn failed(refusal: &Value) -> CallError {
    let row = TABLE.iter().find(|row| refusal["code"] == row.label);
    let code = row.map_or(FailureCode::Internal, |row| row.code);
    if matches!(code, FailureCode::NotFound | FailureCode::InvalidArguments) {
        return CallError::unknown();
    }
    let error = CallError::new(
        code,
        refusal["message"]
            .as_str()
            .unwrap_or("The record cannot be read.")
            .to_owned(),
    );
    let wait = refusal["retry_after_ms"]
        .as_u64()
        .and_then(|wait| u32::try_from(wait).ok());
    CallError {
        retry_after_ms: wait,
        ..error
    }
}
