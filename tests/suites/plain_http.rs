//! Tools by plain HTTP, and as pages for people.

mod access;
mod documents;
mod events;
mod statuses;

use std::process::Output;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use weir_tests::{Gateway, Modern, answer_to, client::send, foreign, http, upstream::JsonServer};

use crate::sample;

/// A gateway's tools as a client without MCP reaches them.
struct Rest {
    base: String,
    key: Option<String>,
}

impl Rest {
    fn of(gateway: &Gateway, key: Option<&str>) -> Self {
        let base = gateway.url().replace("/mcp", "/rest/airports");
        Self {
            base,
            key: key.map(ToOwned::to_owned),
        }
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = http().request(method, format!("{}/{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    async fn post(&self, tool: &str, arguments: Value) -> (u16, Value) {
        read(answer_to(self.request(Method::POST, tool).json(&arguments)).await).await
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        read(answer_to(self.request(Method::GET, path)).await).await
    }
}

async fn read(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let kind = response.headers()["content-type"]
        .to_str()
        .expect("text")
        .to_owned();
    assert_eq!(
        kind,
        if status == 200 {
            "application/json"
        } else {
            "application/problem+json"
        }
    );
    assert_eq!(response.headers()["cache-control"], "no-store");
    (status, response.json().await.expect("JSON"))
}

#[tokio::test]
async fn a_tool_answers_as_over_mcp_and_what_is_wrong_is_a_problem() {
    let house = sample::house();
    let gateway = house.serve();
    let (rest, mcp) = (Rest::of(&gateway, None), Modern::new(gateway.url()));
    let over_mcp = mcp
        .call("list_airports", json!({"country": "NO", "limit": 2}))
        .await;
    let posted = rest
        .post("list_airports", json!({"country": "NO", "limit": 2}))
        .await;
    // Each page has its own cursor.
    let records = |page: &Value| (page["records"].clone(), page["next"].is_string());
    assert_eq!(
        (posted.0, records(&posted.1)),
        (200, records(&over_mcp["structuredContent"]))
    );
    let got = rest.get("list_airports?country=NO&limit=2").await;
    assert_eq!((got.0, records(&got.1)), (200, records(&posted.1)));
    assert_eq!(
        rest.get("lookup_airport?iata=OSL").await.1["name"],
        "Oslo Gardermoen Airport"
    );

    // A call without the arguments of its query would be a different call.
    for (path, expected) in [
        ("list_airports?country=NO", 400),
        ("list_airports?from=here", 200),
    ] {
        let (status, answer) = rest.post(path, json!({"limit": 2})).await;
        assert_eq!(status, expected, "{path}: {answer}");
    }

    let (status, problem) = rest.post("lookup_airport", json!({"iata": "osl"})).await;
    let over_mcp = mcp.call("lookup_airport", json!({"iata": "osl"})).await;
    assert_eq!(
        (status, &problem["code"], &problem["status"]),
        (400, &json!("invalid_arguments"), &json!(400))
    );
    assert_eq!(problem["errors"], over_mcp["structuredContent"]["errors"]);
    assert_eq!(problem["detail"], over_mcp["content"][0]["text"]);
    assert!(
        problem["call_id"].is_string() && problem["type"] == "urn:weir:error:invalid_arguments",
        "{problem}"
    );
    for (path, wrong) in [
        ("list_airports?limit=two", "/limit"),
        ("list_airports?nothing=1", "/nothing"),
    ] {
        let (status, problem) = rest.get(path).await;
        assert_eq!(
            (status, &problem["errors"][0]["path"]),
            (400, &json!(wrong)),
            "{problem}"
        );
    }
    assert_eq!(rest.get("lookup_airport?iata=XXX").await.0, 404);
    let (status, twice) = rest.get("lookup_airport?iata=OSL&iata=ARN").await;
    assert_eq!(
        (status, &twice["errors"][0]["reason"]),
        (400, &json!("wrong_type")),
        "{twice}"
    );

    let refused = answer_to(rest.request(Method::GET, "create_airport?iata=AAA")).await;
    assert_eq!(
        (
            refused.status().as_u16(),
            &refused.headers()["allow"].to_str().unwrap()[..4]
        ),
        (405, "POST")
    );
    let created = rest
        .post(
            "create_airport",
            json!({"iata": "AAA", "name": "New", "country": "NO"}),
        )
        .await;
    assert_eq!(
        (created.0, &created.1["status"]),
        (200, &json!("created")),
        "{created:?}"
    );
    let again = rest
        .post(
            "create_airport",
            json!({"iata": "AAA", "name": "New", "country": "NO"}),
        )
        .await;
    assert_eq!(
        (again.0, &again.1["code"], &again.1["field"]),
        (409, &json!("conflict"), &json!("iata")),
        "{again:?}"
    );

    for (body, status) in [
        ("[]", 400),
        ("{", 400),
        ("", 400),
        ("{\"iata\":\"OSL\",\"iata\":\"ARN\"}", 400),
    ] {
        let request = rest
            .request(Method::POST, "lookup_airport")
            .header("content-type", "application/json");
        let answer = read(answer_to(request.body(body)).await).await;
        assert_eq!(answer.0, status, "{body}: {answer:?}");
    }
    let request = rest
        .request(Method::POST, "lookup_airport")
        .header("content-type", "text/plain");
    assert_eq!(read(answer_to(request.body("{}")).await).await.0, 415);
    for other in ["https://evil.example", "null"] {
        let request = rest
            .request(Method::POST, "lookup_airport")
            .header("origin", other)
            .json(&json!({"iata": "OSL"}));
        assert_eq!(read(answer_to(request).await).await.0, 403, "{other}");
    }
    let request = rest
        .request(Method::GET, "lookup_airport?iata=OSL")
        .header("sec-fetch-site", "cross-site");
    assert_eq!(read(answer_to(request).await).await.0, 403);
}

#[tokio::test]
async fn keys_hold_here_as_they_do_for_mcp_and_each_call_is_on_record() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&[
        "--agent",
        "ann",
        "--tool",
        "lookup_airport",
        "--tool-rate",
        "lookup_airport=3/hour",
    ]);
    let (stranger, ann) = (Rest::of(&gateway, None), Rest::of(&gateway, Some(&key)));
    let response = answer_to(stranger.request(Method::GET, "lookup_airport?iata=OSL")).await;
    assert!(response.headers().contains_key("www-authenticate"));
    assert_eq!(read(response).await.0, 401);

