//! The program as a whole: connections, plugins, state, gateway and control, created in the order of their dependencies.

mod copies;
mod node;

pub use self::copies::open_bucket;

use std::{
    ffi::OsString,
    io::ErrorKind,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::Context as _;
use tokio::{
    net::TcpListener,
    task::{AbortHandle, JoinHandle},
};
use tokio_util::sync::CancellationToken;
use weir_audit::ArgumentsKey;
use weir_connections::ConnectionRegistry;
use weir_contracts::FileProblem;
use weir_plugin_host::{BuiltIn, HeldBuilds, HostConfig, LibraryConfig, PluginHost};
use weir_state::{FeedPart, GatewayState, SecretPurpose};
use weir_upstream::UpstreamRegistry;
use weir_watch::FileWatcher;

use crate::{
    accounts::AccountRegistry,
    admin,
    config::{ADMIN_LISTEN, AuditReplication, GatewayConfig, access::AccessRules},
    control::{
        self, ControlPlane,
        operations::{console_sign_in::ConsoleSignIns, shared_builds},
        reload::{self, ConfigReloader},
        sources::plugins::CodeGate,
    },
    cursor::CursorCipher,
    identity::{IdentityRegistry, share_clock},
    node_messages::NodeMessages,
    plans::WritePlans,
    serving::ServingGateway,
    telemetry::{self, AuditRecorder, GatewayMetrics, TraceSender},
    transport::front_door::FrontDoor,
};

/// A gateway with everything that belongs to it. It does not serve on its own: a transport is given its gateway.
pub struct GatewayApp {
    pub gateway: Arc<ServingGateway>,
    pub control: Arc<ControlPlane>,
    pub state: Arc<GatewayState>,
    pub connections: Arc<ConnectionRegistry>,
    /// Ends the copying of the trail, if there is any.
    copies: OnceLock<AbortHandle>,
}

/// The settings of the program other than its configuration.
#[derive(Clone, Debug, Default)]
pub struct AppOptions<'a> {
    /// The work of this process, for the audit trail. Without it, nothing is called or recorded.
    pub process: Option<&'a str>,
    /// The process answers and ends: it admits no build that a gateway with the same state would hold.
    pub is_command: bool,
    /// The adapters that are built into the program.
    pub built_in: BuiltIn,
    /// The words before the command of an upstream server, which start it under the guard that ends it with this process.
    pub guard: Vec<OsString>,
    /// The words that start a child process for a plugin that is a native library.
    pub runner: Vec<OsString>,
}

/// Why the program could not do its work.
#[derive(Debug)]
pub enum AppError {
    /// Every problem in the files that it was given.
    Problems(Vec<FileProblem>),
    Other(anyhow::Error),
}

