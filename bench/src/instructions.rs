//! Instructions of one request, counted by callgrind from its first byte to its answer's last: always the same
//! number, whatever else the machine does.

use std::{
    collections::BTreeMap,
    env, fs,
    net::TcpStream,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_bench::ticket;

use crate::{
    place::{BenchPaths, free_port},
    process::MeasuredProcess,
    weir::{KeyBreadth, TracedShare, WeirBackend, WeirInstance},
    wire::{BenchEndpoint, BenchQuestion, REFUSED},
};

/// A request may take this much more than its baseline.
const MORE: f64 = 0.03;
/// The function that serves a connection. Instructions are counted while it, or what it calls, runs; hyper's share is
/// part of a request. In a release the first one is part of the second.
const COUNTED: [&str; 2] = [
    "*hyper::proto::h1::dispatch::Dispatcher*::poll_catch*",
    "*weir::transport::http::connections::connection::*",
];
const WIDE: &str = "tools/call";
const NARROW: &str = "tools/call, narrow key";
const VIEW: &str = "tools/call through a view";
const CACHED: &str = "tools/call, cached token";
const NAMES: &str = "tools/call, policies by name";
const ARGUMENTS: &str = "tools/call, ten policies";
const SAMPLED: &str = "tools/call, sampled traces";
/// The share that a call with a known token may cost more than one with a key, in a build that does not optimise the lookup.
/// The goal of a release is 3 %.
const MORE_BY_TOKEN: f64 = 0.08;
/// The share that a call may cost more under policies decided by names, and under ten decided by its arguments, in a build
/// that does not optimise Cedar. The goals of a release are 1 % and 25 %.
const MORE_BY_NAMES: f64 = 0.04;
const MORE_BY_ARGUMENTS: f64 = 0.30;
/// The share that a call may cost more if one in a hundred is traced, for a collector that is gone. The goal of a
/// release is 1 %.
const MORE_BY_TRACES: f64 = 0.02;
/// An issuer with a private key that was thrown away, and the one token that it gave out, for all endpoints below
/// [`PUBLIC_URL`]. The token expires in 2100.
const ISSUER: &str = r#"[[identity.issuers]]
issuer = "https://issuer.example/"
jwks = "file:issuer.json"
grants = [{ claim = "scope", has = "tools", contracts = ["*"] }]
"#;
const PUBLIC_URL: &str = "https://bench.example";
const ISSUER_KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"bench","x":"ojKDl2hHP2qy-v4GPYGHf7mQ3UkGdVUPJGx5m8TxEGU"}]}"#;
const TOKEN: &str = concat!(
    "eyJhbGciOiJFZERTQSIsInR5cCI6ImF0K2p3dCIsImtpZCI6ImJlbmNoIn0.",
    "eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLyIsInN1YiI6ImJlbmNoIiwiYXVkIjoiaHR0cHM6Ly9iZW5jaC5leGFtcGxl",
    "L21jcCIsImNsaWVudF9pZCI6ImJlbmNoIiwic2NvcGUiOiJ0b29scyB0b29sczp3cml0ZSIsImV4cCI6NDEwMjQ0NDgwMH0.",
    "yb8sXSuFj8VSPwRguWpCRppYH4Pz8DwyigdkJXz33JDcTNUmN0JndNG8GohS1Qqp3n_mWJjpH7OS8XH6p-1hAA"
);
/// A policy about another caller.
const NAMED: &str =
    "forbid(principal == Weir::Agent::\"nobody\", action in Weir::Action::\"call\", resource);\n";
/// Requests before those that are counted: they pay for everything that is made at first use.
const FIRST: u32 = 20;
const MANY: u32 = 400;
/// The time for a start: callgrind runs a program some fifty times slower.
const START_MAX: Duration = Duration::from_secs(300);

/// The accepted counts of requests, with the compiler and the kind of machine.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct InstructionBaseline {
    rust: String,
    machine: String,
    instructions: BTreeMap<String, u64>,
}

