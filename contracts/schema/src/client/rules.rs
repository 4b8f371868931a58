//! The table of what clients accept, with the source of each rule. No vendor's interface was called: the rules come from
//! their pages, their clients' code, and reports that quote the refusal.

use crate::keyword::{DEFS, REF};

use super::ClientProfile::{self, Anthropic, Cursor, Gemini, Openai, OpenaiStrict, Vscode};

/// A rule of clients for the tools that they take.
pub struct ClientRule {
    pub name: &'static str,
    pub clients: &'static [ClientProfile],
    /// The effect on a tool that breaks the rule.
    pub does: &'static str,
    pub source: &'static str,
}

pub(super) const TOP_LEVEL: &str = "top-level";
pub(super) const REFERENCE: &str = "reference";
pub(super) const FIELD_NAME: &str = "field-name";
pub(super) const TOOL_NAME: &str = "tool-name";
pub(super) const DESCRIPTION: &str = "description";
pub(super) const ITEMS: &str = "items";
pub(super) const KEYWORD: &str = "keyword";
pub(super) const FORMAT: &str = "format";
pub(super) const PATTERN: &str = "pattern";
pub(super) const NULL: &str = "null";
pub(super) const ENUM: &str = "enum";
pub(super) const UNION: &str = "union";
pub(super) const TYPE: &str = "type";
pub(super) const OPEN_OBJECT: &str = "open-object";
pub(super) const REQUIRED: &str = "required";
pub(super) const SIZE: &str = "size";

pub const RULES: [ClientRule; 16] = [
    ClientRule {
        name: TOP_LEVEL,
        clients: &[Anthropic, Openai, OpenaiStrict, Gemini, Cursor, Vscode],
        does: "`anyOf`, `oneOf`, `allOf`, `not`, `if` at the top of a schema are left out; `allOf` is merged, and the \
               properties of `anyOf` and `oneOf` join the others, except for openai-strict",
        source: "https://github.com/anthropics/claude-code/issues/5973 (Anthropic); microsoft/vscode-copilot-chat \
                 src/extension/tools/common/toolSchemaNormalizer.ts (VS Code: fails for Claude and GPT-4o)",
    },
    ClientRule {
        name: REFERENCE,
        clients: &[Anthropic, OpenaiStrict, Gemini],
        does: "`$ref` is replaced by what it names; a recursive one ends as an unconstrained object, and is kept for openai-strict",
        source: "https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes (Anthropic); \
                 https://github.com/google-gemini/gemini-cli/pull/9574 (Gemini); openai/openai-agents-python \
                 src/agents/strict_schema.py (OpenAI: a tool of an MCP server with one is not strict there)",
    },
    ClientRule {
        name: FIELD_NAME,
        clients: &[Anthropic],
        does: "a property that is not 1 to 64 of A-Z a-z 0-9 _ . - makes the tool refused",
        source: "https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes",
    },
    ClientRule {
        name: TOOL_NAME,
        clients: &[Cursor],
        does: "a name of 56 characters or more, with `weir:` before it over 60, makes the tool refused",
        source: "https://github.com/ComposioHQ/composio/issues/2788",
    },
    ClientRule {
        name: DESCRIPTION,
        clients: &[Vscode],
        does: "a description of an argument is cut after 1024 characters",
        source: "microsoft/vscode-copilot-chat src/extension/tools/common/toolSchemaNormalizer.ts (GPT-4 models)",
    },
    ClientRule {
        name: ITEMS,
        clients: &[Openai, OpenaiStrict, Gemini, Cursor, Vscode],
        does: "an array without `items` gets `items: {}`; a tuple gets what fits all of its places",
        source: "https://github.com/microsoft/vscode/issues/246119",
    },
    ClientRule {
        name: KEYWORD,
        clients: &[OpenaiStrict, Gemini],
        does: "keywords that the vendor does not list are left out; an exclusive bound of whole numbers becomes an inclusive one",
        source: "https://developers.openai.com/api/docs/guides/structured-outputs (OpenAI); \
                 https://ai.google.dev/api/caching#Schema (Gemini)",
    },
    ClientRule {
        name: FORMAT,
        clients: &[OpenaiStrict, Gemini],
        does: "formats that the vendor does not list are left out",
        source: "https://github.com/can1357/oh-my-pi/issues/206 (OpenAI); https://github.com/enechange/collmbo/pull/195 (Gemini)",
    },
    ClientRule {
        name: PATTERN,
        clients: &[Openai, OpenaiStrict],
        does: "a `pattern` that looks ahead or behind is left out",
        source: "https://github.com/vercel/ai/pull/21037 (strict); https://github.com/anomalyco/opencode/issues/32073",
    },
    ClientRule {
        name: NULL,
        clients: &[Gemini],
        does: "null next to another type is left out",
        source: "https://github.com/anomalyco/opencode/pull/14234",
    },
    ClientRule {
        name: ENUM,
        clients: &[Gemini],
        does: "values other than texts, and the empty text, are left out of the schema; `const` becomes `enum`",
        source: "https://github.com/NousResearch/hermes-agent/pull/15082; https://github.com/Bobsilvio/ha-claude/pull/32 (empty)",
    },
    ClientRule {
        name: UNION,
        clients: &[OpenaiStrict, Gemini],
        does: "`oneOf` becomes `anyOf`; `allOf` is merged into its schema; for gemini nothing is next to `anyOf`",
        source: "openai/openai-agents-python src/agents/strict_schema.py; https://github.com/ayunis-core/ayunis-core/pull/976; \
                 https://github.com/patlux/pi-commandcode-provider/pull/103 (Gemini)",
    },
    ClientRule {
        name: TYPE,
        clients: &[OpenaiStrict, Gemini],
        does: "a schema without a type gets that of its values, for gemini also that of its keywords or a union of types; a \
               required name without a schema gets one",
        source: "https://github.com/apexive/odoo-llm/issues/212 (OpenAI); https://github.com/QuantumNous/new-api/issues/3022 (Gemini); \
                 https://github.com/iBUHub/AIStudioToAPI/issues/154 (Gemini: required names)",
    },
    ClientRule {
        name: OPEN_OBJECT,
        clients: &[OpenaiStrict],
        does: "an object gets `additionalProperties: false`; one of free names, and a value of any type, make the tool refused",
        source: "openai/openai-agents-python src/agents/strict_schema.py",
    },
    ClientRule {
        name: REQUIRED,
        clients: &[OpenaiStrict],
        does: "every property is required; one that may be absent may be null instead, and one for which null means something \
               else than its absence is left out",
        source: "https://developers.openai.com/api/docs/guides/structured-outputs",
    },
    ClientRule {
        name: SIZE,
        clients: &[OpenaiStrict],
        does: "more than 10 levels, 5000 properties, 1000 values of enums, 120000 characters of names and values, or 15000 of a \
               list of over 250 values make the tool refused",
        source: "https://developers.openai.com/api/docs/guides/structured-outputs",
    },
];

