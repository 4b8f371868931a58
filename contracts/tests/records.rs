//! Records of a guest: projected, in one form, and in agreement with the published schema.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape,
    compile::{self, error_arm, result_arm},
    form,
    output::RecordChecker,
};

fn shape(fields: Value) -> CollectionShape {
    CollectionShape::read(&json!({ "name": "s", "fields": fields, "key": [] }).to_string())
        .expect("a shape")
}

fn every_type() -> CollectionShape {
    shape(json!([
        { "key": "s", "type": "string" },
        { "key": "i", "type": "integer" },
        { "key": "d", "type": "decimal" },
        { "key": "n", "type": "number" },
        { "key": "b", "type": "boolean" },
        { "key": "day", "type": "date" },
        { "key": "at", "type": "datetime" },
        { "key": "j", "type": "json" },
        { "key": "r", "type": "record", "fields": [{ "key": "x", "type": "integer" }, { "key": "y", "type": "string", "nullable": true }] },
        { "key": "l", "type": "list", "items": { "key": "", "type": "integer" } },
        { "key": "null", "type": "string", "nullable": true },
    ]))
}

fn all(shape: &CollectionShape) -> Vec<String> {
    shape.fields.iter().map(|field| field.key.clone()).collect()
}

#[test]
fn records_leave_in_one_form() {
    let shape = every_type();
    let checker = RecordChecker::new(&shape, &all(&shape));
    let raw = r#" { "extra": 1e999999999999, "l":[1, 2.0 ,3e0],"r":{"more":[{}],"x":-0,"y":"é\u00e9\/"},"j":{"b":[1.50,true,null],"a":{}},"at":"2024-02-29T00:00:00.100Z",
        "day":"2024-02-29","b":true,"n":1.0,"d":"-12345678901234567890.10","i":9007199254740991,"s":"a\tb\u007f😀","null":null } "#;
    let raw = raw.replace("1e999999999999", "123456789012345678901234567890");
    assert_eq!(
        checker.record(&raw).expect("conforms").json,
        r#"{"s":"a\tbTAIL","i":9007199254740991,"d":"-12345678901234567890.10","n":1,"b":true,"day":"2024-02-29","at":"2024-02-29T00:00:00.100Z","j":{"b":[1.5,true,null],"a":{}},"r":{"x":0,"y":"éé/"},"l":[1,2,3],"null":null}"#
            .replace("TAIL", "\u{7f}😀")
    );
    let numbers = RecordChecker::new(&shape, &["n".to_owned()]);
    for (raw, form) in [
        ("0.30000000000000004", "0.30000000000000004"),
        ("1e2", "100"),
        ("1e20", "1e+20"),
        ("100000000000000000000", "1e+20"),
        ("-0.0", "0"),
        ("5e-324", "5e-324"),
        ("3.0000", "3"),
    ] {
        let found = numbers
            .record(&format!(r#"{{"n":{raw}}}"#))
            .expect(raw)
            .json;
        assert_eq!(found.replace("1e20", "1e+20"), format!(r#"{{"n":{form}}}"#));
    }
}

/// Values inside JSON have no type: their integers keep their digits.
#[test]
fn integers_of_64_bits_inside_json_keep_their_digits() {
    let checker = RecordChecker::new(&every_type(), &["j".to_owned()]);
    let records =
        r#"[{"j":{"id":1234567890123456789,"ids":[18446744073709551615,-9223372036854775808]}}]"#;
    let found = checker.records(records).expect("conforms");
    assert_eq!(format!("[{}]", found.join(",")), records);
}

#[test]
fn only_published_columns_leave_and_in_their_order() {
    let shape = every_type();
    let checker = RecordChecker::new(&shape, &["i".to_owned(), "s".to_owned()]);
    let records = checker
        .records(r#"[{"s":"a","password":"p","i":1},{"i":2,"s":"b"}]"#)
        .expect("conforms");
    assert_eq!(records, [r#"{"i":1,"s":"a"}"#, r#"{"i":2,"s":"b"}"#]);
    assert_eq!(
        checker.records("[]").expect("conforms"),
        Vec::<String>::new()
    );
}

#[test]
fn what_does_not_conform_is_refused_with_its_place() {
    let shape = every_type();
    for (column, bad, changed) in [
        ("s", "1", false),
        ("s", "null", false),
        ("i", "9007199254740992", false),
        ("i", "1.5", false),
        ("i", "\"1\"", false),
        ("d", "1", false),
        ("d", "\"1e3\"", false),
        ("d", "\"\"", false),
        ("n", "\"1\"", false),
        ("b", "1", false),
        ("day", "\"2023-02-29\"", false),
        ("day", "\"2024-02-29T00:00:00Z\"", false),
        ("at", "\"2024-02-29T00:00:00\"", false),
        ("at", "\"2024-02-29T00:00:00+01:00\"", false),
        ("j", "{\"a\":1,\"a\":2}", false),
        ("j", "\"\\ud800\"", false),
        ("r", "[]", false),
        ("r", "{\"y\":\"a\"}", false),
        ("r", "{\"x\":1,\"x\":1}", false),
        ("l", "[1,\"a\"]", false),
        ("l", "null", false),
    ] {
        let checker = RecordChecker::new(&shape, &[column.to_owned()]);
        let error = checker
            .records(&format!(r#"[{{"{column}":{bad}}}]"#))
            .expect_err(bad);
        assert!(error.path.starts_with("/0"), "{column} {bad}: {error:?}");
        assert_eq!(error.source_changed, changed, "{column} {bad}");
    }
    let checker = RecordChecker::new(&shape, &["i".to_owned(), "s".to_owned()]);
    let missing = checker
        .records(r#"[{"i":1,"s":"a"},{"i":1}]"#)
        .expect_err("a column is missing");
    assert_eq!(
        (missing.path.as_str(), missing.source_changed),
        ("/1/s", true)
    );
    let retyped = checker
        .records(r#"[{"i":"1","s":"a"},{"i":"2","s":"a"}]"#)
        .expect_err("retyped");
    assert!(!retyped.source_changed, "only the source can tell");
    let one_odd = checker
        .records(r#"[{"i":"1","s":"a"},{"i":2,"s":"a"}]"#)
        .expect_err("one odd value");
    assert!(!one_odd.source_changed);
    for bad in [
        "",
        "{}",
        "[{]",
        "[1]",
        "[[]]",
        "[{\"i\":1,\"s\":\"\"}]x",
        "null",
        r#"[{"i":1,"i":1,"s":""}]"#,
        r#"[{"i":1,"s":"","t":1,"t":2}]"#,
    ] {
        assert!(checker.records(bad).is_err(), "{bad}");
    }
    let deep = format!(r#"[{{"j":{}1{}}}]"#, "[".repeat(80), "]".repeat(80));
    assert!(
        RecordChecker::new(&shape, &["j".to_owned()])
            .records(&deep)
            .is_err()
    );
    assert!(!format!("{:?}", checker.records(r#"[{"i":"SECRET","s":"a"}]"#)).contains("SECRET"));
}

/// Checks a lookup over a shape whose columns are named like an error's members, and both arms of its schema.
#[test]
fn results_and_errors_meet_their_arms() {
    let described = shape(json!([
        { "key": "code", "type": "integer", "nullable": true },
        { "key": "status", "type": "string" },
        { "key": "message", "type": "record", "fields": [{ "key": "a", "type": "json" }] },
    ]));
    let contract = json!({
        "contract": "c",
        "collections": { "s": { "adapter": "x" } },
        "tools": [{ "tool": "t", "verb": "lookup", "collection": "s", "fields": [{ "name": "status", "type": "text" }] }]
    });
    let source = form::read("-", &contract.to_string()).expect("a contract");
    let compiled = compile::compile(&source, &BTreeMap::from([("s".to_owned(), described)]))
        .expect("compiles");
    let schema = compiled.tools[0]
        .output_schema
        .as_ref()
        .expect("an output schema")
        .value();
    let valid = |schema: &Value, value: &Value| {
        jsonschema::validator_for(schema)
            .expect("a schema")
            .is_valid(value)
    };
    let success = json!({ "code": 7, "status": "open", "message": { "a": [] } });
    let error = json!({ "code": "not_found", "call_id": "c1", "message": "No record.", "retry_after_ms": 5 });
    assert!(valid(&schema, &success) && valid(&result_arm(&schema), &success));
    assert!(valid(&schema, &error) && valid(&error_arm(), &error));
    assert!(!valid(&result_arm(&schema), &error) && !valid(&error_arm(), &success));
    assert_eq!(
        schema["properties"]
            .as_object()
            .map(|all| all.keys().cloned().collect::<Vec<_>>()),
        Some(vec!["status".to_owned()])
    );
}

fn kind() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just("string"),
        Just("integer"),
        Just("decimal"),
        Just("number"),
        Just("boolean"),
        Just("date"),
        Just("datetime"),
        Just("json"),
    ]
    .prop_map(|word| json!({ "type": word }));
    let nullable = |kind: BoxedStrategy<Value>| {
        (kind, any::<bool>()).prop_map(|(mut kind, nullable)| {
            kind["nullable"] = nullable.into();
            kind
        })
    };
    nullable(leaf.boxed()).prop_recursive(2, 8, 3, move |inner| {
        let record = proptest::collection::vec(inner.clone(), 1..3).prop_map(|kinds| {
            let fields: Vec<Value> = kinds
                .into_iter()
                .enumerate()
                .map(|(index, mut kind)| {
                    kind["key"] = format!("m{index}").into();
                    kind
                })
                .collect();
            json!({ "type": "record", "fields": fields })
        });
        let list = inner.prop_map(|mut kind| {
            kind["key"] = "item".into();
            json!({ "type": "list", "items": kind })
        });
        nullable(prop_oneof![record, list].boxed())
    })
}

fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\u{0}-\u{20}é]{0,4}".prop_map(Value::from),
        "-?[0-9]{1,3}(\\.[0-9]{1,2})?".prop_map(Value::from),
        Just(json!("2024-02-29")),
        Just(json!("2023-02-29")),
        Just(json!("2024-02-29T10:00:00Z")),
        Just(json!("2024-02-29T10:00:00.25Z")),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec(inner, 1..3).prop_map(|values| {
                values
                    .into_iter()
                    .enumerate()
                    .map(|(index, value)| (format!("m{index}"), value))
                    .collect()
            }),
        ]
    })
    .boxed()
}

/// Returns a value made for the type, so that agreement is tested on both sides.
fn value_for(kind: &Value) -> BoxedStrategy<Value> {
    let good: BoxedStrategy<Value> = match kind["type"].as_str().unwrap_or_default() {
        "string" => "[a-z\u{0}-\u{20}é\"\\\\]{0,4}"
            .prop_map(Value::from)
            .boxed(),
        "integer" => any::<i32>().prop_map(Value::from).boxed(),
        "decimal" => "-?[0-9]{1,20}(\\.[0-9]{1,2})?"
            .prop_map(Value::from)
            .boxed(),
        "number" => any::<f64>().prop_map(Value::from).boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "date" => Just(json!("2024-02-29")).boxed(),
        "datetime" => Just(json!("2024-02-29T10:00:00.25Z")).boxed(),
        "record" => {
            let members: Vec<BoxedStrategy<Value>> = kind["fields"]
                .as_array()
                .expect("fields")
                .iter()
                .map(value_for)
                .collect();
            members
                .prop_map(|values| {
                    values
                        .into_iter()
                        .enumerate()
                        .map(|(index, value)| (format!("m{index}"), value))
                        .collect()
                })
                .boxed()
        }
        "list" => proptest::collection::vec(value_for(&kind["items"]), 0..3)
            .prop_map(Value::from)
            .boxed(),
        _ => value(),
    };
    prop_oneof![12 => good, 1 => value()].boxed()
}

/// Returns `true` for integers beyond ±(2^53−1), which are values of no type but `number`; the schema cannot say that.
fn is_beyond(value: &Value) -> bool {
    match value {
        Value::Number(number) => number
            .as_f64()
            .is_some_and(|number| number.fract() == 0.0 && number.abs() > 9_007_199_254_740_991.0),
        Value::Array(items) => items.iter().any(is_beyond),
        Value::Object(map) => map.values().any(is_beyond),
        _ => false,
    }
}

fn is_short_of_a_member(kind: &Value, value: &Value) -> bool {
    match kind["type"].as_str() {
        Some("record") => kind["fields"]
            .as_array()
            .into_iter()
            .flatten()
            .any(
                |field| match value.get(field["key"].as_str().unwrap_or_default()) {
                    None => value.is_object(),
                    Some(value) => is_short_of_a_member(field, value),
                },
            ),
        Some("list") => value
            .as_array()
            .into_iter()
            .flatten()
            .any(|value| is_short_of_a_member(&kind["items"], value)),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_checker_agrees_with_the_published_schema((kind, value) in kind().prop_flat_map(|kind| { let value = value_for(&kind); (Just(kind), value) })) {
        let mut field = kind.clone();
        field["key"] = "v".into();
        let described = shape(json!([field]));
        let contract = json!({
            "contract": "c",
            "collections": { "s": { "adapter": "x" } },
            "tools": [{ "tool": "t", "verb": "lookup", "collection": "s", "fields": [] }]
        });
        let source = form::read("-", &contract.to_string()).expect("a contract");
        let compiled = compile::compile(&source, &BTreeMap::from([("s".to_owned(), described.clone())])).expect("compiles");
        let published = result_arm(&compiled.tools[0].output_schema.as_ref().expect("an output schema").value());
        let validator = jsonschema::options().should_validate_formats(true).build(&published).expect("a schema");
        let record = json!({ "v": value });
        let checker = RecordChecker::new(&described, &["v".to_owned()]);
        let checked = checker.record(&record.to_string()).map(|checked| checked.json);
        match checked {
            Ok(text) => {
                let written: Value = serde_json::from_str(&text).expect("JSON");
                prop_assert!(validator.is_valid(&written), "{text} under {published}");
                // A second walk changes nothing.
                let again = checker.record(&text).map(|checked| checked.json);
                prop_assert_eq!(again, Ok(text));
            }
            Err(mismatch) => {
                let excused = is_beyond(&value) || is_short_of_a_member(&kind, &value);
                prop_assert!(excused || !validator.is_valid(&record), "{record} under {published}: {mismatch:?}");
            }
        }
    }
}

/// An operation that has run cannot be undone: an odd value is dropped alone, and the rest of the answer is kept.
/// An integer of more than 64 bits was the nearest double, without a word.
#[test]
fn integers_of_any_length_keep_their_digits() {
    const WEI: &str = "1234567890123456789012";
    let fields = shape(json!([
        { "key": "i", "type": "integer", "nullable": true },
        { "key": "j", "type": "json" },
        { "key": "n", "type": "number" },
    ]))
    .fields;
    let columns: Vec<String> = fields.iter().map(|field| field.key.clone()).collect();
    let record = format!(r#"{{"i":-{WEI},"j":{{"wei":[{WEI},1e300,"{WEI}"]}},"n":{WEI}}}"#);
    let checked = RecordChecker::for_fields(&fields, &columns)
        .record(&record)
        .expect("it passes");
    let expected = format!(
        r#"{{"i":-{WEI},"j":{{"wei":[{WEI},1e+300,"{WEI}"]}},"n":1.2345678901234568e+21}}"#
    );
    assert_eq!((checked.json, checked.odd), (expected, Vec::new()));

    let any = shape(json!([{ "key": "j", "type": "json" }]));
    let checker = RecordChecker::new(&any, &["j".to_owned()]);
    let records = format!(r#"[{{"j":{WEI}}},{{"j":1e300}}]"#);
    let expected = [format!(r#"{{"j":{WEI}}}"#), r#"{"j":1e+300}"#.to_owned()];
    assert_eq!(checker.records(&records).expect("they pass"), expected);
    // A text that begins with the mark of such digits stays a text.
    let marked = format!("[{{\"j\":[\"\u{10fffe}1\",{WEI}]}}]");
    let rounded = "{\"j\":[\"\u{10fffe}1\",1.2345678901234568e+21]}";
    assert_eq!(checker.records(&marked).expect("it passes"), [rounded]);
    let whole = shape(json!([{ "key": "i", "type": "integer" }]));
    let checker = RecordChecker::new(&whole, &["i".to_owned()]);
    assert!(checker.records(&format!(r#"[{{"i":{WEI}}}]"#)).is_err());
}

/// A list where an object was promised, or an object of other members, was all null without a word.
#[test]
fn a_result_that_is_no_object_is_null_with_a_note() {
    let fields = shape(json!([
        { "key": "n", "type": "number", "nullable": true },
        { "key": "j", "type": "json" },
    ]))
    .fields;
    let columns: Vec<String> = fields.iter().map(|field| field.key.clone()).collect();
    let checker = RecordChecker::for_fields(&fields, &columns);
    for (result, found) in [
        (r#"[{"n":1}]"#, "a list"),
        (r#""done""#, "a text"),
        ("-1", "a number"),
        ("true", "a boolean"),
        (r#"{"x":1,"y":[]}"#, "one with other members"),
    ] {
        let checked = checker.record(result).expect("it passes");
        assert_eq!(checked.json, r#"{"n":null,"j":null}"#);
        let reason = format!("expected an object, found {found}");
        assert_eq!(checked.odd, [(String::new(), reason)]);
    }
    assert!(checker.record("[").is_err());
    assert!(checker.record("{}").is_err());
    assert!(checker.record(r#"{"x":1,"n":1}"#).is_err());
}

#[test]
fn a_result_of_an_operation_passes_as_far_as_it_fits() {
    let fields = shape(json!([
        { "key": "n", "type": "number", "nullable": true },
        { "key": "i", "type": "integer", "nullable": true },
        { "key": "j", "type": "json", "nullable": true },
        { "key": "s", "type": "string" },
    ]))
    .fields;
    let columns: Vec<String> = fields.iter().map(|field| field.key.clone()).collect();
    let checker = RecordChecker::for_fields(&fields, &columns);
    let deep = format!("{}1{}", "[".repeat(80), "]".repeat(80));
    for (record, passed, odd) in [
        (
            r#"{"n":"x","i":1.5,"j":[],"s":"a"}"#.to_owned(),
            r#"{"n":null,"i":null,"j":[],"s":"a"}"#,
            vec!["n", "i"],
        ),
        (
            r#"{"n":{"a":[1]},"i":1234567890123456789,"j":{"id":18446744073709551615},"s":"a"}"#
                .to_owned(),
            r#"{"n":null,"i":1234567890123456789,"j":{"id":18446744073709551615},"s":"a"}"#,
            vec!["n"],
        ),
        (
            r#"{"n":[1],"i":null,"j":{"a":1,"b":2,"a":3},"s":"a"}"#.to_owned(),
            r#"{"n":null,"i":null,"j":{"a":1,"b":2},"s":"a"}"#,
            vec!["n", "j"],
        ),
        (
            r#"{"n":1,"i":2,"j":3,"n":4,"s":"a","m":5,"m":6}"#.to_owned(),
            r#"{"n":1,"i":2,"j":3,"s":"a"}"#,
            vec!["n"],
        ),
        (
            r#"{"n":-1e400,"i":1,"j":"\ud800","s":"a"}"#.to_owned(),
            "{\"n\":null,\"i\":1,\"j\":\"\u{fffd}\",\"s\":\"a\"}",
            vec![""],
        ),
    ] {
        let checked = checker.record(&record).expect("it passes");
        assert_eq!(checked.json, passed);
        assert_eq!(
            checked
                .odd
                .iter()
                .map(|(column, _)| column)
                .collect::<Vec<_>>(),
            odd,
            "{record}"
        );
    }
    let deep = checker
        .record(&format!(
            r#"{{"n":1,"i":1,"j":{{"a":{deep},"b":2}},"s":"a"}}"#
        ))
        .expect("it passes");
    assert!(
        deep.json.contains(r#""b":2"#) && deep.odd.len() == 1,
        "{deep:?}"
    );
    for refused in [
        r#"{"n":1,"i":1,"j":1,"s":null}"#,
        r#"{"n":1,"i":1,"j":1}"#,
        "[]",
        "{",
    ] {
        assert!(checker.record(refused).is_err(), "{refused}");
    }
}
