//! The interface for programs that only want to ask.
//!
//! A coordinator that holds a whole message in one dialect needs few questions: is it complete, is
//! it blocked and why, how far is it, what is left to show. [`Parser`] reads the message in any
//! dialect, with all the care of the scanner behind it, and the [`Reply`] answers them.
//!
//! ```
//! use aldis_signal::Parser;
//!
//! let chorus = Parser::builtin("chorus").unwrap();
//! let reply = chorus.read(
//!     "Half of it. <chorus>PROGRESS: 45</chorus>\n\
//!      <chorus>BLOCKED: no access to the database</chorus>",
//! );
//! assert!(reply.is_blocked() && !reply.is_complete());
//! assert_eq!(reply.progress(), Some(45));
//! assert_eq!(reply.reason(), Some("no access to the database"));
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use crate::dialect::syntax::trailer;
use crate::dialect::{Dialect, Syntax};
use crate::scan::{Rules, Scan};
use crate::signal::{Meaning, Signal, Span};
use crate::structure::line::{is_quote, is_table_line};
use crate::visible::{trim_unseen_end, without_colour};

/// Reads whole messages in one dialect.
#[derive(Debug)]
pub struct Parser {
    rules: Rules,
}

impl Parser {
    /// Makes a parser for a dialect.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use aldis_signal::{Dialect, Parser};
    ///
    /// let promise = Dialect::builtin("promise").unwrap().with_word("ALL TESTS PASS").unwrap();
    /// let parser = Parser::new(Arc::new(promise));
    /// assert!(parser.read("<promise>ALL TESTS PASS</promise>").is_complete());
    /// ```
    pub fn new(dialect: Arc<Dialect>) -> Self {
        Self { rules: Rules::new([dialect]) }
    }

    /// Makes a parser for a built-in dialect, if there is one of that name.
    pub fn builtin(name: &str) -> Option<Self> {
        Dialect::builtin(name).cloned().map(Self::new)
    }

    /// Reads a message of the agent. It is scanned once, whatever is asked about it then.
    pub fn read<'t>(&self, message: &'t str) -> Reply<'t, '_> {
        let signals = Scan::new(&self.rules).signals(message.as_bytes());
        Reply { message, signals, dialect: self.rules.dialects().first() }
    }
}

/// A message that was read.
#[derive(Debug)]
pub struct Reply<'t, 'p> {
    message: &'t str,
    signals: Vec<Signal>,
    dialect: Option<&'p Arc<Dialect>>,
}

