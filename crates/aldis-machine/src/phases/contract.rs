//! How the engine drives a run through the phases.

use super::event::Event;
use super::human::NotResumable;
use super::rule::Rule;
use super::state::{Effect, Outcome, Start, State};
use crate::{Begun, HumanCommand, Machine, NotPossible, StartError, Summary};
use aldis_signal::time::Timestamp;

impl Machine for State {
    const NAME: &'static str = "phases";
    const HAS_QUIET_EVENTS: bool = false;
    type Start = Start;
    type Event = Event;
    type Effect = Effect;

    fn start(now: Timestamp, start: Start) -> Result<Begun<Self>, StartError> {
        let state = Self::start(now, start);
        let phase = &state.progress.phase;
        let outcome = Outcome::decided(Rule::Started, format!("Started the run in phase {phase}"))
            .because("requested by a human")
            .next(format!("send a prompt to the agent: it brings the prompt of phase {phase}"))
            .with([Effect::WriteView]);
        Ok(Begun { state, outcome })
    }

    fn adopt(_now: Timestamp, state: Self) -> Result<Begun<Self>, StartError> {
        Ok(Begun { state, outcome: Outcome::nothing() })
    }

    fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        Self::on_event(self, now, event)
    }

    /// Whether a run is stale is decided when its session stops, and at no other time.
    fn next_wake(&self) -> Option<Timestamp> {
        None
    }

    fn wake_event(&self, _missed: bool) -> Option<Event> {
        None
    }

    fn event_of(&self, command: &HumanCommand, by: String) -> Result<Event, NotPossible> {
        match command {
            HumanCommand::Answer { id, text } => match self.question() {
                Some(question) if question.id == *id && self.checks.asks.is_some() => {
                    Ok(Event::ClaimAnswered { text: text.clone(), by, fresh_token: None })
                }
                Some(question) if question.id == *id => Ok(Event::Tell { text: text.clone(), by }),
                _ => Err(NotPossible::NoSuchQuestion(id.clone())),
            },
            // Whoever let a capped agent go reads that its run is paused.
            HumanCommand::Resume
                if self.progress.active && !self.paused && !self.block_limit.capped =>
            {
                Err(NotPossible::NotPaused)
            }
            HumanCommand::Resume => match self.can_resume() {
                Ok(()) => Ok(Event::Resume { fresh_token: None, by }),
                Err(NotResumable::Complete | NotResumable::Cancelled | NotResumable::Ended) => {
                    Err(NotPossible::Ended)
                }
            },
            _ if !self.is_live() => Err(NotPossible::Ended),
            HumanCommand::Abort => Ok(Event::Cancel { by }),
            HumanCommand::Pause if self.paused => Err(NotPossible::AlreadyPaused),
            HumanCommand::Pause => Ok(Event::Pause { by }),
            HumanCommand::Tell { to: Some(to), .. } => {
                Err(NotPossible::NoSuchRecipient(to.clone()))
            }
            HumanCommand::Tell { text, to: None } => Ok(Event::Tell { text: text.clone(), by }),
        }
    }

    fn summary(&self) -> Summary<'_> {
        Summary {
            title: &self.setup.task,
            active: self.progress.active,
            session: self.session.as_deref(),
        }
    }

    fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn from_stored(state: &str, _parts: &[(&str, &str)]) -> Result<Self, String> {
        serde_json::from_str(state).map_err(|error| error.to_string())
    }
}
