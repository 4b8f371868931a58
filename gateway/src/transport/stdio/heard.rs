//! Sends messages of a call while it runs: a client that does not read does not delay the call.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::methods::CallMessages;

/// Waits for a call, and sends its messages until then.
pub(super) async fn heard<T>(
    running: impl Future<Output = T>,
    messages: &CallMessages,
    out: &mpsc::Sender<Vec<u8>>,
    cancel: &CancellationToken,
) -> T {
    let ended = CancellationToken::new();
    let running = async {
        let answer = running.await;
        ended.cancel();
        answer
    };
    let sending = async {
        loop {
            let is_over = tokio::select! {
                biased;
                () = messages.arrived() => false,
                () = ended.cancelled() => true,
            };
            for message in messages.take() {
                if !is_sent(out, message, cancel).await {
                    return;
                }
            }
            if is_over {
                return;
            }
        }
    };
    tokio::join!(running, sending).0
}

/// Sends a message unless `cancel` comes first.
pub(super) async fn is_sent(
    out: &mpsc::Sender<Vec<u8>>,
    message: Vec<u8>,
    cancel: &CancellationToken,
) -> bool {
    tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        sent = out.send(message) => sent.is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_plugin_host::CallEvents as _;

    use super::*;
    use crate::methods::CallChannel;

    #[tokio::test]
    async fn a_call_goes_on_although_the_client_does_not_read() {
        let (channel, messages) = CallChannel::bare();
        let (out, _unread) = mpsc::channel(1);
        let (cancel, ended) = (CancellationToken::new(), CancellationToken::new());
        let running = {
            let ended = ended.clone();
            async move {
                for done in 1..10 {
                    channel.progress(f64::from(done), None, "");
                    tokio::task::yield_now().await;
                }
                ended.cancel();
            }
        };
        let call = {
            let cancel = cancel.clone();
            tokio::spawn(async move { heard(running, &messages, &out, &cancel).await })
        };
        let in_time = Duration::from_secs(30);
        tokio::time::timeout(in_time, ended.cancelled())
            .await
            .expect("it ends although what it sent waits");
        cancel.cancel();
        tokio::time::timeout(in_time, call)
            .await
            .expect("nothing waits for a call that is over")
            .unwrap();
    }
}
