//! Measures what others notice of a hostile guest, caller or server: how long their calls take alone and beside it, in turns,
//! in one run.

mod callers;
mod upstreams;

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context;
use serde_json::{Value, json};
use weir_bench::{load::quantiles, ticket};

use crate::{
    machine::BenchMachine,
    measure::{BenchEffort, FigureSpread},
    place::BenchPaths,
    pressure::{self, LoadOutcome, LoadPressure, LoadTarget, LoadedServer},
    process::{MeasuredProcess, START_MAX},
    report::{BenchPart, Table, markdown, opening, table, within},
    weir::{WeirBackend, WeirInstance},
    wire::{self, BenchEndpoint, BenchQuestion},
};

/// The name of each hostile behaviour, and the word the guest knows it by.
const HOSTILE: [(&str, &str); 8] = [
    // This one is for comparison: as many calls from an honest guest are noticed too.
    ("answers at once", "behave"),
    ("spins", "spin"),
    ("allocates without end", "allocate"),
    ("recurses without end", "recurse"),
    ("traps", "trap"),
    ("makes a million host calls", "host-calls"),
    ("answers 64 MB", "return-64mb"),
    ("floods the log", "log-flood"),
];
/// Hostile calls under way at once.
const HOSTILE_CALLS: usize = 4;
/// Calls a second of the others: little enough that they do not wait for each other. The hostile guest is asked as often.
const RATE: u64 = 400;
const CONNECTIONS: usize = 4;
const TENANTS: usize = 1_000;
/// The most calls that one tenant may have under way in one plugin.
const HANGING_CALLS: usize = 16;
/// The time that the hostile tool may take; a hanging call lasts so long.
const HOSTILE_TIMEOUT_MS: u64 = 3_000;
/// The bounds on the figures: a p99 of at most so many times the one alone, and no wait of a tenant above this.
const P99_MAX: f64 = 1.5;
const WAIT_MAX_US: f64 = 10_000.0;

pub(crate) struct IsolationResults {
    machine: BenchMachine,
    effort: BenchEffort,
    beside: Vec<GuestImpact>,
    tenants: Vec<(&'static str, WaitTimes)>,
    callers: Vec<GuestImpact>,
    upstreams: Vec<upstreams::UpstreamImpact>,
}

/// The 99th percentile of the others' calls, over the rounds.
struct GuestImpact {
    /// What the hostile guest or caller does.
    guest: &'static str,
    alone_us: FigureSpread,
    beside_us: FigureSpread,
    /// Calls of another gateway meanwhile: what it costs to share the cores.
    apart_us: FigureSpread,
    /// The calls of the hostile guest meanwhile.
    hostile_calls: u64,
}

struct WaitTimes {
    p50_us: f64,
    p99_us: f64,
    longest_us: f64,
}

pub(crate) fn measure(
    place: &BenchPaths,
    machine: BenchMachine,
    effort: &BenchEffort,
) -> anyhow::Result<IsolationResults> {
    let bench = IsolationBench::start(place)?;
    let mut beside = Vec::new();
    bench.load(bench.shared(), effort)?;
    bench.load(bench.apart(), effort)?;
    for (guest, behaviour) in HOSTILE {
        let provoke = || bench.hostile(behaviour, HOSTILE_CALLS);
        let measured = bench.beside(guest, effort, provoke)?;
        println!("{}", measured.cells(P99_MAX).join("  "));
        beside.push(measured);
    }
    let doors = bench.tenants()?;
    // The first calls make keys and instances known: both runs find them as they are after that.
    waits(&doors)?;
    let alone = waits(&doors)?;
    let hanging = bench.hostile("spin", HANGING_CALLS);
    thread::sleep(Duration::from_millis(200));
    let hung = waits(&doors);
    hanging.stop();
    let tenants = vec![("alone", alone), ("while one plugin hangs", hung?)];
    bench.process.stop()?;
    let callers = callers::measure(place, effort)?;
    let upstreams = upstreams::measure(place, effort)?;
    Ok(IsolationResults {
        machine,
        effort: *effort,
        beside,
        tenants,
        callers,
        upstreams,
    })
}

struct IsolationBench {
    house: WeirInstance,
    process: MeasuredProcess,
    apart: ApartGateway,
    generator: PathBuf,
    /// The core of the generator, which the server uses too.
    load_core: String,
    /// The others, and the one whose guest is hostile.
    neighbour: BenchEndpoint,
    hostile: BenchEndpoint,
}

/// A gateway in a process of its own, which nothing hostile reaches.
struct ApartGateway {
    process: MeasuredProcess,
    door: BenchEndpoint,
    /// The files of the gateway, which exist as long as this.
    _house: WeirInstance,
}

impl IsolationBench {
    fn start(place: &BenchPaths) -> anyhow::Result<Self> {
        let house = WeirInstance::build(place, WeirBackend::WasmTenant, 1)?;
        house.plugin(&place.guest("misbehaving.wasm"), "misbehaving")?;
        house.contract("hostile.json", &contract())?;
        Self::open(
            place,
            house,
            WeirInstance::build(place, WeirBackend::WasmTenant, 1)?,
        )
    }

