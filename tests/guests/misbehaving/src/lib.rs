//! One hostile guest. What it does is an argument: `behaviour` in the settings, as a parameter of a call, or as an
//! `equals` condition on the column of that name; `amount` is how much or how long, where that matters.
//!
//! Its build is a marker in the file, so that tests make other builds of it by changing bytes ([`BUILD`]).

use std::cell::{Cell, RefCell};
use std::hint::black_box;

use weir_plugin_sdk::serde_json::{Value, json};
use weir_plugin_sdk::{
    Adapter, Change, Comparison, Error, Field, Page, Query, Shape, Type, adapter::parse_settings,
    clock, files, http, log, progress, shape::Capabilities, shape::Param, sql,
};

/// `build=` and eight characters that a test may overwrite. `2`: another build; `lost`: its shape has lost the column
/// `text`; `trap` and `spin`: its `about` does.
static BUILD: [u8; 14] = *b"build=1       ";

fn build() -> String {
    let marker = black_box(&BUILD);
    marker[6..]
        .iter()
        .map(|byte| char::from(*byte))
        .collect::<String>()
        .trim_end()
        .to_owned()
}

thread_local! {
    /// Data that a caller left here: no other tenant may ever see it.
    static LEFT: RefCell<Option<String>> = const { RefCell::new(None) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

pub struct Misbehaving {
    behaviour: String,
    amount: u64,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default)]
    behaviour: Option<String>,
    #[serde(default)]
    amount: u64,
    /// A behaviour of `describe` and of `configure`.
    #[serde(default)]
    describe: Option<String>,
    #[serde(default)]
    configure: Option<String>,
}

impl Adapter for Misbehaving {
    const NAME: &'static str = "misbehaving";
    const REQUESTS: &'static [&'static str] = &["files", "http", "sql"];

    fn settings_schema() -> Value {
        match build().as_str() {
            "trap" => fail("trap"),
            "spin" => fail("spin"),
            _ => {}
        }
        json!({ "type": "object" })
    }

    fn describe(settings: &str) -> Result<Shape, Error> {
        let settings: Settings = parse_settings(settings)?;
        settings.describe.as_deref().into_iter().for_each(fail);
        Ok(shape())
    }

    fn open(settings: &str, _shape: &Shape) -> Result<Self, Error> {
        let settings: Settings = parse_settings(settings)?;
        settings.configure.as_deref().into_iter().for_each(fail);
        Ok(Self {
            behaviour: settings.behaviour.unwrap_or_else(|| "behave".to_owned()),
            amount: settings.amount,
        })
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        let params = query.options.get("params").and_then(Value::as_object);
        let given = |name: &str| {
            let sought = query.conditions.iter().find(|condition| {
                condition.column == name && condition.comparison == Comparison::Equals
            });
            params
                .and_then(|params| params.get(name))
                .or(sought.map(|condition| &condition.value))
        };
        let behaviour = given("behaviour")
            .and_then(Value::as_str)
            .unwrap_or(&self.behaviour);
        let amount = given("amount")
            .and_then(Value::as_u64)
            .unwrap_or(self.amount);
        let text = given("text").and_then(Value::as_str);
        Ok(Page {
            records: records(behaviour, amount, text, query)?,
            next: None,
        })
    }

    fn write(&self, change: &Change) -> Result<String, Error> {
        let given = |name: &str| {
            let params = change.options.get("params").and_then(Value::as_object);
            change
                .record
                .get(name)
                .or_else(|| params.and_then(|params| params.get(name)))
        };
        let behaviour = given("behaviour")
            .and_then(Value::as_str)
            .unwrap_or(&self.behaviour);
        let amount = given("amount")
            .and_then(Value::as_u64)
            .unwrap_or(self.amount);
        let text = given("text").and_then(Value::as_str);
        let records = records(behaviour, amount, text, &Query::default())?;
        Ok(records
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned())
    }
}

fn shape() -> Shape {
    let mut shape = Shape::new("misbehaving");
    shape.fields = vec![
        Field::new("id", Type::Integer),
        Field::new("behaviour", Type::String),
        Field::new("text", Type::String).nullable(true),
        Field::new("build", Type::String),
        Field::new("calls", Type::Integer),
        Field::new("amount", Type::Integer).nullable(true),
    ];
    if build() == "lost" {
        shape.fields.retain(|field| field.key != "text");
    }
    shape.key = vec!["id".to_owned()];
    let param = |name: &str, kind| Param {
        name: name.to_owned(),
        kind,
        required: false,
        description: None,
        items: None,
    };
    shape.capabilities = Capabilities {
        read: true,
        write: ["create", "update", "delete"].map(str::to_owned).to_vec(),
        order: vec!["*".to_owned()],
        params: vec![
            param("behaviour", Type::String),
            param("amount", Type::Integer),
            param("text", Type::String),
        ],
        ..Capabilities::default()
    };
    shape
        .capabilities
        .matches
        .insert("*".to_owned(), vec!["equals".to_owned()]);
    shape
}

