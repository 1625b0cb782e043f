//! The outbox in memory: every rule about effects in its plainest form.

use std::collections::{BTreeMap, BTreeSet};

use aldis_signal::time::Timestamp;

use crate::claim::{Claim, ClaimRequest, PendingCount};
use crate::record::{Effect, EffectFilter, EffectState};
use crate::step::{NewEffect, RunId};

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// In the order they were enqueued.
    entries: Vec<OutboxEntry>,
    keys: BTreeSet<String>,
}

#[derive(Debug)]
struct OutboxEntry {
    effect: Effect,
    /// The fencing number of the last claim.
    fence: u64,
    /// Until when it is claimed, if it is.
    claimed: Option<Timestamp>,
}

impl OutboxEntry {
    fn is_pending(&self) -> bool {
        self.effect.state == EffectState::Pending
    }

    fn finish(&mut self, state: EffectState) {
        self.effect.state = state;
        self.claimed = None;
    }
}

impl Outbox {
    pub(super) fn enqueue(&mut self, run: &RunId, new: &NewEffect) {
        if !self.keys.insert(new.key.clone()) {
            return;
        }
        let NewEffect { key, kind, body, due, lane, requires } = new.clone();
        let (attempts, error, state, worker) = (0, None, EffectState::Pending, None);
        let run = run.clone();
        let effect =
            Effect { key, run, kind, body, due, attempts, error, state, lane, requires, worker };
        self.entries.push(OutboxEntry { effect, fence: 0, claimed: None });
    }

    pub(super) fn pending(&self, filter: &EffectFilter) -> Vec<Effect> {
        self.entries
            .iter()
            .filter(|entry| entry.is_pending() && entry.effect.due <= filter.due_by)
            .map(|entry| &entry.effect)
            .filter(|effect| filter.run.as_ref().is_none_or(|run| effect.run == *run))
            .filter(|effect| filter.kinds.is_empty() || filter.kinds.contains(&effect.kind))
            .take(filter.limit)
            .cloned()
            .collect()
    }

    pub(super) fn pending_count(&self) -> Vec<PendingCount> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        let mut errors: BTreeMap<&str, Option<&String>> = BTreeMap::new();
        for OutboxEntry { effect, .. } in self.entries.iter().filter(|entry| entry.is_pending()) {
            *counts.entry((&effect.kind, &effect.lane)).or_default() += 1;
            errors.entry(&effect.lane).or_insert(effect.error.as_ref());
        }
        let count = |((kind, lane), count): ((&str, &str), u64)| PendingCount {
            kind: kind.to_owned(),
            lane: lane.to_owned(),
            count,
            error: errors.get(lane).filter(|_| !lane.is_empty()).copied().flatten().cloned(),
        };
        counts.into_iter().map(count).collect()
    }

    pub(super) fn effect(&self, key: &str) -> Option<Effect> {
        let found = self.entries.iter().find(|entry| entry.effect.key == key);
        found.map(|entry| entry.effect.clone())
    }

    /// Closes an effect of a run. Returns whether it was pending.
    pub(super) fn close(&mut self, key: &str, run: &RunId) -> bool {
        let mut entries = self.entries.iter_mut();
        let mine = |entry: &&mut OutboxEntry| entry.effect.key == key && entry.effect.run == *run;
        let pending = entries.find(mine).filter(|entry| entry.is_pending());
        pending.map(|entry| entry.finish(EffectState::Done)).is_some()
    }

    pub(super) fn claim(&mut self, request: &ClaimRequest) -> Vec<Claim> {
        let mut held_up: BTreeSet<String> = BTreeSet::new();
        let mut claims = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.is_pending()) {
            if claims.len() == request.limit {
                break;
            }
            let free = entry.claimed.is_none_or(|until| until <= request.now);
            let lane = &entry.effect.lane;
            if held_up.contains(lane) || !free || !request.wants(&entry.effect) {
                held_up.extend((!lane.is_empty()).then(|| lane.clone()));
                continue;
            }
            let until = request.now.after(request.ttl);
            entry.fence += 1;
            entry.claimed = Some(until);
            entry.effect.worker = Some(request.worker.clone());
            claims.push(Claim { effect: entry.effect.clone(), fence: entry.fence, until });
        }
        claims
    }

    pub(super) fn keep(&mut self, claims: &[Claim], until: Timestamp) -> Vec<bool> {
        let keep = |claim| self.claimed(claim).map(|entry| entry.claimed = Some(until)).is_some();
        claims.iter().map(keep).collect()
    }

    pub(super) fn done(&mut self, claim: &Claim) -> bool {
        self.claimed(claim).map(|entry| entry.finish(EffectState::Done)).is_some()
    }

    pub(super) fn failed(&mut self, claim: &Claim, next: Option<Timestamp>, error: &str) -> bool {
        let Some(entry) = self.claimed(claim) else { return false };
        entry.effect.attempts += 1;
        entry.effect.error = Some(error.to_owned());
        entry.claimed = None;
        match next {
            Some(next) => entry.effect.due = next,
            None => entry.finish(EffectState::GivenUp),
        }
        true
    }

    pub(super) fn trim(&mut self, lane: &str, keep: usize, now: Timestamp, error: &str) -> usize {
        let mine = |entry: &OutboxEntry| {
            entry.is_pending() && entry.effect.lane == lane && !entry.effect.lane.is_empty()
        };
        let excess = self.entries.iter().filter(|entry| mine(entry)).count().saturating_sub(keep);
        let oldest = self.entries.iter_mut().filter(|entry| mine(entry)).take(excess);
        let free = |entry: &&mut OutboxEntry| entry.claimed.is_none_or(|until| until <= now);
        let given_up = oldest.filter(free).map(|entry| {
            entry.effect.error = Some(error.to_owned());
            entry.finish(EffectState::GivenUp);
        });
        given_up.count()
    }

    /// The entry that this claim is still good for.
    fn claimed(&mut self, claim: &Claim) -> Option<&mut OutboxEntry> {
        self.entries.iter_mut().find(|entry| {
            entry.effect.key == claim.effect.key
                && entry.is_pending()
                && entry.claimed.is_some()
                && entry.fence == claim.fence
        })
    }

    /// Forgets the effects of runs that are gone.
    pub(super) fn forget(&mut self, gone: &[RunId]) {
        self.entries.retain(|entry| !gone.contains(&entry.effect.run));
        self.keys = self.entries.iter().map(|entry| entry.effect.key.clone()).collect();
    }
}
