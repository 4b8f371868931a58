//! Notes what the cells of a column show about it.

use calamine::Data;

use super::rounded;
use crate::infer::looks_otherwise;

/// Notes columns of whole numbers with more than the 15 digits that numbers of a workbook have.
pub(super) fn note_long(has_long: &mut [bool], cells: &[Data], left: usize) {
    for (column, cell) in cells.iter().enumerate() {
        let number = match cell {
            Data::Float(number) => *number,
            Data::Int(integer) => *integer as f64,
            _ => continue,
        };
        if number.abs() >= 1e15
            && rounded(number) != number
            && let Some(long) = has_long.get_mut(left + column)
        {
            *long = true;
        }
    }
}

/// Notes columns of text: a text cell that would read as something else was made text on purpose, such as `007` or a
/// number with an apostrophe.
pub(super) fn note_textual(textual: &mut [bool], cells: &[Data], left: usize) {
    for (column, cell) in cells.iter().enumerate() {
        if let Data::String(text) = cell
            && looks_otherwise(text)
            && let Some(textual) = textual.get_mut(left + column)
        {
            *textual = true;
        }
    }
}

/// Notes columns with times of day or durations.
pub(super) fn note_clocks(clocks: &mut [bool], cells: &[Data], left: usize) {
    for (column, cell) in cells.iter().enumerate() {
        if matches!(cell, Data::DurationIso(_))
            && let Some(clocks) = clocks.get_mut(left + column)
        {
            *clocks = true;
        }
    }
}
