//! Whatever happens in whatever order, with others who write and a store that fails: the journal leads
//! to what is stored, and every effect is there once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aldis_engine::{Engine, EngineError, Handle, Stepped};
use aldis_machine::{Decision, HumanCommand, Machine, delivery, phases, run, turns};
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, Event, Revision, RunId};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Fate, World, a_channel, a_delivery, a_run, at, id, phases};

/// What somebody does. Events are in JSON.
#[derive(Clone, Debug)]
enum Act {
    /// The driver lets the run take an event.
    Advance(Value),
    /// The same, and somebody else is first at the commit.
    Second(Value, Value),
    /// The same, and the store fails, before or after writing.
    Fails(Value, bool),
    /// Somebody else lets the run take an event.
    Other(Value),
    /// A human wants something.
    Command(HumanCommand),
    Flush,
    /// The store fails at a flush, before or after writing.
    FlushFails(bool),
    Refresh,
    Recover,
    /// The driver performs the next effect.
    Perform,
    Note,
    /// The driver is killed and another one takes its place.
    Crash,
}

fn act(event: BoxedStrategy<Value>) -> impl Strategy<Value = Act> {
    let text = || "[a-c]{0,2}";
    let command = prop_oneof![
        Just(HumanCommand::Pause),
        Just(HumanCommand::Resume),
        text().prop_map(|text| HumanCommand::Tell { text, to: None }),
        (1..3_u32, text())
            .prop_map(|(no, text)| HumanCommand::Answer { id: format!("q{no}"), text }),
    ];
    prop_oneof![
        12 => event.clone().prop_map(Act::Advance),
        4 => (event.clone(), event.clone()).prop_map(|(one, other)| Act::Second(one, other)),
        4 => (event.clone(), any::<bool>()).prop_map(|(event, after)| Act::Fails(event, after)),
        3 => event.prop_map(Act::Other),
        3 => command.prop_map(Act::Command),
        2 => Just(Act::Flush),
        2 => any::<bool>().prop_map(Act::FlushFails),
        2 => Just(Act::Refresh),
        1 => Just(Act::Recover),
        4 => Just(Act::Perform),
        1 => Just(Act::Note),
        1 => Just(Act::Crash),
    ]
}

/// What happens, and how many seconds after the last: a clock may go back.
fn acts(event: BoxedStrategy<Value>) -> impl Strategy<Value = Vec<(i64, Act)>> {
    let later = prop_oneof![8 => 0..90_i64, 1 => -20..0_i64, 1 => 600..4_000_i64];
    vec((later, act(event)), 1..60)
}

/// Plays what happens, and keeps what was told.
struct Player<M: Machine> {
    world: World,
    run: RunId,
    handle: Handle<M>,
    now: Timestamp,
    /// What drivers and others were told.
    told: Vec<Decision>,
    performed: BTreeSet<String>,
    /// Whether a driver was killed: what it was not told yet, nobody is.
    crashed: bool,
}

impl<M: Machine> Player<M> {
    fn new(start: M::Start) -> Self {
        let world = World::memory();
        let new = crate::support::named("x", Driver::Process);
        let (handle, outcome) = world.engine.begin::<M>(at(0), &new, start).unwrap();
        let (run, now, told) = (id("x"), at(0), outcome.decisions);
        let (performed, crashed) = (BTreeSet::new(), false);
        Self { world, run, handle, now, told, performed, crashed }
    }

    fn engine(&self) -> Engine {
        self.world.engine.clone()
    }

    fn event(value: &Value) -> M::Event {
        serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{value}: {error}"))
    }

    /// Keeps what the driver was told. A store may fail, nothing else may.
    fn hear(&mut self, stepped: Result<Stepped<M::Effect>, EngineError>) {
        match stepped {
            Ok(stepped) => self.told.extend(stepped.outcome.decisions),
            Err(EngineError::Store(_)) => {}
            Err(error) => panic!("{error}"),
        }
        self.world.store.forget();
    }