    /// Starts the gateway of a house, with a key for each of both callers, and another gateway apart from it.
    fn open(place: &BenchPaths, house: WeirInstance, apart: WeirInstance) -> anyhow::Result<Self> {
        let (process, port) = house.start(&place.both_cores(), START_MAX)?;
        let (neighbour, hostile) = (house.door(port, "bench")?, house.door(port, "hostile")?);
        let (generator, load_core) = (place.binary("bench-load"), place.load_core.clone());
        let (apart_process, apart_port) = apart.start(&place.both_cores(), START_MAX)?;
        let apart = ApartGateway {
            process: apart_process,
            door: apart.door(apart_port, "bench")?,
            _house: apart,
        };
        Ok(Self {
            house,
            process,
            apart,
            generator,
            load_core,
            neighbour,
            hostile,
        })
    }

    fn beside(
        &self,
        guest: &'static str,
        effort: &BenchEffort,
        provoke: impl Fn() -> HostileLoad,
    ) -> anyhow::Result<GuestImpact> {
        let (mut alone, mut beside, mut apart) = (Vec::new(), Vec::new(), Vec::new());
        let mut hostile_calls = 0;
        for _ in 0..effort.rounds {
            alone.push(self.load(self.shared(), effort)?);
            let hostile = provoke();
            let loaded = self.load(self.shared(), effort);
            hostile_calls += hostile.stop();
            beside.push(loaded?);
            let hostile = provoke();
            let loaded = self.load(self.apart(), effort);
            hostile.stop();
            apart.push(loaded?);
        }
        Ok(GuestImpact {
            guest,
            alone_us: FigureSpread::from_values(alone),
            beside_us: FigureSpread::from_values(beside),
            apart_us: FigureSpread::from_values(apart),
            hostile_calls,
        })
    }

    /// Returns the gateway that the hostile calls go to.
    fn shared(&self) -> LoadedServer<'_> {
        LoadedServer {
            process: &self.process,
            door: &self.neighbour,
        }
    }

