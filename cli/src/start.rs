//! Turns settings into a program that serves.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::signal::unix::{Signal, SignalKind, signal};
use weir::{
    app::{AppOptions, GatewayApp},
    config::{self, GatewayConfig},
    control::reload::ConfigReloader,
    identity::{AuthenticationError, CallerIdentity, RequestCredential},
};
use weir_contracts::FileProblem;

use super::{AppError, CliSettings};

/// The advice of a command that needs a configuration.
pub(super) const NAME_ONE: &str = "Name one: --config /path/to/weir.toml";

/// The filter of a command's log lines: problems, and the reason for a long wait.
const QUIET_FILTER: &str = "warn,weir::compiling=info";

/// The connection for files that are dropped into the console without a configuration, and its folder next to the state.
const FILES: &str = "files";
const FILES_FOLDER: &str = "weir-files";

impl CliSettings {
    /// Reads the file; flags and environment variables override it.
    pub(super) fn config(&self) -> Result<GatewayConfig, Vec<FileProblem>> {
        let mut config = match self.found_file() {
            Some(file) => config::load(&file)?,
            None => GatewayConfig::bare(Path::new(".")),
        };
        self.over(&mut config);
        if config.state.url.is_some() && self.contracts.is_some() {
            let problem = FileProblem::new(
                "--contracts",
                "",
                "a gateway that shares its state reads no contract files",
            );
            let hint = "leave it out, and submit the files with `weir contracts apply DIR`";
            return Err(vec![problem.hint(hint)]);
        }
        Ok(config)
    }

    /// Reads the configuration of a gateway with a console. Without a file, it has a connection to a folder next to the
    /// state, so that a file that is dropped into the console becomes a tool.
    pub(super) fn config_of_server(&self) -> Result<GatewayConfig, Vec<FileProblem>> {
        // Where nothing can be written this folder is missing, and the gateway serves all the same.
        let folder = Path::new(FILES_FOLDER);
        if self.present() || weir_files::create_folder(folder, 0o777).is_err() {
            return self.config();
        }
        let text = format!(
            "[connections.{FILES}]\nkind = \"files\"\npath = \"{FILES_FOLDER}\"\nuploads = true\n[plugins.sheet.grants]\n{FILES} = \"read\"\n"
        );
        let mut config = config::read(config::DEFAULTS, &text, Path::new("."))?;
        self.over(&mut config);
        Ok(config)
    }

    /// Returns the state folder. A faulty configuration does not stop commands that only talk to a running
    /// gateway: a key must be revocable at any time.
    pub(super) fn state_folder(&self) -> PathBuf {
        let (folder, fault) = self.find_state_folder();
        if let Some(fault) = fault {
            eprintln!(
                "weir: {fault}\nweir: {} has a fault; the gateway that runs is asked all the same",
                self.file().display()
            );
        }
        folder
    }

    /// Returns the state folder, and the first fault of the configuration.
    pub(super) fn find_state_folder(&self) -> (PathBuf, Option<FileProblem>) {
        let problems = match self.config() {
            Ok(config) => return (config.folders.state, None),
            Err(problems) => problems,
        };
        let file = self.file();
        let base = file.parent().unwrap_or(Path::new("."));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let stated = text.parse::<toml::Table>().ok().and_then(|all| {
            all.get("folders")?
                .get("state")?
                .as_str()
                .map(|state| base.join(state))
        });
        let stated = self.state.clone().or(stated);
        let folder = stated.unwrap_or_else(|| GatewayConfig::bare(base).folders.state);
        (folder, problems.into_iter().next())
    }

    /// Returns the file of the configuration that is read: the one that was named, or that of the working folder if there
    /// is one.
    pub(super) fn found_file(&self) -> Option<PathBuf> {
        let found = || Some(PathBuf::from("weir.toml")).filter(|file| file.exists());
        self.config.clone().or_else(found)
    }

    /// Returns the file of the configuration that is read, or that would be.
    pub(super) fn file(&self) -> PathBuf {
        self.config
            .clone()
            .unwrap_or_else(|| PathBuf::from("weir.toml"))
    }

    /// Returns `true` if a configuration was named or lies in the working folder.
    pub(super) fn present(&self) -> bool {
        self.found_file().is_some()
    }

    /// Reads the configuration of a place that has something to serve. A command in the wrong folder would otherwise leave a
    /// state folder there. `advice`: what to name instead.
    pub(super) fn config_to_serve(&self, advice: &str) -> Result<GatewayConfig, AppError> {
        let config = self.config()?;
        self.names_something(&config, advice)?;
        Ok(config)
    }

