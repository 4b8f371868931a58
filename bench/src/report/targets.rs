//! Checks the ratios, within one run, that Weir must reach.

use super::{Table, whole};
use crate::{
    measure::{CONNECTIONS, Cores, Figures, List, Spread, Threads, Turns},
    rows::Compared,
};

/// A bound, and on which side of it to be.
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

impl Bound {
    fn met(&self, value: f64) -> bool {
        match self {
            AtLeast(bound) => value >= *bound,
            AtMost(bound) => value <= *bound,
        }
    }

    fn say(&self, unit: &str) -> String {
        match self {
            AtLeast(bound) => format!("≥ {bound}{unit}"),
            AtMost(bound) => format!("≤ {bound}{unit}"),
        }
    }
}

struct Target {
    what: &'static str,
    unit: &'static str,
    must: Bound,
    aim: Option<Bound>,
    found: Option<f64>,
}

pub(super) fn table(rows: &[Figures], turns: &[Vec<Turns>]) -> Table {
    let head = ["target", "must", "aim", "found", "met"].map(str::to_owned).to_vec();
    let lines = targets(&Run { rows, turns }).into_iter().filter_map(|target| {
        let found = target.found.filter(|found| found.is_finite())?;
        let met = match (&target.aim, target.must.met(found)) {
            (Some(aim), true) if aim.met(found) => "aim",
            (_, true) => "must",
            (_, false) => "NO",
        };
        let aim = target.aim.as_ref().map_or_else(|| "–".to_owned(), |aim| aim.say(target.unit));
        let shown = if found >= 1000.0 { whole(found) } else { format!("{found:.2}") };
        Some(vec![
            target.what.to_owned(),
            target.must.say(target.unit),
            aim,
            format!("{shown}{}", target.unit),
            met.to_owned(),
        ])
    });
    std::iter::once(head).chain(lines).collect()
}

#[rustfmt::skip]
fn targets(run: &Run<'_>) -> Vec<Target> {
    let target = |what, unit, must, aim, found| Target { what, unit, must, aim, found };
    vec![
        target("in-process adapter, of the floor", " %", AtLeast(45.0), Some(AtLeast(55.0)), run.percent("weir-noop", "floor")),
        target("in-process adapter, by rmcp's bare echo", "×", AtLeast(1.8), Some(AtLeast(2.2)), run.times("weir-noop", "rmcp")),
        target("wasm adapter kept for the tenant, of the floor", " %", AtLeast(35.0), Some(AtLeast(45.0)), run.percent("weir-wasm", "floor")),
        target("wasm adapter kept for the tenant, by rmcp's bare echo", "×", AtLeast(1.2), Some(AtLeast(1.5)), run.times("weir-wasm", "rmcp")),
        target("wasm adapter fresh per call, of the floor", " %", AtLeast(16.0), Some(AtLeast(22.0)), run.percent("weir-wasm-fresh", "floor")),
        target("typed function in Rust, CPU by a collection's read", "×", AtMost(1.15), None, run.times("weir-wasm", "weir-function")),
        target("the same, fresh per call", "×", AtMost(1.15), None, run.times("weir-wasm-fresh", "weir-function-fresh")),
        target("upstream over HTTP, Weir's own CPU", " µs", AtMost(25.0), None, run.row("weir-upstream").map(|row| row.cpu_us.median)),
        target("upstream over stdio, CPU beyond the same asked directly", " µs", AtMost(30.0), None, run.beyond("weir-upstream-stdio", "rmcp-stdio", |row| row.cpu_us.median)),
        target("upstream over HTTP, p50 at one connection beyond the same asked directly", " ms", AtMost(0.15), None, run.beyond("weir-upstream", "rmcp", |row| row.one_connection.p50_us / 1e3)),
        target("upstream over HTTP, calls per core-second by the best other aggregator", "×", AtLeast(3.0), None, run.by_best("weir-upstream", &["rmcp-proxy", "fastmcp-proxy", "mcp-proxy", "contextforge"])),
        target("sql on SQLite, by Toolbox", "×", AtLeast(3.0), Some(AtLeast(4.0)), run.times("weir-sqlite", "toolbox-sqlite")),
        target("sql on PostgreSQL, by Toolbox", "×", AtLeast(2.0), Some(AtLeast(2.5)), run.times("weir-postgresql", "toolbox-postgresql")),
        target("tools/list page of 100, by rmcp's list of 100", "×", AtLeast(3.0), Some(AtLeast(5.0)), run.lists(("weir-noop", 100), ("rmcp", 100))),
        target("tools/list page of 100 among 10,000, by among 100", "×", AtLeast(0.9), None, run.lists(("weir-noop", 10_000), ("weir-noop", 100))),
        target("tools/call with 10,000 tools, CPU by with 10", "×", AtMost(1.05), None, run.call_growth("weir-noop")),
        target("start to first answer, 10,000 tools", " ms", AtMost(400.0), None, run.list("weir-noop", 10_000).map(|list| list.start_ms)),
        target("start to first answer, one cached plugin", " ms", AtMost(100.0), None, run.row("weir-wasm").map(|row| row.start_ms.median)),
        target("p50 at one connection, wasm, by the floor", "×", AtMost(3.0), Some(AtMost(2.2)), run.alone("weir-wasm", "floor")),
        target("p50 of sessions, by stateless", "×", AtMost(1.3), None, run.alone("weir-noop-session", "weir-noop-stateless")),
        target("CPU of modern, by legacy", "×", AtMost(1.1), None, run.times("weir-noop-stateless", "weir-noop")),
        target("memory idle, one plugin", " MB", AtMost(40.0), None, run.row("weir-wasm").map(|row| row.idle_bytes as f64 / 1e6)),
        target("memory growth over a million calls, in-process", " MB", AtMost(5.0), None, run.growth("weir-noop")),
        target("memory growth over a million calls, wasm", " MB", AtMost(5.0), None, run.growth("weir-wasm")),
        target("refusing with all errors, CPU over the accepted path", " µs", AtMost(3.0), None, run.refusal()),
        target("CPU per call with two server threads, by one", "×", AtMost(1.15), None, run.two_threads("weir-noop", Cores::Own)),
        target("the same on both cores, which the generator shares", "×", AtMost(1.15), None, run.two_threads("weir-noop", Cores::Both)),
        target("there by two processes of one thread each", "×", AtMost(1.15), None, run.two_threads_by_processes("weir-noop")),
    ]
}

