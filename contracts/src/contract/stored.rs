//! A tool as it is stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use weir_schema::RawSchema;

use super::{
    ApprovalRule, CallLimits, CallTarget, CollectionTarget, ContractTool, OfferTarget, TextMode,
    ToolAnnotations, ToolBinding, ToolVerb,
};

pub(crate) const NO_VERB: &str = "a bound tool has a verb and an output schema";

/// A tool as it is stored. The members of its target are next to its own, as in artifacts from before there was more
/// than one kind of target.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredTool {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    verb: Option<ToolVerb>,
    input_schema: RawSchema,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<RawSchema>,
    annotations: ToolAnnotations,
    #[serde(skip_serializing_if = "Option::is_none")]
    binding: Option<ToolBinding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offer: Option<OfferTarget>,
    #[serde(default)]
    limits: CallLimits,
    #[serde(skip_serializing_if = "Option::is_none")]
    say: Option<String>,
    #[serde(default)]
    text: TextMode,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    resource: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    audit_clear: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalRule>,
}

impl TryFrom<StoredTool> for ContractTool {
    type Error = String;

    fn try_from(stored: StoredTool) -> Result<Self, String> {
        let target = match (stored.verb, stored.binding, stored.offer) {
            (None, None, None) => CallTarget::Form,
            (Some(verb), Some(binding), None) => {
                let target = CollectionTarget {
                    verb,
                    binding,
                    say: stored.say,
                    text: stored.text,
                    resource: stored.resource,
                };
                CallTarget::Collection(Arc::new(target))
            }
            (None, None, Some(offer)) => CallTarget::Offer(Arc::new(offer)),
            (_, _, None) => return Err(NO_VERB.to_owned()),
            (_, _, Some(_)) => {
                return Err("an offered tool has neither a verb nor a binding".to_owned());
            }
        };
        Ok(Self {
            name: stored.name,
            title: stored.title,
            description: stored.description,
            input_schema: stored.input_schema,
            output_schema: stored.output_schema,
            annotations: stored.annotations,
            target,
            limits: stored.limits,
            audit_clear: stored.audit_clear,
            approval: stored.approval,
        })
    }
}

impl From<ContractTool> for StoredTool {
    fn from(tool: ContractTool) -> Self {
        let bare = Self {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            verb: None,
            input_schema: tool.input_schema,
            output_schema: tool.output_schema,
            annotations: tool.annotations,
            binding: None,
            offer: None,
            limits: tool.limits,
            say: None,
            text: TextMode::default(),
            resource: false,
            audit_clear: tool.audit_clear,
            approval: tool.approval,
        };
        match tool.target {
            CallTarget::Form => bare,
            CallTarget::Offer(offer) => Self {
                offer: Some(Arc::unwrap_or_clone(offer)),
                ..bare
            },
            CallTarget::Collection(target) => {
                let CollectionTarget {
                    verb,
                    binding,
                    say,
                    text,
                    resource,
                } = Arc::unwrap_or_clone(target);
                Self {
                    verb: Some(verb),
                    binding: Some(binding),
                    say,
                    text,
                    resource,
                    ..bare
                }
            }
        }
    }
}
