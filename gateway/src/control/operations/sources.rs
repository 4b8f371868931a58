//! Data sources without a contract: what their records look like, a first contract, and a few sample records.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use weir_audit::AdminAct;
use weir_connections::{ConnectionConfig, ConnectionError, FailureCode, mask::is_secret_name};
use weir_contracts::{
    CollectionShape,
    draft::{ColumnSample, ColumnSamples, ContractDraft, DraftInput, contract_name},
    output::RecordChecker,
    shape::{ShapeField, ValueType},
};
use weir_plugin_host::{AdapterFailure, AdapterPage, AdapterQuery, CallContext, CollectionRef};
use weir_text::shorten;

use super::{
    FailureKind, OperationError, OperationResult,
    connections::{describe_kind, failed},
};
use crate::{control::ControlPlane, serving::ServingGateway, tokens::vocabulary};

/// The most rows that are read to find columns with few values.
const LOOKED_AT_MAX: usize = 20_000;
const PAGE_ROWS: u32 = 1000;
/// Records that are measured.
const MEASURED_MAX: usize = 50;
/// The bound on the values of a choice list.
const CHOICES_MAX: usize = 12;
/// Rows that are shown.
const SHOWN_MAX: u32 = 20;
/// The bound on the name of a source.
const NAME_MAX_CHARS: usize = 1024;
const READ_MAX: Duration = Duration::from_secs(30);
/// The text in place of a value that is not shown.
const MASK: &str = "***";

/// A source to look at: which adapter reaches it, and how.
pub struct DataSource {
    /// The name of the contract that is drafted.
    pub name: String,
    /// The title that the name is made from.
    pub title: String,
    pub adapter: &'static str,
    pub settings: Value,
}

/// Why a source could not be described.
#[derive(Debug, thiserror::Error)]
pub enum SourceFailure {
    #[error(transparent)]
    Adapter(#[from] AdapterFailure),
    #[error("the adapter answered no shape: {0}")]
    Shape(String),
    /// No part of it can be served, one sentence for each reason.
    #[error("no part of it can be served: {}", .0.join(" "))]
    Unservable(Vec<String>),
    #[error("{}", .0.message)]
    Connection(ConnectionError),
    /// The named source does not exist.
    #[error("{0}")]
    Absent(String),
}

/// A source as a request names it.
pub struct SourceRequest {
    pub connection: String,
    /// A table, the path of a file, or the path of a service, as `GET …/sources` lists them.
    pub source: String,
    /// Further settings of the collection.
    pub settings: Map<String, Value>,
}

/// A source of data, described.
#[derive(Serialize, ToSchema)]
pub struct DescribedSource {
    pub adapter: &'static str,
    /// The `settings` of a collection over this source.
    #[schema(value_type = Object)]
    pub settings: Value,
    /// The source's current description of itself.
    #[schema(value_type = Object)]
    pub shape: Value,
}

/// A contract drafted from a source.
#[derive(Serialize, ToSchema)]
pub struct DraftedSource {
    /// The text of a contract over the source.
    pub source: String,
    /// The parts of the source that it leaves out or guesses, one sentence each.
    pub notes: Vec<String>,
    /// Whether it has tools that write.
    pub writes: bool,
}

/// The first records of a source.
#[derive(Serialize, ToSchema)]
pub struct SourceRows {
    pub columns: Vec<String>,
    /// The first rows, by column.
    #[schema(value_type = Vec<Object>)]
    pub rows: Vec<Map<String, Value>>,
    /// Columns that are named like secrets: their values are not shown.
    pub masked: Vec<String>,
    /// Whether there are more rows.
    pub more: bool,
}

impl DataSource {
    /// Creates a source. `settings` are those of a collection of `adapter`; the contract's name is made from `title`.
    pub fn new(title: &str, adapter: &'static str, settings: Value) -> Self {
        Self {
            name: contract_name(title),
            title: title.to_owned(),
            adapter,
            settings,
        }
    }

