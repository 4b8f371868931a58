//! Sessions of admins: what a page keeps instead of a key, and the links that start one.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};
use weir_tests::{Admin, answer_to, foreign};

use crate::sample;

async fn make_admin(operator: &Admin, role: &str) -> (Admin, String) {
    let body = json!({"name": role, "role": role}).to_string();
    let (status, made) = operator.ask("POST", "/v1/admins", body).await;
    assert_eq!(status, 201, "{made}");
    let key = made["key"].as_str().expect("a key").to_owned();
    let id = made["id"].as_str().expect("an id").to_owned();
    (with_key(operator, key), id)
}

fn with_key(admin: &Admin, key: String) -> Admin {
    Admin {
        key,
        ..admin.clone()
    }
}

/// Signs in, and returns who then asks.
async fn sign_in(admin: &Admin) -> Admin {
    let (status, begun) = admin.ask("POST", "/v1/session", "").await;
    assert_eq!(status, 201, "{begun}");
    with_key(admin, begun["token"].as_str().expect("a token").to_owned())
}

async fn make_link(admin: &Admin) -> Admin {
    let (status, made) = admin.ask("POST", "/v1/session/link", "").await;
    assert_eq!(status, 201, "{made}");
    assert_eq!(
        made["path"],
        format!("/#link={}", made["link"].as_str().expect("a link"))
    );
    with_key(admin, made["link"].as_str().expect("a link").to_owned())
}

#[tokio::test]
async fn a_session_is_its_admin_keys_and_ends_with_it() {
    let house = sample::house().config("[http]\npublic_url = \"https://weir.example\"");
    let gateway = house.serve();
    let operator = Admin::of(&house);
    let (editor, id) = make_admin(&operator, "editor").await;
    let session = sign_in(&editor).await;
    assert!(session.key.starts_with("weirses_"), "{}", session.key);
    let (status, who) = session.ask("GET", "/v1/session", "").await;
    assert_eq!(
        (status, &who["id"], &who["name"], &who["role"]),
        (200, &json!(id), &json!("editor"), &json!("editor"))
    );
    assert_eq!(who["mcp_url"], "https://weir.example/mcp", "{who}");
    assert!(
        who["expires_ms"].is_i64() && who["version"].is_string(),
        "{who}"
    );
    let (_, by_key) = editor.ask("GET", "/v1/session", "").await;
    assert_eq!(by_key["expires_ms"], Value::Null);

    // It may do what its key may, in the key's name.
    assert_eq!(session.ask("GET", "/v1/keys", "").await.0, 200);
    assert_eq!(session.ask("GET", "/v1/admins", "").await.0, 403);
    let changed = sample::CONTRACT.replace("contract: airports", "contract: others\nprefix: other");
    let body = json!({"source": changed}).to_string();
    session.succeed("POST", "/v1/contracts", body).await;
    let (_, records) = operator
        .ask("GET", "/v1/audit?kind=admin&limit=1", "")
        .await;
    assert_eq!(records[0]["by"], "admin:editor", "{records}");
    for path in ["/v1/session", "/v1/session/link"] {
        let (status, refused) = session.ask("POST", path, "").await;
        assert_eq!(status, 403, "a session outlives no session: {refused}");
    }

    let other = sign_in(&editor).await;
    assert_eq!(other.ask("DELETE", "/v1/session", "").await.0, 204);
    assert_eq!(other.ask("GET", "/v1/session", "").await.0, 401);
    assert_eq!(editor.ask("DELETE", "/v1/session", "").await.0, 409);
    assert_eq!(session.ask("GET", "/v1/session", "").await.0, 200);
    let link = make_link(&editor).await;
    assert_eq!(
        operator
            .ask("DELETE", &format!("/v1/admins/{id}"), "")
            .await
            .0,
        204
    );
    assert_eq!(session.ask("GET", "/v1/session", "").await.0, 401);
    assert_eq!(link.ask("POST", "/v1/session", "").await.0, 401);

    drop(gateway);
    for name in ["weir.db", "weir.db-wal"] {
        let kept = std::fs::read(house.path().join("state").join(name)).unwrap_or_default();
        let kept = String::from_utf8_lossy(&kept);
        for secret in [&session.key, &link.key] {
            let secret = secret.rsplit('_').next().expect("a secret");
            assert!(!kept.contains(secret), "{name} holds a secret");
        }
    }
}

