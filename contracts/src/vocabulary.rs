//! Describes the vocabulary of contract files for their authors: the types of fields with their keys, the matches, the verbs,
//! and a JSON Schema of the file. All of it is made from what the readers of forms accept.

use serde_json::{Map, Value, json};
use weir_schema::reference::{definition, schema_for};

use crate::{
    compile::{agrees, makes_sense},
    contract::ToolVerb,
    form::{
        FieldType, TYPES, VERBS,
        keys::{self, FormKey, FormPart, KeyValue},
    },
    shape::{COMPARISONS, ValueType},
};

const COLUMN_TYPES: [ValueType; 10] = [
    ValueType::String,
    ValueType::Integer,
    ValueType::Decimal,
    ValueType::Number,
    ValueType::Boolean,
    ValueType::Date,
    ValueType::Datetime,
    ValueType::Json,
    ValueType::Record,
    ValueType::List,
];

/// A type of fields, such as `text`.
pub struct FieldTypeWord {
    /// The word in a file.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub help: &'static str,
    /// The keys other than those that every field has.
    pub keys: &'static [FormKey],
    /// The types of columns that such a field may go to.
    pub columns: Vec<&'static str>,
}

/// A comparison of a column with a field, such as `at-least`.
pub struct MatchWord {
    /// The word in a file.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub help: &'static str,
    /// The types of columns that can be compared so.
    pub columns: Vec<&'static str>,
    /// The types of fields that ask it; empty: those that agree with the column.
    pub field_types: &'static [&'static str],
}

/// The word for an action of a tool on its collection, such as `list`.
pub struct VerbWord {
    /// The word in a file.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub help: &'static str,
    /// Whether the fields are conditions, which may have a match.
    pub is_query: bool,
    /// Whether the collection has to be one that may be written.
    pub can_write: bool,
}

/// Returns the types of fields, in the order that messages have them.
pub fn field_types() -> Vec<FieldTypeWord> {
    let word = |name: &&'static str| FieldTypeWord {
        name,
        help: type_help(name),
        keys: keys::own_keys(name),
        columns: column_words(|column| agrees(&FieldType::plain(name), column, None)),
    };
    TYPES.iter().map(word).collect()
}

/// Returns the comparisons.
pub fn matches() -> Vec<MatchWord> {
    let word = |name: &&'static str| MatchWord {
        name,
        help: match_help(name),
        columns: column_words(|column| makes_sense(name, column)),
        field_types: match *name {
            "one-of" => &["multi-choice", "list"],
            "is-empty" => &["checkbox"],
            _ => &[],
        },
    };
    COMPARISONS.iter().map(word).collect()
}

/// Returns the verbs.
pub fn verbs() -> Vec<VerbWord> {
    let word = |name: &&'static str| {
        let verb = ToolVerb::from_word(name).expect("the readers know it");
        VerbWord {
            name,
            help: verb_help(verb),
            is_query: verb.is_query(),
            can_write: !verb.is_query(),
        }
    };
    VERBS.iter().map(word).collect()
}

fn column_words(fits: impl Fn(ValueType) -> bool) -> Vec<&'static str> {
    let fitting = COLUMN_TYPES.into_iter().filter(|column| fits(*column));
    fitting.map(ValueType::word).collect()
}

fn type_help(name: &str) -> &'static str {
    match name {
        "text" => "One line of text.",
        "multiline" => "Text of several lines.",
        "email" => "An e-mail address.",
        "url" => "An address of the web.",
        "number" => "A number, whole where the column is.",
        "dropdown" => "One of several texts.",
        "multi-choice" => "Any of several texts, each once.",
        "checkbox" => "True or false.",
        "date" => "A day, such as 2026-01-31.",
        "datetime" => "A day and a time, with its zone.",
        "file" => "A file, by its id and type.",
        "record" => "Several values together, each with a name.",
        "list" => "Any number of values of one type.",
        _ => "What no other type can say, by a JSON Schema.",
    }
}

fn match_help(name: &str) -> &'static str {
    match name {
        "equals" => "The value is the same.",
        "not-equals" => "The value is another.",
        "one-of" => "The value is one of several.",
        "at-least" => "The value is the same or greater.",
        "at-most" => "The value is the same or less.",
        "contains" => "The text has this part.",
        "contains-ci" => "The text has this part, in small or capital letters.",
        "starts-with" => "The text begins so.",
        _ => "True finds the empty ones, false the others.",
    }
}

fn verb_help(verb: ToolVerb) -> &'static str {
    match verb {
        ToolVerb::Lookup => "Finds the one record that meets the conditions.",
        ToolVerb::List => "Finds the records that meet the conditions, a page at a time.",
        ToolVerb::Count => "Counts the records that meet the conditions.",
        ToolVerb::Summarize => {
            "Groups the records that meet the conditions, and computes of each group."
        }
        ToolVerb::Create => "Makes a record of the fields.",
        ToolVerb::Update => "Changes one record, which the fields of the key name.",
        ToolVerb::Delete => "Deletes one record, which the fields of the key name.",
        ToolVerb::Call => "Runs an operation of the adapter.",
    }
}

