//! Requests that are wrong: what is at fault is named.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use weir_tests::{Admin, Postgres, answer_to, http, within};

use super::serve_sample;
use crate::sample;

#[tokio::test]
async fn a_number_in_a_path_is_refused_by_its_name() {
    let (_house, _gateway, admin) = serve_sample();
    for (method, path, body, name) in [
        (
            "PUT",
            "/v1/versions/api/x",
            json!({"sunset": null}),
            "major",
        ),
        (
            "PUT",
            "/v1/versions/api/4294967296",
            json!({"sunset": null}),
            "major",
        ),
        ("GET", "/v1/audit/chains/a/-1", Value::Null, "segment"),
        (
            "DELETE",
            "/v1/upstreams/a/accounts/one",
            Value::Null,
            "number",
        ),
    ] {
        let (status, refused) = admin.ask(method, path, body.to_string()).await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        let begin = format!("`{name}` in the path must be a whole number");
        assert!(
            status == 400 && detail.starts_with(&begin),
            "{method} {path}: {status} {refused}"
        );
    }
}

/// A filter whose name is misspelt would find everything.
#[tokio::test]
async fn a_parameter_that_a_route_does_not_have_is_refused() {
    let house = sample::house();
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let none = "this route has none in its query";
    for (method, path, detail) in [
        ("GET", "/v1/keys?agent=ann", none),
        ("GET", "/v1/contracts?contarct=x", none),
        ("GET", "/v1/contracts/airports?version=1", none),
        ("GET", "/v1/contracts/preview?version=1", none),
        ("GET", "/v1/upstreams/look?url=x", none),
        ("DELETE", "/v1/plugins/reload?force", none),
        ("POST", "/v1/contracts?dry_run=true", none),
        (
            "GET",
            "/v1/drafts?contarct=x",
            "this route has `contract`, `status`, `before`",
        ),
        (
            "GET",
            "/v1/tools?q=a&limit=5",
            "this route has `agent`, `q`, `cursor`",
        ),
        ("GET", "/v1/audit?agnet=ann", "`since`, `until`, `kind`"),
        (
            "GET",
            "/v1/audit/export?limit=5",
            "`since`, `until`, `kind`",
        ),
    ] {
        let (status, refused) = admin.ask(method, path, "{}").await;
        let shown = refused["detail"].as_str().unwrap_or_default();
        assert!(
            status == 400 && shown.starts_with("there is no parameter `") && shown.contains(detail),
            "{method} {path}: {status} {refused}"
        );
    }
    let (status, drafts) = admin.ask("GET", "/v1/drafts?contract=airports&", "").await;
    assert_eq!((status, drafts), (200, json!([])));
}

/// A number beyond its bounds is refused by their names, however far beyond it is.
#[tokio::test]
async fn a_number_in_a_query_is_refused_with_its_bounds() {
    let house = sample::house();
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    for (path, bounds) in [
        ("/v1/audit?limit=", "`limit` must be 1 to 1000"),
        ("/v1/stats?window=", "`window` must be 1 to 900 seconds"),
    ] {
        for number in ["0", "-1", "1001", "99999999999999999999"] {
            let (status, refused) = admin.ask("GET", &format!("{path}{number}"), "").await;
            assert_eq!((status, &refused["detail"]), (422, &json!(bounds)));
        }
        for word in ["", "x", "1.5"] {
            let (status, refused) = admin.ask("GET", &format!("{path}{word}"), "").await;
            let detail = refused["detail"].as_str().unwrap_or_default();
            assert!(
                status == 400 && detail.contains("a whole number is expected"),
                "{path}{word}: {refused}"
            );
        }
    }
    let never = "/v1/audit?since=2026-11-02&until=2026-11-02";
    let (status, refused) = admin.ask("GET", never, "").await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(
        status == 422 && detail.starts_with("`until` must be later than `since`"),
        "{refused}"
    );
}

