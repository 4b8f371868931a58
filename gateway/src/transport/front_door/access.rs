//! Decides who may speak to us through a browser: Host and Origin, on by default, and CORS for those who may.
//!
//! A browser sends both headers whether a page wants it or not; a page that made its own name resolve to loopback (DNS
//! rebinding) is found out by them. Loopback names are accepted on any port, everything else must be configured.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use anyhow::Context as _;
use arc_swap::ArcSwap;
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::Response,
};

use crate::{
    config::{self, Config},
    serving::Serving,
    wire::RpcError,
};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");

struct Access {
    section: &'static str,
    hosts: Vec<Authority>,
    origins: Vec<Origin>,
    listen: Option<IpAddr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// Lower case, without a trailing dot.
    Name(String),
    Address(IpAddr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    /// `https` or not, and the port spelled out.
    Web { secure: bool, host: Host, port: u16 },
    /// `null`, or another scheme: only literally.
    Other(String),
}

/// The header that may not be here, and what the caller is told.
#[derive(Debug)]
pub(super) struct Refused {
    pub what: &'static str,
    pub error: RpcError,
}

/// The rules of the configuration in effect: made anew when that has changed.
pub(super) struct Current {
    gateway: Arc<Serving>,
    local: SocketAddr,
    rules: fn(&Config) -> AccessRules<'_>,
    made: ArcSwap<(Arc<Config>, Access)>,
}

/// The hosts and origins of one listener, as configured.
pub struct AccessRules<'c> {
    /// The section of the configuration that has them.
    section: &'static str,
    hosts: &'c [String],
    origins: &'c [String],
    public_url: Option<&'c str>,
}

impl AccessRules<'_> {
    /// Returns the rules of the listener for agents.
    pub fn public(config: &Config) -> AccessRules<'_> {
        Self::http(&config.http)
    }

    /// Returns the rules of the admin listener. Pages call it that it serves itself, and no other ones.
    pub fn admin(config: &Config) -> AccessRules<'_> {
        AccessRules {
            section: "admin",
            hosts: &config.admin.hosts,
            origins: &[],
            public_url: None,
        }
    }

    fn http(http: &config::Http) -> AccessRules<'_> {
        AccessRules {
            section: "http",
            hosts: &http.hosts,
            origins: &http.origins,
            public_url: http.public_url.as_deref(),
        }
    }

    /// Checks that they can be read.
    pub fn check(&self) -> anyhow::Result<()> {
        Access::new(self, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)).map(drop)
    }
}

impl Current {
    pub(super) fn new(
        gateway: &Arc<Serving>,
        local: SocketAddr,
        rules: fn(&Config) -> AccessRules<'_>,
    ) -> anyhow::Result<Self> {
        let config = Arc::clone(&gateway.config());
        let access = Access::new(&rules(&config), local)?;
        Ok(Self {
            gateway: gateway.clone(),
            local,
            rules,
            made: ArcSwap::from_pointee((config, access)),
        })
    }

    /// Returns the Origin, if there is one and it may call.
    pub(super) fn check<'h>(
        &self,
        uri: &Uri,
        headers: &'h HeaderMap,
    ) -> Result<Option<&'h HeaderValue>, Refused> {
        self.take_over();
        self.made.load().1.check(uri, headers)
    }

    /// Checks the Host alone, where a page of any origin may read the answer.
    pub(super) fn check_hosts(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        self.take_over();
        let checked = self.made.load().1.check_hosts(uri, headers);
        checked.map_err(|error| Refused {
            what: "host",
            error,
        })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Makes the rules of the configuration in effect. One is taken over only when they can be made of it.
    fn take_over(&self) {
        let config = self.gateway.config();
        if !Arc::ptr_eq(&self.made.load().0, &config)
            && let Ok(access) = Access::new(&(self.rules)(&config), self.local)
        {
            self.made.store(Arc::new((Arc::clone(&config), access)));
        }
    }
}

impl Access {
    fn new(rules: &AccessRules<'_>, local: SocketAddr) -> anyhow::Result<Self> {
        let section = rules.section;
        let mut hosts = Vec::new();
        for host in rules.hosts {
            let host = Authority::parse(host).with_context(|| {
                format!(
                    "[{section}] hosts: `{host}` is not a host name or address with an optional port"
                )
            })?;
            hosts.push(host);
        }
        let mut origins = Vec::new();
        for origin in rules.origins {
            let origin = Origin::parse(origin).with_context(|| {
                format!(
                    "[{section}] origins: `{origin}` is not an origin such as https://app.example"
                )
            })?;
            origins.push(origin);
        }
        if let Some(url) = rules.public_url {
            let (host, origin) = public(url).with_context(|| {
                format!(
                    "[{section}] public_url: `{url}` is not a URL such as https://mcp.example/mcp"
                )
            })?;
            hosts.push(host);
            origins.push(origin);
        }
        let listen = Some(local.ip().to_canonical()).filter(|address| !address.is_unspecified());
        Ok(Self {
            section,
            hosts,
            origins,
            listen,
        })
    }

