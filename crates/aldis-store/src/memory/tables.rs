//! The tables, and what may be done with them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aldis_signal::time::Timestamp;

use super::outbox::Outbox;
use super::tickets::TicketTable;
use crate::cursor::{Continuity, Cursor, PageCursor};
use crate::error::{CommitError, LeaseError};
use crate::record::{
    Decision, DecisionFilter, Event, Lease, Loaded, Part, Prune, Run, RunFilter, RunSummary, Timer,
};
use crate::step::{Committed, PartChange, Revision, RunId, RunRecord, Source, Step, TimerChange};
use crate::worker::{FORGOTTEN_AFTER, WorkerRecord};

#[derive(Debug, Default)]
pub(super) struct Tables {
    runs: BTreeMap<RunId, Row>,
    /// In order of their sequence numbers.
    decisions: Vec<Decision>,
    decisions_ever: u64,
    /// The number of the last decision that was pruned.
    pruned_to: u64,
    pub(super) outbox: Outbox,
    /// By name.
    pub(super) workers: BTreeMap<String, WorkerRecord>,
    pub(super) tickets: TicketTable,
}

#[derive(Debug)]
pub(super) struct Row {
    /// Grows with each run that is created.
    number: u64,
    run: Run,
    events: Vec<Event>,
    sources: BTreeMap<String, usize>,
    timers: BTreeMap<String, Timestamp>,
    parts: BTreeMap<String, String>,
}

impl Tables {
    pub(super) fn announce(&mut self, worker: WorkerRecord) {
        self.workers.retain(|_, known| known.until.after(FORGOTTEN_AFTER) >= worker.seen);
        self.workers.insert(worker.name.clone(), worker);
    }

    pub(super) fn run(&self, id: &RunId) -> Option<Run> {
        self.runs.get(id).map(|row| row.run.clone())
    }

    pub(super) fn load(&self, id: &RunId) -> Option<Loaded> {
        self.runs.get(id).map(Row::load)
    }

