//! What agents report by calls, from the call until their run's driver takes it over.
//!
//! A call is durable before it is answered, and provisional: whoever drives the run finds it in the
//! transcript of its agent (double-entry check) and gives the machine the signal that it stands for, at
//! the stop at which the same signal in a text would count. Each call is a note of its own on its run,
//! so that any number of calls can be recorded at once.

use aldis_machine::Machine;
use aldis_machine::calls::Call;
use aldis_signal::signal::{CALL_ID, Via};
use aldis_signal::time::Timestamp;
use aldis_store::{PartChange, RunId};
use serde::{Deserialize, Serialize};

use crate::any::{AnyHandle, each};
use crate::call_queue::Kept;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::handle::{Handle, note};
use crate::ids;

/// The keys of calls.
const CALL: &str = "call/";
/// The key of the check of the latest claims.
const CHECK: &str = "claim-check";
/// How many calls of a run are kept. The oldest that was taken over gives way.
const CALLS_MAX: usize = 1_024;

/// A call, as it is kept until the driver of its run takes it over, and after that for as long as the
/// host may repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its id; the answer to the agent has it.
    pub id: String,
    /// When it came.
    pub at: Timestamp,
    /// How it came, if the transcript has it too.
    pub via: Via,
    /// The host's session that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The host's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The number of the agent in its run, where that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<u64>,
    /// Whether the host says that a sub-agent called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub subagent: bool,
    /// What it reports.
    pub call: Call,
    /// Whether the driver has taken it over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken: bool,
}

/// The check of claims that were made by calls, before the agent stops. The claims are decided about at
/// the stop all the same; this is what their callers are told meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimCheck {
    /// The ids of the calls.
    pub calls: Vec<String>,
    /// How far it is.
    pub outcome: CheckOutcome,
    /// The end of what the check printed, or why the claim does not hold.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// What its callers do next, as sentences; empty for the usual.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
}

/// How far a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// The work tree contradicts the claim, or a pinned file does.
    Refused,
    /// It runs.
    Running,
}

impl ClaimCheck {
    /// Returns the note that keeps it. A run has one: the latest.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written as JSON.
    pub fn note(&self) -> Result<PartChange, EngineError> {
        note(CHECK, self)
    }
}

/// The answer to a call, as a transcript shows it.
#[derive(Clone, Copy, Debug)]
pub struct CallAnswer<'t> {
    /// The host's id of the call.
    pub call_id: &'t str,
    /// The ids of ours in the answer.
    pub ids: &'t [String],
}

impl CallRecord {
    /// A call that came now.
    ///
    /// # Errors
    ///
    /// Fails if the operating system returns no random bytes.
    pub fn new(at: Timestamp, via: Via, call: Call) -> Result<Self, EngineError> {
        let id = format!("{CALL_ID}{}", ids::token()?);
        let (session, call_id, agent) = (None, None, None);
        Ok(Self { id, at, via, session, call_id, agent, subagent: false, call, taken: false })
    }

    /// Returns whether a transcript shows its answer: under the host's id of the call, or with ours.
    pub fn is_answered_by(&self, answer: CallAnswer<'_>) -> bool {
        let same = self.call_id.as_deref() == Some(answer.call_id);
        same && !answer.call_id.is_empty() || answer.ids.contains(&self.id)
    }

    /// Whether it is the same call of the same session, delivered again.
    fn repeats(&self, other: &Self) -> bool {
        let same = self.call_id.is_some() && self.call_id == other.call_id;
        self.id == other.id || same && self.session == other.session
    }

    /// Whether it makes an earlier report of the same agent void.
    fn replaces(&self, earlier: &Self) -> bool {
        let progress = |record: &Self| matches!(record.call, Call::Progress { .. });
        let reporter = |record: &Self| (record.session.clone(), record.agent, record.subagent);
        progress(self) && progress(earlier) && reporter(self) == reporter(earlier)
    }

    /// Returns the note that says that the driver has taken it over.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written as JSON.
    pub fn taken_over(&self) -> Result<PartChange, EngineError> {
        note(&self.key(), &Self { taken: true, ..self.clone() })
    }

    fn key(&self) -> String {
        format!("{CALL}{}", self.id)
    }
}

