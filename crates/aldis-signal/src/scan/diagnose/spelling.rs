//! Misspelled names near the end of a message.
//!
//! An agent that means to signal does so at the end. There, and only there, lines are compared with
//! the known names letter by letter, which would cost too much everywhere. What others than the agent
//! say is not looked at: nobody is to be corrected there.

use std::sync::Arc;

use crate::dialect::syntax::tag;
use crate::dialect::{Dialect, Presence, SignalDef, Syntax};
use crate::scan::engine::Engine;
use crate::scan::text::is_deceptive_text;
use crate::scan::window::Window;
use crate::signal::{Place, Reason, Span};
use crate::visible::{Visible, trim_line_end};

/// How much of the end is looked at.
pub(crate) const TAIL_MAX: u64 = 4 * 1024;

/// No name is longer.
const NAME_MAX: usize = 64;
/// Longer lines are prose.
const LINE_MAX: usize = 200;

/// Reports lines of the tail that spell a name wrongly and were not reported otherwise.
pub(crate) fn look_at_tail(engine: &mut Engine<'_>, window: &Window<'_>) {
    let start = window.end().saturating_sub(TAIL_MAX).max(window.base());
    let tail = window.slice(start, window.end());
    // What is found here is reported, too.
    let reported = std::mem::take(&mut engine.report.spans);
    let mut at = 0;
    for line_end in memchr::memchr_iter(b'\n', tail).chain([tail.len()]) {
        let from = start + at as u64;
        let whole = from == 0 || from > start || window.byte(from - 1) == Some(b'\n');
        let shown = trim_line_end(&tail[at..line_end]);
        at = line_end + 1;
        if !whole || shown.is_empty() || shown.len() > LINE_MAX {
            continue;
        }
        let end = from + shown.len() as u64;
        let span = window.offsets.span(from, end);
        let overlaps = |other: &Span| span.start < other.end && other.start < span.end;
        if !reported.iter().any(overlaps) {
            look_at_line(engine, window, (from, shown));
        }
    }
}

fn look_at_line(engine: &mut Engine<'_>, window: &Window<'_>, (start, shown): (u64, &[u8])) {
    let rules = engine.rules;
    let Ok(text) = std::str::from_utf8(shown) else { return };
    for (index, dialect) in rules.dialects().iter().enumerate() {
        let Some((name, reason)) = misspelled(dialect, text) else { continue };
        let raw = window.offsets.restore(start, shown);
        let span = window.offsets.span(start, start + shown.len() as u64);
        let column = span.start - window.offsets.original_end(start) + 1;
        let place = Place { span, line: engine.lines.number(window, start), column };
        return engine.miss(index, reason, name, None, place, raw);
    }
}

/// Returns the name that a line was meant to hold.
fn misspelled(dialect: &Dialect, text: &str) -> Option<(Arc<str>, Reason)> {
    let head = match &dialect.syntax {
        Syntax::Line(syntax) => match text.split_once(syntax.separator.as_str()) {
            Some((head, _)) => head,
            // Such a line may be a name that takes no subject.
            None => return named(dialect, text, |def| def.subject == Presence::None),
        },
        Syntax::Block(block) => match text.split_once(':') {
            Some((key, name)) => {
                let plain = undecorated(key);
                let is_key = plain.eq_ignore_ascii_case(&block.key);
                if let Some(def) = known(dialect, undecorated(name).as_bytes()).filter(|_| is_key) {
                    let reason = if plain == key { Reason::NotAtEnd } else { Reason::Decorated };
                    return Some((def.name.clone(), reason));
                }
                (is_key || resembles(plain, &block.key).is_some()).then_some(name)?
            }
            None => {
                let (key, name) = undecorated(text).split_once([' ', '\t'])?;
                let def = known(dialect, name.trim().as_bytes()).filter(|_| key == block.key)?;
                return Some((def.name.clone(), Reason::MissingSeparator));
            }
        },
        Syntax::Trailer(trailer) => {
            let all = trailer.keyword.matches('_').count() + 1;
            let mut heads = [1, all].into_iter().map(|count| last_words(text, count));
            return heads.find_map(|head| named(dialect, head?, |_| true));
        }
        Syntax::Tag(tag) => {
            return altered_tag(dialect, tag, text).or_else(|| broken_tag(dialect, tag, text));
        }
        Syntax::Status(status) => {
            let name = dialect.signals.first()?.name.clone();
            return is_dressed_up(text, &status.open).then_some((name, Reason::Misspelled));
        }
        Syntax::Fence(fence) => {
            let status = &fence.legacy.as_ref()?.status;
            let name = status.signal.as_str().into();
            return is_dressed_up(text, &status.heading).then_some((name, Reason::Decorated));
        }
    };
    named(dialect, head, |_| true)
}

/// Returns whether a line is the opening line of a block with other marks around its word.
fn is_dressed_up(text: &str, opening: &str) -> bool {
    let is_mark = |c: char| !c.is_alphanumeric() && c != '_';
    text != opening
        && text.len() > opening.trim_matches(is_mark).len()
        && text.trim_matches(is_mark).eq_ignore_ascii_case(opening.trim_matches(is_mark))
}

/// Returns which of the wanted names a head was meant to be.
fn named(
    dialect: &Dialect,
    head: &str,
    is_wanted: fn(&SignalDef) -> bool,
) -> Option<(Arc<str>, Reason)> {
    // Longer heads are sentences.
    if head.len() > 2 * NAME_MAX {
        return None;
    }
    let head = undecorated(head);
    let mut signals = dialect.signals.iter().filter(|def| is_wanted(def));
    signals.find_map(|def| resembles(head, &def.name).map(|how| (def.name.clone(), how)))
}

