//! Delivers a plan: performs what the delivery machine wants, and tells it what agents do.
//!
//! The machine decides and the store remembers; this is only hands and ears, for several agents at
//! once. Other processes may decide about the same delivery (`aldis answer`, `pause`, `abort`): their
//! steps are noticed in the store, and their effects are performed here like our own.

pub(crate) mod book;
mod live;
pub(crate) mod places;
mod watching;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use aldis_machine::delivery::{Dispatch, Effect, Ending, Event, Notice, Role, Said};
use aldis_machine::run::{Exit, Usage};
use aldis_signal::Rules;
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::{EffectFilter, Lease, Store};
use aldis_transcript::facts::Zone;

use self::book::{Book, Session};
pub(crate) use self::live::{Board, row, tally};
use self::places::Places;
use self::watching::Watch;
use self::worker::{Ended, Last, Worker};
use crate::agents::ear::Ear;
use crate::agents::logbook::Logbook;
use crate::agents::recipe::Recipe;
use crate::coordinate::person::Person;
use crate::coordinate::taking;
use crate::error::CommandError;
use crate::notify::{Kind, Message, Notices};
use crate::settings::clock::{self, SteadyClock};
use crate::settings::config::Notify;
use aldis_process::Interrupts;

/// How long to wait when no agent has anything to say.
const PAUSE: Duration = Duration::from_millis(20);
/// How often others are looked for.
const OTHERS: Duration = Duration::from_millis(200);
/// How often the tasks are drawn.
const DRAW: Duration = Duration::from_millis(500);
/// How often the lease is renewed.
const RENEW: Duration = Duration::from_secs(10);
/// How long an agent has to stop by itself.
const GRACE: Duration = Duration::from_secs(5);
/// How many effects are looked at in one go.
const EFFECTS: usize = 64;

/// How to deliver.
#[derive(Debug)]
pub(crate) struct Plan {
    /// How the agents of some roles are started, and what is said before their prompts.
    pub(crate) roles: BTreeMap<Role, (Recipe, String)>,
    /// How all others are.
    pub(crate) recipe: Recipe,
    /// Where the project is, and where our own state is.
    pub(crate) project: PathBuf,
    pub(crate) state: PathBuf,
    /// What agents speak.
    pub(crate) rules: Rules,
    /// The zone of clock times that name none.
    pub(crate) zone: Zone,
    /// Who is told of notices.
    pub(crate) notify: Notify,
    /// Whether a person at the terminal may be asked.
    pub(crate) ask_here: bool,
    /// Whether to end instead of waiting for a human.
    pub(crate) no_wait: bool,
    /// How long to wait for a service that does not say when it will work again.
    pub(crate) limit_wait: Duration,
    /// For the demonstration: the answer that every question gets after a moment.
    pub(crate) answer: Option<(Duration, String)>,
}

impl Plan {
    /// How the agents of a role are started, and what is said before their prompts.
    fn of_role(&self, role: Role) -> (&Recipe, &str) {
        match self.roles.get(&role) {
            Some((recipe, preface)) => (recipe, preface),
            None => (&self.recipe, ""),
        }
    }
}

/// How a delivery went as far as this process took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It is over.
    Ended(Ending),
    /// It waits for a human, and this process does not.
    Waits,
}

/// A delivery being coordinated.
pub(crate) struct Delivery<'p> {
    plan: &'p Plan,
    store: &'p dyn Store,
    book: Book,
    lease: Lease,
    interrupts: Interrupts,
    clock: SteadyClock,
    board: Board,
    notices: Notices,
    person: Person,
    places: Places,
    workers: BTreeMap<u64, Worker<'p>>,
    /// Agents that wait for their service, and until when.
    limited: BTreeMap<u64, (Timestamp, Dispatch)>,
    watch: Watch,
    /// Whether something may have been decided that was not done yet.
    due: bool,
    others: Duration,
    drawn: Duration,
    renewed: Duration,
}

