//! Suggests values for an argument of a prompt or of a template, as its server does.

use std::{sync::Arc, time::Instant};

use serde_json::{Map, Value, json, value::RawValue};
use weir_schema::json;
use weir_upstream::UpstreamOperation;

use super::{
    CallError, CallRequest, ItemOutcome, asking,
    declared::completes,
    limits,
    target::{
        item::ItemCall,
        plugin,
        upstream::{self, raw},
    },
};
use crate::{
    catalogue::{CatalogueItem, CatalogueListing, CatalogueViewer, ItemTarget},
    codes::FailureCode,
    identity::CallerIdentity,
    serving::ServingGateway,
    telemetry::traces::not_sampled,
};

/// The bounds on one answer, as set by the protocol.
const VALUES_MAX: usize = 100;
const VALUE_MAX_CHARS: usize = 4_096;

/// Returns the `completion` of the answer; `None` if the maker of the item suggests nothing. `reference`, `argument` and
/// `context` are JSON objects of the caller.
pub async fn complete(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    request: &CallRequest<'_>,
    reference: &str,
    argument: &str,
    context: Option<&str>,
) -> Result<Option<Value>, CallError> {
    let now = Instant::now();
    limits::admit(gateway.buckets(), request.charge, caller, now).await?;
    let listing = request
        .snapshot
        .catalogue
        .listing(request.endpoint, CatalogueViewer::Caller(caller));
    let listing = listing.ok_or_else(CallError::unknown)?;
    let (item, reference) = referred(&listing, &object(reference, "ref")?)?;
    let argument = checked_argument(&object(argument, "argument")?)?;
    let context = context
        .map(|context| checked_context(&object(context, "context")?))
        .transpose()?;
    if !completes(gateway, &item.source) {
        return Ok(None);
    }
    let asked = UpstreamOperation::Completion {
        reference,
        argument,
        context,
    };
    let traced = gateway.traces().and_then(|_| request.trace_context());
    let call = ItemCall {
        gateway,
        caller,
        request,
        call_id: "none".into(),
        asked_at: now,
        // Completions are not traced.
        carried: traced.map(|trace| not_sampled(&trace.parent, trace.state)),
        ran_on: Arc::default(),
    };
    let slot = || limits::enter(gateway.in_flight());
    match &item.source.target {
        ItemTarget::Collection => Ok(None),
        ItemTarget::Plugin(plugin) => {
            // A completion asks nothing, so that no question can belong to it.
            let bound = asking::bound_to(caller, "completion/complete", 0, &plugin.definitions, "");
            match plugin::ask_item(&call, plugin, &asked, &bound, slot()?).await? {
                ItemOutcome::Complete(members) => Ok(Some(suggested(&members))),
                ItemOutcome::InputRequired(_) => Ok(Some(json!({ "values": [] }))),
            }
        }
        ItemTarget::Upstream(server) => {
            match upstream::complete(&call, server, asked, slot()?).await {
                Ok(members) => Ok(Some(suggested(&members))),
                Err(error) if error.code == FailureCode::SourceChanged => Ok(None),
                Err(error) => Err(error),
            }
        }
    }
}

fn wrong(what: String) -> CallError {
    CallError::new(FailureCode::InvalidArguments, what)
}

fn object(text: &str, member: &str) -> Result<Map<String, Value>, CallError> {
    match json::read(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(wrong(format!("`params.{member}` must be an object"))),
        Err(error) => Err(wrong(format!("`params.{member}`: {}", error.placed()))),
    }
}

/// Returns the item, and the reference that is sent to its server.
fn referred(
    listing: &CatalogueListing,
    reference: &Map<String, Value>,
) -> Result<(Arc<CatalogueItem>, Box<RawValue>), CallError> {
    let text = |name: &str| {
        let text = reference.get(name).and_then(Value::as_str);
        text.ok_or_else(|| wrong(format!("`params.ref.{name}` must be a string")))
    };
    let kind = text("type")?;
    let (item, member) = match kind {
        "ref/prompt" => (listing.prompts.find(text("name")?), "name"),
        "ref/resource" => {
            let uri = text("uri")?;
            (
                listing
                    .templates
                    .find(uri)
                    .or_else(|| listing.resources.find(uri)),
                "uri",
            )
        }
        _ => {
            return Err(wrong(
                "`params.ref.type` is neither `ref/prompt` nor `ref/resource`".to_owned(),
            ));
        }
    };
    let item = item.ok_or_else(CallError::unknown)?;
    Ok((
        item.clone(),
        raw(&json!({ "type": kind, member: &*item.own }))?,
    ))
}

fn checked_argument(argument: &Map<String, Value>) -> Result<Box<RawValue>, CallError> {
    let text = |name: &str| match argument.get(name).and_then(Value::as_str) {
        Some(text) => Ok(text),
        None => Err(wrong(format!("`params.argument.{name}` must be a string"))),
    };
    raw(&json!({ "name": text("name")?, "value": text("value")? }))
}

fn checked_context(context: &Map<String, Value>) -> Result<Box<RawValue>, CallError> {
    let arguments = context
        .get("arguments")
        .cloned()
        .unwrap_or_else(|| json!({}));
    match arguments.as_object() {
        Some(texts) if texts.values().all(Value::is_string) => {
            raw(&json!({ "arguments": arguments }))
        }
        _ => Err(wrong(
            "`params.context.arguments` must be an object of strings".to_owned(),
        )),
    }
}

/// Returns the part of the answer that is passed on.
fn suggested(members: &Map<String, Value>) -> Value {
    let completion = members.get("completion").cloned().unwrap_or_default();
    let all = completion["values"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is_short = |value: &&str| value.chars().count() <= VALUE_MAX_CHARS;
    let values: Vec<&str> = all
        .iter()
        .filter_map(Value::as_str)
        .filter(is_short)
        .take(VALUES_MAX)
        .collect();
    let has_more = completion["hasMore"].as_bool().unwrap_or(false) || values.len() < all.len();
    let mut suggested = json!({ "values": values, "hasMore": has_more });
    if let Some(total) = completion["total"].as_u64() {
        suggested["total"] = total.into();
    }
    suggested
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_passed_on_than_the_protocol_has() {
        let many: Vec<String> = (0..300).map(|n| n.to_string()).collect();
        let members = json!({ "completion": { "values": many, "total": 300, "hasMore": false } });
        let suggested = suggested(members.as_object().expect("an object"));
        assert_eq!(
            suggested["values"].as_array().map(Vec::len),
            Some(VALUES_MAX)
        );
        assert_eq!(
            (&suggested["hasMore"], &suggested["total"]),
            (&json!(true), &json!(300))
        );
        let rubbish = json!({ "completion": { "values": [1, null, "a"] } });
        assert_eq!(
            super::suggested(rubbish.as_object().expect("an object"))["values"],
            json!(["a"])
        );
    }
}
