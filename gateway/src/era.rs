//! The two protocol eras: legacy (initialize handshake) and modern (per-request `_meta`).
//!
//! The body says which era a message is of. A header never makes a message legacy, so that no header can lead around a
//! check of the modern era; it may only show that a modern client forgot its `_meta`.

pub(crate) mod batch;
pub mod cancellations;
pub mod legacy;
pub mod modern;
pub mod sessions;

use std::borrow::Cow;

use axum::http::HeaderMap;

use crate::{
    methods::traceparent,
    wire::{Meta, RpcError, Version, raw},
};

pub const PROTOCOL_VERSION_HEADER: &str = "mcp-protocol-version";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    /// Returns the era of a message. `headers` are there only over HTTP.
    pub fn of(
        method: &str,
        meta: &Meta<'_>,
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
        .any(|value| value.to_str().is_ok_and(Version::names_modern))
}

/// Returns the caller's trace: `_meta.traceparent` first, then the HTTP header. A malformed one is ignored.
fn trace<'a>(meta: &Meta<'a>, headers: Option<&'a HeaderMap>) -> Option<Cow<'a, str>> {
    let of_meta = meta
        .traceparent
        .and_then(raw::string)
        .filter(|text| traceparent(text).is_some());
    of_meta.or_else(|| {
        let header = headers?.get("traceparent")?.to_str().ok()?;
        traceparent(header).map(Cow::Borrowed)
    })
}
