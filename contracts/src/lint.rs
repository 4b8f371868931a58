//! Checks how well a model can read a list of tools, and whether it contains text that no person sees.
//!
//! Looks at what a client sees and nothing else, so that a foreign server's list is judged as a compiled contract is.

mod question;
mod schema;
mod text;
mod wording;

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::{compiled_document, contract::CompiledContract, name};

/// A fault that one rule found at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LintFinding {
    /// The tool. `None` means the contract or the list as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// A property of the input or output, `address.city` for one inside another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The id of one of [`RULES`].
    pub rule: &'static str,
    pub level: LintLevel,
    pub message: String,
    pub hint: &'static str,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LintLevel {
    Info,
    Warning,
    Error,
}

impl LintLevel {
    /// Returns the word in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The id is stable: people silence and count by it.
pub struct LintRule {
    pub id: &'static str,
    pub level: LintLevel,
    /// The fault that the rule finds.
    pub finds: &'static str,
    pub hint: &'static str,
}

/// The bound on findings; more than these are one mistake repeated.
const FINDINGS_MAX: usize = 5_000;
/// Some clients refuse a request with more tools than this.
const TOOLS_GOOD: usize = 128;

macro_rules! rules {
    ($($name:ident $id:literal $level:ident $finds:literal $hint:literal)*) => {
        $(pub(crate) const $name: &LintRule = &LintRule { id: $id, level: LintLevel::$level, finds: $finds, hint: $hint };)*
        /// Every rule, what harms first.
        pub const RULES: &[&LintRule] = &[$($name),*];
    };
}

#[rustfmt::skip]
rules! {
    HIDDEN_TEXT "hidden-text" Error
        "characters that are read but not seen: Unicode tags, zero-width characters, bidirectional controls, HTML comments"
        "write what is meant so that everyone sees it, or remove it"
    CONTROL_CHARACTERS "control-characters" Error
        "terminal escapes and other control characters"
        "remove them; line breaks and tabs are fine"
    MODEL_ORDERS "model-orders" Error
        "orders to the model that reads: to ignore its instructions, to call a tool before any other, to keep something from the user, tags such as `<important>`; in base64 too"
        "say what the tool does; what a client may do is not the tool's to say"
    ENCODED_BLOCK "encoded-block" Warning
        "long blocks of base64 in a title or description"
        "no reader can check it: write it out, or remove it"
    LOOKALIKE_LETTERS "lookalike-letters" Warning
        "words in Latin letters with Cyrillic letters among them that look the same"
        "write the word in one script"
    SCHEMA_ROOT "schema-root" Error
        "an input whose root is not an object, or has oneOf, anyOf or allOf: some models' interfaces refuse every tool because of it"
        "make the root a plain object; alternatives may be nested in it"
    OUTPUT_ROOT "output-root" Error
        "an output schema whose root is not an object: some clients drop the whole list"
        "wrap it: an object with one property that holds it"
    SCHEMA_REFERENCE "schema-reference" Error
        "references that lead outside the schema"
        "put what is meant under $defs"
    SCHEMA_DIALECT "schema-dialect" Warning
        "schemas in a dialect other than 2020-12, which strict clients refuse"
        "drop $schema, or use https://json-schema.org/draft/2020-12/schema"
    PATTERN_DIALECT "pattern-dialect" Warning
        "patterns that JSON Schema does not have, such as `(?i)abc`: clients refuse the schema, or read it differently"
        "write [Aa]; a JSON Schema pattern has no (?i), (?x), (?P<name>), \\A or \\z, and no backslash where none is needed, as in \\- and \\_"
    LIST_ITEMS "list-items" Warning
        "lists that do not say what is in them, which some clients refuse"
        "add items"
    PARAMETER_NAME "parameter-name" Error
        "parameters whose names are not 1 to 64 of A-Z, a-z, 0-9, '_', '.' and '-': some models' interfaces refuse every tool because of one"
        "rename the field; the source's own name can stay under `column:`"
    PARAMETER_KEYWORD "parameter-keyword" Warning
        "parameters that are named like a word of Python (from, class), contain '-' or '.', or begin with a digit: clients that make a function of each tool drop the tool, or the whole server"
        "rename the field; the source's own name can stay under `column:` or `param:`"
    FORMAT_EMAIL "format-email" Info
        "texts of `format: email`: clients in Python need another package for it, and some cannot be used without that package"
        "nothing, where your clients are known to read it; else `type: text` with a pattern"
    NAME_INVALID "name-invalid" Error
        "tool names that are not 1 to 64 of A-Z, a-z, 0-9, '_' and '-': some clients drop the whole list"
        "rename the tool"
    NAME_LONG "name-long" Warning
        "tool names over 45 characters: clients put their own words in front and stop at 60 or 64"
        "shorten the name or the prefix"
    NAME_VAGUE "name-vague" Warning
        "tool names that do not say what is done to what"
        "use a verb and a noun, such as list_tickets"
    NAMES_ALIKE "names-alike" Warning
        "two tools whose names differ only in case or separators"
        "name what differs"
    MANY_TOOLS "many-tools" Warning
        "lists of more than 128 tools, which some clients refuse"
        "offer fewer tools, or several contracts at their own endpoints"
    DESCRIPTION_MISSING "description-missing" Warning
        "tools without a description"
        "say in one sentence what comes back for which input"
    DESCRIPTION_REPEATS "description-repeats-name" Warning
        "descriptions that only repeat the name"
        "say in one sentence what comes back for which input"
    DESCRIPTION_SHORT "description-short" Warning
        "descriptions of fewer than four words"
        "say in one sentence what comes back for which input"
    DESCRIPTION_LONG "description-long" Warning
        "descriptions over 1,024 characters, which some models' interfaces cut or refuse"
        "keep what helps to choose the tool; what is about one parameter belongs there"
    DESCRIPTIONS_ALIKE "descriptions-alike" Warning
        "two tools with the same description: a model can only guess"
        "say in each what the other does not do"
    DESCRIPTION_OPENING "description-opening" Info
        "descriptions that begin with 'This tool' or similar words"
        "begin with what it does: Returns, Lists, Creates"
    DESCRIPTION_RESULT "description-result" Info
        "reading tools that do not say what comes back"
        "begin with Returns or Lists, and what"
    IMPLEMENTATION_WORD "implementation-word" Warning
        "words about how the tool is built (API, endpoint, SQL, backend), unless they are what it is about"
        "say what it does for the reader; how it does it will change"
    VERSION_WORD "version-word" Warning
        "versions in names and descriptions"
        "drop it: a client sees the contract's version, and prompts outlive it"
    PARAMETER_UNDESCRIBED "parameter-undescribed" Warning
        "parameters that nothing explains: neither a description nor a list of values"
        "say what it is, in which unit or form, with an example"
    PARAMETER_REPEATS "parameter-repeats-name" Info
        "descriptions of parameters that only repeat the name"
        "say what it is, in which unit or form, with an example"
    ENUM_IN_PROSE "enum-in-prose" Warning
        "allowed values listed in the description of a parameter that has no enum"
        "make it an enum (type: dropdown), which is checked"
    GROUP_OF_ONE "group-of-one" Warning
        "summaries by the key of a collection: each group is one record (seen only in a contract)"
        "drop it from `group_by`: a list answers each record"
}

/// Checks tools as `tools/list` shows them: `{name, title?, description?, inputSchema, outputSchema?, annotations?}`. A
/// member that is missing or of another type is taken as missing. At most 5,000 findings come in the order of the
/// tools.
pub fn lint(tools: &[Value]) -> Vec<LintFinding> {
    let mut findings = LintFindings(Vec::new());
    for tool in tools {
        let shown = LintedTool::from_tool(tool);
        text::check(&shown, tool, &mut findings);
        wording::check(&shown, &mut findings);
        schema::check(&shown, &mut findings);
        if findings.0.len() >= FINDINGS_MAX {
            break;
        }
    }
    check_together(tools, &mut findings);
    findings.0.truncate(FINDINGS_MAX);
    findings.0
}

/// Checks a compiled contract, including its own texts.
pub fn lint_contract(contract: &CompiledContract) -> Vec<LintFinding> {
    let mut findings = LintFindings(Vec::new());
    for text in [
        &contract.title,
        &contract.description,
        &contract.instructions,
    ]
    .into_iter()
    .flatten()
    {
        text::check_words(None, text, &mut findings);
    }
    let texts = contract.prompts.iter().flat_map(|prompt| {
        let arguments = prompt
            .arguments
            .iter()
            .flat_map(|argument| [&argument.title, &argument.description]);
        [&prompt.title, &prompt.description]
            .into_iter()
            .chain(arguments)
    });
    let texts = texts.chain(
        contract
            .resources
            .iter()
            .flat_map(|resource| [&resource.title, &resource.description]),
    );
    let texts = texts.chain(
        contract
            .templates
            .iter()
            .flat_map(|template| [&template.title, &template.description]),
    );
    for text in texts.flatten() {
        text::check_words(None, text, &mut findings);
    }
    for tool in &contract.tools {
        let sentence = tool.collection().and_then(|target| target.say.as_deref());
        if let Some(sentence) = sentence {
            text::check_words(Some(&tool.name), sentence, &mut findings);
        }
    }
    if let Value::Array(tools) = &compiled_document(contract)["tools"] {
        findings.0.extend(lint(tools));
    }
    question::check(contract, &mut findings);
    findings.0
}

/// Checks a text that models read along with the tools, such as a server's instructions.
pub(crate) fn lint_words(text: &str) -> Vec<LintFinding> {
    let mut findings = LintFindings(Vec::new());
    text::check_words(None, text, &mut findings);
    findings.0
}

/// Returns the arguments of a published contract whose names make some models refuse the whole request, as `tool.argument`.
/// New contracts cannot have them.
pub fn unusable_names(contract: &CompiledContract) -> Vec<String> {
    let mut names = Vec::new();
    for tool in &contract.tools {
        schema::unusable_names(&tool.input_schema.value(), &mut |field| {
            names.push(format!("{}.{}", tool.name, render_name(field)));
        });
    }
    names
}

/// Checks any document with `{tools: […]}`: a compiled document, or the result of `tools/list`.
pub fn lint_document(document: &Value) -> Result<Vec<LintFinding>, String> {
    match &document["tools"] {
        Value::Array(tools) => Ok(lint(tools)),
        _ => Err("there is no list of tools in it".to_owned()),
    }
}

/// Returns `{findings: […]}`.
pub fn to_json(findings: &[LintFinding]) -> Value {
    json!({ "findings": findings })
}

/// Writes `docs/lint.md`.
pub fn page() -> String {
    let mut page = String::from(
        "# Lint\n\nGenerated from `contracts/src/lint.rs`; `WEIR_BLESS=1 cargo test` writes it anew.\n\n\
         Lint checks how well a model can read a list of tools, and whether the list contains text that no person sees. Rules about\n\
         wording know English words and find nothing in other languages. The result is\n\
         `{findings: [{tool?, field?, rule, level, message, hint}]}`.\n\n\
         | rule | level | finds | what to do |\n|---|---|---|---|\n",
    );
    for rule in RULES {
        page.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            rule.id,
            rule.level.word(),
            rule.finds,
            rule.hint
        ));
    }
    page
}

