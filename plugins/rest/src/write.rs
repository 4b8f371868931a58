//! Writing: create, update and delete, each answered with the record as the service now holds it.

use weir_plugin_sdk::records::record;
use weir_plugin_sdk::serde_json::{self, Map, Value as Json, value::RawValue};
use weir_plugin_sdk::{Change, Error, Field, Type, Value, Verb, http};

use crate::body::RestBody;
use crate::read::{Values, one, values};
use crate::request::{path, request};
use crate::settings::RecordEndpoint;
use crate::{RestAdapter, answer, operation};

pub(crate) fn write(rest: &RestAdapter, change: &Change) -> Result<String, Error> {
    // A look before the write would leave a gap between the two.
    if !change.conditions.is_empty() {
        return Err(Error::unsupported(
            "The web service cannot hold a change to conditions.",
        ));
    }
    match change.verb {
        Verb::Create => create(rest, change),
        Verb::Update => update(rest, change),
        Verb::Delete => delete(rest, change),
        Verb::Call => operation::call(rest, change),
    }
}

fn create(rest: &RestAdapter, change: &Change) -> Result<String, Error> {
    let create = endpoint(&rest.settings.create, "create")?;
    // Services answer a taken key in many ways, or overwrite; so it is looked up first, if it is given.
    if let Some(key) = key_of(rest, &change.record)
        && one(rest, &key)?.is_some()
    {
        let field = rest.shape.key.first().cloned().unwrap_or_default();
        return Err(Error::conflict("There is a record with this key already.").field(field));
    }
    let path = filled(create, &change.record)?;
    let body = with_values(RestBody::new(), rest, &change.record)?;
    let response = send(
        rest,
        create.method.as_deref().unwrap_or("POST"),
        path,
        Some(&body),
    )?;
    let answered =
        answered(rest, &response, &create.record).map_err(|error| match error.code.as_str() {
            "not_found" => Error {
                details: error.details,
                ..Error::upstream_error("The web service does not create here.")
            },
            _ => error,
        })?;
    match (answered, key_of(rest, &change.record)) {
        (Some(values), _) => Ok(render_record(rest, &values)),
        (None, Some(key)) => shown_again(rest, &key, &body),
        (None, None) => Ok(shown_as_sent(rest, &body)),
    }
}

fn update(rest: &RestAdapter, change: &Change) -> Result<String, Error> {
    let update = endpoint(&rest.settings.update, "update")?;
    let key = whole_key(rest, change)?;
    let method = update.method.as_deref().unwrap_or("PATCH");
    let path = filled(update, &key)?;
    // A PUT replaces the record, so everything that is not to change is sent along.
    let held = match method {
        "PUT" => held(rest, &key, &path)?,
        _ => RestRecord {
            record: RestBody::new(),
            version: None,
        },
    };
    let sent = with_values(held.record, rest, &change.record)?;
    let mut request = with_body(rest, method, path, Some(&sent));
    if let Some(version) = held.version
        && !request
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("if-match"))
    {
        request.headers.push(("if-match".to_owned(), version));
    }
    let response = answer::send(&request)?;
    match answered(rest, &response, &update.record)? {
        Some(values) => Ok(render_record(rest, &values)),
        None => {
            let changed = rest.shape.key.iter().map(|name| {
                (
                    name.clone(),
                    change
                        .record
                        .get(name)
                        .or_else(|| key.get(name))
                        .cloned()
                        .unwrap_or(Json::Null),
                )
            });
            shown_again(rest, &changed.collect(), &sent)
        }
    }
}

fn delete(rest: &RestAdapter, change: &Change) -> Result<String, Error> {
    let delete = endpoint(&rest.settings.delete, "delete")?;
    let key = whole_key(rest, change)?;
    // The answer is the record as it was, which hardly any service sends.
    let before = match rest.settings.get {
        Some(_) => Some(one(rest, &key)?.ok_or_else(not_found)?),
        None => None,
    };
    let path = filled(delete, &key)?;
    let response = send(
        rest,
        delete.method.as_deref().unwrap_or("DELETE"),
        path,
        None,
    )?;
    let answered = match before {
        Some(before) => {
            answer::checked(&response)?;
            Some(before)
        }
        None => answered(rest, &response, &delete.record)?,
    };
    match answered {
        Some(values) => Ok(render_record(rest, &values)),
        None => Ok(shown_key(rest, &key)),
    }
}

fn endpoint<'a>(
    endpoint: &'a Option<RecordEndpoint>,
    verb: &str,
) -> Result<&'a RecordEndpoint, Error> {
    endpoint.as_ref().ok_or_else(|| {
        Error::unsupported(format!("The settings name no `{verb}` of the web service."))
    })
}

fn not_found() -> Error {
    Error::not_found("There is no record with this key.")
}

fn filled(endpoint: &RecordEndpoint, values: &Map<String, Json>) -> Result<String, Error> {
    path(&endpoint.path, values)?.ok_or_else(not_found)
}

fn send(
    rest: &RestAdapter,
    method: &str,
    path: String,
    body: Option<&RawValue>,
) -> Result<http::Response, Error> {
    answer::send(&with_body(rest, method, path, body))
}

fn with_body(
    rest: &RestAdapter,
    method: &str,
    path: String,
    body: Option<&RawValue>,
) -> http::Request {
    let mut request = request(&rest.settings, method, path);
    if let Some(body) = body {
        request
            .headers
            .push(("content-type".to_owned(), "application/json".to_owned()));
        request.body = Some(body.get().as_bytes().to_vec());
    }
    request
}

