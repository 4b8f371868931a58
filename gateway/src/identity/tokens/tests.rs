//! Tokens that are accepted, and those of an attacker.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};
use serde_json::json;

use super::*;
use crate::{
    config::{ClaimGrant, IdentityConfig},
    identity::{CatalogueAccess, IdentityRegistry, RequestCredential},
};

const ISSUER: &str = "https://login.example/";
pub(super) const BASE: &str = "https://mcp.example";

/// An issuer with one key of each kind that ring can make.
pub(super) struct TestIssuer {
    edwards: Ed25519KeyPair,
    curve: EcdsaKeyPair,
}

impl TestIssuer {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let edwards = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let curve = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        Self {
            edwards: Ed25519KeyPair::from_pkcs8(edwards.as_ref()).expect("a key"),
            curve: EcdsaKeyPair::from_pkcs8(algorithm, curve.as_ref(), &random).expect("a key"),
        }
    }

    pub(super) fn jwks(&self) -> String {
        let (x, y) = self.curve.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (BASE64.encode(x), BASE64.encode(y));
        let edwards = BASE64.encode(self.edwards.public_key());
        json!({ "keys": [
            { "kty": "oct", "kid": "shared", "k": BASE64.encode("a shared secret") },
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": edwards },
            { "kty": "OKP", "crv": "Ed25519", "kid": "enc", "use": "enc", "x": edwards },
            { "kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": x, "y": y },
            { "kty": "future", "kid": "unknown" },
        ] })
        .to_string()
    }

    /// Signs a token with the key for its algorithm.
    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = match header["alg"].as_str() {
            Some("EdDSA") => self.edwards.sign(message.as_bytes()).as_ref().to_vec(),
            Some("ES256") => {
                let signed = self.curve.sign(&SystemRandom::new(), message.as_bytes());
                signed.expect("a signature").as_ref().to_vec()
            }
            // Signed with a public value: the public key as a secret.
            Some("HS256") => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, self.edwards.public_key().as_ref());
                hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{message}.{}", BASE64.encode(signature))
    }

    pub(super) fn token(&self, change: impl FnOnce(&mut Value, &mut Value)) -> String {
        let mut header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "ed" });
        let mut claims = json!({
            "iss": ISSUER,
            "sub": "ann",
            "aud": format!("{BASE}/mcp/desk"),
            "exp": now_ms() / 1000 + 600,
            "client_id": "chat",
            "scope": "openid tools",
        });
        change(&mut header, &mut claims);
        self.sign(&header, &claims)
    }
}

fn grant(claim: &str, has: &str, contracts: &[&str]) -> ClaimGrant {
    ClaimGrant {
        claim: claim.into(),
        has: has.into(),
        contracts: contracts.iter().map(|name| (*name).to_owned()).collect(),
        tools: BTreeSet::new(),
    }
}

pub(super) fn config(jwks: String) -> IssuerConfig {
    IssuerConfig {
        issuer: ISSUER.into(),
        jwks: Some(jwks),
        audiences: vec!["extra".into()],
        agent_claim: "sub".into(),
        tenant_claim: None,
        groups_claim: Some("realm_access.roles".into()),
        grants: vec![
            grant("scope", "tools", &["desk"]),
            grant("realm_access.roles", "staff", &["depot"]),
            grant("https://claims.example/all", "true", &["*"]),
        ],
    }
}

/// Identities that trust an issuer whose keys are in a file.
pub(super) fn trusting(issuer: &TestIssuer) -> (IdentityRegistry, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("keys.json"), issuer.jwks()).expect("written");
    let identities = IdentityRegistry::open();
    let section = IdentityConfig {
        required: false,
        dpop_bound_access_tokens_required: false,
        issuers: vec![config("file:keys.json".into())],
    };
    identities.configure(&section, folder.path());
    (identities, folder)
}

pub(super) fn resource(path: &str) -> TokenResource {
    TokenResource {
        base: BASE.into(),
        path: path.into(),
    }
}

