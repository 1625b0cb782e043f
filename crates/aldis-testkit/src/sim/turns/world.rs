//! One world: channels, a server that keeps them, everybody who speaks, and everything that goes
//! wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use aldis::engine::channel_log::Kept;
use aldis_machine::turns::{Event, Floor, Start, State};
use aldis_signal::time::Timestamp;
use aldis_store::{Fault, FaultKind, When};

use super::super::oracle::{Check, hold};
use super::super::world::Tally;
use super::engine::{Engine, Failed};
use super::oracle::{Books, Seen};
use super::voices;
use crate::corpus::rng::Rng;

/// How many of the last events a trace keeps.
const TRACE_MAX: usize = 20;
/// Where clocks begin: 2026-03-02T10:00:00Z.
const BEGINNING: i64 = 1_772_445_600_000;
/// Within so many alarms a channel in which nobody speaks comes to rest.
const CALM_MAX: usize = 400;

/// How a world is made.
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) engine: Box<dyn Engine>,
    pub(super) faulty: bool,
    pub(super) replays: bool,
    pub(super) traced: bool,
}

/// A request, as its sender knows it.
#[derive(Clone, Debug)]
struct Request {
    channel: String,
    event: Event,
    /// What makes a second delivery recognisable.
    source: Option<String>,
}

