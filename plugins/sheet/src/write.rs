//! Create, update and delete in a delimited file: the file is replaced as a whole, only if no other program replaced it in
//! the meantime, and all other rows keep every byte. Of a large file only the changes pass through here.

use std::borrow::Cow;
use std::ops::Range;

use weir_plugin_sdk::error::Result;
use weir_plugin_sdk::matches::Matcher;
use weir_plugin_sdk::serde_json::{self, Map};
use weir_plugin_sdk::{
    Change, Condition, Error, Field, Shape, Type, Value, Verb, Zone, files, index, log, records,
};

use crate::cache;
use crate::changed_row::changed_row;
use crate::header::ColumnPositions;
use crate::indexed::{self, SheetSource};
use crate::scan::stat;
use crate::select::{cell_value, members};
use crate::settings::{SheetFormat, SheetSettings, UseIndex};
use crate::spelling::spelled_as;
use crate::stream::{DelimitedParser, FILE_BYTES_MAX, ROW_BYTES_MAX, RowFlow, read_pieces};
use crate::table::OwnedRow;

/// The number of times that another writer may come first before a change fails. Of eight agents that write at once each
/// comes first in one of eight attempts: about one in a million would fail.
const ATTEMPTS: usize = 100;
/// The number of times that a change which fails waits for a program that may be saving the file.
const SAVES_AWAITED: usize = 3;
/// The version of no file.
const NO_VERSION: &str = "";
/// The bound on files whose old and new content are both in memory.
const WHOLE_BYTES_MAX: u64 = 16 << 20;

pub(crate) fn write(
    settings: &SheetSettings,
    shape: &Shape,
    zone: &Zone,
    change: &Change,
) -> Result<String> {
    if let SheetFormat::Workbook(_) = settings.format {
        let reason = shape
            .capabilities
            .read_only
            .as_deref()
            .unwrap_or("Workbooks are read-only");
        return Err(Error::unsupported(format!("{reason}.")));
    }
    let edit = SheetEdit::new(shape, zone, change)?;
    let mut saves_awaited = 0;
    cache::make_room(cache::BYTES_MAX);
    for _ in 0..ATTEMPTS {
        let info = stat(settings)?;
        let is_large = info.size > WHOLE_BYTES_MAX || settings.index == UseIndex::Always;
        let whole = if is_large {
            None
        } else {
            Some(whole(settings, info.size)?)
        };
        if whole
            .as_ref()
            .is_some_and(|whole| whole.len() as u64 != info.size)
        {
            continue;
        }
        let planned = SheetSource::open(settings, shape, zone, &info).and_then(|source| {
            let content = SheetContent::find(&source, whole.as_deref(), &edit)?;
            content.apply(&edit)
        });
        let (changed, record) = match planned {
            // The failure may come from another program's change: the record may be in another place by now.
            Err(_) if stat(settings)?.version != info.version => continue,
            Err(error) if saves_awaited < SAVES_AWAITED && is_about_content(&error) => {
                saves_awaited += 1;
                wait_for_save(settings)?;
                if stat(settings)?.version != info.version {
                    continue;
                }
                return Err(error);
            }
            planned => planned?,
        };
        check_bounds(&info, &changed)?;
        let (root, path) = (&settings.connection, &settings.path);
        let replaced = match &whole {
            Some(old) => {
                let end = (changed.at + changed.length) as usize;
                let new = [&old[..changed.at as usize], &changed.content, &old[end..]].concat();
                files::replace(root, path, Some(&info.version), &new)
            }
            None => files::replace_parts(root, path, &info.version, std::slice::from_ref(&changed)),
        };
        match replaced {
            Ok(version) => {
                // The old rows are still there, and the new row is after them.
                if edit.verb == Verb::Create
                    && changed.at == info.size
                    && indexed::applies(settings, &info)
                {
                    let extended =
                        index::extend(&SheetSource::source(settings), &info.version, &version);
                    extended.unwrap_or_else(|error| {
                        log::debug(&format!("The indexes are built anew: {error}"))
                    });
                }
                return Ok(record);
            }
            Err(error) if error.is("conflict") => continue,
            Err(error) => return Err(error),
        }
    }
    Err(Error::conflict(
        "Others change the file faster than this change can be made; nothing was written.",
    )
    .retry_after_ms(1_000))
}

