//! Tests who calls, what they may see, and how often: the same over every version and both transports.

use std::{process::Command, time::Duration};

use futures::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};
use weir_tests::{
    Admin, Answer, Events, Gateway, House, Legacy, Modern, Stdio, answer_to, client, http, place,
    read_output, until,
};

use crate::{sample, views::FIELDS};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn house() -> House {
    sample::house().file("contracts/fields.yaml", FIELDS)
}

fn names(list: &Value) -> Vec<&str> {
    list["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

async fn refused(client: &Modern) -> Answer {
    let answer = client
        .ask(
            "tools/call",
            json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}}),
        )
        .await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.text);
    assert!(answer.headers.contains_key("www-authenticate"));
    assert_eq!(
        answer
            .headers
            .get("connection")
            .map(|value| value.as_bytes()),
        Some(&b"close"[..]),
        "it is not kept open for someone unknown"
    );
    answer
}

/// Without required keys a key of an admin opens nothing either, in any scheme.
#[tokio::test]
async fn a_key_of_an_admin_is_no_agent_where_none_is_needed() {
    let house = house();
    let gateway = house.serve();
    let key = Admin::of(&house).key;
    for scheme in ["Bearer", "DPoP"] {
        let request = http()
            .post(gateway.url())
            .header("content-type", "application/json");
        let request = request
            .header("authorization", format!("{scheme} {}", key.trim()))
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-06-18")
            .body(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string());
        let answer = answer_to(request).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{scheme}");
    }
}

#[tokio::test]
async fn a_key_is_needed_as_soon_as_one_exists_and_revoking_it_closes_at_once() {
    let house = house();
    let gateway = house.serve();
    let open = Modern::new(gateway.url());
    assert_eq!(
        open.ask("tools/list", json!({})).await.result()["cacheScope"],
        "public"
    );
    let key = house.key(&["--agent", "ann", "--tenant", "acme"]);
    refused(&open).await;
    let ann = Modern::with_key(gateway.url(), &key);
    assert_eq!(
        ann.call("lookup_airport", json!({"iata": "OSL"})).await["structuredContent"]["country"],
        "NO"
    );
    assert_eq!(
        ann.ask("tools/list", json!({})).await.result()["cacheScope"],
        "private"
    );
    let last = if key.ends_with('0') { "1" } else { "0" };
    for wrong in [
        "weir_x",
        &format!("{}{last}", &key[..key.len() - 1]),
        &key[..key.len() - 1],
    ] {
        let answer = refused(&Modern::with_key(gateway.url(), wrong)).await;
        assert!(!answer.text.contains(wrong), "an error repeats the key");
    }

    let listed = house.json(&["keys", "list"]);
    let id = listed[0]["id"].as_str().expect("an id");
    assert!(!listed.to_string().contains(&key), "a secret is shown once");
    house.succeed(&["keys", "revoke", id]);
    refused(&ann).await;
    refused(&open).await;
    assert!(!gateway.log().contains(&key));
    drop(gateway);
    refused(&Modern::new(house.serve().url())).await;
}

