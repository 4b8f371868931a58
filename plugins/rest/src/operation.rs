//! Operations: one request each, with its parameters where they belong, answered with the response.

use std::collections::BTreeMap;

use weir_plugin_sdk::records::record;
use weir_plugin_sdk::serde_json::{Map, Value as Json, json, value::RawValue};
use weir_plugin_sdk::shape::Effect;
use weir_plugin_sdk::{Change, Error, Field, Type, Value, http, serde_json};

use crate::answer::lenient::{self, MemberList};
use crate::pages::NextPage;
use crate::parameters::{
    comma_pair, explodes, form, has_outer_blank, held_separator, is_unsent, pairs, segment, text,
    written,
};
use crate::request::{PathSegment, filled_path, fits, request};
use crate::settings::{
    FORM, ListPagination, NEXT, RestOperation, RestParam, RestParamLocation, RestParamStyle,
};
use crate::{RestAdapter, answer, pages};

pub(crate) fn call(rest: &RestAdapter, change: &Change) -> Result<String, Error> {
    let name = change
        .options
        .get("operation")
        .and_then(Json::as_str)
        .unwrap_or_default();
    let operation = rest
        .settings
        .operations
        .get(name)
        .ok_or_else(|| Error::unsupported(format!("There is no operation {name:?}.")))?;
    let none = Map::new();
    let given = change
        .options
        .get("params")
        .and_then(Json::as_object)
        .unwrap_or(&none);
    let response = answer::send(&filled(rest, operation, given)?)?;
    let body = answer::checked(&response).map_err(|error| refused(operation, given, error))?;
    let capabilities = &rest.shape.capabilities;
    let returns = capabilities
        .operations
        .iter()
        .find(|declared| declared.name == name)
        .map(|declared| &declared.returns);
    let fields = returns.map(Vec::as_slice).unwrap_or_default();
    if fields.is_empty() {
        return Ok("{}".to_owned());
    }
    let mended;
    let (body, raw) = match answer::at(body, &operation.record) {
        Ok(raw) => (body, raw),
        Err(error) => match lenient::mended(body) {
            Some(found) => {
                mended = found;
                (&mended[..], answer::at(&mended, &operation.record)?)
            }
            None => return Err(error),
        },
    };
    let list: Option<MemberList<'_>> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let is_placed = |field: &Field| field.key == NEXT || operation.place(&field.key).is_some();
    if let (Some(raw), None) = (raw, &list)
        && raw.get() != "null"
        && !fields.iter().any(is_placed)
    {
        // The gateway passes nulls and reports what there is instead of an object.
        return Ok(raw.get().to_owned());
    }
    // Of two members with the same name the first is kept.
    let mut members: BTreeMap<&str, (&RawValue, bool)> = BTreeMap::new();
    for (name, raw) in list.iter().flat_map(|list| &list.0) {
        let member = members.entry(name.as_str());
        member
            .and_modify(|(_, is_there_twice)| *is_there_twice = true)
            .or_insert((*raw, false));
    }
    let is_needed = |field: &Field| {
        !field.nullable || is_placed(field) || members.contains_key(field.key.as_str())
    };
    if let Some(raw) = raw
        && !members.is_empty()
        && !fields.iter().any(is_needed)
    {
        // The gateway passes nulls and reports that there are other members.
        return Ok(raw.get().to_owned());
    }
    let next = match next(operation, given, &response, body) {
        // An answer, or an effect, is not lost to a link that leads nowhere.
        Err(_) if matches!(operation.pagination, ListPagination::Link { .. }) => None,
        Err(_) if operation.effect != Effect::Read && operation.method != "GET" => None,
        next => next?,
    };
    let shown = |field: &Field| {
        let found = match operation.place(&field.key) {
            Some(place) => raw.and_then(|raw| answer::inside(raw, &place)),
            None => members.get(field.key.as_str()).map(|(raw, _)| *raw),
        };
        let found = if field.key == NEXT {
            next.as_deref().or(found)
        } else {
            found
        };
        found.map_or(Value::Null, |raw| match raw.get() {
            lenient::NO_NUMBER => Value::Unfit(lenient::NO_NUMBER.into()),
            _ => Value::from_json(raw, field, &rest.zone),
        })
    };
    let is_there_twice = |field: &&Field| {
        let member = members.get(field.key.as_str());
        member.is_some_and(|(_, is_there_twice)| *is_there_twice) && !is_placed(field)
    };
    // A member that occurs twice is written twice, which the gateway reports to the caller.
    let twice = fields.iter().filter(is_there_twice);
    let all = fields.iter().chain(twice);
    Ok(record(all.map(|field| (field.key.as_str(), shown(field)))))
}

/// Explains what the refusal of a later page most likely means: many services answer so after the last one.
fn refused(operation: &RestOperation, given: &Map<String, Json>, error: Error) -> Error {
    let is_later = match &operation.pagination {
        ListPagination::Page { page, first, .. } => {
            number(given, page).is_some_and(|number| number > *first)
        }
        ListPagination::Offset { offset, .. } => {
            number(given, offset).is_some_and(|offset| offset > 0)
        }
        _ => false,
    };
    let message = match error.code.as_str() {
        "not_found" => "There is no such page; the one before was the last.",
        "invalid" => {
            "The web service refuses the values. If it answered the page before, that was the last one."
        }
        _ => return error,
    };
    if is_later {
        Error {
            message: message.to_owned(),
            ..error
        }
    } else {
        error
    }
}

