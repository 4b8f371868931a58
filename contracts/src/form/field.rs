//! Reads one field of a form.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Number, Value, json};

use super::{
    bound::{self, FormBound},
    keys::{self, ITEMS_MAX, LENGTH_MAX, PATTERN_MAX},
    table::{self, FileProblems, FormTable},
};
use crate::{name, shape::ValueType};

/// Fields of one form, those inside records and lists included.
pub(crate) const FIELDS_MAX: usize = 300;
const CHOICES_MAX: usize = 1_000;
const EXAMPLES_MAX: usize = 20;

/// A field of a form, as it is written.
#[derive(Clone, Debug)]
pub struct FormField {
    /// Empty for the element of a list.
    pub name: String,
    pub kind: FieldType,
    pub required: bool,
    pub help: Option<String>,
    pub title: Option<String>,
    pub default: Option<Value>,
    pub examples: Vec<Value>,
    pub nullable: bool,
    pub column: Option<String>,
    pub comparison: Option<String>,
    pub param: Option<String>,
    pub(crate) place: String,
}

/// The closed table of field types, each with its own keys.
#[derive(Clone, Debug)]
pub enum FieldType {
    Text {
        min_length: Option<u64>,
        max_length: Option<u64>,
        pattern: Option<String>,
    },
    Email,
    Url,
    Number {
        min: Option<Number>,
        max: Option<Number>,
        step: Option<Number>,
        decimals: Option<bool>,
    },
    Dropdown {
        choices: Vec<FieldChoice>,
    },
    MultiChoice {
        choices: Vec<FieldChoice>,
        min_items: Option<u64>,
        max_items: Option<u64>,
    },
    Checkbox,
    Date,
    Datetime,
    File,
    Record {
        fields: Vec<FormField>,
    },
    List {
        of: Box<FormField>,
        min_items: Option<u64>,
        max_items: Option<u64>,
    },
    /// A schema, for what no other type can express. Its references lead to places in itself.
    Json {
        schema: Value,
    },
}

/// A value with a title for people who fill in the form; the schema has only the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChoice {
    pub value: String,
    pub title: Option<String>,
    /// Further texts of the source that a condition by it finds too.
    pub also: Vec<String>,
    /// Its place among the choices of the file, some of which may be refused.
    pub index: usize,
}

impl FieldChoice {
    /// Returns the texts of the source that it means, its value first.
    fn texts(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.value).chain(&self.also)
    }
}

/// The words of `type`.
pub const TYPES: &[&str] = &[
    "text",
    "multiline",
    "email",
    "url",
    "number",
    "dropdown",
    "multi-choice",
    "checkbox",
    "date",
    "datetime",
    "file",
    "record",
    "list",
    "json",
];

impl FieldType {
    /// Returns the word for it in a message.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::Email => "email",
            Self::Url => "url",
            Self::Number { .. } => "number",
            Self::Dropdown { .. } => "dropdown",
            Self::MultiChoice { .. } => "multi-choice",
            Self::Checkbox => "checkbox",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::File => "file",
            Self::Record { .. } => "record",
            Self::List { .. } => "list",
            Self::Json { .. } => "json",
        }
    }
}

impl FieldType {
    /// Returns only the type, as a bound field names it: bounds and choices are for what an agent sends.
    pub(crate) fn plain(word: &str) -> Self {
        match word {
            "text" | "multiline" => Self::TEXT,
            "email" => Self::Email,
            "url" => Self::Url,
            "number" => Self::NUMBER,
            "dropdown" => Self::Dropdown {
                choices: Vec::new(),
            },
            "multi-choice" => Self::MultiChoice {
                choices: Vec::new(),
                min_items: None,
                max_items: None,
            },
            "checkbox" => Self::Checkbox,
            "date" => Self::Date,
            "datetime" => Self::Datetime,
            "file" => Self::File,
            "record" => Self::Record { fields: Vec::new() },
            "json" => Self::Json {
                schema: Value::Bool(true),
            },
            _ => Self::list_of(Self::TEXT),
        }
    }

