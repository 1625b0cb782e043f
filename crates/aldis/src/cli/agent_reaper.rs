//! `aldis agent-reaper`: what `aldis` starts itself with to hold an agent's processes. Not for people.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use aldis_process::{ReaperArgs, run_reaper};

/// Holds an agent's processes for a supervisor, whose socket is standard input
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct AgentReaperArgs {
    /// Whether the agent gets a terminal
    #[arg(long)]
    terminal: bool,
    /// The control group to start it in
    #[arg(long, value_name = "DIR")]
    cgroup: Option<PathBuf>,
    /// The program to start
    #[arg(long, value_name = "PATH")]
    program: PathBuf,
    /// Its name and arguments
    #[arg(last = true, required = true, value_name = "ARGS")]
    args: Vec<OsString>,
}

pub(super) fn run(args: AgentReaperArgs) -> Result<Outcome, CommandError> {
    let AgentReaperArgs { terminal, cgroup, program, args } = args;
    run_reaper(&ReaperArgs { terminal, cgroup, program, args })
        .map_err(|error| CommandError::new(format!("failed to hold an agent: {error}")))?;
    Ok(Outcome::Yes)
}
