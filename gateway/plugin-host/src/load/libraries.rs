//! Native libraries: those that the configuration names, each with its digest. They come from nowhere else.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, atomic::AtomicUsize, atomic::Ordering},
    time::SystemTime,
};

use super::{Defines, LoadReport, Loader, Occasion, Prepared, Refused, check_pin, component, in_use, report};
use crate::{
    Libraries, PluginConfig,
    engine::Size,
    library::{LibraryCode, Loaded, Place},
    plugin::{About, Code, Plugin},
};

/// A larger file is refused unread.
const FILE_MAX_BYTES: u64 = 256 << 20;
/// The bound on copies. Those that were loaded last are kept, since children of other processes over this state may
/// still start from theirs.
const COPIES_MAX: usize = 16;

/// The loader's knowledge about one library of the configuration, by the plugin's name.
#[derive(Default)]
pub(super) struct Library {
    /// The library that was last loaded or refused; `None` if it is still to be tried.
    pub(super) settled: Option<Named>,
    pub(super) refused: bool,
    /// The definitions of its build, and whose tools they are, if the build waits for someone.
    pub(super) defines: Option<Defines>,
    pub(super) plugin: Option<Arc<Plugin>>,
}

/// A library as `[plugins.NAME]` names it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) path: PathBuf,
    sha256: Vec<String>,
    in_process: bool,
}

impl Named {
    fn of(config: &PluginConfig) -> Option<Self> {
        let PluginConfig { native, sha256, in_process, .. } = config;
        Some(Self { path: native.clone()?, sha256: sha256.clone(), in_process: *in_process })
    }

    /// A build that was kept, run as the one is that is named now.
    pub(super) fn kept(path: PathBuf, config: &PluginConfig) -> Self {
        Self { path, sha256: config.sha256.clone(), in_process: config.in_process }
    }
}

impl Loader {
    /// Loads those that the configuration has begun to name, or names otherwise.
    pub(super) async fn load_libraries(&mut self, occasion: Occasion) -> Vec<LoadReport> {
        let named = self.config.plugin.iter().filter_map(|(name, config)| Some((name.clone(), Named::of(config)?)));
        let mut reports = Vec::new();
        for (name, named) in named.collect::<Vec<_>>() {
            if self.libraries.entry(name.clone()).or_default().settled.as_ref() == Some(&named) {
                continue;
            }
            let place = named.path.display().to_string();
            let loaded = self.load_library(&name, &named, occasion).await;
            let library = self.libraries.entry(name).or_default();
            library.settled = Some(named);
            library.refused = loaded.is_err();
            library.defines = loaded.as_ref().err().and_then(|refused| refused.defines.clone());
            reports.push(match loaded {
                Ok(plugin) => report(place, Ok(plugin.status(&self.pool))),
                Err(Refused { reason, held, .. }) => LoadReport { held, ..report(place, Err(reason)) },
            });
        }
        reports
    }

    /// Takes out the libraries that the configuration no longer names. They serve until their replacement does.
    pub(super) fn leave_libraries(&mut self) -> (Vec<LoadReport>, Vec<Arc<Plugin>>) {
        let is_named = |name: &String| self.config.plugin.get(name).is_some_and(|config| config.native.is_some());
        let gone: Vec<String> = self.libraries.keys().filter(|name| !is_named(name)).cloned().collect();
        let (mut reports, mut leaving) = (Vec::new(), Vec::new());
        for name in gone {
            let Some(library) = self.libraries.remove(&name) else { continue };
            let place = library.settled.map_or(name, |named| named.path.display().to_string());
            let status = library.plugin.as_ref().map(|plugin| plugin.status(&self.pool));
            let result = status.ok_or_else(|| "it had been refused".to_owned());
            reports.push(LoadReport { removed: true, ..report(place, result) });
            leaving.extend(library.plugin);
        }
        if !reports.is_empty() {
            // These libraries may have been in the way of files of the folder.
            self.forget_refusals();
        }
        (reports, leaving)
    }

    pub(crate) async fn library_name(&self, config: &PluginConfig) -> Result<String, String> {
        let named = Named::of(config).ok_or("no library is named")?;
        let prepared = self.prepare_library("NAME", config, &named).await?;
        Ok(self.ask_about(&prepared).await?.name)
    }

    /// Returns the library that a plugin serves from.
    pub(super) fn library_of(&self, plugin: &Arc<Plugin>) -> Option<&Library> {
        let is_it = |library: &&Library| library.plugin.as_ref().is_some_and(|served| Arc::ptr_eq(served, plugin));
        self.libraries.values().find(is_it)
    }

