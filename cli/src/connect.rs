//! `weir connect`: adds Weir to a client's configuration, and removes it again.

mod hosted;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::LazyLock,
    time::Duration,
};

use clap::{Args, ValueEnum, builder::PossibleValue};
use reqwest::StatusCode;
use weir::{client_entry::HostedClient, config};
use weir_upstream::{UpstreamFailure, UpstreamFailureKind};

use super::{
    Done, block_on, call,
    hosts::{self, ClientFile, Entry, McpHost},
};

/// The suffix of the copy of a file from before Weir wrote to it.
const BACKUP: &str = ".weir-backup";
/// The suffix of the copy of a file from before Weir last changed its own entry.
const LAST_BACKUP: &str = ".weir-backup-last";

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(super) struct ConnectArgs {
    /// The client
    client: ConnectedClient,
    #[command(flatten)]
    options: ConnectOptions,
}

#[derive(Args)]
struct ConnectOptions {
    /// The endpoint of a running Weir; without it the client starts Weir itself
    #[arg(long, conflicts_with = "config")]
    url: Option<String>,
    /// The view that the client is shown, instead of everything
    #[arg(long, value_name = "NAME")]
    view: Option<String>,
    /// The environment variable with the client's key: the file gets the variable's name, not the key
    #[arg(long, value_name = "VARIABLE", value_parser = variable)]
    key_env: Option<String>,
    /// A header for the endpoint, such as 'Authorization: Bearer KEY'
    #[arg(long = "header", value_name = "NAME: VALUE", requires = "url")]
    headers: Vec<String>,
    /// The configuration that the client starts Weir with
    #[arg(long, value_name = "FILE", default_value = "weir.toml")]
    config: PathBuf,
    /// The name of the server in the client
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

/// A client that reads a file, or one that its vendor hosts.
#[derive(Clone, Copy, Debug)]
enum ConnectedClient {
    Local(McpHost),
    Hosted(HostedClient),
}

impl ValueEnum for ConnectedClient {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<ConnectedClient>> = LazyLock::new(|| {
            let local = McpHost::value_variants().iter();
            let local = local.map(|client| ConnectedClient::Local(*client));
            local
                .chain(HostedClient::ALL.map(ConnectedClient::Hosted))
                .collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Local(client) => client.to_possible_value(),
            Self::Hosted(client) => Some(PossibleValue::new(client.name())),
        }
    }
}

impl ConnectArgs {
    pub(super) fn run(self) -> Done {
        let options = self.options;
        match self.client {
            ConnectedClient::Local(client) => FileConnection { client, options }.run(),
            ConnectedClient::Hosted(client) => options.describe(client),
        }
    }
}

/// Connects a client that reads a file.
struct FileConnection {
    client: McpHost,
    options: ConnectOptions,
}

impl FileConnection {
    fn run(self) -> Done {
        let file = self.file().map_err(anyhow::Error::new)?;
        if file.is_linked() {
            eprintln!(
                "note: {} is a link; the file is {}",
                file.display(),
                file.real_path().display()
            );
        }
        if self.options.undo {
            let _turn = ClientFile::take_turn().map_err(anyhow::Error::new)?;
            return self.undo(&file);
        }
        let reached = self.entry()?;
        let entry = self.client.entry(&reached).map_err(anyhow::Error::new)?;
        // The endpoint may take seconds to answer, and a running client writes to its file, so the file is read afterwards.
        let needs_key = self.needs_key(&reached) && !hosts::has_key(&entry);
        // With two commands at once, the later one would write the file without the entry of the other.
        let _turn = match self.options.print {
            true => None,
            false => Some(ClientFile::take_turn().map_err(anyhow::Error::new)?),
        };
        let before = file.text().map_err(anyhow::Error::new)?;
        let after = hosts::put(
            self.client,
            before.as_deref().unwrap_or_default(),
            &self.options.name,
            &entry,
        );
        let after = after.map_err(|cause| anyhow::Error::new(unchanged(&file, &cause)))?;
        if let Some(lacking) = self.lacking(needs_key, &after) {
            eprintln!("note: {lacking}");
        }
        if self.options.print {
            print!("{after}");
            return Ok(ExitCode::SUCCESS);
        }
        if before.as_ref() == Some(&after) {
            println!(
                "{} already names `{}` in this way",
                file.display(),
                self.options.name
            );
            return Ok(ExitCode::SUCCESS);
        }
        self.back_up(&file, before.as_deref().unwrap_or_default())?;
        if file.text().map_err(anyhow::Error::new)? != before {
            let expected = format!("{} to be unchanged since it was read", file.display());
            let failure = UpstreamFailure::new(
                UpstreamFailureKind::Start,
                expected,
                "another program wrote to it at the same time",
            );
            return Err(anyhow::Error::new(
                failure.step("run this again; that change is still there"),
            )
            .into());
        }
        file.write(&after).map_err(anyhow::Error::new)?;
        println!(
            "{} names `{}` now; restart the client, or let it read its servers again",
            file.display(),
            self.options.name
        );
        Ok(ExitCode::SUCCESS)
    }

