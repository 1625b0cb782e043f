//! Steps of those who cannot wait: a few queues, each written in order by a task of its own.
//!
//! The steps of one run are in one queue, so that they are written in the order they were handed over.

use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::feed::Feed;
use super::link::{Link, Repeat, ask};
use super::write;
use crate::error::{CommitError, StoreError};
use crate::step::{RunId, Step};
use crate::store::OnCommit;

/// How long closing the store waits for what was handed over.
const LAST: Duration = Duration::from_secs(10);

type QueuedStep = (Box<Step>, OnCommit);

#[derive(Debug)]
pub(super) struct Queues {
    queues: Vec<UnboundedSender<QueuedStep>>,
    /// Closed when every task has ended.
    ended: Mutex<mpsc::Receiver<()>>,
}

impl Queues {
    /// Starts as many as there are connections.
    pub(super) fn start(link: &Link, feed: &Feed) -> Self {
        let (alive, ended) = mpsc::channel();
        let mut queues = Vec::new();
        for _ in 0..link.address.connections {
            let (queue, waiting) = unbounded_channel();
            let Some(handle) = link.handle() else { break };
            let writer = Writer {
                pool: link.pool.clone(),
                statement: link.sql(write::STEP),
                location: link.location().to_owned(),
                committed: Box::new(feed.on_commit()),
                _alive: alive.clone(),
            };
            drop(handle.spawn(writer.work(waiting)));
            queues.push(queue);
        }
        Self { queues, ended: Mutex::new(ended) }
    }

    /// Hands a step over. If the store is being closed the callback is dropped without a call.
    pub(super) fn hand_over(&self, step: Box<Step>, on_commit: OnCommit) {
        let number = place(&step.run) % self.queues.len().max(1) as u64;
        if let Some(queue) = self.queues.get(usize::try_from(number).unwrap_or_default()) {
            queue.send((step, on_commit)).ok();
        }
    }

    /// Takes nothing more, and waits until what was handed over is written.
    pub(super) fn finish(&mut self) {
        self.queues.clear();
        // Nothing is ever sent: this ends when the last task does.
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(LAST).ok();
    }
}

struct Writer {
    pool: Pool,
    statement: std::sync::Arc<str>,
    location: String,
    committed: Box<dyn Fn() + Send + Sync>,
    _alive: mpsc::Sender<()>,
}

impl Writer {
    async fn work(self, mut waiting: UnboundedReceiver<QueuedStep>) {
        while let Some((step, on_commit)) = waiting.recv().await {
            let result = self.write(&step).await;
            if result.is_ok() {
                (self.committed)();
            }
            on_commit(step, result);
        }
    }

    async fn write(&self, step: &Step) -> Result<crate::step::Committed, CommitError> {
        let values = write::step_values(step);
        let rows = ask(&self.pool, &self.statement, &values, Repeat::Write)
            .await
            .map_err(|error| error.sort(&self.location, write::DOING))?;
        write::outcome(&step.run, &rows).unwrap_or_else(|detail| {
            let location = self.location.clone();
            Err(StoreError::Corrupt { location, detail }.into())
        })
    }
}

/// FNV-1a of the run's name.
fn place(run: &RunId) -> u64 {
    run.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
