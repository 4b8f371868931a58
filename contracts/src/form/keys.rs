//! Every key that an object of a contract file may have. The readers accept these and no others, and
//! [`vocabulary`](crate::vocabulary) describes them.

use super::{
    field::TYPES,
    table::{TEXT_MAX, TITLE_MAX},
    tool::{APPROVAL_RULES, ROWS_MAX, TEXT_MODES, TIMEOUT_MAX_MS, VERBS},
};
use crate::shape::COMPARISONS;

/// Characters that a bound on a text may name.
pub(super) const LENGTH_MAX: u64 = 10_000_000;
/// Items that a bound on a list may name.
pub(super) const ITEMS_MAX: u64 = 100_000;
pub(super) const PATTERN_MAX: usize = 1_000;
const NAME_MAX: usize = TITLE_MAX;

/// A key, and its purpose.
#[derive(Clone, Copy, Debug)]
pub struct FormKey {
    /// The key as a file has it.
    pub name: &'static str,
    /// The kind of its value.
    pub value: KeyValue,
    /// Whether the object needs it.
    pub is_required: bool,
    /// Its purpose, in one sentence.
    pub help: &'static str,
}

/// The kind of value that a key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyValue {
    /// A text of at most this many characters.
    Text { characters_max: usize },
    /// One of these words.
    Word(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// A whole number.
    Count { min: u64, max: u64 },
    /// A list of names, each once.
    Names,
    /// Any value.
    Any,
    /// A list of any values.
    AnyList,
    /// An object with any members.
    AnyObject,
    /// A JSON Schema.
    JsonSchema,
    /// One part.
    Part(FormPart),
    /// A list of parts.
    PartList(FormPart),
    /// Parts by their names.
    PartMap(FormPart),
}

/// An object of a contract file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormPart {
    /// A data source.
    Collection,
    /// A contract's settings of a column.
    Column,
    /// A record of another collection that one of a collection names.
    Relation,
    /// A tool of a contract.
    Tool,
    /// The limits of a tool.
    Limits,
    /// What the audit trail keeps of a tool.
    Audit,
    /// A field of a form, which may be bound.
    Field,
    /// A field of a record.
    Member,
    /// The field that defines what a list contains.
    Element,
    /// A choice of a dropdown.
    Choice,
}

const fn key(name: &'static str, value: KeyValue, help: &'static str) -> FormKey {
    FormKey {
        name,
        value,
        is_required: false,
        help,
    }
}

impl FormKey {
    const fn required(self) -> Self {
        Self {
            is_required: true,
            ..self
        }
    }
}

const NAME: KeyValue = KeyValue::Text {
    characters_max: NAME_MAX,
};
const TEXT: KeyValue = KeyValue::Text {
    characters_max: TEXT_MAX,
};
const LENGTH: KeyValue = KeyValue::Count {
    min: 0,
    max: LENGTH_MAX,
};
const ITEMS: KeyValue = KeyValue::Count {
    min: 0,
    max: ITEMS_MAX,
};

/// The keys of a contract.
pub const CONTRACT: &[FormKey] = &[
    key(
        "contract",
        NAME,
        "The contract's name, which its endpoint has too: a lower-case letter, then letters, digits and hyphens.",
    )
    .required(),
    key("title", NAME, "The name that people and clients see."),
    key("description", TEXT, "What the tools are for."),
    key(
        "instructions",
        TEXT,
        "What a client passes to its model about all the tools.",
    ),
    key("prefix", NAME, "Goes in front of the name of each tool."),
    key(
        "collections",
        KeyValue::PartMap(FormPart::Collection),
        "The data sources, by name.",
    ),
    key("tools", KeyValue::PartList(FormPart::Tool), "The tools.").required(),
];

/// The keys of a collection.
pub const COLLECTION: &[FormKey] = &[
    key(
        "adapter",
        NAME,
        "The plugin that reaches the source, such as sql, sheet or rest.",
    )
    .required(),
    key(
        "settings",
        KeyValue::AnyObject,
        "The adapter's own settings: mostly the connection and the table, file or path.",
    ),
    key(
        "columns",
        KeyValue::Names,
        "The columns that may leave the source; without it all of them.",
    ),
    key(
        "hide",
        KeyValue::Names,
        "The columns that may not leave the source, instead of `columns`.",
    ),
    key(
        "key",
        KeyValue::Names,
        "The columns that identify a record; without it, the source's own key.",
    ),
    key(
        "write",
        KeyValue::Flag,
        "Allows create, update, delete and operations with an effect.",
    ),
    key(
        "shape",
        KeyValue::PartMap(FormPart::Column),
        "What the contract overrides of the source's definitions, by column.",
    ),
    key(
        "timezone",
        KeyValue::Text { characters_max: 64 },
        "How datetimes without a zone are read: an IANA name or an offset; UTC without it.",
    ),
    key(
        "misfits",
        KeyValue::Word(&["empty", "text", "refuse"]),
        "What becomes of a cell of a sheet that does not fit the type of its column.",
    ),
    key(
        "null_words",
        KeyValue::Names,
        "Texts of a sheet that mean an empty cell.",
    ),
    key(
        "relations",
        KeyValue::PartMap(FormPart::Relation),
        "Records of other collections whose key columns hold, by the name that lookups answer them under.",
    ),
];