/// One record, unless the behaviour is to do something else.
fn records(
    behaviour: &str,
    amount: u64,
    text: Option<&str>,
    query: &Query,
) -> Result<String, Error> {
    let calls = CALLS.get() + 1;
    CALLS.set(calls);
    let record = |text: Option<&str>| {
        json!([{ "id": 1, "behaviour": behaviour, "text": text, "build": build(), "calls": calls, "amount": amount }])
            .to_string()
    };
    match behaviour {
        "behave" => {}
        // Returns what the previous call left, and leaves its own.
        "remember" => {
            let before =
                LEFT.with_borrow_mut(|left| std::mem::replace(left, text.map(str::to_owned)));
            return Ok(record(before.as_deref()));
        }
        "slow" => {
            let wait = if amount == 0 { 500 } else { amount };
            let end = clock::now_ms() + wait;
            while clock::now_ms() < end {
                if progress::cancelled() {
                    log::info("cancelled: stopped early");
                    return Err(Error::cancelled());
                }
                // Half a millisecond or less: two host calls a turn must stay far below their bound for as long as it is slow.
                (0..4_000_000).for_each(|number| {
                    black_box(number);
                });
            }
        }
        "slow-http" => {
            let wait = if amount == 0 { 500 } else { amount };
            let request = http::Request {
                connection: "slow".to_owned(),
                method: "GET".to_owned(),
                path: format!("/slow/{wait}"),
                ..http::Request::default()
            };
            http::send(&request)?;
        }
        "progress" => {
            (1..=amount.max(3)).for_each(|done| progress::report(done as f64, None, "still busy"))
        }
        "progress-backwards" => [3.0, 2.0, 2.0, f64::NAN, 5.0]
            .into_iter()
            .for_each(|done| progress::report(done, None, "?")),
        "ungranted-sql" => {
            let statement = sql::Statement {
                connection: "not-granted".to_owned(),
                text: "SELECT 1".to_owned(),
                limit: 1,
                ..sql::Statement::default()
            };
            sql::query(&statement)?;
        }
        "ungranted-files" => drop(files::read("not-granted", "../../etc/passwd", 0, 100)?),
        "ungranted-http" => {
            let request = http::Request {
                connection: "not-granted".to_owned(),
                ..http::Request::default()
            };
            http::send(&request)?;
        }
        "refuse" => {
            return Err(Error::new(text.unwrap_or("conflict"), "Refused, as asked.")
                .field("text")
                .retry_after_ms(7));
        }
        "pretend-error" => {
            return Ok(json!([{
                "id": 1, "behaviour": behaviour, "text": null, "build": build(), "calls": calls, "amount": amount,
                "code": "internal", "call_id": "00000000", "isError": true, "error": { "code": -32603, "message": "?" },
            }])
            .to_string());
        }
        "extra-column" => {
            return Ok(record(text).replacen("\"id\"", "\"secret\":\"leak\",\"id\"", 1));
        }
        "wrong-type" => return Ok(record(text).replacen("\"id\":1", "\"id\":\"one\"", 1)),
        "missing-column" => return Ok(record(text).replacen("\"id\":1,", "", 1)),
        "double-key" => return Ok(record(text).replacen("\"id\":1", "\"id\":1,\"id\":2", 1)),
        "large-number" => {
            return Ok(record(text).replacen("\"id\":1", "\"id\":9007199254740993", 1));
        }
        "lone-surrogate" => return Ok(record(Some("half")).replacen("\"half\"", "\"\\ud800\"", 1)),
        "deep" => {
            let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
            return Ok(record(Some("deep")).replacen("\"deep\"", &deep, 1));
        }
        "not-json" => return Ok("[{\"id\":1,".to_owned()),
        "not-an-array" => return Ok("{\"id\":1}".to_owned()),
        "too-many" => {
            let one = record(text);
            let one = one.trim_matches(['[', ']']);
            let many = vec![one; query.limit as usize + 5];
            return Ok(format!("[{}]", many.join(",")));
        }
        "return-64mb" => return Ok("x".repeat(64 << 20)),
        "return" => return Ok(record(Some(&"x".repeat(amount as usize)))),
        "host-calls" => {
            let count = if amount == 0 { 1_000_000 } else { amount };
            (0..count).for_each(|_| {
                black_box(clock::now_ms());
            });
        }
        "log-flood" => {
            let line = "flood ".repeat(200);
            (0..1_000_000).for_each(|_| log::info(&line));
        }
        failure => fail(failure),
    }
    Ok(record(text))
}

/// Fails in a way that ends the call itself. An unknown name is another kind of trap.
fn fail(behaviour: &str) {
    match behaviour {
        "spin" => loop {
            black_box(());
        },
        "allocate" => {
            let mut held = Vec::new();
            loop {
                held.push(vec![1_u8; 1 << 20]);
                black_box(&held);
            }
        }
        "recurse" => drop(black_box(recurse(1))),
        "panic" => panic!("panicked, as asked"),
        "abort" => std::process::abort(),
        "exit" => std::process::exit(3),
        "segv" => segv(),
        _ => trap(),
    }
}

/// What only native code can do.
#[expect(unsafe_code, reason = "that is what it is for")]
fn segv() {
    // SAFETY: none. Nothing is mapped there, and the process ends.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
}

#[cfg(target_arch = "wasm32")]
fn trap() -> ! {
    std::arch::wasm32::unreachable()
}

#[cfg(not(target_arch = "wasm32"))]
fn trap() -> ! {
    panic!("trap");
}

#[expect(unconditional_recursion, reason = "that is what it is for")]
fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    frame[0] + recurse(depth + 1) + black_box(frame[63])
}

weir_plugin_sdk::export!(version: format!("0.1.{}", build()); Misbehaving);

#[cfg(test)]
mod tests {
    use super::*;
    use weir_plugin_sdk::serde_json;

    #[test]
    fn it_behaves_when_asked_to() {
        let adapter = Misbehaving::open("{}", &shape()).unwrap();
        let page = adapter
            .read(&Query {
                limit: 1,
                ..Query::default()
            })
            .unwrap();
        let records: Value = serde_json::from_str(&page.records).unwrap();
        assert_eq!(records[0]["behaviour"], "behave");
        assert_eq!(records[0]["build"], "1");
    }
}
