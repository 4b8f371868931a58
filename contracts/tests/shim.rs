//! Shims between two versions: what is read off their difference, what an operator writes, and what the diff says of both.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use weir_contracts::{
    CollectionShape, CompiledContract, ContractVersion, compile, form,
    shim::{VersionShim, derive},
};

#[test]
fn a_column_with_another_name_is_read_off_the_difference() {
    let old = contract(|_, _| {});
    let new = contract(|file, shape| {
        shape["fields"][1]["key"] = "surname".into();
        file["collections"]["people"]["columns"][1] = "surname".into();
        file["tools"][0]["fields"][1]["name"] = "surname".into();
    });
    let shim = derive(&old, &new).expect("a shim");
    assert_eq!(shim.fits(&old, &new), Ok(()), "{shim:#?}");
    let (up, down) = shim.tools["list"].conversions().expect("a shim");
    let mut arguments = json!({ "id": 7, "name": "nobody" });
    up.up(&mut arguments);
    assert_eq!(arguments, json!({ "id": 7, "surname": "nobody" }));
    let mut result = json!({ "records": [{ "id": 7, "surname": "Ada" }], "next": null });
    down.down(&mut result);
    assert_eq!(
        result,
        json!({ "records": [{ "id": 7, "name": "Ada" }], "next": null })
    );
}

#[test]
fn values_and_tools_are_read_off_the_difference() {
    let old = contract(|file, _| {
        choices(file, &["open_case", "closed_case"]);
    });
    let new = contract(|file, _| {
        file["tools"][0]["tool"] = "list_all".into();
        choices(file, &["open_cases", "closed_case"]);
    });
    let shim = derive(&old, &new).expect("a shim");
    assert_eq!(shim.new_name("list"), "list_all");
    let (up, _) = shim.tools["list"].conversions().expect("a shim");
    let mut arguments = json!({ "name": "open_case" });
    up.up(&mut arguments);
    assert_eq!(arguments["name"], "open_cases");
    assert_eq!(shim.fits(&old, &new), Ok(()), "{shim:#?}");
}

/// The default of the old version is what an absent argument meant there.
#[test]
fn the_old_default_stays() {
    let default = |value: i64| {
        move |file: &mut Value, _: &mut Value| {
            file["tools"][0]["fields"][0]["default"] = value.into();
        }
    };
    let (old, new) = (contract(default(1)), contract(default(2)));
    let shim = derive(&old, &new).expect("a shim");
    let (up, _) = shim.tools["list"].conversions().expect("a shim");
    let mut arguments = json!({});
    up.up(&mut arguments);
    assert_eq!(arguments, json!({ "id": 1 }));
    assert_eq!(shim.fits(&old, &new), Ok(()));
}

/// An update demands one member beside its key, by whichever name.
#[test]
fn the_column_of_an_update_has_another_name() {
    let update = |name: &str, is_required: bool| {
        contract(|file, shape| {
            shape["fields"][1] = json!({ "key": name, "type": "string", "nullable": true });
            let people = &mut file["collections"]["people"];
            people["columns"][1] = name.into();
            people["write"] = true.into();
            let field = match is_required {
                true => json!({ "name": name, "type": "text", "required": true }),
                false => json!({ "name": name, "type": "text", "nullable": true }),
            };
            let key = json!({ "name": "id", "type": "number", "required": true });
            file["tools"][0] = json!({
                "tool": "list", "description": "Changes one.", "verb": "update", "collection": "people",
                "fields": [key, field],
            });
        })
    };
    for is_required in [true, false] {
        let [old, new] = ["town_code", "town_codes"].map(|name| update(name, is_required));
        let input = old.tools[0].input_schema.value();
        assert_eq!(input["minProperties"], 2, "an update bounds its members");
        let shim = derive(&old, &new).expect("a shim");
        assert_eq!(shim.fits(&old, &new), Ok(()), "{shim:#?}");
        let (up, _) = shim.tools["list"].conversions().expect("a shim");
        let mut arguments = json!({ "id": 7, "town_code": "OSL" });
        up.up(&mut arguments);
        assert_eq!(arguments, json!({ "id": 7, "town_codes": "OSL" }));
        if !is_required {
            let mut arguments = json!({ "id": 7, "clear": ["town_code"] });
            up.up(&mut arguments);
            assert_eq!(arguments, json!({ "id": 7, "clear": ["town_codes"] }));
        }
    }
}

