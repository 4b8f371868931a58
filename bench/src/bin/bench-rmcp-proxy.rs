//! Serves what another server lists, and passes each call on, with only rmcp's client and server: no identity,
//! limits, validation, metrics or audit.
//!
//! `bench-rmcp-proxy PORT URL`

use std::sync::Arc;

use rmcp::{
    ErrorData, RoleClient, RoleServer, ServerHandler, ServiceError, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, ClientConfig, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::{RequestContext, RunningService},
    transport::StreamableHttpClientTransport,
};

#[derive(Clone)]
struct ProxyServer {
    upstream: Arc<RunningService<RoleClient, ClientConfig>>,
}

impl ServerHandler for ProxyServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.upstream.list_tools(request).await.map_err(failed)
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // What belongs only to this request is not passed on.
        request.meta = None;
        self.upstream.call_tool_once(request).await.map_err(failed)
    }
}

fn failed(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, url] = &arguments[..] else {
        anyhow::bail!("bench-rmcp-proxy PORT URL")
    };
    weir_connections::http::install_tls(); // every client of `reqwest` needs one, also for addresses without TLS
    let transport = StreamableHttpClientTransport::from_uri(url.clone());
    let upstream = Arc::new(ClientConfig::default().serve(transport).await?);
    let proxy = ProxyServer { upstream };
    Ok(weir_bench::serve_mcp(port.parse()?, proxy).await?)
}