#[tokio::test]
async fn an_operator_sees_the_open_sessions_and_ends_one() {
    let house = sample::house();
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let (editor, id) = make_admin(&operator, "editor").await;
    let (own, other) = (sign_in(&operator).await, sign_in(&editor).await);
    let left = sign_in(&editor).await;
    assert_eq!(left.ask("DELETE", "/v1/session", "").await.0, 204);
    make_link(&editor).await;

    let listed = own.succeed("GET", "/v1/sessions", "").await;
    let listed = listed.as_array().expect("a list");
    assert_eq!(
        listed.len(),
        2,
        "neither one that ended nor a link: {listed:?}"
    );
    let find = |name: &str| {
        let found = listed.iter().find(|session| session["name"] == name);
        found.expect("the session").clone()
    };
    let (first, second) = (find("first"), find("editor"));
    assert_eq!(
        (&first["own"], &second["own"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        (&second["admin"], &second["role"]),
        (&json!(id), &json!("editor"))
    );
    assert!(
        !listed
            .iter()
            .any(|session| session.to_string().contains("weirses_"))
    );
    assert_eq!(other.ask("GET", "/v1/sessions", "").await.0, 403);

    let path = format!("/v1/sessions/{}", second["id"].as_str().expect("an id"));
    assert_eq!(other.ask("DELETE", &path, "").await.0, 403);
    assert_eq!(own.ask("DELETE", &path, "").await.0, 204);
    assert_eq!(other.ask("GET", "/v1/session", "").await.0, 401);
    assert_eq!(own.ask("DELETE", &path, "").await.0, 404);
    let (_, records) = operator
        .ask("GET", "/v1/audit?kind=admin&limit=1", "")
        .await;
    assert_eq!(
        (&records[0]["act"], &records[0]["subject"]),
        (&json!("session_end"), &json!(id)),
        "{records}"
    );
}

/// A list of sessions is bounded, and those that were idle for too long do not count.
#[tokio::test]
async fn idle_sessions_take_no_place_in_a_list_that_is_bounded() {
    let house = sample::house();
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let own = sign_in(&operator).await;
    let state = rusqlite::Connection::open(house.path().join("state/weir.db")).expect("a state");
    let hour_ms = 3600 * 1000;
    // Newer than this one, and not used since two hours.
    let add = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1100)
        INSERT INTO sessions SELECT 'other-' || n, x'00', admin, kind, created_ms + n, expires_ms, used_ms - 2 * ?1
        FROM sessions, number WHERE kind = 'session'";
    assert_eq!(state.execute(add, [hour_ms]).expect("added"), 1_100);
    let list = async || {
        let listed = own.succeed("GET", "/v1/sessions", "").await;
        listed.as_array().expect("a list").clone()
    };
    let listed = list().await;
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["own"], true, "{listed:?}");
    let use_all = "UPDATE sessions SET used_ms = used_ms + 2 * ?1 WHERE id LIKE 'other-%'";
    state.execute(use_all, [hour_ms]).expect("used");
    let listed = list().await;
    assert_eq!(listed.len(), 1_000);
    let newest = &listed[0]["id"];
    assert_eq!(newest, "other-1100", "the newest come first");
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let house = sample::house();
    let _gateway = house.serve();
    let operator = Admin::of(&house);
    let link = make_link(&operator).await;
    assert_eq!(
        link.ask("GET", "/v1/session", "").await.0,
        401,
        "it is no session"
    );
    let (first, second) = tokio::join!(
        link.ask("POST", "/v1/session", ""),
        link.ask("POST", "/v1/session", "")
    );
    let mut statuses = [first.0, second.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 401]);
    let retried = answer_to(
        operator
            .request("POST", "/v1/session")
            .header("idempotency-key", "one"),
    )
    .await;
    assert_eq!(retried.status(), 400, "the answer is a secret");

    let printed = house.succeed(&["admins", "link"]);
    let (_, secret) = printed.trim().split_once("/#link=").expect("a link");
    let session = sign_in(&with_key(&operator, secret.to_owned())).await;
    assert_eq!(session.ask("GET", "/v1/admins", "").await.0, 200);
}

/// Runs a program on a terminal, prints the first link that is shown there, and ends it when its input ends.
const TERMINAL: &str = r"
import os, pty, re, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
screen, found = b'', None
while not found:
    screen += os.read(terminal, 4096)
    found = re.search(rb'(http://\S+#link=\w+)\s', screen)
print(found[1].decode(), flush=True)
sys.stdin.read()
os.kill(pid, signal.SIGKILL)
";

#[tokio::test]
async fn a_terminal_shows_a_link_that_signs_in() {
    let house = sample::house();
    let serve = house.weir(&["serve", "--listen", "127.0.0.1:0"]);
    let mut terminal = foreign::python("python-current");
    terminal
        .args(["-c", TERMINAL])
        .arg(serve.get_program())
        .args(serve.get_args())
        .current_dir(house.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = terminal.spawn().expect("the terminal opens");
    let mut link = String::new();
    BufReader::new(child.stdout.take().expect("stdout is piped"))
        .read_line(&mut link)
        .expect("the terminal is read");
    let operator = Admin::of(&house);
    let (address, secret) = link.trim().split_once("/#link=").expect("a link");
    let announced = std::fs::read_to_string(house.path().join("state/admin.url"));
    assert_eq!(address, announced.expect("it serves"));
    let session = sign_in(&with_key(&operator, secret.to_owned())).await;
    let (status, who) = session.ask("GET", "/v1/session", "").await;
    assert_eq!((status, &who["role"]), (200, &json!("operator")));
    drop(child.stdin.take());
    child.wait().expect("it ends");
}

/// Some write the endpoint at the end of `public_url`, as clients have it: it is not added a second time.
#[tokio::test]
async fn clients_are_shown_one_endpoint() {
    let house = sample::house().config("[http]\npublic_url = \"https://weir.example/tools/mcp/\"");
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let (_, session) = admin.ask("GET", "/v1/session", "").await;
    assert_eq!(session["mcp_url"], "https://weir.example/tools/mcp");
    let (_, snippets) = admin.ask("GET", "/v1/snippets", "").await;
    let shown = snippets.to_string();
    assert!(shown.contains("weir.example/tools/mcp"), "{shown}");
    assert!(!shown.contains("/mcp/mcp"), "{shown}");
}
