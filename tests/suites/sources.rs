//! Sources before there is a contract over them: what a person who makes one sees, and adds.

use std::time::Duration;

use serde_json::{Value, json};
use weir_tests::{Admin, House, MariadbServer, Modern, Postgres, answer_to};

use crate::sample;

const PEOPLE: &str =
    "name,country,api_token,pin_code\nAda,NO,tok-1,11\nBo,SE,,12\nCy,NO,tok-3,13\n";

fn house() -> House {
    House::new()
        .config(
            "[connections.data]\nkind = \"files\"\npath = \"data\"\nuploads = true\n\
             [connections.closed]\nkind = \"files\"\npath = \"closed\"\n\
             [connections.db]\nkind = \"sqlite\"\npath = \"data/desk.sqlite\"\n\
             [connections.away]\nkind = \"files\"\npath = \"nowhere\"\n\
             [connections.service]\nkind = \"http\"\nbase_url = \"http://127.0.0.1:9\"\n\
             headers = { Authorization = \"Bearer very-secret-value-1\" }\n\
             [plugins.sheet.grants]\ndata = \"read\"\n[plugins.sql.grants]\ndb = \"read\"",
        )
        .file(
            "contracts/airports.yaml",
            sample::CONTRACT
                .replace("write: true", "write: false")
                .split("  - tool: create")
                .next()
                .expect("a part"),
        )
        .file("data/airports.csv", sample::DATA)
        .file("data/people/people.csv", PEOPLE)
        .file("data/notes.txt", "no sheet")
        .file("closed/x.csv", "a\n1\n")
}

fn database(house: &House) {
    let database = rusqlite::Connection::open(house.path().join("data/desk.sqlite"));
    database
        .expect("a database")
        .execute_batch(
            "CREATE TABLE tickets (id INTEGER PRIMARY KEY, title TEXT NOT NULL, secret_note TEXT);\
             INSERT INTO tickets VALUES (1, 'one', 'psst'), (2, 'two', NULL);\
             CREATE VIEW open_tickets AS SELECT id, title FROM tickets;\
             CREATE TABLE \"odd.name\" (id INTEGER PRIMARY KEY);",
        )
        .expect("made");
}

async fn make_editor(operator: &Admin, role: &str) -> Admin {
    let body = json!({"name": role, "role": role}).to_string();
    let (status, made) = operator.ask("POST", "/v1/admins", body).await;
    assert_eq!(status, 201, "{made}");
    Admin {
        key: made["key"].as_str().expect("a key").to_owned(),
        ..operator.clone()
    }
}

async fn post(admin: &Admin, path: &str, body: Value) -> (u16, Value) {
    admin.ask("POST", path, body.to_string()).await
}

/// Returns what a POST that must be OK is answered.
async fn posted(admin: &Admin, path: &str, body: Value) -> Value {
    admin.succeed("POST", path, body.to_string()).await
}

