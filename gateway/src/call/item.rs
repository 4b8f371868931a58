//! Requests for a prompt or a resource: they pass the same stages as a tool call, but change nothing.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use serde_json::{Map, Value};
use weir_contracts::{contract::PromptArgument, name, uri};
use weir_text::shorten;
use weir_upstream::UpstreamOperation;

use super::{
    CallError, CallRequest, InputRequired, asking, blocks, limits,
    record::{CallReceipt, CallRecord},
    records,
    refusal::AbsentName,
    target::{item::ItemCall, plugin, upstream},
};
use crate::{
    catalogue::{
        CatalogueItem, CatalogueListing, CatalogueViewer, ItemKind, ItemSource, ItemTarget,
        LinkedPage,
    },
    codes::FailureCode,
    cursor::CursorScope,
    identity::CallerIdentity,
    serving::ServingGateway,
};

/// The most messages of one prompt, and contents of one resource.
const PARTS_MAX: usize = 1_000;
/// The time limit for fetching the list of a server.
const LOOK_MAX: Duration = Duration::from_secs(3);
/// The mark in the audit trail for a resource that is on no list: the trail holds the contract and the digest of the
/// URI.
const UNLISTED: &str = "…";

/// The outcome of a request for an item.
pub enum ItemOutcome {
    Complete(Map<String, Value>),
    /// The server asks its caller a question first (2026-07-28).
    InputRequired(InputRequired),
}

/// Gets a prompt (`request.tool` is its name) or reads a resource (its URI).
pub async fn ask_item(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    kind: ItemKind,
    request: &CallRequest<'_>,
) -> (Result<ItemOutcome, CallError>, CallReceipt) {
    if let Some((lookup, key)) = record_of(caller, kind, request) {
        return records::read(gateway, caller, request, &lookup, &key).await;
    }
    let mut record = CallRecord::open(gateway, caller, method(kind), request);
    let stages = AssertUnwindSafe(stages(gateway, caller, kind, request, &mut record))
        .catch_unwind()
        .await;
    let outcome = stages.unwrap_or_else(|panic| Err(record.panicked(&*panic)));
    record.close_item(outcome).await
}

async fn stages(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    kind: ItemKind,
    request: &CallRequest<'_>,
    record: &mut CallRecord,
) -> Result<ItemOutcome, CallError> {
    limits::admit(gateway.buckets(), request.charge, caller, record.opened()).await?;
    let found = visible(gateway, caller, kind, request, record).await?;
    let source = &found.source;
    let slot = limits::acquire_item(
        gateway.in_flight(),
        (gateway.buckets(), gateway.quotas()),
        caller,
        source.meter(kind),
        record.opened(),
    )
    .await?;
    let (asked, bound) = found.asked(caller, request)?;
    record.asks();
    let call = ItemCall {
        gateway,
        caller,
        request,
        call_id: record.call_id().clone(),
        asked_at: record.asked_at(),
        carried: record.carried().cloned(),
        ran_on: record.ran_on().clone(),
    };
    let outcome = match &source.target {
        ItemTarget::Collection => return Err(CallError::unknown()),
        ItemTarget::Plugin(plugin) => {
            let answer = plugin::ask_item(&call, plugin, &asked, &bound, slot).await;
            record.answered();
            answer?
        }
        ItemTarget::Upstream(server) => {
            let request = upstream::bind_item(&call, server, asked, &bound)?;
            let answer = upstream::run_item(&call, &request, slot).await;
            record.answered();
            upstream::shape_item(&call, &bound, &answer?)?
        }
    };
    let mut members = match outcome {
        ItemOutcome::Complete(members) => members,
        ItemOutcome::InputRequired(asked) => return Ok(ItemOutcome::InputRequired(asked)),
    };
    checked(kind, &members)?;
    if !source.target.publishes_own_uris() {
        uri::publish_uris(&source.contract, &mut members);
    }
    Ok(ItemOutcome::Complete(members))
}

fn method(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Prompt => "prompts/get",
        ItemKind::Resource | ItemKind::Template => "resources/read",
    }
}

