//! Writes the entries of lists, which are what clients read of a contract.

use serde_json::{Map, Value};

use crate::{
    CompiledContract, ContractTool,
    contract::{ContractPrompt, ContractResource, ResourceTemplate},
    uri,
};

/// Returns the output of `weir compile`: everything that a client will see, and no binding: `{contract, version, tools:
/// [{name, title?, description, inputSchema, outputSchema?, annotations}]}`. A bare form has neither a contract (null) nor an
/// output schema. A contract of a plugin or an upstream server may also have `prompts`, `resources` and `resourceTemplates`.
pub fn document(contract: &CompiledContract) -> Value {
    let tools = contract.tools.iter().map(|tool| self::tool(tool));
    let mut document = Map::new();
    document.insert(
        "contract".into(),
        match contract.name.is_empty() {
            true => Value::Null,
            false => contract.name.clone().into(),
        },
    );
    document.insert("version".into(), contract.version.to_string().into());
    document.insert("tools".into(), Value::Array(tools.collect()));
    let name = &contract.name;
    let prompts = contract
        .prompts
        .iter()
        .map(|prompt| self::prompt(prompt))
        .collect();
    let resources = contract
        .resources
        .iter()
        .map(|resource| self::resource(contract.uri_scope(), resource))
        .collect();
    let records = contract
        .tools
        .iter()
        .filter_map(|tool| record_template(name, tool));
    let templates = contract
        .templates
        .iter()
        .map(|template| self::template(contract.uri_scope(), template));
    let templates = templates
        .chain(records.map(|(_, template)| template))
        .collect();
    for (member, list) in [
        ("prompts", prompts),
        ("resources", resources),
        ("resourceTemplates", templates),
    ] {
        if !Vec::is_empty(&list) {
            document.insert(member.into(), Value::Array(list));
        }
    }
    Value::Object(document)
}

/// Returns an entry of `tools/list`.
pub fn tool(tool: &ContractTool) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), tool.name.clone().into());
    if let Some(title) = &tool.title {
        entry.insert("title".into(), title.clone().into());
    }
    entry.insert("description".into(), tool.description.clone().into());
    entry.insert("inputSchema".into(), tool.input_schema.value());
    if let Some(schema) = &tool.output_schema {
        entry.insert("outputSchema".into(), schema.value());
    }
    entry.insert(
        "annotations".into(),
        serde_json::to_value(&tool.annotations).expect("four flags"),
    );
    entry.extend(
        tool.offer()
            .into_iter()
            .flat_map(|offer| offer.listed.clone()),
    );
    Value::Object(entry)
}

/// Returns an entry of `prompts/list`.
pub fn prompt(prompt: &ContractPrompt) -> Value {
    let mut entry = texts(
        &prompt.name,
        prompt.title.as_ref(),
        prompt.description.as_ref(),
    );
    if !prompt.arguments.is_empty() {
        let arguments = prompt.arguments.iter().map(|argument| {
            let mut entry = texts(
                &argument.name,
                argument.title.as_ref(),
                argument.description.as_ref(),
            );
            if argument.required {
                entry.insert("required".to_owned(), true.into());
            }
            Value::Object(entry)
        });
        entry.insert("arguments".to_owned(), arguments.collect());
    }
    entry.extend(prompt.listed.clone());
    Value::Object(entry)
}

/// An entry of `resources/list`. `scope`: [`CompiledContract::uri_scope`].
pub fn resource(scope: Option<&str>, resource: &ContractResource) -> Value {
    let mut entry = Map::from_iter([(
        "uri".to_owned(),
        Value::from(uri::published_uri(scope, &resource.uri)),
    )]);
    entry.extend(texts(
        &resource.name,
        resource.title.as_ref(),
        resource.description.as_ref(),
    ));
    entry.extend(resource.listed.clone());
    Value::Object(entry)
}

/// An entry of `resources/templates/list`. `scope`: [`CompiledContract::uri_scope`].
pub fn template(scope: Option<&str>, template: &ResourceTemplate) -> Value {
    let published = uri::published_template(scope, &template.uri_template);
    let mut entry = Map::from_iter([("uriTemplate".to_owned(), Value::from(published))]);
    entry.extend(texts(
        &template.name,
        template.title.as_ref(),
        template.description.as_ref(),
    ));
    entry.extend(template.listed.clone());
    Value::Object(entry)
}

/// Returns the template for the resources that are a lookup's records, and the name of the argument for its key.
pub fn record_template<'t>(contract: &str, tool: &'t ContractTool) -> Option<(&'t str, Value)> {
    let target = tool.collection().filter(|target| target.resource)?;
    let [key] = &target.binding.inputs[..] else {
        return None;
    };
    let template = format!("weir://{contract}/{}/{{key}}", target.binding.collection);
    let mut entry = Map::from_iter([("uriTemplate".to_owned(), Value::from(template))]);
    entry.extend(texts(
        &tool.name,
        tool.title.as_ref(),
        Some(&tool.description),
    ));
    entry.insert("mimeType".to_owned(), "application/json".into());
    Some((&key.field, entry.into()))
}

fn texts(name: &str, title: Option<&String>, description: Option<&String>) -> Map<String, Value> {
    let texts = [
        ("name", Some(name)),
        ("title", title.map(String::as_str)),
        ("description", description.map(String::as_str)),
    ];
    texts
        .into_iter()
        .filter_map(|(key, text)| Some((key.to_owned(), Value::from(text?))))
        .collect()
}
