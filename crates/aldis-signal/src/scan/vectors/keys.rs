//! Lines that may be `Key: value`, among many that are not. Looking at one line after the other would
//! take longer than most lines are worth.

#[cfg(target_arch = "x86_64")]
pub(super) mod blocks;

use super::{avx2, avx512};

/// How many bytes there are that make a line be looked at.
pub(super) const MARKS: usize = 3;

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
