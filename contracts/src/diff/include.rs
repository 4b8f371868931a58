//! Compares the related records that lookups answer.

use serde_json::{Value, json};

use super::{DiffReport, rule::ToolRule};
use crate::{contract::ToolBinding, name};

pub(super) fn inclusions(
    old: &ToolBinding,
    new: &ToolBinding,
    tool: &str,
    report: &mut DiffReport,
) {
    for (index, now) in new.include.iter().enumerate() {
        let was = old.include.iter().find(|was| was.name == now.name);
        let shown = name::quoted(&now.name);
        let (rule, reason) = match was {
            None => {
                let what = format!("{shown} can be asked for: a record of {}", now.collection);
                (ToolRule::IncludeAdded, what)
            }
            Some(was) if was != now => (
                ToolRule::IncludeChanged,
                format!("{shown} is another record"),
            ),
            Some(_) => continue,
        };
        let path = format!("/binding/include/{index}");
        report.note(rule, Some(tool), path, (json!(was), json!(now)), reason);
    }
    for (index, was) in old.include.iter().enumerate() {
        if new.include.iter().any(|now| now.name == was.name) {
            continue;
        }
        let reason = format!("{} can no longer be asked for", name::quoted(&was.name));
        let path = format!("/binding/include/{index}");
        let change = (json!(was), Value::Null);
        report.note(ToolRule::IncludeRemoved, Some(tool), path, change, reason);
    }
}
