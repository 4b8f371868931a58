//! Verifies signatures with ring, which is already linked for TLS. Nothing is signed here.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
    signature::{Error, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256,
    RsaPublicKeyComponents, UnparsedPublicKey,
};

/// The accepted signature algorithms of tokens.
pub(super) const ACCEPTED: [Algorithm; 4] = [
    Algorithm::RS256,
    Algorithm::PS256,
    Algorithm::ES256,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: refuse_to_sign,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// One public key, for one algorithm.
struct PublicKey {
    algorithm: Algorithm,
    key: DecodingKeyKind,
}

/// Makes ring the verifier of tokens in this process.
pub(super) fn install() {
    let _ = PROVIDER.install_default(); // it is there from the second time on
}

fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

/// Pairs a key with an algorithm of its own type; no other pair verifies anything.
fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let is_pair = match algorithm {
        Algorithm::RS256 | Algorithm::PS256 => key.family() == AlgorithmFamily::Rsa,
        Algorithm::ES256 => key.family() == AlgorithmFamily::Ec,
        Algorithm::EdDSA => key.family() == AlgorithmFamily::Ed,
        _ => false,
    };
    if !is_pair {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(PublicKey {
        algorithm: *algorithm,
        key: key.kind().clone(),
    }))
}

impl JwtVerifier for PublicKey {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for PublicKey {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let verified = match (self.algorithm, &self.key) {
            (Algorithm::RS256 | Algorithm::PS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let parameters = match self.algorithm {
                    Algorithm::RS256 => &RSA_PKCS1_2048_8192_SHA256,
                    _ => &RSA_PSS_2048_8192_SHA256,
                };
                let (n, e) = (without_zeros(n), without_zeros(e));
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}

/// Returns a number without the leading zeros that some issuers write.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}
