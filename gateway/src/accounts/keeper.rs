//! Provides the tokens of accounts, and renews them: one process at a time, whatever its caller does meanwhile.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use weir_oauth::{
    NetworkReach, RegisteredClient, SecretText, TokenEndpoint, TokenSet, renew_token, revoke_token,
};
use weir_state::{AccountRow, StateError};
use weir_upstream::{
    AccountKeeper, AccountOwner, Granting, OauthServer, UpstreamFailure, UpstreamFailureKind,
    no_account, without_token,
};

use super::{AccountRegistry, owner_name};
use crate::identity::now_ms;

/// The time for which one process alone may renew. It is longer than an issuer may take to answer.
const RENEWAL_MS: i64 = 12_000;
/// The pause between two checks whether another process has renewed the token.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The number of checks of an account before a request for its token is given up.
const LOOKS_MAX: usize = 250;
/// The time before its expiry at which a token is renewed. A short-lived one is renewed after three quarters of its life.
const RENEW_BEFORE_MS: i64 = 60_000;

/// The secret part of an account, and the means of renewing it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SealedAccount {
    access: String,
    refresh: Option<String>,
    /// When the token is to be renewed, and when it ends.
    renew_ms: Option<i64>,
    expires_ms: Option<i64>,
    token_url: String,
    pub(super) revocation_url: Option<String>,
    client_id: String,
    client_secret: Option<String>,
    is_secret_posted: bool,
    is_anywhere: bool,
    resource: Option<String>,
    /// The scopes that were requested for it.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
}

impl SealedAccount {
    pub(super) fn new(
        tokens: &TokenSet,
        endpoint: &TokenEndpoint,
        revocation_url: Option<&str>,
        resource: Option<&str>,
    ) -> Self {
        let secret = endpoint.client.secret.as_ref();
        let mut account = Self {
            access: String::new(),
            refresh: None,
            renew_ms: None,
            expires_ms: None,
            token_url: endpoint.url.clone(),
            revocation_url: revocation_url.map(str::to_owned),
            client_id: endpoint.client.id.clone(),
            client_secret: secret.map(|secret| secret.reveal().to_owned()),
            is_secret_posted: endpoint.is_secret_posted,
            is_anywhere: endpoint.reach == NetworkReach::Anywhere,
            resource: resource.map(str::to_owned),
            scopes: Vec::new(),
        };
        account.take(tokens);
        account
    }

    /// Takes the tokens of an answer. Without a new refresh token, the previous one is kept.
    fn take(&mut self, tokens: &TokenSet) {
        tokens.access.reveal().clone_into(&mut self.access);
        if let Some(refresh) = &tokens.refresh {
            self.refresh = Some(refresh.reveal().to_owned());
        }
        let lasts = tokens.lasts();
        let lasts_ms = lasts.map(|lasts| i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX / 2));
        self.expires_ms = lasts_ms.map(|lasts| now_ms() + lasts);
        self.renew_ms = match self.refresh {
            Some(_) => lasts_ms.map(|lasts| now_ms() + lasts - RENEW_BEFORE_MS.min(lasts / 4)),
            None => self.expires_ms,
        };
    }

    fn endpoint(&self) -> TokenEndpoint {
        TokenEndpoint {
            url: self.token_url.clone(),
            reach: match self.is_anywhere {
                true => NetworkReach::Anywhere,
                false => NetworkReach::Public,
            },
            client: RegisteredClient {
                id: self.client_id.clone(),
                secret: self.client_secret.as_deref().map(SecretText::new),
            },
            is_secret_posted: self.is_secret_posted,
        }
    }

    /// Returns the token until the time, unless the server refused it.
    fn usable(&self, until_ms: Option<i64>, refused: Option<&SecretText>) -> Option<SecretText> {
        let is_over = until_ms.is_some_and(|until| now_ms() >= until);
        let is_refused = refused.is_some_and(|refused| refused.reveal() == self.access);
        (!is_over && !is_refused).then(|| SecretText::new(self.access.as_str()))
    }
}

impl AccountKeeper for AccountRegistry {
    fn account<'k>(
        &'k self,
        server: &'k OauthServer,
        owner: &'k AccountOwner,
    ) -> Granting<'k, i64> {
        Box::pin(async move {
            let account = self.row(server, &owner_name(owner), None).await?;
            Ok(account.number)
        })
    }

    fn token<'k>(
        &'k self,
        server: &'k OauthServer,
        owner: &'k AccountOwner,
        account: Option<i64>,
        refused: Option<&'k SecretText>,
    ) -> Granting<'k, SecretText> {
        let (server, owner, refused) = (server.clone(), owner_name(owner), refused.cloned());
        Box::pin(async move {
            let row = self.row(&server, &owner, account).await?;
            let sealed = self.opened(&row)?;
            if let Some(token) = sealed.usable(sealed.renew_ms, refused.as_ref()) {
                return Ok(token);
            }
            let own = self.own.upgrade();
            let own = own.ok_or_else(|| internal("the gateway ends"))?;
            // The answer of the issuer must be kept, even if its caller leaves.
            let renewing = tokio::spawn(async move {
                own.renewed(&server, &owner, account, refused.as_ref())
                    .await
            });
            let renewed = renewing.await;
            renewed.unwrap_or_else(|error| Err(internal(&error.to_string())))
        })
    }
}

