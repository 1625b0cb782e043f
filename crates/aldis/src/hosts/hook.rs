//! What a hook call means for the runs there are: hear, decide, commit, answer, then the view.

mod heard;

use std::path::{Path, PathBuf};

use aldis_machine::phases::{Effect, Event, State, TokenPolicy};
use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use aldis_store::{SqliteStore, Store as _};

use self::heard::Heard;
use crate::alarms::{self, Alarm};
use crate::app::formats::auto_state::AutoStateFile;
use crate::engine::driver;
use crate::engine::driver::{Driver, DriverError, Loaded, Origin, Stepped};
use crate::error::CommandError;
use crate::hosts::view_file::{self, Found};
use crate::hosts::views::{self, Glance};
use crate::hosts::{Answer, Env, Event as HostEvent, HookCall};
use crate::settings::catalog::Catalog;
use crate::settings::config::Settings;
use crate::settings::project::{self, Place};
use crate::settings::secret;

/// One call of the hook, and the world it happens in.
#[derive(Debug)]
pub(crate) struct Hook<'c> {
    pub(crate) call: &'c HookCall,
    pub(crate) env: &'c Env,
    pub(crate) place: Place,
    pub(crate) now: Timestamp,
    pub(crate) state_dir: PathBuf,
}

/// Gives the host its answer. Called at most once.
type Say<'f> = dyn FnMut(&Answer) + 'f;

