//! Finds the positions of the keys of `weir.toml`, so that a problem is reported with its line.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use weir_contracts::FileProblem;

/// The name of a configuration without a file.
pub const DEFAULTS: &str = "(defaults)";

/// The lines of the keys of a configuration file.
#[derive(Clone, Debug, Default)]
pub struct ConfigLines {
    file: String,
    /// The lines by place, such as `/http/listen`, counted from 1.
    lines: BTreeMap<String, usize>,
}

impl ConfigLines {
    pub(super) fn new(file: &str, text: &str) -> Self {
        let mut places = Self {
            file: file.to_owned(),
            lines: BTreeMap::new(),
        };
        if let Ok(table) = DeTable::parse(text) {
            places.note(text, table.get_ref(), "");
        }
        places
    }

    fn note(&mut self, text: &str, table: &DeTable<'_>, within: &str) {
        for (key, value) in table {
            let place = format!("{within}/{}", key.get_ref());
            self.note_value(text, key.span().start, value.get_ref(), place);
        }
    }

    fn note_value(&mut self, text: &str, start: usize, value: &DeValue<'_>, place: String) {
        let before = text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        match value {
            DeValue::Table(inner) => self.note(text, inner, &place),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let place = format!("{place}/{index}");
                    self.note_value(text, item.span().start, item.get_ref(), place);
                }
            }
            _ => {}
        }
        self.lines.insert(place, line);
    }

    /// Returns the name of the file, relative to the working folder.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Returns `true` if the configuration was read from a file.
    pub fn has_file(&self) -> bool {
        self.file != DEFAULTS
    }

    /// Returns `true` if the file has that key.
    pub(crate) fn has(&self, place: &str) -> bool {
        self.lines.contains_key(place)
    }

    /// Returns a problem of the file at a place in it, or at the nearest enclosing place that exists.
    pub fn problem(&self, place: impl Into<String>, message: impl Into<String>) -> FileProblem {
        let place = place.into();
        let mut around = place.as_str();
        let line = loop {
            match (self.lines.get(around), around.rsplit_once('/')) {
                (Some(line), _) => break Some(*line),
                (None, Some((outer, _))) => around = outer,
                (None, None) => break None,
            }
        };
        FileProblem::new(&self.file, place, message).line(line)
    }
}
