//! Identifies who asks: the holder of an admin key.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};

use super::{Admin, Refusal};
use crate::{
    control::{gate::Role, operations::ActingAdmin},
    identity::{Credential, admin_matches},
    transport::{front_door::credential, http::connections},
};

/// A known holder, whatever the role; each handler says which role it needs.
pub(super) struct Staff {
    /// The id of the key.
    pub id: String,
    pub name: String,
    pub role: Role,
}

impl Staff {
    pub(super) fn needs(&self, role: Role) -> Result<(), Refusal> {
        Ok(self.acting("").needs(role)?)
    }

    /// Returns the holder as operations know one; `by` is [`by`](Self::by).
    pub(super) fn acting<'a>(&self, by: &'a str) -> ActingAdmin<'a> {
        ActingAdmin {
            by,
            role: self.role,
        }
    }

    /// Returns the name that the trail has for the author of a change.
    pub(super) fn by(&self) -> String {
        format!("admin:{}", self.name)
    }
}

impl FromRequestParts<Arc<Admin>> for Staff {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Self, Refusal> {
        let credential = credential(&parts.headers);
        let refused = |detail: &str| {
            admin
                .door
                .record_unknown(parts.uri.path(), credential, "admin key");
            Refusal::new(StatusCode::UNAUTHORIZED, detail)
        };
        let text = match credential {
            Credential::Key(text) => text,
            Credential::None => {
                return Err(refused(
                    "an admin key is needed: send `Authorization: Bearer weiradm_…`",
                ));
            }
            Credential::Malformed => return Err(refused("the admin key is not valid")),
        };
        let rows = admin.state.admins().await?;
        let find = |id: &str| {
            let row = rows
                .iter()
                .find(|row| row.id == id && row.revoked_ms.is_none())?;
            row.secret_hash.as_slice().try_into().ok()
        };
        let holder = admin_matches(text, find).and_then(|id| {
            let row = rows.iter().find(|row| row.id == id)?;
            Some(Self {
                role: row.role,
                name: row.name.clone(),
                id,
            })
        });
        let holder = holder.ok_or_else(|| refused("the admin key is not valid"))?;
        // A viewer only reads: its connections give way to those of people who change something.
        if holder.role > Role::Viewer {
            connections::set_known();
        }
        Ok(holder)
    }
}