/// Clients show the message of a 401 only where it answers their request, and `error_description` where they look for a
/// sign-in after it.
#[tokio::test]
async fn a_401_is_the_answer_to_its_request_and_says_what_to_send() {
    let house = house();
    let gateway = house.serve();
    house.key(&["--agent", "ann"]);
    let post = async |body: String| {
        let request = http()
            .post(gateway.url())
            .header("content-type", "application/json")
            .body(body);
        let answer = answer_to(request).await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        let body: Value = answer.json().await.expect("JSON");
        assert!(
            body["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("Authorization: Bearer")),
            "{body}"
        );
        assert!(
            body.as_object().is_some_and(|body| body.contains_key("id")),
            "{body}"
        );
        body["id"].clone()
    };
    let request = |id: Value, padding: usize| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"x": "y".repeat(padding)}}).to_string()
    };
    assert_eq!(post(request(json!(7), 0)).await, 7);
    assert_eq!(post(request(json!("a\"b"), 60_000)).await, "a\"b");
    for nameless in [
        request(json!(7), 70_000),
        request(json!("i".repeat(2000)), 0),
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned(),
        format!("[{}]", request(json!(7), 0)),
        "not JSON".to_owned(),
        String::new(),
    ] {
        assert_eq!(post(nameless).await, Value::Null);
    }
    // A client that tries to sign in reads there why it cannot.
    for (path, status) in [
        ("/register", 400),
        ("/authorize?client_id=x", 400),
        ("/token", 400),
        ("/.well-known/oauth-protected-resource/mcp", 404),
        ("/.well-known/oauth-authorization-server", 404),
        ("/.well-known/openid-configuration/mcp/airports", 404),
        ("/mcp/.well-known/openid-configuration", 404),
    ] {
        for method in [reqwest::Method::GET, reqwest::Method::POST] {
            let request = http()
                .request(method, format!("{}{path}", gateway.base))
                .body("{}");
            let answer = answer_to(request).await;
            assert_eq!(answer.status(), status, "{path}");
            let body: Value = answer.json().await.expect("JSON");
            assert!(body["error"].is_string(), "{path}: {body}");
            let description = body["error_description"].as_str().unwrap_or_default();
            assert!(
                description.contains("a key is needed")
                    && description.contains("Authorization: Bearer weir_"),
                "{path}: {body}"
            );
        }
    }
    let foreign = http()
        .post(format!("{}/register", gateway.base))
        .header("origin", "http://evil.example");
    assert_eq!(answer_to(foreign).await.status(), 403);
    let other =
        answer_to(http().get(format!("{}/.well-known/agent-card.json", gateway.base))).await;
    assert_eq!(
        (
            other.status(),
            other.text().await.expect("text").contains("MCP is at /mcp")
        ),
        (StatusCode::NOT_FOUND, true)
    );
}

/// The gateway does not wait for a client that never sends its body to the end.
#[tokio::test]
async fn a_401_does_not_wait_for_a_body() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let house = house();
    let gateway = house.serve();
    house.key(&["--agent", "ann"]);
    let address = gateway.base.strip_prefix("http://").expect("an address");
    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("connected");
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.expect("written");
    let mut answer = Vec::new();
    // A request whose body may be sent has half a minute for it.
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    read.expect("an answer although the body is not whole")
        .expect("read");
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        answer.starts_with("HTTP/1.1 401") && answer.contains(r#""id":null"#),
        "{answer}"
    );
}

/// Contracts may be created after the keys for them: the key is made, with a warning about what is missing.
#[tokio::test]
async fn a_key_for_what_is_not_there_is_made_with_a_warning() {
    let house = house();
    let _gateway = house.serve();
    let words = [
        "keys",
        "create",
        "--agent",
        "ann",
        "--contract",
        "airport",
        "--tool",
        "lookup_airport",
    ];
    let limited = ["--rate", "60/min", "--tool-rate", "lookup_everything=1/s"];
    let (code, key, err) = house.run(&[&words[..], &limited].concat());
    assert!(code == 0 && key.starts_with("weir_"), "{err}");
    assert!(
        err.contains("warning: there is no contract `airport` yet; did you mean `airports`?"),
        "{err}"
    );
    assert!(
        err.contains("warning: there is no tool `lookup_everything` yet"),
        "{err}"
    );
    let made = house.json(&[
        "keys",
        "create",
        "--agent",
        "bob",
        "--contract",
        "airports",
        "--tool",
        "lookup_field",
    ]);
    assert_eq!(made["warnings"], json!([]), "{made}");
    let (_, listed, _) = house.run(&["keys", "list"]);
    let ann = listed
        .lines()
        .find(|line| line.contains(" ann "))
        .unwrap_or_else(|| panic!("{listed}"));
    assert!(
        ann.contains(" airport,lookup_airport ") && ann.contains(" 60/min,lookup_everything=1/s "),
        "{listed}"
    );
}