/// Holds every request against `file`; `WEIR_BLESS` writes it anew.
pub(crate) fn check(place: &BenchPaths, file: &Path) -> anyhow::Result<()> {
    let mut found = InstructionBaseline {
        rust: rust()?,
        machine: machine()?,
        instructions: BTreeMap::new(),
    };
    for (name, path, question, holder) in questions() {
        let each = count(place, path, &question, holder, name)
            .with_context(|| format!("{name} cannot be counted"))?;
        found.instructions.insert(name.to_owned(), each);
    }
    if env::var_os("WEIR_BLESS").is_some() {
        fs::write(file, serde_json::to_string_pretty(&found)? + "\n")?;
    }
    let text =
        fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let known: InstructionBaseline = serde_json::from_str(&text)?;
    let comparable = known.rust == found.rust && known.machine == found.machine;
    let compared = [
        (NARROW, MORE),
        (VIEW, MORE),
        (CACHED, MORE_BY_TOKEN),
        (NAMES, MORE_BY_NAMES),
        (ARGUMENTS, MORE_BY_ARGUMENTS),
        (SAMPLED, MORE_BY_TRACES),
    ];
    let dearer: Vec<String> = compared
        .into_iter()
        .filter_map(|(name, most)| beside(&found.instructions, name, most))
        .collect();
    if !dearer.is_empty() {
        bail!("{}", dearer.join("; "));
    }
    let mut dearer = Vec::new();
    for (name, each) in &found.instructions {
        let Some(before) = known.instructions.get(name).copied() else {
            println!("{name:26} {each:>8} instructions, and no baseline");
            continue;
        };
        let change = *each as f64 / before as f64 - 1.0;
        println!(
            "{name:26} {each:>8} instructions, {:+.1} % of {before}",
            change * 100.0
        );
        if change > MORE {
            dearer.push(format!(
                "{name} takes {each} instructions, {:.1} % more than {before}",
                change * 100.0
            ));
        }
    }
    if !comparable {
        println!(
            "The baseline was made with {} on {}: nothing is compared with it.",
            known.rust, known.machine
        );
        return Ok(());
    }
    if !dearer.is_empty() {
        bail!(
            "{}.\nIf that is worth it, give the reason in the commit and accept it: WEIR_BLESS=1 cargo xtask instructions",
            dearer.join("; ")
        );
    }
    Ok(())
}

/// Returns the policies that a request meets.
fn policies(name: &str) -> String {
    let by_arguments = |number: u32| {
        format!(
            "forbid(principal, action == Weir::Action::\"{tool}\", resource) when {{ context.args.ticket_id == \"none-{number}\" }};\n",
            tool = ticket::TOOL
        )
    };
    match name {
        NAMES => NAMED.to_owned(),
        ARGUMENTS => (0..10).map(by_arguments).collect(),
        _ => String::new(),
    }
}

/// Refuses a call that costs more than `most`, compared with the plain one: neither narrow access nor a view nor a token is paid
/// for by each call, and policies little.
fn beside(found: &BTreeMap<String, u64>, name: &str, most: f64) -> Option<String> {
    let (plain, each) = (found[WIDE], found[name]);
    let more = each as f64 / plain as f64 - 1.0;
    println!("{name} takes {:+.1} % of what {WIDE} takes.", more * 100.0);
    (more > most).then(|| format!("{name} takes {:.1} % more than {WIDE}", more * 100.0))
}

/// Returns each request: its name, where it is sent, and whose key it has.
fn questions() -> [(&'static str, &'static str, BenchQuestion, KeyBreadth); 9] {
    let call = |arguments: Value, mark| BenchQuestion::call(ticket::TOOL, arguments, mark);
    let list = BenchQuestion::listing();
    let get = || call(json!({ "ticket_id": ticket::ID }), ticket::TITLE);
    let refused = call(json!({ "ticket_id": "1001", "status": "done" }), REFUSED);
    [
        (WIDE, "mcp", get(), KeyBreadth::Wide),
        (NARROW, "mcp", get(), KeyBreadth::Narrow),
        (VIEW, "mcp/view/bench", get(), KeyBreadth::Wide),
        (CACHED, "mcp", get(), KeyBreadth::Wide),
        (NAMES, "mcp", get(), KeyBreadth::Wide),
        (ARGUMENTS, "mcp", get(), KeyBreadth::Wide),
        (SAMPLED, "mcp", get(), KeyBreadth::Wide),
        ("tools/call, refused", "mcp", refused, KeyBreadth::Wide),
        ("tools/list", "mcp", list, KeyBreadth::Wide),
    ]
}

