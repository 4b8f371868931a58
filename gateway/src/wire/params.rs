//! `params` and its `_meta`: every member any method reads, raw, in one pass each.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{RpcError, raw};

/// The members of `params` that some method or check reads.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Params<'a> {
    #[serde(borrow, default, rename = "_meta", deserialize_with = "raw::present")]
    pub meta: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub uri: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub arguments: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub cursor: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub request_id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub notifications: Option<&'a RawValue>,
}

/// The members of `params._meta` that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta<'a> {
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion", deserialize_with = "raw::present")]
    pub protocol_version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientCapabilities", deserialize_with = "raw::present")]
    pub client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo", deserialize_with = "raw::present")]
    pub client_info: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "raw::present")]
    pub traceparent: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// Absent params are empty ones; which members must be there is the method's business.
    pub fn read(params: Option<&'a RawValue>) -> Result<Self, RpcError> {
        object(params, "params")
    }

    pub fn meta(&self) -> Result<Meta<'a>, RpcError> {
        object(self.meta, "params._meta")
    }
}

impl<'a> Meta<'a> {
    /// The token that asks for progress: a string or an integer, echoed as it came.
    pub fn progress_token(&self) -> Result<Option<&'a str>, RpcError> {
        match self.progress_token {
            None => Ok(None),
            Some(token) if raw::is_integer(token) || raw::string(token).is_some() => Ok(Some(token.get())),
            Some(_) => Err(RpcError::malformed_params("`params._meta.progressToken` must be a string or an integer")),
        }
    }
}

fn object<'a, T: Default + Deserialize<'a>>(value: Option<&'a RawValue>, place: &str) -> Result<T, RpcError> {
    match value {
        None => Ok(T::default()),
        // A derived struct would read an array by position.
        Some(value) if !raw::is_object(value) => {
            Err(RpcError::malformed_params(format!("`{place}` must be an object")))
        }
        Some(value) => {
            serde_json::from_str(value.get()).map_err(|error| RpcError::malformed_params(format!("`{place}`: {error}")))
        }
    }
}
