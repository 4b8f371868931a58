//! `weir:plugin/files`: files under a named root.

use std::sync::Arc;

use weir_connections::{ConnectionHandle, files::FileRoot};

use super::{ImportAccess, denied, may_have_changed, too_large, wrong_kind};
use crate::{
    bindings::v0_1::weir::plugin::files::{Error, Host, Info, Listing},
    guest::GuestState,
};

const READ_MAX_BYTES: u32 = 1 << 20;
const PATH_MAX_BYTES: usize = 4_096;

impl Host for GuestState {
    async fn stat(&mut self, root: String, path: String) -> wasmtime::Result<Result<Info, Error>> {
        self.count_source_calls(1)?;
        let root = match self.root(&root, &path, ImportAccess::Read) {
            Ok(root) => root,
            Err(error) => return Ok(Err(error)),
        };
        let answer = self.wait(root.stat(&path)).await;
        Ok(answer
            .map(|info| Info {
                version: info.version,
                size: info.size,
            })
            .map_err(Error::from))
    }

    async fn read(
        &mut self,
        root: String,
        path: String,
        offset: u64,
        length: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, Error>> {
        self.count_source_calls(1)?;
        let root = match self.root(&root, &path, ImportAccess::Read) {
            Ok(root) => root,
            Err(error) => return Ok(Err(error)),
        };
        let answer = self
            .wait(root.read(&path, offset, length.min(READ_MAX_BYTES)))
            .await;
        Ok(answer.map_err(Error::from))
    }

    async fn replace(
        &mut self,
        root: String,
        path: String,
        if_version: Option<String>,
        content: Vec<u8>,
    ) -> wasmtime::Result<Result<String, Error>> {
        self.count_source_calls(1)?;
        let root = match self.writable_root(&root, &path) {
            Ok(root) => root,
            Err(error) => return Ok(Err(error)),
        };
        let write = async move { root.replace(&path, if_version.as_deref(), content).await };
        Ok(self
            .wait(self.hand_over(write, may_have_changed))
            .await
            .map_err(Error::from))
    }

    async fn list(
        &mut self,
        root: String,
        prefix: String,
        cursor: Option<String>,
    ) -> wasmtime::Result<Result<Listing, Error>> {
        self.count_source_calls(1)?;
        let root = match self.root(&root, &prefix, ImportAccess::Read) {
            Ok(root) => root,
            Err(error) => return Ok(Err(error)),
        };
        let answer = self.wait(root.list(&prefix, cursor.as_deref())).await;
        Ok(answer
            .map(|listing| Listing {
                paths: listing.paths,
                next: listing.next,
            })
            .map_err(Error::from))
    }
}

impl GuestState {
    pub(super) fn root(
        &self,
        name: &str,
        path: &str,
        access: ImportAccess,
    ) -> Result<Arc<FileRoot>, Error> {
        if path.len() > PATH_MAX_BYTES {
            return Err(too_large("A path has at most 4096 bytes."));
        }
        match self.connection(name, access)? {
            ConnectionHandle::Files(root) => Ok(Arc::clone(root)),
            _ => Err(wrong_kind("not a file root", name)),
        }
    }

    pub(super) fn writable_root(&self, name: &str, path: &str) -> Result<Arc<FileRoot>, Error> {
        let root = self.root(name, path, ImportAccess::Write)?;
        if root.writable() {
            Ok(root)
        } else {
            Err(denied("the root is read-only", name))
        }
    }
}
