//! What programs read: the JSON forms, versioned, with their schemas.
//!
//! These types are not the core's: the core may change, these may only grow. New members may
//! appear in version 1; none disappears or changes its meaning.

pub mod call;
pub(crate) mod card;
pub mod config;
pub mod delivery;
pub mod dialect_file;
pub(crate) mod effects;
pub mod judge;
pub mod live;
pub mod notice;
pub mod postmortem;
pub mod proof;
pub mod prune;
pub mod receipt;
pub mod registration;
pub mod report;
pub mod run;
pub mod step;
pub mod task;
pub mod turns;
pub mod worker;

use std::path::Path;

use aldis_engine::{Snapshot, State};
use aldis_signal::time::Timestamp;
use aldis_signal::{Dialect, Fields, Finding, NearMiss, Origin, Place, Signal};
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::run_view::RunView;

/// One line of `scan --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ScanLine {
    /// It counts.
    Signal(Box<SignalLine>),
    /// It does not, and this is why.
    NearMiss(Box<NearMissLine>),
}

/// Something an agent said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SignalLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `signal`.
    #[schemars(extend("const" = "signal"))]
    pub kind: String,
    /// The dialect it is written in.
    pub dialect: String,
    /// Canonical name.
    pub name: String,
    /// What it says in any dialect: `done`, `progress`, `blocked`, ...
    pub meaning: String,
    /// What it is about.
    pub subject: Option<String>,
    /// Free text said with it.
    pub payload: Option<String>,
    /// Percentage.
    pub progress: Option<u8>,
    /// Further members.
    pub fields: Fields,
    /// What the delivery loop does with it.
    pub handler: Option<String>,
    /// What was odd about it and tolerated.
    pub warnings: Vec<String>,
    /// Who said it.
    pub origin: OriginForm,
    /// How it came: `said`, `token`, `receipt` or `call`.
    pub via: String,
    /// Where.
    pub source: SourceForm,
    /// The bytes between `start` and `end`, lossily decoded.
    pub raw: String,
}

/// Something that looked like a signal and was not one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NearMissLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `near_miss`.
    #[schemars(extend("const" = "near_miss"))]
    pub kind: String,
    /// The dialect it resembles.
    pub dialect: String,
    /// The signal it resembles.
    pub name: String,
    /// Why it does not count: a stable code.
    pub reason: String,
    /// What to write instead.
    pub hint: String,
    /// Who said it.
    pub origin: OriginForm,
    /// Where.
    pub source: SourceForm,
    /// The bytes between `start` and `end`, lossily decoded.
    pub raw: String,
    /// How many later ones of the same dialect and reason in the message it stands for. Not there if
    /// none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

fn is_zero(more: &u64) -> bool {
    *more == 0
}

/// Who said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OriginForm {
    /// `assistant`, `host`, `subagent`, `system`, `tool` or `user`.
    pub role: String,
    /// Whether it was said inside a sub-agent's own conversation.
    pub sidechain: bool,
    /// The agent, where the host names one.
    pub agent: Option<String>,
}

/// Where it was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceForm {
    /// The file as it was named on the command line; `-` for standard input.
    pub file: String,
    /// Counts the messages of a transcript from 0; 0 for text.
    pub message: u64,
    /// The line of the transcript file, from 1. Only for transcripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The line in the message, from 1.
    pub line: u64,
    /// The byte in that line, from 1.
    pub column: u64,
    /// First byte in the message.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Where its body ends; `null` without one.
    pub body_end: Option<u64>,
}

/// One line of `dialects list --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DialectLine {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Unique name.
    pub name: String,
    /// One line about it.
    pub about: String,
    /// Its grammar family: `block`, `line`, `tag`, `trailer`, `fence` or `status`.
    pub family: String,
    /// Whether it is built in.
    pub builtin: bool,
    /// The file that defines it; `null` for a built-in one.
    pub file: Option<String>,
    /// What can be said in it.
    pub signals: Vec<DialectSignal>,
}

/// A signal of a dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DialectSignal {
    /// Canonical name.
    pub name: String,
    /// What it says in any dialect, unless its members say otherwise.
    pub meaning: String,
}

/// A format that has a schema.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) schema: fn() -> Schema,
}

/// Lists formats: name, type, and what it is.
macro_rules! formats {
    ($($name:literal: $form:ty, $about:literal;)*) => {
        &[$(Described { name: $name, about: $about, schema: || schema_for!($form) }),*]
    };
}

