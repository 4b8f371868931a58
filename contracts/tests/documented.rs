//! The tools that `docs/contract-format.md` shows compile over the shape that it shows.

use std::{collections::BTreeMap, fs, path::Path};

use weir_contracts::{Shape, compile, form};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/contract-format.md");
    fs::read_to_string(path).expect("the page")
}

/// Returns the fenced blocks of a language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fences = page.split("\n```").skip(1).step_by(2);
    let of_language = fences.filter_map(|block| block.strip_prefix(language));
    of_language
        .filter_map(|block| block.strip_prefix('\n'))
        .collect()
}

#[test]
fn each_tool_on_the_page_compiles() {
    let page = page();
    let shape = blocks(&page, "json")
        .into_iter()
        .find(|block| block.contains("\"capabilities\""))
        .expect("a shape");
    let shape = Shape::read(shape).unwrap_or_else(|problem| panic!("{problem:?}"));
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
