//! Finds what a person would see at a glance in a column of text: dates in several spellings.

/// The observations of one column.
#[derive(Debug, Default)]
pub(crate) struct DateHints {
    cells: u64,
    dates: u64,
}

impl DateHints {
    /// Takes note of a cell that is neither empty nor a word for an empty one.
    pub(crate) fn note(&mut self, cell: &str) {
        self.cells += 1;
        // If other cells are plain text, there is nothing to note.
        if self.dates + 1 == self.cells && is_like_date(cell) {
            self.dates += 1;
        }
    }

    /// Describes what all cells are. Only for a column that remains text.
    pub(crate) fn describe(&self, column: &str) -> Option<String> {
        (self.cells > 0 && self.dates == self.cells).then(|| format!(
            "The column {column:?} has dates in several spellings, and stays text: write them in one, and say it by `date:` under `shape:`."
        ))
    }
}

/// Returns `true` for three numbers with one mark between them, whatever their order, and optionally a time after them.
fn is_like_date(cell: &str) -> bool {
    let (day, time) = cell
        .trim()
        .split_once([' ', 'T'])
        .unwrap_or((cell.trim(), "0:00"));
    let is_clock = time.starts_with(|first: char| first.is_ascii_digit()) && time.contains(':');
    if !is_clock {
        return false;
    }
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

    #[test]
    fn what_is_seen_at_a_glance() {
        for (cells, is_noted) in [
            (&["2026-01-05", "05.01.2026", "1/5/26"][..], true),
            (&["2026-01-05 10:00", "05.01.2026 11:00"], true),
            (&["2026-01-05", "soon"], false),
            (&["soon", "2026-01-05"], false),
            (&["12", "13"], false),
            (
                &["1887.05.12 - 1893.10.30", "1896.01.07 - 1899.01.01"],
                false,
            ),
            (&[], false),
        ] {
            let mut hints = DateHints::default();
            cells.iter().for_each(|cell| hints.note(cell));
            assert_eq!(hints.describe("c").is_some(), is_noted, "{cells:?}");
        }
    }
}
