//! One run through the phases.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::block_limit::BlockLimit;
use super::checks::{self, Checks};
use super::config::{Config, ExitReason, TokenPolicy};
use super::event::{Event, PhaseFinding};
use super::human::NotResumable;
use super::parts::{Clock, Closing, Handover, Progress, Setup, TranscriptReading};
use super::pipeline::{COMPLETE, FAILED, Pipeline};
use super::rule::Rule;
use super::wake::{self, Parked};
use super::{human, prompts, session, stop};
use crate::Evidence;
use crate::accessors::accessors;
use crate::proof::Proof;
use crate::run::Question;
use crate::words::{fnv, is_zero};
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
    /// What was pinned and checked before the work.
    #[serde(default, skip_serializing_if = "Proof::is_empty")]
    pub proof: Proof,
}

/// A run: everything that decides what happens next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    #[serde(flatten)]
    pub(super) setup: Setup,
    #[serde(flatten)]
    pub(super) progress: Progress,
    #[serde(flatten)]
    pub(super) closing: Closing,
    #[serde(flatten)]
    pub(super) clock: Clock,
    #[serde(flatten)]
    pub(super) reading: TranscriptReading,
    #[serde(flatten)]
    pub(super) handover: Handover,
    /// The session the run belongs to.
    pub(super) session: Option<String>,
    /// Whether the run was taken over from a state file, instead of being started here.
    #[serde(default)]
    pub(super) adopted: bool,
    /// The run token of this phase.
    pub(super) token: Option<String>,
    /// How often in a row a stop was blocked.
    #[serde(alias = "governor")]
    pub(super) block_limit: BlockLimit,
    /// Whether a human wants the agent to be let go until the run is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) paused: bool,
    /// The last claim in this phase that did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) last_refused: Option<Evidence>,
    /// The session that was let go and may be woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parked: Option<Parked>,
    /// How often in a row the session was woken after a limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) limit_wakes: u32,
    /// How many questions the agent asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) questions_asked: u32,
    /// What is known about claims that are checked.
    #[serde(default, skip_serializing_if = "Checks::is_empty")]
    pub(super) checks: Box<Checks>,
}

accessors! { State {
    /// Returns what is to be done.
    task: &str = |it| &it.setup.task;
    /// Returns the phases.
    pipeline: &Pipeline = |it| &it.setup.pipeline;
    /// Returns the choices.
    config: &Config = |it| &it.setup.config;
    /// Returns how many stops are blocked per phase at most.
    max_iterations: u32 = |it| it.setup.max_iterations;
    /// Returns whether the run can still take steps.
    is_active: bool = |it| it.progress.active;
    /// Returns the current phase, `complete` or `failed`.
    phase: &str = |it| &it.progress.phase;
    /// Returns how many stops were blocked in this phase.
    iteration: u32 = |it| it.progress.iteration;
    /// Returns the signals that were detected, each name once.
    detected: &[Detected] = |it| &it.progress.detected;
    /// Returns the phases that were completed in their turn.
    completed: &BTreeSet<String> = |it| &it.progress.completed;
    /// Returns how many seconds each phase took.
    durations: &BTreeMap<String, u64> = |it| &it.progress.durations;
    /// Returns why the run ended.
    exit_reason: Option<ExitReason> = |it| it.closing.exit_reason;
    /// Returns when the run was completed.
    completed_at: Option<Timestamp> = |it| it.closing.completed_at;
    /// Returns the phase in which the run ended without success.
    failed_in: Option<&str> = |it| it.closing.failed_in.as_deref();
    /// Returns the last error.
    last_error: Option<&LastError> = |it| it.closing.last_error.as_ref();
    /// Returns when the run began; `None` when its state file had no readable time.
    started_at: Option<Timestamp> = |it| it.clock.started_at;
    /// Returns when the phase began.
    phase_started_at: Timestamp = |it| it.clock.phase_started_at;
    /// Returns the last activity.
    last_activity: Option<Timestamp> = |it| it.clock.last_activity;
    /// Returns when a stop was last judged.
    last_checked: Option<Timestamp> = |it| it.clock.last_checked;
    /// Returns how far the transcript has been read, in the shell's own form.
    read_cursor: Option<&str> = |it| it.reading.read_cursor.as_deref();
    /// Returns whether the agent has yet to get the prompt of the phase.
    is_prompt_pending: bool = |it| it.handover.prompt_pending;
    /// Returns whether a sub-agent completed the last phase and the main agent was not told yet.
    is_advanced_by_subagent: bool = |it| it.handover.advanced_by_subagent;
    /// Returns the messages from humans that the agent did not get yet.
    human_messages: &[String] = |it| &it.handover.human_messages;
    /// Returns the session the run belongs to.
    session: Option<&str> = |it| it.session.as_deref();
    /// Returns whether the run was taken over from a state file, instead of being started here.
    is_adopted: bool = |it| it.adopted;
    /// Returns the run token of this phase.
    token: Option<&str> = |it| it.token.as_deref();
    /// Returns how often in a row a stop was blocked.
    block_limit: &BlockLimit = |it| &it.block_limit;
    /// Returns whether a human wants the agent to be let go until the run is resumed.
    is_paused: bool = |it| it.paused;
    /// Returns the last claim in this phase that did not count.
    last_refused: Option<&Evidence> = |it| it.last_refused.as_ref();
    /// Returns the session that was let go and may be woken.
    parked: Option<&Parked> = |it| it.parked.as_ref();
    /// Returns what is known about claims that are checked.
    checks: &Checks = |it| &it.checks;
}}