/// The formats that programs read and write.
pub(crate) const SCHEMAS: &[Described] = formats! {
    "scan": ScanLine, "a line of `aldis scan --json`";
    "dialect": dialect_file::DialectFile, "a dialect file";
    "dialects-list": DialectLine, "a line of `aldis dialects list --json`";
    "run": run::RunForm, "a run: `aldis auto ... --json`, `aldis status --json`";
    "live": live::LiveForm, "a line of `aldis run --json` and `aldis deliver --json`";
    "task": task::TaskLine, "a line of `aldis tasks --json`";
    "decision": run::DecisionForm, "a decision: `aldis why --json`, `aldis log --json`";
    "event": run::EventForm, "an event: `aldis log --events --json`";
    "failure": run::FailureForm, "a failure of a hook: `aldis log --json`";
    "step": step::StepForm<step::PhasesStepState>, "a line that `aldis step phases` prints";
    "config": config::SettingLine, "a line of `aldis config show --json`";
    "trust": config::TrustLine, "a line of `aldis trust --list --json`";
    "notice": notice::Notice, "what a webhook is sent";
    "step-delivery": delivery::DeliveryStepForm, "a line that `aldis step delivery` prints";
    "step-run": step::StepForm<step::RunStepState>, "a line that `aldis step run` prints";
    "plan-check": delivery::PlanForm, "a line of `aldis plan check --json`";
    "step-turns": turns::ChannelStepForm, "a line that `aldis step turns` prints";
    "doctor": registration::CheckLine, "a line of `aldis doctor --json`";
    "install": registration::InstallLine,
        "the line of `aldis install --json` and `aldis uninstall --json`";
    "worker": worker::WorkerLine, "a line of `aldis worker list --json`";
    "call": call::CallReply, "the answer to a report: the tools of `aldis mcp`, `aldis signal --json`";
    "token": call::TokenLine, "a line of `aldis token new --json` and `aldis token list --json`";
    "postmortem": postmortem::PostmortemLine, "a line of `aldis postmortem --json`";
    "report": report::ReportForm, "what `aldis report --json` prints";
    "receipt": receipt::SealedReceipt, "a receipt: `aldis proof show --json`";
    "receipt-list": receipt::ReceiptLine, "a line of `aldis proof list --json`";
    "receipt-verify": receipt::VerifiedLine, "a line of `aldis proof verify --json`";
    "judge": judge::JudgeQuestion, "what `[proof] judge` reads";
    "judge-answer": judge::JudgeAnswer, "what `[proof] judge` prints";
    "store-prune": prune::PruneLine, "the line of `aldis store prune --json`";
};

/// Returns the form of a run or a channel; one that cannot be read says so.
pub(crate) fn run_form(snapshot: &Snapshot, now: Timestamp) -> Value {
    let view = RunView::new(snapshot, now);
    let form = match &snapshot.state {
        State::Turns(state) => serde_json::to_value(turns::ChannelForm::shown(state, &view)),
        _ => serde_json::to_value(run::RunForm::new(snapshot, &view)),
    };
    let failed =
        |error: &serde_json::Error| tracing::warn!(run = %view.id, %error, "cannot be shown");
    form.inspect_err(failed).ok().filter(Value::is_object).unwrap_or_else(|| {
        json!({ "v": VERSION, "kind": "run", "run": view.id.as_str(), "summary": view.summary() })
    })
}

impl ScanLine {
    /// Returns the form of a finding.
    pub(crate) fn new(file: &str, message: u64, entry: Option<u64>, finding: &Finding) -> Self {
        let source = |place: &Place, body_end| SourceForm {
            file: file.to_owned(),
            message,
            entry,
            line: place.line,
            column: place.column,
            start: place.span.start,
            end: place.span.end,
            body_end,
        };
        match finding {
            Finding::Signal(signal) => {
                let source = source(&signal.place, signal.body_end);
                Self::Signal(Box::new(SignalLine::new(signal, source)))
            }
            Finding::NearMiss(miss) => {
                let source = source(&miss.place, None);
                Self::NearMiss(Box::new(NearMissLine::new(miss, source)))
            }
        }
    }
}

impl SignalLine {
    fn new(signal: &Signal, source: SourceForm) -> Self {
        Self {
            v: VERSION,
            kind: "signal".to_owned(),
            dialect: signal.dialect.to_string(),
            name: signal.name.to_string(),
            meaning: signal.meaning.to_string(),
            subject: signal.subject.clone(),
            payload: signal.payload.clone(),
            progress: signal.progress,
            fields: signal.fields.clone(),
            handler: signal.handler.as_ref().map(ToString::to_string),
            warnings: signal.warnings.iter().map(ToString::to_string).collect(),
            origin: OriginForm::new(&signal.origin),
            via: signal.via.to_string(),
            source,
            raw: signal.raw.clone(),
        }
    }
}

impl NearMissLine {
    fn new(miss: &NearMiss, source: SourceForm) -> Self {
        Self {
            v: VERSION,
            kind: "near_miss".to_owned(),
            dialect: miss.dialect.to_string(),
            name: miss.name.to_string(),
            reason: miss.reason.to_string(),
            hint: miss.hint(),
            origin: OriginForm::new(&miss.origin),
            source,
            raw: miss.raw.clone(),
            more: miss.more,
        }
    }
}

impl OriginForm {
    fn new(origin: &Origin) -> Self {
        Self {
            role: origin.role.to_string(),
            sidechain: origin.sidechain,
            agent: origin.agent.clone(),
        }
    }
}

impl DialectLine {
    /// Returns the form of a dialect; `file` is where it was read, unless it is built in.
    pub(crate) fn new(dialect: &Dialect, file: Option<&Path>) -> Self {
        let signals = dialect.signals.iter().map(|signal| DialectSignal {
            name: signal.name.to_string(),
            meaning: signal.meaning.to_string(),
        });
        Self {
            v: VERSION,
            name: dialect.name.to_string(),
            about: dialect.about.clone(),
            family: dialect.syntax.family().to_owned(),
            builtin: file.is_none(),
            file: file.map(|file| file.display().to_string()),
            signals: signals.collect(),
        }
    }
}

const VERSION: u32 = 1;
