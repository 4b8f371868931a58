//! The export that answers counts and summaries of an adapter's collections: `weir:plugin@0.1.2`.

#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "the code is generated"
)]
mod generated {
    wit_bindgen::generate!({
        inline: "package weir:summarizing; world summaries { export weir:plugin/summaries@0.1.2; }",
        world: "weir:summarizing/summaries",
        generate_all,
        path: "wit/0.1.2",
        pub_export_macro: true,
        export_macro_name: "export_summaries",
        default_bindings_module: "weir_plugin_sdk::bindings::summaries",
    });
}

pub use generated::*;

use crate::plugin::{self, Plugin};
use crate::summary::WiredQuery;
use exports::weir::plugin::summaries::{Condition, Error, Guest as Summaries, Query, Summary};

impl<P: Plugin> Summaries for P {
    fn summarize(collection: String, query: Query) -> Result<Summary, Error> {
        let conditions = |given: Vec<Condition>| {
            let parts = |given: Condition| (given.column, given.comparison, given.value);
            given.into_iter().map(parts).collect()
        };
        let groups = query.groups.into_iter();
        let measures = query.measures.into_iter();
        let query = WiredQuery {
            conditions: conditions(query.conditions),
            groups: groups
                .map(|group| (group.name, group.column, group.step))
                .collect(),
            measures: measures
                .map(|measure| (measure.name, measure.function, measure.column))
                .collect(),
            having: conditions(query.having),
            order: query.order,
            limit: query.limit,
            options: query.options,
        };
        let page = plugin::summarize(&collection, &query.parse()?)?;
        Ok(Summary {
            records: page.records,
            more: page.more,
        })
    }
}

convert_errors_into!(Error);
