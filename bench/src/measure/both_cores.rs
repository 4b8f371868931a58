//! What a second server thread costs. Server and generator have both cores together, and the generator sleeps: more than
//! two threads want two cores. What that alone costs is seen by two processes of one thread each, which share nothing.
//! With more calls under way than a thread can take up at once none of them goes to sleep between two, nor pays for waking.

use serde::Serialize;

use super::{Bench, CONNECTIONS, Effort, Running, TURNS};
use crate::{
    place::Place,
    pressure::{self, Loaded, Pressure, Server, Target},
    process::BOTH_CORES,
    rows::Row,
};

/// Calls under way.
pub(crate) const LOADS: [usize; 2] = [CONNECTIONS, 64];

/// Microseconds of processor a call, one figure a turn.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BothCores {
    pub(crate) connections: usize,
    pub(crate) one_thread_cpu_us: Vec<f64>,
    pub(crate) two_threads_cpu_us: Vec<f64>,
    pub(crate) two_processes_cpu_us: Vec<f64>,
}

/// In turns: one server, the same and another one, and one that has two threads. At each of the `LOADS`.
pub(super) fn measure(place: &Place, row: &Row, effort: &Effort) -> anyhow::Result<Vec<BothCores>> {
    let started = |threads| {
        let mut bench = Bench::new(place, row, 1)?;
        let (running, _) = bench.start(BOTH_CORES, Some(threads))?;
        anyhow::Ok((bench, running))
    };
    let (mut one, mut other, mut two) = (started(1)?, started(1)?, started(2)?);
    let once = Effort { rounds: 1, seconds: effort.seconds / 4.0, ..*effort };
    let question = one.0.subject.question.clone();
    let calls = one.0.rounds(&one.1, &question, CONNECTIONS, &once)?[0].calls;
    let mut measured = vec![];
    for connections in LOADS {
        let pressure = Pressure { connections, calls, rate: None };
        let mut at = BothCores {
            connections,
            one_thread_cpu_us: vec![],
            two_threads_cpu_us: vec![],
            two_processes_cpu_us: vec![],
        };
        for _ in 0..TURNS {
            at.one_thread_cpu_us.push(load(&mut [&mut one], pressure)?.cpu_us());
            at.two_processes_cpu_us.push(load(&mut [&mut one, &mut other], pressure)?.cpu_us());
            at.two_threads_cpu_us.push(load(&mut [&mut two], pressure)?.cpu_us());
        }
        measured.push(at);
    }
    for (bench, running) in [one, other, two] {
        bench.end(running)?;
    }
    Ok(measured)
}

/// One load on all of them, in equal parts.
fn load(servers: &mut [&mut (Bench<'_>, Running)], pressure: Pressure) -> anyhow::Result<Loaded> {
    let asked: Vec<Server<'_>> = servers.iter().map(|(_, running)| running.server()).collect();
    let generator = &servers[0].0.place.binary("bench-load");
    let target = Target { servers: &asked, generator, cores: BOTH_CORES, shares_its_core: true };
    let loaded = pressure::run(&target, &servers[0].0.subject.question, pressure)?;
    let parts = servers.len() as u64;
    for (bench, _) in servers {
        bench.answered += loaded.calls / parts;
    }
    Ok(loaded)
}