    /// Returns the field type that agrees with a column.
    pub(crate) fn from_value_type(kind: ValueType) -> Self {
        match kind {
            ValueType::String | ValueType::Json => Self::TEXT,
            ValueType::Integer | ValueType::Number | ValueType::Decimal => Self::NUMBER,
            ValueType::Boolean => Self::Checkbox,
            ValueType::Date => Self::Date,
            ValueType::Datetime => Self::Datetime,
            ValueType::Record => Self::Record { fields: Vec::new() },
            ValueType::List => Self::list_of(Self::TEXT),
        }
    }

    fn choices(&self) -> &[FieldChoice] {
        match self {
            Self::Dropdown { choices } | Self::MultiChoice { choices, .. } => choices,
            _ => &[],
        }
    }

    /// Returns the place of the first choice that means further texts of the source.
    pub(crate) fn first_spelled(&self) -> Option<usize> {
        let mut choices = self.choices().iter();
        let spelled = choices.find(|choice| !choice.also.is_empty())?;
        Some(spelled.index)
    }

    /// Returns the further texts of the choices that have some.
    pub(crate) fn spellings(&self) -> BTreeMap<String, Vec<String>> {
        let choices = self.choices().iter();
        let spelled = choices.filter(|choice| !choice.also.is_empty());
        spelled
            .map(|choice| (choice.value.clone(), choice.also.clone()))
            .collect()
    }

    pub(crate) fn list_of(kind: Self) -> Self {
        Self::List {
            of: Box::new(FormField::of_kind(kind)),
            min_items: None,
            max_items: None,
        }
    }

    const TEXT: Self = Self::Text {
        min_length: None,
        max_length: None,
        pattern: None,
    };
    const NUMBER: Self = Self::Number {
        min: None,
        max: None,
        step: None,
        decimals: None,
    };
}

impl FormField {
    /// Returns a field that has only a type.
    pub(crate) fn of_kind(kind: FieldType) -> Self {
        Self {
            name: String::new(),
            kind,
            required: false,
            help: None,
            title: None,
            default: None,
            examples: Vec::new(),
            nullable: false,
            column: None,
            comparison: None,
            param: None,
            place: String::new(),
        }
    }
}

/// The place of a field, which decides the keys it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldPosition {
    Form,
    Record,
    /// The element of a list: it has no name, and is never absent.
    Element,
}

/// Reads the fields of a form: those that the agent sends, and those that are bound.
pub(super) fn read_all(
    values: &[Value],
    place: &str,
    problems: &mut FileProblems,
) -> (Vec<FormField>, Vec<FormBound>) {
    let (bound, sent): (Vec<_>, Vec<_>) = values
        .iter()
        .enumerate()
        .partition(|(_, value)| bound::is_bound(value));
    // One more than may be: a form that uses it up has too many.
    let mut left = (FIELDS_MAX + 1).saturating_sub(bound.len());
    let fields = read_list(&sent, place, FieldPosition::Form, &mut left, problems);
    if left == 0 {
        let message = format!("the form has more than {FIELDS_MAX} fields");
        problems.add_hint(place, message, "keep those that agents need");
    }
    let mut found: Vec<FormBound> = Vec::new();
    for (index, value) in bound.into_iter().take(FIELDS_MAX) {
        let place = format!("{place}/{index}");
        let Some(field) = bound::read(value, place.clone(), problems) else {
            continue;
        };
        let mut names = fields
            .iter()
            .map(|other| &other.name)
            .chain(found.iter().map(|other| &other.name));
        if names.any(|name| *name == field.name) {
            twice(&place, &field.name, problems);
        }
        found.push(field);
    }
    (fields, found)
}

