//! Schemas that explode, and those that only look like it.

use serde_json::{Value, json};

use super::{STEPS_MAX, SchemaCost, ValueSteps};

/// A chain of definitions, each of which names the next one as often as `refer` does.
fn chain(length: usize, refer: impl Fn(&Value) -> Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for number in 0..length {
        let next = json!({ "$ref": format!("#/$defs/d{}", number + 1) });
        definitions.insert(format!("d{number}"), refer(&next));
    }
    definitions.insert(format!("d{length}"), json!({ "type": "string" }));
    json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": definitions })
}

/// A schema within itself, in `arms` alternatives that `arm` makes.
fn recursive(arms: usize, arm: impl Fn(usize, &Value) -> Value) -> Value {
    let again = json!({ "$ref": "#/$defs/node" });
    let arms: Vec<Value> = (0..arms).map(|number| arm(number, &again)).collect();
    json!({ "type": "object", "properties": { "a": again }, "$defs": { "node": { "oneOf": arms } } })
}

fn plain_arm(number: usize, again: &Value) -> Value {
    json!({ "type": "object", "properties": { "n": again, "x": { "const": number } } })
}

fn keyed_arm(number: usize, again: &Value) -> Value {
    let kind = json!({ "const": format!("k{number}") });
    json!({ "type": "object", "properties": { "n": again, "kind": kind }, "required": ["kind"] })
}

fn check_steps(schema: &Value, depth: usize) -> u64 {
    let cost = SchemaCost::measure(schema).expect("it is accepted");
    cost.at_depth(depth).check
}

#[test]
fn schemas_that_apply_another_one_exponentially_often_are_refused() {
    let schemas = [
        chain(30, |next| json!({ "allOf": [next, next] })),
        chain(30, |next| json!({ "anyOf": [next, next] })),
        chain(30, |next| json!({ "not": next, "if": next })),
        chain(
            30,
            |next| json!({ "$ref": next["$ref"], "dependentSchemas": { "b": next } }),
        ),
        chain(
            30,
            |next| json!({ "allOf": [{ "$ref": next["$ref"] }], "unevaluatedProperties": false }),
        ),
        recursive(20, plain_arm),
        recursive(
            20,
            |number, again| json!({ "type": "array", "items": again, "maxItems": number }),
        ),
        recursive(
            20,
            |number, again| json!({ "additionalProperties": again, "maxProperties": number }),
        ),
        recursive(
            20,
            |number, again| json!({ "contains": again, "maxItems": number }),
        ),
    ];
    for schema in schemas {
        let why = SchemaCost::measure(&schema).expect_err(&schema.to_string());
        assert!(why.contains(" at /"), "it names the place: {why}");
        assert!(why.contains(&STEPS_MAX.to_string()), "and the bound: {why}");
    }
}

/// A chain of definitions, each of which names the next one twice by its anchor.
fn anchored_chain() -> Value {
    let mut anchored = json!({});
    for level in 0..30 {
        let next = json!({ "$ref": format!("#d{}", level + 1) });
        let definition = json!({ "$anchor": format!("d{level}"), "allOf": [next, next] });
        anchored[format!("d{level}")] = definition;
    }
    anchored["d30"] = json!({ "$anchor": "d30" });
    anchored
}

/// Returns what has the same names and costs nothing.
fn plain_anchors() -> serde_json::Map<String, Value> {
    let plain = |level: u32| {
        (
            format!("d{level}"),
            json!({ "$anchor": format!("d{level}") }),
        )
    };
    (0..30).map(plain).collect()
}

/// What `#/$defs/d0` names in a document inside is not what it names at the root.
#[test]
fn references_lead_into_the_document_that_they_are_written_in() {
    let explodes = chain(30, |next| json!({ "allOf": [next, next] }));
    for (start, definitions) in [
        ("#/$defs/d0", &explodes["$defs"]),
        ("#d0", &anchored_chain()),
    ] {
        let inner = json!({ "$id": "urn:inner", "$ref": start, "$defs": definitions });
        let schema = json!({ "$defs": plain_anchors(), "properties": { "a": inner } });
        let why = SchemaCost::measure(&schema).expect_err("2^30 steps");
        assert!(why.contains(&STEPS_MAX.to_string()), "{why}");
    }
}

/// Cheap schemas before the costly ones have their names, but not in the place that the reference leads to.
#[test]
fn references_do_not_lead_to_what_has_the_same_name_elsewhere() {
    let by_anchor = |first: Value| {
        let all = json!({ "$defs": anchored_chain() });
        json!({ "properties": { "a": { "$ref": "#d0" } }, "$defs": { "first": first, "all": all } })
    };
    let explodes = chain(30, |next| json!({ "allOf": [next, next] }));
    let by_address = json!({
        "$id": "https://example.org/",
        "$ref": "b/start",
        "$defs": {
            "cheap": { "$id": "a/costly", "type": "string" },
            "costly": { "$id": "b/costly", "$ref": "#/$defs/d0", "$defs": explodes["$defs"] },
            "start": { "$id": "b/start", "$ref": "costly" },
        },
    });
    for schema in [
        by_anchor(json!({ "default": plain_anchors() })),
        by_anchor(json!({ "$id": "urn:inner", "$defs": plain_anchors() })),
        by_address,
    ] {
        let why = SchemaCost::measure(&schema).expect_err("2^30 steps");
        assert!(why.contains(&STEPS_MAX.to_string()), "{why}");
    }
}

