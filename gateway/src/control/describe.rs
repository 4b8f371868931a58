//! Asks the adapters for the shapes of collections.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use weir_connections::FailureCode;
use weir_contracts::{CollectionShape, FileProblem, contract, form, json::push_pointer};
use weir_plugin_host::{AdapterFailure, GuestError};
use weir_text::shorten;

use crate::serving::ServingGateway;

/// Collections of one contract that are described at once.
const AT_ONCE: usize = 8;
/// The maximum number of characters shown of a source's own message.
const DETAILS_MAX: usize = 300;

/// Why no shape was returned.
pub enum ShapeFailure {
    /// The source or the adapter is currently unavailable.
    Later(UnavailableDependency),
    Refused(RefusedSource),
}

/// A source that does not match the settings of a collection.
pub struct RefusedSource {
    pub problem: FileProblem,
    /// The source's own message, only for the terminal, since it may name hosts and paths.
    details: Option<String>,
}

impl RefusedSource {
    /// Returns the problem with the source's own message, for the operator. Callers must not see it.
    pub fn in_full(self) -> FileProblem {
        let Some(details) = self.details else {
            return self.problem;
        };
        let words: Vec<&str> = details.split_whitespace().collect();
        let words = words.join(" ");
        let own = format!("the source says: {}", shorten(&words, DETAILS_MAX));
        let hint = match &self.problem.hint {
            Some(hint) => format!("{hint}; {own}"),
            None => own,
        };
        self.problem.hint(hint)
    }
}

/// A source or plugin that a contract is waiting for.
#[derive(Clone, Debug, Default)]
pub struct UnavailableDependency {
    /// The place in the file that requires it; empty for the file as a whole.
    place: String,
    pub why: String,
    /// The source's own message, only for the log and the terminal, since it may name hosts and paths.
    details: Option<String>,
    /// Whether a source or its adapter is missing.
    pub of_source: bool,
    /// Whether the adapter was too busy.
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
    /// Joins the reasons of several sources into one.
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

    /// Returns the reason as a problem of the waiting file.
    pub fn problem(&self, file: &str) -> FileProblem {
        FileProblem::new(file, self.place.as_str(), self.in_full())
            .hint("look whether the source and its adapter are there, and try again")
    }

    /// Returns the reason with its details, for the operator. Callers must not see the details.
    pub fn in_full(&self) -> String {
        match &self.details {
            Some(details) => format!("{} ({details})", self.why),
            None => self.why.clone(),
        }
    }
}

/// Asks for the shapes of several collections of a form. Returns the shapes by collection name, the missing dependencies, and the
/// problems.
pub async fn describe_all(
    gateway: &ServingGateway,
    source: &form::ContractSource,
    collections: &[&form::FormCollection],
) -> (
    BTreeMap<String, CollectionShape>,
    Vec<UnavailableDependency>,
    Vec<RefusedSource>,
) {
    let asked: Vec<_> = collections
        .iter()
        .map(|collection| describe(gateway, source, collection))
        .collect();
    let described: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
    let (mut shapes, mut away, mut refused) = (BTreeMap::new(), Vec::new(), Vec::new());
    for (collection, mut described) in collections.iter().zip(described) {
        // The adapter may not have had room for all of them at once.
        if matches!(&described, Err(ShapeFailure::Later(later)) if later.is_crowded) {
            described = describe(gateway, source, collection).await;
        }
        match described {
            Ok(shape) => drop(shapes.insert(collection.name.clone(), shape)),
            Err(ShapeFailure::Later(later)) => away.push(later),
            Err(ShapeFailure::Refused(source)) => refused.push(source),
        }
    }
    (shapes, away, refused)
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
    /// Returns the name of the connection of a collection; empty if it has none.
    fn connection(&self) -> &str {
        self.settings["connection"].as_str().unwrap_or_default()
    }

    fn place(&self) -> String {
        let mut place = "/collections".to_owned();
        push_pointer(&mut place, self.name);
        place
    }

    /// Returns the place of a setting, or that of all settings if none has this name.
    fn place_of(&self, setting: &str) -> String {
        let mut place = format!("{}/settings", self.place());
        if self.settings.get(setting).is_some() {
            push_pointer(&mut place, setting);
        }
        place
    }
}

