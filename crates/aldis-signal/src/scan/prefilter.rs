//! Finds the few places of a text that are worth a closer look.
//!
//! One vectorised pass over short literals runs at nearly the speed of memory; everything careful
//! happens only where it hits. The search is our own where the processor suits it, and otherwise that
//! of `aho-corasick`, which is fastest with up to 32 literals and takes at most 64. Larger sets are
//! split into groups that each pass over a block while it is in the cache. `buckets` puts the literals
//! of a group in the order that suits the search.

pub(super) mod buckets;

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickBuilder};

use super::vectors::{self, Counted, Seen, Swept, Vectors};

/// What a hit may be the start of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kinds(u8);

impl Kinds {
    // The bits are in the order in which a place is looked at.
    /// The start of an HTML comment.
    pub(crate) const COMMENT: Self = Self(1);
    /// A run of fence characters.
    pub(crate) const FENCE: Self = Self(2);
    /// Something that makes its whole line interesting.
    pub(crate) const LINE: Self = Self(4);
    /// A line that may open a block.
    pub(crate) const BLOCK: Self = Self(8);
    /// A keyword that may end the message.
    pub(crate) const TRAILER: Self = Self(16);
    /// An opening tag.
    pub(crate) const TAG: Self = Self(32);
    /// A word that may take a claim back.
    pub(crate) const RETRACTION: Self = Self(64);

    /// Something that makes its line worth reading.
    pub(crate) const LINE_OR_BLOCK: Self = Self(Self::LINE.0 | Self::BLOCK.0);

    /// Returns what to look at first, and what is left then.
    pub(crate) fn split_first(self) -> Option<(Self, Self)> {
        let lowest = self.0 & self.0.wrapping_neg();
        let first = match lowest & Self::LINE_OR_BLOCK.0 {
            0 => lowest,
            _ => Self::LINE_OR_BLOCK.0,
        };
        (self.0 != 0).then_some((Self(first), Self(self.0 & !first)))
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether there is nothing in `other` that is not in this.
    pub(crate) fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A place worth a look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    /// Where the literal starts, relative to the text searched.
    pub(crate) start: usize,
    /// Where the place itself is: behind the byte in front of it, if that is part of the literal.
    pub(crate) place: usize,
    /// Where the literal ends.
    pub(crate) end: usize,
    pub(crate) kinds: Kinds,
}

impl Hit {
    /// Returns the same in a text that starts `offset` bytes before.
    pub(super) fn behind(self, offset: usize) -> Self {
        let Self { start, place, end, kinds } = self;
        Self { start: start + offset, place: place + offset, end: end + offset, kinds }
    }
}

/// Something to look for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Literal {
    pub(crate) text: Vec<u8>,
    /// How many of its bytes stand before the place it marks.
    pub(crate) skip: usize,
    pub(crate) kinds: Kinds,
}

impl Literal {
    pub(crate) fn new(text: &str, kinds: Kinds) -> Self {
        Self { text: text.as_bytes().to_vec(), skip: 0, kinds }
    }

    /// A literal that only counts directly after `before`.
    pub(crate) fn after(before: u8, text: &str, kinds: Kinds) -> Self {
        let mut literal = Self::new(text, kinds);
        literal.text.insert(0, before);
        literal.skip = 1;
        literal
    }

    pub(super) fn hit(&self, start: usize) -> Hit {
        let end = start + self.text.len();
        Hit { start, place: start + self.skip, end, kinds: self.kinds }
    }
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
    literals: Vec<Literal>,
}

#[derive(Debug)]
enum Engine {
    Vectors(Box<Vectors>),
    /// For literals and processors that those do not suit.
    Packed(Searcher),
    /// For processors without vectors.
    Automaton(AhoCorasick),
    Empty,
}

/// How much is searched before another group has its turn: small enough for the first-level cache.
const BLOCK: usize = 16 * 1024;
/// A group of this size or less is searched at full speed.
const GROUP_FAST: usize = 32;
/// More are not possible.
const GROUP_MAX: usize = 64;
/// Literals that share this much at the start can be looked for by what they share.
const SHARED_MIN: usize = 4;

