//! The interface for programs that only want to ask.
//!
//! A coordinator that holds a whole message in one dialect needs few questions: is it complete, is
//! it blocked and why, how far is it, what is left to show. [`Parser`] answers them for any dialect,
//! with all the care of the scanner behind it.
//!
//! ```
//! use aldis_signal::Parser;
//!
//! let chorus = Parser::builtin("chorus").unwrap();
//! let output = "Half of it. <chorus>PROGRESS: 45</chorus>\n\
//!               <chorus>BLOCKED: no access to the database</chorus>";
//!
//! assert!(chorus.is_blocked(output));
//! assert!(!chorus.is_complete(output));
//! assert_eq!(chorus.progress(output), Some(45));
//! assert_eq!(chorus.reason(output).as_deref(), Some("no access to the database"));
//! ```

use std::sync::Arc;

use crate::dialect::syntax::trailer;
use crate::dialect::{Dialect, Syntax};
use crate::message::Origin;
use crate::scan::{Rules, Token, signals};
use crate::signal::{Meaning, Signal};
use crate::structure::line::{is_quote, is_table_line};
use crate::visible::{trim_unseen_end, without_colour};

/// Answers questions about whole messages in one dialect.
#[derive(Debug)]
pub struct Parser {
    rules: Rules,
}

impl Parser {
    /// Makes a parser for a dialect.
    pub fn new(dialect: Arc<Dialect>) -> Self {
        Self { rules: Rules::new([dialect]) }
    }

    /// Makes a parser for a built-in dialect, if there is one of that name.
    pub fn builtin(name: &str) -> Option<Self> {
        Dialect::builtin(name).cloned().map(Self::new)
    }

    /// Returns the first signal.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let delivery = Parser::builtin("delivery").unwrap();
    /// let signal = delivery.parse("Done.\n\nREADY_FOR_REVIEW: task-1\n").unwrap();
    /// assert_eq!((&*signal.name, signal.subject.as_deref()), ("READY_FOR_REVIEW", Some("task-1")));
    /// ```
    pub fn parse(&self, message: &str) -> Option<Signal> {
        self.signals(message).next()
    }

    /// Returns every signal in text order.
    pub fn parse_all(&self, message: &str) -> Vec<Signal> {
        self.signals(message).collect()
    }

    /// Returns whether a signal of that name was said, first or not.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let caw = Parser::builtin("caw").unwrap();
    /// let message = "All phases are through.\n\n---\nSIGNAL: AUTO_COMPLETE\n---\n";
    /// assert!(caw.has_signal(message, "AUTO_COMPLETE"));
    /// assert!(!caw.has_signal("I will send SIGNAL: AUTO_COMPLETE later.", "AUTO_COMPLETE"));
    /// ```
    pub fn has_signal(&self, message: &str, name: &str) -> bool {
        self.signals(message).any(|signal| &*signal.name == name)
    }

    /// Returns whether the message claims that the work is done. That a merge is resolved is not it.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let promise = Parser::builtin("promise").unwrap();
    /// assert!(promise.is_complete("All green.\n\n<promise>COMPLETE</promise>"));
    /// assert!(!promise.is_complete("When it is green I print <promise>COMPLETE</promise>"));
    ///
    /// let chorus = Parser::builtin("chorus").unwrap();
    /// assert!(!chorus.is_complete("Kept both sides.\n\n<chorus>RESOLVED</chorus>"));
    /// ```
    pub fn is_complete(&self, message: &str) -> bool {
        let completes =
            |signal: &Signal| signal.meaning == Meaning::Done && !signal.resolves_merge();
        self.signals(message).any(|signal| completes(&signal))
    }

    /// Returns whether the message says that the agent cannot go on.
    pub fn is_blocked(&self, message: &str) -> bool {
        self.signals(message).any(|signal| signal.meaning == Meaning::Blocked)
    }

    /// Returns the latest percentage.
    pub fn progress(&self, message: &str) -> Option<u8> {
        self.signals(message).filter_map(|signal| signal.progress).last()
    }

    /// Returns why the agent is blocked or what it asks: the words of the first signal that is
    /// blocked or needs help or a human, or of a failure.
    pub fn reason(&self, message: &str) -> Option<String> {
        let asks = |signal: &Signal| match signal.meaning {
            Meaning::Blocked | Meaning::NeedsHelp | Meaning::NeedsHuman | Meaning::Failed => true,
            Meaning::Approved
            | Meaning::Done
            | Meaning::Handoff
            | Meaning::Info
            | Meaning::Progress
            | Meaning::Rejected => false,
        };
        let signal = self.signals(message).find(asks)?;
        let field = |name: &str| signal.fields.get(name)?.as_str().map(str::to_owned);
        let fields = ["reason", "error", "question", "blocker", "issue", "recommendation"];
        signal.payload.clone().or_else(|| fields.iter().find_map(|name| field(name)))
    }

    /// Returns the message without its signals, for display. What stands before is never touched;
    /// white space in front of a removed signal goes with it.
    ///
    /// ```
    /// # use aldis_signal::Parser;
    /// let turn = Parser::builtin("turn").unwrap();
    /// assert_eq!(turn.strip("    code line\nTURN_COMPLETE\n\nTURN_COMPLETE"), "    code line");
    /// assert_eq!(turn.strip("Done. TURN_COMPLETE."), "Done. TURN_COMPLETE.");
    /// ```
    pub fn strip(&self, message: &str) -> String {
        let signals = self.parse_all(message);
        let mut shown = String::with_capacity(message.len());
        let mut from = 0;
        for signal in &signals {
            let start = usize::try_from(signal.place.span.start).unwrap_or(usize::MAX);
            let end = usize::try_from(signal.place.span.end).unwrap_or(usize::MAX);
            let Some(before) = message.get(from..start) else { continue };
            shown.push_str(self.without_repeats(before));
            from = end;
        }
        let rest = message.get(from..).unwrap_or("");
        if signals.is_empty() {
            return message.to_owned();
        }
        if !trim_unseen_end(rest).is_empty() {
            shown.push_str(rest);
        }
        shown
    }

    /// Returns what stands before a signal without the white space at its end and, for a keyword that
    /// ends the message, without the keywords said before.
    fn without_repeats<'t>(&self, before: &'t str) -> &'t str {
        match self.rules.dialects().first().map(|dialect| &dialect.syntax) {
            Some(Syntax::Trailer(trailer)) => without_keywords(before, trailer),
            _ => before.trim_end(),
        }
    }

    fn signals(&self, message: &str) -> impl Iterator<Item = Signal> {
        signals(&self.rules, message.as_bytes(), &Origin::assistant(), Token::Off).into_iter()
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
