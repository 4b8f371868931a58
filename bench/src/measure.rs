//! Measures one row, from its first start to its figures.

mod lists;
mod threads;
mod turns;

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

pub(crate) use self::{
    lists::ListFigures,
    threads::{ServerCores, ThreadFigures},
    turns::{TurnFigures, in_turns},
};

use crate::{
    place::{BenchPaths, free_port},
    pressure::{self, LoadOutcome, LoadPressure, LoadTarget, LoadedServer},
    process::{MeasuredProcess, START_MAX},
    rows::{BenchRow, BenchSubject, CallMode, ExtraMeasurement},
    stdio::PipeClient,
    weir::KeyBreadth,
    wire::{BenchEndpoint, BenchEra, BenchQuestion},
};

/// The amount of everything that is measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct BenchEffort {
    pub(crate) rounds: usize,
    /// The time of one round.
    pub(crate) seconds: f64,
    pub(crate) starts: usize,
    /// The calls of the memory measurement.
    pub(crate) many_calls: u64,
    /// The time for which a server without callers is watched.
    #[serde(default)]
    pub(crate) idle_seconds: f64,
}

/// Connections of the throughput runs; over pipes, calls under way.
pub(crate) const CONNECTIONS: usize = 16;
/// A load is tried with more and more calls until it takes at least this long.
const CALIBRATION: f64 = 0.4;

/// The median of all rounds, and the range.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FigureSpread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RowFigures {
    pub(crate) row: String,
    pub(crate) calls_per_second: FigureSpread,
    /// The figure to trust where the machine is shared.
    pub(crate) calls_per_core_second: FigureSpread,
    pub(crate) cpu_us: FigureSpread,
    /// The share of the server's first process, where it has started others.
    #[serde(default)]
    pub(crate) own_cpu_us: Option<FigureSpread>,
    pub(crate) p50_us: FigureSpread,
    pub(crate) p99_us: FigureSpread,
    pub(crate) answer_bytes: f64,
    pub(crate) start_ms: FigureSpread,
    pub(crate) idle_bytes: u64,
    /// The processor time that the server takes without a caller, in percent of a core.
    #[serde(default)]
    pub(crate) idle_cpu_percent: Option<f64>,
    pub(crate) many: Option<MemoryGrowth>,
    /// Each at another load.
    pub(crate) threads: Vec<ThreadFigures>,
    /// The cost of a refusal beyond an accepted call of the same server, measured in turns.
    pub(crate) beyond_accepted_us: Option<FigureSpread>,
    pub(crate) lists: Vec<ListFigures>,
    /// Parts of the row that could not be measured, and why.
    #[serde(default)]
    pub(crate) left_out: Vec<String>,
    /// Calls answered and calls on record; only for Weir.
    pub(crate) audit: Option<AuditCounts>,
    /// Why the row does not count.
    pub(crate) void: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct MemoryGrowth {
    pub(crate) calls: u64,
    pub(crate) before_bytes: u64,
    pub(crate) after_bytes: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct AuditCounts {
    pub(crate) answered: u64,
    pub(crate) recorded: u64,
    pub(crate) ok: u64,
}

impl FigureSpread {
    pub(crate) fn from_values(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (values.first(), values.last()) else {
            return Self::default();
        };
        let (lower, upper) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self {
            median: f64::midpoint(lower, upper),
            min: *min,
            max: *max,
        }
    }
}

pub(crate) fn row(
    place: &BenchPaths,
    row: &BenchRow,
    effort: &BenchEffort,
) -> anyhow::Result<RowFigures> {
    let mut bench = RowBench::new(place, row, 1)?;
    let mut figures = match row.way {
        CallMode::Stdio => bench.over_pipes(effort)?,
        CallMode::Http(_) | CallMode::Refused => bench.over_http(effort)?,
    };
    (figures.audit, figures.void) = bench.hold_against_audit();
    for also in row.also {
        match also {
            ExtraMeasurement::Lists(sizes) => {
                (figures.lists, figures.left_out) = lists::measure(place, row, sizes, effort)
            }
            ExtraMeasurement::TwoThreads => figures.threads = threads::measure(place, row, effort)?,
            ExtraMeasurement::Million | ExtraMeasurement::Idle => {}
        }
    }
    Ok(figures)
}

/// The server of one row, started as often as is needed.
struct RowBench<'a> {
    place: &'a BenchPaths,
    row: &'a BenchRow,
    subject: BenchSubject,
    folder: TempDir,
    key: Option<String>,
    /// `tools/call` answers so far, from all its processes.
    answered: u64,
    /// The calls that were accepted although the row is one of refusals.
    accepted: u64,
}

