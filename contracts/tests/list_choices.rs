//! The choices of an agent for a list: from the form to schemas, artifact and diff.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, FileProblem, compile,
    contract::ArtifactFormat,
    diff::{self, ChangeSeverity, ContractDiff},
    form,
};

fn shape(order: &[&str], summaries: &str) -> CollectionShape {
    CollectionShape::read(
        &json!({
            "name": "orders", "key": ["id"],
            "fields": [
                { "key": "id", "type": "integer" },
                { "key": "city", "type": "string", "nullable": true },
                { "key": "total", "type": "decimal", "nullable": true },
                { "key": "placed", "type": "date" },
                { "key": "tags", "type": "json" },
                { "key": "-city", "type": "string" },
            ],
            "capabilities": { "read": true, "matches": { "*": ["equals"] }, "order": order, "summaries": summaries },
        })
        .to_string(),
    )
    .expect("a shape")
}

const PLAIN: &str = "tool: list_orders, verb: list, collection: orders, order: [-placed], returns: [id, city], \
    fields: [{ name: city, type: text }]";

fn with(keys: &str) -> String {
    format!("  - {{ {keys}{PLAIN} }}\n")
}

pub(crate) fn compiled(
    collection: &str,
    tools: &str,
    shape: CollectionShape,
) -> Result<CompiledContract, Vec<FileProblem>> {
    let form = format!(
        "contract: orders\ncollections:\n  orders: {{ adapter: sheet, settings: {{}}{collection} }}\ntools:\n{tools}"
    );
    let source = form::read("orders.yaml", &form).unwrap_or_else(|problems| panic!("{problems:?}"));
    compile(&source, &BTreeMap::from([("orders".to_owned(), shape)]))
}

fn able(keys: &str) -> CompiledContract {
    compiled("", &with(keys), shape(&["*"], "all"))
        .unwrap_or_else(|problems| panic!("{problems:?}"))
}

fn problem(collection: &str, tools: &str, shape: CollectionShape) -> (String, Option<String>) {
    let problems = compiled(collection, tools, shape).expect_err("refused");
    let [problem] = &problems[..] else {
        panic!("{problems:?}");
    };
    let answer = format!("{}: {}", problem.place, problem.message);
    (answer, problem.hint.clone())
}

fn schemas(contract: &CompiledContract) -> (Value, Value) {
    let tool = &contract.tools[0];
    let output = tool.output_schema.as_ref().expect("an output").value();
    (tool.input_schema.value(), output)
}

#[test]
fn files_without_choices_compile_to_the_bytes_of_before() {
    let contract = able("");
    assert_eq!(contract.format, ArtifactFormat::FIRST);
    let artifact = contract.to_artifact().to_string();
    for word in ["order_by", "with_total", "\"list\":"] {
        assert!(!artifact.contains(word), "{word}: {artifact}");
    }
    assert_eq!(
        able("with_total: false, ").to_artifact(),
        contract.to_artifact()
    );
    // The names stay free where a list does not opt in.
    let fields = "{ name: order_by, type: text, column: city }, { name: columns, type: number, column: id }, \
        { name: with_total, type: number, column: total }";
    let tool = with("").replace("{ name: city, type: text }", fields);
    compiled("", &tool, shape(&["*"], "all")).expect("it compiles");
}

#[test]
fn an_agent_chooses_among_what_the_form_offers() {
    let contract = able("order_by: [total, city], columns: [total, placed], with_total: true, ");
    let (input, output) = schemas(&contract);
    let names: Vec<&String> = input["properties"]
        .as_object()
        .expect("inputs")
        .keys()
        .collect();
    assert_eq!(
        names,
        [
            "city",
            "order_by",
            "columns",
            "with_total",
            "limit",
            "cursor"
        ]
    );
    assert_eq!(input.get("required"), None);
    let inputs = &input["properties"];
    assert_eq!(
        inputs["order_by"]["items"]["enum"],
        json!(["total", "-total", "city", "-city"])
    );
    assert_eq!(
        inputs["columns"]["items"]["enum"],
        json!(["id", "city", "total", "placed"])
    );
    assert_eq!(inputs["columns"]["default"], json!(["id", "city"]));
    let records = &output["properties"]["records"]["items"];
    assert_eq!(records["required"], json!(["id"]));
    let columns: Vec<&String> = records["properties"]
        .as_object()
        .expect("columns")
        .keys()
        .collect();
    assert_eq!(columns, ["id", "city", "total", "placed"]);
    assert_eq!(
        output["properties"]["total"]["type"],
        json!(["integer", "null"])
    );
    assert_eq!(output["anyOf"][0]["required"], json!(["records", "next"]));

    let artifact = contract.to_artifact();
    assert_eq!(artifact["format"], 6);
    let recorded = &artifact["collections"][0]["shape"]["capabilities"]["summaries"];
    assert_eq!(recorded, "count", "the total needs it");
    assert_eq!(
        CompiledContract::from_artifact(&artifact).expect("it reads"),
        contract
    );
}

