//! What is known about an agent before its first message: its name, its picture, its time limit.

use serde::{Deserialize, Serialize};

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
