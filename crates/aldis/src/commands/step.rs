//! `aldis step`: a machine as a filter, for programs that drive agents of their own.

mod turns;

use std::io::{BufRead as _, BufReader, Write as _};

use aldis_core::Rules;
use aldis_core::machine::phases::State;
use aldis_core::time::Timestamp;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use super::Outcome;
use crate::error::CommandError;
use crate::io::Io;
use crate::json;
use crate::machines::{Members, phases};
use crate::wire::run::StepForm;

/// Run a machine as a filter: events in, effects out
///
/// Reads one JSON object a line and prints one for each: what must be done, why, and the state. Time
/// comes only from each event's `at`. The first event starts the run. Instead of `said`, an event may
/// have `text`, the agent's message, which is scanned.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  aldis step phases <<'END'
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"start\",\"task\":\"Add CSV export\"}
  {\"at\":\"2026-03-02T10:05:00Z\",\"event\":\"stop\",\"session\":\"S1\",\"text\":\"Half done.\"}
  END
  aldis step turns <<'END'
  {\"at\":\"2026-03-02T10:00:00Z\",\"event\":\"start\",\"channel\":\"c1\",\"agents\":[\"pm\",\"dev\"]}
  {\"at\":\"2026-03-02T10:00:30Z\",\"event\":\"said\",\"channel\":\"c1\",\"agent\":\"pm\",\"text\":\"Yes. TURN_COMPLETE\"}
  END")]
pub(super) struct StepArgs {
    /// The machine
    #[arg(value_enum)]
    machine: Machine,
}

/// The machines that can be driven.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Machine {
    /// Phases under a Stop hook
    Phases,
    /// Turns in channels
    Turns,
}

pub(super) fn run(io: &mut Io, args: &StepArgs) -> Result<Outcome, CommandError> {
    match args.machine {
        Machine::Phases => {
            let mut run: Option<(State, Rules)> = None;
            filter(io, |line| match &mut run {
                None => {
                    let (at, state, rules) = begin(line)?;
                    let form = StepForm::new(at, &[], None, &state);
                    run = Some((state, rules));
                    Ok(form)
                }
                Some((state, rules)) => take(state, rules, line),
            })
        }
        Machine::Turns => {
            let mut channels = turns::Channels::default();
            filter(io, |line| channels.take(line))
        }
    }
}

/// Answers every line of standard input with one of standard output.
fn filter<T: Serialize>(
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

fn begin(line: &str) -> Result<(Timestamp, State, Rules), String> {
    let (at, mut members) = timed(line)?;
    members.remove("event").ok_or("it has no `event`")?;
    let begin =
        serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string())?;
    let start = phases::begin(begin)?;
    let rules = phases::rules(&start.pipeline)?;
    Ok((at, State::start(at, start), rules))
}

fn take(state: &mut State, rules: &Rules, line: &str) -> Result<StepForm, String> {
    let (at, members) = timed(line)?;
    let event = phases::heard(state, rules, members)?;
    let outcome = state.on_event(at, &event);
    Ok(StepForm::new(at, &outcome.effects, outcome.decision.as_ref(), state))
}

/// Reads a line, and its time apart.
fn timed(line: &str) -> Result<(Timestamp, Members), String> {
    let mut members: Members = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let at = members.remove("at").ok_or("it has no `at`")?;
    let at = serde_json::from_value(at).map_err(|error| format!("`at`: {error}"))?;
    Ok((at, members))
}
