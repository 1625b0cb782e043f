//! `aldis completions`: scripts that teach a shell the commands.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, Outcome};
use crate::error::CommandError;
use crate::io::Io;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis completions bash > ~/.local/share/bash-completion/completions/aldis
  aldis completions fish > ~/.config/fish/completions/aldis.fish")]
pub(super) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(io: &mut Io, args: &CompletionsArgs) -> Result<Outcome, CommandError> {
    // The generator panics when writing fails, so it does not get the stream itself.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "aldis", &mut script);
    io.stdout.write_all(&script)?;
    Ok(Outcome::Yes)
}
