//! Connects an account: the link that a caller gets, the person's sign-in, and the resulting tokens.

use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use weir_audit::AdminAct;
use weir_oauth::{
    ClientMetadata, NetworkReach, RegisteredClient, SecretText, SignInAnswer, SignInRequest,
    TokenEndpoint, begin_sign_in, redeem_code, register_client,
};
use weir_state::{AccountRow, ConnectKind, ConnectRow};
use weir_upstream::{AccountOwner, OauthServer, ServerIssuer, find_server_issuer};

use super::{
    AccountRegistry, CALLBACK, CLIENT_DOCUMENT, CONNECT, ConnectFault, keeper::SealedAccount,
    owner_name, seal::digest,
};
use crate::identity::now_ms;

/// The life of a link and of a sign-in.
const LINK_MS: i64 = 10 * 60 * 1000;
/// The name under which issuers show the gateway to people.
const CLIENT_NAME: &str = "Weir";
/// The scope for which issuers of OpenID Connect give a refresh token.
const OFFLINE: &str = "offline_access";

/// The address to which a sign-in returns, and the identity of the gateway there.
#[derive(Clone, Copy, Debug)]
pub struct SignInPlan<'p> {
    pub redirect: &'p str,
    /// The URL of the document that describes the gateway, if it serves one.
    pub document: Option<&'p str>,
    /// Whether a registered client is kept for later sign-ins.
    pub is_kept: bool,
    /// Scopes to request in addition to those of the server.
    pub scopes: &'p [String],
}

/// A sign-in that has begun, with everything that its end requires. It is kept sealed.
#[derive(Serialize, Deserialize)]
pub struct AccountSignIn {
    verifier: String,
    issuer: String,
    names_issuer: bool,
    redirect: String,
    resource: String,
    client_id: String,
    client_secret: Option<String>,
    token_url: String,
    is_secret_posted: bool,
    is_anywhere: bool,
    revocation_url: Option<String>,
    server: String,
    #[serde(default)]
    scopes: Vec<String>,
    /// The hash of the secret that the browser which began it must show.
    browser: [u8; 32],
}

/// A sign-in whose browser is about to be redirected.
pub struct BegunConnection {
    /// The URL to which the browser is redirected.
    pub url: String,
    /// The state that the answer must repeat.
    pub state: SecretText,
}

impl AccountRegistry {
    /// Returns a link by which a person connects the account of an owner. It opens once. `scopes` are those that a call needs:
    /// they are requested in addition to those of the account.
    pub async fn link(
        &self,
        base: &str,
        server: &OauthServer,
        owner: &AccountOwner,
        label: &str,
        scopes: &[String],
    ) -> Result<String, ConnectFault> {
        let ticket = random()?;
        // Previously granted scopes are requested again.
        let mut all = self.scopes(server, &owner_name(owner)).await;
        add_scopes(&mut all, scopes);
        let sealed = match all.is_empty() {
            true => Vec::new(),
            false => self.close(&["ticket", &server.name, &owner_name(owner)], &all)?,
        };
        let row = ConnectRow {
            hash: digest(&["ticket", &ticket]).to_vec(),
            kind: ConnectKind::Ticket,
            upstream: server.name.to_string(),
            owner: owner_name(owner),
            label: label.to_owned(),
            sealed,
            expires_ms: now_ms() + LINK_MS,
        };
        self.state.add_connect_link(&row, now_ms()).await?;
        self.metrics.account_event(&server.name, "asked");
        Ok(format!("{base}{CONNECT}/{}?ticket={ticket}", server.name))
    }

    /// Returns the caller of a link, without using it up.
    pub async fn ticket(&self, upstream: &str, ticket: &str) -> Result<ConnectRow, ConnectFault> {
        let hash = digest(&["ticket", ticket]);
        let found = self
            .state
            .connect_link(&hash, ConnectKind::Ticket, now_ms());
        let found = found.await?.filter(|found| found.upstream == upstream);
        found.ok_or(ConnectFault::Over)
    }

