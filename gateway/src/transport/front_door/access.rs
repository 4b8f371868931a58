//! Decides which browsers' requests are accepted: Host and Origin, on by default, and CORS for allowed origins.
//!
//! A browser sends both headers whether a page wants it or not; they expose a page that made its own name resolve to loopback
//! (DNS rebinding). Loopback names are accepted on any port; everything else must be configured.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use arc_swap::ArcSwap;
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::Response,
};

use crate::{
    config::{
        GatewayConfig,
        access::{AccessRules, AllowedNames, AuthorityHost, BrowserOrigin, HostAuthority},
    },
    serving::ServingGateway,
    wire::RpcError,
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");

struct AccessCheck {
    section: &'static str,
    origins_hint: &'static str,
    names: AllowedNames,
    listen: Option<IpAddr>,
}

/// The forbidden header, and the message for the caller.
#[derive(Debug)]
pub(super) struct RefusedHeader {
    pub what: &'static str,
    pub error: RpcError,
}

/// The rules of the configuration in effect: rebuilt when that has changed.
pub(super) struct CurrentAccess {
    gateway: Arc<ServingGateway>,
    local: SocketAddr,
    rules: fn(&GatewayConfig) -> AccessRules<'_>,
    made: ArcSwap<(Arc<GatewayConfig>, AccessCheck)>,
}

impl CurrentAccess {
    pub(super) fn new(
        gateway: &Arc<ServingGateway>,
        local: SocketAddr,
        rules: fn(&GatewayConfig) -> AccessRules<'_>,
    ) -> anyhow::Result<Self> {
        let config = Arc::clone(&gateway.config());
        let access = AccessCheck::new(&rules(&config), local)?;
        Ok(Self {
            gateway: gateway.clone(),
            local,
            rules,
            made: ArcSwap::from_pointee((config, access)),
        })
    }

    /// Returns the Origin, if there is one and it is allowed.
    pub(super) fn check<'h>(
        &self,
        uri: &Uri,
        headers: &'h HeaderMap,
    ) -> Result<Option<&'h HeaderValue>, RefusedHeader> {
        self.take_over();
        self.made.load().1.check(uri, headers)
    }

    /// Checks only the Host, where a page of any origin may read the answer.
    pub(super) fn check_hosts(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), RefusedHeader> {
        self.take_over();
        let checked = self.made.load().1.check_hosts(uri, headers);
        checked.map_err(|error| RefusedHeader {
            what: "host",
            error,
        })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Makes the rules of the configuration in effect. A configuration is applied only if its rules can be made.
    fn take_over(&self) {
        let config = self.gateway.config();
        if !Arc::ptr_eq(&self.made.load().0, &config)
            && let Ok(access) = AccessCheck::new(&(self.rules)(&config), self.local)
        {
            self.made.store(Arc::new((Arc::clone(&config), access)));
        }
    }
}

impl AccessCheck {
    fn new(rules: &AccessRules<'_>, local: SocketAddr) -> anyhow::Result<Self> {
        let listen = Some(local.ip().to_canonical()).filter(|address| !address.is_unspecified());
        Ok(Self {
            section: rules.section(),
            origins_hint: rules.origins_hint(),
            names: rules.read()?,
            listen,
        })
    }

