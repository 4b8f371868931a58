//! Connects an adapter with the component interface: `about`, and the open collections of this instance.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, json};

use crate::adapter::{Adapter, Change, Comparison, Condition, Order, Page, Query, Verb};
use crate::error::{Error, Result};
use crate::shape::Shape;
use crate::summary::{SummaryPage, SummaryQuery, parse_conditions};

/// A plugin: the adapters of one file. [`crate::export!`] implements it.
pub trait Plugin {
    /// The name of a plugin without adapters: the crate's.
    const NAME: &'static str = "";

    /// Returns the version of the file.
    fn version() -> String;

    /// Returns the adapters of the file.
    fn adapters() -> Vec<Kind> {
        Vec::new()
    }

    /// Returns the tools of the file.
    fn tools() -> Vec<crate::tools::Entry> {
        Vec::new()
    }

    /// The prompts and resources of the file.
    fn items() -> Option<crate::items::Entry> {
        None
    }
}

/// An adapter of a plugin, with its type erased.
pub struct Kind {
    name: &'static str,
    requests: &'static [&'static str],
    settings_schema: fn() -> serde_json::Value,
    describe: fn(&str) -> Result<Shape>,
    open: fn(&str, &Shape) -> Result<Rc<dyn ErasedCollection>>,
}

/// Returns the kind of an adapter.
pub fn kind<A: Adapter>() -> Kind {
    Kind {
        name: A::NAME,
        requests: A::REQUESTS,
        settings_schema: A::settings_schema,
        describe: A::describe,
        open: |settings, shape| Ok(Rc::new(A::open(settings, shape)?)),
    }
}

trait ErasedCollection {
    fn read(&self, query: &Query) -> Result<Page>;
    fn summarize(&self, query: &SummaryQuery) -> Result<SummaryPage>;
    fn write(&self, change: &Change) -> Result<String>;
    fn later(&self, work: &str) -> Result<bool>;
}

impl<A: Adapter> ErasedCollection for A {
    fn read(&self, query: &Query) -> Result<Page> {
        Adapter::read(self, query)
    }

    fn summarize(&self, query: &SummaryQuery) -> Result<SummaryPage> {
        Adapter::summarize(self, query)
    }

    fn write(&self, change: &Change) -> Result<String> {
        Adapter::write(self, change)
    }

    fn later(&self, work: &str) -> Result<bool> {
        Adapter::later(self, work)
    }
}

thread_local! { static OPEN: RefCell<HashMap<String, Rc<dyn ErasedCollection>>> = RefCell::default(); }

/// Returns `{"name", "version", "adapters": [{"name", "settings": schema}], "requests": […]}`. The plugin is named like
/// its first adapter, and one without adapters like its crate.
pub fn about<P: Plugin>() -> String {
    let adapters = P::adapters();
    let mut requests: Vec<&str> = adapters
        .iter()
        .flat_map(|adapter| adapter.requests.iter().copied())
        .collect();
    requests.extend(
        P::tools()
            .iter()
            .flat_map(|tool| tool.definition.requests.iter().copied()),
    );
    requests.sort_unstable();
    requests.dedup();
    let described: Vec<_> = adapters
        .iter()
        .map(|adapter| json!({ "name": adapter.name, "settings": (adapter.settings_schema)() }))
        .collect();
    let name = adapters.first().map_or(P::NAME, |adapter| adapter.name);
    json!({ "name": name, "version": P::version(), "adapters": described, "requests": requests })
        .to_string()
}

/// Returns the shape of the collection that the settings reach, as JSON.
pub fn describe<P: Plugin>(adapter: &str, settings: &str) -> Result<String> {
    Ok((find::<P>(adapter)?.describe)(settings)?.to_json())
}

/// Opens a collection and keeps it.
pub fn configure<P: Plugin>(
    collection: String,
    adapter: &str,
    settings: &str,
    shape: &str,
) -> Result<()> {
    let open = (find::<P>(adapter)?.open)(settings, &Shape::parse(shape)?)?;
    OPEN.with_borrow_mut(|collections| collections.insert(collection, open));
    Ok(())
}

