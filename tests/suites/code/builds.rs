//! Successive builds of one plugin: which one serves, and who allows it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use weir_tests::{Events, Gateway, House, Legacy, Modern, until};

use super::{code, plain, put};

/// Plays one caller: it uses the old arguments until they are refused, and the new ones from then on.
async fn keep_calling(url: String, stop: Arc<AtomicBool>, [old, new]: [Arc<AtomicUsize>; 2]) {
    let client = Modern::new(url);
    let mut renamed = false;
    while !stop.load(Ordering::Relaxed) {
        let parameter = if renamed { "application" } else { "service" };
        let result = client
            .call("deploy", json!({"environment": "prod", parameter: "web"}))
            .await;
        if code(&result) == "invalid_arguments" && !renamed {
            // The contract with the new name is published: no other reason may refuse the call.
            assert!(result.to_string().contains("application"), "{result}");
            renamed = true;
            continue;
        }
        let answer = &result["structuredContent"];
        assert_eq!(
            (&answer["service"], &answer["version"]),
            (&json!("web"), &json!("latest")),
            "a call failed: {result}"
        );
        if renamed { &new } else { &old }.fetch_add(1, Ordering::Relaxed);
    }
}

async fn version(gateway: &Gateway) -> String {
    let answer = Modern::new(gateway.contract_url("tools-js"))
        .ask("server/discover", json!({}))
        .await;
    let info = &answer.reply()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    info["version"].as_str().unwrap_or("none").to_owned()
}

/// Counts the messages about a changed list, until the stream is silent.
async fn changes(stream: &mut Events) -> usize {
    let mut count = 0;
    while let Some(message) = stream.next(Duration::from_millis(1_500)).await {
        count += usize::from(message["method"] == "notifications/tools/list_changed");
    }
    count
}

/// Two processes on one state and one folder, sixteen callers: the build that renames a parameter waits while the old one
/// answers, and goes live in both once its change is published. No call fails, and each client is notified once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_build_that_renames_a_parameter_is_held_and_then_swapped_under_load() {
    let house = plain();
    let gateways = [house.serve(), house.serve()];
    let (stop, counts) = (
        Arc::new(AtomicBool::new(false)),
        [Arc::<AtomicUsize>::default(), Arc::default()],
    );
    let callers: Vec<_> = (0..16)
        .map(|caller| {
            let url = gateways[caller % 2].url();
            tokio::spawn(keep_calling(url, stop.clone(), counts.clone()))
        })
        .collect();
    let mut streams = Vec::new();
    for gateway in &gateways {
        let legacy = Legacy::open(gateway.url(), "2025-11-25").await;
        streams.push(Events::open(legacy.stream()).await);
    }
    // A pure fix goes live automatically, and no client is notified.
    put(&house, "tools-js-fix");
    for gateway in &gateways {
        gateway.wait_for_log("\"version\":\"1.0.1\"");
    }
    put(&house, "tools-js");
    put(&house, "tools-js-renamed");
    for gateway in &gateways {
        gateway.wait_for_log("held: it defines other tools than are published");
    }
    let before = counts[0].load(Ordering::Relaxed);
    until("the old build goes on", async || {
        counts[0].load(Ordering::Relaxed) > before + 100
    })
    .await;
    assert_eq!(counts[1].load(Ordering::Relaxed), 0);
    for (gateway, stream) in gateways.iter().zip(&mut streams) {
        assert_eq!(version(gateway).await, "1.0.0");
        assert_eq!(changes(stream).await, 0, "nothing has changed for a client");
    }
    let plugins = house.json(&["plugins", "list"]);
    assert!(plugins.to_string().contains("held"), "{plugins}");
    let draft = house.waiting_draft("tools-js");
    assert_eq!(draft["class"], "breaking");
    house.agree(&draft);
    for gateway in &gateways {
        until("the new version is served", async || {
            version(gateway).await == "2.0.0"
        })
        .await;
    }
    let before = counts[1].load(Ordering::Relaxed);
    until("the new build answers", async || {
        counts[1].load(Ordering::Relaxed) > before + 100
    })
    .await;
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("no call fails");
    }
    for stream in &mut streams {
        assert_eq!(changes(stream).await, 1, "exactly one list_changed");
    }
    let counts = counts.map(|count| count.load(Ordering::Relaxed));
    eprintln!(
        "{} calls of the old build, {} of the new one, none failed",
        counts[0], counts[1]
    );
}

