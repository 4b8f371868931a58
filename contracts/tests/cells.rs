//! Rules for cells that are no values of their column: from the form to schemas, artifact and diff.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{CollectionShape, CompiledContract, FileProblem, compile, diff, form};

fn shape() -> CollectionShape {
    CollectionShape::read(
        &json!({
            "name": "orders", "key": ["id"],
            "fields": [
                { "key": "id", "type": "integer" },
                { "key": "amount", "type": "number" },
                { "key": "city", "type": "string" },
            ],
        })
        .to_string(),
    )
    .expect("a shape")
}

fn compiled(adapter: &str, rules: &str) -> Result<CompiledContract, Vec<FileProblem>> {
    let form = format!(
        "contract: orders\ncollections:\n  orders: {{ adapter: {adapter}, settings: {{}}{rules} }}\ntools:\n\
         - tool: list_orders\n    description: Lists orders.\n    verb: list\n    collection: orders\n    fields:\n      \
         - {{ name: city, type: text }}\n"
    );
    let form = form.replace("tools:\n- tool", "tools:\n  - tool");
    let source = form::read("orders.yaml", &form).unwrap_or_else(|problems| panic!("{problems:?}"));
    compile(&source, &BTreeMap::from([("orders".to_owned(), shape())]))
}

fn output(contract: &CompiledContract) -> Value {
    contract.tools[0]
        .output_schema
        .as_ref()
        .expect("an output schema")
        .value()
}

fn types(contract: &CompiledContract) -> Vec<Value> {
    let properties = &output(contract)["properties"]["records"]["items"]["properties"];
    ["id", "amount", "city"]
        .map(|column| properties[column]["type"].clone())
        .to_vec()
}

#[test]
fn what_is_published_follows_the_rules() {
    for (rules, expected, counts) in [
        ("", json!(["integer", "number", "string"]), false),
        (
            ", misfits: refuse",
            json!(["integer", "number", "string"]),
            false,
        ),
        (
            ", misfits: empty",
            json!(["integer", ["number", "null"], "string"]),
            true,
        ),
        (
            ", misfits: text",
            json!(["integer", "string", "string"]),
            false,
        ),
        (
            ", null_words: [n/a]",
            json!(["integer", ["number", "null"], ["string", "null"]]),
            false,
        ),
    ] {
        let contract = compiled("sheet", rules).expect("it compiles");
        assert_eq!(json!(types(&contract)), expected, "{rules}");
        let skipped = &output(&contract)["properties"]["skipped"]["type"];
        assert_eq!(skipped == "integer", counts, "{rules}");
        let artifact = contract.to_artifact();
        let has_rules =
            rules.len() > 20 || counts || rules.contains("text") || rules.contains("n/a");
        let has_rules = has_rules && !rules.contains("refuse");
        assert_eq!(
            artifact.get("format"),
            has_rules.then(|| json!(4)).as_ref(),
            "{rules}"
        );
        let again = CompiledContract::from_artifact(&artifact).expect("an artifact");
        assert_eq!(again, contract);
        // The source as it was described still serves it.
        assert_eq!(contract.collections[0].accepts(&shape()), Ok(()), "{rules}");
    }
    // Said or not, what is refused as before is the same contract, byte for byte.
    let [plain, refused] =
        ["", ", misfits: refuse"].map(|rules| compiled("sheet", rules).expect("it compiles"));
    assert_eq!(
        plain.to_artifact().to_string(),
        refused.to_artifact().to_string()
    );
}

#[test]
fn only_a_source_of_texts_has_rules_for_them() {
    for (adapter, rules, place, part) in [
        (
            "sql",
            ", misfits: empty",
            "/collections/orders/misfits",
            "drop misfits",
        ),
        (
            "rest",
            ", null_words: [x]",
            "/collections/orders/null_words",
            "drop null_words",
        ),
    ] {
        let problems = compiled(adapter, rules).expect_err("no cells of text");
        let shown = format!("{problems:?}");
        assert!(shown.contains(place) && shown.contains(part), "{shown}");
    }
    for (rules, place) in [
        (", misfits: ignore", "/collections/orders/misfits"),
        (", null_words: [\"\"]", "/collections/orders/null_words/0"),
        (", null_words: [\" x\"]", "/collections/orders/null_words/0"),
        (", null_words: x", "/collections/orders/null_words"),
    ] {
        let problems = compiled("sheet", rules).expect_err("no rule");
        let shown = format!("{problems:?}");
        assert!(shown.contains(place), "{rules}: {shown}");
    }
}

/// A change of the rules waits at the gate: answers have other types, and other records.
#[test]
fn a_change_of_the_rules_is_a_change() {
    let [refuse, empty, words] = [
        "",
        ", misfits: empty",
        ", misfits: empty, null_words: [n/a]",
    ]
    .map(|rules| compiled("sheet", rules).expect("it compiles"));
    for (old, new, rules) in [
        (
            &refuse,
            &empty,
            &["misfits-changed", "output-type-widened"][..],
        ),
        (&empty, &words, &["misfits-changed", "output-type-widened"]),
        (&empty, &refuse, &["misfits-changed"]),
    ] {
        let found = diff::diff(old, new);
        let ids: Vec<String> = found
            .items
            .iter()
            .map(|item| item.rule.to_string())
            .collect();
        for rule in rules {
            assert!(ids.iter().any(|id| id == rule), "{rule}: {ids:?}");
        }
    }
}

/// The words are a set whose case does not matter, and UTC is the zone of a collection that names none.
#[test]
fn another_spelling_of_the_rules_is_no_change() {
    for (old, new) in [
        (", null_words: [n/a, \"-\"]", ", null_words: [\"-\", N/A]"),
        ("", ", timezone: UTC"),
    ] {
        let [before, after] =
            [old, new].map(|rules| compiled("sheet", rules).expect("it compiles"));
        let found = diff::diff(&before, &after);
        assert!(found.items.is_empty(), "{old} to {new}: {:?}", found.items);
    }
    let [before, after] =
        ["", ", timezone: Asia/Tokyo"].map(|rules| compiled("sheet", rules).expect("it compiles"));
    let found = diff::diff(&before, &after);
    assert_eq!(found.items.len(), 1, "{:?}", found.items);
}
