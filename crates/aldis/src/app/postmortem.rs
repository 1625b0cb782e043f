//! What happened in sessions that are over, from the transcripts that hosts left: nothing needs to
//! have been installed, nothing is stored or sent.
//!
//! Files are read one after the other, in pieces; of each, only what is told is kept.

mod checks;
mod claims;
mod find;
mod session;
mod waits;

use std::collections::HashMap;
use std::path::Path;

use aldis_signal::time::Timestamp;
use aldis_signal::{Rules, Scan};
use aldis_transcript::activity::EntryPlace;
use aldis_transcript::events::Zone;
use aldis_transcript::{Format, Output, Reader};

pub(crate) use self::find::{Candidate, FoundTranscripts, everywhere, named, title};
use self::session::SessionFold;
use crate::app::source::{InputSource, Next};
use crate::error::CommandError;
use crate::io::Io;
use crate::view::wire::postmortem::PostmortemLine;

/// How to read.
#[derive(Debug)]
pub(crate) struct Reading<'r> {
    pub(crate) rules: &'r Rules,
    /// What is older does not count.
    pub(crate) since: Option<Timestamp>,
    pub(crate) now: Timestamp,
    pub(crate) zone: Zone,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Postmortem {
    /// The worst first.
    pub(crate) sessions: Vec<PostmortemLine>,
    /// How many transcripts could be read.
    pub(crate) read: u64,
    /// Why others could not.
    pub(crate) unread: Vec<CommandError>,
}

impl Reading<'_> {
    /// Reads all files; `progress` is told how many bytes were read.
    pub(crate) fn all(
        &self,
        io: &mut Io,
        found: FoundTranscripts,
        progress: &mut dyn FnMut(u64),
    ) -> Postmortem {
        let mut postmortem = Postmortem { unread: found.unread, ..Postmortem::default() };
        let mut sides = Vec::new();
        for candidate in &found.files {
            match self.file(io, candidate, progress) {
                Ok(Some((line, is_side))) => {
                    postmortem.read += 1;
                    let all = if is_side { &mut sides } else { &mut postmortem.sessions };
                    all.push(line);
                }
                Ok(None) => postmortem.read += 1,
                Err(error) => postmortem.unread.push(error),
            }
        }
        postmortem.add_sides(sides);
        postmortem.sessions.sort_by_key(|line| std::cmp::Reverse(badness(line)));
        postmortem
    }

    /// Reads one file. Returns nothing if nothing in it is in the window.
    fn file(
        &self,
        io: &mut Io,
        candidate: &Candidate,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Option<(PostmortemLine, bool)>, CommandError> {
        let mut source = InputSource::open(io, &candidate.path, false)?;
        let mut room = vec![0; ROOM];
        let mut fold = SessionFold::new(self.since);
        let mut reader: Option<Reader<'_>> = None;
        let mut format = Format::Text;
        let may_matter = |line: &[u8]| self.rules.may_match_json(line);
        while let Next::Bytes(count) = source.next(&mut room)? {
            let bytes = room.get(..count).unwrap_or_default();
            progress(count as u64);
            if reader.is_none() {
                source.check(bytes)?;
                format = candidate.input().resolve(bytes);
                if format == Format::Text {
                    return not_a_transcript(candidate);
                }
                let new = Reader::new(format).with_filter(&may_matter).signals_only();
                reader = Some(new.with_activities(self.zone.clone()));
            }
            if let Some(reader) = &mut reader {
                reader.push_live(bytes, self.now, &mut |output| self.take(&mut fold, output));
            }
        }
        let mut skipped = 0;
        if let Some(reader) = reader {
            skipped = reader.skipped_lines();
            reader.finish_live(self.now, &mut |output| self.take(&mut fold, output));
        }
        let line = fold.finish(self.now).map(|(line, is_side)| {
            let host = title(candidate.host, format);
            let file = candidate.path.display().to_string();
            (PostmortemLine { host, file, skipped_lines: skipped, ..line }, is_side)
        });
        Ok(line)
    }

    fn take(&self, fold: &mut SessionFold, output: Output) {
        match output {
            Output::Activity(activity) => fold.take(*activity),
            Output::Message(message)
                if message.origin.may_signal() && !message.origin.sidechain =>
            {
                let mut place = EntryPlace::default();
                (place.line, place.at) = (message.entry.unwrap_or(0), message.at);
                let text = message.text.as_bytes();
                let scan = Scan::new(self.rules).origin(message.origin.clone());
                for signal in scan.signals(text) {
                    fold.claims.signal(&signal, place);
                }
            }
            Output::Event(_) | Output::Message(_) => {}
        }
    }
}

/// Says that a file is no transcript, if anybody asked for it.
fn not_a_transcript<T>(candidate: &Candidate) -> Result<Option<T>, CommandError> {
    if !candidate.is_named {
        return Ok(None);
    }
    let path = candidate.path.display();
    Err(CommandError::new(format!("`{path}` is no transcript of a host that Aldis knows"))
        .with_help("`aldis scan` finds signals in any text"))
}

impl Postmortem {
    /// Adds what sub-agents did, in files of their own, to the sessions that they belong to.
    fn add_sides(&mut self, sides: Vec<PostmortemLine>) {
        let by_session: HashMap<String, usize> = (self.sessions.iter().enumerate())
            .filter_map(|(at, line)| Some((line.session.clone()?, at)))
            .collect();
        for side in sides {
            let owner = side.session.as_ref().and_then(|session| by_session.get(session));
            let Some(line) = owner.and_then(|at| self.sessions.get_mut(*at)) else { continue };
            line.tools += side.tools;
            line.files_written += side.files_written;
            line.tokens += side.tokens;
            line.retries += side.retries;
        }
    }

    /// Returns whether something failed or was not what it was said to be.
    pub(crate) fn has_failure(&self) -> bool {
        self.sessions.iter().any(PostmortemLine::has_failure)
    }
}

/// Orders sessions: what was not true, then what failed, then what took time.
fn badness(line: &PostmortemLine) -> (u64, usize, usize, u64, Option<Timestamp>) {
    let untrue = line.claim_counts.contradicted;
    let failures = line.findings.iter().filter(|finding| finding.failure).count();
    (untrue, failures, line.findings.len(), line.waited_seconds, line.ended)
}

/// Returns a path as it is shown: from here, or from the home directory.
pub(crate) fn shown_path(path: &str) -> String {
    crate::hosts::install::locations::Locations::new()
        .map_or_else(|_| path.to_owned(), |locations| locations.shown(Path::new(path)))
}

/// How much is read at once; also what tells the format.
const ROOM: usize = 256 * 1024;
