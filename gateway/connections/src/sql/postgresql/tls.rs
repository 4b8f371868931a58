//! TLS as `sslmode` requires. If the requirement cannot be met, there is no connection.

use std::{io, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use x509_cert::{Certificate, der::Decode as _};

use super::{
    address::{PostgresqlAddress, PostgresqlHost},
    session::PostgresqlStream,
};

/// The mode that `sslmode` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TlsMode {
    Disable,
    /// TLS where the server has it, with whatever certificate.
    Prefer,
    Require,
    /// The certificate comes from an authority that we trust.
    VerifyCa,
    /// The certificate comes from such an authority and names the host.
    VerifyFull,
}

/// Files in PEM, or their text.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsCertificates {
    pub(super) authorities: Option<String>,
    pub(super) own: Option<String>,
    pub(super) own_key: Option<String>,
}

/// A connection, and what a login over it can be bound to.
pub(super) struct SecuredStream {
    pub(super) stream: Box<dyn PostgresqlStream>,
    pub(super) end_point: Option<Vec<u8>>,
}

pub(super) async fn secured(
    mut stream: Box<dyn PostgresqlStream>,
    address: &PostgresqlAddress,
) -> io::Result<SecuredStream> {
    if address.tls == TlsMode::Disable {
        return Ok(SecuredStream {
            stream,
            end_point: None,
        });
    }
    // SSLRequest. Its answer is one byte, and nothing beyond that byte is read without TLS.
    stream
        .write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
        .await?;
    stream.flush().await?;
    match stream.read_u8().await? {
        b'S' => {}
        b'N' if address.tls == TlsMode::Prefer => {
            return Ok(SecuredStream {
                stream,
                end_point: None,
            });
        }
        b'N' => return Err(io::Error::other("the server does not support TLS")),
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the server does not support the request for TLS",
            ));
        }
    }
    let host = match &address.host {
        PostgresqlHost::Name(name) => name.as_str(),
        PostgresqlHost::Folder(_) => "localhost",
    };
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connector = TlsConnector::from(Arc::new(config(address).await?));
    let stream = connector.connect(name, stream).await?;
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let end_point = certificate.and_then(|certificate| end_point(certificate));
    Ok(SecuredStream {
        stream: Box::new(stream),
        end_point,
    })
}

/// Returns `tls-server-end-point` of RFC 5929: the digest of the server's certificate, by the hash of its signature,
/// and by SHA-256 in place of MD5 and SHA-1. It is `None` if the signature has no separate hash (Ed25519), or names
/// it in parameters (PSS): PostgreSQL does not bind a login to such a certificate either.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let digest = match parsed.signature_algorithm().oid.to_string().as_str() {
        // RSA with MD5, SHA-1 and SHA-256; ECDSA with SHA-1 and SHA-256; DSA with SHA-256.
        "1.2.840.113549.1.1.4"
        | "1.2.840.113549.1.1.5"
        | "1.2.840.113549.1.1.11"
        | "1.2.840.10045.4.1"
        | "1.2.840.10045.4.3.2"
        | "2.16.840.1.101.3.4.3.2" => Sha256::digest(certificate).to_vec(),
        // These are RSA and ECDSA with SHA-384 and SHA-512.
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => Sha384::digest(certificate).to_vec(),
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => Sha512::digest(certificate).to_vec(),
        _ => return None,
    };
    Some(digest)
}

/// Makes the configuration, again for each connection, so that an exchanged file is used.
async fn config(address: &PostgresqlAddress) -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let verifier: Arc<dyn ServerCertVerifier> = match address.tls {
        TlsMode::Disable | TlsMode::Prefer | TlsMode::Require => Arc::new(LenientVerifier {
            provider,
            authorities: None,
        }),
        TlsMode::VerifyCa => Arc::new(LenientVerifier {
            authorities: Some(verifier(address, &provider).await?),
            provider,
        }),
        TlsMode::VerifyFull => verifier(address, &provider).await?,
    };
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    match (&address.certificates.own, &address.certificates.own_key) {
        (Some(own), Some(key)) => {
            let key = PrivateKeyDer::from_pem_slice(&pem(key).await?).map_err(io::Error::other)?;
            builder
                .with_client_auth_cert(certificates(own).await?, key)
                .map_err(io::Error::other)
        }
        _ => Ok(builder.with_no_client_auth()),
    }
}

/// Makes the verifier, with the authorities of `sslrootcert`; without it, with those that browsers trust.
async fn verifier(
    address: &PostgresqlAddress,
    provider: &Arc<CryptoProvider>,
) -> io::Result<Arc<WebPkiServerVerifier>> {
    let mut roots = RootCertStore::empty();
    match &address.certificates.authorities {
        Some(authorities) => {
            for certificate in certificates(authorities).await? {
                roots.add(certificate).map_err(io::Error::other)?;
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(io::Error::other)
}

async fn certificates(input: &str) -> io::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_slice_iter(&pem(input).await?)
        .collect::<Result<_, _>>()
        .map_err(io::Error::other)
}

async fn pem(input: &str) -> io::Result<Vec<u8>> {
    if input.trim_start().starts_with("-----BEGIN") {
        Ok(input.as_bytes().to_vec())
    } else {
        tokio::fs::read(input).await
    }
}

/// Takes any certificate, or any of the authorities, whatever host it names.
#[derive(Debug)]
struct LenientVerifier {
    provider: Arc<CryptoProvider>,
    authorities: Option<Arc<WebPkiServerVerifier>>,
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        match authorities.verify_server_cert(certificate, intermediates, name, ocsp_response, now) {
            // The name is checked last.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
