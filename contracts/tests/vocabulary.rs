//! Checks that the vocabulary of contract files is what their readers accept.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use serde_json::{Value, json};
use weir_contracts::{compile, form, vocabulary};

/// No key is near this one, so that the hint names all that the reader knows.
const UNKNOWN: &str = "zzzzqqqqxxxx";

/// Returns the keys that the reader of the object at `place` says it knows.
fn known_keys(mut file: Value, place: &str) -> BTreeSet<String> {
    let object = file.pointer_mut(place).expect("the file has the object");
    object[UNKNOWN] = json!(1);
    let text = file.to_string();
    let problems = match form::read("test", &text) {
        Ok(source) => compile(&source, &BTreeMap::new()).expect_err("an unknown key is refused"),
        Err(problems) => problems,
    };
    let refused = format!("{place}/{UNKNOWN}");
    let problem = problems.iter().find(|problem| problem.place == refused);
    let problem = problem.unwrap_or_else(|| panic!("{refused} is refused: {problems:?}"));
    let hint = problem.hint.as_deref().expect("a hint");
    let keys = hint.strip_prefix("known keys: ").expect("the known keys");
    keys.split(", ").map(str::to_owned).collect()
}

/// Returns the keys that a schema of an object has. It takes no others.
fn schema_keys(schema: &Value) -> BTreeSet<String> {
    assert_eq!(schema["additionalProperties"], json!(false), "{schema}");
    let properties = schema["properties"].as_object().expect("properties");
    properties.keys().cloned().collect()
}

fn arm<'s>(schema: &'s Value, part: &str, title: &str) -> &'s Value {
    let arms = schema["$defs"][part]["anyOf"].as_array().expect("arms");
    let found = arms.iter().find(|arm| arm["title"] == title);
    found.unwrap_or_else(|| panic!("{part} has no arm {title}"))
}

/// Returns a contract whose tool has this field.
fn with_field(field: Value) -> Value {
    json!({
        "contract": "desk",
        "collections": { "tickets": { "adapter": "sql", "shape": { "id": { "type": "integer" } } } },
        "tools": [{
            "tool": "t", "verb": "list", "collection": "tickets", "fields": [field],
            "limits": {}, "audit": {},
        }],
    })
}

#[test]
fn objects_have_the_keys_that_are_read() {
    let schema = vocabulary::file_schema();
    let field = json!({ "name": "a", "type": "dropdown", "choices": [{ "value": "x" }] });
    for (part, place) in [
        ("contract", ""),
        ("collection", "/collections/tickets"),
        ("tool", "/tools/0"),
        ("limits", "/tools/0/limits"),
        ("audit", "/tools/0/audit"),
    ] {
        let known = known_keys(with_field(field.clone()), place);
        assert_eq!(schema_keys(&schema["$defs"][part]), known, "{part}");
    }
    let bare = json!({ "tool": "t", "fields": [field.clone()] });
    assert_eq!(
        schema_keys(&schema["$defs"]["form"]),
        known_keys(bare, ""),
        "a form alone"
    );
    for (part, place) in [
        ("column", "/collections/tickets/shape/id"),
        ("choice", "/tools/0/fields/0/choices/0"),
    ] {
        let known = known_keys(with_field(field.clone()), place);
        let object = &schema["$defs"][part]["anyOf"][1];
        assert_eq!(schema_keys(object), known, "{part}");
    }
}

#[test]
fn fields_have_the_keys_that_are_read_of_their_type() {
    let schema = vocabulary::file_schema();
    let types = vocabulary::field_types();
    for kind in &types {
        let field = || match kind.name {
            "list" => json!({ "type": "list", "of": { "type": "text" } }),
            "record" => json!({ "type": "record", "fields": [] }),
            "json" => json!({ "type": "json", "schema": {} }),
            name => json!({ "type": name, "choices": ["a"] }),
        };
        let named = || {
            let mut field = field();
            field["name"] = json!("a");
            field
        };
        let mut known = known_keys(with_field(named()), "/tools/0/fields/0");
        // With one of these it is another kind of field.
        assert!(known.remove("from") && known.remove("value"));
        let keys = schema_keys(arm(&schema, "field", kind.name));
        assert_eq!(keys, known, "{}", kind.name);

        let record = json!({ "name": "r", "type": "record", "fields": [named()] });
        let known = known_keys(with_field(record), "/tools/0/fields/0/fields/0");
        let keys = schema_keys(arm(&schema, "member", kind.name));
        assert_eq!(keys, known, "{} in a record", kind.name);

        let list = json!({ "name": "l", "type": "list", "of": field() });
        let known = known_keys(with_field(list), "/tools/0/fields/0/of");
        let keys = schema_keys(arm(&schema, "element", kind.name));
        assert_eq!(keys, known, "{} in a list", kind.name);
    }
    let bound = json!({ "name": "a", "from": "agent" });
    let known = known_keys(with_field(bound), "/tools/0/fields/0");
    let mut keys = schema_keys(arm(&schema, "field", "bound by from"));
    keys.extend(schema_keys(arm(&schema, "field", "bound by value")));
    assert_eq!(keys, known, "bound");
}

