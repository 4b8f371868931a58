//! The stages of one call, each alone: `cargo bench -p weir-bench`. The whole path is the first of them.

#[path = "../src/bin/bench-weir/noop.rs"]
mod noop;

use std::{
    collections::BTreeMap,
    env, fs,
    hint::black_box,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use weir::{
    app::{App, Setup},
    call::{CallRequest, Endpoint, call_tool},
    catalogue::Catalogue,
    config::Config,
    identity::{Access, Caller},
    snapshot::Snapshot,
    telemetry::metrics::{Ended, Marks},
    wire::{Body, Id, Message, ResultWriter},
};
use weir_audit::{About, Call, Event, Outcome, Settings, Trail};
use weir_bench::ticket;
use weir_connections::Connections;
use weir_contracts::{Contract, Shape, compile, form, output::RecordChecker};
use weir_plugin_host::{
    CallContext, CollectionRef, Condition, Host, HostConfig, Isolation, PluginConfig, Query, native,
};
use weir_schema::validate::ArgumentValidator;

const ARGUMENTS: &str = r#"{"ticket_id":"T-1001"}"#;
const COLUMNS: [&str; 7] = [
    "ticket_id",
    "title",
    "status",
    "priority",
    "assignee",
    "tags",
    "description",
];

fn request() -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": ticket::TOOL,
        "arguments": { "ticket_id": ticket::ID },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "weir-bench", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    } })
}

fn contract() -> Contract {
    let source = json!({
        "contract": "support",
        "collections": { "tickets": { "adapter": "noop", "settings": {}, "key": ["ticket_id"], "columns": COLUMNS } },
        "tools": [ticket::tool(ticket::TOOL)],
    });
    let source = form::read("bench", &source.to_string()).expect("a readable contract");
    let shape = Shape::read(ticket::SHAPE).expect("a shape");
    compile::compile(&source, &[("tickets".to_owned(), shape)].into())
        .expect("a contract that compiles")
}

fn host(plugins: PathBuf, plugin: BTreeMap<String, PluginConfig>) -> Host {
    let cache = env::temp_dir().join("weir-bench-stages");
    let config = HostConfig {
        plugins,
        built_in: &[],
        cache,
        plugin,
        state: None,
        holds_builds: false,
        indexes: None,
        libraries: None,
        instances_max: 16,
        parked_bytes_max: 64 << 20,
    };
    let connections = Connections::new(&BTreeMap::new(), Path::new("/")).expect("no connections");
    Host::new(config, Arc::new(connections)).expect("a host")
}

/// Opens the program in this process, with its state and audit trail in `folder`.
async fn open(folder: &Path) -> App {
    native::install(noop::adapter());
    let setup = Setup {
        process: Some("bench"),
        ..Setup::default()
    };
    let app = App::open(Config::bare(folder), setup)
        .await
        .expect("a program without plugins");
    let contracts = vec![Arc::new(contract())];
    let catalogue = Catalogue::new(&contracts, &BTreeMap::new(), None);
    app.gateway.swap_snapshot(Snapshot {
        generation: 1,
        listing_generation: 1,
        catalogue,
        contracts,
    });
    app
}

fn call_request<'a>(snapshot: &'a Snapshot, cancel: &'a CancellationToken) -> CallRequest<'a> {
    CallRequest {
        arguments: Some(ARGUMENTS),
        protocol: "2026-07-28",
        ..CallRequest::new(snapshot, &Endpoint::All, ticket::TOOL, "http", cancel)
    }
}

fn path(criterion: &mut Criterion) {
    let folder = TempDir::new().expect("a folder");
    let runtime = Runtime::new().expect("a runtime");
    let _inside = runtime.enter();
    let app = runtime.block_on(open(folder.path()));
    let (gateway, caller) = (&app.gateway, Caller::local());
    let snapshot = gateway.snapshot();
    criterion.bench_function("call, whole", |bencher| {
        bencher.iter(|| {
            let cancel = CancellationToken::new();
            drop(black_box(runtime.block_on(call_tool(
                gateway,
                &caller,
                &call_request(&snapshot, &cancel),
            ))));
        });
    });
    criterion.bench_function("lookup", |bencher| {
        bencher.iter(|| {
            black_box(snapshot.catalogue.tool(
                &Endpoint::All,
                black_box(ticket::TOOL),
                &Access::EVERYTHING,
            ))
            .is_some()
        });
    });
    let tool = snapshot.catalogue.tools().next().expect("a tool");
    let agent: Arc<str> = "local".into();
    criterion.bench_function("metrics", |bencher| {
        bencher.iter(|| {
            let now = Instant::now();
            let marks = Marks {
                found: Some(now),
                bound: Some(now),
                asked: Some(now),
                answered: Some(now),
            };
            let (outcome, tool, opened, closed) = (Outcome::Ok, Some(&tool.meter), now, now);
            let (unknown_tool, failed, invalid, code) = (false, false, None, None);
            let finds = None;
            let ended = Ended {
                call_id: "01980f3e-0000-7000-8000-000000000000",
                name: Some("airports"),
                tool,
                finds,
                agent: &agent,
                unknown_tool,
                failed,
                invalid,
                code,
                outcome,
                opened,
                marks,
                closed,
            };
            black_box(gateway.metrics().call(&ended))
        });
    });
}

