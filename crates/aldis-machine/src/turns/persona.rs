//! What is known about an agent before its first message: its name, its picture, its time limit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_name;

/// The longest name that is shown.
const NAME_MAX: usize = 80;
/// The longest address of a picture.
const URL_MAX: usize = 2_048;

/// An agent's persona. Files of personas hold more than this; the rest is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Persona {
    /// What it is called in the channel.
    #[serde(alias = "display_name", skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Where its picture is.
    #[serde(alias = "avatar_url", skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
    /// The higher, the earlier its turn where priority decides.
    pub priority: i64,
    /// How it takes turns.
    #[serde(alias = "turn_behavior")]
    pub turn_behavior: TurnBehavior,
}

/// How an agent takes turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TurnBehavior {
    /// How many seconds a turn of its has.
    #[serde(alias = "timeout_seconds", skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
}

/// Why a file of personas cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PersonaError {
    /// It is not valid JSON.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// A persona has a member of the wrong kind.
    #[error("persona `{agent}`: {detail}")]
    Member {
        /// Which one.
        agent: String,
        /// What is wrong.
        detail: String,
    },
    /// A name that cannot be an agent's.
    #[error("`{0}` cannot name an agent; use 1 to 64 letters, digits, `.`, `_` or `-`")]
    Name(String),
}

impl Persona {
    /// Reads a file of personas: `{"personas": {"pm": {..}}}`, `{"pm": {..}}`, or a single persona
    /// with an `id`, for which `name` stands in where there is none.
    ///
    /// # Errors
    ///
    /// Fails with the first persona that cannot be used.
    pub fn read_all(
        text: &str,
        name: Option<&str>,
    ) -> Result<BTreeMap<String, Self>, PersonaError> {
        let json = |error: serde_json::Error| PersonaError::Json(error.to_string());
        let mut members: serde_json::Map<String, Value> =
            serde_json::from_str(text).map_err(json)?;
        if let Some(Value::Object(inner)) = members.remove("personas") {
            members = inner;
        } else if let Some(id) = single(&members, name) {
            members = serde_json::Map::from_iter([(id, Value::Object(members))]);
        }
        members.into_iter().map(|(agent, value)| read(agent, value)).collect()
    }

    /// Cuts what would be too long to show.
    fn bounded(mut self) -> Self {
        self.display_name = self.display_name.map(|name| name.chars().take(NAME_MAX).collect());
        self.avatar_url = self.avatar_url.filter(|url| url.len() <= URL_MAX);
        self
    }
}

/// The name of the only persona in a file, if it is such a file.
fn single(members: &serde_json::Map<String, Value>, name: Option<&str>) -> Option<String> {
    let own = members.get("id").or_else(|| members.get("agentId")).and_then(Value::as_str);
    if let Some(id) = own {
        return Some(id.to_owned());
    }
    let known = ["turnBehavior", "displayName", "avatarUrl"];
    let is_persona = known.iter().any(|member| members.contains_key(*member));
    name.filter(|_| is_persona).map(str::to_owned)
}

fn read(agent: String, value: Value) -> Result<(String, Persona), PersonaError> {
    if !is_name(&agent) {
        return Err(PersonaError::Name(agent));
    }
    match serde_json::from_value::<Persona>(value) {
        Ok(persona) => Ok((agent, persona.bounded())),
        Err(error) => Err(PersonaError::Member { agent, detail: error.to_string() }),
    }
}
