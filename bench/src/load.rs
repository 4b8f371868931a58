//! The generator: h2load on the other core, a given number of calls, each answer's time written down.
//!
//! A number and not a time: whoever stops at a time cuts calls off, and no audit could be held against the count.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, bail};

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
    /// For what the generator reads and writes.
    pub(crate) folder: &'a Path,
    /// Where the generator runs.
    pub(crate) cores: &'a str,
}

/// Runs one load to its end. Every call must have been answered.
pub(crate) fn run(target: &Target<'_>, question: &Question, pressure: Pressure) -> anyhow::Result<Loaded> {
    // h2load sends the same headers on all its connections: where each has its own session, each has its own h2load.
    let sessions: Vec<Option<String>> = match question.era {
        Era::Session => {
            let open = |_| target.door.open_session().map(Some);
            (0..pressure.connections).map(open).collect::<anyhow::Result<_>>()?
        }
        Era::Modern | Era::Stateless => vec![None],
    };
    let share = Pressure {
        connections: pressure.connections / sessions.len(),
        calls: pressure.calls.div_ceil(sessions.len() as u64),
        rate: pressure.rate.map(|rate| rate / sessions.len() as u64),
    };
    let body = target.folder.join("body.json");
    fs::write(&body, question.body())?;
    let cpu = target.process.cpu();
    let began = Instant::now();
    let mut running = Vec::new();
    for (number, session) in sessions.iter().enumerate() {
        let log = target.folder.join(format!("times-{number}.tsv"));
        let _ = fs::remove_file(&log);
        let headers = question.headers(target.door, session.as_deref());
        let child = h2load(target, &headers, &body, &log, share).spawn().context("h2load cannot be run")?;
        running.push((child, log));
    }
    let mut reports = Vec::new();
    let mut times: Vec<u32> = Vec::new();
    for (child, log) in running {
        let output = child.wait_with_output()?;
        reports.push(Report::read(&String::from_utf8_lossy(&output.stdout))?);
        // Written by h2load as it goes: start, status, microseconds.
        let text = fs::read_to_string(&log)?;
        times.extend(text.lines().filter_map(|line| line.split('\t').nth(2)?.parse::<u32>().ok()));
    }
    let elapsed = began.elapsed().as_secs_f64();
    let cpu_seconds = target.process.cpu() - cpu;
    let calls: u64 = reports.iter().map(|report| report.succeeded).sum();
    let lost: u64 = reports.iter().map(|report| report.lost).sum();
    if lost > 0 || times.is_empty() {
        bail!("{lost} calls were not answered, {calls} were");
    }
    let (p50_us, p99_us) = quantiles(&mut times);
    Ok(Loaded {
        calls,
        // h2load's own figure leaves out its start; several of them began one after the other.
        seconds: if reports.len() == 1 { reports[0].seconds } else { elapsed },
        cpu_seconds,
        body_bytes: reports.iter().map(|report| report.body_bytes).sum(),
        p50_us,
        p99_us,
    })
}

/// The median and the 99th percentile.
pub(crate) fn quantiles(times: &mut [u32]) -> (f64, f64) {
    times.sort_unstable();
    let last = times.len().saturating_sub(1) as f64;
    let quantile = |share: f64| times.get((last * share) as usize).copied().map_or(f64::NAN, f64::from);
    (quantile(0.50), quantile(0.99))
}

fn h2load(target: &Target<'_>, headers: &[(String, String)], body: &Path, log: &Path, pressure: Pressure) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", target.cores, "h2load"]);
    let connections = pressure.connections as u64;
    // In equal parts: each connection makes the same number of calls.
    let calls = pressure.calls.div_ceil(connections) * connections;
    command.args(["--h1", "-t1", "-N", "60"]);
    command.args([format!("-c{connections}"), format!("-n{calls}")]);
    if let Some(rate) = pressure.rate {
        command.arg(format!("--rps={}", rate as f64 / connections as f64));
    }
    for (name, value) in headers {
        command.arg("-H").arg(format!("{name}: {value}"));
    }
    command.arg("-d").arg(body).arg(format!("--log-file={}", log.display())).arg(&target.door.url);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// What h2load prints at its end.
struct Report {
    seconds: f64,
    succeeded: u64,
    lost: u64,
    body_bytes: u64,
}

impl Report {
    fn read(text: &str) -> anyhow::Result<Self> {
        let found = || {
            let line = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
            let seconds = duration(line("finished in ")?.split(',').next()?)?;
            let number = |part: &str| part.split_whitespace().next()?.parse::<u64>().ok();
            let requests: Vec<u64> = line("requests: ")?.split(',').filter_map(number).collect();
            let [total, _started, _done, succeeded, ..] = requests[..] else { return None };
            let bytes = line("traffic: ")?.rsplit_once('(')?.1.strip_suffix(") data")?.parse().ok()?;
            Some(Self { seconds, succeeded, lost: total - succeeded, body_bytes: bytes })
        };
        found().with_context(|| format!("h2load said something new:\n{text}"))
    }
}

/// `1.25s`, `310.20ms`, `900us`.
fn duration(text: &str) -> Option<f64> {
    let units = [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)];
    let (unit, factor) = units.into_iter().find(|(unit, _)| text.ends_with(unit))?;
    Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_h2load_is_read() {
        let text = "finished in 310.20ms, 16120.10 req/s, 9.31MB/s\n\
            requests: 5000 total, 5000 started, 5000 done, 4999 succeeded, 1 failed, 0 errored, 0 timeout\n\
            status codes: 4999 2xx, 0 3xx, 1 4xx, 0 5xx\n\
            traffic: 2.89MB (3030000) total, 0.55MB (580000) headers (space savings 0.00%), 2.31MB (2425000) data\n";
        let report = Report::read(text).expect("a report");
        assert_eq!((report.succeeded, report.lost, report.body_bytes), (4999, 1, 2_425_000));
        assert!((report.seconds - 0.3102).abs() < 1e-9);
    }
}
