//! The shape of a collection's records: what an adapter describes and a contract version records.
//!
//! The JSON is that of `weir-contracts`, which is never compiled into a guest; a test there and one here read and write
//! `tests/fixtures/shape.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The shape an adapter describes for one collection. Recorded with the contract version; start touches no source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// The collection's name.
    pub name: String,
    /// The columns.
    pub fields: Vec<Field>,
    /// The columns that name one record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// The abilities of the source.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// IANA name or offset that zoneless datetimes of the source are read in. Set by the contract; UTC without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The treatment of cells that do not fit the type of their column, in a source that stores text. Set by the contract.
    #[serde(default, skip_serializing_if = "Misfits::is_refuse")]
    pub misfits: Misfits,
    /// The texts that mean an empty cell. Set by the contract.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub null_words: Vec<String>,
    /// Columns of the source whose values a record cannot contain, such as bytes. Only a description names them: no contract
    /// records them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Notes for the person who drafts a contract for the source, a sentence each. Only a description has notes: no contract
    /// records them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The tables of a source that has several, if the settings do not name one. Only a description has them: no
    /// contract records them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<SourcePart>,
}

/// A table of a source that has several, such as a sheet of a workbook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SourcePart {
    /// Its name in the source.
    pub name: String,
    /// Why it is not a table, if it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Field {
    /// The column's name.
    pub key: String,
    /// The type of its values.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Whether a record may have no value.
    #[serde(default)]
    pub nullable: bool,
    /// A description of what the column holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The source's own name of the type, for the adapter's use only (`int8`, `numeric(10,2)`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// Whether the source fills in the value when a create leaves it out (a default, an identity column).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub generated: bool,
    /// Whether only the source sets the value, so that no create or update may (a computed column).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// The format of values in a source that holds text, if it is not that of the value table. The contract sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Box<TextFormat>>,
    /// The ways to read all texts of a `string` column that are not written as the value table writes them. A draft
    /// takes a single one, and asks a person if there are several. Only a description has readings: no contract records
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
    /// The fields of a `record`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// The element of a `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Field>>,
    /// The texts that mean an empty cell of this column: those of the shape. [`Shape::parse`] fills them in.
    #[serde(skip)]
    pub null_words: Vec<String>,
    /// Whether a record has null if a cell is not a value of this column. [`Shape::parse`] fills it in.
    #[serde(skip)]
    pub empties_misfits: bool,
}

/// The treatment of a cell that does not fit the type of its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misfits {
    /// It is passed on as it is, and the gateway refuses the answer.
    #[default]
    Refuse,
    /// The record has null there, and a condition that cannot judge the cell counts it.
    Empty,
    /// All columns but the key are text already.
    Text,
}

impl Misfits {
    fn is_refuse(&self) -> bool {
        *self == Self::Refuse
    }
}

/// The format of numbers, dates and times in text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TextFormat {
    /// The mark before the fraction of a number. By default it is a point, or a comma if points separate groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<String>,
    /// The mark between groups of three digits; by default none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grouping: Option<String>,
    /// A number with its unit. `#` is the place of the number: `# €`, `$#`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// A date, as strftime writes it: `%d/%m/%Y`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// A time without a zone, as strftime writes it: `%d.%m.%Y %H:%M`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datetime: Option<String>,
}

/// One way to read all texts of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// The type that the texts would have.
    #[serde(rename = "type")]
    pub kind: Type,
    /// The format that they are written in.
    #[serde(default)]
    pub format: TextFormat,
    /// The texts among them that mean an empty cell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub null_words: Vec<String>,
}

/// The value table of all sources: see `docs/values.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Type {
    /// Any text.
    #[default]
    String,
    /// Within ±(2^53−1).
    Integer,
    /// A string `^-?\d+(\.\d+)?$`.
    Decimal,
    /// A finite double.
    Number,
    /// True or false.
    Boolean,
    /// `YYYY-MM-DD`.
    Date,
    /// RFC 3339 in UTC, with `Z`.
    Datetime,
    /// Any JSON.
    Json,
    /// An object with its own fields.
    Record,
    /// A list of one type.
    List,
}

/// The abilities that the source has exactly. Anything else is refused at compile time, never emulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Lookup and list.
    #[serde(default)]
    pub read: bool,
    /// The writes that the source supports, of create, update and delete. If this is empty, `read_only` may explain why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Why nothing can be written, for the refusal ("XLSX files are read-only").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// Whether update and delete hold to [`crate::Change::conditions`], in one step with the change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guarded_write: bool,
    /// Column → comparisons it supports. `*` means every column not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub matches: BTreeMap<String, Vec<String>>,
    /// Columns that a list may be ordered by. `["*"]` means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The summaries that [`crate::Adapter::summarize`] supports.
    #[serde(default, skip_serializing_if = "Summaries::is_none")]
    pub summaries: Summaries,
    /// Extra inputs a field may be sent to with `param:`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Param>,
    /// Operations for the verb `call`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operation>,
    /// Whether the source is an open outside world (rest, upstream): this becomes openWorldHint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_world: bool,
}

