//! What the effects of a delivery mean in the world, and what its agents do means to it.

pub(super) mod agent;
mod boxes;
pub(super) mod called;
mod checks;
pub(super) mod last_words;
pub(super) mod start;
pub(super) mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use aldis_engine::{Engine, Handle};
use aldis_machine::delivery::{Dispatch, Effect, Ending, Event, Notice, Role, State, Status};
use aldis_machine::run::Exit;
use aldis_machine::{HumanCommand, Outcome};
use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use aldis_store::PartChange;
use aldis_transcript::events::Zone;

use self::agent::{AgentAtWork, Last};
pub(crate) use self::boxes::PlanBoxes;
use self::boxes::title;
use self::checks::{CheckWork, TaskCheck};
use self::last_words::{LastWords, last_words, spent};
use self::start::{PROCESS, process_key};
use self::watch::Watch;
use super::conduct::{Awaited, Conduct, Performed};
use super::coordinator::{self, Core};
use super::real::Real;
use super::remote::SharedRepository;
use super::repository::Repository;
use super::world::{
    Control, JobId, OutputStream, RepositoryAnswer, RepositoryRequest, Ticket, World,
};
use crate::agents::command::AgentCommand;
use crate::error::CommandError;
use crate::notify::TerminalNotice;
use crate::notify::routes::about;
use crate::settings::config::Notify;
use crate::settings::notice_kind::Kind;
use crate::view::live::delivery::DeliveryReporter;

/// How to deliver.
#[derive(Debug)]
pub(crate) struct DeliveryPlan {
    /// How the agents of some roles are started, and what stands before their prompts.
    pub(crate) roles: BTreeMap<Role, (AgentCommand, String)>,
    /// How all others are.
    pub(crate) command: AgentCommand,
    /// Where the project is, and where our own state is.
    pub(crate) project: PathBuf,
    pub(crate) state: PathBuf,
    /// The dialect in which agents report.
    pub(crate) rules: Rules,
    /// The zone of clock times that name none.
    pub(crate) zone: Zone,
    /// Whether a person at the terminal is asked.
    pub(crate) ask_here: bool,
    /// Whether to end instead of waiting for a human.
    pub(crate) no_wait: bool,
    /// How long to wait for a service that does not say when it will work again.
    pub(crate) limit_wait: Duration,
    /// The plan's file and the boxes in it that are ticked when their tasks are complete.
    pub(crate) boxes: Option<PlanBoxes>,
    /// The repository that workers share with us, where they run the agents.
    pub(crate) shared: Option<SharedRepository>,
    /// For the demonstration: the answer that every question gets after a moment.
    pub(crate) answer: Option<(Duration, String)>,
}

impl DeliveryPlan {
    /// How the agents of a role are started, and what stands before their prompts.
    pub(super) fn of_role(&self, role: Role) -> (&AgentCommand, &str) {
        match self.roles.get(&role) {
            Some((command, preface)) => (command, preface),
            None => (&self.command, ""),
        }
    }
}

/// How a delivery went as far as this process took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// It is over.
    Ended(Ending),
    /// It waits for a human, and this process does not.
    Waits,
}

/// Coordinates the agents of a delivery.
struct DeliveryConduct<'p> {
    plan: &'p DeliveryPlan,
    board: DeliveryReporter,
    agents: BTreeMap<JobId, AgentAtWork<'p>>,
    /// Agents that wait for their service, and until when.
    limited: BTreeMap<u64, (Timestamp, Dispatch)>,
    /// What the repository was asked for.
    asked: BTreeMap<Ticket, Asked>,
    watch: Watch,
    /// The checks at work.
    checks: BTreeMap<JobId, TaskCheck>,
    /// Where the checks of tasks run, by their places in the plan.
    check_places: BTreeMap<usize, PathBuf>,
}

/// What an answer of the repository is for.
enum Asked {
    /// The work tree in which this agent starts.
    Start(Box<Dispatch>),
    /// The work of this task, merged.
    Merge(String),
    /// The box of this task in the plan, ticked.
    Tick(String),
    /// The file of this expert.
    Expert(String),
    /// How this directory looks.
    Look(PathBuf),
    /// How the files of this task's checks stand.
    Inspect(String),
    /// The work tree of this task, in which this runs.
    Place(String, CheckWork),
}

