//! `aldis store`: the store as a thing.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;

use super::Outcome;
use crate::app::retention::{Pruned, Retention};
use crate::app::transfer::{self, Transferred};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::config::Seconds;
use crate::settings::home;
use crate::settings::store::StorePlace;
use crate::view::display;
use crate::view::json;
use crate::view::wire::prune::PruneLine;

/// Check, copy, migrate or tidy the store
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    Check(CheckArgs),
    Copy(CopyArgs),
    Migrate(MigrateArgs),
    Prune(PruneArgs),
}

/// Look for damage in a store
///
/// Reads all of it and says what cannot be. Exits with 1 if something is wrong.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis store check
  aldis store check postgres://me@db.example/aldis")]
pub(super) struct CheckArgs {
    /// The store: a directory, or the address of a database; default: the one that the settings name
    #[arg(value_name = "STORE")]
    store: Option<String>,
}

/// Copy all runs from one store to another
///
/// Takes over run by run, then reads each one back, compares it and replays its journal. Runs that are
/// there already are left alone, so a copy that was interrupted can be started again. Stop everything
/// that uses either store first: a run that is being coordinated is refused. What agents wrote is not
/// part of the store and stays where it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis store copy ~/.local/state/aldis postgres://me@db.example/aldis
  PGPASSWORD=... aldis store copy postgres://me@db.example/aldis ./backup")]
pub(super) struct CopyArgs {
    /// Where the runs are: a directory, or the address of a database
    #[arg(value_name = "FROM")]
    from: String,

    /// Where they go: a directory, or the address of a database
    #[arg(value_name = "TO")]
    to: String,
}

/// Bring a store up to date
///
/// A database that is shared is changed by this command alone, once every machine has the new program.
/// One that was restored from a backup needs it, too. The user's own database is brought up to date by
/// whatever opens it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis store migrate
  aldis store migrate postgres://owner@db.example/aldis")]
pub(super) struct MigrateArgs {
    /// The store: a directory, or the address of a database; default: the one that the settings name
    #[arg(value_name = "STORE")]
    store: Option<String>,
}

/// Delete old runs with all that belongs to them
///
/// Deletes runs that ended longer ago than `store.keep_ended` says, with their decisions, output and
/// work trees, and output of agents that is older than `store.keep_output`. Work in such a tree is
/// committed first, and its branch stays. `run`, `deliver`, `serve` and `auto start` do the same,
/// little by little; this does it at once.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis store prune --dry-run
  aldis store prune --ended-before 30d")]
pub(super) struct PruneArgs {
    /// Delete runs that ended longer ago than this, such as 30d, whatever the settings say
    #[arg(long, value_name = "TIME")]
    ended_before: Option<Seconds<1>>,

    /// Only say what would be deleted
    #[arg(long)]
    dry_run: bool,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, command: &StoreCommand) -> Result<Outcome, CommandError> {
    match command {
        StoreCommand::Check(args) => check(io, args),
        StoreCommand::Copy(args) => copy(io, args),
        StoreCommand::Migrate(args) => migrate(io, args),
        StoreCommand::Prune(args) => prune(io, args),
    }
}

/// Returns the store that was named, else the user's.
fn place(io: &Io, named: Option<&str>) -> Result<StorePlace, CommandError> {
    match named {
        Some(named) => StorePlace::named(named),
        None => StorePlace::of(&home::state_directory(io.state_dir.as_deref())?),
    }
}

/// Fails if there is no store at that place: reading creates none.
fn must_exist(place: &StorePlace) -> Result<(), CommandError> {
    if place.exists() {
        return Ok(());
    }
    Err(CommandError::new(format!("there is no store at {place}"))
        .with_help("name a directory with `aldis.db` in it, or postgres://USER@HOST/DATABASE"))
}