/// Counts one request by two runs that differ by [`MANY`] requests: what a start takes is in both. They run at the same time,
/// since other work does not change a count.
fn count(
    place: &BenchPaths,
    path: &str,
    question: &BenchQuestion,
    holder: KeyBreadth,
    name: &str,
) -> anyhow::Result<u64> {
    let house = WeirInstance::build(place, WeirBackend::Noop, 10)?;
    // Every request meets the same configuration, with a view of everything in it.
    let settings =
        format!("[http]\npage_size = 100\npublic_url = \"{PUBLIC_URL}\"\n[views.bench]\n");
    house.config(&settings)?;
    if name == SAMPLED {
        house.config(&format!("{settings}{}", TracedShare::Hundredth.configure()))?;
    }
    let policies = policies(name);
    if !policies.is_empty() {
        house.policies(&policies)?;
    }
    let key = match name {
        CACHED => {
            house.config(&format!("{settings}{ISSUER}"))?;
            house.file("issuer.json", ISSUER_KEYS)?;
            TOKEN.to_owned()
        }
        _ => {
            let (first, _) = house.start(&place.server_core, START_MAX)?;
            let key = house.key("bench", holder)?;
            first.stop()?;
            key
        }
    };
    let run = |core: &str, times: u32| run(place, core, &house, (path, &key), question, times);
    let (few, many) = thread::scope(|scope| {
        let few = scope.spawn(|| run(&place.load_core, FIRST));
        let many = run(&place.server_core, FIRST + MANY);
        (
            few.join()
                .unwrap_or_else(|_| Err(anyhow!("a count panicked"))),
            many,
        )
    });
    Ok(many?.saturating_sub(few?) / u64::from(MANY))
}

fn run(
    place: &BenchPaths,
    core: &str,
    house: &WeirInstance,
    sent: (&str, &str),
    question: &BenchQuestion,
    times: u32,
) -> anyhow::Result<u64> {
    for counted in COUNTED {
        match count_within(counted, place, core, house, sent, question, times)? {
            0 => {}
            total => return Ok(total),
        }
    }
    bail!("nothing was counted: is there still a function of {COUNTED:?}?")
}

/// Counts a function, and what it calls, in a server that gets the given number of requests.
fn count_within(
    counted: &str,
    place: &BenchPaths,
    core: &str,
    house: &WeirInstance,
    (path, key): (&str, &str),
    question: &BenchQuestion,
    times: u32,
) -> anyhow::Result<u64> {
    let folder = tempfile::Builder::new()
        .prefix("weir-bench-callgrind-")
        .tempdir_in(&place.scratch)?;
    let (port, counts, log) = (
        free_port()?,
        folder.path().join("counts"),
        folder.path().join("log"),
    );
    let serve = house.serve(port);
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=callgrind",
        "--collect-atstart=no",
        &format!("--toggle-collect={counted}"),
    ]);
    valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
    valgrind
        .arg(serve.get_program())
        .args(serve.get_args())
        .current_dir(folder.path());
    let mut server = MeasuredProcess::start(&valgrind, core, &log)?;
    server.wait(START_MAX, || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    })?;
    let door = BenchEndpoint {
        url: format!("http://127.0.0.1:{port}/{path}"),
        key: Some(key.to_owned()),
    };
    for _ in 0..times {
        question.ask(&door, None)?;
    }
    let asked = Instant::now();
    server.stop()?;
    loop {
        let text = fs::read_to_string(&counts).unwrap_or_default();
        let total = text
            .lines()
            .find_map(|line| line.strip_prefix("totals: ")?.trim().parse::<u64>().ok());
        match total {
            Some(total) => return Ok(total),
            None if asked.elapsed() > Duration::from_secs(30) => bail!("callgrind wrote no counts"),
            None => thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn rust() -> anyhow::Result<String> {
    command_output(Command::new("rustc").arg("--version"))
}

/// Returns what selects one of several forms of a function: processor, C library, and what valgrind reports about the
/// processor.
fn machine() -> anyhow::Result<String> {
    let libc = command_output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let valgrind = command_output(Command::new("valgrind").arg("--version"))?;
    let wide = fs::read_to_string("/proc/cpuinfo")?
        .split_whitespace()
        .any(|flag| flag == "avx2");
    Ok(format!(
        "{}{}, {libc}, {valgrind}",
        env::consts::ARCH,
        if wide { " with avx2" } else { "" }
    ))
}

fn command_output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .output()
        .with_context(|| format!("{command:?} cannot be run"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
