//! Reads what an agent writes, while it works or afterwards: tells the host's format by the beginning,
//! and finds signals message by message.
//!
//! Plain text is one message and streams through the scanner. A transcript goes through its reader,
//! and each message is scanned with its own origin. Nothing is read twice: the bytes that told the
//! format are the first bytes of the message. While more may come, a beginning of notices is read as
//! text and may still be followed by a transcript.

use aldis_signal::time::Timestamp;
use aldis_signal::{Finding, Message, Origin, Place, Rules, Scan, Scanner, Token};
use aldis_transcript::events::{HostEvent, TextEvents, Zone};
use aldis_transcript::{Format, Input, Output, Reader};

/// How many bytes decide at most what kind of stream it is.
const HEAD: usize = 64 * 1024;
/// How long a line may become before it is shown in parts.
const LINE_MAX: usize = 64 * 1024;

/// What was read. Exhaustive: whoever listens judges each.
#[derive(Debug)]
pub(crate) enum Report {
    /// Signals and near misses.
    Found(MessageFindings),
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

/// What was found in one message.
#[derive(Debug)]
pub(crate) struct MessageFindings {
    /// Counts the messages of a transcript from 0; 0 for text.
    pub(crate) message: u64,
    /// The line of the transcript; `None` for text.
    pub(crate) entry: Option<u64>,
    /// What was said, where it is kept.
    pub(crate) text: Vec<u8>,
    /// In text order, except for text that still comes.
    pub(crate) findings: Vec<Finding>,
}

type ReportSink<'s> = dyn FnMut(Report) + 's;

/// Finds signals in a whole message.
pub(crate) type Matcher<'r> = &'r dyn Fn(&[u8], &Origin) -> Vec<Finding>;

/// How to listen.
#[derive(Clone)]
pub(crate) struct Listening<'r> {
    pub(crate) rules: &'r Rules,
    pub(crate) token: Token,
    pub(crate) input: Input,
    /// The sub-agent whose conversation is read, and not the main one.
    pub(crate) agent: Option<&'r str>,
    /// Whether near misses are reported.
    pub(crate) near_misses: bool,
    /// Whether messages of others than agents are looked at.
    pub(crate) foreign: bool,
    /// Whether more may come at any time: then findings are reported as soon as they are certain.
    pub(crate) live: bool,
    /// Whether findings come with the text around them.
    pub(crate) keep_text: bool,
    /// Whether texts are reported, to be shown.
    pub(crate) words: bool,
    /// What finds signals, if not the scanner.
    pub(crate) matcher: Option<Matcher<'r>>,
    /// Whether a line of a transcript may hold a signal; may say yes too often.
    pub(crate) may_matter: &'r dyn Fn(&[u8]) -> bool,
}

impl<'r> Listening<'r> {
    /// Listens to an agent at work.
    pub(crate) fn live(rules: &'r Rules, input: Input, words: bool) -> Self {
        Self {
            rules,
            token: Token::Off,
            input,
            agent: None,
            near_misses: true,
            foreign: false,
            live: true,
            keep_text: false,
            words,
            matcher: None,
            may_matter: &|_| true,
        }
    }

    fn reader(&self, format: Format) -> Reader<'r> {
        let mut reader = Reader::new(format).with_filter(self.may_matter);
        if let Some(agent) = self.agent {
            reader = reader.of_agent(agent);
        }
        if !self.foreign && !self.words {
            reader = reader.signals_only();
        }
        if self.live { reader.following() } else { reader }
    }

    /// Reports what is in one message of a transcript.
    fn message(&self, message: Message, sink: &mut ReportSink<'_>) {
        let Message { index, entry, origin, mut text, .. } = message;
        if self.foreign || origin.may_signal() {
            let findings = self.scan(text.as_bytes(), &origin);
            if !findings.is_empty() {
                let text = if self.keep_text { std::mem::take(&mut text) } else { String::new() };
                let text = text.into_bytes();
                sink(Report::Found(MessageFindings { message: index, entry, text, findings }));
            }
        }
        if self.words {
            sink(Report::Text { origin, text, whole: true });
        }
    }

    /// Scans a whole message. Findings come in text order.
    fn scan(&self, text: &[u8], origin: &Origin) -> Vec<Finding> {
        let scan = Scan::new(self.rules).origin(origin.clone()).token(self.token.clone());
        match self.matcher {
            Some(matcher) => matcher(text, origin),
            None if self.near_misses => scan.run(text),
            None => scan.signals_only().run(text),
        }
    }

    fn keep(&self, findings: &mut Vec<Finding>, finding: Finding) {
        if self.near_misses || finding.signal().is_some() {
            findings.push(finding);
        }
    }
}

/// What somebody writes, in chunks.
pub(crate) struct Listener<'r> {
    how: Listening<'r>,
    /// The first bytes, until they tell what it is, and how many of them were read as text: as what a
    /// shell prints before its agent begins.
    beginning: Option<(Vec<u8>, usize)>,
    text: PlainText<'r>,
    transcript: Option<Reader<'r>>,
    /// What it is, once that is known.
    format: Option<Format>,
    /// The time zone of what a host reports about itself, where somebody wants to know that, and what
    /// plain text reports.
    events: Option<(Zone, TextEvents)>,
}

