//! The exports of a plugin with prompts and resources in addition to its tools, and their imports: `weir:plugin@0.1.1`. A
//! plugin that reports no changes imports nothing for them.

#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "the code is generated"
)]
mod generated {
    wit_bindgen::generate!({
        inline: "package weir:extras; world items { import weir:plugin/events@0.1.1; export weir:plugin/items@0.1.1; }",
        world: "weir:extras/items",
        generate_all,
        path: "wit/0.1.1",
        pub_export_macro: true,
        export_macro_name: "export_items",
        default_bindings_module: "weir_plugin_sdk::bindings::items",
    });
}

pub use generated::*;

pub(crate) use generated::weir::plugin::events;

use super::log_panics;
use crate::items;
use crate::plugin::Plugin;
use crate::tools::Reply;
use exports::weir::plugin::items::{Answer, Error, Guest as Items, Request};

impl<P: Plugin> Items for P {
    fn definitions() -> Result<String, Error> {
        log_panics();
        Ok(P::items()
            .map(|items| items.definitions())
            .unwrap_or_else(|| "{}".to_owned()))
    }

    fn get(request: Request) -> Result<Answer, Error> {
        let Request {
            method,
            params,
            context,
            resumed,
            options: _,
        } = request;
        let items = P::items().ok_or_else(|| {
            crate::Error::unsupported("This plugin has no prompts and resources.")
        })?;
        let reply = items.get(items::Request {
            method,
            params,
            context,
            resumed,
        })?;
        let Reply {
            kind,
            value,
            content,
            requests,
            state,
            options,
        } = reply;
        Ok(Answer {
            kind,
            value,
            content,
            requests,
            state,
            options,
        })
    }
}

convert_errors_into!(Error);
