//! Holds one instance of a library, and the calls into it: a child process, reached by messages.

use std::{cell::Cell, collections::HashSet, sync::Arc};

use serde::Serialize;

use super::{
    DESCRIBE, LibraryCode, LibraryInterfaces,
    abi::{Answer as PipeAnswer, DONE, FAILED, PANICKED, UNKNOWN},
    child::LibraryProcess,
    imports,
    message::PipeMessage,
    wire,
};
use crate::{
    AdapterChange, AdapterPage, AdapterQuery, AdapterSummaryPage, AdapterSummaryQuery,
    CollectionRef, GuestError, ToolInvocation, ToolRef,
    bindings::v0_1::weir::plugin::{answers, types},
    guest::{GuestCall, GuestProfile, GuestState},
    instance::Answer,
};

/// The memory of a child is checked once in this many calls: a check costs a tenth of a call.
const LOOKS_EVERY: u32 = 32;

pub(crate) struct LibraryInstance {
    code: Arc<LibraryCode>,
    guest: GuestState,
    child: LibraryProcess,
    /// The keys of the collections that it was configured with.
    configured: HashSet<Arc<str>>,
    set_up: bool,
    calls: u32,
    bytes: Cell<usize>,
}

impl LibraryInstance {
    pub(crate) async fn new(
        code: &Arc<LibraryCode>,
        profile: &Arc<GuestProfile>,
        call: GuestCall,
    ) -> wasmtime::Result<Self> {
        let child = LibraryProcess::start(&code.runner, &code.path, &code.digest, profile).await?;
        let guest = GuestState::new(Arc::clone(profile), call);
        let code = Arc::clone(code);
        Ok(Self {
            code,
            guest,
            child,
            configured: HashSet::new(),
            set_up: false,
            calls: 0,
            bytes: Cell::new(0),
        })
    }

