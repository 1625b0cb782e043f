//! One run through the phases.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::block_limit::BlockLimit;
use super::event::{Event, PhaseFinding};
use super::pipeline::{COMPLETE, FAILED, Pipeline};
use super::{listen, prompts, stop};
use aldis_signal::time::Timestamp;

/// The range of the limit on refusals per phase, and what counts where none is given.
pub const MAX_ITERATIONS: (u32, u32, u32) = (1, 50, 20);
/// How long a run may be silent before it is left alone: two hours, in seconds.
const STALE_AFTER: u64 = 2 * 60 * 60;

/// Returns the limit to use for one that was asked for: never unlimited.
pub fn clamp_iterations(asked: Option<u64>) -> u32 {
    let (least, most, usual) = MAX_ITERATIONS;
    match asked {
        None | Some(0) => usual,
        Some(asked) => u32::try_from(asked).unwrap_or(most).clamp(least, most),
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReason {
    /// The last phase was completed.
    AllPhasesComplete,
    /// The agent declared the whole run complete.
    AutoCompleteSignal,
    /// The agent reported an error it cannot recover from.
    CriticalError,
    /// Too many stops without the phase's signal.
    MaxIterationsReached,
    /// Too long without a sign of life.
    StaleState,
    /// A human ended it.
    UserCancelled,
}

impl ExitReason {
    /// Returns the stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllPhasesComplete => "all_phases_complete",
            Self::AutoCompleteSignal => "auto_complete_signal",
            Self::CriticalError => "critical_error",
            Self::MaxIterationsReached => "max_iterations_reached",
            Self::StaleState => "stale_state",
            Self::UserCancelled => "user_cancelled",
        }
    }

    /// Returns whether the work was done.
    pub fn is_success(self) -> bool {
        matches!(self, Self::AllPhasesComplete | Self::AutoCompleteSignal)
    }
}

/// What follows a completed phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterTransition {
    /// The agent goes on with the next phase at once.
    #[default]
    Continue,
    /// The agent may stop; the next prompt goes on.
    Stop,
}

/// What a run does about run tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPolicy {
    /// None is used.
    #[default]
    Off,
    /// A wrong one is refused.
    Accept,
    /// None or a wrong one is refused.
    Require,
}

/// What was chosen when the run was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The flags that are set.
    #[serde(default)]
    pub skip: BTreeSet<String>,
    /// Whether prompts show the counters.
    #[serde(default)]
    pub verbose: bool,
    /// Whether the agent is to decide for itself instead of asking.
    #[serde(default)]
    pub no_questions: bool,
    /// Whether the review asks for functional, security and quality verdicts.
    #[serde(default)]
    pub parallel_validation: bool,
    /// What follows a completed phase.
    #[serde(default)]
    pub after_transition: AfterTransition,
    /// How many seconds of silence make a run stale.
    #[serde(default = "stale_after")]
    pub stale_after: u64,
    /// What is done about run tokens.
    #[serde(default)]
    pub token: TokenPolicy,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            skip: BTreeSet::new(),
            verbose: false,
            no_questions: false,
            parallel_validation: false,
            after_transition: AfterTransition::default(),
            stale_after: STALE_AFTER,
            token: TokenPolicy::default(),
        }
    }
}

fn stale_after() -> u64 {
    STALE_AFTER
}

/// A signal that was heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detected {
    /// Its name.
    pub signal: String,
    /// When it was heard last.
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

/// What an agent said before the stop that does not repeat it.
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
    /// The limit of refusals per phase.
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
    /// The limit of refusals per phase.
    pub max_iterations: u32,
    /// Whether the run goes on.
    pub active: bool,
    /// The current phase, `complete` or `failed`.
    pub phase: String,
    /// Refusals in this phase.
    pub iteration: u32,
    /// When the run began; `None` when its file did not say so legibly.
    pub started_at: Option<Timestamp>,
    /// When the phase began.
    pub phase_started_at: Timestamp,
    /// When the run was completed.
    pub completed_at: Option<Timestamp>,
    /// The last sign of life.
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
    /// Signals heard, each name once.
    pub detected: Vec<Detected>,
    /// Phases whose signal was heard in its place.
    pub completed: BTreeSet<String>,
    /// Phases that a declared end left out.
    pub left_out: Vec<String>,
    /// How many seconds each phase took.
    pub durations: BTreeMap<String, u64>,
    /// Sub-agents' signals that were already counted.
    pub counted: BTreeSet<String>,
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
    /// What a human wants the agent to know, and nobody has told it yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub human_messages: Vec<String>,
}

/// What must now be done. Exhaustive: whoever performs effects must know all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    /// Let the agent stop.
    Allow,
    /// Do not let it stop, and tell it this.
    Block {
        /// The agent's next input.
        reason: String,
    },
    /// Tell the agent this beside its prompt.
    Context {
        /// What.
        text: String,
    },
    /// Write the view file anew.
    WriteView,
}

/// What one event led to.
pub type Outcome = crate::Outcome<Effect>;

impl Outcome {
    /// The event is none of the run's business: nothing was changed.
    pub(super) fn untouched() -> Self {
        Self { effects: vec![Effect::Allow], decisions: Vec::new() }
    }
}

/// Why a run cannot do what a human asked.
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
            counted: BTreeSet::new(),
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
        }
    }

    /// Takes one event. Time may stand still but is never asked for.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        match event {
            Event::Stop(stop) => stop::on_stop(self, now, stop),
            Event::SubagentStop { session, agent, findings, fresh_token } => {
                let stopped = stop::Subagent { agent: agent.as_deref(), findings, fresh_token };
                stop::on_subagent_stop(self, now, session.as_deref(), &stopped)
            }
            Event::StopFailed { session, error } => {
                listen::on_failure(self, now, session.as_deref(), error)
            }
            Event::Responded { session, findings, closing_text } => {
                listen::on_response(self, session.as_deref(), findings, closing_text)
            }
            Event::Interrupted { session } => listen::on_interrupt(self, now, session.as_deref()),
            Event::Prompt { session, turn, own } => {
                listen::on_prompt(self, now, session.as_deref(), turn.as_deref(), *own)
            }
            Event::SessionStart { session } | Event::SessionEnd { session } => {
                listen::on_session(self, now, session.as_deref(), event)
            }
            Event::Cancel { by } => listen::on_cancel(self, now, by),
            Event::Edited { members } => listen::on_edit(self, members),
            Event::Pause { by } => listen::on_pause(self, now, by),
            Event::Tell { text, by } => listen::on_tell(self, now, text, by),
            Event::Resume { fresh_token, by } => {
                listen::on_resume(self, now, fresh_token.as_deref(), by)
            }
        }
    }

    /// Returns whether the run can go on after [`Event::Resume`].
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

    /// Returns what the agent is told when the current phase begins.
    pub fn start_prompt(&self) -> String {
        prompts::start(self)
    }

    /// Returns whether `text` is what the machine itself told the agent last.
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
            // Whoever looks sees where it was left.
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

/// Returns a short digest (FNV-1a) for telling texts apart; not for secrets.
pub fn digest(text: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}