    /// Uses up a link: the browser that will later show `browser` is sent to the issuer.
    pub async fn open_link(
        &self,
        base: &str,
        server: &OauthServer,
        ticket: &str,
        browser: &str,
    ) -> Result<BegunConnection, ConnectFault> {
        let row = self.ticket(&server.name, ticket).await?;
        let redirect = format!("{base}{CONNECT}/{}/{CALLBACK}", server.name);
        let document = format!("{base}{CONNECT}/{}/{CLIENT_DOCUMENT}", server.name);
        let scopes: Option<Vec<String>> = match row.sealed.is_empty() {
            true => None,
            false => self
                .seal
                .open(&["ticket", &row.upstream, &row.owner], &row.sealed),
        };
        let plan = SignInPlan {
            redirect: &redirect,
            document: Some(&document),
            is_kept: true,
            scopes: &scopes.unwrap_or_default(),
        };
        let (begun, mut pending) = self.begin(server, plan).await?;
        pending.browser = digest(&["browser", browser]);
        let hash = digest(&["state", begun.state.reveal()]);
        let next = ConnectRow {
            kind: ConnectKind::SignIn,
            sealed: self.close(&["sign-in", &row.upstream, &row.owner], &pending)?,
            expires_ms: now_ms() + LINK_MS,
            hash: hash.to_vec(),
            ..row.clone()
        };
        let taken = self
            .state
            .take_connect_link(&row.hash, Some(&next), now_ms())
            .await?;
        taken.then_some(begun).ok_or(ConnectFault::Over)
    }

    /// Ends a sign-in with the query that the browser returned with. Returns the owner in the form shown to people.
    pub async fn close_link(
        &self,
        server: &OauthServer,
        answer: SignInAnswer,
        browser: &str,
    ) -> Result<String, ConnectFault> {
        let hash = digest(&["state", answer.state.reveal()]);
        let found = self
            .state
            .connect_link(&hash, ConnectKind::SignIn, now_ms());
        let found = found.await?.filter(|found| *found.upstream == *server.name);
        let row = found.ok_or(ConnectFault::Over)?;
        let place = ["sign-in", &*row.upstream, &*row.owner];
        let pending: AccountSignIn = self
            .seal
            .open(&place, &row.sealed)
            .ok_or(ConnectFault::Over)?;
        let is_same = pending.browser.ct_eq(&digest(&["browser", browser]));
        if !bool::from(is_same) || pending.server != server.url {
            return Err(ConnectFault::Over);
        }
        // A code is valid once, so the sign-in is too.
        if !self.state.take_connect_link(&hash, None, now_ms()).await? {
            return Err(ConnectFault::Over);
        }
        self.finish(server, &row.owner, &row.label, &pending, answer)
            .await?;
        Ok(row.label)
    }

    /// Connects the gateway's own account, for a process that waits for the sign-in itself.
    pub async fn finish_own(
        &self,
        server: &OauthServer,
        pending: &AccountSignIn,
        answer: SignInAnswer,
    ) -> Result<(), ConnectFault> {
        let owner = owner_name(&AccountOwner::Gateway);
        self.finish(server, &owner, "gateway", pending, answer)
            .await
    }

