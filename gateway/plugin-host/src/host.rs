//! The host: loaded plugins by adapter, and the calls into them.

use std::sync::Arc;

use weir_connections::Connections;

use crate::{AdapterFailure, CallContext, Change, CollectionRef, HostConfig, Page, Query, WriteFailure};

pub struct Host {}

/// What loading one file did.
#[derive(Clone, Debug)]
pub struct LoadReport {
    pub file: String,
    pub result: Result<PluginStatus, String>,
}

#[derive(Clone, Debug)]
pub struct PluginStatus {
    pub name: String,
    pub version: String,
    /// sha256 of the file, hex.
    pub digest: String,
    pub adapters: Vec<String>,
    pub generation: u64,
}

/// Asked before a new build of a plugin goes live: does every contract that uses it still hold?
/// Given the adapters' describe function of the trial generation. An `Err` keeps the old one.
pub type SwapCheck = dyn Fn(&PluginStatus) -> Vec<CollectionRef> + Send + Sync;

impl Host {
    pub fn new(_config: HostConfig, _connections: Arc<Connections>) -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Loads every file of the folder once; used at start.
    pub async fn load_all(&self) -> Vec<LoadReport> {
        Vec::new()
    }

    /// Watches the folder until the task is aborted; each change is reported.
    pub async fn watch(self: Arc<Self>, _report: impl Fn(LoadReport) + Send + 'static) {}

    pub fn plugins(&self) -> Vec<PluginStatus> {
        Vec::new()
    }

    pub async fn describe(&self, adapter: &str, _settings: &str) -> Result<String, AdapterFailure> {
        Err(AdapterFailure::Unavailable(adapter.to_owned()))
    }

    pub async fn read(
        &self,
        _context: &CallContext,
        collection: &CollectionRef,
        _query: &Query,
    ) -> Result<Page, AdapterFailure> {
        Err(AdapterFailure::Unavailable(collection.adapter.to_string()))
    }

    /// The record the source now holds, JSON.
    pub async fn write(
        &self,
        _context: &CallContext,
        collection: &CollectionRef,
        _change: &Change,
    ) -> Result<String, WriteFailure> {
        let failure = AdapterFailure::Unavailable(collection.adapter.to_string());
        Err(WriteFailure { failure, handed_over: false })
    }
}