impl AccountRegistry {
    async fn row(
        &self,
        server: &OauthServer,
        owner: &str,
        number: Option<i64>,
    ) -> Result<AccountRow, UpstreamFailure> {
        let row = self.state.account(&server.name, owner).await;
        let row = row.map_err(|error| internal(&error.to_string()))?;
        let row = row.ok_or_else(|| no_account(&server.name, "none is connected"))?;
        if row.server != self.seal.mark(&server.url) {
            let cause = "the one that is connected is for another address";
            return Err(no_account(&server.name, cause));
        }
        if number.is_some_and(|number| number != row.number) {
            return Err(no_account(
                &server.name,
                "another one was connected meanwhile",
            ));
        }
        Ok(row)
    }

    /// Returns the scopes that were requested for the account of an owner.
    pub(super) async fn scopes(&self, server: &OauthServer, owner: &str) -> Vec<String> {
        let row = self.row(server, owner, None).await;
        let account = row.and_then(|row| self.opened(&row));
        account.map_or_else(|_| Vec::new(), |account| account.scopes)
    }

    /// Removes the address of the server from stored accounts that contain it, since it may hold a secret.
    pub async fn hide_addresses(&self) -> Result<(), StateError> {
        for row in self.state.accounts(None).await? {
            if !row.server.starts_with("http") {
                continue;
            }
            let opened = self.opened(&row);
            let server = self.seal.mark(&row.server);
            let place = [&*row.upstream, &*row.owner, &*server];
            let closed = opened.map(|account| self.seal.close(&place, &account));
            match closed {
                Ok(Ok(sealed)) => {
                    // An account whose tokens another process is renewing is left for the next start.
                    self.state.rename_server(&row, &server, &sealed).await?;
                }
                _ => tracing::warn!(
                    upstream = row.upstream,
                    "an account cannot be opened with this state's key: it is left unchanged"
                ),
            }
        }
        Ok(())
    }

    fn opened(&self, row: &AccountRow) -> Result<SealedAccount, UpstreamFailure> {
        let place = [&*row.upstream, &*row.owner, &*row.server];
        self.seal
            .open(&place, &row.sealed)
            .ok_or_else(|| no_account(&row.upstream, "the one that is kept cannot be opened"))
    }

