//! The program with its built-in adapters: it needs no plugins folder, and a file in that folder replaces the built-in adapter.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_tests::{Admin, House, place};

use crate::{audit::records, sample};

/// Returns other bytes of the same adapter: it has a custom section that is never read.
pub(crate) fn another_sheet() -> Vec<u8> {
    let mut bytes = std::fs::read(place::plugins().join("sheet.wasm")).expect("a built adapter");
    bytes.extend([0, 6, 4, b'n', b'o', b't', b'e', b'2']);
    bytes
}

async fn sheet(house: &House) -> Value {
    let (_, plugins) = Admin::of(house).ask("GET", "/v1/plugins", "").await;
    let sheet = plugins["plugins"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|plugin| plugin["name"] == "sheet");
    sheet
        .unwrap_or_else(|| panic!("no sheet: {plugins}"))
        .clone()
}

/// Waits until `sheet` comes from `origin`.
async fn from(house: &House, origin: &str) -> Value {
    let started = Instant::now();
    loop {
        let sheet = sheet(house).await;
        if sheet["origin"] == origin {
            return sheet;
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "it does not come from {origin}: {sheet}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until a file is held, and returns its digest.
async fn held(house: &House, file: &str) -> String {
    let started = Instant::now();
    loop {
        let (_, plugins) = Admin::of(house).ask("GET", "/v1/plugins", "").await;
        let refused = plugins["refused"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|refused| refused["file"] == file);
        if let Some(digest) = refused.and_then(|refused| refused["held"].as_str()) {
            return digest.to_owned();
        }
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{file} is not held: {plugins}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_file_stands_for_the_adapter_inside_while_it_is_there() {
    let house = sample::house().own_plugins(&[]);
    let (gateway, client) = house.serve_client();
    let answered = async || {
        let result = client.call("lookup_airport", json!({"iata": "OSL"})).await;
        assert_eq!(
            result["structuredContent"]["country"],
            "NO",
            "{result}\n{}",
            gateway.log()
        );
    };
    answered().await;
    let inside = sheet(&house).await;
    assert_eq!(
        (inside["origin"].as_str(), inside["generation"].as_u64()),
        (Some("built-in"), Some(1)),
        "{inside}"
    );

    // The plugin may write, and this build is not accepted.
    house.write("plugins/sheet.wasm", another_sheet());
    let digest = held(&house, "sheet.wasm").await;
    answered().await;
    assert_eq!(
        sheet(&house).await["digest"],
        inside["digest"],
        "the old one serves"
    );
    for (file, sha256) in [("sheet", "0".repeat(64)), ("rest", digest.clone())] {
        let (code, _, err) = house.run(&["plugins", "accept", file, "--sha256", &sha256]);
        assert!(code == 1 && err.contains("held file"), "{err}");
    }
    assert_eq!(
        house.json(&["plugins", "accept", "sheet", "--sha256", &digest])["digest"],
        json!(digest)
    );
    let file = from(&house, "folder").await;
    assert_eq!(
        (&file["digest"], &file["generation"]),
        (&json!(digest), &json!(2))
    );
    answered().await;

    std::fs::remove_file(house.path().join("plugins/sheet.wasm")).expect("a file of this test");
    let back = from(&house, "built-in").await;
    assert_eq!(
        (&back["digest"], &back["generation"]),
        (&inside["digest"], &json!(3))
    );
    answered().await;
    drop(gateway);

    let acts = records(&house, &["--kind", "admin"]);
    let acts = acts.iter().filter(|record| record["subject"] == "sheet");
    let (acts, of_people): (Vec<_>, Vec<_>) =
        acts.partition(|act| ["built-in", "folder"].contains(&text(&act["by"])));
    assert_eq!(
        of_people
            .iter()
            .map(|act| &act["fingerprint"])
            .collect::<Vec<_>>(),
        [&json!(digest)],
        "who accepted it"
    );
    let acts: Vec<_> = acts
        .iter()
        .map(|act| (text(&act["act"]), text(&act["by"]), &act["fingerprint"]))
        .collect();
    let (built_in, dropped) = (&inside["digest"], &file["digest"]);
    let expected = [
        ("plugin_load", "built-in", built_in),
        ("plugin_load", "folder", dropped),
        ("plugin_remove", "folder", dropped),
        ("plugin_load", "built-in", built_in),
    ];
    assert_eq!(acts, expected);
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A spreadsheet is served from anywhere, with no plugins folder and no configuration.
#[tokio::test]
async fn a_program_alone_serves_a_spreadsheet() {
    let house = sample::house();
    let mut command = std::process::Command::new(place::binary("weir"));
    command.args([
        "call",
        "--file",
        "data/airports.csv",
        "list_airports",
        "--limit",
        "1",
    ]);
    command
        .current_dir(house.path())
        .env("XDG_CACHE_HOME", place::cache().join("alone"));
    let output = command.output().expect("weir starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("Arlanda"));
}

#[test]
fn the_version_says_what_is_inside_and_of_which_commit() {
    let (_, version, _) = House::new().run(&["--version"]);
    assert!(
        version.ends_with("adapters inside: rest, sheet, sql"),
        "{version}: run `cargo xtask plugins`, then `cargo build --workspace --all-targets --locked`"
    );
    let commit = version
        .lines()
        .find_map(|line| line.strip_prefix("commit "));
    let commit = commit.unwrap_or_else(|| panic!("no commit: {version}"));
    assert!(
        commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "built with git, or with `WEIR_COMMIT`: {version}"
    );
}

/// A build that one gateway of a user compiled is found by the next one, whatever folder it runs in.
#[test]
fn gateways_of_one_user_compile_once() {
    let cache = House::new();
    let compiled = cache.path().join("weir/compiled");
    let mut before = None;
    for _ in 0..2 {
        let house = House::new().file("data/prices.csv", "id,price\n1,2.50\n");
        // A configuration of the house would name the cache of the tests.
        let mut call = house.weir(&["call"]);
        let program = call.get_program().to_owned();
        call = std::process::Command::new(program);
        call.args(["call", "--file", "data/prices.csv", "--state", "state"])
            .current_dir(house.path())
            .env("XDG_CACHE_HOME", cache.path());
        let output = call.output().expect("weir starts");
        assert!(output.status.success(), "{output:?}");
        assert!(!house.path().join("state/plugins").exists());
        let files = std::fs::read_dir(&compiled).expect("a folder in the cache");
        let mut files: Vec<_> = files
            .map(|entry| {
                let entry = entry.expect("an entry");
                let made = entry.metadata().and_then(|it| it.modified());
                (entry.file_name(), made.expect("a time"))
            })
            .collect();
        files.sort();
        assert!(!files.is_empty());
        assert_eq!(*before.get_or_insert_with(|| files.clone()), files);
    }
}