/// The keys of a relation.
pub const RELATION: &[FormKey] = &[
    key(
        "collection",
        NAME,
        "The other collection, of the same connection.",
    )
    .required(),
    key(
        "columns",
        KeyValue::Names,
        "The columns that hold the key of the other record, in the order of that key.",
    )
    .required(),
];

/// The keys of a contract's settings of a column.
pub const COLUMN: &[FormKey] = &[
    key(
        "type",
        KeyValue::Word(super::collection::COLUMN_TYPES),
        "The type of the column's values.",
    ),
    key(
        "nullable",
        KeyValue::Flag,
        "Whether the column may be empty.",
    ),
    key("description", TEXT, "What the column holds."),
    key(
        "decimal",
        NAME,
        "The mark before the fraction, as a sheet writes it.",
    ),
    key(
        "grouping",
        NAME,
        "The mark between thousands, as a sheet writes it.",
    ),
    key(
        "unit",
        NAME,
        "How a sheet writes a number with its unit, with # for the number, such as # € or $#.",
    ),
    key("date", NAME, "How a sheet writes a date, such as %d/%m/%Y."),
    key("datetime", NAME, "How a sheet writes a date with a time."),
];

/// The keys of a tool of a contract.
pub const TOOL: &[FormKey] = &[
    key("tool", NAME, "The tool's name, which agents call it by.").required(),
    key("title", NAME, "The name that people see."),
    key(
        "description",
        TEXT,
        "What the tool does and when to use it: agents choose by it.",
    ),
    key(
        "verb",
        KeyValue::Word(VERBS),
        "What the tool does with the collection.",
    )
    .required(),
    key(
        "collection",
        NAME,
        "The collection that it reads or writes.",
    )
    .required(),
    key(
        "fields",
        KeyValue::PartList(FormPart::Field),
        "The fields, in the order that agents see; [] for none.",
    )
    .required(),
    key(
        "order",
        KeyValue::Names,
        "The order of a list's records: columns, `-` in front for the other way round.",
    ),
    key(
        "order_by",
        KeyValue::Names,
        "The columns that an agent can order a list by.",
    ),
    key(
        "columns",
        KeyValue::Names,
        "The columns that an agent can choose for the records of a list.",
    ),
    key(
        "with_total",
        KeyValue::Flag,
        "Whether an agent can ask how many records a list has in total.",
    ),
    key(
        "returns",
        KeyValue::Names,
        "The published columns that the tool answers with, in this order.",
    ),
    key(
        "group_by",
        KeyValue::Names,
        "The columns that a summary can group by.",
    ),
    key(
        "measures",
        KeyValue::Names,
        "What a summary can compute: count, sum(c), avg(c), min(c), max(c), distinct(c).",
    ),
    key(
        "include",
        KeyValue::Names,
        "The relations whose records an agent can ask a lookup for.",
    ),
    key(
        "limits",
        KeyValue::Part(FormPart::Limits),
        "What one agent may ask of it.",
    ),
    key(
        "say",
        TEXT,
        "The sentence of the text block, with answered columns in braces.",
    ),
    key(
        "text",
        KeyValue::Word(TEXT_MODES),
        "What the text block holds; both without it.",
    ),
    key(
        "operation",
        NAME,
        "The operation of the adapter, for the verb call.",
    ),
    key(
        "resource",
        KeyValue::Flag,
        "Whether the records of a lookup by one argument are resources too.",
    ),
    key(
        "audit",
        KeyValue::Part(FormPart::Audit),
        "What the audit trail keeps in clear.",
    ),
    key(
        "approval",
        KeyValue::Word(APPROVAL_RULES),
        "Whether a person approves each call before it runs, of a tool that writes.",
    ),
];

/// The keys of a form without a contract.
pub const BARE_FORM: [&str; 4] = ["tool", "title", "description", "fields"];

/// The keys of `limits`.
pub const LIMITS: &[FormKey] = &[
    key(
        "rate",
        KeyValue::Text { characters_max: 32 },
        "Calls of one agent in a time, such as 10/s or 60/min.",
    ),
    key(
        "timeout_ms",
        KeyValue::Count {
            min: 1,
            max: TIMEOUT_MAX_MS,
        },
        "The longest time of one call, in milliseconds.",
    ),
    key(
        "rows_max",
        KeyValue::Count {
            min: 1,
            max: ROWS_MAX,
        },
        "The most records of one page.",
    ),
    key(
        "rows_default",
        KeyValue::Count {
            min: 1,
            max: ROWS_MAX,
        },
        "The records of one page where an agent names no number; 50 without it.",
    ),
];

