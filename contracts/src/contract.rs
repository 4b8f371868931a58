//! A compiled contract, and the parts that the gateway keeps of a published version.

mod approval;
mod arguments;
mod choices;
mod format;
mod inclusion;
mod spelling;
mod stored;
mod verb;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::{
    name,
    schema::RawSchema,
    shape::{CollectionShape, ColumnOverride, SummarySupport},
    values,
};

pub use approval::ApprovalRule;
pub(crate) use choices::is_groupable;
pub use choices::{
    GroupChoice, GroupStep, ListChoices, MeasureChoice, MeasureFunction, SummaryChoices,
};
pub use format::ArtifactFormat;
pub use inclusion::RecordInclusion;
pub(crate) use stored::NO_VERB;
use stored::StoredTool;
pub use verb::ToolVerb;

/// A compiled contract. Its JSON is the artifact that a published version is stored as.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompiledContract {
    /// Above the first one if earlier programs could not read the contract.
    #[serde(default, skip_serializing_if = "ArtifactFormat::is_first")]
    pub format: ArtifactFormat,
    /// Empty for bare forms.
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// [`ContractVersion::FIRST`] from the compiler; the gate assigns the next one.
    pub version: ContractVersion,
    /// sha256, hex, of what the maker of the tools declared. A build of a plugin that declares anything else does not
    /// answer for this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definitions: Option<String>,
    /// The upstream server that the contract was compiled from, or the plugin if it has prompts or resources. Any
    /// other plugin is named by its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maker: Option<ToolProvider>,
    pub collections: Vec<ContractCollection>,
    pub tools: Vec<Arc<ContractTool>>,
    /// The prompts of an upstream server or a plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Arc<ContractPrompt>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Arc<ContractResource>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<Arc<ResourceTemplate>>,
    /// Whether the server's resources change on their own: they are listed at each request, and `resources` is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live_resources: bool,
}

/// A source as this contract version sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractCollection {
    pub name: String,
    pub adapter: String,
    pub settings: Value,
    /// The recorded shape with the contract's own key, types and time zone applied, all columns the adapter may need.
    pub shape: CollectionShape,
    /// The columns that may ever leave the source, in order.
    pub published: Vec<String>,
    pub write: bool,
    /// The contract's own words about columns, which are applied to a live shape before it is compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<ColumnOverride>,
}

/// An entry of `tools/list`. `input_schema` and `output_schema` keep the order that a client sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "StoredTool", into = "StoredTool")]
pub struct ContractTool {
    pub name: String,
    pub title: Option<String>,
    pub description: String,
    pub input_schema: RawSchema,
    pub output_schema: Option<RawSchema>,
    pub annotations: ToolAnnotations,
    /// The target that a call of the tool reaches.
    pub target: CallTarget,
    pub limits: CallLimits,
    /// Fields whose arguments the audit may keep in clear; of all others it keeps a digest.
    pub audit_clear: Vec<String>,
    /// Whether a person approves each call before it runs.
    pub approval: Option<ApprovalRule>,
}

/// The target that a call of a tool reaches.
#[derive(Clone, Debug, PartialEq)]
pub enum CallTarget {
    /// A bare form. It compiles and validates arguments, but has no collection, and no contract publishes it.
    Form,
    /// A collection of the same contract.
    Collection(Arc<CollectionTarget>),
    /// A tool that a plugin or an upstream server offers.
    Offer(Arc<OfferTarget>),
}

/// A verb on a collection, and the form of its result.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionTarget {
    pub verb: ToolVerb,
    pub binding: ToolBinding,
    /// Template of the sentence in the text block, over the record; by default from the verb.
    pub say: Option<String>,
    pub text: TextMode,
    /// A lookup by one argument whose records are resources too.
    pub resource: bool,
}

/// A tool as its maker defines it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfferTarget {
    pub maker: ToolProvider,
    /// The tool's name there.
    pub name: String,
    /// Arguments that every call carries and no agent sees or sets.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub set: Map<String, Value>,
    /// The headers that repeat set arguments: the name after `Mcp-Param-`, and the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set_headers: BTreeMap<String, String>,
    /// The maker's result is not an object: it is published, and answered, as `{result: …}`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapped: bool,
    /// Names of arguments, nested ones too, that clients refuse as the maker wrote them: the published name, and the maker's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
    /// The schema that arguments are checked against, if clients do not accept all of it in a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<RawSchema>,
    /// The schema that `structuredContent` is checked against, if it is not the published one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<RawSchema>,
    /// Members of the tool's entry in lists that are passed on as the maker wrote them: `icons`, `execution`, `_meta`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub listed: Map<String, Value>,
}

