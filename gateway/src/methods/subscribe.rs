//! `resources/subscribe` and `resources/unsubscribe`: legacy clients listen for resources one by one, until their session ends.

use super::{McpRequest, RequestScope};
use crate::{
    announcements::TooMany,
    call,
    catalogue::ItemSource,
    wire::{ResultWriter, RpcError, RpcMethod, raw},
};

pub(super) fn answer(scope: &RequestScope, request: &McpRequest<'_>) -> Result<Vec<u8>, RpcError> {
    let uri = request.params.uri.and_then(raw::string);
    let uri = uri.ok_or_else(|| RpcError::invalid_params("`params.uri` must be a string"))?;
    let Some(client) = &scope.client else {
        return Err(RpcError::invalid_request(
            "subscriptions are kept for a session, and this request has none",
        ));
    };
    let source = call::resource_source(&*scope.listing()?, &uri);
    if let Some(source) = &source
        && !call::notifies(&scope.gateway, source)
    {
        client.watched().remove(&uri);
        let (method, why) = (request.method.name(), unreported(source));
        return Err(RpcError::undeclared(method, false, &why));
    }
    if request.method == RpcMethod::Unsubscribe {
        client.watched().remove(&uri);
    } else if source.is_some() {
        client.watched().add(&uri).map_err(too_many)?;
    } else {
        return Err(RpcError::unknown_resource(&uri, false));
    }
    Ok(ResultWriter::new(&request.id, 64).finish())
}

/// Explains why changes of a resource are not reported.
fn unreported(source: &ItemSource) -> String {
    match source.target.upstream() {
        Some(_) => format!(
            "the server of `{}` does not declare `resources.subscribe`",
            source.contract
        ),
        None => "changes of records are not reported".to_owned(),
    }
}

pub(super) fn too_many(TooMany(most): TooMany) -> RpcError {
    RpcError::invalid_request(format!("a client listens for at most {most} resources"))
}
