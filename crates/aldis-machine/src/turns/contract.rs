//! How the engine drives a channel.

use super::event::{Effect, Event, Outcome};
use super::holder::TurnHolder;
use super::rule::Rule;
use super::state::{Start, State};
use crate::{Begun, HumanCommand, Machine, NotPossible, StartError, Summary};
use aldis_signal::time::Timestamp;

impl Machine for State {
    const NAME: &'static str = "turns";
    const HAS_QUIET_EVENTS: bool = false;
    type Start = Start;
    type Event = Event;
    type Effect = Effect;

    fn start(now: Timestamp, start: Start) -> Result<Begun<Self>, StartError> {
        let begun = Self::start(now, start);
        let (state, outcome) = begun.map_err(|error| StartError::new(error.to_string()))?;
        Ok(Begun { state, outcome })
    }

    /// Continues as the state file left it. What was due meanwhile is due now.
    fn adopt(now: Timestamp, mut state: Self) -> Result<Begun<Self>, StartError> {
        let mut outcome = state.on_event(now, &Event::Recovered);
        if outcome.decisions.is_empty() {
            state
                .decide(Rule::Adopted, "Took over the channel")
                .because("a state file was imported")
                .next("the channel continues where it was");
            outcome.decisions = std::mem::take(&mut state.out.decisions);
        }
        Ok(Begun { state, outcome })
    }

    fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        Self::on_event(self, now, event)
    }

    fn next_wake(&self) -> Option<Timestamp> {
        Self::next_wake(self)
    }

    fn wake_event(&self, missed: bool) -> Option<Event> {
        Some(if missed { Event::Recovered } else { Event::Wake { turn: None } })
    }

    fn event_of(&self, command: &HumanCommand, by: String) -> Result<Event, NotPossible> {
        let paused = matches!(self.holder, TurnHolder::Paused { .. });
        let waits = paused || matches!(self.holder, TurnHolder::Interrupted { .. });
        match command {
            HumanCommand::Answer { id, .. } => Err(NotPossible::NoSuchQuestion(id.clone())),
            _ if self.closed => Err(NotPossible::Ended),
            HumanCommand::Abort => Ok(Event::Close { by }),
            HumanCommand::Pause if paused => Err(NotPossible::AlreadyPaused),
            HumanCommand::Pause if !self.takes_turns() => Err(NotPossible::NothingToPause),
            HumanCommand::Pause => Ok(Event::Pause { by }),
            HumanCommand::Resume if waits => Ok(Event::Resume { by }),
            HumanCommand::Resume => Err(NotPossible::NotPaused),
            HumanCommand::Tell { to: Some(to), .. } if !self.queue.contains(to) => {
                Err(NotPossible::NoSuchRecipient(to.clone()))
            }
            HumanCommand::Tell { text, to } => {
                Ok(Event::Human { text: text.clone(), from: None, to: to.clone(), by })
            }
        }
    }

    fn summary(&self) -> Summary<'_> {
        Summary { title: &self.channel, active: !self.closed, session: None }
    }

    fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn from_stored(state: &str, _parts: &[(&str, &str)]) -> Result<Self, String> {
        serde_json::from_str(state).map_err(|error| error.to_string())
    }
}
