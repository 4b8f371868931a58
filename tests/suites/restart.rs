//! A start: what is published is served, whatever else is wrong, and everything that is refused is reported.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Legacy, Modern, SERVE, client, http, until};

use crate::sample;

/// Returns a second contract over the same file.
fn fields() -> String {
    let text = sample::CONTRACT.replace("contract: airports", "contract: fields");
    text.replace("_airport\n", "_field\n")
        .replace("_airports\n", "_fields\n")
}

async fn country(gateway: &Gateway) -> Value {
    let result = Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    result["structuredContent"]["country"].clone()
}

async fn text(house: &House, path: &str) -> String {
    let url = format!("{}{path}", Admin::of(house).url);
    client::send(http().get(url)).await.text
}

/// Starts with `--strict`; the start fails, and reports why.
fn strict(house: &House) -> String {
    let (code, _, err) = house.run(&["serve", "--strict", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1, "{err}");
    err
}

#[tokio::test]
async fn a_start_serves_what_is_published_beside_files_that_do_not_compile() {
    let house = sample::house();
    assert_eq!(country(&house.serve()).await, "NO");
    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace("verb: list", "verb: lst"),
    );
    house.write("contracts/new.yaml", "contract: new\ntools: 7\n");
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO", "what is published is served");
    for part in ["/tools/1/verb", "new.yaml"] {
        gateway.wait_for_log(part);
    }
    let listed = house.json(&["contracts", "list"]);
    let refused: Vec<_> = listed["refused"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| &one["kind"])
        .collect();
    assert_eq!(
        (refused, &listed["contracts"][0]["version"]),
        (vec![&json!("contract"); 2], &json!("1.0.0")),
        "{listed}"
    );
    let ready = text(&house, "/readyz").await;
    assert!(
        ready.starts_with("ready\n")
            && ready.contains("refused: contract ")
            && ready.contains("new.yaml"),
        "{ready}"
    );
    let metrics = text(&house, "/metrics").await;
    assert!(
        metrics.contains("weir_refused{kind=\"contract\"} 2"),
        "{metrics}"
    );
    drop(gateway);
    let printed = strict(&house);
    assert!(
        printed.contains("/tools/1/verb") && printed.contains("new.yaml"),
        "{printed}"
    );
}

/// Without a state nothing is published: a gateway that would serve nothing of what it was given does not start.
#[tokio::test]
async fn a_start_that_could_serve_nothing_ends_and_says_why() {
    let house = House::new()
        .sheets()
        .file("contracts/new.yaml", "contract: new\ntools: 7\n");
    let (code, _, err) = house.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(code == 1 && err.contains("new.yaml"), "{code}: {err}");
}

