//! The console: how its files are served, and its pages in a browser against a real gateway.

use std::{fs, process::Command, time::Duration};

use serde_json::{Value, json};
use weir_tests::{Admin, House, foreign, http, place, upstream};

use crate::{oauth::Issuer, sample};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      form-action 'none'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

fn house() -> House {
    House::new()
        .sheets()
        .config("drops = \"read\"")
        .config("[connections.drops]\nkind = \"files\"\npath = \"drops\"\nuploads = true")
        .config("[contracts]\nimpact_days = 7\n")
        .file(
            "drops/people.csv",
            "name,team,api_token\nAda,engines,hunter2\nGrace,compilers,swordfish\n",
        )
        .file(
            "data/tickets.csv",
            "id,subject,status\n1,Printer is out of paper,open\n2,Lights flicker,closed\n",
        )
        .file("data/guarded.csv", "id,subject,status\n1,Printer is out of paper,open\n")
        .file(
            "data/desk.csv",
            "subject,priority,status,notify\nPrinter is out of paper,2,open,true\nLights flicker,1,closed,false\n",
        )
        .file(
            "contracts/filed.yaml",
            "# Kept in a file.\ncontract: filed\ncollections:\n  tickets:\n    adapter: sheet\n    \
             settings: { connection: data, path: tickets.csv }\ntools:\n  - tool: filed_list\n    \
             description: Lists tickets by status.\n    verb: list\n    collection: tickets\n    fields:\n      \
             - { name: status, type: text, help: \"The state of the ticket.\" }\n",
        )
        .file(
            "policies/filed.cedar",
            "@id(\"no-closed\")\n@message(\"Closed tickets are for people.\")\nforbid(principal, \
             action == Weir::Action::\"filed_list\", resource)\nwhen { context.args has status && \
             context.args.status == \"closed\" };\n",
        )
}

/// Returns the address of the first script that the page names.
fn script(page: &str) -> &str {
    let at = page
        .find("/assets/index-")
        .expect("the console was built: cargo xtask console");
    let rest = &page[at..];
    &rest[..rest.find('"').expect("an attribute ends")]
}

#[tokio::test]
async fn files_are_served_without_a_key_under_a_strict_policy() {
    let house = house();
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let get = |path: &str| http().get(format!("{}{path}", admin.url));

    let page = get("/").send().await.expect("an answer");
    assert_eq!(page.status(), 200);
    let headers = page.headers().clone();
    assert_eq!(headers["content-security-policy"], POLICY);
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["cache-control"], "no-cache");
    let page = page.text().await.expect("text");
    assert!(!page.contains("<style") && !page.contains("http"), "{page}");
    let known = get("/")
        .header("if-none-match", &headers["etag"])
        .send()
        .await;
    assert_eq!(known.expect("an answer").status(), 304);

    let plain = get(script(&page)).send().await.expect("an answer");
    assert_eq!(
        plain.headers()["content-type"],
        "text/javascript; charset=utf-8"
    );
    assert_eq!(
        plain.headers()["cache-control"],
        "public, max-age=31536000, immutable"
    );
    let plain_tag = plain.headers()["etag"].clone();
    let plain = plain.bytes().await.expect("bytes").len();
    let small = get(script(&page))
        .header("accept-encoding", "gzip, br;q=0.5")
        .send()
        .await
        .expect("an answer");
    assert_eq!(small.headers()["content-encoding"], "br");
    assert_eq!(small.headers()["vary"], "Accept-Encoding");
    assert_ne!(small.headers()["etag"], plain_tag);
    assert!(small.bytes().await.expect("bytes").len() * 2 < plain);
    let refused = get(script(&page))
        .header("accept-encoding", "br;q=0")
        .send()
        .await
        .expect("an answer");
    assert!(!refused.headers().contains_key("content-encoding"));

    for path in [
        "/assets/index.js",
        "/assets/..%2findex.html",
        "/index.html",
        "/console",
    ] {
        assert_eq!(
            get(path).send().await.expect("an answer").status(),
            404,
            "{path}"
        );
    }
    for path in ["/", script(&page)] {
        let foreign = get(path).header("host", "rebound.example").send().await;
        assert_eq!(foreign.expect("an answer").status(), 403, "{path}");
        let posted = http().post(format!("{}{path}", admin.url)).send().await;
        assert_eq!(posted.expect("an answer").status(), 405, "{path}");
    }
    let config = get("/v1/config").send().await.expect("an answer");
    assert_eq!(config.status(), 401);
}

