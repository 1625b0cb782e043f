//! Every signal and near miss as a diagnostic, with the source and the fix.

mod words;

use std::path::Path;

use aldis_signal::{Finding, NearMiss, Origin, Reason, Signal};

use self::words::{amount_words, label, said_by, warning_words};
use crate::agents::listener::MessageFindings;
use crate::app::scan::{Amount, ScanOptions, Stopped};
use crate::app::selection::Selection;
use crate::app::source::InputSource;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::clock::Stopwatch;
use crate::view::display;
use crate::view::paint::Paint;
use crate::view::snippet::Snippet;

/// What was explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explained {
    /// How many signals there were.
    pub(crate) signals: u64,
    /// Whether an input could not be read.
    pub(crate) unread: bool,
}

/// Explains what a selection holds; with `all`, also each candidate that was not said by the agent.
/// Inputs that cannot be read are told to `on_unread`.
///
/// # Errors
///
/// Fails if what is explained cannot be written.
pub(crate) fn explain(
    io: &mut Io,
    selection: &Selection,
    all: bool,
    on_unread: fn(&mut Io, &CommandError),
) -> Result<Explained, CommandError> {
    let options = ScanOptions { selection, near_misses: true, follow: false, keep_text: true };
    let watch = Stopwatch::start();
    let mut telling = Telling::new(Paint { on: io.color_stdout }, all);
    let mut unread = false;
    for file in &selection.files {
        match telling.tell_file(io, file, &options) {
            Ok(()) => {}
            Err(Stopped::Reading(error)) => {
                io.stdout.flush()?;
                on_unread(io, &error);
                unread = true;
            }
            Err(Stopped::Showing(CommandError::Closed)) => return Ok(telling.explained(unread)),
            Err(Stopped::Showing(error)) => return Err(error),
        }
    }
    if unread && telling.amount.bytes == 0 {
        return Ok(telling.explained(unread));
    }
    let summary = telling.summary(&watch);
    match writeln!(io.stdout, "{summary}").and_then(|()| io.stdout.flush()).map_err(Into::into) {
        Ok(()) | Err(CommandError::Closed) => Ok(telling.explained(unread)),
        Err(error) => Err(error),
    }
}

/// What has been told so far.
#[derive(Debug)]
struct Telling {
    paint: Paint,
    all: bool,
    signals: u64,
    misses: u64,
    amount: Amount,
    /// Candidates of the current file that somebody else said.
    foreign: u64,
}

impl Telling {
    fn new(paint: Paint, all: bool) -> Self {
        Self { paint, all, signals: 0, misses: 0, amount: Amount::default(), foreign: 0 }
    }

    fn tell_file(
        &mut self,
        io: &mut Io,
        file: &Path,
        options: &ScanOptions<'_>,
    ) -> Result<(), Stopped> {
        let mut source = InputSource::open(io, file, false).map_err(Stopped::Reading)?;
        let name = display::line(&file.display().to_string());
        let mut first_foreign = None;
        self.foreign = 0;
        let amount = options.read(&mut source, &mut |found| {
            for finding in &found.findings {
                self.tell(io, &name, &found, finding, &mut first_foreign)?;
            }
            Ok(())
        })?;
        self.amount.bytes += amount.bytes;
        self.amount.lines += amount.lines + u64::from(amount.open);
        self.amount.skipped += amount.skipped;
        self.tell_foreign(io, first_foreign).map_err(Stopped::Showing)
    }

    fn tell(
        &mut self,
        io: &mut Io,
        file: &str,
        found: &MessageFindings,
        finding: &Finding,
        first_foreign: &mut Option<String>,
    ) -> Result<(), CommandError> {
        match finding {
            Finding::Signal(signal) => {
                self.signals += 1;
                self.tell_signal(io, file, found, signal)
            }
            Finding::NearMiss(miss) => {
                self.misses += 1 + miss.more;
                if miss.reason == Reason::UntrustedOrigin && !self.all {
                    self.foreign += 1 + miss.more;
                    first_foreign.get_or_insert_with(|| {
                        format!(
                            "{}\n  {} {}",
                            self.miss_header(miss),
                            self.paint.place("-->"),
                            place_words(file, found, finding, &miss.origin),
                        )
                    });
                    return Ok(());
                }
                self.tell_miss(io, file, found, miss)
            }
        }
    }

