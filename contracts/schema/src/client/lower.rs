//! Rewrites one schema for one client.

use serde_json::{Map, Value, json};
use weir_text::shorten;

use super::{
    ClientRemark, LoweredTool,
    merging::{has_odd_parts, merge_all_of},
    patterns, references,
    rules::{
        ClientFeatures, DESCRIPTION, ENUM, FIELD_NAME, FORMAT, ITEMS, KEYWORD, NULL, OPEN_OBJECT,
        PATTERN, REFERENCE, REQUIRED, SIZE, TOOL_NAME, TOP_LEVEL, TYPE, UNION,
    },
    texts::TextLengths,
    types,
};
use crate::{
    keyword::{DEFS, REF},
    name,
};

/// Keywords that put no rule on arguments and that no rule depends on.
const SILENT: [&str; 12] = [
    "title",
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentMediaType",
    "contentEncoding",
    "examples",
    "definitions",
];
const COMBINATORS: [&str; 7] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else"];
const LEVELS_MAX: usize = 10;
const PROPERTIES_MAX: usize = 5_000;
const VALUES_MAX: usize = 1_000;
/// Characters of names and values in total, and of the values in one long list.
const TEXTS_MAX: usize = 120_000;
const LIST_MAX: usize = 15_000;
/// Values of any type that are written as a union; further ones of a tool are texts.
const ANY_MAX: usize = 200;

pub(super) fn lower(tool: &str, input: &Value, takes: &ClientFeatures) -> LoweredTool {
    let mut lowering = ToolLowering {
        takes,
        remarks: Vec::new(),
        properties: 0,
        values: 0,
        any_values: 0,
        levels: 0,
    };
    if takes.name_max.is_some_and(|most| tool.len() > most) {
        lowering.refuse(
            TOOL_NAME,
            "",
            format!("the name has {} characters", tool.len()),
        );
    }
    let mut whole = input.clone();
    if !takes.references || takes.strict {
        let (inlined, ended) = references::inlined(input);
        // In strict mode a recursive schema can be written only with a reference.
        if !takes.references || ended.is_empty() {
            whole = inlined;
        }
        for at in ended.iter().filter(|_| !takes.references) {
            lowering.lose(REFERENCE, at, "its inner levels are left out");
        }
    }
    if let Some(members) = whole.as_object_mut() {
        lowering.top(members);
    }
    let mut whole = lowering.schema(whole, "", 0);
    if let Some(members) = whole.as_object_mut() {
        members.entry("type").or_insert_with(|| "object".into());
    }
    lowering.sizes(&whole);
    LoweredTool {
        input: whole,
        remarks: lowering.remarks,
    }
}

struct ToolLowering<'t> {
    takes: &'t ClientFeatures,
    remarks: Vec<ClientRemark>,
    properties: usize,
    values: usize,
    any_values: usize,
    levels: usize,
}

