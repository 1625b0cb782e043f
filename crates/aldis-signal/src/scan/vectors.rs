//! What is done with every single byte: the search for literals, counting lines, and the search for
//! keys (`keys`).
//!
//! On processors with AVX2 the search takes sixty-four bytes at a time. Every literal belongs to one
//! of eight buckets. For each of its first three bytes two tables say which buckets have a byte with
//! such a left half and such a right half there. Six lookups for thirty-two places at once leave few
//! places, and only those are compared (`needles`). With AVX-512 three lookups of six bits each do for sixty-four.
//!
//! Searchers of that kind exist. Two things make this one worth its own lines: it asks for memory
//! well ahead, without which many processors spend a third of the time waiting, and it tells all
//! places of a stretch in one go, so that a text full of them costs little more than one without.

use std::ops::AddAssign;

pub(crate) use self::keys::find_key_line;
use self::needles::Needles;
use super::prefilter::{Hit, Literal};

/// How many bytes of a literal are compared at first.
const WIDTH: usize = 3;
/// How many are compared where that is worth it.
const NARROWED: usize = WIDTH + 1;
pub(crate) const BUCKETS: usize = 8;
/// How many places are looked at in one step.
pub(crate) const STEP: usize = 64;
/// How many bytes that takes.
const WINDOW: usize = STEP + WIDTH - 1;

/// Literals, arranged for the search.
#[derive(Clone, Debug)]
pub(crate) struct Vectors {
    /// The buckets that a byte may belong to, for each of the first bytes of a literal, by six bits of
    /// it: of the first one without its last bit, so that a blank is no back-quote; of the others the
    /// last six.
    folded: [[u8; 64]; NARROWED],
    halves: [Halves; WIDTH],
    needles: Needles,
    /// Whether the processor has the widest vectors.
    wide: bool,
    /// How far ahead memory is asked for.
    ahead: Option<usize>,
}

/// The buckets that a byte may belong to, by its left and by its right half.
#[derive(Clone, Copy, Debug, Default)]
struct Halves {
    left: [u8; 16],
    right: [u8; 16],
}

/// Some places that are looked at together.
struct Step {
    start: usize,
    /// Those that are worth a closer look, as bits.
    places: u64,
    /// Where the next step starts.
    next: usize,
}

/// How far a sweep got, and what it has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    pub(crate) to: usize,
    pub(crate) seen: Seen,
}

/// What was seen of a text beside literals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// How many line ends.
    pub(crate) newlines: u64,
    /// Whether an escape character.
    pub(crate) escape: bool,
}

/// How many line ends a text holds before `to`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted<Offset = usize> {
    pub(crate) to: Offset,
    pub(crate) newlines: u64,
}

impl Seen {
    pub(crate) fn of(text: &[u8]) -> Self {
        Self { newlines: newlines(text), escape: memchr::memchr(0x1B, text).is_some() }
    }
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.newlines += other.newlines;
        self.escape |= other.escape;
    }
}

impl Vectors {
    /// Arranges literals, whose numbers tell their buckets. `None` if the processor cannot search so,
    /// or one is too short or does not start with ASCII.
    pub(crate) fn new(literals: &[Literal]) -> Option<Self> {
        let suits = |literal: &Literal| {
            literal.text.first_chunk::<WIDTH>().is_some_and(|start| start.is_ascii())
        };
        if !is_supported() || !literals.iter().all(suits) {
            return None;
        }
        let mut vectors = Self {
            folded: [[0; 64]; NARROWED],
            halves: Default::default(),
            needles: Needles::new(literals),
            wide: avx512::is_supported(),
            ahead: avx2::ahead(),
        };
        for (number, literal) in literals.iter().enumerate() {
            let bucket = 1 << (number % BUCKETS);
            for (position, table) in vectors.folded.iter_mut().enumerate() {
                match literal.text.get(position) {
                    Some(byte) => table[six_bits(*byte, position)] |= bucket,
                    // Behind a shorter one anything may stand.
                    None => table.iter_mut().for_each(|buckets| *buckets |= bucket),
                }
            }
            for (halves, byte) in vectors.halves.iter_mut().zip(&literal.text) {
                halves.left[usize::from(byte >> 4)] |= bucket;
                halves.right[usize::from(byte & 15)] |= bucket;
            }
        }
        Some(vectors)
    }

    /// Tells of every literal that starts in `from..to`, and how many lines have been counted. `found`
    /// says from where on the next one counts. With `enough` of them, and those of one more step, it ends
    /// before `to`. Returns what else was seen if that is wanted: looking at bytes that have to be read
    /// anyway costs little.
    pub(crate) fn sweep_and_see<const SEEN: bool>(
        &self,
        text: &[u8],
        (from, to): (usize, usize),
        enough: usize,
        mut found: impl FnMut(Hit, Counted) -> usize,
    ) -> Swept {
        let mut seen = Seen::default();
        // What starts before `resume` is passed over.
        let (mut at, mut resume, mut told) = (from, from, 0);
        while at < to && resume < to {
            if told >= enough {
                return Swept { to: at, seen };
            }
            let step = self.next_step::<SEEN>(text, at, to, &mut seen);
            at = step.next;
            let mut places = step.places;
            while places != 0 {
                let start = step.start + places.trailing_zeros() as usize;
                places &= places - 1;
                if start >= resume
                    && let Some(hit) = self.needles.hit_at(text, start)
                {
                    resume = found(hit, Counted { to: at, newlines: seen.newlines });
                    told += 1;
                }
            }
        }
        if SEEN && at < to {
            seen += Seen::of(&text[at..to]);
        }
        Swept { to, seen }
    }

