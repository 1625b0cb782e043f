//! From bytes to findings, message by message.
//!
//! Plain text is one message and streams through the scanner. A transcript goes through its reader,
//! and each message is scanned with its own origin. Nothing is read twice: the format is detected on
//! the first piece, which is then the first piece of the message. While an input is followed, a first
//! piece of notices is told as text, and may still be the beginning of a transcript.

use aldis_signal::{Finding, Message, Origin, Place, Scanner, scan};
use aldis_transcript::{Format, Reader};

use crate::app::reference;
use crate::app::selection::{Matching, Selection};
use crate::app::source::{CHUNK, Next, Source};
use crate::error::CommandError;

/// One message and what was found in it.
#[derive(Debug)]
pub(crate) struct Heard<'t> {
    /// Counts the messages of a transcript from 0; 0 for text.
    pub(crate) message: u64,
    /// The line of the transcript file; `None` for text.
    pub(crate) entry: Option<u64>,
    /// What was said, where it was kept.
    pub(crate) text: &'t [u8],
    /// In text order, except for text that is followed.
    pub(crate) findings: Vec<Finding>,
}

/// How much was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    /// Only counted where [`Hearing::keep_text`] is set.
    pub(crate) lines: u64,
    /// Whether the last line has no end.
    pub(crate) open: bool,
    /// Lines of a transcript that could not be read.
    pub(crate) skipped: u64,
}

/// Why an input was not heard to its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It could not be read. Others may be.
    Reading(CommandError),
    /// What was found could not be shown.
    Showing(CommandError),
}

/// How to listen.
#[derive(Debug)]
pub(crate) struct Hearing<'s> {
    pub(crate) selection: &'s Selection,
    /// Whether near misses are wanted.
    pub(crate) near_misses: bool,
    /// Whether the input may grow.
    pub(crate) follow: bool,
    /// Whether findings come with the text around them.
    pub(crate) keep_text: bool,
}

type Sink<'f> = dyn FnMut(Heard<'_>) -> Result<(), CommandError> + 'f;

