//! Reading: one record by its path, or the list, judged record by record.

use weir_plugin_sdk::matches::Matcher;
use weir_plugin_sdk::order::{bad_cursor, compare, decode_cursor, encode_cursor, total_order};
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::serde_json::{self, Map, json, value::RawValue};
use weir_plugin_sdk::{Comparison, Error, Field, Order, Page, Query, Shape, Value, http, progress};

use crate::pages::Pages;
use crate::request::{path, request};
use crate::settings::List;
use crate::{Rest, answer};

/// A record: the value of every field of the shape, in its order.
pub(crate) type Values = Vec<Value<'static>>;

pub(crate) fn read(rest: &Rest, query: &Query) -> Result<Page, Error> {
    let matchers = query
        .conditions
        .iter()
        .map(|condition| {
            let at = position(&rest.shape, &condition.column)?;
            Ok((at, Matcher::new(condition, &rest.shape.fields[at], &rest.zone)?))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let matching = |values: &Values| matchers.iter().all(|(at, matcher)| matcher.matches(&values[*at]));
    let columns = match query.columns.as_slice() {
        [] => (0..rest.shape.fields.len()).collect::<Vec<_>>(),
        names => names.iter().map(|name| position(&rest.shape, name)).collect::<Result<_, _>>()?,
    };
    let (found, next) = match named(rest, query) {
        Some(key) if query.cursor.is_none() => (one(rest, &key)?.into_iter().filter(matching).collect(), None),
        _ => listed(rest, query, &matching)?,
    };
    let mut records = Records::new();
    for values in &found {
        records.push(columns.iter().map(|at| (rest.shape.fields[*at].key.as_str(), values[*at].clone())));
    }
    Ok(Page { records: records.finish(), next })
}

/// Returns the key, if the conditions name a whole one and the service answers single records.
fn named(rest: &Rest, query: &Query) -> Option<Map<String, serde_json::Value>> {
    rest.settings.get.as_ref()?;
    let mut key = Map::new();
    for name in &rest.shape.key {
        let of_key = |condition: &&weir_plugin_sdk::Condition| {
            &condition.column == name && condition.comparison == Comparison::Equals && !condition.value.is_null()
        };
        key.insert(name.clone(), query.conditions.iter().find(of_key)?.value.clone());
    }
    (!key.is_empty()).then_some(key)
}

/// Returns one record by its key; `None` if the service says 404, or answers another record.
pub(crate) fn one(rest: &Rest, key: &Map<String, serde_json::Value>) -> Result<Option<Values>, Error> {
    let Some(get) = &rest.settings.get else { return Ok(None) };
    let Some(path) = path(&get.path, key)? else { return Ok(None) };
    let response = http::send(&request(&rest.settings, get.method.as_deref().unwrap_or("GET"), path))?;
    let body = match answer::checked(&response) {
        Err(error) if error.is("not_found") => return Ok(None),
        // A key that the service does not even take for one names nothing.
        Err(error) if error.is("invalid") => return Ok(None),
        body => body?,
    };
    let values = answer::at(body, &get.record)?.and_then(|raw| values(rest, raw));
    let values = values.ok_or_else(|| Error::upstream_error("The web service's record is not where it should be."))?;
    let same = key.iter().all(|(name, wanted)| {
        let Ok(at) = position(&rest.shape, name) else { return false };
        let wanted = Value::from_argument(wanted, &rest.shape.fields[at], &rest.zone);
        values[at].compare(&wanted) == Some(std::cmp::Ordering::Equal)
    });
    Ok(same.then_some(values))
}

fn listed(
    rest: &Rest,
    query: &Query,
    matching: &dyn Fn(&Values) -> bool,
) -> Result<(Vec<Values>, Option<String>), Error> {
    let list = rest.settings.list.as_ref().ok_or_else(|| Error::unsupported("The web service has no list."))?;
    let order = total_order(&query.order, &rest.shape);
    let by = order.iter().map(|by| position(&rest.shape, &by.column)).collect::<Result<Vec<_>, _>>()?;
    let order_values = |values: &Values| by.iter().map(|at| values[*at].clone()).collect::<Values>();
    let sorted = is_sorted(list, &order);
    let (from, last) = resume(rest, query, &by)?;
    let behind = |values: &Values| {
        last.as_ref().is_none_or(|last| compare(&order_values(values), last, &order) == std::cmp::Ordering::Greater)
    };
    let limit = query.limit as usize;
    let mut pages = Pages::new(&rest.settings, list, filters(list, query), from.filter(|_| sorted).as_deref());
    let mut found: Vec<(Values, String)> = Vec::new();
    let mut seen = 0;
    while let Some(page) = pages.next()? {
        if progress::cancelled() {
            return Err(Error::cancelled());
        }
        seen += page.records.len();
        if seen > list.scan_max {
            return Err(Error::new(
                "too_large",
                format!(
                    "The list has more than {} records to look through; narrow it with a condition.",
                    list.scan_max
                ),
            ));
        }
        for raw in &page.records {
            let values = values(rest, raw)
                .ok_or_else(|| Error::upstream_error("The web service's list holds something that is not a record."))?;
            if matching(&values) && behind(&values) {
                found.push((values, page.position.clone()));
            }
        }
        if sorted && found.len() > limit {
            break;
        }
    }
    found.sort_by(|(left, _), (right, _)| compare(&order_values(left), &order_values(right), &order));
    // A record that moved from one page to the next while we walked.
    if !rest.shape.key.is_empty() {
        found.dedup_by(|(left, _), (right, _)| {
            compare(&order_values(left), &order_values(right), &order) == std::cmp::Ordering::Equal
        });
    }
    let next = match found.get(limit.wrapping_sub(1)) {
        Some((values, position)) if found.len() > limit => {
            let position = if sorted { position.as_str() } else { "" };
            Some(json!([position, encode_cursor(&order_values(values))]).to_string())
        }
        _ => None,
    };
    found.truncate(limit);
    Ok((found.into_iter().map(|(values, _)| values).collect(), next))
}

/// Reads a cursor: the page of the last record, and that record's order values.
fn resume(rest: &Rest, query: &Query, by: &[usize]) -> Result<(Option<String>, Option<Values>), Error> {
    let Some(cursor) = &query.cursor else { return Ok((None, None)) };
    let (position, last): (String, String) = serde_json::from_str(cursor).map_err(|_| bad_cursor())?;
    let fields: Vec<&Field> = by.iter().map(|at| &rest.shape.fields[*at]).collect();
    let last = decode_cursor(&last, &fields, &rest.zone)?;
    Ok(((!position.is_empty()).then_some(position), Some(last)))
}

/// Returns `true` if the service answers in the order asked for, so that reading may stop early.
fn is_sorted(list: &List, order: &[Order]) -> bool {
    let promised: Vec<_> = list.sorted_by.iter().map(|by| Order::parse(by)).collect();
    !promised.is_empty() && promised.len() >= order.len() && promised[..order.len()] == *order
}

fn filters(list: &List, query: &Query) -> Vec<(String, String)> {
    let parameters = query.conditions.iter().filter_map(|condition| {
        let parameter = list.filters.get(&condition.column)?.get(condition.comparison.name())?;
        let text = match &condition.value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(_) | serde_json::Value::Bool(_) => condition.value.to_string(),
            _ => return None,
        };
        Some((parameter.clone(), text))
    });
    parameters.collect()
}

pub(crate) fn values(rest: &Rest, raw: &RawValue) -> Option<Values> {
    let members = answer::members(raw)?;
    let value = |field: &Field| {
        let found = match rest.settings.place(&field.key) {
            Some(pointer) => answer::inside(raw, &pointer),
            None => members.get(&field.key).copied(),
        };
        found.map_or(Value::Null, |raw| Value::from_json(raw, field, &rest.zone).into_owned())
    };
    Some(rest.shape.fields.iter().map(value).collect())
}

pub(crate) fn position(shape: &Shape, column: &str) -> Result<usize, Error> {
    shape
        .fields
        .iter()
        .position(|field| field.key == column)
        .ok_or_else(|| Error::invalid(format!("There is no column {column:?} in the recorded shape.")).field(column))
}
