//! The protocol up to 2025-11-25: a handshake, then requests of the version that it agreed on.

use std::borrow::Cow;

use axum::http::HeaderMap;

use super::PROTOCOL_VERSION_HEADER;
use crate::{
    methods::{self, McpRequest},
    wire::{GivenParams, ProtocolVersion, RequestId, RequestParams, RpcError, RpcMethod},
};

/// Makes the few checks of a legacy request. `headers` exist only over HTTP, for the trace.
pub fn admit<'a>(
    id: RequestId<'a>,
    method: &str,
    params: RequestParams<'a>,
    version: ProtocolVersion,
    headers: Option<&'a HeaderMap>,
) -> Result<McpRequest<'a>, RpcError> {
    let found =
        RpcMethod::find(method, false).ok_or_else(|| RpcError::unknown_method(method, false))?;
    let progress_token = params.meta.progress_token()?;
    let version = match found {
        RpcMethod::Initialize => methods::negotiate(&params)?,
        _ => version,
    };
    let super::CallerTraces {
        parent: trace,
        state: trace_state,
        link: trace_link,
    } = super::traces(&params.meta, headers);
    Ok(McpRequest {
        id,
        method: found,
        params,
        version,
        progress_token: progress_token.map(Cow::Borrowed),
        trace,
        trace_state,
        trace_link,
        param_headers: None,
    })
}

/// Returns the version that a legacy HTTP request names in its header; `None` if it names none.
pub fn header_version(headers: &HeaderMap) -> Result<Option<ProtocolVersion>, RpcError> {
    let mut values = headers.get_all(PROTOCOL_VERSION_HEADER).iter();
    let Some(first) = values.next() else {
        return Ok(None);
    };
    let version = first
        .to_str()
        .ok()
        .and_then(|text| ProtocolVersion::legacy(text.trim_matches([' ', '\t'])));
    match (version, values.next()) {
        (Some(version), None) => Ok(Some(version)),
        (_, Some(_)) => Err(RpcError::invalid_request(
            "the MCP-Protocol-Version header is given more than once",
        )),
        (None, None) => Err(RpcError::invalid_request(format!(
            "the MCP-Protocol-Version header names none of {}",
            ProtocolVersion::ALL.map(ProtocolVersion::as_str).join(", ")
        ))),
    }
}

/// The request in a notification.
pub enum LegacyNotification {
    Cancelled(Box<str>),
    Nothing,
}

impl LegacyNotification {
    /// Reads a notification. Unknown ones are ignored, never an error.
    pub fn read(method: &str, params: GivenParams<'_>) -> Self {
        if method != "notifications/cancelled" {
            return Self::Nothing;
        }
        let request = params
            .read()
            .ok()
            .and_then(|params| params.request_id)
            .and_then(RequestId::read);
        request.map_or(Self::Nothing, |id| Self::Cancelled(id.key()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that gets the list of versions continues with one of these, so the list has the versions of both eras.
    #[test]
    fn an_unknown_version_is_told_those_of_both_eras() {
        let headers = HeaderMap::from_iter([(
            PROTOCOL_VERSION_HEADER.parse().expect("a name"),
            "1999-01-01".parse().expect("a value"),
        )]);
        let message = header_version(&headers).expect_err("no version").message;
        assert!(
            ProtocolVersion::ALL
                .iter()
                .all(|version| message.contains(version.as_str())),
            "{message}"
        );
    }
}
