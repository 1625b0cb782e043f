//! The person at the terminal, asked on the spot.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use aldis_core::machine::run::{Event, State, Status};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::display;

/// Whoever sits there, if anybody does.
#[derive(Debug)]
pub(super) struct Person {
    present: bool,
    /// What was asked last, so that it is asked once.
    asked: Option<String>,
}

impl Person {
    /// Looks whether somebody can read and type.
    pub(super) fn look() -> Self {
        Self { present: io::stdin().is_terminal() && io::stderr().is_terminal(), asked: None }
    }

    /// Nobody is to be asked.
    pub(super) fn absent() -> Self {
        Self { present: false, asked: None }
    }

    /// Asks what the run waits for, once, and returns what was typed since, without waiting.
    pub(super) fn attend(&mut self, state: &State) -> Option<Event> {
        let wanted = wanted(state).filter(|_| self.present);
        if wanted.is_none() {
            self.asked = None;
            return None;
        }
        if self.asked != wanted {
            let question = wanted.as_deref().map(display::line).unwrap_or_default();
            let _asked = write!(io::stderr(), "{question} > ");
            self.asked = wanted;
        }
        let line = self.typed()?;
        self.asked = None;
        understood(state, line.trim())
    }

    fn typed(&mut self) -> Option<String> {
        let stdin = io::stdin();
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        let at_once = Timespec::try_from(Duration::ZERO).ok()?;
        if poll(&mut watched, Some(&at_once)).ok()? == 0 {
            return None;
        }
        let mut line = String::new();
        // The end of the input: from here on `aldis answer` is the way.
        if stdin.lock().read_line(&mut line).ok()? == 0 {
            self.present = false;
            return None;
        }
        Some(line)
    }
}

/// What the run wants to know.
fn wanted(state: &State) -> Option<String> {
    match (&state.status, &state.question) {
        (Status::Asking, Some(question)) => Some(format!("answer {}", question.id)),
        (Status::Paused { stagnated: true }, _) => Some("resume or abort?".to_owned()),
        _ => None,
    }
}

/// What a typed line means; nothing is asked again.
fn understood(state: &State, line: &str) -> Option<Event> {
    match (&state.status, &state.question, line) {
        (_, _, "") => None,
        (Status::Asking, Some(question), text) => {
            Some(Event::Answer { id: question.id.clone(), text: text.to_owned() })
        }
        (Status::Paused { .. }, _, "r" | "resume" | "y" | "yes") => Some(Event::Resume),
        (Status::Paused { .. }, _, "a" | "abort" | "n" | "no") => {
            Some(Event::Abort { by: "the terminal".to_owned() })
        }
        _ => None,
    }
}
