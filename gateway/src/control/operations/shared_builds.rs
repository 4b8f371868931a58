//! Copies plugin builds that were uploaded to one node into the plugins folders of all nodes that share a state. Each node
//! records which uploads its folder has, so that files that an operator puts there afterwards are kept.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sha2::{Digest, Sha256};
use weir_files::FilePermission;
use weir_state::{BuildKind, NewBuild, StateError, UploadRow};

use super::{
    OperationError, OperationResult,
    plugins::{place_build, take_file_away},
};
use crate::control::ControlPlane;

/// The file of the state folder that lists the uploads in the plugins folder.
const TAKEN: &str = "plugins.taken";
/// The time after which a build that could not be loaded is tried again.
const RETRY: Duration = Duration::from_secs(60);

/// The number of the upload in each file, by the name of the file.
type TakenUploads = BTreeMap<String, i64>;

/// Records for the other nodes what a file of the plugins folder now holds: a build, or nothing.
pub(super) async fn record(
    control: &ControlPlane,
    file: &str,
    build: Option<(&str, &[u8])>,
    by: &str,
) -> OperationResult<()> {
    let state = control.state();
    if !state.is_shared() {
        return Ok(());
    }
    let build = build.map(|(digest, bytes)| NewBuild {
        plugin: String::new(),
        definitions: String::new(),
        digest: digest.to_owned(),
        kind: BuildKind::Component,
        bytes: bytes.to_vec(),
        signature: None,
        at_ms: 0,
    });
    let number = state.record_upload(file, build.as_ref(), by).await?;
    let folder = control.gateway().config().folders.state.clone();
    note_taken(&folder, file, number)
}

/// Writes the files that were uploaded to other nodes, before plugins are loaded.
pub async fn place_files(control: &ControlPlane) -> OperationResult<()> {
    let (plugins, folder) = {
        let folders = &control.gateway().config().folders;
        (folders.plugins.clone(), folders.state.clone())
    };
    let mut taken = read_taken(&folder);
    let rows = control.state().uploads().await?;
    let known = taken.len();
    taken.retain(|file, _| rows.iter().any(|row| row.file == *file));
    if taken.len() < known {
        write_taken(&folder, &taken)?;
    }
    for row in rows {
        if is_taken(&taken, &row) {
            continue;
        }
        let bytes = content(control, &row).await?;
        let place = plugins.join(&row.file);
        let placed = match bytes {
            Some(bytes) => fs::create_dir_all(&plugins)
                .and_then(|()| weir_files::replace(&place, &bytes, FilePermission::Everyone)),
            None => remove(&place),
        };
        placed.map_err(failed)?;
        note_taken(&folder, &row.file, row.change)?;
    }
    Ok(())
}

/// Loads builds that are uploaded to other nodes while this one serves.
pub async fn follow(control: &ControlPlane) {
    let mut changes = control.state().changes();
    let mut refused = BTreeMap::new();
    loop {
        if take_over(control, &mut refused).await.is_err() {
            tokio::time::sleep(Duration::from_secs(1)).await; // what follows the changes logs it
            continue;
        }
        let retry = async {
            match refused.is_empty() {
                true => std::future::pending().await,
                false => tokio::time::sleep(RETRY).await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = retry => {}
        }
    }
}

/// `refused`: when an upload could not be loaded, by its number. As long as there is one, this node counts as not having the
/// build.
async fn take_over(
    control: &ControlPlane,
    refused: &mut BTreeMap<i64, Instant>,
) -> Result<(), StateError> {
    let rows = control.state().uploads().await?;
    refused.retain(|number, _| rows.iter().any(|row| row.change == *number));
    for row in &rows {
        if refused
            .get(&row.change)
            .is_some_and(|at| at.elapsed() < RETRY)
        {
            continue;
        }
        match take(control, row).await {
            Ok(()) => drop(refused.remove(&row.change)),
            Err(error) => {
                let (file, why) = (&row.file, error.to_string());
                tracing::error!(
                    file,
                    why,
                    "a build that was uploaded to another node does not serve here"
                );
                refused.insert(row.change, Instant::now());
            }
        }
    }
    if refused.is_empty() {
        let last = rows.last().map_or(0, |row| row.change);
        control.state().note_builds(last);
    }
    Ok(())
}

async fn take(control: &ControlPlane, row: &UploadRow) -> OperationResult<()> {
    let _turn = control.plugin_files().turn().await;
    let folder = control.gateway().config().folders.state.clone();
    if is_taken(&read_taken(&folder), row) {
        return Ok(());
    }
    match (content(control, row).await?, &row.digest) {
        (Some(bytes), Some(digest)) => {
            let by = &row.uploaded_by;
            let verdict = place_build(control, &row.file, digest, bytes, by).await?;
            verdict.check()?;
        }
        _ => drop(take_file_away(control, &row.file).await?),
    }
    note_taken(&folder, &row.file, row.change)
}

/// Returns the content of an upload, if it has the uploaded digest.
async fn content(control: &ControlPlane, row: &UploadRow) -> OperationResult<Option<Vec<u8>>> {
    let is_name = row.file.ends_with(".wasm") && !row.file.starts_with('.');
    if !is_name || Path::new(&row.file).file_name() != Some(row.file.as_ref()) {
        return Err(OperationError::invalid("it has no name of a plugin's file"));
    }
    let Some(digest) = &row.digest else {
        return Ok(None);
    };
    let bytes = control.state().uploaded_content(digest).await?;
    match bytes.filter(|bytes| hex::encode(Sha256::digest(bytes)) == *digest) {
        Some(bytes) => Ok(Some(bytes)),
        None => Err(OperationError::unavailable(
            "the state does not have the build that was uploaded: upload it again",
        )),
    }
}

fn is_taken(taken: &TakenUploads, row: &UploadRow) -> bool {
    taken
        .get(&row.file)
        .is_some_and(|taken| *taken == row.change)
}

fn taken_file(folder: &Path) -> PathBuf {
    folder.join(TAKEN)
}

/// If the file cannot be read, no upload counts as present, and each is written again.
fn read_taken(folder: &Path) -> TakenUploads {
    let text = fs::read(taken_file(folder)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn note_taken(folder: &Path, file: &str, number: i64) -> OperationResult<()> {
    let mut taken = read_taken(folder);
    taken.insert(file.to_owned(), number);
    write_taken(folder, &taken)
}

fn write_taken(folder: &Path, taken: &TakenUploads) -> OperationResult<()> {
    let text = serde_json::to_vec(taken).expect("plain data");
    weir_files::replace(&taken_file(folder), &text, FilePermission::Owner).map_err(failed)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn failed(error: io::Error) -> OperationError {
    OperationError::unavailable(format!(
        "a build that was uploaded to another node: {error}"
    ))
}
