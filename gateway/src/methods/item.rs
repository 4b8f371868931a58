//! `prompts/get` and `resources/read`: from the outcome of the call path to the answer.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{
    CallChannel, RequestScope,
    blocks::lower,
    call::{BAD_STATE, Call, lacks},
    list,
    rounds::{Asker, Rounds},
};
use crate::{
    call::{Asking, CallError, CallRequest, ErrorForm, ItemOutcome, Proof, RECEIPT, Resumed, ask_item},
    catalogue::{ItemKind, Listing},
    wire::{ResultWriter, RpcError, error_answer, write_string},
};

pub(super) async fn answer(
    call: &Call<'_>,
    scope: &RequestScope,
    kind: ItemKind,
    request: CallRequest<'_>,
    channel: Option<&Arc<CallChannel>>,
) -> Vec<u8> {
    let (snapshot, name) = (request.snapshot, request.tool);
    let (mut outcome, mut proof) = ask_item(&scope.gateway, &scope.caller, kind, &request).await;
    let mut rounds = Rounds::default();
    while let (Ok(ItemOutcome::InputRequired(asked)), false, Some(channel)) =
        (&outcome, call.version.is_modern(), channel)
    {
        match rounds.ask(Asker::Session(channel), asked, request.cancel).await {
            Err(error) => outcome = Err(error),
            Ok(responses) => {
                let state = asked.state.as_deref();
                let resumed = Some(Resumed { responses: Some(&responses), state });
                let request = CallRequest { asking: Asking { resumed, ..request.asking }, ..request.clone() };
                (outcome, proof) = ask_item(&scope.gateway, &scope.caller, kind, &request).await;
            }
        }
    }
    let listing = match call.version.is_modern() {
        true => snapshot.catalogue.listing(&scope.endpoint, scope.caller.access()),
        false => None,
    };
    match outcome {
        Ok(ItemOutcome::Complete(members)) => complete(call, kind, listing.as_deref(), members, &proof),
        Ok(ItemOutcome::InputRequired(ask)) => call.ask(listing.as_deref(), &ask),
        Err(error) => error_answer(Some(&call.id), &refused(&error, kind, name, call.version.is_modern(), &proof)),
    }
}

fn complete(
    call: &Call<'_>,
    kind: ItemKind,
    listing: Option<&Listing>,
    mut members: Map<String, Value>,
    proof: &Proof,
) -> Vec<u8> {
    let meta = match members.shift_remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    if let Some(Value::Array(messages)) = members.get_mut("messages") {
        messages.iter_mut().filter_map(|message| message.get_mut("content")).for_each(|it| lower(it, call.version));
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
        // The answer of another server to one agent is not for others, nor for later.
        result.json("ttlMs", "0").string("cacheScope", "private");
    }
    write_meta(&mut result, listing, meta, proof);
    result.finish()
}

fn write_meta(result: &mut ResultWriter, listing: Option<&Listing>, theirs: Map<String, Value>, proof: &Proof) {
    let theirs: Vec<_> = crate::call::theirs(theirs).collect();
    if theirs.is_empty() && proof.receipt.is_none() && listing.is_none() {
        return;
    }
    let meta = result.member("_meta");
    meta.push(b'{');
    if let Some(receipt) = &proof.receipt {
        meta.extend_from_slice(format!("\"{RECEIPT}\":\"{receipt}\",").as_bytes());
    }
    for (name, value) in theirs {
        write_string(meta, &name);
        meta.push(b':');
        meta.extend_from_slice(value.to_string().as_bytes());
        meta.push(b',');
    }
    match listing {
        Some(listing) => list::write_server_member(meta, &listing.server),
        None => drop(meta.pop()),
    }
    meta.push(b'}');
}

/// Returns an error of the protocol, with what a call's result would say about it.
fn refused(error: &CallError, kind: ItemKind, name: &str, modern: bool, proof: &Proof) -> RpcError {
    match (&error.form, kind) {
        (ErrorForm::UnknownTool, ItemKind::Prompt) => RpcError::unknown_prompt(name),
        (ErrorForm::UnknownTool, _) => RpcError::unknown_resource(name, modern),
        (ErrorForm::BadState, _) => RpcError::invalid_params(BAD_STATE),
        (ErrorForm::MissingCapability(needed), _) => lacks(*needed),
        _ => failed(error, Some(proof)),
    }
}

pub(super) fn failed(error: &CallError, proof: Option<&Proof>) -> RpcError {
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
    RpcError { data: Some(data.to_string()), ..RpcError::of_call(error.code, error.message.clone()) }
}
