//! Lines for the gateway's log.

#[cfg(target_arch = "wasm32")]
use crate::bindings::weir::plugin::log as imported;
#[cfg(all(not(target_arch = "wasm32"), feature = "native"))]
use crate::native::calls::log as imported;
#[cfg(all(not(target_arch = "wasm32"), not(feature = "native")))]
use crate::testing::log as imported;

/// A line for whoever looks for a fault.
pub fn debug(message: &str) {
    imported::write("debug", message, None);
}

/// A line that is worth a look.
pub fn info(message: &str) {
    imported::write("info", message, None);
}

/// A line about something that may go wrong.
pub fn warn(message: &str) {
    imported::write("warn", message, None);
}

/// A line about something that went wrong.
pub fn error(message: &str) {
    imported::write("error", message, None);
}

/// `level` is trace, debug, info, warn or error; `fields` a JSON object.
pub fn write(level: &str, message: &str, fields: &serde_json::Value) {
    imported::write(level, message, Some(&fields.to_string()));
}