/// A world and everything in it.
pub(super) struct World {
    rng: Rng,
    /// What the server's clock says. It is set only while the server is down.
    now: Timestamp,
    engine: Box<dyn Engine>,
    starts: BTreeMap<String, Start>,
    books: BTreeMap<String, Books>,
    /// Requests that will arrive late, or again.
    limbo: Vec<Request>,
    /// Keys of effects that were carried out.
    performed: BTreeSet<String>,
    requests: u64,
    faulty: bool,
    replays: bool,
    pub(super) tally: Tally,
    hash: u64,
    trace: Option<VecDeque<String>>,
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { seed, engine, faulty, replays, traced } = setup;
        Self {
            // Neighbouring seeds must not give neighbouring worlds.
            rng: Rng::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7475_726e),
            now: Timestamp::from_millis(BEGINNING),
            engine,
            starts: BTreeMap::new(),
            books: BTreeMap::new(),
            limbo: Vec::new(),
            performed: BTreeSet::new(),
            requests: 0,
            faulty,
            replays,
            tally: Tally::default(),
            hash: 0xcbf2_9ce4_8422_2325,
            trace: traced.then(VecDeque::new),
        }
    }

    /// Lets this many events happen, then falls silent and looks at what is left.
    pub(super) fn run(&mut self, events: u64) -> Check {
        for number in 0..self.rng.between(1, 4) {
            self.open(format!("c{number}"))?;
        }
        while self.tally.events < events {
            self.act()?;
        }
        self.faulty = false;
        self.calm()?;
        self.audit()
    }

    /// What the world did, as one number.
    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    /// The last events, where they were kept.
    pub(super) fn trace(&mut self) -> Vec<String> {
        self.trace.take().map(Vec::from).unwrap_or_default()
    }

    fn open(&mut self, channel: String) -> Check {
        let start = voices::start(&mut self.rng, channel.clone());
        let kept = self.engine.open(self.now, &start);
        let state = self.engine.state(&channel);
        let books = Books::default();
        hold(kept.is_ok(), "a_channel_opens", || channel.clone())?;
        books.check_state(&state, self.engine.alarm(&channel))?;
        self.tally.runs += 1;
        self.books.insert(channel.clone(), books);
        self.starts.insert(channel, start);
        Ok(())
    }

    /// Whether something goes wrong that does so this often in a thousand.
    fn strikes(&mut self, permille: usize) -> bool {
        let strikes = self.faulty && self.rng.below(1_000) < permille;
        self.tally.faults += u64::from(strikes);
        strikes
    }

    /// One thing happens.
    fn act(&mut self) -> Check {
        self.pass_some();
        if self.strikes(6) {
            return self.restart();
        }
        let due = self.engine.due(self.now);
        match self.rng.below(100) {
            // The alarm is not always first: a message that races it may be.
            0..60 if !due.is_empty() => self.ring(&due[0], false),
            60..68 if !self.limbo.is_empty() => {
                let place = self.rng.below(self.limbo.len());
                let late = self.limbo.swap_remove(place);
                self.deliver(&late)
            }
            68..80 => self.perform(),
            roll => self.request(roll),
        }
    }

    /// Time passes: mostly little, often just up to an alarm, where races are.
    fn pass_some(&mut self) {
        let alarms = self.books.keys().filter_map(|channel| self.engine.alarm(channel));
        let next = alarms.filter(|alarm| *alarm > self.now).min();
        let millis = match (self.rng.below(10), next) {
            (0..4, _) => self.rng.below(50) as u64,
            (4..7, _) => self.rng.below(5_000) as u64,
            (_, Some(next)) => {
                let left = u64::try_from(next.since(self.now).as_millis()).unwrap_or(0);
                (left + self.rng.below(4) as u64).saturating_sub(2)
            }
            (_, None) => self.rng.below(60_000) as u64,
        };
        self.tally.millis += millis;
        self.now = self.now.after(Duration::from_millis(millis));
    }

    /// Somebody asks something of a channel.
    fn request(&mut self, roll: usize) -> Check {
        let place = self.rng.below(self.books.len());
        let Some(channel) = self.books.keys().nth(place).cloned() else { return Ok(()) };
        let state = self.engine.state(&channel);
        let event = match roll {
            90..95 => voices::change(&mut self.rng, &state),
            95..99 => voices::human(&mut self.rng, &state),
            99 if self.rng.chance(2) => Event::Close { by: "a human".to_owned() },
            _ => voices::speech(&mut self.rng, &state),
        };
        self.requests += 1;
        let source = self.rng.chance(70).then(|| format!("request-{}", self.requests));
        let request = Request { channel, event, source };
        if self.strikes(30) {
            // On its way for too long.
            self.limbo.push(request);
            return Ok(());
        }
        if request.source.is_some() && self.strikes(30) {
            self.limbo.push(request.clone());
        }
        self.deliver(&request)
    }

    /// The server takes a request. Whoever gets no answer asks again.
    fn deliver(&mut self, request: &Request) -> Check {
        let Request { channel, event, source } = request;
        self.note(|| format!("{channel} {} {event:?}", source.as_deref().unwrap_or("-")));
        self.plan_fault();
        let before = self.engine.state(channel);
        let result = self.engine.take(self.now, channel, event, source.as_deref());
        self.engine.fail_next(None);
        if result.is_err() && source.is_some() {
            self.limbo.push(request.clone());
        }
        self.seen(channel, &before, event, source.as_deref(), result)
    }

    /// An alarm is taken.
    fn ring(&mut self, channel: &str, missed: bool) -> Check {
        self.note(|| format!("{channel} alarm{}", if missed { ", missed" } else { "" }));
        self.plan_fault();
        let before = self.engine.state(channel);
        let result = self.engine.ring(self.now, channel, missed);
        self.engine.fail_next(None);
        let event = if missed { Event::Recovered } else { Event::Wake { turn: None } };
        self.seen(channel, &before, &event, None, result)
    }

    fn plan_fault(&mut self) {
        if self.strikes(15) {
            let when = self.rng.pick(&[When::Before, When::After]);
            self.engine.fail_next(Some(Fault { kind: FaultKind::Io, when }));
        }
    }

    /// The oracle looks at what came of it.
    fn seen(
        &mut self,
        channel: &str,
        before: &State,
        event: &Event,
        source: Option<&str>,
        result: Result<Kept, Failed>,
    ) -> Check {
        let after = self.engine.state(channel);
        self.tally.events += 1;
        self.tally.steps += u64::from(*before != after);
        self.mix(&after);
        let alarm = self.engine.alarm(channel);
        let Some(books) = self.books.get_mut(channel) else { return Ok(()) };
        let kept = result.as_ref().ok();
        let seen = Seen { now: self.now, before, after: &after, event, source, kept };
        books.check(&seen)?;
        books.check_state(&after, alarm)
    }

    /// Carries the first effect out that waits; the note of it may get lost.
    fn perform(&mut self) -> Check {
        let Some((key, effect)) = self.engine.pending() else { return Ok(()) };
        self.note(|| format!("performs {key} {effect:?}"));
        self.performed.insert(key.clone());
        if !self.strikes(30) {
            self.engine.done(&key);
        }
        Ok(())
    }

    /// The server dies, is away for a while, and takes the alarms that were due meanwhile.
    fn restart(&mut self) -> Check {
        self.note(|| "the server dies".to_owned());
        self.engine.restart();
        let away = self.rng.below(120_000) as u64;
        self.now = self.now.after(Duration::from_millis(away));
        if self.strikes(100) {
            let step = Duration::from_secs(self.rng.below(7_200) as u64);
            let back = self.rng.chance(50);
            self.now = if back { self.now.before(step) } else { self.now.after(step) };
            self.note(|| "the clock was set".to_owned());
        }
        for channel in self.engine.due(self.now) {
            self.ring(&channel, true)?;
        }
        Ok(())
    }

    /// Nobody speaks any more: every channel comes to rest by itself.
    fn calm(&mut self) -> Check {
        self.limbo.clear();
        for _ in 0..CALM_MAX {
            let alarms = self.books.keys().filter_map(|channel| self.engine.alarm(channel));
            let Some(next) = alarms.min() else { break };
            self.now = self.now.max(next);
            let due = self.engine.due(self.now);
            hold(!due.is_empty(), "a_due_alarm_is_found", || format!("{next}"))?;
            for channel in due {
                self.ring(&channel, false)?;
            }
        }
        for channel in self.books.keys() {
            let state = self.engine.state(channel);
            let rests = matches!(state.floor, Floor::Free | Floor::Paused { .. });
            hold(rests, "a_silent_channel_comes_to_rest", || format!("{state:?}"))?;
            self.tally.ends += 1;
        }
        while self.engine.pending().is_some() {
            self.perform()?;
        }
        Ok(())
    }

    /// Looks at what is stored when all is over.
    fn audit(&mut self) -> Check {
        let mut wanted = 0;
        for (channel, start) in &self.starts {
            let (opened, journal) = self.engine.journal(channel);
            let Some(books) = self.books.get(channel) else { continue };
            books.check_journal(&journal)?;
            if !self.replays {
                continue;
            }
            self.tally.replayed += 1;
            let Ok((mut state, first)) = State::start(opened, start.clone()) else { continue };
            wanted += super::planted::kept(first).0.effects.len();
            for line in &journal {
                let outcome = state.on_event(line.at, &line.event);
                wanted += super::planted::kept(outcome).0.effects.len();
            }
            let stored = self.engine.state(channel);
            hold(state == stored, "state_is_replay", || {
                format!("{state:?}\nis stored as {stored:?}")
            })?;
        }
        let found = self.performed.len();
        hold(!self.replays || found == wanted, "every_effect_is_carried_out", || {
            format!("{found} of {wanted}")
        })
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_MAX {
                trace.pop_front();
            }
            trace.push_back(format!("{} {}", self.now, line()));
        }
    }

    /// Enters a step into the trace's hash.
    fn mix(&mut self, state: &State) {
        let held = state.floor.turn().map_or(0, |turn| turn.deadline.as_millis().unsigned_abs());
        let values = [
            self.now.as_millis().unsigned_abs(),
            state.turn << 16 | (state.index as u64) << 8 | state.queue.len() as u64,
            held,
            u64::from(state.silent_turns) << 8 | state.history.len() as u64,
        ];
        for value in values {
            self.hash = (self.hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        }
    }
}