    /// Returns a renewed token: from this process, or from another one meanwhile.
    async fn renewed(
        &self,
        server: &OauthServer,
        owner: &str,
        number: Option<i64>,
        refused: Option<&SecretText>,
    ) -> Result<SecretText, UpstreamFailure> {
        for _ in 0..LOOKS_MAX {
            let row = self.row(server, owner, number).await?;
            let flight = self.flight(row.number);
            let _flight = flight.lock().await;
            let row = self.row(server, owner, number).await?;
            let sealed = self.opened(&row)?;
            if let Some(token) = sealed.usable(sealed.renew_ms, refused) {
                return Ok(token);
            }
            let now = now_ms();
            let claimed = self.state.claim_renewal(&row, now, now + RENEWAL_MS).await;
            if claimed.map_err(|error| internal(&error.to_string()))? {
                return self.renew(&row, sealed, refused).await;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Err(internal("another process renews the tokens of the account"))
    }

    async fn renew(
        &self,
        row: &AccountRow,
        mut sealed: SealedAccount,
        refused: Option<&SecretText>,
    ) -> Result<SecretText, UpstreamFailure> {
        let asked = match &sealed.refresh {
            Some(refresh) => {
                let refresh = SecretText::new(refresh.as_str());
                renew_token(&sealed.endpoint(), &refresh, sealed.resource.as_deref()).await
            }
            None => return self.over(row, "it ended, and nothing renews it").await,
        };
        let failed = |error: &dyn std::fmt::Display| internal(&error.to_string());
        let fault = match asked {
            Ok(tokens) => {
                sealed.take(&tokens);
                let place = [&*row.upstream, &*row.owner, &*row.server];
                let closed = self.seal.close(&place, &sealed);
                let closed = closed.map_err(|error| failed(&error))?;
                let kept = self.state.end_renewal(row, Some(&closed), now_ms()).await;
                if !kept.map_err(|error| failed(&error))? {
                    return Err(no_account(&row.upstream, "it was disconnected meanwhile"));
                }
                self.metrics.account_event(&row.upstream, "renewed");
                return Ok(tokens.access);
            }
            Err(fault) => fault,
        };
        if fault.is_grant_over() {
            return self.over(row, "the issuer says that it is over").await;
        }
        let ended = self.state.end_renewal(row, None, now_ms()).await;
        ended.map_err(|error| failed(&error))?;
        self.metrics.account_event(&row.upstream, "not_renewed");
        tracing::warn!(
            upstream = row.upstream,
            account = row.number,
            "the tokens of an account cannot be renewed now: {fault}"
        );
        if fault.is_client_unknown() {
            let forgotten = self.state.forget_oauth_clients(&row.issuer).await;
            forgotten.map_err(|error| internal(&error.to_string()))?;
            // The token may still be valid.
            if let Some(token) = sealed.usable(sealed.expires_ms, refused) {
                return Ok(token);
            }
            return Err(no_account(
                &row.upstream,
                "its issuer no longer knows the gateway",
            ));
        }
        // A token that could not be renewed in time is valid until it expires.
        let still = sealed.usable(sealed.expires_ms, refused);
        still.ok_or_else(|| without_token(&fault))
    }

    /// Removes an account that has ended, unless another process has renewed it.
    async fn over(&self, row: &AccountRow, cause: &str) -> Result<SecretText, UpstreamFailure> {
        let removed = self
            .state
            .remove_account(row.number, Some(row.version))
            .await;
        let removed = removed.map_err(|error| internal(&error.to_string()))?;
        if removed.is_some() {
            self.renewing.lock().remove(&row.number);
            self.metrics.account_event(&row.upstream, "over");
            tracing::info!(
                upstream = row.upstream,
                account = row.number,
                "an account has ended: {cause}"
            );
        }
        Err(no_account(&row.upstream, cause))
    }

    fn flight(&self, number: i64) -> Arc<tokio::sync::Mutex<()>> {
        const FLIGHTS_MAX: usize = 1_024;
        let mut renewing = self.renewing.lock();
        if renewing.len() >= FLIGHTS_MAX {
            renewing.retain(|_, flight| Arc::strong_count(flight) > 1);
        }
        renewing.entry(number).or_default().clone()
    }

    /// Revokes the grant at the issuer, if it supports that. The account ends here in any case.
    pub(super) async fn revoke(&self, row: &AccountRow) {
        let Ok(sealed) = self.opened(row) else { return };
        let Some(url) = &sealed.revocation_url else {
            return;
        };
        let token = sealed.refresh.as_ref().unwrap_or(&sealed.access);
        let endpoint = TokenEndpoint {
            url: url.clone(),
            ..sealed.endpoint()
        };
        let token = SecretText::new(token.as_str());
        if let Err(fault) = revoke_token(&endpoint, &token).await {
            let (upstream, account) = (&row.upstream, row.number);
            tracing::warn!(
                upstream,
                account,
                "the issuer could not end an account: {fault}"
            );
        }
    }
}

fn internal(cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Access,
        "the accounts to be readable",
        cause,
    )
    .before_sending()
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn account(refresh: Option<&str>, lasts: Option<Duration>) -> SealedAccount {
        let tokens = TokenSet {
            access: SecretText::new("a"),
            refresh: refresh.map(SecretText::new),
            identity: None,
            expires: lasts.map(|lasts| SystemTime::now() + lasts),
            scopes: None,
        };
        let endpoint = TokenEndpoint {
            url: "https://issuer.example/token".to_owned(),
            reach: NetworkReach::Public,
            client: RegisteredClient {
                id: "c".to_owned(),
                secret: None,
            },
            is_secret_posted: false,
        };
        SealedAccount::new(&tokens, &endpoint, None, None)
    }

    /// An account that cannot be renewed has ended when it is time to renew it.
    #[test]
    fn a_token_is_renewed_before_it_ends_and_one_that_cannot_be_is_used_until_then() {
        const HOUR: Duration = Duration::from_secs(3_600);
        let renewed = account(Some("r"), Some(HOUR));
        let before = renewed.expires_ms.zip(renewed.renew_ms);
        let (expires, renew) = before.expect("times");
        // The clock is read more than once.
        assert!((expires - renew - RENEW_BEFORE_MS).abs() < 5_000);
        let kept = account(None, Some(HOUR));
        assert!(kept.renew_ms.is_some() && kept.renew_ms == kept.expires_ms);
        assert!(kept.usable(kept.renew_ms, None).is_some());
        assert!(
            kept.usable(kept.renew_ms, Some(&SecretText::new("a")))
                .is_none()
        );
        let endless = account(None, None);
        assert_eq!((endless.renew_ms, endless.expires_ms), (None, None));
        let over = account(None, Some(Duration::ZERO));
        assert!(over.usable(over.renew_ms, None).is_none());
    }
}
