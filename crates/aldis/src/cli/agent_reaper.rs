//! `aldis agent-reaper`: what `aldis` starts itself with to hold an agent's processes. Not for people.

use std::ffi::OsString;

use aldis_process::{ReaperArgs, run_reaper};
use clap::Args;

use super::Outcome;
use crate::error::CommandError;

/// Holds an agent's processes for a supervisor, whose socket is standard input
#[derive(Debug, Args)]
#[command(hide = true, disable_help_flag = true)]
pub(super) struct AgentReaperArgs {
    /// What a supervisor passes
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(super) fn run(args: AgentReaperArgs) -> Result<Outcome, CommandError> {
    let args = ReaperArgs::parse(args.args)
        .ok_or_else(|| CommandError::new("started by a supervisor, not by people"))?;
    run_reaper(&args)
        .map_err(|error| CommandError::new(format!("failed to hold an agent: {error}")))?;
    Ok(Outcome::Yes)
}
