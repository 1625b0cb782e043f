//! What the targets share: a text and the way it arrives, both under the fuzzer's control.
//!
//! The text comes first and the controls last, so that a plain file with a few bytes behind it is a
//! good seed, and a dictionary word is a dictionary word.

use std::fmt;

use aldis_signal::{Finding, Origin, Rules, Scan, Token};
use arbitrary::{Arbitrary, Result, Unstructured};

/// A text in chunks.
pub struct Input {
    /// Selects among what a target has to offer.
    pub choice: u8,
    /// All of it.
    pub text: Vec<u8>,
    lengths: [u8; LENGTHS],
}

/// How many chunk lengths an input names.
const LENGTHS: usize = 5;
/// `choice`, where to pad, with what, and the lengths.
const CONTROLS: usize = 3 + LENGTHS;
/// Texts up to this length are cut as their input says.
const PLAIN_MAX: usize = 2048;
/// This chunk is all the rest.
const REST: u8 = 255;

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let bytes = u.bytes(u.len())?;
        let (text, controls) = bytes.split_last_chunk().unwrap_or((bytes, &[0; CONTROLS]));
        let [choice, place, padding, lengths @ ..] = *controls;
        Ok(Self { choice, text: padded(text, place, padding), lengths })
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { choice, text, lengths } = self;
        let shown = text[..text.len().min(8192)].escape_ascii();
        write!(f, "choice {choice}, lengths {lengths:?}, {} bytes: {shown}", text.len())
    }
}

impl Input {
    /// Returns the text in chunks whose lengths repeat.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        cut(&self.text, self.lengths)
    }

    /// Returns another text in the same chunks.
    pub fn chunks_of<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        cut(text, self.lengths)
    }
}

fn cut(text: &[u8], lengths: [u8; LENGTHS]) -> impl Iterator<Item = &[u8]> {
    // Tiny chunks of long texts only cost time.
    let unit = text.len().div_ceil(PLAIN_MAX).max(1);
    let endless = lengths.iter().all(|length| *length == 0);
    let mut rest = text;
    lengths.into_iter().cycle().map_while(move |length| {
        if rest.is_empty() {
            return None;
        }
        let whole = endless || length == REST;
        let length = if whole { rest.len() } else { usize::from(length) * unit };
        let chunk;
        (chunk, rest) = rest.split_at(length.min(rest.len()));
        Some(chunk)
    })
}

/// Puts much of the same into the text, because limits are far from anything a fuzzer writes.
fn padded(text: &[u8], place: u8, padding: u8) -> Vec<u8> {
    const UNITS: [&[u8]; 8] =
        [b" ", b"\n", b"a", b"word. ", b"- item\n", b"Key: v\n", b"`", b"\x1b[1m."];
    let size = match padding {
        255 => 66 << 10,
        254 => 17 << 10,
        253 => 5 << 10,
        _ => 0,
    };
    let unit = UNITS[usize::from(place % 8)];
    let (before, after) = text.split_at(text.len() * usize::from(place) / 255);
    [before, &unit.repeat(size / unit.len()), after].concat()
}

/// What one way of scanning gave.
#[derive(Debug)]
pub struct ScanResult {
    /// Sorted by span.
    pub findings: Vec<Finding>,
    /// The most bytes kept between chunks.
    pub kept: usize,
}

/// Scans a text chunk by chunk.
pub fn hear<'t>(
    rules: &Rules,
    chunks: impl Iterator<Item = &'t [u8]>,
    origin: &Origin,
    token: Token,
) -> ScanResult {
    let (mut findings, mut kept) = (Vec::new(), 0);
    let mut scanner = Scan::new(rules).origin(origin.clone()).token(token).stream();
    for chunk in chunks {
        scanner.push(chunk, &mut |finding| findings.push(finding));
        kept = kept.max(scanner.kept());
    }
    scanner.finish(&mut |finding| findings.push(finding));
    findings.sort_by_key(|finding| finding.place().span);
    ScanResult { findings, kept }
}

/// Scans `text` whole and in chunks, and checks everything that must hold of any text.
pub fn check<'t>(
    rules: &Rules,
    text: &'t [u8],
    chunks: impl Iterator<Item = &'t [u8]>,
    origin: &Origin,
    token: Token,
) {
    let scan = Scan::new(rules).origin(origin.clone()).token(token.clone());
    let (whole, alone) = (scan.run(text), scan.signals(text));
    let all = whole.iter().filter_map(Finding::signal);
    assert!(alone.iter().eq(all), "other signals {alone:?} where nothing else is wanted: {whole:?}");
    let heard = hear(rules, chunks, origin, token);
    for (cut, whole) in heard.findings.iter().zip(&whole) {
        assert_eq!(cut, whole, "chunks (left) change what is found in the whole (right)");
    }
    assert_eq!(heard.findings.len(), whole.len(), "chunks (left) change how much is found");
    assert!(heard.kept <= KEPT_MAX, "{} bytes are kept", heard.kept);
    let mut lines = Lines { text, at: 0, line: 1, start: 0 };
    for finding in &whole {
        check_place(text, finding, &mut lines);
        let heard = finding.signal().is_none_or(|signal| signal.origin.may_signal());
        assert!(heard, "a signal from someone who may not signal: {finding:?}");
    }
}

/// Twice the longest signal and a chunk as large as the scanner takes: it lets go of what it does
/// not need when that is half of what it has.
const KEPT_MAX: usize = 2 * (2 * (64 << 10) + (8 << 10)) + (256 << 10);

/// Counts lines from one finding to the next.
struct Lines<'t> {
    text: &'t [u8],
    at: usize,
    line: u64,
    start: usize,
}

impl Lines<'_> {
    fn go(&mut self, to: usize) {
        for (index, byte) in self.text[self.at..to].iter().enumerate() {
            if *byte == b'\n' {
                self.line += 1;
                self.start = self.at + index + 1;
            }
        }
        self.at = to;
    }
}

fn check_place(text: &[u8], finding: &Finding, lines: &mut Lines<'_>) {
    let place = finding.place();
    let (start, end) = (place.span.start as usize, place.span.end as usize);
    assert!(start < end && end <= text.len(), "not a span of the text: {finding:?}");
    let raw = match finding {
        Finding::Signal(signal) => &signal.raw,
        Finding::NearMiss(miss) => &miss.raw,
    };
    let own = String::from_utf8_lossy(&text[start..end]);
    assert_eq!(*raw, own, "`raw` (left) is not the text of the span (right): {finding:?}");
    lines.go(start);
    let counted = (lines.line, (start - lines.start) as u64 + 1);
    assert_eq!((place.line, place.column), counted, "line and column of {finding:?}");
}
