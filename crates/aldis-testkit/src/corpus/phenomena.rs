//! The phenomena, grouped by what makes the false twin false.
//!
//! A builder gets the dialect and which twin is wanted. The genuine twin keeps the words that make
//! the other one false, where they do no harm: a fence that is closed before the signal, a quote
//! that has ended, the same control character in the prose.

mod bytes;
mod context;
mod grammar;
mod json;
mod names;
mod nesting;
mod speech;
mod variety;

use super::Phenomenon;

/// Every group, in the order of reports.
pub(super) fn all() -> Vec<Phenomenon> {
    let groups = [
        bytes::PHENOMENA,
        context::PHENOMENA,
        nesting::PHENOMENA,
        names::PHENOMENA,
        grammar::PHENOMENA,
        json::PHENOMENA,
        variety::PHENOMENA,
        speech::PHENOMENA,
    ];
    groups.concat()
}

/// A phenomenon with both twins in the same dialects.
const fn structure(
    name: &'static str,
    dialects: &'static [&'static str],
    build: fn(&mut super::Rng, &'static str, bool) -> super::SampleDraft,
) -> Phenomenon {
    twins(name, dialects, dialects, build)
}

/// A phenomenon with twins in different dialects.
const fn twins(
    name: &'static str,
    genuine_in: &'static [&'static str],
    false_in: &'static [&'static str],
    build: fn(&mut super::Rng, &'static str, bool) -> super::SampleDraft,
) -> Phenomenon {
    Phenomenon { name, genuine_in, false_in, build }
}
