//! The record of one call. Opened before any stage runs and always closed: by its outcome, or, when the caller has
//! gone, by its drop. A write that outlives its caller closes the record with its true outcome.
//!
//! Answered means recorded: a call that cannot be written to the audit trail gets no result, and a write that cannot be announced
//! there does not run.

mod asked;

use std::{
    any::Any,
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::{Instant, SystemTime},
};

use futures::FutureExt;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use weir_audit::{
    AuditEvent, AuditOutcome, AuditReceipt, AuditedCall, AuditedIntent, CallDetails, HolderRecord,
    PolicyRecord, TrailEntry,
};
use weir_connections::http::TraceContext;

use self::asked::RequestedTarget;
use super::{
    CallError, CallOutcome, CallRequest, InputRequired, PolicyDecision, ToolResult,
    approval::TakenPlan,
    arguments::CheckedInput,
    error::{ErrorForm, WriteOutcome},
    item::ItemOutcome,
    keyed::KeyedCall,
    refusal::{AbsentName, recorded_reason},
};
use crate::{
    catalogue::{CatalogueTool, ItemKind, ItemSource},
    codes::FailureCode,
    identity::CallerIdentity,
    serving::ServingGateway,
    telemetry::{
        self, AuditRecorder, GatewayMetrics,
        metrics::{MeasuredCall, StageTimes, Stages},
        traces::{CallTrace, EndedTrace},
    },
};

/// The transport of a call that an admin tries out.
pub(crate) const TRIAL: &str = "admin";

pub(super) struct CallRecord {
    line: Arc<RecordContext>,
    write: Option<Arc<Mutex<WriteProgress>>>,
    /// The stored state of a write with an idempotency key.
    keyed: Option<KeyedCall>,
    closed: bool,
}

/// The name of a finished request, and the proof that it is recorded.
#[derive(Clone, Debug)]
pub struct CallReceipt {
    pub call_id: Arc<str>,
    pub receipt: Option<AuditReceipt>,
}

/// The parts of the final record.
struct RecordContext {
    audit: Arc<AuditRecorder>,
    metrics: Arc<GatewayMetrics>,
    call_id: Arc<str>,
    caller: CallerIdentity,
    transport: &'static str,
    protocol: &'static str,
    digest: Option<String>,
    trace: Option<String>,
    /// The method of MCP.
    method: &'static str,
    /// `None` if calls are not traced.
    traced: Option<CallTrace>,
    opened: Instant,
    /// sha256 of the plugin that ran it.
    ran_on: Arc<OnceLock<Arc<str>>>,
    known: Mutex<CallFindings>,
}

/// What the stages have found.
#[derive(Default)]
struct CallFindings {
    asked: Option<RequestedTarget>,
    /// The name of an item that the caller cannot see.
    absent: Option<AbsentName>,
    /// The arguments that the contract lists for recording in clear.
    clear: Map<String, Value>,
    /// What policies denied, or would have.
    policy: Option<PolicyDecision>,
    /// The approved plan.
    approval: Option<Arc<TakenPlan>>,
    /// An adapter was asked.
    ran: bool,
    /// Whether the target was asked to change something.
    wrote: bool,
    marks: StageTimes,
}

/// The progress of a write in its own task.
enum WriteProgress {
    Running,
    /// The caller has gone: the task closes the record.
    Abandoned,
    Done,
}

impl CallRecord {
    /// Opens the record of a request. `method` is that of MCP.
    pub(super) fn open(
        gateway: &ServingGateway,
        caller: &CallerIdentity,
        method: &'static str,
        request: &CallRequest<'_>,
    ) -> Self {
        // A trial runs in the agent's name, but without its key.
        if request.transport != TRIAL {
            gateway.identities().note_use(caller);
        }
        let line = RecordContext {
            audit: gateway.audit().clone(),
            metrics: gateway.metrics().clone(),
            call_id: telemetry::call_id(),
            caller: caller.clone(),
            transport: request.transport,
            protocol: request.protocol,
            digest: gateway
                .audit()
                .digest(request.arguments.unwrap_or("{}").as_bytes()),
            trace: request.trace.map(str::to_owned),
            method,
            traced: gateway
                .traces()
                .map(|traces| traces.open(request.trace, request.trace_state, request.trace_link)),
            opened: Instant::now(),
            ran_on: Arc::default(),
            known: Mutex::default(),
        };
        Self {
            line: Arc::new(line),
            write: None,
            keyed: None,
            closed: false,
        }
    }

