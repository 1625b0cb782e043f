//! `aldis replay`: runs a journal through today's machine and compares.

use std::io::Write as _;

use aldis_core::machine::Decision;
use aldis_core::machine::phases::{Event, State};
use aldis_store::{DecisionFilter, Run, RunId, Store};
use clap::Args;
use serde_json::Value;

use super::{Outcome, why};
use crate::driver::{self, Loaded, Origin};
use crate::error::CommandError;
use crate::home;
use crate::io::Io;
use crate::keeper::SERVED;
use crate::machines::{self, Machine};

/// Run a journal through today's machine and compare
///
/// Takes every event of the run again, at the time it happened, and compares the decisions and the
/// state with what was stored. Exits with 1 if they differ.
#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The run
    run: String,
}

pub(super) fn run(io: &mut Io, args: &ReplayArgs) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let id = why::find(&store, &args.run)?;
    let Some(run) = store.run(&id)? else {
        return Err(CommandError::new(format!("there is no run `{id}`")));
    };
    let kept = kept(&store, &id)?;
    let Replayed { decisions, events, mut differences } = match machines::named(&run.record.machine)
    {
        // Others have processes of their own, which keep what we do not know here.
        Some(machine) if run.record.project == SERVED => again(&store, &run, machine)?,
        _ => phases(&store, run)?,
    };
    for (number, (now, then)) in decisions.iter().zip(&kept).enumerate() {
        if now != then {
            let (now, then) = (&now.summary, &then.summary);
            differences.push(format!("decision {}: was \"{then}\", is \"{now}\"", number + 1));
        }
    }
    if decisions.len() != kept.len() {
        differences.push(format!(
            "{} decisions were stored, {} are made",
            kept.len(),
            decisions.len()
        ));
    }
    for difference in &differences {
        writeln!(io.stdout, "{}", crate::display::line(difference))?;
    }
    if differences.is_empty() {
        let count = decisions.len();
        writeln!(io.stdout, "{events} events, {count} decisions: the same today")?;
        return Ok(Outcome::Yes);
    }
    Ok(Outcome::No)
}

/// What a journal comes to today.
struct Replayed {
    decisions: Vec<Decision>,
    events: usize,
    /// In what the state is another one.
    differences: Vec<String>,
}

fn phases(store: &dyn Store, run: Run) -> Result<Replayed, CommandError> {
    let Loaded { run, state: stored } = driver::load(run)?;
    let (state, decisions, events) = replayed(store, &run.id)?;
    let value = |state: &State| serde_json::to_value(state).unwrap_or_default();
    let differences = difference(&value(&stored), &value(&state));
    Ok(Replayed { decisions, events, differences })
}

/// Runs the journal of any other machine.
fn again(store: &dyn Store, run: &Run, machine: &dyn Machine) -> Result<Replayed, CommandError> {
    let events = store.events(&run.id, 0, usize::MAX)?;
    let mut decisions = Vec::new();
    let mut state: Option<String> = None;
    for event in &events {
        let wrong = |why: String| {
            CommandError::new(format!(
                "event {} of run {} cannot be taken: {why}",
                event.seq, run.id
            ))
        };
        let body: Value =
            serde_json::from_str(&event.body).map_err(|error| wrong(error.to_string()))?;
        let stepped = match (&state, body) {
            (None, body) => machine.begin_again(event.at, &body),
            (Some(state), Value::Object(body)) => machine.step(event.at, state, body),
            (Some(_), _) => return Err(wrong("it is no object".to_owned())),
        };
        let stepped = stepped.map_err(|refused| wrong(refused.to_string()))?;
        decisions.extend(stepped.decision);
        state = Some(stepped.state);
    }
    let value = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_default() };
    let state = value(&state.unwrap_or_default());
    let differences = difference(&value(&run.record.state)["state"], &state["state"]);
    Ok(Replayed { decisions, events: events.len(), differences })
}

fn replayed(store: &dyn Store, id: &RunId) -> Result<(State, Vec<Decision>, usize), CommandError> {
    let unreadable =
        |seq: u64| CommandError::new(format!("event {seq} of run {id} cannot be read"));
    let mut state: Option<State> = None;
    let mut decisions = Vec::new();
    let events = store.events(id, 0, usize::MAX)?;
    for (place, event) in events.iter().enumerate() {
        match &mut state {
            None => {
                let origin: Origin =
                    serde_json::from_str(&event.body).map_err(|_| unreadable(event.seq))?;
                let begun = origin.state(event.at);
                // A run that was adopted takes its first event in the same step.
                if matches!(events.get(place + 1), Some(next) if event.kind == "adopt" && next.at == event.at)
                {
                    state = Some(begun);
                } else {
                    decisions.push(driver::begun(&begun));
                    state = Some(begun);
                }
            }
            Some(state) => {
                let taken: Event =
                    serde_json::from_str(&event.body).map_err(|_| unreadable(event.seq))?;
                decisions.extend(state.on_event(event.at, &taken).decision);
            }
        }
    }
    let state = state.ok_or_else(|| CommandError::new(format!("run {id} has no journal")))?;
    Ok((state, decisions, events.len()))
}

fn kept(store: &dyn Store, id: &RunId) -> Result<Vec<Decision>, CommandError> {
    let filter = DecisionFilter { run: Some(id.clone()), ..DecisionFilter::default() };
    let kept = store.decisions(&filter)?;
    Ok(kept.iter().rev().filter_map(|stored| serde_json::from_str(&stored.body).ok()).collect())
}

/// The members in which two states differ, in a sentence.
fn difference(one: &Value, other: &Value) -> Vec<String> {
    let names = one.as_object().into_iter().flat_map(|members| members.keys());
    let differing: Vec<&str> =
        names.filter(|name| one.get(name) != other.get(name)).map(String::as_str).collect();
    let sentence = format!("the state differs: {}", differing.join(", "));
    if one == other { Vec::new() } else { vec![sentence] }
}
