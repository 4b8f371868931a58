//! Contracts from code. The tools that a plugin defines are compiled and judged by the gate like every other submission, and only
//! a build whose definitions are published serves.

use std::sync::{Arc, Weak};

use weir_contracts::{CompiledContract, FileProblem, code, form, uri};
use weir_plugin_host::{
    Admitting, BuildAdmission, PluginChange, PluginConfig, ToolDefinitions, ToolGate,
};
use weir_state::VersionSource;

use super::locks;
use crate::{
    control::{
        FolderReport, SnapshotPublisher,
        gate::{
            ContractOrigin, DraftApproval, Gate, GateError, HeldDraft, Role, Submission, Verdict,
        },
    },
    serving::ServingGateway,
};

/// Submits the definitions of plugins.
pub struct PluginSource {
    gateway: Arc<ServingGateway>,
    publisher: Arc<SnapshotPublisher>,
}

/// The interface of the source for the plugin host.
pub struct CodeGate(Weak<PluginSource>);

impl CodeGate {
    /// Creates the gate. It refuses every build once the source is dropped.
    pub fn new(source: &Arc<PluginSource>) -> Self {
        Self(Arc::downgrade(source))
    }
}

impl ToolGate for CodeGate {
    fn admit<'a>(
        &'a self,
        plugin: &'a str,
        _build: &'a str,
        definitions: &'a ToolDefinitions,
    ) -> Admitting<'a> {
        Box::pin(async move {
            match self.0.upgrade() {
                Some(source) => source.admit(plugin, definitions).await,
                None => BuildAdmission::Refused("the gateway is ending".to_owned()),
            }
        })
    }

    fn changed(&self, plugin: &str, changed: PluginChange) {
        if let Some(source) = self.0.upgrade() {
            source.announce(plugin, &changed);
        }
    }

    fn loaded(&self) {
        if let Some(source) = self.0.upgrade() {
            source.publisher.serve_live();
        }
    }

    fn promised(&self) -> Vec<(String, Arc<str>)> {
        let live = self
            .0
            .upgrade()
            .map(|source| source.gate().live())
            .unwrap_or_default();
        let promised = |contract: &CompiledContract| {
            Some((
                contract.plugin()?.to_owned(),
                contract.definitions.as_deref()?.into(),
            ))
        };
        live.values()
            .filter_map(|live| promised(&live.contract))
            .collect()
    }
}

/// The outcome of submitting definitions.
enum DefinitionsOutcome {
    /// No tool of the plugin is published, since it offers none or the contract was retired.
    Nothing,
    Judged(Verdict),
    /// An admin rolled back the version that came from these definitions.
    RolledBack,
}

impl PluginSource {
    pub(in crate::control) fn new(
        gateway: Arc<ServingGateway>,
        publisher: Arc<SnapshotPublisher>,
    ) -> Self {
        Self { gateway, publisher }
    }

    fn gate(&self) -> &Gate {
        self.publisher.gate()
    }

    /// A plugin announces changes only for its own contract.
    fn announce(&self, plugin: &str, changed: &PluginChange) {
        let announcements = self.gateway.announcements();
        let snapshot = self.gateway.snapshot();
        let contract = snapshot
            .contracts
            .iter()
            .find(|contract| contract.plugin() == Some(plugin));
        let Some(contract) = contract else { return };
        match changed {
            PluginChange::Tools => announcements.list_changed(&contract.name, 0),
            PluginChange::Prompts => announcements.list_changed(&contract.name, 1),
            PluginChange::Resources => announcements.list_changed(&contract.name, 2),
            PluginChange::Resource(uri) => {
                let is_listed = contract
                    .resources
                    .iter()
                    .any(|resource| resource.uri == *uri)
                    || contract
                        .templates
                        .iter()
                        .any(|template| uri::is_made_of(&template.uri_template, uri));
                if is_listed {
                    announcements.resource_changed(uri);
                }
            }
        }
    }

