//! Builds of plugins that are uploaded to one node, at all of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use weir_tests::{Admin, Gateway, House, Modern, Postgres, place, until};

use crate::plugins::{GUEST_CONTRACT, build};

struct Machine {
    house: House,
    gateway: Gateway,
    admin: Admin,
}

/// Starts a gateway on a machine, with its own plugins folder. The first one makes the admin key.
fn machine(server: &Postgres, first: Option<&Admin>) -> Machine {
    let house = House::new().own_plugins(&["sheet"]).config(&format!(
        "[state]\nurl = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n",
        server.url()
    ));
    house.write("plugins/misbehaving.wasm", build("1"));
    let gateway = house.serve();
    let admin = match first {
        None => Admin::of(&house),
        Some(first) => {
            let url = std::fs::read_to_string(house.path().join("state/admin.url"));
            Admin {
                url: url.expect("written"),
                key: first.key.clone(),
            }
        }
    };
    Machine {
        house,
        gateway,
        admin,
    }
}

async fn build_of(machine: &Machine) -> Value {
    let client = Modern::new(machine.gateway.url());
    let result = client
        .succeed("behave", json!({"behaviour": "behave"}))
        .await;
    result["structuredContent"]["build"].clone()
}

async fn digest_of(machine: &Machine) -> Value {
    let (_, listed) = machine.admin.ask("GET", "/v1/plugins", "").await;
    let plugins = listed["plugins"].as_array().expect("a list");
    let plugin = plugins.iter().find(|it| it["name"] == "misbehaving");
    plugin.map_or(Value::Null, |plugin| plugin["digest"].clone())
}

