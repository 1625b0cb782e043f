//! One agent at work: its command, what it writes, where that is kept, and the repository it works in.

pub(crate) mod ear;
pub(crate) mod git;
pub(crate) mod logbook;
pub(crate) mod recipe;
