//! Plugins: what runs, what was refused and why; a new file, an old one away.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

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

use super::{
    Admin, Answer, Ask, Refusal,
    problem::{At, Body as Read},
    staff::Staff,
};
use crate::{plugin_files::Refused, registry::gate::Role};

/// A plugin is a few megabytes; a component in another language may be tens.
pub(super) const BODY_MAX_BYTES: usize = 64 << 20;
/// A large component takes long to compile on a busy machine.
const LOAD_MAX: Duration = Duration::from_secs(120);

#[derive(Serialize, ToSchema)]
pub(super) struct PluginView {
    name: String,
    version: String,
    /// sha256 of the file, hex.
    digest: String,
    /// What its collections name under `adapter:`.
    adapters: Vec<String>,
    /// `built-in`: it came with the gateway; `folder`: from a file of the plugins folder.
    origin: &'static str,
    /// Moves with every new build that went live.
    generation: u64,
    calls: u64,
    /// Calls that ended in a trap, a bound or a timeout.
    failures: u64,
    swaps: u64,
    /// Connection → `read` or `write`, as `weir.toml` grants it.
    grants: BTreeMap<String, String>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct PluginsView {
    plugins: Vec<PluginView>,
    /// Files that were refused, and why; what ran before runs on.
    refused: Vec<RefusedFile>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct RefusedFile {
    file: String,
    reason: String,
    /// sha256 of the file, where nothing is wrong with it but that nobody has let it in: see `accept`.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
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
    let refused = refused.map(|refused| RefusedFile { file: refused.file, reason: refused.reason, held: refused.held });
    Ok(Json(PluginsView { plugins: views(&admin), refused: refused.collect() }))
}

/// Puts a component into the plugins folder and waits until it runs or is refused; a refused one is taken away again, and
/// what ran before runs on. Role: operator.
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
    let path = path(&admin, &name)?;
    let bytes = Bytes::from_request(request, &())
        .await
        .map_err(|rejection| Refusal::new(rejection.status(), rejection.body_text()))?;
    let digest = hex::encode(Sha256::digest(&bytes));
    admin.gateway.audit().admin(AdminAct::PluginLoad, &name, Some(&digest), &staff.by(), None)?;
    // Who uploads a build lets it in.
    admin.gateway.host().let_in(&digest).await;
    let before = std::fs::read(&path).ok();
    let started = Instant::now();
    let unwritten = |error: std::io::Error| Refusal::unavailable(format!("the plugins folder: {error}"));
    replace(&path, &bytes).map_err(unwritten)?;
    match verdict(&admin, &name, &digest, started).await? {
        Ok(view) => Ok(Json(view)),
        Err(reason) => {
            match before {
                Some(before) => replace(&path, &before).map_err(unwritten)?,
                None => std::fs::remove_file(&path).map_err(unwritten)?,
            }
            Err(Refusal::invalid(reason))
        }
    }
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
    path(&admin, &name)?;
    let digest = accept.sha256.to_ascii_lowercase();
    let file = format!("{name}.wasm");
    let waits = |refused: &Refused| refused.file == file && refused.held.as_deref() == Some(&*digest);
    if !admin.gateway.plugin_files().refused().iter().any(waits) {
        return Err(Refusal::not_found("held file of that digest"));
    }
    admin.gateway.audit().admin(AdminAct::PluginLoad, &name, Some(&digest), &staff.by(), None)?;
    let started = Instant::now();
    admin.gateway.host().let_in(&digest).await;
    verdict(&admin, &name, &digest, started).await?.map(Json).map_err(Refusal::invalid)
}

/// Whether the file runs, or why it was refused after `started`.
async fn verdict(admin: &Admin, name: &str, digest: &str, started: Instant) -> Answer<Result<PluginView, String>> {
    let file = format!("{name}.wasm");
    loop {
        if let Some(view) = views(admin).into_iter().find(|view| view.digest == digest && view.origin == "folder") {
            return Ok(Ok(view));
        }
        if let Some(reason) = admin.gateway.plugin_files().refusal(&file, started) {
            return Ok(Err(reason));
        }
        if started.elapsed() > LOAD_MAX {
            return Err(Refusal::unavailable("the file is in the plugins folder, but neither runs nor is refused yet"));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Takes a plugin's file away: what is built in serves instead, or its tools answer `unavailable`. Role: operator.
#[utoipa::path(delete, path = "/v1/plugins/{name}",
    params(("name" = String, Path, description = "the file's name without `.wasm`")),
    responses((status = 204), (status = 400, body = Refusal), (status = 401, body = Refusal),
        (status = 403, body = Refusal), (status = 404, body = Refusal),
        (status = 409, body = Refusal, description = "it is built in: there is no file to take away"),
        (status = 503, body = Refusal)))]
pub(super) async fn remove(Shared(admin): Ask, staff: Staff, At(name): At<String>) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    let path = path(&admin, &name)?;
    if !path.exists() {
        if views(&admin).iter().any(|view| view.name == name && view.origin == "built-in") {
            let message = format!("`{name}` is built into this gateway: there is no file to take away");
            return Err(Refusal::new(StatusCode::CONFLICT, message));
        }
        return Err(Refusal::not_found("plugin"));
    }
    admin.gateway.audit().admin(AdminAct::PluginRemove, &name, None, &staff.by(), None)?;
    std::fs::remove_file(path).map_err(|error| Refusal::unavailable(format!("the plugins folder: {error}")))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Tries files again that were refused. Role: operator.
#[utoipa::path(post, path = "/v1/plugins/reload", responses(
    (status = 204), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn reload(Shared(admin): Ask, staff: Staff) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    admin.gateway.host().retry_refused().await;
    Ok(StatusCode::NO_CONTENT)
}

fn views(admin: &Admin) -> Vec<PluginView> {
    let granted = |plugin: &str| {
        let config = admin.gateway.config();
        let settings = config.plugins.get(plugin);
        let grants = settings.into_iter().flat_map(|settings| &settings.grants);
        grants.map(|(connection, grant)| (connection.clone(), grant.word().to_owned())).collect()
    };
    let view = |status: weir_plugin_host::PluginStatus| PluginView {
        grants: granted(&status.name),
        name: status.name,
        version: status.version,
        digest: status.digest,
        adapters: status.adapters,
        origin: if status.built_in { "built-in" } else { "folder" },
        generation: status.generation,
        calls: status.calls,
        failures: status.failures,
        swaps: status.swaps,
    };
    admin.gateway.host().plugins().into_iter().map(view).collect()
}

/// A name that is a file in the folder and nothing else.
fn path(admin: &Admin, name: &str) -> Result<PathBuf, Refusal> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_';
    if !(1..=64).contains(&name.len()) || !name.bytes().all(fits) {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "a plugin's name is 1 to 64 of a-z, 0-9, `-` and `_`"));
    }
    Ok(admin.gateway.config().folders.plugins.join(format!("{name}.wasm")))
}

/// Whole, under a name that is not looked at, then at once in its place.
fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().expect("a file in a folder");
    std::fs::create_dir_all(folder)?;
    let fresh = folder.join(format!(".upload-{}", &crate::telemetry::call_id()[2..]));
    let mut file = std::fs::File::create(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(fresh, path)
}
