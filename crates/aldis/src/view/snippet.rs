//! Source lines with the part that matters underlined, as compilers show them.
//!
//! Lines are made harmless for the terminal before anything is measured, long ones are cut around
//! the part that matters, and of many lines only the first and last few are shown.

use std::io::{self, Write};

use aldis_signal::Place;
use unicode_width::UnicodeWidthStr as _;

use crate::view::display;
use crate::view::paint::Paint;

/// A place in a text, ready to be shown.
#[derive(Debug)]
pub(crate) struct Snippet {
    /// The number of the first line.
    first: u64,
    lines: Vec<Segment>,
}

/// One line, cut into what stands before, in and after the place.
#[derive(Debug)]
struct Segment {
    before: String,
    within: String,
    after: String,
}

impl Snippet {
    /// Cuts the lines of a place out of the message it was found in. `None` if it is not there.
    pub(crate) fn new(text: &[u8], place: &Place) -> Option<Self> {
        let start = usize::try_from(place.span.start).ok()?;
        let end = usize::try_from(place.span.end).ok()?.min(text.len());
        // No more of a line than can be shown: some are longer than all that is found in them.
        let near = start.saturating_sub(bytes_of(BEFORE_MAX));
        let before = text.get(near..start)?.iter().rposition(|byte| *byte == b'\n');
        let from = before.map_or(near, |at| near + at + 1);
        let text = text.get(..text.len().min(end + bytes_of(AFTER_MAX)))?;
        // A span that ends in a line break does not reach into the next line.
        let end = if end > start && text.get(end - 1) == Some(&b'\n') { end - 1 } else { end };
        let mut lines = Vec::new();
        let mut line_start = from;
        for line in text.get(from..)?.split(|byte| *byte == b'\n') {
            if line_start > end || lines.len() == LINES_KEPT_MAX {
                break;
            }
            lines.push(Segment::new(line, start.saturating_sub(line_start), end - line_start));
            line_start += line.len() + 1;
        }
        Some(Self { first: place.line, lines })
    }

    /// Writes the lines with an underline and what to say about it.
    pub(crate) fn write(
        &self,
        out: &mut dyn Write,
        paint: Paint,
        gutter: usize,
        label: &str,
    ) -> io::Result<()> {
        let bar = paint.place("|");
        writeln!(out, "{:gutter$} {bar}", "")?;
        let [line] = self.lines.as_slice() else {
            return self.write_many(out, paint, gutter, label);
        };
        self.write_number(out, paint, gutter, 0)?;
        writeln!(out, "{}{}{}", line.before, line.within, line.after)?;
        let underline = "^".repeat(line.within.width().max(1));
        let blank = " ".repeat(line.before.width());
        writeln!(
            out,
            "{:gutter$} {bar} {blank}{}",
            "",
            paint.warn(format_args!("{underline} {label}"))
        )
    }

    /// How wide the line numbers are.
    pub(crate) fn gutter(&self) -> usize {
        (self.first + self.lines.len() as u64).to_string().len() + 1
    }

    fn write_many(
        &self,
        out: &mut dyn Write,
        paint: Paint,
        gutter: usize,
        label: &str,
    ) -> io::Result<()> {
        let last = self.lines.len().saturating_sub(1);
        for (at, line) in self.lines.iter().enumerate() {
            if self.lines.len() > LINES_SHOWN_MAX && at > LINES_SHOWN_MAX / 2 && at < last {
                if at + 1 == last {
                    writeln!(out, "{:gutter$} {}", "", paint.place("..."))?;
                }
                continue;
            }
            self.write_number(out, paint, gutter, at)?;
            let edge = paint.warn(if at == 0 { "/" } else { "|" });
            writeln!(out, "{edge} {}{}{}", line.before, line.within, line.after)?;
        }
        let bar = paint.place("|");
        writeln!(out, "{:gutter$} {bar} {}", "", paint.warn(format_args!("|_^ {label}")))
    }

    fn write_number(
        &self,
        out: &mut dyn Write,
        paint: Paint,
        gutter: usize,
        at: usize,
    ) -> io::Result<()> {
        let number = self.first + at as u64;
        write!(out, "{} {} ", paint.place(format_args!("{number:>gutter$}")), paint.place("|"))
    }
}

impl Segment {
    fn new(line: &[u8], start: usize, end: usize) -> Self {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let end = end.min(line.len());
        let start = start.min(end);
        let show = |bytes: Option<&[u8]>| {
            display::line(&String::from_utf8_lossy(bytes.unwrap_or_default()))
        };
        Self {
            before: keep_end(&show(line.get(..start)), BEFORE_MAX),
            within: keep_start(&show(line.get(start..end)), WITHIN_MAX),
            after: keep_start(&show(line.get(end..)), AFTER_MAX),
        }
    }
}

fn keep_start(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((cut, _)) => text.get(..cut).unwrap_or_default().to_owned() + "…",
        None => text.to_owned(),
    }
}

fn keep_end(text: &str, most: usize) -> String {
    match text.char_indices().rev().nth(most) {
        Some((cut, c)) => "…".to_owned() + text.get(cut + c.len_utf8()..).unwrap_or_default(),
        None => text.to_owned(),
    }
}

/// Returns how many bytes hold more than so many characters, even where the first is cut.
const fn bytes_of(characters: usize) -> usize {
    4 * (characters + 2)
}

const AFTER_MAX: usize = 40;
const BEFORE_MAX: usize = 40;
const WITHIN_MAX: usize = 100;
/// Longer findings are cut off here rather than kept.
const LINES_KEPT_MAX: usize = 1000;
const LINES_SHOWN_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use aldis_signal::Span;

    use super::*;

    fn shown(text: &str, start: usize, end: usize) -> String {
        let line = 1 + text[..start].matches('\n').count() as u64;
        let span = Span { start: start as u64, end: end as u64 };
        let snippet = Snippet::new(text.as_bytes(), &Place { span, line, column: 1 }).unwrap();
        let mut out = Vec::new();
        snippet.write(&mut out, Paint { on: false }, snippet.gutter(), "here").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn underlines_part_of_a_line() {
        insta::assert_snapshot!(shown("one\r\ntwo three\r\n", 9, 14), @r"
           |
         2 | two three
           |     ^^^^^ here
        ");
    }

    #[test]
    fn brackets_several_lines() {
        insta::assert_snapshot!(shown("a\n---\nb: c\n---\n", 2, 15), @r"
           |
         2 | / ---
         3 | | b: c
         4 | | ---
           | |_^ here
        ");
    }

    #[test]
    fn leaves_out_the_middle_of_many_lines() {
        let text: String = (0..20).map(|line| format!("line {line}\n")).collect();
        insta::assert_snapshot!(shown(&text, 0, text.len()), @r"
            |
          1 | / line 0
          2 | | line 1
          3 | | line 2
          4 | | line 3
          5 | | line 4
            ...
         20 | | line 19
            | |_^ here
        ");
    }

    #[test]
    fn measures_what_is_shown() {
        insta::assert_snapshot!(shown("漢字 \x1b[1m<x>", 11, 14), @r"
           |
         1 | 漢字 ␛[1m<x>
           |          ^^^ here
        ");
    }

    #[test]
    fn cuts_long_lines_around_the_place() {
        let text = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let shown = shown(&text, 500, 504);
        assert!(shown.lines().all(|line| line.chars().count() < 120), "{shown}");
        assert!(shown.contains("…aaa") && shown.contains("bbb…"), "{shown}");
    }
}
