//! `aldis explain`: every signal and near miss as a diagnostic, with the source and the fix.

use clap::Args;

use super::{Outcome, report};
use crate::app::explain::explain;
use crate::app::selection::{Selection, SelectionArgs};
use crate::error::CommandError;
use crate::io::Io;

/// Show every signal and near miss with its source and the fix
///
/// Answers "why did it stop?" and "why did it not?": shows each signal with the words that count, and
/// each near miss with the reason why it does not count and what to write instead. Candidates in files, prompts and
/// tool output are counted, and listed with --all. Exits like `scan`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis explain session.jsonl
  aldis explain --dialect caw --all session.jsonl
  some-agent | aldis explain")]
pub(super) struct ExplainArgs {
    #[command(flatten)]
    selection: SelectionArgs,

    /// Also list each candidate that the agent did not write
    #[arg(long)]
    all: bool,
}

pub(super) fn run(io: &mut Io, args: ExplainArgs) -> Result<Outcome, CommandError> {
    let selection = Selection::new(args.selection)?;
    let explained = explain(io, &selection, args.all, report)?;
    Ok(match (explained.unread, explained.signals) {
        (true, _) => Outcome::Error,
        (false, 0) => Outcome::No,
        (false, _) => Outcome::Yes,
    })
}
