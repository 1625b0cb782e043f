//! Receipts on a terminal.

use std::io::{self, Write as _};

use aldis_signal::time::Timestamp;

use super::paint::Paint;
use super::time::{ago, elapsed, local};
use super::wire::receipt::{
    Receipt, ReceiptCheck, ReceiptLine, ReceiptPins, SealedReceipt, VerifiedLine,
};
use super::{display, time};
use crate::io::Io;

/// How much of a title, a command and a reason is shown.
const TITLE_MAX: usize = 60;
const COMMAND_MAX: usize = 60;
const REASON_MAX: usize = 200;
/// How much of a digest is shown, and how much of a commit.
const DIGEST_MAX: usize = 12;
/// How many files and signals are shown.
const LISTED_MAX: usize = 10;

/// Shows a receipt.
pub(crate) fn show(io: &mut Io, now: Timestamp, sealed: &SealedReceipt) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let SealedReceipt { mac, receipt } = sealed;
    let out = &mut io.stdout;
    let title = display::excerpt(&receipt.title, TITLE_MAX);
    let of = format!("run {}, receipt {}", display::line(&receipt.run), receipt.number);
    writeln!(out, "{}   {}", paint.strong(format!("Done: {title}")), paint.dim(of))?;
    let mut fact =
        |label: &str, text: String| writeln!(out, "  {label:<10} {}", display::line(&text));
    let took = elapsed(receipt.ended.since(receipt.began));
    let when =
        format!("{}, {}, {took} after the start", local(receipt.ended), ago(now, receipt.ended));
    fact("ended", when)?;
    fact("rule", format!("{}: {}", receipt.rule, display::excerpt(&receipt.because, REASON_MAX)))?;
    fact("commit", commit(receipt))?;
    if receipt.checks.is_empty() {
        fact("checks", "none: nothing but the agent's word says that it is done".to_owned())?;
    }
    for (at, check) in receipt.checks.iter().enumerate() {
        fact(if at == 0 { "checks" } else { "" }, self::check(check))?;
    }
    if let Some(verdict) = &receipt.verdict {
        if let Some(by) = &verdict.accepted_by {
            fact("accepted", format!("by a human: {by}"))?;
        }
        for remark in verdict.remarks.iter().take(LISTED_MAX) {
            fact("remark", format!("{} ({})", remark.what, remark.rule))?;
        }
    }
    if let Some(pins) = &receipt.protected {
        fact("protected", protected(pins))?;
    }
    for opinion in &receipt.opinions {
        let command = display::excerpt(&opinion.command, COMMAND_MAX);
        let reason = display::excerpt(&opinion.reason, REASON_MAX);
        fact("opinion", format!("{} by `{command}`: {reason}", opinion.verdict))?;
    }
    fact("signals", signals(receipt))?;
    let decisions = receipt.journal.decisions;
    fact("decisions", format!("{decisions}: aldis why {} --all", receipt.run))?;
    fact("signed", format!("{} with key {}", short(mac), receipt.key))?;
    writeln!(out, "  aldis proof verify {}", display::line(&receipt.run))
}

fn commit(receipt: &Receipt) -> String {
    let Some(repository) = &receipt.repository else {
        return "none: the project has no repository".to_owned();
    };
    let commit = repository.commit.as_deref().map_or("none yet", short);
    let state =
        if repository.clean { "no uncommitted changes" } else { "with uncommitted changes" };
    let late = repository.seen.since(receipt.ended).as_secs();
    let late = match late {
        0..=60 => String::new(),
        _ => format!(", looked at {} later", time::rough(repository.seen.since(receipt.ended))),
    };
    format!("{commit}, {state}, in {}{late}", repository.root)
}

fn check(check: &ReceiptCheck) -> String {
    let name = if check.name.is_empty() { "verify" } else { &check.name };
    let command = display::excerpt(&check.command, COMMAND_MAX);
    let flaky = check.status == "passed" && check.failures > 0;
    let status = if flaky { "passed, but is flaky" } else { &check.status };
    let mut text = format!("{name} {status}: `{command}`");
    if let Some(code) = check.exit_code {
        text = format!("{text}, exit code {code}");
    }
    if let Some(tests) = &check.tests {
        let counts =
            format!("{} passed, {} failed, {} skipped", tests.passed, tests.failed, tests.skipped);
        text = format!("{text}, tests: {counts}");
    }
    match &check.output_sha256 {
        Some(digest) => format!("{text}, output {}", short(digest)),
        None => text,
    }
}

fn protected(pins: &ReceiptPins) -> String {
    let files = match pins.count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let changed: Vec<String> = pins
        .changes
        .iter()
        .take(LISTED_MAX)
        .map(|it| format!("{} {}", it.path, it.change.replace('_', " ")))
        .collect();
    match pins.changes.len() as u64 + pins.more_changes {
        0 => format!("{files} pinned, none changed"),
        count => format!("{files} pinned, {count} changed: {}", changed.join(", ")),
    }
}

fn signals(receipt: &Receipt) -> String {
    let surplus = receipt.signals.len().saturating_sub(LISTED_MAX);
    let listed = receipt.signals.iter().skip(surplus);
    let listed: Vec<String> = listed.map(|it| format!("{} ({})", it.name, it.via)).collect();
    if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
}

fn short(digest: &str) -> &str {
    digest.get(..DIGEST_MAX).unwrap_or(digest)
}

/// Shows a line of the list.
pub(crate) fn line(io: &mut Io, now: Timestamp, line: &ReceiptLine) -> io::Result<()> {
    let checks = match line.checks {
        0 => "no check".to_owned(),
        checks => format!("{} of {checks} checks passed", line.checks_passed),
    };
    let commit = match (line.commit.as_deref(), line.clean) {
        (Some(commit), Some(false)) => format!("{} with uncommitted changes", short(commit)),
        (Some(commit), _) => short(commit).to_owned(),
        (None, _) => "no commit".to_owned(),
    };
    let title = display::excerpt(&line.title, TITLE_MAX);
    let run = display::line(&line.run);
    writeln!(io.stdout, "{run}  {}  {title}", line.number)?;
    writeln!(io.stdout, "  {commit}, {checks}, {}", ago(now, line.ended))
}

/// Shows what a comparison came to.
pub(crate) fn verified(io: &mut Io, line: &VerifiedLine) -> io::Result<()> {
    let paint = Paint { on: io.color_stdout };
    let name = match (&line.run, line.number) {
        (Some(run), Some(number)) => format!("receipt {number} of run {}", display::line(run)),
        _ => display::line(&line.file),
    };
    match line.ok {
        true => writeln!(io.stdout, "{} {name}", paint.good("genuine:"))?,
        false => writeln!(io.stdout, "{} {name}", paint.bad("differs:"))?,
    }
    for part in &line.findings {
        let detail = display::line(&part.detail);
        writeln!(io.stdout, "  {:<8} {:<10} {detail}", part.result, part.part)?;
    }
    Ok(())
}
