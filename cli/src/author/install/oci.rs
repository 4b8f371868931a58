//! A component from a registry of the OCI distribution protocol: its manifest, then the one layer that is a component. Why the
//! three requests are our own: docs/decisions/oci-pull.md.

mod reference;

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use http_auth::parse_challenges;
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT, WWW_AUTHENTICATE},
};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use self::reference::OciReference;
use super::fetch::{COMPONENT_MAX_BYTES, FetchedComponent, body, client, is_here, is_safe};

/// The bound that the protocol sets for registries.
const MANIFEST_MAX_BYTES: usize = 4 << 20;
const TOKEN_MAX_BYTES: usize = 64 << 10;
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json, \
                         application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json";
/// The type of the layer that the CNCF's layout asks for, and the one before it.
const WASM: [&str; 2] = [
    "application/wasm",
    "application/vnd.wasm.content.layer.v1+wasm",
];
/// An annotation of the manifest or of the layer: the whole text of the signature.
const SIGNATURE: &str = "dev.weir.minisig";
/// The name that `oras push` gives to the file a layer was made from.
const TITLE: &str = "org.opencontainers.image.title";

#[derive(Deserialize)]
struct OciManifest {
    #[serde(default)]
    layers: Vec<OciDescriptor>,
    /// Present in an index of several images.
    #[serde(default)]
    manifests: Vec<OciDescriptor>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciDescriptor {
    media_type: String,
    digest: String,
    size: u64,
    annotations: Option<BTreeMap<String, String>>,
}

impl OciDescriptor {
    fn annotation(&self, key: &str) -> Option<&String> {
        self.annotations.as_ref()?.get(key)
    }
}

pub(super) async fn fetch(reference: &OciReference) -> anyhow::Result<FetchedComponent> {
    let mut registry = OciRepository::from_reference(reference)?;
    let manifest = registry.manifest(reference).await?;
    let digest = format!("sha256:{}", hex::encode(Sha256::digest(&manifest)));
    if let Some(wanted) = reference
        .digest
        .as_ref()
        .filter(|wanted| **wanted != digest)
    {
        bail!("{reference}: its manifest has the digest {digest}, and {wanted} was asked for");
    }
    let manifest: OciManifest = serde_json::from_slice(&manifest)
        .with_context(|| format!("{reference}: its manifest cannot be read"))?;
    let layer = component(&manifest).with_context(|| reference.to_string())?;
    let component = registry.layer(reference, layer).await?;
    let of_image = manifest
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(SIGNATURE));
    let signature = of_image.or_else(|| layer.annotation(SIGNATURE)).cloned();
    Ok(FetchedComponent {
        component,
        signature,
        source: reference.pinned(digest).to_string(),
    })
}

/// Returns the only layer that is a component; there may be other layers, such as a policy.
fn component(manifest: &OciManifest) -> anyhow::Result<&OciDescriptor> {
    if !manifest.manifests.is_empty() {
        let images: Vec<&str> = manifest
            .manifests
            .iter()
            .take(8)
            .map(|image| image.digest.as_str())
            .collect();
        bail!(
            "it is an index of several images: name one by its digest, such as {}",
            images.join(", ")
        );
    }
    let titled = |layer: &OciDescriptor| {
        layer
            .annotation(TITLE)
            .is_some_and(|title| title.ends_with(".wasm"))
    };
    let is_one =
        |layer: &&OciDescriptor| WASM.contains(&layer.media_type.as_str()) || titled(layer);
    let mut components = manifest.layers.iter().filter(is_one);
    match (components.next(), components.next()) {
        (Some(layer), None) => Ok(layer),
        (None, _) => {
            let kinds: Vec<&str> = manifest
                .layers
                .iter()
                .take(8)
                .map(|layer| layer.media_type.as_str())
                .collect();
            bail!(
                "it has no layer of the type {}, but [{}]",
                WASM[0],
                kinds.join(", ")
            )
        }
        (Some(_), Some(_)) => {
            bail!("it has several layers that are components: one is installed at a time")
        }
    }
}

/// One repository of a registry, without credentials.
struct OciRepository {
    client: Client,
    base: Url,
    token: Option<String>,
}

impl OciRepository {
    fn from_reference(reference: &OciReference) -> anyhow::Result<Self> {
        let base = reference.base()?;
        Ok(Self {
            client: client(is_here(&base))?,
            base,
            token: None,
        })
    }