    async fn admit(&self, plugin: &str, definitions: &ToolDefinitions) -> BuildAdmission {
        match self.submit_code(plugin, definitions).await {
            Ok(DefinitionsOutcome::Nothing | DefinitionsOutcome::Judged(Verdict::Published { .. } | Verdict::Unchanged { .. })) => BuildAdmission::Yes,
            Ok(DefinitionsOutcome::Judged(Verdict::Held(held))) => {
                BuildAdmission::Held(format!("held: it defines other tools than are published: {}", held.line()))
            }
            Ok(DefinitionsOutcome::RolledBack) => BuildAdmission::Held(
                "held: someone went back from what it defines. Publish that version again with `weir contracts rollback`, \
                 or put another build there"
                    .to_owned(),
            ),
            Err(GateError::Refused(problems)) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                BuildAdmission::Refused(format!("its tools cannot be published: {}", problems.join("; ")))
            }
            Err(error) => BuildAdmission::Refused(format!("its tools cannot be published: {error}")),
        }
    }

    /// Submits the tools of the builds that serve, since other settings may publish other tools.
    pub(in crate::control) async fn submit_all(&self, report: &mut FolderReport) {
        for (plugin, definitions) in self.gateway.host().defined() {
            match self.submit_code(&plugin, &definitions).await {
                Ok(DefinitionsOutcome::Judged(Verdict::Held(held))) => report.held.push(held),
                Ok(_) => {}
                Err(GateError::Refused(problems)) => report.problems.extend(problems),
                Err(error) => {
                    report
                        .problems
                        .push(FileProblem::new(&plugin, "", error.to_string()))
                }
            }
        }
    }

    async fn submit_code(
        &self,
        plugin: &str,
        definitions: &ToolDefinitions,
    ) -> Result<DefinitionsOutcome, GateError> {
        let config = self
            .gateway
            .config()
            .plugins
            .get(plugin)
            .cloned()
            .unwrap_or_default();
        if config.tools.as_ref().is_some_and(Vec::is_empty) {
            return Ok(DefinitionsOutcome::Nothing);
        }
        let contract = compiled(plugin, &config, definitions).map_err(GateError::Refused)?;
        let from_code = VersionSource {
            origin: ContractOrigin::Code,
            owner: None,
        };
        let all = Arc::clone(&self.gateway.config());
        locks::restore_offer(self.gate(), &all, &contract.name, from_code).await?;
        self.gate().refresh().await?;
        let live = self.gate().live().get(&contract.name).cloned();
        let is_live = live
            .as_ref()
            .is_some_and(|live| live.contract.definitions == contract.definitions);
        if !is_live
            && self
                .gate()
                .is_rolled_back(&contract.name, &definitions.text)
                .await?
        {
            return Ok(if live.is_some() {
                DefinitionsOutcome::RolledBack
            } else {
                DefinitionsOutcome::Nothing
            });
        }
        let by = format!("plugin:{plugin}");
        let submission = Submission {
            contract,
            source: &definitions.text,
            origin: ContractOrigin::Code,
            owner: None,
            by: &by,
            hold: false,
            on: None,
        };
        let verdict = match self.gate().submit(submission).await? {
            Verdict::Held(held) if config.dev => self.approve_at_work(held, &by).await?,
            verdict => verdict,
        };
        Ok(DefinitionsOutcome::Judged(verdict))
    }

    /// Publishes every build of a plugin under development, whatever changes.
    async fn approve_at_work(&self, held: HeldDraft, by: &str) -> Result<Verdict, GateError> {
        let approval = DraftApproval {
            fingerprint: &held.fingerprint,
            role: Role::Operator,
            by,
        };
        match self.gate().approve(&held.draft, &approval, None).await {
            Ok((_, Some(version))) => Ok(Verdict::Published {
                version,
                diff: held.diff,
            }),
            // Another submission was decided first: the live version remains.
            Ok((_, None)) | Err(GateError::Outdated { .. } | GateError::Decided(_)) => {
                Ok(Verdict::Held(held))
            }
            Err(error) => Err(error),
        }
    }
}

fn compiled(
    plugin: &str,
    config: &PluginConfig,
    definitions: &ToolDefinitions,
) -> Result<CompiledContract, Vec<FileProblem>> {
    let rate = match &config.limits.rate {
        None => None,
        Some(text) => Some(form::rate(text).ok_or_else(|| {
            let problem = FileProblem::new(
                plugin,
                "",
                format!("`[plugins.{plugin}.limits] rate` is not a rate: {text:?}"),
            );
            vec![problem.hint("write it as 10/s, 60/min, 1000/hour or 5000/day")]
        })?),
    };
    let plugin = code::PluginOptions {
        name: plugin,
        contract: config.contract.as_deref().unwrap_or(plugin),
        prefix: config.prefix.as_deref().unwrap_or_default(),
        only: config.tools.as_deref(),
        rate,
        timeout_ms: config.limits.timeout_ms,
        clear: &config.audit.clear,
        approved: &config.approval,
    };
    code::compile(&plugin, &definitions.text)
}