impl ToolLowering<'_> {
    fn lose(&mut self, rule: &'static str, at: &str, message: impl Into<String>) {
        self.remarks.push(ClientRemark {
            rule,
            at: at.to_owned(),
            message: message.into(),
            refuses: false,
        });
    }

    fn refuse(&mut self, rule: &'static str, at: &str, message: impl Into<String>) {
        self.remarks.push(ClientRemark {
            rule,
            at: at.to_owned(),
            message: message.into(),
            refuses: true,
        });
    }

    /// Removes choices between whole argument lists, which no client takes. The arguments that they name are kept.
    fn top(&mut self, members: &mut Map<String, Value>) {
        if let Some(conflict) = merge_all_of(members) {
            self.lose(TOP_LEVEL, "", twice(&conflict));
        }
        // Strict mode would require the arguments of all forms together.
        let is_closed = members
            .get("additionalProperties")
            .is_some_and(|more| *more == false);
        let has_other_names = !is_closed && !self.takes.strict;
        for keyword in COMBINATORS.into_iter().chain(["enum", "const"]) {
            let Some(removed) = members.shift_remove(keyword) else {
                continue;
            };
            if let Value::Array(mut forms) = removed
                && has_other_names
                && ["anyOf", "oneOf"].contains(&keyword)
            {
                types::add_properties(members, &mut forms);
            }
            let message = format!("`{keyword}` of all arguments together is left out");
            self.lose(TOP_LEVEL, "", message);
        }
    }

    fn schema(&mut self, schema: Value, at: &str, level: usize) -> Value {
        self.levels = self.levels.max(level);
        let mut members = match schema {
            Value::Object(members) => members,
            other => match self.any(other, at) {
                Value::Object(members) if self.takes.only_types => members,
                other => return other,
            },
        };
        // The replacement of a union may be a union itself.
        loop {
            let mut has_changed = self.takes.only_any_of && self.unions(&mut members, at);
            has_changed |= !self.takes.null && self.null(&mut members, at);
            if !has_changed {
                break;
            }
        }
        if !self.takes.any_enum {
            self.texts(&mut members, at);
        }
        if self.takes.needs_items {
            self.items(&mut members, at);
        }
        self.values += members
            .get("enum")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        self.keywords(&mut members, at);
        self.pattern(&mut members, at);
        self.cut(&mut members, at);
        if self.takes.strict {
            self.told_apart(&mut members, at);
        }
        if self.takes.only_types && types::separate_union(&mut members) {
            self.lose(UNION, at, "the choices next to its members are left out");
        }
        if self.takes.only_types || self.takes.strict {
            types::add_required_properties(&mut members);
        }
        self.inside(&mut members, at, level);
        if self.takes.only_types && !at.is_empty() {
            self.add_type(&mut members, at);
        }
        if self.takes.strict {
            if !members.contains_key("type")
                && let Some(word) = types::find_type_of_values(&members)
            {
                members.insert("type".to_owned(), word);
            }
            return self.closed(members, at);
        }
        Value::Object(members)
    }

    /// Makes a schema have a type, or be a union and nothing else.
    fn add_type(&mut self, members: &mut Map<String, Value>, at: &str) {
        if members.contains_key("anyOf") {
            types::flatten_union(members);
            return;
        }
        if members.contains_key("type") {
            return;
        }
        if let Some(word) = types::find_type_of_keywords(members) {
            members.insert("type".to_owned(), word.into());
            if word == "array" {
                let text = || json!({ "type": "string" });
                members.entry("items").or_insert_with(text);
            }
            return;
        }
        self.any_values += 1;
        if self.any_values > ANY_MAX {
            members.insert("type".to_owned(), "string".into());
            return;
        }
        members.insert("anyOf".to_owned(), types::write_any_value());
        types::separate_union(members);
        let message =
            "may be a text, a number, a boolean, an object or a list of texts, and nothing else";
        self.lose(TYPE, at, message);
    }

    /// Rewrites `true`, `false`, or a schema without any constraint.
    fn any(&mut self, schema: Value, at: &str) -> Value {
        if self.takes.strict {
            self.refuse(OPEN_OBJECT, at, "a value of any type cannot be written");
        }
        match (schema, self.takes.keywords) {
            (Value::Bool(is_any), Some(_)) => {
                if !is_any {
                    let message = "the rule that no value may be sent is left out";
                    self.lose(KEYWORD, at, message);
                }
                json!({})
            }
            (schema, _) => schema,
        }
    }

    /// Writes unions as `anyOf`. Returns `true` if that changed something.
    fn unions(&mut self, members: &mut Map<String, Value>, at: &str) -> bool {
        let before = members.contains_key("allOf");
        if let Some(conflict) = merge_all_of(members) {
            self.lose(UNION, at, twice(&conflict));
        }
        let has_merged = before && !has_odd_parts(members);
        let Some(arms) = members.shift_remove("oneOf") else {
            return has_merged;
        };
        members.entry("anyOf").or_insert(arms);
        self.lose(
            UNION,
            at,
            "the rule that no two forms of `oneOf` may fit is left out",
        );
        true
    }

    /// Removes null as a value: its alternative goes, and a list of types keeps the others. Returns `true` if that changed
    /// something.
    fn null(&mut self, members: &mut Map<String, Value>, at: &str) -> bool {
        let lost = "null cannot be sent";
        let (mut has_changed, mut had_null) = (false, false);
        if let Some(Value::Array(all)) = members.get("type") {
            let types: Vec<Value> = all
                .iter()
                .filter(|word| **word != "null")
                .cloned()
                .collect();
            had_null = all.len() > types.len() && !types.is_empty();
            match &types[..] {
                [] => drop(members.insert("type".to_owned(), "null".into())),
                [one] => drop(members.insert("type".to_owned(), one.clone())),
                several if members.contains_key("anyOf") => {
                    let types = Value::from(several).to_string();
                    let message = format!("the rule that only {types} may be sent is left out");
                    self.lose(KEYWORD, at, message);
                    members.shift_remove("type");
                }
                several => {
                    let arms = several.iter().map(|word| json!({ "type": word })).collect();
                    members.shift_remove("type");
                    members.insert("anyOf".to_owned(), Value::Array(arms));
                }
            }
            if had_null {
                self.lose(NULL, at, lost);
            }
            has_changed = true;
        }
        if let Some(Value::Array(values)) = members.get_mut("enum")
            && values.len() > 1
        {
            let all = values.len();
            values.retain(|value| !value.is_null());
            if values.len() < all {
                has_changed = true;
                if !had_null {
                    self.lose(NULL, at, lost);
                }
            }
        }
        if let Some(Value::Array(arms)) = members.get_mut("anyOf")
            && arms.len() > 2
        {
            let all = arms.len();
            arms.retain(|arm| arm["type"] != "null");
            if arms.len() < all {
                self.lose(NULL, at, lost);
                has_changed = true;
            }
        }
        if let Some(value) = take_beside_null(members) {
            let beside = std::mem::replace(members, value);
            members.extend(beside);
            // A null default means that null and absence are the same: nothing is lost.
            if members
                .get("default")
                .is_none_or(|default| !default.is_null())
            {
                self.lose(NULL, at, lost);
            }
            has_changed = true;
        }
        has_changed
    }

    /// Drops an enum unless all of its values are texts and the schema allows texts.
    fn texts(&mut self, members: &mut Map<String, Value>, at: &str) {
        if let Some(value) = members.shift_remove("const") {
            members.entry("enum").or_insert(json!([value]));
        }
        let word = types::find_type_of_values(members).filter(Value::is_string);
        let is_text = members.get("type").is_none_or(|word| word == "string");
        let Some(Value::Array(values)) = members.get_mut("enum") else {
            return;
        };
        if is_text && values.iter().all(Value::is_string) {
            let all = values.len();
            values.retain(|value| value != "");
            let (left, had_empty) = (values.len(), values.len() < all);
            if left == 0 {
                members.shift_remove("enum");
            }
            if had_empty {
                self.lose(
                    ENUM,
                    at,
                    "the empty text is left out, although it may be sent",
                );
            }
            members.entry("type").or_insert_with(|| "string".into());
            return;
        }
        let values = values
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let shown = shorten(&values, 200);
        members.shift_remove("enum");
        if let Some(word) = word {
            members.entry("type").or_insert(word);
        }
        self.lose(
            ENUM,
            at,
            format!("the rule that only {shown} may be sent is left out"),
        );
    }

    fn items(&mut self, members: &mut Map<String, Value>, at: &str) {
        let is_array = |word: &Value| word == "array" || has_word(word, "array");
        if !members.get("type").is_some_and(is_array) {
            return;
        }
        if let Some(Value::Array(places)) = members.shift_remove("prefixItems") {
            let any = Map::from_iter([("anyOf".to_owned(), Value::Array(places))]);
            members.insert("items".to_owned(), Value::Object(any));
            self.lose(ITEMS, at, "the places of the items are left out");
        }
        members.entry("items").or_insert_with(|| json!({}));
    }

    fn keywords(&mut self, members: &mut Map<String, Value>, at: &str) {
        let Some(taken) = self.takes.keywords else {
            return;
        };
        let is_whole = members.get("type").is_some_and(|word| word == "integer");
        for (exclusive, inclusive, step) in [
            ("exclusiveMinimum", "minimum", 1),
            ("exclusiveMaximum", "maximum", -1),
        ] {
            if taken.contains(&exclusive) {
                continue;
            }
            let Some(bound) = members.shift_remove(exclusive) else {
                continue;
            };
            let exact = bound.as_i64().filter(|_| is_whole);
            let exact = exact.and_then(|bound| bound.checked_add(step));
            if exact.is_none() {
                let message = format!("the rule that {bound} itself may not be sent is left out");
                self.lose(KEYWORD, at, message);
            }
            let bound = exact.map_or(bound, Value::from);
            let is_wider = |own: &Value| match step {
                1 => own.as_f64() < bound.as_f64(),
                _ => own.as_f64() > bound.as_f64(),
            };
            if members.get(inclusive).is_none_or(is_wider) {
                members.insert(inclusive.to_owned(), bound);
            }
        }
        let others: Vec<String> = members
            .keys()
            .filter(|key| !taken.contains(&key.as_str()))
            .cloned()
            .collect();
        for keyword in others {
            let value = members.shift_remove(&keyword).unwrap_or_default();
            let is_closed = keyword == "additionalProperties" && value == false;
            let is_null = keyword == "default" && value.is_null();
            if !SILENT.contains(&keyword.as_str()) && !is_closed && !is_null {
                let value = value.to_string();
                let shown = shorten(&value, 80);
                self.lose(KEYWORD, at, format!("`{keyword}: {shown}` is left out"));
            }
        }
        if let (Some(formats), Some(format)) = (
            self.takes.formats,
            members.get("format").and_then(Value::as_str),
        ) && !formats.contains(&format)
        {
            self.lose(FORMAT, at, format!("the format `{format}` is left out"));
            members.shift_remove("format");
        }
    }

    fn pattern(&mut self, members: &mut Map<String, Value>, at: &str) {
        let pattern = members.get("pattern").and_then(Value::as_str);
        if let Some(pattern) = pattern
            && !self.takes.lookaround
            && patterns::looks_around(pattern)
        {
            let shown = shorten(pattern, 80);
            self.lose(PATTERN, at, format!("`pattern: {shown}` is left out"));
            members.shift_remove("pattern");
        }
    }

    fn cut(&mut self, members: &mut Map<String, Value>, at: &str) {
        let Some(most) = self.takes.argument_chars_max else {
            return;
        };
        let Some(Value::String(description)) = members.get_mut("description") else {
            return;
        };
        if let Some((end, _)) = description.char_indices().nth(most) {
            description.truncate(end);
            self.lose(
                DESCRIPTION,
                at,
                format!("its description is cut to {most} characters"),
            );
        }
    }

    /// Rewrites the schemas inside this one.
    fn inside(&mut self, members: &mut Map<String, Value>, at: &str, level: usize) {
        for key in ["properties", DEFS, "patternProperties"] {
            let Some(Value::Object(named)) = members.get_mut(key) else {
                continue;
            };
            for (name, schema) in named.iter_mut() {
                let at = format!("{at}/{key}/{}", name.replace('~', "~0").replace('/', "~1"));
                if key == "properties" {
                    self.properties += 1;
                    if !self.takes.any_field_name && !name::is_field(name) {
                        self.refuse(FIELD_NAME, &at, "such a name costs the whole request");
                    }
                }
                let level = level + usize::from(key == "properties");
                *schema = self.schema(schema.take(), &at, level);
            }
        }
        for key in ["items", "additionalProperties", "contains"] {
            let schema = members.get_mut(key);
            // A separate keyword decides whether an object is open.
            if let Some(schema) =
                schema.filter(|schema| schema.is_object() || key != "additionalProperties")
            {
                *schema = self.schema(schema.take(), &format!("{at}/{key}"), level + 1);
            }
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            for (index, schema) in members
                .get_mut(key)
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
                .enumerate()
            {
                *schema = self.schema(schema.take(), &format!("{at}/{key}/{index}"), level);
            }
        }
    }

    /// Removes each argument for which null and absence have different meanings. In strict mode every argument is sent, and
    /// null means absence.
    fn told_apart(&mut self, members: &mut Map<String, Value>, at: &str) {
        let required = names(members.get("required"));
        let Some(Value::Object(properties)) = members.get_mut("properties") else {
            return;
        };
        let means_null = |schema: &Value| {
            schema
                .get("default")
                .is_none_or(|default| !default.is_null())
        };
        let is_meant = |name: &String, schema: &Value| {
            !required.contains(name) && takes_null(schema) && means_null(schema)
        };
        let left_out: Vec<String> = properties
            .iter()
            .filter(|(name, schema)| is_meant(name, schema))
            .map(|(name, _)| name.clone())
            .collect();
        for name in left_out {
            properties.shift_remove(&name);
            let message = "cannot be sent: null would look like its absence";
            self.lose(REQUIRED, &format!("{at}/properties/{name}"), message);
        }
    }

    /// Makes every object list all of its properties and require all of them, as strict mode requires.
    fn closed(&mut self, mut members: Map<String, Value>, at: &str) -> Value {
        let says_something = ["type", "anyOf", REF]
            .iter()
            .any(|key| members.contains_key(*key));
        if !says_something {
            return self.any(Value::Object(members), at);
        }
        if members.contains_key(REF) && members.len() > 1 {
            let all = members.len();
            members.retain(|key, _| key == REF || key == DEFS || key == "description");
            if members.len() < all {
                self.lose(REFERENCE, at, "the rules next to it are left out");
            }
        }
        let is_object = members
            .get("type")
            .is_some_and(|word| word == "object" || has_word(word, "object"));
        if !is_object {
            return Value::Object(members);
        }
        let is_closed = members
            .get("additionalProperties")
            .is_some_and(|more| *more == false);
        let properties = match members.get_mut("properties").map(Value::take) {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        // A root that names no property and has no rule for other names belongs to a tool without arguments.
        let values_of_others = members
            .get("additionalProperties")
            .and_then(Value::as_object);
        let has_free_names = values_of_others.is_some_and(|values| !values.is_empty());
        match (
            is_closed,
            properties.is_empty(),
            at.is_empty() && !has_free_names,
        ) {
            (true, ..) | (_, true, true) => {}
            (false, true, false) => {
                self.refuse(OPEN_OBJECT, at, "an object of free names cannot be written")
            }
            (false, false, _) => {
                self.lose(OPEN_OBJECT, at, "names that are not listed cannot be sent")
            }
        }
        let required = names(members.get("required"));
        let mut all = Map::new();
        for (name, schema) in properties {
            let schema = match required.contains(&name) || takes_null(&schema) {
                true => schema,
                false => beside_a_null(schema),
            };
            all.insert(name, schema);
        }
        members.insert("required".to_owned(), all.keys().cloned().collect());
        members.insert("properties".to_owned(), Value::Object(all));
        members.insert("additionalProperties".to_owned(), false.into());
        Value::Object(members)
    }

    fn sizes(&mut self, whole: &Value) {
        if !self.takes.strict {
            return;
        }
        let mut texts = TextLengths::default();
        texts.add(whole);
        for (count, most, what) in [
            (self.levels, LEVELS_MAX, "levels"),
            (self.properties, PROPERTIES_MAX, "properties"),
            (self.values, VALUES_MAX, "values of enums"),
            (texts.all, TEXTS_MAX, "characters of names and values"),
            (
                texts.longest_list,
                LIST_MAX,
                "characters in a list of values",
            ),
        ] {
            if count > most {
                self.refuse(
                    SIZE,
                    "",
                    format!("it has {count} {what}, and {most} are taken"),
                );
            }
        }
    }
}

