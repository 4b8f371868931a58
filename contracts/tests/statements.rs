//! Queries and statements of the operator's own: from the form to schemas, artifact and diff.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, FileProblem, compile,
    contract::ArtifactFormat,
    diff::{self, ChangeSeverity},
    form,
};

/// The shape that the sql adapter describes for a query with these parameters.
fn shape(params: Value) -> CollectionShape {
    let shape = json!({
        "name": "query", "key": ["id"],
        "fields": [{ "key": "id", "type": "integer" }, { "key": "total", "type": "decimal", "nullable": true }],
        "capabilities": {
            "read": true, "matches": { "*": ["equals", "at-least"] }, "order": ["*"], "summaries": "all", "params": params,
        },
    });
    CollectionShape::read(&shape.to_string()).expect("a shape")
}

fn compiled(
    settings: &str,
    params: Value,
    tools: &str,
) -> Result<CompiledContract, Vec<FileProblem>> {
    let form = format!(
        "contract: orders\ncollections:\n  orders: {{ adapter: sql, key: [id], settings: {{ {settings} }} }}\ntools:\n{tools}"
    );
    let source = form::read("orders.yaml", &form).unwrap_or_else(|problems| panic!("{problems:?}"));
    compile(
        &source,
        &BTreeMap::from([("orders".to_owned(), shape(params))]),
    )
}

fn list(fields: &str) -> String {
    format!("  - {{ tool: list_orders, verb: list, collection: orders, fields: [{fields}] }}\n")
}

const QUERY: &str = "connection: shop, query: \"SELECT id, total FROM orders WHERE total > :least AND city IN (:cities)\", \
                     parameters: { least: { type: decimal, required: true }, cities: { type: list, of: string } }";

fn params() -> Value {
    json!([
        { "name": "least", "type": "decimal", "required": true },
        { "name": "cities", "type": "list", "items": { "key": "", "type": "string" } },
    ])
}

#[test]
fn fields_go_to_parameters_and_have_their_types() {
    let fields = "{ name: least, type: number, required: true, param: least }, \
                  { name: in_city, type: multi-choice, choices: [Wien, Graz], param: cities }, { name: total, type: number, match: at-least }";
    let contract = compiled(QUERY, params(), &list(fields)).expect("it compiles");
    let inputs = contract.tools[0].input_schema.value();
    assert_eq!(inputs["properties"]["least"]["type"], "number");
    assert_eq!(inputs["properties"]["in_city"]["type"], "array");
    assert_eq!(inputs["required"], json!(["least"]));
    for (fields, place, message) in [
        (
            "{ name: cities, type: multi-choice, choices: [Wien], param: cities }",
            "/tools/0/fields",
            "the parameter 'least' is required",
        ),
        (
            "{ name: least, type: checkbox, required: true, param: least }",
            "/tools/0/fields/0/type",
            "a checkbox cannot be a decimal",
        ),
        (
            "{ name: least, type: number, required: true, param: least }, { name: c, type: list, of: { type: number }, param: cities }",
            "/tools/0/fields/1/of/type",
            "",
        ),
        (
            "{ name: least, type: number, required: true, param: leest }",
            "/tools/0/fields/0/param",
            "there is no parameter 'leest'",
        ),
    ] {
        let problems = compiled(QUERY, params(), &list(fields)).expect_err(fields);
        let found = problems.iter().find(|problem| problem.place == place);
        let found = found.unwrap_or_else(|| panic!("{place}: {problems:?}"));
        assert!(
            found.message.contains(message) || message.starts_with("a checkbox"),
            "{found:?}"
        );
    }
}

#[test]
fn counts_and_summaries_take_the_parameters_too() {
    let field = "{ name: least, type: number, required: true, param: least }";
    let tools = format!(
        "  - {{ tool: count_orders, verb: count, collection: orders, fields: [{field}] }}\n\
         \x20 - {{ tool: summarize_orders, verb: summarize, collection: orders, measures: [count, sum(total)], fields: [{field}] }}\n"
    );
    compiled(QUERY, params(), &tools).expect("it compiles");
}

/// An older program does not know the settings, and skips the contract.
#[test]
fn only_a_contract_with_parameters_has_the_format() {
    let with = compiled(
        QUERY,
        params(),
        &list("{ name: least, type: number, required: true, param: least }"),
    );
    assert_eq!(
        with.expect("it compiles").format,
        ArtifactFormat::STATEMENTS
    );
    let without = compiled(
        "connection: shop, query: \"SELECT id, total FROM orders\"",
        json!([]),
        &list("{ name: total, type: number }"),
    );
    let without = without.expect("it compiles");
    assert_eq!(without.format, ArtifactFormat::FIRST);
    assert_eq!(without.to_artifact().get("format"), None);
}

fn written(statement: &str, rows_max: u32) -> CompiledContract {
    let form = format!(
        "contract: orders\ncollections:\n  pay: {{ adapter: sql, write: true, settings: {{ connection: shop, statement: {statement}, rows_max: {rows_max} }} }}\n\
         tools:\n  - {{ tool: pay, verb: call, operation: run, collection: pay, fields: [] }}\n"
    );
    let source = form::read("orders.yaml", &form).unwrap_or_else(|problems| panic!("{problems:?}"));
    let shape = json!({
        "name": "statement", "fields": [],
        "capabilities": { "operations": [
            { "name": "run", "effect": "destructive", "returns": [{ "key": "rows", "type": "integer" }] },
        ] },
    });
    let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
    let shapes = BTreeMap::from([("pay".to_owned(), shape)]);
    compile(&source, &shapes).unwrap_or_else(|problems| panic!("{problems:?}"))
}

#[test]
fn a_statement_is_destructive_and_another_one_is_approved_by_an_operator() {
    let before = written("UPDATE orders SET paid = true", 1);
    assert_eq!(before.format, ArtifactFormat::STATEMENTS);
    let annotations = serde_json::to_value(&before.tools[0].annotations).expect("JSON");
    assert_eq!(annotations["destructiveHint"], true);
    assert_eq!(annotations["readOnlyHint"], false);
    for after in [
        written("UPDATE orders SET paid = false", 1),
        written("UPDATE orders SET paid = true", 2),
    ] {
        let found = diff::diff(&before, &after);
        assert_eq!(found.class, ChangeSeverity::Breaking, "{found:?}");
        let rules: Vec<_> = found.items.iter().map(|item| item.rule.as_str()).collect();
        assert!(rules.contains(&"statement-changed"), "{rules:?}");
    }
    let same = diff::diff(&before, &written("UPDATE orders SET paid = true", 1));
    assert_eq!(same.class, ChangeSeverity::Identical);
}
