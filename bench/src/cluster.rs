//! Measures a fleet: what a call costs a node compared with a single process, how soon a change holds at all nodes, what a
//! fail-over of the database costs, and how a node and the database grow.

mod fail_over;
mod fleet;
mod growth;

use std::{fmt::Write as _, time::Instant};

use anyhow::{Context, ensure};
use weir_bench::{load::quantiles, ticket};

use self::{
    fail_over::FailOverCount,
    fleet::{BenchFleet, CONTRACT, contract, make_database},
    growth::FleetGrowth,
};
use crate::{
    machine::BenchMachine,
    measure::{BenchEffort, CONNECTIONS, FigureSpread},
    place::BenchPaths,
    pressure::{self, LoadOutcome, LoadPressure, LoadTarget, LoadedServer},
    process::START_MAX,
    report::{BenchPart, Table, markdown, opening, within},
    rows::BenchDatabase,
    weir::{WeirBackend, WeirInstance},
    wire::BenchQuestion,
};

/// The bounds on the figures.
const TIMES_MAX: f64 = 1.03;
const CHANGE_MS_MAX: f64 = 100.0;
/// What the figures are extrapolated to.
const AGENTS: f64 = 1_000_000.0;
const TOOLS: f64 = 100_000.0;

pub(crate) struct ClusterReport {
    machine: BenchMachine,
    calls: Vec<CallCost>,
    changes: Vec<ChangeTimes>,
    fail_over: FailOverCount,
    growth: FleetGrowth,
}

/// The processor time of a call at nodes that are asked together.
struct CallCost {
    what: String,
    cpu_us: FigureSpread,
    /// By that of the single process in the same turn.
    times: FigureSpread,
}

/// The time from an admin's request to its answer, which means that all nodes have the change.
struct ChangeTimes {
    what: &'static str,
    rounds: usize,
    p50_ms: f64,
    p99_ms: f64,
}

/// The amount of what is measured.
struct ClusterEffort {
    turns: usize,
    changes: usize,
    keys: usize,
    tools: usize,
}

pub(crate) fn measure(
    place: &mut BenchPaths,
    machine: BenchMachine,
    effort: &BenchEffort,
) -> anyhow::Result<ClusterReport> {
    place.start_database(BenchDatabase::Postgres)?;
    let amount = match effort.rounds {
        1 => ClusterEffort {
            turns: 20,
            changes: 200,
            keys: 50_000,
            tools: 2_000,
        },
        _ => ClusterEffort {
            turns: 60,
            changes: 500,
            keys: 500_000,
            tools: 10_000,
        },
    };
    let calls = measure_calls(place, effort, amount.turns)?;
    let changes = measure_changes(place, amount.changes)?;
    let fail_over = fail_over::measure(place)?;
    let growth = growth::measure(place, amount.keys, amount.tools)?;
    Ok(ClusterReport {
        machine,
        calls,
        changes,
        fail_over,
        growth,
    })
}

/// Measures a single process and fleets of one, two and three nodes in turns: all run on the same core, and one at a time is
/// sent requests.
fn measure_calls(
    place: &BenchPaths,
    effort: &BenchEffort,
    turns: usize,
) -> anyhow::Result<Vec<CallCost>> {
    let house = WeirInstance::build(place, WeirBackend::Noop, 1)?;
    let (alone, port) = house.start(&place.server_core, START_MAX)?;
    let door = house.door(port, "bench")?;
    let start = |nodes: usize| {
        let url = make_database(place, &format!("calls_{nodes}"))?;
        BenchFleet::start(place, &url, nodes, 1)
    };
    let fleets = [start(1)?, start(2)?, start(3)?];
    let mut asked = vec![vec![LoadedServer {
        process: &alone,
        door: &door,
    }]];
    asked.extend(
        fleets
            .iter()
            .map(|fleet| fleet.nodes.iter().map(|node| node.server()).collect()),
    );
    let mut calls = CONNECTIONS as u64;
    while load(place, &asked[0], calls)?.seconds < effort.seconds / 4.0 {
        calls *= 2;
    }
    let mut costs = vec![Vec::new(); asked.len()];
    for turn in 0..=turns {
        for at in 0..asked.len() {
            // Back and forth, so that no server always comes first.
            let at = if turn % 2 == 0 {
                at
            } else {
                asked.len() - 1 - at
            };
            costs[at].push(load(place, &asked[at], calls)?.cpu_us());
        }
    }
    for cost in &mut costs {
        cost.remove(0); // it warms up
    }
    alone.stop()?;
    for fleet in fleets {
        fleet.stop()?;
    }
    let names = ["one process, SQLite", "1 node", "2 nodes", "3 nodes"];
    let figures = names.iter().zip(&costs).map(|(what, cost)| CallCost {
        what: (*what).to_owned(),
        cpu_us: FigureSpread::from_values(cost.iter().copied()),
        times: FigureSpread::from_values(
            cost.iter().zip(&costs[0]).map(|(cost, alone)| cost / alone),
        ),
    });
    Ok(figures.collect())
}

