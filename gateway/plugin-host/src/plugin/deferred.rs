//! A component whose code is loaded when its first instance is made: code that no call needs takes neither time nor memory.

use std::sync::{Arc, OnceLock};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;

use super::ComponentCode;

pub(crate) struct DeferredCode {
    code: Arc<OnceLock<ComponentCode>>,
    load: Arc<Load>,
    /// The attempt that runs now. Calls that come in the meantime wait for it and do not begin another one.
    attempt: Arc<Mutex<Option<LoadAttempt>>>,
}

/// Waits for the disk, or for the compiler.
type Load = dyn Fn() -> Result<ComponentCode, String> + Send + Sync;

type LoadAttempt = Shared<BoxFuture<'static, Result<(), String>>>;

impl DeferredCode {
    pub(crate) fn new(
        load: impl Fn() -> Result<ComponentCode, String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            code: Arc::default(),
            load: Arc::new(load),
            attempt: Arc::default(),
        }
    }

    /// Returns the code, loaded once. A failure is not kept: the next call tries again.
    pub(crate) async fn code(&self) -> wasmtime::Result<&ComponentCode> {
        if let Some(code) = self.code.get() {
            return Ok(code);
        }
        let attempt = self.join_attempt();
        attempt.await.map_err(wasmtime::Error::msg)?;
        let code = self.code.get();
        code.ok_or_else(|| wasmtime::Error::msg("it was not loaded"))
    }

    /// Returns the running attempt, or begins one. It continues when its callers leave: the next one would begin the same
    /// work again.
    fn join_attempt(&self) -> LoadAttempt {
        let mut running = self.attempt.lock();
        if let Some(attempt) = &*running {
            return attempt.clone();
        }
        let (code, load, over) = (
            Arc::clone(&self.code),
            Arc::clone(&self.load),
            Arc::clone(&self.attempt),
        );
        let loading = tokio::task::spawn_blocking(move || {
            // A panic ends the attempt too.
            let _over = AttemptGuard(over);
            if code.get().is_none() {
                let _ = code.set(load()?);
            }
            Ok(())
        });
        let ended = loading
            .map(|ended| ended.unwrap_or_else(|error| Err(format!("loading it failed: {error}"))));
        let attempt = ended.boxed().shared();
        *running = Some(attempt.clone());
        attempt
    }
}

/// Ends the attempt when it is dropped.
struct AttemptGuard(Arc<Mutex<Option<LoadAttempt>>>);

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            atomic::{AtomicUsize, Ordering},
            mpsc,
        },
        time::Duration,
    };

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn calls_share_an_attempt_and_those_that_leave_queue_none() {
        let (go_on, wait) = mpsc::channel::<()>();
        let (attempts, wait) = (Arc::new(AtomicUsize::new(0)), Mutex::new(wait));
        let counted = Arc::clone(&attempts);
        let code = Arc::new(DeferredCode::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            let _ = wait.lock().recv();
            Err("the disk is gone".to_owned())
        }));
        let call = |code: &Arc<DeferredCode>| {
            let code = Arc::clone(code);
            tokio::spawn(async move { code.code().await.map(drop).map_err(|e| e.to_string()) })
        };
        let leaving: Vec<_> = (0..8).map(|_| call(&code)).collect();
        let staying: Vec<_> = (0..3).map(|_| call(&code)).collect();
        while attempts.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Each caller waits for it, and the table has it too.
        let waiting = || code.attempt.lock().as_ref().and_then(Shared::strong_count);
        while waiting() != Some(12) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for call in leaving {
            call.abort();
            call.await.expect_err("it has left");
        }
        go_on.send(()).expect("the attempt waits");
        for call in staying {
            let result = tokio::time::timeout(Duration::from_secs(20), call).await;
            let result = result.expect("no second attempt").expect("no panic");
            assert_eq!(result, Err("the disk is gone".to_owned()));
        }
        assert_eq!(attempts.load(Ordering::SeqCst), 1, "one for all of them");
        // A failure is not kept, and neither is that of an attempt whose callers have all left.
        for expected in [2, 3] {
            let only = call(&code);
            while attempts.load(Ordering::SeqCst) < expected {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            only.abort();
            let _ = only.await;
            go_on.send(()).expect("the attempt waits");
            while code.attempt.lock().is_some() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
