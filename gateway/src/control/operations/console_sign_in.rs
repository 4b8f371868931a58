//! Signing in to the console by an issuer of OpenID Connect. A sign-in is kept in memory for ten minutes, for the tab that began
//! it; it ends in a link, which begins a session like every link.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_oauth::{
    AuthorizationServerMetadata, NetworkReach, OauthFault, RegisteredClient, SecretText,
    SignInAnswer, SignInRequest, TokenEndpoint, begin_sign_in, find_issuer, redeem_code,
};
use weir_state::{AdminRow, JoinedRoles};

use super::{
    FailureKind, OperationError, OperationResult, admins,
    sessions::{self, SignInLink},
};
use crate::{
    config::AdminOidc,
    control::ControlPlane,
    identity::{IdClaims, IdTokenVerifier, MintedSecret, SecretKind, now_ms},
};

/// The time that a person has to sign in.
const PENDING_MAX_AGE: Duration = Duration::from_secs(600);
/// The maximum number of open sign-ins, over all people.
const PENDING_MAX: usize = 1000;
/// The issuer's metadata is fetched again after this time, and after a failure.
const METADATA_MAX_AGE: Duration = Duration::from_secs(600);
const FAILURE_MAX_AGE: Duration = Duration::from_secs(5);
/// The secret of a tab.
const TAB_CHARS: std::ops::RangeInclusive<usize> = 32..=128;
/// The author of the keys of people who sign in this way. No admin has this name, since names contain no spaces.
const AUTHOR: &str = "oidc sign-in";

/// The provider that signs people in.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignInProvider {
    /// The issuer of OpenID Connect.
    pub issuer: String,
}

/// A sign-in that has begun.
#[derive(Serialize, ToSchema)]
pub(crate) struct StartedSignIn {
    /// The URL to which the page redirects the person.
    pub url: String,
}

/// The open sign-ins, and the issuer's metadata.
#[derive(Default)]
pub(crate) struct ConsoleSignIns {
    /// By the digest of their state.
    pending: parking_lot::Mutex<HashMap<[u8; 32], ConsoleSignIn>>,
    provider: Mutex<Option<KnownProvider>>,
    /// Admin keys of people are made and revoked one at a time.
    making: Mutex<()>,
}

struct ConsoleSignIn {
    began: Instant,
    tab: [u8; 32],
    nonce: String,
    verifier: SecretText,
    redirect_uri: String,
    provider: Arc<OidcProvider>,
}

/// The issuer of one configuration.
struct OidcProvider {
    oidc: AdminOidc,
    metadata: AuthorizationServerMetadata,
    tokens: IdTokenVerifier,
}

struct KnownProvider {
    oidc: AdminOidc,
    asked: Instant,
    found: Result<Arc<OidcProvider>, OauthFault>,
}

/// Returns the provider that signs people in.
pub(crate) fn provider(control: &ControlPlane) -> OperationResult<SignInProvider> {
    let issuer = configured(control)?.issuer;
    Ok(SignInProvider { issuer })
}

/// Begins a sign-in. `origin` is the origin of the page, and `tab` is a secret that the page keeps.
pub(crate) async fn begin(
    control: &ControlPlane,
    sign_ins: &ConsoleSignIns,
    origin: &str,
    tab: &str,
) -> OperationResult<StartedSignIn> {
    if !TAB_CHARS.contains(&tab.len()) {
        return Err(OperationError::invalid("`tab`: 32 to 128 characters"));
    }
    let provider = sign_ins.find_provider(configured(control)?).await?;
    let redirect_uri = format!("{origin}/");
    let nonce = MintedSecret::new(SecretKind::Link)
        .map_err(|_| OperationError::unavailable("no random number could be generated"))?
        .text;
    let client = RegisteredClient {
        id: provider.oidc.client_id.clone(),
        secret: None,
    };
    let request = SignInRequest {
        client: &client,
        redirect_uri: &redirect_uri,
        resource: None,
        scopes: &provider.oidc.scopes,
        nonce: Some(&nonce),
    };
    let begun = begin_sign_in(&provider.metadata, request).map_err(refused)?;
    sign_ins.keep(
        digest(begun.state.reveal()),
        ConsoleSignIn {
            began: Instant::now(),
            tab: digest(tab),
            nonce,
            verifier: begun.verifier,
            redirect_uri,
            provider,
        },
    );
    Ok(StartedSignIn { url: begun.url })
}

