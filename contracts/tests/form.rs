//! Files that are no contracts, and the problems that are reported.

use std::{collections::BTreeMap, time::Instant};

use serde_json::json;
use weir_contracts::{FileProblem, compile, form};

/// Returns all problems of a file, as `weir compile` shows them.
fn problems(text: &str) -> Vec<FileProblem> {
    match form::read("f", text).and_then(|source| compile(&source, &BTreeMap::new())) {
        Ok(_) => panic!("taken: {text}"),
        Err(problems) => problems,
    }
}

#[test]
fn files_that_cannot_be_read() {
    let deep = format!("tool: x\nfields: {}{}", "[".repeat(80), "]".repeat(80));
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    let large = " ".repeat(17 << 20);
    for (text, place, word) in [
        ("", "", "empty"),
        (" \n\t", "", "empty"),
        ("\u{feff}", "", "empty"),
        ("# only a comment\n", "", ""),
        ("42", "", "neither"),
        ("just text", "", "neither"),
        ("[]", "", "empty"),
        ("{", "", "JSON"),
        ("{}x", "", "JSON"),
        (r#"{"tool":"a","tool":"b","fields":[]}"#, "/tool", "twice"),
        (
            r#"{"tool":"a","fields":[{"name":"n","type":"number","min":9007199254740993}]}"#,
            "/fields/0/min",
            "2^53",
        ),
        (
            r#"{"tool":"a","fields":[{"name":"n","type":"number","min":1e400}]}"#,
            "/fields/0/min",
            "large",
        ),
        ("tool: a\ntool: b\nfields: []\n", "/tool", "twice"),
        (
            "tool: a\nfields:\n  - { name: n, type: number, min: 9007199254740993 }\n",
            "/fields/0/min",
            "2^53",
        ),
        (
            "tool: a\nfields:\n  - { name: n, type: number, min: .inf }\n",
            "/fields/0/min",
            "",
        ),
        (
            "tool: a\nfields:\n  - { name: n, type: number, min: .nan }\n",
            "/fields/0/min",
            "",
        ),
        (
            "base: &b { x: 1 }\ntool: a\n<<: *b\nfields: []\n",
            "",
            "YAML",
        ),
        ("tool: !secret a\nfields: []\n", "", "YAML"),
        (
            "tool: a\nfields: []\n---\ntool: b\nfields: []\n",
            "",
            "YAML",
        ),
        ("tool: [a\n", "", "YAML"),
        ("tool: a\n\tfields: []\n", "", "YAML"),
        (deep.as_str(), "", "YAML"),
        (bomb, "", ""),
        (large.as_str(), "", "larger"),
    ] {
        let started = Instant::now();
        let found = problems(text);
        let first = &found[0];
        let shown = text.chars().take(80).collect::<String>();
        assert!(first.place.starts_with(place), "{shown}: {first:?}");
        assert!(first.message.contains(word), "{shown}: {first:?}");
        assert!(first.message.len() < 400, "{shown}: {first:?}");
        assert!(started.elapsed().as_secs() < 30, "{shown}");
    }
}

/// Nothing is put into a record, so that no default may say so.
/// A key that is there twice hides no other problem, and each comes with what to do about it.
#[test]
fn what_the_reader_finds_comes_with_everything_else() {
    let json = r#"{"tool":"a b","tool":"a b","fields":[
        {"name":"n","type":"number","min":9007199254740993,"type":"number"},
        {"name":"n","type":"txt"}],"other":1}"#;
    let yaml = "tool: a b\ntool: a b\nfields:\n  - { name: n, type: number, min: 9007199254740993, type: number }\n  - { name: n, type: txt }\nother: 1\n";
    for text in [json, yaml] {
        let found = problems(text);
        let places: Vec<&str> = found.iter().map(|problem| &*problem.place).collect();
        for place in [
            "/tool",
            "/fields/0/min",
            "/fields/0/type",
            "/other",
            "/fields/1/type",
        ] {
            assert!(places.contains(&place), "{place} is not in {places:?}");
        }
        assert!(
            found
                .iter()
                .any(|problem| problem.message.contains("'a b'")),
            "{found:?}"
        );
    }
    for text in ["", "{", "{} {}", "a: [", "a: !b c", json, yaml] {
        for problem in problems(text) {
            assert!(problem.hint.is_some(), "{text}: {problem:?}");
        }
    }
}

