//! The total of a list, where counting takes longer than the page is worth, or fails.

use std::{fs, future::pending, sync::Arc};

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
    AdapterChange, AdapterPage, AdapterQuery, AdapterSummaryPage, AdapterSummaryQuery, CallContext,
    CollectionRef, GuestError,
    native::{Answered, NativeAdapter, install},
};

const SHAPE: &str = r#"{"name":"notes","fields":[{"key":"id","type":"string"}],"key":["id"],
    "capabilities":{"read":true,"matches":{"*":["equals"]},"order":["*"],"summaries":"count"}}"#;

/// An adapter whose count never ends, fails or ends at once, as the condition asks.
struct SlowCounter;

impl NativeAdapter for SlowCounter {
    fn name(&self) -> &str {
        "slow-counter"
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
        let next = (query.limit == 1).then(|| "more".to_owned());
        Box::pin(async {
            Ok(AdapterPage {
                records: r#"[{"id":"n1"}]"#.to_owned(),
                next,
            })
        })
    }

    fn summarize<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        query: &'a AdapterSummaryQuery,
    ) -> Answered<'a, AdapterSummaryPage> {
        let how = query
            .conditions
            .first()
            .map(|condition| condition.value.as_str());
        match how {
            Some(r#""slow""#) => Box::pin(pending()),
            Some(r#""broken""#) => Box::pin(async {
                Err(GuestError {
                    code: "unavailable".to_owned(),
                    message: "The source is away.".to_owned(),
                    field: None,
                    retry_after_ms: None,
                    details: None,
                })
            }),
            _ => Box::pin(async {
                Ok(AdapterSummaryPage {
                    records: r#"[{"count":1234}]"#.to_owned(),
                    more: false,
                })
            }),
        }
    }

    fn write<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        _: &'a AdapterChange,
    ) -> Answered<'a, String> {
        Box::pin(async { panic!("nothing is written") })
    }
}

async fn list(app: &GatewayApp, arguments: Value) -> ToolResult {
    let snapshot = app.gateway.snapshot();
    let cancel = CancellationToken::new();
    let arguments = arguments.to_string();
    let request = CallRequest {
        arguments: Some(&arguments),
        ..CallRequest::new(
            &snapshot,
            &CatalogueEndpoint::All,
            "list_notes",
            "cli",
            &cancel,
        )
    };
    match call_tool(&app.gateway, &CallerIdentity::local(), &request).await {
        CallOutcome::Complete(result) => result,
        _ => panic!("the list has no result"),
    }
}

fn structured(result: &ToolResult) -> Value {
    serde_json::from_str(result.structured.as_deref().expect("structured content")).expect("JSON")
}

fn text(result: &ToolResult) -> String {
    format!("{:?}", result.content)
}

#[tokio::test]
async fn a_count_that_takes_too_long_or_fails_costs_no_page() {
    install(Arc::new(SlowCounter));
    let folder = TempDir::new().expect("a temporary folder");
    for name in ["contracts", "plugins"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    let contract = json!({
        "contract": "notes", "title": "Notes", "description": "Notes that were taken.",
        "collections": { "notes": { "adapter": "slow-counter", "key": ["id"] } },
        "tools": [{
            "tool": "list_notes", "title": "List notes", "description": "Lists notes.", "verb": "list", "collection": "notes",
            "with_total": true, "limits": { "timeout_ms": 3000 }, "fields": [{ "name": "id", "type": "text" }],
        }],
    });
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

    let counted = list(&app, json!({ "with_total": true, "limit": 1 })).await;
    assert_eq!(structured(&counted)["total"], 1234);
    assert!(text(&counted).contains("1 record of 1234; pass `next`"));
    let whole = list(&app, json!({ "with_total": true, "id": "slow" })).await;
    assert_eq!(structured(&whole)["total"], 1, "the page is the whole list");
    assert_eq!(
        structured(&list(&app, json!({ "limit": 1 })).await).get("total"),
        None
    );

    let slow = list(
        &app,
        json!({ "with_total": true, "id": "slow", "limit": 1 }),
    )
    .await;
    assert!(!slow.is_error, "{slow:?}");
    assert_eq!(structured(&slow)["total"], Value::Null);
    assert_eq!(structured(&slow)["records"], json!([{ "id": "n1" }]));
    assert!(text(&slow).contains("could not be counted"));

    let broken = list(
        &app,
        json!({ "with_total": true, "id": "broken", "limit": 1 }),
    )
    .await;
    // The page was read: a count that fails costs no page either.
    assert!(!broken.is_error, "{broken:?}");
    assert_eq!(structured(&broken)["total"], Value::Null);
    assert!(app.gateway.in_flight().is_empty());
}