    async fn load_library(&mut self, name: &str, named: &Named, occasion: Occasion) -> Result<Arc<Plugin>, Refused> {
        let config = self.config.plugin.get(name).cloned().unwrap_or_default();
        let prepared = self.prepare_library(name, &config, named).await?;
        let about = self.ask_about(&prepared).await?;
        if about.name != name {
            return Err(Refused::from(format!(
                "it is the plugin `{}`: name it under `[plugins.{}] native`",
                about.name, about.name
            )));
        }
        self.check_signature(name, &config, named.path.clone(), &prepared.digest).await?;
        let file = self.file_named(name);
        self.check_names(file.as_deref().unwrap_or_default(), &about)?;
        let of_file = file.as_ref().and_then(|file| self.files.get(file)?.plugin.clone());
        let own = self.libraries.get(name).and_then(|library| library.plugin.clone());
        let current = own.or(of_file).or_else(|| self.built_in_named(name));
        let definitions = self.ask_definitions(name, &config, &prepared).await?;
        let generation = self.generation(current.as_deref(), about, definitions, &config, prepared);
        if let (Occasion::Running, Some(in_use)) = (occasion, self.served.in_use.load_full()) {
            let old = current.as_ref().map(|plugin| plugin.generation.load_full());
            in_use::check(&generation, old.as_deref(), &in_use, self.engines).await?;
        }
        self.admit(&generation).await?;
        self.keep_library(&generation, &named.path).await?;
        let plugin = self.swap(current, generation);
        plugin.built_in.store(false, Ordering::Relaxed);
        self.displace(&plugin);
        // The file is looked at again, and refused with its reason.
        if let Some(file) = file.and_then(|file| self.files.get_mut(&file)) {
            (file.plugin, file.settled) = (None, None);
        }
        self.libraries.entry(name.to_owned()).or_default().plugin = Some(Arc::clone(&plugin));
        self.publish();
        if occasion == Occasion::Running {
            self.say_loaded();
        }
        Ok(plugin)
    }

    /// Checks the digest of a copy of our own, which is what runs.
    pub(super) async fn prepare_library(
        &self,
        name: &str,
        config: &PluginConfig,
        named: &Named,
    ) -> Result<Prepared, String> {
        let libraries = self.config.libraries.clone().ok_or("this program runs no native plugins")?;
        let (name, config, named) = (name.to_owned(), config.clone(), named.clone());
        let copied = move || {
            let (digest, copy) = copy(&name, &config, &named.path, &libraries)?;
            let place = match named.in_process {
                true => Place::Here { loaded: Loaded::load(&copy)?, overrun: Arc::<AtomicUsize>::default() },
                false => Place::Child { runner: libraries.runner },
            };
            let code = LibraryCode { path: copy, digest: digest.clone(), place, interfaces: OnceLock::new() };
            let code = Arc::new(Code::Library(Arc::new(code)));
            Ok(Prepared { digest, size: Size::Small, code, notes: Vec::new() })
        };
        tokio::task::spawn_blocking(copied).await.map_err(|error| format!("loading it failed: {error}"))?
    }

    /// Returns the file of the folder that serves a plugin of this name.
    fn file_named(&self, name: &str) -> Option<String> {
        let serves = |plugin: &Arc<Plugin>| plugin.generation.load().about.name == name;
        let found = self.files.iter().find(|(_, file)| file.plugin.as_ref().is_some_and(serves));
        found.map(|(file, _)| file.clone())
    }

    /// Checks that no library stands in the way of another plugin.
    pub(super) fn check_libraries(&self, about: &About) -> Result<(), String> {
        for (name, library) in self.libraries.iter().filter(|(name, _)| **name != about.name) {
            let Some(plugin) = &library.plugin else { continue };
            let other = plugin.generation.load();
            if let Some(adapter) = about.adapters.iter().find(|adapter| other.provides(&adapter.name)) {
                return Err(format!(
                    "the adapter `{}` is already provided by the library of `[plugins.{name}] native`, which stays",
                    adapter.name
                ));
            }
        }
        Ok(())
    }
}

fn age(copy: &Path) -> Option<(SystemTime, PathBuf)> {
    Some((fs::metadata(copy).and_then(|metadata| metadata.modified()).ok()?, copy.to_owned()))
}

/// Copies a library. Returns its digest, and the path of the copy.
fn copy(name: &str, config: &PluginConfig, path: &Path, to: &Libraries) -> Result<(String, PathBuf), String> {
    let unreadable = |error: io::Error| format!("it cannot be read: {error}");
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() || metadata.len() > FILE_MAX_BYTES {
        return Err(format!("it is no file of at most {FILE_MAX_BYTES} bytes"));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let digest = component::digest(&bytes);
    if config.sha256.is_empty() {
        return Err(format!(
            "which build it may be is not said: its sha256 is {digest}, to be written as `[plugins.{name}] sha256`"
        ));
    }
    check_pin(name, config, &digest)?;
    let copy = to.folder.join(format!("{digest}.so"));
    let kept = || {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&to.folder)?;
        // A folder that was there before us may be open to others.
        fs::set_permissions(&to.folder, fs::Permissions::from_mode(0o700))?;
        weir_files::replace(&copy, &bytes, weir_files::Readers::Owner)?;
        let mut copies: Vec<_> = fs::read_dir(&to.folder)?.filter_map(|entry| age(&entry.ok()?.path())).collect();
        copies.sort_by(|a, b| b.cmp(a));
        copies.iter().skip(COPIES_MAX).try_for_each(|(_, old)| fs::remove_file(old))?;
        fs::read(&copy)
    };
    let kept = kept().map_err(|error| format!("its copy {} cannot be written: {error}", copy.display()))?;
    if component::digest(&kept) != digest {
        return Err(format!("its copy {} is not what was written", copy.display()));
    }
    // Children look for the copy from another folder.
    let copy = fs::canonicalize(&copy).map_err(unreadable)?;
    Ok((digest, copy))
}
