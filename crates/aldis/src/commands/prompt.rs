//! `aldis prompt`: what to tell an agent so that it speaks a dialect.

use clap::Args;

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::{display, selection};

/// Print the instructions that make an agent speak a dialect
///
/// Put the text into the agent's prompt or instruction file. It describes the signals without
/// containing one, so that an agent which repeats it signals nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis prompt caw >> AGENTS.md
  aldis prompt ./deploy.toml")]
pub(super) struct PromptArgs {
    /// A built-in name, one of your own, or the path of a `.toml` file
    dialect: String,
}

pub(super) fn run(io: &mut Io, args: &PromptArgs) -> Result<Outcome, CommandError> {
    let dialect = selection::find(&args.dialect)?;
    let text = dialect.prompt.trim();
    if text.is_empty() {
        return Err(CommandError::new(format!(
            "the dialect `{}` has no instructions for agents",
            dialect.name
        ))
        .with_help("add `prompt = \"\"\"...\"\"\"` to its file"));
    }
    writeln!(io.stdout, "{}", display::lines(text))?;
    Ok(Outcome::Yes)
}
