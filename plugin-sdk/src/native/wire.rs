//! Defines the heads of messages, which are JSON objects. Both sides compile this file.
//!
//! Texts and contents that may be large are the body. Where a message has several, they follow each other in the body and
//! the head has their lengths, in the same order.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

type Text<'a> = Cow<'a, str>;

/// The head of an answer with the status `FAILED`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ErrorRecord<'a> {
    pub(crate) code: Text<'a>,
    pub(crate) message: Text<'a>,
    pub(crate) field: Option<Text<'a>>,
    pub(crate) retry_after_ms: Option<u32>,
    pub(crate) details: Option<Text<'a>>,
}

/// The head of an answer with the status `PANICKED`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Panic<'a> {
    pub(crate) message: Text<'a>,
}

/// `about.about` answers which interfaces the library has; the body is its text.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Interfaces {
    pub(crate) interfaces: Vec<String>,
}

/// `collections.describe`; the body is the settings, and of the answer the shape.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Describe<'a> {
    pub(crate) adapter: Text<'a>,
}

/// `collections.configure`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Configure<'a> {
    pub(crate) collection: Text<'a>,
    pub(crate) adapter: Text<'a>,
    pub(crate) settings: Text<'a>,
    pub(crate) shape: Text<'a>,
}

/// `collections.read`; the body of the answer is the records.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Read<'a> {
    pub(crate) collection: Text<'a>,
    pub(crate) conditions: Vec<Condition<'a>>,
    pub(crate) order: Vec<Text<'a>>,
    pub(crate) columns: Vec<Text<'a>>,
    pub(crate) limit: u32,
    pub(crate) cursor: Option<Text<'a>>,
    pub(crate) options: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Condition<'a> {
    pub(crate) column: Text<'a>,
    pub(crate) comparison: Text<'a>,
    pub(crate) value: Text<'a>,
}

/// The answer of `collections.read` and `files.list`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Next<'a> {
    pub(crate) next: Option<Text<'a>>,
}

/// `summaries.summarize`; the body of the answer is the records.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summarize<'a> {
    pub(crate) collection: Text<'a>,
    pub(crate) conditions: Vec<Condition<'a>>,
    /// Name, column and step.
    pub(crate) groups: Vec<(Text<'a>, Text<'a>, Option<Text<'a>>)>,
    /// Name, function and column.
    pub(crate) measures: Vec<(Text<'a>, Text<'a>, Option<Text<'a>>)>,
    pub(crate) having: Vec<Condition<'a>>,
    pub(crate) order: Vec<Text<'a>>,
    pub(crate) limit: u32,
    pub(crate) options: Option<Text<'a>>,
}

/// The answer of `summaries.summarize`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summarized {
    pub(crate) more: bool,
}

/// `collections.write`; the body of the answer is the record.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Write<'a> {
    pub(crate) collection: Text<'a>,
    pub(crate) verb: Text<'a>,
    pub(crate) key: Option<Text<'a>>,
    pub(crate) record: Option<Text<'a>>,
    pub(crate) options: Option<Text<'a>>,
}

/// `tools.call`; the body is the arguments.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Call<'a> {
    pub(crate) tool: Text<'a>,
    pub(crate) context: Text<'a>,
    pub(crate) resumed: Option<Text<'a>>,
    pub(crate) options: Option<Text<'a>>,
}

/// The answer of `tools.call`; the body is the value, and an empty body means no value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReplyHead<'a> {
    pub(crate) kind: Text<'a>,
    pub(crate) content: Option<Text<'a>>,
    pub(crate) requests: Option<Text<'a>>,
    pub(crate) state: Option<Text<'a>>,
    pub(crate) options: Option<Text<'a>>,
}

/// `log.write`; the body is the message.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Log<'a> {
    pub(crate) level: Text<'a>,
    pub(crate) fields: Option<Text<'a>>,
}

/// `progress.report`. A `done` that is not a number in JSON is null.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report<'a> {
    pub(crate) done: Option<f64>,
    pub(crate) total: Option<f64>,
    pub(crate) message: Text<'a>,
}

/// The answer of `progress.cancelled`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Cancelled {
    pub(crate) cancelled: bool,
}

/// `events.changed`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Event<'a> {
    pub(crate) what: Text<'a>,
    pub(crate) uri: Option<Text<'a>>,
}

/// `random.bytes`; the body of the answer is the bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Random {
    pub(crate) length: u32,
}

/// `sql.dialect`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Connection<'a> {
    pub(crate) connection: Text<'a>,
}

/// The answer of `sql.dialect`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Dialect<'a> {
    pub(crate) dialect: Text<'a>,
}