impl Prefilter {
    /// Compiles literals. One that starts with another is covered by the shorter.
    pub(crate) fn new(literals: Vec<Literal>) -> Self {
        let mut kept = distinct(literals);
        if kept.len() > GROUP_FAST {
            kept = by_shared_start(kept);
        }
        let all_fast = !vectors::is_supported() && kept.len() <= 2 * GROUP_FAST;
        let size = if all_fast { GROUP_FAST } else { GROUP_MAX };
        let length_max = kept.iter().map(|literal| literal.text.len()).max().unwrap_or(0);
        Self { groups: kept.chunks(size).map(Group::new).collect(), length_max }
    }

    /// Returns the length of the longest literal.
    pub(crate) fn length_max(&self) -> usize {
        self.length_max
    }

    /// Returns whether anything in `text` is worth a look.
    pub(crate) fn hits(&self, text: &[u8]) -> bool {
        self.groups.iter().any(|group| group.find(text, 0, text.len(), text.len()).is_some())
    }

    /// Returns the first hit that starts in `from..to` and ends in `text`.
    pub(crate) fn find(&self, text: &[u8], from: usize, to: usize) -> Option<Hit> {
        if let [group] = self.groups.as_slice() {
            return group.find(text, from, to, self.reach(text, to));
        }
        let mut from = from;
        while from < to {
            let stop = (from + BLOCK).min(to);
            let mut first: Option<Hit> = None;
            for group in &self.groups {
                let limit = first.map_or(stop, |hit| hit.start);
                first = group.find(text, from, limit, self.reach(text, limit)).or(first);
            }
            if first.is_some() {
                return first;
            }
            from = stop;
        }
        None
    }

    /// Returns how far a literal reaches that starts before `to`.
    fn reach(&self, text: &[u8], to: usize) -> usize {
        (to + self.length_max).saturating_sub(1).min(text.len())
    }

    /// Tells of every hit that starts in `from..to` and ends in `text`, in order. `found` says from
    /// where on the next one counts.
    pub(crate) fn sweep(
        &self,
        text: &[u8],
        from: usize,
        to: usize,
        mut found: impl FnMut(Hit) -> usize,
    ) {
        self.sweep_and_see::<false>(text, (from, to), usize::MAX, |hit, _| found(hit));
    }

    /// Does the same, until it has told of `enough`, or a few more. Says what else was seen if that is
    /// wanted: with each hit how many lines have been counted so far, and at the end all.
    pub(crate) fn sweep_and_see<const SEEN: bool>(
        &self,
        text: &[u8],
        (from, to): (usize, usize),
        enough: usize,
        mut found: impl FnMut(Hit, Counted) -> usize,
    ) -> Swept {
        if let [Group { searcher: Engine::Vectors(vectors), .. }] = self.groups.as_slice() {
            return vectors.sweep_and_see::<SEEN>(text, (from, to), enough, found);
        }
        let seen_to = |to| if SEEN { Seen::of(&text[from..to]) } else { Seen::default() };
        let seen = seen_to(to);
        let (mut at, mut told) = (from, 0);
        while let Some(hit) = self.find(text, at, to) {
            at = found(hit, Counted { to, newlines: seen.newlines });
            told += 1;
            if told >= enough && at < to {
                return Swept { to: at, seen: seen_to(at) };
            }
        }
        Swept { to, seen }
    }
}

impl Group {
    fn new(literals: &[Literal]) -> Self {
        if let Some(group) = Self::of_vectors(literals) {
            return group;
        }
        let count = if literals.len() > GROUP_FAST { 16 } else { 8 };
        let literals = buckets::arranged(literals, count);
        let patterns = literals.iter().map(|literal| &literal.text);
        let packed =
            Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(patterns).build();
        let searcher = match packed {
            Some(searcher) => Engine::Packed(searcher),
            None => AhoCorasickBuilder::new()
                .match_kind(aho_corasick::MatchKind::LeftmostFirst)
                .build(literals.iter().map(|literal| &literal.text))
                .map_or(Engine::Empty, Engine::Automaton),
        };
        Self { searcher, literals }
    }