impl From<anyhow::Error> for AppError {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

impl From<std::io::Error> for AppError {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<Vec<FileProblem>> for AppError {
    fn from(problems: Vec<FileProblem>) -> Self {
        Self::Problems(problems)
    }
}

impl GatewayApp {
    /// Opens everything except the contracts. Plugins that do not load are reported and left out.
    pub async fn open(config: GatewayConfig, setup: AppOptions<'_>) -> Result<Self, AppError> {
        telemetry::check_variable()?;
        telemetry::start(&config.log)?;
        let upstreams = Arc::new(UpstreamRegistry::new(setup.guard));
        let none = ConnectionRegistry::apart_from(&config.folders.state);
        let opened = reload::open(&config, &none, &upstreams)?;
        outlive_file_limit();
        let connections = Arc::new(opened.connections);
        let state = open_state(&config, setup.process).await?;
        let metrics =
            GatewayMetrics::new(config.metrics.tools_max, opened.metrics_token.as_deref());
        let holds_builds = match setup.process {
            None => HeldBuilds::None,
            Some(_) if setup.is_command => HeldBuilds::All,
            Some(_) => HeldBuilds::WhileServing,
        };
        let carried = (setup.built_in, setup.runner);
        let host = open_host(&config, &state, carried, holds_builds, connections.clone())?;
        if setup.process.is_some() {
            warn_without_sandbox(&config);
        }
        let secret = async |purpose| state.secret(purpose).await.map_err(anyhow::Error::from);
        let cursors = CursorCipher::with_key(&secret(SecretPurpose::Cursors).await?);
        let audit = match setup.process {
            Some(process) => {
                let key = ArgumentsKey::new(&secret(SecretPurpose::Arguments).await?);
                open_audit(&config, &state, key, process).await?
            }
            None => AuditRecorder::none(),
        };
        let identities = IdentityRegistry::new(config.identity.required);
        identities.configure(&config.identity, &config.base);
        identities
            .take_over(&state)
            .await
            .map_err(anyhow::Error::from)?;
        let host = Arc::new(host);
        let traces = setup.process.map(|_| start_traces(&config));
        let traces = traces.transpose()?.flatten();
        let serving = ServingGateway::new(
            config,
            host.clone(),
            upstreams,
            cursors,
            identities,
            audit,
            metrics,
        );
        let gateway = Arc::new(serving.with_traces(traces));
        let quotas = gateway.quotas().take_over(&state).await;
        quotas.map_err(anyhow::Error::from)?;
        gateway.readiness().set_state(state.clone());
        gateway.set_plans(WritePlans::new(state.clone()));
        keep_accounts(&gateway, &state, &secret(SecretPurpose::Accounts).await?).await?;
        if setup.process.is_some() {
            gateway.upstreams().take(opened.upstreams);
        }
        for problem in &opened.left_out {
            tracing::error!("refused: {problem}");
        }
        show_use(&gateway, &host);
        let control = Arc::new(ControlPlane::new(gateway.clone(), state.clone()));
        control.set_refused_connections(opened.left_out);
        control.set_connections(connections.clone());
        if setup.process.is_some() {
            host.set_tool_gate(Arc::new(CodeGate::new(control.plugins())));
        }
        let serves = setup.process == Some("serve") && !state.reads_copy();
        load_plugins(&host, &control, serves).await?;
        count_control(&gateway, &control);
        Ok(Self {
            gateway,
            control,
            state,
            connections,
            copies: OnceLock::new(),
        })
    }

    /// Loads the contracts folder. Published versions are served even if a file, a plugin or a connection has problems;
    /// everything that is refused is logged. The start fails only if nothing is served and something was refused, or if `strict`
    /// requires everything to be in order, including sources.
    pub async fn load(&self, strict: bool) -> Result<(), AppError> {
        let report = self.control.load().await;
        let missing = self.control.policies().missing();
        if !missing.is_empty() {
            return Err(AppError::Problems(missing));
        }
        let nothing = self.gateway.snapshot().catalogue.is_empty();
        let refused = self.control.refused();
        let mut problems: Vec<FileProblem> = refused
            .into_iter()
            .flat_map(|refused| refused.problems)
            .collect();
        problems.extend(
            report
                .problems
                .iter()
                .filter(|problem| !problems.contains(problem))
                .cloned()
                .collect::<Vec<_>>(),
        );
        let later = !report.waiting.is_empty()
            || !report.held.is_empty()
            || !self.gateway.config().upstreams.is_empty();
        let empty = nothing && !later;
        let because = !report.problems.is_empty() || !self.control.refused_connections().is_empty();
        if strict {
            let away = report.waiting.iter().filter(|(_, away)| away.of_source);
            problems.extend(away.map(|(path, away)| away.problem(&path.display().to_string())));
        }
        if !problems.is_empty() && (strict || (empty && because)) {
            return Err(AppError::Problems(problems));
        }
        self.control.log(&report);
        Ok(())
    }

    /// Starts the admin API if it is enabled; creates the first admin key if there is none.
    pub async fn admin(
        &self,
        reload: &Arc<ConfigReloader>,
    ) -> Result<Option<AdminServer>, AppError> {
        let config = self.gateway.config();
        if !config.admin.enabled {
            return Ok(None);
        }
        let folder = &config.folders.state;
        admin::first_key(&self.state, folder).await?;
        let listener = listen_for_admins(config.admin.listen, ADMIN_LISTEN).await?;
        let address = listener.local_addr()?;
        let announced = admin::announce(folder, address)?;
        tracing::info!("admin API on http://{address}");
        let ending = CancellationToken::new();
        let shared = Arc::new(admin::AdminContext {
            gateway: self.gateway.clone(),
            control: self.control.clone(),
            state: self.state.clone(),
            reload: reload.clone(),
            door: Arc::new(FrontDoor::new(&self.gateway, address, AccessRules::admin)?),
            sign_ins: ConsoleSignIns::default(),
            ending: ending.clone(),
        });
        let served = admin::serve(shared, listener, ending.clone().cancelled_owned());
        let task = tokio::spawn(async move {
            tokio::select! {
                ended = served => ended,
                never = announced.keep() => match never {},
            }
        });
        Ok(Some(AdminServer {
            address,
            ending,
            task,
        }))
    }

