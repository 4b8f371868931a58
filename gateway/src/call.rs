//! The call path: one tool call, top to bottom. Independent of HTTP, JSON-RPC and WebAssembly.

mod approval;
mod arguments;
mod asking;
mod blocks;
mod complete;
mod declared;
pub mod error;
mod heavy;
mod item;
mod keyed;
mod limits;
mod lookup;
mod policy;
mod record;
mod records;
mod refusal;
mod request;
mod result;
mod search;
mod target;
mod versions;

use std::{panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures::FutureExt;

pub use self::arguments::{ParamHeaders, decoded};
pub use self::asking::{CallerInteraction, CallerResponses, CapabilityFallback};
pub use self::complete::complete;
pub use self::declared::{completes, notifies};
pub use self::error::{CallError, ErrorForm, MissingCapability};
use self::heavy::CheckTurn;
pub use self::item::{ItemOutcome, ask_item, has_resource, resource_source};
use self::keyed::KeyedStart;
use self::policy::CallPolicies;
pub use self::policy::{PolicyDecision, PolicyOutcome};
pub use self::record::CallReceipt;
use self::record::CallRecord;
pub(crate) use self::record::TRIAL;
pub use self::request::{CallOutcome, CallRequest, IncompleteCall, TASKS, knows_tasks};
pub use self::result::{CallContent, InputRequired, RECEIPT, ToolResult};
pub use self::search::{SearchDispatch, searched, unknown};
use self::target::ToolCall;
pub use self::target::upstream::abandon_questions;
pub(crate) use self::target::upstream::{call_owner, passed_meta};
pub use crate::catalogue::CatalogueEndpoint;
use crate::{
    catalogue::CatalogueTool, identity::CallerIdentity, serving::ServingGateway,
    snapshot::CatalogueSnapshot,
};

/// Calls a tool for a caller: finds it, checks the arguments and the limits, runs it, and checks its answer.
///
/// The call is recorded however it ends, also if the future is dropped or a stage panics. Errors are part of `CallOutcome`.
pub async fn call_tool(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    request: &CallRequest<'_>,
) -> CallOutcome {
    let mut record = CallRecord::open(gateway, caller, "tools/call", request); // dropped unclosed = "cancelled", recorded all the same
    let stages = AssertUnwindSafe(stages(gateway, caller, request, &mut record))
        .catch_unwind()
        .await;
    let outcome = stages.unwrap_or_else(|panic| Err(record.panicked(&*panic))); // this call failed, and no other
    if let Some(keyed) = record.take_keyed() {
        keyed.end(gateway.cursors(), &outcome).boxed().await;
    }
    record.close(outcome).await
}

/// Checks whether these arguments would reach the adapter of this tool: no adapter is asked, and nothing is recorded.
pub async fn check(
    gateway: &ServingGateway,
    snapshot: &CatalogueSnapshot,
    caller: &CallerIdentity,
    tool: &Arc<CatalogueTool>,
    arguments: &str,
) -> ToolResult {
    let policies = CallPolicies::find(snapshot, caller, tool);
    let turn = CheckTurn::for_arguments(gateway, tool, Some(arguments), Instant::now()).await;
    let bound = turn.and_then(|turn| {
        turn.run(|| {
            arguments::bind(
                gateway.cursors(),
                caller,
                tool,
                Some(arguments),
                CallerInteraction::default(),
                false,
                policies.as_ref(),
            )
        })
    });
    match bound {
        Ok(input) => ToolResult {
            policy: input.policy,
            ..ToolResult::new(
                "The arguments are valid.".to_owned(),
                r#"{"valid":true}"#.to_owned(),
                false,
            )
        },
        Err(error) => error.into_result("none"),
    }
}

async fn stages(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    request: &CallRequest<'_>,
    record: &mut CallRecord,
) -> Result<CallOutcome, CallError> {
    limits::admit(gateway.buckets(), request.charge, caller, record.opened()).await?;
    let tool = lookup::visible(gateway.metrics(), caller, request, record)?; // hidden and unknown cannot differ
    arguments::check_headers(tool, request)?;
    lookup::may_run(tool, request)?;
    let slot = limits::acquire(
        gateway.in_flight(),
        (gateway.buckets(), gateway.quotas()),
        caller,
        // The live tool that runs: its other names take from the same rate.
        tool.shim().map_or(&**tool, |(_, runs)| runs),
        record.opened(),
    )
    .await?;
    let policies = CallPolicies::find(request.snapshot, caller, tool);
    let keep_profile = gateway.config().contracts.impact_days > 0;
    let turn = CheckTurn::for_arguments(gateway, tool, request.arguments, record.opened()).await?;
    let mut input = turn.run(|| {
        arguments::bind(
            gateway.cursors(),
            caller,
            tool,
            request.arguments,
            request.asking,
            keep_profile,
            policies.as_ref(),
        )
    })?;
    if let Some(profile) = &input.profile {
        gateway.call_history().note(tool, &caller.agent, profile);
    }
    let call = ToolCall {
        gateway,
        caller,
        tool: input.tool,
        request,
    };
    if let Some(key) = request
        .idempotency_key
        .filter(|_| is_keyed(request, &input))
    {
        match keyed::begin(&call, tool, &input, key).boxed().await? {
            KeyedStart::Runs(keyed) => record.set_keyed(keyed),
            KeyedStart::Answered(result) => return Ok(CallOutcome::Complete(*result)),
        }
    }
    if request.is_preview || input.tool.tool.approval.is_some() {
        // Boxed: otherwise the future of every call would be larger.
        let held = approval::hold(&call, &mut input, record).boxed();
        let held = held
            .await
            .map_err(|error| versions::convert_error(tool, error));
        if let Some(held) = held? {
            return Ok(versions::convert_preview(tool, held));
        }
    }
    // A write is recorded before it runs.
    if let Err(why) = record.announce(&input).await {
        if let Some(plan) = &input.plan {
            let given_back = approval::give_back(&call, plan, plan.has_asked);
            given_back.boxed().await;
        }
        return Err(why);
    }
    let target = &input.target;
    let shaped = match target.run(&call, slot, record).await {
        Ok(answer) => {
            let (writes, asked_at) = (target.writes(), record.asked_at());
            match answer.shape(&call, writes, asked_at).await {
                Ok(outcome) if tool.shim().is_some() => {
                    Box::pin(versions::convert_outcome(
                        gateway, tool, outcome, writes, asked_at,
                    ))
                    .await
                }
                shaped => shaped,
            }
        }
        Err(error) => Err(error),
    };
    let shaped = match &input.plan {
        Some(plan) => approval::conclude(&call, plan, shaped).boxed().await,
        None => shaped,
    };
    match shaped {
        // The cause may be a changed source.
        Err(error) => {
            let error = Box::pin(call.explain(error)).await;
            Err(versions::convert_error(tool, error))
        }
        shaped => shaped,
    }
}

/// Returns `true` for a call that an idempotency key keeps from being made twice: a write that is not a preview. A call that
/// asked its caller a question was forgotten with the question, so the call with the answer counts as the first.
fn is_keyed(request: &CallRequest<'_>, input: &arguments::CheckedInput<'_>) -> bool {
    input.target.writes() && !request.is_preview
}