/// The types of the console are made from `console/openapi.json`.
#[tokio::test]
async fn the_console_is_typed_from_the_document_that_is_served() {
    let house = house();
    let _gateway = house.serve();
    let (status, served) = Admin::of(&house).ask("GET", "/openapi.json", "").await;
    assert_eq!(status, 200);
    let file = place::repository().join("console/openapi.json");
    if std::env::var_os("WEIR_BLESS").is_some() {
        let text = serde_json::to_string_pretty(&served).expect("plain data") + "\n";
        fs::write(&file, text).expect("the repository can be written");
    }
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(&file).expect("it is there")).expect("JSON");
    assert!(
        kept == served,
        "console/openapi.json is not what is served; WEIR_BLESS=1 writes it"
    );

    let mut ids = Vec::new();
    for (path, item) in served["paths"].as_object().expect("an object") {
        for operation in item.as_object().expect("an object").values() {
            ids.push(operation["operationId"].as_str().expect("an id").to_owned());
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().expect("a name");
                let is_in_path = path.contains(&format!("{{{name}}}"));
                assert_eq!(is_in_path, parameter["in"] == "path", "{path}: {name}");
            }
        }
    }
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "operations share an id");
}

#[test]
fn pages_work_in_a_browser() {
    let other = sample::house();
    let other_gateway = other.serve();
    let url = other_gateway.url();
    let port = upstream::free_port();
    let issuer = Issuer::of_console(&format!("http://127.0.0.1:{port}/"));
    let house = house()
        .config(&format!("[upstreams.planes]\nurl = \"{url}\""))
        .file("client.secret", "console-secret-of-the-tests\n")
        .config(&format!(
            "[admin]\nlisten = \"127.0.0.1:{port}\"\n[admin.oidc]\nissuer = \"{}\"\nclient_id = \"console\"\n\
             client_secret = \"file:client.secret\"\nscopes = [\"openid\"]\nrole_claim = \"groups\"\n\
             roles = {{ airports = \"editor\", pilots = \"operator\" }}",
            issuer.url
        ));
    let gateway = house.serve();
    let caller = house.key(&["--agent", "caller"]);
    let admin = Admin::of(&house);
    let key = |role: &str| {
        let (code, key, err) = house.run(&["admins", "create", "--name", role, "--role", role]);
        assert_eq!(code, 0, "{err}");
        key
    };
    let empty = House::new();
    let (_first_gateway, first) = empty.serve_without_config();
    let given = empty.path().join("given.json");
    let runner = foreign::node_module_in("console", "@playwright/test/cli.js");
    let folder = place::cache().join("clients/console");
    let mut command: Command = foreign::node();
    command
        .current_dir(folder)
        .arg(runner)
        .arg("test")
        .env("WEIR_CONSOLE_URL", &admin.url)
        .env("WEIR_CONSOLE_OTHER", &url)
        .env("WEIR_CONSOLE_REST", format!("{}/rest", gateway.base))
        .env("WEIR_CONSOLE_CALLER", caller)
        .env("WEIR_CONSOLE_ISSUER", &issuer.url)
        .env("WEIR_CONSOLE_EMPTY", &first.url)
        .env("WEIR_CONSOLE_EMPTY_KEY", &first.key)
        .env("WEIR_CONSOLE_GIVEN", &given)
        .env("WEIR_CONSOLE_OPERATOR", admin.key.trim())
        .env("WEIR_CONSOLE_EDITOR", key("editor"))
        .env("WEIR_CONSOLE_VIEWER", key("viewer"))
        .env("WEIR_CONSOLE_APPROVER", key("approver"))
        .env("WEIR_CONSOLE_OUTPUT", house.path().join("playwright"));
    let output = foreign::run(command, Duration::from_secs(600));
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    call_as_given(&fs::read_to_string(given).expect("what a client is given"));
}

/// Calls the tool that was made in the browser, by the official client and with what the page gives for one.
fn call_as_given(given: &str) {
    let given: Value = serde_json::from_str(given).expect("settings of a client");
    let server = &given["mcpServers"]["weir"];
    let calls = json!([{"tool": "list_rooms", "arguments": {"min_seats": 10}}]);
    let report = foreign::report(
        foreign::node_script("typescript2.mjs"),
        &json!({"url": server["url"], "headers": server["headers"], "mode": "auto", "calls": calls}),
    );
    let records = &report["calls"][0]["structured"]["records"];
    assert_eq!(records.as_array().map(Vec::len), Some(2), "{report}");
}
