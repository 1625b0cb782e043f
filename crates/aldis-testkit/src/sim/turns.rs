//! Worlds of channels: two servers at once, requests that come again, alarms that come late, and
//! agents and people who speak when they like.

use std::sync::Arc;

use aldis_engine::{AnyHandle, Dialects, Engine, EngineError, Members, NewRun, RequestOutcome};
use aldis_machine::turns::{Config, HumanInterrupt, Start, State, TurnOrder};
use aldis_signal::Dialect;
use aldis_store::{Driver, RunFilter, RunId, Source, Store};
use serde_json::{Value, json};

use super::fate::SharedFate;
use super::store::SimStore;
use super::{Broken, oracle, people};

/// Everybody who could ever take part.
const AGENTS: [&str; 5] = ["pm", "dev", "qa", "ops", "ux"];
/// How many alarms it takes at most until a channel rests in which nobody speaks.
const CALM_MAX: u32 = 400;
/// How often a request is repeated until it is answered.
const TRIES: u32 = 40;

/// No agent of a channel speaks a dialect.
struct NoDialects;

impl Dialects for NoDialects {
    fn dialect(&self, name: &str) -> Result<Arc<Dialect>, String> {
        Err(format!("no dialect {name}"))
    }
}

struct Servers<'s> {
    inner: &'s Arc<dyn Store>,
    shared: &'s SharedFate,
    channels: Vec<RunId>,
    requests: u64,
    /// The last requests, with their first answers.
    answered: Vec<(RunId, Members, Source, Value)>,
    /// Since when nobody watched the alarms, if nobody does.
    down: bool,
}

pub(super) fn play(
    inner: &Arc<dyn Store>,
    shared: &SharedFate,
    (goal, replayed): (u64, bool),
) -> Result<(), Broken> {
    let (channels, answered) = (Vec::new(), Vec::new());
    let mut servers = Servers { inner, shared, channels, requests: 0, answered, down: false };
    let count = 1 + shared.lock().rng.below(3);
    for number in 0..count {
        servers.open(number)?;
    }
    while shared.lock().tally.events < goal {
        servers.step()?;
    }
    servers.calm()?;
    let engine = Engine::new(Arc::clone(inner));
    let acknowledged = std::mem::take(&mut shared.lock().acknowledged);
    for id in &servers.channels {
        let mine = format!("{id} ");
        let here = acknowledged.iter().filter(|text| text.starts_with(&mine));
        shared.lock().acknowledged = here.cloned().collect();
        oracle::journal(&engine, id, shared, replayed).map_err(Broken::from)?;
    }
    Ok(())
}