/// Coordinates a delivery until it is over, or waits for a human and may not.
///
/// # Errors
///
/// Fails if somebody else coordinates it, or the system lacks something. The delivery can be
/// continued.
pub(crate) fn deliver(
    engine: Engine,
    mut run: Handle<State>,
    plan: &DeliveryPlan,
    (notify, board): (&Notify, DeliveryReporter),
    first: Event,
) -> Result<Delivered, CommandError> {
    let worktrees = run.state().run().config.worktrees;
    let repository = Repository::around(&plan.project, &plan.state, run.id(), worktrees)?;
    let repository = repository.sharing(plan.shared.clone());
    let (id, place) = (run.id().clone(), (&*plan.project, &*plan.state));
    let mut world = Real::of(&engine, &mut run, place, repository, (notify, plan.ask_here))?;
    let Coordinated { delivered, now, state, mut board } =
        deliver_in(&mut world, engine, run, (plan, board), first)?;
    world.finish(&id).iter().for_each(|problem| board.problem(now, problem));
    match delivered {
        Delivered::Ended(ending) => board.ended(now, &state, ending),
        Delivered::Waits => board.waits(now, &state),
    }
    Ok(delivered)
}

/// A delivery as this process left it.
pub(super) struct Coordinated {
    pub(super) delivered: Delivered,
    /// When.
    now: Timestamp,
    state: State,
    board: DeliveryReporter,
}

/// Coordinates a delivery in whatever world.
pub(super) fn deliver_in(
    world: &mut dyn World,
    engine: Engine,
    run: Handle<State>,
    (plan, mut board): (&DeliveryPlan, DeliveryReporter),
    first: Event,
) -> Result<Coordinated, CommandError> {
    let processes: Vec<String> = run.notes_under(PROCESS).map(str::to_owned).collect();
    let left = processes.iter().filter_map(|key| run.note(key).ok().flatten());
    let left: Vec<String> = left.collect();
    // What a coordinator that has gone was about to do is done, unless the machine knows better.
    let mut core = Core::take_over(engine, run, world, |_| false, left)?;
    if !processes.is_empty() {
        let gone = processes.into_iter().map(|key| PartChange::Clear { key });
        core.set_notes(&gone.collect::<Vec<_>>())?;
    }
    board.begin(core.id(), core.state());
    let mut conduct = DeliveryConduct::new(plan, board);
    let tasks = core.state().tasks().iter();
    let complete = tasks.filter(|task| task.status() == Status::Complete);
    // A coordinator that has gone may not have come to it.
    for task in complete.map(|task| task.spec.id.clone()).collect::<Vec<_>>() {
        conduct.tick(&mut core, &task);
    }
    let delivered = coordinator::coordinate(&mut core, &mut conduct, first)?;
    let (now, state) = (core.now(), core.state().clone());
    Ok(Coordinated { delivered, now, state, board: conduct.board })
}

impl<'p> DeliveryConduct<'p> {
    fn new(plan: &'p DeliveryPlan, board: DeliveryReporter) -> Self {
        Self {
            plan,
            board,
            agents: BTreeMap::new(),
            limited: BTreeMap::new(),
            asked: BTreeMap::new(),
            watch: Watch::default(),
            checks: BTreeMap::new(),
            check_places: BTreeMap::new(),
        }
    }

    fn ask(
        &mut self,
        core: &mut Core<'_, State>,
        what: Asked,
        request: RepositoryRequest,
    ) -> Performed {
        let ticket = core.ask(request);
        self.asked.insert(ticket, what);
        Performed::Until(Awaited::Answer(ticket))
    }

    /// Tells whoever sits here. `key` names the effect, also when it is performed again.
    fn notify(&mut self, core: &mut Core<'_, State>, key: &str, notice: Notice, text: &str) {
        let Some(kind) = Kind::of_delivery(notice) else { return };
        if core.world().notify(&TerminalNotice { id: key.to_owned(), kind }) {
            self.board.notice(core.now(), kind.as_str(), text);
        }
    }

