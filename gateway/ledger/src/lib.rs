//! One rate over several nodes.