struct RunningServer {
    process: MeasuredProcess,
    door: BenchEndpoint,
}

impl RunningServer {
    fn server(&self) -> LoadedServer<'_> {
        LoadedServer {
            process: &self.process,
            door: &self.door,
        }
    }
}

impl<'a> RowBench<'a> {
    fn new(place: &'a BenchPaths, row: &'a BenchRow, tools: usize) -> anyhow::Result<Self> {
        let subject = row.subject(place, tools)?;
        let folder = tempfile::Builder::new()
            .prefix("weir-bench-")
            .tempdir_in(&place.scratch)?;
        let key = subject.key.clone();
        let mut bench = Self {
            place,
            row,
            subject,
            folder,
            key,
            answered: 0,
            accepted: 0,
        };
        if bench.subject.house.is_some() {
            // This also fills the cache of compiled plugins and records the shapes, as the first start of any Weir
            // does.
            let (running, _) = bench.start(&place.server_core, None)?;
            bench.key = bench
                .subject
                .house
                .as_ref()
                .map(|house| house.key("bench", KeyBreadth::Wide))
                .transpose()?;
            running.process.stop()?;
        }
        Ok(bench)
    }

    fn over_http(&mut self, effort: &BenchEffort) -> anyhow::Result<RowFigures> {
        let (running, starts) = self.start_often(effort)?;
        sleep(Duration::from_secs(1));
        let idle_bytes = running.process.memory();
        let idle_cpu_percent = match self.row.also.contains(&ExtraMeasurement::Idle) {
            true => Some(idle_cpu(&running.process, effort.idle_seconds)),
            false => None,
        };
        let question = self.subject.question.clone();
        let rounds = self.rounds(&running, &question, CONNECTIONS, effort)?;
        let many = match self.row.also.contains(&ExtraMeasurement::Million) {
            true => Some(self.many(&running, &question, effort)?),
            false => None,
        };
        let beyond_accepted_us = match self.row.way {
            CallMode::Refused => Some(self.beyond_accepted(&running, rounds[0].calls)?),
            CallMode::Http(_) | CallMode::Stdio => None,
        };
        // Still the answer that was asked for, after all that.
        self.ask(&running)?;
        running.process.stop()?;
        let mut figures = figures(self.row.name, &rounds, &starts, idle_bytes);
        figures.beyond_accepted_us = beyond_accepted_us;
        figures.many = many;
        figures.idle_cpu_percent = idle_cpu_percent;
        Ok(figures)
    }

    /// Measures refusals against accepted calls. `calls` are those of a whole round.
    fn beyond_accepted(
        &mut self,
        running: &RunningServer,
        calls: u64,
    ) -> anyhow::Result<FigureSpread> {
        let (refused, accepted) = (self.subject.question.clone(), self.row.accepted());
        let pressure = LoadPressure::unpaced(CONNECTIONS, calls / 4);
        let mut beyond = Vec::new();
        for _ in 0..turns::TURNS {
            let accepted = self.load(running, &accepted, pressure)?;
            self.accepted += accepted.calls;
            beyond.push(self.load(running, &refused, pressure)?.cpu_us() - accepted.cpu_us());
        }
        Ok(FigureSpread::from_values(beyond))
    }

