//! The arguments of the reaper, the helper process that stands between supervisor and agent.
//!
//! Only Linux has one. The command line is portable all the same, so that the program that embeds
//! this crate offers the hidden command [`REAPER_COMMAND`] on every system.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::os;

/// The hidden command with which a program becomes a reaper: its arguments are [`ReaperArgs`], and
/// it calls [`run_reaper`].
pub const REAPER_COMMAND: &str = "agent-reaper";

/// What the reaper is told on its command line. Directory and environment are inherited.
#[derive(Debug)]
pub struct ReaperArgs {
    /// Whether the agent's streams are a terminal (`--terminal`).
    pub terminal: bool,
    /// The control group to start the agent in (`--cgroup DIR`).
    pub cgroup: Option<PathBuf>,
    /// The program to start (`--program PATH`).
    pub program: PathBuf,
    /// The agent's `argv`, its name for itself first (after `--`).
    pub args: Vec<OsString>,
}

/// Starts the agent and waits until it and all its descendants have ended. Standard input must be
/// the socket of a supervisor.
///
/// # Errors
///
/// Fails if standard input is not such a socket, and on systems without a reaper.
pub fn run_reaper(args: &ReaperArgs) -> io::Result<()> {
    os::run_reaper(args)
}
