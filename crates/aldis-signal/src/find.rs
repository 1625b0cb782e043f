//! Literal search: the few places of a text that are worth a closer look.
//!
//! One pass of `aho-corasick` over short literals finds them; everything careful happens only there.
//! Its packed search (Teddy) takes at most [`PACKED_MAX`] literals and is at its best with [`SLIM_MAX`],
//! so larger sets are shortened to what their members share until they fit; where that or the processor does not allow it, its
//! automaton finds the same. There is one path for every processor and no unsafe code here.

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, Input, MatchKind};

/// What a hit may be the start of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HitKinds(u8);

impl HitKinds {
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
    /// The opening tag of an element that shows text.
    pub(crate) const ELEMENT: Self = Self(64);

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

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A place worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Where the literal starts, relative to the text searched.
    pub(crate) start: usize,
    /// Where the place itself is: behind the byte in front of it, if that is part of the literal.
    pub(crate) place: usize,
    /// Where the literal ends.
    pub(crate) end: usize,
    pub(crate) kinds: HitKinds,
}

/// Something to look for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Literal {
    pub(crate) text: Vec<u8>,
    /// How many of its bytes stand before the place it marks.
    pub(crate) skip: usize,
    pub(crate) kinds: HitKinds,
}

impl Literal {
    pub(crate) fn new(text: &str, kinds: HitKinds) -> Self {
        Self { text: text.as_bytes().to_vec(), skip: 0, kinds }
    }

    /// A literal that only counts directly after `before`.
    pub(crate) fn after(before: u8, text: &str, kinds: HitKinds) -> Self {
        let mut literal = Self::new(text, kinds);
        literal.text.insert(0, before);
        literal.skip = 1;
        literal
    }
}

/// A set of literals with what each may be.
#[derive(Debug)]
pub(crate) struct LiteralSet {
    search: Search,
    literals: Vec<Literal>,
    length_max: usize,
}

#[derive(Debug)]
enum Search {
    Packed(Searcher),
    Automaton(AhoCorasick),
    Empty,
}

/// Teddy takes no more literals.
const PACKED_MAX: usize = 64;
/// With more it needs twice as many buckets (fat Teddy), and is less than half as fast.
const SLIM_MAX: usize = 32;
/// Literals that share this much at the start are looked for by what they share, if there are many.
const SHARED_MIN: usize = 4;

impl LiteralSet {
    /// Compiles literals. One that starts with another is covered by the shorter.
    pub(crate) fn new(literals: Vec<Literal>) -> Self {
        let literals = shortened(literals);
        let packed = Search::packed(&literals);
        Self::with(packed.unwrap_or_else(|| Search::automaton(&literals)), literals)
    }

    fn with(search: Search, literals: Vec<Literal>) -> Self {
        let length_max = literals.iter().map(|literal| literal.text.len()).max().unwrap_or(0);
        Self { search, literals, length_max }
    }

    /// Returns the literals.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.literals.iter().map(|literal| &*literal.text)
    }

    /// Returns the same literals on the other search.
    #[cfg(test)]
    pub(crate) fn on_automaton(self) -> Self {
        Self { search: Search::automaton(&self.literals), ..self }
    }

    /// Returns the length of the longest literal.
    pub(crate) fn length_max(&self) -> usize {
        self.length_max
    }

    /// Returns whether a text starts with what is otherwise found behind a line end.
    pub(crate) fn starts_line(&self, text: &[u8]) -> bool {
        let mut lines = self.literals.iter().filter(|literal| literal.skip == 1);
        lines.any(|literal| text.starts_with(&literal.text[1..]))
    }

    /// Returns whether anything in `text` is worth a look.
    pub(crate) fn hits(&self, text: &[u8]) -> bool {
        self.find(text, 0, text.len()).is_some()
    }

    /// Returns the first hit that starts in `from..to` and ends in `text`.
    pub(crate) fn find(&self, text: &[u8], from: usize, to: usize) -> Option<Hit> {
        if from >= to {
            return None;
        }
        let end = (to + self.length_max).saturating_sub(1).min(text.len());
        let found = match &self.search {
            Search::Packed(searcher) => searcher.find_in(text, (from..end).into()),
            Search::Automaton(automaton) => automaton.find(Input::new(text).range(from..end)),
            Search::Empty => None,
        }?;
        let literal = &self.literals[found.pattern().as_usize()];
        let (start, end) = (found.start(), found.end());
        (start < to).then(|| Hit { start, place: start + literal.skip, end, kinds: literal.kinds })
    }
}

