//! Connections of the configuration: what uses them, whether they answer, and which sources they reach. Credentials are never
//! returned.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde::Serialize;
use utoipa::ToSchema;
use weir_connections::{
    ConnectionConfig, ConnectionError, ConnectionHandle, FailureCode,
    browse::{FoundSource, SourceQuery},
};

use super::{FailureKind, OperationError, OperationResult};
use crate::control::ControlPlane;

/// The time within which a connection must answer.
const LOOK_MAX: Duration = Duration::from_secs(10);
/// The bound on the text of a search.
const TEXT_MAX_CHARS: usize = 400;

/// A connection of the configuration, without its credentials.
#[derive(Serialize, ToSchema)]
pub struct ConnectionView {
    pub name: String,
    /// `sqlite`, `postgresql`, `mysql`, `http` or `files`.
    pub kind: &'static str,
    /// The adapter that uses it: `sql`, `rest` or `sheet`.
    pub adapter: &'static str,
    /// Whether the operator lets it write.
    pub write: bool,
    /// Whether `PUT /v1/files` may put files into it.
    pub uploads: bool,
    /// Plugin → `read` or `write`, as `weir.toml` grants it.
    pub grants: BTreeMap<String, &'static str>,
    /// The live contracts with collections over it.
    pub contracts: Vec<String>,
    /// Why it could not be opened; calls that need it are `unavailable`.
    pub refused: Option<String>,
}

/// Whether a connection leads to a source that answers.
#[derive(Serialize, ToSchema)]
pub struct ConnectionCheck {
    pub ok: bool,
    /// Milliseconds until the answer.
    pub ms: f64,
    /// The error code that a call would get, if it is not ok.
    pub code: Option<&'static str>,
    pub reason: Option<String>,
}

/// One page of the sources behind a connection.
#[derive(Serialize, ToSchema)]
pub struct SourceList {
    /// By name.
    pub sources: Vec<SourceEntry>,
    /// The cursor of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

/// A table, a view or a file that a connection reaches.
#[derive(Serialize, ToSchema)]
pub struct SourceEntry {
    /// Its name in a collection: `table`, or the `path` of a file.
    pub name: String,
    /// `table`, `view` or `file`.
    pub kind: String,
}

impl From<FoundSource> for SourceEntry {
    fn from(FoundSource { name, kind }: FoundSource) -> Self {
        Self { name, kind }
    }
}

/// Returns the connections of the configuration, by name.
pub async fn list(control: &ControlPlane) -> OperationResult<Vec<ConnectionView>> {
    control.gate().refresh().await?;
    let config = control.gateway().config();
    let refused = control.refused_connections();
    let live = control.gate().live();
    let view = |(name, connection): (&String, &ConnectionConfig)| {
        let (kind, adapter, uploads) = describe_kind(connection);
        let grants = config.plugins.iter().filter_map(|(plugin, settings)| {
            let grant = settings.grants.get(name)?;
            Some((plugin.clone(), grant.word()))
        });
        let goes_over = |collection: &weir_contracts::contract::ContractCollection| {
            collection.settings["connection"] == name.as_str()
        };
        let contracts = live
            .iter()
            .filter(|(_, live)| live.contract.collections.iter().any(goes_over))
            .map(|(contract, _)| contract.clone());
        let place = format!("/connections/{name}");
        let problem = refused.iter().find(|problem| problem.place == place);
        ConnectionView {
            name: name.clone(),
            kind,
            adapter,
            write: connection.is_writable(),
            uploads,
            grants: grants.collect(),
            contracts: contracts.collect(),
            refused: problem.map(|problem| problem.message.clone()),
        }
    };
    Ok(config.connections.iter().map(view).collect())
}

/// Asks whether the other end of a connection answers.
pub async fn check(control: &ControlPlane, name: &str) -> OperationResult<ConnectionCheck> {
    let started = Instant::now();
    let connection = find(control, name)?;
    let checked = match connection {
        Ok(connection) => within_time(connection.check(started + LOOK_MAX)).await,
        Err(refused) => Err(refused),
    };
    let ms = started.elapsed().as_micros() as f64 / 1000.0;
    Ok(match checked {
        Ok(()) => ConnectionCheck {
            ok: true,
            ms,
            code: None,
            reason: None,
        },
        Err(error) => ConnectionCheck {
            ok: false,
            ms,
            code: Some(error.code.label()),
            reason: Some(error.message),
        },
    })
}

/// Returns one page of the tables or files of a connection. `text` is a part of their names; `cursor` is the `next_cursor` of the
/// previous page.
pub async fn sources(
    control: &ControlPlane,
    name: &str,
    text: &str,
    cursor: &str,
) -> OperationResult<SourceList> {
    for (field, value) in [("q", text), ("cursor", cursor)] {
        if value.chars().count() > TEXT_MAX_CHARS || value.contains('\0') {
            let detail =
                format!("`{field}` must be at most {TEXT_MAX_CHARS} characters, without NUL");
            return Err(OperationError::invalid(detail));
        }
    }
    let connection = find(control, name)?.map_err(failed)?;
    let query = SourceQuery {
        text,
        after: cursor,
        deadline: Instant::now() + LOOK_MAX,
    };
    let page = within_time(connection.sources(query)).await;
    let page = page.map_err(failed)?;
    Ok(SourceList {
        sources: page.sources.into_iter().map(SourceEntry::from).collect(),
        next_cursor: page.next,
    })
}

/// Returns a connection of the configuration; the inner error is for one that could not be opened.
pub(super) fn find(
    control: &ControlPlane,
    name: &str,
) -> OperationResult<Result<ConnectionHandle, ConnectionError>> {
    if !control.gateway().config().connections.contains_key(name) {
        return Err(OperationError::not_found("connection", name)
            .see("GET /v1/connections names those of the configuration"));
    }
    let open = control.connections();
    Ok(open.get(name).cloned().ok_or_else(|| {
        ConnectionError::new(
            FailureCode::Unavailable,
            "the connection could not be opened: GET /v1/connections says why",
        )
    }))
}

async fn within_time<T>(
    work: impl Future<Output = Result<T, ConnectionError>>,
) -> Result<T, ConnectionError> {
    let done = tokio::time::timeout(LOOK_MAX, work).await;
    done.unwrap_or_else(|_| {
        let why = format!("there was no answer within {} s", LOOK_MAX.as_secs());
        Err(ConnectionError::new(FailureCode::Timeout, why))
    })
}

/// Returns the kind, the adapter, and whether files may be put in.
pub(super) fn describe_kind(config: &ConnectionConfig) -> (&'static str, &'static str, bool) {
    match config {
        ConnectionConfig::Sqlite { .. } => ("sqlite", "sql", false),
        ConnectionConfig::Postgresql { .. } => ("postgresql", "sql", false),
        ConnectionConfig::Mysql { .. } => ("mysql", "sql", false),
        ConnectionConfig::Http { .. } => ("http", "rest", false),
        ConnectionConfig::Files { uploads, .. } => ("files", "sheet", *uploads),
    }
}

/// Turns the error of a connection into one of an operation. Its details are not passed on, since they may name hosts and paths.
pub(super) fn failed(error: ConnectionError) -> OperationError {
    if let Some(details) = &error.details {
        tracing::info!(details, "a connection refused: {}", error.message);
    }
    let kind = match error.code {
        code if code.is_for_later() => FailureKind::Unavailable,
        FailureCode::NotFound => FailureKind::NotFound,
        FailureCode::Conflict => FailureKind::Conflict,
        _ => FailureKind::Invalid,
    };
    OperationError::new(kind, error.message)
}
