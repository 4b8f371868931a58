//! The tokens that requests to a server carry: whose they are, where they come from, and how they are masked.

mod config;
mod exchange;
mod issuer;
mod machine;

use std::{
    borrow::Cow,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use weir_connections::mask::SecretMask;
use weir_oauth::{OauthFault, SecretText, TokenSet, needed_scopes};

pub use self::{
    config::{AssertionClient, AuthConfig, ExchangeConfig, MachineConfig, OauthConfig},
    issuer::{ServerIssuer, find_challenge, find_server_issuer},
};
pub(crate) use self::{exchange::TokenExchanger, machine::MachineTokens};
use crate::error::{UpstreamFailure, UpstreamFailureKind};

/// The time before its expiry at which a token is renewed. A short-lived one is renewed after three quarters of its life.
const RENEW_BEFORE: Duration = Duration::from_secs(60);

/// A token that is being requested.
pub type Granting<'t, T> = Pin<Box<dyn Future<Output = Result<T, UpstreamFailure>> + Send + 't>>;

/// The owner of an account at another server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AccountOwner {
    /// The gateway itself: the account that an operator has connected, with which lists are looked at.
    Gateway,
    Tenant(Arc<str>),
    Agent {
        tenant: Arc<str>,
        agent: Arc<str>,
    },
}

/// A server that callers have accounts at.
#[derive(Clone, PartialEq, Eq)]
pub struct OauthServer {
    /// Its name in the configuration.
    pub name: Arc<str>,
    pub url: String,
    pub config: OauthConfig,
}

/// Keeps the accounts of callers, beyond this process.
pub trait AccountKeeper: Send + Sync {
    /// Returns the number of the account that the owner has now. A failure of the kind [`UpstreamFailureKind::NoAccount`] means
    /// that there is none.
    fn account<'k>(&'k self, server: &'k OauthServer, owner: &'k AccountOwner)
    -> Granting<'k, i64>;

    /// Returns a token of an account, or of the owner's present account. `refused` is one that the server refused.
    fn token<'k>(
        &'k self,
        server: &'k OauthServer,
        owner: &'k AccountOwner,
        account: Option<i64>,
        refused: Option<&'k SecretText>,
    ) -> Granting<'k, SecretText>;
}

/// Gives the tokens of one session.
pub(crate) trait BearerTokens: Send + Sync {
    /// Returns a token. `refused` is one that the server did not take.
    fn token<'t>(&'t self, refused: Option<&'t SecretText>) -> Granting<'t, SecretText>;

    /// Returns the name of the server, where a person can give its account more scopes.
    fn server_of_person(&self) -> Option<&str> {
        None
    }
}

/// The tokens of one session, and the mask of the last one sent.
#[derive(Clone)]
pub struct TokenSource {
    tokens: Arc<dyn BearerTokens>,
    sent: Arc<Mutex<Option<SentToken>>>,
}

struct SentToken {
    token: SecretText,
    mask: Arc<SecretMask>,
}

impl TokenSource {
    pub(crate) fn new(tokens: Arc<dyn BearerTokens>) -> Self {
        Self {
            tokens,
            sent: Arc::default(),
        }
    }

    pub(crate) async fn token(
        &self,
        refused: Option<&SecretText>,
    ) -> Result<SecretText, UpstreamFailure> {
        let token = self.tokens.token(refused).await?;
        let mut sent = self.sent.lock();
        if sent.as_ref().is_none_or(|sent| sent.token != token) {
            *sent = Some(SentToken {
                mask: Arc::new(SecretMask::new([token.reveal()])),
                token: token.clone(),
            });
        }
        Ok(token)
    }

    /// Returns the failure of a request that an account needs more scopes for, where a person can give them. A server refuses it
    /// before it does anything.
    pub(crate) fn without_scopes(&self, challenge: &str) -> Option<UpstreamFailure> {
        let server = self.tokens.server_of_person()?;
        let scopes = needed_scopes(challenge)?;
        let cause = format!("the request needs the scopes {}", scopes.join(" "));
        let failure = no_account(server, &cause);
        let scopes = scopes.into();
        Some(UpstreamFailure { scopes, ..failure })
    }

    /// Masks the token in the server's text.
    pub(crate) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mask = self.sent.lock().as_ref().map(|sent| sent.mask.clone());
        mask.map_or(Cow::Borrowed(text), |mask| mask.mask(text))
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenSource")
    }
}

/// The tokens of an account that is kept elsewhere.
pub(crate) struct AccountTokens {
    pub(crate) keeper: Arc<dyn AccountKeeper>,
    pub(crate) server: Arc<OauthServer>,
    pub(crate) owner: AccountOwner,
    pub(crate) account: Option<i64>,
}

impl BearerTokens for AccountTokens {
    fn token<'t>(&'t self, refused: Option<&'t SecretText>) -> Granting<'t, SecretText> {
        self.keeper
            .token(&self.server, &self.owner, self.account, refused)
    }

    fn server_of_person(&self) -> Option<&str> {
        Some(&self.server.name)
    }
}

