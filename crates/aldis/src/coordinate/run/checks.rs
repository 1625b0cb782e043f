//! The checks of a supervised run: where they run, and what comes of them.

use std::time::Duration;

use aldis_engine::note;
use aldis_machine::proof::{Check, CheckResult, Opinion, Stage};
use aldis_machine::run::{Event, Exit, State, Status};

use super::RunConduct;
use super::job::Work;
use crate::agents::output_log::LoggedAgent;
use crate::coordinate::checking::RunningCheck;
use crate::coordinate::conduct::Conduct as _;
use crate::coordinate::coordinator::{self, Core};
use crate::coordinate::judge::{self, JudgeSubject};
use crate::coordinate::world::{RepositoryRequest, Ticket};
use crate::error::CommandError;
use crate::proof::inspect::{InspectRequest, Inspected};
use crate::proof::pins::{PINS, Pins};
use crate::telemetry::Tracing;

impl RunConduct<'_> {
    /// Has the files of the checks pinned, or compared with their pins.
    pub(super) fn inspect(
        &self,
        core: &mut Core<'_, State>,
        (stage, commit, keep): (Stage, Option<String>, bool),
    ) -> Result<Ticket, CommandError> {
        let pins: Option<Pins> = core.run().note(PINS)?;
        let config = core.state().setup().config.proof.clone();
        let directory = self.plan.directory.clone();
        let request = InspectRequest { directory, config, stage, commit, keep, pins };
        Ok(core.ask(RepositoryRequest::Inspect(Box::new(request))))
    }

    /// The files were inspected: what was pinned is stored with that.
    pub(super) fn inspected(
        &mut self,
        core: &mut Core<'_, State>,
        seen: Inspected,
    ) -> Result<(), CommandError> {
        let Inspected { inspection, pins, place, .. } = seen;
        self.check_place = Some(place);
        let notes = match pins {
            Some(pins) => vec![note(PINS, &pins)?],
            None => Vec::new(),
        };
        let event = Event::Inspected(Box::new(inspection));
        coordinator::advance_together(core, self, vec![event], &notes)?;
        self.leave_checkout(core);
        Ok(())
    }

    /// Runs a check where the files were inspected.
    pub(super) fn run_check(
        &mut self,
        core: &mut Core<'_, State>,
        name: &str,
    ) -> Result<(), CommandError> {
        match core.state().setup().config.proof.check_named(name).cloned() {
            Some(check) => self.start_check(core, &check),
            None => Ok(()),
        }
    }

    /// Runs the check of a run that began before checks had names.
    pub(super) fn run_unnamed(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        match &self.plan.verify {
            Some(verify) => self.start_check(core, &Check::unnamed(verify)),
            None => self.advance(core, Event::Checked { passed: true, output: String::new() }),
        }
    }

    pub(super) fn start_check(
        &mut self,
        core: &mut Core<'_, State>,
        check: &Check,
    ) -> Result<(), CommandError> {
        if self.reuse_check(core, check)? {
            return Ok(());
        }
        let config = &core.state().setup().config;
        let most = config.proof.timeout.unwrap_or(config.iteration_timeout);
        let prepares = *core.state().status() == Status::Preparing;
        self.live.checking(core.now(), check, prepares);
        let place = self.check_place.clone().unwrap_or_else(|| self.plan.directory.clone());
        let (job, run) = (core.new_job(), core.id().clone());
        let (most, variables) = (Duration::from_secs(most), Tracing::of_check(&core.tracing, ""));
        match RunningCheck::start(core.world(), (job, &run, variables), check, place, most) {
            Ok(running) => {
                self.deadline = Some(running.deadline);
                self.job = Some(super::Job::new(job, Work::Check(Box::new(running))));
                Ok(())
            }
            Err(result) => self.checked(core, *result),
        }
    }

    /// A check or a judge has ended with everything it started.
    pub(super) fn check_over(
        &mut self,
        core: &mut Core<'_, State>,
        running: RunningCheck,
        exit: Exit,
    ) -> Result<(), CommandError> {
        match running.judges {
            true => self.judged(core, running.opinion(core.now(), exit)),
            false => self.checked(core, running.finish(core.now(), exit)),
        }
    }

    /// A check has ended with everything it started, or could not be started.
    pub(super) fn checked(
        &mut self,
        core: &mut Core<'_, State>,
        result: CheckResult,
    ) -> Result<(), CommandError> {
        self.live.checked(core.now(), &result);
        let event = match core.state().setup().config.proof.is_active() {
            true => Event::CheckEnded(Box::new(result)),
            // The run began before checks had names.
            false => Event::Checked { passed: result.passed(), output: result.output.tail },
        };
        self.advance(core, event)?;
        core.tracing.iter_mut().for_each(|tracing| tracing.check_ended(""));
        self.leave_checkout(core);
        Ok(())
    }

    /// Asks for a second opinion, where the checks ran.
    pub(super) fn ask_judge(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let state = core.state();
        let Some(command) = state.setup().config.proof.judge.clone() else { return Ok(()) };
        let place = self.check_place.clone().unwrap_or_else(|| self.plan.directory.clone());
        let (task, proof) = (state.setup().task.clone(), state.proof().clone());
        let transcripts = judge::logs(&self.plan.state, core.id(), &LoggedAgent::default());
        let claim = "the task is done".to_owned();
        let subject = JudgeSubject { task: &task, claim, proof: &proof, transcripts };
        let (job, run) = (core.new_job(), core.id().clone());
        match RunningCheck::ask(core.world(), (job, &run), (&command, &place), &subject) {
            Ok(running) => {
                self.deadline = Some(running.deadline);
                self.job = Some(super::Job::new(job, Work::Check(Box::new(running))));
                Ok(())
            }
            Err(opinion) => self.judged(core, opinion),
        }
    }

    /// A judge has ended, or nobody could be asked.
    pub(super) fn judged(
        &mut self,
        core: &mut Core<'_, State>,
        opinion: Opinion,
    ) -> Result<(), CommandError> {
        self.advance(core, Event::OpinionGiven(opinion))?;
        self.leave_checkout(core);
        Ok(())
    }

    /// Has a clean checkout removed once nothing runs in it any more.
    fn leave_checkout(&mut self, core: &mut Core<'_, State>) {
        if matches!(core.state().status(), Status::Checking | Status::Preparing) {
            return;
        }
        let directory = &self.plan.directory;
        if self.check_place.take().is_some_and(|place| place != *directory) {
            core.ask(RepositoryRequest::RemoveCheckout { task: None });
        }
    }
}
