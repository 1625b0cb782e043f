//! A world for coordinators with a clock of its own: processes, a repository, people, and what goes
//! wrong with each of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis::coordinate::simulated::{
    Control, Happening, InspectRequest, Inspected, JobId, JobLaunch, Leftover, OutputStream, Pins,
    Program, RepositoryAnswer, RepositoryRequest, StartFailure, TerminalNotice, Ticket, World,
};
use aldis_engine::Engine;
use aldis_machine::proof::{ChangeKind, FileChange, FileClass, Inspection, Pinned, Stage};
use aldis_machine::run::{Exit, WorkTree};
use aldis_signal::time::Timestamp;
use aldis_store::{EffectFilter, RunId};

use super::fate::SharedFate;
use super::oracle::Oracle;
use super::script::{Act, SimScript};
use super::{Bug, people};
use crate::corpus::rng::Rng;

/// How often a loop may ask for what is past before that is called busy.
const IDLE_MAX: u32 = 64;
/// How often a coordinator waits at most.
const WAITS_MAX: u64 = 2_000_000;
/// How many happenings are given at once.
const BATCH: usize = 8;

/// How the files of a check stand: sometimes an agent has bent them, or nobody can tell.
fn inspected(request: &InspectRequest, unlucky: bool, rng: &mut Rng) -> Inspected {
    let pins = request.stage == Stage::Start || request.pins.is_none();
    let classes = [FileClass::Own, FileClass::Protected, FileClass::Test];
    let change = FileChange {
        path: "tests/a.rs".to_owned(),
        part: None,
        class: classes[rng.below(classes.len())],
        kind: if rng.chance(50) { ChangeKind::Changed } else { ChangeKind::Added },
        before: None,
        after: None,
    };
    let inspection = Inspection {
        pinned: pins.then(Pinned::default),
        changes: (!pins && unlucky).then_some(change).into_iter().collect(),
        clean: request.commit.clone(),
        problem: (unlucky && rng.chance(20)).then(|| "git: refused".to_owned()),
        ..Inspection::default()
    };
    let commits = ["c0ffee", "decade"];
    Inspected {
        inspection,
        pins: pins.then(Pins::default),
        place: request.directory.clone(),
        head: Some(commits[rng.below(commits.len())].to_owned()),
        dirty: unlucky,
    }
}

pub(super) struct SimWorld {
    pub(super) shared: SharedFate,
    /// As other processes see the store: nothing goes wrong there.
    pub(super) engine: Engine,
    pub(super) run: RunId,
    pub(super) oracle: Oracle,
    /// Whether agents do their duty and people only help.
    pub(super) calm: bool,
    /// After how many events of the world it becomes so, and how many there may be then.
    pub(super) calm_at: (u64, u64),
    due: BTreeMap<(Timestamp, u64), Due>,
    scheduled: u64,
    pub(super) processes: BTreeMap<u64, Process>,
    started: u64,
    /// Which coordinator is at work; what is for an earlier one reaches nobody.
    coordinator: u32,
    interrupts: u32,
    /// Whether a person at the terminal is about to type.
    typing: bool,
    /// When the repository has answered all questions.
    repository_free: Timestamp,
    work: u64,
    idle: u32,
    waits: u64,
}

enum Due {
    Process(u64, u64),
    Answer(u32, Ticket, RepositoryAnswer),
    People,
    Interrupt,
    Typed(u32),
}

/// A process that lives.
pub(super) struct Process {
    coordinator: u32,
    job: JobId,
    identity: String,
    /// Whether it is an agent, not a check.
    pub(super) is_agent: bool,
    pub(super) directory: PathBuf,
    pub(super) task: String,
    pub(super) role: String,
    script: SimScript,
    pub(super) suspended: bool,
    /// Whether it would have gone on if it were not suspended.
    held_up: bool,
    /// What is scheduled under an older number does not count.
    plan: u64,
    exit: Option<Exit>,
}

