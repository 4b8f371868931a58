//! The rules for changes of schemas by name: what each means on either side.

use serde::{Deserialize, Serialize};

/// The severity of a change, from harmless to breaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeSeverity {
    /// The versions are equal, or differ only in order and spelling.
    Identical,
    /// Texts.
    Cosmetic,
    /// Every caller continues as before.
    Compatible,
    /// Valid either way, but it may mean something else.
    Review,
    /// No rule covers the change; it counts as breaking.
    Undecided,
    Breaking,
}

impl ChangeSeverity {
    /// Returns the word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Cosmetic => "cosmetic",
            Self::Compatible => "compatible",
            Self::Review => "review",
            Self::Undecided => "undecided",
            Self::Breaking => "breaking",
        }
    }

    /// Returns `true` if a caller may fail after the change. What no rule decides counts as breaking.
    pub fn is_breaking(self) -> bool {
        self >= Self::Undecided
    }
}

/// The side of a call that a schema describes. An input breaks when it takes less, an output when it gives more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaSide {
    Input,
    Output,
}

impl SchemaSide {
    /// Returns the word with which the ids of rules begin.
    pub fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// A rule with its meaning for callers.
pub struct SchemaRow {
    pub name: &'static str,
    pub input: ChangeSeverity,
    pub output: ChangeSeverity,
    pub what: &'static str,
}

macro_rules! schema_rules {
    ($($rule:ident $name:literal $input:ident $output:ident $what:literal;)*) => {
        /// A change of a schema.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SchemaRule { $($rule),* }

        /// Every rule, in the order of its variants.
        pub const SCHEMA_ROWS: &[SchemaRow] =
            &[$(SchemaRow { name: $name, input: ChangeSeverity::$input, output: ChangeSeverity::$output, what: $what }),*];
    };
}

schema_rules! {
    OrderChanged "order-changed" Identical Identical "order of properties, required or enum, a `$ref` inlined, another spelling of the same";
    TextChanged "text-changed" Cosmetic Cosmetic "description, title, help, examples";
    DefaultChanged "default-changed" Review Cosmetic "a default added, removed or changed; it is used where an optional property is absent";
    AnnotationChanged "annotation-changed" Review Review "readOnly, writeOnly, content… or an `x-` keyword";
    PropertyAdded "property-added" Compatible Breaking "an optional property that the object did not allow before";
    PropertyNamed "property-named" Compatible Compatible "an optional property of an open object, any value as before";
    PropertyTyped "property-typed" Breaking Compatible "a property of an open object, where any value was allowed before";
    RequiredAdded "required-added" Breaking Breaking "a required property that the object did not allow before; with a default, it has to be there all the same";
    RequiredAddedOpen "required-added-to-open" Breaking Compatible "a required property of an open object";
    PropertyRemoved "property-removed" Breaking Review "an optional property; the object does not allow it any more";
    PropertyDropped "property-removed-from-open" Review Review "an optional property; the object allows any value of that name";
    RequiredRemoved "required-removed" Breaking Breaking "a required property; the object does not allow it any more";
    RequiredDropped "required-removed-from-open" Review Breaking "a required property; the object allows any value of that name, or none";
    PropertyRenamed "property-renamed" Breaking Breaking "a property was removed and one like it was added";
    BecameRequired "became-required" Breaking Compatible "optional → required";
    BecameOptional "became-optional" Compatible Breaking "required → optional";
    TypeWidened "type-widened" Compatible Breaking "further types: integer → number, or null";
    TypeNarrowed "type-narrowed" Breaking Compatible "fewer types";
    TypeChanged "type-changed" Breaking Breaking "another type: string → integer, scalar → array";
    ValueAdded "enum-value-added" Compatible Breaking "a further value of an enum or const";
    ValueRemoved "enum-value-removed" Breaking Compatible "a value of an enum or const was removed";
    ValueRenamed "enum-value-renamed" Breaking Breaking "a value was removed and one like it was added";
    EnumAdded "enum-added" Breaking Compatible "an enum or const where any value of the type was allowed";
    EnumRemoved "enum-removed" Compatible Breaking "any value of the type where an enum or const was";
    Tightened "tightened" Breaking Compatible "a bound introduced or moved inwards: minimum, maximum, multipleOf, lengths, counts, uniqueItems";
    Relaxed "relaxed" Compatible Breaking "a bound dropped or moved outwards";
    StepChanged "step-changed" Breaking Breaking "a multipleOf was changed, and neither value divides the other";
    PatternAdded "pattern-added" Breaking Compatible "a pattern";
    PatternRemoved "pattern-removed" Compatible Breaking "no pattern any more";
    PatternChanged "pattern-changed" Undecided Undecided "another pattern";
    FormatAdded "format-added" Breaking Compatible "a format";
    FormatRemoved "format-removed" Compatible Breaking "no format any more";
    FormatChanged "format-changed" Undecided Undecided "another format";
    ObjectClosed "object-closed" Breaking Compatible "further properties are no longer allowed";
    ObjectOpened "object-opened" Compatible Breaking "further properties are allowed";
    ArmAdded "union-arm-added" Compatible Breaking "a further alternative of anyOf or oneOf";
    ArmRemoved "union-arm-removed" Breaking Compatible "an alternative of anyOf or oneOf was removed";
    UnionAdded "union-added" Breaking Compatible "anyOf or oneOf next to other keywords";
    UnionRemoved "union-removed" Compatible Breaking "no anyOf or oneOf any more";
    UndecidedKeyword "keyword-undecided" Undecided Undecided "allOf, not, if/then/else, contains, dependent…, unevaluated…, patternProperties, an overlapping oneOf or an unknown keyword changed";
    UndecidedReference "reference-undecided" Undecided Undecided "a `$ref` to another document, or a recursion that cannot be followed, is in the way";
    UndecidedSchema "schema-undecided" Undecided Undecided "not a JSON Schema 2020-12 that can be read here, or too large";
}

impl SchemaRule {
    fn row(self) -> &'static SchemaRow {
        &SCHEMA_ROWS[self as usize]
    }

    /// Returns the name of the rule on one side, such as `input-tightened`.
    pub fn id(self, side: SchemaSide) -> String {
        format!("{}-{}", side.word(), self.row().name)
    }

    /// Returns the severity of the change on one side.
    pub fn class(self, side: SchemaSide) -> ChangeSeverity {
        match side {
            SchemaSide::Input => self.row().input,
            SchemaSide::Output => self.row().output,
        }
    }

    /// Returns `true` if values that were valid may no longer be.
    pub fn narrows(self) -> bool {
        self.class(SchemaSide::Input).is_breaking()
    }

    /// Returns `true` if values may be valid that were not.
    pub fn widens(self) -> bool {
        self.class(SchemaSide::Output).is_breaking()
            || matches!(self, Self::PropertyDropped | Self::RequiredDropped)
    }
}
