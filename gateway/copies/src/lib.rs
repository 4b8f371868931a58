//! Copies of the audit trail in a bucket.
//!
//! A chain is copied in parts of whole lines, `PREFIX/CHAIN/SEGMENT/FROM-END.jsonl`, where FROM is the offset of the part's first
//! byte and END that of the byte after it. A part is put whole or not at all, and put again with at least the same bytes if it is
//! not known to have arrived.

mod bucket;
mod http;
mod shipper;

pub use bucket::{BucketAddress, CopyBucket, CopyError};
pub use shipper::{ChainShipper, CopyFigures, CopyStatus};
