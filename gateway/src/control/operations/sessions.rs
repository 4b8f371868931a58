//! Sessions of admins: an admin key or a link is exchanged for one, which a page keeps instead.

use serde::Serialize;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_state::{AdminRow, GatewayState, SessionKind, SessionRow, StateError};

use super::{OperationError, OperationResult};
use crate::{
    control::{ControlPlane, gate::Role},
    identity::{MintedSecret, SecretKind, now_ms},
};

/// The life of a session.
const SESSION_MS: i64 = 12 * 3600 * 1000;
/// A session that has not been used for this long has ended.
const IDLE_MS: i64 = 3600 * 1000;
/// The life of a link.
const LINK_MS: i64 = 60 * 1000;
/// A use is recorded only if the last recorded one is at least this old, so that not every request writes.
const NOTED_MS: i64 = 60 * 1000;
/// Sessions in one list.
const LISTED_MAX: i64 = 1_000;
/// The part of the console's address that carries a link.
const FRAGMENT: &str = "/#link=";

/// The caller of the admin API.
#[derive(Serialize, ToSchema)]
pub struct SessionView {
    /// The id of the admin key.
    pub id: String,
    /// The name of the admin key.
    pub name: String,
    pub role: Role,
    /// Whether it may decide about writes that wait for a person.
    pub approves: bool,
    /// The end of the session, in milliseconds since 1970; it ends earlier if it is not used for an hour. Null: the request came
    /// with the admin key itself.
    pub expires_ms: Option<i64>,
    /// The version of the program.
    pub version: &'static str,
    /// The URL for MCP clients; null if HTTP is not served, or if its port is not configured.
    pub mcp_url: Option<String>,
}

/// A new session of a browser, with its secret.
#[derive(Serialize, ToSchema)]
pub struct NewSession {
    #[serde(flatten)]
    pub view: SessionView,
    /// The bearer token of the session. It is shown only once.
    pub token: String,
}

/// A session that has not ended.
#[derive(Serialize, ToSchema)]
pub struct OpenSession {
    /// The id of the session, which gives no access.
    pub id: String,
    /// The id of the admin key.
    pub admin: String,
    /// The name of the admin key.
    pub name: String,
    pub role: Role,
    /// Milliseconds since 1970, as all times.
    pub created_ms: i64,
    /// When it was last used, to a minute.
    pub used_ms: i64,
    /// Its end; it ends earlier if it is not used for an hour.
    pub expires_ms: i64,
    /// Whether it is the session of this request.
    pub own: bool,
}

/// A link that signs in once.
#[derive(Serialize, ToSchema)]
pub struct SignInLink {
    /// The bearer token that begins one session, by `POST /v1/session`.
    pub link: String,
    /// The console's path with the link.
    pub path: String,
    pub expires_ms: i64,
}

/// Begins a session of an admin key.
pub async fn begin(control: &ControlPlane, admin: &AdminRow) -> OperationResult<NewSession> {
    let made = mint(SecretKind::Session)?;
    // An operator can sign in even if the trail cannot be written, to find out why.
    let by = format!("admin:{}", admin.name);
    let audit = control.gateway().audit();
    let _ = audit.admin(AdminAct::SignIn, &admin.id, None, &by, None);
    let row = row(&made, &admin.id, SessionKind::Session, SESSION_MS);
    control.state().add_session(&row).await?;
    Ok(NewSession {
        view: show(control, admin, Some(row.expires_ms)),
        token: made.text,
    })
}

/// Returns the caller. `expires_ms` is that of the session, if the request came with one.
pub fn show(control: &ControlPlane, admin: &AdminRow, expires_ms: Option<i64>) -> SessionView {
    SessionView {
        id: admin.id.clone(),
        name: admin.name.clone(),
        role: admin.role,
        approves: admin.roles().decides_plans(),
        expires_ms,
        version: env!("CARGO_PKG_VERSION"),
        mcp_url: mcp_url(control),
    }
}

