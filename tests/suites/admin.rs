//! The admin API beyond contracts and keys: plugins, sources, trial calls, the trail, and the whole of it by its own
//! description.

mod operators;
mod requests;

use std::{
    net::TcpListener,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use weir_tests::{
    Admin, Gateway, House, Modern, SERVE, answer_to, foreign, http, place, read_output,
    strangers::hostile, until, weir,
};

use crate::{built_in, plugins, sample};

/// Serves the sample, and reaches its admin API.
fn serve_sample() -> (House, Gateway, Admin) {
    let house = sample::house();
    let gateway = house.serve();
    let admin = Admin::of(&house);
    (house, gateway, admin)
}

/// A plugin uploaded over the API runs; a file that is not a plugin is refused, and the previous one keeps running.
#[tokio::test]
async fn a_plugin_is_put_in_refused_or_taken_away() {
    let house = House::new()
        .own_plugins(&[])
        .file("contracts/tiny.yaml", plugins::tiny_contract("rust"));
    let house = house.config("[connections.data]\nkind = \"files\"\npath = \"data\"\nwrite = true");
    let house = house.config("[plugins.tiny-rust.grants]\ndata = \"write\"");
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let client = Modern::new(gateway.url());
    assert_eq!(client.list().await.0.len(), 0, "its contract waits");
    let tiny = std::fs::read(place::guest("tiny-rust")).expect("a built guest");
    let (status, plugin) = admin.ask("PUT", "/v1/plugins/tiny-rust", tiny).await;
    assert_eq!(
        (status, plugin["name"].as_str(), plugin["origin"].as_str()),
        (200, Some("tiny-rust"), Some("folder"))
    );
    until("the contract that waited for it is served", async || {
        client
            .list()
            .await
            .0
            .iter()
            .any(|tool| tool["name"] == "rust_get")
    })
    .await;
    client.succeed("rust_get", json!({"id": 2})).await;

    let (status, refusal) = admin
        .ask("PUT", "/v1/plugins/tiny-rust", "not a component")
        .await;
    assert_eq!(status, 422, "{refusal}");
    let acts = crate::audit::records(&house, &["--kind", "admin"]);
    assert!(
        acts.iter()
            .any(|act| act["act"] == "plugin_refuse" && act["subject"] == "tiny-rust"),
        "{acts:?}"
    );
    client.succeed("rust_get", json!({"id": 2})).await;
    for name in ["..%2Fsheet", "A", "a.b", ""] {
        assert!(
            [400, 404].contains(
                &admin
                    .ask("PUT", &format!("/v1/plugins/{name}"), "x")
                    .await
                    .0
            ),
            "{name}"
        );
    }
    let (_, plugins) = admin.ask("GET", "/v1/plugins", "").await;
    let listed = plugins["plugins"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|listed| listed["name"] == "tiny-rust");
    let listed = listed.unwrap_or_else(|| panic!("it is not listed: {plugins}"));
    assert_eq!(
        (&listed["grants"]["data"], &listed["digest"]),
        (&json!("write"), &plugin["digest"])
    );

    let (status, gone) = admin.ask("DELETE", "/v1/plugins/tiny-rust", "").await;
    assert_eq!(
        (status, &gone[0]["file"], &gone[0]["result"]),
        (200, &json!("tiny-rust.wasm"), &json!("removed"))
    );
    assert!(
        gone[0]["reason"]
            .as_str()
            .is_some_and(|why| why.contains("answer `unavailable`")),
        "{gone}"
    );
    let (status, refusal) = admin.ask("DELETE", "/v1/plugins/unknown", "").await;
    assert!(
        status == 404
            && refusal["detail"]
                .to_string()
                .contains("the plugins are [rest, sheet, sql]"),
        "{refusal}"
    );
    let (status, refusal) = admin.ask("DELETE", "/v1/plugins/sheet", "").await;
    assert_eq!(status, 409, "it is built in: {refusal}");
    until("its tools are unavailable", async || {
        let result = client.call("rust_get", json!({"id": 2})).await;
        result["structuredContent"]["code"] == "unavailable"
    })
    .await;
    let listed = client.list().await.0;
    let names: Vec<&str> = listed
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["name_number", "rust_get", "rust_list"],
        "and do not vanish"
    );
}

/// Native code runs only if the configuration names it, whatever the uploader's role.
#[tokio::test]
async fn native_code_is_refused_whoever_uploads_it() {
    let house = House::new().own_plugins(&["sheet"]);
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let library = std::fs::read(place::native("tools-rust")).expect("a library can be read");
    for name in ["weir-guest-tools", "sheet"] {
        let file = house.path().join(format!("plugins/{name}.wasm"));
        let before = std::fs::read(&file).ok();
        let (status, refusal) = admin
            .ask("PUT", &format!("/v1/plugins/{name}"), library.clone())
            .await;
        assert_eq!(status, 422, "{name}: {refusal}");
        assert!(
            refusal.to_string().contains("it is native code"),
            "{name}: {refusal}"
        );
        assert!(
            std::fs::read(&file).ok() == before,
            "{name}: what was refused is taken away again"
        );
    }
    assert_eq!(
        Modern::new(gateway.url()).list().await.0.len(),
        0,
        "none of its tools is there"
    );
    let acts = crate::audit::records(&house, &["--kind", "admin"]);
    let refused = acts
        .iter()
        .filter(|act| act["act"] == "plugin_refuse")
        .count();
    assert_eq!(refused, 2, "{acts:?}");
}

