//! Plugins: list, upload and remove them.

use std::{collections::BTreeMap, sync::Arc};

use serde::Serialize;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_plugin_host::{LoadReport, PluginStatus, RecentCalls};
use weir_text::shorten;

use super::{FailureKind, OperationError, OperationResult, shared_builds};
use crate::{
    control::ControlPlane,
    plugin_files::{PluginFolderLock, RefusedPluginFile},
};

/// A plugin that runs, with its origin and its grants.
#[derive(Serialize, ToSchema)]
pub struct PluginView {
    pub name: String,
    pub version: String,
    /// sha256 of the file, hex.
    pub digest: String,
    /// The name that collections give under `adapter:`.
    pub adapters: Vec<String>,
    /// `built-in`: it came with the gateway; `folder`: from a file of the plugins folder; `native`: from
    /// a library that the configuration names.
    pub origin: &'static str,
    /// Rises with every new build that goes live.
    pub generation: u64,
    pub calls: u64,
    /// Calls that ended in a trap, at a bound or in a timeout.
    pub failures: u64,
    pub swaps: u64,
    /// The most linear memory that one instance has used since the plugin was loaded, in bytes.
    pub memory_peak_bytes: usize,
    /// Linear memory of its idle instances, in bytes.
    pub parked_bytes: usize,
    pub health: Health,
    /// The problem, if its health is not `ok`.
    pub reason: Option<String>,
    /// Connection → `read` or `write`, as `weir.toml` grants it.
    pub grants: BTreeMap<String, String>,
}

/// Whether the calls of a plugin succeed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    Ok,
    /// It serves, but too many of its last calls ended in a trap, at a bound or in a timeout.
    Failing,
    /// It is waiting to be accepted.
    Held,
    Refused,
}

/// The plugins that run, and the files that do not.
#[derive(Serialize, ToSchema)]
pub struct PluginsView {
    pub plugins: Vec<PluginView>,
    /// Files that were refused, and why; the previous build keeps running.
    pub refused: Vec<RefusedPlugin>,
}

/// A file of the plugins folder that was refused or is held.
#[derive(Serialize, ToSchema)]
#[schema(as = RefusedPlugin)]
pub struct RefusedPlugin {
    pub file: String,
    /// `held` or `refused`.
    pub health: Health,
    pub reason: String,
    /// The sha256 of a valid file that no admin has accepted yet: see `accept`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
}

/// The outcome of one file of the folder, or of one built-in plugin.
#[derive(Serialize, ToSchema)]
pub struct FileOutcome {
    /// The file's name; for a built-in plugin, the plugin's.
    pub file: String,
    pub plugin: Option<String>,
    pub version: Option<String>,
    /// sha256 of the file, hex.
    pub digest: Option<String>,
    /// `loaded`, `unchanged`, `removed`, `held` or `refused`.
    pub result: &'static str,
    /// Why it is held or refused, or what its removal leaves without an adapter.
    pub reason: Option<String>,
}

/// Returns the plugins that run, and the files that were refused.
pub fn list(control: &ControlPlane) -> PluginsView {
    let refused = control.plugin_files().refused().into_iter();
    let refused = refused.map(|refused| RefusedPlugin {
        file: refused.file,
        health: if refused.held.is_some() {
            Health::Held
        } else {
            Health::Refused
        },
        reason: refused.reason,
        held: refused.held,
    });
    PluginsView {
        plugins: views(control),
        refused: refused.collect(),
    }
}

/// Puts a component into the plugins folder and waits until it runs or is refused. A refused one is removed again, one that must
/// be accepted first is kept, and the present build keeps running.
pub async fn upload(
    control: Arc<ControlPlane>,
    plugin: PluginFile,
    bytes: impl AsRef<[u8]> + Clone + Send + Sync + 'static,
    by: String,
) -> OperationResult<PluginView> {
    let PluginFile { name, file } = plugin;
    to_its_end(async move { put_in(&control, &name, file, bytes, &by).await }).await
}

/// Replaces a file, and restores the old one unless the new one is taken or held.
async fn put_in(
    control: &ControlPlane,
    name: &str,
    file: String,
    bytes: impl AsRef<[u8]> + Clone + Send + Sync + 'static,
    by: &str,
) -> OperationResult<PluginView> {
    let digest = hex::encode(Sha256::digest(bytes.as_ref()));
    let _turn = control.plugin_files().turn().await;
    control
        .gateway()
        .audit()
        .admin(AdminAct::PluginLoad, name, Some(&digest), by, None)?;
    let verdict = place_build(control, &file, &digest, bytes.clone(), by).await;
    if matches!(verdict, Ok(BuildOutcome::Runs(_) | BuildOutcome::Held(_))) {
        let build = Some((digest.as_str(), bytes.as_ref()));
        shared_builds::record(control, &file, build, by).await?;
        return verdict?.into_result();
    }
    control
        .gateway()
        .audit()
        .admin(AdminAct::PluginRefuse, name, Some(&digest), by, None)?;
    verdict?.into_result()
}

