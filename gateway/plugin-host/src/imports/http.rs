//! `weir:plugin/http`: web services, by the name of a connection. Base address and credentials never leave the host.

use std::{borrow::Cow, sync::Arc};

use serde::Deserialize;
use weir_connections::{ConnectionHandle, FailureCode, http::HttpConnection, mask::mask};

use super::{
    ARGUMENT_MAX_BYTES, BATCH_MAX, ImportAccess, Running, error, refused, side_by_side, too_large,
    wrong_kind,
};
use crate::{
    bindings::v0_1::weir::plugin::http::{Error, Host, Pair, Request, Response},
    guest::GuestState,
};

impl Host for GuestState {
    async fn send(&mut self, request: Request) -> wasmtime::Result<Result<Response, Error>> {
        self.count_source_calls(1)?;
        let running = match self.begin_send(request) {
            Ok(running) => running,
            Err(error) => return Ok(Err(error)),
        };
        Ok(self.wait(running).await.map(response).map_err(Error::from))
    }

    async fn send_many(
        &mut self,
        requests: Vec<Request>,
    ) -> wasmtime::Result<Vec<Result<Response, Error>>> {
        self.count_source_calls(requests.len())?;
        if requests.len() > BATCH_MAX {
            return Ok(requests
                .iter()
                .map(|_| Err(too_large("At most 64 requests at once.")))
                .collect());
        }
        let begun: Vec<_> = requests
            .into_iter()
            .map(|request| self.begin_send(request))
            .collect();
        let most = self.profile.limits.result_max_bytes;
        let answers = self
            .wait(side_by_side(begun, |answer| answer.body.len(), most))
            .await;
        Ok(answers
            .into_iter()
            .map(|answer| answer.map(response))
            .collect())
    }
}

impl GuestState {
    fn begin_send(
        &self,
        request: Request,
    ) -> Result<Running<weir_connections::http::HttpResponse>, Error> {
        check_size(&request)?;
        let deadline = self.call.deadline;
        let reads = request.method.eq_ignore_ascii_case("GET")
            || request.method.eq_ignore_ascii_case("HEAD");
        let access = if reads {
            ImportAccess::Read
        } else {
            ImportAccess::Write
        };
        let service = self.service(&request.connection, access)?;
        let request = weir_connections::http::HttpRequest {
            method: request.method,
            path: request.path,
            query: pairs(request.query),
            query_encoded: encoded_query(request.options.as_deref())?,
            headers: pairs(request.headers),
            trace: self.call.trace.clone(),
            body: request.body,
        };
        let send = async move { service.send(request, deadline).await };
        if reads {
            return Ok(Box::pin(send));
        }
        // A 4xx is the service's own "no". Anything else, a 5xx above all, may have done it, and so may a service whose
        // answer is too large.
        Ok(Box::pin(self.hand_over(send, |answer| match answer {
            Ok(answer) => !(400..500).contains(&answer.status),
            Err(error) => !refused(error),
        })))
    }

    fn service(
        &self,
        connection: &str,
        access: ImportAccess,
    ) -> Result<Arc<HttpConnection>, Error> {
        match self.connection(connection, access)? {
            ConnectionHandle::Http(service) => Ok(Arc::clone(service)),
            _ => Err(wrong_kind("not a web service", connection)),
        }
    }
}

/// Returns the part of the query that the guest has encoded itself.
fn encoded_query(options: Option<&str>) -> Result<Option<String>, Error> {
    #[derive(Default, Deserialize)]
    struct HttpOptions {
        query: Option<String>,
    }
    let options: HttpOptions = match options {
        Some(options) => serde_json::from_str(options).map_err(|_| {
            error(
                FailureCode::InvalidArguments,
                "The options of a request are a JSON object.",
            )
        })?,
        None => HttpOptions::default(),
    };
    Ok(options.query)
}

fn check_size(request: &Request) -> Result<(), Error> {
    let pairs = request
        .query
        .iter()
        .chain(&request.headers)
        .map(|pair| pair.name.len() + pair.value.len());
    let options = request.options.as_ref().map_or(0, String::len);
    let size = request.method.len() + request.path.len() + pairs.sum::<usize>() + options;
    if size + request.body.as_ref().map_or(0, Vec::len) > ARGUMENT_MAX_BYTES {
        return Err(too_large("A request has at most 1 MB."));
    }
    Ok(())
}

fn pairs(pairs: Vec<Pair>) -> Vec<(String, String)> {
    pairs
        .into_iter()
        .map(|pair| (pair.name, pair.value))
        .collect()
}

/// Hands an answer to the guest. Of an error it may pass on a part, which could cut a secret in two, so that one is masked
/// before. Another answer is masked when the guest passes it on: it may be sent back to the service, as it was.
fn response(answer: weir_connections::http::HttpResponse) -> Response {
    let headers = answer
        .headers
        .into_iter()
        .map(|(name, value)| Pair { name, value })
        .collect();
    let body = match answer.status {
        400.. => match mask(&String::from_utf8_lossy(&answer.body)) {
            Cow::Owned(masked) => masked.into_bytes(),
            Cow::Borrowed(_) => answer.body,
        },
        _ => answer.body,
    };
    Response {
        status: answer.status,
        headers,
        body,
    }
}
