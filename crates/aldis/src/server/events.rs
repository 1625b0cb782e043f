//! The event stream: every decision, in order, as server-sent events in CloudEvents envelopes.
//!
//! The store is the only source. One reader puts what is new into words, once for all clients; the
//! latest of it is kept in memory, and whoever is further behind reads the store. A client that comes
//! back says which event it had last and goes on behind it; one that is too slow is cut off and comes
//! back. Nothing is queued for anybody.

mod bus;
mod recent;
mod words;

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aldis_engine::Engine;
use aldis_store::{ChangeStamp, Continuity, Cursor, Decision, DecisionFilter, RunId, StoreError};
use axum::body::{Body, Bytes};
use hyper::body::{Buf as _, Frame};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time;

pub(super) use self::bus::Bus;
use self::bus::Seat;
use self::recent::Piece;
pub(super) use self::words::CloudEvent;
use super::app::App;
use super::error::ApiError;

/// Other processes and servers decide too: the store says when anybody has written something, and so
/// often it is looked at in any case.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often it is asked whether anybody wants to know.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// So long new decisions gather before all clients are woken for them.
const GATHER: Duration = Duration::from_millis(10);
/// What is sent at once, at most.
const SLICE: usize = 64 << 10;
/// How many slices wait for a client: with the one being sent, a quarter of a megabyte.
const BACKLOG: usize = 3;
/// Of how many runs a follower of a project remembers whose they are.
const MET_MAX: usize = 10_000;
/// How many decisions are read at once, and how long they may be together.
const PAGE: usize = 200;
const PAGE_BYTES: usize = BACKLOG * SLICE;
/// After so long that none of the slices was taken a client counts as one that does not read.
const STALLED_AFTER: Duration = Duration::from_millis(100);
/// How long a client may leave one waiting.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// A quiet stream says so often that it is alive.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// Watches for new decisions, while there is anybody to tell.
pub(super) async fn publish(app: Arc<App>) {
    let mut watched = false;
    loop {
        let is_wanted = app.bus.is_wanted();
        // Taken before reading: what is written meanwhile ends the wait below.
        let stamp = if is_wanted { stamp(&app).await } else { None };
        let looked = if is_wanted { look(&app, watched).await } else { Ok(()) };
        // A store that fails now is asked again soon; those who follow read there what is left out.
        watched = app.noted("events", looked).is_some() && is_wanted;
        tokio::select! {
            () = app.stopped() => return,
            () = app.commits.bus.notified() => {}
            () = changed(&app, stamp) => {}
        }
        time::sleep(GATHER).await;
    }
}

async fn stamp(app: &Arc<App>) -> Option<ChangeStamp> {
    app.with_engine(|engine| engine.store().change()).await.ok()
}

/// Waits until anybody has written something since the stamp was taken.
async fn changed(app: &Arc<App>, stamp: Option<ChangeStamp>) {
    let Some(stamp) = stamp else { return time::sleep(ASK_EVERY).await };
    let waited =
        app.with_engine(move |engine| engine.store().wait_for_change(&stamp, LOOK_EVERY)).await;
    if waited.is_err() {
        time::sleep(ASK_EVERY).await;
    }
}

/// Reads what is new. Whoever begins to watch goes on with what comes now.
async fn look(app: &Arc<App>, watched: bool) -> Result<(), ApiError> {
    if !watched {
        app.bus.skip_to(newest(app).await?);
    }
    read_new(app).await
}

/// Puts what is new into words.
async fn read_new(app: &Arc<App>) -> Result<(), ApiError> {
    loop {
        let after = app.bus.begin();
        let bus = app.clone();
        let page = app.with_engine(move |engine| {
            let (page, is_last) = page(engine, None, after)?;
            let (read, newest) = (page.len(), page.last().map_or(after, |last| last.cursor));
            bus.bus.tell(recent::pieces(bus.bus.wanted(page)), newest, read);
            Ok::<_, StoreError>(is_last)
        });
        if page.await? {
            return Ok(());
        }
    }
}

/// Reads a page of decisions, and whether nothing comes after it yet.
fn page(
    engine: &Engine,
    run: Option<&RunId>,
    after: Cursor,
) -> Result<(Vec<Decision>, bool), StoreError> {
    let page = engine.store().decisions_within(run, &after, PAGE, PAGE_BYTES)?;
    let bytes: usize = page.iter().map(|decision| decision.body.len()).sum();
    let is_last = page.len() < PAGE && bytes < PAGE_BYTES;
    Ok((page, is_last))
}