#[test]
fn a_member_of_a_record_has_no_default() {
    let text = "tool: t\nfields:\n  - { name: a, type: record, fields: [{ name: b, type: text, default: x }] }\n";
    let found = problems(text);
    assert_eq!(found[0].place, "/fields/0/fields/0/default", "{found:?}");
    assert!(
        found[0]
            .hint
            .as_deref()
            .is_some_and(|hint| hint.contains("help")),
        "{found:?}"
    );
}

#[test]
fn yaml_means_what_it_says() {
    let text = "tool: t\nfields:\n  - { name: d, type: dropdown, choices: [no, off, Y, 007, 1_000, 0x1G, 2024-01-01, ~x] }\n  - { name: 1, type: text }\n";
    let found = problems(text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].place, "/fields/1/name");
    let tagged = |tag: &str| {
        format!("tool: t\nfields:\n  - {{ name: d, type: dropdown, choices: [{tag} 5] }}\n")
    };
    let text = form::read("f", &tagged("!!str"));
    assert!(
        text.and_then(|source| compile(&source, &BTreeMap::new()))
            .is_ok()
    );
    let found = problems(&tagged("!own"));
    assert!(found[0].message.contains("unsupported tag"), "{found:?}");
}

#[test]
fn every_wrong_type_has_its_place() {
    let text = json!({
        "contract": 5, "title": null, "prefix": [], "instructions": {},
        "collections": { "c": { "adapter": 1, "settings": [], "columns": "a", "hide": [1, "a", "a"], "key": [], "write": "yes", "shape": { "x": 5 }, "timezone": "Mars Base" }, "d": 7 },
        "tools": [
            { "tool": 1, "verb": 2, "collection": [], "fields": {}, "order": "x", "returns": [null], "limits": { "rate": "10/week", "timeout_ms": 0, "rows_max": 1.5, "burst": 1 }, "say": 1, "text": "loud" },
            "tool",
            { "tool": "a", "verb": "list", "collection": "c", "fields": [
                5, {}, { "name": "a", "type": "text", "min": 1, "required": "yes", "nullable": 1, "help": 1, "min_length": -1, "max_length": 1.5 },
                { "name": "r", "type": "record", "fields": [{ "name": "x", "type": "text", "column": "y" }, { "name": "x", "type": "text" }] },
                { "name": "l", "type": "list", "of": { "name": "x", "type": "text", "required": true } },
                { "name": "m", "type": "multi-choice", "choices": [], "min_items": 5 },
            ] },
        ],
    });
    let found = problems(&text.to_string());
    let places: Vec<&str> = found.iter().map(|problem| problem.place.as_str()).collect();
    for place in [
        "/contract",
        "/title",
        "/prefix",
        "/instructions",
        "/collections/c/adapter",
        "/collections/c/settings",
        "/collections/c/columns",
        "/collections/c/hide/0",
        "/collections/c/hide/2",
        "/collections/c/key",
        "/collections/c/write",
        "/collections/c/shape/x",
        "/collections/c/timezone",
        "/collections/d",
        "/tools/0/tool",
        "/tools/0/verb",
        "/tools/0/collection",
        "/tools/0/fields",
        "/tools/0/order",
        "/tools/0/returns/0",
        "/tools/0/limits/rate",
        "/tools/0/limits/timeout_ms",
        "/tools/0/limits/rows_max",
        "/tools/0/limits/burst",
        "/tools/0/say",
        "/tools/0/text",
        "/tools/1",
        "/tools/2/fields/0",
        "/tools/2/fields/1",
        "/tools/2/fields/2/min",
        "/tools/2/fields/2/required",
        "/tools/2/fields/2/nullable",
        "/tools/2/fields/2/help",
        "/tools/2/fields/2/min_length",
        "/tools/2/fields/2/max_length",
        "/tools/2/fields/3/fields/0/column",
        "/tools/2/fields/3/fields/1/name",
        "/tools/2/fields/4/of/name",
        "/tools/2/fields/4/of/required",
        "/tools/2/fields/5/choices",
    ] {
        assert!(places.contains(&place), "{place} is not among {places:?}");
    }
}

