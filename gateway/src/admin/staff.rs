//! Identifies the caller: the holder of an admin key, or of a session of one.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};
use weir_state::{AdminRow, SessionRow};

use super::{AdminContext, AdminProblem};
use crate::{
    control::{
        gate::Role,
        operations::{ActingAdmin, sessions},
    },
    identity::{MintedSecret, RequestCredential, SecretKind, admin_matches, now_ms},
    transport::{front_door::credential, http::connections},
};

const NEEDED: &str = "an admin key is needed: send `Authorization: Bearer weiradm_…`";
const INVALID: &str = "the admin key is not valid";
const ENDED: &str = "the session has ended: sign in again";
const SPENT: &str = "the link was used, or is older than a minute: make another one";

/// A known holder, whatever the role; each handler checks the role that it requires.
pub(super) struct AdminPrincipal {
    /// The admin key, which is not revoked.
    pub key: AdminRow,
    /// The session that the request came with; `None` if it came with the key itself.
    pub session: Option<SessionRow>,
}

/// A caller who signs in: with an admin key, or with a link, which this uses up.
pub(super) struct SignInPrincipal(pub AdminPrincipal);

impl AdminPrincipal {
    pub(super) fn needs(&self, role: Role) -> Result<(), AdminProblem> {
        Ok(self.acting("").needs(role)?)
    }

    /// Refuses roles that do not decide about writes that wait for a person.
    pub(super) fn needs_approver(&self) -> Result<(), AdminProblem> {
        let roles = self.key.roles();
        if roles.decides_plans() {
            return Ok(());
        }
        let detail = format!("this needs the role approver or operator, and yours is {roles}");
        Err(AdminProblem::new(StatusCode::FORBIDDEN, detail))
    }

    /// Returns the holder in the form that operations take; `by` is [`by`](Self::by).
    pub(super) fn acting<'a>(&self, by: &'a str) -> ActingAdmin<'a> {
        ActingAdmin {
            by,
            role: self.key.role,
        }
    }

    /// Returns the name in the trail for the author of a change.
    pub(super) fn by(&self) -> String {
        format!("admin:{}", self.key.name)
    }

    async fn find(admin: &AdminContext, text: &str) -> Result<Option<Self>, AdminProblem> {
        let session = sessions::resume(&admin.state, text, now_ms()).await?;
        let rows = admin.state.admins().await?;
        let find = |id: &str| {
            let row = rows.iter().find(|row| row.id == id)?;
            row.secret_hash.as_slice().try_into().ok()
        };
        let id = match &session {
            Some(session) => Some(session.admin.clone()),
            None => admin_matches(text, find),
        };
        let is_holder = |row: &AdminRow| id.as_ref() == Some(&row.id) && row.revoked_ms.is_none();
        let key = rows.into_iter().find(is_holder);
        Ok(key.map(|key| Self { key, session }))
    }

    async fn of_link(admin: &AdminContext, text: &str) -> Result<Option<Self>, AdminProblem> {
        let Some(id) = sessions::take_link(&admin.state, text, now_ms()).await? else {
            return Ok(None);
        };
        let mut rows = admin.state.admins().await?.into_iter();
        let key = rows.find(|row| row.id == id && row.revoked_ms.is_none());
        Ok(key.map(|key| Self { key, session: None }))
    }

    /// Keeps the connection open where others make room.
    fn set_known(self) -> Self {
        // A viewer only reads: if there is no room, its connections give way to those of people who change something.
        connections::set_yielding(!self.key.roles().changes_things());
        connections::set_known();
        self
    }
}

impl FromRequestParts<Arc<AdminContext>> for AdminPrincipal {
    type Rejection = AdminProblem;

    async fn from_request_parts(
        parts: &mut Parts,
        admin: &Arc<AdminContext>,
    ) -> Result<Self, AdminProblem> {
        let text = bearer(parts, admin)?;
        let holder = Self::find(admin, text).await?;
        holder
            .map(Self::set_known)
            .ok_or_else(|| refuse(parts, admin, invalid(text)))
    }
}

impl FromRequestParts<Arc<AdminContext>> for SignInPrincipal {
    type Rejection = AdminProblem;

    async fn from_request_parts(
        parts: &mut Parts,
        admin: &Arc<AdminContext>,
    ) -> Result<Self, AdminProblem> {
        let text = bearer(parts, admin)?;
        let holder = match MintedSecret::read(text, SecretKind::Link) {
            Some(_) => AdminPrincipal::of_link(admin, text).await?,
            None => AdminPrincipal::find(admin, text).await?,
        };
        holder
            .map(|staff| Self(staff.set_known()))
            .ok_or_else(|| refuse(parts, admin, invalid(text)))
    }
}

/// Returns the credential of the request, which has not been checked yet.
fn bearer<'a>(parts: &'a Parts, admin: &AdminContext) -> Result<&'a str, AdminProblem> {
    match credential(&parts.headers) {
        RequestCredential::Key(text) => Ok(text),
        RequestCredential::None => Err(refuse(parts, admin, NEEDED)),
        RequestCredential::Malformed | RequestCredential::Bound(_) => {
            Err(refuse(parts, admin, INVALID))
        }
    }
}

fn invalid(text: &str) -> &'static str {
    match text {
        text if MintedSecret::read(text, SecretKind::Session).is_some() => ENDED,
        text if MintedSecret::read(text, SecretKind::Link).is_some() => SPENT,
        _ => INVALID,
    }
}

fn refuse(parts: &Parts, admin: &AdminContext, detail: &str) -> AdminProblem {
    let credential = credential(&parts.headers);
    let (door, path) = (&admin.door, parts.uri.path());
    door.record_unknown_admin(path, credential, "admin key", detail);
    AdminProblem::new(StatusCode::UNAUTHORIZED, detail)
}
