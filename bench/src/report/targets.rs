//! Checks the ratios, within one run, that Weir must reach.

use super::{Table, whole};
use crate::{
    measure::{
        CONNECTIONS, FigureSpread, ListFigures, RowFigures, ServerCores, ThreadFigures, TurnFigures,
    },
    rows::ComparedPart,
};

/// A bound, and on which side of it to be.
enum TargetBound {
    AtLeast(f64),
    AtMost(f64),
}

use TargetBound::{AtLeast, AtMost};

impl TargetBound {
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

struct RatioTarget {
    what: &'static str,
    unit: &'static str,
    must: TargetBound,
    aim: Option<TargetBound>,
    found: Option<TargetFigure>,
}

/// A figure, and which measurement it is from.
#[derive(Clone, Copy)]
enum TargetFigure {
    /// It is the median of the turns, or of their ratios.
    Turns(f64),
    /// A figure of one row, which is not compared with another.
    Row(f64),
}

impl TargetFigure {
    fn value(self) -> f64 {
        let (Self::Turns(value) | Self::Row(value)) = self;
        value
    }

    fn from(self) -> &'static str {
        match self {
            Self::Turns(_) => "turns",
            Self::Row(_) => "its row",
        }
    }
}

/// Returns a line for each target, even if it was not measured; none if nothing was measured.
pub(super) fn table(rows: &[RowFigures], turns: &[Vec<TurnFigures>]) -> Table {
    let head = ["target", "must", "aim", "found", "from", "met"]
        .map(str::to_owned)
        .to_vec();
    let mut targets = targets(&MeasuredRows { rows, turns });
    for target in &mut targets {
        target.found = target.found.filter(|found| found.value().is_finite());
    }
    if targets.iter().all(|target| target.found.is_none()) {
        return vec![head];
    }
    std::iter::once(head)
        .chain(targets.iter().map(RatioTarget::cells))
        .collect()
}

impl RatioTarget {
    fn cells(&self) -> Vec<String> {
        let aim = self
            .aim
            .as_ref()
            .map_or_else(|| "–".to_owned(), |aim| aim.say(self.unit));
        let mut cells = vec![self.what.to_owned(), self.must.say(self.unit), aim];
        let Some(found) = self.found else {
            cells.extend(["not measured", "–", "–"].map(str::to_owned));
            return cells;
        };
        let value = found.value();
        let met = match (&self.aim, self.must.met(value)) {
            (Some(aim), true) if aim.met(value) => "aim",
            (_, true) => "must",
            (_, false) => "NO",
        };
        let shown = if value >= 1000.0 {
            whole(value)
        } else {
            format!("{value:.2}")
        };
        cells.extend([
            format!("{shown}{}", self.unit),
            found.from().to_owned(),
            met.to_owned(),
        ]);
        cells
    }
}