    fn tell_signal(
        &self,
        io: &mut Io,
        file: &str,
        found: &MessageFindings,
        signal: &Signal,
    ) -> Result<(), CommandError> {
        let paint = self.paint;
        let mut name = format!("{} {}", signal.dialect, display::line(&signal.name));
        if let Some(subject) = &signal.subject {
            name = format!("{name} {}", display::excerpt(subject, SUBJECT_MAX));
        }
        let out = &mut io.stdout;
        let meaning = signal.meaning;
        writeln!(out, "{} {}  ({meaning})", paint.good("signal:"), paint.strong(name))?;
        let finding = Finding::from(signal.clone());
        let place = place_words(file, found, &finding, &signal.origin);
        writeln!(out, "  {} {place}", paint.place("-->"))?;
        let gutter = self.tell_source(io, found, &finding, &said_by(&signal.origin))?;
        for warning in &signal.warnings {
            let words = display::line(&warning_words(warning));
            let code = display::line(&warning.to_string());
            let equals = paint.place("=");
            writeln!(io.stdout, "{:gutter$} {equals} warning: {words} [{code}]", "")?;
        }
        writeln!(io.stdout)?;
        Ok(())
    }

    fn tell_miss(
        &self,
        io: &mut Io,
        file: &str,
        found: &MessageFindings,
        miss: &NearMiss,
    ) -> Result<(), CommandError> {
        let paint = self.paint;
        let finding = Finding::from(miss.clone());
        writeln!(io.stdout, "{}", self.miss_header(miss))?;
        let place = place_words(file, found, &finding, &miss.origin);
        writeln!(io.stdout, "  {} {place}", paint.place("-->"))?;
        let gutter = self.tell_source(io, found, &finding, label(miss.reason))?;
        let equals = paint.place("=");
        for (at, line) in display::lines(&miss.hint()).lines().enumerate() {
            if at == 0 {
                writeln!(io.stdout, "{:gutter$} {equals} help: {line}", "")?;
            } else {
                writeln!(io.stdout, "{:gutter$}         {line}", "")?;
            }
        }
        if miss.more > 0 {
            let more = miss.more;
            let note = format_args!("{more} more like it in this message are not listed");
            writeln!(io.stdout, "{:gutter$} {equals} note: {note}", "")?;
        }
        writeln!(io.stdout)?;
        Ok(())
    }

    /// Shows the source lines and returns the width of their numbers.
    fn tell_source(
        &self,
        io: &mut Io,
        found: &MessageFindings,
        finding: &Finding,
        label: &str,
    ) -> Result<usize, CommandError> {
        let Some(snippet) = Snippet::new(&found.text, finding.place()) else {
            return Ok(GUTTER);
        };
        let gutter = snippet.gutter().max(GUTTER);
        snippet.write(&mut io.stdout, self.paint, gutter, label)?;
        Ok(gutter)
    }

    fn tell_foreign(&self, io: &mut Io, first: Option<String>) -> Result<(), CommandError> {
        let Some(first) = first else { return Ok(()) };
        writeln!(io.stdout, "{first}")?;
        let equals = self.paint.place("=");
        let more = self.foreign.saturating_sub(1);
        let note = match more {
            0 => "not said by the agent (--all to show it)".to_owned(),
            1 => "1 more candidate from files, prompts and tool output was ignored \
                  (--all to list them)"
                .to_owned(),
            _ => format!(
                "{more} more candidates from files, prompts and tool output were ignored \
                 (--all to list them)"
            ),
        };
        writeln!(io.stdout, "{:GUTTER$} {equals} note: {note}\n", "")?;
        Ok(())
    }

    fn miss_header(&self, miss: &NearMiss) -> String {
        let name = format!("{} {}", miss.dialect, display::excerpt(&miss.name, SUBJECT_MAX));
        let paint = self.paint;
        format!("{} {}  [{}]", paint.warn("near miss:"), paint.strong(name), miss.reason)
    }

    fn summary(&self, watch: &Stopwatch) -> String {
        let Amount { bytes, lines, skipped, .. } = self.amount;
        let plural = |count: u64, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        let mut words = format!(
            "{}, {} in {} ({})",
            plural(self.signals, "signal", "signals"),
            plural(self.misses, "near miss", "near misses"),
            plural(lines, "line", "lines"),
            amount_words(bytes, watch.elapsed()),
        );
        if skipped > 0 {
            let lines = plural(skipped, "line", "lines");
            words = format!("{words}, {lines} of the transcript could not be read");
        }
        words
    }

    fn explained(&self, unread: bool) -> Explained {
        Explained { signals: self.signals, unread }
    }
}

/// `file:entry, message N, line L` for transcripts, `file:line:column` for text.
fn place_words(file: &str, found: &MessageFindings, finding: &Finding, origin: &Origin) -> String {
    let place = finding.place();
    let mut words = match found.entry {
        Some(entry) => {
            format!("{file}:{entry}, message {}, line {}", found.message, place.line)
        }
        None => format!("{file}:{}:{}", place.line, place.column),
    };
    if let Some(detail) = &origin.detail {
        words = format!("{words}, {}", display::excerpt(detail, DETAIL_MAX));
    }
    words
}

const DETAIL_MAX: usize = 80;
/// The least width of line numbers, so that short messages line up.
const GUTTER: usize = 3;
const SUBJECT_MAX: usize = 64;
