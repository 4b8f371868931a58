//! `cargo xtask demo`: from a fresh clone to a served gateway over real data.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{console, plugins, step::StepFailure, workshop::XtaskContext};

pub(crate) const PORT_DEFAULT: u16 = 8484;
const CONFIG: &str = "contracts/samples/weir.toml";
/// Data that calls may change, and files built from the tracked ones: never the tracked files themselves.
const LIVE_DATA: &str = ".weir/demo";
/// The state folder that the configuration names.
const STATE: &str = ".weir/state";

pub(crate) fn run(workshop: &XtaskContext, port: u16) -> Result<(), StepFailure> {
    // This is reported now, not after minutes of building.
    TcpListener::bind(("127.0.0.1", port)).map_err(|error| {
        format!("port {port} cannot be served ({error}): choose another with --port")
    })?;
    println!("Building Weir; the first time takes several minutes.");
    let steps = &workshop.steps;
    // The end of the program's build is one crate, which leaves a core to the plugins.
    thread::scope(|scope| {
        let plugins = scope.spawn(|| plugins::build(workshop));
        let page = scope.spawn(|| console::build(workshop));
        let build = steps.command("build", &mut workshop.cargo(plugins::PROGRAM));
        let plugins = plugins
            .join()
            .unwrap_or_else(|_| Err("building the plugins panicked".into()));
        let page = page
            .join()
            .unwrap_or_else(|_| Err("building the console panicked".into()));
        if let Err(error) = page {
            println!("the demo has no console: {error}");
        }
        build.and(plugins)
    })?;
    plugins::link(workshop, plugins::PROGRAM)?;
    lay_out_data(workshop)?;
    serve(workshop, port)
}

pub(crate) fn parse_port(text: &str) -> Result<u16, StepFailure> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a port: give a number from 1 to 65535").into())
}

/// Waits until the gateway answers, then prints how to reach it. `state` is its state folder.
pub(crate) fn announce(port: u16, target: &str, state: &Path) -> Result<(), StepFailure> {
    let start = Instant::now();
    while !answers(port) {
        if start.elapsed() > Duration::from_secs(60) {
            return Err(format!("nothing answers on 127.0.0.1:{port} after 60 s").into());
        }
        thread::sleep(Duration::from_millis(100));
    }
    let url = format!("http://127.0.0.1:{port}/mcp");
    let weir = format!("{target}/debug/weir");
    let link = sign_in_link(&weir, state)?;
    println!(
        r#"
Weir serves two contracts over public data, and one that you can write to:

  {url}            all tools
  {url}/airports   7,884 airports, from a CSV file
  {url}/weather    four years of Seattle weather, from SQLite
  {url}/desk       a small support desk, written to a CSV file

See it in a browser. This link signs in once, within a minute:

  {link}

Another one is printed by

  {weir} admins link --state {state}

Add it to a client:

  Claude Code      claude mcp add --transport http weir {url}
  Cursor           ~/.cursor/mcp.json    {{"mcpServers": {{"weir": {{"url": "{url}"}}}}}}
  VS Code          .vscode/mcp.json      {{"servers": {{"weir": {{"type": "http", "url": "{url}"}}}}}}
  Claude Desktop   {{"mcpServers": {{"weir": {{"command": "{weir}", "args": ["stdio", "--config", "{config}"]}}}}}}

Try it from another terminal:

  {weir} call --url {url} lookup_airport --iata OSL
  {weir} call --url {url} list_days --weather snow --limit 3
  {weir} call --url {url} create_ticket --subject "Printer is out of paper" --priority 2 --status open

Ctrl-C stops it."#,
        config = repository().join(CONFIG).display(),
        state = state.display(),
    );
    Ok(())
}

/// Returns a link to the console that signs in once.
fn sign_in_link(weir: &str, state: &Path) -> Result<String, StepFailure> {
    let words = ["admins", "link", "--state"];
    let output = Command::new(weir)
        .args(words)
        .arg(state)
        // The link is one of this gateway, whatever the terminal is set up for.
        .env_remove("WEIR_ADMIN_URL")
        .env_remove("WEIR_ADMIN_KEY")
        .output();
    let output = output.map_err(|error| format!("cannot run {weir}: {error}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("no link to the console: {}", why.trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask/ lies in the repository")
}

/// Copies and builds what the sample contracts read and write, where it is not there yet.
fn lay_out_data(workshop: &XtaskContext) -> Result<(), StepFailure> {
    let live = workshop.repository.join(LIVE_DATA);
    fs::create_dir_all(&live)
        .map_err(|error| format!("cannot create {}: {error}", live.display()))?;
    let mut build = workshop.command(workshop.binary("weir-samples"));
    workshop.steps.command(
        "sample data",
        build.arg("contracts/samples/data").arg(&live),
    )
}

/// Becomes the gateway: signals sent to this process reach it.
fn serve(workshop: &XtaskContext, port: u16) -> Result<(), StepFailure> {
    let this =
        std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut announcer = workshop.command(this);
    announcer
        .arg("announce")
        .arg(port.to_string())
        .arg(&workshop.target)
        .arg(repository().join(STATE))
        .stdin(Stdio::null());
    announcer
        .spawn()
        .map_err(|error| format!("cannot announce: {error}"))?;
    let mut gateway = workshop.command(workshop.binary("weir"));
    // Without a terminal the gateway leaves the announcing to us.
    gateway
        .args([
            "serve",
            "--config",
            CONFIG,
            "--listen",
            &format!("127.0.0.1:{port}"),
        ])
        .stdin(Stdio::null());
    replace_process(gateway)
}

#[cfg(unix)]
fn replace_process(mut gateway: std::process::Command) -> Result<(), StepFailure> {
    use std::os::unix::process::CommandExt;
    let error = gateway.exec();
    Err(format!("cannot start the gateway: {error}").into())
}

#[cfg(not(unix))]
fn replace_process(mut gateway: std::process::Command) -> Result<(), StepFailure> {
    let status = gateway
        .status()
        .map_err(|error| format!("cannot start the gateway: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("the gateway stopped ({status})").into())
    }
}

fn answers(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let request =
        format!("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let mut answer = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.starts_with("HTTP/1.1 200")
}
