//! Copies of the audit trail in a bucket, while the process serves.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use tokio::time::timeout;
use weir_copies::{BucketAddress, ChainShipper, CopyBucket, CopyStatus};

use crate::{config::GatewayConfig, serving::ServingGateway};

/// Returns the bucket that the configuration names. Credentials come from the environment.
pub fn open_bucket(config: &GatewayConfig) -> anyhow::Result<Option<CopyBucket>> {
    let Some(url) = &config.audit.copies else {
        return Ok(None);
    };
    let address = BucketAddress {
        url: url.clone(),
        endpoint: config.audit.copies_endpoint.clone(),
        region: config.audit.copies_region.clone(),
    };
    weir_connections::http::install_tls();
    let bucket = CopyBucket::open(&address).context("[audit] copies")?;
    Ok(Some(bucket))
}

/// Copies the trail while the process serves.
pub(super) async fn copy_trail(gateway: Arc<ServingGateway>, bucket: CopyBucket) {
    let status = Arc::new(CopyStatus::default());
    gateway.audit().share_copies(status.clone());
    let folder = gateway.config().folders.state.join("audit");
    let audit = gateway.audit().clone();
    let shipper = ChainShipper::new(bucket, folder, status);
    shipper.run(move |copied| audit.set_copied(copied)).await;
}

/// The bound on the last copy, while the process ends.
const REST_MAX: Duration = Duration::from_secs(10);

/// Copies what was recorded since the last copy: first by this process, and then by others that use the folder.
pub(super) async fn copy_rest(gateway: &ServingGateway) {
    let config = gateway.config();
    if let Ok(Some(bucket)) = open_bucket(&config) {
        let folder = config.folders.state.join("audit");
        let mut shipper = ChainShipper::new(bucket, folder, Arc::default());
        let head = gateway.audit().head();
        let copy = async {
            if let Some(head) = head {
                shipper.copy_chain(&head.chain).await?;
            }
            shipper.round(|_| {}).await
        };
        if !matches!(timeout(REST_MAX, copy).await, Ok(Ok(()))) {
            tracing::warn!("the last records of the audit trail are not copied");
        }
    }
}
