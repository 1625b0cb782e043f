//! Lines that may be `Key: value`, among many that are not. Looking at one line after the other would
//! take longer than most lines are worth.

use super::{STEP, avx2, avx512};

/// How many bytes there are that make a line be looked at.
pub(crate) const MARKS: usize = 3;

/// Sixty-four bytes of a text and the one behind them.
pub(super) type Window = [u8; STEP + 1];

/// What is known of such bytes, as bits.
pub(super) struct Bits {
    /// The line ends.
    pub(super) ends: u64,
    pub(super) colons: u64,
    /// What stands before a capital letter.
    pub(super) capitals: u64,
    /// What stands before a mark.
    pub(super) marks: u64,
}

/// Returns where the first line starts, behind any line end of a text, that has a capital letter in
/// front and a colon, or that starts with one of `marks`.
pub(crate) fn find_key_line(text: &[u8], marks: [u8; MARKS]) -> Option<usize> {
    if avx512::is_supported() {
        avx512::find_key_line(text, marks)
    } else if avx2::is_supported() {
        avx2::find_key_line(text, marks)
    } else {
        look_for_key_line(text, marks)
    }
}

/// Finds it with vectors. There is no branch for a line, of which most blocks have one or two: guessing
/// wrong takes longer.
#[inline(always)]
pub(super) fn find_with(text: &[u8], bits_of: impl Fn(&Window) -> Bits) -> Option<usize> {
    // Whether a line that began with a capital letter goes on, and has shown no colon yet.
    let mut goes_on = 0;
    let (mut from, mut padded) = (0, [b'\n'; STEP + 1]);
    while from < text.len() {
        let rest = &text[from..];
        let Bits { ends, colons, capitals, marks } =
            bits_of(rest.first_chunk().unwrap_or_else(|| {
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            }));
        // Added to the bits of everything else, the start of a line moves on to its colon or its end.
        let starts = ends & capitals;
        let (moved, carried) = (!(ends | colons)).overflowing_add(starts << 1 | goes_on);
        goes_on = u64::from(carried) | starts >> 63;
        let found = moved & colons | ends & marks;
        if found != 0 {
            let at = from + found.trailing_zeros() as usize;
            return memchr::memrchr(b'\n', &text[..=at]).map(|end| end + 1);
        }
        from += STEP;
    }
    None
}

/// Finds it without vectors.
pub(super) fn look_for_key_line(text: &[u8], marks: [u8; MARKS]) -> Option<usize> {
    let has_colon = |line: &[u8]| {
        let first = line.iter().find(|byte| matches!(byte, b':' | b'\n'));
        first == Some(&b':')
    };
    let mut starts = memchr::memchr_iter(b'\n', text).map(|end| end + 1);
    starts.find(|start| {
        let line = &text[*start..];
        line.first().is_some_and(|byte| {
            marks.contains(byte) || byte.is_ascii_uppercase() && has_colon(line)
        })
    })
}
