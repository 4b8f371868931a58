//! The imports of a native library. In an author's own tests no host loaded it: they use [`crate::testing`].

use super::wire;
use crate::error::{Error, Result};

pub(crate) mod log {
    use super::super::{host, wire};
    use crate::testing::log as faked;

    pub(crate) fn write(level: &str, message: &str, fields: Option<&str>) {
        if !host::is_there() {
            return faked::write(level, message, fields);
        }
        let head = wire::Log {
            level: level.into(),
            fields: fields.map(Into::into),
        };
        // A line outside a call belongs to no call.
        let _ = host::ask_bytes("log.write", &head, message.as_bytes());
    }
}

pub(crate) mod progress {
    use super::super::{host, wire};
    use crate::testing::progress as faked;

    pub(crate) fn report(done: f64, total: Option<f64>, message: &str) {
        if !host::is_there() {
            return faked::report(done, total, message);
        }
        let head = wire::Report {
            done: done.is_finite().then_some(done),
            total,
            message: message.into(),
        };
        let _ = host::ask_bytes("progress.report", &head, &[]); // outside a call it is dropped
    }

    pub(crate) fn cancelled() -> bool {
        if !host::is_there() {
            return faked::cancelled();
        }
        // If the host no longer answers, the call is over.
        host::ask::<wire::Cancelled>("progress.cancelled", &(), &[])
            .is_ok_and(|(reply, _)| reply.cancelled)
    }
}

pub(crate) mod events {
    use super::super::{host, wire};
    use crate::testing::events as faked;

    pub(crate) fn changed(what: &str, uri: Option<&str>) {
        if !host::is_there() {
            return faked::changed(what, uri);
        }
        let head = wire::Event {
            what: what.into(),
            uri: uri.map(Into::into),
        };
        let _ = host::ask_bytes("events.changed", &head, &[]); // outside a call it is dropped
    }
}

/// Native code has its own clock: the host's would cost a message.
pub(crate) mod clock {
    use std::sync::OnceLock;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    use super::super::host;
    use crate::testing::clock as faked;

    pub(crate) fn now_ms() -> u64 {
        if !host::is_there() {
            return faked::now_ms();
        }
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn monotonic_ns() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        if !host::is_there() {
            return faked::monotonic_ns();
        }
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

pub(crate) mod random {
    use super::super::{host, wire};
    use crate::testing::random as faked;

    pub(crate) fn bytes(length: u32) -> Vec<u8> {
        if !host::is_there() {
            return faked::bytes(length);
        }
        host::ask_bytes("random.bytes", &wire::Random { length }, &[])
            .expect("a call can have random bytes")
    }
}

pub(crate) mod sql {
    use super::super::{host, wire};
    use crate::error::{Error, Result};
    use crate::sql::{Rows, Statement};
    use crate::testing::sql as faked;

    pub(crate) fn dialect(connection: &str) -> Result<String> {
        if !host::is_there() {
            return faked::dialect(connection);
        }
        let head = wire::Connection {
            connection: connection.into(),
        };
        let (reply, _) = host::ask::<wire::Dialect<'_>>("sql.dialect", &head, &[])?;
        Ok(reply.dialect.into_owned())
    }

    pub(crate) fn query(statement: &Statement) -> Result<Rows> {
        if !host::is_there() {
            return faked::query(statement);
        }
        let (head, body) = host::ask::<wire::Rows>("sql.query", &to_wire(statement), &[])?;
        rows(&head, &mut &*body)
    }

    pub(crate) fn query_many(statements: &[Statement]) -> Vec<Result<Rows>> {
        if !host::is_there() {
            return faked::query_many(statements);
        }
        let head = wire::Statements {
            statements: statements.iter().map(to_wire).collect(),
        };
        let (reply, body) =
            match host::ask::<wire::Answers<wire::Rows>>("sql.query-many", &head, &[]) {
                Ok(reply) => reply,
                Err(error) => return statements.iter().map(|_| Err(error.clone())).collect(),
            };
        let mut body = &*body;
        let answers = reply.answers.into_iter().map(|answer| match answer {
            wire::Answered::Done(head) => rows(&head, &mut body),
            wire::Answered::Failed(record) => Err(Error::from(record)),
        });
        answers.collect()
    }

    pub(crate) fn execute(statement: &Statement) -> Result<u64> {
        if !host::is_there() {
            return faked::execute(statement);
        }
        Ok(
            host::ask::<wire::Changed>("sql.execute", &to_wire(statement), &[])?
                .0
                .changed,
        )
    }

    fn to_wire(statement: &Statement) -> wire::Statement<'_> {
        wire::Statement {
            connection: (&*statement.connection).into(),
            text: (&*statement.text).into(),
            parameters: serde_json::to_string(&statement.parameters)
                .expect("JSON values print")
                .into(),
            limit: statement.limit,
            options: statement.options.as_deref().map(Into::into),
        }
    }

    fn rows(head: &wire::Rows, body: &mut &[u8]) -> Result<Rows> {
        Ok(Rows {
            records: super::text(super::part(body, head.length)?)?,
            truncated: head.truncated,
        })
    }
}

pub(crate) mod http {
    use super::super::{host, wire};
    use crate::error::{Error, Result};
    use crate::http::{Request, Response};
    use crate::testing::http as faked;

