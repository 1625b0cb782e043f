//! One claim of a worker, from its beginning to its end: the work tree, the agent, what it reports, its
//! work as a branch.
//!
//! That the agent is claimed is committed before anything of it runs. Everything it reports is a step
//! that carries the claim's fencing number, and counts only while no newer claim is in force. Where the
//! claim is lost, or the machine gave the agent up, the agent is ended with all it started.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_engine::{Engine, Handle};
use aldis_machine::delivery::{AgentReply, Dispatch, Effect, Event, State};
use aldis_machine::run::Exit;
use aldis_machine::{HumanCommand, Outcome};
use aldis_signal::time::Timestamp;
use aldis_store::Claim;

use super::admission::SlotEnd;
use crate::agents::command::{Program, StartFailure};
use crate::coordinate::conduct::{Conduct, Performed};
use crate::coordinate::coordinator::{self, Core, heed_others};
use crate::coordinate::delivery::agent::{AgentAtWork, Ended, Last};
use crate::coordinate::delivery::called::progress_called;
use crate::coordinate::delivery::last_words::{LastWords, last_words, spent};
use crate::coordinate::delivery::start::{AgentStart, GRACE, NOT_STARTED, agent_start, at_work};
use crate::coordinate::delivery::watch::{COUNT, LOOK, again};
use crate::coordinate::delivery::{DeliveryPlan, number};
use crate::coordinate::hold::Hold;
use crate::coordinate::world::{
    Control, JobId, OutputStream, RepositoryAnswer, RepositoryRequest, Ticket, World,
};
use crate::error::CommandError;
use crate::telemetry::Tracing;
use crate::view::live::delivery::DeliveryReporter;

/// How much longer than it may an agent lives at most: its coordinator may be gone.
const OVERTIME: Duration = Duration::from_secs(60);

/// Runs a claimed agent to its end. `asked` is when the claim was asked for.
///
/// # Errors
///
/// Fails if the store does for longer than the claim lasts. Whatever ran has to be ended then.
pub(crate) fn run_agent(
    world: &mut dyn World,
    (engine, claim, asked): (Engine, Claim, Timestamp),
    (dispatch, run): (Dispatch, Handle<State>),
    (plan, worker): (&DeliveryPlan, &str),
    board: DeliveryReporter,
) -> Result<SlotEnd, CommandError> {
    let fence = claim.fence;
    let first = Event::Claimed { agent: dispatch.agent, worker: worker.to_owned(), fence };
    let traced = world.is_traced().then_some(engine.store());
    let right = (Hold::claimed(claim, asked), Tracing::resume(traced, &run)?);
    let mut core = Core::holding(engine, run, right, world);
    let mut conduct = AgentConduct {
        plan,
        worker,
        fence,
        dispatch,
        board,
        stage: SlotStage::Claimed,
        counted: None,
        looked: None,
        tree: None,
        stopped: None,
        end: None,
    };
    coordinator::coordinate(&mut core, &mut conduct, first)
}

/// Runs one agent.
struct AgentConduct<'p> {
    plan: &'p DeliveryPlan,
    worker: &'p str,
    fence: u64,
    dispatch: Dispatch,
    board: DeliveryReporter,
    stage: SlotStage<'p>,
    counted: Option<Timestamp>,
    looked: Option<Timestamp>,
    /// How the work tree looked last.
    tree: Option<Option<String>>,
    /// Why it is ended before it has finished.
    stopped: Option<SlotEnd>,
    end: Option<SlotEnd>,
}

/// How far it is.
enum SlotStage<'p> {
    /// It is claimed.
    Claimed,
    /// Its work tree is being made.
    Preparing(Ticket),
    /// It works.
    Working {
        job: JobId,
        at_work: Box<AgentAtWork<'p>>,
        deadline: Timestamp,
        looking: Option<Ticket>,
    },
    /// Its work is being pushed.
    Publishing(Ticket, Box<Last>),
    /// Nothing is left to do.
    Over,
}

