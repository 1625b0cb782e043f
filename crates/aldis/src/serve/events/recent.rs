//! The latest decisions in the words of the stream, shared by everybody who follows.

use std::collections::VecDeque;
use std::sync::Arc;

use aldis_store::{Decision, RunId};
use axum::body::Bytes;

use super::message;

/// From this size on a piece is full.
const PIECE: usize = 64 * 1024;
/// How much is kept for those who are a little behind.
const KEPT_MAX: usize = 8 << 20;

/// Decisions that follow each other, in words.
#[derive(Debug)]
pub(super) struct Piece {
    text: Bytes,
    /// Each with its number, its run, and where its words end. Never empty.
    told: Vec<(u64, RunId, usize)>,
}

impl Piece {
    /// The number of its last decision.
    pub(super) fn last(&self) -> u64 {
        self.told.last().map_or(0, |(seq, ..)| *seq)
    }

    /// What it tells of: each number and its run.
    pub(super) fn told(&self) -> impl Iterator<Item = (u64, &RunId)> {
        self.told.iter().map(|(seq, run, _)| (*seq, run))
    }

    /// What it says after number `after`, of this run only if one is given.
    pub(super) fn after(&self, run: Option<&RunId>, after: u64) -> Bytes {
        let new = self.told.partition_point(|(seq, ..)| *seq <= after);
        let began = |place: usize| {
            let before = place.checked_sub(1).and_then(|before| self.told.get(before));
            before.map_or(0, |(.., end)| *end)
        };
        let Some(run) = run else { return self.text.slice(began(new)..) };
        let mut chosen = Vec::new();
        for (place, (_, of, end)) in self.told.iter().enumerate().skip(new) {
            if of == run {
                chosen.extend_from_slice(&self.text.slice(began(place)..*end));
            }
        }
        chosen.into()
    }
}

/// Puts decisions into words, in pieces.
pub(super) fn pieces(decisions: &[Decision]) -> Vec<Arc<Piece>> {
    let mut pieces = Vec::new();
    let (mut text, mut told) = (String::new(), Vec::new());
    for decision in decisions {
        text.push_str(&message(decision));
        told.push((decision.seq, decision.run.clone(), text.len()));
        if text.len() >= PIECE {
            pieces.push(piece(&mut text, &mut told));
        }
    }
    if !told.is_empty() {
        pieces.push(piece(&mut text, &mut told));
    }
    pieces
}

fn piece(text: &mut String, told: &mut Vec<(u64, RunId, usize)>) -> Arc<Piece> {
    Arc::new(Piece { text: std::mem::take(text).into(), told: std::mem::take(told) })
}

/// The latest pieces, in order and without a gap.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pieces: VecDeque<Arc<Piece>>,
    size: usize,
    /// Everything after this number is in the pieces.
    since: u64,
    newest: u64,
}

impl Recent {
    /// Begins behind this number.
    pub(super) fn begin(&mut self, newest: u64) {
        *self = Self { since: newest, newest, ..Self::default() };
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    pub(super) fn push(&mut self, piece: Arc<Piece>) {
        self.newest = piece.last();
        self.size += piece.text.len();
        self.pieces.push_back(piece);
        while self.size > KEPT_MAX
            && let Some(oldest) = self.pieces.pop_front()
        {
            self.size -= oldest.text.len();
            self.since = oldest.last();
        }
    }

    /// Returns what there is after this number; nothing if some of it is only in the store.
    pub(super) fn after(&self, after: u64) -> Option<Vec<Arc<Piece>>> {
        if after < self.since {
            return None;
        }
        let new = self.pieces.partition_point(|piece| piece.last() <= after);
        Some(self.pieces.iter().skip(new).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    //! What is kept says the same as the store, from every number on.

    use aldis_core::time::Timestamp;
    use aldis_store::Revision;

    use super::*;

    fn decisions(numbers: impl Iterator<Item = u64>, body: usize) -> Vec<Decision> {
        let decision = |seq| Decision {
            seq,
            run: RunId::new(if seq % 3 == 0 { "odd" } else { "even" }).unwrap(),
            revision: Revision(seq),
            at: Timestamp::from_millis(0),
            body: format!("{{\"rule\":\"x/{seq}\",\"pad\":\"{}\"}}", "p".repeat(body)),
        };
        numbers.map(decision).collect()
    }

    fn said(pieces: &[Arc<Piece>], run: Option<&RunId>, after: u64) -> String {
        let texts = pieces.iter().map(|piece| piece.after(run, after).to_vec());
        String::from_utf8(texts.flatten().collect()).unwrap()
    }

    #[test]
    fn every_beginning_gets_what_follows_it() {
        let all = decisions((10..400).step_by(2), 700);
        let mut recent = Recent::default();
        recent.begin(8);
        pieces(&all).into_iter().for_each(|piece| recent.push(piece));
        assert!(recent.pieces.len() > 2, "one piece proves little");
        assert_eq!(recent.newest(), 398);
        assert!(recent.after(7).is_none(), "what was before is only in the store");
        for run in [None, Some(RunId::new("odd").unwrap())] {
            for after in 8..=400 {
                let wanted = all.iter().filter(|decision| decision.seq > after);
                let wanted = wanted.filter(|it| run.as_ref().is_none_or(|run| it.run == *run));
                let wanted: String = wanted.map(message).collect();
                let found = said(&recent.after(after).unwrap(), run.as_ref(), after);
                assert!(found == wanted, "{run:?} after {after}");
            }
        }
    }

    #[test]
    fn the_oldest_is_forgotten_in_time() {
        let mut recent = Recent::default();
        for first in (0..100).map(|round| round * 10 + 1) {
            let page = decisions(first..first + 10, 20_000);
            pieces(&page).into_iter().for_each(|piece| recent.push(piece));
        }
        assert!(recent.size <= KEPT_MAX && recent.size > KEPT_MAX / 2, "{}", recent.size);
        assert!(recent.after(recent.since - 1).is_none());
        let kept = recent.after(recent.since).unwrap();
        let wanted: String =
            decisions(recent.since + 1..1_001, 20_000).iter().map(message).collect();
        assert!(said(&kept, None, recent.since) == wanted);
    }
}