async fn ask(
    gateway: &ServingGateway,
    file: &str,
    collection: DescribedCollection<'_>,
) -> Result<CollectionShape, ShapeFailure> {
    let text = match gateway
        .host()
        .describe(collection.adapter, &collection.settings.to_string())
        .await
    {
        Ok(text) => text,
        Err(AdapterFailure::Guest(error)) => {
            return Err(explain(gateway, file, &collection, error));
        }
        Err(failure) => {
            let why = format!("the collection `{}`: {failure}", collection.name);
            let is_crowded = matches!(failure, AdapterFailure::Overloaded { .. });
            return Err(ShapeFailure::Later(UnavailableDependency {
                place: collection.place(),
                why,
                details: None,
                of_source: true,
                is_crowded,
            }));
        }
    };
    CollectionShape::read(&text).map_err(|error| {
        let why = format!(
            "the adapter `{}` answered no shape: {error}",
            collection.adapter
        );
        let hint = "another build of the adapter may describe it";
        ShapeFailure::Refused(RefusedSource {
            problem: FileProblem::new(file, collection.place(), why).hint(hint),
            details: None,
        })
    })
}

/// Returns why an adapter does not describe a collection, with the place of the setting at fault.
fn explain(
    gateway: &ServingGateway,
    file: &str,
    collection: &DescribedCollection<'_>,
    error: GuestError,
) -> ShapeFailure {
    let over = match collection.connection() {
        "" => String::new(),
        connection => format!(" over the connection `{connection}`"),
    };
    let why = format!(
        "the collection `{}` cannot be described{over}: {}",
        collection.name, error.message
    );
    let code = FailureCode::of_word(&error.code);
    if code.is_for_later() {
        return ShapeFailure::Later(UnavailableDependency {
            place: collection.place(),
            why,
            details: error.details,
            of_source: true,
            is_crowded: false,
        });
    }
    let (setting, hint, details) = match (code, error.field) {
        (FailureCode::Forbidden, _) => {
            let hint = connection_hint(gateway, collection);
            (Some("connection".to_owned()), hint, None)
        }
        (_, setting) => {
            let hint = settings_hint(collection, setting.as_deref());
            (setting, hint, error.details)
        }
    };
    let place = match setting {
        Some(setting) => collection.place_of(&setting),
        None => collection.place(),
    };
    let why = why.trim_end_matches('.');
    ShapeFailure::Refused(RefusedSource {
        problem: FileProblem::new(file, place, why).hint(hint),
        details,
    })
}

/// Returns a hint about settings that an adapter refuses.
fn settings_hint(collection: &DescribedCollection<'_>, setting: Option<&str>) -> String {
    match (collection.adapter, setting) {
        ("sql", Some("table")) => format!(
            "`weir draft --connection {}` lists the tables and views",
            collection.connection()
        ),
        ("sheet" | "sql" | "rest", _) => format!(
            "docs/adapters/{}.md says what the settings take",
            collection.adapter
        ),
        (adapter, _) => format!("write the settings as the adapter `{adapter}` describes them"),
    }
}

/// Returns a hint about a connection that the adapter may not use.
fn connection_hint(gateway: &ServingGateway, collection: &DescribedCollection<'_>) -> String {
    let config = gateway.config();
    let wanted = collection.connection();
    if wanted.is_empty() || config.connections.contains_key(wanted) {
        return format!(
            "grant the connection under [plugins.{}.grants] in weir.toml",
            collection.adapter
        );
    }
    if !config.places.has_file() {
        return format!(
            "there is no weir.toml: write one with [connections.{wanted}] and [plugins.{}.grants], or name one with --config",
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
