//! Signatures of identity tokens, checked by `ring`, which is here for TLS already.
//!
//! Only RS256 and ES256 are taken. A header that says anything else, `none` or `HS256` above all, finds
//! nobody who would check it.

use std::sync::LazyLock;

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

/// What is taken.
pub(super) const ALGORITHMS: [Algorithm; 2] = [Algorithm::RS256, Algorithm::ES256];

static PROVIDER: CryptoProvider = CryptoProvider {
    // Nothing is signed here.
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Set once for the process.
static INSTALLED: LazyLock<()> = LazyLock::new(|| {
    // Nobody else in this process reads such tokens.
    PROVIDER.install_default().ok();
});

/// Makes sure that signatures can be checked.
pub(super) fn install() {
    LazyLock::force(&INSTALLED);
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    // The key decides what it is for, not the token.
    match (algorithm, key.family(), key.kind()) {
        (Algorithm::RS256, AlgorithmFamily::Rsa, DecodingKeyKind::RsaModulusExponent { n, e }) => {
            Ok(Box::new(Rs256 { n: n.clone(), e: e.clone() }))
        }
        (Algorithm::ES256, AlgorithmFamily::Ec, DecodingKeyKind::SecretOrDer(point)) => {
            Ok(Box::new(Es256(point.clone())))
        }
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct Rs256 {
    n: Vec<u8>,
    e: Vec<u8>,
}

impl Verifier<Vec<u8>> for Rs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let key = RsaPublicKeyComponents { n: &self.n, e: &self.e };
        key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Rs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}

struct Es256(Vec<u8>);

impl Verifier<Vec<u8>> for Es256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.0);
        key.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for Es256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::ES256
    }
}
