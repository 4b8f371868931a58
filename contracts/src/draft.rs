//! A contract drafted from a described shape: what `weir draft` prints and `weir serve FILE` serves.
//!
//! The text is written by hand, since it is for a person to read and change: one line a field, a comment where a
//! choice was made. It compiles unchanged with the shape it was drafted from.

mod alike;
mod changes;
mod database;
mod parameters;
mod questions;
mod relations;
mod words;
mod worth;
pub(crate) mod yaml;

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
};

use serde_json::Value;

use crate::{
    form, name, secret,
    shape::{CollectionShape, ColumnReading, ShapeField, ValueType},
};
pub use database::{DatabaseDraft, DatabaseInput, LeftOutTable, TableDraft, draft_database};
pub(crate) use parameters::{block, declared};
pub use relations::TableReference;
use weir_text::shorten;
pub use worth::{ColumnSample, ColumnSamples};
use yaml::{flow, scalar};

/// The knowledge about one source.
pub struct DraftInput<'a> {
    /// A contract name, as `contract_name` makes it.
    pub name: &'a str,
    /// The source's own name, as people wrote it: of a file, without its ending.
    pub title: &'a str,
    pub adapter: &'a str,
    pub settings: &'a Value,
    pub shape: &'a CollectionShape,
    /// Text columns with few values, and the values in order: they become dropdowns.
    pub choices: &'a BTreeMap<String, Vec<String>>,
    /// What the first records showed, as far as the source could be read.
    pub samples: &'a ColumnSamples,
}

/// A drafted contract.
pub struct ContractDraft {
    /// The contract file, YAML; compiles unchanged with the shape.
    pub contract: String,
    /// Whether a tool of the contract writes.
    pub writes: bool,
    /// A sentence for each thing that was left out, with the reason.
    pub notes: Vec<String>,
}

const TITLE_LENGTH: usize = 150;

/// Drafts a contract. The error is for a source from which no tool can be made: a sentence for each reason.
pub fn draft(input: &DraftInput<'_>) -> Result<ContractDraft, Vec<String>> {
    let (read, notes) = as_read(input.shape);
    let mut drafter = ContractDrafter::new(input, &read);
    drafter.notes.extend(notes);
    drafter.write()
}

/// Returns the shape in which each text column has the type that all of its texts can be read as, if there is only one.
/// Columns with several get a note each.
fn as_read(described: &CollectionShape) -> (CollectionShape, Vec<String>) {
    let mut shape = described.clone();
    let mut notes = std::mem::take(&mut shape.notes);
    let mut null_words = Vec::new();
    for field in &mut shape.fields {
        match std::mem::take(&mut field.readings).as_slice() {
            [] => {}
            [one] => {
                field.kind = one.kind;
                field.format = Some(Box::new(one.format.clone()));
                if field.description.is_none() {
                    field.description = one.format.describe_unit(&field.key);
                }
                field.nullable |= !one.null_words.is_empty();
                for word in &one.null_words {
                    if !null_words.contains(word) {
                        null_words.push(word.clone());
                    }
                }
            }
            several => {
                let ways: Vec<String> = several
                    .iter()
                    .map(|reading| {
                        format!(
                            "{}, `{}`",
                            words::reading_words(reading),
                            flow(&said_of(reading))
                        )
                    })
                    .collect();
                notes.push(format!(
                    "The column {} stays as it is, since all of it can be read as {}. Say the right one under `shape:`, as `{}: …`.",
                    name::quoted(&field.key),
                    ways.join(", or as "),
                    scalar(&field.key),
                ));
            }
        }
    }
    shape.null_words = null_words;
    (shape, notes)
}

/// Writes a reading in the words of a contract.
fn said_of(reading: &ColumnReading) -> Value {
    let mut shape = serde_json::Map::from_iter([("type".to_owned(), reading.kind.word().into())]);
    shape.extend(
        reading
            .format
            .keys()
            .map(|(key, given)| (key.to_owned(), given.into())),
    );
    Value::Object(shape)
}

/// Makes a contract name from the name of a file, table or path.
pub fn contract_name(name: &str) -> String {
    let made = words::dashed(name);
    let made: String = match made.starts_with(|first: char| first.is_ascii_lowercase()) {
        true => made.chars().take(32).collect(),
        false if made.is_empty() => "records".to_owned(),
        false => format!("t-{made}").chars().take(32).collect(),
    };
    made.trim_end_matches('-').to_owned()
}

