//! The two tools of a view with search. Finding is limited like a list; the tool that `call_tool` names is called and recorded
//! under its own name. Any other request is recorded under the name of the search tool.

use std::{borrow::Cow, sync::LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use weir_schema::validate::ArgumentValidator;
use weir_text::shorten;

use super::{CallError, CallOutcome, CallRequest, ToolResult, limits, record::CallRecord};
use crate::{
    catalogue::{CALL_TOOL, CatalogueListing, CatalogueSearch, FIND_TOOLS},
    codes::FailureCode,
    identity::CallerIdentity,
    serving::ServingGateway,
};

const FOUND_DEFAULT: u64 = 5;

static FIND: LazyLock<ArgumentValidator> = LazyLock::new(|| validator(FIND_TOOLS));
static CALL: LazyLock<ArgumentValidator> = LazyLock::new(|| validator(CALL_TOOL));

/// The request to a view with search.
pub enum SearchDispatch<'a> {
    /// A call of this tool with these arguments, as they came.
    Call {
        tool: Cow<'a, str>,
        arguments: Option<&'a str>,
    },
    /// The results of the search, or the reason why no tool was called.
    Answer(Box<CallOutcome>),
}

/// Reads a request. Tools of the view may be called without `call_tool`.
pub async fn searched<'a>(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    listing: &CatalogueListing,
    request: &CallRequest<'a>,
) -> SearchDispatch<'a> {
    let arguments = request.arguments.unwrap_or("{}");
    let (tool, error) = match request.tool {
        FIND_TOOLS => (FIND_TOOLS, None),
        CALL_TOOL => match called(arguments) {
            Ok(CallToolArguments { name, arguments }) => {
                return SearchDispatch::Call {
                    tool: name,
                    arguments: arguments.map(RawValue::get),
                };
            }
            Err(error) => (CALL_TOOL, Some(error)),
        },
        tool => {
            return SearchDispatch::Call {
                tool: tool.into(),
                arguments: request.arguments,
            };
        }
    };
    let mut record = CallRecord::open(gateway, caller, "tools/call", request);
    record.search(tool);
    let admitted = limits::admit(gateway.buckets(), request.charge, caller, record.opened()).await;
    let outcome = admitted.and_then(|()| error.map_or_else(|| found(listing, arguments), Err));
    SearchDispatch::Answer(Box::new(
        record.close(outcome.map(CallOutcome::Complete)).await,
    ))
}

/// Returns the answer to a name that does not exist, or that the caller may not see.
pub fn unknown(name: &str, call_id: &str) -> ToolResult {
    let shown = shorten(name, 64);
    let message = format!("There is no tool `{shown}` here. Use a name that {FIND_TOOLS} answers.");
    let error = CallError {
        field: Some("name".to_owned()),
        ..CallError::new(FailureCode::InvalidArguments, message)
    };
    error.into_result(call_id)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallToolArguments<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Reads the arguments of `call_tool`. The inner arguments are left unread: the tool's own stage reads them.
fn called(text: &str) -> Result<CallToolArguments<'_>, CallError> {
    let read = serde_json::from_str::<CallToolArguments<'_>>(text).ok();
    match read.filter(|called| {
        called
            .arguments
            .is_none_or(|arguments| arguments.get().starts_with('{'))
    }) {
        Some(called) => Ok(called),
        None => Err(match CALL.validate(text) {
            Err(invalid) => CallError::invalid(invalid),
            Ok(_) => CallError::new(
                FailureCode::InvalidArguments,
                "`name` and `arguments` may be there once.",
            ),
        }),
    }
}

fn found(listing: &CatalogueListing, text: &str) -> Result<ToolResult, CallError> {
    let arguments: Map<String, Value> = FIND.validate(text).map_err(CallError::invalid)?;
    let query = arguments
        .get("query")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let most = arguments
        .get("limit")
        .and_then(Value::as_u64)
        .unwrap_or(FOUND_DEFAULT);
    let tools = listing.find(query, usize::try_from(most).unwrap_or(usize::MAX));
    let listed = tools.iter().map(|tool| match tool.is_weak {
        true => format!(r#"{{"weak":true,{}"#, tool.json.trim_start_matches('{')),
        false => tool.json.to_owned(),
    });
    let listed: Vec<String> = listed.collect();
    let count = listing.tools.len();
    let hint = if tools.is_empty() {
        format!(
            "None of the {count} tools here shares a word with that. Ask for what is to be done in other words, such as a verb and a thing."
        )
    } else if tools.iter().all(|tool| tool.is_weak) {
        format!(
            "These are weak matches: each shares few words or only parts of words with the query, and perhaps none of the \
             {count} tools here does that. \
             Read their descriptions before you call one, or ask in other words, such as a verb and a thing."
        )
    } else {
        String::new()
    };
    let hint = match hint.as_str() {
        "" => hint,
        hint => format!(r#","hint":{}"#, Value::from(hint)),
    };
    let json = format!(r#"{{"tools":[{}]{hint}}}"#, listed.join(","));
    Ok(ToolResult::new(json.clone(), json, false))
}

fn validator(tool: &str) -> ArgumentValidator {
    ArgumentValidator::new(&CatalogueSearch::input(tool)).expect("a schema of our own compiles")
}