impl Search {
    /// Teddy, where the literals and the processor suit it.
    fn packed(literals: &[Literal]) -> Option<Self> {
        let patterns = literals.iter().map(|literal| &literal.text);
        let mut builder =
            packed::Config::new().match_kind(packed::MatchKind::LeftmostFirst).builder();
        builder.extend(patterns).build().map(Self::Packed)
    }

    fn automaton(literals: &[Literal]) -> Self {
        let patterns = literals.iter().map(|literal| &literal.text);
        let built = AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(patterns);
        built.map_or(Self::Empty, Self::Automaton)
    }
}

/// Returns as few literals as suit Teddy, if shortening them to what they share achieves that. The less
/// that is, the more often it is found where nothing is.
fn shortened(literals: Vec<Literal>) -> Vec<Literal> {
    let mut literals = distinct(literals);
    for (most, least) in [(SLIM_MAX, SHARED_MIN - 1), (PACKED_MAX, SHARED_MIN - 2)] {
        for shared in (least..=SHARED_MIN).rev() {
            if literals.len() > most {
                literals = by_shared_start(literals, shared);
            }
        }
    }
    literals
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

/// Replaces neighbours that share at least `least` bytes by what they share.
fn by_shared_start(literals: Vec<Literal>, least: usize) -> Vec<Literal> {
    let mut kept: Vec<Literal> = Vec::new();
    for literal in literals {
        if let Some(last) = kept.last_mut() {
            let pairs = last.text.iter().zip(&literal.text);
            let shared = pairs.take_while(|(left, right)| left == right).count();
            if shared >= least + literal.skip && last.skip == literal.skip {
                last.text.truncate(shared);
                last.kinds = last.kinds.and(literal.kinds);
                continue;
            }
        }
        kept.push(literal);
    }
    kept
}

/// Returns few words so that each of `names` holds at least one (a greedy set cover): names of one
/// dialect share words, and fewer literals are found faster.
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
        .map(|word| (0..names.len()).filter(|index| names[*index].contains(word)).collect())
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

#[cfg(test)]
mod tests {
    //! Both searches find what comparing every literal with every place finds.

    use proptest::prelude::*;

    use super::*;

    /// Few letters, so that literals and parts of them are everywhere.
    const LETTERS: &str = "[abC\n`~< \u{1b}é]{0,400}";

    fn literals() -> impl Strategy<Value = Vec<Literal>> {
        let text = prop::collection::vec("[abC\n`~<]{3,5}|[abC\n`~<]{6,12}", 1..100);
        text.prop_map(|texts| texts.iter().map(|text| Literal::new(text, HitKinds::LINE)).collect())
    }

    fn slowly(literals: &[Literal], text: &[u8], from: usize, to: usize) -> Option<usize> {
        (from..to).find(|at| literals.iter().any(|literal| text[*at..].starts_with(&literal.text)))
    }

    proptest! {
        #[test]
        fn every_literal_is_found_where_it_starts(
            given in literals(), text in LETTERS,
            cut in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            // What stands at the very end is found as well.
            let text = [text.as_bytes(), &given[0].text].concat();
            let (left, right) = (cut.0.index(text.len() + 1), cut.1.index(text.len() + 1));
            let (from, to) = (left.min(right), left.max(right));
            let set = || LiteralSet::new(given.clone());
            for set in [set(), set().on_automaton()] {
                let found = set.find(&text, from, to).map(|hit| hit.start);
                prop_assert_eq!(found, slowly(&set.literals, &text, from, to));
                let least = slowly(&given, &text, from, to);
                prop_assert!(least.is_none() || found.is_some_and(|at| Some(at) <= least));
            }
        }
    }

    #[test]
    fn all_built_in_dialects_suit_the_fast_search() {
        let literals = crate::Rules::builtin().literals().count();
        assert!(literals <= SLIM_MAX, "{literals} literals");
    }

    #[test]
    fn every_name_holds_a_chosen_word() {
        let names = ["REVIEW_PASSED", "REVIEW_FAILED", "QA", "ERROR_IN_AUDIT"];
        let words = covering_words(&names);
        assert!(names.iter().all(|name| words.iter().any(|word| name.contains(word))), "{words:?}");
        assert_eq!(words.len(), 3, "{words:?}");
    }
}
