//! Background work other than the sources: changed plugins and edited configurations.

use std::sync::Arc;

use tokio::sync::watch;
use weir_audit::AdminAct;
use weir_contracts::FileProblem;
use weir_plugin_host::{LoadReport, PluginStatus};

use super::ControlPlane;
use crate::{config::GatewayConfig, plugin_files::PluginFiles};

impl ControlPlane {
    /// Applies what may change while serving.
    pub fn reconfigure(&self, config: GatewayConfig) {
        self.gateway.reconfigure(config);
        self.wake_background();
    }

    /// Wakes whenever the configuration or a plugin changes.
    pub fn background_changes(&self) -> watch::Receiver<u64> {
        self.background.subscribe()
    }

    fn wake_background(&self) {
        self.background.send_modify(|count| *count += 1);
    }

    /// Returns the outcomes of the files in the plugins folder.
    pub fn plugin_files(&self) -> &PluginFiles {
        &self.plugin_files
    }

    /// Returns why connections and upstreams of the configuration could not be opened; calls that need one are
    /// `unavailable`.
    pub fn refused_connections(&self) -> Arc<Vec<FileProblem>> {
        self.refused_connections.load_full()
    }

    /// Replaces the problems of connections and upstreams that could not be opened.
    pub fn set_refused_connections(&self, problems: Vec<FileProblem>) {
        self.refused_connections.store(Arc::new(problems));
    }

    /// Records the outcome of one file: it is kept, counted and logged, and written to the audit trail if it changed what runs.
    pub fn note_plugin(&self, report: &LoadReport) {
        self.plugin_files.note(report);
        self.wake_background();
        let origin = report
            .result
            .as_ref()
            .map_or("folder", PluginStatus::origin);
        if let Ok(plugin) = &report.result {
            let act = if report.removed {
                AdminAct::PluginRemove
            } else {
                AdminAct::PluginLoad
            };
            let _ =
                self.gateway
                    .audit()
                    .admin(act, &plugin.name, Some(&plugin.digest), origin, None);
        }
        self.gateway.metrics().plugin_load(report);
        match &report.result {
            _ if report.removed => tracing::info!(file = report.file, "plugin removed"),
            // It is part of the program, whose version is logged already.
            Ok(plugin) if plugin.built_in && plugin.generation == 1 => tracing::debug!(
                plugin = plugin.name,
                digest = plugin.digest.get(..12).unwrap_or(&plugin.digest),
                "built-in plugin loaded"
            ),
            Ok(plugin) => tracing::info!(
                file = report.file,
                origin,
                plugin = plugin.name,
                version = plugin.version,
                digest = plugin.digest.get(..12).unwrap_or(&plugin.digest),
                generation = plugin.generation,
                "plugin loaded"
            ),
            Err(why) if report.held.is_some() => tracing::warn!(file = report.file, "plugin {why}"),
            Err(why) => tracing::error!(file = report.file, "plugin refused: {why}"),
        }
    }
}
