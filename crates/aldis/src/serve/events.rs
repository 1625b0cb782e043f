//! The event stream: every decision, in order, as server-sent events in CloudEvents envelopes.
//!
//! The store is the only source. One reader puts what is new into words, once for all clients; the
//! latest of it is kept in memory, and whoever is further behind reads the store. A client that comes
//! back says which event it had last and goes on behind it; one that is too slow is cut off and comes
//! back. Nothing is queued for anybody.

mod recent;

use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use aldis_core::time::Timestamp;
use aldis_store::{Decision, DecisionFilter, RunId};
use axum::body::{Body, Bytes};
use hyper::body::Frame;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::time;

use self::recent::{Piece, Recent};
use super::app::App;
use super::error::ApiError;
use super::metrics::add;

/// Other processes decide too, and ring no bell.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// So long new decisions gather before all clients are woken for them.
const GATHER: Duration = Duration::from_millis(10);
/// How many decisions are read at once.
const PAGE: usize = 200;
/// How many pieces wait for a client: with the one being sent, a quarter of a megabyte.
const BACKLOG: usize = 3;
/// How long a client may leave them waiting.
const PATIENCE: Duration = Duration::from_secs(10);
/// A quiet stream says so often that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What is new, and a bell for everybody who follows.
#[derive(Debug)]
pub(super) struct Bus {
    recent: Mutex<Recent>,
    /// For those who follow everything.
    newest: watch::Sender<u64>,
    /// For those who follow one run, so that nobody is woken for the others.
    runs: Mutex<HashMap<RunId, watch::Sender<u64>>>,
}

impl Default for Bus {
    fn default() -> Self {
        let newest = watch::Sender::new(0);
        Self { recent: Mutex::default(), newest, runs: Mutex::default() }
    }
}

impl Bus {
    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<u64>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether anybody follows.
    fn is_followed(&self) -> bool {
        let mut runs = self.runs();
        runs.retain(|_, bell| bell.receiver_count() > 0);
        !runs.is_empty() || self.newest.receiver_count() > 0
    }

    /// Returns the bell for a run, or for everything.
    fn subscribe(&self, run: Option<&RunId>) -> watch::Receiver<u64> {
        let Some(run) = run else { return self.newest.subscribe() };
        let mut runs = self.runs();
        let bell = runs.entry(run.clone()).or_insert_with(|| watch::Sender::new(0));
        bell.subscribe()
    }

    /// Rings for everybody: something may have been decided before anybody watched.
    fn ring_all(&self, newest: u64) {
        self.newest.send_replace(newest);
        for bell in self.runs().values() {
            bell.send_replace(newest);
        }
    }

    /// Keeps what is new and rings for those who want it.
    fn tell(&self, pieces: &[Arc<Piece>]) {
        let mut recent = self.recent();
        pieces.iter().for_each(|piece| recent.push(piece.clone()));
        drop(recent);
        let Some(last) = pieces.last() else { return };
        self.newest.send_replace(last.last());
        let runs = self.runs();
        for (seq, run) in pieces.iter().flat_map(|piece| piece.told()) {
            if let Some(bell) = runs.get(run) {
                bell.send_replace(seq);
            }
        }
    }
}

/// Watches for new decisions, while anybody follows.
pub(super) async fn publish(app: Arc<App>) {
    let mut followed = false;
    loop {
        let was_followed = followed;
        followed = app.bus.is_followed();
        // A store that fails now is asked again soon.
        if followed && !was_followed {
            followed = begin(&app).await.is_ok();
        }
        if followed {
            read_new(&app).await.ok();
        }
        tokio::select! {
            () = app.stopped() => return,
            () = app.committed.bus.notified() => {}
            () = time::sleep(LOOK_EVERY) => {}
        }
        time::sleep(GATHER).await;
    }
}

/// Begins with what comes now: whoever wants more reads the store.
async fn begin(app: &Arc<App>) -> Result<(), ApiError> {
    let newest = newest(app).await?;
    app.bus.recent().begin(newest);
    app.bus.ring_all(newest);
    Ok(())
}

/// Puts what is new into words.
async fn read_new(app: &Arc<App>) -> Result<(), ApiError> {
    loop {
        let after = app.bus.recent().newest();
        let page = app.keep(move |keeper| {
            let page = keeper.store().decisions_after(None, after, PAGE)?;
            Ok((page.len(), recent::pieces(&page)))
        });
        let (read, pieces) = page.await?;
        app.bus.tell(&pieces);
        if read < PAGE {
            return Ok(());
        }
    }
}

async fn newest(app: &Arc<App>) -> Result<u64, ApiError> {
    let filter = DecisionFilter { limit: 1, ..DecisionFilter::default() };
    let last = app.keep(move |keeper| Ok(keeper.store().decisions(&filter)?)).await?;
    Ok(last.first().map_or(0, |decision| decision.seq))
}

/// Opens a stream of the decisions after `after`, of one run or all; of those to come if nothing is
/// said.
pub(super) async fn open(
    app: &Arc<App>,
    run: Option<RunId>,
    after: Option<u64>,
) -> Result<Body, ApiError> {
    let newest = newest(app).await?;
    let (pieces, feed) = mpsc::channel(BACKLOG);
    let mut follower = Follower { app: app.clone(), run, last: after.unwrap_or(newest), pieces };
    let gap = match after {
        Some(after) => follower.gap(after, newest).await?,
        None => None,
    };
    tokio::spawn(async move {
        follower.app.metrics.followers.fetch_add(1, Ordering::Relaxed);
        let cut = follower.follow(gap).await;
        follower.app.metrics.followers.fetch_sub(1, Ordering::Relaxed);
        if cut == Cut::TooSlow {
            add(&follower.app.metrics.followers_cut);
        }
    });
    Ok(Body::new(Feed(feed)))
}

