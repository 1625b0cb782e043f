//! The world of `aldis run` and `aldis deliver`: real processes, a real repository, real people.
//!
//! Whatever can take long has a thread of its own and reports through one channel: each process, the
//! repository, the store's change feed, signals, the terminal. The channel is bounded, so that an
//! agent that writes more than is read blocks instead of filling the memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use aldis_engine::{Engine, Handle};
use aldis_machine::Machine;
use aldis_machine::run::Exit;
use aldis_process::{Agent, Cancellation, Found, Identity, Interrupts, Output, find, find_marked};
use aldis_signal::time::Timestamp;
use aldis_store::{RunId, Store};

use super::repository::Repository;
use super::terminal_prompt::TerminalPrompt;
use super::worker::trees::WorkerTree;
use super::world::{
    Control, Happening, JobId, Leftover, OutputStream, RepositoryAnswer, RepositoryRequest, Ticket,
    World,
};
use crate::agents::command::{JobLaunch, StartFailure, Started, owner_mark};
use crate::error::CommandError;
use crate::notify::courier::{Courier, CourierRole, SinkReport};
use crate::notify::{self, TerminalNotice};
use crate::receipts;
use crate::settings::clock::{self, SteadyClock};
use crate::settings::config::Notify;
use crate::telemetry::{ExportScope, Exporter};

/// How many happenings wait to be read before whoever reports them waits, too.
pub(super) const QUEUE: usize = 64;
/// How long a process thread waits for output before it looks for orders.
const PAUSE: Duration = Duration::from_millis(50);
/// How long one wait of the change feed lasts before it looks whether anybody still listens.
const FEED: Duration = Duration::from_secs(5);
/// How long an agent that was left behind has to stop.
const LEFTOVER_GRACE: Duration = Duration::from_secs(5);
/// How long git may take for a receipt.
const RECEIPT_PATIENCE: Duration = Duration::from_secs(5);
/// How often signals are looked for.
const SIGNALS: Duration = Duration::from_millis(50);

/// The real world.
pub(crate) struct Real {
    clock: SteadyClock,
    /// Gone once nobody listens any more.
    happenings: Option<Receiver<Happening>>,
    /// Where runs are kept, and receipts.
    store: Arc<dyn Store>,
    state: PathBuf,
    report: SyncSender<Happening>,
    jobs: BTreeMap<JobId, Job>,
    /// How often this process was asked to end.
    interrupted: Arc<AtomicU32>,
    /// Gone with the last question.
    repository: Option<RepositoryThread>,
    /// Who is told what.
    notify: Notify,
    /// Gone once the last notices were sent.
    courier: Option<Courier>,
    /// Gone once the last spans were sent; nothing where no traces are wanted.
    exporter: Option<Exporter>,
    terminal: TerminalPrompt,
}

/// The thread that asks git.
struct RepositoryThread {
    questions: Sender<(Ticket, RepositoryRequest)>,
    cancellation: Cancellation,
    thread: thread::JoinHandle<()>,
}

/// A process and the thread that reads it.
struct Job {
    orders: Sender<Control>,
    thread: thread::JoinHandle<()>,
}

