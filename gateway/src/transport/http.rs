//! Streamable HTTP.

use std::{future::Future, sync::Arc};

use crate::Gateway;

pub async fn serve(
    _gateway: Arc<Gateway>,
    _listener: tokio::net::TcpListener,
    _shutdown: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    Ok(())
}
