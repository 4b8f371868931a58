//! A collection, read or written through its adapter.

mod bind;
mod listing;
mod run;
mod shape;
mod summary;

use std::sync::Arc;

use weir_plugin_host::{Change, Page, Query, SummaryPage, SummaryQuery};

use self::listing::ListTotal;
pub(super) use self::{
    bind::bind,
    run::run,
    shape::{explain, shape},
};
use crate::cursor::Bound;

/// What an adapter is asked.
pub(in crate::call) enum CollectionRequest {
    Read(ReadRequest),
    Summarize(Arc<SummaryQuery>),
    Write(Arc<Change>),
}

/// Records that an adapter is asked for.
pub(in crate::call) struct ReadRequest {
    query: Arc<Query>,
    /// The list that the next page's cursor will be bound to.
    bound: Option<Bound>,
    /// The count of all records of the list, if the question asks for it.
    count: Option<Arc<SummaryQuery>>,
}

/// What an adapter answered.
pub(in crate::call) enum CollectionAnswer<'r> {
    Page {
        request: &'r ReadRequest,
        page: Page,
        /// Of all pages together, if the question asks for it.
        total: Option<ListTotal>,
    },
    Summary(&'r SummaryQuery, SummaryPage),
    /// JSON.
    Record(String),
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