    fn play(&mut self, later: i64, act: &Act) {
        self.now = Timestamp::from_millis(self.now.as_millis() + later * 1_000);
        let (engine, now) = (self.engine(), self.now);
        match act {
            Act::Advance(event) => {
                let stepped = self.handle.advance(&engine, now, Self::event(event));
                self.hear(stepped);
            }
            Act::Second(event, other) => {
                let (theirs, run, other) = (engine.clone(), self.run.clone(), other.clone());
                let told = Arc::new(Mutex::new(Vec::new()));
                let heard = Arc::clone(&told);
                let meddle = move || {
                    heard.lock().unwrap().extend(other_step::<M>(&theirs, &run, now, &other));
                };
                self.world.store.plan(Fate::After(Box::new(meddle)));
                let stepped = self.handle.advance(&engine, now, Self::event(event));
                self.hear(stepped);
                self.told.append(&mut told.lock().unwrap());
            }
            Act::Fails(event, after) => {
                self.world.store.plan(fate(*after));
                let stepped = self.handle.advance(&engine, now, Self::event(event));
                self.hear(stepped);
            }
            Act::Other(event) => {
                let told = other_step::<M>(&engine, &self.run, now, event);
                self.told.extend(told);
            }
            Act::Command(command) => match engine.command(now, &self.run, command, "them", None) {
                Ok(answer) => self.told.extend(answer.decisions),
                Err(EngineError::NotPossible(_)) => {}
                Err(error) => panic!("{error}"),
            },
            Act::Flush => {
                let stepped = self.handle.flush(&engine, now);
                self.hear(stepped);
            }
            Act::FlushFails(after) => {
                self.world.store.plan(fate(*after));
                let stepped = self.handle.flush(&engine, now);
                self.hear(stepped);
            }
            Act::Refresh => {
                let stepped = self.handle.refresh(&engine, now);
                let nothing = || Stepped { written: false, outcome: Default::default() };
                self.hear(stepped.map(|stepped| stepped.unwrap_or_else(nothing)));
            }
            Act::Recover => {
                let stepped = self.handle.recover(&engine, now);
                self.hear(stepped);
            }
            Act::Perform => self.perform(),
            Act::Note => {
                let note = aldis_engine::note("note", &self.now).unwrap();
                self.handle.set_notes(&engine, now, vec![note]).unwrap();
            }
            Act::Crash => {
                self.crashed = true;
                self.handle = engine.open(&self.run).unwrap();
            }
        }
    }

    fn perform(&mut self) {
        if let Some(next) = self.handle.next_effect(&self.engine()).unwrap() {
            let new = self.performed.insert(next.key.clone());
            assert!(new || self.crashed, "{} is handed out again", next.key);
            self.handle.performed(next.key);
        }
    }

    fn events(&self) -> Vec<Event> {
        self.world.engine.store().events(&self.run, 0, usize::MAX).unwrap()
    }

    fn stored(&self) -> Vec<Decision> {
        let filter = aldis_store::DecisionFilter {
            run: Some(self.run.clone()),
            ..aldis_store::DecisionFilter::default()
        };
        let stored = self.world.engine.store().decisions(&filter).unwrap();
        stored.iter().rev().map(|it| serde_json::from_str(&it.body).unwrap()).collect()
    }

    /// What must hold in the end.
    fn check(mut self) {
        let stepped = self.handle.recover(&self.engine(), self.now);
        self.hear(stepped);
        let stored = self.world.engine.open::<M>(&self.run).unwrap();
        assert_eq!(stored.state(), self.handle.state());
        self.world.assert_replays(&self.run);
        if !self.crashed {
            let sorted = |mut decisions: Vec<Decision>| {
                decisions.sort_by_cached_key(|it| serde_json::to_string(it).unwrap());
                decisions
            };
            let (told, stored) = (sorted(self.told.clone()), sorted(self.stored()));
            let rules = |all: &[Decision]| all.iter().map(|it| it.rule.clone()).collect::<Vec<_>>();
            assert!(told == stored, "told {:?}, stored {:?}", rules(&told), rules(&stored));
        }
        self.assert_wakes();
        let wanted = self.decided_effects();
        self.assert_in_outbox(&wanted);
        // Whoever comes after performs the rest: then all are performed.
        self.handle.flush(&self.engine(), self.now).unwrap();
        self.handle = self.engine().open(&self.run).unwrap();
        let left: BTreeSet<String> =
            self.world.pending(&self.run).into_iter().map(|effect| effect.key).collect();
        assert!(left.is_disjoint(&self.performed) || self.crashed);
        let keys: BTreeSet<String> = wanted.into_iter().map(|(key, _)| key).collect();
        let all: BTreeSet<String> = self.performed.union(&left).cloned().collect();
        assert_eq!(all, keys);
    }

