//! Forms and shapes in, documents or problems out: every case is a folder of `tests/cases`. Each problem has a place and a hint.
//!
//! `UPDATE_GOLDENS=1` writes what came out; read the diff.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, FileProblem, compile, compiled_document, form,
    upstream::UpstreamOverlay,
};

#[test]
fn every_case() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(&folder).expect("the folder of cases") {
        let case = entry.expect("an entry").path();
        seen += 1;
        let (name, text) = match compile_case(&case) {
            Ok(contract) => ("expected.json", pretty(&golden(&contract))),
            Err(problems) => {
                let is_bare =
                    |problem: &&FileProblem| problem.place.is_empty() || problem.hint.is_none();
                let bare = problems.iter().filter(is_bare);
                wrong.extend(bare.map(|problem| format!("no place or no hint: {problem}")));
                ("problems.json", pretty(&json!(problems)))
            }
        };
        let golden = case.join(name);
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&golden, &text).expect("writes the golden");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if expected != text {
            wrong.push(format!("{}:\n{text}", golden.display()));
        }
    }
    assert!(seen >= 5, "the cases are there");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A case is a folder of `tests/refused`: a form, shapes, and the place and a part of the message of each refusal.
#[test]
fn every_refusal_has_a_place_and_a_hint() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the folder of cases") {
        let case = entry.expect("an entry").path();
        seen += 1;
        let problems = compile_case(&case).expect_err("a case is refused");
        for problem in &problems {
            let has_both = !problem.place.is_empty() && problem.hint.is_some();
            assert!(has_both, "no place or no hint: {problem}");
        }
        let expected = fs::read_to_string(case.join("problems.txt")).expect("the refusals");
        for line in expected.lines() {
            let (place, part) = line.split_once(" | ").expect(line);
            let is_found =
                |problem: &FileProblem| problem.place == place && problem.message.contains(part);
            assert!(
                problems.iter().any(is_found),
                "{}: {line} is not among\n{}",
                case.display(),
                pretty(&json!(problems))
            );
        }
    }
    assert_eq!(seen, 3);
}

#[test]
fn the_records_of_one_lookup_by_one_argument_can_be_resources() {
    let shape = json!({
        "name": "tickets",
        "fields": [{ "key": "id", "type": "string" }, { "key": "subject", "type": "string" }],
        "key": ["id"],
    });
    let shapes = BTreeMap::from([(
        "tickets".to_owned(),
        serde_json::from_value(shape).expect("a shape"),
    )]);
    let compiled = |tools: Value| {
        let collections = json!({ "tickets": { "adapter": "sql", "settings": {} } });
        let source = json!({ "contract": "desk", "collections": collections, "tools": tools });
        form::read("desk", &source.to_string())
            .and_then(|source| compile::compile(&source, &shapes))
    };
    let tool = |name: &str, verb: &str, fields: &[&str]| {
        let fields: Vec<Value> = fields
            .iter()
            .map(|field| json!({ "name": field, "type": "text", "required": true }))
            .collect();
        json!({ "tool": name, "verb": verb, "collection": "tickets", "fields": fields, "resource": true })
    };
    let contract = compiled(json!([tool("get", "lookup", &["id"])])).expect("compiles");
    let listed = compiled_document(&contract);
    assert_eq!(
        listed["resourceTemplates"][0]["uriTemplate"], "weir://desk/tickets/{key}",
        "{listed}"
    );
    assert_eq!(
        CompiledContract::from_artifact(&contract.to_artifact()).as_ref(),
        Ok(&contract)
    );
    for (tools, place) in [
        (json!([tool("all", "list", &["id"])]), "/tools/0/resource"),
        (
            json!([tool("get", "lookup", &["id", "subject"])]),
            "/tools/0/resource",
        ),
        (
            json!([
                tool("get", "lookup", &["id"]),
                tool("find", "lookup", &["subject"])
            ]),
            "/tools/1/resource",
        ),
    ] {
        let problems: Vec<FileProblem> = compiled(tools).expect_err("refused");
        assert!(
            problems.iter().any(|problem| problem.place == place),
            "{problems:?}"
        );
    }
}