impl SimWorld {
    pub(super) fn new(shared: SharedFate, engine: Engine, run: RunId, oracle: Oracle) -> Self {
        let repository_free = shared.lock().now;
        let mut world = Self {
            shared,
            engine,
            run,
            oracle,
            calm: false,
            calm_at: (u64::MAX, u64::MAX),
            due: BTreeMap::new(),
            scheduled: 0,
            processes: BTreeMap::new(),
            started: 0,
            coordinator: 0,
            interrupts: 0,
            typing: false,
            repository_free,
            work: 0,
            idle: 0,
            waits: 0,
        };
        world.schedule(5_000, Due::People);
        if world.shared.lock().rng.chance(10) {
            let after = world.shared.lock().rng.below(200_000) as u64;
            world.schedule(after, Due::Interrupt);
        }
        world
    }

    fn schedule(&mut self, after: u64, what: Due) {
        self.scheduled += 1;
        let at = self.shared.lock().now.after(Duration::from_millis(after));
        self.due.insert((at, self.scheduled), what);
    }

    /// A new coordinator begins.
    pub(super) fn next_coordinator(&mut self) {
        self.coordinator += 1;
        (self.typing, self.idle) = (false, 0);
    }

    /// The coordinator has gone. Where it could, it took its processes with it.
    pub(super) fn coordinator_gone(&mut self, died: bool) {
        let (now, failing) = {
            let fate = self.shared.lock();
            (fate.now, fate.failing_since)
        };
        self.oracle.store_fails(failing);
        self.oracle.coordinator_gone(now);
        if !died {
            self.processes.clear();
        }
    }

    /// Lets time pass while nobody coordinates.
    pub(super) fn pass(&mut self, millis: u64) {
        let until = self.shared.lock().now.after(Duration::from_millis(millis));
        self.coordinator += 1;
        let _nobody_listens = self.until(until);
        self.shared.lock().now = until;
    }

    /// Lets everything happen that is due until then. Stops at what somebody must hear of.
    fn until(&mut self, until: Timestamp) -> Vec<Happening> {
        let mut happened = Vec::new();
        while let Some(entry) = self.due.first_entry() {
            let at = entry.key().0;
            if at > until || !happened.is_empty() && at > self.shared.lock().now {
                break;
            }
            let what = entry.remove();
            {
                let mut fate = self.shared.lock();
                fate.now = fate.now.max(at);
            }
            self.happen(what, &mut happened);
            if happened.len() >= BATCH {
                break;
            }
        }
        if std::mem::take(&mut self.shared.lock().changed) {
            happened.push(Happening::StoreChanged);
        }
        happened
    }

    fn happen(&mut self, what: Due, happened: &mut Vec<Happening>) {
        match what {
            Due::Process(id, plan) => self.step(id, plan, happened),
            Due::Answer(coordinator, ticket, answer) if coordinator == self.coordinator => {
                happened.push(Happening::Repository { ticket, answer });
            }
            Due::Typed(coordinator) if coordinator == self.coordinator => {
                self.typing = false;
                let mut fate = self.shared.lock();
                let lines = ["yes", "r", "resume", "", "the second one", "what?"];
                let abort = !self.calm && fate.rng.chance(5);
                let line = if abort { "abort" } else { fate.rng.pick(&lines) };
                happened.push(Happening::Typed(line.to_owned()));
            }
            Due::Answer(..) | Due::Typed(_) => {}
            Due::People => {
                people::act(&self.engine, &self.run, &self.shared, self.calm);
                let pause = self.shared.lock().rng.between(2_000, 60_000) as u64;
                self.schedule(pause, Due::People);
            }
            Due::Interrupt => {
                self.interrupts += 1;
                happened.push(Happening::Interrupted("Ctrl-C"));
                let again = self.shared.lock().rng.between(500, 60_000) as u64;
                if self.interrupts < 3 && again < 20_000 {
                    self.schedule(again, Due::Interrupt);
                }
            }
        }
    }