/// Returns `true` for an error that half a file can be the reason of.
fn is_about_content(error: &Error) -> bool {
    let codes = [
        "source_changed",
        "not_found",
        "conflict",
        "ambiguous",
        "upstream_error",
    ];
    codes.into_iter().any(|code| error.is(code))
}

/// Waits while another program saves the file: one that saves in place empties it first, and may write it in several steps. The
/// error is about a program that goes on writing.
fn wait_for_save(settings: &SheetSettings) -> Result<()> {
    let (root, path) = (&settings.connection, &settings.path);
    // A replacement waits for such a program before it looks at the version, which is not this one: nothing is replaced.
    match files::replace_parts(root, path, NO_VERSION, &[]) {
        Err(error) if error.is("unavailable") => Err(error),
        refused => {
            debug_assert!(refused.is_err(), "no file has this version");
            Ok(())
        }
    }
}

/// Refuses a change after which the file could not be read any more.
fn check_bounds(info: &files::Info, changed: &files::Edit) -> Result<()> {
    let length = changed.content.len() as u64;
    if length > changed.length.max(ROW_BYTES_MAX as u64) {
        return Err(Error::invalid(
            "The record would be longer than 1 MiB, the most that a row of a sheet may have; send less.",
        ));
    }
    if length > changed.length && info.size - changed.length + length > FILE_BYTES_MAX {
        let mib = FILE_BYTES_MAX >> 20;
        return Err(Error::unsupported(format!(
            "The file would be larger than {mib} MiB; a database would serve it better."
        )));
    }
    Ok(())
}

fn whole(settings: &SheetSettings, size: u64) -> Result<Vec<u8>> {
    let mut content = Vec::with_capacity(size as usize);
    read_pieces(settings, size, |piece| {
        content.extend_from_slice(piece);
        Ok(RowFlow::Continue)
    })?;
    Ok(content)
}

