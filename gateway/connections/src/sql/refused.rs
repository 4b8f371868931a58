//! What a database refuses, in the same words for every kind of database.

use crate::ConnectionError;

pub(super) fn taken() -> ConnectionError {
    ConnectionError::new("conflict", "a record with this value is there already")
}

pub(super) fn missing() -> ConnectionError {
    ConnectionError::new("invalid", "a value is required")
}

pub(super) fn unfit() -> ConnectionError {
    ConnectionError::new("invalid", "a value does not fit its column")
}

pub(super) fn referred() -> ConnectionError {
    ConnectionError::new("invalid", "a record that this one refers to is missing, or others refer to this one")
}

pub(super) fn rule() -> ConnectionError {
    ConnectionError::new("invalid", "a rule of the table refuses the record")
}

pub(super) fn changed() -> ConnectionError {
    ConnectionError::new("source_changed", "the table is no longer what it was")
}

pub(super) fn denied() -> ConnectionError {
    ConnectionError::new("denied", "the statement asks for more than this connection allows")
}

pub(super) fn statement() -> ConnectionError {
    ConnectionError::new("upstream_error", "the database refused the statement")
}

pub(super) fn unavailable() -> ConnectionError {
    ConnectionError::new("unavailable", "the database cannot be reached")
}

pub(super) fn timed_out() -> ConnectionError {
    ConnectionError::new("timeout", "the database did not answer in time")
}

pub(super) fn cancelled() -> ConnectionError {
    ConnectionError::new("cancelled", "the statement was interrupted")
}