/// The output has the seed's own bytes, key order included.
#[test]
fn the_seed() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/create_ticket");
    let contract = compile_case(&case).expect("compiles");
    let expected = r#"{
  "type": "object",
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "properties": {
    "subject": {
      "type": "string",
      "description": "Short summary of the issue, one line."
    },
    "priority": {
      "type": "integer",
      "minimum": 1,
      "maximum": 5,
      "description": "1 is lowest, 5 is highest."
    },
    "status": {
      "type": "string",
      "enum": [
        "open",
        "pending",
        "closed"
      ]
    },
    "notify": {
      "type": "boolean",
      "description": "Email the requester when the ticket is created."
    }
  },
  "required": [
    "subject",
    "priority",
    "status"
  ],
  "additionalProperties": false
}
"#;
    assert_eq!(pretty(&contract.tools[0].input_schema.value()), expected);
}

/// The contracts of the demo have no faults, except that their shapes are not here.
#[test]
fn the_samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut seen = 0;
    for entry in fs::read_dir(&folder).expect("the samples") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            seen += 1;
            let source = form::read("-", &fs::read_to_string(&path).expect("a contract"))
                .expect("a contract");
            let problems = compile(&source, &BTreeMap::new()).expect_err("no shapes");
            let others: Vec<&FileProblem> = problems
                .iter()
                .filter(|problem| !problem.message.starts_with("shape of "))
                .collect();
            assert!(others.is_empty(), "{}: {others:?}", path.display());
        }
    }
    assert!(seen > 0);
}

pub(crate) fn compile_case(case: &Path) -> Result<CompiledContract, Vec<FileProblem>> {
    let mut shapes = BTreeMap::new();
    let mut source = None;
    for entry in fs::read_dir(case).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if let Some(collection) = name
            .strip_prefix("shape.")
            .and_then(|rest| rest.strip_suffix(".json"))
        {
            let text = fs::read_to_string(&path).expect("a shape");
            shapes.insert(
                collection.to_owned(),
                CollectionShape::read(&text).expect("a good shape"),
            );
        } else if name.starts_with("form.") {
            source = Some((name, fs::read_to_string(&path).expect("a form")));
        }
    }
    let (name, text) = source.expect("a form");
    let first = form::read(&name, &text).and_then(|source| compile(&source, &shapes));
    let second = form::read(&name, &text).and_then(|source| compile(&source, &shapes));
    assert_eq!(
        format!("{first:?}"),
        format!("{second:?}"),
        "same input, same bytes"
    );
    first
}

/// Returns the document a client sees, and the bindings it does not.
fn golden(contract: &CompiledContract) -> Value {
    let bindings: Vec<Value> = contract
        .tools
        .iter()
        .map(|tool| {
            let lines = tool
                .collection()
                .map(|target| &target.binding)
                .into_iter()
                .flat_map(|binding| {
                    let inputs = binding.inputs.iter().map(|input| {
                        format!(
                            "{} → {:?} {:?} default {:?}",
                            input.field, input.to, input.form, input.default
                        )
                    });
                    let head = format!(
                        "{} order {:?} columns {:?} limit {}/{} operation {:?}",
                        binding.collection,
                        binding.order,
                        binding.columns,
                        binding.limit_default,
                        binding.limit_max,
                        binding.operation
                    );
                    let bound = binding.bound.iter();
                    let bound = bound.map(|field| {
                        format!("{} → {:?} from {:?}", field.name, field.to, field.source)
                    });
                    let clear = (!tool.audit_clear.is_empty())
                        .then(|| format!("in clear {:?}", tool.audit_clear));
                    std::iter::once(head)
                        .chain(inputs)
                        .chain(bound)
                        .chain(clear)
                });
            json!({ tool.name.as_str(): lines.collect::<Vec<_>>() })
        })
        .collect();
    json!({ "document": compiled_document(contract), "bindings": bindings })
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("a value");
    text.push('\n');
    text
}

