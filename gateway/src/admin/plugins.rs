//! Plugins: what runs, what was refused and why; a new file, an old one away.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest as _, Request, State as Shared},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_plugin_host::{LoadReport, PluginStatus, Recent};

use super::{
    Admin, Answer, Ask, Refusal,
    problem::{At, Body as Read, arrived_within},
    staff::Staff,
};
use crate::{
    control::gate::Role,
    plugin_files::{Changing, Refused},
};

/// The time in which a plugin arrives: some are tens of megabytes, and links are slow.
const UPLOAD_MAX: Duration = Duration::from_secs(600);
/// A plugin is a few megabytes; a component in another language may be tens.
pub(super) const BODY_MAX_BYTES: usize = 64 << 20;

#[derive(Serialize, ToSchema)]
pub(super) struct PluginView {
    name: String,
    version: String,
    /// sha256 of the file, hex.
    digest: String,
    /// What its collections name under `adapter:`.
    adapters: Vec<String>,
    /// `built-in`: it came with the gateway; `folder`: from a file of the plugins folder; `native` and
    /// `native-in-process`: from a library that the configuration names.
    origin: &'static str,
    /// Moves with every new build that went live.
    generation: u64,
    calls: u64,
    /// Calls that ended in a trap, a bound or a timeout.
    failures: u64,
    swaps: u64,
    health: Health,
    /// What is wrong with it, where it is not `ok`.
    reason: Option<String>,
    /// Connection → `read` or `write`, as `weir.toml` grants it.
    grants: BTreeMap<String, String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Health {
    Ok,
    /// It serves, but too many of its last calls ended in a trap, at a bound or in a timeout.
    Failing,
    /// It waits until someone lets it in.
    Held,
    Refused,
}

#[derive(Serialize, ToSchema)]
pub(super) struct PluginsView {
    plugins: Vec<PluginView>,
    /// Files that were refused, and why; what ran before runs on.
    refused: Vec<RefusedFile>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RefusedPlugin)]
pub(super) struct RefusedFile {
    file: String,
    /// `held` or `refused`.
    health: Health,
    reason: String,
    /// sha256 of the file, where nothing is wrong with it but that nobody has let it in: see `accept`.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
}

/// What became of one file of the folder, or of one plugin that is built in.
#[derive(Serialize, ToSchema)]
pub(super) struct FileOutcome {
    /// The file's name; of what is built in, the plugin's.
    file: String,
    plugin: Option<String>,
    version: Option<String>,
    /// sha256 of the file, hex.
    digest: Option<String>,
    /// `loaded`, `unchanged`, `removed`, `held` or `refused`.
    result: &'static str,
    /// Why it is held or refused, or what its removal leaves without an adapter.
    reason: Option<String>,
}

/// Which build is let in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Accept {
    /// sha256 of the file that waits, hex: whoever accepts says what they have looked at.
    sha256: String,
}

/// What runs, and what was refused. Role: viewer.
#[utoipa::path(get, path = "/v1/plugins", responses(
    (status = 200, body = PluginsView), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn list(Shared(admin): Ask, staff: Staff) -> Answer<Json<PluginsView>> {
    staff.needs(Role::Viewer)?;
    let refused = admin.gateway.plugin_files().refused().into_iter();
    let refused = refused.map(|refused| RefusedFile {
        file: refused.file,
        health: if refused.held.is_some() {
            Health::Held
        } else {
            Health::Refused
        },
        reason: refused.reason,
        held: refused.held,
    });
    Ok(Json(PluginsView {
        plugins: views(&admin),
        refused: refused.collect(),
    }))
}

/// Puts a component into the plugins folder and waits until it runs or is refused; a refused one is taken away again, one
/// that waits for someone's consent stays, and what ran before runs on. Role: operator.
#[utoipa::path(put, path = "/v1/plugins/{name}",
    params(("name" = String, Path, description = "the file's name without `.wasm`")),
    request_body(content_type = "application/wasm", content = Vec<u8>),
    responses((status = 200, body = PluginView), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal), (status = 413, body = Refusal),
        (status = 422, body = Refusal, description = "the file is no plugin for this gateway"),
        (status = 503, body = Refusal)))]
