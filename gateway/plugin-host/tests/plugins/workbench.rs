//! A host over a folder of its own, and the guest it loads.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use weir_connections::{ConnectionConfig, ConnectionRegistry};
use weir_files::embedded::{EmbeddedFile, compress};
use weir_plugin_host::{
    AdapterChange, AdapterFailure, AdapterPage, AdapterQuery, BuiltIn, CallContext, CallEvents,
    CollectionRef, ConnectionGrant, HeldBuilds, HostConfig, LibraryConfig, LoadReport,
    PluginConfig, PluginHost, PluginStatus, WriteFailure,
};
use weir_state::GatewayState;
use weir_watch::FileWatcher;

use crate::libraries;

pub(crate) struct Workbench {
    pub(crate) folder: TempDir,
    pub(crate) host: Arc<PluginHost>,
    pub(crate) reports: Arc<Mutex<Vec<LoadReport>>>,
    built_in: BuiltIn,
    watch: Option<tokio::task::JoinHandle<()>>,
}

impl Drop for Workbench {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

/// Opens a state on a thread of its own, since a workbench is made in a function that does not wait.
fn open_state(folder: &Path) -> Arc<GatewayState> {
    let folder = folder.to_owned();
    let open = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime
            .block_on(GatewayState::open(&folder))
            .expect("a state")
    };
    Arc::new(std::thread::spawn(open).join().expect("a state"))
}

pub(crate) fn probe() -> Vec<u8> {
    guest("probe")
}

/// Returns a built guest; tests never skip when it is missing.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    let folder = env::var_os("WEIR_TEST_GUESTS")
        .map(PathBuf::from)
        .unwrap_or_else(|| cache().join("test-guests"));
    let path = folder.join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}; run `cargo xtask plugins --guests`",
            path.display()
        )
    })
}

fn cache() -> PathBuf {
    if let Some(cache) = env::var_os("WEIR_CACHE") {
        return cache.into();
    }
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    base.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cache")))
        .expect("HOME is set")
        .join("weir")
}

/// Returns the guest with other words in its block of text.
pub(crate) fn tuned(name: &str, adapter: &str, version: &str, lose: &str) -> Vec<u8> {
    let mut bytes = probe();
    let text = format!("probe-tuning:name={name};adapter={adapter};version={version};lose={lose};");
    assert!(text.len() <= 64, "{text}");
    let text = format!("{text:.<64}");
    let marker = b"probe-tuning:name=";
    let at = bytes
        .windows(marker.len())
        .position(|window| window == marker)
        .expect("the block is in the file");
    bytes[at..at + 64].copy_from_slice(text.as_bytes());
    bytes
}

pub(crate) fn config(grants: &[(&str, ConnectionGrant)]) -> PluginConfig {
    let grants = grants
        .iter()
        .map(|(name, grant)| ((*name).to_owned(), *grant))
        .collect();
    PluginConfig {
        grants,
        ..PluginConfig::default()
    }
}

impl Workbench {
    /// Makes a workbench with one loaded plugin, `probe.wasm`.
    pub(crate) async fn with(
        config: PluginConfig,
        connections: BTreeMap<String, ConnectionConfig>,
    ) -> Self {
        let bench = Self::empty(BTreeMap::from([("probe".to_owned(), config)]), connections);
        bench.put("probe.wasm", &probe());
        let reports = bench.host.load_all().await;
        check_loaded(&reports);
        bench
    }

    pub(crate) async fn plain() -> Self {
        Self::with(PluginConfig::default(), BTreeMap::new()).await
    }

    pub(crate) fn empty(
        plugin: BTreeMap<String, PluginConfig>,
        connections: BTreeMap<String, ConnectionConfig>,
    ) -> Self {
        let bench = Self::over(&[], plugin, connections);
        std::fs::create_dir(bench.plugins()).expect("a folder");
        bench
    }

    /// Makes a workbench with an unchanged `probe` inside the program, and no plugins folder.
    pub(crate) fn built_in(plugin: BTreeMap<String, PluginConfig>) -> Self {
        let component = probe();
        let digest: &'static str =
            Box::leak(hex::encode(Sha256::digest(&component)).into_boxed_str());
        let compressed = Box::leak(compress(&component).into_boxed_slice());
        let component = EmbeddedFile::new(component.len(), compressed);
        Self::over(
            Box::leak(Box::new([("probe", digest, component)])),
            plugin,
            BTreeMap::new(),
        )
    }

    fn over(
        built_in: BuiltIn,
        plugin: BTreeMap<String, PluginConfig>,
        connections: BTreeMap<String, ConnectionConfig>,
    ) -> Self {
        Self::in_folder(
            TempDir::new().expect("a folder"),
            built_in,
            plugin,
            connections,
        )
    }

    /// Starts another process over the same folders.
    pub(crate) fn restarted(mut self) -> Self {
        self.watch
            .take()
            .iter()
            .for_each(tokio::task::JoinHandle::abort);
        let folder = std::mem::replace(&mut self.folder, TempDir::new().expect("a folder"));
        Self::in_folder(folder, self.built_in, BTreeMap::new(), BTreeMap::new())
    }