async fn resolve(
    identities: &IdentityRegistry,
    token: &str,
    path: &str,
) -> Result<CallerIdentity, AuthenticationError> {
    let tokens = identities.tokens().clone().expect("an issuer");
    let token = PresentedToken::bearer(token);
    let resolved = tokens.resolve(token, &resource(path)).await;
    if resolved.is_ok() {
        let again = tokens.resolve_cached(token, || resource(path));
        assert_eq!(again.as_ref(), Some(&resolved), "kept");
    }
    resolved.map_err(|caller| caller.refused)
}

#[tokio::test]
async fn a_token_is_an_agent_with_what_its_claims_grant() {
    let issuer = TestIssuer::new();
    let (identities, _folder) = trusting(&issuer);
    let caller = resolve(&identities, &issuer.token(|_, _| {}), "/mcp/desk").await;
    let caller = caller.expect("valid");
    assert_eq!((&*caller.agent, &*caller.tenant), ("ann", "ann"));
    assert!(caller.access().allows_contract("desk") && !caller.access().allows_contract("depot"));
    assert!(!caller.may_write());
    let holder = caller.holder().expect("a holder");
    assert_eq!((&*holder.issuer, &*holder.subject), (ISSUER, "ann"));
    assert_eq!(holder.client.as_deref(), Some("chat"));
    let token = issuer.token(|header, claims| {
        *header = json!({ "alg": "ES256", "typ": "JWT", "kid": "ec" });
        claims["sub"] = "a person | 7".into();
        claims["aud"] = json!(["other", format!("{BASE}/mcp")]);
        claims["scope"] = "tools:write".into();
        claims["realm_access"] = json!({ "roles": ["x", "staff"] });
    });
    let caller = resolve(&identities, &token, "/mcp/view/shop")
        .await
        .expect("valid");
    assert!(
        caller.agent.starts_with("sub_") && caller.agent.len() == 20,
        "{}",
        caller.agent
    );
    assert!(caller.access().allows_contract("depot") && !caller.access().allows_contract("desk"));
    assert!(caller.may_write());
    let principal = caller.policy_principal();
    assert_eq!(principal.kind, weir_policy::PrincipalKind::User);
    assert_eq!(*principal.groups, ["x", "staff"].map(Arc::<str>::from));
    let all = issuer.token(|_, claims| {
        claims["aud"] = "extra".into();
        claims["https://claims.example/all"] = true.into();
    });
    let caller = resolve(&identities, &all, "/mcp/any").await.expect("valid");
    assert_eq!(*caller.access(), CatalogueAccess::EVERYTHING);
    let nothing = issuer.token(|_, claims| claims["scope"] = "toolsmith tools:write".into());
    let caller = resolve(&identities, &nothing, "/mcp/desk")
        .await
        .expect("valid");
    assert!(!caller.access().allows("desk", "find"), "no grant matches");
}

/// Policies refer to groups by their text, so a group without text would match no policy.
#[tokio::test]
async fn groups_are_as_the_token_has_them() {
    let issuer = TestIssuer::new();
    let (identities, _folder) = trusting(&issuer);
    let mut groups: Vec<String> = (0..300).map(|at| format!("team {at}")).collect();
    groups.push(
        "CN=Ärzte und Pflege,OU=Groups,DC=clinic,DC=example,DC=org,DC=a-name-of-some-length".into(),
    );
    let token = issuer.token(|_, claims| claims["realm_access"] = json!({ "roles": groups }));
    let caller = resolve(&identities, &token, "/mcp/desk").await;
    let principal = caller.expect("valid").policy_principal();
    let known: Vec<&str> = principal.groups.iter().map(|group| &**group).collect();
    assert_eq!(known, groups);
}

