//! The console: how its files are served, and its pages in a browser against a real gateway.

use std::{fs, process::Command, time::Duration};

use serde_json::{Value, json};
use weir_tests::{Admin, House, answer_to, foreign, http, place, upstream};

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

/// Returns the address of the script that the first screen needs.
fn script(page: &str) -> &str {
    let at = page
        .find("/assets/first-")
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

    let page = answer_to(get("/")).await;
    assert_eq!(page.status(), 200);
    let headers = page.headers().clone();
    assert_eq!(headers["content-security-policy"], POLICY);
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["cache-control"], "no-cache");
    let page = page.text().await.expect("text");
    assert!(!page.contains("<style") && !page.contains("http"), "{page}");
    let known = answer_to(get("/").header("if-none-match", &headers["etag"])).await;
    assert_eq!(known.status(), 304);

    let plain = answer_to(get(script(&page))).await;
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
    let small = answer_to(get(script(&page)).header("accept-encoding", "gzip, br;q=0.5")).await;
    assert_eq!(small.headers()["content-encoding"], "br");
    assert_eq!(small.headers()["vary"], "Accept-Encoding");
    assert_ne!(small.headers()["etag"], plain_tag);
    assert!(small.bytes().await.expect("bytes").len() * 2 < plain);
    let refused = answer_to(get(script(&page)).header("accept-encoding", "br;q=0")).await;
    assert!(!refused.headers().contains_key("content-encoding"));

    for path in [
        "/assets/index.js",
        "/assets/..%2findex.html",
        "/index.html",
        "/console",
    ] {
        assert_eq!(answer_to(get(path)).await.status(), 404, "{path}");
    }
    for path in ["/", script(&page)] {
        let foreign = answer_to(get(path).header("host", "rebound.example")).await;
        assert_eq!(foreign.status(), 403, "{path}");
        let posted = answer_to(http().post(format!("{}{path}", admin.url))).await;
        assert_eq!(posted.status(), 405, "{path}");
    }
    let config = answer_to(get("/v1/config")).await;
    assert_eq!(config.status(), 401);
}

#[tokio::test]
async fn operations_of_the_document_have_names_of_their_own() {
    let house = house();
    let _gateway = house.serve();
    let served = Admin::of(&house).succeed("GET", "/openapi.json", "").await;
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

/// The routes that answer a caller without a key, and why: docs/decisions/open-routes.md.
const OPEN_ROUTES: [(&str, &str); 3] = [
    ("GET", "/v1/session/oidc"),
    ("POST", "/v1/session/oidc"),
    ("POST", "/v1/session/oidc/answer"),
];

#[tokio::test]
async fn no_other_route_answers_without_a_key() {
    let house = house();
    let _gateway = house.serve();
    let stranger = Admin {
        key: String::new(),
        ..Admin::of(&house)
    };
    let (_, document) = stranger.ask("GET", "/openapi.json", "").await;
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() > 50, "{document}");
    for (path, item) in paths {
        let asked = path.replace(['{', '}'], "");
        for method in item.as_object().expect("methods").keys() {
            let method = method.to_uppercase();
            let (status, answer) = stranger.ask(&method, &asked, "{}").await;
            let is_open = OPEN_ROUTES.contains(&(method.as_str(), path.as_str()));
            assert_eq!(status != 401, is_open, "{method} {path}: {status} {answer}");
        }
    }
    for path in ["/v1", "/v1/none", "/assets", "/admin", "/index.html"] {
        assert_eq!(stranger.ask("GET", path, "").await.0, 404, "{path}");
    }
}

/// What needs a restart is marked at its key, as the documentation lists it.
#[test]
fn the_keys_that_need_a_restart_are_those_of_the_documentation() {
    let read = |path: &str| {
        fs::read_to_string(place::repository().join(path)).expect("a file of the repository")
    };
    let documentation = read("docs/configuration.md");
    let marked = read("console/src/pages/settings/restart-keys.ts");
    let table = documentation
        .split("These keys wait for the next start")
        .nth(1)
        .expect("the section");
    let rows = table
        .lines()
        .filter(|line| line.starts_with("| `["))
        .collect::<Vec<_>>();
    assert!(rows.len() > 3, "{table}");
    for row in rows {
        let mut cells = row.split('|').skip(1);
        let (sections, keys) = (cells.next().expect("sections"), cells.next().expect("keys"));
        let names = |cell: &str| -> Vec<String> {
            let odd = cell.split('`').skip(1).step_by(2);
            odd.map(|name| name.trim_matches(['[', ']']).to_owned())
                .collect()
        };
        for section in names(sections) {
            let line = match names(keys) {
                keys if keys.is_empty() => format!("  {section}: \"all\",\n"),
                keys => format!("  {section}: {keys:?},\n"),
            };
            assert!(marked.contains(&line), "{line}");
        }
    }
}

