//! Makes tools of typed functions: `#[tool]`, `#[data]`, `#[derive(ToolSchema)]`, and the list in `export!`.
//!
//! What has no honest schema does not compile: mistakes in syntax are found here, those in types by constants that the
//! expansion compares with [`Kind`](https://docs.rs/weir-plugin-sdk). Each is one error, at the token that is wrong, and
//! states what to write instead.

mod arg;
mod case;
mod data;
mod docs;
mod export;
mod fields;
mod literal;
mod mistakes;
mod rules;
mod serde;
mod tool;
mod types;
mod variants;

use proc_macro::TokenStream;

/// Makes a function a tool. See `docs/tools-from-code.md` for the types it may take and return.
///
/// ```text
/// /// Deploy a service.
/// #[tool(idempotent)]
/// fn deploy(
///     /// Target environment
///     #[arg(min_len = 1)] environment: String,
///     /// Version or image tag.
///     #[arg(default = "latest")] version: String,
///     ctx: &Context,
/// ) -> Result<String, ToolError> { … }
/// ```
///
/// Keys: `name`, `title`, `description`, `read_only`, `destructive`, `idempotent`, `open_world`, `task`,
/// `requests("sql", …)`.
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, item: TokenStream) -> TokenStream {
    tool::expand(attributes.into(), item.into()).into()
}

/// Makes a struct or an enum data that tools take and answer: `#[derive(ToolSchema)]`, with `Option` fields left out of
/// an answer if they are `None`, and with an enum's numbers if it has a `#[repr(i32)]`.
#[proc_macro_attribute]
pub fn data(attributes: TokenStream, item: TokenStream) -> TokenStream {
    data::attribute(attributes.into(), item.into()).into()
}

/// Derives the schema of a struct or an enum, and how it is read and printed. It follows the `#[serde(…)]` attributes
/// that change the shape: `rename`, `rename_all`, `default`, `tag`, `content`, `untagged`, `skip`, `transparent`,
/// `deny_unknown_fields`, `skip_serializing_if`.
#[proc_macro_derive(ToolSchema, attributes(arg, serde, weir_data))]
pub fn tool_schema(item: TokenStream) -> TokenStream {
    data::derive(item.into()).into()
}

/// Expands the list of tools in `export!`.
#[doc(hidden)]
#[proc_macro]
pub fn exported_tools(list: TokenStream) -> TokenStream {
    export::expand(list.into()).into()
}