struct ContractDrafter<'a> {
    input: &'a DraftInput<'a>,
    /// The shape as the drafted contract reads it.
    shape: &'a CollectionShape,
    /// Columns that leave.
    columns: Vec<&'a ShapeField>,
    hidden: Vec<&'a ShapeField>,
    noun: words::RecordNoun,
    /// Column → name of its fields.
    names: BTreeMap<&'a str, String>,
    notes: Vec<String>,
    /// Whether records may be changed and deleted too, where the source can.
    changes: bool,
    /// The records that its lookup can answer along with its own.
    relations: Vec<relations::DraftedRelation>,
}

impl<'a> ContractDrafter<'a> {
    fn new(input: &'a DraftInput<'a>, shape: &'a CollectionShape) -> Self {
        let (hidden, columns): (Vec<&ShapeField>, Vec<&ShapeField>) = shape
            .fields
            .iter()
            .partition(|field| secret::is_named_like_one(&field.key));
        let mut notes = Vec::new();
        if !hidden.is_empty() {
            let names: Vec<String> = hidden
                .iter()
                .map(|field| name::quoted(&field.key))
                .collect();
            notes.push(format!(
                "Left out, since the name looks like a secret: {}.",
                names.join(", ")
            ));
        }
        if !shape.left_out.is_empty() {
            let names: Vec<String> = shape
                .left_out
                .iter()
                .map(|name| name::quoted(name))
                .collect();
            notes.push(format!(
                "Left out, since no record can hold its values, such as bytes: {}.",
                names.join(", ")
            ));
        }
        notes.extend(alike::note_alike(input, shape));
        notes.extend(parameters::note_order(input));
        let (noun, names) = (
            words::RecordNoun::from_name(input.title),
            field_names(shape),
        );
        Self {
            input,
            shape,
            columns,
            hidden,
            noun,
            names,
            notes,
            changes: false,
            relations: Vec::new(),
        }
    }

    fn write(mut self) -> Result<ContractDraft, Vec<String>> {
        let mut text = String::new();
        let described = match self.noun.many.ends_with("records") {
            true => format!("{}.", words::capital(&self.noun.many)),
            false => format!("Records of {}.", self.noun.many),
        };
        let _ = writeln!(text, "contract: {}", scalar(self.input.name));
        let _ = writeln!(
            text,
            "title: {}",
            scalar(&title(self.input.title, &self.noun))
        );
        let _ = writeln!(text, "description: {}", scalar(&described));
        let tools = self.tools();
        if tools.is_empty() {
            return Err(self.notes);
        }
        let _ = writeln!(text, "collections:");
        self.collection_text(&mut text);
        let _ = write!(text, "tools:\n{tools}");
        Ok(ContractDraft {
            contract: text,
            writes: self.writes(),
            notes: self.notes,
        })
    }

    /// Writes the tools; empty, with a note that explains why, if there are none.
    fn tools(&mut self) -> String {
        let mut tools = String::new();
        if !self.columns.is_empty() {
            self.lookup(&mut tools);
            self.questions(&mut tools);
            self.create(&mut tools);
            if self.changes {
                self.update(&mut tools);
                self.delete(&mut tools);
            }
        }
        if tools.is_empty() {
            let reason = match self.columns.is_empty() {
                true => "No column is left.",
                false => "The source can neither be read nor written.",
            };
            self.notes.push(reason.to_owned());
        }
        tools
    }

