//! Rewrites schemas that some clients refuse in other forms that mean the same.
//!
//! If the root of an input cannot be written differently, a wider one is published, and arguments are checked
//! against the original.

mod pattern;

use serde_json::{Map, Value, json};

pub use self::pattern::{has_needless_escapes, leave_out_patterns, plain_patterns};
use crate::{
    keyword::{ANNOTATIONS, DEFINITIONS, DEFS, REF, SCHEMA},
    reference::{inline, pointed, pointed_from, stated_in, write_out_reference},
    schema::add_to_all_of,
    walk::{self, SubschemaKind, each_inside_mut},
};

/// Alternatives at a root, including nested ones. More do not help a reader, and references multiply them.
const ALTERNATIVES_MAX: usize = 300;
/// Keywords that neither constrain a value nor annotate it.
const SHARED_PARTS: [&str; 3] = [DEFS, DEFINITIONS, SCHEMA];
/// Keywords that apply further schemas to the same value.
const APPLIED: &[&str] = &[REF, "allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
const NUMERIC: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
const OF_TEXTS: &[&str] = &[
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
];
const OF_LISTS: &[&str] = &[
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
];
const OF_OBJECTS: &[&str] = &[
    "properties",
    "patternProperties",
    "additionalProperties",
    "required",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
];

/// The changes that were made, in words for a report.
#[derive(Default)]
pub struct RewriteReport {
    pub changes: Vec<&'static str>,
}

impl RewriteReport {
    /// Adds a change, unless it is there already.
    pub fn tell(&mut self, what: &'static str) {
        if !self.changes.contains(&what) {
            self.changes.push(what);
        }
    }
}

/// Makes the root a plain object. The error explains why it cannot be one.
pub fn root(schema: &mut Value, lowered: &mut RewriteReport) -> Result<(), String> {
    note_patterns(schema, lowered);
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let whole = schema.clone();
    let Value::Object(members) = schema else {
        return Err("the input takes nothing".to_owned());
    };
    if members.contains_key(REF) {
        refer_from_root(members, &whole);
        lowered.tell("the reference at the root of the input is written out");
    }
    match members.get("type") {
        Some(kind) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {
            members.insert("type".to_owned(), "object".into());
        }
        Some(_) => return Err("the input is not an object, and arguments have names".to_owned()),
        None => {
            let at = usize::from(members.contains_key(SCHEMA));
            members.shift_insert(at, "type".to_owned(), "object".into());
            lowered.tell("`\"type\": \"object\"` is added at the root of the input");
        }
    }
    Ok(())
}

/// Writes out the reference at the root; the schemas that others refer to stay there.
fn refer_from_root(members: &mut Map<String, Value>, whole: &Value) {
    let shared = [DEFS, DEFINITIONS, SCHEMA];
    let mut own: Map<String, Value> = members.clone();
    let kept: Map<String, Value> = shared
        .iter()
        .filter_map(|keyword| Some(((*keyword).to_owned(), own.shift_remove(*keyword)?)))
        .collect();
    let mut alone = Value::Object(own);
    write_out_reference(&mut alone, whole);
    if let Value::Object(alone) = alone {
        *members = alone;
    }
    members.extend(kept);
    if let Some(dialect) = members.shift_remove(SCHEMA) {
        members.shift_insert(0, SCHEMA.to_owned(), dialect);
    }
}

/// Notes patterns that no engine runs in linear time.
fn note_patterns(schema: &Value, lowered: &mut RewriteReport) {
    if !crate::validate::looking_patterns(schema).is_empty() {
        lowered.tell(
            "patterns that look around or refer back are matched with texts of up to 4 KB and for a bounded number of steps; beyond that the server alone judges",
        );
    }
}

/// Lists of types become alternatives, and lists without a rule for their items state that they hold anything.
pub fn inside(schema: &mut Value, lowered: &mut RewriteReport) {
    let Value::Object(members) = schema else {
        return;
    };
    each_inside_mut(members, &mut |schema| inside(schema, lowered));
    write_out_flags(members, lowered);
    if let Some(Value::Array(kinds)) = members.get("type") {
        let kinds: Vec<String> = kinds
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        *members = alternatives(members, &kinds);
        lowered.tell("lists of types are written as `anyOf`");
    }
    if members.get("type").is_some_and(|kind| kind == "array")
        && !["items", "prefixItems", "unevaluatedItems"]
            .iter()
            .any(|keyword| members.contains_key(*keyword))
    {
        members.insert("items".to_owned(), json!({}));
        lowered.tell("lists that do not say what is in them have `\"items\": {}`");
    }
}

/// Leaves out keywords that are null, keywords of another type without effect on a value, and empty lists in places where
/// schemas have names or describe items. Returns `true` if there were any.
pub fn drop_faults(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else {
        return false;
    };
    let before = members.len();
    members.retain(|keyword, value| match keyword.as_str() {
        "default" | "const" => true,
        "title" | "description" | "$comment" => value.is_string(),
        // `"required": true` in a property comes from draft 3.
        "examples" | "required" => value.is_array(),
        // PHP writes an empty object so.
        keyword if keyword == "items" || walk::inside(keyword) == SubschemaKind::Named => {
            !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
        }
        _ => !value.is_null(),
    });
    let mut has_faults = members.len() < before;
    each_inside_mut(members, &mut |schema| has_faults |= drop_faults(schema));
    has_faults
}

/// Rewrites bounds that an adjacent flag makes exclusive, as in draft 4 and OpenAPI 3.0, in the form of all later dialects,
/// where such a flag is a fault. Returns `true` if there were any.
pub fn write_out_exclusive(schema: &mut Value) -> bool {
    let Value::Object(members) = schema else {
        return false;
    };
    let mut has_flags = false;
    for (bound, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        let Some(&Value::Bool(is_exclusive)) = members.get(exclusive) else {
            continue;
        };
        has_flags = true;
        members.shift_remove(exclusive);
        if is_exclusive && let Some(value) = members.shift_remove(bound) {
            members.insert(exclusive.to_owned(), value);
        }
    }
    each_inside_mut(members, &mut |schema| {
        has_flags |= write_out_exclusive(schema);
    });
    has_flags
}

/// Writes properties that take anything, or nothing, as objects.
pub fn plain_properties(schema: &mut Value, lowered: &mut RewriteReport) {
    let Value::Object(members) = schema else {
        return;
    };
    each_inside_mut(members, &mut |schema| plain_properties(schema, lowered));
    write_out_flags(members, lowered);
}

/// Writes the properties of one schema so: some clients refuse a whole list for one that is `true` or `false`.
fn write_out_flags(members: &mut Map<String, Value>, lowered: &mut RewriteReport) {
    let Some(Value::Object(properties)) = members.get_mut("properties") else {
        return;
    };
    for property in properties.values_mut() {
        if *property == Value::Bool(true) {
            *property = json!({});
            lowered.tell("properties that may be anything are written `{}`");
        } else if *property == Value::Bool(false) {
            *property = json!({ "not": {} });
            lowered.tell("properties that may not be there are written `{\"not\": {}}`");
        }
    }
}

/// Makes one schema for each type, with the rules that are about it.
fn alternatives(members: &Map<String, Value>, kinds: &[String]) -> Map<String, Value> {
    let mut outer = Map::new();
    let mut rules = Map::new();
    for (keyword, value) in members.iter().filter(|(keyword, _)| *keyword != "type") {
        // Only these formats apply to numbers.
        let is_of_number = keyword == "format" && (value == "int64" || value == "uint64");
        let of_one_type = [NUMERIC, OF_TEXTS, OF_LISTS, OF_OBJECTS]
            .iter()
            .any(|of| of.contains(&keyword.as_str()) && !is_of_number);
        match of_one_type || ["enum", "const"].contains(&keyword.as_str()) {
            true => rules.insert(keyword.clone(), value.clone()),
            false => outer.insert(keyword.clone(), value.clone()),
        };
    }
    // These keywords depend on adjacent keywords.
    let is_tangled = APPLIED.iter().any(|keyword| outer.contains_key(*keyword))
        && ["unevaluatedProperties", "unevaluatedItems"]
            .iter()
            .any(|keyword| rules.contains_key(*keyword));
    if is_tangled {
        outer.extend(std::mem::take(&mut rules));
    }
    let arms: Vec<Value> = kinds
        .iter()
        .filter_map(|kind| arm(kind, kinds, &rules))
        .collect();
    let arms = match arms.as_slice() {
        [Value::Object(only)] => {
            outer.extend(only.clone());
            return outer;
        }
        // No value has this type and is listed.
        [] => vec![Value::Bool(false)],
        _ => arms,
    };
    match outer.contains_key("anyOf") {
        false => _ = outer.insert("anyOf".to_owned(), Value::Array(arms)),
        true => add_to_all_of(&mut outer, json!({ "anyOf": arms })),
    }
    outer
}

/// Makes the schema of one type; `None` means that no value of the type is allowed.
fn arm(kind: &str, kinds: &[String], rules: &Map<String, Value>) -> Option<Value> {
    let about: &[&str] = match kind {
        "number" | "integer" => NUMERIC,
        "string" => OF_TEXTS,
        "array" => OF_LISTS,
        "object" => OF_OBJECTS,
        _ => &[],
    };
    let is_of = |value: &Value| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => value.is_number(),
    };
    // Every integer is a number.
    if kind == "integer" && kinds.iter().any(|kind| kind == "number") {
        return None;
    }
    let mut arm = Map::from_iter([("type".to_owned(), Value::from(kind))]);
    for (keyword, value) in rules {
        match (keyword.as_str(), value) {
            ("enum", Value::Array(values)) => {
                let values: Vec<Value> = values
                    .iter()
                    .filter(|value| is_of(value))
                    .cloned()
                    .collect();
                if values.is_empty() {
                    return None;
                }
                // Null has one value.
                if kind != "null" {
                    arm.insert("enum".to_owned(), Value::Array(values));
                }
            }
            ("const", value) if !is_of(value) => return None,
            ("const", value) => _ = arm.insert("const".to_owned(), value.clone()),
            (keyword, value) if about.contains(&keyword) => {
                _ = arm.insert(keyword.to_owned(), value.clone())
            }
            _ => {}
        }
    }
    Some(Value::Object(arm))
}

