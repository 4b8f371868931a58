//! Files that must be signed: checked at every load, that of a kept build too.

use std::path::{Path, PathBuf};

use super::{Loader, component};
use crate::{PluginConfig, signature};

impl Loader {
    /// Reads the file once more, since what was compiled is what was signed: the digests are compared.
    pub(super) async fn check_signature(
        &mut self,
        name: &str,
        config: &PluginConfig,
        path: PathBuf,
        digest: &str,
    ) -> Result<(), String> {
        if config.signed_by.is_empty() {
            return Ok(());
        }
        let (name, config, digest) = (name.to_owned(), config.clone(), digest.to_owned());
        let key = (digest.clone(), config.trusted.clone());
        tokio::task::spawn_blocking(move || check(&name, &config, &path, &digest))
            .await
            .map_err(|error| format!("checking its signature failed: {error}"))??;
        self.signed = std::mem::take(&mut self.signed).into_iter().filter(|(digest, _)| *digest != key.0).collect();
        self.signed.push(key);
        Ok(())
    }

    /// Returns `true` if a build that was loaded before is signed by one of those that are trusted now.
    pub(super) fn is_signed(&self, config: &PluginConfig, digest: &str) -> bool {
        let held = |(signed, trusted): &(String, _)| signed == digest && *trusted == config.trusted;
        config.signed_by.is_empty() || self.signed.iter().any(held)
    }
}

fn check(name: &str, config: &PluginConfig, path: &Path, digest: &str) -> Result<(), String> {
    let bytes = std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))?;
    if component::digest(&bytes) != digest {
        return Err("it changed while it was being loaded".to_owned());
    }
    let found = signature::read_signature(path)?;
    signature::signer(name, config, &bytes, found.as_deref()).map(drop)
}