impl<'r> Listener<'r> {
    /// `zone` is the one of clock times that name none, where somebody wants to know what a host reports
    /// about itself.
    pub(crate) fn new(how: Listening<'r>, zone: Option<&Zone>) -> Self {
        let (beginning, text) = (Some((Vec::new(), 0)), PlainText::default());
        let events = zone.map(|zone| (zone.clone(), TextEvents::new(zone.clone())));
        Self { how, beginning, text, transcript: None, format: None, events }
    }

    /// Returns what the agent writes, once that is known.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    /// Reads the next chunk, which came at this time.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Timestamp, sink: &mut ReportSink<'_>) {
        let Some((head, read_as_text)) = &mut self.beginning else {
            return self.read(bytes, now, sink);
        };
        head.extend_from_slice(bytes);
        let known = if self.how.live && head.len() < HEAD {
            self.how.input.resolve_so_far(head, false)
        } else {
            (Some(self.how.input.resolve(head)), *read_as_text)
        };
        self.go_on(known, now, sink);
    }

    /// Takes a silence as the end of a message of plain text.
    pub(crate) fn pause(&mut self, sink: &mut ReportSink<'_>) {
        if let Some((head, read_as_text)) = &self.beginning
            && *read_as_text < head.len()
        {
            let known = self.how.input.resolve_so_far(head, true);
            self.go_on(known, NO_TIME, sink);
        }
        self.text.end(&self.how, sink);
    }

    /// Returns how much of a plain text is kept.
    pub(crate) fn kept(&self) -> usize {
        self.text.whole.len()
    }

    /// There will be no more. Returns how many lines of a transcript could not be read.
    pub(crate) fn finish(mut self, now: Timestamp, sink: &mut ReportSink<'_>) -> u64 {
        if let Some((head, read_as_text)) = &self.beginning
            && *read_as_text < head.len()
        {
            let known = (Some(self.how.input.resolve(head)), *read_as_text);
            self.go_on(known, now, sink);
        }
        let Self { how, mut text, transcript, events, .. } = self;
        text.end(&how, sink);
        match (transcript, events) {
            (Some(reader), Some(_)) => {
                reader.finish_live(now, &mut |output| take(&how, output, sink));
                0
            }
            (Some(reader), None) => {
                reader.finish_counting(&mut |message| how.message(message, sink))
            }
            (None, events) => {
                let events = events.map(|(_, events)| events.finish(now));
                events.into_iter().flatten().for_each(|event| sink(Report::Host(event)));
                0
            }
        }
    }

    /// Goes on with what is `known` of the beginning: its format, and how much of it is text.
    fn go_on(
        &mut self,
        (format, text): (Option<Format>, usize),
        now: Timestamp,
        sink: &mut ReportSink<'_>,
    ) {
        let Some((head, read_as_text)) = self.beginning.take() else { return };
        let text = match format {
            Some(Format::Text) => head.len(),
            // Noise that came together with the first line is the reader's.
            Some(_) if read_as_text == 0 => 0,
            _ => text.max(read_as_text),
        };
        if text > read_as_text {
            self.read_text(&head[read_as_text..text], sink);
        }
        self.format = format;
        match format {
            None => self.beginning = Some((head, text)),
            Some(Format::Text) => {}
            Some(format) => {
                let (before, behind) = head.split_at(text);
                self.text.end(&self.how, sink);
                let mut reader = self.how.reader(format);
                if let Some((zone, _)) = &self.events {
                    reader = reader.with_events(zone.clone());
                }
                // What was read as text stays text; only its lines are counted by the reader.
                reader.push(&vec![b'\n'; newlines(before)], &mut drop);
                self.transcript = Some(reader);
                self.read(behind, now, sink);
            }
        }
    }

    /// Reads on, once it is known what it is.
    fn read(&mut self, bytes: &[u8], now: Timestamp, sink: &mut ReportSink<'_>) {
        let how = &self.how;
        match &mut self.transcript {
            None => self.read_text(bytes, sink),
            Some(reader) => reader.push_live(bytes, now, &mut |output| take(how, output, sink)),
        }
    }

    fn read_text(&mut self, bytes: &[u8], sink: &mut ReportSink<'_>) {
        if let Some((_, events)) = &mut self.events {
            events.push(bytes);
        }
        self.text.push(&self.how, bytes, sink);
    }
}

fn take(how: &Listening<'_>, output: Output, sink: &mut ReportSink<'_>) {
    match output {
        Output::Event(event) => sink(Report::Host(event)),
        // Nobody asked for them.
        Output::Activity(_) => {}
        Output::Message(message) => how.message(message, sink),
    }
}

/// Text that streams through a scanner. A pause ends one message and the next bytes begin another,
/// while places go on counting from the beginning of the input.
#[derive(Default)]
struct PlainText<'r> {
    scanner: Option<Box<Scanner<'r>>>,
    findings: Vec<Finding>,
    /// Nothing that is still to be found starts before.
    settled: u64,
    /// Where the current message starts.
    base: Position,
    here: Position,
    /// The line that is not complete yet, for showing.
    line: Vec<u8>,
    /// All of it, where it is scanned at its end.
    whole: Vec<u8>,
}

