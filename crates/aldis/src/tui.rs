//! `aldis watch`: what goes on, live, on a terminal.
//!
//! [`scene`] reads the store, [`model`] is the state of the view and decides what keys mean,
//! [`words`] and [`draw`] show it, [`screen`] is the terminal. Only this file brings them together.

mod draw;
mod layout;
mod model;
mod palette;
mod scene;
mod screen;
#[cfg(test)]
mod tests;
mod words;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{RunId, Store};

use self::model::{Input, Model, Order};
use self::palette::Palette;
use self::scene::Reader;
use self::screen::Screen;
use crate::engine::keeper::Keeper;
use crate::engine::machines::Wish;
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
    store: Arc<dyn Store>,
    only: Option<RunId>,
) -> Result<(), CommandError> {
    let lost = |error: std::io::Error| CommandError::new(format!("the terminal: {error}"));
    let clock = SteadyClock::start();
    let interrupts = Interrupts::listen().map_err(lost)?;
    let keeper = Keeper::new(Arc::clone(&store), Box::new(|_, _| Vec::new()), Arc::new(|_| {}));
    let mut model = Model::new(clock.now(), only.is_some(), Palette { color });
    let mut reader = Reader::new(&*store, only);
    let mut screen = Screen::take(out).map_err(lost)?;
    loop {
        model.update(Input::Now(clock.now()));
        model.update(Input::Size(screen.size().map_err(lost)?));
        match reader.look(clock.now()) {
            Ok(Some(scene)) => drop(model.update(Input::Seen(scene))),
            Ok(None) => {}
            // It may be busy or gone for a moment; what was seen stays.
            Err(error) => drop(model.update(Input::Told(error.to_string()))),
        }
        screen.draw(|frame| draw::draw(&model, frame)).map_err(lost)?;
        let mut patience = LOOK_EVERY;
        for _ in 0..KEYS_MAX {
            let Some(input) = screen.next(patience).map_err(lost)? else { break };
            patience = Duration::ZERO;
            match model.update(input) {
                Some(Order::Quit) => return Ok(()),
                Some(Order::Tell { run, wish }) => {
                    let told = tell(&keeper, clock.now(), &run, &wish);
                    model.update(Input::Told(told));
                }
                None => {}
            }
        }
        let asked = interrupts.take();
        if asked.interrupt + asked.terminate > 0 {
            return Ok(());
        }
    }
}

/// Tells a run what a human wants of it. Returns what came of it, in words.
fn tell(keeper: &Keeper, now: Timestamp, id: &RunId, wish: &Wish) -> String {
    let run = match keeper.load(id) {
        Ok(run) => run,
        Err(error) => return error.to_string(),
    };
    if run.record.driver == aldis_store::Driver::Server {
        // What it leads to is for the server to carry out.
        return format!("{id} belongs to `aldis serve`: use its dashboard or its API");
    }
    match keeper.wish(now, id, wish, None) {
        Ok(answer) if answer.warnings.is_empty() => match wish {
            Wish::Pause => format!("{id} is asked to rest"),
            Wish::Resume => format!("{id} goes on"),
            Wish::Abort => format!("{id} is asked to end"),
            Wish::Answer { .. } => format!("{id} has its answer"),
        },
        Ok(answer) => answer.warnings.join("; "),
        Err(error) => error.to_string(),
    }
}
