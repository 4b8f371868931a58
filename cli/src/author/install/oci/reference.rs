//! `REGISTRY/REPOSITORY[:TAG][@sha256:HEX]`, as every client of a registry writes it.

use std::{fmt, str::FromStr};

use anyhow::{Context as _, bail, ensure};
use reqwest::Url;

use super::is_here;

#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct OciReference {
    registry: String,
    pub(super) repository: String,
    tag: Option<String>,
    /// The digest of the manifest.
    pub(super) digest: Option<String>,
}

impl OciReference {
    /// Returns the version to request: a digest before a tag.
    pub(super) fn version(&self) -> &str {
        self.digest
            .as_deref()
            .or(self.tag.as_deref())
            .unwrap_or("latest")
    }

    pub(super) fn pinned(&self, digest: String) -> Self {
        Self {
            digest: Some(digest),
            ..self.clone()
        }
    }

    /// Https, but on this machine, where registries of developers have no certificates.
    pub(super) fn base(&self) -> anyhow::Result<Url> {
        // Docker Hub's registry does not listen at the name that people use.
        let host = if self.registry == "docker.io" {
            "registry-1.docker.io"
        } else {
            &self.registry
        };
        let url = |scheme: &str| Url::parse(&format!("{scheme}://{host}/"));
        let unusable = || {
            format!(
                "`{}` is not a registry: write a host, with its port if it has one",
                self.registry
            )
        };
        let mut base = url("https").with_context(unusable)?;
        if is_here(&base) {
            base = url("http").with_context(unusable)?;
        }
        let is_host_alone =
            base.path() == "/" && base.query().is_none() && base.fragment().is_none();
        ensure!(
            is_host_alone && base.username().is_empty() && base.password().is_none(),
            unusable()
        );
        Ok(base)
    }
}

pub(super) fn is_digest(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.strip_prefix("sha256:")
        .is_some_and(|digest| digest.len() == 64 && digest.bytes().all(is_hex))
}

fn is_repository(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let fits = |part: &str| {
        let ends = [part.bytes().next(), part.bytes().last()];
        ends.iter().all(|end| end.is_some_and(is_plain))
            && part
                .bytes()
                .all(|byte| is_plain(byte) || b"._-".contains(&byte))
    };
    text.len() <= 255 && text.split('/').all(fits)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(byte) || b".-".contains(&byte))
}

impl FromStr for OciReference {
    type Err = anyhow::Error;

    /// Without `oci://`.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        let Some((registry, path)) = name.split_once('/') else {
            bail!("oci://{text} names no registry: oci://REGISTRY/REPOSITORY[:TAG][@sha256:HEX]");
        };
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        ensure!(
            is_repository(repository),
            "oci://{text}: the repository `{repository}` is not words of a-z, 0-9, `.`, `_` and `-` with `/` between them"
        );
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            bail!(
                "oci://{text}: the tag `{tag}` is not 1 to 128 of letters, digits, `.`, `_` and `-`"
            );
        }
        if let Some(digest) = digest.filter(|digest| !is_digest(digest)) {
            bail!("oci://{text}: the digest `{digest}` is not `sha256:` and 64 of 0-9 and a-f");
        }
        let owned = |text: Option<&str>| text.map(ToOwned::to_owned);
        let (registry, repository) = (registry.to_owned(), repository.to_owned());
        let reference = Self {
            registry,
            repository,
            tag: owned(tag),
            digest: owned(digest),
        };
        reference.base()?;
        Ok(reference)
    }
}

impl fmt::Display for OciReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_reference_is_read_and_written_as_it_was() {
        for (text, base, repository, version) in [
            ("ghcr.io/a/b:1.0", "https://ghcr.io/", "a/b", "1.0"),
            ("ghcr.io/a", "https://ghcr.io/", "a", "latest"),
            (
                "docker.io/a/b_c--d/e.f",
                "https://registry-1.docker.io/",
                "a/b_c--d/e.f",
                "latest",
            ),
            ("localhost:5000/a:T", "http://localhost:5000/", "a", "T"),
            ("127.0.0.1:5000/a:t", "http://127.0.0.1:5000/", "a", "t"),
            ("[::1]:5000/a:t", "http://[::1]:5000/", "a", "t"),
            (
                "example.org:8443/a/b:t",
                "https://example.org:8443/",
                "a/b",
                "t",
            ),
            (
                &format!("ghcr.io/a/b:1.0@{DIGEST}"),
                "https://ghcr.io/",
                "a/b",
                DIGEST,
            ),
            (
                &format!("ghcr.io/a/b@{DIGEST}"),
                "https://ghcr.io/",
                "a/b",
                DIGEST,
            ),
        ] {
            let reference: OciReference = text
                .parse()
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(reference.base().expect("a URL").as_str(), base, "{text}");
            assert_eq!(
                (&*reference.repository, reference.version()),
                (repository, version),
                "{text}"
            );
            assert_eq!(reference.to_string(), format!("oci://{text}"));
        }
    }

    #[test]
    fn what_could_reach_another_place_is_refused() {
        let short = format!("ghcr.io/a@{}", &DIGEST[..70]);
        let capitals = format!("ghcr.io/a@{}", DIGEST.to_uppercase().replace("SHA", "sha"));
        for text in [
            "",
            "made",
            "/a",
            "ghcr.io/",
            "ghcr.io/../a",
            "ghcr.io/a/../b",
            "ghcr.io/A",
            "ghcr.io/a b",
            "ghcr.io/a//b",
            "ghcr.io/a/",
            "ghcr.io/a?b",
            "ghcr.io/a#b",
            "ghcr.io/a%2e",
            "ghcr.io/a:",
            "ghcr.io/a:-b",
            "ghcr.io/a:b:c",
            "ghcr.io/a:b/c",
            "me:secret@ghcr.io/a",
            "ghcr.io:x/a",
            "gh cr.io/a",
            "ghcr.io?x/a",
            "ghcr.io/a@sha256:",
            "ghcr.io/a@md5:00",
            &short,
            &capitals,
        ] {
            assert!(text.parse::<OciReference>().is_err(), "{text}");
        }
    }
}