    /// Returns the other gateway.
    fn apart(&self) -> LoadedServer<'_> {
        LoadedServer {
            process: &self.apart.process,
            door: &self.apart.door,
        }
    }

    /// Returns the 99th percentile of the neighbour's calls of a gateway, in microseconds.
    fn load(&self, server: LoadedServer<'_>, effort: &BenchEffort) -> anyhow::Result<f64> {
        Ok(self.ask(server, &BenchQuestion::lookup(), effort)?.p99_us)
    }

    /// Has the neighbour ask a gateway one question for a round.
    fn ask(
        &self,
        server: LoadedServer<'_>,
        question: &BenchQuestion,
        effort: &BenchEffort,
    ) -> anyhow::Result<LoadOutcome> {
        let target = LoadTarget {
            servers: &[server],
            generator: &self.generator,
            cores: &self.load_core,
            shares_its_core: true,
        };
        let calls = (RATE as f64 * effort.seconds) as u64;
        let pressure = LoadPressure {
            connections: CONNECTIONS,
            calls,
            rate: Some(RATE),
        };
        pressure::run(&target, question, pressure)
    }

    fn hostile(&self, behaviour: &'static str, at_once: usize) -> HostileLoad {
        let (stop, calls) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let pause = Duration::from_secs(at_once as u64) / RATE as u32;
        let threads = (0..at_once).map(|_| {
            let (stop, calls, door) = (Arc::clone(&stop), Arc::clone(&calls), self.hostile.clone());
            thread::spawn(move || {
                let agent = wire::agent();
                // An answer between two failures: otherwise the guest would be left alone for a while.
                for word in [behaviour, "behave"].into_iter().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let next = Instant::now() + pause;
                    let _ = behave(word).ask_over(&agent, &door);
                    calls.fetch_add(u64::from(word == behaviour), Ordering::Relaxed);
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            })
        });
        HostileLoad {
            threads: threads.collect(),
            stop,
            calls,
        }
    }

    /// Returns a door for each of a thousand tenants, by keys of their own.
    fn tenants(&self) -> anyhow::Result<Vec<BenchEndpoint>> {
        let (url, token) = self.house.admin()?;
        let keys = format!("{url}/v1/keys");
        let agent = wire::agent();
        let door = |number: usize| {
            let body = json!({ "agent": format!("tenant-{number}") }).to_string();
            let request = agent
                .post(&keys)
                .header("authorization", format!("Bearer {token}"));
            let mut response = request
                .header("content-type", "application/json")
                .send(&body)?;
            let made: Value = serde_json::from_str(&response.body_mut().read_to_string()?)?;
            let key = made["key"]
                .as_str()
                .with_context(|| format!("no key was made: {made}"))?;
            Ok(BenchEndpoint {
                url: self.neighbour.url.clone(),
                key: Some(key.to_owned()),
            })
        };
        (0..TENANTS).map(door).collect()
    }
}

/// Calls, or provokes, a hostile plugin or server, until stopped.
struct HostileLoad {
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
    /// The calls that have ended, or how often it was provoked.
    calls: Arc<AtomicU64>,
}

impl HostileLoad {
    /// Stops it, and returns how many calls have ended.
    fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        self.calls.load(Ordering::Relaxed)
    }
}

