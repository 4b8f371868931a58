//! The servers of the official SDKs behind Weir: over each transport of an SDK, a caller of either era lists, calls,
//! receives progress, cancels and answers questions.

mod caller;
mod sdk;

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use weir_tests::{House, Modern, place, until};

use self::{
    caller::Caller,
    sdk::{ALL, PYTHON_1, PYTHON_2, RMCP, Sdk, TYPESCRIPT_1, TYPESCRIPT_2, WAYS, Way},
};

const TOOLS: [&str; 6] = ["ask", "cancelled", "echo", "roots", "sample", "slow"];
const MAY_ASK: &str = "ask = [\"elicitation\", \"sampling\", \"roots\"]";

/// Returns the answers of a caller, by the tool that asks.
fn answers() -> [(&'static str, &'static str, Value, Value); 4] {
    let accepted = json!({"action": "accept", "content": {"name": "Ada"}});
    let instructions =
        json!({"role": "assistant", "content": {"type": "text", "text": "Hello."}, "model": "m"});
    let roots = json!({"roots": [{"uri": "file:///srv/shared"}]});
    [
        (
            "ask",
            "elicitation/create",
            accepted,
            json!({"action": "accept", "name": "Ada"}),
        ),
        (
            "ask",
            "elicitation/create",
            json!({"action": "decline"}),
            json!({"action": "decline"}),
        ),
        (
            "sample",
            "sampling/createMessage",
            instructions,
            json!({"text": "Hello."}),
        ),
        (
            "roots",
            "roots/list",
            roots,
            json!({"uris": ["file:///srv/shared"]}),
        ),
    ]
}

async fn check(sdk: &Sdk) {
    let ports = sdk.start();
    let house = WAYS.iter().fold(House::new(), |house, way| {
        house.config(&sdk.entry(way, &ports, MAY_ASK))
    });
    let gateway = house.serve();
    for way in &WAYS {
        let what = format!("{} over {}", sdk.title, way.title);
        let Some(exception) = sdk.exception(way) else {
            serves(&gateway.url(), way, &what).await;
            continue;
        };
        until(&format!("{what} is switched off"), async || {
            let shown = house.json(&["upstream", "show", way.name]);
            assert_ne!(
                shown["state"], "up",
                "{what} serves now: take it out of the exceptions"
            );
            shown["reason"]
                .as_str()
                .is_some_and(|why| why.contains(exception.found))
        })
        .await;
    }
}

/// Returns the names of the tools of one transport.
fn named_of(way: &Way, tools: &[Value]) -> BTreeSet<String> {
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned());
    names.filter(|name| name.starts_with(way.name)).collect()
}

/// Tries one cell of the matrix.
async fn serves(url: &str, way: &Way, what: &str) {
    let named = |tool: &str| format!("{}_{tool}", way.name);
    let expected: BTreeSet<String> = TOOLS.map(named).into();
    let capabilities = json!({"elicitation": {}, "sampling": {}, "roots": {}});
    until(&format!("{what} is listed"), async || {
        named_of(way, &Modern::new(url).list().await.0) == expected
    })
    .await;
    for caller in Caller::both(url, capabilities).await {
        let what = format!("{what}, {}", caller.era());
        assert_eq!(named_of(way, &caller.tools().await), expected, "{what}");

        let echoed = caller.call(&named("echo"), json!({"text": "hi"})).await;
        assert_eq!(
            (&echoed["structuredContent"], &echoed["isError"]),
            (&json!({"text": "hi"}), &json!(false)),
            "{what}"
        );
        let text: Value =
            serde_json::from_str(echoed["content"][0]["text"].as_str().expect("a text"))
                .expect("JSON");
        assert_eq!(text, json!({"text": "hi"}), "{what}");

        let mut open = caller.begin(&named("slow"), json!({"wait_ms": 0})).await;
        for step in 1..=3 {
            let reply = open.next().await;
            assert_eq!(
                reply["params"],
                json!({"progressToken": "p", "progress": step, "total": 3}),
                "{what}: {reply}"
            );
        }
        let done = open.next().await;
        assert_eq!(
            done["result"]["structuredContent"],
            json!({"steps": 3}),
            "{what}: {done}"
        );

        let cancelled = async || {
            let counted = caller.call(&named("cancelled"), json!({})).await;
            counted["structuredContent"]["calls"]
                .as_u64()
                .unwrap_or_else(|| panic!("{what}: {counted}"))
        };
        let before = cancelled().await;
        let mut open = caller
            .begin(&named("slow"), json!({"wait_ms": 120_000}))
            .await;
        open.next().await;
        caller.cancel(open).await;
        until(
            &format!("{what}: the server is notified of the end"),
            async || cancelled().await == before + 1,
        )
        .await;

        for (tool, method, answer, expected) in answers() {
            let (question, result) = caller.answer(&named(tool), &answer).await;
            assert_eq!(question["method"], method, "{what}: {question}");
            if tool == "ask" {
                let message = question["params"]["message"].as_str().unwrap_or_default();
                assert!(
                    message.starts_with("The server `") && message.ends_with("` asks: Your name?"),
                    "{what}: {question}"
                );
                let schema = &question["params"]["requestedSchema"]["properties"]["name"];
                assert_eq!(schema["type"], "string", "{what}: {question}");
            }
            let mut structured = result["structuredContent"].clone();
            if structured["name"].is_null() {
                structured
                    .as_object_mut()
                    .unwrap_or_else(|| panic!("{what} {tool}: {result}"))
                    .remove("name");
            }
            assert_eq!(structured, expected, "{what} {tool}: {result}");
        }
    }
}

#[tokio::test]
async fn typescript_1_serves_behind_weir() {
    check(&TYPESCRIPT_1).await;
}

