//! The small adapter that every language writes the same, in Rust.

use std::{cell::Cell, hint::black_box};

use serde::Deserialize;
use weir_plugin_sdk::adapter::parse_settings;
use weir_plugin_sdk::matches::Matcher;
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::{
    Adapter, Error, Page, Query, Shape, Value, Zone, log, progress, serde_json, sql, tool,
};

const SHAPE: &str = r#"{"name":"tiny","fields":[{"key":"id","type":"integer"},{"key":"name","type":"string"},{"key":"greeting","type":"string"}],"key":["id"],"capabilities":{"read":true,"matches":{"*":["equals"]},"order":["id"]}}"#;
const NAMES: [&str; 3] = ["one", "two", "three"];

pub struct Tiny {
    settings: Settings,
    shape: Shape,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    greeting: String,
}

impl Adapter for Tiny {
    const NAME: &'static str = "tiny-rust";
    const REQUESTS: &'static [&'static str] = &["sql"];

    fn settings_schema() -> serde_json::Value {
        serde_json::json!({ "type": "object", "properties": { "greeting": { "type": "string" } }, "required": ["greeting"] })
    }

    fn describe(settings: &str) -> Result<Shape, Error> {
        parse_settings::<Settings>(settings)?;
        Shape::parse(SHAPE)
    }

    fn open(settings: &str, shape: &Shape) -> Result<Self, Error> {
        Ok(Self {
            settings: parse_settings(settings)?,
            shape: shape.clone(),
        })
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        log::info("reading");
        progress::report(1.0, Some(3.0), "reading");
        if let Some(word) = query.options.get("do").and_then(serde_json::Value::as_str) {
            return act(word).map(|records| Page {
                records,
                next: None,
            });
        }
        let behind: i128 = match query.cursor.as_deref() {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| {
                Error::invalid("The cursor is not one of this list.").field("cursor")
            })?,
        };
        let mut records = Records::new();
        for (index, name) in NAMES.iter().enumerate() {
            let record = |column: &str| match column {
                "id" => Value::Integer(index as i128 + 1),
                "name" => Value::Text((*name).into()),
                _ => Value::Text(self.settings.greeting.as_str().into()),
            };
            let mut holds = index as i128 + 1 > behind;
            for condition in &query.conditions {
                let field = self.shape.field(&condition.column).ok_or_else(|| {
                    Error::invalid("The collection has no such column.").field(&condition.column)
                })?;
                holds &= Matcher::new(condition, field, &Zone::utc())?.matches(&record(&field.key));
            }
            if holds && records.count() == query.limit {
                return Ok(Page {
                    records: records.finish(),
                    next: Some(index.to_string()),
                });
            }
            if holds {
                records.push(["id", "name", "greeting"].map(|column| (column, record(column))));
            }
        }
        Ok(Page {
            records: records.finish(),
            next: None,
        })
    }
}

/// What every language does alike when a test asks for it: `options` of `{"do": word}`.
fn act(word: &str) -> Result<String, Error> {
    thread_local! { static CALLS: Cell<u32> = const { Cell::new(0) }; }
    match word {
        "refuse" => Err(Error::conflict("Refused, as asked.")
            .field("name")
            .retry_after_ms(7)),
        "query" => {
            let (connection, text) = ("db".to_owned(), "SELECT 'one' AS name".to_owned());
            sql::query(&sql::Statement {
                connection,
                text,
                limit: 1,
                ..Default::default()
            })
            .map(|rows| rows.records)
        }
        // What an instance remembers.
        "count" => {
            CALLS.set(CALLS.get() + 1);
            Ok(format!(r#"[{{"calls":{}}}]"#, CALLS.get()))
        }
        "large" => Ok(format!(r#"[{{"name":"{}"}}]"#, "x".repeat(5 << 20))),
        "too-large" => Ok(format!(r#"[{{"name":"{}"}}]"#, "x".repeat(9 << 20))),
        "spin" => loop {
            black_box(());
        },
        _ => panic!("as asked"),
    }
}

/// Names a number from one to three.
#[tool(read_only)]
fn name_number(
    /// The number.
    #[arg(ge = 1, le = 3)]
    number: u8,
) -> Option<String> {
    NAMES
        .get(usize::from(number) - 1)
        .map(|name| (*name).to_owned())
}

weir_plugin_sdk::export!(Tiny; tools: name_number);