    /// Sets the stored state of the write, in case its caller goes.
    pub(super) fn set_keyed(&mut self, keyed: KeyedCall) {
        self.keyed = Some(keyed);
    }

    /// Takes the stored state of the write, which has ended.
    pub(super) fn take_keyed(&mut self) -> Option<KeyedCall> {
        self.keyed.take()
    }

    pub(super) fn call_id(&self) -> &Arc<str> {
        &self.line.call_id
    }

    /// Returns the trace to pass on to others; `None` if calls are not traced.
    pub(super) fn carried(&self) -> Option<&TraceContext> {
        self.line.traced.as_ref()?.carried()
    }

    pub(super) fn opened(&self) -> Instant {
        self.line.opened
    }

    /// Returns the place where the host records which plugin ran the call.
    pub(super) fn ran_on(&self) -> &Arc<OnceLock<Arc<str>>> {
        &self.line.ran_on
    }

    pub(super) fn tool(&mut self, tool: &Arc<CatalogueTool>) {
        self.found(RequestedTarget::Tool(tool.clone()));
    }

    /// Notes a prompt or a resource, by the name under which it is recorded.
    pub(super) fn item(&mut self, source: &Arc<ItemSource>, kind: ItemKind, name: &str) {
        self.found(RequestedTarget::Item(source.clone(), kind, name.into()));
    }

    /// Notes one of the two tools of a view with search.
    pub(super) fn search(&mut self, tool: &'static str) {
        self.found(RequestedTarget::Search(tool));
    }

    /// Notes the name of an item that the caller cannot see.
    pub(super) fn absent(&mut self, name: AbsentName) {
        self.line.known.lock().absent = Some(name);
    }

    fn found(&mut self, asked: RequestedTarget) {
        let mut known = self.line.known.lock();
        known.asked = Some(asked);
        known.marks.found = Some(Instant::now());
    }

    /// Notes that the item is about to be read, which changes nothing.
    pub(super) fn asks(&mut self) {
        let mut known = self.line.known.lock();
        let now = Instant::now();
        known.ran = true;
        known.marks.bound = Some(now);
        known.marks.asked = Some(now);
    }

    /// Returns when the target was asked, or the current time if it has not been asked yet.
    pub(super) fn asked_at(&self) -> Instant {
        let asked = self.line.known.lock().marks.asked;
        asked.unwrap_or_else(Instant::now)
    }

    /// Notes that the adapter has answered, or failed to.
    pub(super) fn answered(&mut self) {
        self.line.known.lock().marks.answered = Some(Instant::now());
    }

    /// Notes that the arguments are valid and about to reach an adapter. A write is recorded before it runs, and other machines
    /// could know of it if the configuration requires this.
    pub(super) async fn announce(&mut self, input: &CheckedInput<'_>) -> Result<(), CallError> {
        let writes = input.target.writes();
        {
            let mut known = self.line.known.lock();
            known.ran = true;
            known.wrote = writes;
            known.clear.clone_from(&input.clear);
            known.policy.clone_from(&input.policy);
            known.approval.clone_from(&input.plan);
            let now = Instant::now();
            known.marks.bound = Some(now);
            if !writes {
                known.marks.asked = Some(now);
                return Ok(());
            }
        }
        let announced = self.line.with_about(|about| {
            self.line
                .audit
                .append(&AuditEvent::Intent(AuditedIntent { about }))
        });
        announced.map_err(|_| self.unrecorded_write())?;
        // Boxed, as everything that waits for a database: otherwise the future of every call would be larger.
        self.replicate().boxed().await
    }

    /// Notes that a write was not run, since its intent is not recorded.
    fn unrecorded_write(&self) -> CallError {
        self.line.known.lock().ran = false;
        CallError::unrecorded().outcome(WriteOutcome::None)
    }

    /// Waits until other machines could know of the intent, if the configuration requires this.
    async fn replicate(&self) -> Result<(), CallError> {
        let replicated = self.line.audit.replicate().await;
        replicated.map_err(|_| self.unrecorded_write())?;
        // The target counts as asked once others know of the intent: nothing was written for a caller who leaves earlier.
        self.line.known.lock().marks.asked = Some(Instant::now());
        Ok(())
    }

