//! Native libraries, compiled from `library.c`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::Barrier,
};
use tracing::{Event, Metadata, Subscriber, field, span};
use weir_connections::{ConnectionConfig, ConnectionRegistry};
use weir_plugin_host::{
    AdapterCondition, AdapterFailure, AdapterSummaryGroup, AdapterSummaryMeasure,
    AdapterSummaryQuery, ConnectionGrant, LoadReport, PluginConfig, PluginIsolation, WriteFailure,
};

use crate::workbench::{Workbench, check_loaded, collection_of, config, context, query};

/// Returns the words of a command that runs a library in a child: the example `library`, built by the same cargo run as this
/// test.
pub(crate) fn runner() -> Vec<OsString> {
    let test = std::env::current_exe().expect("this test has a path");
    let runner = test
        .ancestors()
        .nth(2)
        .expect("tests lie in TARGET/PROFILE/deps")
        .join("examples/library");
    assert!(
        runner.exists(),
        "{} is missing: run `cargo build --workspace --all-targets --locked`",
        runner.display()
    );
    vec![runner.into_os_string()]
}

/// Compiles a library.
fn library(folder: &Path, name: &str, version: &str, more: &[&str]) -> PathBuf {
    let path = folder.join(format!("{name}-{version}.so"));
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler
        .args(["-shared", "-fPIC", "-I"])
        .arg(here.join("../../plugin-sdk/native"));
    compiler
        .arg(format!("-DNAME=\"{name}\""))
        .arg(format!("-DVERSION=\"{version}\""))
        .arg(format!("-DWORKED=\"{}.worked\"", path.display()))
        .args(more);
    compiler
        .arg(here.join("tests/plugins/library.c"))
        .arg("-o")
        .arg(&path);
    assert!(compiler.status().expect("a C compiler").success());
    path
}

/// Returns a configuration that names the library.
fn named(library: &Path) -> PluginConfig {
    let digest = hex::encode(Sha256::digest(fs::read(library).expect("it was compiled")));
    PluginConfig {
        native: Some(library.to_owned()),
        sha256: vec![digest],
        ..PluginConfig::default()
    }
}

/// Makes a workbench with libraries.
async fn bench(
    plugins: &[(&str, PluginConfig)],
    connections: BTreeMap<String, ConnectionConfig>,
) -> Workbench {
    let plugins = plugins
        .iter()
        .map(|(name, config)| ((*name).to_owned(), config.clone()))
        .collect();
    let bench = Workbench::empty(plugins, connections);
    let reports = bench.host.load_all().await;
    check_loaded(&reports);
    bench
}

async fn reconfigure(bench: &Workbench, plugins: &[(&str, &PluginConfig)]) -> Vec<LoadReport> {
    let plugins = plugins
        .iter()
        .map(|(name, config)| ((*name).to_owned(), (*config).clone()))
        .collect();
    let connections =
        ConnectionRegistry::new(&BTreeMap::new(), bench.folder.path()).expect("no connections");
    bench.host.reconfigure(plugins, Arc::new(connections)).await
}

async fn read(bench: &Workbench, adapter: &str, options: &str) -> Result<String, AdapterFailure> {
    let page = bench
        .host
        .read(
            &context("tenant"),
            &collection_of(adapter, "{}"),
            &query(options),
        )
        .await;
    page.map(|page| page.records)
}