/// The number of members is bounded in both versions, and no step leaves a value with fewer than the new version demands.
#[test]
fn a_bound_on_the_number_of_members_holds_through_a_shim() {
    let bounded = |names: &[&str], required: &[&str], least: u32, is_closed: bool| {
        let member = json!({ "type": "integer" });
        let properties = names
            .iter()
            .map(|name| ((*name).to_owned(), member.clone()));
        let mut contract = tool("input", properties.collect(), required);
        let tool = Arc::make_mut(&mut contract.tools[0]);
        let mut schema = tool.input_schema.value();
        schema["minProperties"] = least.into();
        if is_closed {
            schema["additionalProperties"] = false.into();
        }
        tool.input_schema = schema.into();
        contract
    };
    let rename = json!({ "rename": { "at": "/a", "to": "fresh" } });
    let set = json!({ "set": { "at": "/c", "value": 1 } });
    let fit = |step: &Value, old: &CompiledContract, new: &CompiledContract| {
        shim("input", step).fits(old, new)
    };
    let old = bounded(&["id", "a", "b"], &["id"], 2, true);
    let new = |least| bounded(&["id", "fresh", "b"], &["id"], least, true);
    assert_eq!(fit(&rename, &old, &new(2)), Ok(()));
    assert!(fit(&rename, &old, &new(3)).is_err(), "two are too few");
    // In an open object, a member with the new name is another one, and is left out.
    let [old, new] = [["id", "a"], ["id", "fresh"]].map(|names| bounded(&names, &["id"], 2, false));
    let why = fit(&rename, &old, &new).expect_err("one may be left out");
    assert!(why.contains("minProperties"), "{why}");
    // What is put in counts, if the others are there in any case.
    let old = bounded(&["id", "a"], &["id", "a"], 2, true);
    let new = |required: &[&str]| bounded(&["id", "a", "c"], required, 3, true);
    assert_eq!(fit(&set, &old, &new(&["id", "a", "c"])), Ok(()));
    let old = bounded(&["id", "a"], &["id"], 1, true);
    assert!(fit(&set, &old, &new(&["id", "c"])).is_err());
}

#[test]
fn where_the_difference_does_not_show_a_name_an_operator_says_it() {
    let old = contract(|_, _| {});
    let new = contract(|file, shape| {
        shape["fields"][1]["key"] = "xq".into();
        file["collections"]["people"]["columns"][1] = "xq".into();
        file["tools"][0]["fields"][1]["name"] = "zz".into();
        file["tools"][0]["fields"][1]["column"] = "xq".into();
        file["tools"][0]["fields"][0]["required"] = true.into();
    });
    let shim = derive(&old, &new).expect("a shim");
    assert!(shim.fits(&old, &new).is_err(), "{shim:#?}");
    let shim = json!({ "tools": { "list": {
        "input": [{ "rename": { "at": "/name", "to": "zz" } }, { "set": { "at": "/id", "value": 7 } }],
        "output": [{ "rename": { "at": "/records/*/name", "to": "xq" } }],
    } } });
    let shim = VersionShim::read(&shim).expect("a shim");
    assert_eq!(shim.fits(&old, &new), Ok(()));
}

