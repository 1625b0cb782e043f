//! Runs and what needs a person, as the dashboard reads them: made of a [`RunView`], with every word of
//! an agent made harmless and without secrets.

use std::collections::BTreeMap;

use aldis_engine::{Snapshot, State};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use schemars::JsonSchema;
use serde::Serialize;

use crate::view::display;
use crate::view::run_view::RunView;

/// How much of a title is shown.
const TITLE_MAX: usize = 200;

/// A run at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct RunCard {
    /// Its name.
    pub(crate) run: String,
    /// `run`, `delivery`, `phases` or `turns`.
    pub(crate) machine: String,
    /// What people call it.
    pub(crate) title: String,
    /// The project's directory; empty where there is none.
    pub(crate) project: String,
    /// What its agents run in, where that is known.
    pub(crate) host: Option<String>,
    /// Whether it goes on.
    pub(crate) active: bool,
    /// `needs_you`, `running`, `done` or `failed`.
    pub(crate) state: String,
    /// `good`, `neutral`, `warn` or `bad`.
    pub(crate) tone: String,
    /// How it is, in a word or two.
    pub(crate) status: String,
    /// The rest of that line.
    pub(crate) detail: String,
    /// The phase that its agent reported, or that it is in.
    pub(crate) phase: Option<String>,
    /// How far it has come, in percent.
    pub(crate) progress: Option<u8>,
    /// When it began.
    #[schemars(with = "String")]
    pub(crate) began: Timestamp,
    /// When it ended.
    #[schemars(with = "Option<String>")]
    pub(crate) ended: Option<Timestamp>,
    /// The last sign that the work moves.
    #[schemars(with = "String")]
    pub(crate) last_activity: Timestamp,
    /// Tokens, as far as hosts report them.
    pub(crate) tokens: u64,
    /// Millionths of a dollar, as far as hosts report them.
    pub(crate) micro_dollars: u64,
    /// When the current turn is over.
    #[schemars(with = "Option<String>")]
    pub(crate) deadline: Option<Timestamp>,
    /// The last claim that did not count, and why.
    pub(crate) refused: Option<String>,
    /// What a human can do about it.
    pub(crate) next: Option<String>,
    /// How many tasks of a delivery are where.
    pub(crate) tasks: BTreeMap<String, usize>,
    /// How many things of it need a person.
    pub(crate) needs: usize,
    /// How much happened in each minute of the last half hour, the oldest first.
    pub(crate) activity: Vec<u32>,
}

impl RunCard {
    /// Returns the card of a run of which so many things need a person.
    pub(crate) fn new(snapshot: &Snapshot, view: &RunView, needs: usize) -> Self {
        let run = &snapshot.run;
        let tone = view.status.0.as_str();
        let state = match (view.live, tone) {
            (true, _) if needs > 0 => "needs_you",
            (true, _) => "running",
            (false, "bad" | "warn") => "failed",
            (false, _) => "done",
        };
        let phase = match &snapshot.state {
            State::Run(state) => state.phase().map(clean),
            State::Phases(state) => Some(clean(state.phase())),
            State::Delivery(_) | State::Turns(_) | State::Unreadable(_) => None,
        };
        let mut tasks = BTreeMap::new();
        for task in &view.tasks {
            *tasks.entry(task.status.clone()).or_default() += 1;
        }
        Self {
            run: view.id.to_string(),
            machine: view.machine.clone(),
            title: title(view),
            project: view.project.clone(),
            host: view.host.as_deref().map(clean),
            active: view.live,
            state: state.to_owned(),
            tone: tone.to_owned(),
            status: clean(&view.status.1),
            detail: clean(&view.detail),
            phase,
            progress: view.progress,
            began: run.created,
            ended: (!view.live).then_some(run.updated),
            last_activity: view.last_activity.unwrap_or(run.updated),
            tokens: view.cost.tokens,
            micro_dollars: view.cost.micro_dollars,
            deadline: view.deadline,
            refused: view.refused.as_deref().map(clean),
            next: view.remedy.clone(),
            tasks,
            needs,
            activity: Vec::new(),
        }
    }
}

/// What people call a run.
pub(crate) fn title(view: &RunView) -> String {
    let title = view.title.trim();
    let title = if title.is_empty() { view.id.as_str() } else { title };
    display::excerpt(&redact(title), TITLE_MAX)
}

/// Words for a place in one line.
pub(crate) fn clean(text: &str) -> String {
    display::line(&redact(text))
}

/// Words in their own lines.
pub(crate) fn clean_lines(text: &str) -> String {
    display::lines(&redact(text))
}

/// Why something needs a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Need {
    /// An agent asks.
    Question,
    /// Its host denied it something.
    Permission,
    /// The process of the run is gone.
    Unsupervised,
    /// The work makes no progress.
    Stalled,
    /// A limit of the run or of its host is used up.
    Capped,
    /// It ended badly.
    Failed,
    /// A claim did not hold when it was checked.
    CheckFailed,
    /// Somebody paused it.
    Paused,
}

impl Need {
    /// Returns what people call it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Question => "Question",
            Self::Permission => "Permission",
            Self::Unsupervised => "Unsupervised",
            Self::Stalled => "Stalled",
            Self::Capped => "Limit used up",
            Self::Failed => "Failed",
            Self::CheckFailed => "Check failed",
            Self::Paused => "Paused",
        }
    }
}

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct InboxItem {
    /// Its name among those of its run.
    pub(crate) id: String,
    /// Why.
    pub(crate) need: Need,
    /// The run.
    pub(crate) run: String,
    /// What people call the run.
    pub(crate) title: String,
    /// The project's directory.
    pub(crate) project: String,
    /// What its agents run in, where that is known.
    pub(crate) host: Option<String>,
    /// The task of a delivery that it is about.
    pub(crate) task: Option<String>,
    /// Since when.
    #[schemars(with = "String")]
    pub(crate) at: Timestamp,
    /// What is asked, or wrong.
    pub(crate) text: String,
    /// What one should know to decide.
    pub(crate) context: Vec<Fact>,
    /// The end of what a program printed.
    pub(crate) output: Option<String>,
    /// Answers that mean something of their own.
    pub(crate) options: Vec<String>,
    /// What can be done about it; the first is the obvious one.
    pub(crate) actions: Vec<InboxAction>,
}

impl InboxItem {
    /// Whether it is this question of this run.
    pub(crate) fn is_question(&self, run: &RunId, id: &str) -> bool {
        let asks = |action: &InboxAction| matches!(action, InboxAction::Answer { question } if question == id);
        self.run == run.as_str() && self.actions.iter().any(asks)
    }
}

/// A label and what belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Fact {
    /// Such as `next`.
    pub(crate) label: String,
    /// The words.
    pub(crate) text: String,
}

/// What can be done about something. Exhaustive: whoever shows it knows how to do each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum InboxAction {
    /// Answer the question of this name.
    Answer {
        /// Its name.
        question: String,
    },
    /// Let the run continue.
    Resume,
    /// Stop it for now.
    Pause,
    /// End it for good.
    Abort,
    /// Type this where the project is.
    Command {
        /// The command.
        command: String,
    },
    /// Take it off the list.
    Dismiss,
}