    pub(crate) fn send(request: &Request) -> Result<Response> {
        if !host::is_there() {
            return faked::send(request);
        }
        let body = request.body.as_deref().unwrap_or_default();
        let (head, body) = host::ask::<wire::Response>("http.send", &to_wire(request), body)?;
        response(head, &mut &*body)
    }

    pub(crate) fn send_many(requests: &[Request]) -> Vec<Result<Response>> {
        if !host::is_there() {
            return faked::send_many(requests);
        }
        let head = wire::Requests {
            requests: requests.iter().map(to_wire).collect(),
        };
        let bodies: Vec<u8> = requests
            .iter()
            .filter_map(|request| request.body.as_deref())
            .flatten()
            .copied()
            .collect();
        let (reply, body) =
            match host::ask::<wire::Answers<wire::Response>>("http.send-many", &head, &bodies) {
                Ok(reply) => reply,
                Err(error) => return requests.iter().map(|_| Err(error.clone())).collect(),
            };
        let mut body = &*body;
        let answers = reply.answers.into_iter().map(|answer| match answer {
            wire::Answered::Done(head) => response(head, &mut body),
            wire::Answered::Failed(record) => Err(Error::from(record)),
        });
        answers.collect()
    }

    fn to_wire(request: &Request) -> wire::Request<'_> {
        let pairs = |pairs: &'_ [(String, String)]| {
            pairs
                .iter()
                .map(|(name, value)| (name.clone().into(), value.clone().into()))
                .collect()
        };
        wire::Request {
            connection: (&*request.connection).into(),
            method: (&*request.method).into(),
            path: (&*request.path).into(),
            query: pairs(&request.query),
            headers: pairs(&request.headers),
            body: request.body.as_ref().map(Vec::len),
            options: request.options.as_deref().map(Into::into),
        }
    }

    fn response(head: wire::Response, body: &mut &[u8]) -> Result<Response> {
        let wire::Response {
            status,
            headers,
            length,
        } = head;
        Ok(Response {
            status,
            headers,
            body: super::part(body, length)?.to_vec(),
        })
    }
}

pub(crate) mod files {
    use super::super::{host, wire};
    use crate::error::Result;
    use crate::files::{Info, Listing};
    use crate::testing::files as faked;

    pub(crate) fn stat(root: &str, path: &str) -> Result<Info> {
        if !host::is_there() {
            return faked::stat(root, path);
        }
        let head = wire::File {
            root: root.into(),
            path: path.into(),
        };
        let (reply, _) = host::ask::<wire::Info<'_>>("files.stat", &head, &[])?;
        Ok(Info {
            version: reply.version.into_owned(),
            size: reply.size,
        })
    }

    pub(crate) fn read(root: &str, path: &str, offset: u64, length: u32) -> Result<Vec<u8>> {
        if !host::is_there() {
            return faked::read(root, path, offset, length);
        }
        host::ask_bytes(
            "files.read",
            &wire::FileRead {
                root: root.into(),
                path: path.into(),
                offset,
                length,
            },
            &[],
        )
    }

    pub(crate) fn replace(
        root: &str,
        path: &str,
        if_version: Option<&str>,
        content: &[u8],
    ) -> Result<String> {
        if !host::is_there() {
            return faked::replace(root, path, if_version, content);
        }
        let if_version = if_version.map(Into::into);
        let head = wire::FileReplace {
            root: root.into(),
            path: path.into(),
            if_version,
        };
        let (reply, _) = host::ask::<wire::Version<'_>>("files.replace", &head, content)?;
        Ok(reply.version.into_owned())
    }

    pub(crate) fn list(root: &str, prefix: &str, cursor: Option<&str>) -> Result<Listing> {
        if !host::is_there() {
            return faked::list(root, prefix, cursor);
        }
        let head = wire::FileList {
            root: root.into(),
            prefix: prefix.into(),
            cursor: cursor.map(Into::into),
        };
        let (reply, _) = host::ask::<wire::Listing>("files.list", &head, &[])?;
        Ok(Listing {
            paths: reply.paths,
            next: reply.next,
        })
    }
}

pub(crate) mod parts {
    use super::super::{host, wire};
    use crate::error::Result;
    use crate::files::{Edit, Part};
    use crate::testing::files::parts as faked;

