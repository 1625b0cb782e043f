//! A human at another terminal.

use aldis_machine::run::{Event, Exit, State};

use super::super::super::oracle::Check;
use super::super::agent::Job;
use super::{World, broken};

impl World {
    /// Says something, or nothing: `aldis pause`, `resume`, `abort`, `answer`.
    pub(super) fn human(&mut self) -> Check {
        let stored = self.engine.stored();
        let question = stored.question.as_ref().map(|question| question.id.clone());
        let there = self.has_agent(&stored);
        let wish = if self.calm { 2 } else { self.rng.below(12) };
        let event = match (wish, question) {
            (0, _) if there => Event::Pause,
            (1..4, None) if there => Event::Resume,
            (2..9, Some(id)) => Event::Answer { id, text: "Yes.".to_owned() },
            (9, _) => Event::Answer { id: "q9".to_owned(), text: "No.".to_owned() },
            (10, _) if self.rng.chance(25) => Event::Abort { by: "`aldis abort`".to_owned() },
            _ => return Ok(()),
        };
        self.note("was told", Some(&event));
        self.tally.events += 1;
        let now = self.wall();
        let aborts = matches!(event, Event::Abort { .. });
        let changed = self.engine.intrude(now, event).map_err(broken)?;
        if changed && aborts {
            // An agent that is not there any more will not report its end.
            let stored = self.engine.stored();
            if !self.has_agent(&stored) {
                let exit = Exit { code: None, signal: None };
                self.engine.intrude(now, Event::Exited(exit)).map_err(broken)?;
            }
        }
        self.judge()
    }

    /// Whether the agent that the run knows is there, as `aldis abort` sees it.
    fn has_agent(&self, stored: &State) -> bool {
        let job = self.life.as_ref().and_then(|life| life.job.as_ref());
        matches!(job, Some(Job::Agent(agent)) if stored.agent.as_ref() == Some(&agent.name))
    }
}
