//! A file that is too large to be kept, read through indexes of its columns: the rows that may match are looked up, and
//! judged like those of a whole pass. Rows that an index leaves out cannot match, so the answer is the same.

mod build;
mod cells;
mod columns;
mod entries;
mod head;
mod signatures;

use std::collections::HashSet;
use std::rc::Rc;

use weir_plugin_sdk::files::{self, Info, PARTS_MAX, Part};
use weir_plugin_sdk::index::{self, Entry, Name, RANGE_MAX, Range};
use weir_plugin_sdk::matches::operand;
use weir_plugin_sdk::serde_json::json;
use weir_plugin_sdk::{Comparison, Error, Page, Query, Shape, Type, Value, Zone};

use crate::cache;
use crate::header::ColumnPositions;
use crate::select::{RowCollector, RowVerdict, SheetSelect, UnclearRows, bounds_integers};
use crate::settings::{SheetFormat, SheetSettings, UseIndex};
use crate::sort_key::{self, NULL, UNFIT, VALUE, sort_key};
use crate::stream::{DelimitedParser, FILE_BYTES_MAX, ROW_BYTES_MAX, RowFlow, read_pieces};
use crate::table::SheetRow;
pub(crate) use cells::{BlockCells, CellNumber};
pub(crate) use columns::{CellColumn, broken};
use entries::{FEW, behind, entries, exactly, within};
pub(crate) use head::SheetHead;
use signatures::{BlockCandidates, Slice};

/// Ways are tried in turn: the rows that meet one condition, then rows in the requested order, each further than before. A
/// condition that few rows meet ends with the first, one that many meet with the second; others take longer.
const MEETING: [usize; 2] = [1_024, 16_384];
const IN_ORDER: [usize; 2] = [4_096, 65_536];
/// Blocks of rows that may contain a part of a text, and their groups, each of which is a call to the host.
const HOLDING: [usize; 2] = [16, 256];
const HOLDING_MAX: usize = 4_096;
const GROUPS_MAX: usize = 64;
/// Rows that no condition can judge; each one is read.
const MISFITS_MAX: usize = 16_384;
/// Rows after those that an index covers, which writers have appended since it was built.
const TAIL_BYTES_MAX: u64 = 1 << 20;
/// Rows read at once.
const ROWS_AT_ONCE: usize = 2_048;

/// A delimited file at one version, and how a contract reads it.
pub(crate) struct SheetSource<'s> {
    pub(crate) settings: &'s SheetSettings,
    pub(crate) shape: &'s Shape,
    pub(crate) zone: &'s Zone,
    pub(crate) info: &'s Info,
    pub(crate) head: Rc<SheetHead>,
}

/// Returns `true` if this file is read through indexes.
pub(crate) fn applies(settings: &SheetSettings, info: &Info) -> bool {
    match settings.index {
        UseIndex::Auto => info.size > cache::BYTES_MAX as u64 && info.size <= FILE_BYTES_MAX,
        UseIndex::Always => info.size <= FILE_BYTES_MAX,
        UseIndex::Never => false,
    }
}

impl<'s> SheetSource<'s> {
    pub(crate) fn open(
        settings: &'s SheetSettings,
        shape: &'s Shape,
        zone: &'s Zone,
        info: &'s Info,
    ) -> Result<Self, Error> {
        Ok(Self {
            settings,
            shape,
            zone,
            info,
            head: SheetHead::cached(settings, info)?,
        })
    }

    /// Returns the page, or `None` if no index can give it soon: then the missing indexes are asked for.
    pub(crate) fn read(
        &self,
        select: &SheetSelect<'_>,
        query: &Query,
    ) -> Result<Option<Page>, Error> {
        let Some(mut collector) = self.collect(select, query)? else {
            return Ok(None);
        };
        if select.counts_skipped() {
            match self.skipped(select)? {
                Some(skipped) => collector.set_skipped(skipped),
                None => return Ok(None),
            }
        }
        Ok(Some(collector.finish()))
    }

