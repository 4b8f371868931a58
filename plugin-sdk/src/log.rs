//! Lines for the gateway's log.

#[cfg(target_arch = "wasm32")]
use crate::bindings::weir::plugin::log as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::log as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::log as imported;

/// Logs a line that helps to find a fault.
pub fn debug(message: &str) {
    imported::write("debug", message, None);
}

/// Logs a line that is worth a look.
pub fn info(message: &str) {
    imported::write("info", message, None);
}

/// Logs a line about something that may go wrong.
pub fn warn(message: &str) {
    imported::write("warn", message, None);
}

/// Logs a line about something that went wrong.
pub fn error(message: &str) {
    imported::write("error", message, None);
}

/// Logs an error whose text was not checked: it may contain a secret. A caller that listens to the log does not get it.
pub(crate) fn error_for_the_log_alone(message: &str) {
    imported::write("error", message, Some(r#"{"weir.log_only":true}"#));
}

/// Logs a line with fields. Callers that listen do not get a line with a field `weir.log_only`. `level` is trace, debug,
/// info, warn or error; `fields` is a JSON object.
pub fn write(level: &str, message: &str, fields: &serde_json::Value) {
    imported::write(level, message, Some(&fields.to_string()));
}