fn read_list(
    values: &[(usize, &Value)],
    place: &str,
    position: FieldPosition,
    left: &mut usize,
    problems: &mut FileProblems,
) -> Vec<FormField> {
    let mut fields: Vec<FormField> = Vec::new();
    for (index, value) in values {
        if *left == 0 {
            break;
        }
        let place = format!("{place}/{index}");
        let Some(field) = read(value, place.clone(), position, left, problems) else {
            continue;
        };
        if fields.iter().any(|other| other.name == field.name) {
            twice(&place, &field.name, problems);
        }
        fields.push(field);
    }
    fields
}

fn twice(place: &str, field: &str, problems: &mut FileProblems) {
    problems.add_hint(
        format!("{place}/name"),
        format!("the field name {} occurs twice", name::quoted(field)),
        "give one of the two another name; `column` says where it goes",
    );
}

fn read(
    value: &Value,
    place: String,
    position: FieldPosition,
    left: &mut usize,
    problems: &mut FileProblems,
) -> Option<FormField> {
    *left = left.saturating_sub(1);
    let table = FormTable::new(value, place.clone(), problems)?;
    let kind_name = type_word(&table, problems);
    let field_name = match position {
        FieldPosition::Element => String::new(),
        _ => table.required_text("name", problems).unwrap_or_default(),
    };
    if position != FieldPosition::Element
        && table.get("name").is_some_and(Value::is_string)
        && let Err(message) = name::check_field(&field_name)
    {
        let plain = name::plain_field(&field_name);
        let hint = match position {
            FieldPosition::Form if !table.has("param") && !table.has("column") => {
                format!(
                    "call it '{plain}', with `column: {}` for its column",
                    json!(field_name)
                )
            }
            FieldPosition::Record => {
                format!("call it '{plain}', as the member of the column must be called too")
            }
            _ => format!("call it '{plain}'"),
        };
        problems.add_hint(table.at("name"), message, hint);
    }
    check_keys(&table, kind_name.as_deref(), position, problems);
    let required = table.flag("required", problems).unwrap_or(false);
    let default = table.get("default").cloned();
    if required && default.is_some() {
        problems.add_hint(
            table.at("default"),
            "a required field has no use for a default",
            "drop 'required' or 'default'",
        );
    }
    if position == FieldPosition::Record && default.is_some() {
        problems.add_hint(
            table.at("default"),
            "a member of a record has no default: nothing is put into a record",
            "say in 'help' what is assumed where it is left out",
        );
    }
    let kind = read_kind(&table, kind_name.as_deref()?, left, problems)?;
    check_stated_default(&kind, &table, position, problems);
    if let Some(at) = kind
        .first_spelled()
        .filter(|_| position != FieldPosition::Form)
    {
        problems.add_hint(
            format!("{place}/choices/{at}/also"),
            "'also' is for a condition, which is a field of the tool itself",
            "drop it",
        );
    }
    Some(FormField {
        name: field_name,
        kind,
        required,
        help: table.text("help", table::TEXT_MAX, problems),
        title: table.text("title", table::TITLE_MAX, problems),
        default,
        examples: examples(&table, problems),
        nullable: table.flag("nullable", problems).unwrap_or(false),
        column: table.text("column", table::TITLE_MAX, problems),
        comparison: table.text("match", table::TITLE_MAX, problems),
        param: table.text("param", table::TITLE_MAX, problems),
        place,
    })
}

/// Refuses a default of the schema itself: agents would read it and leave the argument out, and nothing would be put in.
fn check_stated_default(
    kind: &FieldType,
    table: &FormTable<'_>,
    position: FieldPosition,
    problems: &mut FileProblems,
) {
    let FieldType::Json { schema } = kind else {
        return;
    };
    let hint = match position {
        FieldPosition::Form => "write `default:` beside `schema:`",
        FieldPosition::Record => "say in 'help' what is assumed where it is left out",
        // An element is never absent.
        FieldPosition::Element => return,
    };
    if schema.get("default").is_some() {
        problems.add_hint(
            format!("{}/default", table.at("schema")),
            "a default inside the schema is not put in",
            hint,
        );
    }
}

