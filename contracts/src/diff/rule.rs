//! The rules by name: what each change means on either side. `docs/contract-changes.md` is this table.

use weir_schema::compare::{ChangeSeverity, SCHEMA_ROWS, SchemaSide};

struct ToolRow {
    id: &'static str,
    class: ChangeSeverity,
    what: &'static str,
}

macro_rules! tool_rules {
    ($($rule:ident $id:literal $class:ident $what:literal;)*) => {
        /// A change outside the schemas.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum ToolRule { $($rule),* }

        const TOOL_ROWS: &[ToolRow] = &[$(ToolRow { id: $id, class: ChangeSeverity::$class, what: $what }),*];
    };
}

tool_rules! {
    OutputSchemaAdded "output-schema-added" Compatible "the tool now describes what it answers";
    OutputSchemaRemoved "output-schema-removed" Breaking "the tool no longer describes what it answers";
    ToolAdded "tool-added" Compatible "a tool was added";
    ToolRemoved "tool-removed" Breaking "a tool was removed";
    ToolRenamed "tool-renamed" Breaking "a tool was removed and one like it was added";
    ToolTextChanged "tool-text-changed" Cosmetic "title, description or sentence of a tool";
    TextModeChanged "text-mode-changed" Review "sentence, JSON or both in the text block";
    VerbChanged "verb-changed" Breaking "lookup, list, count, summarize, create, update, delete or call";
    AnnotationRiskier "annotation-riskier" Breaking "readOnlyHint or idempotentHint true → false, destructiveHint false → true: clients approve by them";
    AnnotationSafer "annotation-safer" Compatible "the reverse";
    OpenWorldChanged "open-world-changed" Review "openWorldHint";
    AnnotationStated "annotation-stated" Cosmetic "a hint is stated that would be assumed anyway, or is no longer stated";
    AnnotationOther "annotation-other-changed" Cosmetic "a member of annotations other than the four hints, such as title";
    IconsChanged "tool-icons-changed" Cosmetic "icons of a tool";
    MetaChanged "tool-meta-changed" Review "`_meta` of a tool: what a client shows along with it";
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
    DestinationChanged "binding-destination-changed" Review "an argument is now a condition, a value or a parameter, and was a different one of these before";
    BoundFieldAdded "bound-field-added" Review "a further field is bound to the caller or a constant: fewer rows are reached, or other values written";
    BoundFieldChanged "bound-field-changed" Breaking "a field bound to the caller or a constant takes its value from elsewhere or goes elsewhere: other rows are reached";
    BoundFieldRemoved "bound-field-removed" Breaking "a field is no longer bound to the caller or a constant: more rows are reached";
    FormChanged "binding-form-changed" Review "the source is given a value in another form";
    IncludeAdded "include-added" Review "a lookup answers a related record on request: records of another collection leave through it";
    IncludeChanged "include-changed" Review "a related record is found by other columns, or in another collection";
    IncludeRemoved "include-removed" Breaking "a related record can no longer be asked for";
    OrderByChanged "order-by-changed" Review "the order of the records";
    RowCapLowered "row-cap-lowered" Review "fewer records in one answer";
    RowCapRaised "row-cap-raised" Compatible "more records in one answer";
    RateLowered "rate-lowered" Review "fewer calls in the same time, or a limit where none was";
    RateRaised "rate-raised" Compatible "more calls in the same time, or no limit";
    TimeoutChanged "timeout-changed" Identical "operational: recorded, no change of the contract";
    AdapterChanged "adapter-changed" Review "another adapter";
    SettingsChanged "settings-changed" Review "connection, table, path, query text or another setting";
    StatementChanged "statement-changed" Breaking "the text of a statement that writes, or how many rows it may change: other data is written";
    KeyChanged "key-changed" Review "which columns identify records";
    TimezoneChanged "timezone-changed" Review "the zone that zoneless times are read in";
    MisfitsChanged "misfits-changed" Review "what becomes of cells that are not values of their column, or which texts mean an empty one";
    WriteAllowed "write-allowed" Review "a collection may be written";
    WriteForbidden "write-forbidden" Compatible "a collection may no longer be written";
    AuditLoosened "audit-loosened" Review "further arguments are kept in clear by the audit";
    AuditTightened "audit-tightened" Compatible "fewer arguments are kept in clear by the audit";
    ApprovalAdded "approval-added" Review "a person approves each call of a tool before it runs";
    ApprovalDropped "approval-dropped" Review "no person approves the calls of a tool any more";
    PublishedWidened "published-widened" Review "further columns may leave the source";
    PublishedNarrowed "published-narrowed" Compatible "fewer columns may leave the source; what tools answer is compared separately";
    ShapeRecorded "shape-recorded" Identical "the recorded shape; what callers see of it is compared separately";
    ItemAdded "item-added" Compatible "a prompt, resource or resource template was added";
    ItemRemoved "item-removed" Breaking "a prompt, resource or resource template was removed";
    ItemTextChanged "item-text-changed" Cosmetic "title, description, name of a resource, or the texts of a prompt's argument";
    ItemChanged "item-changed" Review "what else is listed about a prompt, resource or resource template, or where its requests go";
    PromptArgumentAdded "prompt-argument-added" Compatible "an argument of a prompt that may be absent was added";
    PromptArgumentRequired "prompt-argument-required" Breaking "an argument of a prompt is now required";
    PromptArgumentRemoved "prompt-argument-removed" Breaking "an argument of a prompt was removed";
    ContractRenamed "contract-renamed" Breaking "the contract's name, which is also its endpoint";
    DefinitionsChanged "definitions-changed" Cosmetic "the description of the tools by their maker, in words or members that no client sees";
    ContractTextChanged "contract-text-changed" Cosmetic "title, description or instructions of the contract";
}

impl ToolRule {
    pub(super) fn id(self) -> &'static str {
        TOOL_ROWS[self as usize].id
    }

    pub(super) fn class(self) -> ChangeSeverity {
        TOOL_ROWS[self as usize].class
    }
}

/// Writes `docs/contract-changes.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Contract changes\n\nGenerated from `contracts/src/diff/rule.rs` and `contracts/schema/src/compare/rule.rs`; `WEIR_BLESS=1 cargo test` writes it anew.\n\n\
         A change of an input breaks callers if arguments that were valid no longer are. A change of an output breaks them if a\n\
         result is possible that was not valid before. A change is as bad as its worst item: `identical`, `cosmetic` and\n\
         `compatible` go live, `review` is held until an editor publishes it, `breaking` and `undecided` until an operator does.\n\n\
         `undecided` means that no rule says what the change does, and it counts as breaking. It is called `breaking` if a\n\
         witness was found: arguments that are valid before and not after, or a result that is valid after and not before.\n\n\
         A breaking or undecided change makes a major version, a compatible or review change a minor one, a cosmetic change a patch.\n\n\
         ## Schemas\n\n| rule | class | change |\n|---|---|---|\n",
    );
    for side in [SchemaSide::Input, SchemaSide::Output] {
        for row in SCHEMA_ROWS {
            let class = if side == SchemaSide::Input {
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
        let schema = SCHEMA_ROWS.iter().flat_map(|row| {
            [SchemaSide::Input, SchemaSide::Output].map(|side| (side.word(), row.name))
        });
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
