//! Puts one load on a server, or on several at once: `bench-load` on the other core, with a given number of calls.
//!
//! A number and not a time: a run that stops at a given time cuts calls off, so an audit could not be compared with the count.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use weir_bench::load::{GeneratorConnection, GeneratorPlan, GeneratorReport};

use crate::{
    process::MeasuredProcess,
    wire::{BenchEndpoint, BenchEra, BenchQuestion},
};

/// The strength of one load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoadPressure {
    pub(crate) connections: usize,
    pub(crate) calls: u64,
    /// Calls a second, over all connections; without it as fast as answers come.
    pub(crate) rate: Option<u64>,
}

impl LoadPressure {
    /// Returns calls that are made as fast as answers come.
    pub(crate) fn unpaced(connections: usize, calls: u64) -> Self {
        Self {
            connections,
            calls,
            rate: None,
        }
    }
}

/// The outcome of one load.
#[derive(Clone, Debug)]
pub(crate) struct LoadOutcome {
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    /// The processor time of only the server's first process, if it has started others.
    pub(crate) own_cpu_seconds: Option<f64>,
    pub(crate) body_bytes: u64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl LoadOutcome {
    pub(crate) fn rate(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.calls as f64
    }

    pub(crate) fn own_cpu_us(&self) -> Option<f64> {
        Some(self.own_cpu_seconds? * 1e6 / self.calls as f64)
    }
}

/// A server, and the way in.
#[derive(Clone, Copy)]
pub(crate) struct LoadedServer<'a> {
    pub(crate) process: &'a MeasuredProcess,
    pub(crate) door: &'a BenchEndpoint,
}

pub(crate) struct LoadTarget<'a> {
    /// Each is asked over an equal part of the connections.
    pub(crate) servers: &'a [LoadedServer<'a>],
    pub(crate) generator: &'a Path,
    /// The cores that the generator runs on.
    pub(crate) cores: &'a str,
    /// The server runs there as well.
    pub(crate) shares_its_core: bool,
}

/// Runs one load to its end. Every call must have been answered.
pub(crate) fn run(
    target: &LoadTarget<'_>,
    question: &BenchQuestion,
    pressure: LoadPressure,
) -> anyhow::Result<LoadOutcome> {
    let connection = |server: &LoadedServer<'_>| {
        let session = match question.era {
            BenchEra::Session => Some(server.door.open_session()?),
            BenchEra::Modern | BenchEra::Stateless => None,
        };
        Ok(GeneratorConnection {
            address: server.door.parts()?.0,
            headers: question.headers(server.door, session.as_deref()),
        })
    };
    let connections = target
        .servers
        .iter()
        .cycle()
        .take(pressure.connections)
        .map(connection);
    let plan = GeneratorPlan {
        path: target.servers[0].door.parts()?.1,
        connections: connections.collect::<anyhow::Result<_>>()?,
        body: question.body(),
        calls: pressure.calls,
        rate: pressure.rate,
        shares_its_core: target.shares_its_core,
    };
    let cpu = || -> f64 {
        target
            .servers
            .iter()
            .map(|server| server.process.cpu())
            .sum()
    };
    let own_cpu = || match target.servers {
        [alone] => alone.process.own_cpu(),
        _ => None,
    };
    let (before, own_before) = (cpu(), own_cpu());
    let mut generator = Command::new("taskset")
        .args(["-c", target.cores])
        .arg(target.generator)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("taskset cannot be run")?;
    let mut to = generator.stdin.take().context("stdin is a pipe")?;
    to.write_all(serde_json::to_string(&plan)?.as_bytes())?;
    drop(to);
    let output = generator.wait_with_output()?;
    let cpu_seconds = cpu() - before;
    let own_cpu_seconds = own_cpu()
        .zip(own_before)
        .map(|(after, before)| after - before);
    if !output.status.success() {
        bail!(
            "the generator: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let report: GeneratorReport =
        serde_json::from_slice(&output.stdout).context("the generator's report")?;
    let GeneratorReport {
        calls,
        seconds,
        body_bytes,
        p50_us,
        p99_us,
    } = report;
    Ok(LoadOutcome {
        calls,
        seconds,
        cpu_seconds,
        own_cpu_seconds,
        body_bytes,
        p50_us,
        p99_us,
    })
}
