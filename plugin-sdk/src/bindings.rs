//! The component interface of this release, and the conversions to and from its types.

/// Makes an interface's error of the SDK's own, which has the same fields.
macro_rules! convert_errors_into {
    ($error:ident) => {
        impl From<crate::Error> for $error {
            fn from(error: crate::Error) -> Self {
                let crate::Error {
                    code,
                    message,
                    field,
                    retry_after_ms,
                    details,
                } = error;
                Self {
                    code,
                    message,
                    field,
                    retry_after_ms,
                    details,
                }
            }
        }
    };
}

pub mod calls;
pub mod items;
pub(crate) mod large;
pub mod summaries;
pub mod toolbox;

#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "the code is generated"
)]
mod generated {
    wit_bindgen::generate!({
        world: "adapter",
        path: "wit/0.1.0",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "weir_plugin_sdk::bindings",
    });
}

use std::sync::Once;

pub use generated::*;

use crate::plugin::{self, Plugin};
use exports::weir::plugin::about::Guest as About;
use exports::weir::plugin::collections::{Change, Error, Guest as Collections, Page, Query};

impl<P: Plugin> About for P {
    fn about() -> String {
        log_panics();
        plugin::about::<P>()
    }
}

impl<P: Plugin> Collections for P {
    fn describe(adapter: String, settings: String) -> Result<String, Error> {
        log_panics();
        plugin::describe::<P>(&adapter, &settings).map_err(Error::from)
    }

    fn configure(
        collection: String,
        adapter: String,
        settings: String,
        shape: String,
    ) -> Result<(), Error> {
        log_panics();
        plugin::configure::<P>(collection, &adapter, &settings, &shape).map_err(Error::from)
    }

    fn read(collection: String, query: Query) -> Result<Page, Error> {
        let conditions = query
            .conditions
            .into_iter()
            .map(|given| (given.column, given.comparison, given.value))
            .collect();
        let Query {
            order,
            columns,
            limit,
            cursor,
            options,
            ..
        } = query;
        let query = plugin::parse_query(
            conditions,
            order,
            columns,
            limit,
            cursor,
            options.as_deref(),
        )?;
        let page = plugin::read(&collection, &query)?;
        Ok(Page {
            records: page.records,
            next: page.next,
        })
    }

    fn write(collection: String, change: Change) -> Result<String, Error> {
        let (key, record, options) = (
            change.key.as_deref(),
            change.record.as_deref(),
            change.options.as_deref(),
        );
        let change = plugin::parse_change(&change.verb, key, record, options)?;
        Ok(plugin::write(&collection, &change)?)
    }
}

convert_errors_into!(Error);

impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        let Error {
            code,
            message,
            field,
            retry_after_ms,
            details,
        } = error;
        Self {
            code,
            message,
            field,
            retry_after_ms,
            details,
        }
    }
}

/// Logs panics, since a trap carries no text.
fn log_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            crate::log::error_for_the_log_alone(&format!("The plugin panicked: {panic}"));
        }));
    });
}
