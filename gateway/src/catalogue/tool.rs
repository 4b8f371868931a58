//! Prepares one published tool, with everything a call needs.

use std::{
    borrow::Cow,
    convert::Infallible,
    sync::{Arc, OnceLock},
    time::Duration,
};

use ahash::RandomState;
use quick_cache::{UnitWeighter, sync::Cache};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use weir_contracts::{
    CompiledContract, ContractTool, ContractVersion,
    contract::{self, ToolAnnotations, ToolProvider},
    impact::ArgumentProfiler,
    mirror::{self, MirroredArgument},
};
use weir_plugin_host::CollectionRef;
use weir_schema::{
    RawSchema,
    client::{self, ClientProfile},
    validate::ArgumentValidator,
};

use super::{
    ListShape, ToolCatalogue, item,
    kept::{CallShim, KeptTool},
    listing::ListingClients,
    target::{HostCollections, ToolTarget},
};
use crate::telemetry::metrics::ToolMeter;

/// The member of `_meta` with the time at which a version ends.
const SUNSET: &str = "dev.weir/sunset";
/// The member of `_meta` for tools whose calls a person approves.
const APPROVAL: &str = "dev.weir/approval";
/// The number of tools whose checks are kept: a check takes tens of kilobytes.
const CHECKS_MAX: usize = 4_096;

/// A published tool: its contract, its target, its prepared checks, and the bytes that clients list.
pub struct CatalogueTool {
    pub name: Arc<str>,
    pub contract: Arc<str>,
    pub version: ContractVersion,
    pub tool: Arc<ContractTool>,
    pub target: ToolTarget,
    pub tasks: TaskSupport,
    /// Arguments that HTTP requests repeat in their headers.
    pub mirrored: Box<[MirroredArgument]>,
    checks: KeptChecks,
    /// The lowered forms, by `ClientProfile`; each is created on first use, and is `None` if it changes nothing.
    lowered: [OnceLock<Option<Box<ClientToolForm>>>; ClientProfile::ALL.len()],
    /// The meter that counts its calls.
    pub meter: ToolMeter,
    /// The additional data of a version other than the live one.
    pub kept: Option<Box<KeptTool>>,
    digest: [u8; 32],
}

/// Whether a call may continue after its request was answered, as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSupport {
    None,
    /// Callers without support for tasks wait for the answer.
    Optional,
    /// Modern callers without support for tasks are refused.
    Required,
}

impl TaskSupport {
    /// Reads what the maker of the tool states. Weir itself waits for calls of another server's tool, whatever that server
    /// requires of its callers.
    fn stated_by(tool: &ContractTool) -> Self {
        let offer = match &tool.target {
            contract::CallTarget::Form | contract::CallTarget::Collection(_) => return Self::None,
            contract::CallTarget::Offer(offer) => offer,
        };
        let required = match &offer.maker {
            ToolProvider::Plugin(_) => Self::Required,
            ToolProvider::Upstream(_) => Self::Optional,
        };
        match offer.task_support() {
            Some("required") => required,
            Some("optional") => Self::Optional,
            Some(_) | None => Self::None,
        }
    }

    fn word(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Optional => Some("optional"),
            Self::Required => Some("required"),
        }
    }
}

impl CatalogueTool {
    /// Prepares a tool; `None` for a bare form, which no contract publishes.
    pub(super) fn prepare(
        contract: &CompiledContract,
        tool: &Arc<ContractTool>,
        sources: &HostCollections,
        checks: &KeptChecks,
        previous: Option<&ToolCatalogue>,
    ) -> Option<Arc<Self>> {
        let source = tool
            .collection()
            .and_then(|target| sources.find(&target.binding.collection));
        let digest = digest(contract, tool, source);
        let before = previous.and_then(|catalogue| catalogue.tools.get(tool.name.as_str()));
        if let Some(same) = before.filter(|before| before.digest == digest) {
            return Some(same.clone());
        }
        let (name, contract_name): (Arc<str>, Arc<str>) =
            (tool.name.as_str().into(), contract.name.as_str().into());
        let target = ToolTarget::prepare(contract, tool, sources)?;
        Some(Arc::new(Self {
            meter: ToolMeter::new(
                name.clone(),
                contract_name.clone(),
                contract.version,
                Some(target.runner()),
            ),
            name,
            contract: contract_name,
            version: contract.version,
            tool: Arc::clone(tool),
            tasks: TaskSupport::stated_by(tool),
            target,
            mirrored: mirror::mirrored(&tool.input_schema).into(),
            checks: checks.clone(),
            lowered: Default::default(),
            kept: None,
            digest,
        }))
    }

    /// Makes it a tool of a kept version.
    pub(super) fn beside(mut self, kept: KeptTool) -> Self {
        let digest = Sha256::new_with_prefix(self.digest)
            .chain_update(kept.sunset_ms.unwrap_or_default().to_be_bytes());
        self.digest = digest.finalize().into();
        self.kept = Some(Box::new(kept));
        self
    }