#[tokio::test]
async fn typescript_2_serves_behind_weir() {
    check(&TYPESCRIPT_2).await;
}

#[tokio::test]
async fn python_1_serves_behind_weir() {
    check(&PYTHON_1).await;
}

#[tokio::test]
async fn python_2_serves_behind_weir() {
    check(&PYTHON_2).await;
}

#[tokio::test]
async fn rmcp_serves_behind_weir() {
    check(&RMCP).await;
}

/// A legacy server asks in the middle of its call; only a caller that can answer is asked, and only what the server may ask.
async fn asks(tool: &str, capability: &str) -> (Value, Value) {
    let ports = TYPESCRIPT_1.start();
    let [stdio, _, http, _, _] = &WAYS;
    let house = House::new()
        .config(&TYPESCRIPT_1.entry(stdio, &ports, &format!("ask = [\"{capability}\"]")))
        .config(&TYPESCRIPT_1.entry(http, &ports, ""));
    let gateway = house.serve();
    let url = &gateway.url();
    let (may_ask, may_not) = (
        format!("{}_{tool}", stdio.name),
        format!("{}_{tool}", http.name),
    );
    until("both are listed", async || {
        let (tools, _) = Modern::new(url).list().await;
        [&may_ask, &may_not]
            .iter()
            .all(|name| tools.iter().any(|tool| tool["name"] == **name))
    })
    .await;
    let (_, method, answer, expected) = answers()
        .into_iter()
        .find(|(of, ..)| *of == tool)
        .expect("a tool that asks its caller");
    for caller in Caller::both(url, json!({ capability: {} })).await {
        let (question, result) = caller.answer(&may_ask, &answer).await;
        assert_eq!(question["method"], method, "{}: {question}", caller.era());
        assert_eq!(
            result["structuredContent"],
            expected,
            "{}: {result}",
            caller.era()
        );
    }
    let mut heard = Vec::new();
    for caller in Caller::both(url, json!({})).await {
        heard.push(json!([
            caller.call(&may_ask, json!({})).await,
            caller.call(&may_not, json!({})).await
        ]));
    }
    let plain = |result: &Value| {
        json!([
            result["isError"],
            result["structuredContent"],
            result["content"][0]["text"]
        ])
    };
    let of = |at: usize| json!([plain(&heard[at][0]), plain(&heard[at][1])]);
    assert_eq!(of(0), of(1), "callers of both eras hear the same");
    (heard[0][0].clone(), heard[0][1].clone())
}

#[tokio::test]
async fn a_legacy_server_samples_through_weir() {
    let (cannot, may_not) = asks("sample", "sampling").await;
    assert!(
        cannot["isError"] == true && cannot.to_string().contains("declined"),
        "{cannot}"
    );
    assert!(
        may_not["isError"] == true && may_not.to_string().contains("does not offer"),
        "{may_not}"
    );
}

#[tokio::test]
async fn a_legacy_server_reads_roots_through_weir() {
    let (cannot, may_not) = asks("roots", "roots").await;
    assert_eq!(cannot["structuredContent"], json!({"uris": []}), "{cannot}");
    assert!(
        may_not["isError"] == true && may_not.to_string().contains("does not offer"),
        "{may_not}"
    );
}

/// The Python SDK 1.x asks for roots on a stream that belongs to no call. While two calls are open it is unknown whom it
/// asks, and it gets an error instead of an answer that may be wrong.
#[tokio::test]
async fn a_question_that_names_no_call_is_refused_while_several_are_open() {
    let ports = PYTHON_1.start();
    let [_, _, http, _, _] = &WAYS;
    let house = House::new().config(&PYTHON_1.entry(http, &ports, MAY_ASK));
    let gateway = house.serve();
    let named = |tool: &str| format!("{}_{tool}", http.name);
    let url = &gateway.url();
    until("it is listed", async || {
        !Modern::new(url).list().await.0.is_empty()
    })
    .await;
    let [_, caller] = Caller::both(url, json!({"roots": {}})).await;
    let mut open = caller
        .begin(&named("slow"), json!({"wait_ms": 120_000}))
        .await;
    open.next().await;
    let refused = caller.call(&named("roots"), json!({})).await;
    assert!(
        refused["isError"] == true && refused.to_string().contains("names no call"),
        "{refused}"
    );
    caller.cancel(open).await;
    let asked = async || {
        let mut open = caller.begin(&named("roots"), json!({})).await;
        // Until the other call has fully ended, this one is refused.
        open.first()
            .await
            .is_some_and(|message| message["method"] == "roots/list")
    };
    until("it is asked once the other call has ended", asked).await;
}

/// The table of the documentation is the one that the tests above show.
#[test]
fn the_documentation_has_the_matrix() {
    let mut table = String::from("| SDK |");
    WAYS.iter()
        .for_each(|way| table.push_str(&format!(" {} |", way.title)));
    table.push_str(&format!("\n|---|{}\n", "---|".repeat(WAYS.len())));
    for sdk in ALL {
        table.push_str(&format!("| {} |", sdk.title));
        for way in &WAYS {
            let cell = sdk.exception(way).map_or("yes".to_owned(), |exception| {
                format!("no: {}", exception.because)
            });
            table.push_str(&format!(" {cell} |"));
        }
        table.push('\n');
    }
    let path = place::repository().join("docs/upstreams.md");
    let page = fs::read_to_string(&path).expect("the page of other servers");
    let begins = page.find("| SDK |").expect("the page has the table");
    let ends = page[begins..]
        .find("\n\n")
        .map_or(page.len(), |end| begins + end + 1);
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(
            &path,
            format!("{}{table}{}", &page[..begins], &page[ends..]),
        )
        .expect("the page can be written");
        return;
    }
    assert_eq!(&page[begins..ends], table, "WEIR_BLESS=1 writes it");
}
