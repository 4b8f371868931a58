//! A short-lived gateway over one component: with its own state, and no writable connection.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use weir::{
    app::GatewayApp,
    call::{CallContent, CallRequest, CatalogueEndpoint, IncompleteCall, call_tool},
    config::{GatewayConfig, IdentityConfig},
    identity::RequestCredential,
};
use weir_plugin_host::{ConnectionGrant, PluginConfig};

use super::super::{AppError, block_on, draft, start};

/// A gateway with which a component is tried. Its folder is removed when it is dropped.
pub(super) struct TrialGateway {
    folder: PathBuf,
    pub(super) config: GatewayConfig,
}

impl TrialGateway {
    /// Makes a trial of `component`, with the settings and connections of `config`. `write` allows it to write to
    /// connections.
    pub(super) fn new(
        component: &Path,
        config: GatewayConfig,
        write: bool,
    ) -> Result<Self, AppError> {
        if component
            .extension()
            .is_some_and(|end| end == std::env::consts::DLL_EXTENSION)
        {
            return Self::of_library(component, config, write);
        }
        let bytes = fs::read(component)
            .with_context(|| format!("{} cannot be read", component.display()))?;
        Self::of_bytes(&bytes, config, write)
    }

    /// Makes a trial of a native library, in a separate process. The library itself states its name.
    fn of_library(library: &Path, config: GatewayConfig, write: bool) -> Result<Self, AppError> {
        let bytes =
            fs::read(library).with_context(|| format!("{} cannot be read", library.display()))?;
        let named = PluginConfig {
            native: Some(library.canonicalize()?),
            sha256: vec![hex::encode(Sha256::digest(&bytes))],
            ..PluginConfig::default()
        };
        let mut trial = Self::over(config, write)?;
        let name = block_on(async {
            let started = trial.load().await?;
            Ok::<_, AppError>(started.gateway.host().library_name(&named).await)
        })??;
        let name = name.map_err(|why| anyhow::anyhow!("{}: {why}", library.display()))?;
        let own = trial.config.plugins.entry(name).or_default();
        *own = PluginConfig {
            native: named.native,
            sha256: named.sha256,
            dev: true,
            ..own.clone()
        };
        Ok(trial)
    }

    pub(super) fn of_bytes(
        component: &[u8],
        config: GatewayConfig,
        write: bool,
    ) -> Result<Self, AppError> {
        let trial = Self::over(config, write)?;
        fs::write(trial.config.folders.plugins.join("plugin.wasm"), component)?;
        Ok(trial)
    }

    /// Makes a trial without a plugin.
    fn over(mut config: GatewayConfig, write: bool) -> Result<Self, AppError> {
        let state = if config.folders.state.exists() {
            config.folders.state.clone()
        } else {
            draft::state_folder()
        };
        let folder = state.join(format!("trial-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let plugins = folder.join("plugins");
        fs::create_dir_all(&plugins)
            .with_context(|| format!("{} cannot be made", plugins.display()))?;
        let trial = folder.clone();
        config.folders.state.clone_from(&state);
        config.folders.cache = Some(config.compiled_folder());
        config.folders.plugins = plugins;
        config.folders.state = folder.join("state");
        config.identity = IdentityConfig::default();
        // Of all that is logged the author reads why a tool failed.
        config.log.filter = Some("off,weir::plugin=error".to_owned());
        for plugin in config.plugins.values_mut() {
            // The author's folder has no other build that could be meant.
            plugin.dev = true;
            plugin.sha256.clear();
            plugin.signed_by.clear();
            plugin.native = None;
            if !write {
                plugin
                    .grants
                    .values_mut()
                    .for_each(|grant| *grant = ConnectionGrant::Read);
            }
        }
        Ok(Self {
            folder: trial,
            config,
        })
    }

    /// Only loads the component, without judging its definitions.
    pub(super) async fn load(&self) -> Result<GatewayApp, AppError> {
        let mut config = self.config.clone();
        config.folders.state = self.folder.join("look");
        start::briefly(config, None).await
    }

    /// Serves it, with the contracts of its folder.
    pub(super) async fn serve(&self) -> Result<GatewayApp, AppError> {
        let started = start::briefly(self.config.clone(), Some("check")).await?;
        started.load(false).await?;
        Ok(started)
    }
}

impl Drop for TrialGateway {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns why the component does not load.
pub(super) fn refusal(started: &GatewayApp) -> Option<String> {
    started
        .control
        .plugin_files()
        .refused()
        .into_iter()
        .map(|refused| refused.reason)
        .next()
}

/// The outcome of one call.
pub(super) enum TrialOutcome {
    Answered {
        structured: Option<Value>,
        content: Value,
    },
    Failed {
        code: String,
        reason: Option<String>,
        text: String,
    },
    /// The tool has questions for its caller.
    Asked,
    /// The tool is unknown; these are the names that exist.
    Unknown(Vec<String>),
}

impl TrialOutcome {
    /// Reads the result of a `tools/call`.
    pub(super) fn of_result(result: &Value) -> Self {
        if result["resultType"] == "input_required" {
            return Self::Asked;
        }
        let (structured, content) = (
            result.get("structuredContent").cloned(),
            result["content"].clone(),
        );
        if result["isError"] != true {
            return Self::Answered {
                structured,
                content,
            };
        }
        let error = structured.unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = text(&content[0]["text"])
            .or_else(|| text(&error["message"]))
            .unwrap_or_default();
        Self::Failed {
            code: text(&error["code"]).unwrap_or_default(),
            reason: text(&error["reason"]),
            text: message,
        }
    }
}

/// Calls one tool as any client would.
pub(super) async fn call(started: &GatewayApp, tool: &str, arguments: &Value) -> TrialOutcome {
    let caller = match start::identified(started, RequestCredential::None) {
        Ok(caller) => caller,
        Err(refused) => {
            let text = refused.message().to_string();
            return TrialOutcome::Failed {
                code: "unauthenticated".to_owned(),
                reason: None,
                text,
            };
        }
    };
    let arguments = arguments.to_string();
    let snapshot = started.gateway.snapshot();
    let cancel = CancellationToken::new();
    let request = CallRequest {
        arguments: Some(&arguments),
        ..CallRequest::new(&snapshot, &CatalogueEndpoint::All, tool, "cli", &cancel)
    };
    match call_tool(&started.gateway, &caller, &request)
        .await
        .unasked()
    {
        Ok(result) => {
            let read = |text: &str| serde_json::from_str(text).unwrap_or_default();
            let structured = result.structured.as_deref().map(read);
            let content = match &result.content {
                CallContent::Blocks(blocks) => read(blocks),
                other => json!([{ "type": "text", "text": other.text() }]),
            };
            let mut answer = json!({ "content": content, "isError": result.is_error });
            if let Some(structured) = structured {
                answer["structuredContent"] = structured;
            }
            TrialOutcome::of_result(&answer)
        }
        Err(IncompleteCall::Asks) => TrialOutcome::Asked,
        Err(IncompleteCall::NotThere) => {
            let snapshot = started.gateway.snapshot();
            let mut names: Vec<String> = snapshot
                .catalogue
                .tools()
                .map(|tool| tool.name.to_string())
                .collect();
            names.sort_unstable();
            TrialOutcome::Unknown(names)
        }
    }
}
