//! `weir connect`: writes Weir into a client's configuration, and takes it out again.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use clap::Args;
use weir_upstream::{Failure, Kind};

use super::{
    Done,
    hosts::{self, Entry, Host},
};

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Connect {
    /// The client
    client: Host,
    /// The endpoint of a running Weir; without it the client starts Weir itself
    #[arg(long, conflicts_with = "config")]
    url: Option<String>,
    /// A header for the endpoint, such as 'Authorization: Bearer KEY'
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    headers: Vec<String>,
    /// The configuration that the client starts Weir with
    #[arg(long, value_name = "FILE", default_value = "weir.toml")]
    config: PathBuf,
    /// What the client calls it
    #[arg(long, default_value = "weir")]
    name: String,
    /// The configuration of the project in the working folder, instead of the user's
    #[arg(long)]
    project: bool,
    /// Print the client's configuration as it would be, and write nothing
    #[arg(long, conflicts_with = "undo")]
    print: bool,
    /// Take Weir out again
    #[arg(long, conflicts_with_all = ["url", "config"])]
    undo: bool,
}

impl Connect {
    pub(super) fn run(self) -> Done {
        let file = self.file().map_err(anyhow::Error::new)?;
        let before = hosts::text(&file).map_err(anyhow::Error::new)?;
        if self.undo {
            return self.undo(&file, before);
        }
        let entry = self.entry().map_err(anyhow::Error::new)?;
        let entry = self.client.entry(&entry).ok_or_else(|| {
            anyhow::Error::new(
                Failure::new(Kind::Start, "a client that can be told of a URL", "Claude Desktop starts servers itself")
                    .step("leave out --url, and Claude Desktop starts Weir")
                    .step("or add the URL in its settings, under Connectors"),
            )
        })?;
        let after = hosts::put(self.client, before.as_deref().unwrap_or_default(), &self.name, &entry);
        let after = after.map_err(|cause| anyhow::Error::new(unchanged(&file, &cause)))?;
        if self.print {
            print!("{after}");
            return Ok(ExitCode::SUCCESS);
        }
        if before.as_ref() == Some(&after) {
            println!("{} already names `{}` so", file.display(), self.name);
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(before) = &before {
            // The first one: what it was before Weir ever wrote to it.
            let backup = backup(&file);
            if !backup.exists() {
                write(&backup, before, Some(&file))?;
                println!("{} is what it was", backup.display());
            }
        }
        write(&file, &after, Some(&file))?;
        println!("{} names `{}` now; restart the client, or let it read its servers again", file.display(), self.name);
        Ok(ExitCode::SUCCESS)
    }

    /// Restores the whole file if nothing else was changed since, and otherwise removes only our entry from it.
    fn undo(&self, file: &Path, now: Option<String>) -> Done {
        let without = |text: &str| hosts::remove(self.client, text, &self.name);
        let now = now.unwrap_or_default();
        let removed = without(&now).map_err(|cause| anyhow::Error::new(unchanged(file, &cause)))?;
        let Some(removed) = removed else {
            println!("{} does not name `{}`", file.display(), self.name);
            return Ok(ExitCode::SUCCESS);
        };
        let backup = backup(file);
        let kept = hosts::text(&backup).map_err(anyhow::Error::new)?;
        let is_same = |kept: &String| {
            let read =
                |text: &str| jsonc_parser::parse_to_serde_value::<serde_json::Value>(text, &Default::default()).ok();
            let member = self.client.member();
            let plain = |text: &str| {
                let mut value = match hosts::is_toml(file) {
                    true => toml::from_str(text).ok()?,
                    false => read(text)?,
                };
                // A list of servers that we made is no change of anybody else's.
                if value[member].as_object().is_none_or(serde_json::Map::is_empty) {
                    value.as_object_mut()?.remove(member);
                }
                Some(value)
            };
            without(kept).is_ok_and(|named| named.is_none()) && plain(kept) == plain(&removed)
        };
        match kept.filter(is_same) {
            Some(kept) => {
                write(file, &kept, Some(file))?;
                fs::remove_file(&backup).with_context(|| format!("{} cannot be removed", backup.display()))?;
                println!("{} is what it was", file.display());
            }
            None => {
                write(file, &removed, Some(file))?;
                println!("{} does not name `{}` any more; everything else stays", file.display(), self.name);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn file(&self) -> Result<PathBuf, Failure> {
        if !self.project {
            return self.client.user_file();
        }
        self.client.project_file().ok_or_else(|| {
            let name = self.client.name();
            Failure::new(
                Kind::Start,
                "a client with configurations of projects",
                format!("`{name}` has only the user's"),
            )
            .step("leave out --project")
        })
    }

    fn entry(&self) -> Result<Entry, Failure> {
        if let Some(url) = &self.url {
            let header = |text: &String| {
                let (name, value) = text
                    .split_once(':')
                    .ok_or_else(|| Failure::new(Kind::Start, "a header as `NAME: VALUE`", "there is no colon"))?;
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            };
            let headers = self.headers.iter().map(header).collect::<Result<_, Failure>>()?;
            return Ok(Entry::Url { url: url.clone(), headers });
        }
        let absent = |cause: String| {
            Failure::new(Kind::Start, format!("{} for the client to start Weir with", self.config.display()), cause)
                .step("run this in the folder of your weir.toml, or name it with --config")
                .step("or connect to a running Weir: --url http://127.0.0.1:8484/mcp")
        };
        let config = self.config.canonicalize().map_err(|error| absent(error.to_string()))?;
        let program = std::env::current_exe().map_err(|error| absent(error.to_string()))?;
        Ok(Entry::Command {
            program: program.display().to_string(),
            arguments: vec!["stdio".to_owned(), "--config".to_owned(), config.display().to_string()],
        })
    }
}

fn backup(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".weir-backup");
    name.into()
}

fn unchanged(file: &Path, cause: &str) -> Failure {
    Failure::new(Kind::Start, format!("{} to be a configuration that can be edited", file.display()), cause)
        .step("let the client itself read it, and mend what it complains of; nothing was written")
}

/// Writes the file whole or not at all, through a link to where it leads, with the permissions of `like`.
pub(super) fn write(file: &Path, text: &str, like: Option<&Path>) -> anyhow::Result<()> {
    let said = || format!("{} cannot be written", file.display());
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let bits = like.and_then(|like| fs::metadata(like).ok()).map(|about| about.permissions().mode());
    let readers = bits.map_or(weir_files::Readers::Everyone, weir_files::Readers::Bits);
    weir_files::replace(&file, text.as_bytes(), readers).with_context(said)
}
