//! Takes connections, few at a time, none for ever.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time;

use super::api;
use super::app::App;
use super::tls::Tls;

/// The longest head of a request.
const HEAD_MAX: usize = 16 * 1024;
/// How many fields it may have.
const FIELDS_MAX: usize = 100;
/// How long a client may take to send it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How many connections over the limit are told so at once, and how long each may take.
const REFUSALS_MAX: usize = 64;
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long connections have to end when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// After the system refused a connection.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// How many connections there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// All together.
    pub(crate) all: usize,
    /// From one address.
    pub(crate) per_peer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { all: 256, per_peer: 64 }
    }
}

/// How many connections each peer has.
type Peers = Arc<Mutex<BTreeMap<IpAddr, usize>>>;

/// Serves connections until `stop`, then lets those that are open finish.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    app: &Arc<App>,
    (limits, tls): (Limits, Option<Tls>),
    stop: impl Future<Output = ()>,
) {
    let peers = Peers::default();
    let (mut open, mut refused) = (JoinSet::new(), JoinSet::new());
    let busy = api::refusing(app);
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => match Seat::take(&peers, limits, from.ip()) {
                    Some(seat) => {
                        app.metrics.connections.inc();
                        let work = (router.clone(), app.clone(), tls.clone());
                        open.spawn(connection(stream, work, seat));
                    }
                    None => {
                        app.metrics.connections_refused.inc();
                        if refused.len() < REFUSALS_MAX {
                            let answer = answer(stream, (busy.clone(), app.clone(), tls.clone()));
                            refused.spawn(time::timeout(REFUSAL_TIMEOUT, answer));
                        }
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    time::sleep(AFTER_FAILURE).await;
                }
            },
            Some(_) = open.join_next(), if !open.is_empty() => {}
            Some(_) = refused.join_next(), if !refused.is_empty() => {}
        }
    }
    drop(listener);
    app.stopping.send_replace(true);
    let all_done = async { while open.join_next().await.is_some() {} };
    time::timeout(GRACE, all_done).await.ok();
}

/// What answers a connection, and by what it is encrypted.
type ConnectionWork = (Router, Arc<App>, Option<Tls>);

async fn connection(stream: TcpStream, work: ConnectionWork, _seat: Seat) {
    answer(stream, work).await;
}

/// Serves one connection until it ends, with TLS if there is any.
async fn answer(stream: TcpStream, (router, app, tls): ConnectionWork) {
    stream.set_nodelay(true).ok();
    match tls {
        None => serve(stream, router, app).await,
        Some(tls) => {
            if let Some(stream) = tls.accept(stream).await {
                serve(stream, router, app).await;
            }
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    app: Arc<App>,
) {
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_MAX)
        .max_headers(FIELDS_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // What goes wrong with a connection is the client's to notice.
        _ = connection.as_mut() => return,
        () = app.stopped() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.ok();
}

/// A place among the connections, free again when dropped.
struct Seat {
    peers: Peers,
    peer: IpAddr,
}

impl Seat {
    fn take(peers: &Peers, limits: Limits, peer: IpAddr) -> Option<Self> {
        let mut counts = peers.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let mine = counts.entry(peer).or_default();
        if all >= limits.all || *mine >= limits.per_peer {
            return None;
        }
        *mine += 1;
        Some(Self { peers: peers.clone(), peer })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.peer) {
            *count = count.saturating_sub(1);
        }
        counts.retain(|_, count| *count > 0);
    }
}
