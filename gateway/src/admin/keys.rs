//! Keys of agents: made once, shown once, revoked for good.

use std::collections::BTreeSet;

use axum::{Json, extract::State as Shared, http::StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_state::KeyRow;

use super::{
    Admin, Answer, Ask, Refusal,
    problem::{At, Body},
    staff::Staff,
};
use crate::{
    control::gate::Role,
    identity::{AccessList, KeyLimits, Kind, Minted, now_ms},
};

const NAME_MAX_CHARS: usize = 64;
/// What to do where no key has an id.
const IDS: &str = "an id is wanted, as GET /v1/keys and `weir keys list` show it";

/// A key, without its secret.
#[derive(Serialize, ToSchema)]
pub(super) struct KeyView {
    id: String,
    agent: String,
    tenant: String,
    /// What it may see and call; null: everything.
    access: Option<AccessList>,
    /// The view that it is shown at `/mcp`; null: everything.
    view: Option<String>,
    limits: KeyLimits,
    /// Milliseconds since 1970, as all times.
    created_ms: i64,
    created_by: String,
    expires_ms: Option<i64>,
    revoked_ms: Option<i64>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewKey {
    /// Who holds it: 1 to 64 letters, digits, `-`, `_`, `.`, `@`, `:`.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_.@:-]+$")]
    agent: String,
    /// Whom the agent belongs to; by default the agent itself.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_.@:-]+$")]
    tenant: Option<String>,
    /// Left out: every contract.
    access: Option<AccessList>,
    /// The view that it is shown at `/mcp`. Left out: everything that it may use. It bounds nothing: what the agent may use is
    /// said by `access`.
    #[schema(max_length = 32, pattern = "^[a-z][a-z0-9-]*$")]
    view: Option<String>,
    #[serde(default)]
    limits: KeyLimits,
    /// Left out: it does not expire.
    #[schema(minimum = 1, maximum = 315360000)]
    expires_in_s: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct MadeKey {
    #[serde(flatten)]
    view: KeyView,
    /// The key. It is shown now and never again.
    key: String,
    /// What it names that is not there now, one sentence each: contracts and tools may come later.
    warnings: Vec<String>,
}

impl From<KeyRow> for KeyView {
    fn from(row: KeyRow) -> Self {
        Self {
            access: row
                .access
                .as_deref()
                .map(|text| serde_json::from_str(text).unwrap_or_default()),
            limits: row
                .limits
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok())
                .unwrap_or_default(),
            view: row.view,
            id: row.id,
            agent: row.agent,
            tenant: row.tenant,
            created_ms: row.created_ms,
            created_by: row.created_by,
            expires_ms: row.expires_ms,
            revoked_ms: row.revoked_ms,
        }
    }
}

/// All keys that ever were, revoked ones too. Role: viewer.
#[utoipa::path(get, path = "/v1/keys", responses(
    (status = 200, body = Vec<KeyView>), (status = 401, body = Refusal), (status = 403, body = Refusal)))]
pub(super) async fn list(Shared(admin): Ask, staff: Staff) -> Answer<Json<Vec<KeyView>>> {
    staff.needs(Role::Viewer)?;
    Ok(Json(
        admin
            .state
            .keys()
            .await?
            .into_iter()
            .map(KeyView::from)
            .collect(),
    ))
}

/// Makes a key for an agent, also where it names contracts or tools that are still to come. Role: operator.
#[utoipa::path(post, path = "/v1/keys", request_body = NewKey, responses(
    (status = 201, body = MadeKey), (status = 400, body = Refusal), (status = 401, body = Refusal),
    (status = 403, body = Refusal), (status = 413, body = Refusal), (status = 415, body = Refusal),
    (status = 422, body = Refusal), (status = 503, body = Refusal)))]
pub(super) async fn create(
    Shared(admin): Ask,
    staff: Staff,
    Body(new): Body<NewKey>,
) -> Answer<(StatusCode, Json<MadeKey>)> {
    staff.needs(Role::Operator)?;
    new.check()?;
    let warnings = new.warnings(&admin).await?;
    let minted = Minted::new(Kind::Agent)
        .map_err(|_| Refusal::unavailable("no random number could be had"))?;
    let now = now_ms();
    let row = KeyRow {
        id: minted.id,
        secret_hash: minted.hash.to_vec(),
        tenant: new.tenant.unwrap_or_else(|| new.agent.clone()),
        agent: new.agent,
        access: new
            .access
            .map(|access| serde_json::to_string(&access).expect("plain data")),
        view: new.view,
        limits: Some(serde_json::to_string(&new.limits).expect("plain data")),
        created_ms: now,
        created_by: staff.by(),
        expires_ms: new
            .expires_in_s
            .map(|seconds| now.saturating_add(seconds.saturating_mul(1000))),
        revoked_ms: None,
        change: 0,
    };
    let detail = serde_json::Map::from_iter([("agent".to_owned(), row.agent.clone().into())]);
    admin.gateway.audit().admin(
        AdminAct::KeyCreate,
        &row.id,
        None,
        &staff.by(),
        Some(&detail),
    )?;
    admin.state.add_key(&row).await?;
    admin.gateway.identities().take_over(&admin.state).await?;
    Ok((
        StatusCode::CREATED,
        Json(MadeKey {
            view: row.into(),
            key: minted.text,
            warnings,
        }),
    ))
}

