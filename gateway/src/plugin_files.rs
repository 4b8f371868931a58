//! What became of the files in the plugins folder: for who put one there.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use weir_plugin_host::LoadReport;

/// The last word on each file.
#[derive(Default)]
pub struct PluginFiles(Mutex<BTreeMap<String, (Instant, Result<(), String>)>>);

impl PluginFiles {
    pub fn note(&self, report: &LoadReport) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if report.removed {
            files.remove(&report.file);
            return;
        }
        let result = report.result.as_ref().map(drop).map_err(Clone::clone);
        files.insert(report.file.clone(), (Instant::now(), result));
    }

    /// Files that are refused now, and why.
    pub fn refused(&self) -> Vec<(String, String)> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.iter().filter_map(|(file, (_, result))| Some((file.clone(), result.as_ref().err()?.clone()))).collect()
    }

    /// Why a file was refused, where that was after `since`.
    pub fn refusal(&self, file: &str, since: Instant) -> Option<String> {
        let files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, result) = files.get(file)?;
        result.as_ref().err().filter(|_| *at >= since).cloned()
    }
}
