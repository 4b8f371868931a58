//! Tokens that the callers' own are exchanged for (RFC 8693), directly or by an identity assertion (ID-JAG). They are kept
//! only in memory.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use weir_oauth::{
    AssertionRequest, OauthFault, SecretText, TokenEndpoint, TokenExchange, TokenSet,
    exchange_token, redeem_assertion,
};

use super::{
    AccountOwner, BearerTokens, ExchangeConfig, Granting, IssuedToken, MachineConfig,
    MachineTokens, config::client, find_server_issuer, without_token,
};
use crate::error::{UpstreamFailure, UpstreamFailureKind};

/// Callers whose tokens are kept. Beyond this number, those without a session are forgotten.
const CALLERS_MAX: usize = 4_096;

pub(crate) struct TokenExchanger {
    url: String,
    config: ExchangeConfig,
    callers: Mutex<HashMap<AccountOwner, Arc<ExchangedTokens>>>,
    /// With these the lists are looked at, which no caller asks for.
    machine: Arc<MachineTokens>,
    own: Weak<Self>,
}

/// The tokens of one caller.
pub(crate) struct ExchangedTokens {
    exchanger: Weak<TokenExchanger>,
    /// The caller's own token, as it came last.
    subject: Mutex<SecretText>,
    /// The token, and the caller's own that it was given for.
    issued: tokio::sync::Mutex<Option<(IssuedToken, SecretText)>>,
}

impl TokenExchanger {
    pub(crate) fn new(url: &str, config: ExchangeConfig) -> Arc<Self> {
        let (id, secret) = match &config.assertion {
            Some(own) => (&own.client_id, &own.client_secret),
            None => (&config.client_id, &config.client_secret),
        };
        let machine = MachineConfig {
            client_id: id.clone(),
            client_secret: secret.clone().unwrap_or_default(),
            token_url: config
                .token_url
                .clone()
                .filter(|_| config.assertion.is_none()),
            resource: config.resource.clone(),
            scopes: config.scopes.clone(),
        };
        Arc::new_cyclic(|own| Self {
            machine: Arc::new(MachineTokens::new(url, machine)),
            url: url.to_owned(),
            config,
            callers: Mutex::default(),
            own: own.clone(),
        })
    }

    pub(crate) fn machine(&self) -> &Arc<MachineTokens> {
        &self.machine
    }

    /// Notes the token that a caller came with.
    pub(crate) fn note(
        &self,
        owner: &AccountOwner,
        subject: Option<&SecretText>,
    ) -> Result<(), UpstreamFailure> {
        let Some(subject) = subject else {
            let failure = UpstreamFailure::new(
                UpstreamFailureKind::Access,
                "a caller with a token of an issuer, which is exchanged for one of the server",
                "it used a key, or no credential",
            );
            return Err(failure.before_sending());
        };
        *self.tokens_of(owner).subject.lock() = subject.clone();
        Ok(())
    }

    pub(crate) fn tokens_of(&self, owner: &AccountOwner) -> Arc<ExchangedTokens> {
        let mut callers = self.callers.lock();
        if callers.len() >= CALLERS_MAX && !callers.contains_key(owner) {
            callers.retain(|_, tokens| Arc::strong_count(tokens) > 1);
        }
        let new = || {
            Arc::new(ExchangedTokens {
                exchanger: self.own.clone(),
                subject: Mutex::default(),
                issued: tokio::sync::Mutex::default(),
            })
        };
        callers.entry(owner.clone()).or_insert_with(new).clone()
    }

    async fn exchange(&self, subject: &SecretText) -> Result<TokenSet, OauthFault> {
        let config = &self.config;
        let own = client(&config.client_id, config.client_secret.as_deref());
        let issuer = match (&config.token_url, &config.assertion) {
            (Some(_), None) => None,
            _ => Some(find_server_issuer(&self.url, None).await?),
        };
        let found = issuer.as_ref();
        let resource = config.resource.as_deref();
        let resource = resource.or(found.map(|issuer| &*issuer.resource));
        let endpoint = match (&config.token_url, found) {
            (Some(url), _) => TokenEndpoint::at(url, own),
            (None, Some(issuer)) => TokenEndpoint::new(&issuer.metadata, own, issuer.reach),
            (None, None) => unreachable!("the issuer was looked for"),
        };
        let audience = match (&config.audience, &config.assertion, found) {
            (Some(audience), ..) => Some(&**audience),
            // An assertion is for the issuer that takes it.
            (None, Some(_), Some(issuer)) => Some(&*issuer.metadata.issuer),
            _ => None,
        };
        let exchange = TokenExchange {
            subject,
            audience,
            resource,
            scopes: &config.scopes,
            is_assertion: config.assertion.is_some(),
        };
        let given = exchange_token(&endpoint, exchange).await?;
        let (Some(assertion), Some(issuer)) = (&config.assertion, found) else {
            return Ok(given);
        };
        let own = client(&assertion.client_id, assertion.client_secret.as_deref());
        let endpoint = TokenEndpoint::new(&issuer.metadata, own, issuer.reach);
        let request = AssertionRequest {
            assertion: &given.access,
            resource,
            scopes: &config.scopes,
        };
        redeem_assertion(&endpoint, request).await
    }
}

impl BearerTokens for ExchangedTokens {
    fn token<'t>(&'t self, refused: Option<&'t SecretText>) -> Granting<'t, SecretText> {
        Box::pin(async move {
            let mut issued = self.issued.lock().await;
            let subject = self.subject.lock().clone();
            if let Some((token, given_for)) = &*issued
                && *given_for == subject
                && let Some(token) = token.usable(refused)
            {
                return Ok(token);
            }
            let gone = || {
                UpstreamFailure::new(
                    UpstreamFailureKind::Closed,
                    "the server to be configured",
                    "it is not",
                )
            };
            let exchanger = self.exchanger.upgrade().ok_or_else(gone)?;
            let exchanged = exchanger.exchange(&subject).await;
            let tokens = exchanged.map_err(|fault| without_token(&fault))?;
            let token = tokens.access.clone();
            *issued = Some((IssuedToken::new(tokens), subject));
            Ok(token)
        })
    }
}