/// Revokes one key: the next call with it is refused, and what it has open ends. Role: operator.
#[utoipa::path(delete, path = "/v1/keys/{id}", params(("id" = String, Path, description = "the key's id")), responses(
    (status = 204), (status = 401, body = Refusal), (status = 403, body = Refusal), (status = 404, body = Refusal)))]
pub(super) async fn revoke(
    Shared(admin): Ask,
    staff: Staff,
    At(id): At<String>,
) -> Answer<StatusCode> {
    staff.needs(Role::Operator)?;
    let key = admin
        .state
        .key(&id)
        .await?
        .ok_or_else(|| Refusal::not_found("key", &id).see(IDS))?;
    if key.revoked_ms.is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    admin
        .gateway
        .audit()
        .admin(AdminAct::KeyRevoke, &id, None, &staff.by(), None)?;
    admin.state.revoke_key(&id, now_ms()).await?;
    admin.gateway.identities().take_over(&admin.state).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl NewKey {
    fn check(&self) -> Result<(), Refusal> {
        name("agent", &self.agent)?;
        self.tenant
            .as_deref()
            .map_or(Ok(()), |tenant| name("tenant", tenant))?;
        if self
            .view
            .as_deref()
            .is_some_and(|view| weir_contracts::name::check_contract(view).is_err())
        {
            return Err(Refusal::invalid(
                "`view` must be a lowercase letter and then up to 31 of a-z, 0-9 and `-`",
            ));
        }
        if self
            .expires_in_s
            .is_some_and(|seconds| !(1..=315_360_000).contains(&seconds))
        {
            return Err(Refusal::invalid(
                "`expires_in_s` must be 1 to 315360000 seconds",
            ));
        }
        let rates = self.limits.rate.iter().chain(self.limits.tools.values());
        for rate in rates {
            if weir_contracts::form::rate(rate).is_none() {
                let shown: String = rate.chars().take(32).collect();
                return Err(Refusal::invalid(format!(
                    "`limits`: `{shown}` is not a rate such as 60/min"
                )));
            }
        }
        Ok(())
    }

    /// Returns what the access names although nothing live is called so.
    async fn warnings(&self, admin: &Admin) -> Answer<Vec<String>> {
        let gate = admin.control.gate();
        gate.refresh().await?;
        let live = gate.live();
        let contracts: Vec<&str> = live.keys().map(String::as_str).collect();
        let tools = live.values().flat_map(|live| &live.contract.tools);
        let tools: Vec<&str> = tools.map(|tool| tool.name.as_str()).collect();
        let access = self.access.as_ref();
        let named = access.into_iter().flat_map(|list| &list.contracts);
        let mut warnings = absent("contract", named, &contracts);
        let named: BTreeSet<&String> = access
            .into_iter()
            .flat_map(|list| &list.tools)
            .chain(self.limits.tools.keys())
            .collect();
        warnings.extend(absent("tool", named, &tools));
        let config = admin.gateway.config();
        let views: Vec<&str> = config.views.keys().map(String::as_str).collect();
        warnings.extend(absent("view", &self.view, &views));
        Ok(warnings)
    }
}

fn absent<'a>(
    what: &str,
    named: impl IntoIterator<Item = &'a String>,
    there: &[&str],
) -> Vec<String> {
    let named = named
        .into_iter()
        .filter(|name| !there.contains(&name.as_str()));
    let sentence = |name: &String| {
        let near = weir_contracts::name::nearest(name, there.iter().copied());
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        let shown: String = name.chars().take(NAME_MAX_CHARS).collect();
        format!("there is no {what} `{shown}` now{near}")
    };
    named.map(sentence).collect()
}

/// Names stand in logs, metrics and the trail.
pub(super) fn name(field: &str, name: &str) -> Result<(), Refusal> {
    let fits = |char: char| char.is_ascii_alphanumeric() || "-_.@:".contains(char);
    if (1..=NAME_MAX_CHARS).contains(&name.len()) && name.chars().all(fits) {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "`{field}` must be 1 to 64 letters, digits, `-`, `_`, `.`, `@` or `:`"
    )))
}
