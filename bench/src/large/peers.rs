//! The peers of the benchmark of large collections.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpStream,
    path::Path,
    process::Command,
    time::Instant,
};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answers, LargeCaller, QUESTIONS, answers};
use crate::{
    place::{BenchPaths, free_port},
    process::{MeasuredProcess, START_MAX},
    rows::toolbox_command,
    wire::BenchEndpoint,
};

/// DuckDB's figures, as its script prints them.
#[derive(Deserialize)]
pub(super) struct DuckDb {
    /// Each question asked of the file.
    pub(super) file: Answers,
    /// The same, asked of a table that was imported from it, with an index on the key.
    pub(super) imported: Answers,
    pub(super) import_s: f64,
}

pub(super) fn duckdb(place: &BenchPaths, csv: &Path, rows: usize) -> anyhow::Result<DuckDb> {
    let database = place.peer_folder("large")?.join("rows.duckdb");
    let _ = fs::remove_file(&database);
    let printed = script(
        place,
        &[
            "duckdb",
            &csv.display().to_string(),
            &database.display().to_string(),
            &rows.to_string(),
        ],
    )?;
    serde_json::from_str(&printed).with_context(|| printed)
}

/// Writes the rows into a workbook.
pub(super) fn workbook(place: &BenchPaths, target: &Path, rows: usize) -> anyhow::Result<()> {
    script(
        place,
        &["workbook", &target.display().to_string(), &rows.to_string()],
    )
    .map(drop)
}

/// Runs `large.py` on the core of servers.
fn script(place: &BenchPaths, words: &[&str]) -> anyhow::Result<String> {
    let python = place.peer("bench-large").join("bin/python");
    let mut command = Command::new("taskset");
    command
        .args(["-c", &place.server_core])
        .arg(&python)
        .arg(place.servers().join("large.py"))
        .args(words);
    let output = command
        .output()
        .with_context(|| format!("{} is not installed", python.display()))?;
    if !output.status.success() {
        bail!(
            "large.py {}: {}",
            words[0],
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Imports the file into SQLite as quickly as SQLite can, and returns how many seconds that took. The database is what
/// Toolbox is asked for.
pub(super) fn sqlite(place: &BenchPaths, csv: &Path) -> anyhow::Result<f64> {
    let path = place.peer_folder("large")?.join("rows.db");
    let _ = fs::remove_file(&path);
    let began = Instant::now();
    let mut database = rusqlite::Connection::open(&path)?;
    database.execute_batch(
        "CREATE TABLE rows (id INTEGER NOT NULL, name TEXT NOT NULL, status TEXT NOT NULL, amount REAL NOT NULL)",
    )?;
    let transaction = database.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO rows VALUES (?1, ?2, ?3, ?4)")?;
        for line in BufReader::new(fs::File::open(csv)?).lines().skip(1) {
            let line = line?;
            let mut fields = line.split(',');
            let mut field = || fields.next().context("a row has four fields");
            let (id, name, status, amount) = (field()?, field()?, field()?, field()?);
            insert.execute((id.parse::<i64>()?, name, status, amount.parse::<f64>()?))?;
        }
    }
    transaction.commit()?;
    database.execute_batch("CREATE UNIQUE INDEX rows_id ON rows (id)")?;
    Ok(began.elapsed().as_secs_f64())
}

/// Asks MCP Toolbox over the database that [`sqlite`] made.
pub(super) fn toolbox(place: &BenchPaths, rows: usize) -> anyhow::Result<Answers> {
    let program = place
        .peer("bench-node")
        .join("node_modules/@toolbox-sdk/server-linux-x64/bin/toolbox");
    let folder = place.peer_folder("large")?;
    let tools = QUESTIONS
        .iter()
        .map(|ask| (ask.tool.to_owned(), statement(ask.tool)));
    let config = json!({
        "sources": { "rows": { "kind": "sqlite", "database": folder.join("rows.db") } },
        "tools": tools.collect::<serde_json::Map<String, Value>>(),
    });
    // JSON is YAML.
    let file = folder.join("toolbox.yaml");
    fs::write(&file, config.to_string())?;
    let port = free_port()?;
    let command = toolbox_command(&program, &file, port);
    let mut process =
        MeasuredProcess::start(&command, &place.server_core, &folder.join("toolbox.log"))?;
    let door = BenchEndpoint {
        url: format!("http://127.0.0.1:{port}/mcp"),
        key: None,
    };
    process
        .wait(START_MAX, || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        })
        .context("Toolbox")?;
    let answers = answers(
        LargeCaller {
            none_found: r#""content":[]"#,
            ..LargeCaller::new(&door)
        },
        rows,
        &QUESTIONS,
    )?;
    process.stop()?;
    Ok(answers)
}

fn statement(tool: &str) -> Value {
    let (selected, (condition, parameters)) = match tool {
        "count_by_status" => (
            "count(*) AS count",
            ("WHERE status = $1", vec![("status", "string")]),
        ),
        "sum_by_status" => (
            "status, count(*) AS count, sum(amount) AS sum",
            ("GROUP BY status", Vec::new()),
        ),
        _ => ("id, name, status, amount", listed(tool)),
    };
    let parameter =
        |(name, kind): (&str, &str)| json!({ "name": name, "type": kind, "description": name });
    json!({
        "kind": "sqlite-sql", "source": "rows", "description": tool,
        "parameters": parameters.into_iter().map(parameter).collect::<Vec<_>>(),
        "statement": format!("SELECT {selected} FROM rows {condition}"),
    })
}

/// Returns the condition of a tool that finds rows, and its parameters.
fn listed(tool: &str) -> (&'static str, Vec<(&'static str, &'static str)>) {
    match tool {
        "get_row" => ("WHERE id = $1", vec![("id", "integer")]),
        "list_by_status" => (
            "WHERE status = $1 LIMIT $2",
            vec![("status", "string"), ("limit", "integer")],
        ),
        "list_by_amount" => (
            "WHERE amount >= $1 LIMIT $2",
            vec![("min_amount", "float"), ("limit", "integer")],
        ),
        "list_rows" => ("LIMIT $1", vec![("limit", "integer")]),
        _ => (
            "WHERE name LIKE '%' || $1 || '%' LIMIT $2",
            vec![("name", "string"), ("limit", "integer")],
        ),
    }
}
