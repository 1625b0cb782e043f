//! The dialects of a set by what their signals are looked for with.

use std::sync::Arc;

use memchr::memmem::Finder;

use crate::dialect::{Dialect, Syntax};

/// The indices of dialects by what their signals are looked for with.
#[derive(Debug, Default)]
pub(crate) struct Families {
    /// Those whose signals own their lines.
    pub(super) lines: Vec<usize>,
    /// Lines that open a block, and whose.
    pub(super) openers: Vec<(Box<[u8]>, usize)>,
    /// Those with lines around a prompt for another agent.
    pub(super) delegating: Vec<usize>,
    /// Those whose signals are fences.
    pub(super) fences: Vec<usize>,
    pub(super) tags: Vec<TagWords>,
    pub(crate) trailers: Vec<usize>,
}

/// The words of a tag dialect, ready to be looked for: preparing that takes longer than most searches.
#[derive(Debug)]
pub(super) struct TagWords {
    /// Index of the dialect.
    pub(super) dialect: usize,
    pub(super) open: Finder<'static>,
    pub(super) close: Finder<'static>,
}

impl Families {
    pub(super) fn new(dialects: &[Arc<Dialect>]) -> Self {
        let mut families = Self::default();
        for (index, dialect) in dialects.iter().enumerate() {
            families.add(index, dialect);
        }
        families
    }

    fn add(&mut self, index: usize, dialect: &Dialect) {
        let mut opener = |line: &String| self.openers.push((line.as_bytes().into(), index));
        match &dialect.syntax {
            Syntax::Block(block) => opener(&block.delimiter),
            Syntax::Status(status) => opener(&status.open),
            Syntax::Fence(fence) => {
                fence.legacy.iter().for_each(|legacy| opener(&legacy.status.heading));
                self.fences.push(index);
            }
            Syntax::Line(line) => self.delegating.extend(line.delegation.iter().map(|_| index)),
            Syntax::Tag(tag) => {
                let finder = |word: &String| Finder::new(word.as_bytes()).into_owned();
                let (open, close) = (finder(&tag.open), finder(&tag.close));
                self.tags.push(TagWords { dialect: index, open, close });
            }
            Syntax::Trailer(_) => self.trailers.push(index),
        }
        if !matches!(dialect.syntax, Syntax::Tag(_) | Syntax::Trailer(_)) {
            self.lines.push(index);
        }
    }
}
