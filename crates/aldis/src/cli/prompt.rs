//! `aldis prompt`: what to tell an agent so that it speaks a dialect.

use aldis_signal::prompt::instructions;
use clap::Args;

use super::Outcome;
use crate::app::selection;
use crate::error::CommandError;
use crate::io::Io;
use crate::view::display;

/// Print the instructions for an agent to report in a dialect
///
/// Put the text into the agent's prompt or instruction file. It describes the signals without
/// containing one, so an agent that repeats them signals nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis prompt caw >> AGENTS.md
  aldis prompt turn=OVER_TO_YOU
  aldis prompt ./deploy.toml")]
pub(super) struct PromptArgs {
    /// A built-in name, one of your own, or the path of a `.toml` file
    dialect: String,
}

pub(super) fn run(io: &mut Io, args: &PromptArgs) -> Result<Outcome, CommandError> {
    let dialect = selection::find(&args.dialect)?;
    let text = instructions(&dialect);
    writeln!(io.stdout, "{}", display::lines(text.trim()))?;
    Ok(Outcome::Yes)
}
