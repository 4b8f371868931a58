//! The shape of a file: names from its header, types, nulls and the key from all its rows.

use std::collections::BTreeSet;

use weir_plugin_sdk::files::Info;
use weir_plugin_sdk::shape::{Capabilities, Summaries};
use weir_plugin_sdk::{Comparison, Error, Field, Shape, Type, serde_json};

use crate::header::{names, unnamed};
use crate::infer::{ColumnProfile, MOSTLY_CELLS_MIN, MOSTLY_PERCENT, MajorityReading};
use crate::key;
use crate::layout::DelimitedLayout;
use crate::scan::{is_header, stat};
use crate::settings::{SheetFormat, SheetSettings};
use crate::stream::{DelimitedParser, RowFlow, SheetProgress, read_pieces};
use crate::table::SheetRow;
use crate::workbook;

/// Hashes that looking for a key may hold at once: 16 MB.
const HASHES_MAX: usize = 2_000_000;

pub(crate) fn describe(settings: &SheetSettings) -> Result<Shape, Error> {
    let info = stat(settings)?;
    let survey = match settings.format {
        SheetFormat::Delimited(delimiter) => survey_file(settings, &info, delimiter)?,
        SheetFormat::Workbook(_) => survey_workbook(settings, &info)?,
    };
    if survey.names.is_empty() {
        return Err(Error::invalid(
            "The file is empty: it has no header row. Write one with the names of its columns.",
        ));
    }
    let mut shape = survey.shape(settings);
    if matches!(settings.format, SheetFormat::Workbook(_)) && settings.sheet.is_none() {
        shape.parts = workbook::parts(settings, &info)?;
    }
    Ok(shape)
}

/// The observations so far.
#[derive(Default)]
struct SheetSurvey {
    names: Vec<String>,
    columns: Vec<ColumnProfile>,
    textual: Vec<bool>,
    rows: u64,
    /// The cells of the header that hold something.
    given_names: usize,
    /// The first text of the last row, if that names a total.
    total: Option<String>,
    /// Notes on the file.
    notes: Vec<String>,
}

/// Words that begin a row of totals, in small letters.
const TOTALS: &[&str] = &[
    "total",
    "totals",
    "grand total",
    "subtotal",
    "sum",
    "summe",
    "gesamt",
    "gesamtsumme",
    "totale",
    "total general",
    "итого",
];

/// Notes that cells have blanks around them, if any have.
fn note_padding(name: &str, column: &ColumnProfile) -> Option<String> {
    let cells = match column.padded {
        0 => return None,
        padded => counted(padded, "cell has", "cells have"),
    };
    Some(match column.is_padded_only() {
        true => format!(
            "The column {name:?}: {cells} blanks around a number or a date, and so it stays text: without them it can be compared and added."
        ),
        false => format!(
            "The column {name:?}: {cells} blanks around the text, which are part of it when it is compared."
        ),
    })
}

/// Describes the treatment of the cells of a column that are unlike most. Words that are texts in other columns remain texts
/// everywhere, since the words of a contract count in all columns.
fn note_of(column: &str, mut mostly: MajorityReading, texts: &BTreeSet<String>) -> String {
    let words = std::mem::take(&mut mostly.reading.null_words).into_iter();
    let (words, other_words): (Vec<_>, Vec<_>) = words.partition(|word| !texts.contains(word));
    let kind = serde_json::to_value(mostly.reading.kind).expect("a word");
    let kind = kind.as_str().unwrap_or_default();
    let words = words.join("`, `");
    let mut note = format!("The column {column:?} is read as {kind}");
    if !words.is_empty() {
        note.push_str(&format!(", with `{words}` for an empty cell"));
    }
    if !other_words.is_empty() {
        let words = other_words.join("`, `");
        note.push_str(&format!(
            "; `{words}` is null here, and a text in other columns, so that it is no word for an empty cell"
        ));
    }
    if mostly.others > 0 {
        let cells = counted(mostly.others, "cell is", "cells are");
        let examples: Vec<String> = mostly
            .examples
            .iter()
            .map(|text| format!("{text:?}"))
            .collect();
        let examples = examples.join(", ");
        note.push_str(&format!(
            "; {cells} something else, such as {examples}, and null then"
        ));
    }
    note.push('.');
    note
}

fn counted(count: u64, one: &str, several: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        count => format!("{count} {several}"),
    }
}

