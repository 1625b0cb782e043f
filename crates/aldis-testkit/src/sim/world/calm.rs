//! When nothing goes wrong any more, every run must come to an end.

use std::rc::Rc;

use aldis_machine::phases::{Event, Stop};
use aldis_signal::time::Timestamp;

use super::super::engine::Delivery;
use super::super::oracle::{Check, hold};
use super::World;
use super::acts::is_astray;

/// Stops beyond the limit of the phase that a run may take to end, told of its end or capped.
const GRACE: u32 = 8;

impl World {
    /// Stops all faults and lets silent agents stop until every run has ended.
    pub(super) fn calm(&mut self) -> Check {
        self.faulty = false;
        self.limbo.clear();
        // The clock has caught up with every moment it ever showed.
        self.now = Timestamp::from_millis(self.latest.as_millis() + 1);
        for project in 0..self.files.len() {
            while let Some(held) = self.engine.live(project, None) {
                self.files[project].mend(&held.state);
                if is_astray(&held.state) {
                    let by = "`aldis auto stop`".to_owned();
                    self.command(project, held, Event::Cancel { by })?;
                    continue;
                }
                let ours = |id: &str| held.state.session.as_deref().is_none_or(|bound| bound == id);
                let found = self
                    .sessions
                    .iter()
                    .position(|session| session.project == project && ours(&session.id));
                let Some(session) = found else {
                    let by = "the session is in another project".to_owned();
                    self.command(project, held, Event::Cancel { by })?;
                    continue;
                };
                self.wear_out(session, held.run, held.state.max_iterations)?;
            }
        }
        Ok(())
    }

    /// An agent that never says anything stops until its run is over.
    fn wear_out(&mut self, session: usize, run: usize, limit: u32) -> Check {
        self.sessions[session].end();
        for _ in 0..limit * 2 + GRACE {
            if !self.engine.held(run).is_some_and(|held| held.state.is_live()) {
                return Ok(());
            }
            self.pass(1_000);
            let id = Some(self.sessions[session].id.to_string());
            if self.sessions[session].turn.is_none() {
                let turn = self.sessions[session].begin(self.now);
                let event = Rc::new(Event::Prompt { session: id.clone(), turn, own: false });
                self.deliver(session, &Delivery { event, source: None })?;
            }
            let of = &self.sessions[session];
            let Some(turn) = &of.turn else { continue };
            let stop = Stop {
                session: id,
                turn: of.names_turns.then(|| turn.name.clone()),
                turn_began: of.tells_began.then_some(turn.began),
                continued: of.tells_continued.then_some(turn.continued),
                cap: of.cap,
                closing_words: "Hm.".to_owned(),
                ..Stop::default()
            };
            let event = Rc::new(Event::Stop(stop));
            let reply = self.deliver(session, &Delivery { event, source: None })?;
            self.answered(session, reply, false)?;
        }
        let held = self.engine.held(run);
        let live = held.as_ref().is_some_and(|held| held.state.is_live());
        hold(!live, "every_run_ends", || format!("run {run} still goes on: {held:?}"))
    }
}