/// A change, checked against the recorded shape.
struct SheetEdit<'e> {
    shape: &'e Shape,
    zone: &'e Zone,
    verb: Verb,
    /// The key of the record meant, by index of the field; empty for a create without one.
    key: Vec<(usize, Value<'static>)>,
    /// The conditions that the record must meet in addition to its key, by index of the field.
    conditions: Vec<(usize, Matcher)>,
    /// The values to write, by index of the field.
    values: Vec<(usize, Value<'static>)>,
    /// The key column to be counted up, where a create leaves it out.
    counted: Option<usize>,
}

impl<'e> SheetEdit<'e> {
    fn new(shape: &'e Shape, zone: &'e Zone, change: &Change) -> Result<Self> {
        let key_fields = key_fields(shape)?;
        let values = values(&change.record, shape, zone)?;
        let mut edit = Self {
            shape,
            zone,
            verb: change.verb,
            key: Vec::new(),
            conditions: Vec::new(),
            values,
            counted: None,
        };
        match change.verb {
            Verb::Create => {
                for at in key_fields {
                    match edit.values.iter().find(|(field, _)| *field == at) {
                        Some((_, value)) => edit.key.push((at, value.clone())),
                        None if may_be_counted(&shape.fields[at], shape) => edit.counted = Some(at),
                        None => return Err(missing(&shape.fields[at])),
                    }
                }
                let absent = |at: &usize| {
                    edit.values.iter().all(|(field, _)| field != at) && edit.counted != Some(*at)
                };
                let required = (0..shape.fields.len()).filter(absent).find(|at| {
                    let field = &shape.fields[*at];
                    !field.nullable && !may_be_counted(field, shape) && field.kind != Type::String
                });
                if let Some(at) = required {
                    return Err(missing(&shape.fields[at]));
                }
            }
            Verb::Update | Verb::Delete => {
                if key_fields.is_empty() {
                    return Err(Error::unsupported(
                        "The collection has no key, so no record can be named.",
                    ));
                }
                let given = self::values(&change.key, shape, zone)?;
                for at in key_fields {
                    match given.iter().find(|(field, _)| *field == at) {
                        Some(pair) => edit.key.push(pair.clone()),
                        None => return Err(missing(&shape.fields[at])),
                    }
                }
                edit.conditions = conditions(change, shape, zone)?;
            }
            Verb::Call => return Err(Error::unsupported("A sheet has no operations to call.")),
        }
        Ok(edit)
    }
}

fn key_fields(shape: &Shape) -> Result<Vec<usize>> {
    let field = |key: &String| {
        let known = shape.fields.iter().position(|field| &field.key == key);
        known.ok_or_else(|| Error::invalid(format!("The key {key:?} is not a column.")).field(key))
    };
    shape.key.iter().map(field).collect()
}

fn may_be_counted(field: &Field, shape: &Shape) -> bool {
    field.generated && field.kind == Type::Integer && shape.key.as_slice() == [field.key.clone()]
}

fn missing(field: &Field) -> Error {
    Error::invalid(format!("The column {:?} needs a value.", field.key)).field(&field.key)
}

fn conditions(change: &Change, shape: &Shape, zone: &Zone) -> Result<Vec<(usize, Matcher)>> {
    let condition = |condition: &Condition| {
        let at = column(&condition.column, shape)?;
        Ok((at, Matcher::new(condition, &shape.fields[at], zone)?))
    };
    change.conditions.iter().map(condition).collect()
}

fn column(name: &str, shape: &Shape) -> Result<usize> {
    let known = shape.fields.iter().position(|field| field.key == name);
    known.ok_or_else(|| {
        Error::invalid(format!("The collection has no column {name:?}.")).field(name)
    })
}

/// Returns the values of a record or key, each as its column's type.
fn values(
    given: &Map<String, serde_json::Value>,
    shape: &Shape,
    zone: &Zone,
) -> Result<Vec<(usize, Value<'static>)>> {
    let mut values = Vec::with_capacity(given.len());
    for (column, argument) in given {
        let at = self::column(column, shape)?;
        let field = &shape.fields[at];
        let value = Value::from_argument(argument, field, zone);
        match value {
            Value::Unfit(_) => {
                return Err(Error::invalid(format!(
                    "The value for {column:?} is not of the column's type."
                ))
                .field(column));
            }
            Value::Null if !field.nullable => return Err(missing(field)),
            value => values.push((at, value)),
        }
    }
    Ok(values)
}

/// The file as it is, and where the records meant are.
struct SheetContent<'c> {
    source: &'c SheetSource<'c>,
    /// The whole file; `None` if it is too large to be in memory.
    whole: Option<&'c [u8]>,
    columns: ColumnPositions,
    /// Rows with the given key: their bytes, including line ends around them, and their cells.
    found: Vec<(Range<u64>, OwnedRow)>,
    /// Whether another row has the new key that an update gives its record.
    taken: bool,
    counter: i128,
}

impl<'c> SheetContent<'c> {
    fn find(
        source: &'c SheetSource<'c>,
        whole: Option<&'c [u8]>,
        edit: &SheetEdit<'_>,
    ) -> Result<Self> {
        let columns = ColumnPositions::locate(&source.head.names, source.shape);
        let judge = RowMatcher {
            key: edit.positions(&columns)?,
            guards: edit.guards(&columns)?,
            wanted: edit.key.iter().map(|(_, value)| value).collect(),
            new_key: new_key(edit),
            edit,
        };
        let mut content = Self {
            source,
            whole,
            columns,
            found: Vec::new(),
            taken: false,
            counter: 0,
        };
        if whole.is_none() && content.find_by_index(&judge)? {
            return Ok(content);
        }
        content.find_in_all(&judge)?;
        Ok(content)
    }

