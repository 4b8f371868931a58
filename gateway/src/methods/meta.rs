//! Writes `_meta` of a result: the proof that its call is recorded, the members from its maker, and those of every modern result.

use std::io::Write as _;

use weir_audit::AuditReceipt;

use crate::{
    call::RECEIPT,
    catalogue::{CatalogueListing, ServerInfo},
    wire::{ResultWriter, key, write_string},
};

/// The key of the mark that a completed write could not be recorded.
const AUDIT: &str = "dev.weir/audit";

#[derive(Clone, Copy)]
pub(super) struct ReceiptMeta<'a> {
    pub(super) receipt: Option<&'a AuditReceipt>,
    /// A completed write could not be recorded.
    pub(super) unrecorded: bool,
}

/// Writes the member, unless it would be empty. `theirs`: members by their names, with values that are JSON.
pub(super) fn write_meta<'m>(
    answer: &mut ResultWriter,
    listing: Option<&CatalogueListing>,
    proved: ReceiptMeta<'_>,
    theirs: impl ExactSizeIterator<Item = (&'m str, &'m str)>,
) {
    if proved.receipt.is_none() && !proved.unrecorded && theirs.len() == 0 && listing.is_none() {
        return;
    }
    let meta = answer.member("_meta");
    meta.push(b'{');
    // Neither needs an escape: they are digits, letters, `:` and `-`.
    if let Some(receipt) = proved.receipt {
        write!(meta, "\"{RECEIPT}\":\"{receipt}\",").expect("memory can be written");
    }
    if proved.unrecorded {
        write!(meta, "\"{AUDIT}\":\"not recorded\",").expect("memory can be written");
    }
    for (name, value) in theirs {
        write_string(meta, name);
        meta.push(b':');
        meta.extend_from_slice(value.as_bytes());
        meta.push(b',');
    }
    match listing {
        Some(listing) => write_server_member(meta, &listing.server),
        None => drop(meta.pop()),
    }
    meta.push(b'}');
}

/// Writes `_meta` with the endpoint's `serverInfo`, as on every modern result.
pub(super) fn write_server(result: &mut ResultWriter, server: &ServerInfo) {
    let meta = result.member("_meta");
    meta.push(b'{');
    write_server_member(meta, server);
    meta.push(b'}');
}

/// Writes only `serverInfo`, for a `_meta` that has other members.
fn write_server_member(meta: &mut Vec<u8>, server: &ServerInfo) {
    meta.push(b'"');
    meta.extend_from_slice(key::SERVER_INFO.as_bytes());
    meta.extend_from_slice(b"\":");
    write_server_info(meta, server, true);
}

/// Writes the server. Older clients do not support a title.
pub(super) fn write_server_info(out: &mut Vec<u8>, server: &ServerInfo, with_title: bool) {
    out.extend_from_slice(br#"{"name":"#);
    write_string(out, &server.name);
    if let (Some(title), true) = (&server.title, with_title) {
        out.extend_from_slice(br#","title":"#);
        write_string(out, title);
    }
    out.extend_from_slice(br#","version":"#);
    write_string(out, &server.version);
    out.push(b'}');
}
