//! Access tokens (JWTs) of other issuers, as a second source of grants besides keys. A token is validated once and then found by
//! its digest until it expires.

mod fault;
mod fetch;
mod grant;
mod id_token;
mod jwks;
mod proof;
mod seen_proofs;
mod signature;

use std::{collections::BTreeSet, path::Path, sync::Arc};

use jsonwebtoken::{
    Algorithm, DecodingKey, Header, Validation, dangerous::insecure_decode_claims, decode,
    decode_header, errors::ErrorKind,
};
use quick_cache::sync::Cache;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use self::{
    fault::FaultLog,
    grant::{Claims, TokenGrant, audiences},
    jwks::{IssuerKeys, KeyFileChange},
    seen_proofs::SeenProofs,
    signature::ACCEPTED,
};
pub use self::{
    fault::TokenFault,
    grant::{WRITE_SCOPE, name as holder_name},
    id_token::{IdClaims, IdTokenVerifier},
    proof::{PresentedToken, RequestProof},
};
use super::{AuthenticationError, CallerIdentity, ClaimedHolder, RefusedCaller, now_ms};
use crate::config::{IdentityConfig, IssuerConfig};

/// The most validated tokens that are kept.
const CACHED_MAX: usize = 10_000;
/// The length of a token's end whose digest finds it, which is what one block of SHA-256 holds. This is a part of the signature,
/// which only holders of the token know; the rest is compared directly.
const END_BYTES: usize = 55;
/// The maximum size of a token; a longer one is not read.
const TOKEN_MAX_BYTES: usize = 16 << 10;
/// The allowed difference between clocks.
const LEEWAY_S: u64 = 60;

/// The endpoint for which a token must be issued.
#[derive(Clone, Debug)]
pub struct TokenResource {
    /// The URL with which all endpoints begin, without a trailing slash.
    pub base: String,
    /// The path of the endpoint: `/mcp`, `/mcp/desk`, `/mcp/view/shop`.
    pub path: String,
}

/// The person to whom a token was issued, and its issuer.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenHolder {
    name: Box<str>,
    pub issuer: Arc<str>,
    pub subject: Arc<str>,
    pub client: Option<Arc<str>>,
}

/// Validates tokens of the configured issuers.
pub struct TokenVerifier {
    issuers: Vec<Arc<TrustedIssuer>>,
    cached: Cache<[u8; 32], Arc<CachedToken>>,
    faults: FaultLog,
    /// Proofs of tokens that are bound to a key. A new configuration keeps them.
    proofs: Arc<SeenProofs>,
    /// Whether a token that is not bound to a key is refused.
    is_binding_needed: bool,
}

struct TrustedIssuer {
    config: IssuerConfig,
    keys: Arc<IssuerKeys>,
    /// Cancelled when the configuration replaces or removes the issuer.
    withdrawn: CancellationToken,
}

/// A token whose signature and claims are valid. Its time and its audience are checked at every request.
struct CachedToken {
    grant: Arc<TokenGrant>,
    issuer: Arc<TrustedIssuer>,
    audiences: BTreeSet<Box<str>>,
    /// Whether the configuration accepts one of the audiences at every endpoint.
    is_for_all: bool,
    valid_until_ms: i64,
}

#[derive(Deserialize)]
struct IssuerClaim {
    iss: String,
}

impl TokenHolder {
    /// Returns a name that is unique among all holders of tokens and all agents with keys.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl TokenResource {
    /// Returns the URL of the endpoint, as used by clients and issuers.
    pub fn url(&self) -> String {
        format!("{}{}", self.base, self.path)
    }

    /// A token for `/mcp` is valid at every endpoint, any other only at its own.
    fn is_named(&self, audience: &str) -> bool {
        let path = audience.strip_prefix(&*self.base);
        path.is_some_and(|path| path == "/mcp" || path == self.path)
    }
}

