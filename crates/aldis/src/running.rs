//! Supervises one agent for the `run` machine: performs its effects, and tells it what happens.
//!
//! The machine decides and the store remembers; this is only hands and ears. Other processes may
//! decide about the same run (`aldis pause`, `abort`, `answer`): their steps are noticed in the
//! store, and their effects are performed here like our own.

mod ear;
mod hands;
mod live;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use aldis_core::machine::run::{Effect, Ending, Event, Exit, Heard, State};
use aldis_core::time::Timestamp;
use aldis_core::transcript::Input;
use aldis_core::{Finding, Rules};
use aldis_store::{EffectFilter, Lease, Store};
use serde::{Deserialize, Serialize};

use self::ear::{Ear, Said};
use self::hands::{Job, Work};
pub(crate) use self::live::Live;
use crate::clock::{self, SteadyClock};
use crate::config::Notify;
use crate::error::CommandError;
use crate::git::Git;
use crate::journal::Open;
use crate::supervise::{Interrupts, Output};

/// How long to wait for something to happen.
const PAUSE: Duration = Duration::from_millis(200);
/// How often the machine is told that time passes.
const TICK: Duration = Duration::from_secs(1);
/// How often the work tree is looked at while the agent works.
const LOOK: Duration = Duration::from_secs(10);
/// How long a lease lasts, and how often it is renewed.
const LEASE: Duration = Duration::from_secs(30);
const RENEW: Duration = Duration::from_secs(10);

/// What to run, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The agent's program and arguments.
    pub(crate) command: Vec<OsString>,
    /// How it gets its prompt.
    pub(crate) prompt: PromptBy,
    /// The check of a claim, for a shell.
    pub(crate) verify: Option<String>,
    /// Who is told of notices.
    pub(crate) notify: Notify,
    /// Whether the agent runs on a terminal.
    pub(crate) pty: bool,
    /// Where it works.
    pub(crate) directory: PathBuf,
    /// What it speaks.
    pub(crate) rules: Rules,
    /// What kind of output it writes.
    pub(crate) input: Input,
}

/// How an agent gets its prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PromptBy {
    /// As the last argument
    Argument,
    /// In a file whose name is the last argument
    File,
    /// On standard input
    Stdin,
}

/// A run being supervised.
pub(crate) struct Supervisor<'p> {
    plan: &'p Plan,
    store: &'p dyn Store,
    open: Open<State>,
    lease: Lease,
    interrupts: Interrupts,
    clock: SteadyClock,
    git: Option<Git>,
    live: Live,
    job: Option<Job<'p>>,
    /// When the job must have ended.
    deadline: Option<Duration>,
    last_tick: Duration,
    last_look: Duration,
    last_renewal: Duration,
}

impl<'p> Supervisor<'p> {
    /// Takes a run over.
    ///
    /// # Errors
    ///
    /// Fails if somebody else supervises it, or the system lacks something.
    pub(crate) fn new(
        plan: &'p Plan,
        store: &'p dyn Store,
        mut open: Open<State>,
        live: Live,
    ) -> Result<Self, CommandError> {
        let clock = SteadyClock::start();
        let holder = format!("process {}", std::process::id());
        let lease = store.acquire_lease(&open.id, &holder, clock.now(), LEASE);
        let lease = lease.map_err(|error| {
            CommandError::new(format!("run {}: {error}", open.id))
                .with_help("only one process can supervise a run")
        })?;
        open.fence = Some(lease.fence);
        let interrupts = Interrupts::listen()
            .map_err(|error| CommandError::new(format!("listening for Ctrl-C: {error}")))?;
        Ok(Self {
            git: Git::around(&plan.directory),
            plan,
            store,
            open,
            lease,
            interrupts,
            clock,
            live,
            job: None,
            deadline: None,
            last_tick: Duration::ZERO,
            last_look: Duration::ZERO,
            last_renewal: clock::since_boot(),
        })
    }

