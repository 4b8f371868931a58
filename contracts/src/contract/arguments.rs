//! The check of a tool's arguments: its input schema, and the rules that no schema has.

use weir_schema::validate::{ArgumentValidator, ValidationAuthority, ValidationRules};

use super::ContractTool;

impl ContractTool {
    /// Prepares the check of its arguments.
    pub fn argument_validator(&self) -> Result<ArgumentValidator, String> {
        let binding = self.collection().map(|target| &target.binding);
        let is_operation = binding.is_some_and(|binding| binding.operation.is_some());
        let rules = ValidationRules {
            judge: match self.is_foreign() {
                true => ValidationAuthority::Foreign,
                false => ValidationAuthority::Own,
            },
            clear: binding
                .and_then(|binding| binding.clear())
                .map(str::to_owned),
            is_wide: is_operation || self.is_foreign(),
            has_digits: is_operation,
        };
        ArgumentValidator::with_rules(&self.checked_input().value(), rules)
    }
}