    /// A machine that was woken when it wanted is not due any more: a server would wake it for ever.
    fn assert_wakes(&self) {
        let Some(due) = self.handle.state().next_wake() else { return };
        let mut state = self.handle.state().clone();
        let now = due.max(self.now);
        let outcome = state.on_event(now, &state.wake_event(false).unwrap());
        let next = state.next_wake();
        assert!(next.is_none_or(|next| next > now), "{next:?} at {now}: {outcome:?}");
    }

    /// The effects that the journal leads to, with the keys that they must have.
    fn decided_effects(&self) -> Vec<(String, Value)> {
        let events = self.events();
        let first: Value = serde_json::from_str(&events[0].body).unwrap();
        let start: M::Start = serde_json::from_value(first["start"].clone()).unwrap();
        let begun = M::start(events[0].at, start).unwrap();
        let (mut state, mut found) = (begun.state, Vec::new());
        let mut add = |revision: Revision, outcomes: Vec<aldis_machine::Outcome<M::Effect>>| {
            let silent = outcomes.iter().all(|outcome| outcome.decisions.is_empty());
            if silent && !M::HAS_QUIET_EVENTS {
                return;
            }
            let effects = outcomes.into_iter().flat_map(|outcome| outcome.effects);
            for (number, effect) in effects.enumerate() {
                let key = format!("x/{revision}/{number}");
                found.push((key, serde_json::to_value(effect).unwrap()));
            }
        };
        add(Revision(1), vec![begun.outcome]);
        for step in events[1..].chunk_by(|one, other| one.revision == other.revision) {
            let taken = step.iter().map(|event| {
                let taken: M::Event = serde_json::from_str(&event.body).unwrap();
                state.on_event(event.at, &taken)
            });
            add(step[0].revision.unwrap(), taken.collect());
        }
        found
    }

    /// The outbox has these effects and no others.
    fn assert_in_outbox(&self, wanted: &[(String, Value)]) {
        for (key, effect) in wanted {
            let found = self.world.engine.store().effect(key).unwrap();
            let found = found.unwrap_or_else(|| panic!("{key} is missing: {effect}"));
            assert_eq!(&serde_json::from_str::<Value>(&found.body).unwrap(), effect, "{key}");
        }
        let keys: BTreeSet<&str> = wanted.iter().map(|(key, _)| &**key).collect();
        for effect in self.world.pending(&self.run) {
            assert!(keys.contains(&*effect.key), "{} was never decided", effect.key);
        }
    }
}

/// Somebody else opens the run and lets it take an event.
fn other_step<M: Machine>(
    engine: &Engine,
    run: &RunId,
    now: Timestamp,
    event: &Value,
) -> Vec<Decision> {
    let mut other = engine.open::<M>(run).unwrap();
    let event = Player::<M>::event(event);
    // The same event in the same millisecond is the same event.
    let now = Timestamp::from_millis(now.as_millis() + 1);
    engine.step(now, &mut other, event, None).unwrap().decisions
}

fn fate(after: bool) -> Fate {
    if after { Fate::FailsAfter } else { Fate::FailsBefore }
}

fn play<M: Machine>(start: M::Start, acts: &[(i64, Act)]) {
    let mut player = Player::<M>::new(start);
    acts.iter().for_each(|(later, act)| player.play(*later, act));
    player.check();
}

fn one_of(events: Vec<Value>) -> BoxedStrategy<Value> {
    proptest::sample::select(events).boxed()
}