pub(super) async fn upload(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
    request: Request,
) -> Answer<Json<PluginView>> {
    staff.needs(Role::Operator)?;
    let file = file_named(&name)?;
    let bytes = arrived_within(UPLOAD_MAX, Bytes::from_request(request, &()))
        .await?
        .map_err(|rejection| Refusal::new(rejection.status(), rejection.body_text()))?;
    to_its_end(async move { put_in(&admin, &name, file, bytes, &staff.by()).await })
        .await
        .map(Json)
}

/// Puts a file in the place of the one that is there, which is put back unless the new one is taken or held.
async fn put_in(
    admin: &Admin,
    name: &str,
    file: String,
    bytes: Bytes,
    by: &str,
) -> Answer<PluginView> {
    let digest = hex::encode(Sha256::digest(&bytes));
    let _turn = admin.gateway.plugin_files().turn().await;
    admin
        .gateway
        .audit()
        .admin(AdminAct::PluginLoad, name, Some(&digest), by, None)?;
    // Uploading a build also accepts it.
    admin.gateway.host().approve(&digest).await;
    let folder = admin.gateway.config().folders.plugins.clone();
    let (placed, new) = (file.clone(), digest.clone());
    let changing = on_disk(move || {
        let changing = Changing::begin(&folder)?;
        changing.replace(&placed, &bytes, &new).map(|()| changing)
    });
    let changing = changing.await?;
    let verdict = verdict(admin, &file, &digest).await;
    // Someone may agree to a file that is held: what ran before runs on meanwhile, and this build as soon as they have.
    if matches!(verdict, Ok(Verdict::Runs(_) | Verdict::Held(_))) {
        on_disk(move || changing.accept(&file, &digest)).await?;
        return verdict?.into_answer();
    }
    admin.gateway.plugin_files().forget(&file);
    let refused = digest.clone();
    on_disk(move || changing.put_back(&file, &refused)).await?;
    admin
        .gateway
        .audit()
        .admin(AdminAct::PluginRefuse, name, Some(&digest), by, None)?;
    verdict?.into_answer()
}

/// Lets a file in that is held because its plugin may write, and waits until it runs or is refused. Role: operator.
#[utoipa::path(post, path = "/v1/plugins/{name}/accept",
    params(("name" = String, Path, description = "the file's name without `.wasm`")),
    request_body = Accept,
    responses((status = 200, body = PluginView), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal),
        (status = 404, body = Refusal, description = "no file of that name and digest waits"),
        (status = 413, body = Refusal), (status = 415, body = Refusal),
        (status = 422, body = Refusal, description = "it does not load all the same"),
        (status = 503, body = Refusal)))]
pub(super) async fn accept(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
    Read(accept): Read<Accept>,
) -> Answer<Json<PluginView>> {
    staff.needs(Role::Operator)?;
    let file = file_named(&name)?;
    let digest = accept.sha256.to_ascii_lowercase();
    to_its_end(async move { let_in(&admin, &name, &file, &digest, &staff.by()).await })
        .await
        .map(Json)
}

async fn let_in(
    admin: &Admin,
    name: &str,
    file: &str,
    digest: &str,
    by: &str,
) -> Answer<PluginView> {
    let _turn = admin.gateway.plugin_files().turn().await;
    if !is_held(admin, file, digest) {
        return Err(Refusal::not_found("held file of the digest", digest));
    }
    admin
        .gateway
        .audit()
        .admin(AdminAct::PluginLoad, name, Some(digest), by, None)?;
    admin.gateway.host().approve(digest).await;
    let verdict = verdict(admin, file, digest).await?;
    if !matches!(verdict, Verdict::Runs(_)) {
        admin
            .gateway
            .audit()
            .admin(AdminAct::PluginRefuse, name, Some(digest), by, None)?;
    }
    verdict.into_answer()
}

