//! The view file `.caw/auto-state.json`: adopted once, then written from the store.
//!
//! Other tools read this file and keep members of their own in it. Theirs survive as they were
//! written, down to the digits of a number; ours are rewritten after every step and edits of them
//! decide nothing.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::config::{Config, clamp_iterations};
use super::pipeline::{COMPLETE, FAILED, Pipeline};
use super::state::{Detected, Start, State};
use aldis_signal::time::Timestamp;

/// The version of the file's schema.
const SCHEMA: &str = "2.0";
/// The members that a new file begins with.
const ORDER: [&str; 6] =
    ["schema_version", "active", "phase", "iteration", "max_iterations", "task_description"];
/// The options of a run in the file, beside the skip flags.
const OPTIONS: [&str; 3] = ["verbose", "no_questions", "parallel_validation"];

/// A state file as it was found.
#[derive(Debug)]
pub struct View(Members);

/// Why a file is no state of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ViewError {
    /// Not one JSON object, or one with a key twice.
    #[error("it is not valid JSON: {0}")]
    Corrupt(String),
    /// A member is missing or of the wrong type.
    #[error("its member `{0}` is missing or wrong")]
    Member(&'static str),
}

/// Members in their order, values as they were written.
#[derive(Debug, Default)]
struct Members(Vec<(String, Box<RawValue>)>);

impl View {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is not one JSON object.
    pub fn parse(text: &str) -> Result<Self, ViewError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let members = serde_json::from_str(text).map_err(|e| ViewError::Corrupt(e.to_string()))?;
        Ok(Self(members))
    }

    /// Returns whether the file says that its run goes on.
    pub fn is_active(&self) -> bool {
        let phase = self.0.text("phase");
        self.0.value("active") == Some(Value::Bool(true))
            && !matches!(phase.as_deref(), Some(COMPLETE | FAILED))
    }

    /// Returns whether the file says that its run was ended.
    pub fn is_cancelled(&self) -> bool {
        self.0.value("active") == Some(Value::Bool(false))
    }

    /// Returns the session the file is bound to.
    pub fn session(&self) -> Option<String> {
        self.0.text("session_id").filter(|session| !session.is_empty())
    }

    /// Returns the run that the file tells of.
    ///
    /// # Errors
    ///
    /// If a member that decides is missing or wrong.
    pub fn adopt(&self, defaults: &Config) -> Result<State, ViewError> {
        let members = &self.0;
        if members.text("schema_version").is_none_or(|version| version != SCHEMA) {
            return Err(ViewError::Member("schema_version"));
        }
        let phase = members.text("phase").ok_or(ViewError::Member("phase"))?;
        let iteration = members.value("iteration").and_then(|value| value.as_u64());
        let iteration = iteration.and_then(|count| u32::try_from(count).ok());
        let iteration = iteration.ok_or(ViewError::Member("iteration"))?;
        let pipeline = Pipeline::caw();
        let config = members.config(&pipeline, defaults);
        let asked = members.value("max_iterations").and_then(|value| value.as_u64());
        let detected = members.detected();
        let started_at = members.time("started_at");
        let checked =
            members.value("signals").and_then(|signals| signals.get("last_checked").cloned());
        let checked = checked.filter(|value| !value.is_null());
        let last_checked = checked.as_ref().and_then(time);
        let last_heard = detected.iter().map(|signal| signal.detected_at).max();
        let phase_started = members.time("phase_started_at").or(last_heard).or(started_at);
        let start = Start {
            task: members.text("task_description").unwrap_or_default(),
            pipeline,
            config,
            phase,
            max_iterations: clamp_iterations(asked),
            session: self.session(),
            token: None,
        };
        let mut state = State::start(phase_started.unwrap_or(Timestamp::from_millis(0)), start);
        state.adopted = true;
        // A limit that was clamped may lie below what was counted.
        state.iteration = iteration.min(state.max_iterations);
        state.started_at = started_at;
        state.open_since = started_at;
        state.last_checked = last_checked;
        // An illegible time is no sign of life, however recent another one is.
        state.last_activity = if checked.is_some() { last_checked } else { started_at };
        state.completed = members.completed(&state.pipeline);
        state.detected = detected;
        state.prompt_pending = false;
        Ok(state)
    }

    /// Returns when the file says that its run began.
    pub fn started_at(&self) -> Option<Timestamp> {
        self.0.time("started_at")
    }

    /// Returns the members of ours that differ from what the run's view says.
    ///
    /// A file that shows no edits of an earlier state of the run is simply one that was never
    /// replaced: whoever has the journal can find out.
    pub fn edits(&self, state: &State) -> Vec<String> {
        let shown = self.0.own(state);
        let wanted = state.own_members();
        let names: BTreeSet<&String> = shown.keys().chain(wanted.keys()).collect();
        names.into_iter().filter(|name| shown.get(*name) != wanted.get(*name)).cloned().collect()
    }
}