    fn check<'h>(
        &self,
        uri: &Uri,
        headers: &'h HeaderMap,
    ) -> Result<Option<&'h HeaderValue>, Refused> {
        self.check_hosts(uri, headers).map_err(|error| Refused {
            what: "host",
            error,
        })?;
        self.check_origin(headers).map_err(|error| Refused {
            what: "origin",
            error,
        })
    }

    fn check_hosts(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), RpcError> {
        let host = single(headers, header::HOST)?
            .ok_or_else(|| RpcError::refused(400, "the Host header is missing"))?;
        self.check_host(host.to_str().unwrap_or_default())?;
        // A request that names its authority in the target is for that one, whatever Host says.
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
        match Origin::parse(text).is_some_and(|origin| self.allows(&origin)) {
            true => Ok(Some(origin)),
            false => Err(RpcError::refused(
                403,
                format!(
                    "the Origin `{}` may not call; allow it in the config: [{}] origins",
                    shown(text),
                    self.section
                ),
            )),
        }
    }

    fn check_host(&self, text: &str) -> Result<(), RpcError> {
        match Authority::parse(text).is_some_and(|authority| self.serves(&authority)) {
            true => Ok(()),
            false => Err(RpcError::refused(
                403,
                format!(
                    "the Host `{}` is not served here; allow it in the config: [{}] hosts",
                    shown(text),
                    self.section
                ),
            )),
        }
    }

    fn serves(&self, authority: &Authority) -> bool {
        self.is_own(&authority.host)
            || self.hosts.iter().any(|allowed| {
                allowed.host == authority.host
                    && match (allowed.port, authority.port) {
                        (None, _) => true,
                        (Some(port), Some(asked)) => port == asked,
                        (Some(port), None) => matches!(port, 80 | 443),
                    }
            })
    }

    fn allows(&self, origin: &Origin) -> bool {
        let served = match origin {
            Origin::Web { host, port, .. } => {
                self.is_own(host)
                    || self.serves(&Authority {
                        host: host.clone(),
                        port: Some(*port),
                    })
            }
            Origin::Other(_) => false,
        };
        served || self.origins.contains(origin)
    }

    fn is_own(&self, host: &Host) -> bool {
        host.is_loopback()
            || matches!(host, Host::Address(address) if self.listen == Some(*address))
    }
}

impl Authority {
    /// Parses `name`, `name:port`, `address` or `[v6]:port`. Nothing else is taken: no user, no path, no zone, no
    /// shortened addresses.
    fn parse(text: &str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                (
                    Host::Address(IpAddr::V6(address.parse::<Ipv6Addr>().ok()?).to_canonical()),
                    rest,
                )
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                (Host::parse(&text[..end])?, &text[end..])
            }
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            Some(digits)
                if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                Some(digits.parse().ok()?)
            }
            _ => return None,
        };
        Some(Self { host, port })
    }
}

impl Host {
    fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => address.is_loopback(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        let clean = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        if name.is_empty() || name.ends_with('.') || name.starts_with('.') || !clean {
            return None;
        }
        Some(match name.parse::<Ipv4Addr>() {
            Ok(address) => Self::Address(IpAddr::V4(address)),
            Err(_) => Self::Name(name.to_ascii_lowercase()),
        })
    }
}

impl Origin {
    fn parse(text: &str) -> Option<Self> {
        if text == "null" {
            return Some(Self::Other(text.to_owned()));
        }
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let secure = match scheme.as_str() {
            "http" => false,
            "https" => true,
            _ if rest.is_empty() || rest.contains(|character: char| character.is_whitespace()) => {
                return None;
            }
            _ => return Some(Self::Other(format!("{scheme}://{rest}"))),
        };
        let Authority { host, port } = Authority::parse(rest)?;
        Some(Self::Web {
            secure,
            host,
            port: port.unwrap_or(if secure { 443 } else { 80 }),
        })
    }
}

/// Answers what a browser asks before it sends the request itself.
pub(super) fn preflight(request: &HeaderMap, from_allowed_origin: bool) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, METHODS);
    if !from_allowed_origin {
        return response;
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    // Mcp-Param-* headers have no closed list, so what is asked for is granted.
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

/// Lets a page of that origin read the answer.
pub(super) fn expose(response: &mut HeaderMap, origin: &HeaderValue) {
    response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    response.insert(header::VARY, HeaderValue::from_static("Origin"));
    response.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"),
    );
}

/// Returns `true` if the request is for this machine by a name of loopback.
pub(in crate::transport) fn is_own(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| Authority::parse(host.to_str().ok()?));
    host.is_some_and(|authority| authority.host.is_loopback())
}

/// Returns the name of loopback and the port that the request is for, if it is this listener's port.
pub(super) fn own_authority(headers: &HeaderMap, local: SocketAddr) -> Option<String> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let authority = Authority::parse(host)?;
    let is_own = authority.host.is_loopback() && authority.port == Some(local.port());
    is_own.then(|| host.to_ascii_lowercase())
}

/// Returns `true` if the request is for an address, and comes from no page of another one.
pub(crate) fn is_by_address(headers: &HeaderMap) -> bool {
    let host = headers
        .get(header::HOST)
        .and_then(|host| Authority::parse(host.to_str().ok()?));
    !headers.contains_key(header::ORIGIN)
        && host.is_some_and(|authority| matches!(authority.host, Host::Address(_)))
}

fn public(url: &str) -> Option<(Authority, Origin)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let origin = Origin::parse(&format!("{scheme}://{authority}"))?;
    matches!(origin, Origin::Web { .. }).then_some(())?;
    // The proxy in front may pass on its own port or none.
    Some((
        Authority {
            port: None,
            ..Authority::parse(authority)?
        },
        origin,
    ))
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

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

#[cfg(test)]
mod tests;
