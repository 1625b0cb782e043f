//! Misspelled names near the end of a message.
//!
//! An agent that means to signal does so at the end. There, and only there, lines are compared with
//! the known names letter by letter, which would cost too much everywhere.

use super::ansi::Removals;
use super::engine::Engine;
use super::text::trim_line_end;
use super::window::Window;
use crate::dialect::{Dialect, Presence, Syntax};
use crate::signal::{Reason, Span};

/// How much of the end is looked at.
pub(crate) const TAIL_MAX: u64 = 4 * 1024;

/// Reports lines of the tail that spell a name wrongly and were not reported otherwise.
pub(crate) fn look_at_tail(engine: &mut Engine<'_>, window: &Window<'_>, removals: &Removals) {
    let start = window.end().saturating_sub(TAIL_MAX).max(window.base());
    let tail = window.slice(start, window.end());
    let mut number = engine.line - memchr::memchr_iter(b'\n', tail).count() as u64;
    let mut from = start;
    for text in tail.split(|byte| *byte == b'\n') {
        let whole = from == 0 || from > start || window.byte(from - 1) == Some(b'\n');
        if whole && !engine.reported_lines.contains(&number) {
            look_at_line(engine, removals, from, text, number);
        }
        from += text.len() as u64 + 1;
        number += 1;
    }
}

fn look_at_line(
    engine: &mut Engine<'_>,
    removals: &Removals,
    start: u64,
    text: &[u8],
    number: u64,
) {
    let shown = trim_line_end(text);
    let rules = engine.rules;
    for (index, dialect) in rules.dialects().iter().enumerate() {
        let Some((name, reason)) = misspelled(dialect, shown) else { continue };
        let end = start + shown.len() as u64;
        let span = Span { start: removals.original(start), end: removals.original_end(end) };
        let place = crate::signal::Place { span, line: number, column: 1 };
        let reason =
            if engine.origin.may_signal() { reason } else { Reason::UntrustedOrigin };
        let raw = removals.restore(start, shown);
        let raw = String::from_utf8_lossy(&raw).into_owned();
        engine.miss(index, reason, &name, None, place, raw);
        return;
    }
}

/// Returns the name that a line was meant to start with.
fn misspelled(dialect: &Dialect, line: &[u8]) -> Option<(String, Reason)> {
    if line.is_empty() || line.len() > 200 {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?;
    let head = match &dialect.syntax {
        Syntax::Line(syntax) => {
            let head = text.split(syntax.separator.as_str()).next()?;
            (head.len() < text.len() || is_bare(dialect, head)).then_some(head)?
        }
        Syntax::Block(block) => {
            let (key, name) = text.split_once(':')?;
            plain(key).eq(&plain(&block.key)).then(|| name.trim())?
        }
        Syntax::Trailer(_) => text.trim(),
        Syntax::Fence(_) | Syntax::Status(_) | Syntax::Tag(_) => return None,
    };
    let head = head.trim_matches(|c: char| c == ' ' || "*_#`>-".contains(c));
    dialect.signals.iter().find_map(|def| {
        let reason = resembles(head, &def.name)?;
        Some((def.name.to_string(), reason))
    })
}

/// Returns whether a line without a separator could be a name that takes no subject.
fn is_bare(dialect: &Dialect, head: &str) -> bool {
    let head = plain(head);
    dialect.signals.iter().any(|def| def.subject == Presence::None && plain(&def.name) == head)
}

/// Says how a word differs from a name, if it is close.
fn resembles(word: &str, name: &str) -> Option<Reason> {
    if word == name {
        return None;
    }
    if word.eq_ignore_ascii_case(name) {
        return Some(Reason::WrongCase);
    }
    let (letters, wanted) = (plain(word), plain(name));
    if letters == wanted {
        return Some(Reason::Misspelled);
    }
    let ascii: String = letters.chars().map(look_alike).collect();
    if !letters.is_ascii() && ascii == wanted {
        return Some(Reason::Hidden);
    }
    (wanted.len() >= 8 && within_one(&letters, &wanted)).then_some(Reason::Misspelled)
}

/// Returns the letters and digits of a word in lower case.
fn plain(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Returns the ASCII letter that a Cyrillic or Greek one looks like.
fn look_alike(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'в' | 'β' => 'b',
        'с' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'ε' => 'e',
        'һ' | 'н' => 'h',
        'і' | 'ι' => 'i',
        'ј' => 'j',
        'к' | 'κ' => 'k',
        'м' | 'μ' => 'm',
        'ν' => 'n',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'ѕ' => 's',
        'т' | 'τ' => 't',
        'у' | 'υ' => 'y',
        'х' | 'χ' => 'x',
        c => c,
    }
}

/// Returns whether one inserted, removed or changed letter turns one word into the other.
fn within_one(left: &str, right: &str) -> bool {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let (short, long) = if left.len() <= right.len() { (&left, &right) } else { (&right, &left) };
    let same = short.iter().zip(long.iter()).take_while(|(a, b)| a == b).count();
    match long.len() - short.len() {
        0 => short[same..].iter().skip(1).eq(long[same..].iter().skip(1)),
        1 => short[same..].iter().eq(long[same..].iter().skip(1)),
        _ => false,
    }
}
