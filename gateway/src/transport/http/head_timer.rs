//! The time that the head of a request may take. hyper sets a timer anew for each request and drops it when the head is
//! there: here they are all one timer of the runtime, which is moved only when it rings.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};

type Clock = Arc<Mutex<Pin<Box<tokio::time::Sleep>>>>;

/// The timer of one connection, whose waits follow one another and end no earlier than the one before.
pub(super) struct HeadTimer {
    clock: Clock,
}

struct Until {
    deadline: Instant,
    clock: Clock,
}

impl HeadTimer {
    /// Creates a timer. The first wait lasts no shorter than `first`.
    pub(super) fn new(first: Duration) -> Self {
        Self {
            clock: Arc::new(Mutex::new(Box::pin(tokio::time::sleep(first)))),
        }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Until {
            deadline,
            clock: self.clock.clone(),
        })
    }
}

impl Future for Until {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = self.deadline.into();
        loop {
            ready!(clock.as_mut().poll(context));
            if clock.deadline() >= deadline {
                return Poll::Ready(());
            }
            // The clock rang for an earlier request.
            clock.as_mut().reset(deadline);
        }
    }
}

impl Sleep for Until {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each wait lasts as long as it was asked for, whatever was waited for before.
    #[tokio::test]
    async fn one_clock_serves_one_wait_after_another() {
        let short = Duration::from_millis(20);
        let timer = HeadTimer::new(short);
        let mut answered = timer.sleep(short);
        assert!(futures::poll!(answered.as_mut()).is_pending());
        drop(answered);
        for wait in [short * 3, short] {
            let began = Instant::now();
            timer.sleep(wait).await;
            assert!(began.elapsed() >= wait);
        }
    }
}
