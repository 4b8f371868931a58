//! Measures servers in turns, so that compared servers are measured in the same moments.

use serde::{Deserialize, Serialize};

use super::{BenchEffort, CONNECTIONS, RowBench, RunningServer};
use crate::{
    place::BenchPaths,
    pressure::{LoadOutcome, LoadPressure},
    rows::ComparedPart,
    wire::BenchQuestion,
};

/// The cost of a request, measured at the same moments as others: a machine's speed, which changes within minutes,
/// then affects all of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TurnFigures {
    pub(crate) of: ComparedPart,
    /// One figure for each turn, in the order of the turns.
    pub(crate) cpu_us: Vec<f64>,
    /// The median of each turn's calls.
    #[serde(default)]
    pub(crate) p50_us: Vec<f64>,
}

pub(super) const TURNS: usize = 60;

/// A running server, and its question.
pub(super) struct TurnTarget<'a> {
    pub(super) bench: RowBench<'a>,
    pub(super) running: RunningServer,
    pub(super) question: BenchQuestion,
    pub(super) connections: usize,
}

/// Measures servers in turns. All are up and have the same core; one at a time is asked.
pub(crate) fn in_turns(
    place: &BenchPaths,
    compared: &[ComparedPart],
    effort: &BenchEffort,
) -> anyhow::Result<Vec<TurnFigures>> {
    let mut up = Vec::new();
    for of in compared {
        let row = of.row();
        let (tools, question, connections) = match *of {
            ComparedPart::Calls(_) => (1, None, CONNECTIONS),
            ComparedPart::OneConnection(_) => (1, None, 1),
            ComparedPart::Lists(_, tools) => (tools, Some(row.listing()), CONNECTIONS),
        };
        let mut bench = RowBench::new(place, row, tools)?;
        let (running, _) = bench.start(&place.server_core, None)?;
        let question = question.unwrap_or_else(|| bench.subject.question.clone());
        up.push(TurnTarget {
            bench,
            running,
            question,
            connections,
        });
    }
    let turns = turns(&mut up, effort)?;
    let ended = up
        .into_iter()
        .zip(compared)
        .zip(turns)
        .map(|((asked, of), loads)| {
            asked.bench.end(asked.running)?;
            let p50_us = loads.iter().map(|load| load.p50_us).collect();
            Ok(TurnFigures {
                of: *of,
                cpu_us: loads.iter().map(LoadOutcome::cpu_us).collect(),
                p50_us,
            })
        });
    ended.collect()
}

/// Returns the outcome of each server's question, turn by turn.
pub(super) fn turns(
    up: &mut [TurnTarget<'_>],
    effort: &BenchEffort,
) -> anyhow::Result<Vec<Vec<LoadOutcome>>> {
    let once = BenchEffort {
        rounds: 1,
        seconds: effort.seconds / 4.0,
        ..*effort
    };
    let mut calls = Vec::new();
    for TurnTarget {
        bench,
        running,
        question,
        connections,
    } in &mut *up
    {
        calls.push(bench.rounds(running, question, *connections, &once)?[0].calls);
    }
    let mut loads = vec![Vec::new(); up.len()];
    for turn in 0..TURNS {
        for at in 0..up.len() {
            // Forth and back, so that no server always comes first.
            let at = if turn % 2 == 0 { at } else { up.len() - 1 - at };
            let TurnTarget {
                bench,
                running,
                question,
                connections,
            } = &mut up[at];
            let pressure = LoadPressure::unpaced(*connections, calls[at]);
            loads[at].push(bench.load(running, question, pressure)?);
        }
    }
    Ok(loads)
}