/// Returns the input without `allOf`, `anyOf` and `oneOf` at its root, and whether it accepts more than before; `None` if it
/// has none of these.
pub fn plain_root(schema: &Value) -> Option<(Value, bool)> {
    let Value::Object(members) = schema else {
        return None;
    };
    if !["allOf", "anyOf", "oneOf"]
        .iter()
        .any(|keyword| members.contains_key(*keyword))
    {
        return None;
    }
    let all = all_of(members, schema, 0);
    let mut plain = Map::new();
    for (keyword, value) in members {
        match keyword.as_str() {
            "allOf" | "anyOf" | "oneOf" => {}
            "properties" | "required" | "additionalProperties" | "unevaluatedProperties" => {}
            _ => _ = plain.insert(keyword.clone(), value.clone()),
        }
    }
    let mut at = plain
        .keys()
        .position(|keyword| keyword == "type")
        .map_or(0, |at| at + 1);
    let mut put = |keyword: &str, value: Value| {
        plain.shift_insert(at, keyword.to_owned(), value);
        at += 1;
    };
    put("properties", Value::Object(all.properties));
    if !all.required.is_empty() {
        put("required", all.required.into());
    }
    if all.is_closed {
        put("additionalProperties", false.into());
    }
    Some((Value::Object(plain), !all.is_exact))
}

