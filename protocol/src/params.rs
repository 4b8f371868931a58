//! `params` and its `_meta`: every member any method reads, raw.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{LogLevel, RequestId, RpcError, raw};

/// `params` as a message has them.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each request, and nearly all are read"
)]
pub enum GivenParams<'a> {
    /// The params were read in the same pass as the envelope.
    Read(RequestParams<'a>),
    /// The params as they came, since the message has a fault, which is reported when they are read.
    Raw(Option<&'a RawValue>),
}

/// The members of `params` that some method or check reads. Many clients write null for what was not set, so null counts as
/// absent wherever a member may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestParams<'a> {
    /// Empty when absent.
    #[serde(
        borrow,
        default,
        rename = "_meta",
        deserialize_with = "raw::object_or_null"
    )]
    pub meta: RequestMeta<'a>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub cursor: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub request_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub input_responses: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub request_state: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub task_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub notifications: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "ref", deserialize_with = "raw::present")]
    pub reference: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub argument: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub context: Option<&'a RawValue>,
    /// The level of `logging/setLevel`.
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub level: Option<&'a RawValue>,
    /// The capabilities of `initialize`.
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub capabilities: Option<&'a RawValue>,
}

/// The members of `params._meta` that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestMeta<'a> {
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/protocolVersion",
        deserialize_with = "raw::present"
    )]
    pub protocol_version: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "io.modelcontextprotocol/clientCapabilities",
        deserialize_with = "raw::present"
    )]
    pub client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub client_info: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub progress_token: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub traceparent: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub tracestate: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/logLevel")]
    pub log_level: Option<&'a RawValue>,
    /// Whether a write is only to be planned.
    #[serde(
        borrow,
        default,
        rename = "dev.weir/plan",
        deserialize_with = "raw::present"
    )]
    pub plan: Option<&'a RawValue>,
    #[serde(
        borrow,
        default,
        rename = "dev.weir/idempotency-key",
        deserialize_with = "raw::present"
    )]
    pub idempotency_key: Option<&'a RawValue>,
}

impl<'a> GivenParams<'a> {
    /// Reads the params. Absent ones are empty; the method decides which members are required. Some clients write the params
    /// of a list as null, which counts as absent.
    pub fn read(self) -> Result<RequestParams<'a>, RpcError> {
        match self {
            Self::Read(params) => Ok(params),
            Self::Raw(None) => Ok(RequestParams::default()),
            Self::Raw(Some(params)) if params.get() == "null" => Ok(RequestParams::default()),
            Self::Raw(Some(params)) => RequestParams::read(params),
        }
    }

    /// Returns `true` if `_meta` names a protocol version.
    pub fn claim_modern(&self) -> bool {
        match self {
            Self::Read(params) => params.meta.protocol_version.is_some(),
            Self::Raw(params) => {
                let read = params.and_then(|params| RequestParams::read(params).ok());
                read.is_some_and(|params| params.meta.protocol_version.is_some())
            }
        }
    }
}

/// Reads only valid ones: faults of others are not errors of the envelope.
impl<'de: 'a, 'a> Deserialize<'de> for GivenParams<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        raw::object(deserializer).map(Self::Read)
    }
}

impl Default for GivenParams<'_> {
    fn default() -> Self {
        Self::Raw(None)
    }
}

impl<'a> RequestParams<'a> {
    fn read(params: &'a RawValue) -> Result<Self, RpcError> {
        #[derive(Deserialize)]
        struct OnlyMeta<'a> {
            #[serde(borrow, default, rename = "_meta", deserialize_with = "raw::present")]
            meta: Option<&'a RawValue>,
        }
        let wrong = |error| RpcError::malformed_params(format!("`params`: {error}"));
        let must_be_object =
            |place| RpcError::malformed_params(format!("`{place}` must be an object"));
        if !raw::is_object(params) {
            return Err(must_be_object("params"));
        }
        serde_json::from_str(params.get()).map_err(|error| {
            match serde_json::from_str::<OnlyMeta<'_>>(params.get()).map_err(wrong) {
                Err(error) => error,
                Ok(OnlyMeta { meta: Some(meta) }) if !raw::is_object(meta) => {
                    must_be_object("params._meta")
                }
                Ok(OnlyMeta { meta }) => {
                    match meta.map(|meta| serde_json::from_str::<RequestMeta<'_>>(meta.get())) {
                        Some(Err(error)) => {
                            RpcError::malformed_params(format!("`params._meta`: {error}"))
                        }
                        _ => wrong(error),
                    }
                }
            }
        })
    }
}