/// Checks the members that the method requires. A resource without contents is invalid.
fn checked(kind: ItemKind, members: &Map<String, Value>) -> Result<(), CallError> {
    match kind {
        ItemKind::Prompt => check_messages(members).map_err(CallError::output_mismatch),
        ItemKind::Resource | ItemKind::Template => match members.get("contents") {
            Some(Value::Array(contents)) if contents.is_empty() => Err(CallError::unknown()),
            contents => check_contents(contents).map_err(CallError::output_mismatch),
        },
    }
}

/// The lookup behind the URI of a record, and the key.
fn record_of(
    caller: &CallerIdentity,
    kind: ItemKind,
    request: &CallRequest<'_>,
) -> Option<(Arc<CatalogueItem>, String)> {
    if kind == ItemKind::Prompt || !request.tool.starts_with("weir://") {
        return None;
    }
    let listing = request
        .snapshot
        .catalogue
        .listing(request.endpoint, CatalogueViewer::Caller(caller))?;
    let mut templates = listing
        .templates
        .entries()
        .iter()
        .filter(|template| template.lookup.is_some());
    templates.find_map(|template| {
        Some((
            template.clone(),
            uri::record_key(&template.key, request.tool)?,
        ))
    })
}

/// The item that the caller may ask for, and its source.
struct ItemMatch {
    source: Arc<ItemSource>,
    /// A prompt that is listed.
    prompt: Option<Arc<CatalogueItem>>,
    /// The key of the item at its maker.
    own: Box<str>,
}

/// Finds an item. Hidden and unknown ones get the same answer.
async fn visible(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    kind: ItemKind,
    request: &CallRequest<'_>,
    record: &mut CallRecord,
) -> Result<ItemMatch, CallError> {
    let listing = request
        .snapshot
        .catalogue
        .listing(request.endpoint, CatalogueViewer::Caller(caller));
    let listing = listing.ok_or_else(CallError::unknown)?;
    if kind == ItemKind::Prompt {
        let Some(prompt) = listing.prompts.find(request.tool) else {
            let everything = request
                .snapshot
                .catalogue
                .listing(request.endpoint, CatalogueViewer::EVERYTHING);
            let is_hidden = everything.is_some_and(|all| all.prompts.find(request.tool).is_some());
            record.absent(AbsentName::new(request.tool, is_hidden));
            return Err(CallError::unknown());
        };
        record.item(&prompt.source, kind, &prompt.key);
        return Ok(ItemMatch {
            source: prompt.source.clone(),
            own: prompt.own.clone(),
            prompt: Some(prompt.clone()),
        });
    }
    let (source, own, name) = resource(&listing, request.tool).ok_or_else(CallError::unknown)?;
    if name.ends_with(UNLISTED) && !is_taken(gateway, caller, request, &source, &own).await {
        return Err(CallError::unknown());
    }
    record.item(&source, kind, &name);
    Ok(ItemMatch {
        source,
        own: own.into(),
        prompt: None,
    })
}

/// Returns whether a published URI belongs to a readable resource.
pub fn has_resource(listing: &CatalogueListing, published: &str) -> bool {
    resource_source(listing, published).is_some()
}

/// Returns the source of a readable resource; `None` if there is no such resource.
pub fn resource_source(listing: &CatalogueListing, published: &str) -> Option<Arc<ItemSource>> {
    if let Some((source, ..)) = resource(listing, published) {
        return Some(source);
    }
    let is_record = |template: &&Arc<CatalogueItem>| {
        template.lookup.is_some() && uri::record_key(&template.key, published).is_some()
    };
    let record = listing.templates.entries().iter().find(is_record)?;
    Some(record.source.clone())
}

