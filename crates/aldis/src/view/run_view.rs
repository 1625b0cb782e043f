//! What people are shown of a run. `status`, `why`, the live view and `watch` render a [`RunView`], and
//! the forms for programs take their sentences from it, so that every surface says the same.

use std::path::Path;
use std::time::Duration;

use aldis_engine::{OpenQuestion, Snapshot, State};
use aldis_machine::stagnation::Level;
use aldis_machine::turns::TurnHolder;
use aldis_machine::{Evidence, delivery, phases, run, turns};
use aldis_process::{LeaseHolder, Liveness};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::{Driver, Run, RunId};
use serde::Deserialize;

use super::ending::{ended_remedy, ending_words, exit_words, spoken};
use super::paint::Tone;
use super::time::{ago, clock_time, counted, elapsed, relative};
use super::wire::task::TaskLine;
use super::{display, fleet, show};

/// How much of a title stands in a sentence.
const TITLE_MAX: usize = 60;
/// How late a server may be with the end of a turn: longer than any that is only busy.
const SERVER_LATE: Duration = Duration::from_secs(60);
/// How much of a claim is quoted.
const QUOTE_MAX: usize = 80;

/// What people are shown of a run. The words of agents in it are not made harmless yet.
#[derive(Clone, Debug)]
pub(crate) struct RunView {
    pub(crate) id: RunId,
    pub(crate) title: String,
    pub(crate) project: String,
    /// Which machine drives it.
    pub(crate) machine: String,
    /// What its agents run in: a host, else the user's own program.
    pub(crate) host: Option<String>,
    /// What its agents have cost, as far as their hosts report it.
    pub(crate) cost: run::Usage,
    /// Whether it has not ended.
    pub(crate) live: bool,
    /// Whether it needs a process, and none is there.
    pub(crate) unsupervised: bool,
    /// How it is, in a word or two, and how good that is.
    pub(crate) status: (Tone, String),
    /// The rest of that line.
    pub(crate) detail: String,
    /// How far it has come, in percent.
    pub(crate) progress: Option<u8>,
    /// Whether the work has stalled, where somebody watches that.
    pub(crate) stagnation: Option<Level>,
    /// The last sign that the work moves, where one is looked for.
    pub(crate) last_activity: Option<Timestamp>,
    /// When the current turn of a channel is over.
    pub(crate) deadline: Option<Timestamp>,
    /// The last claim that did not count and why, unless the run ended well.
    pub(crate) refused: Option<String>,
    /// What a human can do about it.
    pub(crate) remedy: Option<String>,
    /// What only its machine knows: labels and values.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// The tasks of a delivery.
    pub(crate) tasks: Vec<TaskLine>,
    /// What happened in a channel, the latest first.
    pub(crate) history: Vec<(Timestamp, String)>,
    /// What waits for a human, the oldest first.
    pub(crate) questions: Vec<OpenQuestion>,
}

impl RunView {
    /// Returns what is shown of a run at a time.
    pub(crate) fn new(snapshot: &Snapshot, now: Timestamp) -> Self {
        let (run, id) = (&snapshot.run, snapshot.id());
        let mut view = Self {
            id: id.clone(),
            title: run.record.title.trim().lines().next().unwrap_or_default().to_owned(),
            project: run.record.project.clone(),
            machine: run.record.machine.clone(),
            host: started_with(snapshot),
            cost: run::Usage::default(),
            live: run.record.active,
            unsupervised: false,
            status: (Tone::Bad, "unreadable".to_owned()),
            detail: String::new(),
            progress: None,
            stagnation: None,
            last_activity: None,
            deadline: None,
            refused: None,
            remedy: None,
            facts: Vec::new(),
            tasks: Vec::new(),
            history: Vec::new(),
            questions: snapshot.questions(),
        };
        let is_gone = view.live && snapshot.lease_read && !is_supervised(run, now);
        let goes_on = view.live && !is_gone;
        match &snapshot.state {
            State::Delivery(state) => view.delivery(now, state, run.updated),
            State::Phases(state) => view.phases(now, state),
            State::Run(state) => {
                view.supervised(now, state, if goes_on { now } else { run.updated });
            }
            State::Turns(state) => view.channel(state),
            State::Unreadable(detail) => view.detail = format!(": {detail}"),
        }
        if is_gone {
            let since = view.last_activity.map(|at| format!(", last activity {}", ago(now, at)));
            view.abandon(format!(": its process is gone{}", since.unwrap_or_default()));
            let command = continue_command(run);
            view.remedy = Some(match view.questions.first() {
                Some(question) => format!("`aldis answer {} TEXT`, then `{command}`", question.id),
                None => format!("continue it with `{command}`, or end it with `aldis abort {id}`"),
            });
        }
        // Servers hold no lease for each of their channels. One that lives ends a turn in time.
        let overdue = view.deadline.filter(|due| now.since(*due) > SERVER_LATE);
        if let (true, Some(due)) = (view.live, overdue) {
            view.abandon(format!(": no server ended the turn that ran out {}", ago(now, due)));
            view.remedy = Some(format!("start a server with `{}`", continue_command(run)));
        }
        view
    }

