//! Plugins as native libraries: run only where the configuration allows it, next to neighbours that must not notice.

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
    time::Instant,
};

use minisign::KeyPair;
use serde_json::{Value, json};
use weir_tests::{Gateway, House, Modern, place, within};

use crate::{plugins, sample};

/// The time in which the system ends a process.
const SOON: Duration = Duration::from_secs(60);

/// Returns the contract of the hostile guest, with a deadline that tests can wait for.
fn guest_contract() -> String {
    plugins::GUEST_CONTRACT.replace("timeout_ms: 60000", "timeout_ms: 8000")
}

/// Makes a house with the hostile guest as a library, next to an honest component.
fn house() -> House {
    let house = sample::house()
        .own_plugins(&["sheet"])
        .file("contracts/guest.yaml", guest_contract());
    house.native("misbehaving", "misbehaving")
}

async fn behave(client: &Modern, behaviour: &str) -> Value {
    client.call("behave", json!({"behaviour": behaviour})).await
}

fn code(result: &Value) -> &str {
    result["structuredContent"]["code"]
        .as_str()
        .unwrap_or("no code")
}

/// Returns the processes that a gateway has started.
fn children(gateway: &Gateway) -> Vec<u32> {
    processes(|stat| stat.parent == gateway.process_id())
}

struct Stat {
    id: u32,
    parent: u32,
    state: String,
}

fn processes(wanted: impl Fn(&Stat) -> bool) -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let stats = entries.filter_map(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let id = stat.split(' ').next()?.parse().ok()?;
        let mut rest = stat.rsplit(") ").next()?.split(' ');
        Some(Stat {
            id,
            state: rest.next()?.to_owned(),
            parent: rest.next()?.parse().ok()?,
        })
    });
    stats.filter(wanted).map(|stat| stat.id).collect()
}

#[tokio::test]
async fn what_kills_a_child_fails_its_own_call_alone() {
    let house = house();
    let (gateway, client) = house.serve_client();
    assert_eq!(
        behave(&client, "behave").await["isError"],
        false,
        "{}",
        gateway.log()
    );
    #[rustfmt::skip]
    let table: &[(&str, &str, &str)] = &[
        ("segv", "plugin_failed", "signal 11 (SIGSEGV)"),
        ("abort", "plugin_failed", "signal 6 (SIGABRT)"),
        ("exit", "plugin_failed", "exit code 3"),
        ("spin", "plugin_failed", "processor time"),
        ("allocate", "plugin_failed", "out of memory"),
        ("recurse", "plugin_failed", "overflow"),
        ("panic", "plugin_failed", "it panicked: panicked, as asked"),
        ("log-flood", "plugin_failed", ""),
        ("return-64mb", "plugin_failed", ""),
        ("ungranted-sql", "forbidden", ""),
        ("ungranted-files", "forbidden", ""),
        ("ungranted-http", "forbidden", ""),
        ("wrong-type", "output_mismatch", ""),
        ("not-json", "output_mismatch", ""),
    ];
    for (behaviour, wanted, why) in table {
        // The library's neighbours are in the middle of their calls when it dies.
        let slow = client.call("behave", json!({"behaviour": "slow", "amount": 300}));
        let (result, slow) = tokio::join!(behave(&client, behaviour), slow);
        // Two seconds of a processor take longer by the clock if others use it as well.
        let late = ["spin", "log-flood"].contains(behaviour) && code(&result) == "timeout";
        assert!(late || code(&result) == *wanted, "{behaviour}: {result}");
        assert_eq!(
            slow["isError"],
            false,
            "beside {behaviour}: {slow}\n{}",
            gateway.log()
        );
        if !why.is_empty() && !late {
            gateway.wait_for_log(why);
        }
        let neighbour = client.call("lookup_airport", json!({"iata": "OSL"})).await;
        assert_eq!(
            neighbour["structuredContent"]["country"], "NO",
            "after {behaviour}: {neighbour}"
        );
        let again = behave(&client, "behave").await;
        assert_eq!(again["isError"], false, "after {behaviour}: {again}");
    }
    let ours = gateway.process_id();
    within(SOON, "a child that died is waited for", async || {
        processes(|stat| stat.parent == ours && stat.state == "Z").is_empty()
    })
    .await;
}