impl TokenVerifier {
    /// Makes a verifier from a configuration; `None` if no issuer is trusted. Issuers that did not change keep their keys, unless
    /// the keys are in a file that did.
    pub(super) fn renewed(
        before: Option<&Self>,
        identity: &IdentityConfig,
        base: &Path,
    ) -> Option<Arc<Self>> {
        let issuers = &identity.issuers;
        let known = before.map_or(&[][..], |before| &before.issuers);
        for issuer in known {
            if !issuers.contains(&issuer.config) {
                issuer.withdrawn.cancel();
            }
        }
        if issuers.is_empty() {
            return None;
        }
        signature::install();
        let issuers = issuers.iter().map(|config| {
            let kept = known.iter().find(|issuer| issuer.config == *config);
            let withdrawn = match kept.map(|issuer| (issuer, issuer.keys.file_change())) {
                Some((issuer, KeyFileChange::Unchanged)) => return issuer.clone(),
                Some((issuer, KeyFileChange::Added)) => issuer.withdrawn.clone(),
                Some((issuer, KeyFileChange::Removed)) => {
                    issuer.withdrawn.cancel();
                    CancellationToken::new()
                }
                None => CancellationToken::new(),
            };
            Arc::new(TrustedIssuer {
                keys: IssuerKeys::new(config, base),
                config: config.clone(),
                withdrawn,
            })
        });
        Some(Arc::new(Self {
            issuers: issuers.collect(),
            cached: Cache::new(CACHED_MAX),
            faults: FaultLog::default(),
            proofs: before.map_or_else(Arc::default, |before| before.proofs.clone()),
            is_binding_needed: identity.dpop_bound_access_tokens_required,
        }))
    }

    /// Returns the URLs of the issuers.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(|issuer| &*issuer.config.issuer)
    }

    /// Returns `true` if tokens must be bound to a key.
    pub fn is_binding_needed(&self) -> bool {
        self.is_binding_needed
    }

    /// Resolves an already validated token; `None` for any other. `resource` is called only if the token is not for every
    /// endpoint.
    pub fn resolve_cached(
        &self,
        token: PresentedToken<'_>,
        resource: impl FnOnce() -> TokenResource,
    ) -> Option<Result<CallerIdentity, RefusedCaller>> {
        let cached = self.cached.get(&end_digest(token.text))?;
        if !cached.grant.is_of(token.text) {
            return None;
        }
        let is_resource_needed = !cached.is_for_all || token.proof.is_some();
        let resource = is_resource_needed.then(resource);
        let admitted = self.admit(&cached, token, resource.as_ref());
        Some(self.noted(admitted, token.text, Some(&cached.issuer.config.issuer)))
    }

    /// Validates a token. It may wait for the keys of its issuer.
    pub async fn resolve(
        &self,
        token: PresentedToken<'_>,
        resource: &TokenResource,
    ) -> Result<CallerIdentity, RefusedCaller> {
        let issuer = self.issuer(token.text);
        let validated = match &issuer {
            Ok((header, issuer)) => validate(token.text, header, issuer).await,
            Err(fault) => Err(*fault),
        };
        let admitted = validated.and_then(|cached| {
            let cached = Arc::new(cached);
            self.cached.insert(end_digest(token.text), cached.clone());
            self.admit(&cached, token, Some(resource))
        });
        let issuer = issuer.as_ref().ok();
        let issuer = issuer.map(|(_, issuer)| &*issuer.config.issuer);
        self.noted(admitted, token.text, issuer)
    }

    /// Reads what may be read before the signature is verified: the header, and the issuer whose key must match.
    fn issuer(&self, token: &str) -> Result<(Header, Arc<TrustedIssuer>), TokenFault> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(TokenFault::Malformed);
        }
        let header = decode_header(token).map_err(|error| match error.kind() {
            // An algorithm that the library does not have, such as `none`.
            ErrorKind::Json(_) if names_algorithm(token) => TokenFault::Algorithm,
            _ => TokenFault::Malformed,
        })?;
        let kind = header.typ.as_deref().unwrap_or_default();
        let kind = kind.to_ascii_lowercase();
        if !matches!(kind.as_str(), "at+jwt" | "application/at+jwt" | "jwt") {
            return Err(TokenFault::Type);
        }
        if header.crit.is_some() {
            return Err(TokenFault::Critical);
        }
        if !ACCEPTED.contains(&header.alg) {
            return Err(TokenFault::Algorithm);
        }
        let claim: IssuerClaim =
            insecure_decode_claims(token).map_err(|_| TokenFault::Malformed)?;
        let mut issuers = self.issuers.iter();
        let issuer = issuers.find(|issuer| issuer.config.issuer == claim.iss);
        Ok((header, issuer.ok_or(TokenFault::Issuer)?.clone()))
    }

    /// Admits the holder of a valid token, if it is for this endpoint and, if bound, has a proof. The endpoint may be left out
    /// for a token that is for all endpoints and comes without a proof.
    fn admit(
        &self,
        cached: &CachedToken,
        token: PresentedToken<'_>,
        resource: Option<&TokenResource>,
    ) -> Result<CallerIdentity, TokenFault> {
        cached.check(resource)?;
        match (&cached.grant.bound, &token.proof) {
            (None, None) if self.is_binding_needed => return Err(TokenFault::BindingNeeded),
            (None, None) => {}
            (None, Some(_)) => return Err(TokenFault::Unbound),
            (Some(_), None) => return Err(TokenFault::Bound),
            (Some(key), Some(proof)) => {
                let (seen, now_s) = (&self.proofs, now_ms() / 1000);
                let base = &resource.ok_or(TokenFault::Audience)?.base;
                proof::check(proof, token.text, key, base, seen, now_s)?;
            }
        }
        Ok(CallerIdentity {
            agent: cached.grant.agent.clone(),
            tenant: cached.grant.tenant.clone(),
            grant: Some(cached.grant.clone()),
        })
    }

    fn noted(
        &self,
        admitted: Result<CallerIdentity, TokenFault>,
        token: &str,
        issuer: Option<&str>,
    ) -> Result<CallerIdentity, RefusedCaller> {
        admitted.map_err(|fault| {
            self.faults.note(fault, issuer, now_ms());
            RefusedCaller {
                refused: AuthenticationError::Token(fault),
                holder: claimed_holder(token).map(Box::new),
            }
        })
    }
}

