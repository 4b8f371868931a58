//! Pages, if the document declares them: OpenAPI has no standard way, so these are a `Link` header, a `links` object that
//! leads to the operation itself, and the extensions of two generators.

use serde_json::{Map, Value, json};

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

/// Returns `true` for a parameter's name that most likely selects the page, or its length.
pub(super) fn is_position(name: &str) -> bool {
    POSITIONS.contains(&name) || SIZES.contains(&name)
}

/// Returns how an operation paginates its answer, according to the document. `is_list` means that the answer as a whole is
/// a list.
pub(super) fn find_pagination(
    document: &ImportDocument,
    operation: &Value,
    response: Option<&Value>,
    is_list: bool,
    parameters: &[ImportedParameter],
) -> Option<ImportedPagination> {
    let own = |wanted: &str| {
        let is_meant = |parameter: &&ImportedParameter| {
            parameter.place == ParameterLocation::Query && parameter.original == wanted
        };
        parameters.iter().find(is_meant)
    };
    // Pages that are counted end with one without records, which are somewhere.
    let can_be_counted = |found: &ImportedPagination| {
        found.records.is_some() || is_list || found.pagination["style"] == "cursor"
    };
    let links = || response?.get("links")?.as_object();
    speakeasy(operation, &own)
        .or_else(|| fern(operation, &own))
        .filter(can_be_counted)
        .or_else(|| {
            let links = links().into_iter().flat_map(Map::values);
            let mut links = links.filter_map(|link| document.resolved(link).ok());
            links.find_map(|link| linked(document, operation, link, &own))
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
fn linked(
    document: &ImportDocument,
    operation: &Value,
    link: &Value,
    own: &Own<'_>,
) -> Option<ImportedPagination> {
    let leads_back = match link.get("operationRef").and_then(Value::as_str) {
        Some(reference) => document
            .target(reference)
            .is_ok_and(|target| std::ptr::eq(target, operation)),
        None => link.get("operationId")? == operation.get("operationId")?,
    };
    if !leads_back {
        return None;
    }
    let mut parameters = link.get("parameters")?.as_object()?.iter();
    let (cursor, next) = parameters.find_map(|(name, value)| {
        let pointer = value.as_str()?.strip_prefix("$response.body#")?;
        Some((own(name.strip_prefix("query.").unwrap_or(name))?, pointer))
    })?;
    Some(ImportedPagination {
        pagination: json!({ "style": "cursor", "cursor": cursor.field, "next": next }),
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

/// Rewrites `$.meta.next` as `/meta/next`, and `$.data[*]`, each item of a list, as the list.
fn json_path(path: &str) -> Option<String> {
    let mut pointer = String::new();
    let steps = path.strip_prefix('$')?;
    let steps = steps.strip_suffix("[*]").unwrap_or(steps);
    if steps.contains(['[', '*', '(']) {
        return None;
    }
    steps
        .split('.')
        .filter(|step| !step.is_empty())
        .for_each(|step| push_pointer(&mut pointer, step));
    Some(pointer)
}

#[cfg(test)]
mod tests {
    use crate::import::{ImportOptions, openapi};

    /// Returns the settings of an operation that answers an object or, with `schema`, something else.
    fn imported(extension: &str, links: &str, schema: &str) -> String {
        let document = format!(
            r#"{{"openapi": "3.1.0", "info": {{"title": "t"}}, "servers": [{{"url": "https://a.example"}}], "paths": {{"/x": {{"get": {{
                "operationId": "listX", {extension} "parameters": [
                    {{"name": "page", "in": "query", "schema": {{"type": "integer"}}}},
                    {{"name": "after", "in": "query", "schema": {{"type": "string"}}}}],
                "responses": {{"200": {{"links": {{{links}}}, "content": {{"application/json": {{"schema": {schema}}}}}}}}}}}}}}}}}"#
        );
        let imported = openapi("document", &document, &ImportOptions::default());
        imported.expect("a contract").contract
    }

    const OBJECT: &str = r#"{"type": "object", "properties": {"data": {"type": "array"}}}"#;
    const LIST: &str = r#"{"type": "array"}"#;

    /// An answer may have links to much else, and a link may repeat what was asked for.
    #[test]
    fn a_link_to_the_next_page_is_found_among_others() {
        let other = r#""self": {"operationId": "getX"}"#;
        let parameters = r##""parameters": {"page": "$request.query.page", "query.after": "$response.body#/meta/next"}"##;
        let cursor = r#"pagination: { style: cursor, cursor: after, next: "/meta/next" }"#;
        for named in [
            r#""operationId": "listX""#,
            r##""operationRef": "#/paths/~1x/get""##,
        ] {
            let links = format!(r#"{other}, "next": {{{named}, {parameters}}}"#);
            let contract = imported("", &links, OBJECT);
            assert!(contract.contains(cursor), "{contract}");
        }
        let elsewhere = format!(r##""next": {{"operationRef": "#/info", {parameters}}}"##);
        assert!(!imported("", &elsewhere, OBJECT).contains("pagination"));
    }

    /// If nothing shows what is counted, each page would be the last.
    #[test]
    fn pages_are_counted_where_their_records_are_known() {
        let extension = |outputs: &str| {
            format!(
                r#""x-speakeasy-pagination": {{"type": "offsetLimit", "outputs": {{{outputs}}},
                    "inputs": [{{"name": "page", "in": "parameters", "type": "page"}}]}},"#
            )
        };
        for (outputs, schema, records) in [
            (r#""results": "$.data""#, OBJECT, Some("records: \"/data\"")),
            (
                r#""results": "$.data[*]""#,
                OBJECT,
                Some("records: \"/data\""),
            ),
            (r#""numPages": "$.total""#, LIST, Some("style: page")),
            (r#""numPages": "$.total""#, OBJECT, None),
            (r#""results": "$.data[?(@.a)]""#, OBJECT, None),
        ] {
            let contract = imported(&extension(outputs), "", schema);
            assert_eq!(contract.contains("pagination"), records.is_some());
            assert!(contract.contains(records.unwrap_or_default()), "{contract}");
        }
    }
}
