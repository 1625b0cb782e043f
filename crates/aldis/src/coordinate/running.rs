//! Supervises one agent for the `run` machine: performs its effects, and tells it what happens.
//!
//! The machine decides and the store remembers; this is only hands and ears. Other processes may
//! decide about the same run (`aldis pause`, `abort`, `answer`): their steps are noticed in the
//! store, and their effects are performed here like our own.

mod hands;
mod live;
mod person;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use aldis_machine::run::{Effect, Ending, Event, Exit, Notice, RunSignal, State, Usage, WorkTree};
use aldis_signal::time::Timestamp;
use aldis_signal::{Finding, Origin, Role, Rules};
use aldis_store::{EffectFilter, Lease, Store};
use aldis_transcript::facts::{Fact, Zone};

use self::hands::Job;
use self::live::Standing;
pub(crate) use self::live::{Live, Manner};
pub(crate) use self::taking::forget_hands;
use crate::agents::ear::{Ear, Said};
use crate::agents::git::Git;
use crate::agents::logbook::Logbook;
use crate::agents::recipe::Recipe;
use crate::coordinate::person::Person;
use crate::coordinate::taking;
use crate::engine::driver::DriverError;
use crate::engine::journal::Open;
use crate::error::CommandError;
use crate::notify::{Message, Notices};
use crate::settings::clock::{self, SteadyClock};
use crate::settings::config::Notify;
use aldis_process::{Interrupts, Output};

/// How long to wait for something to happen, and how often others are looked for.
const PAUSE: Duration = Duration::from_millis(200);
/// How often it is looked whether we were asked to stop, at most, while an agent writes much.
const ASKED: Duration = Duration::from_millis(5);
/// How often the machine is told that time passes.
const TICK: Duration = Duration::from_secs(1);
/// How often the work tree is looked at while the agent works.
const LOOK: Duration = Duration::from_secs(10);
/// How many near misses are told apart from those that come again.
const HINTS_MAX: usize = 64;
/// How often the lease is renewed.
const RENEW: Duration = Duration::from_secs(10);

/// What to run, and how.
#[derive(Debug)]
pub(crate) struct Plan {
    /// How the agent is started.
    pub(crate) recipe: Recipe,
    /// The check of a claim, for a shell.
    pub(crate) verify: Option<String>,
    /// Who is told of notices.
    pub(crate) notify: Notify,
    /// Where it works.
    pub(crate) directory: PathBuf,
    /// What it speaks.
    pub(crate) rules: Rules,
    /// The zone of clock times that name none.
    pub(crate) zone: Zone,
    /// Whether a person at the terminal may be asked.
    pub(crate) ask_here: bool,
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
    notices: Notices,
    log: Logbook,
    person: Person,
    job: Option<Job<'p>>,
    /// When the job must have ended.
    deadline: Option<Duration>,
    /// Near misses of this agent that the machine knows of.
    hints: HashSet<String>,
    /// That it worked, and what it cost: many tools at once are as much evidence as one, and costs
    /// are totals, so the machine hears of them when there is something else to tell, or soon.
    untold: [Option<Event>; 2],
    /// Whether something may have been decided that was not done yet.
    due: bool,
    rounds: Rounds,
}

/// When what is done again and again was done last.
#[derive(Debug, Default)]
struct Rounds {
    asked: Duration,
    others: Duration,
    tick: Duration,
    look: Duration,
    renewal: Duration,
}

/// Whether it is time again; then it counts as done now.
fn again(last: &mut Duration, every: Duration, boot: Duration) -> bool {
    let due = boot.saturating_sub(*last) >= every;
    if due {
        *last = boot;
    }
    due
}

