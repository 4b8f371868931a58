//! Proofs that are accepted, and those of someone who has the token without its key, or the proof of another request.

use serde_json::{Value, json};

use super::{super::tests::*, *};
use crate::{
    config::IdentityConfig,
    identity::{AuthenticationError, CallerIdentity, IdentityRegistry, now_ms},
};

const PATH: &str = "/mcp/desk";

type Change = fn(&mut Value, &mut Value);

/// Changes to an otherwise valid proof.
const CORPUS: [(&str, Change, TokenFault); 26] = [
    (
        "alg none",
        |h, _| h["alg"] = "none".into(),
        TokenFault::ProofAlgorithm,
    ),
    (
        "a shared secret",
        |h, _| h["alg"] = "HS256".into(),
        TokenFault::ProofAlgorithm,
    ),
    (
        "an algorithm of another key",
        |h, _| h["alg"] = "ES256".into(),
        TokenFault::ProofAlgorithm,
    ),
    (
        "RS512",
        |h, _| h["alg"] = "RS512".into(),
        TokenFault::ProofAlgorithm,
    ),
    (
        "typ JWT",
        |h, _| h["typ"] = "JWT".into(),
        TokenFault::ProofType,
    ),
    (
        "typ at+jwt",
        |h, _| h["typ"] = "at+jwt".into(),
        TokenFault::ProofType,
    ),
    (
        "no typ",
        |h, _| drop(h.as_object_mut().unwrap().remove("typ")),
        TokenFault::ProofMalformed,
    ),
    (
        "no key",
        |h, _| drop(h.as_object_mut().unwrap().remove("jwk")),
        TokenFault::ProofMalformed,
    ),
    (
        "critical headers",
        |h, _| h["crit"] = json!(["exp"]),
        TokenFault::ProofMalformed,
    ),
    (
        "a private key",
        |h, _| h["jwk"]["d"] = "AA".into(),
        TokenFault::ProofKey,
    ),
    (
        "a shared key",
        |h, _| h["jwk"] = json!({ "kty": "oct", "k": "AA" }),
        TokenFault::ProofKey,
    ),
    (
        "another key",
        |h, _| h["jwk"]["x"] = URL_SAFE_NO_PAD.encode([7; 32]).into(),
        TokenFault::ProofKey,
    ),
    (
        "a key for encryption",
        |h, _| h["jwk"]["use"] = "enc".into(),
        TokenFault::ProofKey,
    ),
    (
        "another method",
        |_, c| c["htm"] = "GET".into(),
        TokenFault::ProofMethod,
    ),
    (
        "a method in small letters",
        |_, c| c["htm"] = "post".into(),
        TokenFault::ProofMethod,
    ),
    (
        "another endpoint",
        |_, c| c["htu"] = format!("{BASE}/mcp").into(),
        TokenFault::ProofUrl,
    ),
    (
        "another host",
        |_, c| c["htu"] = format!("https://evil.example{PATH}").into(),
        TokenFault::ProofUrl,
    ),
    (
        "another scheme",
        |_, c| c["htu"] = format!("http://mcp.example{PATH}").into(),
        TokenFault::ProofUrl,
    ),
    (
        "no URL",
        |_, c| c["htu"] = PATH.into(),
        TokenFault::ProofUrl,
    ),
    (
        "an old one",
        |_, c| c["iat"] = (now_ms() / 1000 - 70).into(),
        TokenFault::ProofTime,
    ),
    (
        "one of tomorrow",
        |_, c| c["iat"] = (now_ms() / 1000 + 70).into(),
        TokenFault::ProofTime,
    ),
    (
        "an endless time",
        |_, c| c["iat"] = json!(1e300),
        TokenFault::ProofTime,
    ),
    (
        "another token",
        |_, c| c["ath"] = URL_SAFE_NO_PAD.encode([0; 32]).into(),
        TokenFault::ProofToken,
    ),
    (
        "no token",
        |_, c| drop(c.as_object_mut().unwrap().remove("ath")),
        TokenFault::ProofMalformed,
    ),
    (
        "no id",
        |_, c| drop(c.as_object_mut().unwrap().remove("jti")),
        TokenFault::ProofMalformed,
    ),
    (
        "an empty id",
        |_, c| c["jti"] = "".into(),
        TokenFault::ProofMalformed,
    ),
];

/// A client with a token that is bound to its key.
struct BoundClient {
    issuer: TestIssuer,
    key: TestIssuer,
    identities: IdentityRegistry,
    _folder: tempfile::TempDir,
}

/// The headers of a request.
struct Presented {
    proof: Option<String>,
    token: String,
}

