//! What the effects of a supervised run mean in the world, and what happens there means to it.

mod called;
mod checks;
mod claim;
mod job;
mod session;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use aldis_engine::{Engine, Handle};
use aldis_machine::run::{
    AgentExit, Effect, Ending, Event, Exit, Notice, ProgressCoalescer, RunSignal, State, Status,
    Usage, suggestion,
};
use aldis_machine::{HumanCommand, Outcome};
use aldis_signal::time::Timestamp;
use aldis_signal::{Finding, Rules};
use aldis_store::RunId;
use aldis_transcript::events::{HostEvent, Zone};

use self::claim::Claims;
use self::job::{Job, Work, keep_end, text_of};
use self::session::CurrentSession;
use super::conduct::{Awaited, Conduct, Performed};
use super::coordinator::{self, Core};
use super::real::Real;
use super::repository::{Repository, checkout, partial_work};
use super::world::{
    Control, JobId, OutputStream, RepositoryAnswer, RepositoryRequest, Ticket, World,
};
use crate::agents::command::AgentCommand;
use crate::agents::git::{Git, Since};
use crate::agents::listener::{MessageFindings, Report};
use crate::agents::session::Session;
use crate::error::CommandError;
use crate::hosts::Host;
use crate::notify::TerminalNotice;
use crate::settings::config::Notify;
use crate::view::live::run::{LastShown, RunReporter};
use crate::view::live::tools::ToolCall;

/// How often the work tree is looked at while the agent works.
const LOOK: Duration = Duration::from_secs(10);
/// How long a process that did not stop when it was asked has to end.
const LAST_GRACE: Duration = Duration::from_secs(1);
/// How many commits are counted at the end.
const COMMITS_MAX: usize = 1_000;

/// What to run, and how.
#[derive(Debug)]
pub(crate) struct RunPlan {
    /// The host whose agent it is, unless the user gave a command.
    pub(crate) host: Option<Host>,
    /// How the agent is started.
    pub(crate) command: AgentCommand,
    /// The check of a run that began before checks had names, for a shell.
    pub(crate) verify: Option<String>,
    /// Where it works, and where our own state is.
    pub(crate) directory: PathBuf,
    pub(crate) state: PathBuf,
    /// The dialect in which it reports.
    pub(crate) rules: Rules,
    /// The zone of clock times that name none.
    pub(crate) zone: Zone,
    /// Whether a person at the terminal is asked.
    pub(crate) ask_here: bool,
}

/// Supervises one agent.
struct RunConduct<'p> {
    plan: &'p RunPlan,
    live: RunReporter,
    /// What of the run was shown.
    shown: LastShown,
    job: Option<Job<'p>>,
    session: CurrentSession,
    /// When the process must have ended.
    deadline: Option<Timestamp>,
    /// Near misses of this agent that the machine knows of.
    hints: HashSet<String>,
    /// How many calls of this agent were taken over.
    calls: u64,
    claims: Claims,
    progress: ProgressCoalescer,
    look: Option<Ticket>,
    looked_at: Timestamp,
    /// Where the checks of this round run.
    check_place: Option<PathBuf>,
}

/// Returns whether an effect of a supervisor that has gone must not be performed: the machine says
/// anew what is to be done with agents, and twice would be two agents. What is for people is still
/// done.
fn is_stale(effect: &Effect) -> bool {
    match effect {
        Effect::Ask { .. }
        | Effect::KeepWork { .. }
        | Effect::Notice { .. }
        | Effect::Finish { .. } => false,
        Effect::Start { .. }
        | Effect::End { .. }
        | Effect::Suspend
        | Effect::Continue
        | Effect::Check
        | Effect::Inspect { .. }
        | Effect::RunCheck { .. }
        | Effect::AskJudge
        | Effect::Look => true,
    }
}

/// Supervises a run until it ends.
///
/// # Errors
///
/// Fails if somebody else supervises it, or the system lacks something. The run can be continued.
pub(crate) fn supervise(
    engine: Engine,
    mut run: Handle<State>,
    plan: &RunPlan,
    (notify, live): (&Notify, RunReporter),
    first: Event,
) -> Result<Ending, CommandError> {
    let place = (&*plan.directory, &*plan.state);
    let repository = Repository::around(place.0, place.1, run.id(), false)?;
    let mut world = Real::of(&engine, &mut run, place, repository, (notify, plan.ask_here))?;
    let Supervised { id, ending, now, state, mut live } =
        supervise_in(&mut world, engine, run, (plan, live), first)?;
    checkout(&plan.state, &id).remove(&plan.directory);
    world.finish(&id).iter().for_each(|problem| live.problem(now, problem));
    let git = Git::around(&plan.directory);
    let changes =
        git.as_ref().and_then(|git| git.commits_between(state.base()?, "HEAD", COMMITS_MAX).ok());
    let branch = git.and_then(|git| git.branch());
    live.ended(now, &state, ending, (changes.map_or(0, |commits| commits.len()), branch));
    Ok(ending)
}

