//! The instructions themselves. With `avx512` the only unsafe code of the project: the compiler
//! cannot know that the processor has them, and asking for memory ahead takes an address.
#![expect(unsafe_code, reason = "vector instructions, which safe code cannot choose at run time")]

use std::arch::x86_64::{
    __cpuid, __m256i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm256_and_si256,
    _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8,
    _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_sub_epi8, _mm256_testz_si256,
};
use std::sync::LazyLock;

use super::keys::{MARKS, blocks};
use super::{
    BLOCK, Halves, STEP, Seen, Vectors, WIDTH, WINDOW, count_newlines, count_plain_blocks,
};

/// Returns how far ahead memory is asked for: into the next page, where most processors do not look by
/// themselves. Those of AMD do, and asking takes them longer than waiting.
pub(super) fn ahead() -> Option<usize> {
    static IS_AMD: LazyLock<bool> = LazyLock::new(|| {
        let maker = __cpuid(0);
        [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes).concat() == b"AuthenticAMD"
    });
    (!*IS_AMD).then_some(6 * 1024)
}

pub(super) fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("popcnt")
}

/// Counts line ends, if the processor can.
pub(super) fn newlines(text: &[u8]) -> Option<u64> {
    // SAFETY: the processor has the instructions.
    is_supported().then(|| unsafe { newlines_wide(text) })
}

#[target_feature(enable = "avx2,popcnt")]
fn newlines_wide(text: &[u8]) -> u64 {
    let (halves, rest) = text.as_chunks::<{ STEP / 2 }>();
    let counted: u64 = halves.iter().map(|half| u64::from(count(vector(half, 0), b'\n'))).sum();
    // Most texts are short. What is left is looked at once more with what stands before it.
    match text.last_chunk::<{ STEP / 2 }>() {
        Some(last) if !rest.is_empty() => {
            let uncounted = equal(vector(last, 0), b'\n') >> (STEP / 2 - rest.len());
            counted + u64::from(uncounted.count_ones())
        }
        _ => counted + count_newlines(rest),
    }
}

pub(super) fn find_key_line(text: &[u8], marks: [u8; MARKS]) -> Option<usize> {
    // SAFETY: only called where the processor has the instructions.
    unsafe { find_key_line_wide(text, marks) }
}

#[target_feature(enable = "avx2")]
fn find_key_line_wide(text: &[u8], marks: [u8; MARKS]) -> Option<usize> {
    blocks::find_with(text, |window| blocks::Bits {
        ends: bits(window, 0, |bytes| equal(bytes, b'\n')),
        colons: bits(window, 0, |bytes| equal(bytes, b':')),
        capitals: bits(window, 1, |bytes| capital(bytes)),
        marks: bits(window, 1, |bytes| any_of(bytes, marks)),
    })
}

/// Returns sixty-four of the bytes of a window as bits.
#[target_feature(enable = "avx2")]
fn bits(window: &blocks::Window, from: usize, bits: impl Fn(__m256i) -> u32) -> u64 {
    let [low, high] = [from, from + STEP / 2].map(|from| u64::from(bits(vector(window, from))));
    low | high << 32
}

/// Returns which bytes are capital letters, as bits.
#[target_feature(enable = "avx2")]
fn capital(bytes: __m256i) -> u32 {
    let letters = _mm256_sub_epi8(bytes, _mm256_set1_epi8(0x41));
    let capital = _mm256_cmpeq_epi8(_mm256_min_epu8(letters, _mm256_set1_epi8(25)), letters);
    _mm256_movemask_epi8(capital).cast_unsigned()
}

/// Returns which bytes are one of `marks`, as bits.
#[target_feature(enable = "avx2")]
fn any_of(bytes: __m256i, marks: [u8; MARKS]) -> u32 {
    let [first, second, third] =
        marks.map(|mark| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(mark.cast_signed())));
    let any = _mm256_or_si256(_mm256_or_si256(first, second), third);
    _mm256_movemask_epi8(any).cast_unsigned()
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

/// Goes through the whole steps of `from..to`. Returns the first that holds a place worth a closer
/// look, and its places as bits; or where it stopped.
pub(super) fn next_step<const SEEN: bool>(
    vectors: &Vectors,
    text: &[u8],
    from: usize,
    to: usize,
    seen: &mut Seen,
) -> (usize, u64) {
    // SAFETY: `Vectors` are made only where the processor has the instructions.
    unsafe { search::<SEEN>(vectors, text, from, to, seen) }
}

/// By itself, so that the tables stay in registers.
#[inline(never)]
#[target_feature(enable = "avx2,popcnt")]
fn search<const SEEN: bool>(
    vectors: &Vectors,
    text: &[u8],
    from: usize,
    to: usize,
    seen: &mut Seen,
) -> (usize, u64) {
    let tables = vectors.halves.map(|halves| Tables::new(&halves));
    let mut escapes = _mm256_setzero_si256();
    let (mut start, mut places, mut newlines) = (from, 0, 0);
    while start + STEP <= to
        && let Some(window) = text.get(start..).and_then(<[u8]>::first_chunk)
    {
        vectors.ahead.inspect(|ahead| ask_for(text, start + ahead));
        if SEEN {
            let halves = [vector(window, 0), vector(window, STEP / 2)];
            newlines += halves.map(|half| count(half, b'\n')).iter().sum::<u32>();
            let found = halves.map(|half| _mm256_cmpeq_epi8(half, _mm256_set1_epi8(0x1B)));
            escapes = _mm256_or_si256(escapes, _mm256_or_si256(found[0], found[1]));
        }
        places = self::places(&tables, window);
        if places != 0 {
            break;
        }
        start += STEP;
    }
    if SEEN {
        let escape = _mm256_testz_si256(escapes, escapes) == 0;
        *seen += Seen { newlines: u64::from(newlines), escape };
    }
    (start, places)
}

#[target_feature(enable = "avx2,popcnt")]
fn count(bytes: __m256i, byte: u8) -> u32 {
    equal(bytes, byte).count_ones()
}

/// Returns which bytes are equal to `byte`, as bits.
#[target_feature(enable = "avx2")]
fn equal(bytes: __m256i, byte: u8) -> u32 {
    let equal = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()));
    _mm256_movemask_epi8(equal).cast_unsigned()
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
    let both = _mm256_and_si256(
        first.buckets(vector(window, from)),
        second.buckets(vector(window, from + 1)),
    );
    _mm256_and_si256(both, third.buckets(vector(window, from + 2)))
}

/// Returns half a step of a window.
#[target_feature(enable = "avx2")]
fn vector<const LENGTH: usize>(window: &[u8; LENGTH], from: usize) -> __m256i {
    match window[from..].first_chunk::<32>() {
        // SAFETY: the thirty-two bytes are there.
        Some(bytes) => unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) },
        None => _mm256_setzero_si256(),
    }
}

#[target_feature(enable = "avx2")]
fn twice(table: &[u8; 16]) -> __m256i {
    // SAFETY: the sixteen bytes are there.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(table.as_ptr().cast()) })
}

/// Asks for memory that will be read soon.
pub(super) fn ask_for(text: &[u8], at: usize) {
    // SAFETY: nothing is read; an address that is not ours is ignored.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(text.as_ptr().wrapping_add(at).cast()) };
}