/// Hidden and unknown tools are the same in the list, in calls and as endpoints, over every version and both
/// transports.
#[tokio::test]
async fn hidden_and_unknown_are_the_same_in_every_version_over_both_transports() {
    let house = house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--tool", "lookup_airport"]);
    let modern = Modern::with_key(gateway.url(), &key);
    assert_eq!(
        names(modern.ask("tools/list", json!({})).await.result()),
        ["lookup_airport"]
    );
    let nameless = |answer: &Value, tool: &str| answer["error"].to_string().replace(tool, "TOOL");
    for hidden in ["list_airports", "lookup_field"] {
        let ask = async |tool: &str| {
            let answer = modern
                .ask("tools/call", json!({"name": tool, "arguments": {}}))
                .await;
            (answer.status, nameless(answer.reply(), tool))
        };
        assert_eq!(ask(hidden).await, ask("no_such_tool").await);
    }
    let endpoint = async |name: &str| {
        let answer = Modern::with_key(gateway.contract_url(name), &key)
            .ask("tools/list", json!({}))
            .await;
        (answer.status, nameless(answer.reply(), name))
    };
    assert_eq!(endpoint("fields").await, endpoint("nothing").await);
    assert_eq!(endpoint("airports").await.0, StatusCode::OK);

    let mut stdio = Stdio::start_as(&house, &key);
    assert_eq!(
        names(&stdio.ask_modern("tools/list", json!({})).await["result"]),
        ["lookup_airport"]
    );
    for version in LEGACY {
        let client = Legacy::open_as(gateway.url(), version, Some(&key)).await;
        assert_eq!(
            names(client.ask("tools/list", json!({})).await.result()),
            ["lookup_airport"],
            "{version}"
        );
        let ask = async |tool: &str| {
            nameless(
                client
                    .ask("tools/call", json!({"name": tool, "arguments": {}}))
                    .await
                    .reply(),
                tool,
            )
        };
        assert_eq!(
            ask("lookup_field").await,
            ask("no_such_tool").await,
            "{version}"
        );
        client
            .succeed("lookup_airport", json!({"iata": "OSL"}))
            .await;

        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        stdio.ask("initialize", params).await;
        assert_eq!(
            names(&stdio.ask("tools/list", json!({})).await["result"]),
            ["lookup_airport"],
            "{version}"
        );
        let hidden = stdio
            .ask(
                "tools/call",
                json!({"name": "lookup_field", "arguments": {}}),
            )
            .await;
        let unknown = stdio
            .ask(
                "tools/call",
                json!({"name": "no_such_tool", "arguments": {}}),
            )
            .await;
        assert_eq!(
            nameless(&hidden, "lookup_field"),
            nameless(&unknown, "no_such_tool"),
            "{version}"
        );
    }
    let in_batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "lookup_field", "arguments": {}}}]);
    let client = Legacy::open_as(gateway.url(), "2025-03-26", Some(&key)).await;
    let answer = client::send(client.in_session(in_batch.to_string())).await;
    assert!(answer.text.contains("-32602"), "{}", answer.text);
}

#[tokio::test]
async fn a_session_is_its_keys_alone_and_ends_with_it() {
    let house = house();
    let gateway = house.serve();
    let (ann, bob) = (
        house.key(&["--agent", "ann"]),
        house.key(&["--agent", "bob"]),
    );
    let session = Legacy::open_as(gateway.url(), "2025-11-25", Some(&ann)).await;
    let stolen = session.in_hands_of(Some(&bob));
    assert_eq!(
        stolen.ask("tools/list", json!({})).await.status,
        StatusCode::NOT_FOUND
    );
    let again = house.key(&["--agent", "ann"]);
    let other = session.in_hands_of(Some(&again));
    assert_eq!(
        other.ask("tools/list", json!({})).await.status,
        StatusCode::NOT_FOUND,
        "the same name, another key"
    );
    assert_eq!(
        session
            .in_hands_of(None)
            .ask("ping", json!({}))
            .await
            .status,
        StatusCode::UNAUTHORIZED
    );

    let mut stream = Events::open(session.stream()).await;
    let mut stdio = Stdio::start_as(&house, &ann);
    assert_eq!(
        names(&stdio.ask_modern("tools/list", json!({})).await["result"]).len(),
        4
    );
    let keys = house.json(&["keys", "list"]);
    let of_ann = keys
        .as_array()
        .into_iter()
        .flatten()
        .find(|key| ann.contains(key["id"].as_str().unwrap_or("?")));
    house.run(&[
        "keys",
        "revoke",
        of_ann.expect("listed")["id"].as_str().expect("an id"),
    ]);
    assert_eq!(
        session.ask("tools/list", json!({})).await.status,
        StatusCode::UNAUTHORIZED
    );
    let started = std::time::Instant::now();
    assert_eq!(
        stream.next(std::time::Duration::from_secs(60)).await,
        None,
        "the stream ends"
    );
    assert!(started.elapsed().as_secs() < 59, "by itself");
    until("another process learns of it", async || {
        let answer = stdio.ask_modern("tools/list", json!({})).await;
        let message = answer["error"]["message"].as_str();
        message.is_some_and(|message| message.contains("not valid"))
    })
    .await;
    assert_eq!(
        Modern::with_key(gateway.url(), &bob)
            .ask("tools/list", json!({}))
            .await
            .status,
        StatusCode::OK
    );
}

