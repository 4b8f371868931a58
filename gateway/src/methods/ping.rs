//! `ping`: an empty result.

use super::Request;
use crate::wire::ResultWriter;

pub(super) fn answer(request: &Request<'_>) -> Vec<u8> {
    ResultWriter::new(&request.id, 0).finish()
}
