//! What checks are made of, whether it changed, and what they say: the world's side of
//! [`aldis_machine::proof`].
//!
//! `parts` finds the files that a command runs, `pins` hashes them and compares, `clean` makes a
//! checkout of a commit, `record` reads what a check prints, `counts` finds the number of tests in
//! it. `inspect` puts that together for whoever has a claim checked, `checks` runs checks for those
//! who have no coordinator.

pub(crate) mod checks;
pub(crate) mod clean;
mod counts;
mod environment;
pub(crate) mod inspect;
mod junit;
mod parts;
mod patterns;
pub(crate) mod pins;
pub(crate) mod record;
pub(crate) mod shell;

use sha2::{Digest as _, Sha256};

/// SHA-256 in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
