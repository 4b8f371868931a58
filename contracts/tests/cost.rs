//! Small documents whose check could cost much: each is refused where the schema is read, or bounded where the value is.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use weir_contracts::{
    code::{self, PluginOptions},
    compile, form,
    offer::{ServerLists, compose},
    output::ResultChecker,
    shape::CollectionShape,
    upstream::{CompiledUpstream, UpstreamOptions, compile as compile_upstream},
    validate::{ArgumentValidator, InvalidArguments},
};

/// Thirty definitions, each of which applies the next one twice to the same value.
fn chain() -> Value {
    let mut definitions = Map::new();
    for number in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
        definitions.insert(format!("d{number}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("d30".to_owned(), json!({ "type": "string" }));
    json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
}

/// A value within itself, in twenty alternatives that `arm` makes.
fn alternatives(arms: usize, arm: impl Fn(usize) -> Value) -> Value {
    let arms: Vec<Value> = (0..arms).map(arm).collect();
    json!({
        "type": "object", "properties": { "a": { "$ref": "#/$defs/node" } }, "required": ["a"],
        "$defs": { "node": { "oneOf": arms } },
    })
}

fn plain(number: usize) -> Value {
    json!({ "type": "object", "properties": { "n": { "$ref": "#/$defs/node" }, "x": { "const": number } } })
}

fn keyed(number: usize) -> Value {
    json!({
        "type": "object", "required": ["kind", "n"], "additionalProperties": false,
        "properties": { "kind": { "const": format!("k{number}") }, "n": {
            "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/node" }],
        } },
    })
}

fn exploding() -> [Value; 2] {
    [chain(), alternatives(20, plain)]
}

fn offered(tool: Value) -> CompiledUpstream {
    let lists = json!({ "tools": [tool, { "name": "other", "inputSchema": {} }] });
    let (lists, _) = ServerLists::read("lists.json", &lists.to_string()).expect("lists");
    let document = compose("lists.json", &lists).document.pinned();
    let upstream = UpstreamOptions {
        name: "up",
        contract: "up",
        ..UpstreamOptions::default()
    };
    compile_upstream(&upstream, &document).expect("a contract")
}

fn foreign(property: &Value) -> (ArgumentValidator, String) {
    let schema = json!({ "type": "object", "properties": { "p": property } });
    let done = offered(json!({ "name": "t", "description": "Does it.", "inputSchema": schema }));
    let notes: Vec<String> = done.notes.iter().map(ToString::to_string).collect();
    let arguments = done.contract.tools[0]
        .argument_validator()
        .expect("a schema");
    (arguments, notes.join("\n"))
}

fn reasons(refused: &InvalidArguments) -> Vec<String> {
    let each = refused.errors.iter();
    each.map(|error| format!("{} {}", error.path, error.reason))
        .collect()
}

#[test]
fn a_schema_that_explodes_is_refused_wherever_it_comes_in() {
    for schema in exploding() {
        let says_why = |why: &str| {
            assert!(why.contains("checking one value at "), "{why}");
            assert!(why.contains("at most 200000 are accepted"), "{why}");
        };
        says_why(&ArgumentValidator::new(&schema).err().expect("arguments"));
        says_why(&ResultChecker::new(&schema).err().expect("a result"));
        says_why(&ResultChecker::foreign(&schema).err().expect("a result"));
        for tool in [
            json!({ "name": "t", "description": "Does it.", "inputSchema": schema }),
            json!({ "name": "t", "description": "Does it.", "inputSchema": {}, "outputSchema": schema }),
        ] {
            let done = offered(tool);
            assert_eq!(done.contract.tools.len(), 1, "the other tool goes on");
            says_why(&done.left_out[0].to_string());
        }
        let tool = json!({ "name": "t", "description": "Does it.", "inputSchema": { "type": "object" }, "outputSchema": schema });
        let plugin = PluginOptions {
            name: "plugin",
            contract: "plugin",
            ..PluginOptions::default()
        };
        let problems = code::compile(&plugin, &json!([tool]).to_string()).expect_err("a plugin's");
        says_why(&problems[0].to_string());
        let form = json!({ "tool": "t", "description": "Does it.", "fields": [
            { "name": "a", "type": "json", "required": true, "schema": schema },
        ] });
        let form = form::read("form.json", &form.to_string()).expect("a form");
        let problems =
            compile(&form, &BTreeMap::<String, CollectionShape>::new()).expect_err("a json field");
        says_why(&problems[0].to_string());
    }
}