    /// Tells the machine how an agent ended.
    fn collect(
        &mut self,
        core: &mut Core<'_, State>,
        dispatch: Dispatch,
        last: Last,
    ) -> Result<(), CommandError> {
        let agent = dispatch.agent;
        let plan = self.plan;
        let words = last_words(core, self, (plan, None), &dispatch, last)?;
        let LastWords { events, mut notes, limited } = words;
        if let Some(until) = limited {
            self.limited.insert(agent, (until, dispatch));
        }
        notes.push(PartChange::Clear { key: process_key(agent) });
        coordinator::advance_together(core, self, events, &notes)
    }

    /// Starts the agents again whose service should work by now.
    fn wake_limited(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let now = core.now();
        let ready =
            |(agent, (until, _)): (&u64, &(Timestamp, Dispatch))| (now >= *until).then_some(*agent);
        let awake: Vec<u64> = self.limited.iter().filter_map(ready).collect();
        for agent in awake {
            if let Some((_, dispatch)) = self.limited.remove(&agent) {
                self.dispatch(core, dispatch)?;
            }
        }
        Ok(())
    }

    fn answer_by_itself(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let Some((after, text)) = &self.plan.answer else { return Ok(()) };
        let (now, questions) = (core.now(), &core.state().run().questions);
        let ripe = questions.iter().find(|(_, asked)| now.since(asked.asked_at) >= *after);
        let Some((id, _)) = ripe else { return Ok(()) };
        let answer = HumanCommand::Answer { id: id.clone(), text: text.clone() };
        coordinator::command(core, self, &answer, "the demonstration").map(drop)
    }
}

