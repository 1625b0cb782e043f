//! `aldis attach`: what a run does and its agents write, live, whoever supervises it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use aldis_engine::{Engine, EngineError, Snapshot, State};
use aldis_process::Interrupts;
use aldis_signal::Rules;
use aldis_store::{Cursor, DecisionFilter, RunId};
use clap::Args;

use super::output::show;
use super::{Outcome, why};
use crate::agents::output_log::LoggedAgent;
use crate::app::output::{OutputReader, Written};
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::home;
use crate::view::display;
use crate::view::paint::Paint;
use crate::view::run_view::RunView;
use crate::view::time::clock_time;
use crate::view::wire::run::DecisionForm;

/// How often the run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many decisions are read at once, and how many and how many lines are shown of what was before.
const PAGE: usize = 200;
const DECISIONS_BEFORE: usize = 5;
const LINES_BEFORE: usize = 20;
/// How much of a reason is shown.
const REASON_MAX: usize = 160;

/// Watch a run live
///
/// Shows what is decided and what the agents write, from now on, until the run ends; Ctrl-C detaches
/// and leaves the run running. Exits as the run does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis attach
  aldis attach 7f3kq2bn")]
pub(super) struct AttachArgs {
    /// The run (default: the one of this project that goes on, else its latest)
    run: Option<String>,
}