impl Servers<'_> {
    fn open(&mut self, number: usize) -> Result<(), Broken> {
        let broken = |error: &dyn std::fmt::Display| Broken::new("channels_open", error);
        let id = RunId::new(format!("c{number}")).map_err(|error| broken(&error))?;
        let (now, start) = {
            let mut fate = self.shared.lock();
            fate.tally.runs += 1;
            (fate.now, start(&mut fate.rng, id.as_str()))
        };
        let engine = Engine::new(Arc::clone(self.inner));
        let new = NewRun { id: Some(id.clone()), ..NewRun::of("", Driver::Server) };
        engine.begin::<State>(now, &new, start).map_err(|error| broken(&error))?;
        self.channels.push(id);
        Ok(())
    }

    /// One of the servers: each has an engine of its own, over the same store.
    fn server(&self) -> Engine {
        let store = SimStore::new(Arc::clone(self.inner), self.shared.clone(), true);
        Engine::new(Arc::new(store))
    }

    fn step(&mut self) -> Result<(), Broken> {
        let shared = self.shared;
        let (kind, place) = {
            let mut fate = shared.lock();
            (fate.rng.below(100), fate.rng.below(self.channels.len()))
        };
        shared.pass(if kind < 50 { 1_000 } else { 20_000 });
        let Some(id) = self.channels.get(place).cloned() else { return Ok(()) };
        shared.next_process(8, 8);
        match kind {
            0..20 => drop(self.alarms(false)?),
            20..26 => {
                let engine = Engine::new(Arc::clone(self.inner));
                shared.guarded(|| people::act(&engine, &id, shared, false))?;
            }
            26..30 => self.again()?,
            30..32 => self.down = true,
            _ => self.request(&id)?,
        }
        shared.lock().dies_in = None;
        self.look(&id)
    }

    /// Takes the alarms that are due, as servers do; late where none was there.
    fn alarms(&mut self, calm: bool) -> Result<bool, Broken> {
        let shared = self.shared;
        let missed = std::mem::take(&mut self.down);
        let engine = self.server();
        let now = shared.lock().now;
        let fired = shared.guarded(|| -> Result<usize, EngineError> {
            let due = engine.due(now, 8)?;
            for timer in &due {
                shared.lock().event(format_args!("alarm of {}", timer.run));
                engine.fire(now, timer, missed)?;
            }
            Ok(due.len())
        })?;
        match fired {
            Some(Ok(fired)) => Ok(fired > 0),
            Some(Err(EngineError::Store(error))) if !calm => {
                shared.note(format_args!("alarms wait: {error}"));
                Ok(false)
            }
            Some(Err(error)) => Err(Broken::new("alarms_are_taken", &error)),
            None => Ok(false),
        }
    }

    /// Somebody sends a request, again and again until it is answered.
    fn request(&mut self, id: &RunId) -> Result<(), Broken> {
        self.requests += 1;
        let shared = self.shared;
        let word = format!("{id} says {}", self.requests);
        let (event, state) = {
            let engine = Engine::new(Arc::clone(self.inner));
            let Ok(run) = engine.open::<State>(id) else { return Ok(()) };
            let state = run.into_state();
            let mut fate = shared.lock();
            let event = request(&mut fate.rng, &state, &word);
            fate.event(format_args!("{id}: {event}"));
            (event, state)
        };
        let Value::Object(members) = event else { return Ok(()) };
        let source = Source::new(format!("key-{}", self.requests));
        for _ in 0..TRIES {
            let (engine, now) = (self.server(), shared.lock().now);
            let taken = shared
                .guarded(|| engine.step_json(now, id, &members, Some(&source), &NoDialects))?;
            match taken {
                Some(Ok(answer)) => {
                    if members.contains_key("text") {
                        shared.lock().acknowledged.insert(word);
                    }
                    if turn(&answer).is_some_and(|turn| turn < state.turn()) {
                        return Err(Broken::new("turns_are_counted", id));
                    }
                    self.answered.push((id.clone(), members, source, told(&answer)));
                    return Ok(());
                }
                Some(Err(EngineError::Store(_) | EngineError::Contended(_))) | None => {}
                Some(Err(EngineError::Invalid(why))) => {
                    shared.note(format_args!("refused: {why}"));
                    return Ok(());
                }
                Some(Err(error)) => return Err(Broken::new("requests_are_answered", &error)),
            }
            shared.pass(500);
        }
        Err(Broken::new("requests_are_answered", id))
    }

    /// A request comes again: it gets its first answer.
    fn again(&self) -> Result<(), Broken> {
        let shared = self.shared;
        let place = shared.lock().rng.below(self.answered.len());
        let Some((id, members, source, first)) = self.answered.get(place) else { return Ok(()) };
        shared.lock().event(format_args!("{id}: {} again", source.key));
        let (engine, now) = (self.server(), shared.lock().now);
        let taken =
            shared.guarded(|| engine.step_json(now, id, members, Some(source), &NoDialects))?;
        match taken {
            Some(Ok(answer)) if !answer.repeated || told(&answer) != *first => {
                let detail = format!("{}: {first} and then {}", source.key, told(&answer));
                Err(Broken::new("a_repeat_has_the_first_answer", &detail))
            }
            Some(Ok(_) | Err(EngineError::Store(_) | EngineError::Contended(_))) | None => Ok(()),
            Some(Err(error)) => Err(Broken::new("requests_are_answered", &error)),
        }
    }

    /// What must hold of a channel.
    fn look(&self, id: &RunId) -> Result<(), Broken> {
        let engine = Engine::new(Arc::clone(self.inner));
        let Ok(AnyHandle::Turns(run)) = engine.open_any(id) else { return Ok(()) };
        let state = run.state();
        if let Some(turn) = state.holder().turn()
            && !state.queue().contains(&turn.agent)
        {
            return Err(Broken::new("whoever_has_the_turn_takes_part", &turn.agent));
        }
        let wake = aldis_machine::Machine::next_wake(state);
        let ever = aldis_signal::time::Timestamp::from_millis(i64::MAX);
        let timers = engine.due(ever, usize::MAX).unwrap_or_default();
        let set = timers.iter().find(|timer| timer.run == *id).map(|timer| timer.due);
        if set != wake {
            let detail = format!("{id}: {set:?} is set, not {wake:?}");
            return Err(Broken::new("the_alarm_is_set", &detail));
        }
        Ok(())
    }

    /// Nobody speaks any more: every channel must come to rest.
    fn calm(&mut self) -> Result<(), Broken> {
        self.shared.lock().faults = false;
        let engine = Engine::new(Arc::clone(self.inner));
        for _ in 0..CALM_MAX {
            let next = engine.store().next_timer();
            let next = next.map_err(|error| Broken::new("the_store_is_readable", &error))?;
            let Some(next) = next else {
                let all = RunFilter { limit: usize::MAX, ..RunFilter::default() };
                let count = engine.store().count(&all).unwrap_or(0);
                self.shared.lock().tally.ends += count;
                return Ok(());
            };
            let mut fate = self.shared.lock();
            fate.now = fate.now.max(next);
            drop(fate);
            self.alarms(true)?;
        }
        Err(Broken::new("every_run_ends", &"alarms without end"))
    }
}

