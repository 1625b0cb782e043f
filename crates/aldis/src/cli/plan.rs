//! `aldis plan`: plans for `aldis deliver`, begun and checked.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aldis_machine::delivery::PlanProblem as Problem;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{Outcome, report};
use crate::app::formats::plan::{PlanFormat as Format, PlanReading as Read, read_plan};
use crate::error::CommandError;
use crate::io::Io;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::wire::delivery::{PlanForm, ready};

/// Larger files are no plans.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// Create and check plans
///
/// A plan lists the tasks of a delivery: TOML, YAML or JSON, or Markdown with check boxes.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  aldis plan new plan.toml
  aldis plan check plan.toml
  aldis plan check TODO.md --json")]
pub(super) enum PlanCommand {
    Check(PlanCheckArgs),
    New(NewArgs),
}

/// Check plan files
///
/// Says for each file whether it can be delivered, and if not, what to change on which line:
/// duplicate ids, unknown needs, tasks that need one another, files outside the project. Exits with 1
/// if one cannot.
#[derive(Debug, Args)]
pub(super) struct PlanCheckArgs {
    /// Files to check; `.toml`, `.yaml`, `.json` or `.md`
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Write a plan to start with
///
/// The two tasks in it suit any project, so that it can be delivered as it is. The file extension decides the format. An existing file is not overwritten. Without a file, prints
/// the plan.
#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The file; `.toml`, `.yaml`, `.json` or `.md`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// The format (default: by the file extension)
    #[arg(long, value_enum)]
    format: Option<PlanFileFormat>,
}

/// How a plan is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PlanFileFormat {
    Json,
    Markdown,
    Toml,
    Yaml,
}

pub(super) fn run(io: &mut Io, command: PlanCommand) -> Result<Outcome, CommandError> {
    match command {
        PlanCommand::Check(args) => check(io, &args),
        PlanCommand::New(args) => new(io, &args),
    }
}

fn check(io: &mut Io, args: &PlanCheckArgs) -> Result<Outcome, CommandError> {
    let mut outcome = Outcome::Yes;
    for file in &args.files {
        let read = match read(file) {
            Ok(read) => read,
            Err(error) => {
                report(io, &error);
                outcome = Outcome::Error;
                continue;
            }
        };
        if read.plan.is_none() && outcome == Outcome::Yes {
            outcome = Outcome::No;
        }
        let name = file.display().to_string();
        if args.json {
            json::write_line(
                &mut io.stdout,
                &PlanForm::new(&name, read.plan.as_ref(), &read.problems),
            )?;
        } else {
            show(io, &name, &read)?;
        }
    }
    Ok(outcome)
}

fn show(io: &mut Io, name: &str, read: &Read) -> Result<(), CommandError> {
    for problem in &read.problems {
        let message = said(name, problem);
        if problem.fatal {
            report(io, &CommandError::new(message).with_help(problem.help.clone()));
        } else {
            warn(io, &message, problem)?;
        }
    }
    let Some(plan) = &read.plan else { return Ok(()) };
    let (tasks, begin) = (plan.tasks.len(), ready(plan).len());
    let count =
        |count: usize| if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") };
    let name = display::line(name);
    writeln!(io.stdout, "{name}: ok, {}, {begin} can start at once", count(tasks))?;
    Ok(())
}

/// A problem with the name of its plan.
pub(super) fn said(name: &str, problem: &Problem) -> String {
    // With a line it begins with that.
    let gap = if problem.line == 0 { ":" } else { "" };
    format!("{name}{gap} {problem}")
}

fn warn(io: &mut Io, message: &str, problem: &Problem) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stderr };
    writeln!(io.stderr, "{} {}", paint.strong("warning:"), display::line(message))?;
    writeln!(io.stderr, "{} {}", paint.good("   help:"), display::line(&problem.help))?;
    Ok(())
}

pub(super) fn read(file: &Path) -> Result<Read, CommandError> {
    let format = format_of(file)?;
    let size = fs::metadata(file).map_err(|error| CommandError::file(file, &error))?.len();
    if size > FILE_MAX {
        return Err(CommandError::new(format!("`{}` is too large for a plan", file.display())));
    }
    let text = fs::read_to_string(file).map_err(|error| CommandError::file(file, &error))?;
    Ok(read_plan(format, &text))
}

fn format_of(file: &Path) -> Result<Format, CommandError> {
    Format::of_name(&file.display().to_string()).ok_or_else(|| {
        CommandError::new(format!("`{}`: unknown plan format", file.display()))
            .with_help("name it .toml, .yaml, .json or .md")
    })
}

fn new(io: &mut Io, args: &NewArgs) -> Result<Outcome, CommandError> {
    let format = match (args.format, &args.file) {
        (Some(PlanFileFormat::Json), _) => Format::Json,
        (Some(PlanFileFormat::Markdown), _) => Format::Markdown,
        (Some(PlanFileFormat::Yaml), _) => Format::Yaml,
        (Some(PlanFileFormat::Toml), _) | (None, None) => Format::Toml,
        (None, Some(file)) => format_of(file)?,
    };
    let text = match format {
        Format::Json => include_str!("plan/new.json"),
        Format::Markdown => include_str!("plan/new.md"),
        Format::Toml => include_str!("plan/new.toml"),
        Format::Yaml => include_str!("plan/new.yaml"),
    };
    let Some(file) = &args.file else {
        io.stdout.write_all(text.as_bytes())?;
        return Ok(Outcome::Yes);
    };
    create(file, text).map_err(|error| CommandError::file(file, &error))?;
    let name = display::line(&file.display().to_string());
    writeln!(io.stdout, "Wrote {name}. Put your tasks in, then: aldis deliver {name}")?;
    Ok(Outcome::Yes)
}

/// Writes a file that is not there yet.
fn create(file: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).create_new(true).open(file)?.write_all(text.as_bytes())
}