impl Real {
    /// Gets ready to watch everything that can happen to a run, and notes in it where its notices go.
    /// Failures are recorded in `state`.
    ///
    /// # Errors
    ///
    /// Fails if the settings of notices or the work trees it needs cannot be, or the system does not
    /// report signals.
    pub(crate) fn of<M: Machine>(
        engine: &Engine,
        run: &mut Handle<M>,
        (project, state): (&Path, &Path),
        repository: Repository,
        (notify, ask_here): (&Notify, bool),
    ) -> Result<Self, CommandError> {
        notify::check(notify, project)?;
        notify::remember(engine, clock::wall(), run, notify)?;
        let (store, run) = (engine.shared_store(), run.id());
        let (report, happenings) = mpsc::sync_channel(QUEUE);
        let interrupts = Interrupts::listen()
            .map_err(|error| CommandError::new(format!("listening for Ctrl-C: {error}")))?;
        let terminal = match ask_here {
            true => TerminalPrompt::detect(report.clone()),
            false => TerminalPrompt::absent(),
        };
        let (problems, own) = (report.clone(), run.clone());
        let role = CourierRole::Supervisor(run.clone());
        let courier = Courier::start(Arc::clone(&store), state, role, move |it| {
            let problem = match it {
                SinkReport::GivenUp(run, sink, why) if *run == own => format!("{sink}: {why}"),
                SinkReport::Dropped(sink, count) => format!("{sink}: {count} notices were dropped"),
                SinkReport::Delivered | SinkReport::Failed | SinkReport::GivenUp(..) => return,
            };
            // It is recorded, too: nobody waits until it can be shown.
            let _shown = problems.try_send(Happening::Problem(problem));
        });
        let exporter = Exporter::start(&store, ExportScope::Run(run.clone()), state);
        let interrupted = Arc::new(AtomicU32::new(0));
        spawn_signals(interrupts, Arc::clone(&interrupted), report.clone());
        let cancellation = repository.cancellation();
        let answer = move |request| repository.answer(request);
        let mut world = Self::bare(store, state, (report, happenings), (answer, cancellation));
        (world.interrupted, world.terminal) = (interrupted, terminal);
        (world.notify, world.courier) = (notify.clone(), Some(courier));
        world.exporter = exporter;
        Ok(world)
    }

    /// The world of one agent of a worker: nobody sits there, and its notices are delivered by others.
    /// Whoever has `report` can interrupt it.
    pub(crate) fn of_agent(
        store: Arc<dyn Store>,
        state: &Path,
        channel: (SyncSender<Happening>, Receiver<Happening>),
        mut tree: WorkerTree,
    ) -> Self {
        let cancellation = tree.cancellation();
        let answer = move |request| tree.answer(request);
        Self::bare(store, state, channel, (answer, cancellation))
    }

    fn bare(
        store: Arc<dyn Store>,
        state: &Path,
        (report, happenings): (SyncSender<Happening>, Receiver<Happening>),
        (answer, cancellation): (impl RepositoryAnswers, Cancellation),
    ) -> Self {
        let changed = report.clone();
        spawn_feed(Arc::clone(&store), move || changed.send(Happening::StoreChanged).is_ok());
        let repository = Some(spawn_repository(answer, cancellation, report.clone()));
        Self {
            clock: SteadyClock::start(),
            happenings: Some(happenings),
            store,
            state: state.to_owned(),
            report,
            jobs: BTreeMap::new(),
            interrupted: Arc::new(AtomicU32::new(0)),
            repository,
            notify: Notify::default(),
            courier: None,
            exporter: None,
            terminal: TerminalPrompt::absent(),
        }
    }

    /// Gives the last notices of a run a little time. Returns what went wrong.
    pub(crate) fn finish(&mut self, run: &RunId) -> Vec<String> {
        let waits = self.courier.take().map(|courier| courier.finish(run)).unwrap_or_default();
        self.exporter.take().into_iter().for_each(Exporter::finish);
        let last = self.happenings.iter().flat_map(Receiver::try_iter);
        let problems = last.filter_map(|happening| match happening {
            Happening::Problem(what) => Some(what),
            _ => None,
        });
        problems.chain(waits).collect()
    }
}

impl Drop for Real {
    /// Ends every process: their threads do when nobody gives them orders any more. A git that hangs
    /// is not left behind either.
    fn drop(&mut self) {
        self.happenings = None;
        if let Some(RepositoryThread { questions, cancellation, thread }) = self.repository.take() {
            cancellation.cancel();
            drop(questions);
            let _ended = thread.join();
        }
        for (_, Job { orders, thread }) in std::mem::take(&mut self.jobs) {
            drop(orders);
            let _ended = thread.join();
        }
    }
}

