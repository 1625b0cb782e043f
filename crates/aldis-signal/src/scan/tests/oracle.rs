//! Each grammar family against a second reader of it: slow, simple, and written from the
//! specification alone.
//!
//! Rule 8 (mentioned, retracted) is switched off here; the tables and the labelled endings are about
//! it. The generators leave out what the specification does not decide.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::dialect::Standing;

mod blocks;
mod fences;
mod lines;
mod markdown;
mod tags;
mod trailers;

/// A signal as far as both readers can name it: name, subject or payload, first byte.
type Said = (String, Option<String>, usize);

/// As many cases as asked for, or more if `PROPTEST_CASES` says so.
fn cases(least: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    ProptestConfig { cases: least.max(config.cases), ..config }
}

fn config() -> ProptestConfig {
    cases(512)
}

/// Returns the rules of a built-in dialect without its verdict words.
fn plain_rules(dialect: &str) -> Rules {
    let mut dialect = Dialect::clone(Dialect::builtin(dialect).unwrap());
    dialect.verdict_words = false;
    dialect.standing = Standing::End;
    Rules::new([Arc::new(dialect)])
}

/// Returns what the scanner takes.
fn taken(rules: &Rules, text: &str) -> Vec<Said> {
    let found = scan(rules, text.as_bytes(), &Origin::assistant());
    let said = signals(&found).into_iter().map(|signal| {
        let words = signal.subject.clone().or_else(|| signal.payload.clone());
        (signal.name.to_string(), words, usize::try_from(signal.place.span.start).unwrap())
    });
    said.collect()
}

/// One line of a message, without its line end.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    start: usize,
    text: &'a str,
    /// Whether a fence or a comment is around it, or it is itself the edge of one.
    quoted: bool,
    /// Whether a fence without info string is around it.
    bare_fence: bool,
}

impl Line<'_> {
    fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }
}

/// Returns marker, length and info string of a fence line.
fn fence_line(line: &str) -> Option<(char, usize, &str)> {
    let line = line.trim_start_matches([' ', '\t']);
    let marker = line.chars().next().filter(|c| ['`', '~'].contains(c))?;
    let info = line.trim_start_matches(marker);
    let length = line.len() - info.len();
    (length >= 3 && !(marker == '`' && info.contains('`'))).then_some((marker, length, info.trim()))
}

/// Returns whether a line starts a block, so that no quotation goes on in it.
fn begins_block(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t']);
    let drawn =
        line.len() >= 3 && ["-", "=", "*"].iter().any(|mark| line.replace(mark, "").is_empty());
    drawn || ["- ", "# ", "| "].iter().any(|mark| line.starts_with(mark))
}

/// Splits a message into lines and finds fences and comments. Comments open and close on lines of
/// their own.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut fence: Option<(char, usize, bool)> = None;
    let mut comment = false;
    let mut lazy = false;
    for whole in text.split_inclusive('\n') {
        let line = whole.trim_end_matches(['\n', '\r', ' ', '\t']);
        let in_comment = comment;
        let read = fence_line(line).filter(|_| !comment);
        let bare_fence = fence.is_some_and(|(_, _, bare)| bare);
        let mut quoted = comment || fence.is_some();
        match (fence, read) {
            (Some((open, least, _)), Some((marker, length, ""))) => {
                if marker == open && length >= least {
                    fence = None;
                }
            }
            (None, Some((marker, length, info))) => {
                fence = Some((marker, length, info.is_empty()));
                quoted = true;
            }
            (Some(_), _) => {}
            (None, None) if comment => comment = !line.contains("-->"),
            (None, None) => comment = line == "<!--",
        }
        let begins = line.is_empty() || read.is_some() || begins_block(line);
        lazy = line.starts_with('>') && line.len() > 1 || lazy && !begins;
        lazy &= !in_comment && !comment;
        quoted |= comment || lazy || line.starts_with('>');
        out.push(Line { start, text: line, quoted, bare_fence });
        start += whole.len();
    }
    out
}

/// Lines that quote, and lines that mean nothing.
const AROUND: &[&str] = &[
    "",
    "",
    "Some words.",
    "```",
    "```",
    "````",
    "~~~",
    "```rust",
    "  ```",
    "<!--",
    "-->",
    "> quote",
];

/// Joins lines; one line end for the whole message.
fn joined(lines: &[String], crlf: bool, last: bool) -> String {
    let end = if crlf { "\r\n" } else { "\n" };
    let mut text = lines.join(end);
    if last {
        text.push_str(end);
    }
    text
}

fn owned(lines: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(lines).prop_map(str::to_owned)
}