/// A pattern that our engine accepts and JSON Schema does not would cost clients the tool, in any place.
#[test]
fn patterns_are_of_json_schema() {
    let problems = |pattern: &str| {
        let text = json!({ "name": "text", "type": "text", "pattern": pattern });
        let list =
            json!({ "name": "list", "type": "list", "of": { "type": "text", "pattern": pattern } });
        let inside =
            json!({ "type": "object", "patternProperties": { pattern: { "pattern": pattern } } });
        let json = json!({ "name": "json", "type": "json", "schema": { "anyOf": [inside, true] } });
        let form = json!({ "tool": "t", "fields": [text, list, json] });
        let compiled = form::read("t", &form.to_string())
            .and_then(|source| compile(&source, &BTreeMap::new()));
        compiled.map_or_else(
            |problems| problems.into_iter().map(|problem| problem.place).collect(),
            |_| Vec::new(),
        )
    };
    for pattern in [
        "^[Aa]b$",
        "(?:a|b)+",
        "^\\p{Lu}\\d{2}$",
        "^\\{a\\}$",
        "^\\(?b[(?x]",
        "(?<year>\\d{4})",
        "^<br>$",
        "^\\\\<$",
    ] {
        assert_eq!(problems(pattern), Vec::<String>::new(), "{pattern}");
    }
    for pattern in [
        "(?i)^ab",
        "(?i:ab)",
        "(?P<x>a)",
        "\\Aab",
        "ab\\z",
        "(?x) a b",
        "^\\{a}$",
        "^\\<br\\>$",
    ] {
        let places = [
            "/fields/0/pattern",
            "/fields/1/of/pattern",
            "/fields/2/schema/anyOf/0/patternProperties",
            &format!("/fields/2/schema/anyOf/0/patternProperties/{pattern}/pattern"),
        ];
        assert_eq!(problems(pattern), places, "{pattern}");
    }
}

