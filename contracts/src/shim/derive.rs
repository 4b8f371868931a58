//! Reads a shim off the differences of two versions.

use serde_json::Value;
use weir_schema::compare::{SchemaRule, normal};

use super::{ShimStep, ToolShim, VersionShim, through};
use crate::{
    contract::Contract,
    diff::{Item, Side, diff},
    json::push_pointer,
};

/// What is inside a member with a new name shows only once its name is known.
const ROUNDS_MAX: usize = 8;

pub(super) fn derive(old: &Contract, new: &Contract) -> VersionShim {
    let mut shim = VersionShim::default();
    for _ in 0..ROUNDS_MAX {
        let Ok((was, is)) = through(old, new, &shim) else {
            break;
        };
        let mut grown = false;
        for item in &diff(&was, &is).items {
            let mut next = shim.clone();
            // A step that cannot be made costs the others nothing.
            if add(&mut next, item, &is) && through(old, new, &next).is_ok() {
                (shim, grown) = (next, true);
            }
        }
        if !grown {
            break;
        }
    }
    shim.tools.retain(|_, tool| *tool != ToolShim::default());
    shim
}

/// Adds what one difference suggests. Returns whether it does.
fn add(shim: &mut VersionShim, item: &Item, seen: &Contract) -> bool {
    let Some(tool) = &item.tool else {
        return false;
    };
    if item.rule == "tool-renamed" {
        let one = shim.tools.entry(tool.clone()).or_default();
        let is_new = one.name.is_none();
        one.name = item.new.as_str().map(str::to_owned);
        return is_new;
    }
    let Some((side, step)) = step(item, tool, seen) else {
        return false;
    };
    let one = shim.tools.entry(tool.clone()).or_default();
    let steps = match side {
        Side::Input => &mut one.input,
        Side::Output => &mut one.output,
    };
    let is_new = !steps.contains(&step);
    if is_new {
        steps.push(step);
    }
    is_new
}

fn step(item: &Item, tool: &str, seen: &Contract) -> Option<(Side, ShimStep)> {
    let side = item.side?;
    let is = |rule: SchemaRule| rule.id(side) == item.rule;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let set = |at: &str, value: Value| ShimStep::Set {
        at: at.to_owned(),
        value,
    };
    let step = if is(SchemaRule::PropertyRenamed) {
        let (at, to) = (value_place(&item.path)?, text(&item.new)?);
        ShimStep::Rename { at, to }
    } else if is(SchemaRule::ValueRenamed) {
        let at = value_place(
            item.path
                .strip_suffix("/enum")
                .or_else(|| item.path.strip_suffix("/const"))?,
        )?;
        let (from, to) = (text(&item.old)?, text(&item.new)?);
        ShimStep::Value { at, from, to }
    } else if side == Side::Output {
        return None;
    } else if is(SchemaRule::RequiredAdded) {
        set(&value_place(&item.path)?, only_value(&item.new)?)
    } else if is(SchemaRule::BecameRequired) {
        let tool = seen.tools.iter().find(|one| one.name == tool)?;
        let schema = normal::normal(&tool.checked_input().value()).ok()?;
        let value = only_value(schema.pointer(&item.path)?)?;
        set(&value_place(&item.path)?, value)
    } else if is(SchemaRule::DefaultChanged) && !item.old.is_null() {
        let at = value_place(item.path.strip_suffix("/default")?)?;
        set(&at, item.old.clone())
    } else {
        return None;
    };
    Some((side, step))
}

/// Returns the value that stands for an absent argument.
fn only_value(schema: &Value) -> Option<Value> {
    let only = schema.get("enum").and_then(Value::as_array);
    let only = only.filter(|values| values.len() == 1);
    schema
        .get("default")
        .or_else(|| schema.get("const"))
        .or_else(|| only?.first())
        .cloned()
}

/// Returns the place of the values that a place in a schema describes.
fn value_place(path: &str) -> Option<String> {
    let mut place = String::new();
    let mut tokens = path.strip_prefix('/').map(|rest| rest.split('/'));
    while let Some(keyword) = tokens.as_mut().and_then(Iterator::next) {
        match keyword {
            "items" => place.push_str("/*"),
            "properties" => {
                let name = tokens.as_mut()?.next()?;
                let name = name.replace("~1", "/").replace("~0", "~");
                if name == "*" {
                    return None;
                }
                push_pointer(&mut place, &name);
            }
            _ => return None,
        }
    }
    Some(place)
}
