//! `weir plugin check` fails where an agent would.

use std::fs;

use weir_tests::place;

use super::Desk;

/// A check says what is wrong with what was built, and where.
#[test]
fn a_check_fails_where_an_agent_would() {
    let desk = Desk::new("flawed");
    let folder = desk.begin("flawed", "js", "tools");
    fs::write(
        folder.join("plugin.js"),
        r#"
import { integer, plugin, record, sql, text, tool } from "./sdk/weir.js";
const wrong = tool({ name: "count_things", description: "Counts all things and answers their number.", returns: record({ count: integer() }),
  run: () => ({ count: "many" }) });
const lost = tool({ name: "greet_all", description: "Greets whoever is there, by a name.", readOnly: true, run: () => "Hello" });
const spare = tool({ name: "move_all", description: "Moves all things and says how many.", run: () => 2 });
const crash = tool({ name: "crash_always", run: () => null.x });
const look = tool({ name: "look_up", description: "Looks up a thing and answers nothing at all.", readOnly: true, requests: ["sql"],
  parameters: { id: integer() }, run: ({ id }) => { sql.execute("db", "DELETE FROM things WHERE id = ?", [id]); } });
export const { about, tools } = plugin({ name: "flawed", version: "0.1.0", tools: [wrong, lost, spare, crash, look] });
"#,
    )
    .expect("the source is written");
    let config = fs::read_to_string(folder.join("weir.toml")).expect("a configuration");
    let database = "[connections.db]\nkind = \"sqlite\"\npath = \"things.sqlite\"\nwrite = true\n[plugins.flawed.grants]\ndb = \"write\"\n";
    fs::write(folder.join("weir.toml"), format!("{config}\n{database}"))
        .expect("the configuration is written");
    let things = rusqlite::Connection::open(folder.join("things.sqlite")).expect("a database");
    things
        .execute_batch("CREATE TABLE things (id INTEGER); INSERT INTO things VALUES (0), (1)")
        .expect("two things");

    let (code, out, err) = desk.run("flawed", &["plugin", "check", "--once"]);
    assert_eq!(code, 1, "{out}\n{err}");
    for told in [
        "fail  outputs conform: count_things",
        "fail  answers over HTTP: greet_all",
        "warn  documented: crash_always: the tool has no description",
        "warn  documented: look_up: the parameter `id` has no description",
        "fail  reads only: look_up",
    ] {
        assert!(out.contains(told), "{told}\n{out}");
    }
    for told in [
        "The tool failed: TypeError: `greet_all` returned a value and declares none: write `returns: text()`",
        "The value is left out of the answer: `move_all` returned a value and declares none: write `returns: integer()`",
    ] {
        assert!(err.contains(told), "{told}\n{err}");
    }
    assert!(
        !out.contains("HTTP: move_all"),
        "it may have written, so it has not failed: {out}"
    );
    let count = things.query_row("SELECT count(*) FROM things", [], |row| {
        row.get::<_, i64>(0)
    });
    assert_eq!(count.expect("a count"), 2, "nothing is changed by a check");
}

