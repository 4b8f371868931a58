//! `weir upstream`: manages other MCP servers behind this one. The configuration names them, and `add` and `remove` edit it;
//! a running gateway has their state.

mod accounts;

use std::{
    collections::BTreeMap,
    fs,
    io::{IsTerminal as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::Value;
use tokio::time::timeout;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};
use weir::{
    app::GatewayApp,
    config,
    control::{
        gate::{Role, first_fingerprint},
        operations::{
            ActingAdmin, OperationError,
            upstreams::{self, AgreedOffer},
        },
        sources::upstreams::offer::CompiledOffer,
    },
};
use weir_contracts::{CompiledContract, compiled_document, lint};
use weir_upstream::{UpstreamTarget as Server, UpstreamTransport};

use super::{
    AppError, Done,
    admin::{AdminArgs, AdminClient, AdminTarget, cell, each, path, print_table, time},
    block_on, hosts,
    lint::line,
    offered, start,
};

pub(super) type Upstreams = AdminArgs<UpstreamsCommand>;

/// The folder next to the configuration with the working folders of servers that were added.
const FOLDERS: &str = "upstreams";
/// The admin's name in the history and the audit trail.
const BY: &str = "cli";
/// The time that a running gateway may take to look at a server that was added.
const LOOK_MAX: Duration = Duration::from_secs(10);
/// The number of findings of one rule that are printed individually.
const OF_ONE_RULE_MAX: usize = 3;

#[derive(Subcommand)]
pub(super) enum UpstreamsCommand {
    /// List the servers, the state of each, and what waits for approval
    List,
    /// Show one server: its state and why, what is left out of its lists, and what it wrote to stderr last
    Show {
        /// Its name in the configuration
        name: String,
    },
    /// Look at a server, show its offer, and, once you agree, put it into the configuration and publish its tools
    ///
    /// Nothing is written before you agree. Your consent is pinned: agents see these tools, in these words, until a change is
    /// published.
    #[command(
        override_usage = "weir upstream add [OPTIONS] NAME -- COMMAND…\n       weir upstream add [OPTIONS] NAME URL\n       weir upstream add [OPTIONS] NAME --from CLIENT|FILE"
    )]
    Add(Box<UpstreamAddArgs>),
    /// Take a server out of the configuration; its tools remain listed until their removal is published
    Remove {
        /// Its name in the configuration
        name: String,
    },
    /// Look at a server's lists now
    Look {
        /// Its name in the configuration
        name: String,
    },
    /// List the accounts that callers have connected at a server
    Accounts {
        /// Its name in the configuration
        name: String,
    },
    /// Connect the gateway's own account at a server, with which its lists are looked at
    Connect {
        /// Its name in the configuration
        name: String,
    },
    /// End an account at a server: its owner is asked again by the next call
    Disconnect {
        /// The server's name in the configuration
        name: String,
        /// The account's number, as `weir upstream accounts` lists it
        number: i64,
    },
}

#[derive(Args)]
pub(super) struct UpstreamAddArgs {
    /// The name here: a lowercase letter, followed by up to 31 of a-z, 0-9 and `-`
    name: String,
    /// The server's URL
    #[arg(conflicts_with_all = ["command", "from"])]
    url: Option<String>,
    /// The command that starts the server
    #[arg(last = true)]
    command: Vec<String>,
    /// A client whose configuration names the server, or a configuration file
    #[arg(long, value_name = "CLIENT|FILE", conflicts_with = "command")]
    from: Option<String>,
    /// The server's name there, if it is not NAME
    #[arg(long, value_name = "NAME", requires = "from")]
    named: Option<String>,
    /// A header for a URL, such as 'Authorization: Bearer ${env:TOKEN}'; references are written down as they are
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// A variable for a command: of the gateway's environment, or with a value or a reference
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    environment: Vec<String>,
    /// The callers that may share one session: shared, tenant, agent or session
    #[arg(long, value_name = "WHO")]
    isolation: Option<String>,
    /// The era of the protocol to speak, legacy or modern, if the server answers both but one of the two badly
    #[arg(long, value_name = "ERA")]
    era: Option<String>,
    /// The prefix of every tool's name; by default NAME
    #[arg(long)]
    prefix: Option<String>,
    /// A file that chooses, renames and describes its tools, and sets arguments that no agent sees
    #[arg(long, value_name = "FILE")]
    overlay: Option<PathBuf>,
    /// Agree without being asked
    #[arg(long)]
    yes: bool,
}