#[tokio::test]
async fn the_tokens_of_an_attacker_are_refused() {
    let issuer = TestIssuer::new();
    let (identities, _folder) = trusting(&issuer);
    type Change = fn(&mut Value, &mut Value);
    let corpus: [(&str, Change, TokenFault); 24] = [
        (
            "alg none",
            |header, _| header["alg"] = "none".into(),
            TokenFault::Algorithm,
        ),
        (
            "alg NONE",
            |header, _| header["alg"] = "NoNe".into(),
            TokenFault::Algorithm,
        ),
        (
            "HS256",
            |header, _| header["alg"] = "HS256".into(),
            TokenFault::Algorithm,
        ),
        (
            "HS256 with the shared key",
            |header, _| {
                *header = json!({ "alg": "HS256", "typ": "JWT", "kid": "shared" });
            },
            TokenFault::Algorithm,
        ),
        (
            "another type of key",
            |header, _| header["kid"] = "ec".into(),
            TokenFault::Key,
        ),
        (
            "a key for encryption",
            |header, _| header["kid"] = "enc".into(),
            TokenFault::Key,
        ),
        (
            "an unknown key",
            |header, _| header["kid"] = "../../ed".into(),
            TokenFault::Key,
        ),
        (
            "RS256 of no key",
            |header, _| header["alg"] = "RS256".into(),
            TokenFault::Key,
        ),
        (
            "crit",
            |header, _| header["crit"] = json!(["exp"]),
            TokenFault::Critical,
        ),
        (
            "no typ",
            |header, _| {
                header.as_object_mut().expect("an object").remove("typ");
            },
            TokenFault::Type,
        ),
        (
            "typ of another use",
            |header, _| header["typ"] = "logout+jwt".into(),
            TokenFault::Type,
        ),
        (
            "another issuer",
            |_, claims| claims["iss"] = "https://evil.example/".into(),
            TokenFault::Issuer,
        ),
        (
            "an issuer without its slash",
            |_, claims| {
                claims["iss"] = "https://login.example".into();
            },
            TokenFault::Issuer,
        ),
        (
            "a list of issuers",
            |_, claims| claims["iss"] = json!([ISSUER]),
            TokenFault::Malformed,
        ),
        (
            "expired",
            |_, claims| claims["exp"] = (now_ms() / 1000 - 61).into(),
            TokenFault::Expired,
        ),
        (
            "not yet",
            |_, claims| claims["nbf"] = (now_ms() / 1000 + 90).into(),
            TokenFault::NotYet,
        ),
        (
            "no exp",
            |_, claims| {
                claims.as_object_mut().expect("an object").remove("exp");
            },
            TokenFault::Claims,
        ),
        (
            "exp without end",
            |_, claims| claims["exp"] = json!(1e300),
            TokenFault::Claims,
        ),
        (
            "no aud",
            |_, claims| {
                claims.as_object_mut().expect("an object").remove("aud");
            },
            TokenFault::Claims,
        ),
        (
            "another contract",
            |_, claims| {
                claims["aud"] = "https://mcp.example/mcp/depot".into();
            },
            TokenFault::Audience,
        ),
        (
            "another server",
            |_, claims| {
                claims["aud"] = "https://mcp.example.evil/mcp/desk".into();
            },
            TokenFault::Audience,
        ),
        (
            "a path below",
            |_, claims| {
                claims["aud"] = "https://mcp.example/mcp/desk/sse".into();
            },
            TokenFault::Audience,
        ),
        (
            "an ID token",
            |_, claims| claims["nonce"] = "n".into(),
            TokenFault::IdToken,
        ),
        (
            "bound to a key",
            |_, claims| claims["cnf"] = json!({ "jkt": "k" }),
            TokenFault::OtherBinding,
        ),
    ];
    for (what, change, fault) in corpus {
        let token = issuer.token(change);
        let resolved = resolve(&identities, &token, "/mcp/desk").await;
        assert_eq!(resolved, Err(AuthenticationError::Token(fault)), "{what}");
    }
    let forged = TestIssuer::new().token(|_, _| {});
    let resolved = resolve(&identities, &forged, "/mcp/desk").await;
    assert_eq!(
        resolved,
        Err(AuthenticationError::Token(TokenFault::Signature))
    );
    let embedded = issuer.token(|header, _| {
        header["kid"] = "unknown".into();
        header["jku"] = "https://evil.example/jwks".into();
        header["jwk"] = json!({ "kty": "OKP", "crv": "Ed25519", "x": "AA" });
    });
    assert!(resolve(&identities, &embedded, "/mcp/desk").await.is_err());
    let good = issuer.token(|_, _| {});
    let [header, claims, signature] = good.split('.').collect::<Vec<_>>()[..] else {
        panic!("{good}");
    };
    for bad in [
        format!("\u{feff}{good}"),
        format!("{good}."),
        format!("{good}=="),
        format!("{header}.{claims}."),
        format!("{header}.{claims}"),
        format!("{header}. {claims}.{signature}"),
        format!("{claims}.{header}.{signature}"),
        "a".repeat(TOKEN_MAX_BYTES + 1),
    ] {
        let resolved = resolve(&identities, &bad, "/mcp/desk").await;
        assert!(resolved.is_err(), "{bad:.80}");
    }
    assert!(resolve(&identities, &good, "/mcp/desk").await.is_ok());
    let elsewhere = resolve(&identities, &good, "/mcp").await;
    assert_eq!(
        elsewhere,
        Err(AuthenticationError::Token(TokenFault::Audience)),
        "kept, and still for one endpoint"
    );
}

