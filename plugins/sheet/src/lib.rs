//! Spreadsheets as collections: CSV and TSV files that can be written, XLSX and ODS files that can be read.
//!
//! A delimited file is read in one streaming pass ([`stream`]), judged row by row ([`select`]); small enough ones are kept in
//! the instance as a [`table`], by version, so the next call reads nothing. The decisions about headers, types, ragged rows
//! and the rest are in `docs/adapters/sheet.md`.

mod amounts;
mod cache;
mod changed_row;
mod describe;
mod header;
mod hints;
mod indexed;
mod infer;
mod key;
mod layout;
mod quotes;
mod readings;
mod scan;
mod select;
mod settings;
mod sort_key;
mod spelling;
mod stream;
mod summarize;
mod table;
mod workbook;
mod write;

#[cfg(test)]
mod tests;

use weir_plugin_sdk::serde_json::{self, json};
use weir_plugin_sdk::{
    Adapter, Change, Error, Page, Query, Shape, SummaryPage, SummaryQuery, Zone,
};

use indexed::SheetSource;
use settings::SheetSettings;

/// An open file.
pub struct SheetAdapter {
    settings: SheetSettings,
    shape: Shape,
    zone: Zone,
}

impl Adapter for SheetAdapter {
    const NAME: &'static str = "sheet";
    const REQUESTS: &'static [&'static str] = &["files"];

    fn settings_schema() -> serde_json::Value {
        json!({
            "type": "object",
            "properties": {
                "connection": { "type": "string", "description": "Name of the file root the operator granted." },
                "path": { "type": "string", "description": "The file, relative to the root: .csv, .tsv, .xlsx or .ods." },
                "sheet": { "type": "string", "description": "Sheet of a workbook; the first one without it." },
                "header_row": { "type": "integer", "minimum": 1, "description": "Row of the headers; the first that is not blank without it." },
                "delimiter": { "type": "string", "description": "One character; found out from the header without it." },
                "index": { "enum": ["auto", "always", "never"], "description": "Whether a file too large for memory is read through indexes on disk." }
            },
            "required": ["connection", "path"],
            "additionalProperties": false
        })
    }

    fn describe(settings: &str) -> Result<Shape, Error> {
        describe::describe(&SheetSettings::parse(settings)?)
    }

    fn open(settings: &str, shape: &Shape) -> Result<Self, Error> {
        Ok(Self {
            settings: SheetSettings::parse(settings)?,
            shape: shape.clone(),
            zone: Zone::from_shape(shape)?,
        })
    }

    fn read(&self, query: &Query) -> Result<Page, Error> {
        scan::read(&self.settings, &self.shape, &self.zone, query)
    }

    fn summarize(&self, query: &SummaryQuery) -> Result<SummaryPage, Error> {
        summarize::summarize(&self.settings, &self.shape, &self.zone, query)
    }

    fn write(&self, change: &Change) -> Result<String, Error> {
        write::write(&self.settings, &self.shape, &self.zone, change)
    }

    /// Builds the index of a column, which is the work that was asked for.
    fn later(&self, column: &str) -> Result<bool, Error> {
        let info = scan::stat(&self.settings)?;
        SheetSource::open(&self.settings, &self.shape, &self.zone, &info)?.build(column)
    }
}

weir_plugin_sdk::export!(SheetAdapter);
