//! Defects of the shell: B1 to B13 of the review of the shell, S1-1 and S1-5 of the first use.
//!
//! Nothing here knows a Rust type of the shell. What is looked at is what people and programs see:
//! exit codes, JSON members, HTTP answers, processes, files, rows of the database, and for B12 and
//! B13 the source itself.

mod installation;
mod kinds;
mod runs;
mod server;
mod source;
mod terminal;

use std::time::Duration;

use super::{FIXED, Seen, pin};

/// How long something may take that must happen.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long to look for what a defect keeps from happening.
const GRACE: Duration = Duration::from_secs(4);

/// Returns how long to wait for what a defect keeps from happening: once it is fixed, as long as for
/// anything else.
fn patience(number: &str) -> Duration {
    if FIXED.contains(&number) { PATIENCE } else { GRACE }
}

/// Turns whatever is wrong into what was seen.
fn seen(wrong: impl IntoIterator<Item = String>) -> Seen {
    let wrong: Vec<String> = wrong.into_iter().collect();
    if wrong.is_empty() { Seen::Right } else { Seen::Wrong(wrong.join("; ")) }
}
