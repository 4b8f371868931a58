//! Files that people upload into a connection that accepts them. A file is written to the state folder while it arrives, and
//! replaces the old one as a whole.

use std::{
    io::{self, Seek as _, SeekFrom, Write as _},
    path::Path,
    sync::{Arc, LazyLock},
};

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_connections::{ConnectionHandle, browse::is_sheet};

use super::{
    FailureKind, OperationError, OperationResult,
    connections::{failed, find},
};
use crate::control::ControlPlane;

/// The bound on a file.
pub const FILE_MAX_BYTES: u64 = 64 << 20;
/// The number of concurrent uploads: this bounds their use of the disk.
static ARRIVING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(4));

/// A file that was put into a connection.
#[derive(Serialize, ToSchema)]
pub struct UploadedFile {
    pub connection: String,
    pub path: String,
    pub bytes: u64,
    /// sha256 of the file, hex.
    pub digest: String,
}

/// Creates or replaces a file of a connection that is configured with `uploads = true`.
pub async fn put<E: std::fmt::Display>(
    control: Arc<ControlPlane>,
    connection: String,
    path: String,
    body: impl Stream<Item = Result<Bytes, E>> + Send,
    by: String,
) -> OperationResult<UploadedFile> {
    let files = match find(&control, &connection)?.map_err(failed)? {
        ConnectionHandle::Files(files) if files.takes_uploads() => files,
        _ => {
            let detail = format!(
                "the connection `{connection}` takes no files: it needs `kind = \"files\"` and `uploads = true`"
            );
            return Err(OperationError::new(FailureKind::Conflict, detail));
        }
    };
    files.check_path(&path).map_err(failed)?;
    // A folder of files may also hold the configuration and plugins, which only operators may change.
    if !is_sheet(&path) {
        let detail = "a file must be a spreadsheet: .csv, .tsv, .xlsx or .ods";
        return Err(OperationError::invalid(detail));
    }
    let _room = ARRIVING
        .try_acquire()
        .map_err(|_| OperationError::unavailable("too many files are being uploaded: try again"))?;
    let folder = control.gateway().config().folders.state.clone();
    let arrived = arrive(&folder, body).await?;
    let ArrivedFile {
        file,
        bytes,
        digest,
    } = arrived;
    let subject = format!("{connection}/{path}");
    let audit = control.gateway().audit();
    audit.admin(AdminAct::FileUpload, &subject, Some(&digest), &by, None)?;
    let put = files.upload(&path, file).await.map_err(failed);
    audit.note_failure(AdminAct::FileUpload, &subject, Some(&digest), &by, put)?;
    Ok(UploadedFile {
        connection,
        path,
        bytes,
        digest,
    })
}

/// A file that has arrived completely. It has no name, and is gone once it is closed.
struct ArrivedFile {
    file: std::fs::File,
    bytes: u64,
    digest: String,
}

async fn arrive<E: std::fmt::Display>(
    folder: &Path,
    body: impl Stream<Item = Result<Bytes, E>>,
) -> OperationResult<ArrivedFile> {
    let mut file = nameless(folder).map_err(unwritten)?;
    let (mut bytes, mut digest) = (0, Sha256::new());
    let mut body = std::pin::pin!(body);
    while let Some(chunk) = body.try_next().await.map_err(|error| {
        OperationError::new(
            FailureKind::Malformed,
            format!("the file did not arrive: {error}"),
        )
    })? {
        bytes += chunk.len() as u64;
        if bytes > FILE_MAX_BYTES {
            let detail = format!("a file has at most {} MiB", FILE_MAX_BYTES >> 20);
            return Err(OperationError::new(FailureKind::TooLarge, detail));
        }
        digest.update(&chunk);
        let written = tokio::task::spawn_blocking(move || file.write_all(&chunk).map(|()| file));
        file = written
            .await
            .map_err(io::Error::other)
            .and_then(|done| done)
            .map_err(unwritten)?;
    }
    file.seek(SeekFrom::Start(0)).map_err(unwritten)?;
    Ok(ArrivedFile {
        file,
        bytes,
        digest: hex::encode(digest.finalize()),
    })
}

/// Makes a file without a name in a folder.
fn nameless(folder: &Path) -> io::Result<std::fs::File> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    let path = folder.join(format!("upload-{}.tmp", hex::encode(random)));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn unwritten(error: io::Error) -> OperationError {
    tracing::error!(%error, "a file could not be written down while it arrived");
    OperationError::unavailable("the file could not be written down")
}
