//! Files that must be signed: checked at every load, that of a kept build too.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Loader, component};
use crate::{PluginConfig, library::LibraryCode, signature};

impl Loader {
    /// Reads the file once more, since what was compiled is what was signed: the digests are compared.
    pub(super) async fn check_signature(
        &mut self,
        name: &str,
        config: &PluginConfig,
        path: PathBuf,
        digest: &str,
    ) -> Result<(), String> {
        let read = move || Ok((read(&path)?, signature::read_signature(&path)?));
        self.check(name, config, digest, read).await
    }

    /// Checks a library that serves: the copy that it runs from, and the signature that was beside the copied file. What
    /// lies there now may be another build.
    pub(super) async fn check_library_signature(
        &mut self,
        name: &str,
        config: &PluginConfig,
        code: &Arc<LibraryCode>,
    ) -> Result<(), String> {
        let library = Arc::clone(code);
        let read = move || Ok((library.read()?, library.signature.clone()));
        self.check(name, config, &code.digest, read).await
    }

    /// `read` returns the build's bytes and its signature.
    async fn check(
        &mut self,
        name: &str,
        config: &PluginConfig,
        digest: &str,
        read: impl FnOnce() -> Result<(Vec<u8>, Option<String>), String> + Send + 'static,
    ) -> Result<(), String> {
        if config.signed_by.is_empty() {
            return Ok(());
        }
        let (name, by, build) = (name.to_owned(), config.clone(), digest.to_owned());
        let check = move || {
            let (bytes, signature) = read()?;
            if component::digest(&bytes) != build {
                return Err("it changed while it was being loaded".to_owned());
            }
            signature::signer(&name, &by, &bytes, signature.as_deref()).map(drop)
        };
        tokio::task::spawn_blocking(check)
            .await
            .map_err(|error| format!("checking its signature failed: {error}"))??;
        self.note_signature(config, digest);
        Ok(())
    }

    /// Remembers a build whose signature was found good, if it needs one.
    pub(super) fn note_signature(&mut self, config: &PluginConfig, digest: &str) {
        if config.signed_by.is_empty() {
            return;
        }
        self.signed.retain(|(signed, _)| signed != digest);
        self.signed
            .push((digest.to_owned(), config.trusted.clone()));
    }

    /// Returns `true` if a build that was loaded before is signed by one of those that are trusted now.
    pub(super) fn is_signed(&self, config: &PluginConfig, digest: &str) -> bool {
        let held = |(signed, trusted): &(String, _)| signed == digest && *trusted == config.trusted;
        config.signed_by.is_empty() || self.signed.iter().any(held)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))
}
