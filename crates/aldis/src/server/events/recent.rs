//! The latest decisions in the words of the stream, shared by everybody who follows.

use std::collections::VecDeque;
use std::sync::Arc;

use aldis_store::{Cursor, Decision, RunId};
use axum::body::Bytes;

use super::words;

/// From this size on a piece is full: with one more decision, it is usually sent as one slice.
const PIECE: usize = 48 << 10;

/// Decisions that follow each other, in words.
#[derive(Debug)]
pub(super) struct Piece {
    text: Bytes,
    /// Each with its position, its run, and where its words end. Never empty.
    told: Vec<(Position, RunId, usize)>,
}

/// Where a decision stands: in the order in which the bus read it, and in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) read: u64,
    pub(super) cursor: Cursor,
}

impl Piece {
    /// The position of its last decision.
    pub(super) fn last(&self) -> Position {
        let start = Position { read: 0, cursor: Cursor::START };
        self.told.last().map_or(start, |(position, ..)| *position)
    }

    /// The runs of its decisions, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = &RunId> {
        self.told.iter().map(|(_, run, _)| run)
    }

    /// What it says of the decisions that were read after number `after`, without those in `sent`.
    pub(super) fn after(&self, after: u64, sent: &[Cursor]) -> Bytes {
        let new = self.told.partition_point(|(position, ..)| position.read <= after);
        let known = |at: &usize| sent.contains(&self.told[*at].0.cursor);
        if sent.is_empty() || !(new..self.told.len()).any(|at| known(&at)) {
            return self.text.slice(self.beginning(new)..);
        }
        let fresh = (new..self.told.len()).filter(|at| !known(at));
        fresh.flat_map(|at| self.text.slice(self.beginning(at)..self.told[at].2)).collect()
    }

    /// Where a client stands that has taken so many bytes of what [`after`](Self::after) returns: the last
    /// decision that it has whole, and how much of the next one.
    pub(super) fn cut(
        &self,
        after: u64,
        sent: &[Cursor],
        mut taken: usize,
    ) -> (Option<Cursor>, Option<(Cursor, usize)>) {
        let mut last = None;
        for (place, (position, _, end)) in self.told.iter().enumerate() {
            if position.read <= after || sent.contains(&position.cursor) {
                continue;
            }
            let length = end - self.beginning(place);
            if taken < length {
                return (last, (taken > 0).then_some((position.cursor, taken)));
            }
            taken -= length;
            last = Some(position.cursor);
        }
        (last, None)
    }

    /// What it says of this run: a copy, which keeps none of the rest in memory.
    pub(super) fn only(&self, run: &RunId) -> Self {
        let (mut text, mut told) = (Vec::new(), Vec::new());
        for (place, (position, of, end)) in self.told.iter().enumerate() {
            if of == run {
                text.extend_from_slice(&self.text.slice(self.beginning(place)..*end));
                told.push((*position, of.clone(), text.len()));
            }
        }
        Self { text: text.into(), told }
    }

    /// Where the words of a decision begin.
    fn beginning(&self, place: usize) -> usize {
        let before = place.checked_sub(1).and_then(|before| self.told.get(before));
        before.map_or(0, |(.., end)| *end)
    }
}

/// Puts decisions into words, in pieces. Each comes with the number under which the bus read it.
pub(super) fn pieces(decisions: impl IntoIterator<Item = (u64, Decision)>) -> Vec<Arc<Piece>> {
    let mut pieces = Vec::new();
    let (mut text, mut told) = (Vec::new(), Vec::new());
    for (read, decision) in decisions {
        words::append(&mut text, &decision);
        told.push((Position { read, cursor: decision.cursor }, decision.run, text.len()));
        if text.len() >= PIECE {
            pieces.push(piece(&mut text, &mut told));
        }
    }
    if !told.is_empty() {
        pieces.push(piece(&mut text, &mut told));
    }
    pieces
}

fn piece(text: &mut Vec<u8>, told: &mut Vec<(Position, RunId, usize)>) -> Arc<Piece> {
    Arc::new(Piece { text: std::mem::take(text).into(), told: std::mem::take(told) })
}

/// The latest pieces, in order and without a gap.
#[derive(Debug)]
pub(super) struct Recent {
    pieces: VecDeque<Arc<Piece>>,
    size: usize,
    /// Everything that was read after this number is in the pieces.
    since: u64,
}

impl Recent {
    /// Begins behind this number.
    pub(super) fn behind(newest: u64) -> Self {
        Self { pieces: VecDeque::new(), size: 0, since: newest }
    }

    /// Adds what comes next, and forgets the oldest beyond `kept_max` bytes.
    pub(super) fn push(&mut self, piece: Arc<Piece>, kept_max: usize) {
        self.size += piece.text.len();
        self.pieces.push_back(piece);
        while self.size > kept_max
            && let Some(oldest) = self.pieces.pop_front()
        {
            self.size -= oldest.text.len();
            self.since = oldest.last().read;
        }
    }