/// What leads to one version, and from there to the next, is one conversion with the steps of both.
#[test]
fn two_shims_are_one_that_converts_as_both_do() {
    let shim = |steps: Value| VersionShim::read(&json!({ "tools": { "t": steps } }));
    let first = shim(json!({
        "input": [
            { "rename": { "at": "/price", "to": "cost" } },
            { "value": { "at": "/state", "from": "open", "to": "opened" } },
            { "set": { "at": "/region", "value": { "code": "IS" } } },
            { "rename": { "at": "/lines/*/sum", "to": "total" } },
        ],
        "output": [
            { "rename": { "at": "/records/*/price", "to": "cost" } },
            { "set": { "at": "/kind", "value": "old" } },
        ],
    }));
    let second = VersionShim::read(&json!({ "tools": { "t": {
        "name": "u",
        "input": [
            { "rename": { "at": "/cost", "to": "amount" } },
            { "rename": { "at": "/state", "to": "status" } },
            { "value": { "at": "/state", "from": "opened", "to": "is_open" } },
            { "rename": { "at": "/region", "to": "area" } },
            { "rename": { "at": "/region/code", "to": "iso" } },
            { "rename": { "at": "/lines/*/total", "to": "sum" } },
            { "set": { "at": "/unit", "value": "EUR" } },
        ],
        "output": [
            { "rename": { "at": "/records", "to": "rows" } },
            { "rename": { "at": "/records/*/cost", "to": "amount" } },
            { "set": { "at": "/kind", "value": "middle" } },
            { "set": { "at": "/next", "value": null } },
        ],
    } } }));
    let (first, second) = (first.expect("a shim"), second.expect("a shim"));
    let old = tool("input", json!({}), &[]);
    let both = first.compose(&old, &second).expect("a shim");
    assert_eq!(both.new_name("t"), "u");
    let conversions = |shim: &VersionShim| shim.tools["t"].conversions().expect("a shim");
    let (of_first, of_second) = (conversions(&first), conversions(&second));
    let of_both = conversions(&both);

    let arguments = json!({ "price": 7, "state": "open", "lines": [{ "sum": 1 }] });
    let (mut at_once, mut in_turn) = (arguments.clone(), arguments);
    of_first.0.up(&mut in_turn);
    of_second.0.up(&mut in_turn);
    of_both.0.up(&mut at_once);
    let wanted = json!({
        "amount": 7, "status": "is_open", "area": { "iso": "IS" }, "lines": [{ "sum": 1 }], "unit": "EUR",
    });
    assert_eq!((&at_once, &in_turn), (&wanted, &wanted), "{both:#?}");

    let result = json!({ "rows": [{ "amount": 7 }] });
    let (mut at_once, mut in_turn) = (result.clone(), result);
    of_second.1.down(&mut in_turn);
    of_first.1.down(&mut in_turn);
    of_both.1.down(&mut at_once);
    let wanted = json!({ "records": [{ "price": 7 }], "kind": "old", "next": null });
    assert_eq!((&at_once, &in_turn), (&wanted, &wanted), "{both:#?}");
}

/// Neither difference shows the names, so that both steps are an operator's.
#[test]
fn a_shim_over_two_changes_fits_where_none_can_be_read_off() {
    let named = |column: &str| {
        contract(|file, shape| {
            shape["fields"][1]["key"] = column.into();
            file["collections"]["people"]["columns"][1] = column.into();
            file["tools"][0]["fields"][1]["name"] = column.into();
        })
    };
    let [first, second, third] = ["name", "xq", "weight"].map(named);
    let renaming = |from: &str, to: &str| {
        let shim = json!({ "tools": { "list": {
            "input": [{ "rename": { "at": format!("/{from}"), "to": to } }],
            "output": [{ "rename": { "at": format!("/records/*/{from}"), "to": to } }],
        } } });
        VersionShim::read(&shim).expect("a shim")
    };
    let (one, two) = (renaming("name", "xq"), renaming("xq", "weight"));
    assert_eq!(one.fits(&first, &second), Ok(()));
    assert_eq!(two.fits(&second, &third), Ok(()));
    assert!(one.fits(&first, &third).is_err());
    let both = one.compose(&first, &two).expect("a shim");
    assert_eq!(both, renaming("name", "weight"));
    assert_eq!(both.fits(&first, &third), Ok(()));
}

#[test]
fn a_shim_that_does_not_do_says_why() {
    let old = contract(|_, _| {});
    let narrower = contract(|file, _| {
        file["tools"][0]["fields"][1]["max_length"] = 2.into();
    });
    let why = VersionShim::default()
        .fits(&old, &narrower)
        .expect_err("it breaks");
    assert!(
        why.contains("list") && why.contains("input-tightened"),
        "{why}"
    );
    let other = contract(|file, _| {
        file["tools"][0]["tool"] = "count_of_all".into();
        file["tools"][0]["verb"] = "count".into();
    });
    let why = derive(&old, &other)
        .expect("a shim")
        .fits(&old, &other)
        .expect_err("a tool less");
    assert!(why.contains("tool-removed"), "{why}");
    for (steps, message) in [
        (
            json!([{ "rename": { "at": "/name", "to": "there_is_none" } }]),
            "there is no 'there_is_none' in the new version",
        ),
        (
            json!([{ "set": { "at": "/id", "value": "text" } }]),
            "'id' cannot have the value \"text\"",
        ),
        (
            json!([{ "value": { "at": "/id", "from": "a", "to": "b" } }]),
            "no values are listed at its place",
        ),
    ] {
        let shim = json!({ "tools": { "list": { "input": steps } } });
        let shim = VersionShim::read(&shim).expect("a shim");
        let why = shim.fits(&old, &old).expect_err("it cannot be made");
        assert!(why.contains(message), "{why}");
    }
}