impl SheetSurvey {
    fn row(&mut self, row: SheetRow<'_>) {
        if row.is_blank() {
            return;
        }
        self.rows += 1;
        let first = row
            .cells()
            .find(|cell| !cell.is_empty())
            .unwrap_or_default();
        let bare = first.trim().trim_end_matches(':').to_lowercase();
        self.total = TOTALS.contains(&bare.as_str()).then(|| first.to_owned());
        for (index, cell) in row.cells().enumerate() {
            // Cells to the right of the header make separate columns, if they contain anything.
            while index >= self.columns.len() && !cell.is_empty() {
                self.columns.push(ColumnProfile::new(false));
            }
            if let Some(column) = self.columns.get_mut(index) {
                column.note(cell);
            }
        }
        while self
            .columns
            .iter()
            .map(|column| column.unique.held())
            .sum::<usize>()
            > HASHES_MAX
        {
            let holds = |column: &ColumnProfile| column.unique.held() > 0;
            let columns = &self.columns;
            let least = columns
                .iter()
                .rposition(|column| holds(column) && column.unique.has_repeats())
                .or_else(|| columns.iter().rposition(holds));
            let least = least.expect("the sum is not zero");
            self.columns[least].unique.give_up();
        }
    }

    fn header(&mut self, row: SheetRow<'_>) {
        self.names = names(row.cells());
        self.given_names = row.cells().filter(|cell| !cell.trim().is_empty()).count();
        self.columns = columns(&self.names);
    }

    fn shape(mut self, settings: &SheetSettings) -> Shape {
        let is_workbook = matches!(settings.format, SheetFormat::Workbook(_));
        let mut shape = Shape::new(file_name(&settings.path));
        let mut positions = Vec::new();
        // The notes on columns that are read as what most cells are, and the words of columns that are texts.
        let mut likely: Vec<(usize, String)> = Vec::new();
        let mut mostly_read: Vec<(usize, String, MajorityReading)> = Vec::new();
        let mut texts = BTreeSet::new();
        let decimal_comma = self.decimal_comma();
        let groups_by_points = self.columns.iter().any(|column| {
            column.cells() > 0
                && column.kind(false) == Type::String
                && column.readings.groups_by_points()
        });
        for (index, column) in self.columns.iter().enumerate() {
            let name = self
                .names
                .get(index)
                .cloned()
                .unwrap_or_else(|| unnamed(index));
            // A column with neither header nor cells does not count.
            if column.cells() == 0 && name == unnamed(index) {
                continue;
            }
            let textual = self.textual.get(index).copied().unwrap_or(false);
            let kind = if textual {
                Type::String
            } else {
                column.kind(is_workbook)
            };
            let nullable = column.cells() < self.rows || self.rows == 0;
            let mut field = Field::new(&name, kind).nullable(nullable);
            field.readings = match kind {
                Type::String if !textual && column.cells() > 0 => {
                    let mut readings = column.readings.of_text(decimal_comma);
                    if readings.is_empty()
                        && let Some(amounts) = column.amounts(decimal_comma)
                    {
                        let note = format!("The column {name:?} {}", amounts.note);
                        readings = amounts.readings;
                        match readings.is_empty() {
                            true => shape.notes.push(note),
                            false => likely.push((shape.fields.len(), note)),
                        }
                    }
                    if readings.is_empty()
                        && let Some(mostly) = column.mostly(decimal_comma, is_workbook)
                    {
                        readings.push(mostly.reading.clone());
                        mostly_read.push((shape.fields.len(), name.clone(), mostly));
                    }
                    readings
                }
                // Nothing in the file rules out that a point separates thousands.
                Type::Number if !is_workbook && decimal_comma != Some(false) => {
                    column.readings.of_points(kind, groups_by_points)
                }
                _ => Vec::new(),
            };
            if kind == Type::String && field.readings.is_empty() {
                shape.notes.extend(column.hints.describe(&name));
                texts.extend(column.null_words.iter().cloned());
            }
            shape.notes.extend(note_padding(&name, column));
            shape.fields.push(field);
            positions.push(index);
        }
        let key = self.key(&shape.fields, &positions);
        likely.extend(
            mostly_read
                .into_iter()
                .map(|(of, name, mostly)| (of, note_of(&name, mostly, &texts))),
        );
        likely.sort();
        for (of, note) in likely {
            match Some(of) == key {
                // A record is known by its key: no cell of it becomes null.
                true => shape.fields[of].readings.clear(),
                false => shape.notes.push(note),
            }
        }
        for reading in shape
            .fields
            .iter_mut()
            .flat_map(|field| &mut field.readings)
        {
            reading.null_words.retain(|word| !texts.contains(word));
        }
        self.add_key(key, &positions, is_workbook, &mut shape);
        shape.capabilities = capabilities(settings, &shape.fields);
        shape.notes.extend(self.note_total());
        shape.notes.extend(self.preamble());
        shape.notes.append(&mut self.notes);
        shape
    }

