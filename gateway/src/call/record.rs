//! The record of one call. Opened before any stage runs and always closed: by its outcome, or, when the caller has
//! gone, by its drop. A write that outlives its caller closes the record with its true outcome.

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{CallError, CallOutcome, CallRequest, Code, ToolResult};
use crate::{catalogue::CatalogueTool, identity::Caller, telemetry};

pub(super) struct CallRecord {
    line: Arc<Line>,
    write: Option<Arc<Mutex<Write>>>,
    closed: bool,
}

/// What is written down at the end.
struct Line {
    call_id: Arc<str>,
    agent: Arc<str>,
    /// As asked for; shown only when a tool of that name exists.
    tool: Mutex<Option<Arc<str>>>,
    contract: Mutex<Option<Arc<str>>>,
    trace: Option<String>,
    opened: Instant,
}

/// Where a write in its own task stands.
enum Write {
    Running,
    /// The caller has gone: the task closes the record.
    Abandoned,
    Done,
}

impl CallRecord {
    pub(super) fn open(caller: &Caller, request: &CallRequest<'_>) -> Self {
        let line = Line {
            call_id: telemetry::call_id().into(),
            agent: caller.agent.clone(),
            tool: Mutex::new(None),
            contract: Mutex::new(None),
            trace: request.trace.map(str::to_owned),
            opened: Instant::now(),
        };
        Self { line: Arc::new(line), write: None, closed: false }
    }

    pub(super) fn call_id(&self) -> &Arc<str> {
        &self.line.call_id
    }

    pub(super) fn tool(&mut self, tool: &CatalogueTool) {
        *lock(&self.line.tool) = Some(tool.name.clone());
        *lock(&self.line.contract) = Some(tool.contract_version.clone());
    }

    /// Runs a write in its own task and waits for it. When this future is dropped, the task runs on and closes the record.
    pub(super) async fn wait_for_write<T: Send + 'static>(
        &mut self,
        write: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        let state = Arc::new(Mutex::new(Write::Running));
        self.write = Some(state.clone());
        let line = self.line.clone();
        let task = tokio::spawn(async move {
            let result = write.await;
            match std::mem::replace(&mut *lock(&state), Write::Done) {
                Write::Abandoned => line.write(result.as_ref().err()),
                Write::Running | Write::Done => {}
            }
            result
        });
        let failed = |error: tokio::task::JoinError| {
            Err(CallError::new(Code::Internal, "The gateway failed.").log(error.to_string()))
        };
        let result = task.await.unwrap_or_else(failed);
        self.write = None;
        result
    }

    pub(super) fn close(mut self, outcome: Result<ToolResult, CallError>) -> CallOutcome {
        self.closed = true;
        self.line.write(outcome.as_ref().err());
        match outcome {
            Ok(result) => CallOutcome::Complete(result),
            Err(error) if error.unknown_tool => CallOutcome::UnknownTool,
            Err(error) => CallOutcome::Complete(error.into_result(&self.line.call_id)),
        }
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let running = self.write.as_ref().is_some_and(|state| {
            let mut state = lock(state);
            let running = matches!(*state, Write::Running);
            if running {
                *state = Write::Abandoned;
            }
            running
        });
        if !running {
            self.line.write(Some(&CallError::new(Code::Cancelled, "The caller has gone.")));
        }
    }
}

impl Line {
    fn write(&self, error: Option<&CallError>) {
        telemetry::call(&telemetry::Call {
            call_id: &self.call_id,
            agent: &self.agent,
            tool: lock(&self.tool).as_deref(),
            contract: lock(&self.contract).as_deref(),
            outcome: error.map_or("ok", |error| if error.unknown_tool { "unknown_tool" } else { error.code.label() }),
            milliseconds: self.opened.elapsed().as_secs_f64() * 1000.0,
            trace: self.trace.as_deref(),
            detail: error.and_then(|error| error.log.as_deref()),
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
