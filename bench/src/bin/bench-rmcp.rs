//! Serves rmcp's own server with one echo tool, as its documentation shows it: no identity, limits, metrics or audit. The tool
//! is marked as read-only, as a lookup is: a gateway need not announce its calls in the trail. With several tools it lists
//! them as Weir does, word for word, so that both lists are the same work.
//!
//! `bench-rmcp PORT http|stdio TOOLS`: `http` answers plain JSON without sessions (both eras), and `stdio` speaks over pipes
//! instead.

use std::sync::Arc;

use rmcp::{
    ErrorData, ServerHandler, ServiceExt,
    handler::server::{
        router::tool::{ToolRoute, ToolRouter},
        wrapper::Parameters,
    },
    model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig, Tool},
    tool, tool_handler, tool_router,
};
use weir_bench::ticket;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    /// Ticket id, for example T-1001
    ticket_id: String,
}

#[derive(Clone)]
struct EchoServer {
    tool_router: Arc<ToolRouter<EchoServer>>,
}

#[tool_router]
impl EchoServer {
    #[tool(
        description = "Look a ticket up by its id",
        annotations(read_only_hint = true)
    )]
    async fn lookup_ticket(
        &self,
        Parameters(arguments): Parameters<Arguments>,
    ) -> Result<CallToolResult, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(
            ticket::record(&arguments.ticket_id),
        )]))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for EchoServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, mode, tools] = &arguments[..] else {
        anyhow::bail!("bench-rmcp PORT http|stdio TOOLS")
    };
    let mut router = EchoServer::tool_router();
    let listed: Tool = serde_json::from_value(ticket::listed()?)?;
    for number in 1..tools.parse()? {
        let mut tool = listed.clone();
        tool.name = format!("{}_{number:05}", ticket::TOOL).into();
        router.add_route(ToolRoute::new_dyn(tool, |_| {
            Box::pin(async { Ok(CallToolResult::success(vec![ContentBlock::text("x")]).into()) })
        }));
    }
    let echo = EchoServer {
        tool_router: Arc::new(router),
    };
    if mode == "stdio" {
        echo.serve((tokio::io::stdin(), tokio::io::stdout()))
            .await?
            .waiting()
            .await?;
        return Ok(());
    }
    Ok(weir_bench::serve_mcp(port.parse()?, echo).await?)
}
