//! Compiles the contract of a plugin from the tools that its code defines.
//!
//! A plugin with prompts or resources defines `{"tools": [...], "items": {"prompts", "resources", "resourceTemplates"}}`.
//!
//! An SDK only declares; everything is judged here, once for every language. Definitions are a JSON array of MCP Tool
//! objects. What an author may have meant differently is refused with its place, so that nothing is published that clients
//! read differently: unknown members, schemas that refer elsewhere, defaults that do not fit.

mod output;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};
use weir_schema::{
    keyword::{DYNAMIC_REF, REF},
    rewrite::{self, RewriteReport},
    walk,
};

use crate::{
    CompiledContract, ContractTool, ContractVersion, FileProblem, RawSchema,
    contract::{
        ApprovalRule, ArtifactFormat, CallLimits, CallTarget, ContractPrompt, ContractResource,
        OfferTarget, ResourceTemplate, ToolAnnotations, ToolProvider,
    },
    json::{self, push_pointer},
    name,
    offer::{self, DESCRIPTION_MAX, SchemaLimits, ServerLists, TITLE_MAX, check_schema},
    output::ResultChecker,
    secret,
    upstream::{self, UpstreamOptions},
    uri,
    validate::ArgumentValidator,
};

/// Tools of one plugin.
const TOOLS_MAX: usize = 512;
/// The members of a tool definition that may be there: those that are published, and those that are meant for other
/// gateways.
const MEMBERS: [&str; 10] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "cli",
    "icons",
    "execution",
    "_meta",
];
const HINTS: [&str; 4] = [
    "readOnlyHint",
    "destructiveHint",
    "idempotentHint",
    "openWorldHint",
];

/// The plugin that has the tools, and an operator's settings for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct PluginOptions<'p> {
    pub name: &'p str,
    /// The name of its contract.
    pub contract: &'p str,
    /// The text put in front of every tool's name.
    pub prefix: &'p str,
    /// The tools that are published, by the plugin's names. `None` means all.
    pub only: Option<&'p [String]>,
    pub rate: Option<(u32, u32)>,
    pub timeout_ms: Option<u64>,
    /// Arguments that the audit may keep in clear.
    pub clear: &'p [String],
    /// The tools whose calls a person approves, by the plugin's names.
    pub approved: &'p [String],
}

/// Compiles definitions. Problems name the plugin as their file and come all at once. The same input gives the same
/// bytes.
pub fn compile(
    plugin: &PluginOptions<'_>,
    definitions: &str,
) -> Result<CompiledContract, Vec<FileProblem>> {
    let mut reader = PluginCompiler {
        plugin,
        problems: Vec::new(),
    };
    if let Err(message) = name::check_contract(plugin.contract) {
        reader.refuse::<()>("", message);
    }
    let (tools, items) = reader.definitions(definitions).unwrap_or_default();
    reader.clear(&tools);
    if !reader.problems.is_empty() {
        return Err(reader.problems);
    }
    let has_items = items.is_some();
    let (prompts, resources, templates) = items.unwrap_or_default();
    Ok(CompiledContract {
        format: match has_items {
            _ if tools.iter().any(|tool| tool.approval.is_some()) => {
                ArtifactFormat::OFFER_APPROVALS
            }
            true => ArtifactFormat::UPSTREAMS,
            false => ArtifactFormat::OFFERS,
        },
        name: plugin.contract.to_owned(),
        title: None,
        description: None,
        instructions: None,
        version: ContractVersion::FIRST,
        definitions: Some(offer::digest(definitions)),
        maker: has_items.then(|| ToolProvider::Plugin(plugin.name.to_owned())),
        collections: Vec::new(),
        tools: tools.into_iter().map(Arc::new).collect(),
        prompts,
        resources,
        templates,
        live_resources: false,
    })
}

type Items = (
    Vec<Arc<ContractPrompt>>,
    Vec<Arc<ContractResource>>,
    Vec<Arc<ResourceTemplate>>,
);

struct PluginCompiler<'p> {
    plugin: &'p PluginOptions<'p>,
    problems: Vec<FileProblem>,
}

