//! The search with sixty-four bytes in one vector, and one table for each byte of a literal.
#![expect(unsafe_code, reason = "vector instructions, which safe code cannot choose at run time")]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512,
    _mm512_min_epu8, _mm512_permutexvar_epi8, _mm512_set1_epi8, _mm512_srli_epi16, _mm512_sub_epi8,
    _mm512_test_epi8_mask, _mm512_testn_epi8_mask, _mm512_xor_si512,
};

use super::avx2::ask_for;
use super::keys::{MARKS, blocks};
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
    let tables = vectors.folded.each_ref().map(|table| vector(table, 0));
    // The least that differs from an escape character, at each of sixty-four places.
    let mut unlike_escape = _mm512_set1_epi8(-1);
    let (mut start, mut places, mut newlines) = (from, 0, 0);
    while start + STEP <= to
        && let Some(window) = text.get(start..).and_then(<[u8]>::first_chunk::<WINDOW>)
    {
        vectors.ahead.inspect(|ahead| ask_for(text, start + ahead));
        let first = vector(window, 0);
        if SEEN {
            newlines += _mm512_cmpeq_epi8_mask(first, _mm512_set1_epi8(0x0A)).count_ones();
            let unlike = _mm512_xor_si512(first, _mm512_set1_epi8(0x1B));
            unlike_escape = _mm512_min_epu8(unlike_escape, unlike);
        }
        let mut behind = _mm512_and_si512(
            buckets(tables[1], vector(window, 1)),
            buckets(tables[2], vector(window, 2)),
        );
        // Where whole texts are read, memory is too slow for a fourth byte to be of use.
        if !SEEN && let Some(fourth) = text.get(start + 3..).and_then(<[u8]>::first_chunk::<STEP>) {
            behind = _mm512_and_si512(behind, buckets(tables[3], vector(fourth, 0)));
        }
        let of_first = buckets(tables[0], _mm512_srli_epi16::<1>(first));
        places = _mm512_test_epi8_mask(behind, of_first);
        if places != 0 {
            break;
        }
        start += STEP;
    }
    if SEEN {
        let escape = _mm512_testn_epi8_mask(unlike_escape, unlike_escape) != 0;
        *seen += Seen { newlines: u64::from(newlines), escape };
    }
    (start, places)
}

pub(super) fn find_key_line(text: &[u8], marks: [u8; MARKS]) -> Option<usize> {
    // SAFETY: only called where the processor has the instructions.
    unsafe { find_key_line_wide(text, marks) }
}

#[target_feature(enable = "avx512bw")]
fn find_key_line_wide(text: &[u8], marks: [u8; MARKS]) -> Option<usize> {
    blocks::find_with(text, |window| {
        let (bytes, next) = (vector(window, 0), vector(window, 1));
        let equal =
            |bytes, byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte.cast_signed()));
        let letters = _mm512_sub_epi8(next, _mm512_set1_epi8(0x41));
        blocks::Bits {
            ends: equal(bytes, b'\n'),
            colons: equal(bytes, b':'),
            capitals: _mm512_cmplt_epu8_mask(letters, _mm512_set1_epi8(26)),
            marks: marks.iter().fold(0, |marked, mark| marked | equal(next, *mark)),
        }
    })
}

/// Returns the buckets that each byte may belong to, by its last six bits.
#[target_feature(enable = "avx512bw,avx512vbmi")]
fn buckets(table: __m512i, bytes: __m512i) -> __m512i {
    _mm512_permutexvar_epi8(bytes, table)
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
