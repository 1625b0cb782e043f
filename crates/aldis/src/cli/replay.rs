//! `aldis replay`: runs a journal through today's machine and compares.

use std::io::Write as _;

use aldis_engine::{Difference, Engine};
use clap::Args;

use super::{Outcome, why};
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::home;
use crate::view::display;

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
    let engine = Engine::new(home::open_store(io.state_dir.as_deref())?);
    let replay = engine.replay(&why::find(engine.store(), &args.run)?)?;
    for difference in &replay.differences {
        writeln!(io.stdout, "{}", display::line(&in_words(difference)))?;
    }
    if !replay.differences.is_empty() {
        return Ok(Outcome::No);
    }
    let (events, decisions) = (replay.events, replay.decisions.len());
    writeln!(io.stdout, "{events} events, {decisions} decisions: the same today")?;
    Ok(Outcome::Yes)
}

fn in_words(difference: &Difference) -> String {
    match difference {
        Difference::Decision { number, member, was, is } => {
            format!("decision {number}, {member}: was {was}, is {is}")
        }
        Difference::Missing { number, rule } => {
            format!("decision {number} ({rule}) is not made today")
        }
        Difference::Added { number, rule } => {
            format!("decision {number} ({rule}) was not made then")
        }
        Difference::State { members } => format!("the state differs: {}", members.join(", ")),
    }
}
