//! Questions over public data, each answered by one call, and the same from a sheet, SQLite, PostgreSQL and MariaDB. The
//! expected answer is computed by a statement, on which SQLite and DuckDB agree. The questions are rows of
//! `tests/fixtures/answers/questions.jsonl`.

use std::{collections::BTreeMap, fmt::Write as _, fs, process::Command};

use rusqlite::types::ValueRef;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use weir_tests::{Gateway, House, MariadbServer, Modern, Postgres, place};

#[derive(Deserialize)]
struct DataSet {
    columns: Map<String, Value>,
}

#[derive(Deserialize)]
struct Question {
    set: String,
    ask: String,
    tool: String,
    arguments: Value,
    sql: String,
}

/// The data sets, and the tables of each as statements of SQL.
struct Fixtures {
    sets: BTreeMap<String, DataSet>,
    questions: Vec<Question>,
}

impl Fixtures {
    fn read() -> Self {
        let read = |name: &str| fs::read_to_string(file(name)).expect(name);
        let questions = read("questions.jsonl");
        let questions = questions
            .lines()
            .map(|line| serde_json::from_str(line).expect(line));
        Self {
            sets: serde_json::from_str(&read("sets.json")).expect("data sets"),
            questions: questions.collect(),
        }
    }

    /// Returns the statements that make and fill every table.
    fn script(&self) -> String {
        let mut script = String::new();
        for (name, set) in &self.sets {
            let columns = set.columns.iter().map(|(column, kind)| {
                let kind = match kind.as_str() {
                    Some("integer") => "integer",
                    Some("number") => "double precision",
                    Some("date") => "date",
                    _ => "text",
                };
                let key = if column == "id" { " PRIMARY KEY" } else { "" };
                format!("\"{column}\" {kind}{key}")
            });
            let columns: Vec<String> = columns.collect();
            let _ = writeln!(script, "CREATE TABLE \"{name}\" ({});", columns.join(", "));
            for row in rows(name) {
                let cells = row.iter().zip(set.columns.values()).map(|(cell, kind)| {
                    match (cell.is_empty(), kind.as_str()) {
                        (true, _) => "NULL".to_owned(),
                        (false, Some("integer" | "number")) => cell.clone(),
                        (false, _) => format!("'{}'", cell.replace('\'', "''")),
                    }
                });
                let cells: Vec<String> = cells.collect();
                let _ = writeln!(
                    script,
                    "INSERT INTO \"{name}\" VALUES ({});",
                    cells.join(", ")
                );
            }
        }
        script
    }

