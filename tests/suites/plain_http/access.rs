//! Access by plain HTTP: the rules of MCP apply at `/rest` and `/forms`, with `GET` and with `POST`.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Modern, answer_to, http, until};

use crate::{sample, views::FIELDS};

/// One way to a tool: a call, or with `GET` at `/forms` the page to call it from.
#[derive(Clone, Copy, Debug)]
struct Way {
    door: &'static str,
    method: &'static str,
    /// Whether the key is sent as browsers send what a person types, rather than as `Authorization: Bearer`.
    as_password: bool,
}

const WAYS: [Way; 6] = [
    Way {
        door: "rest",
        method: "GET",
        as_password: false,
    },
    Way {
        door: "rest",
        method: "POST",
        as_password: false,
    },
    Way {
        door: "forms",
        method: "GET",
        as_password: false,
    },
    Way {
        door: "forms",
        method: "POST",
        as_password: false,
    },
    Way {
        door: "forms",
        method: "GET",
        as_password: true,
    },
    Way {
        door: "forms",
        method: "POST",
        as_password: true,
    },
];
/// The pages about the tools of one contract.
const PAGES: [&str; 3] = [
    "rest/CONTRACT/openapi.json",
    "rest/CONTRACT/",
    "forms/CONTRACT/",
];

impl Way {
    /// Requests `CONTRACT/TOOL` with an argument that its tools take.
    fn request(self, gateway: &Gateway, tool: &str, key: Option<&str>) -> RequestBuilder {
        let method: Method = self.method.parse().expect("a method");
        let url = format!("{}/{}/{tool}", gateway.base, self.door);
        let request = match self.method {
            "GET" => http().request(method, format!("{url}?iata=OSL")),
            _ => http().request(method, url).json(&json!({"iata": "OSL"})),
        };
        match key {
            Some(key) if self.as_password => request.basic_auth("anyone", Some(key)),
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    fn is_call(self) -> bool {
        self.door == "rest" || self.method == "POST"
    }
}

fn page(gateway: &Gateway, page: &str, contract: &str, key: &str) -> RequestBuilder {
    http()
        .get(format!(
            "{}/{}",
            gateway.base,
            page.replace("CONTRACT", contract)
        ))
        .bearer_auth(key)
}

/// Checks the status of every page about the contract `airports`.
async fn check_pages(gateway: &Gateway, key: &str, status: u16) {
    for text in PAGES {
        let answer = DoorAnswer::read(page(gateway, text, "airports", key)).await;
        assert_eq!(answer.status, status, "{text}");
    }
}

/// An answer as far as it may be compared with another.
#[derive(Debug, PartialEq)]
struct DoorAnswer {
    status: StatusCode,
    headers: BTreeMap<String, String>,
    body: String,
}

impl DoorAnswer {
    async fn read(request: RequestBuilder) -> Self {
        let response = answer_to(request).await;
        let header =
            |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
                (name.to_string(), value.to_str().expect("text").to_owned())
            };
        let mut headers: BTreeMap<String, String> = response.headers().iter().map(header).collect();
        // Names have different lengths.
        for other_each_time in ["date", "content-length"] {
            headers.remove(other_each_time);
        }
        let status = response.status();
        Self {
            status,
            headers,
            body: response.text().await.expect("text"),
        }
    }

    /// Returns the same with `TOOL` and `CONTRACT` in place of their names.
    fn nameless(mut self, tool: &str) -> Self {
        let (contract, tool) = tool.split_once('/').expect("a contract and a tool");
        self.body = self
            .body
            .replace(tool, "TOOL")
            .replace(contract, "CONTRACT");
        self
    }

    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(String::as_str)
            .unwrap_or_default()
    }