impl BoundClient {
    fn new() -> Self {
        let issuer = TestIssuer::new();
        let (identities, folder) = trusting(&issuer);
        Self {
            issuer,
            key: TestIssuer::new(),
            identities,
            _folder: folder,
        }
    }

    /// Returns the public key in the form that a proof contains.
    fn jwk(&self, id: &str) -> Value {
        let jwks: Value = serde_json::from_str(&self.key.jwks()).expect("JSON");
        let keys = jwks["keys"].as_array().expect("a list");
        let mut key = keys
            .iter()
            .find(|key| key["kid"] == id)
            .expect("a key")
            .clone();
        let members = key.as_object_mut().expect("an object");
        members.retain(|name, _| !matches!(name.as_str(), "kid" | "use" | "alg"));
        key
    }

    fn token(&self, key: &str) -> String {
        let jwk = self.jwk(key);
        let thumbprint = thumbprint(jwk.as_object().expect("an object")).expect("a key");
        let thumbprint = URL_SAFE_NO_PAD.encode(thumbprint);
        self.issuer
            .token(|_, claims| claims["cnf"] = json!({ "jkt": thumbprint }))
    }

    fn proof(&self, token: &str, change: impl FnOnce(&mut Value, &mut Value)) -> String {
        let mut header = json!({ "alg": "EdDSA", "typ": "dpop+jwt", "jwk": self.jwk("ed") });
        let mut claims = json!({
            "jti": now_ms().to_string() + &rand(),
            "htm": "POST",
            "htu": format!("{BASE}{PATH}"),
            "iat": now_ms() / 1000,
            "ath": URL_SAFE_NO_PAD.encode(Sha256::digest(token)),
        });
        change(&mut header, &mut claims);
        self.key.sign(&header, &claims)
    }

    async fn resolve(&self, presented: &Presented) -> Result<CallerIdentity, AuthenticationError> {
        let tokens = self.identities.tokens().clone().expect("an issuer");
        let proof = RequestProof {
            text: presented.proof.as_deref(),
            method: "POST",
            path: PATH,
        };
        let token = PresentedToken {
            text: &presented.token,
            proof: Some(proof),
        };
        let endpoint = resource(PATH);
        let resolved = match tokens.resolve_cached(token, || endpoint.clone()) {
            Some(resolved) => resolved,
            None => tokens.resolve(token, &endpoint).await,
        };
        resolved.map_err(|caller| caller.refused)
    }
}

fn rand() -> String {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("random bytes");
    hex::encode(bytes)
}

#[tokio::test]
async fn a_bound_token_comes_with_proofs_of_its_key() {
    let client = BoundClient::new();
    let token = client.token("ed");
    let mut callers = Vec::new();
    let changes: [fn(&mut Value, &mut Value); 5] = [
        |_, _| {},
        |_, claims| claims["htu"] = format!("HTTPS://MCP.example:443{PATH}?a=b#c").into(),
        |_, claims| claims["iat"] = (now_ms() / 1000 - 50).into(),
        |_, claims| claims["iat"] = (now_ms() / 1000 + 50).into(),
        |_, claims| claims["nonce"] = "of another server".into(),
    ];
    for change in changes {
        let proof = Some(client.proof(&token, change));
        let presented = Presented {
            proof,
            token: token.clone(),
        };
        callers.push(client.resolve(&presented).await.expect("valid"));
    }
    let curve = client.token("ec");
    let jwk = client.jwk("ec");
    let proof = client.proof(&curve, |header, _| {
        *header = json!({ "alg": "ES256", "typ": "dpop+jwt", "jwk": jwk });
    });
    let presented = Presented {
        proof: Some(proof),
        token: curve,
    };
    callers.push(client.resolve(&presented).await.expect("valid"));
    let bearer = client.issuer.token(|_, _| {});
    let tokens = client.identities.tokens().clone().expect("an issuer");
    let endpoint = resource(PATH);
    let unbound = tokens.resolve(PresentedToken::bearer(&bearer), &endpoint);
    callers.push(unbound.await.expect("valid"));
    let first = &callers[0];
    assert!(
        callers.iter().all(|caller| caller == first),
        "issuer, subject and client are the caller, whatever the key"
    );
}

