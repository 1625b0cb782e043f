//! Known defects, each pinned under its number in the review that found it.
//!
//! A row states the right behaviour. Until its number stands in `FIXED`, the test demands that the
//! right behaviour is NOT seen; the fix adds the number, and from then on it must be.

mod attack;
mod mission;
mod shell;

/// What a test saw.
pub(crate) enum Seen {
    Right,
    Wrong(String),
}

/// Numbers whose cause is gone.
const FIXED: &[&str] = &[
    "B4",
    "B5",
    "S1-1",
    "S1-5",
    "attack/D12a",
    "attack/D13",
    "attack/D19",
    "attack/D20",
    "attack/D21b",
    "attack/D22",
    "attack/D23a",
    "attack/D23b",
    "attack/D26",
    "attack/D27",
    "attack/D4a",
    "attack/D4b",
    "attack/D5",
    "mission/B15",
];

pub(crate) fn pin(number: &str, seen: Seen) {
    match (FIXED.contains(&number), seen) {
        (true, Seen::Wrong(what)) => panic!("{number} is back: {what}"),
        (false, Seen::Right) => panic!("{number} is fixed: add it to FIXED"),
        (true, Seen::Right) | (false, Seen::Wrong(_)) => {}
    }
}