    fn in_folder(
        folder: TempDir,
        built_in: BuiltIn,
        plugin: BTreeMap<String, PluginConfig>,
        connections: BTreeMap<String, ConnectionConfig>,
    ) -> Self {
        let config = HostConfig {
            plugins: folder.path().join("plugins"),
            built_in,
            cache: folder.path().join("cache"),
            plugin,
            state: Some(open_state(&folder.path().join("state"))),
            holds_builds: HeldBuilds::None,
            indexes: Some(folder.path().join("indexes")),
            libraries: Some(LibraryConfig {
                folder: folder.path().join("native"),
                runner: libraries::runner(),
            }),
            instances_max: 64,
            parked_bytes_max: 128 << 20,
        };
        let connections =
            ConnectionRegistry::new(&connections, folder.path()).expect("good connections");
        let host = Arc::new(PluginHost::new(config, Arc::new(connections)).expect("a host"));
        Self {
            folder,
            host,
            reports: Arc::default(),
            built_in,
            watch: None,
        }
    }

    pub(crate) fn plugins(&self) -> PathBuf {
        self.folder.path().join("plugins")
    }

    /// Puts a file in the folder as an operator should: beside it, then renamed.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let temporary = self.folder.path().join("incoming");
        std::fs::write(&temporary, bytes).expect("writable");
        std::fs::rename(temporary, self.plugins().join(name)).expect("renamed");
    }

    pub(crate) fn watch(&mut self) {
        let reports = Arc::clone(&self.reports);
        let host = Arc::clone(&self.host);
        let folder = self.folder.path().to_owned();
        self.watch = Some(tokio::spawn(async move {
            let watcher = FileWatcher::start(&folder).await;
            let report = move |report| reports.lock().push(report);
            host.watch(watcher, report).await;
        }));
    }

    /// Returns the next report about `file`.
    pub(crate) async fn report(&self, file: &str) -> LoadReport {
        let started = Instant::now();
        loop {
            let found = {
                let mut reports = self.reports.lock();
                let at = reports.iter().position(|report| report.file == file);
                at.map(|at| reports.remove(at))
            };
            if let Some(report) = found {
                return report;
            }
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "no report about {file}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for the next report about a file, and returns its result.
    pub(crate) async fn result(&self, file: &str) -> Result<PluginStatus, String> {
        self.report(file).await.result
    }

    pub(crate) async fn read(&self, options: &str) -> Result<AdapterPage, AdapterFailure> {
        self.host
            .read(&context("tenant"), &collection(), &query(options))
            .await
    }

    pub(crate) async fn read_as(&self, tenant: &str, options: &str) -> String {
        self.host
            .read(&context(tenant), &collection(), &query(options))
            .await
            .expect("an answer")
            .records
    }

    /// Returns what a read that succeeds finds.
    pub(crate) async fn records(&self, options: &str) -> String {
        self.read_as("tenant", options).await
    }

    pub(crate) async fn write(&self, options: &str) -> Result<String, WriteFailure> {
        let change = Arc::new(AdapterChange {
            verb: "call".into(),
            options: Some(options.into()),
            ..AdapterChange::default()
        });
        self.host
            .write(&context("tenant"), &collection(), &change)
            .await
    }

    /// Returns the reason the plugin failed.
    pub(crate) async fn failed(&self, options: &str) -> String {
        match self.read(options).await {
            Err(AdapterFailure::Failed(reason)) => reason,
            Err(AdapterFailure::OverLimit(bound)) => bound.to_string(),
            other => panic!("{options}: {other:?}"),
        }
    }

    /// Returns the code of the guest's own error.
    pub(crate) async fn code(&self, options: &str) -> String {
        match self.read(options).await {
            Err(AdapterFailure::Guest(error)) => error.code,
            other => panic!("{options}: {other:?}"),
        }
    }
}

pub(crate) fn check_loaded(reports: &[LoadReport]) {
    assert!(
        reports.iter().all(|report| report.result.is_ok()),
        "{reports:?}"
    );
}

/// The progress that a call reports.
#[derive(Default)]
pub(crate) struct SeenProgress(pub(crate) Mutex<Vec<(f64, Option<f64>, String)>>);

impl CallEvents for SeenProgress {
    fn wants_progress(&self) -> bool {
        true
    }

    fn log_level(&self) -> Option<&'static str> {
        None
    }

    fn log(&self, _level: &str, _logger: &str, _data: serde_json::Value) {}

    fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        self.0.lock().push((done, total, message.to_owned()));
    }
}

/// Returns a context whose deadline comes after every bound of a guest, also where others use the processor.
pub(crate) fn context(tenant: &str) -> CallContext {
    CallContext {
        tenant: Arc::from(tenant),
        call_id: Arc::from("call-1"),
        deadline: Instant::now() + Duration::from_secs(300),
        cancel: CancellationToken::new(),
        ran_on: Arc::default(),
        events: None,
        trace: None,
    }
}

pub(crate) fn collection() -> CollectionRef {
    collection_of("probe", "{}")
}

pub(crate) fn collection_of(adapter: &str, settings: &str) -> CollectionRef {
    let shape = r#"{"name": "things", "fields": [{"key": "id", "type": "integer"}, {"key": "name", "type": "string"}]}"#;
    CollectionRef {
        key: Arc::from("shop 1.0.0 things"),
        adapter: Arc::from(adapter),
        settings: Arc::from(settings),
        shape: Arc::from(shape),
    }
}

pub(crate) fn query(options: &str) -> Arc<AdapterQuery> {
    Arc::new(AdapterQuery {
        options: Some(options.to_owned()),
        limit: 10,
        ..AdapterQuery::default()
    })
}

pub(crate) fn sqlite(path: &Path, write: bool) -> ConnectionConfig {
    ConnectionConfig::Sqlite {
        path: path.to_owned(),
        write,
    }
}