fn run_event() -> BoxedStrategy<Value> {
    let text = |text: &str| {
        let rules = aldis_signal::Rules::builtin();
        let found = aldis_signal::scan(rules, text.as_bytes(), &aldis_signal::Origin::assistant());
        let signals = found.iter().filter_map(aldis_signal::Finding::signal);
        let signals: Vec<_> = signals.map(|signal| run::RunSignal::new(signal, 1)).collect();
        json!({ "event": "reported", "signals": signals })
    };
    let often = vec![
        json!({ "event": "begin" }),
        json!({ "event": "launched", "agent": "1" }),
        json!({ "event": "exited", "code": 0, "signal": null }),
        json!({ "event": "looked" }),
        json!({ "event": "looked", "fingerprint": "f", "dirty": true }),
    ];
    let quiet = vec![
        json!({ "event": "activity" }),
        json!({ "event": "tick" }),
        json!({ "event": "spent", "tokens": 7 }),
        json!({ "event": "spent", "tokens": 9_000, "micro_dollars": 12 }),
    ];
    let rare = vec![
        json!({ "event": "recovered" }),
        json!({ "event": "launch_failed", "what": "no such program" }),
        json!({ "event": "reopen", "config": {} }),
        json!({ "event": "near_miss", "hint": "write it so" }),
        json!({ "event": "retrying", "what": "overloaded" }),
        json!({ "event": "limited", "what": "limit", "until": null }),
        json!({ "event": "host_failed", "what": "login" }),
        json!({ "event": "permission_denied", "tool": "Bash" }),
        json!({ "event": "exited", "code": 1, "signal": null }),
        json!({ "event": "checked", "passed": false, "output": "no" }),
        json!({ "event": "abort", "by": "me" }),
        text("<chorus>COMPLETE</chorus>"),
        text("<chorus>PROGRESS: 40</chorus>"),
        text("<chorus>NEEDS_HUMAN: keep?</chorus>"),
        text("<chorus>BLOCKED: no key</chorus>"),
    ];
    prop_oneof![3 => one_of(often), 3 => one_of(quiet), 2 => one_of(rare)].boxed()
}

fn delivery_event() -> BoxedStrategy<Value> {
    let texts = [
        "READY_FOR_REVIEW: csv",
        "REVIEW_PASSED: csv",
        "REVIEW_FAILED: csv\n\nIssues:\n- a.rs:1: no",
        "AUDIT_PASSED: csv",
        "READY_FOR_REVIEW: pdf",
        "REVIEW_PASSED: pdf",
        "AUDIT_PASSED: pdf",
        "SEEKING_DIVINE_CLARIFICATION: csv\n\nQuestion: why?",
        "CHECKPOINT: csv\n\nProgress: 50%",
        "hm",
    ];
    let finished =
        (1..9_u64, proptest::sample::select(texts.to_vec())).prop_map(|(agent, text)| {
            let (rules, token) = (aldis_signal::Rules::builtin(), aldis_signal::Token::Off);
            let reply = delivery::AgentReply::read(rules, &token, text);
            serde_json::to_value(delivery::Event::Finished { agent, exit: None, reply }).unwrap()
        });
    let kinds = ["active", "worked", "waiting"];
    let quiet = (1..5_u64, proptest::sample::select(kinds.to_vec()))
        .prop_map(|(agent, event)| json!({ "event": event, "agent": agent }));
    let rest = vec![
        json!({ "event": "tick" }),
        json!({ "event": "spent", "agent": 1, "tokens": 7 }),
        json!({ "event": "recovered" }),
        json!({ "event": "pause", "by": "me" }),
        json!({ "event": "resume", "by": "me" }),
        json!({ "event": "abort", "by": "me" }),
        json!({ "event": "reopen", "config": {} }),
        json!({ "event": "merged", "task": "csv", "ok": true }),
    ];
    let begin = Just(json!({ "event": "begin" }));
    prop_oneof![2 => begin, 4 => finished, 3 => quiet, 3 => one_of(rest)].boxed()
}