    async fn manifest(&mut self, reference: &OciReference) -> anyhow::Result<Vec<u8>> {
        let url = self.url(reference, "manifests", reference.version())?;
        let mut response = self
            .get(&url)
            .send()
            .await
            .with_context(|| format!("{url} cannot be fetched"))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            self.token = Some(self.token(reference, &response).await?);
            response = self
                .get(&url)
                .send()
                .await
                .with_context(|| format!("{url} cannot be fetched"))?;
        }
        body(given(response, reference)?, &url, MANIFEST_MAX_BYTES).await
    }

    async fn layer(
        &self,
        reference: &OciReference,
        layer: &OciDescriptor,
    ) -> anyhow::Result<Vec<u8>> {
        ensure!(
            reference::is_digest(&layer.digest),
            "{reference}: the digest of its layer is not `sha256:` and 64 of 0-9 and a-f"
        );
        let size = usize::try_from(layer.size).unwrap_or(usize::MAX);
        ensure!(
            size <= COMPONENT_MAX_BYTES,
            "{reference}: its component has {size} bytes; at most {COMPONENT_MAX_BYTES}"
        );
        let url = self.url(reference, "blobs", &layer.digest)?;
        let response = self
            .get(&url)
            .send()
            .await
            .with_context(|| format!("{url} cannot be fetched"))?;
        let component = body(given(response, reference)?, &url, size).await?;
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(&component)));
        ensure!(
            digest == layer.digest,
            "{reference}: its component has the digest {digest}, and the manifest says {}",
            layer.digest
        );
        Ok(component)
    }

    fn url(&self, reference: &OciReference, kind: &str, of: &str) -> anyhow::Result<Url> {
        Ok(self
            .base
            .join(&format!("v2/{}/{kind}/{of}", reference.repository))?)
    }

    fn get(&self, url: &Url) -> RequestBuilder {
        let request = self.client.get(url.clone()).header(ACCEPT, MANIFESTS);
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Returns the token that a public registry gives to anonymous clients.
    async fn token(&self, reference: &OciReference, refusal: &Response) -> anyhow::Result<String> {
        #[derive(Deserialize)]
        struct OciToken {
            token: Option<String>,
            access_token: Option<String>,
        }
        let challenge = refusal
            .headers()
            .get(WWW_AUTHENTICATE)
            .and_then(|value| value.to_str().ok());
        let challenges = challenge
            .and_then(|text| parse_challenges(text).ok())
            .unwrap_or_default();
        let Some(bearer) = challenges
            .iter()
            .find(|challenge| challenge.scheme.eq_ignore_ascii_case("Bearer"))
        else {
            return Err(login_wanted(reference));
        };
        let parameter = |name: &str| {
            let found = bearer
                .params
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        let realm = parameter("realm").unwrap_or_default();
        let mut url = Url::parse(&realm).with_context(|| {
            format!("{reference}: the registry hands out tokens at `{realm}`, which is not a URL")
        })?;
        ensure!(
            is_safe(&url, is_here(&self.base)),
            "{reference}: the registry hands out tokens at {url}, which is not https"
        );
        url.query_pairs_mut().append_pair(
            "scope",
            &format!("repository:{}:pull", reference.repository),
        );
        if let Some(service) = parameter("service") {
            url.query_pairs_mut().append_pair("service", &service);
        }
        let response = self
            .client
            .get(url.clone())
            .send()
            .await
            .with_context(|| format!("{url} cannot be fetched"))?;
        let text = body(given(response, reference)?, &url, TOKEN_MAX_BYTES).await?;
        let token: OciToken =
            serde_json::from_slice(&text).with_context(|| format!("{url} answered no token"))?;
        token
            .token
            .or(token.access_token)
            .with_context(|| format!("{url} answered no token"))
    }
}

fn given(response: Response, reference: &OciReference) -> anyhow::Result<Response> {
    match response.status() {
        status if status.is_success() => Ok(response),
        StatusCode::NOT_FOUND => bail!("{reference} does not exist"),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(login_wanted(reference)),
        status => bail!("{reference}: {} answered {status}", response.url()),
    }
}

fn login_wanted(reference: &OciReference) -> anyhow::Error {
    anyhow::anyhow!(
        "{reference} is not public: fetch it with a client that is logged in (`oras pull`), and install the file"
    )
}
