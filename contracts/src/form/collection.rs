//! Reads a contract's settings for one collection.

use serde_json::Value;

use super::{
    keys,
    relation::{self, FormRelation},
    table::{self, FileProblems, FormTable},
};
use crate::{
    json,
    shape::{ColumnFormat, ColumnOverride, MisfitPolicy, ValueType},
};

/// A source as the contract names it, before its shape is known.
#[derive(Clone, Debug)]
pub struct FormCollection {
    pub name: String,
    pub adapter: String,
    pub settings: Value,
    /// The columns that are published. `None` means all but the hidden ones.
    pub columns: Option<Vec<String>>,
    pub hide: Vec<String>,
    pub key: Option<Vec<String>>,
    pub write: bool,
    /// The contract's own definitions of columns, which override the source's.
    pub overrides: Vec<ColumnOverride>,
    pub timezone: Option<String>,
    /// The treatment of cells that do not fit the type of their column.
    pub misfits: MisfitPolicy,
    /// The texts that mean an empty cell.
    pub null_words: Vec<String>,
    /// Records of other collections that records of this one name by their key.
    pub relations: Vec<FormRelation>,
    pub(crate) place: String,
}

/// The types that a contract may give a column.
pub(super) const COLUMN_TYPES: &[&str] = &[
    "string", "integer", "decimal", "number", "boolean", "date", "datetime", "json",
];

pub(super) fn read(
    name: &str,
    entry: &Value,
    parent: String,
    problems: &mut FileProblems,
) -> Option<FormCollection> {
    let mut place = parent;
    json::push_pointer(&mut place, name);
    let table = FormTable::new(entry, place.clone(), problems)?;
    table.check_known(keys::COLLECTION, problems);
    if table.has("columns") && table.has("hide") {
        problems.add_hint(
            table.at("hide"),
            "'columns' and 'hide' exclude each other",
            "keep one of them",
        );
    }
    let settings = match table.get("settings") {
        Some(Value::Object(_)) => table.get("settings").cloned().unwrap_or_default(),
        Some(other) => {
            problems.add_hint(
                table.at("settings"),
                format!("must be an object, not {}", table::kind(other)),
                "write the adapter's settings, such as `{ connection: NAME }`",
            );
            Value::Null
        }
        None => Value::Object(Default::default()),
    };
    let key = table.names("key", problems);
    if key.as_ref().is_some_and(Vec::is_empty) {
        problems.add_hint(
            table.at("key"),
            "the key has no columns",
            "name them, or leave 'key' out",
        );
    }
    Some(FormCollection {
        name: name.to_owned(),
        adapter: table.required_text("adapter", problems).unwrap_or_default(),
        settings,
        columns: table.names("columns", problems),
        hide: table.names("hide", problems).unwrap_or_default(),
        key,
        write: table.flag("write", problems).unwrap_or(false),
        overrides: overrides(&table, problems),
        timezone: table.text("timezone", 64, problems),
        misfits: misfits(&table, problems),
        null_words: null_words(&table, problems),
        relations: relation::read(&table, problems),
        place,
    })
}

fn misfits(table: &FormTable<'_>, problems: &mut FileProblems) -> MisfitPolicy {
    let Some(word) = table.text("misfits", table::TITLE_MAX, problems) else {
        return MisfitPolicy::default();
    };
    MisfitPolicy::from_word(&word).unwrap_or_else(|| {
        problems.add_hint(
            table.at("misfits"),
            "does not say what becomes of cells that do not fit the type of their column",
            "write empty, text or refuse",
        );
        MisfitPolicy::default()
    })
}

fn null_words(table: &FormTable<'_>, problems: &mut FileProblems) -> Vec<String> {
    const WORDS_MAX: usize = 20;
    const WORD_CHARS_MAX: usize = 40;
    let words = table.names("null_words", problems).unwrap_or_default();
    let place = table.at("null_words");
    if words.len() > WORDS_MAX {
        let hint = "keep the words that most cells have";
        problems.add_hint(place.clone(), format!("more than {WORDS_MAX} words"), hint);
    }
    for (index, word) in words.iter().enumerate() {
        let (wrong, hint) = match word.chars().count() {
            _ if word.trim() != word => (
                "has blanks around it, which cells are read without",
                "write it without them",
            ),
            0 => (
                "is empty; an empty cell is null without being named",
                "drop it",
            ),
            count if count > WORD_CHARS_MAX => (
                "is longer than 40 characters",
                "drop it: a text of that length is a value",
            ),
            _ => continue,
        };
        problems.add_hint(format!("{place}/{index}"), wrong, hint);
    }
    words
}

fn overrides(table: &FormTable<'_>, problems: &mut FileProblems) -> Vec<ColumnOverride> {
    let Some(columns) = table.object("shape", problems) else {
        return Vec::new();
    };
    let place = table.at("shape");
    let mut overrides = Vec::new();
    for (column, value) in columns {
        let mut place = place.clone();
        json::push_pointer(&mut place, column);
        let entry = match value {
            Value::String(_) => ColumnOverride {
                column: column.clone(),
                kind: kind(value, &place, problems),
                nullable: None,
                description: None,
                format: None,
            },
            _ => {
                let Some(table) = FormTable::new(value, place, problems) else {
                    continue;
                };
                table.check_known(keys::COLUMN, problems);
                ColumnOverride {
                    column: column.clone(),
                    kind: table
                        .get("type")
                        .and_then(|value| kind(value, &table.at("type"), problems)),
                    nullable: table.flag("nullable", problems),
                    description: table.text("description", table::TEXT_MAX, problems),
                    format: format(&table, problems),
                }
            }
        };
        overrides.push(entry);
    }
    overrides
}

/// Reads `decimal: ",", grouping: "."`, `unit: "# €"` or `date: "%d/%m/%Y"`.
fn format(table: &FormTable<'_>, problems: &mut FileProblems) -> Option<ColumnFormat> {
    let mut text = |key| table.text(key, table::TITLE_MAX, problems);
    let format = ColumnFormat {
        decimal: text("decimal"),
        grouping: text("grouping"),
        unit: text("unit"),
        date: text("date"),
        datetime: text("datetime"),
    };
    (!format.is_empty()).then_some(format)
}

fn kind(value: &Value, place: &str, problems: &mut FileProblems) -> Option<ValueType> {
    match ValueType::deserialize_value(value) {
        Some(ValueType::Record | ValueType::List) | None => {
            problems.add_hint(
                place,
                "is not a type that a contract may give a column",
                format!("types: {}", COLUMN_TYPES.join(", ")),
            );
            None
        }
        kind => kind,
    }
}