impl AgentConduct<'_> {
    /// Whether the claim is in force, as far as is known of the run.
    fn has_claim(&self, core: &Core<'_, State>) -> bool {
        let agent = core.state().agent(self.dispatch.agent);
        agent.is_some_and(|agent| agent.is_claimed_by(self.fence))
    }

    /// How the claim is left that is not in force any more: where the machine gave the agent up, nobody
    /// needs to start it again.
    fn without_claim(&self, core: &Core<'_, State>) -> SlotEnd {
        match core.state().agent(self.dispatch.agent) {
            None => SlotEnd::Done,
            Some(_) => SlotEnd::Lost,
        }
    }

    fn report(&mut self, core: &mut Core<'_, State>, event: Event) -> Result<(), CommandError> {
        coordinator::advance(core, self, self.under_claim(event))
    }

    fn under_claim(&self, event: Event) -> Event {
        let (agent, fence) = (self.dispatch.agent, self.fence);
        Event::Worker { agent, fence, report: Box::new(event) }
    }

    /// The agent is claimed: its work tree is made, while the claim is kept.
    fn prepare(&mut self, core: &mut Core<'_, State>) {
        let task = self.dispatch.task.as_deref().and_then(|task| number(core.state(), task));
        let ticket = core.ask(RepositoryRequest::AddWorktree { task: task.unwrap_or_default() });
        self.stage = SlotStage::Preparing(ticket);
    }

    fn start(
        &mut self,
        core: &mut Core<'_, State>,
        directory: PathBuf,
    ) -> Result<(), CommandError> {
        // Somebody may have ended the delivery, or this agent, since it was claimed.
        heed_others(core, self)?;
        if !self.has_claim(core) {
            let end = self.without_claim(core);
            return self.stop(core, end);
        }
        let whose = (self.plan, Some(self.worker));
        let mut start = agent_start(core.run(), whose, &self.dispatch, directory)?;
        name_program(&mut start);
        let traced = core.tracing.iter().map(|tracing| tracing.agent(self.dispatch.agent));
        start.launch.variables.extend(traced);
        let job = core.new_job();
        match core.world().start(job, &start.launch) {
            Err(StartFailure { what }) => self.not_started(core, what),
            Ok(_) => {
                let at_work = at_work(core.id(), self.plan, self.dispatch.clone(), start);
                let most = Duration::from_secs(self.dispatch.timeout).max(COUNT) + OVERTIME;
                let (at_work, deadline) = (Box::new(at_work), core.now().after(most));
                self.stage = SlotStage::Working { job, at_work, deadline, looking: None };
                Ok(())
            }
        }
    }

    /// Counted as a crash: the machine knows when that is enough.
    fn not_started(
        &mut self,
        core: &mut Core<'_, State>,
        what: String,
    ) -> Result<(), CommandError> {
        tracing::warn!(run = %core.id(), agent = self.dispatch.agent, what, "agent not started");
        let (agent, exit) = (self.dispatch.agent, Some(NOT_STARTED));
        let reply = AgentReply { preview: what, ..AgentReply::default() };
        self.report(core, Event::Finished { agent, exit, reply })?;
        self.over(SlotEnd::Done);
        Ok(())
    }

    fn over(&mut self, end: SlotEnd) {
        self.stage = SlotStage::Over;
        self.end.get_or_insert(end);
    }

    /// Ends the agent, whose work does not count any more.
    fn stop(&mut self, core: &mut Core<'_, State>, end: SlotEnd) -> Result<(), CommandError> {
        if let SlotStage::Working { job, at_work, .. } = &mut self.stage {
            self.stopped.get_or_insert(end);
            if !std::mem::replace(&mut at_work.given_up, true) {
                core.world().control(*job, Control::End(GRACE));
            }
        } else {
            self.over(end);
        }
        Ok(())
    }

    /// The agent is gone that was ended: what it has cost counts, what it said is kept as a near miss.
    fn stopped(
        &mut self,
        core: &mut Core<'_, State>,
        last: Last,
        end: SlotEnd,
    ) -> Result<(), CommandError> {
        let agent = self.dispatch.agent;
        let mut events: Vec<Event> = spent(agent, last.unreported).into_iter().collect();
        heed_others(core, self)?;
        // Nobody has its work, so while the machine still waits for it, it has said nothing.
        if let (false, Ended::Finished { exit, text, .. }) = (self.has_claim(core), &last.ended) {
            let token = core.state().expected_token(agent);
            let reply = AgentReply::read(&self.plan.rules, &token, text);
            if !reply.signals.is_empty() {
                events.push(Event::Finished { agent, exit: Some(*exit), reply });
            }
        }
        if !events.is_empty() {
            let events = events.into_iter().map(|event| self.under_claim(event)).collect();
            coordinator::advance_together(core, self, events, &[])?;
        }
        self.over(end);
        Ok(())
    }

    /// The agent has finished, and its work is pushed, or could not be.
    fn conclude(
        &mut self,
        core: &mut Core<'_, State>,
        last: Last,
        pushed: Result<(), String>,
    ) -> Result<(), CommandError> {
        heed_others(core, self)?;
        if !self.has_claim(core) {
            let end = self.without_claim(core);
            return self.stopped(core, last, end);
        }
        if let Err(what) = pushed {
            return self.not_started(core, format!("its work could not be pushed: {what}"));
        }
        let (plan, dispatch) = ((self.plan, Some(self.worker)), self.dispatch.clone());
        let LastWords { events, notes, limited } = last_words(core, self, plan, &dispatch, last)?;
        let events = events.into_iter().map(|event| self.under_claim(event)).collect();
        coordinator::advance_together(core, self, events, &notes)?;
        self.over(match limited {
            Some(until) => {
                SlotEnd::GivenBack(until, "the service refuses to work for now".to_owned())
            }
            None => SlotEnd::Done,
        });
        Ok(())
    }

    /// Tells the machine of checkpoints, signs of life, work and costs.
    fn news(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let now = core.now();
        let config = &core.state().run().config;
        let (every, watched) = (config.report_interval(), config.stagnation.enabled);
        let token = core.state().expected_token(self.dispatch.agent);
        let SlotStage::Working { at_work, looking, .. } = &mut self.stage else { return Ok(()) };
        if at_work.given_up {
            return Ok(());
        }
        if watched && looking.is_none() && again(&mut self.looked, every.min(LOOK), now) {
            let directory = at_work.directory.clone();
            *looking = Some(core.ask(RepositoryRequest::Look { directory, markers: None }));
        }
        let counted = again(&mut self.counted, COUNT, now);
        let news = at_work.news(now, (every, counted), (&self.plan.rules, &token));
        let answers = at_work.reported.new_answers().to_vec();
        news.into_iter().try_for_each(|event| self.report(core, event))?;
        let answers = answers.into_iter().map(|answer| (self.dispatch.clone(), answer)).collect();
        for (event, note) in progress_called(core, self, answers)? {
            let events = vec![self.under_claim(event)];
            coordinator::advance_together(core, self, events, &[note])?;
        }
        Ok(())
    }
}

