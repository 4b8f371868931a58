//! Stores the head of each chain of the audit trail, so that the end of a chain is known even if its disk is gone.

use super::GatewayState;
use crate::{AuditHeadRow, StateError, columns::from_row, engine::sql};

from_row!(AuditHeadRow {
    chain,
    node,
    segment,
    seq,
    hash,
    written_ms
});

impl GatewayState {
    /// Writes the head of a chain, unless the stored one is further along already.
    pub async fn write_audit_head(&self, head: &AuditHeadRow) -> Result<(), StateError> {
        let write = "INSERT INTO audit_heads (chain, node, segment, seq, hash, written_ms) VALUES ($1, $2, $3, $4, $5, $6) \
                     ON CONFLICT (chain) DO UPDATE SET segment = excluded.segment, seq = excluded.seq, hash = excluded.hash, \
                     written_ms = excluded.written_ms WHERE audit_heads.seq < excluded.seq";
        sql(write)
            .bind(&head.chain)
            .bind(&head.node)
            .bind(head.segment)
            .bind(head.seq)
            .bind(&head.hash)
            .bind(head.written_ms)
            .execute(&self.engine)
            .await?;
        Ok(())
    }

    /// Returns the heads of all chains, by name and so by age.
    pub async fn audit_heads(&self) -> Result<Vec<AuditHeadRow>, StateError> {
        sql("SELECT * FROM audit_heads ORDER BY chain")
            .fetch_all(&self.engine)
            .await
    }

    /// Forgets chains that retention removed as a whole.
    pub async fn forget_audit_heads(&self, chains: &[String]) -> Result<(), StateError> {
        let mut change = self.change().await?;
        for chain in chains {
            sql("DELETE FROM audit_heads WHERE chain = $1")
                .bind(chain)
                .execute(&mut change)
                .await?;
        }
        change.commit().await
    }
}
