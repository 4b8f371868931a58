//! Signatures of plugin files: minisign's, over the bytes of the component, checked with no network.

use std::{
    fs,
    path::{Path, PathBuf},
};

use minisign_verify::{PublicKey, Signature};

use crate::PluginConfig;

/// A signature is four lines.
const SIGNATURE_MAX_BYTES: u64 = 4 << 10;

/// Returns the path of a component's signature: next to it, with minisign's ending.
pub fn signature_path(component: &Path) -> PathBuf {
    let mut path = component.as_os_str().to_owned();
    path.push(".minisig");
    path.into()
}

/// Returns `true` if a text is a public key, as `minisign -G` prints it (`RW…`).
pub fn is_public_key(text: &str) -> bool {
    PublicKey::from_base64(text.trim()).is_ok()
}

/// Returns the signer, among those that `[plugins.NAME] signed_by` names; `None` if no signature is required.
pub fn signer(
    name: &str,
    config: &PluginConfig,
    bytes: &[u8],
    signature: Option<&str>,
) -> Result<Option<String>, String> {
    if config.signed_by.is_empty() {
        return Ok(None);
    }
    let wanted = config.signed_by.join(", ");
    let Some(signature) = signature else {
        return Err(format!(
            "it has no signature, and `[plugins.{name}] signed_by` asks for one by {wanted}: put it next to the file, under \
             the same name with `.minisig` behind it, or install a component with `weir plugin install`"
        ));
    };
    let signature = Signature::decode(signature).map_err(|_| {
        "its signature is not one that minisign made, whose text has four lines".to_owned()
    })?;
    let holds = |signer: &&String| {
        let key = config
            .trusted
            .get(*signer)
            .and_then(|key| PublicKey::from_base64(key.trim()).ok());
        key.is_some_and(|key| key.verify(bytes, &signature, false).is_ok())
    };
    match config.signed_by.iter().find(holds) {
        Some(signer) => Ok(Some(signer.clone())),
        None => Err(format!(
            "its signature is not by {wanted}, whom `[plugins.{name}] signed_by` names, or the file is not the one that was signed"
        )),
    }
}

/// Returns the signature next to a component, if there is one.
pub fn read_signature(component: &Path) -> Result<Option<String>, String> {
    let path = signature_path(component);
    match fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("its signature cannot be read: {error}")),
        Ok(metadata) if metadata.len() > SIGNATURE_MAX_BYTES => {
            return Err("its signature file is too large".to_owned());
        }
        Ok(_) => {}
    }
    fs::read_to_string(&path)
        .map(Some)
        .map_err(|error| format!("its signature cannot be read: {error}"))
}
