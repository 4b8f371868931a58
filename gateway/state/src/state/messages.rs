//! Short messages between the nodes that share a state in PostgreSQL. They are kept for seconds, and may be lost with the
//! database: a request that needs an answer waits for a bounded time.

use super::{GatewayState, nodes::now_ms};
use crate::{MessageRow, NewMessage, StateError, columns::from_row, engine::sql};

/// The time for which a message is kept that was not read.
const KEPT_MS: i64 = 30_000;
/// Messages for all that are read at once.
const PAGE: u32 = 1024;
pub(super) const MESSAGES_PAGE: usize = PAGE as usize;

from_row!(MessageRow {
    number,
    sender,
    content
});

impl GatewayState {
    /// Writes messages in one transaction, and forgets those that are too old. A fail-over may lose them: no commit waits for
    /// the disk.
    pub async fn send_messages(
        &self,
        sender: &str,
        messages: &[NewMessage],
    ) -> Result<(), StateError> {
        if !self.is_shared() {
            return Ok(());
        }
        let mut change = self.engine.begin_counts().await?;
        sql("SET LOCAL synchronous_commit TO off")
            .execute(&mut change)
            .await?;
        let count = i64::try_from(messages.len()).unwrap_or(i64::MAX);
        let last: i64 = sql("UPDATE message_numbers SET n = n + $1 RETURNING n")
            .bind(count)
            .fetch_value(&mut change)
            .await?;
        let insert = concat!(
            "INSERT INTO messages (number, sender, recipient, content, sent_ms) VALUES ($1, $2, $3, $4, ",
            now_ms!(),
            ")"
        );
        for (number, message) in (last - count + 1..).zip(messages) {
            sql(insert)
                .bind(number)
                .bind(sender)
                .bind(&message.recipient)
                .bind(&message.content)
                .execute(&mut change)
                .await?;
        }
        let forget = concat!("DELETE FROM messages WHERE sent_ms < ", now_ms!(), " - $1");
        sql(forget).bind(KEPT_MS).execute(&mut change).await?;
        change.commit().await
    }

    /// Returns the messages for all nodes after a number, in order and including this node's own, and removes those addressed
    /// only to this node.
    pub async fn take_messages(
        &self,
        node: &str,
        after: i64,
    ) -> Result<Vec<MessageRow>, StateError> {
        let for_all = "SELECT number, sender, content FROM messages WHERE recipient IS NULL AND number > $1 ORDER BY number LIMIT $2";
        let mut messages: Vec<MessageRow> = sql(for_all)
            .bind(after)
            .bind(PAGE)
            .fetch_all(&self.engine)
            .await?;
        let mut change = self.engine.begin_counts().await?;
        sql("SET LOCAL synchronous_commit TO off")
            .execute(&mut change)
            .await?;
        let own = "DELETE FROM messages WHERE recipient = $1 RETURNING number, sender, content";
        let own: Vec<MessageRow> = sql(own).bind(node).fetch_all(&mut change).await?;
        change.commit().await?;
        // Their numbers may be beyond those of messages for all that were not read yet.
        let own = own.into_iter();
        messages.extend(own.map(|own| MessageRow {
            number: after,
            ..own
        }));
        Ok(messages)
    }
}