impl Upstreams {
    pub(super) fn run(self) -> Done {
        let Self { command, target } = self;
        match command {
            UpstreamsCommand::List => list(&target),
            UpstreamsCommand::Show { name } => {
                let path = path(&["v1", "upstreams", &name]);
                let upstream = target.ask(Method::GET, &path, None)?;
                print_upstream(&target, &upstream);
                Ok(ExitCode::SUCCESS)
            }
            UpstreamsCommand::Look { name } => {
                let path = path(&["v1", "upstreams", &name, "look"]);
                let upstream = target.ask(Method::POST, &path, None)?;
                print_upstream(&target, &upstream);
                Ok(if upstream["state"] == "up" {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                })
            }
            UpstreamsCommand::Add(add) => block_on(add.run(&target))?,
            UpstreamsCommand::Remove { name } => remove(&target, &name),
            UpstreamsCommand::Accounts { name } => accounts::list(&target, &name),
            UpstreamsCommand::Connect { name } => block_on(accounts::connect(&target, &name))?,
            UpstreamsCommand::Disconnect { name, number } => {
                accounts::disconnect(&target, &name, number)
            }
        }
    }
}

fn list(target: &AdminTarget) -> Done {
    let all = target.ask(Method::GET, "/v1/upstreams", None)?;
    if target.json {
        println!("{all}");
        return Ok(ExitCode::SUCCESS);
    }
    let row = |upstream: &Value| {
        vec![
            cell(&upstream["name"]),
            cell(&upstream["state"]),
            cell(&upstream["contract"]),
            cell(&upstream["version"]),
            cell(&upstream["tools"]),
            upstream["left_out"]
                .as_array()
                .map_or(0, Vec::len)
                .to_string(),
            cell(&upstream["sessions"]),
            cell(&upstream["calls"]),
            cell(&upstream["failures"]),
            cell(&upstream["draft"]),
        ]
    };
    let head = [
        "UPSTREAM", "STATE", "CONTRACT", "VERSION", "TOOLS", "LEFT OUT", "SESSIONS", "CALLS",
        "FAILED", "WAITING",
    ];
    print_table(&head, &all["upstreams"], row);
    for upstream in each(&all["upstreams"]).filter(|upstream| upstream["reason"].is_string()) {
        println!(
            "\n{}: {}",
            cell(&upstream["name"]),
            cell(&upstream["reason"])
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn print_upstream(target: &AdminTarget, upstream: &Value) {
    if target.json {
        println!("{upstream}");
        return;
    }
    let version = match &upstream["version"] {
        Value::Null => "nothing is published".to_owned(),
        version => format!("{}@{}", cell(&upstream["contract"]), cell(version)),
    };
    println!("{} ({})", cell(&upstream["name"]), cell(&upstream["state"]));
    if upstream["reason"].is_string() {
        println!(
            "  reason    {}",
            cell(&upstream["reason"]).replace('\n', "\n            ")
        );
    }
    println!("  looked    {}", time(&upstream["looked_ms"]));
    println!("  server    {}", cell(&upstream["server"]));
    println!("  published {version}");
    if upstream["draft"].is_string() {
        println!(
            "  waiting   {}: see `weir contracts show {}`",
            cell(&upstream["draft"]),
            cell(&upstream["contract"])
        );
    }
    println!("  tools     {}", cell(&upstream["tools"]));
    println!(
        "  sessions  {}, after {} restarts",
        cell(&upstream["sessions"]),
        cell(&upstream["restarts"])
    );
    println!(
        "  calls     {} ({} not answered)",
        cell(&upstream["calls"]),
        cell(&upstream["failures"])
    );
    if upstream["backing_off"]
        .as_u64()
        .is_some_and(|tools| tools > 0)
    {
        println!(
            "  backing off: {}, the number of tools whose last calls all failed; they are called again in a while",
            upstream["backing_off"]
        );
    }
    for (what, word) in [("left_out", "left out"), ("notes", "note")] {
        for line in each(&upstream[what]) {
            println!("  {word}: {}", cell(line));
        }
    }
    if upstream["stderr"]
        .as_str()
        .is_some_and(|stderr| !stderr.is_empty())
    {
        println!("  its last words on stderr:");
        cell(&upstream["stderr"])
            .lines()
            .rev()
            .take(10)
            .collect::<Vec<_>>()
            .iter()
            .rev()
            .for_each(|line| {
                println!("    {line}");
            });
    }
}

impl UpstreamAddArgs {
    async fn run(&self, target: &AdminTarget) -> Done {
        let file = target.settings().file();
        let mut entry = self.entry()?;
        let base = file
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let folder = self.choose_folder(&mut entry, base);
        let signs_in = accounts::choose_sign_in(&mut entry).await;
        let with_it = || {
            let before = hosts::text(&file)
                .map_err(anyhow::Error::new)?
                .unwrap_or_default();
            self.written(&before, &entry)
                .with_context(|| format!("{} cannot be edited", file.display()))
        };
        let after = with_it()?;
        let mut config = config::read(&file.display().to_string(), &after, base)?;
        target.settings().over(&mut config);
        let started = start::briefly(config, Some("upstream")).await?;
        // Only a folder that is made here is taken away again.
        let folder = folder.filter(|folder| !folder.is_dir());
        if let Some(folder) = &folder {
            weir_files::create_folder(folder, 0o777)
                .with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        if signs_in {
            accounts::sign_in(&started, &self.name).await?;
        }
        let offer = upstreams::preview(&started.control, &self.name).await;
        started.gateway.upstreams().close().await;
        let offer = match offer.map_err(failure) {
            Ok(offer) => offer,
            Err(failure) => {
                accounts::forget(&started, &self.name, signs_in).await;
                return Err(failure);
            }
        };
        say(&offer);
        if offer.compiled.contract.tools.is_empty() {
            accounts::forget(&started, &self.name, signs_in).await;
            return Err(
                anyhow!("it offers no tool that can be published: nothing was written").into(),
            );
        }
        if !self.yes && !agreed(&self.name)? {
            accounts::forget(&started, &self.name, signs_in).await;
            if let Some(folder) = folder {
                let _ = fs::remove_dir(folder); // what the server has put there is kept
            }
            println!("nothing was written");
            return Ok(ExitCode::FAILURE);
        }
        // A change that another program made meanwhile is kept: the file is read again.
        write(&file, &with_it()?)?;
        println!("{} names `{}` now", file.display(), self.name);
        publish(&started, &self.name, offer).await?;
        if let Some(api) = reload(target, &file).await? {
            // The gateway would soon look on its own; until then, a list of the servers would show this one without a state.
            let path = path(&["v1", "upstreams", &self.name, "look"]);
            match timeout(LOOK_MAX, api.ask(Method::POST, &path, None)).await {
                Ok(Ok(seen)) if seen["reason"].is_string() => {
                    println!(
                        "there it is {}: {}",
                        cell(&seen["state"]),
                        cell(&seen["reason"])
                    );
                }
                Ok(Ok(_)) => println!("it is up there"),
                Ok(Err(error)) => {
                    println!("the state of the server there is unknown ({error:#})")
                }
                Err(_) => println!("the server is still starting there"),
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Gives a command its own working folder next to the configuration, where it may make files, unless the entry has one or
    /// the command names a file of the usual folder. Returns the folder.
    fn choose_folder(&self, entry: &mut Table, base: &Path) -> Option<PathBuf> {
        if entry.contains_key("folder") {
            return None;
        }
        let is_there = |word: &str| {
            let path = word.rsplit('=').next().unwrap_or_default();
            !path.is_empty() && Path::new(path).is_relative() && base.join(path).exists()
        };
        let words = entry.get("command")?.as_array()?;
        let words: Vec<&str> = words.iter().filter_map(toml_edit::Value::as_str).collect();
        let mut named = words.iter().enumerate();
        // A program without a folder is looked for on PATH.
        let named = named.find(|(at, word)| (*at > 0 || word.contains('/')) && is_there(word));
        let named = named.map(|(_, word)| (*word).to_owned());
        if let Some(word) = named {
            println!(
                "it is started in {}, since its command names `{word}` there",
                base.display()
            );
            return None;
        }
        let folder = Path::new(FOLDERS).join(&self.name);
        entry.insert("folder", toml_edit::value(folder.display().to_string()));
        Some(base.join(folder))
    }

    /// Returns the configuration with the server in it.
    fn written(&self, before: &str, entry: &Table) -> anyhow::Result<String> {
        let (form, before) = hosts::TextForm::split(before);
        let mut document: DocumentMut = before
            .parse()
            .map_err(|error: toml_edit::TomlError| anyhow!("{error}"))?;
        let upstreams = document.entry("upstreams").or_insert_with(|| {
            let mut upstreams = Table::new();
            upstreams.set_implicit(true);
            Item::Table(upstreams)
        });
        let upstreams = upstreams
            .as_table_like_mut()
            .context("`upstreams` is not a table")?;
        if upstreams.contains_key(&self.name) {
            bail!(
                "there is an upstream `{}` already: `weir upstream remove {}` first",
                self.name,
                self.name
            );
        }
        upstreams.insert(&self.name, Item::Table(entry.clone()));
        Ok(form.restore(document.to_string()))
    }

    fn entry(&self) -> anyhow::Result<Table> {
        let mut entry = Table::new();
        self.server(&mut entry)?;
        for (key, value) in [
            ("isolation", &self.isolation),
            ("era", &self.era),
            ("prefix", &self.prefix),
        ] {
            if let Some(value) = value {
                entry.insert(key, toml_edit::value(value));
            }
        }
        if let Some(overlay) = &self.overlay {
            entry.insert("overlay", toml_edit::value(overlay.display().to_string()));
        }
        Ok(entry)
    }

    /// Writes the address of the server, with references to secrets as they were given.
    fn server(&self, entry: &mut Table) -> anyhow::Result<()> {
        let mut headers = Vec::new();
        for header in &self.headers {
            let (name, value) = header
                .split_once(':')
                .context("a header is written as `NAME: VALUE`")?;
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let of_ours = |text: &String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text.clone(), format!("env:{text}")),
        };
        let mut environment: Vec<(String, String)> = self.environment.iter().map(of_ours).collect();
        let mut words = self.command.clone();
        let mut url = self.url.clone();
        if let Some(from) = &self.from {
            let text = |text: std::ffi::OsString| {
                text.into_string()
                    .map_err(|_| anyhow!("its entry is not Unicode"))
            };
            let named = self.named.as_deref().unwrap_or(&self.name);
            match hosts::server_to_write(from, named).map_err(anyhow::Error::new)? {
                Server::Url(there) => {
                    if there.transport == UpstreamTransport::Sse {
                        entry.insert("transport", toml_edit::value("sse"));
                    }
                    url = Some(there.url);
                    headers.splice(0..0, there.headers);
                }
                Server::Command(there) => {
                    words = [there.program]
                        .into_iter()
                        .chain(there.arguments)
                        .map(text)
                        .collect::<Result<_, _>>()?;
                    let theirs = there
                        .environment
                        .into_iter()
                        .map(|(name, value)| Ok((text(name)?, text(value)?)));
                    environment.splice(0..0, theirs.collect::<anyhow::Result<Vec<_>>>()?);
                    if let Some(folder) = there.folder {
                        entry.insert("folder", toml_edit::value(folder.display().to_string()));
                    }
                }
            }
        }
        match (&words[..], url) {
            ([], None) => bail!("name the server: a command after `--`, a URL, or --from CLIENT"),
            ([], Some(url)) => drop(entry.insert("url", toml_edit::value(url))),
            (words, _) => {
                drop(entry.insert("command", toml_edit::value(words.iter().collect::<Array>())))
            }
        }
        for (key, values) in [("env", environment), ("headers", headers)] {
            if self.from.is_some() {
                values
                    .iter()
                    .for_each(|(name, value)| tell_of_value(key, name, value));
            }
            if !values.is_empty() {
                entry.insert(
                    key,
                    toml_edit::value(values.into_iter().collect::<InlineTable>()),
                );
            }
        }
        Ok(())
    }
}

/// Returns `true` if a value names the place that it is to be taken from.
fn is_reference(value: &str) -> bool {
    value.starts_with("env:") || value.starts_with("file:") || value.contains("${")
}

/// Prints what a value from a client's configuration needs: a variable, or to be made a reference.
fn tell_of_value(key: &str, name: &str, value: &str) {
    if is_reference(value) {
        eprintln!(
            "weir: the value of `{name}` ({key}) is written into the configuration as a reference: the gateway needs what it \
             names wherever it runs"
        );
        return;
    }
    let variable = name.replace('-', "_").to_uppercase();
    eprintln!(
        "weir: the value of `{name}` ({key}) is written into the configuration in clear, as the client has it. If it is a \
         secret, write \"env:{variable}\" instead and give the gateway that variable"
    );
}

/// Prints what an operator agrees to.
fn say(offer: &CompiledOffer) {
    let contract = &offer.compiled.contract;
    println!("server      {}", offer.server);
    let count =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let counts = [
        (contract.tools.len(), "tool"),
        (contract.prompts.len(), "prompt"),
        (contract.resources.len(), "resource"),
        (contract.templates.len(), "template"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(of, _)| *of > 0)
        .map(|(of, what)| count(*of, what))
        .collect();
    println!("contract    {}: {}", contract.name, counts.join(", "));
    if let Some(instructions) = &contract.instructions {
        println!("instructions\n  {}", offered::indented(instructions, "  "));
    }
    print!(
        "{}",
        offered::described(&compiled_document(contract), |_| true)
    );
    if contract.live_resources {
        println!(
            "  resources that change on their own: they are listed each time, and are not part of what you approve"
        );
    }
    for left_out in &offer.compiled.left_out {
        println!("left out    {left_out}");
    }
    for note in &offer.notes {
        println!("note        {note}");
    }
    for finding in lint_findings(contract) {
        println!("lint        {finding}");
    }
    println!("fingerprint {}", first_fingerprint(contract));
}

/// Returns a line for each finding. Of many of one kind the first ones are enough: the texts themselves are above them.
fn lint_findings(contract: &CompiledContract) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut lines = Vec::new();
    for finding in &lint::lint_contract(contract) {
        let count = counts.entry(finding.rule).or_default();
        *count += 1;
        if *count <= OF_ONE_RULE_MAX {
            lines.push(line(finding));
        }
    }
    let more = counts
        .into_iter()
        .filter(|(_, count)| *count > OF_ONE_RULE_MAX);
    lines.extend(more.map(|(rule, count)| format!("{} more of {rule}", count - OF_ONE_RULE_MAX)));
    lines
}

fn agreed(name: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "no person can be asked here: read what is printed above, and repeat the command with --yes"
        );
    }
    print!("Serve `{name}` with these tools, as they are now? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

async fn publish(started: &GatewayApp, name: &str, offer: CompiledOffer) -> Result<(), AppError> {
    let admin = ActingAdmin {
        by: BY,
        role: Role::Operator,
    };
    let agreed = upstreams::agree(&started.control, name, offer, admin).await;
    match agreed.map_err(failure)? {
        AgreedOffer::Published { version } => {
            println!("its tools are published, as version {version}")
        }
        AgreedOffer::Unchanged { version } => {
            println!("its tools are published already, as version {version}")
        }
        AgreedOffer::Held { summary } => println!("held: {summary}"),
    }
    Ok(())
}

/// Returns what a refused operation prints: the problems of files each on a line, as elsewhere.
fn failure(error: OperationError) -> AppError {
    match error.problems.is_empty() {
        true => anyhow!(error).into(),
        false => AppError::Problems(error.problems),
    }
}

/// Reloads, so that a running gateway serves the current configuration. Returns the address of its admin API, if one runs.
async fn reload(target: &AdminTarget, file: &Path) -> anyhow::Result<Option<AdminClient>> {
    let Ok(api) = target.api() else {
        println!("no gateway with this state runs: one applies it at its start, or on SIGHUP");
        return Ok(None);
    };
    let reloaded = api.ask(Method::POST, "/v1/config/reload", None).await;
    reloaded.with_context(|| {
        let shown = file.display();
        format!(
            "{shown} is written, but the running gateway has not applied it: correct what it reports, then run `weir reload`"
        )
    })?;
    println!("the running gateway has applied it");
    Ok(Some(api))
}

fn remove(target: &AdminTarget, name: &str) -> Done {
    let file = target.settings().file();
    let before = hosts::text(&file)
        .map_err(anyhow::Error::new)?
        .unwrap_or_default();
    let (form, before) = hosts::TextForm::split(&before);
    let mut document: DocumentMut = before
        .parse()
        .map_err(|error: toml_edit::TomlError| anyhow!("{error}"))?;
    let upstreams = document
        .get_mut("upstreams")
        .and_then(Item::as_table_like_mut);
    if upstreams
        .and_then(|upstreams| upstreams.remove(name))
        .is_none()
    {
        return Err(anyhow!("{} does not name an upstream `{name}`", file.display()).into());
    }
    write(&file, &form.restore(document.to_string()))?;
    println!("{} does not name `{name}` any more", file.display());
    block_on(reload(target, &file))??;
    println!(
        "its published tools remain listed and answer `unavailable` until the draft that retires them is published: see \
         `weir contracts list`"
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes the file whole or not at all, through a link to where it leads, with the permissions that it has.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let bits = fs::metadata(&real).map(|about| about.permissions().mode());
    let readers = bits.map_or(
        weir_files::FilePermission::Owner,
        weir_files::FilePermission::Bits,
    );
    weir_files::replace(&real, text.as_bytes(), readers)
        .with_context(|| format!("{} cannot be written", file.display()))
}