/// Ends a sign-in with the query that the browser returned with. The link begins one session.
pub(crate) async fn finish(
    control: &ControlPlane,
    sign_ins: &ConsoleSignIns,
    query: &str,
    tab: &str,
) -> OperationResult<SignInLink> {
    let answer = SignInAnswer::read(query)
        .ok_or_else(|| OperationError::invalid("`query` is not an answer to a sign-in"))?;
    let pending = sign_ins.take(answer.state.reveal(), tab).ok_or_else(|| {
        forbidden("this sign-in is older than ten minutes, was used, or began in another tab: begin again")
    })?;
    let OidcProvider {
        oidc,
        metadata,
        tokens,
    } = &*pending.provider;
    // The configuration may have been changed while the person signed in.
    if configured(control)? != *oidc {
        return Err(forbidden("the configuration has changed: begin again"));
    }
    let names_issuer = metadata.authorization_response_iss_parameter_supported;
    let code = answer
        .into_code(&metadata.issuer, names_issuer)
        .map_err(refused)?;
    let endpoint = TokenEndpoint::new(metadata, client(control, oidc)?, NetworkReach::Anywhere);
    let redeemed = redeem_code(
        &endpoint,
        &code,
        &pending.verifier,
        &pending.redirect_uri,
        None,
    );
    let identity = redeemed.await.map_err(refused)?.identity;
    let identity = identity.ok_or_else(|| forbidden("the issuer gave no ID token"))?;
    let validated = tokens.validate(identity.reveal(), &pending.nonce).await;
    let claims = validated.map_err(|fault| {
        tracing::warn!(%fault, issuer = oidc.issuer, "an ID token is not valid");
        forbidden(&format!("the ID token is not valid: {fault}"))
    })?;
    let (name, roles) = read_person(&claims, oidc)?;
    let admin = find_or_make_admin(control, sign_ins, &name, roles).await?;
    let admin = admin.ok_or_else(|| {
        let claim = &oidc.role_claim;
        forbidden(&format!(
            "the claim `{claim}` of this person gives no role here"
        ))
    })?;
    sessions::make_link(control.state(), &admin).await
}

impl ConsoleSignIns {
    fn keep(&self, state: [u8; 32], sign_in: ConsoleSignIn) {
        let mut pending = self.pending.lock();
        pending.retain(|_, pending| pending.began.elapsed() < PENDING_MAX_AGE);
        // The oldest is removed, so that abandoned sign-ins do not block others.
        if pending.len() >= PENDING_MAX {
            let oldest = pending.iter().min_by_key(|(_, pending)| pending.began);
            let oldest = oldest.map(|(state, _)| *state);
            oldest.map(|state| pending.remove(&state));
        }
        pending.insert(state, sign_in);
    }

    /// Takes a sign-in if it belongs to the tab; it cannot be used again.
    fn take(&self, state: &str, tab: &str) -> Option<ConsoleSignIn> {
        let mut pending = self.pending.lock();
        let sign_in = pending.remove(&digest(state))?;
        (sign_in.tab == digest(tab) && sign_in.began.elapsed() < PENDING_MAX_AGE).then_some(sign_in)
    }

