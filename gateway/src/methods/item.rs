//! `prompts/get` and `resources/read`: from the outcome of the call path to the answer.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    CallChannel, McpCall, RequestScope,
    blocks::lower,
    call::{BAD_STATE, lacks},
    meta::{ReceiptMeta, write_meta},
    rounds::{QuestionChannel, QuestionRounds},
};
use crate::{
    call::{CallError, CallReceipt, CallRequest, ErrorForm, ItemOutcome, ask_item, passed_meta},
    catalogue::{CatalogueListing, CatalogueViewer, ItemKind},
    codes::FailureCode,
    wire::{ResultWriter, RpcError, error_answer},
};

pub(super) async fn answer(
    call: &McpCall<'_>,
    scope: &RequestScope,
    kind: ItemKind,
    request: CallRequest<'_>,
    channel: Option<&Arc<CallChannel>>,
) -> Vec<u8> {
    let (snapshot, name) = (request.snapshot, request.tool);
    let (mut outcome, mut proof) = ask_item(&scope.gateway, &scope.caller, kind, &request).await;
    let mut rounds = QuestionRounds::default();
    while let (Ok(ItemOutcome::InputRequired(asked)), false, Some(channel)) =
        (&outcome, call.version.is_modern(), channel)
    {
        match rounds
            .ask(QuestionChannel::Session(channel), asked, request.cancel)
            .await
        {
            Err(error) => outcome = Err(error),
            Ok(responses) => {
                let asked = asked.clone();
                let request = request.resumed(&responses, asked.state.as_deref());
                (outcome, proof) = ask_item(&scope.gateway, &scope.caller, kind, &request).await;
                // A refused request has not used up the answer.
                outcome = outcome.map_err(|error| asked.give_up(error));
            }
        }
    }
    let listing = match call.version.is_modern() {
        true => snapshot
            .catalogue
            .listing(&scope.endpoint, CatalogueViewer::Caller(&scope.caller)),
        false => None,
    };
    match outcome {
        Ok(ItemOutcome::Complete(members)) => {
            proof.receipt = proof.receipt.filter(|_| scope.has_receipts(snapshot));
            complete(call, kind, listing.as_deref(), members, &proof)
        }
        Ok(ItemOutcome::InputRequired(ask)) => call.ask(listing.as_deref(), &ask),
        Err(error) => error_answer(
            Some(&call.id),
            &refused(&error, kind, name, call.version.is_modern(), &proof),
        ),
    }
}

fn complete(
    call: &McpCall<'_>,
    kind: ItemKind,
    listing: Option<&CatalogueListing>,
    mut members: Map<String, Value>,
    proof: &CallReceipt,
) -> Vec<u8> {
    let meta = match members.shift_remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    if let Some(Value::Array(messages)) = members.get_mut("messages") {
        messages
            .iter_mut()
            .filter_map(|message| message.get_mut("content"))
            .for_each(|it| lower(it, call.version));
    }
    let mut result = ResultWriter::new(&call.id, 1024);
    if call.version.is_modern() {
        result.string("resultType", "complete");
    }
    let wanted: &[&'static str] = match kind {
        ItemKind::Prompt => &["description", "messages"],
        ItemKind::Resource | ItemKind::Template => &["contents"],
    };
    for member in wanted {
        if let Some(value) = members.get(*member) {
            result.json(member, &value.to_string());
        }
    }
    if call.version.is_modern() && kind != ItemKind::Prompt {
        // The answer of another server to one agent must not be reused for other agents or later requests.
        result.json("ttlMs", "0").string("cacheScope", "private");
    }
    let theirs: Vec<_> = passed_meta(meta)
        .map(|(name, value)| (name, value.to_string()))
        .collect();
    let proved = ReceiptMeta {
        receipt: proof.receipt.as_ref(),
        unrecorded: false,
    };
    write_meta(
        &mut result,
        listing,
        proved,
        theirs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    result.finish()
}

/// Returns a protocol error, with the details that a call's result would have.
fn refused(
    error: &CallError,
    kind: ItemKind,
    name: &str,
    modern: bool,
    proof: &CallReceipt,
) -> RpcError {
    match (&error.form, kind) {
        (ErrorForm::UnknownTool, ItemKind::Prompt) => RpcError::unknown_prompt(name),
        (ErrorForm::UnknownTool, _) => RpcError::unknown_resource(name, modern),
        (ErrorForm::BadState, _) => RpcError::invalid_params(BAD_STATE),
        (ErrorForm::MissingCapability(needed), _) => lacks(*needed),
        _ => failed(error, Some(proof)),
    }
}

pub(super) fn failed(error: &CallError, proof: Option<&CallReceipt>) -> RpcError {
    let mut data = json!({ "code": error.code.label() });
    if let Some(proof) = proof {
        data["call_id"] = (*proof.call_id).into();
    }
    if let Some(field) = &error.field {
        data["field"] = field.as_str().into();
    }
    if let Some(reason) = &error.reason {
        data["reason"] = reason.as_str().into();
    }
    if let Some(wait) = error.retry_after_ms {
        data["retry_after_ms"] = wait.into();
    }
    // Wrong arguments are a protocol error here.
    let message = error.message.clone();
    let refused = match error.code == FailureCode::InvalidArguments {
        true => RpcError::invalid_params(message),
        false => RpcError::internal(message),
    };
    RpcError {
        data: Some(data.to_string()),
        ..refused
    }
}
