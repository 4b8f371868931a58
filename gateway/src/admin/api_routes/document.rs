//! The OpenAPI document, made from the routes. The served document is the file, which this rewrites.

use std::{collections::BTreeSet, fs, path::Path};

use axum::http::Method;
use serde_json::{Value, json};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        RefOr,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;

use crate::{
    admin::{api_routes::query::param_names, nodes, retries, routes},
    control::operations::stats::StatsEvent,
    telemetry::events::EndedCall,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Weir admin API",
        description = "Contracts behind their gate, keys, plugins and the audit trail of one gateway. Every request \
                       carries `Authorization: Bearer weiradm_…`, or `weirses_…` of a session. The roles are auditor, viewer, editor and operator, each with the \
                       rights of those before it, and approver, which only decides about writes that wait. A query with a parameter that its \
                       route does not have is refused (400). Errors are RFC 9457 problem documents."
    ),
    modifiers(&BearerScheme),
    // The data of events, which do not occur in the body of any route.
    components(schemas(EndedCall, StatsEvent)),
    security(("admin_key" = []))
)]
struct AdminDocument;

struct BearerScheme;

impl Modify for BearerScheme {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("weiradm_<id>_<secret>")
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("admin_key", SecurityScheme::Http(scheme));
    }
}

/// Returns the document of the routes.
fn make_document() -> Value {
    let mut router = OpenApiRouter::with_openapi(AdminDocument::openapi());
    for described in routes().described {
        router = router.routes(described);
    }
    let mut document = router.into_openapi();
    name_paths(&mut document);
    name_problems(&mut document);
    name_operations(&mut document);
    let mut document = serde_json::to_value(document).expect("plain data");
    describe_layers(&mut document);
    document
}

/// Adds what no handler describes, because it happens earlier: a body that arrives too late (408) or compressed (415), a query
/// with an unknown parameter (400), a state that cannot identify the caller (503), and a POST with an `Idempotency-Key`, which
/// may belong to a request that has not ended (409). It also adds what happens afterwards: the answer to a change lists which
/// nodes have applied it (200).
fn describe_layers(document: &mut Value) {
    let problem = json!({
        "description": "",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } }
    });
    let header = json!({
        "name": "Idempotency-Key",
        "in": "header",
        "description": "sent again with it within a day, the request gets its first answer",
        "required": false,
        "schema": { "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$" }
    });
    let paths = document["paths"].as_object_mut().expect("an object");
    for (path, item) in paths {
        for (method, operation) in item.as_object_mut().expect("an object") {
            let mut statuses = vec!["400"];
            // The caller is looked up in the state, which may be unavailable.
            if operation.get("security").is_none() {
                statuses.push("503");
            }
            if operation.get("requestBody").is_some() {
                statuses.extend(["408", "415"]);
            }
            if method == "post" && !retries::SECRET.contains(&path.as_str()) {
                statuses.push("409");
                let operation = operation.as_object_mut().expect("an object");
                let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
                let parameters = parameters.as_array_mut().expect("a list");
                parameters.push(header.clone());
            }
            let responses = operation["responses"].as_object_mut().expect("an object");
            for status in statuses {
                responses.entry(status).or_insert_with(|| problem.clone());
            }
            let sent: Method = method.to_uppercase().parse().expect("a method");
            if responses.contains_key("204") && nodes::is_change(&sent, path) {
                responses.entry("200").or_insert_with(describe_reach);
            }
        }
    }
}

/// Describes the answer to a change without any other body, if several gateways share the state.
fn describe_reach() -> Value {
    let node = json!({
        "type": "object",
        "required": ["id", "name", "stops_ms"],
        "properties": {
            "id": { "type": "string" },
            "name": { "type": "string" },
            "stops_ms": { "type": "integer", "format": "int64" },
        },
    });
    let reach = json!({
        "type": "object",
        "required": ["everywhere"],
        "properties": {
            "everywhere": { "type": "boolean", "description": "whether all nodes have taken the change over" },
            "missing": { "type": "array", "items": node, "description": "those that may still serve without it" },
        },
    });
    json!({
        "description": "in place of 204, where several gateways share the state",
        "content": { "application/json": { "schema": reach } },
    })
}