    /// Refuses to start if there is nothing to serve: a client on stdio would silently get a server without tools.
    pub(super) fn names_something(
        &self,
        config: &GatewayConfig,
        advice: &str,
    ) -> anyhow::Result<()> {
        let folders = &config.folders;
        if self.present() || folders.contracts.exists() || folders.state.exists() {
            return Ok(());
        }
        let here = std::env::current_dir().unwrap_or_default();
        anyhow::bail!(
            "there is nothing to serve: looked for `weir.toml`, the contracts folder `{}` and the state folder `{}` in {}, \
             and neither --config nor WEIR_CONFIG names a configuration. {advice}",
            folders.contracts.display(),
            folders.state.display(),
            here.display()
        )
    }

    pub(super) fn over(&self, config: &mut GatewayConfig) {
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

/// Opens the gateway of this place with its contracts, for a command that answers and ends, and the caller that it answers
/// to: the holder of `WEIR_KEY`.
pub(super) async fn here(
    settings: &CliSettings,
    process: &str,
) -> Result<(GatewayApp, CallerIdentity), AppError> {
    let config = settings.config_to_serve(NAME_ONE)?;
    let started = briefly(config, Some(process)).await?;
    started.load(false).await?;
    let caller = caller(&started)?;
    Ok((started, caller))
}

/// Returns the agent of `WEIR_KEY`.
pub(super) fn caller(started: &GatewayApp) -> anyhow::Result<CallerIdentity> {
    let key = key();
    let credential = key
        .as_deref()
        .map_or(RequestCredential::None, RequestCredential::Key);
    identified(started, credential).map_err(|refused| match refused {
        AuthenticationError::Missing => anyhow::anyhow!("a key is needed: set WEIR_KEY"),
        refused => anyhow::anyhow!("WEIR_KEY: {}", refused.message()),
    })
}

/// Identifies the caller of a command.
pub(super) fn identified(
    started: &GatewayApp,
    credential: RequestCredential<'_>,
) -> Result<CallerIdentity, AuthenticationError> {
    started.gateway.identities().resolve(credential)
}

/// Returns the key of the caller, if keys are needed.
pub(super) fn key() -> Option<String> {
    key_in("WEIR_KEY")
}

/// Returns the key in a variable, without the line ending that environment files may leave after it.
pub(super) fn key_in(variable: &str) -> Option<String> {
    let key = std::env::var_os(variable)?;
    // What is not UTF-8 is not a key, and is refused as an invalid one.
    let key = key.to_string_lossy();
    let key = key.trim_end_matches(['\r', '\n']);
    (!key.is_empty()).then(|| key.to_owned())
}

/// Opens the gateway for a command that prints an answer and exits: the log of the start is kept off the terminal.
pub(super) async fn briefly(
    mut config: GatewayConfig,
    process: Option<&str>,
) -> Result<GatewayApp, AppError> {
    config
        .log
        .filter
        .get_or_insert_with(|| QUIET_FILTER.to_owned());
    opened(config, process, true).await
}

/// Opens the gateway. `process` is what this process does, for the audit trail; without it nothing is called and
/// nothing recorded.
pub(super) async fn open(
    config: GatewayConfig,
    process: Option<&str>,
) -> Result<GatewayApp, AppError> {
    opened(config, process, false).await
}

async fn opened(
    config: GatewayConfig,
    process: Option<&str>,
    is_command: bool,
) -> Result<GatewayApp, AppError> {
    let (guard, runner) = (super::child::words(), super::native_host::words());
    GatewayApp::open(
        config,
        AppOptions {
            process,
            is_command,
            built_in: super::built_in(),
            guard,
            runner,
        },
    )
    .await
}

/// Listens for SIGHUP, which no longer ends the process then. A signal that comes before [`follow_hangups`] is kept for it.
pub(super) fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// Reloads the configuration on each SIGHUP.
pub(super) async fn follow_hangups(hangups: std::io::Result<Signal>, reload: Arc<ConfigReloader>) {
    let mut hangups = match hangups {
        Ok(hangups) => hangups,
        Err(error) => return tracing::error!(%error, "SIGHUP cannot be received"),
    };
    while hangups.recv().await.is_some() {
        match reload.run("signal").await {
            Ok(taken) => {
                let restart = taken.needs_restart.join(" ");
                tracing::info!(
                    changed = taken.changed.join(" "),
                    needs_restart = restart,
                    "configuration reloaded"
                );
            }
            Err(problems) => {
                problems
                    .iter()
                    .for_each(|problem| tracing::error!("configuration refused: {problem}"));
            }
        }
    }
}
