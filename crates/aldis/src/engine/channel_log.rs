//! Channels in their store, exactly as a server keeps them, for whoever has a clock of its own.

use std::sync::Arc;

use aldis_machine::turns::{Effect, Reply, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{DecisionFilter, RunId, Store, Timer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::engine::keeper::{Answer, Keeper, KeeperError};
use crate::engine::machines::{self, TURNS};

/// Channels as one server knows them: it remembers nothing that is not stored.
pub struct ChannelLog(Keeper);

/// What an event led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// What must now be done.
    pub effects: Vec<Effect>,
    /// What became of each message.
    pub replies: Vec<Reply>,
    /// The rule that was followed; none when nothing was decided.
    pub rule: Option<String>,
    /// Whether this is the answer to an earlier delivery of the same event.
    pub repeated: bool,
}

/// Why an event led to nothing that is known of.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The store failed: whether the step is there is unknown.
    #[error("the store failed: {0}")]
    Store(String),
    /// It cannot be done.
    #[error("{0}")]
    Refused(String),
}

impl From<KeeperError> for ChannelError {
    fn from(error: KeeperError) -> Self {
        match error {
            KeeperError::Store(error) => Self::Store(error.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}

impl std::fmt::Debug for ChannelLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ChannelLog").finish_non_exhaustive()
    }
}

impl ChannelLog {
    /// Keeps channels in this store. Every effect is put into its outbox, for a sink named `all`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let route = |_: &RunId, effect: &Value| vec![("all".to_owned(), effect.clone())];
        Self(Keeper::new(store, Box::new(route), Arc::new(|_| {})))
    }

    /// Opens a channel.
    ///
    /// # Errors
    ///
    /// Fails if the store does, if there is such a channel, or if it cannot be meant.
    pub fn open(
        &self,
        now: Timestamp,
        start: &Start,
        source: Option<&str>,
    ) -> Result<Kept, ChannelError> {
        let id = id(&start.channel)?;
        let start = members(start)?;
        kept(self.0.begin(now, TURNS, Some(id), start, source)?)
    }

    /// Lets a channel take an event, as JSON; `source` makes a second delivery recognisable.
    ///
    /// # Errors
    ///
    /// Fails if the store does, if there is no such channel, or if the event cannot be meant.
    pub fn take(
        &self,
        now: Timestamp,
        channel: &str,
        event: &Value,
        source: Option<&str>,
    ) -> Result<Kept, ChannelError> {
        let event = members(event)?;
        kept(self.0.advance_only(TURNS, now, &id(channel)?, &event, source)?)
    }

    /// Returns the alarms that are due, the earliest first.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn due(&self, now: Timestamp) -> Result<Vec<Timer>, ChannelError> {
        Ok(self.0.due(now)?)
    }

    /// Takes an alarm; `missed` when it was due while nobody watched.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn ring(&self, now: Timestamp, timer: &Timer, missed: bool) -> Result<Kept, ChannelError> {
        let before = self.0.load(&timer.run)?.revision;
        self.0.ring(now, timer, missed)?;
        let filter = DecisionFilter { run: Some(timer.run.clone()), limit: 1, before: None };
        let newest = self.0.store().decisions(&filter).map_err(KeeperError::from)?;
        let newest = newest.first().filter(|decision| decision.revision > before);
        let body = newest.and_then(|decision| serde_json::from_str::<Value>(&decision.body).ok());
        let Some(body) = body else { return Ok(Kept::default()) };
        let effects = body.get("effects").cloned().unwrap_or_default();
        let rule = body.get("rule").and_then(Value::as_str).map(str::to_owned);
        Ok(Kept { effects: read(effects)?, rule, ..Kept::default() })
    }

    /// Returns a channel as its last step left it.
    ///
    /// # Errors
    ///
    /// Fails if the store does, or if this version does not know the form.
    pub fn state(&self, channel: &str) -> Result<State, ChannelError> {
        let run = self.0.load(&id(channel)?)?;
        machines::restore(&run.record.state)
            .map_err(|error| ChannelError::Refused(error.to_string()))
    }
}

fn id(channel: &str) -> Result<RunId, ChannelError> {
    RunId::new(channel).map_err(|error| ChannelError::Refused(error.to_string()))
}

fn members(value: &impl serde::Serialize) -> Result<Map<String, Value>, ChannelError> {
    read(serde_json::to_value(value).unwrap_or_default())
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, ChannelError> {
    serde_json::from_value(value).map_err(|error| ChannelError::Refused(error.to_string()))
}

fn kept(answer: Answer) -> Result<Kept, ChannelError> {
    let Answer { effects, replies, decision, repeated, .. } = answer;
    let rule = decision.get("rule").and_then(Value::as_str).map(str::to_owned);
    Ok(Kept {
        effects: read(Value::Array(effects))?,
        replies: read(Value::Array(replies))?,
        rule,
        repeated,
    })
}