/// Replaces a file by a build, and restores the old one unless the new one is taken or held. The caller has the turn.
pub(super) async fn place_build(
    control: &ControlPlane,
    file: &str,
    digest: &str,
    bytes: impl AsRef<[u8]> + Send + 'static,
    by: &str,
) -> OperationResult<BuildOutcome> {
    // Uploading a build also accepts it.
    control.gateway().host().approve(digest, by).await;
    let folder = control.gateway().config().folders.plugins.clone();
    let (placed, new) = (file.to_owned(), digest.to_owned());
    let changing = on_disk(move || {
        let changing = PluginFolderLock::begin(&folder)?;
        changing
            .replace(&placed, bytes.as_ref(), &new)
            .map(|()| changing)
    });
    let changing = changing.await?;
    let verdict = verdict(control, file, digest).await;
    let (file, digest) = (file.to_owned(), digest.to_owned());
    // An admin may accept a held file: the previous build keeps running until then.
    if matches!(verdict, Ok(BuildOutcome::Runs(_) | BuildOutcome::Held(_))) {
        on_disk(move || changing.accept(&file, &digest)).await?;
    } else {
        control.plugin_files().forget(&file);
        on_disk(move || changing.put_back(&file, &digest)).await?;
    }
    verdict
}

/// Accepts a file that is held because its plugin may write, and waits until it runs or is refused.
pub async fn accept(
    control: Arc<ControlPlane>,
    plugin: PluginFile,
    sha256: &str,
    by: String,
) -> OperationResult<PluginView> {
    let PluginFile { name, file } = plugin;
    let digest = sha256.to_ascii_lowercase();
    to_its_end(async move { let_in(&control, &name, &file, &digest, &by).await }).await
}

async fn let_in(
    control: &ControlPlane,
    name: &str,
    file: &str,
    digest: &str,
    by: &str,
) -> OperationResult<PluginView> {
    let _turn = control.plugin_files().turn().await;
    if !is_held(control, file, digest) {
        return Err(OperationError::not_found("held file of the digest", digest));
    }
    control
        .gateway()
        .audit()
        .admin(AdminAct::PluginLoad, name, Some(digest), by, None)?;
    control.gateway().host().approve(digest, by).await;
    let verdict = verdict(control, file, digest).await?;
    if !matches!(verdict, BuildOutcome::Runs(_)) {
        control
            .gateway()
            .audit()
            .admin(AdminAct::PluginRefuse, name, Some(digest), by, None)?;
    }
    verdict.into_result()
}

/// Returns `true` if this build waits to be accepted.
fn is_held(control: &ControlPlane, file: &str, digest: &str) -> bool {
    let waits = |refused: &RefusedPluginFile| {
        refused.file == file && refused.held.as_deref() == Some(digest)
    };
    control.plugin_files().refused().iter().any(waits)
}

/// The outcome of one build.
pub(super) enum BuildOutcome {
    Runs(PluginView),
    /// The reason why it waits to be accepted.
    Held(String),
    /// Why it was refused.
    Refused(String),
}

impl BuildOutcome {
    /// Checks that a build was not refused.
    pub(super) fn check(self) -> OperationResult<()> {
        match self {
            Self::Runs(_) | Self::Held(_) => Ok(()),
            Self::Refused(reason) => Err(OperationError::invalid(reason)),
        }
    }

    fn into_result(self) -> OperationResult<PluginView> {
        match self {
            Self::Runs(view) => Ok(view),
            Self::Held(reason) | Self::Refused(reason) => Err(OperationError::invalid(reason)),
        }
    }
}

/// Loads the files of the folder, and returns the outcome of this build. No other load runs meanwhile, so a refusal concerns the
/// file as it is now.
async fn verdict(
    control: &ControlPlane,
    file: &str,
    digest: &str,
) -> OperationResult<BuildOutcome> {
    // If the watch has already refused the file, it is tried again.
    for again in [false, true] {
        let reports = load(control, again).await;
        let report = reports
            .into_iter()
            .rfind(|report| report.file == file && !report.removed);
        if let Some(LoadReport {
            result: Err(reason),
            held,
            ..
        }) = report
        {
            return Ok(if held.is_some() {
                BuildOutcome::Held(reason)
            } else {
                BuildOutcome::Refused(reason)
            });
        }
        let runs = |view: &PluginView| view.digest == digest && view.origin == "folder";
        if let Some(view) = views(control).into_iter().find(runs) {
            return Ok(BuildOutcome::Runs(view));
        }
    }
    Err(OperationError::unavailable(
        "the file neither runs nor was refused: the plugins folder cannot be read, or another file was put there. \
         Look what it holds, and try again",
    ))
}

