//! `weir call` on a terminal: texts of servers are shown there, but cannot control it.

use std::{fs, process::Command};

use serde_json::{Value, json};
use weir_tests::{House, Modern, place, read_output, strangers::hostile};

use super::{added::on_a_terminal, listed, trusted};

/// Returns `weir` in a house, without further options.
fn weir(house: &House, words: &[&str]) -> Command {
    let mut command = Command::new(place::binary("weir"));
    command.args(words).current_dir(house.path());
    command
}

fn run(mut command: Command) -> (i32, String, String) {
    read_output(command.output().expect("weir starts"))
}

/// Returns a house with an extracted document of one tool, `echo`.
fn documented(description: &str, properties: Value) -> House {
    documented_as("echo", description, properties)
}

/// Returns a house with an extracted document of one tool.
fn documented_as(name: &str, description: &str, properties: Value) -> House {
    let schema = json!({"type": "object", "properties": properties});
    let tool = json!({
        "type": "tool", "name": name, "description": description, "meta": {},
        "detail": {"input": {"json": schema}},
    });
    let document = json!({"server": {"name": "it"}, "items": [tool]});
    House::new().file("doc.json", document.to_string())
}

/// Returns what `weir call` sent to the server, or what it prints.
fn call(house: &House, line: &[&str]) -> Result<Value, String> {
    let server = hostile(&["tools"]);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let words = [
        &["call", "--from", "doc.json", "echo"],
        line,
        &["--"],
        &server,
    ]
    .concat();
    let (code, out, err) = run(weir(house, &words));
    if code != 0 {
        return Err(err);
    }
    let sent: Value = serde_json::from_str(&out).expect("what the server was sent");
    Ok(sent["arguments"].clone())
}

#[test]
fn no_text_of_others_steers_a_terminal() {
    let steering = "Reads.\u{1b}[2J\u{9b}31m\u{7}\u{202e}x";
    let house = documented(
        steering,
        json!({"a": {"type": "string", "description": steering}}),
    );
    let list = ["call", "--from", "doc.json"];
    let (code, shown) = on_a_terminal(&weir(&house, &list), "", || {});
    assert!(code == 0 && shown.contains("Reads.[2J31mx"), "{shown}");
    let (_, out, _) = run(weir(&house, &list));
    assert!(out.contains(steering), "a program reads it as it is: {out}");
    let help = [&list[..], &["echo", "--help"]].concat();
    let (code, shown) = on_a_terminal(&weir(&house, &help), "", || {});
    assert!(code == 0, "{shown}");
    assert_eq!(shown.matches("Reads.[2J31mx").count(), 2, "{shown}");
    assert!(!shown.contains("\u{1b}[2J"), "{shown}");
    // What a tool answers.
    let server = hostile(&["tools"]);
    let text = "{\"a\": \"\u{9b}31m\"}";
    let words = [
        "call",
        "--from",
        "doc.json",
        "echo",
        "--arguments",
        text,
        "--",
    ];
    let mut words = words.to_vec();
    words.extend(server.iter().map(String::as_str));
    let (code, shown) = on_a_terminal(&weir(&house, &words), "", || {});
    assert!(code == 0 && !shown.contains('\u{9b}'), "{shown}");
}

/// It was dropped, with `--json` too.
#[test]
fn a_value_that_is_no_object_is_printed() {
    let house = documented_as("pair", "Returns two numbers.", json!({}));
    let server = hostile(&["tools"]);
    let mut words = vec!["call", "--from", "doc.json", "pair", "--"];
    words.extend(server.iter().map(String::as_str));
    let (code, out, err) = run(weir(&house, &words));
    assert_eq!((code, out.trim()), (0, "[1,2]"), "{err}");
}

#[test]
fn an_odd_member_of_an_answer_costs_itself_alone() {
    let house = documented_as("odd", "Returns odd members.", json!({}));
    let server = hostile(&["tools"]);
    let mut words = vec!["call", "--from", "doc.json", "odd", "--"];
    words.extend(server.iter().map(String::as_str));
    let (code, out, err) = run(weir(&house, &words));
    assert_eq!(code, 0, "{err}");
    let printed: Value = serde_json::from_str(&out).expect("JSON");
    let id = 1_234_567_890_123_456_789_i64;
    assert_eq!(
        printed,
        json!({ "id": id, "twice": 2, "large": null, "half": "\u{fffd}" })
    );
    assert!(err.contains("not read as the server answered it"), "{err}");
}

#[test]
fn a_call_by_a_document_is_validated_and_takes_words_as_people_write_them() {
    let house = documented(
        "Returns what it is sent.",
        json!({
            "count": {"type": "integer"}, "exact": {"type": "boolean"},
            "meta": {"type": "object", "properties": {"tag": {"type": "string"}, "size": {"type": "integer"}}},
        }),
    );
    let refused = call(&house, &["--count", "5.5"]).expect_err("it is no integer");
    assert!(
        refused.contains("count") && refused.contains("integer"),
        "{refused}"
    );
    let refused = call(&house, &["--meta.size", "x"]).expect_err("it is no integer");
    assert!(refused.contains("size"), "{refused}");
    let twice = ["--meta.tag", "x", "--meta", r#"{"tag":"q"}"#];
    let refused = call(&house, &twice).expect_err("two tags are given");
    assert!(
        refused.contains("--meta.tag and --meta both give `meta.tag`"),
        "{refused}"
    );
    assert_eq!(
        call(
            &house,
            &[
                "--count",
                "5",
                "--exact",
                "TRUE",
                "--meta.tag",
                "7",
                "--meta.size=3"
            ]
        ),
        Ok(json!({"count": 5, "exact": true, "meta": {"tag": "7", "size": 3}}))
    );
}

#[tokio::test]
async fn a_call_shows_its_progress_on_a_terminal() {
    let server = hostile(&["tools"]);
    let house = House::new().config(&trusted("bad", &server));
    let gateway = house.serve();
    listed(&Modern::new(gateway.url()), "bad_progress").await;
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let (code, document, err) = run(weir(&house, &[&["extract", "--"], &server[..]].concat()));
    assert_eq!(code, 0, "{err}");
    fs::write(house.path().join("doc.json"), document).expect("a document");
    let url = gateway.url();
    for words in [
        [
            &["call", "--from", "doc.json", "progress", "--"],
            &server[..],
        ]
        .concat(),
        vec!["call", "--url", &url, "bad_progress"],
        vec!["call", "--config", "weir.toml", "bad_progress"],
    ] {
        let (code, shown) = on_a_terminal(&weir(&house, &words), "", || {});
        assert!(
            code == 0 && shown.contains("… step 1 1/3") && shown.ends_with('\n'),
            "{words:?}: {shown:?}"
        );
        let (code, out, err) = run(weir(&house, &words));
        assert!(
            code == 0 && !out.contains("step") && !err.contains("step"),
            "{words:?}: {out}{err}"
        );
    }
}
