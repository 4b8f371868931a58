//! This process as one of the nodes that share a state.

use std::{sync::Arc, time::Duration};

use sha2::{Digest, Sha256};
use weir_contracts::contract::ArtifactFormat;
use weir_ledger::SharedLedger;
use weir_state::{GatewayState, NewNode};

use crate::{config::GatewayConfig, serving::ServingGateway};

/// The duration of a lease, minus a margin for the clocks of two machines.
const LEASE: Duration = Duration::from_millis(4_500);
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Returns what other nodes see of this process.
pub(super) fn describe(config: &GatewayConfig) -> anyhow::Result<NewNode> {
    let mut id = [0; 8];
    getrandom::fill(&mut id)?;
    let settings = serde_json::to_vec(&config.sections())?;
    let newest = serde_json::to_value(ArtifactFormat::NEWEST)?;
    let formats = (1..=newest.as_u64().unwrap_or_default()).map(|format| format.to_string());
    Ok(NewNode {
        id: hex::encode(id),
        name: machine_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        formats: formats.collect::<Vec<_>>().join(","),
        configuration: hex::encode(&Sha256::digest(settings)[..8]),
        stale_ms: i64::try_from(config.state.stale_max().as_millis())?,
    })
}

pub(super) fn machine_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Refuses agents if the database could not be reached for longer than allowed: it is then unknown which keys were revoked.
pub(super) async fn refuse_when_stale(gateway: Arc<ServingGateway>, state: Arc<GatewayState>) {
    loop {
        let longest = LEASE + gateway.config().state.stale_max();
        let is_stale = state.since_look() > longest;
        if gateway.readiness().set_stale(is_stale) != is_stale {
            match is_stale {
                true => {
                    tracing::error!(
                        "the state could not be reached for too long: agents are refused"
                    );
                }
                false => tracing::info!("the state can be reached again: agents are served"),
            }
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// The time between two checks of the number of nodes.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// Counts rates together with the other nodes, if this is configured.
pub(super) async fn share_rates(
    gateway: &Arc<ServingGateway>,
    state: &Arc<GatewayState>,
) -> anyhow::Result<()> {
    let engine = gateway.config().open_ledger()?;
    let Some(engine) = engine else {
        return Ok(());
    };
    let ledger = SharedLedger::new(engine);
    count_nodes(&ledger, state).await;
    gateway.buckets().share(ledger.clone());
    let asking = ledger.clone();
    tokio::spawn(async move { asking.run().await });
    let state = state.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(COUNT_INTERVAL).await;
            count_nodes(&ledger, &state).await;
        }
    });
    Ok(())
}

/// Sets how many nodes share the rates. If the database is unavailable, the number does not change.
async fn count_nodes(ledger: &SharedLedger, state: &GatewayState) {
    let live = match state.nodes().await {
        Ok(nodes) => Some(nodes.iter().filter(|node| node.is_live()).count()),
        Err(_) => state.nodes_of_copy(),
    };
    if let Some(live) = live {
        ledger.set_nodes(u32::try_from(live).unwrap_or(u32::MAX));
    }
}
