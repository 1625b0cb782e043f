//! How the engine drives a supervised run.

use std::time::Duration;

use super::event::{Effect, Event};
use super::state::{Outcome, Start, State, Status};
use crate::{Begun, HumanCommand, Machine, NotPossible, StartError, Summary, Urgency};
use aldis_signal::time::Timestamp;

impl Machine for State {
    const NAME: &'static str = "run";
    const HAS_QUIET_EVENTS: bool = true;
    type Start = Start;
    type Event = Event;
    type Effect = Effect;

    fn start(now: Timestamp, start: Start) -> Result<Begun<Self>, StartError> {
        start.config.check().map_err(|error| StartError::new(format!("`config`: {error}")))?;
        let proof = start.config.proof.validate();
        proof.map_err(|error| StartError::new(format!("`config.proof`: {error}")))?;
        // Nothing begins before whoever supervises it says so.
        Ok(Begun { state: Self::start(now, start), outcome: Outcome::nothing() })
    }

    fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        Self::on_event(self, now, event)
    }

    fn next_wake(&self) -> Option<Timestamp> {
        let after = |since: Timestamp, seconds: u64| since.after(Duration::from_secs(seconds));
        let now = self.clock.seen_at.unwrap_or(self.clock.started_at);
        let left = self
            .start
            .config
            .timeout
            .saturating_mul(1_000)
            .saturating_sub(self.worked_since_opened(now));
        let out_of_time = now.after(Duration::from_millis(left));
        let level = self.monitor.next_change(now);
        let watched = &self.start.config.stagnation;
        match self.status {
            Status::Limited { until } | Status::Backoff { until } => Some(until),
            Status::Working => {
                let grace = self.attempt.claimed_at.map(|at| after(at, watched.grace_period));
                let over =
                    after(self.clock.iteration_started_at, self.start.config.iteration_timeout);
                [Some(out_of_time), Some(over), grace, level].into_iter().flatten().min()
            }
            Status::Paused { stagnated: true } => {
                let since = self.clock.paused_at.or(self.clock.waiting_since).unwrap_or(now);
                let expires = watched.pause_limit.map(|limit| after(since, limit));
                [Some(out_of_time), expires, level].into_iter().flatten().min()
            }
            _ => None,
        }
    }

    fn wake_event(&self, _missed: bool) -> Option<Event> {
        Some(Event::Tick)
    }

    fn event_of(&self, command: &HumanCommand, by: String) -> Result<Event, NotPossible> {
        let paused = matches!(self.status, Status::Paused { .. });
        let ended = self.ending().is_some();
        match command {
            // An answer may come when nobody waits for it any more: the next start has it.
            HumanCommand::Answer { id, text } => match &self.question {
                Some(question) if question.id == *id => {
                    Ok(Event::Answer { id: id.clone(), text: text.clone(), by })
                }
                _ => Err(NotPossible::NoSuchQuestion(id.clone())),
            },
            _ if ended => Err(NotPossible::Ended),
            HumanCommand::Abort => Ok(Event::Abort { by }),
            HumanCommand::Pause if paused => Err(NotPossible::AlreadyPaused),
            HumanCommand::Pause if self.status == Status::Working => Ok(Event::Pause { by }),
            HumanCommand::Pause => Err(NotPossible::NothingToPause),
            HumanCommand::Resume if paused || self.waits_by_itself() => Ok(Event::Resume { by }),
            HumanCommand::Resume => Err(NotPossible::NotPaused),
            HumanCommand::Tell { text, .. } => Ok(Event::Tell { text: text.clone(), by }),
        }
    }

    fn urgency(event: &Event) -> Urgency {
        match event {
            Event::Tick => Urgency::Never,
            Event::Spent(_) => Urgency::Soon,
            _ => Urgency::Eventually,
        }
    }

    fn supersedes(event: &Event, earlier: &Event) -> bool {
        match (event, earlier) {
            (Event::Tick, Event::Tick) | (Event::Activity, Event::Activity) => true,
            // The highest counts.
            (Event::Spent(now), Event::Spent(before)) => {
                now.tokens >= before.tokens && now.micro_dollars >= before.micro_dollars
            }
            _ => false,
        }
    }

    fn summary(&self) -> Summary<'_> {
        Summary { title: &self.start.task, active: self.ending().is_none(), session: None }
    }

    fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    fn from_stored(state: &str, _parts: &[(&str, &str)]) -> Result<Self, String> {
        serde_json::from_str(state).map_err(|error| error.to_string())
    }
}