    /// The runs that pass, the latest created first.
    pub(super) fn rows(&self, filter: &RunFilter) -> impl Iterator<Item = &Row> {
        let mut rows: Vec<&Row> = self.runs.values().filter(|row| passes(row, filter)).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.number));
        rows.into_iter().take(filter.limit)
    }

    pub(super) fn find(&self, prefix: &str, limit: usize) -> Vec<RunSummary> {
        let found = self.runs.values().filter(|row| row.run.id.as_str().starts_with(prefix));
        found.take(limit).map(Row::summary).collect()
    }

    pub(super) fn commit(&mut self, step: &Step) -> Result<Committed, CommitError> {
        self.admit(step)?;
        let revision = Revision(step.expected.0 + 1);
        if !self.runs.contains_key(&step.run) {
            let last = self.runs.values().map(|row| row.number).max().unwrap_or(0);
            self.runs.insert(step.run.clone(), Row::new(last + 1, step));
        }
        let row = self.runs.entry(step.run.clone()).or_insert_with(|| Row::new(0, step));
        row.run.revision = revision;
        row.run.updated = step.at;
        row.run.record = step.record.clone();
        row.append(step);
        row.arm(&step.timers);
        row.keep(&step.parts);
        let committed = Committed { revision, last_event: row.run.last_event };
        for new in &step.decisions {
            self.decisions_ever += 1;
            self.decisions.push(Decision {
                cursor: Cursor::of(self.decisions_ever),
                run: step.run.clone(),
                revision,
                at: new.at,
                body: new.body.clone(),
            });
        }
        for new in &step.effects {
            self.outbox.enqueue(&step.run, new);
        }
        for key in &step.done {
            self.outbox.close(key, &step.run);
        }
        Ok(committed)
    }

    /// Refuses what must not be written, in the order the trait promises.
    fn admit(&self, step: &Step) -> Result<(), CommitError> {
        let row = self.runs.get(&step.run);
        let current = row.map_or(0, |row| row.run.fence);
        if step.fence.is_some_and(|fence| fence != current) {
            return Err(CommitError::Fenced { current });
        }
        let mut fresh = BTreeSet::new();
        for Source { key, .. } in step.events.iter().filter_map(|event| event.source.as_ref()) {
            let known = self.event_by_source(&step.run, key);
            if !fresh.insert(key) || known.is_some() {
                let (digest, revision) = known.map_or((None, None), |it| (it.digest, it.revision));
                return Err(CommitError::Duplicate { source_key: key.clone(), digest, revision });
            }
        }
        let found = row.map_or(Revision(0), |row| row.run.revision);
        if found == step.expected {
            Ok(())
        } else if row.is_none() {
            Err(CommitError::NoSuchRun { run: step.run.clone() })
        } else {
            Err(CommitError::Conflict { found })
        }
    }

    pub(super) fn events(&self, run: &RunId, after: u64, limit: usize) -> Vec<Event> {
        let events = self.runs.get(run).map_or(&[][..], |row| &row.events);
        events.iter().filter(|event| event.seq > after).take(limit).cloned().collect()
    }

    pub(super) fn event_by_source(&self, run: &RunId, source: &str) -> Option<Event> {
        let row = self.runs.get(run)?;
        row.sources.get(source).map(|at| row.events[*at].clone())
    }

    pub(super) fn decisions(&self, filter: &DecisionFilter) -> Vec<Decision> {
        let before = filter.before.map(Cursor::number);
        self.decisions
            .iter()
            .rev()
            .filter(|decision| before.is_none_or(|before| decision.cursor.number() < before))
            .filter(|decision| filter.run.as_ref().is_none_or(|run| decision.run == *run))
            .take(filter.limit)
            .cloned()
            .collect()
    }

    pub(super) fn decisions_after(
        &self,
        run: Option<&RunId>,
        after: &Cursor,
        limit: usize,
    ) -> Vec<Decision> {
        let mine = |decision: &&Decision| run.is_none_or(|run| decision.run == *run);
        let later = |decision: &&Decision| decision.cursor.number() > after.number();
        self.decisions.iter().filter(later).filter(mine).take(limit).cloned().collect()
    }

    pub(super) fn decisions_of(&self, run: &RunId, revision: Revision) -> Vec<Decision> {
        let mine = |decision: &&Decision| decision.run == *run && decision.revision == revision;
        self.decisions.iter().filter(mine).cloned().collect()
    }

    pub(super) fn continuity(&self, after: &Cursor) -> Continuity {
        if after.number() > self.decisions_ever {
            Continuity::Unknown
        } else if after.number() < self.pruned_to {
            Continuity::Pruned
        } else {
            Continuity::Complete
        }
    }

    pub(super) fn effects_done(
        &mut self,
        run: &RunId,
        fence: Option<u64>,
        keys: &[String],
    ) -> Result<usize, CommitError> {
        let row = self.runs.get(run);
        let current = row.map_or(0, |row| row.run.fence);
        if fence.is_some_and(|fence| fence != current) {
            return Err(CommitError::Fenced { current });
        }
        if row.is_none() {
            return Err(CommitError::NoSuchRun { run: run.clone() });
        }
        Ok(keys.iter().filter(|key| self.outbox.close(key, run)).count())
    }

    pub(super) fn due_timers(&self, now: Timestamp, limit: usize) -> Vec<Timer> {
        let mut due: Vec<Timer> = self
            .runs
            .iter()
            .flat_map(|(run, row)| row.timers.iter().map(move |timer| (run, timer)))
            .filter(|(_, (_, due))| **due <= now)
            .map(|(run, (key, due))| Timer { run: run.clone(), key: key.clone(), due: *due })
            .collect();
        // The tables are sorted by run and key, and sorting is stable.
        due.sort_by_key(|timer| timer.due);
        due.truncate(limit);
        due
    }

    pub(super) fn next_timer(&self) -> Option<Timestamp> {
        self.runs.values().flat_map(|row| row.timers.values()).min().copied()
    }

    pub(super) fn acquire_lease(
        &mut self,
        run: &RunId,
        holder: &str,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        let row = self.row(run)?;
        if let Some(Lease { holder: other, until, fence, .. }) = &row.run.lease
            && other != holder
            && *until > now
        {
            let (holder, until, fence) = (other.clone(), *until, *fence);
            return Err(LeaseError::Held { holder, until, fence });
        }
        row.run.fence += 1;
        Ok(row.lend(holder, now.after(ttl)))
    }

    pub(super) fn renew_lease(
        &mut self,
        lease: &Lease,
        now: Timestamp,
        ttl: Duration,
    ) -> Result<Lease, LeaseError> {
        let row = self.row(&lease.run)?;
        if row.is_lent(lease) {
            Ok(row.lend(&lease.holder, now.after(ttl)))
        } else {
            Err(LeaseError::Lost { current: row.run.fence })
        }
    }

    pub(super) fn release_lease(&mut self, lease: &Lease) -> bool {
        let row = self.runs.get_mut(&lease.run).filter(|row| row.is_lent(lease));
        row.map(|row| row.run.lease = None).is_some()
    }

    pub(super) fn break_lease(&mut self, run: &RunId, fence: u64) -> bool {
        let row = self.runs.get_mut(run).filter(|row| row.run.fence == fence);
        let ended = row.and_then(|row| row.run.lease.take().inspect(|_| row.run.fence += 1));
        ended.is_some()
    }

    pub(super) fn prune(&mut self, prune: &Prune) -> Vec<RunId> {
        let ended = |row: &&Row| !row.run.record.active && row.run.updated < prune.ended_before;
        let mut old: Vec<&Row> = self.runs.values().filter(ended).collect();
        old.sort_by_key(|row| (row.run.updated, row.number));
        let old = old.into_iter().take(prune.limit).map(|row| row.run.id.clone());
        let gone: Vec<RunId> = old.collect();
        self.runs.retain(|id, _| !gone.contains(id));
        let lost = self.decisions.iter().rfind(|decision| gone.contains(&decision.run));
        let pruned_to = lost.map_or(0, |decision| decision.cursor.number());
        self.pruned_to = self.pruned_to.max(pruned_to);
        self.decisions.retain(|decision| !gone.contains(&decision.run));
        self.outbox.forget(&gone);
        gone
    }

    fn row(&mut self, run: &RunId) -> Result<&mut Row, LeaseError> {
        self.runs.get_mut(run).ok_or_else(|| LeaseError::NoSuchRun { run: run.clone() })
    }
}