#[tokio::test]
async fn no_child_outlives_the_gateway_however_it_ends() {
    for kills in [false, true] {
        let house = house();
        let mut gateway = house.serve();
        let client = Modern::new(gateway.url());
        assert_eq!(behave(&client, "behave").await["isError"], false);
        // One instance waits for a call, and one is in the middle of a call.
        let busy = tokio::spawn(async move {
            client
                .call("behave", json!({"behaviour": "slow", "amount": 7000}))
                .await
        });
        within(SOON, "a child", async || !children(&gateway).is_empty()).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let left = children(&gateway);
        assert!(!left.is_empty());
        if kills {
            gateway.kill();
        } else {
            let ended = Command::new("kill")
                .arg(gateway.process_id().to_string())
                .status()
                .expect("kill");
            assert!(ended.success());
        }
        busy.abort();
        within(SOON, "a child outlived the gateway", async || {
            left.iter()
                .all(|id| !Path::new(&format!("/proc/{id}")).exists())
        })
        .await;
    }
}

/// A library that only fails is not called for a while, and is counted, as a component is.
#[tokio::test]
async fn a_library_that_only_fails_says_when_to_come_back_and_is_counted() {
    for behaviour in ["segv", "panic"] {
        let house = house();
        let (gateway, client) = house.serve_client();
        for _ in 0..5 {
            assert_eq!(
                code(&behave(&client, behaviour).await),
                "plugin_failed",
                "{behaviour}"
            );
        }
        let answer = behave(&client, "behave").await;
        assert_eq!(code(&answer), "unavailable", "{behaviour}: {answer}");
        let wait = answer["structuredContent"]["retry_after_ms"]
            .as_u64()
            .unwrap_or(0);
        assert!((1..=1_000).contains(&wait), "{behaviour}: {answer}");
        let metrics = gateway.metrics().await;
        for line in [
            r#"weir_plugin_backing_off{plugin="misbehaving"} 1"#,
            r#"weir_plugin_failures_total{kind="backed_off",plugin="misbehaving"} 1"#,
            r#"weir_plugin_failures_total{kind="failed",plugin="misbehaving"} 5"#,
        ] {
            assert!(
                metrics.contains(line),
                "{behaviour}: {line} is not in\n{metrics}"
            );
        }
        client
            .succeed("lookup_airport", json!({"iata": "OSL"}))
            .await;
        tokio::time::sleep(Duration::from_millis(wait)).await;
        assert_eq!(
            behave(&client, "behave").await["isError"],
            false,
            "it is tried again: {behaviour}"
        );
        assert_eq!(
            behave(&client, "behave").await["isError"],
            false,
            "and answers: {behaviour}"
        );
    }
}

/// Another build is another digest in the configuration; callers do not notice the change.
#[tokio::test]
async fn another_build_is_swapped_in_under_load() {
    let bytes = fs::read(place::native("misbehaving")).expect("a library can be read");
    let build = |name: &str| {
        const MARKER: &[u8] = b"build=1       ";
        let mut bytes = bytes.clone();
        let at = bytes
            .windows(MARKER.len())
            .position(|window| window == MARKER)
            .expect("the marker");
        bytes[at..at + MARKER.len()].copy_from_slice(format!("build={name:<8}").as_bytes());
        bytes
    };
    let house = sample::house()
        .own_plugins(&["sheet"])
        .file("contracts/guest.yaml", guest_contract());
    house.write("one.so", build("1"));
    house.write("two.so", build("2"));
    house.write("lost.so", build("lost"));
    let [one, two, lost] = ["one.so", "two.so", "lost.so"].map(|name| house.path().join(name));
    let house = house.library("misbehaving", &one);
    let gateway = house.serve();
    let url = gateway.url();
    let client = Modern::new(url.clone());
    let answered = |result: &Value| {
        result["structuredContent"]["build"]
            .as_str()
            .map(str::to_owned)
    };
    assert_eq!(
        answered(&behave(&client, "behave").await).as_deref(),
        Some("1"),
        "{}",
        gateway.log()
    );
    let calls = tokio::spawn(async move {
        let (client, mut builds) = (Modern::new(url), Vec::new());
        let began = Instant::now();
        while builds.last().is_none_or(|last| last != "2")
            && began.elapsed() < Duration::from_secs(60)
        {
            let result = behave(&client, "behave").await;
            assert_eq!(result["isError"], false, "{result}");
            builds.push(answered(&result).expect("a build"));
        }
        builds
    });
    name_instead(&house, &gateway, &one, &two);
    let builds = calls.await.expect("no call failed");
    assert_eq!(
        builds.last().map(String::as_str),
        Some("2"),
        "{}",
        gateway.log()
    );
    // A library that lacks what a contract needs is refused, and the previous one keeps serving.
    name_instead(&house, &gateway, &two, &lost);
    gateway.wait_for_log("published contracts need more");
    assert_eq!(
        answered(&behave(&client, "behave").await).as_deref(),
        Some("2"),
        "{}",
        gateway.log()
    );
    // A child that was ended between calls is replaced.
    let killed = children(&gateway);
    for child in &killed {
        assert!(
            Command::new("kill")
                .args(["-9", &child.to_string()])
                .status()
                .expect("kill")
                .success()
        );
    }
    // The first thread of a process may be a zombie before its others have ended.
    let threads = |id: u32| fs::read_dir(format!("/proc/{id}/task")).map_or(0, Iterator::count);
    let runs =
        |stat: &Stat| killed.contains(&stat.id) && (stat.state != "Z" || threads(stat.id) > 1);
    within(SOON, "what was killed has ended", async || {
        processes(runs).is_empty()
    })
    .await;
    assert_eq!(
        answered(&behave(&client, "behave").await).as_deref(),
        Some("2"),
        "{}",
        gateway.log()
    );
}