/// Types, verbs and matches that a file may name are those that the reader knows.
#[test]
fn words_are_those_that_are_read() {
    let words = |key: &str, before: &str| -> Vec<String> {
        let mut field = json!({ "name": "a", "type": "text" });
        let mut file = with_field(field.clone());
        match key {
            "verb" => file["tools"][0]["verb"] = json!(UNKNOWN),
            _ => {
                field["type"] = json!(UNKNOWN);
                file = with_field(field);
            }
        }
        let source = form::read("test", &file.to_string()).expect("it has tools");
        let problems = compile(&source, &BTreeMap::new()).expect_err("the word is unknown");
        let hints = problems
            .iter()
            .filter_map(|problem| problem.hint.as_deref());
        let mut found = hints.filter_map(|hint| hint.strip_prefix(before));
        let words = found.next().expect("the hint names them").split(", ");
        words.map(str::to_owned).collect()
    };
    let types: Vec<_> = vocabulary::field_types()
        .iter()
        .map(|kind| kind.name)
        .collect();
    assert_eq!(types, words("type", "types: "));
    let verbs: Vec<_> = vocabulary::verbs().iter().map(|verb| verb.name).collect();
    assert_eq!(verbs, words("verb", "verbs: "));
}

#[test]
fn columns_agree_as_the_compiler_says() {
    let types = vocabulary::field_types();
    let columns = |name: &str| {
        let found = types.iter().find(|kind| kind.name == name);
        found.expect("the type").columns.join(" ")
    };
    assert_eq!(columns("text"), "string decimal json");
    assert_eq!(columns("checkbox"), "boolean json");
    assert_eq!(columns("multi-choice"), "json list");
    let matches = vocabulary::matches();
    let contains = matches.iter().find(|word| word.name == "contains");
    assert_eq!(contains.expect("the match").columns, ["string"]);
}

/// YAML as the reader of forms reads it: `yes` and `007` are text.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
    }
}

/// Files that compile are valid, and such with a wrong key are not.
#[test]
fn the_schema_judges_files_as_the_reader_does() {
    let validator = jsonschema::draft202012::new(&vocabulary::file_schema()).expect("a schema");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for path in [
        "tests/cases/create_ticket/form.json",
        "tests/cases/every_field/form.yaml",
        "tests/cases/json_fields/form.yaml",
        "tests/cases/bound/form.yaml",
        "tests/cases/support/form.yaml",
        "samples/airports.yaml",
        "samples/desk.yaml",
        "samples/weather.yaml",
    ] {
        let text =
            fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let file: Value = serde_saphyr::from_str_with_options(&text, yaml_options()).expect("YAML");
        let faults: Vec<_> = validator
            .iter_errors(&file)
            .map(|fault| fault.to_string())
            .collect();
        assert!(faults.is_empty(), "{path}: {faults:?}");
        seen += 1;
    }
    assert_eq!(seen, 8);
    for field in [
        json!({ "name": "a", "type": "text", "min": 1 }),
        json!({ "name": "a", "type": "number", "choices": ["x"] }),
        json!({ "name": "a", "type": "dropdown" }),
        json!({ "name": "a", "type": "novel" }),
        json!({ "name": "a", "from": "agent", "value": 1 }),
        json!({ "type": "text" }),
    ] {
        let file = with_field(field.clone());
        assert!(!validator.is_valid(&file), "{field}");
    }
    assert!(validator.is_valid(&with_field(json!({ "name": "a", "type": "text" }))));
}
