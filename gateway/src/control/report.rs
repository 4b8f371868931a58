//! The result of one look at the contracts folder, and its log lines.

use std::{collections::BTreeSet, path::PathBuf};

use parking_lot::Mutex;
use weir_contracts::FileProblem;

use super::{describe::UnavailableDependency, gate::HeldDraft};

/// The outcome for the files.
#[derive(Debug, Default)]
pub struct FolderReport {
    pub problems: Vec<FileProblem>,
    /// Contract files whose source could not be described yet, and why.
    pub waiting: Vec<(PathBuf, UnavailableDependency)>,
    /// Changes that are held at the gate.
    pub held: Vec<HeldDraft>,
}

/// Remembers the lines that were logged for the last look.
#[derive(Default)]
pub(super) struct ReportLog {
    logged: Mutex<BTreeSet<String>>,
}

impl ReportLog {
    /// Logs each problem once, until it changes: a waiting contract is tried at each look, and the message of its source may
    /// differ each time.
    pub(super) fn write(&self, report: &FolderReport) {
        let mut logged = self.logged.lock();
        let waiting = report.waiting.iter().map(|(path, away)| {
            let line = |why: &str| format!("waiting: {}: {why}", path.display());
            (line(&away.why), Some(line(&away.in_full())))
        });
        let held = report
            .held
            .iter()
            .map(|held| (format!("held: {}", held.line()), None));
        let mut now = BTreeSet::new();
        for (line, in_full) in waiting.chain(held) {
            if !logged.contains(&line) {
                tracing::warn!("{}", in_full.as_ref().unwrap_or(&line));
            }
            now.insert(line);
        }
        for problem in &report.problems {
            let line = format!("refused: {problem}");
            if !logged.contains(&line) {
                tracing::error!("{line}");
            }
            now.insert(line);
        }
        *logged = now;
    }
}