/// The rows that count.
struct Run<'a> {
    rows: &'a [Figures],
    turns: &'a [Vec<Turns>],
}

impl Run<'_> {
    fn row(&self, name: &str) -> Option<&Figures> {
        self.rows.iter().find(|row| row.row == name && row.void.is_none())
    }

    fn list(&self, name: &str, tools: usize) -> Option<&List> {
        self.row(name)?.lists.iter().find(|list| list.tools == tools)
    }

    /// Returns how many calls of the one take as much as one of the other.
    fn times(&self, name: &'static str, other: &'static str) -> Option<f64> {
        self.compared(Compared::Calls(name), Compared::Calls(other))
    }

    fn lists(&self, (name, tools): (&'static str, usize), (other, others): (&'static str, usize)) -> Option<f64> {
        self.compared(Compared::Lists(name, tools), Compared::Lists(other, others))
    }

    fn compared(&self, one: Compared, other: Compared) -> Option<f64> {
        let find = |of| self.turns.iter().flatten().find(|turns| turns.of == of);
        Some(by_turns(&find(other)?.cpu_us, &find(one)?.cpu_us))
    }

    fn percent(&self, name: &'static str, other: &'static str) -> Option<f64> {
        Some(100.0 * self.times(name, other)?)
    }

    fn alone(&self, name: &str, other: &str) -> Option<f64> {
        Some(self.row(name)?.one_connection.p50_us / self.row(other)?.one_connection.p50_us)
    }

    /// Returns what a row takes beyond another one.
    fn beyond(&self, name: &str, other: &str, value: fn(&Figures) -> f64) -> Option<f64> {
        Some(value(self.row(name)?) - value(self.row(other)?))
    }

    /// Returns how many times the calls per core-second of the best of the others are reached: in turns, where both were
    /// measured so.
    fn by_best(&self, name: &'static str, others: &[&'static str]) -> Option<f64> {
        let calls = |row: &Figures| row.calls_per_core_second.median;
        let by_rows = |other| Some(calls(self.row(name)?) / calls(self.row(other)?));
        let times = others.iter().filter_map(|other| self.times(name, other).or_else(|| by_rows(*other)));
        times.min_by(f64::total_cmp)
    }

    fn call_growth(&self, name: &str) -> Option<f64> {
        Some(by_turns(&self.list(name, 10_000)?.call_cpu_us, &self.list(name, 10)?.call_cpu_us))
    }

    fn growth(&self, name: &str) -> Option<f64> {
        let many = self.row(name)?.many?;
        Some((many.after_bytes as f64 - many.before_bytes as f64) / 1e6)
    }

    fn refusal(&self) -> Option<f64> {
        Some(self.row("weir-noop-refused")?.beyond_accepted_us?.median)
    }

    fn two_threads(&self, name: &str, cores: Cores) -> Option<f64> {
        let threads = self.threads(name, cores)?;
        Some(by_turns(&threads.two_threads_cpu_us, &threads.one_thread_cpu_us))
    }

    fn two_threads_by_processes(&self, name: &str) -> Option<f64> {
        let threads = self.threads(name, Cores::Both)?;
        Some(by_turns(&threads.two_threads_cpu_us, &threads.two_processes_cpu_us))
    }

    fn threads(&self, name: &str, cores: Cores) -> Option<&Threads> {
        self.row(name)?.threads.iter().find(|at| at.cores == cores && at.connections == CONNECTIONS)
    }
}

/// Returns the median of the turns' ratios.
pub(super) fn by_turns(cpu_us: &[f64], others: &[f64]) -> f64 {
    Spread::of(cpu_us.iter().zip(others).map(|(cpu, other)| cpu / other)).median
}
