//! A component whose code is loaded when its first instance is made: what no call needs takes neither time nor memory.

use std::sync::Arc;

use tokio::sync::OnceCell;

use super::ComponentCode;

pub(crate) struct DeferredCode {
    code: Arc<OnceCell<ComponentCode>>,
    load: Arc<Load>,
}

/// Waits for the disk, or for the compiler.
type Load = dyn Fn() -> Result<ComponentCode, String> + Send + Sync;

impl DeferredCode {
    pub(crate) fn new(
        load: impl Fn() -> Result<ComponentCode, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            code: Arc::default(),
            load: Arc::new(load),
        }
    }

    /// Returns the code, loaded once. A failure is not kept: the next call tries again.
    pub(crate) async fn code(&self) -> wasmtime::Result<&ComponentCode> {
        let failed = |error: tokio::task::JoinError| {
            wasmtime::Error::msg(format!("loading it failed: {error}"))
        };
        if self.code.get().is_none() {
            let (code, load) = (self.code.clone(), self.load.clone());
            // It goes on when its caller leaves: the next one would begin the same work beside it.
            let loading = tokio::spawn(async move {
                let load = || async {
                    tokio::task::spawn_blocking(move || load())
                        .await
                        .map_err(failed)?
                        .map_err(wasmtime::Error::msg)
                };
                code.get_or_try_init(load).await.map(drop)
            });
            loading.await.map_err(failed)??;
        }
        let code = self.code.get();
        code.ok_or_else(|| wasmtime::Error::msg("it was not loaded"))
    }
}