    fn code(&self) -> String {
        let problem: Value = serde_json::from_str(&self.body).unwrap_or_default();
        problem["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn house() -> House {
    sample::house()
        .file("contracts/fields.yaml", FIELDS)
        .config("[http]\nforms = true")
}

#[tokio::test]
async fn hidden_is_unknown_at_every_door() {
    let house = house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann", "--tool", "lookup_airport"]);
    for way in WAYS {
        let ask =
            async |tool: &str| DoorAnswer::read(way.request(&gateway, tool, Some(&key))).await;
        assert_eq!(ask("airports/lookup_airport").await.status, 200, "{way:?}");
        for (hidden, unknown) in [
            ("airports/list_airports", "airports/no_such_tool"),
            ("airports/create_airport", "airports/no_such_tool"),
            ("fields/lookup_field", "fields/no_such_tool"),
            ("fields/lookup_field", "nothing/no_such_tool"),
        ] {
            let answer = ask(hidden).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (StatusCode::NOT_FOUND, "unknown_tool"),
                "{way:?} {hidden}"
            );
            assert_eq!(
                answer.nameless(hidden),
                ask(unknown).await.nameless(unknown),
                "{way:?} {hidden}"
            );
        }
    }
    // A method that is not served reveals nothing either.
    let not_served = 405;
    for (door, method, status) in [
        ("rest", "PUT", not_served),
        ("rest", "DELETE", not_served),
        ("rest", "HEAD", not_served),
        ("forms", "PUT", not_served),
        ("forms", "HEAD", 404),
    ] {
        let way = Way {
            door,
            method,
            as_password: false,
        };
        let ask = async |tool: &str| {
            DoorAnswer::read(way.request(&gateway, tool, Some(&key)))
                .await
                .nameless(tool)
        };
        let hidden = ask("airports/list_airports").await;
        assert_eq!(hidden.status, status, "{way:?}");
        assert_eq!(hidden, ask("airports/no_such_tool").await, "{way:?}");
    }
    for text in PAGES {
        let ask =
            async |contract: &str| DoorAnswer::read(page(&gateway, text, contract, &key)).await;
        let seen = ask("airports").await;
        assert!(
            seen.status == 200 && seen.body.contains("lookup_airport"),
            "{text}: {seen:?}"
        );
        assert!(!seen.body.contains("list_airports"), "{text}: {seen:?}");
        let hidden = ask("fields").await;
        assert_eq!(
            (hidden.status, hidden.code().as_str()),
            (StatusCode::NOT_FOUND, "unknown_contract"),
            "{text}"
        );
        assert_eq!(hidden, ask("nothing").await, "{text}");
    }
}

#[tokio::test]
async fn a_key_is_needed_and_is_revoked_at_once_at_every_door() {
    let house = house();
    let gateway = house.serve();
    for way in WAYS {
        let tool = "airports/lookup_airport";
        let ask =
            async |key: Option<&str>| DoorAnswer::read(way.request(&gateway, tool, key)).await;
        let key = house.key(&["--agent", "ann"]);
        assert_eq!(ask(Some(&key)).await.status, 200, "{way:?}");
        let last = if key.ends_with('0') { "1" } else { "0" };
        let wrong = format!("{}{last}", &key[..key.len() - 1]);
        for key in [None, Some("weir_x"), Some(wrong.as_str())] {
            let answer = ask(key).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (StatusCode::UNAUTHORIZED, "refused"),
                "{way:?} {key:?}"
            );
            let scheme = if way.door == "forms" {
                "Basic "
            } else {
                "Bearer"
            };
            assert!(
                answer.header("www-authenticate").starts_with(scheme),
                "{way:?}: {answer:?}"
            );
            assert_eq!(
                answer.header("connection"),
                "close",
                "it is not kept open for someone unknown: {way:?}"
            );
            assert!(
                key.is_none_or(|key| !answer.body.contains(key)),
                "an error repeats the key: {answer:?}"
            );
        }
        let id = key.split('_').nth(1).expect("an id");
        house.succeed(&["keys", "revoke", id]);
        assert_eq!(ask(Some(&key)).await.status, 401, "{way:?}");
        check_pages(&gateway, &key, 401).await;
    }
}

#[tokio::test]
async fn a_key_that_has_run_out_opens_no_door() {
    let house = house();
    let gateway = house.serve();
    let began = Instant::now();
    let body = json!({"agent": "ann", "expires_in_s": 10}).to_string();
    let (status, made) = Admin::of(&house).ask("POST", "/v1/keys", body).await;
    assert_eq!(status, 201, "{made}");
    let key = made["key"].as_str().expect("a key").to_owned();
    let tool = "airports/lookup_airport";
    let ask = async |way: Way| {
        DoorAnswer::read(way.request(&gateway, tool, Some(&key)))
            .await
            .status
    };
    assert_eq!(ask(WAYS[0]).await, 200);
    until("it runs out", async || ask(WAYS[0]).await == 401).await;
    assert!(
        began.elapsed() > Duration::from_millis(9500),
        "not before its time"
    );
    for way in WAYS {
        assert_eq!(ask(way).await, 401, "{way:?}");
    }
    assert_eq!(
        Modern::with_key(gateway.url(), &key)
            .ask("tools/list", json!({}))
            .await
            .status,
        401
    );
    check_pages(&gateway, &key, 401).await;
}

