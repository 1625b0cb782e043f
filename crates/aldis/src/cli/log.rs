//! `aldis log`: the journal.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use aldis_store::{Cursor, Decision, DecisionFilter, RunId, Store};
use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::failures;
use crate::io::Io;
use crate::settings::home;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::time::local;
use crate::view::wire::run::{DecisionForm, EventForm, FailureForm};

/// How often a journal that is followed is looked at, and how much is read at once.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PAGE: usize = 200;

/// Show the journal
///
/// Lists decisions, oldest first, and hook failures that could not be reported anywhere else.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Only decisions about this run
    run: Option<String>,

    /// Maximum number of lines
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    lines: usize,

    /// List events instead of decisions; needs a run
    #[arg(long, requires = "run")]
    events: bool,

    /// Keep printing new decisions
    #[arg(long, short, conflicts_with = "events")]
    follow: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &LogArgs) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let run = args.run.as_deref().map(|name| why::find(&store, name)).transpose()?;
    if let (Some(run), true) = (&run, args.events) {
        for event in store.events(run, 0, args.lines)? {
            if args.json {
                json::write_line(&mut io.stdout, &EventForm::new(&event))?;
            } else {
                let at = local(event.at);
                writeln!(io.stdout, "{at}  {:>4}  {}", event.seq, event.kind)?;
            }
        }
        return Ok(Outcome::Yes);
    }
    // Who follows and lists nothing still begins behind the latest.
    let limit = args.lines.max(1);
    let filter = DecisionFilter { run: run.clone(), limit, ..DecisionFilter::default() };
    let decisions = store.decisions(&filter)?;
    for decision in decisions.iter().take(args.lines).rev() {
        print(io, args, decision)?;
    }
    if run.is_none() {
        show_failures(io, args)?;
    }
    if args.follow {
        let newest = decisions.first().map_or(Cursor::START, |decision| decision.cursor);
        follow(io, args, &store, run.as_ref(), newest)?;
    }
    Ok(Outcome::Yes)
}

/// Shows what is decided after that, until nobody reads any more.
fn follow(
    io: &mut Io,
    args: &LogArgs,
    store: &dyn Store,
    run: Option<&RunId>,
    mut newest: Cursor,
) -> Result<(), CommandError> {
    loop {
        io.stdout.flush()?;
        let decisions = store.decisions_after(run, &newest, PAGE)?;
        for decision in &decisions {
            print(io, args, decision)?;
            newest = decision.cursor;
        }
        if decisions.len() < PAGE {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Shows a decision in a line.
fn print(io: &mut Io, args: &LogArgs, decision: &Decision) -> Result<(), CommandError> {
    let Some(form) = DecisionForm::new(decision) else { return Ok(()) };
    if args.json {
        json::write_line(&mut io.stdout, &form)?;
    } else {
        let paint = Paint { on: io.color_stdout };
        let (at, rule) = (paint.dim(local(decision.at)), paint.place(&form.rule));
        let subject = form.task.as_deref().map(|task| format!("{}: ", display::line(task)));
        let (subject, summary) = (subject.unwrap_or_default(), display::line(&form.summary));
        writeln!(io.stdout, "{at}  {}  {rule}  {subject}{summary}", form.run)?;
    }
    Ok(())
}

fn show_failures(io: &mut Io, args: &LogArgs) -> Result<(), CommandError> {
    let directory = home::state_directory(io.state_dir.as_deref())?;
    for failure in failures::latest(&directory, args.lines) {
        if args.json {
            let (at, kind) = (failure.at, "failure".to_owned());
            let form = FailureForm { v: 1, kind, at, part: failure.part, what: failure.what };
            json::write_line(&mut io.stdout, &form)?;
        } else {
            let paint = Paint { on: io.color_stdout };
            let (part, what) = (display::line(&failure.part), display::line(&failure.what));
            let at = paint.dim(local(failure.at));
            writeln!(io.stdout, "{at}  {}  {part}: {what}", paint.bad("failure"))?;
        }
    }
    Ok(())
}
