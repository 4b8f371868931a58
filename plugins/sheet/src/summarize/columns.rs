//! Summarizes the cells of columns that indexes hold: the rows of the file in their order, so that the answer is that of a pass.

use weir_plugin_sdk::summary::{Summarizer, SummaryFunction};
use weir_plugin_sdk::{Error, Field, Type, Value, Zone};

use super::SheetSummary;
use crate::indexed::{BlockCells, CellColumn, CellNumber, SheetSource, broken};
use crate::scan::RowSink;
use crate::select::{CellCondition, CellJudged, RowVerdict, cell_value};
use crate::stream::SheetProgress;

/// The groups that are found by the numbers of their texts, within one block of each column.
const CODES_MAX: usize = 4_096;

/// The columns that a summary needs, and their next rows.
pub(super) struct CellLanes<'s> {
    lanes: Vec<CellLane<'s>>,
    /// The bytes of the file that all indexes cover.
    covers: u64,
    /// The lanes of the groups.
    grouped: Vec<usize>,
    /// The places of the groups that were met in these blocks, by the numbers of their texts.
    places: Vec<Option<usize>>,
    /// The measures, each with its column.
    measures: Vec<(SummaryFunction, Option<&'s Field>)>,
    /// The rows of this run that meet the conditions, each with the place of its group.
    met: Vec<(usize, usize)>,
}

struct CellLane<'s> {
    field: &'s Field,
    zone: &'s Zone,
    column: CellColumn,
    block: BlockCells,
    row: usize,
    /// The values of the texts that the block lists.
    values: Vec<Value<'static>>,
    /// For each condition on the column, its judgement about these texts.
    judged: Vec<(usize, Vec<CellJudged>)>,
    /// A number is read as it is, without a text.
    takes_numbers: bool,
}

impl<'s> CellLanes<'s> {
    pub(super) fn new(
        columns: Vec<(&'s Field, CellColumn)>,
        summary: &SheetSummary<'s>,
        zone: &'s Zone,
    ) -> Self {
        let lanes: Vec<CellLane<'s>> = columns
            .into_iter()
            .map(|(field, column)| CellLane::new(field, column, summary, zone))
            .collect();
        let lane = |field: &&Field| {
            lanes
                .iter()
                .position(|lane| std::ptr::eq(lane.field, *field))
        };
        let grouped = summary.grouped.iter().filter_map(lane).collect();
        let covers = lanes.iter().map(|lane| lane.column.covers);
        Self {
            covers: covers.min().unwrap_or_default(),
            lanes,
            grouped,
            places: Vec::new(),
            measures: summary.summarizer.measures().collect(),
            met: Vec::new(),
        }
    }

    /// Takes the rows of all columns, and then those of the file that the indexes do not cover.
    pub(super) fn take(
        &mut self,
        summary: &mut SheetSummary<'_>,
        source: &SheetSource<'_>,
    ) -> Result<(), Error> {
        let (mut progress, mut taken) = (SheetProgress::new(None), 0);
        // A column whose index covers less ends first.
        while self.fill(summary)? {
            let left = self.lanes.iter().map(|lane| lane.block.len() - lane.row);
            let rows = left.min().unwrap_or_default();
            self.take_rows(rows, summary)?;
            taken += rows as u64;
            progress.row(taken)?;
        }
        let mut tail = Ok(());
        source.tail_rows(self.covers, |row, _| {
            if tail.is_ok() {
                tail = summary.take(row);
            }
        })?;
        tail
    }

    /// Reads the next block of each column whose block has ended. Returns `false` if a column has no more.
    fn fill(&mut self, summary: &SheetSummary<'_>) -> Result<bool, Error> {
        let mut has_ended = false;
        for lane in &mut self.lanes {
            while !lane.has_row() {
                let Some(block) = lane.column.next_block()? else {
                    has_ended = true;
                    break;
                };
                lane.begin(block, summary);
                self.places.clear();
            }
        }
        if has_ended {
            // Bytes that only a longer index covers may have no rows.
            let mut shortest = self
                .lanes
                .iter()
                .filter(|lane| lane.column.covers == self.covers);
            return match shortest.any(CellLane::has_row) {
                true => Err(broken()),
                false => Ok(false),
            };
        }
        if self.places.is_empty() {
            let listed = self
                .grouped
                .iter()
                .map(|lane| match &self.lanes[*lane].block {
                    BlockCells::Listed { texts, .. } => texts.len(),
                    _ => CODES_MAX + 1,
                });
            let codes = listed.fold(1, usize::saturating_mul);
            if codes <= CODES_MAX {
                self.places.resize(codes, None);
            }
        }
        Ok(true)
    }

    /// Takes this many rows of the blocks: first the group of each, and then one measure after the other.
    fn take_rows(&mut self, rows: usize, summary: &mut SheetSummary<'_>) -> Result<(), Error> {
        self.met.clear();
        for row in 0..rows {
            if let Some(at) = self.place_row(row, summary)? {
                self.met.push((row, at));
            }
        }
        let summarizer = &mut summary.summarizer;
        for (measure, (function, field)) in self.measures.iter().enumerate() {
            let Some(field) = field else {
                let places = self.met.iter();
                places.for_each(|(_, at)| summarizer.count_record(measure, *at));
                continue;
            };
            // A column that the file does not have has nothing to add.
            if let Some(lane) = lane_of(&self.lanes, field) {
                lane.add_to(summarizer, (measure, *function), &self.met)?;
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.row += rows);
        Ok(())
    }

    /// Returns the place of a row's group; `None` if the row does not meet the conditions.
    fn place_row(
        &mut self,
        row: usize,
        summary: &mut SheetSummary<'_>,
    ) -> Result<Option<usize>, Error> {
        let (lanes, mut number) = (&self.lanes, 0);
        let judged = summary.judge.judge_each(|condition| {
            number += 1;
            let lane = lane_of(lanes, condition.field);
            lane.map_or(CellJudged::Fails, |lane| {
                lane.judge(row, number - 1, condition)
            })
        });
        match judged {
            RowVerdict::Meets => {}
            RowVerdict::Fails => return Ok(None),
            RowVerdict::Unclear(fields) => {
                summary.judge.skip(fields);
                return Ok(None);
            }
        }
        let value = |field: &Field| match lane_of(lanes, field) {
            Some(lane) => lane.value(row),
            None => Value::Null,
        };
        if self.places.is_empty() {
            return summary.summarizer.group(value).map(Some);
        }
        let code = |code, lane: &usize| {
            let (number, count) = lanes[*lane].listed(row).unwrap_or_default();
            code * count + number
        };
        let place = &mut self.places[self.grouped.iter().fold(0, code)];
        Ok(Some(match *place {
            Some(at) => at,
            None => *place.insert(summary.summarizer.group(value)?),
        }))
    }
}

fn lane_of<'l, 's>(lanes: &'l [CellLane<'s>], field: &Field) -> Option<&'l CellLane<'s>> {
    lanes.iter().find(|lane| std::ptr::eq(lane.field, field))
}

impl<'s> CellLane<'s> {
    fn new(
        field: &'s Field,
        column: CellColumn,
        summary: &SheetSummary<'_>,
        zone: &'s Zone,
    ) -> Self {
        let conditions = summary.judge.conditions().iter().enumerate();
        let own = conditions.filter(|(_, condition)| std::ptr::eq(condition.field, field));
        Self {
            field,
            zone,
            column,
            block: BlockCells::Texts {
                text: String::new(),
                ends: Vec::new(),
            },
            row: 0,
            values: Vec::new(),
            judged: own.map(|(at, _)| (at, Vec::new())).collect(),
            takes_numbers: field.format.is_none() && field.null_words.is_empty(),
        }
    }

