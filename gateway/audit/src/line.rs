//! Seals one record into its chain as one line, and reads it back.
//!
//! `{"seq":N,"time":"…","kind":"…",…,"prev":"(64 hex)","hash":"(64 hex)"}`. `hash` is the SHA-256 of the line's
//! bytes before `,"hash":`; `prev` is the hash of the record before, 64 zeros for the first.

use std::{
    borrow::Cow,
    fmt,
    io::{self, BufRead, BufReader, Read, Write as _},
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::ChainName;

/// The bound on a record; a longer line was not written by a trail.
pub const LINE_MAX_BYTES: usize = 256 << 10;

/// Numbers that JSON readers hold exactly; beyond it nothing was written by a trail.
const SEQ_MAX: u64 = 1 << 53;

const PREV: &[u8] = b",\"prev\":\"";
const HASH: &[u8] = b"\",\"hash\":\"";
const END: &[u8] = b"\"}";
const HEX: usize = 64;

/// SHA-256; as text 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordHash([u8; 32]);

impl RecordHash {
    /// The hash that the first record of a chain names as the one before.
    pub(crate) const NONE: Self = Self([0; 32]);

    pub(crate) fn compute(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    fn digits(&self) -> [u8; HEX] {
        let mut digits = [0; HEX];
        hex::encode_to_slice(self.0, &mut digits).expect("64 digits hold 32 bytes");
        digits
    }

    /// Reads a hash only as it was written: upper-case digits would be another line with the same meaning.
    fn read(digits: &[u8]) -> Option<Self> {
        let mut hash = [0; 32];
        let lower = !digits.iter().any(u8::is_ascii_uppercase);
        (lower && hex::decode_to_slice(digits, &mut hash).is_ok()).then_some(Self(hash))
    }
}

impl fmt::Display for RecordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(std::str::from_utf8(&self.digits()).expect("digits are ASCII"))
    }
}

impl fmt::Debug for RecordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The error for a text that is not a hash.
#[derive(Debug, thiserror::Error)]
#[error("a hash is 64 lower-case hex digits")]
pub struct NotAHash;

impl FromStr for RecordHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        Self::read(text.as_bytes()).ok_or(NotAHash)
    }
}

impl Serialize for RecordHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<str>::deserialize(from)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// Returns the object whose members go between the chain's own.
pub(crate) fn body(event: &impl Serialize) -> Option<Vec<u8>> {
    let mut json = Vec::with_capacity(768);
    serde_json::to_writer(&mut json, event)
        .expect("events have text keys and are written to memory");
    // Room for the chain's members.
    (json.len() <= LINE_MAX_BYTES - 512).then_some(json)
}

/// Appends the whole line, including the newline, to `lines`.
pub(crate) fn seal(
    lines: &mut Vec<u8>,
    seq: u64,
    time: &RecordTime<'_>,
    body: &[u8],
    prev: &RecordHash,
) -> RecordHash {
    let from = lines.len();
    lines.extend_from_slice(b"{\"seq\":");
    write!(lines, "{seq}").expect("memory can be written");
    lines.extend_from_slice(b",\"time\":\"");
    lines.extend_from_slice(time.text);
    lines.extend_from_slice(b"\",");
    lines.extend_from_slice(&body[1..body.len() - 1]);
    if let Some(back) = time.back {
        write!(lines, ",\"clock_back_us\":{}", back.as_micros()).expect("memory can be written");
    }
    lines.extend_from_slice(PREV);
    lines.extend_from_slice(&prev.digits());
    lines.push(b'"');
    let hash = RecordHash::compute(&lines[from..]);
    lines.extend_from_slice(&HASH[1..]);
    lines.extend_from_slice(&hash.digits());
    lines.extend_from_slice(END);
    lines.push(b'\n');
    hash
}

/// The words of a line about its place in the chain. Nothing is proved yet: see [`Self::is_intact`].
#[derive(Clone, Copy)]
pub(crate) struct ChainLine<'a> {
    pub(crate) seq: u64,
    pub(crate) prev: RecordHash,
    pub(crate) hash: RecordHash,
    hashed: &'a [u8],
}

