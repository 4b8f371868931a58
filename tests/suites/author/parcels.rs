//! The same functions in four languages are the same tools: to clients, to callers who leave, and at the terminal.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use weir_tests::{Events, Modern, client::send};

use super::{Desk, LANGUAGES};

/// The observations of one language.
#[derive(Debug, PartialEq)]
struct Seen {
    definitions: Value,
    answers: Vec<String>,
    progress: Vec<String>,
    printed: Vec<String>,
}

/// Definitions, answers and errors of the same functions.
#[tokio::test]
async fn the_same_functions_are_the_same_tools_in_each_language() {
    let desk = Desk::new("parcels");
    let mut first: Option<Seen> = None;
    for (language, source, text) in LANGUAGES {
        let name = &format!("parcels-{language}");
        let folder = desk.begin(name, language, "tools");
        fs::write(folder.join(source), text).expect("the source is written");
        // A component in Rust has the name of its crate, and the others have the name in their source.
        let plugin = if language == "rust" { name } else { "parcels" };
        // The waiting tool is ended by its caller and not by its limit of processor time.
        let config = format!(
            "[connections.db]\nkind = \"sqlite\"\npath = \"notes.sqlite\"\nwrite = true\n\
             [plugins.{plugin}]\ndev = true\ncpu_max_ms = 60000\n[plugins.{plugin}.grants]\ndb = \"write\"\n"
        );
        fs::write(folder.join("weir.toml"), config).expect("the configuration is written");
        let notes = rusqlite::Connection::open(folder.join("notes.sqlite")).expect("a database");
        notes
            .execute_batch("CREATE TABLE notes (word TEXT)")
            .expect("an empty table");
        desk.succeed(name, &["plugin", "build"]);

        let gateway = desk.serve(name);
        let client = Modern::new(gateway.url());
        let mut answers = answers(&client).await;
        answers.extend(asked(&client, true).await);
        answers.extend(asked(&client, false).await);
        let progress = progress(&client).await;
        called_from_afar(&desk, name, &gateway.url());
        leave(&desk, name, &client, false, "cancelled").await;
        leave(&desk, name, &client, true, "ok").await;
        let noted: String = notes
            .query_row(
                "SELECT group_concat(word, ' ' ORDER BY rowid) FROM notes",
                [],
                |row| row.get(0),
            )
            .expect("what was noted");
        assert_eq!(
            noted, "waits gone",
            "{language}: what has written sees that its caller has gone, and ends by itself"
        );
        drop(gateway);
        let definitions = desk.json(name, &["plugin", "schema"]);
        let seen = Seen {
            definitions,
            answers,
            progress,
            printed: printed(&desk, name),
        };
        match &first {
            None => {
                expect(&seen);
                first = Some(seen);
            }
            Some(first) => assert_eq!(&seen, first, "{language}"),
        }
    }
}

