//! The body of a POST: of the right type, complete, and within its bound.

use std::{sync::LazyLock, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use futures::future::poll_immediate;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Body as HttpBody, Frame};
use tokio::{sync::Semaphore, task, time};

use crate::transport::http::connections;
use crate::{
    limits::{BudgetFull, HeldBytes, RateCharge, UNCOUNTED_MAX_BYTES},
    wire::RpcError,
};

/// The refusal of a compressed body.
pub(crate) const COMPRESSED: &str = "the body must not be compressed (Content-Encoding)";

/// The bounds on a body before its caller is known: only this much of it is read, within a short time.
const UNKNOWN_CALLER_BYTES_MAX: usize = 64 << 10;
const UNKNOWN_CALLER_ARRIVAL_MAX: Duration = Duration::from_millis(250);
/// The bounds on the body of a caller over its rate, which is read only for its id.
const OVER_RATE_BYTES_MAX: usize = 64 << 10;
const OVER_RATE_ARRIVAL_MAX: Duration = Duration::from_secs(1);
/// The time within which a body must arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

/// Turns for reading pieces of large bodies.
static TURNS: LazyLock<Semaphore> = LazyLock::new(weir_admission::long_work_turns);

/// The number of refused bodies that are drained concurrently. The kernel would have to hold the bytes of any others, which slows
/// all connections down if there are many: those connections are closed.
static DRAINS: Semaphore = Semaphore::const_new(16);
/// The pace at which all of these are read together: a pause after this many bytes.
const DRAINED_BYTES: usize = 256 << 10;
const DRAIN_PAUSE: Duration = Duration::from_millis(4);
static PAUSES: Semaphore = Semaphore::const_new(1);

/// The bounds for reading a body.
pub(super) struct BodyAllowance<'a> {
    pub charge: RateCharge,
    pub bytes_max: usize,
    /// Starts counting a body. Most bodies are not counted.
    pub count: &'a (dyn Fn() -> HeldBytes + Sync),
}

/// A body that is being read.
struct BodyReading<'a> {
    body: Body,
    bytes_max: usize,
    count: &'a (dyn Fn() -> HeldBytes + Sync),
    /// The declared length of the body.
    declared: usize,
    /// The first piece, which is nearly always the whole body.
    first: Bytes,
    /// All pieces, if there is more than one.
    whole: Vec<u8>,
    held: Option<HeldBytes>,
}

/// Why a body was not read to its end.
enum UnreadBody {
    TooLarge,
    BrokeOff,
    NoRoom(BudgetFull),
}

/// Why a body is refused, and what was read of it to find the id of its request.
pub(in crate::transport) struct RefusedBody {
    pub(in crate::transport) error: RpcError,
    pub(in crate::transport) read: Option<Bytes>,
}

impl From<RpcError> for RefusedBody {
    fn from(error: RpcError) -> Self {
        Self { error, read: None }
    }
}

