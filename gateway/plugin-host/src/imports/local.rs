//! `log`, `progress`, `events`, `clock` and `random`: what needs no grant.

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use weir_text::shorten;

use crate::{
    bindings::v0_1::weir::plugin::{clock, events, log, progress, random},
    guest::{GuestProgress, GuestState, GuestStop, LINE_BYTES},
    tools::PluginChange,
};

/// The bound on the log of one call. The rest is dropped, which one line reports.
const LOG_MAX_BYTES: usize = 64 << 10;
/// A report within this time of the last one is delayed until the next one or the end of the call, so that clients are not
/// flooded.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(20);
const PROGRESS_MESSAGE_MAX_CHARS: usize = 200;
/// The bound on the URI of a changed resource.
const URI_MAX_BYTES: usize = 4 << 10;
/// The bound on a log message for a caller.
const LOG_MESSAGE_MAX_CHARS: usize = 4096;
/// The member of a line's fields by which an SDK marks that the line was not checked for secrets: such a line is only logged.
const LOG_ONLY: &str = "weir.log_only";
const RANDOM_MAX_BYTES: u32 = 64 << 10;

impl log::Host for GuestState {
    async fn write(
        &mut self,
        level: String,
        message: String,
        fields: Option<String>,
    ) -> wasmtime::Result<()> {
        self.count_other_call()?;
        if self.call.log_bytes > LOG_MAX_BYTES {
            return Ok(());
        }
        let bytes = message.len() + fields.as_ref().map_or(0, String::len);
        self.call.log_bytes += LINE_BYTES + bytes;
        let plugin = &*self.profile.name;
        let call = &*self.call.id;
        if self.call.log_bytes > LOG_MAX_BYTES {
            tracing::warn!(target: "weir::plugin", plugin, call, "logged more than 64 KB in one call; the rest is dropped");
            return Ok(());
        }
        if !self.profile.log.passes(plugin, bytes) {
            return Ok(());
        }
        let message = one_line(self.profile.masked(message).chars());
        let fields = fields.map(|fields| one_line(self.profile.masked(fields).chars()));
        let fields = fields.as_deref();
        match level.as_str() {
            "error" => tracing::error!(target: "weir::plugin", plugin, call, fields, "{message}"),
            "warn" => tracing::warn!(target: "weir::plugin", plugin, call, fields, "{message}"),
            "debug" => tracing::debug!(target: "weir::plugin", plugin, call, fields, "{message}"),
            "trace" => tracing::trace!(target: "weir::plugin", plugin, call, fields, "{message}"),
            _ => tracing::info!(target: "weir::plugin", plugin, call, fields, "{message}"),
        }
        if let Some(events) = self
            .call
            .events
            .as_ref()
            .filter(|events| events.log_level().is_some())
            && let Some(data) = logged(message, fields)
        {
            events.log(&level, plugin, data);
        }
        Ok(())
    }
}

/// Returns the data of a log message in MCP: a text, or an object if there are fields. `None` if the line is only for the
/// log.
fn logged(message: String, fields: Option<&str>) -> Option<Value> {
    let message = shorten(&message, LOG_MESSAGE_MAX_CHARS).into_owned();
    let fields = fields.and_then(|fields| serde_json::from_str::<Map<String, Value>>(fields).ok());
    match fields.filter(|fields| !fields.is_empty()) {
        None => Some(Value::String(message)),
        Some(fields) if fields.contains_key(LOG_ONLY) => None,
        Some(mut fields) => {
            fields.insert("message".to_owned(), message.into());
            Some(fields.into())
        }
    }
}

impl progress::Host for GuestState {
    /// Passes progress on only if it moves forward, as the protocol demands, and not too often.
    async fn report(
        &mut self,
        done: f64,
        total: Option<f64>,
        message: String,
    ) -> wasmtime::Result<()> {
        self.count_other_call()?;
        let Some(events) = &self.call.events else {
            return Ok(());
        };
        let newest = self.call.progress_held.as_ref().map(|held| held.done);
        let newest = newest.or(self.call.progress_last.map(|(last, _)| last));
        if !done.is_finite() || done < 0.0 || newest.is_some_and(|newest| done <= newest) {
            return Ok(());
        }
        let total = total.filter(|total| total.is_finite() && *total >= done);
        let message = self.profile.masked(message);
        let message = one_line(shorten(&message, PROGRESS_MESSAGE_MAX_CHARS).chars());
        let now = Instant::now();
        let last = self.call.progress_last;
        if last.is_some_and(|(_, at)| now.duration_since(at) < PROGRESS_INTERVAL) {
            self.call.progress_held = Some(GuestProgress {
                done,
                total,
                message,
            });
            return Ok(());
        }
        self.call.progress_held = None;
        self.call.progress_last = Some((done, now));
        events.progress(done, total, &message);
        Ok(())
    }

    async fn cancelled(&mut self) -> wasmtime::Result<bool> {
        self.count_other_call()?;
        Ok(self
            .call
            .cancel
            .as_ref()
            .is_some_and(CancellationToken::is_cancelled))
    }
}

impl events::Host for GuestState {
    async fn changed(&mut self, what: String, uri: Option<String>) -> wasmtime::Result<()> {
        self.count_other_call()?;
        let changed = match (what.as_str(), uri) {
            ("tools", _) => PluginChange::Tools,
            ("prompts", _) => PluginChange::Prompts,
            ("resources", _) => PluginChange::Resources,
            ("resource", Some(uri)) if uri.len() <= URI_MAX_BYTES => PluginChange::Resource(uri),
            _ => return Ok(()),
        };
        if let Some(gate) = &*self.profile.gate.load() {
            gate.changed(&self.profile.name, changed);
        }
        Ok(())
    }
}

impl clock::Host for GuestState {
    async fn now_ms(&mut self) -> wasmtime::Result<u64> {
        self.count_other_call()?;
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    async fn monotonic_ns(&mut self) -> wasmtime::Result<u64> {
        static START: OnceLock<Instant> = OnceLock::new();
        self.count_other_call()?;
        Ok(u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

impl random::Host for GuestState {
    async fn bytes(&mut self, length: u32) -> wasmtime::Result<Vec<u8>> {
        self.count_other_call()?;
        if length > RANDOM_MAX_BYTES {
            return Err(wasmtime::Error::new(GuestStop::Random(length)));
        }
        let mut bytes = vec![0; length as usize];
        getrandom::fill(&mut bytes).map_err(|error| wasmtime::Error::msg(error.to_string()))?;
        Ok(bytes)
    }
}

/// Puts a guest's text on one line, so that it cannot look like a line of ours.
fn one_line(text: impl Iterator<Item = char>) -> String {
    text.map(|character| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_for_the_log_alone_is_told_to_no_caller() {
        for (fields, expected) in [
            (None, Some(json!("failed"))),
            (Some("no JSON"), Some(json!("failed"))),
            (
                Some(r#"{"port":1}"#),
                Some(json!({"port": 1, "message": "failed"})),
            ),
            (Some(r#"{"weir.log_only":true}"#), None),
            (Some(r#"{"port":1,"weir.log_only":true}"#), None),
        ] {
            assert_eq!(logged("failed".to_owned(), fields), expected, "{fields:?}");
        }
    }
}
