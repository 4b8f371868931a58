//! A part of the benchmark that has its own page in `docs/benchmarks`.

use std::{fs, path::Path};

use anyhow::Context;

use crate::machine::BenchMachine;

pub(crate) trait BenchPart {
    /// The name of the page's file.
    const FILE: &'static str;

    fn page(&self) -> String;

    /// Prints the page, and writes it where a folder for pages is given.
    fn publish(&self, folder: Option<&Path>) -> anyhow::Result<()> {
        let page = self.page();
        println!("\n{page}");
        let Some(path) = folder.map(|folder| folder.join(Self::FILE)) else {
            return Ok(());
        };
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Returns the first lines of a page: its title, how its figures are measured, and the machine.
pub(crate) fn opening(title: &str, how: &str, machine: &BenchMachine) -> String {
    let lines: Vec<String> = machine.lines();
    let lines = lines.iter().map(|line| format!("- {line}\n"));
    format!("# {title}\n\n{how}\n{}", lines.collect::<String>())
}

/// Returns the words for a figure that is within its rule, or is not.
pub(crate) fn within(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}