/// What another program's state file says of a run that is taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// How many stops were blocked in its phase.
    pub iteration: u32,
    /// When the run began.
    pub started_at: Option<Timestamp>,
    /// When a stop was last judged.
    pub last_checked: Option<Timestamp>,
    /// The last activity.
    pub last_activity: Option<Timestamp>,
    /// The phases that are complete.
    pub completed: BTreeSet<String>,
    /// The signals that were detected.
    pub detected: Vec<Detected>,
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
    /// Run the checks of a claim. Answered by [`Event::Checked`] or [`Event::CheckLost`].
    Check {
        /// Which start of checks it is.
        check: u32,
    },
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

impl State {
    /// Begins a run.
    pub fn start(now: Timestamp, start: Start) -> Self {
        let Start { task, pipeline, config, phase, max_iterations, session, token, proof } = start;
        Self {
            setup: Setup { task, pipeline, config, max_iterations },
            progress: Progress { active: true, phase, ..Progress::default() },
            closing: Closing::default(),
            clock: Clock {
                started_at: Some(now),
                phase_started_at: now,
                last_activity: Some(now),
                open_since: Some(now),
                ..Clock::default()
            },
            reading: TranscriptReading::default(),
            handover: Handover { prompt_pending: true, ..Handover::default() },
            session,
            adopted: false,
            token,
            block_limit: BlockLimit::default(),
            paused: false,
            last_refused: None,
            parked: None,
            limit_wakes: 0,
            questions_asked: 0,
            checks: Box::new(Checks::of(proof)),
        }
    }

    /// Takes over a run that another program began; its phase began at `now`.
    pub fn adopted(now: Timestamp, start: Start, found: Adoption) -> Self {
        let Adoption { iteration, started_at, last_checked, last_activity, completed, detected } =
            found;
        let mut state = Self::start(now, start);
        state.adopted = true;
        // A limit that was clamped may lie below what was counted.
        let iteration = iteration.min(state.setup.max_iterations);
        state.progress = Progress { iteration, completed, detected, ..state.progress };
        let open_since = started_at;
        state.clock = Clock { started_at, open_since, last_checked, last_activity, ..state.clock };
        state.handover.prompt_pending = false;
        state
    }

    /// Takes one event. Its time is the only clock there is.
    pub fn on_event(&mut self, now: Timestamp, event: &Event) -> Outcome {
        let started = self.checks.started;
        let mut outcome = self.take(now, event);
        if let Some(claim) = self.checks.claim.as_ref().filter(|it| it.check > started) {
            outcome.effects.push(Effect::Check { check: claim.check });
        }
        for decision in &mut outcome.decisions {
            decision.counters = self.counters();
        }
        outcome
    }