    /// Finds the issuer's metadata; only one request at a time fetches it.
    async fn find_provider(&self, oidc: AdminOidc) -> OperationResult<Arc<OidcProvider>> {
        let mut known = self.provider.lock().await;
        let age_max = |known: &KnownProvider| match known.found {
            Ok(_) => METADATA_MAX_AGE,
            Err(_) => FAILURE_MAX_AGE,
        };
        let current = known
            .as_ref()
            .filter(|known| known.oidc == oidc && known.asked.elapsed() < age_max(known));
        if let Some(current) = current {
            return current.found.clone().map_err(refused);
        }
        let metadata = find_issuer(&oidc.issuer, NetworkReach::Anywhere).await;
        let found = metadata.map(|metadata| {
            Arc::new(OidcProvider {
                tokens: IdTokenVerifier::new(&oidc.issuer, &oidc.client_id),
                oidc: oidc.clone(),
                metadata,
            })
        });
        *known = Some(KnownProvider {
            oidc,
            asked: Instant::now(),
            found: found.clone(),
        });
        found.map_err(refused)
    }
}

fn configured(control: &ControlPlane) -> OperationResult<AdminOidc> {
    let oidc = control.gateway().config().admin.oidc.clone();
    oidc.ok_or_else(|| {
        let detail =
            "no issuer signs people in: sign in with an admin key, or configure [admin.oidc]";
        OperationError::new(FailureKind::NotFound, detail)
    })
}

fn client(control: &ControlPlane, oidc: &AdminOidc) -> OperationResult<RegisteredClient> {
    let base = control.gateway().config().base.clone();
    let resolve = |secret: &String| weir_connections::config::resolve(secret, &base);
    let secret = oidc.client_secret.as_ref().map(resolve).transpose();
    let secret = secret.map_err(|what| {
        tracing::error!("admin.oidc.client_secret: {what}");
        OperationError::unavailable("the secret of the client cannot be read: the log says why")
    })?;
    Ok(RegisteredClient {
        id: oidc.client_id.clone(),
        secret: secret.map(SecretText::new),
    })
}

/// Reads who signed in, and the combined roles that the claim gives.
fn read_person(
    claims: &IdClaims,
    oidc: &AdminOidc,
) -> OperationResult<(String, Option<JoinedRoles>)> {
    let name = claims
        .name(&oidc.name_claim)
        .ok_or_else(|| forbidden(&format!("the ID token has no claim `{}`", oidc.name_claim)))?;
    let given = oidc
        .roles
        .iter()
        .filter(|(value, _)| claims.has(&oidc.role_claim, value));
    let roles = JoinedRoles::join(given.map(|(_, role)| *role));
    Ok((format!("oidc:{name}"), roles))
}

/// Finds the admin key of a person, whose secret is never given out. A key with other roles is revoked, and its sessions end; a
/// person without a role has no key.
async fn find_or_make_admin(
    control: &ControlPlane,
    sign_ins: &ConsoleSignIns,
    name: &str,
    roles: Option<JoinedRoles>,
) -> OperationResult<Option<String>> {
    let _making = sign_ins.making.lock().await;
    let admins = control.state().admins().await?;
    let is_own =
        |row: &&AdminRow| row.name == name && row.created_by == AUTHOR && row.revoked_ms.is_none();
    let audit = control.gateway().audit();
    let mut found = None;
    for row in admins.iter().filter(is_own) {
        if Some(row.roles()) == roles && found.is_none() {
            found = Some(row.id.clone());
            continue;
        }
        audit.admin(AdminAct::KeyRevoke, &row.id, None, AUTHOR, None)?;
        let revoked = control.state().revoke_admin(&row.id, now_ms()).await;
        audit.note_failure(AdminAct::KeyRevoke, &row.id, None, AUTHOR, revoked)?;
    }
    let (None, Some(roles)) = (&found, roles) else {
        return Ok(found);
    };
    admins::check_role(control, roles.role).await?;
    let minted = MintedSecret::new(SecretKind::Admin)
        .map_err(|_| OperationError::unavailable("no random number could be generated"))?;
    let row = AdminRow {
        id: minted.id,
        secret_hash: minted.hash.to_vec(),
        name: name.to_owned(),
        role: roles.role,
        approves: roles.approves,
        created_ms: now_ms(),
        created_by: AUTHOR.to_owned(),
        revoked_ms: None,
    };
    let detail = serde_json::Map::from_iter([
        ("admin".to_owned(), row.name.clone().into()),
        ("role".to_owned(), roles.to_string().into()),
    ]);
    audit.admin(AdminAct::KeyCreate, &row.id, None, AUTHOR, Some(&detail))?;
    let added = control.state().add_admin(&row).await;
    audit.note_failure(AdminAct::KeyCreate, &row.id, None, AUTHOR, added)?;
    Ok(Some(row.id))
}