    /// Says that nobody coordinates it.
    fn abandon(&mut self, detail: String) {
        self.unsupervised = true;
        self.status = (Tone::Warn, "unsupervised".to_owned());
        self.detail = detail;
    }

    /// Returns its id and what people call it, for a sentence.
    pub(crate) fn name(&self) -> String {
        if self.title.is_empty() || self.title == self.id.as_str() {
            return self.id.to_string();
        }
        format!("{} ({})", self.id, display::excerpt(&self.title, TITLE_MAX))
    }

    /// Says in one line how it is.
    pub(crate) fn summary(&self) -> String {
        format!("{}{}", self.status.1, self.detail)
    }

    /// All labels and values below the title, without tasks, history and questions.
    pub(crate) fn all_facts(&self, now: Timestamp) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        facts.push(("project", show::project(&self.project).to_owned()));
        facts.extend(self.last_activity.map(|at| ("activity", ago(now, at))));
        let deadline = self.deadline.map(|at| format!("{} ({})", clock_time(at), left(now, at)));
        facts.extend(deadline.map(|deadline| ("deadline", deadline)));
        let stalled = self.stagnation.filter(|level| self.live && *level != Level::None);
        facts.extend(stalled.map(|level| ("stalled", stagnation(level).to_owned())));
        facts.extend(self.facts.iter().cloned());
        facts.extend(self.refused.clone().map(|refused| ("refused", refused)));
        facts.extend(self.remedy.clone().map(|remedy| ("next", remedy)));
        facts
    }

    /// `until` is when it was last at work.
    fn supervised(&mut self, now: Timestamp, state: &run::State, until: Timestamp) {
        let most = state.setup().config.max_iterations;
        let count = format!("iteration {} of {most}", state.iteration());
        let percent = state.progress().map(|percent| format!(", {percent} %")).unwrap_or_default();
        self.live = state.ending().is_none();
        self.status = run_status(now, state);
        self.detail = match state.ending() {
            None => format!(", {count}{percent}"),
            Some(run::Ending::Done) => format!(" ({count})"),
            Some(_) => format!(" ({count}{percent})"),
        };
        self.progress = state.shown_progress();
        self.stagnation = Some(state.monitor().level());
        self.last_activity = Some(state.monitor().last_progress());
        self.facts.extend(state.phase().map(|phase| ("phase", phase.to_owned())));
        self.facts.push(("worked", elapsed(Duration::from_millis(state.worked(until)))));
        self.cost = state.cost();
        let cost = self.cost;
        if cost != run::Usage::default() {
            // Nobody knows the price where the host does not name it.
            let price = (cost.micro_dollars > 0).then(|| format!("{}, ", show::dollars(cost)));
            let price = price.unwrap_or_default();
            self.facts.push(("cost", format!("{price}{} tokens", cost.tokens)));
        }
        let (id, question) = (&self.id, state.question());
        self.remedy = match (state.ending(), state.status(), question) {
            (Some(ending), ..) => ended_remedy(id.as_str(), state, ending),
            (None, run::Status::Paused { .. }, _) => {
                Some(format!("`aldis resume {id}` or `aldis abort {id}`"))
            }
            (None, run::Status::Limited { .. } | run::Status::Backoff { .. }, _) => {
                Some(format!("nothing to do; `aldis resume {id}` tries at once"))
            }
            (None, _, Some(question)) => Some(format!("`aldis answer {} TEXT`", question.id)),
            (None, ..) => None,
        };
        self.refused = run_refusal(state);
    }

    fn phases(&mut self, now: Timestamp, state: &phases::State) {
        self.live = state.is_live();
        let phase = state.phase();
        let success = state.exit_reason().is_some_and(phases::ExitReason::is_success);
        (self.status, self.detail) = match state.exit_reason() {
            _ if self.live => {
                let count =
                    format!(", iteration {} of {}", state.iteration(), state.max_iterations());
                let status = match (state.is_paused(), state.block_limit().capped) {
                    (true, _) => (Tone::Warn, format!("paused in phase {phase}")),
                    _ if state.question().is_some() => {
                        (Tone::Warn, format!("needs you in phase {phase}"))
                    }
                    _ if state.checks().claim.is_some() => {
                        (Tone::Strong, format!("phase {phase}, its claim is being checked"))
                    }
                    _ if state.parked().is_some_and(|parked| parked.until.is_some()) => {
                        (Tone::Warn, format!("waits for a limit in phase {phase}"))
                    }
                    (false, true) => {
                        (Tone::Warn, format!("stopped in phase {phase}, not complete"))
                    }
                    (false, false) => (Tone::Strong, format!("phase {phase}")),
                };
                (status, count)
            }
            Some(reason) if success => {
                ((Tone::Good, "complete".to_owned()), exit_words(Some(reason)).to_owned())
            }
            reason => {
                let phase = state.failed_in().unwrap_or(phase);
                ((Tone::Bad, exit_words(reason).to_owned()), format!(" in phase {phase}"))
            }
        };
        self.last_activity = state.last_activity();
        let session = state.session().map(str::to_owned).or_else(|| {
            let next = "none yet; the next session that stops in this project";
            self.live.then(|| next.to_owned())
        });
        self.facts.extend(session.map(|session| ("session", session)));
        let until = state.parked().and_then(|parked| parked.until);
        let over = until.map(|at| format!("over at {} ({})", clock_time(at), relative(now, at)));
        self.facts.extend(over.map(|over| ("limit", over)));
        let error = state.last_error();
        self.facts
            .extend(error.map(|error| ("error", format!("{} ({})", error.message, error.phase))));
        self.remedy = match (self.live, state.is_paused(), state.block_limit().capped) {
            (true, true, _) => Some(format!("`aldis resume {}`", self.id)),
            _ if state.question().is_some() => {
                state.question().map(|question| format!("`aldis answer {} TEXT`", question.id))
            }
            (true, false, true) => Some("send a prompt, or run `aldis auto resume`".to_owned()),
            (true, false, false) => None,
            (false, ..) => {
                let resumable = !success && state.can_resume().is_ok();
                resumable.then(|| "`aldis auto resume` continues the phase".to_owned())
            }
        };
        if !success {
            self.refused = state.last_refused().map(refusal);
        }
    }

    fn delivery(&mut self, now: Timestamp, state: &delivery::State, updated: Timestamp) {
        let (tally, run) = (show::tally(state), state.run());
        self.live = state.ending().is_none();
        let queued = run.agents.values().filter(|agent| agent.queued).count();
        let working = u64::try_from(run.agents.len() - queued).unwrap_or(u64::MAX);
        let queued = match queued {
            0 => String::new(),
            1 => ", 1 waits for a worker".to_owned(),
            count => format!(", {count} wait for a worker"),
        };
        (self.status, self.detail) = match state.ending() {
            None if run.paused => ((Tone::Warn, "paused".to_owned()), format!(", {tally}")),
            None => {
                let agents = counted(working, "agent");
                let at = fleet::at_workers(state);
                let how = format!(", {tally}, {agents} at work{at}{queued}");
                ((Tone::Strong, "delivering".to_owned()), how)
            }
            Some(delivery::Ending::Complete) => {
                ((Tone::Good, "complete".to_owned()), format!(", {tally}"))
            }
            Some(ending) => ((Tone::Bad, spoken(ending.as_str())), format!(", {tally}")),
        };
        self.last_activity = Some(updated);
        let complete = state.tally().get(&delivery::Status::Complete).copied().unwrap_or(0);
        let percent = (complete * 100).checked_div(state.tasks().len());
        self.progress = percent.and_then(|percent| u8::try_from(percent).ok());
        self.facts.push(("started", ago(now, run.started_at)));
        self.cost = run.spending.spent;
        self.facts.extend(show::spent(run.spending.spent).map(|spent| ("cost", spent)));
        self.facts.extend(fleet::workers(state).map(|workers| ("workers", workers)));
        self.tasks =
            state.tasks().iter().map(|task| TaskLine::new(&self.id, state, task)).collect();
        // A plan without a heading is called by its first task.
        if let (true, Some(first)) = (self.title.is_empty(), self.tasks.first()) {
            let more = self.tasks.len() - 1;
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            self.title = format!("{}{more}", first.title);
        }
        let (id, question) = (&self.id, self.questions.first());
        self.remedy = match (state.ending(), question) {
            (Some(ending), _) => {
                let more = ending.can_be_continued();
                more.then(|| format!("continue it with `aldis deliver --continue {id}`"))
            }
            (None, _) if run.paused => Some(format!("`aldis resume {id}` or `aldis abort {id}`")),
            (None, Some(question)) => Some(format!("`aldis answer {} TEXT`", question.id)),
            (None, None) => None,
        };
        self.refused = delivery_refusal(state);
    }

    fn channel(&mut self, state: &turns::State) {
        self.live = !state.is_closed();
        let holder = state.holder().turn().map_or("nobody", |turn| &turn.agent);
        let (tone, text) = match state.holder() {
            TurnHolder::Nobody if state.is_closed() => (Tone::Dim, "closed".to_owned()),
            TurnHolder::Nobody => (Tone::Warn, "nobody has the turn".to_owned()),
            TurnHolder::Active(_) => (Tone::Strong, format!("{holder}'s turn")),
            TurnHolder::Interrupted { asked, .. } => {
                (Tone::Strong, format!("{holder} waits for {asked}'s answer"))
            }
            TurnHolder::Paused { why, .. } => (Tone::Warn, format!("paused: {why}")),
        };
        self.status = (tone, text);
        if let Some(turn) = state.holder().active() {
            self.detail = format!(" (turn {})", state.turn());
            self.deadline = Some(turn.deadline);
        }
        let mark = |agent: &String| {
            if agent == holder { format!("[{agent}]") } else { agent.clone() }
        };
        let queue: Vec<String> = state.queue().iter().map(mark).collect();
        self.facts.push(("queue", queue.join(", ")));
        let paused = matches!(state.holder(), TurnHolder::Paused { .. });
        self.remedy = paused.then(|| format!("`aldis resume {}`", self.id));
        let history = state.history().iter().rev().map(|entry| {
            let reason = entry.reason.map(|reason| format!(" ({})", spoken(reason.as_str())));
            let text = format!("{} {}", spoken(&entry.event), entry.agent);
            (entry.at, text + &reason.unwrap_or_default())
        });
        self.history = history.collect();
    }
}

