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
    "B1",
    "B10",
    "B11",
    "B12",
    "B13",
    "B2",
    "B3",
    "B4",
    "B5",
    "B6",
    "B7",
    "B8",
    "B9",
    "K2",
    "K3",
    "S1-1",
    "S1-5",
    "attack/D10",
    "attack/D11",
    "attack/D12a",
    "attack/D12b",
    "attack/D12c",
    "attack/D13",
    "attack/D14a",
    "attack/D14b",
    "attack/D15",
    "attack/D16",
    "attack/D17",
    "attack/D18",
    "attack/D19",
    "attack/D2",
    "attack/D20",
    "attack/D21a",
    "attack/D21b",
    "attack/D22",
    "attack/D23a",
    "attack/D23b",
    "attack/D24",
    "attack/D26",
    "attack/D27",
    "attack/D3a",
    "attack/D3b",
    "attack/D4a",
    "attack/D4b",
    "attack/D5",
    "attack/D6",
    "attack/D7",
    "attack/D8a",
    "attack/D8b",
    "attack/D8c",
    "attack/D8d",
    "attack/D9",
    "mission/B1",
    "mission/B10",
    "mission/B11",
    "mission/B12",
    "mission/B13",
    "mission/B15",
    "mission/B16",
    "mission/B17a",
    "mission/B17b",
    "mission/B17c",
    "mission/B17d",
    "mission/B17e",
    "mission/B17f",
    "mission/B2",
    "mission/B4",
    "mission/B5",
    "mission/B6",
    "mission/B7",
    "mission/B8",
    "mission/B9",
];

pub(crate) fn pin(number: &str, seen: Seen) {
    match (FIXED.contains(&number), seen) {
        (true, Seen::Wrong(what)) => panic!("{number} is back: {what}"),
        (false, Seen::Right) => panic!("{number} is fixed: add it to FIXED"),
        (true, Seen::Right) | (false, Seen::Wrong(_)) => {}
    }
}
