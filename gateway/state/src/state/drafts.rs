//! Drafts: changes that wait for approval, and their status.
//!
//! A draft has long texts, and its author may be hostile: no query here loads more of them into memory than its answer shows,
//! and only the newest superseded drafts are kept.

use super::GatewayState;
use crate::{
    ChangeClass, ContractBasis, ContractOrigin, DraftFilter, DraftHead, DraftRow, DraftStatus,
    ListedDraft, NewDraft, NewestDraft, StateError,
    columns::from_row,
    engine::{QueryTarget, StateChange, sql},
};

/// Superseded drafts of one contract and origin that are kept.
const SUPERSEDED_MAX: u32 = 20;
/// Drafts of one author that may wait.
const WAITING_MAX: i64 = 200;
/// Drafts of one author over the admin API that are kept although they will not be published.
const REFUSED_MAX: i64 = 1_000;
/// The bytes of their texts, for those that wait and for the others.
const TEXT_BYTES_MAX: i64 = 64 << 20;

from_row!(DraftHead {
    id,
    contract,
    base,
    version,
    origin,
    owner,
    class,
    fingerprint,
    status,
    created_ms,
    created_by,
    decided_ms,
    decided_by
});

from_row!(ListedDraft { ..head, report });

from_row!(DraftRow { ..head, artifact, source, report });

/// A query for drafts without their texts, but for the further columns that are named.
macro_rules! select {
    ($further:literal, $rest:literal) => {
        concat!(
            "SELECT id, contract, base, version, origin, owner, class, fingerprint, status, created_ms, created_by, \
             decided_ms, decided_by",
            $further,
            " FROM drafts ",
            $rest
        )
    };
}

impl GatewayState {
    /// Holds a change. A pending one of the same contract and origin is superseded, and the oldest of those superseded before
    /// are deleted. An identical pending change is left as it is, and its id is returned. The result is `Full` if too many
    /// changes of its author wait.
    pub async fn hold(&self, draft: &NewDraft<'_>) -> Result<String, StateError> {
        let mut change = self.change().await?;
        if let Some(on) = draft.on {
            check_basis(&mut change, draft.contract, on).await?;
        }
        let query = "SELECT id FROM drafts WHERE contract = $1 AND origin = $2 AND status = 'pending' AND fingerprint = $3 \
                     AND base IS NOT DISTINCT FROM $4 AND source = $5";
        let same: Option<String> = sql(query)
            .bind(draft.contract)
            .bind(draft.origin)
            .bind(draft.fingerprint)
            .bind(draft.base)
            .bind(draft.source)
            .find_value(&mut change)
            .await?;
        if let Some(id) = same {
            return Ok(id);
        }
        check_room(&mut change, draft).await?;
        let update = "UPDATE drafts SET status = 'superseded', decided_ms = $1, decided_by = $2 \
                      WHERE contract = $3 AND origin = $4 AND status = 'pending'";
        sql(update)
            .bind(draft.at_ms)
            .bind(draft.by)
            .bind(draft.contract)
            .bind(draft.origin)
            .execute(&mut change)
            .await?;
        insert(&mut change, draft).await?;
        let delete = "DELETE FROM drafts WHERE contract = $1 AND origin = $2 AND status = 'superseded' \
                      AND id NOT IN (SELECT id FROM drafts WHERE contract = $1 AND origin = $2 AND status = 'superseded' \
                      ORDER BY created_ms DESC, id DESC LIMIT $3)";
        sql(delete)
            .bind(draft.contract)
            .bind(draft.origin)
            .bind(SUPERSEDED_MAX)
            .execute(&mut change)
            .await?;
        if draft.origin == ContractOrigin::Api {
            forget_refused(&mut change, draft.by).await?;
        }
        change.commit().await?;
        Ok(draft.id.to_owned())
    }

    /// Returns the drafts that wait, of one contract or of all, newest first: at most one for each contract and origin.
    pub async fn pending(&self, contract: Option<&str>) -> Result<Vec<DraftHead>, StateError> {
        let query = select!(
            "",
            "WHERE status = 'pending' AND ($1 IS NULL OR contract = $1) ORDER BY created_ms DESC, id DESC"
        );
        sql(query).bind(contract).fetch_all(&self.engine).await
    }

