//! Calls that continue after their request was answered (`io.modelcontextprotocol/tasks`). A call whose tool allows it, and
//! whose caller supports tasks, is answered with a task if it takes longer than a moment; the caller then polls the task.

use std::{borrow::Cow, pin::pin, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use weir_plugin_host::CallEvents;
use weir_state::StateError;

use super::{
    CallChannel, McpCall, McpRequest, RequestScope,
    call::{McpAnswer, lacks},
    meta::write_server,
};
use crate::{
    call::{MissingCapability, knows_tasks},
    catalogue::{CatalogueViewer, TaskSupport},
    node_messages::{NodeMessage, TaskAct, TaskRequest},
    serving::ServingGateway,
    snapshot::CatalogueSnapshot,
    tasks::{CallTask, KEPT_FOR, LOST, TaskPlace, TaskReport, TaskSnapshot, TaskStage},
    wire::{ResultWriter, RpcError, RpcMethod, raw},
};

/// The time within which a call is answered as if there were no tasks.
const AT_ONCE: Duration = Duration::from_millis(250);
/// How often a caller should poll.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Returns a task for this call, if it may become one. `channel` gets the messages of the call until then.
pub(super) fn opened(
    call: &McpCall<'_>,
    scope: &RequestScope,
    snapshot: &CatalogueSnapshot,
    tool: &str,
    channel: Option<&Arc<CallChannel>>,
) -> Option<Arc<CallTask>> {
    if !call.version.is_modern() || !knows_tasks(call.params.capabilities.as_deref()) {
        return None;
    }
    let tool = snapshot.catalogue.tool(
        &scope.endpoint,
        tool,
        CatalogueViewer::Caller(&scope.caller),
    )?;
    let events = || channel.map(|channel| channel.clone() as Arc<dyn CallEvents>);
    let allows = tool.tasks != TaskSupport::None;
    let (named, writes) = ((&tool.contract, &tool.name), tool.tool.writes());
    allows
        .then(|| {
            scope
                .gateway
                .tasks()
                .open(&scope.caller, &scope.endpoint, named, writes, events())
        })
        .flatten()
}

/// Answers a call with its result, or with the task that it has become.
pub(super) async fn run(
    call: &McpCall<'_>,
    scope: &RequestScope,
    snapshot: &Arc<CatalogueSnapshot>,
    task: Arc<CallTask>,
    cancel: &CancellationToken,
) -> McpAnswer {
    let tasks = scope.gateway.tasks();
    let gone = task.token().drop_guard_ref();
    let (tell, mut receiver) = oneshot::channel();
    let (running, task_scope, snapshot) =
        (call.clone().into_owned(), scope.clone(), snapshot.clone());
    tasks.run(&task, {
        let task = task.clone();
        async move {
            let answer = running.as_task(&task_scope, &snapshot, &task).await;
            match task.answers_at_once() {
                true => drop(tell.send(answer)), // unless the caller has gone
                false => task_scope.gateway.tasks().end(&task, stage(&task, &answer)),
            }
        }
    });
    let mut moment = pin!(tokio::time::sleep(AT_ONCE));
    let (mut is_over, mut is_cancelled) = (false, false);
    let answer = loop {
        tokio::select! {
            biased;
            answer = &mut receiver => break answer,
            () = cancel.cancelled(), if !is_cancelled => {
                is_cancelled = true;
                task.cancel();
            }
            () = &mut moment, if !is_over && !is_cancelled => {
                is_over = true;
                if tasks.keep(&task) {
                    gone.disarm();
                    return created(call, scope, &task).unwrap_or_else(|error| McpAnswer::refused(&call.id, &error));
                }
            }
        }
    };
    gone.disarm();
    answer.unwrap_or_else(|_| {
        McpAnswer::refused(
            &call.id,
            &RpcError::internal("the call ended without an answer"),
        )
    })
}

/// Returns the end of a task: the answer that its request would have received.
fn stage(task: &CallTask, answer: &McpAnswer) -> TaskStage {
    // A plugin may use this name for its own error, without a cancellation.
    if answer.was_cancelled && task.token().is_cancelled() {
        return TaskStage::Cancelled;
    }
    #[derive(Deserialize)]
    struct TaskAnswerBody<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        #[serde(borrow)]
        error: Option<&'a RawValue>,
    }
    let body: Option<TaskAnswerBody<'_>> = serde_json::from_slice(&answer.body).ok();
    match body.map(|body| (body.result, body.error)) {
        Some((Some(result), _)) => TaskStage::Completed(result.get().into()),
        Some((None, Some(error))) => TaskStage::Failed(error.get().into()),
        _ => TaskStage::Failed(
            r#"{"code":-32603,"message":"the call ended without an answer"}"#.into(),
        ),
    }
}

fn created(
    call: &McpCall<'_>,
    scope: &RequestScope,
    task: &CallTask,
) -> Result<McpAnswer, RpcError> {
    let listing = scope.listing()?;
    let mut result = ResultWriter::new(&call.id, 384);
    result.string("resultType", "task");
    write(&mut result, task.id(), &task.seen());
    write_server(&mut result, &listing.server);
    Ok(result.finish().into())
}