    fn collection(&self, shape: &CollectionShape) -> CollectionRef {
        let settings = self.settings.to_string();
        let shape = serde_json::to_string(shape).expect("plain data");
        // An adapter prepares a collection once for each key.
        let meaning = Sha256::new()
            .chain_update(&settings)
            .chain_update([0])
            .chain_update(&shape)
            .finalize();
        CollectionRef {
            key: format!("draft/{}", hex::encode(meaning)).into(),
            adapter: self.adapter.into(),
            settings: settings.into(),
            shape: shape.into(),
        }
    }
}

/// Returns the current description of a source.
pub async fn describe(
    control: &ControlPlane,
    request: &SourceRequest,
    by: &str,
) -> OperationResult<DescribedSource> {
    let source = find(control, request)?;
    record(control, request, "describe", by)?;
    let shape = read_shape(control.gateway(), &source).await?;
    Ok(DescribedSource {
        adapter: source.adapter,
        shape: serde_json::to_value(shape).expect("plain data"),
        settings: source.settings,
    })
}

/// Drafts a contract over a source. Nothing is stored.
pub async fn draft(
    control: &ControlPlane,
    request: &SourceRequest,
    by: &str,
) -> OperationResult<DraftedSource> {
    let source = find(control, request)?;
    record(control, request, "draft", by)?;
    let drafted = look(control.gateway(), &source).await?;
    Ok(DraftedSource {
        source: drafted.contract,
        notes: drafted.notes,
        writes: drafted.writes,
    })
}

/// Returns the first rows of a source, at most 20, without the values of columns that are named like secrets.
pub async fn rows(
    control: &ControlPlane,
    request: &SourceRequest,
    limit: Option<u32>,
    by: &str,
) -> OperationResult<SourceRows> {
    let limit = limit.unwrap_or(SHOWN_MAX);
    if !(1..=SHOWN_MAX).contains(&limit) {
        let detail = format!("`limit` must be 1 to {SHOWN_MAX}");
        return Err(OperationError::invalid(detail));
    }
    let source = find(control, request)?;
    record(control, request, "rows", by)?;
    let gateway = control.gateway();
    let shape = read_shape(gateway, &source).await?;
    let columns: Vec<String> = shape.fields.iter().map(|field| field.key.clone()).collect();
    let query = AdapterQuery {
        columns: columns.clone().into(),
        order: shape.key.clone().into(),
        limit,
        ..AdapterQuery::default()
    };
    let page = read_records(gateway, &source, &shape, &Arc::new(query)).await?;
    let records = RecordChecker::records_of(&page.records).unwrap_or_default();
    let mut rows: Vec<Map<String, Value>> = serde_json::from_str(records).map_err(|error| {
        OperationError::invalid(format!("the adapter answered no records: {error}"))
    })?;
    rows.truncate(limit as usize);
    let masked: Vec<String> = columns
        .iter()
        .filter(|column| is_secret_name(column))
        .cloned()
        .collect();
    rows.iter_mut().for_each(hide_secrets);
    Ok(SourceRows {
        columns,
        rows,
        masked,
        more: page.next.is_some(),
    })
}

/// Reads records of a source without a contract.
pub(super) async fn read_records(
    gateway: &ServingGateway,
    source: &DataSource,
    shape: &CollectionShape,
    query: &Arc<AdapterQuery>,
) -> Result<AdapterPage, SourceFailure> {
    let (host, collection) = (gateway.host(), source.collection(shape));
    Ok(host.read(&context(), &collection, query).await?)
}

/// Hides values that are named like secrets, at any depth.
fn hide_secrets(record: &mut Map<String, Value>) {
    for (name, value) in record {
        match value {
            Value::Null => {}
            value if is_secret_name(name) => *value = MASK.into(),
            value => hide_secrets_within(value),
        }
    }
}

fn hide_secrets_within(value: &mut Value) {
    match value {
        Value::Object(record) => hide_secrets(record),
        Value::Array(items) => items.iter_mut().for_each(hide_secrets_within),
        _ => {}
    }
}

/// Returns the adapter and the settings that reach a source of the configuration.
fn find(control: &ControlPlane, request: &SourceRequest) -> OperationResult<DataSource> {
    let SourceRequest {
        connection,
        source,
        settings,
    } = request;
    if !(1..=NAME_MAX_CHARS).contains(&source.chars().count()) {
        let detail = format!("`source` must be 1 to {NAME_MAX_CHARS} characters");
        return Err(OperationError::invalid(detail));
    }
    let config = control.gateway().config();
    let known = config.connections.get(connection).ok_or_else(|| {
        OperationError::not_found("connection", connection)
            .see("GET /v1/connections names those of the configuration")
    })?;
    let (_, adapter, _) = describe_kind(known);
    let own = match known {
        ConnectionConfig::Sqlite { .. }
        | ConnectionConfig::Postgresql { .. }
        | ConnectionConfig::Mysql { .. } => {
            json!({ "connection": connection, "table": source })
        }
        ConnectionConfig::Files { .. } => json!({ "connection": connection, "path": source }),
        ConnectionConfig::Http { .. } => {
            json!({ "connection": connection, "sample": true, "list": { "path": source } })
        }
    };
    let Value::Object(own) = own else {
        unreachable!("it is written as an object")
    };
    if let Some(name) = settings.keys().find(|name| own.contains_key(*name)) {
        let shown = shorten(name, 64);
        let detail = format!("`settings`: `{shown}` is made of `connection` and `source`");
        return Err(OperationError::invalid(detail));
    }
    let settings: Map<String, Value> = settings.clone().into_iter().chain(own).collect();
    Ok(DataSource::new(
        title(known, source),
        adapter,
        settings.into(),
    ))
}

/// Returns the part of a name that describes the records of the source.
fn title<'a>(connection: &ConnectionConfig, source: &'a str) -> &'a str {
    let parts = |separator: char| source.split(separator).filter(|part| !part.is_empty());
    let last = |separator: char| parts(separator).next_back().unwrap_or("records");
    match connection {
        ConnectionConfig::Files { .. } => {
            let file = last('/');
            file.rsplit_once('.').map_or(file, |(stem, _)| stem)
        }
        ConnectionConfig::Http { .. } => last('/'),
        ConnectionConfig::Sqlite { .. }
        | ConnectionConfig::Postgresql { .. }
        | ConnectionConfig::Mysql { .. } => last('.'),
    }
}

