//! A plugin with tools, in JavaScript: what its tools answer, what they may do, and which of its builds runs.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use weir_connections::ConnectionRegistry;
use weir_plugin_host::{
    AdapterFailure, Admitting, BuildAdmission, CallContext, CallEvents, ConnectionGrant,
    GuestError, ToolAnswer, ToolDefinitions, ToolGate, ToolInvocation, ToolRef, WriteFailure,
};

use crate::workbench::{SeenProgress, Workbench, check_loaded, config, context, guest, sqlite};

#[tokio::test]
async fn each_kind_of_answer_comes_back_as_the_tool_gave_it() {
    let bench = Tools::load().await;
    let given = json!({"environment": "prod", "service": "web", "version": "latest"});
    assert_eq!(bench.value("deploy", given.clone()).await, given);
    assert_eq!(bench.value("names", json!({})).await, json!(["one", "two"]));
    let refused = bench.refused("refuse", json!({"code": "too_early"})).await;
    let parts = (
        &*refused.code,
        refused.message.contains("after noon"),
        refused.retry_after_ms,
    );
    assert_eq!(parts, ("too_early", true, Some(7)));
    assert_eq!(
        bench.refused("crash", json!({})).await.code,
        "internal",
        "the guard of the guest says it"
    );
    let drawn = bench.call("draw", json!({})).await.expect("an answer");
    let ToolAnswer::Complete {
        value: None,
        content: Some(content),
    } = drawn
    else {
        panic!("{drawn:?}")
    };
    let blocks: Vec<Value> = serde_json::from_str(&content).expect("an array");
    let kinds: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["type"].as_str())
        .collect();
    assert_eq!(kinds, ["text", "image", "resource_link", "resource"]);
}

/// The plugin names the kind of its answer in a word; a kind of another interface is invalid.
#[tokio::test]
async fn an_answer_of_an_unknown_kind_is_a_failure_of_the_plugin() {
    let bench = Tools::load().await;
    for (kind, why) in [
        ("later", "later"),
        ("", "kind"),
        ("input-required", "has a value or content"),
    ] {
        let failure = bench
            .call("strange", json!({ "kind": kind }))
            .await
            .expect_err("no answer")
            .failure;
        let AdapterFailure::Failed(answer) = &failure else {
            panic!("{kind}: {failure:?}")
        };
        assert!(answer.contains(why), "{kind}: {answer}");
    }
    assert_eq!(
        bench.value("strange", json!({"kind": "complete"})).await,
        json!({})
    );
}

#[tokio::test]
async fn a_tool_is_told_who_asks_and_the_settings_of_its_plugin() {
    let bench = Tools::load().await;
    let answer = bench.value("whoami", json!({})).await;
    assert_eq!(answer["greeting"], "hello");
    for (member, value) in [
        ("agent", "robot"),
        ("tenant", "tenant"),
        ("call_id", "call-1"),
        ("contract", "tools@1.0.0"),
    ] {
        assert_eq!(answer[member], value, "{member}");
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_millis();
    let left = answer["deadline_ms"].as_u64().expect("a number") as i128 - now as i128;
    assert!(
        (290_000..=300_000).contains(&left),
        "{left} ms are left of 300 s"
    );
    assert_eq!(
        bench.value("whoami", json!({})).await["calls"],
        2,
        "the instance is kept"
    );
}

#[tokio::test]
async fn a_question_goes_to_the_caller_and_its_answer_comes_back() {
    let bench = Tools::load().await;
    let asked = bench
        .call("remove", json!({"environment": "prod"}))
        .await
        .expect("an answer");
    let ToolAnswer::InputRequired { requests, state } = asked else {
        panic!("{asked:?}")
    };
    let requests: Value = serde_json::from_str(&requests).expect("an object");
    assert_eq!(requests["sure"]["method"], "elicitation/create");
    let answered = json!({
        "state": state.expect("a state"),
        "responses": {"sure": {"action": "accept", "content": {"sure": true}}},
    });
    let invocation = invocation(json!({"environment": "prod"}), Some(answered));
    let answer = bench
        .run("remove", &context("tenant"), invocation)
        .await
        .expect("an answer");
    let value = r#"{"removed":true}"#.to_owned();
    assert_eq!(
        answer,
        ToolAnswer::Complete {
            value: Some(value),
            content: None
        }
    );
}

#[tokio::test]
async fn progress_arrives_and_a_tool_without_end_is_ended() {
    let bench = Tools::load().await;
    let seen = Arc::new(SeenProgress::default());
    let mut watched = context("tenant");
    watched.events = Some(Arc::clone(&seen) as Arc<dyn CallEvents>);
    bench
        .run("steps", &watched, invocation(json!({"pause_ms": 40}), None))
        .await
        .expect("an answer");
    let steps: Vec<_> = seen
        .0
        .lock()
        .iter()
        .map(|(done, total, _)| (*done, *total))
        .collect();
    assert_eq!(
        steps,
        [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]
    );
    let mut late = context("tenant");
    late.deadline = Instant::now() + Duration::from_millis(100);
    let failure = bench
        .run("spin", &late, invocation(json!({}), None))
        .await
        .expect_err("no end")
        .failure;
    assert!(matches!(failure, AdapterFailure::Timeout), "{failure:?}");
    let gone = context("tenant");
    let cancel = gone.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        cancel.cancel();
    });
    let failure = bench
        .run("spin", &gone, invocation(json!({}), None))
        .await
        .expect_err("no end")
        .failure;
    assert!(matches!(failure, AdapterFailure::Cancelled), "{failure:?}");
}