#[tokio::test]
async fn connections_are_listed_checked_and_browsed() {
    let house = house();
    database(&house);
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let viewer = make_editor(&operator, "viewer").await;
    let editor = make_editor(&operator, "editor").await;

    let listed = viewer.succeed("GET", "/v1/connections", "").await;
    let data = listed
        .as_array()
        .expect("a list")
        .iter()
        .find(|connection| connection["name"] == "data");
    assert_eq!(
        *data.expect("it is there"),
        json!({"name": "data", "kind": "files", "adapter": "sheet", "write": false, "uploads": true,
            "grants": {"sheet": "read"}, "contracts": ["airports"], "refused": null})
    );
    assert!(!listed.to_string().contains("very-secret"), "{listed}");

    for (name, ok) in [
        ("data", true),
        ("db", true),
        ("away", false),
        ("service", false),
    ] {
        let path = format!("/v1/connections/{name}/check");
        assert_eq!(viewer.ask("POST", &path, "").await.0, 403);
        let (status, checked) = editor.ask("POST", &path, "").await;
        assert_eq!(
            (status, &checked["ok"]),
            (200, &json!(ok)),
            "{name}: {checked}"
        );
        assert_eq!(checked["reason"].is_string(), !ok, "{checked}");
        assert!(!checked.to_string().contains("127.0.0.1"), "{checked}");
    }
    assert_eq!(
        editor.ask("POST", "/v1/connections/none/check", "").await.0,
        404
    );

    let names = async |path: &str| {
        let page = editor.succeed("GET", path, "").await;
        let sources = page["sources"].as_array().expect("a list").clone();
        let name = |source: &Value| source["name"].as_str().expect("a name").to_owned();
        let names: Vec<String> = sources.iter().map(name).collect();
        (names, page["next_cursor"].clone())
    };
    let (files, next) = names("/v1/connections/data/sources").await;
    assert_eq!(
        (files, next),
        (
            vec!["airports.csv".to_owned(), "people/people.csv".to_owned()],
            Value::Null
        )
    );
    assert_eq!(
        names("/v1/connections/data/sources?q=PEOPLE").await.0,
        ["people/people.csv"]
    );
    let (tables, _) = names("/v1/connections/db/sources").await;
    assert_eq!(tables, ["main.odd.name", "open_tickets", "tickets"]);
    assert_eq!(
        names("/v1/connections/db/sources?cursor=open_tickets")
            .await
            .0,
        ["tickets"]
    );
    for (name, status) in [("service", 422), ("none", 404), ("away", 503)] {
        let path = format!("/v1/connections/{name}/sources");
        assert_eq!(editor.ask("GET", &path, "").await.0, status, "{name}");
    }
    for folder in 0..250 {
        house.write(&format!("data/many/{folder:03}.csv"), "a\n1\n");
    }
    let (first, next) = names("/v1/connections/data/sources?q=many").await;
    let next = next.as_str().expect("there are more").to_owned();
    let (second, end) = names(&format!(
        "/v1/connections/data/sources?q=many&cursor={next}"
    ))
    .await;
    assert_eq!((first.len(), second.len(), end), (200, 50, Value::Null));
}

#[tokio::test]
async fn a_source_becomes_a_contract_and_secrets_stay_in_it() {
    let house = house();
    database(&house);
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let viewer = make_editor(&operator, "viewer").await;
    let editor = make_editor(&operator, "editor").await;
    let people = json!({"connection": "data", "source": "people/people.csv"});

    for path in ["describe", "draft", "rows"] {
        let path = format!("/v1/sources/{path}");
        assert_eq!(post(&viewer, &path, people.clone()).await.0, 403, "{path}");
        let missing = json!({"connection": "data", "source": "none.csv"});
        assert_eq!(
            post(&editor, &path, missing).await.0,
            503,
            "it may come: {path}"
        );
        let stranger = json!({"connection": "none", "source": "people.csv"});
        assert_eq!(post(&editor, &path, stranger).await.0, 404, "{path}");
        let outside = json!({"connection": "data", "source": "../weir.toml"});
        assert_eq!(post(&editor, &path, outside).await.0, 422, "{path}");
        let ungranted = json!({"connection": "closed", "source": "x.csv"});
        let (status, refused) = post(&editor, &path, ungranted).await;
        assert_eq!(status, 422, "{refused}");
        assert!(refused.to_string().contains("grants"), "{refused}");
        let twice = json!({"connection": "data", "source": "x.csv", "settings": {"path": "y.csv"}});
        assert_eq!(post(&editor, &path, twice).await.0, 422, "{path}");
    }

    let described = posted(&editor, "/v1/sources/describe", people.clone()).await;
    assert_eq!(
        (&described["adapter"], &described["settings"]),
        (
            &json!("sheet"),
            &json!({"connection": "data", "path": "people/people.csv"})
        )
    );
    assert_eq!(
        described["shape"]["fields"][0]["key"], "name",
        "{described}"
    );

    let shown = posted(&editor, "/v1/sources/rows", people.clone()).await;
    assert_eq!(shown["masked"], json!(["api_token"]), "{shown}");
    assert_eq!(shown["rows"][0]["api_token"], "***");
    assert_eq!(
        shown["rows"][1]["api_token"],
        Value::Null,
        "nothing is no secret: {shown}"
    );
    assert_eq!(shown["rows"][2]["name"], "Cy");
    let one = json!({"connection": "data", "source": "people/people.csv", "limit": 1});
    let (_, shown) = post(&editor, "/v1/sources/rows", one).await;
    assert_eq!(
        (shown["rows"].as_array().map(Vec::len), &shown["more"]),
        (Some(1), &json!(true))
    );
    let many = json!({"connection": "data", "source": "people/people.csv", "limit": 21});
    assert_eq!(post(&editor, "/v1/sources/rows", many).await.0, 422);
    let tickets = json!({"connection": "db", "source": "tickets"});
    let shown = posted(&editor, "/v1/sources/rows", tickets.clone()).await;
    assert_eq!(
        shown["rows"],
        json!([{"id": 1, "title": "one", "secret_note": "***"},
        {"id": 2, "title": "two", "secret_note": null}])
    );
    let odd = json!({"connection": "db", "source": "main.odd.name"});
    assert_eq!(
        post(&editor, "/v1/sources/describe", odd).await.0,
        200,
        "it is found by the name that is listed"
    );

    // The draft is a valid contract, and names no secret among its choices.
    for source in [people, tickets] {
        let drafted = posted(&editor, "/v1/sources/draft", source).await;
        let text = drafted["source"].as_str().expect("a text");
        assert!(!text.contains("tok-1") && !text.contains("psst"), "{text}");
        assert_eq!(drafted["writes"], false, "{drafted}");
        posted(&editor, "/v1/contracts", json!({"source": text})).await;
    }
    let (_, records) = operator
        .ask("GET", "/v1/audit?kind=admin&limit=1000", "")
        .await;
    let looks: Vec<&Value> = records
        .as_array()
        .expect("records")
        .iter()
        .filter(|record| record["act"] == "source_look" && record["detail"]["source"] == "tickets")
        .collect();
    let asked: Vec<&Value> = looks.iter().map(|look| &look["detail"]["asked"]).collect();
    assert_eq!(asked, ["rows", "draft"], "{looks:?}");
    assert!(
        looks
            .iter()
            .all(|look| look["by"] == "admin:editor" && look["subject"] == "db")
    );
}

