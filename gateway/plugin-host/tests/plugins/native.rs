//! An adapter of the program itself is called like a plugin's, within the same bounds.

use std::{
    future::{pending, ready},
    sync::Arc,
    time::{Duration, Instant},
};

use weir_plugin_host::{
    AdapterChange, AdapterFailure, AdapterPage, AdapterQuery, CallContext, CollectionRef,
    GuestError, PluginConfig,
    native::{self, Answered, NativeAdapter},
};

use crate::workbench::{Workbench, collection_of, context, query, tuned};

/// Answers as many bytes as `options` say, and nothing at all for `never`.
struct Builtin;

impl NativeAdapter for Builtin {
    fn name(&self) -> &str {
        "builtin"
    }

    fn describe<'a>(&'a self, settings: &'a str) -> Answered<'a, String> {
        Box::pin(ready(Ok(settings.to_owned())))
    }

    fn read<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        query: &'a AdapterQuery,
    ) -> Answered<'a, AdapterPage> {
        match query.options.as_deref().map(str::parse) {
            Some(Ok(bytes)) => Box::pin(ready(Ok(AdapterPage {
                records: "x".repeat(bytes),
                next: None,
            }))),
            _ => Box::pin(pending()),
        }
    }

    fn write<'a>(
        &'a self,
        _: &'a CallContext,
        _: &'a CollectionRef,
        _: &'a AdapterChange,
    ) -> Answered<'a, String> {
        let (code, message) = ("denied".to_owned(), "Not here.".to_owned());
        Box::pin(ready(Err(GuestError {
            code,
            message,
            field: None,
            retry_after_ms: None,
            details: None,
        })))
    }
}

#[tokio::test]
async fn a_native_adapter_is_called_within_its_bounds() {
    native::install(Arc::new(Builtin));
    let small = PluginConfig {
        result_max_bytes: Some(100),
        ..PluginConfig::default()
    };
    let bench = Workbench::empty([("builtin".to_owned(), small)].into(), Default::default());
    let collection = collection_of("builtin", "{}");
    let read = async |options: &str, context: CallContext| {
        bench
            .host
            .read(&context, &collection, &query(options))
            .await
    };

    assert_eq!(
        read("3", context("a")).await.expect("an answer").records,
        "xxx"
    );
    let too_large = read("101", context("a")).await;
    assert!(
        matches!(too_large, Err(AdapterFailure::OverLimit(_))),
        "{too_large:?}"
    );
    let deadline = Instant::now() + Duration::from_millis(20);
    let late = read(
        "never",
        CallContext {
            deadline,
            ..context("a")
        },
    )
    .await;
    assert!(matches!(late, Err(AdapterFailure::Timeout)), "{late:?}");
    let gone = context("a");
    gone.cancel.cancel();
    let gone = read("never", gone).await;
    assert!(matches!(gone, Err(AdapterFailure::Cancelled)), "{gone:?}");
    let refused = bench
        .host
        .write(&context("a"), &collection, &Arc::default())
        .await
        .expect_err("it refuses");
    assert!(
        matches!(&refused.failure, AdapterFailure::Guest(error) if error.code == "denied"),
        "{refused:?}"
    );
    assert!(!refused.handed_over, "it reported that nothing was written");
    assert_eq!(
        bench
            .host
            .describe("builtin", "[1]")
            .await
            .expect("a shape"),
        "[1]"
    );
}

#[tokio::test]
async fn no_plugin_takes_the_name_of_a_native_adapter() {
    native::install(Arc::new(Builtin));
    let mut bench = Workbench::empty(Default::default(), Default::default());
    bench.watch();
    bench.put("other.wasm", &tuned("other", "builtin", "1", "-"));
    let refused = bench.result("other.wasm").await.expect_err("it is refused");
    assert!(
        refused.contains("`builtin` is part of this program"),
        "{refused}"
    );
}
