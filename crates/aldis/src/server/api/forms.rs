//! What requests are answered: the forms that only the API has. Those that commands print, too, are in
//! `view/wire`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aldis_engine::{Members, OpenQuestion, Snapshot};
use aldis_machine::Decision;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::server::runs::Taken;
use crate::settings::clock;
use crate::view::wire::effects::{EffectForm, ReplyForm};
use crate::view::wire::run::{DecisionForm, EventForm, EvidenceForm, RunForm};
use crate::view::wire::task::TaskLine;
use crate::view::wire::turns::ChannelForm;
use crate::view::wire::{ScanLine, run_form};

/// An answer with the version of its form.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "{T}")]
pub(super) struct Answer<T> {
    /// Format version.
    #[schemars(extend("const" = 1))]
    v: u32,
    #[serde(flatten)]
    body: T,
}

impl<T> From<T> for Answer<T> {
    fn from(body: T) -> Self {
        Self { v: 1, body }
    }
}

/// Declares a page of a list.
macro_rules! page {
    ($name:ident, $items:ident: $item:ty, $about:literal) => {
        #[doc = $about]
        #[derive(Debug, Serialize, JsonSchema)]
        pub(super) struct $name {
            #[doc = $about]
            pub(super) $items: Vec<$item>,
            /// Where the next page begins: pass it as `after`. `null` on the last page.
            pub(super) next: Option<String>,
        }
    };
}
page!(RunPage, runs: ShownRun, "Runs, the latest first.");
page!(ChannelPage, channels: ShownRun, "Open channels, the latest first.");
page!(DecisionPage, decisions: DecisionForm, "Decisions, the newest first.");
page!(EventPage, events: EventForm, "Events of a run, in order.");
page!(TaskPage, tasks: TaskLine, "Tasks of a delivery, in the order of its plan.");
page!(QuestionPage, questions: AskedQuestion, "Questions that wait for a human.");

/// A question that waits for a human.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AskedQuestion {
    /// The run that asks.
    run: String,
    /// Its name, for the answer.
    id: String,
    /// The question.
    text: String,
    /// Answers that are suggested, or mean something of their own.
    options: Vec<String>,
    /// What whoever asks would do without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    /// Since when it waits.
    #[schemars(with = "String")]
    asked_at: Timestamp,
}

impl AskedQuestion {
    pub(super) fn new(run: &RunId, asked: OpenQuestion) -> Self {
        let OpenQuestion { id, text, options, default, asked_at, .. } = asked;
        Self { run: run.to_string(), id, text, options, default, asked_at }
    }
}

/// What a change led to.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Change {
    /// The run after it.
    run: ShownRun,
    /// What must now be done.
    #[schemars(with = "Vec<EffectForm>")]
    effects: Vec<Value>,
    /// What became of each message.
    #[schemars(with = "Vec<ReplyForm>")]
    replies: Vec<Value>,
    /// What could not be done.
    warnings: Vec<String>,
    /// The last of the decisions; `null` when nothing changed.
    decision: Option<Decided>,
    /// What was decided.
    decisions: Vec<Decided>,
    /// Whether this is the answer to an earlier delivery of the same request.
    repeated: bool,
}

impl From<Taken> for Change {
    fn from(taken: Taken) -> Self {
        let EffectParts { effects, replies, warnings } = EffectParts::of(taken.effects);
        let decisions: Vec<Decided> = taken.decisions.into_iter().map(Decided::from).collect();
        Self {
            run: ShownRun::new(Snapshot::from(&*taken.run)),
            effects,
            replies,
            warnings: taken.warnings.into_iter().chain(warnings).collect(),
            decision: decisions.last().cloned(),
            decisions,
            repeated: taken.repeated,
        }
    }
}

/// What became of messages.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Replies {
    /// Whether this is the answer to an earlier delivery of the same request.
    repeated: bool,
    /// What must now be done.
    #[schemars(with = "Vec<EffectForm>")]
    effects: Vec<Value>,
    /// For a request with `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ReplyForm>")]
    result: Option<Value>,
    /// For a request with `texts`: one for each, in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<ReplyForm>>")]
    results: Option<Vec<Value>>,
}

impl Replies {
    pub(super) fn new(taken: Taken, several: bool) -> Self {
        let repeated = taken.repeated;
        let EffectParts { effects, mut replies, .. } = EffectParts::of(taken.effects);
        let result = (!several && !replies.is_empty()).then(|| replies.swap_remove(0));
        Self { repeated, effects, result, results: several.then_some(replies) }
    }
}

