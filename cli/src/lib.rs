//! The command line: one file a command.
#![expect(
    clippy::print_stdout,
    reason = "a command's answer goes to stdout; logs go to stderr"
)]

/// The macros of the standard library, for all commands: their output cannot control the terminal.
macro_rules! print {
    ($($text:tt)*) => { $crate::terminal::print(::std::format_args!($($text)*)) };
}
macro_rules! println {
    () => { print!("\n") };
    ($($text:tt)*) => { print!("{}\n", ::std::format_args!($($text)*)) };
}
macro_rules! eprint {
    ($($text:tt)*) => { $crate::terminal::print_error(::std::format_args!($($text)*)) };
}
macro_rules! eprintln {
    () => { eprint!("\n") };
    ($($text:tt)*) => { eprint!("{}\n", ::std::format_args!($($text)*)) };
}

mod admin;
mod admins;
mod approvals;
mod audit;
mod author;
mod call;
mod child;
mod clients;
mod collections;
mod compile;
mod connect;
mod contracts;
mod diff;
mod draft;
mod environment;
mod extract;
mod extracted;
mod flags;
mod help;
mod hosts;
mod identity;
mod keys;
mod lint;
mod moved;
mod native_host;
mod nodes;
mod offered;
mod orphans;
mod plugins;
mod policy;
mod reload;
mod serve;
mod start;
mod state;
mod stop;
mod terminal;
mod tools;
mod upstream;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{LazyLock, OnceLock},
};

use clap::{
    Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use weir::{
    app::AppError,
    catalogue::CatalogueEndpoint,
    config::{GatewayConfig, LogFormat},
    telemetry,
};
use weir_contracts::client::ClientProfile;
use weir_plugin_host::BuiltIn;

pub use self::author::SourceArchive;
use self::author::SourceFile;

/// The gateway between agents and data. A form is a tool contract: describe a tool as a form, point it at a
/// spreadsheet, a SQL table or a REST endpoint, and serve it to any MCP client.
///
/// First steps:
///   weir serve prices.csv                 serve a spreadsheet at once, on loopback
///   weir draft prices.csv > prices.yaml   write its contract down, to be edited
///   weir serve --config weir.toml         serve a folder of contracts
///   weir call --file prices.csv list_prices --limit 3   run one tool from the terminal
#[derive(Parser)]
#[command(
    name = "weir",
    version,
    verbatim_doc_comment,
    arg_required_else_help = true
)]
struct CliArgs {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    /// Serve contracts over HTTP; over stdio when there is no listen address and stdin is not a terminal
    Serve(serve::ServeArgs),
    /// Serve contracts over stdio, as a desktop client starts it
    Stdio(serve::StdioArgs),
    /// Run one tool from the terminal; its flags come from its schema (`weir call TOOL --help`)
    Call(call::CallArgs),
    /// Print the tools in words or as OpenAPI, their clients, and their cost for a model
    Tools(tools::ToolsArgs),
    /// Write Weir into the configuration of an MCP client
    Connect(connect::ConnectArgs),
    /// Look at a source, or the document of an HTTP API, and print a contract for it, ready to be edited and served
    Draft(draft::DraftArgs),
    /// Compile a contract, a form or a list of forms, and print the tools an agent would see
    Compile(compile::CompileArgs),
    /// Show what a change of a contract breaks, and for which callers
    Diff(diff::DiffArgs),
    /// Say what a model may misread in the words of a contract or of any server's tools
    Lint(lint::LintArgs),
    /// Write a plugin (new, build, check, schema, test); look after those of a running gateway (list, show, upload, …)
    #[command(name = "plugin", visible_alias = "plugins")]
    Plugins(plugins::Plugins),
    /// Contracts of a gateway: submit one or a folder, publish, roll back, retire, lock
    Contracts(contracts::Contracts),
    /// Collections of a running gateway: what their sources are like now, and what changed
    Collections(collections::Collections),
    /// Policies in Cedar: check them, try them, print the schema made from the contracts
    Policy(policy::Policy),
    /// Keys of agents: create, list, revoke, pin to a version of a contract
    Keys(keys::Keys),
    /// Why callers were refused: a key or token that is missing, expired or for another endpoint
    Identity(identity::Identity),
    /// Keys of those who operate a gateway: create, list, revoke; a link that signs in at the console
    Admins(admins::Admins),
    /// Approve or reject the writes of agents that wait for a person
    Approvals(approvals::Approvals),
    /// List calls and their callers, and prove that the record was not changed
    Audit(audit::AuditArgs),
    /// Gateways that share a state: which there are, and which are behind
    Nodes(nodes::NodesArgs),
    /// Have a running gateway read its configuration again
    Reload(reload::ReloadArgs),
    /// What a gateway keeps, in a folder or a database: back it up, or move it from one to the other
    State(state::StateFolder),
    /// Other MCP servers behind this one: add, list, show, look at, remove; accounts at them
    #[command(visible_alias = "upstreams")]
    Upstream(upstream::Upstreams),
    /// Print what any MCP server offers: tools, resources and prompts in one document
    Extract(extract::ExtractArgs),
    /// Run a server's command, and end it with the gateway
    #[command(hide = true)]
    Child(child::ChildArgs),
    /// Run a native plugin for the gateway that started this
    #[command(hide = true)]
    NativeHost(native_host::NativeHost),
}