/// A run that has ended.
pub(super) struct Supervised {
    id: RunId,
    pub(super) ending: Ending,
    /// When.
    now: Timestamp,
    state: State,
    live: RunReporter,
}

/// Supervises a run in whatever world until it ends.
pub(super) fn supervise_in(
    world: &mut dyn World,
    engine: Engine,
    run: Handle<State>,
    (plan, mut live): (&RunPlan, RunReporter),
    first: Event,
) -> Result<Supervised, CommandError> {
    let left = run.state().agent().map(str::to_owned);
    let mut core = Core::take_over(engine, run, world, is_stale, left)?;
    let program = plan.command.command.first().map(|program| program.to_string_lossy());
    let agent = plan.host.map(|host| host.title().into()).or(program).unwrap_or_default();
    live.begin(core.id(), core.state(), &agent, &plan.directory);
    let mut conduct = RunConduct::new(plan, live, core.state(), core.now());
    let ending = coordinator::coordinate(&mut core, &mut conduct, first)?;
    let (id, now, state) = (core.id().clone(), core.now(), core.state().clone());
    Ok(Supervised { id, ending, now, state, live: conduct.live })
}

impl<'p> RunConduct<'p> {
    fn new(plan: &'p RunPlan, live: RunReporter, state: &State, now: Timestamp) -> Self {
        Self {
            plan,
            live,
            shown: LastShown::of(state),
            job: None,
            session: CurrentSession::default(),
            deadline: None,
            hints: HashSet::new(),
            calls: 0,
            claims: Claims::default(),
            progress: ProgressCoalescer::default(),
            look: None,
            looked_at: now,
            check_place: None,
        }
    }

    fn look(&mut self, core: &mut Core<'_, State>) -> Ticket {
        self.looked_at = core.now();
        let state = core.state();
        let markers = state.claims_resolution().then(|| Since(state.base().map(str::to_owned)));
        let directory = self.plan.directory.clone();
        let ticket = core.ask(RepositoryRequest::Look { directory, markers });
        self.look = Some(ticket);
        ticket
    }

    /// Tells whoever sits here. `key` names the effect, also when it is performed again.
    fn notify(&mut self, core: &mut Core<'_, State>, key: &str, notice: Notice, text: &str) {
        let shown = TerminalNotice { id: key.to_owned(), kind: notice.into() };
        if core.world().notify(&shown) {
            self.live.notice(core.now(), notice, text);
        }
    }

    /// Tells the machine what the agent reported.
    fn report(
        &mut self,
        core: &mut Core<'_, State>,
        reports: Vec<Report>,
    ) -> Result<(), CommandError> {
        let mut signals = Vec::new();
        for report in reports {
            match report {
                Report::Found(MessageFindings { message, findings, .. }) => {
                    for finding in findings {
                        match finding {
                            Finding::Signal(signal) => match self.unaccepted(core, &signal) {
                                None => signals.push(RunSignal::new(&signal, message)),
                                Some(hint) => self.near_miss(core, hint)?,
                            },
                            Finding::NearMiss(miss) => self.near_miss(core, miss.hint())?,
                        }
                    }
                }
                Report::Host(HostEvent::Answered(answer)) => {
                    let events = self.progress.push(core.now(), std::mem::take(&mut signals));
                    events.into_iter().try_for_each(|event| self.advance(core, event))?;
                    self.answered(core, &answer)?;
                }
                Report::Host(event) => {
                    if let HostEvent::Session(name) = event {
                        self.session_named(core, name)?;
                    } else if let Some(event) = self.host_event(core, event) {
                        self.advance(core, event)?;
                    }
                }
                Report::Text { origin, text, .. } => self.live.said(core.now(), &origin, &text),
            }
        }
        let events = self.progress.push(core.now(), signals);
        events.into_iter().try_for_each(|event| self.advance(core, event))
    }