/// Channels that were imported.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ImportedChannels {
    /// Those that were not there.
    pub(super) imported: Vec<String>,
    /// Those that were, and are left alone.
    pub(super) skipped: Vec<String>,
}

/// What is in a text.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Findings {
    /// Signals, and near misses where they were asked for.
    pub(super) findings: Vec<ScanLine>,
}

/// An explanation.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Explanation {
    /// What `aldis explain` prints.
    pub(super) text: String,
}

/// How the server and its runs are.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    /// Whether nothing is wrong.
    pub(super) ok: bool,
    /// What is.
    pub(super) troubles: Vec<Trouble>,
}

/// Something that is wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Trouble {
    /// The run it is about; `null` for the server.
    pub(super) run: Option<String>,
    /// What.
    pub(super) what: String,
}

/// A run or a channel.
#[derive(Debug, Serialize)]
pub(super) struct ShownRun(Members);

impl ShownRun {
    /// One that cannot be read still has a name.
    pub(super) fn new(snapshot: Snapshot) -> Self {
        let mut members = match run_form(&snapshot, clock::wall()) {
            Value::Object(members) => members,
            _ => Members::new(),
        };
        let run = snapshot.run;
        let all = AnyRun {
            v: 1,
            kind: None,
            run: run.id.to_string(),
            machine: run.record.machine,
            project: run.record.project,
            title: run.record.title,
            active: run.record.active,
            revision: run.revision.0,
            created: run.created,
            updated: run.updated,
        };
        if let Ok(Value::Object(all)) = serde_json::to_value(all) {
            for (name, value) in all {
                members.entry(name).or_insert(value);
            }
        }
        Self(members)
    }
}

impl JsonSchema for ShownRun {
    fn schema_name() -> Cow<'static, str> {
        "Run".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let all = generator.subschema_for::<AnyRun>();
        let run = generator.subschema_for::<RunForm>();
        let channel = generator.subschema_for::<ChannelForm>();
        let kind = |kind: &str| json!({ "properties": { "kind": { "const": kind } }, "required": ["kind"] });
        json_schema!({
            "description": "A run, or a channel: one that cannot be read has no `kind`.",
            "allOf": [
                all,
                { "if": kind("run"), "then": run },
                { "if": kind("channel"), "then": channel },
            ],
        })
    }
}

/// What all runs and channels have.
#[derive(Serialize, JsonSchema)]
struct AnyRun {
    /// Format version.
    #[schemars(extend("const" = 1))]
    v: u32,
    /// `run` or `channel`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Its name.
    run: String,
    /// Which machine decides.
    machine: String,
    /// The project's directory; empty when there is none.
    project: String,
    /// What people call it.
    title: String,
    /// Whether it goes on.
    active: bool,
    /// How many steps it has taken.
    revision: u64,
    /// When its first step was taken.
    #[schemars(with = "String")]
    created: Timestamp,
    /// When its last step was taken.
    #[schemars(with = "String")]
    updated: Timestamp,
}

/// A decision and its reasons.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Decided {
    /// The rule that fired: a stable code.
    rule: String,
    /// The task it is about, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    /// What was decided.
    summary: String,
    /// Why the rule applied.
    because: String,
    /// What was seen.
    evidence: Vec<EvidenceForm>,
    /// The counters after the decision.
    counters: BTreeMap<String, u64>,
    /// What happens next, or what to do.
    remedy: String,
}

impl From<Decision> for Decided {
    fn from(decision: Decision) -> Self {
        let Decision { rule, task, summary, because, evidence, counters, remedy } = decision;
        let evidence = evidence.into_iter().map(EvidenceForm::new).collect();
        Self { rule, task, summary, because, evidence, counters, remedy }
    }
}

/// Effects apart from the answers to whoever asked.
#[derive(Debug, Default)]
pub(in crate::server) struct EffectParts {
    /// What must now be done.
    pub(in crate::server) effects: Vec<Value>,
    /// What became of each message.
    pub(in crate::server) replies: Vec<Value>,
    /// What was asked for and not done.
    pub(in crate::server) warnings: Vec<String>,
}

impl EffectParts {
    pub(in crate::server) fn of(effects: Vec<Value>) -> Self {
        let mut parts = Self::default();
        for mut effect in effects {
            match effect.get("effect").and_then(Value::as_str) {
                Some("reply") => {
                    if let Value::Object(members) = &mut effect {
                        members.remove("effect");
                    }
                    parts.replies.push(effect);
                }
                Some("warning") => {
                    let text = effect.get("text").and_then(Value::as_str);
                    parts.warnings.extend(text.map(str::to_owned));
                }
                _ => parts.effects.push(effect),
            }
        }
        parts
    }
}
