//! Writes one table of nasty values into every kind of source.

use std::{fmt::Write as _, path::Path, time::Duration};

use serde_json::{Map, Value, json};
use weir_tests::{MariadbServer, Postgres, foreign};

/// Column, its type in the value table, whether it may be null.
pub(crate) const COLUMNS: &[(&str, &str, bool)] = &[
    ("id", "string", false),
    ("status", "string", true),
    ("code", "string", false),
    ("name", "string", false),
    ("amount", "decimal", true),
    ("big", "decimal", true),
    ("count", "integer", true),
    ("ratio", "number", true),
    ("day", "date", true),
    ("at", "datetime", true),
    ("flag", "boolean", true),
];

/// Returns rows with everything that goes wrong in one source or another, and enough plain ones for long walks.
pub(crate) fn rows() -> Vec<Map<String, Value>> {
    let mut rows: Vec<Map<String, Value>> = hand_made().into_iter().map(row).collect();
    for number in 0..130 {
        let status = ["open", "pending", "closed"][number % 3];
        let (day, month) = (number % 28 + 1, number % 12 + 1);
        rows.push(row(json!([
            format!("r{number:03}"),
            status,
            format!("C{}", number % 10),
            format!("Plain row {number}"),
            format!("{}.25", number),
            format!("{}", 1_000_000_000_000_000_000_u64 + number as u64),
            number,
            number as f64 / 8.0,
            format!("2024-{month:02}-{day:02}"),
            format!("2024-{month:02}-{day:02}T06:30:00Z"),
            number % 2 == 0
        ])));
    }
    rows
}

#[rustfmt::skip]
fn hand_made() -> Vec<Value> {
    vec![
        // Leading zeros, a number that is text, and 2^53+1.
        json!(["007", "open", "0042", "Bond", "0.07", "9007199254740993", 7, 0.1, "2024-02-29", "2024-02-29T23:59:59Z", true]),
        json!(["0", null, "0", "", "-0.001", "-9007199254740993", 0, -2.5, "1970-01-01", "1970-01-01T00:00:00Z", false]),
        // In this row everything that may be null is null.
        json!(["null", null, "null", "all null", null, null, null, null, null, null, null]),
        json!(["NULL", "null", "NULL", "the word null", "1", "1", 1, 1, "2024-01-01", "2024-01-01T00:00:00Z", true]),
        // Numbers at their edges.
        json!(["big", "open", "max", "largest", "99999999999999999999.99", "18446744073709551615", 9_007_199_254_740_991_i64, 1.5e300, "9999-12-31", "9999-12-31T23:59:59Z", true]),
        json!(["small", "open", "min", "smallest", "-99999999999999999999.99", "-9223372036854775808", -9_007_199_254_740_991_i64, 5e-324, "0001-01-01", "0001-01-01T00:00:00Z", false]),
        // Text that looks like something else.
        json!(["=1+1", "open", "=SUM(A1)", "=cmd|' /C calc'!A0", "1", "2", 3, 0.5, "2024-03-01", "2024-03-01T12:00:00Z", true]),
        json!(["+44", "closed", "-1", "@here", "2.5", "3", 4, 0.25, "2024-03-02", "2024-03-02T12:00:00.5Z", false]),
        json!(["1e5", "closed", "1E5", "TRUE", "3.5", "4", 5, 0.75, "2024-03-03", "2024-03-03T12:00:00Z", true]),
        json!(["2024-01-01", "pending", "12:00", "a date for a key", "4", "5", 6, 1e21, "2024-03-04", "2024-03-04T12:00:00Z", false]),
        // Separators, quotes, line breaks, and characters with a meaning in SQL and LIKE.
        json!(["a,b", "pending", "a;b", "tab\there", "5", "6", 7, 2, "2024-03-05", "2024-03-05T12:00:00Z", true]),
        json!(["quote\"d", "open", "o'clock", "two\nlines", "6", "7", 8, 3, "2024-03-06", "2024-03-06T12:00:00Z", false]),
        json!(["100%", "open", "50_50", "back\\slash %_[a-z]*?", "7", "8", 9, 4, "2024-03-07", "2024-03-07T12:00:00Z", true]),
        json!(["'; DROP TABLE items; --", "open", "$1", "?", "8", "9", 10, 5, "2024-03-08", "2024-03-08T12:00:00Z", false]),
        json!(["a/b?c=d&e#f", "open", "../..", "<b>&amp;</b>", "9", "10", 11, 6, "2024-03-09", "2024-03-09T12:00:00Z", true]),
        // Case and scripts: order is by code point, comparison by exact text.
        json!(["Zebra", "Open", "z", "Ärger", "10", "11", 12, 7, "2024-03-10", "2024-03-10T12:00:00Z", false]),
        json!(["zebra", "OPEN", "Z", "ärger", "11", "12", 13, 8, "2024-03-11", "2024-03-11T12:00:00Z", true]),
        json!(["é", "open", "e\u{301}", "caf\u{e9} and cafe\u{301}", "12", "13", 14, 9, "2024-03-12", "2024-03-12T12:00:00Z", false]),
        json!(["日本", "open", "ß", "straße STRASSE", "13", "14", 15, 10, "2024-03-13", "2024-03-13T12:00:00Z", true]),
        json!(["\u{ff5e}", "open", "\u{ff5e}", "beside the surrogates", "14", "15", 16, 11, "2024-03-14", "2024-03-14T12:00:00Z", false]),
        json!(["😀", "open", "👩‍👩‍👧", "İstanbul ısparta", "15", "16", 17, 12, "2024-03-15", "2024-03-15T12:00:00Z", true]),
        json!(["\u{200f}rtl", "open", "שלום", "\u{feff}bom inside", "16", "17", 18, 13, "2024-03-16", "2024-03-16T12:00:00Z", false]),
        // The same name occurs twice, so a lookup by name is ambiguous.
        json!(["twin-1", "open", "twin", "Twin", "17", "18", 19, 14, "2024-03-17", "2024-03-17T12:00:00Z", true]),
        json!(["twin-2", "open", "twin", "Twin", "18", "19", 20, 15, "2024-03-18", "2024-03-18T12:00:00Z", false]),
    ]
}

