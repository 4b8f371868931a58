//! The two protocol eras: legacy (initialize handshake) and modern (per-request `_meta`).
//!
//! The body determines the era of a message. A header never makes a message legacy, so that no header can bypass a check of the
//! modern era; it may only show that a modern client forgot its `_meta`.

pub(crate) mod batch;
pub mod cancellations;
pub mod legacy;
pub mod modern;
pub mod sessions;

use std::borrow::Cow;

use axum::http::HeaderMap;

use crate::wire::{ProtocolVersion, RequestMeta, RpcError, raw};

/// The bounds on a `tracestate`; one that exceeds them is not passed on.
const STATE_MAX_BYTES: usize = 512;
const STATE_MEMBERS_MAX: usize = 32;

pub const PROTOCOL_VERSION_HEADER: &str = "mcp-protocol-version";

/// The two forms of the protocol: with a handshake and sessions, and without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEra {
    Legacy,
    Modern,
}

impl RequestEra {
    /// Returns the era of a message. `headers` exist only over HTTP.
    pub fn detect(
        method: &str,
        meta: &RequestMeta<'_>,
        headers: Option<&HeaderMap>,
    ) -> Result<Self, RpcError> {
        let header_is_modern = headers.is_some_and(names_modern);
        if method == "initialize" {
            return match (modern::is_valid(meta), header_is_modern) {
                (true, _) => Ok(Self::Modern),
                (false, true) => Err(RpcError::header_mismatch(
                    "`initialize` is of versions before 2026-07-28, the MCP-Protocol-Version header names a later one",
                )),
                (false, false) => Ok(Self::Legacy),
            };
        }
        Ok(match meta.protocol_version.is_some() || header_is_modern {
            true => Self::Modern,
            false => Self::Legacy,
        })
    }
}

/// Returns `true` if any `MCP-Protocol-Version` header names a modern version.
pub fn names_modern(headers: &HeaderMap) -> bool {
    headers
        .get_all(PROTOCOL_VERSION_HEADER)
        .iter()
        .any(|value| value.to_str().is_ok_and(ProtocolVersion::names_modern))
}

/// The trace of a caller, and the linked one.
struct CallerTraces<'a> {
    parent: Option<Cow<'a, str>>,
    /// The `tracestate` that goes with the parent.
    state: Option<Cow<'a, str>>,
    link: Option<Cow<'a, str>>,
}

/// Returns the traces of a caller. `_meta.traceparent` takes precedence over the HTTP header, which then becomes a link. A
/// malformed one is ignored, and a state counts only together with its parent.
fn traces<'a>(meta: &RequestMeta<'a>, headers: Option<&'a HeaderMap>) -> CallerTraces<'a> {
    let of_meta = meta
        .traceparent
        .and_then(raw::string)
        .filter(|text| traceparent(text).is_some());
    let of_request = headers.and_then(|headers| {
        let header = headers.get("traceparent")?.to_str().ok()?;
        traceparent(header).map(Cow::Borrowed)
    });
    if of_meta.is_none() {
        let state = of_request.is_some().then_some(headers).flatten();
        return CallerTraces {
            parent: of_request,
            state: state.and_then(header_state),
            link: None,
        };
    }
    let state = meta.tracestate.and_then(raw::string);
    CallerTraces {
        link: of_request.filter(|link| of_meta.as_ref() != Some(link)),
        parent: of_meta,
        state: state.filter(|text| is_tracestate(text)),
    }
}

/// Returns the `tracestate` of the headers, of which there may be several.
pub fn header_state(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let values = headers.get_all("tracestate").iter();
    let texts: Option<Vec<&str>> = values.map(|value| value.to_str().ok()).collect();
    let text = match &texts?[..] {
        [] => return None,
        [one] => Cow::Borrowed(*one),
        several => several.join(",").into(),
    };
    is_tracestate(&text).then_some(text)
}

/// Returns `true` for a text that may be passed on as `tracestate`: what W3C requires everyone to pass on, and no more.
fn is_tracestate(text: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'\t' | b' '..=b'~');
    (1..=STATE_MAX_BYTES).contains(&text.len())
        && text.bytes().all(is_plain)
        && text.split(',').count() <= STATE_MEMBERS_MAX
        && text.contains('=')
}

/// Returns the text if it is a well-formed `traceparent` (version, trace id, parent id, flags).
pub fn traceparent(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == b'0');
    // A later version may append members behind another dash; the kept part is bounded.
    let length = match bytes.len() {
        55 => true,
        56..=256 => bytes[55] == b'-' && bytes[..2] != *b"00",
        _ => false,
    };
    let well_formed = length
        && bytes.iter().all(u8::is_ascii_graphic)
        && (bytes[2], bytes[35], bytes[52]) == (b'-', b'-', b'-')
        && [&bytes[..2], &bytes[3..35], &bytes[36..52], &bytes[53..55]]
            .into_iter()
            .all(hex)
        && bytes[..2] != *b"ff"
        && !zero(&bytes[3..35])
        && !zero(&bytes[36..52]);
    well_formed.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::traceparent;

    #[test]
    fn only_well_formed_text_is_taken() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(traceparent(good), Some(good));
        let later = format!("cc{}-what-the-future-will-bring", &good[2..]);
        assert_eq!(traceparent(&later), Some(later.as_str()));
        for bad in [
            String::new(),
            good[..54].to_owned(),
            format!("{good}-x"),
            format!("ff{}", &good[2..]),
            good.to_uppercase(),
            good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            good.replace("b7ad6b7169203331", &"0".repeat(16)),
            good.replace('-', "_"),
            format!("cc{}-\n", &good[2..]),
            format!("cc{}-{}", &good[2..], "x".repeat(300)),
            "é".repeat(28),
        ] {
            assert_eq!(traceparent(&bad), None, "{bad}");
        }
    }
}
