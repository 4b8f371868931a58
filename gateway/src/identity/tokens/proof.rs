//! Proofs that a request comes from the holder of the key that its token is bound to (DPoP, RFC 9449), so that others cannot use
//! the token.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, Validation, decode, errors::ErrorKind};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{fault::TokenFault, jwks::VerifyingKey, seen_proofs::SeenProofs, signature::ACCEPTED};

/// The largest difference between the time of a proof and now. Clocks differ.
pub(super) const WINDOW_S: i64 = 60;
/// The maximum size of a proof; a longer one is not read. An RSA key with 8,192 bits takes 2 KiB.
const PROOF_MAX_BYTES: usize = 8 << 10;
const TYPE: &str = "dpop+jwt";
/// The private members of a key, and the member of a shared secret.
const PRIVATE: [&str; 8] = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/// The digest of a public key (RFC 7638), as in `cnf.jkt` of a token.
pub(super) type KeyThumbprint = [u8; 32];

/// A token as a request presents it.
#[derive(Clone, Copy)]
pub struct PresentedToken<'a> {
    pub text: &'a str,
    /// The proof that the request comes from the holder of the token's key. `None`: it came as a bearer token.
    pub proof: Option<RequestProof<'a>>,
}

/// The proof of a request, and its expected subject.
#[derive(Clone, Copy)]
pub struct RequestProof<'a> {
    /// The header `DPoP`; `None` if there is none, or more than one.
    pub text: Option<&'a str>,
    pub method: &'a str,
    /// The path below the URL with which all endpoints begin.
    pub path: &'a str,
}

#[derive(Deserialize)]
struct ProofHeader {
    typ: String,
    alg: String,
    jwk: Map<String, Value>,
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct ProofClaims {
    jti: String,
    htm: String,
    htu: String,
    iat: f64,
    ath: String,
}

impl<'a> PresentedToken<'a> {
    /// Presents a token without proof of possession.
    pub fn bearer(text: &'a str) -> Self {
        Self { text, proof: None }
    }
}

/// Reads which key a token is bound to; `None` for a bearer token. A binding of another kind is refused, since its proof is not
/// checked here.
pub(super) fn bound_key(claims: &Map<String, Value>) -> Result<Option<KeyThumbprint>, TokenFault> {
    let Some(confirmation) = claims.get("cnf") else {
        return Ok(None);
    };
    let members = confirmation.as_object().filter(|all| all.len() == 1);
    let thumbprint = members.and_then(|all| all.get("jkt")?.as_str());
    let bytes = thumbprint.and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let thumbprint = bytes.and_then(|bytes| bytes.try_into().ok());
    thumbprint.map(Some).ok_or(TokenFault::OtherBinding)
}

/// Checks the proof of a request with a token that is bound to this key. A proof is valid once.
pub(super) fn check(
    proof: &RequestProof<'_>,
    token: &str,
    bound: &KeyThumbprint,
    base: &str,
    seen: &SeenProofs,
    now_s: i64,
) -> Result<(), TokenFault> {
    let text = proof.text.ok_or(TokenFault::ProofMissing)?;
    if text.len() > PROOF_MAX_BYTES {
        return Err(TokenFault::ProofMalformed);
    }
    let header = read_header(text)?;
    let algorithm = header.alg.parse().ok();
    let algorithm = algorithm.filter(|algorithm| ACCEPTED.contains(algorithm));
    let algorithm = algorithm.ok_or(TokenFault::ProofAlgorithm)?;
    if PRIVATE
        .iter()
        .any(|member| header.jwk.contains_key(*member))
    {
        return Err(TokenFault::ProofKey);
    }
    if thumbprint(&header.jwk) != Some(*bound) {
        return Err(TokenFault::ProofKey);
    }
    let claims = verify(text, algorithm, header.jwk)?;
    if claims.htm != proof.method {
        return Err(TokenFault::ProofMethod);
    }
    if !is_same_place(&claims.htu, &format!("{base}{}", proof.path)) {
        return Err(TokenFault::ProofUrl);
    }
    let made_s = claims.iat.floor() as i64;
    if !claims.iat.is_finite() || (now_s.saturating_sub(made_s)).abs() > WINDOW_S {
        return Err(TokenFault::ProofTime);
    }
    if claims.ath != URL_SAFE_NO_PAD.encode(Sha256::digest(token)) {
        return Err(TokenFault::ProofToken);
    }
    if claims.jti.is_empty() {
        return Err(TokenFault::ProofMalformed);
    }
    seen.take(bound, &claims.jti, made_s, now_s)
}

fn read_header(proof: &str) -> Result<ProofHeader, TokenFault> {
    let header = proof.split('.').next().unwrap_or_default();
    let header = URL_SAFE_NO_PAD.decode(header).ok();
    let header: Option<ProofHeader> = header.and_then(|text| serde_json::from_slice(&text).ok());
    let header = header.ok_or(TokenFault::ProofMalformed)?;
    if header.typ != TYPE {
        return Err(TokenFault::ProofType);
    }
    match header.crit {
        Some(_) => Err(TokenFault::ProofMalformed),
        None => Ok(header),
    }
}

/// Verifies the signature with the key that the proof carries, if the algorithm fits the type of that key.
fn verify(
    proof: &str,
    algorithm: Algorithm,
    key: Map<String, Value>,
) -> Result<ProofClaims, TokenFault> {
    let key = VerifyingKey::read(Value::Object(key)).ok_or(TokenFault::ProofKey)?;
    let key = key.used_with(algorithm).ok_or(TokenFault::ProofAlgorithm)?;
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false; // a proof has the time it was made
    validation.validate_aud = false;
    let data = decode::<ProofClaims>(proof, &key, &validation);
    let data = data.map_err(|error| match error.kind() {
        ErrorKind::InvalidSignature => TokenFault::ProofSignature,
        _ => TokenFault::ProofMalformed,
    })?;
    Ok(data.claims)
}

/// Returns the digest of a public key: of its required members, in the order of their names.
fn thumbprint(key: &Map<String, Value>) -> Option<KeyThumbprint> {
    let members: &[&str] = match key.get("kty")?.as_str()? {
        "EC" => &["crv", "kty", "x", "y"],
        "OKP" => &["crv", "kty", "x"],
        "RSA" => &["e", "kty", "n"],
        _ => return None,
    };
    let mut named = Vec::new();
    for member in members {
        let value = Value::from(key.get(*member)?.as_str()?);
        named.push(format!("\"{member}\":{value}"));
    }
    Some(Sha256::digest(format!("{{{}}}", named.join(","))).into())
}

/// Compares two URLs without query and fragment.
fn is_same_place(named: &str, asked: &str) -> bool {
    let read = |text: &str| {
        let mut url = Url::parse(text).ok()?;
        url.set_query(None);
        url.set_fragment(None);
        Some(url)
    };
    read(named).is_some_and(|named| Some(named) == read(asked))
}

#[cfg(test)]
mod tests;
