//! Listens to a running agent: signals as soon as they are certain, messages to show.

use aldis_core::time::Timestamp;
use aldis_core::transcript::facts::{Fact, Facts, Zone};
use aldis_core::transcript::{Format, Input, Reader, Told};
use aldis_core::{Finding, Message, Origin, Rules, Scanner};

/// How many bytes decide what kind of stream it is.
const HEAD: usize = 4 * 1024;

/// How long a line may become before it is shown in parts.
const LINE_MAX: usize = 64 * 1024;

/// What was heard. Exhaustive: whoever listens judges each.
#[derive(Debug)]
pub(crate) enum Said {
    /// A signal or a near miss.
    Finding {
        /// What was found.
        finding: Box<Finding>,
        /// Which message it stands in.
        message: u64,
    },
    /// Something the host said about itself.
    Fact(Fact),
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
pub(crate) struct Ear<'r> {
    rules: &'r Rules,
    input: Input,
    kind: Kind<'r>,
    /// What it writes, once that is known.
    format: Option<Format>,
    facts: Facts,
    /// Whether anybody sees what is said.
    shown: bool,
}

enum Kind<'r> {
    /// Too little was said to know.
    Undecided(Vec<u8>),
    /// Plain text: the scanner, and the line that is not complete yet, for showing.
    Text(Box<Scanner<'r>>, Vec<u8>),
    Stream(Reader<'r>),
}

impl<'r> Ear<'r> {
    /// `zone` is the one of clock times that name none; words are given out only if they are `shown`.
    pub(crate) fn new(rules: &'r Rules, input: Input, zone: Zone, shown: bool) -> Self {
        let kind = Kind::Undecided(Vec::new());
        Self { rules, input, kind, format: None, facts: Facts::new(input, zone), shown }
    }

    /// Returns what the agent writes, once that is known.
    pub(crate) fn format(&self) -> Option<Format> {
        self.format
    }

    pub(crate) fn push(&mut self, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Said)) {
        if let Kind::Undecided(head) = &mut self.kind {
            head.extend_from_slice(bytes);
            if head.len() < HEAD && !head.contains(&b'\n') {
                return;
            }
            let head = std::mem::take(head);
            self.settle(&head);
            return self.feed(&head, now, sink);
        }
        self.feed(bytes, now, sink);
    }

    /// The agent has said all.
    pub(crate) fn finish(mut self, now: Timestamp, sink: &mut dyn FnMut(Said)) {
        if let Kind::Undecided(head) = &mut self.kind {
            let head = std::mem::take(head);
            self.settle(&head);
            self.feed(&head, now, sink);
        }
        let (rules, is_shown) = (self.rules, self.shown);
        match self.kind {
            Kind::Text(scanner, rest) => {
                sink(shown(&rest));
                scanner.finish(&mut |finding| sink(found(finding, 0)));
                self.facts.finish(now, &mut |fact| sink(Said::Fact(fact)));
            }
            Kind::Stream(reader) => {
                reader.finish_with(self.facts, now, &mut |told| hear(rules, told, is_shown, sink));
            }
            Kind::Undecided(_) => {}
        }
    }

    fn settle(&mut self, head: &[u8]) {
        let format = self.input.resolve(head);
        self.format = Some(format);
        self.kind = match format {
            Format::Text => {
                let scanner = Scanner::new(self.rules, Origin::assistant());
                Kind::Text(Box::new(scanner), Vec::new())
            }
            format => {
                let reader = Reader::new(format, &|_| true).following();
                Kind::Stream(if self.shown { reader } else { reader.signals_only() })
            }
        };
    }

    fn feed(&mut self, bytes: &[u8], now: Timestamp, sink: &mut dyn FnMut(Said)) {
        match &mut self.kind {
            Kind::Text(scanner, rest) => {
                self.facts.push(bytes, now, &mut |fact| sink(Said::Fact(fact)));
                if self.shown {
                    whole_lines(rest, bytes, sink);
                }
                scanner.push(bytes, &mut |finding| sink(found(finding, 0)));
            }
            Kind::Stream(reader) => {
                let (rules, shown) = (self.rules, self.shown);
                let hear = &mut |told| hear(rules, told, shown, sink);
                reader.push_with(bytes, &mut self.facts, now, hear);
            }
            Kind::Undecided(_) => {}
        }
    }
}

/// Gives out the lines that are complete, and keeps the rest.
fn whole_lines(rest: &mut Vec<u8>, bytes: &[u8], sink: &mut dyn FnMut(Said)) {
    rest.extend_from_slice(bytes);
    let too_long = |length| (length > LINE_MAX).then_some(length);
    let lines = memchr::memrchr(b'\n', rest).map(|at| at + 1);
    if let Some(end) = lines.or_else(|| too_long(rest.len())) {
        sink(shown(&rest[..end]));
        rest.drain(..end);
    }
}

/// Plain text to show, in whole lines: a chunk may end within a letter or a signal.
fn shown(bytes: &[u8]) -> Said {
    let text = String::from_utf8_lossy(bytes).into_owned();
    Said::Text { origin: Origin::assistant(), text, whole: false }
}

fn found(finding: Finding, message: u64) -> Said {
    Said::Finding { finding: Box::new(finding), message }
}

fn hear(rules: &Rules, told: Told, shown: bool, sink: &mut dyn FnMut(Said)) {
    let Message { index, origin, text, .. } = match told {
        Told::Fact(fact) => return sink(Said::Fact(fact)),
        Told::Message(message) => message,
    };
    if origin.may_signal() {
        for finding in aldis_core::scan(rules, text.as_bytes(), &origin) {
            sink(found(finding, index));
        }
    }
    if shown {
        sink(Said::Text { origin, text, whole: true });
    }
}
