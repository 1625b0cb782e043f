//! How the engine drives a delivery: in parts, so that a step costs the same however many tasks
//! there are.

use super::event::{Effect, Event};
use super::plan::PlanProblem;
use super::signal::Role;
use super::state::{Outcome, Start, State};
use super::task::Task;
use crate::{Begun, HumanCommand, Machine, NotPossible, StartError, Summary, Urgency};
use aldis_signal::time::Timestamp;

/// What the keys of tasks begin with.
const TASK: &str = "task/";

impl Machine for State {
    const NAME: &'static str = "delivery";
    const HAS_QUIET_EVENTS: bool = true;
    type Start = Start;
    type Event = Event;
    type Effect = Effect;

    fn start(now: Timestamp, start: Start) -> Result<Begun<Self>, StartError> {
        let fatal =
            |problem: &PlanProblem| problem.fatal.then(|| format!("{problem}; {}", problem.help));
        if let Some(problem) = start.plan.check(&[]).iter().find_map(fatal) {
            return Err(StartError::new(problem));
        }
        start.config.check().map_err(|error| StartError::new(error.to_string()))?;
        let proof = start.config.proof.validate();
        proof.map_err(|error| StartError::new(format!("`config.proof`: {error}")))?;
        Ok(Begun { state: Self::start(now, start), outcome: Outcome::nothing() })
    }

    fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        Self::on_event(self, now, event)
    }

    fn next_wake(&self) -> Option<Timestamp> {
        self.run.wake
    }

    fn wake_event(&self, _missed: bool) -> Option<Event> {
        Some(Event::Tick)
    }

    fn event_of(&self, command: &HumanCommand, by: String) -> Result<Event, NotPossible> {
        let paused = self.run.paused;
        match command {
            HumanCommand::Answer { id, .. } if !self.run.questions.contains_key(id) => {
                Err(NotPossible::NoSuchQuestion(id.clone()))
            }
            // An answer is kept for when the delivery is continued.
            HumanCommand::Answer { id, text } if self.takes_answers() => {
                Ok(Event::Answer { id: id.clone(), text: text.clone(), by })
            }
            _ if self.ending().is_some() => Err(NotPossible::Ended),
            HumanCommand::Answer { id, .. } => Err(NotPossible::NoSuchQuestion(id.clone())),
            HumanCommand::Abort => Ok(Event::Abort { by }),
            HumanCommand::Pause if paused => Err(NotPossible::AlreadyPaused),
            HumanCommand::Pause => Ok(Event::Pause { by }),
            HumanCommand::Resume if !paused => Err(NotPossible::NotPaused),
            HumanCommand::Resume => Ok(Event::Resume { by }),
            HumanCommand::Tell { text, to } => match to {
                Some(to) if self.task(to).is_none() && Role::named(to).is_none() => {
                    Err(NotPossible::NoSuchRecipient(to.clone()))
                }
                to => Ok(Event::Tell { text: text.clone(), to: to.clone(), by }),
            },
        }
    }

    fn urgency(event: &Event) -> Urgency {
        match event {
            Event::Tick => Urgency::Never,
            Event::Spent { .. } => Urgency::Soon,
            Event::Worker { report, .. } => Self::urgency(report),
            _ => Urgency::Eventually,
        }
    }

    fn supersedes(event: &Event, earlier: &Event) -> bool {
        // What was spent is a difference each time, and a checkpoint that did not come is counted by
        // whatever tick notices it: none may be left out.
        match (event, earlier) {
            (Event::Active { agent }, Event::Active { agent: before })
            | (Event::Worked { agent }, Event::Worked { agent: before })
            | (Event::Waiting { agent }, Event::Waiting { agent: before }) => agent == before,
            (
                Event::Worker { fence, report, .. },
                Event::Worker { fence: before, report: earlier, .. },
            ) => fence == before && Self::supersedes(report, earlier),
            _ => false,
        }
    }

    fn separates(between: &Event, event: &Event) -> bool {
        match (between, event) {
            // How long an agent waited counts, from its first sign of waiting to its next work.
            (Event::Waiting { agent: before }, Event::Worked { agent })
            | (Event::Worked { agent: before }, Event::Waiting { agent }) => before == agent,
            (
                Event::Active { .. }
                | Event::Worked { .. }
                | Event::Waiting { .. }
                | Event::Spent { .. },
                _,
            ) => false,
            (Event::Worker { report: between, .. }, Event::Worker { report, .. }) => {
                Self::separates(between, report)
            }
            // Whatever looks at how long an agent was silent looks at the last sign before it.
            _ => true,
        }
    }

    fn summary(&self) -> Summary<'_> {
        Summary { title: &self.run.title, active: self.run.ending.is_none(), session: None }
    }

    fn to_stored(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&self.run)
    }

    fn parts(&self) -> Result<Vec<(String, String)>, serde_json::Error> {
        self.tasks.iter().enumerate().map(part).collect()
    }

    fn take_changed_parts(&mut self) -> Result<Vec<(String, String)>, serde_json::Error> {
        let changed = self.take_changed();
        let changed = changed.into_iter().filter_map(|no| Some((no, self.tasks.get(no)?)));
        changed.map(part).collect()
    }

    fn from_stored(state: &str, parts: &[(&str, &str)]) -> Result<Self, String> {
        let run = serde_json::from_str(state).map_err(|error| error.to_string())?;
        let tasks = parts.iter().filter(|(key, _)| key.starts_with(TASK));
        let tasks: Result<Vec<_>, _> = tasks.map(|(_, body)| serde_json::from_str(body)).collect();
        let tasks = tasks.map_err(|error| error.to_string())?;
        Self::from_parts(run, tasks)
    }
}

/// A task as it is stored. Sorted by key, tasks are in the plan's order.
fn part((no, task): (usize, &Task)) -> Result<(String, String), serde_json::Error> {
    Ok((format!("{TASK}{no:08}"), serde_json::to_string(task)?))
}
