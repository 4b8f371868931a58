//! The accounts of callers at other servers: connected by a person through a link, kept in the state with sealed tokens, and
//! renewed by one process at a time.

mod keeper;
mod seal;
mod sign_in;

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, OnceLock, Weak},
};

use parking_lot::Mutex;
use weir_audit::AdminAct;
use weir_oauth::OauthFault;
use weir_state::{AccountRow, GatewayState, StateError};
use weir_upstream::AccountOwner;

use self::seal::SecretSeal;
use crate::{
    config::GatewayConfig,
    telemetry::{AuditRecorder, GatewayMetrics},
};

pub use self::sign_in::{AccountSignIn, BegunConnection, SignInPlan};

/// The path of links, sign-ins and their redirects.
pub const CONNECT: &str = "/connect";
/// The path segment of the document that describes the gateway as a client, after the server's name.
pub const CLIENT_DOCUMENT: &str = "client.json";
/// The path segment to which sign-ins return, after the server's name.
pub const CALLBACK: &str = "callback";

/// Why an account could not be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFault {
    /// The link or the sign-in has ended, was used, or never existed.
    #[error("the link has expired or was used")]
    Over,
    #[error(transparent)]
    Oauth(#[from] OauthFault),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("the gateway failed: {0}")]
    Internal(String),
}

/// The accounts of callers at other servers.
pub struct AccountRegistry {
    state: Arc<GatewayState>,
    seal: SecretSeal,
    /// One lock for each account whose tokens are being renewed, by its number.
    renewing: Mutex<HashMap<i64, Arc<tokio::sync::Mutex<()>>>>,
    /// Locked while a client is registered.
    registering: tokio::sync::Mutex<()>,
    /// The address of the agents' listener, for links if no public URL is configured.
    listener: OnceLock<SocketAddr>,
    audit: Arc<AuditRecorder>,
    metrics: Arc<GatewayMetrics>,
    own: Weak<Self>,
}

impl AccountRegistry {
    /// Creates the accounts that `state` keeps. `key` is the gateway's own key, which seals their tokens.
    pub fn new(
        state: Arc<GatewayState>,
        key: &[u8; 32],
        audit: Arc<AuditRecorder>,
        metrics: Arc<GatewayMetrics>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            state,
            seal: SecretSeal::new(key),
            renewing: Mutex::default(),
            registering: tokio::sync::Mutex::default(),
            listener: OnceLock::new(),
            audit,
            metrics,
            own: own.clone(),
        })
    }

    /// Sets the address of the agents' listener.
    pub fn set_listener(&self, address: SocketAddr) {
        let _ = self.listener.set(address); // there is one in a process
    }

    /// Returns the URL with which links begin; `None` if the gateway has no listener that a browser could reach.
    pub fn link_base(&self, config: &GatewayConfig) -> Option<String> {
        if let Some(url) = config.http.public_base() {
            return Some(url.to_owned());
        }
        let address = self.listener.get()?;
        let host = match address.ip() {
            ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
            ip if ip.is_ipv6() => format!("[{ip}]"),
            ip => ip.to_string(),
        };
        Some(format!("http://{host}:{}", address.port()))
    }

    /// Returns the accounts at one server, or at all.
    pub async fn list(&self, upstream: Option<&str>) -> Result<Vec<AccountRow>, StateError> {
        self.state.accounts(upstream).await
    }

    /// Removes an account, and revokes it at the issuer if that is supported. Returns `false` if there is no such account.
    pub async fn disconnect(
        &self,
        upstream: &str,
        number: i64,
        by: &str,
    ) -> Result<bool, ConnectFault> {
        let all = self.state.accounts(Some(upstream)).await?;
        let Some(account) = all.into_iter().find(|account| account.number == number) else {
            return Ok(false);
        };
        let subject = format!("{upstream} {}", account.label);
        self.audit
            .admin(AdminAct::AccountDisconnect, &subject, None, by, None)
            .map_err(|error| ConnectFault::Internal(error.to_string()))?;
        let removed = self.state.remove_account(number, None).await;
        let removed =
            self.audit
                .note_failure(AdminAct::AccountDisconnect, &subject, None, by, removed)?;
        let Some(removed) = removed else {
            return Ok(false);
        };
        self.metrics.account_event(upstream, "disconnected");
        self.revoke(&removed).await;
        Ok(true)
    }
}

/// Returns a name of the owner that no other owner has.
fn owner_name(owner: &AccountOwner) -> String {
    match owner {
        AccountOwner::Gateway => "gateway".to_owned(),
        AccountOwner::Tenant(tenant) => format!("tenant\n{tenant}"),
        AccountOwner::Agent { tenant, agent } => format!("agent\n{tenant}\n{agent}"),
    }
}
