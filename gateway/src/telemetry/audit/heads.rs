//! The head of this process's chain in a state that machines share: if the disk is lost, it is still known which records existed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::Mutex,
    time::{Instant, interval, timeout},
};
use weir_audit::{AuditReceipt, ChainHead, Timestamp};
use weir_state::{AuditHeadRow, GatewayState, StateError};

use super::{AuditRecorder, AuditUnavailable};

/// The time after which a moved head is in the state.
const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// The time after which the heads of other chains are read again, for the next segment.
const READ_INTERVAL: Duration = Duration::from_secs(30);
/// The time limit for a statement; with `replicate = "writes"`, a call waits for it.
const STATEMENT_MAX: Duration = Duration::from_secs(2);

pub(super) struct SharedHeads {
    state: Arc<GatewayState>,
    /// The name of this machine.
    node: String,
    /// Whether the record of a write must be in the state before it runs.
    replicates: bool,
    /// The last record in the state. It is locked while one is written, so that one statement serves all waiting calls.
    written: Mutex<u64>,
    is_failing: AtomicBool,
}

impl SharedHeads {
    pub(super) fn new(state: Arc<GatewayState>, node: String, replicates: bool) -> Self {
        Self {
            state,
            node,
            replicates,
            written: Mutex::new(0),
            is_failing: AtomicBool::new(false),
        }
    }

    /// Writes the head to the state, unless the state already has record `seq`.
    async fn write_up_to(&self, audit: &AuditRecorder, seq: u64) -> Result<(), AuditUnavailable> {
        let Ok(mut written) = timeout(STATEMENT_MAX, self.written.lock()).await else {
            return Err(AuditUnavailable);
        };
        if *written >= seq {
            return Ok(());
        }
        let Some(head) = audit.head() else {
            return Ok(());
        };
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let row = AuditHeadRow {
            chain: head.chain.to_string(),
            node: self.node.clone(),
            segment: i64::from(head.segment),
            seq: number(head.seq),
            hash: head.hash.to_string(),
            written_ms: Timestamp::now().as_millisecond(),
        };
        self.within(self.state.write_audit_head(&row)).await?;
        *written = head.seq;
        Ok(())
    }

    /// Bounds the time of a statement, and logs the first failure and the end of failures.
    async fn within<T>(
        &self,
        statement: impl Future<Output = Result<T, StateError>>,
    ) -> Result<T, AuditUnavailable> {
        let done = match timeout(STATEMENT_MAX, statement).await {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(_) => Err("the database does not answer".to_owned()),
        };
        match done {
            Ok(value) => {
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("the head of the audit trail is written to the state again");
                }
                Ok(value)
            }
            Err(error) => {
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    tracing::error!(%error, "the head of the audit trail cannot be written to the state");
                }
                Err(AuditUnavailable)
            }
        }
    }
}

impl AuditRecorder {
    /// Shares the head of the chain through a state that other machines use too.
    pub fn share_heads(&self, state: Arc<GatewayState>, node: String, replicates: bool) {
        // It is set once, when the process starts.
        let _ = self.shared.set(SharedHeads::new(state, node, replicates));
    }

    /// Waits until the state has the last record, if `replicate = "writes"` requires it.
    pub async fn replicate(&self) -> Result<(), AuditUnavailable> {
        let Some(shared) = self.shared.get().filter(|shared| shared.replicates) else {
            return Ok(());
        };
        let seq = self.head().map_or(0, |head| head.seq);
        shared.write_up_to(self, seq).await
    }

    /// Writes the head now, for example before the end of the process.
    pub async fn write_head(&self) {
        if let (Some(shared), Some(head)) = (self.shared.get(), self.head()) {
            // A failure is logged where it happens.
            let _ = shared.write_up_to(self, head.seq).await;
        }
    }

    /// Writes the head to the state each second if it moved, and reads those of other machines.
    pub async fn keep_heads(&self) {
        let Some(shared) = self.shared.get() else {
            return;
        };
        let mut ticks = interval(WRITE_INTERVAL);
        let mut read_at = Instant::now();
        let mut removed: Vec<String> = Vec::new();
        loop {
            ticks.tick().await;
            self.write_head().await;
            let gone = self.trail().map(|trail| trail.take_removed_chains());
            removed.extend(gone.unwrap_or_default().iter().map(ToString::to_string));
            if !removed.is_empty() {
                let forgotten = shared.within(shared.state.forget_audit_heads(&removed));
                if forgotten.await.is_ok() {
                    removed.clear();
                }
            }
            if read_at <= Instant::now()
                && let Ok(rows) = shared.within(shared.state.audit_heads()).await
            {
                read_at = Instant::now() + READ_INTERVAL;
                if let Some(trail) = self.trail() {
                    trail.set_heads_elsewhere(read_heads(rows).map(receipt).collect());
                }
            }
        }
    }
}

fn receipt(head: ChainHead) -> AuditReceipt {
    AuditReceipt {
        chain: head.chain,
        seq: head.seq,
        hash: head.hash,
    }
}

/// Reads rows as heads, without those that no trail wrote.
pub fn read_heads(rows: Vec<AuditHeadRow>) -> impl Iterator<Item = ChainHead> {
    rows.into_iter().filter_map(|row| {
        Some(ChainHead {
            chain: row.chain.parse().ok()?,
            node: row.node,
            segment: row.segment.try_into().ok()?,
            seq: row.seq.try_into().ok()?,
            hash: row.hash.parse().ok()?,
        })
    })
}

/// Returns the heads of all chains of a state, for the opening of a new one.
pub async fn heads_of_others(state: &GatewayState) -> Result<Vec<AuditReceipt>, StateError> {
    let rows = state.audit_heads().await?;
    Ok(read_heads(rows).map(receipt).collect())
}
