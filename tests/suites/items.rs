//! Prompts and resources of other servers: what is listed to whom, and the outcome of requesting one.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{
    Answer, Events, Gateway, House, Legacy, Modern, foreign, place,
    strangers::{STRANGERS, hostile},
    until,
};

use crate::{
    sample,
    upstreams::{ask_for, entry, publish, trusted},
};

/// A client of one era; both are asked alike.
enum Client {
    Modern(Modern),
    Legacy(Legacy),
}

impl Client {
    async fn both(gateway: &Gateway) -> [Self; 2] {
        [
            Self::Modern(Modern::new(gateway.url())),
            Self::Legacy(Legacy::open(gateway.url(), "2025-11-25").await),
        ]
    }

    fn is_modern(&self) -> bool {
        matches!(self, Self::Modern(_))
    }

    async fn ask(&self, method: &str, params: Value) -> Answer {
        match self {
            Self::Modern(client) => client.ask(method, params).await,
            Self::Legacy(client) => client.ask(method, params).await,
        }
    }

    async fn get(&self, prompt: &str, arguments: Value) -> Answer {
        self.ask(
            "prompts/get",
            json!({"name": prompt, "arguments": arguments}),
        )
        .await
    }

    async fn read(&self, uri: &str) -> Answer {
        self.ask("resources/read", json!({ "uri": uri })).await
    }

    /// Returns the keys of a list, over all its pages.
    async fn keys(&self, method: &str, member: &str, key: &str) -> Vec<String> {
        let (mut keys, mut params) = (Vec::new(), json!({}));
        loop {
            let answer = self.ask(method, params).await;
            let page = answer.result();
            let entries = page[member]
                .as_array()
                .unwrap_or_else(|| panic!("no list: {page}"));
            keys.extend(
                entries
                    .iter()
                    .map(|entry| entry[key].as_str().expect("a key").to_owned()),
            );
            match page.get("nextCursor") {
                None => return keys,
                Some(cursor) => params = json!({ "cursor": cursor }),
            }
        }
    }

    async fn resources(&self) -> Vec<String> {
        self.keys("resources/list", "resources", "uri").await
    }

    async fn prompts(&self) -> Vec<String> {
        self.keys("prompts/list", "prompts", "name").await
    }
}

fn noted(folder: &Path, uris: &str) -> String {
    let file = folder.join("notes");
    fs::write(&file, uris).expect("a file");
    file.to_str().expect("UTF-8").to_owned()
}

/// Makes a house with a server of prompts and notes, trusted at the first look.
fn house(behaviour: &str, notes: &str, more: &str) -> House {
    House::new().config(&(trusted("shelf", &hostile(&[behaviour, notes])) + more))
}

async fn served(gateway: &Gateway) -> [Client; 2] {
    let clients = Client::both(gateway).await;
    until("its prompts are listed", async || {
        clients[0].prompts().await.len() == 4
    })
    .await;
    clients
}

