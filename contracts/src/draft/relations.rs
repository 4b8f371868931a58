//! The relations of a drafted database: which lookups can answer the records that theirs name by a key.

use std::{collections::BTreeSet, fmt::Write as _};

use super::{
    ContractDrafter,
    words::{self, RecordNoun},
    yaml::{flow, scalar},
};
use crate::{compile::ERROR_MEMBERS, name, shape::CollectionShape};

/// Relations of one lookup: each is a word in a schema, and a record in an answer.
const RELATIONS_MAX: usize = 8;
/// Last words of columns that hold keys.
const KEY_WORDS: [&str; 8] = ["id", "no", "nr", "number", "code", "key", "fk", "ref"];

/// A foreign key, as the catalogue of a database has it.
pub struct TableReference {
    pub table: String,
    pub columns: Vec<String>,
    pub other_table: String,
    /// The columns there, in the same order; `None`: its key.
    pub other_columns: Option<Vec<String>>,
}

/// A relation as the draft writes it.
pub(super) struct DraftedRelation {
    name: String,
    collection: String,
    pub(super) columns: Vec<String>,
}

/// A table of the contract to which others may refer.
pub(super) struct RelatedTable<'a> {
    pub(super) title: &'a str,
    pub(super) shape: &'a CollectionShape,
    pub(super) noun: &'a RecordNoun,
}

impl<'a> ContractDrafter<'a> {
    /// Adds the references of this table to tables of the same contract.
    pub(super) fn relate(&mut self, references: &[TableReference], tables: &[RelatedTable<'_>]) {
        if self.asked_key().is_none() {
            return;
        }
        let mut taken: BTreeSet<String> =
            self.shape.fields.iter().map(|it| it.key.clone()).collect();
        taken.extend(ERROR_MEMBERS.iter().map(|name| (*name).to_owned()));
        for reference in references.iter().filter(|it| it.table == self.input.title) {
            let exactly = |table: &&RelatedTable<'_>| table.title == reference.other_table;
            let alike = |table: &&RelatedTable<'_>| {
                table.title.eq_ignore_ascii_case(&reference.other_table)
            };
            let other = tables.iter().find(exactly);
            let Some(other) = other.or_else(|| tables.iter().find(alike)) else {
                continue;
            };
            let Some(columns) = self.key_columns(reference, other.shape) else {
                continue;
            };
            let is_known = |known: &DraftedRelation| known.columns == columns;
            if self.relations.iter().any(is_known) || self.relations.len() == RELATIONS_MAX {
                continue;
            }
            let names = [
                relation_name(&columns),
                Some(words::joined(&other.noun.one)),
            ];
            let wanted = names.into_iter().flatten();
            let wanted = wanted.map(|name| words::field(&name));
            let Some(name) = wanted
                .into_iter()
                .find(|name| name::check_field(name).is_ok() && taken.insert(name.clone()))
            else {
                continue;
            };
            self.relations.push(DraftedRelation {
                name,
                collection: words::joined(&other.noun.many),
                columns,
            });
        }
    }

    /// Returns the columns of a reference in the order of the other table's key, if they contain that key and may
    /// leave the source.
    fn key_columns(
        &self,
        reference: &TableReference,
        other: &CollectionShape,
    ) -> Option<Vec<String>> {
        let key = &other.key;
        if key.is_empty() || reference.columns.len() != key.len() {
            return None;
        }
        let others = reference.other_columns.as_ref().unwrap_or(key);
        let column_of = |key: &String| {
            let same = |name: &String| name == key || name.eq_ignore_ascii_case(key);
            let at = others.iter().position(same)?;
            let named = reference.columns.get(at)?;
            let own = self
                .columns
                .iter()
                .find(|field| field.key == *named || field.key.eq_ignore_ascii_case(named))?;
            (own.kind == other.field(key)?.kind).then(|| own.key.clone())
        };
        key.iter().map(column_of).collect()
    }

    /// Writes the relations of the collection.
    pub(super) fn relations_text(&self, text: &mut String) {
        if self.relations.is_empty() {
            return;
        }
        let _ = writeln!(text, "    relations:");
        for relation in &self.relations {
            let relation_text = serde_json::json!({
                "collection": relation.collection,
                "columns": relation.columns,
            });
            let _ = writeln!(
                text,
                "      {}: {}",
                scalar(&relation.name),
                flow(&relation_text)
            );
        }
    }

    /// Writes the key of the lookup that names its relations.
    pub(super) fn include_text(&self) -> String {
        if self.relations.is_empty() {
            return String::new();
        }
        let names = self.relations.iter().map(|relation| scalar(&relation.name));
        format!("    include: [{}]\n", names.collect::<Vec<_>>().join(", "))
    }

    /// Returns `true` for a column that on its own names a record of another table.
    pub(super) fn names_record(&self, column: &str) -> bool {
        let mut relations = self.relations.iter();
        relations.any(|relation| relation.columns == [column])
    }

    /// Returns `true` for a column that holds keys: of another table, or by its name.
    pub(super) fn holds_keys(&self, column: &str) -> bool {
        let last = name::words(column).pop().unwrap_or_default();
        self.relates_by(column) || KEY_WORDS.contains(&last.as_str())
    }

    /// Returns `true` for a column that holds keys of another table of the contract.
    pub(super) fn relates_by(&self, column: &str) -> bool {
        let relates = |relation: &DraftedRelation| relation.columns.iter().any(|it| it == column);
        self.relations.iter().any(relates)
    }
}

/// Names a relation by the column that holds its key: `customer_id` gives `customer`.
fn relation_name(columns: &[String]) -> Option<String> {
    let [column] = columns else {
        return None;
    };
    let mut words = name::words(column);
    let last = words.pop()?;
    (KEY_WORDS.contains(&last.as_str()) && !words.is_empty()).then(|| words.join("_"))
}