/// The keys of `audit`.
pub const AUDIT: &[FormKey] = &[key(
    "clear",
    KeyValue::Names,
    "The fields whose arguments the trail may keep in clear.",
)];

/// The keys of a choice that is an object.
pub const CHOICE: &[FormKey] = &[
    key("value", NAME, "What agents send.").required(),
    key("title", NAME, "What people see in the form."),
    key(
        "also",
        KeyValue::Names,
        "Further texts of the source that a condition by it finds too.",
    ),
];

/// The keys of every field that agents send, wherever it is.
pub const FIELD: &[FormKey] = &[
    key("type", KeyValue::Word(TYPES), "The type of the field.").required(),
    key(
        "help",
        TEXT,
        "The help text, which agents read as the description.",
    ),
    key("title", NAME, "The name that people see."),
    key("nullable", KeyValue::Flag, "Whether null is a value of it."),
    key(
        "examples",
        KeyValue::AnyList,
        "Values that the field takes, for agents.",
    ),
];

/// The further keys of a field that has a name.
pub const NAMED_FIELD: &[FormKey] = &[
    key("name", NAME, "The argument's name.").required(),
    key("required", KeyValue::Flag, "Whether a call must have it."),
    key(
        "default",
        KeyValue::Any,
        "The value where a call leaves it out.",
    ),
];

/// The further keys of a field of the form itself: where it goes.
pub const FORM_FIELD: &[FormKey] = &[FIELD_COLUMN, FIELD_MATCH, FIELD_PARAM];

/// The keys of a field that the agent neither sees nor sets.
pub const BOUND_FIELD: &[FormKey] = &[
    key("name", NAME, "The field's name.").required(),
    key(
        "type",
        KeyValue::Word(TYPES),
        "The type; without it the column's.",
    ),
    key(
        "from",
        KeyValue::Word(&["agent", "tenant"]),
        "Whose name is the value: the caller's or its tenant's.",
    ),
    key(
        "value",
        KeyValue::Any,
        "The constant that is the value, instead of `from`.",
    ),
    FIELD_COLUMN,
    FIELD_MATCH,
    FIELD_PARAM,
];

const FIELD_COLUMN: FormKey = key(
    "column",
    NAME,
    "The column it goes to; without it the one of its name.",
);
const FIELD_MATCH: FormKey = key(
    "match",
    KeyValue::Word(COMPARISONS),
    "How the column is compared with it, in a query; equals without it.",
);
const FIELD_PARAM: FormKey = key(
    "param",
    NAME,
    "The parameter it goes to, instead of a column.",
);
const CHOICES: FormKey = key(
    "choices",
    KeyValue::PartList(FormPart::Choice),
    "The values, in the order that agents see.",
)
.required();
const MIN_ITEMS: FormKey = key("min_items", ITEMS, "The fewest items.");
const MAX_ITEMS: FormKey = key("max_items", ITEMS, "The most items.");

const TEXT_KEYS: &[FormKey] = &[
    key("min_length", LENGTH, "The fewest characters."),
    key("max_length", LENGTH, "The most characters."),
    key(
        "pattern",
        KeyValue::Text {
            characters_max: PATTERN_MAX,
        },
        "A regular expression of JavaScript that the text matches.",
    ),
];
const NUMBER_KEYS: &[FormKey] = &[
    key("min", KeyValue::Number, "The least value."),
    key("max", KeyValue::Number, "The greatest value."),
    key("step", KeyValue::Number, "Every value is a multiple of it."),
    key(
        "decimals",
        KeyValue::Flag,
        "Whether it may have a fraction; without it the column decides.",
    ),
];
const RECORD_KEYS: &[FormKey] = &[key(
    "fields",
    KeyValue::PartList(FormPart::Member),
    "The members of the record.",
)
.required()];
const LIST_KEYS: &[FormKey] = &[
    key(
        "of",
        KeyValue::Part(FormPart::Element),
        "What the list holds: a field without a name.",
    )
    .required(),
    MIN_ITEMS,
    MAX_ITEMS,
];
const JSON_KEYS: &[FormKey] = &[key(
    "schema",
    KeyValue::JsonSchema,
    "The schema of the value: any JSON Schema 2020-12.",
)
.required()];

/// Returns the keys that fields of one type have in addition to the common ones.
pub fn own_keys(kind: &str) -> &'static [FormKey] {
    match kind {
        "text" | "multiline" => TEXT_KEYS,
        "number" => NUMBER_KEYS,
        "dropdown" => &[CHOICES],
        "multi-choice" => &[CHOICES, MIN_ITEMS, MAX_ITEMS],
        "record" => RECORD_KEYS,
        "list" => LIST_KEYS,
        "json" => JSON_KEYS,
        _ => &[],
    }
}

/// Returns the names of keys.
pub(crate) fn names(keys: &'static [FormKey]) -> impl Iterator<Item = &'static str> + Clone {
    keys.iter().map(|key| key.name)
}