    fn take(&mut self, now: Timestamp, event: &Event) -> Outcome {
        match event {
            Event::Stop(stop) => {
                let outcome = stop::on_stop(self, now, stop);
                wake::park(self, now, stop, &outcome);
                outcome
            }
            Event::SubagentStop { session, agent, findings, fresh_token } => {
                let stopped = stop::Subagent { agent: agent.as_deref(), findings, fresh_token };
                stop::on_subagent_stop(self, now, session.as_deref(), &stopped)
            }
            Event::StopFailed { session, error, until } => {
                session::on_failure(self, now, session.as_deref(), (error, *until))
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
            Event::Woken { session, cap } => wake::on_woken(self, now, session, *cap),
            Event::Checked { check, proof, fresh_token } => {
                checks::on_checked(self, now, *check, proof, fresh_token.as_deref())
            }
            Event::CheckLost { check, what } => checks::on_lost(self, now, *check, what),
            Event::ClaimAnswered { text, by, fresh_token } => {
                checks::on_answer(self, now, (text, by), fresh_token.as_deref())
            }
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
        match self.closing.exit_reason {
            None if self.progress.active => Ok(()),
            None => Err(NotResumable::Ended),
            Some(ExitReason::UserCancelled) => Err(NotResumable::Cancelled),
            Some(reason) if reason.is_success() => Err(NotResumable::Complete),
            Some(_) => Ok(()),
        }
    }

    /// Returns whether the run waits for signals.
    pub fn is_live(&self) -> bool {
        self.progress.active && self.progress.phase != COMPLETE && self.progress.phase != FAILED
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
        match self.setup.pipeline.phase(&self.progress.phase) {
            Some(phase) => match &phase.signal {
                Some(signal) => signal.clone(),
                None => prompts::done_signals(&self.setup.pipeline.dialect),
            },
            None => "none".to_owned(),
        }
    }

    /// Returns what the agent needs of a human.
    pub fn question(&self) -> Option<&Question> {
        let asked = self.checks.asks.as_ref().map(|asked| &asked.question);
        asked.or_else(|| self.parked.as_ref()?.question.as_ref())
    }

    /// Returns which phase this is and of how many, from 1; phases that are skipped do not count.
    pub fn position(&self) -> Option<(usize, usize)> {
        let skip = &self.setup.config.skip;
        let phases = self.setup.pipeline.phases.iter().filter(|it| !it.is_skipped(skip));
        let names: Vec<&str> = phases.map(|phase| &*phase.name).collect();
        let at = names.iter().position(|name| *name == self.progress.phase)?;
        Some((at + 1, names.len()))
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
        self.clock.last_activity = Some(self.clock.last_activity.map_or(now, |last| last.max(now)));
    }

    /// Ends the run.
    pub(super) fn end(&mut self, now: Timestamp, reason: ExitReason) {
        self.progress.active = false;
        self.closing.exit_reason = Some(reason);
        self.token = None;
        self.paused = false;
        self.reading.held_findings.clear();
        self.parked = None;
        self.checks.drop_claims();
        (
            self.handover.prompt_pending,
            self.handover.advanced_by_subagent,
            self.handover.ends_at_next_stop,
        ) = (false, false, false);
        match reason {
            ExitReason::AllPhasesComplete | ExitReason::AutoCompleteSignal => {
                COMPLETE.clone_into(&mut self.progress.phase);
                self.closing.completed_at = Some(now);
            }
            ExitReason::CriticalError | ExitReason::MaxIterationsReached => {
                self.closing.failed_in =
                    Some(std::mem::replace(&mut self.progress.phase, FAILED.to_owned()));
            }
            // The phase in which it was left stays visible.
            ExitReason::StaleState | ExitReason::UserCancelled => {}
        }
    }

    pub(super) fn note_error(&mut self, now: Timestamp, step: Option<&str>, message: String) {
        self.closing.last_error = Some(LastError {
            phase: self.progress.phase.clone(),
            step: step.map(str::to_owned),
            message,
            timestamp: now,
        });
    }

    pub(super) fn rotate_token(&mut self, fresh: Option<&str>) {
        if self.setup.config.token != TokenPolicy::Off {
            // Without a new one the old stays: a run must not lock its agent out.
            self.token = fresh.map(str::to_owned).or_else(|| self.token.take());
        }
    }

    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        let mut set = |name: &str, value: u32| counters.insert(name.to_owned(), u64::from(value));
        set("iteration", self.progress.iteration);
        set("max_iterations", self.setup.max_iterations);
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
