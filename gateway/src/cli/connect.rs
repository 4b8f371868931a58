//! `weir connect`: writes Weir into a client's configuration, and takes it out again.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::Context as _;
use clap::Args;
use weir_state::State;
use weir_upstream::{Failure, Kind};

use super::{
    Done, block_on,
    hosts::{self, Entry, Host},
};
use crate::config;

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Connect {
    /// The client
    client: Host,
    /// The endpoint of a running Weir; without it the client starts Weir itself
    #[arg(long, conflicts_with = "config")]
    url: Option<String>,
    /// The view that the client is shown, instead of everything
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// The environment variable that holds the client's key: the client is told its name, and the key stays out of the file
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    key_env: Option<String>,
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
    #[arg(long, conflicts_with_all = ["url", "config", "view", "key_env"])]
    undo: bool,
}

impl Connect {
    pub(super) fn run(self) -> Done {
        let file = self.file().map_err(anyhow::Error::new)?;
        let before = hosts::text(&file).map_err(anyhow::Error::new)?;
        if self.undo {
            return self.undo(&file, before);
        }
        let entry = self.client.entry(&self.entry()?).map_err(anyhow::Error::new)?;
        let after = hosts::put(self.client, before.as_deref().unwrap_or_default(), &self.name, &entry);
        let after = after.map_err(|cause| anyhow::Error::new(unchanged(&file, &cause)))?;
        if let Some(lacking) = self.lacking() {
            eprintln!("note: {lacking}");
        }
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

    fn entry(&self) -> Result<Entry, super::Failure> {
        let key = self.key_env.clone();
        if let Some(url) = &self.url {
            let header = |text: &String| {
                let (name, value) = text
                    .split_once(':')
                    .ok_or_else(|| Failure::new(Kind::Start, "a header as `NAME: VALUE`", "there is no colon"))?;
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            };
            let headers =
                self.headers.iter().map(header).collect::<Result<_, Failure>>().map_err(anyhow::Error::new)?;
            let url = match &self.view {
                Some(view) => view_url(url, view).map_err(anyhow::Error::new)?,
                None => url.clone(),
            };
            return Ok(Entry::Url { url, headers, key });
        }
        let absent = |cause: String| {
            Failure::new(Kind::Start, format!("{} for the client to start Weir with", self.config.display()), cause)
                .step("run this in the folder of your weir.toml, or name it with --config")
                .step("or connect to a running Weir: --url http://127.0.0.1:8484/mcp")
        };
        let config = self.config.canonicalize().map_err(|error| anyhow::Error::new(absent(error.to_string())))?;
        let program = std::env::current_exe().map_err(|error| anyhow::Error::new(absent(error.to_string())))?;
        let mut arguments = vec!["stdio".to_owned(), "--config".to_owned(), config.display().to_string()];
        if let Some(name) = &self.view {
            super::view(&config::load(&config)?, Some(name))?;
            arguments.extend(["--view".to_owned(), name.clone()]);
        }
        Ok(Entry::Command { program: program.display().to_string(), arguments, key })
    }

    /// Returns what is still to be done before the client is let in; `None` if nothing is, as far as one can see.
    fn lacking(&self) -> Option<String> {
        let client = self.client.name();
        if let Some(variable) = &self.key_env {
            let is_set = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
            return (!is_set).then(|| format!("`{variable}` is not set here; {client} needs it in its environment"));
        }
        let is_header = |header: &String| header.to_ascii_lowercase().starts_with("authorization:");
        if self.headers.iter().any(is_header) || !self.needs_key() {
            return None;
        }
        let how = match (self.client.reference("WEIR_KEY"), &self.url) {
            (Some(_), _) => {
                "and run this again with --key-env WEIR_KEY, which names the variable that has it".to_owned()
            }
            (None, Some(_)) => {
                format!("and run this again with --header 'Authorization: Bearer KEY': {client} reads no variables")
            }
            (None, None) => {
                format!("and add \"env\": {{\"WEIR_KEY\": \"KEY\"}} to the entry: {client} reads no variables")
            }
        };
        Some(format!(
            "this Weir asks for a key and {client} has none: make one with `weir keys create --agent {client}`, {how}"
        ))
    }

    /// Returns whether a key is asked for. A Weir that does not answer, or cannot be read, says nothing of it.
    fn needs_key(&self) -> bool {
        let asked = block_on(async {
            match &self.url {
                Some(url) => is_refused_without_key(url).await,
                None => has_keys(&self.config).await,
            }
        });
        asked.is_ok_and(|needs| needs.unwrap_or(false))
    }
}

async fn is_refused_without_key(url: &str) -> anyhow::Result<bool> {
    weir_connections::http::install_tls();
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = client.post(url).header("content-type", "application/json").body(ping);
    let request = request.header("accept", "application/json, text/event-stream");
    Ok(request.send().await?.status() == reqwest::StatusCode::UNAUTHORIZED)
}

async fn has_keys(config: &Path) -> anyhow::Result<bool> {
    let config = config::load(config).map_err(|problems| anyhow::anyhow!("{} problems", problems.len()))?;
    let folder = &config.folders.state;
    if config.identity.required || !folder.join(weir_state::FILE).exists() {
        return Ok(config.identity.required);
    }
    Ok(!State::open(folder).await?.keys().await?.is_empty())
}

/// Returns the endpoint of a view beside that of everything.
fn view_url(url: &str, view: &str) -> Result<String, Failure> {
    let told = |cause: String| {
        Failure::new(Kind::Start, "the endpoint of everything, beside which a view has its own", cause)
            .step("use --url http://127.0.0.1:8484/mcp --view NAME")
            .step("or leave out --view, and name the whole endpoint: --url http://127.0.0.1:8484/mcp/view/NAME")
    };
    weir_contracts::name::check_contract(view).map_err(|wrong| told(format!("no view is called `{view}`: {wrong}")))?;
    let mut parsed = reqwest::Url::parse(url).map_err(|error| told(format!("`{url}` is no URL: {error}")))?;
    let path = parsed.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/mcp") {
        return Err(told(format!("`{url}` does not end in /mcp")));
    }
    parsed.set_path(&format!("{path}/view/{view}"));
    Ok(parsed.to_string())
}

fn variable(name: &str) -> Result<String, String> {
    let is_start = |first: char| first.is_ascii_alphabetic() || first == '_';
    let is_name = name.starts_with(is_start) && name.chars().all(|next| is_start(next) || next.is_ascii_digit());
    match is_name && !name.starts_with("weir_") {
        true => Ok(name.to_owned()),
        false => Err("name a variable, such as WEIR_KEY; the key itself does not belong here".to_owned()),
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
