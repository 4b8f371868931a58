//! Decides which parts of a change to a foreign server's tools wait for consent.
//!
//! The classes ask whether callers can continue as before. A foreign server may do harm without breaking a caller: by a
//! description that was harmless when it was approved, by a further tool, by an annotation that makes clients approve its
//! calls unasked.

use serde::{Deserialize, Serialize};

use super::{ChangeSeverity, ContractChange, ContractDiff};

/// The changes of an upstream server that go live automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForeignChanges {
    /// No change that a client can see.
    #[default]
    Hold,
    /// Changes that break no caller and add no text, item or annotation.
    Compatible,
}

/// Rules about what an operator sets in the overlay or the configuration, or about what no client sees. Their class decides.
const OPERATORS: &[&str] = &[
    "definitions-changed",
    "rate-lowered",
    "rate-raised",
    "timeout-changed",
    "audit-loosened",
    "audit-tightened",
    "approval-added",
    "approval-dropped",
    "bound-field-added",
    "bound-field-changed",
    "bound-field-removed",
];

/// Rules about schemas whose new side is a number, a type or less than before, on the side where they break no caller.
const WITHOUT_TEXT: &[&str] = &[
    "property-removed",
    "property-removed-from-open",
    "required-removed-from-open",
    "became-required",
    "became-optional",
    "type-widened",
    "type-narrowed",
    "enum-value-removed",
    "enum-removed",
    "tightened",
    "relaxed",
    "pattern-removed",
    "format-removed",
    "object-closed",
    "object-opened",
    "union-arm-removed",
    "union-removed",
];

impl ContractDiff {
    /// Returns the items that wait for consent if the contract is an upstream server's, whatever their class. If there
    /// are none, the class alone decides, as for any other contract.
    pub fn awaiting_consent(&self, changes: ForeignChanges) -> Vec<&ContractChange> {
        self.items
            .iter()
            .filter(|item| awaits_consent(item, changes))
            .collect()
    }
}

pub(super) fn awaits_consent(item: &ContractChange, changes: ForeignChanges) -> bool {
    if item.class == ChangeSeverity::Identical || OPERATORS.contains(&item.rule.as_str()) {
        return false;
    }
    let rule = item
        .side
        .and_then(|side| item.rule.strip_prefix(side.word())?.strip_prefix('-'));
    let is_without_text = rule.is_some_and(|rule| WITHOUT_TEXT.contains(&rule));
    match changes {
        ForeignChanges::Hold => true,
        ForeignChanges::Compatible => !is_without_text || item.class > ChangeSeverity::Compatible,
    }
}
