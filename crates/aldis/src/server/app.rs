//! What all requests share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use aldis_machine::turns::Persona;
use aldis_signal::time::Timestamp;
use aldis_store::{RunId, Store, Timer};
use tokio::sync::{Notify, watch};
use tokio::task::{self, JoinSet};

use super::access::Access;
use super::error::ApiError;
use super::events::Bus;
use super::metrics::Metrics;
use super::sinks::Sinks;
use crate::app::formats::turn_state::ChannelSet;
use crate::engine::keeper::{Answer, Keeper, KeeperError, News};
use crate::engine::machines::{self, Members, TURNS};
use crate::error::CommandError;
use crate::settings::clock::SteadyClock;

/// What all requests share.
pub(crate) struct App {
    pub(super) access: Access,
    pub(super) bus: Bus,
    pub(super) clock: SteadyClock,
    pub(super) keeper: Arc<Keeper>,
    pub(super) metrics: Metrics,
    /// Who there is, in channels that do not say.
    pub(super) personas: BTreeMap<String, Persona>,
    pub(super) sinks: Arc<Sinks>,
    /// Wakes whoever waits for something to be committed.
    pub(super) committed: Arc<Committed>,
    /// Whether the server is stopping.
    pub(super) stopping: watch::Sender<bool>,
}

/// One bell for each who waits: a bell that one of them has heard is not heard by another.
#[derive(Debug, Default)]
pub(super) struct Committed {
    pub(super) alarms: Notify,
    pub(super) bus: Notify,
    pub(super) outbox: Notify,
    /// Until when the alarms sleep; a bell before that would wake them for nothing.
    asleep_until: AtomicI64,
}

impl Committed {
    fn ring(&self, news: News) {
        self.bus.notify_one();
        if news.effects {
            self.outbox.notify_one();
        }
        let until = self.asleep_until.load(Ordering::SeqCst);
        if news.wake.is_some_and(|wake| wake.as_millis() < until) {
            self.alarms.notify_one();
        }
    }

    /// Says until when the alarms sleep. Whoever sets an alarm rings or was seen by a look after
    /// this.
    pub(super) fn sleep_until(&self, until: Timestamp) {
        self.asleep_until.store(until.as_millis(), Ordering::SeqCst);
    }
}

impl App {
    /// Puts an application together, without files or sockets.
    pub(super) fn new(
        store: Arc<dyn Store>,
        access: Access,
        sinks: Sinks,
        personas: BTreeMap<String, Persona>,
    ) -> Arc<Self> {
        let committed = Arc::new(Committed::default());
        let sinks = Arc::new(sinks);
        let (bells, chosen) = (committed.clone(), sinks.clone());
        let keeper = Keeper::new(
            store,
            Box::new(move |run, effect| chosen.parcels(run.as_str(), effect)),
            Arc::new(move |news| bells.ring(news)),
        );
        Arc::new(Self {
            access,
            bus: Bus::default(),
            clock: SteadyClock::start(),
            keeper: Arc::new(keeper),
            metrics: Metrics::default(),
            personas,
            sinks,
            committed,
            stopping: watch::Sender::new(false),
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Takes the alarms that were due while nobody watched.
    pub(super) async fn recover(self: &Arc<Self>) -> Result<(), CommandError> {
        let now = self.now();
        loop {
            match self.ring(now, true).await {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(CommandError::new(error.to_string())),
            }
        }
    }

    /// Takes alarms that are due, all at once so that they are written together. Returns how many;
    /// an error only if none could be taken.
    pub(super) async fn ring(
        self: &Arc<Self>,
        now: Timestamp,
        missed: bool,
    ) -> Result<usize, ApiError> {
        let due = self.keep(move |keeper| keeper.due(now)).await?;
        let mut alarms = JoinSet::new();
        for timer in due {
            alarms.spawn(self.clone().ring_one(now, timer, missed));
        }
        let (mut taken, mut failure) = (0, None);
        for rung in alarms.join_all().await {
            match rung {
                Ok(()) => taken += 1,
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if taken == 0 => Err(error),
            _ => Ok(taken),
        }
    }

    async fn ring_one(
        self: Arc<Self>,
        now: Timestamp,
        timer: Timer,
        missed: bool,
    ) -> Result<(), ApiError> {
        match self.keeper.ring_soon(now, &timer, missed).await {
            Some(rung) => Ok(rung?),
            None => self.keep(move |keeper| keeper.ring(now, &timer, missed)).await,
        }
    }

    /// Lets a run of this machine take an event; returns nothing if there is no such run.
    pub(super) async fn advance_only(
        self: &Arc<Self>,
        machine: &'static str,
        id: RunId,
        event: Members,
        source: Option<String>,
    ) -> Result<Option<Answer>, ApiError> {
        let now = self.now();
        let soon = self.keeper.advance_soon(machine, now, &id, &event, source.as_deref());
        if let Some(taken) = soon.await {
            return Ok(Some(taken?));
        }
        self.keep(move |keeper| {
            match keeper.advance_only(machine, now, &id, &event, source.as_deref()) {
                Err(KeeperError::NoSuchRun(_)) => Ok(None),
                kept => kept.map(Some),
            }
        })
        .await
    }

    /// Takes over channels that are not there yet; returns those that were and those that are.
    pub(super) async fn adopt(
        self: &Arc<Self>,
        board: ChannelSet,
    ) -> Result<(Vec<String>, Vec<String>), ApiError> {
        let now = self.now();
        self.keep(move |keeper| {
            let (mut adopted, mut skipped) = (Vec::new(), Vec::new());
            for (name, state) in board.channels {
                let id = RunId::new(&*name).map_err(|error| KeeperError::Bad(error.to_string()))?;
                let start = machines::adopting(&state)?;
                match keeper.begin(now, TURNS, Some(id), start, None) {
                    Ok(_) => adopted.push(name),
                    Err(KeeperError::Conflict(_)) => skipped.push(name),
                    Err(error) => return Err(error),
                }
            }
            Ok((adopted, skipped))
        })
        .await
    }

    /// Does something that may wait for the disk.
    pub(super) async fn keep<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Keeper) -> Result<T, KeeperError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let keeper = self.keeper.clone();
        match task::spawn_blocking(move || work(&keeper)).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(ApiError::internal("a request broke off")),
        }
    }

    /// Waits until the server stops.
    pub(super) async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives as long as this does.
        stopping.wait_for(|stopping| *stopping).await.ok();
    }
}
