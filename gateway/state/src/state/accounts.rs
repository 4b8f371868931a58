//! Accounts of callers at other servers, the clients that are registered there, and links that lead to a sign-in. Secrets
//! are passed in and out sealed.

use super::GatewayState;
use crate::{
    AccountRow, ConnectKind, ConnectRow, StateError,
    columns::from_row,
    engine::{StateChange, sql},
};

/// The links of one kind that one owner has for one server. The one that ends first makes room.
const LINKS_MAX: i64 = 16;

from_row!(AccountRow {
    number,
    upstream,
    owner,
    label,
    server,
    issuer,
    sealed,
    version,
    renewing_until_ms,
    created_ms,
    renewed_ms
});
from_row!(ConnectRow {
    hash,
    kind,
    upstream,
    owner,
    label,
    sealed,
    expires_ms
});

impl GatewayState {
    /// Returns the account of an owner at a server, if it is connected.
    pub async fn account(
        &self,
        upstream: &str,
        owner: &str,
    ) -> Result<Option<AccountRow>, StateError> {
        let query = "SELECT * FROM accounts WHERE upstream = $1 AND owner = $2";
        sql(query)
            .bind(upstream)
            .bind(owner)
            .fetch_optional(&self.engine)
            .await
    }

    /// Returns the accounts at one server, or at all.
    pub async fn accounts(&self, upstream: Option<&str>) -> Result<Vec<AccountRow>, StateError> {
        let query = "SELECT * FROM accounts WHERE $1 IS NULL OR upstream = $1 ORDER BY upstream, label, number";
        sql(query).bind(upstream).fetch_all(&self.engine).await
    }

    /// Keeps an account in the place of the one that the owner had. It gets a number that none had before.
    pub async fn keep_account(&self, account: &AccountRow) -> Result<(), StateError> {
        let mut change = self.change().await?;
        sql("DELETE FROM accounts WHERE upstream = $1 AND owner = $2")
            .bind(&account.upstream)
            .bind(&account.owner)
            .execute(&mut change)
            .await?;
        let insert = "INSERT INTO accounts (upstream, owner, label, server, issuer, sealed, version, renewing_until_ms, \
            created_ms, renewed_ms) VALUES ($1, $2, $3, $4, $5, $6, 1, 0, $7, $8)";
        sql(insert)
            .bind(&account.upstream)
            .bind(&account.owner)
            .bind(&account.label)
            .bind(&account.server)
            .bind(&account.issuer)
            .bind(&account.sealed)
            .bind(account.created_ms)
            .bind(account.renewed_ms)
            .execute(&mut change)
            .await?;
        change.commit().await?;
        Ok(())
    }

    /// Gives an account another name of its server, sealed anew. Returns `false` if the account was replaced by now.
    pub async fn rename_server(
        &self,
        account: &AccountRow,
        server: &str,
        sealed: &[u8],
    ) -> Result<bool, StateError> {
        let query =
            "UPDATE accounts SET server = $1, sealed = $2 WHERE number = $3 AND version = $4";
        let done = sql(query)
            .bind(server)
            .bind(sealed)
            .bind(account.number)
            .bind(account.version)
            .execute(&self.engine)
            .await?;
        Ok(done > 0)
    }

    /// Claims the renewal of the tokens of that version, until a time. Of several processes one is answered `true`.
    pub async fn claim_renewal(
        &self,
        account: &AccountRow,
        now_ms: i64,
        until_ms: i64,
    ) -> Result<bool, StateError> {
        let query = "UPDATE accounts SET renewing_until_ms = $1 WHERE number = $2 AND version = $3 AND renewing_until_ms <= $4";
        let done = sql(query)
            .bind(until_ms)
            .bind(account.number)
            .bind(account.version)
            .bind(now_ms)
            .execute(&self.engine)
            .await?;
        Ok(done > 0)
    }

    /// Ends a renewal: with other tokens, or without. Returns `false` if the account was replaced by now.
    pub async fn end_renewal(
        &self,
        account: &AccountRow,
        sealed: Option<&[u8]>,
        now_ms: i64,
    ) -> Result<bool, StateError> {
        let query = "UPDATE accounts SET renewing_until_ms = 0, version = version + CASE WHEN $1 IS NULL THEN 0 ELSE 1 END, \
            renewed_ms = CASE WHEN $1 IS NULL THEN renewed_ms ELSE $2 END, sealed = coalesce($1, sealed) WHERE number = $3 AND version = $4";
        let done = sql(query)
            .bind(sealed)
            .bind(now_ms)
            .bind(account.number)
            .bind(account.version)
            .execute(&self.engine)
            .await?;
        Ok(done > 0)
    }

