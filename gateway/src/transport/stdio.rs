//! Newline-delimited messages.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::Gateway;

pub async fn serve(
    _gateway: Arc<Gateway>,
    _input: impl AsyncRead + Unpin + Send,
    _output: impl AsyncWrite + Unpin + Send + 'static,
) -> anyhow::Result<()> {
    Ok(())
}
