//! Contract versions, and which of them is live.

use super::{GatewayState, drafts::check_basis};
use crate::{
    ContractBasis, ContractRow, LiveRow, StateError, VersionHead, VersionRow, VersionSource,
    columns::from_row,
    engine::{StateChange, sql},
};

from_row!(ContractRow {
    name,
    origin,
    owner,
    live,
    revision,
    last,
    rolled_back
});

from_row!(LiveRow {
    name,
    origin,
    owner,
    version,
    revision,
    artifact,
    source
});

from_row!(VersionRow {
    contract,
    version,
    artifact,
    source,
    class,
    fingerprint,
    published_ms,
    published_by
});

from_row!(VersionHead {
    version,
    class,
    fingerprint,
    published_ms,
    published_by
});

/// A change of the live versions. It has the lock of writers, so that everything read through it remains true until it
/// ends. Dropping it rolls it back.
pub struct LiveChange(pub(super) StateChange);

const HEADS: &str = "SELECT * FROM contracts ORDER BY name";
const LIVE_OF: &str = "SELECT name, origin, owner, version, revision, artifact, source \
                       FROM contracts JOIN versions ON contract = name AND version = live WHERE name = $1";

impl GatewayState {
    /// Begins a change of which versions are live.
    pub async fn change_live(&self) -> Result<LiveChange, StateError> {
        self.change().await.map(LiveChange)
    }

    /// Returns the live version of every contract, in name order.
    pub async fn live(&self) -> Result<Vec<LiveRow>, StateError> {
        let query = "SELECT name, origin, owner, version, revision, artifact, source \
                     FROM contracts JOIN versions ON contract = name AND version = live ORDER BY name";
        sql(query).fetch_all(&self.engine).await
    }

    /// Returns the live version of one contract, if it has one.
    pub async fn live_of(&self, contract: &str) -> Result<Option<LiveRow>, StateError> {
        sql(LIVE_OF)
            .bind(contract)
            .fetch_optional(&self.engine)
            .await
    }

    /// Makes `owner` the folder that owns a contract, if it is still owned by `from`: of several processes that claim it
    /// at once, one succeeds. Returns `true` if this one does.
    pub async fn claim(
        &self,
        contract: &str,
        from: Option<&str>,
        owner: &str,
    ) -> Result<bool, StateError> {
        let update = "UPDATE contracts SET owner = $1 WHERE name = $2 AND owner IS NOT DISTINCT FROM $3 \
                      AND origin IN ('file', 'upstream')";
        let done = sql(update)
            .bind(owner)
            .bind(contract)
            .bind(from)
            .execute(&self.engine)
            .await?;
        Ok(done == 1)
    }

    /// Returns which versions are live, without their texts: cheap enough to ask twice a second.
    pub async fn heads(&self) -> Result<Vec<ContractRow>, StateError> {
        sql(HEADS).fetch_all(&self.engine).await
    }

    /// Returns the row of one contract; `None` if the name was never used.
    pub async fn head(&self, contract: &str) -> Result<Option<ContractRow>, StateError> {
        let query = "SELECT * FROM contracts WHERE name = $1";
        sql(query).bind(contract).fetch_optional(&self.engine).await
    }

    /// Forgets the rollback of a contract whose file has changed since.
    pub async fn forget_rollback(&self, contract: &str) -> Result<(), StateError> {
        // This is asked of every file at a start: only a change takes the lock of writers.
        if self
            .head(contract)
            .await?
            .is_none_or(|head| head.rolled_back.is_none())
        {
            return Ok(());
        }
        let update = "UPDATE contracts SET rolled_back = NULL WHERE name = $1";
        sql(update).bind(contract).execute(&self.engine).await?;
        Ok(())
    }

    /// Returns the versions of one contract without their texts, oldest first; none if the name was never used.
    pub async fn versions(&self, contract: &str) -> Result<Vec<VersionHead>, StateError> {
        let query = "SELECT version, class, fingerprint, published_ms, published_by FROM versions WHERE contract = $1 \
                     ORDER BY published_ms, version";
        sql(query).bind(contract).fetch_all(&self.engine).await
    }

    /// Returns the numbers of all versions of one contract, in no order; none if the name was never used. They are in the key
    /// of the table, so that no text is read for them.
    pub async fn version_numbers(&self, contract: &str) -> Result<Vec<String>, StateError> {
        let query = "SELECT version FROM versions WHERE contract = $1";
        sql(query).bind(contract).fetch_values(&self.engine).await
    }

    /// Returns a published version of a contract, live or not.
    pub async fn version(
        &self,
        contract: &str,
        version: &str,
    ) -> Result<Option<VersionRow>, StateError> {
        let query = "SELECT * FROM versions WHERE contract = $1 AND version = $2";
        sql(query)
            .bind(contract)
            .bind(version)
            .fetch_optional(&self.engine)
            .await
    }

    /// Keeps a later text of the form for the same live version: nothing an agent could see has changed. The revision moves,
    /// so that every process reads the text again.
    pub async fn keep(
        &self,
        contract: &str,
        version: &str,
        source: &str,
    ) -> Result<(), StateError> {
        let mut change = self.change().await?;
        let update =
            "UPDATE versions SET source = $1 WHERE contract = $2 AND version = $3 AND source != $1";
        let done = sql(update)
            .bind(source)
            .bind(contract)
            .bind(version)
            .execute(&mut change)
            .await?;
        if done == 0 {
            return Ok(());
        }
        let update = "UPDATE contracts SET revision = revision + 1 WHERE name = $1 AND live = $2";
        sql(update)
            .bind(contract)
            .bind(version)
            .execute(&mut change)
            .await?;
        change.commit().await?;
        Ok(())
    }
}

