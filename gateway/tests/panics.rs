//! Code in the process of the gateway that panics fails its own call: it is answered and recorded, and the next is served.

use serde_json::{Value, json};
use weir_plugin_host::{
    AdapterChange, AdapterPage, AdapterQuery, CallContext, CollectionRef,
    native::{Answered, NativeAdapter},
};

use crate::native::{call, open, structured};

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
            assert!(!asked.contains("bad"), "an unexpected row");
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
        Box::pin(async { panic!("an unexpected row") })
    }
}

#[tokio::test]
async fn a_panic_is_the_failure_of_one_call() {
    let id = json!({ "name": "id", "type": "text", "required": true });
    let text = json!({ "name": "text", "type": "text" });
    let contract = json!({
        "contract": "notes", "title": "Notes", "description": "Notes of a meeting.",
        "collections": { "notes": { "adapter": "panicking", "key": ["id"], "columns": ["id", "text"], "write": true } },
        "tools": [
            { "tool": "get_note", "title": "Get a note", "description": "Gets a note by its id.", "verb": "lookup",
              "collection": "notes", "fields": [id] },
            { "tool": "add_note", "title": "Add a note", "description": "Adds a note.", "verb": "create",
              "collection": "notes", "fields": [id, text] },
        ],
    });
    let (_folder, app) = open(Panicking, &contract).await;

    let failed = call(&app, "get_note", &json!({ "id": "bad" })).await;
    assert!(failed.is_error && failed.receipt.is_some(), "{failed:?}");
    assert_eq!(
        (
            &structured(&failed)["code"],
            &structured(&failed)["outcome"]
        ),
        (&json!("internal"), &Value::Null)
    );
    let failed = call(&app, "add_note", &json!({ "id": "n1", "text": "x" })).await;
    assert!(failed.is_error && failed.receipt.is_some(), "{failed:?}");
    assert_eq!(
        (
            &structured(&failed)["code"],
            &structured(&failed)["outcome"]
        ),
        (&json!("internal"), &json!("unknown"))
    );
    assert!(
        !format!("{failed:?}").contains("unexpected"),
        "the text of a panic is for the log: {failed:?}"
    );
    let answered = call(&app, "get_note", &json!({ "id": "good" })).await;
    assert_eq!(structured(&answered)["text"], "still here", "{answered:?}");
    assert!(
        app.gateway.in_flight().is_empty(),
        "a call that panicked holds no place"
    );
}