impl<'p> Delivery<'p> {
    /// Takes a delivery over, and ends what a dead coordinator left of its agents.
    ///
    /// # Errors
    ///
    /// Fails if somebody else coordinates it, or the system lacks something.
    pub(crate) fn new(
        plan: &'p Plan,
        store: &'p dyn Store,
        mut book: Book,
        board: Board,
    ) -> Result<Self, CommandError> {
        let notices = Notices::new(&plan.notify, &plan.project)?;
        let clock = SteadyClock::start();
        let lease = taking::lease(store, &book.id, clock.now())?;
        book.fence = Some(lease.fence);
        for (agent, identity) in book.processes.clone() {
            taking::end_orphan(&identity);
            book.note_gone(store, clock.now(), agent, None)?;
        }
        taking::end_unknown(&book.id);
        let interrupts = Interrupts::listen()
            .map_err(|error| CommandError::new(format!("listening for Ctrl-C: {error}")))?;
        let worktrees = book.state.run().config.worktrees;
        let places = Places::new(&plan.project, &plan.state, &book.id, worktrees)?;
        let person = if plan.ask_here { Person::look() } else { Person::absent() };
        Ok(Self {
            plan,
            store,
            book,
            lease,
            interrupts,
            clock,
            board,
            notices,
            person,
            places,
            workers: BTreeMap::new(),
            limited: BTreeMap::new(),
            watch: Watch::default(),
            due: true,
            others: Duration::ZERO,
            drawn: Duration::ZERO,
            renewed: clock::since_boot(),
        })
    }

    /// Coordinates until the delivery is over, or waits for a human and may not.
    ///
    /// # Errors
    ///
    /// Fails if the store does. The delivery can be continued.
    pub(crate) fn drive(mut self, first: &Event) -> Result<Delivered, CommandError> {
        self.board.begin(&self.book.id, &self.book.state);
        self.advance(first)?;
        loop {
            self.perform()?;
            if let Some(ending) = self.book.state.ending() {
                return self.leave(Delivered::Ended(ending));
            }
            if self.plan.no_wait && self.book.state.waits_for_human() && self.limited.is_empty() {
                return self.leave(Delivered::Waits);
            }
            self.listen()?;
            self.attend()?;
        }
    }

