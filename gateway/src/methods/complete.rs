//! `completion/complete`: limited and counted, but not recorded, since clients send it at every keystroke.

use super::{McpAnswer, McpCall, RequestScope, item, meta};
use crate::{
    call::{CallRequest, ErrorForm, complete},
    catalogue::CatalogueViewer,
    wire::{ResultWriter, RpcError},
};

/// Answers a completion. The texts are `ref`, `argument` and `context`, as the client wrote them.
pub(super) async fn answer(
    call: &McpCall<'_>,
    scope: &RequestScope,
    request: CallRequest<'_>,
    (reference, argument, context): (&str, &str, Option<&str>),
) -> McpAnswer {
    let snapshot = request.snapshot;
    let completed = complete(
        &scope.gateway,
        &scope.caller,
        &request,
        reference,
        argument,
        context,
    )
    .await;
    let completed = match completed {
        Ok(Some(completed)) => completed,
        Ok(None) => {
            let (method, modern) = (call.method.name(), call.version.is_modern());
            let why = "what `params.ref` names is of a server or a contract that completes nothing";
            return McpAnswer::refused(&call.id, &RpcError::undeclared(method, modern, why));
        }
        Err(error) => {
            let error = match error.form {
                ErrorForm::UnknownTool => {
                    RpcError::invalid_params("`params.ref` names nothing that is listed here")
                }
                _ => item::failed(&error, None),
            };
            return McpAnswer::refused(&call.id, &error);
        }
    };
    let mut result = ResultWriter::new(&call.id, 512);
    if call.version.is_modern() {
        result.string("resultType", "complete");
    }
    result.json("completion", &completed.to_string());
    let listing = snapshot
        .catalogue
        .listing(&scope.endpoint, CatalogueViewer::Caller(&scope.caller));
    if let Some(listing) = listing.filter(|_| call.version.is_modern()) {
        meta::write_server(&mut result, &listing.server);
    }
    result.finish().into()
}
