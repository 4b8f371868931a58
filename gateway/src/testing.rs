//! A gateway in this process with a few tools and no source, which is enough for protocol tests.

use std::{ops::Deref, sync::Arc};

use serde_json::Value;
use tempfile::TempDir;
use weir_contracts::{
    CompiledContract, compile, form,
    offer::{self, ServerLists},
    upstream::{self, ResourceMode, UpstreamOptions},
};
use weir_state::KeyRow;

use crate::{
    app::{AppOptions, GatewayApp},
    catalogue::ToolCatalogue,
    config::GatewayConfig,
    identity::{MintedSecret, SecretKind, now_ms},
    serving::ServingGateway,
    snapshot::CatalogueSnapshot,
};

/// The program without a process: nothing is recorded, unless the test requests it.
pub(crate) struct GatewayFixture {
    app: GatewayApp,
    /// The folder of its state, which is removed with it.
    _folder: TempDir,
}

impl Deref for GatewayFixture {
    type Target = Arc<ServingGateway>;

    fn deref(&self) -> &Arc<ServingGateway> {
        &self.app.gateway
    }
}

impl GatewayFixture {
    /// Makes a key for an agent, which may use everything, as often as `rate` says.
    pub(crate) async fn key(&self, agent: &str, rate: &str) -> String {
        let minted = MintedSecret::new(SecretKind::Agent).expect("randomness");
        let row = KeyRow {
            id: minted.id,
            secret_hash: minted.hash.to_vec(),
            agent: agent.to_owned(),
            tenant: "tenant".to_owned(),
            access: None,
            view: None,
            limits: Some(serde_json::json!({ "rate": rate }).to_string()),
            created_ms: now_ms(),
            created_by: "a test".to_owned(),
            expires_ms: None,
            revoked_ms: None,
            change: 0,
        };
        self.app.state.add_key(&row).await.expect("it is kept");
        self.identities()
            .take_over(&self.app.state)
            .await
            .expect("it is known");
        minted.text
    }
}

/// Returns a gateway with `desk`, which has three tools, and `depot`, which has one. Pages have two entries; everything
/// else is as configured by default.
pub(crate) async fn gateway(change: impl FnOnce(&mut GatewayConfig)) -> GatewayFixture {
    opened(change, AppOptions::default()).await
}

/// Returns the same gateway with an audit trail.
pub(crate) async fn recording_gateway(change: impl FnOnce(&mut GatewayConfig)) -> GatewayFixture {
    opened(
        change,
        AppOptions {
            process: Some("test"),
            ..AppOptions::default()
        },
    )
    .await
}

async fn opened(change: impl FnOnce(&mut GatewayConfig), setup: AppOptions<'_>) -> GatewayFixture {
    let folder = TempDir::new().expect("a temporary folder");
    let mut config = GatewayConfig::bare(folder.path());
    config.http.page_size = 2;
    config.log.filter = Some("off".to_owned());
    config.folders.cache = Some(folder.path().join("compiled"));
    change(&mut config);
    let app = GatewayApp::open(config, setup)
        .await
        .expect("a program without plugins");
    publish(
        &app.gateway,
        &[
            ("desk", &["find_ticket", "get_ticket", "show_ticket"]),
            ("depot", &["find_part"]),
        ],
    );
    GatewayFixture {
        app,
        _folder: folder,
    }
}

/// Swaps in other contracts.
pub(crate) fn publish(gateway: &ServingGateway, contracts: &[(&str, &[&str])]) {
    swap_in(
        gateway,
        contracts
            .iter()
            .map(|(name, tools)| Arc::new(contract(name, tools)))
            .collect(),
    );
}

/// Swaps in the contract `up` of another server, which does not run. `lists`: `{tools?, resources?, …}`.
pub(crate) fn publish_offer(gateway: &ServingGateway, lists: &Value, resources: ResourceMode) {
    let (lists, _) = ServerLists::read("lists", &lists.to_string()).expect("lists");
    let document = offer::compose("lists", &lists).document.pinned();
    let upstream = UpstreamOptions {
        name: "up",
        contract: "up",
        resources,
        ..UpstreamOptions::default()
    };
    let compiled = upstream::compile(&upstream, &document).expect("a contract that compiles");
    swap_in(gateway, vec![Arc::new(compiled.contract)]);
}

fn swap_in(gateway: &ServingGateway, contracts: Vec<Arc<CompiledContract>>) {
    let old = gateway.snapshot();
    gateway.swap_snapshot(CatalogueSnapshot {
        generation: old.generation + 1,
        listing_generation: old.listing_generation + 1,
        catalogue: ToolCatalogue::new(&contracts, &gateway.config().views, Some(&old.catalogue)),
        contracts,
    });
}

fn contract(name: &str, tools: &[&str]) -> CompiledContract {
    let tools: Vec<_> = tools
        .iter()
        .map(|tool| {
            serde_json::json!({
                "tool": tool,
                "description": "Returns the record of that id.",
                "verb": "lookup",
                "collection": "records",
                "fields": [{ "name": "id", "type": "text", "required": true, "help": "Its id." }],
            })
        })
        .collect();
    let source = serde_json::json!({
        "contract": name,
        "title": "The title",
        "collections": { "records": { "adapter": "absent", "settings": {} } },
        "tools": tools,
    });
    let shape = serde_json::json!({
        "name": "records",
        "fields": [{ "key": "id", "type": "string" }, { "key": "name", "type": "string" }],
        "key": ["id"],
    });
    let source = form::read("test", &source.to_string()).expect("a readable contract");
    let shape = serde_json::from_value(shape).expect("a shape");
    compile::compile(&source, &[("records".to_owned(), shape)].into())
        .expect("a contract that compiles")
}
