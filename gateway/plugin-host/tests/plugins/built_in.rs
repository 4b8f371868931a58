//! Plugins inside the program, and files that stand for them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use weir_plugin_host::{AdapterFailure, PluginConfig};

use crate::workbench::{Workbench, collection, context, probe, query, tuned};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_stands_for_what_is_built_in_while_it_is_there() {
    let mut bench = Workbench::built_in(BTreeMap::new());
    let reports = bench.host.load_all().await;
    assert!(
        matches!(reports.as_slice(), [report] if report.built_in && report.result.is_ok()),
        "{reports:?}"
    );
    assert_eq!(bench.records("{}").await, r#"[{"version":"1"}]"#);
    bench.watch();
    let stop = Arc::new(AtomicBool::new(false));
    let caller = tokio::spawn({
        let (host, stop) = (Arc::clone(&bench.host), Arc::clone(&stop));
        async move {
            while !stop.load(Ordering::Relaxed) {
                host.read(&context("caller"), &collection(), &query("{}"))
                    .await
                    .expect("no call fails");
            }
        }
    });
    std::fs::create_dir(bench.plugins()).expect("a folder");
    bench.put("probe.wasm", b"not a component");
    bench.result("probe.wasm").await.expect_err("it is none");
    assert_eq!(
        bench.records("{}").await,
        r#"[{"version":"1"}]"#,
        "a refused file changes nothing"
    );
    bench.put("probe.wasm", &tuned("probe", "probe", "2", "-"));
    let loaded = bench.report("probe.wasm").await;
    let status = loaded.result.expect("it loads");
    assert_eq!(
        (status.generation, status.built_in, loaded.built_in),
        (2, false, false)
    );
    assert_eq!(bench.records("{}").await, r#"[{"version":"2"}]"#);
    std::fs::remove_file(bench.plugins().join("probe.wasm")).expect("it was there");
    assert!(bench.report("probe.wasm").await.removed);
    let back = bench.report("probe").await;
    let status = back.result.expect("it is back");
    assert_eq!(
        (status.generation, status.built_in, back.built_in),
        (3, true, true)
    );
    assert!(status.calls > 0, "counted over its generations");
    assert_eq!(bench.records("{}").await, r#"[{"version":"1"}]"#);
    stop.store(true, Ordering::Relaxed);
    caller.await.expect("no call fails");
    assert_eq!(bench.host.plugins().len(), 1);
}

/// A start reads what the plugin says about itself from the cache, and its code is loaded when a call needs it.
#[tokio::test]
async fn what_is_built_in_is_loaded_by_its_first_call_once_it_was_compiled() {
    let bench = Workbench::built_in(BTreeMap::new());
    bench.host.load_all().await;
    let known = |bench: &Workbench| format!("{:?}", bench.host.plugins());
    let before = known(&bench);
    let bench = bench.restarted();
    let cache = bench.folder.path().join("cache");
    let compiled = std::fs::read_dir(&cache)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.extension().is_some_and(|end| end == "cwasm"))
        .expect("a compiled plugin");
    // It is compiled again when it is loaded.
    std::fs::write(&compiled, b"torn").expect("written");
    let reports = bench.host.load_all().await;
    assert!(
        matches!(reports.as_slice(), [report] if report.built_in && report.result.is_ok()),
        "{reports:?}"
    );
    assert_eq!(known(&bench), before);
    assert_eq!(std::fs::read(&compiled).expect("read"), b"torn");
    assert_eq!(bench.records("{}").await, r#"[{"version":"1"}]"#);
    assert_ne!(std::fs::read(&compiled).expect("read"), b"torn");
}

/// The same bytes are the same plugin: nothing is loaded, and nothing else may take the place.
#[tokio::test]
async fn a_file_with_the_same_bytes_takes_over_in_silence() {
    let mut bench = Workbench::built_in(BTreeMap::new());
    bench.host.load_all().await;
    bench.watch();
    std::fs::create_dir(bench.plugins()).expect("a folder");
    bench.put("probe.wasm", &probe());
    let started = Instant::now();
    while bench.host.plugins()[0].built_in {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the file is not looked at"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bench.put("later.wasm", &tuned("other", "probe", "2", "-"));
    let refusal = bench
        .result("later.wasm")
        .await
        .expect_err("the first file keeps it");
    assert!(
        refusal.contains("already provided by `probe.wasm`"),
        "{refusal}"
    );
    let plugin = &bench.host.plugins()[0];
    assert_eq!((plugin.generation, plugin.built_in), (1, false));
    std::fs::remove_file(bench.plugins().join("later.wasm")).expect("it was there");
    std::fs::remove_file(bench.plugins().join("probe.wasm")).expect("it was there");
    let status = bench.result("probe").await.expect("it is built in again");
    assert_eq!((status.generation, status.built_in), (1, true));
}

/// A plugin counts by what it says about itself, not by the name of its file.
#[tokio::test]
async fn a_file_of_any_name_stands_for_the_adapter_it_provides() {
    let mut bench = Workbench::built_in(BTreeMap::new());
    std::fs::create_dir(bench.plugins()).expect("a folder");
    bench.put("mine.wasm", &tuned("mine", "probe", "2", "-"));
    let reports = bench.host.load_all().await;
    assert!(
        matches!(reports.as_slice(), [report] if !report.built_in),
        "the built-in one is not loaded: {reports:?}"
    );
    assert_eq!(bench.records("{}").await, r#"[{"version":"2"}]"#);
    bench.watch();
    std::fs::remove_file(bench.plugins().join("mine.wasm")).expect("it was there");
    bench.result("probe").await.expect("it serves now");
    assert_eq!(bench.records("{}").await, r#"[{"version":"1"}]"#);
    bench.put("mine.wasm", &tuned("mine", "probe", "3", "-"));
    while bench.report("mine.wasm").await.removed {}
    assert_eq!(bench.records("{}").await, r#"[{"version":"3"}]"#);
    assert_eq!(bench.host.plugins().len(), 1);
}

#[tokio::test]
async fn a_pin_holds_for_what_is_built_in_too() {
    let pinned = PluginConfig {
        sha256: vec!["0".repeat(64)],
        ..PluginConfig::default()
    };
    let bench = Workbench::built_in(BTreeMap::from([("probe".to_owned(), pinned)]));
    let reports = bench.host.load_all().await;
    let refusal = reports[0].result.as_ref().expect_err("another digest");
    assert!(refusal.contains("allows only"), "{refusal}");
    assert!(matches!(
        bench.read("{}").await,
        Err(AdapterFailure::Unavailable(_))
    ));
}
