//! Prints and keeps the results: the tables, the JSON file and the page.

mod page;
mod part;
mod targets;

pub(crate) use page::markdown;
pub(crate) use part::{BenchPart, opening, within};

use std::{fs, path::Path};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::{
    machine::BenchMachine,
    measure::{
        BenchEffort, FigureSpread, ListFigures, RowFigures, ServerCores, ThreadFigures, TurnFigures,
    },
};

#[derive(Serialize, Deserialize)]
pub(crate) struct BenchReport {
    machine: BenchMachine,
    effort: BenchEffort,
    /// The differences between this run and the page's description of every run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    rows: Vec<RowFigures>,
    turns: Vec<Vec<TurnFigures>>,
    skipped: Vec<SkippedRow>,
}

/// A row that was not measured, and why.
#[derive(Serialize, Deserialize)]
pub(crate) struct SkippedRow {
    pub(crate) row: String,
    pub(crate) why: String,
}

/// Cells, the head first.
pub(crate) type Table = Vec<Vec<String>>;

impl BenchReport {
    pub(crate) fn new(machine: BenchMachine, effort: BenchEffort) -> Self {
        println!("{}\n", machine.lines().join("\n"));
        Self {
            machine,
            effort,
            notes: Vec::new(),
            rows: Vec::new(),
            turns: Vec::new(),
            skipped: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, figures: RowFigures) {
        let void = figures
            .void
            .as_ref()
            .map_or(String::new(), |why| format!("   VOID: {why}"));
        let f = &figures;
        println!(
            "{:<26} {:>8.0} calls/core-s  {:>8.2} µs CPU  {:>8.0} calls/s{void}",
            f.row, f.calls_per_core_second.median, f.cpu_us.median, f.calls_per_second.median
        );
        for why in &figures.left_out {
            println!("{:<26} left out: {why}", figures.row);
        }
        self.rows.push(figures);
    }

    pub(crate) fn skip(&mut self, row: &str, why: String) {
        println!("{row:<26} left out: {why}");
        // The rest of a server's log is on the terminal.
        let why = why
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect();
        self.skipped.push(SkippedRow {
            row: row.to_owned(),
            why,
        });
    }

    /// Returns `true` if a row was measured and counts.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.rows
            .iter()
            .any(|row| row.row == name && row.void.is_none())
    }

    pub(crate) fn turns(&mut self, turns: Vec<TurnFigures>) {
        self.turns.push(turns);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.skipped.is_empty()
    }

    pub(crate) fn print(&self) {
        for (title, table) in self.tables() {
            println!("\n{title}\n\n{}", aligned(&table));
        }
    }

