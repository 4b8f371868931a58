//! Measures growth: what one more agent, view, tool and key cost among a few and among very many.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
    sync::Arc,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::FutureExt as _;
use weir::{
    catalogue::{CatalogueEndpoint, CatalogueViewer, ToolCatalogue},
    identity::{AccessList, CallerIdentity, CatalogueAccess, IdentityRegistry},
    limits::RateBuckets,
};
use weir_bench::ticket;
use weir_contracts::CompiledContract;
use weir_state::GatewayState;

use crate::{
    machine::BenchMachine,
    measure::FigureSpread,
    place::BenchPaths,
    process::START_MAX,
    report::{BenchPart, markdown, opening, table},
    weir::{KeyBreadth, WeirBackend, WeirInstance},
    wire::{BenchEndpoint, BenchQuestion},
};

const TOOLS: usize = 100_000;
const KEYS: usize = 1_000_000;
const AGENTS: usize = 1_000_000;
const VIEWS: usize = 100_000;
/// The changes of keys that are timed, among a few and among very many.
const CHANGES: usize = 50;
/// The bounds on the figures.
const TOOL_BYTES_MAX: f64 = 6.0 * 1024.0;
const KEY_BYTES_MAX: f64 = 300.0;
/// The bound on what one more may cost among very many, as a multiple of its cost among a few.
const TIMES_MAX: f64 = 3.0;
/// Below it a ratio is meaningless: a few cache lines more.
const SMALL_NS: f64 = 5_000.0;
/// The number of operations that are timed at once.
const AT_ONCE: usize = 10_000;

pub(crate) struct ScaleResults {
    machine: BenchMachine,
    rows: Vec<GrowthFigure>,
}

/// A figure among a few and among very many.
struct GrowthFigure {
    what: &'static str,
    few: String,
    many: String,
    /// The rule, and whether the figure is within it; `None` if it has no rule.
    rule: Option<(String, bool)>,
}

pub(crate) fn measure(place: &BenchPaths, machine: BenchMachine) -> anyhow::Result<ScaleResults> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut rows = vec![agents(&runtime)?, views()?];
    rows.extend(keys(&runtime)?);
    rows.extend(tools(place)?);
    Ok(ScaleResults { machine, rows })
}

/// Measures agents that ask for the first time, all in one rate window.
fn agents(runtime: &tokio::runtime::Runtime) -> anyhow::Result<GrowthFigure> {
    let caller = make_caller(runtime)?;
    let buckets = RateBuckets::new(Some((60, 3_600)));
    let ask = |agents: std::ops::Range<usize>| {
        let callers: Vec<CallerIdentity> = agents
            .map(|agent| CallerIdentity {
                agent: format!("agent-{agent}").into(),
                ..caller.clone()
            })
            .collect();
        let began = Instant::now();
        for caller in &callers {
            let _ = buckets.request(caller, Instant::now()).now_or_never(); // it is ready: no node shares the rate
        }
        began.elapsed().as_nanos() as f64 / callers.len() as f64
    };
    let few = ask(0..AT_ONCE);
    ask(AT_ONCE..AGENTS - AT_ONCE);
    let many = ask(AGENTS - AT_ONCE..AGENTS);
    Ok(times(
        "a new agent in one rate window, ns",
        few,
        many,
        AGENTS,
    ))
}

/// Returns the holder of a key.
pub(crate) fn make_caller(runtime: &tokio::runtime::Runtime) -> anyhow::Result<CallerIdentity> {
    let folder = tempfile::tempdir()?;
    let identities = runtime.block_on(async {
        let state = GatewayState::open(folder.path()).await?;
        add_keys(folder.path(), 1)?;
        let identities = IdentityRegistry::open();
        identities.take_over(&state).await?;
        anyhow::Ok(identities)
    })?;
    identities.agent("agent-0").context("the key is there")
}

/// Measures views of accesses that are new: each is prepared, and the least used make room.
fn views() -> anyhow::Result<GrowthFigure> {
    let contracts = contracts(100)?;
    let catalogue = ToolCatalogue::new(&contracts, &BTreeMap::new(), None);
    let ask = |accesses: std::ops::Range<usize>| {
        let list = |number: usize| AccessList {
            tools: BTreeSet::from([ticket::TOOL.to_owned(), format!("tool_{number}")]),
            ..AccessList::default()
        };
        let accesses: Vec<CatalogueAccess> = accesses
            .map(|number| CatalogueAccess::to(list(number)))
            .collect();
        let began = Instant::now();
        for access in &accesses {
            assert!(
                catalogue
                    .listing(&CatalogueEndpoint::All, CatalogueViewer::Operator(access))
                    .is_some_and(|listing| listing.tools.len() == 1),
                "one tool is seen"
            );
        }
        began.elapsed().as_nanos() as f64 / accesses.len() as f64
    };
    let few = ask(0..1_000);
    ask(1_000..VIEWS - 1_000);
    let many = ask(VIEWS - 1_000..VIEWS);
    Ok(times("a new access, 100 tools, ns", few, many, VIEWS))
}

fn keys(runtime: &tokio::runtime::Runtime) -> anyhow::Result<Vec<GrowthFigure>> {
    let folder = tempfile::tempdir()?;
    runtime.block_on(async {
        let state = GatewayState::open(folder.path()).await?;
        let identities = IdentityRegistry::open();
        add_keys(folder.path(), CHANGES)?;
        identities.take_over(&state).await?;
        let few = change(&state, &identities, 1).await?;
        let before = resident()?;
        add_keys(folder.path(), KEYS)?;
        identities.take_over(&state).await?;
        let each = (resident()?.saturating_sub(before)) as f64 / KEYS as f64;
        let many = change(&state, &identities, KEYS / CHANGES - 1).await?;
        let bytes = GrowthFigure {
            what: "a key, bytes resident",
            few: String::new(),
            many: format!("{each:.0} (of {KEYS})"),
            rule: Some((format!("at most {KEY_BYTES_MAX}"), each <= KEY_BYTES_MAX)),
        };
        Ok(vec![
            bytes,
            times("a change of one key taken over, ns", few, many, KEYS),
        ])
    })
}

