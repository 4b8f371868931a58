//! Holds the imports for adapters of large sources: `weir:plugin@0.1.1`. A plugin that does not use them imports nothing.

#[allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "the code is generated"
)]
mod generated {
    wit_bindgen::generate!({
        inline: "package weir:large; world imports { import weir:plugin/parts@0.1.1; import weir:plugin/index@0.1.1; }",
        world: "weir:large/imports",
        generate_all,
        path: "wit/0.1.1",
    });
}

pub(crate) use generated::weir::plugin::{index, parts};

impl From<generated::weir::plugin::types::Error> for crate::Error {
    fn from(error: generated::weir::plugin::types::Error) -> Self {
        let generated::weir::plugin::types::Error {
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
