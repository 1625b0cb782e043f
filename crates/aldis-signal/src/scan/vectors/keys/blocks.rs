//! The search in blocks of sixty-four bytes. There is no branch for a line, of which most blocks have one
//! or two: guessing wrong takes longer.

use crate::scan::vectors::STEP;

/// Sixty-four bytes of a text and the one behind them.
pub(crate) type Window = [u8; STEP + 1];

/// What is known of such bytes, as bits.
pub(crate) struct Bits {
    /// The line ends.
    pub(crate) ends: u64,
    pub(crate) colons: u64,
    /// What stands before a capital letter.
    pub(crate) capitals: u64,
    /// What stands before a mark.
    pub(crate) marks: u64,
}

/// Returns where the first key line starts, given what is known of each block.
#[inline(always)]
pub(crate) fn find_with(text: &[u8], bits_of: impl Fn(&Window) -> Bits) -> Option<usize> {
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