    /// Writes the collection.
    fn collection_text(&self, text: &mut String) {
        let _ = writeln!(text, "  {}:", self.collection());
        let _ = writeln!(text, "    adapter: {}", scalar(self.input.adapter));
        let _ = write!(text, "{}", parameters::settings(self.input));
        if !self.hidden.is_empty() {
            let names: Vec<String> = self.hidden.iter().map(|field| scalar(&field.key)).collect();
            let _ = writeln!(
                text,
                "    # Named like secrets: these never leave the source."
            );
            let _ = writeln!(text, "    hide: [{}]", names.join(", "));
        }
        self.formats(text);
        if CollectionShape::takes_formats(self.input.adapter) {
            let _ = writeln!(
                text,
                "    # A cell that does not fit the type of its column is null, and filters count it."
            );
            let _ = writeln!(text, "    misfits: empty");
        }
        if !self.shape.null_words.is_empty() {
            let words: Vec<String> = self
                .shape
                .null_words
                .iter()
                .map(|word| scalar(word))
                .collect();
            let _ = writeln!(text, "    null_words: [{}]", words.join(", "));
        }
        self.relations_text(text);
        if self.writes() {
            let _ = writeln!(
                text,
                "    # Take this and the writing tools away to make the collection read-only."
            );
            let _ = writeln!(text, "    write: true");
        }
    }

    /// Writes how the source formats numbers and dates.
    fn formats(&self, text: &mut String) {
        let formatted: Vec<&&ShapeField> = self
            .columns
            .iter()
            .filter(|field| field.format.is_some())
            .collect();
        if formatted.is_empty() {
            return;
        }
        let _ = writeln!(
            text,
            "    # How the source writes these, as far as all its values agree."
        );
        let _ = writeln!(text, "    shape:");
        for field in formatted {
            let format = field.format.as_deref().cloned().unwrap_or_default();
            let reading_text = flow(&said_of(&ColumnReading {
                kind: field.kind,
                format,
                null_words: Vec::new(),
            }));
            let _ = writeln!(text, "      {}: {reading_text}", scalar(&field.key));
        }
    }

    fn lookup(&mut self, text: &mut String) {
        let shape = self.shape;
        if !shape.capabilities.read {
            return;
        }
        if shape.key.is_empty() {
            self.notes.push(
                "There is no lookup, since no column is known to identify a record: none that is named like a key (id, no, \
                 code, email …) has a different value in every record. If one does, write `key: [column]` and add a lookup."
                    .to_owned(),
            );
            return;
        }
        let Some(key) = self.asked_key() else {
            self.notes
                .push("The key cannot be asked for, so there is no lookup.".to_owned());
            return;
        };
        let names: Vec<String> = key.iter().map(|field| words::visible(&field.key)).collect();
        let described = format!(
            "Finds one {} by {}.",
            self.noun.one,
            names.join(" and ").trim_end_matches('.')
        );
        let include = self.include_text();
        self.head_with(text, "get", &self.noun.one, &described, "lookup", &include);
        self.key_fields(text);
    }

