//! The first screen of a source that is served at once: how it was understood, and what was left out and why.

use std::fmt::{self, Write as _};

use weir::control::operations::databases::DraftedDatabase;
use weir_contracts::{CollectionShape, draft::ContractDraft, name::quoted};

use crate::terminal;

/// Tables that are named one by one; further tables are only counted.
const TABLES_MAX: usize = 40;
/// Notes on one table.
const NOTES_MAX: usize = 5;

/// The report that a person reads before the first call.
pub(crate) struct ServedReport {
    lines: Vec<String>,
}

impl ServedReport {
    /// Adds notes on the source as a whole.
    pub(super) fn with_notes(mut self, notes: Vec<String>) -> Self {
        self.lines
            .extend(notes.iter().map(|note| format!("  {note}")));
        self
    }

    /// Writes each line to the log, for a process whose screen is a client's.
    pub(crate) fn log(&self) {
        for line in &self.lines {
            tracing::info!("{}", line.trim());
        }
    }
}

impl fmt::Display for ServedReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| {
            // A name of a table may hold anything.
            writeln!(out, "{}", terminal::plain(line).replace('\n', " "))
        })
    }
}

/// Reports what became of each table of a database, or of each sheet of a workbook.
pub(super) fn database_report(title: &str, drafted: &DraftedDatabase) -> ServedReport {
    let (tables, left_out) = (&drafted.tables, &drafted.left_out);
    let tools: usize = tables.iter().map(|table| table.tools.len()).sum();
    let access = match drafted.writes {
        true => "which also write",
        false => "which only read",
    };
    let all = tables.len() + left_out.len();
    let (what, flag) = match drafted.is_workbook {
        true => ("sheets", "--sheet"),
        false => ("tables and views", "--tables"),
    };
    let mut lines = vec![format!(
        "{title}: {} of {all} {what} served by {tools} tools, {access}.",
        tables.len()
    )];
    for table in tables.iter().take(TABLES_MAX) {
        let shape = drafted.shapes.get(&table.collection);
        let what = shape.map(described).unwrap_or_default();
        lines.push(format!(
            "  {}: {what}{}",
            table.table,
            table.tools.join(", ")
        ));
        let notes = table.notes.iter().filter(|note| !is_known(note));
        lines.extend(notes.take(NOTES_MAX).map(|note| format!("    {note}")));
    }
    if tables.len() > TABLES_MAX {
        lines.push(format!("  and {} more", tables.len() - TABLES_MAX));
    }
    if !left_out.is_empty() {
        lines.push(format!(
            "Left out; `{flag}` names those that are to be served:"
        ));
    }
    for table in left_out.iter().take(TABLES_MAX) {
        let why = table.why.trim_end_matches('.');
        lines.push(format!("  {}: {why}.", table.table));
    }
    if left_out.len() > TABLES_MAX {
        lines.push(format!("  and {} more", left_out.len() - TABLES_MAX));
    }
    ServedReport { lines }
}

/// Writes the report of one spreadsheet or service.
pub(super) fn sheet_report(drafted: &ContractDraft, shape: &CollectionShape) -> ServedReport {
    let mut lines = vec![format!(
        "{}: {}",
        shape.name,
        described(shape).trim_end_matches("; ")
    )];
    lines.extend(drafted.notes.iter().map(|note| format!("  {note}")));
    ServedReport { lines }
}

/// Returns `true` for what the lines of the tables already state: whether there is a key, and whether any tool writes.
pub(super) fn is_known(note: &str) -> bool {
    note.starts_with("No tool writes:") || note.starts_with("There is no lookup,")
}

/// Names the columns and the key.
fn described(shape: &CollectionShape) -> String {
    let mut text = match shape.fields.len() {
        1 => "1 column".to_owned(),
        columns => format!("{columns} columns"),
    };
    match shape.key.is_empty() {
        true => text.push_str(", no key"),
        false => {
            let key: Vec<String> = shape.key.iter().map(|column| quoted(column)).collect();
            let _ = write!(text, ", key {}", key.join(" and "));
        }
    }
    text.push_str("; ");
    text
}