impl<'a> ChainLine<'a> {
    /// Parses a line without its newline; `None` if it does not have the form of a record.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let rest = bytes.strip_suffix(END)?;
        let (rest, hash) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
        let hashed = &bytes[..rest.strip_suffix(HASH)?.len() + 1];
        let rest = rest.strip_suffix(HASH)?;
        let (rest, prev) = rest.split_at_checked(rest.len().checked_sub(HEX)?)?;
        let rest = rest.strip_suffix(PREV)?.strip_prefix(b"{\"seq\":")?;
        let digits = &rest[..rest.iter().position(|byte| *byte == b',')?];
        let seq = std::str::from_utf8(digits)
            .ok()?
            .parse()
            .ok()
            .filter(|seq| *seq <= SEQ_MAX)?;
        Some(Self {
            seq,
            prev: RecordHash::read(prev)?,
            hash: RecordHash::read(hash)?,
            hashed,
        })
    }

    /// Returns `true` if no byte was changed since the line was sealed, or the change was sealed again.
    pub(crate) fn is_intact(&self) -> bool {
        RecordHash::compute(self.hashed) == self.hash
    }
}

pub(crate) fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
    std::borrow::Cow::<str>::deserialize(from)?
        .parse()
        .map_err(D::Error::custom)
}

/// Lines of a file that may hold anything: a line is never longer in memory than [`LINE_MAX_BYTES`].
pub(crate) struct LineReader<R> {
    reader: BufReader<R>,
    buffer: Vec<u8>,
    /// Bytes of the pieces read so far.
    pub(crate) offset: u64,
    /// The end was seen. What a writer adds after that is for another reading, which sees it from its beginning.
    ended: bool,
}

pub(crate) enum LinePiece<'a> {
    /// A line without its newline.
    Line(&'a [u8]),
    TooLong,
    /// The file ends here without a newline.
    Torn {
        bytes: u64,
    },
}

impl<R: Read> LineReader<R> {
    pub(crate) fn new(file: R) -> Self {
        Self::with_buffer(file, 64 << 10)
    }

    pub(crate) fn with_buffer(file: R, bytes: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(bytes, file),
            buffer: Vec::new(),
            offset: 0,
            ended: false,
        }
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<LinePiece<'_>>> {
        self.buffer.clear();
        if self.ended {
            return Ok(None);
        }
        let limit = LINE_MAX_BYTES as u64 + 1;
        let mut bytes = self
            .reader
            .by_ref()
            .take(limit)
            .read_until(b'\n', &mut self.buffer)? as u64;
        let too_long = bytes == limit && self.buffer.last() != Some(&b'\n');
        let mut complete = self.buffer.last() == Some(&b'\n');
        if too_long {
            let (skipped, ended) = skip_line(&mut self.reader)?;
            bytes += skipped;
            complete = ended;
        }
        self.offset += bytes;
        self.ended = !complete;
        Ok(match (bytes, complete, too_long) {
            (0, ..) => None,
            (_, false, _) => Some(LinePiece::Torn { bytes }),
            (_, true, true) => Some(LinePiece::TooLong),
            (_, true, false) => Some(LinePiece::Line(&self.buffer[..self.buffer.len() - 1])),
        })
    }
}

/// Returns the number of bytes up to and including the newline, and whether there was one.
fn skip_line(reader: &mut impl BufRead) -> io::Result<(u64, bool)> {
    let mut skipped = 0;
    loop {
        let bytes = reader.fill_buf()?;
        let (used, ended) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (bytes.len(), bytes.is_empty()),
        };
        let at_end = bytes.is_empty();
        reader.consume(used);
        skipped += used as u64;
        if ended {
            return Ok((skipped, !at_end));
        }
    }
}

/// The wall clock as text. `seq` orders records; the next record notes that a clock was set back.
pub(crate) struct RecordClock {
    last: Duration,
    second: u64,
    text: [u8; TIME_BYTES],
}

pub(crate) struct RecordTime<'a> {
    /// RFC 3339 in UTC with microseconds.
    text: &'a [u8],
    /// How far the time is before the last record's.
    back: Option<Duration>,
}

const TIME_BYTES: usize = "2026-08-22T10:15:30.123456Z".len();

impl RecordClock {
    pub(crate) fn new() -> Self {
        Self {
            last: Duration::ZERO,
            second: u64::MAX,
            text: *b"1970-01-01T00:00:00.000000Z",
        }
    }

