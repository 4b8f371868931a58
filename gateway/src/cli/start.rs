//! From settings to a gateway that serves: connections, plugins, contracts, in dependency order.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use weir_connections::Connections;
use weir_contracts::Problem;
use weir_plugin_host::{Host, HostConfig, Libraries};
use weir_state::State;
use weir_upstream::Upstreams;

use super::{Failure, Settings};
use crate::{
    admin,
    config::{self, Config},
    cursor::Cursors,
    gateway::Gateway,
    identity::Identities,
    registry::{self, Registry, code::CodeGate},
    reload::{self, Reload},
    telemetry::{self, Audit, Metrics},
};

pub(super) struct Started {
    pub gateway: Arc<Gateway>,
    pub registry: Arc<Registry>,
    pub state: Arc<State>,
    pub connections: Arc<Connections>,
}

impl Settings {
    /// The file, with flags and environment over it.
    pub(super) fn config(&self) -> Result<Config, Vec<Problem>> {
        let file = self.config.clone().or_else(|| Some(PathBuf::from("weir.toml")).filter(|file| file.exists()));
        let mut config = match file {
            Some(file) => config::load(&file)?,
            None => Config::bare(Path::new(".")),
        };
        self.over(&mut config);
        Ok(config)
    }

    /// The configuration that is read, or that would be.
    pub(super) fn file(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| PathBuf::from("weir.toml"))
    }

    /// True where a configuration was named or lies in the working folder.
    pub(super) fn present(&self) -> bool {
        self.config.is_some() || Path::new("weir.toml").exists()
    }

    /// Refused where nothing says what to serve: a client on stdio would get a server without tools, and nobody be told.
    pub(super) fn names_something(&self, config: &Config) -> anyhow::Result<()> {
        let folders = &config.folders;
        if self.present() || folders.contracts.exists() || folders.state.exists() {
            return Ok(());
        }
        let here = std::env::current_dir().unwrap_or_default();
        anyhow::bail!(
            "there is nothing to serve: looked for `weir.toml`, the contracts folder `{}` and the state folder `{}` in {}, \
             and neither --config nor WEIR_CONFIG names a configuration. Name one where the client starts Weir \
             (`weir stdio --config /path/to/weir.toml`), or a spreadsheet (`weir stdio /path/to/prices.csv`)",
            folders.contracts.display(),
            folders.state.display(),
            here.display()
        )
    }

    pub(super) fn over(&self, config: &mut Config) {
        if let Some(folder) = &self.contracts {
            config.folders.contracts.clone_from(folder);
        }
        if let Some(folder) = &self.plugins {
            config.folders.plugins.clone_from(folder);
        }
        if let Some(folder) = &self.state {
            config.folders.state.clone_from(folder);
        }
        if let Some(format) = self.log_format {
            config.log.format = format;
        }
    }
}

/// For a command that answers and ends: its answer is wanted on the terminal, and no log of a start.
pub(super) async fn briefly(mut config: Config, process: Option<&str>) -> Result<Started, Failure> {
    config.log.filter.get_or_insert_with(|| "warn".to_owned());
    gateway(config, process).await
}

/// Everything but the contracts. Plugins that do not load are reported and left out. `process`: what this process does,
/// for the audit trail; without it nothing is called and nothing recorded.
pub(super) async fn gateway(config: Config, process: Option<&str>) -> Result<Started, Failure> {
    telemetry::start(&config.log)?;
    let upstreams = Arc::new(Upstreams::new(super::child::words()));
    // A spreadsheet of the command line may lie anywhere; only that one file is named to its adapter.
    let opened = reload::open(&config, &Connections::default(), &upstreams, Some(super::draft::CONNECTION))?;
    let connections = Arc::new(opened.connections);
    let state = &config.folders.state;
    let metrics = Metrics::new(config.metrics.tools_max, opened.metrics_token.as_deref());
    let host = Host::new(
        HostConfig {
            plugins: config.folders.plugins.clone(),
            built_in: super::built_in(),
            cache: config.folders.cache.clone().unwrap_or_else(|| state.join("plugins")),
            plugin: config.plugins.clone(),
            builds: Some(state.join("builds")),
            accepted: Some(state.join("plugins-accepted.json")),
            indexes: Some(state.join("indexes")),
            libraries: Some(Libraries { folder: state.join("native"), runner: super::native_host::words() }),
            instances_max: config.limits.instances_max,
            parked_bytes_max: 512 << 20,
        },
        connections.clone(),
    )?;
    if process.is_some() {
        upstreams.take(opened.upstreams);
    }
    let cursors = Cursors::open(state).with_context(|| format!("the state folder {}", state.display()))?;
    let audit = match process {
        Some(process) => Audit::open(state, process, &config.audit)?,
        None => Audit::none(),
    };
    let state = Arc::new(State::open(state).await.map_err(anyhow::Error::from)?);
    let identities = Identities::new(config.identity.required);
    identities.take_over(&state).await.map_err(anyhow::Error::from)?;
    let host = Arc::new(host);
    let gateway = Arc::new(Gateway::new(config, host.clone(), upstreams, cursors, identities, audit, metrics));
    for problem in &opened.left_out {
        tracing::error!("refused: {problem}");
    }
    gateway.set_refused_connections(opened.left_out);
    let weak = Arc::downgrade(&gateway); // the gateway owns the host
    let in_use =
        move |adapter: &str| weak.upgrade().map_or_else(Vec::new, |gateway| registry::in_use(&gateway, adapter));
    host.set_in_use(Arc::new(in_use));
    let registry = Arc::new(Registry::new(gateway.clone(), state.clone()));
    if process.is_some() {
        host.set_tool_gate(Arc::new(CodeGate::new(&registry)));
    }
    for report in host.load_all().await {
        gateway.note_plugin(&report);
    }
    let [waiting, drifting, refusing] = std::array::from_fn(|_| Arc::downgrade(&registry));
    gateway.metrics().watch_registry(
        move || waiting.upgrade().map(|registry| registry.gate().waiting_by_class()).unwrap_or_default(),
        move || drifting.upgrade().map_or(0, |registry| registry.drifted()),
        move || refusing.upgrade().map(|registry| registry.refused_by_kind()).unwrap_or_default(),
    );
    Ok(Started { gateway, registry, state, connections })
}

