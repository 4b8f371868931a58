//! The ids of sessions: a random number, and the result of the handshake, sealed under it. A process that did not open a session
//! resumes it from its id, if it has the gateway's key: another node, or the same one after a restart.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::SessionId;
use crate::{
    cursor::{CursorCipher, CursorScope},
    identity::{CallerIdentity, now_ms},
    methods::CatalogueEndpoint,
    session_notes::SESSION_LIFE_MS,
    wire::ProtocolVersion,
};

/// The sealed bytes: the form, the version, the abilities, and the time at which the session was opened.
const CONTENT_BYTES: usize = 7;
const FORM: u8 = 1;
const NUMBER_BYTES: usize = size_of::<u128>();
const TAG_BYTES: usize = 16;
/// The characters of an id.
const ID_CHARACTERS: usize = (NUMBER_BYTES + CONTENT_BYTES + TAG_BYTES).div_ceil(3) * 4;

/// An id in a request.
pub struct NamedSession {
    pub(super) id: SessionId,
    sealed: [u8; CONTENT_BYTES + TAG_BYTES],
}

/// The terms of a session, which its id contains.
#[derive(Clone, Copy)]
pub(super) struct SessionTerms {
    pub(super) version: ProtocolVersion,
    /// Bits, as in the client of the session.
    pub(super) abilities: u8,
}

impl NamedSession {
    /// Parses the id of a session from its base64url form. `None` means that no session can have it. The seal has not been
    /// checked yet.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != ID_CHARACTERS {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (number, sealed) = bytes.split_first_chunk::<NUMBER_BYTES>()?;
        Some(Self {
            id: SessionId(u128::from_be_bytes(*number)),
            sealed: sealed.try_into().ok()?,
        })
    }

    /// Opens the id for this caller at this endpoint; `None` for one that is foreign, altered or too old.
    pub(super) fn terms(
        &self,
        cursors: &CursorCipher,
        caller: &CallerIdentity,
        endpoint: &CatalogueEndpoint,
    ) -> Option<SessionTerms> {
        let content = cursors.open_under(self.id.0, &bound(caller, endpoint), &self.sealed)?;
        let [form, version, abilities, opened @ ..]: [u8; CONTENT_BYTES] =
            content.try_into().ok()?;
        // The clock of the node that opened it may be ahead.
        let age = unix_seconds().saturating_sub(u64::from(u32::from_be_bytes(opened)));
        if form != FORM || age * 1000 > SESSION_LIFE_MS as u64 {
            return None;
        }
        let version = *ProtocolVersion::LEGACY.get(usize::from(version))?;
        Some(SessionTerms { version, abilities })
    }
}

/// Writes the id of a new session.
pub(super) fn write(
    cursors: &CursorCipher,
    id: SessionId,
    caller: &CallerIdentity,
    endpoint: &CatalogueEndpoint,
    terms: SessionTerms,
) -> String {
    let version = ProtocolVersion::LEGACY
        .into_iter()
        .position(|v| v == terms.version);
    let version = version.expect("sessions are of legacy versions") as u8;
    let opened = u32::try_from(unix_seconds()).unwrap_or(u32::MAX);
    let content = [&[FORM, version, terms.abilities][..], &opened.to_be_bytes()].concat();
    let sealed = cursors.seal_under(id.0, &bound(caller, endpoint), &content);
    URL_SAFE_NO_PAD.encode([&id.0.to_be_bytes()[..], &sealed].concat())
}

/// No tool has a space in its name, so no cursor is bound to the same text.
fn bound(caller: &CallerIdentity, endpoint: &CatalogueEndpoint) -> CursorScope {
    let grant = caller.grant.as_ref().map_or("", |grant| grant.id());
    let owner = format!("{} {} {grant}", caller.tenant, caller.agent);
    CursorScope::new("a session", 0, &owner, &endpoint.to_string())
}

fn unix_seconds() -> u64 {
    u64::try_from(now_ms() / 1000).unwrap_or(0)
}
