//! What a run wants to know from the person at the terminal, and what their words mean.

use aldis_machine::run::{Event, State, Status};

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
