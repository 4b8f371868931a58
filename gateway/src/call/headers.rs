//! Checks arguments that a request repeats in its headers (`x-mcp-header`). Both must agree, since a proxy may have routed or
//! allowed the request by the header. A client repeats what the listed schema says, which in a view may be less than the
//! tool's own: there a header may be missing, but one that is present must agree.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use weir_schema::json;

use super::{CallError, CallRequest};
use crate::catalogue::CatalogueTool;

/// The headers `Mcp-Param-…` of a request: names without that beginning in lower case, and values.
pub type ParamHeaders = [(Box<str>, Box<[u8]>)];

pub(super) fn check(tool: &CatalogueTool, request: &CallRequest<'_>) -> Result<(), CallError> {
    let Some(headers) = request.param_headers.filter(|_| !tool.mirrored.is_empty()) else {
        return Ok(());
    };
    // Arguments that cannot be read are reported with all other problems of the arguments.
    let Ok(arguments) = json::read_wide(request.arguments.unwrap_or("{}")) else {
        return Ok(());
    };
    let listed = request.snapshot.catalogue.mirrored(request.endpoint, tool);
    for mirrored in &tool.mirrored {
        let header = format!("Mcp-Param-{}", mirrored.header);
        let mut given = headers
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(&mirrored.header));
        let (first, second) = (given.next(), given.next());
        if second.is_some() {
            return Err(CallError::header_mismatch(format!(
                "the {header} header is given more than once"
            )));
        }
        let wrong =
            || CallError::header_mismatch(format!("the {header} header is not valid base64"));
        let decoded_value = first
            .map(|(_, value)| decoded(value).ok_or_else(wrong))
            .transpose()?;
        let argument = format!("the argument `{}`", mirrored.path.join("."));
        match (decoded_value, mirrored.value(&arguments)) {
            (None, Some(_)) if listed.iter().any(|listed| listed.header == mirrored.header) => {
                return Err(CallError::header_mismatch(format!(
                    "the {header} header is missing, and {argument} is given"
                )));
            }
            (None, _) => {}
            (Some(decoded_value), Some(value)) if *decoded_value == *value.as_bytes() => {}
            (Some(_), _) => {
                return Err(CallError::header_mismatch(format!(
                    "the {header} header does not match {argument}"
                )));
            }
        }
    }
    Ok(())
}

/// Reads the value of a header. `=?base64?…?=` carries what a header cannot; a value without both halves of the mark is
/// literal.
pub fn decoded(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(encoded) = value
        .strip_prefix(b"=?base64?")
        .and_then(|rest| rest.strip_suffix(b"?="))
    else {
        return Some(Cow::Borrowed(value));
    };
    STANDARD.decode(encoded).ok().map(Cow::Owned)
}
