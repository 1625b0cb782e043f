//! Runs, decisions and journals as programs read them.

use std::collections::BTreeMap;

use aldis_machine::delivery;
use aldis_machine::phases::{Effect, State};
use aldis_machine::run as supervised;
use aldis_machine::{Decision, Evidence, Machine as _};
use aldis_signal::time::Timestamp;
use aldis_store::{Decision as StoredDecision, Event, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VERSION;

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
    pub started_at: Option<String>,
    /// When the phase began.
    pub phase_started_at: String,
    /// When it was completed.
    pub completed_at: Option<String>,
    /// The last sign of life.
    pub last_activity: Option<String>,
    /// How many seconds each phase took.
    pub phase_durations: BTreeMap<String, u64>,
    /// The last error.
    pub last_error: Option<ErrorForm>,
    /// Where a supervised run is: `working`, `checking`, `asking`, `paused`, `limited`, `ended`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The percentage that a supervised agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
    /// How worrying it is that a supervised run does not move: `none`, `warn`, `pause` or `abort`.
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
    /// What to tell the agent, where a phase begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A line of `run --json`: something that happened in a supervised run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// What kind of thing: `begin`, `iteration`, `progress`, `status`, `check`, `question`, `host`,
    /// `kept`, `problem`, `ended`, or the name of a notice.
    pub kind: String,
    /// The run.
    pub run: String,
    /// When.
    pub at: String,
    /// In words; for `ended` the ending's stable name.
    pub text: String,
}

impl LiveForm {
    pub(crate) fn new(kind: &str, run: &str, at: Timestamp, text: &str) -> Self {
        let [kind, run, text] = [kind, run, text].map(str::to_owned);
        Self { v: VERSION, kind, run, at: at.to_string(), text }
    }
}

/// A question to a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QuestionForm {
    /// Its name: `aldis answer ID TEXT`.
    pub id: String,
    /// The question.
    pub text: String,
}

/// The last error of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorForm {
    /// The phase it happened in.
    pub phase: String,
    /// What happened.
    pub message: String,
    /// When.
    pub timestamp: String,
}

impl RunForm {
    /// Returns the form of a run.
    pub(crate) fn new(run: &RunId, project: &str, state: &State) -> Self {
        let text = |at: Timestamp| at.to_string();
        Self {
            v: VERSION,
            kind: "run".to_owned(),
            run: run.to_string(),
            machine: State::NAME.to_owned(),
            project: project.to_owned(),
            task: state.task.clone(),
            active: state.is_live(),
            phase: state.phase.clone(),
            expected: state.expected(),
            iteration: state.iteration,
            max_iterations: state.max_iterations,
            capped: state.block_limit.capped,
            exit_reason: state.exit_reason.map(|reason| reason.as_str().to_owned()),
            session: state.session.clone(),
            dialect: state.pipeline.dialect.clone(),
            started_at: state.started_at.map(text),
            phase_started_at: text(state.phase_started_at),
            completed_at: state.completed_at.map(text),
            last_activity: state.last_activity.map(text),
            phase_durations: state.durations.clone(),
            last_error: state.last_error.as_ref().map(|error| ErrorForm {
                phase: error.phase.clone(),
                message: error.message.clone(),
                timestamp: text(error.timestamp),
            }),
            status: state.paused.then(|| "paused".to_owned()),
            progress: None,
            level: None,
            tokens: None,
            micro_dollars: None,
            question: None,
            tasks: None,
            prompt: None,
        }
    }

    /// Returns the form of a supervised run.
    pub(crate) fn supervised(run: &RunId, project: &str, state: &supervised::State) -> Self {
        let (cost, setup) = (state.cost(), state.setup());
        Self {
            v: VERSION,
            kind: "run".to_owned(),
            run: run.to_string(),
            machine: "run".to_owned(),
            project: project.to_owned(),
            task: setup.task.clone(),
            active: state.ending().is_none(),
            phase: state.phase().unwrap_or_default().to_owned(),
            expected: format!("any {} signal that means done", setup.dialect),
            iteration: state.iteration(),
            max_iterations: setup.config.max_iterations,
            capped: false,
            exit_reason: state.ending().map(|ending| ending.as_str().to_owned()),
            session: None,
            dialect: setup.dialect.clone(),
            started_at: Some(state.started_at().to_string()),
            phase_started_at: state.iteration_started_at().to_string(),
            completed_at: None,
            last_activity: Some(state.monitor().last_progress().to_string()),
            phase_durations: BTreeMap::new(),
            last_error: None,
            status: Some(state.status().name().to_owned()),
            progress: state.progress(),
            level: Some(state.monitor().level().as_str().to_owned()),
            tokens: Some(cost.tokens),
            micro_dollars: Some(cost.micro_dollars),
            question: state.question().map(|question| QuestionForm {
                id: question.id.clone(),
                text: question.text.clone(),
            }),
            tasks: None,
            prompt: None,
        }
    }