impl Hook<'_> {
    /// Handles the call. The answer is given as soon as the decision is durable; nothing is said
    /// where nothing has to be.
    ///
    /// # Errors
    ///
    /// Says why the agent was simply let go.
    pub(crate) fn handle(&self, say: &mut Say<'_>) -> Result<(), CommandError> {
        if self.call.session.is_none() || !self.concerns_runs() {
            return Ok(());
        }
        let found = self.found_file();
        if found.is_none() && !SqliteStore::exists(&self.state_dir) {
            return Ok(());
        }
        let store = SqliteStore::open(&self.state_dir)?;
        let result = self.decide(&store, found, say);
        store.abandon();
        result
    }

    fn concerns_runs(&self) -> bool {
        match self.call.event {
            HostEvent::Other(_) => false,
            // Some hosts report a sub-agent's prompt under the session of the main agent.
            HostEvent::Prompt { .. } => self.call.agent_id.is_none(),
            _ => true,
        }
    }

    fn decide(
        &self,
        store: &SqliteStore,
        found: Option<(PathBuf, String)>,
        say: &mut Say<'_>,
    ) -> Result<(), CommandError> {
        let driver = Driver { store, now: self.now };
        let session = self.call.session.as_deref();
        let is_stop = self.call.event == HostEvent::Stop;
        // Waiting for a transcript happens before anybody else has to wait for us.
        let live = driver.live(&self.place, session)?;
        if live.as_ref().is_some_and(|live| is_foreign(&live.state, session)) {
            return Ok(());
        }
        if live.is_none() && !(is_stop && found.is_some()) {
            return Ok(());
        }
        let position = live.as_ref().and_then(|live| live.state.read_cursor.clone());
        let heard = Heard::of(self, position.as_deref());
        let _turn = store.turn()?;
        let stepped = match driver.live(&self.place, session)? {
            Some(live) => self.advance(&driver, live, &heard)?,
            None => match found {
                Some((project, text)) if is_stop => self.adopt(&driver, &project, &text, &heard)?,
                _ => None,
            },
        };
        if let Some(stepped) = stepped {
            say(&answer(&stepped));
            self.finish(store, &stepped);
        }
        Ok(())
    }

    /// Lets the run take the event, after what happened to its state file.
    fn advance(
        &self,
        driver: &Driver<'_>,
        mut live: Loaded,
        heard: &Heard,
    ) -> Result<Option<Stepped>, CommandError> {
        if is_foreign(&live.state, self.call.session.as_deref()) {
            return Ok(None);
        }
        if self.call.event == HostEvent::Stop {
            match views::glance(driver.store, &live)? {
                Glance::InStep => {}
                Glance::Corrupt(why) => {
                    return Err(CommandError::new(format!("the state file: {why}")));
                }
                Glance::Changed(event) => {
                    let stepped = driver.advance(live, &event, None)?;
                    if !stepped.state.active {
                        return Ok(Some(stepped));
                    }
                    let run = driver.store.run(&stepped.run)?;
                    let Some(run) = run else { return Ok(None) };
                    live = driver::load(run)?;
                }
            }
        }
        let event = self.event(&live.state, heard)?;
        let source = self.source(heard);
        match driver.advance(live, &event, source.as_deref()) {
            Ok(stepped) => Ok(Some(stepped)),
            Err(DriverError::Duplicate) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes over the run that a state file tells of.
    fn adopt(
        &self,
        driver: &Driver<'_>,
        project: &Path,
        text: &str,
        heard: &Heard,
    ) -> Result<Option<Stepped>, CommandError> {
        let broken = |what: String| CommandError::new(format!("the state file: {what}"));
        let view = AutoStateFile::parse(text).map_err(|error| broken(error.to_string()))?;
        let ours = view.session().is_none_or(|session| Some(session) == self.call.session);
        if !view.is_active() || !ours {
            return Ok(None);
        }
        let name = project::name(project);
        // The view of a run that ended, whose later versions were never written, is no new run.
        if let Some(latest) = driver.latest(&name)?
            && views::is_outdated(driver.store, &name, text)?
        {
            let (run, revision) = (latest.run.id.clone(), latest.run.revision);
            let outcome = aldis_machine::phases::Outcome {
                effects: vec![Effect::Allow, Effect::WriteView],
                decisions: Vec::new(),
            };
            let state = latest.state;
            return Ok(Some(Stepped { run, project: name, revision, state, outcome }));
        }
        let settings = Settings::load(&self.place)?;
        let state = view.adopt(&settings.phases_config()).map_err(|e| broken(e.to_string()))?;
        let event = self.event(&state, heard)?;
        // What does not bind is not adopted either.
        if state.clone().on_event(self.now, &event).decisions.is_empty() {
            return Ok(None);
        }
        let origin = Origin::Adopt { state: Box::new(state) };
        Ok(Some(driver.create(&name, &origin, Some(&event))?))
    }

    /// Writes the view, and records that it was written where nobody comes after us to do so.
    fn finish(&self, store: &SqliteStore, stepped: &Stepped) {
        if !stepped.outcome.effects.contains(&Effect::WriteView) {
            return;
        }
        let written = if stepped.state.active {
            views::refresh(store, stepped)
        } else {
            views::perform(store, stepped)
        };
        if let Err(why) = written {
            self.alarm(&format!("the state file was not written: {why}"));
        }
    }

    /// Translates the call for the machine.
    fn event(&self, state: &State, heard: &Heard) -> Result<Event, CommandError> {
        let session = self.call.session.clone();
        Ok(match &self.call.event {
            HostEvent::Stop => Event::Stop(heard.stop(self, state, &self.rules(state)?)?),
            HostEvent::SubagentStop => Event::SubagentStop {
                session,
                agent: self.call.agent_id.clone(),
                findings: heard.findings(state, &self.rules(state)?),
                fresh_token: fresh_token(state)?,
            },
            HostEvent::AgentResponse { .. } => Event::Responded {
                session,
                findings: heard.findings(state, &self.rules(state)?),
                closing_text: heard.closing_text(state),
            },
            HostEvent::StopFailure { error } => Event::StopFailed { session, error: error.clone() },
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

    /// What makes a second delivery of the same event recognisable. Stops have nothing of the kind:
    /// an agent may say the same thing twice.
    fn source(&self, heard: &Heard) -> Option<String> {
        let agent = self.call.agent_id.as_deref()?;
        let subagent = self.call.event == HostEvent::SubagentStop;
        subagent.then(|| format!("subagent/{agent}/{}", heard.digest()))
    }

    /// The rules of the run's dialect alone: building others would cost more than all the rest.
    fn rules(&self, state: &State) -> Result<Rules, CommandError> {
        let name = &state.pipeline.dialect;
        let dialect = match aldis_signal::Dialect::builtin(name) {
            Some(dialect) => dialect.clone(),
            None => Catalog::load(self.place.root())?.get(name)?.dialect.clone(),
        };
        Ok(Rules::new([dialect]))
    }

    /// The project's state file, where there is one that can be read.
    fn found_file(&self) -> Option<(PathBuf, String)> {
        for directory in self.place.inside() {
            match view_file::read(directory) {
                Found::Text(text) => return Some((directory.to_owned(), text)),
                Found::Nothing => {}
                // Nothing behind it is looked at; the store may still have a run.
                Found::Refused(why) => self.alarm(&why),
            }
        }
        None
    }

    fn alarm(&self, what: &str) {
        let part = format!("hook {}", self.call.host);
        alarms::raise(&self.state_dir, &Alarm { at: self.now, part, what: what.to_owned() });
    }
}

/// Whether a run belongs to another session than this one.
fn is_foreign(state: &State, session: Option<&str>) -> bool {
    state.session.is_some() && state.session.as_deref() != session
}

fn answer(stepped: &Stepped) -> Answer {
    let said = stepped.outcome.effects.iter().find_map(|effect| match effect {
        Effect::Block { reason } => Some(Answer::Block { reason: reason.clone() }),
        Effect::Context { text } => Some(Answer::Context { text: text.clone() }),
        Effect::Allow | Effect::WriteView => None,
    });
    said.unwrap_or(Answer::Allow)
}

/// A new run token, where the run uses them.
fn fresh_token(state: &State) -> Result<Option<String>, CommandError> {
    if state.config.token == TokenPolicy::Off {
        return Ok(None);
    }
    let token = secret::token();
    Ok(Some(token.map_err(|error| CommandError::new(format!("no random numbers: {error}")))?))
}
