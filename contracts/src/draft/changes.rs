//! The tools of a draft that change or delete one record, where a person asked for them.

use std::fmt::Write as _;

use super::{ContractDrafter, help, is_writable, yaml::scalar};
use crate::{form, shape::ShapeField};

/// The argument that an update with nullable fields adds.
const CLEAR: &str = "clear";

impl<'a> ContractDrafter<'a> {
    /// Writes the tool that changes a record by its key.
    pub(super) fn update(&self, text: &mut String) {
        let changed = self.changed();
        if !self.takes("update") || changed.is_empty() {
            return;
        }
        let described = format!(
            "Changes the given fields of one {} and returns it as the source now holds it.",
            self.noun.one
        );
        self.head(text, "update", &self.noun.one, &described, "update");
        self.key_fields(text);
        let has_clear = changed.iter().any(|field| self.name(field) == CLEAR);
        for field in changed {
            let typed = self.type_of(field, true);
            let (name, column) = (scalar(self.name(field)), self.column_of(field));
            let flags = match field.nullable && !has_clear {
                true => ", nullable: true",
                false => "",
            };
            let _ = writeln!(
                text,
                "      - {{ name: {name}, {typed}{column}{flags}{} }}",
                help(field)
            );
        }
    }

    /// Writes the tool that deletes a record by its key.
    pub(super) fn delete(&self, text: &mut String) {
        if !self.takes("delete") {
            return;
        }
        let described = format!("Deletes one {} and returns it as it was.", self.noun.one);
        self.head(text, "delete", &self.noun.one, &described, "delete");
        self.key_fields(text);
    }

    /// Returns `true` if the draft has tools that change or delete records.
    pub(super) fn can_change(&self) -> bool {
        let updates = self.takes("update") && !self.changed().is_empty();
        self.changes && (updates || self.takes("delete"))
    }

    /// Returns `true` if the source takes the verb for a record that its key names.
    fn takes(&self, verb: &str) -> bool {
        let verbs = &self.shape.capabilities.write;
        verbs.iter().any(|known| known == verb) && self.asked_key().is_some()
    }

    /// Returns the columns that an update has a field for; none if they are too many for a form.
    fn changed(&self) -> Vec<&'a ShapeField> {
        let is_key = |field: &ShapeField| self.shape.key.contains(&field.key);
        let columns = self.columns.iter().copied();
        let changed: Vec<&ShapeField> = columns
            .filter(|field| is_writable(field) && !is_key(field))
            .collect();
        match changed.len() + self.shape.key.len() > form::FIELDS_MAX {
            true => Vec::new(),
            false => changed,
        }
    }
}