/// An entry of `prompts/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractPrompt {
    pub name: String,
    /// The prompt's name at its maker.
    pub own_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
    /// Members of its entry that are passed on as the server wrote them: `icons`, `_meta`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub listed: Map<String, Value>,
}

/// A text that a prompt is made with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptArgument {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub required: bool,
}

/// An entry of `resources/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContractResource {
    /// Its maker's own; [`crate::uri::published_uri`] is what clients see.
    pub uri: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Members of its entry that are passed on as the server wrote them: `mimeType`, `size`, `annotations`, `icons`, `_meta`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub listed: Map<String, Value>,
}

/// An entry of `resources/templates/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceTemplate {
    /// Its maker's own; [`crate::uri::published_template`] is what clients see.
    pub uri_template: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub listed: Map<String, Value>,
}

/// The plugin or server that makes the tools of an offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolProvider {
    /// The name of a plugin.
    Plugin(String),
    /// The name of an upstream server.
    Upstream(String),
}

/// The effects of a tool, as clients see them. For a collection they are derived from the verb or the operation. A maker's
/// own are kept as they are, including hints that the protocol does not define.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
    /// Members other than these four, such as `title`.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// The destination of every argument, and the question to the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolBinding {
    /// Name of a collection of the same contract.
    pub collection: String,
    pub inputs: Vec<BindingInput>,
    /// The fields that go along with every call and that no agent can set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bound: Vec<BoundField>,
    /// `name` ascending, `-name` descending; ends with the key, so that it is total.
    pub order: Vec<String>,
    /// The columns asked for and answered.
    pub columns: Vec<String>,
    /// The number of records without a `limit`; only for `list`.
    pub limit_default: u32,
    pub limit_max: u32,
    /// The operation; only for `call`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The choices of an agent; only for `list`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<ListChoices>,
    /// The groups and measures that an agent may ask for; only for `summarize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<SummaryChoices>,
    /// The related records that an agent can ask for; only for `lookup`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<RecordInclusion>,
}

/// One argument of a tool, and where it goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindingInput {
    pub field: String,
    pub to: FieldDestination,
    /// The value that is put in after validation if the argument is absent. Null can be a default too.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    pub default: Option<Value>,
    #[serde(default)]
    pub form: ValueForm,
    /// Further texts of the source that chosen values mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub spellings: BTreeMap<String, Vec<String>>,
}

/// A field of the form that is not an argument: it is in no schema, and its value comes from the caller or the contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundField {
    pub name: String,
    pub to: FieldDestination,
    pub source: BoundSource,
}

/// Where the value of a bound field comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundSource {
    /// The name of the agent that calls.
    Agent,
    /// The name of the caller's tenant.
    Tenant,
    /// A constant, as the source is given it.
    Value(Value),
}

/// The form a source is given a value in, where an agent has more freedom than the value table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueForm {
    #[default]
    AsSent,
    /// Digits as text, also where the agent sends a number.
    Decimal,
    /// RFC 3339 in UTC, whatever offset the agent sends.
    Utc,
}

/// The place in a request to the source that a value goes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FieldDestination {
    /// A condition that records must meet (lookup, list; key fields of update and delete).
    Condition { column: String, comparison: String },
    /// A further condition, in addition to the key, that the record must meet to be changed (update, delete); only
    /// bound fields go there.
    Guard { column: String, comparison: String },
    /// A value to be written (create, update).
    Column(String),
    /// A parameter the adapter declares.
    Param(String),
    /// The list of fields that the call empties (update): each becomes null.
    Clear,
}

/// The bounds on the calls of one tool; `None` leaves those of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallLimits {
    /// Calls and the seconds they are counted over, per agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<(u32, u32)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What the text of a result has: a sentence, JSON, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextMode {
    Sentence,
    Json,
    #[default]
    Both,
}

/// A version, as text `major.minor.patch`: breaking / compatible or reviewed / cosmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContractVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl ContractVersion {
    pub const FIRST: Self = Self {
        major: 1,
        minor: 0,
        patch: 0,
    };
}

impl std::str::FromStr for ContractVersion {
    type Err = String;

    /// Parses three numbers as [`Display`](std::fmt::Display) writes them; nothing else reads as a version.
    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("{} is not a version such as 1.0.0", name::quoted(text));
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        let (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refused());
        };
        let version = Self {
            major,
            minor,
            patch,
        };
        match version.to_string() == text {
            true => Ok(version),
            false => Err(refused()),
        }
    }
}