/// Reads a body. Its bytes count against the budget until they are dropped. A body that is not JSON is refused, and read only if
/// it is small and arrives soon.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    allowance: BodyAllowance<'_>,
) -> Result<Bytes, RefusedBody> {
    if let Err(error) = content_type(headers) {
        let read = Box::pin(read_of_unknown_caller(headers, body)).await;
        return Err(RefusedBody { error, read });
    }
    let declared = declared(headers);
    if let RateCharge::Over(wait_ms) = allowance.charge {
        let whole = read_small(declared, body, OVER_RATE_BYTES_MAX, OVER_RATE_ARRIVAL_MAX).await;
        return whole.ok_or_else(|| RpcError::rate_limited(wait_ms).into());
    }
    let bytes_max = allowance.bytes_max;
    let too_large = || {
        RpcError::refused(
            413,
            format!("the body is larger than {bytes_max} bytes ([http] body_max_bytes)"),
        )
    };
    if declared.is_some_and(|length| length > bytes_max as u64) {
        drain(body, bytes_max).await;
        return Err(too_large().into());
    }
    // A body that cannot be held completely is not started.
    let length = declared.unwrap_or(0) as usize;
    if length > UNCOUNTED_MAX_BYTES
        && let Err(full) = (allowance.count)().has_room(length)
    {
        drain(body, bytes_max).await;
        return Err(no_room(full).into());
    }
    let mut reading = BodyReading::new(body, length, allowance);
    // Nearly every body arrives together with its head, and needs no timer.
    let read = match poll_immediate(reading.run(UNCOUNTED_MAX_BYTES)).await {
        Some(read) => Ok(read),
        None => {
            let _waiting = connections::wait_for_client();
            time::timeout(ARRIVAL_MAX, reading.run(0)).await
        }
    };
    match read {
        Ok(Ok(())) => Ok(reading.into_bytes()),
        Ok(Err(UnreadBody::TooLarge)) => {
            drain(reading.into_rest(), bytes_max).await;
            Err(too_large().into())
        }
        Ok(Err(UnreadBody::BrokeOff)) => {
            Err(RpcError::invalid_request("the body broke off").into())
        }
        Ok(Err(UnreadBody::NoRoom(full))) => {
            // A client that is still sending would see a broken connection instead of the answer.
            drain(reading.into_rest(), bytes_max).await;
            Err(no_room(full).into())
        }
        Err(_) => Err(RpcError::refused(
            408,
            format!("the body did not arrive within {} s", ARRIVAL_MAX.as_secs()),
        )
        .into()),
    }
}

impl<'a> BodyReading<'a> {
    fn new(body: Body, declared: usize, allowance: BodyAllowance<'a>) -> Self {
        Self {
            body,
            declared,
            bytes_max: allowance.bytes_max,
            first: Bytes::new(),
            whole: Vec::new(),
            held: None,
            count: allowance.count,
        }
    }

    /// Reads to the end. Nothing is lost if this future is dropped earlier. The body is counted once it has more than
    /// `uncounted_max` bytes.
    async fn run(&mut self, uncounted_max: usize) -> Result<(), UnreadBody> {
        self.count(uncounted_max)?;
        while let Some(frame) = self.next_frame().await {
            let frame = frame.map(Frame::into_data);
            let piece = match frame.map_err(|_| UnreadBody::BrokeOff)? {
                Ok(piece) => piece,
                Err(_) => continue, // trailers
            };
            if self.length() + piece.len() > self.bytes_max {
                return Err(UnreadBody::TooLarge);
            }
            if self.length() == 0 {
                self.first = piece;
            } else {
                // A piece may keep more memory alive than its own bytes, so several are copied into one buffer.
                if self.whole.is_empty() {
                    self.whole.reserve_exact(self.declared);
                }
                self.whole
                    .extend_from_slice(&std::mem::take(&mut self.first));
                self.whole.extend_from_slice(&piece);
            }
            self.count(uncounted_max)?;
        }
        Ok(())
    }

    async fn next_frame(&mut self) -> Option<Result<Frame<Bytes>, axum::Error>> {
        match self.length() > UNCOUNTED_MAX_BYTES {
            true => next_in_turn(&mut self.body).await,
            false => self.body.frame().await,
        }
    }

    fn length(&self) -> usize {
        self.first.len() + self.whole.len()
    }

    fn count(&mut self, uncounted_max: usize) -> Result<(), UnreadBody> {
        let length = self.length();
        if length <= uncounted_max {
            return Ok(());
        }
        let held = self.held.get_or_insert_with(self.count);
        held.grow(length - held.bytes()).map_err(UnreadBody::NoRoom)
    }

    /// Returns the body, which is counted as long as it exists.
    fn into_bytes(self) -> Bytes {
        let bytes = match self.whole.is_empty() {
            true => self.first,
            false => self.whole.into(),
        };
        match self.held {
            Some(held) => held.keep(bytes),
            None => bytes,
        }
    }

    /// Returns the unread part, and drops the rest.
    fn into_rest(self) -> Body {
        self.body
    }
}

