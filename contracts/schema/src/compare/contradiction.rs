//! Finds keywords that leave no value together.
//!
//! Bounds, types, listed values and required members are looked at, as far as references and `allOf` put them on one value. What
//! is found is certain; a contradiction in other keywords is not found.

use serde_json::{Map, Value};

use super::{
    finite::{collect_values, is_exact},
    normal::{TEXTS, is_false},
    number::{self, RangeBound},
    value::{ALL, ARRAY, FRACTION, INTEGER, OBJECT, STRING, bound, types, types_among, whole_step},
};
use crate::{
    json::{percent_decoded, push_pointer},
    keyword::{ALL_OF, ANY_OF, ONE_OF, REF},
    name,
    reference::{pointed, stated_in},
    validate::{PatternLengths, takes_no_text, validator},
    walk,
};

/// Schemas that are looked at for one document.
const SCHEMAS_MAX: usize = 20_000;
/// Schemas that are put on one value.
const PARTS_MAX: usize = 32;
const DEPTH_MAX: usize = 64;
/// Listed values that are compared or checked one by one.
const VALUES_MAX: usize = 200;
/// Names and items that must be there and are looked at.
const NEEDED_MAX: usize = 200;

/// A keyword that leaves no value, with what else it meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaContradiction {
    /// JSON Pointer from the document's root to the keyword.
    pub place: String,
    pub reason: String,
}

/// Looks for contradictions in one document.
pub struct ContradictionSearch<'s> {
    root: &'s Value,
    /// The schemas around, which a value may need inside itself without end: that is not looked at.
    open: Vec<*const Value>,
    depth: usize,
    left: usize,
}

/// A schema that is put on a value, and its place.
struct SchemaPart<'s> {
    schema: &'s Value,
    members: &'s Map<String, Value>,
    place: String,
}

/// The types that a value may still have.
struct TypesLeft {
    types: u8,
    contradiction: Option<SchemaContradiction>,
}

impl TypesLeft {
    /// Takes types away. What takes the last one is the contradiction.
    fn exclude(&mut self, types: u8, place: String, reason: impl Into<String>) {
        let left = self.types & !types;
        if self.types != 0 && left == 0 {
            let reason = reason.into();
            self.contradiction = Some(SchemaContradiction { place, reason });
        }
        self.types = left;
    }

    fn exclude_for(&mut self, types: u8, contradiction: SchemaContradiction) {
        self.exclude(types, contradiction.place, contradiction.reason);
    }
}

impl<'s> SchemaPart<'s> {
    fn at(&self, keyword: &str) -> String {
        below(&self.place, &[keyword])
    }

    fn count(&self, keyword: &str) -> Option<u64> {
        self.members.get(keyword).and_then(number::count)
    }

    fn list(&self, keyword: &str) -> &'s [Value] {
        walk::elements(self.members.get(keyword))
    }

    /// Returns `true` if the schema says more of its values than their list and their type, and refers to nothing outside.
    fn has_rules_beside_values(&self) -> bool {
        let is_list =
            |name: &String| matches!(name.as_str(), "type" | "enum" | "const" | "default");
        let is_rule = |name: &String| !is_list(name) && !TEXTS.contains(&name.as_str());
        let is_listed_twice =
            self.members.contains_key("const") && self.members.contains_key("enum");
        (is_listed_twice || self.members.keys().any(is_rule))
            && !self.schema.to_string().contains(&format!("\"{REF}\""))
    }

    /// Returns the values that the schema lists, and the keyword.
    fn listed(&self) -> Option<(&'static str, &'s [Value])> {
        match (self.members.get("const"), self.members.get("enum")) {
            (Some(value), _) => Some(("const", std::slice::from_ref(value))),
            (None, Some(Value::Array(values))) => Some(("enum", values)),
            _ => None,
        }
    }
}

impl<'s> ContradictionSearch<'s> {
    /// Prepares a search in a document; references lead to places in it.
    pub fn new(root: &'s Value) -> Self {
        Self {
            root,
            open: Vec::new(),
            depth: 0,
            left: SCHEMAS_MAX,
        }
    }

