//! The state file `.caw/auto-state.json` of a phases run: adopted once, then written from the store.
//!
//! Other tools read this file and keep members of their own in it. Theirs survive as they were
//! written, down to the digits of a number; ours are rewritten after every step, and edits of them
//! decide nothing.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use aldis_machine::phases::{
    Adoption, COMPLETE, Config, DETECTED_MAX, Detected, FAILED, Pipeline, Start, State,
    clamp_iterations,
};
use aldis_machine::proof::Proof;
use aldis_signal::time::Timestamp;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

/// The version of the file's schema.
const SCHEMA: &str = "2.0";
/// The members that a new file begins with.
const ORDER: [&str; 6] =
    ["schema_version", "active", "phase", "iteration", "max_iterations", "task_description"];
/// The options of a run in the file, beside the skip flags.
const OPTIONS: [&str; 3] = ["verbose", "no_questions", "parallel_validation"];

/// A state file as it was found.
#[derive(Debug)]
pub struct AutoStateFile(FileMembers);

/// Why a file is no state of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AutoStateError {
    /// Not one JSON object, or one with a key twice.
    #[error("not valid JSON: {0}")]
    Corrupt(String),
    /// A member is missing or of the wrong type.
    #[error("member `{0}` is missing or wrong")]
    Member(&'static str),
}

/// Members in their order, values as they were written.
#[derive(Debug, Default)]
struct FileMembers(Vec<(String, Box<RawValue>)>);

impl AutoStateFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is not one JSON object.
    pub fn parse(text: &str) -> Result<Self, AutoStateError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let members =
            serde_json::from_str(text).map_err(|e| AutoStateError::Corrupt(e.to_string()))?;
        Ok(Self(members))
    }

    /// Returns whether the run in the file is active.
    pub fn is_active(&self) -> bool {
        let phase = self.0.text("phase");
        self.0.value("active") == Some(Value::Bool(true))
            && !matches!(phase.as_deref(), Some(COMPLETE | FAILED))
    }

    /// Returns whether somebody ended the run by the file.
    pub fn is_cancelled(&self) -> bool {
        self.0.value("active") == Some(Value::Bool(false))
    }

    /// Returns the session the file is bound to.
    pub fn session(&self) -> Option<String> {
        self.0.text("session_id").filter(|session| !session.is_empty())
    }

    /// Returns the run that the file describes.
    ///
    /// # Errors
    ///
    /// If a member that decides is missing or wrong.
    pub fn adopt(&self, defaults: &Config) -> Result<State, AutoStateError> {
        let members = &self.0;
        if members.text("schema_version").is_none_or(|version| version != SCHEMA) {
            return Err(AutoStateError::Member("schema_version"));
        }
        let phase = members.text("phase").ok_or(AutoStateError::Member("phase"))?;
        let iteration = members.value("iteration").and_then(|value| value.as_u64());
        let iteration = iteration.and_then(|count| u32::try_from(count).ok());
        let iteration = iteration.ok_or(AutoStateError::Member("iteration"))?;
        let pipeline = Pipeline::caw();
        let config = members.config(&pipeline, defaults);
        let asked = members.value("max_iterations").and_then(|value| value.as_u64());
        let detected = members.detected();
        let started_at = members.time("started_at");
        let checked =
            members.value("signals").and_then(|signals| signals.get("last_checked").cloned());
        let checked = checked.filter(|value| !value.is_null());
        let last_checked = checked.as_ref().and_then(time);
        let last_detected = detected.iter().map(|signal| signal.detected_at).max();
        let phase_started = members.time("phase_started_at").or(last_detected).or(started_at);
        let start = Start {
            task: members.text("task_description").unwrap_or_default(),
            pipeline,
            config,
            phase,
            max_iterations: clamp_iterations(asked),
            session: self.session(),
            token: None,
            proof: Proof::default(),
        };
        let found = Adoption {
            iteration,
            started_at,
            last_checked,
            // An unreadable time is no activity, however recent another one is.
            last_activity: if checked.is_some() { last_checked } else { started_at },
            completed: members.completed(&start.pipeline),
            detected,
        };
        Ok(State::adopted(phase_started.unwrap_or_default(), start, found))
    }

    /// Renders the file of a run, keeping what is not ours in the file as it was found.
    pub fn render(state: &State, found: Option<Self>) -> String {
        let mut members = found.map(|file| file.0).unwrap_or_default();
        let mut own: Vec<(String, Value)> = own_members(state).into_iter().collect();
        // A new file begins with what people look for.
        own.sort_by_key(|(name, _)| {
            ORDER.iter().position(|first| first == name).unwrap_or(ORDER.len())
        });
        for (name, value) in own {
            match (&value, members.position(&name)) {
                // What the file never had and the run does not need is not added.
                (Value::Null, None) if name != "exit_reason" => {}
                (Value::Null, Some(_)) if name == "started_at" => {}
                (Value::Object(own), Some(_)) if is_shared(&name, state) => {
                    members.merge(&name, own);
                }
                _ => members.set(&name, &value),
            }
        }
        members.pretty()
    }

    /// Returns when the run in the file began.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.0.time("started_at")
    }

    /// Returns the members of ours that differ from what the file of this run should have.
    ///
    /// A file without edits of an earlier state of the run was simply never replaced: whoever has the
    /// journal can find out.
    pub fn edits(&self, state: &State) -> Vec<String> {
        let shown = self.0.own(state);
        let wanted = own_members(state);
        let names: BTreeSet<&String> = shown.keys().chain(wanted.keys()).collect();
        names.into_iter().filter(|name| shown.get(*name) != wanted.get(*name)).cloned().collect()
    }
}

