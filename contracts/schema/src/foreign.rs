//! Decides whether a schema that a stranger wrote may be used: it must be bounded, closed in itself, and a schema at
//! all.

mod pattern;

use std::collections::BTreeSet;

use serde_json::Value;
use weir_text::shorten;

pub use self::pattern::check as check_pattern;
use crate::{
    cost,
    json::{self, JsonFault},
    keyword::REFERENCES,
    reference::{id_keyword, joined},
    walk::{self, try_each_inside_at},
};

/// The bounds of a foreign schema.
#[derive(Clone, Copy, Debug)]
pub struct SchemaLimits {
    pub bytes_max: usize,
    pub depth_max: usize,
    /// Characters of one `pattern`.
    pub pattern_max: usize,
}

impl Default for SchemaLimits {
    fn default() -> Self {
        Self {
            bytes_max: 100 * 1024,
            depth_max: 32,
            pattern_max: 1000,
        }
    }
}

/// Checks a schema. The error explains in one sentence why it is refused, and names the place.
pub fn check(text: &str, bounds: &SchemaLimits) -> Result<(), String> {
    if text.len() > bounds.bytes_max {
        return Err(format!(
            "the schema has {} bytes, and at most {} are accepted",
            text.len(),
            bounds.bytes_max
        ));
    }
    if json::depth(text) > bounds.depth_max {
        return Err(format!(
            "the schema nests deeper than {} levels",
            bounds.depth_max
        ));
    }
    let value = read(text)?;
    let id = id_keyword(&value);
    let mut ids = BTreeSet::new();
    let root = (&mut String::new(), "");
    visit(&value, id, root, &mut |schema, _, base| {
        if schema.get(id).is_some_and(Value::is_string) {
            ids.insert(base.to_owned());
        }
        Ok(())
    })?;
    let root = (&mut String::new(), "");
    visit(&value, id, root, &mut |schema, place, base| {
        judge(schema, (place, base), &ids, bounds)
    })?;
    cost::check(&value)?;
    compile(&value)
}

/// Reads a schema. Numbers beyond what every reader holds are common in bounds (`maximum: 18446744073709551615`) and do
/// no harm there.
fn read(text: &str) -> Result<Value, String> {
    let (value, faults) = json::read_all(text);
    match (
        value,
        faults
            .iter()
            .find(|fault| fault.fault != JsonFault::NumberOutOfRange),
    ) {
        (_, Some(fault)) if fault.path.is_empty() => Err(fault.message.clone()),
        (_, Some(fault)) => Err(format!("{} at {}", fault.message, fault.path)),
        (Some(value), None) => Ok(value),
        (None, None) => Err("a number is too large".to_owned()),
    }
}

fn judge(
    schema: &Value,
    (place, base): (&str, &str),
    ids: &BTreeSet<String>,
    bounds: &SchemaLimits,
) -> Result<(), String> {
    for keyword in REFERENCES {
        let Some(target) = schema.get(keyword).and_then(Value::as_str) else {
            continue;
        };
        let document = target.split('#').next().unwrap_or_default();
        if !document.is_empty() && !ids.contains(&joined(base, document)) {
            let shown = shorten(target, 100);
            return Err(format!(
                "`{keyword}` at {place}/{keyword} names another document ({shown}), which is never fetched"
            ));
        }
    }
    let patterns = walk::members(schema.get("patternProperties"));
    let patterns = patterns.map(|(pattern, _)| pattern.as_str());
    for found in schema
        .get("pattern")
        .and_then(Value::as_str)
        .into_iter()
        .chain(patterns)
    {
        let shown = shorten(found, 60);
        pattern::check(found, bounds.pattern_max).map_err(|why| {
            let place = if place.is_empty() { "the root" } else { place };
            format!("the pattern `{shown}` at {place} {why}")
        })?;
    }
    Ok(())
}

/// Calls `judge` for the schema and every schema inside, not for values that only look like one, with its place and the address
/// that its references start from. `id` is the keyword with an address, and `base` the address of the schema around it.
fn visit(
    schema: &Value,
    id: &str,
    (place, base): (&mut String, &str),
    judge: &mut dyn FnMut(&Value, &str, &str) -> Result<(), String>,
) -> Result<(), String> {
    let Value::Object(members) = schema else {
        return Ok(());
    };
    let own = members.get(id).and_then(Value::as_str);
    let own = own
        .filter(|own| !own.starts_with('#'))
        .map(|own| joined(base, own));
    let base = own.as_deref().unwrap_or(base);
    judge(schema, place, base)?;
    try_each_inside_at(members, place, &mut |schema, place| {
        visit(schema, id, (place, base), judge)
    })
}

/// Compiles the schema in its own dialect, or in 2020-12 if it names none. Patterns may look around, as those of
/// JavaScript do.
fn compile(schema: &Value) -> Result<(), String> {
    let patterns = jsonschema::PatternOptions::fancy_regex()
        .size_limit(1 << 20)
        .dfa_size_limit(1 << 20);
    let options = jsonschema::options()
        .with_pattern_options(patterns)
        .offline();
    options.build(schema).map(drop).map_err(|error| {
        let place = error.instance_path().to_string();
        let message = error.masked().to_string();
        let message = shorten(&message, 300);
        if place.is_empty() {
            message.into_owned()
        } else {
            format!("{message} at {place}")
        }
    })
}
