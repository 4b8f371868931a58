//! The audit trail over the admin API: who reads it, and how one finds a record and proves it.

use std::collections::BTreeSet;

use axum::{
    Router,
    http::{StatusCode, Uri},
};
use serde_json::{Value, json};
use weir_tests::{Admin, House, Modern, answer_to, gateway::read_output, http, until};

use crate::sample;

async fn records(admin: &Admin, query: &str) -> Vec<Value> {
    let path = format!("/v1/audit?{query}");
    let records = admin.succeed("GET", &path, "").await;
    records.as_array().expect("records").clone()
}

#[tokio::test]
async fn records_are_found_in_pages_by_words_and_kinds() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let client = Modern::new(gateway.url());
    for iata in ["OSL", "ARN", "KEF", "TRD", "BGO"] {
        client.call("lookup_airport", json!({"iata": iata})).await;
    }
    house.key(&["--agent", "ann"]);

    let oldest_first = records(&admin, "kind=call").await;
    assert_eq!(oldest_first.len(), 5);
    let mut newest_first = records(&admin, "kind=call&order=desc").await;
    let mut paged = Vec::new();
    let mut before = String::new();
    loop {
        let page = records(&admin, &format!("kind=call&order=desc&limit=2{before}")).await;
        let Some(last) = page.last() else { break };
        let part = |name: &str| last[name].as_str().expect("a text").to_owned();
        before = format!("&before={},{}", part("time"), part("receipt"));
        paged.extend(page);
    }
    assert_eq!(paged, newest_first, "each record once");
    newest_first.reverse();
    assert_eq!(newest_first, oldest_first);

    let kinds: BTreeSet<String> = records(&admin, "kind=admin,call")
        .await
        .iter()
        .map(|record| record["kind"].as_str().expect("a kind").to_owned())
        .collect();
    assert_eq!(
        kinds,
        BTreeSet::from(["admin".to_owned(), "call".to_owned()])
    );
    let digest = oldest_first[2]["arguments_digest"]
        .as_str()
        .expect("a digest");
    let found = records(&admin, &format!("text={digest}")).await;
    assert_eq!(found, [oldest_first[2].clone()]);
    for wrong in [
        "kind=call,x",
        "before=now",
        "order=up",
        "limit=0",
        "since=yesterday",
        "until=tomorrow",
        "outcome=error",
    ] {
        let (status, refused) = admin.ask("GET", &format!("/v1/audit?{wrong}"), "").await;
        let (name, _) = wrong.split_once('=').expect("a parameter");
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(
            [400, 422].contains(&status) && detail.contains(name),
            "{wrong}: {refused}"
        );
    }
}

#[tokio::test]
async fn a_call_is_shown_with_receipts_that_verify() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let made = json!({"iata": "XYZ", "name": "New", "country": "NO"});
    Modern::new(gateway.url())
        .call("create_airport", made)
        .await;
    let call = records(&admin, "kind=call&limit=1").await.remove(0);
    let id = call["call_id"].as_str().expect("an id");

    let shown = admin.succeed("GET", &format!("/v1/audit/{id}"), "").await;
    let kinds: Vec<&Value> = shown["records"]
        .as_array()
        .expect("records")
        .iter()
        .map(|record| &record["kind"])
        .collect();
    assert_eq!(kinds, ["intent", "call"], "{shown}");
    assert_eq!(shown["records"][1], call);
    assert_eq!(
        admin.ask("GET", "/v1/audit/c_0000000000000000", "").await.0,
        404
    );

    let receipt = call["receipt"].as_str().expect("a receipt").to_owned();
    let verify = async |receipts: Value| {
        let body = json!({ "receipts": receipts }).to_string();
        admin.ask("POST", "/v1/audit/verify", body).await
    };
    let forged = format!("{}{}", &receipt[..receipt.len() - 8], "00000000");
    let (status, report) = verify(json!([receipt, forged])).await;
    assert_eq!(
        (status, &report["findings_count"]),
        (200, &json!(1)),
        "{report}"
    );
    let statuses: Vec<&Value> = report["receipts"]
        .as_array()
        .expect("receipts")
        .iter()
        .map(|check| &check["status"])
        .collect();
    assert_eq!(statuses, ["present", "replaced"], "{report}");
    assert_eq!(report["receipts"][0]["record"]["call_id"], id, "{report}");
    let (status, report) = verify(json!([])).await;
    assert_eq!(
        (status, &report["findings_count"]),
        (200, &json!(0)),
        "{report}"
    );
    assert_eq!(verify(json!(["no receipt"])).await.0, 422);
    assert_eq!(verify(json!(vec![receipt; 101])).await.0, 422);
}

