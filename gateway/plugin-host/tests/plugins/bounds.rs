//! Every hostile act of a guest ends its own call, with a reason, and no other.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use weir_plugin_host::{AdapterFailure, CallEvents, PluginConfig};

use crate::workbench::{
    SeenProgress, Workbench, check_loaded, collection, context, probe, query, tuned,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_hostile_behaviour_fails_its_call_with_the_reason() {
    let config = PluginConfig {
        cpu_max_ms: Some(1_500),
        ..PluginConfig::default()
    };
    let bench = Workbench::with(config, Default::default()).await;
    for (options, reason) in [
        (r#"{"do": "trap"}"#, "panicked"),
        (
            r#"{"do": "spin"}"#,
            "1500 ms of processor time; an operator can raise `cpu_max_ms`",
        ),
        (
            r#"{"do": "allocate"}"#,
            "out of memory (at most 64 MB); an operator can raise `memory_max_mb`",
        ),
        (r#"{"do": "recurse"}"#, "trap"),
        (r#"{"do": "clock", "count": 1000000}"#, "host calls"),
        (
            r#"{"do": "dialect", "count": 1001}"#,
            "1000 host calls in one call; an operator can raise `host_calls_max`",
        ),
        (
            r#"{"do": "return", "count": 9000000}"#,
            "(at most 8388608); an operator can raise `result_max_bytes`",
        ),
        (
            r#"{"do": "random", "count": 1000000}"#,
            "1000000 random bytes",
        ),
    ] {
        let failed = bench.failed(options).await;
        assert!(failed.contains(reason), "{options}: {failed}");
        let next = bench
            .read("{}")
            .await
            .expect("the next call is served by a fresh instance");
        assert_eq!(next.records, r#"[{"version":"1"}]"#);
    }
}

#[tokio::test]
async fn what_a_guest_says_is_not_believed_but_bounded() {
    let bench = Workbench::plain().await;
    // A flood of lines is cut, not the call.
    assert_eq!(
        bench.records(r#"{"do": "flood", "count": 5000}"#).await,
        "[]"
    );
    // A record may look like an error: it stays a record, for the caller to check.
    let page = bench.read(r#"{"do": "pretend"}"#).await.expect("an answer");
    assert!(page.records.contains("forged"));
    // Codes are open words.
    assert_eq!(
        bench.code(r#"{"do": "fail", "code": "anything"}"#).await,
        "anything"
    );
    let long = "x".repeat(5_000);
    assert!(
        bench
            .code(&format!(r#"{{"do": "fail", "code": "{long}"}}"#))
            .await
            .len()
            < 1_010
    );
}

#[tokio::test]
async fn a_deadline_ends_a_guest_that_runs() {
    let bench = Workbench::plain().await;
    let mut context = context("tenant");
    context.deadline = Instant::now() + Duration::from_millis(100);
    let failure = bench
        .host
        .read(&context, &collection(), &query(r#"{"do": "spin"}"#))
        .await
        .expect_err("no end");
    assert!(
        matches!(failure, AdapterFailure::Timeout),
        "its time is not up: {failure:?}"
    );
}

#[tokio::test]
async fn a_cancelled_caller_ends_a_guest_that_runs() {
    let bench = Workbench::plain().await;
    let context = context("tenant");
    let cancel = context.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let failure = bench
        .host
        .read(&context, &collection(), &query(r#"{"do": "spin"}"#))
        .await
        .expect_err("no end");
    assert!(
        matches!(failure, AdapterFailure::Cancelled),
        "its time is not up: {failure:?}"
    );
    assert_eq!(
        bench.host.instances(),
        (0, 0),
        "what was interrupted is not kept"
    );
}

#[tokio::test]
async fn dropping_a_call_leaves_nothing_behind() {
    let bench = Workbench::plain().await;
    let (context, collection, spin) = (context("tenant"), collection(), query(r#"{"do": "spin"}"#));
    let call = bench.host.read(&context, &collection, &spin);
    assert!(
        tokio::time::timeout(Duration::from_millis(60), call)
            .await
            .is_err()
    );
    assert_eq!(bench.host.instances(), (0, 0));
    bench.read("{}").await.expect("the next call is served");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_are_served_while_one_plugin_hangs() {
    let bench = Arc::new(Workbench::plain().await);
    bench.put("other.wasm", &tuned("other", "other", "1", "-"));
    let reports = bench.host.load_all().await;
    check_loaded(&reports);
    let hanging: Vec<_> = (0..4)
        .map(|_| {
            let bench = Arc::clone(&bench);
            tokio::spawn(async move { bench.read(r#"{"do": "spin"}"#).await.map(drop) })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let beside = waits(&bench).await;
    // Waiting for a spinning guest would take its two seconds. A benchmark measures how short the wait is: tests run
    // beside each other.
    assert!(
        beside[990] < Duration::from_millis(1_500),
        "p99 {:?} beside a hanging plugin",
        beside[990]
    );
    assert!(bench.host.instances().0 <= 64);
    for call in hanging {
        let ended = call.await.expect("it ran");
        assert!(
            matches!(ended, Err(AdapterFailure::OverLimit(_))),
            "{ended:?}"
        );
    }
}

/// Instances with an interpreter are few: one plugin takes half of them at most, whatever it may have in flight.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn others_with_an_interpreter_are_served_while_one_hangs() {
    let generous = PluginConfig {
        in_flight_max: Some(1_000),
        ..PluginConfig::default()
    };
    let bench = Workbench::empty(
        BTreeMap::from([("probe".to_owned(), generous)]),
        BTreeMap::new(),
    );
    bench.put("probe.wasm", &large(probe()));
    bench.put("other.wasm", &large(tuned("other", "other", "1", "-")));
    let reports = bench.host.load_all().await;
    check_loaded(&reports);
    let mut hanging = JoinSet::new();
    for tenant in 0..64 {
        let host = Arc::clone(&bench.host);
        let tenant = context(&format!("tenant-{tenant}"));
        hanging.spawn(async move {
            host.read(&tenant, &collection(), &query(r#"{"do": "spin"}"#))
                .await
        });
    }
    for _ in 0..48 {
        let ended = hanging
            .join_next()
            .await
            .expect("64 calls")
            .expect("it ran");
        assert!(
            matches!(ended, Err(AdapterFailure::Overloaded { .. })),
            "{ended:?}"
        );
    }
    assert_eq!(bench.host.instances().0, 16);
    let other = crate::workbench::collection_of("other", "{}");
    bench
        .host
        .read(&context("tenant"), &other, &query("{}"))
        .await
        .expect("an answer beside a hanging plugin");
}

/// Adds a section without a meaning: a component of that size counts as one with an interpreter.
fn large(mut component: Vec<u8>) -> Vec<u8> {
    // A custom section of 4 MiB, whose length is a LEB128 of four bytes, with a name of one byte.
    component.extend([0, 0x80, 0x80, 0x80, 0x02, 1, b'x']);
    component.resize(component.len() + (4 << 20) - 2, 0);
    component
}

/// Returns how long each of 1,000 tenants waits for the other plugin, shortest first.
async fn waits(bench: &Workbench) -> Vec<Duration> {
    let other = crate::workbench::collection_of("other", "{}");
    let mut waits = Vec::new();
    for tenant in 0..1_000 {
        let started = Instant::now();
        bench
            .host
            .read(&context(&format!("tenant-{tenant}")), &other, &query("{}"))
            .await
            .expect("an answer");
        waits.push(started.elapsed());
    }
    waits.sort();
    waits
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_calls_are_refused_quickly() {
    let config = PluginConfig {
        in_flight_max: Some(2),
        cpu_max_ms: Some(5_000),
        ..PluginConfig::default()
    };
    let bench = Arc::new(Workbench::with(config, Default::default()).await);
    let hanging = tokio::spawn({
        let bench = Arc::clone(&bench);
        async move { bench.read(r#"{"do": "spin"}"#).await.map(drop) }
    });
    let runs = || {
        let (all, parked) = bench.host.instances();
        all > parked
    };
    while !runs() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let refused = bench
        .read("{}")
        .await
        .expect_err("the tenant's only turn is taken");
    assert!(
        matches!(refused, AdapterFailure::Overloaded { .. }),
        "{refused:?}"
    );
    assert!(!hanging.is_finished(), "it waited for its turn");
    bench.read_as("another", "{}").await;
    hanging.await.expect("it ran").expect_err("it spun");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_meets_nothing_but_traps_is_told_to_wait() {
    let mut bench = Workbench::plain().await;
    for _ in 0..20 {
        // An answer of the guest counts as an answer, however bad it is.
        assert_eq!(
            bench.code(r#"{"do": "fail", "code": "conflict"}"#).await,
            "conflict"
        );
    }
    trap(&bench).await;
    assert_eq!(
        bench.read_as("another", "{}").await,
        r#"[{"version":"1"}]"#,
        "another caller is served"
    );
    let mut neighbour = collection();
    neighbour.key = Arc::from("shop 1.0.0 neighbours");
    bench
        .host
        .read(&context("tenant"), &neighbour, &query("{}"))
        .await
        .expect("another collection is served");
    let status = &bench.host.plugins()[0];
    assert_eq!(
        (
            status.backing_off,
            status.ends.failed,
            status.ends.backed_off
        ),
        (1, 5, 1)
    );
    // The wait ends, and one answer ends all of it.
    loop {
        match bench.read("{}").await {
            Ok(_) => break,
            Err(AdapterFailure::BackedOff { retry_after_ms }) => {
                tokio::time::sleep(Duration::from_millis(retry_after_ms.into())).await;
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(bench.host.plugins()[0].backing_off, 0);
    // A new build has not failed yet.
    trap(&bench).await;
    bench.watch();
    bench.put("probe.wasm", &tuned("probe", "probe", "2", "-"));
    bench.result("probe.wasm").await.expect("it loads");
    assert_eq!(bench.records("{}").await, r#"[{"version":"2"}]"#);
    assert_eq!(bench.host.plugins()[0].backing_off, 0);
}

/// Traps as often as is tolerated, and once more.
async fn trap(bench: &Workbench) {
    for _ in 0..5 {
        bench.failed(r#"{"do": "trap"}"#).await;
    }
    let refused = bench.read("{}").await.expect_err("it is not called");
    assert!(
        matches!(
            refused,
            AdapterFailure::BackedOff {
                retry_after_ms: 1..=1_000
            }
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn progress_only_moves_forward() {
    let bench = Workbench::plain().await;
    let seen = Arc::new(SeenProgress::default());
    let mut context = context("tenant");
    context.events = Some(Arc::clone(&seen) as Arc<dyn CallEvents>);
    let (collection, steps) = (collection(), query(r#"{"do": "progress", "count": 100}"#));
    bench
        .host
        .read(&context, &collection, &steps)
        .await
        .expect("an answer");
    let seen = seen.0.lock();
    assert!(
        seen.len() >= 2 && seen.len() < 100,
        "{} reports",
        seen.len()
    );
    assert!(
        seen.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "{seen:?}"
    );
    assert!(
        seen.iter().all(|(_, _, message)| !message.contains('\n')),
        "{seen:?}"
    );
    let (last, ..) = seen.last().expect("a report");
    assert_eq!(
        *last, 99.0,
        "the last report before the answer is passed on"
    );
}