    fn over_pipes(&mut self, effort: &BenchEffort) -> anyhow::Result<RowFigures> {
        let command = |bench: &Self| match (&bench.subject.house, &bench.key) {
            (Some(house), Some(key)) => house.stdio(key),
            _ => (bench.subject.start)(bench.place, 0),
        };
        let question = self.subject.question.clone();
        let mut starts = Vec::new();
        for _ in 1..effort.starts {
            let mut process =
                MeasuredProcess::start_piped(&command(self), &self.place.server_core)?;
            let pipes = PipeClient::open(&mut process, &question)?;
            starts.push(milliseconds(process.started));
            self.answered += 1;
            drop(pipes);
            process.stop()?;
        }
        let mut process = MeasuredProcess::start_piped(&command(self), &self.place.server_core)?;
        let mut pipes = PipeClient::open(&mut process, &question)?;
        starts.push(milliseconds(process.started));
        self.answered += 1;
        sleep(Duration::from_secs(1));
        let idle_bytes = process.memory();
        let window = CONNECTIONS as u64;
        let mut calls = 64;
        let mut tried = pipes.run(&process, window, calls)?;
        self.answered += calls;
        while tried.seconds < CALIBRATION {
            calls *= 4;
            tried = pipes.run(&process, window, calls)?;
            self.answered += calls;
        }
        let calls = (tried.rate() * effort.seconds) as u64 + 1;
        self.answered += calls * effort.rounds as u64;
        let rounds = (0..effort.rounds)
            .map(|_| pipes.run(&process, window, calls))
            .collect::<anyhow::Result<Vec<_>>>()?;
        drop(pipes);
        process.stop()?;
        Ok(figures(self.row.name, &rounds, &starts, idle_bytes))
    }

    /// Starts the server as often as is wanted, and returns the last one with the time that each start took.
    fn start_often(&mut self, effort: &BenchEffort) -> anyhow::Result<(RunningServer, Vec<f64>)> {
        let mut starts = Vec::new();
        for _ in 1..effort.starts {
            let (running, start_ms) = self.start(&self.place.server_core, None)?;
            starts.push(start_ms);
            running.process.stop()?;
        }
        let (running, start_ms) = self.start(&self.place.server_core, None)?;
        starts.push(start_ms);
        Ok((running, starts))
    }

    /// Starts the server, and returns it after its first good answer, with the time until then. `threads` are those
    /// of tokio's runtime, instead of one for each of `cores`.
    fn start(
        &mut self,
        cores: &str,
        threads: Option<usize>,
    ) -> anyhow::Result<(RunningServer, f64)> {
        let port = free_port()?;
        let mut command = match &self.subject.house {
            Some(house) => house.serve(port),
            None => (self.subject.start)(self.place, port),
        };
        if let Some(threads) = threads {
            command.env("TOKIO_WORKER_THREADS", threads.to_string());
        }
        let mut process =
            MeasuredProcess::start(&command, cores, &self.folder.path().join("server.log"))?;
        let url = format!("http://127.0.0.1:{port}{}", self.subject.path);
        let door = BenchEndpoint {
            url,
            key: self.key.clone(),
        };
        loop {
            let session = match self.row.era() {
                BenchEra::Session => door.open_session().map(Some),
                BenchEra::Modern | BenchEra::Stateless => Ok(None),
            };
            let answer =
                session.and_then(|session| self.subject.question.ask(&door, session.as_deref()));
            let error = match answer {
                Ok(_) => {
                    let start_ms = milliseconds(process.started);
                    self.answered += 1;
                    return Ok((RunningServer { process, door }, start_ms));
                }
                Err(error) => error,
            };
            let ended = process.ended();
            if ended.is_some() || process.started.elapsed() > START_MAX {
                let ended = ended.unwrap_or("still running".into());
                bail!(
                    "it does not answer ({error:#}; {ended}): {}",
                    process.log_tail()
                );
            }
            sleep(Duration::from_millis(1));
        }
    }

    fn ask(&mut self, running: &RunningServer) -> anyhow::Result<()> {
        let session = match self.row.era() {
            BenchEra::Session => Some(running.door.open_session()?),
            BenchEra::Modern | BenchEra::Stateless => None,
        };
        self.subject
            .question
            .ask(&running.door, session.as_deref())?;
        self.answered += 1;
        Ok(())
    }

    /// Warms up, and then runs the rounds that count.
    fn rounds(
        &mut self,
        running: &RunningServer,
        question: &BenchQuestion,
        connections: usize,
        effort: &BenchEffort,
    ) -> anyhow::Result<Vec<LoadOutcome>> {
        let mut calls = connections as u64;
        let pressure = |calls| LoadPressure::unpaced(connections, calls);
        let mut tried = self.load(running, question, pressure(calls))?;
        while tried.seconds < CALIBRATION {
            calls *= 4;
            tried = self.load(running, question, pressure(calls))?;
        }
        let calls = (tried.rate() * effort.seconds).max(connections as f64) as u64;
        let pressure = pressure(calls);
        (0..effort.rounds)
            .map(|_| self.load(running, question, pressure))
            .collect()
    }