/// Returns a number that was given; some services take one as a text.
fn number(given: &Map<String, Json>, name: &str) -> Option<u64> {
    match given.get(name)? {
        Json::String(text) => text.parse().ok(),
        value => value.as_u64(),
    }
}

/// Returns the request with every parameter in its place.
fn filled(
    rest: &RestAdapter,
    operation: &RestOperation,
    given: &Map<String, Json>,
) -> Result<http::Request, Error> {
    if let Some(unknown) = given
        .keys()
        .find(|name| !operation.params.contains_key(*name))
    {
        return Err(
            Error::invalid(format!("The operation has no parameter {unknown:?}.")).field(unknown),
        );
    }
    let mut request = request(&rest.settings, &operation.method, String::new());
    if let Some(accept) = &operation.accept {
        request
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("accept"));
        request.headers.push(("accept".to_owned(), accept.clone()));
    }
    let (mut in_path, mut in_body, mut whole) = (BTreeMap::new(), Map::new(), None);
    let (mut has_body, mut commas) = (false, Vec::new());
    let is_json = !operation
        .content_type
        .to_ascii_lowercase()
        .starts_with(FORM);
    let is_null_meant = |param: &RestParam| match param.place {
        RestParamLocation::WholeBody => true,
        RestParamLocation::Body => is_json,
        _ => false,
    };
    for (name, param) in &operation.params {
        has_body |= matches!(param.place, RestParamLocation::Body);
        let value = match given.get(name) {
            // JSON may hold null, and where the tool's schema has no null for an argument, none arrives here. Outside JSON
            // there is no null.
            Some(value) if !value.is_null() || is_null_meant(param) => value,
            _ if param.required => {
                return Err(
                    Error::invalid(format!("The parameter {name:?} is missing.")).field(name),
                );
            }
            _ => continue,
        };
        let place = param.name.as_ref().unwrap_or(name);
        let own = written(param, value);
        let sent: &Json = &own;
        check_separator(name, param, sent)?;
        match param.place {
            RestParamLocation::Header if is_unsent(param, sent) => {}
            RestParamLocation::Body => drop(in_body.insert(place.clone(), value.clone())),
            RestParamLocation::WholeBody => whole = Some(value),
            RestParamLocation::Path => {
                let segment = segment(param, sent);
                check_segment(name, &segment)?;
                in_path.insert(place.clone(), segment);
            }
            RestParamLocation::Query => match comma_pair(param, place, sent) {
                Some(pair) => commas.push(pair),
                None => request.query.extend(pairs(param, place, sent)),
            },
            RestParamLocation::Header => {
                let text = header_text(name, param, sent)?;
                request.headers.push((place.clone(), text));
            }
        }
    }
    let found = |name: &str| in_path.get(name).cloned();
    request.path = filled_path(&operation.path, found)?
        .ok_or_else(|| Error::invalid("A parameter of the path is one that no path can hold."))?;
    if !commas.is_empty() {
        request.options = Some(json!({ "query": commas.join("&") }).to_string());
    }
    // A method that rarely takes a body gets one only if there is something in it, or the service requires it.
    let is_bare = matches!(operation.method.as_str(), "GET" | "DELETE") && !operation.body_required;
    let body = match whole {
        Some(whole) => Some(serde_json::to_vec(whole)),
        None if has_body && (!is_bare || !in_body.is_empty()) => match is_json {
            true => Some(serde_json::to_vec(&in_body)),
            false => Some(Ok(form(&in_body, &operation.params).into_bytes())),
        },
        None => None,
    };
    if let Some(body) = body {
        request
            .headers
            .push(("content-type".to_owned(), operation.content_type.clone()));
        request.body =
            Some(body.map_err(|_| Error::internal("An argument cannot be written as JSON."))?);
    }
    Ok(request)
}

/// Returns the text of a header, and refuses a value that would not arrive as it is.
fn header_text(name: &str, param: &RestParam, value: &Json) -> Result<String, Error> {
    let text = text(param, value);
    let problem = match () {
        () if text.chars().any(char::is_control) => "holds a control character",
        () if has_outer_blank(param, value) => {
            "has a blank before or behind a value, which HTTP takes away in a header"
        }
        () => return Ok(text),
    };
    Err(Error::invalid(format!("{name:?} {problem}.")).field(name))
}

/// Refuses a value that no path can hold: the request would leave its place, or end early.
fn check_segment(name: &str, segment: &PathSegment) -> Result<(), Error> {
    if fits(&segment.plain) {
        return Ok(());
    }
    let problem = match segment.plain.is_empty() {
        true => "is empty",
        false => "has a step `.` or `..`, or an end of a line, in it",
    };
    let message = format!("{name:?} {problem}, which no path can hold.");
    Err(Error::invalid(message).field(name))
}