/// A connection that a key opened ends with the key, also when it expires without a revocation.
#[tokio::test]
async fn streams_end_when_their_key_expires() {
    let house = house();
    let gateway = house.serve();
    let made = json!({"agent": "ann", "expires_in_s": 10}).to_string();
    let (_, made) = Admin::of(&house).ask("POST", "/v1/keys", made).await;
    let key = made["key"].as_str().expect("a key");
    let session = Legacy::open_as(gateway.url(), "2025-11-25", Some(key)).await;
    let mut of_session = Events::open(session.stream()).await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let client = Modern::with_key(gateway.url(), key);
    let mut listening = Events::open(client.request("subscriptions/listen", wanted)).await;
    let within = std::time::Duration::from_secs(60);
    let started = std::time::Instant::now();
    let acknowledged = listening.next(within).await.expect("it is acknowledged");
    assert_eq!(
        acknowledged["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        of_session.next(within).await,
        None,
        "the stream of the session ends"
    );
    let last = listening
        .next(within)
        .await
        .expect("it ends with its result");
    assert_eq!(last["result"]["resultType"], "complete", "{last}");
    assert!(started.elapsed() < within, "by themselves");
    assert_eq!(
        client.ask("tools/list", json!({})).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_process_on_stdio_needs_its_key_at_the_start() {
    let house = house();
    let gateway = house.serve();
    house.key(&["--agent", "ann"]);
    drop(gateway);
    let (code, out, err) = house.run(&["stdio"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("WEIR_KEY"), "{err}");
}

/// Files with variables often leave a line break after a value, especially with Windows line ends.
#[tokio::test]
async fn the_end_of_a_line_behind_a_key_is_no_part_of_it() {
    let house = house();
    let gateway = house.serve();
    let (key, admin) = (house.key(&["--agent", "ann"]), Admin::of(&house));
    let mut call = Command::new(place::binary("weir"));
    call.args([
        "call",
        "--url",
        &gateway.url(),
        "lookup_airport",
        "--iata",
        "OSL",
    ]);
    call.env("WEIR_KEY", format!("{key}\r\n"));
    let mut list = house.weir(&["keys", "list"]);
    list.env("WEIR_ADMIN_KEY", format!("{}\n", admin.key));
    for mut command in [call, list] {
        let (code, out, err) = read_output(command.output().expect("weir starts"));
        assert_eq!(code, 0, "{out}{err}");
    }
}

#[tokio::test]
async fn limits_hold_under_a_thousand_calls_at_once() {
    let house = house();
    let gateway = house.serve();
    let words = [
        "--agent",
        "ann",
        "--tool-rate",
        "lookup_airport=10/hour",
        "--rate",
        "100000/min",
    ];
    let ann = Modern::with_key(gateway.url(), &house.key(&words));
    let bob = Modern::with_key(gateway.url(), &house.key(&["--agent", "bob"]));
    let call = async || ann.call("lookup_airport", json!({"iata": "OSL"})).await;
    let results = join_all((0..1000).map(|_| call())).await;
    let passed = results
        .iter()
        .filter(|result| result["isError"] == false)
        .count();
    assert_eq!(passed, 10);
    for result in results.iter().filter(|result| result["isError"] == true) {
        let error = &result["structuredContent"];
        assert_eq!(error["code"], "rate_limited");
        assert!(
            error["retry_after_ms"]
                .as_u64()
                .is_some_and(|wait| wait > 0),
            "{error}"
        );
    }
    assert_eq!(
        ann.call("list_airports", json!({})).await["isError"],
        false,
        "another tool has its own bucket"
    );
    assert_eq!(
        bob.call("lookup_airport", json!({"iata": "OSL"})).await["isError"],
        false,
        "and so has another agent"
    );
}

/// Over every version and both transports, the caller sees what is left of a limit, and is refused once nothing is.
#[tokio::test]
async fn a_limit_holds_in_every_version_over_both_transports() {
    let house = house();
    let gateway = house.serve();
    let limited =
        |agent: &str| house.key(&["--agent", agent, "--tool-rate", "lookup_airport=1/hour"]);
    let ask = || json!({"name": "lookup_airport", "arguments": {"iata": "OSL"}});
    // This is in the text, since older versions have no structured content.
    let check_second = |first: &Value, second: &Value, place: &str| {
        assert_eq!(first["isError"], false, "{place}: {first}");
        assert_eq!(second["isError"], true, "{place}: {second}");
        assert!(
            second["content"][0]["text"]
                .as_str()
                .is_some_and(|text| text.contains("Try again in ")),
            "{place}: {second}"
        );
    };
    let modern = Modern::with_key(gateway.url(), &limited("modern"));
    let results = [
        modern
            .call("lookup_airport", ask()["arguments"].clone())
            .await,
        modern
            .call("lookup_airport", ask()["arguments"].clone())
            .await,
    ];
    check_second(&results[0], &results[1], "modern over HTTP");
    let mut stdio = Stdio::start_as(&house, &limited("modern-stdio"));
    let results = [
        stdio.ask_modern("tools/call", ask()).await,
        stdio.ask_modern("tools/call", ask()).await,
    ];
    check_second(
        &results[0]["result"],
        &results[1]["result"],
        "modern over stdio",
    );
    for version in LEGACY {
        let session = Legacy::open_as(gateway.url(), version, Some(&limited(version))).await;
        let first = session
            .call("lookup_airport", ask()["arguments"].clone())
            .await;
        let again = session
            .call("lookup_airport", ask()["arguments"].clone())
            .await;
        check_second(&first, &again, version);
        let mut stdio = Stdio::start_as(&house, &limited(&format!("{version}-stdio")));
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        stdio.ask("initialize", params).await;
        let results = [
            stdio.ask("tools/call", ask()).await,
            stdio.ask("tools/call", ask()).await,
        ];
        check_second(
            &results[0]["result"],
            &results[1]["result"],
            &format!("{version} over stdio"),
        );
    }
    let batch = Legacy::open_as(gateway.url(), "2025-03-26", Some(&limited("batch"))).await;
    let call =
        |id: u8| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": ask()});
    let answer =
        client::send(batch.in_session(json!([call(1), call(2), call(3)]).to_string())).await;
    assert_eq!(
        answer.text.matches("Try again in ").count(),
        2,
        "{}",
        answer.text
    );
}

/// The bucket over everything also counts requests for what does not exist, and other methods answer 429 for it.
#[tokio::test]
async fn the_coarse_bucket_counts_every_request() {
    let house = house();
    let gateway = house.serve();
    let ann = Modern::with_key(
        gateway.url(),
        &house.key(&["--agent", "ann", "--rate", "5/hour"]),
    );
    for _ in 0..5 {
        let answer = ann
            .ask(
                "tools/call",
                json!({"name": "no_such_tool", "arguments": {}}),
            )
            .await;
        assert_eq!(answer.error_code(), -32602);
    }
    let call = ann.call("lookup_airport", json!({"iata": "OSL"})).await;
    assert_eq!(call["structuredContent"]["code"], "rate_limited", "{call}");
    let answer = ann.ask("tools/list", json!({})).await;
    assert_eq!(
        answer.status,
        StatusCode::TOO_MANY_REQUESTS,
        "{}",
        answer.text
    );
    assert!(answer.headers.contains_key("retry-after"));
    assert!(
        answer.reply()["error"]["data"]["retry_after_ms"]
            .as_u64()
            .is_some_and(|wait| wait > 1000)
    );
}

/// Every client uses the JSON-RPC id 1, alone and in its own sessions; none sees another's answer.
#[tokio::test]
async fn a_thousand_clients_with_one_id_never_see_each_others_answers() {
    let house = house();
    let gateway = house.serve();
    let codes = ["ARN", "BGO", "GOT", "KEF", "OSL", "TRD"];
    let keys: Vec<String> = (0..codes.len())
        .map(|agent| house.key(&["--agent", &format!("a{agent}")]))
        .collect();
    let asked = (0..1000).map(|number| {
        let (code, key, url) = (
            codes[number % codes.len()],
            &keys[number % keys.len()],
            gateway.url(),
        );
        let id = if number % 2 == 0 {
            json!(1)
        } else {
            json!("1")
        };
        async move {
            let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                "name": "lookup_airport", "arguments": {"iata": code}}});
            let client = match number % 10 {
                0 => Legacy::open_as(url, "2025-11-25", Some(key)).await,
                _ => Legacy::bare(url, "2025-11-25", Some(key)),
            };
            loop {
                let answer = client::send(client.in_session(body.to_string())).await;
                assert_eq!(answer.reply()["id"], id);
                let error = &answer.result()["structuredContent"];
                if error["code"] != "overloaded" {
                    return assert_eq!(error["iata"], code, "{error}");
                }
                let wait = error["retry_after_ms"].as_u64().expect("when to come back");
                tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
            }
        }
    });
    join_all(asked).await;
}

#[test]
fn other_addresses_than_loopback_need_keys() {
    let house = house();
    let (code, _, err) = house.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, 1);
    assert!(
        err.contains("/http/listen") && err.contains("[identity]"),
        "{err}"
    );
    let closed = sample::house().config("[identity]\nrequired = true");
    let gateway = Gateway::start(closed.weir(&["serve", "--listen", "0.0.0.0:0"]));
    assert!(gateway.base.contains("0.0.0.0"));
}

