//! The OpenAPI document of each kind of contract: a validator accepts it, its examples are true, and a client that
//! sends everything that it allows, and more, is answered as documented.

use std::process::Output;

use serde_json::{Value, json};
use weir_tests::{
    Gateway, House, answer_to, client::send, foreign, http, place, strangers::STRANGERS, until,
    upstream::JsonServer,
};

use super::{ORDERS, passed};
use crate::{sample, upstreams::trusted};

/// The checks of Schemathesis for each answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,\
                      unsupported_method";

fn python(house: &House, words: &[&str]) -> Output {
    foreign::python("python-schemathesis")
        .args(words)
        .current_dir(house.path())
        .output()
        .expect("python starts")
}

/// Has the document checked by the validator of the specification's own Python project, and each operation asked by
/// Schemathesis. Returns the document, as bytes and as JSON.
async fn holds(
    house: &House,
    gateway: &Gateway,
    contract: &str,
    key: Option<&str>,
) -> (String, Value) {
    let url = format!("{}/rest/{contract}/openapi.json", gateway.base);
    let request = key
        .into_iter()
        .fold(http().get(&url), |request, key| request.bearer_auth(key));
    let text = send(request).await.text;
    house.write("openapi.json", &text);
    let script =
        "import json, openapi_spec_validator as v; v.validate(json.load(open('openapi.json')))";
    passed(&python(house, &["-c", script]));

    let run = [
        "-c",
        "from schemathesis.cli import schemathesis; schemathesis()",
        "run",
        url.as_str(),
    ];
    let bounds = [
        "--max-examples",
        "30",
        "--no-color",
        "--seed",
        "7",
        "--checks",
    ];
    let header = key.map(|key| format!("Authorization: Bearer {key}"));
    let output = match &header {
        // A document that requires a key is checked for that too.
        Some(header) => {
            let checks = format!("{CHECKS},ignored_auth");
            python(
                house,
                &[&run[..], &bounds[..], &[&checks, "--header", header]].concat(),
            )
        }
        None => python(house, &[&run[..], &bounds[..], &[CHECKS]].concat()),
    };
    passed(&output);
    let document = serde_json::from_str(&text).expect("JSON");
    (text, document)
}

fn paths(document: &Value) -> Vec<&str> {
    document["paths"]
        .as_object()
        .expect("paths")
        .keys()
        .map(String::as_str)
        .collect()
}

/// A HEAD request for a document or a page gets the head of the whole answer.
#[tokio::test]
async fn the_head_alone_can_be_asked_for() {
    let house = sample::house().config("[http]\nforms = true");
    let gateway = house.serve();
    for path in [
        "rest/airports/openapi.json",
        "rest/airports/",
        "forms/airports/",
        "forms/airports/lookup_airport",
    ] {
        let url = format!("{}/{path}", gateway.base);
        let head = answer_to(http().head(&url)).await;
        let whole = answer_to(http().get(&url)).await;
        assert_eq!(head.status(), 200, "{path}");
        for name in ["content-type", "content-length", "cache-control"] {
            assert_eq!(
                head.headers().get(name),
                whole.headers().get(name),
                "{path}: {name}"
            );
        }
        assert!(head.text().await.expect("text").is_empty(), "{path}");
    }
}

#[tokio::test]
async fn of_a_sheet() {
    let house = sample::house();
    let gateway = house.serve();
    let (text, document) = holds(&house, &gateway, "airports", None).await;
    let (code, printed, err) = house.run(&["tools", "openapi", "airports"]);
    assert_eq!((code, printed.trim_end()), (0, text.as_str()), "{err}");
    assert_eq!(
        (
            document.get("security"),
            document["components"].get("securitySchemes")
        ),
        (None, None),
        "no key is needed"
    );
}

/// Records with lists of records are written, to a foreign service.
#[tokio::test]
async fn of_a_service_that_is_written_to() {
    let service = JsonServer::start(&json!({ "orders": [] }), "id");
    let api = format!(
        "[connections.api]\nkind = \"http\"\nbase_url = \"{}\"\nwrite = true",
        service.base
    );
    let house = House::new().file("contracts/orders.yaml", ORDERS);
    let house = house
        .config(&api)
        .config("[plugins.rest.grants]\napi = \"write\"");
    let gateway = house.serve();
    let (_, document) = holds(&house, &gateway, "orders", None).await;
    assert_eq!(paths(&document), ["/create_order"]);
    let written = answer_to(http().get(format!("{}/orders", service.base))).await;
    let written: Vec<Value> = written.json().await.expect("JSON");
    assert!(written.len() > 1, "orders were placed: {written:?}");
}

