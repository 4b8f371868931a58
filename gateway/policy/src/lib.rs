//! Policies in Cedar over the types of compiled contracts. Pure functions, but for the reading of a folder.
//!
//! [`vocabulary`] has the entities of policies, and their Cedar schema; [`rules`] are policies that were read; [`check`]
//! finds their problems, and what a change of a contract breaks; [`decision`] decides.

pub mod argument;
pub mod check;
pub mod decision;
pub mod folder;
pub mod principal;
mod reads;
pub mod rules;
pub mod vocabulary;

pub use self::{
    argument::{ArgumentNote, ToolArguments, UnreadableArgument},
    check::{broken_by, check_rules},
    decision::{ArgumentPolicies, PolicyDenial, PolicyJudge, PrincipalClass, ToolVerdict},
    folder::{PolicyFile, read_folder},
    principal::{PolicyPrincipal, PolicyToken, PrincipalKind},
    rules::{DefaultDecision, PolicyRule, PolicyRules},
    vocabulary::PolicyVocabulary,
};
