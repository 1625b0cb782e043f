//! `aldis scan`: the signals in text and transcripts.

use std::io::{IsTerminal as _, stderr, stdout};
use std::path::Path;

use aldis_signal::{Finding, NearMiss, Signal};
use clap::Args;
use unicode_width::UnicodeWidthStr as _;

use super::{Outcome, report};
use crate::agents::listener::MessageFindings;
use crate::app::scan::{ScanOptions, Stopped};
use crate::app::selection::{Matching, Selection, SelectionArgs};
use crate::app::source::InputSource;
use crate::error::CommandError;
use crate::io::Io;
use crate::view::display;
use crate::view::json;
use crate::view::paint::Paint;
use crate::view::wire::ScanLine;

/// Print the signals in text and transcripts
///
/// Prints one line per signal: where it is, its dialect, name and subject, what it means, and what
/// was written with it. Exits with 0 if there was a signal, with 1 if there was none and with 2 if an
/// input could not be read, so it works in an `if`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis scan session.jsonl
  some-agent | aldis scan --dialect caw
  aldis scan --dialect 'promise=ALL TESTS PASS' --json log.txt
  aldis scan --follow --near-misses session.jsonl")]
pub(super) struct ScanArgs {
    #[command(flatten)]
    selection: SelectionArgs,

    /// Also print what looked like a signal and was not one, with the reason
    #[arg(long)]
    near_misses: bool,

    /// Keep reading as the input grows
    ///
    /// Reads one file or standard input until Ctrl-C. A file that is cut short or replaced is read
    /// from its new beginning. In text, silence for one second ends a message: a claim is only
    /// certain when no retraction can follow.
    #[arg(long, short)]
    follow: bool,

    /// Print one JSON object per line; see `aldis schema scan`
    #[arg(long)]
    json: bool,
}

pub(super) fn run(io: &mut Io, args: ScanArgs) -> Result<Outcome, CommandError> {
    let selection = Selection::new(args.selection)?;
    if args.follow && selection.files.len() > 1 {
        return Err(CommandError::new("--follow reads one input")
            .with_help("start one `aldis scan --follow` for each file"));
    }
    if args.follow && selection.matching == Matching::Reference {
        return Err(CommandError::new("--follow does not work with --matching reference")
            .with_help("the plain regexes need the whole text"));
    }
    let options = ScanOptions {
        selection: &selection,
        near_misses: args.near_misses,
        follow: args.follow,
        keep_text: false,
    };
    let mut outcome = Outcome::No;
    let mut unread = false;
    for file in &selection.files {
        match scan_file(io, file, &options, args.json, &mut outcome) {
            Ok(()) => {}
            Err(Stopped::Reading(error)) => {
                io.stdout.flush()?;
                report(io, &error);
                unread = true;
            }
            // Whoever reads has seen enough.
            Err(Stopped::Showing(CommandError::Closed)) => break,
            Err(Stopped::Showing(error)) => return Err(error),
        }
    }
    match io.stdout.flush().map_err(CommandError::from) {
        Ok(()) | Err(CommandError::Closed) => {}
        Err(error) => return Err(error),
    }
    Ok(if unread { Outcome::Error } else { outcome })
}

fn scan_file(
    io: &mut Io,
    file: &Path,
    options: &ScanOptions<'_>,
    as_json: bool,
    outcome: &mut Outcome,
) -> Result<(), Stopped> {
    let mut source = InputSource::open(io, file, options.follow).map_err(Stopped::Reading)?;
    // Beside lines on the same terminal it would be in the way.
    if !options.follow && stderr().is_terminal() && !stdout().is_terminal() {
        source.show_progress();
    }
    let name = file.display().to_string();
    let paint = Paint { on: io.color_stdout };
    let amount = options.read(&mut source, &mut |found| {
        for finding in &found.findings {
            if finding.signal().is_some() {
                *outcome = Outcome::Yes;
            }
            if as_json {
                let line = ScanLine::new(&name, found.message, found.entry, finding);
                json::write_line(&mut io.stdout, &line)?;
            } else {
                writeln!(io.stdout, "{}", human_line(paint, &name, &found, finding))?;
            }
        }
        // Of text, all that can be told has been told.
        if options.follow || found.entry.is_none() {
            io.stdout.flush()?;
        }
        Ok(())
    })?;
    if amount.binary {
        let what = "is binary: what looks like a signal in it may be none of an agent";
        writeln!(io.stderr, "note: `{}` {what}", display::line(&name))
            .map_err(|error| Stopped::Showing(error.into()))?;
    }
    Ok(())
}

/// `file:line:column: dialect NAME subject  meaning  "payload"  [warnings]`.
fn human_line(paint: Paint, file: &str, found: &MessageFindings, finding: &Finding) -> String {
    let place = finding.place();
    let file = display::line(file);
    // A line inside a message of a transcript is no line of the file.
    let place = match found.entry {
        Some(entry) => format!("{file}:{entry}:"),
        None => format!("{file}:{}:{}:", place.line, place.column),
    };
    match finding {
        Finding::Signal(signal) => {
            format!("{} {}", paint.place(place), signal_words(paint, signal))
        }
        Finding::NearMiss(miss) => {
            paint.dim(format_args!("{place} {}", miss_words(miss))).to_string()
        }
    }
}

fn signal_words(paint: Paint, signal: &Signal) -> String {
    let mut name = display::line(&signal.name);
    if let Some(subject) = &signal.subject {
        name = format!("{name} {}", display::excerpt(subject, SUBJECT_MAX));
    }
    let rest = NAME_WIDTH.saturating_sub(signal.dialect.width() + name.width() + 1);
    let mut parts = vec![
        format!("{} {}{:rest$}", signal.dialect, paint.strong(name), ""),
        paint.good(format_args!("{:<MEANING_WIDTH$}", signal.meaning.as_str())).to_string(),
    ];
    if let Some(progress) = signal.progress {
        parts.push(format!("{progress} %"));
    }
    // A bare number has just been said.
    let number = signal.progress.map(|progress| progress.to_string());
    if let Some(payload) =
        signal.payload.as_ref().filter(|payload| number.as_ref() != Some(payload))
    {
        parts.push(format!("\"{}\"", display::excerpt(payload, PAYLOAD_MAX)));
    }
    if !signal.warnings.is_empty() {
        let warnings: Vec<String> = signal.warnings.iter().map(ToString::to_string).collect();
        let warnings = display::line(&warnings.join(", "));
        parts.push(paint.warn(format_args!("[{warnings}]")).to_string());
    }
    parts.join("  ").trim_end().to_owned()
}

fn miss_words(miss: &NearMiss) -> String {
    let what = format!("{} {}", miss.dialect, display::excerpt(&miss.name, SUBJECT_MAX));
    let rest = NAME_WIDTH.saturating_sub(what.width());
    let hint = display::line(&miss.hint());
    let kind = format_args!("{:<MEANING_WIDTH$}", "near miss").to_string();
    let more = match miss.more {
        0 => String::new(),
        more => format!("  (and {more} more like it)"),
    };
    format!("{what}{:rest$}  {kind}  [{}]  {hint}{more}", "", miss.reason).trim_end().to_owned()
}

const MEANING_WIDTH: usize = 11;
/// Room for dialect, name and a short subject.
const NAME_WIDTH: usize = 36;
const PAYLOAD_MAX: usize = 72;
const SUBJECT_MAX: usize = 64;