    /// Writes the page and the figures, each into its own file.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let put = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
        };
        put(
            "figures.json",
            format!("{}\n", serde_json::to_string_pretty(self)?),
        )?;
        put("README.md", page::page(self))
    }

    /// Returns everything there is to read, table by table.
    fn tables(&self) -> Vec<(&'static str, Table)> {
        let mut tables = vec![("Calls", self.calls()), ("Start and memory", self.start())];
        tables.push(("A second server thread", self.threads()));
        tables.push(("Many tools", self.lists()));
        tables.push(("Audit", self.audit()));
        tables.push(("In turns", self.in_turns()));
        tables.push(("Targets", targets::table(&self.rows, &self.turns)));
        tables.push(("Left out", self.left_out()));
        tables.retain(|(_, table)| table.len() > 1);
        tables
    }

    fn in_turns(&self) -> Table {
        let head = ["asked", "CPU µs", "range", "p50 µs", "beside"];
        let groups = self.turns.iter();
        let all: Vec<_> = groups
            .flat_map(|group| group.iter().map(move |turns| (group, turns)))
            .collect();
        table(&head, &all, |(group, turns)| {
            let cpu = FigureSpread::from_values(turns.cpu_us.iter().copied());
            let others = group
                .iter()
                .map(|other| other.of)
                .filter(|of| *of != turns.of);
            let beside: Vec<_> = others.map(|of| of.to_string()).collect();
            let range = format!("{:.1} to {:.1}", cpu.min, cpu.max);
            let p50 = match turns.p50_us[..] {
                [] => dash(),
                _ => whole(FigureSpread::from_values(turns.p50_us.iter().copied()).median),
            };
            vec![
                turns.of.to_string(),
                format!("{:.1}", cpu.median),
                range,
                p50,
                beside.join("; "),
            ]
        })
    }

    fn calls(&self) -> Table {
        let head = [
            "row",
            "calls per core-second",
            "range",
            "CPU µs a call",
            "without children",
            "calls/s",
            "p50 µs",
            "p99 µs",
            "answer bytes",
        ];
        table(&head, &self.rows, |f| {
            let c = f.calls_per_core_second;
            vec![
                if f.void.is_some() {
                    format!("{} (void)", f.row)
                } else {
                    f.row.clone()
                },
                whole(c.median),
                format!("{} to {}", whole(c.min), whole(c.max)),
                format!("{:.1}", f.cpu_us.median),
                f.own_cpu_us
                    .map_or_else(dash, |own| format!("{:.1}", own.median)),
                whole(f.calls_per_second.median),
                whole(f.p50_us.median),
                whole(f.p99_us.median),
                whole(f.answer_bytes),
            ]
        })
    }

    fn start(&self) -> Table {
        let head = [
            "row",
            "start to first answer ms",
            "idle CPU %",
            "idle MB",
            "after many calls MB",
            "growth MB",
        ];
        table(&head, &self.rows, |f| {
            let many = |value: fn(&crate::measure::MemoryGrowth) -> f64| {
                f.many
                    .as_ref()
                    .map_or_else(dash, |many| format!("{:.1}", value(many) / 1e6))
            };
            vec![
                f.row.clone(),
                format!("{:.0}", f.start_ms.median),
                f.idle_cpu_percent
                    .map_or_else(dash, |percent| format!("{percent:.3}")),
                format!("{:.1}", f.idle_bytes as f64 / 1e6),
                many(|many| many.after_bytes as f64),
                many(|many| many.after_bytes as f64 - many.before_bytes as f64),
            ]
        })
    }

    fn threads(&self) -> Table {
        let head = [
            "row",
            "cores",
            "calls under way",
            "one thread: CPU µs",
            "two threads",
            "two processes",
            "threads by one",
        ];
        let all: Vec<(&str, &ThreadFigures)> = self
            .rows
            .iter()
            .flat_map(|row| row.threads.iter().map(|at| (row.row.as_str(), at)))
            .collect();
        table(&head, &all, |(row, at)| {
            let cpu = |turns: &[f64]| {
                format!(
                    "{:.1}",
                    FigureSpread::from_values(turns.iter().copied()).median
                )
            };
            vec![
                (*row).to_owned(),
                match at.cores {
                    ServerCores::Own => "its own".to_owned(),
                    ServerCores::Both => "both, shared".to_owned(),
                },
                at.connections.to_string(),
                cpu(&at.one_thread_cpu_us),
                cpu(&at.two_threads_cpu_us),
                cpu(&at.two_processes_cpu_us),
                targets::by_turns(&at.two_threads_cpu_us, &at.one_thread_cpu_us)
                    .map_or_else(dash, |times| format!("{times:.2}")),
            ]
        })
    }

    fn lists(&self) -> Table {
        let head = [
            "row",
            "tools",
            "in one answer",
            "bytes",
            "lists per core-second",
            "p50 µs",
            "CPU µs a call",
            "start ms",
        ];
        let all: Vec<(&str, &ListFigures)> = self
            .rows
            .iter()
            .flat_map(|row| row.lists.iter().map(|list| (row.row.as_str(), list)))
            .collect();
        table(&head, &all, |(row, list)| {
            vec![
                (*row).to_owned(),
                list.tools.to_string(),
                list.page.to_string(),
                whole(list.list_bytes),
                whole(list.lists_per_core_second),
                whole(list.list_p50_us),
                match list.call_cpu_us[..] {
                    [] => dash(),
                    _ => format!(
                        "{:.1}",
                        FigureSpread::from_values(list.call_cpu_us.iter().copied()).median
                    ),
                },
                whole(list.start_ms),
            ]
        })
    }

    fn audit(&self) -> Table {
        let audited: Vec<_> = self
            .rows
            .iter()
            .filter_map(|row| Some((row, row.audit?)))
            .collect();
        table(
            &["row", "answered", "on record", "verify"],
            &audited,
            |(row, audit)| {
                let verdict = if row.void.is_some() { "VOID" } else { "passes" };
                vec![
                    row.row.clone(),
                    audit.answered.to_string(),
                    audit.recorded.to_string(),
                    verdict.to_owned(),
                ]
            },
        )
    }

    /// Names every row, and every part of one, that was not measured, and every row that does not count.
    fn left_out(&self) -> Table {
        let rows = self
            .skipped
            .iter()
            .map(|skipped| [skipped.row.clone(), skipped.why.clone()]);
        let parts = self.rows.iter().flat_map(|row| {
            row.left_out
                .iter()
                .map(|why| [row.row.clone(), why.clone()])
        });
        let void = self
            .rows
            .iter()
            .filter_map(|row| Some([row.row.clone(), format!("void: {}", row.void.as_ref()?)]));
        let all: Vec<_> = rows.chain(parts).chain(void).collect();
        table(&["row", "why"], &all, |cells| cells.to_vec())
    }
}

