//! How much may run. Overload answers at once instead of queueing.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{CallError, Code};

/// What a semaphore holds on every platform.
const MOST: u32 = 1 << 28;

/// Calls running at once over all tools.
pub struct InFlight {
    room: Arc<Semaphore>,
    most: u32,
}

/// Room for one call; given back when dropped.
pub(super) struct Slot(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl InFlight {
    pub fn new(most: usize) -> Self {
        let most = u32::try_from(most).unwrap_or(u32::MAX).min(MOST);
        Self { room: Arc::new(Semaphore::new(most as usize)), most }
    }

    /// Returns when no call runs any more: not even a write whose caller has gone. For the end of the process, when no
    /// new ones come in.
    pub async fn drained(&self) {
        let _ = self.room.acquire_many(self.most).await;
    }
}

pub(super) fn acquire(in_flight: &InFlight) -> Result<Slot, CallError> {
    match in_flight.room.clone().try_acquire_owned() {
        Ok(permit) => Ok(Slot(permit)),
        Err(_) => Err(CallError::new(Code::Overloaded, "Too many calls are running at once.").retry_after_ms(100)),
    }
}