    /// A process goes on.
    fn step(&mut self, id: u64, plan: u64, happened: &mut Vec<Happening>) {
        let now = self.shared.lock().now;
        let Some(process) = self.processes.get_mut(&id).filter(|it| it.plan == plan) else {
            return;
        };
        if process.suspended && process.exit.is_none() {
            process.held_up = true;
            return;
        }
        let heard = process.coordinator == self.coordinator;
        let job = process.job;
        let over = |exit: Exit| Happening::Over { job, exit };
        if let Some(exit) = process.exit {
            self.end(id, exit);
            happened.extend(heard.then(|| over(exit)));
            return;
        }
        match process.script.acts.pop_front().map(|(_, act)| act) {
            Some(Act::Write(bytes, tokens)) => {
                if heard {
                    self.oracle.reported(id, now, tokens);
                    happened.push(Happening::Output { job, stream: OutputStream::Stdout, bytes });
                }
            }
            Some(Act::WriteError(text)) => {
                let (stream, bytes) = (OutputStream::Stderr, text.as_bytes().to_vec());
                happened.extend(heard.then_some(Happening::Output { job, stream, bytes }));
            }
            Some(Act::Work) => self.work += 1,
            Some(Act::Stop) => {
                process.suspended = heard;
                happened.extend(heard.then_some(Happening::Stopped { job }));
            }
            Some(Act::Exit(code)) => {
                let real = Exit { code: Some(code), signal: None };
                let told = self.told(id, real);
                self.end(id, real);
                happened.extend(heard.then(|| over(told)));
                return;
            }
            None => return,
        }
        self.go_on(id);
    }

    /// How the end of a process is told.
    fn told(&self, id: u64, real: Exit) -> Exit {
        let planted = self.shared.lock().bug == Some(Bug::CheckAlwaysPasses);
        let check = self.processes.get(&id).is_some_and(|process| !process.is_agent);
        if planted && check { Exit { code: Some(0), signal: None } } else { real }
    }

    fn end(&mut self, id: u64, exit: Exit) {
        if let Some(process) = self.processes.remove(&id) {
            let heard = process.coordinator == self.coordinator;
            self.oracle.ended(process.is_agent, exit, heard);
        }
    }

    /// Schedules what a process does next.
    fn go_on(&mut self, id: u64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        process.held_up = false;
        if let Some((after, _)) = process.script.acts.front() {
            let (after, plan) = (*after, process.plan);
            self.schedule(after, Due::Process(id, plan));
        }
    }

