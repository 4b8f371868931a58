//! The folder of a plugin: its language, its name, and the output file of a build.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use weir::config::{self, GatewayConfig};

use super::{
    super::{AppError, CliSettings},
    templates::PluginLanguage,
};

pub(super) struct PluginProject {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) language: PluginLanguage,
    /// The configuration that the plugin runs with: its `weir.toml`.
    pub(super) config: GatewayConfig,
}

/// The files that show which language the plugin is written in.
const MARKS: [(&str, PluginLanguage); 4] = [
    ("Cargo.toml", PluginLanguage::Rust),
    ("package.json", PluginLanguage::Js),
    ("pyproject.toml", PluginLanguage::Python),
    ("plugin.c", PluginLanguage::C),
];

impl PluginProject {
    pub(super) fn open(path: &Path, settings: &CliSettings) -> Result<Self, AppError> {
        let path = path
            .canonicalize()
            .with_context(|| format!("{} cannot be opened", path.display()))?;
        let found = MARKS.iter().find(|(file, _)| path.join(file).is_file());
        let (_, language) = found.with_context(|| {
            format!(
                "{} is not the folder of a plugin: it has neither of {}; `weir plugin new NAME` makes one",
                path.display(),
                MARKS.map(|(file, _)| file).join(", ")
            )
        })?;
        let file = path.join("weir.toml");
        let mut config = if file.is_file() {
            config::load(&file)?
        } else {
            GatewayConfig::bare(&path)
        };
        settings.over(&mut config);
        let name = match config.plugins.keys().collect::<Vec<_>>()[..] {
            [name] => name.clone(),
            _ => path
                .file_name()
                .and_then(|name| name.to_str())
                .context("the folder's name is not UTF-8")?
                .to_owned(),
        };
        Ok(Self {
            path,
            name,
            language: *language,
            config,
        })
    }

    /// Returns the place of a build's component, where a gateway in this folder finds it.
    pub(super) fn component(&self) -> PathBuf {
        self.config
            .folders
            .plugins
            .join(format!("{}.wasm", self.name))
    }

    /// Returns the output path of `weir plugin build --native`. It is not in the folder where a gateway looks for
    /// plugins, since it never loads a library from there.
    pub(super) fn library(&self) -> PathBuf {
        self.path
            .join(format!("{}{}", self.name, std::env::consts::DLL_SUFFIX))
    }

    pub(super) fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }
}
