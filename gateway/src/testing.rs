//! A gateway in this process with a few tools, whose source is not there: protocol tests ask for no more.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use weir_connections::Connections;
use weir_contracts::{Contract, compile, form};
use weir_plugin_host::{Host, HostConfig};

use crate::{
    catalogue::Catalogue,
    config::Config,
    cursor::Cursors,
    gateway::Gateway,
    identity::Identities,
    snapshot::Snapshot,
    telemetry::{Audit, Metrics},
};

/// Returns a gateway with `desk`, which has three tools, and `depot`, which has one. Pages have two entries; everything
/// else is as configured by default.
pub(crate) fn gateway(change: impl FnOnce(&mut Config)) -> Arc<Gateway> {
    let mut config = Config::bare(Path::new("/nonexistent"));
    config.http.page_size = 2;
    change(&mut config);
    let host = HostConfig {
        plugins: "/nonexistent/plugins".into(),
        built_in: &[],
        cache: std::env::temp_dir().join("weir-protocol-tests"),
        plugin: BTreeMap::new(),
        builds: None,
        accepted: None,
        indexes: None,
        libraries: None,
        instances_max: 4,
        parked_bytes_max: 1 << 20,
    };
    let connections = Connections::new(&BTreeMap::new(), Path::new("/")).expect("no connections");
    let host = Host::new(host, Arc::new(connections)).expect("a host without plugins");
    let cursors = Cursors::ephemeral().expect("random numbers");
    let metrics = Metrics::new(config.metrics.tools_max, None);
    let gateway =
        Gateway::new(config, Arc::new(host), Arc::default(), cursors, Identities::open(), Audit::none(), metrics);
    let gateway = Arc::new(gateway);
    publish(&gateway, &[("desk", &["find_ticket", "get_ticket", "show_ticket"]), ("depot", &["find_part"])]);
    gateway
}

/// Swaps in other contracts.
pub(crate) fn publish(gateway: &Gateway, contracts: &[(&str, &[&str])]) {
    let old = gateway.snapshot();
    let contracts: Vec<Arc<Contract>> = contracts.iter().map(|(name, tools)| Arc::new(contract(name, tools))).collect();
    gateway.publish(Snapshot {
        generation: old.generation + 1,
        listing_generation: old.listing_generation + 1,
        catalogue: Catalogue::new(&contracts, &gateway.config().views, Some(&old.catalogue)),
        contracts,
    });
}

fn contract(name: &str, tools: &[&str]) -> Contract {
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
    compile::compile(&source, &[("records".to_owned(), shape)].into()).expect("a contract that compiles")
}