/// A cached token is found by its end. A different token with the same end is not mistaken for it.
#[tokio::test]
async fn another_text_before_a_known_signature_is_another_token() {
    let issuer = TestIssuer::new();
    let (identities, _folder) = trusting(&issuer);
    let good = issuer.token(|_, _| {});
    assert!(resolve(&identities, &good, "/mcp/desk").await.is_ok());
    let stronger = issuer.token(|_, claims| claims["scope"] = "tools tools:write".into());
    let (_, signature) = good.rsplit_once('.').expect("three parts");
    let (signed, _) = stronger.rsplit_once('.').expect("three parts");
    let forged = format!("{signed}.{signature}");
    let tokens = identities.tokens().clone().expect("an issuer");
    let found = tokens.resolve_cached(PresentedToken::bearer(&forged), || resource("/mcp/desk"));
    assert_eq!(found, None);
    let resolved = resolve(&identities, &forged, "/mcp/desk").await;
    let fault = AuthenticationError::Token(TokenFault::Signature);
    assert_eq!(resolved, Err(fault));
    assert!(resolve(&identities, &good, "/mcp/desk").await.is_ok());
}

/// A token without the claim that is configured for the agent or the tenant is refused because of that claim, so that an operator
/// finds the setting.
#[tokio::test]
async fn a_missing_claim_that_names_the_caller_has_its_own_reason() {
    let issuer = TestIssuer::new();
    for (agent_claim, tenant_claim, fault) in [
        ("email", None, TokenFault::AgentClaim),
        ("sub", Some("org"), TokenFault::TenantClaim),
    ] {
        let (identities, folder) = trusting(&issuer);
        let section = IdentityConfig {
            required: false,
            dpop_bound_access_tokens_required: false,
            issuers: vec![IssuerConfig {
                agent_claim: agent_claim.to_owned(),
                tenant_claim: tenant_claim.map(str::to_owned),
                ..config("file:keys.json".into())
            }],
        };
        identities.configure(&section, folder.path());
        let resolved = resolve(&identities, &issuer.token(|_, _| {}), "/mcp/desk").await;
        assert_eq!(resolved, Err(AuthenticationError::Token(fault)));
    }
}

/// A refreshed token is the same caller, even with more scopes; a different client or subject is a different caller.
#[tokio::test]
async fn a_caller_is_issuer_subject_and_client() {
    let issuer = TestIssuer::new();
    let (identities, _folder) = trusting(&issuer);
    let resolve = async |change: fn(&mut Value, &mut Value)| {
        let token = issuer.token(change);
        resolve(&identities, &token, "/mcp/desk")
            .await
            .expect("valid")
    };
    let caller = resolve(|_, _| {}).await;
    let refreshed = resolve(|_, claims| claims["scope"] = "tools tools:write".into()).await;
    assert_eq!(caller, refreshed);
    assert!(!caller.may_write() && refreshed.may_write());
    let others: [fn(&mut Value, &mut Value); 2] = [
        |_, claims| claims["sub"] = "bob".into(),
        |_, claims| claims["client_id"] = "other".into(),
    ];
    for change in others {
        assert_ne!(caller, resolve(change).await);
    }
    let principal = resolve(others[1]).await;
    assert_ne!(caller.principal(), principal.principal());
    assert_ne!(caller.principal(), "ann");
}