/// The heading under which `--help` lists the options that most commands share.
const PLACE: &str = "Configuration";

/// The source of the configuration; flags and environment override the file.
#[derive(Args, Clone, Default)]
struct CliSettings {
    /// The configuration file; `weir.toml` in the working folder when it exists
    #[arg(long, env = "WEIR_CONFIG", value_name = "FILE", global = true, help_heading = PLACE)]
    config: Option<PathBuf>,
    /// The folder of contract files
    #[arg(long, env = "WEIR_CONTRACTS", value_name = "FOLDER", global = true, help_heading = PLACE)]
    contracts: Option<PathBuf>,
    /// The folder of plugins (`*.wasm`)
    #[arg(long, env = "WEIR_PLUGINS", value_name = "FOLDER", global = true, help_heading = PLACE)]
    plugins: Option<PathBuf>,
    /// The folder of the state: published versions, keys, the audit trail
    #[arg(long, env = "WEIR_STATE", value_name = "FOLDER", global = true, help_heading = PLACE)]
    state: Option<PathBuf>,
    /// The format of log lines on stderr
    #[arg(long, env = "WEIR_LOG_FORMAT", value_parser = log_format(), value_name = "LOG_FORMAT", global = true, help_heading = PLACE)]
    log_format: Option<LogFormat>,
}

/// The plugins inside the program, handed over by `main`.
static BUILT_IN: OnceLock<BuiltIn> = OnceLock::new();

fn built_in() -> BuiltIn {
    BUILT_IN.get().copied().unwrap_or_default()
}

/// The files from which `weir plugin new` makes folders.
static SOURCES: OnceLock<SourceArchive> = OnceLock::new();

fn sources() -> &'static [SourceFile] {
    static FILES: LazyLock<Vec<SourceFile>> = LazyLock::new(|| {
        let archive = SOURCES.get();
        archive.map(SourceArchive::unpack).unwrap_or_default()
    });
    &FILES
}

/// Runs the command of the process's arguments, and returns its exit code. `built_in` are the plugins inside the
/// program, `sources` the files of new plugins, and `commit` what the program was built from, where that is known. Ends the
/// process if the arguments cannot be parsed.
pub fn main(built_in: BuiltIn, sources: Option<SourceArchive>, commit: Option<&str>) -> ExitCode {
    weir::memory::give_large_blocks_back();
    let _ = BUILT_IN.set(built_in); // once a process
    if let Some(sources) = sources {
        let _ = SOURCES.set(sources);
    }
    end_with_the_reader();
    deny_inspection();
    orphans::start_reaper();
    let mut line: Vec<_> = std::env::args_os().collect();
    if let Some(moved) = line.get(1..).and_then(moved::moved_line) {
        eprintln!("weir: {}", moved.note);
        line.truncate(1);
        line.extend(moved.words);
    }
    let command =
        help::with_groups(CliArgs::command()).long_version(long_version(built_in, commit));
    for note in environment::misspelt_variables(&command, &line) {
        eprintln!("weir: {note}");
    }
    let matches = command.try_get_matches_from(&line);
    let matches = matches.unwrap_or_else(|error| {
        let command = CliArgs::command();
        if let Some(variable) = environment::refused_variable(&error, &command, &line) {
            eprintln!("weir: the value is that of the variable {variable}:");
        }
        error.exit()
    });
    let done = match CliArgs::from_arg_matches(&matches)
        .unwrap_or_else(|error| error.exit())
        .command
    {
        CliCommand::Serve(command) => command.run(),
        CliCommand::Stdio(command) => command.run(),
        CliCommand::Call(command) => command.run(),
        CliCommand::Tools(command) => command.run(),
        CliCommand::Connect(command) => command.run(),
        CliCommand::Draft(command) => command.run(),
        CliCommand::Compile(command) => command.run(),
        CliCommand::Diff(command) => command.run(),
        CliCommand::Lint(command) => command.run(),
        CliCommand::Plugins(command) => command.run(),
        CliCommand::Contracts(command) => command.run(),
        CliCommand::Collections(command) => command.run(),
        CliCommand::Policy(command) => command.run(),
        CliCommand::Keys(command) => command.run(),
        CliCommand::Identity(command) => command.run(),
        CliCommand::Admins(command) => command.run(),
        CliCommand::Approvals(command) => command.run(),
        CliCommand::Audit(command) => command.run(),
        CliCommand::Nodes(command) => command.run(),
        CliCommand::Reload(command) => command.run(),
        CliCommand::State(command) => command.run(),
        CliCommand::Upstream(command) => command.run(),
        CliCommand::Extract(command) => command.run(),
        CliCommand::Child(command) => command.run(),
        CliCommand::NativeHost(command) => command.run(),
    };
    telemetry::end();
    done.unwrap_or_else(|failure| {
        if reader_left(&failure) {
            return ExitCode::SUCCESS;
        }
        print_failure(&failure);
        ExitCode::FAILURE
    })
}