/// Without its lock, the published version of a contract is unknown: its file must not go live without a comparison.
#[tokio::test]
async fn a_lock_that_cannot_be_read_holds_back_its_own_contract_alone() {
    let house = sample::house()
        .file("contracts/fields.yaml", fields())
        .file("contracts/fields.lock.json", "{");
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO");
    let listed = house.json(&["contracts", "list"]);
    let names: Vec<_> = listed["contracts"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["airports"], "{listed}");
    let problem = &listed["refused"][0]["problems"][0];
    assert!(
        problem["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("fields.lock.json")),
        "{listed}"
    );
    gateway.wait_for_log("fields.lock.json");
    // Once the lock is mended, here by taking it away, the contract goes live without a restart.
    std::fs::remove_file(house.path().join("contracts/fields.lock.json")).expect("removed");
    until("it is served", async || {
        !Modern::new(gateway.contract_url("fields"))
            .ask("server/discover", json!({}))
            .await
            .reply()["result"]
            .is_null()
    })
    .await;
}

#[tokio::test]
async fn a_connection_without_its_secret_stops_only_what_needs_it() {
    let service = "[connections.tracker]\nkind = \"http\"\nbase_url = \"https://tracker.example\"\n\
                   headers = { Authorization = \"Bearer ${env:NO_SUCH_TOKEN}\" }\n[plugins.rest.grants]\ntracker = \"read\"";
    let house = sample::house().config(service);
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO");
    assert!(
        gateway.log().contains("NO_SUCH_TOKEN is not set"),
        "{}",
        gateway.log()
    );
    let listed = house.json(&["contracts", "list"]);
    assert_eq!(
        (&listed["refused"][0]["kind"], &listed["refused"][0]["file"]),
        (&json!("connection"), &json!("tracker"))
    );
    assert!(
        text(&house, "/readyz")
            .await
            .contains("refused: connection tracker")
    );
    assert!(
        text(&house, "/metrics")
            .await
            .contains("weir_refused{kind=\"connection\"} 1")
    );
    drop(gateway);
    assert!(strict(&house).contains("NO_SUCH_TOKEN is not set"));
}

#[tokio::test]
async fn a_plugin_file_that_does_not_load_stops_only_what_needs_it() {
    let house = sample::house()
        .own_plugins(&["sheet"])
        .file("plugins/odd.wasm", "no component");
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO");
    let listed = house.json(&["contracts", "list"]);
    assert_eq!(
        (&listed["refused"][0]["kind"], &listed["refused"][0]["file"]),
        (&json!("plugin"), &json!("odd.wasm"))
    );
    drop(gateway);
    assert!(strict(&house).contains("odd.wasm"));
}

async fn versions(house: &House) -> Vec<Value> {
    let contract = house.json(&["contracts", "show", "airports"]);
    contract["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| row["version"].clone())
        .collect()
}

/// Two processes share one state, each with its own contracts folder and a different text of the same contract.
#[tokio::test]
async fn a_contract_has_one_owner_folder_and_the_others_serve_what_it_publishes() {
    let other = sample::CONTRACT.replace("IATA code.", "The code.");
    let house = sample::house()
        .file("others/airports.yaml", other)
        .file("empty/note.txt", "no contract");
    let serve =
        |folder: &str| Gateway::start(house.weir(&[&SERVE[..], &["--contracts", folder]].concat()));
    drop(serve("contracts"));
    for _ in 0..2 {
        let gateway = serve("others");
        assert_eq!(country(&gateway).await, "NO", "what is published is served");
        gateway.wait_for_log("is owned by the contracts folder");
        let listed = house.json(&["contracts", "list"]);
        let reason = listed["waiting"][0]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(
            reason.contains(&format!("{}/contracts", house.path().display())),
            "{listed}"
        );
        drop(gateway);
        let gateway = serve("empty");
        assert_eq!(country(&gateway).await, "NO", "what is published is served");
        // Some looks at the folder later.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(
            house.json(&["contracts", "list"])["contracts"][0]["pending"],
            json!([]),
            "no one asks to retire it"
        );
        drop(gateway);
        let _gateway = serve("contracts");
        assert_eq!(versions(&house).await, ["1.0.0"]);
    }
    // A folder that no longer exists owns nothing.
    std::fs::rename(house.path().join("contracts"), house.path().join("moved")).expect("moved");
    let _gateway = serve("others");
    assert_eq!(versions(&house).await, ["1.0.0", "1.0.1"]);
}

/// Runs SQL on the state, as a later version of Weir would have written it.
fn write_state(house: &House, sql: &str) {
    let state =
        rusqlite::Connection::open(house.path().join("state/weir.db")).expect("the state opens");
    state.execute_batch(sql).expect("written");
}

/// A later version of Weir published one contract in a format that this one does not know.
#[tokio::test]
async fn a_contract_that_cannot_be_read_is_skipped_alone() {
    let house = sample::house().file("contracts/fields.yaml", fields());
    let gateway = house.serve();
    write_state(
        &house,
        "INSERT INTO versions SELECT contract, '2.0.0', '{\"format\":13,' || substr(artifact, 2), source, class, \
         fingerprint, published_ms, published_by FROM versions WHERE contract = 'fields';
         UPDATE contracts SET live = '2.0.0', revision = revision + 1 WHERE name = 'fields';",
    );
    gateway.wait_for_log("it is of format 13, and this program reads formats up to 12");
    house.write(
        "contracts/airports.yaml",
        sample::CONTRACT.replace("max: 9000", "max: 12000"),
    );
    until("a later change is taken", async || {
        versions(&house).await.len() >= 2
    })
    .await;
    drop(gateway);
    let gateway = house.serve();
    assert_eq!(country(&gateway).await, "NO");
    let listed = house.json(&["contracts", "list"]);
    let refused = &listed["refused"];
    let versions: Vec<_> = refused
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| one["kind"] == "version")
        .collect();
    assert_eq!(
        versions.first().map(|one| &one["file"]),
        Some(&json!("fields@2.0.0")),
        "{listed}"
    );
    assert!(
        text(&house, "/readyz")
            .await
            .contains("refused: version fields@2.0.0")
    );
    assert!(
        text(&house, "/metrics")
            .await
            .contains("weir_refused{kind=\"version\"} 1")
    );
    assert_eq!(
        listed["contracts"].as_array().map(Vec::len),
        Some(2),
        "it is still known: {listed}"
    );
}