    /// Returns the columns of the key, if there is one by which the source can be asked for a record.
    fn asked_key(&self) -> Option<Vec<&'a ShapeField>> {
        let shape = self.shape;
        let key: Vec<&ShapeField> = shape
            .key
            .iter()
            .filter_map(|key| shape.field(key))
            .collect();
        let is_asked = key.len() == shape.key.len()
            && !key.is_empty()
            && key.iter().all(|field| can(shape, field, "equals"));
        is_asked.then_some(key)
    }

    /// Writes a field for each column of the key.
    fn key_fields(&self, text: &mut String) {
        for field in self.asked_key().unwrap_or_default() {
            let typed = self.type_of(field, false);
            let (name, column) = (scalar(self.name(field)), self.column_of(field));
            let help = self.help_of_key(field);
            let _ = writeln!(
                text,
                "      - {{ name: {name}, {typed}{column}, required: true{help} }}"
            );
        }
    }

    /// Writes the help of a field for a key column: the record that it identifies, if the source gives no description.
    fn help_of_key(&self, field: &ShapeField) -> String {
        let own = help(field);
        match own.is_empty() {
            true => render_help(&format!(
                "The {}'s {}.",
                self.noun.one,
                words::visible(&field.key).trim_end_matches('.')
            )),
            false => own,
        }
    }

    fn create(&mut self, text: &mut String) {
        if !self.can_write() {
            let why = self.why_no_create();
            self.notes.extend(why);
            return;
        }
        let described = format!(
            "Adds {} and returns it as the source now holds it.",
            self.noun.with_article()
        );
        self.head(text, "create", &self.noun.one, &described, "create");
        for field in self.written() {
            let typed = self.type_of(field, true);
            let nullable = field.nullable && !self.shape.key.contains(&field.key);
            // An absent field means the same as null, and a plain type is what most clients read.
            let flags = if nullable || field.generated {
                ""
            } else {
                ", required: true"
            };
            let (name, column) = (scalar(self.name(field)), self.column_of(field));
            let _ = writeln!(
                text,
                "      - {{ name: {name}, {typed}{column}{flags}{} }}",
                help(field)
            );
        }
    }

    /// Explains why the draft writes nothing, if an operator can change that.
    fn why_no_create(&self) -> Vec<String> {
        let mut why = Vec::new();
        if let Some(reason) = &self.shape.capabilities.read_only {
            why.push(format!("No tool writes: {}.", reason.trim_end_matches('.')));
        }
        if !self.takes_create() {
            return why;
        }
        let (lacking, fields) = (self.lacking(), self.written().len());
        if !lacking.is_empty() {
            why.push(format!(
                "There is no create, since it needs a value for {}: add one with a field for each.",
                lacking.join(", ")
            ));
        }
        if fields > form::FIELDS_MAX {
            why.push(format!(
                "There is no create, since it would have {fields} fields, and a form has at most {}: add one with \
                 those that matter.",
                form::FIELDS_MAX
            ));
        }
        why
    }

    fn head(&self, text: &mut String, action: &str, object: &str, description: &str, verb: &str) {
        self.head_with(text, action, object, description, verb, "");
    }

    /// Writes what a tool has before its fields; `keys` are whole lines.
    fn head_with(
        &self,
        text: &mut String,
        action: &str,
        object: &str,
        description: &str,
        verb: &str,
        keys: &str,
    ) {
        let named = words::limited(
            &format!("{action}_{}", words::joined(object)),
            name::TOOL_LENGTH_GOOD,
        );
        let _ = writeln!(text, "  - tool: {named}");
        let _ = writeln!(text, "    description: {}", scalar(description));
        let _ = writeln!(text, "    verb: {verb}");
        let _ = writeln!(text, "    collection: {}", self.collection());
        text.push_str(keys);
        let _ = writeln!(text, "    fields:");
    }

    /// Returns `true` if the draft has a tool that writes.
    fn writes(&self) -> bool {
        self.can_write() || self.can_change()
    }

    fn can_write(&self) -> bool {
        let fields = self.written().len();
        self.takes_create() && (1..=form::FIELDS_MAX).contains(&fields) && self.lacking().is_empty()
    }

    fn takes_create(&self) -> bool {
        self.shape
            .capabilities
            .write
            .iter()
            .any(|verb| verb == "create")
    }

    /// Returns the columns that a create of the draft has a field for; a key that the source generates is not among them.
    fn written(&self) -> Vec<&'a ShapeField> {
        let is_made_up =
            |field: &ShapeField| field.generated && self.shape.key.contains(&field.key);
        self.columns
            .iter()
            .copied()
            .filter(|field| is_writable(field) && !is_made_up(field))
            .collect()
    }

    /// Returns the columns that a create needs and that the draft has no field for.
    fn lacking(&self) -> Vec<String> {
        let shape = self.shape;
        let has_field = |field: &ShapeField| {
            is_writable(field) && self.columns.iter().any(|column| column.key == field.key)
        };
        let lacking = shape
            .fields
            .iter()
            .filter(|field| shape.needs(field, self.input.adapter) && !has_field(field));
        lacking.map(|field| name::quoted(&field.key)).collect()
    }

    /// Returns the name of a column's own field.
    fn name<'b>(&'b self, field: &'b ShapeField) -> &'b str {
        self.names
            .get(field.key.as_str())
            .map_or(&field.key, String::as_str)
    }

    /// Writes `, column: …, title: …` if the name does not imply it.
    fn column_of(&self, field: &ShapeField) -> String {
        match self.name(field) == field.key {
            true => String::new(),
            false => format!(", column: {}{}", scalar(&field.key), titled(field, "")),
        }
    }

    fn collection(&self) -> String {
        words::joined(&self.noun.many)
    }

    /// Returns the values of a column that has few. An empty one cannot be a choice: some models' interfaces refuse the
    /// whole request for it.
    fn choices(&self, field: &ShapeField) -> Option<Vec<&'a str>> {
        alike::choices_of(self.input.choices.get(&field.key)?)
    }

    /// Returns `true` if a text of the column may be empty, as far as its few values show.
    fn may_be_empty(&self, field: &ShapeField) -> bool {
        self.input
            .choices
            .get(&field.key)
            .is_some_and(|known| known.iter().any(String::is_empty))
    }

    /// Writes `type: …` with the keys that belong to it.
    fn type_of(&self, field: &ShapeField, written: bool) -> String {
        match field.kind {
            // It is answered as text, since a number in JSON may not preserve its digits, and so is also
            // asked for as text. So is a key of another table.
            ValueType::Decimal
                if self.shape.key.contains(&field.key) || self.relates_by(&field.key) =>
            {
                "type: text".to_owned()
            }
            ValueType::Integer | ValueType::Number | ValueType::Decimal => {
                "type: number".to_owned()
            }
            ValueType::Boolean => "type: checkbox".to_owned(),
            ValueType::Date => "type: date".to_owned(),
            ValueType::Datetime => "type: datetime".to_owned(),
            ValueType::Json => "type: json, schema: {}".to_owned(),
            _ => match self
                .choices(field)
                .filter(|_| !written || !self.may_be_empty(field))
            {
                Some(choices) => {
                    let choices: Vec<String> = choices.into_iter().map(scalar).collect();
                    format!("type: dropdown, choices: [{}]", choices.join(", "))
                }
                None => "type: text".to_owned(),
            },
        }
    }
}

