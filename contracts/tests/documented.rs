//! The tools that `docs/contract-format.md` shows compile over the shape that it shows.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};
use weir_contracts::{CollectionShape, compile, form};

fn page() -> String {
    read("contract-format.md")
}

fn read(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::read_to_string(path.join(page)).expect("the page")
}

/// Returns the fenced blocks of a language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fences = page.split("\n```").skip(1).step_by(2);
    let of_language = fences.filter_map(|block| block.strip_prefix(language));
    of_language
        .filter_map(|block| block.strip_prefix('\n'))
        .collect()
}

/// The whole contract on the page compiles over tables such as it names.
#[test]
fn the_contract_on_the_page_compiles() {
    let page = page();
    let text = blocks(&page, "yaml")
        .into_iter()
        .find(|block| block.starts_with("contract: shop"))
        .expect("a contract");
    let table = |columns: &[(&str, &str)]| {
        let fields = columns
            .iter()
            .map(|(key, kind)| serde_json::json!({ "key": key, "type": kind }));
        let fields: Vec<_> = fields.collect();
        let shape = serde_json::json!({ "name": "table", "key": ["id"], "fields": fields });
        CollectionShape::read(&shape.to_string()).expect("a shape")
    };
    let shapes = BTreeMap::from([
        (
            "orders".to_owned(),
            table(&[("id", "integer"), ("customer_id", "integer")]),
        ),
        (
            "customers".to_owned(),
            table(&[("id", "integer"), ("name", "string")]),
        ),
    ]);
    let source = form::read("shop.yaml", text).unwrap_or_else(|problems| panic!("{problems:?}"));
    let contract = compile(&source, &shapes).unwrap_or_else(|problems| panic!("{problems:?}"));
    let output = contract.tools[0].output_schema.as_ref().expect("a result");
    assert!(output.value()["properties"]["customer"].is_object());
}

#[test]
fn each_tool_on_the_page_compiles() {
    let page = page();
    let shape = blocks(&page, "json")
        .into_iter()
        .find(|block| block.contains("\"capabilities\""))
        .expect("a shape");
    let shape = CollectionShape::read(shape).unwrap_or_else(|problem| panic!("{problem:?}"));
    let shapes = BTreeMap::from([("tickets".to_owned(), shape)]);
    let mut verbs = Vec::new();
    let tools = blocks(&page, "yaml")
        .into_iter()
        .filter(|block| block.starts_with("  - tool:"));
    for tool in tools {
        let text = format!(
            "contract: desk\ncollections:\n  tickets: {{ adapter: sheet, settings: {{}} }}\ntools:\n{tool}\n"
        );
        let source =
            form::read("desk.yaml", &text).unwrap_or_else(|problems| panic!("{tool}{problems:?}"));
        let contract =
            compile(&source, &shapes).unwrap_or_else(|problems| panic!("{tool}{problems:?}"));
        verbs.extend(
            contract.tools[0]
                .collection()
                .map(|target| target.verb.word()),
        );
    }
    assert_eq!(verbs, ["list", "count", "summarize"]);
}

/// The gateway's tests run these contracts over databases; here they compile over what the adapter describes.
#[test]
fn each_contract_with_parameters_compiles() {
    let page = read("adapters/sql.md");
    let mut names = Vec::new();
    for text in blocks(&page, "yaml") {
        if !text.starts_with("contract:") {
            continue;
        }
        let source =
            form::read("page.yaml", text).unwrap_or_else(|problems| panic!("{problems:?}"));
        let shapes = source.collections.iter().map(|collection| {
            let params = collection.settings["parameters"].as_object();
            let params = params.into_iter().flatten().map(|(name, param)| {
                let kind = param.get("type").unwrap_or(param);
                let items = param.get("of").map(|of| json!({ "key": "", "type": of }));
                let mut param = json!({ "name": name, "type": kind, "required": param["required"] == true });
                if let Some(items) = items {
                    param["items"] = items;
                }
                param
            });
            let params: Vec<Value> = params.collect();
            let fields = [("id", "integer"), ("city", "string"), ("total", "decimal"), ("placed", "date")]
                .map(|(key, kind)| json!({ "key": key, "type": kind, "nullable": true }));
            let shape = match collection.settings.get("statement") {
                Some(_) => json!({
                    "name": "statement", "fields": [], "capabilities": { "operations": [
                        { "name": "run", "effect": "destructive", "params": params, "returns": fields },
                    ] },
                }),
                None => json!({
                    "name": "query", "fields": fields, "capabilities": {
                        "read": true, "order": ["*"], "matches": { "*": ["equals", "at-least"] }, "params": params,
                    },
                }),
            };
            let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
            (collection.name.clone(), shape)
        });
        let contract = compile(&source, &shapes.collect());
        let contract = contract.unwrap_or_else(|problems| panic!("{text}{problems:?}"));
        names.push(contract.name.clone());
    }
    assert_eq!(names, ["orders", "payments", "cities"]);
}