/// Refuses an item that the service would read as two.
fn check_separator(name: &str, param: &RestParam, value: &Json) -> Result<(), Error> {
    match held_separator(param, value) {
        Some(separator) => Err(Error::invalid(format!(
            "A value in {name:?} holds {separator:?}, which separates the values there."
        ))
        .field(name)),
        None => Ok(()),
    }
}

/// Returns the arguments to call again with: null after the last page, `None` if there are no pages. `body` is that of the
/// response as far as it can be read.
fn next(
    operation: &RestOperation,
    given: &Map<String, Json>,
    response: &http::Response,
    body: &[u8],
) -> Result<Option<Box<RawValue>>, Error> {
    let count = || {
        let records = answer::at(body, &operation.records)?;
        let records =
            records.and_then(|records| serde_json::from_str::<Vec<&RawValue>>(records.get()).ok());
        Ok(records.map_or(0, |records| records.len()))
    };
    let (name, at, size) = match &operation.pagination {
        ListPagination::None => return Ok(None),
        ListPagination::Page {
            page, first, size, ..
        } => (
            page.as_str(),
            number(given, page).unwrap_or(*first),
            size.as_ref(),
        ),
        ListPagination::Offset { offset, limit, .. } => (
            offset.as_str(),
            number(given, offset).unwrap_or(0),
            Some(limit),
        ),
        ListPagination::Cursor { cursor, .. } => (cursor.as_str(), 0, None),
        ListPagination::Link { .. } => ("", 0, None),
    };
    let asked = size
        .and_then(|size| number(given, size))
        .map(|size| size as usize);
    let is_text = operation
        .params
        .get(name)
        .is_some_and(|param| param.r#type == Type::String);
    let one = |value: Json| {
        // A number leads on as a text where the parameter is one.
        let value = match value {
            Json::Number(number) if is_text => number.to_string().into(),
            value => value,
        };
        Some(Map::from_iter([(name.to_owned(), value)]))
    };
    let arguments = match pages::next(&operation.pagination, at, asked, count, response, body)? {
        None => None,
        Some(NextPage::Number(number)) => one(number.into()),
        // With all its digits.
        Some(NextPage::Cursor(raw)) if is_text && !raw.get().starts_with('"') => {
            one(raw.get().into())
        }
        Some(NextPage::Cursor(raw)) => one(serde_json::from_str(raw.get()).unwrap_or_default()),
        Some(NextPage::Query(query)) => Some(arguments_of(operation, given, &query)?),
    };
    let next = arguments.map_or(Json::Null, Json::Object);
    serde_json::value::to_raw_value(&next)
        .map(Some)
        .map_err(|_| Error::internal("Arguments cannot be written as JSON."))
}

/// Returns the arguments that ask for the query of a link. What the caller sent already need not be repeated.
fn arguments_of(
    operation: &RestOperation,
    given: &Map<String, Json>,
    query: &str,
) -> Result<Map<String, Json>, Error> {
    let mut linked: Vec<(&String, &RestParam, Vec<String>)> = Vec::new();
    for (name, value) in pages::parse_query(query) {
        let is_meant = |(own, param): &(&String, &RestParam)| {
            param.place == RestParamLocation::Query && param.name.as_ref().unwrap_or(own) == &name
        };
        let Some((own, param)) = operation.params.iter().find(is_meant) else {
            continue;
        };
        match linked.iter_mut().find(|(known, ..)| *known == own) {
            Some((_, _, values)) => values.push(value),
            None => linked.push((own, param, vec![value])),
        }
    }
    let arguments: Map<_, _> = linked
        .into_iter()
        .filter_map(|(own, param, values)| {
            let argument = linked_argument(param, given.get(own), values)?;
            Some((own.clone(), argument))
        })
        .collect();
    if arguments.is_empty() {
        Err(pages::elsewhere())
    } else {
        Ok(arguments)
    }
}

/// Returns the argument for the values that a link has of a parameter; `None` if the caller sent the same.
fn linked_argument(
    param: &RestParam,
    given: Option<&Json>,
    mut values: Vec<String>,
) -> Option<Json> {
    let sent = given.map(|given| pairs(param, "", &written(param, given)).into_iter());
    if sent.is_some_and(|sent| sent.map(|(_, text)| text).eq(values.iter().cloned())) {
        return None;
    }
    let typed = |value: String| -> Json {
        match param.r#type {
            Type::String if param.style != Some(RestParamStyle::Json) => value.into(),
            _ => serde_json::from_str(&value).unwrap_or_else(|_| value.into()),
        }
    };
    let items = given.and_then(Json::as_array);
    let is_list = items.is_some() && explodes(param);
    if values.len() == 1 && !is_list {
        return values.pop().map(typed);
    }
    // Digits may be texts, as those that were sent.
    let are_texts = items.is_some_and(|items| items.iter().all(Json::is_string));
    let item = |value: String| -> Json {
        match are_texts {
            true => value.into(),
            false => typed(value),
        }
    };
    Some(values.into_iter().map(item).collect())
}

#[cfg(test)]
mod tests;
