//! What keeps channels: their journals, alarms and outbox.

use std::collections::BTreeMap;

use aldis::engine::channel_log::Kept;
use aldis_machine::turns::{Effect, Event, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Fault, When};

use super::planted::{self, Bug};

/// The store failed: whether the step is there is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failed;

/// What happened to a channel, with the key it was sent under.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) at: Timestamp,
    pub(super) event: Event,
    pub(super) source: Option<String>,
}

/// A server's store. The server itself remembers nothing.
pub(super) trait Engine {
    /// Opens a channel.
    fn open(&mut self, now: Timestamp, start: &Start) -> Result<Kept, Failed>;

    /// Lets a channel take an event.
    fn take(
        &mut self,
        now: Timestamp,
        channel: &str,
        event: &Event,
        source: Option<&str>,
    ) -> Result<Kept, Failed>;

    /// Returns the channels whose alarms are due, the earliest first.
    fn due(&self, now: Timestamp) -> Vec<String>;

    /// Takes the alarm of a channel.
    fn ring(&mut self, now: Timestamp, channel: &str, missed: bool) -> Result<Kept, Failed>;

    /// Returns a channel as its last step left it.
    fn state(&self, channel: &str) -> State;

    /// Returns when the alarm of a channel is due.
    fn alarm(&self, channel: &str) -> Option<Timestamp>;

    /// Returns the first effect that is still to be carried out, with its key.
    fn pending(&self) -> Option<(String, Effect)>;

    /// Notes that an effect was carried out.
    fn done(&mut self, key: &str);

    /// Returns what happened to a channel since it was opened, and when that was.
    fn journal(&self, channel: &str) -> (Timestamp, Vec<Line>);

    /// Plans how the next commit fails; `None` takes the plan back.
    fn fail_next(&mut self, fault: Option<Fault>);

    /// The server has died and is started again.
    fn restart(&mut self) {}
}

/// Plain values: what the keeper and a store do, without any text.
pub(super) struct Model {
    bug: Option<Bug>,
    channels: BTreeMap<String, Channel>,
    alarms: BTreeMap<String, Timestamp>,
    /// In the order of their keys, which is that of the steps.
    outbox: BTreeMap<u64, Effect>,
    enqueued: u64,
    fault: Option<Fault>,
}

struct Channel {
    state: State,
    opened: Timestamp,
    journal: Vec<Line>,
    answers: BTreeMap<String, Kept>,
}

/// A step that is to be written.
struct Step<'s> {
    now: Timestamp,
    channel: &'s str,
    state: State,
    /// What happened; nothing but the beginning has no event.
    line: Option<Line>,
    kept: Kept,
    wake: Option<Option<Timestamp>>,
}

impl Model {
    pub(super) fn new(bug: Option<Bug>) -> Self {
        Self {
            bug,
            channels: BTreeMap::new(),
            alarms: BTreeMap::new(),
            outbox: BTreeMap::new(),
            enqueued: 0,
            fault: None,
        }
    }

    fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    fn commit(&mut self, step: Step<'_>) -> Result<Kept, Failed> {
        let fault = self.fault.take();
        if fault.is_some_and(|fault| fault.when == When::Before) {
            return if self.has(Bug::AnswerBeforeCommit) { Ok(step.kept) } else { Err(Failed) };
        }
        let Step { now, channel, state, line, kept, wake } = step;
        let known = self.channels.entry(channel.to_owned()).or_insert_with(|| Channel {
            state: state.clone(),
            opened: now,
            journal: Vec::new(),
            answers: BTreeMap::new(),
        });
        known.state = state;
        if let Some(line) = line {
            known.answers.extend(line.source.clone().map(|source| (source, kept.clone())));
            known.journal.push(line);
        }
        let later =
            self.bug == Some(Bug::AlarmForgotten) && kept.rule.as_deref() == Some("turns/timeout");
        match wake.filter(|_| !later) {
            Some(Some(at)) => drop(self.alarms.insert(channel.to_owned(), at)),
            Some(None) => drop(self.alarms.remove(channel)),
            None => {}
        }
        let dropped = self.bug == Some(Bug::PostLost) && fault.is_some();
        for effect in kept.effects.iter().filter(|_| !dropped) {
            self.enqueued += 1;
            self.outbox.insert(self.enqueued, effect.clone());
        }
        if fault.is_some() { Err(Failed) } else { Ok(kept) }
    }
}

impl Engine for Model {
    fn open(&mut self, now: Timestamp, start: &Start) -> Result<Kept, Failed> {
        let Ok((state, outcome)) = State::start(now, start.clone()) else { return Err(Failed) };
        let (kept, wake) = planted::kept(outcome);
        self.commit(Step { now, channel: &start.channel, state, line: None, kept, wake })
    }

    fn take(
        &mut self,
        now: Timestamp,
        channel: &str,
        event: &Event,
        source: Option<&str>,
    ) -> Result<Kept, Failed> {
        let bug = self.bug;
        let Some(known) = self.channels.get(channel) else { return Err(Failed) };
        let answered = source.and_then(|source| known.answers.get(source));
        if let Some(kept) = answered.filter(|_| bug != Some(Bug::TakenTwice)) {
            return Ok(Kept { repeated: true, ..kept.clone() });
        }
        let mut state = known.state.clone();
        let (kept, wake) = planted::take(bug, &mut state, now, event);
        if kept.rule.is_none() {
            return Ok(kept);
        }
        let source = source.map(str::to_owned);
        let line = Some(Line { at: now, event: event.clone(), source });
        self.commit(Step { now, channel, state, line, kept, wake })
    }

    fn due(&self, now: Timestamp) -> Vec<String> {
        let mut due: Vec<(Timestamp, &String)> =
            self.alarms.iter().map(|(channel, at)| (*at, channel)).collect();
        due.retain(|(at, _)| *at <= now);
        due.sort_unstable();
        due.into_iter().map(|(_, channel)| channel.clone()).collect()
    }

    fn ring(&mut self, now: Timestamp, channel: &str, missed: bool) -> Result<Kept, Failed> {
        let event = if missed && !self.has(Bug::RecoveryForgotten) {
            Event::Recovered
        } else {
            Event::Wake { turn: None }
        };
        let kept = self.take(now, channel, &event, None)?;
        if kept.rule.is_none() {
            self.alarms.remove(channel);
        }
        Ok(kept)
    }

    fn state(&self, channel: &str) -> State {
        match self.channels.get(channel) {
            Some(known) => known.state.clone(),
            None => unreachable!("{channel} was never opened"),
        }
    }

    fn alarm(&self, channel: &str) -> Option<Timestamp> {
        self.alarms.get(channel).copied()
    }

    fn pending(&self) -> Option<(String, Effect)> {
        self.outbox.first_key_value().map(|(key, effect)| (key.to_string(), effect.clone()))
    }

    fn done(&mut self, key: &str) {
        let key = key.parse();
        key.map(|key: u64| self.outbox.remove(&key)).ok();
    }

    fn journal(&self, channel: &str) -> (Timestamp, Vec<Line>) {
        match self.channels.get(channel) {
            Some(known) => (known.opened, known.journal.clone()),
            None => unreachable!("{channel} was never opened"),
        }
    }

    fn fail_next(&mut self, fault: Option<Fault>) {
        self.fault = fault;
    }
}