/// Returns the signal that has a name in any case.
pub(crate) fn known<'d>(dialect: &'d Dialect, name: &[u8]) -> Option<&'d SignalDef> {
    dialect.signals.iter().find(|def| def.name.as_bytes().eq_ignore_ascii_case(name))
}

/// Returns the last words of a text, unless they are several, in small letters and not all there is.
fn last_words(text: &str, count: usize) -> Option<&str> {
    let mut blanks = text.rmatch_indices([' ', '\t']);
    let start = blanks.nth(count - 1).map_or(0, |(at, blank)| at + blank.len());
    let words = &text[start..];
    let plain = count == 1 || start == 0 || !words.chars().any(char::is_lowercase);
    plain.then_some(words)
}

/// Returns words without what stands around them for the eye.
fn undecorated(words: &str) -> &str {
    words.trim_matches(|c: char| c.is_whitespace() || "*_#`>-.".contains(c))
}

/// A tag that is right but for its case, or for what cannot be seen in it.
fn altered_tag(dialect: &Dialect, tag: &tag::Syntax, text: &str) -> Option<(Arc<str>, Reason)> {
    let (open, visible) = (tag.open.as_str(), Visible::of(text));
    let (shown, is_written) = (visible.text(), text.contains(open));
    let opens = |at: &usize| {
        let here = shown.get(*at..*at + open.len());
        here.is_some_and(|here| here.eq_ignore_ascii_case(open) && !(is_written && here == open))
    };
    let at = (0..shown.len()).find(opens)?;
    let (here, behind) = shown[at..].split_at(open.len());
    let word = words(behind).next().unwrap_or_default();
    let sole = tag.text.is_some() || tag.attribute.is_some();
    let def = dialect.signals.iter().find(|def| sole || def.name.eq_ignore_ascii_case(word));
    let reason = if here == open { Reason::Hidden } else { Reason::WrongCase };
    Some((def.map_or_else(|| word.into(), |def| def.name.clone()), reason))
}

/// A line that holds the words of a tag and little else, with other marks around them.
fn broken_tag(dialect: &Dialect, tag: &tag::Syntax, text: &str) -> Option<(Arc<str>, Reason)> {
    let opening = words(&tag.open).next()?;
    let mut line = words(text);
    let (first, name) = (line.next()?, line.next()?);
    let is_tag = |word: &str| word.eq_ignore_ascii_case(opening);
    if text.contains(tag.open.as_str()) || !is_tag(first) || !line.all(is_tag) {
        return None;
    }
    let agreed = tag.text.as_deref() == Some(name);
    let def = dialect.signals.iter().find(|def| *def.name == *name || agreed)?;
    Some((def.name.clone(), Reason::Misspelled))
}

/// Returns what names could be made of.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let split = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    split.filter(|word| !word.is_empty())
}

/// Finds the signal that a word was meant to be, and says how it differs.
pub(crate) fn meant<'d>(dialect: &'d Dialect, word: &str) -> Option<(&'d str, Reason)> {
    let plain = word.trim_matches(['*', '`', '"', '\'']);
    if plain.len() < word.len()
        && let Some(def) = known(dialect, plain.as_bytes())
    {
        return Some((&def.name, Reason::Decorated));
    }
    dialect.signals.iter().find_map(|def| Some((&*def.name, resembles(word, &def.name)?)))
}

/// Says how a word differs from a name, if it is close.
pub(crate) fn resembles(word: &str, name: &str) -> Option<Reason> {
    // A look-alike letter takes two bytes, a separator one.
    let close = word.len() + 8 >= name.len() && word.len() <= 2 * name.len() + 1;
    if word.is_empty() || word == name || !close {
        return None;
    }
    let first = |text: &str| text.as_bytes()[0].to_ascii_lowercase();
    if first(word) != first(name)
        && word.is_ascii()
        && !word[1..].eq_ignore_ascii_case(&name[1..])
        && !name[1..].eq_ignore_ascii_case(word)
    {
        return None;
    }
    if word.eq_ignore_ascii_case(name) {
        return Some(Reason::WrongCase);
    }
    if is_deceptive_text(word.as_bytes()) {
        let seen = letters(word).filter(char::is_ascii_graphic);
        return seen.eq(letters(name)).then_some(Reason::Hidden);
    }
    if letters(word).eq(letters(name)) {
        return Some(Reason::Misspelled);
    }
    if !word.is_ascii() {
        return letters(word).map(look_alike).eq(letters(name)).then_some(Reason::Hidden);
    }
    let (said, meant) = (letters(word).count(), letters(name).count());
    let close = meant >= 8 && said.abs_diff(meant) <= 1;
    (close && within_one(word, name)).then_some(Reason::Misspelled)
}

/// Returns the letters and digits of a word in lower case.
fn letters(word: &str) -> impl Iterator<Item = char> {
    word.chars().filter(|c| !matches!(c, ' ' | '_' | '-')).flat_map(char::to_lowercase)
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
    let (left, right): (Vec<char>, Vec<char>) = (letters(left).collect(), letters(right).collect());
    let (short, long) = if left.len() <= right.len() { (&left, &right) } else { (&right, &left) };
    let same = short.iter().zip(long.iter()).take_while(|(a, b)| a == b).count();
    match long.len() - short.len() {
        0 => short[same..].iter().skip(1).eq(long[same..].iter().skip(1)),
        1 => short[same..].iter().eq(long[same..].iter().skip(1)),
        _ => false,
    }
}
