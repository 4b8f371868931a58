//! Adapters that are part of the program itself: trusted code without a sandbox, on the same path as every plugin.
//!
//! A program that embeds the gateway installs them before it starts; `weir` itself installs none.

use std::{
    collections::HashMap,
    future::{Future, pending},
    pin::Pin,
    sync::Arc,
    time::Instant,
};

use parking_lot::RwLock;
use weir_admission::ConcurrencyLimiter;

use crate::{
    AdapterChange, AdapterFailure, AdapterPage, AdapterQuery, AdapterSummaryPage,
    AdapterSummaryQuery, CallContext, CollectionRef, GuestError, HostConfig,
    call::{GuestReply, GuestRequest, result_fits},
    config::PluginLimits,
    engine::EngineSize,
    guest::WriteTracker,
};

/// The answer of an adapter, once it has come.
pub type Answered<'a, T> = Pin<Box<dyn Future<Output = Result<T, GuestError>> + Send + 'a>>;

/// The functions that a plugin exports for its collections, as a trait. Its answers are trusted no more than a guest's.
pub trait NativeAdapter: Send + Sync {
    /// Returns the name that contracts use. No plugin can provide an adapter of this name.
    fn name(&self) -> &str;

    /// Returns the shape, as JSON, of the collection that these settings reach.
    fn describe<'a>(&'a self, settings: &'a str) -> Answered<'a, String>;

    fn read<'a>(
        &'a self,
        context: &'a CallContext,
        collection: &'a CollectionRef,
        query: &'a AdapterQuery,
    ) -> Answered<'a, AdapterPage>;

    /// Counts or summarizes records. Called only if its shapes declare `summaries`.
    fn summarize<'a>(
        &'a self,
        _context: &'a CallContext,
        _collection: &'a CollectionRef,
        _query: &'a AdapterSummaryQuery,
    ) -> Answered<'a, AdapterSummaryPage> {
        Box::pin(async { Err(GuestError::no_summaries()) })
    }

    /// Returns the record that the source now holds, as JSON. It is dropped at the deadline, but not when the caller
    /// goes.
    fn write<'a>(
        &'a self,
        context: &'a CallContext,
        collection: &'a CollectionRef,
        change: &'a AdapterChange,
    ) -> Answered<'a, String>;
}

static INSTALLED: RwLock<Vec<Arc<dyn NativeAdapter>>> = RwLock::new(Vec::new());

/// Adds this adapter to every host that is made from now on.
pub fn install(adapter: Arc<dyn NativeAdapter>) {
    INSTALLED.write().push(adapter);
}

/// The native adapters of one host, each with its bounds: those of `[plugins.NAME]`, by the adapter's name.
pub(crate) struct NativeRegistry(HashMap<String, NativeEntry>);

pub(crate) struct NativeEntry {
    adapter: Arc<dyn NativeAdapter>,
    turns: Arc<ConcurrencyLimiter>,
    result_max_bytes: usize,
}

impl NativeRegistry {
    pub(crate) fn installed(config: &HostConfig) -> Self {
        let installed = INSTALLED.read();
        let natives = installed.iter().map(|adapter| {
            let name = adapter.name().to_owned();
            let limits = PluginLimits::new(
                &config.plugin.get(&name).cloned().unwrap_or_default(),
                EngineSize::Small,
            );
            let turns = Arc::new(ConcurrencyLimiter::new(
                limits.in_flight_max,
                limits.tenant_in_flight_max,
            ));
            let native = NativeEntry {
                adapter: Arc::clone(adapter),
                turns,
                result_max_bytes: limits.result_max_bytes,
            };
            (name, native)
        });
        Self(natives.collect())
    }

    pub(crate) fn get(&self, adapter: &str) -> Option<&NativeEntry> {
        self.0.get(adapter)
    }
}

impl NativeEntry {
    /// Runs a call within the caller's deadline. If nothing is written, it ends when the caller goes.
    pub(crate) async fn run(
        &self,
        context: &CallContext,
        ask: GuestRequest,
        writes: &WriteTracker,
    ) -> Result<GuestReply, AdapterFailure> {
        let _turn = self.turns.take(&context.tenant).await?;
        if context.deadline <= Instant::now() {
            return Err(AdapterFailure::Timeout);
        }
        let writing = matches!(ask, GuestRequest::Write { .. });
        let cancelled = async {
            if writing {
                pending::<()>().await;
            }
            context.cancel.cancelled().await;
        };
        if writing {
            writes.begin();
        }
        let answer = tokio::select! {
            biased;
            answer = self.ask(context, &ask) => answer,
            () = cancelled => return Err(AdapterFailure::Cancelled),
            () = tokio::time::sleep_until(context.deadline.into()) => return Err(AdapterFailure::Timeout),
        };
        if writing {
            writes.end(answer.is_ok());
        }
        result_fits(
            answer.map_err(AdapterFailure::Guest)?,
            self.result_max_bytes,
        )
    }

    async fn ask(
        &self,
        context: &CallContext,
        ask: &GuestRequest,
    ) -> Result<GuestReply, GuestError> {
        match ask {
            GuestRequest::Describe { settings, .. } => {
                self.adapter.describe(settings).await.map(GuestReply::Text)
            }
            GuestRequest::Read { collection, query } => self
                .adapter
                .read(context, collection, query)
                .await
                .map(GuestReply::Page),
            GuestRequest::Summarize { collection, query } => self
                .adapter
                .summarize(context, collection, query)
                .await
                .map(GuestReply::Summary),
            GuestRequest::Write { collection, change } => self
                .adapter
                .write(context, collection, change)
                .await
                .map(GuestReply::Text),
            GuestRequest::Call { .. } => {
                unreachable!("a native adapter has no tools, and none is looked up here")
            }
        }
    }
}