#[test]
fn each_choice_stands_alone() {
    let (input, output) = schemas(&able("order_by: [total], "));
    assert_eq!(input["properties"].get("columns"), None);
    let records = &output["properties"]["records"]["items"];
    assert_eq!(records["required"], json!(["id", "city"]), "as without it");
    let (input, output) = schemas(&able("with_total: true, "));
    assert_eq!(input["properties"].get("order_by"), None);
    assert_eq!(
        output["properties"]["records"]["items"]["required"],
        json!(["id", "city"])
    );
    // All columns are answered where none are chosen: no default says so again.
    let every = with("columns: [id, total], ").replace("returns: [id, city], ", "");
    let contract = compiled("", &every, shape(&["*"], "none")).expect("it compiles");
    assert_eq!(
        schemas(&contract).0["properties"]["columns"].get("default"),
        None
    );
}

#[test]
fn what_no_source_can_is_refused_with_its_place() {
    for (order, keys, expected, hint) in [
        (
            &["id"][..],
            "order_by: [city], ",
            "order_by/0: the source cannot order by 'city'",
            "it can order by id",
        ),
        (
            &[][..],
            "order_by: [city], ",
            "order_by/0: the source cannot order by 'city'",
            "the source has its own order; drop `order_by`",
        ),
        (
            &["*"][..],
            "order_by: [tags], ",
            "order_by/0: a json column has no order",
            "order by columns of texts, numbers and times",
        ),
        (
            &["*"][..],
            "order_by: [town], ",
            "order_by/0: there is no column 'town'",
            "columns: id, city, total, placed, tags, -city",
        ),
        (
            &["*"][..],
            "order_by: [-total], ",
            "order_by/0: a column is offered both ways",
            "write `total`: an agent chooses the direction",
        ),
        (
            &["*"][..],
            "order_by: [-city], ",
            "order_by/0: '-city' reads as a direction",
            "drop it",
        ),
        (
            &["*"][..],
            "order_by: [id, id], ",
            "order_by/1: 'id' occurs twice",
            "drop one of the two",
        ),
        (
            &["*"][..],
            "order_by: [], ",
            "order_by: names no column",
            "drop it, or name columns",
        ),
        (
            &["*"][..],
            "columns: [], ",
            "columns: names no column",
            "drop it, or name columns",
        ),
        (
            &["*"][..],
            "columns: [town], ",
            "columns/0: there is no column 'town'",
            "columns: id, city, total, placed, tags, -city",
        ),
        (
            &["*"][..],
            "with_total: true, ",
            "with_total: collection 'orders' has no total: the source cannot count records",
            "drop it, or serve the data by an adapter that can",
        ),
        (
            &["*"][..],
            "with_total: please, ",
            "with_total: must be true or false, not text",
            "write `with_total: true`, or leave it out",
        ),
    ] {
        // The order of the form itself is not in question here.
        let tool = with(keys).replace("order: [-placed], ", "");
        let form = format!(
            "contract: orders\ncollections:\n  orders: {{ adapter: rest, settings: {{}} }}\ntools:\n{tool}"
        );
        let problems = match form::read("orders.yaml", &form) {
            Err(problems) => problems,
            Ok(source) => {
                let shapes = BTreeMap::from([("orders".to_owned(), shape(order, "none"))]);
                compile(&source, &shapes).expect_err("refused")
            }
        };
        let [problem] = &problems[..] else {
            panic!("{keys}: {problems:?}");
        };
        assert_eq!(
            format!("{}: {}", problem.place, problem.message),
            format!("/tools/0/{expected}")
        );
        assert_eq!(problem.hint.as_deref(), Some(hint), "{keys}");
    }
}