/// Returns `true` if this build waits for someone.
fn is_held(admin: &Admin, file: &str, digest: &str) -> bool {
    let waits = |refused: &Refused| refused.file == file && refused.held.as_deref() == Some(digest);
    admin.gateway.plugin_files().refused().iter().any(waits)
}

/// What became of one build.
enum Verdict {
    Runs(PluginView),
    /// Why it waits for someone.
    Held(String),
    /// Why it was refused.
    Refused(String),
}

impl Verdict {
    fn into_answer(self) -> Answer<PluginView> {
        match self {
            Self::Runs(view) => Ok(view),
            Self::Held(reason) | Self::Refused(reason) => Err(Refusal::invalid(reason)),
        }
    }
}

/// Loads what the folder holds, and returns what became of this build. Nobody else loads anything meanwhile, so a refusal
/// is that of the file as it lies there, and of none before it.
async fn verdict(admin: &Admin, file: &str, digest: &str) -> Answer<Verdict> {
    // If the watch was quicker and refused the file, it is tried again.
    for again in [false, true] {
        let reports = load(admin, again).await;
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
                Verdict::Held(reason)
            } else {
                Verdict::Refused(reason)
            });
        }
        let runs = |view: &PluginView| view.digest == digest && view.origin == "folder";
        if let Some(view) = views(admin).into_iter().find(runs) {
            return Ok(Verdict::Runs(view));
        }
    }
    Err(Refusal::unavailable(
        "the file neither runs nor was refused: the plugins folder cannot be read, or somebody has put another file there. \
         Look what it holds, and try again",
    ))
}

/// Takes a plugin's file away: what is built in serves instead, or its tools answer `unavailable`. Role: operator.
#[utoipa::path(delete, path = "/v1/plugins/{name}",
    params(("name" = String, Path, description = "the file's name, with or without `.wasm`, or the plugin's")),
    responses((status = 200, body = Vec<FileOutcome>), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal), (status = 404, body = Refusal),
        (status = 409, body = Refusal, description = "it is built in: there is no file to take away"),
        (status = 503, body = Refusal)))]
pub(super) async fn remove(
    Shared(admin): Ask,
    staff: Staff,
    At(name): At<String>,
) -> Answer<Json<Vec<FileOutcome>>> {
    staff.needs(Role::Operator)?;
    to_its_end(async move { take_away(&admin, &name, &staff.by()).await })
        .await
        .map(Json)
}

async fn take_away(admin: &Admin, name: &str, by: &str) -> Answer<Vec<FileOutcome>> {
    let _turn = admin.gateway.plugin_files().turn().await;
    let file = file_of(admin, name).await?;
    let folder = admin.gateway.config().folders.plugins.clone();
    let subject = file.strip_suffix(".wasm").unwrap_or(&file);
    admin
        .gateway
        .audit()
        .admin(AdminAct::PluginRemove, subject, None, by, None)?;
    let gone = file.clone();
    on_disk(move || Changing::begin(&folder)?.remove(&gone)).await?;
    let mut outcomes = settled(admin, false).await;
    outcomes
        .entry(file.clone())
        .or_insert_with(|| FileOutcome::of(file, "removed", None));
    Ok(outcomes.into_values().collect())
}