impl Hearing<'_> {
    /// Listens to one input until it ends.
    ///
    /// # Errors
    ///
    /// Fails if the input cannot be read, or as soon as `sink` fails.
    pub(crate) fn listen(
        &self,
        source: &mut Source,
        sink: &mut Sink<'_>,
    ) -> Result<Amount, Stopped> {
        let may_matter = |line: &[u8]| match self.selection.matching {
            Matching::Careful => self.selection.rules.may_match_json(line),
            Matching::Reference => true,
        };
        let mut head = Head::default();
        let mut amount = Amount::default();
        let mut ear: Option<Ear<'_>> = None;
        loop {
            let room = head.room();
            match source.next(room).map_err(Stopped::Reading)? {
                Next::Bytes(count) => {
                    let bytes = room.get(..count).unwrap_or_default();
                    amount.add(bytes, self.keep_text);
                    if let Some(transcript @ Ear::Transcript(_)) = &mut ear {
                        self.push(transcript, bytes, source, sink)?;
                        continue;
                    }
                    head.held += count;
                    let known = self.known(&head, source, false)?;
                    self.hear_on(&mut head, &mut ear, known, &may_matter, source, sink)?;
                }
                Next::Pause => {
                    if head.is_open && head.told < head.held {
                        let known = self.known(&head, source, true)?;
                        self.hear_on(&mut head, &mut ear, known, &may_matter, source, sink)?;
                    }
                    if let Some(Ear::Text(text)) = &mut ear {
                        text.end(self, sink).map_err(Stopped::Showing)?;
                    }
                }
                next @ (Next::Restart | Next::End) => {
                    if head.told < head.held {
                        let known = (Some(self.selection.input.resolve(head.bytes())), head.told);
                        self.hear_on(&mut head, &mut ear, known, &may_matter, source, sink)?;
                    }
                    self.finish(ear.take(), &mut amount, sink)?;
                    if matches!(next, Next::End) {
                        return Ok(amount);
                    }
                    head = Head::default();
                }
            }
        }
    }

    /// Returns the format if the beginning tells it, and how much of that is text in any case.
    fn known(
        &self,
        head: &Head,
        source: &Source,
        silent: bool,
    ) -> Result<(Option<Format>, usize), Stopped> {
        if !head.is_open {
            return Ok((Some(Format::Text), 0));
        }
        source.check(head.bytes()).map_err(Stopped::Reading)?;
        let input = self.selection.input;
        if self.follow && head.held < HEAD_MAX {
            return Ok(input.resolve_so_far(head.bytes(), silent));
        }
        // An input that is read once comes in pieces as large as the buffer.
        Ok((Some(input.resolve(head.bytes())), head.told))
    }

    /// Passes on what is `known` of the beginning: its format, and where text ends in it.
    fn hear_on<'a>(
        &'a self,
        head: &mut Head,
        ear: &mut Option<Ear<'a>>,
        (format, text): (Option<Format>, usize),
        may_matter: &'a dyn Fn(&[u8]) -> bool,
        source: &Source,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        let (before, behind) = match format {
            None => head.split(text),
            Some(Format::Text) => head.split(head.held),
            // Noise that came together with the first line was not told, and is the reader's.
            Some(_) if head.told == 0 => head.split(0),
            Some(_) => head.split(text),
        };
        if !before.is_empty() {
            let ear = ear.get_or_insert_with(|| self.ear(Format::Text, may_matter));
            self.push(ear, before, source, sink)?;
        }
        match format {
            None => head.told = head.told.max(text),
            Some(Format::Text) => head.close(),
            Some(format) => {
                // What was told as text stays told; only its lines are counted by the reader.
                let told = head.bytes().strip_suffix(behind).unwrap_or_default();
                let lines: Vec<u8> = told.iter().copied().filter(|byte| *byte == b'\n').collect();
                self.finish(ear.take(), &mut Amount::default(), sink)?;
                let ear = ear.insert(self.ear(format, may_matter));
                self.push(ear, &lines, source, sink)?;
                self.push(ear, behind, source, sink)?;
                head.close();
            }
        }
        Ok(())
    }

    fn ear<'a>(&'a self, format: Format, may_matter: &'a dyn Fn(&[u8]) -> bool) -> Ear<'a> {
        let whole = self.keep_text || self.selection.matching == Matching::Reference;
        if format == Format::Text {
            return if whole { Ear::Whole(Vec::new()) } else { Ear::Text(Box::default()) };
        }
        let mut reader = Reader::new(format).with_filter(may_matter);
        if self.selection.matching == Matching::Careful && !self.near_misses {
            reader = reader.signals_only();
        }
        if let Some(agent) = &self.selection.agent {
            reader = reader.of_agent(agent);
        }
        Ear::Transcript(if self.follow { reader.following() } else { reader })
    }

    fn push<'a>(
        &'a self,
        ear: &mut Ear<'a>,
        bytes: &[u8],
        source: &Source,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        match ear {
            Ear::Text(text) => text.push(self, bytes, sink).map_err(Stopped::Showing),
            Ear::Transcript(reader) => {
                let mut result = Ok(());
                reader.push(bytes, &mut |message| self.hear(&mut result, message, sink));
                result.map_err(Stopped::Showing)
            }
            Ear::Whole(text) if text.len() + bytes.len() > TEXT_BYTES_MAX => {
                let path = source.path.display();
                let error = format!("`{path}`: more than {} MiB of text", TEXT_BYTES_MAX >> 20);
                Err(Stopped::Reading(
                    CommandError::new(error).with_help("`aldis scan` reads text of any length"),
                ))
            }
            Ear::Whole(text) => {
                text.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn finish(
        &self,
        ear: Option<Ear<'_>>,
        amount: &mut Amount,
        sink: &mut Sink<'_>,
    ) -> Result<(), Stopped> {
        match ear {
            None => Ok(()),
            Some(Ear::Text(mut text)) => text.end(self, sink),
            Some(Ear::Transcript(reader)) => {
                let mut result = Ok(());
                amount.skipped +=
                    reader.finish_counting(&mut |message| self.hear(&mut result, message, sink));
                result
            }
            Some(Ear::Whole(text)) => {
                let findings = self.scan(&text, &Origin::assistant());
                sink(Heard { message: 0, entry: None, text: &text, findings })
            }
        }
        .map_err(Stopped::Showing)
    }

    /// Scans one message of a transcript, unless showing an earlier one failed.
    fn hear(&self, result: &mut Result<(), CommandError>, message: Message, sink: &mut Sink<'_>) {
        let careful = self.selection.matching == Matching::Careful;
        let heard_in_vain = careful && !self.near_misses && !message.origin.may_signal();
        if result.is_err() || heard_in_vain {
            return;
        }
        let findings = self.scan(message.text.as_bytes(), &message.origin);
        if !findings.is_empty() {
            let text = message.text.as_bytes();
            let heard = Heard { message: message.index, entry: message.entry, text, findings };
            *result = sink(heard);
        }
    }

    /// Scans a whole message. Findings come in text order.
    fn scan(&self, text: &[u8], origin: &Origin) -> Vec<Finding> {
        let Selection { rules, token, matching, .. } = self.selection;
        let signals = match matching {
            Matching::Careful if self.near_misses => {
                return scan::scan_with(rules, text, origin, token.clone());
            }
            Matching::Careful => scan::signals(rules, text, origin, token.clone()),
            Matching::Reference => {
                reference::scan(rules.dialects(), &String::from_utf8_lossy(text), origin)
            }
        };
        signals.into_iter().map(Finding::from).collect()
    }

    fn scanner(&self, origin: Origin) -> Scanner<'_> {
        Scanner::new(&self.selection.rules, origin).with_token(self.selection.token.clone())
    }

    fn keep(&self, findings: &mut Vec<Finding>, finding: Finding) {
        if self.near_misses || finding.signal().is_some() {
            findings.push(finding);
        }
    }
}