/// Returns `true` if the root reaches so few alternatives, references followed, that each can be looked at.
pub fn has_few_alternatives(root: &Value) -> bool {
    fn count(schema: &Value, root: &Value, left: &mut usize) -> bool {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let target = pointed_from(root, schema);
        let arms = ["allOf", "anyOf", "oneOf"]
            .iter()
            .filter_map(|keyword| schema.get(*keyword)?.as_array())
            .flatten();
        target
            .into_iter()
            .chain(arms)
            .all(|schema| count(schema, root, left))
    }
    let mut left = ALTERNATIVES_MAX;
    count(root, root, &mut left)
}

/// The least that objects of a schema may hold.
struct ObjectMembers {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Whether only the properties may be there.
    is_closed: bool,
    /// Whether this accepts exactly what the schema accepts.
    is_exact: bool,
}

fn all_of(schema: &Map<String, Value>, root: &Value, depth: usize) -> ObjectMembers {
    let mut all = ObjectMembers {
        properties: schema
            .get("properties")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default(),
        required: texts(schema.get("required")),
        is_closed: ["additionalProperties", "unevaluatedProperties"]
            .iter()
            .any(|keyword| schema.get(*keyword) == Some(&Value::Bool(false)))
            && !schema.contains_key("patternProperties"),
        is_exact: true,
    };
    let says_rest = |schema: &Map<String, Value>| {
        [
            "additionalProperties",
            "unevaluatedProperties",
            "patternProperties",
        ]
        .iter()
        .any(|keyword| schema.contains_key(*keyword))
    };
    for arm in arms(schema, "allOf", root) {
        let known = ["type", "properties", "required"];
        let is_plain = arm.keys().all(|keyword| {
            let keyword = keyword.as_str();
            known.contains(&keyword)
                || ANNOTATIONS.contains(&keyword)
                || SHARED_PARTS.contains(&keyword)
        });
        let is_object = arm.get("type").is_none_or(|kind| kind == "object");
        all.is_exact &= is_plain && is_object && !says_rest(schema);
        let arm = if depth < 8 {
            all_of(&arm, root, depth + 1)
        } else {
            ObjectMembers::anything()
        };
        all.is_exact &= arm.is_exact;
        all.is_closed |= arm.is_closed;
        for (name, property) in arm.properties {
            let both = match all.properties.get(&name) {
                Some(own) if *own != property => json!({ "allOf": [own, property] }),
                _ => property,
            };
            all.properties.insert(name, both);
        }
        all.required.extend(arm.required);
    }
    for keyword in ["anyOf", "oneOf"] {
        let arms = arms(schema, keyword, root);
        if arms.is_empty() {
            continue;
        }
        all.is_exact = false;
        let arms = arms.iter().map(|arm| {
            if depth < 8 {
                all_of(arm, root, depth + 1)
            } else {
                ObjectMembers::anything()
            }
        });
        let any = arms.reduce(either).unwrap_or_else(ObjectMembers::anything);
        all.is_closed |= any.is_closed;
        for (name, property) in any.properties {
            let both = match all.properties.get(&name) {
                // A rule for every case covers more than a rule for some.
                Some(own) => own.clone(),
                None => property,
            };
            all.properties.insert(name, both);
        }
        all.required.extend(any.required);
    }
    let mut once: Vec<String> = Vec::new();
    all.required.retain(|name| {
        !once.contains(name) && {
            once.push(name.clone());
            true
        }
    });
    all
}

