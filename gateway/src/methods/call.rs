//! `tools/call`: from the request to the call path, and from its outcome to the answer.

use std::{borrow::Cow, io::Write as _, sync::Arc};

use tokio_util::sync::CancellationToken;
use weir_plugin_host::Progress;

use super::{Place, Request, list};
use crate::{
    call::{CallOutcome, CallRequest, ToolResult, call_tool},
    catalogue::Listing,
    wire::{Id, ResultWriter, RpcError, Version, error_answer, raw, string_room, write_string},
};

/// The call's receipt, in `_meta`.
const RECEIPT: &str = "dev.weir/receipt";
/// There where a write was done and could not be recorded.
const AUDIT: &str = "dev.weir/audit";

/// A call that has been read and not started.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub id: Id<'a>,
    /// JSON; present when the caller asks for progress.
    pub progress_token: Option<Cow<'a, str>>,
    tool: Cow<'a, str>,
    /// JSON.
    arguments: Option<Cow<'a, str>>,
    version: Version,
    trace: Option<Cow<'a, str>>,
}

impl<'a> Call<'a> {
    pub(super) fn read(request: Request<'a>) -> Result<Self, RpcError> {
        let Some(tool) = request.params.name.and_then(raw::string) else {
            return Err(RpcError::invalid_params("`params.name` must be a string"));
        };
        let arguments = match request.params.arguments {
            Some(arguments) if !raw::is_object(arguments) => {
                return Err(RpcError::invalid_params("`params.arguments` must be an object"));
            }
            arguments => arguments.map(|arguments| Cow::Borrowed(arguments.get())),
        };
        Ok(Self {
            id: request.id,
            progress_token: request.progress_token.map(Cow::Borrowed),
            tool,
            arguments,
            version: request.version,
            trace: request.trace,
        })
    }

    /// `None` when the call was cancelled: a cancelled call gets no answer.
    pub async fn run(
        &self,
        place: &Place,
        cancel: &CancellationToken,
        progress: Option<Arc<dyn Progress>>,
    ) -> Option<Vec<u8>> {
        let request = CallRequest {
            endpoint: place.endpoint.as_deref(),
            tool: &self.tool,
            arguments: self.arguments.as_deref(),
            progress,
            cancel,
            trace: self.trace.as_deref(),
            transport: place.transport,
            protocol: self.version.as_str(),
            timeout: None,
        };
        let outcome = call_tool(&place.gateway, &place.caller, request).await;
        if cancel.is_cancelled() {
            return None;
        }
        Some(match outcome {
            CallOutcome::UnknownTool => error_answer(Some(&self.id), &RpcError::unknown_tool(&self.tool)),
            CallOutcome::Complete(result) => self.answer(place, &result),
        })
    }

    /// `_meta`: the proof that the call is recorded, and what every modern result carries.
    fn meta(&self, answer: &mut ResultWriter, listing: Option<&Listing>, result: &ToolResult) {
        if result.receipt.is_none() && !result.unrecorded && listing.is_none() {
            return;
        }
        let meta = answer.member("_meta");
        meta.push(b'{');
        // Neither needs an escape: digits, letters, `:` and `-`.
        if let Some(receipt) = &result.receipt {
            write!(meta, "\"{RECEIPT}\":\"{receipt}\",").expect("memory can be written");
        }
        if result.unrecorded {
            write!(meta, "\"{AUDIT}\":\"not recorded\",").expect("memory can be written");
        }
        match listing {
            Some(listing) => list::write_server_member(meta, &listing.server),
            None => drop(meta.pop()),
        }
        meta.push(b'}');
    }

    pub fn into_owned(self) -> Call<'static> {
        fn owned(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        Call {
            id: self.id.into_owned(),
            progress_token: self.progress_token.map(owned),
            tool: owned(self.tool),
            arguments: self.arguments.map(owned),
            version: self.version,
            trace: self.trace.map(owned),
        }
    }

    fn answer(&self, place: &Place, result: &ToolResult) -> Vec<u8> {
        let mut answer = ResultWriter::new(&self.id, string_room(&result.text) + result.structured.len() + 384);
        if self.version.is_modern() {
            answer.string("resultType", "complete");
        }
        let content = answer.member("content");
        content.extend_from_slice(br#"[{"type":"text","text":"#);
        write_string(content, &result.text);
        content.extend_from_slice(b"}]");
        if self.version.is_structured() {
            // Written by us, value by value: on stdio a line break would end the message.
            debug_assert!(!result.structured.contains(['\n', '\r']), "a message is one line");
            answer.json("structuredContent", &result.structured);
        }
        answer.json("isError", if result.is_error { "true" } else { "false" });
        let listing = self.version.is_modern().then(|| place.listing().ok()).flatten();
        self.meta(&mut answer, listing.as_deref(), result);
        answer.finish()
    }
}
