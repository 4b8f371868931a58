//! The tools that questions are asked about: those of ten real servers and of the samples, as they are or as those of many
//! services.

use std::{fs, path::Path};

use serde_json::{Value, json};
use weir_contracts::search::IndexedTool;

pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) input: Value,
}

impl Listed {
    /// Returns the text that is searched.
    pub(crate) fn text(&self) -> String {
        let (name, title, description) = (&*self.name, self.title.as_deref(), &*self.description);
        IndexedTool {
            name,
            title,
            description,
            contract: "",
            input: &self.input,
        }
        .text()
    }
}

/// Returns `count` tools: the same tools again and again, each time of another service, which its name and its description
/// say. `service` names it.
pub(crate) fn of_many_services(count: usize) -> Vec<Listed> {
    let tools = tools();
    let listed = |number: usize| {
        let (tool, service) = (&tools[number % tools.len()], service(number / tools.len()));
        Listed {
            name: format!("{service}_{}", tool.name),
            title: tool.title.clone(),
            description: format!("{} Of {service}.", tool.description),
            input: tool.input.clone(),
        }
    };
    (0..count).map(listed).collect()
}

pub(crate) fn service(number: usize) -> String {
    format!("service{number}")
}

/// Returns the tools of ten real servers, and of the samples.
pub(crate) fn tools() -> Vec<Listed> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tools = Vec::new();
    let mut files: Vec<_> = fs::read_dir(here.join("../tests/fixtures/extracted"))
        .expect("a folder")
        .collect();
    files.sort_by_key(|file| file.as_ref().expect("a file").path());
    for file in files {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a text");
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let items = document["items"]
            .as_array()
            .expect("items")
            .iter()
            .filter(|item| item["type"] == "tool");
        tools.extend(items.map(|item| Listed {
            name: item["name"].as_str().expect("a name").to_owned(),
            title: item["title"].as_str().map(str::to_owned),
            description: item["description"].as_str().unwrap_or_default().to_owned(),
            input: item["detail"]["input"]["json"].clone(),
        }));
    }
    for sample in ["airports", "desk", "weather"] {
        let file = format!("{sample}.yaml");
        let text = fs::read_to_string(here.join("samples").join(&file)).expect("a sample");
        let document: Value =
            serde_json::from_value(serde_saphyr::from_str(&text).expect("YAML")).expect("JSON");
        for tool in document["tools"].as_array().expect("tools") {
            let fields = tool["fields"].as_array().into_iter().flatten();
            let properties = fields.map(|field| {
                let name = field["name"].as_str().expect("a name").to_owned();
                (name, json!({ "description": field["help"] }))
            });
            tools.push(Listed {
                name: tool["tool"].as_str().expect("a name").to_owned(),
                title: tool["title"].as_str().map(str::to_owned),
                description: tool["description"]
                    .as_str()
                    .expect("a description")
                    .to_owned(),
                input: json!({ "properties": properties.collect::<serde_json::Map<_, _>>() }),
            });
        }
    }
    tools
}