/// Returns the URL for MCP clients, if the configuration determines it.
pub(super) fn mcp_url(control: &ControlPlane) -> Option<String> {
    let config = control.gateway().config();
    // Port 0 stands for any free port, which is not in the configuration.
    let listen = config.http.listen.filter(|address| address.port() != 0);
    let listen = listen.map(|address| format!("http://{address}"));
    let public = config.http.public_base().map(str::to_owned);
    Some(format!("{}/mcp", public.or(listen)?))
}

/// Ends a session.
pub async fn end(control: &ControlPlane, session: Option<&str>) -> OperationResult<()> {
    let session = session.ok_or_else(|| {
        OperationError::new(
            super::FailureKind::Conflict,
            "the request came with an admin key, not with a session: keys are revoked with DELETE /v1/admins/ID",
        )
    })?;
    control.state().remove_session(session).await?;
    Ok(())
}

/// Returns the sessions that have not ended, newest first. `own` is the session of the request.
pub async fn list(control: &ControlPlane, own: Option<&str>) -> OperationResult<Vec<OpenSession>> {
    let (state, now) = (control.state(), now_ms());
    let admins = state.admins().await?;
    let sessions = state.sessions(now, now - IDLE_MS, LISTED_MAX).await?;
    let view = |row: SessionRow| {
        let admin = admins.iter().find(|admin| admin.id == row.admin)?;
        let is_open = admin.revoked_ms.is_none() && !has_ended(&row, now);
        is_open.then(|| OpenSession {
            own: own == Some(&*row.id),
            id: row.id,
            admin: row.admin,
            name: admin.name.clone(),
            role: admin.role,
            created_ms: row.created_ms,
            used_ms: row.used_ms,
            expires_ms: row.expires_ms,
        })
    };
    Ok(sessions.into_iter().filter_map(view).collect())
}

/// Ends a session by its id: the next request with it is refused.
pub async fn end_one(control: &ControlPlane, id: &str, by: &str) -> OperationResult<()> {
    let state = control.state();
    let session = state.session(id, SessionKind::Session).await?;
    let session = session.ok_or_else(|| {
        OperationError::not_found("session", id)
            .see("an id is needed, as GET /v1/sessions shows it")
    })?;
    let audit = control.gateway().audit();
    audit.admin(AdminAct::SessionEnd, &session.admin, None, by, None)?;
    let removed = state.remove_session(&session.id).await;
    audit.note_failure(AdminAct::SessionEnd, &session.admin, None, by, removed)?;
    Ok(())
}

/// Makes a link that begins one session of an admin key, within a minute.
pub async fn make_link(state: &GatewayState, admin: &str) -> OperationResult<SignInLink> {
    let made = mint(SecretKind::Link)?;
    let row = row(&made, admin, SessionKind::Link, LINK_MS);
    state.add_session(&row).await?;
    Ok(SignInLink {
        path: format!("{FRAGMENT}{}", made.text),
        link: made.text,
        expires_ms: row.expires_ms,
    })
}

/// Takes a link, which cannot be used again. Returns the id of its admin key.
pub async fn take_link(
    state: &GatewayState,
    text: &str,
    now: i64,
) -> Result<Option<String>, StateError> {
    let Some(row) = find(state, text, SessionKind::Link).await? else {
        return Ok(None);
    };
    let is_first = state.remove_session(&row.id).await?;
    Ok((is_first && now < row.expires_ms).then_some(row.admin))
}

/// Returns the session of a token, if it has not ended.
pub async fn resume(
    state: &GatewayState,
    text: &str,
    now: i64,
) -> Result<Option<SessionRow>, StateError> {
    let found = find(state, text, SessionKind::Session).await?;
    let found = found.filter(|row| !has_ended(row, now));
    if let Some(row) = &found
        && now >= row.used_ms + NOTED_MS
    {
        // A session that can be read can be used, even if its use cannot be recorded.
        if let Err(error) = state.touch_session(&row.id, now).await {
            tracing::warn!(%error, "the use of a session could not be noted");
        }
    }
    Ok(found)
}