fn turn(answer: &RequestOutcome) -> Option<u64> {
    match &answer.run {
        AnyHandle::Turns(run) => Some(run.state().turn()),
        _ => None,
    }
}

/// What whoever asked is told.
fn told(answer: &RequestOutcome) -> Value {
    let rules: Vec<&str> = answer.decisions.iter().map(|decision| &*decision.rule).collect();
    json!({ "rules": rules, "effects": answer.effects })
}

fn start(rng: &mut crate::corpus::rng::Rng, channel: &str) -> Start {
    let count = rng.between(2, 5);
    let agents = AGENTS.iter().take(count).map(|&agent| agent.to_owned()).collect();
    let interrupts = [
        HumanInterrupt::Inject,
        HumanInterrupt::Interrupt,
        HumanInterrupt::Parallel,
        HumanInterrupt::Queue,
    ];
    let mut config = Config {
        turn_order: rng.pick(&[TurnOrder::RoundRobin, TurnOrder::Priority, TurnOrder::Manual]),
        human_interrupt: rng.pick(&interrupts),
        default_timeout_seconds: 1 + rng.below(60) as u64,
        grace: rng.chance(30),
        ..Config::default()
    };
    config.auto_detect.enabled = rng.chance(30);
    Start { channel: channel.to_owned(), agents, config, personas: Default::default() }
}

/// What somebody asks of a channel.
fn request(rng: &mut crate::corpus::rng::Rng, state: &State, word: &str) -> Value {
    let holder = state.holder().turn().map(|turn| turn.agent.clone());
    let anybody = rng.pick(&AGENTS).to_owned();
    let agent = holder.filter(|_| rng.chance(75)).unwrap_or_else(|| anybody.clone());
    match rng.below(20) {
        0..12 => {
            let text = match rng.chance(60) {
                true => format!("{word}\nTURN_COMPLETE"),
                false => word.to_owned(),
            };
            let turn = state.turn().saturating_sub(rng.below(2) as u64);
            match rng.chance(50) {
                true => json!({"event": "message", "agent": agent, "texts": [text]}),
                false => {
                    json!({"event": "message", "agent": agent, "turn": turn, "texts": [text]})
                }
            }
        }
        12..15 => json!({"event": "human", "text": word}),
        15 => json!({"event": "add", "agent": anybody}),
        16 => json!({"event": "remove", "agent": anybody}),
        17 => json!({"event": "crashed", "agent": agent}),
        18 => json!({"event": "next", "agent": anybody}),
        _ => json!({"event": "recovered"}),
    }
}
