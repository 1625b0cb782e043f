//! Channels as programs read them.

use std::collections::BTreeMap;

use aldis_machine::Decision;
use aldis_machine::turns::{
    AgentState, Config, Effect, HistoryEntry, Outcome, Reply, State, TurnHolder,
};
use aldis_signal::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::VERSION;
use super::effects::{ReplyForm, TurnsEffect};
use crate::view::run_view::RunView;

/// A channel: who has the floor, until when, and who is next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// Always `channel`.
    #[schemars(extend("const" = "channel"))]
    pub kind: String,
    /// Its name.
    pub channel: String,
    /// `held`, `interrupted`, `paused`, `free` or `closed`.
    pub floor: String,
    /// Who has the floor, or will have it when the turn goes on.
    pub active_agent: Option<String>,
    /// The number of the latest turn.
    pub turn: u64,
    /// Since when the turn goes on.
    pub turn_started_at: Option<String>,
    /// When it is over; `null` while it waits.
    pub turn_timeout_at: Option<String>,
    /// Why the channel rests.
    pub paused: Option<String>,
    /// Who takes part, in order.
    pub queue: Vec<String>,
    /// The place of whoever has the floor.
    pub current_index: usize,
    /// How each agent stands: `ACTIVE`, `QUEUED`, `WAITING`, `IDLE` or `OFFLINE`.
    pub agents: BTreeMap<String, AgentForm>,
    /// How the channel is run.
    #[schemars(with = "Value")]
    pub config: Config,
    /// What happened last, oldest first.
    pub history: Vec<HistoryForm>,
    /// How it is, in one line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// How good that is: `good`, `neutral`, `warn` or `bad`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tone: Option<String>,
    /// What a human can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// An agent in a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentForm {
    /// How it stands.
    #[schemars(with = "String")]
    pub state: AgentState,
    /// When it last said something.
    pub last_activity: Option<String>,
    /// How its latest turn ended.
    pub last_ended: Option<String>,
}

/// A line of a channel's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryForm {
    /// When.
    pub at: String,
    /// What.
    pub event: String,
    /// Who.
    pub agent: String,
    /// The turn.
    pub turn: u64,
    /// Why a turn ended.
    pub reason: Option<String>,
    /// How many seconds it took.
    pub seconds: Option<u64>,
}

/// A line that `step turns` prints: what one event led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelStepForm {
    /// Format version.
    #[schemars(extend("const" = 1))]
    pub v: u32,
    /// The time of the event.
    pub at: String,
    /// What must now be done.
    #[schemars(with = "Vec<TurnsEffect>")]
    pub effects: Vec<Effect>,
    /// What became of each message.
    #[schemars(with = "Vec<ReplyForm>")]
    pub replies: Vec<Reply>,
    /// What was asked for and not done.
    pub warnings: Vec<String>,
    /// Why; `null` when nothing changed.
    #[schemars(with = "Option<Value>")]
    pub decision: Option<Decision>,
    /// When to send `wake`, if nothing else happens before.
    #[serde(default)]
    pub wake: Option<String>,
    /// The channel after it; `null` when it is not one of ours.
    pub state: Option<ChannelForm>,
    /// The state file, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exported: Option<Value>,
}

impl ChannelForm {
    /// Returns the form of a channel with what people are shown of it.
    pub(crate) fn shown(state: &State, view: &RunView) -> Self {
        let (summary, tone) = (Some(view.summary()), Some(view.status.0.as_str().to_owned()));
        Self { summary, tone, remedy: view.remedy.clone(), ..Self::new(state) }
    }

    pub(crate) fn new(state: &State) -> Self {
        let text = |at: Timestamp| at.to_string();
        let turn = state.holder().turn();
        let held = state.holder().active();
        let (floor, paused) = match state.holder() {
            TurnHolder::Nobody if state.is_closed() => ("closed", None),
            TurnHolder::Nobody => ("free", None),
            TurnHolder::Active(_) => ("held", None),
            TurnHolder::Interrupted { .. } => ("interrupted", None),
            TurnHolder::Paused { why, .. } => ("paused", Some(why.clone())),
        };
        let agents =
            state.agents().keys().map(|agent| (agent.clone(), AgentForm::new(state, agent)));
        Self {
            v: VERSION,
            kind: "channel".to_owned(),
            channel: state.channel().to_owned(),
            floor: floor.to_owned(),
            active_agent: turn.map(|turn| turn.agent.clone()),
            turn: state.turn(),
            turn_started_at: turn.map(|turn| text(turn.started_at)),
            turn_timeout_at: held.map(|turn| text(turn.deadline)),
            paused,
            queue: state.queue().to_vec(),
            current_index: state.index(),
            agents: agents.collect(),
            config: state.config().clone(),
            history: state.history().iter().map(HistoryForm::new).collect(),
            summary: None,
            tone: None,
            remedy: None,
        }
    }
}

impl AgentForm {
    fn new(state: &State, agent: &str) -> Self {
        let known = state.agents().get(agent);
        let ended = known.and_then(|known| known.last_ended);
        Self {
            state: state.agent_state(agent),
            last_activity: known.and_then(|known| known.last_activity).map(|at| at.to_string()),
            last_ended: ended.map(|reason| reason.as_str().to_owned()),
        }
    }
}

impl HistoryForm {
    fn new(entry: &HistoryEntry) -> Self {
        Self {
            at: entry.at.to_string(),
            event: entry.event.clone(),
            agent: entry.agent.clone(),
            turn: entry.turn,
            reason: entry.reason.map(|reason| reason.as_str().to_owned()),
            seconds: entry.seconds,
        }
    }
}

impl ChannelStepForm {
    pub(crate) fn new(at: Timestamp, outcome: &Outcome, state: Option<&State>) -> Self {
        let answers =
            |effect: &&Effect| matches!(effect, Effect::Reply(_) | Effect::Warning { .. });
        let effects = outcome.effects.iter().filter(|it| !answers(it));
        Self {
            v: VERSION,
            at: at.to_string(),
            effects: effects.cloned().collect(),
            replies: outcome.replies().into_iter().cloned().collect(),
            warnings: outcome.warnings().into_iter().map(str::to_owned).collect(),
            decision: outcome.decisions.last().cloned(),
            wake: state.and_then(State::next_wake).map(|wake| wake.to_string()),
            state: state.map(ChannelForm::new),
            exported: None,
        }
    }
}
