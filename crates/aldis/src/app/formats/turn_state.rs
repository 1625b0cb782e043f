//! The state file of other turn managers, with all their channels.
//!
//! One file has all channels: `version`, `lastUpdated`, `agents`, `channels`, `history`. What it does
//! not have (turn numbers, why a turn ended) is added on export under names of our own, and derived
//! from its history on import.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use aldis_machine::turns::{
    Adoption, AgentState, Config, Effect, Event, HISTORY_MAX, HistoryEntry, Outcome, Persona,
    QUEUE_MAX, Reply, ReplyReason, State, Turn, TurnEndReason, is_name,
};
use aldis_signal::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The version that is written.
const VERSION: &str = "1.0";

/// All channels of a place, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSet {
    /// The channels.
    pub channels: BTreeMap<String, State>,
}

/// Why a state file cannot be used. Such a file is set aside, never overwritten.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TurnStateError {
    /// It is damaged or something else.
    #[error("not a state file: {0}")]
    Form(String),
    /// It is of another version.
    #[error("unknown version `{0}`; version 1 is supported")]
    Version(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StateFile {
    #[serde(default)]
    version: Value,
    #[serde(default)]
    agents: BTreeMap<String, FileAgent>,
    channels: BTreeMap<String, FileChannel>,
    #[serde(default)]
    history: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileAgent {
    #[serde(default)]
    state: Option<AgentState>,
    #[serde(default)]
    last_activity: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileChannel {
    #[serde(default)]
    queue: Vec<String>,
    #[serde(default)]
    current_index: usize,
    #[serde(default)]
    active_agent: Option<String>,
    #[serde(default)]
    turn_started_at: Option<Timestamp>,
    #[serde(default)]
    turn_timeout_at: Option<Timestamp>,
    #[serde(default)]
    turn_number: Option<u64>,
    #[serde(default)]
    last_ended: Option<FileEnded>,
}

#[derive(Deserialize)]
struct FileEnded {
    agent: String,
    reason: TurnEndReason,
}

impl ChannelSet {
    /// Lets a channel take an event. Messages to an unknown channel are ignored.
    pub fn on_event(&mut self, now: Timestamp, channel: &str, event: &Event) -> Outcome {
        if let Some(state) = self.channels.get_mut(channel) {
            return state.on_event(now, event);
        }
        let replies = match event {
            Event::Message { messages, .. } => messages.len(),
            _ => 1,
        };
        let reply = Reply::ignored(ReplyReason::UnknownChannel);
        Outcome { effects: vec![Effect::Reply(reply); replies], decisions: Vec::new() }
    }

    /// Reads a state file.
    ///
    /// # Errors
    ///
    /// [`TurnStateError`] when it is damaged or of another version.
    pub fn import(
        text: &str,
        config: &Config,
        personas: &BTreeMap<String, Persona>,
        now: Timestamp,
    ) -> Result<Self, TurnStateError> {
        let file: StateFile =
            serde_json::from_str(text).map_err(|error| TurnStateError::Form(error.to_string()))?;
        let version = match &file.version {
            Value::String(version) => version.clone(),
            Value::Null => VERSION.to_owned(),
            other => other.to_string(),
        };
        if version.split('.').next() != Some("1") {
            return Err(TurnStateError::Version(version));
        }
        let mut set = Self::default();
        for (name, channel) in &file.channels {
            if !is_name(name) {
                return Err(TurnStateError::Form(format!("`{name}` cannot name a channel")));
            }
            let setup = (name.clone(), config.clone(), personas.clone());
            let found = channel.found(name, &file, (config, personas, now))?;
            set.channels.insert(name.clone(), State::adopted(now, setup, found));
        }
        Ok(set)
    }

    /// Writes the state file.
    pub fn export(&self, now: Timestamp) -> Value {
        let mut agents = Map::new();
        let mut channels = Map::new();
        let mut history: Vec<(Timestamp, Value)> = Vec::new();
        for (name, state) in &self.channels {
            channels.insert(name.clone(), channel_form(state));
            for agent in state.agents().keys() {
                let form = agent_form(state, agent);
                // An agent that has the turn somewhere is shown there.
                if !agents.contains_key(agent) || form.get("state") == Some(&json!("ACTIVE")) {
                    agents.insert(agent.clone(), form);
                }
            }
            let entries = state.history().iter();
            history.extend(entries.map(|entry| (entry.at, entry_form(name, entry))));
        }
        history.sort_by_key(|(at, _)| *at);
        let dropped = history.len().saturating_sub(HISTORY_MAX);
        let history: Vec<Value> = history.into_iter().skip(dropped).map(|(_, form)| form).collect();
        json!({
            "version": VERSION,
            "lastUpdated": now,
            "agents": agents,
            "channels": channels,
            "history": history,
        })
    }
}

impl FileChannel {
    /// What the file says of the channel.
    fn found(
        &self,
        name: &str,
        file: &StateFile,
        (config, personas, now): (&Config, &BTreeMap<String, Persona>, Timestamp),
    ) -> Result<Adoption, TurnStateError> {
        let history = file.history.iter().filter_map(|entry| entry_of(name, entry)).collect();
        let mut found = Adoption { history, ..Adoption::default() };
        for agent in &self.queue {
            if !is_name(agent) || self.queue.len() > QUEUE_MAX {
                return Err(TurnStateError::Form(format!("the queue of `{name}`")));
            }
            if !found.queue.contains(agent) {
                found.queue.push(agent.clone());
            }
            let known = found.agents.entry(agent.clone()).or_default();
            if let Some(in_file) = file.agents.get(agent) {
                known.last_activity = in_file.last_activity;
                known.offline = in_file.state == Some(AgentState::Offline);
            }
        }
        let surplus = found.history.len().saturating_sub(HISTORY_MAX);
        let ended = found.history[surplus..].iter().map(|entry| (&entry.agent, entry.reason));
        let last = self.last_ended.iter().map(|ended| (&ended.agent, Some(ended.reason)));
        for (agent, reason) in ended.chain(last) {
            if let (Some(known), Some(reason)) = (found.agents.get_mut(agent), reason) {
                known.last_ended = Some(reason);
            }
        }
        // The agent that has the turn counts for more than the index.
        let active = self.active_agent.as_ref();
        let place = active.and_then(|active| found.queue.iter().position(|agent| agent == active));
        let last = found.queue.len().saturating_sub(1);
        found.index = place.unwrap_or_else(|| self.current_index.min(last));
        found.turn = self.turn_number.unwrap_or_else(|| u64::from(place.is_some()));
        found.active = active.filter(|_| place.is_some()).map(|agent| {
            let started_at = self.turn_started_at.unwrap_or(now);
            let timeout = config.timeout(personas.get(agent));
            let deadline = self.turn_timeout_at.unwrap_or_else(|| started_at.after(timeout));
            Turn::new(agent.clone(), started_at, deadline)
        });
        Ok(found)
    }
}

fn channel_form(state: &State) -> Value {
    let turn = state.holder().turn();
    let ended = state.history().iter().rev().find(|entry| entry.reason.is_some());
    json!({
        "queue": state.queue(),
        "currentIndex": state.index(),
        "activeAgent": turn.map(|turn| &turn.agent),
        "turnStartedAt": turn.map(|turn| turn.started_at),
        "turnTimeoutAt": turn.map(|turn| turn.deadline),
        "turnNumber": state.turn(),
        "lastEnded": ended.map(|entry| json!({ "agent": entry.agent, "reason": entry.reason })),
    })
}

fn agent_form(state: &State, agent: &str) -> Value {
    let known = state.agents().get(agent);
    let member = state.queue().iter().any(|queued| queued == agent);
    json!({
        "state": state.agent_state(agent),
        "currentChannel": member.then_some(state.channel()),
        "lastActivity": known.and_then(|known| known.last_activity),
    })
}

fn entry_form(channel: &str, entry: &HistoryEntry) -> Value {
    let mut details = json!({
        "turn": entry.turn,
        "reason": entry.reason,
        "durationSeconds": entry.seconds,
    });
    if let Some(next) = &entry.next_agent {
        details["nextAgent"] = json!(next);
    }
    json!({
        "timestamp": entry.at,
        "event": entry.event,
        "agentId": entry.agent,
        "channelId": channel,
        "details": details,
    })
}

/// Reads an entry of the history, if it is of this channel and can be understood.
fn entry_of(channel: &str, members: &Map<String, Value>) -> Option<HistoryEntry> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if text("channelId").is_some_and(|named| named != channel) {
        return None;
    }
    let event = text("event")?.to_owned();
    let details = members.get("details");
    let detail = |name: &str| details.and_then(|details| details.get(name));
    let reason = detail("reason").and_then(|reason| serde_json::from_value(reason.clone()).ok());
    let implied = match &*event {
        "turn_timeout" => Some(TurnEndReason::Timeout),
        "turn_completed" => Some(TurnEndReason::TurnComplete),
        _ => None,
    };
    Some(HistoryEntry {
        at: text("timestamp")?.parse().ok()?,
        agent: text("agentId")?.to_owned(),
        turn: detail("turn").and_then(Value::as_u64).unwrap_or(0),
        reason: reason.or(implied),
        seconds: detail("durationSeconds").and_then(Value::as_u64),
        next_agent: detail("nextAgent").and_then(Value::as_str).map(str::to_owned),
        event,
    })
}