/// With a zone that no adapter can read each call would fail, and the agent would read that its arguments are wrong.
#[test]
fn the_time_zone_of_a_collection_is_one_that_adapters_read() {
    let compiled = |collection: Value, zone_of_source: Value| {
        let mut shape = json!({ "name": "a", "fields": [{ "key": "at", "type": "datetime" }] });
        if !zone_of_source.is_null() {
            shape["timezone"] = zone_of_source;
        }
        let shape: CollectionShape = serde_json::from_value(shape).expect("a shape");
        let tool = json!({ "tool": "list_a", "verb": "list", "collection": "a", "fields": [] });
        let source =
            json!({ "contract": "c", "collections": { "a": collection }, "tools": [tool] });
        form::read("c", &source.to_string())
            .and_then(|source| compile(&source, &BTreeMap::from([("a".to_owned(), shape)])))
    };
    let with_zone = |zone: &str| json!({ "adapter": "sql", "settings": {}, "timezone": zone });
    for zone in [
        "Europe/Berlin",
        "America/Argentina/Buenos_Aires",
        "Etc/GMT+5",
        "UTC",
        "+02:00",
        "-14:59",
    ] {
        assert!(compiled(with_zone(zone), Value::Null).is_ok(), "{zone}");
    }
    for (zone, hint) in [
        ("Mars/X", "an IANA name such as Europe/Berlin"),
        ("Europe/Berlinn", "did you mean 'Europe/Berlin'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("US/Easter", "did you mean 'US/Eastern'?"),
        ("Z", "an IANA name such as Europe/Berlin"),
        ("+24:00", "an offset such as +02:00"),
        ("+2", "an offset such as +02:00"),
    ] {
        let problems = compiled(with_zone(zone), Value::Null).expect_err(zone);
        let [problem] = &problems[..] else {
            panic!("{zone}: {problems:?}");
        };
        assert_eq!(problem.place, "/collections/a/timezone");
        let given = problem.hint.as_deref().unwrap_or_default();
        assert!(given.contains(hint), "{zone}: {given}");
    }
    let plain = json!({ "adapter": "sql", "settings": {} });
    let problems = compiled(plain.clone(), "Mars/X".into()).expect_err("the source's own zone");
    assert_eq!(problems[0].place, "/collections/a", "{problems:?}");
    assert!(problems[0].message.contains("'Mars/X'"), "{problems:?}");
    assert!(compiled(plain, "Asia/Tokyo".into()).is_ok());
    assert!(compiled(with_zone("Asia/Tokyo"), "Mars/X".into()).is_ok());
}

/// An item that could not be read is left out of its list, and the items behind it keep their numbers.
#[test]
fn an_item_of_a_list_has_its_number_in_the_file() {
    let places = |problems: Vec<FileProblem>| -> Vec<String> {
        problems.into_iter().map(|problem| problem.place).collect()
    };
    let shape = json!({ "name": "a", "fields": [{ "key": "x", "type": "string" }] });
    let shape: CollectionShape = serde_json::from_value(shape).expect("a shape");
    let columns = json!([5, "x", "x", "nope"]);
    let collection = json!({ "adapter": "sql", "settings": {}, "columns": columns });
    let tool = json!({ "tool": "list_a", "verb": "list", "collection": "a", "fields": [] });
    let source = json!({ "contract": "c", "collections": { "a": collection }, "tools": [tool] });
    let source = form::read("c", &source.to_string()).expect("a contract");
    let shapes = BTreeMap::from([("a".to_owned(), shape)]);
    let problems = compile(&source, &shapes).expect_err("refused");
    let of_columns = |index: u8| format!("/collections/a/columns/{index}");
    assert_eq!(places(problems), [0, 2, 3].map(of_columns));

    let collection = json!({ "adapter": "sql", "settings": {}, "key": [5], "columns": [true] });
    let tool = json!({ "tool": "list_a", "verb": "list", "collection": "a", "fields": [], "order_by": [5] });
    let source = json!({ "contract": "c", "collections": { "a": collection }, "tools": [tool] });
    let source = form::read("c", &source.to_string()).expect("a contract");
    let problems = compile(&source, &shapes).expect_err("refused");
    let mut found = places(problems);
    found.sort_unstable();
    let expected = [
        "/collections/a/columns/0",
        "/collections/a/key/0",
        "/tools/0/order_by/0",
    ];
    assert_eq!(found, expected);

    let overlay =
        json!({ "contract": "c", "upstream": "u", "take": ["*", "*", ""], "leave": [5, ""] });
    let problems = UpstreamOverlay::read("o", &overlay.to_string()).expect_err("refused");
    let expected = ["/take/1", "/take/2", "/leave/0", "/leave/1"];
    assert_eq!(places(problems), expected);
}

/// A field that takes no value at all is refused when it is written, as one whose minimum is above its maximum.
#[test]
fn a_pattern_has_texts_of_the_lengths_beside_it() {
    let problems = |pattern: &str, rules: Value| {
        let mut field = json!({ "name": "a", "type": "text", "pattern": pattern });
        field
            .as_object_mut()
            .expect("an object")
            .extend(rules.as_object().expect("rules").clone());
        let form = json!({ "tool": "t", "fields": [field] });
        form::read("t", &form.to_string())
            .and_then(|source| compile(&source, &BTreeMap::new()))
            .err()
            .unwrap_or_default()
    };
    for (pattern, rules, key) in [
        ("^a$", json!({ "min_length": 3 }), "min_length"),
        ("^$", json!({ "min_length": 1 }), "min_length"),
        (
            "^[A-Z]{2}\\d{1,3}$",
            json!({ "min_length": 6 }),
            "min_length",
        ),
        ("^äöü$", json!({ "min_length": 4 }), "min_length"),
        ("[A-Z]{3}", json!({ "max_length": 2 }), "max_length"),
        ("^\\d+-\\d+$", json!({ "max_length": 2 }), "max_length"),
    ] {
        let found = problems(pattern, rules);
        let [problem] = &found[..] else {
            panic!("{pattern}: {found:?}");
        };
        assert_eq!(problem.place, format!("/fields/0/{key}"), "{pattern}");
    }
    for (pattern, rules) in [
        ("^äöü$", json!({ "min_length": 3, "max_length": 3 })),
        ("a", json!({ "min_length": 3 })),
        ("^a", json!({ "min_length": 3 })),
        ("^a$|b", json!({ "min_length": 3 })),
        ("^(?:ab)*$", json!({ "min_length": 3, "max_length": 3 })),
        ("^[A-Z]{2}$", json!({ "min_length": 2, "max_length": 2 })),
    ] {
        let found = problems(pattern, rules);
        assert!(found.is_empty(), "{pattern}: {found:?}");
    }
}

/// A brace that is not closed would stand in every sentence instead of the column's value.
#[test]
fn the_braces_of_a_sentence_are_closed() {
    let shape =
        json!({ "name": "a", "key": ["id"], "fields": [{ "key": "id", "type": "integer" }] });
    let shapes = BTreeMap::from([(
        "a".to_owned(),
        serde_json::from_value::<CollectionShape>(shape).expect("a shape"),
    )]);
    let problems = |say: &str| {
        let field = json!({ "name": "id", "type": "number", "required": true });
        let tool = json!({ "tool": "get", "verb": "lookup", "collection": "a", "say": say, "fields": [field] });
        let collections = json!({ "a": { "adapter": "sql", "settings": {} } });
        let source = json!({ "contract": "c", "collections": collections, "tools": [tool] });
        form::read("c", &source.to_string())
            .and_then(|source| compile(&source, &shapes))
            .err()
            .unwrap_or_default()
    };
    assert_eq!(problems("Record {id}, of id {id}."), []);
    for say in ["Record {id", "Record {id}, {"] {
        let found = problems(say);
        let [problem] = &found[..] else {
            panic!("{say}: {found:?}");
        };
        assert_eq!(problem.place, "/tools/0/say", "{say}");
        assert_eq!(
            problem.hint.as_deref(),
            Some("write a column in braces, such as {id}")
        );
    }
}

/// The hint leads on: the field has the type that is wanted for a list, and its choices are what does not fit.
#[test]
fn choices_that_a_list_cannot_hold_are_named() {
    let items = |kind: &str| json!({ "key": "l", "type": "list", "items": { "key": "item", "type": kind } });
    let hint = |kind: &str| {
        let shape = json!({ "name": "a", "fields": [items(kind)] });
        let shape: CollectionShape = serde_json::from_value(shape).expect("a shape");
        let field = json!({ "name": "l", "type": "multi-choice", "choices": ["x", "y"] });
        let tool = json!({ "tool": "add", "verb": "create", "collection": "a", "fields": [field] });
        let collections = json!({ "a": { "adapter": "sql", "settings": {}, "write": true } });
        let source = json!({ "contract": "c", "collections": collections, "tools": [tool] });
        let source = form::read("c", &source.to_string()).expect("a contract");
        let shapes = BTreeMap::from([("a".to_owned(), shape)]);
        let problems = compile(&source, &shapes).err().unwrap_or_default();
        problems.into_iter().next().and_then(|problem| problem.hint)
    };
    assert_eq!(hint("string"), None);
    assert_eq!(
        hint("date").as_deref(),
        Some("write every choice as a date")
    );
    assert_eq!(
        hint("integer").as_deref(),
        Some("use type: list, and say by `of` which items it has")
    );
}

/// A field of several values is most likely meant for `one-of`.
#[test]
fn a_condition_by_several_values_has_a_hint_how_it_is_asked() {
    let shape = json!({ "name": "a", "fields": [{ "key": "s", "type": "string" }] });
    let shape: CollectionShape = serde_json::from_value(shape).expect("a shape");
    let shapes = BTreeMap::from([("a".to_owned(), shape)]);
    let problems = |mut field: Value, comparison: Option<&str>| {
        if let Some(comparison) = comparison {
            field["match"] = comparison.into();
        }
        let tool =
            json!({ "tool": "list_a", "verb": "list", "collection": "a", "fields": [field] });
        let collections = json!({ "a": { "adapter": "sql", "settings": {} } });
        let source = json!({ "contract": "c", "collections": collections, "tools": [tool] });
        form::read("c", &source.to_string())
            .and_then(|source| compile(&source, &shapes))
            .err()
            .unwrap_or_default()
    };
    let choices = json!({ "name": "s", "type": "multi-choice", "choices": ["x", "y"] });
    let list = json!({ "name": "s", "type": "list", "of": { "type": "text" } });
    for field in [choices, list] {
        for comparison in [None, Some("not-equals"), Some("starts-with")] {
            let found = problems(field.clone(), comparison);
            let [problem] = &found[..] else {
                panic!("{field}: {found:?}");
            };
            assert_eq!(problem.place, "/tools/0/fields/0/type");
            let hint = problem.hint.as_deref().unwrap_or_default();
            assert!(hint.contains("`match: one-of`"), "{hint}");
        }
        assert_eq!(problems(field, Some("one-of")), []);
    }
}