#[test]
fn what_is_no_shim_is_refused_with_its_place() {
    for (shim, message) in [
        (json!(3), "the shim at /: "),
        (json!({ "tool": {} }), "unknown field `tool`"),
        (
            json!({ "tools": { "list": { "input": [{ "rename": { "at": "name", "to": "x" } }] } } }),
            "the shim of 'list': the step at 'name': it does not begin with /",
        ),
        (
            json!({ "tools": { "list": { "input": [
                { "rename": { "at": "/a", "to": "x" } }, { "rename": { "at": "/b", "to": "x" } },
            ] } } }),
            "the step at '/b': another step says something else",
        ),
    ] {
        let why = VersionShim::read(&shim).expect_err("no shim");
        assert!(why.contains(message), "{why}");
    }
    let written = json!({ "tools": { "list": { "name": "l", "input": [
        { "set": { "at": "/a", "value": [1] } }, { "value": { "at": "/b/*", "from": "x", "to": "y" } },
    ] } } });
    let read = VersionShim::read(&written).expect("a shim");
    assert_eq!(serde_json::to_value(&read).expect("plain data"), written);
}

/// Each of these tools changes in a way that a step is suggested for, and cannot be made.
#[test]
fn too_many_steps_that_cannot_be_made_are_reported() {
    let with_defaults = |default: i64, max: i64, tools: usize| {
        contract(|file, _| {
            let mut one = file["tools"][0].clone();
            one["fields"][0]["max"] = max.into();
            one["fields"][0]["default"] = default.into();
            let named = |number: usize| {
                let mut tool = one.clone();
                tool["tool"] = format!("list_{number}").into();
                tool
            };
            file["tools"] = (0..tools).map(named).collect();
        })
    };
    let (few, many) = (3, 1_001);
    let (old, new) = (with_defaults(9, 9, few), with_defaults(1, 5, few));
    assert_eq!(derive(&old, &new), Ok(VersionShim::default()));
    let (old, new) = (with_defaults(9, 9, many), with_defaults(1, 5, many));
    let why = derive(&old, &new).expect_err("a bound");
    assert!(
        why.contains("more than 1000 steps are not possible; write the shim"),
        "{why}"
    );
}

/// A step that cannot be made leaves all the others of its tool.
#[test]
fn steps_beside_one_that_cannot_be_made_are_found() {
    let fields = |names: [&str; 3], default: i64, max: i64| {
        contract(|file, shape| {
            let text = |name| json!({ "key": name, "type": "string" });
            let texts = names.map(text);
            shape["fields"] =
                json!([{ "key": "id", "type": "integer" }, texts[0], texts[1], texts[2]]);
            file["collections"]["people"]["columns"] = json!(["id", names[0], names[1], names[2]]);
            let mut all =
                vec![json!({ "name": "id", "type": "number", "default": default, "max": max })];
            all.extend(names.map(|name| json!({ "name": name, "type": "text" })));
            file["tools"][0]["fields"] = json!(all);
        })
    };
    let old = fields(["name", "town_code", "street"], 9, 9);
    let new = fields(["surname", "town_codes", "street"], 1, 5);
    let shim = derive(&old, &new).expect("a shim");
    let input = &shim.tools["list"].input;
    assert!(!input.is_empty(), "{shim:#?}");
    assert!(
        input
            .iter()
            .all(|step| matches!(step, weir_contracts::shim::ShimStep::Rename { .. })),
        "{shim:#?}"
    );
}

/// A member that the new version demands and does not describe is another one than that of the old name.
#[test]
fn a_member_that_took_an_old_name_and_must_be_there_is_not_given() {
    let step = json!({ "rename": { "at": "/b", "to": "fresh" } });
    let fit = |side, required: &[&str]| {
        let member = json!({ "type": "integer" });
        let old = tool(side, json!({ "b": member }), &["b"]);
        let new = tool(side, json!({ "fresh": member }), required);
        shim(side, &step).fits(&old, &new)
    };
    let why = fit("input", &["fresh", "b"]).expect_err("no b");
    assert!(why.contains("'b' must be there"), "{why}");
    // Of results, it does not stand for the member that was renamed.
    let why = fit("output", &["b"]).expect_err("no fresh");
    assert!(why.contains("'b' may be left out"), "{why}");
}

