//! The checks of the tasks of a delivery: where they run, and what comes of them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_engine::note;
use aldis_machine::delivery::{Event, Role, State, Wait};
use aldis_machine::proof::{Check, CheckResult, Opinion, Stage};
use aldis_machine::run::Exit;
use aldis_signal::time::Timestamp;

use super::{Asked, DeliveryConduct, number};
use crate::agents::output_log::LoggedAgent;
use crate::coordinate::checking::RunningCheck;
use crate::coordinate::conduct::{Conduct as _, Performed};
use crate::coordinate::coordinator::{self, Core};
use crate::coordinate::judge::{self, JudgeSubject};
use crate::coordinate::world::{Control, JobId, RepositoryRequest};
use crate::error::CommandError;
use crate::proof::inspect::{InspectRequest, Inspected};
use crate::proof::pins::{Pins, pins_of_task};
use crate::proof::record::Recorder;
use crate::telemetry::Tracing;

/// How long a check that takes too long has to stop.
const GRACE: Duration = Duration::from_secs(1);

/// What runs where a task is checked.
pub(super) enum CheckWork {
    /// The check of this name.
    Check(String),
    /// Whoever gives a second opinion.
    Judge,
}

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

    /// Runs a check of a task, or asks for a second opinion, where its files were inspected.
    pub(super) fn run_check(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        work: CheckWork,
    ) -> Result<(), CommandError> {
        let waits = checked_stage(core.state(), &task).is_some();
        let runs = self.checks.values().any(|it| it.task == task);
        let Some(no) = number(core.state(), &task).filter(|_| waits && !runs) else {
            return Ok(());
        };
        let Some(place) = self.check_places.get(&no).cloned() else {
            // Whoever knew where it runs is gone: the files are inspected again.
            return self.find_place(core, task, work);
        };
        let config = &core.state().run().config;
        let most = config.proof.timeout.map(Duration::from_secs);
        let most = most.unwrap_or_else(|| config.timeout(Role::Developer));
        match work {
            CheckWork::Check(name) => {
                let Some(check) = config.proof.check_named(&name).cloned() else { return Ok(()) };
                let job = core.new_job();
                let run = core.id().clone();
                let id = (job, &run, Tracing::of_check(&core.tracing, &task));
                match RunningCheck::start(core.world(), id, &check, place, most) {
                    Ok(running) => drop(self.checks.insert(job, TaskCheck { task, running })),
                    Err(result) => return self.checked(core, task, *result),
                }
            }
            CheckWork::Judge => {
                let job = core.new_job();
                match self.ask_judge(core, (job, no), (&task, &place)) {
                    Some(Ok(running)) => drop(self.checks.insert(job, TaskCheck { task, running })),
                    Some(Err(opinion)) => return self.judged(core, task, opinion),
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Asks for a second opinion about the work of a task, if one is wanted.
    fn ask_judge(
        &self,
        core: &mut Core<'_, State>,
        (job, no): (JobId, usize),
        (id, place): (&str, &Path),
    ) -> Option<Result<RunningCheck, Opinion>> {
        let command = core.state().run().config.proof.judge.clone()?;
        let task = core.state().tasks().get(no)?;
        let (proof, spec) = (task.proof.clone(), &task.spec);
        let criteria = spec.acceptance.iter().map(|it| format!("\n- {it}"));
        let text =
            format!("{}\n\n{}{}", spec.title, spec.description, criteria.collect::<String>());
        let run = core.id().clone();
        // Those of workers are where they ran.
        let mut agents = LoggedAgent::all_of(&self.plan.state, &run).into_iter();
        let developer = Role::Developer.as_str();
        let last = agents.rfind(|it| it.task.as_deref() == Some(id) && it.role == developer);
        let transcripts = last.map(|it| judge::logs(&self.plan.state, &run, &it));
        let transcripts = transcripts.unwrap_or_default();
        let claim = format!("the work on {id} is ready");
        let subject = JudgeSubject { task: &text, claim, proof: &proof, transcripts };
        Some(RunningCheck::ask(core.world(), (job, &run), (&command, place), &subject))
    }

    /// Finds out where the check of a task runs that was decided before a crash, and runs it there.
    fn find_place(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        work: CheckWork,
    ) -> Result<(), CommandError> {
        let Some(no) = number(core.state(), &task) else { return Ok(()) };
        match core.state().run().config.worktrees {
            true => {
                let asked = Asked::Place(task, work);
                self.ask(core, asked, RepositoryRequest::AddWorktree { task: no });
                Ok(())
            }
            false => self.placed(core, (task, work), self.plan.project.clone()),
        }
    }

    /// It is known where the check of a task runs.
    pub(super) fn placed(
        &mut self,
        core: &mut Core<'_, State>,
        (task, work): (String, CheckWork),
        place: PathBuf,
    ) -> Result<(), CommandError> {
        if let Some(no) = number(core.state(), &task) {
            self.check_places.insert(no, place);
        }
        self.run_check(core, task, work)
    }

    /// There is no place where the check of a task could run, or its work be judged.
    pub(super) fn not_placed(
        &mut self,
        core: &mut Core<'_, State>,
        (task, work): (String, CheckWork),
        what: &str,
    ) -> Result<(), CommandError> {
        let proof = &core.state().run().config.proof;
        match work {
            CheckWork::Check(name) => match proof.check_named(&name).cloned() {
                Some(check) => self.checked(core, task, Recorder::new(check).not_started(what)),
                None => Ok(()),
            },
            CheckWork::Judge => match proof.judge.clone() {
                Some(judge) => {
                    let recorder = Recorder::new(Check::unnamed(judge));
                    self.judged(core, task, judge::opinion(recorder, |it| it.not_started(what)))
                }
                None => Ok(()),
            },
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
        if running.judges {
            let opinion = running.opinion(core.now(), exit);
            return self.judged(core, task, opinion);
        }
        let result = running.finish(core.now(), exit);
        self.checked(core, task, result)
    }

    fn judged(
        &mut self,
        core: &mut Core<'_, State>,
        task: String,
        opinion: Opinion,
    ) -> Result<(), CommandError> {
        let no = number(core.state(), &task);
        self.advance(core, Event::OpinionGiven { task, opinion })?;
        if let Some(no) = no {
            self.leave_checkout(core, no);
        }
        Ok(())
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