/// Reads from an open collection. The work of [`crate::index::later`] arrives as a read too, with its text among the options.
pub fn read(collection: &str, query: &Query) -> Result<Page> {
    let opened = opened(collection)?;
    match query
        .options
        .get("later")
        .and_then(serde_json::Value::as_str)
    {
        Some(work) => {
            let more = opened.later(work)?;
            Ok(Page {
                records: "[]".to_owned(),
                next: more.then(|| "more".to_owned()),
            })
        }
        None => opened.read(query),
    }
}

/// Summarizes an open collection.
pub fn summarize(collection: &str, query: &SummaryQuery) -> Result<SummaryPage> {
    opened(collection)?.summarize(query)
}

/// Changes an open collection.
pub fn write(collection: &str, change: &Change) -> Result<String> {
    opened(collection)?.write(change)
}

/// Returns an open collection. It is a clone of the reference, so that the map is not borrowed while the adapter calls an
/// import.
fn opened(collection: &str) -> Result<Rc<dyn ErasedCollection>> {
    OPEN.with_borrow(|collections| collections.get(collection).cloned())
        .ok_or_else(|| {
            Error::new(
                "not_configured",
                format!("The collection {collection:?} was never configured."),
            )
        })
}

fn find<P: Plugin>(adapter: &str) -> Result<Kind> {
    P::adapters()
        .into_iter()
        .find(|kind| kind.name == adapter)
        .ok_or_else(|| Error::unsupported(format!("This plugin has no adapter {adapter:?}.")))
}

/// Reads a query as the component interface carries it: names and JSON text.
pub fn parse_query(
    conditions: Vec<(String, String, String)>,
    order: Vec<String>,
    columns: Vec<String>,
    limit: u32,
    cursor: Option<String>,
    options: Option<&str>,
) -> Result<Query> {
    let conditions = parse_conditions(conditions)?;
    let order = order.iter().map(|name| Order::parse(name)).collect();
    Ok(Query {
        conditions,
        order,
        columns,
        limit,
        cursor,
        options: object(options, "options")?,
    })
}

/// Reads a change as the component interface carries it.
pub fn parse_change(
    verb: &str,
    key: Option<&str>,
    record: Option<&str>,
    options: Option<&str>,
) -> Result<Change> {
    let mut options = object(options, "options")?;
    let conditions = options
        .remove("conditions")
        .map_or_else(|| Ok(Vec::new()), conditions)?;
    Ok(Change {
        verb: Verb::parse(verb)?,
        key: object(key, "key")?,
        record: object(record, "record")?,
        conditions,
        options,
    })
}

/// Reads `[{"column", "comparison", "value"}]`. A condition that cannot be read would let every record pass, so it
/// makes the whole request fail.
fn conditions(value: serde_json::Value) -> Result<Vec<Condition>> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct RawCondition {
        column: String,
        comparison: String,
        value: serde_json::Value,
    }
    let given: Vec<RawCondition> = serde_json::from_value(value).map_err(|_| {
        Error::invalid("The conditions of the request cannot be read.").field("conditions")
    })?;
    let parsed = given.into_iter().map(
        |RawCondition {
             column,
             comparison,
             value,
         }| {
            Ok(Condition {
                column,
                comparison: Comparison::parse(&comparison)?,
                value,
            })
        },
    );
    parsed.collect()
}

pub(crate) fn object(json: Option<&str>, what: &str) -> Result<Map<String, serde_json::Value>> {
    match json {
        None => Ok(Map::new()),
        Some(json) => serde_json::from_str(json).map_err(|_| {
            Error::invalid(format!("The {what} of the request is not a JSON object.")).field(what)
        }),
    }
}

