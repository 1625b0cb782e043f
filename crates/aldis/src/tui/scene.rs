//! What there is to see, read from the store.
//!
//! Reading asks for what was decided since the last look and then only for the runs that changed, so
//! that looking four times a second costs nothing while nothing happens. It holds up nobody: reading
//! never waits for writers, nor they for it.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use aldis_engine::{OpenQuestion, Snapshot};
use aldis_signal::time::Timestamp;
use aldis_store::{
    Cursor, Decision, DecisionFilter, RunFilter, RunId, RunSummary, Store, StoreError,
};

use crate::app::dismissed::Dismissed;
use crate::view::wire::run::DecisionForm;

/// How many runs that go on are shown, and how many that ended.
const ACTIVE_MAX: usize = 200;
const ENDED_MAX: usize = 10;
/// How much of the journal is shown.
const JOURNAL_MAX: usize = 200;
/// Steps without a decision are noticed this often.
const LOOK_ANYWAY: Duration = Duration::from_secs(2);

/// What there is to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    /// Runs, those that go on first.
    pub(crate) runs: Vec<Rc<Snapshot>>,
    /// What was decided, the latest first.
    pub(crate) journal: Vec<Rc<DecisionForm>>,
    /// What somebody took off the list of what needs a person.
    pub(crate) dismissed: Dismissed,
}

/// A question that waits for a human.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asks {
    pub(crate) run: RunId,
    pub(crate) question: OpenQuestion,
}

impl Scene {
    /// Returns the questions that wait for a human.
    pub(crate) fn questions(&self) -> Vec<Asks> {
        let live = self.runs.iter().filter(|run| run.run.record.active);
        let asks = live.flat_map(|run| {
            let questions = run.questions().into_iter();
            questions.map(|question| Asks { run: run.id().clone(), question })
        });
        asks.collect()
    }

    /// Returns the run of that name.
    pub(crate) fn run(&self, id: &RunId) -> Option<&Rc<Snapshot>> {
        self.runs.iter().find(|run| run.id() == id)
    }
}

/// Looks into the store again and again.
pub(crate) struct SceneReader<'s> {
    store: &'s dyn Store,
    only: Option<RunId>,
    known: BTreeMap<RunId, Rc<Snapshot>>,
    journal: VecDeque<Rc<DecisionForm>>,
    /// The latest decision that was read.
    newest: Cursor,
    looked: Option<Timestamp>,
    /// Whether something has changed that nobody was shown.
    stale: bool,
}

impl<'s> SceneReader<'s> {
    /// Reads everything, or about one run only.
    pub(crate) fn new(store: &'s dyn Store, only: Option<RunId>) -> Self {
        let (known, journal) = (BTreeMap::new(), VecDeque::new());
        let newest = Cursor::START;
        Self { store, only, known, journal, newest, looked: None, stale: true }
    }

    /// Returns what there is to see, if that may have changed since the last look.
    ///
    /// # Errors
    ///
    /// Fails if the store does. The next look shows what this one would have.
    pub(crate) fn look(&mut self, now: Timestamp) -> Result<Option<Scene>, StoreError> {
        self.stale |= self.follow()?;
        let due = self.looked.is_none_or(|looked| now.since(looked) >= LOOK_ANYWAY);
        if !self.stale && !due {
            return Ok(None);
        }
        let runs = self.listed()?;
        self.stale |= self.refresh(now, &runs)?;
        self.looked = Some(now);
        if !std::mem::take(&mut self.stale) {
            return Ok(None);
        }
        Ok(Some(Scene {
            runs: runs.iter().filter_map(|run| self.known.get(&run.id).cloned()).collect(),
            journal: self.journal.iter().cloned().collect(),
            dismissed: Dismissed::read(self.store)?,
        }))
    }

    /// Shows everything anew at the next look.
    pub(crate) fn forget(&mut self) {
        self.stale = true;
    }

    /// Reads what was decided since. Returns whether anything was.
    fn follow(&mut self) -> Result<bool, StoreError> {
        let new = self.store.decisions_after(self.only.as_ref(), &self.newest, JOURNAL_MAX)?;
        let behind = new.len() == JOURNAL_MAX;
        if behind {
            // Whoever is that far behind wants the end of the story.
            let run = self.only.clone();
            let filter = DecisionFilter { run, before: None, limit: JOURNAL_MAX };
            self.journal.clear();
            self.note(self.store.decisions(&filter)?.into_iter().rev());
        } else {
            self.note(new.iter().cloned());
        }
        Ok(!new.is_empty())
    }

    fn note(&mut self, decisions: impl Iterator<Item = Decision>) {
        for decision in decisions {
            self.newest = decision.cursor;
            if let Some(form) = DecisionForm::new(&decision) {
                self.journal.push_front(Rc::new(form));
            }
        }
        self.journal.truncate(JOURNAL_MAX);
    }

    fn listed(&self) -> Result<Vec<RunSummary>, StoreError> {
        if let Some(only) = &self.only {
            let found = self.store.find(only.as_str(), 1)?.into_iter();
            return Ok(found.filter(|run| run.id == *only).collect());
        }
        let list = |active: bool, limit: usize| {
            let filter = RunFilter { active: Some(active), limit, ..RunFilter::default() };
            self.store.list(&filter)
        };
        let mut runs = list(true, ACTIVE_MAX)?;
        runs.extend(list(false, ENDED_MAX)?);
        Ok(runs)
    }

    /// Reads again what has taken a step. Returns whether anything has, or has gone.
    fn refresh(&mut self, now: Timestamp, runs: &[RunSummary]) -> Result<bool, StoreError> {
        let before = self.known.len();
        self.known.retain(|id, _| runs.iter().any(|run| run.id == *id));
        let mut changed = self.known.len() != before;
        for run in runs {
            // A lease is renewed without a step.
            let current = |known: &Rc<Snapshot>| {
                known.run.revision == run.revision
                    && known.run.lease.as_ref().is_none_or(|lease| lease.until > now)
            };
            if self.known.get(&run.id).is_some_and(current) {
                continue;
            }
            let Some(loaded) = self.store.load(&run.id)? else { continue };
            self.known.insert(run.id.clone(), Rc::new(loaded.into()));
            changed = true;
        }
        Ok(changed)
    }
}