pub(super) fn get(scope: &RequestScope, request: &McpRequest<'_>) -> Result<Vec<u8>, RpcError> {
    let task = find(scope, request)?;
    let seen = task.tell();
    let mut result = ResultWriter::new(&request.id, 512);
    result.string("resultType", "complete");
    write_detailed(&mut result, task.id(), &seen);
    write_server(&mut result, &scope.listing()?.server);
    Ok(result.finish())
}

pub(super) fn update(scope: &RequestScope, request: &McpRequest<'_>) -> Result<Vec<u8>, RpcError> {
    let task = find(scope, request)?;
    let given = request.params.input_responses.map(RawValue::get);
    task.answer(responses(given)?);
    acknowledged(scope, request)
}

fn responses(given: Option<&str>) -> Result<Map<String, Value>, RpcError> {
    let responses = given.and_then(|given| serde_json::from_str(given).ok());
    responses.ok_or_else(|| RpcError::invalid_params("`params.inputResponses` must be an object"))
}

pub(super) fn cancel(scope: &RequestScope, request: &McpRequest<'_>) -> Result<Vec<u8>, RpcError> {
    find(scope, request)?.cancel();
    acknowledged(scope, request)
}

fn acknowledged(scope: &RequestScope, request: &McpRequest<'_>) -> Result<Vec<u8>, RpcError> {
    let mut result = ResultWriter::new(&request.id, 128);
    result.string("resultType", "complete");
    write_server(&mut result, &scope.listing()?.server);
    Ok(result.finish())
}

/// Refuses a request about tasks if its client does not declare support for them.
pub(super) fn check(request: &McpRequest<'_>) -> Result<(), RpcError> {
    match knows_tasks(request.params.meta.client_capabilities.map(RawValue::get)) {
        true => Ok(()),
        false => Err(lacks(MissingCapability::Tasks)),
    }
}

fn find(scope: &RequestScope, request: &McpRequest<'_>) -> Result<Arc<CallTask>, RpcError> {
    check(request)?;
    scope.task(&named(request)?).ok_or_else(unknown)
}

fn named<'a>(request: &McpRequest<'a>) -> Result<Cow<'a, str>, RpcError> {
    let id = request.params.task_id.and_then(raw::string);
    id.ok_or_else(|| RpcError::invalid_params("`params.taskId` must be a string"))
}

fn unknown() -> RpcError {
    RpcError::invalid_params(format!(
        "there is no such task here: a task is kept for {} min, by the process that began it",
        KEPT_FOR.as_secs() / 60
    ))
}

/// Returns `true` if another node must be asked for the task.
pub(super) fn is_elsewhere(
    scope: &RequestScope,
    request: &McpRequest<'_>,
) -> Result<bool, RpcError> {
    check(request)?;
    Ok(place(scope, &named(request)?).is_some())
}

/// Returns the place of a task of another node.
pub(super) fn place(scope: &RequestScope, id: &str) -> Option<TaskPlace> {
    scope.gateway.node_messages()?;
    let tasks = scope.gateway.tasks();
    tasks.elsewhere(&scope.caller, &scope.endpoint, id)
}

/// Answers a request about a task of another node: `tasks/get`, `tasks/update` or `tasks/cancel`.
pub(super) async fn answer_elsewhere(
    call: &McpCall<'_>,
    scope: &RequestScope,
    id: &str,
) -> McpAnswer {
    match ask_elsewhere(call, scope, id).await {
        Ok(answer) => answer.into(),
        Err(error) => McpAnswer::refused(&call.id, &error),
    }
}

async fn ask_elsewhere(
    call: &McpCall<'_>,
    scope: &RequestScope,
    id: &str,
) -> Result<Vec<u8>, RpcError> {
    let act = match call.method {
        RpcMethod::UpdateTask => Some(TaskAct::Answer(responses(
            call.params.responses.as_deref(),
        )?)),
        RpcMethod::CancelTask => Some(TaskAct::Cancel),
        _ => None,
    };
    let place = place(scope, id).ok_or_else(unknown)?;
    let LookedTask::Found(seen) = look_elsewhere(scope, &place).await? else {
        return Err(unknown());
    };
    let mut result = ResultWriter::new(&call.id, 512);
    result.string("resultType", "complete");
    match act {
        None => {
            write_detailed(&mut result, id, &seen);
            note_delivered(scope, &place, &seen);
        }
        Some(act) => {
            if let AskedNode::Forgotten = ask_node(scope, &place, act).await? {
                return Err(unknown());
            }
        }
    }
    write_server(&mut result, &scope.listing()?.server);
    Ok(result.finish())
}

/// The result of a look at a task of another node.
pub(super) enum LookedTask {
    Found(Box<TaskSnapshot>),
    /// The caller may currently not see its tool.
    Hidden,
    /// Its node no longer keeps it.
    Forgotten,
}

