//! A hostile caller: what its calls, connections and sessions cost the calls of another one.

use std::{
    fmt::Write as _,
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use serde_json::{Value, json};

use super::{GuestImpact, HOSTILE_CALLS, HostileLoad, IsolationBench, RATE};
use crate::{
    measure::BenchEffort,
    place::BenchPaths,
    process::START_MAX,
    weir::{WeirBackend, WeirInstance},
    wire::{self, BenchEndpoint, BenchQuestion},
};

/// What one caller does, while the other one calls the honest tool.
#[derive(Clone, Copy)]
enum CallerAttack {
    /// Calls this tool of the server whose schemas are costly.
    Calls(&'static str),
    /// Begins bodies of this many bytes, and never sends their last byte.
    Bodies(usize),
    /// The same with a key whose rate is used up.
    BodiesOverRate(usize),
    /// Calls a tool whose answer is large, and takes nothing of it.
    Untaken,
    /// Opens connections and sends nothing.
    Silence,
    /// The same at the listener of the admin interface.
    AdminSilence,
    /// Opens a session of the legacy protocol after the other.
    Sessions,
}

const ATTACKS: [(&str, CallerAttack); 9] = [
    // For comparison: as many honest calls are noticed too.
    ("calls an honest tool", CallerAttack::Calls("good")),
    (
        "sends values that branch in a recursive schema",
        CallerAttack::Calls("deep"),
    ),
    (
        "sends long texts against a pattern that looks ahead",
        CallerAttack::Calls("looks"),
    ),
    (
        "leaves bodies of 4 MB unfinished",
        CallerAttack::Bodies(4_000_000),
    ),
    (
        "leaves bodies of 4 MB unfinished, over its rate",
        CallerAttack::BodiesOverRate(4_000_000),
    ),
    ("takes nothing of answers of 7 MB", CallerAttack::Untaken),
    ("opens connections and says nothing", CallerAttack::Silence),
    (
        "opens connections to the admin interface and says nothing",
        CallerAttack::AdminSilence,
    ),
    ("opens a session after the other", CallerAttack::Sessions),
];
/// Connections that one attack holds open; one more closes the oldest.
const HELD_MAX: usize = 250;
/// How deep the values are that branch.
const DEPTH: usize = 50;
const TEXT_LENGTH: usize = 20_000;
const ANSWER_MIB: usize = 7;
/// What the second tenant's calls may take of their time alone.
pub(super) const P99_MAX: f64 = 2.0;
const SERVER: &str = "costly";

pub(super) fn measure(
    place: &BenchPaths,
    effort: &BenchEffort,
) -> anyhow::Result<Vec<GuestImpact>> {
    let house = WeirInstance::build(place, WeirBackend::WasmTenant, 1)?;
    house.file("tools.json", &tools().to_string())?;
    let python = place.peer("bench-python").join("bin/python");
    let script = place.repository.join("tests/upstreams/hostile.py");
    let lists = house.data().join("../tools.json");
    let command = [python, script, "lists".into(), lists].map(|word| word.display().to_string());
    house.config(&format!(
        "[upstreams.{SERVER}]\ncommand = {command:?}\nfirst = \"publish\"\nchanges = \"compatible\"\n"
    ))?;
    let apart = WeirInstance::build(place, WeirBackend::WasmTenant, 1)?;
    let bench = IsolationBench::open(place, house, apart)?;
    let doors = AttackedDoors::open(&bench)?;
    let began = Instant::now();
    while call("good").ask(&bench.hostile, None).is_err() {
        if began.elapsed() > START_MAX {
            bail!("the server with costly schemas is not served");
        }
        thread::sleep(Duration::from_millis(20));
    }
    bench.load(bench.shared(), effort)?;
    bench.load(bench.apart(), effort)?;
    let mut all = Vec::new();
    for (name, attack) in ATTACKS {
        let measured = bench.beside(name, effort, || attack.begin(&doors))?;
        println!("{}", measured.cells(P99_MAX).join("  "));
        all.push(measured);
    }
    bench.process.stop()?;
    Ok(all)
}

/// The ways in that are attacked.
struct AttackedDoors {
    agents: BenchEndpoint,
    /// With a key that may make one request a minute.
    over_rate: BenchEndpoint,
    admin: BenchEndpoint,
}

impl AttackedDoors {
    fn open(bench: &IsolationBench) -> anyhow::Result<Self> {
        let agents = bench.hostile.clone();
        let over_rate = BenchEndpoint {
            key: Some(bench.house.slow_key("slow")?),
            ..agents.clone()
        };
        let admin = BenchEndpoint {
            url: format!("{}/", bench.house.admin()?.0),
            key: None,
        };
        Ok(Self {
            agents,
            over_rate,
            admin,
        })
    }
}

impl CallerAttack {
    fn begin(self, doors: &AttackedDoors) -> HostileLoad {
        let (stop, tries) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let pause = Duration::from_secs(HOSTILE_CALLS as u64) / RATE as u32;
        let door = match self {
            Self::BodiesOverRate(_) => &doors.over_rate,
            Self::AdminSilence => &doors.admin,
            _ => &doors.agents,
        };
        let threads = (0..HOSTILE_CALLS).map(|_| {
            let (stop, tries, door) = (Arc::clone(&stop), Arc::clone(&tries), door.clone());
            thread::spawn(move || {
                let (agent, mut held) = (wire::agent(), Vec::new());
                while !stop.load(Ordering::Relaxed) {
                    let next = Instant::now() + pause;
                    held.extend(self.once(&agent, &door));
                    if held.len() > HELD_MAX / HOSTILE_CALLS {
                        held.remove(0);
                    }
                    tries.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(next.saturating_duration_since(Instant::now()));
                }
            })
        });
        HostileLoad {
            threads: threads.collect(),
            stop,
            calls: tries,
        }
    }

    /// Does it once. Returns the connection that is to stay open; the gateway may have no room for one.
    fn once(self, agent: &ureq::Agent, door: &BenchEndpoint) -> Option<TcpStream> {
        match self {
            Self::Calls(tool) => drop(call(tool).ask_over(agent, door)),
            Self::Sessions => drop(door.open_session()),
            Self::Bodies(length) | Self::BodiesOverRate(length) => return begin(door, length).ok(),
            Self::Untaken => return ask_for_much(door).ok(),
            Self::Silence | Self::AdminSilence => return connect(door).ok(),
        }
        None
    }
}

fn connect(door: &BenchEndpoint) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(door.parts()?.0)?;
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    Ok(stream)
}

/// Sends the head of a request whose body is so long.
fn post(
    door: &BenchEndpoint,
    headers: &[(String, String)],
    length: usize,
) -> anyhow::Result<TcpStream> {
    let mut stream = connect(door)?;
    let (address, path) = door.parts()?;
    let mut head =
        format!("POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    Ok(stream)
}

/// Sends the head of a request and as much of its body as the gateway takes, but for the last byte.
fn begin(door: &BenchEndpoint, length: usize) -> anyhow::Result<TcpStream> {
    let mut stream = post(door, &call("good").headers(door, None), length)?;
    // What is not taken in time is not sent.
    let _ = stream.write_all(&vec![b' '; length - 1]);
    Ok(stream)
}

/// Asks for a large answer, and waits until it begins.
fn ask_for_much(door: &BenchEndpoint) -> anyhow::Result<TcpStream> {
    let question = call("big");
    let body = question.body();
    let mut stream = post(door, &question.headers(door, None), body.len())?;
    stream.write_all(body.as_bytes())?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    stream.read_exact(&mut [0; 12])?;
    Ok(stream)
}

fn call(tool: &str) -> BenchQuestion {
    let arguments = match tool {
        "deep" => json!({ "a": (0..DEPTH).fold(json!({}), |inner, _| json!({ "n": inner })) }),
        "big" => json!({ "mib": ANSWER_MIB }),
        "looks" => json!({ "p": format!("{}b", "a".repeat(TEXT_LENGTH)) }),
        _ => json!({}),
    };
    BenchQuestion::call(&format!("{SERVER}_{tool}"), arguments, "")
}

/// Returns tools whose schemas are as costly as are accepted: three arms in each level, and a pattern without an engine of linear
/// time.
fn tools() -> Value {
    let arm = |number: usize| {
        json!({ "type": "object", "required": [format!("r{number}")],
                "properties": { "n": { "$ref": "#/$defs/node" } } })
    };
    let arms: Vec<Value> = (0..3).map(arm).collect();
    let deep = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/node" } },
                       "$defs": { "node": { "oneOf": arms } } });
    let looks = json!({ "type": "object",
                        "properties": { "p": { "type": "string", "pattern": "^(?:(?=a)a|aa)+$" } } });
    let good = json!({ "type": "object" });
    let tool = |(name, schema): (&str, Value)| json!({ "name": name, "description": "Does it.", "inputSchema": schema });
    let tools = [
        ("good", good.clone()),
        ("deep", deep),
        ("looks", looks),
        ("big", good),
    ]
    .map(tool);
    json!({ "tools": tools })
}
