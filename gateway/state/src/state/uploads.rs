//! Builds of plugins that were uploaded to one node, for the folders of all nodes. A state in a file has none: its processes share
//! the folder.

use super::{
    GatewayState,
    builds::{drop_unnamed_content, share_content},
};
use crate::{
    BuildKind, NewBuild, StateError, UploadRow,
    columns::from_row,
    engine::{StateChange, sql},
};

/// Files that were taken away and are remembered for nodes that were not there; the first ones go.
const REMOVED_MAX: u32 = 256;

from_row!(UploadRow {
    file,
    digest,
    uploaded_by,
    change
});

impl GatewayState {
    /// Writes down that a file of the plugins folder is this build now, or that it is taken away, and returns the number of the
    /// change.
    pub async fn record_upload(
        &self,
        file: &str,
        build: Option<&NewBuild>,
        by: &str,
    ) -> Result<i64, StateError> {
        let mut change = self.change().await?;
        let before = "SELECT digest FROM uploaded_builds WHERE file = $1";
        let before: Option<Option<String>> = sql(before).bind(file).find_value(&mut change).await?;
        if let Some(build) = build {
            share_content(&mut change, build).await?;
        }
        let number = next_number(&mut change).await?;
        sql(
            "INSERT INTO uploaded_builds (file, digest, uploaded_by, change) VALUES ($1, $2, $3, $4) \
             ON CONFLICT (file) DO UPDATE SET digest = excluded.digest, uploaded_by = excluded.uploaded_by, \
             change = excluded.change",
        )
        .bind(file)
        .bind(build.map(|build| build.digest.as_str()))
        .bind(by)
        .bind(number)
        .execute(&mut change)
        .await?;
        let beyond = "DELETE FROM uploaded_builds WHERE digest IS NULL AND change <= (SELECT change FROM uploaded_builds \
                      WHERE digest IS NULL ORDER BY change DESC LIMIT 1 OFFSET $1)";
        sql(beyond).bind(REMOVED_MAX).execute(&mut change).await?;
        if let Some(Some(before)) = before {
            drop_unnamed_content(&mut change, &before, BuildKind::Component).await?;
        }
        change.commit().await?;
        Ok(number)
    }

    /// Returns the newest upload of each file, in the order of the changes; none where the state is a file.
    pub async fn uploads(&self) -> Result<Vec<UploadRow>, StateError> {
        if !self.is_shared() {
            return Ok(Vec::new());
        }
        let query = "SELECT * FROM uploaded_builds ORDER BY change";
        sql(query).fetch_all(&self.engine).await
    }

    /// Returns the content of an uploaded build, unless a later upload has replaced it in the meantime.
    pub async fn uploaded_content(&self, digest: &str) -> Result<Option<Vec<u8>>, StateError> {
        let query = "SELECT bytes FROM build_contents WHERE digest = $1 AND kind = $2";
        sql(query)
            .bind(digest)
            .bind(BuildKind::Component)
            .find_value(&self.engine)
            .await
    }
}

/// Gives the change a number of the feed.
async fn next_number(change: &mut StateChange) -> Result<i64, StateError> {
    sql("UPDATE generation SET n = n + 1 RETURNING n")
        .fetch_value(change)
        .await
}