    /// Returns the drafts that are asked for: all that wait, then the newest `most` that no longer do, newest first.
    pub async fn drafts(
        &self,
        of: DraftFilter<'_>,
        most: u32,
    ) -> Result<Vec<ListedDraft>, StateError> {
        let before: Option<i64> = match of.before {
            None => None,
            Some(id) => Some(
                self.created(id)
                    .await?
                    .ok_or(StateError::Unknown("draft"))?,
            ),
        };
        // This is one query, so that no draft is missing or comes twice while one is decided.
        let query = select!(
            ", report",
            "WHERE id IN (SELECT id FROM drafts WHERE status = 'pending' AND $3 IS NULL \
             AND ($1 IS NULL OR contract = $1) AND ($2 IS NULL OR $2 = 'pending')) \
             OR id IN (SELECT id FROM drafts WHERE status != 'pending' AND ($1 IS NULL OR contract = $1) \
             AND ($2 IS NULL OR status = $2) AND ($3 IS NULL OR (created_ms, id) < ($3, $4)) \
             ORDER BY created_ms DESC, id DESC LIMIT $5) \
             ORDER BY status = 'pending' DESC, created_ms DESC, id DESC"
        );
        let query = sql(query)
            .bind(of.contract)
            .bind(of.status)
            .bind(before)
            .bind(of.before)
            .bind(most);
        query.fetch_all(&self.engine).await
    }

    /// Returns how many drafts of each class are pending.
    pub async fn waiting(&self) -> Result<Vec<(ChangeClass, u32)>, StateError> {
        let query = "SELECT class, count(*) FROM drafts WHERE status = 'pending' GROUP BY class ORDER BY class";
        let rows: Vec<(ChangeClass, i64)> = sql(query).fetch_all(&self.engine).await?;
        Ok(rows
            .into_iter()
            .map(|(class, count)| (class, to_count(count)))
            .collect())
    }

    /// Returns a draft with its texts, whatever its status.
    pub async fn draft(&self, id: &str) -> Result<Option<DraftRow>, StateError> {
        sql("SELECT * FROM drafts WHERE id = $1")
            .bind(id)
            .fetch_optional(&self.engine)
            .await
    }

    /// Returns the id of the newest draft of a contract, whatever its status.
    pub async fn newest_draft(&self, contract: &str) -> Result<NewestDraft, StateError> {
        newest_draft(&self.engine, contract).await
    }

    /// Returns the newest draft that would make this difference to `base`.
    pub async fn draft_of_change(
        &self,
        contract: &str,
        base: Option<&str>,
        fingerprint: &str,
    ) -> Result<Option<DraftHead>, StateError> {
        let query = select!(
            "",
            "WHERE contract = $1 AND base IS NOT DISTINCT FROM $2 AND fingerprint = $3 ORDER BY created_ms DESC, id DESC LIMIT 1"
        );
        let query = sql(query).bind(contract).bind(base).bind(fingerprint);
        query.fetch_optional(&self.engine).await
    }

    /// Returns what became of the newest draft that would publish this text over `base`. The database compares the
    /// texts, one after the other.
    pub async fn status_of_source(
        &self,
        contract: &str,
        base: Option<&str>,
        source: &str,
    ) -> Result<Option<DraftStatus>, StateError> {
        let query = "SELECT status FROM drafts WHERE contract = $1 AND base IS NOT DISTINCT FROM $2 AND version IS NOT NULL AND source = $3 \
                     ORDER BY created_ms DESC, id DESC LIMIT 1";
        let query = sql(query).bind(contract).bind(base).bind(source);
        query.find_value(&self.engine).await
    }

    /// Returns how many drafts of `base` made since then were superseded, counting only those still kept.
    pub async fn superseded(
        &self,
        contract: &str,
        origin: ContractOrigin,
        base: Option<&str>,
        since_ms: i64,
    ) -> Result<u32, StateError> {
        let query = "SELECT count(*) FROM drafts WHERE contract = $1 AND origin = $2 AND base IS NOT DISTINCT FROM $3 \
                     AND status = 'superseded' AND created_ms >= $4";
        let query = sql(query)
            .bind(contract)
            .bind(origin)
            .bind(base)
            .bind(since_ms);
        query.fetch_value(&self.engine).await.map(to_count)
    }

    /// Discards a pending draft; one that is decided already is `Moved`.
    pub async fn discard(&self, id: &str, at_ms: i64, by: &str) -> Result<(), StateError> {
        let update = "UPDATE drafts SET status = 'discarded', decided_ms = $1, decided_by = $2 \
                      WHERE id = $3 AND status = 'pending'";
        let done = sql(update)
            .bind(at_ms)
            .bind(by)
            .bind(id)
            .execute(&self.engine)
            .await?;
        if done == 1 {
            return Ok(());
        }
        match self.created(id).await? {
            Some(_) => Err(StateError::Moved("the draft")),
            None => Err(StateError::Unknown("draft")),
        }
    }

