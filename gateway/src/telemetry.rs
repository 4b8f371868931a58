//! Logs now; metrics and audit have their room here.
