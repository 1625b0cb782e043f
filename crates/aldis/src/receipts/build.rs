//! Puts a receipt together: from the store and the repository alone, so that whoever comes after a crash
//! writes the same.

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::Duration;

use aldis_engine::{Snapshot, State};
use aldis_machine::{Decision, Evidence};
use aldis_process::Cancellation;
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::{Decision as StoredDecision, DecisionFilter, Effect, Revision, RunId, Store};
use serde_json::Value;

use super::canonical::{canonical, sha256};
use super::chain::{self, Name, ReceiptFile};
use super::key::Key;
use super::{facts, is_done};
use crate::agents::git::{Git, GitError};
use crate::error::CommandError;
use crate::view::wire::receipt::{
    Receipt, ReceiptDecision, ReceiptJournal, ReceiptRepository, ReceiptSignal, SealedReceipt,
};

/// How many decisions and signals are listed; the digest covers all.
const DECISIONS_MAX: usize = 1_000;
const SIGNALS_MAX: usize = 200;
/// How much of a text is kept.
const TEXT_MAX: usize = 16_000;

/// What the effect of a step says about its receipt.
#[derive(serde::Serialize, serde::Deserialize)]
pub(crate) struct Wanted {
    /// The rule that decided it.
    pub(crate) rule: String,
    /// The task, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<String>,
}

/// Makes the receipt that an effect wants, after the last one of the run. Nothing if the run is gone, or
/// the effect cannot be understood.
///
/// # Errors
///
/// Fails if the store does.
pub(super) fn build(
    store: &dyn Store,
    key: &Key,
    effect: &Effect,
    (last, (now, patience)): (Option<&ReceiptFile>, (Timestamp, Duration)),
) -> Result<Option<SealedReceipt>, CommandError> {
    let name = Name::of_effect(effect);
    let (Some(name), Ok(wanted)) = (name, serde_json::from_str::<Wanted>(&effect.body)) else {
        return Ok(None);
    };
    let Some(loaded) = store.load(&effect.run)? else { return Ok(None) };
    let journal = Journal::until(store, &effect.run, Revision(name.revision))?;
    let Some(decided) = journal.that(&wanted) else { return Ok(None) };
    let parts = loaded.parts.clone();
    let run = Snapshot::from(loaded);
    let previous = last.and_then(|last| chain::parse(&last.path).ok()).map(|last| last.mac);
    let text = |text: &str| excerpt(&redact(text));
    let (title, asked) = described(&run, wanted.task.as_deref());
    let facts = facts::of(&run, wanted.task.as_deref(), &parts);
    let receipt = Receipt {
        v: 1,
        kind: "receipt".to_owned(),
        key: key.name(),
        number: last.map_or(0, |last| last.name.number).saturating_add(1),
        previous,
        aldis: env!("CARGO_PKG_VERSION").to_owned(),
        run: effect.run.to_string(),
        machine: run.run.record.machine.clone(),
        revision: name.revision,
        task: wanted.task.clone(),
        title: text(&title),
        asked: text(&asked),
        project: run.run.record.project.clone(),
        rule: decided.decision.rule.clone(),
        summary: text(&decided.decision.summary),
        because: text(&decided.decision.because),
        began: run.run.created,
        ended: decided.at,
        written: now,
        repository: repository(&run, (decided.at, now), patience)?,
        checks: facts.checks,
        verdict: facts.verdict,
        protected: facts.protected,
        opinions: facts.opinions,
        signals: journal.signals(wanted.task.as_deref()),
        decisions: journal.listed(wanted.task.as_deref()),
        journal: journal.in_short(),
    };
    let mac = key.sign(&canonical(&receipt)?);
    let unsigned = || CommandError::new("the receipt could not be signed");
    Ok(Some(SealedReceipt { mac: mac.ok_or_else(unsigned)?, receipt }))
}

/// A decision with its digest.
pub(super) struct Noted {
    seq: u64,
    revision: u64,
    at: Timestamp,
    decision: Decision,
    digest: String,
}

/// What was decided in a run until some step.
pub(super) struct Journal(Vec<Noted>);

impl Journal {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// Fails if the store does.
    pub(super) fn until(
        store: &dyn Store,
        run: &RunId,
        revision: Revision,
    ) -> Result<Self, CommandError> {
        let filter = DecisionFilter { run: Some(run.clone()), ..DecisionFilter::default() };
        let mut stored = store.decisions(&filter)?;
        stored.retain(|it| it.revision <= revision);
        stored.reverse();
        let noted = |(at, it): (usize, &StoredDecision)| Noted::of(at as u64 + 1, it);
        Ok(Self(stored.iter().enumerate().map(noted).collect()))
    }

    /// The decision that something is done, of the last step.
    fn that(&self, wanted: &Wanted) -> Option<&Noted> {
        let that = |it: &&Noted| it.decision.rule == wanted.rule && it.decision.task == wanted.task;
        self.0.iter().rev().filter(|it| is_done(&it.decision.rule)).find(that)
    }