/// The open work of a caller ends with its token, and with the trust in its issuer; other changes of the configuration do not
/// end it.
#[tokio::test]
async fn an_issuer_that_is_no_longer_trusted_ends_its_callers() {
    let issuer = TestIssuer::new();
    let (identities, folder) = trusting(&issuer);
    let token = issuer.token(|_, _| {});
    let caller = resolve(&identities, &token, "/mcp/desk")
        .await
        .expect("valid");
    assert_eq!(
        identities.resolve(RequestCredential::None),
        Err(AuthenticationError::Missing)
    );
    let mut section = IdentityConfig {
        required: true,
        dpop_bound_access_tokens_required: false,
        issuers: vec![config("file:keys.json".into())],
    };
    identities.configure(&section, folder.path());
    assert!(!caller.revoked().is_cancelled());
    section.issuers[0].grants.truncate(1);
    identities.configure(&section, folder.path());
    assert!(caller.revoked().is_cancelled());
    section.issuers.clear();
    section.required = false;
    identities.configure(&section, folder.path());
    assert!(identities.tokens().is_none());
    assert_eq!(
        identities.resolve(RequestCredential::None),
        Ok(CallerIdentity::local())
    );
}

/// A key that was removed from a file is no longer trusted after a reload, and a new one is trusted immediately.
#[tokio::test]
async fn keys_in_a_file_are_those_of_the_last_reload() {
    let (old, new) = (TestIssuer::new(), TestIssuer::new());
    let (identities, folder) = trusting(&old);
    let reload = |keys: &str| {
        std::fs::write(folder.path().join("keys.json"), keys).expect("written");
        let section = IdentityConfig {
            issuers: vec![config("file:keys.json".into())],
            ..IdentityConfig::default()
        };
        identities.configure(&section, folder.path());
    };
    let (token, path) = (old.token(|_, _| {}), "/mcp/desk");
    let caller = resolve(&identities, &token, path).await.expect("valid");
    for unchanged in [&*old.jwks(), "{"] {
        reload(unchanged);
        resolve(&identities, &token, path).await.expect("valid");
        assert!(!caller.revoked().is_cancelled());
    }
    reload(&new.jwks());
    assert!(caller.revoked().is_cancelled());
    assert!(resolve(&identities, &token, path).await.is_err());
    let renewed = resolve(&identities, &new.token(|_, _| {}), path).await;
    renewed.expect("valid");
}

/// A stream ends with its token; a call that began with the token continues, since clients renew tokens.
#[tokio::test]
async fn what_is_open_ends_with_the_token_and_what_was_begun_does_not() {
    let issuer = TestIssuer::new();
    let (identities, _folder) = trusting(&issuer);
    // Within the leeway, the token is valid for a request.
    let token = issuer.token(|_, claims| claims["exp"] = (now_ms() / 1000 - 1).into());
    let caller = resolve(&identities, &token, "/mcp/desk")
        .await
        .expect("valid");
    caller.ended().await;
    assert!(futures::FutureExt::now_or_never(caller.withdrawn()).is_none());
}

#[test]
fn what_begins_as_a_key_is_never_read_as_a_token() {
    for text in [
        "weir_a.b.c",
        "weiradm_a.b.c",
        "weirses_a.b.c",
        "weirlink_a.b.c",
        "",
    ] {
        assert_eq!(RequestCredential::Key(text).token(), None, "{text}");
    }
    assert_eq!(RequestCredential::Key("a.b.c").token(), Some("a.b.c"));
    assert_eq!(RequestCredential::Malformed.token(), None);
    let open = IdentityRegistry::open();
    for text in ["weiradm_1", "weirses_1", "weirlink_1"] {
        let resolved = open.resolve(RequestCredential::Key(text));
        assert_eq!(resolved, Err(AuthenticationError::Malformed), "{text}");
    }
}

