//! An OCI registry of one test, from Debian's package; killed and removed when dropped.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{client::http, place, upstream::free_port, upstream::wait_for_port};

pub struct Registry {
    folder: TempDir,
    child: Child,
    /// `127.0.0.1:PORT`, as references begin.
    pub host: String,
}

impl Registry {
    pub fn start() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("weir-registry-")
            .tempdir()
            .expect("a temporary folder");
        let port = free_port();
        let config = json!({
            "version": 0.1,
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": folder.path().join("storage")}},
            "http": {"addr": format!("127.0.0.1:{port}"), "relativeurls": true},
        });
        let file = folder.path().join("config.yml");
        fs::write(&file, config.to_string()).expect("a file in the temporary folder");
        let program = place::present(
            PathBuf::from("/usr/bin/docker-registry"),
            "cargo xtask test",
        );
        let child = Command::new(program)
            .arg("serve")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry starts");
        wait_for_port(port, "docker-registry");
        Self {
            folder,
            child,
            host: format!("127.0.0.1:{port}"),
        }
    }

    /// Puts a component there in the layout of the CNCF; returns the digest of its manifest.
    pub async fn push(
        &self,
        name: &str,
        tag: &str,
        component: &[u8],
        annotations: Value,
    ) -> String {
        let config = self
            .blob(
                name,
                br#"{"architecture":"wasm","os":"wasip2","layerDigests":[]}"#,
            )
            .await;
        let layer = self.blob(name, component).await;
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": typed(config, "application/vnd.wasm.config.v0+json"),
            "layers": [typed(layer, "application/wasm")],
            "annotations": annotations,
        });
        self.manifest(name, tag, &manifest).await
    }

    /// Puts a blob there; returns its descriptor, still without a type.
    pub async fn blob(&self, name: &str, bytes: &[u8]) -> Value {
        let digest = digest(bytes);
        let begun = http()
            .post(self.url(&format!("{name}/blobs/uploads/")))
            .send()
            .await
            .expect("an upload begins");
        let to = begun.headers()["location"]
            .to_str()
            .expect("a place")
            .to_owned();
        let separator = if to.contains('?') { '&' } else { '?' };
        let to = format!("http://{}{to}{separator}digest={digest}", self.host);
        let put = http()
            .put(to)
            .body(bytes.to_vec())
            .send()
            .await
            .expect("the upload is answered");
        assert!(put.status().is_success(), "{put:?}");
        json!({"digest": digest, "size": bytes.len()})
    }

    pub async fn manifest(&self, name: &str, tag: &str, manifest: &Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let digest = digest(&bytes);
        let kind = manifest["mediaType"].as_str().expect("a type");
        let put = http()
            .put(self.url(&format!("{name}/manifests/{tag}")))
            .header("content-type", kind)
            .body(bytes);
        let put = put.send().await.expect("the manifest is answered");
        assert!(
            put.status().is_success(),
            "{}",
            put.text().await.unwrap_or_default()
        );
        digest
    }

    /// Returns the path of a blob or a manifest on its disk.
    pub fn file(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        let blobs: &Path = &self
            .folder
            .path()
            .join("storage/docker/registry/v2/blobs/sha256");
        blobs.join(&hex[..2]).join(hex).join("data")
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/v2/{path}", self.host)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A descriptor with its type.
pub fn typed(mut descriptor: Value, media_type: &str) -> Value {
    descriptor["mediaType"] = media_type.into();
    descriptor
}

pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}