/// Waits until a file holds these bytes.
async fn until_it_holds(file: &Path, bytes: &[u8]) {
    let started = Instant::now();
    while std::fs::read(file).ok().as_deref() != Some(bytes) {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{} holds something else",
            file.display()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Uploads the bytes as `sheet`, and disconnects as soon as the file is there.
async fn upload_and_leave(house: &House, bytes: &'static str) {
    let (admin, file) = (Admin::of(house), house.path().join("plugins/sheet.wasm"));
    tokio::select! {
        biased;
        () = until_it_holds(&file, bytes.as_bytes()) => {}
        // After a pause of the machine the upload may be answered before this loop has seen the file.
        (status, refusal) = admin.ask("PUT", "/v1/plugins/sheet", bytes) => assert_eq!(status, 422, "{refusal}"),
    }
}

/// The uploading client may disconnect, and the gateway may be killed: if the file was not accepted, the previous one is
/// restored.
#[tokio::test]
async fn a_file_that_was_not_taken_is_put_back_whoever_goes_meanwhile() {
    let house = sample::house().own_plugins(&["sheet"]);
    let mut gateway = house.serve();
    let file = house.path().join("plugins/sheet.wasm");
    let before = std::fs::read(&file).expect("an adapter");
    upload_and_leave(&house, "not a component").await;
    until_it_holds(&file, &before).await;
    until("it is on record", async || {
        crate::audit::records(&house, &["--kind", "admin"])
            .iter()
            .any(|act| act["act"] == "plugin_refuse")
    })
    .await;
    let (_, plugins) = Admin::of(&house).ask("GET", "/v1/plugins", "").await;
    assert_eq!(
        plugins["refused"],
        json!([]),
        "the file that is there was not refused"
    );

    upload_and_leave(&house, "no component either").await;
    gateway.kill();
    let gateway = house.serve();
    assert!(
        std::fs::read(&file).expect("it is there") == before,
        "no one has judged what took its place"
    );
    Modern::new(gateway.url())
        .succeed("lookup_airport", json!({"iata": "OSL"}))
        .await;
    let kept = std::fs::read_dir(house.plugins())
        .expect("the folder")
        .map(|entry| entry.expect("a file").file_name());
    let kept: Vec<_> = kept
        .filter(|name| name.to_string_lossy().contains(".before-"))
        .collect();
    assert!(kept.is_empty(), "{kept:?}");

    // A file that was put there by hand in the meantime is kept.
    house.write(
        &format!("plugins/.sheet.wasm.before-{}", "0".repeat(64)),
        "an old build",
    );
    drop(gateway);
    drop(house.serve());
    assert!(std::fs::read(&file).expect("it is there") == before);
}

/// Two uploads of one plugin run one after the other, and each gets the outcome of its own file.
#[tokio::test]
async fn of_two_uploads_at_once_each_is_told_about_its_own_file() {
    let house = sample::house().own_plugins(&["sheet"]);
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let other = built_in::another_sheet();
    let (bad, good) = tokio::join!(
        admin.ask("PUT", "/v1/plugins/sheet", "not a component"),
        admin.ask("PUT", "/v1/plugins/sheet", other.clone()),
    );
    assert_eq!((bad.0, good.0), (422, 200), "{bad:?}\n{good:?}");
    assert!(
        bad.1["detail"]
            .as_str()
            .is_some_and(|why| why.contains("not a WebAssembly component")),
        "{bad:?}"
    );
    let file = std::fs::read(house.path().join("plugins/sheet.wasm")).expect("it is there");
    assert!(
        file == other,
        "the one that was taken stays, whichever came first"
    );
    assert_eq!(
        house.json(&["plugins", "show", "sheet"])["digest"],
        good.1["digest"]
    );
}

#[tokio::test]
async fn plugins_are_looked_after_from_the_command_line() {
    let house = sample::house().own_plugins(&[]);
    house.write("mine/sheet.wasm", built_in::another_sheet());
    house.write("mine/broken.wasm", "not a component");
    house.write("mine/Upper.wasm", "");
    let _gateway = house.serve();
    let (code, listed, _) = house.run(&["plugins", "list"]);
    assert!(
        code == 0 && listed.starts_with("PLUGIN") && listed.contains("built-in"),
        "{listed}"
    );

    let uploaded = house.json(&["plugins", "upload", "mine/sheet.wasm"]);
    assert_eq!(uploaded["origin"], "folder", "{uploaded}");
    assert_eq!(
        house.json(&["plugins", "show", "sheet"])["digest"],
        uploaded["digest"]
    );
    let (_, shown, _) = house.run(&["plugins", "show", "sheet"]);
    assert!(shown.contains("grants      data=write"), "{shown}");

    let refusals: [(&[&str], &str); 6] = [
        (
            &["plugins", "upload", "mine/broken.wasm"],
            "not a WebAssembly component",
        ),
        (&["plugins", "upload", "mine/absent.wasm"], "cannot be read"),
        (
            &["plugins", "upload", "mine/Upper.wasm"],
            "give one with --name",
        ),
        (
            &["plugins", "show", "unknown"],
            "there are [rest, sheet, sql]",
        ),
        (&["plugins", "remove", "rest"], "is built into this gateway"),
        (
            &["plugins", "remove", "../unknown"],
            "the plugins are [rest, sheet, sql], the files [sheet.wasm]",
        ),
    ];
    for (words, why) in refusals {
        let (code, _, err) = house.run(words);
        assert!(code == 1 && err.contains(why), "{words:?}: {code} {err}");
    }
    house.write("plugins/odd.wasm", "not a component");
    let (code, out, err) = house.run(&["plugins", "reload"]);
    // The refused upload may have been removed only a moment ago.
    let lines: Vec<&str> = out
        .lines()
        .filter(|line| *line != "broken.wasm: removed")
        .collect();
    assert_eq!((code, lines.len()), (0, 4), "{out} {err}");
    assert!(
        lines[0].starts_with("odd.wasm: refused: ")
            && lines[0].contains("not a WebAssembly component"),
        "{out}"
    );
    assert!(
        lines[1].starts_with("rest: unchanged rest ")
            && lines[2].starts_with("sheet.wasm: unchanged sheet "),
        "{out}"
    );
    let (_, listed, _) = house.run(&["plugins", "list"]);
    assert!(listed.contains("odd.wasm  refused  "), "{listed}");
    let (code, out, err) = house.run(&["plugins", "remove", "sheet.wasm"]);
    assert!(
        code == 0
            && out.contains("sheet.wasm: removed sheet ")
            && out.contains("sheet: loaded sheet "),
        "{out} {err}"
    );
    assert_eq!(
        house.run(&["plugins", "remove", "odd"]).1,
        "odd.wasm: removed"
    );
    until("neither file is listed", async || {
        let all = house.json(&["plugins", "list"]);
        all["plugins"][1]["origin"] == "built-in" && all["refused"] == json!([])
    })
    .await;
}

/// A renamed column is found on demand and named, and agents get an error instead of something else.
#[tokio::test]
async fn a_source_that_changed_is_found_out() {
    let (house, gateway, admin) = serve_sample();
    let describe = "/v1/collections/airports/airports/describe";
    let (status, seen) = admin.ask("POST", describe, "").await;
    assert_eq!((status, &seen["drift"]), (200, &json!([])), "{seen}");
    house.write("data/airports.csv", sample::DATA.replace("country", "land"));
    let (_, seen) = admin.ask("POST", describe, "").await;
    assert!(seen["drift"].to_string().contains("country"), "{seen}");
    let item = seen["difference"]["items"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|item| item["tool"] == "lookup_airport" && item["class"] == "breaking");
    let item = item.unwrap_or_else(|| panic!("no item: {seen}"));
    assert_eq!(item["side"], "output", "{seen}");
    assert_eq!(
        (
            seen["difference"]["fingerprint"].as_str().map(str::len),
            &seen["draft"]
        ),
        (Some(64), &Value::Null)
    );
    assert!(
        seen["edits"]
            .to_string()
            .contains("/collections/airports/columns/2: write `land` for `country`"),
        "{seen}"
    );
    let (_, collections) = admin.ask("GET", "/v1/collections", "").await;
    assert_eq!(collections[0]["drift"], seen["drift"]);
    gateway.wait_for_log("the source changed");
    for words in [
        &["collections", "list"] as &[&str],
        &["contracts", "show", "airports"],
    ] {
        let (_, out, _) = house.run(words);
        assert!(
            out.contains("/tools/1/fields/0: add `column: land`") && out.contains("fingerprint"),
            "{out}"
        );
    }
    assert_eq!(
        house
            .run(&["collections", "describe", "airports", "airports"])
            .0,
        3
    );
    let result = Modern::new(gateway.url())
        .call("lookup_airport", json!({"iata": "OSL"}))
        .await;
    assert_eq!(
        result["structuredContent"]["code"], "source_changed",
        "{result}"
    );
    house.write("data/airports.csv", sample::DATA);
    assert_eq!(admin.ask("POST", describe, "").await.1["drift"], json!([]));
}

#[tokio::test]
async fn a_call_is_tried_as_an_agent_would_make_it() {
    let (house, _gateway, admin) = serve_sample();
    house.key(&["--agent", "ann", "--tool", "lookup_airport"]);
    let ask = async |body: Value| admin.ask("POST", "/v1/calls", body.to_string()).await;
    let (status, tried) =
        ask(json!({"tool": "lookup_airport", "arguments": {"iata": "OSL"}, "agent": "ann"})).await;
    assert_eq!(
        (status, tried["structured_content"]["country"].as_str()),
        (200, Some("NO")),
        "{tried}"
    );
    assert!(
        tried["ms"].as_f64().is_some_and(|ms| ms > 0.0) && tried["receipt"].is_string(),
        "{tried}"
    );
    let stages: Vec<_> = tried["stages_ms"]
        .as_object()
        .expect("stages")
        .keys()
        .collect();
    assert_eq!(
        stages,
        [
            "adapter",
            "arguments",
            "intent",
            "lookup",
            "output",
            "record"
        ]
    );
    let (_, tried) =
        ask(json!({"tool": "lookup_airport", "arguments": {"iata": "x"}, "agent": "ann", "dry_run": true})).await;
    assert_eq!(
        (
            tried["ran"].as_bool(),
            tried["structured_content"]["code"].as_str()
        ),
        (Some(false), Some("invalid_arguments"))
    );
    assert_eq!(
        ask(json!({"tool": "list_airports", "agent": "ann"}))
            .await
            .0,
        404,
        "hidden from her"
    );
    assert_eq!(
        ask(json!({"tool": "lookup_airport", "agent": "bob"}))
            .await
            .0,
        404,
        "unknown"
    );

    let (_, records) = admin.ask("GET", "/v1/audit?kind=call&agent=ann", "").await;
    assert_eq!(records.as_array().map(Vec::len), Some(1), "{records}");
    let (_, acts) = admin.ask("GET", "/v1/audit?kind=admin", "").await;
    let tries: Vec<&Value> = acts
        .as_array()
        .into_iter()
        .flatten()
        .filter(|act| act["act"] == "try_call" && act["subject"] == "lookup_airport")
        .collect();
    assert_eq!(
        tries.len(),
        1,
        "the call alone, and who made it in her name: {acts}"
    );
    assert_eq!(
        (&tries[0]["by"], &tries[0]["detail"]["agent"]),
        (&json!("admin:first"), &json!("ann")),
        "{acts}"
    );
    let (_, newest) = admin.ask("GET", "/v1/audit?kind=admin&limit=2", "").await;
    let all = acts.as_array().expect("records");
    assert_eq!(
        newest.as_array().expect("records")[..],
        all[all.len() - 2..],
        "the newest, in their order"
    );
    let until = newest[0]["time"].as_str().expect("a time");
    let (_, before) = admin
        .ask(
            "GET",
            &format!("/v1/audit?kind=admin&limit=1&until={until}"),
            "",
        )
        .await;
    assert_eq!(before[0], all[all.len() - 3], "the one before them");
    assert_eq!(
        admin.ask("GET", "/v1/audit?since=yesterday", "").await.0,
        422
    );
    let (_, report) = admin.ask("GET", "/v1/audit/verify", "").await;
    assert_eq!(report["findings"], json!([]), "{report}");
    let (_, config) = admin.ask("GET", "/v1/config", "").await;
    assert_eq!(
        (
            config["limits"]["agent_rate"].as_str(),
            config["connections"][0].as_str()
        ),
        (Some("1000/s"), Some("data"))
    );
}

/// A deployment may remove the file for a moment: what it requires, such as a key, is still required.
#[tokio::test]
async fn a_configuration_that_is_gone_is_not_taken_over() {
    let house = sample::house().config("[identity]\nrequired = true");
    drop(house.weir(&[])); // it writes the file
    let mut command = std::process::Command::new(place::binary("weir"));
    command
        .args(SERVE)
        .env_remove("WEIR_CONFIG")
        .current_dir(house.path());
    // No flag names the file: it is the one in the working folder.
    let gateway = Gateway::start(command);
    std::fs::remove_file(house.path().join("weir.toml")).expect("the file is there");
    gateway.signal("HUP");
    gateway.wait_for_log("configuration refused: weir.toml: cannot be read");
    let keyless = Modern::new(gateway.url()).request("tools/list", json!({}));
    let answer = answer_to(keyless).await;
    assert_eq!(answer.status().as_u16(), 401);
}

/// Each problem has the line of the element that is wrong, and what to write instead.
#[test]
fn a_refused_configuration_names_the_line_of_each_element() {
    let house = House::new().config(
        "[http]\nhosts = [\n  \"weir.example\",\n  \"https://weir.test/\",\n]\norigins = [\"*\"]\n\
         public_url = \"https://ada:hunter2@weir.example\"\n[log]\nfilter = \"weir=loud\"",
    );
    let (code, _, err) = house.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, 1, "{err}");
    let text = std::fs::read_to_string(house.path().join("weir.toml")).expect("written");
    for (line, place, hint) in [
        (
            "  \"https://weir.test/\",",
            "/http/hosts/1",
            "mcp.example.com",
        ),
        (
            "origins = [\"*\"]",
            "/http/origins/0",
            "https://app.example.com",
        ),
        (
            "public_url = \"https://ada:hunter2@weir.example\"",
            "/http/public_url",
            "https://mcp.example.com",
        ),
        ("filter = \"weir=loud\"", "/log/filter", "info,weir=debug"),
    ] {
        let number = text.lines().position(|it| it == line).expect("the line") + 1;
        let start = format!("weir.toml:{number} at {place}: ");
        let found = err.split_once(&*start).map(|(_, rest)| rest);
        let rest = found.unwrap_or_else(|| panic!("{start}: {err}"));
        assert!(
            rest.lines().nth(1).is_some_and(|it| it.contains(hint)),
            "{err}"
        );
    }
    assert!(!err.contains("hunter2"), "{err}");
}

/// Edits of the configuration are applied as a whole while calls continue, by SIGHUP and by the API; a faulty edit
/// changes nothing and reports every problem.
#[tokio::test]
async fn a_configuration_is_taken_over_or_refused() {
    let house = sample::house().config("[limits]\nin_flight_max = 9");
    let gateway = house.serve();
    let admin = Admin::of(&house);
    let client = Modern::new(gateway.url());
    let first = std::fs::read_to_string(house.path().join("weir.toml")).expect("written");
    let edit = |edits: &[(&str, &str)]| {
        let edited = edits
            .iter()
            .fold(first.clone(), |text, (old, new)| text.replace(old, new));
        house.write("weir.toml", edited);
    };
    let hang_up = || {
        let sent = std::process::Command::new("kill")
            .args(["-HUP", &gateway.process_id().to_string()])
            .status();
        assert!(sent.expect("kill runs").success());
    };
    let host = async || {
        let request = client
            .request("tools/list", json!({}))
            .header("host", "weir.example");
        answer_to(request).await.status().as_u16()
    };
    let create = async |iata: &str| {
        let airport = json!({"iata": iata, "name": "x", "country": "NO"});
        client.call("create_airport", airport).await["structuredContent"]["code"]
            .as_str()
            .unwrap_or("ok")
            .to_owned()
    };
    let (done, calls) = (Arc::new(AtomicBool::new(false)), Modern::new(gateway.url()));
    let going_on = tokio::spawn({
        let done = done.clone();
        async move {
            while !done.load(Ordering::Relaxed) {
                let result = calls.call("lookup_airport", json!({"iata": "OSL"})).await;
                assert_eq!(result["isError"], false, "{result}");
            }
        }
    });

    assert_eq!((host().await, create("AAA").await.as_str()), (403, "ok"));
    edit(&[
        ("data = \"write\"", "data = \"read\""),
        (
            "in_flight_max = 9",
            "in_flight_max = 8\n[http]\nhosts = [\"weir.example\"]",
        ),
    ]);
    hang_up();
    gateway.wait_for_log("configuration reloaded");
    assert_eq!(
        (host().await, create("BBB").await.as_str()),
        (200, "forbidden")
    );
    assert!(
        gateway
            .log()
            .contains("\"needs_restart\":\"/limits/in_flight_max\""),
        "{}",
        gateway.log()
    );

    edit(&[
        ("path = \"data\"", "path = \"data\"\nrigths = 1"),
        ("in_flight_max", "in_fligt_max"),
    ]);
    hang_up();
    gateway.wait_for_log("/limits/in_fligt_max");
    let (status, refusal) = admin.ask("POST", "/v1/config/reload", "").await;
    let places: Vec<_> = refusal["problems"]
        .as_array()
        .expect("problems")
        .iter()
        .map(|one| &one["place"])
        .collect();
    assert_eq!(
        (status, json!(places)),
        (
            422,
            json!(["/limits/in_fligt_max", "/connections/data/rigths"])
        )
    );
    assert_eq!(
        (host().await, create("BBB").await.as_str()),
        (200, "forbidden"),
        "as it was"
    );

    let reload = || house.run_as_it_is(&["reload"]);
    let (code, out, err) = reload();
    assert!(
        code == 1 && out.is_empty() && err.contains("/connections/data/rigths"),
        "{code}: {out} {err}"
    );
    for expected in ["in_fligt_max`", "rigths`"] {
        assert_eq!(
            err.matches(expected).count(),
            1,
            "it is reported once: {err}"
        );
    }

    edit(&[
        (
            "in_flight_max = 9",
            "in_flight_max = 8\n[http]\nhosts = [\"weir.example\", \"weir.test\"]",
        ),
        ("data = \"write\"", "data = \"read\""),
    ]);
    let expected = "applied: /http/hosts
applied at the next start: /limits/in_flight_max";
    let (code, out, err) = reload();
    assert_eq!((code, &*out), (0, expected), "{err}");

    edit(&[]);
    let (status, taken) = admin.ask("POST", "/v1/config/reload", "").await;
    assert_eq!(
        (status, &taken["needs_restart"]),
        (200, &json!([])),
        "{taken}"
    );
    assert_eq!(taken["changed"], json!(["/http/hosts", "/plugins/sheet"]));
    assert_eq!((host().await, create("BBB").await.as_str()), (403, "ok"));
    done.store(true, Ordering::Relaxed);
    going_on.await.expect("no call failed meanwhile");
    let (_, records) = admin.ask("GET", "/v1/audit?kind=admin", "").await;
    let acts: Vec<_> = records
        .as_array()
        .expect("records")
        .iter()
        .map(|record| record["act"].as_str())
        .collect();
    let reloads = acts
        .iter()
        .filter(|act| **act == Some("config_reload"))
        .count();
    let grants = acts
        .iter()
        .filter(|act| **act == Some("grant_change"))
        .count();
    assert_eq!((reloads, grants), (3, 2), "{records}");
}

/// A command that names an unknown thing shows that name, and where the right ones are.
#[test]
fn what_is_not_there_is_called_by_its_name() {
    let house = sample::house();
    let _gateway = house.serve();
    let contracts = ["`unknown`", "`weir contracts list`"];
    let cases: [(&[&str], [&str; 2]); 8] = [
        (
            &["keys", "revoke", "bot"],
            ["there is no key `bot`", "`weir keys list`"],
        ),
        (
            &["contracts", "rollback", "airports", "--to", "9.9.9"],
            ["`airports@9.9.9`", "`weir contracts show airports`"],
        ),
        (
            &[
                "contracts",
                "rollback",
                "airports",
                "--to",
                "9.9.9",
                "--fingerprint",
                "x",
            ],
            ["`airports@9.9.9`", "`weir contracts show airports`"],
        ),
        (&["contracts", "show", "unknown"], contracts),
        (&["contracts", "retire", "unknown"], contracts),
        (
            &["contracts", "discard", "d_unknown"],
            ["`d_unknown`", "`weir contracts list`"],
        ),
        (
            &["contracts", "publish", "d_unknown", "--fingerprint", "x"],
            ["`d_unknown`", "`weir contracts list`"],
        ),
        (
            &["upstream", "look", "unknown"],
            ["`unknown`", "`weir upstream list`"],
        ),
    ];
    for (words, parts) in cases {
        let (code, _, err) = house.run(words);
        assert!(
            code == 1 && parts.iter().all(|part| err.contains(part)),
            "{words:?}: {code} {err}"
        );
    }
    // A gateway runs, and this is not its folder.
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let listed = weir(&["keys", "list"]).current_dir(&elsewhere).output();
    let (code, _, err) = read_output(listed.expect("weir starts"));
    for part in ["no weir.toml here", "--config", "--admin"] {
        assert!(code == 1 && err.contains(part), "{err}");
    }
}

/// A server that a running gateway did not take over is absent, though the configuration names it.
#[test]
fn a_server_that_is_not_applied_is_no_success() {
    let house = sample::house();
    let _gateway = house.serve();
    let server = hostile(&["good"]);
    let add = |name: &str| {
        let mut command = house.weir_as_it_is(&["upstream", "add", name, "--yes"]);
        let output = command
            .arg("--")
            .args(&server)
            .output()
            .expect("weir starts");
        (
            output.status.code(),
            String::from_utf8(output.stderr).expect("weir prints text"),
        )
    };
    assert_eq!(add("good").0, Some(0));
    let (_, listed, _) = house.run_as_it_is(&["upstream", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    assert!(
        listed["upstreams"][0]["server"]["name"].is_string(),
        "JSON, and no text with JSON in it: {listed}"
    );

    let written = std::fs::read_to_string(house.path().join("weir.toml")).expect("written");
    house.write(
        "weir.toml",
        format!("{written}\n[connections.inside]\nkind = \"files\"\npath = \"state\"\n"),
    );
    let (code, err) = add("better");
    assert!(
        code == Some(1)
            && err.contains("has not applied it")
            && err.contains("/connections/inside"),
        "{err}"
    );
}

/// A retry with the same key gets the first answer and does nothing twice; a key is for one request.
#[tokio::test]
async fn a_retry_is_answered_as_the_first_time() {
    let (_house, _gateway, admin) = serve_sample();
    let retire = format!("{}/v1/contracts/airports/retire", admin.url);
    let ask = async |url: &str, body: &'static str| {
        let request = http()
            .post(url)
            .bearer_auth(&admin.key)
            .header("idempotency-key", "k1");
        let response = answer_to(
            request
                .header("content-type", "application/json")
                .body(body),
        )
        .await;
        (
            response.status().as_u16(),
            response.headers().contains_key("idempotent-replayed"),
            response.text().await.expect("text"),
        )
    };
    let first = ask(&retire, "").await;
    let again = ask(&retire, "").await;
    assert_eq!((first.0, first.1, again.1), (202, false, true));
    assert_eq!(first.2, again.2);
    assert_eq!(ask(&retire, "{}").await.0, 400, "another request");
    assert_eq!(
        ask(&format!("{}/v1/keys", admin.url), r#"{"agent": "ann"}"#)
            .await
            .0,
        400,
        "a secret is not kept"
    );
    let stranger = http()
        .post(format!("{}/v1/session/oidc", admin.url))
        .header("idempotency-key", "k1")
        .header("content-type", "application/json")
        .body("{}");
    let refused = answer_to(stranger).await;
    assert_eq!(refused.status(), 400, "who signs in needs no admin key");
    let refused = refused.text().await.expect("text");
    assert!(
        refused.contains("no Idempotency-Key is accepted here"),
        "{refused}"
    );
}

/// The state cannot be changed for a moment, just as requests end: what they were answered is true, and their retries get it.
#[tokio::test]
async fn an_answer_is_kept_for_retries_once_the_state_can_be_changed_again() {
    let (house, _gateway, admin) = serve_sample();
    let state = rusqlite::Connection::open(house.path().join("state/weir.db")).expect("a state");
    let failing = "CREATE TRIGGER kept BEFORE UPDATE ON replies BEGIN SELECT RAISE(ABORT, 'failing'); END;
                   CREATE TRIGGER forgotten BEFORE DELETE ON replies BEGIN SELECT RAISE(ABORT, 'failing'); END;";
    state.execute_batch(failing).expect("the state fails");
    let ask = async |path: &str, key: &str| {
        let request = http()
            .post(format!("{}{path}", admin.url))
            .bearer_auth(&admin.key)
            .header("idempotency-key", key);
        let response = answer_to(request).await;
        let is_replayed = response.headers().contains_key("idempotent-replayed");
        (response.status().as_u16(), is_replayed)
    };
    let retire = "/v1/contracts/airports/retire";
    assert_eq!(ask(retire, "k1").await, (202, false));
    let absent = "/v1/contracts/absent/retire";
    assert_eq!(ask(absent, "k2").await, (404, false));
    state
        .execute_batch("DROP TRIGGER kept; DROP TRIGGER forgotten;")
        .expect("the state works again");
    assert_eq!(ask(retire, "k1").await, (202, true));
    assert_eq!(ask(absent, "k2").await, (404, false));
}

/// Nothing is kept of a refused request.
#[tokio::test]
async fn a_refused_request_leaves_no_answer_behind() {
    let (house, _gateway, admin) = serve_sample();
    let body = json!({"name": "vic", "role": "viewer"}).to_string();
    let (_, viewer) = admin.ask("POST", "/v1/admins", body).await;
    let viewer = viewer["key"].as_str().expect("a key");
    let ask = async |key: &str, path: &str, number: usize| {
        let request = http()
            .post(format!("{}{path}", admin.url))
            .bearer_auth(key)
            .header("idempotency-key", format!("k{number}"))
            .header("content-type", "application/json");
        let response = answer_to(request.body("{}")).await;
        assert!(
            !response.headers().contains_key("idempotent-replayed"),
            "{path}"
        );
        response.status().as_u16()
    };
    for number in 0..3 {
        assert_eq!(
            ask(viewer, "/v1/contracts/airports/retire", number).await,
            403
        );
        assert_eq!(
            ask(&admin.key, "/v1/contracts/none/retire", number).await,
            404
        );
        assert_eq!(ask(&admin.key, "/v1/nowhere", number).await, 404);
        assert_eq!(ask(&admin.key, "/v1/calls", number).await / 100, 4);
    }
    let state = house.path().join("state/weir.db");
    let state = rusqlite::Connection::open(state).expect("the state opens");
    let kept = state.query_row("SELECT count(*) FROM replies", [], |row| {
        row.get::<_, u32>(0)
    });
    assert_eq!(kept.expect("counted"), 0);
}

/// Looking whether the gateway lives is not recorded as a refusal; a refused request is recorded once.
#[tokio::test]
async fn only_the_refused_are_recorded_as_refused() {
    let (_house, _gateway, admin) = serve_sample();
    for open in ["/healthz", "/readyz", "/metrics", "/openapi.json"] {
        let response = answer_to(http().get(format!("{}{open}", admin.url))).await;
        assert_eq!(response.status(), 200, "{open}");
    }
    let refusals = async || {
        let (_, records) = admin.ask("GET", "/v1/audit?kind=refused", "").await;
        records.as_array().map_or(0, Vec::len)
    };
    assert_eq!(refusals().await, 0);
    let retire = format!("{}/v1/contracts/airports/retire", admin.url);
    for (request, in_all) in [
        (http().get(format!("{}/v1/keys", admin.url)), 1),
        (http().post(&retire), 2),
        (http().post(&retire).header("idempotency-key", "k1"), 3),
    ] {
        assert_eq!(answer_to(request).await.status(), 401);
        assert_eq!(refusals().await, in_all);
    }
}

/// An agent that calls too often, or at a place that is not its own, leaves a trace.
#[tokio::test]
async fn whoever_asks_too_often_or_in_the_wrong_place_is_on_record() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&[
        "--agent",
        "ann",
        "--contract",
        "elsewhere",
        "--rate",
        "2/hour",
    ]);
    let there = Modern::with_key(gateway.contract_url("airports"), &key);
    assert_eq!(there.ask("tools/list", json!({})).await.status, 404);
    let ann = Modern::with_key(gateway.url(), &key);
    assert_eq!(ann.ask("tools/list", json!({})).await.status, 200);
    let refused = ann.ask("tools/list", json!({})).await;
    assert_eq!(refused.status, 429);
    assert!(
        format!("{refused:?}").contains("try again in"),
        "{refused:?}"
    );
    let admin = Admin::of(&house);
    let (_, records) = admin.ask("GET", "/v1/audit?kind=refused", "").await;
    let answer: Vec<(&str, &str, &str)> = records
        .as_array()
        .into_iter()
        .flatten()
        .map(|record| {
            let text = |member: &str| record[member].as_str().unwrap_or_default();
            (text("what"), text("agent"), text("place"))
        })
        .collect();
    assert_eq!(
        answer,
        [
            ("access", "ann", "/mcp/airports"),
            ("rate", "ann", "/mcp tools/list")
        ],
        "{records}"
    );
}

/// Revoking a key works with a faulty configuration; and a change without effect is not recorded.
#[tokio::test]
async fn a_key_is_revoked_while_the_configuration_has_a_fault() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    let id = house.json(&["keys", "list"])[0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let house = house.config("[limit]\nx = 1");
    let (code, out, err) = house.run(&["keys", "revoke", &id]);
    assert!(
        code == 0 && out.contains("is revoked") && err.contains("limit"),
        "{out}{err}"
    );
    assert_eq!(
        Modern::with_key(gateway.url(), &key)
            .ask("tools/list", json!({}))
            .await
            .status,
        401
    );
    assert_eq!(house.run(&["keys", "revoke", &id]).0, 0, "it is revoked");
    assert_eq!(house.run(&["keys", "revoke", "unknown"]).0, 1);
    let admins = async || Admin::of(&house).ask("GET", "/v1/admins", "").await.1;
    let first = admins().await[0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(
        house
            .run(&["keys", "revoke", &format!("../admins/{first}")])
            .0,
        1,
        "an id is no path"
    );
    assert_eq!(admins().await[0]["revoked_ms"], Value::Null);
    let (code, out, err) =
        house.run(&["audit", "query", "--kind", "admin", "--text", "key_revoke"]);
    assert!(code == 0 && out.lines().count() == 1, "{out}{err}");
}

/// Keys of those who operate it are made, listed and revoked by a command.
#[tokio::test]
async fn admins_are_made_listed_and_revoked_by_a_command() {
    let house = sample::house();
    let _gateway = house.serve();
    let (code, key, err) = house.run(&["admins", "create", "--name", "bea", "--role", "editor"]);
    assert!(code == 0 && err.contains("not shown again"), "{err}");
    let bea = Admin {
        key,
        ..Admin::of(&house)
    };
    assert_eq!(bea.ask("GET", "/v1/contracts", "").await.0, 200);
    assert_eq!(bea.ask("GET", "/v1/admins", "").await.0, 403, "an editor");
    let all = house.json(&["admins", "list"]);
    let all = all.as_array().expect("a list");
    let made = all.iter().find(|key| key["name"] == "bea").expect("listed");
    let (_, table, _) = house.run(&["admins", "list"]);
    assert!(
        table.starts_with("ID") && table.contains("editor") && !table.contains(&bea.key),
        "{table}"
    );
    let id = made["id"].as_str().expect("an id");
    let (code, out, err) = house.run(&["admins", "revoke", id]);
    assert!(code == 0 && out.contains("is revoked"), "{out}{err}");
    assert_eq!(bea.ask("GET", "/v1/contracts", "").await.0, 401);
    for wrong in [
        &["revoke", "unknown"][..],
        &["create", "--name", "a b", "--role", "viewer"],
        &["create", "--name", "ada", "--role", "king"],
    ] {
        let (code, out, _) = house.run(&[&["admins"], wrong].concat());
        assert!(code != 0 && out.is_empty(), "{wrong:?}: {out}");
    }
    let first = all.iter().find(|key| key["name"] == "first");
    let first = first.expect("listed")["id"].as_str().expect("an id");
    let (code, _, err) = house.run(&["admins", "revoke", first]);
    assert!(
        code == 1 && err.contains("the last key of an operator"),
        "{err}"
    );
    let (_, ada, _) = house.run(&["admins", "create", "--name", "ada", "--role", "operator"]);
    let ada = Admin {
        key: ada,
        ..Admin::of(&house)
    };
    let path = format!("/v1/admins/{first}");
    assert_eq!(ada.ask("DELETE", &path, "").await.0, 204);
    assert_eq!(ada.ask("GET", "/v1/admins", "").await.0, 200);
}

/// A backup is taken while the gateway serves, and another gateway starts from it as the same one.
#[tokio::test]
async fn a_backup_takes_the_place_of_the_state() {
    let house = sample::house();
    let gateway = house.serve();
    let key = house.key(&["--agent", "ann"]);
    let ann = Modern::with_key(gateway.url(), &key);
    let result = ann.call("lookup_airport", json!({"iata": "OSL"})).await;
    let receipt = result["_meta"]["dev.weir/receipt"]
        .as_str()
        .expect("a receipt")
        .to_owned();
    let (code, out, err) = house.run(&["state", "backup", "copy"]);
    assert_eq!((code, out.as_str()), (0, "copy"), "{err}");
    let (code, _, err) = house.run(&["state", "backup", "copy"]);
    assert!(
        code == 1 && err.contains("name a new folder for each backup"),
        "nothing is overwritten: {err}"
    );
    for (path, mode) in [
        ("copy", 0o700),
        ("copy/audit", 0o700),
        ("copy/weir.db", 0o600),
    ] {
        use std::os::unix::fs::PermissionsExt as _;
        let found = std::fs::metadata(house.path().join(path))
            .expect("copied")
            .permissions()
            .mode()
            & 0o777;
        assert_eq!(found, mode, "{path} holds hashes of keys: {found:o}");
    }
    let accepted = |folder: &str| -> i64 {
        let database = house.path().join(folder).join("weir.db");
        let database = rusqlite::Connection::open(database).expect("the state opens");
        let count = "SELECT count(*) FROM accepted_builds";
        let count = database.query_row(count, [], |row| row.get(0));
        count.expect("a number")
    };
    assert!(
        accepted("copy") > 0 && accepted("copy") == accepted("state"),
        "which plugins were let in"
    );
    drop(gateway);
    std::fs::remove_dir_all(house.path().join("state")).expect("lost");
    std::fs::rename(house.path().join("copy"), house.path().join("state")).expect("restored");
    let gateway = house.serve();
    assert_eq!(
        Modern::new(gateway.url())
            .ask("tools/list", json!({}))
            .await
            .status,
        401
    );
    let ann = Modern::with_key(gateway.url(), &key);
    assert_eq!(
        ann.call("lookup_airport", json!({"iata": "OSL"})).await["isError"],
        false
    );
    house.succeed(&["audit", "verify", &receipt]);
}

/// Someone else's tool reads our description and sends everything it allows, and more: no answer is a server error,
/// and each is as described.
#[test]
fn the_api_is_as_it_describes_itself() {
    let house = sample::house().own_plugins(&[]);
    let _gateway = house.serve();
    let admin = Admin::of(&house);
    let output = foreign::python("python-schemathesis")
        .args(["-c", "from schemathesis.cli import schemathesis; schemathesis()", "run"])
        .arg(format!("{}/openapi.json", admin.url))
        .args(["--header", &format!("Authorization: Bearer {}", admin.key)])
        .args([
            "--checks",
            "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance",
        ])
        // Schemathesis writes no bodies of `application/wasm`.
        .args(["--exclude-operation-id", "put_plugins_name"])
        // It waits for the end of a stream.
        .args(["--exclude-operation-id", "get_events"])
        .args(["--max-examples", "15", "--no-color", "--seed", "7"])
        .current_dir(house.path())
        .output()
        .expect("schemathesis starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A client with a short timeout repeats a request while the first one still runs: only one of the two runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_retries_at_the_same_moment_run_once() {
    let (house, _gateway, admin) = serve_sample();
    for number in 0..5 {
        let code: String = ["AAA", "BBB", "CCC", "DDD", "EEE"][number].into();
        let call = json!({"tool": "create_airport", "arguments": {"iata": code, "name": "New", "country": "NO"}});
        let ask = || async {
            let request = admin
                .request("POST", "/v1/calls")
                .header("idempotency-key", format!("k{number}"));
            let response = answer_to(request.body(call.to_string())).await;
            (
                response.status().as_u16(),
                response.text().await.expect("text"),
            )
        };
        let answers = futures::future::join_all((0..4).map(|_| ask())).await;
        assert!(
            answers
                .iter()
                .all(|answer| *answer == answers[0] && answer.0 == 200),
            "{answers:?}"
        );
        assert!(answers[0].1.contains("\"is_error\":false"), "{answers:?}");
    }
    let (_, records) = admin.ask("GET", "/v1/audit?kind=call", "").await;
    assert_eq!(records.as_array().map(Vec::len), Some(5), "{records}");
    let rows = std::fs::read_to_string(house.path().join("data/airports.csv")).expect("the file");
    assert_eq!(rows.matches(",New,NO").count(), 5, "{rows}");
}

/// An operator's key is sent only to a live gateway of this state folder, and each such gateway can be found.
#[tokio::test]
async fn a_key_is_not_sent_to_who_has_the_port_of_a_gateway_that_ended() {
    let house = sample::house();
    let first = house.serve();
    let mut second = house.serve();
    assert_eq!(house.run(&["keys", "list"]).0, 0);
    second.kill();
    until("the other gateway is found", async || {
        house.run(&["keys", "list"]).0 == 0
    })
    .await;
    drop(first);
    let port = TcpListener::bind("127.0.0.1:0").expect("a free port");
    port.set_nonblocking(true).expect("it can be asked");
    // Another process that has the port of a gateway that ended is named by the file that the gateway left behind.
    house.write(
        "state/admin.url",
        format!("http://{}", port.local_addr().expect("an address")),
    );
    let (code, _, err) = house.run(&["keys", "list"]);
    assert!(
        code != 0 && err.contains("admin.url is of a gateway that has ended"),
        "{code}: {err}"
    );
    assert!(port.accept().is_err(), "no one asked there");
}