#[rustfmt::skip]
fn targets(run: &MeasuredRows<'_>) -> Vec<RatioTarget> {
    let target = |what, unit, must, aim, found| RatioTarget { what, unit, must, aim, found };
    vec![
        target("in-process adapter, of the floor", " %", AtLeast(45.0), Some(AtLeast(55.0)), run.percent("weir-noop", "floor")),
        target("in-process adapter, by rmcp's bare echo", "×", AtLeast(1.8), Some(AtLeast(2.2)), run.times("weir-noop", "rmcp")),
        target("wasm adapter kept for the tenant, of the floor", " %", AtLeast(35.0), Some(AtLeast(45.0)), run.percent("weir-wasm", "floor")),
        target("wasm adapter kept for the tenant, by rmcp's bare echo", "×", AtLeast(1.2), Some(AtLeast(1.5)), run.times("weir-wasm", "rmcp")),
        target("wasm adapter fresh per call, of the floor", " %", AtLeast(16.0), Some(AtLeast(22.0)), run.percent("weir-wasm-fresh", "floor")),
        target("typed function in Rust, CPU by a collection's read", "×", AtMost(1.15), None, run.times("weir-wasm", "weir-function")),
        target("the same, fresh per call", "×", AtMost(1.15), None, run.times("weir-wasm-fresh", "weir-function-fresh")),
        target("upstream over HTTP, Weir's own CPU", " µs", AtMost(25.0), None, run.cpu("weir-upstream")),
        target("upstream over stdio, Weir's own CPU", " µs", AtMost(30.0), None, run.own_cpu("weir-upstream-stdio")),
        target("upstream over HTTP, p50 at one connection beyond the same asked directly", " ms", AtMost(0.15), None, run.latency_beyond("weir-upstream", "rmcp")),
        target("upstream over HTTP, calls per core-second by the best other proxy", "×", AtLeast(3.0), None, run.by_best("weir-upstream", &["rmcp-proxy", "fastmcp-proxy", "mcp-proxy"])),
        target("sql on SQLite, by Toolbox", "×", AtLeast(3.0), Some(AtLeast(4.0)), run.times("weir-sqlite", "toolbox-sqlite")),
        target("sql on PostgreSQL, by Toolbox", "×", AtLeast(2.0), Some(AtLeast(2.5)), run.times("weir-postgresql", "toolbox-postgresql")),
        target("sql on MariaDB, by Toolbox", "×", AtLeast(2.0), None, run.times("weir-mariadb", "toolbox-mariadb")),
        target("tools/list page of 100, by rmcp's list of 100", "×", AtLeast(3.0), Some(AtLeast(5.0)), run.lists(("weir-noop", 100), ("rmcp", 100))),
        target("tools/list page of 100 among 10,000, by among 100", "×", AtLeast(0.9), None, run.lists(("weir-noop", 10_000), ("weir-noop", 100))),
        target("tools/call with 10,000 tools, CPU by with 10", "×", AtMost(1.05), None, run.call_growth("weir-noop")),
        target("start to first answer, 10,000 tools", " ms", AtMost(400.0), None, run.list("weir-noop", 10_000).map(|list| TargetFigure::Row(list.start_ms))),
        target("start to first answer, one cached plugin", " ms", AtMost(100.0), None, run.row("weir-wasm").map(|row| TargetFigure::Row(row.start_ms.median))),
        target("p50 at one connection, wasm, by the floor", "×", AtMost(3.0), Some(AtMost(2.2)), run.latency_times("weir-wasm", "floor")),
        target("p50 of sessions, by stateless", "×", AtMost(1.3), None, run.latency_times("weir-noop-session", "weir-noop-stateless")),
        target("CPU of modern, by legacy", "×", AtMost(1.1), None, run.times("weir-noop-stateless", "weir-noop")),
        target("memory idle, one plugin", " MB", AtMost(40.0), None, run.row("weir-wasm").map(|row| TargetFigure::Row(row.idle_bytes as f64 / 1e6))),
        target("processor time idle, one small CSV", " % of a core", AtMost(0.1), None, run.row("weir-sheet").and_then(|row| row.idle_cpu_percent).map(TargetFigure::Row)),
        target("memory growth over a million calls, in-process", " MB", AtMost(5.0), None, run.growth("weir-noop")),
        target("memory growth over a million calls, wasm", " MB", AtMost(5.0), None, run.growth("weir-wasm")),
        target("refusing with all errors, CPU over the accepted path", " µs", AtMost(3.0), None, run.refusal()),
        target("CPU per call with two server threads, by one", "×", AtMost(1.15), None, run.two_threads("weir-noop", ServerCores::Own)),
        target("the same on both cores, which the generator shares", "×", AtMost(1.15), None, run.two_threads("weir-noop", ServerCores::Both)),
        target("there by two processes of one thread each", "×", AtMost(1.15), None, run.two_threads_by_processes("weir-noop")),
    ]
}

/// The rows that count.
struct MeasuredRows<'a> {
    rows: &'a [RowFigures],
    turns: &'a [Vec<TurnFigures>],
}

