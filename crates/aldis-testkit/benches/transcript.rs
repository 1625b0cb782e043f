//! How fast a transcript file is read and scanned, beside `wc -l` and `cat` on the same file:
//! `cargo bench -p aldis-testkit --bench transcript`.

mod measure;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use aldis_signal::{Finding, Message, Rules, Scan, scan};
use aldis_testkit::corpus::bulk::claude_transcript;
use aldis_transcript::{Format, Reader};
use measure::{Bars, Contender, medians, timed};
use nix::sys::resource::{UsageWho, getrusage};

const BYTES: usize = 100_000_000;
const BUFFER: usize = 256 * 1024;
const ROUNDS: usize = 9;
/// Some nine hundred signals, as many as in the transcript the bar was set with.
const USUAL: usize = 12;
/// An agent that signals all the time.
const DENSE: usize = 33;

const NAMES: [&str; 5] =
    ["`cat`", "`wc -l`", "signals", "signals and near misses", "bytes read, nothing else"];

fn main() -> io::Result<()> {
    let mut bars = Bars::default();
    for (signalled, bar) in [(USUAL, true), (DENSE, false)] {
        let share = measure(signalled)?;
        if bar {
            let met = share >= 30.0;
            bars.add("at least 30 % of the speed of `wc -l`", format!("{share:.1} %"), met);
        }
    }
    bars.report()
}

/// Measures a transcript in which so many percent of the agent's messages signal; returns the speed
/// of looking for signals in percent of that of `wc -l`.
fn measure(signalled: usize) -> io::Result<f64> {
    let transcript = claude_transcript(BYTES, signalled, 1);
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), &transcript.text)?;
    let (bytes, expected) = (transcript.text.len(), transcript.signals.len());
    drop(transcript);

    for near_misses in [false, true] {
        let found = pipeline(file.path(), near_misses)?;
        if found != expected {
            return Err(io::Error::other(format!("found {found} signals instead of {expected}")));
        }
    }

    let path = file.path();
    let mut contenders: Vec<Contender<'_>> = vec![
        Box::new(|| child("cat", &[], path)),
        Box::new(|| child("wc", &["-l"], path)),
        Box::new(|| timed(|| pipeline(path, false))),
        Box::new(|| timed(|| pipeline(path, true))),
        Box::new(|| timed(|| read(path))),
    ];
    let costs = medians(ROUNDS, &mut contenders)?;
    print(&costs, bytes, expected)?;
    let [_, lines, scanned, ..] = *costs else { return Ok(0.0) };
    Ok(100.0 * lines.as_secs_f64() / scanned.as_secs_f64())
}

/// Reads and scans the file as the command does, with `--near-misses` or without; returns how many
/// signals were found.
fn pipeline(path: &Path, near_misses: bool) -> io::Result<usize> {
    let rules = Rules::builtin();
    let may_matter = |raw: &[u8]| rules.may_match_json(raw);
    let mut found = 0;
    let mut on_message = |message: Message| {
        if !near_misses && !message.origin.may_signal() {
            return;
        }
        let (text, origin) = (message.text.as_bytes(), &message.origin);
        found += if near_misses {
            scan(rules, text, origin).iter().filter_map(Finding::signal).count()
        } else {
            Scan::new(rules).origin(origin.clone()).signals(text).len()
        };
    };
    let mut reader = Reader::new(Format::ClaudeCode).with_filter(&may_matter);
    if !near_misses {
        reader = reader.signals_only();
    }
    let mut file = File::open(path)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => reader.push(&buffer[..count], &mut on_message),
        }
    }
    reader.finish(&mut on_message);
    Ok(found)
}

fn read(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; BUFFER];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

/// Returns the processor time, user and system, of a command on the file.
fn child(command: &str, arguments: &[&str], path: &Path) -> io::Result<Duration> {
    let before = children()?;
    Command::new(command).args(arguments).arg(path).stdout(Stdio::null()).status()?;
    Ok(children()?.saturating_sub(before))
}

/// Returns the processor time of all children that have ended.
fn children() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0)
    };
    Ok(Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time())))
}

fn print(costs: &[Duration], bytes: usize, signals: usize) -> io::Result<()> {
    let [cat, lines, ..] = *costs else { return Ok(()) };
    let mut out = io::stdout().lock();
    let size = bytes as f64 / 1e6;
    writeln!(out, "\n{size:.0} MB of a Claude Code transcript, {signals} signals.\n")?;
    writeln!(out, "| | ms | MB/s | % of `cat` | % of `wc -l` |\n|---|---|---|---|---|")?;
    for (name, cost) in NAMES.iter().zip(costs) {
        let (seconds, share) = (cost.as_secs_f64(), |of: Duration| 100.0 * of.as_secs_f64());
        writeln!(
            out,
            "| {name} | {:.1} | {:.0} | {:.1} | {:.1} |",
            seconds * 1e3,
            size / seconds,
            share(cat) / seconds,
            share(lines) / seconds
        )?;
    }
    Ok(())
}
