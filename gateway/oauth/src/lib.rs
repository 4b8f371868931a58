//! A client of OAuth 2.1: discovery of a server's issuer, registration of the client, sign-in of a person, and tokens and
//! their renewal.
//!
//! Each function makes its requests and returns their result; nothing is kept. A sign-in is [`begin_sign_in`], the person's
//! visit, [`SignInAnswer`], and [`redeem_code`]. The caller keeps [`BegunSignIn`] in between.

mod discovery;
mod fault;
mod register;
mod request;
mod sign_in;
mod token;

pub use discovery::{
    AuthorizationServerMetadata, ProtectedResource, find_issuer, find_resource, names_metadata,
    needed_scopes,
};
pub use fault::OauthFault;
pub use register::{ClientMetadata, RegisteredClient, register_client};
pub use request::SecretText;
pub use sign_in::{BegunSignIn, SignInAnswer, SignInRequest, begin_sign_in};
pub use token::{
    AssertionRequest, TokenEndpoint, TokenExchange, TokenSet, exchange_token, redeem_assertion,
    redeem_code, renew_token, request_client_token, revoke_token,
};
pub use weir_connections::http::NetworkReach;