#[tokio::test]
async fn sources_of_one_name_are_told_apart() {
    let house = house()
        .file("data/a/cust.csv", "name\nfrom-a\n")
        .file("data/b/cust.csv", "name\nfrom-b\n")
        .file("data/c/cust.csv", "city\nOslo\n");
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    for (source, rows) in [
        ("a/cust.csv", json!([{"name": "from-a"}])),
        ("b/cust.csv", json!([{"name": "from-b"}])),
        ("c/cust.csv", json!([{"city": "Oslo"}])),
    ] {
        let body = json!({"connection": "data", "source": source});
        let (status, shown) = post(&operator, "/v1/sources/rows", body).await;
        assert_eq!((status, &shown["rows"]), (200, &rows), "{source}: {shown}");
    }
    // A path with a query is refused, and its text is in no record.
    let body = json!({"connection": "service", "source": "things.json?api_key=topsecretvalue1"});
    let (status, refused) = post(&operator, "/v1/sources/rows", body).await;
    assert!(status >= 400, "{refused}");
    let (_, records) = operator
        .ask("GET", "/v1/audit?kind=admin&limit=10", "")
        .await;
    assert!(records.to_string().contains("things.json"), "{records}");
    assert!(!records.to_string().contains("topsecret"), "{records}");
}

#[tokio::test]
async fn tables_of_postgresql_are_those_that_can_be_read() {
    let database = Postgres::start();
    database.sql(
        "CREATE TABLE people (id int PRIMARY KEY, name text); CREATE SCHEMA shop; CREATE VIEW shop.open AS SELECT 1 AS id; \
         CREATE ROLE reader LOGIN; GRANT SELECT ON people TO reader; GRANT USAGE ON SCHEMA shop TO reader; \
         CREATE TABLE hidden (id int PRIMARY KEY)",
    );
    let house = House::new().config(&format!(
        "[connections.db]\nkind = \"postgresql\"\nurl = \"{}\"\n[plugins.sql.grants]\ndb = \"read\"",
        database.url()
    ));
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let page = admin.succeed("GET", "/v1/connections/db/sources", "").await;
    assert_eq!(
        page["sources"],
        json!([{"name": "hidden", "kind": "table"}, {"name": "people", "kind": "table"}, {"name": "shop.open", "kind": "view"}])
    );
    let (_, found) = admin
        .ask("GET", "/v1/connections/db/sources?q=SHOP", "")
        .await;
    assert_eq!(
        found["sources"],
        json!([{"name": "shop.open", "kind": "view"}])
    );
    let (_, checked) = admin.ask("POST", "/v1/connections/db/check", "").await;
    assert_eq!(checked["ok"], true, "{checked}");
    let body = json!({"connection": "db", "source": "shop.open"});
    posted(&admin, "/v1/sources/describe", body).await;
    drop(database);
    let (_, checked) = admin.ask("POST", "/v1/connections/db/check", "").await;
    assert_eq!(
        (&checked["ok"], &checked["code"]),
        (&json!(false), &json!("unavailable")),
        "{checked}"
    );
}