/// Ends the program when `println!` panics: the reader of the output may stop reading, as `head` does, or the disk may be
/// full.
fn end_with_the_reader() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload_as_str().unwrap_or_default();
        let Some(why) = message.strip_prefix("failed printing to stdout: ") else {
            return usual(panic);
        };
        if why.starts_with("Broken pipe") {
            std::process::exit(0);
        }
        eprintln!("weir: the output cannot be written: {why}");
        std::process::exit(1);
    }));
}

/// Keeps other processes of this user, such as other servers and plugins, from reading the memory and the environment of this
/// one. A started program does not inherit this, so the guard and the host of native plugins, which are this program, pass
/// through here too. Root can still read them.
fn deny_inspection() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable); // it cannot fail for this process
}

fn long_version(built_in: BuiltIn, commit: Option<&str>) -> String {
    let names: Vec<&str> = built_in.iter().map(|(name, ..)| *name).collect();
    let inside = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    format!(
        "{}\ncommit {}\nadapters inside: {inside}",
        env!("CARGO_PKG_VERSION"),
        commit.unwrap_or("unknown")
    )
}

type Done = Result<ExitCode, AppError>;

/// Reads the format of log lines from its word.
fn log_format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(["pretty", "json"]).map(|word| match word.as_str() {
        "json" => LogFormat::Json,
        _ => LogFormat::Pretty,
    })
}

/// Reads a client profile from its word.
fn client_profile(word: &str) -> Result<ClientProfile, String> {
    let words = ClientProfile::ALL.map(ClientProfile::word).join(", ");
    ClientProfile::from_word(word).ok_or_else(|| format!("known are {words}"))
}

/// Returns the endpoint of a view that the configuration has; without a name, that of everything.
fn view(config: &GatewayConfig, name: Option<&str>) -> anyhow::Result<CatalogueEndpoint> {
    let Some(name) = name else {
        return Ok(CatalogueEndpoint::All);
    };
    let views: Vec<&str> = config.views.keys().map(String::as_str).collect();
    match views.contains(&name) {
        true => Ok(CatalogueEndpoint::View(name.into())),
        false if views.is_empty() => {
            anyhow::bail!("there is no view `{name}`: define [views.{name}]")
        }
        false => anyhow::bail!("there is no view `{name}`; there are {}", views.join(", ")),
    }
}

/// Returns `true` if a write failed because its reader left.
fn reader_left(failure: &AppError) -> bool {
    let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    matches!(failure, AppError::Other(error) if error.downcast_ref().is_some_and(broken))
}

fn print_failure(failure: &AppError) {
    match failure {
        AppError::Problems(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
        }
        AppError::Other(error) => eprintln!("weir: {}", with_causes(error)),
    }
}

/// Returns the text of an error with its causes. A cause that an error names itself is not repeated.
fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Returns a client for this URL. A proxy from the environment is only used for other hosts: requests to a Weir on
/// this machine, and their keys above all, never leave it.
fn http_client(url: &str) -> reqwest::Result<reqwest::Client> {
    weir_connections::http::install_tls();
    let url = reqwest::Url::parse(url).ok();
    let host = url
        .as_ref()
        .and_then(reqwest::Url::host_str)
        .unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    let builder = reqwest::Client::builder();
    if is_here { builder.no_proxy() } else { builder }.build()
}

/// Runs a future on the one runtime of the process.
fn block_on<T>(future: impl Future<Output = T>) -> std::io::Result<T> {
    Ok(runtime()?.block_on(future))
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    // This thread waits for the others, and answers too.
    weir_admission::run_soon();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(weir_admission::run_soon)
        .build()
}
