//! What passes before whoever watches a run or a delivery.

pub(crate) mod delivery;
pub(crate) mod run;

/// How much is shown, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// Whether colours are.
    pub(crate) color: bool,
    /// Whether the agent's words are not.
    pub(crate) quiet: bool,
    /// Whether programs read it.
    pub(crate) json: bool,
    /// Whether a person looks at a terminal.
    pub(crate) terminal: bool,
}