impl Amount {
    fn add(&mut self, bytes: &[u8], count_lines: bool) {
        self.bytes += bytes.len() as u64;
        if let (true, Some(last)) = (count_lines, bytes.last()) {
            self.lines += newlines(bytes);
            self.open = *last != b'\n';
        }
    }
}

/// What came first, as long as it may turn out to be a transcript; then the room for the next piece
/// of text.
struct Head {
    buffer: Vec<u8>,
    held: usize,
    /// How much of that has been told as text.
    told: usize,
    /// Whether the format may still change.
    is_open: bool,
}

impl Default for Head {
    fn default() -> Self {
        Self { buffer: vec![0; CHUNK], held: 0, told: 0, is_open: true }
    }
}

impl Head {
    fn room(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.held..).unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.held).unwrap_or_default()
    }

    /// Splits what was not told yet.
    fn split(&self, at: usize) -> (&[u8], &[u8]) {
        let at = at.clamp(self.told, self.held);
        let (before, behind) = self.bytes().split_at(at);
        (before.get(self.told..).unwrap_or_default(), behind)
    }

    fn close(&mut self) {
        (self.held, self.told, self.is_open) = (0, 0, false);
    }
}

/// What is listening to the bytes of one input.
enum Ear<'a> {
    Text(Box<TextEar<'a>>),
    Transcript(Reader<'a>),
    /// Text that is kept to its end before it is scanned.
    Whole(Vec<u8>),
}

/// Text that streams through a scanner. Where it is followed, a pause ends one message and the next
/// bytes begin another, while places go on counting from the beginning of the input.
#[derive(Default)]
struct TextEar<'a> {
    scanner: Option<Scanner<'a>>,
    findings: Vec<Finding>,
    /// Nothing that is still to be found starts before.
    settled: u64,
    /// Where the current message starts.
    base: Position,
    here: Position,
}

impl<'a> TextEar<'a> {
    fn push(
        &mut self,
        hearing: &'a Hearing<'_>,
        bytes: &[u8],
        sink: &mut Sink<'_>,
    ) -> Result<(), CommandError> {
        let scanner = self.scanner.get_or_insert_with(|| hearing.scanner(Origin::assistant()));
        let findings = &mut self.findings;
        scanner.push(bytes, &mut |finding| hearing.keep(findings, finding));
        if !hearing.follow {
            let settled = scanner.settled();
            return self.settle(settled, sink);
        }
        self.here.advance(bytes);
        let findings = std::mem::take(&mut self.findings);
        self.show(findings, sink)
    }

    /// Shows what can be put in text order already, so that a long text takes no more memory than a
    /// short one.
    fn settle(&mut self, settled: u64, sink: &mut Sink<'_>) -> Result<(), CommandError> {
        if settled == self.settled {
            return Ok(());
        }
        self.settled = settled;
        let start = |finding: &Finding| finding.place().span.start;
        self.findings.sort_by_key(start);
        let waiting = self.findings.partition_point(|finding| start(finding) < settled);
        let waiting = self.findings.split_off(waiting);
        let findings = std::mem::replace(&mut self.findings, waiting);
        self.show(findings, sink)
    }

    /// Ends the message, if one has begun.
    fn end(&mut self, hearing: &Hearing<'_>, sink: &mut Sink<'_>) -> Result<(), CommandError> {
        let Some(scanner) = self.scanner.take() else { return Ok(()) };
        let findings = &mut self.findings;
        scanner.finish(&mut |finding| hearing.keep(findings, finding));
        self.settle(u64::MAX, sink)?;
        self.settled = 0;
        self.base = self.here;
        Ok(())
    }

    fn show(&self, mut findings: Vec<Finding>, sink: &mut Sink<'_>) -> Result<(), CommandError> {
        if findings.is_empty() {
            return Ok(());
        }
        findings.iter_mut().for_each(|finding| self.base.shift(finding));
        sink(Heard { message: 0, entry: None, text: &[], findings })
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
        self.lines += newlines(bytes);
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => self.columns = (bytes.len() - newline - 1) as u64,
            None => self.columns += bytes.len() as u64,
        }
    }

    /// Counts a finding's place from the beginning of the input.
    fn shift(&self, finding: &mut Finding) {
        let place = match finding {
            Finding::Signal(signal) => {
                signal.body_end = signal.body_end.map(|end| end + self.bytes);
                &mut signal.place
            }
            Finding::NearMiss(miss) => &mut miss.place,
        };
        self.shift_place(place);
    }

    fn shift_place(&self, place: &mut Place) {
        if place.line == 1 {
            place.column += self.columns;
        }
        place.line += self.lines;
        place.span.start += self.bytes;
        place.span.end += self.bytes;
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// How much of a beginning is waited for; the rest of the buffer is room for what comes next.
const HEAD_MAX: usize = CHUNK / 2;
/// The longest text that is kept whole; transcripts are kept message by message.
const TEXT_BYTES_MAX: usize = 64 << 20;
