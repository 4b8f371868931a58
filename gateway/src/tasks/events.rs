//! Handles the messages of a task's call before its end.

use jiff::Timestamp;
use serde_json::Value;
use weir_plugin_host::CallEvents;
use weir_text::shorten;

use super::{CallTask, TaskStage};

const MESSAGE_MAX_CHARS: usize = 1000;

/// While the request is open, its caller gets the messages of the call. Afterwards, its progress is in the state of the task.
impl CallEvents for CallTask {
    fn wants_progress(&self) -> bool {
        true
    }

    fn progress(&self, done: f64, total: Option<f64>, text: &str) {
        let message = match (text.is_empty(), total) {
            (false, _) => shorten(text, MESSAGE_MAX_CHARS).into_owned(),
            (true, Some(total)) => format!("{done} of {total}"),
            (true, None) => format!("{done}"),
        };
        let mut state = self.lock();
        state.message = Some(message);
        state.updated = Timestamp::now();
        if matches!(state.stage, TaskStage::Open)
            && let Some(events) = &self.events
        {
            events.progress(done, total, text);
        }
    }

    fn log_level(&self) -> Option<&'static str> {
        self.events.as_ref()?.log_level()
    }

    fn log(&self, level: &str, logger: &str, data: Value) {
        if matches!(self.lock().stage, TaskStage::Open)
            && let Some(events) = &self.events
        {
            events.log(level, logger, data);
        }
    }
}