/// Two processes share one state: a key revoked at one stops working at the other within 50 ms.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_revocation_by_another_process_is_seen_within_50_ms() {
    revocations_are_seen_within_50_ms(9, std::time::Duration::ZERO).await;
}

/// The same where nothing has changed for a while, and the other process waits for a change.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_revocation_is_seen_by_a_process_at_rest() {
    revocations_are_seen_within_50_ms(3, std::time::Duration::from_millis(2_500)).await;
}

async fn revocations_are_seen_within_50_ms(keys: usize, rest: std::time::Duration) {
    let house = house();
    let other = house.serve();
    // The admin API of the house is that of the process that started last.
    let own = house.serve();
    let mut all = Vec::new();
    // The machine may be busy with others during some of the sets.
    for set in 0..10 {
        let mut waits = Vec::new();
        for number in 0..keys {
            let key = house.key(&["--agent", &format!("ann{set}{number}")]);
            waits.push(wait_for_revocation(&house, &own, &other, &key, rest).await);
        }
        waits.sort();
        if waits[waits.len() / 2] <= std::time::Duration::from_millis(50) {
            return;
        }
        all.push(waits);
    }
    panic!("a revoked key works too long: {all:?}");
}

/// Revokes a key at one process and returns how long it still works at the other.
async fn wait_for_revocation(
    house: &House,
    own: &Gateway,
    other: &Gateway,
    key: &str,
    rest: std::time::Duration,
) -> std::time::Duration {
    let client = Modern::with_key(other.url(), key);
    let known = async || client.ask("tools/list", json!({})).await.status == StatusCode::OK;
    while !known().await {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    tokio::time::sleep(rest).await;
    let id = key.split('_').nth(1).expect("an id");
    let revoked = weir_tests::Admin::of(house)
        .ask("DELETE", &format!("/v1/keys/{id}"), "")
        .await;
    let began = std::time::Instant::now();
    assert_eq!(revoked.0, 204, "{revoked:?}");
    assert!(
        !Modern::with_key(own.url(), key)
            .ask("tools/list", json!({}))
            .await
            .status
            .is_success()
    );
    while known().await {}
    began.elapsed()
}
