//! Waits beside a session that was let go, and returns what a human sends it, or that the limit is over
//! that ended its turn.
//!
//! The host starts this with every stop and does not wait for it (`asyncRewake` of Claude Code). It
//! ends at once where the session goes on, with the session, and after a time that is set. Only the
//! store connects it with the hook that decides.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aldis_engine::Engine;
use aldis_machine::phases::{BlockCap, Effect, Event, State};

use super::live::{self, PhasesRun};
use super::{Hook, HookError};
use crate::hosts::Event as HostEvent;
use crate::notify::routes::Routes;
use crate::settings::clock::{self, Stopwatch};
use crate::settings::config::Settings;
use crate::settings::store::StorePlace;

/// How long the hook beside this one may take to decide.
const DECISION_MAX: Duration = Duration::from_secs(5);
/// How often is looked while it decides, and afterwards.
const FIRST_LOOKS: Duration = Duration::from_millis(100);
const LATER_LOOKS: Duration = Duration::from_secs(1);

impl Hook<'_> {
    /// Waits for what wakes the session, and returns it: at most as long as the settings say.
    ///
    /// # Errors
    ///
    /// Why nobody waits any more.
    pub(crate) fn wait(&self) -> Result<Option<String>, HookError> {
        let Some(session) = self.call.session.as_deref() else { return Ok(None) };
        let attended = self.call.host.spec().is_attended(self.env);
        let waits = match self.call.event {
            HostEvent::Stop => true,
            // Without a person the host ends with its turn.
            HostEvent::StopFailure { .. } => attended,
            _ => false,
        };
        if !waits {
            return Ok(None);
        }
        let place = StorePlace::of(&self.state_dir)?;
        if !place.exists() {
            return Ok(None);
        }
        let store = place.open()?.shared();
        let engine = Engine::new(store).with_route(Arc::new(Routes::of(&self.state_dir)));
        if self.its_run(&engine, session)?.is_none() {
            return Ok(None);
        }
        let settings = Settings::load(&self.place)?.phases;
        let most = if attended { settings.wake } else { settings.wake_headless };
        let Some(most) = most.0.map(Duration::from_secs) else { return Ok(None) };
        let watch = Stopwatch::start();
        let parent = parent();
        let mut parked_since = None;
        while watch.elapsed() < most && parent == self::parent() {
            let Some(run) = self.its_run(&engine, session)? else { return Ok(None) };
            let parked = run.state().parked().filter(|parked| parked.session == session);
            match parked {
                // It went on meanwhile, and another waits beside its later stop.
                Some(parked) if parked_since.is_some_and(|since| since != parked.since) => {
                    return Ok(None);
                }
                Some(parked) => {
                    parked_since = Some(parked.since);
                    if parked.is_due(clock::now()?) && !run.state().is_paused() {
                        return self.wake(&engine, session, attended);
                    }
                }
                _ if parked_since.is_some() => return Ok(None),
                _ if self.call.event == HostEvent::Stop && self.is_decided(run.state()) => {
                    return Ok(None);
                }
                _ if watch.elapsed() > DECISION_MAX => return Ok(None),
                _ => {}
            }
            let early = parked_since.is_none() || watch.elapsed() < DECISION_MAX;
            thread::sleep(if early { FIRST_LOOKS } else { LATER_LOOKS });
        }
        Ok(None)
    }

    /// The run that this session works for, or may from this stop on.
    fn its_run(&self, engine: &Engine, session: &str) -> Result<Option<PhasesRun>, HookError> {
        let run = live::live(engine.store(), &self.place, Some(session))?;
        Ok(run.filter(|run| run.state().session().is_none_or(|bound| bound == session)))
    }

    /// Takes the words out of the store: whoever comes second finds nothing.
    fn wake(
        &self,
        engine: &Engine,
        session: &str,
        attended: bool,
    ) -> Result<Option<String>, HookError> {
        let Some(run) = self.its_run(engine, session)? else { return Ok(None) };
        let _turn = live::turn(engine.store(), run.project())?;
        let Some(mut run) = self.its_run(engine, session)? else { return Ok(None) };
        let cap = self.call.block_cap(self.env);
        let cap = BlockCap { limit: cap.limit, resets_on_tool_use: cap.resets_on_tool_use };
        // Without a person the host takes it for one more blocked stop of the same turn.
        let event = Event::Woken { session: session.to_owned(), cap: (!attended).then_some(cap) };
        let now = clock::now()?;
        let outcome = engine.step(now, &mut run, event, None)?;
        let text = outcome.effects.iter().find_map(|effect| match effect {
            Effect::Context { text } => Some(text),
            _ => None,
        });
        Ok(text.map(|text| format!("aldis woke this session for run {}.\n\n{text}", run.id())))
    }

    /// Whether the hook beside this one has decided about this stop. Both are started at the same
    /// time, one of them a little earlier.
    fn is_decided(&self, state: &State) -> bool {
        state.last_checked().is_some_and(|at| at.after(TOGETHER) >= self.now)
    }
}

/// How far apart the two hooks of one stop begin.
const TOGETHER: Duration = Duration::from_secs(1);

/// The process that started this one; another one once that is gone.
fn parent() -> u32 {
    #[cfg(unix)]
    {
        std::os::unix::process::parent_id()
    }
    #[cfg(not(unix))]
    {
        0
    }
}
