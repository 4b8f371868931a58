//! Contracts from the files of the contracts folder: files are read when they are new or changed, compiled and submitted.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::Mutex;
use weir_contracts::{ContractVersion, FileProblem, form};
use weir_state::VersionSource;

use super::{
    folder::{self, SourceStamp},
    locks,
};
use crate::{
    control::{
        SnapshotPublisher,
        compiler::{CompileFailure, FormCompiler},
        gate::{ContractOrigin, Gate, GateError, HeldDraft, LiveContract, Submission, Verdict},
        report::FolderReport,
    },
    identity::now_ms,
};

pub(in crate::control) struct FileSource {
    publisher: Arc<SnapshotPublisher>,
    compiler: Arc<FormCompiler>,
    known: Mutex<KnownFiles>,
    /// The files of the folder that are not served, as of the last look.
    unserved: parking_lot::Mutex<Vec<UnservedFile>>,
    /// The file of each contract, as of the last look.
    files: parking_lot::Mutex<BTreeMap<String, PathBuf>>,
}

#[derive(Default)]
struct KnownFiles {
    seen: BTreeMap<PathBuf, SeenFile>,
    /// Contracts whose file is gone, with the version for which a draft was made.
    gone: BTreeSet<(String, ContractVersion)>,
}

/// A contract file as it was last seen.
struct SeenFile {
    stamp: SourceStamp,
    /// The contract it defines, once it could be read.
    name: Option<String>,
    /// Why the source could not be described: the file is tried again.
    waiting: Option<String>,
    /// The reasons why it was refused. It is tried again under another configuration.
    problems: Vec<FileProblem>,
    /// The stamp of its lock.
    lock: Option<SourceStamp>,
}

impl SeenFile {
    /// Returns `true` while reading it again would give the same result.
    fn is_settled(&self, path: &Path, stamp: &SourceStamp) -> bool {
        let lock = || {
            self.name
                .as_deref()
                .and_then(|name| folder::lock_stamp(path, name))
        };
        self.stamp == *stamp
            && self.waiting.is_none()
            && (self.problems.is_empty() || self.lock == lock())
    }
}

/// A contract file that is not served.
#[derive(Clone, Debug)]
pub struct UnservedFile {
    pub file: PathBuf,
    /// The faults of the file; empty if it only waits.
    pub problems: Vec<FileProblem>,
    /// Why its source cannot be described yet.
    pub waiting: Option<String>,
}

impl FileSource {
    pub(in crate::control) fn new(
        publisher: Arc<SnapshotPublisher>,
        compiler: Arc<FormCompiler>,
    ) -> Self {
        Self {
            publisher,
            compiler,
            known: Mutex::default(),
            unserved: Default::default(),
            files: Default::default(),
        }
    }

    fn gate(&self) -> &Gate {
        self.publisher.gate()
    }

    /// Returns the contract files that were refused or wait for their source, at the last look.
    pub(in crate::control) fn unserved(&self) -> Vec<UnservedFile> {
        self.unserved.lock().clone()
    }

    /// Returns the file of each contract of the folder.
    pub(in crate::control) fn files(&self) -> BTreeMap<String, PathBuf> {
        self.files.lock().clone()
    }

    /// Forgets the refused files: under another configuration they are tried again.
    pub(in crate::control) async fn retry_refused(&self) {
        let mut known = self.known.lock().await;
        known.seen.retain(|_, file| file.problems.is_empty());
    }