    /// Makes a column the key, or notes which one nearly is.
    fn add_key(
        &mut self,
        key: Option<usize>,
        positions: &[usize],
        is_workbook: bool,
        shape: &mut Shape,
    ) {
        let Some(at) = key else {
            let near = self.note_near_key(&shape.fields, positions);
            return shape.notes.extend(near);
        };
        let field = &mut shape.fields[at];
        field.nullable = false;
        field.generated = field.kind == Type::Integer && !is_workbook;
        shape.key = vec![field.key.clone()];
    }

    fn note_total(&self) -> Option<String> {
        let total = self.total.as_ref()?;
        Some(format!(
            "The last row looks like a total ({total:?}). It is a record like the others."
        ))
    }

    /// Notes that the row taken for the header may be a title, if the rows below have more cells.
    fn preamble(&self) -> Option<String> {
        let given = self.given_names;
        let widest = self.columns.len();
        (given == 1 && widest > 2 && self.rows > 1).then(|| {
            format!(
                "The row of the header has one cell, and rows below have {widest}: if it is a title, say in which row the header is: `header_row: 2`."
            )
        })
    }

    /// Returns whether the decimal mark of this file is a comma, if all columns that can tell agree.
    fn decimal_comma(&self) -> Option<bool> {
        let mut readings = self
            .columns
            .iter()
            .filter_map(|column| match column.kind(false) {
                // A column with only `1.234` does not contradict the comma of others.
                kind @ (Type::Number | Type::Decimal) => (column.has_fractions()
                    && column.readings.of_points(kind, false).is_empty())
                .then_some(false),
                Type::String => column.has_decimal_comma(),
                _ => None,
            });
        let first = readings.next()?;
        readings.all(|other| other == first).then_some(first)
    }

    /// Returns the columns that are named like a key and may be one, those named most like one first.
    fn likely_keys(&self, fields: &[Field]) -> Vec<usize> {
        let may = |field: &Field| {
            self.rows == 0 || matches!(field.kind, Type::String | Type::Integer | Type::Decimal)
        };
        let ranked = fields.iter().enumerate();
        let ranked = ranked.filter(|(_, field)| may(field));
        let ranked = ranked.filter_map(|(at, field)| Some((key::rank(&field.key)?, at)));
        let mut ranked: Vec<(usize, usize)> = ranked.collect();
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, at)| at).collect()
    }

    /// Returns the key: of the columns named like a key whose cells are all there and all different, it is the one
    /// named most like one.
    fn key(&mut self, fields: &[Field], positions: &[usize]) -> Option<usize> {
        let mut likely = self.likely_keys(fields).into_iter();
        if self.rows == 0 {
            return likely.find(|at| fields[*at].key.eq_ignore_ascii_case("id"));
        }
        likely.find(|at| !fields[*at].nullable && self.columns[positions[*at]].unique.holds())
    }

    /// Notes which column would be the key but for a few cells.
    fn note_near_key(&mut self, fields: &[Field], positions: &[usize]) -> Option<String> {
        self.likely_keys(fields).into_iter().find_map(|at| {
            let column = &mut self.columns[positions[at]];
            let empty = self.rows - column.cells();
            let repeats = column.unique.repeats()?;
            let others = repeats + empty;
            let is_near = self.rows >= MOSTLY_CELLS_MIN
                && others * 100 <= self.rows * (100 - MOSTLY_PERCENT);
            let counts = [
                (repeats, "cell is like an earlier one", "cells are like an earlier one"),
                (empty, "cell is empty", "cells are empty"),
            ];
            let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
            let counts: Vec<String> = counts
                .map(|(count, one, several)| counted(count, one, several))
                .collect();
            is_near.then(|| {
                format!(
                    "The column {:?} is named like a key, but of {} rows {}: once that is mended, a record is known by it.",
                    fields[at].key,
                    self.rows,
                    counts.join(" and ")
                )
            })
        })
    }
}