/// What else a schema says of a text is said of the text of its own version.
#[test]
fn another_value_is_held_against_what_else_the_schema_says() {
    let fit = |side, from: &str, to: &str, bounded_is_old: bool| {
        let free = |value: &str| json!({ "enum": [value, "b"] });
        let bounded = |value: &str| json!({ "enum": [value, "b"], "anyOf": [{ "maxLength": 1 }, { "type": "null" }] });
        let (old, new) = match bounded_is_old {
            true => (bounded(from), free(to)),
            false => (free(from), bounded(to)),
        };
        let contract = |kind: Value| tool(side, json!({ "kind": kind }), &[]);
        let step = json!({ "value": { "at": "/kind", "from": from, "to": to } });
        shim(side, &step).fits(&contract(old), &contract(new))
    };
    assert_eq!(fit("input", "long_word", "c", false), Ok(()));
    for why in [
        fit("input", "c", "long_word", false),
        fit("output", "long_word", "c", true),
    ] {
        let why = why.expect_err("too long");
        assert!(why.contains("/properties/kind"), "{why}");
    }
}

#[test]
fn items_that_have_to_differ_never_become_the_same() {
    let step = json!({ "value": { "at": "/kinds/*", "from": "a", "to": "b" } });
    let fit = |side, old: Value, new: Value| {
        let list = |values: Value| {
            let kinds =
                json!({ "type": "array", "uniqueItems": true, "items": { "enum": values } });
            tool(side, json!({ "kinds": kinds }), &[])
        };
        shim(side, &step).fits(&list(old), &list(new))
    };
    for side in ["input", "output"] {
        assert_eq!(fit(side, json!(["a"]), json!(["b"])), Ok(()), "{side}");
    }
    let why = fit("input", json!(["a", "b"]), json!(["b"]));
    assert!(why.expect_err("a and b").contains("enum"));
    let why = fit("output", json!(["a", "b"]), json!(["a", "b"]));
    assert!(why.expect_err("a twice").contains("become the same"));
}

/// Makes a contract of one tool that takes or answers what the schema says.
fn tool(side: &str, properties: Value, required: &[&str]) -> CompiledContract {
    let any = json!({ "type": "object" });
    let mut tool = json!({
        "name": "t", "description": "", "input_schema": any, "output_schema": any, "annotations": {},
        "offer": { "maker": { "plugin": "p" }, "name": "t" },
    });
    tool[format!("{side}_schema")] =
        json!({ "type": "object", "properties": properties, "required": required });
    let contract = json!({ "name": "c", "version": ContractVersion::FIRST, "collections": [], "tools": [tool] });
    serde_json::from_value(contract).expect("a contract")
}

fn shim(side: &str, step: &Value) -> VersionShim {
    let shim = json!({ "tools": { "t": { side: [step] } } });
    VersionShim::read(&shim).expect("a shim")
}

fn choices(file: &mut Value, choices: &[&str]) {
    let field = &mut file["tools"][0]["fields"][1];
    field["type"] = "dropdown".into();
    field["choices"] = json!(choices);
}

fn contract(change: impl FnOnce(&mut Value, &mut Value)) -> CompiledContract {
    let mut file = json!({
        "contract": "staff",
        "collections": { "people": {
            "adapter": "sql", "settings": { "connection": "db", "table": "people" },
            "columns": ["id", "name"], "key": ["id"],
        } },
        "tools": [{ "tool": "list", "description": "Lists them.", "verb": "list", "collection": "people", "fields": [
            { "name": "id", "type": "number" }, { "name": "name", "type": "text" },
        ] }],
    });
    let mut shape = json!({ "name": "people", "key": ["id"], "fields": [
        { "key": "id", "type": "integer" }, { "key": "name", "type": "string" },
    ] });
    change(&mut file, &mut shape);
    let shape = CollectionShape::read(&shape.to_string()).expect("a shape");
    let source = form::read("-", &file.to_string()).unwrap_or_else(|why| panic!("{why:#?}"));
    compile(&source, &BTreeMap::from([("people".to_owned(), shape)]))
        .unwrap_or_else(|problems| panic!("{problems:#?}"))
}
