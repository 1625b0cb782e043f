//! `aldis scripted-agent`: an agent that follows a script, for tests and demonstrations.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use clap::Args;

use super::Outcome;
use crate::app::scripted::{Player, Script, round_of};
use crate::error::CommandError;
use crate::io::Io;

/// Play the part of an agent, after a script
///
/// Reads its prompt from the last argument, else from standard input.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct ScriptedAgentArgs {
    /// The script
    script: PathBuf,

    /// Where starts are counted; by default beside the script
    #[arg(long, value_name = "FILE")]
    count_in: Option<PathBuf>,

    /// The prompt
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    prompt: Vec<OsString>,
}

pub(super) fn run(io: &mut Io, args: &ScriptedAgentArgs) -> Result<Outcome, CommandError> {
    let ScriptedAgentArgs { script: path, count_in, prompt } = args;
    let text = fs::read_to_string(path).map_err(|error| CommandError::file(path, &error))?;
    let wrong = |error: String| CommandError::new(format!("`{}`: {error}", path.display()));
    let script = Script::parse(&text).map_err(wrong)?;
    let counter = count_in.clone().unwrap_or_else(|| path.with_added_extension("count"));
    let round = round_of(&counter).map_err(|error| CommandError::file(&counter, &error))?;
    let mut told = String::new();
    match prompt.last() {
        Some(prompt) => told.push_str(&prompt.to_string_lossy()),
        // A prompt that cannot be read is none.
        None => drop(io.stdin.read_to_string(&mut told)),
    }
    let code = Player::new(&script, &told, &mut io.stdout).play(script.steps(round))?;
    Ok(Outcome::Code(code))
}