    /// Returns what there is after this number; nothing if some of it is only in the store.
    pub(super) fn after(&self, after: u64) -> Option<Vec<Arc<Piece>>> {
        if after < self.since {
            return None;
        }
        let new = self.pieces.partition_point(|piece| piece.last().read <= after);
        Some(self.pieces.iter().skip(new).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    //! What is kept says the same as the store, from every number on.

    use aldis_signal::time::Timestamp;
    use aldis_store::Revision;

    use super::*;

    const KEPT_MAX: usize = 1 << 20;

    fn decisions(numbers: impl Iterator<Item = u64>, body: usize) -> Vec<(u64, Decision)> {
        let decision = |read: u64| Decision {
            cursor: (read * 7).to_string().parse().unwrap(),
            run: RunId::new(if read.is_multiple_of(3) { "odd" } else { "even" }).unwrap(),
            revision: Revision(read),
            at: Timestamp::from_millis(0),
            body: format!("{{\"rule\":\"x/{read}\",\"pad\":\"{}\"}}", "p".repeat(body)),
        };
        numbers.map(|read| (read, decision(read))).collect()
    }

    fn wanted<'d>(decisions: impl Iterator<Item = &'d (u64, Decision)>) -> Vec<u8> {
        let mut text = Vec::new();
        decisions.for_each(|(_, decision)| words::append(&mut text, decision));
        text
    }

    fn said(pieces: &[Arc<Piece>], after: u64) -> Vec<u8> {
        pieces.iter().flat_map(|piece| piece.after(after, &[])).collect()
    }

    #[test]
    fn every_beginning_gets_what_follows_it() {
        let all = decisions((10..400).step_by(2), 700);
        let odd = RunId::new("odd").unwrap();
        for run in [None, Some(&odd)] {
            let mut recent = Recent::behind(8);
            for piece in pieces(all.clone()) {
                let piece = run.map_or_else(|| piece.clone(), |run| Arc::new(piece.only(run)));
                recent.push(piece, KEPT_MAX);
            }
            assert!(recent.pieces.len() > 2, "one piece proves little");
            assert!(recent.after(7).is_none(), "what was before is only in the store");
            for after in 8..=400 {
                let new = all.iter().filter(|(read, _)| *read > after);
                let wanted = wanted(new.filter(|(_, it)| run.is_none_or(|run| it.run == *run)));
                let found = said(&recent.after(after).unwrap(), after);
                assert!(found == wanted, "{run:?} after {after}");
            }
        }
    }

    #[test]
    fn what_was_sent_before_is_left_out() {
        let all = decisions(1..40, 10);
        let sent: Vec<Cursor> = all[9..14].iter().map(|(_, decision)| decision.cursor).collect();
        let fresh = all[5..9].iter().chain(&all[14..]);
        let pieces = pieces(all.clone());
        let found: Vec<u8> = pieces.iter().flat_map(|piece| piece.after(5, &sent)).collect();
        assert!(found == wanted(fresh));
    }

    #[test]
    fn wherever_it_is_cut_the_rest_is_known() {
        let all = decisions(1..30, 10);
        let sent: Vec<Cursor> = all[9..14].iter().map(|(_, decision)| decision.cursor).collect();
        let piece = &pieces(all.clone())[0];
        let text = piece.after(5, &sent);
        let fresh: Vec<&(u64, Decision)> = all[5..9].iter().chain(&all[14..]).collect();
        for taken in 0..text.len() {
            let (last, partial) = piece.cut(5, &sent, taken);
            let next = last.map_or(0, |last| {
                1 + fresh.iter().position(|(_, decision)| decision.cursor == last).unwrap()
            });
            let before = wanted(fresh[..next].iter().copied()).len();
            let cut = partial.map_or(0, |(cursor, bytes)| {
                assert_eq!(cursor, fresh[next].1.cursor);
                bytes
            });
            assert_eq!(before + cut, taken);
        }
    }

    #[test]
    fn the_oldest_is_forgotten_in_time() {
        let mut recent = Recent::behind(0);
        for first in (0..20).map(|round| round * 10 + 1) {
            let page = decisions(first..first + 10, 20_000);
            pieces(page).into_iter().for_each(|piece| recent.push(piece, KEPT_MAX));
        }
        assert!(recent.size <= KEPT_MAX && recent.size > KEPT_MAX / 2, "{}", recent.size);
        assert!(recent.after(recent.since - 1).is_none());
        let kept = recent.after(recent.since).unwrap();
        let all = decisions(recent.since + 1..201, 20_000);
        assert!(said(&kept, recent.since) == wanted(all.iter()));
    }
}
