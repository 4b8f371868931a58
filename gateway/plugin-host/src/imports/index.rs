//! `weir:plugin/index`: ordered indexes on disk.

use std::sync::Arc;

use weir_connections::{
    ConnectionError, FailureCode,
    index::{self, IndexStore},
};

use super::{error, too_large};
use crate::{
    bindings::v0_1::weir::plugin::index::{Entry, Error, Host, Name, Range},
    guest::{CallPurpose, GuestState},
};

/// The bound on entries that are read on the thread of the call: handing so few to another thread would cost more.
const READ_HERE_MAX: u32 = 128;
/// Entries of one `add`.
const ADD_MAX: usize = 100_000;
const NAME_MAX_BYTES: usize = 8_192;

impl Host for GuestState {
    async fn find(&mut self, name: Name) -> wasmtime::Result<Option<u64>> {
        self.count_other_call()?;
        let found = self
            .indexes(&name)
            .ok()
            .and_then(|indexes| indexes.find(self.named(&name)));
        Ok(found)
    }

    async fn entries(
        &mut self,
        name: Name,
        range: Range,
    ) -> wasmtime::Result<Result<Vec<Entry>, Error>> {
        self.count_source_calls(1)?;
        let indexes = match self.indexes(&name) {
            Ok(indexes) => indexes,
            Err(error) => return Ok(Err(error)),
        };
        let range = index::IndexRange {
            from: range.from,
            to: range.to,
            descending: range.descending,
            after: range.after.map(|entry| (entry.key, entry.at)),
            limit: range.limit,
        };
        let found = if range.limit <= READ_HERE_MAX {
            indexes.range(self.named(&name), &range)
        } else {
            self.elsewhere(indexes, name, move |indexes, name, _| {
                indexes.range(name, &range)
            })
            .await
        };
        let entry = |entry: index::IndexEntry| Entry {
            key: entry.key,
            at: entry.at,
            length: entry.length,
        };
        Ok(found
            .map(|entries| entries.into_iter().map(entry).collect())
            .map_err(Error::from))
    }

    async fn later(&mut self, work: String) -> wasmtime::Result<()> {
        self.count_other_call()?;
        if self.profile.indexes.is_some() {
            self.call.writes.ask_later(work);
        }
        Ok(())
    }

    async fn begin(&mut self, name: Name) -> wasmtime::Result<Result<u64, Error>> {
        self.count_source_calls(1)?;
        let indexes = match self.may_build(&name) {
            Ok(indexes) => indexes,
            Err(error) => return Ok(Err(error)),
        };
        let begun = self
            .elsewhere(indexes, name, |indexes, name, bytes_max| {
                indexes.begin(name, bytes_max)
            })
            .await;
        Ok(begun.map_err(Error::from))
    }

    async fn add(
        &mut self,
        name: Name,
        entries: Vec<Entry>,
        from: u64,
        to: u64,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.count_source_calls(1)?;
        if entries.len() > ADD_MAX {
            return Ok(Err(too_large(
                "At most 100,000 entries can be added at once.",
            )));
        }
        let indexes = match self.may_build(&name) {
            Ok(indexes) => indexes,
            Err(error) => return Ok(Err(error)),
        };
        let entry = |entry: Entry| index::IndexEntry {
            key: entry.key,
            at: entry.at,
            length: entry.length,
        };
        let entries: Vec<index::IndexEntry> = entries.into_iter().map(entry).collect();
        let added = self
            .elsewhere(indexes, name, move |indexes, name, _| {
                indexes.add(name, &entries, from, to)
            })
            .await;
        Ok(added.map_err(Error::from))
    }

    async fn finish(&mut self, name: Name) -> wasmtime::Result<Result<(), Error>> {
        self.count_source_calls(1)?;
        let indexes = match self.may_build(&name) {
            Ok(indexes) => indexes,
            Err(error) => return Ok(Err(error)),
        };
        let finished = self
            .elsewhere(indexes, name, |indexes, name, bytes_max| {
                indexes.finish(name, bytes_max)
            })
            .await;
        Ok(finished.map_err(Error::from))
    }

    async fn extend(
        &mut self,
        source: String,
        old: String,
        new: String,
    ) -> wasmtime::Result<Result<(), Error>> {
        self.count_source_calls(1)?;
        let name = Name {
            source,
            version: old,
            column: String::new(),
        };
        let indexes = match self.indexes(&name) {
            Ok(indexes) if self.call.purpose == CallPurpose::Write => indexes,
            Ok(_) => {
                return Ok(Err(error(
                    FailureCode::Forbidden,
                    "Only a write changes a source.",
                )));
            }
            Err(error) => return Ok(Err(error)),
        };
        let extend = move |indexes: &IndexStore, name: index::IndexName<'_>, _| {
            indexes.extend(name.plugin, name.source, name.version, &new)
        };
        let extended = self.elsewhere(indexes, name, extend).await;
        Ok(extended.map_err(Error::from))
    }
}

impl GuestState {
    fn indexes(&self, name: &Name) -> Result<Arc<IndexStore>, Error> {
        if name.source.len() + name.version.len() + name.column.len() > NAME_MAX_BYTES {
            return Err(too_large("The name of an index has at most 8192 bytes."));
        }
        self.profile.indexes.clone().ok_or_else(|| {
            error(
                FailureCode::Forbidden,
                "The plugin has no room for indexes.",
            )
        })
    }

    /// Returns the indexes for building, which takes longer than callers wait, and so happens only in deferred work.
    fn may_build(&self, name: &Name) -> Result<Arc<IndexStore>, Error> {
        match self.call.purpose {
            CallPurpose::Later => self.indexes(name),
            _ => Err(error(
                FailureCode::Forbidden,
                "Indexes are built in work that was asked for with `later`.",
            )),
        }
    }

    /// Returns the full name of an index. It has the plugin's name in it, so that no plugin meets the indexes of
    /// another one.
    fn named<'n>(&'n self, name: &'n Name) -> index::IndexName<'n> {
        let Name {
            source,
            version,
            column,
        } = name;
        index::IndexName {
            plugin: &self.profile.name,
            source,
            version,
            column,
        }
    }

    /// Runs work on a thread that may wait for the disk. No lock of the guest is held in the meantime.
    fn elsewhere<T, F>(
        &self,
        indexes: Arc<IndexStore>,
        name: Name,
        work: F,
    ) -> impl Future<Output = Result<T, ConnectionError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(&IndexStore, index::IndexName<'_>, u64) -> Result<T, ConnectionError>
            + Send
            + 'static,
    {
        let (plugin, bytes_max) = (
            Arc::clone(&self.profile.name),
            self.profile.limits.index_max,
        );
        let task = weir_admission::run_blocking(move || {
            let Name {
                source,
                version,
                column,
            } = &name;
            work(
                &indexes,
                index::IndexName {
                    plugin: &plugin,
                    source,
                    version,
                    column,
                },
                bytes_max,
            )
        });
        let waited = self.wait(task);
        async move {
            match waited.await {
                Ok(answer) => answer,
                Err(error) => Err(ConnectionError::new(
                    FailureCode::UpstreamError,
                    "the index access failed",
                )
                .details(error)),
            }
        }
    }
}