    /// A process ends after this long.
    fn doom(&mut self, id: u64, after: u64, exit: Exit) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        process.plan += 1;
        process.exit = Some(exit);
        let plan = process.plan;
        self.schedule(after, Due::Process(id, plan));
    }

    fn answer(&self, request: &RepositoryRequest) -> RepositoryAnswer {
        let mut fate = self.shared.lock();
        let unlucky = !self.calm && fate.rng.chance(15);
        let refused = || "git: refused".to_owned();
        match request {
            RepositoryRequest::Look { markers, .. } => RepositoryAnswer::Looked(WorkTree {
                fingerprint: (!unlucky).then(|| format!("f{}", self.work)),
                head: Some("c0ffee".to_owned()),
                dirty: self.work > 0,
                conflicts: unlucky && markers.is_some(),
                error: (unlucky && fate.rng.chance(50)).then(refused),
            }),
            RepositoryRequest::KeepWork { .. } => RepositoryAnswer::Kept(match unlucky {
                true => Err(refused()),
                false => Ok((self.work > 0).then(|| "aldis/partial-1".to_owned())),
            }),
            RepositoryRequest::AddWorktree { task } => RepositoryAnswer::Worktree(match unlucky {
                true => Err(refused()),
                false => Ok(PathBuf::from(format!("/simulated/worktrees/{task}"))),
            }),
            RepositoryRequest::Merge { .. } => RepositoryAnswer::Merged(if unlucky {
                Err("conflicts: a.rs".into())
            } else {
                Ok(())
            }),
            RepositoryRequest::Tick { .. } => RepositoryAnswer::Ticked(match unlucky {
                true => Err("its line has changed".to_owned()),
                false => Ok(()),
            }),
            RepositoryRequest::HasFile { .. } => RepositoryAnswer::HasFile(!unlucky),
            RepositoryRequest::Inspect(request)
            | RepositoryRequest::InspectTask { request, .. } => {
                let seen = inspected(request, unlucky, &mut fate.rng);
                RepositoryAnswer::Inspected(Box::new(seen))
            }
            RepositoryRequest::Publish { .. } => RepositoryAnswer::Published(match unlucky {
                true => Err(refused()),
                false => Ok("c0ffee".to_owned()),
            }),
            RepositoryRequest::RemoveCheckout { .. } => RepositoryAnswer::Removed,
        }
    }

    /// At some time everything goes well, and then the run must end.
    fn calm_down(&mut self) {
        let mut fate = self.shared.lock();
        let events = fate.tally.events;
        if events >= self.calm_at.0 && !self.calm {
            self.calm = true;
            (fate.faults, fate.dies_in) = (false, None);
        }
        drop(fate);
        if events >= self.calm_at.1 || self.waits > WAITS_MAX {
            self.shared.stop("every_run_ends", format!("not within {} waits", self.waits));
        }
    }

    /// Whether the store has effects that nobody performed.
    pub(super) fn unperformed(&self) -> bool {
        let ever = Timestamp::from_millis(i64::MAX);
        let filter = EffectFilter { run: Some(self.run.clone()), ..EffectFilter::due_by(ever) };
        let pending = self.engine.store().pending_effects(&filter);
        pending.is_ok_and(|pending| !pending.is_empty())
    }

    /// The loop waits: then whatever was decided is done.
    fn check_standing(&mut self, until: Timestamp) {
        self.waits += 1;
        let (now, changed) = {
            let fate = self.shared.lock();
            (fate.now, fate.changed)
        };
        self.calm_down();
        self.idle = if until <= now { self.idle + 1 } else { 0 };
        if self.idle > IDLE_MAX {
            let detail = format!("{} waits for what is past, until {until}", self.idle);
            self.shared.stop("the_loop_rests", detail);
        }
        if !changed && self.waits.is_multiple_of(16) {
            let agents = self.processes.values().filter(|it| it.coordinator == self.coordinator);
            if let Err(detail) = self.oracle.standing(&self.engine, &self.run, agents) {
                self.shared.stop("a_paused_agent_is_suspended", detail);
            }
        }
    }
}

impl World for SimWorld {
    fn now(&self) -> Timestamp {
        self.shared.lock().now
    }

    fn wait(&mut self, until: Timestamp) -> Vec<Happening> {
        self.shared.call();
        self.check_standing(until);
        let happened = self.until(until);
        let mut fate = self.shared.lock();
        if happened.is_empty() {
            fate.now = fate.now.max(until);
        } else {
            self.idle = 0;
        }
        for happening in &happened {
            match happening {
                Happening::Output { job, bytes, .. } => {
                    fate.event(format_args!(
                        "job {job} writes {}",
                        String::from_utf8_lossy(bytes).trim_end()
                    ));
                }
                happening => fate.event(format_args!("{happening:?}")),
            }
        }
        happened
    }

    fn pause(&mut self, until: Timestamp) -> u32 {
        self.shared.call();
        let mut fate = self.shared.lock();
        // Whatever is due meanwhile waits until somebody reads it.
        fate.now = fate.now.max(until);
        self.interrupts
    }

