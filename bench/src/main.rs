//! `weir-bench`: runs the rows, one server at a time, and writes the results.
//!
//! Started by `cargo xtask bench`, which builds and installs everything it needs.
#![expect(
    clippy::print_stdout,
    reason = "a terminal tool: standard output is what it is for"
)]

mod cluster;
mod consoles;
mod instructions;
mod isolation;
mod large;
mod measure;
mod place;
mod rows;
mod scale;

mod contextforge;
mod mariadb;
mod postgres;
mod pressure;
mod process;
mod stdio;
mod weir;
mod wire;

mod machine;
mod report;

use std::path::PathBuf;

use clap::Parser;

use machine::BenchMachine;
use measure::BenchEffort;
use place::BenchPaths;
use report::{BenchPart, BenchReport};
use rows::{COMPARED, ROWS};

/// Weir measured against its peers.
#[derive(Parser)]
struct BenchArgs {
    /// Only rows whose names start with this; several with commas. `isolation`: others next to a hostile guest; `scale`: what
    /// one more agent, view, tool and key cost among very many; `sheet`: collections of up to five million rows; `console`:
    /// when it can be used, and what three consoles cost; `cluster`: nodes compared with a single process, changes, a
    /// fail-over, growth
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    only: Vec<String>,
    /// The length of one round
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Calls of the memory measurement
    #[arg(long, default_value_t = 1_000_000)]
    many_calls: u64,
    /// Short rounds, for a look: the figures are rough
    #[arg(long)]
    quick: bool,
    /// The folder of the page and the JSON file; without it nothing is written
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Counts the instructions of a request instead, and holds them against this baseline
    #[arg(long, value_name = "FILE")]
    instructions: Option<PathBuf>,
}

impl BenchArgs {
    /// Returns `true` if a row or a part is to be measured.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty()
            || self
                .only
                .iter()
                .any(|start| name.starts_with(start.as_str()))
    }
}

fn main() -> anyhow::Result<()> {
    let options = BenchArgs::parse();
    let effort = BenchEffort {
        rounds: if options.quick {
            1
        } else {
            options.rounds.max(1)
        },
        seconds: if options.quick { 1.0 } else { options.seconds },
        starts: if options.quick { 2 } else { 5 },
        idle_seconds: if options.quick { 5.0 } else { 60.0 },
        many_calls: if options.quick {
            100_000
        } else {
            options.many_calls
        },
    };
    let mut place = BenchPaths::find()?;
    if let Some(baseline) = &options.instructions {
        return instructions::check(&place, baseline);
    }
    place.keep_off_the_server_core()?;
    let mut report = BenchReport::new(BenchMachine::look(&place), effort);
    // A long run is not to fail at its end.
    options
        .write
        .as_deref()
        .map_or(Ok(()), std::fs::create_dir_all)?;
    let wanted = |name: &str| options.wants(name);
    for row in ROWS.iter().filter(|row| wanted(row.name)) {
        let started = row
            .database()
            .map_or(Ok(()), |database| place.start_database(database));
        let measured = started.and_then(|()| measure::row(&place, row, &effort));
        match measured {
            Ok(figures) => report.add(figures),
            Err(error) => report.skip(row.name, format!("{error:#}")),
        }
    }
    for group in COMPARED {
        let compared: Vec<_> = group
            .iter()
            .filter(|of| report.has(of.row().name))
            .copied()
            .collect();
        if compared.len() > 1 {
            match measure::in_turns(&place, &compared, &effort) {
                Ok(turns) => report.turns(turns),
                Err(error) => report.skip(&compared[0].to_string(), format!("in turns: {error:#}")),
            }
        }
    }
    if !report.is_empty() {
        report.print();
        options
            .write
            .as_deref()
            .map_or(Ok(()), |folder| report.write(folder))?;
    }
    measure_parts(&mut place, &options, &effort)
}

/// Measures what has its own page.
fn measure_parts(
    place: &mut BenchPaths,
    options: &BenchArgs,
    effort: &BenchEffort,
) -> anyhow::Result<()> {
    let wanted = |name: &str| options.wants(name);
    let folder = options.write.as_deref();
    if wanted("isolation") {
        let isolation = isolation::measure(place, BenchMachine::look(place), effort)?;
        isolation.publish(folder)?;
    }
    if wanted("scale") {
        let scale = scale::measure(place, BenchMachine::look(place))?;
        scale.publish(folder)?;
    }
    if wanted("sheet") {
        let large = large::measure(place, BenchMachine::look(place))?;
        large.publish(folder)?;
    }
    if wanted("console") {
        let consoles = consoles::measure(place, BenchMachine::look(place), effort)?;
        consoles.publish(folder)?;
    }
    if wanted("cluster") {
        let machine = BenchMachine::look(place);
        let cluster = cluster::measure(place, machine, effort)?;
        cluster.publish(folder)?;
    }
    Ok(())
}