    /// Runs a write in its own task and waits for it. When this future is dropped, the task continues and closes the record.
    pub(super) async fn wait_for_write<T: Send + 'static>(
        &mut self,
        write: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        let state = Arc::new(Mutex::new(WriteProgress::Running));
        self.write = Some(state.clone());
        let (line, keyed) = (self.line.clone(), self.keyed.clone());
        let task = tokio::spawn(async move {
            let result = AssertUnwindSafe(write)
                .catch_unwind()
                .await
                .unwrap_or_else(|panic| Err(panicked(&*panic, true)));
            let was = std::mem::replace(&mut *state.lock(), WriteProgress::Done);
            if let WriteProgress::Abandoned = was {
                drop(line.end(result.as_ref().err()));
                if let Some(keyed) = keyed {
                    keyed.end_alone(result.as_ref().err()).await;
                }
            }
            result
        });
        let result = task
            .await
            .unwrap_or_else(|error| Err(failed(&error.to_string(), true)));
        self.write = None;
        self.answered();
        result
    }

    /// Returns the error of a call whose stage panicked: only this call has failed.
    pub(super) fn panicked(&self, panic: &(dyn Any + Send)) -> CallError {
        panicked(panic, self.line.known.lock().wrote)
    }

    pub(super) async fn close(self, outcome: Result<CallOutcome, CallError>) -> CallOutcome {
        let call_id = Arc::clone(&self.line.call_id);
        match self.close_as(outcome).await {
            CallOutcome::Complete(result) => CallOutcome::Complete(ToolResult {
                made: Some(call_id),
                ..result
            }),
            outcome => outcome,
        }
    }

    async fn close_as(mut self, outcome: Result<CallOutcome, CallError>) -> CallOutcome {
        self.closed = true;
        let end = self.line.end(outcome.as_ref().err());
        self.line.audit.wait_for_others(end.closed).await;
        let (recorded, stages) = end.written();
        let call_id = &self.line.call_id;
        match (outcome, recorded) {
            (
                Err(CallError {
                    form: ErrorForm::UnknownTool,
                    ..
                }),
                Ok(_),
            ) => CallOutcome::UnknownTool(Arc::clone(call_id)),
            (
                Err(CallError {
                    form: ErrorForm::BadState,
                    ..
                }),
                Ok(_),
            ) => CallOutcome::BadState,
            (
                Err(CallError {
                    form: ErrorForm::HeaderMismatch,
                    message,
                    ..
                }),
                Ok(_),
            ) => CallOutcome::HeaderMismatch(message.into()),
            (
                Err(CallError {
                    form: ErrorForm::MissingCapability(needed),
                    ..
                }),
                Ok(_),
            ) => CallOutcome::MissingCapability(needed),
            (Err(error), Ok(receipt)) => CallOutcome::Complete(ToolResult {
                receipt,
                stages,
                ..self.line.result(error)
            }),
            (Ok(CallOutcome::Complete(result)), Ok(receipt)) => CallOutcome::Complete(ToolResult {
                policy: self.line.known.lock().policy.clone(),
                receipt,
                stages,
                ..result
            }),
            (Ok(CallOutcome::InputRequired(asked)), Ok(receipt)) => {
                CallOutcome::InputRequired(InputRequired { receipt, ..asked })
            }
            (Ok(outcome), Ok(_)) => outcome,
            // The write has run, or may have run, and cannot be undone: the caller gets the result, with a mark.
            (Ok(CallOutcome::Complete(result)), Err(_)) if self.line.known.lock().wrote => {
                CallOutcome::Complete(ToolResult {
                    unrecorded: true,
                    ..result
                })
            }
            (Err(error), Err(_)) if self.line.may_have_written(&error) => {
                CallOutcome::Complete(ToolResult {
                    unrecorded: true,
                    ..self.line.result(error)
                })
            }
            (Ok(CallOutcome::InputRequired(asked)), Err(_)) => {
                CallOutcome::Complete(self.line.result(asked.give_up(CallError::unrecorded())))
            }
            (_, Err(_)) => CallOutcome::Complete(self.line.result(CallError::unrecorded())),
        }
    }
}

impl CallRecord {
    /// Closes the record of a request other than a tool call, and returns its id and its proof.
    pub(super) async fn close_item(
        mut self,
        outcome: Result<ItemOutcome, CallError>,
    ) -> (Result<ItemOutcome, CallError>, CallReceipt) {
        self.closed = true;
        let end = self.line.end(outcome.as_ref().err());
        self.line.audit.wait_for_others(end.closed).await;
        let (recorded, _) = end.written();
        let call_id = self.line.call_id.clone();
        match (outcome, recorded) {
            (outcome, Ok(receipt)) => (outcome, CallReceipt { call_id, receipt }),
            (Ok(ItemOutcome::InputRequired(asked)), Err(_)) => (
                Err(asked.give_up(CallError::unrecorded())),
                CallReceipt {
                    call_id,
                    receipt: None,
                },
            ),
            (_, Err(_)) => (
                Err(CallError::unrecorded()),
                CallReceipt {
                    call_id,
                    receipt: None,
                },
            ),
        }
    }
}

