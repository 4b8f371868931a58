//! The vocabulary of policies: the tools and contracts that are served, and the Cedar schema that is made from them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    str::FromStr as _,
    sync::Arc,
};

use cedar_policy::{EntityId, EntityTypeName, EntityUid, Schema, SchemaError};
use weir_contracts::{CompiledContract, ContractTool};

use crate::argument::{ArgumentMember, ArgumentType, ToolArguments};

/// The namespace of all types and actions.
pub const NAMESPACE: &str = "Weir";
/// The group of the actions of all tools.
pub const CALL: &str = "call";
/// The action of seeing a tool, or the prompts and resources of a contract.
pub const LIST: &str = "list";

/// The types that contracts have nothing to do with.
const TYPES: &str = "\
  entity Tenant, Group, Contract;

  // The holder of a key.
  entity Agent in [Tenant, Group] {
    name: String,
    tenant: String,
  };

  // The holder of an issuer's token.
  entity User in [Tenant, Group] {
    name: String,
    tenant: String,
    issuer: String,
    subject: String,
    client?: String,
  };

  entity Tool in [Contract] {
    read_only: Bool,
    destructive: Bool,
    idempotent: Bool,
    open_world: Bool,
  };

  // Each tool has an action of this group.
  action \"call\";

  // To see a tool, or the prompts and resources of a contract.
  action \"list\" appliesTo {
    principal: [Agent, User],
    resource: [Tool, Contract],
    context: {},
  };
";

/// A tool as policies see it.
#[derive(Clone, Debug)]
pub struct PolicyTool {
    pub contract: Arc<str>,
    pub hints: ToolHints,
    pub arguments: Arc<ToolArguments>,
}

/// The effects of a tool by its annotations; a missing annotation has MCP's default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolHints {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

/// The tools and contracts that policies can name.
#[derive(Clone, Debug, Default)]
pub struct PolicyVocabulary {
    pub tools: BTreeMap<Arc<str>, PolicyTool>,
    pub contracts: BTreeMap<Arc<str>, String>,
}

impl ToolHints {
    fn new(tool: &ContractTool) -> Self {
        let hints = &tool.annotations;
        let read_only = hints.read_only_hint.unwrap_or(false);
        Self {
            read_only,
            destructive: !read_only && hints.destructive_hint.unwrap_or(true),
            idempotent: read_only || hints.idempotent_hint.unwrap_or(false),
            open_world: hints.open_world_hint.unwrap_or(true),
        }
    }
}

impl PolicyVocabulary {
    /// Reads the contracts. Of two tools with one name the first counts.
    pub fn new<'c>(contracts: impl IntoIterator<Item = &'c CompiledContract>) -> Self {
        let mut vocabulary = Self::default();
        for contract in contracts {
            vocabulary.add(contract);
        }
        vocabulary
    }

    fn add(&mut self, contract: &CompiledContract) {
        let name: Arc<str> = contract.name.as_str().into();
        for tool in &contract.tools {
            let known = PolicyTool {
                contract: name.clone(),
                hints: ToolHints::new(tool),
                arguments: Arc::new(ToolArguments::new(tool)),
            };
            self.tools.entry(tool.name.as_str().into()).or_insert(known);
        }
        self.contracts.insert(name, contract.version.to_string());
    }

    /// Returns the vocabulary after a contract took the place of the one of its name.
    pub fn with(&self, contract: &CompiledContract) -> Self {
        let mut changed = self.clone();
        changed
            .tools
            .retain(|_, tool| *tool.contract != *contract.name);
        changed.add(contract);
        changed
    }

    /// Returns the vocabulary of only these tools.
    pub(crate) fn only(&self, tools: &BTreeSet<&str>) -> Self {
        let known = tools.iter().filter_map(|name| {
            let (name, tool) = self.tools.get_key_value(*name)?;
            Some((name.clone(), tool.clone()))
        });
        Self {
            tools: known.collect(),
            contracts: self.contracts.clone(),
        }
    }

    /// Writes the Cedar schema, with a comment where policies cannot read an argument.
    pub fn schema_text(&self) -> String {
        let mut text = format!("namespace {NAMESPACE} {{\n{TYPES}");
        for (name, tool) in &self.tools {
            let version = self
                .contracts
                .get(&tool.contract)
                .map_or("", String::as_str);
            let _ = writeln!(text, "\n  // {}@{version}", comment(&tool.contract));
            for note in &tool.arguments.notes {
                let _ = writeln!(text, "  // {}: {}", comment(&note.path), note.why);
            }
            let _ = writeln!(
                text,
                "  action {} in [{}] appliesTo {{\n    principal: [Agent, User],\n    resource: [Tool],\n    context: {{\n      args: ",
                quoted(&action_name(name)),
                quoted(CALL)
            );
            text.pop();
            write_record(&tool.arguments.members, 3, &mut text);
            text.push_str(",\n    },\n  };\n");
        }
        text.push_str("}\n");
        text
    }

    /// Returns the Cedar schema.
    pub fn schema(&self) -> Result<Schema, Box<SchemaError>> {
        let fragment = cedar_policy::SchemaFragment::from_cedarschema_str(&self.schema_text());
        match fragment {
            Ok((fragment, _)) => Schema::from_schema_fragments([fragment]).map_err(Box::new),
            Err(error) => panic!("the schema that is made of contracts can be read: {error}"),
        }
    }
}

/// Returns the name of the action of calling a tool.
pub(crate) fn action_name(tool: &str) -> String {
    match tool {
        CALL | LIST => format!("tool:{tool}"),
        tool => tool.to_owned(),
    }
}

/// Returns the name of one of our entities.
pub(crate) fn uid(kind: &str, name: &str) -> EntityUid {
    let kind = EntityTypeName::from_str(&format!("{NAMESPACE}::{kind}")).expect("a type's name");
    EntityUid::from_type_name_and_id(kind, EntityId::new(name))
}

/// Returns the name of an entity, if it has this type.
pub(crate) fn named<'u>(uid: &'u EntityUid, kind: &str) -> Option<&'u str> {
    let own = uid.type_name();
    (own.basename() == kind && own.namespace() == NAMESPACE).then(|| uid.id().unescaped())
}

fn write_record(members: &BTreeMap<String, ArgumentMember>, depth: usize, out: &mut String) {
    if members.is_empty() {
        out.push_str("{}");
        return;
    }
    let indent = "  ".repeat(depth + 1);
    out.push_str("{\n");
    for (name, member) in members {
        let mark = if member.required { "" } else { "?" };
        let _ = write!(out, "{indent}{}{mark}: ", quoted(name));
        write_type(&member.kind, depth + 1, out);
        out.push_str(",\n");
    }
    out.push_str(&"  ".repeat(depth));
    out.push('}');
}

fn write_type(kind: &ArgumentType, depth: usize, out: &mut String) {
    match kind {
        ArgumentType::Long => out.push_str("Long"),
        ArgumentType::Decimal => out.push_str("decimal"),
        ArgumentType::Text => out.push_str("String"),
        ArgumentType::Flag => out.push_str("Bool"),
        ArgumentType::Set(kind) => {
            out.push_str("Set<");
            write_type(kind, depth, out);
            out.push('>');
        }
        ArgumentType::Record(members) => write_record(members, depth, out),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.escape_debug())
}

/// Keeps a text that others wrote on its line.
fn comment(text: &str) -> String {
    text.replace(char::is_control, " ")
}
