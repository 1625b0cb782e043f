//! Runs, decisions and journals as programs read them.

use std::collections::BTreeMap;

use aldis_engine::{Snapshot, State as RunState};
use aldis_machine::delivery;
use aldis_machine::phases::State;
use aldis_machine::run as supervised;
use aldis_machine::{Decision, Evidence};
use aldis_signal::time::Timestamp;
use aldis_store::{Decision as StoredDecision, Event, Run};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VERSION;
use super::proof::ProofForm;
use crate::view::run_view::RunView;

/// A run: `auto start|status|resume|stop --json`, and a line of `status --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `run`.
    #[schemars(extend("const" = "run"))]
    pub kind: String,
    /// Its name.
    pub run: String,
    /// Which machine drives it.
    pub machine: String,
    /// The project's directory.
    pub project: String,
    /// What is to be done.
    pub task: String,
    /// Whether it goes on.
    pub active: bool,
    /// The current phase, `complete` or `failed`.
    pub phase: String,
    /// The signal that ends it.
    pub expected: String,
    /// Stops refused in this phase.
    pub iteration: u32,
    /// How many may be.
    pub max_iterations: u32,
    /// Whether the last stop was let go only because there were too many in a row.
    pub capped: bool,
    /// Why it ended: a stable code.
    pub exit_reason: Option<String>,
    /// The host's session it belongs to.
    pub session: Option<String>,
    /// The dialect its agent speaks.
    pub dialect: String,
    /// When it began.
    #[schemars(with = "Option<String>")]
    pub started_at: Option<Timestamp>,
    /// When the phase began.
    #[schemars(with = "String")]
    pub phase_started_at: Timestamp,
    /// When it was completed.
    #[schemars(with = "Option<String>")]
    pub completed_at: Option<Timestamp>,
    /// The last sign of life.
    #[schemars(with = "Option<String>")]
    pub last_activity: Option<Timestamp>,
    /// How many seconds each phase took.
    pub phase_durations: BTreeMap<String, u64>,
    /// The last error.
    pub last_error: Option<ErrorForm>,
    /// How it is, in one line for people.
    #[serde(default)]
    pub summary: String,
    /// How good that is: `good`, `neutral`, `warn` or `bad`.
    #[serde(default)]
    pub tone: String,
    /// The last claim that did not count, and why, unless it ended well.
    #[serde(default)]
    pub refused: Option<String>,
    /// What a human can do about it.
    #[serde(default)]
    pub remedy: Option<String>,
    /// Where a supervised run is: `working`, `checking`, `asking`, `paused`, `limited`,
    /// `ended`, ...; `unsupervised` if its process is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The percentage that a supervised agent reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
    /// How long a supervised run has made no progress: `none`, `warn`, `pause` or `abort`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// What a supervised run or a delivery has cost in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// What a supervised run or a delivery has cost, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub micro_dollars: Option<u64>,
    /// The question that waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionForm>,
    /// How many tasks of a delivery are where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<BTreeMap<String, usize>>,
    /// What was checked for the last claim of a supervised run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ProofForm>,
    /// What to tell the agent, where a phase begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A question to a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionForm {
    /// Its name: `aldis answer ID TEXT`.
    pub id: String,
    /// The question.
    pub text: String,
    /// Answers that are suggested, or mean something of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// What whoever asks would do without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// The last error of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorForm {
    /// The phase it happened in.
    pub phase: String,
    /// What happened.
    pub message: String,
    /// When.
    #[schemars(with = "String")]
    pub timestamp: Timestamp,
}

impl RunForm {
    /// Returns the form of a run; nothing for a channel, which has its own, and for a run that cannot be
    /// read.
    pub(crate) fn new(snapshot: &Snapshot, view: &RunView) -> Option<Self> {
        let Run { id, record, created, .. } = &snapshot.run;
        let mut form = Self {
            v: VERSION,
            kind: "run".to_owned(),
            run: id.to_string(),
            machine: record.machine.clone(),
            project: record.project.clone(),
            task: record.title.clone(),
            active: view.live,
            phase: String::new(),
            expected: String::new(),
            iteration: 0,
            max_iterations: 0,
            capped: false,
            exit_reason: None,
            session: None,
            dialect: String::new(),
            started_at: Some(*created),
            phase_started_at: *created,
            completed_at: None,
            last_activity: view.last_activity,
            phase_durations: BTreeMap::new(),
            last_error: None,
            summary: view.summary(),
            tone: view.status.0.as_str().to_owned(),
            refused: view.refused.clone(),
            remedy: view.remedy.clone(),
            status: None,
            progress: None,
            level: None,
            tokens: None,
            micro_dollars: None,
            question: view.questions.first().map(|question| QuestionForm {
                id: question.id.clone(),
                text: question.text.clone(),
                options: question.options.clone(),
                default: question.default.clone(),
            }),
            tasks: None,
            proof: None,
            prompt: None,
        };
        match &snapshot.state {
            RunState::Phases(state) => form.phases(state),
            RunState::Run(state) => form.supervised(state),
            RunState::Delivery(state) => form.delivery(state),
            RunState::Turns(_) | RunState::Unreadable(_) => return None,
        }
        if view.unsupervised {
            form.status = Some("unsupervised".to_owned());
        }
        Some(form)
    }