/// Looks at a task of another node. Whether the caller may see the tool is decided here, before anything happens there.
pub(super) async fn look_elsewhere(
    scope: &RequestScope,
    place: &TaskPlace,
) -> Result<LookedTask, RpcError> {
    Ok(match ask_node(scope, place, TaskAct::Look).await? {
        AskedNode::Reported(report) if !scope.may_see(&report.contract, &report.tool) => {
            LookedTask::Hidden
        }
        AskedNode::Reported(report) => LookedTask::Found(report.into_seen().into()),
        AskedNode::Forgotten => LookedTask::Forgotten,
        AskedNode::Gone => LookedTask::Found(TaskSnapshot::lost(place).into()),
    })
}

/// Notifies the node of a task that its caller is sent the end of the task, so that the answer may make room for others.
pub(super) fn note_delivered(scope: &RequestScope, place: &TaskPlace, seen: &TaskSnapshot) {
    if let Some(messages) = scope.gateway.node_messages()
        && seen.stage.has_ended()
        && seen.entered != LOST
    {
        let (task, entered) = (place.number, seen.entered);
        messages.send(
            Some(&place.node),
            &NodeMessage::TaskDelivered { task, entered },
        );
    }
}

/// The answer of the node that has a task.
enum AskedNode {
    Reported(Box<TaskReport>),
    /// It keeps no such task.
    Forgotten,
    /// The node no longer exists.
    Gone,
}

async fn ask_node(
    scope: &RequestScope,
    place: &TaskPlace,
    act: TaskAct,
) -> Result<AskedNode, RpcError> {
    let away = |_: StateError| {
        RpcError::internal("the node that runs the task cannot be reached now: ask again")
    };
    let messages = scope.gateway.node_messages().ok_or_else(unknown)?;
    let _turn = messages.turn().await;
    if !messages.is_live(&place.node).await.map_err(away)? {
        return Ok(AskedNode::Gone);
    }
    let task = place.number;
    match messages.ask(&place.node, TaskRequest { task, act }).await {
        Ok(Some(report)) => Ok(AskedNode::Reported(report)),
        Ok(None) => Ok(AskedNode::Forgotten),
        Err(error) => match messages.is_live(&place.node).await {
            Ok(false) => Ok(AskedNode::Gone),
            _ => Err(away(error)),
        },
    }
}

/// Carries out another node's request about a task of this node, and reports to it.
pub fn report_task(gateway: &ServingGateway, to: &str, question: u64, request: TaskRequest) {
    let Some(messages) = gateway.node_messages() else {
        return;
    };
    let task = gateway.tasks().with_number(request.task);
    if let Some(task) = &task {
        match request.act {
            TaskAct::Look => {}
            TaskAct::Answer(answers) => task.answer(answers),
            TaskAct::Cancel => task.cancel(),
        }
    }
    let report = task.map(|task| Box::new(TaskReport::new(&task)));
    messages.send(Some(to), &NodeMessage::TaskReported { question, report });
}

/// Writes the notification of the task's state for a listening client, as `tasks/get` would return it. `meta` is JSON.
pub(super) fn notification(id: &str, seen: &TaskSnapshot, meta: &str) -> Vec<u8> {
    let mut params = ResultWriter::notification("notifications/tasks");
    write_detailed(&mut params, id, seen);
    params.json("_meta", meta);
    params.finish()
}

/// Writes the members of a task with its questions, or its result.
fn write_detailed(result: &mut ResultWriter, id: &str, seen: &TaskSnapshot) {
    write(result, id, seen);
    match &seen.stage {
        TaskStage::InputRequired(questions) => {
            result.json(
                "inputRequests",
                &serde_json::to_string(&questions.open).expect("a JSON object"),
            );
        }
        TaskStage::Completed(answer) => drop(result.json("result", answer)),
        TaskStage::Failed(error) => drop(result.json("error", error)),
        TaskStage::Open | TaskStage::AnsweredAtOnce | TaskStage::Working | TaskStage::Cancelled => {
        }
    }
}

/// Writes the members of a task.
fn write(result: &mut ResultWriter, id: &str, seen: &TaskSnapshot) {
    let status = match seen.stage {
        TaskStage::Open | TaskStage::AnsweredAtOnce | TaskStage::Working => "working",
        TaskStage::InputRequired(_) => "input_required",
        TaskStage::Completed(_) => "completed",
        TaskStage::Failed(_) => "failed",
        TaskStage::Cancelled => "cancelled",
    };
    result.string("taskId", id).string("status", status);
    if let Some(message) = &seen.message {
        result.string("statusMessage", message);
    }
    result
        .string("createdAt", &format!("{:.3}", seen.created))
        .string("lastUpdatedAt", &format!("{:.3}", seen.updated))
        .json("ttlMs", &KEPT_FOR.as_millis().to_string())
        .json("pollIntervalMs", &LOOK_EVERY.as_millis().to_string());
}