/// Removes a plugin's file: a built-in plugin serves instead, or its tools answer `unavailable`.
pub async fn remove(
    control: Arc<ControlPlane>,
    name: String,
    by: String,
) -> OperationResult<Vec<FileOutcome>> {
    to_its_end(async move { take_away(&control, &name, &by).await }).await
}

async fn take_away(
    control: &ControlPlane,
    name: &str,
    by: &str,
) -> OperationResult<Vec<FileOutcome>> {
    let _turn = control.plugin_files().turn().await;
    let file = file_of(control, name).await?;
    let subject = file.strip_suffix(".wasm").unwrap_or(&file);
    control
        .gateway()
        .audit()
        .admin(AdminAct::PluginRemove, subject, None, by, None)?;
    let outcomes = take_file_away(control, &file).await?;
    shared_builds::record(control, &file, None, by).await?;
    Ok(outcomes)
}

/// Removes a file, if it exists. The caller has the turn.
pub(super) async fn take_file_away(
    control: &ControlPlane,
    file: &str,
) -> OperationResult<Vec<FileOutcome>> {
    let folder = control.gateway().config().folders.plugins.clone();
    let gone = file.to_owned();
    on_disk(move || {
        let changing = PluginFolderLock::begin(&folder)?;
        match folder.join(&gone).exists() {
            true => changing.remove(&gone),
            false => Ok(()),
        }
    })
    .await?;
    let mut outcomes = settled(control, false).await;
    outcomes
        .entry(file.to_owned())
        .or_insert_with(|| FileOutcome::from_status(file.to_owned(), "removed", None));
    Ok(outcomes.into_values().collect())
}

/// Loads the files of the folder, and retries files that were refused or are held.
pub async fn reload(control: &ControlPlane) -> Vec<FileOutcome> {
    let mut outcomes = settled(control, true).await;
    for refused in control.plugin_files().refused() {
        let result = if refused.held.is_some() {
            "held"
        } else {
            "refused"
        };
        let outcome = FileOutcome {
            reason: Some(refused.reason),
            digest: refused.held,
            ..FileOutcome::from_status(refused.file, result, None)
        };
        outcomes.entry(outcome.file.clone()).or_insert(outcome);
    }
    let files = control.gateway().host().files().await;
    for status in control.gateway().host().plugins() {
        let file = files.get(&status.name).unwrap_or(&status.name).clone();
        outcomes
            .entry(file.clone())
            .or_insert_with(|| FileOutcome::from_status(file, "unchanged", Some(&status)));
    }
    outcomes.into_values().collect()
}

/// Loads what changed in the folder, and returns the outcome by file.
async fn settled(control: &ControlPlane, again: bool) -> BTreeMap<String, FileOutcome> {
    let reports = load(control, again).await;
    let outcome = |report: &LoadReport| {
        let status = report.result.as_ref().ok();
        let result = match &report.result {
            _ if report.removed => "removed",
            Ok(_) => "loaded",
            Err(_) if report.held.is_some() => "held",
            Err(_) => "refused",
        };
        let reason = match (report.removed, status) {
            (true, Some(removed)) => unprovided(control, removed),
            (true, None) => None,
            (false, _) => report.result.as_ref().err().cloned(),
        };
        let mut outcome = FileOutcome {
            reason,
            ..FileOutcome::from_status(report.file.clone(), result, status)
        };
        outcome.digest = outcome.digest.or_else(|| report.held.clone());
        outcome
    };
    reports
        .iter()
        .map(|report| (report.file.clone(), outcome(report)))
        .collect()
}

/// Loads what changed in the folder, and notes the outcome.
async fn load(control: &ControlPlane, again: bool) -> Vec<LoadReport> {
    let reports = control.gateway().host().settle_all(again).await;
    reports
        .iter()
        .for_each(|report| control.note_plugin(report));
    reports
}

