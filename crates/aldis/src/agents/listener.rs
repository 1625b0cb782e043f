//! Reads the output of a running agent: signals as soon as they are certain, and text to show.

use aldis_signal::time::Timestamp;
use aldis_signal::{Finding, Message, Origin, Rules, Scanner};
use aldis_transcript::events::{HostEvent, TextEvents, Zone};
use aldis_transcript::{Format, Input, Output, Reader};

/// How many bytes decide at most what kind of stream it is.
const HEAD: usize = 64 * 1024;

/// How long a line may become before it is shown in parts.
const LINE_MAX: usize = 64 * 1024;

/// What was read. Exhaustive: whoever listens judges each.
#[derive(Debug)]
pub(crate) enum Report {
    /// A signal or a near miss.
    Finding {
        /// What was found.
        finding: Box<Finding>,
        /// Which message it stands in.
        message: u64,
    },
    /// Something the host reported about itself.
    Host(HostEvent),
    /// Something to show.
    Text {
        /// Who said it.
        origin: Origin,
        /// What.
        text: String,
        /// Whether it is a message of its own; plain text comes in parts of one.
        whole: bool,
    },
}

/// One agent's output, in chunks.
pub(crate) struct Listener<'r> {
    rules: &'r Rules,
    input: Input,
    kind: Kind<'r>,
    /// What it writes, once that is known.
    format: Option<Format>,
    zone: Zone,
    /// What plain text reports.
    events: TextEvents,
    /// Whether anybody sees what is said.
    shown: bool,
}

enum Kind<'r> {
    /// Too little was said to know.
    Undecided(Beginning<'r>),
    Text(Plain<'r>),
    Stream(Reader<'r>),
}

/// The first bytes. Whatever follows, some of them are text, as what a shell prints before its agent
/// begins to: that is read at once.
#[derive(Default)]
struct Beginning<'r> {
    bytes: Vec<u8>,
    /// How many of them were read as text.
    read_as_text: usize,
    text: Option<Plain<'r>>,
}

/// Plain text: the scanner, and the line that is not complete yet, for showing.
struct Plain<'r> {
    scanner: Box<Scanner<'r>>,
    rest: Vec<u8>,
}

impl<'r> Plain<'r> {
    fn new(rules: &'r Rules) -> Self {
        Self { scanner: Box::new(Scanner::new(rules, Origin::assistant())), rest: Vec::new() }
    }

    fn push(&mut self, bytes: &[u8], is_shown: bool, sink: &mut dyn FnMut(Report)) {
        if is_shown {
            whole_lines(&mut self.rest, bytes, sink);
        }
        self.scanner.push(bytes, &mut |finding| sink(found(finding, 0)));
    }

    fn finish(self, sink: &mut dyn FnMut(Report)) {
        sink(shown(&self.rest));
        self.scanner.finish(&mut |finding| sink(found(finding, 0)));
    }
}

impl<'r> Listener<'r> {
    /// `zone` is the one of clock times that name none; words are given out only if they are `shown`.
    pub(crate) fn new(rules: &'r Rules, input: Input, zone: Zone, shown: bool) -> Self {
        let kind = Kind::Undecided(Beginning::default());
        let events = TextEvents::new(zone.clone());
        Self { rules, input, kind, format: None, zone, events, shown }
    }

