//! Work that continues when the future that waits for it is dropped.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Work that runs in the future that waits for it. If it is dropped before its end, it is cancelled and continues in a separate
/// task: most work is awaited to its end, and needs no task.
pub(super) struct SpawnOnDrop<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    work: Option<Pin<Box<F>>>,
    gone: CancellationToken,
}

impl<F> SpawnOnDrop<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    /// `gone` is cancelled when the future is dropped before the end.
    pub(super) fn new(work: F, gone: CancellationToken) -> Self {
        Self {
            work: Some(Box::pin(work)),
            gone,
        }
    }
}

impl<F> Future for SpawnOnDrop<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Work that panicked has ended: it must not continue elsewhere.
        let mut work = self.work.take().expect("it is polled until its end");
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.work = Some(work);
        }
        polled
    }
}

impl<F> Drop for SpawnOnDrop<F>
where
    F: Future<Output: Send> + Send + 'static,
{
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            self.gone.cancel();
            if let Ok(runtime) = Handle::try_current() {
                runtime.spawn(work);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_that_is_left_hears_of_it_and_goes_on() {
        let gone = CancellationToken::new();
        let (done, ended) = oneshot::channel();
        let heard = gone.clone();
        let work = async move {
            heard.cancelled().await;
            tokio::task::yield_now().await;
            done.send("done").expect("the test waits");
        };
        let mut left = SpawnOnDrop::new(work, gone);
        assert!(
            Pin::new(&mut left)
                .poll(&mut Context::from_waker(std::task::Waker::noop()))
                .is_pending()
        );
        drop(left);
        assert_eq!(ended.await, Ok("done"));
        let gone = CancellationToken::new();
        assert_eq!(SpawnOnDrop::new(async { 7 }, gone.clone()).await, 7);
        assert!(!gone.is_cancelled(), "the caller is there");
    }
}
