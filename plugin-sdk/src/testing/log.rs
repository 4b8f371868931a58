//! Keeps what an adapter logged.

use std::cell::RefCell;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// `info`, `error`, …
    pub level: String,
    /// The text of the line.
    pub message: String,
    /// A JSON object.
    pub fields: Option<String>,
}

thread_local! { static LINES: RefCell<Vec<Line>> = const { RefCell::new(Vec::new()) }; }

/// Returns all lines so far.
pub fn lines() -> Vec<Line> {
    LINES.with_borrow(Clone::clone)
}

/// Takes a line of [`crate::log`].
pub fn write(level: &str, message: &str, fields: Option<&str>) {
    let line = Line {
        level: level.to_owned(),
        message: message.to_owned(),
        fields: fields.map(str::to_owned),
    };
    LINES.with_borrow_mut(|lines| lines.push(line));
}

pub(super) fn reset() {
    LINES.with_borrow_mut(Vec::clear);
}