impl World for Real {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wait(&mut self, until: Timestamp) -> Vec<Happening> {
        let Some(happenings) = &self.happenings else { return Vec::new() };
        let mut happened = match happenings.recv_timeout(until.since(self.now())) {
            Ok(first) => vec![first],
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Vec::new(),
        };
        // Whatever else is there; not more, so that nobody waits for ever.
        happened.extend(happenings.try_iter().take(QUEUE));
        for happening in &happened {
            match happening {
                Happening::Over { job, .. } => drop(self.jobs.remove(job)),
                Happening::Typed(_) => self.terminal.typed(),
                _ => {}
            }
        }
        happened
    }

    fn pause(&mut self, until: Timestamp) -> u32 {
        thread::sleep(until.since(self.now()));
        self.interrupted.load(Ordering::Relaxed)
    }

    fn start(&mut self, job: JobId, launch: &JobLaunch) -> Result<String, StartFailure> {
        let started = launch.start()?;
        let identity = serde_json::to_string(started.agent.identity())
            .map_err(|error| StartFailure { what: format!("its identity: {error}") })?;
        let (control, orders) = mpsc::channel();
        let report = self.report.clone();
        let spawned = thread::Builder::new()
            .name(format!("job-{job}"))
            .spawn(move || attend(job, started, &orders, &report));
        let failed = |error| StartFailure { what: format!("starting a thread: {error}") };
        let thread = spawned.map_err(failed)?;
        self.jobs.insert(job, Job { orders: control, thread });
        Ok(identity)
    }

    fn control(&mut self, job: JobId, control: Control) {
        if let Some(job) = self.jobs.get(&job) {
            // A process that has just ended takes no orders.
            let _ordered = job.orders.send(control);
        }
    }

    fn ask(&mut self, ticket: Ticket, request: RepositoryRequest) {
        if let Some(repository) = &self.repository {
            let _asked = repository.questions.send((ticket, request));
        }
    }

    fn end_leftover(&mut self, leftover: &Leftover) {
        let found = match leftover {
            Leftover::Identity(identity) => {
                let Ok(identity) = serde_json::from_str::<Identity>(identity) else { return };
                find(&identity)
            }
            Leftover::Unknown(run) => find_marked(&owner_mark(run)),
        };
        if let Found::Alive(orphan) = found {
            orphan.end(LEFTOVER_GRACE);
        }
    }

    fn notify(&mut self, notice: &TerminalNotice) -> bool {
        notify::ring(&self.notify, notice.kind)
    }

    fn warn(&mut self, what: &str) {
        tracing::warn!("{what}");
    }

    fn keep_receipts(&mut self, run: &RunId) {
        let now = self.now();
        receipts::settle_or_record(&*self.store, &self.state, run, (now, RECEIPT_PATIENCE));
    }

    fn is_traced(&self) -> bool {
        self.exporter.is_some()
    }

    fn prompt(&mut self, question: Option<&str>) {
        self.terminal.ask(question);
    }
}

/// Reads a process until it and all it started has ended.
fn attend(
    job: JobId,
    started: Started,
    orders: &Receiver<Control>,
    report: &SyncSender<Happening>,
) {
    let Started { agent, prompt } = started;
    let mut exit = None;
    let mut closed = false;
    let mut grace = Duration::ZERO;
    while !(closed && exit.is_some()) {
        match orders.try_recv() {
            Ok(Control::Interrupt) => agent.interrupt(),
            Ok(Control::Suspend) => agent.suspend(),
            Ok(Control::Resume) => agent.resume(),
            Ok(Control::End(within)) => {
                grace = within;
                break;
            }
            Err(mpsc::TryRecvError::Empty) => {}
            // Nobody coordinates any more: the agent goes with the coordinator.
            Err(mpsc::TryRecvError::Disconnected) => return,
        }
        let happening = match agent.next(PAUSE) {
            None => continue,
            Some(Output::Closed) => {
                closed = true;
                continue;
            }
            Some(Output::Exited(how)) => {
                exit = Some(how);
                continue;
            }
            Some(Output::Stopped) => Happening::Stopped { job },
            Some(Output::Stdout(bytes)) => output(job, OutputStream::Stdout, bytes),
            Some(Output::Stderr(bytes)) => output(job, OutputStream::Stderr, bytes),
        };
        if report.send(happening).is_err() {
            return;
        }
    }
    end(job, agent, exit, grace, report);
    drop(prompt);
}

