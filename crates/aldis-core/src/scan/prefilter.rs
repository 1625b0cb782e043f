//! Finds the few places of a text that are worth a closer look.
//!
//! One vectorised pass over short literals runs at the speed of memory; everything careful happens
//! only where it hits. The vectorised searcher takes at most 64 literals, so larger sets are split
//! into groups that each pass over a block while it is still in the cache.

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder};

/// What a hit may be the start of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    /// A run of fence characters.
    pub(crate) const FENCE: Self = Self(1);
    /// The start or end of an HTML comment.
    pub(crate) const COMMENT: Self = Self(2);
    /// Something that makes its whole line interesting.
    pub(crate) const LINE: Self = Self(4);
    /// An opening or closing tag.
    pub(crate) const TAG: Self = Self(8);
    /// A keyword that may end the message.
    pub(crate) const TRAILER: Self = Self(16);
    /// A word that may take a claim back.
    pub(crate) const RETRACTION: Self = Self(32);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A place worth a look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// Where it starts, relative to the text searched.
    pub(crate) start: usize,
    /// How long the literal is.
    pub(crate) length: usize,
    pub(crate) kinds: Kinds,
}

/// A set of literals with what each may be.
#[derive(Debug)]
pub(crate) struct Prefilter {
    groups: Vec<Group>,
    length_max: usize,
}

#[derive(Debug)]
struct Group {
    searcher: Engine,
    entries: Vec<(usize, Kinds)>,
}

#[derive(Debug)]
enum Engine {
    /// Vectorised.
    Packed(Searcher),
    /// For machines without the instructions.
    Automaton(AhoCorasick),
    Empty,
}

/// How much is searched before another group has its turn: small enough for the first-level cache.
const BLOCK: usize = 16 * 1024;
/// Fewer than the 64 that are possible: every literal more makes the search slower.
const GROUP_MAX: usize = 60;

impl Prefilter {
    /// Compiles literals. One that starts with another is covered by the shorter.
    pub(crate) fn new(mut literals: Vec<(Vec<u8>, Kinds)>) -> Self {
        literals.retain(|(literal, _)| !literal.is_empty());
        literals.sort();
        let mut kept: Vec<(Vec<u8>, Kinds)> = Vec::new();
        for (literal, kinds) in literals {
            match kept.last_mut() {
                Some((shorter, all)) if literal.starts_with(shorter) => *all = all.and(kinds),
                _ => kept.push((literal, kinds)),
            }
        }
        let length_max = kept.iter().map(|(literal, _)| literal.len()).max().unwrap_or(0);
        Self { groups: kept.chunks(GROUP_MAX).map(Group::new).collect(), length_max }
    }

    /// Returns the length of the longest literal.
    pub(crate) fn length_max(&self) -> usize {
        self.length_max
    }

    /// Returns whether anything in `text` is worth a look.
    pub(crate) fn hits(&self, text: &[u8]) -> bool {
        self.find(text, 0, text.len()).is_some()
    }

    /// Returns the first hit that starts in `from..to` and ends in `text`.
    pub(crate) fn find(&self, text: &[u8], from: usize, to: usize) -> Option<Hit> {
        if let [group] = self.groups.as_slice() {
            let end = (to + self.length_max).saturating_sub(1).min(text.len());
            return group.find(text, from, end).filter(|hit| hit.start < to);
        }
        let mut from = from;
        while from < to {
            let stop = (from + BLOCK).min(to);
            let mut first: Option<Hit> = None;
            for group in &self.groups {
                let limit = first.map_or(stop, |hit| hit.start);
                let end = (limit + self.length_max).saturating_sub(1).min(text.len());
                let hit = group.find(text, from, end).filter(|hit| hit.start < limit);
                first = hit.or(first);
            }
            if first.is_some() {
                return first;
            }
            from = stop;
        }
        None
    }
}

impl PartialOrd for Kinds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kinds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Group {
    fn new(literals: &[(Vec<u8>, Kinds)]) -> Self {
        let entries = literals.iter().map(|(literal, kinds)| (literal.len(), *kinds)).collect();
        let patterns = literals.iter().map(|(literal, _)| literal);
        let packed =
            Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(patterns).build();
        let searcher = match packed {
            Some(searcher) => Engine::Packed(searcher),
            None => AhoCorasickBuilder::new()
                .match_kind(aho_corasick::MatchKind::LeftmostFirst)
                .build(literals.iter().map(|(literal, _)| literal))
                .map_or(Engine::Empty, Engine::Automaton),
        };
        Self { searcher, entries }
    }

    fn find(&self, text: &[u8], from: usize, end: usize) -> Option<Hit> {
        if from >= end {
            return None;
        }
        let found = match &self.searcher {
            Engine::Packed(searcher) => searcher.find_in(text, (from..end).into()),
            Engine::Automaton(automaton) => {
                automaton.find(aho_corasick::Input::new(text).range(from..end))
            }
            Engine::Empty => None,
        }?;
        let (length, kinds) = self.entries[found.pattern().as_usize()];
        Some(Hit { start: found.start(), length, kinds })
    }
}
