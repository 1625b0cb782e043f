//! Lines and columns of sorted spans, found in one pass over the text.

use aldis_signal::signal::{Place, Span};

/// Returns a place whose line is not known yet.
pub(super) fn unlined(span: Span) -> Place {
    Place { span, line: 1, column: 1 }
}

/// Counts lines up to each span; the spans must come in order.
#[derive(Debug)]
pub(super) struct Places<'t> {
    text: &'t [u8],
    position: usize,
    line: u64,
    line_start: usize,
}

impl<'t> Places<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text: text.as_bytes(), position: 0, line: 1, line_start: 0 }
    }

    pub(super) fn at(&mut self, span: Span) -> Place {
        let start = usize::try_from(span.start).unwrap_or(usize::MAX).min(self.text.len());
        let passed = self.text.get(self.position..start).unwrap_or_default();
        for newline in memchr::memchr_iter(b'\n', passed) {
            self.line += 1;
            self.line_start = self.position + newline + 1;
        }
        self.position = self.position.max(start);
        Place { span, line: self.line, column: (start - self.line_start) as u64 + 1 }
    }
}
