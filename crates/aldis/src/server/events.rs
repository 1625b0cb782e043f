//! The event stream: every decision, in order, as server-sent events in CloudEvents envelopes.
//!
//! The store is the only source. One reader puts what is new into words, once for all clients; the
//! latest of it is kept in memory, and whoever is further behind reads the store. A client that comes
//! back says which event it had last and goes on behind it; one that is too slow is cut off and comes
//! back. Nothing is queued for anybody.

mod bus;
mod recent;
mod words;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use aldis_store::{Continuity, Cursor, DecisionFilter, RunId, StoreError};
use axum::body::{Body, Bytes};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time;

pub(super) use self::bus::Bus;
use self::bus::Seat;
use self::recent::Piece;
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
/// After so long that none of them was taken a client counts as one that does not read.
const STALLED_AFTER: Duration = Duration::from_millis(100);
/// How long a client may leave them waiting.
const PATIENCE: Duration = Duration::from_secs(10);
/// A quiet stream says so often that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Watches for new decisions, while there is anybody to tell.
pub(super) async fn publish(app: Arc<App>) {
    let mut watched = false;
    loop {
        let was_watched = watched;
        watched = app.bus.is_wanted();
        // A store that fails now is asked again soon.
        if watched && !was_watched {
            watched = app.noted("events", skip_to_now(&app).await).is_some();
        }
        if watched {
            app.noted("events", read_new(&app).await);
        }
        tokio::select! {
            () = app.stopped() => return,
            () = app.commits.bus.notified() => {}
            () = time::sleep(LOOK_EVERY) => {}
        }
        time::sleep(GATHER).await;
    }
}

/// Goes on with what comes now: whoever wants more reads the store.
async fn skip_to_now(app: &Arc<App>) -> Result<(), ApiError> {
    app.bus.skip_to(newest(app).await?);
    Ok(())
}

/// Puts what is new into words.
async fn read_new(app: &Arc<App>) -> Result<(), ApiError> {
    loop {
        let after = app.bus.begin();
        let bus = app.clone();
        let page = app.with_engine(move |engine| {
            let page = engine.store().decisions_after(None, &after, PAGE)?;
            let (read, newest) = (page.len(), page.last().map_or(after, |last| last.cursor));
            bus.bus.tell(recent::pieces(bus.bus.wanted(page)), newest, read);
            Ok::<_, StoreError>(read)
        });
        if page.await? < PAGE {
            return Ok(());
        }
    }
}

async fn newest(app: &Arc<App>) -> Result<Cursor, ApiError> {
    let filter = DecisionFilter { limit: 1, ..DecisionFilter::default() };
    let last = app.with_engine(move |engine| engine.store().decisions(&filter)).await?;
    Ok(last.first().map_or(Cursor::START, |decision| decision.cursor))
}

/// Opens a stream of the decisions after `after`, of one run or all; of those to come if nothing is
/// said.
pub(super) async fn open(
    app: &Arc<App>,
    run: Option<RunId>,
    after: Option<Cursor>,
) -> Result<Body, ApiError> {
    let newest = newest(app).await?;
    let (pieces, feed) = mpsc::channel(BACKLOG);
    let seat = app.bus.follow(run.as_ref());
    let last = after.unwrap_or(newest);
    let (read, sent) = (None, Vec::new());
    let mut follower = Follower { app: app.clone(), run, seat, last, read, sent, pieces };
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
    seat: Seat,
    /// The last decision that it has got.
    last: Cursor,
    /// Up to which number of the bus it has got everything; nothing while it reads the store.
    read: Option<u64>,
    /// What it has got from the store that the bus had perhaps not read.
    sent: Vec<Cursor>,
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
    async fn gap(&mut self, after: Cursor, newest: Cursor) -> Result<Option<String>, ApiError> {
        let (first, continuity) = self
            .app
            .with_engine(move |engine| {
                let first = engine.store().decisions_after(None, &Cursor::START, 1)?;
                Ok::<_, StoreError>((first, engine.store().continuity(&after)?))
            })
            .await?;
        let oldest = first.first().map_or(Cursor::START, |decision| decision.cursor);
        // An id from another database is as lost as one that is too old.
        match continuity {
            Continuity::Complete => return Ok(None),
            Continuity::Pruned => {}
            Continuity::Unknown => self.last = newest,
        }
        let [after, oldest, newest] = [after, oldest, newest].map(number);
        let data = json!({ "after": after, "oldest": oldest, "newest": newest });
        Ok(Some(format!("event: gap\ndata: {data}\n\n")))
    }

    async fn follow(&mut self, gap: Option<String>) -> Cut {
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
                changed = self.seat.bell.changed() => if changed.is_err() { return Cut::Gone },
                () = time::sleep(HEARTBEAT) => sent = self.send(":\n\n".to_owned()).await,
            }
        }
        sent.err().unwrap_or(Cut::Gone)
    }

    /// Sends everything there is.
    async fn catch_up(&mut self) -> Result<(), Cut> {
        loop {
            let known = self.read.and_then(|read| self.app.bus.after(self.run.as_ref(), read));
            if let Some(pieces) = known {
                return self.tell(pieces).await;
            }
            // Whatever the bus reads after this comes from it, and some of it from the store, too.
            let read = self.app.bus.read();
            self.read = None;
            // A store that fails now is asked again with the next decision.
            let Ok((pieces, cursors)) = self.stored().await else { return Ok(()) };
            for piece in pieces {
                self.send(piece.after(0, &[])).await?;
                self.last = piece.last().cursor;
            }
            if cursors.len() < PAGE {
                (self.read, self.sent) = (Some(read), cursors);
                return Ok(());
            }
        }
    }

    /// Reads a page of what is not in memory.
    async fn stored(&self) -> Result<(Vec<Arc<Piece>>, Vec<Cursor>), ApiError> {
        let (run, after) = (self.run.clone(), self.last);
        let read = self.app.with_engine(move |engine| {
            let page = engine.store().decisions_after(run.as_ref(), &after, PAGE)?;
            let cursors = page.iter().map(|decision| decision.cursor).collect();
            Ok::<_, StoreError>((recent::pieces((1..).zip(page)), cursors))
        });
        read.await
    }

    /// Sends what the client has not got yet.
    async fn tell(&mut self, pieces: Vec<Arc<Piece>>) -> Result<(), Cut> {
        for piece in pieces {
            let text = piece.after(self.read.unwrap_or(0), &self.sent);
            let last = piece.last();
            self.read = Some(last.read);
            if !self.sent.contains(&last.cursor) {
                self.last = last.cursor;
                self.sent.clear();
            }
            if !text.is_empty() {
                self.send(text).await?;
            }
        }
        Ok(())
    }

    async fn send(&self, text: impl Into<Bytes>) -> Result<(), Cut> {
        let room = match time::timeout(STALLED_AFTER, self.pieces.reserve()).await {
            Ok(room) => room,
            Err(_) => {
                let _stalled = self.seat.stall();
                let room = time::timeout(PATIENCE, self.pieces.reserve()).await;
                room.map_err(|_| Cut::TooSlow)?
            }
        };
        room.map_err(|_| Cut::Gone)?.send(text.into());
        Ok(())
    }
}

/// A cursor as clients have always got it: a number where its text is one.
fn number(cursor: Cursor) -> Value {
    let text = cursor.to_string();
    text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
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