    /// Keeps the file as it was before Weir wrote to it, for `--undo`; nothing if there was none. Later it also keeps the
    /// file as it was before an entry of ours changes, since a key may have been added to it.
    fn back_up(&self, file: &ClientFile, before: &str) -> anyhow::Result<()> {
        let failure = |cause: String| anyhow::Error::new(unchanged(file, &cause));
        let is_named = hosts::find(self.client, before, &self.options.name)
            .map_err(failure)?
            .is_some();
        let (first, last) = (file.backup(BACKUP)?, file.backup(LAST_BACKUP)?);
        let kept = first.text()?;
        let backup = match is_named && kept.is_some() {
            true => &last,
            false => {
                if let Some(kept) = kept.filter(|kept| kept != before) {
                    last.write(&kept)?; // it may have what is nowhere else
                }
                &first
            }
        };
        backup.write(before)?;
        if !before.is_empty() {
            println!("{} is what it was", backup.display());
        }
        Ok(())
    }

    /// Restores the whole file if only our entry was changed since, to the byte. Otherwise only the entry is removed, or
    /// restored, and the backup is kept.
    fn undo(&self, file: &ClientFile) -> Done {
        let (client, name, shown) = (self.client, &*self.options.name, file.display());
        let failure = |cause: String| anyhow::Error::new(unchanged(file, &cause));
        let now = file.text().map_err(anyhow::Error::new)?.unwrap_or_default();
        let entry = hosts::find(client, &now, name)
            .map_err(failure)?
            .unwrap_or_default();
        let Some(removed) = hosts::remove(client, &now, name).map_err(failure)? else {
            println!("{shown} does not name `{name}`");
            return Ok(ExitCode::SUCCESS);
        };
        let [backup, last_backup] = [BACKUP, LAST_BACKUP].map(|ending| file.backup(ending));
        let (backup, last_backup) = (
            backup.map_err(anyhow::Error::new)?,
            last_backup.map_err(anyhow::Error::new)?,
        );
        let kept = backup.text().map_err(anyhow::Error::new)?;
        let earlier = kept
            .as_deref()
            .and_then(|kept| hosts::find(client, kept, name).ok().flatten());
        let again = "repeat this command to take that entry out";
        let is_else_unchanged = |kept: &String| {
            let without = hosts::put(client, kept, name, &entry)
                .and_then(|with| hosts::remove(client, &with, name));
            without.is_ok_and(|without| without.as_ref() == Some(&removed))
        };
        if let Some(kept) = kept.as_ref().filter(|kept| is_else_unchanged(kept)) {
            // Where there was no file before, none is left. A linked file did exist, but was empty.
            let is_ours = kept.is_empty() && !file.is_linked();
            let written = if is_ours {
                file.remove()
            } else {
                file.write(kept)
            };
            written
                .and_then(|()| backup.remove())
                .and_then(|()| last_backup.remove())
                .map_err(anyhow::Error::new)?;
            match is_ours {
                true => println!(
                    "{shown} is removed: there was none, or nothing in it, before Weir wrote to it"
                ),
                false => println!("{shown} is what it was"),
            }
            if earlier.is_some() {
                println!("it named `{name}` before Weir wrote to it, and does so again; {again}");
            }
            return Ok(ExitCode::SUCCESS);
        }
        match earlier.filter(|earlier| *earlier != entry) {
            Some(earlier) => {
                let with = hosts::put(client, &removed, name, &earlier).map_err(failure)?;
                file.write(&with).map_err(anyhow::Error::new)?;
                println!(
                    "{shown} names `{name}` as it did before Weir wrote to it; everything else is unchanged; {again}"
                );
            }
            None => {
                file.write(&removed).map_err(anyhow::Error::new)?;
                println!("{shown} does not name `{name}` any more; everything else is unchanged");
            }
        }
        if kept.is_some_and(|kept| !kept.is_empty()) {
            println!(
                "{} is still what the file was before Weir wrote to it",
                backup.display()
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    fn file(&self) -> Result<ClientFile, UpstreamFailure> {
        if !self.options.project {
            return ClientFile::of_user(&self.client.user_file()?);
        }
        let file = self.client.project_file().ok_or_else(|| {
            let name = self.client.name();
            UpstreamFailure::new(
                UpstreamFailureKind::Start,
                "a client with configurations of projects",
                format!("`{name}` has only the user's"),
            )
            .step("leave out --project")
        })?;
        ClientFile::in_project(&file)
    }

    fn entry(&self) -> Result<Entry, super::AppError> {
        let key = self.options.key_env.clone();
        if let Some(url) = &self.options.url {
            let header = |text: &String| {
                let (name, value) = text.split_once(':').ok_or_else(|| {
                    UpstreamFailure::new(
                        UpstreamFailureKind::Start,
                        "a header as `NAME: VALUE`",
                        "there is no colon",
                    )
                })?;
                Ok((name.trim().to_owned(), value.trim().to_owned()))
            };
            let headers = self
                .options
                .headers
                .iter()
                .map(header)
                .collect::<Result<_, UpstreamFailure>>()
                .map_err(anyhow::Error::new)?;
            call::check_url(url)?;
            let url = match &self.options.view {
                Some(view) => view_url(url, view).map_err(anyhow::Error::new)?,
                None => url.clone(),
            };
            return Ok(Entry::Url { url, headers, key });
        }
        let absent = |cause: String| {
            UpstreamFailure::new(
                UpstreamFailureKind::Start,
                format!(
                    "{} for the client to start Weir with",
                    self.options.config.display()
                ),
                cause,
            )
            .step("run this in the folder of your weir.toml, or name it with --config")
            .step("or connect to a running Weir: --url http://127.0.0.1:8484/mcp")
        };
        let config = self
            .options
            .config
            .canonicalize()
            .map_err(|error| anyhow::Error::new(absent(error.to_string())))?;
        let program = std::env::current_exe()
            .map_err(|error| anyhow::Error::new(absent(error.to_string())))?;
        // With another path in it, the entry would start nothing.
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or_else(|| {
                let cause = format!(
                    "the path {} is not UTF-8, as the client's file is",
                    path.display()
                );
                anyhow::Error::new(absent(cause))
            })
        };
        let mut arguments = vec!["stdio".to_owned(), "--config".to_owned(), text(&config)?];
        if let Some(name) = &self.options.view {
            super::view(&config::load(&config)?, Some(name))?;
            arguments.extend(["--view".to_owned(), name.clone()]);
        }
        Ok(Entry::Command {
            program: text(&program)?,
            arguments,
            key,
        })
    }

    /// Returns the next step before the client has access; `None` if nothing seems to be missing.
    fn lacking(&self, needs_key: bool, after: &str) -> Option<String> {
        let client = self.client.name();
        if let Some(variable) = &self.options.key_env {
            let is_set = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
            return (!is_set).then(|| {
                format!("`{variable}` is not set here; {client} needs it in its environment")
            });
        }
        // The entry may have had a key before.
        let written = hosts::find(self.client, after, &self.options.name)
            .ok()
            .flatten();
        if !needs_key || written.is_some_and(|written| hosts::has_key(&written)) {
            return None;
        }
        let how = match (self.client.reference("WEIR_KEY"), &self.options.url) {
            (Some(_), _) => {
                "and run this again with --key-env WEIR_KEY, which names the variable that has it"
                    .to_owned()
            }
            (None, Some(_)) => {
                format!(
                    "and run this again with --header 'Authorization: Bearer KEY': {client} reads no variables"
                )
            }
            (None, None) => {
                format!(
                    "and add \"env\": {{\"WEIR_KEY\": \"KEY\"}} to the entry: {client} reads no variables"
                )
            }
        };
        Some(format!(
            "this Weir asks for a key and {client} has none: make one with `weir keys create --agent {client}`, {how}"
        ))
    }

    /// Returns whether a key is required. An endpoint that does not answer, or that is not an endpoint, is reported; a Weir
    /// that cannot be read is not.
    fn needs_key(&self, reached: &Entry) -> bool {
        let Entry::Url { url, .. } = reached else {
            return block_on(has_keys(&self.options.config))
                .is_ok_and(|needs| needs.unwrap_or(false));
        };
        match block_on(status_without_key(url)) {
            Ok(Ok(StatusCode::UNAUTHORIZED)) => return true,
            Ok(Ok(StatusCode::NOT_FOUND)) => {
                eprintln!(
                    "note: there is no endpoint at {url} (404); that of a Weir is such as http://127.0.0.1:8484/mcp"
                );
            }
            Ok(Err(error)) => eprintln!("note: {url} does not answer now ({error:#})"),
            Ok(Ok(_)) | Err(_) => {}
        }
        false
    }
}

async fn status_without_key(url: &str) -> anyhow::Result<StatusCode> {
    weir_connections::http::install_tls();
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(2))
        .build()?;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let request = client
        .post(url)
        .header("content-type", "application/json")
        .body(ping);
    let request = request.header("accept", "application/json, text/event-stream");
    Ok(request
        .send()
        .await
        .map_err(reqwest::Error::without_url)?
        .status())
}

async fn has_keys(config: &Path) -> anyhow::Result<bool> {
    let config =
        config::load(config).map_err(|problems| anyhow::anyhow!("{} problems", problems.len()))?;
    if config.identity.needs_credential() || !config.has_state() {
        return Ok(config.identity.needs_credential());
    }
    let state = config.open_state_to_read().await?;
    Ok(!state.keys().await?.is_empty())
}

/// Returns the endpoint of a view, given that of everything.
fn view_url(url: &str, view: &str) -> Result<String, UpstreamFailure> {
    let refusal = |cause: String| {
        UpstreamFailure::new(UpstreamFailureKind::Start, "the endpoint of everything, next to which a view has its own", cause)
            .step("use --url http://127.0.0.1:8484/mcp --view NAME")
            .step("or leave out --view, and name the whole endpoint: --url http://127.0.0.1:8484/mcp/view/NAME")
    };
    weir_contracts::name::check_contract(view)
        .map_err(|wrong| refusal(format!("no view is called `{view}`: {wrong}")))?;
    let mut parsed = reqwest::Url::parse(url)
        .map_err(|error| refusal(format!("`{url}` is not a URL: {error}")))?;
    let path = parsed.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/mcp") {
        return Err(refusal(format!("`{url}` does not end in /mcp")));
    }
    parsed.set_path(&format!("{path}/view/{view}"));
    Ok(parsed.to_string())
}

fn variable(name: &str) -> Result<String, String> {
    let is_start = |first: char| first.is_ascii_alphabetic() || first == '_';
    let is_name = name.starts_with(is_start)
        && name
            .chars()
            .all(|next| is_start(next) || next.is_ascii_digit());
    match is_name && !name.starts_with("weir_") {
        true => Ok(name.to_owned()),
        false => {
            Err("name a variable, such as WEIR_KEY; the key itself does not belong here".to_owned())
        }
    }
}

fn unchanged(file: &ClientFile, cause: &str) -> UpstreamFailure {
    UpstreamFailure::new(
        UpstreamFailureKind::Start,
        format!(
            "{} to be a configuration that can be edited",
            file.display()
        ),
        cause,
    )
    .step("open it with the client itself, and correct what it reports; nothing was written")
}