async fn write(bench: &Workbench, adapter: &str, options: &str) -> Result<String, WriteFailure> {
    let change = weir_plugin_host::AdapterChange {
        options: Some(options.to_owned()),
        ..Default::default()
    };
    bench
        .host
        .write(
            &context("tenant"),
            &collection_of(adapter, "{}"),
            &Arc::new(change),
        )
        .await
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_copy_that_serves_stays_however_often_another_library_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    // Each of its calls starts a child.
    let stays = named(&library(folder.path(), "stays", "1", &[]));
    let stays = PluginConfig {
        isolation: Some(PluginIsolation::Call),
        ..stays
    };
    let first = library(folder.path(), "moves", "0", &[]);
    let bench = bench(
        &[("stays", stays.clone()), ("moves", named(&first))],
        BTreeMap::new(),
    )
    .await;
    read(&bench, "stays", "").await.expect("an answer");
    for version in 1..=17 {
        let next = named(&library(folder.path(), "moves", &version.to_string(), &[]));
        let reports = reconfigure(&bench, &[("stays", &stays), ("moves", &next)]).await;
        check_loaded(&reports);
    }
    read(&bench, "stays", "")
        .await
        .expect("a child starts from its copy");
    let copy = |digest: &str| bench.folder.path().join(format!("native/{digest}.so"));
    assert!(
        !copy(&named(&first).sha256[0]).exists(),
        "nothing runs from the oldest copy"
    );
    assert!(copy(&stays.sha256[0]).exists());
}

#[tokio::test]
async fn a_description_has_five_times_the_processor_time_of_a_call() {
    let folder = tempfile::tempdir().expect("a folder");
    let tight = named(&library(folder.path(), "slow", "1", &[]));
    let tight = PluginConfig {
        cpu_max_ms: Some(300),
        ..tight
    };
    let bench = bench(&[("slow", tight)], BTreeMap::new()).await;
    bench
        .host
        .describe("slow", r#"{"busy_ms":900}"#)
        .await
        .expect("a shape");
    for (what, failed, bound) in [
        (
            "a call",
            read(&bench, "slow", "spin").await.map(drop),
            "300 ms of processor time",
        ),
        (
            "a description",
            bench
                .host
                .describe("slow", r#"{"busy_ms":60000}"#)
                .await
                .map(drop),
            "1500 ms of",
        ),
    ] {
        let failed = failed.expect_err(what);
        assert!(
            matches!(&failed, AdapterFailure::OverLimit(reached) if reached.reason.contains(bound)),
            "{what}: {failed:?}"
        );
    }
}

/// A library in C gets a summary whole, in the form that `weir-plugin.h` says, and answers it.
#[tokio::test]
async fn a_library_in_c_is_asked_for_summaries() {
    let folder = tempfile::tempdir().expect("a folder");
    let sums = named(&library(folder.path(), "sums", "1", &[]));
    let bench = bench(&[("sums", sums)], BTreeMap::new()).await;
    let condition = |column: &str, value: &str| AdapterCondition {
        column: column.to_owned(),
        comparison: "at-least".to_owned(),
        value: value.to_owned(),
    };
    let query = |limit| AdapterSummaryQuery {
        conditions: vec![condition("id", "7")],
        groups: vec![AdapterSummaryGroup {
            name: "month".to_owned(),
            column: "day".to_owned(),
            step: Some("month"),
        }],
        measures: vec![
            AdapterSummaryMeasure {
                name: "count".to_owned(),
                function: "count",
                column: None,
            },
            AdapterSummaryMeasure {
                name: "sum(id)".to_owned(),
                function: "sum",
                column: Some("id".to_owned()),
            },
        ],
        having: vec![condition("count", "2")],
        order: vec!["-count".to_owned()],
        limit,
        options: None,
    };
    for limit in [1, 2] {
        let summary = bench
            .host
            .summarize(
                &context("tenant"),
                &collection_of("sums", "{}"),
                &Arc::new(query(limit)),
            )
            .await
            .expect("a summary");
        assert_eq!(summary.more, limit == 1);
        let asked: serde_json::Value = serde_json::from_str(&summary.records).expect("JSON");
        let expected = serde_json::json!({
            "collection": asked["collection"],
            "conditions": [{"column": "id", "comparison": "at-least", "value": "7"}],
            "groups": [["month", "day", "month"]],
            "measures": [["count", "count", null], ["sum(id)", "sum", "id"]],
            "having": [{"column": "count", "comparison": "at-least", "value": "2"}],
            "order": ["-count"],
            "limit": limit,
            "options": null,
        });
        assert_eq!(asked, expected);
    }
}

fn signed(config: &PluginConfig) -> PluginConfig {
    let trusted = BTreeMap::from([("maker".to_owned(), "RWQ".to_owned())]);
    PluginConfig {
        signed_by: vec!["maker".to_owned()],
        trusted,
        ..config.clone()
    }
}

#[tokio::test]
async fn a_library_without_its_signature_is_not_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = folder.path().join("opened");
    let says = format!("-DOPENED=\"{}\"", opened.display());
    let config = named(&library(folder.path(), "unsigned", "1", &[&says]));
    let bench = Workbench::empty(
        BTreeMap::from([("unsigned".to_owned(), signed(&config))]),
        BTreeMap::new(),
    );
    let reports = bench.host.load_all().await;
    let refusal = reports[0].result.as_ref().expect_err("it has no signature");
    assert!(refusal.contains("it has no signature"), "{refusal}");
    assert!(!opened.exists(), "its start code ran");
    let reports = reconfigure(&bench, &[("unsigned", &config)]).await;
    assert!(
        reports[0].result.is_ok() && opened.exists(),
        "no one has to sign it now: {reports:?}"
    );
}

#[tokio::test]
async fn a_library_that_serves_stops_when_it_has_to_be_signed_and_is_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = named(&library(folder.path(), "serves", "1", &[]));
    let bench = bench(&[("serves", config.clone())], BTreeMap::new()).await;
    read(&bench, "serves", "").await.expect("an answer");
    // Another build is named that cannot be loaded: the one before it serves on, since its pin is that of the next one.
    let missing = PluginConfig {
        sha256: vec!["0".repeat(64)],
        ..config.clone()
    };
    let reports = reconfigure(&bench, &[("serves", &missing)]).await;
    assert!(
        reports[0]
            .result
            .as_ref()
            .is_err_and(|why| why.contains("allows only")),
        "{reports:?}"
    );
    read(&bench, "serves", "").await.expect("an answer");
    for config in [&missing, &config] {
        let reports = reconfigure(&bench, &[("serves", &signed(config))]).await;
        assert!(
            reports.iter().all(|report| report.result.is_err()),
            "{reports:?}"
        );
        let failure = read(&bench, "serves", "")
            .await
            .expect_err("it is not signed");
        assert!(
            matches!(failure, AdapterFailure::Unavailable(_)),
            "{failure:?}"
        );
    }
    reconfigure(&bench, &[("serves", &config)]).await;
    read(&bench, "serves", "").await.expect("an answer");
}