    /// Returns the conversion of its calls to those of a tool of the live version, and that tool.
    pub fn shim(&self) -> Option<(&CallShim, &CatalogueTool)> {
        let kept = self.kept.as_ref()?;
        Some((kept.shim.as_ref()?, kept.current.as_ref()?))
    }

    /// Returns the tool by which policies judge it. `None` if the live version has no tool of its name.
    pub fn judged(self: &Arc<Self>) -> Option<&Arc<Self>> {
        match &self.kept {
            None => Some(self),
            Some(kept) => kept.current.as_ref(),
        }
    }

    /// Returns whether policies on arguments can read those of its calls.
    pub fn has_judged_arguments(&self) -> bool {
        let Some(kept) = &self.kept else {
            return true;
        };
        let is_same = |current: &Arc<Self>| current.tool.input_schema == self.tool.input_schema;
        kept.shim.is_some() || kept.current.as_ref().is_some_and(is_same)
    }

    /// Returns `contract@version`, as in logs and `_meta`.
    pub fn contract_version(&self) -> &str {
        &self.meter.contract_version
    }

    /// Returns the time limit of a call. `usual`: the limit for a tool that sets none.
    pub fn timeout(&self, usual: Duration) -> Duration {
        let own = self.tool.limits.timeout_ms;
        own.map_or(usual, Duration::from_millis)
    }

    /// Returns the parts of its input schema that a call needs. They are created on first use: a start must not pay for ten
    /// thousand tools.
    pub fn checks(&self) -> Arc<InputChecks> {
        self.checks.get_or_build(&self.tool, &self.digest)
    }

    pub(super) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Returns the URIs of the MCP Apps pages that it links.
    pub(super) fn pages(&self) -> impl Iterator<Item = &str> {
        let meta = self
            .tool
            .offer()
            .and_then(|offer| offer.listed.get("_meta"));
        let nested = meta.and_then(|meta| meta.get("ui")?.get("resourceUri"));
        let flat = meta.and_then(|meta| meta.get("ui/resourceUri"));
        [nested, flat]
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// Returns the lowered form for these clients; `None` if it is the same.
    pub(super) fn lowered(&self, profile: ClientProfile) -> Option<&ClientToolForm> {
        let lower = || {
            let lowered = client::lower(&self.name, &self.tool.input_schema.value(), profile);
            let is_refused = lowered.is_refused();
            let input = RawSchema::from(lowered.input);
            let is_same = input == self.tool.input_schema && !is_refused;
            let mirrored = mirror::mirrored(&input).into();
            (!is_same).then(|| {
                Box::new(ClientToolForm {
                    input,
                    mirrored,
                    is_refused,
                })
            })
        };
        self.lowered[profile as usize].get_or_init(lower).as_deref()
    }

    /// Writes the tool in the form for clients of that shape.
    pub(super) fn write(&self, shape: ListShape, clients: &ListingClients, out: &mut String) {
        let tool = &self.tool;
        let lowered = clients.profile.and_then(|profile| self.lowered(profile));
        let is_structured = shape.is_structured();
        let is_typed = is_structured || shape == ListShape::Found;
        let theirs = tool.offer().and_then(|offer| offer.listed.get("_meta"));
        let input = lowered.map_or(&tool.input_schema, |lowered| &lowered.input);
        let is_verbatim = self.target.lists_root_verbatim() && input.has_composed_root();
        let mut listed = ToolListEntry {
            name: &tool.name,
            title: tool.title.as_deref().filter(|_| is_typed),
            description: &tool.description,
            input_schema: match is_verbatim {
                true => Cow::Borrowed(input),
                false => input.for_clients(),
            },
            output_schema: tool
                .output_schema
                .as_ref()
                .filter(|_| is_typed)
                .map(RawSchema::for_clients),
            annotations: (!matches!(shape, ListShape::Plain | ListShape::Found))
                .then_some(&tool.annotations),
            others: Map::new(),
            meta: is_structured.then(|| {
                let mut meta = item::meta(self.contract_version(), theirs);
                if let Some(rule) = tool.approval {
                    meta.insert(APPROVAL.to_owned(), json!(rule));
                }
                if let Some(sunset) = self.kept.as_ref().and_then(|kept| kept.sunset_ms) {
                    meta.insert(SUNSET.to_owned(), shown_time(sunset).into());
                }
                for (name, value) in clients.meta(&self.name, tool.title.as_deref()) {
                    meta.entry(name).or_insert(value);
                }
                meta
            }),
        };
        if is_structured {
            for (name, value) in tool.offer().into_iter().flat_map(|offer| &offer.listed) {
                match name.as_str() {
                    // Clients that find tasks here but do not support Weir's may insist on a different kind of tasks.
                    "execution" if shape != ListShape::Tasks => {}
                    "execution" if self.tasks != TaskSupport::None => {
                        let support = json!({ "taskSupport": self.tasks.word() });
                        listed.others.insert(name.clone(), support);
                    }
                    "_meta" => {}
                    _ => drop(listed.others.insert(name.clone(), value.clone())),
                }
            }
        }
        out.push_str(&serde_json::to_string(&listed).expect("plain data"));
    }
}

/// The form of a tool for some clients. Its arguments still meet the full schema.
pub(super) struct ClientToolForm {
    pub(super) input: RawSchema,
    /// Arguments that these clients repeat in headers.
    pub(super) mirrored: Box<[MirroredArgument]>,
    /// Whether listing it would cost these clients more than this tool.
    pub(super) is_refused: bool,
}

/// An entry of `tools/list`, in the order of its members.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolListEntry<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    description: &'a str,
    input_schema: Cow<'a, RawSchema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Cow<'a, RawSchema>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a ToolAnnotations>,
    /// Members that are passed on as the maker of the tool wrote them.
    #[serde(flatten)]
    others: Map<String, Value>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Map<String, Value>>,
}