    /// Measures memory before and after a great many calls.
    fn many(
        &mut self,
        running: &RunningServer,
        question: &BenchQuestion,
        effort: &BenchEffort,
    ) -> anyhow::Result<MemoryGrowth> {
        let before_bytes = running.process.memory();
        let pressure = LoadPressure::unpaced(CONNECTIONS, effort.many_calls);
        let calls = self.load(running, question, pressure)?.calls;
        Ok(MemoryGrowth {
            calls,
            before_bytes,
            after_bytes: running.process.memory(),
        })
    }

    fn load(
        &mut self,
        running: &RunningServer,
        question: &BenchQuestion,
        pressure: LoadPressure,
    ) -> anyhow::Result<LoadOutcome> {
        let generator = &self.place.binary("bench-load");
        let target = LoadTarget {
            servers: &[running.server()],
            generator,
            cores: &self.place.load_core,
            shares_its_core: false,
        };
        let loaded = pressure::run(&target, question, pressure);
        let loaded = loaded.with_context(|| format!("{} with {pressure:?}", self.row.name))?;
        if question.method == "tools/call" {
            self.answered += loaded.calls;
        }
        Ok(loaded)
    }

    /// Fails if the audit shows that the measurement does not count.
    fn end(&self, running: RunningServer) -> anyhow::Result<()> {
        running.process.stop()?;
        match self.hold_against_audit() {
            (_, Some(void)) => bail!("{}: {void}", self.row.name),
            _ => Ok(()),
        }
    }

    /// Checks that there are as many records as answers, and that the trail is whole. Otherwise it returns why the row
    /// is void.
    fn hold_against_audit(&self) -> (Option<AuditCounts>, Option<String>) {
        let Some(house) = &self.subject.house else {
            return (None, None);
        };
        let (recorded, ok) = match house.verify_audit() {
            Ok(counts) => counts,
            Err(error) => return (None, Some(format!("{error:#}"))),
        };
        let answered = self.answered;
        let ok_expected = if self.row.way == CallMode::Refused {
            self.accepted
        } else {
            answered
        };
        let void = (recorded != answered || ok != ok_expected).then(|| {
            format!("{answered} calls were answered, {recorded} are on record, {ok} of them as ok")
        });
        (
            Some(AuditCounts {
                answered,
                recorded,
                ok,
            }),
            void,
        )
    }
}

fn figures(row: &str, rounds: &[LoadOutcome], starts: &[f64], idle_bytes: u64) -> RowFigures {
    let spread =
        |value: fn(&LoadOutcome) -> f64| FigureSpread::from_values(rounds.iter().map(value));
    RowFigures {
        row: row.to_owned(),
        calls_per_second: spread(LoadOutcome::rate),
        calls_per_core_second: spread(|load| 1e6 / load.cpu_us()),
        cpu_us: spread(LoadOutcome::cpu_us),
        own_cpu_us: rounds
            .iter()
            .map(LoadOutcome::own_cpu_us)
            .collect::<Option<Vec<_>>>()
            .map(FigureSpread::from_values),
        p50_us: spread(|load| load.p50_us),
        p99_us: spread(|load| load.p99_us),
        answer_bytes: spread(|load| load.body_bytes as f64 / load.calls as f64).median,
        start_ms: FigureSpread::from_values(starts.iter().copied()),
        idle_bytes,
        idle_cpu_percent: None,
        many: None,
        threads: vec![],
        beyond_accepted_us: None,
        lists: Vec::new(),
        left_out: Vec::new(),
        audit: None,
        void: None,
    }
}

/// Returns the processor time of a server without callers, in percent of a core.
fn idle_cpu(process: &MeasuredProcess, seconds: f64) -> f64 {
    let (before, since) = (process.cpu(), Instant::now());
    sleep(Duration::from_secs_f64(seconds));
    100.0 * (process.cpu() - before) / since.elapsed().as_secs_f64()
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
