//! One hook call: read what the agent reported, decide, commit, answer, then write the state file.
//!
//! Deciding and committing happen inside the project's turn, so that two hooks never decide from the
//! same state. The turn is over before the host gets its answer: neither a host that does not read nor
//! a disk that is slow to sync the state file holds up anybody else.

pub(crate) mod adoption;
pub(crate) mod answer;
pub mod auto_state;
pub(crate) mod call;
pub(crate) mod call_log;
mod called;
pub(crate) mod checks;
pub(super) mod fields;
mod identify;
pub mod live;
mod notice;
pub(crate) mod queue;
pub(crate) mod shipped;
pub mod state_file;
mod stop_context;
pub(crate) mod tail;
mod wake;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aldis_engine::{Engine, EngineError, NewRun};
use aldis_machine::phases::{Effect, Event, Outcome, State, TokenPolicy};
use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, RunId, Source, StoreError};
use aldis_transcript::events::resets_at;

use self::called::Called;
use self::live::PhasesRun;
use self::shipped::{Elsewhere, concerns_runs};
use self::state_file::{ReadOutcome, StateFileCheck};
use self::stop_context::StopContext;
use crate::error::CommandError;
use crate::failures::{self, Failure};
use crate::hosts::hook::auto_state::AutoStateFile;
use crate::hosts::spool;
use crate::hosts::{Answer, Env, Event as HostEvent, HookCall};
use crate::notify::routes::Routes;
use crate::receipts;
use crate::settings::catalog::{Catalog, choose};
use crate::settings::clock::{self, Stopwatch};
use crate::settings::config::Settings;
use crate::settings::project::{self, Place};
use crate::settings::store::StorePlace;

/// How long git may take for a receipt: the host waits. One that is not written is written by whoever
/// comes next.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(1);

/// One call of the hook, with its project, time and environment.
#[derive(Debug)]
pub(crate) struct Hook<'c> {
    pub(crate) call: &'c HookCall,
    pub(crate) env: &'c Env,
    pub(crate) place: Place,
    pub(crate) now: Timestamp,
    /// Since when it works.
    pub(crate) began: Stopwatch,
    pub(crate) state_dir: PathBuf,
    /// What is different where it was called on another machine: none of its files are here.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// Gives the host its answer. Called at most once.
type Respond<'f> = dyn FnMut(&Answer) + 'f;

/// A state file, and the project it is of.
type FoundFile = (PathBuf, String);

/// How long an error lasts of which nobody says how long, and how long any does: a service must not be
/// asked again at once.
const ERROR_WAIT: Duration = Duration::from_secs(15 * 60);
const ERROR_WAIT_MIN: Duration = Duration::from_secs(2);

/// What the call came to.
#[derive(Debug)]
struct Stepped {
    /// The run after its step.
    run: PhasesRun,
    /// What must now be done, and why.
    outcome: Outcome,
}

/// Why nothing was decided.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HookError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something else.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl From<EngineError> for HookError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => Self::Store(error),
            other => Self::Command(other.into()),
        }
    }
}

