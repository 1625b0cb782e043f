//! `aldis watch`: all runs, live, on a terminal.

use std::io::IsTerminal as _;

use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::home;
use crate::tui;

/// Watch all runs live
///
/// Shows runs, tasks and channels, the open questions and the journal, and keeps them up to date. Reads
/// the store directly: no server is needed. Answer questions and pause, resume or abort runs in place;
/// `?` lists the keys.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis watch
  aldis watch 7f3kq2bn")]
pub(super) struct WatchArgs {
    /// Only this run or channel
    #[arg(value_name = "RUN|CHANNEL")]
    run: Option<String>,
}

pub(super) fn run(io: &mut Io, args: &WatchArgs) -> Result<Outcome, CommandError> {
    if !std::io::stdout().is_terminal() {
        return Err(CommandError::new("standard output is not a terminal")
            .with_help("`aldis status --json` and `aldis log --follow --json` are for programs"));
    }
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let only = args.run.as_deref().map(|name| why::find(engine.store(), name)).transpose()?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    tui::watch(&mut io.stdout, io.color_stdout, &engine, &state, only)?;
    Ok(Outcome::Yes)
}