#[tokio::test]
async fn an_auditor_reads_the_trail_and_nothing_else() {
    let house = sample::house();
    let gateway = house.serve();
    let operator = Admin::of(&house);
    Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    let key = house.succeed(&["admins", "add", "--name", "bea", "--role", "auditor"]);
    let auditor = Admin {
        key: key.trim().to_owned(),
        ..operator.clone()
    };
    let (_, who) = auditor.ask("GET", "/v1/session", "").await;
    assert_eq!(who["role"], "auditor", "{who}");
    assert_eq!(auditor.ask("POST", "/v1/session", "").await.0, 201);

    let exported = answer_to(auditor.request("GET", "/v1/audit/export")).await;
    assert_eq!(exported.headers()["content-type"], "application/jsonl");
    let exported = exported.text().await.expect("a whole answer");
    let printed = house.succeed(&["audit", "export"]);
    assert!(
        printed.starts_with(exported.trim_end()) && !exported.is_empty(),
        "{exported}"
    );
    let some = auditor.ask("GET", "/v1/audit/export?kind=call", "").await;
    assert_eq!(
        (some.0, &some.1["kind"]),
        (200, &json!("call")),
        "one line is JSON"
    );
    let id = some.1["call_id"].as_str().expect("a call has an id");
    for (call_id, kind) in [(id, json!("call")), ("c_other", Value::Null)] {
        let path = format!("/v1/audit/export?kind=call&text=lookup&call_id={call_id}");
        let (status, record) = auditor.ask("GET", &path, "").await;
        assert_eq!((status, &record["kind"]), (200, &kind), "{record}");
    }

    // It may only use the routes of the trail, of refused callers and of its session.
    let is_open = |path: &str| path.starts_with("/v1/audit") || path == "/v1/identity/failures";
    let (_, document) = operator.ask("GET", "/openapi.json", "").await;
    for (path, item) in document["paths"].as_object().expect("paths") {
        let named = path.replace(['{', '}'], "");
        for method in item.as_object().expect("operations").keys() {
            let method = method.to_uppercase();
            if path.starts_with("/v1/session") {
                continue;
            }
            let (status, answer) = auditor.ask(&method, &named, "{}").await;
            match is_open(path) {
                true => assert_ne!(status, 403, "{method} {path}: {answer}"),
                // Some bodies are refused before the role is looked at; nothing is done then either.
                false => assert!(
                    [400, 403, 415, 422].contains(&status),
                    "{method} {path}: {status} {answer}"
                ),
            }
            if method == "GET" && !is_open(path) {
                assert!([400, 403].contains(&status), "{path}: {status} {answer}");
            }
        }
    }
    let (_, listed) = operator.ask("GET", "/v1/admins", "").await;
    assert_eq!(listed[1]["role"], "auditor", "{listed}");
}