/// The features of JSON Schema that one client takes.
pub(super) struct ClientFeatures {
    pub(super) references: bool,
    /// The keywords that the client accepts. `None` means all.
    pub(super) keywords: Option<&'static [&'static str]>,
    pub(super) formats: Option<&'static [&'static str]>,
    /// Whether patterns may look ahead or behind.
    pub(super) lookaround: bool,
    pub(super) null: bool,
    /// Whether the client takes values in an enum that are not texts.
    pub(super) any_enum: bool,
    pub(super) only_any_of: bool,
    /// Whether each schema has to have a type, or be a union and nothing else.
    pub(super) only_types: bool,
    pub(super) strict: bool,
    pub(super) needs_items: bool,
    pub(super) any_field_name: bool,
    pub(super) argument_chars_max: Option<usize>,
    pub(super) name_max: Option<usize>,
}

const EVERYTHING: ClientFeatures = ClientFeatures {
    references: true,
    keywords: None,
    formats: None,
    lookaround: true,
    null: true,
    any_enum: true,
    only_any_of: false,
    only_types: false,
    strict: false,
    needs_items: false,
    any_field_name: true,
    argument_chars_max: None,
    name_max: None,
};

const STRICT_KEYWORDS: [&str; 20] = [
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    REF,
    DEFS,
    "pattern",
    "format",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];
const STRICT_FORMATS: [&str; 9] = [
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];
const GEMINI_KEYWORDS: [&str; 17] = [
    "type",
    "description",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
];

pub(super) fn takes(profile: ClientProfile) -> &'static ClientFeatures {
    match profile {
        Anthropic => &ClientFeatures {
            references: false,
            any_field_name: false,
            ..EVERYTHING
        },
        Openai => &ClientFeatures {
            lookaround: false,
            needs_items: true,
            ..EVERYTHING
        },
        OpenaiStrict => &ClientFeatures {
            keywords: Some(&STRICT_KEYWORDS),
            formats: Some(&STRICT_FORMATS),
            lookaround: false,
            only_any_of: true,
            strict: true,
            needs_items: true,
            ..EVERYTHING
        },
        Gemini => &ClientFeatures {
            references: false,
            keywords: Some(&GEMINI_KEYWORDS),
            formats: Some(&["date-time"]),
            null: false,
            any_enum: false,
            only_any_of: true,
            only_types: true,
            needs_items: true,
            ..EVERYTHING
        },
        Cursor => &ClientFeatures {
            needs_items: true,
            name_max: Some(55),
            ..EVERYTHING
        },
        Vscode => &ClientFeatures {
            needs_items: true,
            argument_chars_max: Some(1024),
            ..EVERYTHING
        },
    }
}
