//! The accounts of callers at other servers: their list, and their end. Their secrets remain sealed.

use serde::Serialize;
use utoipa::ToSchema;

use super::{OperationError, OperationResult};
use crate::{
    accounts::{AccountRegistry, ConnectFault},
    control::ControlPlane,
};

/// An account of a caller at another server.
#[derive(Serialize, ToSchema)]
pub struct AccountView {
    /// Never used for another account.
    pub number: i64,
    pub upstream: String,
    /// The owner of the account: an agent, a tenant, or the gateway itself.
    pub owner: String,
    /// Where the person signed in.
    pub issuer: String,
    /// Milliseconds since 1970, as all times.
    pub created_ms: i64,
    /// When its tokens were renewed last.
    pub renewed_ms: i64,
}

/// Returns the accounts at one server, even if it is no longer in the configuration.
pub async fn list(control: &ControlPlane, upstream: &str) -> OperationResult<Vec<AccountView>> {
    let rows = accounts(control)?.list(Some(upstream)).await?;
    let view = |row: weir_state::AccountRow| AccountView {
        number: row.number,
        upstream: row.upstream,
        owner: row.label,
        issuer: row.issuer,
        created_ms: row.created_ms,
        renewed_ms: row.renewed_ms,
    };
    Ok(rows.into_iter().map(view).collect())
}

/// Removes an account, and revokes it at its issuer where possible: the next call of its owner asks for a sign-in again.
pub async fn disconnect(
    control: &ControlPlane,
    upstream: &str,
    number: i64,
    by: &str,
) -> OperationResult<()> {
    let removed = accounts(control)?.disconnect(upstream, number, by).await;
    match removed {
        Ok(true) => Ok(()),
        Ok(false) => Err(OperationError::not_found("account", &number.to_string())
            .see("`weir upstream accounts` lists the accounts")),
        Err(ConnectFault::State(error)) => Err(error.into()),
        Err(fault) => Err(OperationError::unavailable(fault.to_string())),
    }
}

fn accounts(control: &ControlPlane) -> OperationResult<&AccountRegistry> {
    let accounts = control.gateway().accounts().map(|accounts| &**accounts);
    accounts.ok_or_else(|| OperationError::unavailable("this process keeps no accounts"))
}
