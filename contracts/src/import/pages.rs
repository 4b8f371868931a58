//! Pages, where the document declares them: OpenAPI has no word for it, so these are a `Link` header, a `links` object that
//! leads to the operation itself, and the extensions of two generators.

use serde_json::{Value, json};

use super::{
    document::ImportDocument,
    operation::{ImportedParameter, ParameterLocation},
};
use crate::json::push_pointer;

/// The adapter's `pagination` and `records`.
pub(super) struct ImportedPagination {
    pub(super) pagination: Value,
    pub(super) records: Option<String>,
}

const POSITIONS: &[&str] = &[
    "page", "cursor", "after", "before", "since", "offset", "start",
];
const SIZES: &[&str] = &["per_page", "page_size", "limit", "size"];

/// Returns `true` for a parameter's name that most likely says which page is asked for, or how long one is.
pub(super) fn is_position(name: &str) -> bool {
    POSITIONS.contains(&name) || SIZES.contains(&name)
}

pub(super) fn find_pagination(
    document: &ImportDocument,
    operation: &Value,
    response: Option<&Value>,
    parameters: &[ImportedParameter],
) -> Option<ImportedPagination> {
    let own = |wanted: &str| {
        let is_meant = |parameter: &&ImportedParameter| {
            parameter.place == ParameterLocation::Query && parameter.original == wanted
        };
        parameters.iter().find(is_meant)
    };
    speakeasy(operation, &own)
        .or_else(|| fern(operation, &own))
        .or_else(|| {
            linked(
                operation,
                document
                    .resolved(response?.get("links")?.as_object()?.values().next()?)
                    .ok()?,
                &own,
            )
        })
        .or_else(|| header(response?, &own))
}

type Own<'p> = dyn Fn(&str) -> Option<&'p ImportedParameter> + 'p;

/// Recognizes a response that has `Link: <…>; rel="next"`.
fn header(response: &Value, own: &Own<'_>) -> Option<ImportedPagination> {
    response
        .get("headers")?
        .as_object()?
        .keys()
        .find(|name| name.eq_ignore_ascii_case("link"))?;
    POSITIONS.iter().find_map(|name| own(name))?;
    let size = SIZES
        .iter()
        .find_map(|name| own(name))
        .map(|size| size.field.as_str());
    let mut pagination = json!({ "style": "link" });
    if let Some(size) = size {
        pagination["size"] = size.into();
    }
    Some(ImportedPagination {
        pagination,
        records: None,
    })
}

/// Recognizes a link from the response back to the operation, with a value out of the answer.
fn linked(operation: &Value, link: &Value, own: &Own<'_>) -> Option<ImportedPagination> {
    if link.get("operationId")? != operation.get("operationId")? {
        return None;
    }
    let (name, value) = link.get("parameters")?.as_object()?.iter().next()?;
    let pointer = value.as_str()?.strip_prefix("$response.body#")?;
    let cursor = own(name.strip_prefix("query.").unwrap_or(name))?;
    Some(ImportedPagination {
        pagination: json!({ "style": "cursor", "cursor": cursor.field, "next": pointer }),
        records: None,
    })
}

/// Reads `x-speakeasy-pagination: { type, inputs: [{ name, in, type }], outputs: { results, nextCursor } }`.
fn speakeasy(operation: &Value, own: &Own<'_>) -> Option<ImportedPagination> {
    let extension = operation.get("x-speakeasy-pagination")?;
    let input = |kind: &str| {
        let inputs = extension.get("inputs")?.as_array()?.iter();
        inputs
            .filter(|input| input.get("type").is_some_and(|word| word == kind))
            .find_map(|input| own(input.get("name")?.as_str()?))
    };
    let output = |name: &str| json_path(extension.get("outputs")?.get(name)?.as_str()?);
    let records = output("results");
    let pagination = match (input("cursor"), input("page"), input("offset")) {
        (Some(cursor), ..) => {
            json!({ "style": "cursor", "cursor": cursor.field, "next": output("nextCursor")? })
        }
        (_, Some(page), _) => {
            let mut pagination = json!({ "style": "page", "page": page.field });
            if let Some(size) = input("limit") {
                pagination["size"] = size.field.clone().into();
            }
            pagination
        }
        (.., Some(offset)) => {
            json!({ "style": "offset", "offset": offset.field, "limit": input("limit")?.field })
        }
        _ => return None,
    };
    Some(ImportedPagination {
        pagination,
        records,
    })
}

/// Reads `x-fern-pagination: { cursor: $request.cursor, next_cursor: $response.next, results: $response.data }`, or the
/// same with `offset`.
fn fern(operation: &Value, own: &Own<'_>) -> Option<ImportedPagination> {
    let extension = operation.get("x-fern-pagination")?;
    let request = |name: &str| own(extension.get(name)?.as_str()?.strip_prefix("$request.")?);
    let response =
        |name: &str| json_path(&extension.get(name)?.as_str()?.replacen("$response", "$", 1));
    let pagination = match (request("cursor"), request("offset")) {
        (Some(cursor), _) => {
            json!({ "style": "cursor", "cursor": cursor.field, "next": response("next_cursor")? })
        }
        // Fern's `offset` is the number of a page.
        (_, Some(page)) => json!({ "style": "page", "page": page.field }),
        _ => return None,
    };
    Some(ImportedPagination {
        pagination,
        records: response("results"),
    })
}

/// Rewrites `$.meta.next` as `/meta/next`.
fn json_path(path: &str) -> Option<String> {
    let mut pointer = String::new();
    let steps = path.strip_prefix('$')?;
    if steps.contains(['[', '*', '(']) {
        return None;
    }
    steps
        .split('.')
        .filter(|step| !step.is_empty())
        .for_each(|step| push_pointer(&mut pointer, step));
    Some(pointer)
}