impl MeasuredRows<'_> {
    fn row(&self, name: &str) -> Option<&RowFigures> {
        self.rows
            .iter()
            .find(|row| row.row == name && row.void.is_none())
    }

    fn list(&self, name: &str, tools: usize) -> Option<&ListFigures> {
        self.row(name)?
            .lists
            .iter()
            .find(|list| list.tools == tools)
    }

    fn turns(&self, of: ComparedPart) -> Option<&TurnFigures> {
        self.turns.iter().flatten().find(|turns| turns.of == of)
    }

    /// Returns how many calls of the one take as much as one of the other.
    fn times(&self, name: &'static str, other: &'static str) -> Option<TargetFigure> {
        self.compared(ComparedPart::Calls(name), ComparedPart::Calls(other))
            .map(TargetFigure::Turns)
    }

    fn percent(&self, name: &'static str, other: &'static str) -> Option<TargetFigure> {
        Some(TargetFigure::Turns(
            100.0 * self.compared(ComparedPart::Calls(name), ComparedPart::Calls(other))?,
        ))
    }

    fn lists(
        &self,
        (name, tools): (&'static str, usize),
        (other, others): (&'static str, usize),
    ) -> Option<TargetFigure> {
        self.compared(
            ComparedPart::Lists(name, tools),
            ComparedPart::Lists(other, others),
        )
        .map(TargetFigure::Turns)
    }

    fn compared(&self, one: ComparedPart, other: ComparedPart) -> Option<f64> {
        by_turns(&self.turns(other)?.cpu_us, &self.turns(one)?.cpu_us)
    }

    /// Returns the median latency of successive calls, divided by that of another server.
    fn latency_times(&self, name: &'static str, other: &'static str) -> Option<TargetFigure> {
        let p50_us = |name| Some(&self.turns(ComparedPart::OneConnection(name))?.p50_us);
        by_turns(p50_us(name)?, p50_us(other)?).map(TargetFigure::Turns)
    }

    /// Returns the milliseconds by which the median latency is above that of another server.
    fn latency_beyond(&self, name: &'static str, other: &'static str) -> Option<TargetFigure> {
        let p50_us = |name| Some(&self.turns(ComparedPart::OneConnection(name))?.p50_us);
        let pairs = p50_us(name)?.iter().zip(p50_us(other)?);
        median(pairs.map(|(one, other)| (one - other) / 1e3)).map(TargetFigure::Turns)
    }

    /// Returns the processor time of a call: from the turns where the row has been in some.
    fn cpu(&self, name: &'static str) -> Option<TargetFigure> {
        match self.turns(ComparedPart::Calls(name)) {
            Some(turns) => median(turns.cpu_us.iter().copied()).map(TargetFigure::Turns),
            None => Some(TargetFigure::Row(self.row(name)?.cpu_us.median)),
        }
    }

    /// Returns the processor time of a call in the gateway, without that of the servers it has started.
    fn own_cpu(&self, name: &str) -> Option<TargetFigure> {
        Some(TargetFigure::Row(self.row(name)?.own_cpu_us?.median))
    }

    /// Returns how many times the calls per core-second of the best of the others are reached.
    fn by_best(&self, name: &'static str, others: &[&'static str]) -> Option<TargetFigure> {
        let times = others.iter().filter_map(|other| self.times(name, other));
        times.min_by(|one, other| one.value().total_cmp(&other.value()))
    }

    fn call_growth(&self, name: &str) -> Option<TargetFigure> {
        let (many, few) = (self.list(name, 10_000)?, self.list(name, 10)?);
        by_turns(&many.call_cpu_us, &few.call_cpu_us).map(TargetFigure::Turns)
    }

    fn growth(&self, name: &str) -> Option<TargetFigure> {
        let many = self.row(name)?.many?;
        Some(TargetFigure::Row(
            (many.after_bytes as f64 - many.before_bytes as f64) / 1e6,
        ))
    }

    fn refusal(&self) -> Option<TargetFigure> {
        Some(TargetFigure::Turns(
            self.row("weir-noop-refused")?.beyond_accepted_us?.median,
        ))
    }

    fn two_threads(&self, name: &str, cores: ServerCores) -> Option<TargetFigure> {
        let threads = self.threads(name, cores)?;
        by_turns(&threads.two_threads_cpu_us, &threads.one_thread_cpu_us).map(TargetFigure::Turns)
    }

    fn two_threads_by_processes(&self, name: &str) -> Option<TargetFigure> {
        let threads = self.threads(name, ServerCores::Both)?;
        by_turns(&threads.two_threads_cpu_us, &threads.two_processes_cpu_us)
            .map(TargetFigure::Turns)
    }

    fn threads(&self, name: &str, cores: ServerCores) -> Option<&ThreadFigures> {
        self.row(name)?
            .threads
            .iter()
            .find(|at| at.cores == cores && at.connections == CONNECTIONS)
    }
}

/// Returns the median of the turns' ratios.
pub(super) fn by_turns(figures: &[f64], others: &[f64]) -> Option<f64> {
    median(figures.iter().zip(others).map(|(one, other)| one / other))
}

fn median(figures: impl Iterator<Item = f64>) -> Option<f64> {
    let figures: Vec<f64> = figures.collect();
    (!figures.is_empty()).then(|| FigureSpread::from_values(figures).median)
}