    /// Returns what the agent writes, once that is known.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    pub(crate) fn push(&mut self, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Report)) {
        match &mut self.kind {
            Kind::Undecided(beginning) => {
                beginning.bytes.extend_from_slice(bytes);
                let known = match beginning.bytes.len() < HEAD {
                    true => self.input.resolve_so_far(&beginning.bytes, false),
                    false => self.known_at_last(),
                };
                self.go_on(known, now, sink);
            }
            Kind::Text(text) => {
                self.events.push(bytes);
                text.push(bytes, self.shown, sink);
            }
            Kind::Stream(reader) => {
                let (rules, shown) = (self.rules, self.shown);
                reader.push_live(bytes, now, &mut |output| report(rules, output, shown, sink));
            }
        }
    }

    /// The agent has said all.
    pub(crate) fn finish(mut self, now: Timestamp, sink: &mut dyn FnMut(Report)) {
        let known = self.known_at_last();
        self.go_on(known, now, sink);
        let (rules, is_shown) = (self.rules, self.shown);
        match self.kind {
            Kind::Text(text) => {
                text.finish(sink);
                self.events.finish(now).into_iter().for_each(|event| sink(Report::Host(event)));
            }
            Kind::Stream(reader) => {
                reader.finish_live(now, &mut |output| report(rules, output, is_shown, sink));
            }
            Kind::Undecided(_) => {}
        }
    }

    /// Returns what the beginning is, without waiting for more of it, and how much of it is text.
    fn known_at_last(&self) -> (Option<Format>, usize) {
        match &self.kind {
            Kind::Undecided(beginning) => {
                (Some(self.input.resolve(&beginning.bytes)), beginning.read_as_text)
            }
            Kind::Text(_) | Kind::Stream(_) => (None, 0),
        }
    }

    /// Goes on with what is `known` of the beginning: its format, and how much of it is text.
    fn go_on(
        &mut self,
        (format, text): (Option<Format>, usize),
        now: Timestamp,
        sink: &mut dyn FnMut(Report),
    ) {
        let Kind::Undecided(beginning) = &mut self.kind else { return };
        let Beginning { bytes, read_as_text, text: mut plain } = std::mem::take(beginning);
        let text = match format {
            Some(Format::Text) => bytes.len(),
            // Noise that came together with the first line is the reader's.
            Some(_) if read_as_text == 0 => 0,
            _ => text.max(read_as_text),
        };
        if text > read_as_text {
            let plain = plain.get_or_insert_with(|| Plain::new(self.rules));
            self.events.push(&bytes[read_as_text..text]);
            plain.push(&bytes[read_as_text..text], self.shown, sink);
        }
        self.format = format;
        self.kind = match format {
            None => Kind::Undecided(Beginning { bytes, read_as_text: text, text: plain }),
            Some(Format::Text) => Kind::Text(plain.unwrap_or_else(|| Plain::new(self.rules))),
            Some(format) => {
                if let Some(plain) = plain {
                    plain.finish(sink);
                }
                let reader = Reader::new(format).following();
                let reader = reader.with_events(self.zone.clone());
                self.kind = Kind::Stream(if self.shown { reader } else { reader.signals_only() });
                return self.push(&bytes[text..], now, sink);
            }
        };
    }
}

/// Gives out the lines that are complete, and keeps the rest.
fn whole_lines(rest: &mut Vec<u8>, bytes: &[u8], sink: &mut dyn FnMut(Report)) {
    rest.extend_from_slice(bytes);
    let too_long = |length| (length > LINE_MAX).then_some(length);
    let lines = memchr::memrchr(b'\n', rest).map(|at| at + 1);
    if let Some(end) = lines.or_else(|| too_long(rest.len())) {
        sink(shown(&rest[..end]));
        rest.drain(..end);
    }
}

/// Plain text to show, in whole lines: a chunk may end within a letter or a signal.
fn shown(bytes: &[u8]) -> Report {
    let text = String::from_utf8_lossy(bytes).into_owned();
    Report::Text { origin: Origin::assistant(), text, whole: false }
}

fn found(finding: Finding, message: u64) -> Report {
    Report::Finding { finding: Box::new(finding), message }
}

fn report(rules: &Rules, output: Output, shown: bool, sink: &mut dyn FnMut(Report)) {
    let Message { index, origin, text, .. } = match output {
        Output::Event(event) => return sink(Report::Host(event)),
        Output::Message(message) => message,
    };
    if origin.may_signal() {
        for finding in aldis_signal::scan(rules, text.as_bytes(), &origin) {
            sink(found(finding, index));
        }
    }
    if shown {
        sink(Report::Text { origin, text, whole: true });
    }
}

