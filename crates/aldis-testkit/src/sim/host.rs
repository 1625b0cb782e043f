//! A fake host: sessions with turns, and a host's own count of refusals.

use std::rc::Rc;

use aldis_machine::phases::{Cap, OWN_CAP};
use aldis_signal::time::Timestamp;

use crate::corpus::rng::Rng;

/// One session of a host, and what only the host knows.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: Rc<str>,
    pub(super) project: usize,
    pub(super) cap: Cap,
    /// Whether the host tells turns apart, says that a stop follows a refusal, when a turn began,
    /// and when a message was written.
    pub(super) names_turns: bool,
    pub(super) tells_continued: bool,
    pub(super) tells_began: bool,
    pub(super) timed: bool,
    pub(super) turn: Option<Turn>,
    turns: u64,
}

/// A turn, as the host sees it.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) name: String,
    pub(super) began: Timestamp,
    /// Refusals in a row that reached the agent.
    pub(super) refused: u32,
    /// Whether the last stop of this turn was refused.
    pub(super) continued: bool,
    /// Something happened that no hook can know of: the count proves nothing in this turn.
    pub(super) disturbed: bool,
}

impl Session {
    pub(super) fn new(rng: &mut Rng, id: Rc<str>, project: usize) -> Self {
        let limit = rng.pick(&[Some(8), Some(8), Some(3), Some(1), None]);
        Self {
            id,
            project,
            cap: Cap { limit, resets_on_tool_use: rng.chance(50) },
            names_turns: rng.chance(60),
            tells_continued: rng.chance(60),
            tells_began: rng.chance(50),
            timed: rng.chance(40),
            turn: None,
            turns: 0,
        }
    }

    /// Begins a turn and returns its name, where the host has names.
    pub(super) fn begin(&mut self, now: Timestamp) -> Option<String> {
        self.turns += 1;
        let name = format!("{}t{}", self.id, self.turns);
        let turn =
            Turn { name: name.clone(), began: now, refused: 0, continued: false, disturbed: false };
        self.turn = Some(turn);
        self.names_turns.then_some(name)
    }

    /// Counts a refusal that reached the agent. Fails with the count if the host had given up.
    pub(super) fn refused(&mut self, tools_ran: bool, advanced: bool) -> Result<(), u32> {
        let cap = self.cap;
        let Some(turn) = &mut self.turn else { return Ok(()) };
        let worked = tools_ran && (cap.resets_on_tool_use || cap.limit.is_none());
        // Where the host has no limit, getting on with the phases is work as well.
        if worked || advanced && cap.limit.is_none() {
            turn.refused = 0;
        }
        turn.refused += 1;
        turn.continued = true;
        let most = cap.limit.unwrap_or(OWN_CAP);
        if turn.refused > most && !turn.disturbed { Err(turn.refused) } else { Ok(()) }
    }

    /// The agent was let go.
    pub(super) fn end(&mut self) {
        self.turn = None;
    }

    /// Something happened behind the hooks' back.
    pub(super) fn disturb(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.disturbed = true;
        }
    }
}