/// Returns the title for people, with the digits and dates of the file's name.
fn title(given: &str, noun: &words::RecordNoun) -> String {
    let title = words::visible(&given.replace(['_', '-'], " "));
    match title.is_empty() {
        true => words::capital(&noun.many),
        false => words::capital(&words::limited(&title, TITLE_LENGTH)),
    }
}

/// Returns the names of the columns' fields, no two alike: the column's own if it is plain snake_case, else one made
/// from it (`Amount (EUR)` → `amount_eur`).
fn field_names(shape: &CollectionShape) -> BTreeMap<&str, String> {
    let own = shape
        .fields
        .iter()
        .map(|field| field.key.as_str())
        .filter(|key| words::field(key) == **key);
    let mut names: BTreeMap<&str, String> = own.map(|key| (key, key.to_owned())).collect();
    let mut taken: HashSet<String> = names.values().cloned().collect();
    for field in &shape.fields {
        if names.contains_key(field.key.as_str()) {
            continue;
        }
        let stem = name::plain_field(&words::field(&field.key));
        let numbered = (2..).map(|number| format!("{stem}_{number}"));
        let name = std::iter::once(stem.clone())
            .chain(numbered)
            .find(|name| taken.insert(name.clone()));
        names.insert(&field.key, name.expect("numbers do not end"));
    }
    names
}

/// Writes the column's own name as a title, since people know the column by it.
fn titled(field: &ShapeField, side: &str) -> String {
    let title = words::limited(&words::visible(&field.key), TITLE_LENGTH);
    match title.is_empty() {
        true => String::new(),
        false => format!(", title: {}", scalar(&format!("{title}{side}"))),
    }
}

/// Returns `true` if one field of a create can give the column its value.
fn is_writable(field: &ShapeField) -> bool {
    !field.read_only && !matches!(field.kind, ValueType::Record | ValueType::List)
}

fn can(shape: &CollectionShape, field: &ShapeField, comparison: &str) -> bool {
    shape
        .capabilities
        .compares(&field.key)
        .iter()
        .any(|known| known == comparison)
}

fn help(field: &ShapeField) -> String {
    field
        .description
        .as_deref()
        .filter(|text| !text.trim().is_empty())
        .map(render_help)
        .unwrap_or_default()
}

/// Writes what a filter asks about a column, using the source's description of it or its name.
fn help_and(field: &ShapeField, asked: &str) -> String {
    let own = field.description.as_deref().map(str::trim);
    render_help(&match own.filter(|text| !text.is_empty()) {
        Some(text) => format!("{}. {}.", text.trim_end_matches('.'), words::capital(asked)),
        None => format!("{} {asked}.", words::capital(&words::spoken(&field.key))),
    })
}

fn render_help(help: &str) -> String {
    format!(", help: {}", scalar(&shorten(help, 500)))
}
