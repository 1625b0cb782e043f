//! Stagnation: does the work still make progress?
//!
//! A monitor compares the states that an agent reports and the evidence of work beside them, and
//! returns a level: none, warn, pause or abort. A clock tick is enough to reach one, so a silent
//! agent is caught. Waiting for a human, a limit or a background task is not stagnation.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::limits::settings;
use crate::words::{counted, duration};
use aldis_signal::codes;
use aldis_signal::time::Timestamp;

codes! {
    /// What is to be done about missing progress.
    #[derive(Default)]
    pub enum Level {
        /// Nothing.
        #[default]
        None = "none",
        /// Warn people, and the agent in its next prompt.
        Warn = "warn",
        /// Suspend the agent until a human decides.
        Pause = "pause",
        /// End the run.
        Abort = "abort",
    }
}

settings! {
    /// What reaches which level. 0 switches a threshold off.
    pub struct Config {
        /// Whether the monitor reaches any level at all.
        enabled: bool = false;
        /// Identical states, or finished iterations without evidence, before a warning.
        warn_repeats: u32 = 3;
        /// The same, before a pause.
        pause_repeats: u32 = 5;
        /// The same, before the end.
        abort_repeats: u32 = 7;
        /// Seconds since the last progress before a warning.
        warn_timeout: u64 = 600;
        /// Seconds since the last progress before a pause.
        pause_timeout: u64 = 1_200;
        /// Seconds since the start before the end, whatever happens. Time in a pause for missing
        /// progress counts.
        abort_timeout: u64 = 1_800;
        /// The iteration at which to warn.
        warn_at_iteration: u32 = 8;
        /// The iteration at which to pause.
        pause_at_iteration: u32 = 12;
        /// The iteration at which to end.
        abort_at_iteration: u32 = 15;
        /// Seconds an agent has to stop by itself before it is ended.
        grace_period: u64 = 30;
        /// Seconds that an agent stays suspended for missing progress before the run is ended; `None`
        /// waits for a human without end. A human's own pause has no limit.
        pause_limit: Option<u64> = Some(3_600), limit;
        /// Whether uncommitted work is kept on a branch of its own when the run is ended.
        commit_partial_work: bool = true;
        /// Accepted for compatibility; counts are never limited by it.
        state_history_size: u32 = 0;
    }
}

impl Config {
    /// Returns the defaults of `aldis run`: enabled, and without the limits that its own time and
    /// iteration limits replace.
    pub fn supervised() -> Self {
        Self {
            enabled: true,
            abort_timeout: 0,
            warn_at_iteration: 0,
            pause_at_iteration: 0,
            abort_at_iteration: 0,
            ..Self::default()
        }
    }
}

/// What the monitor observes. Exhaustive: each counts in some way, or says why it does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "observed", rename_all = "snake_case")]
pub enum Observation {
    /// The agent reported its state.
    State {
        /// The phase, by name.
        phase: String,
        /// The percentage.
        progress: Option<u8>,
        /// The agent's own count of iterations.
        iteration: u32,
        /// The fingerprint of the work tree, where it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fingerprint: Option<String>,
    },
    /// Evidence of work: a commit, a changed file, a tool that ran.
    Evidence,
    /// An iteration of the supervisor is over.
    IterationEnded {
        /// Its number, from 1.
        iteration: u32,
    },
    /// The agent waits for a human, a limit or a background task.
    Waiting,
    /// The wait is over.
    Awake,
    /// A human intervened: everything counts from here.
    Human,
    /// Time passed.
    Tick,
}

/// A change of the level.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelChange {
    /// Before.
    pub from: Level,
    /// Now.
    pub to: Level,
    /// The measure that caused it, as a clause.
    pub because: String,
}

/// The monitor of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    config: Config,
    started: Timestamp,
    last_progress: Timestamp,
    /// The last state reported, and how often in a row.
    state: Option<(String, Option<u8>, u32, Option<String>)>,
    repeats: u32,
    /// The best percentage in this phase.
    best: Option<u8>,
    /// Finished iterations in a row without evidence.
    idle_iterations: u32,
    evidence: bool,
    /// The highest iteration seen.
    iteration: u32,
    waiting_since: Option<Timestamp>,
    level: Level,
}

impl Monitor {
    /// Starts to observe.
    pub fn new(now: Timestamp, config: Config) -> Self {
        Self { config, started: now, last_progress: now, ..Self::default() }
    }

    /// Returns the current level.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns when progress was last seen.
    pub fn last_progress(&self) -> Timestamp {
        self.last_progress
    }

    /// Returns the measure that is the cause of the current level, as a clause.
    pub fn cause(&self, now: Timestamp) -> Option<String> {
        (self.level != Level::None).then(|| self.worst(now).1)
    }

