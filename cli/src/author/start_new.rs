//! `weir plugin new`: a folder that builds, with one tool or one adapter in it.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, bail};
use clap::Args;

use super::{
    super::Done,
    templates::{self, PluginLanguage, TemplateKind},
};

#[derive(Args)]
pub(in super::super) struct NewArgs {
    /// The plugin's name and the folder that is made: `a-z`, `0-9` and `-`
    #[arg(value_parser = plugin_name)]
    name: String,
    /// What the plugin has
    #[arg(long, value_enum, default_value = "tools")]
    kind: TemplateKind,
    /// The language that it is written in
    #[arg(long, value_enum, default_value = "rust")]
    lang: PluginLanguage,
}

/// Longer names leave no room for the names of tools.
const NAME_MAX: usize = 40;

impl NewArgs {
    pub(in super::super) fn run(self) -> Done {
        let folder = PathBuf::from(&self.name);
        if folder.exists() {
            return Err(anyhow::anyhow!(
                "{} already exists; choose another name, or run the command in another folder",
                folder.display()
            )
            .into());
        }
        for (path, content) in templates::files(&self.name, self.kind, self.lang)? {
            let path = folder.join(path);
            let parent = path.parent().expect("it lies in the new folder");
            fs::create_dir_all(parent)
                .with_context(|| format!("{} cannot be made", parent.display()))?;
            fs::write(&path, content)
                .with_context(|| format!("{} cannot be written", path.display()))?;
        }
        let call = match self.kind {
            TemplateKind::Tools => "weir call deploy --environment prod --service web",
            TemplateKind::Collection => "weir call get_number --number 7",
        };
        println!(
            "{name}/ is ready. Continue with:\n\n  cd {name}\n  weir plugin build     make the component\n  weir plugin check     look at it as agents and operators will\n  \
             weir plugin test      run the cases in tests/\n  {call}\n  weir serve            serve it over HTTP, while you keep writing",
            name = self.name
        );
        Ok(ExitCode::SUCCESS)
    }
}

/// Checks a name, which is used for a folder, a package, a contract and a plugin.
fn plugin_name(name: &str) -> anyhow::Result<String> {
    let starts = name.starts_with(|first: char| first.is_ascii_lowercase());
    let plain = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !starts || !plain || name.ends_with('-') || name.len() > NAME_MAX {
        bail!(
            "a plugin is named by 1 to {NAME_MAX} of `a-z`, `0-9` and `-`, with a letter first and no `-` last"
        );
    }
    Ok(name.to_owned())
}