/// Our members of the file.
fn own_members(state: &State) -> Map<String, Value> {
    let config = state.config();
    let mut options = Map::new();
    for flag in state.pipeline().flags() {
        options.insert(flag.to_owned(), json!(config.skip.contains(flag)));
    }
    let set = [config.verbose, config.no_questions, config.parallel_validation];
    for (name, on) in OPTIONS.into_iter().zip(set) {
        options.insert(name.to_owned(), json!(on));
    }
    let mut own = Map::new();
    let mut put = |name: &str, value: Value| own.insert(name.to_owned(), value);
    put("schema_version", json!(SCHEMA));
    put("active", json!(state.is_active()));
    put("phase", json!(state.phase()));
    put("iteration", json!(state.iteration()));
    put("max_iterations", json!(state.max_iterations()));
    put("task_description", json!(state.task()));
    put("started_at", json!(state.started_at()));
    put("phase_started_at", json!(state.phase_started_at()));
    put("completed_at", json!(state.completed_at()));
    put("session_id", json!(state.session()));
    put("config", Value::Object(options));
    put(
        "signals",
        json!({ "last_checked": state.last_checked(), "detected_signals": state.detected() }),
    );
    put("phase_durations", json!(state.durations()));
    put("exit_reason", json!(state.exit_reason()));
    put("last_error", json!(state.last_error()));
    for phase in state.pipeline().phases.iter().filter(|p| state.completed().contains(&p.name)) {
        put(&phase.name, json!({ "signal_detected": true }));
    }
    own
}