/// A source that is away hides no mistake of a form, and a pipeline does not wait for it. It is reported once, with the
/// connection and the system's message.
#[tokio::test]
async fn a_source_that_is_away_is_named_and_hides_no_mistake() {
    let away = "[connections.disk]\nkind = \"files\"\npath = \"not-mounted\"\n[plugins.sheet.grants]\ndisk = \"read\"";
    let contract = fields().replace("connection: data", "connection: disk");
    let house = House::new()
        .config(away)
        .file("contracts/fields.yaml", &contract);
    let gateway = house.serve();
    let prefix = "waiting: ";
    gateway.wait_for_log("over the connection `disk`");
    let log = gateway.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(prefix)).collect();
    assert!(
        lines.len() == 1 && lines[0].contains("No such file or directory"),
        "{log}"
    );
    drop(gateway);
    let refused = strict(&house);
    assert!(
        refused.contains("fields.yaml at /collections/") && refused.contains("`disk`"),
        "{refused}"
    );

    house.write(
        "contracts/fields.yaml",
        contract.replace("verb: lookup", "verb: lst"),
    );
    for words in [
        &["compile", "contracts/fields.yaml"][..],
        &["serve", "--strict", "--listen", "127.0.0.1:0"],
    ] {
        let (code, _, err) = house.run(words);
        assert!(
            code == 1 && err.contains("/verb"),
            "{words:?}: {code}: {err}"
        );
    }
}

/// A session belongs to the gateway and not to one of its processes: its id holds what the handshake agreed on, and the state
/// holds what the client asked for since.
#[tokio::test]
async fn a_session_is_taken_up_by_any_process_until_its_client_ends_it() {
    let house = sample::house();
    let first = house.serve();
    let [dana, eve] = ["dana", "eve"].map(|agent| house.key(&["--agent", agent]));
    let open = || Legacy::open_as(first.url(), "2025-06-18", Some(&dana));
    let (kept, ended) = (open().await, open().await);
    let found = async |session: Legacy| {
        let answer = session.ask("ping", json!({})).await;
        answer.status.as_u16()
    };
    let second = house.serve();
    assert_eq!(found(kept.at(second.url())).await, 200);
    let elsewhere = kept.at(second.url()).in_hands_of(Some(&eve));
    assert_eq!(found(elsewhere).await, 404);
    assert_eq!(found(kept.at(second.contract_url("airports"))).await, 404);

    assert_eq!(found(ended.at(second.url())).await, 200);
    let deleted = client::send(ended.at(second.url()).delete()).await;
    assert_eq!(deleted.status, 204);
    until("its session has ended there too", async || {
        found(ended.clone()).await == 404
    })
    .await;
    drop((first, second));
    let third = house.serve();
    assert_eq!(found(kept.at(third.url())).await, 200);
    assert_eq!(found(ended.at(third.url())).await, 404);
}

/// A file that is not a database, or a part of one, is refused with what to do: a backup is what helps.
#[test]
fn a_damaged_state_is_refused_with_what_to_do() {
    let house = sample::house();
    assert_eq!(house.run(&["call"]).0, 0);
    let file = house.path().join("state/weir.db");
    for name in ["weir.db-wal", "weir.db-shm"] {
        let _ = std::fs::remove_file(house.path().join("state").join(name)); // it may not be there
    }
    let whole = std::fs::read(&file).expect("a state");
    for damaged in [&b"garbage, and no database"[..], &whole[..3000]] {
        std::fs::write(&file, damaged).expect("the file can be written");
        let (code, out, err) = house.run(&["call"]);
        assert!(
            code == 1 && out.is_empty() && err.contains("put a copy that `weir state backup` made"),
            "{code} {out} {err}"
        );
    }
}
