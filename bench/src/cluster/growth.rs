//! Measures what one more key, agent and tool takes in a node and in the database.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::Context;
use futures::FutureExt as _;
use weir::limits::RateBuckets;

use super::fleet::{BenchFleet, make_database};
use crate::{place::BenchPaths, scale, wire::BenchQuestion};

/// Keys whose agents have called, for the rows that a call leaves.
const CALLERS: usize = 400;
/// The time after which the use of keys is in the state.
const USES_WRITTEN: Duration = Duration::from_secs(7);

/// The size of one more of something, in bytes.
pub(super) struct GrowthSlope {
    pub(super) what: &'static str,
    /// How many were measured.
    pub(super) count: usize,
    /// Of one node's memory.
    pub(super) node_bytes: f64,
    /// Of the database, with its indexes.
    pub(super) database_bytes: f64,
    /// Rows of the database.
    pub(super) rows: f64,
}

/// What a node takes before anything grows.
pub(super) struct FleetGrowth {
    pub(super) base_bytes: f64,
    pub(super) slopes: Vec<GrowthSlope>,
}

pub(super) fn measure(
    place: &BenchPaths,
    keys: usize,
    tools: usize,
) -> anyhow::Result<FleetGrowth> {
    let (keys, base_bytes) = measure_keys(place, keys)?;
    let agents = measure_agents(place, 1_000_000)?;
    let tools = measure_tools(place, tools, base_bytes)?;
    Ok(FleetGrowth {
        base_bytes,
        slopes: vec![keys, agents, tools],
    })
}

fn measure_keys(place: &BenchPaths, count: usize) -> anyhow::Result<(GrowthSlope, f64)> {
    let url = make_database(place, "keys_grow")?;
    let fleet = BenchFleet::start(place, &url, 1, 1)?.restart_first(place)?;
    let base = settled_memory(&fleet)?;
    let size = |table: &str| size_of(place, "keys_grow", table);
    let before = size("keys")?;
    // The triggers would update a counter row for each inserted row.
    let insert = format!(
        "ALTER TABLE keys DISABLE TRIGGER USER; \
         INSERT INTO keys (id, secret_hash, agent, tenant, access, created_ms, created_by, change) \
         SELECT 'key-' || n, decode(repeat('00', 32), 'hex'), 'agent-' || n, 'acme', \
         '{{\"contracts\":[\"support-0\"],\"tools\":[]}}', 1, 'bench', (SELECT max(change) FROM keys) + n \
         FROM generate_series(1, {count}) AS n; \
         ALTER TABLE keys ENABLE TRIGGER USER; \
         UPDATE key_changes SET n = n + {count}; UPDATE generation SET n = n + {count};"
    );
    place.postgres()?.sql_in("keys_grow", &insert)?;
    let database_bytes = (size("keys")? - before) / count as f64;
    let fleet = fleet.restart_first(place)?;
    let grown = settled_memory(&fleet)?;
    fleet.stop()?;
    let slope = GrowthSlope {
        what: "a key",
        count,
        node_bytes: (grown - base) / count as f64,
        database_bytes,
        rows: 1.0,
    };
    Ok((slope, base))
}

/// Measures agents that call: in memory as the rate of each is counted, in the database by a few that do.
fn measure_agents(place: &BenchPaths, count: usize) -> anyhow::Result<GrowthSlope> {
    let url = make_database(place, "agents_grow")?;
    let fleet = BenchFleet::start(place, &url, 1, 1)?;
    let rows_of = |table: &str| -> anyhow::Result<f64> {
        let query = format!("SELECT count(*) FROM {table}");
        place.postgres()?.number_in("agents_grow", &query)
    };
    let all_rows = || Ok::<f64, anyhow::Error>(rows_of("key_uses")? + rows_of("agent_calls")?);
    sleep(USES_WRITTEN);
    let before = all_rows()?;
    for number in 0..CALLERS {
        let (_, key) = fleet.make_key(0, &format!("agent-{number}"))?;
        let mut door = fleet.nodes[0].door.clone();
        door.key = Some(key);
        BenchQuestion::lookup().ask(&door, None)?;
    }
    sleep(USES_WRITTEN);
    let rows = (all_rows()? - before) / CALLERS as f64;
    let bytes = size_of(place, "agents_grow", "key_uses")? / CALLERS as f64;
    fleet.stop()?;
    Ok(GrowthSlope {
        what: "an agent that calls",
        count,
        node_bytes: bucket_bytes(count)?,
        database_bytes: bytes,
        rows,
    })
}

/// Returns the memory for the rate of one agent, in a process that counts the rates of this many.
fn bucket_bytes(count: usize) -> anyhow::Result<f64> {
    let caller = scale::make_caller(&tokio::runtime::Runtime::new()?)?;
    let buckets = RateBuckets::new(Some((60, 3_600)));
    let before = scale::resident()?;
    for number in 0..count {
        let mut caller = caller.clone();
        caller.agent = format!("agent-{number}").into();
        let _ = buckets.request(&caller, Instant::now()).now_or_never(); // it is ready: no node shares the rate
    }
    let grown = scale::resident()?.saturating_sub(before);
    Ok(grown as f64 / count as f64)
}

fn measure_tools(place: &BenchPaths, count: usize, base: f64) -> anyhow::Result<GrowthSlope> {
    let url = make_database(place, "tools_grow")?;
    let fleet = BenchFleet::start(place, &url, 1, count)?.restart_first(place)?;
    let grown = settled_memory(&fleet)?;
    fleet.stop()?;
    let postgres = place.postgres()?;
    let rows = "SELECT (SELECT count(*) FROM versions) + (SELECT count(*) FROM shapes) + (SELECT count(*) FROM contracts)";
    let (mut bytes, count_f) = (0.0, count as f64);
    for table in ["versions", "shapes", "contracts"] {
        bytes += size_of(place, "tools_grow", table)?;
    }
    Ok(GrowthSlope {
        what: "a tool",
        count,
        node_bytes: (grown - base) / count_f,
        database_bytes: bytes / count_f,
        rows: postgres.number_in("tools_grow", rows)? / count_f,
    })
}

/// Returns the memory of the first node after a call and a list, once it has settled.
fn settled_memory(fleet: &BenchFleet) -> anyhow::Result<f64> {
    let node = fleet.nodes.first().context("a fleet has a node")?;
    BenchQuestion::lookup().ask(&node.door, None)?;
    BenchQuestion::listing().ask(&node.door, None)?;
    sleep(Duration::from_secs(2));
    Ok(node.process.memory() as f64)
}

fn size_of(place: &BenchPaths, database: &str, table: &str) -> anyhow::Result<f64> {
    let query = format!("SELECT pg_total_relation_size('{table}')");
    place.postgres()?.number_in(database, &query)
}
