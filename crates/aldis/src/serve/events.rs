//! The event stream: every decision, in order, as server-sent events in CloudEvents envelopes.
//!
//! The store is the only source. A client that comes back says which event it had last and goes on
//! behind it; one that is too slow is cut off and comes back. Nothing is queued for anybody.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use aldis_store::{Decision, DecisionFilter, RunId};
use axum::body::{Body, Bytes};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time;

use super::app::App;
use super::error::ApiError;
use super::metrics::add;

/// Other processes decide too, and ring no bell.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many decisions are read at once.
const PAGE: usize = 200;
/// From this size on a piece is sent.
const PIECE: usize = 64 * 1024;
/// How many pieces wait for a client: with the one being sent, a quarter of a megabyte.
const BACKLOG: usize = 3;
/// How long a client may leave them waiting.
const PATIENCE: Duration = Duration::from_secs(10);
/// A quiet stream says so often that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Tells everybody the number of the newest decision.
#[derive(Debug)]
pub(super) struct Bus(watch::Sender<u64>);

impl Default for Bus {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

/// Watches for new decisions.
pub(super) async fn publish(app: Arc<App>) {
    loop {
        if let Ok(newest) = newest(&app).await {
            app.bus.0.send_if_modified(|known| std::mem::replace(known, newest) != newest);
        }
        tokio::select! {
            () = app.stopped() => return,
            () = app.committed.bus.notified() => {}
            () = time::sleep(LOOK_EVERY) => {}
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
        let mut bus = self.app.bus.0.subscribe();
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
            let (run, after) = (self.run.clone(), self.last);
            let read = self.app.keep(move |keeper| {
                Ok(keeper.store().decisions_after(run.as_ref(), after, PAGE)?)
            });
            // A store that fails now is asked again with the next decision.
            let Ok(page) = read.await else { return Ok(()) };
            let mut piece = String::new();
            for decision in &page {
                piece.push_str(&message(decision));
                self.last = decision.seq;
                if piece.len() >= PIECE {
                    self.send(std::mem::take(&mut piece)).await?;
                }
            }
            if !piece.is_empty() {
                self.send(piece).await?;
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    async fn send(&self, text: String) -> Result<(), Cut> {
        match time::timeout(PATIENCE, self.pieces.send(text.into())).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Cut::Gone),
            Err(_) => Err(Cut::TooSlow),
        }
    }
}

/// One decision as a server-sent event. JSON escapes line ends, so the data are one line.
fn message(decision: &Decision) -> String {
    format!("id: {}\nevent: decision\ndata: {}\n\n", decision.seq, envelope(decision))
}

/// Puts a decision into a CloudEvents envelope.
pub(super) fn envelope(decision: &Decision) -> Value {
    let data: Value = serde_json::from_str(&decision.body).unwrap_or_default();
    let rule = data.get("rule").and_then(Value::as_str).unwrap_or("decision").replace('/', ".");
    json!({
        "specversion": "1.0",
        "id": decision.seq.to_string(),
        "source": "/v1/runs",
        "subject": decision.run.as_str(),
        "type": format!("dev.aldis.{rule}"),
        "time": decision.at,
        "datacontenttype": "application/json",
        "data": data,
    })
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