/// The summaries that a source supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Summaries {
    /// Nothing.
    #[default]
    None,
    /// The number of records that meet conditions.
    Count,
    /// That, and all measures of groups.
    All,
}

impl Summaries {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// An extra input of a collection or an operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// The name.
    pub name: String,
    /// The type of its value.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Whether the parameter must not be left out.
    #[serde(default)]
    pub required: bool,
    /// A description of its purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The element of a `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<Field>>,
}

/// An operation that an adapter names and declares, for the verb `call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// The operation's name.
    pub name: String,
    /// The effect of the operation on the world.
    pub effect: Effect,
    /// The parameters of the operation. A form's field goes to one of them with `param:`, by default to the one with
    /// its own name.
    #[serde(default)]
    pub params: Vec<Param>,
    /// The record it answers.
    #[serde(default)]
    pub returns: Vec<Field>,
}

/// The effect of an operation on the world; it decides the derived annotations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The operation changes nothing.
    Read,
    /// The operation makes something new.
    Create,
    /// The operation changes something.
    Update,
    /// The operation may lose something.
    #[default]
    Destructive,
}

impl Shape {
    /// Creates a shape without columns.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the column of that name.
    pub fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// Reads a shape from its JSON. One that cannot be read is the gateway's fault, not the author's.
    pub fn parse(json: &str) -> Result<Self, crate::Error> {
        let mut shape: Self = serde_json::from_str(json).map_err(|error| {
            crate::Error::invalid(format!("The recorded shape is wrong: {error}.")).field("shape")
        })?;
        shape.spread_cell_rules();
        Ok(shape)
    }

    /// Copies the shape's rules for cells that are not values to each column, except the key, which identifies a record.
    fn spread_cell_rules(&mut self) {
        for field in &mut self.fields {
            if !self.key.contains(&field.key) {
                field.null_words.clone_from(&self.null_words);
                field.empties_misfits = self.misfits == Misfits::Empty;
            }
        }
    }

    /// Returns the shape as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a shape has string keys only")
    }
}

impl Field {
    /// Creates a column.
    pub fn new(key: &str, kind: Type) -> Self {
        Self {
            key: key.to_owned(),
            kind,
            ..Self::default()
        }
    }

    /// Returns `true` for a text that means an empty cell: blanks around it and the case of A to Z do not matter.
    pub fn is_null_word(&self, text: &str) -> bool {
        let mut words = self.null_words.iter();
        words.any(|word| word.eq_ignore_ascii_case(text.trim()))
    }

    /// Sets whether a record may have no value.
    pub fn nullable(mut self, nullable: bool) -> Self {
        self.nullable = nullable;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every member is named, so that a new one has to be added to the contracts as well.
    #[test]
    fn the_contracts_read_what_is_written_here() {
        let text = std::fs::read_to_string(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../tests/fixtures/shape.json"
        ))
        .unwrap();
        let shape = Shape::parse(&text).unwrap();
        let written: serde_json::Value = serde_json::from_str(&shape.to_json()).unwrap();
        assert_eq!(
            written,
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        );

        let Shape {
            name,
            fields,
            key,
            capabilities,
            timezone,
            misfits,
            null_words,
            left_out,
            notes,
            parts,
        } = shape;
        let Capabilities {
            read,
            write,
            read_only,
            guarded_write,
            matches,
            order,
            summaries,
            params,
            operations,
            open_world,
        } = capabilities;
        let Field {
            key: _,
            kind: _,
            nullable: _,
            description,
            native,
            generated,
            read_only: is_read_only,
            format,
            readings,
            ..
        } = &fields[0];
        let Param {
            name: _,
            kind: _,
            required,
            description: described,
            items,
        } = &params[0];
        let Operation {
            name: _,
            effect: _,
            params: taken,
            returns,
        } = &operations[1];
        assert!(
            !name.is_empty()
                && !key.is_empty()
                && timezone.is_some()
                && !left_out.is_empty()
                && !notes.is_empty()
                && parts.len() == 2
        );
        assert!(misfits == Misfits::Empty && !null_words.is_empty());
        assert!(read && guarded_write && open_world && read_only.is_some() && *required);
        assert!(items.is_some());
        assert!(*generated && *is_read_only && summaries == Summaries::All);
        assert!(
            !write.is_empty()
                && !matches.is_empty()
                && !order.is_empty()
                && !taken.is_empty()
                && !returns.is_empty()
        );
        assert!(description.is_some() && native.is_some() && described.is_some());
        assert!(format.is_some() && readings.len() == 2 && !readings[0].null_words.is_empty());
        let inside = |field: &Field| (!field.fields.is_empty(), field.items.is_some());
        assert_eq!(
            fields
                .iter()
                .map(inside)
                .filter(|inside| inside.0 || inside.1)
                .count(),
            2
        );
    }
}