async fn newest(app: &Arc<App>) -> Result<Cursor, ApiError> {
    let filter = DecisionFilter { limit: 1, ..DecisionFilter::default() };
    let last = app.with_engine(move |engine| engine.store().decisions(&filter)).await?;
    Ok(last.first().map_or(Cursor::START, |decision| decision.cursor))
}

/// What somebody follows.
#[derive(Debug)]
pub(super) enum Followed {
    /// Everything.
    All,
    /// One run.
    Run(RunId),
    /// All runs of a project.
    Project(ProjectRuns),
}

/// The runs of a project, as far as they were met.
#[derive(Clone, Debug)]
pub(super) struct ProjectRuns {
    project: String,
    met: HashMap<RunId, bool>,
}

impl Followed {
    /// All runs of this project.
    pub(super) fn project(project: String) -> Self {
        Self::Project(ProjectRuns { project, met: HashMap::new() })
    }

    fn run(&self) -> Option<&RunId> {
        match self {
            Self::Run(run) => Some(run),
            Self::All | Self::Project(_) => None,
        }
    }
}

impl ProjectRuns {
    /// Leaves out what is of other projects.
    fn retain(&mut self, engine: &Engine, page: &mut Vec<Decision>) -> Result<(), StoreError> {
        if self.met.len() > MET_MAX {
            self.met.clear();
        }
        for decision in page.iter() {
            if !self.met.contains_key(&decision.run) {
                let run = engine.store().run(&decision.run)?;
                let is_own = run.is_some_and(|run| run.record.project == self.project);
                self.met.insert(decision.run.clone(), is_own);
            }
        }
        page.retain(|decision| self.met.get(&decision.run) == Some(&true));
        Ok(())
    }
}

/// Opens a stream of the decisions after `after`; of those to come if nothing is said.
pub(super) async fn open(
    app: &Arc<App>,
    of: Followed,
    after: Option<Cursor>,
) -> Result<Body, ApiError> {
    let newest = newest(app).await?;
    let (pieces, feed) = mpsc::channel(BACKLOG);
    let seat = app.bus.follow(of.run());
    let last = after.unwrap_or(newest);
    let (app, partial, read, sent) = (app.clone(), None, None, Vec::new());
    let mut follower = Follower { app, of, seat, last, partial, read, sent, pieces };
    let gap = match after {
        Some(after) => follower.gap(after, newest).await?,
        None => None,
    };
    tokio::spawn(async move {
        follower.app.metrics.followers.inc();
        let cut = follower.follow(gap).await;
        follower.app.metrics.followers.dec();
        if cut == Cut::TooSlow {
            follower.app.metrics.followers_cut.inc();
        }
    });
    Ok(Body::new(Feed(feed)))
}

