//! A component whose code is loaded when its first instance is made: what no call needs takes neither time nor memory.

use tokio::sync::OnceCell;

use super::ComponentCode;

pub(crate) struct DeferredCode {
    code: OnceCell<ComponentCode>,
    load: std::sync::Arc<Load>,
}

/// Waits for the disk, or for the compiler.
type Load = dyn Fn() -> Result<ComponentCode, String> + Send + Sync;

impl DeferredCode {
    pub(crate) fn new(
        load: impl Fn() -> Result<ComponentCode, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            code: OnceCell::new(),
            load: std::sync::Arc::new(load),
        }
    }

    /// Returns the code, loaded once. A failure is not kept: the next call tries again.
    pub(crate) async fn code(&self) -> wasmtime::Result<&ComponentCode> {
        let load = || async {
            let load = self.load.clone();
            tokio::task::spawn_blocking(move || load())
                .await
                .map_err(|error| wasmtime::Error::msg(format!("loading it failed: {error}")))?
                .map_err(wasmtime::Error::msg)
        };
        self.code.get_or_try_init(load).await
    }
}
