//! Defines the messages on the pipes of a child: a header of 17 bytes, the function's name, the head and the body.
//!
//! The header is the kind (1: a call, 2: an answer), the status, and the three lengths, each four bytes, the low one first.

use std::io::{self, Read, Write};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::abi::Answer;

const HEADER_BYTES: usize = 17;
const FUNCTION_MAX_BYTES: usize = 64;
const CALL: u8 = 1;
const ANSWER: u8 = 2;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PipeMessage {
    Call {
        function: String,
        head: Vec<u8>,
        body: Vec<u8>,
    },
    Answer(Answer),
}

struct PipeHeader {
    kind: u8,
    status: i32,
    function: usize,
    head: usize,
    body: usize,
}

impl PipeMessage {
    /// Reads a message; `None` at the end of the input.
    pub(super) fn read(input: &mut impl Read, max: usize) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER_BYTES];
        match input.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let header = PipeHeader::parse(header, max)?;
        let mut rest = vec![0; header.rest()];
        input.read_exact(&mut rest)?;
        header.message(rest).map(Some)
    }

    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(&self.encoded())?;
        output.flush()
    }

    pub(super) async fn receive(
        input: &mut (impl AsyncRead + Unpin),
        max: usize,
    ) -> io::Result<Self> {
        let mut header = [0; HEADER_BYTES];
        input.read_exact(&mut header).await?;
        let header = PipeHeader::parse(header, max)?;
        let mut rest = vec![0; header.rest()];
        input.read_exact(&mut rest).await?;
        header.message(rest)
    }

    pub(super) async fn send(&self, output: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        output.write_all(&self.encoded()).await?;
        output.flush().await
    }

    fn encoded(&self) -> Vec<u8> {
        let (kind, status, function, head, body) = match self {
            Self::Call {
                function,
                head,
                body,
            } => (CALL, 0, function.as_bytes(), head, body),
            Self::Answer(Answer { status, head, body }) => (ANSWER, *status, &[][..], head, body),
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + function.len() + head.len() + body.len());
        bytes.push(kind);
        bytes.extend(status.to_le_bytes());
        for part in [function, head, body] {
            bytes.extend(
                u32::try_from(part.len())
                    .expect("what is sent is bounded")
                    .to_le_bytes(),
            );
        }
        [function, head, body]
            .into_iter()
            .for_each(|part| bytes.extend_from_slice(part));
        bytes
    }
}

impl PipeHeader {
    /// Parses a header, before any memory is allocated for the announced lengths.
    fn parse(header: [u8; HEADER_BYTES], max: usize) -> io::Result<Self> {
        let number = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let length = |at| number(at) as usize;
        let parsed = Self {
            kind: header[0],
            status: number(1).cast_signed(),
            function: length(5),
            head: length(9),
            body: length(13),
        };
        if !matches!(parsed.kind, CALL | ANSWER) || parsed.function > FUNCTION_MAX_BYTES {
            return Err(nonsense("it is not a message"));
        }
        if parsed.head.saturating_add(parsed.body) > max {
            return Err(nonsense(&format!("a message has at most {max} bytes")));
        }
        Ok(parsed)
    }

    fn rest(&self) -> usize {
        self.function + self.head + self.body
    }

    fn message(self, mut bytes: Vec<u8>) -> io::Result<PipeMessage> {
        let body = bytes.split_off(self.function + self.head);
        let head = bytes.split_off(self.function);
        if self.kind == ANSWER {
            return Ok(PipeMessage::Answer(Answer {
                status: self.status,
                head,
                body,
            }));
        }
        let function =
            String::from_utf8(bytes).map_err(|_| nonsense("a function's name is not text"))?;
        Ok(PipeMessage::Call {
            function,
            head,
            body,
        })
    }
}

fn nonsense(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_too_large_is() {
        let call = PipeMessage::Call {
            function: "sql.query".into(),
            head: b"{}".to_vec(),
            body: b"\0\xff".to_vec(),
        };
        let answer = PipeMessage::Answer(Answer {
            status: -2,
            head: Vec::new(),
            body: vec![7; 100],
        });
        let mut bytes = Vec::new();
        call.write(&mut bytes).expect("written");
        answer.write(&mut bytes).expect("written");
        let mut input = &*bytes;
        assert_eq!(
            PipeMessage::read(&mut input, 100).expect("a message"),
            Some(call)
        );
        assert_eq!(
            PipeMessage::read(&mut input, 100).expect("a message"),
            Some(answer)
        );
        assert_eq!(PipeMessage::read(&mut input, 100).expect("the end"), None);
        for (wrong, why) in [
            (&bytes[..], "at most 3 bytes"),
            (&[9; 40], "not a message"),
            (&bytes[..20], "fill"),
        ] {
            let error = PipeMessage::read(&mut &*wrong, 3 + 97 * usize::from(wrong.len() == 20))
                .expect_err(why);
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
