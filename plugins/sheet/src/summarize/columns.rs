//! Summarizes the cells of columns that indexes hold: the rows of the file in their order, so that the answer is that of a pass.

use weir_plugin_sdk::summary::MeasuredValue;
use weir_plugin_sdk::{Error, Field, Type, Value, Zone};

use super::SheetSummary;
use crate::indexed::{BlockCells, CellColumn, CellNumber, SheetSource, broken};
use crate::scan::RowSink;
use crate::select::{CellCondition, CellJudged, RowVerdict, cell_value};
use crate::stream::SheetProgress;

/// The groups that are found by the numbers of their texts, within one block of each column.
const CODES_MAX: usize = 4_096;

/// The columns that a summary needs, and the rows of them that are the next.
pub(super) struct CellLanes<'s> {
    lanes: Vec<CellLane<'s>>,
    /// The bytes of the file that all indexes cover.
    covers: u64,
    /// The lanes of the groups.
    grouped: Vec<usize>,
    /// The places of the groups that were met in these blocks, by the numbers of their texts.
    places: Vec<Option<usize>>,
}

struct CellLane<'s> {
    field: &'s Field,
    zone: &'s Zone,
    column: CellColumn,
    block: BlockCells,
    row: usize,
    /// The values of the texts that the block lists.
    values: Vec<Value<'static>>,
    /// For each condition on the column, what it says of these texts.
    judged: Vec<(usize, Vec<CellJudged>)>,
    /// A number is read as it is, without a text.
    takes_numbers: bool,
}

impl<'s> CellLanes<'s> {
    pub(super) fn new(
        columns: Vec<(&'s Field, CellColumn)>,
        summary: &SheetSummary<'_>,
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
            for _ in 0..rows {
                self.take_row(summary)?;
                self.lanes.iter_mut().for_each(|lane| lane.row += 1);
            }
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

    fn take_row(&mut self, summary: &mut SheetSummary<'_>) -> Result<(), Error> {
        let (lanes, mut number) = (&self.lanes, 0);
        let judged = summary.judge.judge_each(|condition| {
            number += 1;
            let lane = lane_of(lanes, condition.field);
            lane.map_or(CellJudged::Fails, |lane| lane.judge(number - 1, condition))
        });
        match judged {
            RowVerdict::Meets => {}
            RowVerdict::Fails => return Ok(()),
            RowVerdict::Unclear(fields) => {
                summary.judge.skip(fields);
                return Ok(());
            }
        }
        let value = |field: &Field| lane_of(lanes, field).map_or(Value::Null, CellLane::value);
        let at = match self.places.is_empty() {
            true => summary.summarizer.group(value)?,
            false => {
                let code = |code, lane: &usize| {
                    let (number, count) = lanes[*lane].listed().unwrap_or_default();
                    code * count + number
                };
                let place = &mut self.places[self.grouped.iter().fold(0, code)];
                match *place {
                    Some(at) => at,
                    None => *place.insert(summary.summarizer.group(value)?),
                }
            }
        };
        summary
            .summarizer
            .add_to(at, |field| match lane_of(lanes, field) {
                Some(lane) => lane.measured(),
                None => Value::Null.into(),
            })
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

    /// Returns the number of the cell's text, and how many the block lists.
    fn listed(&self) -> Option<(usize, usize)> {
        match &self.block {
            BlockCells::Listed { texts, codes } => {
                Some((usize::from(codes[self.row]), texts.len()))
            }
            _ => None,
        }
    }

    fn judge(&self, at: usize, condition: &CellCondition<'_>) -> CellJudged {
        if let Some((number, _)) = self.listed()
            && let Some((_, judged)) = self.judged.iter().find(|(of, _)| *of == at)
        {
            return judged[number];
        }
        match self.number() {
            Some(value) => condition.judge_value(&value),
            None => condition.judge(&self.block.text(self.row)),
        }
    }

    fn value(&self) -> Value<'_> {
        match &self.block {
            BlockCells::Listed { codes, .. } => {
                self.values[usize::from(codes[self.row])].as_borrowed()
            }
            BlockCells::Numbers { .. } => self.number().unwrap_or_else(|| {
                cell_value(&self.block.text(self.row), self.field, self.zone).into_owned()
            }),
            BlockCells::Texts { text, .. } => {
                cell_value(&text[self.block.span(self.row)], self.field, self.zone)
            }
        }
    }

    /// Returns the value for a measure: of a decimal its digits, where they are there.
    fn measured(&self) -> MeasuredValue<'_> {
        let is_decimal = self.takes_numbers && self.field.kind == Type::Decimal;
        match self.block.number(self.row).filter(|_| is_decimal) {
            Some(CellNumber { units, places }) => MeasuredValue::Units { units, places },
            None => self.value().into(),
        }
    }

    /// Returns the value of a number that need not be read from its text.
    fn number(&self) -> Option<Value<'static>> {
        let CellNumber { units, places } =
            self.block.number(self.row).filter(|_| self.takes_numbers)?;
        match self.field.kind {
            // Both are exact, so that their quotient is the nearest to the number, as what is read from its text.
            Type::Number => Some(Value::Number(units as f64 / TENS[usize::from(places)])),
            Type::Integer if places == 0 => Some(Value::Integer(units.into())),
            _ => None,
        }
    }
}

/// The powers of ten that a number may be divided by.
const TENS: [f64; 16] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];
