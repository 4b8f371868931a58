//! Writes that a person approves first, and previews of writes. A write that is not approved is planned: its record is read, the
//! plan waits in the state, and the caller repeats the same call once a person has approved it.

mod guards;

use std::{borrow::Cow, sync::Arc};

use serde_json::{Map, Value, json};
use weir_audit::ApprovalRecord;
use weir_contracts::{CollectionShape, output::RecordChecker, shape::ShapeField};
use weir_plugin_host::{AdapterChange, AdapterQuery};
use weir_state::{AddedPlan, PlanRow, PlanScope, PlanStatus, StateError};

use self::guards::{conditions, guards};
use super::{
    CallError, CallOutcome, TRIAL, ToolResult,
    arguments::CheckedInput,
    error::{ErrorForm, WaitingPlan, WriteOutcome},
    record::CallRecord,
    target::{TargetRequest, ToolCall, collection::CollectionRequest},
};
use crate::{
    catalogue::{CollectionTool, shown_time},
    codes::FailureCode,
    cursor::CursorSealError,
    plans::{self, PlanSubject, PlannedWrite, WritePlans},
};

/// The member of `_meta` that requests a preview, and that holds it in the answer.
pub(super) const PLAN: &str = "dev.weir/plan";
/// The code of a preview. It is not an error: the caller asked for the call not to run.
const PLANNED: &str = "planned";
const FULL_RETRY_MS: u32 = 60_000;
/// The verb of an operation, and of a tool of a plugin or another server.
const CALL: &str = "call";

/// A plan that is used up by a call.
pub(super) struct TakenPlan {
    id: String,
    approver: String,
    /// Whether the write requires the record to be unchanged since it was read.
    is_guarded: bool,
    /// The sealed part of the plan, for a call that ends with a question.
    sealed: Option<String>,
    /// Whether an earlier call asked a question.
    pub(super) has_asked: bool,
}

impl TakenPlan {
    /// Returns the plan's part of the audit record.
    pub(super) fn record(&self) -> ApprovalRecord<'_> {
        ApprovalRecord {
            plan: &self.id,
            by: &self.approver,
        }
    }
}

/// Returns the outcome of a write that does not run now, because it is previewed or must be approved first. `None` if it runs;
/// after an approval it runs only if the record is still as the approver saw it.
pub(super) async fn hold(
    call: &ToolCall<'_>,
    input: &mut CheckedInput<'_>,
    record: &mut CallRecord,
) -> Result<Option<CallOutcome>, CallError> {
    if !input.target.writes() {
        return Ok(None);
    }
    if call.request.is_preview {
        let write = plan_write(call, &input.target, record).await?;
        let preview = preview(call, &input.target, write.as_ref(), record);
        return Ok(Some(CallOutcome::Complete(preview)));
    }
    if call.tool.tool.approval.is_none() {
        return Ok(None);
    }
    let Some(planned) = planned_change(&input.target) else {
        return Ok(None);
    };
    if call.request.transport == TRIAL {
        let message = "A person approves each call of this tool, and a trial cannot ask for that: call it as the agent.";
        return Err(CallError::new(FailureCode::ApprovalRequired, message));
    }
    let plans = call.gateway.plans().ok_or_else(|| {
        CallError::new(
            FailureCode::Unavailable,
            "This process keeps no approvals: call the tool at a gateway that serves.",
        )
    })?;
    let (contract, tool) = (call.tool.contract_version(), &*call.tool.name);
    let subject = PlanSubject::new(call.caller, contract, tool, &planned);
    let known = plans.find(&subject).await.map_err(unreachable)?;
    let plan = match known {
        Some(plan) if waits_for_answer(call, &plan) => {
            let message = "The approved call waits for the answer to its question: send that, with its state.";
            return Err(CallError::new(FailureCode::Conflict, message).outcome(WriteOutcome::None));
        }
        Some(plan) if plan.status == PlanStatus::Approved => {
            let (taken, change) = take(call, plans, &plan, &planned).await?;
            drop(planned);
            if let TargetRequest::Collection(target, _) = input.target {
                let request = CollectionRequest::Write(change.into());
                input.target = TargetRequest::Collection(target, request);
            }
            input.plan = Some(taken.into());
            return Ok(None);
        }
        Some(plan) if plan.status == PlanStatus::Rejected => return Err(rejected(&plan)),
        Some(plan) if plan.status == PlanStatus::Pending => plan,
        Some(_) | None => {
            let policies = format!("{:?}", input.policy);
            add(
                call,
                plans,
                &subject,
                (&input.target, &planned),
                &policies,
                record,
            )
            .await?
        }
    };
    Err(required(call, &plan))
}