#[tokio::test]
async fn prompts_and_resources_of_a_server_are_listed_and_asked_for_in_both_eras() {
    let scratch = tempfile::tempdir().expect("a folder");
    for behaviour in ["items", "items-legacy"] {
        let notes = noted(scratch.path(), "note://2 note://1 note://3");
        let house = house(behaviour, &notes, "[http]\npage_size = 2\n");
        let gateway = house.serve();
        for client in served(&gateway).await {
            let era = if client.is_modern() {
                "modern"
            } else {
                "legacy"
            };
            assert_eq!(
                client.prompts().await,
                [
                    "shelf_greet",
                    "shelf_lie",
                    "shelf_question",
                    "shelf_with_a_note"
                ],
                "{era}"
            );
            let uris = client.resources().await;
            assert_eq!(
                uris,
                ["shelf+note://1", "shelf+note://2", "shelf+note://3"],
                "{behaviour} {era}"
            );
            if client.is_modern() {
                let sessions = house.json(&["upstream", "show", "shelf"])["sessions"].take();
                assert_eq!(sessions, 1, "a list is no reason to start a second process");
            }
            let templates = client
                .keys(
                    "resources/templates/list",
                    "resourceTemplates",
                    "uriTemplate",
                )
                .await;
            assert_eq!(templates, ["shelf+note://by/{id}"], "{era}");

            let greeting = client.get("shelf_greet", json!({"who": "Ada"})).await;
            let result = greeting.result();
            assert_eq!(
                result["messages"][0]["content"]["text"], r#"{"who": "Ada"}"#,
                "{era}: {result}"
            );
            assert_eq!(
                (&result["description"], &result["_meta"]["own"]),
                (&json!("A greeting."), &json!(1))
            );
            assert_ne!(
                result["_meta"]["dev.weir/receipt"], "x",
                "no one speaks in our name"
            );
            let note = client.get("shelf_with_a_note", json!({})).await;
            let resource = &note.result()["messages"][0]["content"]["resource"];
            assert_eq!(
                (&resource["uri"], &resource["text"]),
                (&json!("shelf+note://1"), &json!("see note://1"))
            );
            for uri in ["note://1", "note://by/7", "note://somewhere/else"] {
                let read = client.read(&format!("shelf+{uri}")).await;
                let content = &read.result()["contents"][0];
                assert_eq!(content["uri"], format!("shelf+{uri}"), "{era}");
                assert_eq!(content["text"], format!("this is {uri}"), "{era}");
            }
            // These are asked for wrongly, or answered wrongly.
            let unknown = if client.is_modern() { -32602 } else { -32002 };
            for (uri, code) in [
                ("note://1", unknown),
                ("other+note://1", unknown),
                ("shelf+note://empty", unknown),
                ("shelf+note://gone", unknown),
                ("shelf+note://lie", -32603),
            ] {
                assert_eq!(client.read(uri).await.error_code(), code, "{era} {uri}");
            }
            for (prompt, arguments, code) in [
                ("greet", json!({"who": "Ada"}), -32602),
                ("shelf_greet", json!({}), -32602),
                ("shelf_greet", json!({"who": 1}), -32602),
                ("shelf_greet", json!({"who": "Ada", "x": "y"}), -32602),
                ("shelf_lie", json!({}), -32603),
            ] {
                assert_eq!(
                    client.get(prompt, arguments.clone()).await.error_code(),
                    code,
                    "{era} {prompt} {arguments}"
                );
            }
            let missing = client.get("shelf_greet", json!({})).await;
            assert_eq!(
                missing.reply()["error"]["data"]["field"],
                "who",
                "{missing:?}"
            );
        }
        let (_, trail, _) = house.run(&["audit", "query", "--tool", "shelf_greet", "--json"]);
        assert!(
            trail.contains(r#""item":"prompt""#) && trail.contains(r#""upstream":"shelf""#),
            "{trail}"
        );
        let (_, trail, _) =
            house.run(&["audit", "query", "--tool", "shelf+note://by/{id}", "--json"]);
        assert!(trail.contains(r#""item":"resource""#), "{trail}");
    }
}

/// Today's SDKs report it by −32602 with a text, in either era. A caller receives the code of its own revision.
#[tokio::test]
async fn a_resource_that_a_server_does_not_have_is_unknown_as_the_callers_revision_has_it() {
    let scratch = tempfile::tempdir().expect("a folder");
    let notes = noted(scratch.path(), "note://1");
    let house = house("items", &notes, "");
    let gateway = house.serve();
    for client in served(&gateway).await {
        let unknown = if client.is_modern() { -32602 } else { -32002 };
        for own in ["missing", "nowhere", "unheard", "zero"] {
            let uri = format!("shelf+note://{own}");
            let missing = client.read(&uri).await;
            assert_eq!(missing.error_code(), unknown, "{missing:?}");
            assert_eq!(missing.reply()["error"]["data"]["uri"], uri);
        }
        let wrong = client.read("shelf+note://wrong").await;
        assert_eq!(wrong.error_code(), -32602, "{wrong:?}");
        assert_eq!(
            wrong.reply()["error"]["message"],
            "page 9 of a note with two pages"
        );
    }
}

#[tokio::test]
async fn a_prompt_asks_its_caller_back_and_the_state_stays_sealed() {
    let scratch = tempfile::tempdir().expect("a folder");
    let house = house(
        "items",
        &noted(scratch.path(), "note://1"),
        "ask = [\"elicitation\"]\n",
    );
    let gateway = house.serve();
    served(&gateway).await;
    let client = Modern::new(gateway.url());
    let asked =
        ask_for(&client, "prompts/get", json!({"name": "shelf_question"})).await["result"].clone();
    assert_eq!(
        asked["inputRequests"]["sure"]["params"]["message"], "The server `shelf` asks: Sure?",
        "{asked}"
    );
    let state = asked["requestState"].as_str().expect("a state");
    assert!(!asked.to_string().contains("own state"), "{asked}");
    let answered = |name: &str| {
        let answers = json!({"sure": {"action": "accept", "content": {"sure": true}}});
        json!({"name": name, "inputResponses": answers, "requestState": state})
    };
    let done = ask_for(&client, "prompts/get", answered("shelf_question")).await;
    let text = done["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{done}"));
    let heard: Value = serde_json::from_str(text).expect("what the server heard");
    assert_eq!(
        (&heard[0]["sure"]["action"], &heard[1]),
        (&json!("accept"), &json!("the server's own state"))
    );
    let other = ask_for(&client, "prompts/get", answered("shelf_with_a_note")).await;
    assert_eq!(other["error"]["code"], -32602, "another prompt: {other}");
    let cannot = client
        .ask("prompts/get", json!({"name": "shelf_question"}))
        .await;
    assert_eq!(
        cannot.reply()["error"]["data"]["reason"],
        "client_cannot_be_asked",
        "{cannot:?}"
    );
}

#[tokio::test]
async fn an_argument_is_completed_by_the_server_in_its_own_names() {
    let scratch = tempfile::tempdir().expect("a folder");
    let house = house("items", &noted(scratch.path(), "note://1"), "");
    let gateway = house.serve();
    for client in served(&gateway).await {
        let complete = async |reference: Value| {
            let argument = json!({"name": "id", "value": "x"});
            let context = json!({"arguments": {"who": "Ada"}});
            client
                .ask(
                    "completion/complete",
                    json!({"ref": reference, "argument": argument, "context": context}),
                )
                .await
        };
        for (reference, own) in [
            (
                json!({"type": "ref/prompt", "name": "shelf_greet"}),
                json!({"type": "ref/prompt", "name": "greet"}),
            ),
            (
                json!({"type": "ref/resource", "uri": "shelf+note://by/{id}"}),
                json!({"type": "ref/resource", "uri": "note://by/{id}"}),
            ),
        ] {
            let answer = complete(reference).await;
            let completion = &answer.result()["completion"];
            let sent = |at: usize| -> Value {
                serde_json::from_str(completion["values"][at].as_str().expect("a text"))
                    .expect("what was sent")
            };
            assert_eq!(
                (sent(0), sent(1)),
                (own, json!({"name": "id", "value": "x"}))
            );
            assert_eq!(sent(2), json!({"arguments": {"who": "Ada"}}));
            assert_eq!(
                completion["values"].as_array().map(Vec::len),
                Some(100),
                "{completion}"
            );
            assert_eq!(completion["hasMore"], true);
        }
        for wrong in [
            json!({"type": "ref/prompt", "name": "greet"}),
            json!({"type": "ref/tool", "name": "x"}),
            json!({}),
        ] {
            assert_eq!(complete(wrong).await.error_code(), -32602);
        }
    }
}

#[tokio::test]
async fn complaint_21_one_uri_of_two_servers_is_read_from_each() {
    let scratch = tempfile::tempdir().expect("a folder");
    let notes = ["here", "there"].map(|name| {
        let folder = scratch.path().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        noted(&folder, "note://whose")
    });
    let [here, there] = &notes;
    let house = house(
        "items",
        here,
        &trusted("other", &hostile(&["items", there])),
    );
    let gateway = house.serve();
    for client in Client::both(&gateway).await {
        until("both are listed", async || {
            client.resources().await == ["other+note://whose", "shelf+note://whose"]
        })
        .await;
        for (name, notes) in [("shelf", here), ("other", there)] {
            let answer = client.read(&format!("{name}+note://whose")).await;
            assert_eq!(
                answer.result()["contents"][0]["text"],
                format!("of {notes}"),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn resources_come_and_go_and_a_server_that_stalls_costs_the_others_nothing() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (here, there) = (scratch.path().join("here"), scratch.path().join("there"));
    fs::create_dir_all(&here).expect("a folder");
    fs::create_dir_all(&there).expect("a folder");
    let notes = noted(&here, "note://1");
    let house = house(
        "items",
        &notes,
        &trusted(
            "other",
            &hostile(&["items", &noted(&there, "note://1 note://9")]),
        ),
    );
    let gateway = house.serve();
    let client = Client::Modern(Modern::new(gateway.url()));
    let both = ["other+note://1", "other+note://9", "shelf+note://1"];
    until("both are listed", async || client.resources().await == both).await;
    noted(&here, "note://1 note://new");
    assert_eq!(
        client.resources().await,
        [&both[..], &["shelf+note://new"]].concat()
    );
    noted(&there, "stall");
    let began = Instant::now();
    assert_eq!(
        client.resources().await,
        ["shelf+note://1", "shelf+note://new"]
    );
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_is_pinned_or_left_out_is_not_read_by_another_way() {
    let scratch = tempfile::tempdir().expect("a folder");
    let notes = noted(scratch.path(), "note://1 note://2");
    let pinned = house("items", &notes, "resources = \"pinned\"\n");
    let gateway = pinned.serve();
    let [client, _] = served(&gateway).await;
    noted(scratch.path(), "note://1 note://2 note://3");
    assert_eq!(
        client.resources().await,
        ["shelf+note://1", "shelf+note://2"]
    );
    assert_eq!(
        client.read("shelf+note://2").await.result()["contents"][0]["text"],
        "this is note://2"
    );
    assert_eq!(
        client.read("shelf+note://by/7").await.result()["contents"][0]["text"],
        "this is note://by/7"
    );
    for elsewhere in ["shelf+note://3", "shelf+note://by/7/8"] {
        assert_eq!(
            client.read(elsewhere).await.error_code(),
            -32602,
            "{elsewhere}"
        );
    }
    drop(gateway);

    let overlay =
        "contract: shelf\nupstream: shelf\ntake: [\"*\"]\nleave: [\"note://2\", \"lie\"]\n";
    let house = house("items", &notes, "overlay = \"shelf.yaml\"\n").file("shelf.yaml", overlay);
    let gateway = house.serve();
    let client = Client::Modern(Modern::new(gateway.url()));
    let left = ["shelf+note://1", "shelf+note://3"];
    until("what is taken is listed", async || {
        client.resources().await == left
    })
    .await;
    assert_eq!(
        client.prompts().await,
        ["shelf_greet", "shelf_question", "shelf_with_a_note"]
    );
    assert_eq!(
        client.read("shelf+note://3").await.result()["contents"][0]["text"],
        "this is note://3"
    );
    for uri in ["shelf+note://2", "shelf+note://other"] {
        assert_eq!(client.read(uri).await.error_code(), -32602, "{uri}");
    }
    assert_eq!(
        client.get("shelf_lie", json!({})).await.error_code(),
        -32602
    );
}

#[tokio::test]
async fn what_is_published_is_told_for_each_kind_of_list() {
    let scratch = tempfile::tempdir().expect("a folder");
    let words = hostile(&["items", &noted(scratch.path(), "note://1")]);
    let house = House::new().config(&entry("shelf", &words, ""));
    let gateway = house.serve();
    let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
    let mut every = Events::open(legacy.stream()).await;
    let wanted =
        json!({"notifications": {"promptsListChanged": true, "resourcesListChanged": true}});
    let mut some =
        Events::open(Modern::new(gateway.url()).request("subscriptions/listen", wanted.clone()))
            .await;
    let limit = Duration::from_secs(20);
    let accepted = some.next(limit).await.expect("an acknowledgement");
    assert_eq!(accepted["params"]["notifications"], wanted["notifications"]);
    publish(&house, "shelf").await;
    let named = |kind: &str| format!("notifications/{kind}/list_changed");
    for kind in ["tools", "prompts", "resources"] {
        assert_eq!(
            every.next(limit).await.expect("the client is notified")["method"],
            named(kind)
        );
    }
    for kind in ["prompts", "resources"] {
        assert_eq!(
            some.next(limit).await.expect("the client is notified")["method"],
            named(kind)
        );
    }
    assert!(
        some.next(Duration::from_secs(1)).await.is_none(),
        "no more than it asked for"
    );
}

#[tokio::test]
async fn news_of_a_resource_reaches_those_who_subscribed_to_it() {
    for behaviour in ["items", "items-legacy"] {
        let scratch = tempfile::tempdir().expect("a folder");
        let house = house(behaviour, &noted(scratch.path(), "note://1"), "");
        let gateway = house.serve();
        served(&gateway).await;
        let limit = Duration::from_secs(20);
        let wanted = json!({"notifications": {"resourceSubscriptions": ["shelf+note://1", "nowhere+note://1"]}});
        let mut news =
            Events::open(Modern::new(gateway.url()).request("subscriptions/listen", wanted)).await;
        let accepted = news.next(limit).await.expect("an acknowledgement");
        let accepted = &accepted["params"]["notifications"];
        assert_eq!(
            *accepted,
            json!({"resourceSubscriptions": ["shelf+note://1"]}),
            "what is not there is left out"
        );
        let answer = news.next(limit).await.expect("the client is notified");
        assert_eq!(
            answer["method"], "notifications/resources/updated",
            "{behaviour}: {answer}"
        );
        assert_eq!(answer["params"]["uri"], "shelf+note://1");
    }
}

#[tokio::test]
async fn news_of_a_list_that_is_not_pinned_reaches_those_who_listen() {
    for behaviour in ["items", "items-legacy"] {
        let scratch = tempfile::tempdir().expect("a folder");
        let house = house(behaviour, &noted(scratch.path(), "note://1"), "");
        let gateway = house.serve();
        let [client, _] = served(&gateway).await;
        let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
        let mut every = Events::open(legacy.stream()).await;
        let wanted = json!({"notifications": {"resourcesListChanged": true}});
        let listening = Modern::new(gateway.url()).request("subscriptions/listen", wanted);
        let mut some = Events::open(listening).await;
        let limit = Duration::from_secs(60);
        some.next(limit).await.expect("an acknowledgement");
        noted(scratch.path(), "note://1 note://2");
        let greeting = client.get("shelf_greet", json!({"who": "news"})).await;
        greeting.result();
        for listener in [&mut every, &mut some] {
            let news = listener.next(limit).await.expect("the client is notified");
            assert_eq!(news["method"], "notifications/resources/list_changed");
        }
        assert_eq!(
            client.resources().await,
            ["shelf+note://1", "shelf+note://2"]
        );
    }
}

#[tokio::test]
async fn what_the_maker_of_an_item_does_not_declare_is_refused_with_the_reason() {
    let scratch = tempfile::tempdir().expect("a folder");
    let published = sample::CONTRACT.replace(
        "    verb: lookup\n",
        "    verb: lookup\n    resource: true\n",
    );
    let notes = noted(scratch.path(), "note://1");
    let house = House::new()
        .sheets()
        .file("contracts/airports.yaml", &published)
        .file("data/airports.csv", sample::DATA)
        .config(&trusted("shelf", &hostile(&["items-quiet", &notes])));
    let gateway = house.serve();
    let clients = served(&gateway).await;
    let info = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
    let bare = Legacy::bare(gateway.url(), "2025-11-25", None);
    let about = bare.ask("initialize", info).await;
    let stated = &about.result()["capabilities"];
    assert_eq!(stated["resources"], json!({"listChanged": true}));
    assert_eq!(stated.get("completions"), None, "{stated}");
    let refused = |answer: &Answer, why: &str| {
        assert_eq!(answer.error_code(), -32601, "{answer:?}");
        let message = answer.reply()["error"]["message"].as_str();
        assert!(message.is_some_and(|it| it.contains(why)), "{answer:?}");
    };
    for client in &clients {
        let greet = json!({"type": "ref/prompt", "name": "shelf_greet"});
        let asked = json!({"ref": greet, "argument": {"name": "who", "value": "A"}});
        let answer = client.ask("completion/complete", asked).await;
        refused(&answer, "declares `completions`");
    }
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        for (uri, why) in [
            (
                "shelf+note://1",
                "the server of `shelf` does not declare `resources.subscribe`",
            ),
            ("weir://airports/airports/OSL", "changes of records"),
        ] {
            refused(&clients[1].ask(method, json!({ "uri": uri })).await, why);
        }
    }
    let uris = ["shelf+note://1", "weir://airports/airports/OSL"];
    let wanted = json!({"notifications": {"resourceSubscriptions": uris}});
    let listening = Modern::new(gateway.url()).request("subscriptions/listen", wanted);
    let mut news = Events::open(listening).await;
    let accepted = news.next(Duration::from_secs(20)).await;
    let accepted = accepted.expect("an acknowledgement");
    assert_eq!(accepted["params"]["notifications"], json!({}));
}

#[tokio::test]
async fn a_plugin_tells_of_its_resources_and_lists() {
    let house = House::new().own_plugins(&[]);
    house.write(
        "plugins/conformance.wasm",
        fs::read(place::guest("conformance")).expect("a guest can be read"),
    );
    let gateway = house.serve();
    let limit = Duration::from_secs(20);
    let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
    let mut every = Events::open(legacy.stream()).await;
    let subscribe = |uri: &str| legacy.ask("resources/subscribe", json!({ "uri": uri }));
    assert_eq!(
        subscribe("test://watched-resource").await.result(),
        &json!({})
    );
    assert_eq!(subscribe("test://none").await.error_code(), -32002);
    for (tool, method) in [
        (
            "test_trigger_resource_change",
            "notifications/resources/updated",
        ),
        (
            "test_trigger_prompt_change",
            "notifications/prompts/list_changed",
        ),
        (
            "test_trigger_tool_change",
            "notifications/tools/list_changed",
        ),
    ] {
        let answer = legacy
            .ask("tools/call", json!({"name": tool, "arguments": {}}))
            .await;
        assert_eq!(answer.result()["content"][0]["text"], "told");
        let news = every.next(limit).await.expect("the client is notified");
        assert_eq!(news["method"], method, "{news}");
    }
    let unsubscribed = legacy
        .ask(
            "resources/unsubscribe",
            json!({"uri": "test://watched-resource"}),
        )
        .await;
    assert_eq!(unsubscribed.result(), &json!({}));
    legacy
        .ask(
            "tools/call",
            json!({"name": "test_trigger_resource_change", "arguments": {}}),
        )
        .await;
    assert!(
        every.next(Duration::from_secs(1)).await.is_none(),
        "no one listens any more"
    );
}

#[tokio::test]
async fn a_key_that_lists_single_tools_gets_neither_prompts_nor_resources() {
    let scratch = tempfile::tempdir().expect("a folder");
    let house = house("items", &noted(scratch.path(), "note://1"), "");
    let gateway = house.serve();
    served(&gateway).await;
    let key = |agent: &str, access: &[&str]| house.key(&[&["--agent", agent][..], access].concat());
    let whole = key("whole", &["--contract", "shelf"]);
    let single = key("single", &["--tool", "shelf_good"]);
    let client = Client::Modern(Modern::with_key(gateway.url(), &single));
    until("the key is known", async || {
        client
            .ask("tools/list", json!({}))
            .await
            .status
            .is_success()
    })
    .await;
    assert_eq!(
        (client.prompts().await, client.resources().await),
        (Vec::<String>::new(), Vec::<String>::new())
    );
    assert_eq!(
        client
            .get("shelf_greet", json!({"who": "x"}))
            .await
            .error_code(),
        -32602
    );
    assert_eq!(client.read("shelf+note://1").await.error_code(), -32602);
    let client = Client::Modern(Modern::with_key(gateway.url(), &whole));
    assert_eq!(
        (client.prompts().await.len(), client.resources().await.len()),
        (4, 1)
    );
    assert_eq!(
        client.read("shelf+note://1").await.result()["contents"][0]["text"],
        "this is note://1"
    );
}

#[tokio::test]
async fn the_records_of_a_lookup_are_resources_too() {
    let published = sample::CONTRACT.replace(
        "    verb: lookup\n",
        "    verb: lookup\n    resource: true\n",
    );
    let house = House::new()
        .sheets()
        .file("contracts/airports.yaml", &published)
        .file("data/airports.csv", sample::DATA);
    let gateway = house.serve();
    for client in Client::both(&gateway).await {
        let templates = client
            .keys(
                "resources/templates/list",
                "resourceTemplates",
                "uriTemplate",
            )
            .await;
        assert_eq!(templates, ["weir://airports/airports/{key}"]);
        let read = client.read("weir://airports/airports/OSL").await;
        let content = &read.result()["contents"][0];
        assert_eq!(
            (&content["uri"], &content["mimeType"]),
            (
                &json!("weir://airports/airports/OSL"),
                &json!("application/json")
            )
        );
        let record: Value =
            serde_json::from_str(content["text"].as_str().expect("a text")).expect("a record");
        let called = match &client {
            Client::Modern(client) => client.call("lookup_airport", json!({"iata": "OSL"})).await,
            Client::Legacy(client) => client.call("lookup_airport", json!({"iata": "OSL"})).await,
        };
        assert_eq!(
            record, called["structuredContent"],
            "as the tool answers it"
        );
        let unknown = if client.is_modern() { -32602 } else { -32002 };
        for nothing in [
            "weir://airports/airports/XXX",
            "weir://airports/airports/osl",
            "weir://airports/airports/",
            "weir://other/airports/OSL",
        ] {
            assert_eq!(
                client.read(nothing).await.error_code(),
                unknown,
                "{nothing}"
            );
        }
    }
    let (_, trail, _) = house.run(&["audit", "query", "--tool", "lookup_airport", "--json"]);
    assert!(
        trail.contains("airports@1.0.0"),
        "a read is a call of the lookup: {trail}"
    );
    // A key that names only the tool sees no resources.
    let key = house.key(&["--agent", "ann", "--tool", "lookup_airport"]);
    let ann = Client::Modern(Modern::with_key(gateway.url(), &key));
    until("the key is known", async || {
        ann.ask("tools/list", json!({})).await.status.is_success()
    })
    .await;
    assert_eq!(
        ann.read("weir://airports/airports/OSL").await.error_code(),
        -32602
    );
}

#[tokio::test]
async fn a_resource_of_fifty_mebibytes_is_refused_and_its_server_serves_on() {
    let scratch = tempfile::tempdir().expect("a folder");
    let house = house("items", &noted(scratch.path(), "note://1"), "");
    let gateway = house.serve();
    let [client, _] = served(&gateway).await;
    let huge = client.read("shelf+note://huge").await;
    assert_eq!(
        (huge.error_code(), &huge.reply()["error"]["data"]["code"]),
        (-32603, &json!("too_large"))
    );
    until("it serves on", async || {
        client.read("shelf+note://1").await.reply()["result"]["contents"][0]["text"]
            == "this is note://1"
    })
    .await;
}

#[tokio::test]
async fn the_reference_server_is_read_through_us_by_official_clients() {
    let scratch = tempfile::tempdir().expect("a folder");
    let words = STRANGERS
        .iter()
        .find(|stranger| stranger.name == "everything")
        .expect("known")
        .command(scratch.path());
    let house = House::new().config(&trusted("every", &words));
    let gateway = house.serve();
    let clients = Client::both(&gateway).await;
    until("its prompts are listed", async || {
        clients[0].prompts().await.len() == 4
    })
    .await;
    until("its resources are listed", async || {
        clients[0].resources().await.len() == 7
    })
    .await;
    let plan = json!({
        "url": gateway.url(), "mode": "auto", "prompt": "every_args-prompt", "arguments": {"city": "Oslo"},
    });
    for (environment, script) in [("python-current", "mcp2.py"), ("python-mcp1", "mcp1.py")] {
        let report = foreign::report(foreign::python_script(environment, script), &plan);
        check(&report, script);
    }
    for script in ["typescript1.mjs", "typescript2.mjs"] {
        check(
            &foreign::report(foreign::node_script(script), &plan),
            script,
        );
    }
}

fn check(report: &Value, client: &str) {
    assert_eq!(
        report["prompts"].as_array().map(Vec::len),
        Some(4),
        "{client}: {report}"
    );
    assert_eq!(
        report["resources"].as_array().map(Vec::len),
        Some(7),
        "{client}: {report}"
    );
    assert_eq!(
        report["templates"].as_array().map(Vec::len),
        Some(2),
        "{client}: {report}"
    );
    assert!(
        report["message"]
            .as_str()
            .is_some_and(|text| text.contains("Oslo")),
        "{client}: {report}"
    );
    let uri = report["read"]["uri"].as_str().unwrap_or_default();
    assert!(
        uri.starts_with("every+")
            && report["resources"]
                .as_array()
                .is_some_and(|all| all.contains(&json!(uri)))
    );
    assert!(
        report["read"]["text"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{client}: {report}"
    );
}
