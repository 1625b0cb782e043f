//! The instructions themselves. The only unsafe code of the project: the compiler cannot know that
//! the processor has them, and asking for memory ahead takes an address.
#![expect(unsafe_code, reason = "vector instructions, which safe code cannot choose at run time")]

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm256_testz_si256,
};

use super::{BLOCK, Halves, Vectors, WIDTH, count_newlines, count_plain_blocks};

/// How many places are looked at in one step.
const STEP: usize = 64;
/// How many bytes that takes.
const WINDOW: usize = STEP + WIDTH - 1;
/// How far ahead memory is asked for: into the next page, where the processor does not look by
/// itself.
const AHEAD: usize = 6 * 1024;

pub(super) fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

/// Counts line ends, if the processor can.
pub(super) fn newlines(text: &[u8]) -> Option<u64> {
    // SAFETY: the processor has the instructions.
    is_supported().then(|| unsafe { newlines_wide(text) })
}

/// The same code as elsewhere, compiled for wider vectors.
#[target_feature(enable = "avx2")]
fn newlines_wide(text: &[u8]) -> u64 {
    count_newlines(text)
}

/// Counts the blocks before the first that holds anything but plain text, if the processor can.
pub(super) fn plain_blocks(blocks: &[[u8; BLOCK]]) -> Option<usize> {
    // SAFETY: the processor has the instructions.
    is_supported().then(|| unsafe { plain_blocks_wide(blocks) })
}

/// The same code as elsewhere, compiled for wider vectors.
#[target_feature(enable = "avx2")]
fn plain_blocks_wide(blocks: &[[u8; BLOCK]]) -> usize {
    count_plain_blocks(blocks)
}

/// Tells of the literals that start in `from..to`; returns where it stopped, for lack of text.
pub(super) fn sweep(
    vectors: &Vectors,
    text: &[u8],
    from: usize,
    to: usize,
    found: &mut impl FnMut(usize, usize) -> usize,
) -> usize {
    // SAFETY: `Vectors` are made only where the processor has the instructions.
    unsafe { sweep_steps(vectors, text, from, to, found) }
}

#[target_feature(enable = "avx2")]
fn sweep_steps(
    vectors: &Vectors,
    text: &[u8],
    from: usize,
    to: usize,
    found: &mut impl FnMut(usize, usize) -> usize,
) -> usize {
    let mut at = from;
    while let Some((step, mut places)) = next_places(vectors, text, at, to) {
        at = step + STEP;
        while places != 0 {
            let start = step + places.trailing_zeros() as usize;
            places &= places - 1;
            if start >= to {
                return start;
            }
            if let Some(number) = vectors.at(text, start) {
                let resume = found(number, start);
                at = at.max(resume);
                // What starts before is passed over.
                let passed = u32::try_from(resume - step).unwrap_or(u32::MAX);
                places &= u64::MAX.checked_shl(passed).unwrap_or(0);
            }
        }
    }
    // Only a text that is shorter than one step is left.
    if text.len() < WINDOW { at } else { to }
}

/// Returns the next step that holds a place worth a closer look, and its places as bits. By itself,
/// so that the tables stay in registers.
#[inline(never)]
#[target_feature(enable = "avx2")]
fn next_places(vectors: &Vectors, text: &[u8], from: usize, to: usize) -> Option<(usize, u64)> {
    let tables = vectors.halves.map(|halves| Tables::new(&halves));
    let mut at = from;
    while at < to
        && let Some(window) = text.get(at..).and_then(<[u8]>::first_chunk)
    {
        ask_for(text, at + AHEAD);
        let places = places(&tables, window);
        if places != 0 {
            return Some((at, places));
        }
        at += STEP;
    }
    // The last step ends with the text, and what it shares with the one before has been looked at.
    let last = text.last_chunk().filter(|_| at < to)?;
    let step = text.len() - WINDOW;
    let done = u32::try_from(at - step).unwrap_or(u32::MAX);
    let places = places(&tables, last) & u64::MAX.checked_shl(done).unwrap_or(0);
    (places != 0).then_some((step, places))
}

/// The tables of one byte of the literals, once for each half of a vector.
#[derive(Clone, Copy)]
struct Tables {
    left: __m256i,
    right: __m256i,
}

impl Tables {
    #[target_feature(enable = "avx2")]
    fn new(halves: &Halves) -> Self {
        Self { left: twice(&halves.left), right: twice(&halves.right) }
    }

    /// Returns the buckets that each byte may belong to: none, if it is not ASCII. Of the others the
    /// lookup sees the right half by itself.
    #[target_feature(enable = "avx2")]
    fn buckets(self, bytes: __m256i) -> __m256i {
        let left = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), _mm256_set1_epi8(15));
        _mm256_and_si256(
            _mm256_shuffle_epi8(self.left, left),
            _mm256_shuffle_epi8(self.right, bytes),
        )
    }
}

/// Returns the places of a window where the first bytes may be those of a literal, as bits.
#[target_feature(enable = "avx2")]
fn places(tables: &[Tables; WIDTH], window: &[u8; WINDOW]) -> u64 {
    let low = buckets(tables, window, 0);
    let high = buckets(tables, window, STEP / 2);
    let any = _mm256_or_si256(low, high);
    if _mm256_testz_si256(any, any) == 1 {
        return 0;
    }
    let none = _mm256_setzero_si256();
    let bits = |buckets| !_mm256_movemask_epi8(_mm256_cmpeq_epi8(buckets, none)) as u32;
    u64::from(bits(low)) | u64::from(bits(high)) << 32
}

#[target_feature(enable = "avx2")]
fn buckets(tables: &[Tables; WIDTH], window: &[u8; WINDOW], from: usize) -> __m256i {
    let [first, second, third] = tables;
    let at = |place: usize| match window[from + place..].first_chunk::<32>() {
        // SAFETY: the thirty-two bytes are there.
        Some(bytes) => unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) },
        None => _mm256_setzero_si256(),
    };
    let both = _mm256_and_si256(first.buckets(at(0)), second.buckets(at(1)));
    _mm256_and_si256(both, third.buckets(at(2)))
}

#[target_feature(enable = "avx2")]
fn twice(table: &[u8; 16]) -> __m256i {
    // SAFETY: the sixteen bytes are there.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
}

/// Asks for memory that will be read soon.
fn ask_for(text: &[u8], at: usize) {
    // SAFETY: nothing is read; an address that is not ours is ignored.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(text.as_ptr().wrapping_add(at).cast()) };
}
