//! What a host's hooks report to the machine.

use serde::{Deserialize, Serialize};

use crate::Miss;
use crate::proof::Proof;
use crate::run::QuestionDraft;
use aldis_signal::signal::{Meaning, Via};
use aldis_signal::time::Timestamp;

/// One thing that happened. Exhaustive: every machine must have an opinion about a new one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The agent wants to stop.
    Stop(Stop),
    /// A sub-agent has stopped.
    SubagentStop {
        /// The session it worked for.
        session: Option<String>,
        /// Its id.
        agent: Option<String>,
        /// What was found in its final message.
        #[serde(alias = "said")]
        findings: Vec<PhaseFinding>,
        /// A new run token, should one be needed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fresh_token: Option<String>,
    },
    /// A turn ended by an error of the host or its model.
    StopFailed {
        /// The session.
        session: Option<String>,
        /// The host's own code for the error.
        error: String,
        /// When it has passed, if it passes by itself: a limit, a service that fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Timestamp>,
    },
    /// The agent wrote something that the stop after it will not repeat.
    Responded {
        /// The session.
        session: Option<String>,
        /// What was found in it.
        #[serde(alias = "said")]
        findings: Vec<PhaseFinding>,
        /// The end of the message.
        #[serde(default, alias = "closing_words", skip_serializing_if = "String::is_empty")]
        closing_text: String,
    },
    /// The user interrupted the turn.
    Interrupted {
        /// The session.
        session: Option<String>,
    },
    /// A human, or a program on their behalf, sent a prompt.
    Prompt {
        /// The session.
        session: Option<String>,
        /// The turn it begins.
        turn: Option<String>,
        /// Whether it is the continuation the machine itself asked for.
        #[serde(default)]
        own: bool,
    },
    /// A session began or was resumed.
    SessionStart {
        /// The session.
        session: Option<String>,
    },
    /// A session ended.
    SessionEnd {
        /// The session.
        session: Option<String>,
    },
    /// A human ended the run.
    Cancel {
        /// By what means, for the journal.
        by: String,
    },
    /// Somebody edited the state file.
    Edited {
        /// The members that differ.
        members: Vec<String>,
    },
    /// A human wants the agent to be free to stop until the run is resumed.
    Pause {
        /// By what means, for the journal.
        by: String,
    },
    /// A human sends the agent a message.
    Tell {
        /// The message.
        text: String,
        /// By what means, for the journal.
        by: String,
    },
    /// Whoever waits beside a session that was let go gives it what a human sent.
    Woken {
        /// The session.
        session: String,
        /// The host's limit, where it counts this as one more blocked stop.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<BlockCap>,
    },
    /// The checks of a claim have ended.
    Checked {
        /// Which start of checks it was.
        check: u32,
        /// What is known now.
        proof: Box<Proof>,
        /// A new run token, should one be needed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fresh_token: Option<String>,
    },
    /// Whoever ran the checks of a claim is gone without a result.
    CheckLost {
        /// Which start of checks it was.
        check: u32,
        /// What happened, as a clause.
        what: String,
    },
    /// A human answered whether a claim counts.
    ClaimAnswered {
        /// The answer.
        text: String,
        /// By what means, for the journal.
        by: String,
        /// A new run token, should one be needed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fresh_token: Option<String>,
    },
    /// A human wants an ended, capped or paused run to continue.
    Resume {
        /// By what means, for the journal.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        by: String,
        /// A new run token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fresh_token: Option<String>,
    },
}

/// What is known when an agent wants to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// The session that stops.
    pub session: Option<String>,
    /// The host, by its stable name.
    #[serde(default)]
    pub host: String,
    /// The host's name as people write it; where it is empty, the stable name is shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_name: String,
    /// The host's id of the current turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// When the current turn began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_began: Option<Timestamp>,
    /// Whether the host reports that this stop follows one that was blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<bool>,
    /// What was found in the messages since the last stop, oldest first.
    #[serde(default, alias = "said")]
    pub findings: Vec<PhaseFinding>,
    /// The end of the final message, for people who ask why.
    #[serde(default, alias = "closing_words", skip_serializing_if = "String::is_empty")]
    pub closing_text: String,
    /// Whether the agent used a tool since its last stop.
    #[serde(default)]
    pub tools_ran: bool,
    /// How many stops in a row the host lets a hook block.
    #[serde(default)]
    pub cap: BlockCap,
    /// A reason never to block this stop.
    #[serde(default, alias = "hold", skip_serializing_if = "Option::is_none")]
    pub must_allow: Option<MustAllow>,
    /// What the agent asks a human by a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Box<QuestionDraft>>,
    /// How far the transcript has been read, in the shell's own form.
    #[serde(default, alias = "heard_to", skip_serializing_if = "Option::is_none")]
    pub read_cursor: Option<String>,
    /// How many milliseconds the hook had taken until it knew all this. For operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// A new run token, should one be needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_token: Option<String>,
    /// Whether the run token was seen outside a signal.
    #[serde(default)]
    pub token_leaked: bool,
}

/// How many stops in a row a host lets a hook block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockCap {
    /// Blocked stops in a row; `None` where the host has no limit.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Whether a tool call starts the count again.
    #[serde(default)]
    pub resets_on_tool_use: bool,
}

/// Why a stop must not be blocked, whatever was reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum MustAllow {
    /// The user interrupted.
    Aborted,
    /// Something still runs that will wake the agent.
    Background {
        /// What.
        what: String,
    },
    /// The context is full, the login or the service failed.
    Failed {
        /// The host's own name for it.
        what: String,
    },
    /// It was over when we heard of it.
    Late,
    /// The agent waits for the user's answer.
    Question,
}

/// One finding of the scanner, as far as the machine needs it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PhaseFinding {
    /// It counts.
    Signal(PhaseSignal),
    /// It does not. In the agent's final message.
    NearMiss(Miss),
}

impl PhaseFinding {
    /// Returns the signal, if it is one.
    pub fn signal(&self) -> Option<&PhaseSignal> {
        match self {
            Self::Signal(signal) => Some(signal),
            Self::NearMiss(_) => None,
        }
    }
}

/// A well-formed signal from an allowed origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseSignal {
    /// Its name.
    pub name: String,
    /// What it means in any dialect.
    pub meaning: Meaning,
    /// The phase it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The error it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether it reports that the agent can recover from the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recoverable: Option<bool>,
    /// Which message of this event it stands in.
    #[serde(default)]
    pub message: u64,
    /// The sub-agent that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether a sub-agent reported it, even one without an id.
    #[serde(default)]
    pub subagent: bool,
    /// When it was reported, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Whether its position in the transcript shows that it was reported since the last stop and
    /// since the phase began. The time does not matter then: a clock may have stepped back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_by_position: bool,
    /// The line in its message.
    #[serde(default)]
    pub line: u64,
    /// The text, cut to a reasonable length.
    #[serde(default)]
    pub quote: String,
    /// Whether it carried the run token.
    #[serde(default)]
    pub trusted: bool,
    /// How it came.
    #[serde(default, skip_serializing_if = "Via::is_said")]
    pub via: Via,
}
