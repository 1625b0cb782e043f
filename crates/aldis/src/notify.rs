//! Tells people and programs elsewhere what happens in runs, and never holds a run up.
//!
//! A [notice](crate::view::wire::notice::Notice) is made by [`routes`] and stored with the step that it
//! belongs to, one for each sink that wants it; a [`courier`] delivers it, in whatever process. There is
//! one form, one sender ([`sink`]) and one rule for further attempts ([`retry`]). What an agent said is
//! data everywhere: it is redacted, made harmless, and handed over as an argument, a variable or a JSON
//! string, never as part of a command.

pub(crate) mod configured;
pub(crate) mod courier;
mod discord;
mod processes;
mod retry;
pub(crate) mod routes;
pub(crate) mod signature;
mod sink;
pub(crate) mod web;

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use aldis_engine::{Engine, Handle, NOTIFY};
use aldis_machine::Machine;
use aldis_signal::time::Timestamp;
use aldis_store::{PartChange, Store, StoreError};

use self::courier::waits_in_words;
use self::routes::Routes;
use self::sink::Sink;
use crate::error::CommandError;
use crate::failures;
use crate::settings::config::{Notify, Sink as SinkName};
use crate::settings::home;
use crate::settings::notice_kind::Kind;

/// How recorded failures name this part.
const PART: &str = "notices";
/// How many recorded failures are looked at.
const FAILURES_MAX: usize = 100;

/// A notice for whoever sits at the terminal.
#[derive(Clone, Debug)]
pub struct TerminalNotice {
    /// The key of the effect that wants it told.
    pub id: String,
    pub(crate) kind: Kind,
}

/// Opens the user's database for taking steps of any run: what they lead to reaches the sinks.
pub(crate) fn open_engine(asked: Option<&Path>) -> Result<Engine, CommandError> {
    let routes = Routes::of(&home::state_directory(asked)?);
    Ok(Engine::new(home::open_store(asked)?).with_route(Arc::new(routes)))
}

/// Checks that every sink that is set can work. Commands run in `directory`.
pub(crate) fn check(settings: &Notify, directory: &Path) -> Result<(), CommandError> {
    let all = [SinkName::Desktop, SinkName::Command, SinkName::Webhook];
    all.into_iter().try_for_each(|name| Sink::of_run(settings, name, directory).map(drop))
}

/// Returns the note by which whoever takes a step of a run knows who is told of it.
pub(crate) fn note(settings: &Notify) -> Result<PartChange, CommandError> {
    Ok(aldis_engine::note(NOTIFY, settings)?)
}

/// Keeps that note for a run that does not have it.
pub(crate) fn remember<M: Machine>(
    engine: &Engine,
    now: Timestamp,
    run: &mut Handle<M>,
    settings: &Notify,
) -> Result<(), CommandError> {
    if run.note::<Notify>(NOTIFY).ok().flatten().as_ref() != Some(settings) {
        run.set_notes(engine, now, vec![note(settings)?])?;
    }
    Ok(())
}

/// Returns whether a notice is for the terminal, and rings its bell if so.
pub(crate) fn ring(settings: &Notify, kind: Kind) -> bool {
    let wanted = settings.terminal && settings.events.of(kind).includes(SinkName::Terminal);
    let mut terminal = std::io::stderr();
    if wanted && terminal.is_terminal() {
        // Whoever cannot hear it can still read.
        let _rung = terminal.write_all(b"\x07").and_then(|()| terminal.flush());
    }
    wanted
}

/// Says which sinks take nothing at the moment.
pub(crate) fn failing(store: &dyn Store) -> Result<Vec<String>, StoreError> {
    let waiting = store.pending_count()?;
    Ok(waiting.iter().filter(|it| it.error.is_some()).filter_map(waits_in_words).collect())
}

/// Says what waits for sinks, and what was last given up in the last day.
pub(crate) fn troubles(
    store: &dyn Store,
    state: &Path,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let waiting = store.pending_count()?;
    let mut troubles: Vec<String> = waiting.iter().filter_map(waits_in_words).collect();
    let recorded = failures::latest(state, FAILURES_MAX).into_iter();
    let mut lately = recorded.filter(|it| it.part == PART && now.since(it.at) < retry::AGE_MAX);
    troubles.extend(lately.next_back().map(|last| last.what));
    Ok(troubles)
}

#[cfg(test)]
mod tests;