/// Returns the JSON Schema 2020-12 of a contract file: a contract, a form, or a list of forms.
///
/// Returns the schema of a contract file. A file that it accepts has the right keys with values of the right type. Whether
/// names, columns and bounds fit each other is left to the compiler.
pub fn file_schema() -> Value {
    let form: Vec<&FormKey> = keys::TOOL
        .iter()
        .filter(|key| keys::BARE_FORM.contains(&key.name))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Weir contract file",
        "anyOf": [
            refer_to("contract"),
            refer_to("form"),
            { "type": "array", "items": refer_to("form"), "minItems": 1 },
        ],
        "$defs": {
            "contract": object(keys::CONTRACT),
            "form": object(form),
            "tool": object(keys::TOOL),
            "collection": object(keys::COLLECTION),
            "relation": object(keys::RELATION),
            "column": { "anyOf": [column_type(), object(keys::COLUMN)] },
            "limits": object(keys::LIMITS),
            "audit": object(keys::AUDIT),
            "choice": { "anyOf": [{ "type": "string" }, object(keys::CHOICE)] },
            "field": any_field(&[keys::NAMED_FIELD, keys::FIELD, keys::FORM_FIELD], bound_fields()),
            "member": any_field(&[keys::NAMED_FIELD, keys::FIELD], []),
            "element": any_field(&[keys::FIELD], []),
        },
    })
}

fn object(keys: impl IntoIterator<Item = &'static FormKey>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys {
        let mut schema = value_schema(key.value);
        schema["description"] = key.help.into();
        properties.insert(key.name.to_owned(), schema);
        if key.is_required {
            required.push(Value::from(key.name));
        }
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema["additionalProperties"] = false.into();
    schema
}

fn value_schema(value: KeyValue) -> Value {
    match value {
        KeyValue::Text { characters_max } => {
            json!({ "type": "string", "maxLength": characters_max })
        }
        KeyValue::Word(words) => json!({ "type": "string", "enum": words }),
        KeyValue::Flag => json!({ "type": "boolean" }),
        KeyValue::Number => json!({ "type": "number" }),
        KeyValue::Count { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        KeyValue::Names => {
            json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })
        }
        KeyValue::Any => json!({}),
        KeyValue::AnyList => json!({ "type": "array" }),
        KeyValue::AnyObject => json!({ "type": "object" }),
        KeyValue::JsonSchema => json!({ "type": ["object", "boolean"] }),
        KeyValue::Part(part) => reference(part),
        KeyValue::PartList(part) => json!({ "type": "array", "items": reference(part) }),
        KeyValue::PartMap(part) => {
            json!({ "type": "object", "additionalProperties": reference(part) })
        }
    }
}

fn reference(part: FormPart) -> Value {
    refer_to(part_word(part))
}

/// Returns the name of a part, which its definition in the schema has too.
pub fn part_word(part: FormPart) -> &'static str {
    match part {
        FormPart::Collection => "collection",
        FormPart::Column => "column",
        FormPart::Relation => "relation",
        FormPart::Tool => "tool",
        FormPart::Limits => "limits",
        FormPart::Audit => "audit",
        FormPart::Field => "field",
        FormPart::Member => "member",
        FormPart::Element => "element",
        FormPart::Choice => "choice",
    }
}

/// Returns the schema of just the type, which is allowed instead of the whole column.
fn column_type() -> Value {
    let kind = keys::COLUMN.iter().find(|key| key.name == "type");
    kind.map_or(Value::Bool(false), |key| value_schema(key.value))
}

/// Returns the schema of a field at one place: an alternative for each type.
fn any_field(common: &[&'static [FormKey]], beside: impl IntoIterator<Item = Value>) -> Value {
    let mut alternatives: Vec<Value> = beside.into_iter().collect();
    for name in TYPES {
        let own = keys::own_keys(name);
        let mut schema = object(common.iter().copied().flatten().chain(own));
        schema["title"] = (*name).into();
        schema["properties"]["type"] = json!({ "const": name, "description": type_help(name) });
        alternatives.push(schema);
    }
    json!({ "anyOf": alternatives })
}

/// Returns the schemas of bound fields: one needs `from` or `value`, and has not both.
fn bound_fields() -> [Value; 2] {
    [("from", "value"), ("value", "from")].map(|(source, other)| {
        let keys = keys::BOUND_FIELD.iter().filter(|key| key.name != other);
        let mut schema = object(keys);
        schema["title"] = format!("bound by {source}").into();
        if let Some(required) = schema["required"].as_array_mut() {
            required.push(source.into());
        }
        schema
    })
}

/// Returns a reference to a definition of the same document.
fn refer_to(name: &str) -> Value {
    schema_for(definition(name, ""))
}
