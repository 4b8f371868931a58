//! Counts and summarizes the records of a file in one pass.

use weir_plugin_sdk::summary::Summarizer;
use weir_plugin_sdk::{Error, Query, Shape, SummaryPage, SummaryQuery, Zone};

use crate::header::Columns;
use crate::scan::{RowSink, Scan, settled};
use crate::select::{Collector, Judged, Select, cell_value};
use crate::settings::Settings;
use crate::table::Row;

pub(crate) fn summarize(
    settings: &Settings,
    shape: &Shape,
    zone: &Zone,
    query: &SummaryQuery,
) -> Result<SummaryPage, Error> {
    let groups = query.groups.iter().map(|group| &group.column);
    let measured = query.measures.iter().filter_map(|one| one.column.as_ref());
    let conditions = Query {
        conditions: query.conditions.clone(),
        columns: groups.chain(measured).cloned().collect(),
        limit: 1,
        ..Query::default()
    };
    let select = Select::for_summary(shape, zone, &conditions)?;
    let scan = Scan {
        settings,
        shape,
        select: &select,
        begin: |columns: &Columns| {
            Ok(Summary {
                judge: select.over(columns)?,
                summarizer: Summarizer::new(query, shape, zone)?,
                zone,
            })
        },
    };
    let summary = settled(settings, |info, table| match table {
        Some(table) => scan.table(&table),
        None => scan.rows(info),
    })?;
    let page = summary.summarizer.finish()?;
    Ok(SummaryPage {
        records: summary.judge.reported(page.records),
        ..page
    })
}

/// Summarizes the rows that meet conditions.
struct Summary<'s> {
    judge: Collector<'s>,
    summarizer: Summarizer<'s>,
    zone: &'s Zone,
}

impl RowSink for Summary<'_> {
    fn take(&mut self, row: Row<'_>) -> Result<(), Error> {
        match self.judge.judge(row) {
            Judged::Meets => {}
            Judged::Fails => return Ok(()),
            Judged::Unclear(fields) => {
                self.judge.skip(fields);
                return Ok(());
            }
        }
        let (judge, zone) = (&self.judge, self.zone);
        self.summarizer
            .add(|field| cell_value(judge.cell(row, field), field, zone))
    }

    fn is_done(&self) -> bool {
        false
    }
}
