//! `aldis watch`: what goes on, live, on a terminal.

use std::io::IsTerminal as _;

use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::tui;

/// Watch what goes on, live
///
/// Shows runs, tasks and channels as they stand, the questions that wait for you and the journal,
/// and follows them. Reads the store itself: no server is needed, and nobody is held up. Questions are
/// answered and runs paused, resumed and aborted in place; `?` lists the keys.
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
    tui::watch(&mut io.stdout, io.color_stdout, &engine, only)?;
    Ok(Outcome::Yes)
}
