//! The checks of the tasks of a delivery: where they run, and what comes of them.

use std::path::PathBuf;
use std::time::Duration;

use aldis_engine::note;
use aldis_machine::delivery::{Event, Role, State, Wait};
use aldis_machine::proof::{CheckResult, Stage};
use aldis_machine::run::Exit;
use aldis_signal::time::Timestamp;

use super::{Asked, DeliveryConduct, number};
use crate::coordinate::checking::RunningCheck;
use crate::coordinate::conduct::{Conduct as _, Performed};
use crate::coordinate::coordinator::{self, Core};
use crate::coordinate::world::{Control, JobId, RepositoryRequest};
use crate::error::CommandError;
use crate::proof::inspect::{InspectRequest, Inspected};
use crate::proof::pins::{Pins, pins_of_task};
use crate::proof::record::Recorder;
use crate::telemetry::Tracing;

/// How long a check that takes too long has to stop.
const GRACE: Duration = Duration::from_secs(1);

/// A check of a task at work.
pub(super) struct TaskCheck {
    pub(super) task: String,
    pub(super) running: RunningCheck,
}

impl DeliveryConduct<'_> {
    /// Has the files of a task's checks pinned, or compared with their pins.
    pub(super) fn inspect(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        stage: Stage,
    ) -> Result<Performed, CommandError> {
        let waits = checked_stage(core.state(), &task) == Some(stage);
        let Some(no) = number(core.state(), &task).filter(|_| waits) else {
            return Ok(Performed::Done);
        };
        let pins: Option<Pins> = core.run().note(&pins_of_task(no))?;
        let run = core.state().run();
        let request = InspectRequest {
            directory: self.plan.project.clone(),
            config: run.config.proof.clone(),
            stage,
            commit: None,
            keep: false,
            pins,
        };
        let worktree = run.config.worktrees;
        let request = Box::new(request);
        let inspect = RepositoryRequest::InspectTask { request, task: no, worktree };
        Ok(self.ask(core, Asked::Inspect(task), inspect))
    }

    /// The files of a task were inspected: what was pinned is stored with that.
    pub(super) fn inspected(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        seen: Inspected,
    ) -> Result<(), CommandError> {
        let Inspected { inspection, pins, place, head, dirty } = seen;
        let Some(no) = number(core.state(), &task) else { return Ok(()) };
        self.check_places.insert(no, place);
        let notes = match pins {
            Some(pins) => vec![note(&pins_of_task(no), &pins)?],
            None => Vec::new(),
        };
        let seen = Box::new(inspection);
        let event = Event::Inspected { task, head, dirty, seen };
        coordinator::advance_together(core, self, vec![event], &notes)?;
        self.leave_checkout(core, no);
        Ok(())
    }

    /// Runs a check of a task where its files were inspected.
    pub(super) fn run_check(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        name: &str,
    ) -> Result<(), CommandError> {
        let waits = checked_stage(core.state(), &task).is_some();
        let runs = self.checks.values().any(|it| it.task == task);
        let config = &core.state().run().config;
        let most = config.proof.timeout.map(Duration::from_secs);
        let most = most.unwrap_or_else(|| config.timeout(Role::Developer));
        let check = config.proof.check_named(name).filter(|_| waits && !runs).cloned();
        let (Some(check), Some(no)) = (check, number(core.state(), &task)) else { return Ok(()) };
        let Some(place) = self.check_places.get(&no).cloned() else {
            // Whoever knew where it runs is gone: the files are inspected again.
            return self.find_place(core, task, name);
        };
        let (job, run) = (core.new_job(), core.id().clone());
        let id = (job, &run, Tracing::of_check(&core.tracing, &task));
        match RunningCheck::start(core.world(), id, &check, place, most) {
            Ok(running) => {
                self.checks.insert(job, TaskCheck { task, running });
                Ok(())
            }
            Err(result) => self.checked(core, task, *result),
        }
    }

    /// Finds out where the check of a task runs that was decided before a crash, and runs it there.
    fn find_place(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        name: &str,
    ) -> Result<(), CommandError> {
        let Some(no) = number(core.state(), &task) else { return Ok(()) };
        match core.state().run().config.worktrees {
            true => {
                let asked = Asked::Place(task, name.to_owned());
                self.ask(core, asked, RepositoryRequest::AddWorktree { task: no });
                Ok(())
            }
            false => self.placed(core, (task, name), self.plan.project.clone()),
        }
    }

    /// It is known where the check of a task runs.
    pub(super) fn placed(
        &mut self,
        core: &mut Core<'_, State>,
        (task, name): (String, &str),
        place: PathBuf,
    ) -> Result<(), CommandError> {
        if let Some(no) = number(core.state(), &task) {
            self.check_places.insert(no, place);
        }
        self.run_check(core, task, name)
    }

    /// There is no place where the check of a task could run.
    pub(super) fn not_placed(
        &mut self,
        core: &mut Core<'_, State>,
        (task, name): (String, &str),
        what: &str,
    ) -> Result<(), CommandError> {
        let check = core.state().run().config.proof.check_named(name).cloned();
        match check {
            Some(check) => self.checked(core, task, Recorder::new(check).not_started(what)),
            None => Ok(()),
        }
    }

    /// A check has ended, if it was one.
    pub(super) fn check_over(
        &mut self,
        core: &mut Core<'_, State>,
        job: JobId,
        exit: Exit,
    ) -> Result<(), CommandError> {
        let Some(TaskCheck { task, running }) = self.checks.remove(&job) else { return Ok(()) };
        let result = running.finish(core.now(), exit);
        self.checked(core, task, result)
    }

    fn checked(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        result: CheckResult,
    ) -> Result<(), CommandError> {
        let no = number(core.state(), &task);
        let result = Box::new(result);
        core.tracing.iter_mut().for_each(|tracing| tracing.check_ended(&task));
        self.advance(core, Event::CheckEnded { task, result })?;
        if let Some(no) = no {
            self.leave_checkout(core, no);
        }
        Ok(())
    }

    /// Ends checks that take too long.
    pub(super) fn end_late_checks(&mut self, core: &mut Core<'_, State>) {
        let now = core.now();
        for (job, TaskCheck { running, .. }) in &mut self.checks {
            if now >= running.deadline && !std::mem::replace(&mut running.timed_out, true) {
                core.world().control(*job, Control::End(GRACE));
            }
        }
    }

    /// When the next check must have ended.
    pub(super) fn check_deadline(&self) -> Option<Timestamp> {
        let open = self.checks.values().filter(|it| !it.running.timed_out);
        open.map(|it| it.running.deadline).min()
    }

    /// Has a clean checkout removed once nothing runs in it any more.
    fn leave_checkout(&mut self, core: &mut Core<'_, State>, no: usize) {
        let waits = core.state().tasks().get(no).map(|it| matches!(it.wait, Wait::Checks { .. }));
        if waits == Some(true) {
            return;
        }
        self.check_places.remove(&no);
        if core.state().run().config.proof.clean {
            core.ask(RepositoryRequest::RemoveCheckout { task: Some(no) });
        }
    }
}

/// At which stage the checks of a task are wanted; at none where the delivery has ended.
fn checked_stage(state: &State, task: &str) -> Option<Stage> {
    match state.task(task).filter(|_| state.ending().is_none())?.wait {
        Wait::Checks { stage } => Some(stage),
        _ => None,
    }
}
