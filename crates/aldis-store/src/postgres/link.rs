//! The way to the database: one thread that talks to it over a pool of connections, and callers that
//! wait for their answers.
//!
//! The trait is synchronous and is called from plain threads and from those of other runtimes alike,
//! so nothing here runs on the thread of a caller but the waiting.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::Verifier;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::{NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::config::PostgresAddress;
use super::error::CallError;
use super::values::{Decoded, Values};
use crate::error::StoreError;

/// How long a caller waits for a connection, and then for its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often something that the database took back is tried.
const ATTEMPTS: usize = 5;
/// Turns are held with connections of their own: whoever holds one still has to commit.
const TURNS_MAX: usize = 8;

/// Whether a call may be repeated when its connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It only reads.
    Read,
    /// It may have been done already.
    Write,
}

/// A pool of connections, and the thread that serves them.
pub(super) struct Link {
    runtime: Option<Runtime>,
    pub(super) pool: Pool,
    pub(super) turns: Pool,
    pub(super) tls: Option<MakeRustlsConnect>,
    pub(super) address: PostgresAddress,
}

impl Link {
    /// Prepares the way, without connecting yet.
    pub(super) fn new(address: PostgresAddress) -> Result<Self, StoreError> {
        let failed = |doing, detail: String| {
            let location = address.location.clone();
            StoreError::Other { location, doing, detail }
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(|error| failed("start a thread", error.to_string()))?;
        let needs_tls =
            [&address.main, &address.direct].map(|it| it.get_ssl_mode() != SslMode::Disable);
        let tls = match needs_tls.contains(&true) {
            true => Some(tls(&address).map_err(|detail| failed("prepare TLS", detail))?),
            false => None,
        };
        let pool = |size| {
            let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let manager = match &tls {
                Some(tls) => Manager::from_config(address.main.clone(), tls.clone(), config),
                None => Manager::from_config(address.main.clone(), NoTls, config),
            };
            let builder = Pool::builder(manager).max_size(size);
            let builder = builder.runtime(deadpool_postgres::Runtime::Tokio1);
            let builder = builder.wait_timeout(Some(PATIENCE));
            // Also covers a server that accepts and then says nothing.
            builder.create_timeout(address.main.get_connect_timeout().copied()).build()
        };
        let build = |size| pool(size).map_err(|error| failed("prepare", error.to_string()));
        let (pool, turns) = (build(address.connections)?, build(TURNS_MAX)?);
        Ok(Self { runtime: Some(runtime), pool, turns, tls, address })
    }

    pub(super) fn location(&self) -> &str {
        &self.address.location
    }

    /// Puts the schema into a statement.
    pub(super) fn sql(&self, statement: &str) -> Arc<str> {
        statement.replace("{s}", &format!("\"{}\"", self.address.schema)).into()
    }

    pub(super) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }

    /// Sends a statement that only reads, and waits for its rows.
    pub(super) fn read<T>(
        &self,
        doing: &'static str,
        statement: &str,
        values: Values,
        understand: impl FnOnce(Vec<Row>) -> Decoded<T>,
    ) -> Result<T, StoreError> {
        self.call(doing, Repeat::Read, statement, values, understand)
    }

    /// Sends a statement and waits for its rows.
    pub(super) fn call<T>(
        &self,
        doing: &'static str,
        repeat: Repeat,
        statement: &str,
        values: Values,
        understand: impl FnOnce(Vec<Row>) -> Decoded<T>,
    ) -> Result<T, StoreError> {
        let (pool, statement) = (self.pool.clone(), self.sql(statement));
        let rows = self.wait(async move { ask(&pool, &statement, &values, repeat).await });
        let rows = rows.map_err(|error| {
            let error = error.sort(self.location(), doing);
            tracing::debug!(doing, %error, "the store failed");
            error
        })?;
        understand(rows).map_err(|detail| self.corrupt(detail))
    }

    /// Sends statements that are done together or not at all.
    pub(super) fn transaction(
        &self,
        doing: &'static str,
        calls: Vec<(&str, Values)>,
    ) -> Result<(), StoreError> {
        let pool = self.pool.clone();
        let calls: Vec<(Arc<str>, Values)> =
            calls.into_iter().map(|(statement, values)| (self.sql(statement), values)).collect();
        let done = self.wait(async move {
            let mut client = pool.get().await.map_err(CallError::Pool)?;
            let transaction = client.transaction().await.map_err(CallError::Database)?;
            for (statement, values) in &calls {
                let sent = transaction.query_typed(statement, &values.given()).await;
                sent.map_err(CallError::Database)?;
            }
            transaction.commit().await.map_err(CallError::Database)
        });
        done.map_err(|error| error.sort(self.location(), doing))
    }

    /// Has the thread do this, and waits until it is done.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        let Some(handle) = self.handle() else { return Err(CallError::Closed) };
        let (reply, answer) = mpsc::sync_channel(1);
        drop(handle.spawn(async move {
            // The caller waits below.
            reply.send(work.await).ok();
        }));
        answer.recv().unwrap_or(Err(CallError::Closed))
    }

    pub(super) fn corrupt(&self, detail: String) -> StoreError {
        StoreError::Corrupt { location: self.location().to_owned(), detail }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it is forbidden on the threads of other runtimes.
            runtime.shutdown_background();
        }
    }
}

/// Sends a statement, again where nothing can have come of it.
pub(super) async fn ask(
    pool: &Pool,
    statement: &str,
    values: &Values,
    repeat: Repeat,
) -> Result<Vec<Row>, CallError> {
    let mut attempt = 1;
    loop {
        let result = ask_once(pool, statement, values).await;
        match result {
            Err(error)
                if attempt < ATTEMPTS
                    && (error.was_rolled_back()
                        || repeat == Repeat::Read && attempt == 1 && error.lost_connection()) =>
            {
                attempt += 1;
            }
            result => return result,
        }
    }
}

async fn ask_once(pool: &Pool, statement: &str, values: &Values) -> Result<Vec<Row>, CallError> {
    let client = pool.get().await.map_err(CallError::Pool)?;
    let given = values.given();
    match tokio::time::timeout(PATIENCE, client.query_typed(statement, &given)).await {
        Ok(result) => result.map_err(CallError::Database),
        Err(_) => {
            // Its answer may still come: nobody else may take it for theirs.
            drop(Object::take(client));
            Err(CallError::TimedOut)
        }
    }
}

/// Certificates are checked as everywhere in this workspace: by the roots of the system, and by those
/// that the address names.
fn tls(address: &PostgresAddress) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let extra = match &address.root_certificates {
        Some(file) => CertificateDer::pem_file_iter(file)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?,
        None => Vec::new(),
    };
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider));
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier.map_err(|error| error.to_string())?))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
