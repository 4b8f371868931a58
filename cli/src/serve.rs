//! `weir serve` and `weir stdio`: one gateway, two doors.

use std::{
    io::IsTerminal,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use tokio::net::TcpListener;
use weir::{
    app::GatewayApp,
    catalogue::CatalogueEndpoint,
    config::GatewayConfig,
    control::reload::{ConfigReloader, Read},
    transport,
};
use weir_contracts::FileProblem;

use super::{
    CliSettings, Done, block_on, clients,
    draft::{ServedPart, ServedReport, serve_source, served_config},
    runtime, start, stop,
};

#[derive(Args)]
pub(super) struct ServeArgs {
    /// A source to serve at once, instead of a folder of contracts: a spreadsheet (.csv, .tsv, .xlsx, .ods), a SQLite
    /// database, or a URL (postgresql://, mysql://, https://), also as env:NAME
    file: Option<PathBuf>,
    /// The address for HTTP, such as 127.0.0.1:8484
    #[arg(long, env = "WEIR_LISTEN", value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    part: ServedPart,
    /// Exit with code 1 if any contract file, lock, plugin file or connection is refused, or a source cannot be reached,
    /// instead of serving the rest (for CI)
    #[arg(long, conflicts_with = "file")]
    strict: bool,
    #[command(flatten)]
    settings: CliSettings,
}

#[derive(Args)]
pub(super) struct StdioArgs {
    /// A source to serve at once, instead of a folder of contracts: a spreadsheet, a SQLite database, or a URL, also as
    /// env:NAME
    file: Option<PathBuf>,
    #[command(flatten)]
    part: ServedPart,
    /// Exit with code 1 if any contract file, lock, plugin file or connection is refused, or a source cannot be reached,
    /// instead of serving the rest (for CI)
    #[arg(long, conflicts_with = "file")]
    strict: bool,
    /// Serve the tools of one view, instead of all
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    view: Option<String>,
    #[command(flatten)]
    settings: CliSettings,
}

/// The address of a spreadsheet when none is given.
const DEFAULT_LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8484);
/// The time that tasks other than calls have to end after the last answer on stdio.
const TASKS_END: Duration = Duration::from_millis(50);

impl ServeArgs {
    pub(super) fn run(self) -> Done {
        // Where nothing would be served, no folder is left behind.
        let terminal = std::io::stdin().is_terminal();
        let of_server = match terminal || self.listen.is_some() {
            true => CliSettings::config_of_server,
            false => CliSettings::config,
        };
        let read = |listen| {
            let settings = self.settings.clone();
            reading(self.file.is_some(), settings, of_server, listen)
        };
        let mut config = match &self.file {
            Some(file) => listening(
                served_config(file, &self.part, &self.settings)?,
                self.listen,
            )?,
            None => read(self.listen)()?,
        };
        // What signs in belongs on a screen, and in no file of logs.
        let is_watched = terminal && std::io::stderr().is_terminal();
        match config
            .http
            .listen
            .or_else(|| (terminal || self.file.is_some()).then_some(DEFAULT_LISTEN))
        {
            Some(listen) => block_on(async {
                let listener = bind(listen).await?;
                let address = listener.local_addr()?;
                config.http.listen = Some(address);
                // Port 0 selects any free port: from here on it is this one.
                let read = read(if listen.port() == 0 {
                    Some(address)
                } else {
                    self.listen
                });
                let (started, reload, report) =
                    start(config, self.served(), "serve", read, self.strict).await?;
                let admin = started.admin(&reload).await?;
                let stopped = stop::hear(&started.gateway);
                let snapshot = started.gateway.snapshot();
                tracing::info!(
                    tools = snapshot.catalogue.len(),
                    "listening on http://{address}/mcp"
                );
                if is_watched
                    && let Some(admin) = &admin
                    && let Some(link) = admin.sign_in_address(&started).await?
                {
                    // The state of one served file is in no configuration.
                    let config = started.gateway.config();
                    let place = match &self.file {
                        Some(_) => format!(" --state {}", config.folders.state.display()),
                        None => String::new(),
                    };
                    eprintln!(
                        "Console, signed in (once, within a minute; `weir admins link{place}` makes another link):\n  {link}\n"
                    );
                }
                if let Some(report) = report {
                    eprint!("\n{report}");
                }
                if terminal || self.file.is_some() {
                    eprint!(
                        "{}",
                        clients::http("weir", &format!("http://{address}/mcp"))
                    );
                }
                transport::http::serve(started.gateway.clone(), listener, stopped).await?;
                if let Some(admin) = admin {
                    admin.end().await;
                }
                started.write_counts().await;
                // Where it cannot be written now, sessions are opened anew.
                let _ = started.gateway.session_notes().write(&started.state).await;
                started.gateway.upstreams().close().await;
                started.leave().await;
                Ok(ExitCode::SUCCESS)
            })?,
            None => {
                eprintln!(
                    "weir: speaking stdio: stdin is not a terminal and no address is given ([http] listen, --listen)"
                );
                if self.file.is_none() {
                    self.settings.names_something(&config, STDIO_ADVICE)?;
                }
                stdio(
                    config,
                    self.served(),
                    CatalogueEndpoint::All,
                    read(self.listen),
                    self.strict,
                )
            }
        }
    }
}

