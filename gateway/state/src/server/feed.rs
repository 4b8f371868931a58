//! Signals when to look at the number of the last change: at each notification, and once a second regardless.

use std::{sync::Arc, time::Duration};

use sqlx::{PgPool, postgres::PgListener};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::ServerAddress;

/// The channel that the database's own trigger notifies.
const CHANNEL: &str = "weir_changes";
/// The channel for messages between nodes and for notes of clients' sessions.
const MESSAGES: &str = "weir_messages";
/// The time between two looks without a notification. A notification is lost if the connection is.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) struct ServerPace {
    pool: PgPool,
    address: Option<ServerAddress>,
    listener: Option<PgListener>,
    /// Wakes what looks for messages.
    nudge: Arc<Notify>,
}

impl ServerPace {
    pub(crate) fn new(pool: PgPool, address: Option<ServerAddress>, nudge: Arc<Notify>) -> Self {
        Self {
            pool,
            address,
            listener: None,
            nudge,
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

    /// Waits for a notification of a change. Whatever came between two connections is found by the look after the second.
    async fn notified(&mut self) {
        if let Some(listener) = &mut self.listener {
            while let Ok(Some(first)) = listener.try_recv().await {
                let mut is_change = false;
                let mut next = Some(first);
                while let Some(notified) = next {
                    match notified.channel() {
                        MESSAGES => self.nudge.notify_one(),
                        _ => is_change = true,
                    }
                    next = listener.next_buffered();
                }
                if is_change {
                    return;
                }
            }
            // The connection was lost: the next look listens on another one.
            self.listener = None;
        } else if let Ok(listener) = self.listen().await {
            self.listener = Some(listener);
            return;
        }
        std::future::pending().await
    }

    /// Listens on another connection from the next look on: the end of a connection that is cut silently is never
    /// noticed. If there are several servers, another one may be the primary by now.
    pub(crate) async fn recover(&mut self) {
        self.listener = None;
        if let Some(address) = &self.address
            && address.servers().len() > 1
            && let Ok(primary) = super::find_primary(address).await
        {
            self.pool.set_connect_options(primary);
        }
    }

    async fn listen(&self) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.eager_reconnect(false);
        listener.listen_all([CHANNEL, MESSAGES]).await?;
        Ok(listener)
    }
}
