//! The choices of a list: its order, the columns of its records, and their total count.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use weir_contracts::{
    compile::count_field, contract::ListChoices, output::RecordChecker, validate::InvalidArguments,
};
use weir_plugin_host::{
    AdapterPage, AdapterQuery, AdapterSummaryPage, AdapterSummaryQuery, CallContext, CollectionRef,
    PluginHost,
};

use super::{
    ReadRequest,
    shape::{check_with, mismatch},
    summary::{names, read_count},
};
use crate::{call::CallError, catalogue::CollectionTool};

/// The longest time for counting all records of a list; it is never more than half of the time that its call has left.
const COUNTING_MAX: Duration = Duration::from_secs(2);

/// The number of records of a list, on all its pages together.
pub(in crate::call) enum ListTotal {
    /// The page has all records.
    Whole,
    Counted(AdapterSummaryPage),
    /// Counting took too long.
    Unknown,
}

/// Puts the order and the columns that the arguments name into a query.
pub(super) fn apply_choices(
    target: &CollectionTool,
    arguments: &Map<String, Value>,
    query: &mut AdapterQuery,
) -> Result<(), CallError> {
    let Some(choices) = &target.published.binding.list else {
        return Ok(());
    };
    if !choices.order_by.is_empty() {
        let wanted = names(arguments, "order_by");
        if !wanted.is_empty() {
            query.order = chosen_order(choices, &wanted, &target.order)?;
        }
    }
    if let Some(columns) = &target.choices {
        let wanted = names(arguments, "columns");
        if !wanted.is_empty() {
            query.columns = columns.with_key(&wanted);
        }
    }
    Ok(())
}

/// Returns the order of a query. The form's own order, which ends with the key, breaks ties.
fn chosen_order(
    choices: &ListChoices,
    wanted: &[&str],
    own: &[String],
) -> Result<Arc<[String]>, CallError> {
    let mut left: Vec<&str> = choices.order_by.iter().map(String::as_str).collect();
    for (index, entry) in wanted.iter().enumerate() {
        let column = column_of(entry);
        let before = left.len();
        left.retain(|known| *known != column);
        // A column that is repeated, in either direction, has no effect the second time.
        if left.len() == before {
            let refused = InvalidArguments::not_among(format!("/order_by/{index}"), &left);
            return Err(CallError::invalid(refused));
        }
    }
    let is_new = |entry: &&String| !wanted.iter().any(|one| column_of(one) == column_of(entry));
    let ties = own.iter().filter(is_new).cloned();
    let order = wanted.iter().map(|entry| (*entry).to_owned()).chain(ties);
    Ok(order.collect())
}

fn column_of(entry: &str) -> &str {
    entry.strip_prefix('-').unwrap_or(entry)
}

/// Returns the check for records whose columns the arguments chose.
pub(super) fn chosen_checker(
    target: &CollectionTool,
    query: &AdapterQuery,
) -> Option<Arc<RecordChecker>> {
    let choices = target.choices.as_ref()?;
    let is_chosen = query.columns != target.columns;
    is_chosen.then(|| RecordChecker::for_fields(&choices.fields, &query.columns).into())
}

/// Counts the records of a list of which one page was read. The page matters more than the count: if counting takes too long, or
/// if the adapter is busy, the total is unknown.
pub(super) async fn count_all(
    host: &PluginHost,
    context: &CallContext,
    source: &CollectionRef,
    request: &ReadRequest,
    page: &AdapterPage,
    count: &Arc<AdapterSummaryQuery>,
) -> Result<ListTotal, CallError> {
    if page.next.is_none() && request.query.cursor.is_none() {
        return Ok(ListTotal::Whole);
    }
    let left = context.deadline.saturating_duration_since(Instant::now());
    // A cancelled call does not count as a failure of the adapter; one that reached its deadline would.
    let cancel = context.cancel.child_token();
    let own = CallContext {
        cancel: cancel.clone(),
        ..context.clone()
    };
    let mut counting = Box::pin(host.summarize(&own, source, count));
    let counted = tokio::select! {
        biased;
        counted = &mut counting => counted,
        () = tokio::time::sleep(COUNTING_MAX.min(left / 2)) => {
            cancel.cancel();
            counting.await
        }
    };
    match counted {
        Ok(page) => Ok(ListTotal::Counted(page)),
        Err(failure) if context.cancel.is_cancelled() => Err(failure.into()),
        // The page was read, so it is answered without its total.
        Err(failure) => {
            tracing::debug!(%failure, "a list was not counted");
            Ok(ListTotal::Unknown)
        }
    }
}

impl ListTotal {
    /// Returns the number; `None` if it is unknown. `on_page` records are on the page that was read.
    pub(super) fn read(
        self,
        target: &CollectionTool,
        on_page: usize,
    ) -> Result<Option<u64>, CallError> {
        match self {
            Self::Whole => Ok(Some(on_page as u64)),
            Self::Unknown => Ok(None),
            Self::Counted(page) => {
                let field = count_field();
                let checker = RecordChecker::for_fields(
                    std::slice::from_ref(&field),
                    std::slice::from_ref(&field.key),
                );
                let checked = check_with(&checker, target, &page.records)
                    .map_err(|found| mismatch(found, None))?;
                read_count(&checked.records).map(|(_, count)| Some(count))
            }
        }
    }
}