impl<'p> Supervisor<'p> {
    /// Takes a run over, and ends what a dead supervisor left of its agent.
    ///
    /// # Errors
    ///
    /// Fails if somebody else supervises it, or the system lacks something.
    pub(crate) fn new(
        plan: &'p Plan,
        store: &'p dyn Store,
        mut open: Open<State>,
        (live, log): (Live, Logbook),
    ) -> Result<Self, CommandError> {
        let notices = Notices::new(&plan.notify, &plan.directory)?;
        let clock = SteadyClock::start();
        let lease = taking::lease(store, &open.id, clock.now())?;
        open.fence = Some(lease.fence);
        open.state.agent.iter().for_each(|agent| taking::end_orphan(agent));
        taking::end_unknown(&open.id);
        forget_hands(store, &open.id, open.fence)?;
        let interrupts = Interrupts::listen()
            .map_err(|error| CommandError::new(format!("listening for Ctrl-C: {error}")))?;
        let person = if plan.ask_here { Person::look() } else { Person::absent() };
        let rounds = Rounds { renewal: clock::since_boot(), ..Rounds::default() };
        let git = Git::around(&plan.directory);
        let (job, deadline, due) = (None, None, true);
        Ok(Self {
            plan,
            store,
            open,
            lease,
            interrupts,
            clock,
            git,
            live,
            notices,
            log,
            person,
            job,
            deadline,
            hints: HashSet::new(),
            untold: [None, None],
            due,
            rounds,
        })
    }

