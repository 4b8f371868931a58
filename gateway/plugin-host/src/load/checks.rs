//! Finds out about a build what the verdict depends on: one function for each check.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use super::{
    BuildRefusal, PluginLoader, PreparedComponent, TRIAL_MAX, component,
    verdict::{BuildCheck, BuildFacts, BuildSource, LoadVerdict, ToolAdmission, verdict},
};
use crate::{
    PluginConfig,
    guest::{CallPurpose, GuestCall},
    instance::PluginInstance,
    library::LibraryCode,
    plugin::{LoadedPlugin, PluginDescription, PluginGeneration},
    signature,
    tools::{BuildAdmission, ToolDefinitions},
};

/// The bound on definitions: more than four hundred tools of the usual size.
const DEFINITIONS_MAX_BYTES: usize = 1 << 20;

/// A build that was opened, on its way to serve.
pub(super) struct BuildCandidate {
    source: BuildSource,
    place: BuildPlace,
    /// The plugin that it would be the next build of.
    pub(super) current: Option<Arc<LoadedPlugin>>,
    pub(super) config: PluginConfig,
    pub(super) generation: PluginGeneration,
    pub(super) facts: BuildFacts,
    /// Notes for the operator.
    pub(super) notes: Vec<String>,
}

/// The place that a build was found in, and what is expected there.
pub(super) enum BuildPlace {
    /// The plugin of this name, inside the program.
    BuiltIn(&'static str),
    /// The file of this name in the folder.
    File(String),
    /// The library of the plugin of this name; a file of the folder that serves it gives way.
    Library { name: String, file: Option<String> },
    /// A build that the plugin kept for its definitions.
    Kept {
        name: String,
        definitions: String,
        path: PathBuf,
    },
    /// The build serves already.
    Serving,
}

impl PluginLoader {
    pub(super) fn candidate(
        &self,
        source: BuildSource,
        place: BuildPlace,
        current: Option<Arc<LoadedPlugin>>,
        about: PluginDescription,
        prepared: PreparedComponent,
    ) -> BuildCandidate {
        let config = self.plugin_config(&about.name);
        let notes = prepared.notes.clone();
        let generation = self.generation(current.as_deref(), about, None, &config, prepared);
        BuildCandidate {
            source,
            place,
            current,
            facts: BuildFacts::new(&config),
            config,
            generation,
            notes,
        }
    }

    /// Makes the checks that the verdict depends on. The build is returned if it may serve.
    pub(super) async fn judge(
        &mut self,
        mut build: BuildCandidate,
    ) -> Result<BuildCandidate, BuildRefusal> {
        let mut why = String::new();
        loop {
            let (check, is_held) = match verdict(&build.facts, build.source) {
                LoadVerdict::Serve => return Ok(build),
                LoadVerdict::Find(check) => {
                    why = self.make_check(check, &mut build).await;
                    continue;
                }
                LoadVerdict::Hold(check) => (check, true),
                LoadVerdict::Refuse(check) => (check, false),
            };
            // The check that decides is the one that was made last.
            let PluginGeneration {
                about,
                digest,
                definitions,
                ..
            } = build.generation;
            let definitions = definitions.filter(|_| check == BuildCheck::Gate);
            return Err(BuildRefusal {
                reason: why,
                held: is_held.then(|| digest.to_string()),
                defines: definitions
                    .map(|definitions| (about.name, Arc::clone(&definitions.digest))),
            });
        }
    }

    /// Makes a check, notes its result, and returns why the build did not pass.
    async fn make_check(&mut self, check: BuildCheck, build: &mut BuildCandidate) -> String {
        let checked = match check {
            BuildCheck::Acceptance => return self.look_up_acceptance(build).await,
            BuildCheck::Gate => return self.ask_gate(build).await,
            BuildCheck::Identity => build.check_identity(),
            BuildCheck::Pin => {
                let PluginGeneration { about, digest, .. } = &build.generation;
                check_pin(&about.name, &build.config, digest)
            }
            BuildCheck::Signature => self.check_signature_of(build).await,
            BuildCheck::Names => self.check_names(&build.place, &build.generation.about),
            BuildCheck::Tools => self.find_tools(build).await,
            BuildCheck::Needs => self.check_needs(build).await,
        };
        build.facts.note(check, checked.is_ok());
        checked.err().unwrap_or_default()
    }