fn row(values: Value) -> Map<String, Value> {
    let values = values.as_array().expect("a row is a list").clone();
    assert_eq!(values.len(), COLUMNS.len());
    COLUMNS
        .iter()
        .map(|(name, _, _)| (*name).to_owned())
        .zip(values)
        .collect()
}

pub(crate) fn csv(path: &Path) {
    let mut file = csv::Writer::from_path(path).expect("a file in the temporary folder");
    file.write_record(COLUMNS.iter().map(|(name, _, _)| *name))
        .expect("a header");
    for row in rows() {
        file.write_record(row.values().map(cell)).expect("a row");
    }
    file.flush().expect("the file is written");
}

/// Writes a workbook with openpyxl: numbers, dates and booleans are cells of their type, and text is always text.
pub(crate) fn xlsx(path: &Path) {
    let kinds: Vec<_> = COLUMNS.iter().map(|(_, kind, _)| *kind).collect();
    let names: Vec<_> = COLUMNS.iter().map(|(name, _, _)| *name).collect();
    let table = json!({"names": names, "kinds": kinds, "rows": rows().iter().map(|row| row.values().collect::<Vec<_>>()).collect::<Vec<_>>()});
    let source = path.with_extension("json");
    std::fs::write(&source, table.to_string()).expect("a file in the temporary folder");
    let mut command = foreign::python_script("python-current", "workbook.py");
    command.arg(&source).arg(path);
    let output = foreign::run(command, Duration::from_secs(180));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::remove_file(source).expect("a file in the temporary folder");
}

