//! Files come, change and go while calls run.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use weir_plugin_host::{AdapterFailure, CollectionRef, NeededCollection, PluginConfig};

use crate::workbench::{Workbench, collection, collection_of, context, probe, query, tuned};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swap_under_load_fails_no_call_and_mixes_no_answer() {
    let mut bench = Workbench::plain().await;
    bench.watch();
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..8)
        .map(|caller| {
            let (host, stop, answered) = (
                Arc::clone(&bench.host),
                Arc::clone(&stop),
                Arc::clone(&answered),
            );
            tokio::spawn(async move {
                let mut last = 0;
                while !stop.load(Ordering::Relaxed) {
                    let context = context(&format!("tenant-{caller}"));
                    let page = host
                        .read(
                            &context,
                            &collection(),
                            &query(r#"{"do": "busy", "count": 1}"#),
                        )
                        .await;
                    let records = page.expect("no call fails").records;
                    let version = records
                        .trim_matches(|c: char| !c.is_ascii_digit())
                        .parse::<u32>()
                        .expect(&records);
                    assert!(version >= last, "an older build after a newer one");
                    last = version;
                    answered.fetch_add(1, Ordering::Relaxed);
                }
                last
            })
        })
        .collect();
    for version in 2..=6 {
        bench.put(
            "probe.wasm",
            &tuned("probe", "probe", &version.to_string(), "-"),
        );
        let report = bench.report("probe.wasm").await;
        assert_eq!(
            report.result.expect("it loads").version,
            version.to_string()
        );
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(caller.await.expect("no call fails") <= 6);
    }
    assert_eq!(bench.records("{}").await, r#"[{"version":"6"}]"#);
    assert!(answered.load(Ordering::Relaxed) > 100);
    assert_eq!(bench.host.plugins()[0].generation, 6);
}

#[tokio::test]
async fn a_bad_file_changes_nothing_and_says_why() {
    let mut bench = Workbench::plain().await;
    bench.watch();
    let good = probe();
    let cut = good.len() / 2;
    for (bytes, reason) in [
        (good[..cut].to_vec(), "does not compile"),
        (b"#!/bin/sh\n".to_vec(), "not a WebAssembly component"),
        (Vec::new(), "not a WebAssembly component"),
        (b"\0asm\x01\0\0\0".to_vec(), "core module"),
        (
            b"\0asm\x0d\0\x01\0".to_vec(),
            "does not export `weir:plugin/about@0.1.0`",
        ),
        (
            replaced(
                &good,
                b"weir:plugin/clock@0.1.0",
                b"weir:plugin/clock@0.2.0",
            ),
            "version 0.1.x of the interface",
        ),
        (
            replaced(
                &good,
                b"weir:plugin/clock@0.1.0",
                b"evil:plugin/clock@0.1.0",
            ),
            "which no plugin is given",
        ),
        (tuned("trap", "probe", "2", "-"), "trial run failed"),
        (
            tuned("mute", "probe", "2", "-"),
            "did not answer what it should",
        ),
        (tuned("Probe", "probe", "2", "-"), "the name in `about`"),
    ] {
        bench.put("probe.wasm", &bytes);
        let refusal = bench.result("probe.wasm").await.expect_err(reason);
        assert!(refusal.contains(reason), "wanted {reason:?}: {refusal}");
        assert_eq!(bench.records("{}").await, r#"[{"version":"1"}]"#);
    }
    bench.put("probe.wasm", &tuned("probe", "probe", "2", "-"));
    bench
        .result("probe.wasm")
        .await
        .expect("a good file after bad ones");
    assert_eq!(bench.records("{}").await, r#"[{"version":"2"}]"#);
}

#[tokio::test]
async fn a_half_copied_file_is_taken_when_it_is_whole() {
    let mut bench = Workbench::empty(BTreeMap::new(), BTreeMap::new());
    bench.watch();
    let bytes = probe();
    let path = bench.plugins().join("probe.wasm");
    loop {
        let mut pauses = Vec::new();
        for part in 1..=6 {
            let started = Instant::now();
            std::fs::write(&path, &bytes[..bytes.len() * part / 6]).expect("writable");
            tokio::time::sleep(Duration::from_millis(50)).await;
            pauses.push(started.elapsed());
        }
        let result = bench.report("probe.wasm").await.result;
        // A file counts once it has lain still for 250 ms. A copy that a busy machine stopped for as long shows nothing.
        if result.is_err()
            && pauses
                .iter()
                .any(|pause| *pause > Duration::from_millis(200))
        {
            continue;
        }
        let taken = result.expect("nothing was tried before it was whole");
        assert_eq!(taken.version, "1");
        break;
    }
}

#[tokio::test]
async fn a_removed_file_makes_its_adapters_unavailable() {
    let mut bench = Workbench::plain().await;
    bench.watch();
    bench.read("{}").await.expect("an answer");
    std::fs::remove_file(bench.plugins().join("probe.wasm")).expect("it was there");
    assert!(bench.report("probe.wasm").await.removed);
    let failure = bench.read("{}").await.expect_err("it is gone");
    assert!(
        matches!(&failure, AdapterFailure::Unavailable(adapter) if adapter == "probe"),
        "{failure:?}"
    );
    assert_eq!(bench.host.instances(), (0, 0));
    bench.put("probe.wasm", &probe());
    bench.result("probe.wasm").await.expect("it is back");
    bench.read("{}").await.expect("an answer");
}

#[tokio::test]
async fn the_first_file_with_an_adapter_keeps_it() {
    let mut bench = Workbench::empty(BTreeMap::new(), BTreeMap::new());
    bench.put("a.wasm", &probe());
    bench.put("b.wasm", &tuned("other", "probe", "2", "-"));
    bench.put("c.wasm", &tuned("probe", "another", "2", "-"));
    let reports = bench.host.load_all().await;
    let refusals: Vec<_> = reports
        .iter()
        .filter_map(|report| report.result.as_ref().err())
        .collect();
    assert_eq!(refusals.len(), 2, "{reports:?}");
    assert!(
        refusals[0].contains("the adapter `probe` is already provided by `a.wasm`"),
        "{refusals:?}"
    );
    assert!(
        refusals[1].contains("a plugin named `probe` is already loaded from `a.wasm`"),
        "{refusals:?}"
    );
    // The place becomes free.
    bench.watch();
    std::fs::remove_file(bench.plugins().join("a.wasm")).expect("it was there");
    bench.result("b.wasm").await.expect("now it may");
    assert_eq!(bench.records("{}").await, r#"[{"version":"2"}]"#);
}

#[tokio::test]
async fn links_compiled_code_and_unpinned_builds_are_refused() {
    let pinned = PluginConfig {
        sha256: vec!["0".repeat(64)],
        ..PluginConfig::default()
    };
    let bench = Workbench::empty(
        BTreeMap::from([("probe".to_owned(), pinned)]),
        BTreeMap::new(),
    );
    std::fs::write(bench.folder.path().join("outside"), probe()).expect("writable");
    std::os::unix::fs::symlink(
        bench.folder.path().join("outside"),
        bench.plugins().join("link.wasm"),
    )
    .expect("a link");
    bench.put("native.cwasm", b"\x7fELF");
    bench.put("renamed.wasm", &probe());
    std::fs::create_dir(bench.plugins().join("deeper")).expect("a folder");
    std::fs::write(bench.plugins().join("deeper/probe.wasm"), probe()).expect("writable");
    let reports = bench.host.load_all().await;
    let refusals: BTreeMap<_, _> = reports
        .iter()
        .map(|r| {
            (
                r.file.as_str(),
                r.result.as_ref().expect_err("refused").as_str(),
            )
        })
        .collect();
    assert_eq!(
        refusals.keys().copied().collect::<Vec<_>>(),
        ["link.wasm", "native.cwasm", "renamed.wasm"]
    );
    assert!(refusals["link.wasm"].contains("a link"), "{refusals:?}");
    assert!(
        refusals["native.cwasm"].contains("never loaded"),
        "{refusals:?}"
    );
    assert!(
        refusals["renamed.wasm"].contains("allows only"),
        "the pin goes by the plugin's name: {refusals:?}"
    );
}

#[tokio::test]
async fn a_build_that_loses_what_a_contract_uses_is_refused() {
    let mut bench = Workbench::plain().await;
    bench.host.set_in_use(Arc::new(|adapter: &str| {
        if adapter == "probe" {
            vec![
                needed(collection(), AS_DESCRIBED),
                needed(
                    collection_of("probe", r#"{"fail": "unavailable"}"#),
                    AS_DESCRIBED,
                ),
            ]
        } else {
            vec![]
        }
    }));
    bench.watch();
    bench.put("probe.wasm", &tuned("probe", "probe", "2", "name"));
    let refusal = bench
        .result("probe.wasm")
        .await
        .expect_err("the column is in use");
    assert!(
        refusal.contains("shop 1.0.0 things") && refusal.contains("column 'name' is gone"),
        "{refusal}"
    );
    assert_eq!(bench.records("{}").await, r#"[{"version":"1"}]"#);
    // No contract uses this collection, and a source that is down is not the plugin's fault.
    bench.put("probe.wasm", &tuned("probe", "probe", "3", "size"));
    bench.result("probe.wasm").await.expect("it loads");
    // The adapter itself may not go either.
    bench.put("probe.wasm", &tuned("probe", "renamed", "4", "-"));
    let refusal = bench
        .result("probe.wasm")
        .await
        .expect_err("the adapter is in use");
    assert!(
        refusal.contains("the adapter `probe`, which is gone"),
        "{refusal}"
    );
}

const AS_DESCRIBED: &str =
    r#"[{"key": "id", "type": "integer"}, {"key": "name", "type": "string"}]"#;

/// Returns what a contract needs that recorded these fields, with its words about its columns and cells.
fn needed(source: CollectionRef, fields: &str) -> NeededCollection {
    needed_as(source, fields, "\"refuse\"", "[]")
}

fn needed_as(
    source: CollectionRef,
    fields: &str,
    misfits: &str,
    overrides: &str,
) -> NeededCollection {
    let published = format!(
        r#"{{"name": "things", "adapter": "{}", "settings": {{}}, "published": ["id"], "write": false,
            "shape": {{"name": "things", "fields": {fields}, "misfits": {misfits}, "capabilities": {{"read": true}}}},
            "overrides": {overrides}}}"#,
        source.adapter
    );
    NeededCollection {
        published: serde_json::from_str(&published).expect("a collection"),
        source,
    }
}

/// The source describes itself; the contract has its own columns and cells, which the source must conform to.
#[tokio::test]
async fn a_build_serves_contracts_that_know_the_source_better_than_it_does() {
    let mut bench = Workbench::plain().await;
    bench.host.set_in_use(Arc::new(|_| {
        let as_text = r#"[{"key": "id", "type": "string"}, {"key": "name", "type": "string"}]"#;
        let as_date = r#"[{"key": "id", "type": "integer"}, {"key": "name", "type": "date"}]"#;
        let says_date = r#"[{"column": "name", "type": "date"}]"#;
        vec![
            needed_as(collection(), as_text, "\"text\"", "[]"),
            needed_as(collection(), as_date, "\"refuse\"", says_date),
        ]
    }));
    bench.watch();
    bench.put("probe.wasm", &tuned("probe", "probe", "2", "-"));
    let report = bench.report("probe.wasm").await;
    assert_eq!(report.result.expect("it loads").version, "2");
}

#[tokio::test]
async fn compiled_code_is_kept_for_the_next_start_and_never_trusted_when_open_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let bench = Workbench::plain().await;
    let cache = bench.folder.path().join("cache");
    let file = std::fs::read_dir(&cache)
        .unwrap()
        .next()
        .expect("a compiled plugin")
        .unwrap()
        .path();
    assert_eq!(
        std::fs::metadata(&cache).unwrap().permissions().mode() & 0o777,
        0o700
    );
    // Torn or foreign: compiled again, and whole afterwards.
    let whole = std::fs::metadata(&file).unwrap().len();
    std::fs::write(&file, b"torn").unwrap();
    bench.put("second.wasm", &probe());
    bench.host.load_all().await;
    assert_eq!(std::fs::metadata(&file).unwrap().len(), whole);
    bench.read("{}").await.expect("an answer");
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(from.len())
        .position(|window| window == from)
    {
        bytes[at + found..at + found + to.len()].copy_from_slice(to);
        at += found + to.len();
    }
    assert!(at > 0, "nothing to replace");
    bytes
}