impl Row {
    fn new(number: u64, step: &Step) -> Self {
        let run = Run {
            id: step.run.clone(),
            revision: Revision(0),
            last_event: 0,
            created: step.at,
            updated: step.at,
            fence: 0,
            lease: None,
            record: step.record.clone(),
        };
        Self {
            number,
            run,
            events: Vec::new(),
            sources: BTreeMap::new(),
            timers: BTreeMap::new(),
            parts: BTreeMap::new(),
        }
    }

    pub(super) fn summary(&self) -> RunSummary {
        let Run { id, revision, last_event, created, updated, fence, lease, record } =
            self.run.clone();
        let RunRecord { project, session, machine, driver, title, active, state: _ } = record;
        let page = PageCursor::of(self.number);
        RunSummary {
            id,
            revision,
            last_event,
            created,
            updated,
            fence,
            lease,
            project,
            session,
            machine,
            driver,
            title,
            active,
            page,
        }
    }

    pub(super) fn load(&self) -> Loaded {
        let part = |(key, body): (&String, &String)| Part { key: key.clone(), body: body.clone() };
        Loaded { run: self.run.clone(), parts: self.parts.iter().map(part).collect() }
    }

    fn append(&mut self, step: &Step) {
        for new in &step.events {
            self.run.last_event += 1;
            if let Some(source) = &new.source {
                self.sources.insert(source.key.clone(), self.events.len());
            }
            self.events.push(Event {
                run: step.run.clone(),
                seq: self.run.last_event,
                at: new.at,
                kind: new.kind.clone(),
                body: new.body.clone(),
                source: new.source.as_ref().map(|source| source.key.clone()),
                digest: new.source.as_ref().map(|source| source.digest.clone()),
                revision: Some(self.run.revision),
            });
        }
    }

    fn arm(&mut self, changes: &[TimerChange]) {
        for change in changes {
            match change {
                TimerChange::Set { key, due } => self.timers.insert(key.clone(), *due),
                TimerChange::Clear { key } => self.timers.remove(key),
            };
        }
    }

    fn keep(&mut self, changes: &[PartChange]) {
        for change in changes {
            match change {
                PartChange::Set { key, body } => self.parts.insert(key.clone(), body.clone()),
                PartChange::Clear { key } => self.parts.remove(key),
            };
        }
    }

    fn lend(&mut self, holder: &str, until: Timestamp) -> Lease {
        let (run, holder, fence) = (self.run.id.clone(), holder.to_owned(), self.run.fence);
        self.run.lease.insert(Lease { run, holder, fence, until }).clone()
    }

    fn is_lent(&self, lease: &Lease) -> bool {
        self.run.fence == lease.fence
            && self.run.lease.as_ref().is_some_and(|own| own.holder == lease.holder)
    }
}

fn passes(row: &Row, filter: &RunFilter) -> bool {
    let record = &row.run.record;
    (filter.projects.is_empty() || filter.projects.contains(&record.project))
        && filter.machine.as_ref().is_none_or(|machine| record.machine == *machine)
        && filter.driver.is_none_or(|driver| record.driver == driver)
        && filter.updated_before.is_none_or(|before| row.run.updated < before)
        && filter.after.is_none_or(|after| row.number < after.number())
        && filter.active.is_none_or(|active| record.active == active)
        && filter.session.as_ref().is_none_or(|session| record.session.as_ref() == Some(session))
}
