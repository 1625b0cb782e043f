//! One run through the phases.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::block_limit::BlockLimit;
use super::config::{Config, ExitReason, TokenPolicy};
use super::counted::CountedSignals;
use super::event::{Event, PhaseFinding};
use super::pipeline::{COMPLETE, FAILED, Pipeline};
use super::rule::Rule;
use super::{human, prompts, session, stop};
use crate::Evidence;
use crate::words::fnv;
use aldis_signal::time::Timestamp;

/// A signal that was detected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// Its name.
    pub signal: String,
    /// When it was detected last.
    pub detected_at: Timestamp,
}

/// The last error of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// The phase it happened in.
    pub phase: String,
    /// The step of the engine or the agent.
    pub step: Option<String>,
    /// What happened.
    pub message: String,
    /// When.
    pub timestamp: Timestamp,
}

/// The current turn of the run's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTurn {
    /// When it began.
    pub began: Timestamp,
    /// The last activity before it.
    #[serde(alias = "after")]
    pub active_before: Option<Timestamp>,
}

/// What an agent reported before the stop that does not repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingResponse {
    /// The session.
    pub session: String,
    /// What was found in it.
    #[serde(alias = "said")]
    pub findings: Vec<PhaseFinding>,
    /// The end of the message.
    #[serde(alias = "closing_words")]
    pub closing_text: String,
}

/// How a run begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// What is to be done.
    pub task: String,
    /// The phases.
    pub pipeline: Pipeline,
    /// The choices.
    pub config: Config,
    /// The first phase.
    pub phase: String,
    /// How many stops are blocked per phase at most.
    pub max_iterations: u32,
    /// The session it belongs to, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The first run token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// A run: everything that decides what happens next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What is to be done.
    pub task: String,
    /// The phases.
    pub pipeline: Pipeline,
    /// The choices.
    pub config: Config,
    /// How many stops are blocked per phase at most.
    pub max_iterations: u32,
    /// Whether the run can still take steps.
    pub active: bool,
    /// The current phase, `complete` or `failed`.
    pub phase: String,
    /// How many stops were blocked in this phase.
    pub iteration: u32,
    /// When the run began; `None` when its state file had no readable time.
    pub started_at: Option<Timestamp>,
    /// When the phase began.
    pub phase_started_at: Timestamp,
    /// When the run was completed.
    pub completed_at: Option<Timestamp>,
    /// The last activity. It never goes back.
    pub last_activity: Option<Timestamp>,
    /// When a stop was last judged.
    pub last_checked: Option<Timestamp>,
    /// The session the run belongs to.
    pub session: Option<String>,
    /// The session's current turn.
    pub turn: Option<SessionTurn>,
    /// Why it ended.
    pub exit_reason: Option<ExitReason>,
    /// Whether the run was taken over from a state file, instead of being started here.
    #[serde(default)]
    pub adopted: bool,
    /// The phase it was in when it ended without success.
    pub failed_in: Option<String>,
    /// The last error.
    pub last_error: Option<LastError>,
    /// The signals that were detected, each name once.
    pub detected: Vec<Detected>,
    /// The phases that were completed in their turn.
    pub completed: BTreeSet<String>,
    /// The phases that were not done when the agent declared the run complete.
    pub left_out: Vec<String>,
    /// How many seconds each phase took.
    pub durations: BTreeMap<String, u64>,
    /// Sub-agents' signals that were already counted.
    pub counted: CountedSignals,
    /// Until when what the main agent wrote has been judged.
    #[serde(alias = "heard_until")]
    pub read_until: Option<Timestamp>,
    /// How far the transcript has been read, in the shell's own form.
    #[serde(alias = "heard_to")]
    pub read_cursor: Option<String>,
    /// What was reported since the last stop, on hosts that report it apart.
    #[serde(alias = "response")]
    pub pending_response: Option<PendingResponse>,
    /// Whether the agent has yet to get the prompt of the phase.
    #[serde(alias = "untold")]
    pub prompt_pending: bool,
    /// Whether a sub-agent completed the last phase and the main agent was not told yet.
    #[serde(alias = "handed_over")]
    pub advanced_by_subagent: bool,
    /// Whether a sub-agent completed the run's very last phase: the main agent's stop ends the run.
    #[serde(default, alias = "over")]
    pub ends_at_next_stop: bool,
    /// Since when any session may take the run over.
    pub open_since: Option<Timestamp>,
    /// The run token of this phase.
    pub token: Option<String>,
    /// How often in a row a stop was blocked.
    #[serde(alias = "governor")]
    pub block_limit: BlockLimit,
    /// Whether a human wants the agent to be let go until the run is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Messages from humans that the agent did not get yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub human_messages: Vec<String>,
    /// Signals reported while the run was paused that no transcript repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_findings: Vec<PhaseFinding>,
    /// The last claim in this phase that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refused: Option<Evidence>,
}

