//! Tests what a signal ends: new calls at once, calls in flight with their answers, and then the process, with 0.

use std::{
    collections::BTreeSet,
    fs,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::net::TcpListener;
use weir_tests::{Admin, Gateway, House, Modern, SERVE, Stdio, client, http, until, web::Web};

use crate::calls;

/// The time from the last answer to the end of the process, for the quickest of some rounds: the machine of a test may
/// be busy with others.
const END_MAX: Duration = Duration::from_millis(200);
const ROUNDS: usize = 5;
/// Rounds in which the machine may be busy.
const ROUNDS_MAX: usize = 4 * ROUNDS;

#[tokio::test]
async fn serve_answers_what_is_in_flight_and_leaves() {
    let web = Web::start().await;
    let house = calls::house(&web.base);
    for name in ["TERM", "INT"] {
        let mut quickest = Duration::MAX;
        for round in 1..=ROUNDS_MAX {
            let mut gateway = house.serve();
            let client = Modern::new(gateway.url());
            let before = web.requests();
            let call = tokio::spawn({
                let client = client.clone();
                async move { client.call("get_item", json!({"id": "held"})).await }
            });
            until("the call reaches the service", async || {
                web.requests() > before
            })
            .await;
            gateway.signal(name);
            gateway.wait_for_log("stopping: calls in flight run to their end");
            assert!(
                !call.is_finished(),
                "the signal came while the call was in flight"
            );
            let late = client.request("tools/list", json!({})).send();
            assert!(
                late.await.is_err_and(|error| error.is_connect()),
                "no one new is let in"
            );
            web.release();
            let answer = call.await.expect("the call ends");
            let answered = Instant::now();
            assert_eq!(
                answer["structuredContent"]["id"], "held",
                "{name}: {answer}"
            );
            let status = gateway.left();
            assert_eq!(
                status.code(),
                Some(0),
                "{name}: {status}\n{}",
                gateway.log()
            );
            quickest = quickest.min(answered.elapsed());
            if round >= ROUNDS && quickest < END_MAX {
                break;
            }
        }
        assert!(quickest < END_MAX, "{name}: {quickest:?}");
    }
}

/// Behind a load balancer a process that is to end first reports that it is not ready, and keeps serving until calls
/// go elsewhere.
#[tokio::test]
async fn serve_is_not_ready_for_a_while_before_it_leaves() {
    let house = calls::house("http://127.0.0.1:1").config("[http]\ndrain_s = 15");
    let mut gateway = house.serve();
    let client = Modern::new(gateway.url());
    let admin = Admin::of(&house);
    let probe = async |base: &str, path: &str| {
        let answer = client::send(http().get(format!("{base}{path}"))).await;
        (answer.status.as_u16(), answer.text)
    };
    for base in [&gateway.base, &admin.url] {
        for path in ["/readyz", "/healthz"] {
            let (status, text) = probe(base, path).await;
            assert_eq!(status, 200, "{base}{path}: {text}");
        }
    }
    let listed = client.ask("tools/list", json!({})).await;
    assert!(!listed.headers.contains_key("connection"), "{listed:?}");
    gateway.signal("TERM");
    gateway.wait_for_log("still serving, and no longer ready");
    for base in [&gateway.base, &admin.url] {
        let (status, text) = probe(base, "/readyz").await;
        assert!(
            status == 503 && text.contains("about to end"),
            "{base}: {text}"
        );
        assert_eq!(probe(base, "/healthz").await.0, 200, "{base}");
    }
    let listed = client.ask("tools/list", json!({})).await;
    assert!(listed.result()["tools"].is_array(), "{listed:?}");
    assert_eq!(listed.headers["connection"], "close");
    let status = gateway.left();
    assert_eq!(status.code(), Some(0), "{status}\n{}", gateway.log());
}

#[tokio::test]
async fn stdio_answers_what_is_in_flight_and_leaves() {
    let web = Web::start().await;
    let house = calls::house(&web.base);
    for name in ["TERM", "INT"] {
        let mut quickest = Duration::MAX;
        for round in 1..=ROUNDS_MAX {
            let mut weir = Stdio::start(&house);
            weir.ask_modern("tools/list", json!({})).await;
            let before = web.requests();
            let id = weir
                .begin_modern(
                    "tools/call",
                    json!({"name": "get_item", "arguments": {"id": "held"}}),
                )
                .await;
            until("the call reaches the service", async || {
                web.requests() > before
            })
            .await;
            let asked = Instant::now();
            weir.signal(name).await;
            // Nothing shows when the signal is handled.
            tokio::time::sleep(Duration::from_millis(50)).await;
            web.release();
            let answer = weir.read().await;
            let answered = Instant::now();
            // A call has a second and a half from then on, which a machine that stops may take away.
            if answered - asked > Duration::from_secs(1) {
                continue;
            }
            assert_eq!(answer["id"], id, "{name}: {answer}");
            assert_eq!(
                answer["result"]["structuredContent"]["id"], "held",
                "{name}: {answer}"
            );
            let status = weir.left().await;
            assert_eq!(status.code(), Some(0), "{name}: {status}");
            quickest = quickest.min(answered.elapsed());
            if round >= ROUNDS && quickest < END_MAX {
                break;
            }
        }
        assert!(quickest < END_MAX, "{name}: {quickest:?}");
    }
}

const PEOPLE: &str = "
contract: people
title: People
description: People of a database.
collections:
  people: { adapter: sql, settings: { connection: db, table: people } }
tools:
  - { tool: list_people, description: Lists people., verb: list, collection: people }
";

/// A reload that is asked for while the gateway starts is done when it has started.
#[tokio::test]
async fn a_hangup_during_the_start_is_a_reload() {
    let database = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = database.local_addr().expect("an address");
    let house = calls::house("http://127.0.0.1:1")
        .config(&format!(
            "[connections.db]\nkind = \"postgresql\"\nurl = \"postgres://weir@{address}/people\""
        ))
        .config("[plugins.sql.grants]\ndb = \"read\"")
        .file("contracts/people.yaml", PEOPLE);
    let serve = house.weir(&SERVE);
    let mut command = Command::new("sh");
    command
        .args(["-c", "echo $$ > process; exec \"$0\" \"$@\""])
        .arg(serve.get_program())
        .args(serve.get_args());
    command.current_dir(house.path());
    let started = tokio::task::spawn_blocking(move || Gateway::start(command));
    let (asking, _) = database
        .accept()
        .await
        .expect("the start looks at the database");
    let process =
        fs::read_to_string(house.path().join("process")).expect("the process wrote its number");
    assert!(
        Command::new("kill")
            .args(["-HUP", process.trim()])
            .status()
            .expect("kill runs")
            .success()
    );
    drop((asking, database));
    let gateway = started.await.expect("it serves");
    gateway.wait_for_log("configuration reloaded");
}

/// The thread that all calls share is blocked on a file, and handles no signal: the process ends at Ctrl-C, or else at its
/// deadline, a minute after the longest call.
#[test]
fn a_stop_ends_a_process_whose_threads_are_busy() {
    let busy = || {
        let house = House::new().config("[limits]\ntimeout_ms = 1000");
        let mut serve = house.weir(&SERVE);
        serve.env("TOKIO_WORKER_THREADS", "1");
        let gateway = Gateway::start(serve);
        let file = house.path().join("weir.toml");
        fs::remove_file(&file).expect("the configuration is there");
        let made = Command::new("mkfifo").arg(&file).status();
        assert!(made.expect("mkfifo runs").success());
        gateway.signal("HUP");
        let opened = fs::OpenOptions::new().write(true).open(&file);
        let kept = opened.expect("the reload opens it too");
        gateway.signal("TERM");
        gateway.wait_for_log("stopping: calls in flight run to their end");
        (house, kept, gateway)
    };
    let (overdue, mut interrupted) = (busy(), busy());
    let again = format!(
        "while kill -INT {}; do sleep 0.2; done 2> /dev/null",
        interrupted.2.process_id()
    );
    let asking = Command::new("sh").args(["-c", &again]).spawn();
    let mut asking = asking.expect("sh runs");
    let status = interrupted.2.left();
    assert_eq!(
        status.code(),
        Some(130),
        "{status}\n{}",
        interrupted.2.log()
    );
    assert!(asking.wait().expect("it ends").success());
    let (_house, _kept, mut gateway) = overdue;
    let status = gateway.left();
    assert_eq!(status.code(), Some(1), "{status}\n{}", gateway.log());
    gateway.wait_for_log("stopped, since the time to end has passed");
}

/// Returns the children of a process that have ended and that it has not asked for.
fn zombies(parent: &str) -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").expect("there is /proc").flatten();
    let is_zombie = |id: &String| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let (name, rest) = stat.rsplit_once(')').unwrap_or_default();
        // The program waits for its own children.
        rest.starts_with(&format!(" Z {parent} ")) && !name.ends_with("(weir")
    };
    processes
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(is_zombie)
        .collect()
}

/// In a container, this program is the first process, and with it the parent of what the commands of other servers leave behind.
#[tokio::test]
async fn the_first_process_takes_off_what_others_leave_behind() {
    let house = House::new()
        .config("[upstreams.bad]\ncommand = [\"sh\", \"-c\", \"(sleep 0.1 &); sleep 1\"]\n");
    let serve = house.weir(&["serve", "--listen", "127.0.0.1:0"]);
    let mut first = Command::new("unshare");
    let place = "--user --map-root-user --pid --fork --mount-proc --kill-child";
    first.args(place.split(' ')).arg(serve.get_program());
    first.args(serve.get_args()).current_dir(house.path());
    let gateway = Gateway::start(first);
    let outer = gateway.process_id();
    let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children"));
    let children = children.expect("`unshare` runs");
    let process = children.trim();
    let mut left = BTreeSet::new();
    until("a process was left behind", async || {
        left = zombies(process);
        !left.is_empty()
    })
    .await;
    until("it is taken off", async || {
        zombies(process).is_disjoint(&left)
    })
    .await;
}