    async fn look_up_acceptance(&self, build: &mut BuildCandidate) -> String {
        let PluginGeneration { about, digest, .. } = &build.generation;
        let serves = build
            .current
            .as_ref()
            .map(|plugin| Arc::clone(&plugin.generation.load().digest));
        let (record, why) = self
            .acceptance
            .look_up(&about.name, digest, serves.as_deref())
            .await;
        build.facts.record = Some(record);
        why.unwrap_or_else(|| {
            let file = match &build.place {
                BuildPlace::File(file) => Path::new(file).file_stem(),
                _ => None,
            };
            let stem = file.and_then(|stem| stem.to_str()).unwrap_or(&about.name);
            format!(
                "held: `{}` may write, and this build of it was not accepted. Accept it with `weir plugin accept \
                 {stem} --sha256 {digest}`, or pin it: `[plugins.{}] sha256`",
                about.name, about.name
            )
        })
    }

    /// Asks whether the build's tools are published. The gate is not asked if no contract comes from code.
    async fn ask_gate(&self, build: &mut BuildCandidate) -> String {
        let PluginGeneration {
            about,
            digest,
            definitions,
            ..
        } = &build.generation;
        let (admission, why) = match (self.served.tool_gate.load_full(), definitions) {
            (None, _) => (ToolAdmission::NoTools, String::new()),
            (Some(gate), None) => match gate.promised().iter().any(|(of, _)| *of == about.name) {
                true => (
                    ToolAdmission::ToolsMissing,
                    "a published contract needs its tools, and it has none".to_owned(),
                ),
                false => (ToolAdmission::NoTools, String::new()),
            },
            (Some(gate), Some(definitions)) => {
                match gate.admit(&about.name, digest, definitions).await {
                    BuildAdmission::Yes => (ToolAdmission::Published, String::new()),
                    BuildAdmission::Held(reason) => (ToolAdmission::Waiting, reason),
                    BuildAdmission::Refused(reason) => (ToolAdmission::Refused, reason),
                }
            }
        };
        build.facts.admission = Some(admission);
        why
    }

    /// Asks the build for its definitions. A kept build must declare what it was kept for.
    async fn find_tools(&self, build: &mut BuildCandidate) -> Result<(), String> {
        let defined = self
            .ask_definitions(&build.config, &build.generation)
            .await?;
        if let BuildPlace::Kept { definitions, .. } = &build.place
            && defined
                .as_ref()
                .is_none_or(|now| *now.digest != **definitions)
        {
            return Err(defines_other_tools());
        }
        build.generation.definitions = defined;
        Ok(())
    }

    async fn check_signature_of(&mut self, build: &BuildCandidate) -> Result<(), String> {
        let PluginGeneration { about, digest, .. } = &build.generation;
        let path = match &build.place {
            BuildPlace::File(file) => self.config.plugins.join(file),
            BuildPlace::Kept { path, .. } => path.clone(),
            // A built-in plugin has no separate signature; that of a library was checked before it was opened.
            BuildPlace::BuiltIn(_) | BuildPlace::Library { .. } | BuildPlace::Serving => {
                return Ok(());
            }
        };
        self.check_signature(&about.name, &build.config, path, digest)
            .await
    }

    /// Checks the plugin's names. The first file with a name keeps it: a later one cannot take over its grants or its
    /// adapters.
    fn check_names(&self, place: &BuildPlace, about: &PluginDescription) -> Result<(), String> {
        let own = match place {
            BuildPlace::File(file) => Some(file),
            BuildPlace::Library { file, .. } => file.as_ref(),
            _ => None,
        };
        if let Some(adapter) = about
            .adapters
            .iter()
            .find(|adapter| self.natives.get(&adapter.name).is_some())
        {
            return Err(format!(
                "the adapter `{}` is part of this program, which keeps it",
                adapter.name
            ));
        }
        self.check_libraries(about)?;
        for (file, known) in self.files.iter().filter(|(file, _)| Some(*file) != own) {
            let Some(plugin) = &known.slot.plugin else {
                continue;
            };
            let other = plugin.generation.load();
            if let Some(adapter) = about
                .adapters
                .iter()
                .find(|adapter| other.provides(&adapter.name))
            {
                return Err(format!(
                    "the adapter `{}` is already provided by `{file}`, which is kept",
                    adapter.name
                ));
            }
            if other.about.name == about.name {
                return Err(format!(
                    "a plugin named `{}` is already loaded from `{file}`, which is kept",
                    about.name
                ));
            }
        }
        Ok(())
    }