    fn start(&mut self, job: JobId, launch: &JobLaunch) -> Result<String, StartFailure> {
        self.shared.call();
        let (now, fails, twice) = {
            let mut fate = self.shared.lock();
            let fails = fate.faults && fate.rng.below(200) == 0;
            (fate.now, fails, fate.bug == Some(Bug::StartedTwice) && fate.rng.chance(20))
        };
        if fails {
            self.shared.note(format_args!("job {job} cannot be started"));
            return Err(StartFailure { what: "no such program".to_owned() });
        }
        let mut identity = String::new();
        for _ in 0..=usize::from(twice) {
            self.started += 1;
            let id = self.started;
            let script = SimScript::of(&mut self.shared.lock().rng, now, launch, self.calm);
            let variable = |name: &str| {
                let found = launch.variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            identity = format!("process {id}");
            let process = Process {
                coordinator: self.coordinator,
                job,
                identity: identity.clone(),
                is_agent: matches!(launch.what, Program::Agent { .. }),
                directory: launch.directory.clone(),
                task: variable("ALDIS_TASK"),
                role: variable("ALDIS_ROLE"),
                script,
                suspended: false,
                held_up: false,
                plan: 0,
                exit: None,
            };
            self.shared.note(format_args!(
                "job {job} starts: {} {} in {}",
                process.role,
                process.task,
                Path::new(&process.directory).display()
            ));
            let checked = self.oracle.start(&self.engine, &self.run, &process, &self.processes);
            if let Err((invariant, detail)) = checked {
                self.shared.stop(invariant, detail);
            }
            self.processes.insert(id, process);
            self.go_on(id);
        }
        Ok(identity)
    }

    fn control(&mut self, job: JobId, control: Control) {
        self.shared.call();
        self.shared.note(format_args!("job {job}: {control:?}"));
        let ids: Vec<u64> = {
            let own = |it: &Process| it.coordinator == self.coordinator && it.job == job;
            self.processes.iter().filter(|(_, it)| own(it)).map(|(id, _)| *id).collect()
        };
        for id in ids {
            let soon = self.shared.lock().rng.below(2_000) as u64;
            let Some(process) = self.processes.get_mut(&id) else { continue };
            match control {
                Control::Suspend => process.suspended = true,
                Control::Resume => {
                    process.suspended = false;
                    if std::mem::take(&mut process.held_up) {
                        self.go_on(id);
                    }
                }
                Control::Interrupt if process.script.stubborn || process.suspended => {}
                Control::Interrupt => self.doom(id, soon, Exit { code: Some(130), signal: None }),
                Control::End(within) => {
                    let within = u64::try_from(within.as_millis()).unwrap_or(0);
                    let after = if process.script.stubborn { within } else { within.min(soon) };
                    self.doom(id, after, Exit { code: None, signal: Some(9) });
                }
            }
        }
    }

    fn ask(&mut self, ticket: Ticket, request: RepositoryRequest) {
        self.shared.call();
        let answer = self.answer(&request);
        let (now, takes) = {
            let mut fate = self.shared.lock();
            let takes = match fate.rng.below(100) {
                0 if !self.calm => fate.rng.between(10_000, 60_000),
                1..10 => fate.rng.between(500, 5_000),
                _ => fate.rng.below(200),
            };
            (fate.now, takes as u64)
        };
        // One after the other.
        let from = self.repository_free.max(now);
        self.repository_free = from.after(Duration::from_millis(takes));
        let after = u64::try_from(self.repository_free.since(now).as_millis()).unwrap_or(0);
        self.schedule(after, Due::Answer(self.coordinator, ticket, answer));
    }

    fn end_leftover(&mut self, leftover: &Leftover) {
        self.shared.call();
        self.shared.note(format_args!("{leftover:?} is ended"));
        if self.shared.lock().bug == Some(Bug::LeftoverNotEnded) {
            return;
        }
        self.processes.retain(|_, process| match leftover {
            Leftover::Identity(identity) => process.identity != *identity,
            Leftover::Unknown(_) => false,
        });
    }

    fn notify(&mut self, notice: &TerminalNotice) -> bool {
        self.shared.call();
        let mut fate = self.shared.lock();
        fate.note(format_args!("notice {}", notice.id));
        fate.notices.insert(notice.id.clone(), true);
        drop(fate);
        let stored = self.engine.store().effect(&notice.id);
        if !matches!(stored, Ok(Some(_))) {
            self.shared.stop("nothing_is_done_that_is_not_stored", notice.id.clone());
        }
        true
    }

    fn warn(&mut self, what: &str) {
        self.shared.call();
        self.shared.note(format_args!("warning: {what}"));
    }

    fn prompt(&mut self, question: Option<&str>) {
        self.shared.call();
        let types = question.is_some() && !self.typing && self.shared.lock().rng.chance(5);
        if types {
            self.typing = true;
            let after = self.shared.lock().rng.below(20_000) as u64;
            self.schedule(after, Due::Typed(self.coordinator));
        }
    }
}