/// The outermost schema with the name applies, and that may be any of them.
#[test]
fn dynamic_references_cost_what_the_costliest_of_their_name_does() {
    let names: Vec<String> = (0..800).map(|number| format!("n{number}")).collect();
    let of = |keyword: &str, reference: &str| {
        json!({
            "$defs": {
                "first": { "$id": "urn:first", "$dynamicAnchor": "n", "type": "object" },
                "second": { "$id": "urn:second", "$dynamicAnchor": "n", "enum": [names, 1] },
                "plain": { "$id": "urn:plain", "$anchor": "n" },
            },
            "properties": { "a": { keyword: reference } },
        })
    };
    for (keyword, reference) in [
        ("$dynamicRef", "urn:first#n"),
        ("$dynamicRef", "urn:second#n"),
        ("$ref", "urn:first#n"),
    ] {
        let steps = check_steps(&of(keyword, reference), 1);
        assert!((100..200).contains(&steps), "{reference}: {steps} steps");
    }
    // What is no dynamic anchor means itself.
    for reference in ["urn:first", "urn:plain#n"] {
        let steps = check_steps(&of("$dynamicRef", reference), 1);
        assert!(steps < 20, "{reference}: {steps} steps");
    }
}

/// One place may cost little to check, and many of them much to compile.
#[test]
fn what_is_written_out_again_for_each_place_is_counted() {
    let many = |places: usize, of: &dyn Fn(&str) -> Value| {
        let mut schema = chain(6, |next| json!({ "allOf": [next, next, next, next] }));
        for number in 0..places {
            schema["properties"][format!("p{number}")] = of("#/$defs/d0");
        }
        SchemaCost::measure(&schema)
    };
    let closed = |start: &str| json!({ "$ref": start, "unevaluatedProperties": false });
    let union = |start: &str| {
        let arm = |kind: &str| {
            let properties = json!({ "kind": { "const": kind } });
            json!({ "$ref": start, "properties": properties, "required": ["kind"] })
        };
        json!({ "anyOf": [arm("a"), arm("b"), arm("c")] })
    };
    let kinds: [&dyn Fn(&str) -> Value; 2] = [&closed, &union];
    for of in kinds {
        let few = many(2, of);
        assert!(few.is_ok(), "{few:?}");
        let why = many(100, of).expect_err("it takes gigabytes, or minutes");
        assert!(why.contains("compiling it can take"), "{why}");
        assert!(why.contains("for /properties/p"), "{why}");
    }
}

/// Each pattern is within the bound of the engine, and a hundred kilobytes of them took two gigabytes.
#[test]
fn the_patterns_of_a_schema_are_bounded_together() {
    let with = |count: usize, own: &dyn Fn(usize) -> String| {
        let property = |number: usize| (format!("p{number}"), json!({ "pattern": own(number) }));
        let properties: serde_json::Map<String, Value> = (0..count).map(property).collect();
        SchemaCost::measure(&json!({ "properties": properties }))
    };
    let large = |number: usize| format!("x{number}[^a]{{850}}");
    let why = with(500, &large).expect_err("it takes too much memory");
    assert!(why.contains("at most 64 are accepted"), "{why}");
    assert!(with(20, &large).is_ok());
    assert!(with(500, &|_| large(1)).is_ok(), "one is compiled once");
    let usual = |number: usize| format!("^x{number}-[\\w.-]{{1,64}}$");
    assert!(with(500, &usual).is_ok());
}

/// The validator compiles a document inside for each way that leads to it.
#[test]
fn documents_that_refer_to_each_other_in_many_ways_are_refused() {
    let both = |level: usize| {
        let next = |side: &str| json!({ "$ref": format!("{side}{level}") });
        json!({ "x": next("a"), "y": next("b") })
    };
    let of = |levels: usize, id: &str, root: Value| {
        let mut schema = root;
        schema["properties"] = both(0);
        for level in 0..=levels {
            for side in ["a", "b"] {
                let name = format!("{side}{level}");
                let mut document = json!({ id: name });
                if level < levels {
                    document["properties"] = both(level + 1);
                }
                schema["definitions"][name] = document;
            }
        }
        SchemaCost::measure(&schema)
    };
    let newest = json!({ "$id": "https://example.org/" });
    let oldest = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "id": "https://example.org/" });
    for (id, root) in [("$id", newest), ("id", oldest)] {
        let few = of(5, id, root.clone());
        assert!(few.is_ok(), "{few:?}");
        let why = of(30, id, root).expect_err("2^30 ways");
        assert!(why.contains("too many ways"), "{why}");
    }
}

