//! Contract files become the snapshot that is served.