    /// Finds the rows by an index, but only if it has all that matter: those with the given key, with the new key,
    /// and with the greatest key.
    fn find_by_index(&mut self, judge: &RowMatcher<'_>) -> Result<bool> {
        let source = self.source;
        let Some((first, _)) = judge.key.first() else {
            return Ok(false);
        };
        if !source.has_index(*first) {
            return Ok(false);
        }
        let keys = [
            Some(judge.wanted.first().copied()),
            judge.new_key.as_ref().map(|key| key.first().copied()),
        ];
        for value in keys.into_iter().flatten().flatten() {
            source.rows_equal(*first, value, |row, span| self.judge(judge, row, span))?;
        }
        if judge.edit.counted.is_some() {
            source.greatest_row(*first, |row, span| self.judge(judge, row, span))?;
        }
        Ok(true)
    }

    fn find_in_all(&mut self, judge: &RowMatcher<'_>) -> Result<()> {
        let (source, whole) = (self.source, self.whole);
        // A row that a quote took in would go with a change of that cell, and a key in it would be taken for a new one.
        let parser = DelimitedParser::at(source.head.layout, source.head.body_at)?;
        let mut parser = parser.with_closed_quotes();
        parser.place.rows = source.head.rows;
        let mut row = |_: u64, row: crate::table::SheetRow<'_>, span: Range<usize>| {
            self.judge(judge, row, span.start as u64..span.end as u64);
            Ok(RowFlow::Continue)
        };
        match whole {
            Some(whole) => drop(parser.feed(&whole[source.head.body_at as usize..], &mut row)?),
            None => source.pieces(|piece| parser.feed(piece, &mut row))?,
        }
        match judge.edit.verb {
            Verb::Create => parser.finish(&mut row),
            // The change may be the one that repairs the last line.
            _ => parser.finish_last_line(&mut row),
        }
    }

    fn judge(&mut self, judge: &RowMatcher<'_>, row: crate::table::SheetRow<'_>, span: Range<u64>) {
        let edit = judge.edit;
        if row.is_blank() || self.found.iter().any(|(known, _)| *known == span) {
            return;
        }
        let value = |at: usize, position: usize| {
            cell_value(row.cell(position), &edit.shape.fields[at], edit.zone)
        };
        let is = |wanted: &[&Value<'_>]| {
            let mut pairs = judge.key.iter().zip(wanted);
            !wanted.is_empty()
                && pairs.all(|((at, position), wanted)| {
                    value(*at, *position).compare(wanted) == Some(std::cmp::Ordering::Equal)
                })
        };
        if is(&judge.wanted) {
            // To the caller, a record that does not meet the conditions is not there.
            if !judge
                .guards
                .iter()
                .all(|(at, position, guard)| guard.matches(&value(*at, *position)))
            {
                return;
            }
            self.found.push((span, row.to_owned()));
        } else if judge.new_key.as_deref().is_some_and(is) {
            self.taken = true;
        }
        if let Some(at) = edit.counted
            && let Some((_, position)) = judge.key.iter().find(|(field, _)| *field == at)
            && let Value::Integer(number) = value(at, *position)
        {
            self.counter = self.counter.max(number);
        }
    }

    fn size(&self) -> u64 {
        self.source.info.size
    }

    fn bytes(&self, range: Range<u64>) -> Result<Cow<'c, [u8]>> {
        match self.whole {
            Some(whole) => Ok(Cow::Borrowed(
                &whole[range.start as usize..range.end as usize],
            )),
            None => Ok(Cow::Owned(self.source.bytes(range)?)),
        }
    }

    /// Returns the bytes that change, and the record in them (for a delete, the one that was there).
    fn apply(&self, edit: &SheetEdit<'_>) -> Result<(files::Edit, String)> {
        match edit.verb {
            Verb::Create => self.create(edit),
            _ => {
                let (span, row) = match self.found.as_slice() {
                    [one] => one,
                    [] => return Err(Error::not_found("There is no record with this key.")),
                    _ => {
                        return Err(Error::ambiguous(
                            "Several records have this key; none was changed.",
                        ));
                    }
                };
                let span = self.trimmed(span)?;
                if edit.verb == Verb::Delete {
                    let record = self.record(row, edit)?;
                    return Ok((self.without(&span)?, record));
                }
                if self.taken {
                    return Err(Error::conflict("Another record has this key already."));
                }
                let mut cells: Vec<String> = row.as_row().cells().map(str::to_owned).collect();
                self.set(&mut cells, edit)?;
                let new = make_row(&cells)?;
                let bytes = self.bytes(span.clone())?;
                let layout = &self.source.head.layout;
                let changed = files::Edit {
                    at: span.start,
                    length: span.end - span.start,
                    content: changed_row(&bytes, row.as_row(), &cells, layout),
                };
                Ok((changed, self.record(&new, edit)?))
            }
        }
    }

    fn create(&self, edit: &SheetEdit<'_>) -> Result<(files::Edit, String)> {
        if self.source.head.is_open {
            let reason = "The last row has a quote that is never closed, so a row behind it would become part of it.";
            return Err(Error::upstream_error(reason));
        }
        if !self.found.is_empty() {
            let field = edit.shape.key.first().cloned().unwrap_or_default();
            return Err(Error::conflict("There is a record with this key already.").field(field));
        }
        let mut cells = vec![String::new(); self.columns.width];
        self.set(&mut cells, edit)?;
        if let Some(at) = edit.counted {
            let next = self.counter + 1;
            if next > weir_plugin_sdk::value::INTEGER_MAX {
                return Err(Error::conflict(
                    "There is no greater key left to count up to.",
                ));
            }
            cells[self.columns.position(at, edit.shape)?] =
                self.cell_text(&Value::Integer(next), at, edit)?;
        }
        let row = make_row(&cells)?;
        let record = self.record(&row, edit)?;
        Ok((self.appended(&cells)?, record))
    }

    fn set(&self, cells: &mut Vec<String>, edit: &SheetEdit<'_>) -> Result<()> {
        for (at, value) in &edit.values {
            let position = self.columns.position(*at, edit.shape)?;
            if cells.len() <= position {
                cells.resize(position + 1, String::new());
            }
            let text = self.cell_text(value, *at, edit)?;
            let field = &edit.shape.fields[*at];
            cells[position] = spelled_as(text, &cells[position], value, field, edit.zone);
        }
        Ok(())
    }

    /// Returns a value as its column writes it in a cell. Text is written as it is, even `=1+1`: what a
    /// spreadsheet program makes of it is up to that program, and changing it here would write a different record
    /// than requested.
    fn cell_text(&self, value: &Value<'_>, at: usize, edit: &SheetEdit<'_>) -> Result<String> {
        let field = &edit.shape.fields[at];
        value.to_text(field, edit.zone).ok_or_else(|| {
            let column = &field.key;
            let format = field.format.as_deref();
            let pattern =
                format.and_then(|format| format.date.as_deref().or(format.datetime.as_deref())).unwrap_or_default();
            Error::invalid(format!(
                "The value for {column:?} cannot be written whole the way the column is written ({pattern}); send one that fits it."
            ))
            .field(column)
        })
    }

    /// Appends a row. A line end is put before it if the file ends without one, and after it if the file ends with one. Programs
    /// that write Ctrl-Z after the last line read nothing after it, so it remains last.
    fn appended(&self, cells: &[String]) -> Result<files::Edit> {
        let layout = &self.source.head.layout;
        let mut content = Vec::with_capacity(256);
        let last = self.bytes(self.size().saturating_sub(2)..self.size())?;
        let has_sign = matches!(&*last, [b'\n' | b'\r', 0x1a]);
        let ended = has_sign || matches!(&*last, [.., b'\n' | b'\r']);
        if !ended {
            content.extend_from_slice(layout.line_end.bytes());
        }
        layout.write_row(cells.iter().map(String::as_str), &mut content);
        if ended {
            content.extend_from_slice(layout.line_end.bytes());
        }
        Ok(files::Edit {
            at: self.size() - u64::from(has_sign),
            length: 0,
            content,
        })
    }

    /// Removes the row and one line end: the one after it, or the one before it if the row was the last of a file
    /// without a final line end.
    fn without(&self, span: &Range<u64>) -> Result<files::Edit> {
        let (mut start, mut end) = (span.start, span.end);
        match &*self.bytes(end..(end + 2).min(self.size()))? {
            [b'\r', b'\n'] => end += 2,
            [b'\n' | b'\r', ..] => end += 1,
            _ => match &*self.bytes(start.saturating_sub(2)..start)? {
                [b'\r', b'\n'] => start -= 2,
                [.., b'\n' | b'\r'] => start -= 1,
                _ => {}
            },
        }
        Ok(files::Edit {
            at: start,
            length: end - start,
            content: Vec::new(),
        })
    }

    /// Returns a row's bytes without the line ends around it. A cell in quotes may itself begin or end with one, but then a
    /// quote is outside it. The span of a last row may count a line end that the file does not have: indexes are built as if it
    /// had one.
    fn trimmed(&self, span: &Range<u64>) -> Result<Range<u64>> {
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let row = self.bytes(span.clone())?;
        let before = row.iter().take_while(|byte| is_line_end(byte)).count();
        let after = row[before..]
            .iter()
            .rev()
            .take_while(|byte| is_line_end(byte))
            .count();
        Ok(span.start + before as u64..span.start + (row.len() - after) as u64)
    }

    /// Returns all recorded columns of a row.
    fn record(&self, row: &OwnedRow, edit: &SheetEdit<'_>) -> Result<String> {
        let fields = edit.shape.fields.iter().enumerate();
        let columns: Vec<(usize, &Field)> = fields
            .map(|(at, field)| Ok((self.columns.position(at, edit.shape)?, field)))
            .collect::<Result<_>>()?;
        Ok(records::record(members(row.as_row(), &columns, edit.zone)))
    }
}