/// Makes one call of each tenant, in turn, over one connection.
fn waits(doors: &[BenchEndpoint]) -> anyhow::Result<WaitTimes> {
    let agent = wire::agent();
    let question = BenchQuestion::lookup();
    let mut times = Vec::new();
    for door in doors {
        let began = Instant::now();
        question.ask_over(&agent, door)?;
        times.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    let (p50_us, p99_us) = quantiles(&mut times);
    Ok(WaitTimes {
        p50_us,
        p99_us,
        longest_us: times.last().copied().map_or(f64::NAN, f64::from),
    })
}

fn behave(behaviour: &str) -> BenchQuestion {
    BenchQuestion::call("behave", json!({ "behaviour": behaviour }), "")
}

fn contract() -> Value {
    json!({
        "contract": "hostile",
        "collections": { "one": {
            "adapter": "misbehaving", "settings": {}, "key": ["id"], "columns": ["id", "behaviour", "build"],
        } },
        "tools": [{
            "tool": "behave", "description": "Does what it is told.", "verb": "lookup", "collection": "one",
            "limits": { "rate": ticket::RATE, "timeout_ms": HOSTILE_TIMEOUT_MS },
            "fields": [{ "name": "behaviour", "type": "text", "required": true, "param": "behaviour" }],
        }],
    })
}

const HOW: &str = "\
`cargo xtask bench -- --only isolation --write docs/benchmarks` writes this page. One `weir serve` in its default configuration
on both cores of the machine, the generator on one of them: there is no third. Two plugins: a small honest one
(`tests/guests/ticket`) and a hostile one (`tests/guests/misbehaving`), each with a key, and so a tenant, of its own. Another
`weir serve`, likewise, for the hostile callers, and one for the servers.

The hostile side runs on the same two cores. The column \"apart\" shows what that alone costs: the same honest calls at the same time,
sent to another `weir serve` that nothing hostile reaches. \"of apart\" is what the shared process adds to it.
";

impl BenchPart for IsolationResults {
    const FILE: &'static str = "isolation.md";

    fn page(&self) -> String {
        let mut page = opening("Beside a hostile guest or server", HOW, &self.machine);
        let effort = &self.effort;
        let _ = writeln!(
            page,
            "- {} rounds of {} s alone and beside each guest, in turns",
            effort.rounds, effort.seconds
        );
        let _ = write!(
            page,
            "\n## The 99th percentile of the others\n\nThe honest tool is called {RATE} times a second over {CONNECTIONS} \
             connections, each call counted from the moment at which it was due, and the hostile one as often over \
             {HOSTILE_CALLS}, or as often as it answers (an honest answer in between, since after five failures in a row it \
             would be left alone). The rule is at most {P99_MAX} times the \
             figure alone; what as many calls of an honest guest cost stands first.\n\n{}",
            markdown(&others("a guest that", "its calls", &self.beside, P99_MAX))
        );
        let _ = write!(
            page,
            "\n## Beside a hostile caller\n\nThe same honest tool, as often, while a caller with another key does this over {HOSTILE_CALLS} \
             threads, {RATE} times a second together or as often as it is answered. The tools that it calls are of a server behind the \
             gateway (`tests/upstreams/hostile.py`), whose schemas are as costly as are accepted. The rule is at most {} times \
             the figure alone.\n\n{}",
            callers::P99_MAX,
            markdown(&others(
                "a caller that",
                "its tries",
                &self.callers,
                callers::P99_MAX
            ))
        );
        let _ = write!(
            page,
            "\n## A thousand tenants in turn\n\nEach makes one call of the honest tool, while {HANGING_CALLS} calls of the \
             hostile one never end but by their deadline. The rule is that no call waits over {:.0} ms.\n\n{}",
            WAIT_MAX_US / 1_000.0,
            markdown(&self.turns())
        );
        let _ = write!(
            page,
            "\n## A hostile server as one of ten\n\nNine servers over stdio (rmcp's own, with one tool that answers at once) stand behind \
             one gateway, and one of them is called {RATE} times a second over {CONNECTIONS} connections. The tenth \
             (`tests/upstreams/hostile.py`) is put beside them for each second round, and taken out again. Its tool is \
             called as often over {HOSTILE_CALLS} connections, every second time an honest one; or its lists are looked at \
             again and again; or its description is edited. It is given up after 1 to 2 s. It runs on the same two cores, and \
             what as many calls of an honest server cost stands first. The memory is the gateway's own. The rule is at most \
             {} times the 99th percentile alone.\n\n{}",
            upstreams::P99_MAX,
            markdown(&upstreams::impacts(&self.upstreams))
        );
        page
    }
}

impl IsolationResults {
    fn turns(&self) -> Table {
        let head = ["", "p50 µs", "p99 µs", "longest µs", "within the rule"];
        table(&head, &self.tenants, |(what, waits)| {
            let figure = |value: f64| format!("{value:.0}");
            let is_within = within(waits.longest_us <= WAIT_MAX_US).to_owned();
            vec![
                (*what).to_owned(),
                figure(waits.p50_us),
                figure(waits.p99_us),
                figure(waits.longest_us),
                is_within,
            ]
        })
    }
}

fn others(what: &str, tries: &str, rows: &[GuestImpact], p99_max: f64) -> Table {
    let head = [
        what,
        "alone: p99 µs",
        "beside it: p99 µs",
        "of alone",
        "within the rule",
        "apart: p99 µs",
        "of apart",
        tries,
    ];
    table(&head, rows, |row| row.cells(p99_max))
}

impl GuestImpact {
    fn cells(&self, p99_max: f64) -> Vec<String> {
        let spread = |spread: FigureSpread| {
            format!(
                "{:.0} ({:.0} to {:.0})",
                spread.median, spread.min, spread.max
            )
        };
        let times = self.beside_us.median / self.alone_us.median;
        vec![
            self.guest.to_owned(),
            spread(self.alone_us),
            spread(self.beside_us),
            format!("{times:.2}"),
            within(times <= p99_max).to_owned(),
            spread(self.apart_us),
            format!("{:.2}", self.beside_us.median / self.apart_us.median),
            self.hostile_calls.to_string(),
        ]
    }
}
