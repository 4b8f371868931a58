//! How much may run. Overload answers at once instead of queueing.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{CallError, Code};

/// Calls running at once over all tools.
pub struct InFlight(Arc<Semaphore>);

/// Room for one call; given back when dropped.
pub(super) struct Slot(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

impl InFlight {
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }
}

pub(super) fn acquire(in_flight: &InFlight) -> Result<Slot, CallError> {
    match in_flight.0.clone().try_acquire_owned() {
        Ok(permit) => Ok(Slot(permit)),
        Err(_) => Err(CallError::new(Code::Overloaded, "Too many calls are running at once.").retry_after_ms(100)),
    }
}