impl ServeArgs {
    /// Returns the source that is served at once.
    fn served(&self) -> Option<(&Path, &ServedPart)> {
        self.file.as_deref().map(|file| (file, &self.part))
    }
}

impl StdioArgs {
    pub(super) fn run(self) -> Done {
        let config = match &self.file {
            Some(file) => served_config(file, &self.part, &self.settings)?,
            None => self.settings.config_to_serve(STDIO_ADVICE)?,
        };
        let endpoint = super::view(&config, self.view.as_deref())?;
        let read = reading(
            self.file.is_some(),
            self.settings.clone(),
            CliSettings::config,
            None,
        );
        let served = self.file.as_deref().map(|file| (file, &self.part));
        stdio(config, served, endpoint, read, self.strict)
    }
}

/// The advice for a client that starts Weir without anything to serve.
const STDIO_ADVICE: &str = "Name one where the client starts Weir (`weir stdio --config /path/to/weir.toml`), or a spreadsheet or \
                            database (`weir stdio /path/to/prices.csv`)";

/// Returns the function that reads the configuration at the start and at each reload. If its file is missing at a reload,
/// the reload is refused: without the file a gateway would require no keys.
fn reading(
    file: bool,
    mut settings: CliSettings,
    config: fn(&CliSettings) -> Result<GatewayConfig, Vec<FileProblem>>,
    listen: Option<SocketAddr>,
) -> Read {
    settings.config = settings.found_file();
    Box::new(move || match file {
        true => Err(vec![FileProblem::new(
            "(command line)",
            "",
            "one file is served: there is no configuration to read",
        )]),
        false => listening(config(&settings)?, listen),
    })
}

/// Listens for agents.
async fn bind(listen: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| {
        let admins = match listen.port() == weir::config::ADMIN_LISTEN.port() {
            true => "; the admin API of another gateway takes this port unless its [admin] listen names another one",
            false => "",
        };
        anyhow::anyhow!("cannot listen on {listen}: {error} (see --listen{admins})")
    })
}

/// Overrides the address of the configuration with that of the command line.
fn listening(
    mut config: GatewayConfig,
    listen: Option<SocketAddr>,
) -> Result<GatewayConfig, Vec<FileProblem>> {
    if let Some(listen) = listen {
        config.http.listen = Some(listen);
        weir::config::check(&config)?;
    }
    Ok(config)
}

fn stdio(
    config: GatewayConfig,
    served: Option<(&Path, &ServedPart)>,
    endpoint: CatalogueEndpoint,
    read: Read,
    strict: bool,
) -> Done {
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        let (started, _, report) = start(config, served, "stdio", read, strict).await?;
        if let Some(report) = report {
            report.log();
        }
        let key = start::key();
        let stopped = stop::hear(&started.gateway);
        let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
        transport::stdio::serve(
            started.gateway.clone(),
            key,
            endpoint,
            stdin,
            stdout,
            stopped,
        )
        .await?;
        started.write_counts().await;
        started.gateway.upstreams().close().await;
        started.leave().await;
        Ok(ExitCode::SUCCESS)
    });
    // A read of stdin cannot be cancelled: while the client keeps it open, a dropped runtime waits for one more line.
    // Everything else has ended by now or ends within this time.
    runtime.shutdown_timeout(TASKS_END);
    done
}

async fn start(
    config: GatewayConfig,
    served: Option<(&Path, &ServedPart)>,
    process: &str,
    read: Read,
    strict: bool,
) -> Result<(GatewayApp, Arc<ConfigReloader>, Option<ServedReport>), super::AppError> {
    // A reload that is asked for during the start is done at its end; unheard, the signal would end the process.
    let hangups = start::hangups();
    let started = start::open(config, Some(process)).await?;
    started.join().await?;
    let report = match served {
        Some((file, part)) => Some(serve_source(&started, file, part).await?),
        None => {
            started.load(strict).await?;
            None
        }
    };
    // What other servers list is published a moment later.
    if started.gateway.snapshot().catalogue.is_empty()
        && started.gateway.config().upstreams.is_empty()
    {
        let folder = started.gateway.config().folders.contracts.clone();
        tracing::warn!(
            "no tool is served: nothing is published, and {} has no contract that could be",
            folder.display()
        );
    }
    started.watch(served.is_none());
    let reload = Arc::new(ConfigReloader::new(
        started.control.clone(),
        started.connections.clone(),
        read,
    ));
    tokio::spawn(start::follow_hangups(hangups, reload.clone()));
    Ok((started, reload, report))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address with a port, such as 127.0.0.1:8484, 0.0.0.0:8484 or [::1]:8484"
            .to_owned()
    })
}
