//! Counts and summarizes the records of a file: in one pass over its rows, or over the cells of columns that indexes hold.

mod columns;

use std::collections::HashMap;

use weir_plugin_sdk::summary::{Summarizer, find};
use weir_plugin_sdk::{Error, Field, Query, Shape, SummaryPage, SummaryQuery, Zone};

use crate::header::ColumnPositions;
use crate::indexed::{self, SheetSource};
use crate::scan::{RowSink, SheetScan, settled};
use crate::select::{RowCollector, RowVerdict, SheetSelect, cell_value};
use crate::settings::{SheetFormat, SheetSettings};
use crate::table::SheetRow;
use columns::CellLanes;

pub(crate) fn summarize(
    settings: &SheetSettings,
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
    let select = SheetSelect::for_summary(shape, zone, &conditions)?;
    let begin = |columns: &ColumnPositions| SheetSummary::new(&select, columns, query, shape, zone);
    let scan = SheetScan {
        settings,
        shape,
        select: &select,
        begin,
    };
    let summary = settled(settings, |info, table| {
        if let Some(table) = table {
            return scan.table(&table);
        }
        // What keeps the file from being read is reported by the pass.
        if matches!(settings.format, SheetFormat::Delimited(_))
            && indexed::applies(settings, info)
            && let Ok(source) = SheetSource::open(settings, shape, zone, info)
        {
            let positions = ColumnPositions::locate(&source.head.names, shape);
            let mut summary = begin(&positions)?;
            if let Some(columns) = source.columns(&select.fields_read(&positions)) {
                let taken = CellLanes::new(columns, &summary, zone).take(&mut summary, &source);
                // The index may be gone; any other failure is reported by a pass, for the first row that it meets.
                if taken.is_ok() {
                    return Ok(summary);
                }
            }
        }
        scan.rows(info)
    })?;
    let page = summary.summarizer.finish()?;
    Ok(SummaryPage {
        records: summary.judge.reported(page.records),
        ..page
    })
}

/// Summarizes the rows that meet conditions.
struct SheetSummary<'s> {
    judge: RowCollector<'s>,
    summarizer: Summarizer<'s>,
    zone: &'s Zone,
    /// The columns of the groups.
    grouped: Vec<&'s Field>,
    /// The places of groups by the cells of their column, if there is just one: most rows belong to a known group.
    places: HashMap<Box<str>, usize>,
}

/// The cells that are kept to find groups by; those beyond are read as any other.
const PLACES_MAX: usize = 4_096;
/// The bytes of a cell that is kept: one may be as long as a row.
const PLACE_BYTES_MAX: usize = 256;

impl<'s> SheetSummary<'s> {
    fn new(
        select: &'s SheetSelect<'s>,
        columns: &ColumnPositions,
        query: &'s SummaryQuery,
        shape: &'s Shape,
        zone: &'s Zone,
    ) -> Result<Self, Error> {
        let grouped = query.groups.iter();
        let grouped = grouped.map(|group| find(shape, &group.column));
        Ok(Self {
            judge: select.over(columns)?,
            summarizer: Summarizer::new(query, shape, zone)?,
            zone,
            grouped: grouped.collect::<Result<_, Error>>()?,
            places: HashMap::new(),
        })
    }
}

impl RowSink for SheetSummary<'_> {
    fn take(&mut self, row: SheetRow<'_>) -> Result<(), Error> {
        match self.judge.judge(row) {
            RowVerdict::Meets => {}
            RowVerdict::Fails => return Ok(()),
            RowVerdict::Unclear(fields) => {
                self.judge.skip(fields);
                return Ok(());
            }
        }
        let (judge, zone) = (&self.judge, self.zone);
        let value = |field: &Field| cell_value(judge.cell(row, field), field, zone);
        let at = match &self.grouped[..] {
            [grouped] => {
                let cell = judge.cell(row, grouped);
                match self.places.get(cell) {
                    Some(at) => *at,
                    None => {
                        let at = self.summarizer.group(value)?;
                        if self.places.len() < PLACES_MAX && cell.len() <= PLACE_BYTES_MAX {
                            self.places.insert(cell.into(), at);
                        }
                        at
                    }
                }
            }
            _ => self.summarizer.group(value)?,
        };
        self.summarizer.add_to(at, value)
    }

    fn is_done(&self) -> bool {
        false
    }
}