/// The way in which the sessions with a server get their tokens.
#[derive(Clone, Default)]
pub(crate) enum UpstreamAuthorization {
    /// Requests carry none, or one from the configuration.
    #[default]
    None,
    /// Every session carries a token of the gateway itself.
    Machine(Arc<MachineTokens>),
    /// Each owner has an account.
    Accounts {
        server: Arc<OauthServer>,
        keeper: Arc<dyn AccountKeeper>,
    },
    /// The token of each caller is exchanged.
    Exchange(Arc<TokenExchanger>),
}

impl UpstreamAuthorization {
    pub(crate) fn new(
        name: &Arc<str>,
        url: &str,
        auth: Option<&AuthConfig>,
        keeper: Option<&Arc<dyn AccountKeeper>>,
    ) -> Self {
        match auth {
            None | Some(AuthConfig::Header { .. }) => Self::None,
            Some(AuthConfig::ClientCredentials(config)) => {
                Self::Machine(Arc::new(MachineTokens::new(url, config.clone())))
            }
            Some(AuthConfig::Exchange(config)) => {
                Self::Exchange(TokenExchanger::new(url, config.clone()))
            }
            Some(AuthConfig::Oauth(config)) => Self::Accounts {
                server: Arc::new(OauthServer {
                    name: name.clone(),
                    url: url.to_owned(),
                    config: config.clone(),
                }),
                keeper: keeper.cloned().unwrap_or_else(|| Arc::new(NoKeeper)),
            },
        }
    }

    /// Returns `true` if sessions carry tokens of different callers: none is shared then.
    pub(crate) fn is_personal(&self) -> bool {
        matches!(self, Self::Accounts { .. } | Self::Exchange(_))
    }

    /// Returns the tokens of a session. `account`: whose they are, if that differs.
    pub(crate) fn source(&self, account: Option<(&AccountOwner, i64)>) -> Option<TokenSource> {
        let tokens: Arc<dyn BearerTokens> = match self {
            Self::None => return None,
            Self::Machine(machine) => machine.clone(),
            Self::Accounts { server, keeper } => Arc::new(AccountTokens {
                keeper: keeper.clone(),
                server: server.clone(),
                owner: account.map_or(AccountOwner::Gateway, |(owner, _)| owner.clone()),
                account: account.map(|(_, account)| account),
            }),
            Self::Exchange(exchanger) => match account {
                Some((owner, _)) => exchanger.tokens_of(owner),
                None => exchanger.machine().clone(),
            },
        };
        Some(TokenSource::new(tokens))
    }

    /// Returns the number of the owner's account, before anything is sent. `subject` is the caller's own token.
    pub(crate) async fn account(
        &self,
        owner: &AccountOwner,
        subject: Option<&SecretText>,
    ) -> Result<i64, UpstreamFailure> {
        match self {
            Self::None | Self::Machine(_) => Ok(0),
            Self::Accounts { server, keeper } => keeper.account(server, owner).await,
            Self::Exchange(exchanger) => exchanger.note(owner, subject).map(|()| 0),
        }
    }
}

/// The keeper of a process without a state, which has no accounts.
struct NoKeeper;

impl AccountKeeper for NoKeeper {
    fn account<'k>(&'k self, server: &'k OauthServer, _: &'k AccountOwner) -> Granting<'k, i64> {
        Box::pin(async { Err(no_account(&server.name, "this process keeps none")) })
    }

    fn token<'k>(
        &'k self,
        server: &'k OauthServer,
        _: &'k AccountOwner,
        _: Option<i64>,
        _: Option<&'k SecretText>,
    ) -> Granting<'k, SecretText> {
        Box::pin(async { Err(no_account(&server.name, "this process keeps none")) })
    }
}

/// Returns the failure of a request without an account.
pub fn no_account(server: &str, cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::NoAccount,
        format!("an account at the server `{server}`"),
        cause,
    )
    .step("callers connect theirs by the link that their calls get")
    .step(format!(
        "connect the gateway's own with `weir upstream connect {server}`"
    ))
    .before_sending()
}

/// A token that was given, and when it is time for another one.
pub(crate) struct IssuedToken {
    pub(crate) token: SecretText,
    until: Option<Instant>,
}

impl IssuedToken {
    pub(crate) fn new(tokens: TokenSet) -> Self {
        let lasts = tokens.lasts();
        let until = lasts.map(|lasts| Instant::now() + (lasts - RENEW_BEFORE.min(lasts / 4)));
        Self {
            token: tokens.access,
            until,
        }
    }

    /// Returns the token, unless it is time for another one or the server did not take it.
    pub(crate) fn usable(&self, refused: Option<&SecretText>) -> Option<SecretText> {
        let is_over = self.until.is_some_and(|until| Instant::now() >= until);
        (!is_over && refused != Some(&self.token)).then(|| self.token.clone())
    }
}

/// Returns the failure of a request for which no token could be obtained.
pub fn without_token(fault: &OauthFault) -> UpstreamFailure {
    let kind = match fault {
        OauthFault::Unreachable(_) => UpstreamFailureKind::Unreachable,
        OauthFault::Unusable(_) | OauthFault::Refused { .. } => UpstreamFailureKind::Access,
    };
    UpstreamFailure::new(kind, "a token for the server", fault.to_string()).before_sending()
}