/// What the agents of a run are started with: the name of a host, else of the user's own program.
fn started_with(snapshot: &Snapshot) -> Option<String> {
    #[derive(Deserialize)]
    struct Host {
        name: String,
    }
    #[derive(Deserialize)]
    struct Launch {
        #[serde(default)]
        command: Vec<String>,
        #[serde(default)]
        host: Option<Host>,
    }
    let began = match &snapshot.state {
        State::Run(state) => Some(&*state.setup().launch),
        _ => None,
    };
    let launch: Launch = serde_json::from_str(snapshot.launch.as_deref().or(began)?).ok()?;
    let program = || {
        let program = Path::new(launch.command.first()?).file_name()?;
        Some(program.to_string_lossy().into_owned())
    };
    launch.host.map(|host| host.name).or_else(program)
}

/// Whether whoever must coordinate a run is there: of a run that a process or workers drive, whoever
/// holds its lease.
pub(crate) fn is_supervised(run: &Run, now: Timestamp) -> bool {
    if !matches!(run.record.driver, Driver::Process | Driver::Worker) {
        return true;
    }
    let Some(lease) = &run.lease else { return false };
    let liveness = lease.holder.parse::<LeaseHolder>().map(|holder| holder.liveness());
    match liveness.unwrap_or(Liveness::Unknown) {
        Liveness::Alive => true,
        Liveness::Gone => false,
        // Of a process that cannot be seen from here only the time of its lease tells.
        Liveness::Unknown => lease.until > now,
    }
}

