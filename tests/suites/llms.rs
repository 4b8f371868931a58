//! The lists in words: what a model or a person reads at `/llms.txt`.

use serde_json::json;
use weir_tests::{House, Modern, answer_to, client::http, place};

use crate::sample;

fn house() -> House {
    let house = sample::house().own_plugins(&["sheet"]);
    house.write(
        "plugins/tools-js.wasm",
        std::fs::read(place::guest("tools-js")).expect("a guest can be read"),
    );
    house
}

async fn get(url: &str, key: Option<&str>) -> (u16, String, String) {
    let request = http().get(url);
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let answer = answer_to(request).await;
    let kind = answer
        .headers()
        .get("content-type")
        .map(|kind| kind.to_str().expect("text").to_owned());
    (
        answer.status().as_u16(),
        kind.unwrap_or_default(),
        answer.text().await.expect("a body"),
    )
}

#[tokio::test]
async fn each_endpoint_has_its_tools_in_words_the_same_each_time() {
    let house = house();
    let gateway = house.serve();
    let (status, kind, all) = get(&format!("{}/llms.txt", gateway.base), None).await;
    assert_eq!(
        (status, kind.as_str()),
        (200, "text/plain; charset=utf-8"),
        "{all}"
    );
    let page = answer_to(http().get(format!("{}/llms.txt", gateway.base))).await;
    assert_eq!(page.headers()["x-content-type-options"], "nosniff");
    let (code, help, err) = house.run(&["call", "lookup_airport", "--help"]);
    assert!(
        code == 0 && help.starts_with("Look up an airport\n"),
        "{help}{err}"
    );
    let (listed, _) = Modern::new(gateway.url()).list().await;
    for tool in &listed {
        let name = tool["name"].as_str().expect("a name");
        assert!(all.contains(&format!("\n### {name}\n")), "{name}: {all}");
    }
    for message in [
        "# weir\n",
        "### lookup_airport\n\n**Look up an airport**\n",
        "## tools-js 1.0.0\n",
        "- `environment` (string; required; at least 1 character): Target environment\n",
        "- `version` (string; by default \"latest\"): Version or image tag.\n",
        "    weir call deploy --environment … --service …\n",
        "It only reads.\n",
    ] {
        assert!(all.contains(message), "{message}: {all}");
    }
    let (status, _, one) = get(
        &format!("{}/llms.txt", gateway.contract_url("tools-js")),
        None,
    )
    .await;
    assert!(
        status == 200 && one.contains("### deploy") && !one.contains("lookup_airport"),
        "{one}"
    );
    assert_eq!(
        get(
            &format!("{}/llms.txt", gateway.contract_url("nothing")),
            None
        )
        .await
        .0,
        404
    );

    let url = gateway.url();
    assert_eq!(
        house.succeed(&["tools", "llms", "--url", &url]),
        all.trim_end()
    );
    assert_eq!(
        house.succeed(&["tools", "llms", "--url", &gateway.contract_url("tools-js")]),
        one.trim_end()
    );
    assert_eq!(house.succeed(&["tools", "llms"]), all.trim_end());
    assert_eq!(
        house.succeed(&["tools", "llms", "tools-js"]),
        one.trim_end()
    );
    drop(gateway);
    let again = house.serve();
    assert_eq!(
        get(&format!("{}/llms.txt", again.base), None).await.2,
        all,
        "a restart says the same"
    );
}

