//! A gateway over one contract whose collection is an adapter in its process.

use std::{fs, sync::Arc};

use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use weir::{
    GatewayApp,
    app::AppOptions,
    call::{CallOutcome, CallRequest, CatalogueEndpoint, ToolResult, call_tool},
    config,
    identity::CallerIdentity,
};
use weir_plugin_host::native::{NativeAdapter, install};

/// Opens a gateway with the adapter and the contract. The folder is its state.
pub(crate) async fn open(
    adapter: impl NativeAdapter + 'static,
    contract: &Value,
) -> (TempDir, GatewayApp) {
    install(Arc::new(adapter));
    let folder = TempDir::new().expect("a temporary folder");
    for name in ["contracts", "plugins"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let path = folder.path().join("contracts/notes.json");
    fs::write(path, contract.to_string()).expect("a contract");
    let settings = "[folders]\ncontracts = \"contracts\"\nplugins = \"plugins\"\nstate = \"state\"\n[log]\nfilter = \"off\"\n";
    let config = config::read("weir.toml", settings, folder.path()).expect("a configuration");
    let setup = AppOptions {
        process: Some("test"),
        ..AppOptions::default()
    };
    let app = GatewayApp::open(config, setup).await.expect("a program");
    app.load(true).await.expect("the contract is in order");
    (folder, app)
}

pub(crate) async fn call(app: &GatewayApp, tool: &str, arguments: &Value) -> ToolResult {
    let snapshot = app.gateway.snapshot();
    let cancel = CancellationToken::new();
    let arguments = arguments.to_string();
    let request = CallRequest {
        arguments: Some(&arguments),
        ..CallRequest::new(&snapshot, &CatalogueEndpoint::All, tool, "cli", &cancel)
    };
    match call_tool(&app.gateway, &CallerIdentity::local(), &request).await {
        CallOutcome::Complete(result) => result,
        _ => panic!("`{tool}` has no result"),
    }
}

pub(crate) fn structured(result: &ToolResult) -> Value {
    serde_json::from_str(result.structured.as_deref().expect("structured content")).expect("JSON")
}
