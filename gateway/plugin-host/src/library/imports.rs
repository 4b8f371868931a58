//! Answers what a library asks of the gateway, by the functions that components import; nothing else decides here.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{
    abi::{Answer, DONE, FAILED, UNKNOWN},
    wire,
};
use crate::{
    bindings::v0_1::weir::plugin::{
        events, files, http, index, log, parts, progress, random, sql, types,
    },
    guest::GuestState,
};

/// Returns the error for a message that is not part of the interface. The library is at fault, and ends.
fn unreadable(function: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("its call of `{function}` cannot be read"))
}

/// Answers one call. An error ends the library, as it does a component.
pub(super) async fn answer(
    guest: &mut GuestState,
    function: &str,
    head: &[u8],
    body: &[u8],
) -> wasmtime::Result<Answer> {
    let call = LibraryRequest {
        function,
        head,
        body,
    };
    match function {
        "log.write" => call.log(guest).await,
        "progress.report" => call.report(guest).await,
        "progress.cancelled" => {
            let cancelled = progress::Host::cancelled(guest).await?;
            Ok(done(&wire::Cancelled { cancelled }, Vec::new()))
        }
        "events.changed" => {
            let wire::Event { what, uri } = call.head()?;
            events::Host::changed(guest, what.into(), uri.map(Into::into)).await?;
            Ok(done(&(), Vec::new()))
        }
        "random.bytes" => {
            let wire::Random { length } = call.head()?;
            Ok(done(&(), random::Host::bytes(guest, length).await?))
        }
        "sql.dialect" => call.dialect(guest).await,
        "sql.query" => call.query(guest).await,
        "sql.query-many" => call.query_many(guest).await,
        "sql.execute" => call.execute(guest).await,
        "http.send" => call.send(guest).await,
        "http.send-many" => call.send_many(guest).await,
        "files.stat" => call.stat(guest).await,
        "files.read" => call.read(guest).await,
        "files.replace" => call.replace(guest).await,
        "files.list" => call.list(guest).await,
        "parts.read" => call.read_parts(guest).await,
        "parts.replace" => call.replace_parts(guest).await,
        "index.find" => call.find(guest).await,
        "index.entries" => call.entries(guest).await,
        "index.later" => {
            index::Host::later(guest, call.text(call.body)?).await?;
            Ok(done(&(), Vec::new()))
        }
        "index.begin" => call.begin(guest).await,
        "index.add" => call.add(guest).await,
        "index.finish" => {
            let name = call.head::<wire::Name<'_>>()?.into();
            Ok(nothing(index::Host::finish(guest, name).await?))
        }
        "index.extend" => {
            let wire::Extend { source, old, new } = call.head()?;
            Ok(nothing(
                index::Host::extend(guest, source.into(), old.into(), new.into()).await?,
            ))
        }
        _ => Ok(Answer {
            status: UNKNOWN,
            ..Answer::default()
        }),
    }
}

struct LibraryRequest<'a> {
    function: &'a str,
    head: &'a [u8],
    body: &'a [u8],
}

