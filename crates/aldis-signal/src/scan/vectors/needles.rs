//! The literals themselves, found by their first three bytes.

use super::WIDTH;
use crate::scan::prefilter::{Hit, Literal};

const SLOTS: usize = 256;

/// Literals, ready to be compared with a place.
#[derive(Clone, Debug)]
pub(super) struct Needles {
    /// Where those of each slot start, and where those of the last end.
    starts: [u16; SLOTS + 1],
    /// By slot and number.
    needles: Vec<Needle>,
    /// The whole literals by their numbers.
    literals: Vec<Literal>,
}

#[derive(Clone, Copy, Debug)]
struct Needle {
    /// Its first eight bytes, and which of them it has.
    head: u64,
    mask: u64,
    /// What is found with it at the very start of a text.
    hit: Hit,
    number: usize,
}

impl Needle {
    fn new(number: usize, literal: &Literal) -> Self {
        let mask = u64::MAX >> (64 - 8 * literal.text.len().clamp(1, 8));
        Self { head: head_of(&literal.text), mask, hit: literal.hit(0), number }
    }
}

impl Needles {
    pub(super) fn new(literals: &[Literal]) -> Self {
        let numbered = literals.iter().enumerate();
        let mut needles: Vec<Needle> =
            numbered.map(|(number, literal)| Needle::new(number, literal)).collect();
        needles.sort_by_key(|needle| slot(needle.head));
        let start = |at: usize| needles.partition_point(|needle| slot(needle.head) < at) as u16;
        Self { starts: std::array::from_fn(start), needles, literals: literals.to_vec() }
    }

    /// Returns the first literal that a text has at `start`.
    #[inline]
    pub(super) fn hit_at(&self, text: &[u8], start: usize) -> Option<Hit> {
        let text = &text[start..];
        let head = head_of(text);
        let slot = slot(head);
        let range = usize::from(self.starts[slot])..usize::from(self.starts[slot + 1]);
        let starts = |needle: &&Needle| {
            head & needle.mask == needle.head
                && text.len() >= needle.hit.end
                && (needle.hit.end <= 8 || text.starts_with(&self.literals[needle.number].text))
        };
        self.needles[range].iter().find(starts).map(|needle| needle.hit.behind(start))
    }
}

/// Returns the first eight bytes as a number; those that are not there are 0.
fn head_of(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => text.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte)),
    }
}

/// Returns where literals are kept that start like `head`.
fn slot(head: u64) -> usize {
    let first = (head as u32) << (32 - 8 * WIDTH);
    (first.wrapping_mul(0x9E37_79B1) >> 24) as usize
}