fn check(io: &mut Io, args: &CheckArgs) -> Result<Outcome, CommandError> {
    let place = place(io, args.store.as_deref())?;
    must_exist(&place)?;
    let findings = place.check()?;
    for finding in &findings {
        writeln!(io.stdout, "problem: {}", display::line(finding))?;
    }
    let size = place.open()?.store().size()?;
    let runs = if size.runs == 1 { "1 run".to_owned() } else { format!("{} runs", size.runs) };
    let bytes = display::bytes(size.bytes + size.log_bytes);
    let found = match findings.len() {
        0 => "no problem found".to_owned(),
        1 => "1 problem found".to_owned(),
        count => format!("{count} problems found"),
    };
    writeln!(io.stdout, "{}: {runs}, {bytes}, {found}", display::line(&place.to_string()))?;
    Ok(if findings.is_empty() { Outcome::Yes } else { Outcome::No })
}

fn migrate(io: &mut Io, args: &MigrateArgs) -> Result<Outcome, CommandError> {
    let place = place(io, args.store.as_deref())?;
    let (before, after) = place.migrate()?;
    let shown = display::line(&place.to_string());
    if before == after {
        writeln!(io.stdout, "{shown} is up to date: schema version {after}")?;
    } else {
        writeln!(io.stdout, "{shown} is at schema version {after} now, after {before}")?;
    }
    Ok(Outcome::Yes)
}

fn copy(io: &mut Io, args: &CopyArgs) -> Result<Outcome, CommandError> {
    let [from, to] = [&args.from, &args.to].map(|named| StorePlace::named(named));
    let (from, to) = (from?, to?);
    must_exist(&from)?;
    let progress = spinner();
    let stores = (from.open()?.transfer(), to.open()?.transfer());
    let transferred = transfer::copy(&stores.0, &stores.1, clock::now()?, |so_far| {
        progress.set_message(format!("{} runs copied", so_far.copied));
        progress.tick();
    })?;
    progress.finish_and_clear();
    let Transferred { copied, present, tokens, problems } = &transferred;
    for problem in problems {
        writeln!(io.stderr, "warning: {}", display::line(problem))?;
    }
    let number = |count: u64| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
    let there = match present {
        0 => String::new(),
        count => format!(", {} already there", number(*count)),
    };
    let compared = if *copied == 1 { "It was" } else { "Each was" };
    let check = match copied {
        0 => String::new(),
        _ => format!(" {compared} read back, compared and replayed."),
    };
    let tokens = match tokens {
        0 => String::new(),
        1 => " 1 token is valid there, too.".to_owned(),
        count => format!(" {count} tokens are valid there, too."),
    };
    writeln!(io.stdout, "Copied {}{there}.{check}{tokens}", number(*copied))?;
    Ok(if problems.is_empty() { Outcome::Yes } else { Outcome::No })
}

fn spinner() -> ProgressBar {
    let shown = std::io::stderr().is_terminal();
    if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() }
}

fn prune(io: &mut Io, args: &PruneArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let mut retention = Retention::new(engine.shared_store(), state)?;
    if let Some(ended) = args.ended_before {
        retention.set_ended(Duration::from_secs(ended.0));
    }
    let progress = spinner();
    let pruned = retention.all(clock::now()?, args.dry_run, |pruned| {
        progress.set_message(format!("{} deleted", runs(pruned)));
        progress.tick();
    })?;
    progress.finish_and_clear();
    for kept in &pruned.kept {
        writeln!(io.stderr, "warning: kept the work tree {}", display::line(kept))?;
    }
    if args.json {
        let Pruned { runs, output, worktrees, kept } = pruned;
        let (kind, dry_run) = ("prune".to_owned(), args.dry_run);
        let line = PruneLine { v: 1, kind, dry_run, runs, output_bytes: output, worktrees, kept };
        json::write_line(&mut io.stdout, &line)?;
    } else {
        writeln!(io.stdout, "{}", sentence(&pruned, args.dry_run))?;
    }
    Ok(Outcome::Yes)
}

fn sentence(pruned: &Pruned, dry: bool) -> String {
    let trees = match pruned.worktrees {
        1 => "1 work tree".to_owned(),
        count => format!("{count} work trees"),
    };
    let output = display::bytes(pruned.output);
    let verb = if dry { "Would delete" } else { "Deleted" };
    format!("{verb} {}, {output} of agents' output and {trees}.", runs(pruned))
}

fn runs(pruned: &Pruned) -> String {
    if pruned.runs == 1 { "1 run".to_owned() } else { format!("{} runs", pruned.runs) }
}
