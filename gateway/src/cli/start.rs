//! From settings to a gateway that serves: connections, plugins, contracts, in dependency order.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context as _;
use weir_connections::Connections;
use weir_contracts::Problem;
use weir_plugin_host::{Host, HostConfig};

use super::{Failure, Settings};
use crate::{
    call::cursor::Cursors,
    config::{self, Config},
    gateway::Gateway,
    registry::{self, Registry},
    telemetry,
};

pub(super) struct Started {
    pub gateway: Arc<Gateway>,
    pub registry: Arc<Registry>,
}

impl Settings {
    /// The file, with flags and environment over it.
    pub(super) fn config(&self) -> Result<Config, Failure> {
        let file = self.config.clone().or_else(|| Some(PathBuf::from("weir.toml")).filter(|file| file.exists()));
        let mut config = match file {
            Some(file) => config::load(&file)?,
            None => Config::bare(Path::new(".")),
        };
        self.over(&mut config);
        Ok(config)
    }

    /// True where a configuration was named or lies in the working folder.
    pub(super) fn present(&self) -> bool {
        self.config.is_some() || Path::new("weir.toml").exists()
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

/// Everything but the contracts. Plugins that do not load are reported and left out.
pub(super) async fn gateway(config: Config) -> Result<Started, Failure> {
    telemetry::start(&config.log);
    let connections = Connections::new(&config.connections, &config.base).map_err(|problems| {
        let place = |name: &str| format!("/connections/{name}");
        problems.into_iter().map(|(name, what)| Problem::new("weir.toml", place(&name), what)).collect::<Vec<_>>()
    })?;
    let state = &config.folders.state;
    // A spreadsheet of the command line may lie anywhere; only that one file is named to its adapter.
    if let Some(name) = connections.reaching(state).filter(|name| *name != super::draft::CONNECTION) {
        let message = format!("reaches Weir's own state in {}", state.display());
        let problem = Problem::new("weir.toml", format!("/connections/{name}"), message);
        return Err(vec![problem.hint("keep data and `[folders] state` apart")].into());
    }
    let host = Host::new(
        HostConfig {
            plugins: config.folders.plugins.clone(),
            cache: config.folders.cache.clone().unwrap_or_else(|| state.join("plugins")),
            plugin: config.plugins.clone(),
            instances_max: 256,
            parked_bytes_max: 512 << 20,
        },
        Arc::new(connections),
    )?;
    let cursors = Cursors::open(state).with_context(|| format!("the state folder {}", state.display()))?;
    let host = Arc::new(host);
    let gateway = Arc::new(Gateway::new(config, host.clone(), cursors));
    let weak = Arc::downgrade(&gateway); // the gateway owns the host
    let in_use =
        move |adapter: &str| weak.upgrade().map_or_else(Vec::new, |gateway| registry::in_use(&gateway, adapter));
    host.set_in_use(Arc::new(in_use));
    for report in host.load_all().await {
        report_load(&report);
    }
    let registry = Arc::new(Registry::new(gateway.clone()));
    Ok(Started { gateway, registry })
}

/// The contracts of the folder; refused when any file is wrong, so that a bad edit is seen at start.
pub(super) async fn contracts(started: &Started) -> Result<(), Failure> {
    let report = started.registry.load().await;
    if !report.problems.is_empty() {
        return Err(Failure::Problems(report.problems));
    }
    for (path, why) in &report.waiting {
        tracing::warn!("waiting: {}: {why}", path.display());
    }
    Ok(())
}

/// Follows plugins and, where contracts come from files, those, while the process serves.
pub(super) fn watch(started: &Started, files: bool) {
    let host = started.gateway.host().clone();
    tokio::spawn(async move { host.watch(|report| report_load(&report)).await });
    if files {
        let registry = started.registry.clone();
        tokio::spawn(async move { registry.watch().await });
    }
}

fn report_load(report: &weir_plugin_host::LoadReport) {
    match &report.result {
        Ok(plugin) => tracing::info!(
            file = report.file,
            plugin = plugin.name,
            version = plugin.version,
            digest = plugin.digest.get(..12).unwrap_or(&plugin.digest),
            generation = plugin.generation,
            "plugin loaded"
        ),
        Err(why) => tracing::error!(file = report.file, "plugin refused: {why}"),
    }
}