/// Records the look at a source, before its result is shown.
fn record(
    control: &ControlPlane,
    request: &SourceRequest,
    asked: &str,
    by: &str,
) -> OperationResult<()> {
    // The query of a path may hold a secret, and is not part of a source's name.
    let source = request.source.split('?').next().unwrap_or_default();
    let detail = Map::from_iter([
        ("source".to_owned(), Value::from(source)),
        ("asked".to_owned(), Value::from(asked)),
    ]);
    let audit = control.gateway().audit();
    let subject = &request.connection;
    Ok(audit.admin(AdminAct::SourceLook, subject, None, by, Some(&detail))?)
}

/// Drafts the contract of a source, with tools that write only if the configuration permits writing.
pub async fn look(
    gateway: &ServingGateway,
    source: &DataSource,
) -> Result<ContractDraft, SourceFailure> {
    let mut shape = read_shape(gateway, source).await?;
    if let Some(why) = read_only(gateway, source).filter(|_| !shape.capabilities.write.is_empty()) {
        shape.capabilities.write.clear();
        shape.capabilities.read_only.get_or_insert(why);
    }
    draft_of(gateway, source, &shape).await
}

/// Returns why nothing can be written through the connection of a source, if the configuration forbids it.
pub(super) fn read_only(gateway: &ServingGateway, source: &DataSource) -> Option<String> {
    let name = source.settings["connection"].as_str()?;
    let config = gateway.config();
    if !config.connections.get(name)?.is_writable() {
        return Some(format!("`[connections.{name}] write` is false"));
    }
    let grant = config
        .plugins
        .get(source.adapter)
        .and_then(|plugin| plugin.grants.get(name));
    let is_granted = grant.is_some_and(|grant| grant.may_write());
    (!is_granted).then(|| {
        format!(
            "`[plugins.{}.grants] {name}` is not \"write\"",
            source.adapter
        )
    })
}

/// Asks the adapter to describe the source.
pub async fn read_shape(
    gateway: &ServingGateway,
    source: &DataSource,
) -> Result<CollectionShape, SourceFailure> {
    let described = gateway
        .host()
        .describe(source.adapter, &source.settings.to_string())
        .await?;
    let mut shape = CollectionShape::read(&described)
        .map_err(|error| SourceFailure::Shape(error.to_string()))?;
    // A note may contain cells of its column.
    let secrets: Vec<String> = shape
        .fields
        .iter()
        .filter(|field| is_secret_name(&field.key))
        .map(|field| format!("{:?}", field.key))
        .collect();
    let is_secret = |note: &String| secrets.iter().any(|name| note.contains(name));
    shape.notes.retain(|note| !is_secret(note));
    Ok(shape)
}

/// Drafts a contract over a source of this shape.
pub async fn draft_of(
    gateway: &ServingGateway,
    source: &DataSource,
    shape: &CollectionShape,
) -> Result<ContractDraft, SourceFailure> {
    let (choices, samples) = sample(gateway, source, shape, LOOKED_AT_MAX).await;
    let drafted = weir_contracts::draft::draft(&DraftInput {
        name: &source.name,
        title: &source.title,
        adapter: source.adapter,
        settings: &source.settings,
        shape,
        choices: &choices,
        samples: &samples,
    });
    drafted.map_err(SourceFailure::Unservable)
}

