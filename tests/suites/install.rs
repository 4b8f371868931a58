//! Components from elsewhere: installed with a digest and a signature, which are checked at every load.

mod https;
mod registry;

use std::{collections::BTreeMap, io::Cursor, path::Path};

use axum::{Router, extract::State, http::Uri};
use minisign::KeyPair;
use serde_json::json;
use sha256::of as sha256;
use weir_tests::{House, Modern, place, web};

/// The command line's own digest, so that nothing here repeats what is tested.
mod sha256 {
    pub(super) fn of(file: &std::path::Path) -> String {
        let output = std::process::Command::new("sha256sum")
            .arg(file)
            .output()
            .expect("coreutils are there");
        String::from_utf8_lossy(&output.stdout)
            .split_whitespace()
            .next()
            .expect("a digest")
            .to_owned()
    }
}

fn keys() -> KeyPair {
    KeyPair::generate_unencrypted_keypair().expect("a pair of keys")
}

fn sign(keys: &KeyPair, component: &[u8]) -> String {
    minisign::sign(None, &keys.sk, Cursor::new(component), None, None)
        .expect("a signature")
        .into_string()
}

/// Makes a house in which only plugins signed by `maker` may run.
fn house(maker: &KeyPair) -> House {
    let key = maker.pk.to_base64();
    House::new().own_plugins(&[]).config(&format!(
        "[trust.maker]\nminisign = \"{key}\"\n[plugins.tools-js]\nsigned_by = [\"maker\"]\nmemory_max_mb = 128"
    ))
}

fn guest(build: &str) -> Vec<u8> {
    std::fs::read(place::guest(build)).expect("a guest can be read")
}

fn lies_there(house: &House) -> bool {
    house.path().join("plugins/tools-js.wasm").exists()
}

#[test]
fn what_is_altered_unsigned_or_signed_by_another_is_not_installed() {
    let (maker, other) = (keys(), keys());
    let house = house(&maker);
    let component = guest("tools-js");
    let source = house.path().join("made.wasm");
    let refuse = |what: &str, words: &str, component: &[u8], signature: Option<String>| {
        house.write("made.wasm", component);
        let _ = std::fs::remove_file(house.path().join("made.wasm.minisig"));
        if let Some(signature) = signature {
            house.write("made.wasm.minisig", signature);
        }
        let (code, out, err) = house.run(&["plugin", "install", source.to_str().expect("a path")]);
        assert_eq!(code, 1, "{what}: {out} {err}");
        assert!(
            err.contains(words) && err.contains("nothing is installed"),
            "{what}: {err}"
        );
        assert!(!lies_there(&house), "{what}");
    };
    refuse("no signature", "it has no signature", &component, None);
    refuse(
        "another's",
        "its signature is not by maker",
        &component,
        Some(sign(&other, &component)),
    );
    refuse(
        "of another file",
        "its signature is not by maker",
        &component,
        Some(sign(&maker, &guest("tools-js-fix"))),
    );
    refuse(
        "no signature at all",
        "is not one that minisign made",
        &component,
        Some("RW\n".to_owned()),
    );
    let mut cut = component.clone();
    cut.truncate(component.len() / 2);
    refuse(
        "cut short",
        "it does not load",
        &cut,
        Some(sign(&maker, &component)),
    );

    house.write("made.wasm", &component);
    house.write("made.wasm.minisig", sign(&maker, &component));
    let pinned = format!("{}@sha256:{}", source.display(), "0".repeat(64));
    let (code, _, err) = house.run(&["plugin", "install", &pinned]);
    assert!(
        code == 1 && err.contains("was asked for: nothing is installed") && !lies_there(&house),
        "{err}"
    );
    let (code, _, err) = house.run(&["plugin", "install", "http://example.org/x.wasm"]);
    assert!(
        code == 1 && err.contains("neither a file nor an https URL"),
        "{err}"
    );
}

/// Returns the component with one byte changed in a text that it answers. It loads as well as the other.
fn altered(component: &[u8]) -> Vec<u8> {
    const TEXT: &[u8] = b"ask again after noon";
    let mut altered = component.to_vec();
    let at = altered
        .windows(TEXT.len())
        .rposition(|window| window == TEXT)
        .expect("what `refuse` says");
    altered[at] ^= 1;
    altered
}

#[tokio::test]
async fn from_a_file_it_is_installed_with_its_signature_and_loads_with_it_alone() {
    let maker = keys();
    let house = house(&maker);
    let component = guest("tools-js");
    house.write("made.wasm", &component);
    house.write("made.wasm.minisig", sign(&maker, &component));
    let source = house.path().join("made.wasm");
    let (digest, source) = (sha256(&source), source.to_str().expect("a path").to_owned());
    let out = house.succeed(&["plugin", "install", &source]);
    assert!(
        out.contains("signed by maker") && out.contains(&digest),
        "{out}"
    );
    let origin =
        std::fs::read(house.path().join("plugins/tools-js.origin.json")).expect("an origin");
    let origin: serde_json::Value = serde_json::from_slice(&origin).expect("JSON");
    assert_eq!(
        origin,
        json!({"source": source, "sha256": digest, "signed_by": "maker"})
    );
    let (code, out, _) = house.run(&["plugin", "verify"]);
    assert!(
        code == 0 && out.starts_with(&format!("ok    tools-js.wasm: from {source}")),
        "{out}"
    );

    // Without its signature it is not loaded, whatever it was when it was installed.
    let signature = house.path().join("plugins/tools-js.wasm.minisig");
    let signed = std::fs::read(&signature).expect("its signature");
    std::fs::remove_file(&signature).expect("it was there");
    let gateway = house.serve();
    gateway.wait_for_log(
        "it has no signature, and `[plugins.tools-js] signed_by` asks for one by maker",
    );
    let deploy = json!({"name": "deploy", "arguments": {"environment": "prod", "service": "web"}});
    let asked = Modern::new(gateway.url())
        .ask("tools/call", deploy.clone())
        .await;
    assert_eq!(asked.error_code(), -32602, "{asked:?}");
    drop(gateway);
    let (code, out, _) = house.run(&["plugin", "verify"]);
    assert!(
        code == 1 && out.contains("fail  tools-js.wasm: it has no signature"),
        "{out}"
    );

    house.write("plugins/tools-js.wasm.minisig", signed);
    let gateway = house.serve();
    let answer = Modern::new(gateway.url())
        .ask("tools/call", deploy)
        .await
        .result()
        .clone();
    assert_eq!(answer["structuredContent"]["version"], "latest", "{answer}");
}