    /// Removes an account; with `version` only while its tokens are of that version. Returns it, if it existed.
    pub async fn remove_account(
        &self,
        number: i64,
        version: Option<i64>,
    ) -> Result<Option<AccountRow>, StateError> {
        let query =
            "DELETE FROM accounts WHERE number = $1 AND ($2 IS NULL OR version = $2) RETURNING *";
        let mut change = self.change().await?;
        let removed = sql(query)
            .bind(number)
            .bind(version)
            .fetch_optional(&mut change)
            .await?;
        change.commit().await?;
        Ok(removed)
    }

    /// Returns the sealed client that is registered at an issuer.
    pub async fn oauth_client(
        &self,
        issuer: &str,
        redirect: &str,
    ) -> Result<Option<Vec<u8>>, StateError> {
        let query = "SELECT sealed FROM oauth_clients WHERE issuer = $1 AND redirect = $2";
        sql(query)
            .bind(issuer)
            .bind(redirect)
            .find_value(&self.engine)
            .await
    }

    /// Keeps a client, or forgets the one that is kept.
    pub async fn set_oauth_client(
        &self,
        issuer: &str,
        redirect: &str,
        sealed: Option<&[u8]>,
    ) -> Result<(), StateError> {
        let query = match sealed {
            Some(_) => {
                "INSERT INTO oauth_clients (issuer, redirect, sealed) VALUES ($1, $2, $3) \
                 ON CONFLICT (issuer, redirect) DO UPDATE SET sealed = excluded.sealed"
            }
            None => "DELETE FROM oauth_clients WHERE issuer = $1 AND redirect = $2 AND $3 IS NULL",
        };
        sql(query)
            .bind(issuer)
            .bind(redirect)
            .bind(sealed)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Forgets every client that is registered at an issuer: the next sign-in registers another one.
    pub async fn forget_oauth_clients(&self, issuer: &str) -> Result<(), StateError> {
        let query = "DELETE FROM oauth_clients WHERE issuer = $1";
        sql(query).bind(issuer).execute(&self.engine).await?;
        Ok(())
    }

    /// Adds a link that leads to a sign-in. Those that have ended are dropped on the way.
    pub async fn add_connect_link(&self, link: &ConnectRow, now_ms: i64) -> Result<(), StateError> {
        let mut change = self.change().await?;
        add_link(&mut change, link, now_ms).await?;
        change.commit().await?;
        Ok(())
    }

    /// Returns a link of one kind that has not ended.
    pub async fn connect_link(
        &self,
        hash: &[u8],
        kind: ConnectKind,
        now_ms: i64,
    ) -> Result<Option<ConnectRow>, StateError> {
        let query = "SELECT * FROM connect_links WHERE hash = $1 AND kind = $2 AND expires_ms > $3";
        sql(query)
            .bind(hash)
            .bind(kind)
            .bind(now_ms)
            .fetch_optional(&self.engine)
            .await
    }

    /// Takes a link that has not ended, and puts another one in its place, if there is one. Of several that take it at once,
    /// one is answered `true`.
    pub async fn take_connect_link(
        &self,
        hash: &[u8],
        next: Option<&ConnectRow>,
        now_ms: i64,
    ) -> Result<bool, StateError> {
        let mut change = self.change().await?;
        let done = sql("DELETE FROM connect_links WHERE hash = $1 AND expires_ms > $2")
            .bind(hash)
            .bind(now_ms)
            .execute(&mut change)
            .await?;
        if done == 0 {
            return Ok(false);
        }
        if let Some(next) = next {
            add_link(&mut change, next, now_ms).await?;
        }
        change.commit().await?;
        Ok(true)
    }
}

async fn add_link(
    change: &mut StateChange,
    link: &ConnectRow,
    now_ms: i64,
) -> Result<(), StateError> {
    // A link that makes room expires: this does not end a right for good.
    let beyond = "UPDATE connect_links SET expires_ms = 0 WHERE upstream = $1 AND owner = $2 AND kind = $3 AND hash NOT IN \
        (SELECT hash FROM connect_links WHERE upstream = $1 AND owner = $2 AND kind = $3 \
        ORDER BY expires_ms DESC LIMIT $4)";
    sql(beyond)
        .bind(&link.upstream)
        .bind(&link.owner)
        .bind(link.kind)
        .bind(LINKS_MAX - 1)
        .execute(&mut *change)
        .await?;
    sql("DELETE FROM connect_links WHERE expires_ms <= $1")
        .bind(now_ms)
        .execute(&mut *change)
        .await?;
    let insert = "INSERT INTO connect_links (hash, kind, upstream, owner, label, sealed, expires_ms) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    sql(insert)
        .bind(&link.hash)
        .bind(link.kind)
        .bind(&link.upstream)
        .bind(&link.owner)
        .bind(&link.label)
        .bind(&link.sealed)
        .bind(link.expires_ms)
        .execute(&mut *change)
        .await?;
    Ok(())
}