/// Somebody who follows.
struct Follower {
    app: Arc<App>,
    run: Option<RunId>,
    last: u64,
    pieces: mpsc::Sender<Bytes>,
}

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Gone,
    TooSlow,
}

impl Follower {
    /// Returns what to say if decisions that the client has not seen are no longer there.
    async fn gap(&mut self, after: u64, newest: u64) -> Result<Option<String>, ApiError> {
        let first = self.app.keep(|keeper| Ok(keeper.store().decisions_after(None, 0, 1)?)).await?;
        let oldest = first.first().map_or(0, |decision| decision.seq);
        // An id from another database is as lost as one that is too old.
        let lost = after > newest || after + 1 < oldest;
        if after > newest {
            self.last = newest;
        }
        let data = json!({ "after": after, "oldest": oldest, "newest": newest });
        Ok(lost.then(|| format!("event: gap\ndata: {data}\n\n")))
    }

    async fn follow(&mut self, gap: Option<String>) -> Cut {
        let mut bus = self.app.bus.subscribe(self.run.as_ref());
        let hello = format!("retry: 2000\n\n{}", gap.unwrap_or_default());
        let mut sent = self.send(hello).await;
        while sent.is_ok() {
            sent = self.catch_up().await;
            if sent.is_err() {
                break;
            }
            let app = self.app.clone();
            tokio::select! {
                () = app.stopped() => return Cut::Gone,
                () = self.pieces.closed() => return Cut::Gone,
                changed = bus.changed() => if changed.is_err() { return Cut::Gone },
                () = time::sleep(HEARTBEAT) => sent = self.send(":\n\n".to_owned()).await,
            }
        }
        sent.err().unwrap_or(Cut::Gone)
    }

    /// Sends everything there is.
    async fn catch_up(&mut self) -> Result<(), Cut> {
        loop {
            let known = self.app.bus.recent().after(self.last);
            if let Some(pieces) = known {
                return self.tell(pieces).await;
            }
            // A store that fails now is asked again with the next decision.
            let Ok((pieces, up_to)) = self.stored().await else { return Ok(()) };
            self.tell(pieces).await?;
            self.last = self.last.max(up_to);
        }
    }

    /// Reads a page of what is no longer in memory. Up to the number that is returned, there is
    /// nothing else.
    async fn stored(&self) -> Result<(Vec<Arc<Piece>>, u64), ApiError> {
        let newest = self.app.bus.recent().newest();
        let (run, after) = (self.run.clone(), self.last);
        let read = self.app.keep(move |keeper| {
            let page = keeper.store().decisions_after(run.as_ref(), after, PAGE)?;
            let up_to = if page.len() < PAGE { newest } else { 0 };
            Ok((recent::pieces(&page), up_to))
        });
        read.await
    }

    /// Sends what the client has not got yet.
    async fn tell(&mut self, pieces: Vec<Arc<Piece>>) -> Result<(), Cut> {
        for piece in pieces {
            let text = piece.after(self.run.as_ref(), self.last);
            self.last = self.last.max(piece.last());
            if !text.is_empty() {
                self.send(text).await?;
            }
        }
        Ok(())
    }

    async fn send(&self, text: impl Into<Bytes>) -> Result<(), Cut> {
        match time::timeout(PATIENCE, self.pieces.send(text.into())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Cut::Gone),
            Err(_) => Err(Cut::TooSlow),
        }
    }
}

/// One decision as a server-sent event. JSON escapes line ends, so the data are one line.
fn message(decision: &Decision) -> String {
    let envelope = serde_json::to_string(&Envelope::of(decision)).unwrap_or_default();
    format!("id: {}\nevent: decision\ndata: {envelope}\n\n", decision.seq)
}

/// A decision in a CloudEvents envelope.
#[derive(Debug, Serialize)]
struct Envelope<'d> {
    specversion: &'static str,
    id: String,
    source: &'static str,
    subject: &'d str,
    #[serde(rename = "type")]
    kind: String,
    time: Timestamp,
    datacontenttype: &'static str,
    /// As it is stored.
    data: Option<&'d RawValue>,
}

impl<'d> Envelope<'d> {
    fn of(decision: &'d Decision) -> Self {
        #[derive(Default, Deserialize)]
        struct Ruled<'d> {
            #[serde(borrow)]
            rule: Option<Cow<'d, str>>,
        }
        let ruled: Ruled<'_> = serde_json::from_str(&decision.body).unwrap_or_default();
        let rule = ruled.rule.as_deref().unwrap_or("decision").replace('/', ".");
        Self {
            specversion: "1.0",
            id: decision.seq.to_string(),
            source: "/v1/runs",
            subject: decision.run.as_str(),
            kind: format!("dev.aldis.{rule}"),
            time: decision.at,
            datacontenttype: "application/json",
            data: serde_json::from_str(&decision.body).ok(),
        }
    }
}

/// The body of a stream.
struct Feed(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
