//! Describes a refused call for the audit trail and the log: which fields and why, or which name. It contains no value of an
//! argument.

use std::{borrow::Cow, fmt::Write as _};

use weir_connections::mask::mask;
use weir_schema::validate::ArgumentError;
use weir_text::shorten;

use super::{CallError, ErrorForm};

/// The most faults of one call that are recorded; further ones are only counted.
const FAULTS_MAX: usize = 8;
/// The most characters of the place of a fault, and of a requested name. Both may be the caller's text.
const PLACE_MAX_CHARS: usize = 96;
const NAME_MAX_CHARS: usize = 128;

/// The name of a tool or prompt that does not exist for its caller, in the caller's own words.
pub(super) struct AbsentName {
    pub name: Box<str>,
    /// It is served, but not to this caller.
    pub is_hidden: bool,
}

impl AbsentName {
    pub(super) fn new(name: &str, is_hidden: bool) -> Self {
        Self {
            name: plain_text(name, NAME_MAX_CHARS).into(),
            is_hidden,
        }
    }
}

/// Returns the faults of the arguments, or the limit that was reached, if the error is about these.
pub(super) fn recorded_reason(error: &CallError) -> Option<Cow<'_, str>> {
    if let ErrorForm::Limited(limit) = &error.form {
        return Some(Cow::Borrowed(&limit.words));
    }
    if let Some(invalid) = error.invalid_arguments() {
        return Some(fault_list(&invalid.errors).into());
    }
    // The source's name for a field is left out: it is the source's text, and could be a value.
    error.reason.as_deref().map(Cow::Borrowed)
}

/// Returns the faults as `status: not_in_enum; state: unknown_argument (did you mean status?)`.
fn fault_list(faults: &[ArgumentError]) -> String {
    let mut list = String::new();
    for fault in faults.iter().take(FAULTS_MAX) {
        if !list.is_empty() {
            list.push_str("; ");
        }
        let place = match fault.path.strip_prefix('/') {
            Some(place) => plain_text(place, PLACE_MAX_CHARS),
            None => "arguments".to_owned(),
        };
        let _ = write!(list, "{place}: {}", fault.reason);
        // The suggestion for a value would reveal the argument.
        if fault.reason == "unknown_argument"
            && let Some(near) = &fault.suggestion
        {
            let _ = write!(list, " (did you mean {near}?)");
        }
    }
    if faults.len() > FAULTS_MAX {
        let _ = write!(list, "; and {} more", faults.len() - FAULTS_MAX);
    }
    list
}

/// Returns a text of the caller without control characters and without secrets of the configuration, shortened.
fn plain_text(text: &str, chars_max: usize) -> String {
    // The part that is cut off is not read, however long it is.
    let head: String = text
        .chars()
        .take(4 * chars_max)
        .filter(|c| !c.is_control())
        .collect();
    shorten(&mask(&head), chars_max).into_owned()
}