/// Checks the behaviour of the first language, with which the others are compared.
fn expect(seen: &Seen) {
    assert!(
        seen.answers[4].contains(r#"{"total":13,"light":[3,1],"unit":"kg"}"#),
        "{}",
        seen.answers[4]
    );
    assert!(
        seen.answers[12].contains(r#""code":"not_found""#),
        "{}",
        seen.answers[12]
    );
    assert!(
        seen.answers[13].contains(r#""reason":"too_early""#),
        "{}",
        seen.answers[13]
    );
    let tools = seen.definitions.as_array().expect("tools");
    let drawn = tools
        .iter()
        .find(|tool| tool["name"] == "draw")
        .expect("it is there");
    assert_eq!(drawn["execution"], json!({ "taskSupport": "optional" }));
    let step = |step: u32| json!({"progressToken": "p", "progress": step, "total": 2, "message": format!("step {step}")});
    assert_eq!(seen.progress, [step(1).to_string(), step(2).to_string()]);
}

/// The part of a reply that is compared byte by byte.
#[derive(Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    result: Called<'a>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(borrow)]
    content: &'a RawValue,
    #[serde(rename = "isError")]
    is_error: bool,
}

async fn answers(client: &Modern) -> Vec<String> {
    let mut answers = Vec::new();
    for (tool, arguments) in [
        ("deploy", json!({"environment": "prod", "service": "web"})),
        (
            "deploy",
            json!({"environment": "Gr\u{fc}\u{df}e \u{1f44b}", "service": "\"web\"\n", "version": "1"}),
        ),
        ("deploy", json!({"environment": "prod"})),
        ("deploy", json!({"environment": "", "service": "web"})),
        ("weigh", json!({"parcels": [3, 9, 1], "limits": {"low": 4}})),
        (
            "weigh",
            json!({"parcels": [9007199254740991_i64], "limits": {"low": 0, "note": "none is light"}, "unit": "g"}),
        ),
        ("weigh", json!({"parcels": [], "limits": {"low": 4}})),
        ("weigh", json!({"parcels": [1.5], "limits": {"low": 4}})),
        ("weigh", json!({"parcels": [1], "limits": {}, "unit": "t"})),
        ("name_of", json!({"number": 2})),
        ("name_of", json!({"number": 2, "suffix": "!"})),
        ("name_of", json!({"number": 2, "suffix": null})),
        ("name_of", json!({"number": 4})),
        ("refuse", json!({})),
        ("refuse", json!({"reason": "conflict"})),
        ("draw", json!({})),
    ] {
        let answer = client
            .ask("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        let reply: Reply<'_> = serde_json::from_str(&answer.text)
            .unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        let Called {
            structured,
            content,
            is_error,
        } = reply.result;
        let outcome = format!(
            "{tool} {arguments}: {is_error} {} {content}",
            structured.map_or("", RawValue::get)
        );
        // Each call has its own id.
        let call_id = answer.result()["structuredContent"]["call_id"].as_str();
        answers.push(call_id.map_or(outcome.clone(), |id| outcome.replace(id, "CALL")));
    }
    answers
}

/// Returns the messages of `draw` before its answer.
async fn progress(client: &Modern) -> Vec<String> {
    let answer = client
        .ask("tools/call", waiting_for("draw", json!({})))
        .await;
    let (last, before) = answer.messages.split_last().expect("an answer");
    assert_eq!(last["result"]["isError"], false, "{last}");
    before
        .iter()
        .map(|message| {
            assert_eq!(message["method"], "notifications/progress", "{message}");
            message["params"].to_string()
        })
        .collect()
}

fn waiting_for(tool: &str, arguments: Value) -> Value {
    json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}})
}