fn columns(names: &[String]) -> Vec<ColumnProfile> {
    names
        .iter()
        .map(|name| ColumnProfile::new(key::rank(name).is_some()))
        .collect()
}

fn survey_file(
    settings: &SheetSettings,
    info: &Info,
    delimiter: Option<u8>,
) -> Result<SheetSurvey, Error> {
    let mut survey = SheetSurvey::default();
    let mut progress = SheetProgress::new(None);
    let mut parser = None;
    let mut row = |number: u64, row: SheetRow<'_>| {
        if survey.names.is_empty() {
            if is_header(settings, number, row) {
                survey.header(row);
            }
        } else {
            survey.row(row);
            progress.row(survey.rows)?;
        }
        Ok(RowFlow::Continue)
    };
    read_pieces(settings, info.size, |piece| {
        if parser.is_none() {
            let layout = DelimitedLayout::find(piece, delimiter, settings.header_row)?;
            parser = Some(DelimitedParser::new(layout).with_closed_quotes());
        }
        let parser = parser.as_mut().expect("it was just made");
        parser.feed(piece, &mut |number, cells, _| row(number, cells))
    })?;
    if let Some(mut parser) = parser {
        parser.finish(&mut |number, cells, _| row(number, cells))?;
        survey.notes.extend(parser.unclear_quotes.note());
    }
    Ok(survey)
}

fn survey_workbook(settings: &SheetSettings, info: &Info) -> Result<SheetSurvey, Error> {
    let mut table = workbook::load(settings, info)?;
    let mut survey = SheetSurvey {
        textual: std::mem::take(&mut table.textual),
        ..SheetSurvey::default()
    };
    survey.names = std::mem::take(&mut table.names);
    survey.columns = columns(&survey.names);
    survey.given_names = table.given_names;
    survey.notes.extend(std::mem::take(&mut table.notes));
    table.rows().for_each(|row| survey.row(row));
    Ok(survey)
}

fn capabilities(settings: &SheetSettings, fields: &[Field]) -> Capabilities {
    let mut capabilities = Capabilities {
        read: true,
        order: vec!["*".to_owned()],
        summaries: Summaries::All,
        ..Capabilities::default()
    };
    match settings.format {
        SheetFormat::Delimited(_) => {
            capabilities.guarded_write = true;
            capabilities.write = ["create", "update", "delete"].map(str::to_owned).to_vec();
        }
        SheetFormat::Workbook(name) => {
            capabilities.read_only = Some(format!("{name} files are read-only"))
        }
    }
    // Every column has all comparisons: the value table defines which make sense for a type, the same for all adapters.
    debug_assert!(!fields.is_empty());
    let all = Comparison::ALL
        .map(|comparison| comparison.name().to_owned())
        .to_vec();
    capabilities.matches.insert("*".to_owned(), all);
    capabilities
}

fn file_name(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    name.rsplit_once('.').map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use weir_plugin_sdk::testing::{self, files};

    use super::*;

    #[test]
    fn a_column_that_is_nearly_a_key_is_noted() {
        let notes = |rows: &[&str]| {
            testing::reset();
            let many: String = (0..60).map(|at| format!("A-{at},x\n")).collect();
            let text = format!("order_no,city\n{many}{}", rows.concat());
            files::put("data", "x.csv", text);
            let settings = r#"{"connection":"data","path":"x.csv"}"#;
            let settings = SheetSettings::parse(settings).expect("settings");
            let shape = describe(&settings).expect("a shape");
            (shape.key.join(","), shape.notes.join(" "))
        };
        assert_eq!(notes(&[]), ("order_no".to_owned(), String::new()));
        let (key, text) = notes(&["A-7,x\n", "A-7,x\n", ",x\n"]);
        assert_eq!(key, "");
        assert_eq!(
            text,
            "The column \"order_no\" is named like a key, but of 63 rows 2 cells are like an earlier one and 1 cell is empty: once that \
             is mended, a record is known by it."
        );
        // Lines of orders have their number many times.
        assert_eq!(notes(&["A-7,x\n"; 9]), (String::new(), String::new()));
    }
}
