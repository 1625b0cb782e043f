//! Checks what a delivery's journal says after agents, workers, servers and the database were killed:
//! every task complete exactly once, no agent performed under two claims, nothing acknowledged lost.
//!
//! One pass over the journal in the order of its steps, so that it is linear in its length. It judges
//! by the events and decisions alone and trusts no state. A checker that finds nothing proves nothing:
//! its tests plant each kind of error in a sound history.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use aldis_store::{Cursor, RunId, Store, StoreError};
use serde_json::Value;

/// How much is read at once.
const PAGE: usize = 1_000;
/// Decisions that follow from the verdict of an agent, and from nothing else.
const VERDICTS: [&str; 6] = [
    "delivery/ready-for-review",
    "delivery/review-passed",
    "delivery/review-failed",
    "delivery/merge-started",
    "delivery/audit-failed",
    "delivery/task-incomplete",
];
const COMPLETE: &str = "delivery/task-complete";

/// The journal of a delivery.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The tasks of the plan.
    pub tasks: Vec<String>,
    /// What happened, in order.
    pub events: Vec<HistoryEvent>,
    /// What was decided, in order.
    pub decisions: Vec<HistoryDecision>,
    /// Messages of people that were acknowledged.
    pub acknowledged: Vec<String>,
}

/// An event of a journal.
#[derive(Clone, Debug)]
pub struct HistoryEvent {
    /// Its number.
    pub seq: u64,
    /// The step that took it.
    pub revision: u64,
    /// What happened.
    pub body: Value,
}

/// A decision of a journal.
#[derive(Clone, Debug)]
pub struct HistoryDecision {
    /// The step that made it.
    pub revision: u64,
    /// Its rule.
    pub rule: String,
    /// The task that it is about.
    pub task: Option<String>,
}

/// Something that must not be in a journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Violation {
    /// An event is missing or out of order: its number was expected.
    Gap(u64),
    /// A task was completed so often.
    Completed(String, usize),
    /// An agent was claimed under a number that is not newer than the one before.
    OldClaim(u64, u64),
    /// A step decided by verdicts although none counted in it.
    Unfounded(u64, String),
    /// Something was reported under a claim that nobody had made.
    NoClaim(u64, u64),
    /// A message was acknowledged and is not there, or so often.
    Lost(String, usize),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(seq) => write!(f, "event {seq} is missing"),
            Self::Completed(task, times) => write!(f, "task {task} was completed {times} times"),
            Self::OldClaim(agent, fence) => {
                write!(f, "agent {agent} was claimed under {fence}, which is not newer")
            }
            Self::Unfounded(revision, rule) => {
                write!(f, "step {revision} decided {rule} without a verdict that counts")
            }
            Self::NoClaim(agent, fence) => {
                write!(f, "agent {agent} reported under {fence}, which nobody was given")
            }
            Self::Lost(text, times) => write!(f, "the message {text:?} is there {times} times"),
        }
    }
}