impl PluginCompiler<'_> {
    fn definitions(&mut self, definitions: &str) -> Option<(Vec<ContractTool>, Option<Items>)> {
        let (tools, items) = match json::read(definitions) {
            Ok(Value::Array(tools)) => (tools, None),
            Ok(Value::Object(mut parts)) => {
                match (parts.shift_remove("tools"), parts.shift_remove("items")) {
                    (Some(Value::Array(tools)), Some(items)) => (tools, self.items(&items)),
                    _ => {
                        return self
                            .refuse("", "the definitions have a list of `tools`, and `items`");
                    }
                }
            }
            Ok(_) => return self.refuse("", "the definitions are a JSON array of tools"),
            Err(error) => return self.refuse(&error.path, error.message),
        };
        if tools.is_empty() && items.is_some() {
            return Some((Vec::new(), items));
        }
        self.list(&tools).map(|tools| (tools, items))
    }

    /// `None` if there are no items. Each item has to be one that can be published.
    fn items(&mut self, items: &Value) -> Option<Items> {
        let plugin = self.plugin;
        let (lists, mut problems) = match ServerLists::read(plugin.name, &items.to_string()) {
            Ok(lists) => lists,
            Err(problem) => {
                self.problems.push(problem);
                return None;
            }
        };
        let composed = offer::compose(plugin.name, &lists);
        problems.extend(composed.problems);
        let source = UpstreamOptions {
            name: plugin.name,
            contract: plugin.contract,
            prefix: Some(""),
            ..UpstreamOptions::default()
        };
        let mut compiled = match upstream::items(&source, &composed.document.pinned()) {
            Ok(compiled) => compiled,
            Err(problem) => {
                self.problems.push(problem);
                return None;
            }
        };
        problems.append(&mut compiled.left_out);
        self.problems.append(&mut problems);
        for prompt in compiled.prompts.iter_mut().map(Arc::make_mut) {
            prompt.name = name::prefixed(plugin.prefix, &prompt.name);
            if let Err(message) = name::check_tool(&prompt.name) {
                self.refuse::<()>("/items/prompts", message);
            }
        }
        let uris = compiled.resources.iter().map(|resource| &resource.uri);
        for uri in uris.chain(
            compiled
                .templates
                .iter()
                .map(|template| &template.uri_template),
        ) {
            if uri::is_given(uri) {
                let shown = name::quoted(uri);
                let message = format!(
                    "the URI {shown} looks like one that this gateway gives to other resources"
                );
                let problem = FileProblem::new(plugin.name, "/items", message);
                self.problems
                    .push(problem.hint("take a scheme without `+`, such as `notes://`"));
            }
        }
        let any = !compiled.prompts.is_empty()
            || !compiled.resources.is_empty()
            || !compiled.templates.is_empty();
        any.then_some((compiled.prompts, compiled.resources, compiled.templates))
    }

    fn list(&mut self, list: &[Value]) -> Option<Vec<ContractTool>> {
        if list.is_empty() || list.len() > TOOLS_MAX {
            return self.refuse(
                "",
                format!(
                    "{} tools are defined; a plugin has 1 to {TOOLS_MAX}",
                    list.len()
                ),
            );
        }
        let offered: Vec<&str> = list
            .iter()
            .filter_map(|tool| tool.get("name")?.as_str())
            .collect();
        let only = self.plugin.only;
        for name in only.unwrap_or_default() {
            if !offered.contains(&name.as_str()) {
                self.unknown_selection(name, &offered);
            }
        }
        for name in self.plugin.approved {
            if !offered.contains(&name.as_str()) {
                self.unknown_selection(name, &offered);
            }
        }
        let mut names = BTreeSet::new();
        let mut tools = Vec::new();
        for (index, tool) in list.iter().enumerate() {
            let place = format!("/{index}");
            if let Some(name) = tool.get("name").and_then(Value::as_str)
                && !names.insert(name)
            {
                self.refuse::<()>(
                    &format!("{place}/name"),
                    format!("the tool {} is defined twice", name::quoted(name)),
                );
            }
            if let Some((offered, tool)) = self.tool(&place, tool)
                && only.is_none_or(|only| only.contains(&offered))
            {
                tools.push(tool);
            }
        }
        Some(tools)
    }

    /// Reads one tool and returns it with the plugin's own name for it.
    fn tool(&mut self, place: &str, tool: &Value) -> Option<(String, ContractTool)> {
        let Value::Object(members) = tool else {
            return self.refuse(place, "a tool is an object");
        };
        self.only_members(place, members, &MEMBERS);
        let offered = match members.get("name") {
            Some(Value::String(name)) => name.clone(),
            _ => return self.refuse(&format!("{place}/name"), "a tool has a name"),
        };
        let name = name::prefixed(self.plugin.prefix, &offered);
        if let Err(message) = name::check_tool(&name) {
            self.refuse::<()>(&format!("{place}/name"), message);
        }
        let hints_place = format!("{place}/annotations");
        let (annotations, second_title) =
            self.annotations(&hints_place, members.get("annotations"));
        let title = self
            .text(place, members, "title", TITLE_MAX)
            .or(second_title);
        let description = self
            .text(place, members, "description", DESCRIPTION_MAX)
            .unwrap_or_default();
        if members.get("cli").is_some_and(|cli| !cli.is_object()) {
            self.refuse::<()>(&format!("{place}/cli"), "`cli` is an object");
        }
        let composed = tool.pointer("/_meta/dev.weir~1composedRoot") == Some(&Value::Bool(true));
        let input_schema = self.input(
            &format!("{place}/inputSchema"),
            members.get("inputSchema"),
            composed,
        );
        let output = self.output(
            &format!("{place}/outputSchema"),
            members.get("outputSchema"),
        );
        let (output_schema, wrapped) =
            output.map_or((None, false), |(schema, wrapped)| (Some(schema), wrapped));
        let input_schema = input_schema?;
        let maker = ToolProvider::Plugin(self.plugin.name.to_owned());
        let listed = self.execution(&format!("{place}/execution"), members.get("execution"));
        let target = OfferTarget {
            wrapped,
            listed,
            ..OfferTarget::new(maker, &offered)
        };
        let clear = self
            .plugin
            .clear
            .iter()
            .filter(|field| input_schema["properties"].get(field.as_str()).is_some());
        let is_approved = self.plugin.approved.contains(&offered);
        let approval = is_approved.then_some(ApprovalRule::Required);
        if is_approved && annotations.read_only_hint == Some(true) {
            self.refuse::<()>(
                &hints_place,
                "the tool only reads, and a person approves writes: take it out of `approval`",
            );
        }
        let tool = ContractTool {
            name,
            title,
            description: ApprovalRule::describe(approval, description),
            audit_clear: clear.cloned().collect(),
            approval,
            input_schema: input_schema.into(),
            output_schema: output_schema.map(RawSchema::from),
            annotations,
            target: CallTarget::Offer(Arc::new(target)),
            limits: CallLimits {
                rate: self.plugin.rate,
                timeout_ms: self.plugin.timeout_ms,
            },
        };
        Some((offered, tool))
    }

    /// The root lists its properties and nothing more: what no tool takes must not be sent in vain.
    /// `composed`: the author wants alternatives there even though clients refuse them.
    fn input(&mut self, place: &str, schema: Option<&Value>, composed: bool) -> Option<Value> {
        let Some(schema) = schema else {
            return self.refuse(place, "a tool has an input schema");
        };
        let Value::Object(members) = self.schema(place, schema)? else {
            return self.refuse(place, "an input schema is an object");
        };
        if members.get("type") != Some(&json!("object")) {
            return self
                .refuse(place, "the root of an input schema has `\"type\": \"object\"`, since arguments have names");
        }
        let refused = [
            REF,
            DYNAMIC_REF,
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
        ];
        for keyword in refused.into_iter().filter(|_| !composed) {
            if members.contains_key(keyword) {
                let message = format!(
                    "`{keyword}` is at the root of an input schema, where many clients refuse it"
                );
                let problem =
                    FileProblem::new(self.plugin.name, format!("{place}/{keyword}"), message);
                self.problems.push(problem.hint(
                    "put the alternatives into a property, or say in the tool's `_meta` that `dev.weir/composedRoot` is true",
                ));
            }
        }
        let mut closed = members.clone();
        let says_what_else = [
            "additionalProperties",
            "unevaluatedProperties",
            "patternProperties",
        ];
        if !says_what_else
            .iter()
            .any(|keyword| closed.contains_key(*keyword))
        {
            closed.insert("additionalProperties".to_owned(), json!(false));
        }
        for (property, schema) in walk::members(members.get("properties")) {
            let mut at = format!("{place}/properties");
            push_pointer(&mut at, property);
            if let Err(message) = name::check_field(property) {
                self.refuse::<()>(&at, message);
            }
            if let Some(default) = schema.get("default")
                && !fits(default, property, &members)
            {
                self.refuse::<()>(
                    &format!("{at}/default"),
                    "the default does not fit the schema of its own argument",
                );
            }
        }
        let closed = Value::Object(closed);
        match ArgumentValidator::new(&closed) {
            Ok(_) => Some(closed),
            Err(message) => self.refuse(place, message),
        }
    }

    fn output(&mut self, place: &str, schema: Option<&Value>) -> Option<(Value, bool)> {
        let schema = self.schema(place, schema?)?;
        let published = output::published(&schema);
        match ResultChecker::new(&published.0) {
            Ok(_) => Some(published),
            Err(message) => self.refuse(place, message),
        }
    }

    /// Checks that a schema is within the bounds and refers to nothing outside itself.
    fn schema(&mut self, place: &str, schema: &Value) -> Option<Value> {
        match check_schema(&schema.to_string(), &SchemaLimits::default()) {
            Ok(()) => {
                let mut schema = schema.clone();
                rewrite::plain_properties(&mut schema, &mut RewriteReport::default());
                Some(schema)
            }
            Err(message) => self.refuse(place, message),
        }
    }

    /// Reads `execution`, which states whether calls may become tasks, and returns the part that is listed.
    fn execution(&mut self, place: &str, stated: Option<&Value>) -> Map<String, Value> {
        let mut listed = Map::new();
        let Some(stated) = stated else { return listed };
        let Value::Object(members) = stated else {
            self.refuse::<()>(place, "`execution` is an object");
            return listed;
        };
        self.only_members(place, members, &["taskSupport"]);
        match members.get("taskSupport").map(Value::as_str) {
            None | Some(Some("forbidden")) => {}
            Some(Some(support @ ("optional" | "required"))) => {
                listed.insert("execution".to_owned(), json!({ "taskSupport": support }));
            }
            Some(_) => {
                let place = format!("{place}/taskSupport");
                self.refuse::<()>(
                    &place,
                    "`taskSupport` is `optional`, `required` or `forbidden`",
                );
            }
        }
        listed
    }

    /// Reads the annotations. An absent hint has the protocol's default. A reading tool destroys nothing and may be
    /// repeated.
    fn annotations(
        &mut self,
        place: &str,
        stated: Option<&Value>,
    ) -> (ToolAnnotations, Option<String>) {
        let empty = Map::new();
        let stated = match stated {
            None => &empty,
            Some(Value::Object(stated)) => stated,
            Some(_) => self
                .refuse(place, "annotations are an object")
                .unwrap_or(&empty),
        };
        let known: Vec<&str> = HINTS.into_iter().chain(["title"]).collect();
        self.only_members(place, stated, &known);
        for hint in HINTS {
            if stated.get(hint).is_some_and(|value| !value.is_boolean()) {
                self.refuse::<()>(
                    &format!("{place}/{hint}"),
                    format!("`{hint}` is true or false"),
                );
            }
        }
        let hint = |name: &str| stated.get(name).and_then(Value::as_bool);
        let read_only = hint("readOnlyHint").unwrap_or(false);
        if read_only && hint("destructiveHint") == Some(true) {
            self.refuse::<()>(
                place,
                "a tool that only reads destroys nothing: `readOnlyHint` or `destructiveHint`",
            );
        }
        let annotations = ToolAnnotations::from_hints(
            read_only,
            !read_only && hint("destructiveHint").unwrap_or(true),
            read_only || hint("idempotentHint").unwrap_or(false),
            hint("openWorldHint").unwrap_or(true),
        );
        (annotations, self.text(place, stated, "title", TITLE_MAX))
    }

    fn text(
        &mut self,
        place: &str,
        members: &Map<String, Value>,
        name: &str,
        max: usize,
    ) -> Option<String> {
        match members.get(name)? {
            Value::String(text) if text.chars().count() <= max => Some(text.clone()),
            Value::String(_) => self.refuse(
                &format!("{place}/{name}"),
                format!("`{name}` has more than {max} characters"),
            ),
            _ => self.refuse(&format!("{place}/{name}"), format!("`{name}` is a text")),
        }
    }

    fn only_members(&mut self, place: &str, members: &Map<String, Value>, known: &[&str]) {
        for member in members
            .keys()
            .filter(|member| !known.contains(&member.as_str()))
        {
            let mut at = place.to_owned();
            push_pointer(&mut at, member);
            let problem = FileProblem::new(
                self.plugin.name,
                at,
                format!("there is no member {} here", name::quoted(member)),
            );
            self.problems
                .push(match name::nearest(member, known.iter().copied()) {
                    Some(meant) => problem.hint(format!("`{meant}` is one")),
                    None => problem,
                });
        }
    }

    /// Checks that each argument to be recorded in clear exists in some tool and is not named like a secret.
    fn clear(&mut self, tools: &[ContractTool]) {
        let properties = |tool: &'_ ContractTool| {
            tool.input_schema.value()["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default()
        };
        let known: BTreeSet<String> = tools
            .iter()
            .flat_map(properties)
            .map(|(name, _)| name)
            .collect();
        for field in self.plugin.clear {
            if secret::is_named_like_one(field) {
                let message = format!(
                    "the argument {} is named like a secret, which is never kept in clear",
                    name::quoted(field)
                );
                self.refuse::<()>("", message);
            } else if !known.contains(field) && !tools.is_empty() {
                let message = format!(
                    "no tool has the argument {}, which is to be kept in clear",
                    name::quoted(field)
                );
                let problem = FileProblem::new(self.plugin.name, "", message);
                self.problems.push(
                    match name::nearest(field, known.iter().map(String::as_str)) {
                        Some(meant) => problem.hint(format!("one has `{meant}`")),
                        None => problem,
                    },
                );
            }
        }
    }

    fn unknown_selection(&mut self, name: &str, offered: &[&str]) {
        let message = format!("the plugin defines no tool {}", name::quoted(name));
        let problem = FileProblem::new(self.plugin.name, "", message);
        self.problems
            .push(match name::nearest(name, offered.iter().copied()) {
                Some(meant) => problem.hint(format!("it defines `{meant}`")),
                None => problem.hint("see `weir plugin schema` for those it defines"),
            });
    }

    /// Records the problem and returns `None`.
    fn refuse<T>(&mut self, place: &str, message: impl Into<String>) -> Option<T> {
        self.problems
            .push(FileProblem::new(self.plugin.name, place, message));
        None
    }
}

/// Returns `true` if the tool accepts its own default. A null default means "absent".
fn fits(default: &Value, property: &str, root: &Map<String, Value>) -> bool {
    if default.is_null() {
        return true;
    }
    let of_root = root
        .iter()
        .filter(|(keyword, _)| ["$defs", "definitions", "properties"].contains(&keyword.as_str()));
    let alone: Map<String, Value> = of_root
        .map(|(keyword, value)| (keyword.clone(), value.clone()))
        .collect();
    let argument = json!({ property: default });
    match ArgumentValidator::new(&Value::Object(alone)) {
        Ok(validator) => validator.validate(&argument.to_string()).is_ok(),
        // A faulty schema is reported where it is compiled as a whole.
        Err(_) => true,
    }
}