/// Calls a machine until it is stopped, and returns the failures.
fn load(machine: &Machine, ending: &Arc<AtomicBool>) -> tokio::task::JoinHandle<Vec<Value>> {
    let (client, ending) = (Modern::new(machine.gateway.url()), ending.clone());
    tokio::spawn(async move {
        let mut failed = Vec::new();
        while !ending.load(Ordering::Relaxed) {
            let result = client.call("behave", json!({"behaviour": "behave"})).await;
            failed.extend((result["isError"] != false).then_some(result));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        failed
    })
}

#[tokio::test]
async fn a_build_that_is_uploaded_to_one_node_serves_at_all_and_a_broken_one_at_none() {
    let server = Postgres::start();
    let one = machine(&server, None);
    let two = machine(&server, Some(&one.admin));
    let body = json!({"source": GUEST_CONTRACT}).to_string();
    one.admin.succeed("POST", "/v1/contracts", body).await;
    for node in [&one, &two] {
        assert_eq!(build_of(node).await, "1");
    }
    let ending = Arc::new(AtomicBool::new(false));
    let loads = [load(&one, &ending), load(&two, &ending)];
    let path = "/v1/plugins/misbehaving";
    let (status, uploaded) = one.admin.ask("PUT", path, build("2")).await;
    assert_eq!(
        (status, &uploaded["everywhere"]),
        (200, &json!(true)),
        "{uploaded}"
    );
    for node in [&one, &two] {
        assert_eq!(build_of(node).await, "2");
        assert_eq!(digest_of(node).await, uploaded["digest"]);
    }
    for broken in [build("lost"), build("2")[..1000].to_vec()] {
        let (status, refused) = two.admin.ask("PUT", path, broken).await;
        assert_eq!(status, 422, "{refused}");
        for node in [&one, &two] {
            assert_eq!(digest_of(node).await, uploaded["digest"]);
            let file = std::fs::read(node.house.path().join("plugins/misbehaving.wasm"));
            assert_eq!(file.expect("a file"), build("2"));
        }
    }
    // A node that was not running serves it as soon as it is ready.
    let three = machine(&server, Some(&one.admin));
    assert_eq!(build_of(&three).await, "2");
    let (status, uploaded) = three.admin.ask("PUT", path, build("3")).await;
    assert_eq!(
        (status, &uploaded["everywhere"]),
        (200, &json!(true)),
        "{uploaded}"
    );
    for node in [&one, &two, &three] {
        assert_eq!(build_of(node).await, "3");
    }
    ending.store(true, Ordering::Relaxed);
    for load in loads {
        assert_eq!(load.await.expect("it ends"), Vec::<Value>::new());
    }

    two.admin.succeed("DELETE", path, "").await;
    for node in [&one, &two, &three] {
        let file = node.house.path().join("plugins/misbehaving.wasm");
        until("the file is removed", async || !file.exists()).await;
    }
}

/// A folder that holds a different file after an upload was corrected by hand: it is left as it is.
#[tokio::test]
async fn what_is_put_into_a_folder_by_hand_later_stays_at_the_next_start() {
    let server = Postgres::start();
    let one = machine(&server, None);
    let two = machine(&server, Some(&one.admin));
    let path = "/v1/plugins/misbehaving";
    let uploaded = one.admin.succeed("PUT", path, build("2")).await;
    let Machine { house, gateway, .. } = two;
    drop(gateway);
    house.write("plugins/misbehaving.wasm", build("4"));
    let gateway = house.serve();
    let url = std::fs::read_to_string(house.path().join("state/admin.url"));
    let admin = Admin {
        url: url.expect("written"),
        key: one.admin.key.clone(),
    };
    let two = Machine {
        house,
        gateway,
        admin,
    };
    assert_ne!(digest_of(&two).await, uploaded["digest"]);
    assert_ne!(digest_of(&two).await, Value::Null);
}

/// Files are replaced on one machine after the other. The definitions of the first one are published before its build is kept,
/// and the others serve the kept build.
#[tokio::test]
async fn a_build_that_another_machine_keeps_serves_what_it_published() {
    let server = Postgres::start();
    let url = server.url();
    let start = || {
        let house = House::new().own_plugins(&[]).config(&format!(
            "[state]\nurl = \"{url}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n"
        ));
        put_tools(&house, "tools-js");
        let gateway = house.serve();
        (house, gateway)
    };
    let (_first, one) = start();
    let (second, two) = start();
    let deploys_by_region = async |gateway: &Gateway| {
        let (tools, _) = Modern::new(gateway.url()).list().await;
        let deploy = tools.iter().find(|tool| tool["name"] == "deploy");
        deploy.is_some_and(|tool| tool["inputSchema"]["properties"]["region"].is_object())
    };
    for gateway in [&one, &two] {
        assert!(!deploys_by_region(gateway).await);
    }
    put_tools(&second, "tools-js-wider");
    for gateway in [&two, &one] {
        until("what was published is served", async || {
            deploys_by_region(gateway).await
        })
        .await;
        let called = Modern::new(gateway.url()).call("whoami", json!({})).await;
        assert_eq!(
            called["structuredContent"]["contract"], "tools-js@1.1.0",
            "{called}"
        );
    }
}

fn put_tools(house: &House, guest: &str) {
    let build = std::fs::read(place::guest(guest)).expect("a guest");
    house.write("plugins/tools-js.wasm", build);
}

/// Another node drops the row of a kept build, and each machine has a file of it.
#[tokio::test]
async fn the_file_of_a_build_that_nothing_names_goes() {
    let server = Postgres::start();
    let house = super::messages::house(&server);
    let gateway = house.serve();
    let folder = house.path().join("state/builds");
    let names = || {
        let entries = std::fs::read_dir(&folder).expect("kept builds");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("an entry").file_name();
        entries.map(name).collect::<std::collections::BTreeSet<_>>()
    };
    let kept = names();
    assert!(!kept.is_empty(), "the build of the contract is kept");
    drop(gateway);
    let dropped = "0".repeat(64);
    house.write(&format!("state/builds/{dropped}.wasm"), "a build");
    house.write(&format!("state/builds/{dropped}.wasm.minisig"), "signed");
    assert_eq!(names().len(), kept.len() + 2);
    let _gateway = house.serve();
    until("the build that nothing needs is removed", async || {
        names() == kept
    })
    .await;
}