/// An editor may ask for as many changes as people can decide about, and no more.
#[tokio::test]
async fn drafts_of_one_editor_that_wait_are_bounded() {
    let (_house, _gateway, admin) = serve_sample();
    let submit = async |editor: &Admin, number: usize| {
        let source = json!({
            "contract": format!("c{number}"),
            "collections": { "airports": {
                "adapter": "sheet", "settings": { "connection": "data", "path": "airports.csv" }, "key": ["iata"],
            } },
            "tools": [{
                "tool": format!("count_{number}"), "description": "Counts them.", "verb": "count", "collection": "airports",
                "fields": [],
            }],
        })
        .to_string();
        let body = json!({"source": source, "hold": true}).to_string();
        editor.ask("POST", "/v1/contracts", body).await
    };
    let mut editors = Vec::new();
    for name in ["eve", "ann"] {
        let body = json!({"name": name, "role": "editor"}).to_string();
        let (_, made) = admin.ask("POST", "/v1/admins", body).await;
        let key = made["key"].as_str().expect("a key").to_owned();
        let url = admin.url.clone();
        editors.push(Admin { url, key });
    }
    let [eve, ann] = &editors[..] else {
        unreachable!("there are two")
    };
    let mut first = Value::Null;
    for number in 0..200 {
        let (status, held) = submit(eve, number).await;
        assert_eq!(status, 202, "{held}");
        if number == 0 {
            first = held;
        }
    }
    let (status, refused) = submit(eve, 200).await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(
        status == 409 && detail.contains("publish or discard some of them first"),
        "{status} {refused}"
    );
    assert_eq!(submit(ann, 200).await.0, 202, "another editor has room");
    let id = first["draft"].as_str().expect("a draft");
    let path = format!("/v1/drafts/{id}/discard");
    assert_eq!(eve.ask("POST", &path, "{}").await.0, 204);
    assert_eq!(submit(eve, 201).await.0, 202);
}

/// The key of a request is visible ASCII, as at the other doors, whatever the role of its sender.
#[tokio::test]
async fn an_idempotency_key_that_is_none_is_refused() {
    let (_house, _gateway, admin) = serve_sample();
    let body = json!({"name": "vic", "role": "viewer"}).to_string();
    let (_, viewer) = admin.ask("POST", "/v1/admins", body).await;
    let viewer = viewer["key"].as_str().expect("a key");
    let long = "k".repeat(129);
    let wrong: [&[&str]; 7] = [
        &[""],
        &["a b"],
        &["a\tb"],
        &["\u{e9}"],
        &[long.as_str()],
        &["a", "b"],
        &["a", "a"],
    ];
    for (keys, bearer) in wrong
        .into_iter()
        .flat_map(|keys| [(keys, &*admin.key), (keys, viewer)])
    {
        let mut request = http()
            .post(format!("{}/v1/contracts/airports/retire", admin.url))
            .bearer_auth(bearer);
        for key in keys {
            request = request.header("idempotency-key", key.as_bytes());
        }
        let response = answer_to(request).await;
        let (status, text) = (response.status(), response.text().await.expect("text"));
        assert!(
            status == 400 && text.contains("an Idempotency-Key is 1 to 128 visible ASCII"),
            "{keys:?}: {status} {text}"
        );
    }
    let retire = admin.request("POST", "/v1/contracts/airports/retire");
    let key = format!("\"!~{}\"", "k".repeat(124));
    let response = answer_to(retire.header("idempotency-key", key)).await;
    assert_eq!(response.status(), 202);
}

#[tokio::test]
async fn a_wrong_limit_of_a_key_is_named() {
    let (_house, _gateway, admin) = serve_sample();
    let long = "t".repeat(200);
    for (limits, places) in [
        (json!({"rate": "often"}), ["limits.rate", "often"]),
        (
            json!({"rate": "60/min", "tools": {"list_airports": "10/s", "lookup_airport": "often"}}),
            ["lookup_airport", "often"],
        ),
        (json!({"tools": {&long: "x"}}), ["tool `tttt", "t…`"]),
        (json!({"quota_day": 0}), ["limits.quota_day", "quota of 0"]),
        (
            json!({"quota_day": 1, "quota_month": 0}),
            ["limits.quota_month", "quota of 0"],
        ),
    ] {
        let body = json!({"agent": "bot", "limits": limits}).to_string();
        let (status, refused) = admin.ask("POST", "/v1/keys", body).await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(
            status == 422 && places.iter().all(|part| detail.contains(part)),
            "{limits}: {status} {refused}"
        );
    }
}

