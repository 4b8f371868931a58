//! `weir extract`: what any MCP server offers, as one document.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, ValueEnum};
use weir::control::sources::upstreams::offer::server_lists;
use weir_connections::mask;
use weir_contracts::{
    FileProblem,
    offer::{self, ComposedOffer, ServerLists},
};
use weir_upstream::{
    ClientCapability, EraPreference, UpstreamBounds, UpstreamCommand, UpstreamFailure,
    UpstreamFailureKind, UpstreamSession, UpstreamSettings, UpstreamTarget, UpstreamTransport,
    UpstreamUrl,
};

use super::{Done, block_on, compile, hosts};

/// Tools, resources, resource templates and prompts of an MCP server, as one JSON document
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    override_usage = "weir extract [OPTIONS] -- COMMAND…\n       weir extract [OPTIONS] URL\n       weir extract [OPTIONS] NAME --from CLIENT|FILE\n       weir extract [OPTIONS] --lists LISTS"
)]
pub(super) struct ExtractArgs {
    /// The server's URL, or, with --from, its name in a client's configuration
    #[arg(required_unless_present_any = ["command", "raw"], conflicts_with_all = ["command", "raw"])]
    server: Option<String>,
    /// The command that starts the server
    #[arg(last = true)]
    command: Vec<OsString>,
    /// Make the document of raw list results, without a connection: `{tools?, resources?, resourceTemplates?, prompts?,
    /// server?}`; `-` for stdin
    #[arg(id = "raw", long = "lists", value_name = "LISTS", conflicts_with_all = ["command", "from", "headers", "environment", "ask", "era", "transport"])]
    lists: Option<PathBuf>,
    /// A client whose configuration names the server, or a configuration file
    #[arg(long, value_name = "CLIENT|FILE", requires = "server")]
    from: Option<String>,
    /// A header for a URL, such as 'Authorization: Bearer ${env:TOKEN}'
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// A variable for a command, of this environment or with a value; PATH, HOME, LANG and TMPDIR are always passed on
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    environment: Vec<String>,
    /// A capability that the server may use; some servers then list more tools
    #[arg(long = "as", value_name = "CAPABILITY", value_delimiter = ',')]
    ask: Vec<ExtractCapability>,
    /// Speak this era, instead of the newest that the server supports
    #[arg(long, value_enum)]
    era: Option<EraChoice>,
    /// Use this transport for a URL, instead of the one it answers to
    #[arg(long, value_enum)]
    transport: Option<TransportChoice>,
    /// Seconds for the start, and for each answer
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Bytes that all lists together may have
    #[arg(long, default_value_t = 16 << 20, value_name = "BYTES")]
    list_max_bytes: usize,
    /// Print the document on one line
    #[arg(long)]
    compact: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ExtractCapability {
    Elicitation,
    Sampling,
    Roots,
    /// MCP Apps
    Ui,
}

#[derive(Clone, Copy, ValueEnum)]
enum EraChoice {
    Legacy,
    Modern,
}

#[derive(Clone, Copy, ValueEnum)]
enum TransportChoice {
    Http,
    Sse,
}

impl ExtractArgs {
    pub(super) fn run(self) -> Done {
        if let Some(file) = &self.lists {
            return self.compose(file);
        }
        let target = self.target().map_err(anyhow::Error::new)?;
        let lists = block_on(lists(target, self.settings()))?.map_err(anyhow::Error::new)?;
        let (lists, notes) = lists;
        let mut composed = offer::compose("the server", &lists);
        composed.problems.splice(
            0..0,
            notes
                .into_iter()
                .map(|note| FileProblem::new("the server", "", note)),
        );
        print_document(&composed, self.compact);
        Ok(ExitCode::SUCCESS)
    }

    /// Makes the document of lists that were asked for before.
    fn compose(&self, file: &Path) -> Done {
        let name = file.display().to_string();
        let (lists, problems) =
            ServerLists::read(&name, &compile::read(file)?).map_err(|problem| vec![problem])?;
        let mut composed = offer::compose(&name, &lists);
        composed.problems.splice(0..0, problems);
        print_document(&composed, self.compact);
        Ok(ExitCode::SUCCESS)
    }

    fn target(&self) -> Result<UpstreamTarget, UpstreamFailure> {
        let mut target = match (&self.server, &self.from) {
            (Some(name), Some(from)) => hosts::server(from, name)?,
            (Some(url), None) => url_target(url)?,
            (None, _) => {
                let (program, arguments) =
                    self.command.split_first().expect("clap asks for a command");
                UpstreamTarget::Command(UpstreamCommand {
                    program: program.clone(),
                    arguments: arguments.to_vec(),
                    ..UpstreamCommand::default()
                })
            }
        };
        match &mut target {
            UpstreamTarget::Command(command) => {
                refuse_if(
                    !self.headers.is_empty(),
                    "`--header` is for a URL; a command takes `--env`",
                )?;
                refuse_if(
                    self.transport.is_some(),
                    "`--transport` is for a URL; a command is spoken to over stdio",
                )?;
                command.environment.extend(self.environment()?);
                command.guard = super::child::words();
            }
            UpstreamTarget::Url(url) => {
                refuse_if(
                    !self.environment.is_empty(),
                    "`--env` is for a command; a URL takes `--header`",
                )?;
                url.headers.extend(self.headers()?);
                url.transport = match self.transport {
                    None => url.transport,
                    Some(TransportChoice::Http) => UpstreamTransport::Http,
                    Some(TransportChoice::Sse) => UpstreamTransport::Sse,
                };
            }
        }
        learn_secrets(&target);
        Ok(target)
    }