#[tokio::test]
async fn a_tool_published_as_read_only_cannot_write_where_its_plugin_may() {
    let bench = Tools::load().await;
    let refused = bench.refused("look", json!({})).await;
    assert_eq!(refused.code, "denied");
    assert!(refused.message.contains("read-only"), "{}", refused.message);
    assert_eq!(
        bench.value("names", json!({})).await,
        json!(["one", "two"]),
        "nothing was changed"
    );
    assert_eq!(
        bench.value("rename", json!({"name": "uno"})).await,
        json!({"changed": 1})
    );
    assert_eq!(
        bench.value("names", json!({})).await,
        json!(["uno", "two"]),
        "one that is not may"
    );
}

#[tokio::test]
async fn failures_in_a_row_close_the_tool_and_not_its_neighbours() {
    let bench = Tools::load().await;
    let tight = weir_plugin_host::PluginConfig {
        cpu_max_ms: Some(20),
        ..bench.granted()
    };
    bench.reconfigure(tight).await;
    for _ in 0..5 {
        let failure = bench
            .call("spin", json!({}))
            .await
            .expect_err("no end")
            .failure;
        assert!(
            matches!(failure, AdapterFailure::OverLimit(_)),
            "{failure:?}"
        );
    }
    let failure = bench
        .call("spin", json!({}))
        .await
        .expect_err("it waits")
        .failure;
    assert!(
        matches!(failure, AdapterFailure::BackedOff { .. }),
        "{failure:?}"
    );
    bench.value("names", json!({})).await;
}

#[tokio::test]
async fn definitions_that_differ_from_one_instance_to_the_next_are_refused() {
    let bench = Tools::empty();
    bench.put("moody");
    let reports = bench.bench.host.load_all().await;
    let refusal = reports[0]
        .result
        .as_ref()
        .expect_err("never twice the same");
    assert!(
        refusal.contains("differ from one instance to the next"),
        "{refusal}"
    );
}