/// With only an auditor's key, one record can be proved to a person who has neither key nor trail.
#[tokio::test]
async fn one_record_is_proven_as_a_file_by_an_auditors_key_alone() {
    let house = sample::house();
    let gateway = house.serve();
    let operator = Admin::of(&house);
    let client = Modern::new(gateway.url());
    let mut receipts = Vec::new();
    for iata in ["OSL", "ARN", "KEF"] {
        let result = client.call("lookup_airport", json!({ "iata": iata })).await;
        let receipt = &result["_meta"]["dev.weir/receipt"];
        receipts.push(receipt.as_str().expect("a receipt").to_owned());
    }
    let key = house.succeed(&["admins", "add", "--name", "bea", "--role", "auditor"]);
    let auditor = Admin {
        key: key.trim().to_owned(),
        ..operator
    };
    let (rest, hash) = receipts[0].rsplit_once(':').expect("a receipt");
    let call = records(&auditor, &format!("kind=call&text={hash}")).await;
    let call_id = call[0]["call_id"].as_str().expect("an id").to_owned();
    let numbered = rest.to_owned();
    let (status, proof) = auditor
        .ask("GET", &format!("/v1/audit/{call_id}/proof"), "")
        .await;
    assert_eq!(
        (status, &proof["receipt"]),
        (200, &json!(receipts[0])),
        "{proof}"
    );
    let to = format!("/v1/audit/{numbered}/proof?to={}", receipts[1]);
    let (status, nearer) = auditor.ask("GET", &to, "").await;
    assert_eq!(
        (status, &nearer["end"]),
        (200, &json!(receipts[1])),
        "{nearer}"
    );
    for (path, expected) in [
        ("/v1/audit/c_0000000000000000/proof".to_owned(), 404),
        (format!("/v1/audit/{call_id}/proof?to=x"), 422),
        (format!("/v1/audit/{call_id}/proof?until=x"), 400),
    ] {
        let (status, refused) = auditor.ask("GET", &path, "").await;
        assert_eq!(status, expected, "{path}: {refused}");
    }

    // Elsewhere, with no state and no trail.
    let away = House::new().file("proof.json", nearer.to_string());
    let (code, out, err) = away.run(&["audit", "verify", "--file", "proof.json", &receipts[1]]);
    assert!(
        code == 0 && out.contains("it is proven"),
        "{code}: {out}{err}"
    );
    assert!(
        out.contains(&call_id) && out.contains("tool=lookup_airport"),
        "{out}"
    );
    let (code, out, _) = away.run(&["audit", "verify", "--file", "proof.json"]);
    assert!(code == 1 && out.contains("NOT PROVEN YET"), "{code}: {out}");
    let steering = away.file("steering.json", r#"{"\u001b]0;owned\u0007": 1}"#);
    let (code, _, err) = steering.run(&["audit", "verify", "--file", "steering.json"]);
    assert!(
        code == 1 && err.contains("]0;owned") && !err.contains(['\u{1b}', '\u{7}']),
        "{code}: {err:?}"
    );
    let away = steering;
    let (code, out, _) = away.run(&["audit", "verify", "--file", "proof.json", &receipts[2]]);
    assert!(code == 1 && out.contains("NOT IN THIS PROOF"), "{out}");
    let forged = nearer
        .to_string()
        .replace("lookup_airport", "delete_airport");
    let away = away.file("proof.json", forged);
    let (code, _, err) = away.run(&["audit", "verify", "--file", "proof.json", &receipts[1]]);
    assert!(code == 1 && err.contains("line 1 was changed"), "{err}");

    // The whole trail, with only the key.
    let verify = |receipt: &str| {
        let mut command = away.weir(&["audit", "verify", receipt]);
        command
            .env("WEIR_ADMIN_URL", &auditor.url)
            .env("WEIR_ADMIN_KEY", &auditor.key);
        read_output(command.output().expect("weir starts"))
    };
    let (code, out, err) = verify(&receipts[0]);
    assert!(
        code == 0 && out.contains("the trail is whole"),
        "{out}{err}"
    );
    assert!(
        out.contains(&call_id) && out.contains("a cut would not be found"),
        "{out}"
    );
    let (code, out, _) = verify(&format!("{numbered}:{}", "0".repeat(64)));
    assert!(code == 1 && out.contains("REPLACED"), "{out}");
    drop(gateway);
}

/// Passes requests on to an admin API, except for those about one segment, which it reports as missing.
async fn without_segments(admin: &Admin) -> String {
    let (url, key) = (admin.url.clone(), admin.key.clone());
    let answer = move |uri: Uri| {
        let (url, key) = (url.clone(), key.clone());
        async move {
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            if path.contains("/chains/") {
                return (StatusCode::NOT_FOUND, String::new());
            }
            let answer = answer_to(http().get(format!("{url}{path}")).bearer_auth(key)).await;
            let status = answer.status();
            (status, answer.text().await.expect("a text"))
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let app = Router::new().fallback(answer);
    tokio::spawn(async move { axum::serve(listener, app).await });
    format!("http://{address}")
}

/// A segment may be removed between the list and the request for it: then less is collected than was listed.
#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_was_listed_and_is_gone_is_named_by_what_collects() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let client = Modern::new(gateway.url());
    client.call("lookup_airport", json!({"iata": "OSL"})).await;
    let collect = |url: &str| {
        let mut command = house.weir(&["audit", "collect", "--to", "all", "--from", url]);
        command.env("WEIR_ADMIN_KEY", &admin.key);
        read_output(command.output().expect("weir starts"))
    };
    let (code, _, err) = collect(&without_segments(&admin).await);
    assert!(
        code == 1 && err.contains("was listed and is missing"),
        "{code}: {err}"
    );
    let (code, _, err) = collect(&admin.url);
    assert_eq!(code, 0, "{err}");
}

/// It would refuse every call, so it has to notice without a call that the trail is back.
#[tokio::test]
async fn a_gateway_that_can_record_nothing_is_not_ready() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let probe = async |base: &str| {
        let answer = answer_to(http().get(format!("{base}/readyz"))).await;
        let status = answer.status();
        (status, answer.text().await.expect("a text"))
    };
    for base in [&gateway.base, &admin.url] {
        assert_eq!(probe(base).await.0, StatusCode::OK);
    }
    let (trail, away) = (
        house.path().join("state/audit"),
        house.path().join("state/away"),
    );
    std::fs::rename(&trail, &away).expect("moved");
    for base in [&gateway.base, &admin.url] {
        until("it is not ready", async || {
            let (status, text) = probe(base).await;
            status == StatusCode::SERVICE_UNAVAILABLE
                && text.contains("the audit trail cannot be written")
        })
        .await;
    }
    std::fs::rename(&away, &trail).expect("moved back");
    for base in [&gateway.base, &admin.url] {
        until("it is ready again", async || {
            probe(base).await.0 == StatusCode::OK
        })
        .await;
    }
    let client = Modern::new(gateway.url());
    client
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
    drop(gateway);
    assert_eq!(house.run(&["audit", "verify"]).0, 0);
}
