//! 2026-07-28 and later: every request is independent, and states its version in `_meta`.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName};
use serde_json::value::RawValue;

use super::PROTOCOL_VERSION_HEADER;
use crate::{
    call::{ParamHeaders, decoded},
    methods::McpRequest,
    wire::{ProtocolVersion, RequestId, RequestMeta, RequestParams, RpcError, RpcMethod, key, raw},
};

const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
const PARAM_HEADERS: &str = "mcp-param-";

/// Makes the checks of a modern request, in the order that the specification's error codes require. `headers` exist only over
/// HTTP.
pub fn admit<'a>(
    id: RequestId<'a>,
    method: &str,
    params: RequestParams<'a>,
    headers: Option<&'a HeaderMap>,
) -> Result<McpRequest<'a>, RpcError> {
    let meta = &params.meta;
    let claimed = claimed_version(meta)?;
    let progress_token = meta.progress_token()?;
    let named = headers
        .map(|headers| RepeatedHeaders::read(headers, method, &claimed))
        .transpose()?;
    let version =
        ProtocolVersion::modern(&claimed).ok_or_else(|| RpcError::unsupported_version(&claimed))?;
    if let Some(named) = named {
        named.check(method, &params)?;
    }
    let found =
        RpcMethod::find(method, true).ok_or_else(|| RpcError::unknown_method(method, true))?;
    let super::CallerTraces {
        parent: trace,
        state: trace_state,
        link: trace_link,
    } = super::traces(meta, headers);
    let param_headers = headers.map(param_headers);
    Ok(McpRequest {
        id,
        method: found,
        params,
        version,
        progress_token: progress_token.map(Cow::Borrowed),
        trace,
        trace_state,
        trace_link,
        param_headers,
    })
}

/// Returns `true` if `_meta` has what a modern request must contain.
pub fn is_valid(meta: &RequestMeta<'_>) -> bool {
    claimed_version(meta).is_ok_and(|version| ProtocolVersion::names_modern(&version))
}

fn claimed_version<'a>(meta: &RequestMeta<'a>) -> Result<Cow<'a, str>, RpcError> {
    let missing: Vec<&str> = [
        (key::PROTOCOL_VERSION, meta.protocol_version),
        (key::CLIENT_CAPABILITIES, meta.client_capabilities),
    ]
    .into_iter()
    .filter_map(|(key, value)| value.is_none().then_some(key))
    .collect();
    if !missing.is_empty() {
        return Err(RpcError::malformed_params(format!(
            "`params._meta` lacks {}",
            missing.join(" and ")
        )));
    }
    let wrong = |key: &str, kind: &str| {
        RpcError::malformed_params(format!("`params._meta`: {key} must be {kind}"))
    };
    let version = meta.protocol_version.and_then(raw::string);
    let version = version.ok_or_else(|| wrong(key::PROTOCOL_VERSION, "a string"))?;
    let is_object = |value: Option<&RawValue>| value.is_none_or(raw::is_object);
    if !is_object(meta.client_capabilities) {
        return Err(wrong(key::CLIENT_CAPABILITIES, "an object"));
    }
    if !is_object(meta.client_info) {
        return Err(wrong(key::CLIENT_INFO, "an object"));
    }
    Ok(version)
}

/// The headers that repeat the body. They must agree with it, and only the body is ever acted on.
struct RepeatedHeaders<'a> {
    version: Option<&'a [u8]>,
    method: Option<&'a [u8]>,
    name: Option<&'a [u8]>,
}

impl<'a> RepeatedHeaders<'a> {
    /// Reads the headers. Those that are present must agree; whether any is missing is checked only once the version is known to
    /// be supported.
    fn read(headers: &'a HeaderMap, method: &str, version: &str) -> Result<Self, RpcError> {
        let named = Self {
            version: single(headers, PROTOCOL_VERSION_HEADER, "MCP-Protocol-Version")?,
            method: single(headers, METHOD_HEADER, "Mcp-Method")?,
            name: single(headers, NAME_HEADER, "Mcp-Name")?,
        };
        if named
            .version
            .is_some_and(|header| header != version.as_bytes())
        {
            return Err(mismatch(
                "MCP-Protocol-Version",
                "the version in `params._meta`",
            ));
        }
        if named
            .method
            .is_some_and(|header| header != method.as_bytes())
        {
            return Err(mismatch("Mcp-Method", "`method`"));
        }
        Ok(named)
    }

    fn check(&self, method: &str, params: &RequestParams<'_>) -> Result<(), RpcError> {
        let missing =
            |header: &str| RpcError::header_mismatch(format!("the {header} header is missing"));
        self.version
            .ok_or_else(|| missing("MCP-Protocol-Version"))?;
        self.method.ok_or_else(|| missing("Mcp-Method"))?;
        let (member, value) = match method {
            "tools/call" | "prompts/get" => ("`params.name`", params.name),
            "resources/read" => ("`params.uri`", params.uri),
            "tasks/get" | "tasks/update" | "tasks/cancel" => ("`params.taskId`", params.task_id),
            _ => return Ok(()),
        };
        // Without a readable name there is nothing to compare: the method refuses the params.
        let Some(value) = value.and_then(raw::string) else {
            return Ok(());
        };
        let header = self.name.ok_or_else(|| missing("Mcp-Name"))?;
        let header = decoded(header);
        let header = header
            .ok_or_else(|| RpcError::header_mismatch("the Mcp-Name header is not valid base64"))?;
        match header.as_ref() == value.as_bytes() {
            true => Ok(()),
            false => Err(mismatch("Mcp-Name", member)),
        }
    }
}

/// Hardly any request has one.
fn param_headers(headers: &HeaderMap) -> Box<ParamHeaders> {
    let named = headers.iter().filter_map(|(name, value)| {
        let name = name.as_str().strip_prefix(PARAM_HEADERS)?;
        Some((name.into(), trim(value.as_bytes()).into()))
    });
    named.collect()
}

/// A header that may be given once; its value without optional white space.
fn single<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
    shown: &str,
) -> Result<Option<&'a [u8]>, RpcError> {
    let mut values = headers.get_all(HeaderName::from_static(name)).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(RpcError::header_mismatch(format!(
            "the {shown} header is given more than once"
        )));
    }
    Ok(first.map(|value| trim(value.as_bytes())))
}

fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value
        .iter()
        .position(|byte| !blank(byte))
        .unwrap_or(value.len());
    let end = value
        .iter()
        .rposition(|byte| !blank(byte))
        .map_or(start, |last| last + 1);
    &value[start..end]
}

fn mismatch(header: &str, body: &str) -> RpcError {
    RpcError::header_mismatch(format!("the {header} header does not match {body}"))
}
