//! Reads inputs to their end and gives out what was found, for `scan` and `explain`.

use aldis_signal::{Finding, Origin};

use crate::agents::listener::{Listener, Listening, MessageFindings, NO_TIME, Report, newlines};
use crate::app::reference;
use crate::app::selection::{Matching, Selection};
use crate::app::source::{InputSource, Next};
use crate::error::CommandError;
use crate::settings::clock;

/// The longest text that is kept whole; transcripts are kept message by message.
const TEXT_BYTES_MAX: usize = 64 << 20;
/// How much is read at once.
const ROOM: usize = 256 * 1024;
/// How many bytes tell a compressed file.
const MAGIC_MAX: usize = 4;

/// How much was read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    /// Only counted where [`ScanOptions::keep_text`] is set.
    pub(crate) lines: u64,
    /// Whether the last line has no end.
    pub(crate) open: bool,
    /// Lines of a transcript that could not be read.
    pub(crate) skipped: u64,
    /// Whether it begins as no text does.
    pub(crate) binary: bool,
}

/// How far is looked for what no text contains.
const HEAD: usize = 8 * 1024;

/// Why an input was not read to its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It could not be read. Others may be.
    Reading(CommandError),
    /// What was found could not be shown.
    Showing(CommandError),
}

/// What to look for.
#[derive(Debug)]
pub(crate) struct ScanOptions<'s> {
    pub(crate) selection: &'s Selection,
    /// Whether near misses are wanted.
    pub(crate) near_misses: bool,
    /// Whether the input may grow.
    pub(crate) follow: bool,
    /// Whether findings come with the text around them.
    pub(crate) keep_text: bool,
}

impl ScanOptions<'_> {
    /// Reads one input to its end.
    ///
    /// # Errors
    ///
    /// Fails if the input cannot be read, or as soon as `sink` fails.
    pub(crate) fn read(
        &self,
        source: &mut InputSource,
        sink: &mut dyn FnMut(MessageFindings) -> Result<(), CommandError>,
    ) -> Result<Amount, Stopped> {
        let Selection { rules, token, input, agent, matching, .. } = self.selection;
        let is_reference = *matching == Matching::Reference;
        let reference = |text: &[u8], origin: &Origin| {
            let text = String::from_utf8_lossy(text);
            let signals = reference::scan(rules.dialects(), &text, origin);
            signals.into_iter().map(Finding::from).collect()
        };
        let how = Listening {
            rules,
            token: token.clone(),
            input: *input,
            agent: agent.as_deref(),
            near_misses: self.near_misses,
            foreign: self.near_misses || is_reference,
            live: self.follow,
            keep_text: self.keep_text,
            words: false,
            matcher: if is_reference { Some(&reference) } else { None },
            may_matter: &|line| is_reference || rules.may_match_json(line),
        };
        let mut amount = Amount::default();
        let mut listener = Listener::new(how.clone(), None);
        let (mut beginning, mut room) = (Vec::new(), vec![0; ROOM]);
        loop {
            let next = source.next(&mut room).map_err(Stopped::Reading)?;
            let mut shown = Ok(());
            let mut report = |report: Report| match report {
                Report::Found(found) if shown.is_ok() => shown = sink(found),
                _ => {}
            };
            match next {
                Next::Bytes(count) => {
                    let bytes = room.get(..count).unwrap_or_default();
                    if amount.bytes == 0 {
                        amount.binary = bytes.iter().take(HEAD).any(|byte| *byte == 0);
                    }
                    amount.add(bytes, self.keep_text);
                    if beginning.len() < MAGIC_MAX {
                        beginning.extend(bytes.iter().take(MAGIC_MAX - beginning.len()));
                        source.check(&beginning).map_err(Stopped::Reading)?;
                    }
                    listener.push(bytes, NO_TIME, &mut report);
                    if listener.kept() > TEXT_BYTES_MAX {
                        return Err(Stopped::Reading(too_long(source)));
                    }
                }
                Next::Pause => listener.pause(&mut report),
                Next::Restart | Next::End => {
                    let read = std::mem::replace(&mut listener, Listener::new(how.clone(), None));
                    amount.skipped += read.finish(clock::wall(), &mut report);
                    beginning.clear();
                }
            }
            shown.map_err(Stopped::Showing)?;
            if next == Next::End {
                return Ok(amount);
            }
        }
    }
}

fn too_long(source: &InputSource) -> CommandError {
    let path = source.path.display();
    CommandError::new(format!("`{path}`: more than {} MiB of text", TEXT_BYTES_MAX >> 20))
        .with_help("`aldis scan` reads text of any length")
}

impl Amount {
    fn add(&mut self, bytes: &[u8], count_lines: bool) {
        self.bytes += bytes.len() as u64;
        if let (true, Some(last)) = (count_lines, bytes.last()) {
            self.lines += newlines(bytes) as u64;
            self.open = *last != b'\n';
        }
    }
}
