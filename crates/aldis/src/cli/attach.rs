//! `aldis attach`: what a run does and its agents write, live, whoever supervises it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use aldis_engine::{Engine, EngineError, Snapshot, State};
use aldis_machine::delivery;
use aldis_process::Interrupts;
use aldis_signal::{Dialect, Rules};
use aldis_store::{Cursor, DecisionFilter, RunId};
use clap::Args;

use super::run::output_options;
use super::{Outcome, why};
use crate::agents::output_log::LoggedAgent;
use crate::app::output::{OutputReader, Written};
use crate::app::selection;
use crate::error::CommandError;
use crate::io::Io;
use crate::notify;
use crate::settings::clock;
use crate::settings::home;
use crate::view::live::attached::AttachedReporter;
use crate::view::run_view::RunView;
use crate::view::wire::run::DecisionForm;

/// How often the run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many decisions are read at once, and how many and how much of what agents did before is shown.
const PAGE: usize = 200;
const DECISIONS_BEFORE: usize = 5;
const PARTS_BEFORE: usize = 12;

/// Watch a run live
///
/// Shows decisions and what the agents write, from now on, until the run ends. Ctrl-C detaches, and the
/// run continues. Exits as the run does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis attach
  aldis attach 7f3kq2bn")]
pub(super) struct AttachArgs {
    /// The run (default: the active run of this project, else its latest)
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
    let mut output = OutputReader::with_tools(&state, &id, &rules);
    let mut attached = Attached::new(io, engine, id)?;
    attached.begin(&mut output)?;
    loop {
        // Asked first: what happens until the run ends is shown after that.
        let snapshot = attached.snapshot()?;
        // Words before the decisions that they led to.
        attached.written(&mut output)?;
        attached.happened(&snapshot)?;
        if let Some(outcome) = attached.over(&snapshot)? {
            return Ok(outcome);
        }
        attached.live.draw(clock::wall(), &attached.id, &snapshot.state);
        let seen = interrupts.take();
        if seen.interrupt + seen.terminate > 0 {
            let id = &attached.id;
            let left = format!("detached; run {id} goes on (`aldis attach {id}` shows it again)");
            attached.live.ended(clock::wall(), &[left]);
            return Ok(Outcome::Yes);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// What was shown of a run so far.
struct Attached {
    engine: Engine,
    id: RunId,
    live: AttachedReporter,
    newest: Cursor,
    questions: BTreeSet<String>,
    /// Whether nobody supervised it when it was last looked at.
    left: bool,
}

impl Attached {
    fn new(io: &mut Io, engine: Engine, id: RunId) -> Result<Self, CommandError> {
        let snapshot = engine.snapshot(&id)?.ok_or_else(|| EngineError::NoSuchRun(id.clone()))?;
        // One that is gone leaves its signals in what is shown.
        let dialect = match &snapshot.state {
            State::Run(run) => selection::find(&run.setup().dialect).ok(),
            State::Delivery(_) => Dialect::builtin(delivery::DIALECT).cloned(),
            State::Phases(_) | State::Turns(_) | State::Unreadable(_) => None,
        };
        let out = std::mem::replace(&mut io.stdout, Box::new(std::io::sink()));
        let live = AttachedReporter::new(out, output_options(io, false, false), dialect);
        let (newest, questions) = (Cursor::START, BTreeSet::new());
        Ok(Self { engine, id, live, newest, questions, left: false })
    }

    fn snapshot(&self) -> Result<Snapshot, CommandError> {
        let missing = || EngineError::NoSuchRun(self.id.clone());
        Ok(self.engine.snapshot(&self.id)?.ok_or_else(missing)?)
    }

    /// Shows how the run is, and the end of what was before.
    fn begin(&mut self, output: &mut OutputReader<'_>) -> Result<(), CommandError> {
        self.live.begin(&self.snapshot()?, clock::wall());
        let filter = DecisionFilter {
            run: Some(self.id.clone()),
            limit: DECISIONS_BEFORE,
            ..DecisionFilter::default()
        };
        let decisions = self.engine.store().decisions(&filter)?;
        self.newest = decisions.first().map_or(Cursor::START, |decision| decision.cursor);
        for form in decisions.iter().rev().filter_map(DecisionForm::new) {
            self.live.decided(&form);
        }
        let mut before = Vec::new();
        loop {
            let mut written = self.read(output)?;
            if written.is_empty() {
                break;
            }
            before.append(&mut written);
            before.drain(..before.len().saturating_sub(PARTS_BEFORE));
        }
        before.iter().for_each(|(agent, written)| self.show(agent, written));
        Ok(())
    }

    fn read(
        &self,
        output: &mut OutputReader<'_>,
    ) -> Result<Vec<(LoggedAgent, Written)>, CommandError> {
        let failed = |error| CommandError::new(format!("the output of run {}: {error}", self.id));
        output.read().map_err(failed)
    }

    /// Shows something that an agent wrote.
    fn show(&mut self, agent: &LoggedAgent, written: &Written) {
        let now = clock::wall();
        let by = agent.agent.map(|_| {
            let task = agent.task.as_ref().map(|task| format!("{task}, "));
            format!("{}{}", task.unwrap_or_default(), agent.role)
        });
        let by = by.as_deref();
        match written {
            Written::Text { text, own } => self.live.said(now, by, (*own, text)),
            Written::Tool(call) => self.live.tool(now, (by, agent.task.as_deref()), &call.shown()),
            Written::ToolEnded(call, failed, code) => {
                self.live.tool_ended(now, (call, *failed, *code));
            }
            Written::Raw(_) => {}
        }
    }

    /// Shows what was decided and asked since.
    fn happened(&mut self, snapshot: &Snapshot) -> Result<(), CommandError> {
        loop {
            let run = Some(&self.id);
            let decisions = self.engine.store().decisions_after(run, &self.newest, PAGE)?;
            for decision in &decisions {
                self.newest = decision.cursor;
                if let Some(form) = DecisionForm::new(decision) {
                    self.live.decided(&form);
                }
            }
            if decisions.len() < PAGE {
                break;
            }
        }
        for question in snapshot.questions() {
            if self.questions.insert(question.id.clone()) {
                self.live.question(clock::wall(), &question.id, &question.text);
            }
        }
        Ok(())
    }

    /// Shows what was written since.
    fn written(&mut self, output: &mut OutputReader<'_>) -> Result<(), CommandError> {
        loop {
            let written = self.read(output)?;
            if written.is_empty() {
                return Ok(());
            }
            written.iter().for_each(|(agent, written)| self.show(agent, written));
        }
    }

    /// Says how it ended, or that nobody supervises it, if that is so.
    fn over(&mut self, snapshot: &Snapshot) -> Result<Option<Outcome>, CommandError> {
        let view = RunView::new(snapshot, clock::wall());
        // Its supervisor may have ended it, and itself, since it was read: then the next look tells how.
        if view.live && (!view.unsupervised || !std::mem::replace(&mut self.left, true)) {
            return Ok(None);
        }
        let mut lines = vec![format!("run {}: {}", self.id, view.summary())];
        let more = view.refused.iter().map(|refused| format!("  last claim refused: {refused}"));
        lines.extend(more.chain(view.remedy.iter().map(|remedy| format!("  {remedy}"))));
        lines.push(format!("  aldis why {0} · aldis report {0}", self.id));
        self.live.ended(clock::wall(), &lines);
        Ok(Some(match &snapshot.state {
            State::Run(run) => run.ending().map_or(Outcome::No, |it| Outcome::Code(it.exit_code())),
            State::Delivery(delivery) => {
                delivery.ending().map_or(Outcome::No, |it| Outcome::Code(it.exit_code()))
            }
            State::Phases(_) | State::Turns(_) | State::Unreadable(_) => Outcome::Yes,
        }))
    }
}