#[tokio::test]
async fn a_caller_reads_of_what_it_may_see_alone() {
    let house = house();
    let gateway = house.serve();
    let page = format!("{}/llms.txt", gateway.base);
    let everything = house.key(&["--agent", "ann"]);
    let some = house.key(&["--agent", "bob", "--contract", "tools-js"]);
    let (status, _, refused) = get(&page, None).await;
    assert_eq!(status, 401);
    assert!(!refused.contains("deploy"), "{refused}");
    let (_, _, all) = get(&page, Some(&everything)).await;
    assert!(
        all.contains("### deploy") && all.contains("lookup_airport"),
        "{all}"
    );
    let (_, _, seen) = get(&page, Some(&some)).await;
    assert!(
        seen.contains("### deploy") && !seen.contains("airport"),
        "{seen}"
    );
    let tools = Modern::with_key(gateway.url(), &some)
        .ask("tools/list", json!({}))
        .await;
    let count = tools.result()["tools"].as_array().expect("tools").len();
    assert!(seen.contains(&format!("> {count} tools,")), "{seen}");
    let hidden = format!("{}/llms.txt", gateway.contract_url("airports"));
    assert_eq!(
        get(&hidden, Some(&some)).await.0,
        404,
        "hidden and unknown cannot differ"
    );

    let foreign = answer_to(
        http()
            .get(&page)
            .bearer_auth(&everything)
            .header("host", "evil.example"),
    )
    .await;
    assert_eq!(foreign.status(), 403);
    let posted = answer_to(http().post(&page).bearer_auth(&everything)).await;
    assert_eq!(posted.status(), 405);
}

/// A page counts as a request of its agent, as everywhere.
#[tokio::test]
async fn a_page_takes_from_the_rate_of_its_agent() {
    let house = house();
    let gateway = house.serve();
    let page = format!("{}/llms.txt", gateway.base);
    let key = house.key(&["--agent", "ann", "--rate", "1/hour"]);
    assert_eq!(get(&page, Some(&key)).await.0, 200);
    let refused = answer_to(http().get(&page).bearer_auth(&key)).await;
    assert_eq!(refused.status(), 429);
    let wait = refused
        .headers()
        .get("retry-after")
        .and_then(|wait| wait.to_str().ok()?.parse::<u32>().ok());
    assert!(wait.is_some_and(|seconds| seconds > 0), "{wait:?}");
}

/// The verbs and arguments that ask about many records are where any tool is: in words, as an API, as a form, in a search.
#[tokio::test]
async fn questions_about_many_records_are_seen_everywhere() {
    let house = House::new()
        .config("[http]\nforms = true\n[views.find]\nsearch = true")
        .sheets()
        .file("data/orders.csv", "id,city,total\n1,Oslo,5\n2,Rome,7\n")
        .file(
            "contracts/orders.yaml",
            "contract: orders\ncollections:\n  orders: { adapter: sheet, settings: { connection: data, path: orders.csv } }\ntools:\n  \
             - { tool: list_orders, description: Lists orders., verb: list, collection: orders, order_by: [total], columns: [city], \
             with_total: true, fields: [] }\n  - { tool: count_orders, description: Returns how many orders there are., verb: count, \
             collection: orders, fields: [] }\n  - { tool: summarize_orders, description: Returns what orders come to., verb: summarize, \
             collection: orders, group_by: [city], measures: [\"sum(total)\"], fields: [] }\n",
        );
    let gateway = house.serve();
    let (_, _, words) = get(&format!("{}/llms.txt", gateway.base), None).await;
    let api = gateway.url().replace("/mcp", "/rest/orders/openapi.json");
    let (_, _, api) = get(&api, None).await;
    let mut forms = String::new();
    for tool in ["list_orders", "count_orders", "summarize_orders"] {
        let form = gateway
            .url()
            .replace("/mcp", &format!("/forms/orders/{tool}"));
        let (status, _, page) = get(&form, None).await;
        assert_eq!(status, 200, "{page}");
        forms.push_str(&page);
    }
    for (place, text) in [("llms.txt", &words), ("OpenAPI", &api), ("forms", &forms)] {
        for named in [
            "count_orders",
            "summarize_orders",
            "order_by",
            "-total",
            "columns",
            "with_total",
            "group_by",
            "measures",
            "sum(total)",
            "having",
        ] {
            assert!(
                text.contains(named),
                "{place} does not name {named}: {text}"
            );
        }
    }
    let client = Modern::new(gateway.view_url("find"));
    let found = client
        .call("find_tools", json!({ "query": "order by total" }))
        .await;
    assert!(found.to_string().contains("list_orders"), "{found}");
}
