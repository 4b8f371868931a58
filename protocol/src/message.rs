//! The JSON-RPC envelope, read once and strictly.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};

use super::{GivenParams, Id, RpcError, raw};

/// Messages in one batch (2025-03-26 only).
pub const BATCH_MAX: usize = 64;

/// A body or a line.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every body is one message"
)]
pub enum Body<'a> {
    One(Message<'a>),
    /// A batch of at least one element and at most [`BATCH_MAX`]; each is still to be read.
    Batch(Vec<&'a RawValue>),
}

/// A JSON-RPC message from a client. It borrows from the body.
#[derive(Debug)]
pub enum Message<'a> {
    Request {
        id: Id<'a>,
        method: Cow<'a, str>,
        params: GivenParams<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: GivenParams<'a>,
    },
    Response(Response<'a>),
}

/// The client's answer to a request of the gateway's.
#[derive(Debug)]
pub struct Response<'a> {
    /// `None` where the client could not read the id of the request.
    pub id: Option<Id<'a>>,
    /// The result, or the error object.
    pub outcome: Result<&'a RawValue, &'a RawValue>,
}

/// The fault of a message, and its id if that could be read.
#[derive(Debug)]
pub struct Malformed<'a> {
    pub id: Option<Id<'a>>,
    pub error: RpcError,
}

impl<'a> Body<'a> {
    /// Reads a body: a message, or a batch of them. `Err` has the id of the request, if that could be read, and the
    /// error to answer with.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Malformed<'a>> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            anonymous(RpcError::parse(&format!(
                "invalid UTF-8 at byte {}",
                error.valid_up_to()
            )))
        })?;
        match text
            .trim_start_matches([' ', '\t', '\r', '\n'])
            .as_bytes()
            .first()
        {
            Some(b'[') => batch(text).map_err(anonymous).map(Self::Batch),
            _ => Message::read(text).map(Self::One),
        }
    }
}

impl<'a> Message<'a> {
    /// Reads one object. Members that JSON-RPC does not know are ignored; one given twice is refused.
    pub fn read(text: &'a str) -> Result<Self, Malformed<'a>> {
        if !text
            .trim_start_matches([' ', '\t', '\r', '\n'])
            .starts_with('{')
        {
            let error = match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => RpcError::invalid_request("a message is a JSON object"),
                Err(error) => RpcError::parse(&error.to_string()),
            };
            return Err(anonymous(error));
        }
        if let Ok(envelope) = serde_json::from_str::<Envelope<'a, GivenParams<'a>>>(text) {
            return envelope.message();
        }
        // The params are kept raw, so that their faults can be reported with the request's own id.
        let envelope = serde_json::from_str::<Envelope<'a, RawParams<'a>>>(text);
        envelope.map_err(|error| said(text, &error))?.message()
    }
}

fn said<'a>(text: &'a str, error: &serde_json::Error) -> Malformed<'a> {
    match error.classify() {
        Category::Data => Malformed {
            id: only_id(text),
            error: RpcError::invalid_request(error.to_string()),
        },
        _ => anonymous(RpcError::parse(&error.to_string())),
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Default + Deserialize<'de>"))]
struct Envelope<'a, P> {
    #[serde(borrow, default, deserialize_with = "raw::present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    method: Option<&'a RawValue>,
    #[serde(default)]
    params: P,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    error: Option<&'a RawValue>,
}

#[derive(Default)]
struct RawParams<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for RawParams<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        raw::present(deserializer).map(Self)
    }
}

impl<'a> From<RawParams<'a>> for GivenParams<'a> {
    fn from(RawParams(params): RawParams<'a>) -> Self {
        Self::Raw(params)
    }
}

impl<'a, P: Into<GivenParams<'a>>> Envelope<'a, P> {
    fn message(self) -> Result<Message<'a>, Malformed<'a>> {
        let id = self.id.and_then(Id::read);
        let refuse = |message: &'static str| {
            Err(Malformed {
                id: id.clone(),
                error: RpcError::invalid_request(message),
            })
        };
        if self.jsonrpc.and_then(raw::string).as_deref() != Some("2.0") {
            return refuse("`jsonrpc` must be \"2.0\"");
        }
        if self.id.is_some() && id.is_none() && self.method.is_some() {
            return refuse("`id` must be a string, or an integer of at most 32 digits");
        }
        if id
            .as_ref()
            .is_some_and(|id| id.as_json().len() > Id::LENGTH_MAX)
        {
            return refuse("`id` is longer than 1024 bytes");
        }
        let answer = self.result.is_some() || self.error.is_some();
        let Some(method) = self.method else {
            let outcome = match (self.result, self.error) {
                (Some(result), None) => Some(Ok(result)),
                (None, Some(error)) => Some(Err(error)),
                _ => None,
            };
            return match outcome.filter(|_| self.id.is_some()) {
                Some(outcome) => Ok(Message::Response(Response { id, outcome })),
                None if answer => refuse("a response has an `id` and either `result` or `error`"),
                None => refuse("`method` is missing"),
            };
        };
        if answer {
            return refuse("a message is a request or a response, not both");
        }
        let Some(method) = raw::string(method) else {
            return refuse("`method` must be a string");
        };
        Ok(match id {
            Some(id) => Message::Request {
                id,
                method,
                params: self.params.into(),
            },
            None => Message::Notification {
                method,
                params: self.params.into(),
            },
        })
    }
}

/// Returns the id of the one request that `bytes` hold, however little else of it is right. A batch has none.
pub fn request_id(bytes: &[u8]) -> Option<Id<'_>> {
    let id = match Body::read(bytes) {
        Ok(Body::One(Message::Request { id, .. })) => id,
        Err(Malformed { id, .. }) => id?,
        Ok(_) => return None,
    };
    (id.as_json().len() <= Id::LENGTH_MAX).then_some(id)
}

/// Returns the id of a message that is otherwise unreadable.
fn only_id(text: &str) -> Option<Id<'_>> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow, default, deserialize_with = "raw::present")]
        id: Option<&'a RawValue>,
    }
    serde_json::from_str::<OnlyId<'_>>(text)
        .ok()?
        .id
        .and_then(Id::read)
}

fn batch(text: &str) -> Result<Vec<&RawValue>, RpcError> {
    let Elements(elements) =
        serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => {
                RpcError::invalid_request(format!("a batch has at most {BATCH_MAX} messages"))
            }
            _ => RpcError::parse(&error.to_string()),
        })?;
    match elements.is_empty() {
        true => Err(RpcError::invalid_request(
            "a batch has at least one message",
        )),
        false => Ok(elements),
    }
}

/// An array of at most [`BATCH_MAX`] elements; a longer one is refused before it is collected.
struct Elements<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bounded;

        impl<'de> Visitor<'de> for Bounded {
            type Value = Elements<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "a batch of at most {BATCH_MAX} messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(
                self,
                mut sequence: A,
            ) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = sequence.next_element()? {
                    if elements.len() == BATCH_MAX {
                        return Err(serde::de::Error::invalid_length(BATCH_MAX + 1, &self));
                    }
                    elements.push(element);
                }
                Ok(Elements(elements))
            }
        }

        deserializer.deserialize_seq(Bounded)
    }
}

fn anonymous<'a>(error: RpcError) -> Malformed<'a> {
    Malformed { id: None, error }
}

#[cfg(test)]
mod tests;
