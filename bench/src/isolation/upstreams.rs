//! Measures what the callers of nine healthy servers notice of a hostile tenth: alone and beside it, in turns, in one process.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_bench::ticket;

use super::{HOSTILE_CALLS, HostileLoad, IsolationBench, RATE};
use crate::{
    measure::{BenchEffort, FigureSpread},
    place::BenchPaths,
    pressure::{LoadOutcome, LoadedServer},
    process::START_MAX,
    report::{Table, table, within},
    weir::WeirInstance,
    wire::{self, BenchQuestion},
};

const HEALTHY: usize = 9;
/// The bound on the 99th percentile beside a hostile server: at most so many times the one alone.
pub(super) const P99_MAX: f64 = 1.2;
/// The configuration of the hostile server: it is given up soon, so that a round has many tries.
const HOSTILE: &str =
    "first = \"publish\"\nchanges = \"compatible\"\nstart_s = 2\ntimeout_ms = 1000\n";
/// The time between two tries of the hostile server's lists, as far as it answers sooner.
const LOOKS: Duration = Duration::from_millis(50);

/// The provocation of the hostile server meanwhile.
#[derive(Clone, Copy)]
enum HostileAction {
    /// Its lists are looked at again and again.
    Looked,
    /// This tool of it is called, as often as the healthy ones are or as it answers.
    Called(&'static str),
    /// The file of its description is written again and again, and it reports that.
    Edited,
}

/// Each behaviour: its name here, the arguments of the server, and the provocation meanwhile.
const BEHAVIOURS: [(&str, &[&str], HostileAction); 14] = [
    // For comparison: as many calls of an honest server are noticed too.
    (
        "answers at once",
        &["tools"],
        HostileAction::Called("count"),
    ),
    (
        "answers after 200 ms",
        &["tools"],
        HostileAction::Called("sleep"),
    ),
    (
        "never answers, nor heeds a cancellation",
        &["tools"],
        HostileAction::Called("stall"),
    ),
    ("answers 50 MiB", &["tools"], HostileAction::Called("big")),
    (
        "answers against its schema",
        &["tools"],
        HostileAction::Called("lie"),
    ),
    (
        "dies in every call",
        &["tools"],
        HostileAction::Called("die"),
    ),
    ("dies at its start", &["dead"], HostileAction::Looked),
    ("lists 50 MiB", &["huge"], HostileAction::Looked),
    ("lists what is no list", &["liar"], HostileAction::Looked),
    (
        "gives one cursor for ever",
        &["cursor-loop"],
        HostileAction::Looked,
    ),
    (
        "answers with wrong ids",
        &["wrong-ids", "only"],
        HostileAction::Looked,
    ),
    ("floods with messages", &["flood"], HostileAction::Looked),
    (
        "floods with lines that are none",
        &["rubbish"],
        HostileAction::Looked,
    ),
    (
        "swaps its description",
        &["swapper", FILE],
        HostileAction::Edited,
    ),
];
const FILE: &str = "description";

/// One behaviour, over the rounds.
pub(super) struct UpstreamImpact {
    behaviour: &'static str,
    alone: [FigureSpread; 2],
    beside: [FigureSpread; 2],
    /// The 99th percentile meanwhile of another gateway, which has nine servers of its own.
    apart: FigureSpread,
    /// Calls, looks or edits meanwhile.
    poked: u64,
    /// Resident memory of the gateway alone, without its children.
    memory: [u64; 2],
    /// The last lines of `weir upstream show` about it.
    told: String,
}

pub(super) fn measure(
    place: &BenchPaths,
    effort: &BenchEffort,
) -> anyhow::Result<Vec<UpstreamImpact>> {
    let bench = UpstreamBench::start(place)?;
    // The first calls open the sessions.
    for at in 0..HEALTHY {
        bench.load(bench.gateway.shared(), at, effort)?;
        bench.load(bench.gateway.apart(), at, effort)?;
    }
    let mut all = Vec::new();
    for (name, words, poked) in BEHAVIOURS {
        let measured = bench.beside(name, words, poked, effort)?;
        println!("{}", measured.cells().join("  "));
        all.push(measured);
    }
    bench.gateway.process.stop()?;
    Ok(all)
}

struct UpstreamBench {
    /// The gateway, whose neighbour calls the healthy servers, and whose other caller the hostile one.
    gateway: IsolationBench,
    folder: TempDir,
    /// The entries of the healthy servers.
    healthy: String,
    /// The words that start the hostile one, but for its behaviour.
    hostile: [String; 2],
    admin: (String, String),
}

impl UpstreamBench {
    fn start(place: &BenchPaths) -> anyhow::Result<Self> {
        let (house, apart) = (
            WeirInstance::empty(place, "weir")?,
            WeirInstance::empty(place, "weir")?,
        );
        let program = place.binary("bench-rmcp");
        let entry = |at| {
            format!(
                "[upstreams.s{at}]\ncommand = [{:?}, \"0\", \"stdio\", \"1\"]\nfirst = \"publish\"\n",
                program
            )
        };
        let healthy: String = (0..HEALTHY).map(entry).collect();
        house.config(&healthy)?;
        apart.config(&healthy)?;
        let python = place.peer("bench-python").join("bin/python");
        let script = place.repository.join("tests/upstreams/hostile.py");
        let hostile = [python, script].map(|path| path.display().to_string());
        let folder = tempfile::Builder::new()
            .prefix("weir-bench-")
            .tempdir_in(&place.scratch)?;
        fs::write(folder.path().join(FILE), "Says hello.")?;
        let gateway = IsolationBench::open(place, house, apart)?;
        let admin = gateway.house.admin()?;
        let bench = Self {
            gateway,
            folder,
            healthy,
            hostile,
            admin,
        };
        for at in 0..HEALTHY {
            bench.until("a healthy server answers", || {
                let doors = [&bench.gateway.neighbour, &bench.gateway.apart.door];
                doors
                    .iter()
                    .all(|door| healthy_call(at).ask(door, None).is_ok())
            })?;
        }
        Ok(bench)
    }