impl CachedToken {
    /// Checks the time and the audience.
    fn check(&self, resource: Option<&TokenResource>) -> Result<(), TokenFault> {
        if now_ms() > self.valid_until_ms {
            return Err(TokenFault::Expired);
        }
        let is_named = |resource: &TokenResource| {
            let mut audiences = self.audiences.iter();
            audiences.any(|audience| resource.is_named(audience))
        };
        match self.is_for_all || resource.is_some_and(is_named) {
            true => Ok(()),
            false => Err(TokenFault::Audience),
        }
    }
}

async fn validate(
    token: &str,
    header: &Header,
    issuer: &Arc<TrustedIssuer>,
) -> Result<CachedToken, TokenFault> {
    let key = issuer.keys.find(header.kid.as_deref(), header.alg).await?;
    let claims = verify(token, header.alg, &key)?;
    if claims.get("iss").and_then(Value::as_str) != Some(&*issuer.config.issuer) {
        return Err(TokenFault::Issuer);
    }
    let grant = TokenGrant::read(token, &claims, &issuer.config, &issuer.withdrawn)?;
    let expires_ms = super::CallerGrant::expires_ms(&grant).unwrap_or_default();
    let audiences = audiences(&claims);
    let mut everywhere = issuer.config.audiences.iter();
    Ok(CachedToken {
        is_for_all: everywhere.any(|extra| audiences.contains(&**extra)),
        audiences,
        valid_until_ms: expires_ms + LEEWAY_S as i64 * 1000,
        grant: Arc::new(grant),
        issuer: issuer.clone(),
    })
}

/// Verifies the signature and the times.
fn verify(token: &str, algorithm: Algorithm, key: &DecodingKey) -> Result<Claims, TokenFault> {
    let mut validation = Validation::new(algorithm);
    validation.leeway = LEEWAY_S;
    validation.validate_nbf = true;
    validation.validate_aud = false; // an audience is one of an endpoint: it is looked at with every request
    validation.set_required_spec_claims(&["exp", "iss", "sub", "aud"]);
    let data = decode::<Claims>(token, key, &validation).map_err(|error| match error.kind() {
        ErrorKind::InvalidSignature => TokenFault::Signature,
        ErrorKind::ExpiredSignature => TokenFault::Expired,
        ErrorKind::ImmatureSignature => TokenFault::NotYet,
        ErrorKind::InvalidAlgorithm => TokenFault::Algorithm,
        ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => TokenFault::Claims,
        _ => TokenFault::Malformed,
    })?;
    Ok(data.claims)
}

/// Reads the holder that a refused token names. It is not verified here.
fn claimed_holder(token: &str) -> Option<ClaimedHolder> {
    if token.len() > TOKEN_MAX_BYTES {
        return None;
    }
    let claims: Claims = insecure_decode_claims(token).ok()?;
    let text = |claim: &str| claims.get(claim).and_then(Value::as_str).map(Box::from);
    Some(ClaimedHolder {
        issuer: text("iss"),
        subject: text("sub"),
        client: text("client_id").or_else(|| text("azp")),
    })
}

/// Returns `true` if the header is JSON that names an algorithm as a text.
fn names_algorithm(token: &str) -> bool {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let header = token.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).unwrap_or_default();
    let header: Value = serde_json::from_slice(&header).unwrap_or_default();
    header["alg"].is_string()
}

fn end_digest(token: &str) -> [u8; 32] {
    let end = token.len().saturating_sub(END_BYTES);
    Sha256::digest(&token.as_bytes()[end..]).into()
}

#[cfg(test)]
mod tests;