/// Returns the error of a panic.
fn panicked(panic: &(dyn Any + Send), wrote: bool) -> CallError {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    failed(text.unwrap_or("a panic without a text"), wrote)
}

/// Returns the error of work that did not finish. It is then unknown whether a write was made.
fn failed(why: &str, wrote: bool) -> CallError {
    let error = CallError::new(FailureCode::Internal, "The gateway failed.").log(why);
    if wrote {
        error.outcome(WriteOutcome::Unknown)
    } else {
        error
    }
}

impl Drop for CallRecord {
    fn drop(&mut self) {
        if self.closed {
            return;
        }
        let running = self.write.as_ref().is_some_and(|state| {
            let mut state = state.lock();
            let running = matches!(*state, WriteProgress::Running);
            if running {
                *state = WriteProgress::Abandoned;
            }
            running
        });
        if !running {
            let gone = CallError::new(FailureCode::Cancelled, "The caller has gone.");
            // The write was sent and no longer runs: it may have been done, and no caller waits for it.
            let asked = {
                let known = self.line.known.lock();
                known.wrote && known.marks.asked.is_some()
            };
            let gone = if asked {
                gone.outcome(WriteOutcome::Unknown)
            } else {
                gone
            };
            drop(self.line.end(Some(&gone)));
            if let (Some(keyed), Ok(runtime)) =
                (self.keyed.take(), tokio::runtime::Handle::try_current())
            {
                runtime.spawn(async move { keyed.end_alone(Some(&gone)).await });
            }
        }
    }
}

impl RecordContext {
    /// Returns the result of an error. The schema of another server's answers has no place for our errors, and some
    /// clients check errors against it too.
    fn result(&self, error: CallError) -> ToolResult {
        let mut result = error.into_result(&self.call_id);
        if self
            .known
            .lock()
            .asked
            .as_ref()
            .is_some_and(RequestedTarget::keeps_errors_in_meta)
        {
            result.move_error_to_meta();
        }
        result
    }

    /// Returns `true` for the error of a write that was made, or may have been. A tool of another server that returns an error in
    /// its own words has run.
    fn may_have_written(&self, error: &CallError) -> bool {
        let has_run = matches!(error.form, ErrorForm::Upstream(_)) && self.known.lock().wrote;
        has_run || error.outcome == Some(WriteOutcome::Unknown)
    }

    /// Ends the call in the log, and reserves its place in the trail. The record is written even if the result is dropped.
    fn end<'a>(&'a self, error: Option<&'a CallError>) -> ClosedRecord<'a> {
        let closed = Instant::now();
        // Whole microseconds: more digits would be noise.
        let milliseconds = (closed - self.opened).as_micros() as f64 / 1000.0;
        let label = error.map(CallError::label);
        if let Some(denial) = error.and_then(CallError::denial) {
            self.known.lock().policy = Some(denial.clone());
        }
        let outcome = self.outcome(error);
        let reason = error.and_then(recorded_reason);
        let reason = reason.as_deref();
        let entry = self.with_about(|about| {
            telemetry::call(&telemetry::LoggedCall {
                call_id: about.call_id,
                agent: about.agent,
                tool: about.tool,
                contract: about.contract,
                outcome: outcome.word(),
                code: label,
                reason,
                milliseconds,
                trace: about.trace,
                detail: error.and_then(|error| error.log.as_deref()),
            });
            self.audit.enter(&AuditEvent::Call(AuditedCall {
                about,
                outcome,
                code: label,
                reason,
                ms: milliseconds,
            }))
        });
        ClosedRecord {
            line: self,
            error,
            outcome,
            entry: Some(entry),
            closed,
        }
    }

    fn count(
        &self,
        error: Option<&CallError>,
        outcome: AuditOutcome,
        unrecorded: bool,
        closed: Instant,
    ) -> Stages {
        let known = self.known.lock();
        let code = match unrecorded && !known.wrote {
            true => Some(FailureCode::Unavailable),
            false => error.map(|error| error.code),
        };
        if let Some(policy) = &known.policy {
            self.metrics.policy_denial(policy.decision.word());
        }
        let stages = self.metrics.call(&MeasuredCall {
            call_id: &self.call_id,
            name: known.asked.as_ref().map(RequestedTarget::name),
            tool: known.asked.as_ref().and_then(RequestedTarget::meter),
            finds: known.asked.as_ref().and_then(RequestedTarget::finds),
            agent: &self.caller.agent,
            unknown_tool: error.is_some_and(CallError::is_unknown_tool),
            failed: error.is_some(),
            invalid: error.and_then(CallError::invalid_arguments),
            code,
            outcome,
            opened: self.opened,
            marks: known.marks,
            closed,
        });
        if let Some(traced) = &self.traced {
            let code = match unrecorded && !known.wrote {
                true => Some(FailureCode::Unavailable.label()),
                false => error.map(CallError::label),
            };
            traced.close(|| self.ended_trace(known.asked.as_ref(), code, stages));
        }
        stages
    }

