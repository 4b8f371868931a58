//! Measures the console: when it can be used, and what three open consoles cost a gateway under full load.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{
    machine::BenchMachine,
    measure::{BenchEffort, CONNECTIONS, FigureSpread},
    place::BenchPaths,
    pressure::{self, LoadPressure, LoadTarget, LoadedServer},
    process::{MeasuredProcess, START_MAX},
    report::{BenchPart, Table, markdown, opening},
    weir::{WeirBackend, WeirInstance},
    wire::{BenchEndpoint, BenchQuestion},
};

const CHROMIUM: &str = "/usr/bin/chromium";
const CONSOLES: usize = 3;
const OPENINGS: usize = 7;
const TURNS: usize = 12;
/// The bounds on the figures.
const INTERACTIVE_MS_MAX: f64 = 1_000.0;
const BYTES_MAX: f64 = 200.0 * 1024.0;
const LOSS_PERCENT_MAX: f64 = 2.0;
/// The time after which consoles that were opened have read all that they show.
const SETTLE: Duration = Duration::from_secs(3);
/// The time in which a gateway without calls is watched.
const IDLE: Duration = Duration::from_secs(20);

pub(crate) struct ConsoleResults {
    machine: BenchMachine,
    interactive_ms: FigureSpread,
    bytes: f64,
    alone_us: FigureSpread,
    beside_us: FigureSpread,
    /// The median of the turns' ratios, as a loss in percent.
    loss_percent: f64,
    /// Milliseconds of the processor in a second that open consoles take, without calls.
    idle_ms: f64,
}

pub(crate) fn measure(
    place: &BenchPaths,
    machine: BenchMachine,
    effort: &BenchEffort,
) -> anyhow::Result<ConsoleResults> {
    let house = WeirInstance::build(place, WeirBackend::WasmTenant, 1)?;
    let (process, port) = house.start(&place.server_core, START_MAX)?;
    let door = house.door(port, "bench")?;
    let idle = WeirInstance::build(place, WeirBackend::WasmTenant, 1)?;
    let (idle_process, _) = idle.start(&place.load_core, START_MAX)?;
    let mut browser = ConsoleBrowser::start(place, &house.admin()?, &idle.admin()?)?;
    let (mut times, mut bytes) = (Vec::new(), 0.0);
    for _ in 0..OPENINGS {
        let opened = browser.ask("interactive")?;
        times.push(opened["ms"].as_f64().context("a time")?);
        bytes = opened["bytes"].as_f64().context("a number of bytes")?;
    }
    let load = |calls: u64| load(place, &process, &door, calls);
    let rate = load(2_000)?.0;
    let calls = (rate * effort.seconds) as u64;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        for (command, times) in [("beside", &mut alone), ("open", &mut beside)] {
            let opened = browser.ask(&format!("{command} {CONSOLES}"))?;
            ensure!(
                opened["open"] == CONSOLES,
                "the consoles do not open: {opened}"
            );
            // What opening takes is over then.
            thread::sleep(SETTLE);
            times.push(load(calls)?.1);
            browser.ask("close")?;
        }
    }
    let idle = idle_cost(&mut browser, &process)?;
    browser.stop()?;
    idle_process.stop()?;
    process.stop()?;
    let losses = alone.iter().zip(&beside);
    let losses = losses.map(|(alone, beside)| (1.0 - alone / beside) * 100.0);
    Ok(ConsoleResults {
        machine,
        interactive_ms: FigureSpread::from_values(times),
        bytes,
        loss_percent: FigureSpread::from_values(losses).median,
        alone_us: FigureSpread::from_values(alone),
        beside_us: FigureSpread::from_values(beside),
        idle_ms: idle,
    })
}

/// Returns the processor time that open consoles take of the gateway per second without calls, in milliseconds.
fn idle_cost(browser: &mut ConsoleBrowser, process: &MeasuredProcess) -> anyhow::Result<f64> {
    let watch = || {
        let before = process.cpu();
        thread::sleep(IDLE);
        (process.cpu() - before) * 1_000.0 / IDLE.as_secs_f64()
    };
    let alone = watch();
    browser.ask(&format!("open {CONSOLES}"))?;
    thread::sleep(SETTLE);
    let open = watch();
    browser.ask("close")?;
    Ok(open - alone)
}