    pub(super) async fn ask_about(
        &self,
        prepared: &PreparedComponent,
    ) -> Result<PluginDescription, String> {
        let about = self.about_text(prepared).await?;
        PluginDescription::parse(&about, prepared.code.has_collections())
    }

    /// Returns what the plugin reports about itself, asked on an instance without grants.
    pub(super) async fn about_text(&self, prepared: &PreparedComponent) -> Result<String, String> {
        let profile = self.profile("trial", &PluginConfig::default(), prepared.size);
        let _running = self.engines.running();
        let trial = async {
            let call = GuestCall::own(&profile, CallPurpose::Trial, Instant::now() + TRIAL_MAX);
            let mut instance =
                PluginInstance::new(&prepared.code, prepared.size, &profile, call).await?;
            let about = instance.about().await;
            let memory_refused = instance.memory_refused();
            about.map_err(|error| {
                wasmtime::Error::msg(crate::call::reason(
                    &error,
                    memory_refused,
                    profile.limits.memory_max,
                ))
            })
        };
        tokio::time::timeout(TRIAL_MAX, trial)
            .await
            .map_err(|_| format!("`about` did not answer within {} s", TRIAL_MAX.as_secs()))?
            .map_err(|error| format!("the trial run failed: {error:#}"))
    }

    /// Asks for the definitions; `None` for a plugin without tools. Two instances without grants are asked, since what
    /// is published must not depend on which one was.
    async fn ask_definitions(
        &self,
        config: &PluginConfig,
        build: &PluginGeneration,
    ) -> Result<Option<Arc<ToolDefinitions>>, String> {
        if !build.code.has_tools() {
            if !config.approval.is_empty() {
                return Err("defines no tools, so that `approval` names none: write `approval: required` at the tool in the contract \
                            file".into());
            }
            return Ok(None);
        }
        let text = self.defined(config, build).await?;
        if self.defined(config, build).await? != text {
            return Err("its `definitions` differ from one instance to the next: they must always be the same".into());
        }
        Ok(Some(Arc::new(ToolDefinitions::new(&text))))
    }

    async fn defined(
        &self,
        config: &PluginConfig,
        build: &PluginGeneration,
    ) -> Result<String, String> {
        let nothing_granted = PluginConfig {
            grants: Default::default(),
            ..config.clone()
        };
        let profile = self.profile("trial", &nothing_granted, build.size);
        let _running = self.engines.running();
        let trial = async {
            let call = GuestCall::own(&profile, CallPurpose::Trial, Instant::now() + TRIAL_MAX);
            let mut instance = PluginInstance::new(&build.code, build.size, &profile, call).await?;
            let defined = match instance.definitions().await {
                Ok(Ok(tools)) if build.code.has_items() => {
                    let items = instance.item_definitions().await;
                    items
                        .map(|items| items.map(|items| ToolDefinitions::text(&tools, Some(&items))))
                }
                Ok(Ok(tools)) => Ok(Ok(ToolDefinitions::text(&tools, None))),
                refused => refused,
            };
            let memory_refused = instance.memory_refused();
            defined.map_err(|error| {
                wasmtime::Error::msg(crate::call::reason(
                    &error,
                    memory_refused,
                    profile.limits.memory_max,
                ))
            })
        };
        let defined = tokio::time::timeout(TRIAL_MAX, trial)
            .await
            .map_err(|_| {
                format!(
                    "`definitions` did not answer within {} s",
                    TRIAL_MAX.as_secs()
                )
            })?
            .map_err(|error| format!("asking it for its tools failed: {error:#}"))?;
        let text = defined.map_err(|error| {
            let message: String = error.message.chars().filter(|c| !c.is_control()).take(500).collect();
            format!(
                "it refuses to list its tools: {message} (its settings are in `[plugins.{}.settings]`)",
                build.about.name
            )
        })?;
        if text.len() > DEFINITIONS_MAX_BYTES {
            return Err(format!(
                "its definitions take {} bytes; at most {DEFINITIONS_MAX_BYTES}",
                text.len()
            ));
        }
        Ok(text)
    }