/// Reads one of [`TYPES`].
pub(super) fn type_word(table: &FormTable<'_>, problems: &mut FileProblems) -> Option<String> {
    let word = table.required_text("type", problems)?;
    if TYPES.contains(&word.as_str()) {
        return Some(word);
    }
    let hint = match name::nearest(&word, TYPES.iter().copied()) {
        Some(near) => format!("did you mean '{near}'? types: {}", TYPES.join(", ")),
        None => format!("types: {}", TYPES.join(", ")),
    };
    problems.add_hint(
        table.at("type"),
        format!("unknown field type {}", name::quoted(&word)),
        hint,
    );
    None
}

/// Returns the keys of all types that restrict what an agent may send.
pub(super) fn keys_of_agents() -> impl Iterator<Item = &'static str> {
    const EVERY: [&str; 6] = [
        "required", "help", "title", "default", "examples", "nullable",
    ];
    EVERY.into_iter().chain(
        TYPES
            .iter()
            .flat_map(|kind| keys::names(keys::own_keys(kind))),
    )
}

fn check_keys(
    table: &FormTable<'_>,
    kind: Option<&str>,
    position: FieldPosition,
    problems: &mut FileProblems,
) {
    let mut known: Vec<&str> = keys::names(keys::FIELD).collect();
    if position != FieldPosition::Element {
        known.extend(keys::names(keys::NAMED_FIELD));
    }
    if position == FieldPosition::Form {
        known.extend(keys::names(keys::FORM_FIELD).chain(bound::SOURCES));
    }
    for key in bound::SOURCES
        .into_iter()
        .filter(|key| position != FieldPosition::Form && table.has(key))
    {
        problems.add_hint(
            table.at(key),
            format!("'{key}' binds a field of the tool itself, not one inside another"),
            "bind the outer field",
        );
        known.push(key);
    }
    match kind {
        Some(kind) => known.extend(keys::names(keys::own_keys(kind))),
        // The type is unknown, and so are its keys: any type's key passes here.
        None => known.extend(
            TYPES
                .iter()
                .flat_map(|kind| keys::names(keys::own_keys(kind))),
        ),
    }
    table.check_keys(&known, problems);
}

fn read_kind(
    table: &FormTable<'_>,
    kind: &str,
    left: &mut usize,
    problems: &mut FileProblems,
) -> Option<FieldType> {
    let count =
        |key: &str, max: u64, problems: &mut FileProblems| table.count(key, 0..=max, problems);
    let kind = match kind {
        "text" | "multiline" => FieldType::Text {
            min_length: count("min_length", LENGTH_MAX, problems),
            max_length: count("max_length", LENGTH_MAX, problems),
            pattern: table.text("pattern", PATTERN_MAX, problems),
        },
        "email" => FieldType::Email,
        "url" => FieldType::Url,
        "number" => FieldType::Number {
            min: table.number("min", problems),
            max: table.number("max", problems),
            step: table.number("step", problems),
            decimals: table.flag("decimals", problems),
        },
        "dropdown" => FieldType::Dropdown {
            choices: choices(table, problems),
        },
        "multi-choice" => FieldType::MultiChoice {
            choices: choices(table, problems),
            min_items: count("min_items", ITEMS_MAX, problems),
            max_items: count("max_items", ITEMS_MAX, problems),
        },
        "checkbox" => FieldType::Checkbox,
        "date" => FieldType::Date,
        "datetime" => FieldType::Datetime,
        "file" => FieldType::File,
        "record" => {
            if !table.has("fields") {
                problems.add_hint(
                    table.at("fields"),
                    "a record needs its fields",
                    "add `fields: [...]`",
                );
            }
            let values: Vec<_> = table.list("fields", problems)?.iter().enumerate().collect();
            FieldType::Record {
                fields: read_list(
                    &values,
                    &table.at("fields"),
                    FieldPosition::Record,
                    left,
                    problems,
                ),
            }
        }
        "json" => {
            let Some(schema) = table.get("schema") else {
                let hint =
                    "add `schema: { … }`, any JSON Schema 2020-12; `schema: {}` takes everything";
                problems.add_hint(table.at("schema"), "a json field needs its schema", hint);
                return None;
            };
            FieldType::Json {
                schema: schema.clone(),
            }
        }
        _ => {
            let Some(of) = table.get("of") else {
                problems.add_hint(
                    table.at("of"),
                    "a list needs the type of its items",
                    "add `of: { type: text }`",
                );
                return None;
            };
            let of = read(of, table.at("of"), FieldPosition::Element, left, problems)?;
            FieldType::List {
                of: Box::new(of),
                min_items: count("min_items", ITEMS_MAX, problems),
                max_items: count("max_items", ITEMS_MAX, problems),
            }
        }
    };
    Some(kind)
}