#[tokio::test]
async fn tables_of_mariadb_are_listed_drafted_and_served() {
    let server = MariadbServer::shared();
    let url = server.database();
    server.script(
        &url,
        "CREATE TABLE people (id int AUTO_INCREMENT PRIMARY KEY, name varchar(40) NOT NULL COMMENT 'How they are called');
         CREATE VIEW named AS SELECT name FROM people; CREATE SEQUENCE numbers; INSERT INTO people VALUES (1, 'Ann'), (2, 'Zoë')",
    );
    let house = House::new().config(&format!(
        "[connections.db]\nkind = \"mariadb\"\nurl = \"{}\"\n[plugins.sql.grants]\ndb = \"read\"",
        url.replace("mysql://", "mariadb://")
    ));
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let (_, checked) = admin.ask("POST", "/v1/connections/db/check", "").await;
    assert_eq!(checked["ok"], true, "{checked}");
    let page = admin.succeed("GET", "/v1/connections/db/sources", "").await;
    assert_eq!(
        page["sources"],
        json!([{"name": "named", "kind": "view"}, {"name": "people", "kind": "table"}])
    );
    let (_, connections) = admin.ask("GET", "/v1/connections", "").await;
    assert_eq!(connections[0]["kind"], "mysql", "{connections}");
    let source = json!({"connection": "db", "source": "people"});
    let (_, described) = post(&admin, "/v1/sources/describe", source.clone()).await;
    assert_eq!(
        described["shape"]["fields"][1]["description"], "How they are called",
        "{described}"
    );
    let drafted = posted(&admin, "/v1/sources/draft", source).await;
    let text = drafted["source"].as_str().expect("a text");
    posted(&admin, "/v1/contracts", json!({"source": text})).await;
}