    /// Those about a task, or about none; all of them for a run.
    fn about(&self, task: Option<&str>) -> impl Iterator<Item = &Noted> {
        let is_about = move |it: &&Noted| {
            task.is_none() || it.decision.task.is_none() || it.decision.task.as_deref() == task
        };
        self.0.iter().filter(is_about)
    }

    fn listed(&self, task: Option<&str>) -> Vec<ReceiptDecision> {
        let listed: Vec<ReceiptDecision> = self.about(task).map(Noted::listed).collect();
        let surplus = listed.len().saturating_sub(DECISIONS_MAX);
        listed.into_iter().skip(surplus).collect()
    }

    /// Every signal that a decision rests on, once.
    fn signals(&self, task: Option<&str>) -> Vec<ReceiptSignal> {
        let mut known = BTreeSet::new();
        let mut signals = Vec::new();
        // The decision that rests on it comes after those that only report it.
        for noted in self.0.iter().rev() {
            if task.is_some() && noted.decision.task.as_deref() != task {
                continue;
            }
            for seen in noted.decision.evidence.iter().filter(|seen| seen.what == "signal") {
                let Evidence { name, via, agent, quote, line, .. } = seen;
                let is_new =
                    known.insert((name.clone(), *via, agent.clone(), quote.clone(), *line));
                if let (Some(name), true) = (name, is_new && signals.len() < SIGNALS_MAX) {
                    let (name, via, agent) = (name.clone(), via.to_string(), agent.clone());
                    signals.push(ReceiptSignal { name, via, agent, decision: noted.seq });
                }
            }
        }
        signals.reverse();
        signals
    }

    /// Returns how many there are, with the digest of all.
    pub(super) fn in_short(&self) -> ReceiptJournal {
        let lines: String = self.0.iter().map(|it| format!("{}\n", it.digest)).collect();
        ReceiptJournal { decisions: self.0.len() as u64, sha256: sha256(lines.as_bytes()) }
    }

    /// Returns the digest of a decision.
    pub(super) fn digest(&self, seq: u64) -> Option<&str> {
        let at = usize::try_from(seq.checked_sub(1)?).ok()?;
        Some(&self.0.get(at)?.digest)
    }
}

impl Noted {
    fn of(seq: u64, stored: &StoredDecision) -> Self {
        // A store may keep the same JSON in other words.
        let body: Value = serde_json::from_str(&stored.body).unwrap_or_default();
        let digest = canonical(&body).map(|text| sha256(text.as_bytes())).unwrap_or_default();
        let decision = serde_json::from_value(body).unwrap_or_else(|_| unreadable());
        Self { seq, revision: stored.revision.0, at: stored.at, decision, digest }
    }

    fn listed(&self) -> ReceiptDecision {
        ReceiptDecision {
            seq: self.seq,
            revision: self.revision,
            rule: self.decision.rule.clone(),
            at: self.at,
            sha256: self.digest.clone(),
        }
    }
}

/// A decision of a version that this one does not know.
fn unreadable() -> Decision {
    Decision {
        rule: String::new(),
        task: None,
        summary: String::new(),
        because: String::new(),
        evidence: Vec::new(),
        counters: std::collections::BTreeMap::new(),
        remedy: String::new(),
    }
}

/// What the run or the task is called, and what was asked for.
fn described(run: &Snapshot, task: Option<&str>) -> (String, String) {
    let title = run.run.record.title.clone();
    match &run.state {
        State::Run(state) => (first_line(&title), state.setup().task.clone()),
        State::Phases(state) => (first_line(&title), state.task().to_owned()),
        State::Delivery(state) => match task.and_then(|task| state.task(task)) {
            Some(task) => (task.name(), task.spec.description.clone()),
            None => (title.clone(), title),
        },
        State::Turns(_) | State::Unreadable(_) => (title.clone(), title),
    }
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().to_owned()
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The commit that was judged: as the run saw it when the claim was judged, else as it is now.
fn repository(
    run: &Snapshot,
    (judged, now): (Timestamp, Timestamp),
    patience: Duration,
) -> Result<Option<ReceiptRepository>, CommandError> {
    let cancellation = Cancellation::default();
    let over = cancellation.clone();
    let _watch = thread::spawn(move || {
        thread::sleep(patience);
        over.cancel();
    });
    let project = Path::new(&run.run.record.project);
    let Some(git) = Git::around_until(project, cancellation) else { return Ok(None) };
    let root = git.root().to_string_lossy().into_owned();
    if let State::Run(state) = &run.state
        && let Some(commit) = &state.tree().head
    {
        let (commit, clean) = (Some(commit.clone()), !state.tree().dirty);
        return Ok(Some(ReceiptRepository { root, commit, clean, seen: judged }));
    }
    // What the settings of a repository name as its work tree may be gone: nothing is seen of it then.
    if !git.root().is_dir() {
        return Ok(None);
    }
    let failed = |error: GitError| CommandError::new(format!("looking at the work tree: {error}"));
    let tree = git.look(None).map_err(failed)?;
    Ok(Some(ReceiptRepository { root, commit: tree.head, clean: !tree.dirty, seen: now }))
}
