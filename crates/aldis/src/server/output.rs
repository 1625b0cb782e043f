//! What the agents of a run write, as server-sent events, while they write it.
//!
//! A thread for each client reads the logs, because files cannot be waited for otherwise. It holds one
//! piece and waits until the client has taken the one before.

mod position;

use std::sync::Arc;
use std::time::Duration;

use aldis_engine::EngineError;
use aldis_signal::Rules;
use aldis_store::RunId;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time;

use self::position::{BeginAgain, OutputPosition};
use super::app::App;
use super::error::ApiError;
use super::events::{Feed, HEARTBEAT, PATIENCE};
use crate::agents::output_log::LoggedAgent;
use crate::app::output::{OutputReader, Written};

/// How many clients read output at once: each has a thread of those that wait for the disk.
pub(super) const CLIENTS_MAX: usize = 64;
/// How often output that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Which output.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputQuery {
    /// Only of the agents that worked on this task of a delivery.
    task: Option<String>,
    /// Only of the agent with this number, of a delivery.
    agent: Option<u64>,
    /// Go on with what is written from now on, until the run ends (default: false).
    #[serde(default)]
    follow: bool,
    /// Go on behind the event with this id, as `Last-Event-ID` does.
    after: Option<String>,
}

/// An event `output`: whole lines that an agent wrote, without secrets. An event `end` says that this was
/// all of it.
#[derive(Serialize, JsonSchema)]
pub(super) struct OutputPiece<'p> {
    /// Format version.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// The agent's number; `null` in a run that has one agent.
    agent: Option<u64>,
    /// Its role in a delivery.
    #[serde(skip_serializing_if = "str::is_empty")]
    role: &'p str,
    /// The task of a delivery that it worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'p str>,
    /// What it wrote. Not fit for a terminal yet.
    text: &'p str,
    /// Whether it wrote that itself, and not one of its sub-agents.
    own: bool,
}

/// Opens a stream of what the agents of a run have written, and write.
/// `last` is the id of the last event that the client has got.
pub(super) async fn open(
    app: &Arc<App>,
    run: RunId,
    query: OutputQuery,
    last: Option<&str>,
) -> Result<Body, ApiError> {
    let position = match last.or(query.after.as_deref()) {
        None => OutputPosition::default(),
        Some(id) => OutputPosition::parse(id)
            .ok_or_else(|| ApiError::bad("`after` is not the id of an event of this stream"))?,
    };
    let id = run.clone();
    let is_there = app.with_engine(move |engine| engine.store().run(&id)).await?.is_some();
    if !is_there {
        return Err(EngineError::NoSuchRun(run).into());
    }
    let seat = Arc::clone(&app.output_seats).try_acquire_owned().map_err(|_| {
        let message = "too many clients read output; try again later";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message)
    })?;
    let (pieces, feed) = mpsc::channel(1);
    let client = Client {
        app: Arc::clone(app),
        runtime: Handle::current(),
        pieces,
        position,
        is_gone: false,
    };
    tokio::task::spawn_blocking(move || {
        client.serve(&run, &query);
        drop(seat);
    });
    Ok(Body::new(Feed(feed)))
}

/// Somebody who reads output.
struct Client {
    app: Arc<App>,
    runtime: Handle,
    pieces: mpsc::Sender<Bytes>,
    position: OutputPosition,
    is_gone: bool,
}

impl Client {
    fn serve(mut self, run: &RunId, query: &OutputQuery) {
        while let Err(BeginAgain) = self.tell_all(run, query) {}
    }

    fn tell_all(&mut self, run: &RunId, query: &OutputQuery) -> Result<(), BeginAgain> {
        let rules = Rules::new([]);
        let state = self.app.state_dir.clone();
        let mut reader = OutputReader::new(&state, run, query.task.as_deref(), Some(&rules));
        let wanted = |agent: &LoggedAgent| query.agent.is_none() || query.agent == agent.agent;
        let mut quiet = Duration::ZERO;
        while !self.is_gone {
            // Asked first: what an agent writes until its run ends is read after that.
            let is_over = match query.follow.then(|| self.goes_on(run)) {
                // Whether the run goes on is unknown: only the stream ends.
                Some(None) => return Ok(()),
                Some(Some(goes_on)) => !goes_on,
                None => true,
            };
            match reader.read() {
                Ok(written) if !written.is_empty() => {
                    for (agent, written) in written.iter().filter(|(agent, _)| wanted(agent)) {
                        quiet = Duration::ZERO;
                        self.tell(agent, written)?;
                    }
                    continue;
                }
                Ok(_) if !is_over => self.position.check_complete()?,
                Ok(_) => break,
                Err(error) => {
                    self.send(format!("event: problem\ndata: {error}\n\n"));
                    return Ok(());
                }
            }
            std::thread::sleep(LOOK_EVERY);
            quiet += LOOK_EVERY;
            if quiet >= HEARTBEAT {
                quiet = Duration::ZERO;
                self.send(":\n\n".to_owned());
            }
        }
        for (agent, written) in reader.finish().iter().filter(|(agent, _)| wanted(agent)) {
            self.tell(agent, written)?;
        }
        self.position.check_complete()?;
        self.send("event: end\ndata: {}\n\n".to_owned());
        Ok(())
    }

    /// Whether more may be written; nothing if the server stops, or the client or the store is gone.
    fn goes_on(&self, run: &RunId) -> Option<bool> {
        if *self.app.stopping.borrow() || self.pieces.is_closed() {
            return None;
        }
        let run = run.clone();
        let read = self.app.with_engine(move |engine| engine.store().run(&run));
        let run = self.runtime.block_on(read).ok()?;
        Some(run.is_some_and(|run| run.record.active))
    }

    fn tell(&mut self, agent: &LoggedAgent, written: &Written) -> Result<(), BeginAgain> {
        let Written::Text { text, own } = written else { return Ok(()) };
        let LoggedAgent { agent, role, task } = agent;
        let text = self.position.take(*agent, text)?;
        let piece =
            OutputPiece { v: 1, agent: *agent, role, task: task.as_deref(), text, own: *own };
        if let (false, Ok(data)) = (text.is_empty(), serde_json::to_string(&piece)) {
            self.send(format!("id: {}\nevent: output\ndata: {data}\n\n", self.position));
        }
        Ok(())
    }

    /// Hands an event over, unless the client does not read.
    fn send(&mut self, event: String) {
        if !self.is_gone {
            let sent = time::timeout(PATIENCE, self.pieces.send(event.into()));
            self.is_gone = !matches!(self.runtime.block_on(sent), Ok(Ok(())));
        }
    }
}