    fn check<'h>(
        &self,
        uri: &Uri,
        headers: &'h HeaderMap,
    ) -> Result<Option<&'h HeaderValue>, RefusedHeader> {
        self.check_hosts(uri, headers)
            .map_err(|error| RefusedHeader {
                what: "host",
                error,
            })?;
        self.check_origin(headers).map_err(|error| RefusedHeader {
            what: "origin",
            error,
        })
    }

    fn check_hosts(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), RpcError> {
        let host = single(headers, header::HOST)?
            .ok_or_else(|| RpcError::refused(400, "the Host header is missing"))?;
        self.check_host(host.to_str().unwrap_or_default())?;
        // If the request target names an authority, it applies whatever Host contains.
        match uri.authority() {
            Some(authority) => self.check_host(authority.as_str()),
            None => Ok(()),
        }
    }

    fn check_origin<'h>(
        &self,
        headers: &'h HeaderMap,
    ) -> Result<Option<&'h HeaderValue>, RpcError> {
        let Some(origin) = single(headers, header::ORIGIN)? else {
            return Ok(None);
        };
        let text = origin.to_str().unwrap_or_default();
        match BrowserOrigin::parse(text).is_some_and(|origin| self.allows(&origin)) {
            true => Ok(Some(origin)),
            false => Err(RpcError::refused(
                403,
                format!(
                    "the Origin `{}` may not call; {}",
                    truncate(text),
                    self.origins_hint
                ),
            )),
        }
    }

    fn check_host(&self, text: &str) -> Result<(), RpcError> {
        match HostAuthority::parse(text).is_some_and(|authority| self.serves(&authority)) {
            true => Ok(()),
            false => Err(RpcError::refused(
                403,
                format!(
                    "the Host `{}` is not served here; allow it in the config: [{}] hosts",
                    truncate(text),
                    self.section
                ),
            )),
        }
    }

    fn serves(&self, authority: &HostAuthority) -> bool {
        self.is_own(&authority.host)
            || self.names.hosts.iter().any(|allowed| {
                allowed.host == authority.host
                    && match (allowed.port, authority.port) {
                        (None, _) => true,
                        (Some(port), Some(asked)) => port == asked,
                        (Some(port), None) => matches!(port, 80 | 443),
                    }
            })
    }

    fn allows(&self, origin: &BrowserOrigin) -> bool {
        let served = match origin {
            BrowserOrigin::Web { host, port, .. } => {
                self.is_own(host)
                    || self.serves(&HostAuthority {
                        host: host.clone(),
                        port: Some(*port),
                    })
            }
            BrowserOrigin::Other(_) => false,
        };
        served || self.names.origins.contains(origin)
    }

    fn is_own(&self, host: &AuthorityHost) -> bool {
        host.is_loopback()
            || matches!(host, AuthorityHost::Address(address) if self.listen == Some(*address))
    }
}

/// Answers the preflight request of a browser.
pub(super) fn preflight(request: &HeaderMap, from_allowed_origin: bool) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, METHODS);
    if !from_allowed_origin {
        return response;
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    // Mcp-Param-* headers have no closed list, so any requested header is granted.
    if let Some(asked) = request.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
    }
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    );
    if request.contains_key("access-control-request-private-network") {
        headers.insert(
            "access-control-allow-private-network",
            HeaderValue::from_static("true"),
        );
    }
    response
}

/// Allows a page of that origin to read the answer.
pub(super) fn expose(response: &mut HeaderMap, origin: &HeaderValue) {
    response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    response.insert(header::VARY, HeaderValue::from_static("Origin"));
    response.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"),
    );
}

/// Returns `true` if the request names this machine by a loopback name.
pub(in crate::transport) fn is_own(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| HostAuthority::parse(host.to_str().ok()?));
    host.is_some_and(|authority| authority.host.is_loopback())
}

/// Returns the loopback name and the port of the request, if it is this listener's port.
pub(super) fn own_authority(headers: &HeaderMap, local: SocketAddr) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let authority = HostAuthority::parse(host)?;
    let is_own = authority.host.is_loopback() && authority.port == Some(local.port());
    is_own.then(|| host.to_ascii_lowercase())
}

/// Returns `true` if the request is for an address, and does not come from a page of another one.
pub(crate) fn is_by_address(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| HostAuthority::parse(host.to_str().ok()?));
    !headers.contains_key(header::ORIGIN)
        && host.is_some_and(|authority| matches!(authority.host, AuthorityHost::Address(_)))
}

fn single(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&HeaderValue>, RpcError> {
    let mut values = headers.get_all(&name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(RpcError::refused(
            400,
            format!("the {name} header is given more than once"),
        )),
    }
}

fn truncate(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests;