    /// Returns the form of a delivery.
    pub(crate) fn delivery(run: &RunId, project: &str, state: &delivery::State) -> Self {
        let whole = state.run();
        let tally = state.tally().into_iter();
        let status = if whole.paused { "paused" } else { "working" };
        Self {
            v: VERSION,
            kind: "run".to_owned(),
            run: run.to_string(),
            machine: delivery::State::NAME.to_owned(),
            project: project.to_owned(),
            task: whole.title.clone(),
            active: whole.ending.is_none(),
            phase: String::new(),
            expected: "every task accepted by its auditor".to_owned(),
            iteration: 0,
            max_iterations: 0,
            capped: false,
            exit_reason: whole.ending.map(|ending| ending.as_str().to_owned()),
            session: None,
            dialect: delivery::DIALECT.to_owned(),
            started_at: Some(whole.started_at.to_string()),
            phase_started_at: whole.started_at.to_string(),
            completed_at: None,
            last_activity: None,
            phase_durations: BTreeMap::new(),
            last_error: None,
            status: Some(if whole.ending.is_some() { "ended" } else { status }.to_owned()),
            progress: None,
            level: None,
            tokens: Some(whole.spent.tokens),
            micro_dollars: Some(whole.spent.micro_dollars),
            question: whole
                .questions
                .iter()
                .next()
                .map(|(id, question)| QuestionForm { id: id.clone(), text: question.text.clone() }),
            tasks: Some(tally.map(|(at, count)| (at.as_str().to_owned(), count)).collect()),
            prompt: None,
        }
    }

    pub(crate) fn with_prompt(mut self, prompt: String) -> Self {
        self.prompt = Some(prompt);
        self
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
    pub at: String,
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
    /// `signal`, `near_miss`, `refused`, `said`, `output` (of a check or a crashed agent) or `message`
    /// (of a human).
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
            at: stored.at.to_string(),
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
    fn new(evidence: Evidence) -> Self {
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
    pub at: String,
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
            at: event.at.to_string(),
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
    pub at: String,
    /// Which part of Aldis it befell.
    pub part: String,
    /// What happened.
    pub what: String,
}

/// A line of `step --json`: what one event led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// The time of the event.
    pub at: String,
    /// What must now be done: `allow`, `block` with a reason, `context` with a text, `write_view`.
    pub effects: Vec<Value>,
    /// Why; `null` when the event concerns somebody else.
    pub decision: Option<Value>,
    /// The run after it.
    pub state: StepState,
}

/// The part of a run that a driver needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepState {
    /// Whether it goes on.
    pub active: bool,
    /// The current phase, `complete` or `failed`.
    pub phase: String,
    /// Stops refused in this phase.
    pub iteration: u32,
    /// Why it ended.
    pub exit_reason: Option<String>,
    /// The session it belongs to.
    pub session: Option<String>,
    /// The run token that signals must carry.
    pub token: Option<String>,
}

impl StepForm {
    pub(crate) fn new(
        at: Timestamp,
        effects: &[Effect],
        decision: Option<&Decision>,
        state: &State,
    ) -> Self {
        let value = |effect: &Effect| serde_json::to_value(effect).unwrap_or_default();
        Self {
            v: VERSION,
            at: at.to_string(),
            effects: effects.iter().map(value).collect(),
            decision: decision.map(|decision| serde_json::to_value(decision).unwrap_or_default()),
            state: StepState {
                active: state.is_live(),
                phase: state.phase.clone(),
                iteration: state.iteration,
                exit_reason: state.exit_reason.map(|reason| reason.as_str().to_owned()),
                session: state.session.clone(),
                token: state.token.clone(),
            },
        }
    }
}
