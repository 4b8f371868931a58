//! Says when to look at the number of the last change: at each notification, and once a second whether there was one or not.

use std::time::Duration;

use sqlx::{PgPool, postgres::PgListener};
use tokio::time::{Instant, sleep_until};

/// The channel that the database's own trigger notifies.
const CHANNEL: &str = "weir_changes";
/// The time between two looks where nothing is notified. A notification is lost where the connection is.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct ServerPace {
    pool: PgPool,
    listener: Option<PgListener>,
}

impl ServerPace {
    pub(crate) fn new(pool: PgPool) -> Self {
        Self {
            pool,
            listener: None,
        }
    }

    /// Waits for the next time to look.
    pub(crate) async fn next_look(&mut self) {
        let latest = sleep_until(Instant::now() + LOOK_INTERVAL);
        tokio::select! {
            () = latest => {}
            () = self.notified() => {}
        }
    }

    /// Waits for a notification. Whatever came between two connections is found by the look after the second.
    async fn notified(&mut self) {
        if let Some(listener) = &mut self.listener {
            match listener.try_recv().await {
                Ok(Some(_)) => {
                    while listener.next_buffered().is_some() {}
                    return;
                }
                // The connection was lost: the next look listens on another one.
                Ok(None) | Err(_) => self.listener = None,
            }
        } else if let Ok(listener) = self.listen().await {
            self.listener = Some(listener);
            return;
        }
        std::future::pending().await
    }

    /// Listens on another connection from the next look on: one that is cut in silence is never heard to end.
    pub(crate) fn forget_connection(&mut self) {
        self.listener = None;
    }

    async fn listen(&self) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        Ok(listener)
    }
}
