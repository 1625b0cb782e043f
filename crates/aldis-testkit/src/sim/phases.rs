//! Worlds of phases: hooks of several sessions that report stops, prompts and ends, in processes that
//! die, while people command and edit the state file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aldis::hosts::auto_state::AutoStateFile;
use aldis::hosts::live;
use aldis::hosts::state_file::{StateFileCheck, compare, deleted};
use aldis_engine::{Engine, EngineError, NewRun};
use aldis_machine::phases::{
    AgentMessage, Config, Effect, Event, ExitReason, Pipeline, Start, State, Stop, scan_messages,
};
use aldis_machine::proof::Proof;
use aldis_signal::{Dialect, Origin, Role, Rules};
use aldis_store::{Driver, RunId, Source, Store};

use super::fate::SharedFate;
use super::store::SimStore;
use super::{Broken, oracle, people};

/// How many stops it takes at most until a silent agent is let go.
const CALM_MAX: u32 = 400;

struct Hooks<'s> {
    inner: &'s Arc<dyn Store>,
    shared: &'s SharedFate,
    rules: Rules,
    projects: usize,
    begun: u64,
    /// What agents really said in each run: names of signals.
    said: BTreeMap<RunId, BTreeSet<String>>,
    /// Deliveries that may come again.
    again: Vec<(RunId, String, Event, Source)>,
}

pub(super) fn play(
    inner: &Arc<dyn Store>,
    shared: &SharedFate,
    (goal, replayed): (u64, bool),
) -> Result<(), Broken> {
    let projects = 1 + shared.lock().rng.below(2);
    let rules = Rules::new(Dialect::builtin("caw").map(Arc::clone));
    let (said, again) = (BTreeMap::new(), Vec::new());
    let mut hooks = Hooks { inner, shared, rules, projects, begun: 0, said, again };
    while shared.lock().tally.events < goal {
        hooks.step()?;
    }
    hooks.calm()?;
    let engine = Engine::new(Arc::clone(inner));
    // What was told is in one of the journals; each word is unique, so all are looked through.
    let acknowledged = std::mem::take(&mut shared.lock().acknowledged);
    let mut lost = acknowledged.clone();
    // Some died before they had begun a run.
    let begun = |id: &&RunId| matches!(engine.store().run(id), Ok(Some(_)));
    for id in hooks.said.keys().filter(begun) {
        let events = engine.store().events(id, 0, usize::MAX);
        let events = events.map_err(|error| Broken::new("the_store_is_readable", &error))?;
        let bodies: String = events.into_iter().map(|event| event.body).collect();
        let here = |text: &&String| bodies.contains(&format!("\"{text}\""));
        shared.lock().acknowledged = acknowledged.iter().filter(here).cloned().collect();
        oracle::journal(&engine, id, shared, replayed).map_err(Broken::from)?;
        let found = std::mem::take(&mut shared.lock().acknowledged);
        lost.retain(|text| !found.contains(text));
    }
    match lost.first() {
        Some(lost) => Err(Broken::new("what_was_acknowledged_happened_once", lost)),
        None => Ok(()),
    }
}