impl<M: Machine> Handle<M> {
    /// Returns the calls that are kept, oldest first. One that this version does not know is left out.
    pub fn calls(&self) -> Vec<CallRecord> {
        let known = |key| self.note(key).ok().flatten();
        let mut calls: Vec<CallRecord> = self.notes_under(CALL).filter_map(known).collect();
        calls.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
        calls
    }

    /// Returns the check of the latest claims by call, if there was one.
    pub fn claim_check(&self) -> Option<ClaimCheck> {
        self.note(CHECK).ok().flatten()
    }

    /// Returns how many calls are kept.
    pub fn calls_kept(&self) -> usize {
        self.notes_under(CALL).count()
    }

    /// Returns the calls that wait to be taken over.
    pub fn waiting_calls(&self) -> Vec<CallRecord> {
        let mut calls = self.calls();
        calls.retain(|call| !call.taken);
        calls
    }

    /// Keeps calls, in one write. Returns of each the earlier record if it was delivered before.
    fn keep_calls(
        &mut self,
        engine: &Engine,
        now: Timestamp,
        records: &[CallRecord],
    ) -> Result<Vec<Kept>, EngineError> {
        let mut calls = self.calls();
        let (mut notes, mut kept) = (Vec::new(), Vec::new());
        for record in records {
            if let Some(known) = calls.iter().find(|known| record.repeats(known)) {
                kept.push(Ok(Some(known.clone())));
                continue;
            }
            if calls.iter().filter(|known| !known.taken).count() >= CALLS_MAX {
                let what = format!("{CALLS_MAX} calls wait for the next stop of the agent");
                kept.push(Err(EngineError::Invalid(what)));
                continue;
            }
            // Of progress only the latest counts; the oldest that was taken over gives way.
            let surplus = (calls.len() + 1).saturating_sub(CALLS_MAX);
            let taken = calls.iter().filter(|known| known.taken).take(surplus);
            let replaced = calls.iter().filter(|known| !known.taken && record.replaces(known));
            let gone: Vec<String> = taken.chain(replaced).map(CallRecord::key).collect();
            calls.retain(|known| !gone.contains(&known.key()));
            // What came with it and is void already is not written at all.
            notes.retain(|note| !matches!(note, PartChange::Set { key, .. } if gone.contains(key)));
            notes.extend(gone.into_iter().map(|key| PartChange::Clear { key }));
            notes.push(note(&record.key(), record)?);
            calls.push(record.clone());
            kept.push(Ok(None));
        }
        if !notes.is_empty() {
            self.set_notes(engine, now, notes)?;
        }
        Ok(kept)
    }
}

impl Engine {
    /// Returns the check of the latest claims by call in a run, if there was one.
    ///
    /// # Errors
    ///
    /// As [`open_any`](Self::open_any).
    pub fn claim_check(&self, run: &RunId) -> Result<Option<ClaimCheck>, EngineError> {
        let any = self.open_any(run)?;
        Ok(each!(&any, handle => handle.claim_check()))
    }

    /// Makes a call durable, together with others that come at the same time. Returns the earlier record if the host delivers it again: it counts once.
    ///
    /// # Errors
    ///
    /// As [`open_any`](Self::open_any), and what the store says.
    pub fn record_call(
        &self,
        now: Timestamp,
        run: &RunId,
        record: &CallRecord,
    ) -> Result<Option<CallRecord>, EngineError> {
        self.call_queue().keep(run, record, |records| match self.keep_calls(now, run, records) {
            Ok(kept) => kept,
            Err(error) if records.len() == 1 => vec![Err(error)],
            // One by one, so that only the call at fault gets the error.
            Err(_) => {
                let alone = |record| self.keep_calls(now, run, std::slice::from_ref(record));
                let kept = records.iter().map(|it| alone(it)?.pop().unwrap_or(Ok(None)));
                kept.collect()
            }
        })
    }

    fn keep_calls(
        &self,
        now: Timestamp,
        run: &RunId,
        records: &[CallRecord],
    ) -> Result<Vec<Kept>, EngineError> {
        // Other processes that record calls at the same time wait here instead of trying again.
        let _turn = self.store().turn(run)?;
        let mut any = self.open_any(run)?;
        each!(&mut any, handle => handle.keep_calls(self, now, records))
    }
}