/// One bucket of an agent is behind all doors, and one of each tool behind all calls of it.
#[tokio::test]
async fn limits_are_shared_by_all_doors() {
    let house = house();
    let gateway = house.serve();
    let refused = |answer: &DoorAnswer, what: &str| {
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            "{what}"
        );
        assert!(
            answer
                .header("retry-after")
                .parse::<u32>()
                .is_ok_and(|seconds| seconds > 0),
            "{what}: {answer:?}"
        );
    };
    let tool = "airports/lookup_airport";
    let rate = format!("{}/hour", WAYS.len() + PAGES.len() + 1);
    let key = house.key(&["--agent", "ann", "--rate", &rate]);
    let mcp = Modern::with_key(gateway.url(), &key);
    for way in WAYS {
        assert_eq!(
            DoorAnswer::read(way.request(&gateway, tool, Some(&key)))
                .await
                .status,
            200,
            "{way:?}"
        );
    }
    check_pages(&gateway, &key, 200).await;
    assert_eq!(mcp.ask("tools/list", json!({})).await.status, 200);
    assert_eq!(mcp.ask("tools/list", json!({})).await.status, 429);
    for way in WAYS {
        refused(
            &DoorAnswer::read(way.request(&gateway, tool, Some(&key))).await,
            &format!("{way:?}"),
        );
    }
    for text in PAGES {
        refused(
            &DoorAnswer::read(page(&gateway, text, "airports", &key)).await,
            text,
        );
    }

    let calls = WAYS.iter().filter(|way| way.is_call()).count();
    let rate = format!("lookup_airport={}/hour", calls + 1);
    let key = house.key(&["--agent", "bob", "--tool-rate", &rate]);
    let mcp = Modern::with_key(gateway.url(), &key);
    for round in ["first", "second"] {
        for way in WAYS {
            let answer = DoorAnswer::read(way.request(&gateway, tool, Some(&key))).await;
            match (round, way.is_call()) {
                ("second", true) => refused(&answer, &format!("{way:?}")),
                _ => assert_eq!(answer.status, 200, "{way:?}: a page is no call"),
            }
        }
        let called = mcp.call("lookup_airport", json!({"iata": "OSL"})).await;
        assert_eq!(called["isError"], round == "second", "{called}");
    }
}

/// A page of another site, and a name that was made to lead here, reach neither a tool nor a page.
#[tokio::test]
async fn another_site_and_another_host_come_in_nowhere() {
    let house = house().config("hosts = [\"mcp.example\"]\norigins = [\"https://app.example\"]");
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    let view = |url: String| http().get(url).bearer_auth(&key);
    let post = |url: String| {
        let created = json!({"iata": "AAA", "name": "New", "country": "NO"});
        http().post(url).bearer_auth(&key).json(&created)
    };
    let requests = || {
        let pages = PAGES
            .iter()
            .map(|text| (*text, page(&gateway, text, "airports", &key)));
        let tools = ["rest", "forms"]
            .map(|door| format!("{}/{door}/airports/create_airport", gateway.base));
        let tools = tools.map(|url| ("a call that writes", post(url)));
        let form = (
            "a form",
            view(format!("{}/forms/airports/create_airport", gateway.base)),
        );
        let read = (
            "a read",
            view(format!(
                "{}/rest/airports/lookup_airport?iata=OSL",
                gateway.base
            )),
        );
        pages.chain(tools).chain([form, read]).collect::<Vec<_>>()
    };
    for (header, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost.evil.example"),
        ("origin", "http://app.example"),
        ("host", "evil.example"),
        ("host", "localhost.evil.example"),
    ] {
        for (what, request) in requests() {
            let answer = DoorAnswer::read(request.header(header, value)).await;
            let what = format!("{what}, {header}: {value}");
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (StatusCode::FORBIDDEN, "refused"),
                "{what}"
            );
            assert_eq!(answer.header("access-control-allow-origin"), "", "{what}");
            assert_eq!(answer.header("connection"), "close", "{what}");
        }
    }
    let looked = view(format!(
        "{}/rest/airports/lookup_airport?iata=AAA",
        gateway.base
    ));
    assert_eq!(
        DoorAnswer::read(looked).await.status,
        404,
        "nothing was written"
    );
    for (header, value) in [
        ("origin", "http://localhost:5173"),
        ("origin", "https://app.example"),
        ("host", "mcp.example"),
    ] {
        for (what, request) in requests() {
            let answer = DoorAnswer::read(request.header(header, value)).await;
            let what = format!("{what}, {header}: {value}: {answer:?}");
            // Creating the same record a second time is a conflict.
            assert!(
                answer.status == 200
                    || answer.status == 409 && what.starts_with("a call that writes"),
                "{what}"
            );
            if header == "origin" {
                assert_eq!(
                    answer.header("access-control-allow-origin"),
                    value,
                    "{what}"
                );
                assert_eq!(answer.header("vary"), "Origin", "{what}");
                assert!(
                    answer
                        .header("access-control-expose-headers")
                        .contains("Weir-Receipt"),
                    "{what}"
                );
            }
        }
    }
}