    /// Writes the contract of every data set into a house. `source` is the adapter and the settings for one data set.
    fn write_contracts(&self, house: &House, source: fn(&str) -> (&'static str, String)) {
        for (name, set) in &self.sets {
            let (adapter, settings) = source(name);
            let contract = contract(name, set, adapter, &settings);
            house.write(&format!("contracts/{name}.yaml"), contract);
        }
    }
}

fn file(name: &str) -> std::path::PathBuf {
    place::repository()
        .join("tests/fixtures/answers")
        .join(name)
}

/// Returns the rows of a data set without its header. Cells in quotes have no line ends.
fn rows(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(file(&format!("{name}.csv"))).expect(name);
    let cells = |line: &str| {
        let mut cells = vec![String::new()];
        let mut is_quoted = false;
        for next in line.chars() {
            match next {
                '"' => is_quoted = !is_quoted,
                ',' if !is_quoted => cells.push(String::new()),
                _ => cells.last_mut().expect("a cell").push(next),
            }
        }
        cells
    };
    text.lines().skip(1).map(cells).collect()
}

fn contract(name: &str, set: &DataSet, adapter: &str, settings: &str) -> String {
    let (mut fields, mut shape, mut groups) = (String::new(), Vec::new(), Vec::new());
    let mut measures = vec!["count".to_owned()];
    for (column, kind) in &set.columns {
        let kind = kind.as_str().expect("a type");
        let typed = match kind {
            "integer" | "number" => "number",
            "date" => "date",
            _ => "text",
        };
        let _ = writeln!(fields, "      - {{ name: {column}, type: {typed} }}");
        if typed != "text" {
            for (side, comparison) in [("min", "at-least"), ("max", "at-most")] {
                let _ = writeln!(
                    fields,
                    "      - {{ name: {side}_{column}, type: {typed}, column: {column}, match: {comparison} }}"
                );
            }
        }
        if typed == "number" {
            measures.extend(["sum", "avg", "min", "max"].map(|one| format!("{one}({column})")));
        }
        measures.push(format!("distinct({column})"));
        if column != "id" {
            shape.push(format!("{column}: {{ type: {kind}, nullable: true }}"));
            if kind != "number" {
                groups.push(column.as_str());
            }
        }
    }
    let columns: Vec<&str> = set.columns.keys().map(String::as_str).collect();
    let (columns, groups) = (columns.join(", "), groups.join(", "));
    format!(
        "contract: {name}
collections:
  {name}:
    adapter: {adapter}
    settings: {settings}
    key: [id]
    shape: {{ {shape} }}
tools:
  - tool: list_{name}
    description: Lists {name}.
    verb: list
    collection: {name}
    order: [id]
    order_by: [{columns}]
    columns: [{columns}]
    fields:
{fields}  - tool: summarize_{name}
    description: Sums {name} up.
    verb: summarize
    collection: {name}
    group_by: [{groups}]
    measures: [{measures}]
    limits: {{ rows_max: 500 }}
    fields:
{fields}",
        shape = shape.join(", "),
        measures = measures.join(", "),
    )
}

/// Returns the result of a statement, by the names of its columns.
fn expected(database: &rusqlite::Connection, sql: &str) -> Vec<Map<String, Value>> {
    let mut statement = database.prepare(sql).expect(sql);
    let names: Vec<String> = statement
        .column_names()
        .iter()
        .map(|it| it.to_string())
        .collect();
    let rows = statement.query_map([], |row| {
        let cell = |(at, name): (usize, &String)| {
            let value = match row.get_ref(at)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => json!(number),
                ValueRef::Real(number) => json!(number),
                ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
                ValueRef::Blob(_) => unreachable!("there are no bytes"),
            };
            Ok((name.clone(), value))
        };
        names.iter().enumerate().map(cell).collect()
    });
    rows.expect(sql).collect::<Result<_, _>>().expect(sql)
}

/// Returns DuckDB's answer to every question. Its package is fetched once, by its version and digest.
fn duckdb_answers() -> Vec<Vec<Map<String, Value>>> {
    let folder = place::cache().join("duckdb");
    let run = "set -e; if ! cmp --silent \"$1/requirements.txt\" \"$2/requirements.txt\"; then rm -rf \"$1\"; mkdir -p \"$1\"; \
               python3 -m pip install --target \"$1\" --no-deps --only-binary :all: --quiet --disable-pip-version-check --require-hashes \
               --root-user-action ignore -r \"$2/requirements.txt\" >&2; cp \"$2/requirements.txt\" \"$1\"; fi; \
               PYTHONPATH=\"$1\" exec python3 \"$2/duckdb_answers.py\" \"$2\"";
    let output = Command::new("sh")
        .args(["-c", run, "sh"])
        .args([&folder, &file("")])
        .output()
        .expect("sh runs");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{err}");
    out.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// Returns `true` for the same records in the same order.
fn are_same(found: &[Map<String, Value>], expected: &[Map<String, Value>]) -> bool {
    let is_record = |(found, expected): (&Map<String, Value>, &Map<String, Value>)| {
        let mut members = expected.iter();
        found.len() == expected.len()
            && members
                .all(|(name, value)| found.get(name).is_some_and(|found| is_same(found, value)))
    };
    found.len() == expected.len() && found.iter().zip(expected).all(is_record)
}

/// Returns `true` for equal values. Averages are rounded to six places more than their column has.
fn is_same(found: &Value, expected: &Value) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-6 * expected.abs().max(1.0),
        _ => found == expected,
    }
}

