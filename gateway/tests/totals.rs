//! The total of a list, where counting takes longer than the page is worth, or fails.

use std::future::pending;

use serde_json::{Value, json};
use weir::{GatewayApp, call::ToolResult};
use weir_plugin_host::{
    AdapterChange, AdapterPage, AdapterQuery, AdapterSummaryPage, AdapterSummaryQuery, CallContext,
    CollectionRef, GuestError,
    native::{Answered, NativeAdapter},
};

use crate::native::{call, open, structured};

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
    call(app, "list_notes", &arguments).await
}

fn text(result: &ToolResult) -> String {
    format!("{:?}", result.content)
}

#[tokio::test]
async fn a_count_that_takes_too_long_or_fails_costs_no_page() {
    let contract = json!({
        "contract": "notes", "title": "Notes", "description": "Notes that were taken.",
        "collections": { "notes": { "adapter": "slow-counter", "key": ["id"] } },
        "tools": [{
            "tool": "list_notes", "title": "List notes", "description": "Lists notes.", "verb": "list", "collection": "notes",
            "with_total": true, "limits": { "timeout_ms": 20000 }, "fields": [{ "name": "id", "type": "text" }],
        }],
    });
    let (_folder, app) = open(SlowCounter, &contract).await;

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