    /// Supervises until the run ends.
    ///
    /// # Errors
    ///
    /// Fails if the store does or the agent cannot be started. The run can be continued.
    pub(crate) fn drive(mut self, first: Event) -> Result<Ending, CommandError> {
        self.advance(first)?;
        loop {
            self.perform()?;
            if let Some(ending) = self.open.state.ending() {
                self.live.ended(&self.open.id, ending);
                // Whoever comes next need not wait for the lease to run out.
                let _released = self.store.release_lease(&self.lease);
                return Ok(ending);
            }
            self.listen()?;
            self.attend()?;
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&mut self, event: Event) -> Result<(), CommandError> {
        let now = self.now();
        let before = self.open.state.clone();
        self.open.advance(self.store, now, event)?;
        self.live.changed(now, &before, &self.open.state);
        Ok(())
    }

    /// Performs what was decided, by us or by others, in order.
    fn perform(&mut self) -> Result<(), CommandError> {
        loop {
            let filter =
                EffectFilter { run: Some(self.open.id.clone()), due_by: self.now(), limit: 1 };
            let Some(effect) = self.store.pending_effects(&filter)?.into_iter().next() else {
                return Ok(());
            };
            let Ok(wanted) = serde_json::from_str::<Effect>(&effect.body) else {
                self.store.effect_failed(&effect.key, None, "not understood")?;
                continue;
            };
            let next = self.act(wanted)?;
            self.store.effect_done(&effect.key)?;
            if let Some(event) = next {
                self.advance(event)?;
            }
        }
    }

    /// Does one thing. Returns what is known right away.
    fn act(&mut self, effect: Effect) -> Result<Option<Event>, CommandError> {
        match effect {
            Effect::Start { prompt, .. } => return self.start_agent(&prompt).map(Some),
            Effect::Check => return self.start_check(),
            Effect::End { grace } => {
                if let Some(job) = &self.job {
                    job.agent.interrupt();
                    let grace = Duration::from_secs(grace);
                    self.deadline = Some(clock::since_boot().saturating_add(grace));
                }
            }
            Effect::Suspend => self.job.iter().for_each(|job| job.agent.suspend()),
            Effect::Continue => self.job.iter().for_each(|job| job.agent.resume()),
            Effect::Look => return Ok(Some(Event::Looked(self.look()))),
            Effect::Ask { id, text } => self.live.question(&id, &text),
            Effect::KeepWork => self.keep_work(),
            Effect::Notice { notice, text } => {
                self.live.notice(notice, &text);
                hands::notify(self.plan, &self.open.id, notice, &text);
            }
            Effect::Finish { .. } => {}
        }
        Ok(None)
    }

    fn start_agent(&mut self, prompt: &str) -> Result<Event, CommandError> {
        let ear = Ear::new(&self.plan.rules, self.plan.input);
        let job = Job::agent(self.plan, prompt, ear);
        let job = match job {
            Ok(job) => job,
            Err(error) => {
                // The run ends as crashed; the words are for the one who waits.
                self.live.problem(&error.to_string());
                return Ok(Event::Exited(Exit { code: Some(127), signal: None }));
            }
        };
        let agent = serde_json::to_string(job.agent.identity()).unwrap_or_default();
        self.job = Some(job);
        self.deadline = None;
        Ok(Event::Launched { agent })
    }

    fn start_check(&mut self) -> Result<Option<Event>, CommandError> {
        let Some(verify) = &self.plan.verify else {
            return Ok(Some(Event::Checked { passed: true, output: String::new() }));
        };
        self.live.checking(verify);
        match Job::check(self.plan, verify) {
            Ok(job) => {
                self.job = Some(job);
                let most = Duration::from_secs(self.open.state.config.iteration_timeout);
                self.deadline = Some(clock::since_boot().saturating_add(most));
                Ok(None)
            }
            Err(error) => Ok(Some(Event::Checked { passed: false, output: error.to_string() })),
        }
    }

    fn look(&self) -> aldis_core::machine::run::Tree {
        let looked = self.git.as_ref().map(Git::look);
        looked.and_then(Result::ok).unwrap_or_default()
    }

    fn keep_work(&mut self) {
        let Some(git) = &self.git else { return };
        let message = format!("Partial work of run {}", self.open.id);
        match git.keep_work(self.open.id.as_str(), &message) {
            Ok(Some(branch)) => self.live.kept(&branch),
            Ok(None) => {}
            Err(error) => self.live.problem(&format!("the partial work was not kept: {error}")),
        }
    }

    /// Waits for what the agent or the check does next.
    fn listen(&mut self) -> Result<(), CommandError> {
        let Some(job) = &mut self.job else {
            std::thread::sleep(PAUSE);
            return Ok(());
        };
        let mut said = Vec::new();
        match job.agent.next(PAUSE) {
            None => {}
            Some(Output::Stdout(bytes)) => job.hear(&bytes, &mut said),
            Some(Output::Stderr(bytes)) => {
                job.overhear(&bytes);
                self.live.aside(&bytes);
            }
            Some(Output::Closed) => job.closed = true,
            Some(Output::Exited(exit)) => {
                job.exit = Some(Exit { code: exit.code, signal: exit.signal });
            }
            Some(Output::Stopped) => self.live.problem("the agent has stopped itself"),
        }
        let over = job.closed && job.exit.is_some();
        self.tell(said)?;
        if over { self.end_job(Duration::ZERO) } else { Ok(()) }
    }

    /// Tells the machine what was said.
    fn tell(&mut self, said: Vec<Work>) -> Result<(), CommandError> {
        let mut signals = Vec::new();
        for work in said {
            match work {
                Work::Said(Said::Finding { finding, message }) => match *finding {
                    Finding::Signal(signal) => signals.push(Heard::new(&signal, message)),
                    Finding::NearMiss(miss) => self.advance(Event::Missed { hint: miss.hint() })?,
                },
                Work::Said(Said::Text { origin, text }) => self.live.said(&origin, &text),
            }
        }
        if signals.is_empty() { Ok(()) } else { self.advance(Event::Heard { said: signals }) }
    }

    /// Ends the job with all that belongs to it, and tells the machine how it ended.
    fn end_job(&mut self, grace: Duration) -> Result<(), CommandError> {
        let Some(job) = self.job.take() else { return Ok(()) };
        self.deadline = None;
        let (said, over) = job.end(grace);
        self.tell(said)?;
        self.advance(over)
    }

    /// Minds the time, the user, the store and the lease.
    fn attend(&mut self) -> Result<(), CommandError> {
        let boot = clock::since_boot();
        let asked = self.interrupts.take();
        if asked.interrupt + asked.terminate > 0 {
            self.interrupted()?;
        }
        if self.deadline.is_some_and(|deadline| boot >= deadline) {
            self.end_job(Duration::from_secs(1))?;
        }
        if boot.saturating_sub(self.last_renewal) >= RENEW {
            self.renew()?;
        }
        let stored = self.store.run(&self.open.id)?;
        if stored.is_some_and(|run| run.revision != self.open.revision) {
            let before = self.open.state.clone();
            self.open.catch_up(self.store)?;
            self.live.changed(self.now(), &before, &self.open.state);
        }
        if self.job.is_some() && boot.saturating_sub(self.last_look) >= LOOK {
            self.last_look = boot;
            let tree = self.look();
            self.advance(Event::Looked(tree))?;
        }
        if boot.saturating_sub(self.last_tick) >= TICK {
            self.last_tick = boot;
            self.advance(Event::Tick)?;
        }
        Ok(())
    }

    /// The first time the agent is asked to stop; the second time it is ended.
    fn interrupted(&mut self) -> Result<(), CommandError> {
        if self.deadline.is_some() {
            return self.end_job(Duration::ZERO);
        }
        self.advance(Event::Abort { by: "Ctrl-C".to_owned() })
    }

    fn renew(&mut self) -> Result<(), CommandError> {
        self.last_renewal = clock::since_boot();
        let renewed = self.store.renew_lease(&self.lease, self.now(), LEASE);
        self.lease = renewed.map_err(|error| {
            CommandError::new(format!("run {}: {error}", self.open.id))
                .with_help("another process has taken the run over")
        })?;
        Ok(())
    }
}