    fn ended_trace(
        &self,
        asked: Option<&RequestedTarget>,
        code: Option<&'static str>,
        stages: Stages,
    ) -> EndedTrace {
        // The name of a resource is its address.
        let named = asked.filter(|_| self.method != "resources/read");
        EndedTrace {
            method: self.method,
            name: named.map(|asked| asked.name().to_owned()),
            contract: asked
                .and_then(RequestedTarget::meter)
                .map(|meter| meter.contract_version.to_string()),
            agent: self.caller.agent.clone(),
            call_id: self.call_id.clone(),
            transport: self.transport,
            protocol: self.protocol,
            code,
            is_of_upstream: asked.is_some_and(|asked| asked.upstream().is_some()),
            stages,
            ended: SystemTime::now(),
        }
    }

    fn with_about<T>(&self, then: impl FnOnce(CallDetails<'_>) -> T) -> T {
        let known = self.known.lock();
        let asked = known.asked.as_ref();
        then(CallDetails {
            call_id: &self.call_id,
            agent: &self.caller.agent,
            tenant: &self.caller.tenant,
            holder: self.caller.holder().map(|holder| HolderRecord {
                issuer: &holder.issuer,
                subject: &holder.subject,
                client: holder.client.as_deref(),
            }),
            tool: asked.map(RequestedTarget::name),
            asked: known.absent.as_ref().map(|absent| &*absent.name),
            hidden: known.absent.as_ref().map(|absent| absent.is_hidden),
            item: asked.and_then(RequestedTarget::item),
            contract: asked
                .and_then(RequestedTarget::meter)
                .map(|meter| &*meter.contract_version),
            arguments_digest: self.digest.as_deref(),
            clear: (!known.clear.is_empty()).then_some(&known.clear),
            trace: self.trace.as_deref(),
            transport: self.transport,
            protocol: Some(self.protocol),
            plugin: self.ran_on.get().map(|digest| &**digest),
            upstream: asked.and_then(RequestedTarget::upstream),
            policy: known.policy.as_ref().map(|policy| PolicyRecord {
                decision: policy.decision.word(),
                policies: &policy.policies,
            }),
            approval: known.approval.as_deref().map(TakenPlan::record),
        })
    }

    fn outcome(&self, error: Option<&CallError>) -> AuditOutcome {
        let Some(error) = error else {
            return AuditOutcome::Ok;
        };
        let known = self.known.lock();
        match (error.outcome, error.code) {
            (Some(WriteOutcome::Unknown), _) => AuditOutcome::Unknown,
            (_, FailureCode::Cancelled) => AuditOutcome::Cancelled,
            _ if known.ran => AuditOutcome::Failed,
            _ => AuditOutcome::Refused,
        }
    }
}

/// A call that has ended but is not yet counted.
struct ClosedRecord<'a> {
    line: &'a RecordContext,
    error: Option<&'a CallError>,
    outcome: AuditOutcome,
    /// `None` once written.
    entry: Option<Result<Option<TrailEntry<'a>>, telemetry::AuditUnavailable>>,
    closed: Instant,
}

impl ClosedRecord<'_> {
    fn written(
        mut self,
    ) -> (
        Result<Option<AuditReceipt>, telemetry::AuditUnavailable>,
        Stages,
    ) {
        self.write().expect("it is written once")
    }

    fn write(
        &mut self,
    ) -> Option<(
        Result<Option<AuditReceipt>, telemetry::AuditUnavailable>,
        Stages,
    )> {
        let recorded = self
            .entry
            .take()?
            .and_then(|entry| self.line.audit.written(entry));
        let stages = self
            .line
            .count(self.error, self.outcome, recorded.is_err(), self.closed);
        Some((recorded, stages))
    }
}

impl Drop for ClosedRecord<'_> {
    fn drop(&mut self) {
        // No caller waits for the result any more.
        let _ = self.write();
    }
}