    /// Returns the next places that are worth a closer look, or the end.
    fn next_step<const SEEN: bool>(
        &self,
        text: &[u8],
        from: usize,
        to: usize,
        seen: &mut Seen,
    ) -> Step {
        let search = if self.wide { avx512::next_step::<SEEN> } else { avx2::next_step::<SEEN> };
        let (start, places) = search(self, text, from, to, seen);
        if places != 0 {
            return Step { start, places, next: start + STEP };
        }
        if start == to {
            return Step { start, places, next: to };
        }
        if SEEN {
            *seen += Seen::of(&text[start..to]);
        }
        // What is left is less than a step, or the end of the text.
        let left = u64::MAX >> 64_u32.saturating_sub((to - start) as u32);
        let places = match text.len().checked_sub(WINDOW) {
            Some(last) => {
                let earlier = start.min(last);
                let (_, places) = search(self, text, earlier, earlier + STEP, &mut Seen::default());
                places.checked_shr((start - earlier) as u32).unwrap_or(0)
            }
            None => u64::MAX,
        };
        Step { start, places: places & left, next: to }
    }
}

/// Returns the bits by which a byte is looked up.
fn six_bits(byte: u8, position: usize) -> usize {
    usize::from(if position == 0 { byte >> 1 } else { byte } % 64)
}

/// Returns whether the processor suits the search.
pub(crate) fn is_supported() -> bool {
    avx2::is_supported()
}

/// Counts line ends.
pub(crate) fn newlines(text: &[u8]) -> u64 {
    avx2::newlines(text).unwrap_or_else(|| count_newlines(text))
}

/// Counts line ends in sixty-four sums of bytes, which the compiler turns into vectors.
#[inline(always)]
fn count_newlines(text: &[u8]) -> u64 {
    let (blocks, rest) = text.as_chunks::<64>();
    let mut count = rest.iter().filter(|byte| **byte == b'\n').count();
    // No sum overflows in 255 steps.
    for blocks in blocks.chunks(255) {
        let mut sums = [0_u8; 64];
        for block in blocks {
            sums.iter_mut().zip(block).for_each(|(sum, byte)| *sum += u8::from(*byte == b'\n'));
        }
        count += sums.iter().map(|sum| usize::from(*sum)).sum::<usize>();
    }
    count as u64
}

/// How many bytes are looked at together where nothing but plain text is expected.
pub(crate) const BLOCK: usize = 128;

/// Counts the blocks before the first that holds anything but plain text: visible characters of
/// ASCII, blanks, tabs and line ends.
pub(crate) fn plain_blocks(blocks: &[[u8; BLOCK]]) -> usize {
    avx2::plain_blocks(blocks).unwrap_or_else(|| count_plain_blocks(blocks))
}

/// Counts them without a way out of a block, which the compiler turns into vectors.
#[inline(always)]
fn count_plain_blocks(blocks: &[[u8; BLOCK]]) -> usize {
    let is_plain = |block: &&[u8; BLOCK]| block.iter().fold(true, |all, byte| all & plain(*byte));
    blocks.iter().take_while(is_plain).count()
}

#[inline(always)]
fn plain(byte: u8) -> bool {
    // As a signed number one more than a visible character is more than a blank; nothing else is.
    (byte.wrapping_add(1).cast_signed() > 0x20) | (byte == b'\n') | (byte == b'\t')
}

mod keys;
mod needles;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

#[cfg(not(target_arch = "x86_64"))]
use none as avx2;
#[cfg(not(target_arch = "x86_64"))]
use none as avx512;

#[cfg(not(target_arch = "x86_64"))]
mod none {
    //! Other processors do without.

    pub(super) fn is_supported() -> bool {
        false
    }

    pub(super) fn ahead() -> Option<usize> {
        None
    }

    pub(super) fn newlines(_: &[u8]) -> Option<u64> {
        None
    }

    pub(super) fn find_key_line(_: &[u8], _: [u8; super::keys::MARKS]) -> Option<usize> {
        None
    }

    pub(super) fn plain_blocks(_: &[[u8; super::BLOCK]]) -> Option<usize> {
        None
    }

    pub(super) fn next_step<const SEEN: bool>(
        _: &super::Vectors,
        _: &[u8],
        from: usize,
        _: usize,
        _: &mut super::Seen,
    ) -> (usize, u64) {
        (from, 0)
    }
}

#[cfg(test)]
mod tests;