/// The checks of a tool's input schema that a call needs.
pub struct InputChecks {
    arguments: Option<ArgumentValidator>,
    schema: Value,
    profiler: OnceLock<ArgumentProfiler>,
}

/// The checks of tools, by the digest of the tool. The least used are evicted, and created again on demand.
#[derive(Clone)]
pub(super) struct KeptChecks(Arc<Cache<[u8; 32], Arc<InputChecks>, UnitWeighter, RandomState>>);

impl InputChecks {
    fn new(tool: &ContractTool) -> Self {
        let compiled = tool.argument_validator();
        Self {
            arguments: compiled
                .inspect_err(|error| tracing::error!(tool = tool.name, "its input schema: {error}"))
                .ok(),
            schema: tool.input_schema.value(),
            profiler: OnceLock::new(),
        }
    }

    /// Returns the check of the arguments. `None` means that the stored schema does not compile, which happens only if the
    /// state was changed by another program.
    pub fn arguments(&self) -> Option<&ArgumentValidator> {
        self.arguments.as_ref()
    }

    /// Describes the shape of arguments, without their values.
    pub fn profiler(&self) -> &ArgumentProfiler {
        self.profiler
            .get_or_init(|| ArgumentProfiler::new(&self.schema))
    }

    /// Returns the tree of the published input schema, for callers that do not send JSON.
    pub fn schema(&self) -> &Value {
        &self.schema
    }
}

impl KeptChecks {
    fn with_room_for(most: usize) -> Self {
        Self(Arc::new(Cache::with(
            most,
            most as u64,
            UnitWeighter,
            RandomState::new(),
            Default::default(),
        )))
    }

    pub(super) fn get_or_build(&self, tool: &ContractTool, digest: &[u8; 32]) -> Arc<InputChecks> {
        let Ok(checks) = self.0.get_or_insert_with(digest, || {
            Ok::<_, Infallible>(Arc::new(InputChecks::new(tool)))
        });
        checks
    }
}

impl Default for KeptChecks {
    fn default() -> Self {
        Self::with_room_for(CHECKS_MAX)
    }
}

/// Returns a digest of everything that defines a tool: published bytes, binding, source, limits. The source's key contains the
/// digest of its settings and its shape.
fn digest(
    contract: &CompiledContract,
    tool: &ContractTool,
    source: Option<&CollectionRef>,
) -> [u8; 32] {
    let ContractTool {
        name,
        title,
        description,
        input_schema,
        output_schema,
        annotations,
        target,
        limits,
        audit_clear,
        approval,
    } = tool;
    Sha256::new()
        .chain_update(format!(
            "{}@{} {name:?} {title:?} {description:?}",
            contract.name, contract.version
        ))
        .chain_update(format!(
            "{annotations:?} {target:?} {limits:?} {audit_clear:?} {approval:?} {:?}",
            source.map(|at| &at.key)
        ))
        .chain_update(format!(
            "{:?} {}",
            contract.definitions,
            contract.has_resources()
        ))
        .chain_update(input_schema.as_json())
        .chain_update(
            output_schema
                .as_ref()
                .map(RawSchema::as_json)
                .unwrap_or_default(),
        )
        .finalize()
        .into()
}

/// Writes a time as RFC 3339, in UTC.
pub fn shown_time(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms).map_or_else(|_| at_ms.to_string(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use weir_contracts::{compile, form};

    use super::*;

    #[test]
    fn checks_of_tools_that_are_called_least_make_room() {
        let text = r#"{"tool":"pick","description":"Picks one.","fields":[{"name":"of","type":"number","required":true}]}"#;
        let form = form::read("pick.json", text).expect("a form");
        let contract = compile::compile(&form, &Default::default()).expect("a contract");
        let tool = &contract.tools[0];
        let kept = KeptChecks::with_room_for(10);
        for round in 0..2 {
            for number in 0..100_u8 {
                let checks = kept.get_or_build(tool, &[number; 32]);
                let arguments = checks.arguments().expect("its schema compiles");
                assert!(arguments.validate(r#"{"of":1}"#).is_ok(), "round {round}");
                assert!(
                    arguments.validate(r#"{"of":"one"}"#).is_err(),
                    "round {round}"
                );
                assert!(kept.0.len() <= 10, "{} are kept", kept.0.len());
            }
        }
    }
}
