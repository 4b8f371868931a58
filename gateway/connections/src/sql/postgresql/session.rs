//! One session with the server: requests are collected, sent in one write, and their answers read as they come.
//!
//! A request ends with Sync. When a part of it fails, the server skips the rest of it. Every future here may be
//! dropped half-way: `settle` then brings the session to rest, or it is thrown away.

mod description;
mod refusal;

use std::{
    collections::HashMap,
    fmt::Write,
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use postgres_protocol::{
    IsNull,
    message::{
        backend::{CommandCompleteBody, DataRowBody, Message},
        frontend,
    },
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use self::description::{PostgresqlType, TYPES, described, type_of};
pub(super) use self::{
    description::{PostgresqlColumn, RowDescription},
    refusal::{PostgresqlError, PostgresqlRefusal},
};
use super::{
    super::{RECORDS_MAX_BYTES, StatementAccess, StatementParameter, refused},
    announced,
};
use crate::{ConnectionError, FailureCode};

/// The descriptions of rows that a session keeps.
const DESCRIPTIONS_MAX: usize = 100;
/// A row that is larger cannot be answered anyway, so it is not waited for.
const MESSAGE_MAX_BYTES: usize = 2 * RECORDS_MAX_BYTES;
const READ_BYTES: usize = 8 * 1024;
/// The bytes that an idle session may hold.
const BUFFER_MAX_BYTES: usize = 64 * 1024;
const TEXT_OID: u32 = 25;
const IDLE: u8 = b'I';
/// Only advisory locks survive the end of a transaction.
const UNLOCK: &str = "SELECT pg_catalog.pg_advisory_unlock_all()";
/// A committed write may have set its session's role and settings, or made temporary tables, which would affect the
/// next call on the session.
const RESET: [&str; 4] = [
    "RESET SESSION AUTHORIZATION",
    "RESET ROLE",
    "RESET ALL",
    "DISCARD TEMP",
];

pub(super) trait PostgresqlStream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> PostgresqlStream for T {}

pub(super) type Row = DataRowBody;

pub(super) struct PostgresqlSession {
    stream: Box<dyn PostgresqlStream>,
    outgoing: BytesMut,
    incoming: BytesMut,
    pub(super) key: CancelKey,
    /// Ends of requests that the server has not answered yet.
    unanswered: u32,
    /// Whether the server sent anything since the last request was sent.
    heard: bool,
    /// Whether the server skips the rest of the request.
    failed: bool,
    /// Whether there is no transaction, no lock, and nothing under way.
    at_rest: bool,
    /// Whether the session must not be used again.
    dead: bool,
    /// What rows were described with, by the bytes of the description, which is the same for the same statement.
    descriptions: HashMap<Bytes, Arc<RowDescription>>,
    /// Types of the database's own, and whether each is an enumeration.
    enumerations: HashMap<u32, bool>,
}

/// The key by which the server identifies whose statement is to be cancelled.
#[derive(Clone, Copy)]
pub(super) struct CancelKey {
    pub(super) process: i32,
    pub(super) secret: i32,
}

pub(super) enum PostgresqlReply {
    Row(Row),
    Done(StatementCompletion),
}

/// The end of one statement, with its command tag.
pub(super) struct StatementCompletion(Option<CommandCompleteBody>);

impl PostgresqlSession {
    /// Creates a session. `incoming` are the bytes that were read from the stream beyond the login.
    pub(super) fn new(
        stream: Box<dyn PostgresqlStream>,
        incoming: BytesMut,
        key: CancelKey,
    ) -> Self {
        Self {
            stream,
            outgoing: BytesMut::new(),
            incoming,
            key,
            unanswered: 0,
            heard: true,
            failed: false,
            at_rest: true,
            dead: false,
            descriptions: HashMap::new(),
            enumerations: HashMap::new(),
        }
    }

    pub(super) fn at_rest(&self) -> bool {
        self.at_rest && !self.dead
    }

    pub(super) fn give_up(&mut self) {
        self.dead = true;
    }

    pub(super) fn dead(&self) -> bool {
        self.dead
    }

    /// Gives back the memory of a large answer, before the session waits for its next use.
    pub(super) fn shrink(&mut self) {
        for buffer in [&mut self.incoming, &mut self.outgoing] {
            if buffer.is_empty() && buffer.capacity() > BUFFER_MAX_BYTES {
                *buffer = BytesMut::new();
            }
        }
    }

    /// Returns `true` if the server may be busy with the session.
    pub(super) fn under_way(&self) -> bool {
        self.unanswered > 0 && !self.failed
    }

    /// Returns `false` if the server has sent an unexpected message: most likely that it ends the session.
    pub(super) fn quiet(&mut self) -> bool {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        let mut read = ReadBuf::new(&mut byte);
        self.incoming.is_empty()
            && matches!(
                Pin::new(&mut self.stream).poll_read(&mut context, &mut read),
                Poll::Pending
            )
    }

    /// Returns the columns of a statement, which does not run, with their types.
    pub(super) async fn describe(
        &mut self,
        text: &str,
        timeout: Duration,
    ) -> Result<Vec<PostgresqlColumn>, PostgresqlError> {
        check(text)?;
        self.begin(StatementAccess::Read, timeout)?;
        self.write(|to| {
            // Parameters have the types that the statement gives them.
            frontend::parse("", text, [], to)?;
            frontend::describe(b'S', "", to)
        })?;
        self.text("ROLLBACK")?;
        self.sync();
        self.send().await?;
        self.began(StatementAccess::Read).await?;
        let mut columns = Vec::new();
        loop {
            match self.next().await? {
                Message::RowDescription(body) => {
                    columns = described(&body).map_err(|error| self.lost(error))?
                }
                Message::ReadyForQuery(_) => break,
                _ => {}
            }
        }
        self.at_rest = true;
        Ok(columns)
    }

    /// Begins a request, with a transaction and the time that each of its statements may take.
    pub(super) fn begin(
        &mut self,
        access: StatementAccess,
        timeout: Duration,
    ) -> Result<(), PostgresqlError> {
        // No statement has a name at the server: a function in the database can read the names and exchange the statements,
        // and its replacements outlast the ROLLBACK.
        self.text(match access {
            StatementAccess::Read => "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY",
            StatementAccess::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
        })?;
        self.text(&format!(
            "SET LOCAL statement_timeout = {}",
            timeout.as_millis()
        ))?;
        // A null in the text of an array is one. Poolers refuse the setting at the login.
        match access {
            StatementAccess::Read => Ok(()),
            StatementAccess::Write => self.text("SET LOCAL array_nulls = on"),
        }
    }

    /// Adds a statement to a request: it is parsed directly before its parameters are bound, all of them as text.
    pub(super) fn execute(
        &mut self,
        text: &str,
        parameters: &[StatementParameter],
    ) -> Result<(), PostgresqlError> {
        check(text)?;
        self.write(|to| {
            let types = std::iter::repeat_n(TEXT_OID, parameters.len());
            frontend::parse("", text, types, to)?;
            bind(parameters, text_of, 1, to)?;
            frontend::describe(b'P', "", to)?;
            frontend::execute("", 0, to)
        })
    }

    /// Ends a request whose changes are not kept, and releases locks.
    pub(super) fn roll_back(&mut self) -> Result<(), PostgresqlError> {
        self.text("ROLLBACK")?;
        self.text(UNLOCK)?;
        self.sync();
        Ok(())
    }

    /// Ends the request of a write, which leaves nothing but its rows. A row written under a lock is visible before the lock
    /// is free.
    pub(super) fn commit(&mut self) -> Result<(), PostgresqlError> {
        self.text("COMMIT")?;
        RESET.iter().try_for_each(|text| self.text(text))?;
        self.text(UNLOCK)?;
        self.sync();
        Ok(())
    }

    /// Ends the request of a read.
    pub(super) fn end_of_read(&mut self) -> Result<(), PostgresqlError> {
        self.text(UNLOCK)?;
        self.text("ROLLBACK")?;
        self.sync();
        Ok(())
    }

    pub(super) fn sync(&mut self) {
        frontend::sync(&mut self.outgoing);
        self.unanswered += 1;
    }

    pub(super) async fn send(&mut self) -> Result<(), PostgresqlError> {
        self.heard = false;
        self.failed = false;
        self.at_rest = false;
        self.flush().await
    }

    /// Reads the answer to `begin`.
    pub(super) async fn began(&mut self, access: StatementAccess) -> Result<(), PostgresqlError> {
        self.done().await?;
        self.done().await?;
        match access {
            StatementAccess::Read => Ok(()),
            StatementAccess::Write => self.done().await,
        }
    }

    /// Reads what the rows of a statement are like, which comes before them.
    pub(super) async fn description(&mut self) -> Result<Arc<RowDescription>, PostgresqlError> {
        let raw = loop {
            // A long name is noticed as the statement is parsed.
            self.pass_over(b"123NAS");
            match (self.incoming.first(), announced(&self.incoming)) {
                (Some(b'T'), Some(length)) if self.incoming.len() > length => {
                    break self.incoming.split_to(1 + length).freeze();
                }
                (Some(b'T'), Some(length)) if length > MESSAGE_MAX_BYTES => {
                    return Err(self.lost(unexpected()));
                }
                (Some(b'T' | b'1' | b'2' | b'3' | b'N' | b'A' | b'S') | None, _) => {
                    self.more().await?
                }
                _ => match self.next().await? {
                    Message::NoData => return Ok(Arc::default()),
                    _ => return Err(self.lost(unexpected())),
                },
            }
        };
        self.heard = true;
        if let Some(known) = self.descriptions.get(&raw) {
            return Ok(Arc::clone(known));
        }
        let message = Message::parse(&mut BytesMut::from(&raw[..]));
        let mut columns = match message {
            Ok(Some(Message::RowDescription(body))) => described(&body),
            Ok(_) => Err(unexpected()),
            Err(error) => Err(error),
        }
        .map_err(|error| self.lost(error))?;
        let mut unknown = Vec::new();
        for column in columns.iter_mut().filter(|column| column.is_own()) {
            match self.enumerations.get(&column.type_oid) {
                Some(enumeration) => column.enumeration = *enumeration,
                None => unknown.push(column.type_oid),
            }
        }
        if !unknown.is_empty() {
            return Err(PostgresqlError::Untyped(unknown));
        }
        if self.descriptions.len() >= DESCRIPTIONS_MAX {
            self.descriptions.clear();
        }
        let description = Arc::new(RowDescription {
            columns,
            header: OnceLock::new(),
        });
        self.descriptions.insert(raw, Arc::clone(&description));
        Ok(description)
    }

    /// Reads the next row of a statement, or its end.
    pub(super) async fn reply(&mut self) -> Result<PostgresqlReply, PostgresqlError> {
        match self.next().await? {
            Message::DataRow(row) => Ok(PostgresqlReply::Row(row)),
            Message::CommandComplete(body) => {
                Ok(PostgresqlReply::Done(StatementCompletion(Some(body))))
            }
            Message::EmptyQueryResponse => Ok(PostgresqlReply::Done(StatementCompletion(None))),
            _ => Err(self.lost(unexpected())),
        }
    }

    /// Reads the end of a request's answer.
    pub(super) async fn ready(&mut self) -> Result<(), PostgresqlError> {
        match self.next().await? {
            Message::ReadyForQuery(_) => Ok(()),
            _ => Err(self.lost(unexpected())),
        }
    }

    /// Reads the rest of a request that ends with `end_of_read`, `commit` or `roll_back`, no part of which may fail.
    pub(super) async fn ended(&mut self) -> Result<(), PostgresqlError> {
        loop {
            self.pass_over(b"123CD");
            if let Message::ReadyForQuery(body) = self.next().await? {
                self.at_rest = body.status() == IDLE;
                return Ok(());
            }
        }
    }

    /// Reads the rest of the answer and leaves the session as it was found.
    pub(super) async fn settle(&mut self) -> Result<(), PostgresqlError> {
        if self.at_rest() {
            return Ok(());
        }
        self.flush().await?;
        while self.unanswered > 0 {
            match self.next().await {
                Ok(_) | Err(PostgresqlError::Refused(_)) if !self.dead => {}
                Ok(_) => return Err(self.lost(unexpected())),
                Err(error) => return Err(error),
            }
        }
        self.roll_back()?;
        self.send().await?;
        self.ended().await
    }

    /// Returns types by their oids, as they are called in a description.
    pub(super) async fn types(
        &mut self,
        oids: impl Iterator<Item = u32>,
        timeout: Duration,
    ) -> Result<HashMap<u32, PostgresqlType>, PostgresqlError> {
        let oids: Vec<String> = oids.map(|oid| oid.to_string()).collect();
        let oids = format!("{{{}}}", oids.join(","));
        self.begin(StatementAccess::Read, timeout)?;
        self.write(|to| {
            frontend::parse("", TYPES, [TEXT_OID], to)?;
            let list = |list: &str, to: &mut BytesMut| {
                to.extend_from_slice(list.as_bytes());
                IsNull::No
            };
            bind([oids.as_str()], list, 0, to)?;
            frontend::execute("", 0, to)
        })?;
        self.roll_back()?;
        self.send().await?;
        self.began(StatementAccess::Read).await?;
        let mut types = HashMap::new();
        while let PostgresqlReply::Row(row) = self.reply().await? {
            let (oid, found) = type_of(&row).ok_or_else(|| self.lost(unexpected()))?;
            types.insert(oid, found);
        }
        self.ended().await?;
        Ok(types)
    }

    /// Returns whether the backend of that key runs a statement.
    pub(super) async fn is_active(
        &mut self,
        key: CancelKey,
        timeout: Duration,
    ) -> Result<bool, PostgresqlError> {
        let process = StatementParameter::Text(key.process.to_string());
        self.begin(StatementAccess::Read, timeout)?;
        self.execute(ACTIVE, &[process])?;
        self.roll_back()?;
        self.send().await?;
        self.began(StatementAccess::Read).await?;
        self.description().await?;
        Ok(matches!(self.reply().await?, PostgresqlReply::Row(_)))
    }

    /// Looks up types of the database's own, once for a session.
    pub(super) async fn find_enumerations(
        &mut self,
        oids: Vec<u32>,
        timeout: Duration,
    ) -> Result<(), PostgresqlError> {
        let found = self.types(oids.iter().copied(), timeout).await?;
        for oid in oids {
            let enumeration = found.get(&oid).is_some_and(|found| found.enumeration);
            self.enumerations.insert(oid, enumeration);
        }
        Ok(())
    }

    /// Sends a statement of our own, without parameters.
    fn text(&mut self, text: &str) -> Result<(), PostgresqlError> {
        self.write(|to| {
            frontend::parse("", text, [], to)?;
            bind([(); 0], |(), _| IsNull::Yes, 1, to)?;
            frontend::execute("", 0, to)
        })
    }

    fn write(
        &mut self,
        message: impl FnOnce(&mut BytesMut) -> io::Result<()>,
    ) -> Result<(), PostgresqlError> {
        // Half a message may be there.
        message(&mut self.outgoing).map_err(|error| self.lost(error))
    }

    async fn flush(&mut self) -> Result<(), PostgresqlError> {
        while !self.outgoing.is_empty() {
            match self.stream.write_buf(&mut self.outgoing).await {
                Ok(0) => return Err(self.lost(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) => return Err(self.lost(error)),
            }
        }
        self.stream.flush().await.map_err(|error| self.lost(error))
    }

    async fn done(&mut self) -> Result<(), PostgresqlError> {
        match self.reply().await? {
            PostgresqlReply::Done(_) => Ok(()),
            PostgresqlReply::Row(_) => Err(self.lost(unexpected())),
        }
    }

    async fn next(&mut self) -> Result<Message, PostgresqlError> {
        loop {
            let message = match self.buffered()? {
                Some(message) => message,
                None => {
                    self.more().await?;
                    continue;
                }
            };
            self.heard = true;
            match message {
                Message::NoticeResponse(_)
                | Message::ParameterStatus(_)
                | Message::NotificationResponse(_) => {}
                Message::ErrorResponse(body) => {
                    let refusal = PostgresqlRefusal::from(&body);
                    self.failed = true;
                    self.dead |= refusal.fatal;
                    return Err(PostgresqlError::Refused(refusal.into()));
                }
                Message::ReadyForQuery(_) => {
                    self.unanswered = self.unanswered.saturating_sub(1);
                    return Ok(message);
                }
                message => return Ok(message),
            }
        }
    }

    fn buffered(&mut self) -> Result<Option<Message>, PostgresqlError> {
        // ParseComplete, BindComplete and CloseComplete confirm a step, which its result does too.
        self.pass_over(b"123");
        if announced(&self.incoming).is_some_and(|length| length > MESSAGE_MAX_BYTES) {
            self.dead = true;
            let error = ConnectionError::new(
                FailureCode::TooLarge,
                "the records are larger than 8 MiB; ask for fewer",
            );
            return Err(PostgresqlError::Own(error.details("one row")));
        }
        Message::parse(&mut self.incoming).map_err(|error| self.lost(error))
    }

    /// Drops the next messages while they are of these kinds and complete, without reading them.
    fn pass_over(&mut self, kinds: &[u8]) {
        while let Some((kind, rest)) = self.incoming.split_first()
            && kinds.contains(kind)
            && let Some(length) = rest.first_chunk::<4>()
            && let length = u32::from_be_bytes(*length) as usize
            && (4..=rest.len()).contains(&length)
        {
            self.incoming.advance(1 + length);
            self.heard = true;
        }
    }

    async fn more(&mut self) -> Result<(), PostgresqlError> {
        if self.incoming.capacity() - self.incoming.len() < READ_BYTES / 2 {
            self.incoming.reserve(READ_BYTES);
        }
        match self.stream.read_buf(&mut self.incoming).await {
            Ok(0) => Err(self.lost(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(()),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn lost(&mut self, error: io::Error) -> PostgresqlError {
        self.dead = true;
        PostgresqlError::Lost {
            error,
            heard: self.heard,
        }
    }
}

impl StatementCompletion {
    /// Returns the number in `UPDATE 3`.
    pub(super) fn rows(&self) -> u64 {
        self.tag()
            .rsplit(' ')
            .next()
            .and_then(|count| count.parse().ok())
            .unwrap_or(0)
    }

    pub(super) fn tag(&self) -> &str {
        self.0
            .as_ref()
            .and_then(|body| body.tag().ok())
            .unwrap_or_default()
    }
}

fn check(text: &str) -> Result<(), PostgresqlError> {
    match text.contains('\0') {
        true => Err(PostgresqlError::Own(
            refused::statement().details("a zero byte in the statement"),
        )),
        false => Ok(()),
    }
}

/// Binds parameters. They go in binary (so that a zero byte is refused and ends nothing), and rows come in `format`: 0
/// is text, 1 is binary.
fn bind<T>(
    parameters: impl IntoIterator<Item = T>,
    mut text: impl FnMut(T, &mut BytesMut) -> IsNull,
    format: i16,
    to: &mut BytesMut,
) -> io::Result<()> {
    let bound = frontend::bind(
        "",
        "",
        [1],
        parameters,
        |value, to| Ok(text(value, to)),
        [format],
        to,
    );
    bound.map_err(|error| match error {
        frontend::BindError::Conversion(error) => io::Error::other(error),
        frontend::BindError::Serialization(error) => error,
    })
}

/// Writes a parameter as text: the statement has the casts.
fn text_of(parameter: &StatementParameter, to: &mut BytesMut) -> IsNull {
    let _ = match parameter {
        StatementParameter::Null => return IsNull::Yes,
        StatementParameter::Boolean(value) => write!(to, "{value}"),
        StatementParameter::Integer(value) => write!(to, "{value}"),
        StatementParameter::Real(_, text) | StatementParameter::Text(text) => {
            to.extend_from_slice(text.as_bytes());
            Ok(())
        }
    };
    IsNull::No
}

const ACTIVE: &str =
    "SELECT 1 FROM pg_catalog.pg_stat_activity WHERE pid = $1::int4 AND state = 'active'";

fn unexpected() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "an answer that was not expected",
    )
}
