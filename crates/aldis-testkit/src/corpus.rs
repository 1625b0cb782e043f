//! Agent messages whose right answer is known because of how they were built.
//!
//! A scanner that is measured on texts it labelled itself is always right. Here every message is
//! put together from parts, and the part that makes it a signal, or keeps it from being one, is
//! chosen first: the label is a fact about the construction. Nothing in this module calls a
//! scanner. Grammar, context, bytes or origin decide every one of them, so every error is a defect; what
//! words decide cannot be generated without the words, and is measured on texts that people wrote.
//!
//! Each [`Phenomenon`] has two twins with the same words: one that must be heard, and one in which a
//! single circumstance (a fence, a quote, a control character, another mouth) makes it something
//! else. A scanner that hears everything and one that hears nothing are equally wrong.

pub mod bulk;
mod claims;
mod filler;
mod phenomena;
pub mod rng;

use aldis_signal::Role;

pub use self::rng::Rng;

/// A signal that must be found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expected {
    /// Canonical name.
    pub name: String,
    /// What it is about, for dialects that say so.
    pub subject: Option<String>,
}

impl Expected {
    /// Creates one without a subject.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), subject: None }
    }

    /// Creates one about something.
    pub fn about(name: impl Into<String>, subject: impl Into<String>) -> Self {
        Self { name: name.into(), subject: Some(subject.into()) }
    }
}

/// One message and what must be found in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// What it is a sample of.
    pub phenomenon: &'static str,
    /// The dialect it is read in.
    pub dialect: &'static str,
    /// The message.
    pub text: String,
    /// Who says it.
    pub role: Role,
    /// The signals in it, in text order; empty for a false twin.
    pub genuine: Vec<Expected>,
}

/// The parts of a sample that a phenomenon decides.
#[derive(Clone, Debug)]
struct SampleDraft {
    text: String,
    role: Role,
    genuine: Vec<Expected>,
}

impl SampleDraft {
    /// A message of the agent that says these.
    fn heard(text: String, genuine: Vec<Expected>) -> Self {
        Self { text, role: Role::Assistant, genuine }
    }

    /// A message of the agent that says nothing.
    fn unheard(text: String) -> Self {
        Self::heard(text, Vec::new())
    }
}

/// One way in which a text is, or only looks like, a signal.
#[derive(Clone, Copy, Debug)]
pub struct Phenomenon {
    /// Its name in reports.
    pub name: &'static str,
    /// The dialects that have a genuine twin.
    pub genuine_in: &'static [&'static str],
    /// The dialects that have a false twin.
    pub false_in: &'static [&'static str],
    build: fn(&mut Rng, &'static str, bool) -> SampleDraft,
}

impl Phenomenon {
    /// Builds one of its twins in one of the dialects that have it.
    pub fn sample(&self, rng: &mut Rng, genuine: bool) -> Sample {
        let dialect = rng.pick(if genuine { self.genuine_in } else { self.false_in });
        let SampleDraft { mut text, role, genuine } = (self.build)(rng, dialect, genuine);
        // Neither changes what is said, in any phenomenon.
        if rng.chance(10) && !text.contains('\r') {
            text = text.replace('\n', "\r\n");
        }
        if rng.chance(5) && !text.starts_with('\u{feff}') {
            text.insert(0, '\u{feff}');
        }
        let phenomenon = self.name;
        Sample { phenomenon, dialect, text, role, genuine }
    }
}

/// Returns all phenomena.
pub fn phenomena() -> Vec<Phenomenon> {
    phenomena::all()
}

/// Yields samples of all phenomena in turn, genuine and false ones alternating. The same seed gives
/// the same samples.
pub fn samples(seed: u64, count: usize) -> impl Iterator<Item = Sample> {
    let all = phenomena();
    let mut rng = Rng::new(seed);
    (0..count).filter_map(move |index| {
        let phenomenon = all.get(index / 2 % all.len().max(1))?;
        Some(phenomenon.sample(&mut rng, index % 2 == 0))
    })
}

#[cfg(test)]
mod tests;
