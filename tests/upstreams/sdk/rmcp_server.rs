//! The server of the matrix, with rmcp: `stdio` or `http PORT`, each in both eras.

#![expect(
    deprecated,
    reason = "rmcp marks what the modern revision leaves out; this server is for both"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, CreateMessageRequest,
        CreateMessageRequestParams, ElicitRequest, ElicitRequestParams, InputRequest,
        InputRequests, InputRequiredResult, ListRootsRequest, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, SamplingMessage,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::{RequestContext, ServiceError},
    transport::{
        stdio,
        streamable_http_server::{
            StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
        },
    },
};
use serde_json::{Value, json};

/// The key of the only question of a call.
const QUESTION: &str = "question";

#[derive(Clone, Default)]
struct Server {
    cancelled: Arc<AtomicU64>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = [
            tool(
                "echo",
                ("text", "string"),
                ("text", json!({"type": "string"})),
            ),
            tool(
                "slow",
                ("wait_ms", "integer"),
                ("steps", json!({"type": "integer"})),
            ),
            tool("cancelled", ("", ""), ("calls", json!({"type": "integer"}))),
            tool("ask", ("", ""), ("action", json!({"type": "string"}))),
            tool("sample", ("", ""), ("text", json!({"type": "string"}))),
            tool(
                "roots",
                ("", ""),
                (
                    "uris",
                    json!({"type": "array", "items": {"type": "string"}}),
                ),
            ),
        ];
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(call.arguments.clone().unwrap_or_default());
        let structured = match &*call.name {
            "echo" => json!({ "text": arguments["text"] }),
            "slow" => {
                self.slow(
                    Duration::from_millis(arguments["wait_ms"].as_u64().unwrap_or(0)),
                    &context,
                )
                .await
            }
            "cancelled" => json!({ "calls": self.cancelled.load(Ordering::Relaxed) }),
            _ => match asked(&call, &context).await? {
                Ok(structured) => structured,
                Err(question) => return Ok(question.into()),
            },
        };
        Ok(CallToolResult::structured(structured).into())
    }
}

impl Server {
    async fn slow(&self, wait: Duration, context: &RequestContext<RoleServer>) -> Value {
        for step in [1.0, 2.0, 3.0] {
            if let Some(token) = context.meta.get_progress_token() {
                let _ = context
                    .peer
                    .notify_progress(ProgressNotificationParam::new(token, step).with_total(3.0))
                    .await;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = context.ct.cancelled() => drop(self.cancelled.fetch_add(1, Ordering::Relaxed)),
        }
        json!({ "steps": 3 })
    }
}

/// Asks the caller: a legacy caller while the call is open, a modern one by the result, which is the error here.
async fn asked(
    call: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Result<Value, InputRequiredResult>, ErrorData> {
    let form = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: "Your name?".to_owned(),
        requested_schema: serde_json::from_value(
            json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
        )
        .expect("a schema of a form"),
    };
    let message =
        CreateMessageRequestParams::new(vec![SamplingMessage::user_text("Say hello.")], 10);
    let failed = |error: ServiceError| ErrorData::internal_error(error.to_string(), None);
    let answer = if context
        .protocol_version()
        .as_ref()
        .is_none_or(ProtocolVersion::has_initialize)
    {
        match &*call.name {
            "ask" => json!(
                context
                    .peer
                    .create_elicitation(form)
                    .await
                    .map_err(failed)?
            ),
            "sample" => json!(context.peer.create_message(message).await.map_err(failed)?),
            _ => json!(context.peer.list_roots().await.map_err(failed)?),
        }
    } else if let Some(answer) = call
        .input_responses
        .as_ref()
        .and_then(|answers| answers.get(QUESTION))
    {
        answer.clone()
    } else {
        let question = match &*call.name {
            "ask" => InputRequest::Elicitation(ElicitRequest::new(form)),
            "sample" => InputRequest::CreateMessage(CreateMessageRequest::new(message)),
            _ => InputRequest::ListRoots(ListRootsRequest::default()),
        };
        return Ok(Err(InputRequiredResult::from_input_requests(
            InputRequests::from([(QUESTION.to_owned(), question)]),
        )));
    };
    Ok(Ok(match &*call.name {
        "ask" => match answer["content"]["name"].as_str() {
            Some(name) => json!({ "action": answer["action"], "name": name }),
            None => json!({ "action": answer["action"] }),
        },
        "sample" => json!({ "text": answer["content"]["text"] }),
        _ => {
            let roots = answer["roots"].as_array().into_iter().flatten();
            json!({ "uris": roots.map(|root| &root["uri"]).collect::<Vec<_>>() })
        }
    }))
}

fn tool(
    name: &'static str,
    (argument, kind): (&str, &str),
    (member, schema): (&str, Value),
) -> Tool {
    let input = match argument {
        "" => json!({"type": "object", "properties": {}}),
        _ => {
            json!({"type": "object", "properties": {argument: {"type": kind}}, "required": [argument]})
        }
    };
    let mut output =
        json!({"type": "object", "properties": {member: schema}, "required": [member]});
    if name == "ask" {
        output["properties"]["name"] = json!({"type": "string"});
    }
    serde_json::from_value(json!({
        "name": name, "description": format!("The tool {name}."), "annotations": {"readOnlyHint": true},
        "inputSchema": input, "outputSchema": output,
    }))
    .expect("a tool of the protocol")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let server = Server::default();
    match &words[..] {
        [way] if way == "stdio" => drop(server.serve(stdio()).await?.waiting().await?),
        [way, port] if way == "http" => {
            let sessions = Arc::new(LocalSessionManager::default());
            let make = move || Ok(server.clone());
            let service =
                StreamableHttpService::new(make, sessions, StreamableHttpServerConfig::default());
            let listener =
                tokio::net::TcpListener::bind(("127.0.0.1", port.parse::<u16>()?)).await?;
            axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
        }
        _ => anyhow::bail!("rmcp serves stdio and HTTP, and HTTP+SSE no more"),
    }
    Ok(())
}
