//! The JSON-RPC envelope, read once and strictly.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};

use super::{GivenParams, RpcError, raw};

/// Messages in one batch (2025-03-26 only).
pub const BATCH_MAX: usize = 64;

/// A body or a line.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every body is one message"
)]
pub enum MessageBody<'a> {
    One(RpcMessage<'a>),
    /// A batch of at least one element and at most [`BATCH_MAX`]; each is still to be read.
    Batch(Vec<&'a RawValue>),
}

/// A JSON-RPC message from a client. It borrows from the body.
#[derive(Debug)]
pub enum RpcMessage<'a> {
    Request {
        id: RequestId<'a>,
        method: Cow<'a, str>,
        params: GivenParams<'a>,
    },
    Notification {
        method: Cow<'a, str>,
        params: GivenParams<'a>,
    },
    Response(RpcResponse<'a>),
}

/// The client's answer to a request of the gateway's.
#[derive(Debug)]
pub struct RpcResponse<'a> {
    /// `None` where the client could not read the id of the request.
    pub id: Option<RequestId<'a>>,
    /// The result, or the error object.
    pub outcome: Result<&'a RawValue, &'a RawValue>,
}

/// The id of a request: a string or an integer, echoed byte for byte. It is the raw JSON text, quotes included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId<'a>(Cow<'a, str>);

/// The fault of a message, and its id if that could be read.
#[derive(Debug)]
pub struct MalformedMessage<'a> {
    pub id: Option<RequestId<'a>>,
    pub error: RpcError,
}

impl<'a> MessageBody<'a> {
    /// Reads a body: a message, or a batch of messages. `Err` has the id of the request, if that could be read, and
    /// the error to answer with.
    pub fn read(bytes: &'a [u8]) -> Result<Self, MalformedMessage<'a>> {
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
            _ => RpcMessage::read(text).map(Self::One),
        }
    }
}

impl<'a> RpcMessage<'a> {
    /// Reads one object. Members unknown to JSON-RPC are ignored; one given twice is refused.
    pub fn read(text: &'a str) -> Result<Self, MalformedMessage<'a>> {
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
        if let Ok(envelope) = serde_json::from_str::<MessageEnvelope<'a, GivenParams<'a>>>(text) {
            return envelope.message();
        }
        // The params are kept raw, so that their faults can be reported with the request's own id.
        let envelope = serde_json::from_str::<MessageEnvelope<'a, RawParams<'a>>>(text);
        envelope
            .map_err(|error| from_json_error(text, &error))?
            .message()
    }
}

fn from_json_error<'a>(text: &'a str, error: &serde_json::Error) -> MalformedMessage<'a> {
    match error.classify() {
        Category::Data => MalformedMessage {
            id: only_id(text),
            error: RpcError::invalid_request(error.to_string()),
        },
        _ => anonymous(RpcError::parse(&error.to_string())),
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "P: Default + Deserialize<'de>"))]
struct MessageEnvelope<'a, P> {
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

impl<'a, P: Into<GivenParams<'a>>> MessageEnvelope<'a, P> {
    fn message(self) -> Result<RpcMessage<'a>, MalformedMessage<'a>> {
        let id = self.id.and_then(RequestId::read);
        let refuse = |message: &'static str| {
            Err(MalformedMessage {
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
            .is_some_and(|id| id.as_json().len() > RequestId::LENGTH_MAX)
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
                Some(outcome) => Ok(RpcMessage::Response(RpcResponse { id, outcome })),
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
            Some(id) => RpcMessage::Request {
                id,
                method,
                params: self.params.into(),
            },
            None => RpcMessage::Notification {
                method,
                params: self.params.into(),
            },
        })
    }
}

impl<'a> RequestId<'a> {
    /// A longer id is refused: ids in flight are kept, so they need a bound.
    pub const LENGTH_MAX: usize = 1024;

    /// Reads an id; `None` for anything but a string or an integer, since `null` is not an id.
    pub fn read(value: &'a RawValue) -> Option<Self> {
        (raw::is_integer(value) || raw::string(value).is_some())
            .then(|| Self(Cow::Borrowed(value.get())))
    }

    /// Returns the id as it was written, quotes included.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Copies the id if it is borrowed.
    pub fn into_owned(self) -> RequestId<'static> {
        RequestId(Cow::Owned(self.0.into_owned()))
    }

    /// Returns a key that is equal for equal ids however they are escaped; `1` and `"1"` have different keys.
    pub fn key(&self) -> Box<str> {
        if !self.0.contains('\\') {
            return self.0.as_ref().into();
        }
        match serde_json::from_str::<String>(&self.0) {
            Ok(text) => serde_json::Value::String(text).to_string().into(),
            Err(_) => self.0.as_ref().into(),
        }
    }
}

/// Returns the id of the one request that `bytes` hold, however little else of it is right. A batch has none.
pub fn request_id(bytes: &[u8]) -> Option<RequestId<'_>> {
    let id = match MessageBody::read(bytes) {
        Ok(MessageBody::One(RpcMessage::Request { id, .. })) => id,
        Err(MalformedMessage { id, .. }) => id?,
        Ok(_) => return None,
    };
    (id.as_json().len() <= RequestId::LENGTH_MAX).then_some(id)
}

/// Returns the id of a message that is otherwise unreadable.
fn only_id(text: &str) -> Option<RequestId<'_>> {
    #[derive(Deserialize)]
    struct OnlyId<'a> {
        #[serde(borrow, default, deserialize_with = "raw::present")]
        id: Option<&'a RawValue>,
    }
    serde_json::from_str::<OnlyId<'_>>(text)
        .ok()?
        .id
        .and_then(RequestId::read)
}

fn batch(text: &str) -> Result<Vec<&RawValue>, RpcError> {
    let BatchElements(elements) =
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
struct BatchElements<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for BatchElements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BatchVisitor;

        impl<'de> Visitor<'de> for BatchVisitor {
            type Value = BatchElements<'de>;

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
                Ok(BatchElements(elements))
            }
        }

        deserializer.deserialize_seq(BatchVisitor)
    }
}

fn anonymous<'a>(error: RpcError) -> MalformedMessage<'a> {
    MalformedMessage { id: None, error }
}

#[cfg(test)]
mod tests;
