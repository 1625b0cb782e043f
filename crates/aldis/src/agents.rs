//! One agent at work: its command, what it writes, where that is kept, and the repository it works in.

pub(crate) mod command;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod listener;
pub(crate) mod output_log;
pub(crate) mod session;
