//! What calamine does not report about the cells of an ODS sheet: which have an error, since LibreOffice writes errors as
//! marked text, which words are those of a drawing, and which formulas have no value.

use std::io::{BufReader, Cursor};

use calamine::{Data, Range};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use weir_plugin_sdk::Error;
use zip::ZipArchive;

use super::broken;
use super::drawings::{has_text_within, read_text};
use super::formulas::UncomputedFormulas;

/// The attributes in which a cell has its value.
pub(super) const VALUES: [&str; 5] = [
    "office:value",
    "office:string-value",
    "office:date-value",
    "office:time-value",
    "office:boolean-value",
];

/// Empties the cells of a sheet that hold an error, and takes the words of drawings out of the others. Returns the formulas that
/// have no value.
pub(super) fn clear(
    bytes: &[u8],
    sheet: &str,
    range: &mut Range<Data>,
) -> Result<UncomputedFormulas, Error> {
    let mut formulas = UncomputedFormulas::default();
    let is_text = |(_, _, cell): (usize, usize, &Data)| matches!(cell, Data::String(_));
    if !range.used_cells().any(is_text) {
        return Ok(formulas);
    }
    let unreadable = |error: &dyn std::fmt::Display| broken("ODS", error);
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| unreadable(&error))?;
    let content = archive
        .by_name("content.xml")
        .map_err(|error| unreadable(&error))?;
    let mut reader = Reader::from_reader(BufReader::new(content));
    let config = reader.config_mut();
    config.check_end_names = false;
    let mut place = CellPosition::default();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = reader
            .read_event_into(&mut buffer)
            .map_err(|error| unreadable(&error))?;
        let has_content = matches!(event, Event::Start(_));
        match event {
            Event::Start(tag) | Event::Empty(tag) => match tag.name().as_ref() {
                "table:table" if place.is_within => return Ok(formulas),
                "table:table" => {
                    place.is_within = attribute(&tag, "table:name").as_deref() == Some(sheet)
                }
                _ if !place.is_within => {}
                "table:table-row" => place.begin_row(&tag),
                "table:table-cell" | "table:covered-table-cell" => {
                    let columns = place.take_columns(&tag);
                    if is_uncomputed(&tag) {
                        formulas.add(place.rows.0, place.count(columns));
                    }
                    let is_error =
                        attribute(&tag, "calcext:value-type").as_deref() == Some("error");
                    if is_error {
                        place.fill(range, columns, &Data::Empty);
                    } else if has_content
                        && has_text_within(&tag)
                        && let Some(text) = read_text(&mut reader)?
                    {
                        place.fill(range, columns, &Data::String(text));
                    }
                }
                _ => {}
            },
            Event::End(tag) if place.is_within && tag.name().as_ref() == "table:table" => {
                return Ok(formulas);
            }
            Event::Eof => return Ok(formulas),
            _ => {}
        }
    }
}

/// The reader's place in the sheet.
#[derive(Default)]
struct CellPosition {
    is_within: bool,
    /// The first row that the current element covers, and the first one after it.
    rows: (u32, u32),
    /// The column of the next cell.
    column: u32,
}

impl CellPosition {
    fn begin_row(&mut self, tag: &BytesStart<'_>) {
        let count = repeats(tag, "table:number-rows-repeated");
        self.rows = (self.rows.1, self.rows.1.saturating_add(count));
        self.column = 0;
    }

    /// Returns the first column that a cell covers, and the first one after it.
    fn take_columns(&mut self, tag: &BytesStart<'_>) -> (u32, u32) {
        let first = self.column;
        self.column = first.saturating_add(repeats(tag, "table:number-columns-repeated"));
        (first, self.column)
    }

    /// Gives another value to the cells that the current element represents, by the columns that it covers.
    fn fill(&self, range: &mut Range<Data>, columns: (u32, u32), value: &Data) {
        let (Some(start), Some(end)) = (range.start(), range.end()) else {
            return;
        };
        for row in self.rows.0.max(start.0)..self.rows.1.min(end.0.saturating_add(1)) {
            for column in columns.0.max(start.1)..columns.1.min(end.1.saturating_add(1)) {
                range.set_value((row, column), value.clone());
            }
        }
    }

    /// Returns how many cells the current element represents, by the columns that it covers.
    fn count(&self, columns: (u32, u32)) -> u64 {
        u64::from(self.rows.1 - self.rows.0) * u64::from(columns.1 - columns.0)
    }
}

/// Returns `true` for a cell with a formula and no value. That of a text may be its content.
fn is_uncomputed(tag: &BytesStart<'_>) -> bool {
    attribute(tag, "table:formula").is_some()
        && attribute(tag, "office:value-type").as_deref() != Some("string")
        && !VALUES.iter().any(|name| attribute(tag, name).is_some())
}

/// Returns how many rows or columns an element represents.
pub(super) fn repeats(tag: &BytesStart<'_>, name: &str) -> u32 {
    attribute(tag, name).map_or(1, |number| parse_repeats(&number))
}

/// Reads how often something is repeated; once if that is not a number.
pub(super) fn parse_repeats(number: &str) -> u32 {
    let number = number.parse::<u64>();
    number.map_or(1, |number| u32::try_from(number).unwrap_or(u32::MAX))
}

pub(super) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = tag.try_get_attribute(name).ok().flatten()?;
    let value = attribute.normalized_value(XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}
