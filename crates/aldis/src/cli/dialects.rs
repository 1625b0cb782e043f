//! `aldis dialects`: what dialects there are, and whether a file is one.

use std::path::PathBuf;

use aldis_signal::dialect::builtin_source;
use clap::{Args, Subcommand, ValueHint};

use super::{Outcome, check_files};
use crate::app::selection::catalog;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::catalog::check_file;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::wire::DialectLine;

/// List, show and check dialects
///
/// Your own dialects are files `.aldis/dialects/*.toml` and tables `[dialects.NAME]` in `aldis.toml`,
/// in the nearest directory from the current one upwards that has either.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  aldis dialects list
  aldis dialects show chorus > mine.toml    # then change `name` in it
  aldis dialects check .aldis/dialects/*.toml")]
pub(super) enum DialectsCommand {
    Check(DialectCheckArgs),
    List(ListArgs),
    Show(ShowArgs),
}

/// Check dialect files
///
/// Says for each file whether it can be used, and if not, what to change on which line. Exits with 1
/// if one cannot.
#[derive(Debug, Args)]
pub(super) struct DialectCheckArgs {
    /// Files to check
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
}

/// List the dialects
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Print the TOML of a dialect
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The name of the dialect
    name: String,
}

pub(super) fn run(io: &mut Io, command: DialectsCommand) -> Result<Outcome, CommandError> {
    match command {
        DialectsCommand::Check(args) => check(io, &args),
        DialectsCommand::List(args) => list(io, &args),
        DialectsCommand::Show(args) => show(io, &args),
    }
}

fn check(io: &mut Io, args: &DialectCheckArgs) -> Result<Outcome, CommandError> {
    check_files(io, &args.files, |file| {
        let dialect = check_file(file)?.dialect;
        let count = dialect.signals.len();
        let signals = if count == 1 { "signal" } else { "signals" };
        Ok(format!("`{}`, {count} {signals}", dialect.name))
    })
}

fn list(io: &mut Io, args: &ListArgs) -> Result<Outcome, CommandError> {
    let paint = Paint { on: io.color_stdout };
    for entry in catalog()?.entries() {
        if args.json {
            json::write_line(
                &mut io.stdout,
                &DialectLine::new(&entry.dialect, entry.file.as_deref()),
            )?;
            continue;
        }
        let dialect = &entry.dialect;
        let about = display::line(&dialect.about);
        let family = dialect.syntax.family();
        write!(io.stdout, "{:<13} {family:<8} {about}", paint.strong(&dialect.name))?;
        if let Some(file) = &entry.file {
            let file = display::line(&file.display().to_string());
            write!(io.stdout, "  {}", paint.dim(format_args!("({file})")))?;
        }
        writeln!(io.stdout)?;
    }
    Ok(Outcome::Yes)
}

fn show(io: &mut Io, args: &ShowArgs) -> Result<Outcome, CommandError> {
    // A built-in one can be shown whatever state the user's own are in.
    let source = match builtin_source(&args.name) {
        Some(source) => source.to_owned(),
        None => catalog()?.get(&args.name)?.source.clone(),
    };
    io.stdout.write_all(display::lines(&source).as_bytes())?;
    Ok(Outcome::Yes)
}
