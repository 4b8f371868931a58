//! The time that the head of a request may take. hyper sets a timer anew for each request and drops it when the head is
//! there: here they are all one timer of the runtime, which is moved only when it rings.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

use super::connections::seats::ConnectionSeat;

type Clock = Arc<Mutex<Pin<Box<tokio::time::Sleep>>>>;

/// The timer of one connection, whose waits follow one another. It knows when the connection waits for a head.
pub(super) struct HeadTimer {
    seat: Arc<ConnectionSeat>,
    clock: Clock,
    /// The end of the first wait, until that has begun.
    first: Mutex<Option<Instant>>,
}

struct HeadDeadline {
    deadline: Instant,
    clock: Clock,
    seat: Arc<ConnectionSeat>,
}

impl HeadTimer {
    /// Creates a timer. The first wait lasts no longer than `first`, and no later one is shorter.
    pub(super) fn new(seat: Arc<ConnectionSeat>, first: Duration) -> Self {
        Self {
            seat,
            clock: Arc::new(Mutex::new(Box::pin(tokio::time::sleep(first)))),
            first: Mutex::new(Some(Instant::now() + first)),
        }
    }
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let first = self.first.lock().take();
        self.seat.set_waiting(true);
        Box::pin(HeadDeadline {
            deadline: first.map_or(deadline, |first| first.min(deadline)),
            clock: self.clock.clone(),
            seat: self.seat.clone(),
        })
    }
}

impl Drop for HeadDeadline {
    fn drop(&mut self) {
        self.seat.set_waiting(false);
    }
}

impl Future for HeadDeadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut clock = self.clock.lock();
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

impl Sleep for HeadDeadline {}

#[cfg(test)]
mod tests {
    use super::{super::connections::seats::SeatTable, *};

    /// The first wait is the short one; each later one lasts as long as it was asked for.
    #[tokio::test]
    async fn one_clock_serves_one_wait_after_another() {
        let short = Duration::from_millis(20);
        let (taking, _) = SeatTable::new(1, 1).take(([127, 0, 0, 1], 1).into()).await;
        let timer = HeadTimer::new(taking.seat.clone(), short);
        let mut answered = timer.sleep(short * 100);
        assert!(futures::poll!(answered.as_mut()).is_pending());
        answered.await;
        for wait in [short * 3, short] {
            let began = Instant::now();
            timer.sleep(wait).await;
            assert!(began.elapsed() >= wait);
        }
    }
}