impl State {
    /// Renders the view file, keeping what is not ours in the file as it was found.
    pub fn render_view(&self, found: Option<View>) -> String {
        let mut members = found.map(|view| view.0).unwrap_or_default();
        let mut own: Vec<(String, Value)> = self.own_members().into_iter().collect();
        // A new file begins with what people look for.
        own.sort_by_key(|(name, _)| {
            ORDER.iter().position(|first| first == name).unwrap_or(ORDER.len())
        });
        for (name, value) in own {
            match (&value, members.position(&name)) {
                // What the file never had and the run does not need is not added.
                (Value::Null, None) if name != "exit_reason" => {}
                (Value::Null, Some(_)) if name == "started_at" => {}
                (Value::Object(own), Some(_)) if is_shared(&name, self) => {
                    members.merge(&name, own);
                }
                _ => members.set(&name, &value),
            }
        }
        members.pretty()
    }

    /// Our members of the file.
    fn own_members(&self) -> Map<String, Value> {
        let Self { config, .. } = self;
        let mut options = Map::new();
        for flag in self.pipeline.flags() {
            options.insert(flag.to_owned(), json!(config.skip.contains(flag)));
        }
        let set = [config.verbose, config.no_questions, config.parallel_validation];
        for (name, on) in OPTIONS.into_iter().zip(set) {
            options.insert(name.to_owned(), json!(on));
        }
        let mut own = Map::new();
        let mut put = |name: &str, value: Value| own.insert(name.to_owned(), value);
        put("schema_version", json!(SCHEMA));
        put("active", json!(self.active));
        put("phase", json!(self.phase));
        put("iteration", json!(self.iteration));
        put("max_iterations", json!(self.max_iterations));
        put("task_description", json!(self.task));
        put("started_at", json!(self.started_at));
        put("phase_started_at", json!(self.phase_started_at));
        put("completed_at", json!(self.completed_at));
        put("session_id", json!(self.session));
        put("config", Value::Object(options));
        put(
            "signals",
            json!({ "last_checked": self.last_checked, "detected_signals": self.detected }),
        );
        put("phase_durations", json!(self.durations));
        put("exit_reason", json!(self.exit_reason));
        put("last_error", json!(self.last_error));
        for phase in self.pipeline.phases.iter().filter(|p| self.completed.contains(&p.name)) {
            put(&phase.name, json!({ "signal_detected": true }));
        }
        own
    }
}

/// Whether a member is an object in which other tools keep members, too.
fn is_shared(name: &str, state: &State) -> bool {
    matches!(name, "config" | "signals") || state.pipeline.phase(name).is_some()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

impl Members {
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
            // Others may have noted a signal twice; the last time counts.
            match detected.iter_mut().find(|known| known.signal == signal.signal) {
                Some(known) => known.detected_at = known.detected_at.max(signal.detected_at),
                None => detected.push(signal),
            }
        }
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
        for (name, wanted) in state.own_members() {
            let mut value = self.value(&name).unwrap_or(Value::Null);
            // An illegible start was left as it was found.
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

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
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