#[test]
fn a_choice_tells_nothing_of_columns_that_are_not_published() {
    for (keys, expected) in [
        (
            "order_by: [total], ",
            "/tools/0/order_by/0: column 'total' is not published",
        ),
        (
            "columns: [total], ",
            "/tools/0/columns/0: column 'total' is not published",
        ),
    ] {
        let (problem, _) = problem(", hide: [total]", &with(keys), shape(&["*"], "all"));
        assert_eq!(problem, expected);
    }
}

#[test]
fn the_names_belong_to_the_list_that_opts_in_and_to_lists_alone() {
    for (keys, name) in [
        ("order_by: [id], ", "order_by"),
        ("columns: [id], ", "columns"),
        ("with_total: true, ", "with_total"),
    ] {
        let tool = with(keys).replace("name: city", &format!("name: {name}, column: city"));
        let (answer, _) = problem("", &tool, shape(&["*"], "all"));
        assert_eq!(
            answer,
            format!("/tools/0/fields/0/name: this list has its own '{name}'")
        );
        let tool = with(keys)
            .replace("verb: list", "verb: count")
            .replace("order: [-placed], returns: [id, city], ", "");
        let (answer, _) = problem("", &tool, shape(&["*"], "all"));
        assert_eq!(answer, format!("/tools/0/{name}: only a list has it"));
    }
}

#[test]
fn the_gate_sees_each_change_of_a_choice() {
    let rules = |report: &ContractDiff| -> Vec<String> {
        report.items.iter().map(|item| item.rule.clone()).collect()
    };
    let plain = able("");
    for (keys, class) in [
        ("order_by: [total], ", ChangeSeverity::Compatible),
        ("with_total: true, ", ChangeSeverity::Compatible),
        // A column that was always there is no longer promised.
        ("columns: [total], ", ChangeSeverity::Breaking),
    ] {
        let report = diff::diff(&plain, &able(keys));
        assert_eq!(report.class, class, "{keys} {report:?}");
        let back = diff::diff(&able(keys), &plain);
        assert_eq!(back.class, ChangeSeverity::Breaking, "{keys} {back:?}");
    }
    let report = diff::diff(
        &able("order_by: [total], "),
        &able("order_by: [total, city], "),
    );
    assert_eq!(report.class, ChangeSeverity::Compatible, "{report:?}");
    let report = diff::diff(
        &able("order_by: [total, city], "),
        &able("order_by: [total], "),
    );
    assert_eq!(report.class, ChangeSeverity::Breaking, "{report:?}");
    // What is answered without a choice shows in no output schema.
    let fewer = with("columns: [city, total], ").replace("returns: [id, city]", "returns: [id]");
    let fewer = compiled("", &fewer, shape(&["*"], "all")).expect("it compiles");
    let report = diff::diff(&able("columns: [city, total], "), &fewer);
    assert_eq!(report.class, ChangeSeverity::Review, "{report:?}");
    assert_eq!(rules(&report), ["input-default-changed"]);
}

#[test]
fn a_source_that_can_no_longer_count_has_drifted() {
    let contract = able("with_total: true, ");
    let reasons = contract.collections[0].accepts(&shape(&["*"], "none"));
    assert_eq!(
        reasons.expect_err("refused"),
        ["records can no longer be counted or summarized"]
    );
}

#[test]
fn a_key_that_is_answered_on_request_alone_is_not_required() {
    let list = "  - { tool: list_orders, verb: list, collection: orders, returns: [city], columns: [id], fields: [] }\n";
    let contract =
        compiled("", list, shape(&["*"], "all")).unwrap_or_else(|problems| panic!("{problems:?}"));
    let output = contract.tools[0].output_schema.as_ref();
    let output = output.expect("an output").value();
    let record = &output["properties"]["records"]["items"];
    assert_eq!(record["properties"]["id"]["type"], "integer", "{output}");
    assert_eq!(record["required"], Value::Null, "{output}");
}
