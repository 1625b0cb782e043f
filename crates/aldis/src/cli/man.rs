//! `aldis man`: manual pages, made from the same descriptions as the help.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, ValueHint};

use super::{Cli, Outcome};
use crate::error::CommandError;
use crate::io::Io;
use crate::view::display;

/// Write the manual pages
///
/// Writes `aldis.1` and a page for each command, such as `aldis-run.1`, into a directory that is
/// created if it is missing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis man ~/.local/share/man/man1
  man aldis-run")]
pub(super) struct ManArgs {
    /// Where to write them
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
}

pub(super) fn run(io: &mut Io, args: &ManArgs) -> Result<Outcome, CommandError> {
    let failed = |error| CommandError::file(&args.dir, &error);
    fs::create_dir_all(&args.dir).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failed)?;
    let shown = display::line(&args.dir.display().to_string());
    writeln!(io.stdout, "The manual pages are in {shown}.")?;
    Ok(Outcome::Yes)
}