impl Conduct for AgentConduct<'_> {
    type Machine = State;
    type End = SlotEnd;

    /// What is decided is performed by whoever coordinates the run.
    fn perform(
        &mut self,
        _core: &mut Core<'_, State>,
        _effect: Effect,
        _key: &str,
    ) -> Result<Performed, CommandError> {
        Ok(Performed::Done)
    }

    fn on_output(
        &mut self,
        core: &mut Core<'_, State>,
        _job: JobId,
        stream: OutputStream,
        bytes: &[u8],
    ) -> Result<(), CommandError> {
        if let SlotStage::Working { at_work, .. } = &mut self.stage {
            at_work.read(stream, bytes, core.now(), &mut self.board);
        }
        Ok(())
    }

    fn on_over(
        &mut self,
        core: &mut Core<'_, State>,
        _job: JobId,
        exit: Exit,
    ) -> Result<(), CommandError> {
        let stage = std::mem::replace(&mut self.stage, SlotStage::Over);
        let SlotStage::Working { at_work, .. } = stage else { return Ok(()) };
        let last = at_work.finish(exit, core.now(), &mut self.board);
        if let Some(end) = self.stopped.take() {
            return self.stopped(core, last, end);
        }
        heed_others(core, self)?;
        if !self.has_claim(core) {
            let end = self.without_claim(core);
            return self.stopped(core, last, end);
        }
        if matches!(last.ended, Ended::Limited { .. }) {
            return self.conclude(core, last, Ok(()));
        }
        let task = self.dispatch.task.as_deref().unwrap_or("no task");
        let message = format!("Work of the {} on {task}", self.dispatch.role.label());
        let ticket = core.ask(RepositoryRequest::Publish { message });
        self.stage = SlotStage::Publishing(ticket, Box::new(last));
        Ok(())
    }

    fn on_stopped(&mut self, core: &mut Core<'_, State>, job: JobId) {
        core.world().control(job, Control::Resume);
    }

    fn on_answer(
        &mut self,
        core: &mut Core<'_, State>,
        ticket: Ticket,
        answer: RepositoryAnswer,
    ) -> Result<(), CommandError> {
        match (std::mem::replace(&mut self.stage, SlotStage::Over), answer) {
            (SlotStage::Preparing(asked), RepositoryAnswer::Worktree(made)) if asked == ticket => {
                match made {
                    Ok(directory) => self.start(core, directory),
                    Err(what) => self.not_started(core, what),
                }
            }
            (SlotStage::Publishing(asked, last), RepositoryAnswer::Published(pushed))
                if asked == ticket =>
            {
                self.conclude(core, *last, pushed.map(drop))
            }
            (
                SlotStage::Working { job, mut at_work, deadline, .. },
                RepositoryAnswer::Looked(tree),
            ) => {
                let before = self.tree.replace(tree.fingerprint.clone());
                at_work.reported.worked |= before.is_some_and(|before| before != tree.fingerprint);
                self.stage = SlotStage::Working { job, at_work, deadline, looking: None };
                Ok(())
            }
            (stage, _) => {
                self.stage = stage;
                Ok(())
            }
        }
    }

    fn command_of(&self, _core: &Core<'_, State>, _line: &str) -> Option<HumanCommand> {
        None
    }

    fn on_interrupt(&mut self, core: &mut Core<'_, State>, _by: &str) -> Result<(), CommandError> {
        let end = SlotEnd::GivenBack(core.now(), "its worker was stopped".to_owned());
        self.stop(core, end)
    }

    fn on_time(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        if !self.has_claim(core) {
            return match self.stage {
                // Its answer is waited for: then it is known what was pushed.
                SlotStage::Publishing(..) | SlotStage::Over => Ok(()),
                _ => {
                    let end = self.without_claim(core);
                    self.stop(core, end)
                }
            };
        }
        if matches!(self.stage, SlotStage::Claimed) {
            self.prepare(core);
        }
        let now = core.now();
        if let SlotStage::Working { job, at_work, deadline, .. } = &mut self.stage
            && now >= *deadline
            && !at_work.given_up
        {
            // Ended as by a crash: whoever coordinates the run may be gone and come back.
            *deadline = now.after(OVERTIME);
            let job = *job;
            core.world().control(job, Control::End(GRACE));
        }
        self.news(core)
    }

    fn next_deadline(&self, core: &Core<'_, State>) -> Option<Timestamp> {
        match &self.stage {
            SlotStage::Claimed => Some(core.now()),
            SlotStage::Working { deadline, .. } => Some((*deadline).min(core.now().after(COUNT))),
            _ => None,
        }
    }

    fn decided(&mut self, core: &Core<'_, State>, outcome: &Outcome<Effect>) {
        for decision in &outcome.decisions {
            tracing::debug!(run = %core.id(), rule = decision.rule, summary = decision.summary);
        }
    }

    fn problem(&mut self, _now: Timestamp, what: &str) {
        tracing::warn!(agent = self.dispatch.agent, "{what}");
    }

    fn draw(&mut self, _core: &Core<'_, State>) -> Option<String> {
        None
    }

    fn lost(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        tracing::warn!(run = %core.id(), agent = self.dispatch.agent, "the claim is lost");
        self.stop(core, SlotEnd::Lost)
    }

    fn end(&self, _core: &Core<'_, State>) -> Option<SlotEnd> {
        self.end.clone()
    }
}

/// A program that is named by a relative path is one of the repository.
fn name_program(start: &mut AgentStart) {
    let directory = start.launch.directory.clone();
    let Program::Agent { command, .. } = &mut start.launch.what else { return };
    let Some(program) = command.command.first_mut() else { return };
    let path = Path::new(&*program);
    if path.is_relative() && path.components().count() > 1 {
        *program = directory.join(path).into();
    }
}
