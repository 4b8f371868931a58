//! What a caller hears of a tool that fails: one safe sentence, also where the caller listens to the log.

use std::fs;

use serde_json::json;
use weir_tests::{Gateway, Modern};

use super::Desk;

const SENTENCE: &str = "The tool failed; its operator finds the reason in the log.";

const SOURCES: [(&str, &str, &str); 2] = [
    (
        "js",
        "plugin.js",
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
export const { about, tools } = plugin({ name: "failing", version: "0.1.0", tools: [leak, coded, details, speak, sum, large, many] });
"#,
    ),
    (
        "python",
        "app.py",
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

About, Tools = plugin("failing", "0.1.0", leak, coded, details, speak, sum, large, many)
"#,
    ),
];

#[tokio::test]
async fn the_text_of_a_failure_reaches_the_log_and_no_caller() {
    let desk = Desk::new("failing");
    for (language, source, text) in SOURCES {
        let name = &format!("failing-{language}");
        let folder = desk.begin(name, language, "tools");
        fs::write(folder.join(source), text).expect("the source is written");
        let config = "[connections.db]\nkind = \"sqlite\"\npath = \"data.sqlite\"\n[plugins.failing]\ndev = true\n\
                      [plugins.failing.grants]\ndb = \"read\"\n";
        fs::write(folder.join("weir.toml"), config).expect("the configuration is written");
        rusqlite::Connection::open(folder.join("data.sqlite"))
            .and_then(|database| database.execute_batch("CREATE TABLE empty (a)"))
            .expect("a database");
        desk.succeed(name, &["plugin", "build"]);
        let gateway = Gateway::start(desk.weir(name, &["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]));
        let client = Modern::new(gateway.url());
        let listen = async |tool: &str| {
            let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
            client.ask("tools/call", json!({ "name": tool, "arguments": {}, "_meta": meta })).await
        };
        let spoken = listen("speak").await;
        let heard = |message: &serde_json::Value| message["params"]["data"] == "a word";
        assert!(spoken.messages.iter().any(heard), "{language}: {spoken:?}");
        for (tool, why) in [
            ("leak", "password=leaked"),
            ("coded", "password=coded"),
            ("details", "JSON"),
            ("large", "cast it to text"),
            ("many", "more than 1000 rows"),
        ] {
            let answer = listen(tool).await;
            let told = &answer.result()["structuredContent"];
            assert_eq!(
                (&told["code"], &told["message"]),
                (&json!("plugin_failed"), &json!(SENTENCE)),
                "{tool}: {told}"
            );
            assert_eq!(answer.messages.len(), 1, "{language}: {tool}: {answer:?}");
            let id = told["call_id"].as_str().expect("an id");
            gateway.wait_for_log(why);
            let log = gateway.log();
            assert!(log.lines().any(|line| line.contains(id) && line.contains(why)), "{language}: {tool}: {log}");
        }
        let summed = client.call("sum", json!({ "of": {} })).await;
        assert_eq!(summed["structuredContent"], json!({ "a": 2 }), "{language}: {summed}");
    }
}