    /// Makes this process one of the nodes that share a state, before it serves anything: from then on, others wait for it to
    /// apply changes. Reads the settings that clients made for their sessions at other processes, or earlier at this one.
    pub async fn join(&self) -> Result<(), AppError> {
        let notes = self.gateway.session_notes().take_over(&self.state).await;
        notes.map_err(anyhow::Error::from)?;
        let node = node::describe(&self.gateway.config())?;
        if let Some(bucket) = open_bucket(&self.gateway.config())? {
            let copying = tokio::spawn(copies::copy_trail(self.gateway.clone(), bucket));
            let _ = self.copies.set(copying.abort_handle());
        }
        let joined = self.state.join(node).await;
        joined.map_err(anyhow::Error::from)?;
        if let Some(node) = self.state.node_id() {
            let cursors = self.gateway.cursors().clone();
            self.gateway.tasks().share(node, cursors.clone());
            let messages = NodeMessages::new(self.state.clone(), node, cursors);
            self.gateway.set_node_messages(Arc::new(messages));
        }
        if let Some(clock) = self.state.shared_clock() {
            share_clock(clock);
            node::share_rates(&self.gateway, &self.state).await?;
        }
        Ok(())
    }

    /// Writes the counts since the last time: uses of keys, calls of agents with a quota, and profiles of calls.
    pub async fn write_counts(&self) {
        let uses = self.gateway.identities().write_uses(&self.state).await;
        telemetry::note_written(&mut false, &uses, "uses of keys");
        let calls = self.gateway.quotas().write(&self.state).await;
        telemetry::note_written(&mut false, &calls, "calls of agents with a quota");
        let days = self.gateway.config().contracts.impact_days;
        if days > 0 {
            let profiles = self.gateway.call_history().write(&self.state, days).await;
            telemetry::note_written(&mut false, &profiles, "profiles of calls");
        }
    }

    /// Removes this process from the nodes, once it no longer serves.
    pub async fn leave(&self) {
        self.gateway.audit().write_head().await;
        if let Some(copying) = self.copies.get() {
            copying.abort();
            copies::copy_rest(&self.gateway).await; // after the head: all that it names is then copied
        }
        // If the node cannot leave now, its lease runs out.
        let _ = self.state.leave().await;
    }

