//! The component itself.

use std::{cell::RefCell, collections::BTreeMap, hint::black_box};

use serde_json::{Value, json};

use self::generated::{
    exports::weir::plugin::{
        about::Guest as About,
        collections::{Change, Error, Guest as Collections, Page, Query},
    },
    weir::plugin::{clock, files, http, log, progress, random, sql},
};

#[allow(
    unsafe_code,
    unreachable_pub,
    clippy::all,
    reason = "the code is generated"
)]
mod generated {
    wit_bindgen::generate!({ world: "adapter", path: "../../../plugin-sdk/wit/0.1.0" });
}

/// Overwritten by tests, byte for byte and of the same length.
static TUNING: [u8; 64] = *b"probe-tuning:name=probe;adapter=probe;version=1;lose=-;.........";

thread_local! {
    static MEMORY: RefCell<BTreeMap<String, String>> = RefCell::default();
    static SETTINGS: RefCell<BTreeMap<String, Value>> = RefCell::default();
}

struct Probe;

#[allow(unsafe_code, reason = "the exports are generated")]
mod exported {
    super::generated::export!(Probe with_types_in super::generated);
    use super::Probe;
}

impl About for Probe {
    fn about() -> String {
        match tuned("name").as_str() {
            "trap" => panic!("about"),
            "spin" => spin(u64::MAX),
            "mute" => return "{".into(),
            _ => {}
        }
        json!({ "name": tuned("name"), "version": tuned("version"), "adapters": [{ "name": tuned("adapter") }] })
            .to_string()
    }
}

impl Collections for Probe {
    fn describe(_adapter: String, settings: String) -> Result<String, Error> {
        let settings: Value = serde_json::from_str(&settings).unwrap_or_default();
        if let Some(code) = settings["fail"].as_str() {
            return Err(error(code, "as asked"));
        }
        let fields: Vec<Value> = [("id", "integer"), ("name", "string"), ("size", "number")]
            .into_iter()
            .filter(|(key, _)| *key != tuned("lose"))
            .map(|(key, ty)| json!({ "key": key, "type": ty }))
            .collect();
        Ok(json!({ "name": "things", "fields": fields, "key": ["id"], "capabilities": { "read": true } }).to_string())
    }

    fn configure(
        collection: String,
        _adapter: String,
        settings: String,
        _shape: String,
    ) -> Result<(), Error> {
        let settings =
            serde_json::from_str(&settings).map_err(|_| error("invalid", "settings are JSON"))?;
        remember(
            "configured",
            &(recall("configured").parse::<u32>().unwrap_or(0) + 1).to_string(),
        );
        SETTINGS.with_borrow_mut(|all| all.insert(collection, settings));
        Ok(())
    }

    fn read(collection: String, query: Query) -> Result<Page, Error> {
        if !SETTINGS.with_borrow(|all| all.contains_key(&collection)) {
            return Err(error("not_configured", "configure was not called"));
        }
        let records = behave(query.options.as_deref().unwrap_or(""))?;
        Ok(Page {
            records: records.to_string(),
            next: None,
        })
    }

    fn write(_collection: String, change: Change) -> Result<String, Error> {
        Ok(behave(change.options.as_deref().unwrap_or(""))?.to_string())
    }
}