/// Makes the adapters and tools given the exports of this plugin.
///
/// `weir_plugin_sdk::export!(Sheet);` or several adapters, `export!(tools: deploy, status);`, or both:
/// `export!(Sheet; tools: deploy);`. Prompts and resources ([`Items`](crate::Items)) come last:
/// `export!(tools: deploy; items: Handbook);` or `export!(items: Handbook);`. The version is the crate's, unless one is given: `export!(version: "2.1.0"; Sheet);`.
#[macro_export]
macro_rules! export {
    (tools: $($tool:path),+ $(,)?) => {
        $crate::export!(version: env!("CARGO_PKG_VERSION"); tools: $($tool),+);
    };
    (items: $items:ty $(,)?) => {
        $crate::export!(version: env!("CARGO_PKG_VERSION"); items: $items);
    };
    (tools: $($tool:path),+; items: $items:ty $(,)?) => {
        $crate::export!(version: env!("CARGO_PKG_VERSION"); tools: $($tool),+; items: $items);
    };
    (version: $version:expr; items: $items:ty $(,)?) => {
        $crate::export!(@plugin $version, [], [], [$items]);
        $crate::export!(@items);
    };
    (version: $version:expr; tools: $($tool:path),+; items: $items:ty $(,)?) => {
        $crate::export!(@plugin $version, [], [$($tool),+], [$items]);
        $crate::export!(@items);
    };
    (@items) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the exports are generated")]
        mod weir_plugin_exports {
            use super::WeirPlugin;
            $crate::bindings::toolbox::export_toolbox!(WeirPlugin with_types_in $crate::bindings::toolbox);
        }

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the exports are generated")]
        mod weir_item_exports {
            use super::WeirPlugin;
            $crate::bindings::items::export_items!(WeirPlugin with_types_in $crate::bindings::items);
        }
    };
    (version: $version:expr; tools: $($tool:path),+ $(,)?) => {
        $crate::export!(@plugin $version, [], [$($tool),+], []);

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the exports are generated")]
        mod weir_plugin_exports {
            use super::WeirPlugin;
            $crate::bindings::toolbox::export_toolbox!(WeirPlugin with_types_in $crate::bindings::toolbox);
        }
    };
    (version: $version:expr; $($adapter:ty),+; tools: $($tool:path),+ $(,)?) => {
        $crate::export!(@plugin $version, [$($adapter),+], [$($tool),+], []);

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the exports are generated")]
        mod weir_plugin_exports {
            use super::WeirPlugin;
            $crate::bindings::export_component!(WeirPlugin with_types_in $crate::bindings);
            $crate::bindings::summaries::export_summaries!(WeirPlugin with_types_in $crate::bindings::summaries);
        }

        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the exports are generated")]
        mod weir_tool_exports {
            use super::WeirPlugin;
            $crate::bindings::toolbox::export_toolbox!(WeirPlugin with_types_in $crate::bindings::toolbox);
        }
    };
    (version: $version:expr; $($adapter:ty),+ $(,)?) => {
        $crate::export!(@plugin $version, [$($adapter),+], [], []);

        // Export names with a version in them do not link natively, so they exist in a component only.
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "the exports are generated")]
        mod weir_plugin_exports {
            use super::WeirPlugin;
            $crate::bindings::export_component!(WeirPlugin with_types_in $crate::bindings);
            $crate::bindings::summaries::export_summaries!(WeirPlugin with_types_in $crate::bindings::summaries);
        }
    };
    (@plugin $version:expr, [$($adapter:ty),*], [$($tool:path),*], [$($items:ty)?]) => {
        /// The type that has the exports of the component.
        #[doc(hidden)]
        #[allow(unreachable_pub, reason = "the exports of a component name it")]
        pub struct WeirPlugin;

        impl $crate::plugin::Plugin for WeirPlugin {
            const NAME: &'static str = env!("CARGO_PKG_NAME");

            fn version() -> String {
                String::from($version)
            }

            fn adapters() -> Vec<$crate::plugin::Kind> {
                vec![$($crate::plugin::kind::<$adapter>()),*]
            }

            fn tools() -> Vec<$crate::tools::Entry> {
                $crate::exported_tools!($($tool),*)
            }

            $(fn items() -> Option<$crate::items::Entry> {
                Some($crate::items::entry::<$items>())
            })?
        }

        $crate::export_native!(WeirPlugin);
    };
    ($($adapter:ty),+; tools: $($tool:path),+ $(,)?) => {
        $crate::export!(version: env!("CARGO_PKG_VERSION"); $($adapter),+; tools: $($tool),+);
    };
    ($($adapter:ty),+ $(,)?) => {
        $crate::export!(version: env!("CARGO_PKG_VERSION"); $($adapter),+);
    };
}