    fn of_vectors(literals: &[Literal]) -> Option<Self> {
        let literals = buckets::arranged(literals, vectors::BUCKETS);
        let vectors = Vectors::new(&literals)?;
        Some(Self { searcher: Engine::Vectors(Box::new(vectors)), literals })
    }

    /// Returns the first hit that starts in `from..to` and ends before `end`.
    fn find(&self, text: &[u8], from: usize, to: usize, end: usize) -> Option<Hit> {
        if from >= to {
            return None;
        }
        let found = match &self.searcher {
            Engine::Vectors(vectors) => {
                let mut first = None;
                vectors.sweep_and_see::<false>(&text[..end], (from, to), 1, |hit, _| {
                    first = Some(hit);
                    to
                });
                return first;
            }
            Engine::Packed(searcher) => searcher.find_in(text, (from..end).into()),
            Engine::Automaton(automaton) => {
                automaton.find(aho_corasick::Input::new(text).range(from..end))
            }
            Engine::Empty => None,
        }?;
        Some(self.literals[found.pattern().as_usize()].hit(found.start()))
            .filter(|hit| hit.start < to)
    }
}

/// Removes literals that another one covers.
fn distinct(mut literals: Vec<Literal>) -> Vec<Literal> {
    literals.retain(|literal| !literal.text.is_empty());
    literals.sort();
    let mut kept: Vec<Literal> = Vec::new();
    for literal in literals {
        match kept.last_mut() {
            Some(shorter)
                if literal.text.starts_with(&shorter.text) && literal.skip == shorter.skip =>
            {
                shorter.kinds = shorter.kinds.and(literal.kinds);
            }
            _ => kept.push(literal),
        }
    }
    kept
}

/// Replaces neighbours that start alike by what they share.
fn by_shared_start(literals: Vec<Literal>) -> Vec<Literal> {
    let mut kept: Vec<Literal> = Vec::new();
    for literal in literals {
        if let Some(last) = kept.last_mut() {
            let shared = last
                .text
                .iter()
                .zip(&literal.text)
                .take_while(|(left, right)| left == right)
                .count();
            if shared >= SHARED_MIN + literal.skip && last.skip == literal.skip {
                last.text.truncate(shared);
                last.kinds = last.kinds.and(literal.kinds);
                continue;
            }
        }
        kept.push(literal);
    }
    kept
}

/// Returns few words so that each of `names` holds at least one: names of one dialect share words,
/// and fewer literals are found faster.
pub(crate) fn covering_words<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let long = |word: &&str| word.len() >= SHARED_MIN;
    let words: Vec<&str> = names
        .iter()
        .flat_map(|name| {
            let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(long);
            // Marks in front are more common than letters behind them.
            let plain = name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
            parts.chain(std::iter::once(if long(&plain) { plain } else { *name }))
        })
        .collect();
    let covers: Vec<Vec<usize>> = words
        .iter()
        .map(|word| {
            (0..names.len()).filter(|index| names[*index].contains(word)).collect::<Vec<_>>()
        })
        .collect();
    let mut covered = vec![false; names.len()];
    let mut chosen = Vec::new();
    while covered.contains(&false) {
        let gain = |index: &usize| covers[*index].iter().filter(|name| !covered[**name]).count();
        let value = |index: &usize| (gain(index), !is_logged(words[*index]), words[*index].len());
        let best = (0..words.len()).max_by_key(value);
        let Some(best) = best.filter(|best| gain(best) > 0) else { break };
        covers[best].iter().for_each(|name| covered[*name] = true);
        chosen.push(words[best]);
    }
    chosen
}

/// Returns whether a word starts like those that logs are full of: the search stops at each.
fn is_logged(word: &str) -> bool {
    ["DEB", "ERR", "INF", "WAR"].iter().any(|start| word.starts_with(start))
}