    pub(crate) fn now(&mut self) -> RecordTime<'_> {
        self.at(SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default())
    }

    fn at(&mut self, now: Duration) -> RecordTime<'_> {
        let now = Duration::from_micros(now.as_micros() as u64);
        if now.as_secs() != self.second {
            self.second = now.as_secs();
            let second = Timestamp::from_second(self.second as i64).unwrap_or(Timestamp::MAX);
            self.text[..19].copy_from_slice(&second.to_string().as_bytes()[..19]);
        }
        let mut micros = now.subsec_micros();
        for digit in self.text[20..26].iter_mut().rev() {
            *digit = b'0' + (micros % 10) as u8;
            micros /= 10;
        }
        let back = self.last.checked_sub(now).filter(|back| !back.is_zero());
        self.last = now;
        RecordTime {
            text: &self.text,
            back,
        }
    }
}

/// Names one record and its content: proof that it was written, kept by the caller and checked with only the trail. As text
/// `chain:seq:hash`, about 105 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditReceipt {
    pub chain: ChainName,
    pub seq: u64,
    pub hash: RecordHash,
}

/// The error for a text that is not a receipt.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a receipt is `chain:seq:hash`, as in 20260822T101530Z-4711-9f3c2a01:17:(64 hex digits)")]
pub struct NotAReceipt;

impl fmt::Display for AuditReceipt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.chain.as_str())?;
        write!(formatter, ":{}:", self.seq)?;
        self.hash.fmt(formatter)
    }
}

impl FromStr for AuditReceipt {
    type Err = NotAReceipt;

    fn from_str(text: &str) -> Result<Self, NotAReceipt> {
        let mut parts = text.trim().splitn(3, ':');
        let mut part = || parts.next().ok_or(NotAReceipt);
        Ok(Self {
            chain: part()?.parse().map_err(|_| NotAReceipt)?,
            seq: part()?.parse().map_err(|_| NotAReceipt)?,
            hash: part()?.parse().map_err(|_| NotAReceipt)?,
        })
    }
}

impl<'de> Deserialize<'de> for AuditReceipt {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(from)?
            .parse()
            .map_err(D::Error::custom)
    }
}

impl Serialize for AuditReceipt {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_set_back_is_said_once() {
        let mut clock = RecordClock::new();
        let at = |clock: &mut RecordClock, micros| {
            let time = clock.at(Duration::from_micros(micros));
            (
                String::from_utf8(time.text.to_vec()).unwrap(),
                time.back.map(|back| back.as_micros()),
            )
        };
        assert_eq!(
            at(&mut clock, 1_787_393_730_000_007),
            ("2026-08-22T10:15:30.000007Z".into(), None)
        );
        assert_eq!(
            at(&mut clock, 1_787_393_729_999_999),
            ("2026-08-22T10:15:29.999999Z".into(), Some(8))
        );
        assert_eq!(
            at(&mut clock, 1_787_393_729_999_999),
            ("2026-08-22T10:15:29.999999Z".into(), None)
        );
    }

    #[test]
    fn lines_of_any_length_take_bounded_memory() {
        let mut text = b"one\n".to_vec();
        text.extend(vec![b'x'; LINE_MAX_BYTES + 1]);
        text.extend(b"\ntwo\n");
        text.extend(vec![b'y'; LINE_MAX_BYTES]);
        text.extend(b"\ntorn");
        let mut lines = LineReader::new(&text[..]);
        assert!(matches!(
            lines.next().unwrap(),
            Some(LinePiece::Line(b"one"))
        ));
        assert!(matches!(lines.next().unwrap(), Some(LinePiece::TooLong)));
        assert!(matches!(
            lines.next().unwrap(),
            Some(LinePiece::Line(b"two"))
        ));
        assert!(
            matches!(lines.next().unwrap(), Some(LinePiece::Line(line)) if line.len() == LINE_MAX_BYTES)
        );
        assert!(matches!(
            lines.next().unwrap(),
            Some(LinePiece::Torn { bytes: 4 })
        ));
        assert!(lines.next().unwrap().is_none());
        assert_eq!(lines.offset, text.len() as u64);
    }

    /// Plays a writer at work: half of its line is there now, and the rest a moment later.
    #[test]
    fn a_line_that_grows_is_not_read_as_two() {
        struct Growing(Vec<&'static [u8]>);
        impl Read for Growing {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let part = self.0.pop().unwrap_or_default();
                buffer[..part.len()].copy_from_slice(part);
                Ok(part.len())
            }
        }
        let mut lines = LineReader::new(Growing(vec![b"rest\n", b"", b"half "]));
        assert!(matches!(
            lines.next().unwrap(),
            Some(LinePiece::Torn { bytes: 5 })
        ));
        assert!(lines.next().unwrap().is_none());
    }
}