/// Returns the row of these cells. A row that is read as blank would not be a record.
fn make_row(cells: &[String]) -> Result<OwnedRow> {
    let row = OwnedRow::from_cells(cells.iter().map(String::as_str));
    match row.as_row().is_blank() {
        true => Err(Error::invalid(
            "A record of empty values only cannot be kept in a sheet.",
        )),
        false => Ok(row),
    }
}

/// The rows that are looked for.
struct RowMatcher<'j> {
    edit: &'j SheetEdit<'j>,
    /// Field and position of the key's columns.
    key: Vec<(usize, usize)>,
    guards: Vec<(usize, usize, &'j Matcher)>,
    wanted: Vec<&'j Value<'j>>,
    new_key: Option<Vec<&'j Value<'static>>>,
}

impl SheetEdit<'_> {
    /// Returns the places of the key's columns in the file, in the key's order.
    fn positions(&self, columns: &ColumnPositions) -> Result<Vec<(usize, usize)>> {
        let fields = self.key.iter().map(|(at, _)| *at).chain(self.counted);
        fields
            .map(|at| Ok((at, columns.position(at, self.shape)?)))
            .collect()
    }

    /// Returns the places of the conditions' columns in the file.
    fn guards(&self, columns: &ColumnPositions) -> Result<Vec<(usize, usize, &Matcher)>> {
        let conditions = self.conditions.iter();
        conditions
            .map(|(at, matcher)| Ok((*at, columns.position(*at, self.shape)?, matcher)))
            .collect()
    }
}

/// Returns the key that an update gives its record, if it changes.
fn new_key<'e>(edit: &'e SheetEdit<'_>) -> Option<Vec<&'e Value<'static>>> {
    if edit.verb != Verb::Update {
        return None;
    }
    let changed = |at: usize| {
        edit.values
            .iter()
            .find(|(field, _)| *field == at)
            .map(|(_, value)| value)
    };
    edit.key
        .iter()
        .any(|(at, _)| changed(*at).is_some())
        .then(|| {
            edit.key
                .iter()
                .map(|(at, old)| changed(*at).unwrap_or(old))
                .collect()
        })
}