    fn headers(&self) -> Result<Vec<(String, String)>, UpstreamFailure> {
        let header = |text: &String| {
            let (name, value) = text.split_once(':').ok_or_else(|| {
                wrong("a header as `NAME: VALUE`", "there is no colon")
                    .step("write it as `--header 'NAME: VALUE'`")
            })?;
            Ok((name.trim().to_owned(), hosts::expanded(value.trim())?))
        };
        self.headers.iter().map(header).collect()
    }

    fn environment(&self) -> Result<BTreeMap<OsString, OsString>, UpstreamFailure> {
        let variable = |text: &String| match text.split_once('=') {
            Some((name, value)) => Ok((name.into(), value.into())),
            None => match std::env::var_os(text) {
                Some(value) => Ok((text.into(), value)),
                None => Err(wrong(
                    format!("the variable `{text}` in the environment"),
                    "it is not set",
                )
                .step(format!("set it, or write `--env {text}=VALUE`"))),
            },
        };
        self.environment.iter().map(variable).collect()
    }

    fn settings(&self) -> UpstreamSettings {
        let seconds = Duration::from_secs(self.timeout);
        let ask = |capability: &ExtractCapability| match capability {
            ExtractCapability::Elicitation => ClientCapability::Elicitation,
            ExtractCapability::Sampling => ClientCapability::Sampling,
            ExtractCapability::Roots => ClientCapability::Roots,
            ExtractCapability::Ui => ClientCapability::Ui,
        };
        UpstreamSettings {
            era: match self.era {
                None => EraPreference::Either,
                Some(EraChoice::Legacy) => EraPreference::Legacy,
                Some(EraChoice::Modern) => EraPreference::Modern,
            },
            ask: self.ask.iter().map(ask).collect(),
            start: seconds,
            request: seconds,
            bounds: UpstreamBounds {
                list_max_bytes: self.list_max_bytes,
                message_max_bytes: self.list_max_bytes,
                items_max: offer::ITEMS_MAX,
                ..UpstreamBounds::default()
            },
            ..UpstreamSettings::default()
        }
    }
}

/// Returns what the server lists, and remarks about how it does.
async fn lists(
    target: UpstreamTarget,
    settings: UpstreamSettings,
) -> Result<(ServerLists, Vec<String>), UpstreamFailure> {
    let session = UpstreamSession::open(&target, settings).await?;
    let listed = session.lists().await;
    let (about, skipped) = (session.about(), session.skipped());
    session.close().await;
    let (lists, mut notes) = server_lists(listed?, &about);
    if skipped.0 > 0 {
        notes.push(format!(
            "{} lines or messages were not MCP messages and were skipped",
            skipped.0
        ));
    }
    if skipped.1 > 0 {
        notes.push(format!(
            "{} answers were for requests that were not sent, and were skipped",
            skipped.1
        ));
    }
    Ok((lists, notes))
}

/// Learns the secrets that a server is given: a document of its words is kept and shared.
fn learn_secrets(target: &UpstreamTarget) {
    match target {
        UpstreamTarget::Command(command) => {
            for (name, value) in &command.environment {
                mask::learn_named(&name.to_string_lossy(), &value.to_string_lossy());
            }
        }
        UpstreamTarget::Url(url) => {
            mask::learn_url(&url.url);
            for (name, value) in &url.headers {
                mask::learn_named(name, value);
            }
        }
    }
}

pub(super) fn url_target(url: &str) -> Result<UpstreamTarget, UpstreamFailure> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(wrong(
            "a URL, a name with --from, or a command after `--`",
            format!("`{url}` is none of these"),
        )
        .step("give the URL with http:// or https:// at its beginning")
        .step(format!(
            "or name the client that has it configured: `weir extract {url} --from cursor`"
        ))
        .step(format!("or start it: `weir extract -- {url}`")));
    }
    Ok(UpstreamTarget::Url(UpstreamUrl {
        url: url.to_owned(),
        headers: Vec::new(),
        transport: UpstreamTransport::Either,
        auth: None,
    }))
}

fn refuse_if(is_wrong: bool, cause: &str) -> Result<(), UpstreamFailure> {
    if is_wrong {
        Err(wrong("options that fit the server", cause))
    } else {
        Ok(())
    }
}

fn wrong(expected: impl Into<String>, cause: impl Into<String>) -> UpstreamFailure {
    UpstreamFailure::new(UpstreamFailureKind::Start, expected, cause)
}

/// Prints the document to stdout, and the omissions to stderr.
fn print_document(composed: &ComposedOffer, compact: bool) {
    match compact {
        true => println!("{}", composed.document.compact()),
        false => print!("{}", composed.document.pretty()),
    }
    composed
        .problems
        .iter()
        .map(FileProblem::to_string)
        .for_each(|problem| eprintln!("{problem}"));
}