    /// Supervises until the run ends.
    ///
    /// # Errors
    ///
    /// Fails if the store does or the agent cannot be started. The run can be continued.
    pub(crate) fn drive(mut self, first: Event) -> Result<Ending, CommandError> {
        let program = self.plan.recipe.command.first().cloned().unwrap_or_default();
        let verify = self.plan.verify.as_deref();
        self.live.begin(&self.open.id, &self.open.state, &program.to_string_lossy(), verify);
        self.advance(first)?;
        loop {
            self.perform()?;
            if let Some(ending) = self.open.state.ending() {
                let (now, log) = (self.now(), self.log.path());
                for problem in self.notices.finish() {
                    self.live.problem(now, &problem);
                }
                self.live.ended(now, &self.open.state, ending, log.as_deref());
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
        let before = Standing::of(&self.open.state);
        self.due |= self.open.advance(self.store, now, event)?;
        self.live.changed(now, &before, &self.open.state);
        Ok(())
    }

    /// Performs what was decided, by us or by others, in order.
    fn perform(&mut self) -> Result<(), CommandError> {
        while std::mem::take(&mut self.due) {
            let run = Some(self.open.id.clone());
            let filter = EffectFilter { run, limit: 1, ..EffectFilter::due_by(self.now()) };
            let Some(effect) = self.store.pending_effects(&filter)?.into_iter().next() else {
                return Ok(());
            };
            let Ok(wanted) = serde_json::from_str::<Effect>(&effect.body) else {
                taking::give_up(self.store, &self.lease, &effect.key, self.now())?;
                self.due = true;
                continue;
            };
            let next = self.act(&effect.key, wanted)?;
            self.store
                .effects_done(&self.open.id, self.open.fence, std::slice::from_ref(&effect.key))
                .map_err(DriverError::from_commit)?;
            self.due = true;
            if let Some(event) = next {
                self.advance(event)?;
            }
        }
        Ok(())
    }

    /// Does one thing. Returns what is known right away.
    fn act(&mut self, key: &str, effect: Effect) -> Result<Option<Event>, CommandError> {
        match effect {
            // Somebody may have ended the run since this was decided.
            Effect::Start { prompt, .. } => {
                self.heed_others()?;
                return match self.open.state.ending() {
                    Some(_) => Ok(None),
                    None => self.start_agent(&prompt).map(Some),
                };
            }
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
            Effect::Ask { id, text } => self.live.question(self.now(), &id, &text),
            Effect::KeepWork { base } => self.keep_work(base.as_deref()),
            Effect::Notice { notice, text } => {
                self.notify(key, notice, text);
            }
            Effect::Finish { .. } => {}
        }
        Ok(None)
    }

    /// Tells everybody who wants to know. `key` names the effect, also when it is done again.
    fn notify(&mut self, key: &str, notice: Notice, text: String) {
        let at = self.now();
        if self.notices.ring(notice.into()) {
            self.live.notice(at, notice, &text);
        }
        let (id, run) = (key.replace('/', "-"), self.open.id.to_string());
        let project = self.plan.directory.file_name().unwrap_or_default();
        let project = project.to_string_lossy().into_owned();
        self.notices.tell(&Message { id, at, run, project, kind: notice.into(), text });
    }

    fn start_agent(&mut self, prompt: &str) -> Result<Event, CommandError> {
        let (shown, plan) = (self.live.shows_words(), self.plan);
        let ear = Ear::new(&plan.rules, plan.recipe.input, plan.zone.clone(), shown);
        let job = Job::agent(self.plan, prompt, taking::mark(&self.open.id), ear);
        let job = match job {
            Ok(job) => job,
            Err(error) => {
                let what = error.to_string();
                self.live.problem(self.now(), &what);
                return Ok(Event::LaunchFailed { what });
            }
        };
        let agent = serde_json::to_string(job.agent.identity()).unwrap_or_default();
        self.job = Some(job);
        self.deadline = None;
        self.hints.clear();
        Ok(Event::Launched { agent })
    }

    fn start_check(&mut self) -> Result<Option<Event>, CommandError> {
        let Some(verify) = &self.plan.verify else {
            return Ok(Some(Event::Checked { passed: true, output: String::new() }));
        };
        self.live.checking(self.now(), verify);
        match Job::check(self.plan, verify, taking::mark(&self.open.id)) {
            Ok(job) => {
                self.job = Some(job);
                let most = Duration::from_secs(self.open.state.config.iteration_timeout);
                self.deadline = Some(clock::since_boot().saturating_add(most));
                Ok(None)
            }
            Err(error) => Ok(Some(Event::Checked { passed: false, output: error.to_string() })),
        }
    }

    fn look(&self) -> WorkTree {
        match self.git.as_ref().map(Git::look) {
            None => WorkTree::default(),
            Some(Ok(tree)) => tree,
            Some(Err(error)) => WorkTree { error: Some(error.to_string()), ..WorkTree::default() },
        }
    }

    fn keep_work(&mut self, base: Option<&str>) {
        let Some(git) = &self.git else { return };
        if base.is_some() && self.look().fingerprint.as_deref() == base {
            return;
        }
        let now = self.now();
        let message = format!("Partial work of run {}", self.open.id);
        match git.keep_work(self.open.id.as_str(), &message) {
            Ok(Some(branch)) => self.live.kept(now, &branch),
            Ok(None) => {}
            Err(error) => {
                self.live.problem(now, &format!("the partial work was not kept: {error}"));
            }
        }
    }

    /// Waits for what the agent or the check does next.
    fn listen(&mut self) -> Result<(), CommandError> {
        let Some(job) = &mut self.job else {
            std::thread::sleep(PAUSE);
            return Ok(());
        };
        let now = self.clock.now();
        let mut said = Vec::new();
        match job.agent.next(PAUSE) {
            None => self.log.flush(),
            Some(Output::Stdout(bytes)) => {
                self.log.write(&bytes);
                job.hear(&bytes, now, &mut said);
                job.agent.recycle(bytes);
            }
            Some(Output::Stderr(bytes)) => {
                self.log.write(&bytes);
                job.overhear(&bytes, now);
                self.live.aside(&bytes);
                job.agent.recycle(bytes);
            }
            Some(Output::Closed) => job.closed = true,
            Some(Output::Exited(exit)) => {
                job.exit = Some(Exit { code: exit.code, signal: exit.signal });
            }
            Some(Output::Stopped) => self.live.problem(now, "the agent has stopped itself"),
        }
        let over = job.closed && job.exit.is_some();
        self.tell(said)?;
        if over { self.end_job(Duration::ZERO) } else { Ok(()) }
    }

    /// Tells the machine what was said.
    fn tell(&mut self, said: Vec<Said>) -> Result<(), CommandError> {
        let mut signals = Vec::new();
        for said in said {
            match said {
                Said::Finding { finding, message } => match *finding {
                    Finding::Signal(signal) => signals.push(RunSignal::new(&signal, message)),
                    Finding::NearMiss(miss) => self.miss(miss.hint())?,
                },
                Said::Fact(fact) => match self.note(fact) {
                    None => {}
                    Some(worked @ Event::Activity) => self.untold[0] = Some(worked),
                    Some(spent @ Event::Spent(_)) => self.untold[1] = Some(spent),
                    Some(event) => self.advance_after_untold(event)?,
                },
                Said::Text { origin, text, .. } => self.live.said(&origin, &text),
            }
        }
        if signals.is_empty() {
            return Ok(());
        }
        self.advance_after_untold(Event::Reported { signals })
    }

    fn advance_after_untold(&mut self, event: Event) -> Result<(), CommandError> {
        self.tell_untold()?;
        self.advance(event)
    }

    fn tell_untold(&mut self) -> Result<(), CommandError> {
        let untold = std::mem::take(&mut self.untold);
        untold.into_iter().flatten().try_for_each(|event| self.advance(event))
    }

    /// Tells the machine of a near miss: once of each, however often an agent repeats it.
    fn miss(&mut self, hint: String) -> Result<(), CommandError> {
        if self.hints.contains(&hint) {
            return Ok(());
        }
        if self.hints.len() < HINTS_MAX {
            self.hints.insert(hint.clone());
        }
        self.advance(Event::NearMiss { hint })
    }

    /// Shows what the host said about itself, and returns what it means for the machine.
    fn note(&mut self, fact: Fact) -> Option<Event> {
        Some(match fact {
            Fact::Tool { name } => {
                if self.live.shows_words() {
                    self.live.said(&Origin::new(Role::Tool), &format!("[{name}]"));
                }
                Event::Activity
            }
            Fact::Spent { tokens, micro_dollars } => Event::Spent(Usage { tokens, micro_dollars }),
            Fact::Retrying { what, .. } => {
                self.live.host(self.clock.now(), &format!("the host tries again: {what}"));
                Event::Retrying { what }
            }
            Fact::Limited { what, until } => Event::Limited { what, until },
            Fact::Failed { what } => {
                self.live.problem(self.clock.now(), &what);
                Event::HostFailed { what }
            }
            Fact::Session(_) | Fact::Ended { .. } => return None,
        })
    }

    /// Ends the job with all that belongs to it, and tells the machine how it ended.
    fn end_job(&mut self, grace: Duration) -> Result<(), CommandError> {
        let Some(job) = self.job.take() else { return Ok(()) };
        self.deadline = None;
        let (said, over) = job.end(grace, self.clock.now(), &mut self.log);
        self.tell(said)?;
        if let Event::Checked { passed, .. } = &over {
            self.live.checked(self.clock.now(), *passed);
        }
        self.advance_after_untold(over)
    }

    /// Minds the time, the user, the store and the lease.
    fn attend(&mut self) -> Result<(), CommandError> {
        let boot = clock::since_boot();
        if again(&mut self.rounds.asked, ASKED, boot) {
            let asked = self.interrupts.take();
            if asked.interrupt + asked.terminate > 0 {
                self.interrupted()?;
            }
        }
        if self.deadline.is_some_and(|deadline| boot >= deadline) {
            self.end_job(Duration::from_secs(1))?;
        }
        for problem in self.notices.problems() {
            self.live.problem(self.clock.now(), &problem);
        }
        if again(&mut self.rounds.others, PAUSE, boot) {
            self.tell_untold()?;
            self.heed_others()?;
        }
        if again(&mut self.rounds.renewal, RENEW, boot) {
            let now = self.now();
            self.lease = self.store.renew_lease(&self.lease, now, taking::LEASE)?;
            self.due |= self.open.keep(self.store, now)?;
        }
        if self.job.is_some() && again(&mut self.rounds.look, LOOK, boot) {
            let tree = self.look();
            self.advance(Event::Looked(tree))?;
        }
        if again(&mut self.rounds.tick, TICK, boot) {
            self.advance(Event::Tick)?;
            self.live.draw(self.now(), &self.open.state);
        }
        Ok(())
    }

    /// Notices what the person at the terminal and other processes want.
    fn heed_others(&mut self) -> Result<(), CommandError> {
        let state = &self.open.state;
        let line = self.person.attend(person::wanted(state));
        if let Some(event) = line.and_then(|line| person::understood(state, &line)) {
            self.advance(event)?;
        }
        let stored = self.store.run(&self.open.id)?;
        if stored.is_some_and(|run| run.revision != self.open.revision) {
            let (now, before) = (self.now(), Standing::of(&self.open.state));
            self.open.refresh(self.store, now)?;
            self.due = true;
            self.live.changed(now, &before, &self.open.state);
        }
        Ok(())
    }
}
