//! One fault of a value in words: where it is, and whether the member there is missing or wrong.

use jsonschema::{ValidationError, error::ValidationErrorKind as Kind};
use weir_text::shorten;

use crate::json::push_pointer;

/// Returns the fault to report if no alternative fits: that of the alternative which fits best. If several do, the first
/// counts, which in a published schema is the tool's own result.
pub(super) fn nearest<'e>(error: &'e ValidationError<'e>) -> &'e ValidationError<'e> {
    let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = error.kind() else {
        return error;
    };
    let faults = context.iter().filter_map(|arm| arm.first()).map(nearest);
    let deep = |fault: &&ValidationError<'_>| fault.instance_path().as_str().matches('/').count();
    faults.rev().max_by_key(deep).unwrap_or(error)
}

/// Returns the place of a fault, and whether the member there is missing or wrong.
pub(super) fn describe(fault: &ValidationError<'_>) -> (String, String) {
    let mut path = fault.instance_path().to_string();
    let reason = match fault.kind() {
        Kind::Required { property } => {
            push_pointer(&mut path, property.as_str().unwrap_or_default());
            "the member is missing".to_owned()
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            push_pointer(&mut path, unexpected.first().map_or("", String::as_str));
            "the member is not declared".to_owned()
        }
        _ => {
            let why = fault.masked().to_string();
            let why = shorten(&why, 300).into_owned();
            match path.is_empty() {
                true => why,
                false => format!("the member is wrong ({why})"),
            }
        }
    };
    (path, reason)
}
