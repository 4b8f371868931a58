//! The body of a POST: of the right type, whole, and within its bound.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header},
};
use futures::future::poll_immediate;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::wire::RpcError;

/// The bounds on a body before it is known who asks: only so much of it is read, and it is hardly waited for.
const UNKNOWN_CALLER_BYTES_MAX: usize = 64 << 10;
const UNKNOWN_CALLER_ARRIVAL_MAX: Duration = Duration::from_millis(250);
/// A body takes no longer to arrive.
const ARRIVAL_MAX: Duration = Duration::from_secs(30);

pub(super) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    bytes_max: usize,
) -> Result<Bytes, RpcError> {
    content_type(headers)?;
    let too_large = || {
        RpcError::refused(
            413,
            format!("the body is larger than {bytes_max} bytes ([http] body_max_bytes)"),
        )
    };
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > bytes_max as u64) {
        drain(body, bytes_max).await;
        return Err(too_large());
    }
    let mut collecting = Limited::new(&mut body, bytes_max).collect();
    // Nearly every body came together with its head: no timer for it.
    let collected = match poll_immediate(&mut collecting).await {
        Some(collected) => Ok(collected),
        None => tokio::time::timeout(ARRIVAL_MAX, collecting).await,
    };
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            drain(body, bytes_max).await;
            Err(too_large())
        }
        Ok(Err(_)) => Err(RpcError::invalid_request("the body broke off")),
        Err(_) => Err(RpcError::refused(
            408,
            format!("the body did not arrive within {} s", ARRIVAL_MAX.as_secs()),
        )),
    }
}

/// Reads the body of someone who is refused before it counts, for the id of the request: within narrow bounds, or not
/// at all.
pub(in crate::transport) async fn read_of_unknown_caller(
    headers: &HeaderMap,
    body: Body,
) -> Option<Bytes> {
    let declared = headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse::<usize>()
        .ok()?;
    if declared > UNKNOWN_CALLER_BYTES_MAX {
        return None;
    }
    let collecting = Limited::new(body, UNKNOWN_CALLER_BYTES_MAX).collect();
    let collected = tokio::time::timeout(UNKNOWN_CALLER_ARRIVAL_MAX, collecting)
        .await
        .ok()?;
    Some(collected.ok()?.to_bytes())
}

/// Reads on for a moment: a client that is still sending would see a reset connection instead of the answer.
async fn drain(body: Body, bytes_max: usize) {
    let mut rest = Limited::new(body, bytes_max.saturating_mul(4));
    let read = async { while let Some(Ok(_)) = rest.frame().await {} };
    let _ = tokio::time::timeout(Duration::from_secs(2), read).await;
}

fn content_type(headers: &HeaderMap) -> Result<(), RpcError> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let (first, more) = (
        values.next().and_then(|value| value.to_str().ok()),
        values.next().is_some(),
    );
    if more || !first.is_some_and(is_json) {
        return Err(RpcError::refused(
            415,
            "the Content-Type must be application/json",
        ));
    }
    let encoded = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .any(|value| value != "identity");
    match encoded {
        true => Err(RpcError::refused(
            415,
            "the body must not be compressed (Content-Encoding)",
        )),
        false => Ok(()),
    }
}

/// Returns `true` for `application/json`, which must be UTF-8 if it names a charset.
fn is_json(value: &str) -> bool {
    let mut parts = value.split(';').map(|part| part.trim_matches([' ', '\t']));
    let json = parts
        .next()
        .is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    json && parts.all(|parameter| match parameter.split_once('=') {
        Some((name, charset)) if name.eq_ignore_ascii_case("charset") => {
            charset.trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::is_json;

    #[test]
    fn content_types() {
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\";x=y",
            "application/json;",
        ] {
            assert!(is_json(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/json-rpc",
            "application/jsonx",
            "text/plain; application/json",
            "application/json; charset=utf-16",
            "application/x-www-form-urlencoded",
        ] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