    fn beside(
        &self,
        behaviour: &'static str,
        words: &[&str],
        poked: HostileAction,
        effort: &BenchEffort,
    ) -> anyhow::Result<UpstreamImpact> {
        let (mut alone, mut beside, mut apart) = (Vec::new(), Vec::new(), Vec::new());
        let mut pokes = 0;
        let (mut memory, mut told) = ([0; 2], String::new());
        for round in 0..effort.rounds {
            alone.push(self.load(self.gateway.shared(), round, effort)?);
            if round == 0 {
                memory[0] = self.gateway.process.own_memory();
            }
            self.with_hostile(words, poked)?;
            let poking = self.poke(poked)?;
            let loaded = self.load(self.gateway.shared(), round, effort);
            pokes += poking.stop();
            beside.push(loaded?);
            let poking = self.poke(poked)?;
            let loaded = self.load(self.gateway.apart(), round, effort);
            poking.stop();
            apart.push(loaded?);
            told = self.describe_state()?;
            self.without_hostile()?;
        }
        memory[1] = self.gateway.process.own_memory();
        let spreads = |all: &[LoadOutcome]| {
            [
                |load: &LoadOutcome| load.p50_us,
                |load: &LoadOutcome| load.p99_us,
            ]
            .map(|of| FigureSpread::from_values(all.iter().map(of)))
        };
        Ok(UpstreamImpact {
            behaviour,
            alone: spreads(&alone),
            beside: spreads(&beside),
            apart: spreads(&apart)[1],
            poked: pokes,
            memory,
            told,
        })
    }

    /// Loads one of the healthy servers of a gateway.
    fn load(
        &self,
        server: LoadedServer<'_>,
        round: usize,
        effort: &BenchEffort,
    ) -> anyhow::Result<LoadOutcome> {
        self.gateway
            .ask(server, &healthy_call(round % HEALTHY), effort)
    }

    /// Puts the hostile server beside the others, and waits until its tools are there or its failure is reported.
    fn with_hostile(&self, words: &[&str], poked: HostileAction) -> anyhow::Result<()> {
        let file = self.folder.path().join(FILE).display().to_string();
        let behaviour = words.iter().map(|word| {
            if *word == FILE {
                file.clone()
            } else {
                (*word).to_owned()
            }
        });
        let command: Vec<String> = self.hostile.iter().cloned().chain(behaviour).collect();
        self.gateway.house.config(&format!(
            "{}[upstreams.hostile]\ncommand = {command:?}\n{HOSTILE}",
            self.healthy
        ))?;
        self.reload()?;
        let state = match poked {
            HostileAction::Looked => "down",
            HostileAction::Called(_) | HostileAction::Edited => "up",
        };
        self.until("the hostile server is looked at", || {
            self.admin("GET", "/v1/upstreams/hostile")
                .is_ok_and(|shown| shown["state"] == state)
        })
    }

    fn without_hostile(&self) -> anyhow::Result<()> {
        self.gateway.house.config(&self.healthy)?;
        self.reload()?;
        self.until("the hostile server is gone", || {
            self.admin("GET", "/v1/upstreams/hostile").is_err()
        })
    }

    fn reload(&self) -> anyhow::Result<()> {
        self.admin("POST", "/v1/config/reload").map(drop)
    }

    /// Returns the state of the server in a line, as an operator reads it.
    fn describe_state(&self) -> anyhow::Result<String> {
        let shown = self.admin("GET", "/v1/upstreams/hostile")?;
        let state = shown["state"].as_str().unwrap_or_default();
        let cause = |line: &&str| line.starts_with("Cause: ");
        let reason = shown["reason"]
            .as_str()
            .and_then(|reason| reason.lines().find(cause).or(reason.lines().next()));
        let reason = reason
            .map(|reason| format!(": {}", reason.trim_start_matches("Cause: ")))
            .unwrap_or_default();
        let waits = if shown["draft"].is_string() {
            ", a draft waits"
        } else {
            ""
        };
        Ok(format!(
            "{state}{reason}; {} calls not answered{waits}",
            shown["failures"]
        ))
    }

