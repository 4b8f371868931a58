//! Reads the claims of a validated token: the caller, and what it may do.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use weir_oauth::SecretText;

use super::{
    fault::TokenFault,
    proof::{KeyThumbprint, bound_key},
};
use crate::{
    config::{EVERY_CONTRACT, IssuerConfig},
    identity::{AccessList, CallerGrant, CatalogueAccess, Rate, TokenHolder},
};

/// The scope that calls of writing tools require.
pub const WRITE_SCOPE: &str = "tools:write";

/// The maximum length of an agent's name, which consists of `A-Za-z0-9_.@:-`.
const NAME_MAX: usize = 64;
/// The maximum length of a subject.
const SUBJECT_MAX: usize = 512;

pub(super) type Claims = Map<String, Value>;

/// The right of one subject of one issuer, by one client.
#[derive(Debug)]
pub(super) struct TokenGrant {
    holder: TokenHolder,
    pub agent: Arc<str>,
    pub tenant: Arc<str>,
    groups: Arc<[Arc<str>]>,
    access: CatalogueAccess,
    may_write: bool,
    expires_ms: i64,
    withdrawn: CancellationToken,
    token: SecretText,
    /// The key that the token is bound to, if any: only its holder may use the token.
    pub bound: Option<KeyThumbprint>,
}

impl TokenGrant {
    /// Reads the claims of a token whose signature and time are valid. `withdrawn` is cancelled when its issuer is no longer
    /// trusted.
    pub(super) fn read(
        token: &str,
        claims: &Claims,
        issuer: &IssuerConfig,
        withdrawn: &CancellationToken,
    ) -> Result<Self, TokenFault> {
        refuse_other_uses(claims)?;
        let bound = bound_key(claims)?;
        let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
        let expires_s = claims.get("exp").and_then(Value::as_f64);
        let expires_s = expires_s.filter(|at| at.is_finite() && *at < 1e12);
        let expires_s = expires_s.ok_or(TokenFault::Claims)?;
        let is_subject = |subject: &&str| !subject.is_empty() && subject.len() <= SUBJECT_MAX;
        let subject = text("sub").filter(is_subject).ok_or(TokenFault::Claims)?;
        let client = text("client_id")
            .or_else(|| text("azp"))
            .unwrap_or_default();
        let named = |claim: &str| {
            let value = find(claims, claim).and_then(Value::as_str);
            let value = value.filter(|value| !value.is_empty());
            value.map(|value| name(&issuer.issuer, value))
        };
        let agent = named(&issuer.agent_claim).ok_or(TokenFault::AgentClaim)?;
        let tenant = match &issuer.tenant_claim {
            Some(claim) => named(claim).ok_or(TokenFault::TenantClaim)?,
            None => agent.clone(),
        };
        let groups = groups(claims, issuer);
        let access = access(claims, issuer);
        let may_write = has(claims, "scope", WRITE_SCOPE) || has(claims, "scp", WRITE_SCOPE);
        let holder = TokenHolder::new(&issuer.issuer, subject, client);
        Ok(Self {
            holder,
            agent,
            tenant,
            groups,
            access,
            may_write,
            expires_ms: (expires_s * 1000.0) as i64,
            withdrawn: withdrawn.clone(),
            token: SecretText::new(token),
            bound,
        })
    }

    /// Returns `true` if the grant is that of this token, to the letter.
    pub(super) fn is_of(&self, token: &str) -> bool {
        self.token.reveal() == token
    }
}

impl CallerGrant for TokenGrant {
    /// A refreshed token, or one with more scopes, continues the sessions of the previous one.
    fn id(&self) -> &str {
        self.holder.name()
    }

    fn access(&self) -> &CatalogueAccess {
        &self.access
    }

