//! Policies at the boundary: what they hide at every door, what they deny by arguments, what is only recorded, how they are
//! reloaded, and which changes of contracts they stop.

use serde_json::{Value, json};
use weir_tests::{Admin, Answer, House, Legacy, Modern, answer_to, http, place, until, web::Web};

use crate::{audit::records, calls, sample};

const LITTLE: &str = r#"
@id("little")
@message("At most 2 at once.")
forbid(principal, action == Weir::Action::"create_item", resource)
when { context.args.count > 2 };

@id("night-reads")
forbid(principal == Weir::Agent::"night", action in Weir::Action::"call", resource)
unless { resource.read_only };
"#;

fn made(count: i64) -> Value {
    json!({ "id": "1", "name": "one", "count": count })
}

async fn asked(house: &House, method: &str, path: &str, body: &Value) -> Value {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    Admin::of(house).succeed(method, path, body).await
}

async fn names(client: &Modern) -> Vec<String> {
    let (tools, _) = client.list().await;
    let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
    tools.iter().map(name).collect()
}

/// A misspelt key would leave out what it should do without a word: policies, copies of the trail, a pin.
#[tokio::test]
async fn settings_without_an_effect_are_refused_or_logged() {
    for (config, place, message) in [
        (
            "[policy]\nfolder = \"polices\"",
            "/policy/folder",
            "is not a folder that can be read",
        ),
        (
            "[audit]\ncopies_endpoint = \"https://minio.example.com\"",
            "/audit/copies_endpoint",
            "the trail is copied nowhere",
        ),
        (
            "[audit]\ncopies_region = \"eu-central-1\"",
            "/audit/copies_region",
            "the trail is copied nowhere",
        ),
        (
            "[metrics]\ntoken = \"\"",
            "/metrics/token",
            "no scraper can show it",
        ),
    ] {
        let (code, _, err) = sample::house().config(config).run(&["call"]);
        assert!(
            code == 1 && err.contains(place) && err.contains(message),
            "{config}: {code} {err}"
        );
    }
    let house = sample::house()
        .file("polices/none.cedar", "")
        .config("[policy]\nfolder = \"polices\"\n[plugins.sheeet]\nindex_max_mb = 1");
    let gateway = house.serve();
    gateway.wait_for_log("[plugins.sheeet] has no effect: no plugin `sheeet` is loaded");
}

/// A tool that policies take from a caller does not exist for it: in the lists, for calls, and at each door, with the same
/// texts as for a tool that never existed.
#[tokio::test]
async fn what_policies_hide_is_at_no_door() {
    let web = Web::start().await;
    let house = calls::house(&web.base)
        .config(
            "[http]\nforms = true\n[views.all]\ntools = [\"*\"]\n[views.found]\nsearch = true\n",
        )
        .file("policies/items.cedar", LITTLE);
    let gateway = house.serve();
    let (night, day) = (
        house.key(&["--agent", "night"]),
        house.key(&["--agent", "day"]),
    );
    let at = |url: String, key: &str| Modern::with_key(url, key);
    for url in [
        gateway.url(),
        gateway.contract_url("items"),
        gateway.view_url("all"),
    ] {
        assert_eq!(names(&at(url.clone(), &night)).await, ["get_item"]);
        assert_eq!(
            names(&at(url.clone(), &day)).await,
            ["create_item", "get_item"]
        );
        let hidden = at(url.clone(), &night);
        let hidden = hidden
            .ask(
                "tools/call",
                json!({ "name": "create_item", "arguments": made(1) }),
            )
            .await;
        let unknown = at(url, &night);
        let unknown = unknown
            .ask(
                "tools/call",
                json!({ "name": "create_items", "arguments": made(1) }),
            )
            .await;
        assert_eq!(hidden.error_code(), unknown.error_code());
        let plain = |answer: &Answer, name: &str| {
            let message = answer.reply()["error"]["message"].to_string();
            message.replace(name, "NAME")
        };
        assert_eq!(
            plain(&hidden, "create_item"),
            plain(&unknown, "create_items")
        );
    }
    let legacy = Legacy::open_as(gateway.url(), "2025-06-18", Some(&night)).await;
    let listed = legacy.ask("tools/list", json!({})).await;
    assert_eq!(listed.result()["tools"].as_array().map(Vec::len), Some(1));
    let found = at(gateway.view_url("found"), &night)
        .call("find_tools", json!({ "query": "item" }))
        .await;
    assert!(!found.to_string().contains("create_item"), "{found}");
    let root = gateway.url().replace("/mcp", "");
    let http = http();
    let asked = async |path: &str, key: &str| {
        let answer = answer_to(http.get(format!("{root}{path}")).bearer_auth(key)).await;
        let status = answer.status().as_u16();
        (status, answer.text().await.expect("a text"))
    };
    for path in ["/llms.txt", "/rest/items/openapi.json", "/forms/items"] {
        let (status, text) = asked(path, &day).await;
        assert!(status == 200 && text.contains("create_item"), "{path}");
        let (status, text) = asked(path, &night).await;
        assert!(status == 200 && !text.contains("create_item"), "{path}");
    }
    let hidden = asked("/forms/items/create_item", &night).await;
    let unknown = asked("/forms/items/create_items", &night).await;
    assert_eq!(hidden.0, unknown.0);
    let posted = async |tool: &str| {
        let answer = http
            .post(format!("{root}/rest/items/{tool}"))
            .bearer_auth(&night)
            .json(&made(1));
        answer_to(answer).await.status().as_u16()
    };
    assert_eq!(posted("create_item").await, posted("create_items").await);
    assert_eq!(posted("create_item").await, 404);
}