impl TryFrom<String> for ContractVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ContractVersion> for String {
    fn from(version: ContractVersion) -> Self {
        version.to_string()
    }
}

impl std::fmt::Display for ContractVersion {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl CompiledContract {
    /// Returns the plugin that makes the contract's tools, if one does.
    pub fn plugin(&self) -> Option<&str> {
        match self.made_by()? {
            ToolProvider::Plugin(plugin) => Some(plugin),
            ToolProvider::Upstream(_) => None,
        }
    }

    /// Returns the plugin or server that makes the contract's tools. `None`: they are of a form.
    pub fn made_by(&self) -> Option<&ToolProvider> {
        let offered = || self.tools.iter().find_map(|tool| tool.offer());
        self.maker.as_ref().or_else(|| Some(&offered()?.maker))
    }

    /// Returns the upstream server that the contract was compiled from.
    pub fn upstream(&self) -> Option<&str> {
        match &self.maker {
            Some(ToolProvider::Upstream(upstream)) => Some(upstream),
            Some(ToolProvider::Plugin(_)) | None => None,
        }
    }

    /// Returns what the URIs of its resources are published under: [`crate::uri`]. `None`: a plugin's own URIs are those that
    /// clients see, since its author wrote them for this gateway.
    pub fn uri_scope(&self) -> Option<&str> {
        self.upstream().map(|_| self.name.as_str())
    }

    /// Returns whether it publishes resources, either listed or from templates.
    pub fn has_resources(&self) -> bool {
        self.live_resources || !self.resources.is_empty() || !self.templates.is_empty()
    }

    /// Returns the collection of that name.
    pub fn collection(&self, name: &str) -> Option<&ContractCollection> {
        self.collections
            .iter()
            .find(|collection| collection.name == name)
    }
}

impl ContractTool {
    /// Returns `true` if a call may change the source.
    pub fn writes(&self) -> bool {
        self.annotations.read_only_hint != Some(true)
    }

    /// Returns the collection behind the tool, with the verb.
    pub fn collection(&self) -> Option<&Arc<CollectionTarget>> {
        match &self.target {
            CallTarget::Collection(target) => Some(target),
            CallTarget::Form | CallTarget::Offer(_) => None,
        }
    }

    /// Returns the tool of a plugin or an upstream server that is behind this one.
    pub fn offer(&self) -> Option<&Arc<OfferTarget>> {
        match &self.target {
            CallTarget::Offer(offer) => Some(offer),
            CallTarget::Form | CallTarget::Collection(_) => None,
        }
    }

    /// Returns `true` if an upstream server answers the tool's calls. That server then judges formats.
    pub fn is_foreign(&self) -> bool {
        match &self.target {
            CallTarget::Form | CallTarget::Collection(_) => false,
            CallTarget::Offer(offer) => match offer.maker {
                ToolProvider::Plugin(_) => false,
                ToolProvider::Upstream(_) => true,
            },
        }
    }

    /// Returns the schema that arguments are checked against: the published one, or a more detailed one.
    pub fn checked_input(&self) -> &RawSchema {
        self.offer()
            .and_then(|offer| offer.input.as_ref())
            .unwrap_or(&self.input_schema)
    }

    /// Returns the schema that `structuredContent` of an upstream server's answer is checked against; `None` means that
    /// anything may come.
    pub fn checked_output(&self) -> Option<&RawSchema> {
        self.offer()
            .and_then(|offer| offer.output.as_ref())
            .or(self.output_schema.as_ref())
    }
}

impl CollectionTarget {
    /// Returns what calls need of the source in addition to reading records.
    pub fn needed_summaries(&self) -> SummarySupport {
        let counts = self.binding.list.as_ref().is_some_and(|it| it.with_total);
        match counts {
            true => SummarySupport::Count,
            false => self.verb.needed_summaries(),
        }
    }
}

impl OfferTarget {
    /// Returns the maker's support of tasks: `optional`, `required` or `forbidden`.
    pub fn task_support(&self) -> Option<&str> {
        self.listed.get("execution")?.get("taskSupport")?.as_str()
    }