/// What must now be done. Exhaustive: whoever performs effects must know all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Let the agent stop.
    Allow,
    /// Do not let it stop, and give it this prompt.
    Block {
        /// The agent's next input.
        reason: String,
    },
    /// Give the agent this text beside its prompt.
    Context {
        /// The text.
        text: String,
    },
    /// Write the state file anew.
    WriteView,
}

/// What one event led to.
pub type Outcome = crate::Outcome<Effect>;

impl Outcome {
    /// The event is none of the run's business: nothing was changed.
    pub(super) fn untouched() -> Self {
        Self { effects: vec![Effect::Allow], decisions: Vec::new() }
    }

    /// Something is decided by a rule. The reasons follow, and [`State::on_event`] adds the counters.
    pub(super) fn decided(rule: Rule, summary: impl Into<String>) -> Self {
        Self::nothing().decide(rule, summary, BTreeMap::new())
    }

    /// The agent may stop.
    pub(super) fn allowed(rule: Rule, summary: impl Into<String>) -> Self {
        Self::decided(rule, summary).with([Effect::Allow, Effect::WriteView])
    }
}

/// Why a run cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotResumable {
    /// It is complete.
    #[error("the run is complete")]
    Complete,
    /// It was ended by a human.
    #[error("the run was cancelled")]
    Cancelled,
    /// It has ended already.
    #[error("the run has ended")]
    Ended,
}

impl State {
    /// Begins a run.
    pub fn start(now: Timestamp, start: Start) -> Self {
        let Start { task, pipeline, config, phase, max_iterations, session, token } = start;
        Self {
            task,
            pipeline,
            config,
            max_iterations,
            active: true,
            phase,
            iteration: 0,
            started_at: Some(now),
            phase_started_at: now,
            completed_at: None,
            last_activity: Some(now),
            last_checked: None,
            session,
            turn: None,
            exit_reason: None,
            adopted: false,
            failed_in: None,
            last_error: None,
            detected: Vec::new(),
            completed: BTreeSet::new(),
            left_out: Vec::new(),
            durations: BTreeMap::new(),
            counted: CountedSignals::default(),
            read_until: None,
            read_cursor: None,
            pending_response: None,
            prompt_pending: true,
            advanced_by_subagent: false,
            ends_at_next_stop: false,
            open_since: Some(now),
            token,
            block_limit: BlockLimit::default(),
            paused: false,
            human_messages: Vec::new(),
            held_findings: Vec::new(),
            last_refused: None,
        }
    }