/// Refuses a body that would exceed the bound on all bodies in memory.
fn no_room(full: BudgetFull) -> RpcError {
    match full {
        BudgetFull::Agent => RpcError::no_room(
            429,
            "you are sending too much at once: wait for the answers to your other requests \
             ([limits] agent_held_max_bytes)",
        ),
        BudgetFull::All => RpcError::no_room(
            503,
            "too much is being sent at once: try again in 1 s ([limits] held_max_bytes)",
        ),
    }
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Reads the body of a refused request to find its id: within narrow bounds, or not at all.
pub(in crate::transport) async fn read_of_unknown_caller(
    headers: &HeaderMap,
    body: Body,
) -> Option<Bytes> {
    let declared = declared(headers)?;
    let (bytes_max, arrival_max) = (UNKNOWN_CALLER_BYTES_MAX, UNKNOWN_CALLER_ARRIVAL_MAX);
    read_small(Some(declared), body, bytes_max, arrival_max).await
}

/// Reads a body that is small and arrives soon; reads nothing if it is known to be larger.
async fn read_small(
    declared: Option<u64>,
    body: Body,
    bytes_max: usize,
    arrival_max: Duration,
) -> Option<Bytes> {
    if declared.is_some_and(|length| length > bytes_max as u64) {
        return None;
    }
    let collecting = Limited::new(body, bytes_max).collect();
    let collected = time::timeout(arrival_max, collecting).await.ok()?;
    Some(collected.ok()?.to_bytes())
}

/// Reads the next piece of a large body, in turn with those of other large bodies. Many clients that send as fast as they can
/// would otherwise take the threads of requests for as long as it takes to read a piece from each of them.
async fn next_in_turn<B: HttpBody + Unpin>(
    body: &mut B,
) -> Option<Result<Frame<B::Data>, B::Error>> {
    let turn = TURNS.acquire().await;
    // After the first poll, the connection reads what has arrived.
    for _ in 0..2 {
        if let Some(frame) = poll_immediate(body.frame()).await {
            return frame;
        }
        task::yield_now().await;
    }
    // Other bodies do not wait for a client that sends slowly.
    drop(turn);
    body.frame().await
}

/// Reads the rest for a moment: a client that is still sending would see a reset connection instead of the answer. The number of
/// such bodies and their pace are bounded, so that a caller which sends many of them takes little from the calls of others.
async fn drain(body: Body, bytes_max: usize) {
    let Ok(_drain) = DRAINS.try_acquire() else {
        return;
    };
    let mut rest = Limited::new(body, bytes_max.saturating_mul(4));
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(frame)) = next_in_turn(&mut rest).await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes >= DRAINED_BYTES {
                bytes = 0;
                let _turn = PAUSES.acquire().await;
                time::sleep(DRAIN_PAUSE).await;
            }
        }
    };
    let _ = time::timeout(Duration::from_secs(2), read).await;
}

fn content_type(headers: &HeaderMap) -> Result<(), RpcError> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (first, more) = (
        values.next().and_then(|value| value.to_str().ok()),
        values.next().is_some(),
    );
    if more || !first.is_some_and(is_json) {
        return Err(RpcError::refused(
            415,
            "the Content-Type must be application/json, in UTF-8",
        ));
    }
    match is_compressed(headers) {
        true => Err(RpcError::refused(415, COMPRESSED)),
        false => Ok(()),
    }
}

/// Returns `true` if the body is compressed. Bodies are never decompressed.
pub(crate) fn is_compressed(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    encodings.any(|value| value != "identity")
}

/// Returns `true` for `application/json`, which must be UTF-8 if it names a charset.
fn is_json(value: &str) -> bool {
    let mut parts = value.split(';').map(|part| part.trim_matches([' ', '\t']));
    let json = parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    json && parts.all(|parameter| match parameter.split_once('=') {
        Some((name, charset)) if name.eq_ignore_ascii_case("charset") => {
            charset.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn content_types() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\";x=y",
            "application/json;",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/json-rpc",
            "application/jsonx",
            "text/plain; application/json",
            "application/json; charset=utf-16",
            "application/x-www-form-urlencoded",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