/// Only the digest and the signature detect a changed byte that breaks nothing.
#[test]
fn one_altered_byte_that_still_loads_is_refused() {
    let maker = keys();
    let component = guest("tools-js");
    let unasked = House::new()
        .own_plugins(&[])
        .config("[plugins.tools-js]\nmemory_max_mb = 128");
    let house = house(&maker);
    for house in [&unasked, &house] {
        house.write("made.wasm", altered(&component));
        house.write("made.wasm.minisig", sign(&maker, &component));
    }
    house.write("first.wasm", &component);
    let digest = sha256(&house.path().join("first.wasm"));
    let install = |house: &House, pin: &str| {
        let source = house.path().join("made.wasm");
        house.run(&["plugin", "install", &format!("{}{pin}", source.display())])
    };
    let (code, out, err) = install(&house, "");
    assert!(
        code == 1 && err.contains("its signature is not by maker") && !lies_there(&house),
        "{out} {err}"
    );
    for house in [&unasked, &house] {
        let (code, out, err) = install(house, &format!("@sha256:{digest}"));
        assert!(
            code == 1 && err.contains(&format!("and {digest} was asked for: nothing is installed")),
            "{out} {err}"
        );
        assert!(!lies_there(house), "{out}");
    }
    let (code, out, err) = install(&unasked, "");
    assert!(
        code == 0 && lies_there(&unasked),
        "where neither is asked for, it loads: {out} {err}"
    );
}

/// Serves files of a folder.
async fn serve(files: BTreeMap<String, Vec<u8>>) -> String {
    let answer = async |State(files): State<BTreeMap<String, Vec<u8>>>, uri: Uri| match files
        .get(uri.path())
    {
        Some(file) => (axum::http::StatusCode::OK, file.clone()),
        None => (axum::http::StatusCode::NOT_FOUND, Vec::new()),
    };
    web::serve(Router::new().fallback(answer).with_state(files)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_installed_is_held_to_its_signature_at_every_load() {
    let maker = keys();
    let house = house(&maker);
    let component = guest("tools-js");
    let files = [
        ("/made.wasm".to_owned(), component.clone()),
        (
            "/made.wasm.minisig".to_owned(),
            sign(&maker, &component).into(),
        ),
    ];
    let server = serve(files.into()).await;
    house.write("made.wasm", &component);
    let digest = sha256(&house.path().join("made.wasm"));
    let source = format!("{server}/made.wasm@sha256:{digest}");
    let out = house.succeed(&["plugin", "install", &source]);
    assert!(
        out.contains("signed by maker") && out.contains(&digest),
        "{out}"
    );
    let (code, out, _) = house.run(&["plugin", "verify"]);
    assert!(
        code == 0 && out.starts_with("ok    tools-js.wasm: from http://"),
        "{out}"
    );

    let gateway = house.serve();
    let call = async |url: String| {
        let client = Modern::new(url);
        client
            .call("deploy", json!({"environment": "prod", "service": "web"}))
            .await["structuredContent"]
            .clone()
    };
    let answer = json!({"environment": "prod", "service": "web", "version": "latest"});
    assert_eq!(call(gateway.url()).await, answer);
    // Another build with the signature of the first one is refused, and the first one keeps running.
    house.write("plugins/tools-js.wasm", guest("tools-js-fix"));
    gateway.wait_for_log("its signature is not by maker");
    assert_eq!(call(gateway.url()).await, answer);
    let (code, out, _) = house.run(&["plugin", "verify"]);
    assert!(
        code == 1 && out.contains("fail  tools-js.wasm: its sha256 is"),
        "{out}"
    );
    drop(gateway);

    // The kept build was signed, and its signature was kept: it is checked again, with no network.
    let kept = std::fs::read_dir(house.path().join("state/builds")).expect("kept builds");
    let kept: Vec<_> = kept.map(|entry| entry.expect("a file").path()).collect();
    assert!(kept.iter().any(|file| is_signature(file)), "{kept:?}");
    house.write("plugins/tools-js.wasm", &component);
    let gateway = house.serve();
    assert_eq!(call(gateway.url()).await, answer);
    drop(gateway);
}

fn is_signature(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "minisig")
}

#[test]
fn whoever_is_trusted_has_a_key_and_whoever_signs_is_trusted() {
    let house = House::new().own_plugins(&[]).config(
        "[trust.maker]\nminisign = \"RWnonsense\"\n[plugins.one]\nsigned_by = [\"unknown\"]\n[trust.late]\nminisgn = \"\"",
    );
    let (code, _, err) = house.run(&["plugin", "verify"]);
    assert_eq!(code, 1);
    for message in [
        "is not a public key of minisign",
        "no one is trusted as `unknown`",
        "minisgn",
    ] {
        assert!(err.contains(message), "{message}: {err}");
    }
}
