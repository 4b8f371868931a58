//! Measures what callers notice when the database of the state fails and a standby takes over.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread::{self, sleep},
    time::{Duration, Instant},
};

use anyhow::ensure;

use super::fleet::BenchFleet;
use crate::{
    place::BenchPaths,
    postgres::PostgresServer,
    wire::{self, BenchQuestion},
};

/// The time for which calls are made before and after.
const AROUND: Duration = Duration::from_secs(2);
/// The longest that admins may have to wait.
const CHANGES_MAX: Duration = Duration::from_secs(60);

pub(super) struct FailOverCount {
    pub(super) reads: u64,
    pub(super) failed: u64,
    /// From the failure to the first change that an admin could make again.
    pub(super) changes_after: Duration,
}

/// Counts of the callers, which read all the time.
#[derive(Default)]
struct ReadCounts {
    is_over: AtomicBool,
    reads: AtomicU64,
    failed: AtomicU64,
}

pub(super) fn measure(place: &BenchPaths) -> anyhow::Result<FailOverCount> {
    let mut primary = PostgresServer::start(&place.load_core)?;
    let standby = primary.start_standby()?;
    let fleet = BenchFleet::start(place, &primary.url_with(&standby), 3, 1)?;
    let counts = Arc::<ReadCounts>::default();
    let callers: Vec<_> = fleet
        .nodes
        .iter()
        .map(|node| {
            let (door, counts) = (node.door.clone(), counts.clone());
            thread::spawn(move || {
                let agent = wire::agent();
                while !counts.is_over.load(Relaxed) {
                    let is_read = BenchQuestion::lookup().ask_over(&agent, &door).is_ok();
                    counts.reads.fetch_add(1, Relaxed);
                    counts.failed.fetch_add(u64::from(!is_read), Relaxed);
                }
            })
        })
        .collect();
    sleep(AROUND);
    let began = Instant::now();
    primary.stop()?;
    standby.promote()?;
    while let Err(error) = fleet.make_key(1, "after") {
        ensure!(began.elapsed() < CHANGES_MAX, "no change is made: {error}");
        sleep(Duration::from_millis(50));
    }
    let changes_after = began.elapsed();
    sleep(AROUND);
    counts.is_over.store(true, Relaxed);
    for caller in callers {
        ensure!(caller.join().is_ok(), "a caller panicked");
    }
    fleet.stop()?;
    Ok(FailOverCount {
        reads: counts.reads.load(Relaxed),
        failed: counts.failed.load(Relaxed),
        changes_after,
    })
}
