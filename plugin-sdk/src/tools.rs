//! Functions as tools: what the author of one names, and what calls it.
//!
//! A function with [`tool`](crate::tool) above it is a tool: its signature, its types and its documentation are the
//! schema. `weir_plugin_sdk::export!(tools: deploy);` makes it an export of the component. Natively the same tools are
//! called by [`call`], so that they have unit tests like any other function.

mod answer;
mod ask;
mod content;
mod context;
mod definition;
mod dispatch;
mod refusal;
mod returns;

pub use answer::Answer;
pub use ask::{Elicited, Question};
pub use content::Content;
pub use context::Context;
pub use definition::{Definition, Tool};
pub use dispatch::{Entry, Function, Invocation, NoTool, Reply, call, configure, definitions};
pub use refusal::{ToolError, ToolFailure};
pub use returns::{Failing, Returned, ToolOutput, poll_in_place};