    /// Returns `true` if the library can take a call. A process may have been ended by others while it waited for one.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.is_alive()
    }

    pub(crate) fn begin(&mut self, call: GuestCall) {
        self.guest.call = call;
        self.calls += 1;
    }

    /// Notes which interfaces it has.
    pub(crate) async fn about(&mut self) -> wasmtime::Result<String> {
        let answer = self.ask("about.about", &(), Vec::new()).await?;
        let answer = answer
            .map_err(|error| wasmtime::Error::msg(format!("`about` failed: {}", error.message)))?;
        let wire::Interfaces { interfaces } = head("about.about", &answer.head)?;
        let has = |name: &str| interfaces.iter().any(|interface| interface == name);
        let interfaces = LibraryInterfaces {
            collections: has("collections"),
            summaries: has("summaries"),
            tools: has("tools"),
            items: has("items"),
        };
        if !interfaces.collections && !interfaces.tools {
            return Err(wasmtime::Error::msg(
                "it has neither `collections` nor `tools`",
            ));
        }
        let _ = self.code.interfaces.set(interfaces); // each instance declares the same
        text("about.about", answer.body)
    }

    pub(crate) async fn describe(&mut self, adapter: &str, settings: &str) -> Answer<String> {
        let asked = wire::Describe {
            adapter: adapter.into(),
        };
        self.ask_text(DESCRIBE, &asked, settings.as_bytes().to_vec())
            .await
    }

    pub(crate) async fn read(
        &mut self,
        collection: &CollectionRef,
        query: &AdapterQuery,
    ) -> Answer<AdapterPage> {
        if let Err(error) = self.configure(collection).await? {
            return Ok(Err(error));
        }
        let names = |names: &'_ [String]| names.iter().map(|name| name.clone().into()).collect();
        let asked = wire::Read {
            collection: (&*collection.key).into(),
            conditions: conditions(&query.conditions),
            order: names(&query.order),
            columns: names(&query.columns),
            limit: query.limit,
            cursor: query.cursor.as_deref().map(Into::into),
            options: query.options.as_deref().map(Into::into),
        };
        let answer = match self.ask("collections.read", &asked, Vec::new()).await? {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error)),
        };
        let wire::Next { next } = head("collections.read", &answer.head)?;
        let next = next.map(Into::into);
        Ok(Ok(AdapterPage {
            records: text("collections.read", answer.body)?,
            next,
        }))
    }

    pub(crate) async fn summarize(
        &mut self,
        collection: &CollectionRef,
        query: &AdapterSummaryQuery,
    ) -> Answer<AdapterSummaryPage> {
        let interfaces = self.code.interfaces.get();
        if !interfaces.is_some_and(|interfaces| interfaces.summaries) {
            let error = GuestError::no_summaries();
            return Ok(Err(types::Error {
                code: error.code,
                message: error.message,
                field: error.field,
                retry_after_ms: error.retry_after_ms,
                details: error.details,
            }));
        }
        if let Err(error) = self.configure(collection).await? {
            return Ok(Err(error));
        }
        let groups = query.groups.iter();
        let measures = query.measures.iter();
        let asked = wire::Summarize {
            collection: (&*collection.key).into(),
            conditions: conditions(&query.conditions),
            groups: groups
                .map(|group| {
                    (
                        (&*group.name).into(),
                        (&*group.column).into(),
                        group.step.map(Into::into),
                    )
                })
                .collect(),
            measures: measures
                .map(|measure| {
                    (
                        (&*measure.name).into(),
                        measure.function.into(),
                        measure.column.as_deref().map(Into::into),
                    )
                })
                .collect(),
            having: conditions(&query.having),
            order: query.order.iter().map(|name| (&**name).into()).collect(),
            limit: query.limit,
            options: query.options.as_deref().map(Into::into),
        };
        let answer = match self.ask("summaries.summarize", &asked, Vec::new()).await? {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error)),
        };
        let wire::Summarized { more } = head("summaries.summarize", &answer.head)?;
        Ok(Ok(AdapterSummaryPage {
            records: text("summaries.summarize", answer.body)?,
            more,
        }))
    }

    pub(crate) async fn write(
        &mut self,
        collection: &CollectionRef,
        change: &AdapterChange,
    ) -> Answer<String> {
        if let Err(error) = self.configure(collection).await? {
            return Ok(Err(error));
        }
        let asked = wire::Write {
            collection: (&*collection.key).into(),
            verb: (&*change.verb).into(),
            key: change.key.as_deref().map(Into::into),
            record: change.record.as_deref().map(Into::into),
            options: change.options.as_deref().map(Into::into),
        };
        self.ask_text("collections.write", &asked, Vec::new()).await
    }

    pub(crate) async fn definitions(&mut self) -> Answer<String> {
        if let Err(error) = self.set_up().await? {
            return Ok(Err(error));
        }
        self.ask_text("tools.definitions", &(), Vec::new()).await
    }

    pub(crate) async fn item_definitions(&mut self) -> Answer<String> {
        if let Err(error) = self.set_up().await? {
            return Ok(Err(error));
        }
        self.ask_text("items.definitions", &(), Vec::new()).await
    }

    pub(crate) async fn call(
        &mut self,
        tool: &ToolRef,
        invocation: &ToolInvocation,
        context: &str,
    ) -> Answer<answers::Answer> {
        if let Err(error) = self.set_up().await? {
            return Ok(Err(error));
        }
        let asked = wire::Call {
            tool: (&*tool.tool).into(),
            context: context.into(),
            resumed: invocation.resumed.as_deref().map(Into::into),
            options: None,
        };
        let function = if invocation.is_item {
            "items.get"
        } else {
            "tools.call"
        };
        let answer = match self
            .ask(function, &asked, invocation.arguments.as_bytes().to_vec())
            .await?
        {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(error)),
        };
        let wire::ReplyHead {
            kind,
            content,
            requests,
            state,
            options,
        } = head(function, &answer.head)?;
        let value = text(function, answer.body)?;
        Ok(Ok(answers::Answer {
            kind: kind.into(),
            value: (!value.is_empty()).then_some(value),
            content: content.map(Into::into),
            requests: requests.map(Into::into),
            state: state.map(Into::into),
            options: options.map(Into::into),
        }))
    }

    pub(crate) fn end(&mut self) {
        self.guest.call.end();
        if self.calls.is_multiple_of(LOOKS_EVERY) {
            self.bytes.set(self.child.bytes());
        }
    }

    pub(crate) fn configured(&self) -> usize {
        self.configured.len()
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    pub(crate) fn memory_max(&self) -> usize {
        self.guest.profile.limits.memory_max
    }

    pub(crate) fn memory_refused(&self) -> bool {
        self.child.memory_refused()
    }

    /// Returns the memory of the child.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    async fn set_up(&mut self) -> Answer<()> {
        if self.set_up {
            return Ok(Ok(()));
        }
        let settings = Arc::clone(&self.guest.profile.settings);
        let result = self
            .ask("tools.configure", &(), settings.as_bytes().to_vec())
            .await?
            .map(drop);
        self.set_up = result.is_ok();
        Ok(result)
    }

    async fn configure(&mut self, collection: &CollectionRef) -> Answer<()> {
        if self.configured.contains(&collection.key) {
            return Ok(Ok(()));
        }
        let asked = wire::Configure {
            collection: (&*collection.key).into(),
            adapter: (&*collection.adapter).into(),
            settings: (&*collection.settings).into(),
            shape: (&*collection.shape).into(),
        };
        let result = self
            .ask("collections.configure", &asked, Vec::new())
            .await?
            .map(drop);
        if result.is_ok() {
            self.configured.insert(Arc::clone(&collection.key));
        }
        Ok(result)
    }

    async fn ask_text(
        &mut self,
        function: &str,
        head: &impl Serialize,
        body: Vec<u8>,
    ) -> Answer<String> {
        match self.ask(function, head, body).await? {
            Ok(answer) => Ok(Ok(text(function, answer.body)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Makes one call of the library, and answers its own calls of the gateway in the meantime.
    async fn ask(
        &mut self,
        function: &str,
        head: &impl Serialize,
        body: Vec<u8>,
    ) -> Answer<PipeAnswer> {
        let head = serde_json::to_vec(head).expect("plain data");
        self.child
            .send(&PipeMessage::Call {
                function: function.to_owned(),
                head,
                body,
            })
            .await?;
        loop {
            match self.child.receive().await? {
                PipeMessage::Answer(received) => return judged(function, received),
                PipeMessage::Call {
                    function,
                    head,
                    body,
                } => {
                    let answer = imports::answer(&mut self.guest, &function, &head, &body).await?;
                    self.child.send(&PipeMessage::Answer(answer)).await?;
                }
            }
        }
    }
}

fn conditions(conditions: &[crate::AdapterCondition]) -> Vec<wire::Condition<'_>> {
    conditions
        .iter()
        .map(|condition| wire::Condition {
            column: (&*condition.column).into(),
            comparison: (&*condition.comparison).into(),
            value: (&*condition.value).into(),
        })
        .collect()
}

fn judged(function: &str, answer: PipeAnswer) -> Answer<PipeAnswer> {
    match answer.status {
        DONE => Ok(Ok(answer)),
        FAILED => {
            let wire::ErrorRecord {
                code,
                message,
                field,
                retry_after_ms,
                details,
            } = head(function, &answer.head)?;
            Ok(Err(types::Error {
                code: code.into(),
                message: message.into(),
                field: field.map(Into::into),
                retry_after_ms,
                details: details.map(Into::into),
            }))
        }
        PANICKED => {
            let message = head::<wire::Panic<'_>>(function, &answer.head)
                .map(|panic| panic.message.into_owned());
            let message = message.unwrap_or_default();
            Err(wasmtime::Error::msg(format!(
                "it panicked: {}",
                message.replace(char::is_control, " ")
            )))
        }
        UNKNOWN => Err(wasmtime::Error::msg(format!(
            "it has no function `{function}`"
        ))),
        status => Err(wasmtime::Error::msg(format!(
            "it answered `{function}` with the status {status}"
        ))),
    }
}

fn head<'a, T: serde::Deserialize<'a>>(function: &str, head: &'a [u8]) -> wasmtime::Result<T> {
    let unreadable = |error| {
        wasmtime::Error::msg(format!(
            "its answer of `{function}` cannot be read: {error}"
        ))
    };
    serde_json::from_slice(head).map_err(unreadable)
}

fn text(function: &str, body: Vec<u8>) -> wasmtime::Result<String> {
    String::from_utf8(body)
        .map_err(|_| wasmtime::Error::msg(format!("its answer to `{function}` is not text")))
}
