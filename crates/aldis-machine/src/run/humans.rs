//! What humans want of a run: pause, resume, abort, a message, an answer.

use super::event::Effect;
use super::prompt::block;
use super::rule::Rule;
use super::state::{Ending, Outcome, State, Status};
use crate::Evidence;
use crate::evidence::beginning;
use crate::stagnation::Observation;
use crate::words::cause;
use aldis_signal::scan::Token;

/// How much of a human's message a decision shows.
const QUOTE_MAX: usize = 200;

impl State {
    pub(super) fn on_pause(&mut self, by: &str) -> Outcome {
        if self.status != Status::Working {
            return Outcome::nothing();
        }
        self.status = Status::Paused { stagnated: false };
        self.pause_clocks(self.now());
        self.decided(Rule::Paused, "Suspending the agent")
            .because(requested(by))
            .next("`aldis resume` lets it work on")
            .with([Effect::Suspend])
    }

    /// Lets a suspended agent work on, or ends a wait for the service or after a crash at once.
    pub(super) fn on_resume(&mut self, by: &str) -> Outcome {
        if self.waits_by_itself() {
            return self.end_wait(&requested(by));
        }
        if !matches!(self.status, Status::Paused { .. }) {
            return Outcome::nothing();
        }
        self.resume_clocks();
        self.monitor.observe(self.now(), &Observation::Human);
        self.status = Status::Working;
        self.decided(Rule::Resumed, "Resuming the agent")
            .because(requested(by))
            .next("nothing to do; `aldis abort` ends the run")
            .with([Effect::Continue])
    }

    pub(super) fn on_abort(&mut self, by: &str) -> Outcome {
        if self.has_agent() {
            let decided = self
                .decided(Rule::Abort, "Stopping the agent: the run is aborted")
                .because(requested(by))
                .next("the run ends when the agent has stopped");
            let outcome = self.stop_agent(Some(Ending::Aborted), decided);
            self.resume_clocks();
            return outcome;
        }
        let decided = self
            .decided(Rule::Abort, "Aborted")
            .because(requested(by))
            .next("`aldis run --continue` repeats the iteration");
        self.finish(Ending::Aborted, decided)
    }

    /// Keeps a message for the next prompt. A human's message resets what stagnation counts, answers an
    /// open question, and ends the pause after a crash.
    pub(super) fn on_message(&mut self, text: &str, by: &str) -> Outcome {
        if let (Status::Asking, Some(question)) = (&self.status, &self.question) {
            let id = question.id.clone();
            return self.on_answer(&id, text, by);
        }
        self.monitor.observe(self.now(), &Observation::Human);
        self.add_feedback(format!("A message from the human you work for:\n\n{}", block(text)));
        let quote = beginning(text, QUOTE_MAX, &Token::Off);
        let message = Evidence::new("message", quote);
        let next = match self.waiting() {
            Some(waiting) => format!("the next prompt holds it; {waiting}"),
            None => "the next prompt holds it".to_owned(),
        };
        let kept = self
            .decided(Rule::MessageReceived, "Kept a message for the agent")
            .because(format!("sent by {}", cause(by)))
            .seen([message])
            .next(next);
        match self.status {
            Status::Backoff { .. } => kept.then(self.end_wait("a human sent a message")),
            _ => kept,
        }
    }
}

fn requested(by: &str) -> String {
    format!("requested by {}", cause(by))
}

impl State {
    pub(super) fn on_answer(&mut self, id: &str, text: &str, by: &str) -> Outcome {
        let Some(question) = self.question.take_if(|question| question.id == id) else {
            return Outcome::nothing();
        };
        self.resume_clocks();
        self.monitor.observe(self.now(), &Observation::Human);
        if self.take_answer(&question, text, by) {
            return self.finish_accepted();
        }
        // The iteration that asked is repeated: a question does not use one up.
        let started = self.start_attempt();
        let iteration = self.iteration;
        self.decided(
            Rule::Answered,
            format!("Repeating iteration {iteration} with the answer to {id}"),
        )
        .because(format!("answered by {}", cause(by)))
        .next("nothing to do; `aldis abort` ends the run")
        .with([started])
    }

    /// Keeps an answer for when the run is reopened.
    pub(super) fn on_late_answer(&mut self, id: &str, text: &str, by: &str) -> Outcome {
        let Some(question) = self.question.take_if(|question| question.id == id) else {
            return Outcome::nothing();
        };
        if self.take_answer(&question, text, by) {
            return self
                .decided(Rule::AnswerKept, format!("Kept the answer to {id}"))
                .because("the run has ended")
                .next("`aldis run --continue` ends it as done");
        }
        self.decided(Rule::AnswerKept, format!("Kept the answer to {id}"))
            .because("the run has ended")
            .next("`aldis run --continue` gives it to the agent")
    }
}