/// Returns the values of text columns with few distinct ones among the first `rows_max` rows, and the size of the first records
/// in an answer; both are empty if the source cannot be read.
pub(super) async fn sample(
    gateway: &ServingGateway,
    source: &DataSource,
    shape: &CollectionShape,
    rows_max: usize,
) -> (BTreeMap<String, Vec<String>>, ColumnSamples) {
    let texts = shape
        .fields
        .iter()
        .filter(|field| field.kind == ValueType::String && !is_secret_name(&field.key));
    let mut seen: BTreeMap<String, BTreeSet<String>> = texts
        .map(|field| (field.key.clone(), BTreeSet::new()))
        .collect();
    let (collection, context) = (source.collection(shape), context());
    let mut query = AdapterQuery {
        columns: shape.fields.iter().map(|field| field.key.clone()).collect(),
        order: shape.key.clone().into(),
        limit: PAGE_ROWS,
        ..AdapterQuery::default()
    };
    let mut rows = 0;
    let mut samples = ColumnSamples::new();
    while rows < rows_max && (rows == 0 || !seen.is_empty()) {
        let page = match gateway
            .host()
            .read(&context, &collection, &Arc::new(query.clone()))
            .await
        {
            Ok(page) => page,
            Err(failure) => {
                tracing::debug!(%failure, "no rows to look at");
                break;
            }
        };
        let records = RecordChecker::records_of(&page.records).unwrap_or_default();
        let Ok(records) = serde_json::from_str::<Vec<BTreeMap<String, Value>>>(records) else {
            break;
        };
        if rows == 0 {
            samples = measure(shape, &records);
        }
        rows += records.len();
        for record in &records {
            seen.retain(|key, values| {
                if let Some(Value::String(value)) = record.get(key) {
                    values.insert(value.clone());
                }
                values.len() <= CHOICES_MAX
            });
        }
        match page.next {
            Some(next) if !records.is_empty() => query.cursor = Some(next),
            _ => break,
        }
    }
    // A list of choices is useful only if values repeat. Days and numbers will take further values.
    let is_word = |value: &String| !value.starts_with(|first: char| first.is_ascii_digit());
    seen.retain(|_, values| {
        values.len() >= 2 && values.len() * 3 <= rows && values.iter().any(is_word)
    });
    let choices = seen
        .into_iter()
        .map(|(key, values)| (key, values.into_iter().collect()));
    (choices.collect(), samples)
}

/// Measures the columns of the first records of a source.
fn measure(shape: &CollectionShape, records: &[BTreeMap<String, Value>]) -> ColumnSamples {
    let records = &records[..records.len().min(MEASURED_MAX)];
    if records.is_empty() {
        return ColumnSamples::new();
    }
    let measure = |field: &ShapeField| {
        let values = || records.iter().filter_map(|record| record.get(&field.key));
        let written: String = values()
            .map(|value| format!("{}:{value},", Value::from(field.key.as_str())))
            .collect();
        let sample = ColumnSample {
            tokens: vocabulary().count(&written).div_ceil(records.len()),
            is_filled: values().any(|value| !matches!(value, Value::Null) && value != ""),
        };
        (field.key.clone(), sample)
    };
    shape.fields.iter().map(measure).collect()
}

fn context() -> CallContext {
    CallContext {
        tenant: Arc::from("local"),
        call_id: Arc::from("draft"),
        deadline: Instant::now() + READ_MAX,
        cancel: CancellationToken::new(),
        ran_on: Arc::default(),
        events: None,
        trace: None,
    }
}

impl From<SourceFailure> for OperationError {
    fn from(failure: SourceFailure) -> Self {
        let (kind, detail) = match &failure {
            SourceFailure::Adapter(AdapterFailure::Guest(error)) => {
                let message = error.message.clone();
                match FailureCode::of_word(&error.code) {
                    code if code.is_for_later() => (FailureKind::Unavailable, message),
                    FailureCode::NotFound => (FailureKind::NotFound, message),
                    FailureCode::Forbidden => {
                        let hint =
                            "grant the connection under [plugins.ADAPTER.grants] in weir.toml";
                        (FailureKind::Invalid, format!("{message}: {hint}"))
                    }
                    _ => (FailureKind::Invalid, message),
                }
            }
            SourceFailure::Adapter(AdapterFailure::OverLimit(bound)) => {
                tracing::warn!(why = bound.reason, "a source could not be looked at");
                (FailureKind::Invalid, failure.to_string())
            }
            SourceFailure::Shape(_) | SourceFailure::Unservable(_) => {
                (FailureKind::Invalid, failure.to_string())
            }
            SourceFailure::Absent(_) => (FailureKind::NotFound, failure.to_string()),
            SourceFailure::Connection(error) => return failed(error.clone()),
            SourceFailure::Adapter(AdapterFailure::Failed(why)) => {
                tracing::error!(why, "a source could not be looked at");
                (
                    FailureKind::Unavailable,
                    "the adapter failed: the log says why".to_owned(),
                )
            }
            SourceFailure::Adapter(_) => (FailureKind::Unavailable, failure.to_string()),
        };
        Self::new(kind, detail)
    }
}
