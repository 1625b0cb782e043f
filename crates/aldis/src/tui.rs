//! `aldis watch`: what goes on, live, on a terminal.
//!
//! [`scene`] reads the store, [`beside`] the one run that is open, [`model`] is the state of the view and decides what keys mean,
//! [`words`] and [`draw`] show it, [`screen`] is the terminal. Only this file brings them together.

mod beside;
mod draw;
mod layout;
mod model;
mod palette;
mod scene;
mod screen;
#[cfg(test)]
mod tests;
mod timeline;
mod words;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use aldis_engine::Engine;
use aldis_machine::HumanCommand;
use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;

use self::beside::Beside;
use self::model::{Model, Order, ViewInput};
use self::palette::Palette;
use self::scene::SceneReader;
use self::screen::Screen;
use crate::app::control::{self, Commanded};
use crate::app::dismissed;
use crate::error::CommandError;
use crate::settings::clock::SteadyClock;
use aldis_process::Interrupts;

/// How often the store is looked at, and the seconds counted.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How many keys are taken before the view is drawn again.
const KEYS_MAX: usize = 1_000;

/// Shows what goes on, everywhere or in one run, until the human leaves or the process is asked to
/// stop.
///
/// # Errors
///
/// Fails if there is no terminal, or none any more.
pub(crate) fn watch(
    out: impl Write,
    color: bool,
    engine: &Engine,
    state: &Path,
    only: Option<RunId>,
) -> Result<(), CommandError> {
    let lost = |error: std::io::Error| CommandError::new(format!("the terminal: {error}"));
    let clock = SteadyClock::start();
    let interrupts = Interrupts::listen().map_err(lost)?;
    let mut model = Model::new(clock.now(), only.is_some(), Palette { color });
    let mut reader = SceneReader::new(engine.store(), only);
    let rules = Rules::new([]);
    let mut beside = Beside::new(engine, state, &rules);
    let mut screen = Screen::take(out).map_err(lost)?;
    loop {
        model.update(ViewInput::Now(clock.now()));
        model.update(ViewInput::Size(screen.size().map_err(lost)?));
        match reader.look(clock.now()) {
            Ok(Some(scene)) => drop(model.update(ViewInput::Seen(scene))),
            Ok(None) => {}
            // It may be busy or gone for a moment; what was seen stays.
            Err(error) => drop(model.update(ViewInput::Told(error.to_string()))),
        }
        if let Some((run, output)) = model.looked_at()
            && let Some(seen) = beside.look(&run, output, clock.now())
        {
            model.update(seen);
        }
        screen.draw(|frame| draw::draw(&model, frame)).map_err(lost)?;
        let mut patience = LOOK_EVERY;
        for _ in 0..KEYS_MAX {
            let Some(input) = screen.next(patience).map_err(lost)? else { break };
            patience = Duration::ZERO;
            match model.update(input) {
                Some(Order::Quit) => return Ok(()),
                Some(Order::Command { run, command }) => {
                    let outcome = perform(engine, clock.now(), &run, &command);
                    model.update(ViewInput::Told(outcome));
                }
                Some(Order::Dismiss { run, id, at }) => {
                    let what = (&*id, at.as_millis());
                    let done = dismissed::dismiss(engine.store(), clock.now(), &run, what);
                    let outcome =
                        done.map_or_else(|error| error.to_string(), |()| "Dismissed".to_owned());
                    model.update(ViewInput::Told(outcome));
                    reader.forget();
                }
                Some(Order::Mouse(on)) => screen.mouse(on).map_err(lost)?,
                None => {}
            }
        }
        let asked = interrupts.take();
        if asked.interrupt + asked.terminate > 0 {
            return Ok(());
        }
    }
}

/// Does what a human wants of a run. Returns what came of it, in words.
fn perform(engine: &Engine, now: Timestamp, id: &RunId, command: &HumanCommand) -> String {
    match control::command(engine, now, id, command, "`aldis watch`", None) {
        Ok(Commanded { report, warnings, .. }) if warnings.is_empty() => match report.continues {
            Some(command) => format!("{}; continue it: {command}", report.text),
            None => report.text,
        },
        Ok(Commanded { warnings, .. }) => warnings.join("; "),
        Err(error) => error.to_string(),
    }
}