/// The contract of a published URI, the resource's own URI there, and the name under which it is recorded.
fn resource(
    listing: &CatalogueListing,
    published: &str,
) -> Option<(Arc<ItemSource>, String, String)> {
    if let Some(listed) = listing.resources.find(published) {
        return Some((
            listed.source.clone(),
            listed.own.to_string(),
            published.to_owned(),
        ));
    }
    if let Some(LinkedPage { source, own }) = listing.page(published) {
        let name = match source.has_live_resources {
            true => unlisted(&source.contract),
            false => published.to_owned(),
        };
        return Some((source.clone(), own.to_string(), name));
    }
    let is_of = |template: &Arc<CatalogueItem>| {
        template.source.target.publishes_own_uris()
            && template.lookup.is_none()
            && uri::is_made_of(&template.own, published)
    };
    if let Some(template) = listing
        .templates
        .entries()
        .iter()
        .find(|template| is_of(template))
    {
        return Some((
            template.source.clone(),
            published.to_owned(),
            template.key.to_string(),
        ));
    }
    let (contract, own) = uri::own_uri(published)?;
    let source = listing.source(contract)?;
    let of_contract = listing
        .templates
        .entries()
        .iter()
        .filter(|template| template.source.contract == source.contract);
    let template = of_contract
        .into_iter()
        .find(|template| uri::is_made_of(&template.own, &own));
    match template {
        Some(template) => Some((source.clone(), own, template.key.to_string())),
        None if source.has_live_resources => Some((source.clone(), own, unlisted(contract))),
        None => None,
    }
}

/// Returns the name under which an unlisted resource is recorded.
fn unlisted(contract: &str) -> String {
    format!("{contract}+{UNLISTED}")
}

/// Returns `true` if a resource on no published list may be read. If the operator selected items, the resource must be on the
/// server's current list.
async fn is_taken(
    gateway: &ServingGateway,
    caller: &CallerIdentity,
    request: &CallRequest<'_>,
    source: &ItemSource,
    own: &str,
) -> bool {
    let upstream = source
        .target
        .upstream()
        .and_then(|upstream| gateway.upstreams().get(upstream));
    let Some(upstream) = upstream else {
        return false;
    };
    let live = gateway.live_resources();
    match (
        upstream.config().overlay.is_some(),
        live.overlay(&upstream.name),
    ) {
        (false, _) => return true,
        (true, None) => return false,
        (true, Some(overlay)) if overlay.takes_all() => return true,
        (true, Some(_)) => {}
    }
    let listed = upstream
        .resources(&super::call_owner(caller, request.session), LOOK_MAX)
        .await;
    let listed = live.compile(source, true, listed.unwrap_or_default()).await;
    listed.iter().any(|resource| resource.uri == own)
}

impl ItemMatch {
    fn asked(
        &self,
        caller: &CallerIdentity,
        request: &CallRequest<'_>,
    ) -> Result<(UpstreamOperation, CursorScope), CallError> {
        let Some(prompt) = &self.prompt else {
            let asked = UpstreamOperation::Resource {
                uri: self.own.as_ref().into(),
            };
            return Ok((
                asked,
                self.bound(caller, "resources/read", request.tool, ""),
            ));
        };
        let arguments = arguments(&prompt.arguments, request.arguments)?;
        let bound = self.bound(caller, "prompts/get", &prompt.key, &arguments.to_string());
        // Servers that check the arguments do not accept missing ones as an empty object.
        let arguments = Some(upstream::raw(&arguments)?);
        Ok((
            UpstreamOperation::Prompt {
                name: prompt.own.as_ref().into(),
                arguments,
            },
            bound,
        ))
    }

    /// Binds a question of the server to one request: by one agent, for one item, with these arguments.
    fn bound(
        &self,
        caller: &CallerIdentity,
        method: &str,
        name: &str,
        arguments: &str,
    ) -> CursorScope {
        let definitions = self.source.contract_version();
        asking::bound_to(
            caller,
            method,
            self.source.version.major,
            definitions,
            &format!("{name}\n{arguments}"),
        )
    }
}