/// `sql.query` and `sql.execute`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Statement<'a> {
    pub(crate) connection: Text<'a>,
    pub(crate) text: Text<'a>,
    pub(crate) parameters: Text<'a>,
    pub(crate) limit: u32,
    pub(crate) options: Option<Text<'a>>,
}

/// `sql.query-many`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Statements<'a> {
    #[serde(borrow)]
    pub(crate) statements: Vec<Statement<'a>>,
}

/// The answer of `sql.query`, except for its records, which are the body.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Rows {
    pub(crate) length: usize,
    pub(crate) truncated: bool,
}

/// The answer of `sql.execute`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Changed {
    pub(crate) changed: u64,
}

/// The answers of `sql.query-many` and `http.send-many`, in the order asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Answers<T> {
    pub(crate) answers: Vec<Answered<T>>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answered<T> {
    Done(T),
    Failed(ErrorRecord<'static>),
}

/// `http.send`; `body` is the length of a body, if there is one.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request<'a> {
    pub(crate) connection: Text<'a>,
    pub(crate) method: Text<'a>,
    pub(crate) path: Text<'a>,
    pub(crate) query: Vec<(Text<'a>, Text<'a>)>,
    pub(crate) headers: Vec<(Text<'a>, Text<'a>)>,
    pub(crate) body: Option<usize>,
    pub(crate) options: Option<Text<'a>>,
}

/// `http.send-many`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Requests<'a> {
    #[serde(borrow)]
    pub(crate) requests: Vec<Request<'a>>,
}

/// The answer of `http.send`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) length: usize,
}

/// `files.stat`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct File<'a> {
    pub(crate) root: Text<'a>,
    pub(crate) path: Text<'a>,
}

/// The answer of `files.stat`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Info<'a> {
    pub(crate) version: Text<'a>,
    pub(crate) size: u64,
}

/// `files.read`; the body of the answer is the content.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileRead<'a> {
    pub(crate) root: Text<'a>,
    pub(crate) path: Text<'a>,
    pub(crate) offset: u64,
    pub(crate) length: u32,
}

/// `files.replace`; the body is the content.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileReplace<'a> {
    pub(crate) root: Text<'a>,
    pub(crate) path: Text<'a>,
    pub(crate) if_version: Option<Text<'a>>,
}

/// The answer of `files.replace` and `parts.replace`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Version<'a> {
    pub(crate) version: Text<'a>,
}

/// `files.list`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FileList<'a> {
    pub(crate) root: Text<'a>,
    pub(crate) prefix: Text<'a>,
    pub(crate) cursor: Option<Text<'a>>,
}

/// The answer of `files.list`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listing {
    pub(crate) paths: Vec<String>,
    pub(crate) next: Option<String>,
}

/// The request of `parts.read`: where each part begins, and its length. The body of the answer is the parts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PartsRead<'a> {
    pub(crate) root: Text<'a>,
    pub(crate) path: Text<'a>,
    pub(crate) parts: Vec<(u64, u32)>,
}

/// The answer of `parts.read`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Lengths {
    pub(crate) lengths: Vec<usize>,
}

/// The request of `parts.replace`: where each edit begins, how many bytes are removed, and how many of the body
/// replace them.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PartsReplace<'a> {
    pub(crate) root: Text<'a>,
    pub(crate) path: Text<'a>,
    pub(crate) if_version: Text<'a>,
    pub(crate) edits: Vec<(u64, u64, usize)>,
}

/// `index.find`, `index.begin` and `index.finish`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Name<'a> {
    pub(crate) source: Text<'a>,
    pub(crate) version: Text<'a>,
    pub(crate) column: Text<'a>,
}

/// The answer of `index.find` and `index.begin`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Covers {
    pub(crate) covers: Option<u64>,
}

/// `index.entries`. The body: the first key, the last key, and the key of the entry after which to continue.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Range<'a> {
    #[serde(borrow)]
    pub(crate) name: Name<'a>,
    pub(crate) from: usize,
    pub(crate) to: Option<usize>,
    pub(crate) after: Option<Entry>,
    pub(crate) descending: bool,
    pub(crate) limit: u32,
}

/// The length of the key, and where the record is.
pub(crate) type Entry = (usize, u64, u32);

/// The answer of `index.entries`; the body is the keys.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Entries {
    pub(crate) entries: Vec<Entry>,
}

/// `index.add`; the body is the keys.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Add<'a> {
    #[serde(borrow)]
    pub(crate) name: Name<'a>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// `index.extend`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Extend<'a> {
    pub(crate) source: Text<'a>,
    pub(crate) old: Text<'a>,
    pub(crate) new: Text<'a>,
}

/// Takes this many bytes from the front of a body; `None` if it has fewer.
pub(crate) fn take<'a>(body: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = body.split_at_checked(length)?;
    *body = rest;
    Some(taken)
}