    fn begin(&mut self, block: BlockCells, summary: &SheetSummary<'_>) {
        let (field, zone) = (self.field, self.zone);
        self.values.clear();
        if let BlockCells::Listed { texts, .. } = &block {
            let values = texts
                .iter()
                .map(|text| cell_value(text, field, zone).into_owned());
            self.values.extend(values);
            for (at, judged) in &mut self.judged {
                let condition = &summary.judge.conditions()[*at];
                judged.clear();
                judged.extend(texts.iter().map(|text| condition.judge(text)));
            }
        }
        self.block = block;
        self.row = 0;
    }

    fn has_row(&self) -> bool {
        self.row < self.block.len()
    }

    /// Takes the cells of these rows for a measure, each with the place of its group. Numbers that the block stores as such
    /// are added without checking the type of each.
    fn add_to(
        &self,
        summarizer: &mut Summarizer<'_>,
        (measure, function): (usize, SummaryFunction),
        rows: &[(usize, usize)],
    ) -> Result<(), Error> {
        let is_sum = matches!(function, SummaryFunction::Sum | SummaryFunction::Average);
        let adds = is_sum && self.takes_numbers;
        for (row, at) in rows {
            let number = match adds {
                true => self.block.number(self.row + row),
                false => None,
            };
            match (number, self.field.kind) {
                (Some(number), Type::Number) => {
                    summarizer.add_number(measure, *at, as_float(number));
                }
                (Some(CellNumber { units, places }), Type::Decimal) => {
                    summarizer.add_units(measure, *at, units, places)?;
                }
                _ => summarizer.add_value(measure, *at, self.value(*row))?,
            }
        }
        Ok(())
    }

    /// Returns the number of the cell's text, and how many the block lists.
    fn listed(&self, row: usize) -> Option<(usize, usize)> {
        match &self.block {
            BlockCells::Listed { texts, codes } => {
                Some((usize::from(codes[self.row + row]), texts.len()))
            }
            _ => None,
        }
    }

    fn judge(&self, row: usize, at: usize, condition: &CellCondition<'_>) -> CellJudged {
        if let Some((number, _)) = self.listed(row)
            && let Some((_, judged)) = self.judged.iter().find(|(of, _)| *of == at)
        {
            return judged[number];
        }
        match self.number(row) {
            Some(value) => condition.judge_value(&value),
            None => condition.judge(&self.block.text(self.row + row)),
        }
    }

    fn value(&self, row: usize) -> Value<'_> {
        match &self.block {
            BlockCells::Listed { codes, .. } => {
                self.values[usize::from(codes[self.row + row])].as_borrowed()
            }
            BlockCells::Numbers { .. } => self.number(row).unwrap_or_else(|| {
                let text = self.block.text(self.row + row);
                cell_value(&text, self.field, self.zone).into_owned()
            }),
            BlockCells::Texts { text, .. } => {
                let cell = &text[self.block.span(self.row + row)];
                cell_value(cell, self.field, self.zone)
            }
        }
    }

    /// Returns the value of a number that need not be read from its text.
    fn number(&self, row: usize) -> Option<Value<'static>> {
        let adds = self.takes_numbers;
        let number = self.block.number(self.row + row).filter(|_| adds)?;
        match self.field.kind {
            Type::Number => Some(Value::Number(as_float(number))),
            Type::Integer if number.places == 0 => Some(Value::Integer(number.units.into())),
            _ => None,
        }
    }
}

/// Returns the nearest float: digits and the power of ten are exact, so their quotient is the value read from the text.
fn as_float(CellNumber { units, places }: CellNumber) -> f64 {
    units as f64 / TENS[usize::from(places)]
}

/// The powers of ten that a number may be divided by.
const TENS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];
