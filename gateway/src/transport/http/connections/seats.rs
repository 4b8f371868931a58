//! The places of a listener's connections: how many there may be, and which one gives way to a new one.
//!
//! A connection is known once a caller has been identified on it. Unknown connections give way first, beginning with the oldest
//! of the address that has the most; then known ones that wait for their next request, and those of callers who only read. A
//! connection that is working for any other known caller never gives way.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ahash::RandomState;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The time after which a full listener looks again for a connection to close.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The time that a new connection has to send its first request before it gives way in a full listener.
const FIRST_MOMENT: Duration = Duration::from_millis(250);

/// One connection.
pub(super) struct ConnectionSeat {
    pub(super) peer: SocketAddr,
    number: u64,
    opened: Instant,
    is_known: AtomicBool,
    /// The caller only reads: in a full listener the connection gives way, whatever it is doing.
    is_yielding: AtomicBool,
    is_waiting: AtomicBool,
    is_sending: AtomicBool,
    leave: CancellationToken,
    closed: CancellationToken,
}

pub(super) struct SeatTable {
    connections_max: usize,
    /// The maximum number of connections from one address without a known key.
    address_connections_max: usize,
    taken: Mutex<TakenSeats>,
    freed: Notify,
}

#[derive(Default)]
struct TakenSeats {
    last: u64,
    all: BTreeMap<u64, Arc<ConnectionSeat>>,
    /// Connections that had no known key when they were last checked.
    unknown: HashMap<IpAddr, BTreeMap<u64, Arc<ConnectionSeat>>, RandomState>,
}

/// A place that is given back when it is dropped.
pub(super) struct SeatGuard {
    seats: Arc<SeatTable>,
    pub(super) seat: Arc<ConnectionSeat>,
}

impl ConnectionSeat {
    pub(super) fn set_known(&self) {
        if !self.is_known.load(Ordering::Relaxed) {
            self.is_known.store(true, Ordering::Relaxed);
        }
    }

    pub(super) fn set_yielding(&self, is_yielding: bool) {
        if self.is_yielding.load(Ordering::Relaxed) != is_yielding {
            self.is_yielding.store(is_yielding, Ordering::Relaxed);
        }
    }

    /// Records that the connection is waiting for the head of a request, or has received it.
    pub(super) fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    /// Records that the connection is waiting for the rest of a body, or has received it.
    pub(super) fn set_sending(&self, is_sending: bool) {
        self.is_sending.store(is_sending, Ordering::Relaxed);
    }

    /// Asks the connection to end, whatever it is doing.
    pub(super) fn close(&self) {
        self.is_known.store(false, Ordering::Relaxed);
        self.leave.cancel();
        self.closed.cancel();
    }

    /// Waits until the connection has to give way.
    pub(super) async fn left(&self) {
        self.leave.cancelled().await;
    }

    /// Waits until the connection has to end, whatever it is doing.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Returns `true` while a completely received request is being answered.
    pub(super) fn is_answering(&self) -> bool {
        !self.is_waiting() && !self.is_sending.load(Ordering::Relaxed)
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting.load(Ordering::Relaxed)
    }

    fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    pub(super) fn may_leave(&self) -> bool {
        let is_set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        self.is_waiting()
            || is_set(&self.is_sending)
            || is_set(&self.is_yielding)
            || !self.is_known()
    }
}

