//! Decides which addresses a URL that a stranger named may lead to.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _},
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// The addresses that a request may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkReach {
    /// Only addresses of the internet: a stranger named the URL.
    Public,
    /// Every address: an operator named the URL, or what named it is in a private network itself.
    Anywhere,
}

impl NetworkReach {
    /// Returns the reach of what the server of a URL may name: one in a private network may name addresses in it.
    pub async fn named_by(url: &Url) -> Self {
        let port = url.port_or_known_default().unwrap_or(443);
        let addresses: Vec<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => match look_up(name.to_owned(), port).await {
                Ok(found) => found.into_iter().map(|found| found.ip()).collect(),
                Err(_) => Vec::new(),
            },
            None => Vec::new(),
        };
        if !addresses.is_empty() && !addresses.into_iter().any(is_public) {
            Self::Anywhere
        } else {
            Self::Public
        }
    }

    /// Checks a URL: https, or http on this machine if that is in reach; without credentials and fragment. A name is
    /// looked up and checked when the request is made.
    pub fn check(self, url: &str) -> Result<Url, String> {
        let parsed =
            Url::parse(url).map_err(|error| format!("`{}` is not a URL: {error}", short(url)))?;
        let refused = |why: &str| Err(format!("`{}` {why}", short(url)));
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return refused("holds credentials");
        }
        if parsed.fragment().is_some() {
            return refused("has a fragment");
        }
        let address = match parsed.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::from(address)),
            Some(Host::Domain(_)) => None,
            None => return refused("has no host"),
        };
        let is_here = parsed.host_str() == Some("localhost")
            || address.is_some_and(|address| address.to_canonical().is_loopback());
        match parsed.scheme() {
            "https" => {}
            "http" if is_here => {}
            _ => return refused("is neither https nor on this machine"),
        }
        let is_private = is_here || address.is_some_and(|address| !is_public(address));
        if self == Self::Public && is_private {
            return refused(
                "leads into a private network, which a server of the internet may not name",
            );
        }
        Ok(parsed)
    }
}

/// Returns the addresses of a name.
async fn look_up(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    let asks = move || {
        (name.as_str(), port)
            .to_socket_addrs()
            .map(Iterator::collect)
    };
    weir_admission::run_blocking(asks).await?
}

/// Resolves names to the addresses in reach.
pub(super) struct ReachResolver(pub(super) NetworkReach);

#[derive(Debug)]
struct NotPublic;

impl fmt::Display for NotPublic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the host has no address of the internet")
    }
}

impl std::error::Error for NotPublic {}

impl Resolve for ReachResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let mut found = look_up(name.as_str().to_owned(), 0).await?;
            if reach == NetworkReach::Public {
                found.retain(|found| is_public(found.ip()));
                if found.is_empty() {
                    return Err(NotPublic.into());
                }
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

/// Returns `true` for an address of the internet.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    !(first == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || first >= 240
        || (first == 100 && second & 0xc0 == 64)
        || (first, second, third) == (192, 0, 0)
        || (first == 198 && second & 0xfe == 18)
        || address.is_documentation())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // NAT64 and 6to4 lead to the IPv4 address that they hold.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => embedded(high, low),
        [0x2001, 0xdb8, ..] | [0x64, 0xff9b, ..] | [0x2001, 0, ..] => false,
        // Only this range has global addresses.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn short(url: &str) -> String {
    url.chars()
        .filter(|it| !it.is_control())
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_names_addresses_of_the_internet_alone() {
        for url in [
            "http://example.com/token",
            "https://user@example.com/",
            "https://example.com/#x",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://017700000001/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://0.0.0.0/",
            "https://169.254.169.254/latest/meta-data",
            "https://10.1.2.3/",
            "https://100.64.0.1/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://[64:ff9b::7f00:1]/",
            "https://[2002:7f00:1::]/",
            "https://localhost/",
            "http://localhost/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "gopher://example.com/",
            "data:text/plain,x",
            "nothing",
        ] {
            assert!(NetworkReach::Public.check(url).is_err(), "{url}");
        }
        for url in [
            "https://example.com/token",
            "https://8.8.8.8/",
            "https://[2606:4700::1]/",
        ] {
            assert!(NetworkReach::Public.check(url).is_ok(), "{url}");
        }
        for url in [
            "http://127.0.0.1:9/",
            "https://10.1.2.3/",
            "http://localhost:1/",
        ] {
            assert!(NetworkReach::Anywhere.check(url).is_ok(), "{url}");
        }
        for url in ["http://10.1.2.3/", "http://example.com/"] {
            assert!(NetworkReach::Anywhere.check(url).is_err(), "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_is_checked_when_it_is_looked_up() {
        use std::str::FromStr as _;
        let name = || Name::from_str("localhost").expect("a name");
        let resolve = |reach| ReachResolver(reach).resolve(name());
        assert!(resolve(NetworkReach::Public).await.is_err());
        assert!(resolve(NetworkReach::Anywhere).await.is_ok());
        let here = Url::parse("http://127.0.0.1:1/mcp").expect("a URL");
        assert_eq!(NetworkReach::named_by(&here).await, NetworkReach::Anywhere);
        let there = Url::parse("https://8.8.8.8/mcp").expect("a URL");
        assert_eq!(NetworkReach::named_by(&there).await, NetworkReach::Public);
    }
}
