//! `aldis step`: a machine as a filter, for programs that drive agents of their own.

mod turns;

use std::io::{BufRead as _, BufReader, Write as _};

use aldis_engine::{JsonEdge, Members};
use aldis_machine::{delivery, phases, run};
use aldis_signal::time::Timestamp;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::catalog::Catalog;
use crate::view::json;
use crate::view::wire::delivery::DeliveryStepForm;
use crate::view::wire::step::{PhasesStepState, RunStepState, StepForm};

/// Run a machine as a filter: events in, effects out
///
/// Reads one JSON object per line and prints one for each: what must be done, why, and the state. Time
/// comes only from each event's `at`. The first event starts the run. Instead of signals, an
/// event may have `text`, the agent's message, which is scanned.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis step phases <<'END'
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"start\",\"task\":\"Add CSV export\"}
  {\"at\":\"2026-03-02T10:05:00Z\",\"event\":\"stop\",\"session\":\"S1\",\"text\":\"Half done.\"}
  END

  aldis step run <<'END'
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"start\",\"task\":\"Add CSV export\"}
  {\"at\":\"2026-03-02T10:00:01Z\",\"event\":\"begin\"}
  {\"at\":\"2026-03-02T10:05:00Z\",\"event\":\"reported\",\"text\":\"<chorus>COMPLETE</chorus>\"}
  END

  aldis step delivery <<'END'
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"start\",\"plan\":{\"tasks\":[{\"id\":\"csv\"}]}}
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"begin\"}
  {\"at\":\"2026-03-02T10:05:00Z\",\"event\":\"finished\",\"agent\":1,\"text\":\"READY_FOR_REVIEW: csv\"}
  END

  aldis step turns <<'END'
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"start\",\"channel\":\"c1\",\"agents\":[\"pm\",\"dev\"]}
  {\"at\":\"2026-03-02T10:00:30Z\",\"event\":\"said\",\"channel\":\"c1\",\"agent\":\"pm\",\"text\":\"TURN_COMPLETE\"}
  END")]
pub(super) struct StepArgs {
    /// The machine
    #[arg(value_enum)]
    machine: StepMachine,
}

/// The machines that can be driven.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StepMachine {
    /// Developer, critic and auditor on the tasks of a plan
    Delivery,
    /// Phases under a Stop hook
    Phases,
    /// One supervised agent
    Run,
    /// Turns in channels
    Turns,
}

pub(super) fn run(io: &mut Io, args: &StepArgs) -> Result<Outcome, CommandError> {
    match args.machine {
        StepMachine::Delivery => filter(io, |at, outcome, state: &mut delivery::State| {
            let changed = state.take_changed();
            Ok(DeliveryStepForm::new(at, outcome, &changed, state))
        }),
        StepMachine::Phases => filter(io, |at, outcome, state: &mut phases::State| {
            StepForm::new(at, outcome, state, PhasesStepState::new)
        }),
        StepMachine::Run => filter(io, |at, outcome, state: &mut run::State| {
            StepForm::new(at, outcome, state, RunStepState::new)
        }),
        StepMachine::Turns => {
            let mut channels = turns::Channels::default();
            each_line(io, |line| channels.take(line))
        }
    }
}

/// Begins with the first line and takes each of the others as an event. `form` shows what one led to.
fn filter<M: JsonEdge, F: Serialize>(
    io: &mut Io,
    form: impl Fn(Timestamp, &aldis_machine::Outcome<M::Effect>, &mut M) -> serde_json::Result<F>,
) -> Result<Outcome, CommandError> {
    let dialects = Catalog::builtin();
    let mut run: Option<M> = None;
    let failed = |error: serde_json::Error| error.to_string();
    each_line(io, |line| {
        let (at, mut members) = members(line)?;
        let Some(state) = &mut run else {
            members.remove("event").ok_or("it has no `event`")?;
            let start = M::start_from_json(members, &dialects)?;
            let begun = M::start(at, start).map_err(|error| error.to_string())?;
            let state = run.insert(begun.state);
            return form(at, &begun.outcome, state).map_err(failed);
        };
        let event = state.event_from_json(members, &dialects)?;
        let outcome = state.on_event(at, &event);
        form(at, &outcome, state).map_err(failed)
    })
}

/// Answers every line of standard input with one of standard output.
fn each_line<T: Serialize>(
    io: &mut Io,
    mut answer: impl FnMut(&str) -> Result<T, String>,
) -> Result<Outcome, CommandError> {
    let input = std::mem::replace(&mut io.stdin, Box::new(std::io::empty()));
    for (number, line) in (1..).zip(BufReader::new(input).lines()) {
        let line = line.map_err(|error| CommandError::new(format!("standard input: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let wrong = |what: String| CommandError::new(format!("line {number}: {what}"));
        let form = answer(&line).map_err(wrong)?;
        json::write_line(&mut io.stdout, &form)?;
        io.stdout.flush()?;
    }
    Ok(Outcome::Yes)
}

/// The time of an event and its other members.
fn members(line: &str) -> Result<(Timestamp, Members), String> {
    let mut members: Members = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let at = members.remove("at").ok_or("it has no `at`")?;
    let at = serde_json::from_value(at).map_err(|error| format!("`at`: {error}"))?;
    Ok((at, members))
}