impl<'a> LibraryRequest<'a> {
    fn head<T: Deserialize<'a>>(&self) -> wasmtime::Result<T> {
        serde_json::from_slice(self.head).map_err(|_| unreadable(self.function))
    }

    fn text(&self, bytes: &[u8]) -> wasmtime::Result<String> {
        String::from_utf8(bytes.to_vec()).map_err(|_| unreadable(self.function))
    }

    fn take(&self, body: &mut &'a [u8], length: usize) -> wasmtime::Result<Vec<u8>> {
        wire::take(body, length)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| unreadable(self.function))
    }

    async fn log(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::Log { level, fields } = self.head()?;
        log::Host::write(
            guest,
            level.into(),
            self.text(self.body)?,
            fields.map(Into::into),
        )
        .await?;
        Ok(done(&(), Vec::new()))
    }

    async fn report(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::Report {
            done: so_far,
            total,
            message,
        } = self.head()?;
        progress::Host::report(guest, so_far.unwrap_or(f64::NAN), total, message.into()).await?;
        Ok(done(&(), Vec::new()))
    }

    async fn dialect(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::Connection { connection } = self.head()?;
        let dialect = sql::Host::dialect(guest, connection.into()).await?;
        Ok(answered(dialect, |dialect| {
            (
                wire::Dialect {
                    dialect: dialect.into(),
                },
                Vec::new(),
            )
        }))
    }

    async fn query(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let rows = sql::Host::query(guest, self.head::<wire::Statement<'_>>()?.into()).await?;
        Ok(answered(rows, rows_out))
    }

    async fn query_many(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::Statements { statements } = self.head()?;
        let statements = statements.into_iter().map(Into::into).collect();
        Ok(all(
            sql::Host::query_many(guest, statements).await?,
            rows_out,
        ))
    }

    async fn execute(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let changed = sql::Host::execute(guest, self.head::<wire::Statement<'_>>()?.into()).await?;
        Ok(answered(changed, |changed| {
            (wire::Changed { changed }, Vec::new())
        }))
    }

    async fn send(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let request = self.request(self.head()?, &mut { self.body })?;
        Ok(answered(
            http::Host::send(guest, request).await?,
            response_out,
        ))
    }

    async fn send_many(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::Requests { requests } = self.head()?;
        let mut body = self.body;
        let requests = requests
            .into_iter()
            .map(|request| self.request(request, &mut body));
        let requests = requests.collect::<wasmtime::Result<_>>()?;
        Ok(all(
            http::Host::send_many(guest, requests).await?,
            response_out,
        ))
    }

    fn request(
        &self,
        request: wire::Request<'_>,
        body: &mut &'a [u8],
    ) -> wasmtime::Result<http::Request> {
        let wire::Request {
            connection,
            method,
            path,
            query,
            headers,
            body: length,
            options,
        } = request;
        let pairs = |pairs: Vec<(Cow<'_, str>, Cow<'_, str>)>| {
            pairs
                .into_iter()
                .map(|(name, value)| http::Pair {
                    name: name.into(),
                    value: value.into(),
                })
                .collect()
        };
        Ok(http::Request {
            connection: connection.into(),
            method: method.into(),
            path: path.into(),
            query: pairs(query),
            headers: pairs(headers),
            body: length.map(|length| self.take(body, length)).transpose()?,
            options: options.map(Into::into),
        })
    }

    async fn stat(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::File { root, path } = self.head()?;
        let info = files::Host::stat(guest, root.into(), path.into()).await?;
        Ok(answered(info, |info| {
            (
                wire::Info {
                    version: info.version.into(),
                    size: info.size,
                },
                Vec::new(),
            )
        }))
    }

    async fn read(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::FileRead {
            root,
            path,
            offset,
            length,
        } = self.head()?;
        let content = files::Host::read(guest, root.into(), path.into(), offset, length).await?;
        Ok(answered(content, |content| ((), content)))
    }

    async fn replace(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::FileReplace {
            root,
            path,
            if_version,
        } = self.head()?;
        let if_version = if_version.map(Into::into);
        let version = files::Host::replace(
            guest,
            root.into(),
            path.into(),
            if_version,
            self.body.to_vec(),
        )
        .await?;
        Ok(answered(version, |version| {
            (
                wire::Version {
                    version: version.into(),
                },
                Vec::new(),
            )
        }))
    }

    async fn list(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::FileList {
            root,
            prefix,
            cursor,
        } = self.head()?;
        let listing =
            files::Host::list(guest, root.into(), prefix.into(), cursor.map(Into::into)).await?;
        Ok(answered(listing, |files::Listing { paths, next }| {
            (wire::Listing { paths, next }, Vec::new())
        }))
    }

    async fn read_parts(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::PartsRead { root, path, parts } = self.head()?;
        let parts = parts
            .into_iter()
            .map(|(at, length)| parts::Part { at, length })
            .collect();
        let read = parts::Host::read(guest, root.into(), path.into(), parts).await?;
        Ok(answered(read, |parts| {
            (
                wire::Lengths {
                    lengths: parts.iter().map(Vec::len).collect(),
                },
                parts.concat(),
            )
        }))
    }

    async fn replace_parts(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::PartsReplace {
            root,
            path,
            if_version,
            edits,
        } = self.head()?;
        let mut body = self.body;
        let edits = edits.into_iter().map(|(at, length, content)| {
            Ok(parts::Edit {
                at,
                length,
                content: self.take(&mut body, content)?,
            })
        });
        let edits = edits.collect::<wasmtime::Result<_>>()?;
        let version =
            parts::Host::replace(guest, root.into(), path.into(), if_version.into(), edits).await?;
        Ok(answered(version, |version| {
            (
                wire::Version {
                    version: version.into(),
                },
                Vec::new(),
            )
        }))
    }

    async fn find(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let covers = index::Host::find(guest, self.head::<wire::Name<'_>>()?.into()).await?;
        Ok(done(&wire::Covers { covers }, Vec::new()))
    }

    async fn entries(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::Range {
            name,
            from,
            to,
            after,
            descending,
            limit,
        } = self.head()?;
        let mut body = self.body;
        let from = self.take(&mut body, from)?;
        let to = to.map(|to| self.take(&mut body, to)).transpose()?;
        let after = after
            .map(|after| self.entry(after, &mut body))
            .transpose()?;
        let range = index::Range {
            from,
            to,
            descending,
            after,
            limit,
        };
        let entries = index::Host::entries(guest, name.into(), range).await?;
        Ok(answered(entries, |entries| {
            let listed = entries
                .iter()
                .map(|entry| (entry.key.len(), entry.at, entry.length))
                .collect();
            (
                wire::Entries { entries: listed },
                entries.into_iter().flat_map(|entry| entry.key).collect(),
            )
        }))
    }

    async fn begin(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let covers = index::Host::begin(guest, self.head::<wire::Name<'_>>()?.into()).await?;
        Ok(answered(covers, |covers| {
            (
                wire::Covers {
                    covers: Some(covers),
                },
                Vec::new(),
            )
        }))
    }

    async fn add(&self, guest: &mut GuestState) -> wasmtime::Result<Answer> {
        let wire::Add {
            name,
            entries,
            from,
            to,
        } = self.head()?;
        let mut body = self.body;
        let entries = entries
            .into_iter()
            .map(|entry| self.entry(entry, &mut body));
        let entries = entries.collect::<wasmtime::Result<_>>()?;
        Ok(nothing(
            index::Host::add(guest, name.into(), entries, from, to).await?,
        ))
    }

    fn entry(
        &self,
        (key, at, length): wire::Entry,
        body: &mut &'a [u8],
    ) -> wasmtime::Result<index::Entry> {
        Ok(index::Entry {
            key: self.take(body, key)?,
            at,
            length,
        })
    }
}

fn rows_out(rows: sql::Rows) -> (wire::Rows, Vec<u8>) {
    let sql::Rows { records, truncated } = rows;
    (
        wire::Rows {
            length: records.len(),
            truncated,
        },
        records.into_bytes(),
    )
}

fn response_out(response: http::Response) -> (wire::Response, Vec<u8>) {
    let http::Response {
        status,
        headers,
        body,
    } = response;
    let headers = headers
        .into_iter()
        .map(|pair| (pair.name, pair.value))
        .collect();
    (
        wire::Response {
            status,
            headers,
            length: body.len(),
        },
        body,
    )
}

fn answered<T, H: Serialize>(
    result: Result<T, types::Error>,
    out: impl FnOnce(T) -> (H, Vec<u8>),
) -> Answer {
    match result {
        Ok(value) => {
            let (head, body) = out(value);
            done(&head, body)
        }
        Err(error) => failed(error),
    }
}

/// Joins several answers into one.
fn all<T, H: Serialize>(
    results: Vec<Result<T, types::Error>>,
    out: fn(T) -> (H, Vec<u8>),
) -> Answer {
    let mut bodies = Vec::new();
    let answers = results.into_iter().map(|result| match result {
        Ok(value) => {
            let (head, body) = out(value);
            bodies.extend(body);
            wire::Answered::Done(head)
        }
        Err(error) => wire::Answered::Failed(record(error)),
    });
    let answers = wire::Answers {
        answers: answers.collect(),
    };
    done(&answers, bodies)
}

fn nothing(result: Result<(), types::Error>) -> Answer {
    answered(result, |()| ((), Vec::new()))
}

fn done(head: &impl Serialize, body: Vec<u8>) -> Answer {
    Answer {
        status: DONE,
        head: serde_json::to_vec(head).expect("plain data"),
        body,
    }
}

fn failed(error: types::Error) -> Answer {
    Answer {
        status: FAILED,
        head: serde_json::to_vec(&record(error)).expect("plain data"),
        body: Vec::new(),
    }
}

fn record(error: types::Error) -> wire::ErrorRecord<'static> {
    let types::Error {
        code,
        message,
        field,
        retry_after_ms,
        details,
    } = error;
    wire::ErrorRecord {
        code: code.into(),
        message: message.into(),
        field: field.map(Into::into),
        retry_after_ms,
        details: details.map(Into::into),
    }
}

impl From<wire::Statement<'_>> for sql::Statement {
    fn from(statement: wire::Statement<'_>) -> Self {
        let wire::Statement {
            connection,
            text,
            parameters,
            limit,
            options,
        } = statement;
        Self {
            connection: connection.into(),
            text: text.into(),
            parameters: parameters.into(),
            limit,
            options: options.map(Into::into),
        }
    }
}

impl From<wire::Name<'_>> for index::Name {
    fn from(name: wire::Name<'_>) -> Self {
        let wire::Name {
            source,
            version,
            column,
        } = name;
        Self {
            source: source.into(),
            version: version.into(),
            column: column.into(),
        }
    }
}