#[cfg(test)]
mod tests {
    //! Streams with something before them, and text that only looks like one.

    use super::*;

    const STARTED: &str = r#"{"type":"system","subtype":"init","session_id":"s1","cwd":"/p"}"#;
    const TOOL: &str = concat!(
        r#"{"type":"user","session_id":"s1","message":{"role":"user","content":[{"type":"tool_result","#,
        r#""tool_use_id":"t","content":"<event topic=\"tool.said\">x</event>"}]}}"#
    );
    const SAID: &str = concat!(
        r#"{"type":"assistant","session_id":"s1","message":{"id":"m","role":"assistant","#,
        r#""content":[{"type":"text","text":"<event topic=\"agent.said\">x</event>"}]}}"#
    );

    /// Hears a text in chunks. Returns all signals, those that were heard before the end, and the words
    /// shown.
    fn heard(text: &str, chunk: usize) -> (Vec<String>, Vec<String>, String) {
        let mut ear = Listener::new(Rules::builtin(), Input::Auto, Zone::utc(), true);
        let (mut signals, mut words, now) = (Vec::new(), String::new(), Timestamp::from_millis(0));
        let mut sink = |said| match said {
            Report::Finding { finding, .. } => {
                signals.extend(finding.signal().map(|signal| signal.raw.clone()));
            }
            Report::Text { text, .. } => words += &text,
            Report::Host(_) => {}
        };
        for bytes in text.as_bytes().chunks(chunk) {
            ear.push(bytes, now, &mut sink);
        }
        let mut late = Vec::new();
        ear.finish(now, &mut |said| match said {
            Report::Finding { finding, .. } => {
                late.extend(finding.signal().map(|signal| signal.raw.clone()));
            }
            Report::Text { text, .. } => words += &text,
            Report::Host(_) => {}
        });
        let all = signals.iter().cloned().chain(late).collect();
        (all, signals, words)
    }

    #[test]
    fn what_a_shell_prints_first_does_not_make_a_stream_text() {
        for noise in ["", "Starting.\n", "Starting.\n\nnpm warn x\n", "{\"level\":\"info\"}\n"] {
            let text = format!("{noise}{STARTED}\n{TOOL}\n{SAID}\n");
            for chunk in [1, 7, 64, usize::MAX] {
                let (all, _, words) = heard(&text, chunk);
                assert_eq!(all, ["<event topic=\"agent.said\">x</event>"], "{text} by {chunk}");
                assert!(!words.contains("\"type\""), "{words} by {chunk}");
                // What comes together with the stream is the reader's, who leaves it out.
                assert!(words.contains(noise) || chunk > 7, "{words} by {chunk}");
            }
        }
    }

    #[test]
    fn text_is_heard_as_it_comes() {
        let event = "<event topic=\"agent.said\">x</event>";
        let more = "And on.\n".repeat(40);
        for text in [format!("{event} {more}"), format!("Working.\n{event}\n{more}")] {
            for chunk in [1, 7, usize::MAX] {
                let (all, at_once, words) = heard(&text, chunk);
                assert_eq!((all.as_slice(), all.as_slice()), (&at_once[..], &[event.into()][..]));
                assert_eq!(words, text, "by {chunk}");
            }
        }
    }

    #[test]
    fn an_answer_may_show_a_line_of_a_stream() {
        let event = "<event topic=\"agent.said\">x</event>";
        let text = format!("It starts with:\n{STARTED}\nThat is all of it.\n{event}\n");
        for chunk in [1, 7, usize::MAX] {
            let (all, _, words) = heard(&text, chunk);
            assert_eq!(all, [event], "by {chunk}");
            assert_eq!(words, text, "by {chunk}");
        }
    }
}