/// Makes a SQLite file. Decimals are text there: SQLite has no exact type, and its NUMERIC would make doubles of them.
pub(crate) fn sqlite(path: &Path) {
    let database = rusqlite::Connection::open(path).expect("a file in the temporary folder");
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, kind, nullable)| {
            let native = match *kind {
                "integer" | "boolean" => "INTEGER",
                "number" => "REAL",
                "date" => "DATE",
                "datetime" => "DATETIME",
                _ => "TEXT",
            };
            let key = if *name == "id" { " PRIMARY KEY" } else { "" };
            format!(
                "\"{name}\" {native}{key}{}",
                if *nullable { "" } else { " NOT NULL" }
            )
        })
        .collect();
    database
        .execute(&format!("CREATE TABLE items ({})", columns.join(", ")), [])
        .expect("a table");
    let places = vec!["?"; COLUMNS.len()].join(", ");
    for row in rows() {
        let values = row.values().map(|value| match value {
            Value::Null => rusqlite::types::Value::Null,
            Value::Bool(flag) => rusqlite::types::Value::Integer(i64::from(*flag)),
            Value::Number(number) => match number.as_i64() {
                Some(whole) => rusqlite::types::Value::Integer(whole),
                None => rusqlite::types::Value::Real(number.as_f64().expect("a double")),
            },
            other => rusqlite::types::Value::Text(cell(other)),
        });
        let insert = format!("INSERT INTO items VALUES ({places})");
        database
            .execute(&insert, rusqlite::params_from_iter(values))
            .expect("a row");
    }
}

pub(crate) fn postgres(cluster: &Postgres) {
    // A collation that does not sort by code points, so that an adapter that forgets to name one is caught.
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, kind, nullable)| {
            let native = match *kind {
                "integer" => "bigint",
                "decimal" => "numeric",
                "number" => "double precision",
                "date" => "date",
                "datetime" => "timestamptz",
                "boolean" => "boolean",
                _ => "text COLLATE \"en-x-icu\"",
            };
            let key = if *name == "id" { " PRIMARY KEY" } else { "" };
            format!(
                "\"{name}\" {native}{key}{}",
                if *nullable { "" } else { " NOT NULL" }
            )
        })
        .collect();
    let mut script = format!("CREATE TABLE items ({});\n", columns.join(", "));
    for row in rows() {
        let values: Vec<String> = row
            .values()
            .map(|value| match value {
                Value::Null => "NULL".to_owned(),
                other => format!("'{}'", cell(other).replace('\'', "''")),
            })
            .collect();
        writeln!(script, "INSERT INTO items VALUES ({});", values.join(", "))
            .expect("a string grows");
    }
    cluster.sql(&script);
}

/// Fills a database whose collation ignores case and trailing blanks.
pub(crate) fn mariadb(server: &MariadbServer, url: &str) {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|(name, kind, nullable)| {
            let native = match *kind {
                "integer" => "bigint",
                "decimal" => "decimal(40, 10)",
                "number" => "double",
                "date" => "date",
                "datetime" => "datetime(6)",
                "boolean" => "boolean",
                _ if *name == "id" => "varchar(190) COLLATE utf8mb4_bin",
                _ => "text",
            };
            let key = if *name == "id" { " PRIMARY KEY" } else { "" };
            format!(
                "\"{name}\" {native}{}{key}",
                if *nullable { "" } else { " NOT NULL" }
            )
        })
        .collect();
    let mut script = format!("CREATE TABLE items ({});\n", columns.join(", "));
    for row in rows() {
        let values: Vec<String> = COLUMNS
            .iter()
            .zip(row.values())
            .map(|((_, kind, _), value)| match (*kind, value) {
                (_, Value::Null) => "NULL".to_owned(),
                ("boolean" | "number" | "integer", other) => other.to_string(),
                ("datetime", other) => format!("'{}'", cell(other).trim_end_matches('Z')),
                (_, other) => format!("'{}'", cell(other).replace('\'', "''")),
            })
            .collect();
        writeln!(script, "INSERT INTO items VALUES ({});", values.join(", "))
            .expect("a string grows");
    }
    server.script(url, &script);
}

/// Returns a JSON file for json-server. Decimals are text there too, since its numbers are doubles.
pub(crate) fn json() -> Value {
    json!({ "items": rows() })
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