/// Serde reads a struct from a list as well; no description of a body has one.
#[tokio::test]
async fn a_body_that_is_no_object_is_refused() {
    let (_house, _gateway, admin) = serve_sample();
    for (method, path, body) in [
        (
            "POST",
            "/v1/keys",
            json!(["bot", null, null, null, {}, null]),
        ),
        (
            "POST",
            "/v1/keys",
            json!({"agent": "bot", "access": [["airports"]]}),
        ),
        (
            "POST",
            "/v1/keys",
            json!({"agent": "bot", "limits": ["5/min"]}),
        ),
        ("POST", "/v1/admins", json!(["vic", "viewer", true])),
        ("PUT", "/v1/pins/bot/airports", json!([1])),
        ("POST", "/v1/policy/test", json!([[]])),
        ("POST", "/v1/audit/verify", json!([[]])),
        ("POST", "/v1/audit/verify", Value::Null),
        ("POST", "/v1/audit/verify", json!("receipts")),
    ] {
        let (status, refused) = admin.ask(method, path, body.to_string()).await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(
            status == 422 && detail.contains("expected an object"),
            "{method} {path} {body}: {status} {refused}"
        );
    }
    let (_, admins) = admin.ask("GET", "/v1/admins", "").await;
    assert_eq!(admins.as_array().map(Vec::len), Some(1), "{admins}");
}

/// What a refusal repeats of a request is shortened.
#[tokio::test]
async fn a_refusal_is_short_however_long_the_request_was() {
    let (_house, _gateway, admin) = serve_sample();
    let long = "x".repeat(5000);
    for (method, path, body, named) in [
        (
            "POST",
            "/v1/keys".to_owned(),
            json!({"agent": "bot", "expires_in_s": &long}),
            "expires_in_s",
        ),
        (
            "POST",
            "/v1/admins".to_owned(),
            json!({"name": "vic", "role": &long}),
            "role",
        ),
        (
            "GET",
            format!("/v1/drafts?status={long}"),
            Value::Null,
            "status",
        ),
        (
            "GET",
            format!("/v1/contracts/{long}/versions/1.0.0"),
            Value::Null,
            "no version `xxx",
        ),
    ] {
        let (status, refused) = admin.ask(method, &path, body.to_string()).await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(
            [400, 404, 422].contains(&status)
                && detail.contains(named)
                && detail.chars().count() < 500,
            "{method} {path}: {status} {refused}"
        );
    }
}

/// Each path with a name answers as described where the name is not UTF-8.
#[tokio::test]
async fn a_name_that_is_no_text_is_refused_as_described() {
    let (_house, _gateway, admin) = serve_sample();
    let (_, document) = admin.ask("GET", "/openapi.json", "").await;
    let paths = document["paths"].as_object().expect("paths");
    let mut asked = 0;
    for (path, item) in paths.iter().filter(|(path, _)| path.contains('{')) {
        let parts = path.split('/').map(|part| match part.starts_with('{') {
            true => "%FF",
            false => part,
        });
        let place = parts.collect::<Vec<_>>().join("/");
        for (method, described) in item.as_object().expect("operations") {
            let (status, refused) = admin.ask(&method.to_uppercase(), &place, "{}").await;
            assert!(
                status == 400 && described["responses"]["400"].is_object(),
                "{method} {path}: {status} {refused}"
            );
            asked += 1;
        }
    }
    assert!(asked > 20, "{asked}");
}

#[tokio::test]
async fn lines_beyond_the_end_of_a_segment_are_none() {
    let (_house, _gateway, admin) = serve_sample();
    let (_, chains) = admin.ask("GET", "/v1/audit/chains", "").await;
    let chain = chains[0]["chain"].as_str().expect("a chain");
    for from in [u64::from(u32::MAX), 1 << 63, u64::MAX] {
        let path = format!("/v1/audit/chains/{chain}/1?from={from}");
        let lines = answer_to(admin.request("GET", &path)).await;
        assert_eq!(lines.status(), 200, "{from}");
        assert_eq!(lines.text().await.expect("text"), "");
    }
}

#[tokio::test]
async fn an_unknown_draft_to_go_on_from_is_named() {
    let (_house, _gateway, admin) = serve_sample();
    let (status, refused) = admin.ask("GET", "/v1/drafts?before=d_none", "").await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(
        status == 404 && detail.contains("there is no draft `d_none`"),
        "{status} {refused}"
    );
}