impl LiveChange {
    /// Returns which versions are live, without their texts.
    pub async fn heads(&mut self) -> Result<Vec<ContractRow>, StateError> {
        sql(HEADS).fetch_all(&mut self.0).await
    }

    /// Returns the live version of one contract, if it has one.
    pub async fn live_of(&mut self, contract: &str) -> Result<Option<LiveRow>, StateError> {
        sql(LIVE_OF)
            .bind(contract)
            .fetch_optional(&mut self.0)
            .await
    }

    /// Refuses a change based on a state that no longer holds.
    pub async fn check_basis(
        &mut self,
        contract: &str,
        on: &ContractBasis,
    ) -> Result<(), StateError> {
        check_basis(&mut self.0, contract, on).await
    }

    /// Stores a version and makes it live. `base` is the live version it was judged against: if that has changed in the
    /// meantime, nothing happens. Pending drafts of the contract based on `base` are superseded except for `draft`, which
    /// counts as published.
    pub async fn publish(
        self,
        base: Option<&str>,
        source: VersionSource<'_>,
        version: &VersionRow,
        draft: Option<&str>,
    ) -> Result<(), StateError> {
        let Self(mut change) = self;
        check(&mut change, &version.contract, base).await?;
        sql(
            "INSERT INTO contracts (name, origin, owner, live) VALUES ($1, $2, $3, NULL) \
             ON CONFLICT (name) DO UPDATE SET origin = excluded.origin, owner = excluded.owner",
        )
        .bind(&version.contract)
        .bind(source.origin)
        .bind(source.owner)
        .execute(&mut change)
        .await?;
        sql(
            "INSERT INTO versions (contract, version, artifact, source, class, fingerprint, published_ms, published_by) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(&version.contract)
        .bind(&version.version)
        .bind(&version.artifact)
        .bind(&version.source)
        .bind(version.class)
        .bind(&version.fingerprint)
        .bind(version.published_ms)
        .bind(&version.published_by)
        .execute(&mut change)
        .await?;
        set_live(&mut change, &version.contract, Some(&version.version), None).await?;
        decide(
            &mut change,
            &version.contract,
            draft,
            version.published_ms,
            &version.published_by,
        )
        .await?;
        change.commit().await?;
        Ok(())
    }

    /// Makes an earlier version live again, or none.
    pub async fn switch(
        self,
        contract: &str,
        base: Option<&str>,
        to: Option<&str>,
        draft: Option<&str>,
        at_ms: i64,
        by: &str,
    ) -> Result<(), StateError> {
        let Self(mut change) = self;
        check(&mut change, contract, base).await?;
        if let Some(to) = to {
            let query = "SELECT version FROM versions WHERE contract = $1 AND version = $2";
            let there: Option<(String,)> = sql(query)
                .bind(contract)
                .bind(to)
                .fetch_optional(&mut change)
                .await?;
            there.ok_or(StateError::Unknown("version"))?;
        }
        // A retired contract takes all its versions with it.
        if to.is_none() {
            sql("DELETE FROM served WHERE contract = $1")
                .bind(contract)
                .execute(&mut change)
                .await?;
        }
        set_live(&mut change, contract, to, base).await?;
        decide(&mut change, contract, draft, at_ms, by).await?;
        change.commit().await?;
        Ok(())
    }
}

async fn check(
    change: &mut StateChange,
    contract: &str,
    base: Option<&str>,
) -> Result<(), StateError> {
    let row: Option<(Option<String>,)> = sql("SELECT live FROM contracts WHERE name = $1")
        .bind(contract)
        .fetch_optional(&mut *change)
        .await?;
    if row.and_then(|(live,)| live).as_deref() == base {
        Ok(())
    } else {
        Err(StateError::Moved("the contract"))
    }
}

async fn set_live(
    change: &mut StateChange,
    contract: &str,
    to: Option<&str>,
    back_from: Option<&str>,
) -> Result<(), StateError> {
    // In a row of rollbacks, the first one went back from what the file defines. Retiring what code defines goes back from
    // it too: the code defines it again at each start.
    let update = "UPDATE contracts SET last = COALESCE(live, last), live = $1, revision = revision + 1, \
                  rolled_back = CASE WHEN $2 IS NOT NULL AND ($1 IS NOT NULL OR origin = 'code') \
                  THEN COALESCE(rolled_back, $2) END WHERE name = $3";
    sql(update)
        .bind(to)
        .bind(back_from)
        .bind(contract)
        .execute(&mut *change)
        .await?;
    Ok(())
}

async fn decide(
    change: &mut StateChange,
    contract: &str,
    draft: Option<&str>,
    at_ms: i64,
    by: &str,
) -> Result<(), StateError> {
    if let Some(draft) = draft {
        let update = "UPDATE drafts SET status = 'published', decided_ms = $1, decided_by = $2 \
                      WHERE id = $3 AND status = 'pending'";
        let done = sql(update)
            .bind(at_ms)
            .bind(by)
            .bind(draft)
            .execute(&mut *change)
            .await?;
        if done != 1 {
            return Err(StateError::Moved("the draft"));
        }
    }
    let update = "UPDATE drafts SET status = 'superseded', decided_ms = $1, decided_by = $2 \
                  WHERE contract = $3 AND status = 'pending'";
    sql(update)
        .bind(at_ms)
        .bind(by)
        .bind(contract)
        .execute(&mut *change)
        .await?;
    Ok(())
}