fn refused(fault: OauthFault) -> OperationError {
    match fault {
        OauthFault::Refused { .. } => forbidden(&fault.to_string()),
        OauthFault::Unreachable(_) | OauthFault::Unusable(_) => {
            OperationError::unavailable(fault.to_string())
        }
    }
}

fn forbidden(detail: &str) -> OperationError {
    OperationError::new(FailureKind::Forbidden, detail)
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TAB: &str = "0123456789abcdef0123456789abcdef";

    fn sign_in(began: Instant) -> ConsoleSignIn {
        let metadata =
            json!({"issuer": "https://id.example", "token_endpoint": "https://id.example/token"});
        let oidc = json!({
            "issuer": "https://id.example", "client_id": "weir", "role_claim": "groups", "roles": {"staff": "viewer"},
        });
        ConsoleSignIn {
            began,
            tab: digest(TAB),
            nonce: "n".to_owned(),
            verifier: SecretText::new("v"),
            redirect_uri: "http://127.0.0.1:8485/".to_owned(),
            provider: Arc::new(OidcProvider {
                oidc: serde_json::from_value(oidc).expect("a configuration"),
                metadata: serde_json::from_value(metadata).expect("metadata"),
                tokens: IdTokenVerifier::new("https://id.example", "weir"),
            }),
        }
    }

    #[test]
    fn a_sign_in_is_of_use_once_for_ten_minutes_in_its_tab() {
        let now = Instant::now();
        let old = now.checked_sub(PENDING_MAX_AGE).expect("a running clock");
        for (tab, began, is_taken) in [(TAB, now, true), ("other", now, false), (TAB, old, false)] {
            let sign_ins = ConsoleSignIns::default();
            sign_ins.keep(digest("s"), sign_in(began));
            assert_eq!(sign_ins.take("s", tab).is_some(), is_taken, "{tab}");
            assert!(sign_ins.take("s", TAB).is_none(), "it was used");
        }
    }

    #[test]
    fn the_oldest_sign_in_makes_room() {
        let sign_ins = ConsoleSignIns::default();
        let now = Instant::now();
        let old = now.checked_sub(PENDING_MAX_AGE).expect("a running clock");
        let keep = |at: usize, began| sign_ins.keep(digest(&at.to_string()), sign_in(began));
        let earlier = now.checked_sub(Duration::from_secs(9));
        let earlier = earlier.expect("a running clock");
        for at in 0..PENDING_MAX {
            keep(at, if at == 7 { earlier } else { now });
        }
        keep(PENDING_MAX, Instant::now());
        assert_eq!(sign_ins.pending.lock().len(), PENDING_MAX);
        assert!(sign_ins.take("7", TAB).is_none(), "the oldest is gone");
        for at in [0, 6, 8, PENDING_MAX - 1, PENDING_MAX] {
            assert!(sign_ins.take(&at.to_string(), TAB).is_some(), "{at}");
        }
        for pending in sign_ins.pending.lock().values_mut() {
            pending.began = old;
        }
        keep(PENDING_MAX, now);
        assert_eq!(sign_ins.pending.lock().len(), 1);
    }
}