/// Returns a table with a line for each row.
pub(crate) fn table<T>(head: &[&str], rows: &[T], cells: impl Fn(&T) -> Vec<String>) -> Table {
    let head = head.iter().map(|cell| (*cell).to_owned()).collect();
    std::iter::once(head)
        .chain(rows.iter().map(cells))
        .collect()
}

/// Returns the mark of a missing figure.
fn dash() -> String {
    "–".to_owned()
}

/// Writes `12345.6` as `12,346`.
fn whole(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|g| str::from_utf8(g).unwrap_or(""))
        .collect();
    groups.join(",")
}

fn aligned(table: &Table) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| {
        table
            .iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells =
            row.iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    table.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks");

    pub(super) fn published() -> BenchReport {
        let figures =
            fs::read_to_string(format!("{FOLDER}/figures.json")).expect("a file of the repository");
        serde_json::from_str(&figures).expect("figures of a run")
    }

    #[test]
    fn a_target_without_a_figure_keeps_its_line() {
        let targets = |change: fn(&mut BenchReport)| {
            let mut report = published();
            change(&mut report);
            targets::table(&report.rows, &report.turns)
        };
        let unmeasured = |table: &Table| -> Vec<String> {
            table
                .iter()
                .filter(|line| line[3] == "not measured")
                .map(|line| line[0].clone())
                .collect()
        };
        let before = targets(|_| ());
        let failed = targets(|report| {
            let noop = report
                .rows
                .iter_mut()
                .find(|row| row.row == "weir-noop")
                .expect("a row");
            noop.lists.retain(|list| list.tools != 10_000);
        });
        assert_eq!(failed.len(), before.len());
        let lost: Vec<String> = unmeasured(&failed)
            .into_iter()
            .filter(|what| !unmeasured(&before).contains(what))
            .collect();
        assert_eq!(
            lost,
            [
                "tools/call with 10,000 tools, CPU by with 10",
                "start to first answer, 10,000 tools"
            ]
        );
        // Without turns there is no cost, rather than a cost of 0.
        let failed = targets(|report| {
            let noop = report
                .rows
                .iter_mut()
                .find(|row| row.row == "weir-noop")
                .expect("a row");
            noop.lists
                .iter_mut()
                .for_each(|list| list.call_cpu_us.clear());
        });
        assert!(
            unmeasured(&failed)
                .contains(&"tools/call with 10,000 tools, CPU by with 10".to_owned())
        );
        assert_eq!(
            targets(|report| (report.rows, report.turns) = (vec![], vec![])).len(),
            1,
            "nothing was measured"
        );
    }
}