impl Hooks<'_> {
    fn step(&mut self) -> Result<(), Broken> {
        self.shared.pass(30_000);
        self.shared.next_process(10, 12);
        let (session, project, kind) = {
            let mut fate = self.shared.lock();
            let session = fate.rng.below(3);
            (format!("s{session}"), format!("/p{}", session % self.projects), fate.rng.below(100))
        };
        let shared = self.shared;
        if kind < 12 {
            let engine = Engine::new(Arc::clone(self.inner));
            let run = live::live_in(engine.store(), vec![project], Some(&session));
            if let Ok(Some(run)) = run {
                let acted = shared.guarded(|| people::act(&engine, run.id(), shared, false));
                return acted.map(drop);
            }
            return Ok(());
        }
        let done = shared.guarded(|| self.hook(&project, &session, kind));
        shared.lock().dies_in = None;
        match done? {
            None | Some(Ok(())) => {}
            Some(Err(HookError::Failed(why))) => shared.note(format_args!("hook failed: {why}")),
            Some(Err(HookError::Broken(broken))) => return Err(broken),
        }
        self.look()
    }

    /// What `hosts/hook.rs` does with one call.
    fn hook(&mut self, project: &str, session: &str, kind: usize) -> Result<(), HookError> {
        let store = SimStore::new(Arc::clone(self.inner), self.shared.clone(), true);
        let engine = Engine::new(Arc::new(store));
        let now = self.shared.lock().now;
        let projects = || vec![project.to_owned()];
        let _turn = live::turn(engine.store(), project)?;
        let Some(mut run) = live::live_in(engine.store(), projects(), Some(session))? else {
            return self.begin(&engine, project, session);
        };
        let foreign = run.state().session().is_some_and(|bound| bound != session);
        let before = run.state().clone();
        if (12..20).contains(&kind)
            && let Some(event) = self.edited(run.state())
        {
            self.shared.lock().event(format_args!("{session}: {event:?}"));
            engine.step(now, &mut run, event, None)?;
            if !run.state().is_active() {
                return Ok(());
            }
        }
        let (event, source, word) = self.event(run.id(), run.state(), session, kind);
        let outcome = match engine.step(now, &mut run, event, source.as_ref()) {
            Err(EngineError::Repeated(_)) => return Ok(()),
            stepped => stepped?,
        };
        if foreign && !outcome.decisions.is_empty() && before.is_live() {
            let detail = format!("{session} changed a run of {:?}", before.session());
            return Err(HookError::broken("no_session_touches_anothers_run", detail));
        }
        if let Some(word) = word.filter(|_| !outcome.decisions.is_empty()) {
            self.shared.lock().acknowledged.insert(word);
        }
        Ok(())
    }

    fn begin(&mut self, engine: &Engine, project: &str, session: &str) -> Result<(), HookError> {
        self.begun += 1;
        let id = RunId::new(format!("p{}", self.begun))
            .map_err(|error| HookError::broken("names_are_good", error.to_string()))?;
        let (now, bound, max_iterations) = {
            let mut fate = self.shared.lock();
            fate.event(format_args!("{session} begins {id}"));
            fate.tally.runs += 1;
            let most = 1 + u32::try_from(fate.rng.below(6)).unwrap_or(0);
            (fate.now, fate.rng.chance(50), most)
        };
        let (pipeline, config) = (Pipeline::caw(), Config::default());
        let phase = pipeline.first(&config.skip).to_owned();
        let session = bound.then(|| session.to_owned());
        let task = "Add CSV export".to_owned();
        let start = Start {
            task,
            pipeline,
            config,
            phase,
            max_iterations,
            session,
            token: None,
            proof: Proof::default(),
        };
        let new = NewRun { id: Some(id.clone()), ..NewRun::of(project, Driver::Hook) };
        self.said.insert(id, BTreeSet::new());
        engine.begin::<State>(now, &new, start)?;
        Ok(())
    }

    /// What somebody's edit of the state file means.
    fn edited(&self, state: &State) -> Option<Event> {
        let text = AutoStateFile::render(state, None);
        let (find, put) = match self.shared.lock().rng.below(8) {
            0 => return Some(deleted()),
            1 => (r#""active": true"#, r#""active": false"#),
            2..5 => (r#""iteration": "#, r#""iteration": 9"#),
            _ => (r#""phase": "#, r#""phase": "x"#),
        };
        match compare(&text.replacen(find, put, 1), state) {
            StateFileCheck::Changed(event) => Some(*event),
            StateFileCheck::Unchanged | StateFileCheck::Corrupt(_) => None,
        }
    }

    /// What the host reports, and by which word it is found again.
    fn event(
        &mut self,
        run: &RunId,
        state: &State,
        session: &str,
        kind: usize,
    ) -> (Event, Option<Source>, Option<String>) {
        let mut fate = self.shared.lock();
        let known = self.again.iter().rfind(|it| it.0 == *run && it.1 == session).cloned();
        if let Some((.., event, source)) = known.filter(|_| fate.rng.chance(5)) {
            fate.event(format_args!("{session} again: {}", source.key));
            return (event, Some(source), None);
        }
        let (session_of, session) = (session, Some(session.to_owned()));
        let (word, number) = (fate.text(), fate.texts);
        let (text, signal) = message(&mut fate.rng, state);
        fate.event(format_args!("{session:?} {kind} {word}: {}", signal.unwrap_or("nothing")));
        let spoken = signal.map(str::to_owned);
        self.said.entry(run.clone()).or_default().extend(spoken);
        let role = if kind >= 85 { Role::Subagent } else { Role::Assistant };
        let origin = Origin::new(role);
        let (at, new_by_position, is_final) = (None, true, true);
        let message = AgentMessage { text: &text, origin, at, new_by_position, is_final };
        let findings = scan_messages(&self.rules, &state.expected_token(), &[message]);
        let plain = |event| (event, None, None);
        match kind {
            12..75 => {
                let stop =
                    Stop { session, findings, closing_text: word.clone(), ..Stop::default() };
                (Event::Stop(stop), None, Some(word))
            }
            75..80 => plain(Event::Prompt { session, turn: None, own: false }),
            80..82 => plain(Event::SessionEnd { session }),
            82..84 => plain(Event::SessionStart { session }),
            84 => plain(Event::Interrupted { session }),
            85..95 => {
                let agent = Some(format!("a{number}"));
                let event = Event::SubagentStop { session, agent, findings, fresh_token: None };
                let source = Source::new(format!("subagent/a{number}"));
                let of = session_of.to_owned();
                self.again.push((run.clone(), of, event.clone(), source.clone()));
                (event, Some(source), None)
            }
            95..97 => {
                plain(Event::StopFailed { session, error: "overloaded".to_owned(), until: None })
            }
            _ => plain(Event::Responded { session, findings, closing_text: String::new() }),
        }
    }

    /// What must hold of every run.
    fn look(&self) -> Result<(), Broken> {
        let engine = Engine::new(Arc::clone(self.inner));
        let mut recent = self.said.iter().rev().take(4);
        recent.try_for_each(|(id, said)| {
            let Ok(run) = engine.open::<State>(id) else { return Ok(()) };
            let state = run.state();
            if state.iteration() > state.max_iterations() {
                let detail = format!("{} of {}", state.iteration(), state.max_iterations());
                return Err(Broken::new("limits_hold", &detail));
            }
            let signal =
                |name: &String| state.pipeline().phase(name).and_then(|it| it.signal.clone());
            let unsaid =
                |name: &&String| signal(name).is_some_and(|signal| !said.contains(&signal));
            if let Some(phase) = state.completed().iter().find(unsaid) {
                return Err(Broken::new("only_what_was_said_completes_a_phase", phase));
            }
            let finished = state.exit_reason() == Some(ExitReason::AutoCompleteSignal);
            if finished && !said.contains("AUTO_COMPLETE") {
                return Err(Broken::new("no_success_that_was_not_earned", id));
            }
            Ok(())
        })
    }

    /// Nothing goes wrong any more and agents say nothing: each must be let go.
    fn calm(&self) -> Result<(), Broken> {
        let (shared, engine) = (self.shared, Engine::new(Arc::clone(self.inner)));
        shared.lock().faults = false;
        for id in self.said.keys() {
            for number in 0.. {
                let Ok(mut run) = engine.open::<State>(id) else { break };
                if !run.state().is_live() {
                    shared.lock().tally.ends += 1;
                    break;
                }
                if number > CALM_MAX {
                    return Err(Broken::new("every_run_ends", id));
                }
                let session =
                    run.state().session().map(str::to_owned).or_else(|| Some("s0".to_owned()));
                let stop = Stop { session, ..Stop::default() };
                shared.pass(10_000);
                let now = shared.lock().now;
                let paused = run.state().is_paused();
                let stepped = engine.step(now, &mut run, Event::Stop(stop), None);
                let outcome = stepped.map_err(|error| Broken::new("stops_are_judged", &error))?;
                if paused {
                    shared.guarded(|| people::act(&engine, id, shared, true))?;
                } else if outcome.effects.contains(&Effect::Allow) {
                    // The agent is let go: the host refuses to be blocked any longer.
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A message, and the signal in it.
fn message<'s>(rng: &mut crate::corpus::rng::Rng, state: &'s State) -> (String, Option<&'s str>) {
    let own = state.pipeline().phase(state.phase()).and_then(|phase| phase.signal.as_deref());
    let other = state.pipeline().phases.get(rng.below(state.pipeline().phases.len()));
    let other = other.and_then(|phase| Some((&*phase.name, phase.signal.as_deref()?)));
    let (phase, signal) = match rng.below(20) {
        0..9 => match own {
            Some(own) => (state.phase(), own),
            None => return ("Well.".to_owned(), None),
        },
        9..12 => match other {
            Some(other) => other,
            None => return ("Well.".to_owned(), None),
        },
        12 => ("complete", "AUTO_COMPLETE"),
        _ => return ("I am still at it.".to_owned(), None),
    };
    let text = format!("Done.\n\n---\nSIGNAL: {signal}\nPHASE: {phase}\nSTATUS: complete\n---\n");
    (text, Some(signal))
}

/// Why a hook did not do its work.
enum HookError {
    Failed(String),
    Broken(Broken),
}

impl HookError {
    fn broken(invariant: &'static str, detail: String) -> Self {
        Self::Broken(Broken { invariant, detail })
    }
}

impl<E: std::error::Error> From<E> for HookError {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}
