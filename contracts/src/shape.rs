//! The shape of a collection's records: what an adapter describes and a contract version records.

mod format;
mod read;
mod satisfied;

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::name;

pub use format::{ColumnFormat, ColumnReading};
pub use read::COMPARISONS;

/// The shape an adapter describes for one collection. Recorded with the contract version; start touches no source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollectionShape {
    pub name: String,
    pub fields: Vec<ShapeField>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<String>,
    /// A shape written by hand that does not state them counts as able to do everything.
    #[serde(default = "ShapeCapabilities::unstated")]
    pub capabilities: ShapeCapabilities,
    /// IANA name or offset that zoneless datetimes of the source are read in. Set by the contract; UTC without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// The treatment of cells that do not fit the type of their column, set by the contract.
    #[serde(default, skip_serializing_if = "MisfitPolicy::is_refuse")]
    pub misfits: MisfitPolicy,
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
    pub parts: Vec<ShapePart>,
}

/// A table of a source that has several, such as a sheet of a workbook.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapePart {
    /// Its name in the source.
    pub name: String,
    /// Why it is not a table, if it is not one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// The treatment of a cell that does not fit the type of its column, in a source that stores text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisfitPolicy {
    /// The answer with the cell is refused.
    #[default]
    Refuse,
    /// The record has null there, and a condition that cannot judge the cell counts it.
    Empty,
    /// All columns but the key are text.
    Text,
}

impl MisfitPolicy {
    fn is_refuse(&self) -> bool {
        *self == Self::Refuse
    }

    /// Reads a word of a contract.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "refuse" => Some(Self::Refuse),
            "empty" => Some(Self::Empty),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}

/// A column of a collection, or a member of a record in one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeField {
    pub key: String,
    #[serde(rename = "type")]
    pub kind: ValueType,
    #[serde(default)]
    pub nullable: bool,
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
    pub format: Option<Box<ColumnFormat>>,
    /// The ways to read all texts of a `string` column that are not written as the value table writes them. A draft
    /// takes a single one, and asks a person if there are several. Only a description has readings: no contract records
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<ColumnReading>,
    /// The fields of a `record`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<ShapeField>,
    /// The element of a `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<ShapeField>>,
}

impl ShapeField {
    /// Creates a field that is never null, with nothing but its name and type.
    pub(crate) fn new(key: &str, kind: ValueType) -> Self {
        Self {
            key: key.to_owned(),
            kind,
            nullable: false,
            description: None,
            native: None,
            generated: false,
            read_only: false,
            format: None,
            readings: Vec::new(),
            fields: Vec::new(),
            items: None,
        }
    }
}

/// Columns of one shape, members of nested records included.
const FIELDS_MAX: usize = 2_000;
const NESTING_MAX: usize = 16;

/// A contract's own definition of a column, which overrides the source's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnOverride {
    pub column: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ValueType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nullable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The format of the column's values, for sources that hold text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ColumnFormat>,
}