/// Returns whether an admin key is valid, and its session, if there is one, has not ended. This does not count as a use of the
/// session.
pub async fn is_live(
    state: &GatewayState,
    admin: &str,
    session: Option<&str>,
) -> Result<bool, StateError> {
    let admins = state.admins().await?;
    let is_valid = |row: &AdminRow| row.id == admin && row.revoked_ms.is_none();
    if !admins.iter().any(is_valid) {
        return Ok(false);
    }
    let Some(session) = session else {
        return Ok(true);
    };
    let row = state.session(session, SessionKind::Session).await?;
    Ok(row.is_some_and(|row| !has_ended(&row, now_ms())))
}

fn has_ended(row: &SessionRow, now: i64) -> bool {
    now >= row.expires_ms || now >= row.used_ms + IDLE_MS
}

async fn find(
    state: &GatewayState,
    text: &str,
    kind: SessionKind,
) -> Result<Option<SessionRow>, StateError> {
    let key_kind = match kind {
        SessionKind::Session => SecretKind::Session,
        SessionKind::Link => SecretKind::Link,
    };
    let Some(shown) = MintedSecret::read(text, key_kind) else {
        return Ok(None);
    };
    let row = state.session(&shown.id, kind).await?;
    Ok(row.filter(|row| shown.matches(&row.secret_hash)))
}

fn mint(kind: SecretKind) -> OperationResult<MintedSecret> {
    MintedSecret::new(kind)
        .map_err(|_| OperationError::unavailable("no random number could be generated"))
}

fn row(made: &MintedSecret, admin: &str, kind: SessionKind, life_ms: i64) -> SessionRow {
    let now = now_ms();
    SessionRow {
        id: made.id.clone(),
        secret_hash: made.hash.to_vec(),
        admin: admin.to_owned(),
        kind,
        created_ms: now,
        expires_ms: now + life_ms,
        used_ms: now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIN: &str = "0123456789ab";

    async fn state() -> (tempfile::TempDir, GatewayState) {
        let folder = tempfile::tempdir().expect("a folder");
        let state = GatewayState::open(folder.path()).await.expect("a state");
        let admin = AdminRow {
            id: ADMIN.to_owned(),
            secret_hash: vec![0; 32],
            name: "ada".to_owned(),
            role: Role::Viewer,
            approves: false,
            created_ms: 0,
            created_by: "test".to_owned(),
            revoked_ms: None,
        };
        state.add_admin(&admin).await.expect("added");
        (folder, state)
    }

    #[tokio::test]
    async fn a_session_ends_by_age_and_without_use() {
        let (_folder, state) = state().await;
        let made = mint(SecretKind::Session).expect("minted");
        let row = row(&made, ADMIN, SessionKind::Session, SESSION_MS);
        state.add_session(&row).await.expect("added");
        let is_taken = async |after_ms: i64| {
            let found = resume(&state, &made.text, row.created_ms + after_ms).await;
            found.expect("read").is_some()
        };
        assert!(!is_taken(IDLE_MS).await, "it was not used for an hour");
        for hour in 1..12 {
            assert!(
                is_taken(hour * IDLE_MS - hour * NOTED_MS).await,
                "hour {hour}"
            );
        }
        assert!(is_taken(SESSION_MS - NOTED_MS * 12).await);
        assert!(is_taken(SESSION_MS - 1).await);
        assert!(!is_taken(SESSION_MS).await, "it was used until its end");
        let wrong = format!("weirses_{}_{}", made.id, "0".repeat(64));
        assert!(
            resume(&state, &wrong, row.created_ms)
                .await
                .expect("read")
                .is_none()
        );
    }

    #[tokio::test]
    async fn a_link_is_of_use_for_a_minute() {
        let (_folder, state) = state().await;
        for (after_ms, is_taken) in [(LINK_MS - 1000, true), (LINK_MS + 1000, false)] {
            let made = make_link(&state, ADMIN).await.expect("a link");
            let now = made.expires_ms - LINK_MS + after_ms;
            let taken = take_link(&state, &made.link, now).await.expect("read");
            assert_eq!(taken.is_some(), is_taken, "{after_ms}");
            assert_eq!(
                take_link(&state, &made.link, now).await.expect("read"),
                None
            );
        }
        state.revoke_admin(ADMIN, 1).await.expect("revoked");
        assert!(make_link(&state, ADMIN).await.is_err());
    }
}
