//! Tests which arguments a call may have, and the texts of refusals: nulls of clients that send every argument,
//! fields that are emptied, the text that models read.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{House, place, read_output};

use crate::upstreams::costly;

const CONTRACT: &str = r#"
contract: desk
collections:
  tickets:
    adapter: sheet
    settings: { connection: data, path: tickets.csv }
    key: [id]
    write: true
    shape: { id: integer, owner: { type: string, nullable: true }, due: { type: date, nullable: true } }
tools:
  - tool: list_tickets
    description: Lists tickets by owner and day.
    verb: list
    collection: tickets
    fields:
      - { name: subject, type: text }
      - { name: owner, type: text, nullable: true }
      - { name: has_no_owner, type: checkbox, column: owner, match: is-empty }
  - tool: change_ticket
    description: Changes one ticket.
    verb: update
    collection: tickets
    fields:
      - { name: id, type: number, required: true }
      - { name: subject, type: text, min_length: 2 }
      - { name: owner, type: text, nullable: true }
      - { name: due, type: date, nullable: true }
"#;

const TICKETS: &str = "id,subject,owner,due\n1,Printer,Ada,2026-01-31\n2,Network,,2026-02-28\n";

fn house() -> House {
    House::new()
        .sheets()
        .file("contracts/desk.yaml", CONTRACT)
        .file("data/tickets.csv", TICKETS)
}

fn record(answer: &Value) -> &Value {
    &answer["structuredContent"]["record"]
}

/// The calls are those of crewai-tools, mcp-use, LlamaIndex and AutoGen: null for every argument that was not set.
#[tokio::test]
async fn clients_that_send_null_for_what_was_not_set_list_and_change_nothing_else() {
    let house = house();
    let (_gateway, client) = house.serve_client();
    let listed = client
        .call(
            "list_tickets",
            json!({"subject": "Printer", "limit": null, "cursor": null}),
        )
        .await;
    assert_eq!(
        listed["structuredContent"]["records"][0]["id"], 1,
        "{listed}"
    );
    // Null asks for nothing, also of a column that may be null. A separate field asks for the ticket without an owner.
    for (arguments, expected) in [
        (
            json!({"subject": null, "owner": null, "has_no_owner": null}),
            json!([1, 2]),
        ),
        (json!({"owner": null, "has_no_owner": true}), json!([2])),
    ] {
        let found = client.call("list_tickets", arguments).await;
        let ids = found["structuredContent"]["records"].as_array();
        let ids: Vec<&Value> = ids
            .into_iter()
            .flatten()
            .map(|record| &record["id"])
            .collect();
        assert_eq!(json!(ids), expected, "{found}");
    }
    let sent =
        json!({"id": 1, "subject": "Printer jam", "owner": null, "due": null, "clear": null});
    let changed = client.call("change_ticket", sent).await;
    assert_eq!(
        record(&changed),
        &json!({"id": 1, "subject": "Printer jam", "owner": "Ada", "due": "2026-01-31"})
    );
}

#[tokio::test]
async fn an_update_empties_what_clear_names() {
    let house = house();
    let (_gateway, client) = house.serve_client();
    let changed = client
        .call("change_ticket", json!({"id": 1, "clear": ["owner", "due"]}))
        .await;
    assert_eq!(
        record(&changed),
        &json!({"id": 1, "subject": "Printer", "owner": null, "due": null}),
        "{changed}"
    );
    let both = client
        .call(
            "change_ticket",
            json!({"id": 2, "owner": "Bo", "clear": ["owner"]}),
        )
        .await;
    let content = &both["structuredContent"];
    assert_eq!(
        (&both["isError"], &content["reason"]),
        (&json!(true), &json!("set_and_cleared")),
        "{both}"
    );
    assert_eq!(content["errors"][0]["example"], json!([]));
}

/// Most frameworks show their model only this text.
#[tokio::test]
async fn the_text_of_a_refusal_tells_every_error() {
    let house = house();
    let (_gateway, client) = house.serve_client();
    let refused = client
        .call(
            "change_ticket",
            json!({"id": "1", "subject": "", "ownr": "Ada", "x": 1}),
        )
        .await;
    let text = refused["content"][0]["text"].as_str().expect("a text");
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "/id: must be of type integer. Example: 1",
            "/subject: must have at least 2 characters. Example: \"text\"",
            "/ownr: is not an argument of this tool. Did you mean \"owner\"?",
            "/x: is not an argument of this tool. Leave it out.",
        ],
        "{text}"
    );
    let message = refused["structuredContent"]["message"]
        .as_str()
        .expect("a message");
    assert_eq!(
        message,
        "Invalid arguments: 'id' must be of type integer (3 more)."
    );
}

#[test]
fn weir_validate_prints_the_text_and_takes_null_as_absent() {
    let schema = json!({
        "type": "object", "properties": { "a": { "type": "integer" }, "b": { "type": "string" } },
        "required": ["a"], "additionalProperties": false
    });
    let house = House::new()
        .file("schema.json", schema.to_string())
        .file("wrong.json", r#"{"a":"1","b":null}"#)
        .file("right.json", r#"{"a":1,"b":null}"#);
    let (code, out, _) = validate(&house, "wrong.json");
    assert_eq!(code, 1, "{out}");
    assert!(
        out.ends_with("\n/a: must be of type integer. Example: 1"),
        "{out}"
    );
    let (code, out, _) = validate(&house, "right.json");
    assert_eq!((code, &*out), (0, "The arguments are valid."));
    house.write("schema.json", format!("\u{feff}{schema}"));
    house.write("marked.json", "\u{feff}{\"a\":1}");
    let (code, out, err) = validate(&house, "marked.json");
    assert_eq!((code, &*out), (0, "The arguments are valid."), "{err}");
}

/// Runs `weir tools validate` with the schema of a house.
fn validate(house: &House, arguments: &str) -> (i32, String, String) {
    let output = Command::new(place::binary("weir"))
        .current_dir(house.path())
        .args(["tools", "validate", "--text", "schema.json", arguments])
        .output();
    read_output(output.expect("weir starts"))
}

/// A schema that takes exponentially many steps is refused, and one whose steps grow with its values counts them.
#[test]
fn weir_validate_ends_whatever_a_schema_costs() {
    let house = House::new().file("arguments.json", r#"{"a":"x"}"#);
    house.write("schema.json", costly::chain().to_string());
    let started = Instant::now();
    let (code, out, err) = validate(&house, "arguments.json");
    assert_eq!((code, &*out), (1, ""), "{err}");
    let bound = "with all references followed, and at most 200000 are accepted";
    assert!(err.contains(bound) && err.contains("schema.json"), "{err}");

    let again = json!({ "$ref": "#/$defs/list" });
    let three = json!({ "allOf": vec![json!({ "type": "array", "items": again }); 3] });
    house.write(
        "schema.json",
        json!({
            "type": "object", "properties": { "a": again },
            "$defs": { "list": { "anyOf": [{ "type": "integer" }, three] } },
        })
        .to_string(),
    );
    let many = format!(r#"{{"a":[{}1]}}"#, "[[[[[1]]]]],".repeat(200_000));
    house.write("arguments.json", many);
    let (code, out, err) = validate(&house, "arguments.json");
    let steps = "take more steps to check than one call may have";
    assert!(code == 1 && out.contains(steps), "{out}{err}");
    let took = started.elapsed();
    assert!(took < Duration::from_secs(60), "it took {took:?}");
}