/// What a draft guesses of dates and choices is in words for a person who drops a file into the console.
#[tokio::test]
async fn a_draft_says_in_words_how_dates_and_choices_can_be_read() {
    let rows: String = (1..=40)
        .map(|id| {
            let status = ["Paid", "paid", "open"][id % 3];
            format!("{id},{:02}/{:02}/2026,{status}\n", 1 + id % 12, 1 + id % 11)
        })
        .collect();
    let house = house().file("data/bills.csv", format!("id,sent,status\n{rows}"));
    let _gateway = house.serve();
    let source = json!({"connection": "data", "source": "bills.csv"});
    let drafted = posted(&Admin::of(&house), "/v1/sources/draft", source).await;
    let notes = drafted["notes"].to_string();
    for words in [
        "dates such as 31/12/2026 (day, month, year)",
        "or as dates such as 12/31/2026 (month, day, year)",
        "differ only in case or blanks, and a filter by one of these finds all: 'Paid', 'paid'",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
}

/// The trail has an upload before it is made, so one that fails is followed by a record with the reason.
#[tokio::test]
async fn an_upload_that_fails_is_on_record_as_failed() {
    let house = house();
    database(&house);
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let path = "/v1/files/data/nowhere/people.csv";
    let (status, refused) = operator.ask("PUT", path, "name\nDee\n").await;
    assert_eq!(status, 404, "{refused}");
    let (_, records) = operator
        .ask("GET", "/v1/audit?kind=admin&limit=2", "")
        .await;
    let end = &records[1];
    assert_eq!(
        (&end["act"], &end["subject"], &end["detail"]["failed"]),
        (
            &json!("file_upload"),
            &json!("data/nowhere/people.csv"),
            &refused["detail"]
        ),
        "{records}"
    );
    assert_eq!(records[0]["act"], "file_upload", "{records}");
}

#[tokio::test]
async fn a_file_is_put_in_whole_or_not_at_all() {
    let house = house();
    database(&house);
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let viewer = make_editor(&operator, "viewer").await;
    let editor = make_editor(&operator, "editor").await;
    let path = "/v1/files/data/people/people.csv";
    let file = house.path().join("data/people/people.csv");

    let new = "name,country\nDee,IS\n";
    assert_eq!(viewer.ask("PUT", path, new).await.0, 403);
    let (status, put) = editor.ask("PUT", path, new).await;
    assert_eq!(
        (status, &put["path"], &put["bytes"]),
        (200, &json!("people/people.csv"), &json!(new.len())),
        "{put}"
    );
    assert_eq!(std::fs::read_to_string(&file).expect("there"), new);
    let (_, records) = operator
        .ask("GET", "/v1/audit?kind=admin&limit=1", "")
        .await;
    assert_eq!(
        (
            &records[0]["act"],
            &records[0]["subject"],
            &records[0]["fingerprint"]
        ),
        (
            &json!("file_upload"),
            &json!("data/people/people.csv"),
            &put["digest"]
        )
    );
    let (_, shown) = post(
        &editor,
        "/v1/sources/rows",
        json!({"connection": "data", "source": "people/people.csv"}),
    )
    .await;
    assert_eq!(shown["rows"], json!([{"name": "Dee", "country": "IS"}]));

    let large = vec![b'x'; (64 << 20) + 1];
    assert_eq!(editor.ask("PUT", path, large).await.0, 413);
    let torn = futures::stream::iter([Ok("name\n"), Err(std::io::Error::other("gone"))]);
    let request = editor
        .request("PUT", path)
        .body(reqwest::Body::wrap_stream(torn));
    assert!(request.send().await.is_err(), "the client left");
    for refused in ["/v1/files/closed/x.csv", "/v1/files/db/x.csv"] {
        assert_eq!(editor.ask("PUT", refused, new).await.0, 409, "{refused}");
    }
    for outside in [
        "/v1/files/data/..%2Fweir.toml",
        "/v1/files/data/.hidden.csv",
        "/v1/files/data//x.csv",
        // What may be the configuration or a plugin is not an editor's to write.
        "/v1/files/data/weir.toml",
        "/v1/files/data/plugins/evil.wasm",
    ] {
        let (status, refused) = editor.ask("PUT", outside, new).await;
        assert!(
            [404, 422].contains(&status),
            "{outside}: {status} {refused}"
        );
    }
    for (below, folder) in [
        ("sub/new.csv", "sub"),
        ("people/sub/deep/new.csv", "people/sub"),
        ("people/people.csv/new.csv", "people/people.csv"),
    ] {
        let path = format!("/v1/files/data/{below}");
        let (status, refused) = editor.ask("PUT", &path, new).await;
        let detail = format!("there is no folder `{folder}`, and it is not created");
        assert_eq!((status, &refused["detail"]), (404, &json!(detail)));
    }
    let packed = editor
        .request("PUT", path)
        .header("content-encoding", "gzip");
    let refused = answer_to(packed.body("\x1f\u{8b}")).await;
    assert_eq!(refused.status(), 415, "it would be kept as it came");
    let refused = refused.text().await.expect("text");
    assert!(refused.contains("must not be compressed"), "{refused}");
    let long = format!("/v1/files/data/{}.csv", "x".repeat(300));
    let (status, refused) = editor.ask("PUT", &long, new).await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(status == 422 && detail.contains("longer"), "{refused}");
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(
        std::fs::read_to_string(&file).expect("there"),
        new,
        "it is as it was"
    );
    let mut left = std::fs::read_dir(house.path().join("state")).expect("the state");
    assert!(left.all(|entry| {
        !entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .starts_with("upload")
    }));
}

/// A person with a table and an empty folder, who does what the console's pages ask for one after another.
#[tokio::test]
async fn an_empty_folder_takes_a_file_and_serves_a_tool_of_it() {
    let house = House::new();
    let (gateway, admin) = house.serve_without_config();
    let file = admin.request("PUT", "/v1/files/files/rooms.csv");
    let put = file
        .body("room,floor,seats\nAtlas,2,12\nBorealis,1,8\n")
        .send();
    assert!(put.await.expect("an answer").status().is_success());
    let source = json!({"connection": "files", "source": "rooms.csv"}).to_string();
    let drafted = admin.succeed("POST", "/v1/sources/draft", source).await;
    let contract = json!({"source": drafted["source"]}).to_string();
    let (status, submitted) = admin.ask("POST", "/v1/contracts", contract).await;
    assert_eq!(
        (status, &submitted["verdict"]),
        (200, &json!("published")),
        "{submitted}"
    );
    let called = Modern::new(gateway.contract_url("rooms"))
        .call("list_rooms", json!({"min_seats": 10}))
        .await;
    assert_eq!(
        called["structuredContent"]["records"][0]["room"], "Atlas",
        "{called}"
    );
}
