//! Why a request to an authorization server failed.

use weir_text::shorten;

/// The bound on words of a server.
const WORDS_MAX_CHARS: usize = 200;

/// Why a request to an authorization server has no result. No variant contains a secret.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OauthFault {
    /// No answer came, or its end is missing. The request may have had its effect.
    #[error("{0}")]
    Unreachable(String),
    /// The answer cannot be used, or must not be.
    #[error("{0}")]
    Unusable(String),
    /// The server's own refusal.
    #[error("{place} refuses with `{error}`{description}")]
    Refused {
        place: String,
        /// The code of the error, such as `invalid_grant`.
        error: String,
        /// Empty, or the server's words in brackets.
        description: String,
    },
}

impl OauthFault {
    pub(crate) fn unusable(what: impl Into<String>) -> Self {
        Self::Unusable(what.into())
    }

    /// Makes a refusal of what a server wrote: plain text of bounded length.
    pub(crate) fn refused(place: &str, error: &str, description: Option<&str>) -> Self {
        let plain = |text: &str| {
            let text: String = text.chars().filter(|it| !it.is_control()).collect();
            shorten(&text, WORDS_MAX_CHARS).to_string()
        };
        let description = description.map(plain).filter(|text| !text.is_empty());
        Self::Refused {
            place: place.to_owned(),
            error: plain(error),
            description: description.map_or_else(String::new, |text| format!(" ({text})")),
        }
    }

    /// Returns `true` if the server reports that the grant is over: only another sign-in helps.
    pub fn is_grant_over(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if error == "invalid_grant")
    }

    /// Returns `true` if the server no longer knows the client.
    pub fn is_client_unknown(&self) -> bool {
        matches!(self, Self::Refused { error, .. } if matches!(&**error, "invalid_client" | "unauthorized_client"))
    }
}