/// Loads the contracts folder. What is published is served whatever is wrong with a file, a plugin or a connection beside
/// it; everything that is refused is logged. The start fails only where nothing is served and something was refused, or
/// where `strict` asks for everything to be in order.
pub(super) async fn contracts(started: &Started, strict: bool) -> Result<(), Failure> {
    let report = started.registry.load().await;
    let nothing = started.gateway.snapshot().catalogue.is_empty();
    let refused = started.registry.refused();
    let mut problems: Vec<Problem> = refused.into_iter().flat_map(|refused| refused.problems).collect();
    problems.extend(report.problems.iter().filter(|problem| !problems.contains(problem)).cloned().collect::<Vec<_>>());
    let empty = nothing && report.waiting.is_empty() && report.held.is_empty();
    let because = !report.problems.is_empty() || !started.gateway.refused_connections().is_empty();
    if !problems.is_empty() && (strict || (empty && because)) {
        return Err(Failure::Problems(problems));
    }
    for problem in &report.problems {
        tracing::error!("refused: {problem}");
    }
    for (path, why) in &report.waiting {
        tracing::warn!("waiting: {}: {why}", path.display());
    }
    for held in &report.held {
        tracing::warn!("held: {}", held.line());
    }
    Ok(())
}

/// The admin API beside a gateway.
pub(super) struct AdminServer {
    ending: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl AdminServer {
    /// Open requests are answered first.
    pub(super) async fn end(self) {
        self.ending.cancel();
        let _ = self.task.await;
    }
}

/// Starts the admin API where it is enabled; makes the first admin key where there is none.
pub(super) async fn admin(started: &Started, reload: &Arc<Reload>) -> Result<Option<AdminServer>, Failure> {
    let config = started.gateway.config();
    if !config.admin.enabled {
        return Ok(None);
    }
    let folder = &config.folders.state;
    admin::first_key(&started.state, folder).await?;
    let listen = config.admin.listen;
    let listener = tokio::net::TcpListener::bind(listen)
        .await
        .with_context(|| format!("the admin API cannot listen on {listen} ([admin] listen)"))?;
    let address = listener.local_addr()?;
    admin::announce(folder, address)?;
    tracing::info!("admin API on http://{address}");
    let shared = Arc::new(admin::Admin {
        gateway: started.gateway.clone(),
        registry: started.registry.clone(),
        state: started.state.clone(),
        reload: reload.clone(),
    });
    let ending = CancellationToken::new();
    let task = tokio::spawn(admin::serve(shared, listener, ending.clone().cancelled_owned()));
    Ok(Some(AdminServer { ending, task }))
}

/// What other processes changed of keys is taken over within this time, and that of a reading: a revoked key works nowhere
/// 50 ms later.
const KEYS_INTERVAL: Duration = Duration::from_millis(20);

/// Keys that any process made or revoked.
async fn follow(gateway: Arc<Gateway>, state: Arc<State>) {
    loop {
        if let Err(error) = gateway.identities().take_over(&state).await {
            tracing::error!(%error, "the state cannot be read: keys stay as they were");
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        tokio::time::sleep(KEYS_INTERVAL).await;
    }
}

/// Follows plugins and, where contracts come from files, those, while the process serves.
pub(super) fn watch(started: &Started, files: bool) {
    outlive_file_limit();
    tokio::spawn(follow(started.gateway.clone(), started.state.clone()));
    tokio::spawn(registry::impact::keep(started.gateway.clone(), started.state.clone()));
    let (host, gateway) = (started.gateway.host().clone(), started.gateway.clone());
    tokio::spawn(async move { host.watch(move |report| gateway.note_plugin(&report)).await });
    let host = started.gateway.host().clone();
    tokio::spawn(async move { host.work_later().await });
    if files {
        let registry = started.registry.clone();
        tokio::spawn(async move { registry.watch().await });
        let registry = started.registry.clone();
        tokio::spawn(async move { registry.watch_sources().await });
        tokio::spawn(started.registry.clone().watch_upstreams());
        let upstreams = started.gateway.upstreams().clone();
        tokio::spawn(async move { upstreams.sweep().await });
    }
}

/// At the limit on the size of files a write fails, and what it was for is refused; the process does not end.
fn outlive_file_limit() {
    #[cfg(target_os = "linux")]
    const SIGXFSZ: i32 = 25;
    #[cfg(target_os = "linux")]
    if let Err(error) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ)) {
        tracing::warn!(%error, "a limit on the size of files would end this process");
    }
}

/// Takes the configuration over again whenever the process is told to (SIGHUP).
pub(super) async fn follow_hangups(reload: Arc<Reload>) {
    let mut hangups = match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => return tracing::error!(%error, "SIGHUP cannot be heard"),
    };
    while hangups.recv().await.is_some() {
        match reload.run("signal").await {
            Ok(taken) => {
                let restart = taken.needs_restart.join(" ");
                tracing::info!(changed = taken.changed.join(" "), needs_restart = restart, "configuration taken over");
            }
            Err(problems) => {
                problems.iter().for_each(|problem| tracing::error!("configuration refused: {problem}"));
            }
        }
    }
}
