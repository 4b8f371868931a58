//! Removes arguments that the overlay sets from the schema, and applies the conditions that depend on them.

use serde_json::{Map, Value};

use crate::{
    keyword::SHARED,
    name,
    reference::{pointed_from, write_out_reference},
    schema::add_to_all_of,
    validate::foreign_validator,
    walk,
};

/// Keywords that look at several arguments at once in ways that are not untangled here.
const TANGLED: [&str; 5] = ["not", "if", "then", "else", "dependentSchemas"];

/// Takes the argument out of the root's properties. `root` has no reference at its root.
pub fn bind(root: &mut Value, argument: &str, value: &Value) -> Result<(), String> {
    let whole = root.clone();
    let Value::Object(members) = root else {
        return Err(unknown(argument, &whole));
    };
    let shown = name::quoted(argument);
    let Some(own) = properties(&whole)
        .into_iter()
        .find(|(name, _)| *name == argument)
        .map(|(_, schema)| schema)
    else {
        return Err(unknown(argument, &whole));
    };
    // The alternatives themselves determine which of them the value chooses.
    let in_root = members
        .get("properties")
        .and_then(|properties| properties.get(argument))
        .is_some();
    if in_root && !fits(value, own, &whole) {
        return Err(format!(
            "the value that is set does not fit the schema of the argument {shown}"
        ));
    }
    drop_argument(members, argument, value, &whole)?.then_some(()).ok_or_else(|| {
        format!("the value that is set for {shown} fits none of the alternatives at the root of the input")
    })
}

/// Returns `false` if nothing that has the value is left.
fn drop_argument(
    members: &mut Map<String, Value>,
    argument: &str,
    value: &Value,
    root: &Value,
) -> Result<bool, String> {
    let is_about_it = |keyword: &&&str| {
        members
            .get(**keyword)
            .is_some_and(|rule| mentions(rule, argument))
    };
    if let Some(tangled) = TANGLED.iter().find(is_about_it) {
        let shown = name::quoted(argument);
        return Err(format!(
            "the argument {shown} cannot be set, since `{tangled}` in the input is about it"
        ));
    }
    if let Some(Value::Object(properties)) = members.get_mut("properties")
        && let Some(schema) = properties.shift_remove(argument)
        && !fits(value, &schema, root)
    {
        return Ok(false);
    }
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.retain(|name| name != argument);
        if required.is_empty() {
            members.shift_remove("required");
        }
    }
    if let Some(Value::Object(mut dependent)) = members.shift_remove("dependentRequired") {
        if let Some(Value::Array(names)) = dependent.shift_remove(argument) {
            let required = members
                .entry("required")
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(required) = required {
                required.extend(names.into_iter().filter(|name| name != argument));
                let mut once = Vec::new();
                required.retain(|name| {
                    !once.contains(name) && {
                        once.push(name.clone());
                        true
                    }
                });
            }
        }
        for names in dependent.values_mut() {
            if let Value::Array(names) = names {
                names.retain(|name| name != argument);
            }
        }
        if !dependent.is_empty() {
            members.insert("dependentRequired".to_owned(), Value::Object(dependent));
        }
    }
    for keyword in ["minProperties", "maxProperties"] {
        if let Some(count) = members.get(keyword).and_then(Value::as_u64) {
            members.insert(keyword.to_owned(), count.saturating_sub(1).into());
        }
    }
    drop_in_arms(members, argument, value, root)
}

/// Takes the argument out of every alternative, and leaves out those that its value does not choose. Returns `false` if
/// nothing that has the value is left.
fn drop_in_arms(
    members: &mut Map<String, Value>,
    argument: &str,
    value: &Value,
    root: &Value,
) -> Result<bool, String> {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let Some(Value::Array(arms)) = members.get_mut(keyword) else {
            continue;
        };
        let before = arms.len();
        let mut chosen = Vec::new();
        for mut arm in std::mem::take(arms) {
            write_out_reference(&mut arm, root);
            let is_chosen = match &mut arm {
                Value::Object(arm) => drop_argument(arm, argument, value, root)?,
                _ => true,
            };
            if is_chosen {
                chosen.push(arm);
            }
        }
        let is_possible = if keyword == "allOf" {
            chosen.len() == before
        } else {
            !chosen.is_empty()
        };
        if !is_possible {
            return Ok(false);
        }
        if chosen.len() == 1 && before > 1 {
            members.shift_remove(keyword);
            chosen
                .into_iter()
                .for_each(|arm| add_to_all_of(members, arm));
        } else {
            *arms = chosen;
        }
    }
    Ok(true)
}

/// Returns every property that the root or one of its alternatives names.
pub fn properties(root: &Value) -> Vec<(&str, &Value)> {
    let mut found = Vec::new();
    let mut open = vec![root];
    let mut visited = 0;
    while let Some(schema) = open.pop() {
        visited += 1;
        if visited > 1_000 {
            break;
        }
        let own = walk::members(schema.get("properties"));
        found.extend(own.map(|(name, schema)| (name.as_str(), schema)));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            open.extend(walk::elements(schema.get(keyword)).iter());
        }
        open.extend(pointed_from(root, schema));
    }
    found
}

fn unknown(argument: &str, root: &Value) -> String {
    let names: Vec<&str> = properties(root).into_iter().map(|(name, _)| name).collect();
    let shown = name::quoted(argument);
    match name::nearest(argument, names.iter().copied()) {
        Some(near) => format!(
            "the tool has no argument {shown} to set; it has {}",
            name::quoted(near)
        ),
        None => format!("the tool has no argument {shown} to set"),
    }
}

fn fits(value: &Value, schema: &Value, root: &Value) -> bool {
    let Value::Object(members) = schema else {
        return schema != &Value::Bool(false);
    };
    let mut alone = members.clone();
    for keyword in SHARED {
        if let Some(schemas) = root.get(keyword) {
            alone.insert(keyword.to_owned(), schemas.clone());
        }
    }
    // References into other properties cannot be followed from here; the server judges the value itself.
    foreign_validator(&Value::Object(alone)).map_or(true, |validator| validator.is_valid(value))
}

fn mentions(rule: &Value, argument: &str) -> bool {
    match rule {
        Value::String(text) => text == argument,
        Value::Array(rules) => rules.iter().any(|rule| mentions(rule, argument)),
        Value::Object(members) => members
            .iter()
            .any(|(name, rule)| name == argument || mentions(rule, argument)),
        _ => false,
    }
}
