//! What a run wants to know from the person at the terminal, and what their words and Ctrl-C mean.

use std::time::Duration;

use aldis_machine::run::{Event, State, Status};

use super::Supervisor;
use crate::error::CommandError;

impl Supervisor<'_> {
    /// The first time the agent is asked to stop; the second time it is ended.
    pub(super) fn interrupted(&mut self) -> Result<(), CommandError> {
        // Checks and iterations that take too long have a deadline too, and the run goes on after it.
        if matches!(self.open.state.status, Status::Ending { with: Some(_) }) {
            return self.end_job(Duration::ZERO);
        }
        self.advance(Event::Abort { by: "Ctrl-C".to_owned() })
    }
}

/// What the run wants to know.
pub(super) fn wanted(state: &State) -> Option<String> {
    match (&state.status, &state.question) {
        (Status::Asking, Some(question)) => Some(format!("answer {}", question.id)),
        (Status::Paused { stagnated: true }, _) => Some("resume or abort?".to_owned()),
        _ => None,
    }
}

/// What a typed line means; nothing is asked again.
pub(super) fn understood(state: &State, line: &str) -> Option<Event> {
    match (&state.status, &state.question, line) {
        (Status::Asking, Some(question), text) => Some(Event::Answer {
            id: question.id.clone(),
            text: text.to_owned(),
            by: "the terminal".to_owned(),
        }),
        (Status::Paused { .. }, _, "r" | "resume" | "y" | "yes") => {
            Some(Event::Resume { by: "the terminal".to_owned() })
        }
        (Status::Paused { .. }, _, "a" | "abort" | "n" | "no") => {
            Some(Event::Abort { by: "the terminal".to_owned() })
        }
        _ => None,
    }
}
