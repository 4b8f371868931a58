//! Reads the names of hosts and origins that may call a listener: `[http] hosts`, `origins` and `public_url`, and
//! `[admin] hosts`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anyhow::Context as _;

use super::{GatewayConfig, HttpConfig};

/// The hosts and origins of one listener, as configured.
pub struct AccessRules<'c> {
    /// The section of the configuration that has them.
    section: &'static str,
    /// The hint on what to write there so that pages of an origin may call.
    origins_hint: &'static str,
    hosts: &'c [String],
    origins: &'c [String],
    public_url: Option<&'c str>,
}

impl AccessRules<'_> {
    /// Returns the rules of the listener for agents.
    pub fn public(config: &GatewayConfig) -> AccessRules<'_> {
        Self::http(&config.http)
    }

    /// Returns the rules of the admin listener. Only pages that it serves itself may call it.
    pub fn admin(config: &GatewayConfig) -> AccessRules<'_> {
        AccessRules {
            section: "admin",
            origins_hint: "allow its host in the config: [admin] hosts",
            hosts: &config.admin.hosts,
            origins: &[],
            public_url: None,
        }
    }

    pub(crate) fn http(http: &HttpConfig) -> AccessRules<'_> {
        AccessRules {
            section: "http",
            origins_hint: "allow it in the config: [http] origins",
            hosts: &http.hosts,
            origins: &http.origins,
            public_url: http.public_url.as_deref(),
        }
    }

    /// Returns the problems: the place in the section, the fault, and the correction.
    pub fn problems(&self) -> Vec<(String, &'static str, &'static str)> {
        let mut problems = Vec::new();
        let is_host: fn(&str) -> bool = |host| HostAuthority::parse(host).is_some();
        let is_origin: fn(&str) -> bool = |origin| BrowserOrigin::parse(origin).is_some();
        for (key, names, is_name, message, hint) in [
            (
                "hosts",
                self.hosts,
                is_host,
                "must be a host name or address with an optional port",
                "write it without scheme and path, as \"mcp.example.com\"",
            ),
            (
                "origins",
                self.origins,
                is_origin,
                "must be the origin of a page: scheme, host and an optional port",
                "write it without a path, as \"https://app.example.com\"",
            ),
        ] {
            let all = names.iter().enumerate();
            let wrong = all.filter(|(_, name)| !is_name(name));
            problems.extend(wrong.map(|(index, _)| (format!("{key}/{index}"), message, hint)));
        }
        if self.public_url.is_some_and(|url| public(url).is_none()) {
            problems.push((
                "public_url".to_owned(),
                "must be an http or https URL without credentials, query and fragment",
                "write it as \"https://mcp.example.com\"",
            ));
        }
        problems
    }

    /// Returns the section of the configuration that has them.
    pub(crate) fn section(&self) -> &'static str {
        self.section
    }

    /// Returns the hint on what to write there so that pages of an origin may call.
    pub(crate) fn origins_hint(&self) -> &'static str {
        self.origins_hint
    }

    /// Reads the names. The error names the first that cannot be read.
    pub(crate) fn read(&self) -> anyhow::Result<AllowedNames> {
        let section = self.section;
        let mut hosts = parse_names(self.hosts, HostAuthority::parse, |host| {
            format!(
                "[{section}] hosts: `{host}` is not a host name or address with an optional port"
            )
        })?;
        let mut origins = parse_names(self.origins, BrowserOrigin::parse, |origin| {
            format!("[{section}] origins: `{origin}` is not an origin such as https://app.example")
        })?;
        if let Some(url) = self.public_url {
            let (host, origin) = public(url).with_context(|| {
                format!(
                    "[{section}] public_url: `{url}` is not a URL such as https://mcp.example/mcp"
                )
            })?;
            hosts.push(host);
            origins.push(origin);
        }
        Ok(AllowedNames { hosts, origins })
    }
}

/// Parses all names. The error is the fault of the first that cannot be read.
fn parse_names<T>(
    names: &[String],
    parse: fn(&str) -> Option<T>,
    fault: impl Fn(&str) -> String,
) -> anyhow::Result<Vec<T>> {
    let parsed = names
        .iter()
        .map(|name| parse(name).with_context(|| fault(name)));
    parsed.collect()
}

/// The names that a listener serves in addition to its own.
pub(crate) struct AllowedNames {
    pub hosts: Vec<HostAuthority>,
    pub origins: Vec<BrowserOrigin>,
}

/// A host with its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostAuthority {
    pub host: AuthorityHost,
    pub port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthorityHost {
    /// Lower case, without a trailing dot.
    Name(String),
    Address(IpAddr),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BrowserOrigin {
    /// `https` or not, and the port spelled out.
    Web {
        secure: bool,
        host: AuthorityHost,
        port: u16,
    },
    /// `null`, or another scheme: only literally.
    Other(String),
}

impl HostAuthority {
    /// Parses `name`, `name:port`, `address` or `[v6]:port`. Nothing else is accepted: no user, no path, no zone, no shortened
    /// addresses.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                (
                    AuthorityHost::Address(
                        IpAddr::V6(address.parse::<Ipv6Addr>().ok()?).to_canonical(),
                    ),
                    rest,
                )
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                (AuthorityHost::parse(&text[..end])?, &text[end..])
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

impl AuthorityHost {
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost",
            Self::Address(address) => address.is_loopback(),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
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

impl BrowserOrigin {
    pub(crate) fn parse(text: &str) -> Option<Self> {
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
        let HostAuthority { host, port } = HostAuthority::parse(rest)?;
        Some(Self::Web {
            secure,
            host,
            port: port.unwrap_or(if secure { 443 } else { 80 }),
        })
    }
}

fn public(url: &str) -> Option<(HostAuthority, BrowserOrigin)> {
    let (scheme, rest) = url.split_once("://")?;
    // Paths are added at its end.
    (!rest.contains(['?', '#'])).then_some(())?;
    let authority = rest.split('/').next()?;
    let origin = BrowserOrigin::parse(&format!("{scheme}://{authority}"))?;
    matches!(origin, BrowserOrigin::Web { .. }).then_some(())?;
    // The proxy in front may pass on its own port, or none.
    Some((
        HostAuthority {
            port: None,
            ..HostAuthority::parse(authority)?
        },
        origin,
    ))
}
