//! The files in which earlier versions stored rows that are in the database now. They are imported in one transaction, and
//! removed after it: a process that is stopped between the two finds them at the next start, and imports them again.

use std::{
    collections::BTreeMap,
    fs,
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use serde::Deserialize;
use serde_json::Value;

use crate::{BuildKind, KeptBuildRow, RecordedShape, SecretPurpose, StateError};

const SECRETS: [(SecretPurpose, &str); 2] = [
    (SecretPurpose::Cursors, "cursor.key"),
    (SecretPurpose::Arguments, "audit.key"),
];

/// The folder of recorded shapes: `shapes/CONTRACT/COLLECTION.json`.
const SHAPES: &str = "shapes";
/// The digests of accepted builds by plugin, the newest last.
const ACCEPTED: &str = "plugins-accepted.json";
/// The folder of kept builds: `builds/PLUGIN/DEFINITIONS-DIGEST.wasm` or `.so`. Today's content is directly in it.
const BUILDS: &str = "builds";
/// What follows the name of a build in the name of its signature.
const SIGNATURE: &str = ".minisig";

/// Everything in a state folder that is to be imported.
pub(crate) struct LegacyFiles {
    pub(crate) secrets: Vec<LegacySecret>,
    pub(crate) shapes: Vec<LegacyShape>,
    pub(crate) accepted: Option<LegacyAccepted>,
    pub(crate) kept: Vec<LegacyBuild>,
    folder: PathBuf,
}

pub(crate) struct LegacySecret {
    pub(crate) purpose: SecretPurpose,
    pub(crate) bytes: [u8; 32],
    path: PathBuf,
}

pub(crate) struct LegacyShape {
    pub(crate) row: RecordedShape,
    path: PathBuf,
}

pub(crate) struct LegacyAccepted {
    pub(crate) builds: BTreeMap<String, Vec<String>>,
    pub(crate) at_ms: i64,
    path: PathBuf,
}

pub(crate) struct LegacyBuild {
    pub(crate) row: KeptBuildRow,
    path: PathBuf,
}

impl LegacyFiles {
    /// Reads the files; `None` if there are none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, StateError> {
        let mut secrets = Vec::new();
        for (purpose, name) in SECRETS {
            secrets.extend(read_secret(purpose, folder.join(name))?);
        }
        let shapes = read_shapes(&folder.join(SHAPES))?;
        let accepted = read_accepted(folder.join(ACCEPTED))?;
        let kept = read_builds(&folder.join(BUILDS))?;
        let is_empty =
            secrets.is_empty() && shapes.is_empty() && accepted.is_none() && kept.is_empty();
        Ok((!is_empty).then(|| Self {
            secrets,
            shapes,
            accepted,
            kept,
            folder: folder.to_owned(),
        }))
    }

    /// Removes the imported files. A file that cannot be removed is harmless, and removed at a later start.
    pub(crate) fn remove(self) {
        for secret in self.secrets {
            remove_file(&secret.path);
        }
        for shape in &self.shapes {
            remove_file(&shape.path);
        }
        remove_empty(&self.folder.join(SHAPES));
        if let Some(accepted) = &self.accepted {
            remove_file(&accepted.path);
        }
        for build in &self.kept {
            remove_file(&signature(&build.path));
            remove_file(&build.path);
        }
        remove_empty(&self.folder.join(BUILDS));
    }
}

impl LegacySecret {
    /// Warns of a file whose place another key has taken: it is not removed.
    pub(crate) fn warn_unused(&self) {
        tracing::warn!(
            path = %self.path.display(),
            "this key is not the one in the state, which is used; remove the file if nothing else needs it"
        );
    }
}

fn read_secret(purpose: SecretPurpose, path: PathBuf) -> Result<Option<LegacySecret>, StateError> {
    let Some(bytes) = found(fs::read(&path), &path)? else {
        return Ok(None);
    };
    let mode = fs::metadata(&path).map_err(|error| unusable(&path, error))?;
    if purpose == SecretPurpose::Arguments && mode.permissions().mode() & 0o077 != 0 {
        let why = "others can read this key; chmod 600 it, or delete it for a new one";
        return Err(unusable(&path, why));
    }
    let bytes = bytes
        .try_into()
        .map_err(|_| unusable(&path, "this is not a key; delete it for a new one"))?;
    Ok(Some(LegacySecret {
        purpose,
        bytes,
        path,
    }))
}

