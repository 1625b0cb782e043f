//! `aldis phase-check`: what a Stop hook starts to have a claim checked. Not for people.

use std::path::PathBuf;

use aldis_store::RunId;
use clap::Args;

use super::Outcome;
use crate::app::phase_checks;
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::home;

/// Runs the checks of a claim for a Stop hook, which does not wait for them
#[derive(Debug, Args)]
#[command(hide = true, disable_help_flag = true)]
pub(super) struct PhaseCheckArgs {
    /// The run
    run: String,
    /// Which start of checks it is
    check: u32,
    /// The session's transcript
    #[arg(long)]
    transcript: Option<PathBuf>,
}

pub(super) fn run(io: &Io, args: &PhaseCheckArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let run = RunId::new(&*args.run).map_err(|error| CommandError::new(error.to_string()))?;
    phase_checks::check(&engine, &state, &run, (args.check, args.transcript.as_deref()))?;
    Ok(Outcome::Yes)
}
