//! Calls in separate tasks: they keep running, and end at their deadline, even if no client reads their messages.

use std::future::Future;

use futures::{FutureExt as _, future::BoxFuture};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::connections::{self, ClientConnection};

/// Starts work in a separate task, and returns a future of its result; `None` if it panicked. `cancel` is cancelled if that
/// future is dropped before the end, since no one awaits it any more.
pub(super) fn started<T: Send + 'static>(
    tasks: &TaskTracker,
    cancel: CancellationToken,
    work: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, Option<T>> {
    let gone = cancel.drop_guard();
    let ended = unattended(tasks, work);
    let end = async move {
        let ended = ended.await;
        gone.disarm();
        ended
    };
    end.boxed()
}

/// Starts work whose result is kept, and returns a future of it: a caller that leaves does not cancel it, since it may ask again.
pub(super) fn unattended<T: Send + 'static>(
    tasks: &TaskTracker,
    work: impl Future<Output = T> + Send + 'static,
) -> BoxFuture<'static, Option<T>> {
    let task = tasks.spawn(connections::within(ClientConnection::current(), work));
    task.map(Result::ok).boxed()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use weir_plugin_host::CallEvents as _;

    use super::*;
    use crate::{
        methods::{CallChannel, McpAnswer},
        transport::http::reply,
    };

    #[tokio::test]
    async fn a_call_goes_on_though_nobody_reads_what_it_says() {
        let (tasks, cancel) = (TaskTracker::new(), CancellationToken::new());
        let (channel, messages) = CallChannel::bare();
        let ((answer, answered), (tell, ended)) = (oneshot::channel(), oneshot::channel());
        let work = async move {
            channel.progress(1.0, None, "");
            answered.await.expect("the test answers");
            channel.progress(2.0, None, "");
            tell.send(()).expect("the test waits");
            Some(McpAnswer::from(b"{}".to_vec()))
        };
        let running = started(&tasks, cancel.clone(), work).map(Option::flatten);
        let unread = reply::after_messages(running.boxed(), messages).await;
        answer.send(()).expect("the call waits");
        let ended = tokio::time::timeout(Duration::from_secs(30), ended).await;
        ended
            .expect("it ends although its stream is not read")
            .expect("it ends well");
        assert!(!cancel.is_cancelled(), "its client is there still");
        drop(unread);
        assert!(cancel.is_cancelled());
    }

    #[tokio::test]
    async fn a_call_that_is_left_is_cancelled_and_one_that_was_answered_is_not() {
        let (tasks, cancel) = (TaskTracker::new(), CancellationToken::new());
        assert_eq!(started(&tasks, cancel.clone(), async { 7 }).await, Some(7));
        assert!(!cancel.is_cancelled());
        let heard = cancel.clone();
        drop(started(&tasks, cancel.clone(), async move {
            heard.cancelled().await
        }));
        tasks.close();
        tokio::time::timeout(Duration::from_secs(30), tasks.wait())
            .await
            .expect("it hears that it is left");
    }
}