/// Returns `true` for a plan whose call asked a question, if this call does not bring the state of a question.
fn waits_for_answer(call: &ToolCall<'_>, plan: &PlanRow) -> bool {
    let resumed = call.request.asking.resumed;
    plan.status == PlanStatus::Approved
        && plan.reason.is_some()
        && resumed.is_none_or(|resumed| resumed.state.is_none())
}

/// Returns what a person agrees to. For a tool of a plugin or of another server, this is only its arguments, in any order;
/// answers to questions are not part of them.
fn planned_change<'r>(target: &'r TargetRequest<'_>) -> Option<Cow<'r, AdapterChange>> {
    let arguments = match target {
        TargetRequest::Collection(_, CollectionRequest::Write(change)) => {
            return Some(Cow::Borrowed(change));
        }
        TargetRequest::Collection(..) => return None,
        TargetRequest::Plugin(_, invocation) => &*invocation.arguments,
        TargetRequest::Upstream(_, request) => request.arguments(),
    };
    Some(Cow::Owned(AdapterChange {
        verb: CALL.to_owned(),
        key: None,
        record: None,
        options: Some(format!(r#"{{"arguments":{}}}"#, sorted(arguments))),
    }))
}

/// Returns JSON with sorted members, so that the same arguments give the same text.
pub(super) fn sorted(arguments: &str) -> Cow<'_, str> {
    match serde_json::from_str::<Value>(arguments) {
        Ok(mut arguments) => {
            arguments.sort_all_objects();
            Cow::Owned(arguments.to_string())
        }
        Err(_) => Cow::Borrowed(arguments),
    }
}

/// Takes an approved plan, and returns the change that it allows.
async fn take(
    call: &ToolCall<'_>,
    plans: &WritePlans,
    plan: &PlanRow,
    change: &AdapterChange,
) -> Result<(TakenPlan, AdapterChange), CallError> {
    let taken = plans.take(plan).await.map_err(unreachable)?;
    let used = || {
        let message = format!(
            "The approval of plan {} was used by another call, or has expired: look whether the write was made.",
            plan.id
        );
        CallError::new(FailureCode::Conflict, message).outcome(WriteOutcome::None)
    };
    let taken = taken.ok_or_else(used)?;
    let write = plans::open_write(call.gateway.cursors(), &taken).ok_or_else(|| {
        let message = "The plan cannot be read any more: call again for another one.";
        CallError::new(FailureCode::Conflict, message).outcome(WriteOutcome::None)
    })?;
    let plan = TakenPlan {
        id: taken.id,
        approver: taken.decided_by.unwrap_or_default(),
        is_guarded: !write.guards.is_empty(),
        sealed: plan.sealed.clone(),
        has_asked: plan.reason.is_some(),
    };
    Ok((plan, write.guard(change)))
}

async fn add(
    call: &ToolCall<'_>,
    plans: &WritePlans,
    subject: &PlanSubject,
    (target, change): (&TargetRequest<'_>, &AdapterChange),
    policies: &str,
    record: &CallRecord,
) -> Result<PlanRow, CallError> {
    let write = match target {
        TargetRequest::Collection(target, _) => read_before(call, target, change, record).await?,
        TargetRequest::Plugin(..) | TargetRequest::Upstream(..) => PlannedWrite::new(change),
    };
    let row = plans::make_row(
        call.gateway.cursors(),
        call.caller,
        (call.tool.contract_version(), &call.tool.name),
        subject,
        &write,
        policies,
    );
    let row = row.map_err(|unsealed| match unsealed {
        CursorSealError::TooLong => CallError::new(
            FailureCode::TooLarge,
            "The record with its change is larger than what can wait for a person (32 KiB).",
        ),
        CursorSealError::NoRandomness => {
            CallError::new(FailureCode::Internal, "No random number is available.")
        }
    })?;
    match plans.add(&row).await.map_err(unreachable)? {
        AddedPlan::Added => Ok(row),
        AddedPlan::Known(known) => Ok(*known),
        AddedPlan::Full { scope, max } => Err(too_many(scope, max)),
    }
}

fn too_many(scope: PlanScope, max: i64) -> CallError {
    let whose = match scope {
        PlanScope::Caller => " of yours",
        PlanScope::Tenant => " of your tenant",
        PlanScope::Gateway => "",
    };
    let message = format!(
        "{max} calls{whose} already wait for a person, which is the limit. Call again once a person has approved or rejected one of \
         them, or it has expired."
    );
    CallError::new(FailureCode::RateLimited, message)
        .retry_after_ms(FULL_RETRY_MS)
        .limit("plans that wait for approval".to_owned())
}

/// Returns what a write would change; `None` if only its arguments are known.
async fn plan_write(
    call: &ToolCall<'_>,
    target: &TargetRequest<'_>,
    record: &CallRecord,
) -> Result<Option<PlannedWrite>, CallError> {
    match target {
        TargetRequest::Collection(target, CollectionRequest::Write(change)) => {
            read_before(call, target, change, record).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Reads the record that an update or a delete changes, if the source can bind the write to it.
async fn read_before(
    call: &ToolCall<'_>,
    target: &CollectionTool,
    change: &AdapterChange,
    record: &CallRecord,
) -> Result<PlannedWrite, CallError> {
    let mut write = PlannedWrite::new(change);
    let shape: CollectionShape = serde_json::from_str(&target.source.shape).map_err(|error| {
        CallError::new(
            FailureCode::Internal,
            "The shape of the collection cannot be read.",
        )
        .log(error.to_string())
    })?;
    let changes_one = matches!(&*change.verb, "update" | "delete");
    let (true, Some(key)) = (
        changes_one && shape.capabilities.guarded_write && shape.capabilities.read,
        &write.key,
    ) else {
        return Ok(write);
    };
    let written: Map<String, Value> = write.after.clone().unwrap_or_default();
    let is_read = |field: &&ShapeField| {
        target.columns.contains(&field.key)
            || written.contains_key(&field.key)
            || shape.key.contains(&field.key)
    };
    let columns: Arc<[String]> = shape
        .fields
        .iter()
        .filter(is_read)
        .map(|field| field.key.clone())
        .collect();
    let query = AdapterQuery {
        conditions: conditions(key, write.options.as_ref()),
        order: shape.key.as_slice().into(),
        columns: columns.clone(),
        limit: 2,
        ..AdapterQuery::default()
    };
    let context = call.context(record);
    let page = call
        .gateway
        .host()
        .read(&context, &target.source, &query.into())
        .await?;
    let records = RecordChecker::records_of(&page.records);
    let records =
        records.and_then(|records| serde_json::from_str::<Vec<Map<String, Value>>>(records).ok());
    let mut records = records.ok_or_else(|| {
        CallError::output_mismatch("the record that would be changed cannot be read".to_owned())
    })?;
    let before = match (records.pop(), records.is_empty()) {
        (None, _) => {
            let message = "No record meets these conditions.";
            return Err(CallError::new(FailureCode::NotFound, message));
        }
        (Some(before), true) => before,
        (Some(_), false) => {
            let message = "More than one record meets these conditions.";
            return Err(CallError::new(FailureCode::Ambiguous, message));
        }
    };
    let before: Map<String, Value> = before
        .into_iter()
        .filter(|(name, _)| columns.contains(name))
        .collect();
    write.guards = guards(&shape, &before);
    write.set_before(before);
    // A column outside the tool's answer always counts as changed: otherwise its value could be guessed.
    for name in written.keys() {
        if !target.columns.contains(name) && !write.changed.contains(name) {
            write.changed.push(name.clone());
        }
    }
    Ok(write)
}

/// Returns the answer to a caller that asked for a preview.
fn preview(
    call: &ToolCall<'_>,
    target: &TargetRequest<'_>,
    write: Option<&PlannedWrite>,
    record: &CallRecord,
) -> ToolResult {
    let needs_approval = call.tool.tool.approval.is_some();
    let mut plan = Map::from_iter([("approval".to_owned(), needs_approval.into())]);
    let mut text = "Nothing was done: this is what the call would do.".to_owned();
    if let (Some(write), TargetRequest::Collection(target, _)) = (write, target) {
        // A caller sees only those parts of a record that the tool answers.
        let part = |record: &Option<Map<String, Value>>| -> Value {
            let Some(record) = record else {
                return Value::Null;
            };
            let answered = record
                .iter()
                .filter(|(name, _)| target.columns.contains(name));
            Value::Object(
                answered
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect(),
            )
        };
        plan.insert("verb".to_owned(), write.verb.clone().into());
        plan.insert("before".to_owned(), part(&write.before));
        plan.insert("after".to_owned(), part(&write.after));
        plan.insert("changed".to_owned(), write.changed.clone().into());
        if !write.changed.is_empty() {
            text = format!("{text} It would {} {}.", write.verb, names(&write.changed));
        }
    }
    if needs_approval {
        text.push_str(" A person approves it first.");
    }
    let plan = Value::Object(plan);
    let structured = (!call.tool.target.keeps_errors_in_meta()).then(|| {
        json!({ "code": PLANNED, "call_id": &**record.call_id(), "plan": plan }).to_string()
    });
    ToolResult {
        meta: vec![(PLAN.into(), plan.to_string())],
        ..ToolResult::from_content(super::CallContent::Text(text), structured, false)
    }
}

fn names(columns: &[String]) -> String {
    let names: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// Returns the error of a call that waits for a person.
fn required(call: &ToolCall<'_>, plan: &PlanRow) -> CallError {
    let write = plans::open_write(call.gateway.cursors(), plan);
    let (verb, changed) = write.map_or_else(
        || ("make it".to_owned(), Vec::new()),
        |write| (write.verb, write.changed),
    );
    let what = match changed.is_empty() {
        true if verb == CALL => format!("run `{}`", call.tool.name),
        true => verb,
        false => format!("{verb} {}", names(&changed)),
    };
    let until = shown_time(plan.expires_ms);
    let message = format!(
        "A person must approve this call, which would {what}. It waits as plan {} until {until}. Once it is approved, repeat \
         the same call.",
        plan.id
    );
    let shown = json!({ "id": plan.id, "changed": changed, "expires_ms": plan.expires_ms });
    CallError {
        form: ErrorForm::Planned(Box::new(WaitingPlan {
            shown: shown.to_string(),
        })),
        ..CallError::new(FailureCode::ApprovalRequired, message)
    }
}

fn rejected(plan: &PlanRow) -> CallError {
    let reason = plan.reason.as_deref().filter(|reason| !reason.is_empty());
    let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    CallError {
        reason: Some("approval_rejected".to_owned()),
        ..CallError::new(
            FailureCode::Forbidden,
            format!("A person rejected this call (plan {}){reason}", plan.id),
        )
    }
}

/// Ends the use of a plan: a write that found its record changed makes the plan stale. A call that asked a question first gives
/// it back for the call with the answer, and a call that sent nothing gives it back for the same call.
pub(super) async fn conclude(
    call: &ToolCall<'_>,
    plan: &TakenPlan,
    outcome: Result<CallOutcome, CallError>,
) -> Result<CallOutcome, CallError> {
    let asks = matches!(outcome, Ok(CallOutcome::InputRequired(_)));
    let is_unsent = |outcome: &Result<CallOutcome, CallError>| {
        let Err(error) = outcome else { return false };
        error.reason.as_deref() == Some("account_needed") && error.outcome.is_none()
    };
    let has_moved = |error: &CallError| {
        // A conflict concerns another record, such as one that already has the value.
        plan.is_guarded
            && error.code == FailureCode::NotFound
            && error.outcome != Some(WriteOutcome::Unknown)
    };
    match outcome {
        Err(error) if has_moved(&error) => {
            if let Some(plans) = call.gateway.plans()
                && let Err(error) = plans.set_stale(&plan.id).await
            {
                tracing::warn!(%error, plan = plan.id, "a plan could not be noted as stale");
            }
            let message = format!(
                "The record has changed since plan {} was made, and nothing was written. Read the record; the same call again \
                 makes another plan.",
                plan.id
            );
            let reason = Some("plan_is_stale".to_owned());
            let moved = CallError {
                reason,
                ..CallError::new(FailureCode::Conflict, message)
            };
            Err(moved.outcome(WriteOutcome::None))
        }
        unmade if asks || is_unsent(&unmade) => {
            give_back(call, plan, asks || plan.has_asked).await;
            unmade
        }
        outcome => outcome,
    }
}

/// Gives back the plan of a write that was not made: the same call may take it again.
pub(super) async fn give_back(call: &ToolCall<'_>, plan: &TakenPlan, has_asked: bool) {
    if let (Some(plans), Some(sealed)) = (call.gateway.plans(), &plan.sealed)
        && let Err(error) = plans.give_back(&plan.id, sealed, has_asked).await
    {
        tracing::warn!(%error, plan = plan.id, "a plan could not be given back");
    }
}

fn unreachable(error: StateError) -> CallError {
    CallError::new(
        FailureCode::Unavailable,
        "Approvals cannot be looked up now, so nothing was done.",
    )
    .retry_after_ms(1000)
    .outcome(WriteOutcome::None)
    .log(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::sorted;

    #[test]
    fn the_same_arguments_in_another_order_are_the_same_plan() {
        let one = sorted(r#"{"b":[{"d":1.0,"c":"2"}],"a":null}"#);
        assert_eq!(one, sorted(r#"{"a":null,"b":[{"c":"2","d":1.0}]}"#));
        assert_eq!(one, r#"{"a":null,"b":[{"c":"2","d":1.0}]}"#);
    }
}
