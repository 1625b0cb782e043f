//! Waits until anybody commits: this process is woken at once, other processes by a notification.
//!
//! `NOTIFY` inside a commit would let only one transaction of the whole server commit at a time. So
//! commits only count, in the table `changes`, and one task of each process tells the others that there
//! is something new, at most every 10 ms. The count is the truth; a notification that is lost, because
//! its sender was killed or a pooler swallowed it, costs a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use deadpool_postgres::Pool;
use tokio::sync::Notify;
use tokio::sync::oneshot;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, Socket};

use super::link::Link;
use super::read::first;
use super::values::{Columns, Values};
use crate::cursor::ChangeStamp;
use crate::error::StoreError;

/// The least time between two notifications of one process.
const PAUSE: Duration = Duration::from_millis(10);
/// How often those who wait look for themselves.
const POLL: Duration = Duration::from_secs(1);
/// How long a listener that was cut off waits before it connects again.
const RECONNECT: Duration = Duration::from_secs(1);
/// How long the last notification may take when the store is closed.
const LAST: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(super) struct Feed {
    shared: Arc<Wakeups>,
    /// Whether somebody has waited yet. Those who never do need no listener.
    listening: AtomicBool,
}

#[derive(Debug, Default)]
struct Wakeups {
    /// Counts reasons to look again.
    reasons: Mutex<u64>,
    woken: Condvar,
    /// Whether there are commits that others have not been told of.
    news: AtomicBool,
    tell: Notify,
}

impl Wakeups {
    fn wake(&self) {
        *self.reasons.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.woken.notify_all();
    }
}

impl Feed {
    /// Starts the task that tells others.
    pub(super) fn start(link: &Link) -> Self {
        let shared = Arc::new(Wakeups::default());
        if let Some(handle) = link.handle() {
            let (shared, pool) = (Arc::clone(&shared), link.pool.clone());
            drop(handle.spawn(tell(shared, pool, channel(link))));
        }
        Self { shared, listening: AtomicBool::new(false) }
    }

    /// Wakes whoever waits, here and elsewhere, after a commit in this process.
    pub(super) fn committed(&self) {
        let Wakeups { news, tell, .. } = &*self.shared;
        news.store(true, Ordering::SeqCst);
        tell.notify_one();
        self.shared.wake();
    }

    /// Returns what [`committed`](Self::committed) does, for a callback.
    pub(super) fn on_commit(&self) -> impl Fn() + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move || {
            shared.news.store(true, Ordering::SeqCst);
            shared.tell.notify_one();
            shared.wake();
        }
    }

    pub(super) fn change(link: &Link) -> Result<ChangeStamp, StoreError> {
        let sql = "SELECT sum(count)::bigint FROM {s}.changes";
        let stamp = |columns: &mut Columns<'_>| columns.number();
        let count = link.read("look for changes", sql, Values::default(), first(stamp))?;
        Ok(ChangeStamp::of(0, count.unwrap_or_default()))
    }

    pub(super) fn wait(
        &self,
        link: &Link,
        after: &ChangeStamp,
        timeout: Duration,
    ) -> Result<ChangeStamp, StoreError> {
        self.listen(link);
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let seen = *self.reasons();
            let stamp = Self::change(link)?;
            let left = deadline.map_or(POLL, |at| at.saturating_duration_since(Instant::now()));
            if stamp != *after || left.is_zero() {
                return Ok(stamp);
            }
            let same = |reasons: &mut u64| *reasons == seen;
            let waited = self.shared.woken.wait_timeout_while(self.reasons(), left.min(POLL), same);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn reasons(&self) -> std::sync::MutexGuard<'_, u64> {
        self.shared.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the listener, once.
    fn listen(&self, link: &Link) {
        if self.listening.swap(true, Ordering::SeqCst) {
            return;
        }
        let Some(handle) = link.handle() else { return };
        let (shared, channel) = (Arc::clone(&self.shared), channel(link));
        let config = link.address.direct.clone();
        drop(match link.tls.clone() {
            Some(tls) => handle.spawn(listen(shared, config, tls, channel)),
            None => handle.spawn(listen(shared, config, NoTls, channel)),
        });
    }

    /// Tells others nothing more.
    pub(super) fn forget(&self) {
        self.shared.news.store(false, Ordering::SeqCst);
    }

    /// Tells others what they were not told yet, before the process ends.
    pub(super) fn finish(&self, link: &Link) {
        if !self.shared.news.swap(false, Ordering::SeqCst) {
            return;
        }
        let (pool, channel) = (link.pool.clone(), channel(link));
        let told = link.wait(async move {
            // Nobody depends on it: the others look for themselves.
            drop(tokio::time::timeout(LAST, notify(&pool, &channel)).await);
            Ok(())
        });
        drop(told);
    }
}

/// The channel of the stores that share this schema.
fn channel(link: &Link) -> String {
    format!("aldis_{}", link.address.schema)
}

async fn tell(shared: Arc<Wakeups>, pool: Pool, channel: String) {
    loop {
        shared.tell.notified().await;
        if shared.news.swap(false, Ordering::SeqCst) {
            notify(&pool, &channel).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn notify(pool: &Pool, channel: &str) {
    let Ok(client) = pool.get().await else { return };
    let told = client.query_typed("SELECT pg_notify($1, '')", &[(&channel, Type::TEXT)]).await;
    if let Err(error) = told {
        tracing::debug!(%error, "cannot tell others of a change; they look every second");
    }
}

/// Listens for as long as the store is open.
async fn listen<T>(shared: Arc<Wakeups>, config: Config, tls: T, channel: String)
where
    T: MakeTlsConnect<Socket> + Clone + Send + 'static,
    T::Stream: Send,
    T::TlsConnect: Send,
    <T::TlsConnect as tokio_postgres::tls::TlsConnect<Socket>>::Future: Send,
{
    loop {
        if let Ok((client, connection)) = config.connect(tls.clone()).await {
            let (over, heard) = oneshot::channel();
            let task = tokio::spawn(follow(connection, Arc::clone(&shared), over));
            if ask_to_listen(&client, &channel).await.is_ok() {
                // What was committed before is news to those who wait.
                shared.wake();
                heard.await.ok();
            }
            task.abort();
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn ask_to_listen(client: &Client, channel: &str) -> Result<(), tokio_postgres::Error> {
    client.batch_execute(&format!("LISTEN \"{channel}\"")).await
}

/// Passes notifications on until the connection ends.
async fn follow<S, T>(
    mut connection: Connection<S, T>,
    shared: Arc<Wakeups>,
    over: oneshot::Sender<()>,
) where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        let message = std::future::poll_fn(|context| connection.poll_message(context)).await;
        match message {
            Some(Ok(AsyncMessage::Notification(_))) => shared.wake(),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => break,
        }
    }
    over.send(()).ok();
}