/// A published version keeps the build it was made from, whatever lies in the folder.
#[tokio::test]
async fn a_restart_and_a_rollback_run_the_kept_build() {
    let house = plain();
    let old = json!({"environment": "prod", "service": "web"});
    let new = json!({"environment": "prod", "application": "web"});
    drop(house.serve());
    put(&house, "tools-js-renamed");
    let (gateway, client) = house.serve_client();
    assert_eq!(
        client.call("deploy", old.clone()).await["isError"],
        false,
        "the kept build answers\n{}",
        gateway.log()
    );
    assert!(agree(&house), "it waits");
    until("the new build", async || {
        client.call("deploy", new.clone()).await["isError"] == false
    })
    .await;
    drop(gateway);
    let (gateway, client) = house.serve_client();
    client.succeed("deploy", new.clone()).await;
    let rollback = ["contracts", "rollback", "tools-js", "--to", "1.0.0"];
    let report = house.json(&rollback);
    let fingerprint = report["fingerprint"].as_str().expect("a fingerprint");
    let (done, out, err) = house.run(&[&rollback[..], &["--fingerprint", fingerprint]].concat());
    assert_eq!(done, 0, "{out} {err}");
    until("the kept build", async || {
        client.call("deploy", old.clone()).await["isError"] == false
    })
    .await;
    drop(gateway);
    let gateway = house.serve();
    assert_eq!(
        Modern::new(gateway.url()).call("deploy", old).await["isError"],
        false,
        "also after a restart"
    );
}

/// Publishes the waiting draft by its fingerprint; returns `false` if none waits.
fn agree(house: &House) -> bool {
    let draft = house.waiting_draft("tools-js");
    !draft.is_null() && house.publish(&draft).0 == 0
}

/// Plays a caller while builds change back and forth: another name of the parameter is used once it is published, and no
/// call may be refused for any other reason. Returns how often that was.
async fn keep_up(url: String, stop: Arc<AtomicBool>, answered: Arc<AtomicUsize>) -> usize {
    let client = Modern::new(url);
    let (mut names, mut changes) = (["service", "application"], 0);
    while !stop.load(Ordering::Relaxed) {
        let result = client
            .call("deploy", json!({"environment": "prod", names[0]: "web"}))
            .await;
        if code(&result) == "invalid_arguments" {
            assert!(result.to_string().contains(names[1]), "{result}");
            names.reverse();
            changes += 1;
            continue;
        }
        assert_eq!(
            result["structuredContent"]["service"], "web",
            "a call failed: {result}"
        );
        answered.fetch_add(1, Ordering::Relaxed);
    }
    changes
}

/// Returns what is live in the state: the version, and the name of the parameter.
fn live(house: &House) -> (String, &'static str) {
    let contract = house.json(&["contracts", "show", "tools-js"]);
    let tools = contract["document"]["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("nothing is live: {contract}"));
    let deploy = tools
        .iter()
        .find(|tool| tool["name"] == "deploy")
        .expect("it is published");
    (
        contract["version"].as_str().expect("a version").to_owned(),
        parameter(deploy),
    )
}

fn parameter(deploy: &Value) -> &'static str {
    let is_renamed = !deploy["inputSchema"]["properties"]["application"].is_null();
    if is_renamed { "application" } else { "service" }
}

/// One of two gateways over one state is killed at any moment of a change of builds: the state opens, a change goes live only
/// after its approval, what is listed is what answers, and the callers of the other gateway notice nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_any_moment_lets_no_build_in() {
    let house = plain();
    let neighbour = house.serve();
    let mut gateway = house.serve();
    let (stop, answered) = (
        Arc::new(AtomicBool::new(false)),
        Arc::<AtomicUsize>::default(),
    );
    let callers: Vec<_> = (0..2)
        .map(|_| tokio::spawn(keep_up(neighbour.url(), stop.clone(), answered.clone())))
        .collect();
    let (mut was, mut agreed) = (live(&house), 0);
    for round in 0..30 {
        put(
            &house,
            if round % 2 == 0 {
                "tools-js-renamed"
            } else {
                "tools-js"
            },
        );
        // Spread over the time of a swap, from the first look at the file to the published contract.
        tokio::time::sleep(Duration::from_millis(round * 137 % 1_100)).await;
        let agrees = round % 3 == 2;
        if agrees {
            until("the build waits to be agreed to", async || agree(&house)).await;
            agreed += 1;
            tokio::time::sleep(Duration::from_millis(round * 53 % 500)).await;
        }
        gateway.kill();
        gateway = house.serve();
        let is = live(&house);
        assert_eq!(is != was, agrees, "round {round}: {was:?} became {is:?}");
        assert_eq!(
            is.1 != was.1,
            agrees,
            "round {round}: {was:?} became {is:?}"
        );
        was = is;

        let client = Modern::new(gateway.contract_url("tools-js"));
        let deploy = client.tool("deploy").await;
        assert_eq!(
            (version(&gateway).await.as_str(), parameter(&deploy)),
            (was.0.as_str(), was.1),
            "round {round}"
        );
        let result = client
            .call("deploy", json!({"environment": "prod", was.1: "web"}))
            .await;
        assert_eq!(
            result["structuredContent"]["service"],
            "web",
            "round {round}: {result}\n{}",
            gateway.log()
        );
        until("the other gateway serves what is live", async || {
            version(&neighbour).await == was.0
        })
        .await;
        let before = answered.load(Ordering::Relaxed);
        until("the other gateway answers", async || {
            answered.load(Ordering::Relaxed) > before
        })
        .await;
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        let changes = caller.await.expect("no call fails");
        assert_eq!(changes, agreed, "each change was seen once");
    }
}

