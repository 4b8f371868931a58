//! Choices that stand for several texts of the source: from the form to the question, the artifact and the diff.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, FileProblem, compile,
    contract::FieldDestination,
    diff::{ChangeSeverity, diff},
    form,
};

fn compiled(field: &str, matches: &[&str]) -> Result<CompiledContract, Vec<FileProblem>> {
    let shape = json!({
        "name": "orders", "key": ["id"],
        "fields": [{ "key": "id", "type": "integer" }, { "key": "status", "type": "string" }],
        "capabilities": { "read": true, "matches": { "*": matches }, "order": ["*"] },
    });
    let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
    let text = format!(
        "contract: orders\ncollections:\n  orders: {{ adapter: sheet, settings: {{}} }}\ntools:\n  \
         - {{ tool: list_orders, verb: list, collection: orders, fields: [{field}] }}\n"
    );
    let source = form::read("orders.yaml", &text)?;
    compile(&source, &BTreeMap::from([("orders".to_owned(), shape)]))
}

const PAID: &str =
    "{ name: status, type: dropdown, choices: [{ value: paid, also: [Paid, \"paid \"] }, open] }";
const SEVERAL: &str = "{ name: status, type: multi-choice, match: one-of, choices: [{ value: paid, also: [Paid, \"paid \"] }, open] }";

#[test]
fn a_chosen_value_finds_all_texts_that_it_stands_for() {
    for (field, sent, asked) in [
        (PAID, json!("paid"), json!(["paid", "Paid", "paid "])),
        (PAID, json!("open"), json!(["open"])),
        (
            SEVERAL,
            json!(["open", "paid"]),
            json!(["open", "paid", "Paid", "paid "]),
        ),
    ] {
        let contract = compiled(field, &["equals", "one-of"]).expect("it compiles");
        let tool = &contract.tools[0];
        let status = tool.input_schema.value()["properties"]["status"].clone();
        let choices = status.get("enum").unwrap_or(&status["items"]["enum"]);
        assert_eq!(
            choices,
            &json!(["paid", "open"]),
            "agents choose by one text"
        );
        let binding = &tool.collection().expect("a collection").binding;
        let FieldDestination::Condition { comparison, .. } = &binding.inputs[0].to else {
            panic!("{:?}", binding.inputs[0].to);
        };
        assert_eq!(comparison, "one-of");
        let mut arguments = serde_json::Map::from_iter([("status".to_owned(), sent)]);
        binding.inject_defaults(&mut arguments);
        assert_eq!(arguments["status"], asked);
        let artifact = contract.to_artifact();
        assert_eq!(artifact["format"], 12, "an older program skips it alone");
        let again = CompiledContract::from_artifact(&artifact).expect("an artifact");
        assert_eq!(again, contract);
    }
    // Without them nothing is new.
    let plain = PAID.replace("{ value: paid, also: [Paid, \"paid \"] }", "paid");
    let contract = compiled(&plain, &["equals"]).expect("it compiles");
    assert_eq!(contract.to_artifact().get("format"), None);
    let mut arguments = serde_json::Map::from_iter([("status".to_owned(), json!("paid"))]);
    let target = contract.tools[0].collection().expect("a collection");
    target.binding.inject_defaults(&mut arguments);
    assert_eq!(arguments["status"], "paid");
}

#[test]
fn choices_stand_for_several_texts_in_conditions_alone() {
    let nullable = PAID.replace("name: status", "name: status, nullable: true");
    for (field, matches, place, hint) in [
        (
            PAID.to_owned(),
            &["equals"][..],
            "/tools/0/fields/0/choices/0/also",
            "drop `also`",
        ),
        (
            nullable,
            &["equals", "one-of", "is-empty"][..],
            "/tools/0/fields/0/nullable",
            "drop `nullable`; a checkbox with `match: is-empty` finds empty values",
        ),
        (
            PAID.replace("name: status", "name: status, match: contains"),
            &["contains"][..],
            "/tools/0/fields/0/choices/0/also",
            "drop it",
        ),
        (
            PAID.replace("open", "Paid"),
            &["equals", "one-of"][..],
            "/tools/0/fields/0/choices/1",
            "drop one of the two",
        ),
    ] {
        let problems = compiled(&field, matches).expect_err(&field);
        let found = problems.iter().find(|problem| problem.place == place);
        let found = found.unwrap_or_else(|| panic!("{field}: {problems:?}"));
        assert_eq!(found.hint.as_deref(), Some(hint), "{field}");
    }
}

/// Both are asked of the source as one of several, and are two questions of the author.
#[test]
fn a_choice_of_several_texts_goes_beside_a_list_of_them() {
    let several = SEVERAL.replace("name: status", "name: statuses, column: status");
    let both = format!("{PAID}, {several}");
    let contract = compiled(&both, &["equals", "one-of"]).expect("it compiles");
    let target = contract.tools[0].collection().expect("a collection");
    assert_eq!(target.binding.inputs.len(), 2);
    assert_eq!(target.binding.inputs[0].to, target.binding.inputs[1].to);
}

#[test]
fn the_texts_of_a_field_are_bounded_together() {
    let choice = |number: usize| {
        let also: Vec<String> = (0..600).map(|at| format!("t{number}_{at}")).collect();
        format!("{{ value: c{number}, also: [{}] }}", also.join(", "))
    };
    let field = format!(
        "{{ name: status, type: dropdown, choices: [{}, {}] }}",
        choice(0),
        choice(1)
    );
    let problems = compiled(&field, &["equals", "one-of"]).expect_err("too many");
    assert_eq!(problems[0].place, "/tools/0/fields/0/choices/1/also");
    assert!(
        problems[0].message.contains("at most 1000 texts together"),
        "{problems:?}"
    );
}

#[test]
fn other_texts_are_another_condition() {
    let more = PAID.replace("Paid,", "Paid, PAID,");
    let [before, after] = [PAID, more.as_str()]
        .map(|field| compiled(field, &["equals", "one-of"]).expect("it compiles"));
    let found = diff(&before, &after);
    assert_ne!(found.class, ChangeSeverity::Identical);
    let rules: Vec<Value> = found.items.iter().map(|item| json!(item.rule)).collect();
    assert_eq!(json!(rules), json!(["binding-match-changed"]), "{found:?}");
}
