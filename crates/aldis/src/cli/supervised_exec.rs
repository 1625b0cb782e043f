//! `aldis supervised-exec`: what `aldis` starts itself with to keep an agent. Not for people.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use aldis_process::{Duty, keep};

/// Keeps an agent for a supervisor, whose socket is standard input
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct SupervisedExecArgs {
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

pub(super) fn run(args: SupervisedExecArgs) -> Result<Outcome, CommandError> {
    let SupervisedExecArgs { terminal, cgroup, program, args } = args;
    keep(&Duty { terminal, cgroup, program, args })
        .map_err(|error| CommandError::new(format!("failed to keep an agent: {error}")))?;
    Ok(Outcome::Yes)
}