/// The command that continues a run, or serves a channel.
pub(crate) fn continue_command(run: &Run) -> String {
    let command = match &*run.record.machine {
        "turns" => return "aldis serve".to_owned(),
        "delivery" => "deliver",
        _ => "run",
    };
    format!("aldis {command} --continue {}", run.id)
}

/// How a supervised run is, in words.
pub(crate) fn run_status(now: Timestamp, state: &run::State) -> (Tone, String) {
    let retry = |until: Timestamp| format!("{} ({})", clock_time(until), relative(now, until));
    let (tone, text) = match state.status() {
        run::Status::Ready => (Tone::Strong, "starting"),
        run::Status::Working => (Tone::Strong, "working"),
        run::Status::Looking => (Tone::Strong, "inspecting the work tree"),
        run::Status::Checking => (Tone::Strong, "verifying the done claim"),
        run::Status::Preparing => (Tone::Strong, "checking before the work starts"),
        run::Status::Paused { stagnated: true } => (Tone::Warn, "paused: no progress"),
        run::Status::Paused { stagnated: false } => (Tone::Warn, "paused"),
        run::Status::Ended { ending: run::Ending::Done } => (Tone::Good, "done"),
        run::Status::Ended { ending } => return (Tone::Bad, ending_words(*ending)),
        run::Status::Asking => (Tone::Warn, "waiting for your answer"),
        run::Status::Ending { .. } => {
            let why = state.asked_to_stop_because().map(|why| format!(": {why}"));
            let text = format!("stopping the agent{}", why.unwrap_or_default());
            return (Tone::Warn, text);
        }
        run::Status::Limited { until } => {
            return (Tone::Warn, format!("waiting for the service; retrying at {}", retry(*until)));
        }
        run::Status::Backoff { until } => {
            return (Tone::Warn, format!("the agent crashed; restarting at {}", retry(*until)));
        }
    };
    (tone, text.to_owned())
}