    pub(crate) fn read(root: &str, path: &str, parts: &[Part]) -> Result<Vec<Vec<u8>>> {
        if !host::is_there() {
            return faked::read(root, path, parts);
        }
        let parts = parts.iter().map(|part| (part.at, part.length)).collect();
        let head = wire::PartsRead {
            root: root.into(),
            path: path.into(),
            parts,
        };
        let (reply, body) = host::ask::<wire::Lengths>("parts.read", &head, &[])?;
        let mut body = &*body;
        reply
            .lengths
            .into_iter()
            .map(|length| Ok(super::part(&mut body, length)?.to_vec()))
            .collect()
    }

    pub(crate) fn replace(
        root: &str,
        path: &str,
        if_version: &str,
        edits: &[Edit],
    ) -> Result<String> {
        if !host::is_there() {
            return faked::replace(root, path, if_version, edits);
        }
        let contents: Vec<u8> = edits
            .iter()
            .flat_map(|edit| &edit.content)
            .copied()
            .collect();
        let edits = edits
            .iter()
            .map(|edit| (edit.at, edit.length, edit.content.len()))
            .collect();
        let head = wire::PartsReplace {
            root: root.into(),
            path: path.into(),
            if_version: if_version.into(),
            edits,
        };
        let (reply, _) = host::ask::<wire::Version<'_>>("parts.replace", &head, &contents)?;
        Ok(reply.version.into_owned())
    }
}

pub(crate) mod index {
    use super::super::{host, wire};
    use crate::error::Result;
    use crate::index::{Entry, Name, Range};
    use crate::testing::index as faked;

    pub(crate) fn find(name: &Name) -> Option<u64> {
        if !host::is_there() {
            return faked::find(name);
        }
        host::ask::<wire::Covers>("index.find", &to_wire(name), &[])
            .ok()?
            .0
            .covers
    }

    pub(crate) fn range(name: &Name, range: &Range) -> Result<Vec<Entry>> {
        if !host::is_there() {
            return faked::range(name, range);
        }
        let head = wire::Range {
            name: to_wire(name),
            from: range.from.len(),
            to: range.to.as_ref().map(Vec::len),
            after: range.after.as_ref().map(of_entry),
            descending: range.descending,
            limit: range.limit,
        };
        let mut keys = range.from.clone();
        keys.extend(range.to.iter().flatten());
        keys.extend(range.after.iter().flat_map(|after| &after.key));
        let (reply, body) = host::ask::<wire::Entries>("index.entries", &head, &keys)?;
        let mut body = &*body;
        let entries = reply.entries.into_iter().map(|(key, at, length)| {
            Ok(Entry {
                key: super::part(&mut body, key)?.to_vec(),
                at,
                length,
            })
        });
        entries.collect()
    }

    pub(crate) fn later(work: &str) {
        if !host::is_there() {
            return faked::later(work);
        }
        let _ = host::ask_bytes("index.later", &(), work.as_bytes()); // work outside a call belongs to none
    }

    pub(crate) fn begin(name: &Name) -> Result<u64> {
        if !host::is_there() {
            return faked::begin(name);
        }
        Ok(
            host::ask::<wire::Covers>("index.begin", &to_wire(name), &[])?
                .0
                .covers
                .unwrap_or_default(),
        )
    }

    pub(crate) fn add(name: &Name, entries: &[Entry], from: u64, to: u64) -> Result<()> {
        if !host::is_there() {
            return faked::add(name, entries, from, to);
        }
        let keys: Vec<u8> = entries
            .iter()
            .flat_map(|entry| &entry.key)
            .copied()
            .collect();
        let head = wire::Add {
            name: to_wire(name),
            entries: entries.iter().map(of_entry).collect(),
            from,
            to,
        };
        host::ask_bytes("index.add", &head, &keys).map(drop)
    }

    pub(crate) fn finish(name: &Name) -> Result<()> {
        if !host::is_there() {
            return faked::finish(name);
        }
        host::ask_bytes("index.finish", &to_wire(name), &[]).map(drop)
    }

    pub(crate) fn extend(source: &str, old: &str, new: &str) -> Result<()> {
        if !host::is_there() {
            return faked::extend(source, old, new);
        }
        let head = wire::Extend {
            source: source.into(),
            old: old.into(),
            new: new.into(),
        };
        host::ask_bytes("index.extend", &head, &[]).map(drop)
    }

    fn to_wire(name: &Name) -> wire::Name<'_> {
        wire::Name {
            source: (&*name.source).into(),
            version: (&*name.version).into(),
            column: (&*name.column).into(),
        }
    }

    fn of_entry(entry: &Entry) -> wire::Entry {
        (entry.key.len(), entry.at, entry.length)
    }
}

fn part<'a>(body: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    wire::take(body, length).ok_or_else(|| Error::internal("The gateway's answer is too short."))
}

fn text(bytes: &[u8]) -> Result<String> {
    String::from_utf8(bytes.to_vec())
        .map_err(|_| Error::internal("The gateway's answer is not text."))
}
