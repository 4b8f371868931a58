//! Keeps the outcomes of the files in the plugins folder, for whoever put one there.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use tokio::sync::watch;
use weir_plugin_host::LoadReport;

/// The last word on each file.
#[derive(Default)]
pub struct PluginFiles {
    files: Mutex<BTreeMap<String, Noted>>,
    /// The number of reports so far, for whoever waits for one.
    reports: watch::Sender<u64>,
}

struct Noted {
    at: Instant,
    refusal: Option<String>,
    held: Option<String>,
}

/// A file that does not serve.
pub struct Refused {
    pub file: String,
    pub reason: String,
    /// The digest, if the file waits only until someone accepts it.
    pub held: Option<String>,
}

impl PluginFiles {
    pub(crate) fn note(&self, report: &LoadReport) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if report.removed {
            files.remove(&report.file);
        } else {
            let refusal = report.result.as_ref().err().cloned();
            files.insert(report.file.clone(), Noted { at: Instant::now(), refusal, held: report.held.clone() });
        }
        drop(files);
        self.reports.send_modify(|reports| *reports += 1);
    }

    /// Wakes whenever the host reports what became of a file.
    pub fn reports(&self) -> watch::Receiver<u64> {
        self.reports.subscribe()
    }

    /// Returns the files that are refused now, and why.
    pub fn refused(&self) -> Vec<Refused> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = files.iter().filter_map(|(file, noted)| {
            Some(Refused { file: file.clone(), reason: noted.refusal.clone()?, held: noted.held.clone() })
        });
        refused.collect()
    }

    /// Returns why a file was refused, if that was after `since`.
    pub fn refusal(&self, file: &str, since: Instant) -> Option<String> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(file).filter(|noted| noted.at >= since)?.refusal.clone()
    }
}
