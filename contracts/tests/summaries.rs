//! Counts and summaries: from the form to schemas, artifact and diff.

use serde_json::json;
use weir_contracts::{
    CollectionShape, CompiledContract,
    contract::ArtifactFormat,
    diff::{self, ChangeSeverity},
};

use crate::list_choices::compiled;

fn shape(summaries: &str) -> CollectionShape {
    CollectionShape::read(
        &json!({
            "name": "orders", "key": ["id"],
            "fields": [
                { "key": "id", "type": "integer" },
                { "key": "city", "type": "string", "nullable": true },
                { "key": "total", "type": "decimal", "nullable": true },
                { "key": "weight", "type": "number" },
                { "key": "placed", "type": "date" },
                { "key": "paid", "type": "boolean" },
                { "key": "tags", "type": "json" },
            ],
            "capabilities": { "read": true, "matches": { "*": ["equals", "at-least"] }, "order": ["*"], "summaries": summaries },
        })
        .to_string(),
    )
    .expect("a shape")
}

const LIST: &str = "  - { tool: list_orders, verb: list, collection: orders, fields: [{ name: city, type: text }] }\n";
const COUNT: &str = "  - { tool: count_orders, verb: count, collection: orders, fields: [{ name: city, type: text }] }\n";

fn problem(collection: &str, tools: &str, shape: CollectionShape) -> String {
    let problems = compiled(collection, tools, shape).expect_err("refused");
    let [problem] = &problems[..] else {
        panic!("{problems:?}");
    };
    format!("{}: {}", problem.place, problem.message)
}

#[test]
fn a_count_takes_the_filters_and_answers_a_number() {
    let contract = compiled("", COUNT, shape("count")).expect("it compiles");
    let tool = &contract.tools[0];
    let input = tool.input_schema.value();
    let inputs: Vec<&String> = input["properties"]
        .as_object()
        .expect("inputs")
        .keys()
        .collect();
    assert_eq!(inputs, ["city"]);
    let output = tool.output_schema.as_ref().expect("an output").value();
    assert_eq!(
        output["properties"],
        json!({ "count": { "type": "integer" } })
    );
    assert_eq!(output["anyOf"][0], json!({ "required": ["count"] }));
    assert_eq!(tool.annotations.read_only_hint, Some(true));

    let counting = compiled(", misfits: empty", COUNT, shape("count")).expect("it compiles");
    let output = counting.tools[0].output_schema.as_ref().expect("an output");
    assert_eq!(output.value()["properties"]["skipped"]["type"], "integer");
}

#[test]
fn files_without_counts_compile_to_the_bytes_of_before() {
    let able = compiled("", LIST, shape("all")).expect("it compiles");
    let unable = compiled("", LIST, shape("none")).expect("it compiles");
    assert_eq!(
        able.to_artifact().to_string(),
        unable.to_artifact().to_string()
    );
    assert!(!able.to_artifact().to_string().contains("summaries"));
    assert_eq!(able.format, ArtifactFormat::FIRST);
}

#[test]
fn a_count_has_a_format_of_its_own_and_reads_back() {
    let contract = compiled("", COUNT, shape("all")).expect("it compiles");
    let artifact = contract.to_artifact();
    assert_eq!(artifact["format"], 5);
    let recorded = &artifact["collections"][0]["shape"]["capabilities"]["summaries"];
    assert_eq!(recorded, "count", "no more than its tools need");
    assert_eq!(
        CompiledContract::from_artifact(&artifact).expect("it reads"),
        contract
    );
}

#[test]
fn what_no_source_or_verb_can_is_refused() {
    assert_eq!(
        problem("", COUNT, shape("none")),
        "/tools/0/verb: collection 'orders' has no count: the source cannot count records"
    );
    for (key, place, message) in [
        ("order: [id]", "order", "only a list has it"),
        ("returns: [id]", "returns", "a count answers no columns"),
        (
            "limits: { rows_max: 5 }",
            "limits/rows_max",
            "only a list or a summarize has it",
        ),
        (
            "say: '{total}'",
            "say",
            "there is no column 'total' in the answer",
        ),
    ] {
        let tool = COUNT.replace("verb:", &format!("{key}, verb:"));
        let expected = format!("/tools/0/{place}: {message}");
        assert_eq!(problem("", &tool, shape("all")), expected);
    }
    let worded = COUNT.replace("verb:", "say: 'There are {count} orders.', verb:");
    compiled("", &worded, shape("all")).expect("it compiles");
}

#[test]
fn a_count_beside_a_list_is_a_compatible_change() {
    let before = compiled("", LIST, shape("all")).expect("it compiles");
    let after = compiled("", &format!("{LIST}{COUNT}"), shape("all")).expect("it compiles");
    let report = diff::diff(&before, &after);
    assert_eq!(report.class, ChangeSeverity::Compatible, "{report:?}");
    let back = diff::diff(&after, &before);
    assert_eq!(back.class, ChangeSeverity::Breaking);
}

#[test]
fn a_source_that_can_no_longer_count_has_drifted() {
    let contract = compiled("", COUNT, shape("count")).expect("it compiles");
    let collection = &contract.collections[0];
    assert!(collection.accepts(&shape("all")).is_ok());
    let reasons = collection.accepts(&shape("none")).expect_err("refused");
    assert_eq!(reasons, ["records can no longer be counted or summarized"]);
}