impl SeatTable {
    pub(super) fn new(connections_max: usize, address_connections_max: usize) -> Arc<Self> {
        Arc::new(Self {
            connections_max: connections_max.max(1),
            address_connections_max: address_connections_max.max(1),
            taken: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Takes a place for a new connection, and returns how many had to give way. If none may, the new one waits.
    pub(super) async fn take(self: &Arc<Self>, peer: SocketAddr) -> (SeatGuard, usize) {
        loop {
            let freed = self.freed.notified();
            if let Some(taken) = self.try_take(peer) {
                return taken;
            }
            let _ = tokio::time::timeout(LOOK_AGAIN, freed).await; // either is a reason to look
        }
    }

    fn try_take(self: &Arc<Self>, peer: SocketAddr) -> Option<(SeatGuard, usize)> {
        let mut taken = self.taken.lock();
        let address = address(peer);
        let mut gone = 0;
        while taken.unknown_of(address) >= self.address_connections_max {
            taken.close_oldest(address);
            gone += 1;
        }
        if taken.all.len() >= self.connections_max {
            let (address, seat) = taken.first_to_leave()?;
            taken.close(address, &seat);
            gone += 1;
        }
        taken.last += 1;
        let seat = Arc::new(ConnectionSeat {
            peer,
            number: taken.last,
            opened: Instant::now(),
            is_known: AtomicBool::new(false),
            is_yielding: AtomicBool::new(false),
            is_waiting: AtomicBool::new(true),
            is_sending: AtomicBool::new(false),
            leave: CancellationToken::new(),
            closed: CancellationToken::new(),
        });
        taken.all.insert(seat.number, seat.clone());
        let unknown = taken.unknown.entry(address).or_default();
        unknown.insert(seat.number, seat.clone());
        drop(taken);
        let seats = self.clone();
        Some((SeatGuard { seats, seat }, gone))
    }
}

impl TakenSeats {
    /// Counts the unknown connections of an address. A connection that became known remains so.
    fn unknown_of(&mut self, address: IpAddr) -> usize {
        let Some(unknown) = self.unknown.get_mut(&address) else {
            return 0;
        };
        unknown.retain(|_, seat| !seat.is_known());
        unknown.len()
    }

    fn close_oldest(&mut self, address: IpAddr) {
        let unknown = self.unknown.get(&address);
        let oldest = unknown.and_then(|unknown| unknown.values().next()).cloned();
        if let Some(oldest) = oldest {
            self.close(address, &oldest);
        }
    }

    /// Returns the connection that makes room in a full listener, if one may be closed now.
    fn first_to_leave(&mut self) -> Option<(IpAddr, Arc<ConnectionSeat>)> {
        let addresses: Vec<IpAddr> = self.unknown.keys().copied().collect();
        let most = addresses
            .into_iter()
            .max_by_key(|address| self.unknown_of(*address));
        let oldest = most.and_then(|address| {
            let oldest = self.unknown.get(&address)?.values().next()?;
            Some((address, oldest.clone()))
        });
        match oldest {
            Some((address, oldest)) => {
                (oldest.opened.elapsed() >= FIRST_MOMENT).then_some((address, oldest))
            }
            None => {
                let idle = self.all.values().find(|seat| seat.is_waiting());
                let idle = idle.or_else(|| self.all.values().find(|seat| seat.may_leave()))?;
                Some((address(idle.peer), idle.clone()))
            }
        }
    }

    fn close(&mut self, address: IpAddr, seat: &ConnectionSeat) {
        seat.leave.cancel();
        self.remove(address, seat.number);
    }

    fn remove(&mut self, address: IpAddr, number: u64) {
        self.all.remove(&number);
        if let Some(unknown) = self.unknown.get_mut(&address) {
            unknown.remove(&number);
            if unknown.is_empty() {
                self.unknown.remove(&address);
            }
        }
    }
}

impl Drop for SeatGuard {
    fn drop(&mut self) {
        let address = address(self.seat.peer);
        self.seats.taken.lock().remove(address, self.seat.number);
        self.seats.freed.notify_one();
    }
}

/// Returns the address that a connection is counted for: an IPv4 address, or the network of an IPv6 address, since its holder has
/// the whole network.
fn address(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> SocketAddr {
        ([10, 0, 0, last], 1).into()
    }

    async fn take(seats: &Arc<SeatTable>, last: u8) -> SeatGuard {
        seats.take(peer(last)).await.0
    }

    fn has_left(taking: &SeatGuard) -> bool {
        taking.seat.leave.is_cancelled()
    }

    #[tokio::test]
    async fn the_oldest_unknown_connection_of_an_address_gives_way() {
        let seats = SeatTable::new(100, 3);
        let other = take(&seats, 2).await;
        let all: Vec<_> = futures::future::join_all((0..5).map(|_| take(&seats, 1))).await;
        let left: Vec<_> = all.iter().map(has_left).collect();
        assert_eq!(left, [true, true, false, false, false]);
        all[2].seat.set_known();
        let more = take(&seats, 1).await;
        assert!(!has_left(&all[2]) && !has_left(&all[3]) && !has_left(&other) && !has_left(&more));
        drop(all);
        drop((more, other));
        let taken = seats.taken.lock();
        assert!(taken.all.is_empty() && taken.unknown.is_empty());
    }

    #[tokio::test]
    async fn where_all_are_taken_an_unknown_one_gives_way_and_then_an_idle_one() {
        let seats = SeatTable::new(4, 4);
        let mut all = Vec::new();
        for address in [1, 1, 2, 3] {
            all.push(take(&seats, address).await);
        }
        all[3].seat.set_known();
        all[3].seat.set_waiting(false);
        // The new one waits for a moment: the existing ones may be about to send a request.
        let fifth = take(&seats, 4).await;
        assert!(has_left(&all[0]) && !has_left(&all[1]));
        for known in [&all[1], &all[2], &fifth] {
            known.seat.set_known();
        }
        all[1].seat.set_waiting(false);
        let sixth = take(&seats, 5).await;
        assert!(
            !has_left(&all[1]) && has_left(&all[2]),
            "it is idle, and the other is at work"
        );
        sixth.seat.set_known();
        sixth.seat.set_waiting(false);
        fifth.seat.set_waiting(false);
        let waiting = tokio::time::timeout(LOOK_AGAIN * 3, take(&seats, 6)).await;
        assert!(waiting.is_err(), "all are at work");
        drop(sixth);
        take(&seats, 6).await;
    }

    /// People who only read may be behind one proxy, with one address: its bound is for connections without a key.
    #[tokio::test]
    async fn those_who_only_read_give_way_in_a_full_listener_alone() {
        let seats = SeatTable::new(6, 2);
        let mut readers = Vec::new();
        for _ in 0..5 {
            let reader = take(&seats, 1).await;
            reader.seat.set_yielding(true);
            reader.seat.set_known();
            reader.seat.set_waiting(false);
            readers.push(reader);
        }
        let operator = take(&seats, 1).await;
        operator.seat.set_known();
        operator.seat.set_waiting(false);
        assert!(!readers.iter().any(has_left), "there is room");
        let other = take(&seats, 2).await;
        assert!(has_left(&readers[0]) && !has_left(&readers[1]) && !has_left(&operator));
        other.seat.set_known();
        other.seat.set_waiting(false);
        for reader in &readers[1..] {
            reader.seat.set_yielding(false);
        }
        let waiting = tokio::time::timeout(LOOK_AGAIN * 3, take(&seats, 3)).await;
        assert!(waiting.is_err(), "all are at work");
    }
}
