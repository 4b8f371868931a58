//! Makes a session from an address: the connection, TLS if it is asked for, and the login.

use std::{io, path::Path};

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::{
    authentication::{
        md5_hash,
        sasl::{ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256},
    },
    message::{
        backend::{AuthenticationSaslBody, Message},
        frontend,
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

use super::{
    address::{PostgresqlAddress, PostgresqlHost},
    announced,
    session::{CancelKey, PostgresqlError, PostgresqlRefusal, PostgresqlSession, PostgresqlStream},
    tls::{self, SecuredStream},
};

/// The bound on a message of the login. A server that sends more is not PostgreSQL.
const MESSAGE_MAX_BYTES: usize = 64 * 1024;

/// Whether a login proves that it uses the TLS connection that this end sees, as `channel_binding` requests: then a proxy
/// with another certificate cannot pass it on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum BindingMode {
    Disable,
    /// Bind the login if the server offers it.
    #[default]
    Prefer,
    Require,
}

pub(super) async fn session(
    address: &PostgresqlAddress,
) -> Result<PostgresqlSession, PostgresqlError> {
    let SecuredStream { stream, end_point } = opened(address).await?;
    let mut login = PostgresqlLogin {
        stream,
        end_point,
        incoming: BytesMut::new(),
        outgoing: BytesMut::new(),
    };
    let settings = address
        .settings
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    frontend::startup_message(settings, &mut login.outgoing)?;
    login.send().await?;
    login.identify(address).await?;
    let mut key = CancelKey {
        process: 0,
        secret: 0,
    };
    loop {
        match login.next().await? {
            Message::BackendKeyData(body) => {
                key = CancelKey {
                    process: body.process_id(),
                    secret: body.secret_key(),
                };
            }
            Message::ReadyForQuery(_) => {
                return Ok(PostgresqlSession::new(login.stream, login.incoming, key));
            }
            _ => return Err(unexpected().into()),
        }
    }
}

/// Asks the server to end what a session runs. The request was sent when this returns.
pub(super) async fn cancel(address: &PostgresqlAddress, key: CancelKey) -> io::Result<()> {
    let mut stream = opened(address).await?.stream;
    let mut request = BytesMut::new();
    frontend::cancel_request(key.process, key.secret, &mut request);
    stream.write_all(&request).await?;
    stream.flush().await?;
    // The server answers nothing, and closes once it is done. A reset is as good.
    let _ = stream.read(&mut [0]).await;
    Ok(())
}

async fn opened(address: &PostgresqlAddress) -> io::Result<SecuredStream> {
    let stream: Box<dyn PostgresqlStream> = match &address.host {
        PostgresqlHost::Name(name) => {
            let stream = TcpStream::connect((name.as_str(), address.port)).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        PostgresqlHost::Folder(folder) => Box::new(
            UnixStream::connect(Path::new(folder).join(format!(".s.PGSQL.{}", address.port)))
                .await?,
        ),
    };
    tls::secured(stream, address).await
}

struct PostgresqlLogin {
    stream: Box<dyn PostgresqlStream>,
    /// The end point that the login can be bound to.
    end_point: Option<Vec<u8>>,
    incoming: BytesMut,
    outgoing: BytesMut,
}

impl PostgresqlLogin {
    async fn identify(&mut self, address: &PostgresqlAddress) -> Result<(), PostgresqlError> {
        let password = address.password.as_deref().unwrap_or_default().as_bytes();
        let mut is_bound = false;
        loop {
            match self.next().await? {
                // No password is sent, and no server is believed, before the login is bound.
                Message::AuthenticationOk
                | Message::AuthenticationCleartextPassword
                | Message::AuthenticationMd5Password(_)
                    if address.binding == BindingMode::Require && !is_bound =>
                {
                    return Err(unbound().into());
                }
                Message::AuthenticationOk => return Ok(()),
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password, &mut self.outgoing)?;
                    self.send().await?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(address.user.as_bytes(), password, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.outgoing)?;
                    self.send().await?;
                }
                Message::AuthenticationSasl(body) => {
                    is_bound = self
                        .identify_by_scram(&body, password, address.binding)
                        .await?;
                }
                _ => return Err(unsupported().into()),
            }
        }
    }

    /// Logs in by SCRAM, and returns whether the login is bound to the connection.
    async fn identify_by_scram(
        &mut self,
        body: &AuthenticationSaslBody,
        password: &[u8],
        wanted: BindingMode,
    ) -> Result<bool, PostgresqlError> {
        let mechanisms: Vec<&str> = body.mechanisms().collect()?;
        let end_point = self
            .end_point
            .take()
            .filter(|_| wanted != BindingMode::Disable);
        let is_bound = end_point.is_some() && mechanisms.contains(&SCRAM_SHA_256_PLUS);
        let (mechanism, binding) = match end_point {
            Some(end_point) if is_bound => (
                SCRAM_SHA_256_PLUS,
                ChannelBinding::tls_server_end_point(end_point),
            ),
            _ if wanted == BindingMode::Require => return Err(unbound().into()),
            // A server that offered it, and whose offer was taken out on the way, refuses this.
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        if !mechanisms.contains(&mechanism) {
            return Err(unsupported().into());
        }
        let mut scram = ScramSha256::new(password, binding);
        frontend::sasl_initial_response(mechanism, scram.message(), &mut self.outgoing)?;
        self.send().await?;
        let Message::AuthenticationSaslContinue(body) = self.next().await? else {
            return Err(unexpected().into());
        };
        scram.update(body.data())?;
        frontend::sasl_response(scram.message(), &mut self.outgoing)?;
        self.send().await?;
        let Message::AuthenticationSaslFinal(body) = self.next().await? else {
            return Err(unexpected().into());
        };
        scram.finish(body.data())?;
        Ok(is_bound)
    }

    async fn send(&mut self) -> io::Result<()> {
        self.stream.write_all_buf(&mut self.outgoing).await?;
        self.stream.flush().await
    }

    async fn next(&mut self) -> Result<Message, PostgresqlError> {
        loop {
            // The length is checked before parsing, which makes room for all that is announced.
            if announced(&self.incoming).is_some_and(|length| length > MESSAGE_MAX_BYTES) {
                return Err(unexpected().into());
            }
            match Message::parse(&mut self.incoming)? {
                Some(Message::NoticeResponse(_) | Message::ParameterStatus(_)) => {}
                Some(Message::ErrorResponse(body)) => {
                    return Err(PostgresqlError::Refused(
                        PostgresqlRefusal::from(&body).into(),
                    ));
                }
                Some(message) => return Ok(message),
                None => self.more().await?,
            }
        }
    }

    async fn more(&mut self) -> io::Result<()> {
        if self.incoming.len() > MESSAGE_MAX_BYTES {
            return Err(unexpected());
        }
        self.incoming.reserve(4096);
        match self.stream.read_buf(&mut self.incoming).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn unexpected() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "an answer to the login that was not expected",
    )
}

fn unbound() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "channel_binding=require: the server does not bind the login to this connection (it needs TLS, a password of \
         SCRAM-SHA-256, and a certificate that is signed by RSA or ECDSA)",
    )
}

fn unsupported() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "the server asks for a way to log in that is not supported",
    )
}