/// Whether a member is an object in which other tools keep members, too.
fn is_shared(name: &str, state: &State) -> bool {
    matches!(name, "config" | "signals") || state.pipeline().phase(name).is_some()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

impl FileMembers {
    fn position(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|(other, _)| other == name)
    }

    fn value(&self, name: &str) -> Option<Value> {
        let at = self.position(name)?;
        serde_json::from_str(self.0[at].1.get()).ok()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.value(name)?.as_str().map(str::to_owned)
    }

    fn time(&self, name: &str) -> Option<Timestamp> {
        time(&self.value(name)?)
    }

    fn config(&self, pipeline: &Pipeline, defaults: &Config) -> Config {
        let options = self.value("config").unwrap_or_default();
        let set = |name: &str| options.get(name).and_then(Value::as_bool).unwrap_or(false);
        Config {
            skip: pipeline
                .flags()
                .into_iter()
                .filter(|flag| set(flag))
                .map(str::to_owned)
                .collect(),
            verbose: set("verbose"),
            no_questions: set("no_questions"),
            parallel_validation: set("parallel_validation"),
            ..defaults.clone()
        }
    }

    fn detected(&self) -> Vec<Detected> {
        let signals = self.value("signals").unwrap_or_default();
        let listed = signals.get("detected_signals").and_then(Value::as_array);
        let read = |value: &Value| Detected::deserialize(value).ok();
        let mut detected: Vec<Detected> = Vec::new();
        for signal in listed.into_iter().flatten().filter_map(read) {
            // Other tools may have written a signal twice; the last time counts.
            match detected.iter_mut().find(|known| known.signal == signal.signal) {
                Some(known) => known.detected_at = known.detected_at.max(signal.detected_at),
                None => detected.push(signal),
            }
        }
        let surplus = detected.len().saturating_sub(DETECTED_MAX);
        detected.drain(..surplus);
        detected
    }

    fn completed(&self, pipeline: &Pipeline) -> BTreeSet<String> {
        let detected = |name: &str| {
            let phase = self.value(name);
            phase.and_then(|phase| phase.get("signal_detected")?.as_bool()).unwrap_or(false)
        };
        let names = pipeline.phases.iter().map(|phase| phase.name.clone());
        names.filter(|name| detected(name)).collect()
    }

    /// Our members as the file has them.
    fn own(&self, state: &State) -> Map<String, Value> {
        let mut own = Map::new();
        for (name, wanted) in own_members(state) {
            let mut value = self.value(&name).unwrap_or(Value::Null);
            // An unreadable start was left as it was found.
            if name == "started_at" && wanted.is_null() && time(&value).is_none() {
                value = Value::Null;
            }
            if is_shared(&name, state)
                && let (Value::Object(value), Value::Object(wanted)) = (&mut value, &wanted)
            {
                value.retain(|member, _| wanted.contains_key(member));
            }
            own.insert(name, value);
        }
        own
    }

    fn set(&mut self, name: &str, value: &Value) {
        // A value that was just built renders.
        let Ok(raw) = to_raw_value(value) else { return };
        match self.position(name) {
            Some(at) => self.0[at].1 = raw,
            None => self.0.push((name.to_owned(), raw)),
        }
    }

    /// Sets members of an object and keeps its others.
    fn merge(&mut self, name: &str, own: &Map<String, Value>) {
        let Some(at) = self.position(name) else { return };
        let mut inner: Self = serde_json::from_str(self.0[at].1.get()).unwrap_or_default();
        for (member, value) in own {
            inner.set(member, value);
        }
        let raw = RawValue::from_string(inner.compact());
        if let Ok(raw) = raw {
            self.0[at].1 = raw;
        }
    }

    fn compact(&self) -> String {
        let shown =
            |(name, value): &(String, Box<RawValue>)| format!("{}:{}", json!(name), value.get());
        format!("{{{}}}", self.0.iter().map(shown).collect::<Vec<_>>().join(","))
    }

    /// One member a line: easy on readers, and on those who compare versions.
    fn pretty(&self) -> String {
        let shown =
            |(name, value): &(String, Box<RawValue>)| format!("  {}: {}", json!(name), value.get());
        format!("{{\n{}\n}}\n", self.0.iter().map(shown).collect::<Vec<_>>().join(",\n"))
    }
}

impl<'de> Deserialize<'de> for FileMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = FileMembers;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FileMembers, A::Error> {
                let mut members = FileMembers::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if members.position(&name).is_some() {
                        return Err(de::Error::custom(format!("member `{name}` is there twice")));
                    }
                    members.0.push((name, value));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
