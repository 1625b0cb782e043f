//! The search with sixty-four bytes in one vector, and a table for each byte as it is.
#![expect(unsafe_code, reason = "vector instructions, which safe code cannot choose at run time")]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_movepi8_mask,
    _mm512_or_si512, _mm512_permutex2var_epi8, _mm512_permutexvar_epi8, _mm512_set1_epi8,
    _mm512_test_epi8_mask,
};

use super::avx2::{AHEAD, ask_for};
use super::{STEP, Seen, Vectors, WINDOW};

pub(super) fn is_supported() -> bool {
    std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512vbmi")
        && std::arch::is_x86_feature_detected!("popcnt")
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
    // SAFETY: only called where the processor has the instructions.
    unsafe { search::<SEEN>(vectors, text, from, to, seen) }
}

#[inline(never)]
#[target_feature(enable = "avx512bw,avx512vbmi,popcnt")]
fn search<const SEEN: bool>(
    vectors: &Vectors,
    text: &[u8],
    from: usize,
    to: usize,
    seen: &mut Seen,
) -> (usize, u64) {
    let tables = Tables::new(vectors);
    let (mut start, mut places, mut newlines, mut escapes) = (from, 0, 0, 0);
    while start + STEP <= to
        && let Some(window) = text.get(start..).and_then(<[u8]>::first_chunk::<WINDOW>)
    {
        ask_for(text, start + AHEAD);
        let first = vector(window, 0);
        if SEEN {
            newlines += _mm512_cmpeq_epi8_mask(first, _mm512_set1_epi8(0x0A)).count_ones();
            escapes |= _mm512_cmpeq_epi8_mask(first, _mm512_set1_epi8(0x1B));
        }
        let mut behind = tables.behind(vector(window, 1), vector(window, 2));
        // Where whole texts are read, memory is too slow for a fourth byte to be of use.
        if !SEEN && let Some(fourth) = text.get(start + 3..).and_then(<[u8]>::first_chunk::<STEP>) {
            behind = _mm512_and_si512(behind, tables.fourth(vector(fourth, 0)));
        }
        places = tables.places(first, behind);
        if places != 0 {
            break;
        }
        start += STEP;
    }
    if SEEN {
        *seen += Seen { newlines: u64::from(newlines), escape: escapes != 0 };
    }
    (start, places)
}

/// The buckets that a byte may belong to: for the first exactly, for the others by its last six bits.
#[derive(Clone, Copy)]
struct Tables {
    first: [__m512i; 2],
    second: __m512i,
    third: __m512i,
    fourth: __m512i,
}

impl Tables {
    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn new(vectors: &Vectors) -> Self {
        let [first, second, third, fourth] = &vectors.tables;
        let [left, right] = [0, 64].map(|from| vector(first, from));
        let folded = |table: &[u8; 256], from: usize| {
            _mm512_or_si512(vector(table, from), vector(table, from + 64))
        };
        Self {
            first: [left, right],
            second: folded(second, 0),
            third: folded(third, 0),
            fourth: _mm512_or_si512(folded(fourth, 0), folded(fourth, 128)),
        }
    }

    /// Returns the buckets that the second and the third byte may belong to.
    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn behind(self, second: __m512i, third: __m512i) -> __m512i {
        _mm512_and_si512(
            _mm512_permutexvar_epi8(second, self.second),
            _mm512_permutexvar_epi8(third, self.third),
        )
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn fourth(self, fourth: __m512i) -> __m512i {
        _mm512_permutexvar_epi8(fourth, self.fourth)
    }

    /// Returns where the first byte and those behind it may belong to the same bucket, as bits.
    #[target_feature(enable = "avx512bw,avx512vbmi")]
    fn places(self, first: __m512i, behind: __m512i) -> u64 {
        let [left, right] = self.first;
        let of_first = _mm512_permutex2var_epi8(left, first, right);
        _mm512_test_epi8_mask(behind, of_first) & !_mm512_movepi8_mask(first)
    }
}

/// Returns sixty-four bytes.
#[target_feature(enable = "avx512bw")]
fn vector<const LENGTH: usize>(bytes: &[u8; LENGTH], from: usize) -> __m512i {
    match bytes[from..].first_chunk::<64>() {
        // SAFETY: the sixty-four bytes are there.
        Some(bytes) => unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) },
        None => _mm512_set1_epi8(0),
    }
}
