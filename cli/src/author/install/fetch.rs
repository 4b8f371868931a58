//! Fetches a component and its signature from a file, a URL or a registry. Every size is bounded.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context as _, bail, ensure};
use reqwest::{
    Client, Response, StatusCode, Url,
    redirect::{Attempt, Policy},
};
use sha2::{Digest as _, Sha256};
use weir_plugin_host::signature::read_signature;

use super::oci;

/// The bound of the plugins folder.
pub(super) const COMPONENT_MAX_BYTES: usize = 64 << 20;
const SIGNATURE_MAX_BYTES: usize = 4 << 10;
const PATIENCE: Duration = Duration::from_secs(120);
const REDIRECTS_MAX: usize = 5;

pub(super) struct FetchedComponent {
    pub(super) component: Vec<u8>,
    /// The signature that came with it: from a file next to it, or in the manifest of a registry.
    pub(super) signature: Option<String>,
    /// Where it came from, for its origin. For a registry this includes the digest of the manifest.
    pub(super) source: String,
}

/// `@sha256:HEX` behind a file or a URL is the digest of the component; behind a registry's reference, of the manifest.
pub(super) async fn fetch(source: &str) -> anyhow::Result<FetchedComponent> {
    if let Some(reference) = source.strip_prefix("oci://") {
        return oci::fetch(&reference.parse()?).await;
    }
    let (place, wanted) = match source.rsplit_once("@sha256:") {
        Some((place, digest)) => (place, Some(digest)),
        None => (source, None),
    };
    let fetched = if place.contains("://") {
        from_url(place).await?
    } else {
        from_file(place)?
    };
    let digest = hex::encode(Sha256::digest(&fetched.component));
    if let Some(wanted) = wanted.filter(|wanted| !wanted.eq_ignore_ascii_case(&digest)) {
        bail!("{place} has the sha256 {digest}, and {wanted} was asked for");
    }
    Ok(fetched)
}

/// A signature that is stored in a different place than its component.
pub(super) async fn fetch_signature(place: &str) -> anyhow::Result<String> {
    let text = if place.contains("://") {
        let url = checked(place)?;
        let text = get(&client(is_here(&url))?, url, SIGNATURE_MAX_BYTES).await?;
        text.with_context(|| format!("{place} does not exist"))?
    } else {
        bounded(Path::new(place), SIGNATURE_MAX_BYTES)?
    };
    String::from_utf8(text).with_context(|| format!("{place} is not a signature"))
}

fn from_file(place: &str) -> anyhow::Result<FetchedComponent> {
    let path = Path::new(place);
    let component = bounded(path, COMPONENT_MAX_BYTES)?;
    let signature = read_signature(path).map_err(anyhow::Error::msg)?;
    Ok(FetchedComponent {
        component,
        signature,
        source: place.to_owned(),
    })
}

fn bounded(path: &Path, max: usize) -> anyhow::Result<Vec<u8>> {
    let unreadable = || format!("{} cannot be read", path.display());
    let size = fs::metadata(path).with_context(unreadable)?.len();
    ensure!(
        size <= max as u64,
        "{} has {size} bytes; at most {max}",
        path.display()
    );
    fs::read(path).with_context(unreadable)
}

async fn from_url(place: &str) -> anyhow::Result<FetchedComponent> {
    let url = checked(place)?;
    let client = client(is_here(&url))?;
    let component = get(&client, url.clone(), COMPONENT_MAX_BYTES).await?;
    let component = component.with_context(|| format!("{place} does not exist"))?;
    let mut beside = url;
    beside.set_path(&format!("{}.minisig", beside.path()));
    let signature = get(&client, beside, SIGNATURE_MAX_BYTES).await?;
    let signature = signature.and_then(|text| String::from_utf8(text).ok());
    Ok(FetchedComponent {
        component,
        signature,
        source: place.to_owned(),
    })
}

fn checked(place: &str) -> anyhow::Result<Url> {
    let url = Url::parse(place).with_context(|| format!("{place} is not a URL"))?;
    ensure!(
        is_safe(&url, is_here(&url)),
        "{place} is neither a file nor an https URL, and anyone on the way could change it"
    );
    Ok(url)
}

/// Returns `true` for a URL on this machine, which no third party can intercept.
pub(super) fn is_here(url: &Url) -> bool {
    matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"))
}

/// Plain http is accepted only for this machine, and only where it was requested.
pub(super) fn is_safe(url: &Url, from_here: bool) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && from_here && is_here(url))
}

/// Returns a client that follows few redirects, and none over which a third party could change the answer.
pub(super) fn client(from_here: bool) -> anyhow::Result<Client> {
    weir_connections::http::install_tls();
    let follow = move |attempt: Attempt<'_>| {
        if attempt.previous().len() > REDIRECTS_MAX {
            attempt.error("it redirects too often")
        } else if !is_safe(attempt.url(), from_here) {
            attempt.error("it redirects to a URL that is not https")
        } else {
            attempt.follow()
        }
    };
    Ok(Client::builder()
        .redirect(Policy::custom(follow))
        .timeout(PATIENCE)
        .build()?)
}

/// None where there is nothing.
async fn get(client: &Client, url: Url, max: usize) -> anyhow::Result<Option<Vec<u8>>> {
    let response = client
        .get(url.clone())
        .send()
        .await
        .with_context(|| format!("{url} cannot be fetched"))?;
    match response.status() {
        StatusCode::NOT_FOUND => return Ok(None),
        status => ensure!(status.is_success(), "{url} answered {status}"),
    }
    body(response, &url, max).await.map(Some)
}

pub(super) async fn body(mut response: Response, url: &Url, max: usize) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(part) = response
        .chunk()
        .await
        .with_context(|| format!("{url} ended early"))?
    {
        if body.len() + part.len() > max {
            bail!("{url} has more than {max} bytes");
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}