impl<'t> Reply<'t, '_> {
    /// Returns every signal in text order.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let delivery = Parser::builtin("delivery").unwrap();
    /// let reply = delivery.read("Done.\n\nREADY_FOR_REVIEW: task-1\n");
    /// let [signal] = reply.signals() else { panic!() };
    /// assert_eq!((&*signal.name, signal.subject.as_deref()), ("READY_FOR_REVIEW", Some("task-1")));
    /// ```
    pub fn signals(&self) -> &[Signal] {
        &self.signals
    }

    /// Returns whether there is a signal of that name, first or not.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let caw = Parser::builtin("caw").unwrap();
    /// let reply = caw.read("All phases are through.\n\n---\nSIGNAL: AUTO_COMPLETE\n---\n");
    /// assert!(reply.has_signal("AUTO_COMPLETE"));
    /// let reply = caw.read("I will send SIGNAL: AUTO_COMPLETE later.");
    /// assert!(!reply.has_signal("AUTO_COMPLETE"));
    /// ```
    pub fn has_signal(&self, name: &str) -> bool {
        self.signals.iter().any(|signal| &*signal.name == name)
    }

    /// Returns whether it claims that the work is done. That a merge is resolved is not it.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let promise = Parser::builtin("promise").unwrap();
    /// assert!(promise.read("All green.\n\n<promise>COMPLETE</promise>").is_complete());
    /// assert!(!promise.read("When it is green I print <promise>COMPLETE</promise>").is_complete());
    ///
    /// let chorus = Parser::builtin("chorus").unwrap();
    /// assert!(!chorus.read("Kept both sides.\n\n<chorus>RESOLVED</chorus>").is_complete());
    /// ```
    pub fn is_complete(&self) -> bool {
        let completes =
            |signal: &Signal| signal.meaning == Meaning::Done && !signal.resolves_merge();
        self.signals.iter().any(completes)
    }

    /// Returns whether it says that the agent cannot go on.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let chorus = Parser::builtin("chorus").unwrap();
    /// assert!(chorus.read("<chorus>BLOCKED: disk full</chorus>").is_blocked());
    /// ```
    pub fn is_blocked(&self) -> bool {
        self.signals.iter().any(|signal| signal.meaning == Meaning::Blocked)
    }

    /// Returns the latest percentage.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let chorus = Parser::builtin("chorus").unwrap();
    /// let text = "<chorus>PROGRESS: 20</chorus> More. <chorus>PROGRESS: 80</chorus>";
    /// assert_eq!(chorus.read(text).progress(), Some(80));
    /// ```
    pub fn progress(&self) -> Option<u8> {
        self.signals.iter().rev().find_map(|signal| signal.progress)
    }

    /// Returns why the agent is blocked or what it asks: the words of the first signal that is
    /// blocked or needs help or a human, or of a failure.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let chorus = Parser::builtin("chorus").unwrap();
    /// let reply = chorus.read("<chorus>NEEDS_HUMAN: which schema?</chorus>");
    /// assert_eq!(reply.reason(), Some("which schema?"));
    /// ```
    pub fn reason(&self) -> Option<&str> {
        let asks = [Meaning::Blocked, Meaning::NeedsHelp, Meaning::NeedsHuman, Meaning::Failed];
        let signal = self.signals.iter().find(|signal| asks.contains(&signal.meaning))?;
        let fields = ["reason", "error", "question", "blocker", "issue", "recommendation"];
        let field = || fields.iter().find_map(|name| signal.fields.get(*name)?.as_str());
        signal.payload.as_deref().or_else(field)
    }

    /// Returns the message without its signals, for display. What stands before is never touched;
    /// white space in front of a removed signal goes with it.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let turn = Parser::builtin("turn").unwrap();
    /// let reply = turn.read("    code line\nTURN_COMPLETE\n\nTURN_COMPLETE");
    /// assert_eq!(reply.without_signals(), "    code line");
    /// assert_eq!(turn.read("Done. TURN_COMPLETE.").without_signals(), "Done. TURN_COMPLETE.");
    /// ```
    pub fn without_signals(&self) -> Cow<'t, str> {
        if self.signals.is_empty() {
            return Cow::Borrowed(self.message);
        }
        let mut shown = String::with_capacity(self.message.len());
        let mut from = 0;
        for Span { start, end } in self.signals.iter().map(|signal| signal.place.span) {
            let (start, end) = (start as usize, end as usize);
            let Some(before) = self.message.get(from..start) else { continue };
            shown.push_str(self.without_repeats(before));
            from = end;
        }
        let rest = self.message.get(from..).unwrap_or_default();
        if !trim_unseen_end(rest).is_empty() {
            shown.push_str(rest);
        }
        Cow::Owned(shown)
    }

    /// Returns what stands before a signal without the white space at its end and, for a keyword that
    /// ends the message, without the keywords said before.
    fn without_repeats<'b>(&self, before: &'b str) -> &'b str {
        match self.dialect.map(|dialect| &dialect.syntax) {
            Some(Syntax::Trailer(trailer)) => without_keywords(before, trailer),
            _ => before.trim_end(),
        }
    }
}

/// Returns a text without the keywords at its end. One that is quoted was not said.
fn without_keywords<'t>(text: &'t str, trailer: &trailer::Syntax) -> &'t str {
    let mut left = trim_unseen_end(text);
    // Line by line: looking for the start of a line at each of its keywords could take long.
    loop {
        let start = left.rfind('\n').map_or(0, |end| end + 1);
        let (above, line) = left.split_at(start);
        let mut kept = line;
        if !is_quote(line.as_bytes()) && !is_table_line(line.as_bytes()) {
            while let Some(rest) = without_keyword(kept, trailer) {
                kept = trim_unseen_end(rest);
            }
        }
        let only_keywords = kept.is_empty() && !line.is_empty();
        if !only_keywords {
            return with_resets(text, start + kept.len());
        }
        left = trim_unseen_end(above);
    }
}

/// Returns the start of a text up to `end` and the sequences directly behind that end its colours.
fn with_resets(text: &str, end: usize) -> &str {
    let mut rest = &text[end..];
    while let Some(behind) = ["\x1b[0m", "\x1b[m"].iter().find_map(|reset| rest.strip_prefix(reset))
    {
        rest = behind;
    }
    if end == 0 { "" } else { &text[..text.len() - rest.len()] }
}

/// Returns what stands before a whole keyword at the end of a text.
fn without_keyword<'t>(text: &'t str, trailer: &trailer::Syntax) -> Option<&'t str> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let keywords = trailer.alternative_signals.iter().chain([&trailer.keyword]);
    // One without letters would be found for ever.
    keywords.filter(|keyword| !keyword.is_empty()).find_map(|keyword| {
        let (rest, end) = text.split_at_checked(text.len().checked_sub(keyword.len())?)?;
        let same =
            if trailer.case_sensitive { end == keyword } else { end.eq_ignore_ascii_case(keyword) };
        let mut seen = rest;
        while let Some(before) = without_colour(seen) {
            seen = before;
        }
        (same && !seen.ends_with(word)).then_some(rest)
    })
}

#[cfg(test)]
mod tests;
