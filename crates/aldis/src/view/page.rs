//! A page that people read, as blocks: what is said, in which order. Markdown and HTML only write it
//! down, so that a report and a postmortem look alike and are equally harmless.

mod html;
mod markdown;

pub(crate) use self::html::html;
pub(crate) use self::markdown::markdown;

use std::borrow::Cow;

use super::timeline::Timeline;

/// A part of a page. The words in it are not made harmless yet.
#[derive(Debug)]
pub(crate) enum Block<'p> {
    /// What it is about, and how that ended.
    Title { title: Cow<'p, str>, outcome: Cow<'p, str>, mark: PageMark },
    /// What the next blocks are about.
    Heading(Cow<'p, str>),
    /// A label and what belongs to it.
    Facts(Vec<(&'static str, String)>),
    /// A sentence of ours.
    Sentence(String),
    /// Somebody's words.
    Quote(&'p str),
    /// What a program printed.
    Output(&'p str),
    /// Rows below a head.
    Table { head: &'static [&'static str], rows: Vec<Vec<String>> },
    /// What happened when. A picture has no place in a text: there its moments are listed.
    Picture(&'p Timeline),
}

/// How it is with what a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageMark {
    /// It goes on.
    Active,
    Good,
    Bad,
}

impl PageMark {
    fn sign(self) -> &'static str {
        match self {
            Self::Active => "●",
            Self::Good => "✔",
            Self::Bad => "✘",
        }
    }
}
