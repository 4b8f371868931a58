//! Code in the process of the gateway that panics fails its own call: it is answered and recorded, and the next is served.

use std::{fs, sync::Arc};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use weir::{
    GatewayApp,
    app::AppOptions,
    call::{CallOutcome, CallRequest, CatalogueEndpoint, ToolResult, call_tool},
    config,
    identity::CallerIdentity,
};
use weir_plugin_host::{
    AdapterChange, AdapterPage, AdapterQuery, CallContext, CollectionRef,
    native::{Answered, NativeAdapter, install},
};

const SHAPE: &str = r#"{"name":"notes","fields":[{"key":"id","type":"string"},{"key":"text","type":"string"}],"key":["id"],
    "capabilities":{"read":true,"write":true,"matches":{"*":["equals"]}}}"#;

struct Panicking;

impl NativeAdapter for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn describe<'a>(&'a self, _: &'a str) -> Answered<'a, String> {
        Box::pin(async { Ok(SHAPE.to_owned()) })
    }

    fn read<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        query: &'a AdapterQuery,
    ) -> Answered<'a, AdapterPage> {
        let asked = format!("{:?}", query.conditions);
        Box::pin(async move {
            assert!(!asked.contains("bad"), "a row that nobody thought of");
            Ok(AdapterPage {
                records: r#"[{"id":"good","text":"still here"}]"#.to_owned(),
                next: None,
            })
        })
    }

    fn write<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        _: &'a AdapterChange,
    ) -> Answered<'a, String> {
        Box::pin(async { panic!("a row that nobody thought of") })
    }
}

async fn call(app: &GatewayApp, tool: &str, arguments: &str) -> ToolResult {
    let snapshot = app.gateway.snapshot();
    let cancel = CancellationToken::new();
    let request = CallRequest {
        arguments: Some(arguments),
        ..CallRequest::new(&snapshot, &CatalogueEndpoint::All, tool, "cli", &cancel)
    };
    match call_tool(&app.gateway, &CallerIdentity::local(), &request).await {
        CallOutcome::Complete(result) => result,
        _ => panic!("`{tool}` has no result"),
    }
}

fn said(result: &ToolResult) -> Value {
    serde_json::from_str(result.structured.as_deref().expect("structured content")).expect("JSON")
}

#[tokio::test]
async fn a_panic_is_the_failure_of_one_call() {
    install(Arc::new(Panicking));
    let folder = TempDir::new().expect("a temporary folder");
    for name in ["contracts", "plugins"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let id = json!({ "name": "id", "type": "text", "required": true });
    let text = json!({ "name": "text", "type": "text" });
    let contract = json!({
        "contract": "notes", "title": "Notes", "description": "Notes that somebody took.",
        "collections": { "notes": { "adapter": "panicking", "key": ["id"], "columns": ["id", "text"], "write": true } },
        "tools": [
            { "tool": "get_note", "title": "Get a note", "description": "Gets a note by its id.", "verb": "lookup",
              "collection": "notes", "fields": [id] },
            { "tool": "add_note", "title": "Add a note", "description": "Adds a note.", "verb": "create",
              "collection": "notes", "fields": [id, text] },
        ],
    });
    fs::write(
        folder.path().join("contracts/notes.json"),
        contract.to_string(),
    )
    .expect("a contract");
    let text = "[folders]\ncontracts = \"contracts\"\nplugins = \"plugins\"\nstate = \"state\"\n[log]\nfilter = \"off\"\n";
    let config = config::read("weir.toml", text, folder.path()).expect("a configuration");
    let app = GatewayApp::open(
        config,
        AppOptions {
            process: Some("test"),
            ..AppOptions::default()
        },
    )
    .await
    .expect("a program");
    app.load(true).await.expect("the contract is in order");

    let failed = call(&app, "get_note", r#"{"id":"bad"}"#).await;
    assert!(failed.is_error && failed.receipt.is_some(), "{failed:?}");
    assert_eq!(
        (&said(&failed)["code"], &said(&failed)["outcome"]),
        (&json!("internal"), &Value::Null)
    );
    let failed = call(&app, "add_note", r#"{"id":"n1","text":"x"}"#).await;
    assert!(failed.is_error && failed.receipt.is_some(), "{failed:?}");
    assert_eq!(
        (&said(&failed)["code"], &said(&failed)["outcome"]),
        (&json!("internal"), &json!("unknown"))
    );
    assert!(
        !format!("{failed:?}").contains("nobody"),
        "the text of a panic is for the log: {failed:?}"
    );
    let answered = call(&app, "get_note", r#"{"id":"good"}"#).await;
    assert_eq!(said(&answered)["text"], "still here", "{answered:?}");
    assert!(
        app.gateway.in_flight().is_empty(),
        "a call that panicked holds no place"
    );
}
