//! Reads a shim off the differences of two versions.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet, HashMap},
};

use serde_json::Value;
use weir_schema::compare::{SchemaRule, normal};

use super::{ShimStep, ToolShim, VersionShim, seen, through};
use crate::{
    contract::{CompiledContract, ContractTool},
    diff::{ContractChange, SchemaSide, diff},
    json::push_pointer,
};

/// The rounds of renaming: the content of a member with a new name is compared only once its name is known.
const ROUNDS_MAX: usize = 8;
/// Steps that turn out not to be possible, with the groups that they are found in.
const FAULTS_MAX: usize = 1_000;

type SideStep = (SchemaSide, ShimStep);

pub(super) fn derive(
    old: &CompiledContract,
    new: &CompiledContract,
) -> Result<VersionShim, String> {
    let now = by_name(new);
    let mut shim = VersionShim::default();
    let mut faults = FaultBudget(FAULTS_MAX);
    for _ in 0..ROUNDS_MAX {
        let Ok((was, is)) = through(old, new, &shim) else {
            break;
        };
        let converted = by_name(&is);
        let found = diff(&was, &is);
        let mut items: BTreeMap<&str, Vec<&ContractChange>> = BTreeMap::new();
        for item in &found.items {
            if let Some(tool) = &item.tool {
                items.entry(tool).or_default().push(item);
            }
        }
        let names = old.tools.iter().map(|tool| shim.new_name(&tool.name));
        let mut used: BTreeSet<String> = names
            .filter(|name| now.contains_key(name))
            .map(str::to_owned)
            .collect();
        let mut grown = false;
        for (tool, items) in items {
            let mut one = shim.tools.get(tool).cloned().unwrap_or_default();
            let before = one.clone();
            let mut renamed = items.iter().filter(|item| item.rule == "tool-renamed");
            if one.name.is_none()
                && let Some(name) = renamed.find_map(|item| item.new.as_str())
                && used.insert(name.to_owned())
            {
                one.name = Some(name.to_owned());
            }
            let Some(target) = now.get(one.name.as_deref().unwrap_or(tool)) else {
                continue;
            };
            let steps = steps(&items, converted.get(tool).copied());
            let is_possible = |shim: &ToolShim| seen(target, tool, shim).is_ok();
            extend(&mut one, &steps, &is_possible, &mut faults)?;
            if one != before {
                grown = true;
                shim.tools.insert(tool.to_owned(), one);
            }
        }
        if !grown {
            break;
        }
    }
    Ok(shim)
}

fn by_name(contract: &CompiledContract) -> HashMap<&str, &ContractTool> {
    let tools = contract.tools.iter();
    tools.map(|tool| (tool.name.as_str(), &**tool)).collect()
}

/// The number of further steps that may turn out to be impossible.
struct FaultBudget(usize);

impl FaultBudget {
    fn take(&mut self) -> Result<(), String> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| {
            format!(
                "the versions differ in too many ways to read a shim off the difference: more than {FAULTS_MAX} steps \
                 are not possible; write the shim"
            )
        })?;
        Ok(())
    }
}

/// Adds the steps that can be made. They are first tried all at once, and a group that fails is split in halves: a step
/// that cannot be made does not affect the others, and many possible steps are as cheap as one.
fn extend(
    shim: &mut ToolShim,
    steps: &[SideStep],
    is_possible: &dyn Fn(&ToolShim) -> bool,
    faults: &mut FaultBudget,
) -> Result<(), String> {
    let mut next = shim.clone();
    for (side, step) in steps {
        let known = match side {
            SchemaSide::Input => &mut next.input,
            SchemaSide::Output => &mut next.output,
        };
        if !known.contains(step) {
            known.push(step.clone());
        }
    }
    if next == *shim {
        return Ok(());
    }
    if is_possible(&next) {
        *shim = next;
        return Ok(());
    }
    faults.take()?;
    if steps.len() > 1 {
        let (first, rest) = steps.split_at(steps.len() / 2);
        extend(shim, first, is_possible, faults)?;
        extend(shim, rest, is_possible, faults)?;
    }
    Ok(())
}

/// Returns what the differences of one tool suggest.
fn steps(items: &[&ContractChange], seen: Option<&ContractTool>) -> Vec<SideStep> {
    let input = LazyCell::new(|| normal::normal(&seen?.checked_input().value()).ok());
    let input = || input.as_ref();
    let suggested = items.iter().filter_map(|item| step(item, &input));
    suggested.collect()
}

fn step<'s>(item: &ContractChange, input: &dyn Fn() -> Option<&'s Value>) -> Option<SideStep> {
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
    } else if side == SchemaSide::Output {
        return None;
    } else if is(SchemaRule::RequiredAdded) {
        set(&value_place(&item.path)?, only_value(&item.new)?)
    } else if is(SchemaRule::BecameRequired) {
        let value = only_value(input()?.pointer(&item.path)?)?;
        set(&value_place(&item.path)?, value)
    } else if is(SchemaRule::DefaultChanged) && !item.old.is_null() {
        let at = value_place(item.path.strip_suffix("/default")?)?;
        set(&at, item.old.clone())
    } else {
        return None;
    };
    Some((side, step))
}

/// Returns the only value that the schema allows, which is used for an absent argument.
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