#[tokio::test]
async fn settings_that_the_plugin_refuses_keep_it_out_and_say_where_they_stand() {
    let bench = Tools::empty();
    bench.bench.put("tools-js.wasm", &guest("tools-js"));
    let mut refused = bench.granted();
    refused.settings.insert("refuse".to_owned(), json!(true));
    let reports = bench.reconfigure(refused).await;
    let loaded = bench.bench.host.load_all().await;
    let refusal = reports
        .iter()
        .chain(&loaded)
        .find_map(|report| report.result.as_ref().err())
        .expect("it is refused");
    assert!(
        refusal.contains("[plugins.tools-js.settings]") && refusal.contains("as asked"),
        "{refusal}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_held_build_waits_while_the_old_one_answers_and_no_call_meets_the_other() {
    let mut bench = Tools::load().await;
    let old = bench.tool("deploy");
    bench.gate.promise(&old.definitions);
    bench.gate.say(BuildAdmission::Held(
        "held: `deploy` loses a parameter".to_owned(),
    ));
    bench.bench.watch();
    bench.put("renamed");
    let held = bench.bench.report("tools-js.wasm").await;
    assert!(held.held.is_some() && held.result.expect_err("held").contains("loses a parameter"));
    let new = ToolRef {
        definitions: bench.gate.asked().into(),
        ..old.clone()
    };
    assert_ne!(new.definitions, old.definitions);
    let to_old = json!({"environment": "prod", "service": "web", "version": "1"});
    let to_new = json!({"environment": "prod", "application": "web", "version": "1"});
    assert_eq!(bench.value_of(&old, to_old.clone()).await, to_old);
    let failure = bench
        .call_of(&new, to_new.clone())
        .await
        .expect_err("not let in")
        .failure;
    assert!(
        matches!(&failure, AdapterFailure::NoBuild(plugin) if plugin == "tools-js"),
        "{failure:?}"
    );
    // The change is published: the build that waits is asked about again.
    bench.gate.say(BuildAdmission::Yes);
    bench.gate.promise(&new.definitions);
    bench
        .bench
        .result("tools-js.wasm")
        .await
        .expect("it is let in");
    assert_eq!(bench.value_of(&new, to_new.clone()).await["service"], "web");
    assert_eq!(
        bench.value_of(&old, to_old.clone()).await,
        to_old,
        "a call that was promised the old ones still is"
    );
    // Another swap: a call may have begun before the contract of the last one was served.
    bench.put("wider");
    bench
        .bench
        .result("tools-js.wasm")
        .await
        .expect("it is let in");
    assert_eq!(bench.value_of(&old, to_old.clone()).await, to_old);
    assert_eq!(bench.value_of(&new, to_new.clone()).await["service"], "web");
}

#[tokio::test]
async fn a_build_with_the_same_definitions_takes_over_at_once() {
    let mut bench = Tools::load().await;
    let tool = bench.tool("deploy");
    bench.bench.watch();
    bench.put("fix");
    bench.bench.result("tools-js.wasm").await.expect("it loads");
    let given = json!({"environment": "prod", "service": "web", "version": "1"});
    assert_eq!(bench.value_of(&tool, given).await["fixed"], "yes");
}

/// After a restart, and after a rollback, the contract may promise what the folder's build does not keep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kept_build_runs_where_the_file_is_held_or_was_published_and_taken_back() {
    let bench = Tools::load().await;
    let old = bench.tool("deploy");
    bench.put("renamed");
    let bench2 = bench.restarted();
    bench2.gate.promise(&old.definitions);
    bench2
        .gate
        .say(BuildAdmission::Held("held: another parameter".to_owned()));
    let reports = bench2.bench.host.load_all().await;
    assert!(
        reports.iter().any(|report| report.held.is_some()),
        "{reports:?}"
    );
    let kept = reports
        .iter()
        .find(|report| report.result.is_ok())
        .expect("the kept build runs");
    assert!(kept.notes[0].contains("kept build"), "{:?}", kept.notes);
    let given = json!({"environment": "prod", "service": "web", "version": "1"});
    assert_eq!(bench2.value_of(&old, given.clone()).await, given);
    // A new process again, in which the other build was let in, and then taken back.
    let mut bench3 = bench2.restarted();
    bench3.bench.host.load_all().await;
    let new = bench3.tool("deploy");
    assert_ne!(new.definitions, old.definitions);
    bench3.bench.watch();
    bench3.gate.promise(&old.definitions);
    bench3
        .bench
        .result("tools-js (kept build)")
        .await
        .expect("it was kept");
    assert_eq!(bench3.value_of(&old, given.clone()).await, given);
}

#[tokio::test]
async fn a_build_without_tools_does_not_replace_one_whose_tools_are_published() {
    let mut bench = Tools::load().await;
    let old = bench.tool("deploy");
    bench.gate.promise(&old.definitions);
    bench.bench.watch();
    bench.bench.put(
        "tools-js.wasm",
        &crate::workbench::tuned("tools-js", "probe", "9", "-"),
    );
    let refusal = bench
        .bench
        .result("tools-js.wasm")
        .await
        .expect_err("its tools are needed");
    assert!(refusal.contains("needs its tools"), "{refusal}");
    let given = json!({"environment": "prod", "service": "web", "version": "1"});
    assert_eq!(bench.value_of(&old, given.clone()).await, given);
}

/// The plugin over a database that it may write.
struct Tools {
    bench: Workbench,
    gate: Arc<Gate>,
}

impl Tools {
    fn empty() -> Self {
        let bench = Workbench::empty(BTreeMap::new(), BTreeMap::new());
        let database = rusqlite::Connection::open(bench.folder.path().join("data.sqlite"))
            .expect("a database");
        let rows = "CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT); INSERT INTO things VALUES (1, 'one'), (2, 'two')";
        database.execute_batch(rows).expect("two things");
        Self::over(bench)
    }

    fn over(bench: Workbench) -> Self {
        let gate = Arc::<Gate>::default();
        bench
            .host
            .set_tool_gate(Arc::clone(&gate) as Arc<dyn ToolGate>);
        Self { bench, gate }
    }

    async fn load() -> Self {
        let bench = Self::empty();
        bench.reconfigure(bench.granted()).await;
        bench.bench.put("tools-js.wasm", &guest("tools-js"));
        let reports = bench.bench.host.load_all().await;
        check_loaded(&reports);
        bench
    }

