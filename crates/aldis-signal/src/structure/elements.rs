//! Elements that show text: what stands between their tags is not said.

use std::sync::LazyLock;

use super::Containment;
use super::line::is_list_mark;
use crate::scan::text::{SIGNAL_MAX, is_blank};
use crate::scan::window::Window;

/// The number of an element in the data file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element(usize);

/// The names of the data file.
pub(crate) fn names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let lines = include_str!("elements.txt").lines();
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    });
    &NAMES
}

impl Element {
    fn name(self) -> &'static str {
        names()[self.0]
    }
}

/// Returns the element whose opening tag a text starts with, and where that ends.
pub(crate) fn opening(text: &[u8]) -> Option<(Element, usize)> {
    let rest = text.strip_prefix(b"<")?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let found =
        names().iter().position(|name| rest[..length].eq_ignore_ascii_case(name.as_bytes()));
    let end = rest[length..].iter().position(|byte| matches!(byte, b'>' | b'\n'))? + length;
    let tag = rest.get(end) == Some(&b'>') && end.checked_sub(1).is_some_and(|at| rest[at] != b'/');
    let plain = rest.get(length).is_some_and(|byte| *byte == b'>' || is_blank(*byte));
    (tag && plain).then_some((Element(found?), end + 2))
}

/// Returns the element that a line opens at its start, and where its content starts.
pub(crate) fn opened_by(line: &[u8]) -> Option<(Element, usize)> {
    let at = memchr::memchr(b'<', line)?;
    let starts = is_line_start(&line[..at]);
    let (element, end) = opening(&line[at..]).filter(|_| starts)?;
    Some((element, at + end))
}

/// Returns whether nothing but blanks and a list mark stands before a place on its line.
pub(crate) fn is_line_start(before: &[u8]) -> bool {
    before.iter().all(|byte| is_blank(*byte)) || is_list_mark(before)
}

/// Finds the closing tag of an element.
pub(crate) fn find_close(text: &[u8], element: Element) -> Option<usize> {
    let name = element.name().as_bytes();
    memchr::memmem::find_iter(text, b"</").find(|at| {
        let rest = &text[at + 2..];
        let same = rest.get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name));
        same && rest.get(name.len()).is_some_and(|byte| *byte == b'>' || is_blank(*byte))
    })
}

/// An element that was opened and may be closed.
#[derive(Clone, Copy, Debug)]
struct OpenElement {
    element: Element,
    content: u64,
    /// The line to which it is confined, if it does not start one.
    line: Option<u64>,
    /// How far its closing tag was looked for, and where it is.
    searched: u64,
    close: Option<u64>,
}

/// The elements that are open: at most one of each name.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenElements(Vec<OpenElement>);

/// No closing tag is longer.
const CLOSE_MAX: u64 = 24;

impl OpenElements {
    /// Takes note of an opening tag whose content starts at `content`.
    pub(crate) fn open(
        &mut self,
        window: &Window<'_>,
        element: Element,
        content: u64,
        line: Option<u64>,
    ) {
        if let Some(open) = self.0.iter_mut().find(|open| open.element == element) {
            open.search(window, content);
            let over = open.line.is_some() && open.line != line;
            if open.close.is_none_or(|close| close >= content) && !over {
                return;
            }
            self.0.retain(|open| open.element != element);
        }
        self.0.push(OpenElement { element, content, line, searched: content, close: None });
    }

    /// Returns whether `place`, on the line that starts at `line`, is inside an element.
    pub(crate) fn at(&mut self, window: &Window<'_>, line: u64, place: u64) -> Containment {
        let mut inside = Containment::No;
        self.0.retain_mut(|open| {
            if open.content > place {
                return true;
            }
            if open.line.is_some_and(|own| own != line) {
                return false;
            }
            let limit = place + SIGNAL_MAX;
            open.search(window, limit);
            match open.close {
                Some(close) if close < place => return false,
                Some(_) => inside = Containment::Yes,
                None if window.end() < limit && !window.last && inside == Containment::No => {
                    inside = Containment::NeedMore;
                }
                None => {}
            }
            true
        });
        inside
    }
}

impl OpenElement {
    /// Looks for the closing tag before `to`, as far as the text is at hand.
    fn search(&mut self, window: &Window<'_>, to: u64) {
        if self.close.is_some() {
            return;
        }
        let from = self.searched.max(window.base());
        let text = window.slice(from, to);
        match find_close(text, self.element) {
            Some(at) => self.close = Some(from + at as u64),
            None => {
                self.searched = (from + text.len() as u64).saturating_sub(CLOSE_MAX).max(from);
            }
        }
    }
}