/// A call that its arguments do not allow reaches no source; the caller reads the message of the policy, and the trail has its id.
#[tokio::test]
async fn arguments_decide_each_call() {
    let web = Web::start().await;
    let house = calls::house(&web.base).file("policies/items.cedar", LITTLE);
    let (_gateway, client) = house.serve_client();
    let denied = client.call("create_item", made(3)).await;
    let error = &denied["structuredContent"];
    assert_eq!(denied["isError"], true);
    assert_eq!(error["code"], "forbidden");
    assert_eq!(error["message"], "At most 2 at once.");
    assert_eq!(error["reason"], "denied_by_policy");
    // What is not valid was not decided.
    let invalid = client.call("create_item", made(9)).await;
    assert_eq!(invalid["structuredContent"]["code"], "invalid_arguments");
    assert_eq!(web.requests(), 0);
    let allowed = client.call("create_item", made(2)).await;
    assert_ne!(allowed["structuredContent"]["code"], "forbidden");
    let calls = records(&house, &["--tool", "create_item"]);
    let mut denials = calls.iter().filter(|record| !record["policy"].is_null());
    let denial = denials.next().expect("it is recorded");
    assert!(denials.next().is_none(), "{calls:?}");
    assert_eq!(
        denial["policy"],
        json!({ "decision": "denied", "policies": ["little"] })
    );
    let trial = json!({ "tool": "create_item", "arguments": made(3), "dry_run": true });
    let tried = asked(&house, "POST", "/v1/calls", &trial).await;
    assert_eq!(
        tried["policy"],
        json!({ "decision": "denied", "policies": ["little"] })
    );
}

#[tokio::test]
async fn audit_mode_records_and_lets_pass() {
    let web = Web::start().await;
    let house = calls::house(&web.base)
        .config("[policy]\nmode = \"audit\"\n")
        .file("policies/items.cedar", LITTLE);
    let gateway = house.serve();
    let night = house.key(&["--agent", "night"]);
    let client = Modern::with_key(gateway.url(), &night);
    assert_eq!(names(&client).await, ["create_item", "get_item"]);
    let passed = client.call("create_item", made(1)).await;
    assert_ne!(passed["structuredContent"]["code"], "forbidden");
    let calls = records(&house, &["--tool", "create_item"]);
    let record = calls
        .iter()
        .filter(|record| record["kind"] == "call")
        .find(|record| !record["policy"].is_null())
        .expect("it is recorded");
    assert_eq!(
        record["policy"],
        json!({ "decision": "audited", "policies": ["night-reads"] })
    );
}