    /// Starts another process over the same folders.
    fn restarted(self) -> Self {
        Self::over(self.bench.restarted())
    }

    fn put(&self, build: &str) {
        self.bench
            .put("tools-js.wasm", &guest(&format!("tools-js-{build}")));
    }

    fn granted(&self) -> weir_plugin_host::PluginConfig {
        let mut granted = config(&[("db", ConnectionGrant::Write)]);
        granted
            .settings
            .insert("greeting".to_owned(), json!("hello"));
        granted.cpu_max_ms = Some(60_000);
        granted
    }

    async fn reconfigure(
        &self,
        config: weir_plugin_host::PluginConfig,
    ) -> Vec<weir_plugin_host::LoadReport> {
        let folder = self.bench.folder.path();
        let database =
            BTreeMap::from([("db".to_owned(), sqlite(&folder.join("data.sqlite"), true))]);
        let connections =
            Arc::new(ConnectionRegistry::new(&database, folder).expect("a good connection"));
        self.bench
            .host
            .reconfigure(
                BTreeMap::from([("tools-js".to_owned(), config)]),
                connections,
            )
            .await
    }

    /// Returns a tool as it would be published from what is loaded.
    fn tool(&self, name: &str) -> ToolRef {
        let plugin = &self.bench.host.plugins()[0];
        ToolRef {
            plugin: "tools-js".into(),
            tool: name.into(),
            definitions: plugin.definitions.as_deref().expect("it has tools").into(),
            contract: "tools@1.0.0".into(),
            read_only: ["steps", "look", "names", "draw", "wrong", "whoami", "spin"]
                .contains(&name),
        }
    }

    async fn run(
        &self,
        tool: &str,
        context: &CallContext,
        invocation: Arc<ToolInvocation>,
    ) -> Result<ToolAnswer, WriteFailure> {
        self.bench
            .host
            .call_tool(context, &self.tool(tool), &invocation)
            .await
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolAnswer, WriteFailure> {
        self.call_of(&self.tool(tool), arguments).await
    }

    async fn call_of(&self, tool: &ToolRef, arguments: Value) -> Result<ToolAnswer, WriteFailure> {
        self.bench
            .host
            .call_tool(&context("tenant"), tool, &invocation(arguments, None))
            .await
    }

    async fn value(&self, tool: &str, arguments: Value) -> Value {
        self.value_of(&self.tool(tool), arguments).await
    }

    async fn value_of(&self, tool: &ToolRef, arguments: Value) -> Value {
        match self.call_of(tool, arguments).await {
            Ok(ToolAnswer::Complete {
                value: Some(value),
                content: None,
            }) => serde_json::from_str(&value).expect("JSON"),
            other => panic!("{}: {other:?}", tool.tool),
        }
    }

    async fn refused(&self, tool: &str, arguments: Value) -> GuestError {
        match self.call(tool, arguments).await {
            Err(WriteFailure {
                failure: AdapterFailure::Guest(error),
                handed_over: false,
            }) => error,
            other => panic!("{tool}: {other:?}"),
        }
    }
}

fn invocation(arguments: Value, resumed: Option<Value>) -> Arc<ToolInvocation> {
    let resumed = resumed.map(|resumed| resumed.to_string());
    Arc::new(ToolInvocation {
        agent: "robot".into(),
        arguments: arguments.to_string(),
        is_item: false,
        capabilities: None,
        resumed,
    })
}

/// A gateway for tests: its verdict on the next build, and what its contracts need.
struct Gate {
    says: Mutex<BuildAdmission>,
    promised: Mutex<Vec<(String, Arc<str>)>>,
    asked: Mutex<String>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            says: Mutex::new(BuildAdmission::Yes),
            promised: Mutex::default(),
            asked: Mutex::default(),
        }
    }
}

impl Gate {
    fn say(&self, word: BuildAdmission) {
        *self.says.lock() = word;
    }

    fn promise(&self, definitions: &str) {
        *self.promised.lock() = vec![("tools-js".to_owned(), definitions.into())];
    }

    /// Returns the definitions that the gate was last asked about.
    fn asked(&self) -> String {
        self.asked.lock().clone()
    }
}

impl ToolGate for Gate {
    fn admit<'a>(
        &'a self,
        plugin: &'a str,
        _build: &'a str,
        definitions: &'a ToolDefinitions,
    ) -> Admitting<'a> {
        assert_eq!(plugin, "tools-js");
        assert!(definitions.text.contains("Deploy a service"));
        *self.asked.lock() = definitions.digest.to_string();
        let word = self.says.lock().clone();
        Box::pin(async move { word })
    }

    fn promised(&self) -> Vec<(String, Arc<str>)> {
        self.promised.lock().clone()
    }
}
