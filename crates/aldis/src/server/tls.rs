//! TLS of the server's own: a certificate and its key, from the files that the settings name.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::error::CommandError;
use crate::settings::config::Serve;

/// How long a client may take to agree on keys.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Encrypts connections.
#[derive(Clone)]
pub(super) struct Tls(TlsAcceptor);

impl Tls {
    /// Reads the certificate and its key; nothing if the settings name none.
    ///
    /// # Errors
    ///
    /// Fails if only one of them is named, a file cannot be read, or they do not belong together.
    pub(super) fn of(serve: &Serve) -> Result<Option<Self>, CommandError> {
        let (certificate, key) = match (&serve.tls_cert, &serve.tls_key) {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => return Ok(None),
            _ => {
                return Err(CommandError::new("TLS needs a certificate and its key")
                    .with_help("set both serve.tls_cert and serve.tls_key"));
            }
        };
        Self::read(certificate, key).map(Some)
    }

    fn read(certificate: &PathBuf, key: &Path) -> Result<Self, CommandError> {
        let wrong = |path: &Path, error: &dyn std::fmt::Display| {
            CommandError::new(format!("cannot use `{}`: {error}", path.display()))
                .with_help("serve.tls_cert and serve.tls_key name PEM files that belong together")
        };
        let chain = CertificateDer::pem_file_iter(certificate)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| wrong(certificate, &error))?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(certificate, &error))?
            .with_no_client_auth()
            .with_single_cert(chain, secret)
            .map_err(|error| wrong(certificate, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Agrees with a client on keys; nothing if it does not, or takes too long.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        match time::timeout(HANDSHAKE_TIMEOUT, self.0.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "no TLS with a client");
                None
            }
            Err(_) => None,
        }
    }
}
