//! Measures what a second server thread costs: on the core that a server has in every row, and on both cores. There the
//! generator has both as well and sleeps, and more than two threads compete for two cores. Two processes of one thread
//! each, which share nothing, show what the placement alone costs.

use serde::{Deserialize, Serialize};

use super::{BenchEffort, CONNECTIONS, RowBench, RunningServer};
use crate::{
    place::BenchPaths,
    pressure::{self, LoadOutcome, LoadPressure, LoadTarget, LoadedServer},
    rows::BenchRow,
};

const TURNS: usize = 20;

/// The cores that the server runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ServerCores {
    Own,
    Both,
}

/// Microseconds of processor a call, one figure a turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ThreadFigures {
    pub(crate) cores: ServerCores,
    pub(crate) connections: usize,
    pub(crate) one_thread_cpu_us: Vec<f64>,
    pub(crate) two_threads_cpu_us: Vec<f64>,
    pub(crate) two_processes_cpu_us: Vec<f64>,
}

impl ServerCores {
    fn server(self, place: &BenchPaths) -> String {
        match self {
            Self::Own => place.server_core.clone(),
            Self::Both => place.both_cores(),
        }
    }

    fn generator(self, place: &BenchPaths) -> String {
        match self {
            Self::Own => place.load_core.clone(),
            Self::Both => place.both_cores(),
        }
    }
}

pub(super) fn measure(
    place: &BenchPaths,
    row: &BenchRow,
    effort: &BenchEffort,
) -> anyhow::Result<Vec<ThreadFigures>> {
    [ServerCores::Own, ServerCores::Both]
        .map(|cores| measure_on(cores, place, row, effort))
        .into_iter()
        .collect()
}

/// Measures in turns one server, the same and another one, and one that has two threads.
fn measure_on(
    cores: ServerCores,
    place: &BenchPaths,
    row: &BenchRow,
    effort: &BenchEffort,
) -> anyhow::Result<ThreadFigures> {
    let started = |threads| {
        let mut bench = RowBench::new(place, row, 1)?;
        let (running, _) = bench.start(&cores.server(place), Some(threads))?;
        anyhow::Ok((bench, running))
    };
    let (mut one, mut other, mut two) = (started(1)?, started(1)?, started(2)?);
    let once = BenchEffort {
        rounds: 1,
        seconds: effort.seconds / 4.0,
        ..*effort
    };
    let question = one.0.subject.question.clone();
    let calls = one.0.rounds(&one.1, &question, CONNECTIONS, &once)?[0].calls;
    let pressure = LoadPressure::unpaced(CONNECTIONS, calls);
    let mut at = ThreadFigures {
        cores,
        connections: CONNECTIONS,
        one_thread_cpu_us: vec![],
        two_threads_cpu_us: vec![],
        two_processes_cpu_us: vec![],
    };
    for _ in 0..TURNS {
        at.one_thread_cpu_us
            .push(load(cores, &mut [&mut one], pressure)?.cpu_us());
        at.two_processes_cpu_us
            .push(load(cores, &mut [&mut one, &mut other], pressure)?.cpu_us());
        at.two_threads_cpu_us
            .push(load(cores, &mut [&mut two], pressure)?.cpu_us());
    }
    for (bench, running) in [one, other, two] {
        bench.end(running)?;
    }
    Ok(at)
}

/// Puts one load on all servers, in equal parts.
fn load(
    cores: ServerCores,
    servers: &mut [&mut (RowBench<'_>, RunningServer)],
    pressure: LoadPressure,
) -> anyhow::Result<LoadOutcome> {
    let asked: Vec<LoadedServer<'_>> = servers
        .iter()
        .map(|(_, running)| running.server())
        .collect();
    let place = servers[0].0.place;
    let generator = &place.binary("bench-load");
    let shares_its_core = cores == ServerCores::Both;
    let target = LoadTarget {
        servers: &asked,
        generator,
        cores: &cores.generator(place),
        shares_its_core,
    };
    let loaded = pressure::run(&target, &servers[0].0.subject.question, pressure)?;
    let parts = servers.len() as u64;
    for (bench, _) in servers {
        bench.answered += loaded.calls / parts;
    }
    Ok(loaded)
}