#[tokio::test]
async fn the_proofs_of_an_attacker_are_refused() {
    let client = BoundClient::new();
    let token = client.token("ed");
    for (name, change, fault) in CORPUS {
        let proof = Some(client.proof(&token, change));
        let token = token.clone();
        let resolved = client.resolve(&Presented { proof, token }).await;
        assert_eq!(resolved, Err(AuthenticationError::Token(fault)), "{name}");
    }
    let good = client.proof(&token, |_, _| {});
    let (message, signature) = good.rsplit_once('.').expect("three parts");
    let other = TestIssuer::new();
    let stolen = other.sign(
        &json!({ "alg": "EdDSA", "typ": "dpop+jwt", "jwk": client.jwk("ed") }),
        &json!({
            "jti": "stolen", "htm": "POST", "htu": format!("{BASE}{PATH}"), "iat": now_ms() / 1000,
            "ath": URL_SAFE_NO_PAD.encode(Sha256::digest(&token)),
        }),
    );
    for (text, fault) in [
        (None, TokenFault::ProofMissing),
        (Some(stolen), TokenFault::ProofSignature),
        (Some(format!("{message}.")), TokenFault::ProofSignature),
        (Some(message.to_owned()), TokenFault::ProofMalformed),
        (
            Some(format!("{good}.{signature}")),
            TokenFault::ProofMalformed,
        ),
        (
            Some(format!("{message}.{signature}=")),
            TokenFault::ProofMalformed,
        ),
        (
            Some("a".repeat(PROOF_MAX_BYTES + 1)),
            TokenFault::ProofMalformed,
        ),
        (Some(token.clone()), TokenFault::ProofMalformed),
    ] {
        let shown = format!("{text:.80?}");
        let (proof, token) = (text, token.clone());
        let resolved = client.resolve(&Presented { proof, token }).await;
        assert_eq!(resolved, Err(AuthenticationError::Token(fault)), "{shown}");
    }
    let presented = Presented {
        proof: Some(good),
        token: token.clone(),
    };
    assert!(client.resolve(&presented).await.is_ok());
    let replayed = client.resolve(&presented).await;
    assert_eq!(
        replayed,
        Err(AuthenticationError::Token(TokenFault::ProofReplayed))
    );
    let section = IdentityConfig {
        required: true,
        dpop_bound_access_tokens_required: true,
        issuers: vec![config("file:keys.json".into())],
    };
    client.identities.configure(&section, client._folder.path());
    let replayed = client.resolve(&presented).await;
    assert_eq!(
        replayed,
        Err(AuthenticationError::Token(TokenFault::ProofReplayed)),
        "a reload forgets no proof"
    );
}

/// A binding that is not checked does not make the token a bearer token, and the two schemes are not interchangeable.
#[tokio::test]
async fn a_binding_is_never_left_out() {
    let client = BoundClient::new();
    let tokens = client.identities.tokens().clone().expect("an issuer");
    let bearer = async |token: &str| {
        let endpoint = resource(PATH);
        let resolved = tokens.resolve(PresentedToken::bearer(token), &endpoint);
        resolved.await.map_err(|caller| caller.refused)
    };
    let bound = client.token("ed");
    let refused = Err(AuthenticationError::Token(TokenFault::Bound));
    assert_eq!(bearer(&bound).await, refused);
    assert_eq!(bearer(&bound).await, refused, "also when it is known");
    let unbound = client.issuer.token(|_, _| {});
    let presented = Presented {
        proof: Some(client.proof(&unbound, |_, _| {})),
        token: unbound,
    };
    let resolved = client.resolve(&presented).await;
    assert_eq!(
        resolved,
        Err(AuthenticationError::Token(TokenFault::Unbound))
    );
    for confirmation in [
        json!({}),
        json!("k"),
        json!({ "jkt": "k" }),
        json!({ "jkt": 1 }),
        json!({ "x5t#S256": URL_SAFE_NO_PAD.encode([1; 32]) }),
        json!({ "jkt": URL_SAFE_NO_PAD.encode([1; 32]), "x5t#S256": "k" }),
        json!({ "jkt": URL_SAFE_NO_PAD.encode([1; 31]) }),
        Value::Null,
    ] {
        let token = client
            .issuer
            .token(|_, claims| claims["cnf"] = confirmation.clone());
        let resolved = bearer(&token).await;
        let fault = TokenFault::OtherBinding;
        assert_eq!(
            resolved,
            Err(AuthenticationError::Token(fault)),
            "{confirmation}"
        );
    }
}

/// The example of RFC 7638.
#[test]
fn the_thumbprint_of_a_key_is_that_of_its_members() {
    let key = json!({
        "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3\
              oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdA\
              ZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-\
              kEgU8awapJzKnqDKgw",
    });
    let thumbprint = thumbprint(key.as_object().expect("an object")).expect("a key");
    assert_eq!(
        URL_SAFE_NO_PAD.encode(thumbprint),
        "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
    );
}