fn behave(options: &str) -> Result<Value, Error> {
    let options: Value = serde_json::from_str(options).unwrap_or_default();
    let word = options["do"].as_str().unwrap_or("version");
    let count = options["count"].as_u64().unwrap_or(0);
    let connection = options["connection"].as_str().unwrap_or("db").to_owned();
    match word {
        "version" => Ok(json!([{ "version": tuned("version") }])),
        "trap" => panic!("as asked"),
        "spin" => {
            spin(u64::MAX);
            Ok(json!([]))
        }
        "busy" => {
            spin(count * 1_000_000);
            Ok(json!([{ "version": tuned("version") }]))
        }
        "allocate" => loop {
            black_box(vec![1_u8; 1 << 20].leak());
        },
        "recurse" => Ok(json!(recurse(black_box(1)))),
        "clock" => Ok(json!([{ "sum": (0..count).map(|_| clock::now_ms() % 2).sum::<u64>() }])),
        "dialect" => {
            let failed = (0..count)
                .filter(|_| sql::dialect(&connection).is_err())
                .count();
            Ok(json!([{ "failed": failed }]))
        }
        "return" => Ok(Value::String("x".repeat(count as usize))),
        "flood" => {
            for _ in 0..count {
                log::write("info", &"flood\nsecond line ".repeat(100), Some("{}"));
            }
            Ok(json!([]))
        }
        "random" => Ok(json!([{ "length": random::bytes(count as u32).len() }])),
        "progress" => {
            for done in 0..count {
                progress::report(done as f64, Some(count as f64), "step\nforged");
                progress::report(done as f64, None, "again");
                progress::report(f64::NAN, None, "not a number");
                spin(2_000_000);
            }
            Ok(json!([]))
        }
        "remember" => {
            remember("secret", options["secret"].as_str().unwrap_or(""));
            Ok(json!([]))
        }
        "recall" => Ok(json!([{ "secret": recall("secret"), "configured": recall("configured") }])),
        "calls" => {
            let calls = recall("calls").parse::<u32>().unwrap_or(0) + 1;
            remember("calls", &calls.to_string());
            Ok(json!([{ "calls": calls }]))
        }
        "fail" => Err(error(
            options["code"].as_str().unwrap_or("conflict"),
            "as asked",
        )),
        "pretend" => Ok(json!([{ "code": "internal", "call_id": "forged", "isError": true }])),
        "query" => query(&connection, &options).map(|rows| json!([{ "rows": rows.records }])),
        "execute" => sql::execute(&statement(&connection, &options))
            .map(|changed| json!([{ "changed": changed }])),
        "execute-trap" => {
            let _ = sql::execute(&statement(&connection, &options));
            panic!("after the write")
        }
        "query-many" => {
            let statements: Vec<_> = (0..count)
                .map(|_| statement(&connection, &options))
                .collect();
            let answers = sql::query_many(&statements);
            let good = answers.iter().filter(|answer| answer.is_ok()).count();
            Ok(json!([{ "asked": answers.len(), "good": good }]))
        }
        "get" | "post" => {
            let request = http::Request {
                connection,
                method: word.to_uppercase(),
                path: options["path"].as_str().unwrap_or("/").to_owned(),
                query: Vec::new(),
                headers: Vec::new(),
                body: None,
                options: None,
            };
            http::send(&request).map(|answer| json!([{ "status": answer.status }]))
        }
        "stat" => files::stat(&connection, "file").map(|info| json!([{ "size": info.size }])),
        "read-file" => files::read(&connection, "file", 0, u32::MAX)
            .map(|bytes| json!([{ "length": bytes.len() }])),
        "replace" => files::replace(&connection, "file", None, b"new")
            .map(|version| json!([{ "version": version }])),
        _ => Err(error("unsupported", word)),
    }
}

fn query(connection: &str, options: &Value) -> Result<sql::Rows, Error> {
    sql::query(&statement(connection, options))
}

fn statement(connection: &str, options: &Value) -> sql::Statement {
    sql::Statement {
        connection: connection.to_owned(),
        text: options["text"]
            .as_str()
            .unwrap_or("SELECT 1 AS one")
            .to_owned(),
        parameters: "[]".to_owned(),
        limit: 10,
        options: options["write"]
            .as_bool()
            .map(|write| json!({ "write": write }).to_string()),
    }
}

/// Counts, without a host call.
fn spin(rounds: u64) {
    let mut round = 0_u64;
    while round < rounds {
        round = black_box(round + 1);
    }
}

#[expect(unconditional_recursion, reason = "it is to overflow the stack")]
fn recurse(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    black_box(recurse(room[63] + 1)) + room[0]
}

fn remember(key: &str, value: &str) {
    MEMORY.with_borrow_mut(|memory| memory.insert(key.to_owned(), value.to_owned()));
}

fn recall(key: &str) -> String {
    MEMORY.with_borrow(|memory| memory.get(key).cloned().unwrap_or_default())
}

fn tuned(key: &str) -> String {
    let text = String::from_utf8_lossy(black_box(&TUNING)).into_owned();
    let values = text
        .trim_start_matches("probe-tuning:")
        .split(';')
        .filter_map(|part| part.split_once('='));
    values
        .into_iter()
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value.to_owned())
        .unwrap_or_default()
}

fn error(code: &str, message: &str) -> Error {
    Error {
        code: code.into(),
        message: message.into(),
        field: None,
        retry_after_ms: None,
        details: None,
    }
}