    /// Submits new and changed files of the folder, and asks to retire the contracts whose files are gone.
    pub(in crate::control) async fn submit_folder(&self, folder: &Path, report: &mut FolderReport) {
        let mut known = self.known.lock().await;
        match folder::list(folder) {
            Ok(found) => {
                known.seen.retain(|path, _| found.contains_key(path));
                for (path, stamp) in found {
                    self.look_at(&mut known.seen, path, stamp, report).await;
                }
                if let Err(error) = self.ask_to_retire(folder, &mut known, report).await {
                    report.problems.push(folder_problem(folder, &error));
                }
            }
            Err(problem) => report.problems.push(problem),
        }
        let mut unserved = unserved(&known.seen);
        let of_folder = report
            .problems
            .iter()
            .filter(|problem| problem.file == folder.display().to_string());
        let of_folder: Vec<FileProblem> = of_folder.cloned().collect();
        if !of_folder.is_empty() {
            unserved.push(UnservedFile {
                file: folder.to_owned(),
                problems: of_folder,
                waiting: None,
            });
        }
        *self.unserved.lock() = unserved;
        let named = |(path, file): (&PathBuf, &SeenFile)| Some((file.name.clone()?, path.clone()));
        let files = known.seen.iter().filter_map(named).collect();
        *self.files.lock() = files;
    }

    /// Reads a file if it is new or has changed, and remembers the result.
    async fn look_at(
        &self,
        seen: &mut BTreeMap<PathBuf, SeenFile>,
        path: PathBuf,
        stamp: SourceStamp,
        report: &mut FolderReport,
    ) {
        let known = seen.get(&path);
        if known.is_some_and(|known| known.is_settled(&path, &stamp)) {
            return;
        }
        let before = known.and_then(|known| known.name.clone());
        let taken = |name: &str| {
            let other = |(other, entry): (&PathBuf, &SeenFile)| {
                *other != path && entry.name.as_deref() == Some(name)
            };
            seen.iter().any(other)
        };
        let (problems, waiting) = (report.problems.len(), report.waiting.len());
        let name = self.submit_file(&path, taken, report).await.or(before);
        let problems = report.problems[problems..].to_vec();
        let waiting = report
            .waiting
            .get(waiting)
            .map(|(_, away)| away.why.clone());
        let lock = name
            .as_deref()
            .and_then(|name| folder::lock_stamp(&path, name));
        let entry = SeenFile {
            stamp,
            name,
            waiting,
            problems,
            lock,
        };
        seen.insert(path, entry);
    }

    /// Reads one new or changed file and submits it. Returns the contract that it defines.
    async fn submit_file(
        &self,
        path: &Path,
        taken: impl Fn(&str) -> bool,
        report: &mut FolderReport,
    ) -> Option<String> {
        let file = path.display().to_string();
        let text = match folder::read(path) {
            Ok(text) => text,
            Err(problem) => {
                report.problems.push(problem);
                return None;
            }
        };
        // A file whose text is live is not compiled again: the live version remains as it was published.
        let live = self.gate().live();
        let unchanged = live
            .values()
            .find(|live| live.origin == ContractOrigin::File && live.source == text);
        if let Some(unchanged) = unchanged.filter(|live| !taken(&live.contract.name)) {
            let name = unchanged.contract.name.clone();
            if let Err(error) = self.keep_live(path, &name).await {
                report
                    .problems
                    .push(FileProblem::new(&file, "", error.to_string()));
            }
            return Some(name);
        }
        let source = match form::read(&file, &text) {
            Ok(source) => source,
            Err(problems) => {
                report.problems.extend(problems);
                return None;
            }
        };
        let Some(name) = source.contract.clone() else {
            let problem = FileProblem::new(
                &file,
                "",
                "is a form without a contract: it compiles, but there is nothing to serve",
            );
            report.problems.push(
                problem.hint(
                    "put it under `tools:` of a contract with `contract:` and `collections:`",
                ),
            );
            return None;
        };
        if taken(&name) {
            let message = format!("the contract `{name}` is defined in another file already");
            report
                .problems
                .push(FileProblem::new(&file, "/contract", message).hint("give it another name"));
            return None;
        }
        match self.submit_form(path, &text, &source, &name).await {
            Ok(held) => report.held.extend(held),
            Err(CompileFailure::Waiting(away)) => report.waiting.push((path.to_owned(), away)),
            Err(CompileFailure::Refused(problems)) => report.problems.extend(problems),
        }
        Some(name)
    }

