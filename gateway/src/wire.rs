//! The messages of MCP, with the errors that only the gateway has.

pub use weir_protocol::*;

use crate::identity::AuthenticationError;

/// The error for a credential that identifies no caller, or that cannot be checked now.
impl From<AuthenticationError> for RpcError {
    fn from(refused: AuthenticationError) -> Self {
        match refused.is_temporary() {
            true => Self::no_room(503, refused.message()),
            false => Self::refused(401, refused.message()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::FailureCode;

    #[test]
    fn a_request_that_comes_too_often_has_the_code_of_such_a_call() {
        let data = RpcError::rate_limited(1).data.expect("data");
        assert!(data.contains(&format!(r#""code":"{}""#, FailureCode::RateLimited.label())));
    }
}
