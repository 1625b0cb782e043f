//! `aldis proof`: the receipts of what is done.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_engine::Engine;
use aldis_signal::time::Timestamp;
use aldis_store::{RunId, Store};
use clap::{Args, Subcommand};

use super::{Outcome, why};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::receipts::chain::{self, Chain, ReceiptFile};
use crate::receipts::verify::Verifier;
use crate::receipts::{self, line_of};
use crate::settings::clock;
use crate::settings::home;
use crate::view::json;
use crate::view::receipt as view;

/// How long git may take for a receipt that nobody wrote yet.
const PATIENCE: Duration = Duration::from_secs(30);

/// Show and verify the receipts of what is done
///
/// A run, phases under a hook, a delivery and each of its tasks get a receipt when they are done: commit,
/// checks, protected files, signals and decisions, signed with a key in the state directory. A receipt
/// stays when its run is deleted.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  aldis proof show
  aldis proof verify 7f3kq2bn
  aldis proof verify receipt.json")]
pub(super) enum ProofCommand {
    List(ReceiptListArgs),
    Show(ReceiptShowArgs),
    Verify(VerifyArgs),
}

/// List the receipts
#[derive(Debug, Args)]
pub(super) struct ReceiptListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Show the receipts of a run
///
/// Exits with 1 if there is none.
#[derive(Debug, Args)]
pub(super) struct ReceiptShowArgs {
    /// The run (default: the last one of this project that has a receipt)
    run: Option<String>,

    /// Print each receipt as it is kept: one line of JSON
    #[arg(long)]
    json: bool,
}

/// Compare receipts with their key, the repository and the store
///
/// Works offline. Exits with 1 if anything differs, and says what.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Runs, or files of receipts (default: the last run of this project that has a receipt)
    #[arg(value_name = "RUN|FILE")]
    what: Vec<String>,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, command: &ProofCommand) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let now = clock::now()?;
    // What a process that was killed did not write.
    receipts::settle(engine.store(), &state, None, (clock::wall(), PATIENCE))?;
    match command {
        ProofCommand::List(args) => list(io, &state, now, args),
        ProofCommand::Show(args) => show(io, &engine, (&state, now), args),
        ProofCommand::Verify(args) => verify(io, &engine, &state, args),
    }
}

fn list(
    io: &mut Io,
    state: &Path,
    now: Timestamp,
    args: &ReceiptListArgs,
) -> Result<Outcome, CommandError> {
    let mut lines = Vec::new();
    for run in chain::runs(state) {
        for entry in Chain::of(state, &run).entries()? {
            match chain::parse(&entry.path) {
                Ok(sealed) => lines.push(line_of(&sealed.receipt, &entry.path)),
                Err(error) => writeln!(io.stderr, "{error}")?,
            }
        }
    }
    lines.sort_by_key(|line| line.ended);
    for line in &lines {
        match args.json {
            true => json::write_line(&mut io.stdout, line)?,
            false => view::line(io, now, line)?,
        }
    }
    if lines.is_empty() && !args.json {
        writeln!(io.stderr, "there is no receipt yet")?;
    }
    Ok(if lines.is_empty() { Outcome::No } else { Outcome::Yes })
}

fn show(
    io: &mut Io,
    engine: &Engine,
    (state, now): (&Path, Timestamp),
    args: &ReceiptShowArgs,
) -> Result<Outcome, CommandError> {
    let Some(entries) = entries(io, engine.store(), state, args.run.as_deref())? else {
        return Ok(Outcome::No);
    };
    for entry in entries {
        if args.json {
            io.stdout.write_all(&chain::read(&entry.path)?)?;
        } else {
            view::show(io, now, &chain::parse(&entry.path)?)?;
        }
    }
    Ok(Outcome::Yes)
}

fn verify(
    io: &mut Io,
    engine: &Engine,
    state: &Path,
    args: &VerifyArgs,
) -> Result<Outcome, CommandError> {
    let mut files = Vec::new();
    let named: Vec<Option<&str>> = match &*args.what {
        [] => vec![None],
        named => named.iter().map(|name| Some(&**name)).collect(),
    };
    for name in named {
        let file = name.map(PathBuf::from).filter(|file| file.is_file());
        match (file, name) {
            (Some(file), _) => files.push(file),
            (None, name) => match entries(io, engine.store(), state, name)? {
                Some(entries) => files.extend(entries.into_iter().map(|entry| entry.path)),
                None => return Ok(Outcome::No),
            },
        }
    }
    let verifier = Verifier::new(state, engine.store())?;
    let mut outcome = Outcome::Yes;
    for file in files {
        let line = verifier.file(&file)?;
        match args.json {
            true => json::write_line(&mut io.stdout, &line)?,
            false => view::verified(io, &line)?,
        }
        if !line.ok {
            outcome = Outcome::No;
        }
    }
    Ok(outcome)
}

/// The receipts of the run that is meant; says so if there are none.
fn entries(
    io: &mut Io,
    store: &dyn Store,
    state: &Path,
    named: Option<&str>,
) -> Result<Option<Vec<ReceiptFile>>, CommandError> {
    let Some(run) = meant(store, state, named)? else {
        writeln!(io.stderr, "no run of this project has a receipt; see aldis proof list")?;
        return Ok(None);
    };
    let entries = Chain::of(state, &run).entries()?;
    if entries.is_empty() {
        writeln!(io.stderr, "run {run} has no receipt: nothing of it was done")?;
        return Ok(None);
    }
    Ok(Some(entries))
}

/// The run that is meant: one that may be deleted already.
fn meant(
    store: &dyn Store,
    state: &Path,
    named: Option<&str>,
) -> Result<Option<RunId>, CommandError> {
    let Some(name) = named else {
        let here = why::projects_around();
        let receipts = chain::runs(state).into_iter().filter_map(|run| {
            let last = Chain::of(state, &run).entries().ok()?.pop()?;
            Some((chain::parse(&last.path).ok()?.receipt, run))
        });
        let of_here = receipts.filter(|(receipt, _)| here.contains(&receipt.project));
        return Ok(of_here.max_by_key(|(receipt, _)| receipt.ended).map(|(_, run)| run));
    };
    let begins = |run: &RunId| run.as_str().starts_with(name);
    let mut kept = chain::runs(state).into_iter().filter(begins);
    match (kept.next(), kept.next()) {
        (Some(run), _) if run.as_str() == name => Ok(Some(run)),
        (Some(run), None) if store.find(name, 2)?.iter().all(|it| it.id == run) => Ok(Some(run)),
        _ => why::find(store, name).map(Some),
    }
}
