//! `weir:plugin/parts`: parts of one file.

use super::{ImportAccess, may_have_changed, too_large};
use crate::{
    bindings::v0_1::weir::plugin::parts::{Edit, Error, Host, Part},
    guest::GuestState,
};

/// The bounds on the bytes of one read, and on the parts or edits that one call may name.
const READ_MAX_BYTES: u64 = 4 << 20;
const PARTS_MAX: usize = 10_000;

impl Host for GuestState {
    async fn read(
        &mut self,
        root: String,
        path: String,
        parts: Vec<Part>,
    ) -> wasmtime::Result<Result<Vec<Vec<u8>>, Error>> {
        self.count_source_calls(1)?;
        let bytes = parts.iter().map(|part| u64::from(part.length)).sum::<u64>();
        if parts.len() > PARTS_MAX || bytes > READ_MAX_BYTES {
            return Ok(Err(too_large(
                "At most 10,000 parts of 4 MiB together can be read at once.",
            )));
        }
        let root = match self.root(&root, &path, ImportAccess::Read) {
            Ok(root) => root,
            Err(error) => return Ok(Err(error)),
        };
        let parts = parts.iter().map(|part| (part.at, part.length)).collect();
        Ok(self
            .wait(root.read_parts(&path, parts))
            .await
            .map_err(Error::from))
    }

    async fn replace(
        &mut self,
        root: String,
        path: String,
        if_version: String,
        edits: Vec<Edit>,
    ) -> wasmtime::Result<Result<String, Error>> {
        self.count_source_calls(1)?;
        if edits.len() > PARTS_MAX {
            return Ok(Err(too_large("At most 10,000 edits can be made at once.")));
        }
        let root = match self.writable_root(&root, &path) {
            Ok(root) => root,
            Err(error) => return Ok(Err(error)),
        };
        let edits = edits
            .into_iter()
            .map(|edit| (edit.at, edit.length, edit.content))
            .collect();
        let write = async move { root.replace_parts(&path, &if_version, edits).await };
        Ok(self
            .wait(self.hand_over(write, may_have_changed))
            .await
            .map_err(Error::from))
    }
}