/// What the schemas and the defaults say is held against each other before anybody calls.
#[test]
fn schemas_that_do_not_compile_and_defaults_that_do_not_fit_are_said_with_their_place() {
    let desk = Desk::new("ill");
    let folder = desk.begin("ill", "js", "tools");
    for (parameter, told) in [
        (
            "text({ pattern: \"(\", description: \"A pattern that is none.\" })",
            "fail  schemas compile",
        ),
        (
            "text({ minLength: 3, default: \"ab\", description: \"Too short by itself.\" })",
            "fail  defaults fit",
        ),
        (
            "integer({ maximum: 3, default: 4, description: \"Too large by itself.\" })",
            "fail  defaults fit",
        ),
    ] {
        let source = format!(
            "import {{ integer, plugin, text, tool }} from \"./sdk/weir.js\";\n\
             const ill = tool({{ name: \"ill\", description: \"Does nothing, and does it for ever.\",\n\
             parameters: {{ value: {parameter}, other: text({{ default: \"\", description: \"Fits.\" }}), more: integer({{ default: 1, description: \"Fits.\" }}) }}, run: () => undefined }});\n\
             export const {{ about, tools }} = plugin({{ name: \"ill\", version: \"0.1.0\", tools: [ill] }});\n"
        );
        fs::write(folder.join("plugin.js"), source).expect("the source is written");
        desk.succeed("ill", &["plugin", "build"]);
        let (code, out, err) = desk.run("ill", &["plugin", "check", "--once"]);
        assert_eq!(code, 1, "{parameter}: {out}\n{err}");
        let line = out
            .lines()
            .find(|line| line.starts_with(told))
            .unwrap_or_else(|| panic!("{told}: {out}"));
        assert!(line.contains("value"), "it says where: {line}");
        assert_eq!(out.matches("fail  ").count(), 1, "{out}");
        assert!(
            !out.contains("answers over"),
            "what is ill is not tried: {out}"
        );
    }
}

/// What is no component, or is none of this interface, fails at once, and says so to programs too.
#[test]
fn what_does_not_load_fails_and_nothing_else_is_tried() {
    let desk = Desk::new("broken");
    desk.begin("broken", "js", "tools");
    let guest = fs::read(place::guest("tools-js")).expect("a guest can be read");
    for (name, bytes, why) in [
        ("text.wasm", b"not a component".to_vec(), ""),
        ("cut.wasm", guest[..guest.len() / 2].to_vec(), ""),
        (
            "moody.wasm",
            fs::read(place::guest("tools-js-moody")).expect("a guest can be read"),
            "differ from one instance",
        ),
        (
            "library.wasm",
            fs::read(place::native("tools-rust")).expect("a library can be read"),
            "native code",
        ),
    ] {
        fs::write(desk.path().join("broken").join(name), bytes).expect("a file is written");
        let (code, out, err) = desk.run("broken", &["plugin", "check", name, "--json"]);
        assert_eq!(code, 1, "{name}: {out}\n{err}");
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let checks = report["checks"].as_array().expect("checks");
        assert!(
            report["ok"] == false && checks.len() == 1,
            "{name}: {report}"
        );
        assert_eq!(
            (&checks[0]["check"], &checks[0]["level"]),
            (&"loads".into(), &"fail".into()),
            "{name}: {report}"
        );
        assert!(checks[0].to_string().contains(why), "{name}: {report}");
    }
}

/// The check answers no question and follows no task: a tool that needs one of them is not at fault.
#[test]
fn a_tool_that_asks_first_or_runs_only_as_a_task_passes() {
    let desk = Desk::new("asking");
    let folder = desk.begin("asking", "js", "tools");
    fs::write(
        folder.join("plugin.js"),
        r#"
import { ask, boolean, form, integer, plugin, tool } from "./sdk/weir.js";
const sure = tool({ name: "remove_all", description: "Removes all things, once its caller is sure.", returns: integer(),
  run: () => ask({ sure: form("Sure?", { sure: boolean() }) }) });
const url = tool({ name: "sign_in", description: "Sends its caller to a page to sign in.", returns: integer(),
  run: () => ask({ page: { method: "elicitation/create",
    params: { mode: "url", message: "Sign in.", url: "https://example.org/", elicitationId: "1" } } }) });
const long = tool({ name: "move_all", description: "Moves all things, which takes long.", task: "required",
  returns: integer(), run: () => 1 });
export const { about, tools } = plugin({ name: "asking", version: "0.1.0", tools: [sure, url, long] });
"#,
    )
    .expect("the source is written");
    let (code, out, err) = desk.run("asking", &["plugin", "check", "--once"]);
    assert_eq!(code, 0, "{out}\n{err}");
    for told in [
        "ok    answers over HTTP",
        "ok    answers over stdio",
        "ok    outputs conform",
    ] {
        assert!(out.contains(told), "{told}\n{out}");
    }
}
