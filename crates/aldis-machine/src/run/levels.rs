//! What missing progress means for the run: a warning, a pause, the end.

use super::event::{Effect, Notice};
use super::rule::Rule;
use super::state::{Ending, Outcome, State, Status};
use crate::stagnation::{Level, LevelChange, Observation};
use crate::words::duration;

impl State {
    /// Takes an observation, and does what a change of the level asks for.
    pub(super) fn observe(&mut self, observation: &Observation) -> Outcome {
        let change = self.monitor.observe(self.now(), observation);
        change.map_or_else(Outcome::nothing, |change| self.on_level_change(change))
    }

    /// What a change of the level means while the agent works.
    pub(super) fn on_level_change(&mut self, change: LevelChange) -> Outcome {
        let text = change.because;
        let working = self.status == Status::Working;
        // An agent that is suspended for this very reason is stopped by the next level.
        let suspended = self.status == Status::Paused { stagnated: true };
        match change.to {
            Level::None => self.decided(Rule::StagnationCleared, "Progress again").because(text),
            Level::Warn => {
                self.nudge(&text);
                self.decided(Rule::StagnationWarn, "Warning: no progress")
                    .because(&*text)
                    .next("the agent gets a hint in its next prompt")
                    .with([Effect::notice(Notice::StagnationWarn, text)])
            }
            Level::Pause if working => {
                self.status = Status::Paused { stagnated: true };
                self.clock.paused_at = Some(self.now());
                let limit = self.start.config.stagnation.pause_limit;
                let limit = limit.map(|it| format!("; without either it ends in {}", duration(it)));
                let limit = limit.unwrap_or_default();
                self.decided(Rule::StagnationPause, "Suspending the agent: no progress")
                    .because(&*text)
                    .next(format!("`aldis resume` lets it work on, `aldis abort` ends it{limit}"))
                    .with([Effect::Suspend, Effect::notice(Notice::StagnationPause, text)])
            }
            Level::Abort if working || suspended => {
                self.stop_stagnated(Rule::StagnationAbort, "no progress", text)
            }
            Level::Pause | Level::Abort => Outcome::nothing(),
        }
    }

    /// Stops an agent that was suspended for missing progress and that nobody resumed.
    pub(super) fn on_expired_pause(&mut self, limit: u64) -> Outcome {
        let limit = duration(limit);
        let because =
            format!("it was suspended for missing progress, and nobody resumed it within {limit}");
        self.stop_stagnated(Rule::PauseExpired, "it stayed suspended", because)
    }

    fn stop_stagnated(&mut self, rule: Rule, cause: &str, because: String) -> Outcome {
        let decided = self
            .decided(rule, format!("Stopping the agent: {cause}"))
            .because(&*because)
            .next("the run ends when the agent has stopped");
        let notice = Effect::notice(Notice::StagnationAbort, because);
        self.stop_agent(Some(Ending::Stagnated), decided).with([notice])
    }

    /// What the level means between two iterations: the end, or what people are told before the next.
    pub(super) fn between_iterations(
        &mut self,
        change: Option<&LevelChange>,
    ) -> Result<Option<Effect>, Outcome> {
        let because = change.map(|change| change.because.clone());
        let notice = match self.monitor.level() {
            Level::None => return Ok(None),
            Level::Warn => Notice::StagnationWarn,
            // A pause without an agent would have nobody to suspend: the next prompt has the hint.
            Level::Pause => Notice::StagnationPause,
            // Whenever it was reached: while an agent is asked to stop, nothing is done about it.
            Level::Abort => {
                self.attempt.stop_because = because.or_else(|| self.monitor.cause(self.now()));
                let mut outcome = self.end_with(Ending::Stagnated);
                let because = outcome.decision().map(|decision| decision.because.clone());
                let notice = because.map(|it| Effect::notice(Notice::StagnationAbort, it));
                outcome.effects.splice(0..0, notice);
                return Err(outcome);
            }
        };
        Ok(because.map(|because| {
            self.nudge(&because);
            Effect::notice(notice, because)
        }))
    }

    /// Hints at missing progress in the next prompt. One hint is enough, and the latest is right.
    fn nudge(&mut self, because: &str) {
        const BEGINNING: &str = "There is no evidence of progress";
        let hint =
            format!("{BEGINNING}: {because}. Try another approach, or report what you need.");
        self.replace_feedback(BEGINNING, hint);
    }
}