    let (status, hidden) = ann.post("list_airports", json!({})).await;
    let (_, unknown) = ann.post("list_airport_", json!({})).await;
    assert_eq!((status, &hidden["code"]), (404, &json!("unknown_tool")));
    let swapped = hidden.to_string().replace("list_airports", "list_airport_");
    assert_eq!(
        swapped,
        unknown.to_string(),
        "hidden and unknown cannot differ"
    );
    assert_eq!(ann.get("list_airports?limit=1").await, (status, hidden));

    let response = answer_to(ann.request(Method::GET, "lookup_airport?iata=OSL")).await;
    let receipt = response.headers()["weir-receipt"]
        .to_str()
        .expect("text")
        .to_owned();
    house.succeed(&["audit", "verify", &receipt]);
    assert_eq!(read(response).await.0, 200);
    let mcp = Modern::with_key(gateway.url(), &key);
    assert_eq!(
        mcp.call("lookup_airport", json!({"iata": "OSL"})).await["isError"],
        false
    );
    assert_eq!(ann.get("lookup_airport?iata=ARN").await.0, 200);
    let response = answer_to(ann.request(Method::GET, "lookup_airport?iata=OSL")).await;
    assert!(
        response.headers()["retry-after"]
            .to_str()
            .expect("text")
            .parse::<u32>()
            .expect("seconds")
            > 0
    );
    assert_eq!(read(response).await.0, 429, "one limit for both doors");
    let (_, calls, _) = house.run(&["audit", "query", "--json", "--tool", "lookup_airport"]);
    assert!(calls.contains(r#""transport":"rest""#), "{calls}");

    assert_eq!(
        ann.get("openapi.json").await.1["paths"]
            .as_object()
            .expect("paths")
            .keys()
            .collect::<Vec<_>>(),
        ["/lookup_airport"]
    );
    let keys = house.json(&["keys", "list"]);
    house.succeed(&["keys", "revoke", keys[0]["id"].as_str().expect("an id")]);
    assert_eq!(ann.get("lookup_airport?iata=OSL").await.0, 401);
}

#[tokio::test]
async fn plain_http_is_turned_off_by_one_key() {
    let house = sample::house().config("[http]\nrest = false");
    let gateway = house.serve();
    let answer = Rest::of(&gateway, None)
        .get("lookup_airport?iata=OSL")
        .await;
    assert_eq!((answer.0, &answer.1["code"]), (404, &json!("not_served")));
    Modern::new(gateway.url())
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
}

/// The page is for people: it has every argument and its bounds, without a script, and no more than the key shows.
#[tokio::test]
async fn the_tools_are_a_page_too() {
    let house = sample::house();
    let gateway = house.serve();
    let url = format!("{}/", Rest::of(&gateway, None).base);
    let page = answer_to(http().get(&url)).await;
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    assert!(
        page.headers()["content-security-policy"]
            .to_str()
            .expect("text")
            .starts_with("default-src 'none'")
    );
    let text = page.text().await.expect("text");
    for expected in [
        "Look up an airport",
        "POST /rest/airports/create_airport",
        "IATA code.",
        "at most 9000",
        "curl -s",
        "openapi.json",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("<script"), "{text}");
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client");
    for (path, place) in [
        ("rest/airports?a=b", "/rest/airports/?a=b"),
        ("forms/airports", "/forms/airports/"),
    ] {
        let answer = answer_to(client.get(format!("{}/{path}", gateway.base))).await;
        assert_eq!(
            (
                answer.status().as_u16(),
                answer.headers()["location"].to_str().expect("text")
            ),
            (308, place)
        );
    }
    let key = house.key(&["--agent", "ann", "--tool", "lookup_airport"]);
    let asked = answer_to(http().get(&url)).await;
    assert!(
        asked.status() == 401
            && asked.headers()["www-authenticate"]
                .to_str()
                .expect("text")
                .starts_with("Basic ")
    );
    let seen = send(http().get(&url).basic_auth("anyone", Some(&key)))
        .await
        .text;
    assert!(
        seen.contains("lookup_airport")
            && !seen.contains("create_airport")
            && seen.contains("Bearer weir_"),
        "{seen}"
    );
    let nothing = url.replace("airports", "nothing");
    assert_eq!(
        answer_to(http().get(nothing).basic_auth("anyone", Some(&key)))
            .await
            .status(),
        404
    );
}

fn passed(output: &Output) {
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
}

const ORDERS: &str = r#"
contract: orders
title: Orders
collections:
  orders:
    adapter: rest
    settings:
      connection: api
      key: [id]
      fields: { id: integer, due: date, urgent: { type: boolean, nullable: true }, address: json, lines: json }
      get: { path: "/orders/{id}" }
      create: { path: /orders }
    write: true
tools:
  - tool: create_order
    title: Place an order
    description: Places an order.
    verb: create
    collection: orders
    fields:
      - { name: id, type: number, required: true, min: 1, help: "A number that no other order has." }
      - { name: due, type: date, required: true }
      - { name: urgent, type: checkbox }
      - { name: address, type: record, fields: [{ name: street, type: text, required: true }, { name: zip, type: text, pattern: "^[0-9]{4}$" }] }
      - name: lines
        type: list
        min_items: 1
        required: true
        of:
          type: record
          fields:
            - { name: part, type: text, required: true, min_length: 2 }
            - { name: count, type: number, min: 1, max: 99 }
"#;

/// A person uses a browser: what is missing or not allowed is shown at its control, what is found is a table, records
/// and lists of records have their own controls, and nothing is loaded from elsewhere.
#[tokio::test]
async fn forms_are_filled_in_with_a_browser() {
    let service = JsonServer::start(&json!({ "orders": [] }), "id");
    let api = format!(
        "[connections.api]\nkind = \"http\"\nbase_url = \"{}\"\nwrite = true",
        service.base
    );
    let house = sample::house().file("contracts/orders.yaml", ORDERS);
    let house = house
        .config(&api)
        .config("[plugins.rest.grants]\napi = \"write\"\n[http]\nforms = true");
    let gateway = house.serve();
    let forms = gateway.url().replace("/mcp", "/forms/");
    let key = house.key(&["--agent", "ann"]);
    let page = http().get(format!("{forms}airports/lookup_airport"));
    let unknown = answer_to(page.try_clone().expect("a request")).await;
    assert_eq!(unknown.status(), 401);
    assert!(
        unknown.headers()["www-authenticate"]
            .to_str()
            .expect("text")
            .starts_with("Basic ")
    );
    let page = answer_to(page.basic_auth("anyone", Some(&key))).await;
    let policy = page.headers()["content-security-policy"]
        .to_str()
        .expect("text")
        .to_owned();
    assert!(
        page.status() == 200 && policy.starts_with("default-src 'none'"),
        "{policy}"
    );
    let hidden = http()
        .get(format!("{forms}airports/nothing"))
        .basic_auth("anyone", Some(&key));
    assert_eq!(read(answer_to(hidden).await).await.0, 404);

    let screens =
        std::env::var_os("WEIR_SCREENSHOTS").map_or_else(|| house.path().to_owned(), Into::into);
    let mut browser = foreign::node_script_in("servers", "forms.mjs");
    browser.arg(&forms).arg(screens).arg(&key);
    let output = browser.output().expect("node starts");
    passed(&output);
    let seen: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        seen["violations"],
        json!([]),
        "the page keeps its own policy: {seen}"
    );
    assert_eq!(
        seen["inaccessible"],
        json!([]),
        "no one is kept out: {seen}"
    );
    assert_eq!(
        seen["tools"],
        json!(["create_airport", "list_airports", "Look up an airport"]),
        "{seen}"
    );
    assert_eq!(
        (seen["missing"].as_array().map(Vec::len), &seen["focused"]),
        (Some(1), &json!("input/iata")),
        "{seen}"
    );
    assert_eq!(seen["pattern"], 1, "{seen}");
    assert_eq!(
        seen["refused"],
        json!(["must match ^[A-Z]{3}$. Example: \"AAA\""]),
        "the gateway's own words: {seen}"
    );
    assert!(
        seen["notFound"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{seen}"
    );
    assert!(
        seen["found"]
            .as_str()
            .is_some_and(|text| text.contains("Oslo Gardermoen")),
        "{seen}"
    );
    assert_eq!(
        (&seen["rows"], seen["nested"].as_array().map(Vec::len)),
        (&json!(2), Some(1)),
        "{seen}"
    );
    assert_eq!(
        (&seen["broken"], &seen["wide"]),
        (&json!([]), &json!(false)),
        "{seen}"
    );
    assert!(
        seen["created"]
            .as_str()
            .is_some_and(|text| text.contains("gauge") && text.contains("Weir Lane")),
        "{seen}"
    );
}
