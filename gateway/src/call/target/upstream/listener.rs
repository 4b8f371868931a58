//! Receives what a server sends before the answer: progress, log messages and questions.

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use weir_plugin_host::CallEvents;
use weir_schema::json;
use weir_upstream::{Answering, UpstreamListener, UpstreamProgress, UpstreamQuestion};

use super::parked;
use crate::call::asking::{self, secret_field};

/// The receiver of a server's messages during one call.
pub(super) struct CallListener {
    /// The name of the server in the configuration.
    pub server: Arc<str>,
    pub events: Option<Arc<dyn CallEvents>>,
    /// The capabilities of the caller for answering questions; JSON.
    pub capabilities: Option<String>,
    pub questions: Option<mpsc::UnboundedSender<parked::ParkedQuestion>>,
}

impl UpstreamListener for CallListener {
    fn wants_progress(&self) -> bool {
        self.events
            .as_ref()
            .is_some_and(|events| events.wants_progress())
    }

    fn progress(&self, progress: UpstreamProgress) {
        if let Some(events) = &self.events {
            let message = progress.message.as_deref().unwrap_or_default();
            events.progress(progress.progress, progress.total, message);
        }
    }

    fn log_level(&self) -> Option<&'static str> {
        self.events.as_ref()?.log_level()
    }

    fn log(&self, level: &str, logger: &str, data: &RawValue) {
        if let Some(events) = &self.events
            && let Ok((data, _)) = json::read_answer(data.get())
        {
            let logger: String = logger
                .chars()
                .filter(|it| !it.is_control())
                .take(100)
                .collect();
            events.log(level, &logger, data);
        }
    }

    /// Declines questions that this caller cannot be asked, and questions that no caller may be asked.
    fn ask(&self, question: UpstreamQuestion) -> Answering {
        let params = question
            .params
            .as_deref()
            .and_then(|params| json::read_wide(params.get()).ok());
        let can = asking::can_answer(
            self.capabilities.as_deref(),
            &question.method,
            params.as_ref(),
        );
        let secret = secret_field(params.as_ref());
        if let Some(field) = &secret {
            let upstream = &*self.server;
            tracing::warn!(
                upstream,
                field,
                "the server asks for what looks like a secret; the question is declined"
            );
        }
        let why = asking::why_unasked(&question.method, params.as_ref());
        if let Some(why) = why {
            let upstream = &*self.server;
            tracing::warn!(
                upstream,
                why,
                "a question of the server reaches no caller; it is declined"
            );
        }
        let may = secret.is_none() && why.is_none();
        let questions = self.questions.clone().filter(|_| can && may);
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            questions?
                .send(parked::ParkedQuestion { question, answer })
                .ok()?;
            tokio::time::timeout(parked::ANSWER_WITHIN, answered)
                .await
                .ok()?
                .ok()
        })
    }
}
