//! Tests what people see of tools: of a contract before it is submitted, and of all that is served.

use serde_json::{Value, json};
use weir_tests::{Admin, House, Modern, answer_to, http};

use crate::sample;

async fn preview(admin: &Admin, source: &str) -> Value {
    let body = json!({ "source": source }).to_string();
    admin.succeed("POST", "/v1/contracts/preview", body).await
}

fn places(preview: &Value) -> Vec<&str> {
    let problems = preview["problems"].as_array().expect("a list");
    problems
        .iter()
        .map(|problem| problem["place"].as_str().expect("a place"))
        .collect()
}

/// The preview of a text shows what submitting it would do, and changes nothing.
#[tokio::test]
async fn a_preview_says_what_a_submission_does_and_stores_nothing() {
    let house = House::new()
        .sheets()
        .config("[contracts]\nimpact_days = 30")
        .file("data/airports.csv", sample::DATA);
    let gateway = house.serve();
    let admin = Admin::of(&house);

    let first = preview(&admin, sample::CONTRACT).await;
    assert_eq!(first["problems"], json!([]), "{first}");
    assert_eq!(
        (&first["class"], &first["version"], &first["needs"]),
        (&json!("first"), &json!("1.0.0"), &Value::Null)
    );
    let (_, contracts) = admin.ask("GET", "/v1/contracts", "").await;
    assert_eq!(contracts["contracts"], json!([]));

    let submitted = json!({"source": sample::CONTRACT}).to_string();
    assert_eq!(admin.ask("POST", "/v1/contracts", submitted).await.0, 200);
    let (_, shown) = admin.ask("GET", "/v1/contracts/airports", "").await;
    assert_eq!(first["document"], shown["document"]);
    let same = preview(&admin, sample::CONTRACT).await;
    assert_eq!(
        (&same["class"], &same["version"]),
        (&json!("identical"), &json!("1.0.0"))
    );
    let cost = house.json(&["tools", "cost"]);
    let rows = cost["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "(everything)");
    let row = row.expect("a row for everything");
    assert_eq!(
        (&same["bytes"], &same["tokens"]),
        (&row["bytes"], &row["tokens"])
    );

    Modern::new(gateway.url())
        .call("list_airports", json!({"country": "SE"}))
        .await;
    let narrower = sample::CONTRACT.replace(
        "choices: [NO, SE, IS] }\n      - { name: min",
        "choices: [NO, IS] }\n      - { name: min",
    );
    assert_ne!(narrower, sample::CONTRACT);
    let breaking = preview(&admin, &narrower).await;
    assert_eq!(
        (&breaking["class"], &breaking["version"], &breaking["needs"]),
        (&json!("breaking"), &json!("2.0.0"), &json!("operator")),
        "{breaking}"
    );
    assert_eq!(breaking["impact"]["agents"][0]["fail"], 1, "{breaking}");
    assert!(
        breaking["diff"]["items"][0]["witness"].is_object(),
        "{breaking}"
    );
    let (_, after) = admin.ask("GET", "/v1/contracts/airports", "").await;
    assert_eq!(after, shown, "nothing was stored");
}

/// The refusal of a contract is an answer, not an error: with its place, and with the tools, if there are any.
#[tokio::test]
async fn a_preview_names_all_that_refuses_a_contract() {
    let house = sample::house();
    let _gateway = house.serve();
    let admin = Admin::of(&house);

    let wrong = sample::CONTRACT.replace("verb: create", "verb: crate");
    let refused = preview(&admin, &wrong).await;
    assert_eq!(places(&refused), ["/tools/2/verb"]);
    assert_eq!(refused["document"], Value::Null);
    assert!(!places(&preview(&admin, "a: [1").await).is_empty());

    // The contract comes from a file: a submission is refused, but its changes are shown all the same.
    let wider = preview(&admin, &sample::CONTRACT.replace("max: 9000", "max: 12000")).await;
    assert_eq!(places(&wider), ["/contract"]);
    assert_eq!(
        (&wider["class"], &wider["version"]),
        (&json!("compatible"), &json!("1.1.0"))
    );
    let taken = preview(
        &admin,
        &sample::CONTRACT.replace("contract: airports", "contract: others"),
    )
    .await;
    assert_eq!(places(&taken), ["/tools", "/tools", "/tools"]);

    let form =
        "tool: greet\ndescription: Greets a person.\nfields:\n  - { name: who, type: text }\n";
    let bare = preview(&admin, form).await;
    assert_eq!(bare["document"]["tools"][0]["name"], "greet", "{bare}");
    assert_eq!(places(&bare), [""]);

    let away = sample::CONTRACT.replace("airports.csv", "others.csv");
    assert_eq!(preview(&admin, &away).await["document"], Value::Null);
}

/// The route of previews hides no contract of that name.
#[tokio::test]
async fn a_contract_may_be_called_preview() {
    let house = sample::house().file(
        "contracts/preview.yaml",
        sample::CONTRACT.replace("contract: airports", "contract: preview\nprefix: seen"),
    );
    let _gateway = house.serve();
    let (status, shown) = Admin::of(&house)
        .ask("GET", "/v1/contracts/preview", "")
        .await;
    assert_eq!((status, &shown["name"]), (200, &json!("preview")));
}

/// The catalogue lists what is served with its cost, page by page, and what one agent sees of it.
#[tokio::test]
async fn the_catalogue_lists_tools_with_their_cost_and_as_an_agent_sees_them() {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let (status, page) = admin.ask("GET", "/v1/tools", "").await;
    assert_eq!(
        (status, &page["next_cursor"]),
        (200, &Value::Null),
        "{page}"
    );
    let tools = page["tools"].as_array().expect("tools");
    let facts: Vec<_> = tools
        .iter()
        .map(|tool| {
            (
                tool["name"].as_str(),
                tool["verb"].as_str(),
                tool["writes"].as_bool(),
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            (Some("create_airport"), Some("create"), Some(true)),
            (Some("list_airports"), Some("list"), Some(false)),
            (Some("lookup_airport"), Some("lookup"), Some(false)),
        ]
    );
    let (listed, _) = Modern::new(gateway.url()).list().await;
    let shown: Vec<Value> = tools.iter().map(|tool| tool["tool"].clone()).collect();
    assert_eq!(shown, listed, "it is what a client lists");
    assert!(
        tools
            .iter()
            .all(|tool| tool["contract"] == "airports" && tool["version"] == "1.0.0")
    );
    let row = house.json(&["tools", "cost"])["rows"][0].clone();
    let bytes: u64 = tools.iter().filter_map(|tool| tool["bytes"].as_u64()).sum();
    assert_eq!(row["bytes"], bytes + 4, "{row}");
    assert!(tools.iter().all(|tool| tool["tokens"].as_u64() > Some(10)));

    let _ann = house.key(&["--agent", "ann", "--tool", "lookup_airport"]);
    let names = async |query: &str| {
        let page = admin
            .succeed("GET", &format!("/v1/tools?{query}"), "")
            .await;
        let tools = page["tools"].as_array().expect("tools").clone();
        tools
            .into_iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("agent=ann").await, ["lookup_airport"]);
    assert_eq!(names("q=ELEVATION+country").await, ["list_airports"]);
    assert_eq!(names("agent=ann&q=elevation").await, [""; 0]);
    // The cursor is the last name in base64: after `create_airport`.
    assert_eq!(
        names("cursor=Y3JlYXRlX2FpcnBvcnQ").await,
        ["list_airports", "lookup_airport"]
    );
    for (query, refused) in [("agent=none", 404), ("cursor=%3F", 422)] {
        let path = format!("/v1/tools?{query}");
        assert_eq!(admin.ask("GET", &path, "").await.0, refused, "{query}");
    }
}

/// The vocabulary of contract files is for every reader, and editors of text use the schema as it is.
#[tokio::test]
async fn the_form_of_contract_files_is_described() {
    let house = House::new().sheets();
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let viewer = house.succeed(&["admins", "create", "--name", "v", "--role", "viewer"]);
    let get = async |path: &str, key: &str| {
        let request = http().get(format!("{}{path}", admin.url));
        answer_to(request.bearer_auth(key)).await
    };
    for path in ["/v1/form", "/v1/form/schema"] {
        assert_eq!(get(path, "weiradm_no_such").await.status(), 401, "{path}");
    }

    let form: Value = get("/v1/form", viewer.trim())
        .await
        .json()
        .await
        .expect("JSON");
    let number = form["types"]
        .as_array()
        .and_then(|types| types.iter().find(|kind| kind["name"] == "number"));
    let number = number.expect("the type");
    assert_eq!(
        number["columns"],
        json!(["integer", "decimal", "number", "json"])
    );
    assert_eq!(number["keys"][0]["name"], "min");
    let verbs = form["verbs"].as_array().expect("a list").len();
    let matches = form["matches"].as_array().expect("a list").len();
    assert_eq!((verbs, matches), (8, 9));

    let schema = get("/v1/form/schema", viewer.trim()).await;
    assert_eq!(schema.headers()["content-type"], "application/schema+json");
    let schema: Value = schema.json().await.expect("JSON");
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    let keys = &schema["$defs"]["tool"]["properties"];
    assert_eq!(keys["verb"]["enum"].as_array().expect("words").len(), 8);
}

/// The shape of the file is recorded by then, so that nothing describes it again.
#[tokio::test]
async fn formats_of_an_edited_contract_are_tried_on_the_cells() {
    let rows: String = (1..=30)
        .map(|day| format!("{day},{day:02}.03.2026\n"))
        .collect();
    let contract = |shape: &str, words: &str| {
        format!(
            "contract: visits\ncollections:\n  visits:\n    adapter: sheet\n    settings: {{ connection: data, path: visits.csv }}\n    \
             shape: {{ {shape} }}\ntools:\n  - {{ tool: list_visits, description: Lists {words}., verb: list, collection: visits, fields: [] }}\n"
        )
    };
    let house = House::new()
        .sheets()
        .file("data/visits.csv", format!("id,placed\n{rows}"))
        .file("contracts/visits.yaml", contract("", "visits"));
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let wrong = contract("placed: { date: \"%m/%d/%Y\" }", "visits");
    let refused = preview(&admin, &wrong).await;
    assert_eq!(places(&refused), ["/collections/visits/shape/placed"]);
    let message = refused["problems"][0]["message"]
        .as_str()
        .unwrap_or_default();
    assert_eq!(message, "0 of 30 cells fit `%m/%d/%Y`; 30 fit `%d.%m.%Y`");
    house.write("contracts/visits.yaml", &wrong);
    gateway.wait_for_log("0 of 30 cells fit");
    let right = contract("placed: { date: \"%d.%m.%Y\" }", "visits");
    let taken = preview(&admin, &right).await;
    assert!(
        !places(&taken).contains(&"/collections/visits/shape/placed"),
        "{taken}"
    );

    // What is live already is not tried again: the file changed meanwhile, and that is not what is edited.
    let house = House::new()
        .sheets()
        .file("data/visits.csv", format!("id,placed\n{rows}"))
        .file("contracts/visits.yaml", &right);
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    house.write("data/visits.csv", "id,placed\n1,soon\n");
    let other = contract("placed: { date: \"%d.%m.%Y\" }", "all visits");
    let taken = preview(&admin, &other).await;
    assert!(
        !places(&taken).contains(&"/collections/visits/shape/placed"),
        "{taken}"
    );
}