    fn view(&self) -> Option<&Arc<str>> {
        None
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn tool_rate(&self, _: &str) -> Option<Rate> {
        None
    }

    fn expires_ms(&self) -> Option<i64> {
        Some(self.expires_ms)
    }

    fn revoked(&self) -> CancellationToken {
        self.withdrawn.clone()
    }

    fn holder(&self) -> Option<&TokenHolder> {
        Some(&self.holder)
    }

    fn groups(&self) -> Arc<[Arc<str>]> {
        self.groups.clone()
    }

    fn may_write(&self) -> bool {
        self.may_write
    }

    fn token(&self) -> Option<&SecretText> {
        Some(&self.token)
    }
}

/// Refuses tokens that are signed by the same keys but are not access tokens.
fn refuse_other_uses(claims: &Claims) -> Result<(), TokenFault> {
    let is = |claim: &str, value: &str| claims.get(claim).is_some_and(|found| found == value);
    let is_of_client = ["nonce", "at_hash", "c_hash"]
        .iter()
        .any(|claim| claims.contains_key(*claim));
    if is_of_client || is("typ", "ID") || is("token_use", "id") {
        return Err(TokenFault::IdToken);
    }
    Ok(())
}

/// Returns the combined access of the grants whose claim is present.
fn access(claims: &Claims, issuer: &IssuerConfig) -> CatalogueAccess {
    let mut list = AccessList::default();
    for grant in &issuer.grants {
        if !has(claims, &grant.claim, &grant.has) {
            continue;
        }
        if grant.contracts.contains(EVERY_CONTRACT) {
            return CatalogueAccess::EVERYTHING;
        }
        list.contracts.extend(grant.contracts.iter().cloned());
        list.tools.extend(grant.tools.iter().cloned());
    }
    CatalogueAccess::to(list)
}

/// Returns the groups that a claim names, as written in policies; the size of a token bounds them.
fn groups(claims: &Claims, issuer: &IssuerConfig) -> Arc<[Arc<str>]> {
    let claim = issuer.groups_claim.as_deref();
    let value = claim.and_then(|claim| find(claims, claim));
    let each = value.into_iter().flat_map(|value| match value {
        Value::Array(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    });
    let names = each.filter_map(Value::as_str);
    let names = names.filter(|group| !group.is_empty());
    names.map(Arc::from).collect()
}

/// Returns `true` if a claim is this text, or a list of it. A scope is a list written as one text.
pub(super) fn has(claims: &Claims, claim: &str, wanted: &str) -> bool {
    let is_list = matches!(claim, "scope" | "scp");
    let is = |value: &Value| match value {
        Value::String(text) if is_list => text.split(' ').any(|word| word == wanted),
        Value::String(text) => text == wanted,
        Value::Bool(flag) => flag.to_string() == wanted,
        Value::Number(number) => number.to_string() == wanted,
        _ => false,
    };
    match find(claims, claim) {
        Some(Value::Array(values)) => values.iter().any(is),
        Some(value) => is(value),
        None => false,
    }
}

/// Finds a claim by its name, or by its path: `realm_access.roles`.
pub(super) fn find<'c>(claims: &'c Claims, claim: &str) -> Option<&'c Value> {
    claims.get(claim).or_else(|| {
        let (first, rest) = claim.split_once('.')?;
        rest.split('.')
            .try_fold(claims.get(first)?, |value, name| value.get(name))
    })
}

/// Returns a name unchanged, or one made from its digest if it has characters that logs and metrics do not accept.
pub fn name(issuer: &str, value: &str) -> Arc<str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.@:-".contains(&byte);
    if value.len() <= NAME_MAX && value.bytes().all(is_plain) {
        return value.into();
    }
    let digest = digest(&[issuer, value]);
    format!("sub_{}", hex::encode(&digest[..8])).into()
}

impl TokenHolder {
    fn new(issuer: &str, subject: &str, client: &str) -> Self {
        let digest = digest(&[issuer, subject, client]);
        Self {
            name: format!("token:{}", hex::encode(&digest[..16])).into(),
            issuer: issuer.into(),
            subject: subject.into(),
            client: (!client.is_empty()).then(|| client.into()),
        }
    }
}

fn digest(parts: &[&str]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    digest.finalize().into()
}

/// Returns the audiences of a token.
pub(super) fn audiences(claims: &Claims) -> BTreeSet<Box<str>> {
    let audience = claims.get("aud");
    let each = audience.into_iter().flat_map(|value| match value {
        Value::Array(values) => values.as_slice(),
        one => std::slice::from_ref(one),
    });
    each.filter_map(|value| value.as_str().map(Into::into))
        .collect()
}