/// A compatible change goes live automatically; one that needs a review is held, and the previous build answers meanwhile.
#[tokio::test]
async fn a_compatible_build_goes_live_by_itself_and_one_to_review_waits() {
    let house = plain();
    let (gateway, client) = house.serve_client();
    let deploy = async |more: Value| {
        let mut arguments = json!({"environment": "prod", "service": "web"});
        arguments
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        client.call("deploy", arguments).await["structuredContent"].clone()
    };
    assert_eq!(
        deploy(json!({"region": "north"})).await["code"],
        "invalid_arguments"
    );
    put(&house, "tools-js-wider");
    until("the wider build is live", async || {
        version(&gateway).await == "1.1.0"
    })
    .await;
    let answer =
        json!({"environment": "prod", "service": "web", "version": "latest", "region": "north"});
    until("it answers", async || {
        deploy(json!({"region": "north"})).await == answer
    })
    .await;
    assert!(
        house.json(&["contracts", "show", "tools-js"])["drafts"]
            .as_array()
            .is_none_or(Vec::is_empty)
    );
    drop(gateway);

    let house = plain();
    let (gateway, client) = house.serve_client();
    let deploy = async || {
        let result = client
            .call("deploy", json!({"environment": "prod", "service": "web"}))
            .await;
        result["structuredContent"]["version"].clone()
    };
    put(&house, "tools-js-stable");
    gateway.wait_for_log("held: it defines other tools than are published");
    assert_eq!(
        (version(&gateway).await.as_str(), deploy().await),
        ("1.0.0", json!("latest"))
    );
    let shown = house.json(&["contracts", "show", "tools-js"]);
    assert_eq!(
        (&shown["drafts"][0]["class"], &shown["drafts"][0]["status"]),
        (&json!("review"), &json!("pending"))
    );
    assert!(agree(&house), "it waits");
    until("the other default", async || deploy().await == "stable").await;
    assert_eq!(
        version(&gateway).await,
        "1.1.0",
        "a change to review is a minor version"
    );
}

/// In a fresh container the state is gone, and the build in the folder is not the published one.
#[tokio::test]
async fn with_an_empty_state_the_lock_says_which_build_may_run() {
    let house = plain();
    let gateway = house.serve();
    until("it is published", async || {
        version(&gateway).await == "1.0.0"
    })
    .await;
    let (done, out, err) = house.run(&["contracts", "lock"]);
    assert!(done == 0 && out.contains("tools-js 1.0.0"), "{out}{err}");
    drop(gateway);
    std::fs::remove_dir_all(house.path().join("state")).expect("wiped");
    put(&house, "tools-js-renamed");
    let gateway = house.serve();
    gateway.wait_for_log("held: it defines other tools than are published");
    assert_eq!(version(&gateway).await, "1.0.0");
    let client = Modern::new(gateway.url());
    let deploy = async || {
        client
            .call("deploy", json!({"environment": "prod", "service": "web"}))
            .await
    };
    let refused = deploy().await;
    assert_eq!(
        code(&refused),
        "unavailable",
        "the build that was published is not here: {refused}"
    );
    put(&house, "tools-js");
    until("the build that the lock promises runs", async || {
        deploy().await["isError"] == false
    })
    .await;
    assert_eq!(version(&gateway).await, "1.0.0");
}

/// A plugin lists its tools at each start; those that someone has retired remain absent until someone goes back, or a
/// build lists something else.
#[tokio::test]
async fn what_is_retired_stays_retired_while_the_build_is_the_same() {
    let house = plain();
    let gateway = house.serve();
    assert_eq!(version(&gateway).await, "1.0.0");
    let retire = ["contracts", "retire", "tools-js"];
    let fingerprint = house.json(&retire)["fingerprint"]
        .as_str()
        .expect("a fingerprint")
        .to_owned();
    let (done, out, err) = house.run(&[&retire[..], &["--fingerprint", &fingerprint]].concat());
    assert_eq!((done, out.as_str()), (0, "tools-js: retired"), "{err}");
    until("its tools go away", async || {
        version(&gateway).await == "none"
    })
    .await;
    drop(gateway);

    let gateway = house.serve();
    assert_eq!(
        version(&gateway).await,
        "none",
        "a start brings nothing back"
    );
    let plugins = house.json(&["plugins", "list"]).to_string();
    assert!(
        plugins.contains("tools-js") && !plugins.contains("held"),
        "the build may serve: {plugins}"
    );
    let back = ["contracts", "rollback", "tools-js", "--to", "1.0.0"];
    let fingerprint = house.json(&back)["fingerprint"]
        .as_str()
        .expect("a fingerprint")
        .to_owned();
    let (done, out, err) = house.run(&[&back[..], &["--fingerprint", &fingerprint]].concat());
    assert_eq!((done, out.as_str()), (0, "tools-js: 1.0.0"), "{err}");
    until("its tools are back", async || {
        version(&gateway).await == "1.0.0"
    })
    .await;
    let deployed = Modern::new(gateway.contract_url("tools-js"))
        .call("deploy", json!({"environment": "prod", "service": "web"}))
        .await;
    assert_eq!(code(&deployed), "none", "{deployed}");
}
