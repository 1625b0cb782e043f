//! `aldis log`: the journal.

use std::io::Write as _;

use aldis_store::{DecisionFilter, Store as _};
use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::io::Io;
use crate::paint::Paint;
use crate::wire::run::{AlarmForm, DecisionForm, EventForm};
use crate::{alarms, display, home, json};

/// Show the journal
///
/// Lists decisions, oldest first, and the failures of hooks that had nobody to tell.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Only of this run
    run: Option<String>,

    /// How many lines at most
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    lines: usize,

    /// List what happened instead of what was decided; needs a run
    #[arg(long, requires = "run")]
    events: bool,

    /// Print one JSON object a line
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
                writeln!(io.stdout, "{}  {:>4}  {}", event.at, event.seq, event.kind)?;
            }
        }
        return Ok(Outcome::Yes);
    }
    let all_runs = run.is_none();
    let filter = DecisionFilter { run, limit: args.lines, ..DecisionFilter::default() };
    let decisions = store.decisions(&filter)?;
    for form in decisions.iter().rev().filter_map(DecisionForm::new) {
        if args.json {
            json::write_line(&mut io.stdout, &form)?;
        } else {
            let paint = Paint { on: io.color_stdout };
            let summary = display::line(&form.summary);
            let (at, run, rule) = (paint.dim(&form.at), &form.run, paint.place(&form.rule));
            writeln!(io.stdout, "{at}  {run}  {rule}  {summary}")?;
        }
    }
    if all_runs {
        show_alarms(io, args)?;
    }
    Ok(Outcome::Yes)
}

fn show_alarms(io: &mut Io, args: &LogArgs) -> Result<(), CommandError> {
    let directory = home::state_directory(io.state_dir.as_deref())?;
    for alarm in alarms::latest(&directory, args.lines) {
        if args.json {
            let (at, kind) = (alarm.at.to_string(), "alarm".to_owned());
            let form = AlarmForm { v: 1, kind, at, part: alarm.part, what: alarm.what };
            json::write_line(&mut io.stdout, &form)?;
        } else {
            let paint = Paint { on: io.color_stdout };
            let (part, what) = (display::line(&alarm.part), display::line(&alarm.what));
            let at = paint.dim(alarm.at);
            writeln!(io.stdout, "{at}  {}  {part}: {what}", paint.bad("alarm"))?;
        }
    }
    Ok(())
}