#[test]
fn references_that_never_end_are_refused() {
    let schemas = [
        json!({ "$ref": "#" }),
        json!({ "properties": { "a": { "allOf": [{ "$ref": "#/properties/a" }] } } }),
        json!({ "$defs": { "x": { "$anchor": "x", "not": { "$ref": "#x" } } } }),
    ];
    for schema in schemas {
        let why = SchemaCost::measure(&schema).expect_err("it never ends");
        assert_eq!(why, "a reference leads back to itself");
    }
}

#[test]
fn a_chain_of_references_is_not_longer_than_a_stack_is_deep() {
    let why = SchemaCost::measure(&chain(20_000, Value::clone)).expect_err("it is too long");
    assert!(why.contains(" at /properties/a:"), "{why}");
    assert!(why.contains("at most 2048 may apply"), "{why}");
    assert!(check_steps(&chain(1_000, Value::clone), 1) > 1_000);
    // Each level of the value goes through the whole chain.
    let again = |length: usize| {
        let mut schema = chain(length, |next| json!({ "not": next }));
        schema["$defs"][format!("d{length}")] = json!({ "items": { "$ref": "#/$defs/d0" } });
        SchemaCost::measure(&schema)
    };
    assert!(again(10).is_ok());
    let why = again(20).expect_err("it is too long");
    assert!(why.contains("at most 2048 may apply"), "{why}");
}

/// Returns alternatives that a property tells apart, with lists of further ones in them.
fn keyed_lists(arms: usize, levels: usize) -> Value {
    chain(levels, |next| {
        let arm = |number: usize| {
            let kind = json!({ "const": format!("k{number}") });
            json!({ "properties": { "kind": kind }, "required": ["kind"], "items": next })
        };
        json!({ "anyOf": (0..arms).map(arm).collect::<Vec<_>>() })
    })
}

#[test]
fn a_property_does_not_tell_alternatives_for_a_list_apart() {
    let why = SchemaCost::measure(&keyed_lists(30, 6)).expect_err("30^6 steps");
    assert!(why.contains(" at /"), "{why}");
    let steps = check_steps(&keyed_lists(8, 7), 8);
    assert!(steps > 8_u64.pow(7), "{steps}");
    let mut objects = keyed_lists(8, 7);
    for level in 0..7 {
        let arms = &mut objects["$defs"][format!("d{level}")]["anyOf"];
        let arms = arms.as_array_mut().expect("alternatives").iter_mut();
        arms.for_each(|arm| arm["type"] = json!("object"));
    }
    let steps = check_steps(&objects, 8);
    assert!(steps < 100, "{steps}");
}

#[test]
fn what_is_not_evaluated_is_looked_for_in_the_values_inside() {
    for lists in [
        chain(28, |next| json!({ "unevaluatedItems": next })),
        chain(
            28,
            |next| json!({ "contains": next, "unevaluatedItems": { "type": "boolean" } }),
        ),
    ] {
        let steps = check_steps(&lists, 29);
        assert!(steps > 1 << 28, "{steps} steps: {lists}");
    }
}

#[test]
fn every_value_that_others_are_compared_with_counts() {
    let names: Vec<String> = (0..800).map(|number| format!("n{number}")).collect();
    for schema in [
        json!({ "dependentRequired": { "a": names } }),
        json!({ "enum": [[names], 1] }),
        json!({ "const": { "a": { "b": names } } }),
    ] {
        let steps = check_steps(&schema, 0);
        assert!(steps > 100, "{steps} steps: {schema}");
    }
}

#[test]
fn what_people_write_costs_little() {
    let tree = json!({ "type": "object", "properties": {
        "left": { "$ref": "#" }, "right": { "$ref": "#" }, "children": { "type": "array", "items": { "$ref": "#" } },
    } });
    let json_value = json!({ "anyOf": [
        { "type": ["string", "number", "boolean", "null"] },
        { "type": "array", "items": { "$ref": "#" } },
        { "type": "object", "additionalProperties": { "$ref": "#" } },
    ] });
    let filter = recursive(3, |number, again| {
        let name = ["and", "or", "not"][number];
        json!({ "type": "object", "properties": { name: { "type": "array", "items": again } }, "required": [name] })
    });
    for schema in [tree, json_value, filter, recursive(30, keyed_arm)] {
        let most = check_steps(&schema, 64);
        assert!(most < 500, "{most} steps: {schema}");
    }
}

#[test]
fn a_schema_within_itself_costs_more_with_each_level() {
    let two = recursive(2, plain_arm);
    let steps: Vec<u64> = (0..6).map(|depth| check_steps(&two, depth)).collect();
    assert!(
        steps.windows(2).skip(1).all(|pair| pair[1] >= 2 * pair[0]),
        "{steps:?}"
    );
}

#[test]
fn faults_of_alternatives_cost_what_collecting_them_does() {
    let alternatives = recursive(30, keyed_arm);
    let cost = SchemaCost::measure(&alternatives).expect("it is accepted");
    let ValueSteps { check, report } = cost.at_depth(4);
    assert!(
        report > 100_000 * check,
        "{report} to report, {check} to check"
    );
}
