//! Keeps what an adapter reported, and plays a caller that may go.

use std::cell::{Cell, RefCell};

thread_local! {
    static REPORTS: RefCell<Vec<(f64, Option<f64>, String)>> = const { RefCell::new(Vec::new()) };
    static CANCELLED: Cell<bool> = const { Cell::new(false) };
}

/// Returns all reports so far: done, total, message.
pub fn reports() -> Vec<(f64, Option<f64>, String)> {
    REPORTS.with_borrow(Clone::clone)
}

/// Makes the caller gone from now on.
pub fn cancel() {
    CANCELLED.set(true);
}

/// Takes a report of [`crate::progress::report`].
pub fn report(done: f64, total: Option<f64>, message: &str) {
    REPORTS.with_borrow_mut(|reports| reports.push((done, total, message.to_owned())));
}

/// Answers [`crate::progress::cancelled`].
pub fn cancelled() -> bool {
    CANCELLED.get()
}

/// Forgets the reports; the caller is back.
pub fn reset() {
    REPORTS.with_borrow_mut(Vec::clear);
    CANCELLED.set(false);
}