/// Adds nothing: without the feature `native` a plugin is not a library.
#[cfg(not(all(feature = "native", not(target_arch = "wasm32"))))]
#[doc(hidden)]
#[macro_export]
macro_rules! export_native {
    ($plugin:ident) => {};
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Field, Type};

    struct Echo(String);

    impl Adapter for Echo {
        const NAME: &'static str = "echo";
        const REQUESTS: &'static [&'static str] = &["files"];

        fn settings_schema() -> serde_json::Value {
            json!({ "type": "object" })
        }

        fn describe(_settings: &str) -> Result<Shape> {
            let mut shape = Shape::new("echo");
            shape.fields.push(Field::new("id", Type::Integer));
            Ok(shape)
        }

        fn open(settings: &str, _shape: &Shape) -> Result<Self> {
            Ok(Self(settings.to_owned()))
        }

        fn read(&self, _query: &Query) -> Result<Page> {
            Ok(Page {
                records: self.0.clone(),
                next: None,
            })
        }
    }

    crate::export!(Echo);

    #[test]
    fn a_plugin_says_what_it_is_and_keeps_its_collections() {
        let about: serde_json::Value = serde_json::from_str(&about::<WeirPlugin>()).unwrap();
        assert_eq!(about["adapters"][0]["name"], "echo");
        assert_eq!(about["requests"], json!(["files"]));
        let shape = describe::<WeirPlugin>("echo", "{}").unwrap();
        configure::<WeirPlugin>("one".into(), "echo", "[1]", &shape).unwrap();
        configure::<WeirPlugin>("two".into(), "echo", "[2]", &shape).unwrap();
        assert_eq!(read("one", &Query::default()).unwrap().records, "[1]");
        assert_eq!(read("two", &Query::default()).unwrap().records, "[2]");
        assert!(
            read("three", &Query::default())
                .unwrap_err()
                .is("not_configured")
        );
        assert!(
            write("one", &Change::new(Verb::Delete))
                .unwrap_err()
                .is("unsupported")
        );
        assert!(
            describe::<WeirPlugin>("other", "{}")
                .unwrap_err()
                .is("unsupported")
        );
    }

    #[test]
    fn requests_that_are_not_json_are_refused_by_name() {
        let condition = vec![("id".to_owned(), "equals".to_owned(), "{".to_owned())];
        let error = parse_query(condition, vec![], vec![], 1, None, None).unwrap_err();
        assert_eq!(error.field.as_deref(), Some("id"));
        assert!(
            parse_change("create", None, Some("[]"), None)
                .unwrap_err()
                .is("invalid")
        );
        assert!(
            parse_change("destroy", None, None, None)
                .unwrap_err()
                .is("unsupported")
        );
        for conditions in [r#"{"owner": "a"}"#, r#"[{"column": "owner"}]"#, "null"] {
            let options = format!(r#"{{"conditions": {conditions}}}"#);
            assert!(
                parse_change("delete", None, None, Some(&options))
                    .unwrap_err()
                    .is("invalid"),
                "{conditions}"
            );
        }
        let options =
            r#"{"conditions": [{"column": "owner", "comparison": "like", "value": "a"}]}"#;
        assert!(
            parse_change("delete", None, None, Some(options))
                .unwrap_err()
                .is("unsupported")
        );
    }

    #[test]
    fn conditions_of_a_change_are_read() {
        let options = r#"{"params": {"a": 1}, "conditions": [{"column": "owner", "comparison": "equals", "value": "b"}]}"#;
        let change = parse_change("delete", Some(r#"{"id": 1}"#), None, Some(options)).unwrap();
        assert_eq!(
            change.conditions,
            [Condition::new("owner", Comparison::Equals, "b")]
        );
        assert_eq!(
            change.options,
            *json!({ "params": { "a": 1 } }).as_object().unwrap()
        );
    }
}
