//! The rules by name: what each change means on either side. `docs/contract-changes.md` is this table.

use serde::{Deserialize, Serialize};

/// The severity of a change, from harmless to breaking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The versions are equal, or differ in order and spelling alone.
    Identical,
    /// Texts.
    Cosmetic,
    /// Every caller goes on as before.
    Compatible,
    /// Valid either way, but it may mean something else.
    Review,
    /// No rule says what the change does; it counts as breaking.
    Undecided,
    Breaking,
}

impl Class {
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

    pub fn is_breaking(self) -> bool {
        self >= Self::Undecided
    }
}

/// The side of a call that a schema describes. An input breaks when it takes less, an output when it gives more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    Input,
    Output,
}

impl Side {
    pub fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

struct SchemaRow {
    name: &'static str,
    input: Class,
    output: Class,
    what: &'static str,
}

struct ToolRow {
    id: &'static str,
    class: Class,
    what: &'static str,
}

macro_rules! schema_rules {
    ($($rule:ident $name:literal $input:ident $output:ident $what:literal;)*) => {
        /// A change of a schema.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum SchemaRule { $($rule),* }

        const SCHEMA_ROWS: &[SchemaRow] =
            &[$(SchemaRow { name: $name, input: Class::$input, output: Class::$output, what: $what }),*];
    };
}

macro_rules! tool_rules {
    ($($rule:ident $id:literal $class:ident $what:literal;)*) => {
        /// A change beside the schemas.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum ToolRule { $($rule),* }

        const TOOL_ROWS: &[ToolRow] = &[$(ToolRow { id: $id, class: Class::$class, what: $what }),*];
    };
}

schema_rules! {
    OrderChanged "order-changed" Identical Identical "order of properties, required or enum, a `$ref` inlined, another spelling of the same";
    TextChanged "text-changed" Cosmetic Cosmetic "description, title, help, examples";
    DefaultChanged "default-changed" Review Cosmetic "a default added, removed or changed; it is put in where the argument is absent";
    AnnotationChanged "annotation-changed" Review Review "readOnly, writeOnly, content… or an `x-` keyword";
    PropertyAdded "property-added" Compatible Breaking "an optional property that the object did not allow before";
    PropertyNamed "property-named" Compatible Compatible "an optional property of an open object, any value as before";
    PropertyTyped "property-typed" Breaking Compatible "a property of an open object, where any value was allowed before";
    RequiredAdded "required-added" Breaking Breaking "a required property that the object did not allow before; a default is only advice";
    RequiredAddedOpen "required-added-to-open" Breaking Compatible "a required property of an open object";
    PropertyRemoved "property-removed" Breaking Review "an optional property; the object does not allow it any more";
    PropertyDropped "property-removed-from-open" Review Review "an optional property; the object allows any value of that name";
    RequiredRemoved "required-removed" Breaking Breaking "a required property; the object does not allow it any more";
    RequiredDropped "required-removed-from-open" Review Breaking "a required property; the object allows any value of that name, or none";
    PropertyRenamed "property-renamed" Breaking Breaking "one property went and one like it came";
    BecameRequired "became-required" Breaking Compatible "optional → required";
    BecameOptional "became-optional" Compatible Breaking "required → optional";
    TypeWidened "type-widened" Compatible Breaking "further types: integer → number, or null";
    TypeNarrowed "type-narrowed" Breaking Compatible "fewer types";
    TypeChanged "type-changed" Breaking Breaking "another type: string → integer, scalar → array";
    ValueAdded "enum-value-added" Compatible Breaking "a further value of an enum or const";
    ValueRemoved "enum-value-removed" Breaking Compatible "a value less of an enum or const";
    ValueRenamed "enum-value-renamed" Breaking Breaking "one value went and one like it came";
    EnumAdded "enum-added" Breaking Compatible "an enum or const where any value of the type was allowed";
    EnumRemoved "enum-removed" Compatible Breaking "any value of the type where an enum or const was";
    Tightened "tightened" Breaking Compatible "a bound introduced or moved inwards: minimum, maximum, multipleOf, lengths, counts, uniqueItems";
    Relaxed "relaxed" Compatible Breaking "a bound dropped or moved outwards";
    StepChanged "step-changed" Breaking Breaking "a multipleOf that neither divides the other";
    PatternAdded "pattern-added" Breaking Compatible "a pattern";
    PatternRemoved "pattern-removed" Compatible Breaking "no pattern any more";
    PatternChanged "pattern-changed" Undecided Undecided "another pattern";
    FormatAdded "format-added" Breaking Compatible "a format";
    FormatRemoved "format-removed" Compatible Breaking "no format any more";
    FormatChanged "format-changed" Undecided Undecided "another format";
    ObjectClosed "object-closed" Breaking Compatible "further properties are no longer allowed";
    ObjectOpened "object-opened" Compatible Breaking "further properties are allowed";
    ArmAdded "union-arm-added" Compatible Breaking "a further alternative of anyOf or oneOf";
    ArmRemoved "union-arm-removed" Breaking Compatible "an alternative less of anyOf or oneOf";
    UnionAdded "union-added" Breaking Compatible "anyOf or oneOf beside other keywords";
    UnionRemoved "union-removed" Compatible Breaking "no anyOf or oneOf any more";
    UndecidedKeyword "keyword-undecided" Undecided Undecided "allOf, not, if/then/else, contains, dependent…, unevaluated…, patternProperties, an overlapping oneOf or an unknown keyword changed";
    UndecidedReference "reference-undecided" Undecided Undecided "a recursive or remote `$ref` is in the way";
    UndecidedSchema "schema-undecided" Undecided Undecided "not a JSON Schema 2020-12 that can be read here, or too large";
}

tool_rules! {
    OutputSchemaAdded "output-schema-added" Compatible "the tool says what it answers";
    OutputSchemaRemoved "output-schema-removed" Breaking "the tool no longer says what it answers";
    ToolAdded "tool-added" Compatible "a further tool";
    ToolRemoved "tool-removed" Breaking "a tool less";
    ToolRenamed "tool-renamed" Breaking "one tool went and one like it came";
    ToolTextChanged "tool-text-changed" Cosmetic "title, description or sentence of a tool";
    TextModeChanged "text-mode-changed" Review "sentence, JSON or both in the text block";
    VerbChanged "verb-changed" Breaking "lookup, list, count, summarize, create, update, delete or call";
    AnnotationRiskier "annotation-riskier" Breaking "readOnlyHint or idempotentHint true → false, destructiveHint false → true: clients approve by them";
    AnnotationSafer "annotation-safer" Compatible "the reverse";
    OpenWorldChanged "open-world-changed" Review "openWorldHint";
    AnnotationStated "annotation-stated" Cosmetic "a hint is said that would be taken anyway, or is no longer said";
    AnnotationOther "annotation-other-changed" Cosmetic "a member of annotations beside the four hints, such as title";
    IconsChanged "tool-icons-changed" Cosmetic "icons of a tool";
    MetaChanged "tool-meta-changed" Review "`_meta` of a tool: what a client shows beside it";
    ExecutionChanged "tool-execution-changed" Review "whether a tool may or must be run as a task";
    BindingAdded "binding-added" Review "a bare form is now bound to a collection";
    TargetChanged "target-changed" Review "something else answers its calls: another tool of an offer, or an offer where a collection was";
    KeyNameChanged "argument-key-changed" Review "an argument is sent to its maker under another name";
    BindingRemoved "binding-removed" Breaking "the tool can no longer be called";
    CollectionChanged "binding-collection-changed" Review "the tool is bound to another source";
    OperationChanged "binding-operation-changed" Review "another operation of the adapter";
    ColumnChanged "binding-column-changed" Review "an argument goes to another column";
    MatchChanged "binding-match-changed" Review "an argument is compared in another way";
    ParamChanged "binding-param-changed" Review "an argument goes to another parameter";
    DestinationChanged "binding-destination-changed" Review "an argument is now a condition, a value or a parameter, and was another of these";
    BoundFieldAdded "bound-field-added" Review "a further field is bound to the caller or a constant: fewer rows are reached, or other values written";
    BoundFieldChanged "bound-field-changed" Breaking "a field bound to the caller or a constant takes its value from elsewhere or goes elsewhere: other rows are reached";
    BoundFieldRemoved "bound-field-removed" Breaking "a field is no longer bound to the caller or a constant: more rows are reached";
    FormChanged "binding-form-changed" Review "the source is given a value in another form";
    OrderByChanged "order-by-changed" Review "the order of the records";
    RowCapLowered "row-cap-lowered" Review "fewer records in one answer";
    RowCapRaised "row-cap-raised" Compatible "more records in one answer";
    RateLowered "rate-lowered" Review "fewer calls in the same time, or a limit where none was";
    RateRaised "rate-raised" Compatible "more calls in the same time, or no limit";
    TimeoutChanged "timeout-changed" Identical "operational: recorded, no change of the contract";
    AdapterChanged "adapter-changed" Review "another adapter";
    SettingsChanged "settings-changed" Review "connection, table, path, query text or another setting";
    KeyChanged "key-changed" Review "which columns tell records apart";
    TimezoneChanged "timezone-changed" Review "the zone that zoneless times are read in";
    MisfitsChanged "misfits-changed" Review "what becomes of cells that are no values of their column, or which texts stand for an empty one";
    WriteAllowed "write-allowed" Review "a collection may be written";
    WriteForbidden "write-forbidden" Compatible "a collection may no longer be written";
    AuditLoosened "audit-loosened" Review "further arguments are kept in clear by the audit";
    AuditTightened "audit-tightened" Compatible "fewer arguments are kept in clear by the audit";
    PublishedWidened "published-widened" Review "further columns may leave the source";
    PublishedNarrowed "published-narrowed" Compatible "fewer columns may leave the source; what tools answer is compared by itself";
    ShapeRecorded "shape-recorded" Identical "the recorded shape; what callers see of it is compared by itself";
    ItemAdded "item-added" Compatible "a further prompt, resource or resource template";
    ItemRemoved "item-removed" Breaking "a prompt, resource or resource template less";
    ItemTextChanged "item-text-changed" Cosmetic "title, description, name of a resource, or texts about an argument of a prompt";
    ItemChanged "item-changed" Review "what else is listed of a prompt, resource or resource template, or where its requests go";
    PromptArgumentAdded "prompt-argument-added" Compatible "a further argument of a prompt that may be absent";
    PromptArgumentRequired "prompt-argument-required" Breaking "an argument of a prompt has to be there";
    PromptArgumentRemoved "prompt-argument-removed" Breaking "an argument of a prompt less";
    ContractRenamed "contract-renamed" Breaking "the contract's name, which is also its endpoint";
    DefinitionsChanged "definitions-changed" Cosmetic "what the maker of the tools says of them, in words or members that no client sees";
    ContractTextChanged "contract-text-changed" Cosmetic "title, description or instructions of the contract";
}

impl SchemaRule {
    fn row(self) -> &'static SchemaRow {
        &SCHEMA_ROWS[self as usize]
    }