    /// Asks the admin API.
    fn admin(&self, method: &str, path: &str) -> anyhow::Result<Value> {
        ask(&self.admin, method, path)
    }

    fn until(&self, what: &str, mut holds: impl FnMut() -> bool) -> anyhow::Result<()> {
        let began = Instant::now();
        while !holds() {
            if began.elapsed() > START_MAX {
                bail!("not in time: {what}");
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn poke(&self, poked: HostileAction) -> anyhow::Result<HostileLoad> {
        let (stop, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let tool = match poked {
            HostileAction::Called(tool) => Some(tool),
            HostileAction::Looked | HostileAction::Edited => None,
        };
        let threads = (0..if tool.is_some() { HOSTILE_CALLS } else { 1 }).map(|_| {
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            let (admin, door, file) = (
                self.admin.clone(),
                self.gateway.hostile.clone(),
                self.folder.path().join(FILE),
            );
            thread::spawn(move || {
                let agent = wire::agent();
                for number in 0_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let pause = tool.map_or(LOOKS, |_| {
                        Duration::from_secs(HOSTILE_CALLS as u64) / RATE as u32
                    });
                    let next = Instant::now() + pause;
                    match poked {
                        // An answer between two failures: otherwise the tool would be left alone for a while.
                        HostileAction::Called(tool) => {
                            let tool = if number % 2 == 0 { tool } else { "count" };
                            let _ = hostile_call(tool).ask_over(&agent, &door);
                        }
                        HostileAction::Looked => {
                            drop(ask(&admin, "POST", "/v1/upstreams/hostile/look"))
                        }
                        HostileAction::Edited => drop(fs::write(
                            &file,
                            format!("Says hello, for the {number}th time."),
                        )),
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            })
        });
        Ok(HostileLoad {
            threads: threads.collect(),
            stop,
            calls: done,
        })
    }
}

fn ask((url, token): &(String, String), method: &str, path: &str) -> anyhow::Result<Value> {
    let url = format!("{url}{path}");
    let bearer = format!("Bearer {token}");
    let mut response = match method {
        "POST" => wire::agent()
            .post(&url)
            .header("authorization", &bearer)
            .send_empty()?,
        _ => wire::agent()
            .get(&url)
            .header("authorization", &bearer)
            .call()?,
    };
    anyhow::ensure!(
        response.status().is_success(),
        "{path}: {}",
        response.status()
    );
    serde_json::from_str(&response.body_mut().read_to_string()?)
        .context("the admin API answers JSON")
}

fn healthy_call(at: usize) -> BenchQuestion {
    BenchQuestion {
        tool: format!("s{at}_{}", ticket::TOOL),
        ..BenchQuestion::lookup()
    }
}

fn hostile_call(tool: &str) -> BenchQuestion {
    let arguments = match tool {
        "sleep" => json!({ "seconds": 0.2 }),
        "big" => json!({ "mib": 50 }),
        _ => json!({}),
    };
    BenchQuestion::call(&format!("hostile_{tool}"), arguments, "")
}

pub(super) fn impacts(all: &[UpstreamImpact]) -> Table {
    let head = [
        "a server that",
        "alone: p50 µs",
        "beside it: p50 µs",
        "alone: p99 µs",
        "beside it: p99 µs",
        "of alone",
        "within the rule",
        "apart: p99 µs",
        "of apart",
        "provoked",
        "memory MiB, before and after",
        "what is told of it",
    ];
    table(&head, all, UpstreamImpact::cells)
}

impl UpstreamImpact {
    fn cells(&self) -> Vec<String> {
        let spread = |spread: FigureSpread| {
            format!(
                "{:.0} ({:.0} to {:.0})",
                spread.median, spread.min, spread.max
            )
        };
        let mib = |bytes: u64| format!("{:.0}", bytes as f64 / f64::from(1 << 20));
        let ([alone_p50, alone], [beside_p50, beside]) = (self.alone, self.beside);
        let times = beside.median / alone.median;
        vec![
            self.behaviour.to_owned(),
            format!("{:.0}", alone_p50.median),
            format!("{:.0}", beside_p50.median),
            spread(alone),
            spread(beside),
            format!("{times:.2}"),
            within(times <= P99_MAX).to_owned(),
            spread(self.apart),
            format!("{:.2}", beside.median / self.apart.median),
            self.poked.to_string(),
            format!("{} → {}", mib(self.memory[0]), mib(self.memory[1])),
            self.told.clone(),
        ]
    }
}