/// The parts of a tool that have the right type.
struct LintedTool<'t> {
    name: &'t str,
    title: Option<&'t str>,
    description: &'t str,
    input: &'t Value,
    output: Option<&'t Value>,
    is_reading: bool,
}

impl<'t> LintedTool<'t> {
    fn from_tool(tool: &'t Value) -> Self {
        Self {
            name: tool["name"].as_str().unwrap_or_default(),
            title: tool["title"].as_str(),
            description: tool["description"].as_str().unwrap_or_default().trim(),
            input: &tool["inputSchema"],
            output: tool.get("outputSchema"),
            is_reading: tool["annotations"]["readOnlyHint"] == true,
        }
    }
}

struct LintFindings(Vec<LintFinding>);

impl LintFindings {
    fn add(&mut self, tool: Option<&str>, field: &str, rule: &'static LintRule, message: String) {
        if self.0.len() < FINDINGS_MAX {
            self.0.push(LintFinding {
                // A name from elsewhere may itself hide something.
                tool: tool.map(render_name),
                field: (!field.is_empty()).then(|| render_name(field)),
                rule: rule.id,
                level: rule.level,
                message,
                hint: rule.hint,
            });
        }
    }
}

/// Returns the name unchanged if all of it is visible, otherwise escaped and cut.
fn render_name(name: &str) -> String {
    match name.len() <= 200 && !name.chars().any(name::is_invisible) {
        true => name.to_owned(),
        false => name::quoted(name),
    }
}

/// Finds what makes two tools hard to tell apart.
fn check_together(tools: &[Value], findings: &mut LintFindings) {
    if tools.len() > TOOLS_GOOD {
        findings.add(
            None,
            "",
            MANY_TOOLS,
            format!("there are {} tools", tools.len()),
        );
    }
    let mut names = HashMap::new();
    let mut descriptions = HashMap::new();
    for tool in tools {
        let tool = LintedTool::from_tool(tool);
        let folded = name::words(tool.name).concat();
        if let Some(other) = names.insert(folded, tool.name) {
            let message = format!(
                "the name differs from {} only in case or separators",
                name::quoted(other)
            );
            findings.add(Some(tool.name), "", NAMES_ALIKE, message);
        }
        let words = wording::words(tool.description);
        if words.len() < wording::WORDS_MIN {
            continue;
        }
        if let Some(other) = descriptions.insert(words, tool.name) {
            findings.add(
                Some(tool.name),
                "",
                DESCRIPTIONS_ALIKE,
                format!("{} is described likewise", name::quoted(other)),
            );
        }
    }
}
