//! Makes column names from header cells: a blank or repeated one gets a unique name.

use std::collections::HashSet;

use weir_plugin_sdk::{Error, Shape};

use crate::workbook::without_midnight;

/// The bound on columns: more than a person has ever typed a header for.
pub(crate) const COLUMNS_MAX: usize = 2_000;
const NAME_BYTES_MAX: usize = 256;

/// Returns one name per column, all different: a blank or very long header becomes `column_N` (counted from 1), and the
/// second `price` becomes `price_2`.
pub(crate) fn names<'a>(cells: impl Iterator<Item = &'a str>) -> Vec<String> {
    let given: Vec<&str> = cells.map(trim_name).collect();
    let mut taken: HashSet<String> = HashSet::new();
    let all: HashSet<&str> = given.iter().copied().collect();
    let mut names = Vec::with_capacity(given.len());
    for (index, cell) in given.iter().enumerate() {
        let wanted = if cell.is_empty() || cell.len() > NAME_BYTES_MAX {
            unnamed(index)
        } else {
            (*cell).to_owned()
        };
        let mut name = wanted.clone();
        let mut count = 1;
        while taken.contains(&name) || (name != *cell && all.contains(name.as_str())) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

/// Takes away the blanks around a header, and the byte order marks that are left of files put together.
fn trim_name(cell: &str) -> &str {
    cell.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}')
}

/// Returns the name of a column without a header; this includes columns to the right of the last header.
pub(crate) fn unnamed(index: usize) -> String {
    format!("column_{}", index + 1)
}

/// The current place in the file of each field of the recorded shape.
#[derive(Clone, Debug)]
pub(crate) struct ColumnPositions {
    positions: Vec<Option<usize>>,
    /// Columns the header has.
    pub(crate) width: usize,
}

impl ColumnPositions {
    pub(crate) fn locate(names: &[String], shape: &Shape) -> Self {
        let position = |key: &str| {
            let of_name = |key: &str| names.iter().position(|name| name == key);
            // Versions published before dates in headers were read as dates have recorded them with a time, and others a header
            // with the byte order mark before it.
            let named = of_name(key)
                .or_else(|| of_name(without_midnight(key)))
                .or_else(|| of_name(trim_name(key)));
            named.or_else(|| {
                let index = key
                    .strip_prefix("column_")?
                    .parse::<usize>()
                    .ok()?
                    .checked_sub(1)?;
                (index >= names.len() && index < COLUMNS_MAX).then_some(index)
            })
        };
        let positions = shape
            .fields
            .iter()
            .map(|field| position(&field.key))
            .collect();
        Self {
            positions,
            width: names.len(),
        }
    }

    /// Returns the column of a field, by the field's index in the shape.
    pub(crate) fn position(&self, field: usize, shape: &Shape) -> Result<usize, Error> {
        self.positions[field].ok_or_else(|| {
            let key = &shape.fields[field].key;
            Error::source_changed(format!("The file no longer has the column {key:?}.")).field(key)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_gets_a_name_of_its_own() {
        for (given, expected) in [
            (vec!["id", " name ", ""], vec!["id", "name", "column_3"]),
            (vec!["a", "a", "a"], vec!["a", "a_2", "a_3"]),
            (vec!["a", "a", "a_2"], vec!["a", "a_3", "a_2"]),
            (vec!["", "column_1"], vec!["column_1_2", "column_1"]),
            (vec!["A", "a"], vec!["A", "a"]),
            (vec!["Straße", "日本"], vec!["Straße", "日本"]),
            (vec!["\u{feff} id", "b"], vec!["id", "b"]),
        ] {
            assert_eq!(names(given.clone().into_iter()), expected, "{given:?}");
        }
        assert_eq!(names(["x".repeat(300).as_str()].into_iter()), ["column_1"]);
    }
}
