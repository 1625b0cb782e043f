//! Signatures by which a receiver knows that a notice is ours: Standard Webhooks, symmetric.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::error::CommandError;

/// What a written secret begins with.
const PREFIX: &str = "whsec_";
/// How many bytes a secret may have.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// The longest file that is read.
const FILE_BYTES_MAX: u64 = 4 * 1024;

/// What only we and the receiver know.
pub(crate) struct Secret(Vec<u8>);

impl Secret {
    /// Reads a secret from a file that nobody else can read.
    ///
    /// # Errors
    ///
    /// Fails if the file does not hold a secret, or could be read by others.
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        let failed = |error: std::io::Error| CommandError::file(path, &error);
        let metadata = fs::metadata(path).map_err(failed)?;
        let wrong = |what: &str, help: &str| {
            Err(CommandError::new(format!("`{}` {what}", path.display())).with_help(help))
        };
        if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
            return wrong("is no file with a secret", MAKE_ONE);
        }
        #[cfg(unix)]
        if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0 {
            return wrong("can be read by others", "make it yours alone: chmod 600 FILE");
        }
        let text = fs::read_to_string(path).map_err(failed)?;
        match Self::parse(text.trim()) {
            Some(secret) => Ok(secret),
            None => wrong("holds no secret of the form whsec_BASE64, 24 to 64 bytes", MAKE_ONE),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        BYTES.contains(&bytes.len()).then_some(Self(bytes))
    }

    /// Signs a body that is sent under an id at a time, in seconds since 1970.
    pub(crate) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        // A key of any length is taken.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.0) else { return String::new() };
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

const MAKE_ONE: &str = "make one: printf 'whsec_%s' \"$(openssl rand -base64 32)\" > FILE";

#[cfg(test)]
mod tests {
    //! The signature is the one that others compute.

    use super::*;

    #[test]
    fn signs_as_the_standard_says() {
        // The example of the specification's own libraries.
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed =
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b"{\"test\": 2432232314}");
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_are_long_written_plainly_and_private() {
        for (text, taken) in [
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", true),
            ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", false),
            ("whsec_c2hvcnQ=", false),
            ("whsec_not base64", false),
            ("", false),
        ] {
            assert_eq!(Secret::parse(text).is_some(), taken, "{text}");
        }
        let long = STANDARD.encode([7; 65]);
        assert!(Secret::parse(&format!("whsec_{long}")).is_none());
    }
}
