//! Copies of the audit trail in a bucket.
