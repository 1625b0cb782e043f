//! The careful scanner.
//!
//! # Why it is not a regex
//!
//! A signal in a prompt, a file, a code fence or a sentence about signals is not a signal, and a
//! genuine one may come with colours, CRLF or a closing sentence. So the scanner works in stages:
//! `visible` takes out what is not seen, `find` finds literals, a recogniser per grammar family reads
//! what stands there, `structure` says whether it is quoted, `judge` whether it counts, and
//! `undecided` keeps it until nothing can change that any more.
//!
//! # What always holds
//!
//! * The same bytes give the same findings, however they are cut into chunks.
//! * Time is linear in the input and memory is bounded, for every input.
//! * It cannot fail: what is malformed becomes a near miss with its reason.

mod candidate;
mod closers;
pub(crate) mod diagnose;
pub(crate) mod draft;
mod engine;
mod families;
mod fences;
pub(crate) mod hints;
mod judge;
mod lead_in;
mod lines;
mod misses;
mod position;
mod report;
mod rules;
mod standing;
mod tags;
mod taken_back;
mod terminals;
pub(crate) mod text;
mod trailers;
mod undecided;
pub(crate) mod window;

use std::fmt;

pub use self::rules::Rules;
pub use crate::visible::is_zero_width;

use self::engine::{Engine, ScanOptions};
use self::window::Window;
use crate::message::Origin;
use crate::signal::{Finding, Signal};
use crate::visible::offsets::{OffsetMap, Stripper};

/// What is known about the run token: a short code that was told to the agent only in its prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Token {
    /// No token is in use.
    #[default]
    Off,
    /// A signal with this token is trusted, one with another is refused, one without is taken.
    Accept(String),
    /// Only signals with this token are taken.
    Require(String),
}

/// How much of a chunk is taken at a time.
const PIECE: usize = 256 * 1024;

/// A scan of one message that comes in chunks, made by [`Scan::stream`].
///
/// ```
/// use aldis_signal::{Rules, Scan};
///
/// let mut found = Vec::new();
/// let mut scanner = Scan::new(Rules::builtin()).stream();
/// for chunk in ["Halfway. <chorus>PROG", "RESS: 45</cho", "rus> Going on."] {
///     scanner.push(chunk.as_bytes(), &mut |finding| found.push(finding));
/// }
/// scanner.finish(&mut |finding| found.push(finding));
///
/// let signal = found[0].signal().unwrap();
/// assert_eq!((&*signal.name, signal.progress), ("PROGRESS", Some(45)));
/// ```
pub struct Scanner<'r> {
    engine: Engine<'r>,
    stripper: Stripper,
    /// Text that is still needed; `base` is the offset of its first byte.
    text: Vec<u8>,
    base: u64,
    /// Text before this offset is not needed any more.
    needed: u64,
}

impl fmt::Debug for Scanner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.base + self.text.len() as u64;
        f.debug_struct("Scanner").field("kept", &(self.base..end)).finish_non_exhaustive()
    }
}

impl<'r> Scanner<'r> {
    fn new(engine: Engine<'r>) -> Self {
        Self { engine, stripper: Stripper::default(), text: Vec::new(), base: 0, needed: 0 }
    }

    /// Scans the next chunk, giving `sink` each finding as soon as it is certain.
    ///
    /// A claim is certain when nothing can take it back any more: at the end of the message, or
    /// 4 KiB later.
    ///
    /// ```
    /// use aldis_signal::{Rules, Scan};
    ///
    /// let mut found = 0;
    /// let mut scanner = Scan::new(Rules::builtin()).signals_only().stream();
    /// scanner.push(b"<chorus>COMPLETE</chorus>\n", &mut |_| found += 1);
    /// assert_eq!(found, 0, "the next words may take it back");
    /// ```
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Finding)) {
        for piece in chunk.chunks(PIECE) {
            let text = &mut self.text;
            self.stripper.push(piece, &mut |passed| text.extend_from_slice(passed));
            self.run(false);
            self.engine.report.out.drain(..).for_each(&mut *sink);
        }
    }

    /// Ends the message: whatever waited for more text is certain now.
    ///
    /// ```
    /// use aldis_signal::{Rules, Scan};
    ///
    /// let mut found = Vec::new();
    /// let mut scanner = Scan::new(Rules::builtin()).signals_only().stream();
    /// scanner.push(b"<chorus>COMPLETE</chorus>\n", &mut |finding| found.push(finding));
    /// scanner.finish(&mut |finding| found.push(finding));
    /// assert_eq!(found.len(), 1);
    /// ```
    pub fn finish(mut self, sink: &mut dyn FnMut(Finding)) {
        let text = &mut self.text;
        self.stripper.finish(&mut |passed| text.extend_from_slice(passed));
        self.run(true);
        self.engine.report.out.drain(..).for_each(sink);
    }

    /// Returns the offset before which nothing starts that is still to be told, so that what was told
    /// can be put in text order and passed on up to here. Only a near miss that stands for others
    /// comes later: at the end of the message, when their number is known.
    ///
    /// ```
    /// use aldis_signal::{Rules, Scan};
    ///
    /// let mut scanner = Scan::new(Rules::builtin()).stream();
    /// scanner.push(b"Fine.\n<chorus>COMPLETE</chorus>\n", &mut |_| {});
    /// assert!(scanner.settled() <= 6, "the claim at byte 6 is not certain yet");
    /// ```
    pub fn settled(&self) -> u64 {
        self.needed.min(self.engine.decided_until())
    }

    /// Returns how many bytes of the message are kept in memory.
    pub fn kept(&self) -> usize {
        self.text.len()
    }

    fn run(&mut self, last: bool) {
        let window = Window::new(&self.text, self.base, last, self.stripper.offsets());
        if last {
            return self.engine.finish(&window);
        }
        let keep = self.engine.run(&window);
        self.needed = keep;
        let unneeded = usize::try_from(keep - self.base).unwrap_or(0).min(self.text.len());
        // Moving the rest to the front costs time: do it when it pays.
        if unneeded > self.text.len() / 2 {
            self.text.drain(..unneeded);
            self.base = keep;
            self.stripper.forget_before(keep);
        }
    }
}