fn examples(table: &FormTable<'_>, problems: &mut FileProblems) -> Vec<Value> {
    let values = table.list("examples", problems).unwrap_or_default();
    problems
        .bounded(&table.at("examples"), values, EXAMPLES_MAX, "examples")
        .to_vec()
}

fn choices(table: &FormTable<'_>, problems: &mut FileProblems) -> Vec<FieldChoice> {
    let place = table.at("choices");
    let Some(values) = table.list("choices", problems) else {
        if !table.has("choices") {
            problems.add_hint(place, "the choices are missing", "add `choices: [a, b]`");
        }
        return Vec::new();
    };
    if values.is_empty() {
        problems.add_hint(
            place.clone(),
            "there is no choice",
            "write the values, such as `[open, closed]`, or use type: text",
        );
    }
    let mut choices: Vec<FieldChoice> = Vec::new();
    let mut taken = HashSet::new();
    for (index, value) in problems
        .bounded(&place, values, CHOICES_MAX, "choices")
        .iter()
        .enumerate()
    {
        let place = format!("{place}/{index}");
        let Some(choice) = choice(value, index, place.clone(), problems) else {
            continue;
        };
        // Each is accepted, whatever came before.
        let mut known = Vec::new();
        for text in choice.texts() {
            if !taken.insert(text.clone()) {
                known.push(text);
            }
        }
        if let Some(twice) = known.first() {
            problems.add_hint(
                place.clone(),
                format!("the choice {} occurs twice", name::quoted(twice)),
                "drop one of the two",
            );
        }
        choices.push(choice);
        if taken.len() > CHOICES_MAX {
            problems.add_hint(
                format!("{place}/also"),
                format!("the choices of a field have at most {CHOICES_MAX} texts together"),
                "drop some of them, or use type: text",
            );
            break;
        }
    }
    choices
}

fn choice(
    value: &Value,
    index: usize,
    place: String,
    problems: &mut FileProblems,
) -> Option<FieldChoice> {
    match value {
        Value::String(text) => Some(FieldChoice {
            value: text.clone(),
            title: None,
            also: Vec::new(),
            index,
        }),
        Value::Object(_) => {
            let table = FormTable::new(value, place, problems)?;
            table.check_known(keys::CHOICE, problems);
            if let Some(other) = table.get("value").filter(|value| !value.is_string()) {
                not_text(other, table.at("value"), problems);
                return None;
            }
            Some(FieldChoice {
                value: table.required_text("value", problems)?,
                title: table.text("title", table::TITLE_MAX, problems),
                also: table.names("also", problems).unwrap_or_default(),
                index,
            })
        }
        other => {
            not_text(other, place, problems);
            None
        }
    }
}

fn not_text(value: &Value, place: String, problems: &mut FileProblems) {
    let message = format!("a choice must be text, not {}", table::kind(value));
    problems.add_hint(
        place,
        message,
        "put it in quotes; for numbers use type: number",
    );
}