    /// Shows what the host reported about itself, and returns what it means to the machine.
    fn host_event(&mut self, core: &Core<'_, State>, event: HostEvent) -> Option<Event> {
        let now = core.now();
        let agent = match self.job.as_ref().map(|job| &job.work) {
            Some(Work::Agent(session)) => Some(&**session),
            _ => None,
        };
        Some(match event {
            HostEvent::Tool { call, name, about, is_command, lines } => {
                let (call, name, about) = (&*call, &*name, &*about);
                self.live.tool(now, &ToolCall { call, name, about, is_command, lines });
                Event::Activity
            }
            HostEvent::ToolEnded { call, failed, exit_code } => {
                self.live.tool_ended(now, &call, failed, exit_code);
                return None;
            }
            HostEvent::Spent { tokens, micro_dollars } => {
                Event::Spent(self.session.spent(agent, Usage { tokens, micro_dollars }))
            }
            HostEvent::Retrying { what, .. } => {
                self.live.retrying(now, &what);
                Event::Retrying { what }
            }
            HostEvent::Limited { what, until } => {
                self.session.limited();
                Event::Limited { what, until }
            }
            HostEvent::Failed { what } => {
                self.session.failed();
                self.live.problem(now, &what);
                Event::HostFailed { what }
            }
            HostEvent::Denied { tool, what } => {
                let format = agent.and_then(Session::format);
                let cure = self.how_to_allow(core.id(), format, &tool).unwrap_or_default();
                self.live.denied(now, (&tool, &what));
                Event::PermissionDenied { tool, what, cure }
            }
            HostEvent::Session(_) | HostEvent::Answered(_) | HostEvent::Ended { .. } => {
                return None;
            }
        })
    }
}

