//! Tests what a caller sees of a tool that fails: one safe sentence, even if the caller listens to the log.

use std::fs;

use serde_json::json;
use weir_tests::Modern;

use super::Desk;

const SENTENCE: &str = "The tool failed; its operator finds the reason in the log.";

/// The tools that fail in a language, and the log line of each.
type Failing = &'static [(&'static str, &'static str)];

const THROWN: Failing = &[
    ("leak", "password=leaked"),
    ("coded", "password=coded"),
    ("details", "JSON"),
    ("large", "cast it to text"),
    ("many", "more than 1000 rows"),
    ("undeclared", "declares none"),
];
const FORGOTTEN: Failing = &[
    ("leak", "returned false and refused nothing"),
    ("undeclared", "declares none"),
    ("idle", "`idle` has no function: write `.run`"),
];

/// A language, where its source lies, the tools that fail, and the source.
const SOURCES: [(&str, &str, Failing, &str); 3] = [
    (
        "js",
        "plugin.js",
        THROWN,
        r#"
import { integer, optional, plugin, record, refuse, sql, text, tool } from "./sdk/weir.js";
const leak = tool({ name: "leak", run: () => { throw new Error("password=leaked"); } });
const coded = tool({ name: "coded", run: () => { throw Object.assign(new Error("password=coded"), { code: "E_ORDER" }); } });
const details = tool({ name: "details", run: () => refuse("busy", "Later.", { details: { until: 10n } }) });
const speak = tool({ name: "speak", run: (_, context) => context.log("a word") });
const sum = tool({ name: "sum", parameters: { of: record({ a: integer({ default: 2 }), note: optional(text()) }) },
  returns: record({ a: integer(), note: optional(text()) }), run: ({ of }) => of });
const large = tool({ name: "large", requests: ["sql"], run: () => void sql.query("db", "SELECT 9007199254740993 AS key") });
const many = tool({ name: "many", requests: ["sql"], run: () => void sql.query("db",
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) SELECT i FROM n") });
const undeclared = tool({ name: "undeclared", readOnly: true, run: () => "a word" });
const write = tool({ name: "write", requests: ["sql"], run: () => sql.execute("db", "INSERT INTO filled VALUES (1)") });
export const { about, tools } = plugin({ name: "failing", version: "0.1.0", tools: [leak, coded, details, speak, sum, large, many, undeclared, write] });
"#,
    ),
    (
        "python",
        "app.py",
        THROWN,
        r#"
import datetime
from dataclasses import dataclass
from weir_plugin import Context, Refusal, plugin, sql, tool

@tool
def leak() -> None:
    raise Exception("password=leaked")

@tool
def coded() -> None:
    raise KeyError("password=coded")

@tool
def details() -> None:
    raise Refusal("busy", "Later.", details={"until": datetime.date(2026, 2, 28)})

@tool
def speak(ctx: Context) -> None:
    ctx.log("a word")

@dataclass
class Sum:
    a: int = 2
    note: str | None = None

@tool
def sum(of: Sum) -> Sum:
    return of

@tool(requests=["sql"])
def large() -> None:
    if sql.query("db", "SELECT 9007199254740993 AS key") == [{"key": 9007199254740993}]:
        raise ValueError("cast it to text is not needed here")

@tool(requests=["sql"])
def many() -> None:
    sql.query("db", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001) SELECT i FROM n")

@tool(read_only=True)
def undeclared():
    return "a word"

@tool(requests=["sql"])
def write():
    return sql.execute("db", "INSERT INTO filled VALUES (1)")

About, Tools = plugin("failing", "0.1.0", leak, coded, details, speak, sum, large, many, undeclared, write)
"#,
    ),
    (
        "c",
        "plugin.c",
        FORGOTTEN,
        r#"
#include "sdk/weir.h"

static bool leak(weir_call *call) { return false; }

static bool undeclared(weir_call *call) {
    weir_print_text(call, "a word");
    return true;
}

static bool write_row(weir_call *call) {
    uint64_t changed;
    if (!weir_execute(call, "db", "INSERT INTO filled VALUES (1)", "[]", &changed)) return false;
    weir_print_integer(call, (int64_t)changed);
    return true;
}

static bool speak(weir_call *call) {
    weir_log("info", "a word");
    return true;
}

static const weir_parameter SUM[] = {{.name = "of", .schema = "{\"type\":\"object\"}"}, {0}};

static bool sum(weir_call *call) {
    weir_value a = weir_member(weir_argument(call, "of"), "a");
    weir_print(call, "{\"a\":");
    weir_print_integer(call, weir_is_given(a) ? weir_integer(a) : 2);
    weir_print(call, "}");
    return true;
}

static const weir_tool TOOLS[] = {
    {.name = "leak", .run = leak},
    {.name = "undeclared", .read_only = WEIR_YES, .run = undeclared},
    {.name = "write", .requests = "\"sql\"", .run = write_row},
    {.name = "speak", .run = speak},
    {.name = "idle"},
    {.name = "sum", .parameters = SUM, .returns = "{\"type\":\"object\"}", .run = sum},
    {0},
};
const weir_plugin weir_this_plugin = {"failing", "0.1.0", TOOLS};
"#,
    ),
];

/// Tools that abandon an answer: without freeing memory, each would leave more behind than its instance may have, in one
/// call or in the second (an instance is used again while it uses less than 80% of its memory).
const CHANGING: &str = r#"
#include <string.h>

#include "sdk/weir.h"

static char large[300 << 10];

static const char *filled(void) {
    memset(large, ' ', sizeof large - 1);
    memcpy(large, "[]", 2);
    return large;
}

static bool fall_back(weir_call *call) {
    static char name[65];
    memset(name, 'x', sizeof name - 1);
    weir_value rows;
    for (int i = 0; i < 8000; i++) {
        if (weir_query(call, name, "SELECT 1", "[]", 1, &rows)) return weir_nothing(call);
    }
    weir_print(call, "[]");
    return true;
}

static bool ask_after_all(weir_call *call) {
    static const char QUESTION[] = "{\"sure\":{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"Sure?\","
                                   "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"sure\":{\"type\":\"boolean\"}}}}}}";
    weir_print(call, filled());
    weir_content(call, filled());
    return weir_ask(call, QUESTION, NULL);
}

static bool refuse_after_all(weir_call *call) {
    for (int i = 0; i < 20; i++) {
        weir_ask(call, filled(), NULL);
        weir_refuse(call, "busy", filled(), NULL, 0);
    }
    return weir_nothing(call);
}

static const weir_tool TOOLS[] = {
    {.name = "fall_back", .returns = "{\"type\":\"array\"}", .requests = "\"sql\"", .run = fall_back},
    {.name = "ask_after_all", .returns = "{\"type\":\"array\"}", .run = ask_after_all},
    {.name = "refuse_after_all", .returns = "{\"type\":\"array\"}", .run = refuse_after_all},
    {0},
};
const weir_plugin weir_this_plugin = {"changing", "0.1.0", TOOLS};
"#;

#[tokio::test]
async fn the_text_of_a_failure_reaches_the_log_and_no_caller() {
    let desk = Desk::new("failing");
    for (language, source, failing, text) in SOURCES {
        let name = &format!("failing-{language}");
        let folder = desk.begin(name, language, "tools");
        fs::write(folder.join(source), text).expect("the source is written");
        let config = "[connections.db]\nkind = \"sqlite\"\npath = \"data.sqlite\"\nwrite = true\n[plugins.failing]\ndev = true\n\
                      [plugins.failing.grants]\ndb = \"write\"\n";
        fs::write(folder.join("weir.toml"), config).expect("the configuration is written");
        let database = rusqlite::Connection::open(folder.join("data.sqlite")).expect("a database");
        database
            .execute_batch("CREATE TABLE filled (a)")
            .expect("a table");
        desk.succeed(name, &["plugin", "build"]);
        let gateway = desk.serve(name);
        let client = Modern::new(gateway.url());
        let spoken = client.call_listening("speak", json!({})).await;
        let heard = |message: &serde_json::Value| message["params"]["data"] == "a word";
        assert!(spoken.messages.iter().any(heard), "{language}: {spoken:?}");
        for &(tool, why) in failing {
            let answer = client.call_listening(tool, json!({})).await;
            let reply = &answer.result()["structuredContent"];
            assert_eq!(
                (&reply["code"], &reply["message"]),
                (&json!("plugin_failed"), &json!(SENTENCE)),
                "{tool}: {reply}"
            );
            assert_eq!(answer.messages.len(), 1, "{language}: {tool}: {answer:?}");
            let id = reply["call_id"].as_str().expect("an id");
            gateway.wait_for_log(why);
            let log = gateway.log();
            assert!(
                log.lines()
                    .any(|line| line.contains(id) && line.contains(why)),
                "{language}: {tool}: {log}"
            );
        }
        // A caller who received an error would call again, and the row would be written twice.
        let written = client.call_listening("write", json!({})).await;
        assert_ne!(written.result()["isError"], true, "{language}: {written:?}");
        assert_eq!(written.messages.len(), 1, "{language}: {written:?}");
        gateway.wait_for_log("The value is left out of the answer: `write");
        let rows = database.query_row("SELECT count(*) FROM filled", [], |row| {
            row.get::<_, i64>(0)
        });
        assert_eq!(rows.expect("a count"), 1, "{language}");
        let summed = client.call("sum", json!({ "of": {} })).await;
        assert_eq!(
            summed["structuredContent"],
            json!({ "a": 2 }),
            "{language}: {summed}"
        );
    }
}

/// An instance serves many calls: in C it regains the memory of an abandoned answer and of an abandoned error.
#[tokio::test]
async fn what_a_tool_in_c_gave_up_takes_no_memory() {
    let desk = Desk::new("changing");
    let folder = desk.begin("changing", "c", "tools");
    fs::write(folder.join("plugin.c"), CHANGING).expect("the source is written");
    let config = "[plugins.changing]\ndev = true\nmemory_max_mb = 2\nhost_calls_max = 8000\n";
    fs::write(folder.join("weir.toml"), config).expect("the configuration is written");
    desk.succeed("changing", &["plugin", "build"]);
    let gateway = desk.serve("changing");
    let client = Modern::able(gateway.url(), json!({ "elicitation": {} }));
    for _ in 0..8 {
        let fallen = client.call("fall_back", json!({})).await;
        assert_eq!(
            fallen["structuredContent"],
            json!({ "result": [] }),
            "{fallen}"
        );
        let refused = client.call("refuse_after_all", json!({})).await;
        assert_eq!(
            refused["structuredContent"]["code"], "not_found",
            "{refused}"
        );
        let asked = client.call("ask_after_all", json!({})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
    }
}