impl ObjectMembers {
    fn anything() -> Self {
        Self {
            properties: Map::new(),
            required: Vec::new(),
            is_closed: false,
            is_exact: false,
        }
    }
}

/// Returns the objects of either side. A property that only one side names keeps its schema: on the other it would
/// mean nothing.
fn either(one: ObjectMembers, other: ObjectMembers) -> ObjectMembers {
    let mut properties = one.properties;
    for (name, property) in other.properties {
        let both = match properties.get(&name) {
            Some(own) if *own == property => property,
            Some(own) => either_value(own, &property),
            None => property,
        };
        properties.insert(name, both);
    }
    ObjectMembers {
        properties,
        required: one
            .required
            .into_iter()
            .filter(|name| other.required.contains(name))
            .collect(),
        is_closed: one.is_closed && other.is_closed,
        is_exact: false,
    }
}

/// Joins listed values in one list, since they distinguish alternatives.
fn either_value(one: &Value, other: &Value) -> Value {
    if let (Some((mut values, rest)), Some((further, other_rest))) = (listed(one), listed(other))
        && rest == other_rest
    {
        for value in further {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        let mut both = rest;
        both.insert("enum".to_owned(), Value::Array(values));
        return Value::Object(both);
    }
    let arms = |schema: &Value| match schema {
        Value::Object(members) if members.len() == 1 => {
            members.get("anyOf").and_then(Value::as_array).cloned()
        }
        _ => None,
    };
    let mut all = arms(one).unwrap_or_else(|| vec![one.clone()]);
    for arm in arms(other).unwrap_or_else(|| vec![other.clone()]) {
        if !all.contains(&arm) {
            all.push(arm);
        }
    }
    json!({ "anyOf": all })
}

/// Returns the values of `const` or `enum`, and the keywords next to them; texts are not compared.
fn listed(schema: &Value) -> Option<(Vec<Value>, Map<String, Value>)> {
    let mut rest = schema.as_object()?.clone();
    let values = match (rest.shift_remove("const"), rest.shift_remove("enum")) {
        (Some(value), None) => vec![value],
        (None, Some(Value::Array(values))) => values,
        _ => return None,
    };
    rest.retain(|keyword, _| {
        !["title", "description", "default", "examples"].contains(&keyword.as_str())
    });
    Some((values, rest))
}

fn arms(schema: &Map<String, Value>, keyword: &str, root: &Value) -> Vec<Map<String, Value>> {
    let arms = walk::elements(schema.get(keyword)).iter();
    arms.map(|arm| {
        let mut arm = arm.clone();
        inline(&mut arm, root);
        match arm {
            Value::Object(arm) => arm,
            _ => Map::new(),
        }
    })
    .collect()
}

fn texts(list: Option<&Value>) -> Vec<String> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Returns `true` if every value of an output schema is an object, as lists may publish it.
pub fn is_object(schema: &Value, root: &Value, depth: usize) -> bool {
    const OBJECTS: [&str; 4] = [
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
    ];
    let Value::Object(members) = schema else {
        return false;
    };
    match members.get("type") {
        Some(kind) => return kind == "object",
        None if depth > 8 => return false,
        None => {}
    }
    let of = |keyword: &str| members.get(keyword).and_then(Value::as_array);
    let every = |arms: &Vec<Value>| {
        !arms.is_empty() && arms.iter().all(|arm| is_object(arm, root, depth + 1))
    };
    let target = stated_in(members).and_then(|reference| pointed(root, reference));
    target.is_some_and(|target| is_object(target, root, depth + 1))
        || ["anyOf", "oneOf"].into_iter().filter_map(of).any(every)
        || of("allOf").is_some_and(|arms| arms.iter().any(|arm| is_object(arm, root, depth + 1)))
        || OBJECTS.iter().any(|keyword| members.contains_key(*keyword))
}