impl Conduct for RunConduct<'_> {
    type Machine = State;
    type End = Ending;

    fn perform(
        &mut self,
        core: &mut Core<'_, State>,
        effect: Effect,
        key: &str,
    ) -> Result<Performed, CommandError> {
        match effect {
            Effect::Start { prompt, .. } => self.start_agent(core, prompt)?,
            Effect::Check => self.run_unnamed(core)?,
            Effect::Inspect { stage, commit, keep } => {
                let ticket = self.inspect(core, (stage, commit, keep))?;
                return Ok(Performed::After(Awaited::Answer(ticket)));
            }
            Effect::RunCheck { check, .. } => self.run_check(core, &check)?,
            Effect::AskJudge => self.ask_judge(core)?,
            Effect::End { grace } => self.end_agent(core, grace)?,
            Effect::Suspend => self.control(core, Control::Suspend),
            Effect::Continue => self.control(core, Control::Resume),
            Effect::Look => return Ok(Performed::After(Awaited::Answer(self.look(core)))),
            Effect::Ask { id, text, options, default } => {
                let suggestion = suggestion(&options, default.as_deref());
                self.live.question(core.now(), (&id, &text), suggestion.as_deref());
            }
            Effect::KeepWork { base } => {
                let message = partial_work(core.id());
                let ticket = core.ask(RepositoryRequest::KeepWork { message, base });
                return Ok(Performed::Until(Awaited::Answer(ticket)));
            }
            Effect::Notice { notice, text } => self.notify(core, key, notice, &text),
            Effect::Finish { .. } => {}
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
        let now = core.now();
        if self.claim_output(job, stream, bytes) {
            return Ok(());
        }
        let Some(job) = self.job.as_mut().filter(|at_work| at_work.id == job) else {
            return Ok(());
        };
        keep_end(
            if stream == OutputStream::Stdout { &mut job.output } else { &mut job.errors },
            bytes,
        );
        let mut reports = Vec::new();
        match (&mut job.work, stream) {
            (Work::Agent(session), OutputStream::Stdout) => {
                session.stdout(bytes, now, &mut |report| reports.push(report));
            }
            (Work::Agent(session), OutputStream::Stderr) => {
                session.stderr(bytes);
                self.live.aside(now, bytes);
            }
            (Work::Check(check), stream) => check.read(stream, bytes),
        }
        self.report(core, reports)
    }

    fn on_over(
        &mut self,
        core: &mut Core<'_, State>,
        job: JobId,
        exit: Exit,
    ) -> Result<(), CommandError> {
        if self.claim_over(core, job, exit)? {
            return Ok(());
        }
        let Some(Job { work, output, errors, .. }) = self.job.take_if(|it| it.id == job) else {
            return Ok(());
        };
        self.deadline = None;
        let now = core.now();
        match work {
            Work::Agent(session) => {
                let mut reports = Vec::new();
                session.finish(exit, now, &mut |report| reports.push(report));
                self.report(core, reports)?;
                self.take_left_calls(core)?;
                if let Some(event) = self.progress.flush() {
                    self.advance(core, event)?;
                }
                let last = if errors.iter().all(u8::is_ascii_whitespace) { output } else { errors };
                let output = if exit.is_clean() { String::new() } else { text_of(&last) };
                let session = self.session_over(core, exit)?;
                let Exit { code, signal } = exit;
                let exited = Event::Exited(AgentExit { code, signal, output });
                coordinator::advance_together(core, self, vec![exited], session.as_slice())
            }
            Work::Check(check) => self.check_over(core, *check, exit),
        }
    }

    fn on_stopped(&mut self, core: &mut Core<'_, State>, _job: JobId) {
        self.live.problem(core.now(), "the agent suspended itself (SIGSTOP)");
    }

    fn on_answer(
        &mut self,
        core: &mut Core<'_, State>,
        ticket: Ticket,
        answer: RepositoryAnswer,
    ) -> Result<(), CommandError> {
        self.look.take_if(|look| *look == ticket);
        if self.claim_answered(core, ticket, &answer)? {
            return Ok(());
        }
        match answer {
            RepositoryAnswer::Looked(tree) => self.advance(core, Event::Looked(tree))?,
            RepositoryAnswer::Inspected(seen) => self.inspected(core, *seen)?,
            RepositoryAnswer::Kept(Ok(Some(branch))) => self.live.kept(core.now(), &branch),
            RepositoryAnswer::Kept(Err(error)) => {
                let what = format!("the partial work was not kept: {error}");
                self.live.problem(core.now(), &what);
            }
            _ => {}
        }
        Ok(())
    }

    fn command_of(&self, core: &Core<'_, State>, line: &str) -> Option<HumanCommand> {
        let state = core.state();
        match (state.status(), state.question(), line) {
            (_, _, "") => None,
            (Status::Asking, Some(question), text) => {
                Some(HumanCommand::Answer { id: question.id.clone(), text: text.to_owned() })
            }
            (Status::Paused { .. }, _, "r" | "resume" | "y" | "yes") => Some(HumanCommand::Resume),
            (Status::Paused { .. }, _, "a" | "abort" | "n" | "no") => Some(HumanCommand::Abort),
            _ => None,
        }
    }

    /// The first time the agent is asked to stop; the second time it is ended.
    fn on_interrupt(&mut self, core: &mut Core<'_, State>, by: &str) -> Result<(), CommandError> {
        // Checks and iterations that take too long have a deadline too, and the run goes on after it.
        if matches!(core.state().status(), Status::Ending { with: Some(_) }) {
            self.control(core, Control::End(Duration::ZERO));
            return Ok(());
        }
        coordinator::command(core, self, &HumanCommand::Abort, by).map(drop)
    }

    fn on_time(&mut self, core: &mut Core<'_, State>) -> Result<(), CommandError> {
        let now = core.now();
        if self.deadline.take_if(|deadline| now >= *deadline).is_some() {
            if let Some(Job { work: Work::Check(check), .. }) = &mut self.job {
                check.timed_out = true;
            }
            self.control(core, Control::End(LAST_GRACE));
        }
        if let Some(Job { work: Work::Agent(session), .. }) = &mut self.job {
            session.flush();
            if self.look.is_none() && now.since(self.looked_at) >= LOOK {
                self.look(core);
            }
        }
        self.claim_on_time(core)?;
        match self.progress.tick(now) {
            Some(event) => self.advance(core, event),
            None => Ok(()),
        }
    }

    fn next_deadline(&self, _core: &Core<'_, State>) -> Option<Timestamp> {
        let works = matches!(self.job, Some(Job { work: Work::Agent(_), .. }));
        let look = (works && self.look.is_none()).then(|| self.looked_at.after(LOOK));
        let due = [self.deadline, look, self.progress.due(), self.claim_deadline()];
        due.into_iter().flatten().min()
    }

    fn decided(&mut self, core: &Core<'_, State>, outcome: &Outcome<Effect>) {
        let before = std::mem::replace(&mut self.shown, LastShown::of(core.state()));
        self.live.decided(core.now(), &outcome.decisions, &before, core.state());
    }

    fn problem(&mut self, now: Timestamp, what: &str) {
        self.live.problem(now, what);
    }

    fn draw(&mut self, core: &Core<'_, State>) -> Option<String> {
        self.live.draw(core.now(), core.state());
        match (core.state().status(), core.state().question()) {
            (Status::Asking, Some(question)) => Some(format!("answer {}", question.id)),
            (Status::Paused { stagnated: true }, _) => Some("resume or abort?".to_owned()),
            _ => None,
        }
    }

    fn is_ending(&self, core: &Core<'_, State>) -> bool {
        matches!(core.state().status(), Status::Ending { .. }) || self.end(core).is_some()
    }

    fn end(&self, core: &Core<'_, State>) -> Option<Ending> {
        core.state().ending()
    }
}
