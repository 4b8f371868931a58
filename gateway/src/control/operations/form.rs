//! The vocabulary of contract files: the types of fields with their keys, the matches and the verbs.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use weir_contracts::{
    form::keys::{self, FormKey, KeyValue},
    vocabulary,
};

/// The vocabulary of contract files.
#[derive(Serialize, ToSchema)]
pub struct FormView {
    pub types: Vec<FieldTypeView>,
    /// The keys of each part of a file: `contract`, `collection`, `column`, `tool`, `limits`, `audit`, `choice`, and of fields
    /// `field` in a form, `member` in a record, `element` in a list, and `bound` with `from` or `value`.
    pub parts: BTreeMap<&'static str, Vec<FormKeyView>>,
    pub matches: Vec<MatchView>,
    pub verbs: Vec<VerbView>,
}

/// A type of fields.
#[derive(Serialize, ToSchema)]
pub struct FieldTypeView {
    pub name: &'static str,
    pub help: &'static str,
    /// The keys in addition to those of every field.
    pub keys: Vec<FormKeyView>,
    /// The types of columns that such a field may refer to.
    pub columns: Vec<&'static str>,
}

/// A key of one part of a contract file.
#[derive(Serialize, ToSchema)]
pub struct FormKeyView {
    pub name: &'static str,
    pub value: KeyValueView,
    pub help: &'static str,
    pub required: bool,
    /// The words of a `word`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<&'static str>,
    /// The minimum of a `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// The maximum of a `count`, and of the characters of a `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// The part of the file that it holds: a single one, a list, or an object of them by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<&'static str>,
}

/// The kind of value that a key has.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyValueView {
    Text,
    Word,
    Flag,
    Number,
    Count,
    Names,
    Any,
    AnyList,
    AnyObject,
    JsonSchema,
    Part,
    PartList,
    PartMap,
}

/// A comparison of a field with a column.
#[derive(Serialize, ToSchema)]
pub struct MatchView {
    pub name: &'static str,
    pub help: &'static str,
    /// The types of columns that can be compared this way.
    pub columns: Vec<&'static str>,
    /// The types of fields that can use it; empty for those that agree with the column.
    pub field_types: &'static [&'static str],
}

/// What a tool may do with a collection.
#[derive(Serialize, ToSchema)]
pub struct VerbView {
    pub name: &'static str,
    pub help: &'static str,
    /// Whether the fields are conditions, which may have a `match`.
    pub is_query: bool,
    /// Whether the collection requires `write: true`. For `call`, its operation decides.
    pub can_write: bool,
}

/// Returns what the readers of contract files accept.
pub fn describe() -> FormView {
    let types = vocabulary::field_types().into_iter();
    let matches = vocabulary::matches().into_iter();
    let verbs = vocabulary::verbs().into_iter();
    let parts = [
        ("contract", views([keys::CONTRACT])),
        ("collection", views([keys::COLLECTION])),
        ("column", views([keys::COLUMN])),
        ("tool", views([keys::TOOL])),
        ("limits", views([keys::LIMITS])),
        ("audit", views([keys::AUDIT])),
        ("choice", views([keys::CHOICE])),
        (
            "field",
            views([keys::NAMED_FIELD, keys::FIELD, keys::FORM_FIELD]),
        ),
        ("member", views([keys::NAMED_FIELD, keys::FIELD])),
        ("element", views([keys::FIELD])),
        ("bound", views([keys::BOUND_FIELD])),
    ];
    FormView {
        types: types
            .map(|kind| FieldTypeView {
                name: kind.name,
                help: kind.help,
                keys: views([kind.keys]),
                columns: kind.columns,
            })
            .collect(),
        parts: parts.into(),
        matches: matches
            .map(|word| MatchView {
                name: word.name,
                help: word.help,
                columns: word.columns,
                field_types: word.field_types,
            })
            .collect(),
        verbs: verbs
            .map(|verb| VerbView {
                name: verb.name,
                help: verb.help,
                is_query: verb.is_query,
                can_write: verb.can_write,
            })
            .collect(),
    }
}

fn views<const N: usize>(keys: [&'static [FormKey]; N]) -> Vec<FormKeyView> {
    keys.into_iter().flatten().map(view).collect()
}

fn view(key: &FormKey) -> FormKeyView {
    let mut view = FormKeyView {
        name: key.name,
        value: KeyValueView::Any,
        help: key.help,
        required: key.is_required,
        words: Vec::new(),
        min: None,
        max: None,
        part: None,
    };
    view.value = match key.value {
        KeyValue::Text { characters_max } => {
            view.max = Some(characters_max as u64);
            KeyValueView::Text
        }
        KeyValue::Word(words) => {
            view.words = words.to_vec();
            KeyValueView::Word
        }
        KeyValue::Count { min, max } => {
            (view.min, view.max) = (Some(min), Some(max));
            KeyValueView::Count
        }
        KeyValue::Part(part) => {
            view.part = Some(vocabulary::part_word(part));
            KeyValueView::Part
        }
        KeyValue::PartList(part) => {
            view.part = Some(vocabulary::part_word(part));
            KeyValueView::PartList
        }
        KeyValue::PartMap(part) => {
            view.part = Some(vocabulary::part_word(part));
            KeyValueView::PartMap
        }
        KeyValue::Flag => KeyValueView::Flag,
        KeyValue::Number => KeyValueView::Number,
        KeyValue::Names => KeyValueView::Names,
        KeyValue::Any => KeyValueView::Any,
        KeyValue::AnyList => KeyValueView::AnyList,
        KeyValue::AnyObject => KeyValueView::AnyObject,
        KeyValue::JsonSchema => KeyValueView::JsonSchema,
    };
    view
}
