//! Reads a contract's settings for one file.

use serde::Deserialize;
use weir_plugin_sdk::Error;
use weir_plugin_sdk::adapter::parse_settings;

use crate::layout::is_delimiter;

#[derive(Clone, Debug)]
pub(crate) struct SheetSettings {
    pub(crate) connection: String,
    pub(crate) path: String,
    pub(crate) sheet: Option<String>,
    /// The row of the header, counted from 1; `None` means the first row that is not blank.
    pub(crate) header_row: Option<u32>,
    pub(crate) format: SheetFormat,
    pub(crate) index: UseIndex,
}

/// Whether a file is read through indexes on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UseIndex {
    /// The file is read through indexes if it does not fit into memory.
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SheetFormat {
    /// A delimiter, or none: found out from the header.
    Delimited(Option<u8>),
    /// The usual name of the format, for messages.
    Workbook(&'static str),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSheetSettings {
    connection: String,
    #[serde(alias = "file")]
    path: String,
    sheet: Option<String>,
    header_row: Option<u32>,
    delimiter: Option<String>,
    #[serde(default)]
    index: UseIndex,
}

impl SheetSettings {
    pub(crate) fn parse(settings: &str) -> Result<Self, Error> {
        let given: RawSheetSettings = parse_settings(settings)?;
        let format = format_of(&given.path)?;
        let format = match (&given.delimiter, format) {
            (None, format) => format,
            (Some(delimiter), SheetFormat::Delimited(_)) => {
                SheetFormat::Delimited(Some(parse_delimiter(delimiter)?))
            }
            (Some(_), SheetFormat::Workbook(name)) => {
                let message = format!("{name} files have no delimiter; drop `delimiter`.");
                return Err(Error::invalid(message).field("delimiter"));
            }
        };
        if given.sheet.is_some() && matches!(format, SheetFormat::Delimited(_)) {
            let message = "A delimited file has no sheets; drop `sheet`.";
            return Err(Error::invalid(message).field("sheet"));
        }
        if given.header_row == Some(0) {
            let message =
                "Rows are counted from 1; drop `header_row` for the first row that is not blank.";
            return Err(Error::invalid(message).field("header_row"));
        }
        if given.index == UseIndex::Always && matches!(format, SheetFormat::Workbook(_)) {
            let message = "A workbook has no index; drop `index`, or save the sheet as CSV.";
            return Err(Error::invalid(message).field("index"));
        }
        let RawSheetSettings {
            connection,
            path,
            sheet,
            header_row,
            index,
            ..
        } = given;
        Ok(Self {
            connection,
            path,
            sheet,
            header_row,
            format,
            index,
        })
    }
}

fn format_of(path: &str) -> Result<SheetFormat, Error> {
    let extension = path
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("csv" | "txt") => Ok(SheetFormat::Delimited(None)),
        Some("tsv" | "tab") => Ok(SheetFormat::Delimited(Some(b'\t'))),
        Some("xlsx" | "xlsm") => Ok(SheetFormat::Workbook("XLSX")),
        Some("ods") => Ok(SheetFormat::Workbook("ODS")),
        _ => Err(Error::invalid(format!(
            "{path:?} does not end in .csv, .tsv, .txt, .xlsx, .xlsm or .ods."
        ))
        .field("path")),
    }
}

fn parse_delimiter(delimiter: &str) -> Result<u8, Error> {
    match delimiter.as_bytes() {
        _ if delimiter == "tab" => Ok(b'\t'),
        [byte] if is_delimiter(*byte) => Ok(*byte),
        _ => Err(Error::invalid(
            "The delimiter must be one ASCII character, not a quote or a line end.",
        )
        .field("delimiter")),
    }
}
