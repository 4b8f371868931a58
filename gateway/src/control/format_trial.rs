//! Tries the formats of a contract on the cells of its source. If a format does not fit a column, every value is null or every
//! page is refused, and nothing else warns the author.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;
use weir_contracts::{
    CollectionShape, FileProblem, form,
    json::push_pointer,
    shape::{ColumnFormat, SummarySupport, ValueType},
};
use weir_plugin_host::{
    AdapterCondition, AdapterSummaryMeasure, AdapterSummaryQuery, CallContext, CollectionRef,
};

use crate::serving::ServingGateway;

/// The time limit for all trials of one form. Each trial is a pass over the file.
const TRIALS_MAX: Duration = Duration::from_secs(10);
/// The time in which a cancelled count must end.
const GRACE: Duration = Duration::from_secs(5);
/// The share of fitting cells, in percent, below which the author is warned.
const FITTING_PERCENT: u64 = 95;

/// Formats that are tried if that of the contract does not fit.
const DATES: [&str; 12] = [
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%Y/%m/%d",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%-d.%-m.%Y",
    "%-d/%-m/%Y",
    "%-m/%-d/%Y",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
];
const NUMBERS: [(&str, &str); 3] = [(",", "."), (".", ","), (",", " ")];

/// The result of trying the formats of a form.
#[derive(Debug, Default)]
pub struct FormatTrial {
    /// Formats that fit no cell, or fewer cells than another format.
    pub problems: Vec<FileProblem>,
    /// Formats that fit most cells.
    pub notes: Vec<FileProblem>,
}

/// The number of non-empty cells of one column, and how many of these a format fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FormatFit {
    cells: u64,
    fitting: u64,
}

/// Tries the formats of each collection whose shape was just described. Sources that cannot be asked are skipped.
pub async fn try_formats(
    gateway: &ServingGateway,
    source: &form::ContractSource,
    described: &BTreeMap<String, CollectionShape>,
) -> FormatTrial {
    let mut trial = FormatTrial::default();
    let until = Instant::now() + TRIALS_MAX;
    for collection in &source.collections {
        let Some(shape) = described.get(&collection.name) else {
            continue;
        };
        if shape.capabilities.summaries < SummarySupport::Count {
            continue;
        }
        let columns = collection.overrides.iter();
        for change in columns.filter(|change| change.format.is_some()) {
            let column = TrialColumn {
                gateway,
                collection,
                shape,
                name: &change.column,
                until,
            };
            let kind = column.kind();
            let Some(format) = change.format.as_ref().filter(|_| kind != ValueType::String) else {
                continue;
            };
            let Some(fit) = column.fit(format).await.filter(|fit| !fit.is_good()) else {
                continue;
            };
            let mut place = "/collections".to_owned();
            push_pointer(&mut place, &collection.name);
            place.push_str("/shape");
            push_pointer(&mut place, &change.column);
            let (better, is_problem) = match column.better_format(format, kind, fit).await {
                Some((other, fitting)) => (format!("; {fitting} fit {}", words_of(&other)), true),
                None => (String::new(), fit.fitting == 0),
            };
            let FormatFit { cells, fitting } = fit;
            let message = format!(
                "{fitting} of {cells} cells fit {}{better}",
                words_of(format)
            );
            let problem = FileProblem::new(&source.file, place, message);
            match is_problem {
                true => trial
                    .problems
                    .push(problem.hint("write the format as the cells have it")),
                false => trial.notes.push(problem),
            }
        }
    }
    trial
}

/// A column whose format is tried.
struct TrialColumn<'a> {
    gateway: &'a ServingGateway,
    collection: &'a form::FormCollection,
    shape: &'a CollectionShape,
    name: &'a str,
    until: Instant,
}