fn envelope(criterion: &mut Criterion) {
    let text = request().to_string();
    criterion.bench_function("envelope parse", |bencher| {
        bencher.iter(|| {
            let Ok(Body::One(Message::Request { params, .. })) =
                Body::read(black_box(text.as_bytes()))
            else {
                unreachable!("a request")
            };
            black_box(
                params
                    .read()
                    .expect("an object")
                    .meta
                    .protocol_version
                    .is_some(),
            )
        });
    });
    let id = serde_json::value::RawValue::from_string("7".to_owned()).expect("JSON");
    let (id, record) = (Id::read(&id).expect("an id"), ticket::record(ticket::ID));
    criterion.bench_function("splice", |bencher| {
        bencher.iter(|| {
            let mut answer = ResultWriter::new(&id, record.len() * 2 + 384);
            answer.string("text", black_box(&record));
            answer.json("structuredContent", black_box(&record));
            black_box(answer.finish())
        });
    });
}

fn gates(criterion: &mut Criterion) {
    let contract = contract();
    let validator =
        ArgumentValidator::new(&contract.tools[0].input_schema.value()).expect("a schema");
    criterion.bench_function("validate, accepted", |bencher| {
        bencher.iter(|| black_box(validator.validate(black_box(ARGUMENTS)).is_ok()));
    });
    let wrong = r#"{"ticket_id":"1001","status":"done"}"#;
    criterion.bench_function("validate, refused", |bencher| {
        bencher.iter(|| black_box(validator.validate(black_box(wrong)).is_err()));
    });
    let shape = Shape::read(ticket::SHAPE).expect("a shape");
    let checker = RecordChecker::new(&shape, &COLUMNS.map(str::to_owned));
    let records = format!("[{}]", ticket::record(ticket::ID));
    criterion.bench_function("output check", |bencher| {
        bencher.iter(|| black_box(checker.records(black_box(&records)).is_ok()));
    });
}

fn audit(criterion: &mut Criterion) {
    let folder = TempDir::new().expect("a folder");
    let settings = Settings {
        process: "bench".into(),
        ..Settings::default()
    };
    let trail = Trail::open(folder.path(), settings).expect("a trail");
    let digest = "9f".repeat(32);
    let about = About {
        call_id: "c_0123456789abcdef",
        agent: "bench",
        tenant: "bench",
        holder: None,
        tool: Some(ticket::TOOL),
        contract: Some("support@1.0.0"),
        arguments_digest: Some(&digest),
        clear: None,
        trace: None,
        transport: "http",
        protocol: Some("2026-07-28"),
        upstream: None,
        item: None,
        plugin: Some(&digest),
    };
    criterion.bench_function("audit append", |bencher| {
        bencher.iter(|| {
            let call = Call {
                about: about.clone(),
                outcome: Outcome::Ok,
                code: None,
                ms: 0.042,
            };
            black_box(trail.append(&Event::Call(call)).is_ok())
        });
    });
}

/// Measures calls of the guest that `cargo xtask plugins --guests` has built; without it these two are left out.
fn dispatch(criterion: &mut Criterion) {
    let Some(cache) = env::var_os("WEIR_CACHE") else {
        return eprintln!("dispatch is left out: WEIR_CACHE does not say where the guests are");
    };
    let guest = Path::new(&cache).join("test-guests/ticket.wasm");
    let folder = TempDir::new().expect("a folder");
    if let Err(error) = fs::copy(&guest, folder.path().join("ticket.wasm")) {
        return eprintln!("dispatch is left out: {}: {error}", guest.display());
    }
    let runtime = Runtime::new().expect("a runtime");
    for (name, isolation) in [
        ("dispatch, wasm reused", Isolation::Tenant),
        ("dispatch, wasm fresh", Isolation::Call),
    ] {
        let config = PluginConfig {
            isolation: Some(isolation),
            ..PluginConfig::default()
        };
        let host = host(
            folder.path().to_owned(),
            [("ticket".to_owned(), config)].into(),
        );
        runtime.block_on(host.load_all());
        let shape = runtime
            .block_on(host.describe("ticket", "{}"))
            .expect("a shape");
        let collection = CollectionRef {
            key: "bench".into(),
            adapter: "ticket".into(),
            settings: "{}".into(),
            shape: shape.into(),
        };
        let condition = Condition {
            column: "ticket_id".to_owned(),
            comparison: "equals".to_owned(),
            value: json!(ticket::ID).to_string(),
        };
        let query = Arc::new(Query {
            conditions: vec![condition],
            order: Default::default(),
            columns: COLUMNS.map(str::to_owned).into(),
            limit: 2,
            cursor: None,
            options: None,
        });
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| {
                let context = CallContext {
                    tenant: "bench".into(),
                    call_id: "c_0123456789abcdef".into(),
                    deadline: Instant::now() + Duration::from_secs(10),
                    cancel: Default::default(),
                    events: None,
                    ran_on: Arc::default(),
                };
                black_box(
                    runtime
                        .block_on(host.read(&context, &collection, &query))
                        .is_ok(),
                )
            });
        });
    }
}

criterion_group!(stages, path, envelope, gates, audit, dispatch);
criterion_main!(stages);
