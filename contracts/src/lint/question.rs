//! Checks what only a contract shows: whether the questions that a tool offers can have a useful answer.

use super::{GROUP_OF_ONE, LintFindings};
use crate::{contract::CompiledContract, name};

pub(super) fn check(contract: &CompiledContract, findings: &mut LintFindings) {
    for tool in &contract.tools {
        let Some(binding) = tool.collection().map(|target| &target.binding) else {
            continue;
        };
        let Some(collection) = contract.collection(&binding.collection) else {
            continue;
        };
        let groups = binding.summary.iter().flat_map(|choices| &choices.groups);
        for group in groups.filter(|group| group.step.is_none()) {
            if collection.shape.key == [group.column.as_str()] {
                let message = format!(
                    "{} is the key, so that each group is one record",
                    name::quoted(&group.column)
                );
                findings.add(Some(&tool.name), "group_by", GROUP_OF_ONE, message);
            }
        }
    }
}
