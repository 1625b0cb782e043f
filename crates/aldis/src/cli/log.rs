//! `aldis log`: the journal.

use std::io::Write as _;
use std::thread;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{Cursor, Decision, DecisionFilter, RunId, Store};
use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::failures;
use crate::io::Io;
use crate::settings::clock;
use crate::settings::home;
use crate::telemetry::{self, Target};
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::time::moment;
use crate::view::wire::run::{DecisionForm, EventForm, FailureForm};

/// How often a journal that is followed is looked at, and how much is read at once.
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PAGE: usize = 200;
/// How much of a title is shown, and how wide the column of what was decided is.
const TITLE_MAX: usize = 60;
const SUMMARY: usize = 48;

/// Show the journal
///
/// Lists the latest decisions about all runs or about one, oldest first, and hook failures that could not
/// be reported anywhere else.
#[derive(Debug, Args)]
pub(super) struct LogArgs {
    /// Show only decisions about this run
    run: Option<String>,

    /// Maximum number of lines: the latest
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    lines: usize,

    /// List events instead of decisions; needs a run
    #[arg(long, requires = "run")]
    events: bool,

    /// Keep printing new decisions
    #[arg(long, short, conflicts_with = "events")]
    follow: bool,

    /// Export a run as a trace of OpenTelemetry, to the collector that is set; needs a run
    #[arg(long, requires = "run", conflicts_with_all = ["events", "follow", "json"])]
    otlp: bool,

    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: &LogArgs) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let store = &*store;
    let run = args.run.as_deref().map(|name| why::find(store, name)).transpose()?;
    if let (Some(run), true) = (&run, args.otlp) {
        return export(io, store, run);
    }
    if let (Some(run), true) = (&run, args.events) {
        for event in store.events(run, 0, args.lines)? {
            if args.json {
                json::write_line(&mut io.stdout, &EventForm::new(&event))?;
            } else {
                let at = moment(clock::now()?, event.at);
                writeln!(io.stdout, "{at}  {:>4}  {}", event.seq, event.kind)?;
            }
        }
        return Ok(Outcome::Yes);
    }
    // Who follows and lists nothing still begins behind the latest. One more shows that there are more.
    let limit = args.lines.saturating_add(1);
    let filter = DecisionFilter { run: run.clone(), limit, ..DecisionFilter::default() };
    let decisions = store.decisions(&filter)?;
    let now = clock::now()?;
    if decisions.len() > args.lines && args.lines > 0 && !args.json {
        writeln!(io.stderr, "earlier decisions are left out; -n shows more")?;
    }
    let mut printer = Printer { store, now, run: None };
    for decision in decisions.iter().take(args.lines).rev() {
        printer.print(io, args, decision)?;
    }
    if run.is_none() {
        show_failures(io, args, now)?;
    }
    if decisions.is_empty() && !args.json && !args.follow {
        writeln!(io.stderr, "nothing was decided yet; `aldis status` lists the runs")?;
    }
    if args.follow {
        let newest = decisions.first().map_or(Cursor::START, |decision| decision.cursor);
        follow(io, args, &mut printer, run.as_ref(), newest)?;
    }
    Ok(Outcome::Yes)
}

/// Exports what is known of a run.
fn export(io: &mut Io, store: &dyn Store, run: &RunId) -> Result<Outcome, CommandError> {
    let target = Target::load()?.ok_or_else(|| {
        CommandError::new("no collector is set").with_help(
            "set OTEL_EXPORTER_OTLP_ENDPOINT, or telemetry.otlp in ~/.config/aldis/aldis.toml",
        )
    })?;
    let place = target.to_string();
    let count = telemetry::export_run(store, run, target)?;
    let spans = if count == 1 { "span" } else { "spans" };
    writeln!(io.stdout, "exported {count} {spans} of run {run} to {place}")?;
    Ok(Outcome::Yes)
}

/// Shows what is decided after that, until nobody reads any more.
fn follow(
    io: &mut Io,
    args: &LogArgs,
    printer: &mut Printer<'_>,
    run: Option<&RunId>,
    mut newest: Cursor,
) -> Result<(), CommandError> {
    loop {
        io.stdout.flush()?;
        let decisions = printer.store.decisions_after(run, &newest, PAGE)?;
        for decision in &decisions {
            printer.print(io, args, decision)?;
            newest = decision.cursor;
        }
        if decisions.len() < PAGE {
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// What was printed last: lines about one run stand below its title.
struct Printer<'s> {
    store: &'s dyn Store,
    now: Timestamp,
    run: Option<RunId>,
}

impl Printer<'_> {
    /// Shows a decision in a line.
    fn print(
        &mut self,
        io: &mut Io,
        args: &LogArgs,
        decision: &Decision,
    ) -> Result<(), CommandError> {
        let Some(form) = DecisionForm::new(decision) else { return Ok(()) };
        if args.json {
            return Ok(json::write_line(&mut io.stdout, &form)?);
        }
        let paint = Paint { on: io.color_stdout };
        if self.run.as_ref() != Some(&decision.run) {
            let run = self.store.run(&decision.run)?;
            let title = run.map(|run| run.record.title).unwrap_or_default();
            let title = title.trim().lines().next().unwrap_or_default();
            let title = display::excerpt(title, TITLE_MAX);
            writeln!(io.stdout, "{}  {title}", paint.strong(&form.run))?;
            self.run = Some(decision.run.clone());
        }
        let at = paint.dim(moment(self.now, decision.at));
        let task = form.task.as_deref().map(|task| format!("{}: ", display::line(task)));
        let summary = format!("{}{}", task.unwrap_or_default(), display::line(&form.summary));
        let rule = paint.dim(&form.rule);
        Ok(writeln!(io.stdout, "  {at}  {summary:<SUMMARY$}  {rule}")?)
    }
}

fn show_failures(io: &mut Io, args: &LogArgs, now: Timestamp) -> Result<(), CommandError> {
    let directory = home::state_directory(io.state_dir.as_deref())?;
    for failure in failures::latest(&directory, args.lines) {
        if args.json {
            let (at, kind) = (failure.at, "failure".to_owned());
            let form = FailureForm { v: 1, kind, at, part: failure.part, what: failure.what };
            json::write_line(&mut io.stdout, &form)?;
        } else {
            let paint = Paint { on: io.color_stdout };
            let (part, what) = (display::line(&failure.part), display::line(&failure.what));
            let at = paint.dim(moment(now, failure.at));
            writeln!(io.stdout, "{at}  {}  {part}: {what}", paint.bad("failure"))?;
        }
    }
    Ok(())
}