impl History {
    /// Reads the journal of a delivery.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub fn read(
        store: &dyn Store,
        run: &RunId,
        acknowledged: Vec<String>,
    ) -> Result<Self, StoreError> {
        let mut history = Self { acknowledged, ..Self::default() };
        let parse = |body: &str| serde_json::from_str::<Value>(body).unwrap_or_default();
        loop {
            let after = history.events.last().map_or(0, |event| event.seq);
            let page = store.events(run, after, PAGE)?;
            if page.is_empty() {
                break;
            }
            history.events.extend(page.into_iter().map(|event| HistoryEvent {
                seq: event.seq,
                revision: event.revision.map_or(0, |revision| revision.0),
                body: parse(&event.body),
            }));
        }
        let mut cursor = Cursor::START;
        loop {
            let page = store.decisions_after(Some(run), &cursor, PAGE)?;
            let Some(last) = page.last() else { break };
            cursor = last.cursor;
            history.decisions.extend(page.iter().map(|decision| {
                let body = parse(&decision.body);
                let text = |member: &str| body[member].as_str().map(str::to_owned);
                HistoryDecision {
                    revision: decision.revision.0,
                    rule: text("rule").unwrap_or_default(),
                    task: text("task"),
                }
            }));
        }
        let began = history.events.first().map(|event| &event.body["start"]["plan"]["tasks"]);
        let tasks = began.and_then(Value::as_array).into_iter().flatten();
        history.tasks = tasks.filter_map(|it| it["id"].as_str().map(str::to_owned)).collect();
        Ok(history)
    }

    /// Returns what must not be in it, in order.
    pub fn check(&self) -> Vec<Violation> {
        let mut pass = Pass::default();
        for event in &self.events {
            pass.take(event);
        }
        for decision in &self.decisions {
            pass.judge(decision);
        }
        let mut found = pass.found;
        for task in &self.tasks {
            let times = pass.complete.get(task).copied().unwrap_or_default();
            if times != 1 {
                found.push(Violation::Completed(task.clone(), times));
            }
        }
        for text in &self.acknowledged {
            let times = pass.told.get(text).copied().unwrap_or_default();
            if times != 1 {
                found.push(Violation::Lost(text.clone(), times));
            }
        }
        found.sort();
        found.dedup();
        found
    }
}

/// What is known while a journal is read.
#[derive(Debug, Default)]
struct Pass {
    found: Vec<Violation>,
    seq: u64,
    /// The claim in force of each agent.
    claims: BTreeMap<u64, u64>,
    /// Agents that gave a verdict that counts.
    over: BTreeSet<u64>,
    /// Steps that had a reason to decide by verdicts.
    founded: BTreeSet<u64>,
    complete: BTreeMap<String, usize>,
    told: BTreeMap<String, usize>,
}

impl Pass {
    fn take(&mut self, event: &HistoryEvent) {
        self.seq += 1;
        if event.seq != self.seq {
            self.found.push(Violation::Gap(self.seq));
            self.seq = event.seq;
        }
        let (body, number) = (&event.body, |member: &str| event.body[member].as_u64().unwrap_or(0));
        match body["event"].as_str().unwrap_or_default() {
            "claimed" => self.claimed(number("agent"), number("fence")),
            "worker" if body["report"]["event"] == "finished" => {
                self.finished(event.revision, number("agent"), number("fence"));
            }
            // Where the coordinator runs the agents itself, and for what it does itself.
            "finished" | "merged" | "check_ended" | "inspected" | "answer" => {
                self.founded.insert(event.revision);
            }
            "tell" => {
                let text = body["text"].as_str().unwrap_or_default();
                *self.told.entry(text.to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }

    fn claimed(&mut self, agent: u64, fence: u64) {
        if self.over.contains(&agent) {
            // Whoever claimed before the verdict was there may say so after it, and nothing comes of it.
            return;
        }
        let before = self.claims.insert(agent, fence);
        if before.is_some_and(|before| before >= fence) {
            self.found.push(Violation::OldClaim(agent, fence));
        }
    }

    fn finished(&mut self, revision: u64, agent: u64, fence: u64) {
        match self.claims.get(&agent) {
            None => self.found.push(Violation::NoClaim(agent, fence)),
            Some(current) if *current < fence => {
                self.found.push(Violation::NoClaim(agent, fence));
            }
            // Refused: it must move nothing, which the decisions of its step show.
            Some(current) if *current > fence => {}
            Some(_) if !self.over.insert(agent) => {}
            Some(_) => drop(self.founded.insert(revision)),
        }
    }

    fn judge(&mut self, decision: &HistoryDecision) {
        let HistoryDecision { revision, rule, task } = decision;
        if rule == COMPLETE
            && let Some(task) = task
        {
            *self.complete.entry(task.clone()).or_default() += 1;
        }
        let by_verdict = VERDICTS.contains(&&**rule) || rule == COMPLETE;
        if by_verdict && !self.founded.contains(revision) {
            self.found.push(Violation::Unfounded(*revision, rule.clone()));
        }
    }
}