    /// Finds the issuer of a server and begins a sign-in there.
    pub async fn begin(
        &self,
        server: &OauthServer,
        plan: SignInPlan<'_>,
    ) -> Result<(BegunConnection, AccountSignIn), ConnectFault> {
        let config = &server.config;
        let found = find_server_issuer(&server.url, config.issuer.as_deref()).await?;
        let client = match config.client() {
            Some(client) => client,
            None => self.client(&found, plan).await?,
        };
        let resource = config.resource.as_ref().unwrap_or(&found.resource);
        let mut scopes = match config.scopes.is_empty() {
            true => found.scopes.clone(),
            false => config.scopes.clone(),
        };
        add_scopes(&mut scopes, plan.scopes);
        let offered = &found.metadata.scopes_supported;
        if offered.iter().any(|scope| scope == OFFLINE) && !scopes.iter().any(|it| it == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        let request = SignInRequest {
            client: &client,
            redirect_uri: plan.redirect,
            resource: Some(resource),
            scopes: &scopes,
            nonce: None,
        };
        let begun = begin_sign_in(&found.metadata, request)?;
        let endpoint = TokenEndpoint::new(&found.metadata, client, found.reach);
        let secret = endpoint.client.secret.as_ref();
        let pending = AccountSignIn {
            verifier: begun.verifier.reveal().to_owned(),
            issuer: found.metadata.issuer.clone(),
            names_issuer: found
                .metadata
                .authorization_response_iss_parameter_supported,
            redirect: plan.redirect.to_owned(),
            resource: resource.clone(),
            client_secret: secret.map(|secret| secret.reveal().to_owned()),
            client_id: endpoint.client.id.clone(),
            token_url: endpoint.url.clone(),
            is_secret_posted: endpoint.is_secret_posted,
            is_anywhere: found.reach == NetworkReach::Anywhere,
            revocation_url: found.metadata.revocation_endpoint.clone(),
            server: server.url.clone(),
            scopes,
            browser: [0; 32],
        };
        let begun = BegunConnection {
            url: begun.url,
            state: begun.state,
        };
        Ok((begun, pending))
    }

    /// Returns the gateway as a client of an issuer: by the URL of its document if the issuer accepts that, otherwise registered.
    async fn client(
        &self,
        found: &ServerIssuer,
        plan: SignInPlan<'_>,
    ) -> Result<RegisteredClient, ConnectFault> {
        let metadata = &found.metadata;
        if let Some(document) = plan.document
            && metadata.client_id_metadata_document_supported
            && document.starts_with("https://")
        {
            return Ok(RegisteredClient {
                id: document.to_owned(),
                secret: None,
            });
        }
        let place = ["client", &*metadata.issuer, plan.redirect];
        if let Some(known) = self.registered(&place, plan).await? {
            return Ok(known);
        }
        let _registering = self.registering.lock().await;
        if let Some(known) = self.registered(&place, plan).await? {
            return Ok(known);
        }
        let description = ClientMetadata::new(None, CLIENT_NAME, plan.redirect);
        let client = register_client(metadata, &description, found.reach).await?;
        if plan.is_kept {
            let secret = client.secret.as_ref().map(SecretText::reveal);
            let sealed = self.close(&place, &(&client.id, secret))?;
            self.state
                .set_oauth_client(&metadata.issuer, plan.redirect, Some(&sealed))
                .await?;
        }
        Ok(client)
    }

    /// Returns the stored client for an issuer and a redirect URI.
    async fn registered(
        &self,
        place: &[&str; 3],
        plan: SignInPlan<'_>,
    ) -> Result<Option<RegisteredClient>, ConnectFault> {
        let sealed = self.state.oauth_client(place[1], plan.redirect).await?;
        let sealed = sealed.filter(|_| plan.is_kept);
        let known =
            sealed.and_then(|sealed| self.seal.open::<(String, Option<String>)>(place, &sealed));
        Ok(known.map(|(id, secret)| RegisteredClient {
            id,
            secret: secret.map(SecretText::new),
        }))
    }

    async fn finish(
        &self,
        server: &OauthServer,
        owner: &str,
        label: &str,
        pending: &AccountSignIn,
        answer: SignInAnswer,
    ) -> Result<(), ConnectFault> {
        let code = answer.into_code(&pending.issuer, pending.names_issuer)?;
        let endpoint = TokenEndpoint {
            url: pending.token_url.clone(),
            reach: match pending.is_anywhere {
                true => NetworkReach::Anywhere,
                false => NetworkReach::Public,
            },
            client: RegisteredClient {
                id: pending.client_id.clone(),
                secret: pending.client_secret.as_deref().map(SecretText::new),
            },
            is_secret_posted: pending.is_secret_posted,
        };
        let verifier = SecretText::new(pending.verifier.as_str());
        let resource = Some(&*pending.resource);
        let redeemed = redeem_code(&endpoint, &code, &verifier, &pending.redirect, resource).await;
        if let Err(fault) = &redeemed
            && fault.is_client_unknown()
        {
            // The next sign-in registers another one.
            let (issuer, redirect) = (&pending.issuer, &pending.redirect);
            self.state.set_oauth_client(issuer, redirect, None).await?;
        }
        let tokens = redeemed?;
        let revocation = pending.revocation_url.as_deref();
        let mut sealed = SealedAccount::new(&tokens, &endpoint, revocation, resource);
        sealed.scopes.clone_from(&pending.scopes);
        let address = self.seal.mark(&server.url);
        let subject = format!("{} {label}", server.name);
        self.audit
            .admin(AdminAct::AccountConnect, &subject, None, label, None)
            .map_err(|error| ConnectFault::Internal(error.to_string()))?;
        let now = now_ms();
        let account = AccountRow {
            number: 0,
            upstream: server.name.to_string(),
            owner: owner.to_owned(),
            label: label.to_owned(),
            sealed: self.close(&[&server.name, owner, &address], &sealed)?,
            server: address,
            issuer: pending.issuer.clone(),
            version: 1,
            renewing_until_ms: 0,
            created_ms: now,
            renewed_ms: now,
        };
        let kept = self.state.keep_account(&account).await;
        self.audit
            .note_failure(AdminAct::AccountConnect, &subject, None, label, kept)?;
        self.metrics.account_event(&server.name, "connected");
        Ok(())
    }

    fn close(&self, place: &[&str], value: &impl Serialize) -> Result<Vec<u8>, ConnectFault> {
        let closed = self.seal.close(place, value);
        closed.map_err(|error| ConnectFault::Internal(error.to_string()))
    }
}

/// Adds the scopes that are missing.
fn add_scopes(scopes: &mut Vec<String>, more: &[String]) {
    for scope in more {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
}

/// Returns a text that cannot be guessed.
fn random() -> Result<String, ConnectFault> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ConnectFault::Internal(error.to_string()))?;
    Ok(hex::encode(bytes))
}
