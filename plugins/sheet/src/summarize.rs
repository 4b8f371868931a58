//! Counts the records of a file in one pass.

use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::summary::SummaryFunction;
use weir_plugin_sdk::{Error, Query, Shape, SummaryPage, SummaryQuery, Value, Zone};

use crate::header::Columns;
use crate::scan::{RowSink, Scan, settled};
use crate::select::{Collector, Judged, Select};
use crate::settings::Settings;
use crate::table::Row;

pub(crate) fn summarize(
    settings: &Settings,
    shape: &Shape,
    zone: &Zone,
    query: &SummaryQuery,
) -> Result<SummaryPage, Error> {
    let is_count = |function| function == SummaryFunction::Count;
    if !query.groups.is_empty() || !query.measures.iter().all(|one| is_count(one.function)) {
        return Err(Error::unsupported("Sheets can only count."));
    }
    let conditions = Query {
        conditions: query.conditions.clone(),
        limit: 1,
        ..Query::default()
    };
    let select = Select::new(shape, zone, &conditions)?;
    let scan = Scan {
        settings,
        shape,
        select: &select,
        begin: |columns: &Columns| {
            let judge = select.over(columns)?;
            Ok(Counter { judge, count: 0 })
        },
    };
    let Counter { judge, count } = settled(settings, |info, table| match table {
        Some(table) => scan.table(&table),
        None => scan.rows(info),
    })?;
    let mut records = Records::new();
    let measures = query.measures.iter();
    records.push(measures.map(|measure| (measure.name.as_str(), Value::Integer(count))));
    Ok(SummaryPage {
        records: judge.reported(records.finish()),
        more: false,
    })
}

/// Counts the rows that meet conditions.
struct Counter<'s> {
    judge: Collector<'s>,
    count: i128,
}

impl RowSink for Counter<'_> {
    fn take(&mut self, row: Row<'_>) -> Result<(), Error> {
        match self.judge.judge(row) {
            Judged::Meets => self.count += 1,
            Judged::Fails => {}
            Judged::Unclear(fields) => self.judge.skip(fields),
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        false
    }
}
