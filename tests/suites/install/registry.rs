//! Components from an OCI registry: Debian's, and ones that answer what no registry should.

use std::{fs, path::PathBuf};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::stream;
use serde_json::{Value, json};
use weir_tests::{
    House, Modern, Registry, http,
    registry::{digest, typed},
};

use super::{guest, house, keys, lies_there, sign};

const SIGNATURE: &str = "dev.weir.minisig";
const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";

fn origin(house: &House) -> Value {
    let text =
        fs::read_to_string(house.path().join("plugins/tools-js.origin.json")).expect("an origin");
    serde_json::from_str(&text).expect("JSON")
}

/// Nothing is installed, and this is why.
fn refuse(house: &House, source: &str, words: &str) {
    let (code, out, err) = house.run(&["plugin", "install", source]);
    assert_eq!(code, 1, "{source}: {out} {err}");
    assert!(
        err.contains(words) && err.contains("nothing is installed"),
        "{words}: {err}"
    );
    assert!(!lies_there(house), "{source}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn by_tag_and_by_digest_and_then_no_network_is_needed() {
    let maker = keys();
    let house = house(&maker);
    let registry = Registry::start();
    let component = guest("tools-js");
    let signature = json!({SIGNATURE: sign(&maker, &component)});
    let manifest = registry
        .push("tools/made", "1.0", &component, signature)
        .await;
    let (tagged, pinned) = (
        format!("oci://{}/tools/made:1.0", registry.host),
        format!("oci://{}/tools/made@{manifest}", registry.host),
    );
    let file = digest(&component);
    for (source, from) in [
        (&tagged, format!("{tagged}@{manifest}")),
        (&pinned, pinned.clone()),
    ] {
        let out = house.succeed(&["plugin", "install", source]);
        assert!(out.contains("signed by maker"), "{out}");
        let wanted =
            json!({"source": from, "sha256": &file["sha256:".len()..], "signed_by": "maker"});
        assert_eq!(origin(&house), wanted);
        // The source that the origin file names can be installed again.
        let (code, out, _) = house.run(&["plugin", "verify"]);
        assert!(
            code == 0 && out.starts_with(&format!("ok    tools-js.wasm: from {from}")),
            "{out}"
        );
    }
    drop(registry);
    let gateway = house.serve();
    let answer = Modern::new(gateway.url())
        .call("deploy", json!({"environment": "prod", "service": "web"}))
        .await;
    assert_eq!(answer["structuredContent"]["version"], "latest", "{answer}");
    gateway.wait_for_log("plugin loaded");
    let (code, out, _) = house.run(&["plugin", "verify"]);
    assert!(code == 0 && out.contains("signed by maker"), "{out}");
    let answer = house.json(&["plugin", "verify"]);
    let wanted = json!([{"file": "tools-js.wasm", "ok": true, "plugin": "tools-js", "sha256": &file["sha256:".len()..],
                         "source": pinned, "signed_by": "maker", "problem": null}]);
    assert_eq!(answer, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_altered_unsigned_or_not_there_is_not_installed() {
    let (maker, other) = (keys(), keys());
    let house = house(&maker);
    let registry = Registry::start();
    let component = guest("tools-js");
    let by = |keys| json!({SIGNATURE: sign(keys, &component)});
    let at = |version: &str| format!("oci://{}/tools/made{version}", registry.host);
    let manifest = registry
        .push("tools/made", "good", &component, by(&maker))
        .await;
    registry
        .push("tools/made", "unsigned", &component, json!({}))
        .await;
    registry
        .push("tools/made", "anothers", &component, by(&other))
        .await;
    refuse(&house, &at(":unsigned"), "it has no signature");
    refuse(&house, &at(":anothers"), "its signature is not by maker");
    refuse(&house, &at(":none"), "does not exist");
    refuse(
        &house,
        &at(&format!("@sha256:{}", "0".repeat(64))),
        "does not exist",
    );
    refuse(
        &house,
        &at("@sha256:12"),
        "is not `sha256:` and 64 of 0-9 and a-f",
    );

    // One byte of the blob is different, and the registry does not report it.
    let blob = registry.file(&digest(&component));
    let mut altered = component.clone();
    let middle = altered.len() / 2;
    altered[middle] ^= 1;
    fs::write(&blob, &altered).expect("its blob");
    refuse(&house, &at(":good"), "its component has the digest");
    refuse(
        &house,
        &at(&format!("@{manifest}")),
        "its component has the digest",
    );
    altered.push(0);
    fs::write(&blob, &altered).expect("its blob");
    refuse(&house, &at(":good"), "has more than");
    fs::write(&blob, &component).expect("its blob");

    // A signature that is stored somewhere else.
    house.write("apart.minisig", sign(&maker, &component));
    house.write("wrong.minisig", sign(&other, &component));
    let install = |signature: &str| {
        let file: PathBuf = house.path().join(signature);
        house.run(&[
            "plugin",
            "install",
            &at(":unsigned"),
            "--signature",
            file.to_str().expect("a path"),
        ])
    };
    let (code, _, err) = install("wrong.minisig");
    assert!(
        code == 1 && err.contains("its signature is not by maker") && !lies_there(&house),
        "{err}"
    );
    let (code, _, err) = install("missing.minisig");
    assert!(
        code == 1 && err.contains("cannot be read") && !lies_there(&house),
        "{err}"
    );
    let (code, out, err) = install("apart.minisig");
    assert!(code == 0 && out.contains("signed by maker"), "{out} {err}");
}

/// Layouts as `oras push` writes them with and without a type, and next to a policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_layouts_of_other_programs_are_read_and_unclear_ones_are_not() {
    let maker = keys();
    let house = house(&maker);
    let registry = Registry::start();
    let component = guest("tools-js");
    let signature = sign(&maker, &component);
    let empty = typed(
        registry.blob("made", b"{}").await,
        "application/vnd.oci.empty.v1+json",
    );
    let layer = registry.blob("made", &component).await;
    let policy = typed(
        registry.blob("made", b"version: '1.0'\n").await,
        "application/vnd.wasm.policy.v1+yaml",
    );
    let wasm = typed(layer.clone(), "application/wasm");
    let old = typed(layer.clone(), "application/vnd.wasm.content.layer.v1+wasm");
    let mut titled = typed(layer, "application/vnd.oci.image.layer.v1.tar");
    let untitled = titled.clone();
    titled["annotations"] =
        json!({"org.opencontainers.image.title": "made.wasm", SIGNATURE: &signature});
    for (tag, layers, refused) in [
        ("oras", json!([wasm]), None),
        ("old", json!([old]), None),
        ("titled", json!([titled]), None),
        ("policy", json!([policy, wasm]), None),
        (
            "none",
            json!([untitled]),
            Some("it has no layer of the type application/wasm"),
        ),
        (
            "two",
            json!([wasm, old]),
            Some("several layers that are components"),
        ),
    ] {
        let annotations = if tag == "titled" {
            json!({})
        } else {
            json!({SIGNATURE: &signature})
        };
        let manifest = json!({
            "schemaVersion": 2, "mediaType": IMAGE, "artifactType": "application/vnd.unknown.artifact.v1",
            "config": empty, "layers": layers, "annotations": annotations,
        });
        let manifest = registry.manifest("made", tag, &manifest).await;
        let source = format!("oci://{}/made:{tag}", registry.host);
        let _ = fs::remove_file(house.path().join("plugins/tools-js.wasm"));
        match refused {
            Some(words) => refuse(&house, &source, words),
            None => {
                house.succeed(&["plugin", "install", &source]);
                assert_eq!(origin(&house)["source"], format!("{source}@{manifest}"));
            }
        }
        if tag == "oras" {
            let entry = json!({"mediaType": IMAGE, "digest": manifest, "size": fs::metadata(registry.file(&manifest)).expect("a manifest").len()});
            let kind = "application/vnd.oci.image.index.v1+json";
            let index = json!({"schemaVersion": 2, "mediaType": kind, "manifests": [entry]});
            registry.manifest("made", "index", &index).await;
            fs::remove_file(house.path().join("plugins/tools-js.wasm")).expect("it was installed");
            let words =
                format!("an index of several images: name one by its digest, such as {manifest}");
            refuse(
                &house,
                &format!("oci://{}/made:index", registry.host),
                &words,
            );
        }
    }
}

/// Serves what `answer` returns, on this machine.
async fn door<F, A>(answer: F) -> String
where
    F: Fn(Request) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response> + Send + 'static,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    address.to_string()
}

fn challenge(text: &str) -> Response {
    (
        StatusCode::UNAUTHORIZED,
        [(header::WWW_AUTHENTICATE, text.to_owned())],
    )
        .into_response()
}

/// Public registries give everybody a token, and require it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_asked_for_where_the_registry_wants_one() {
    let maker = keys();
    let house = house(&maker);
    let registry = Registry::start();
    let component = guest("tools-js");
    registry
        .push(
            "tools/made",
            "1",
            &component,
            json!({SIGNATURE: sign(&maker, &component)}),
        )
        .await;
    let real = registry.host.clone();
    let host = door(move |request: Request| {
        let real = real.clone();
        async move {
            let here = request.headers()[header::HOST].to_str().expect("a host").to_owned();
            let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default());
            if path == "/token" {
                assert_eq!(query, "scope=repository%3Atools%2Fmade%3Apull&service=a+%22quoted%22+one");
                return axum::Json(json!({"token": "let-me-in", "expires_in": 300})).into_response();
            }
            if request.headers().get(header::AUTHORIZATION).is_none_or(|value| value != "Bearer let-me-in") {
                return challenge(&format!(
                    "Bearer realm=\"http://{here}/token\",service=\"a \\\"quoted\\\" one\",scope=\"repository:tools/made:pull\""
                ));
            }
            let accept = request.headers()[header::ACCEPT].clone();
            let got = http().get(format!("http://{real}{path}")).header(header::ACCEPT, accept).send().await;
            let got = got.expect("the registry answers");
            (StatusCode::from_u16(got.status().as_u16()).expect("a status"), got.bytes().await.expect("a body"))
                .into_response()
        }
    })
    .await;
    let (code, out, err) = house.run(&["plugin", "install", &format!("oci://{host}/tools/made:1")]);
    assert!(code == 0 && out.contains("signed by maker"), "{out} {err}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_answers_without_end_or_leads_away_is_left() {
    let maker = keys();
    let house = house(&maker);
    let endless = || {
        Body::from_stream(stream::repeat_with(|| {
            Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 1 << 16]))
        }))
    };
    let manifest = |layer: Value| json!({"schemaVersion": 2, "mediaType": IMAGE, "config": {}, "layers": [layer]});
    let layer = |digest: &str, size: u64| json!({"mediaType": "application/wasm", "digest": digest, "size": size});
    let zeros = format!("sha256:{}", "0".repeat(64));
    let answer = move |request: Request| {
        let (path, zeros) = (request.uri().path().to_owned(), zeros.clone());
        async move {
            let name = path.split('/').nth(2).unwrap_or_default();
            let is_manifest = path.contains("/manifests/");
            match (name, is_manifest) {
                ("endless", true) => endless().into_response(),
                ("no-json", true) => "{".into_response(),
                ("huge", true) => manifest(layer(&zeros, 1 << 40)).to_string().into_response(),
                ("elsewhere", true) => manifest(layer("sha256:../../token", 3))
                    .to_string()
                    .into_response(),
                ("blob", true) => manifest(layer(&zeros, 3)).to_string().into_response(),
                ("blob", false) => endless().into_response(),
                ("moved", true) => (
                    StatusCode::FOUND,
                    [(header::LOCATION, "http://example.org/v2/")],
                )
                    .into_response(),
                ("circle", true) => (StatusCode::FOUND, [(header::LOCATION, path)]).into_response(),
                ("realm", true) => challenge("Bearer realm=\"http://example.org/token\""),
                ("no-realm", true) => challenge("Bearer realm=\"token\""),
                ("login", true) => challenge("Basic realm=\"here\""),
                ("strange", true) => challenge("Bearer realm"),
                ("token", true) => {
                    let here = request.headers()[header::HOST].to_str().expect("a host");
                    challenge(&format!("Bearer realm=\"http://{here}/v2/token/endless\""))
                }
                ("token", false) => endless().into_response(),
                ("broken", true) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                // What was asked for by its digest is another.
                _ => manifest(layer(&zeros, 3)).to_string().into_response(),
            }
        }
    };
    let host = door(answer).await;
    for (name, words) in [
        ("endless", "has more than 4194304 bytes"),
        ("no-json", "its manifest cannot be read"),
        (
            "huge",
            "its component has 1099511627776 bytes; at most 67108864",
        ),
        ("elsewhere", "the digest of its layer is not `sha256:`"),
        ("blob", "has more than 3 bytes"),
        ("moved", "it redirects to a URL that is not https"),
        ("circle", "it redirects too often"),
        (
            "realm",
            "hands out tokens at http://example.org/token, which is not https",
        ),
        (
            "no-realm",
            "hands out tokens at `token`, which is not a URL",
        ),
        ("login", "is not public"),
        ("strange", "is not public"),
        ("token", "has more than 65536 bytes"),
        ("broken", "answered 500"),
    ] {
        refuse(&house, &format!("oci://{host}/{name}:1"), words);
    }
    let wanted = format!("sha256:{}", "1".repeat(64));
    refuse(
        &house,
        &format!("oci://{host}/other@{wanted}"),
        &format!("{wanted} was asked for"),
    );
    // A text that is not a reference causes no request.
    refuse(&house, "oci://made:1", "names no registry");
    refuse(
        &house,
        &format!("oci://{host}/Made:1"),
        "the repository `Made`",
    );
}