#[tokio::test]
async fn questions_are_answered_by_one_call_and_alike_by_every_source() {
    let fixtures = Fixtures::read();
    assert!(fixtures.sets.len() == 5 && fixtures.questions.len() == 120);
    let script = fixtures.script();
    let sheet = House::new()
        .config("[connections.data]\nkind = \"files\"\npath = \"data\"\n[plugins.sheet.grants]\ndata = \"read\"");
    for name in fixtures.sets.keys() {
        let name = format!("{name}.csv");
        sheet.write(
            &format!("data/{name}"),
            fs::read(file(&name)).expect("a file"),
        );
    }
    fixtures.write_contracts(&sheet, |name| {
        ("sheet", format!("{{ connection: data, path: {name}.csv }}"))
    });
    let sqlite = House::new().config(
        "[connections.data]\nkind = \"sqlite\"\npath = \"data/all.db\"\n[plugins.sql.grants]\ndata = \"read\"",
    );
    let database =
        rusqlite::Connection::open(sqlite.path().join("data/all.db")).expect("a database");
    database
        .execute_batch(&format!("BEGIN;{script}COMMIT;"))
        .expect("filled");
    let cluster = Postgres::start();
    // An argument of a program has at most 128 KiB.
    let lines: Vec<&str> = script.lines().collect();
    for lines in lines.chunks(500) {
        cluster.sql(&lines.join("\n"));
    }
    let postgresql = House::new().config(&format!(
        "[connections.data]\nkind = \"postgresql\"\nurl = \"{}\"\n[plugins.sql.grants]\ndata = \"read\"",
        cluster.url()
    ));
    let server = MariadbServer::shared();
    let url = server.database();
    server.script(&url, &format!("BEGIN;{script}COMMIT;"));
    let mariadb = House::new().config(&format!(
        "[connections.data]\nkind = \"mysql\"\nurl = \"{url}\"\n[plugins.sql.grants]\ndata = \"read\""
    ));
    for house in [&sqlite, &postgresql, &mariadb] {
        fixtures.write_contracts(house, |name| {
            ("sql", format!("{{ connection: data, table: {name} }}"))
        });
    }
    let houses = [
        ("sheet", sheet),
        ("sqlite", sqlite),
        ("postgresql", postgresql),
        ("mariadb", mariadb),
    ];
    let served: Vec<(&str, Modern, Gateway)> = houses
        .iter()
        .map(|(name, house)| {
            let gateway = house.serve();
            (*name, Modern::new(gateway.url()), gateway)
        })
        .collect();
    let mut wrong = Vec::new();
    let by_duckdb = duckdb_answers();
    assert_eq!(by_duckdb.len(), fixtures.questions.len());
    for (question, by_duckdb) in fixtures.questions.iter().zip(&by_duckdb) {
        let expected = expected(&database, &question.sql);
        assert!(
            are_same(by_duckdb, &expected),
            "{}: {by_duckdb:?} by DuckDB and {expected:?} by SQLite",
            question.sql
        );
        for (source, client, _) in &served {
            let result = client
                .call(&question.tool, question.arguments.clone())
                .await;
            let records = result["structuredContent"]["records"].clone();
            let records: Option<Vec<Map<String, Value>>> = serde_json::from_value(records).ok();
            let is_right = records.is_some_and(|records| are_same(&records, &expected));
            if !is_right {
                let Question {
                    set,
                    ask,
                    arguments,
                    ..
                } = question;
                let answer = result["structuredContent"].to_string();
                let expected = serde_json::to_string(&expected).expect("JSON");
                wrong.push(format!(
                    "{source} {set}: {ask} {arguments}\n  {answer:.600}\n  {expected:.600}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong answers:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