impl<'r> PlainText<'r> {
    fn push(&mut self, how: &Listening<'r>, bytes: &[u8], sink: &mut ReportSink<'_>) {
        if how.keep_text || how.matcher.is_some() {
            return self.whole.extend_from_slice(bytes);
        }
        if how.words {
            whole_lines(&mut self.line, bytes, sink);
        }
        let new = || Box::new(Scan::new(how.rules).token(how.token.clone()).stream());
        let scanner = self.scanner.get_or_insert_with(new);
        let findings = &mut self.findings;
        scanner.push(bytes, &mut |finding| how.keep(findings, finding));
        if !how.live {
            let settled = scanner.settled();
            return self.settle(settled, sink);
        }
        self.here.advance(bytes);
        let findings = std::mem::take(&mut self.findings);
        self.report(findings, sink);
    }

    /// Reports what can be put in text order already, so that a long text takes no more memory than a
    /// short one.
    fn settle(&mut self, settled: u64, sink: &mut ReportSink<'_>) {
        if settled == self.settled {
            return;
        }
        self.settled = settled;
        let start = |finding: &Finding| finding.place().span.start;
        self.findings.sort_by_key(start);
        let waiting = self.findings.partition_point(|finding| start(finding) < settled);
        let waiting = self.findings.split_off(waiting);
        let findings = std::mem::replace(&mut self.findings, waiting);
        self.report(findings, sink);
    }

    /// Ends the message, if one has begun.
    fn end(&mut self, how: &Listening<'r>, sink: &mut ReportSink<'_>) {
        if !self.whole.is_empty() {
            let text = std::mem::take(&mut self.whole);
            let findings = how.scan(&text, &Origin::assistant());
            sink(Report::Found(MessageFindings { message: 0, entry: None, text, findings }));
        }
        if !self.line.is_empty() {
            sink(shown(&std::mem::take(&mut self.line)));
        }
        let Some(scanner) = self.scanner.take() else { return };
        let findings = &mut self.findings;
        scanner.finish(&mut |finding| how.keep(findings, finding));
        self.settle(u64::MAX, sink);
        self.settled = 0;
        self.base = self.here;
    }

    fn report(&self, mut findings: Vec<Finding>, sink: &mut ReportSink<'_>) {
        if !findings.is_empty() {
            findings.iter_mut().for_each(|finding| self.base.shift(finding));
            let text = Vec::new();
            sink(Report::Found(MessageFindings { message: 0, entry: None, text, findings }));
        }
    }
}

/// A place in the input: how much stands before it.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    bytes: u64,
    lines: u64,
    /// Bytes on the current line.
    columns: u64,
}

impl Position {
    fn advance(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.lines += newlines(bytes) as u64;
        match memchr::memrchr(b'\n', bytes) {
            Some(newline) => self.columns = (bytes.len() - newline - 1) as u64,
            None => self.columns += bytes.len() as u64,
        }
    }

    /// Counts a finding's place from the beginning of the input.
    fn shift(&self, finding: &mut Finding) {
        let place: &mut Place = match finding {
            Finding::Signal(signal) => {
                signal.body_end = signal.body_end.map(|end| end + self.bytes);
                &mut signal.place
            }
            Finding::NearMiss(miss) => &mut miss.place,
        };
        if place.line == 1 {
            place.column += self.columns;
        }
        place.line += self.lines;
        place.span.start += self.bytes;
        place.span.end += self.bytes;
    }
}

/// Counts the ends of lines.
pub(crate) fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Gives out the lines that are complete, and keeps the rest.
fn whole_lines(rest: &mut Vec<u8>, bytes: &[u8], sink: &mut ReportSink<'_>) {
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

/// Only what hosts report about themselves depends on when something came.
pub(crate) const NO_TIME: Timestamp = Timestamp::from_millis(0);

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

    fn raw(found: &MessageFindings) -> Vec<String> {
        let signals = found.findings.iter().filter_map(Finding::signal);
        signals.map(|signal| signal.raw.clone()).collect()
    }

    /// Hears a text in chunks. Returns all signals, those that were heard before the end, and the words
    /// shown.
    fn heard(text: &str, chunk: usize) -> (Vec<String>, Vec<String>, String) {
        let how = Listening::live(Rules::builtin(), Input::Auto, true);
        let mut listener = Listener::new(how, Some(&Zone::utc()));
        let (mut signals, mut words, now) = (Vec::new(), String::new(), Timestamp::from_millis(0));
        let mut sink = |said| match said {
            Report::Found(found) => signals.extend(raw(&found)),
            Report::Text { text, .. } => words += &text,
            Report::Host(_) => {}
        };
        for bytes in text.as_bytes().chunks(chunk) {
            listener.push(bytes, now, &mut sink);
        }
        let mut late = Vec::new();
        listener.finish(now, &mut |said| match said {
            Report::Found(found) => late.extend(raw(&found)),
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
