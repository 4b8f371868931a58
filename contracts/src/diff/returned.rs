//! Tools that were published once, were removed, and are published again.

use std::collections::HashSet;

use super::{DiffReport, binding, tool};
use crate::contract::CompiledContract;

/// Returns the names of the tools that `new` has and `old` does not.
pub fn missing_tools<'c>(old: &CompiledContract, new: &'c CompiledContract) -> HashSet<&'c str> {
    let mut missing: HashSet<&str> = new.tools.iter().map(|tool| tool.name.as_str()).collect();
    for tool in &old.tools {
        missing.remove(tool.name.as_str());
    }
    missing
}

/// Compares each tool that `old` lacks with the newest of the earlier versions that has it.
pub(super) fn compare(
    old: &CompiledContract,
    earlier: &[CompiledContract],
    new: &CompiledContract,
    report: &mut DiffReport,
) {
    let mut missing = missing_tools(old, new);
    for before in earlier {
        let found: HashSet<&str> = before
            .tools
            .iter()
            .filter_map(|tool| missing.take(tool.name.as_str()))
            .collect();
        if found.is_empty() {
            continue;
        }
        let (was, is) = (only(before, &found), only(new, &found));
        let first = report.items.len();
        tool::compare(&tool::of_contract(&was), &tool::of_contract(&is), report);
        binding::tools(&was, &is, report);
        binding::missing_collections(old, &was, &is, report);
        for item in &mut report.items[first..] {
            item.reason += &format!(
                ", compared with {}, the last version with this tool",
                before.version
            );
        }
    }
}

/// Returns the contract with only these of its tools.
fn only(contract: &CompiledContract, names: &HashSet<&str>) -> CompiledContract {
    let tools = contract
        .tools
        .iter()
        .filter(|tool| names.contains(tool.name.as_str()))
        .cloned()
        .collect();
    CompiledContract {
        tools,
        ..contract.clone()
    }
}
