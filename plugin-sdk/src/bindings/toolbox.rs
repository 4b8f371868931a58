//! The exports of a plugin with tools: `weir:plugin@0.1.1`.
//!
//! The imports of a plugin remain those of 0.1.0, which are the same: an adapter compiles to the same bytes with or without this.

#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "the code is generated"
)]
mod generated {
    wit_bindgen::generate!({
        world: "toolbox",
        path: "wit/0.1.1",
        pub_export_macro: true,
        export_macro_name: "export_toolbox",
        default_bindings_module: "weir_plugin_sdk::bindings::toolbox",
    });
}

pub use generated::*;

use super::log_panics;
use crate::plugin::{self, Plugin};
use crate::tools;
use exports::weir::plugin::about::Guest as About;
use exports::weir::plugin::tools::{Answer, Error, Guest as Tools, Invocation};

impl<P: Plugin> About for P {
    fn about() -> String {
        log_panics();
        plugin::about::<P>()
    }
}

impl<P: Plugin> Tools for P {
    fn configure(settings: String) -> Result<(), Error> {
        log_panics();
        tools::configure(&settings).map_err(Error::from)
    }

    fn definitions() -> Result<String, Error> {
        log_panics();
        tools::definitions::<P>().map_err(Error::from)
    }

    fn call(invocation: Invocation) -> Result<Answer, Error> {
        let Invocation {
            tool,
            arguments,
            context,
            resumed,
            options,
        } = invocation;
        let reply = tools::call::<P>(tools::Invocation {
            tool,
            arguments,
            context,
            resumed,
            options,
        })?;
        let tools::Reply {
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
