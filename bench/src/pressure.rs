//! One load on a server: `bench-load` on the other core, with a given number of calls.
//!
//! A number and not a time: whoever stops at a time cuts calls off, and no audit could be held against the count.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use weir_bench::load::{Plan, Report};

use crate::{
    process::Process,
    wire::{Door, Era, Question},
};

/// How hard one load presses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pressure {
    pub(crate) connections: usize,
    pub(crate) calls: u64,
    /// Calls a second, over all connections; without it as fast as answers come.
    pub(crate) rate: Option<u64>,
}

/// What one load came to.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) body_bytes: u64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

impl Loaded {
    pub(crate) fn rate(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.calls as f64
    }
}

pub(crate) struct Target<'a> {
    pub(crate) process: &'a Process,
    pub(crate) door: &'a Door,
    pub(crate) generator: &'a Path,
    /// Where the generator runs.
    pub(crate) cores: &'a str,
    /// The server runs there as well.
    pub(crate) shares_its_core: bool,
}

/// Runs one load to its end. Every call must have been answered.
pub(crate) fn run(target: &Target<'_>, question: &Question, pressure: Pressure) -> anyhow::Result<Loaded> {
    let (address, path) = target.door.parts()?;
    let headers = |_| {
        let session = match question.era {
            Era::Session => Some(target.door.open_session()?),
            Era::Modern | Era::Stateless => None,
        };
        Ok(question.headers(target.door, session.as_deref()))
    };
    let connections: Vec<_> = (0..pressure.connections).map(headers).collect::<anyhow::Result<_>>()?;
    let Pressure { calls, rate, .. } = pressure;
    let shares_its_core = target.shares_its_core;
    let plan = Plan { address, path, connections, body: question.body(), calls, rate, shares_its_core };
    let cpu = target.process.cpu();
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
    let cpu_seconds = target.process.cpu() - cpu;
    if !output.status.success() {
        bail!("the generator: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let report: Report = serde_json::from_slice(&output.stdout).context("the generator's report")?;
    let Report { calls, seconds, body_bytes, p50_us, p99_us } = report;
    Ok(Loaded { calls, seconds, cpu_seconds, body_bytes, p50_us, p99_us })
}