    /// Drops the pending drafts of a contract that came from `origin`, if nothing there asks for them anymore.
    pub async fn drop_held(
        &self,
        contract: &str,
        origin: ContractOrigin,
        at_ms: i64,
        by: &str,
    ) -> Result<(), StateError> {
        let query = "SELECT count(*) FROM drafts WHERE contract = $1 AND origin = $2 AND status = 'pending'";
        let (held,): (i64,) = sql(query)
            .bind(contract)
            .bind(origin)
            .fetch_one(&self.engine)
            .await?;
        if held == 0 {
            return Ok(());
        }
        let update = "UPDATE drafts SET status = 'superseded', decided_ms = $1, decided_by = $2 \
                      WHERE contract = $3 AND origin = $4 AND status = 'pending'";
        sql(update)
            .bind(at_ms)
            .bind(by)
            .bind(contract)
            .bind(origin)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Returns when a draft was made; `None` if there is no such draft.
    async fn created(&self, id: &str) -> Result<Option<i64>, StateError> {
        let query = "SELECT created_ms FROM drafts WHERE id = $1";
        sql(query).bind(id).find_value(&self.engine).await
    }
}

fn to_count(rows: i64) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// Refuses a draft whose author has too many that wait. The one that it replaces does not count.
async fn check_room(change: &mut StateChange, draft: &NewDraft<'_>) -> Result<(), StateError> {
    let query = "SELECT count(*), CAST(coalesce(sum(octet_length(coalesce(artifact, '')) + octet_length(source) \
                 + octet_length(report)), 0) AS BIGINT) FROM drafts \
                 WHERE status = 'pending' AND created_by = $1 AND NOT (contract = $2 AND origin = $3)";
    let (count, bytes): (i64, i64) = sql(query)
        .bind(draft.by)
        .bind(draft.contract)
        .bind(draft.origin)
        .fetch_one(change)
        .await?;
    let texts = draft.artifact.map_or(0, str::len) + draft.source.len() + draft.report.len();
    let texts = i64::try_from(texts).unwrap_or(i64::MAX);
    // One draft always has room: its size is bounded when it is received.
    let is_full = count >= WAITING_MAX || bytes.saturating_add(texts) > TEXT_BYTES_MAX;
    if count == 0 || !is_full {
        return Ok(());
    }
    Err(StateError::Full(format!(
        "{count} drafts of {} wait, with {} MiB of text, and {WAITING_MAX} with {} MiB may: publish or discard some of them first",
        draft.by,
        bytes >> 20,
        TEXT_BYTES_MAX >> 20
    )))
}

/// Forgets the oldest drafts of an author that came over the admin API and will not be published. A file or a plugin that asks
/// again is compared with its own, which are bounded by the number of files and plugins.
async fn forget_refused(change: &mut StateChange, author: &str) -> Result<(), StateError> {
    let delete = "DELETE FROM drafts WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER newest AS place, \
                  sum(octet_length(coalesce(artifact, '')) + octet_length(source) + octet_length(report)) OVER newest AS bytes \
                  FROM drafts WHERE created_by = $1 AND origin = 'api' AND status IN ('discarded', 'superseded') \
                  WINDOW newest AS (ORDER BY created_ms DESC, id DESC)) AS refused WHERE place > $2 OR bytes > $3)";
    sql(delete)
        .bind(author)
        .bind(REFUSED_MAX)
        .bind(TEXT_BYTES_MAX)
        .execute(change)
        .await?;
    Ok(())
}

/// Refuses a change based on a state that no longer holds.
pub(super) async fn check_basis(
    change: &mut StateChange,
    contract: &str,
    on: &ContractBasis,
) -> Result<(), StateError> {
    let query = "SELECT revision FROM contracts WHERE name = $1 AND live IS NOT NULL";
    let revision: Option<i64> = sql(query).bind(contract).find_value(&mut *change).await?;
    let mut is_so = revision.unwrap_or(0) == on.revision;
    if let Some(newest) = &on.newest_draft {
        is_so &= newest_draft(change, contract).await? == *newest;
    }
    match is_so {
        true => Ok(()),
        false => Err(StateError::Moved("the contract")),
    }
}

async fn newest_draft<'t>(
    target: impl Into<QueryTarget<'t>>,
    contract: &str,
) -> Result<NewestDraft, StateError> {
    let query =
        "SELECT id FROM drafts WHERE contract = $1 ORDER BY created_ms DESC, id DESC LIMIT 1";
    Ok(NewestDraft(
        sql(query).bind(contract).find_value(target).await?,
    ))
}

async fn insert(change: &mut StateChange, draft: &NewDraft<'_>) -> Result<(), StateError> {
    sql(
        "INSERT INTO drafts (id, contract, base, version, artifact, source, origin, owner, class, fingerprint, report, \
         created_ms, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(draft.id)
    .bind(draft.contract)
    .bind(draft.base)
    .bind(draft.version)
    .bind(draft.artifact)
    .bind(draft.source)
    .bind(draft.origin)
    .bind(draft.owner)
    .bind(draft.class)
    .bind(draft.fingerprint)
    .bind(draft.report)
    .bind(draft.at_ms)
    .bind(draft.by)
    .execute(&mut *change)
    .await?;
    Ok(())
}