impl LegacyBuild {
    /// Links the content and its signature to the file `to` as well; the old files remain until they are removed.
    pub(crate) fn link(&self, to: &Path) -> Result<(), StateError> {
        let pairs = [
            (signature(&self.path), signature(to)),
            (self.path.clone(), to.to_owned()),
        ];
        for (old, new) in pairs {
            if old.exists() {
                weir_files::link_once(&old, &new).map_err(|error| unusable(&old, error))?;
            }
        }
        Ok(())
    }
}

fn read_accepted(path: PathBuf) -> Result<Option<LegacyAccepted>, StateError> {
    let Some(text) = found(fs::read(&path), &path)? else {
        return Ok(None);
    };
    let builds = serde_json::from_slice(&text).map_err(|error| {
        let why = format!(
            "which builds were accepted cannot be read: {error}. Put the file back from a backup, or move it away, after \
             which the first build of each plugin is accepted"
        );
        unusable(&path, why)
    })?;
    let at_ms = modified_ms(&path);
    Ok(Some(LegacyAccepted {
        builds,
        at_ms,
        path,
    }))
}

fn read_builds(folder: &Path) -> Result<Vec<LegacyBuild>, StateError> {
    let mut builds = Vec::new();
    for plugin in entries(folder)? {
        if plugin.is_dir() {
            let rows = entries(&plugin)?;
            builds.extend(rows.into_iter().filter_map(|path| {
                let row = read_build(&plugin, &path)?;
                Some(LegacyBuild { row, path })
            }));
        }
    }
    Ok(builds)
}

/// Returns the build that a file's name describes; `None` for other files.
fn read_build(plugin: &Path, path: &Path) -> Option<KeptBuildRow> {
    let kind = BuildKind::from_word(path.extension()?.to_str()?)?;
    let (definitions, digest) = path.file_stem()?.to_str()?.split_once('-')?;
    let size = fs::metadata(path).ok()?.len();
    Some(KeptBuildRow {
        plugin: plugin.file_name()?.to_str()?.to_owned(),
        definitions: definitions.to_owned(),
        digest: digest.to_owned(),
        kind,
        size: i64::try_from(size).ok()?,
        used_ms: modified_ms(path),
    })
}

fn signature(build: &Path) -> PathBuf {
    let mut path = build.as_os_str().to_owned();
    path.push(SIGNATURE);
    path.into()
}

fn modified_ms(path: &Path) -> i64 {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    let since = modified
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_millis() as i64)
}

fn read_shapes(folder: &Path) -> Result<Vec<LegacyShape>, StateError> {
    let mut shapes = Vec::new();
    for contract in entries(folder)? {
        if !contract.is_dir() {
            continue;
        }
        for path in entries(&contract)? {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = fs::read(&path).ok();
            match text.and_then(|text| read_shape(&contract, &path, &text)) {
                Some(row) => shapes.push(LegacyShape { row, path }),
                None => tracing::warn!(
                    path = %path.display(),
                    "this is not a recorded shape: its source is described again; remove the file"
                ),
            }
        }
    }
    Ok(shapes)
}

fn read_shape(contract: &Path, path: &Path, text: &[u8]) -> Option<RecordedShape> {
    #[derive(Deserialize)]
    struct ShapeFile {
        adapter: String,
        settings: Value,
        shape: Value,
    }
    let ShapeFile {
        adapter,
        settings,
        shape,
    } = serde_json::from_slice(text).ok()?;
    Some(RecordedShape {
        contract: contract.file_name()?.to_str()?.to_owned(),
        collection: path.file_stem()?.to_str()?.to_owned(),
        adapter,
        settings: settings.to_string(),
        shape: shape.to_string(),
    })
}

/// Returns the entries of a folder; none if there is no such folder.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, StateError> {
    let Some(entries) = found(fs::read_dir(folder), folder)? else {
        return Ok(Vec::new());
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    paths
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(folder, error))
}

/// Returns `None` if there is no such file or folder.
fn found<T>(read: std::io::Result<T>, path: &Path) -> Result<Option<T>, StateError> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(path, error)),
    }
}

fn unusable(path: &Path, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StateError {
    StateError::Open {
        path: path.to_owned(),
        error: error.into(),
    }
}

fn remove_file(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "this file was taken over into the state and cannot be removed");
    }
}

/// Removes the folders in `folder`, and `folder` itself, if they are empty.
fn remove_empty(folder: &Path) {
    for inner in entries(folder).unwrap_or_default() {
        let _ = fs::remove_dir(inner); // one that is not empty is kept
    }
    let _ = fs::remove_dir(folder);
}