    /// Takes one event. Its time is the only clock there is.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        let mut outcome = self.take(now, event);
        for decision in &mut outcome.decisions {
            decision.counters = self.counters();
        }
        outcome
    }

    fn take(&mut self, now: Timestamp, event: &Event) -> Outcome {
        match event {
            Event::Stop(stop) => stop::on_stop(self, now, stop),
            Event::SubagentStop { session, agent, findings, fresh_token } => {
                let stopped = stop::Subagent { agent: agent.as_deref(), findings, fresh_token };
                stop::on_subagent_stop(self, now, session.as_deref(), &stopped)
            }
            Event::StopFailed { session, error } => {
                session::on_failure(self, now, session.as_deref(), error)
            }
            Event::Responded { session, findings, closing_text } => {
                session::on_response(self, session.as_deref(), findings, closing_text)
            }
            Event::Interrupted { session } => session::on_interrupt(self, now, session.as_deref()),
            Event::Prompt { session, turn, own } => {
                session::on_prompt(self, now, session.as_deref(), turn.as_deref(), *own)
            }
            Event::SessionStart { session } | Event::SessionEnd { session } => {
                session::on_session(self, now, session.as_deref(), event)
            }
            Event::Cancel { by } => human::on_cancel(self, now, by),
            Event::Edited { members } => human::on_edit(members),
            Event::Pause { by } => human::on_pause(self, now, by),
            Event::Tell { text, by } => human::on_tell(self, now, text, by),
            Event::Resume { fresh_token, by } => {
                human::on_resume(self, now, fresh_token.as_deref(), by)
            }
        }
    }

    /// Returns whether the run can continue after [`Event::Resume`].
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub fn can_resume(&self) -> Result<(), NotResumable> {
        match self.exit_reason {
            None if self.active => Ok(()),
            None => Err(NotResumable::Ended),
            Some(ExitReason::UserCancelled) => Err(NotResumable::Cancelled),
            Some(reason) if reason.is_success() => Err(NotResumable::Complete),
            Some(_) => Ok(()),
        }
    }

    /// Returns whether the run waits for signals.
    pub fn is_live(&self) -> bool {
        self.active && self.phase != COMPLETE && self.phase != FAILED
    }

    /// Returns the prompt with which the current phase begins.
    pub fn start_prompt(&self) -> String {
        prompts::start(self)
    }

    /// Returns whether `text` is the prompt that the machine itself gave the agent last.
    pub fn is_own_prompt(&self, text: &str) -> bool {
        self.block_limit.last_prompt.as_deref() == Some(&*digest(text.trim()))
    }

    /// Returns the signal that ends the current phase, by name or by meaning.
    pub fn expected(&self) -> String {
        match self.pipeline.phase(&self.phase) {
            Some(phase) => match &phase.signal {
                Some(signal) => signal.clone(),
                None => format!("any {} signal that means done", self.pipeline.dialect),
            },
            None => "none".to_owned(),
        }
    }

    /// Whether the event comes from the session this run belongs to.
    pub(super) fn is_ours(&self, session: Option<&str>) -> bool {
        session.is_some() && self.session.as_deref() == session
    }

    /// Whether the event is about a live run of ours, which is then active.
    pub(super) fn heeds(&mut self, now: Timestamp, session: Option<&str>) -> bool {
        let heeds = self.is_live() && self.is_ours(session);
        if heeds {
            self.touch(now);
        }
        heeds
    }

    /// Records activity. It never goes back: a clock that was wrong for a while must not make the run
    /// look idle afterwards.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.last_activity = Some(self.last_activity.map_or(now, |last| last.max(now)));
    }

    /// Ends the run.
    pub(super) fn end(&mut self, now: Timestamp, reason: ExitReason) {
        self.active = false;
        self.exit_reason = Some(reason);
        self.token = None;
        self.paused = false;
        self.held_findings.clear();
        (self.prompt_pending, self.advanced_by_subagent, self.ends_at_next_stop) =
            (false, false, false);
        match reason {
            ExitReason::AllPhasesComplete | ExitReason::AutoCompleteSignal => {
                COMPLETE.clone_into(&mut self.phase);
                self.completed_at = Some(now);
            }
            ExitReason::CriticalError | ExitReason::MaxIterationsReached => {
                self.failed_in = Some(std::mem::replace(&mut self.phase, FAILED.to_owned()));
            }
            // The phase in which it was left stays visible.
            ExitReason::StaleState | ExitReason::UserCancelled => {}
        }
    }

    pub(super) fn note_error(&mut self, now: Timestamp, step: Option<&str>, message: String) {
        self.last_error = Some(LastError {
            phase: self.phase.clone(),
            step: step.map(str::to_owned),
            message,
            timestamp: now,
        });
    }

    pub(super) fn rotate_token(&mut self, fresh: Option<&str>) {
        if self.config.token != TokenPolicy::Off {
            // Without a new one the old stays: a run must not lock its agent out.
            self.token = fresh.map(str::to_owned).or_else(|| self.token.take());
        }
    }

    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        let mut set = |name: &str, value: u32| counters.insert(name.to_owned(), u64::from(value));
        set("iteration", self.iteration);
        set("max_iterations", self.max_iterations);
        set("blocks_in_turn", self.block_limit.blocks);
        if self.block_limit.hint_times > 0 {
            set("same_feedback", self.block_limit.hint_times);
        }
        counters
    }
}

/// Returns a short digest (FNV-1a) that tells texts apart; not for secrets.
pub fn digest(text: &str) -> String {
    format!("{:016x}", fnv(text.bytes()))
}
