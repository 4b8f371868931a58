//! Reading: one record by its path, or the list, judged record by record.

use std::cmp::Ordering;

use weir_plugin_sdk::matches::Matcher;
use weir_plugin_sdk::order::{bad_cursor, compare, decode_cursor, encode_cursor, total_order};
use weir_plugin_sdk::records::Records;
use weir_plugin_sdk::serde_json::{self, Map, json, value::RawValue};
use weir_plugin_sdk::{Comparison, Error, Field, Order, Page, Query, Shape, Type, Value, progress};

use crate::answer::record::{RecordMembers, inside_record, not_a_record};
use crate::pages::ListPages;
use crate::request::{path, request};
use crate::settings::ListEndpoint;
use crate::{RestAdapter, answer};

/// A record: the value of every field of the shape, in its order.
pub(crate) type Values = Vec<Value<'static>>;

pub(crate) fn read(rest: &RestAdapter, query: &Query) -> Result<Page, Error> {
    let matchers = query
        .conditions
        .iter()
        .map(|condition| {
            let at = position(&rest.shape, &condition.column)?;
            Ok((
                at,
                Matcher::new(condition, &rest.shape.fields[at], &rest.zone)?,
            ))
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let matching = |values: &Values| {
        matchers
            .iter()
            .all(|(at, matcher)| matcher.matches(&values[*at]))
    };
    let columns = match query.columns.as_slice() {
        [] => (0..rest.shape.fields.len()).collect::<Vec<_>>(),
        names => names
            .iter()
            .map(|name| position(&rest.shape, name))
            .collect::<Result<_, _>>()?,
    };
    let (found, next) = match named(rest, query) {
        Some(key) if query.cursor.is_none() => (
            one(rest, &key)?.into_iter().filter(matching).collect(),
            None,
        ),
        _ => listed(rest, query, &matching)?,
    };
    let mut records = Records::new();
    for values in &found {
        records.push(
            columns
                .iter()
                .map(|at| (rest.shape.fields[*at].key.as_str(), values[*at].clone())),
        );
    }
    Ok(Page {
        records: records.finish(),
        next,
    })
}

/// Returns the key, if the conditions name a whole one and the service answers single records.
fn named(rest: &RestAdapter, query: &Query) -> Option<Map<String, serde_json::Value>> {
    rest.settings.get.as_ref()?;
    let mut key = Map::new();
    for name in &rest.shape.key {
        let of_key = |condition: &&weir_plugin_sdk::Condition| {
            &condition.column == name
                && condition.comparison == Comparison::Equals
                && !condition.value.is_null()
        };
        key.insert(
            name.clone(),
            query.conditions.iter().find(of_key)?.value.clone(),
        );
    }
    (!key.is_empty()).then_some(key)
}

/// Returns one record by its key; `None` if the service answers 404 or another record.
pub(crate) fn one(
    rest: &RestAdapter,
    key: &Map<String, serde_json::Value>,
) -> Result<Option<Values>, Error> {
    let Some(get) = &rest.settings.get else {
        return Ok(None);
    };
    let Some(path) = path(&get.path, key)? else {
        return Ok(None);
    };
    let response = answer::send(&request(
        &rest.settings,
        get.method.as_deref().unwrap_or("GET"),
        path,
    ))?;
    let body = match answer::checked(&response) {
        Err(error) if error.is("not_found") => return Ok(None),
        // A key that the service does not even take for one names nothing.
        Err(error) if error.is("invalid") => return Ok(None),
        body => body?,
    };
    let raw = answer::at(body, &get.record)?.ok_or_else(|| {
        Error::upstream_error("The web service's record is not where it should be.")
    })?;
    let values = values(rest, raw).map_err(|fault| {
        Error::upstream_error(format!("What the web service answers as a record {fault}."))
    })?;
    let same = key.iter().all(|(name, wanted)| {
        let Ok(at) = position(&rest.shape, name) else {
            return false;
        };
        let wanted = Value::from_argument(wanted, &rest.shape.fields[at], &rest.zone);
        values[at].compare(&wanted) == Some(Ordering::Equal)
    });
    Ok(same.then_some(values))
}

fn listed(
    rest: &RestAdapter,
    query: &Query,
    matching: &dyn Fn(&Values) -> bool,
) -> Result<(Vec<Values>, Option<String>), Error> {
    let list = rest
        .settings
        .list
        .as_ref()
        .ok_or_else(|| Error::unsupported("The web service has no list."))?;
    let order = total_order(&query.order, &rest.shape);
    let by = order
        .iter()
        .map(|by| position(&rest.shape, &by.column))
        .collect::<Result<Vec<_>, _>>()?;
    let sorted = is_sorted(list, &order);
    let cursor = query
        .cursor
        .as_ref()
        .map(|cursor| RestCursor::decode(cursor, rest, &by))
        .transpose()?;
    let mut equals = 0;
    let mut behind = |values: &Values| {
        let Some(cursor) = &cursor else { return true };
        match compare(&order_values(values, &by), &cursor.values, &order) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => {
                equals += 1;
                cursor.equals.is_some_and(|delivered| equals > delivered)
            }
        }
    };
    let limit = query.limit as usize;
    let from = cursor
        .as_ref()
        .map(|cursor| cursor.position.as_str())
        .filter(|from| sorted && !from.is_empty());
    let mut pages = ListPages::new(
        &rest.settings,
        list,
        &rest.shape.key,
        filters(list, query),
        from,
    );
    let mut found = Vec::new();
    let mut seen = 0;
    while let Some(page) = pages.next()? {
        if progress::cancelled() {
            return Err(Error::cancelled());
        }
        seen += page.records.len();
        check_scanned(list, seen)?;
        for (at, raw) in page.records.iter().enumerate() {
            let values = values(rest, raw).map_err(|fault| not_a_record(at, &fault))?;
            if matching(&values) && behind(&values) {
                // A list that the service does not sort is read from its beginning each time.
                found.push((
                    values,
                    if sorted {
                        page.position.clone()
                    } else {
                        String::new()
                    },
                ));
            }
        }
        if sorted && found.len() > limit {
            // Only different records show that there are more than fit.
            arrange(rest, &mut found, &by, &order);
            if found.len() > limit {
                break;
            }
        }
    }
    arrange(rest, &mut found, &by, &order);
    let is_last_page = found.len() <= limit;
    found.truncate(limit);
    let next = match is_last_page {
        true => None,
        false => next_cursor(rest, &found, cursor.as_ref(), &by, &order),
    };
    Ok((found.into_iter().map(|(values, _)| values).collect(), next))
}

fn order_values(values: &Values, by: &[usize]) -> Values {
    by.iter().map(|at| values[*at].clone()).collect()
}

/// Refuses a list that has more records than may be looked through.
fn check_scanned(list: &ListEndpoint, seen: usize) -> Result<(), Error> {
    if seen > list.scan_max {
        return Err(Error::new(
            "too_large",
            format!(
                "The list has more than {} records to look through; narrow it with a condition.",
                list.scan_max
            ),
        ));
    }
    Ok(())
}

/// Puts the records in order.
fn arrange(rest: &RestAdapter, found: &mut Vec<(Values, String)>, by: &[usize], order: &[Order]) {
    let compared = |left: &Values, right: &Values| {
        compare(&order_values(left, by), &order_values(right, by), order)
    };
    found.sort_by(|(left, _), (right, _)| compared(left, right));
    // A record that moved from one page to the next while we walked.
    if !rest.shape.key.is_empty() {
        found.dedup_by(|(left, _), (right, _)| compared(left, right) == Ordering::Equal);
    }
}

/// Returns the cursor after the last record of a page.
fn next_cursor(
    rest: &RestAdapter,
    found: &[(Values, String)],
    cursor: Option<&RestCursor>,
    by: &[usize],
    order: &[Order],
) -> Option<String> {
    let (last, position) = found.last()?;
    let values = order_values(last, by);
    let is_equal = |others: &Values| compare(others, &values, order) == Ordering::Equal;
    let equals = rest.shape.key.is_empty().then(|| {
        let page = found.iter().rev().take_while(|(_, at)| at == position);
        let here = page
            .take_while(|(other, _)| is_equal(&order_values(other, by)))
            .count() as u64;
        // The last record of the previous call may be such an equal, too.
        let before =
            cursor.filter(|cursor| &cursor.position == position && is_equal(&cursor.values));
        here + before.and_then(|cursor| cursor.equals).unwrap_or(0)
    });
    Some(
        RestCursor {
            position: position.clone(),
            values,
            equals,
        }
        .encode(),
    )
}

/// The place where a page ended.
struct RestCursor {
    /// The service's page with the last record; empty if the list is read from its beginning.
    position: String,
    /// The last record's order values.
    values: Values,
    /// Without a key others may have the same values: how many of the records at the position have been delivered.
    equals: Option<u64>,
}

impl RestCursor {
    fn encode(mut self) -> String {
        self.values
            .extend(self.equals.map(|equals| Value::Integer(equals.into())));
        json!([self.position, encode_cursor(&self.values)]).to_string()
    }

    fn decode(cursor: &str, rest: &RestAdapter, by: &[usize]) -> Result<Self, Error> {
        let (position, values): (String, String) =
            serde_json::from_str(cursor).map_err(|_| bad_cursor())?;
        let counted = rest
            .shape
            .key
            .is_empty()
            .then(|| Field::new("", Type::Integer));
        let fields: Vec<&Field> = by
            .iter()
            .map(|at| &rest.shape.fields[*at])
            .chain(&counted)
            .collect();
        let mut values = decode_cursor(&values, &fields, &rest.zone)?;
        let equals = match counted.and_then(|_| values.pop()) {
            None => None,
            Some(Value::Integer(equals)) => Some(u64::try_from(equals).map_err(|_| bad_cursor())?),
            Some(_) => return Err(bad_cursor()),
        };
        Ok(Self {
            position,
            values,
            equals,
        })
    }
}

/// Returns `true` if the service answers in the order asked for, so that reading may stop early.
fn is_sorted(list: &ListEndpoint, order: &[Order]) -> bool {
    let promised: Vec<_> = list.sorted_by.iter().map(|by| Order::parse(by)).collect();
    !promised.is_empty() && promised.len() >= order.len() && promised[..order.len()] == *order
}

fn filters(list: &ListEndpoint, query: &Query) -> Vec<(String, String)> {
    let parameters = query.conditions.iter().filter_map(|condition| {
        let parameter = list
            .filters
            .get(&condition.column)?
            .get(condition.comparison.name())?;
        let text = match &condition.value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Number(_) | serde_json::Value::Bool(_) => {
                condition.value.to_string()
            }
            _ => return None,
        };
        Some((parameter.clone(), text))
    });
    parameters.collect()
}

/// Returns the values of a record. The error is the rest of a sentence about it.
pub(crate) fn values(rest: &RestAdapter, raw: &RawValue) -> Result<Values, String> {
    let members = RecordMembers::read(raw)?;
    let value = |field: &Field| -> Result<Value<'static>, String> {
        let found = match rest.settings.place(&field.key) {
            Some(pointer) => inside_record(raw, &pointer)?,
            None => members.member(&field.key)?,
        };
        Ok(found.map_or(Value::Null, |raw| {
            Value::from_json(raw, field, &rest.zone).into_owned()
        }))
    };
    rest.shape.fields.iter().map(value).collect()
}

pub(crate) fn position(shape: &Shape, column: &str) -> Result<usize, Error> {
    shape
        .fields
        .iter()
        .position(|field| field.key == column)
        .ok_or_else(|| {
            Error::invalid(format!(
                "There is no column {column:?} in the recorded shape."
            ))
            .field(column)
        })
}
