//! A request of an MCP client. Its era makes it from a message; the params of a request for the call path are then read once.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use weir_plugin_host::CallEvents;

use super::{CallChannel, CallMessages, RequestScope, SessionClient, list};
use crate::{
    call::{CallRequest, CallerInteraction, CallerResponses, CapabilityFallback, ParamHeaders},
    catalogue::CatalogueViewer,
    snapshot::CatalogueSnapshot,
    wire::{LogLevel, ProtocolVersion, RequestId, RequestParams, RpcError, RpcMethod, raw},
};

/// A request that has passed every check of its era. `P`: its params as the message has them, or [`CallParams`].
#[derive(Clone, Debug)]
pub struct McpRequest<'a, P = RequestParams<'a>> {
    pub id: RequestId<'a>,
    pub method: RpcMethod,
    pub version: ProtocolVersion,
    /// JSON; present when the caller asks for progress.
    pub progress_token: Option<Cow<'a, str>>,
    /// W3C `traceparent`, well-formed.
    pub trace: Option<Cow<'a, str>>,
    /// The W3C `tracestate` that goes with it, bounded and unchanged.
    pub trace_state: Option<Cow<'a, str>>,
    /// The trace of the HTTP request, if the message names a different one.
    pub trace_link: Option<Cow<'a, str>>,
    /// The headers that repeat arguments. `None`: a legacy request, or not over HTTP.
    pub param_headers: Option<Box<ParamHeaders>>,
    pub params: P,
}

/// A request for the call path that has been read but not started.
pub type McpCall<'a> = McpRequest<'a, CallParams<'a>>;

/// The params of a request for the call path.
#[derive(Clone, Debug)]
pub struct CallParams<'a> {
    pub(super) subject: CallSubject<'a>,
    /// The log level of a modern caller, which sends it with each request.
    pub(super) log_level: Option<LogLevel>,
    /// JSON: what a modern caller declares that it can answer while a call is under way.
    pub(super) capabilities: Option<Cow<'a, str>>,
    /// JSON: its answers.
    pub(super) responses: Option<Cow<'a, str>>,
    /// The state that the caller was given with the question.
    pub(super) state: Option<Cow<'a, str>>,
    /// Whether a write is only to be planned.
    pub(super) is_preview: bool,
    /// The key by which a repeated write is recognised.
    pub(super) idempotency_key: Option<Cow<'a, str>>,
}

/// The subject of a request. `arguments`, `reference`, `argument` and `context` are JSON objects.
#[derive(Clone, Debug)]
pub(super) enum CallSubject<'a> {
    Tool {
        name: Cow<'a, str>,
        arguments: Option<Cow<'a, str>>,
    },
    Prompt {
        name: Cow<'a, str>,
        arguments: Option<Cow<'a, str>>,
    },
    Resource {
        uri: Cow<'a, str>,
    },
    Completion {
        reference: Cow<'a, str>,
        argument: Cow<'a, str>,
        context: Option<Cow<'a, str>>,
    },
    /// The list of resources, some of which must be fetched.
    Resources {
        cursor: Option<Cow<'a, str>>,
    },
    /// A task of another node.
    Task {
        id: Cow<'a, str>,
    },
}

impl<'a> CallSubject<'a> {
    fn read(request: &McpRequest<'a>) -> Result<Self, RpcError> {
        let params = &request.params;
        let text = |value: Option<&'a RawValue>, name: &str| {
            let text = value.and_then(raw::string);
            text.ok_or_else(|| {
                RpcError::invalid_params(format!("`params.{name}` must be a string"))
            })
        };
        let object = |value: Option<&'a RawValue>, name: &str| match value {
            Some(value) if !raw::is_object(value) => Err(RpcError::invalid_params(format!(
                "`params.{name}` must be an object"
            ))),
            value => Ok(value.map(|value| Cow::Borrowed(value.get()))),
        };
        // The official PHP client writes empty arguments as `[]`.
        let arguments = params.arguments.filter(|given| !raw::is_empty_list(given));
        let needed = |value: Option<&'a RawValue>, name: &str| {
            let missing = || RpcError::invalid_params(format!("`params.{name}` must be an object"));
            object(value, name)?.ok_or_else(missing)
        };
        Ok(match request.method {
            RpcMethod::GetPrompt => Self::Prompt {
                name: text(params.name, "name")?,
                arguments: object(arguments, "arguments")?,
            },
            RpcMethod::ReadResource => Self::Resource {
                uri: text(params.uri, "uri")?,
            },
            RpcMethod::Complete => Self::Completion {
                reference: needed(params.reference, "ref")?,
                argument: needed(params.argument, "argument")?,
                context: object(params.context, "context")?,
            },
            RpcMethod::ListResources => Self::Resources {
                cursor: list::cursor(request)?,
            },
            RpcMethod::GetTask | RpcMethod::UpdateTask | RpcMethod::CancelTask => Self::Task {
                id: text(params.task_id, "taskId")?,
            },
            _ => Self::Tool {
                name: text(params.name, "name")?,
                arguments: object(arguments, "arguments")?,
            },
        })
    }

    fn into_owned(self) -> CallSubject<'static> {
        match self {
            Self::Tool { name, arguments } => CallSubject::Tool {
                name: owned(name),
                arguments: arguments.map(owned),
            },
            Self::Prompt { name, arguments } => CallSubject::Prompt {
                name: owned(name),
                arguments: arguments.map(owned),
            },
            Self::Resource { uri } => CallSubject::Resource { uri: owned(uri) },
            Self::Completion {
                reference,
                argument,
                context,
            } => CallSubject::Completion {
                reference: owned(reference),
                argument: owned(argument),
                context: context.map(owned),
            },
            Self::Resources { cursor } => CallSubject::Resources {
                cursor: cursor.map(owned),
            },
            Self::Task { id } => CallSubject::Task { id: owned(id) },
        }
    }
}

fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}

impl<'a> McpRequest<'a> {
    /// Reads the params of a request for the call path.
    pub(super) fn into_call(self) -> Result<McpCall<'a>, RpcError> {
        let params = CallParams::read(&self)?;
        Ok(McpRequest {
            id: self.id,
            method: self.method,
            version: self.version,
            progress_token: self.progress_token,
            trace: self.trace,
            trace_state: self.trace_state,
            trace_link: self.trace_link,
            param_headers: self.param_headers,
            params,
        })
    }
}

impl<'a> CallParams<'a> {
    fn read(request: &McpRequest<'a>) -> Result<Self, RpcError> {
        let subject = CallSubject::read(request)?;
        let params = &request.params;
        if params
            .input_responses
            .is_some_and(|responses| !raw::is_object(responses))
        {
            return Err(RpcError::invalid_params(
                "`params.inputResponses` must be an object",
            ));
        }
        let wrong = || {
            RpcError::invalid_params(
                "`params.requestState` must be the string that came with the question",
            )
        };
        let state = params
            .request_state
            .map(|state| raw::string(state).ok_or_else(wrong))
            .transpose()?;
        let is_modern = request.version.is_modern();
        let log_level = match is_modern {
            true => params.meta.log_level()?,
            false => None,
        };
        let text = |value: &'a RawValue| Cow::Borrowed(value.get());
        let capabilities = params.meta.client_capabilities.filter(|_| is_modern);
        Ok(Self {
            subject,
            log_level,
            capabilities: capabilities.map(text),
            responses: params.input_responses.map(text),
            state,
            is_preview: params.meta.is_preview()?,
            idempotency_key: params.meta.idempotency_key()?,
        })
    }

    fn into_owned(self) -> CallParams<'static> {
        CallParams {
            subject: self.subject.into_owned(),
            log_level: self.log_level,
            capabilities: self.capabilities.map(owned),
            responses: self.responses.map(owned),
            state: self.state.map(owned),
            is_preview: self.is_preview,
            idempotency_key: self.idempotency_key.map(owned),
        }
    }
}

impl McpCall<'_> {
    /// Returns `true` for a call whose result is kept: its caller may leave and ask again.
    pub fn is_kept(&self, scope: &RequestScope) -> bool {
        let CallParams {
            idempotency_key: Some(_),
            is_preview: false,
            subject: CallSubject::Tool { name, .. },
            ..
        } = &self.params
        else {
            return false;
        };
        let (snapshot, viewer) = (
            scope.gateway.snapshot(),
            CatalogueViewer::Caller(&scope.caller),
        );
        let tool = snapshot.catalogue.tool(&scope.endpoint, name, viewer);
        tool.is_none_or(|tool| tool.tool.writes()) // a search names the tool in its arguments
    }

    /// Returns the channel for the messages of the call before its answer, and their receiver. `None`: its caller requests no
    /// messages. `client`: that of a legacy session, whose log level applies and which can be asked. `ending`: cancelled when its
    /// answers are no longer awaited.
    pub fn channel(
        &self,
        client: Option<&Arc<SessionClient>>,
        ending: &CancellationToken,
    ) -> Option<(Arc<CallChannel>, CallMessages)> {
        let client = client.filter(|_| !self.version.is_modern());
        let level = self
            .params
            .log_level
            .or_else(|| client.and_then(|client| client.log_level()));
        CallChannel::open(self.progress_token.as_deref(), level, client, ending)
    }

    /// Returns the request in the form for the call path, with a name and its arguments.
    pub(super) fn request<'r>(
        &'r self,
        scope: &'r RequestScope,
        snapshot: &'r CatalogueSnapshot,
        (name, arguments): (&'r str, Option<&'r str>),
        cancel: &'r CancellationToken,
        channel: Option<&'r Arc<CallChannel>>,
    ) -> CallRequest<'r> {
        let responses = self.params.responses.as_deref();
        let state = self.params.state.as_deref();
        let resumed = (responses.is_some() || state.is_some())
            .then_some(CallerResponses { responses, state });
        let capabilities = self
            .params
            .capabilities
            .as_deref()
            .or_else(|| channel.and_then(|channel| channel.capabilities()));
        let lacking = if self.version.is_modern() {
            CapabilityFallback::ProtocolError
        } else {
            CapabilityFallback::Result
        };
        CallRequest {
            snapshot,
            endpoint: &scope.endpoint,
            tool: name,
            arguments,
            events: channel.map(|channel| channel.clone() as Arc<dyn CallEvents>),
            cancel,
            trace: self.trace.as_deref(),
            trace_state: self.trace_state.as_deref(),
            trace_link: self.trace_link.as_deref(),
            transport: scope.transport,
            protocol: self.version.as_str(),
            session: scope.session(),
            charge: scope.charge,
            param_headers: self.param_headers.as_deref(),
            asking: CallerInteraction {
                capabilities,
                lacking,
                resumed,
            },
            is_preview: self.params.is_preview,
            idempotency_key: self.params.idempotency_key.as_deref(),
        }
    }

    /// Copies everything that is borrowed from the body.
    pub fn into_owned(self) -> McpCall<'static> {
        McpRequest {
            id: self.id.into_owned(),
            method: self.method,
            version: self.version,
            progress_token: self.progress_token.map(owned),
            trace: self.trace.map(owned),
            trace_state: self.trace_state.map(owned),
            trace_link: self.trace_link.map(owned),
            param_headers: self.param_headers,
            params: self.params.into_owned(),
        }
    }
}
