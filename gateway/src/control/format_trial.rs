//! Tries the formats of a contract on the cells of its source: a column that a format does not fit is null everywhere, or
//! refuses every page, and nothing else tells its author.

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
    Problem, Shape, form,
    json::push_pointer,
    shape::{Summaries, TextFormat, Type},
};
use weir_plugin_host::{CallContext, CollectionRef, Condition, SummaryMeasure, SummaryQuery};

use crate::serving::Serving;

/// The time for all trials of one form. Each is a pass over the file.
const TRIALS_MAX: Duration = Duration::from_secs(10);
/// The time that a count has to end once it is cancelled.
const GRACE: Duration = Duration::from_secs(5);
/// The share of fitting cells, in percent, below which the author is warned.
const FITTING_PERCENT: u64 = 95;

/// Spellings that are tried where that of the contract does not fit.
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
    /// Formats that fit no cell, or fewer than another one.
    pub problems: Vec<Problem>,
    /// Formats that fit most cells.
    pub notes: Vec<Problem>,
}

/// The cells of one column that are not empty, and those of them that a format fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fit {
    cells: u64,
    fitting: u64,
}

/// Tries the formats of each collection whose shape was just described. Sources that cannot be asked are left alone.
pub async fn try_formats(
    gateway: &Serving,
    source: &form::Source,
    described: &BTreeMap<String, Shape>,
) -> FormatTrial {
    let mut trial = FormatTrial::default();
    let until = Instant::now() + TRIALS_MAX;
    for collection in &source.collections {
        let Some(shape) = described.get(&collection.name) else {
            continue;
        };
        if shape.capabilities.summaries < Summaries::Count {
            continue;
        }
        let columns = collection.overrides.iter();
        for change in columns.filter(|change| change.format.is_some()) {
            let column = Column {
                gateway,
                collection,
                shape,
                name: &change.column,
                until,
            };
            let kind = column.kind();
            let Some(format) = change.format.as_ref().filter(|_| kind != Type::String) else {
                continue;
            };
            let Some(fit) = column.fit(format).await.filter(|fit| !fit.is_good()) else {
                continue;
            };
            let mut place = format!("/collections/{}/shape", collection.name);
            push_pointer(&mut place, &change.column);
            let (better, is_problem) = match column.better_format(format, kind, fit).await {
                Some((other, fitting)) => (format!("; {fitting} fit {}", words_of(&other)), true),
                None => (String::new(), fit.fitting == 0),
            };
            let Fit { cells, fitting } = fit;
            let message = format!(
                "{fitting} of {cells} cells fit {}{better}",
                words_of(format)
            );
            let problem = Problem::new(&source.file, place, message);
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
struct Column<'a> {
    gateway: &'a Serving,
    collection: &'a form::Collection,
    shape: &'a Shape,
    name: &'a str,
    until: Instant,
}

impl Column<'_> {
    /// Returns the type that the contract gives the column.
    fn kind(&self) -> Type {
        let mut shape = self.shape.clone();
        shape.apply(&self.collection.overrides);
        shape
            .field(self.name)
            .map_or(Type::String, |field| field.kind)
    }

    /// Returns the format that fits the most cells, if it fits more than the contract's.
    async fn better_format(
        &self,
        own: &TextFormat,
        kind: Type,
        fit: Fit,
    ) -> Option<(TextFormat, u64)> {
        let mut best: Option<(TextFormat, u64)> = None;
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

    /// Counts the cells that a format fits. `None`: the source could not be asked, or the time is over.
    async fn fit(&self, format: &TextFormat) -> Option<Fit> {
        let mut overrides = self.collection.overrides.clone();
        let own = overrides.iter_mut().find(|own| own.column == self.name)?;
        own.format = Some(format.clone());
        let shape = self
            .shape
            .for_trial(&overrides, &self.collection.null_words);
        let kind = shape.field(self.name)?.kind;
        let filled = self.count(&shape, "is-empty", &Value::Bool(false)).await?;
        // A cell that is no value is counted by every condition but that on emptiness.
        let least = match kind {
            Type::Date => "0001-01-01".into(),
            Type::Datetime => "0001-01-01T00:00:00Z".into(),
            Type::Decimal => "0".into(),
            _ => Value::from(0),
        };
        let judged = self.count(&shape, "at-least", &least).await?;
        let misfits = judged.skipped.map_or(0, |skipped| skipped.count);
        Some(Fit {
            cells: filled.records.first()?.count,
            fitting: filled.records.first()?.count.saturating_sub(misfits),
        })
    }

    async fn count(&self, shape: &Shape, comparison: &str, value: &Value) -> Option<Counted> {
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
        let query = SummaryQuery {
            conditions: vec![Condition {
                column: self.name.to_owned(),
                comparison: comparison.to_owned(),
                value: value.to_string(),
            }],
            measures: vec![SummaryMeasure {
                name: "count".to_owned(),
                function: "count",
                column: None,
            }],
            limit: 1,
            ..SummaryQuery::default()
        };
        let host = self.gateway.host();
        let query = Arc::new(query);
        let mut counting = Box::pin(host.summarize(&context, &source, &query));
        // A cancelled call is no failure of the adapter; one that ran into its deadline would count as one.
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
        Counted::read(&page.records)
    }
}

impl Fit {
    fn is_good(self) -> bool {
        self.fitting * 100 >= self.cells * FITTING_PERCENT
    }
}

/// A count as an adapter answers it.
#[derive(Deserialize)]
struct Counted {
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

impl Counted {
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

/// Returns the formats that are tried for a column of this type.
fn others(kind: Type, own: &TextFormat) -> Vec<TextFormat> {
    match kind {
        Type::Date => DATES
            .into_iter()
            .map(|date| TextFormat {
                date: Some(date.to_owned()),
                ..TextFormat::default()
            })
            .collect(),
        Type::Integer | Type::Number | Type::Decimal => NUMBERS
            .into_iter()
            .map(|(decimal, grouping)| TextFormat {
                decimal: Some(decimal.to_owned()),
                grouping: Some(grouping.to_owned()),
                unit: own.unit.clone(),
                ..TextFormat::default()
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Writes a format in the words of a contract.
fn words_of(format: &TextFormat) -> String {
    let keys: Vec<String> = format
        .keys()
        .map(|(key, given)| match key {
            "date" | "datetime" => format!("`{given}`"),
            _ => format!("`{key}: \"{given}\"`"),
        })
        .collect();
    keys.join(", ")
}