/// Policies are reloaded while serving; a faulty file leaves the previous one in force, and its mistake is reported
/// with its place.
#[tokio::test]
async fn policies_are_taken_over_while_serving() {
    let web = Web::start().await;
    let house = calls::house(&web.base);
    let (gateway, client) = house.serve_client();
    let forbidden = async || {
        let answer = client.call("create_item", made(3)).await;
        answer["structuredContent"]["code"] == "forbidden"
    };
    assert!(!forbidden().await);
    house.write("policies/items.cedar", LITTLE);
    until("the policies are in force", &forbidden).await;
    house.write("policies/items.cedar", LITTLE.replace("count", "cuont"));
    gateway.wait_for_log("did you mean `count`?");
    assert!(forbidden().await, "the file before is in force");
    let status = asked(&house, "GET", "/v1/policy", &Value::Null).await;
    assert_eq!(status["problems"][0]["place"], "little");
    assert_eq!(status["policies"].as_array().map(Vec::len), Some(2));
    house.write("policies/items.cedar", LITTLE.replace("> 2", "> 4"));
    until("the edited one is in force", async || !forbidden().await).await;
    let (code, _, stderr) = {
        let house = calls::house(&web.base).file("policies/items.cedar", "forbid(principal");
        house.run(&["serve", "--listen", "127.0.0.1:0"])
    };
    assert_ne!(code, 0);
    assert!(stderr.contains("items.cedar:1"), "{stderr}");
}

/// A change that takes away what a policy reads is refused, at the preview and at the gate, with the policy's place.
#[tokio::test]
async fn a_change_that_breaks_a_policy_is_refused() {
    let web = Web::start().await;
    let house = calls::house(&web.base).file("policies/items.cedar", LITTLE);
    let gateway = house.serve();
    let renamed = calls::ITEMS.replace("count", "amount");
    let text = json!({ "source": renamed });
    let preview = asked(&house, "POST", "/v1/contracts/preview", &text).await;
    let problems = preview["problems"].as_array().expect("problems").clone();
    let broken = problems
        .iter()
        .find(|problem| problem["place"] == "little")
        .unwrap_or_else(|| panic!("{preview}"));
    assert!(
        broken["file"]
            .as_str()
            .expect("a file")
            .ends_with("items.cedar")
    );
    assert!(
        broken["message"]
            .as_str()
            .expect("a message")
            .contains("context.args.count")
    );
    assert!(broken["line"].is_u64());
    house.write("contracts/items.yaml", &renamed);
    gateway.wait_for_log("context.args.count");
    let client = Modern::new(gateway.url());
    let denied = client.call("create_item", made(3)).await;
    assert_eq!(denied["structuredContent"]["code"], "forbidden");
    // Both together are right, and come into force together.
    house.write(
        "policies/items.cedar",
        LITTLE.replace("args.count", "args.amount"),
    );
    let mut draft = Value::Null;
    until("the change is held", async || {
        draft = house.waiting_draft("items");
        !draft.is_null()
    })
    .await;
    house.agree(&draft);
    let amount = json!({ "id": "1", "name": "one", "amount": 3 });
    until("both are in force", async || {
        let answer = client.call("create_item", amount.clone()).await;
        answer["structuredContent"]["message"] == "At most 2 at once."
    })
    .await;
}

/// The worked example of the documentation, with its table of cases.
#[test]
fn the_example_of_the_documentation_is_true() {
    let page = std::fs::read_to_string(place::repository().join("docs/policy.md"))
        .expect("the page is there");
    let block = |heading: &str| {
        let (_, rest) = page.split_once(heading).expect("the heading is there");
        let (_, rest) = rest.split_once('\n').expect("a line");
        let (block, _) = rest.split_once("```").expect("it ends");
        block.to_owned()
    };
    let (contract, cedar, cases) = (
        block("```yaml contract"),
        block("```cedar"),
        block("```yaml cases"),
    );
    for (mode, wanted) in [("enforce", 0), ("audit", 1)] {
        let house = House::new()
            .sheets()
            .config(&format!("[policy]\nmode = \"{mode}\"\n"))
            .file("data/refunds.csv", "order,amount,reason\no1,5.00,late\n")
            .file("contracts/refunds.yaml", &contract)
            .file("policies/refunds.cedar", &cedar)
            .file("cases.yaml", &cases);
        house.succeed(&["policy", "check"]);
        let cases = house.path().join("cases.yaml").display().to_string();
        let (code, stdout, stderr) = house.run(&["policy", "test", &cases]);
        assert_eq!(code, wanted, "{mode}: {stdout}{stderr}");
        if mode == "audit" {
            assert!(stdout.contains("audit by refund-limit"), "{stdout}");
        }
        let (_, schema, _) = house.run(&["policy", "schema"]);
        assert!(schema.contains("\"amount\": decimal"), "{schema}");
    }
}