/// The document that a key reads states that a key is needed, and lists only what that key opens.
#[tokio::test]
async fn of_a_plugins_functions_with_a_key() {
    let tools = ["deploy", "draw", "find", "names", "rename", "whoami"];
    let house = House::new().own_plugins(&[]).config(
        "[connections.db]\nkind = \"sqlite\"\npath = \"data/things.sqlite\"\nwrite = true\n\
         [plugins.weir-guest-tools.grants]\ndb = \"write\"",
    );
    house.write(
        "plugins/tools.wasm",
        std::fs::read(place::guest("tools-rust")).expect("a guest can be read"),
    );
    let database =
        rusqlite::Connection::open(house.path().join("data/things.sqlite")).expect("a database");
    let rows = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO things VALUES (1, 'one'), (2, 'two')";
    database.execute_batch(rows).expect("two things");
    let gateway = house.serve();
    // The others refuse, fail, wait or never answer, as they are made to.
    let shown = tools.iter().flat_map(|tool| ["--tool", tool]);
    let key = house.key(
        &["--agent", "ann"]
            .into_iter()
            .chain(shown)
            .collect::<Vec<_>>(),
    );
    let (_, document) = holds(&house, &gateway, "weir-guest-tools", Some(&key)).await;
    assert_eq!(
        paths(&document),
        tools.map(|tool| format!("/{tool}")),
        "what the key shows"
    );
    assert_eq!(
        document["components"]["securitySchemes"],
        json!({"key": {"type": "http", "scheme": "bearer"}})
    );
    assert_eq!(document["security"], json!([{"key": []}]));
}

#[tokio::test]
async fn of_another_server() {
    let house = House::new();
    let time = STRANGERS
        .iter()
        .find(|stranger| stranger.name == "time")
        .expect("a known server");
    let words = time.command(house.path());
    let house = house.config(&trusted("time", &words));
    let (gateway, client) = house.serve_client();
    until("its tools are listed", async || {
        client.list().await.0.len() == 2
    })
    .await;
    let (_, document) = holds(&house, &gateway, "time", None).await;
    assert_eq!(
        paths(&document),
        ["/time_convert_time", "/time_get_current_time"]
    );
}

/// A reader of the document, or a mock server made from it, finds one true example of each thing that is sent and answered.
#[test]
fn every_operation_has_examples_that_its_own_schemas_take() {
    let api = "[connections.api]\nkind = \"http\"\nbase_url = \"http://127.0.0.1:1\"\nwrite = true";
    let house = sample::house().file("contracts/orders.yaml", ORDERS);
    let house = house
        .config(api)
        .config("[plugins.rest.grants]\napi = \"write\"");
    let mut found = Vec::new();
    for contract in ["airports", "orders"] {
        let text = house.succeed(&["tools", "openapi", contract]);
        assert_eq!(
            house.run(&["tools", "openapi", contract]).1,
            text,
            "the same each time"
        );
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let check = |content: &Value, what: &str| {
            let example = content
                .get("example")
                .unwrap_or_else(|| panic!("{what} has no example: {content}"));
            let schema =
                json!({ "allOf": [content["schema"]], "components": document["components"] });
            let validator = jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)
                .expect("a schema");
            let wrong: Vec<String> = validator
                .iter_errors(example)
                .map(|error| error.to_string())
                .collect();
            assert!(wrong.is_empty(), "{what}: {example}: {wrong:?}");
            example.clone()
        };
        for (path, operations) in document["paths"].as_object().expect("paths") {
            let body = &operations["post"]["requestBody"]["content"]["application/json"];
            found.push((path.clone(), check(body, path)));
            for operation in operations.as_object().expect("operations").values() {
                check(
                    &operation["responses"]["200"]["content"]["application/json"],
                    path,
                );
            }
            let parameters = operations["get"]["parameters"]
                .as_array()
                .into_iter()
                .flatten();
            for parameter in parameters.filter(|parameter| parameter["required"] == true) {
                check(parameter, path);
            }
        }
    }
    let example = |path: &str| {
        &found
            .iter()
            .find(|(found, _)| found == path)
            .expect("a path")
            .1
    };
    assert_eq!(*example("/lookup_airport"), json!({ "iata": "AAA" }));
    assert_eq!(
        *example("/create_order"),
        json!({ "id": 1, "due": "2024-01-01", "lines": [{ "part": "text" }] })
    );
}