/// The program can be built without Node: the only script of its build does not need it.
#[test]
fn the_program_is_built_without_node() {
    let program = place::binary("weir");
    let builds = program.parent().expect("a folder").join("build");
    let scripts = fs::read_dir(&builds)
        .expect("cargo ran a script")
        .filter_map(|entry| {
            let folder = entry.expect("an entry").path();
            let script = folder.join("build-script-build");
            let is_own = folder.file_name()?.to_str()?.starts_with("weir-binary-");
            (is_own && script.exists()).then_some(script)
        });
    let newest = scripts.max_by_key(|script| {
        let changed = script.metadata().and_then(|about| about.modified());
        changed.expect("a time")
    });
    let out = tempfile::tempdir().expect("a folder");
    let output = Command::new(newest.expect("the script of the program"))
        .env_clear()
        .env("PATH", "")
        .env("OUT_DIR", out.path())
        .env("CARGO_MANIFEST_DIR", place::repository().join("cli/binary"))
        .current_dir(place::repository().join("cli/binary"))
        .output()
        .expect("the script runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let pages = fs::read_to_string(out.path().join("console.rs")).expect("written");
    assert!(pages.contains("index.html"), "{pages}");
}

/// `cargo xtask demo` starts a gateway, and then this server next to it.
#[tokio::test]
async fn the_demo_prints_a_link_to_the_page() {
    let house = house();
    let gateway = house.serve();
    let port = gateway.base.rsplit(':').next().expect("a port").to_owned();
    let target = place::binary("weir");
    let target = target.ancestors().nth(2).expect("TARGET/debug/weir");
    let output = Command::new(place::binary("xtask"))
        .args(["announce", &port])
        .arg(target)
        .arg(house.path().join("state"))
        .output()
        .expect("xtask runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let mut lines = printed.lines().map(str::trim);
    let (address, secret) = lines
        .find(|line| line.contains("/#link="))
        .and_then(|link| link.split_once("/#link="))
        .unwrap_or_else(|| panic!("no link: {printed}"));
    let page = answer_to(http().get(address)).await;
    assert_eq!(page.status(), 200);
    assert!(page.text().await.expect("text").contains("/assets/"));
    let admin = Admin {
        url: address.to_owned(),
        key: secret.to_owned(),
    };
    let (status, session) = admin.ask("POST", "/v1/session", "").await;
    assert_eq!((status, &session["role"]), (201, &json!("operator")));
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
    let key = |role: &str| house.succeed(&["admins", "create", "--name", role, "--role", role]);
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
    let given = fs::read_to_string(given).expect("what a client is given");
    let given: Value = serde_json::from_str(&given).expect("JSON");
    call_as_given(&given["settings"]);
    let key = given["settings"]["mcpServers"]["weir"]["headers"]["Authorization"]
        .as_str()
        .and_then(|header| header.strip_prefix("Bearer "));
    run_as_copied(&given["calls"], &empty, key.expect("a key"));
}

/// Calls the tool that was made in the browser, with the official client and the page's instructions for a client.
fn call_as_given(given: &Value) {
    let server = &given["mcpServers"]["weir"];
    let calls = json!([{"tool": "list_rooms", "arguments": {"min_seats": 10}}]);
    let report = foreign::report(
        foreign::node_script("typescript2.mjs"),
        &json!({"url": server["url"], "headers": server["headers"], "mode": "auto", "calls": calls}),
    );
    let records = &report["calls"][0]["structured"]["records"];
    assert_eq!(records.as_array().map(Vec::len), Some(2), "{report}");
}

/// Runs the texts that the page of trials copies, each in its language.
fn run_as_copied(calls: &Value, house: &House, key: &str) {
    let text = |name: &str| calls[name].as_str().expect("a text");
    let mut shell = Command::new("sh");
    let weir = place::binary("weir");
    let command = text("weir call").replacen("weir ", &format!("{} ", weir.display()), 1);
    shell.arg("-c").arg(command).current_dir(house.path());
    let mut python = foreign::python("python-mcp1");
    python.arg("-c").arg(text("Python"));
    let mut node = foreign::node();
    node.args(["--input-type=module", "--eval", text("TypeScript")]);
    for mut command in [shell, python, node] {
        command.env("WEIR_KEY", key);
        let shown = format!("{command:?}");
        let output = foreign::run(command, Duration::from_secs(180));
        let (out, error) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(
            out.contains("Cygnus") && !out.contains("Borealis"),
            "{shown}\n{out}\n{error}"
        );
    }
    assert!(
        text("curl").starts_with("curl http://127.0.0.1:"),
        "{calls}"
    );
}