/// Disconnects from a call that waits until then, and waits until the audit trail has its outcome.
async fn leave(desk: &Desk, name: &str, client: &Modern, note: bool, outcome: &str) {
    let mut call =
        Events::open(client.request("tools/call", waiting_for("wait", json!({"note": note}))))
            .await;
    let answer = call
        .next(Duration::from_secs(60))
        .await
        .expect("it says that it waits");
    assert_eq!(answer["params"]["message"], "waiting", "{name}: {answer}");
    drop(call);
    let began = Instant::now();
    loop {
        let out = desk.succeed(name, &["audit", "query", "--json", "--kind", "call"]);
        let records = out
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a record is JSON"));
        let waits: Vec<Value> = records.filter(|record| record["tool"] == "wait").collect();
        if waits.len() == 1 + usize::from(note) {
            assert_eq!(
                waits[usize::from(note)]["outcome"],
                outcome,
                "{name}: {waits:?}"
            );
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{name}: the call goes on without its caller: {out}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the question of `remove`, and the result of answering it.
async fn asked(client: &Modern, sure: bool) -> [String; 2] {
    let ask = async |params: &Value| {
        let mut params = params.clone();
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            .to_string();
        let request = client
            .raw(body)
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call");
        send(request.header("mcp-name", "remove")).await.reply()["result"].clone()
    };
    let mut call = json!({"name": "remove", "arguments": {"environment": "prod"}});
    let question = ask(&call).await;
    assert_eq!(question["resultType"], "input_required", "{question}");
    call["inputResponses"] = json!({"sure": {"action": "accept", "content": {"sure": sure}}});
    call["requestState"] = question["requestState"].clone();
    let done = ask(&call).await;
    assert_eq!(
        done["structuredContent"],
        json!({"removed": sure}),
        "{done}"
    );
    [
        question["inputRequests"]["sure"]["params"].to_string(),
        done["structuredContent"].to_string(),
    ]
}

/// Over a URL there is only the schema: each parameter has its own flag, required ones may be given in order without a flag,
/// and the terminal settings that the author declared in the plugin are unknown.
fn called_from_afar(desk: &Desk, name: &str, url: &str) {
    let answer = r#"{"environment":"prod","service":"web","version":"latest"}"#;
    let call =
        |words: &[&str]| desk.run(name, &[&["call", "--url", url, "deploy"], words].concat());
    for words in [
        ["prod", "web"].as_slice(),
        &["prod", "--service", "web"],
        &["--service=web", "--environment=prod"],
    ] {
        let (code, out, err) = call(words);
        assert_eq!(
            (code, out.as_str()),
            (0, answer),
            "{name}: {words:?}: {err}"
        );
    }
    let (code, _, err) = call(&["prod", "-s", "web"]);
    assert!(
        code == 2 && err.contains("unexpected argument '-s'"),
        "{name}: {err}"
    );
    let (code, help, err) = call(&["--help"]);
    assert_eq!(code, 0, "{name}: {err}");
    assert!(
        help.contains("Target environment [required]") && help.contains("--service <STRING>"),
        "{name}: {help}"
    );
}

/// Returns what `weir call` prints for words that are written as the author has declared them.
fn printed(desk: &Desk, name: &str) -> Vec<String> {
    let message = r#"{"environment":"prod","service":"web","version":"2"}"#;
    let input = desk.path().join(name).join("deploy.json");
    fs::write(
        &input,
        r#"{"environment": "test", "service": "web", "version": "2"}"#,
    )
    .expect("a file of arguments");
    for words in [
        ["prod", "-s", "web", "--version", "2"].as_slice(),
        &["--environment", "prod", "-s=web", "--version=2"],
        &["--input", "deploy.json", "--environment", "prod"],
        &[
            "--arguments",
            r#"{"environment": "test", "service": "web"}"#,
            "prod",
            "--version",
            "2",
        ],
    ] {
        assert_eq!(
            desk.succeed(name, &[&["call", "deploy"], words].concat()),
            message,
            "{name}: {words:?}"
        );
    }
    let weighed = [
        "call",
        "weigh",
        "--parcels",
        "3",
        "--parcels",
        "9",
        "--limits",
        r#"{"low":4,"note":"some"}"#,
        "--unit",
        "g",
    ];
    assert_eq!(
        desk.succeed(name, &weighed),
        r#"{"total":12,"light":[3],"note":"some","unit":"g"}"#,
        "{name}: lists are repeated, and what is nested is JSON"
    );
    let help = desk.succeed(name, &["call", "deploy", "--help"]);
    for message in [
        "Deploy a service.",
        "Usage: weir call deploy [OPTIONS] [ENVIRONMENT]",
        "[ENVIRONMENT]",
        "Target environment [required]",
        "-s, --service <NAME>",
        "Service name. [required]",
        "Version or image tag. [by default latest]",
        "--input <FILE>",
    ] {
        assert!(help.contains(message), "{name}: {message}\n{help}");
    }
    let (code, out, err) = desk.run(name, &["call", "refuse", "--reason", "conflict"]);
    assert_eq!(code, 1, "{out} {err}");
    assert!(
        out.is_empty() && err.contains("weir: It is too early for that"),
        "{name}: {out} {err}"
    );
    let (code, out, err) = desk.run(name, &["call", "--json", "refuse", "--reason", "conflict"]);
    let result: Value = serde_json::from_str(&out).expect("one result");
    assert!(
        code == 1 && err.is_empty() && result["isError"] == true,
        "{name}: {out} {err}"
    );
    assert!(
        result["_meta"]["dev.weir/receipt"].is_string(),
        "{name}: {out}"
    );
    let helps = ["weigh", "name_of", "refuse", "remove", "draw", "wait"]
        .map(|tool| desk.succeed(name, &["call", tool, "--help"]));
    [vec![help], helps.to_vec()].concat()
}