/// A library that serves stops at a reload after which another has to sign it, and comes back once that one has.
#[tokio::test]
async fn a_library_is_held_to_its_signers_when_they_change() {
    let [maker, other] =
        [(); 2].map(|()| KeyPair::generate_unencrypted_keypair().expect("a pair of keys"));
    let bytes = fs::read(place::native("misbehaving")).expect("a library can be read");
    let sign = |keys: &KeyPair| {
        let signature = minisign::sign(None, &keys.sk, Cursor::new(&bytes), None, None);
        signature.expect("a signature").into_string()
    };
    let house = sample::house()
        .own_plugins(&["sheet"])
        .file("contracts/guest.yaml", guest_contract());
    house.write("signed.so", &bytes);
    house.write("signed.so.minisig", sign(&maker));
    let library = house.path().join("signed.so");
    let (digest, key) = (weir_tests::gateway::digest(&library), maker.pk.to_base64());
    let house = house.config(&format!(
        "[trust.maker]\nminisign = \"{key}\"\n[plugins.misbehaving]\nnative = \"{}\"\nsha256 = \"{digest}\"\n\
         signed_by = [\"maker\"]",
        library.display()
    ));
    let (gateway, client) = house.serve_client();
    assert_eq!(
        behave(&client, "behave").await["isError"],
        false,
        "{}",
        gateway.log()
    );
    let reload = || {
        let sent = Command::new("kill")
            .args(["-HUP", &gateway.process_id().to_string()])
            .status();
        assert!(sent.expect("kill").success());
    };
    let config = fs::read_to_string(house.path().join("weir.toml")).expect("the configuration");
    house.write("weir.toml", config.replace(&key, &other.pk.to_base64()));
    reload();
    gateway.wait_for_log("its signature is not by maker");
    let began = Instant::now();
    while code(&behave(&client, "behave").await) != "unavailable" {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it serves on: {}",
            gateway.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    house.write("signed.so.minisig", sign(&other));
    reload();
    while behave(&client, "behave").await["isError"] != false {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "it does not come back: {}",
            gateway.log()
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A build that defines other tools waits, as a component does; the previous one answers until they are published.
#[tokio::test]
async fn a_build_with_other_tools_is_held_until_they_are_published() {
    let house = House::new().own_plugins(&[]);
    let [one, two] = two_builds(&house);
    let house = house.library("weir-guest-tools", &one);
    let (gateway, client) = house.serve_client();
    client.succeed("whoami", json!({})).await;
    name_instead(&house, &gateway, &one, &two);
    gateway.wait_for_log("held: it defines other tools than are published");
    assert_eq!(
        client.call("whoami", json!({})).await["isError"],
        false,
        "the build before it answers"
    );

    let run = |words: &[&str]| {
        let output = house.weir_as_it_is(words).output().expect("weir starts");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let shown: Value =
        serde_json::from_str(&run(&["contracts", "show", "weir-guest-tools", "--json"]))
            .expect("JSON");
    let drafts = shown["drafts"].as_array().expect("drafts");
    let draft = drafts
        .iter()
        .find(|draft| draft["status"] == "pending")
        .expect("it waits");
    let (id, fingerprint) = (
        draft["id"].as_str().expect("an id"),
        draft["fingerprint"].as_str().expect("a fingerprint"),
    );
    run(&["contracts", "publish", id, "--fingerprint", fingerprint]);
    gateway.wait_for_log("two.so\",\"origin\":\"native\"");
    client.succeed("whoisi", json!({})).await;
}

/// Two builds of one plugin with tools; the second renames one: `whoami` and `whoisi`.
fn two_builds(house: &House) -> [PathBuf; 2] {
    let bytes = fs::read(place::native("tools-rust")).expect("a library can be read");
    let mut renamed = bytes.clone();
    for at in 0..renamed.len() - 6 {
        if renamed[at..].starts_with(b"whoami") {
            renamed[at..at + 6].copy_from_slice(b"whoisi");
        }
    }
    house.write("one.so", bytes);
    house.write("two.so", renamed);
    ["one.so", "two.so"].map(|name| house.path().join(name))
}

/// A published version keeps the library that it was made from, whatever library is named, if the operator allows that build.
#[tokio::test]
async fn a_rollback_and_a_restart_run_the_kept_library_where_its_digest_is_allowed() {
    const RUNS_KEPT: &str = "plugin loaded\",\"file\":\"weir-guest-tools (kept build)";
    let house = House::new().own_plugins(&[]);
    let [one, two] = two_builds(&house);
    let [old, new] = [&one, &two].map(|file| weir_tests::gateway::digest(file));
    let name = |file: &Path, digests: &[&String]| {
        let config = fs::read_to_string(house.path().join("weir.toml")).expect("the configuration");
        let folders = config.split("[plugins.").next().expect("the folders");
        let file = file.display();
        let plugin =
            format!("[plugins.weir-guest-tools]\nnative = \"{file}\"\nsha256 = {digests:?}\n");
        house.write("weir.toml", format!("{folders}{plugin}"));
    };
    let run = |words: &[&str]| {
        let output = house.weir_as_it_is(words).output().expect("weir starts");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    // A report of what breaks ends with a separate exit code.
    let parsed = |words: &[&str]| {
        let output = house.weir_as_it_is(words).output().expect("weir starts");
        serde_json::from_slice::<Value>(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let answers = async |gateway: &Gateway, tool: &str| {
        Modern::new(gateway.url()).call(tool, json!({})).await["isError"] == false
    };
    run(&["--version"]);
    name(&one, &[&old]);
    let gateway = house.serve_as_it_is();
    assert!(answers(&gateway, "whoami").await, "{}", gateway.log());
    drop(gateway);

    // The new build waits for its draft: after a restart the previous one serves, from the kept copy.
    fs::remove_file(&one).expect("the first build is there");
    name(&two, &[&new, &old]);
    let gateway = house.serve_as_it_is();
    gateway.wait_for_log(RUNS_KEPT);
    assert!(answers(&gateway, "whoami").await, "{}", gateway.log());
    let shown = parsed(&["contracts", "show", "weir-guest-tools", "--json"]);
    let drafts = shown["drafts"].as_array().expect("drafts");
    let draft = drafts
        .iter()
        .find(|draft| draft["status"] == "pending")
        .expect("it waits");
    let (id, print) = (
        draft["id"].as_str().expect("an id"),
        draft["fingerprint"].as_str().expect("a fingerprint"),
    );
    run(&["contracts", "publish", id, "--fingerprint", print]);
    gateway.wait_for_log("two.so\",\"origin\":\"native");
    assert!(answers(&gateway, "whoisi").await, "{}", gateway.log());
    drop(gateway);

    // Back to the version before it: at once, and after a restart.
    let gateway = house.serve_as_it_is();
    let rollback = ["contracts", "rollback", "weir-guest-tools", "--to", "1.0.0"];
    let report = parsed(&[&rollback[..], &["--json"]].concat());
    let print = report["fingerprint"]
        .as_str()
        .expect("a fingerprint")
        .to_owned();
    run(&[&rollback[..], &["--fingerprint", &print]].concat());
    gateway.wait_for_log(RUNS_KEPT);
    assert!(answers(&gateway, "whoami").await, "{}", gateway.log());
    drop(gateway);
    let gateway = house.serve_as_it_is();
    assert!(answers(&gateway, "whoami").await, "{}", gateway.log());
    drop(gateway);

    // Not allowed: refused with the setting to write, and nothing else runs in its place.
    name(&two, &[&new]);
    let gateway = house.serve_as_it_is();
    gateway.wait_for_log(&format!(
        "write `sha256 = [\\\"{new}\\\", \\\"{old}\\\"]`, then `weir reload`"
    ));
    assert!(!answers(&gateway, "whoami").await, "{}", gateway.log());
    // As the message asks.
    name(&two, &[&new, &old]);
    let sent = Command::new("kill")
        .args(["-HUP", &gateway.process_id().to_string()])
        .status();
    assert!(sent.expect("kill").success());
    gateway.wait_for_log(RUNS_KEPT);
    assert!(answers(&gateway, "whoami").await, "{}", gateway.log());
    drop(gateway);

    // The kept build runs: another file under its name is not opened.
    let kept = house.path().join(format!("state/builds/{old}.so"));
    assert!(kept.exists(), "the first build is kept");
    fs::copy(&two, kept).expect("copied");
    let gateway = house.serve_as_it_is();
    gateway.wait_for_log("the kept build is not what it was kept as");
    assert!(!answers(&gateway, "whoami").await, "{}", gateway.log());
}

/// Replaces a library in the configuration by another one, and reloads the gateway.
fn name_instead(house: &House, gateway: &Gateway, one: &Path, other: &Path) {
    let written = fs::read_to_string(house.path().join("weir.toml")).expect("the configuration");
    let config = written.replace(&one.display().to_string(), &other.display().to_string());
    let config = config.replace(
        &weir_tests::gateway::digest(one),
        &weir_tests::gateway::digest(other),
    );
    house.write("weir.toml", config);
    let sent = Command::new("kill")
        .args(["-HUP", &gateway.process_id().to_string()])
        .status();
    assert!(sent.expect("kill").success());
}

/// A library runs only if the configuration names it, if its digest is the configured one, and if it has the interface.
#[tokio::test]
async fn another_library_is_refused_with_what_to_do() {
    let refused = |house: &House| {
        let gateway = house.serve();
        gateway.wait_for_log("refused");
        gateway.log()
    };
    let base = || sample::house().own_plugins(&["sheet"]);

    let library = place::native("misbehaving");
    let wrong = "a".repeat(64);
    let digest = base().config(&format!(
        "[plugins.misbehaving]\nnative = \"{}\"\nsha256 = \"{wrong}\"",
        library.display()
    ));
    let log = refused(&digest);
    assert!(
        log.contains("its sha256 is ") && log.contains(&wrong),
        "{log}"
    );

    let another = base().native("other", "misbehaving");
    let log = refused(&another);
    assert!(
        log.contains(
            "it is the plugin `misbehaving`: name it under `[plugins.misbehaving] native`"
        ),
        "{log}"
    );

    for (source, why) in [
        ("int nothing;", "it has no symbol `weir_plugin_abi`"),
        (
            "const void *weir_plugin_abi(unsigned abi, const void *host) { return 0; }",
            "it does not speak version 1",
        ),
        (
            "static const struct { unsigned abi, size; void *call, *release; } table = { 99, 24, 0, 0 };\n\
             const void *weir_plugin_abi(unsigned abi, const void *host) { return &table; }",
            "its table is of version 99",
        ),
    ] {
        let house = base();
        house.write("strange.c", source);
        let library = house.path().join("strange.so");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(house.path().join("strange.c"));
        assert!(compiler.status().expect("a C compiler").success());
        let house = house.library("strange", &library);
        let log = refused(&house);
        assert!(log.contains(why), "{why}: {log}");
    }

    let house = base();
    fs::copy(&library, house.path().join("plugins/misbehaving.so")).expect("copied");
    fs::copy(&library, house.path().join("plugins/disguised.wasm")).expect("copied");
    let log = refused(&house);
    assert!(
        log.contains("native code is never loaded from this folder"),
        "{log}"
    );
    assert!(
        log.contains("it is native code, which is run only where"),
        "{log}"
    );
    let gateway = house.serve();
    Modern::new(gateway.url())
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
}

#[tokio::test]
async fn a_configuration_that_leaves_the_digest_out_is_not_taken() {
    for (toml, place) in [
        ("[plugins.a]\nnative = \"a.so\"", "/plugins/a/native"),
        (
            "[plugins.a]\nnative = \"a.so\"\nsha256 = \"12\"",
            "/plugins/a/native",
        ),
        (
            "[plugins.a]\nin_process = true",
            "build a component instead",
        ),
        (
            "[plugins.a]\nnative = \"a.so\"\nsha256 = [\"12\"]",
            "/plugins/a/native",
        ),
        (
            "[plugins.a]\nsha256 = []",
            "a list of builds that may run names at least one",
        ),
    ] {
        let (exit, _, err) = House::new()
            .config(toml)
            .run(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(exit != 0 && err.contains(place), "{toml}: {err}");
    }
}

/// The toolbox runs as a component and as a library.
#[tokio::test]
async fn a_functions_answers_are_the_same_bytes_as_a_component_and_native() {
    let plugin = "weir-guest-tools";
    let house = |is_native: bool| {
        let house = House::new().own_plugins(&[]).config(
            "[connections.db]\nkind = \"sqlite\"\npath = \"data/things.sqlite\"\nwrite = true\n\
             [plugins.weir-guest-tools.grants]\ndb = \"write\"\n[plugins.weir-guest-tools.settings]\ngreeting = \"hello\"",
        );
        let database = rusqlite::Connection::open(house.path().join("data/things.sqlite"))
            .expect("a database");
        let rows = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO things VALUES (1, 'one'), (2, 'two')";
        database.execute_batch(rows).expect("two things");
        if is_native {
            return house.native(plugin, "tools-rust");
        }
        house.write(
            "plugins/tools.wasm",
            fs::read(place::guest("tools-rust")).expect("a guest can be read"),
        );
        house
    };
    // What each is answered with, as a component and native.
    let calls = [
        (
            "deploy",
            json!({"environment": "prod", "service": "web"}),
            "no code",
        ),
        ("deploy", json!({"environment": ""}), "invalid_arguments"),
        ("names", json!({}), "no code"),
        ("find", json!({"id": 2}), "no code"),
        ("find", json!({"id": 9}), "not_found"),
        ("refuse", json!({"code": "too_early"}), "tool_error"),
        ("refuse", json!({"code": "conflict"}), "conflict"),
        ("crash", json!({}), "plugin_failed"),
        ("look", json!({}), "forbidden"),
        ("rename", json!({"name": "uno"}), "no code"),
        ("names", json!({}), "no code"),
        ("draw", json!({}), "no code"),
        ("wrong", json!({}), "output_mismatch"),
        ("steps", json!({"pause_ms": 0}), "no code"),
    ];
    let mut expected: Option<(Vec<Value>, Vec<String>)> = None;
    for is_native in [false, true] {
        let house = house(is_native);
        let (gateway, client) = house.serve_client();
        let (tools, _) = client.list().await;
        let mut answer = Vec::new();
        for (tool, arguments, wanted) in &calls {
            let mut result = client.call(tool, arguments.clone()).await;
            assert_eq!(
                code(&result),
                *wanted,
                "{tool} {arguments} {is_native}: {result}"
            );
            assert_eq!(
                result["isError"],
                *wanted != "no code",
                "{tool} {arguments} {is_native}: {result}"
            );
            let call_id = result["structuredContent"]["call_id"]
                .as_str()
                .map(str::to_owned);
            result.as_object_mut().expect("an object").remove("_meta");
            let text = result.to_string();
            answer.push(call_id.map_or(text.clone(), |id| text.replace(&id, "CALL")));
        }
        match &expected {
            None => expected = Some((tools, answer)),
            Some((same_tools, same)) => {
                assert_eq!(same_tools, &tools, "{is_native}");
                for (at, (left, right)) in same.iter().zip(&answer).enumerate() {
                    assert_eq!(
                        left,
                        right,
                        "{:?} {is_native}\n{}",
                        calls[at],
                        gateway.log()
                    );
                }
            }
        }
    }
}