impl Hook<'_> {
    /// Handles the call. The answer is given as soon as the decision is durable, and only if there is
    /// one. Returns the run that took a step.
    ///
    /// # Errors
    ///
    /// Why the agent was allowed to stop without a decision.
    pub(crate) fn handle(&self, respond: &mut Respond<'_>) -> Result<Option<RunId>, HookError> {
        let result = self.take_step(respond);
        // The one failure that the user alone can mend, and that nobody would look for.
        if let Err(HookError::Store(full @ StoreError::Full { .. })) = &result
            && self.can_tell()
        {
            respond(&Answer::Notice { text: format!("aldis: this stop was not judged: {full}.") });
        }
        result
    }

    fn take_step(&self, respond: &mut Respond<'_>) -> Result<Option<RunId>, HookError> {
        if self.call.session.is_none() || !concerns_runs(self.call) {
            return Ok(None);
        }
        let found = self.found_file();
        let place = StorePlace::of(&self.state_dir)?;
        if found.is_none() && !place.exists() {
            return Ok(None);
        }
        let store = place.open()?;
        let engine = Engine::new(store.store()).with_route(Arc::new(Routes::of(&self.state_dir)));
        let result = self.decide(&engine, found.as_ref()).map(|stepped| {
            let stepped = stepped?;
            let (run, effects) = (stepped.run.id(), &stepped.outcome.effects);
            let transcript = self.call.transcript.as_deref();
            if let Err(why) = checks::start(&self.state_dir, run, effects, transcript) {
                // The next stop finds out that nobody runs them.
                self.record_failure(&format!("the checks were not started: {why}"));
            }
            self.keep_receipt(&engine, &stepped);
            respond(&self.answer(&stepped));
            let run = stepped.run.id().clone();
            self.finish(&engine, stepped);
            Some(run)
        });
        drop(engine);
        store.abandon();
        result
    }

    /// Lets the run that is concerned take a step, if there is one. When this returns, the step is
    /// durable, and nobody has to wait for us any more.
    fn decide(
        &self,
        engine: &Engine,
        found: Option<&FoundFile>,
    ) -> Result<Option<Stepped>, HookError> {
        let store = engine.store();
        let session = self.call.session.as_deref();
        let is_stop = self.call.event == HostEvent::Stop;
        // Waiting for a transcript happens before anybody else has to wait for us.
        let mut live = self.live(store)?;
        if live.as_ref().is_some_and(|live| is_foreign(live.state(), session)) {
            return Ok(None);
        }
        let found = found.filter(|_| is_stop);
        let project = match (&live, found) {
            (Some(live), _) => live.project().to_owned(),
            (None, Some((directory, _))) => project::name(directory),
            (None, None) => return Ok(None),
        };
        let position = live.as_ref().and_then(|live| live.state().read_cursor().map(str::to_owned));
        if let Some(live) = live.as_mut().filter(|_| is_stop && self.elsewhere.is_none())
            && spool::collect(engine, self.now, self.place.root(), (live.id(), session))?
        {
            live.refresh(engine, self.now)?;
        }
        let waiting = live.as_ref().map(PhasesRun::waiting_calls).unwrap_or_default();
        let context = StopContext::of(self, position.as_deref(), &waiting);
        let may_adopt =
            live.is_none() && found.is_some_and(|(project, text)| self.may_adopt(project, text));
        let _turn = live::turn(store, &project)?;
        match (self.live(store)?, found) {
            (Some(live), _) => self.advance(engine, live, &context),
            (None, Some((project, text))) => {
                self.adopt(engine, (project, text), may_adopt, &context)
            }
            (None, None) => Ok(None),
        }
    }

    /// Lets the run take the event, after what happened to its state file.
    fn advance(
        &self,
        engine: &Engine,
        mut run: PhasesRun,
        context: &StopContext,
    ) -> Result<Option<Stepped>, HookError> {
        if is_foreign(run.state(), self.call.session.as_deref()) {
            return Ok(None);
        }
        let mut edited = false;
        if self.call.event == HostEvent::Stop && self.elsewhere.is_none() {
            match state_file::inspect(engine, &run)? {
                StateFileCheck::Unchanged => {}
                StateFileCheck::Corrupt(why) => {
                    return Err(CommandError::new(format!("the state file: {why}")).into());
                }
                StateFileCheck::Changed(event) => {
                    let outcome = engine.step(self.now, &mut run, *event, None)?;
                    if !run.state().is_active() {
                        return Ok(Some(Stepped { run, outcome }));
                    }
                    edited = true;
                }
            }
        }
        let mut again = Vec::new();
        if self.call.event == HostEvent::Stop
            && let Some((check, what)) = checks::lost(&run, self.now)?
        {
            let event = Event::CheckLost { check, what: what.to_owned() };
            again = engine.step(self.now, &mut run, event, None)?.effects;
            again.retain(|effect| matches!(effect, Effect::Check { .. }));
        }
        let called = self.called(&run, context)?;
        let event = self.event(run.state(), context, &called)?;
        let source = self.source(context);
        let stepped = if called.is_empty() {
            engine.step(self.now, &mut run, event, source.as_ref())
        } else {
            // In one step: a call that was taken over is not taken over again.
            let stepped = run.advance_together(engine, self.now, vec![event], &called.notes);
            stepped.map(|stepped| stepped.outcome)
        };
        let mut outcome = match stepped {
            // The host reports the same thing a second time.
            Err(EngineError::Repeated(_)) => return Ok(None),
            stepped => stepped?,
        };
        outcome.effects.extend(again);
        if edited && !outcome.effects.contains(&Effect::WriteView) {
            outcome.effects.push(Effect::WriteView);
        }
        Ok(Some(Stepped { run, outcome }))
    }

    /// Whether an active state file names a session, or was plainly written in this one.
    fn may_adopt(&self, project: &Path, text: &str) -> bool {
        let view = AutoStateFile::parse(text).ok().filter(AutoStateFile::is_active);
        view.is_some_and(|view| {
            view.session().is_some()
                || adoption::obstacle(project, text, self.now).is_none()
                    && adoption::changed_since(project, StopContext::session_began(self))
        })
    }

    /// Takes over the run that a state file tells of.
    fn adopt(
        &self,
        engine: &Engine,
        (project, text): (&Path, &str),
        may_adopt: bool,
        context: &StopContext,
    ) -> Result<Option<Stepped>, HookError> {
        let broken = |what: String| CommandError::new(format!("the state file: {what}"));
        let view = AutoStateFile::parse(text).map_err(|error| broken(error.to_string()))?;
        let session = view.session();
        if !view.is_active() || session.is_some() && session != self.call.session {
            return Ok(None);
        }
        let name = project::name(project);
        // The view of a run that ended, whose later versions were never written, is no new run.
        if let Some(run) = live::latest(engine.store(), &name)?
            && state_file::is_outdated(engine, &name, text)?
        {
            let effects = vec![Effect::Allow, Effect::WriteView];
            let outcome = Outcome { effects, decisions: Vec::new() };
            return Ok(Some(Stepped { run, outcome }));
        }
        if !may_adopt {
            return Ok(None);
        }
        let settings = Settings::load(&self.place)?;
        let state = view.adopt(&settings.phases_config()).map_err(|e| broken(e.to_string()))?;
        let event = self.event(&state, context, &Called::default())?;
        // What does not bind is not adopted either.
        if state.clone().on_event(self.now, &event).decisions.is_empty() {
            return Ok(None);
        }
        let notes = state_file::adoption_notes(text);
        let new = NewRun { notes, ..NewRun::of(name, Driver::Hook) };
        let (run, outcome) = engine.adopt(self.now, &new, state, Some(event))?;
        Ok(Some(Stepped { run, outcome }))
    }

    /// Writes the receipt of a run that is complete, before anybody is told.
    fn keep_receipt(&self, engine: &Engine, stepped: &Stepped) {
        let Stepped { run, outcome } = stepped;
        if outcome.decisions.iter().any(|it| receipts::is_done(&it.rule)) {
            let when = (self.now, RECEIPT_PATIENCE);
            receipts::settle_or_record(engine.store(), &self.state_dir, run.id(), when);
        }
    }

    fn answer(&self, stepped: &Stepped) -> Answer {
        let Stepped { run, outcome } = stepped;
        let limit = self.call.block_cap(self.env).limit;
        let decision = outcome.decision().filter(|_| self.can_tell());
        let notice = decision.and_then(|decision| {
            notice::text(run.id(), run.state(), decision, self.call.host, limit)
        });
        let said = outcome.effects.iter().find_map(|effect| match effect {
            Effect::Block { reason } => {
                Some(Answer::Block { reason: reason.clone(), notice: notice.clone() })
            }
            Effect::Context { text } => {
                Some(Answer::Context { text: text.clone(), notice: notice.clone() })
            }
            Effect::Allow | Effect::WriteView | Effect::Check { .. } => None,
        });
        let told = || notice.clone().map(|text| Answer::Notice { text });
        said.or_else(told).unwrap_or(Answer::Allow)
    }

    /// Whether the host may show a notice to the user. One that translates another's answers is not
    /// known to translate this one.
    fn can_tell(&self) -> bool {
        self.call.answer_host() == self.call.host
    }

    /// Notes how the session can be woken, and brings the state file up to date where the step demands
    /// it.
    fn finish(&self, engine: &Engine, mut stepped: Stepped) {
        if let Err(why) = self.note_queue(engine, &mut stepped.run) {
            self.record_failure(&format!("how to wake the session was not noted: {why}"));
        }
        if !stepped.outcome.effects.contains(&Effect::WriteView) {
            return;
        }
        if let Err(why) = state_file::refresh(engine, self.now, &mut stepped.run) {
            self.record_failure(&format!("the state file was not written: {why}"));
        }
    }

    /// What the agent that stops reported by calls.
    fn called(&self, run: &PhasesRun, context: &StopContext) -> Result<Called, HookError> {
        Ok(match &self.call.event {
            HostEvent::Stop => Called::of_stop(self, run, context.answers())?,
            HostEvent::SubagentStop => Called::of_subagent(self, run, context.answers())?,
            _ => Called::default(),
        })
    }

    /// Translates the call for the machine.
    fn event(
        &self,
        state: &State,
        context: &StopContext,
        called: &Called,
    ) -> Result<Event, CommandError> {
        let session = self.call.session.clone();
        Ok(match &self.call.event {
            HostEvent::Stop => {
                let mut stop = context.stop(self, state, &self.rules(state)?)?;
                called.add_to_stop(state, &mut stop);
                called::demand(state, &mut stop.findings);
                Event::Stop(stop)
            }
            HostEvent::SubagentStop => Event::SubagentStop {
                session,
                agent: self.call.agent_id.clone(),
                findings: {
                    let mut findings = context.findings(state, &self.rules(state)?);
                    called.add_to(state, &mut findings);
                    called::demand(state, &mut findings);
                    findings
                },
                fresh_token: fresh_token(state.config().token)?,
            },
            HostEvent::AgentResponse { .. } => Event::Responded {
                session,
                findings: context.findings(state, &self.rules(state)?),
                closing_text: context.closing_text(state),
            },
            HostEvent::StopFailure { error, said } => {
                let until = self.passes_at(error, said.as_deref().unwrap_or_default());
                Event::StopFailed { session, error: error.clone(), until }
            }
            HostEvent::Prompt { text, .. } => Event::Prompt {
                session,
                turn: self.call.turn.clone(),
                own: state.is_own_prompt(text),
            },
            HostEvent::SessionStart { .. } => Event::SessionStart { session },
            HostEvent::SessionEnd { .. } => Event::SessionEnd { session },
            HostEvent::Interrupt | HostEvent::Other(_) => Event::Interrupted { session },
        })
    }

    /// When an error has passed that ended a turn; nothing if it needs a human.
    fn passes_at(&self, error: &str, said: &str) -> Option<Timestamp> {
        let passes = self.call.host.spec().passing_errors.contains(&error);
        passes.then(|| {
            let until = resets_at(said, self.now, &clock::local_zone());
            until.unwrap_or_else(|| self.now.after(ERROR_WAIT)).max(self.now.after(ERROR_WAIT_MIN))
        })
    }

    /// What makes a second delivery of the same event recognisable. Stops have nothing of the kind:
    /// an agent may say the same thing twice.
    fn source(&self, context: &StopContext) -> Option<Source> {
        if let Some(elsewhere) = &self.elsewhere {
            return Some(Source::new(format!("remote/{}", elsewhere.id)));
        }
        let agent = self.call.agent_id.as_deref()?;
        let subagent = self.call.event == HostEvent::SubagentStop;
        subagent.then(|| Source::new(format!("subagent/{agent}/{}", context.digest())))
    }

    /// The rules of the run's dialect alone: building others would cost more than all the rest.
    fn rules(&self, state: &State) -> Result<Rules, CommandError> {
        if self.elsewhere.is_some() {
            let unknown = |name: &str| {
                let message =
                    format!("the dialect `{name}` is not built in, and its file is not here");
                Err(CommandError::new(message))
            };
            let dialect = choose(&state.pipeline().dialect, unknown)?;
            return Ok(Rules::new([dialect]).strict(state.config().strict));
        }
        let own = |name: &str| Ok(Catalog::load(self.place.root())?.get(name)?.dialect.clone());
        let dialect = choose(&state.pipeline().dialect, own)?;
        Ok(Rules::new([dialect]).strict(state.config().strict))
    }

    /// The project's state file, where there is one that can be read.
    fn found_file(&self) -> Option<FoundFile> {
        for directory in self.place.inside() {
            match state_file::read(directory) {
                ReadOutcome::Text(text) => return Some((directory.to_owned(), text)),
                ReadOutcome::Absent => {}
                // Nothing behind it is looked at; the store may still have a run.
                ReadOutcome::Refused(why) => self.record_failure(&why),
            }
        }
        None
    }

    fn record_failure(&self, what: &str) {
        let part = format!("hook {}", self.call.host);
        let failure = Failure { at: self.now, part, what: what.to_owned() };
        failures::record(&self.state_dir, &failure);
    }
}

/// Whether a run belongs to another session than this one.
fn is_foreign(state: &State, session: Option<&str>) -> bool {
    state.session().is_some() && state.session() != session
}

/// A new run token, where the run uses them.
pub(crate) fn fresh_token(policy: TokenPolicy) -> Result<Option<String>, CommandError> {
    if policy == TokenPolicy::Off {
        return Ok(None);
    }
    let token = aldis_engine::token();
    Ok(Some(token.map_err(|error| {
        CommandError::new(format!("the operating system returned no random bytes: {error}"))
    })?))
}