/// Arguments of a trial are read as an agent's are, and nothing that JSON can express is lost on the way.
#[tokio::test]
async fn a_trial_is_as_strict_about_arguments_as_a_call_of_an_agent() {
    let (_house, gateway, admin) = serve_sample();
    let ask = async |arguments: &str, end: &str| {
        let trial = format!(r#"{{"tool": "lookup_airport", "arguments": {arguments}{end}}}"#);
        admin.ask("POST", "/v1/calls", trial).await
    };
    for (arguments, reason) in [
        (r#"{"iata": "OSL", "iata": "ARN"}"#, "is there twice"),
        (r#"{"iata": "\ud800"}"#, "are not valid JSON"),
        (r#"{"iata": 1e999}"#, "/iata"),
    ] {
        let call = format!(
            r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {{"name": "lookup_airport", "arguments": {arguments}}}}}"#
        );
        let called = http()
            .post(gateway.url())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .body(call);
        let called = answer_to(called).await.text().await;
        let called = called.expect("text");
        assert!(called.contains(reason), "an agent's: {called}");
        for end in ["", r#", "dry_run": true"#] {
            let (status, tried) = ask(arguments, end).await;
            let text = tried["text"].as_str().unwrap_or_default();
            assert!(
                status == 200 && tried["is_error"] == true && text.contains(reason),
                "{arguments}{end}: {status} {tried}"
            );
        }
    }
    for no_object in ["[]", "null", "5", r#""iata""#] {
        let (status, refused) = ask(no_object, "").await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(
            status == 422 && detail.contains("`arguments` must be an object"),
            "{no_object}: {status} {refused}"
        );
    }
    let (status, tried) = ask(" {\n \"iata\": \"OSL\" } ", "").await;
    assert_eq!((status, &tried["is_error"]), (200, &json!(false)));
}

/// Another try would not help, so that it is not "unavailable".
#[tokio::test]
async fn a_look_with_headers_that_are_none_is_the_fault_of_the_request() {
    let (_house, _gateway, admin) = serve_sample();
    let url = "http://127.0.0.1:9/mcp";
    for (look, named) in [
        (
            json!({"url": url, "headers": {"a\r\nb": "x"}}),
            "is not the name of a header",
        ),
        (
            json!({"url": url, "headers": {"": "x"}}),
            "is not the name of a header",
        ),
        (
            json!({"url": url, "headers": {"x-one": "a\r\nx-two: b"}}),
            "the value of `x-one`",
        ),
        (
            json!({"url": "http://ann:secret@127.0.0.1:9/mcp"}),
            "`url` may hold no credentials",
        ),
    ] {
        let mut body = look.clone();
        body["name"] = json!("other");
        let (status, refused) = admin
            .ask("POST", "/v1/upstreams/look", body.to_string())
            .await;
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(
            status == 422 && detail.contains(named) && !detail.contains("secret"),
            "{look}: {status} {refused}"
        );
    }
}

/// Someone who may not submit anything makes the gateway keep nothing of what they send.
#[tokio::test]
async fn a_large_body_is_not_read_for_who_may_not_send_it() {
    let (_house, _gateway, admin) = serve_sample();
    let make = async |role: &str| {
        let body = json!({"name": role, "role": role}).to_string();
        let (_, made) = admin.ask("POST", "/v1/admins", body).await;
        made["key"].as_str().expect("a key").to_owned()
    };
    let (approver, viewer) = (make("approver").await, make("viewer").await);
    let address = admin.url.strip_prefix("http://").expect("an address");
    let once = "idempotency-key: k1\r\n";
    for (path, key, more, wanted) in [
        ("/v1/contracts", &approver, "", "403"),
        ("/v1/contracts", &viewer, "", "403"),
        ("/v1/contracts", &viewer, once, "403"),
        ("/v1/contracts", &approver, once, "413"),
        ("/v1/contracts/preview", &viewer, "", "403"),
        ("/v1/contracts/airports/impact", &approver, "", "403"),
    ] {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: 15000000\r\n{more}\r\n{{\"source\": \""
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = [0; 12];
        let read = stream.read_exact(&mut answer);
        let read = tokio::time::timeout(Duration::from_secs(15), read).await;
        read.unwrap_or_else(|_| panic!("{path}: it waits for the body"))
            .expect("an answer");
        assert_eq!(
            String::from_utf8_lossy(&answer),
            format!("HTTP/1.1 {wanted}"),
            "{path} {more}"
        );
    }
}

/// The memory of large bodies is returned to the system once they have ended, even if their clients have gone.
#[tokio::test]
async fn the_memory_of_large_bodies_is_given_back() {
    const BODY_BYTES: usize = 20 << 20;
    let (_house, gateway, admin) = serve_sample();
    assert_eq!(admin.ask("GET", "/v1/contracts", "").await.0, 200);
    let before = gateway.own_memory_kb();
    let address = admin.url.strip_prefix("http://").expect("an address");
    let mut open = Vec::new();
    for _ in 0..6 {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let head = format!(
            "POST /v1/contracts HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            admin.key,
            BODY_BYTES + 1
        );
        stream.write_all(head.as_bytes()).await.expect("sent");
        let part = vec![b'x'; BODY_BYTES];
        stream.write_all(&part).await.expect("it is read");
        open.push(stream);
    }
    let grown = |kb: u64| gateway.own_memory_kb() > before + kb;
    let limit = Duration::from_secs(30);
    within(limit, "the bodies are there", async || grown(60 << 10)).await;
    drop(open);
    within(limit, "they are gone", async || !grown(30 << 10)).await;
}

/// A plugin may have the name of a route, as contracts and servers may.
#[tokio::test]
async fn a_plugin_may_be_called_reload() {
    let house = sample::house().own_plugins(&["sheet"]);
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let path = "/v1/plugins/reload";
    let (status, refused) = admin.ask("PUT", path, "no component").await;
    assert!(
        status == 422 && refused.to_string().contains("not a WebAssembly component"),
        "{status} {refused}"
    );
    let (status, refused) = admin.ask("DELETE", path, "").await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(
        status == 404 && detail.contains("`reload`"),
        "{status} {refused}"
    );
    let large = vec![b'x'; 3 << 20];
    assert_eq!(admin.ask("PUT", path, large).await.0, 422);
    assert_eq!(admin.ask("POST", path, "").await.0, 200);
    assert_eq!(admin.ask("GET", path, "").await.0, 405);
}

/// PostgreSQL has no text with U+0000: what it cannot be asked is the fault of the request, and the state can be used.
#[tokio::test]
async fn a_name_that_no_database_has_is_refused_on_either_engine() {
    let server = Postgres::start();
    let shared = format!(
        "[state]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"",
        server.url()
    );
    for house in [sample::house(), sample::house().config(&shared)] {
        let _gateway = house.serve();
        let admin = Admin::of(&house);
        for (method, path, body) in [
            ("GET", "/v1/drafts?contract=%00", ""),
            ("GET", "/v1/drafts/%00", ""),
            ("GET", "/v1/contracts/%00", ""),
            ("GET", "/v1/contracts/airports/diff?from=%00&to=%00", ""),
            ("DELETE", "/v1/keys/%00", ""),
            ("DELETE", "/v1/sessions/%00", ""),
            ("DELETE", "/v1/pins/%00/airports", ""),
            ("GET", "/v1/approvals/%00", ""),
            ("POST", "/v1/drafts/%00/publish", r#"{"fingerprint": "x"}"#),
            ("GET", "/v1/upstreams/%00/accounts", ""),
        ] {
            let (status, refused) = admin.ask(method, path, body).await;
            let detail = refused["detail"].as_str().unwrap_or_default();
            assert!(
                status == 400 && detail.contains("U+0000"),
                "{method} {path}: {status} {refused}"
            );
        }
    }
}

/// While the database with the state is away no key is known, whatever the route; each describes that answer.
#[tokio::test]
async fn a_state_that_is_away_is_described_for_each_route() {
    let mut server = Postgres::start();
    let shared = format!(
        "[state]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"",
        server.url()
    );
    let house = sample::house().config(&shared);
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let (_, document) = admin.ask("GET", "/openapi.json", "").await;
    server.stop();
    let paths = document["paths"].as_object().expect("paths");
    let closed = paths.iter().filter_map(|(path, item)| {
        let get = item.get("get")?;
        let is_plain = !path.contains('{') && get.get("security").is_none();
        is_plain.then_some((path, &get["responses"]))
    });
    let asked = closed.map(async |(path, described)| {
        let (status, refused) = admin.ask("GET", path, "").await;
        assert!(
            status == 503 && described["503"].is_object(),
            "{path}: {status} {refused}"
        );
    });
    let asked = futures::future::join_all(asked).await;
    assert!(asked.len() > 20, "{}", asked.len());
}
