//! What is done with every single byte: the search for literals, and counting lines.
//!
//! On processors with AVX2 the search takes sixty-four bytes at a time. Every literal belongs to one
//! of eight buckets. For each of its first three bytes two tables say which buckets have a byte with
//! such a left half and such a right half there. Six lookups for thirty-two places at once leave few
//! places, and only those are compared.
//!
//! Searchers of that kind exist. Two things make this one worth its own lines: it asks for memory
//! well ahead, without which a third of the time goes into waiting, and it tells all places of a
//! stretch in one go, so that a text full of them costs little more than one without.

use super::prefilter::Literal;

/// How many bytes of a literal are compared at first.
const WIDTH: usize = 3;
pub(crate) const BUCKETS: usize = 8;

/// Literals, arranged for the search.
#[derive(Clone, Debug)]
pub(crate) struct Vectors {
    halves: [Halves; WIDTH],
    buckets: [Vec<Needle>; BUCKETS],
}

/// The buckets that a byte may belong to, by its left and by its right half.
#[derive(Clone, Copy, Debug, Default)]
struct Halves {
    left: [u8; 16],
    right: [u8; 16],
}

impl Halves {
    fn buckets(&self, byte: u8) -> u8 {
        self.left[usize::from(byte >> 4)] & self.right[usize::from(byte & 15)]
    }
}

/// One literal.
#[derive(Clone, Debug)]
struct Needle {
    number: usize,
    text: Vec<u8>,
    /// Its first eight bytes, and which of them it has.
    head: u64,
    mask: u64,
}

impl Needle {
    fn new(number: usize, text: &[u8]) -> Self {
        let mask = u64::MAX >> (64 - 8 * text.len().clamp(1, 8));
        Self { number, text: text.to_vec(), head: head_of(text), mask }
    }

    /// Returns whether `text`, whose first bytes are `head`, starts with it.
    fn starts(&self, text: &[u8], head: u64) -> bool {
        head & self.mask == self.head
            && text.len() >= self.text.len()
            && (self.text.len() <= 8 || text.starts_with(&self.text))
    }
}

/// Returns the first eight bytes as a number; those that are not there are 0.
fn head_of(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(head) => u64::from_le_bytes(*head),
        None => text.iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte)),
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
        let mut vectors = Self { halves: Default::default(), buckets: Default::default() };
        for (number, literal) in literals.iter().enumerate() {
            let known = |needle: &Needle| needle.text == literal.text;
            if vectors.buckets.iter().flatten().any(known) {
                continue;
            }
            let bucket = number % BUCKETS;
            for (halves, byte) in vectors.halves.iter_mut().zip(&literal.text) {
                halves.left[usize::from(byte >> 4)] |= 1 << bucket;
                halves.right[usize::from(byte & 15)] |= 1 << bucket;
            }
            vectors.buckets[bucket].push(Needle::new(number, &literal.text));
        }
        Some(vectors)
    }

    /// Tells of every literal that starts in `from..to` its number and where it starts. `found` says
    /// from where on the next one counts.
    pub(crate) fn sweep(
        &self,
        text: &[u8],
        from: usize,
        to: usize,
        mut found: impl FnMut(usize, usize) -> usize,
    ) {
        let at = avx2::sweep(self, text, from, to, &mut found);
        let mut resume = at;
        for start in at..to.min((text.len() + 1).saturating_sub(WIDTH)) {
            if start >= resume
                && let Some(number) = self.at(text, start)
            {
                resume = found(number, start);
            }
        }
    }

    /// Returns the number of the literal that starts at `start`.
    fn at(&self, text: &[u8], start: usize) -> Option<usize> {
        let text = &text[start..];
        let [first, second, third] = *text.first_chunk::<WIDTH>()?;
        let [of_first, of_second, of_third] = &self.halves;
        let mut buckets =
            of_first.buckets(first) & of_second.buckets(second) & of_third.buckets(third);
        if buckets == 0 {
            return None;
        }
        let head = head_of(text);
        let mut number = None;
        while buckets != 0 {
            let bucket = &self.buckets[buckets.trailing_zeros() as usize];
            if let Some(needle) = bucket.iter().find(|needle| needle.starts(text, head)) {
                let lowest = number.map_or(needle.number, |known: usize| known.min(needle.number));
                number = Some(lowest);
            }
            buckets &= buckets - 1;
        }
        number
    }
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

#[cfg(target_arch = "x86_64")]
mod avx2;

#[cfg(not(target_arch = "x86_64"))]
mod avx2 {
    //! Other processors do without.

    pub(super) fn is_supported() -> bool {
        false
    }

    pub(super) fn newlines(_: &[u8]) -> Option<u64> {
        None
    }

    pub(super) fn plain_blocks(_: &[[u8; super::BLOCK]]) -> Option<usize> {
        None
    }

    pub(super) fn sweep(
        _: &super::Vectors,
        _: &[u8],
        from: usize,
        _: usize,
        _: &mut impl FnMut(usize, usize) -> usize,
    ) -> usize {
        from
    }
}

#[cfg(test)]
mod tests;
