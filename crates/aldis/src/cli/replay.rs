//! `aldis replay`: runs a journal through today's machine and compares.

mod channel;
mod delivery;
mod supervised;

use std::io::Write as _;

use aldis_machine::phases::{Event, State};
use aldis_machine::{Decision, is_same_rule};
use aldis_store::{DecisionFilter, RunId, Store};
use clap::Args;
use serde::Serialize;

use super::{Outcome, why};
use crate::engine::driver::{self, Origin};
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::home;
use crate::view::known::Known;

/// Run a journal through today's machine and compare
///
/// Takes every event of the run again, at the time it happened, and compares the decisions and the
/// state with what was stored. Exits with 1 if they differ. Sentences may differ: releases reword
/// them.
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
    match Known::of(&store, run)? {
        Known::Channel(_, stored) => {
            compare(io, &store, &id, &*stored, channel::replayed(&store, &id)?)
        }
        Known::Phases(_, stored) => compare(io, &store, &id, &*stored, replayed(&store, &id)?),
        Known::Supervised(_, stored) => {
            compare(io, &store, &id, &*stored, supervised::replayed(&store, &id)?)
        }
        Known::Delivery(_, stored) => {
            let stored = delivery::members(&stored);
            compare(io, &store, &id, &stored, delivery::replayed(&store, &id)?)
        }
    }
}

/// Says where today's decisions and state are not the stored ones.
fn compare<S: PartialEq + Serialize>(
    io: &mut Io,
    store: &dyn Store,
    id: &RunId,
    stored: &S,
    (state, decisions, events): (S, Vec<Decision>, usize),
) -> Result<Outcome, CommandError> {
    let mut differences = Vec::new();
    let mut reworded = 0;
    let kept = kept(store, id)?;
    for (number, (now, then)) in decisions.iter().zip(&kept).enumerate() {
        if !is_same_rule(then, now) || then.task != now.task || then.counters != now.counters {
            let (now, then) = (&now.summary, &then.summary);
            differences.push(format!("decision {}: was \"{then}\", is \"{now}\"", number + 1));
        } else if now != then {
            reworded += 1;
        }
    }
    if decisions.len() != kept.len() {
        differences.push(format!(
            "{} decisions were stored, {} are made",
            kept.len(),
            decisions.len()
        ));
    }
    if state != *stored {
        differences.push(format!("the state differs: {}", members(stored, &state)));
    }
    for difference in &differences {
        writeln!(io.stdout, "{}", crate::view::display::line(difference))?;
    }
    if differences.is_empty() {
        let count = decisions.len();
        writeln!(io.stdout, "{events} events, {count} decisions: the same today")?;
        if reworded > 0 {
            writeln!(io.stdout, "{reworded} of the decisions are worded differently")?;
        }
        return Ok(Outcome::Yes);
    }
    Ok(Outcome::No)
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
                let origin = Origin::read(&event.body).map_err(|_| unreadable(event.seq))?;
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
                decisions.extend(state.on_event(event.at, &taken).decisions);
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

/// The members in which two states differ.
fn members<S: Serialize>(one: &S, other: &S) -> String {
    let value = |state: &S| serde_json::to_value(state).unwrap_or_default();
    let (one, other) = (value(one), value(other));
    let names = one.as_object().into_iter().flat_map(|members| members.keys());
    let differing: Vec<&str> =
        names.filter(|name| one.get(name) != other.get(name)).map(String::as_str).collect();
    differing.join(", ")
}