fn load(
    place: &BenchPaths,
    servers: &[LoadedServer<'_>],
    calls: u64,
) -> anyhow::Result<LoadOutcome> {
    let target = LoadTarget {
        servers,
        generator: &place.binary("bench-load"),
        cores: &place.load_core,
        // PostgreSQL has the generator's core too.
        shares_its_core: false,
    };
    // Calls that a process answers together share some of the work: each is asked over as many connections.
    let connections = CONNECTIONS * servers.len();
    let pressure = LoadPressure::unpaced(connections, calls * servers.len() as u64);
    pressure::run(&target, &BenchQuestion::lookup(), pressure)
}

/// Publishes and revokes at three nodes in turn. After each answer every node is asked whether the change holds there.
fn measure_changes(place: &BenchPaths, rounds: usize) -> anyhow::Result<Vec<ChangeTimes>> {
    let fleet = BenchFleet::start(place, &make_database(place, "changes")?, 3, 1)?;
    let (mut published, mut revoked) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let node = round % fleet.nodes.len();
        let described = format!("Look a ticket up, as of round {round}");
        let tools = [ticket::TOOL.to_owned()];
        let began = Instant::now();
        fleet.publish(node, &contract(CONTRACT, &tools, &described))?;
        published.push(microseconds(began));
        for node in &fleet.nodes {
            let listed = BenchQuestion::listing().ask(&node.door, None)?.to_string();
            ensure!(listed.contains(&described), "round {round}: {listed}");
        }
        let (id, key) = fleet.make_key(node, "leaving")?;
        let began = Instant::now();
        fleet.revoke(node, &id)?;
        revoked.push(microseconds(began));
        for node in &fleet.nodes {
            let mut door = node.door.clone();
            door.key = Some(key.clone());
            let refused = BenchQuestion::listing()
                .ask(&door, None)
                .err()
                .context("a revoked key")?;
            ensure!(refused.to_string().contains("401"), "{refused}");
        }
    }
    fleet.stop()?;
    let figures = |(what, mut times): (_, Vec<u32>)| {
        let (p50, p99) = quantiles(&mut times);
        ChangeTimes {
            what,
            rounds,
            p50_ms: p50 / 1e3,
            p99_ms: p99 / 1e3,
        }
    };
    let parts = [
        ("a version is published", published),
        ("a key is revoked", revoked),
    ];
    Ok(parts.map(figures).into())
}

fn microseconds(began: Instant) -> u32 {
    u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX)
}

impl BenchPart for ClusterReport {
    const FILE: &'static str = "cluster.md";

    fn page(&self) -> String {
        let mut page = opening("A fleet", HOW, &self.machine);
        if cfg!(debug_assertions) {
            page += "- built for development, not as released: times, and ratios of them, are not those of a release\n";
        }
        let parts = [
            ("A call", self.call_table()),
            ("A change", self.change_table()),
            ("A fail-over of the database", self.fail_over_table()),
            ("Growth", self.growth_table()),
            (
                "A million agents and 100,000 tools",
                self.extrapolated_table(),
            ),
        ];
        for (title, table) in parts {
            let _ = write!(page, "\n## {title}\n\n{}", markdown(&table));
        }
        page
    }
}