const SUMMARIZE: &str = "  - tool: summarize_orders
    verb: summarize
    collection: orders
    group_by: [city, placed]
    measures: [count, sum(total), avg(weight), avg(id), distinct(city)]
    fields: [{ name: city, type: text }]
";

#[test]
fn a_summary_offers_the_groups_and_measures_of_its_form() {
    let contract = compiled("", SUMMARIZE, shape("all")).expect("it compiles");
    let tool = &contract.tools[0];
    let input = tool.input_schema.value();
    let inputs = &input["properties"];
    let names: Vec<&String> = inputs.as_object().expect("inputs").keys().collect();
    assert_eq!(
        names,
        [
            "city", "group_by", "measures", "having", "order_by", "limit"
        ]
    );
    assert_eq!(
        inputs["group_by"]["items"]["enum"],
        json!([
            "city",
            "day(placed)",
            "week(placed)",
            "month(placed)",
            "quarter(placed)",
            "year(placed)"
        ])
    );
    assert_eq!(
        inputs["measures"]["items"]["enum"],
        json!([
            "count",
            "sum(total)",
            "avg(weight)",
            "avg(id)",
            "distinct(city)"
        ])
    );
    assert_eq!(inputs["measures"]["maxItems"], 10);
    assert_eq!(input.get("required"), None);
    let output = tool.output_schema.as_ref().expect("an output").value();
    let records = &output["properties"]["records"]["items"]["properties"];
    for (name, expected) in [
        ("city", json!(["string", "null"])),
        ("month(placed)", json!("string")),
        ("count", json!("integer")),
        ("sum(total)", json!(["string", "null"])),
        ("avg(weight)", json!(["number", "null"])),
        ("avg(id)", json!(["number", "null"])),
        ("distinct(city)", json!("integer")),
    ] {
        assert_eq!(records[name]["type"], expected, "{name}");
    }
    assert_eq!(output["anyOf"][0]["required"], json!(["records", "more"]));
    let artifact = contract.to_artifact();
    assert_eq!(artifact["format"], 5);
    assert_eq!(
        CompiledContract::from_artifact(&artifact).expect("it reads"),
        contract
    );
}

#[test]
fn a_summary_of_what_has_no_meaning_is_refused() {
    assert_eq!(
        problem("", SUMMARIZE, shape("count")),
        "/tools/0/verb: collection 'orders' has no summarize: the source cannot summarize records"
    );
    for (before, after, expected) in [
        (
            "[city, placed]",
            "[tags]",
            "group_by/0: a json column makes no groups",
        ),
        (
            "[city, placed]",
            "[town]",
            "group_by/0: there is no column 'town'",
        ),
        (
            "sum(total)",
            "sum(city)",
            "measures/1: a string column has no sum",
        ),
        (
            "sum(total)",
            "median(total)",
            "measures/1: 'median(total)' is no measure",
        ),
        (
            "sum(total)",
            "count(total)",
            "measures/1: 'count(total)' is no measure",
        ),
        (
            "[count, sum(total)",
            "[count, count, sum(total)",
            "measures/1: 'count' occurs twice",
        ),
        (
            "[city, placed]",
            "[city, city]",
            "group_by/1: 'city' occurs twice",
        ),
        (
            "name: city",
            "name: measures, column: city",
            "fields/0/name: every summarize has its own 'measures'",
        ),
        (
            "fields:",
            "order: [city]\n    fields:",
            "order: only a list has it",
        ),
        (
            "fields:",
            "say: hello\n    fields:",
            "say: a summarize has no sentence of its own",
        ),
        (
            "fields:",
            "limits: { rows_max: 1001 }\n    fields:",
            "limits/rows_max: a summarize answers at most 1000 groups",
        ),
    ] {
        let form = SUMMARIZE.replace(before, after);
        assert_eq!(
            problem("", &form, shape("all")),
            format!("/tools/0/{expected}")
        );
    }
    let hidden = problem(", hide: [total]", SUMMARIZE, shape("all"));
    assert_eq!(
        hidden,
        "/tools/0/measures/1: column 'total' is not published"
    );
    // A summary whose measures are all wrong has some, and is not asked for another one.
    let alone = "  - { tool: sums, verb: summarize, collection: orders, measures: [sum(city)], fields: [] }\n";
    assert_eq!(
        problem("", alone, shape("all")),
        "/tools/0/measures/0: a string column has no sum"
    );
    let keys = COUNT.replace("verb:", "group_by: [city], verb:");
    assert_eq!(
        problem("", &keys, shape("all")),
        "/tools/0/group_by: only a summarize has it"
    );
}

#[test]
fn a_measure_less_is_a_breaking_change() {
    let before = compiled("", SUMMARIZE, shape("all")).expect("it compiles");
    let fewer = SUMMARIZE.replace(", avg(id)", "");
    let after = compiled("", &fewer, shape("all")).expect("it compiles");
    assert_eq!(diff::diff(&before, &after).class, ChangeSeverity::Breaking);
}