    /// Returns why no value meets a schema of the document. `place` is its JSON Pointer.
    pub fn find(&mut self, schema: &'s Value, place: &str) -> Option<SchemaContradiction> {
        if schema == &Value::Bool(false) {
            let reason = "nothing is allowed there".to_owned();
            return Some(SchemaContradiction {
                place: place.to_owned(),
                reason,
            });
        }
        let parts = self.parts(schema, place);
        let is_open = |part: &SchemaPart<'_>| self.open.contains(&std::ptr::from_ref(part.schema));
        if self.depth == DEPTH_MAX || self.left == 0 || parts.iter().any(is_open) {
            return None;
        }
        self.depth += 1;
        self.left = self.left.saturating_sub(parts.len().max(1));
        let around = self.open.len();
        self.open
            .extend(parts.iter().map(|part| std::ptr::from_ref(part.schema)));
        let mut left = TypesLeft {
            types: ALL,
            contradiction: None,
        };
        check_types(&parts, &mut left);
        check_values(&parts, &mut left);
        check_numbers(&parts, &mut left);
        check_texts(&parts, &mut left);
        self.check_lists(&parts, &mut left);
        self.check_objects(&parts, &mut left);
        self.check_unions(&parts, &mut left);
        self.open.truncate(around);
        self.depth -= 1;
        left.contradiction
    }

