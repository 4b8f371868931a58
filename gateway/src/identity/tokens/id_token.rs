//! ID tokens of OpenID Connect, by which a person signs in. They identify the person, but give access to no tool.

use std::{path::Path, sync::Arc};

use jsonwebtoken::decode_header;
use serde_json::Value;

use super::{
    TOKEN_MAX_BYTES,
    fault::TokenFault,
    grant::{self, Claims, audiences},
    jwks::IssuerKeys,
    signature::{self, ACCEPTED},
    verify,
};
use crate::config::IssuerConfig;

/// Validates the ID tokens of one issuer for one client.
pub struct IdTokenVerifier {
    issuer: String,
    client: String,
    keys: Arc<IssuerKeys>,
}

/// The claims of a validated ID token.
#[derive(Debug)]
pub struct IdClaims {
    issuer: String,
    claims: Claims,
}

impl IdTokenVerifier {
    /// `issuer` is written like `iss` in its tokens; its metadata has the URL of the keys.
    pub fn new(issuer: &str, client: &str) -> Self {
        signature::install();
        let config = IssuerConfig::of_metadata(issuer);
        Self {
            issuer: issuer.to_owned(),
            client: client.to_owned(),
            keys: IssuerKeys::new(&config, Path::new("")),
        }
    }

    /// Validates the token from the sign-in with this nonce.
    pub async fn validate(&self, token: &str, nonce: &str) -> Result<IdClaims, TokenFault> {
        if token.len() > TOKEN_MAX_BYTES {
            return Err(TokenFault::Malformed);
        }
        let header = decode_header(token).map_err(|_| TokenFault::Malformed)?;
        let kind = header.typ.as_deref();
        if kind.is_some_and(|kind| !kind.eq_ignore_ascii_case("jwt")) {
            return Err(TokenFault::Type);
        }
        if header.crit.is_some() {
            return Err(TokenFault::Critical);
        }
        if !ACCEPTED.contains(&header.alg) {
            return Err(TokenFault::Algorithm);
        }
        let key = self.keys.find(header.kid.as_deref(), header.alg).await?;
        let claims = verify(token, header.alg, &key)?;
        self.check(&claims, nonce)?;
        Ok(IdClaims {
            issuer: self.issuer.clone(),
            claims,
        })
    }

    fn check(&self, claims: &Claims, nonce: &str) -> Result<(), TokenFault> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(&self.issuer) {
            return Err(TokenFault::Issuer);
        }
        let audiences = audiences(claims);
        let party = text("azp");
        // A token for several clients names the one that requested it (OpenID Connect Core 3.1.3.7).
        let is_own = audiences.contains(&*self.client)
            && party.map_or(audiences.len() == 1, |party| party == self.client);
        if !is_own {
            return Err(TokenFault::Audience);
        }
        if text("nonce") != Some(nonce) {
            return Err(TokenFault::Claims);
        }
        Ok(())
    }
}

impl IdClaims {
    /// Returns the person's name from a claim, or one made from its digest if the claim has characters that logs do not accept.
    pub fn name(&self, claim: &str) -> Option<Arc<str>> {
        let value = grant::find(&self.claims, claim)?.as_str()?;
        (!value.is_empty()).then(|| grant::name(&self.issuer, value))
    }

    /// Returns `true` if a claim is this text, or a list of it.
    pub fn has(&self, claim: &str, wanted: &str) -> bool {
        grant::has(&self.claims, claim, wanted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verifier() -> IdTokenVerifier {
        IdTokenVerifier::new("https://id.example", "weir")
    }

    #[test]
    fn a_token_is_for_this_client_and_this_sign_in() {
        let own = json!({"iss": "https://id.example", "sub": "ann", "aud": "weir", "nonce": "n"});
        let check = |change: Value| {
            let mut claims = own.as_object().expect("an object").clone();
            claims.extend(change.as_object().expect("an object").clone());
            claims.retain(|_, value| !value.is_null());
            verifier().check(&claims, "n")
        };
        for change in [
            json!({}),
            json!({"aud": ["weir"]}),
            json!({"aud": ["weir", "b"], "azp": "weir"}),
        ] {
            assert_eq!(check(change.clone()), Ok(()), "{change}");
        }
        for (change, fault) in [
            (json!({"iss": "https://id.example/"}), TokenFault::Issuer),
            (json!({"aud": "other"}), TokenFault::Audience),
            (json!({"aud": ["weir", "other"]}), TokenFault::Audience),
            (json!({"azp": "other"}), TokenFault::Audience),
            (json!({"nonce": "m"}), TokenFault::Claims),
            (json!({"nonce": null}), TokenFault::Claims),
        ] {
            assert_eq!(check(change.clone()), Err(fault), "{change}");
        }
    }
}