/// How messages are scanned: a builder for whole messages and for streams.
///
/// ```
/// use aldis_signal::{Origin, Role, Rules, Scan, Token};
///
/// let scan = Scan::new(Rules::builtin()).token(Token::Accept("k7f3".to_owned()));
/// let found = scan.run(b"All green.\n\n<chorus>COMPLETE: #k7f3</chorus>");
/// assert_eq!(found[0].signal().unwrap().via.as_str(), "token");
///
/// let file = scan.origin(Origin::new(Role::Tool));
/// assert!(file.run(b"<chorus>COMPLETE: #k7f3</chorus>")[0].signal().is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Scan<'r> {
    rules: &'r Rules,
    origin: Origin,
    options: ScanOptions,
}

impl<'r> Scan<'r> {
    /// Scans the agent's own text, without a run token.
    pub fn new(rules: &'r Rules) -> Self {
        Self { rules, origin: Origin::assistant(), options: ScanOptions::default() }
    }

    /// Says who wrote the messages.
    ///
    /// ```
    /// use aldis_signal::{Origin, Role, Rules, Scan};
    ///
    /// let scan = Scan::new(Rules::builtin()).origin(Origin::new(Role::User));
    /// assert!(scan.run(b"<chorus>COMPLETE</chorus>")[0].signal().is_none());
    /// ```
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Says which run token is expected.
    ///
    /// ```
    /// use aldis_signal::{Rules, Scan, Token};
    ///
    /// let scan = Scan::new(Rules::builtin()).token(Token::Require("k7f3".to_owned()));
    /// assert!(scan.run(b"<chorus>COMPLETE</chorus>")[0].signal().is_none());
    /// ```
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.options.token = token;
        self
    }

    /// Leaves near misses out, which is cheaper: misspelled names are not looked for.
    ///
    /// ```
    /// use aldis_signal::{Rules, Scan};
    ///
    /// let scan = Scan::new(Rules::builtin()).signals_only();
    /// assert!(scan.run(b"`<chorus>COMPLETE</chorus>`").is_empty());
    /// ```
    #[must_use]
    pub fn signals_only(mut self) -> Self {
        self.options.near_misses = false;
        self
    }

    /// Scans a whole message. Findings come in text order.
    ///
    /// ```
    /// use aldis_signal::{Rules, Scan};
    ///
    /// let found = Scan::new(Rules::builtin()).run(b"<chorus>COMPLETE</chorus> > READY");
    /// assert_eq!(found.len(), 1);
    /// ```
    pub fn run(&self, message: &[u8]) -> Vec<Finding> {
        scan_whole(self.engine(), message)
    }

    /// Scans a whole message for its signals alone. They come in text order.
    ///
    /// ```
    /// use aldis_signal::{Meaning, Rules, Scan};
    ///
    /// let signals = Scan::new(Rules::builtin()).signals(b"All green.\n\n<chorus>COMPLETE</chorus>");
    /// assert_eq!(signals[0].meaning, Meaning::Done);
    /// ```
    pub fn signals(&self, message: &[u8]) -> Vec<Signal> {
        let findings = self.clone().signals_only().run(message).into_iter();
        findings.filter_map(Finding::into_signal).collect()
    }

    /// Starts a message that comes in chunks.
    pub fn stream(&self) -> Scanner<'r> {
        Scanner::new(self.engine())
    }

    fn engine(&self) -> Engine<'r> {
        Engine::new(self.rules, self.origin.clone(), self.options.clone())
    }
}

/// Scans a whole message without a run token. Findings come in text order.
///
/// ```
/// use aldis_signal::{Finding, Origin, Rules, scan};
///
/// let text = b"Done.\n\n- REVIEW_PASSED: task-1\n";
/// let found = scan(Rules::builtin(), text, &Origin::assistant());
/// let Finding::NearMiss(miss) = &found[0] else { panic!("{found:?}") };
/// assert_eq!(miss.reason.as_str(), "decorated");
/// assert!(miss.hint().contains("`REVIEW_PASSED: <id>` alone at the start of a line"));
/// ```
pub fn scan(rules: &Rules, text: &[u8], origin: &Origin) -> Vec<Finding> {
    Scan::new(rules).origin(origin.clone()).run(text)
}

fn scan_whole(mut engine: Engine<'_>, text: &[u8]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // Without anything to take out, the text can be scanned where it is.
    if !text.starts_with(b"\xEF\xBB\xBF") && memchr::memchr(0x1B, text).is_none() {
        engine.finish(&Window::new(text, 0, true, &OffsetMap::default()));
        findings = engine.report.out;
    } else {
        let mut scanner = Scanner::new(engine);
        scanner.push(text, &mut |finding| findings.push(finding));
        scanner.finish(&mut |finding| findings.push(finding));
    }
    // Nearly sorted already, which the stable sort takes advantage of.
    findings.sort_by_key(|finding| finding.place().span);
    findings
}

#[cfg(test)]
mod tests;