    /// Returns the schema, what it refers to, and what stands in `allOf`.
    fn parts(&self, schema: &'s Value, place: &str) -> Vec<SchemaPart<'s>> {
        let mut parts: Vec<SchemaPart<'s>> = Vec::new();
        let mut open = vec![(schema, place.to_owned())];
        while let Some((schema, place)) = open.pop() {
            let is_known = |part: &SchemaPart<'_>| std::ptr::eq(part.schema, schema);
            let Value::Object(members) = schema else {
                continue;
            };
            if parts.len() == PARTS_MAX || parts.iter().any(is_known) {
                continue;
            }
            if let Some(reference) = stated_in(members)
                && let Some(target) = pointed(self.root, reference)
            {
                let pointer = reference.strip_prefix('#').unwrap_or_default();
                open.push((target, percent_decoded(pointer)));
            }
            let all = walk::elements(members.get(ALL_OF));
            for (index, schema) in all.iter().enumerate().rev() {
                open.push((schema, below(&place, &[ALL_OF, &index.to_string()])));
            }
            parts.push(SchemaPart {
                schema,
                members,
                place,
            });
        }
        parts
    }

    fn check_lists(&mut self, parts: &[SchemaPart<'s>], left: &mut TypesLeft) {
        if left.types & ARRAY == 0 {
            return;
        }
        for part in parts {
            let Some(contained) = part.members.get("contains") else {
                continue;
            };
            let least = part.count("minContains").unwrap_or(1);
            if part.count("maxContains").is_some_and(|most| most < least) {
                let reason = format!("`minContains` is {least}, which is above `maxContains`");
                left.exclude(ARRAY, part.at("maxContains"), reason);
            }
            if least > 0
                && let Some(found) = self.find(contained, &part.at("contains"))
            {
                left.exclude_for(ARRAY, found);
            }
        }
        let least = |part: &SchemaPart<'_>| {
            let contains = part.members.contains_key("contains");
            let contained = part.count("minContains").unwrap_or(1);
            let contained = if contains { contained } else { 0 };
            part.count("minItems").unwrap_or(0).max(contained)
        };
        let least = parts.iter().map(least).max().unwrap_or(0);
        for part in parts {
            if part.count("maxItems").is_some_and(|most| most < least) {
                let reason =
                    format!("at least {least} items are asked for, which is above `maxItems`");
                left.exclude(ARRAY, part.at("maxItems"), reason);
            }
            let needed = usize::try_from(least).unwrap_or(usize::MAX);
            let first = part.list("prefixItems");
            for (index, item) in first.iter().enumerate().take(needed.min(NEEDED_MAX)) {
                let place = below(&part.place, &["prefixItems", &index.to_string()]);
                if let Some(found) = self.find(item, &place) {
                    left.exclude_for(ARRAY, found);
                }
            }
            let Some(items) = part.members.get("items").filter(|_| first.len() < needed) else {
                continue;
            };
            if let Some(found) = self.find(items, &part.at("items")) {
                left.exclude_for(ARRAY, found);
            }
            let is_unique = part.members.get("uniqueItems") == Some(&Value::Bool(true));
            if is_unique
                && first.is_empty()
                && count_values(items).is_some_and(|most| most < needed)
            {
                let reason = format!(
                    "{least} items are asked for, and there are not as many different ones"
                );
                left.exclude(ARRAY, part.at("uniqueItems"), reason);
            }
        }
    }

    fn check_objects(&mut self, parts: &[SchemaPart<'s>], left: &mut TypesLeft) {
        if left.types & OBJECT == 0 {
            return;
        }
        let mut needed: Vec<(&str, String)> = Vec::new();
        for part in parts {
            for name in part.list("required").iter().filter_map(Value::as_str) {
                if needed.len() < NEEDED_MAX && !needed.iter().any(|(known, _)| *known == name) {
                    needed.push((name, part.at("required")));
                }
            }
        }
        let least = parts.iter().filter_map(|part| part.count("minProperties"));
        let least = least.max().unwrap_or(0).max(needed.len() as u64);
        for part in parts {
            if part.count("maxProperties").is_some_and(|most| most < least) {
                let reason = format!(
                    "at least {least} members are asked for, which is above `maxProperties`"
                );
                left.exclude(OBJECT, part.at("maxProperties"), reason);
            }
            let has_patterns = part.members.contains_key("patternProperties");
            let properties = part.members.get("properties").and_then(Value::as_object);
            let further = part.members.get("additionalProperties");
            let is_closed = further.is_some_and(takes_nothing) && !has_patterns;
            let named = properties.into_iter().flatten();
            let named = named.filter(|(_, schema)| !takes_nothing(schema)).count() as u64;
            for (name, place) in &needed {
                let shown = name::quoted(name);
                let inner = properties.and_then(|properties| properties.get(*name));
                match inner {
                    Some(inner) if takes_nothing(inner) => {
                        let reason = format!("{shown} is required, and nothing is allowed there");
                        left.exclude(OBJECT, place.clone(), reason);
                    }
                    Some(inner) => {
                        let place = below(&part.place, &["properties", *name]);
                        if let Some(found) = self.find(inner, &place) {
                            left.exclude_for(OBJECT, found);
                        }
                    }
                    None if is_closed => {
                        let reason = format!(
                            "{shown} is required, and is none of the members that are allowed"
                        );
                        left.exclude(OBJECT, place.clone(), reason);
                    }
                    None => {}
                }
            }
            if is_closed && named < least {
                let reason =
                    format!("at least {least} members are asked for, and {named} are allowed");
                left.exclude(OBJECT, part.at("additionalProperties"), reason);
            }
        }
    }

    fn check_unions(&mut self, parts: &[SchemaPart<'s>], left: &mut TypesLeft) {
        for part in parts {
            if let Some(excluded) = part.members.get("not") {
                let types = excluded_types(excluded);
                left.exclude(
                    types,
                    part.at("not"),
                    "`not` excludes every value that is left",
                );
            }
            for keyword in [ANY_OF, ONE_OF] {
                let arms = part.list(keyword);
                let allowed = left.types;
                let is_dead = |(index, arm): (usize, &'s Value)| {
                    let place = below(&part.place, &[keyword, &index.to_string()]);
                    types(arm).is_some_and(|types| types & allowed == 0)
                        || self.find(arm, &place).is_some()
                };
                if !arms.is_empty() && arms.iter().enumerate().all(is_dead) {
                    let reason = "no value that is left meets any of the alternatives";
                    left.exclude(ALL, part.at(keyword), reason);
                }
            }
        }
    }
}

fn check_types(parts: &[SchemaPart<'_>], left: &mut TypesLeft) {
    for part in parts {
        if let Some(allowed) = types(part.schema) {
            let reason = "no type is left that the rest allows as well";
            left.exclude(ALL & !allowed, part.at("type"), reason);
        }
    }
}

/// Checks what is listed: by its types, against other lists, and against the rules beside it.
fn check_values(parts: &[SchemaPart<'_>], left: &mut TypesLeft) {
    let mut common: Option<Vec<&Value>> = None;
    for part in parts {
        let Some((keyword, values)) = part.listed() else {
            continue;
        };
        let reason = match values.is_empty() {
            true => "no value is listed",
            false => "none of the listed values is of an allowed type",
        };
        left.exclude(ALL & !types_among(values), part.at(keyword), reason);
        if values.len() > VALUES_MAX {
            continue;
        }
        let known = common.get_or_insert_with(|| values.iter().collect());
        known.retain(|one| values.iter().any(|other| may_be_equal(one, other)));
        if known.is_empty() {
            left.exclude(
                ALL,
                part.at(keyword),
                "none of the listed values is in the other list too",
            );
        }
        if part.has_rules_beside_values()
            && let Ok(validator) = validator(part.schema)
            && !values.iter().any(|value| validator.is_valid(value))
        {
            left.exclude(
                ALL,
                part.at(keyword),
                "none of the listed values meets the rules beside them",
            );
        }
    }
}

fn check_numbers(parts: &[SchemaPart<'_>], left: &mut TypesLeft) {
    let numbers = left.types & (INTEGER | FRACTION);
    if numbers == 0 {
        return;
    }
    let is_whole = numbers == INTEGER;
    let steps = parts
        .iter()
        .filter(|part| part.members.contains_key("multipleOf"));
    let step = steps.map(|part| whole_step(part.schema)).max().unwrap_or(1);
    let tightest = |keyword, exclusive, upwards| {
        let bounds = parts.iter().filter_map(|part| {
            let bound = bound(part.schema, keyword, exclusive, upwards).ok()??;
            let is_here = part.members.contains_key(keyword);
            Some((bound, part.at(if is_here { keyword } else { exclusive })))
        });
        let (bound, place) = bounds.max_by(|one, two| one.0.compare(two.0, upwards))?;
        let inside = |bound: RangeBound| bound.inside(upwards).on_step(step, upwards);
        Some((if is_whole { inside(bound) } else { bound }, place))
    };
    let least = tightest("minimum", "exclusiveMinimum", true);
    let most = tightest("maximum", "exclusiveMaximum", false);
    let (Some((least, place)), Some((most, _))) = (least, most) else {
        return;
    };
    let are_crossed = match least.at.compare(most.at) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => least.exclusive || most.exclusive,
        std::cmp::Ordering::Greater => true,
    };
    if are_crossed && is_exact(least.at) && is_exact(most.at) {
        let reason = "no number lies between the least and the most that is allowed";
        left.exclude(numbers, place, reason);
    }
}

fn check_texts(parts: &[SchemaPart<'_>], left: &mut TypesLeft) {
    if left.types & STRING == 0 {
        return;
    }
    let least = parts
        .iter()
        .filter_map(|part| part.count("minLength"))
        .max();
    let most = parts
        .iter()
        .filter_map(|part| part.count("maxLength"))
        .min();
    if least > most.or(Some(u64::MAX)) {
        let longer = parts.iter().find(|part| part.count("minLength") == least);
        let place = longer.map(|part| part.at("minLength")).unwrap_or_default();
        left.exclude(STRING, place, "`minLength` is greater than `maxLength`");
    }
    for part in parts {
        let Some(pattern) = part.members.get("pattern").and_then(Value::as_str) else {
            continue;
        };
        if takes_no_text(pattern) {
            left.exclude(STRING, part.at("pattern"), "no text meets the pattern");
        }
        let Some(lengths) = PatternLengths::read(pattern) else {
            continue;
        };
        if most.is_some_and(|most| most < lengths.least)
            || lengths.most.is_some_and(|most| Some(most) < least)
        {
            let reason = "no text of the pattern has a length that is allowed";
            left.exclude(STRING, part.at("pattern"), reason);
        }
    }
}

/// Returns the types of which a `not` excludes each value, if nothing but the type is in it.
fn excluded_types(excluded: &Value) -> u8 {
    match excluded {
        Value::Bool(true) => ALL,
        Value::Object(members) => {
            let is_type = |name: &String| name == "type" || TEXTS.contains(&name.as_str());
            match members.keys().all(is_type) {
                true => types(excluded).unwrap_or(0),
                false => 0,
            }
        }
        _ => 0,
    }
}

/// Returns `true` for `false` in any spelling.
fn takes_nothing(schema: &Value) -> bool {
    schema == &Value::Bool(false) || is_false(schema)
}

/// Returns the number of different values that a schema has at most, if they are few.
fn count_values(schema: &Value) -> Option<usize> {
    let mut values: Vec<String> = collect_values(schema)?
        .iter()
        .map(Value::to_string)
        .collect();
    values.sort_unstable();
    values.dedup();
    Some(values.len())
}

/// Returns `false` for two values that surely differ: equal numbers may have other digits, also inside.
fn may_be_equal(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => one.as_f64() == two.as_f64(),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => true,
        (one, two) => one == two,
    }
}

fn below(place: &str, tokens: &[&str]) -> String {
    let mut place = place.to_owned();
    tokens
        .iter()
        .for_each(|token| push_pointer(&mut place, token));
    place
}