/// Writes a parameter for several segments of a path like any other: the document makes no such difference.
fn name_paths(document: &mut utoipa::openapi::OpenApi) {
    let paths = std::mem::take(&mut document.paths.paths).into_iter();
    document.paths.paths = paths
        .map(|(path, item)| (path.replace("{*", "{"), item))
        .collect();
}

/// Gives each operation a unique id, such as `get_contracts_name`: handlers in several files share their names.
fn name_operations(document: &mut utoipa::openapi::OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let words = path.trim_start_matches("/v1/").replace('/', "_");
        let words = words.replace(['{', '}'], "");
        let operations = [
            ("get", &mut item.get),
            ("put", &mut item.put),
            ("post", &mut item.post),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations {
            if let Some(operation) = operation {
                operation.operation_id = Some(format!("{method}_{words}"));
            }
        }
    }
}

/// Gives refusals the content type of problem documents, whichever route they come from.
fn name_problems(document: &mut utoipa::openapi::OpenApi) {
    for item in document.paths.paths.values_mut() {
        let operations = [
            &mut item.get,
            &mut item.put,
            &mut item.post,
            &mut item.delete,
        ];
        let responses = operations
            .into_iter()
            .flatten()
            .flat_map(|operation| &mut operation.responses.responses);
        for (_, response) in responses.filter(|(status, _)| status.starts_with(['4', '5'])) {
            let RefOr::T(response) = response else {
                continue;
            };
            if let Some(content) = response.content.shift_remove("application/json") {
                response
                    .content
                    .insert("application/problem+json".to_owned(), content);
            }
        }
    }
}

/// `WEIR_BLESS=1` writes the file.
#[test]
fn the_file_is_the_document_of_the_routes() {
    let made = make_document();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../console/openapi.json");
    if std::env::var_os("WEIR_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&made).expect("plain data") + "\n";
        fs::write(&file, text).expect("the repository can be written");
        return;
    }
    let kept = fs::read_to_string(&file).expect("a file of the repository");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert!(
        kept == made,
        "console/openapi.json is not the document of the routes; WEIR_BLESS=1 writes it"
    );
}

/// Returns the routes of the document with their roles, in the form in which rows of the page begin: `` `GET /v1/keys` | viewer
/// ``.
fn described_routes() -> BTreeSet<String> {
    let document = make_document();
    let paths = document["paths"].as_object().expect("an object");
    let mut routes = BTreeSet::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().expect("an object") {
            let words = ["summary", "description"].map(|key| operation[key].as_str().unwrap_or(""));
            let words = words.join(" ").replace('\n', " ");
            let role = words.split_once("Role: ").map_or("none", |(_, role)| role);
            let role = role.split_once('.').map_or(role, |(role, _)| role);
            let method = method.to_uppercase();
            routes.insert(format!("`{method} {path}` | {role}"));
        }
    }
    routes
}

/// A parameter that is described but not listed would be refused; one that is listed but not described would be ignored.
#[test]
fn every_described_parameter_is_one_that_its_route_takes() {
    let document = make_document();
    for (path, item) in document["paths"].as_object().expect("an object") {
        for (method, operation) in item.as_object().expect("an object") {
            let parameters = operation["parameters"].as_array();
            let described: BTreeSet<&str> = parameters
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "query")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            let taken = BTreeSet::from_iter(param_names(path).iter().copied());
            assert_eq!(described, taken, "{method} {path}");
        }
    }
}

/// The routes and roles in docs/admin.md are those that are served.
#[test]
fn the_page_lists_every_route_with_its_role() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/admin.md");
    let page = fs::read_to_string(&file).expect("a file of the repository");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<String> = rows
        .filter(|row| row.contains(" /v1/"))
        .filter_map(|row| {
            let mut cells = row.split(" | ");
            Some(format!("`{} | {}", cells.next()?, cells.next()?))
        })
        .collect();
    let described = described_routes();
    let missing: Vec<&String> = described.difference(&listed).collect();
    let unknown: Vec<&String> = listed.difference(&described).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "docs/admin.md: {missing:?} are missing, {unknown:?} are not served"
    );
}