/// The last done claim of a run that did not count, and why; where there was none, what the agent
/// wrote instead.
pub(crate) fn run_refusal(state: &run::State) -> Option<String> {
    if state.ending() == Some(run::Ending::Done) {
        return None;
    }
    if let Some(refused) = state.last_refusal() {
        let claim = refused.evidence.iter().rfind(|seen| seen.what == "signal");
        let claim = claim.map(|claim| format!("{}, ", quoted(claim))).unwrap_or_default();
        return Some(format!("{claim}iteration {}: {}", refused.iteration, refused.because));
    }
    state.last_near_miss().map(|hint| format!("no done claim counted: {hint}"))
}

/// The last claim about a task that did not count, and why, unless the delivery is complete.
pub(crate) fn delivery_refusal(state: &delivery::State) -> Option<String> {
    if state.ending() == Some(delivery::Ending::Complete) {
        return None;
    }
    let mut refused = state.tasks().iter().filter_map(|task| {
        let claim = task.last_refused.as_ref()?;
        let why = match &task.last_failure {
            Some(failure) => format!("{}: {failure}", quoted(claim)),
            None => refusal(claim),
        };
        Some(format!("{}: {why}", task.spec.id))
    });
    refused.next_back()
}

/// A claim that did not count, and why.
fn refusal(claim: &Evidence) -> String {
    let reason = claim.reason.as_deref().unwrap_or("refused");
    format!("{}: {}", quoted(claim), spoken(reason))
}

/// What an agent claimed, in its own words where they are known.
fn quoted(claim: &Evidence) -> String {
    let quote = redact(claim.quote.trim());
    match (&claim.name, quote.is_empty()) {
        (Some(name), true) => name.clone(),
        (_, _) => format!("\"{}\"", display::excerpt(&quote, QUOTE_MAX)),
    }
}

/// How worrying it is that nothing moves.
fn stagnation(level: Level) -> &'static str {
    match level {
        Level::None => "no",
        Level::Warn => "no progress for a while",
        Level::Pause => "no progress: paused",
        Level::Abort => "no progress: the run ends",
    }
}

/// How long a turn still has. Rounded up: whoever reads 0 sees the turn end.
pub(crate) fn left(now: Timestamp, deadline: Timestamp) -> String {
    if deadline < now {
        return format!("{} over", elapsed(now.since(deadline)));
    }
    let left = deadline.since(now).as_millis().div_ceil(1_000);
    format!("{} left", elapsed(Duration::from_secs(u64::try_from(left).unwrap_or(u64::MAX))))
}
