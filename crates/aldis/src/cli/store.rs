//! `aldis store`: the store as a thing.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::ProgressBar;

use super::Outcome;
use crate::app::retention::{Pruned, Retention};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::config::Seconds;
use crate::settings::home;
use crate::view::display;
use crate::view::json;
use crate::view::wire::prune::PruneLine;

/// Tidy the store
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    Prune(PruneArgs),
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
    let StoreCommand::Prune(args) = command;
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let mut retention = Retention::new(engine.shared_store(), state)?;
    if let Some(ended) = args.ended_before {
        retention.set_ended(Duration::from_secs(ended.0));
    }
    let shown = std::io::stderr().is_terminal();
    let progress = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
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