fn output(job: JobId, stream: OutputStream, bytes: Vec<u8>) -> Happening {
    Happening::Output { job, stream, bytes }
}

/// Ends a process with its tree, and reports what it still wrote.
fn end(
    job: JobId,
    agent: Agent,
    exit: Option<aldis_process::Exit>,
    grace: Duration,
    report: &SyncSender<Happening>,
) {
    let ended = agent.end_with(grace, |last| {
        let happening = match last {
            Output::Stdout(bytes) => output(job, OutputStream::Stdout, bytes),
            Output::Stderr(bytes) => output(job, OutputStream::Stderr, bytes),
            Output::Closed | Output::Exited(_) | Output::Stopped => return,
        };
        let _reported = report.send(happening);
    });
    let exit = exit.or(ended.exit);
    let exit = exit.map_or(Exit { code: None, signal: None }, |exit| Exit {
        code: exit.code,
        signal: exit.signal,
    });
    let _reported = report.send(Happening::Over { job, exit });
}

/// Reports that somebody committed something, until nobody wants to know.
pub(super) fn spawn_feed(store: Arc<dyn Store>, tell: impl Fn() -> bool + Send + 'static) {
    let _thread = thread::spawn(move || {
        let mut seen = None;
        loop {
            let next = match &seen {
                None => store.change(),
                Some(seen) => store.wait_for_change(seen, FEED),
            };
            match next {
                Ok(stamp) if Some(&stamp) != seen.as_ref() => {
                    seen = Some(stamp);
                    if !tell() {
                        return;
                    }
                }
                Ok(_) => {}
                // The store says what is wrong to whoever writes; the feed only waits for better days.
                Err(_) => thread::sleep(FEED),
            }
        }
    });
}

/// Reports signals that want this process to end.
fn spawn_signals(
    interrupts: Interrupts,
    interrupted: Arc<AtomicU32>,
    report: SyncSender<Happening>,
) {
    let _thread = thread::spawn(move || {
        loop {
            let seen = interrupts.take();
            let means =
                [("Ctrl-C", seen.interrupt), ("SIGTERM or a closed terminal", seen.terminate)];
            for (by, count) in means {
                for _ in 0..count {
                    interrupted.fetch_add(1, Ordering::Relaxed);
                    if report.send(Happening::Interrupted(by)).is_err() {
                        return;
                    }
                }
            }
            thread::sleep(SIGNALS);
        }
    });
}

/// Whoever answers questions to a repository.
trait RepositoryAnswers: FnMut(RepositoryRequest) -> RepositoryAnswer + Send + 'static {}

impl<A: FnMut(RepositoryRequest) -> RepositoryAnswer + Send + 'static> RepositoryAnswers for A {}

/// Answers questions to the repository, one after the other.
fn spawn_repository(
    mut answer: impl RepositoryAnswers,
    cancellation: Cancellation,
    report: SyncSender<Happening>,
) -> RepositoryThread {
    let (questions, asked) = mpsc::channel();
    let thread = thread::spawn(move || {
        for (ticket, request) in asked {
            let answer = answer(request);
            if report.send(Happening::Repository { ticket, answer }).is_err() {
                return;
            }
        }
    });
    RepositoryThread { questions, cancellation, thread }
}