    /// While the process serves, watches plugins, counts refusals, and watches contract files if contracts come from files.
    pub fn watch(&self, files: bool) {
        let (gateway, state) = (&self.gateway, &self.state);
        tokio::spawn(take_over_keys(gateway.clone(), state.clone()));
        if state.is_shared() {
            tokio::spawn(node::refuse_when_stale(gateway.clone(), state.clone()));
            let audit = gateway.audit().clone();
            tokio::spawn(async move { audit.keep_heads().await });
            let kept = state.clone();
            tokio::spawn(async move { kept.keep_copy().await });
        }
        tokio::spawn(crate::memory::give_start_back());
        tokio::spawn(control::impact::keep(gateway.clone(), state.clone()));
        tokio::spawn(count_refusals(gateway.clone()));
        tokio::spawn(write_uses(gateway.clone(), state.clone()));
        tokio::spawn(write_quotas(gateway.clone(), state.clone()));
        tokio::spawn(write_session_notes(gateway.clone(), state.clone()));
        tokio::spawn(take_over_session_notes(gateway.clone(), state.clone()));
        tokio::spawn(forget_ended_plans(gateway.clone()));
        tokio::spawn(remove_unnamed_builds(state.clone()));
        if let Some(messages) = gateway.node_messages().cloned() {
            tokio::spawn(async move { messages.run().await });
            let control = self.control.clone();
            tokio::spawn(async move { shared_builds::follow(&control).await });
        }
        let control = self.control.clone();
        tokio::spawn(async move { control.count_hours().await });
        let host = gateway.host().clone();
        tokio::spawn(async move { host.work_later().await });
        if files {
            let control = self.control.clone();
            tokio::spawn(async move { control.drift().watch(control.background_changes()).await });
            let upstreams = gateway.upstreams().clone();
            tokio::spawn(async move { upstreams.sweep().await });
        }
        let (gateway, state, control) = (gateway.clone(), state.clone(), self.control.clone());
        tokio::spawn(async move {
            let watcher = FileWatcher::start(&gateway.config().folders.state).await;
            if files {
                let (control, watcher) = (control.clone(), watcher.clone());
                tokio::spawn(async move { control.watch(&watcher).await });
            }
            if files {
                tokio::spawn(
                    control
                        .upstreams()
                        .clone()
                        .watch(watcher.clone(), control.background_changes()),
                );
            }
            let host = gateway.host().clone();
            let report = move |report| control.note_plugin(&report);
            tokio::spawn(host.watch(watcher.clone(), report));
            state.follow(&watcher).await;
        });
    }
}

/// Opens the state. A process that serves over HTTP can start without the database: processes on stdio may share its folder.
async fn open_state(
    config: &GatewayConfig,
    process: Option<&str>,
) -> anyhow::Result<Arc<GatewayState>> {
    let opened = match process {
        Some("serve") => config.open_state_to_serve().await,
        _ => config.open_state().await,
    };
    Ok(Arc::new(opened?))
}

/// Opens the host of the plugins, with the built-in adapters and the command that starts a library's child.
fn open_host(
    config: &GatewayConfig,
    state: &Arc<GatewayState>,
    (built_in, runner): (BuiltIn, Vec<OsString>),
    holds_builds: HeldBuilds,
    connections: Arc<ConnectionRegistry>,
) -> Result<PluginHost, AppError> {
    let folder = &config.folders.state;
    Ok(PluginHost::new(
        HostConfig {
            plugins: config.folders.plugins.clone(),
            built_in,
            cache: config.compiled_folder(),
            plugin: config.plugins.clone(),
            state: Some(state.clone()),
            holds_builds,
            indexes: Some(folder.join("indexes")),
            libraries: Some(LibraryConfig {
                folder: folder.join("native"),
                runner,
            }),
            instances_max: config.limits.instances_max,
            parked_bytes_max: 512 << 20,
        },
        connections,
    )?)
}

/// Loads every plugin, once the files of the folder are up to date.
async fn load_plugins(
    host: &PluginHost,
    control: &ControlPlane,
    is_serving: bool,
) -> Result<(), AppError> {
    control
        .plugin_files()
        .recover(&control.gateway().config().folders.plugins);
    if is_serving {
        let placed = shared_builds::place_files(control).await;
        placed.map_err(anyhow::Error::from)?;
    }
    for report in host.load_all().await {
        control.note_plugin(&report);
    }
    if is_serving {
        warn_of_unused_settings(host, control);
    }
    Ok(())
}

/// Logs the sections of plugins that are not loaded: a pin or a grant under a misspelt name has no effect.
fn warn_of_unused_settings(host: &PluginHost, control: &ControlPlane) {
    let names: Vec<String> = host.plugins().into_iter().map(|it| it.name).collect();
    let config = control.gateway().config();
    let sections = config.plugins.iter();
    for (name, _) in sections.filter(|(_, settings)| settings.native.is_none()) {
        if !names.contains(name) {
            let loaded = names.join(", ");
            tracing::warn!(
                "[plugins.{name}] has no effect: no plugin `{name}` is loaded; there are {loaded}"
            );
        }
    }
}

/// Tells the host how to find the collections that need an adapter.
fn show_use(gateway: &Arc<ServingGateway>, host: &PluginHost) {
    let weak = Arc::downgrade(gateway); // the gateway owns the host
    let in_use = move |adapter: &str| {
        weak.upgrade()
            .map_or_else(Vec::new, |gateway| control::in_use(&gateway, adapter))
    };
    host.set_in_use(Arc::new(in_use));
}

/// Lets calls of other servers use the accounts of their callers.
async fn keep_accounts(
    gateway: &ServingGateway,
    state: &Arc<GatewayState>,
    key: &[u8; 32],
) -> anyhow::Result<()> {
    let (audit, metrics) = (gateway.audit().clone(), gateway.metrics().clone());
    let accounts = AccountRegistry::new(state.clone(), key, audit, metrics);
    accounts.hide_addresses().await?;
    gateway.upstreams().set_keeper(accounts.clone());
    gateway.set_accounts(accounts);
    Ok(())
}

fn start_traces(config: &GatewayConfig) -> Result<Option<TraceSender>, Vec<FileProblem>> {
    TraceSender::start(&config.traces, &config.base).map_err(|fault| {
        let problem = config.places.problem(fault.place.to_owned(), fault.message);
        vec![problem.hint("see docs/traces.md")]
    })
}

/// Listens at the configured address, or at the usual port, or at any free one if that is taken.
async fn listen_for_admins(
    configured: Option<SocketAddr>,
    usual: SocketAddr,
) -> anyhow::Result<TcpListener> {
    let listen = configured.unwrap_or(usual);
    match TcpListener::bind(listen).await {
        Err(error) if configured.is_none() && error.kind() == ErrorKind::AddrInUse => {
            let free = SocketAddr::new(listen.ip(), 0);
            Ok(TcpListener::bind(free).await?)
        }
        bound => bound
            .with_context(|| format!("the admin API cannot listen on {listen} ([admin] listen)")),
    }
}

/// Lets the metrics count what is waiting, drifted or refused.
fn count_control(gateway: &ServingGateway, control: &Arc<ControlPlane>) {
    let [waiting, drifting, refusing] = std::array::from_fn(|_| Arc::downgrade(control));
    gateway.metrics().watch_control(
        move || {
            waiting
                .upgrade()
                .map(|control| control.gate().waiting_by_class())
                .unwrap_or_default()
        },
        move || {
            drifting
                .upgrade()
                .map_or(0, |control| control.drift().count())
        },
        move || {
            refusing
                .upgrade()
                .map(|control| control.refused_by_kind())
                .unwrap_or_default()
        },
    );
}

/// The admin API of a gateway.
pub struct AdminServer {
    address: SocketAddr,
    ending: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl AdminServer {
    /// Returns an address that signs an operator in at the console, once; `None` if no operator has a key.
    pub async fn sign_in_address(&self, app: &GatewayApp) -> anyhow::Result<Option<String>> {
        admin::sign_in_address(&app.state, self.address).await
    }

    /// Ends serving, after open requests are answered.
    pub async fn end(self) {
        self.ending.cancel();
        let _ = self.task.await;
    }
}

/// Opens the trail. If machines share the state, each keeps the heads of all chains there.
async fn open_audit(
    config: &GatewayConfig,
    state: &Arc<GatewayState>,
    key: ArgumentsKey,
    process: &str,
) -> anyhow::Result<AuditRecorder> {
    let elsewhere = match state.is_shared() {
        true => Some(telemetry::heads_of_others(state).await?),
        false => None,
    };
    let folder = &config.folders.state;
    let audit = AuditRecorder::open(folder, key, process, &config.audit, elsewhere)?;
    if state.is_shared() {
        let replicates = config.audit.replicate == AuditReplication::Writes;
        audit.share_heads(state.clone(), node::machine_name(), replicates);
    }
    Ok(audit)
}

/// The pause after keys could not be read.
const KEYS_RETRY: Duration = Duration::from_millis(250);

/// Applies keys that any process made or revoked.
async fn take_over_keys(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) {
    let (mut changes, mut fail_overs) = (state.changes(), 0);
    loop {
        let number = *changes.borrow_and_update();
        let before = std::mem::replace(&mut fail_overs, state.fail_overs());
        gateway.metrics().count_fail_overs(fail_overs - before);
        if let Err(error) = gateway.identities().take_over(&state).await {
            tracing::error!(%error, "the state cannot be read: keys stay as they were");
            tokio::time::sleep(KEYS_RETRY).await;
            continue;
        }
        state.note_taken(FeedPart::Keys, number);
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// The time after which refusals that were not recorded one by one are in the trail, with their number.
const REFUSALS_INTERVAL: Duration = Duration::from_secs(1);

async fn count_refusals(gateway: Arc<ServingGateway>) {
    loop {
        gateway.audit().unrecorded_refusals().await;
        tokio::time::sleep(REFUSALS_INTERVAL).await;
        gateway.audit().count_refusals();
    }
}

/// The time after which the use of a key is in the state.
const USES_INTERVAL: Duration = Duration::from_secs(5);

/// Writes the uses of keys to the state; waits while there are none.
async fn write_uses(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) {
    let mut is_failing = false;
    loop {
        gateway.identities().used().await;
        tokio::time::sleep(USES_INTERVAL).await;
        let written = gateway.identities().write_uses(&state).await;
        telemetry::note_written(&mut is_failing, &written, "uses of keys");
    }
}

/// The time after which the calls of an agent with a quota are in the state: this much is lost if the process is killed.
const QUOTAS_INTERVAL: Duration = Duration::from_secs(1);

/// Writes the calls of agents with a quota; waits while there are none.
async fn write_quotas(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) {
    let mut is_failing = false;
    loop {
        gateway.quotas().used().await;
        tokio::time::sleep(QUOTAS_INTERVAL).await;
        let written = gateway.quotas().write(&state).await;
        telemetry::note_written(&mut is_failing, &written, "calls of agents with a quota");
    }
}

/// The time after which a client's settings for its session are in the state.
const NOTES_INTERVAL: Duration = Duration::from_millis(50);

/// The pause after they could not be written.
const NOTES_RETRY: Duration = Duration::from_secs(1);

/// Writes the settings that clients make for their sessions; waits while there are none.
async fn write_session_notes(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) {
    let mut is_failing = false;
    loop {
        gateway.session_notes().noted().await;
        tokio::time::sleep(NOTES_INTERVAL).await;
        let written = gateway.session_notes().write(&state).await;
        if let (Err(error), false) = (&written, is_failing) {
            tracing::warn!(%error, "what clients asked of their sessions is not in the state yet");
        }
        is_failing = written.is_err();
        if is_failing {
            tokio::time::sleep(NOTES_RETRY).await;
        }
    }
}

/// Applies the settings that clients made for their sessions at other processes.
async fn take_over_session_notes(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) {
    let mut changes = state.session_changes();
    loop {
        // The task behind the feed logs that the state cannot be read.
        if gateway.session_notes().take_over(&state).await.is_err() {
            tokio::time::sleep(KEYS_RETRY).await;
        } else if changes.changed().await.is_err() {
            return;
        }
    }
}

/// The time between two searches for files of builds that other nodes have dropped.
const BUILDS_INTERVAL: Duration = Duration::from_secs(60 * 60);

async fn remove_unnamed_builds(state: Arc<GatewayState>) {
    loop {
        if let Err(error) = state.remove_unnamed_builds().await {
            tracing::warn!(%error, "files of builds that nothing needs are not removed yet");
        }
        tokio::time::sleep(BUILDS_INTERVAL).await;
    }
}

async fn forget_ended_plans(gateway: Arc<ServingGateway>) {
    if let Some(plans) = gateway.plans() {
        plans.forget_ended().await;
    }
}

/// Logs that the commands of other servers can read this gateway's own files, if the kernel cannot prevent it.
fn warn_without_sandbox(config: &GatewayConfig) {
    let mut commands = config.upstreams.values();
    if commands.any(|upstream| upstream.url.is_none() && upstream.sandbox)
        && !weir_upstream::can_keep_files()
    {
        tracing::warn!(
            "this kernel has no Landlock (Linux 5.19): the commands in [upstreams] can read the state folder, the \
             configuration and the files of secrets; run them as another user"
        );
    }
}

/// Keeps the process alive at the limit on the size of files: a write beyond it fails, and its operation is refused.
fn outlive_file_limit() {
    #[cfg(target_os = "linux")]
    const SIGXFSZ: i32 = 25;
    #[cfg(target_os = "linux")]
    if let Err(error) =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(SIGXFSZ))
    {
        tracing::warn!(%error, "a limit on the size of files would end this process");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_usual_port_is_taken_where_it_is_free_and_none_is_configured() {
        let any = || TcpListener::bind("127.0.0.1:0");
        let mut taken = None;
        for _ in 0..10 {
            let port = any().await.expect("a port").local_addr().expect("it");
            let usual = listen_for_admins(None, port).await.expect("it is free");
            // Another test may have the port meanwhile.
            if usual.local_addr().expect("an address") == port {
                taken = Some((port, usual));
                break;
            }
        }
        let (port, _usual) = taken.expect("one of ten is taken");
        let other = listen_for_admins(None, port).await.expect("another one");
        assert_ne!(other.local_addr().expect("an address"), port);
        assert!(listen_for_admins(Some(port), port).await.is_err());
    }
}