    /// Reads the file once more, since what was compiled is what was signed: the digests are compared.
    pub(super) async fn check_signature(
        &mut self,
        name: &str,
        config: &PluginConfig,
        path: PathBuf,
        digest: &str,
    ) -> Result<(), String> {
        let read = move || Ok((read(&path)?, signature::read_signature(&path)?));
        self.check(name, config, digest, read).await
    }

    /// Checks a serving library: the copy that it runs from, and the signature that was next to the copied file. The
    /// file there may be another build by now.
    pub(super) async fn check_library_signature(
        &mut self,
        name: &str,
        config: &PluginConfig,
        code: &Arc<LibraryCode>,
    ) -> Result<(), String> {
        let library = Arc::clone(code);
        let read = move || Ok((library.read()?, library.signature.clone()));
        self.check(name, config, &code.digest, read).await
    }

    /// `read` returns the build's bytes and its signature.
    async fn check(
        &mut self,
        name: &str,
        config: &PluginConfig,
        digest: &str,
        read: impl FnOnce() -> Result<(Vec<u8>, Option<String>), String> + Send + 'static,
    ) -> Result<(), String> {
        if config.signed_by.is_empty() {
            return Ok(());
        }
        let (name, by, build) = (name.to_owned(), config.clone(), digest.to_owned());
        let check = move || {
            let (bytes, signature) = read()?;
            if component::digest(&bytes) != build {
                return Err("it changed while it was being loaded".to_owned());
            }
            signature::signer(&name, &by, &bytes, signature.as_deref()).map(drop)
        };
        tokio::task::spawn_blocking(check)
            .await
            .map_err(|error| format!("checking its signature failed: {error}"))??;
        self.note_signature(config, digest);
        Ok(())
    }

    /// Remembers a build whose signature was found good, if it needs one.
    pub(super) fn note_signature(&mut self, config: &PluginConfig, digest: &str) {
        if config.signed_by.is_empty() {
            return;
        }
        self.signed.retain(|(signed, _)| signed != digest);
        self.signed
            .push((digest.to_owned(), config.trusted.clone()));
    }

    /// Returns `true` if a build that was loaded before is signed by one of the keys trusted now.
    pub(super) fn is_signed(&self, config: &PluginConfig, digest: &str) -> bool {
        let held = |(signed, trusted): &(String, _)| signed == digest && *trusted == config.trusted;
        config.signed_by.is_empty() || self.signed.iter().any(held)
    }
}

impl BuildCandidate {
    fn check_identity(&self) -> Result<(), String> {
        let about = &self.generation.about;
        match &self.place {
            BuildPlace::BuiltIn(name)
                if about.name != *name
                    || about.adapters.iter().any(|adapter| adapter.name != *name) =>
            {
                Err(format!(
                    "the plugin built in as `{name}` must have that name, and provide only that adapter"
                ))
            }
            BuildPlace::Library { name, .. } if about.name != *name => Err(format!(
                "it is the plugin `{}`: name it under `[plugins.{}] native`",
                about.name, about.name
            )),
            BuildPlace::Kept { name, .. } if about.name != *name => Err(defines_other_tools()),
            _ => Ok(()),
        }
    }
}

fn defines_other_tools() -> String {
    "the kept build defines other tools by now: other settings, perhaps".to_owned()
}

pub(super) fn check_pin(name: &str, config: &PluginConfig, digest: &str) -> Result<(), String> {
    if config.allows(digest) {
        return Ok(());
    }
    Err(format!(
        "its sha256 is {digest}, and `[plugins.{name}] sha256` allows only {}",
        config.sha256.join(", ")
    ))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("it cannot be read: {error}"))
}
