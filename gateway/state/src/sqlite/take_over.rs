//! Imports what earlier versions kept in files next to the database.

use std::path::Path;

use crate::{
    StateError,
    legacy::LegacyFiles,
    state::{GatewayState, builds, secrets, shapes},
};

impl GatewayState {
    /// Takes the files over in one transaction, and removes them after it. The caller holds the lock of the folder.
    pub(super) async fn take_over_files(&self, folder: &Path) -> Result<(), StateError> {
        let Some(mut files) = LegacyFiles::read(folder)? else {
            return Ok(());
        };
        for build in &files.kept {
            build.link(&self.content(&build.row.digest, build.row.kind))?;
        }
        let mut change = self.change().await?;
        let mut taken = Vec::new();
        for secret in files.secrets {
            match secrets::keep(&mut change, secret.purpose, &secret.bytes).await? {
                true => taken.push(secret),
                false => secret.warn_unused(),
            }
        }
        files.secrets = taken;
        for shape in &files.shapes {
            shapes::keep(&shape.row, &mut change).await?;
        }
        for build in &files.kept {
            builds::keep(&mut change, &build.row).await?;
        }
        if let Some(accepted) = &files.accepted {
            for (plugin, digests) in &accepted.builds {
                builds::accept_all(&mut change, plugin, digests, accepted.at_ms).await?;
            }
        }
        change.commit().await?;
        let is_taken = !files.secrets.is_empty()
            || !files.shapes.is_empty()
            || !files.kept.is_empty()
            || files.accepted.is_some();
        if is_taken {
            tracing::info!(folder = %folder.display(), "took files of an earlier version over into the state");
        }
        files.remove();
        Ok(())
    }
}