/// Counts the requests that are under way at once; every eight of them are answered together.
async fn counting(most: Arc<AtomicUsize>, answered: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (running, eight) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(8)));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (most, answered) = (Arc::clone(&most), Arc::clone(&answered));
            let (running, eight) = (Arc::clone(&running), Arc::clone(&eight));
            tokio::spawn(async move {
                let mut request = Vec::new();
                while stream
                    .read_buf(&mut request)
                    .await
                    .is_ok_and(|read| read > 0)
                {
                    if !request.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    request.clear();
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    eight.wait().await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    answered.fetch_add(1, Ordering::SeqCst);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                    stream.write_all(answer).await.expect("the host reads");
                }
            });
        }
    });
    format!("http://{address}")
}

#[tokio::test]
async fn of_sixty_four_writes_eight_are_under_way_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (most, answered) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let service = ConnectionConfig::Http {
        base_url: counting(Arc::clone(&most), Arc::clone(&answered)).await,
        headers: BTreeMap::new(),
        ca: None,
        write: true,
        timeout_ms: None,
        response_max_bytes: None,
    };
    let posts = named(&library(folder.path(), "posts", "1", &[]));
    let posts = PluginConfig {
        grants: config(&[("service", ConnectionGrant::Write)]).grants,
        ..posts
    };
    let bench = bench(
        &[("posts", posts)],
        BTreeMap::from([("service".to_owned(), service)]),
    )
    .await;
    write(&bench, "posts", "post-many")
        .await
        .expect("an answer");
    assert_eq!(
        (answered.load(Ordering::SeqCst), most.load(Ordering::SeqCst)),
        (64, 8)
    );
}

