//! What a person would see in a column of text at a glance: numbers with a unit, dates in several spellings.

/// Units that stand before or behind a number. Others may be a part of a code: `A1`.
const UNITS: &[&str] = &[
    "€", "$", "£", "¥", "₹", "%", "°c", "°f", "eur", "usd", "gbp", "chf", "jpy", "sek", "nok",
    "dkk", "pln", "kg", "g", "mg", "t", "lb", "oz", "km", "m", "cm", "mm", "mi", "ft", "in", "l",
    "ml", "kwh", "kw", "mb", "gb", "h", "min", "s", "pcs", "st",
];

/// The observations of one column.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    cells: u64,
    dates: u64,
    with_unit: u64,
    /// The first unit, in small letters; none once another was seen.
    unit: Option<String>,
    has_several_units: bool,
    example: Option<String>,
}

impl Hints {
    /// Takes note of a cell that is neither empty nor a word for an empty one.
    pub(crate) fn note(&mut self, cell: &str) {
        self.cells += 1;
        // Where other cells are plain text, nothing is to be said.
        if self.dates + self.with_unit + 1 < self.cells {
            return;
        }
        if is_like_date(cell) {
            self.dates += 1;
        } else if let Some(unit) = unit_of(cell) {
            self.with_unit += 1;
            match &self.unit {
                None => {
                    self.unit = Some(unit);
                    self.example = Some(cell.chars().take(40).collect());
                }
                Some(known) => self.has_several_units |= *known != unit,
            }
        }
    }

    /// Says what all cells are. Only for a column that stays text.
    pub(crate) fn describe(&self, column: &str) -> Option<String> {
        if self.cells == 0 {
            return None;
        }
        if self.dates == self.cells {
            return Some(format!(
                "The column {column:?} has dates in several spellings, and stays text: write them in one, and say it by `date:` under `shape:`."
            ));
        }
        let example = self.example.as_deref().unwrap_or_default();
        match (self.with_unit == self.cells, self.has_several_units) {
            (false, _) => None,
            (true, false) => Some(format!(
                "The column {column:?} has numbers with their unit, such as {example:?}, and stays text: with the unit in the header alone they \
                 can be compared and added."
            )),
            (true, true) => Some(format!(
                "The column {column:?} has numbers with several units, such as {example:?}, and stays text: they cannot be added."
            )),
        }
    }
}

/// Returns the unit of a text such as `12,90 €`, in small letters.
fn unit_of(cell: &str) -> Option<String> {
    let cell = cell.trim();
    let is_number = |text: &str| {
        let text = text.trim().trim_start_matches(['-', '+']);
        text.starts_with(|first: char| first.is_ascii_digit())
            && text.chars().all(|next| {
                next.is_ascii_digit()
                    || matches!(next, '.' | ',' | '\'' | ' ' | '\u{a0}' | '\u{202f}')
            })
    };
    let first = cell.find(|next: char| next.is_ascii_digit())?;
    let end = cell.rfind(|next: char| next.is_ascii_digit())? + 1;
    let before = cell[..first].trim().trim_matches(['-', '+']).trim();
    let behind = cell[end..].trim();
    let unit = match (before, behind) {
        (unit, "") | ("", unit) if !unit.is_empty() => unit.to_lowercase(),
        _ => return None,
    };
    (UNITS.contains(&unit.as_str()) && is_number(&cell[first..end])).then_some(unit)
}

/// Returns `true` for three numbers with one mark between them, whatever their order, and a time behind them or none.
fn is_like_date(cell: &str) -> bool {
    let day = cell.trim().split([' ', 'T']).next().unwrap_or_default();
    ['.', '/', '-'].into_iter().any(|mark| {
        let parts: Vec<&str> = day.split(mark).collect();
        let is_part = |part: &&str| {
            matches!(part.len(), 1 | 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        parts.len() == 3 && parts.iter().all(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(cells: &[&str]) -> Option<String> {
        let mut hints = Hints::default();
        cells.iter().for_each(|cell| hints.note(cell));
        hints.describe("c")
    }

    #[test]
    fn what_is_seen_at_a_glance() {
        for (cells, expected) in [
            (
                &["12,90 €", "1.200,00 €"][..],
                Some("with their unit, such as \"12,90 €\""),
            ),
            (&["$1,200.00", "-$5"], Some("with their unit")),
            (&["45 kg", "7kg"], Some("with their unit")),
            (&["12 %", "-3%"], Some("with their unit")),
            (
                &["12 EUR", "USD 5"],
                Some("with several units, such as \"12 EUR\""),
            ),
            (
                &["2026-01-05", "05.01.2026", "1/5/26"],
                Some("dates in several spellings"),
            ),
            (
                &["2026-01-05 10:00", "05.01.2026 11:00"],
                Some("dates in several spellings"),
            ),
            (&["12,90 €", "soon"], None),
            (&["soon", "12,90 €"], None),
            (&["A1", "B2"], None),
            (&["12", "13"], None),
            (&["€"], None),
            (&[], None),
        ] {
            let said = noted(cells);
            assert_eq!(said.is_some(), expected.is_some(), "{cells:?}: {said:?}");
            assert!(
                said.unwrap_or_default()
                    .contains(expected.unwrap_or_default()),
                "{cells:?}"
            );
        }
    }
}
