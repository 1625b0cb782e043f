//! `aldis postmortem`: what happened in sessions that are over.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use aldis_signal::Rules;
use aldis_signal::time::Timestamp;
use clap::{Args, ValueHint};

use super::{Outcome, report};
use crate::app::postmortem::{
    FoundTranscripts, Postmortem, Reading, everywhere, named, shown_path,
};
use crate::app::selection::chosen;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::clock;
use crate::view::paint::Paint;
use crate::view::postmortem::{Summary, blocks};
use crate::view::progress::Progress;
use crate::view::{json, page};

/// Analyse past sessions of any host: false claims, waits, limits, costs
///
/// Reads the transcripts that hosts leave behind. Nothing needs to be installed in a host, nothing is
/// stored and nothing is sent. Each claim that the work is done is compared with the last test, build and
/// lint commands before it. Exits with 0 if nothing failed, with 1 if a claim was contradicted or a
/// session failed, and with 2 if nothing could be read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis postmortem
  aldis postmortem --since 3d
  aldis postmortem -o last-night.html
  aldis postmortem ~/.claude/projects/-home-me-shop
  aldis postmortem --json session.jsonl")]
pub(super) struct PostmortemArgs {
    /// Transcripts, or folders with transcripts (default: where the hosts keep theirs)
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    /// How far to look back: a span (12h, 3d), a date, or `all`
    ///
    /// Default: 24h, or all if files are named. The times in the transcripts count.
    #[arg(long, value_name = "WHEN", value_parser = parse_since)]
    since: Option<Since>,

    /// Look for claims in this dialect (repeatable; default: all)
    #[arg(long, short, value_name = "DIALECT")]
    dialect: Vec<String>,

    /// Print one HTML file, with a picture of the timeline
    #[arg(long, group = "form")]
    html: bool,

    /// Print Markdown
    #[arg(long, group = "form")]
    md: bool,

    /// Print one JSON object per line, one per session; see `aldis schema postmortem`
    #[arg(long, group = "form")]
    json: bool,

    /// Write to this file; the extensions .html, .md and .json choose the form
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputFormat {
    Terminal,
    Html,
    Markdown,
    Json,
}

impl PostmortemArgs {
    /// What was asked for; else what the ending of the file says.
    fn form(&self) -> OutputFormat {
        let ending = self.output.as_ref().and_then(|path| path.extension()?.to_str());
        match (self.html, self.md, self.json, ending) {
            (true, ..) => OutputFormat::Html,
            (_, true, ..) => OutputFormat::Markdown,
            (_, _, true, _) => OutputFormat::Json,
            (.., Some("html" | "htm")) => OutputFormat::Html,
            (.., Some("md" | "markdown")) => OutputFormat::Markdown,
            (.., Some("json" | "jsonl")) => OutputFormat::Json,
            _ => OutputFormat::Terminal,
        }
    }
}

/// How far to look back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    All,
    Span(Duration),
    At(Timestamp),
}

pub(super) fn run(io: &mut Io, args: &PostmortemArgs) -> Result<Outcome, CommandError> {
    let now = clock::now()?;
    let usual = if args.files.is_empty() { Since::Span(DAY) } else { Since::All };
    let since = match args.since.unwrap_or(usual) {
        Since::All => None,
        Since::Span(span) => Some(now.before(span)),
        Since::At(at) => Some(at),
    };
    let rules = Rules::new(chosen(&args.dialect)?);
    let found = if args.files.is_empty() { everywhere(since)? } else { named(&args.files) };
    if found.files.is_empty() && found.unread.is_empty() {
        return nothing_found(io, &found, since);
    }
    let mut progress =
        Progress::bytes("postmortem", found.files.iter().map(|file| file.size).sum());
    let reading = Reading { rules: &rules, since, now, zone: clock::local_zone() };
    let mut postmortem = reading.all(io, found, &mut |bytes| progress.advance(bytes));
    drop(progress);
    show(io, args, &mut postmortem, now, since)?;
    Ok(match () {
        () if postmortem.read == 0 => Outcome::Error,
        () if postmortem.has_failure() => Outcome::No,
        () => Outcome::Yes,
    })
}

fn show(
    io: &mut Io,
    args: &PostmortemArgs,
    postmortem: &mut Postmortem,
    now: Timestamp,
    since: Option<Timestamp>,
) -> Result<(), CommandError> {
    let (form, mut text) = (args.form(), Vec::new());
    if form == OutputFormat::Json {
        for line in &postmortem.sessions {
            json::write_line(&mut text, line)?;
        }
    } else if postmortem.read > 0 {
        for line in &mut postmortem.sessions {
            line.file = shown_path(&line.file);
        }
        let window = window(now, since);
        let summary = Summary { sessions: &postmortem.sessions, window, now };
        let timeline = summary.timeline();
        match form {
            OutputFormat::Html => {
                let page = page::html(&summary.title(), blocks(&summary, &timeline));
                text.extend(page.into_bytes());
            }
            OutputFormat::Markdown => {
                text.extend(page::markdown(blocks(&summary, &timeline)).into_bytes());
            }
            _ if summary.sessions.is_empty() => {
                let none = format!("No sessions in {}.", summary.window);
                writeln!(text, "{none} `--since all` looks further back.")?;
            }
            _ => {
                let color = io.color_stdout && args.output.is_none();
                summary.write(&mut text, Paint { on: color })?;
            }
        }
    }
    match &args.output {
        Some(path) => fs::write(path, text).map_err(|error| CommandError::file(path, &error))?,
        None => io.stdout.write_all(&text)?,
    }
    io.stdout.flush()?;
    for error in &postmortem.unread {
        report(io, error);
    }
    Ok(())
}

/// There is nothing to read.
fn nothing_found(
    io: &mut Io,
    found: &FoundTranscripts,
    since: Option<Timestamp>,
) -> Result<Outcome, CommandError> {
    if found.places.is_empty() {
        return Err(CommandError::new("no supported agent has left transcripts here")
            .with_help("name the files or folders: `aldis postmortem FILE..`"));
    }
    if since.is_none() {
        return Err(CommandError::new("there are no transcripts in these folders"));
    }
    writeln!(io.stdout, "No sessions since then. `--since all` looks further back.")?;
    Ok(Outcome::Yes)
}

fn window(now: Timestamp, since: Option<Timestamp>) -> String {
    match since.map(|since| now.since(since)) {
        None => "all there is".to_owned(),
        Some(span) => format!("the last {}", crate::view::time::rough(span)),
    }
}

fn parse_since(text: &str) -> Result<Since, String> {
    let number = |unit: char| text.strip_suffix(unit)?.parse::<u64>().ok();
    let seconds = [('m', 60), ('h', 3_600), ('d', 86_400), ('w', 604_800)];
    let span = seconds.into_iter().find_map(|(unit, seconds)| number(unit)?.checked_mul(seconds));
    if text == "all" {
        return Ok(Since::All);
    }
    if let Some(seconds) = span {
        return Ok(Since::Span(Duration::from_secs(seconds)));
    }
    let at = text.parse().ok().or_else(|| crate::view::time::local_day(text));
    at.map(Since::At).ok_or_else(|| {
        "write a span such as 12h or 3d, a date such as 2026-11-17, or all".to_owned()
    })
}

const DAY: Duration = Duration::from_secs(86_400);