/// Returns the record in the answer, if it contains one: an empty body or `{}` does not.
fn answered(
    rest: &RestAdapter,
    response: &http::Response,
    pointer: &str,
) -> Result<Option<Values>, Error> {
    let body = answer::checked(response)?;
    let raw = answer::at(body, pointer)?
        .filter(|raw| answer::members(raw).is_some_and(|members| !members.is_empty()));
    // What was done is done: a record that cannot be read is asked for again, or shown as it was sent.
    Ok(raw.and_then(|raw| values(rest, raw).ok()))
}

fn render_record(rest: &RestAdapter, values: &Values) -> String {
    record(
        rest.shape
            .fields
            .iter()
            .zip(values)
            .map(|(field, value)| (field.key.as_str(), value.clone())),
    )
}

/// Returns the record as the service shows it when asked.
fn shown_again(
    rest: &RestAdapter,
    key: &Map<String, Json>,
    sent: &RawValue,
) -> Result<String, Error> {
    match one(rest, key)? {
        Some(values) => Ok(render_record(rest, &values)),
        None => Ok(shown_as_sent(rest, sent)),
    }
}

fn shown_as_sent(rest: &RestAdapter, sent: &RawValue) -> String {
    render_record(rest, &values(rest, sent).unwrap_or_default())
}

fn shown_key(rest: &RestAdapter, key: &Map<String, Json>) -> String {
    let value = |field: &Field| {
        key.get(&field.key).map_or(Value::Null, |json| {
            Value::from_argument(json, field, &rest.zone)
        })
    };
    record(
        rest.shape
            .fields
            .iter()
            .map(|field| (field.key.as_str(), value(field))),
    )
}

/// Puts the values into a body, each in its place and spelled as the service does.
fn with_values(
    mut body: RestBody,
    rest: &RestAdapter,
    given: &Map<String, Json>,
) -> Result<Box<RawValue>, Error> {
    let unspelt = |_| Error::internal("A value cannot be written as JSON.");
    for (key, json) in given {
        let field = rest.shape.field(key).ok_or_else(|| {
            Error::invalid(format!("There is no column {key:?} in the recorded shape.")).field(key)
        })?;
        let value = Value::from_argument(json, field, &rest.zone);
        if let Value::Unfit(_) = value {
            return Err(
                Error::invalid(format!("The value of {key:?} does not fit its column.")).field(key),
            );
        }
        let as_number = field.kind == Type::Decimal && field.native.as_deref() == Some("number");
        let text = match &value {
            // The digits are not changed: a decimal that the service keeps as a number remains one, exactly.
            Value::Decimal(decimal) if as_number => decimal.as_str().to_owned(),
            value => value.to_json(),
        };
        if !body.put(
            &steps(rest, key),
            RawValue::from_string(text).map_err(unspelt)?,
        ) {
            return Err(
                Error::invalid(format!("The record has no place for a value of {key:?}."))
                    .field(key),
            );
        }
    }
    serde_json::value::to_raw_value(&body).map_err(unspelt)
}

/// Returns the way to a field in a record: its own name, or the one from the settings.
fn steps(rest: &RestAdapter, key: &str) -> Vec<String> {
    let pointer = rest.settings.place(key).unwrap_or_default();
    let steps: Vec<_> = pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
        .collect();
    if steps.is_empty() {
        vec![key.to_owned()]
    } else {
        steps
    }
}

/// Returns the key in a record to be created, if all of it is there.
fn key_of(rest: &RestAdapter, given: &Map<String, Json>) -> Option<Map<String, Json>> {
    let part = |name: &String| {
        Some((
            name.clone(),
            given.get(name).filter(|value| !value.is_null())?.clone(),
        ))
    };
    let key: Map<String, Json> = rest.shape.key.iter().map(part).collect::<Option<_>>()?;
    (!key.is_empty() && rest.settings.get.is_some()).then_some(key)
}

fn whole_key(rest: &RestAdapter, change: &Change) -> Result<Map<String, Json>, Error> {
    let part = |name: &String| match change.key.get(name) {
        Some(value) if !value.is_null() => Ok((name.clone(), value.clone())),
        _ => Err(Error::invalid(format!("The key {name:?} is missing.")).field(name)),
    };
    rest.shape.key.iter().map(part).collect()
}

/// A record as the service has it.
struct RestRecord {
    /// Everything that the service keeps in it, including members unknown to the shape.
    record: RestBody,
    /// Its strong entity tag: a replacement that names it is refused if another client changed the record in the meantime.
    version: Option<String>,
}

/// Returns the record that is to be replaced at `path`.
fn held(rest: &RestAdapter, key: &Map<String, Json>, path: &str) -> Result<RestRecord, Error> {
    let get = endpoint(&rest.settings.get, "get")?;
    let read_from = filled(get, key)?;
    // An entity tag is of one address.
    let is_replaced_there = read_from == path;
    let response = send(rest, "GET", read_from, None)?;
    let record = answer::at(answer::checked(&response)?, &get.record)?;
    let record = record.and_then(RestBody::object).ok_or_else(|| {
        Error::upstream_error("The web service's record is not where it should be.")
    })?;
    let version = response
        .header("etag")
        .filter(|tag| is_replaced_there && tag.starts_with('"'));
    Ok(RestRecord {
        record,
        version: version.map(str::to_owned),
    })
}