/// Revokes keys that are this far apart, and applies each revocation: the median.
async fn change(
    state: &GatewayState,
    identities: &IdentityRegistry,
    apart: usize,
) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for number in 0..CHANGES {
        state
            .revoke_key(&format!("key-{}", number * apart), 1)
            .await?;
        let began = Instant::now();
        identities.take_over(state).await?;
        times.push(began.elapsed().as_nanos() as f64);
    }
    Ok(FigureSpread::from_values(times).median)
}

/// Writes keys directly into the database: adding them one at a time would take an hour.
fn add_keys(folder: &Path, count: usize) -> anyhow::Result<()> {
    let mut database = rusqlite::Connection::open(folder.join("weir.db"))?;
    let transaction = database.transaction()?;
    {
        let mut insert = transaction.prepare(
            "INSERT OR IGNORE INTO keys (id, secret_hash, agent, tenant, access, created_ms, created_by) \
             VALUES (?1, zeroblob(32), ?2, 'acme', '{\"contracts\":[\"support-0\"],\"tools\":[]}', 1, 'bench')",
        )?;
        for number in 0..count {
            insert.execute((format!("key-{number}"), format!("agent-{number}")))?;
        }
    }
    Ok(transaction.commit()?)
}

/// Measures a gateway with ten tools and one with very many: what each holds after its first call and its first page of
/// tools/list.
fn tools(place: &BenchPaths) -> anyhow::Result<Vec<GrowthFigure>> {
    let (few, _) = serve(place, 10)?;
    let (many, took) = serve(place, TOOLS)?;
    let each = many.saturating_sub(few) as f64 / (TOOLS - 10) as f64;
    Ok(vec![
        GrowthFigure {
            what: "a tool, bytes resident",
            few: String::new(),
            many: format!("{each:.0} (of {TOOLS})"),
            rule: Some((format!("at most {TOOL_BYTES_MAX}"), each <= TOOL_BYTES_MAX)),
        },
        GrowthFigure {
            what: "a start from the state, seconds",
            few: String::new(),
            many: format!("{:.1} ({TOOLS} tools)", took.as_secs_f64()),
            rule: None,
        },
    ])
}

/// Measures a gateway's second start, from what the first one published.
fn serve(place: &BenchPaths, tools: usize) -> anyhow::Result<(u64, Duration)> {
    let house = WeirInstance::build(place, WeirBackend::Noop, tools)?;
    let start = || {
        house
            .start(&place.server_core, 10 * START_MAX)
            .with_context(|| format!("with {tools} tools"))
    };
    let (first, _) = start()?;
    let key = house.key("bench", KeyBreadth::Wide)?;
    first.stop()?;
    let (process, port) = start()?;
    let took = process.started.elapsed();
    let door = BenchEndpoint {
        url: format!("http://127.0.0.1:{port}/mcp"),
        key: Some(key),
    };
    BenchQuestion::lookup().ask(&door, None)?;
    BenchQuestion::listing().ask(&door, None)?;
    sleep(Duration::from_secs(2));
    let memory = process.memory();
    process.stop()?;
    Ok((memory, took))
}

fn contracts(tools: usize) -> anyhow::Result<Vec<Arc<CompiledContract>>> {
    let names: Vec<String> = std::iter::once(ticket::TOOL.to_owned())
        .chain((1..tools).map(|number| format!("{}_{number:05}", ticket::TOOL)))
        .collect();
    Ok(vec![Arc::new(ticket::compiled(&names)?)])
}

pub(crate) fn resident() -> anyhow::Result<usize> {
    let status = fs::read_to_string("/proc/self/statm")?;
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok());
    Ok(pages.context("the kernel counts memory")? * 4096)
}

fn times(what: &'static str, few: f64, many: f64, count: usize) -> GrowthFigure {
    GrowthFigure {
        what,
        few: format!("{few:.0}"),
        many: format!("{many:.0} (of {count})"),
        rule: Some((
            format!("at most {TIMES_MAX} times"),
            many <= TIMES_MAX * few.max(SMALL_NS / TIMES_MAX),
        )),
    }
}

impl BenchPart for ScaleResults {
    const FILE: &'static str = "scale.md";

    fn page(&self) -> String {
        let mut page = opening("How it grows", HOW, &self.machine);
        let head = [
            "",
            "among a few",
            "among very many",
            "the rule",
            "within it",
        ];
        let table = table(&head, &self.rows, |grown| {
            let (rule, holds) = match &grown.rule {
                Some((rule, true)) => (rule.as_str(), "yes"),
                Some((rule, false)) => (rule.as_str(), "no"),
                None => ("–", "–"),
            };
            vec![
                grown.what.to_owned(),
                grown.few.clone(),
                grown.many.clone(),
                rule.to_owned(),
                holds.to_owned(),
            ]
        });
        let _ = write!(page, "\n{}", markdown(&table));
        page
    }
}

const HOW: &str = "\
`cargo xtask bench -- --only scale --write docs/benchmarks` writes this page. Agents and views are asked for in the process that
measures, by the code that a request runs; keys are rows of a real state that are taken over as a serving process does; the figure of a tool is
the memory of a whole `weir serve`, started from its state, with very many tools, minus that with ten.
";
