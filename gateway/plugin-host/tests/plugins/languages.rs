//! The interface belongs to no language: the same small adapter in four of them answers, fails and ends alike.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use weir_connections::ConnectionRegistry;
use weir_plugin_host::{
    AdapterCondition, AdapterFailure, AdapterQuery, AdapterSummaryMeasure, AdapterSummaryQuery,
    CallEvents, CollectionRef, ConnectionGrant, PluginConfig,
};

use crate::workbench::{SeenProgress, Workbench, check_loaded, config, context, guest, sqlite};

#[tokio::test]
async fn rust() {
    check("tiny-rust", Crash::Traps).await;
}

#[tokio::test]
async fn c() {
    check("tiny-c", Crash::Traps).await;
}

/// The C bindings are of the interface that has summaries, which a guest exports beside its records.
#[tokio::test]
async fn c_counts() {
    let guest = Guest::load("tiny-c").await;
    let (host, collection) = (&guest.bench.host, &guest.collection);
    let count = |column: &str, function: &'static str| AdapterSummaryQuery {
        conditions: vec![AdapterCondition {
            column: column.to_owned(),
            comparison: "equals".to_owned(),
            value: "2".to_owned(),
        }],
        measures: vec![AdapterSummaryMeasure {
            name: "how many".to_owned(),
            function,
            column: None,
        }],
        limit: 1,
        ..AdapterSummaryQuery::default()
    };
    let ask = async |query: AdapterSummaryQuery| {
        host.summarize(&context("tenant"), collection, &Arc::new(query))
            .await
    };
    let all = AdapterSummaryQuery {
        conditions: Vec::new(),
        ..count("id", "count")
    };
    for (query, records) in [
        (all, r#"[{"how many":3}]"#),
        (count("id", "count"), r#"[{"how many":1}]"#),
        (count("name", "count"), r#"[{"how many":0}]"#),
    ] {
        let counted = ask(query).await.expect("a count");
        assert_eq!((&*counted.records, counted.more), (records, false));
    }
    for (query, code) in [
        (count("nothing", "count"), "invalid"),
        (count("id", "sum"), "unsupported"),
    ] {
        let refused = ask(query).await.expect_err(code);
        assert!(
            matches!(&refused, AdapterFailure::Guest(error) if error.code == code),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn javascript() {
    check("tiny-js", Crash::IsCaught).await;
}

#[tokio::test]
async fn python() {
    check("tiny-python", Crash::IsCaught).await;
}

/// Components that were built when 0.1.0 was the newest interface, kept as they were: no later one may refuse them.
#[tokio::test]
async fn what_was_built_for_0_1_0_loads_and_answers_unchanged() {
    for name in ["tiny-c", "tiny-rust", "tiny-js"] {
        let kept = format!(
            "{}/../../tests/guests/0.1.0/{name}.wasm",
            env!("CARGO_MANIFEST_DIR")
        );
        let guest = Guest::load_from(
            name,
            &std::fs::read(&kept).expect("it is kept in the repository"),
        )
        .await;
        guest.progress_arrives().await;
        guest.errors_keep_their_parts().await;
        assert_eq!(
            guest.act("query").await.expect("a row"),
            r#"[{"name":"one"}]"#
        );
    }
}

#[derive(PartialEq)]
enum Crash {
    Traps,
    /// An interpreter's exception, by the guard that every export has.
    IsCaught,
}

/// Runs all checks on a guest that is loaded once, since an interpreter takes its time to compile.
async fn check(name: &str, crash: Crash) {
    let guest = Guest::load(name).await;
    guest.errors_keep_their_parts().await;
    guest.progress_arrives().await;
    guest.state_stays_with_its_tenant().await;
    guest.answers_may_be_large_within_their_bound().await;
    guest.a_crash_ends_one_call(crash).await;
    guest.it_is_ended_from_outside().await;
    assert_eq!(
        guest.act("query").await.expect("a row"),
        r#"[{"name":"one"}]"#
    );
    let tight = PluginConfig {
        cpu_max_ms: Some(200),
        ..PluginConfig::default()
    };
    guest
        .bench
        .host
        .reconfigure(
            BTreeMap::from([(name.to_owned(), tight)]),
            guest.connections(),
        )
        .await;
    let refused = guest
        .act("query")
        .await
        .expect_err("nothing is granted any more");
    assert!(
        matches!(&refused, AdapterFailure::Guest(error) if error.code == "denied"),
        "{refused:?}"
    );
    let failure = guest.act("spin").await.expect_err("no end");
    let answer = matches!(&failure, AdapterFailure::OverLimit(bound) if bound.reason.contains("200 ms of processor time"));
    assert!(answer, "{failure:?}");
}

struct Guest {
    bench: Workbench,
    collection: CollectionRef,
}

impl Guest {
    /// Loads the guest with a database that it may read.
    async fn load(name: &str) -> Self {
        Self::load_from(name, &guest(name)).await
    }

    async fn load_from(name: &str, guest_file: &[u8]) -> Self {
        let granted = BTreeMap::from([(name.to_owned(), config(&[("db", ConnectionGrant::Read)]))]);
        let bench = Workbench::empty(granted, BTreeMap::new());
        let database = bench.folder.path().join("data.sqlite");
        let made = rusqlite::Connection::open(&database)
            .and_then(|tables| tables.execute_batch("CREATE TABLE t (a)"));
        made.expect("a database");
        bench.put(&format!("{name}.wasm"), guest_file);
        let settings = r#"{"greeting": "hello"}"#;
        let collection = |shape: String| CollectionRef {
            key: Arc::from("tiny 1.0.0 tiny"),
            adapter: Arc::from(name),
            settings: Arc::from(settings),
            shape: Arc::from(shape),
        };
        let mut guest = Self {
            bench,
            collection: collection(String::new()),
        };
        let granted = BTreeMap::from([(name.to_owned(), config(&[("db", ConnectionGrant::Read)]))]);
        guest
            .bench
            .host
            .reconfigure(granted, guest.connections())
            .await;
        let reports = guest.bench.host.load_all().await;
        check_loaded(&reports);
        guest.collection = collection(
            guest
                .bench
                .host
                .describe(name, settings)
                .await
                .expect("a shape"),
        );
        guest
    }

    fn connections(&self) -> Arc<ConnectionRegistry> {
        let folder = self.bench.folder.path();
        let database =
            BTreeMap::from([("db".to_owned(), sqlite(&folder.join("data.sqlite"), false))]);
        Arc::new(ConnectionRegistry::new(&database, folder).expect("a good connection"))
    }

    async fn act(&self, word: &str) -> Result<String, AdapterFailure> {
        self.act_as("tenant", word).await
    }

    async fn act_as(&self, tenant: &str, word: &str) -> Result<String, AdapterFailure> {
        Ok(self
            .bench
            .host
            .read(&context(tenant), &self.collection, &asked(word))
            .await?
            .records)
    }

    async fn errors_keep_their_parts(&self) {
        let AdapterFailure::Guest(error) = self.act("refuse").await.expect_err("it refuses") else {
            panic!("another failure");
        };
        let parts = (
            &*error.code,
            &*error.message,
            error.field.as_deref(),
            error.retry_after_ms,
        );
        assert_eq!(
            parts,
            ("conflict", "Refused, as asked.", Some("name"), Some(7))
        );
    }

    async fn progress_arrives(&self) {
        let seen = Arc::new(SeenProgress::default());
        let mut context = context("tenant");
        context.events = Some(Arc::clone(&seen) as Arc<dyn CallEvents>);
        let one = Arc::new(AdapterQuery {
            limit: 1,
            ..AdapterQuery::default()
        });
        let page = self
            .bench
            .host
            .read(&context, &self.collection, &one)
            .await
            .expect("a page");
        assert_eq!(
            page.records,
            r#"[{"id":1,"name":"one","greeting":"hello"}]"#
        );
        assert_eq!(*seen.0.lock(), [(1.0, Some(3.0), "reading".to_owned())]);
    }

    async fn state_stays_with_its_tenant(&self) {
        for (tenant, calls) in [("one", 1), ("one", 2), ("two", 1), ("one", 3)] {
            let counted = self.act_as(tenant, "count").await.expect("an answer");
            assert_eq!(counted, format!(r#"[{{"calls":{calls}}}]"#), "{tenant}");
        }
    }

    async fn answers_may_be_large_within_their_bound(&self) {
        assert_eq!(
            self.act("large").await.expect("five megabytes").len(),
            (5 << 20) + 13
        );
        let failure = self.act("too-large").await.expect_err("nine megabytes");
        let answer = matches!(&failure, AdapterFailure::OverLimit(bound) if bound.reason.contains("at most 8388608"));
        assert!(answer, "{failure:?}");
    }

    async fn a_crash_ends_one_call(&self, crash: Crash) {
        let failure = self.act_as("crash", "trap").await.expect_err("it crashes");
        let answer = match &failure {
            // The text of an exception may hold a secret.
            AdapterFailure::Guest(error) => {
                crash == Crash::IsCaught
                    && error.code == "internal"
                    && !error.message.contains("as asked")
            }
            AdapterFailure::Failed(reason) => {
                crash == Crash::Traps && reason.contains("unreachable")
            }
            _ => false,
        };
        assert!(answer, "{failure:?}");
        assert_eq!(
            self.act_as("crash", "count").await.expect("an answer"),
            r#"[{"calls":1}]"#
        );
    }

    async fn it_is_ended_from_outside(&self) {
        let mut late = context("late");
        late.deadline = Instant::now() + Duration::from_millis(100);
        let failure = self
            .bench
            .host
            .read(&late, &self.collection, &asked("spin"))
            .await
            .expect_err("no end");
        assert!(matches!(failure, AdapterFailure::Timeout), "{failure:?}");
        let gone = context("late");
        let cancel = gone.cancel.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        });
        let failure = self
            .bench
            .host
            .read(&gone, &self.collection, &asked("spin"))
            .await
            .expect_err("no end");
        assert!(matches!(failure, AdapterFailure::Cancelled), "{failure:?}");
        assert_eq!(
            self.act_as("late", "count").await.expect("an answer"),
            r#"[{"calls":1}]"#,
            "it was kept"
        );
    }
}

fn asked(word: &str) -> Arc<AdapterQuery> {
    Arc::new(AdapterQuery {
        options: Some(format!(r#"{{"do":"{word}"}}"#)),
        limit: 10,
        ..AdapterQuery::default()
    })
}
