//! How an agent gets its prompt.

use serde::{Deserialize, Serialize};

/// How an agent gets its prompt.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PromptBy {
    /// As the last argument
    Argument,
    /// In a file whose name is the last argument
    File,
    /// On standard input
    #[default]
    Stdin,
}