impl ClusterReport {
    fn call_table(&self) -> Table {
        let mut table = vec![row([
            "",
            "µs of processor",
            "range",
            "against one process, median",
            "range",
            "the rule",
            "within it",
        ])];
        for (number, cost) in self.calls.iter().enumerate() {
            let range = |spread: &FigureSpread, digits: usize| {
                format!("{:.digits$} to {:.digits$}", spread.min, spread.max)
            };
            let (rule, holds) = match number {
                0 => ("–".to_owned(), "–"),
                _ => (
                    format!("at most {TIMES_MAX}"),
                    within(cost.times.median <= TIMES_MAX),
                ),
            };
            table.push(row([
                cost.what.as_str(),
                &format!("{:.1}", cost.cpu_us.median),
                &range(&cost.cpu_us, 1),
                &format!("{:.3}", cost.times.median),
                &range(&cost.times, 3),
                &rule,
                holds,
            ]));
        }
        table
    }

    fn change_table(&self) -> Table {
        let mut table = vec![row([
            "until all three nodes answer so",
            "rounds",
            "p50, ms",
            "p99, ms",
            "the rule",
            "within it",
        ])];
        for change in &self.changes {
            table.push(row([
                change.what,
                &change.rounds.to_string(),
                &format!("{:.1}", change.p50_ms),
                &format!("{:.1}", change.p99_ms),
                &format!("p99 at most {CHANGE_MS_MAX:.0}"),
                within(change.p99_ms <= CHANGE_MS_MAX),
            ]));
        }
        table
    }

    fn fail_over_table(&self) -> Table {
        let FailOverCount {
            reads,
            failed,
            changes_after,
        } = &self.fail_over;
        vec![
            row(["", "", "the rule", "within it"]),
            row(["calls meanwhile", &reads.to_string(), "–", "–"]),
            row(["failed", &failed.to_string(), "none", within(*failed == 0)]),
            row([
                "until an admin can change something, s",
                &format!("{:.1}", changes_after.as_secs_f64()),
                "–",
                "–",
            ]),
        ]
    }

    fn growth_table(&self) -> Table {
        let mut table = vec![row([
            "one more",
            "bytes of a node",
            "bytes of the database",
            "rows",
            "measured with",
        ])];
        for slope in &self.growth.slopes {
            table.push(row([
                slope.what,
                &format!("{:.0}", slope.node_bytes),
                &format!("{:.0}", slope.database_bytes),
                &format!("{:.4}", slope.rows),
                &slope.count.to_string(),
            ]));
        }
        table
    }

    fn extrapolated_table(&self) -> Table {
        let mut table = vec![row(["", "MB of each node", "MB of the database", "rows"])];
        let base = self.growth.base_bytes / 1e6;
        table.push(row([
            "a node with nothing yet",
            &format!("{base:.0}"),
            "–",
            "–",
        ]));
        let mut sums = [base, 0.0, 0.0];
        for (slope, count) in self.growth.slopes.iter().zip([AGENTS, AGENTS, TOOLS]) {
            let parts = [
                slope.node_bytes * count / 1e6,
                slope.database_bytes * count / 1e6,
                slope.rows * count,
            ];
            let what = format!("{count:.0} × {}", slope.what);
            table.push(row([
                what.as_str(),
                &format!("{:.0}", parts[0]),
                &format!("{:.0}", parts[1]),
                &format!("{:.0}", parts[2]),
            ]));
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += part;
            }
        }
        table.push(row([
            "together",
            &format!("{:.0}", sums[0]),
            &format!("{:.0}", sums[1]),
            &format!("{:.0}", sums[2]),
        ]));
        table
    }
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).into()
}

const HOW: &str = "\
`cargo xtask bench -- --only cluster --write docs/benchmarks` writes this page. Nodes are processes of one machine over one PostgreSQL; they
share a core, and the generator and the database have the other one; each node is asked over 16 connections. Their adapter answers at once, so that what remains is the call path; a load
balancer's own time is not in the figures. A call is measured in turns with a process whose state is in SQLite: each figure is the processor time of all
the nodes that were asked, divided by the number of calls, and the ratio is that of the same turn. A change is timed from an admin's request at one node
to its answer, which waits for all nodes; then each node is asked, and one that does not answer by the change ends the measurement. For the
fail-over the primary is stopped at once and a standby promoted, while one caller at each node calls as fast as answers come. Growth is the difference of
a node's resident memory, started from its state, and of the sizes of tables with their indexes; an agent's own share of a node is what the count of its rate
takes in the process that measures. The last table multiplies the figures: what is not in it (calls under way, the trail on each disk) does not depend on how
many agents there are.
";