impl Conduct for DeliveryConduct<'_> {
    type Machine = State;
    type End = Delivered;

    fn perform(
        &mut self,
        core: &mut Core<'_, State>,
        effect: Effect,
        key: &str,
    ) -> Result<Performed, CommandError> {
        match effect {
            Effect::Dispatch(dispatch) => return self.dispatch(core, dispatch),
            Effect::End { agent } => return Ok(self.end_agent(core, agent)),
            Effect::Ask { id, task, text, .. } => {
                self.board.question(core.now(), &id, task.as_deref(), &text);
            }
            Effect::Merge { task } => {
                let Some(no) = number(core.state(), &task) else {
                    let (ok, detail) = (false, "there is no such task".to_owned());
                    self.advance(core, Event::Merged { task, ok, detail })?;
                    return Ok(Performed::Done);
                };
                let message =
                    format!("{}\n\nTask {task} of delivery {}", title(core.state(), no), core.id());
                let merge = RepositoryRequest::Merge { task: no, message };
                return Ok(self.ask(core, Asked::Merge(task), merge));
            }
            Effect::Inspect { task, stage } => return self.inspect(core, task, stage),
            Effect::RunCheck { task, check, .. } => {
                self.run_check(core, task, CheckWork::Check(check))?;
            }
            Effect::AskJudge { task } => self.run_check(core, task, CheckWork::Judge)?,
            Effect::CheckExpert { name, file } => {
                let has_file = RepositoryRequest::HasFile { name: file };
                return Ok(self.ask(core, Asked::Expert(name), has_file));
            }
            // Asked only of agents that are no processes.
            Effect::Request { .. } | Effect::Finish { .. } => {}
            Effect::Notice { notice, task, text, .. } => {
                self.notify(core, key, notice, &about(task.as_deref(), &text));
                if let (Notice::TaskComplete, Some(task)) = (notice, task) {
                    return Ok(self.tick(core, &task));
                }
            }
        }
        Ok(Performed::Done)
    }

    fn on_output(
        &mut self,
        core: &mut Core<'_, State>,
        job: JobId,
        stream: OutputStream,
        bytes: &[u8],
    ) -> Result<(), CommandError> {
        if let Some(agent) = self.agents.get_mut(&job) {
            agent.read(stream, bytes, core.now(), &mut self.board);
        } else if let Some(check) = self.checks.get_mut(&job) {
            check.running.read(stream, bytes);
        }
        Ok(())
    }

    fn on_over(
        &mut self,
        core: &mut Core<'_, State>,
        job: JobId,
        exit: Exit,
    ) -> Result<(), CommandError> {
        let Some(at_work) = self.agents.remove(&job) else {
            return self.check_over(core, job, exit);
        };
        let (given_up, dispatch) = (at_work.given_up, at_work.dispatch.clone());
        let last = at_work.finish(exit, core.now(), &mut self.board);
        if !given_up {
            return self.collect(core, dispatch, last);
        }
        let agent = dispatch.agent;
        let events = spent(agent, last.unreported).into_iter().collect();
        let notes = [PartChange::Clear { key: process_key(agent) }];
        coordinator::advance_together(core, self, events, &notes)
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
        let Some(asked) = self.asked.remove(&ticket) else { return Ok(()) };
        match (asked, answer) {
            (Asked::Start(dispatch), RepositoryAnswer::Worktree(made)) => match made {
                // The machine may have given it up while its work tree was made.
                _ if core.state().agent(dispatch.agent).is_none() => Ok(()),
                Ok(directory) => self.start(core, *dispatch, directory),
                Err(what) => self.not_started(core, dispatch.agent, &what),
            },
            (Asked::Inspect(task), RepositoryAnswer::Inspected(seen)) => {
                self.inspected(core, task, *seen)
            }
            (Asked::Place(task, work), RepositoryAnswer::Worktree(found)) => match found {
                Ok(place) => self.placed(core, (task, work), place),
                Err(what) => self.not_placed(core, (task, work), &what),
            },
            (Asked::Merge(task), RepositoryAnswer::Merged(merged)) => {
                let (ok, detail) = (merged.is_ok(), merged.err().unwrap_or_default());
                self.advance(core, Event::Merged { task, ok, detail })
            }
            (Asked::Tick(task), RepositoryAnswer::Ticked(ticked)) => {
                if let (Err(why), Some(boxes)) = (ticked, &self.plan.boxes) {
                    let plan = boxes.file.display();
                    let what = format!("the box of `{task}` in `{plan}` is not ticked: {why}");
                    self.board.problem(core.now(), &what);
                }
                Ok(())
            }
            (Asked::Expert(name), RepositoryAnswer::HasFile(present)) => {
                self.advance(core, Event::ExpertChecked { name, present })
            }
            (Asked::Look(directory), RepositoryAnswer::Looked(tree)) => {
                self.looked(directory, tree.fingerprint);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn command_of(&self, core: &Core<'_, State>, line: &str) -> Option<HumanCommand> {
        let id = core.state().run().questions.keys().next().filter(|_| !line.is_empty())?.clone();
        Some(HumanCommand::Answer { id, text: line.to_owned() })
    }

    fn on_interrupt(&mut self, core: &mut Core<'_, State>, by: &str) -> Result<(), CommandError> {
        coordinator::command(core, self, &HumanCommand::Abort, by).map(drop)
    }

    fn on_time(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        self.wake_limited(core)?;
        self.end_late_checks(core);
        self.answer_by_itself(core)?;
        self.report_called(core)?;
        self.report(core)
    }

    fn next_deadline(&self, _core: &Core<'_, State>) -> Option<Timestamp> {
        let limited = self.limited.values().map(|(until, _)| *until).min();
        [limited, self.check_deadline()].into_iter().flatten().min()
    }

    fn decided(&mut self, core: &Core<'_, State>, outcome: &Outcome<Effect>) {
        for decision in &outcome.decisions {
            self.board.decided(core.now(), decision);
        }
    }

    fn problem(&mut self, now: Timestamp, what: &str) {
        self.board.problem(now, what);
    }

    fn draw(&mut self, core: &Core<'_, State>) -> Option<String> {
        let question = core.state().run().questions.keys().next();
        let asked = self.plan.ask_here && question.is_some();
        self.board.draw(core.now(), core.state(), asked);
        question.map(|id| format!("answer {id}"))
    }

    fn end(&self, core: &Core<'_, State>) -> Option<Delivered> {
        let waits = self.plan.no_wait && core.state().waits_for_human();
        match core.state().ending() {
            Some(ending) => Some(Delivered::Ended(ending)),
            None if waits && self.limited.is_empty() => Some(Delivered::Waits),
            None => None,
        }
    }
}

/// The place of a task in the plan.
pub(super) fn number(state: &State, id: &str) -> Option<usize> {
    state.tasks().iter().position(|task| task.spec.id == id)
}