impl CollectionShape {
    /// Creates a shape about which nothing else is known.
    pub(crate) fn new(
        name: &str,
        fields: Vec<ShapeField>,
        capabilities: ShapeCapabilities,
    ) -> Self {
        Self {
            name: name.to_owned(),
            fields,
            key: Vec::new(),
            capabilities,
            timezone: None,
            misfits: MisfitPolicy::Refuse,
            null_words: Vec::new(),
            left_out: Vec::new(),
            parts: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the column of that key.
    pub fn field(&self, key: &str) -> Option<&ShapeField> {
        self.fields.iter().find(|field| field.key == key)
    }

    /// Returns `true` if a create without this column is certain to fail. Only a strict source's own word counts: an
    /// outside world describes its answers, a shape by hand may leave out what the source fills in, and a sheet takes
    /// an empty text.
    pub(crate) fn needs(&self, field: &ShapeField, adapter: &str) -> bool {
        let is_certain = match adapter {
            "sheet" => field.kind != ValueType::String || self.key.contains(&field.key),
            _ => field.native.is_some(),
        };
        // A key is never null, even if the source allows it for the column.
        let may_be_null = field.nullable && !self.key.contains(&field.key);
        is_certain
            && !may_be_null
            && !field.generated
            && !field.read_only
            && !self.capabilities.open_world
    }

    /// Returns `true` if an adapter reads columns of text in formats that a contract may set. The values of other
    /// adapters have types already.
    pub(crate) fn takes_formats(adapter: &str) -> bool {
        adapter == "sheet"
    }

    /// Applies a contract's definitions over those of the source.
    pub fn apply(&mut self, overrides: &[ColumnOverride]) {
        for change in overrides {
            let Some(field) = self
                .fields
                .iter_mut()
                .find(|field| field.key == change.column)
            else {
                continue;
            };
            let format = change.format.as_ref();
            let kind = change.kind.or_else(|| {
                format
                    .filter(|_| field.kind == ValueType::String)?
                    .implied()
            });
            if let Some(kind) = kind.filter(|kind| *kind != field.kind) {
                field.kind = kind;
                field.fields = Vec::new();
                field.items = None;
            }
            if let Some(format) = format {
                field.format = Some(Box::new(format.clone()));
            }
            field.nullable = change.nullable.unwrap_or(field.nullable);
            if change.description.is_some() {
                field.description = change.description.clone();
            }
            if field.description.is_none() {
                field.description = format.and_then(|format| format.describe_unit(&field.key));
            }
        }
    }

    /// Applies a contract's rules for cells that do not fit the type of their column. The key keeps its types, since it
    /// identifies a record.
    pub(crate) fn apply_misfits(&mut self, misfits: MisfitPolicy, null_words: &[String]) {
        self.misfits = misfits;
        self.null_words = null_words.to_vec();
        for field in &mut self.fields {
            if self.key.contains(&field.key) {
                continue;
            }
            match misfits {
                MisfitPolicy::Refuse => {}
                MisfitPolicy::Empty => field.nullable |= field.kind != ValueType::String,
                MisfitPolicy::Text => {
                    field.kind = ValueType::String;
                    field.format = None;
                }
            }
            field.nullable |= !null_words.is_empty();
        }
    }

    /// Returns the shape used to count the cells that are not values of their column, as these words of a contract read
    /// them. Without a key every column is judged.
    pub fn for_trial(&self, overrides: &[ColumnOverride], null_words: &[String]) -> Self {
        let mut shape = self.clone();
        shape.key.clear();
        shape.apply(overrides);
        shape.apply_misfits(MisfitPolicy::Empty, null_words);
        shape
    }

    /// Returns `true` if the contract has rules for such cells.
    pub(crate) fn has_cell_rules(&self) -> bool {
        self.misfits != MisfitPolicy::Refuse || !self.null_words.is_empty()
    }

    /// Returns `true` if a column has numbers with their unit.
    pub(crate) fn has_units(&self) -> bool {
        let mut formats = self
            .fields
            .iter()
            .filter_map(|field| field.format.as_deref());
        formats.any(|format| format.unit.is_some())
    }

    /// Checks the rules that types do not enforce: bounds, no name twice, a key that exists.
    pub fn check(&self) -> Result<(), String> {
        let mut left = FIELDS_MAX;
        check_fields(&self.fields, 0, &mut left)?;
        for (number, operation) in self.capabilities.operations.iter().enumerate() {
            let mut own = FIELDS_MAX;
            check_fields(&operation.returns, 0, &mut own)
                .map_err(|message| format!("operation '{}': {message}", operation.name))?;
            left = left.checked_sub(FIELDS_MAX - own).ok_or_else(|| {
                format!(
                    "it has more than {FIELDS_MAX} columns with those that its first {} operations return, of {}: leave \
                     operations out",
                    number + 1,
                    self.capabilities.operations.len()
                )
            })?;
        }
        match self.key.iter().find(|key| self.field(key).is_none()) {
            Some(key) => Err(format!(
                "its key names the column {}, which is not there",
                name::quoted(key)
            )),
            None => Ok(()),
        }
    }
}

fn check_fields(fields: &[ShapeField], depth: usize, left: &mut usize) -> Result<(), String> {
    if depth > NESTING_MAX {
        return Err(format!(
            "its records are nested deeper than {NESTING_MAX} levels"
        ));
    }
    let mut names = HashSet::new();
    for field in fields {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| format!("it has more than {FIELDS_MAX} columns"))?;
        if field.key.is_empty() || field.key.len() > 256 {
            return Err("a column name is empty or longer than 256 bytes".to_owned());
        }
        if !names.insert(field.key.as_str()) {
            return Err(format!(
                "the column {} is there twice",
                name::quoted(&field.key)
            ));
        }
        check_fields(&field.fields, depth + 1, left)?;
        if let Some(items) = &field.items {
            check_fields(&items.fields, depth + 1, left)?;
        }
    }
    Ok(())
}

/// The value table of all sources: see `docs/values.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueType {
    String,
    /// Within ±(2^53−1).
    Integer,
    /// A string `^-?\d+(\.\d+)?$`.
    Decimal,
    /// A finite double.
    Number,
    Boolean,
    /// `YYYY-MM-DD`.
    Date,
    /// RFC 3339 in UTC, with `Z`.
    Datetime,
    /// Any JSON.
    Json,
    Record,
    List,
}