/// Takes up what the folder holds, and tries files again that were refused or are held. Role: operator.
#[utoipa::path(post, path = "/v1/plugins/reload", responses(
    (status = 200, body = Vec<FileOutcome>, description = "one for each file, and for each plugin that is built in"),
    (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn reload(Shared(admin): Ask, staff: Staff) -> Answer<Json<Vec<FileOutcome>>> {
    staff.needs(Role::Operator)?;
    let mut outcomes = settled(&admin, true).await;
    for refused in admin.gateway.plugin_files().refused() {
        let result = if refused.held.is_some() {
            "held"
        } else {
            "refused"
        };
        let outcome = FileOutcome {
            reason: Some(refused.reason),
            digest: refused.held,
            ..FileOutcome::of(refused.file, result, None)
        };
        outcomes.entry(outcome.file.clone()).or_insert(outcome);
    }
    let files = admin.gateway.host().files().await;
    for status in admin.gateway.host().plugins() {
        let file = files.get(&status.name).unwrap_or(&status.name).clone();
        outcomes
            .entry(file.clone())
            .or_insert_with(|| FileOutcome::of(file, "unchanged", Some(&status)));
    }
    Ok(Json(outcomes.into_values().collect()))
}

/// Loads what changed in the folder, and returns the outcome by file.
async fn settled(admin: &Admin, again: bool) -> BTreeMap<String, FileOutcome> {
    let reports = load(admin, again).await;
    let outcome = |report: &LoadReport| {
        let status = report.result.as_ref().ok();
        let result = match &report.result {
            _ if report.removed => "removed",
            Ok(_) => "loaded",
            Err(_) if report.held.is_some() => "held",
            Err(_) => "refused",
        };
        let reason = match (report.removed, status) {
            (true, Some(removed)) => unprovided(admin, removed),
            (true, None) => None,
            (false, _) => report.result.as_ref().err().cloned(),
        };
        let mut outcome = FileOutcome {
            reason,
            ..FileOutcome::of(report.file.clone(), result, status)
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
async fn load(admin: &Admin, again: bool) -> Vec<LoadReport> {
    let reports = admin.gateway.host().settle_all(again).await;
    reports
        .iter()
        .for_each(|report| admin.gateway.note_plugin(report));
    reports
}

/// Returns what the plugin leaves without an adapter.
fn unprovided(admin: &Admin, removed: &PluginStatus) -> Option<String> {
    let serving = admin.gateway.host().plugins();
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
async fn file_of(admin: &Admin, name: &str) -> Answer<String> {
    let folder = admin.gateway.config().folders.plugins.clone();
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
    if let Some(file) = admin.gateway.host().files().await.remove(name) {
        return Ok(file);
    }
    let shown: String = name.chars().take(64).collect();
    let plugins = admin.gateway.host().plugins();
    if plugins.iter().any(|plugin| plugin.name == name) {
        let message =
            format!("`{shown}` is built into this gateway: there is no file to take away");
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    let plugins: Vec<&str> = plugins.iter().map(|plugin| plugin.name.as_str()).collect();
    let message = format!(
        "there is no plugin and no file `{shown}`; the plugins are [{}], the files [{}]",
        plugins.join(", "),
        files.join(", ")
    );
    Err(Refusal::new(StatusCode::NOT_FOUND, message))
}

impl FileOutcome {
    fn of(file: String, result: &'static str, status: Option<&PluginStatus>) -> Self {
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

fn views(admin: &Admin) -> Vec<PluginView> {
    let granted = |plugin: &str| {
        let config = admin.gateway.config();
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
    };
    admin
        .gateway
        .host()
        .plugins()
        .into_iter()
        .map(view)
        .collect()
}

/// Returns `true` for more than a stray failure: three of the last calls, and a tenth of them.
fn is_failing(recent: Recent) -> bool {
    recent.failed >= 3 && recent.failed * 10 >= recent.calls
}

fn failing(recent: Recent) -> String {
    format!(
        "{} of its last {} calls ended in a trap, at a bound or in a timeout",
        recent.failed, recent.calls
    )
}

/// Returns the file of a name that is a file in the folder and nothing else.
fn file_named(name: &str) -> Result<String, Refusal> {
    let fits = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
    };
    if !(1..=64).contains(&name.len()) || !name.bytes().all(fits) {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "a plugin's name is 1 to 64 of a-z, 0-9, `-` and `_`",
        ));
    }
    Ok(format!("{name}.wasm"))
}

/// Runs the work to its end, also if whoever asked for it does not wait: a file that nobody has judged would stay.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Answer<T>> + Send + 'static,
) -> Answer<T> {
    let ended = tokio::spawn(work).await;
    ended.unwrap_or_else(|error| {
        Err(Refusal::unavailable(format!(
            "the change was cut off: {error}"
        )))
    })
}

/// Takes what waits for the disk off the threads that answer requests.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)));
    done.map_err(|error| Refusal::unavailable(format!("the plugins folder: {error}")))
}
