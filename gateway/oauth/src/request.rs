//! Requests to a server of OAuth: bounded JSON, and errors without secrets.

use std::fmt;

use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use weir_connections::{
    http::{DocumentAnswer, DocumentRequest, NetworkReach, request_document},
    mask::{SecretMask, mask},
};

use crate::OauthFault;

/// No document is larger.
const DOCUMENT_MAX_BYTES: usize = 256 << 10;

/// A text that no log, error or `Debug` shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretText(Box<str>);

impl SecretText {
    /// Wraps a secret.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, to be sent or sealed.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// Returns a document, or `None` where the server has no document or answers a page for people.
pub(crate) async fn get<T: DeserializeOwned>(
    url: &str,
    reach: NetworkReach,
) -> Result<Option<T>, OauthFault> {
    let request = DocumentRequest {
        url,
        reach,
        body: None,
        basic: None,
        size_max: DOCUMENT_MAX_BYTES,
    };
    let answer = request_document(request)
        .await
        .map_err(OauthFault::Unreachable)?;
    match answer.status {
        200 if serde_json::from_slice::<IgnoredAny>(&answer.text).is_err() => Ok(None),
        200 => read(url, &answer).map(Some),
        300..=399 => Err(redirected(url, answer.status)),
        400..=499 => Ok(None),
        status => Err(OauthFault::Unreachable(format!("{url} answered {status}"))),
    }
}

/// A POST to an endpoint of an authorization server.
pub(crate) struct EndpointRequest<'p> {
    pub(crate) url: &'p str,
    pub(crate) reach: NetworkReach,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
    pub(crate) basic: Option<(&'p str, &'p str)>,
    /// Secrets in the request, which must not be repeated in an error.
    pub(crate) secrets: Vec<&'p str>,
}

/// Posts, and returns what a success answers.
pub(crate) async fn post<T: DeserializeOwned>(
    posted: EndpointRequest<'_>,
) -> Result<T, OauthFault> {
    let EndpointRequest {
        url,
        reach,
        kind,
        body,
        basic,
        secrets,
    } = posted;
    let request = DocumentRequest {
        url,
        reach,
        body: Some((kind, body)),
        basic,
        size_max: DOCUMENT_MAX_BYTES,
    };
    let answer = request_document(request)
        .await
        .map_err(OauthFault::Unreachable)?;
    match answer.status {
        200 | 201 => read(url, &answer),
        300..=399 => Err(redirected(url, answer.status)),
        status => Err(refusal(url, status, &answer, &secrets)),
    }
}

fn refusal(url: &str, status: u16, answer: &DocumentAnswer, secrets: &[&str]) -> OauthFault {
    #[derive(Deserialize)]
    struct OauthRefusal {
        error: String,
        error_description: Option<String>,
    }
    match serde_json::from_slice::<OauthRefusal>(&answer.text) {
        // A server in trouble has refused nothing for good.
        Ok(OauthRefusal {
            error,
            error_description,
        }) if status < 500 && status != 429 => {
            let own = SecretMask::new(secrets.iter().copied());
            let without = |text: &str| mask(&own.mask(text)).into_owned();
            let description = error_description.map(|text| without(&text));
            OauthFault::refused(url, &without(&error), description.as_deref())
        }
        _ => OauthFault::Unreachable(format!("{url} answered {status}")),
    }
}

/// The fault of a document does not repeat it, since it may contain a token.
fn read<T: DeserializeOwned>(url: &str, answer: &DocumentAnswer) -> Result<T, OauthFault> {
    serde_json::from_slice(&answer.text).map_err(|_| {
        OauthFault::unusable(format!("{url} answers no JSON with what is needed of it"))
    })
}

fn redirected(url: &str, status: u16) -> OauthFault {
    OauthFault::unusable(format!(
        "{url} answered {status}, to look elsewhere: redirects are not followed"
    ))
}