#[tokio::test]
async fn a_refused_replace_has_changed_nothing_and_one_before_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("root")).expect("a folder");
    fs::write(folder.path().join("root/file"), "old").expect("written");
    let root = ConnectionConfig::Files {
        path: folder.path().join("root"),
        write: true,
        uploads: false,
    };
    let replaces = named(&library(folder.path(), "replaces", "1", &[]));
    let replaces = PluginConfig {
        grants: config(&[("root", ConnectionGrant::Write)]).grants,
        ..replaces
    };
    let bench = bench(
        &[("replaces", replaces)],
        BTreeMap::from([("root".to_owned(), root)]),
    )
    .await;
    for (options, handed_over, content) in [
        ("replace-stale", false, "old"),
        ("replace-twice", true, "new"),
    ] {
        let failure = write(&bench, "replaces", options)
            .await
            .expect_err("the version is another");
        assert!(
            matches!(&failure.failure, AdapterFailure::Guest(error) if error.code == "conflict"),
            "{failure:?}"
        );
        assert_eq!(failure.handed_over, handed_over, "{options}");
        assert_eq!(
            fs::read_to_string(folder.path().join("root/file")).expect("it is there"),
            content
        );
    }
}

#[tokio::test]
async fn endless_work_for_later_calls_leaves_others_theirs() {
    let folder = tempfile::tempdir().expect("a folder");
    let endless = named(&library(folder.path(), "endless", "1", &["-DENDLESS"]));
    let quick = named(&library(folder.path(), "quick", "1", &[]));
    let bench = bench(&[("endless", endless), ("quick", quick)], BTreeMap::new()).await;
    let works = tokio::spawn(Arc::clone(&bench.host).work_later());
    let worked = async |adapter: &str| {
        let answer = read(&bench, adapter, "worked").await.expect("an answer");
        answer
            .trim_matches(|c: char| !c.is_ascii_digit())
            .parse::<u64>()
            .expect(&answer)
    };
    read(&bench, "endless", "ask-later")
        .await
        .expect("an answer");
    until("the endless work begins", async || {
        worked("endless").await > 0
    })
    .await;
    read(&bench, "quick", "ask-later").await.expect("an answer");
    until("the other work is done", async || {
        worked("quick").await == 1
    })
    .await;
    let before = worked("endless").await;
    until("the endless work goes on", async || {
        worked("endless").await > before
    })
    .await;
    works.abort();
}

#[tokio::test]
async fn work_for_later_calls_that_fails_closes_nothing_for_its_tenant() {
    let folder = tempfile::tempdir().expect("a folder");
    let fails = named(&library(folder.path(), "fails", "1", &[]));
    let bench = bench(&[("fails", fails)], BTreeMap::new()).await;
    let works = tokio::spawn(Arc::clone(&bench.host).work_later());
    for _ in 0..2 {
        read(&bench, "fails", "ask-failing")
            .await
            .expect("an answer");
    }
    until("all work has failed", async || {
        bench.host.plugins()[0].ends.failed == 8
    })
    .await;
    read(&bench, "fails", "")
        .await
        .expect("the tenant is answered");
    works.abort();
}

/// Keeps the lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "weir::plugin"
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &field::Field, value: &dyn std::fmt::Debug| {
            line += &format!("{field}={value:?} ")
        });
        self.0.lock().push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn lines_of_a_child_beyond_the_bound_are_dropped_and_said() {
    let lines = Lines::default();
    let _kept = tracing::subscriber::set_default(lines.clone());
    let folder = tempfile::tempdir().expect("a folder");
    let prints = named(&library(folder.path(), "prints", "1", &[]));
    let bench = bench(&[("prints", prints)], BTreeMap::new()).await;
    read(&bench, "prints", "print").await.expect("an answer");
    let is_logged = || {
        lines
            .0
            .lock()
            .iter()
            .any(|line| line.contains("lines were dropped"))
    };
    until("dropped lines are logged", async || is_logged()).await;
    let printed = lines
        .0
        .lock()
        .iter()
        .filter(|line| line.contains("000000"))
        .count();
    assert!(printed < 2_900, "{printed} of 3,000 lines were written");
}