#[test]
fn a_bare_form_says_where_the_rest_belongs() {
    for key in [
        "verb",
        "collection",
        "order",
        "returns",
        "limits",
        "operation",
        "resource",
    ] {
        let mut form = json!({ "tool": "t", "fields": [] });
        form[key] = "x".into();
        let found = problems(&form.to_string());
        assert_eq!(found[0].place, format!("/{key}"));
        assert!(
            found[0]
                .hint
                .as_ref()
                .is_some_and(|hint| hint.contains("contract")),
            "{found:?}"
        );
    }
    let found = problems(r#"{"tools":[]}"#);
    assert!(
        found[0]
            .hint
            .as_ref()
            .is_some_and(|hint| hint.contains("contract: NAME")),
        "{found:?}"
    );
    let found = problems(
        r#"[{"tool":"a","fields":[]},{"tool":"a","fields":[{"name":"x","type":"text","colum":"y"}]}]"#,
    );
    let places: Vec<&str> = found.iter().map(|problem| problem.place.as_str()).collect();
    assert_eq!(places, ["/1/fields/0/colum", "/1/tool"]);
}

#[test]
fn ten_thousand_tools_compile_in_a_moment() {
    let fields = json!([
        { "name": "a", "type": "text", "required": true }, { "name": "b", "type": "number", "min": 1, "max": 9, "default": 3 },
        { "name": "c", "type": "dropdown", "choices": ["x", "y"] },
    ]);
    let forms: Vec<_> = (0..10_000)
        .map(|index| json!({ "tool": format!("t{index}"), "fields": fields }))
        .collect();
    let text = json!(forms).to_string();
    let started = Instant::now();
    let source = form::read("f", &text).expect("forms");
    let contract = compile(&source, &BTreeMap::new()).expect("compiles");
    assert_eq!(contract.tools.len(), 10_000);
    // A debug build on a busy machine; released it is a fraction.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

/// One such key costs some models every tool of the request.
#[test]
fn a_field_that_models_interfaces_refuse_is_told_what_to_call_it() {
    let form = json!({ "tool": "t", "fields": [
        { "name": "Amount (EUR)", "type": "text" },
        { "name": "at", "type": "record", "fields": [{ "name": "Straße", "type": "text" }] },
        { "name": "lines", "type": "list", "of": { "type": "record", "fields": [{ "name": "n°", "type": "number" }] } },
        { "name": "a".repeat(65), "type": "text" },
        { "name": "a.B-c_1", "type": "text" },
    ] });
    let source = form::read("-", &form.to_string()).expect("a form");
    let problems = compile(&source, &BTreeMap::new()).expect_err("four names");
    let hints: Vec<(&str, &str)> = problems
        .iter()
        .map(|problem| {
            (
                problem.place.as_str(),
                problem.hint.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    let member = "as the member of the column must be called too";
    assert_eq!(
        hints,
        [
            (
                "/fields/0/name",
                "call it 'Amount_EUR', with `column: \"Amount (EUR)\"` for its column"
            ),
            (
                "/fields/1/fields/0/name",
                &format!("call it 'Strasse', {member}")
            ),
            (
                "/fields/2/of/fields/0/name",
                &format!("call it 'ndeg', {member}")
            ),
            (
                "/fields/3/name",
                &format!(
                    "call it '{0}', with `column: \"{0}a\"` for its column",
                    "a".repeat(64)
                )
            ),
        ]
    );
}

#[test]
fn the_default_of_a_page_is_within_its_bound() {
    let list = |limits: &str| {
        let text = format!(
            "contract: desk\ncollections:\n  tickets: {{ adapter: sql, settings: {{}} }}\ntools:\n  - tool: list_tickets\n    \
             verb: list\n    collection: tickets\n    limits: {limits}\n    fields: []\n"
        );
        let shape = r#"{ "name": "tickets", "key": ["id"], "fields": [{ "key": "id", "type": "integer" }] }"#;
        let shape = weir_contracts::CollectionShape::read(shape).expect("a shape");
        let source = weir_contracts::form::read("desk.yaml", &text).expect("a form");
        weir_contracts::compile(&source, &[("tickets".to_owned(), shape)].into())
    };
    let contract = list("{ rows_default: 7 }").expect("compiles");
    let limit = &contract.tools[0].input_schema.value()["properties"]["limit"];
    assert_eq!(
        (&limit["default"], &limit["maximum"]),
        (&7.into(), &100.into())
    );
    let problems = list("{ rows_default: 20, rows_max: 10 }").expect_err("more than a page has");
    assert_eq!(problems[0].place, "/tools/0/limits/rows_default");
    assert_eq!(problems[0].message, "one page has at most 10 records");
}