impl ValueType {
    /// Reads a type from its word in a file.
    pub(crate) fn deserialize_value(value: &serde_json::Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    /// Returns the word in shapes.
    pub fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Decimal => "decimal",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Datetime => "datetime",
            Self::Json => "json",
            Self::Record => "record",
            Self::List => "list",
        }
    }
}

/// The abilities that the source has exactly. Anything else is refused at compile time, never emulated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeCapabilities {
    /// Lookup and list.
    #[serde(default)]
    pub read: bool,
    /// The writes that the source supports, of create, update and delete (`true` means all). If this is empty, `read_only`
    /// may explain why.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "read::verbs"
    )]
    pub write: Vec<String>,
    /// Why nothing can be written, for the refusal ("XLSX files are read-only").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<String>,
    /// Whether update and delete accept conditions in addition to the key, in one step with the change.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guarded_write: bool,
    /// Column → comparisons it supports. `*` means every column not named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub matches: BTreeMap<String, Vec<String>>,
    /// Columns that a list may be ordered by. `["*"]` means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// The summaries that the source supports. A contract records as much of it as its tools need.
    #[serde(default, skip_serializing_if = "SummarySupport::is_none")]
    pub summaries: SummarySupport,
    /// Extra inputs a field may be sent to with `param:`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<OperationParam>,
    /// Operations for the verb `call`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<ShapeOperation>,
    /// Whether the source is an open outside world (rest, upstream): this becomes openWorldHint.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_world: bool,
}

/// The summaries that a source supports; each word includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SummarySupport {
    #[default]
    None,
    /// The number of records that meet conditions.
    Count,
    /// All measures of groups.
    All,
}

impl SummarySupport {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// A parameter that an adapter declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationParam {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ValueType,
    #[serde(default)]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The element of a `list`, if the source states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<ShapeField>>,
}

/// An operation that an adapter names and declares, for the verb `call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShapeOperation {
    pub name: String,
    pub effect: OperationEffect,
    /// The parameters of the operation. A form's field goes to one of these with `param:`, by default to the one with
    /// its own name.
    #[serde(default)]
    pub params: Vec<OperationParam>,
    /// The record it answers.
    #[serde(default)]
    pub returns: Vec<ShapeField>,
}

/// The effect of an operation on the world; it decides the derived annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationEffect {
    Read,
    Create,
    Update,
    Destructive,
}
