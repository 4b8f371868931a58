//! Asks the adapters for the shapes of collections.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use weir_connections::FailureCode;
use weir_contracts::{CollectionShape, FileProblem, contract, form};
use weir_plugin_host::AdapterFailure;

use crate::serving::ServingGateway;

/// Collections of one contract that are asked for at once.
const AT_ONCE: usize = 8;

/// Why there is no shape.
pub enum ShapeFailure {
    /// The source or the adapter is not there now.
    Later(UnavailableDependency),
    Refused(FileProblem),
}

/// A source or plugin that a contract waits for.
#[derive(Clone, Debug, Default)]
pub struct UnavailableDependency {
    /// The place in the file that needs it; empty for the file as a whole.
    place: String,
    pub why: String,
    /// The source's own message, for the log and the terminal alone, since it may name hosts and paths.
    details: Option<String>,
    /// Whether a source or its adapter is waited for.
    pub of_source: bool,
    /// Whether the adapter had too much to do.
    is_crowded: bool,
}

impl From<String> for UnavailableDependency {
    fn from(why: String) -> Self {
        Self {
            why,
            ..Self::default()
        }
    }
}

impl UnavailableDependency {
    /// Puts into one what several sources are waited for.
    pub fn all(mut away: Vec<Self>) -> Self {
        if away.len() == 1 {
            return away.remove(0);
        }
        let details: Vec<&str> = away
            .iter()
            .filter_map(|away| away.details.as_deref())
            .collect();
        let details = (!details.is_empty()).then(|| details.join("; "));
        let why: Vec<String> = away.into_iter().map(|away| away.why).collect();
        Self {
            why: why.join("; "),
            details,
            of_source: true,
            ..Self::default()
        }
    }

    /// Returns it as a problem of the file that waits.
    pub fn problem(&self, file: &str) -> FileProblem {
        FileProblem::new(file, self.place.as_str(), self.in_full())
    }

    /// Returns the reason with its details, for the operator. A caller must not get the details.
    pub fn in_full(&self) -> String {
        match &self.details {
            Some(details) => format!("{} ({details})", self.why),
            None => self.why.clone(),
        }
    }
}

/// Asks for the shapes of several collections of a form. Returns the known ones, by the collections' names, those that are
/// waited for, and the problems.
pub async fn describe_all(
    gateway: &ServingGateway,
    source: &form::ContractSource,
    collections: &[&form::FormCollection],
) -> (
    BTreeMap<String, CollectionShape>,
    Vec<UnavailableDependency>,
    Vec<FileProblem>,
) {
    let asked: Vec<_> = collections
        .iter()
        .map(|collection| describe(gateway, source, collection))
        .collect();
    let described: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let (mut shapes, mut away, mut problems) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (collection, mut described) in collections.iter().zip(described) {
        // Side by side there may have been no room for all of them.
        if matches!(&described, Err(ShapeFailure::Later(later)) if later.is_crowded) {
            described = describe(gateway, source, collection).await;
        }
        match described {
            Ok(shape) => drop(shapes.insert(collection.name.clone(), shape)),
            Err(ShapeFailure::Later(later)) => away.push(later),
            Err(ShapeFailure::Refused(problem)) => problems.push(problem),
        }
    }
    (shapes, away, problems)
}

/// Asks the adapter for the shape of a collection as it is now.
async fn describe(
    gateway: &ServingGateway,
    source: &form::ContractSource,
    collection: &form::FormCollection,
) -> Result<CollectionShape, ShapeFailure> {
    let asked = DescribedCollection {
        name: &collection.name,
        adapter: &collection.adapter,
        settings: &collection.settings,
    };
    ask(gateway, &source.file, asked).await
}

/// Describes a published collection; `file` is the contract's name.
pub(super) async fn describe_as(
    gateway: &ServingGateway,
    file: &str,
    collection: &contract::ContractCollection,
) -> Result<CollectionShape, ShapeFailure> {
    let asked = DescribedCollection {
        name: &collection.name,
        adapter: &collection.adapter,
        settings: &collection.settings,
    };
    ask(gateway, file, asked).await
}

/// The parts of a collection that its adapter needs to describe it.
struct DescribedCollection<'a> {
    name: &'a str,
    adapter: &'a str,
    settings: &'a serde_json::Value,
}

impl DescribedCollection<'_> {
    /// Returns the name of the connection that it is reached over; empty if it names none.
    fn connection(&self) -> &str {
        self.settings["connection"].as_str().unwrap_or_default()
    }
}

async fn ask(
    gateway: &ServingGateway,
    file: &str,
    collection: DescribedCollection<'_>,
) -> Result<CollectionShape, ShapeFailure> {
    let place = format!("/collections/{}", collection.name);
    let text = match gateway
        .host()
        .describe(collection.adapter, &collection.settings.to_string())
        .await
    {
        Ok(text) => text,
        Err(AdapterFailure::Guest(error)) => {
            let over = match collection.connection() {
                "" => String::new(),
                connection => format!(" over the connection `{connection}`"),
            };
            let why = format!(
                "the collection `{}` cannot be described{over}: {}",
                collection.name, error.message
            );
            return Err(match FailureCode::of_word(&error.code) {
                code if code.is_for_later() => ShapeFailure::Later(UnavailableDependency {
                    place,
                    why,
                    details: error.details,
                    of_source: true,
                    is_crowded: false,
                }),
                FailureCode::Forbidden => {
                    let hint = connection_hint(gateway, &collection);
                    ShapeFailure::Refused(FileProblem::new(file, place, why).hint(hint))
                }
                _ => ShapeFailure::Refused(FileProblem::new(file, place, why)),
            });
        }
        Err(failure) => {
            let why = format!("the collection `{}`: {failure}", collection.name);
            let is_crowded = matches!(failure, AdapterFailure::Overloaded { .. });
            return Err(ShapeFailure::Later(UnavailableDependency {
                place,
                why,
                details: None,
                of_source: true,
                is_crowded,
            }));
        }
    };
    let refused = |why: String| ShapeFailure::Refused(FileProblem::new(file, place.clone(), why));
    CollectionShape::read(&text).map_err(|error| {
        refused(format!(
            "the adapter `{}` answered no shape: {error}",
            collection.adapter
        ))
    })
}

/// Returns the hint what to do about a connection that the adapter may not use.
fn connection_hint(gateway: &ServingGateway, collection: &DescribedCollection<'_>) -> String {
    let config = gateway.config();
    let wanted = collection.connection();
    if wanted.is_empty() || config.connections.contains_key(wanted) {
        return format!(
            "grant the connection under [plugins.{}.grants] in weir.toml",
            collection.adapter
        );
    }
    match config
        .connections
        .keys()
        .map(String::as_str)
        .collect::<Vec<_>>()[..]
    {
        [] => format!("weir.toml has no connection: add [connections.{wanted}]"),
        ref names => format!(
            "weir.toml has no connection `{wanted}`; it has {}",
            names.join(", ")
        ),
    }
}
