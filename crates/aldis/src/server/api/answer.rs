//! What requests that show or change a run are answered.

use aldis_engine::Snapshot;
use axum::Json;
use serde_json::{Value, json};

use crate::server::runs::Taken;
use crate::view::known::Known;

/// What a change led to.
pub(super) fn answered(taken: Taken) -> Json<Value> {
    let Parts { effects, replies, warnings } = Parts::of(taken.effects);
    let warnings: Vec<String> = taken.warnings.into_iter().chain(warnings).collect();
    Json(json!({
        "v": 1,
        "run": shown(Snapshot::from(&*taken.run)),
        "effects": effects,
        "replies": replies,
        "warnings": warnings,
        "decision": taken.decisions.last(),
        "decisions": taken.decisions,
        "repeated": taken.repeated,
    }))
}

/// What a run looks like from outside. One that cannot be read still has a name.
pub(super) fn shown(snapshot: Snapshot) -> Value {
    let run = snapshot.run.clone();
    let form = Known::new(snapshot).map_err(|error| error.to_string());
    let form = form
        .and_then(|known| serde_json::to_value(known.form()).map_err(|error| error.to_string()));
    let mut form = form.unwrap_or_else(|error| {
        tracing::warn!(run = %run.id, %error, "cannot show the run");
        json!({})
    });
    if let Value::Object(members) = &mut form {
        let mut add = |name: &str, value: Value| {
            members.entry(name).or_insert(value);
        };
        add("v", json!(1));
        add("run", json!(run.id.as_str()));
        add("machine", json!(run.record.machine));
        add("project", json!(run.record.project));
        add("title", json!(run.record.title));
        add("active", json!(run.record.active));
        add("revision", json!(run.revision.0));
        add("created", json!(run.created));
        add("updated", json!(run.updated));
    }
    form
}

/// Effects apart from the answers to whoever asked.
#[derive(Debug, Default)]
pub(in crate::server) struct Parts {
    /// What must now be done.
    pub(in crate::server) effects: Vec<Value>,
    /// What became of each message.
    pub(in crate::server) replies: Vec<Value>,
    /// What was asked for and not done.
    pub(in crate::server) warnings: Vec<String>,
}

impl Parts {
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