/// Somebody who follows.
struct Follower {
    app: Arc<App>,
    of: Followed,
    seat: Seat,
    /// The last decision that it has got whole.
    last: Cursor,
    /// The one after that, and how much of it the client has taken before it stopped to read.
    partial: Option<(Cursor, usize)>,
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
        let mut sent = self.send_whole(hello).await;
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
                () = time::sleep(HEARTBEAT) => sent = self.send_whole(":\n\n".to_owned()).await,
            }
        }
        sent.err().unwrap_or(Cut::Gone)
    }

    /// Sends everything there is. While the client does not read, nothing is held for it but the
    /// backlog: what it has not taken is read again.
    async fn catch_up(&mut self) -> Result<(), Cut> {
        loop {
            let known = self.read.and_then(|read| self.app.bus.after(self.of.run(), read));
            let (was_taken, is_last) = match known {
                Some(pieces) => (self.tell(pieces).await?, true),
                None => self.tell_stored().await?,
            };
            if !was_taken {
                self.wait_for_room().await?;
            } else if is_last {
                return Ok(());
            }
        }
    }

    /// Sends a page of what is not in memory; returns whether it was taken and the last one.
    async fn tell_stored(&mut self) -> Result<(bool, bool), Cut> {
        // Whatever the bus reads after this comes from it, and some of it from the store, too.
        let read = self.app.bus.read();
        (self.read, self.sent) = (None, Vec::new());
        let (run, after) = (self.of.run().cloned(), self.last);
        let mut project = match &self.of {
            Followed::Project(project) => Some(project.clone()),
            Followed::All | Followed::Run(_) => None,
        };
        let stored = self.app.with_engine(move |engine| {
            let (mut page, is_last) = page(engine, run.as_ref(), after)?;
            let newest = page.last().map_or(after, |last| last.cursor);
            if let Some(project) = &mut project {
                project.retain(engine, &mut page)?;
            }
            let cursors: Vec<Cursor> = page.iter().map(|decision| decision.cursor).collect();
            let pieces = recent::pieces((1..).zip(page));
            Ok::<_, StoreError>((pieces, cursors, is_last, (newest, project)))
        });
        // A store that fails now is asked again with the next decision.
        let Ok((pieces, cursors, is_last, (newest, project))) = stored.await else {
            return Ok((true, true));
        };
        if self.partial.is_some_and(|(cursor, _)| cursors.first() != Some(&cursor)) {
            // It was pruned meanwhile: whoever has half of it begins anew.
            return Err(Cut::Gone);
        }
        let was_taken = self.tell(pieces).await?;
        let Some(project) = project else {
            (self.read, self.sent) =
                if was_taken && is_last { (Some(read), cursors) } else { (None, Vec::new()) };
            return Ok((was_taken, is_last));
        };
        // What is kept in memory is of all projects: this one is read in the store.
        (self.of, self.read, self.sent) = (Followed::Project(project), None, Vec::new());
        if was_taken {
            self.last = newest;
        }
        Ok((was_taken, is_last))
    }

    /// Sends what the client has not got yet; returns whether it was taken.
    async fn tell(&mut self, pieces: Vec<Arc<Piece>>) -> Result<bool, Cut> {
        for piece in pieces {
            let read = self.read.unwrap_or(0);
            let mut text = piece.after(read, &self.sent);
            let skipped = self.partial.take().map_or(0, |(_, bytes)| bytes);
            text.advance(skipped);
            let taken = self.send(&text).await?;
            if taken < text.len() {
                let (last, partial) = piece.cut(read, &self.sent, skipped + taken);
                self.last = last.unwrap_or(self.last);
                (self.partial, self.read) = (partial, None);
                return Ok(false);
            }
            let last = piece.last();
            self.read = Some(last.read);
            if !self.sent.contains(&last.cursor) {
                self.last = last.cursor;
                self.sent.clear();
            }
        }
        Ok(true)
    }

    /// Hands text to the connection; returns how much, before there was no room for a while.
    async fn send(&self, text: &Bytes) -> Result<usize, Cut> {
        let mut sent = 0;
        while sent < text.len() {
            let Ok(room) = time::timeout(STALLED_AFTER, self.pieces.reserve()).await else { break };
            let end = text.len().min(sent + SLICE);
            let whole = end - sent == text.len();
            // A part is copied: it would keep the whole in memory.
            let slice = if whole { text.clone() } else { Bytes::copy_from_slice(&text[sent..end]) };
            room.map_err(|_| Cut::Gone)?.send(slice);
            sent = end;
        }
        Ok(sent)
    }

    /// Sends a short text, as soon as there is room for it.
    async fn send_whole(&self, text: String) -> Result<(), Cut> {
        let text = Bytes::from(text);
        while self.send(&text).await? < text.len() {
            self.wait_for_room().await?;
        }
        Ok(())
    }

    /// Waits until the client has taken all of its backlog.
    async fn wait_for_room(&self) -> Result<(), Cut> {
        let _stalled = self.seat.stall();
        for slices in 1..=BACKLOG {
            let room = time::timeout(PATIENCE, self.pieces.reserve_many(slices)).await;
            drop(room.map_err(|_| Cut::TooSlow)?.map_err(|_| Cut::Gone)?);
        }
        Ok(())
    }
}

/// A cursor as clients have always got it: a number where its text is one.
fn number(cursor: Cursor) -> Value {
    let text = cursor.to_string();
    text.parse::<u64>().map_or_else(|_| json!(text), |number| json!(number))
}

/// The body of a stream.
pub(super) struct Feed(pub(super) mpsc::Receiver<Bytes>);

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