/// Checks that all arguments are declared texts, and that none that is required is missing.
fn arguments(declared: &[PromptArgument], given: Option<&str>) -> Result<Value, CallError> {
    let wrong = |argument: &str, what: String| CallError {
        field: Some(shorten(argument, 64).into_owned()),
        ..CallError::new(FailureCode::InvalidArguments, what)
    };
    let given = match weir_schema::json::read(given.unwrap_or("{}")) {
        Ok(Value::Object(given)) => given,
        Ok(_) => return Err(wrong("", "`params.arguments` must be an object".to_owned())),
        Err(error) => {
            return Err(wrong("", format!("`params.arguments`: {}", error.placed())));
        }
    };
    for (argument, value) in &given {
        let shown = name::quoted(argument);
        if !declared.iter().any(|declared| declared.name == *argument) {
            return Err(wrong(
                argument,
                format!("`params.arguments`: the prompt has no argument {shown}"),
            ));
        }
        if !value.is_string() {
            return Err(wrong(
                argument,
                format!("`params.arguments`: {shown} must be a string"),
            ));
        }
    }
    let missing = declared
        .iter()
        .find(|declared| declared.required && !given.contains_key(&declared.name));
    if let Some(missing) = missing {
        let shown = name::quoted(&missing.name);
        return Err(wrong(
            &missing.name,
            format!("`params.arguments`: the prompt needs the argument {shown}"),
        ));
    }
    Ok(Value::Object(given))
}

fn check_messages(members: &Map<String, Value>) -> Result<(), String> {
    let Some(Value::Array(messages)) = members.get("messages") else {
        return Err("it has no messages".to_owned());
    };
    if messages.len() > PARTS_MAX {
        return Err(format!("{} messages; at most {PARTS_MAX}", messages.len()));
    }
    for (index, message) in messages.iter().enumerate() {
        match message.get("role").and_then(Value::as_str) {
            Some("user" | "assistant") => {}
            _ => {
                return Err(format!(
                    "message {index}: its `role` is neither `user` nor `assistant`"
                ));
            }
        }
        let content = message
            .get("content")
            .ok_or_else(|| format!("message {index}: it has no content"))?;
        blocks::check(content).map_err(|what| format!("message {index}: {what}"))?;
    }
    Ok(())
}

fn check_contents(contents: Option<&Value>) -> Result<(), String> {
    let Some(Value::Array(contents)) = contents else {
        return Err("it has no contents".to_owned());
    };
    if contents.len() > PARTS_MAX {
        return Err(format!("{} contents; at most {PARTS_MAX}", contents.len()));
    }
    let is_text = |content: &Value, member: &str| content.get(member).is_some_and(Value::is_string);
    let is_content = |content: &Value| {
        is_text(content, "uri") && (is_text(content, "text") || is_text(content, "blob"))
    };
    match contents.iter().position(|content| !is_content(content)) {
        Some(index) => Err(format!(
            "content {index}: it has no `uri`, or neither `text` nor `blob`"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_prompt_are_declared_texts_and_all_that_are_required() {
        let argument = |name: &str, required| PromptArgument {
            name: name.to_owned(),
            title: None,
            description: None,
            required,
        };
        let declared = [argument("city", true), argument("state", false)];
        let checked = |given: Option<&str>| {
            arguments(&declared, given)
                .map(|_| ())
                .map_err(|error| error.message)
        };
        assert_eq!(checked(Some(r#"{"city":"Oslo"}"#)), Ok(()));
        for (given, wanted) in [
            (None, "needs the argument 'city'"),
            (Some(r#"{"city":1}"#), "'city' must be a string"),
            (Some(r#"{"city":"a","town":"b"}"#), "has no argument 'town'"),
            (Some(r#"{"city":"a","city":"b"}"#), "at "),
        ] {
            let message = checked(given).expect_err("refused");
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn only_known_content_is_passed_on() {
        let check = |text: &str| {
            let Ok(Value::Object(members)) = serde_json::from_str(text) else {
                panic!("an object: {text}")
            };
            (
                check_messages(&members).is_ok(),
                check_contents(members.get("contents")).is_ok(),
            )
        };
        assert_eq!(
            check(r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}"#),
            (true, false)
        );
        for bad in [
            r#"{"messages":[{"role":"system","content":{"type":"text","text":"a"}}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}"#,
            r#"{"messages":[{"role":"user","content":{"type":"video"}}]}"#,
            r#"{"messages":{}}"#,
            r#"{"contents":[{"uri":"a:b"}]}"#,
            r#"{"contents":[{"text":"a"}]}"#,
        ] {
            assert_eq!(check(bad), (false, false), "{bad}");
        }
        assert_eq!(
            check(r#"{"contents":[{"uri":"a:b","text":""}]}"#),
            (false, true)
        );
    }
}
