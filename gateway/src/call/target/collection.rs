//! A collection, read or written through its adapter.

mod bind;
mod run;
mod shape;
mod summary;

use std::sync::Arc;

use weir_plugin_host::{Change, Page, Query, SummaryPage, SummaryQuery};

pub(super) use self::{
    bind::bind,
    run::run,
    shape::{explain, shape},
};
use crate::cursor::Bound;

/// What an adapter is asked.
pub(in crate::call) enum CollectionRequest {
    /// Records, and the list that the next page's cursor will be bound to.
    Read(Arc<Query>, Option<Bound>),
    Summarize(Arc<SummaryQuery>),
    Write(Arc<Change>),
}

/// What an adapter answered.
pub(in crate::call) enum CollectionAnswer<'r> {
    Page {
        query: &'r Query,
        bound: Option<&'r Bound>,
        page: Page,
    },
    Summary(&'r SummaryQuery, SummaryPage),
    /// JSON.
    Record(String),
}

impl CollectionRequest {
    /// Returns `true` if the collection may be changed.
    pub(super) fn writes(&self) -> bool {
        match self {
            Self::Read(..) | Self::Summarize(_) => false,
            Self::Write(_) => true,
        }
    }
}
