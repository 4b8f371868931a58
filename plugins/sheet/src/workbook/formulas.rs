//! Formulas that no program has computed, as libraries write them: their cells have no value.

/// The formulas of a sheet without a value.
#[derive(Debug, Default)]
pub(super) struct UncomputedFormulas {
    count: u64,
    /// The row of the first, counted from 0.
    first_row: Option<u32>,
}

impl UncomputedFormulas {
    /// Adds formulas, the first of which is in a row.
    pub(super) fn add(&mut self, row: u32, count: u64) {
        self.count = self.count.saturating_add(count);
        self.first_row.get_or_insert(row);
    }

    /// Returns the note for a person who drafts a contract; `None` if there are no such formulas.
    pub(super) fn note(&self) -> Option<String> {
        let row = self.first_row?.saturating_add(1);
        let which = match self.count {
            1 => format!("A formula in row {row} has no value"),
            count => format!("{count} formulas have no value, the first in row {row}"),
        };
        Some(format!(
            "{which}, and null is read: open the workbook in a spreadsheet program and save it."
        ))
    }
}
