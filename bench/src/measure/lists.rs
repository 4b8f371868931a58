//! Measures `tools/list`, and with it `tools/call`, with few and with many tools.

use serde::{Deserialize, Serialize};

use super::{
    BenchEffort, CONNECTIONS, FigureSpread, RowBench,
    turns::{TurnTarget, turns},
};
use crate::{place::BenchPaths, pressure::LoadOutcome, rows::BenchRow};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ListFigures {
    pub(crate) tools: usize,
    pub(crate) page: usize,
    pub(crate) list_bytes: f64,
    pub(crate) lists_per_core_second: f64,
    pub(crate) list_p50_us: f64,
    /// One figure for each turn.
    pub(crate) call_cpu_us: Vec<f64>,
    pub(crate) start_ms: f64,
}

/// Measures one server for each size, and reports why one could not be measured. Their calls are measured in turns, so
/// that what the machine does meanwhile affects all of them.
pub(super) fn measure(
    place: &BenchPaths,
    row: &BenchRow,
    sizes: &[usize],
    effort: &BenchEffort,
) -> (Vec<ListFigures>, Vec<String>) {
    let (mut up, mut lists, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for tools in sizes {
        match list(place, row, *tools, effort) {
            Ok((asked, list)) => {
                up.push(asked);
                lists.push(list);
            }
            Err(error) => left_out.push(format!("with {tools} tools: {error:#}")),
        }
    }
    match turns(&mut up, effort) {
        Ok(turns) => {
            for (list, loads) in lists.iter_mut().zip(turns) {
                list.call_cpu_us = loads.iter().map(LoadOutcome::cpu_us).collect();
            }
        }
        Err(error) => left_out.push(format!("calls with {sizes:?} tools: {error:#}")),
    }
    for (asked, list) in up.into_iter().zip(&mut lists) {
        if let Err(error) = asked.bench.end(asked.running) {
            left_out.push(format!("calls with {} tools: {error:#}", list.tools));
            list.call_cpu_us.clear();
        }
    }
    (lists, left_out)
}

/// Measures a listing with the given number of tools, and also returns the server for further calls.
fn list<'a>(
    place: &'a BenchPaths,
    row: &'a BenchRow,
    tools: usize,
    effort: &BenchEffort,
) -> anyhow::Result<(TurnTarget<'a>, ListFigures)> {
    let mut bench = RowBench::new(place, row, tools)?;
    let (running, starts) = bench.start_often(effort)?;
    let listing = row.listing();
    let answer = listing.ask(&running.door, None)?;
    let page = answer["result"]["tools"].as_array().map_or(0, Vec::len);
    let lists = bench.rounds(&running, &listing, 4, effort)?;
    let median = |all: &[LoadOutcome], value: fn(&LoadOutcome) -> f64| {
        FigureSpread::from_values(all.iter().map(value)).median
    };
    let list = ListFigures {
        tools,
        page,
        list_bytes: median(&lists, |load| load.body_bytes as f64 / load.calls as f64),
        lists_per_core_second: 1e6 / median(&lists, LoadOutcome::cpu_us),
        list_p50_us: median(&lists, |load| load.p50_us),
        call_cpu_us: Vec::new(),
        start_ms: FigureSpread::from_values(starts).median,
    };
    let question = bench.subject.question.clone();
    Ok((
        TurnTarget {
            bench,
            running,
            question,
            connections: CONNECTIONS,
        },
        list,
    ))
}
