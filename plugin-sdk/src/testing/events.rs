//! The changes that a plugin reported.

use std::cell::RefCell;

thread_local! {
    static CHANGES: RefCell<Vec<(String, Option<String>)>> = const { RefCell::new(Vec::new()) };
}

/// All changes so far: `tools`, `prompts`, `resources`, or `resource` with its URI.
pub fn changes() -> Vec<(String, Option<String>)> {
    CHANGES.with_borrow(Clone::clone)
}

/// Takes a change of [`crate::events`].
pub fn changed(what: &str, uri: Option<&str>) {
    CHANGES.with_borrow_mut(|changes| changes.push((what.to_owned(), uri.map(ToOwned::to_owned))));
}

/// Forgets the changes.
pub fn reset() {
    CHANGES.with_borrow_mut(Vec::clear);
}
