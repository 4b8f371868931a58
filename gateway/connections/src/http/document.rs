//! Fetches a small public document, such as the keys of an issuer, and posts a small form.

use std::{sync::OnceLock, time::Duration};

use reqwest::{
    Client, Response,
    header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE},
    redirect::Policy,
};

use super::{
    install_tls,
    reach::{NetworkReach, ReachResolver},
};

const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A document as it was published, and how long it may be kept by its publisher's word.
pub struct FetchedDocument {
    pub text: Vec<u8>,
    pub kept_for: Option<Duration>,
}

/// Fetches a document of at most `size_max` bytes and follows no redirect. The error states what could not be fetched, and
/// contains nothing of an answer but its status. The caller decides which URLs may be fetched.
pub async fn fetch_document(url: &str, size_max: usize) -> Result<FetchedDocument, String> {
    let failed = |error: reqwest::Error| format!("{url}: {}", error.without_url());
    let client = client(url).map_err(failed)?;
    let mut response = client.get(url).send().await.map_err(failed)?;
    if response.status().as_u16() != 200 {
        return Err(format!("{url} answered {}", response.status().as_u16()));
    }
    let kept_for = response
        .headers()
        .get(CACHE_CONTROL)
        .and_then(|value| max_age(value.to_str().ok()?));
    let text = whole(&mut response, url, size_max).await?;
    Ok(FetchedDocument { text, kept_for })
}

/// A request for a small document of JSON.
pub struct DocumentRequest<'r> {
    pub url: &'r str,
    pub reach: NetworkReach,
    /// The content type and the body of a POST; without it the request is a GET.
    pub body: Option<(&'static str, String)>,
    /// The name and the password of HTTP's Basic scheme.
    pub basic: Option<(&'r str, &'r str)>,
    pub size_max: usize,
}

/// The answer to a request, whatever its status.
pub struct DocumentAnswer {
    pub status: u16,
    pub text: Vec<u8>,
}

/// Makes a request once. No redirect is followed and no proxy of the environment is used. The error contains nothing of the
/// request or the answer.
pub async fn request_document(request: DocumentRequest<'_>) -> Result<DocumentAnswer, String> {
    let DocumentRequest {
        url,
        reach,
        body,
        basic,
        size_max,
    } = request;
    let checked = reach.check(url)?;
    let failed = |error: reqwest::Error| format!("{url}: {}", causes(&error.without_url()));
    let client = reaching(reach, checked.scheme() == "http").map_err(failed)?;
    let mut asked = match body {
        None => client.get(checked),
        Some((kind, body)) => client.post(checked).header(CONTENT_TYPE, kind).body(body),
    };
    if let Some((name, password)) = basic {
        asked = asked.basic_auth(name, Some(password));
    }
    let asked = asked.header(ACCEPT, "application/json");
    let mut response = asked.send().await.map_err(failed)?;
    let status = response.status().as_u16();
    let text = whole(&mut response, url, size_max).await?;
    Ok(DocumentAnswer { status, text })
}

/// Returns the client for a reach. Connections are not kept, since each server is asked seldom.
fn reaching(reach: NetworkReach, is_plain: bool) -> reqwest::Result<&'static Client> {
    static CLIENTS: [OnceLock<Client>; 3] = [const { OnceLock::new() }; 3];
    let place = match (is_plain, reach) {
        (true, _) => &CLIENTS[0],
        (false, NetworkReach::Anywhere) => &CLIENTS[1],
        (false, NetworkReach::Public) => &CLIENTS[2],
    };
    if let Some(client) = place.get() {
        return Ok(client);
    }
    install_tls();
    let mut builder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .pool_max_idle_per_host(0)
        .dns_resolver(ReachResolver(reach))
        .no_proxy();
    if is_plain {
        builder = builder.tls_certs_only([]); // what the machine trusts is not read for nothing
    }
    let client = builder.build()?;
    Ok(place.get_or_init(|| client))
}

/// Returns an error with its causes, which explain what went wrong with a connection.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

async fn whole(response: &mut Response, url: &str, size_max: usize) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    loop {
        let piece = response.chunk().await;
        match piece.map_err(|error| format!("{url}: {}", error.without_url()))? {
            None => return Ok(text),
            Some(piece) if text.len() + piece.len() > size_max => {
                return Err(format!("{url} answered more than {size_max} bytes"));
            }
            Some(piece) => text.extend_from_slice(&piece),
        }
    }
}

/// Returns a client that follows no redirect. A proxy from the environment is used only for remote hosts.
fn client(url: &str) -> reqwest::Result<Client> {
    install_tls();
    let builder = Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(TIMEOUT)
        .dns_resolver(ReachResolver(NetworkReach::Anywhere));
    match url.starts_with("http:") {
        true => builder.no_proxy().build(),
        false => builder.build(),
    }
}

fn max_age(value: &str) -> Option<Duration> {
    let mut directives = value.split(',').map(str::trim);
    let seconds = directives.find_map(|directive| directive.strip_prefix("max-age="))?;
    Some(Duration::from_secs(seconds.parse().ok()?))
}