pub(super) fn run(io: &mut Io, args: &AttachArgs) -> Result<Outcome, CommandError> {
    let engine = notify::open_engine(io.state_dir.as_deref())?;
    let id = match &args.run {
        Some(name) => Some(why::find(engine.store(), name)?),
        None => why::around(engine.store())?,
    };
    let Some(id) = id else {
        writeln!(io.stderr, "no run in this project; `aldis status --all` lists all runs")?;
        return Ok(Outcome::No);
    };
    let interrupts = Interrupts::listen()
        .map_err(|error| CommandError::new(format!("listening for Ctrl-C: {error}")))?;
    let state = home::state_directory(io.state_dir.as_deref())?;
    let rules = Rules::new([]);
    let mut output = OutputReader::new(&state, &id, None, Some(&rules));
    let mut attached = Attached::new(engine, id);
    attached.begin(io, &mut output)?;
    loop {
        // Asked first: what happens until the run ends is shown after that.
        let snapshot = attached.snapshot()?;
        attached.happened(io, &snapshot)?;
        attached.written(io, &mut output)?;
        io.stdout.flush()?;
        if let Some(outcome) = attached.over(io, &snapshot)? {
            return Ok(outcome);
        }
        let seen = interrupts.take();
        if seen.interrupt + seen.terminate > 0 {
            let id = &attached.id;
            writeln!(io.stdout, "detached; run {id} goes on (`aldis attach {id}` shows it again)")?;
            return Ok(Outcome::Yes);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// What was shown of a run so far.
struct Attached {
    engine: Engine,
    id: RunId,
    newest: Cursor,
    /// Whose output was shown last.
    last: Option<LoggedAgent>,
    questions: BTreeSet<String>,
    /// Whether nobody supervised it when it was last looked at.
    left: bool,
}

impl Attached {
    fn new(engine: Engine, id: RunId) -> Self {
        Self {
            engine,
            id,
            newest: Cursor::START,
            last: None,
            questions: BTreeSet::new(),
            left: false,
        }
    }

    fn snapshot(&self) -> Result<Snapshot, CommandError> {
        let missing = || EngineError::NoSuchRun(self.id.clone());
        Ok(self.engine.snapshot(&self.id)?.ok_or_else(missing)?)
    }

    /// Shows how the run is, and the end of what was before.
    fn begin(&mut self, io: &mut Io, output: &mut OutputReader<'_>) -> Result<(), CommandError> {
        let paint = Paint { on: io.color_stdout };
        let view = RunView::new(&self.snapshot()?, clock::wall());
        let title = paint.strong(display::line(&view.title)).to_string();
        let summary = display::line(&view.summary());
        writeln!(io.stdout, "{} {}  {title}   {summary}", paint.good("●"), self.id)?;
        let filter = DecisionFilter {
            run: Some(self.id.clone()),
            limit: DECISIONS_BEFORE,
            ..DecisionFilter::default()
        };
        let decisions = self.engine.store().decisions(&filter)?;
        self.newest = decisions.first().map_or(Cursor::START, |decision| decision.cursor);
        for form in decisions.iter().rev().filter_map(DecisionForm::new) {
            decided(io, &form)?;
        }
        let mut before = Vec::new();
        loop {
            let written = self.read(output)?;
            if written.is_empty() {
                break;
            }
            before = written;
        }
        for (_, written) in &mut before {
            if let Written::Text { text, .. } = written {
                let lines: Vec<&str> = text.lines().collect();
                let end = lines[lines.len().saturating_sub(LINES_BEFORE)..].join("\n");
                *text = format!("{end}\n");
            }
        }
        Ok(show(io, &mut self.last, before)?)
    }

    fn read(
        &self,
        output: &mut OutputReader<'_>,
    ) -> Result<Vec<(LoggedAgent, Written)>, CommandError> {
        let failed = |error| CommandError::new(format!("the output of run {}: {error}", self.id));
        output.read().map_err(failed)
    }

    /// Shows what was decided and asked since.
    fn happened(&mut self, io: &mut Io, snapshot: &Snapshot) -> Result<(), CommandError> {
        loop {
            let run = Some(&self.id);
            let decisions = self.engine.store().decisions_after(run, &self.newest, PAGE)?;
            for decision in &decisions {
                self.newest = decision.cursor;
                if let Some(form) = DecisionForm::new(decision) {
                    decided(io, &form)?;
                }
            }
            if decisions.len() < PAGE {
                break;
            }
        }
        let paint = Paint { on: io.color_stdout };
        for question in snapshot.questions() {
            if self.questions.insert(question.id.clone()) {
                let text = paint.warn(display::lines(&question.text)).to_string();
                writeln!(io.stdout, "{text}\n  aldis answer {} TEXT", question.id)?;
            }
        }
        Ok(())
    }

    /// Shows what was written since.
    fn written(&mut self, io: &mut Io, output: &mut OutputReader<'_>) -> Result<(), CommandError> {
        loop {
            let written = self.read(output)?;
            if written.is_empty() {
                return Ok(());
            }
            show(io, &mut self.last, written)?;
        }
    }

    /// Says how it ended, or that nobody supervises it, if that is so.
    fn over(&mut self, io: &mut Io, snapshot: &Snapshot) -> Result<Option<Outcome>, CommandError> {
        let view = RunView::new(snapshot, clock::wall());
        // Its supervisor may have ended it, and itself, since it was read: then the next look tells how.
        if view.live && (!view.unsupervised || !std::mem::replace(&mut self.left, true)) {
            return Ok(None);
        }
        writeln!(io.stdout, "run {}: {}", self.id, display::line(&view.summary()))?;
        for what in view.refused.iter().chain(&view.remedy) {
            writeln!(io.stdout, "  {}", display::line(what))?;
        }
        Ok(Some(match &snapshot.state {
            State::Run(run) => run.ending().map_or(Outcome::No, |it| Outcome::Code(it.exit_code())),
            State::Delivery(delivery) => {
                delivery.ending().map_or(Outcome::No, |it| Outcome::Code(it.exit_code()))
            }
            State::Phases(_) | State::Turns(_) | State::Unreadable(_) => Outcome::Yes,
        }))
    }
}

/// Shows a decision in a line.
fn decided(io: &mut Io, form: &DecisionForm) -> Result<(), CommandError> {
    let paint = Paint { on: io.color_stdout };
    let task = form.task.as_deref().map(|task| format!("{}: ", display::line(task)));
    let because = paint.dim(display::excerpt(&form.because, REASON_MAX)).to_string();
    let (at, summary) = (paint.dim(clock_time(form.at)).to_string(), display::line(&form.summary));
    let task = task.unwrap_or_default();
    Ok(writeln!(io.stdout, "{at}  {task}{}  {because}", paint.strong(summary))?)
}