    /// Returns a tool as it is offered, with nothing set or published differently.
    pub fn new(maker: ToolProvider, name: &str) -> Self {
        Self {
            maker,
            name: name.to_owned(),
            set: Map::new(),
            set_headers: BTreeMap::new(),
            wrapped: false,
            keys: BTreeMap::new(),
            input: None,
            output: None,
            listed: Map::new(),
        }
    }
}

impl ToolAnnotations {
    /// Returns annotations with all four hints stated.
    pub fn from_hints(
        read_only: bool,
        destructive: bool,
        idempotent: bool,
        open_world: bool,
    ) -> Self {
        Self {
            read_only_hint: Some(read_only),
            destructive_hint: Some(destructive),
            idempotent_hint: Some(idempotent),
            open_world_hint: Some(open_world),
            others: Map::new(),
        }
    }

    /// Describes what a call may do, as a clause without its subject.
    pub fn effect(&self) -> &'static str {
        match (self.read_only_hint, self.destructive_hint) {
            (Some(true), _) => "only reads",
            (Some(false), Some(false)) => "writes, and destroys nothing",
            (Some(false), Some(true)) => "writes, and may destroy",
            (Some(false), None) => "writes, and does not say whether it may destroy",
            (None, _) => "does not say whether it writes",
        }
    }
}

impl ContractCollection {
    /// Returns `true` for a query or statement of the operator's own that takes parameters.
    pub(crate) fn has_statement(&self) -> bool {
        self.adapter == "sql"
            && ["parameters", "statement"]
                .iter()
                .any(|key| self.settings.get(key).is_some())
    }

    /// Checks whether a source that now describes itself as `live` still serves this version. The error has the
    /// reasons.
    pub fn accepts(&self, live: &CollectionShape) -> Result<(), Vec<String>> {
        let mut live = live.clone();
        live.apply(&self.overrides);
        live.key.clone_from(&self.shape.key);
        live.apply_misfits(self.shape.misfits, &self.shape.null_words);
        self.shape.satisfied_by(&live)
    }
}

impl ToolBinding {
    /// Returns the values for the source and where each goes: every argument that is present, then every bound field.
    pub fn asked<'a>(
        &'a self,
        arguments: &'a serde_json::Map<String, Value>,
        agent: &'a str,
        tenant: &'a str,
    ) -> impl Iterator<Item = (&'a FieldDestination, Value)> {
        let sent = self
            .inputs
            .iter()
            .filter_map(|input| Some((&input.to, arguments.get(&input.field)?.clone())));
        sent.chain(
            self.bound
                .iter()
                .map(move |field| (&field.to, field.source.value(agent, tenant))),
        )
    }

    /// Returns the argument that names the fields to empty, if the tool has one.
    pub fn clear(&self) -> Option<&str> {
        self.inputs
            .iter()
            .find(|input| input.to == FieldDestination::Clear)
            .map(|input| input.field.as_str())
    }

    /// Converts checked arguments to those for the source: the default of every absent argument is put in, a field
    /// that is to be emptied becomes null, and a value that has several forms takes the value table's one (a number for
    /// a decimal column becomes its digits, a time with an offset becomes UTC).
    pub fn inject_defaults(&self, arguments: &mut serde_json::Map<String, Value>) {
        for input in &self.inputs {
            if input.to == FieldDestination::Clear {
                let Some(Value::Array(fields)) = arguments.shift_remove(&input.field) else {
                    continue;
                };
                arguments.extend(
                    fields
                        .iter()
                        .filter_map(|field| Some((field.as_str()?.to_owned(), Value::Null))),
                );
                continue;
            }
            if let (Some(default), false) = (&input.default, arguments.contains_key(&input.field)) {
                arguments.insert(input.field.clone(), default.clone());
            }
            if let Some(value) = arguments.get_mut(&input.field) {
                input.form.apply(value);
                input.spell_out(value);
            }
        }
    }
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl BoundSource {
    /// Returns the value for a call of this agent and tenant.
    pub fn value(&self, agent: &str, tenant: &str) -> Value {
        match self {
            Self::Agent => agent.into(),
            Self::Tenant => tenant.into(),
            Self::Value(value) => value.clone(),
        }
    }
}

impl ValueForm {
    pub(crate) fn apply(self, value: &mut Value) {
        match (self, value) {
            (_, Value::Array(items)) => items.iter_mut().for_each(|item| self.apply(item)),
            (Self::Decimal, value @ Value::Number(_)) => {
                let Value::Number(number) = &*value else {
                    return;
                };
                *value = Value::String(values::decimal_of(number));
            }
            (Self::Utc, Value::String(text)) => {
                if let Some(utc) = values::utc(text) {
                    *text = utc;
                }
            }
            _ => {}
        }
    }
}
