//! The caller, as policies see it.

use std::{collections::HashSet, sync::Arc};

use cedar_policy::{Entity, EntityUid, PrincipalConstraint, RestrictedExpression};

use crate::vocabulary::{named, uid};

/// The kind of a caller, which is the type of its entity in Cedar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrincipalKind {
    /// The holder of a key.
    Agent,
    /// The holder of an issuer's token.
    User,
}

/// The caller of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PolicyPrincipal {
    pub kind: PrincipalKind,
    pub name: Arc<str>,
    pub tenant: Arc<str>,
    pub groups: Arc<[Arc<str>]>,
    /// The token of a user: its issuer and subject, and its client if the token names one.
    pub token: Option<PolicyToken>,
}

/// The claims of a token about its holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PolicyToken {
    pub issuer: Arc<str>,
    pub subject: Arc<str>,
    pub client: Option<Arc<str>>,
}

impl PolicyPrincipal {
    /// Returns the holder of a key.
    pub fn agent(name: &str, tenant: &str) -> Self {
        Self {
            kind: PrincipalKind::Agent,
            name: name.into(),
            tenant: tenant.into(),
            groups: Arc::from([]),
            token: None,
        }
    }

    /// Returns `true` if the head of a policy is about the caller.
    pub(crate) fn matches(&self, constraint: &PrincipalConstraint) -> bool {
        let own = self.uid();
        let is_in = |group: &EntityUid| {
            own == *group
                || named(group, "Tenant") == Some(&*self.tenant)
                || self
                    .groups
                    .iter()
                    .any(|own| named(group, "Group") == Some(&**own))
        };
        match constraint {
            PrincipalConstraint::Any => true,
            PrincipalConstraint::Eq(one) => own == *one,
            PrincipalConstraint::In(group) => is_in(group),
            PrincipalConstraint::Is(kind) => own.type_name() == kind,
            PrincipalConstraint::IsIn(kind, group) => own.type_name() == kind && is_in(group),
        }
    }

    pub(crate) fn uid(&self) -> EntityUid {
        let kind = match self.kind {
            PrincipalKind::Agent => "Agent",
            PrincipalKind::User => "User",
        };
        uid(kind, &self.name)
    }

    pub(crate) fn entity(&self) -> Entity {
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let mut attributes = vec![
            ("name".to_owned(), text(&self.name)),
            ("tenant".to_owned(), text(&self.tenant)),
        ];
        if let Some(token) = &self.token {
            attributes.push(("issuer".to_owned(), text(&token.issuer)));
            attributes.push(("subject".to_owned(), text(&token.subject)));
            if let Some(client) = &token.client {
                attributes.push(("client".to_owned(), text(client)));
            }
        }
        let mut parents: HashSet<EntityUid> = self
            .groups
            .iter()
            .map(|group| uid("Group", group))
            .collect();
        parents.insert(uid("Tenant", &self.tenant));
        Entity::new(self.uid(), attributes.into_iter().collect(), parents)
            .expect("plain texts are values")
    }
}