    /// Claims the contract of a file whose text is live; the drafts of other texts are dropped.
    async fn keep_live(&self, path: &Path, name: &str) -> Result<(), GateError> {
        let (gate, owner) = (self.gate(), folder::owner(folder_of(path)));
        if gate.own(name, &owner).await?.is_none() {
            let state = gate.state();
            state
                .drop_held(name, ContractOrigin::File, now_ms(), "file")
                .await?;
            state.forget_rollback(name).await?;
        }
        Ok(())
    }

    /// Submits the contract that a file defines. Returns the waiting draft, if there is one.
    async fn submit_form(
        &self,
        path: &Path,
        text: &str,
        source: &form::ContractSource,
        name: &str,
    ) -> Result<Option<HeldDraft>, CompileFailure> {
        let (file, gate) = (path.display().to_string(), self.gate());
        let folder = folder_of(path);
        let owner = folder::owner(folder);
        let refused = |error| CompileFailure::at_the_gate(&file, error);
        if let Some(owned) = gate.own(name, &owner).await.map_err(refused)? {
            return Err(CompileFailure::Waiting(owned.to_string().into()));
        }
        // Without its lock the published version is unknown: the file would go live without being compared.
        let from_file = VersionSource {
            origin: ContractOrigin::File,
            owner: Some(&owner),
        };
        locks::restore(gate, folder, name, from_file)
            .await
            .map_err(CompileFailure::Refused)?;
        // This applies until the text of the file changes.
        if gate.is_rolled_back(name, text).await.map_err(refused)? {
            return Ok(None);
        }
        let contract = self.compiler.compile(source).await?;
        let by = format!(
            "file:{}",
            path.file_name().unwrap_or_default().to_string_lossy()
        );
        let submission = Submission {
            contract,
            source: text,
            origin: ContractOrigin::File,
            owner: Some(&owner),
            by: &by,
            hold: false,
            on: None,
        };
        match gate.submit(submission).await.map_err(refused)? {
            Verdict::Held(held) => Ok(Some(held)),
            Verdict::Published { .. } | Verdict::Unchanged { .. } => Ok(None),
        }
    }

    /// Finds the contracts that this folder owns and whose files are gone: they are served until their removal is approved. If
    /// any file cannot be read, its contract is unknown, so no contract counts as gone.
    async fn ask_to_retire(
        &self,
        folder: &Path,
        known: &mut KnownFiles,
        report: &mut FolderReport,
    ) -> Result<(), GateError> {
        let KnownFiles { seen, gone } = known;
        if seen.values().any(|file| file.name.is_none()) {
            return Ok(());
        }
        let present: BTreeSet<&str> = seen
            .values()
            .filter_map(|file| file.name.as_deref())
            .collect();
        let (live, owner) = (self.gate().live(), folder::owner(folder));
        let is_own = |live: &&Arc<LiveContract>| {
            live.origin == ContractOrigin::File && live.owner.as_deref() == Some(&*owner)
        };
        let missing = live
            .values()
            .filter(is_own)
            .map(|live| &live.contract)
            .filter(|contract| !present.contains(contract.name.as_str()));
        let now: BTreeSet<_> = missing
            .map(|contract| (contract.name.clone(), contract.version))
            .collect();
        for (name, _) in now.difference(gone) {
            report
                .held
                .push(self.gate().ask_to_retire(name, "file", None).await?);
        }
        *gone = now;
        Ok(())
    }
}

/// Adds the gate's reason to the folder as a whole.
pub(in crate::control) fn folder_problem(folder: &Path, error: &GateError) -> FileProblem {
    FileProblem::new(&folder.display().to_string(), "", error.to_string())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn unserved(seen: &BTreeMap<PathBuf, SeenFile>) -> Vec<UnservedFile> {
    let unserved = seen
        .iter()
        .filter(|(_, file)| file.waiting.is_some() || !file.problems.is_empty());
    let entry = |(path, file): (&PathBuf, &SeenFile)| UnservedFile {
        file: path.clone(),
        problems: file.problems.clone(),
        waiting: file.waiting.clone(),
    };
    unserved.map(entry).collect()
}

/// Returns the contract files of a folder.
pub fn contract_files(folder: &Path) -> Result<Vec<PathBuf>, FileProblem> {
    Ok(folder::list(folder)?.into_keys().collect())
}