    pub(super) fn id(self, side: Side) -> String {
        format!("{}-{}", side.word(), self.row().name)
    }

    pub(super) fn class(self, side: Side) -> Class {
        match side {
            Side::Input => self.row().input,
            Side::Output => self.row().output,
        }
    }

    /// Returns `true` if values that were valid may no longer be.
    pub(super) fn narrows(self) -> bool {
        self.class(Side::Input).is_breaking()
    }

    /// Returns `true` if values may be valid that were not.
    pub(super) fn widens(self) -> bool {
        self.class(Side::Output).is_breaking()
            || matches!(self, Self::PropertyDropped | Self::RequiredDropped)
    }
}

impl ToolRule {
    pub(super) fn id(self) -> &'static str {
        TOOL_ROWS[self as usize].id
    }

    pub(super) fn class(self) -> Class {
        TOOL_ROWS[self as usize].class
    }
}

/// Writes `docs/contract-changes.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Contract changes\n\nGenerated from `contracts/src/diff/rule.rs`; `WEIR_BLESS=1 cargo test` writes it anew.\n\n\
         An input breaks when arguments that were valid are so no longer, an output when a result may come that was not\n\
         valid before. A change is as bad as its worst item: `identical`, `cosmetic` and `compatible` go live, `review` is\n\
         held until an editor publishes it, `breaking` and `undecided` until an operator does. `undecided` means that no rule\n\
         says what the change does; it counts as breaking, and is called `breaking` where a witness was found: arguments valid\n\
         before and not after, or a result valid after and not before.\n\n\
         Breaking or undecided is a major version, compatible or review a minor one, cosmetic a patch.\n\n\
         ## Schemas\n\n| rule | class | change |\n|---|---|---|\n",
    );
    for side in [Side::Input, Side::Output] {
        for row in SCHEMA_ROWS {
            let class = if side == Side::Input {
                row.input
            } else {
                row.output
            };
            page.push_str(&format!(
                "| `{}-{}` | {} | {} |\n",
                side.word(),
                row.name,
                class.word(),
                row.what
            ));
        }
    }
    page.push_str(
        "\n## Tools, bindings, collections\n\n| rule | class | change |\n|---|---|---|\n",
    );
    for row in TOOL_ROWS {
        page.push_str(&format!(
            "| `{}` | {} | {} |\n",
            row.id,
            row.class.word(),
            row.what
        ));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/contract-changes.md");
        if std::env::var_os("WEIR_BLESS").is_some() {
            std::fs::write(path, page()).expect("written");
        }
        assert_eq!(
            std::fs::read_to_string(path).unwrap_or_default(),
            page(),
            "run the tests with WEIR_BLESS=1"
        );
    }

    #[test]
    fn no_rule_has_the_name_of_another() {
        let schema = SCHEMA_ROWS
            .iter()
            .flat_map(|row| [Side::Input, Side::Output].map(|side| (side.word(), row.name)));
        let mut ids: Vec<String> = schema
            .map(|(side, name)| format!("{side}-{name}"))
            .collect();
        ids.extend(TOOL_ROWS.iter().map(|row| row.id.to_owned()));
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
