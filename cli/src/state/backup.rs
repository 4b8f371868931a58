//! `weir state backup`: everything in the state folder, copied to a folder that can replace it.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use weir_state::{FILE, GatewayState};

use crate::{CliSettings, Done, block_on};

/// Copy the state folder while gateways run: contract versions, keys, the audit trail
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct BackupArgs {
    /// A folder that does not exist yet; to restore, make it the state folder
    to: PathBuf,
    #[command(flatten)]
    settings: CliSettings,
}

/// The files and folders that are copied as they are, in addition to the database: the first admin key, the builds
/// that published tools run on, the audit trail.
const COPIED: [&str; 3] = ["admin.token", "builds", "audit"];

impl BackupArgs {
    pub(super) fn run(self) -> Done {
        block_on(self.back_up())?
    }

    /// Gateways may run meanwhile: the database is copied as it is at one moment, and a trail record that is being
    /// written becomes the torn tail of its copy.
    async fn back_up(&self) -> Done {
        let config = self.settings.config()?;
        if config.state.url.is_some() {
            return Err(anyhow::anyhow!(
                "the state is in PostgreSQL: copy the database with pg_dump, or the whole state into a file with \
                 `weir state migrate --to FOLDER` while no gateway runs on it"
            )
            .into());
        }
        let from = config.folders.state;
        fs::metadata(from.join(FILE))
            .with_context(|| format!("there is no state in {}", from.display()))?;
        let state = GatewayState::open_to_read(&from)
            .await
            .map_err(anyhow::Error::from)?;
        if self.to.exists() {
            return Err(anyhow::anyhow!(
                "{} is there already: name a new folder for each backup",
                self.to.display()
            )
            .into());
        }
        private(&self.to).with_context(|| format!("{} cannot be made", self.to.display()))?;
        // The database comes first: the files that its rows name were written before them, and are in the later copies.
        let file = self.to.join(FILE);
        state.back_up(&file).await.map_err(anyhow::Error::from)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        for name in COPIED {
            let (from, to) = (from.join(name), self.to.join(name));
            if from.exists() {
                copy(&from, &to).with_context(|| format!("{} cannot be copied", from.display()))?;
            }
        }
        println!("{}", self.to.display());
        Ok(ExitCode::SUCCESS)
    }
}

/// Makes a folder that only its owner can access.
fn private(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)
}

/// Copies a file or folder. Files keep their permissions; what vanished meanwhile is left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let gone = |error: io::Error| {
        if error.kind() == io::ErrorKind::NotFound {
            Ok(())
        } else {
            Err(error)
        }
    };
    if !from.is_dir() {
        return fs::copy(from, to).map(drop).or_else(gone);
    }
    private(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