#[test]
fn alternatives_that_a_property_tells_apart_are_served() {
    let arguments = ArgumentValidator::new(&alternatives(20, keyed)).expect("it is accepted");
    let nested = |depth: usize, inner: &str| {
        let (mut text, mut end) = (String::from("{\"a\":"), String::from("}"));
        for level in 0..depth {
            text.push_str(&format!("{{\"kind\":\"k{level}\",\"n\":"));
            end.push('}');
        }
        text + inner + &end
    };
    assert!(arguments.validate(&nested(8, "1")).is_ok());
    let refused = arguments.validate(&nested(2, "\"x\"")).expect_err("a text");
    assert_eq!(reasons(&refused), ["/a/n/n wrong_type"]);
    // The faults of twenty alternatives on eight levels are 20^8; the report is bounded.
    let refused = arguments.validate(&nested(8, "\"x\"")).expect_err("a text");
    assert!(refused.errors.len() <= 32, "{}", refused.errors.len());
}

#[test]
fn a_value_that_takes_too_many_steps_is_refused_and_the_next_one_is_not() {
    let schema = json!({
        "type": "object", "properties": { "a": { "$ref": "#/$defs/node" } },
        "$defs": { "node": { "type": "object", "anyOf": [
            { "properties": { "n": { "$ref": "#/$defs/node" } }, "required": ["x"] },
            { "properties": { "n": { "$ref": "#/$defs/node" } }, "required": ["y"] },
            { "properties": { "m": { "items": { "$ref": "#/$defs/node" } } }, "required": ["m"] },
        ] } },
    });
    let arguments = ArgumentValidator::new(&schema).expect("it is accepted");
    let deep = format!("{{\"a\":{}{{}}{}}}", "{\"n\":".repeat(50), "}".repeat(50));
    assert!(
        arguments.is_heavy(&deep),
        "not on a thread that others wait for"
    );
    let refused = arguments.validate(&deep).expect_err("nothing in it fits");
    assert!(refused.errors.len() <= 32, "{}", refused.errors.len());
    assert!(arguments.validate(r#"{"a":{"m":[{"m":[]}]}}"#).is_ok());

    // Lists compare every item, on every level anew.
    let wide = json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/list" } }, "$defs": { "list": {
        "anyOf": [{ "type": "integer" }, { "allOf": vec![json!({ "type": "array", "items": { "$ref": "#/$defs/list" } }); 3] }],
    } } });
    let arguments = ArgumentValidator::new(&wide).expect("it is accepted");
    let deep = format!("{{\"a\":{}\"x\"{}}}", "[".repeat(60), "]".repeat(60));
    assert!(arguments.validate(&deep).is_err());
    let many = format!("{{\"a\":[{}1]}}", "[[[[[1]]]]],".repeat(200_000));
    let refused = arguments.validate(&many).expect_err("too many steps");
    assert_eq!(reasons(&refused), [" too_costly"]);
    assert!(arguments.validate(r#"{"a":[[1],2]}"#).is_ok());
}

/// Lists within each other, of which the validator checks each several times.
#[test]
fn lists_that_are_checked_twice_on_every_level_are_checked_in_counted_steps() {
    let levels = |level: &dyn Fn(&Value) -> Value| {
        let mut definitions = Map::new();
        for number in 0..28 {
            let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
            definitions.insert(format!("d{number}"), level(&next));
        }
        definitions.insert("d28".to_owned(), json!({ "type": "integer" }));
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
    };
    let kinds = |next: &Value| {
        let kind = |number: usize| {
            let properties = json!({ "kind": { "const": format!("k{number}") } });
            json!({ "required": ["kind"], "properties": properties, "items": next })
        };
        json!({ "anyOf": (0..6).map(kind).collect::<Vec<_>>() })
    };
    let contained =
        |next: &Value| json!({ "contains": next, "unevaluatedItems": { "type": "boolean" } });
    let unevaluated = |next: &Value| json!({ "unevaluatedItems": next });
    for (schema, inner) in [
        (levels(&kinds), "\"x\""),
        (levels(&contained), "1"),
        (levels(&unevaluated), "\"x\""),
    ] {
        let arguments = ArgumentValidator::new(&schema).expect("it is accepted");
        let list = format!("{{\"a\":{}{inner}{}}}", "[".repeat(28), "]".repeat(28));
        assert!(arguments.is_heavy(&list), "{schema}");
        assert!(arguments.validate(&list).is_err(), "{schema}");
    }
}

#[test]
fn one_fault_in_a_large_value_is_named() {
    let record = json!({ "type": "object", "required": ["id"], "properties": {
        "id": { "type": "integer" }, "to": { "anyOf": [{ "type": "null" }, { "type": "string", "maxLength": 3 }] },
    } });
    let schema =
        json!({ "type": "object", "properties": { "all": { "type": "array", "items": record } } });
    let list = |last: &str| {
        format!(
            "{{\"all\":[{}{last}]}}",
            r#"{"id":1,"to":"abc"},"#.repeat(60_000)
        )
    };
    let arguments = ArgumentValidator::new(&schema).expect("a schema");
    assert!(arguments.is_heavy(&list("{}")));
    assert!(arguments.validate(&list(r#"{"id":2}"#)).is_ok());
    let refused = arguments
        .validate(&list(r#"{"id":"x"}"#))
        .expect_err("a text");
    assert_eq!(reasons(&refused), ["/all/60000/id wrong_type"]);
    let refused = arguments
        .validate(&list(r#"{"id":2,"to":7}"#))
        .expect_err("a number");
    assert_eq!(reasons(&refused), ["/all/60000/to no_match"]);

    let results = ResultChecker::foreign(&schema).expect("a schema");
    let text = list(r#"{"to":"x"}"#);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let found = results.check(&value, &text).expect_err("no id");
    assert_eq!(found.path, "/all/60000/id");
    assert_eq!(found.reason, "the member is missing");
}

#[test]
fn examples_of_a_schema_that_has_none_are_not_looked_for_without_end() {
    let endless = alternatives(6, |number| {
        let mut arm = keyed(number);
        arm["properties"]["n"] = json!({ "$ref": "#/$defs/node" });
        arm
    });
    let arguments = ArgumentValidator::new(&endless).expect("it is accepted");
    let refused = arguments.validate("{}").expect_err("nothing is valid");
    assert_eq!(reasons(&refused)[0], "/a missing_required");
    assert_eq!(weir_contracts::validate::example(&endless), None);
}

#[test]
fn an_example_that_takes_too_many_steps_is_left_out() {
    let names: Vec<String> = (0..9_000).map(|number| number.to_string()).collect();
    let lists = |item: Value| {
        let list = json!({ "type": "array", "minItems": 1_000, "items": item });
        json!({ "type": "array", "minItems": 1_000, "items": list })
    };
    for schema in [
        json!({ "type": "array", "uniqueItems": true, "minItems": 900, "items": {
            "allOf": [{ "enum": names }, { "enum": names }],
        } }),
        lists(json!({ "type": "string", "minLength": 1_000 })),
        lists(json!({ "const": "x".repeat(90_000) })),
        lists(json!({ "type": "array", "minItems": 1_000 })),
        lists(json!({ "type": "object", "required": names })),
    ] {
        let schema = json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] });
        let arguments = ArgumentValidator::new(&schema).expect("a schema");
        let refused = arguments.validate("{}").expect_err("a is missing");
        assert_eq!(reasons(&refused), ["/a missing_required"]);
        assert!(refused.errors[0].example.is_none());
    }
    let choice = json!({ "type": "array", "uniqueItems": true, "minItems": 900, "items": { "enum": names } });
    let example = weir_contracts::validate::example(&choice).expect("an example");
    assert_eq!(example.as_array().map(Vec::len), Some(900));
}

#[test]
fn a_refusal_holds_no_long_examples() {
    let list = json!({ "type": "array", "minItems": 100, "items": { "type": "string", "minLength": 1_000 } });
    let names: Vec<String> = (0..30).map(|number| format!("n{number}")).collect();
    let properties: Map<String, Value> = names
        .iter()
        .map(|name| (name.clone(), list.clone()))
        .collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    let arguments = ArgumentValidator::new(&schema).expect("a schema");
    let refused = arguments.validate("{}").expect_err("nothing is there");
    let bytes = refused.structured_content().to_json().len();
    assert!(bytes < 64 << 10, "{bytes} bytes");
}

#[test]
fn patterns_that_look_around_are_judged_while_that_is_cheap() {
    let (arguments, notes) = foreign(&json!({ "type": "string", "pattern": "^(?!.*secret).*$" }));
    assert!(
        notes.contains("beyond that the server alone judges"),
        "{notes}"
    );
    assert!(arguments.validate(r#"{"p":"a word"}"#).is_ok());
    let refused = arguments
        .validate(r#"{"p":"a secret"}"#)
        .expect_err("it is excluded");
    assert_eq!(reasons(&refused)[0], "/p pattern_mismatch");
    assert!(
        refused.text().contains("must match ^(?!.*secret).*$"),
        "{}",
        refused.text()
    );

    // Of a text that takes exponential or quadratic time the server has the last word.
    let exponential = json!({ "type": "string", "pattern": "^(?:(?=a)a|aa)+$" });
    let quadratic = json!({ "type": "string", "pattern": "(?<=a)(a|aa)+$" });
    for (pattern, lengths) in [
        (&exponential, [40, 4_000, 20_000]),
        (&quadratic, [20_000; 3]),
    ] {
        let (arguments, _) = foreign(pattern);
        assert!(arguments.validate(r#"{"p":"aaa"}"#).is_ok());
        assert!(arguments.validate(r#"{"p":"aab"}"#).is_err());
        for length in lengths {
            let text = format!("{{\"p\":\"{}b\"}}", "a".repeat(length));
            assert!(arguments.validate(&text).is_ok(), "{length} characters");
        }
    }
    // The budget is the call's: many texts together get no more than one.
    let (arguments, _) = foreign(&json!({ "items": exponential }));
    let text = format!("\"{}b\",", "a".repeat(60)).repeat(20_000);
    assert!(
        arguments
            .validate(&format!("{{\"p\":[{text}\"aa\"]}}"))
            .is_ok()
    );
    assert!(arguments.validate(r#"{"p":["ab"]}"#).is_err());
}

#[test]
fn members_named_by_a_pattern_that_looks_around_are_left_to_the_server() {
    let (arguments, notes) = foreign(&json!({
        "type": "object", "patternProperties": { "^(?!x)": { "type": "integer" } }, "additionalProperties": false,
    }));
    assert!(notes.contains("the server alone judges"), "{notes}");
    assert!(arguments.validate(r#"{"p":{"xa":1,"a":"b"}}"#).is_ok());
    assert!(arguments.validate(r#"{"p":1}"#).is_err());
}

#[test]
fn our_own_patterns_run_in_linear_time() {
    for pattern in ["(?<=a)(a|aa)+$", "^(?!x)", "(a)\\1"] {
        let schema = json!({ "type": "object", "properties": { "p": { "type": "string", "pattern": pattern } } });
        assert!(ArgumentValidator::new(&schema).is_err(), "{pattern}");
    }
    for pattern in ["(a|aa)+$", "^(a|a)*$", "^(.*a){20}$"] {
        let schema = json!({ "type": "object", "properties": { "p": { "type": "string", "pattern": pattern } } });
        let arguments = ArgumentValidator::new(&schema).expect("a schema");
        let text = format!("{{\"p\":\"{}b\"}}", "a".repeat(100_000));
        assert!(arguments.validate(&text).is_err(), "{pattern}");
    }
}

/// The engine goes through each byte once, and at worst through all states of the pattern with it.
#[test]
fn a_long_text_costs_as_many_steps_as_its_patterns_have_states() {
    let mut state = 1_u32;
    let mut letter = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if state >> 31 == 0 { 'a' } else { 'b' }
    };
    let long: String = (0..3_900_000).map(|_| letter()).collect();
    let many_states = json!("^[ab]*a[ab]{400}c$");
    let by_value = json!({ "type": "object", "properties": { "p": { "pattern": many_states } } });
    let by_names = json!({ "type": "object", "properties": { "p": { "propertyNames": { "pattern": many_states } } } });
    let by_patterns = json!({ "type": "object", "properties": { "p": { "patternProperties": {
        "^[ab]*a[ab]{400}c$": { "type": "integer" },
    } } } });
    let as_value = |text: &str| json!({ "p": text }).to_string();
    let as_name = |text: &str| json!({ "p": { text: 1 } }).to_string();
    for (schema, arguments) in [
        (by_value, &as_value as &dyn Fn(&str) -> String),
        (by_names, &as_name),
        (by_patterns, &as_name),
    ] {
        let checked = ArgumentValidator::new(&schema).expect("a schema");
        let costly = arguments(&long);
        assert!(checked.is_heavy(&costly), "{schema}");
        let refused = checked.validate(&costly).expect_err("too many steps");
        assert_eq!(reasons(&refused), [" too_costly"], "{schema}");
        let match_of_it = format!("a{}c", "b".repeat(400));
        assert!(
            checked.validate(&arguments(&match_of_it)).is_ok(),
            "{schema}"
        );
    }
    // So do many short ones.
    let items = json!({ "type": "array", "items": { "pattern": "^[ab]*a?[ab]{0,400}$" } });
    let schema = json!({ "type": "object", "properties": { "p": items } });
    let checked = ArgumentValidator::new(&schema).expect("a schema");
    let short = json!({ "p": vec!["ab".repeat(31); 60_000] }).to_string();
    let refused = checked.validate(&short).expect_err("too many steps");
    assert_eq!(reasons(&refused), [" too_costly"]);
    let few_states = json!({ "type": "object", "properties": { "p": { "pattern": "^[ab]*$" } } });
    let checked = ArgumentValidator::new(&few_states).expect("a schema");
    assert!(checked.validate(&as_value(&long)).is_ok());
}