impl TrialColumn<'_> {
    /// Returns the type that the contract gives the column.
    fn kind(&self) -> ValueType {
        let mut shape = self.shape.clone();
        shape.apply(&self.collection.overrides);
        shape
            .field(self.name)
            .map_or(ValueType::String, |field| field.kind)
    }

    /// Returns the format that fits the most cells, if it fits more than the contract's.
    async fn better_format(
        &self,
        own: &ColumnFormat,
        kind: ValueType,
        fit: FormatFit,
    ) -> Option<(ColumnFormat, u64)> {
        let mut best: Option<(ColumnFormat, u64)> = None;
        for other in others(kind, own).into_iter().filter(|other| other != own) {
            let Some(found) = self.fit(&other).await else {
                continue;
            };
            let most = best.as_ref().map_or(fit.fitting, |(_, most)| *most);
            if found.fitting > most {
                best = Some((other, found.fitting));
            }
        }
        best
    }

    /// Counts the cells that a format fits. `None`: the source could not be asked, or the time has run out.
    async fn fit(&self, format: &ColumnFormat) -> Option<FormatFit> {
        let mut overrides = self.collection.overrides.clone();
        let own = overrides.iter_mut().find(|own| own.column == self.name)?;
        own.format = Some(format.clone());
        let shape = self
            .shape
            .for_trial(&overrides, &self.collection.null_words);
        let kind = shape.field(self.name)?.kind;
        let filled = self.count(&shape, "is-empty", &Value::Bool(false)).await?;
        // A cell without a value is counted by every condition except the one on emptiness.
        let least = match kind {
            ValueType::Date => "0001-01-01".into(),
            ValueType::Datetime => "0001-01-01T00:00:00Z".into(),
            ValueType::Decimal => "0".into(),
            _ => Value::from(0),
        };
        let judged = self.count(&shape, "at-least", &least).await?;
        let misfits = judged.skipped.map_or(0, |skipped| skipped.count);
        Some(FormatFit {
            cells: filled.records.first()?.count,
            fitting: filled.records.first()?.count.saturating_sub(misfits),
        })
    }

    async fn count(
        &self,
        shape: &CollectionShape,
        comparison: &str,
        value: &Value,
    ) -> Option<CountAnswer> {
        if Instant::now() >= self.until {
            return None;
        }
        let collection = self.collection;
        let shape = serde_json::to_string(shape).ok()?;
        let settings = collection.settings.to_string();
        let meaning = Sha256::new().chain_update(&settings).chain_update([0]);
        let meaning = hex::encode(meaning.chain_update(&shape).finalize());
        let source = CollectionRef {
            key: format!("trial/{meaning}").into(),
            adapter: collection.adapter.as_str().into(),
            settings: settings.into(),
            shape: shape.into(),
        };
        let cancel = CancellationToken::new();
        let context = CallContext {
            tenant: Arc::from(""),
            call_id: Arc::from(""),
            deadline: self.until + GRACE,
            cancel: cancel.clone(),
            events: None,
            trace: None,
            ran_on: Arc::default(),
        };
        let query = AdapterSummaryQuery {
            conditions: vec![AdapterCondition {
                column: self.name.to_owned(),
                comparison: comparison.to_owned(),
                value: value.to_string(),
            }],
            measures: vec![AdapterSummaryMeasure {
                name: "count".to_owned(),
                function: "count",
                column: None,
            }],
            limit: 1,
            ..AdapterSummaryQuery::default()
        };
        let host = self.gateway.host();
        let query = Arc::new(query);
        let mut counting = Box::pin(host.summarize(&context, &source, &query));
        // A cancelled call does not count as a failure of the adapter; one that reached its deadline would.
        let page = tokio::select! {
            page = &mut counting => page,
            () = tokio::time::sleep_until(self.until.into()) => {
                cancel.cancel();
                counting.await
            }
        };
        let page = page
            .inspect_err(|failure| tracing::debug!(%failure, "a format was not tried"))
            .ok()?;
        CountAnswer::read(&page.records)
    }
}

impl FormatFit {
    fn is_good(self) -> bool {
        self.fitting * 100 >= self.cells * FITTING_PERCENT
    }
}

/// A count in an adapter's answer.
#[derive(Deserialize)]
struct CountAnswer {
    records: Vec<CountRecord>,
    skipped: Option<SkippedCount>,
}

#[derive(Deserialize)]
struct CountRecord {
    count: u64,
}

#[derive(Deserialize)]
struct SkippedCount {
    count: u64,
}

impl CountAnswer {
    fn read(answer: &str) -> Option<Self> {
        match answer.starts_with('{') {
            true => serde_json::from_str(answer).ok(),
            false => Some(Self {
                records: serde_json::from_str(answer).ok()?,
                skipped: None,
            }),
        }
    }
}

/// Returns the formats to try for a column of this type.
fn others(kind: ValueType, own: &ColumnFormat) -> Vec<ColumnFormat> {
    match kind {
        ValueType::Date => DATES
            .into_iter()
            .map(|date| ColumnFormat {
                date: Some(date.to_owned()),
                ..ColumnFormat::default()
            })
            .collect(),
        ValueType::Integer | ValueType::Number | ValueType::Decimal => NUMBERS
            .into_iter()
            .map(|(decimal, grouping)| ColumnFormat {
                decimal: Some(decimal.to_owned()),
                grouping: Some(grouping.to_owned()),
                unit: own.unit.clone(),
                ..ColumnFormat::default()
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Writes a format as a contract does.
fn words_of(format: &ColumnFormat) -> String {
    let keys: Vec<String> = format
        .keys()
        .map(|(key, given)| match key {
            "date" | "datetime" => format!("`{given}`"),
            _ => format!("`{key}: \"{given}\"`"),
        })
        .collect();
    keys.join(", ")
}
