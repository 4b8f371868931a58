//! Keys of people who operate the gateway.

use serde::Serialize;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_contracts::contract::ArtifactFormat;
use weir_state::{AdminRow, JoinedRoles};

use super::{FailureKind, OperationError, OperationResult, keys::check_name};
use crate::{
    control::{ControlPlane, gate::Role},
    identity::{MintedSecret, SecretKind, now_ms},
};

/// An admin key, without its secret.
#[derive(Serialize, ToSchema)]
pub struct AdminView {
    pub id: String,
    pub name: String,
    pub role: Role,
    /// Whether it may decide about writes that wait for a person.
    pub approves: bool,
    /// Milliseconds since 1970, as all times.
    pub created_ms: i64,
    pub created_by: String,
    pub revoked_ms: Option<i64>,
}

/// An admin key that was made, with its secret, which is shown once.
#[derive(Serialize, ToSchema)]
pub struct MadeAdmin {
    #[serde(flatten)]
    pub view: AdminView,
    /// The key. It is shown only once.
    pub key: String,
}

impl From<AdminRow> for AdminView {
    fn from(row: AdminRow) -> Self {
        let approves = row.roles().decides_plans();
        let AdminRow {
            id,
            name,
            role,
            created_ms,
            created_by,
            revoked_ms,
            ..
        } = row;
        Self {
            id,
            name,
            role,
            approves,
            created_ms,
            created_by,
            revoked_ms,
        }
    }
}

/// Returns all admin keys, revoked ones too.
pub async fn list(control: &ControlPlane) -> OperationResult<Vec<AdminView>> {
    let admins = control.state().admins().await?;
    Ok(admins.into_iter().map(AdminView::from).collect())
}

/// Checks that every running node can read a role: a node of an earlier version cannot read any admin while there is an approver.
pub async fn check_role(control: &ControlPlane, role: Role) -> OperationResult<()> {
    if role != Role::Approver {
        return Ok(());
    }
    let format = ArtifactFormat::APPROVALS.number();
    let nodes = control.state().nodes().await?;
    let older = nodes
        .iter()
        .find(|node| node.is_live() && !node.reads(format));
    older.map_or(Ok(()), |older| {
        let detail = format!(
            "the node `{}` runs version {}, which does not know the role approver: upgrade that node or stop it, and try again",
            older.name, older.version
        );
        Err(OperationError::new(FailureKind::Conflict, detail))
    })
}

/// Makes an admin key.
pub async fn create(
    control: &ControlPlane,
    name: String,
    roles: JoinedRoles,
    by: &str,
) -> OperationResult<MadeAdmin> {
    check_name("name", &name)?;
    check_role(control, roles.role).await?;
    let minted = MintedSecret::new(SecretKind::Admin)
        .map_err(|_| OperationError::unavailable("no random number could be generated"))?;
    let row = AdminRow {
        id: minted.id,
        secret_hash: minted.hash.to_vec(),
        name,
        role: roles.role,
        approves: roles.approves,
        created_ms: now_ms(),
        created_by: by.to_owned(),
        revoked_ms: None,
    };
    let detail = serde_json::Map::from_iter([
        ("admin".to_owned(), row.name.clone().into()),
        ("role".to_owned(), roles.to_string().into()),
    ]);
    let audit = control.gateway().audit();
    audit.admin(AdminAct::KeyCreate, &row.id, None, by, Some(&detail))?;
    let added = control.state().add_admin(&row).await;
    audit.note_failure(AdminAct::KeyCreate, &row.id, None, by, added)?;
    Ok(MadeAdmin {
        view: row.into(),
        key: minted.text,
    })
}

/// Revokes an admin key: the next request with it is refused. The last operator key cannot be revoked, since only an operator
/// could make another one.
pub async fn revoke(control: &ControlPlane, id: &str, by: &str) -> OperationResult<()> {
    let admins = control.state().admins().await?;
    let key = admins.iter().find(|key| key.id == id).ok_or_else(|| {
        OperationError::not_found("admin key", id)
            .see("an id is needed, as GET /v1/admins shows it")
    })?;
    if key.revoked_ms.is_some() {
        return Ok(());
    }
    let is_operator = |row: &&AdminRow| row.role == Role::Operator && row.revoked_ms.is_none();
    if is_operator(&key) && admins.iter().filter(is_operator).count() == 1 {
        return Err(last_operator(id));
    }
    let audit = control.gateway().audit();
    audit.admin(AdminAct::KeyRevoke, id, None, by, None)?;
    let revoked = match control.state().revoke_spare_admin(id, now_ms()).await {
        Ok(true) => Ok(()),
        // The others have been revoked since they were read.
        Ok(false) => Err(last_operator(id)),
        Err(error) => Err(error.into()),
    };
    audit.note_failure(AdminAct::KeyRevoke, id, None, by, revoked)
}

fn last_operator(id: &str) -> OperationError {
    let detail = format!(
        "`{id}` is the last key of an operator, and no one else could make another one: make that first \
         (POST /v1/admins, `weir admins create`)"
    );
    OperationError::new(FailureKind::Conflict, detail)
}