    fn phases(&mut self, state: &State) {
        state.task().clone_into(&mut self.task);
        state.phase().clone_into(&mut self.phase);
        self.expected = state.expected();
        self.iteration = state.iteration();
        self.max_iterations = state.max_iterations();
        self.capped = state.block_limit().capped;
        self.exit_reason = state.exit_reason().map(|reason| reason.as_str().to_owned());
        self.session = state.session().map(str::to_owned);
        self.dialect.clone_from(&state.pipeline().dialect);
        self.started_at = state.started_at();
        self.phase_started_at = state.phase_started_at();
        self.completed_at = state.completed_at();
        self.phase_durations.clone_from(state.durations());
        self.last_error = state.last_error().map(|error| ErrorForm {
            phase: error.phase.clone(),
            message: error.message.clone(),
            timestamp: error.timestamp,
        });
        self.status = state.is_paused().then(|| "paused".to_owned());
    }

    fn supervised(&mut self, state: &supervised::State) {
        let cost = state.cost();
        let setup = state.setup();
        self.task.clone_from(&setup.task);
        self.phase = state.phase().unwrap_or_default().to_owned();
        self.expected = format!("any {} signal that means done", setup.dialect);
        self.iteration = state.iteration();
        self.max_iterations = setup.config.max_iterations;
        self.exit_reason = state.ending().map(|ending| ending.as_str().to_owned());
        self.dialect.clone_from(&setup.dialect);
        self.started_at = Some(state.started_at());
        self.phase_started_at = state.iteration_started_at();
        self.status = Some(state.status().name().to_owned());
        self.progress = state.progress();
        self.level = Some(state.monitor().level().as_str().to_owned());
        self.tokens = Some(cost.tokens);
        self.micro_dollars = Some(cost.micro_dollars);
        self.proof = ProofForm::of(state.proof());
    }

    fn delivery(&mut self, state: &delivery::State) {
        let run = state.run();
        let status = match run.ending {
            Some(_) => "ended",
            None if run.paused => "paused",
            None => "working",
        };
        let tally = state.tally().into_iter();
        self.task.clone_from(&run.title);
        "every task accepted by its auditor".clone_into(&mut self.expected);
        self.exit_reason = run.ending.map(|ending| ending.as_str().to_owned());
        delivery::DIALECT.clone_into(&mut self.dialect);
        self.started_at = Some(run.started_at);
        self.phase_started_at = run.started_at;
        self.status = Some(status.to_owned());
        self.tokens = Some(run.spending.spent.tokens);
        self.micro_dollars = Some(run.spending.spent.micro_dollars);
        self.tasks = Some(tally.map(|(at, count)| (at.as_str().to_owned(), count)).collect());
    }
}

/// A decision and its reasons: `why --json`, and a line of `log --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DecisionForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `decision`.
    #[schemars(extend("const" = "decision"))]
    pub kind: String,
    /// Its place among all decisions.
    pub seq: u64,
    /// The run.
    pub run: String,
    /// The task of a delivery that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// When it was made.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// The rule that fired: a stable code.
    pub rule: String,
    /// What was decided.
    pub summary: String,
    /// Why the rule applied.
    pub because: String,
    /// What was seen.
    pub evidence: Vec<EvidenceForm>,
    /// The counters after the decision.
    pub counters: BTreeMap<String, u64>,
    /// What happens next, or what to do.
    pub remedy: String,
}

/// One thing a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceForm {
    /// `signal`, `near_miss`, `refused`, `said`, `output` (of a check or a crashed agent), `check` (how
    /// it ended), `finding` (what speaks against a claim) or `message` (of a human).
    pub what: String,
    /// The signal.
    pub name: Option<String>,
    /// Why it does not count: a stable code.
    pub reason: Option<String>,
    /// The words themselves.
    pub quote: String,
    /// The line in the message, from 1.
    pub line: Option<u64>,
    /// The sub-agent that said it.
    pub agent: Option<String>,
    /// How a signal came: `said`, `token`, `receipt` or `call`.
    #[serde(default)]
    pub via: String,
}

impl DecisionForm {
    /// Returns the form of a decision, or nothing if it cannot be read.
    pub(crate) fn new(stored: &StoredDecision) -> Option<Self> {
        let decision: Decision = serde_json::from_str(&stored.body).ok()?;
        Some(Self {
            v: VERSION,
            kind: "decision".to_owned(),
            // A number in every store there is; another one will need a form of its own.
            seq: stored.cursor.to_string().parse().unwrap_or_default(),
            run: stored.run.to_string(),
            task: decision.task,
            at: stored.at,
            rule: decision.rule,
            summary: decision.summary,
            because: decision.because,
            evidence: decision.evidence.into_iter().map(EvidenceForm::new).collect(),
            counters: decision.counters,
            remedy: decision.remedy,
        })
    }
}

impl EvidenceForm {
    pub(crate) fn new(evidence: Evidence) -> Self {
        let Evidence { what, name, reason, quote, line, agent, via } = evidence;
        Self { what, name, reason, quote, line, agent, via: via.to_string() }
    }
}

/// An event of a run's journal: a line of `log --events --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `event`.
    #[schemars(extend("const" = "event"))]
    pub kind: String,
    /// The run.
    pub run: String,
    /// Its place in the journal, from 1.
    pub seq: u64,
    /// When it happened.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// What kind of event.
    pub event: String,
    /// The event itself, as `aldis step` takes it.
    pub body: Value,
}

impl EventForm {
    pub(crate) fn new(event: &Event) -> Self {
        Self {
            v: VERSION,
            kind: "event".to_owned(),
            run: event.run.to_string(),
            seq: event.seq,
            at: event.at,
            event: event.kind.clone(),
            body: serde_json::from_str(&event.body).unwrap_or_default(),
        }
    }
}

/// A failure that could be reported nowhere else: a line of `log --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `failure`.
    #[schemars(extend("const" = "failure"))]
    pub kind: String,
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Which part of Aldis it befell.
    pub part: String,
    /// What happened.
    pub what: String,
}