    /// Returns when time alone changes the level next, if it does.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        if !self.config.enabled || self.waiting_since.is_some() {
            return None;
        }
        [
            (self.last_progress, self.config.warn_timeout),
            (self.last_progress, self.config.pause_timeout),
            (self.started, self.config.abort_timeout),
        ]
        .into_iter()
        .filter(|(_, seconds)| *seconds > 0)
        .map(|(since, seconds)| since.after(Duration::from_secs(seconds)))
        .filter(|at| *at > now)
        .min()
    }

    /// Takes an observation. Returns the change of the level, which is reported once.
    pub fn observe(&mut self, now: Timestamp, observation: &Observation) -> Option<LevelChange> {
        self.observe_times(now, observation, 1)
    }

    /// Takes a state that was reported so many times in a row, as one observation. Other observations
    /// count once.
    pub fn observe_times(
        &mut self,
        now: Timestamp,
        observation: &Observation,
        times: u32,
    ) -> Option<LevelChange> {
        match observation {
            Observation::State { phase, progress, iteration, fingerprint } => {
                let state = (phase.clone(), *progress, *iteration, fingerprint.clone());
                self.report(now, state);
                self.repeats = self.repeats.saturating_add(times.saturating_sub(1));
            }
            Observation::Evidence => self.progressed(now),
            Observation::IterationEnded { iteration } => {
                self.iteration = self.iteration.max(*iteration);
                let moved = std::mem::take(&mut self.evidence);
                self.idle_iterations =
                    if moved { 0 } else { self.idle_iterations.saturating_add(1) };
            }
            Observation::Waiting => self.waiting_since = self.waiting_since.or(Some(now)),
            Observation::Awake => self.wake(now),
            Observation::Human => {
                self.wake(now);
                *self = Self {
                    iteration: self.iteration,
                    level: self.level,
                    ..Self::new(now, self.config.clone())
                };
            }
            Observation::Tick => {}
        }
        self.judge(now)
    }

    fn report(&mut self, now: Timestamp, state: (String, Option<u8>, u32, Option<String>)) {
        if self.state.as_ref() == Some(&state) {
            self.repeats = self.repeats.saturating_add(1);
            return;
        }
        let (phase, progress, iteration, fingerprint) = &state;
        let before = self.state.as_ref();
        let new_phase = before.is_none_or(|(before, ..)| before != phase);
        let further = *progress > self.best;
        let touched = before.is_some_and(|(.., before)| before != fingerprint);
        if new_phase || further || touched {
            self.progressed(now);
        }
        self.best = if new_phase { *progress } else { self.best.max(*progress) };
        self.iteration = self.iteration.max(*iteration);
        self.state = Some(state);
        self.repeats = 1;
    }

    fn progressed(&mut self, now: Timestamp) {
        self.last_progress = now;
        self.repeats = 0;
        self.evidence = true;
        self.idle_iterations = 0;
    }

    /// Takes the time of a wait out of all that is measured.
    fn wake(&mut self, now: Timestamp) {
        if let Some(since) = self.waiting_since.take() {
            let waited = now.since(since);
            self.started = self.started.after(waited);
            self.last_progress = self.last_progress.after(waited);
        }
    }

    fn judge(&mut self, now: Timestamp) -> Option<LevelChange> {
        let (to, because) = match self.waiting_since {
            // Waiting is not stagnation; the level stays what it was.
            Some(_) => return None,
            None if self.config.enabled => self.worst(now),
            None => (Level::None, String::new()),
        };
        let from = std::mem::replace(&mut self.level, to);
        let because =
            if to == Level::None { "there is progress again".to_owned() } else { because };
        (from != to).then_some(LevelChange { from, to, because })
    }

    /// The highest level that any measure reaches, and that measure in words.
    fn worst(&self, now: Timestamp) -> (Level, String) {
        let Config { warn_repeats, pause_repeats, abort_repeats, .. } = self.config;
        let repeats = [warn_repeats, pause_repeats, abort_repeats].map(u64::from);
        let ceilings = [
            self.config.warn_at_iteration,
            self.config.pause_at_iteration,
            self.config.abort_at_iteration,
        ];
        let quiet = now.since(self.last_progress).as_secs();
        let age = now.since(self.started).as_secs();
        let measures = [
            (
                reached(u64::from(self.repeats), repeats),
                format!("the agent reported the same state {} times", self.repeats),
            ),
            (
                reached(u64::from(self.idle_iterations), repeats),
                format!("no evidence of work in {}", counted(self.idle_iterations, "iteration")),
            ),
            (
                reached(quiet, [self.config.warn_timeout, self.config.pause_timeout, 0]),
                format!("no progress for {}", duration(quiet)),
            ),
            (
                reached(age, [0, 0, self.config.abort_timeout]),
                format!("running for {}", duration(age)),
            ),
            (
                reached(u64::from(self.iteration), ceilings.map(u64::from)),
                format!("iteration {} is a limit of the stagnation settings", self.iteration),
            ),
        ];
        // The first of the highest: repetition explains more than duration.
        let highest = measures.iter().map(|(level, _)| *level).max().unwrap_or_default();
        let cause = measures.into_iter().find(|(level, _)| *level == highest);
        cause.unwrap_or((Level::None, String::new()))
    }
}

/// The highest threshold that a value reaches. 0 is no threshold.
fn reached(value: u64, [warn, pause, abort]: [u64; 3]) -> Level {
    let over = |threshold: u64| threshold > 0 && value >= threshold;
    if over(abort) {
        Level::Abort
    } else if over(pause) {
        Level::Pause
    } else if over(warn) {
        Level::Warn
    } else {
        Level::None
    }
}

#[cfg(test)]
mod tests;
