//! Error cells of an XLSX sheet whose error calamine does not know, such as `#GETTING_DATA` or `#SPILL!`. Like other errors,
//! they are not values.

use std::io::Cursor;

use calamine::{Xlsx, XlsxError};
use weir_plugin_sdk::Error;

use super::broken;

/// The cells after such errors. calamine does not count an error that it refuses, so that a cell without an explicit position
/// is taken for the one before it.
#[derive(Default)]
pub(super) struct UnknownErrors {
    /// The cells of the sheet so far, in its order.
    count: usize,
    follows_error: bool,
    /// The number of cells before one that follows an error, and the position that it was given.
    followers: Vec<(usize, (u32, u32))>,
}

impl UnknownErrors {
    /// Notes an error cell.
    pub(super) fn note(&mut self) {
        self.count += 1;
        self.follows_error = true;
    }

    /// Notes another cell.
    pub(super) fn note_cell(&mut self, position: (u32, u32)) {
        if std::mem::take(&mut self.follows_error) {
            self.followers.push((self.count, position));
        }
        self.count += 1;
    }

    /// Refuses a sheet if a cell was given a position other than its own. Formulas are read without values, and count
    /// every cell.
    pub(super) fn check(
        &self,
        workbook: &mut Xlsx<Cursor<&[u8]>>,
        name: &str,
    ) -> Result<(), Error> {
        if self.followers.is_empty() {
            return Ok(());
        }
        let unreadable = |error: XlsxError| broken("sheet", &error);
        let mut reader = workbook.worksheet_cells_reader(name).map_err(unreadable)?;
        let mut count = 0;
        for (before, position) in &self.followers {
            let mut cell = None;
            while count <= *before {
                cell = reader.next_formula().map_err(unreadable)?;
                count += 1;
            }
            if cell.is_none_or(|cell| cell.get_position() != *position) {
                return Err(Error::upstream_error(
                    "The sheet has an error cell that is unknown here, and does not say where its cells are; save it with a spreadsheet program.",
                ));
            }
        }
        Ok(())
    }
}