    /// Counts the records that conditions cannot judge: an index has the cells that are not values of their column after all
    /// others. Returns `None` if it cannot count them soon.
    fn skipped(&self, select: &SheetSelect<'_>) -> Result<Option<UnclearRows>, Error> {
        let judge = select.over(&ColumnPositions::locate(&self.head.names, self.shape))?;
        let (mut skipped, mut seen) = (UnclearRows::default(), HashSet::new());
        let mut covered = self.info.size;
        let mut note = |row: SheetRow<'_>, span: std::ops::Range<u64>| {
            if seen.insert(span.start)
                && let RowVerdict::Unclear(fields) = judge.judge(row)
            {
                skipped.add(fields);
            }
        };
        let misfits = Range {
            from: vec![UNFIT],
            to: Some(vec![NULL]),
            ..Range::default()
        };
        for field in select.counted_fields() {
            let Some(covers) = self.usable(field) else {
                index::later(&self.column(field));
                return Ok(None);
            };
            let name = self.name(self.column(field));
            let Some(entries) = entries(&name, std::slice::from_ref(&misfits), MISFITS_MAX)? else {
                return Ok(None);
            };
            self.rows(&entries, &mut note)?;
            covered = covered.min(covers);
        }
        self.tail_rows(covered, &mut note)?;
        Ok(Some(skipped))
    }

    /// Returns the rows of the page, or `None` if no index can give them soon.
    fn collect<'q>(
        &self,
        select: &'q SheetSelect<'q>,
        query: &Query,
    ) -> Result<Option<RowCollector<'q>>, Error> {
        let columns = ColumnPositions::locate(&self.head.names, self.shape);
        let mut narrowings = Vec::new();
        let (mut missing, mut unknown_parts) = (Vec::new(), Vec::new());
        for (field, ranges) in self.narrowings(query)? {
            match self.usable(field) {
                Some(covers) => narrowings.push((field, ranges, covers)),
                None => missing.push(field),
            }
        }
        let mut holding: Option<IndexCandidates> = None;
        for (field, slices) in self.parts(query) {
            let Some(covers) = self.covered(&self.signatures(field)) else {
                unknown_parts.push(field);
                continue;
            };
            let found = self.holding(field, slices, covers)?;
            if holding
                .as_ref()
                .is_none_or(|other| found.candidates.count() < other.candidates.count())
            {
                holding = Some(found);
            }
        }
        let order = select
            .order_field()
            .map(|(field, descending)| (field, descending, self.usable(field)));
        if let Some((field, _, None)) = order
            && !missing.contains(&field)
        {
            missing.push(field);
        }
        let in_blocks = |most: usize| -> Result<Option<RowCollector<'q>>, Error> {
            let Some(holding) = holding.as_ref().filter(|holding| holding.has_at_most(most)) else {
                return Ok(None);
            };
            let mut collector = select.over(&columns)?;
            self.consider_holding(holding, &mut collector)?;
            Ok(Some(collector))
        };
        for ((meeting, in_order), blocks) in MEETING.into_iter().zip(IN_ORDER).zip(HOLDING) {
            for (field, ranges, covers) in &narrowings {
                if let Some(entries) = entries(&self.name(self.column(*field)), ranges, meeting)? {
                    let mut collector = select.over(&columns)?;
                    self.consider(&entries, &mut collector)?;
                    self.consider_tail(*covers, &mut collector)?;
                    return Ok(Some(collector));
                }
            }
            if let Some(collector) = in_blocks(blocks)? {
                return Ok(Some(collector));
            }
            if let Some((field, descending, Some(covers))) = order {
                let mut collector = select.over(&columns)?;
                if self.walk(select, field, descending, in_order, &mut collector)? {
                    self.consider_tail(covers, &mut collector)?;
                    return Ok(Some(collector));
                }
            }
        }
        // A part of the file is still less than the whole.
        if let Some(collector) = in_blocks(HOLDING_MAX)? {
            return Ok(Some(collector));
        }
        missing
            .iter()
            .for_each(|field| index::later(&self.column(*field)));
        unknown_parts
            .iter()
            .for_each(|field| index::later(&self.signatures(*field)));
        Ok(None)
    }

    /// Returns the slices of the parts of texts that conditions ask for, as far as they are long enough to be looked for.
    fn parts(&self, query: &Query) -> Vec<(usize, Vec<Slice>)> {
        let conditions = query.conditions.iter();
        let contains = conditions.filter(|condition| {
            matches!(
                condition.comparison,
                Comparison::Contains | Comparison::ContainsCi
            )
        });
        let parts = contains.filter_map(|condition| {
            let field = self
                .shape
                .fields
                .iter()
                .position(|field| field.key == condition.column)?;
            let slices = signatures::slices(condition.value.as_str()?);
            (!slices.is_empty()).then_some((field, slices))
        });
        parts.collect()
    }

    /// Returns the blocks of rows that may contain a part of a text.
    fn holding(
        &self,
        field: usize,
        slices: Vec<Slice>,
        covers: u64,
    ) -> Result<IndexCandidates, Error> {
        let name = self.name(self.signatures(field));
        let mut candidates: Option<BlockCandidates> = None;
        for slice in slices {
            let these = BlockCandidates::from_slice(within(&name, slice, FEW)?);
            candidates = Some(match candidates {
                Some(candidates) => candidates.and(&these),
                None => these,
            });
        }
        Ok(IndexCandidates {
            name,
            candidates: candidates.unwrap_or_default(),
            covers,
        })
    }

    /// Judges the rows of these blocks, in order, as far as they are needed.
    fn consider_holding(
        &self,
        holding: &IndexCandidates,
        collector: &mut RowCollector<'_>,
    ) -> Result<(), Error> {
        let mut parser = DelimitedParser::new(self.head.layout);
        for (keys, is_meant) in holding.candidates.blocks() {
            let mut blocks = within(&holding.name, keys, RANGE_MAX)?;
            blocks.retain(is_meant);
            let read = self.read_each(&blocks, |_, bytes| {
                parser.rows_alone(bytes, &mut |_, row, _| {
                    if !row.is_blank() {
                        collector.consider(row);
                    }
                    Ok(RowFlow::Continue)
                })?;
                Ok(if collector.is_done() {
                    RowFlow::Stop
                } else {
                    RowFlow::Continue
                })
            })?;
            if read == RowFlow::Stop {
                return Ok(());
            }
        }
        self.consider_tail(holding.covers, collector)
    }

    /// Returns, for each condition that an index can narrow, the ranges of keys that meet it. The narrowest come first,
    /// as far as the comparison shows.
    fn narrowings(&self, query: &Query) -> Result<Vec<(usize, Vec<Range>)>, Error> {
        let mut narrowings = Vec::new();
        for condition in &query.conditions {
            let Some(at) = self
                .shape
                .fields
                .iter()
                .position(|field| field.key == condition.column)
            else {
                continue;
            };
            let field = &self.shape.fields[at];
            if matches!(field.kind, Type::Json | Type::Record | Type::List) {
                continue;
            }
            let one = || operand(&condition.value, field, self.zone);
            let values = |from: Vec<u8>, to: Vec<u8>| Range {
                from,
                to: Some(to),
                ..Range::default()
            };
            let (rank, ranges) = match condition.comparison {
                Comparison::Equals => match one()? {
                    Value::Null => continue,
                    value => (0, vec![exactly(&value)]),
                },
                Comparison::OneOf => {
                    let given = condition.value.as_array().map_or(&[][..], Vec::as_slice);
                    let given = given.iter().map(|value| operand(value, field, self.zone));
                    let mut given = given.collect::<Result<Vec<_>, _>>()?;
                    given.retain(|value| !value.is_null());
                    let mut ranges: Vec<Range> = given.iter().map(exactly).collect();
                    ranges.sort_by(|left, right| left.from.cmp(&right.from));
                    ranges.dedup();
                    (1, ranges)
                }
                Comparison::StartsWith => {
                    let Some(text) = condition.value.as_str() else {
                        continue;
                    };
                    let from = sort_key(&Value::Text(text.into()));
                    // No text has this byte.
                    let to = [from.as_slice(), &[0xff]].concat();
                    (2, vec![values(from, to)])
                }
                Comparison::AtLeast => match one()? {
                    Value::Null => continue,
                    value => (3, vec![values(sort_key(&value), vec![UNFIT])]),
                },
                Comparison::AtMost => match one()? {
                    Value::Null => continue,
                    value => (3, vec![values(vec![VALUE], behind(&sort_key(&value)))]),
                },
                Comparison::IsEmpty if condition.value == json!(true) => (
                    4,
                    vec![Range {
                        from: vec![NULL],
                        ..Range::default()
                    }],
                ),
                _ => continue,
            };
            narrowings.push((rank, at, ranges));
        }
        narrowings.sort_by_key(|(rank, ..)| *rank);
        Ok(narrowings
            .into_iter()
            .map(|(_, at, ranges)| (at, ranges))
            .collect())
    }

    /// Visits rows in the order of their first order column, until there are so many that none after them can be on the
    /// page. Returns `false` if that takes more than `most`.
    fn walk(
        &self,
        select: &SheetSelect<'_>,
        field: usize,
        descending: bool,
        most: usize,
        collector: &mut RowCollector<'_>,
    ) -> Result<bool, Error> {
        let name = self.name(self.column(field));
        let (mut last, mut count) = (None, 0);
        for mut range in self.segments(select, descending) {
            range.limit = FEW;
            loop {
                let page = index::range(&name, &range)?;
                let is_last = page.len() < range.limit as usize;
                range.after = page.last().cloned();
                count += page.len();
                // The rows of one key are judged together: they may differ in later columns of the order.
                if let Some(first) = page.first()
                    && collector.has_enough()
                    && last.as_ref() != Some(&first.key)
                {
                    return Ok(true);
                }
                self.consider(&page, collector)?;
                last = page.last().map(|entry| entry.key.clone()).or(last);
                if is_last {
                    break;
                }
                if count >= most {
                    return Ok(false);
                }
                range.limit = (range.limit * 2).min(ROWS_AT_ONCE as u32);
            }
        }
        Ok(true)
    }

    /// Returns the whole order from the cursor on. Downwards too, values come before unfit ones and nulls.
    fn segments(&self, select: &SheetSelect<'_>, descending: bool) -> Vec<Range> {
        let cursor = select.cursor_value().map(sort_key);
        if !descending {
            return vec![Range {
                from: cursor.unwrap_or_default(),
                ..Range::default()
            }];
        }
        let first = cursor.as_ref().map_or(VALUE, |key| key[0]);
        let segment = |rank: u8| {
            let to = match &cursor {
                Some(key) if key[0] == rank => behind(key),
                _ => vec![rank + 1],
            };
            Range {
                from: vec![rank],
                to: Some(to),
                descending: true,
                ..Range::default()
            }
        };
        (first..=NULL).map(segment).collect()
    }

    /// Judges the rows of these entries, in order.
    fn consider(&self, entries: &[Entry], collector: &mut RowCollector<'_>) -> Result<(), Error> {
        self.rows(entries, |row, _| collector.consider(row))
    }

    fn rows(
        &self,
        entries: &[Entry],
        mut act: impl FnMut(SheetRow<'_>, std::ops::Range<u64>),
    ) -> Result<(), Error> {
        let mut parser = DelimitedParser::new(self.head.layout);
        self.read_each(entries, |entry, bytes| {
            parser.rows_alone(bytes, &mut |_, row, _| {
                act(row, entry.at..entry.at + u64::from(entry.length));
                Ok(RowFlow::Continue)
            })?;
            Ok(RowFlow::Continue)
        })
        .map(drop)
    }

    /// Reads the bytes of each entry, many at once, until `act` stops it.
    fn read_each(
        &self,
        entries: &[Entry],
        mut act: impl FnMut(&Entry, &[u8]) -> Result<RowFlow, Error>,
    ) -> Result<RowFlow, Error> {
        let (root, path) = (&self.settings.connection, &self.settings.path);
        let mut left = entries;
        while !left.is_empty() {
            let mut bytes = 0;
            let fits = left.iter().take(ROWS_AT_ONCE).take_while(|entry| {
                bytes += entry.length as usize;
                bytes <= PARTS_MAX
            });
            // A single row is never longer than one piece.
            let count = fits.count().max(1);
            let (now, behind) = left.split_at(count);
            left = behind;
            let parts: Vec<Part> = now
                .iter()
                .map(|entry| Part {
                    at: entry.at,
                    length: entry.length,
                })
                .collect();
            for (entry, bytes) in now.iter().zip(files::read_parts(root, path, &parts)?) {
                if act(entry, &bytes)? == RowFlow::Stop {
                    return Ok(RowFlow::Stop);
                }
            }
        }
        Ok(RowFlow::Continue)
    }

    /// Judges the rows after those that the index covers. They are the last of the file, so they come last.
    fn consider_tail(&self, covers: u64, collector: &mut RowCollector<'_>) -> Result<(), Error> {
        self.tail_rows(covers, |row, _| collector.consider(row))
    }

    pub(crate) fn tail_rows(
        &self,
        covers: u64,
        mut act: impl FnMut(SheetRow<'_>, std::ops::Range<u64>),
    ) -> Result<(), Error> {
        if covers >= self.info.size {
            return Ok(());
        }
        let length = (self.info.size - covers) as u32;
        let part = [Part { at: covers, length }];
        let bytes =
            files::read_parts(&self.settings.connection, &self.settings.path, &part)?.concat();
        let mut parser = DelimitedParser::at(self.head.layout, covers)?;
        let mut row = |_: u64, row: SheetRow<'_>, span: std::ops::Range<usize>| {
            if !row.is_blank() {
                act(row, span.start as u64..span.end as u64);
            }
            Ok(RowFlow::Continue)
        };
        parser.feed(&bytes, &mut row)?;
        parser.finish(&mut row)
    }

    /// Returns `true` if rows can be found by this column; a missing index is asked for.
    pub(crate) fn has_index(&self, field: usize) -> bool {
        if !applies(self.settings, self.info) {
            return false;
        }
        let has = self.usable(field).is_some();
        if !has {
            index::later(&self.column(field));
        }
        has
    }

    /// Visits all rows that may have this value, with their bytes in the file.
    pub(crate) fn rows_equal(
        &self,
        field: usize,
        value: &Value<'_>,
        mut act: impl FnMut(SheetRow<'_>, std::ops::Range<u64>),
    ) -> Result<(), Error> {
        let name = self.name(self.column(field));
        let entries = entries(&name, &[exactly(value)], usize::MAX - 1)?.unwrap_or_default();
        self.rows(&entries, &mut act)?;
        self.tail_rows(self.usable(field).unwrap_or_default(), &mut act)
    }

    /// Visits a row with the greatest value, and those after the index.
    pub(crate) fn greatest_row(
        &self,
        field: usize,
        mut act: impl FnMut(SheetRow<'_>, std::ops::Range<u64>),
    ) -> Result<(), Error> {
        let to = Some(vec![UNFIT]);
        let range = Range {
            from: vec![VALUE],
            to,
            descending: true,
            limit: 1,
            ..Range::default()
        };
        self.rows(
            &index::range(&self.name(self.column(field)), &range)?,
            &mut act,
        )?;
        self.tail_rows(self.usable(field).unwrap_or_default(), &mut act)
    }

    /// Reads the file from its first row on, a piece at a time.
    pub(crate) fn pieces(
        &self,
        mut act: impl FnMut(&[u8]) -> Result<RowFlow, Error>,
    ) -> Result<(), Error> {
        let mut left = self.head.body_at as usize;
        read_pieces(self.settings, self.info.size, |piece| {
            let skipped = left.min(piece.len());
            left -= skipped;
            act(&piece[skipped..])
        })
    }

    pub(crate) fn bytes(&self, range: std::ops::Range<u64>) -> Result<Vec<u8>, Error> {
        // A row that was found after the end belongs to a later file.
        let Some(length) = range.end.checked_sub(range.start) else {
            return Err(Error::upstream_error("The file changed while it was read."));
        };
        let part = [Part {
            at: range.start,
            length: length as u32,
        }];
        Ok(files::read_parts(&self.settings.connection, &self.settings.path, &part)?.concat())
    }

    /// Returns how much of the file the index of a field's values covers, if that is nearly all.
    fn usable(&self, field: usize) -> Option<u64> {
        self.covered(&self.column(field))
    }

    fn covered(&self, column: &str) -> Option<u64> {
        index::find(&self.name(column.to_owned()))
            .filter(|covers| self.info.size.saturating_sub(*covers) <= TAIL_BYTES_MAX)
    }

    pub(crate) fn source(settings: &SheetSettings) -> String {
        let delimiter = match settings.format {
            SheetFormat::Delimited(delimiter) => delimiter,
            SheetFormat::Workbook(_) => None,
        };
        json!([
            settings.connection,
            settings.path,
            delimiter,
            settings.header_row
        ])
        .to_string()
    }

    fn name(&self, column: String) -> Name {
        Name {
            source: Self::source(self.settings),
            version: self.info.version.clone(),
            column,
        }
    }

    /// Names a column and how its cells are read: two contracts may read one column as two types.
    fn column(&self, field: usize) -> String {
        let field = &self.shape.fields[field];
        let kind = match bounds_integers(field) {
            true => json!("bounded integer"),
            false => json!(field.kind),
        };
        json!([
            sort_key::VERSION,
            field.key,
            kind,
            field.nullable,
            field.format,
            field.null_words,
            self.shape.timezone
        ])
        .to_string()
    }

    /// Names the signatures of a column's texts.
    fn signatures(&self, field: usize) -> String {
        let field = &self.shape.fields[field];
        json!([
            "parts",
            signatures::VERSION,
            field.key,
            field.format,
            field.null_words
        ])
        .to_string()
    }
}

/// The blocks of rows that may contain a part of a text, by the index that lists them.
struct IndexCandidates {
    name: Name,
    candidates: BlockCandidates,
    covers: u64,
}

impl IndexCandidates {
    fn has_at_most(&self, most: usize) -> bool {
        let (blocks, groups) = self.candidates.count();
        blocks <= most && groups <= GROUPS_MAX
    }
}

const _: () = assert!(ROW_BYTES_MAX <= PARTS_MAX && TAIL_BYTES_MAX as usize <= PARTS_MAX);

#[cfg(test)]
mod tests;