/// Serves the keys over HTTP and counts how often they are requested.
fn serve(issuer: &TestIssuer, head: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/keys", listener.local_addr().expect("an address"));
    let (asked, body, head) = (
        Arc::new(AtomicUsize::new(0)),
        issuer.jwks(),
        head.to_owned(),
    );
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            count.fetch_add(1, Ordering::SeqCst);
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    (url, asked)
}

/// Returns identities that trust an issuer with its keys at this URL.
fn identities_of(url: String) -> IdentityRegistry {
    let identities = IdentityRegistry::open();
    let section = IdentityConfig {
        required: false,
        dpop_bound_access_tokens_required: false,
        issuers: vec![config(url)],
    };
    identities.configure(&section, Path::new("."));
    identities
}

#[tokio::test]
async fn a_flood_of_unknown_keys_fetches_once() {
    let issuer = TestIssuer::new();
    let (url, asked) = serve(&issuer, "200 OK");
    let identities = identities_of(url);
    assert_eq!(
        asked.load(Ordering::SeqCst),
        0,
        "a start waits for no issuer"
    );
    let unknown =
        |number: usize| issuer.token(|header, _| header["kid"] = number.to_string().into());
    let tokens: Vec<_> = (0..50).map(unknown).collect();
    let flood = tokens
        .iter()
        .map(|token| resolve(&identities, token, "/mcp/desk"));
    for resolved in futures::future::join_all(flood).await {
        assert_eq!(resolved, Err(AuthenticationError::Token(TokenFault::Key)));
    }
    let good = issuer.token(|_, _| {});
    assert!(resolve(&identities, &good, "/mcp/desk").await.is_ok());
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// Requests that waited for a slow fetch that failed do not start another one: otherwise the last request would wait for all of
/// these.
#[tokio::test]
async fn a_fetch_that_fails_late_answers_all_who_waited_for_it() {
    let issuer = TestIssuer::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/keys", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let _ = stream.read(&mut [0; 4096]);
            count.fetch_add(1, Ordering::SeqCst);
            // The pause before the next fetch is then over.
            std::thread::sleep(std::time::Duration::from_millis(2200));
            let _ = stream.write_all(
                b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    let identities = identities_of(url);
    let tokens: Vec<_> = (0..5).map(|_| issuer.token(|_, _| {})).collect();
    let waiting = tokens
        .iter()
        .map(|token| resolve(&identities, token, "/mcp/desk"));
    for resolved in futures::future::join_all(waiting).await {
        let unavailable = AuthenticationError::Token(TokenFault::KeysUnavailable);
        assert_eq!(resolved, Err(unavailable));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// A redirect could lead to a place that is not configured.
#[tokio::test]
async fn keys_are_fetched_without_redirects() {
    let issuer = TestIssuer::new();
    let (there, asked_there) = serve(&issuer, "200 OK");
    let (url, asked) = serve(&issuer, &format!("302 Found\r\nlocation: {there}"));
    let identities = identities_of(url);
    let resolved = resolve(&identities, &issuer.token(|_, _| {}), "/mcp/desk").await;
    assert_eq!(
        resolved,
        Err(AuthenticationError::Token(TokenFault::KeysUnavailable))
    );
    let counts = [&asked, &asked_there].map(|count| count.load(Ordering::SeqCst));
    assert_eq!(counts, [1, 0]);
}

/// The example of RFC 7515, A.2: RSA with PKCS #1 padding.
#[test]
fn an_rsa_signature_is_verified() {
    signature::install();
    let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR\
             T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS\
             -UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2et\
             hFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
    let message = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290\
                   Ijp0cnVlfQ";
    let sent = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdb\
                F9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383\
                LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWy\
                wlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let key = DecodingKey::from_rsa_components(n, "AQAB").expect("a key");
    let verify = |signature: &str, algorithm| {
        jsonwebtoken::crypto::verify(signature, message.as_bytes(), &key, algorithm)
    };
    assert_eq!(verify(sent, Algorithm::RS256).ok(), Some(true));
    assert_eq!(verify(sent, Algorithm::PS256).ok(), Some(false));
    assert!(verify(sent, Algorithm::RS512).is_err() && verify(sent, Algorithm::HS256).is_err());
}