impl<'a> RequestMeta<'a> {
    /// Returns the token that asks for progress: a string or an integer, echoed as it came.
    pub fn progress_token(&self) -> Result<Option<&'a str>, RpcError> {
        match self.progress_token {
            None => Ok(None),
            Some(token) if token.get().len() > RequestId::LENGTH_MAX => {
                let most = RequestId::LENGTH_MAX;
                let message = format!("`params._meta.progressToken` is longer than {most} bytes");
                Err(RpcError::malformed_params(message))
            }
            Some(token) if raw::is_integer(token) || raw::string(token).is_some() => {
                Ok(Some(token.get()))
            }
            Some(_) => Err(RpcError::malformed_params(
                "`params._meta.progressToken` must be a string, or an integer of at most 32 digits",
            )),
        }
    }

    /// Returns `true` if the caller asks what a write would do.
    pub fn is_preview(&self) -> Result<bool, RpcError> {
        match self.plan.map(RawValue::get) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(_) => Err(RpcError::invalid_params(
                "`params._meta[\"dev.weir/plan\"]` must be true or false",
            )),
        }
    }

    /// Returns the key by which a write that is repeated is known.
    pub fn idempotency_key(&self) -> Result<Option<Cow<'a, str>>, RpcError> {
        let Some(key) = self.idempotency_key else {
            return Ok(None);
        };
        let key = raw::string(key).filter(|key| is_idempotency_key(key));
        key.map(Some).ok_or_else(|| {
            RpcError::invalid_params(
                "`params._meta[\"dev.weir/idempotency-key\"]` must be a string of 1 to 128 visible characters",
            )
        })
    }

    /// Returns the least severe log level that the caller of a modern request asked for.
    pub fn log_level(&self) -> Result<Option<LogLevel>, RpcError> {
        self.log_level
            .map(|level| log_level(level, "params._meta[\"io.modelcontextprotocol/logLevel\"]"))
            .transpose()
    }
}

/// Returns `true` for a text that can be an idempotency key.
pub fn is_idempotency_key(key: &str) -> bool {
    const LENGTH_MAX: usize = 128;
    (1..=LENGTH_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads a log level. `place` is the place of the word, for the error.
pub fn log_level(word: &RawValue, place: &str) -> Result<LogLevel, RpcError> {
    let level = raw::string(word).and_then(|word| LogLevel::find(&word));
    let levels = || LogLevel::ALL.map(LogLevel::name).join(", ");
    level.ok_or_else(|| RpcError::invalid_params(format!("`{place}` must be one of {}", levels())))
}

#[cfg(test)]
mod tests {
    use super::super::{MessageBody, RpcMessage};

    /// Returns the error about a request with these params, which has an id for it.
    fn refused(params: &str) -> Option<String> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        let Ok(MessageBody::One(RpcMessage::Request { params, .. })) =
            MessageBody::read(text.as_bytes())
        else {
            panic!("{text} is a request")
        };
        params.read().err().map(|error| {
            assert_eq!(error.code, -32602);
            error.message.into_owned()
        })
    }

    #[test]
    fn what_is_wrong_with_params_is_said_with_the_id() {
        for good in [
            "null",
            "{}",
            r#"{"_meta":{}}"#,
            r#"{"name":null,"unknown":[{}],"_meta":{"unknown":1}}"#,
            r#"{"_meta":null}"#,
        ] {
            assert_eq!(refused(good), None, "{good}");
        }
        for bad in ["[]", r#"[{},"a"]"#, "1", r#""a""#] {
            assert_eq!(
                refused(bad).as_deref(),
                Some("`params` must be an object"),
                "{bad}"
            );
        }
        for bad in ["[]", "[1,2]", r#""a""#] {
            let message = refused(&format!(r#"{{"_meta":{bad}}}"#));
            assert_eq!(
                message.as_deref(),
                Some("`params._meta` must be an object"),
                "{bad}"
            );
        }
        let twice = |params: &str, place: &str| {
            let message = refused(params).expect("a member is given twice");
            assert!(
                message.starts_with(&format!("{place}: duplicate field")),
                "{message}"
            );
        };
        twice(r#"{"name":"a","name":"b"}"#, "`params`");
        twice(r#"{"name":"a","n\u0061me":"b"}"#, "`params`");
        twice(r#"{"_meta":{},"_meta":{}}"#, "`params`");
        twice(
            r#"{"_meta":{"progressToken":1,"progressToken":2}}"#,
            "`params._meta`",
        );
    }
}