/// Returns what removing the plugin leaves without an adapter.
fn unprovided(control: &ControlPlane, removed: &PluginStatus) -> Option<String> {
    let serving = control.gateway().host().plugins();
    let provided = |adapter: &&String| {
        !serving
            .iter()
            .any(|plugin| plugin.adapters.contains(adapter))
    };
    let gone: Vec<String> = removed
        .adapters
        .iter()
        .filter(provided)
        .map(|adapter| format!("`{adapter}`"))
        .collect();
    let gone = (!gone.is_empty()).then(|| gone.join(", "));
    gone.map(|gone| {
        format!("nothing else provides the adapter {gone}: its tools answer `unavailable`")
    })
}

/// Returns the file of the folder with this name, or the one with the plugin of this name.
async fn file_of(control: &ControlPlane, name: &str) -> OperationResult<String> {
    let folder = control.gateway().config().folders.plugins.clone();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut files: Vec<String> = found
        .filter(|file| file.ends_with("wasm") && !file.starts_with('.'))
        .collect();
    files.sort();
    let with_end = format!("{name}.wasm");
    if let Some(file) = files
        .iter()
        .find(|file| *file == name || **file == with_end)
    {
        return Ok(file.clone());
    }
    if let Some(file) = control.gateway().host().files().await.remove(name) {
        return Ok(file);
    }
    let shown = shorten(name, 64);
    let plugins = control.gateway().host().plugins();
    if plugins.iter().any(|plugin| plugin.name == name) {
        let message = format!("`{shown}` is built into this gateway: there is no file to remove");
        return Err(OperationError::new(FailureKind::Conflict, message));
    }
    let plugins: Vec<&str> = plugins.iter().map(|plugin| plugin.name.as_str()).collect();
    let message = format!(
        "there is no plugin and no file `{shown}`; the plugins are [{}], the files [{}]",
        plugins.join(", "),
        files.join(", ")
    );
    Err(OperationError::new(FailureKind::NotFound, message))
}

impl FileOutcome {
    fn from_status(file: String, result: &'static str, status: Option<&PluginStatus>) -> Self {
        Self {
            file,
            plugin: status.map(|status| status.name.clone()),
            version: status.map(|status| status.version.clone()),
            digest: status.map(|status| status.digest.clone()),
            result,
            reason: None,
        }
    }
}

fn views(control: &ControlPlane) -> Vec<PluginView> {
    let granted = |plugin: &str| {
        let config = control.gateway().config();
        let settings = config.plugins.get(plugin);
        let grants = settings.into_iter().flat_map(|settings| &settings.grants);
        grants
            .map(|(connection, grant)| (connection.clone(), grant.word().to_owned()))
            .collect()
    };
    let view = |status: PluginStatus| PluginView {
        grants: granted(&status.name),
        origin: status.origin(),
        health: if is_failing(status.recent) {
            Health::Failing
        } else {
            Health::Ok
        },
        reason: is_failing(status.recent).then(|| failing(status.recent)),
        name: status.name,
        version: status.version,
        digest: status.digest,
        adapters: status.adapters,
        generation: status.generation,
        calls: status.calls,
        failures: status.failures,
        swaps: status.swaps,
        memory_peak_bytes: status.memory_peak_bytes,
        parked_bytes: status.parked_bytes,
    };
    control
        .gateway()
        .host()
        .plugins()
        .into_iter()
        .map(view)
        .collect()
}

/// Returns `true` for more than stray failures: at least three of the last calls, and at least a tenth.
pub(crate) fn is_failing(recent: RecentCalls) -> bool {
    recent.failed >= 3 && recent.failed * 10 >= recent.calls
}

fn failing(recent: RecentCalls) -> String {
    format!(
        "{} of its last {} calls ended in a trap, at a bound or in a timeout",
        recent.failed, recent.calls
    )
}

/// A name, and its file in the plugins folder.
pub struct PluginFile {
    name: String,
    file: String,
}

impl PluginFile {
    /// Checks that a name is a plain file name in the folder.
    pub fn named(name: String) -> OperationResult<Self> {
        let fits = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
        };
        if !(1..=64).contains(&name.len()) || !name.bytes().all(fits) {
            return Err(OperationError::new(
                FailureKind::Malformed,
                "a plugin's name is 1 to 64 of a-z, 0-9, `-` and `_`",
            ));
        }
        let file = format!("{name}.wasm");
        Ok(Self { name, file })
    }
}

/// Runs the work to its end, even if the caller no longer waits: otherwise a file without a verdict would remain.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = OperationResult<T>> + Send + 'static,
) -> OperationResult<T> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|error| {
        Err(OperationError::unavailable(format!(
            "the change was cut off: {error}"
        )))
    })
}

/// Moves work that waits for the disk off the threads that answer requests.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> OperationResult<T> {
    let done = tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)));
    done.map_err(|error| OperationError::unavailable(format!("the plugins folder: {error}")))
}
