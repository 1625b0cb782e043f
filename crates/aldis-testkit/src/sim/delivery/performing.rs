//! The coordinator: decide, commit, then act; and dying in between.

use std::rc::Rc;

use aldis_machine::delivery::{Effect, Event, Outcome, Wait};
use aldis_machine::run::Exit;
use aldis_store::{Fault, FaultKind, When};

use super::super::oracle::{Broken, Check, hold};
use super::agents;
use super::keeper::Written;
use super::planted::{self, Bug};
use super::world::{Process, World};

/// One prompt in so many is scanned.
pub(super) const SCANNED_EVERY: u64 = 256;
/// One committed step in so many is read back.
const WRITTEN_EVERY: u64 = 64;

impl World {
    /// Lets the coordinator take an event.
    pub(super) fn deliver(&mut self, event: Event) -> Check {
        self.tally.events += 1;
        self.note(&shown(&event));
        let event = Self::shared(event);
        let outcome = planted::take(self.bug, &mut self.state, self.now, &event);
        if outcome.is_nothing() {
            return Ok(());
        }
        let fault = self.fault();
        self.keeper.fail_next(fault);
        let before = self.keeper.revision();
        let committed = self.commit(&event, &outcome);
        self.keeper.fail_next(None);
        if self.keeper.revision() > before {
            self.tally.steps += 1;
            self.books.enter(&event, &outcome, &self.state)?;
            self.mix();
        }
        if !committed && self.bug != Some(Bug::ActBeforeCommit) {
            // Whether the step is there is unknown: forget everything and look.
            return self.restart();
        }
        if self.strikes(8) {
            self.note("the coordinator dies before it acts");
            return self.restart();
        }
        if self.tally.steps.is_multiple_of(WRITTEN_EVERY) {
            self.tally.written += 1;
            let stored =
                self.keeper.load().map_err(|detail| Broken { invariant: "stored", detail })?;
            hold(stored == self.state, "stored_is_what_was_decided", || shown(&event))?;
        }
        if !committed {
            return self.perform_all(&outcome);
        }
        for effect in &outcome.effects {
            if let Effect::Wake { at } = effect {
                self.wake = Some(*at);
            }
        }
        self.outbox()
    }

    fn commit(&mut self, event: &Rc<Event>, outcome: &Outcome) -> bool {
        let mut written = outcome.clone();
        if self.bug == Some(Bug::LostPart) && self.tally.steps % 7 == 6 {
            written.changed.pop();
        }
        let step =
            Written { at: self.now, event: Some(event), state: &self.state, outcome: &written };
        self.keeper.commit(&step).is_ok()
    }

    fn fault(&mut self) -> Option<Fault> {
        let (kind, when) = match self.rng.below(4) {
            0 => (FaultKind::Full, When::Before),
            1 => (FaultKind::Busy, When::Before),
            2 => (FaultKind::Io, When::Before),
            _ => (FaultKind::Io, When::After),
        };
        self.strikes(8).then_some(Fault { kind, when })
    }

    /// Performs what is to be done, in order; the coordinator may die between any two.
    fn outbox(&mut self) -> Check {
        while let Some((key, effect)) = self.keeper.pending() {
            self.perform(&effect)?;
            if self.strikes(3) {
                self.note("the coordinator dies while it acts");
                return self.restart();
            }
            self.keeper.done(&key).map_err(|detail| Broken { invariant: "stored", detail })?;
        }
        hold(self.processes.len() <= self.books.at_work(), "no_process_without_an_agent", || {
            format!("{} for {}", self.processes.len(), self.books.at_work())
        })
    }

    fn perform_all(&mut self, outcome: &Outcome) -> Check {
        outcome.effects.iter().try_for_each(|effect| self.perform(effect))
    }

    fn perform(&mut self, effect: &Effect) -> Check {
        match effect {
            Effect::Dispatch(dispatch) => {
                let known = self.state.agent(dispatch.agent).is_some();
                if !known && self.bug != Some(Bug::StaleDispatch) {
                    return Ok(());
                }
                let expected = self.books.expects(dispatch.agent);
                hold(expected, "only_agents_at_work_are_started", || format!("{dispatch:?}"))?;
                self.texts += 1;
                if self.texts.is_multiple_of(SCANNED_EVERY) {
                    self.tally.scanned += 1;
                    let silent = !agents::is_signal(&dispatch.prompt);
                    hold(silent, "no_prompt_is_a_signal", || dispatch.prompt.clone())?;
                }
                let process = Process { dispatch: dispatch.clone(), silent: false };
                self.processes.insert(dispatch.agent, process);
            }
            Effect::End { agent } => {
                if let Some(process) = self.processes.remove(agent) {
                    self.dies(*agent, &process);
                }
            }
            Effect::Merge { task } => {
                let waits = self.state.task(task).is_some_and(|task| task.wait == Wait::Merge);
                if waits && !self.merges.contains(task) {
                    self.merges.push(task.clone());
                }
            }
            Effect::CheckExpert { name, .. } => self.checks.push(name.clone()),
            Effect::Finish { .. } => self.processes.clear(),
            Effect::Request { .. }
            | Effect::Ask { .. }
            | Effect::Notice { .. }
            | Effect::Wake { .. } => {}
        }
        Ok(())
    }

    /// A process is ended; what it said just before may arrive all the same.
    fn dies(&mut self, agent: u64, process: &Process) {
        if self.strikes(300) {
            let reply = agents::reply(&mut self.rng, &process.dispatch, true, "req-1");
            let exit = Some(Exit { code: Some(0), signal: None });
            self.limbo.push(Event::Finished { agent, exit, said: reply.said });
        }
    }

    /// The coordinator comes back: its memory is gone, and so are the agents it had started.
    pub(super) fn restart(&mut self) -> Check {
        for (agent, process) in std::mem::take(&mut self.processes) {
            self.dies(agent, &process);
        }
        // So is whoever kept the wake-up, merged or looked for a file.
        self.merges.clear();
        self.checks.clear();
        self.wake = None;
        self.state = self.keeper.load().map_err(|detail| Broken { invariant: "stored", detail })?;
        if self.state.ending().is_some() {
            return self.outbox();
        }
        if self.bug == Some(Bug::RecoveryForgotten) {
            return self.outbox();
        }
        self.deliver(Event::Recovered)
    }
}

/// An event in a line of a trace.
fn shown(event: &Event) -> String {
    match event {
        Event::Finished { agent, exit, said } => {
            let names: Vec<String> = said
                .signals
                .iter()
                .map(|it| format!("{} {}", it.name, it.subject.as_deref().unwrap_or("-")))
                .collect();
            let code = exit.and_then(|exit| exit.code).unwrap_or(0);
            format!("agent {agent} ends with {code} and says {names:?}")
        }
        event => format!("{event:?}"),
    }
}
