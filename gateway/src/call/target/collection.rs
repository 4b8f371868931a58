//! A collection, read or written through its adapter.

mod bind;
mod listing;
mod related;
mod run;
mod shape;
mod summary;

use std::sync::Arc;

use weir_plugin_host::{
    AdapterChange, AdapterPage, AdapterQuery, AdapterSummaryPage, AdapterSummaryQuery,
};

pub(super) use self::{
    bind::bind,
    run::run,
    shape::{explain, shape},
};
use self::{listing::ListTotal, related::RelatedPage};
use crate::cursor::CursorScope;

/// The request to an adapter.
pub(in crate::call) enum CollectionRequest {
    Read(ReadRequest),
    Summarize(Arc<AdapterSummaryQuery>),
    Write(Arc<AdapterChange>),
}

/// A query for an adapter.
pub(in crate::call) struct ReadRequest {
    query: Arc<AdapterQuery>,
    /// The list to which the next page's cursor will be bound.
    bound: Option<CursorScope>,
    /// The count of all records of the list, if the arguments request it.
    count: Option<Arc<AdapterSummaryQuery>>,
    /// The requested related records, by their place among the relations of the tool.
    include: Vec<usize>,
}

/// The answer of an adapter.
pub(in crate::call) enum CollectionAnswer<'r> {
    Page {
        request: &'r ReadRequest,
        page: AdapterPage,
        /// The total of all pages, if requested.
        total: Option<ListTotal>,
        /// The related records of a lookup, if requested.
        related: Vec<RelatedPage>,
    },
    Summary(&'r AdapterSummaryQuery, AdapterSummaryPage),
    /// JSON.
    Record(String),
}

impl CollectionAnswer<'_> {
    /// Returns the bytes of its records, without related ones.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Page { page, .. } => page.records.len(),
            Self::Summary(_, page) => page.records.len(),
            Self::Record(record) => record.len(),
        }
    }
}

impl CollectionRequest {
    /// Returns `true` if the collection may be changed.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Read(_) | Self::Summarize(_) => false,
            Self::Write(_) => true,
        }
    }
}