fn phases_event() -> BoxedStrategy<Value> {
    let texts = [
        "Not yet.",
        "---\nSIGNAL: EXPANSION_COMPLETE\nPHASE: expansion\nSTATUS: complete\n\
                  TIMESTAMP: 2026-11-02T10:00:00Z\n---",
        "---\nSIGNAL: INIT_COMPLETE\nPHASE: init\n\
                  STATUS: complete\nTIMESTAMP: 2026-11-02T10:00:00Z\n---",
    ];
    let session = || proptest::sample::select(vec![json!("S1"), json!("S2"), Value::Null]);
    let said = ["stop", "subagent_stop", "responded"];
    let said = (proptest::sample::select(said.to_vec()), session(), 0..texts.len());
    let said = said.prop_map(move |(event, session, text)| {
        let rules = aldis_signal::Rules::builtin();
        let message = phases::AgentMessage {
            text: texts[text],
            origin: aldis_signal::Origin::assistant(),
            at: None,
            new_by_position: true,
            is_final: true,
        };
        let findings = phases::scan_messages(rules, &aldis_signal::Token::Off, &[message]);
        json!({ "event": event, "session": session, "findings": findings, "agent": "a" })
    });
    let kinds = ["interrupted", "prompt", "session_start", "session_end"];
    let heard = (proptest::sample::select(kinds.to_vec()), session())
        .prop_map(|(event, session)| json!({ "event": event, "session": session, "turn": null }));
    let rest = vec![
        json!({ "event": "stop_failed", "session": "S1", "error": "overloaded" }),
        json!({ "event": "edited", "members": ["phase"] }),
        json!({ "event": "pause", "by": "me" }),
        json!({ "event": "resume", "by": "me" }),
        json!({ "event": "tell", "text": "Hurry", "by": "me" }),
        json!({ "event": "cancel", "by": "me" }),
    ];
    prop_oneof![5 => said, 2 => heard, 1 => one_of(rest)].boxed()
}

fn turns_event() -> BoxedStrategy<Value> {
    let agent = || proptest::sample::select(vec!["pm", "dev", "qa", "nobody"]);
    let display = json!({ "display": "Yes." });
    let done = json!({
        "display": "Yes.",
        "signal": { "what": "signal", "name": "TURN_COMPLETE", "quote": "TURN_COMPLETE" },
    });
    let said = (agent(), proptest::sample::select(vec![display, done])).prop_map(
        |(agent, message)| json!({ "event": "message", "agent": agent, "messages": [message] }),
    );
    let kinds = ["add", "remove", "next", "crashed"];
    let about = (proptest::sample::select(kinds.to_vec()), agent())
        .prop_map(|(event, agent)| json!({ "event": event, "agent": agent }));
    let rest = vec![
        json!({ "event": "wake" }),
        json!({ "event": "recovered" }),
        json!({ "event": "human", "text": "Why?" }),
        json!({ "event": "human", "text": "Why?", "to": "qa" }),
        json!({ "event": "pause", "by": "me" }),
        json!({ "event": "resume", "by": "me" }),
        json!({ "event": "configure", "config": {} }),
        json!({ "event": "configure", "config": { "human_interrupt": "interrupt" } }),
    ];
    let close = Just(json!({ "event": "close", "by": "me" }));
    prop_oneof![20 => said, 10 => about, 20 => one_of(rest), 1 => close].boxed()
}

proptest! {
    #[test]
    fn a_supervised_run_is_what_its_journal_says(acts in acts(run_event())) {
        play::<run::State>(a_run(), &acts);
    }

    #[test]
    fn a_delivery_is_what_its_journal_says(acts in acts(delivery_event())) {
        play::<delivery::State>(a_delivery(), &acts);
    }

    #[test]
    fn a_run_of_phases_is_what_its_journal_says(acts in acts(phases_event())) {
        play::<phases::State>(phases(), &acts);
    }

    #[test]
    fn a_channel_is_what_its_journal_says(acts in acts(turns_event())) {
        play::<turns::State>(a_channel(), &acts);
    }
}