/// Asks as fast as answers come, and returns the calls a second and the processor time of the gateway for each, in
/// microseconds.
fn load(
    place: &BenchPaths,
    process: &MeasuredProcess,
    door: &BenchEndpoint,
    calls: u64,
) -> anyhow::Result<(f64, f64)> {
    let target = LoadTarget {
        servers: &[LoadedServer { process, door }],
        generator: &place.binary("bench-load"),
        cores: &place.load_core,
        // Chromium has the generator's core too.
        shares_its_core: true,
    };
    let pressure = LoadPressure::unpaced(CONNECTIONS, calls);
    let loaded = pressure::run(&target, &BenchQuestion::lookup(), pressure)?;
    Ok((loaded.rate(), loaded.cpu_us()))
}

/// The script that opens consoles in Chromium.
struct ConsoleBrowser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl ConsoleBrowser {
    /// Starts it for the console that is measured and that of an idle gateway, each by its address and token.
    fn start(
        place: &BenchPaths,
        (url, token): &(String, String),
        (idle_url, idle_token): &(String, String),
    ) -> anyhow::Result<Self> {
        let node = place.peer("node-runtime").join("bin/node");
        // The generator has priority on the core over Chromium: what consoles take of that core is not a figure of the gateway.
        let mut child = Command::new("nice")
            .args(["-n", "19"])
            .arg(&node)
            .arg(place.servers().join("consoles.mjs"))
            .arg(place.peer("console"))
            .args([CHROMIUM, url, token, idle_url, idle_token])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} is not installed", node.display()))?;
        let to = child.stdin.take().context("stdin is a pipe")?;
        let from = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
        Ok(Self { child, to, from })
    }

    fn ask(&mut self, command: &str) -> anyhow::Result<Value> {
        writeln!(self.to, "{command}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("{command}: {line:?}"))
    }

    fn stop(mut self) -> anyhow::Result<()> {
        drop(self.to);
        self.child.wait().map(drop).context("node")
    }
}

impl BenchPart for ConsoleResults {
    const FILE: &'static str = "console.md";

    fn page(&self) -> String {
        let mut page = opening("The console", HOW, &self.machine);
        let _ = write!(page, "\n{}", markdown(&self.table()));
        page
    }
}

impl ConsoleResults {
    fn table(&self) -> Table {
        let head = ["", "median", "range", "the rule", "within it"].map(str::to_owned);
        let range = |spread: &FigureSpread| format!("{:.1} to {:.1}", spread.min, spread.max);
        let rule = |what: &str, found: f64, range: String, max: f64| {
            let holds = if found <= max { "yes" } else { "no" };
            let rule = format!("at most {max:.0}");
            [what, &format!("{found:.1}"), &range, &rule, holds].map(str::to_owned)
        };
        let plain = |what: String, spread: &FigureSpread| {
            let median = format!("{:.1}", spread.median);
            [what, median, range(spread), String::new(), String::new()]
        };
        let rows = [
            head,
            rule(
                "from opening it to its answer to a click, ms",
                self.interactive_ms.median,
                range(&self.interactive_ms),
                INTERACTIVE_MS_MAX,
            ),
            rule(
                "bytes of a first load",
                self.bytes,
                String::new(),
                BYTES_MAX,
            ),
            plain("a call, µs of the gateway".to_owned(), &self.alone_us),
            plain(
                format!("a call while {CONSOLES} consoles are open, µs of the gateway"),
                &self.beside_us,
            ),
            rule(
                "throughput that they take, %",
                self.loss_percent,
                String::new(),
                LOSS_PERCENT_MAX,
            ),
            [
                format!("{CONSOLES} consoles without a call, ms of the processor a second"),
                format!("{:.2}", self.idle_ms),
                String::new(),
                String::new(),
                String::new(),
            ],
        ];
        rows.map(Vec::from).into()
    }
}

const HOW: &str = "\
`cargo xtask bench -- --only console --write docs/benchmarks` writes this page. Chromium opens the console of a gateway with one
contract over loopback, without a cache and with a processor that is throttled four times; the time ends when the pages are listed and one
that was clicked is shown. Then the gateway is sent calls as fast as it answers, in turns while three consoles of another, idle gateway have
been open at the overview for three seconds, and while three of its own have. Chromium, the idle gateway and the generator share a core,
on which the generator comes first, so that Chromium takes as much from it in both turns, and the gateway has the other one: the figure
is the gateway's own processor time, for calls and consoles together, divided by the number of calls.
";