/// A browser asks first, without a key, and gets the same answer at every door.
#[tokio::test]
async fn a_browser_that_asks_first_is_told_the_same_as_at_mcp() {
    let house = house().config("[views.lists]");
    let gateway = house.serve();
    house.key(&["--agent", "ann"]);
    let asked = async |path: &str, origin: Option<&str>| {
        let mut request = http().request(Method::OPTIONS, format!("{}{path}", gateway.base));
        for (name, value) in [
            ("access-control-request-method", "POST"),
            (
                "access-control-request-headers",
                "authorization, content-type",
            ),
            ("access-control-request-private-network", "true"),
        ] {
            request = request.header(name, value);
        }
        DoorAnswer::read(
            origin
                .into_iter()
                .fold(request, |request, origin| request.header("origin", origin)),
        )
        .await
    };
    let granted = |answer: &DoorAnswer| -> BTreeMap<String, String> {
        let granted = answer
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("access-control-allow-"));
        granted
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let origin = Some("http://localhost:5173");
    let mcp = granted(&asked("/mcp", origin).await);
    assert_eq!(mcp.len(), 4, "{mcp:?}");
    assert_eq!(mcp["access-control-allow-origin"], "http://localhost:5173");
    assert_eq!(
        mcp["access-control-allow-headers"],
        "authorization, content-type"
    );
    for path in [
        "/mcp/view/lists",
        "/rest/airports/lookup_airport",
        "/rest/airports/no_such_tool",
        "/rest/airports/openapi.json",
        "/rest/airports/",
        "/forms/airports/lookup_airport",
        "/forms/airports/",
    ] {
        let answer = asked(path, origin).await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (StatusCode::NO_CONTENT, ""),
            "{path}"
        );
        assert_eq!(granted(&answer), mcp, "{path}");
        assert_eq!(answer.header("access-control-max-age"), "600", "{path}");
        let foreign = asked(path, Some("https://evil.example")).await;
        assert_eq!(
            (foreign.status, granted(&foreign).len()),
            (StatusCode::FORBIDDEN, 0),
            "{path}"
        );
        let stranger = asked(path, None).await;
        assert_eq!(
            (stranger.status, granted(&stranger).len()),
            (StatusCode::NO_CONTENT, 0),
            "{path}"
        );
    }
}

/// No answer has a validator for caches, and no conditional request is answered with "not modified".
#[tokio::test]
async fn nothing_is_for_a_cache() {
    let house = house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    let tools = WAYS.map(|way| {
        (
            format!("{way:?}"),
            way.request(&gateway, "airports/lookup_airport", Some(&key)),
        )
    });
    let unknown = WAYS.map(|way| {
        (
            format!("{way:?}"),
            way.request(&gateway, "airports/no_such_tool", Some(&key)),
        )
    });
    let pages = PAGES.map(|text| (text.to_owned(), page(&gateway, text, "airports", &key)));
    for (what, request) in tools.into_iter().chain(unknown).chain(pages) {
        let kept = request
            .header("if-none-match", "*")
            .header("if-modified-since", "Thu, 01 Jan 2099 00:00:00 GMT");
        let answer = DoorAnswer::read(kept).await;
        assert!(
            [200, 404].contains(&answer.status.as_u16()) && !answer.body.is_empty(),
            "{what}: {answer:?}"
        );
        assert_eq!(answer.header("cache-control"), "no-store", "{what}");
        for name in ["etag", "last-modified", "expires", "age"] {
            assert_eq!(answer.header(name), "", "{what}");
        }
    }
}

/// Pages for people are served only if an operator turned them on.
#[tokio::test]
async fn forms_are_off_by_default() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    for way in WAYS.into_iter().filter(|way| way.door == "forms") {
        for tool in [
            "airports/lookup_airport",
            "airports/create_airport",
            "airports/no_such_tool",
        ] {
            let answer = DoorAnswer::read(way.request(&gateway, tool, Some(&key))).await;
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (StatusCode::NOT_FOUND, "not_served"),
                "{way:?} {tool}"
            );
            assert!(answer.body.contains("[http] forms is false"), "{answer:?}");
        }
    }
    assert_eq!(
        DoorAnswer::read(page(&gateway, "forms/CONTRACT/", "airports", &key))
            .await
            .code(),
        "not_served"
    );
    assert_eq!(
        DoorAnswer::read(WAYS[0].request(&gateway, "airports/lookup_airport", Some(&key)))
            .await
            .status,
        200
    );
}