/// Replaces a union of null and one alternative by that alternative.
fn take_beside_null(members: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    let Value::Array(arms) = members.get("anyOf")? else {
        return None;
    };
    let is_null = |arm: &Value| {
        arm.as_object()
            .is_some_and(|arm| arm.len() == 1 && arm.get("type").is_some_and(|word| word == "null"))
    };
    let index = match arms.as_slice() {
        [Value::Object(_), null] if is_null(null) => 0,
        [null, Value::Object(_)] if is_null(null) => 1,
        _ => return None,
    };
    match members.shift_remove("anyOf")? {
        Value::Array(mut arms) => match arms.swap_remove(index) {
            Value::Object(value) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

fn beside_a_null(schema: Value) -> Value {
    let arms = Value::Array(vec![schema, json!({ "type": "null" })]);
    Value::Object(Map::from_iter([("anyOf".to_owned(), arms)]))
}

/// Returns the names that `required` lists.
fn names(required: Option<&Value>) -> Vec<String> {
    let names = required.and_then(Value::as_array).into_iter().flatten();
    names
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

fn has_word(word: &Value, wanted: &str) -> bool {
    word.as_array()
        .is_some_and(|words| words.iter().any(|word| word == wanted))
}

fn takes_null(schema: &Value) -> bool {
    let is_null = |schema: &Value| schema["type"] == "null" || has_word(&schema["type"], "null");
    is_null(schema)
        || schema["anyOf"]
            .as_array()
            .is_some_and(|arms| arms.iter().any(is_null))
}

fn twice(keyword: &str) -> String {
    format!("`{keyword}` is twice in `allOf`, and one of both is left out")
}