    fn leave(mut self, how: Delivered) -> Result<Delivered, CommandError> {
        self.book.flush(self.store)?;
        let now = self.now();
        for problem in self.notices.finish() {
            self.board.problem(now, &problem);
        }
        match how {
            Delivered::Ended(ending) => self.board.ended(now, &self.book.state, ending),
            Delivered::Waits => self.board.waits(now, &self.book.state),
        }
        // Whoever comes next need not wait for the lease to run out.
        let _released = self.store.release_lease(&self.lease);
        Ok(how)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn advance(&mut self, event: &Event) -> Result<(), CommandError> {
        let now = self.now();
        let outcome = self.book.advance(self.store, now, event)?;
        for noted in &outcome.decisions {
            self.board.decided(now, noted);
        }
        self.due |= !outcome.effects.is_empty();
        Ok(())
    }

    /// Performs what was decided, by us or by others, in order.
    fn perform(&mut self) -> Result<(), CommandError> {
        while std::mem::take(&mut self.due) {
            let run = Some(self.book.id.clone());
            let filter = EffectFilter { run, limit: EFFECTS, ..EffectFilter::due_by(self.now()) };
            let pending = self.store.pending_effects(&filter)?;
            for effect in pending {
                if self.book.was_performed(&effect.key) {
                    continue;
                }
                let Ok(wanted) = serde_json::from_str::<Effect>(&effect.body) else {
                    taking::give_up(self.store, &self.lease, &effect.key, self.now())?;
                    continue;
                };
                self.due = true;
                let next = self.act(&effect.key, wanted)?;
                self.book.performed(effect.key);
                if let Some(event) = next {
                    self.advance(&event)?;
                }
            }
            if self.due {
                self.book.flush(self.store)?;
            }
        }
        Ok(())
    }

    /// Does one thing. Returns what is known right away.
    fn act(&mut self, key: &str, effect: Effect) -> Result<Option<Event>, CommandError> {
        let now = self.now();
        match effect {
            Effect::Dispatch(dispatch) => return self.dispatch(dispatch),
            Effect::End { agent } => {
                self.limited.remove(&agent);
                if let Some(worker) = self.workers.remove(&agent) {
                    let usage = worker.end(GRACE, now).unspoken;
                    self.book.note_gone(self.store, now, agent, None)?;
                    return Ok((usage != Usage::default()).then_some(Event::Spent { agent, usage }));
                }
            }
            Effect::Ask { id, task, text, .. } => {
                self.board.question(now, &id, task.as_deref(), &text);
            }
            Effect::Merge { task } => {
                let merged = match self.number(&task) {
                    Some(no) => self.places.merge(no, &task),
                    None => Err("there is no such task".to_owned()),
                };
                let (ok, detail) = (merged.is_ok(), merged.err().unwrap_or_default());
                return Ok(Some(Event::Merged { task, ok, detail }));
            }
            Effect::CheckExpert { name, file } => {
                let present = self.places.has_file(&file);
                return Ok(Some(Event::ExpertChecked { name, present }));
            }
            // Asked only of agents that are no processes. The wake-up is in the state.
            Effect::Request { .. } | Effect::Wake { .. } | Effect::Finish { .. } => {}
            Effect::Notice { notice, task, text, .. } => {
                self.notify(key, notice, task.as_deref(), &text);
            }
        }
        Ok(None)
    }

    /// Tells everybody who wants to know. `key` names the effect, also when it is done again.
    fn notify(&mut self, key: &str, notice: Notice, task: Option<&str>, text: &str) {
        let Some(kind) = Kind::of_delivery(notice) else { return };
        let at = self.now();
        let text = match task {
            Some(task) if !text.starts_with(task) => format!("{task}: {text}"),
            _ => text.to_owned(),
        };
        if self.notices.ring(kind) {
            self.board.notice(at, kind, &text);
        }
        let (id, run) = (key.replace('/', "-"), self.book.id.to_string());
        let project = self.plan.project.file_name().unwrap_or_default();
        let project = project.to_string_lossy().into_owned();
        self.notices.tell(&Message { id, at, run, project, kind, text });
    }

    /// Starts an agent, unless the machine has given it up meanwhile.
    fn dispatch(&mut self, dispatch: Dispatch) -> Result<Option<Event>, CommandError> {
        let agent = dispatch.agent;
        if self.book.state.agent(agent).is_none() || self.workers.contains_key(&agent) {
            return Ok(None);
        }
        let task = dispatch.task.as_deref().and_then(|task| self.number(task));
        let (recipe, preface) = self.plan.of_role(dispatch.role);
        let prompt = format!("{preface}{}", dispatch.prompt);
        let variables = [
            ("ALDIS_RUN", self.book.id.as_str()),
            ("ALDIS_ROLE", dispatch.role.as_str()),
            ("ALDIS_TASK", dispatch.task.as_deref().unwrap_or_default()),
        ];
        let session = self.book.session(&dispatch);
        let resumed = session.and_then(|session| recipe.resuming(&session.name));
        let before = session.filter(|_| resumed.is_some()).map(|session| session.spent);
        let recipe = resumed.as_ref().unwrap_or(recipe);
        let started = match self.places.of_task(task) {
            Ok(directory) => recipe
                .start(&prompt, &directory, &variables, taking::mark(&self.book.id))
                .map(|started| (started, directory)),
            Err(error) => Err(CommandError::new(error.to_string())),
        };
        let started = match started {
            Ok(started) => started,
            Err(error) => {
                // Counted as a crash: the machine knows when that is enough.
                self.board.problem(self.now(), &error.to_string());
                let said = Said { preview: error.to_string(), ..Said::default() };
                let exit = Some(Exit { code: Some(127), signal: None });
                return Ok(Some(Event::Finished { agent, exit, said }));
            }
        };
        let ear = Ear::new(&self.plan.rules, recipe.input, self.plan.zone.clone(), true);
        let log = Logbook::of_agent(&self.plan.state, &self.book.id, agent);
        let ear = (ear, self.plan.zone.clone());
        let worker = Worker::new(dispatch, started, ear, log, before.unwrap_or_default());
        let identity = serde_json::to_string(worker.identity()).unwrap_or_default();
        self.workers.insert(agent, worker);
        self.book.note_process(self.store, self.now(), agent, identity)?;
        Ok(None)
    }

    /// Takes what agents wrote and how they ended; waits a moment if none did anything.
    fn listen(&mut self) -> Result<(), CommandError> {
        let now = self.now();
        let mut quiet = true;
        for worker in self.workers.values_mut() {
            quiet &= !worker.listen(now);
        }
        let over: Vec<u64> = self
            .workers
            .iter()
            .filter_map(|(agent, worker)| worker.is_over().then_some(*agent))
            .collect();
        for agent in over {
            self.collect(agent)?;
        }
        if quiet {
            std::thread::sleep(PAUSE);
        }
        self.tell_signs()
    }

    /// Takes an agent's last word.
    fn collect(&mut self, agent: u64) -> Result<(), CommandError> {
        let Some(worker) = self.workers.remove(&agent) else { return Ok(()) };
        let (now, dispatch) = (self.now(), worker.dispatch.clone());
        let token = self.book.state.expected_token(agent);
        let Last { ended, unspoken: usage, spent, session } = worker.end(Duration::ZERO, now);
        let session = session.map(|name| Session { agent, name, spent });
        match ended {
            Ended::Finished { exit, words, refused } => {
                let mut said = Said::read(&self.plan.rules, &token, &words);
                let mut exit = exit;
                if let Some(refused) = refused {
                    // Its host gave up: whatever it said before was not its last word.
                    let preview = redact(&refused).into_owned();
                    (said, exit) = (Said { preview, ..Said::default() }, CRASHED);
                }
                self.advance(&Event::Finished { agent, exit: Some(exit), said })?;
            }
            Ended::Limited { what, until } => {
                let until = until.filter(|until| *until > now);
                let until = until.unwrap_or_else(|| now.after(self.plan.limit_wait));
                self.board.problem(now, &format!("{what}; waits until {until}"));
                self.limited.insert(agent, (until, dispatch.clone()));
                self.advance(&Event::Limited { agent, until })?;
            }
        }
        let resumable = self.plan.of_role(dispatch.role).0.resume.is_some();
        let session = session.filter(|_| resumable).map(|session| (&dispatch, session));
        self.book.note_gone(self.store, now, agent, session)?;
        // After its verdict: what is done is done, whatever it has cost.
        self.advance(&Event::Spent { agent, usage })
    }

    /// Minds the time, the user, the store and the lease.
    fn attend(&mut self) -> Result<(), CommandError> {
        let (boot, now) = (clock::since_boot(), self.now());
        let asked = self.interrupts.take();
        if asked.interrupt + asked.terminate > 0 {
            self.advance(&Event::Abort { by: "Ctrl-C".to_owned() })?;
        }
        if self.book.state.run().wake.is_some_and(|wake| now >= wake) {
            self.advance(&Event::Tick)?;
        }
        self.wake_limited(now)?;
        self.answer_by_itself(now)?;
        for problem in self.notices.problems() {
            self.board.problem(now, &problem);
        }
        if boot.saturating_sub(self.others) >= OTHERS {
            self.others = boot;
            self.heed_others()?;
        }
        if boot.saturating_sub(self.renewed) >= RENEW {
            self.renewed = boot;
            self.lease = self.store.renew_lease(&self.lease, now, taking::LEASE)?;
        }
        if boot.saturating_sub(self.drawn) >= DRAW {
            self.drawn = boot;
            self.board.draw(now, &self.book.state, self.person.is_asked());
        }
        Ok(())
    }

    /// Starts the agents again whose service should work by now.
    fn wake_limited(&mut self, now: Timestamp) -> Result<(), CommandError> {
        let awake: Vec<u64> = self
            .limited
            .iter()
            .filter_map(|(agent, (until, _))| (now >= *until).then_some(*agent))
            .collect();
        for agent in awake {
            if let Some((_, dispatch)) = self.limited.remove(&agent)
                && let Some(event) = self.dispatch(dispatch)?
            {
                self.advance(&event)?;
            }
        }
        Ok(())
    }

    /// Notices what the person at the terminal and other processes want.
    fn heed_others(&mut self) -> Result<(), CommandError> {
        let question = self.book.state.run().questions.keys().next().cloned();
        let wanted = question.as_ref().map(|id| format!("answer {id}"));
        if let (Some(text), Some(id)) = (self.person.attend(wanted), question) {
            self.advance(&Event::Answer { id, text })?;
        }
        let stored = self.store.run(&self.book.id)?;
        if stored.is_some_and(|run| run.revision != self.book.revision) {
            self.book.catch_up(self.store)?;
            self.due = true;
        }
        Ok(())
    }

    fn answer_by_itself(&mut self, now: Timestamp) -> Result<(), CommandError> {
        let Some((after, text)) = &self.plan.answer else { return Ok(()) };
        let questions = &self.book.state.run().questions;
        let ripe = questions.iter().find(|(_, asked)| now.since(asked.asked_at) >= *after);
        let Some((id, _)) = ripe else { return Ok(()) };
        let event = Event::Answer { id: id.clone(), text: text.clone() };
        self.advance(&event)
    }

    /// The place of a task in the plan.
    fn number(&self, id: &str) -> Option<usize> {
        self.book.state.tasks().iter().position(|task| task.spec.id == id)
    }
}

/// How a host that gave up counts as having ended.
const CRASHED: Exit = Exit { code: Some(1), signal: None };
