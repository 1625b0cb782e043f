//! How fast plain text is scanned, beside what is possible and what people use today:
//! `cargo bench -p aldis-testkit --bench scan`.

mod measure;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use aho_corasick::packed;
use aldis::app::reference::seed_patterns;
use aldis_signal::dialect::builtins;
use aldis_signal::{Dialect, Finding, Origin, Rules, Scan, Signal, scan};
use aldis_testkit::corpus::bulk::agent_text;
use measure::{Bars, Contender, medians, timed};
use regex::Regex;
use regex::bytes::Regex as BytesRegex;

const BYTES: usize = 100_000_000;
const SIGNAL_EVERY: usize = 50_000;
/// Python would take half a minute for all of it.
const PYTHON_BYTES: usize = 2_000_000;
const CHUNK: usize = 64 * 1024;
const ROUNDS: usize = 7;

const NAMES: [&str; 10] = [
    "`memchr`, absent byte",
    "packed search for the same literals, only finds",
    "signals",
    "signals and near misses",
    "the same in chunks of 64 KiB",
    "the same with 100 more names",
    "`regex`, the reference patterns",
    "`regex`, the same in Rust's own way",
    "`regex`, ASCII, every dialect",
    "Python references",
];

fn main() -> io::Result<()> {
    let bulk = agent_text(BYTES, Some(SIGNAL_EVERY), 1);
    let text = bulk.text.as_bytes();
    let builtin = Rules::builtin();
    let more = Rules::new(builtins().iter().cloned().chain([Arc::new(hundred_names()?)]));
    let reference = Regex::new(&reference_patterns()).map_err(io::Error::other)?;
    let rust = Regex::new(&rust_patterns()).map_err(io::Error::other)?;
    let every = BytesRegex::new(&every_dialect()).map_err(io::Error::other)?;

    let packed = packed::Searcher::new(builtin.literals())
        .ok_or_else(|| io::Error::other("this processor has no packed search"))?;

    let sound =
        [alone(builtin, text).len(), count(&whole(builtin, text)), count(&chunked(builtin, text))];
    if sound.iter().any(|found| *found != bulk.signals.len()) {
        let expected = bulk.signals.len();
        return Err(io::Error::other(format!("found {sound:?} signals instead of {expected}")));
    }

    let mut contenders: Vec<Contender<'_>> = vec![
        Box::new(|| timed(|| memchr::memchr(0, text))),
        Box::new(|| timed(|| packed.find_iter(text).count())),
        Box::new(|| timed(|| alone(builtin, text))),
        Box::new(|| timed(|| whole(builtin, text))),
        Box::new(|| timed(|| chunked(builtin, text))),
        Box::new(|| timed(|| whole(&more, text))),
        Box::new(|| timed(|| reference.find_iter(&bulk.text).count())),
        Box::new(|| timed(|| rust.find_iter(&bulk.text).count())),
        Box::new(|| timed(|| every.find_iter(text).count())),
    ];
    let mut rates: Vec<f64> =
        medians(ROUNDS, &mut contenders)?.iter().map(|cost| rate(text.len(), *cost)).collect();
    rates.push(python(&bulk.text)?);
    print(&rates, text.len(), bulk.signals.len())?;
    bars(&rates).report()
}

fn alone(rules: &Rules, text: &[u8]) -> Vec<Signal> {
    Scan::new(rules).signals(text)
}

fn whole(rules: &Rules, text: &[u8]) -> Vec<Finding> {
    scan(rules, text, &Origin::assistant())
}

fn chunked(rules: &Rules, text: &[u8]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut scanner = Scan::new(rules).stream();
    for chunk in text.chunks(CHUNK) {
        scanner.push(chunk, &mut |finding| findings.push(finding));
    }
    scanner.finish(&mut |finding| findings.push(finding));
    findings
}

fn count(findings: &[Finding]) -> usize {
    findings.iter().filter_map(Finding::signal).count()
}

/// Returns megabytes per second.
fn rate(bytes: usize, cost: Duration) -> f64 {
    bytes as f64 / 1e6 / cost.as_secs_f64()
}

/// A user's dialect with many names that have little in common.
fn hundred_names() -> io::Result<Dialect> {
    const VERBS: [&str; 10] = [
        "DEPLOY",
        "MIGRATE",
        "ROLLOUT",
        "VERIFY",
        "PUBLISH",
        "ARCHIVE",
        "BACKFILL",
        "REBUILD",
        "SNAPSHOT",
        "TRANSLATE",
    ];
    const NOUNS: [&str; 10] = [
        "SCHEMA", "CLUSTER", "PACKAGE", "INDEX", "BUCKET", "GATEWAY", "QUEUE", "WALLET", "LEDGER",
        "MANIFEST",
    ];
    const ENDS: [&str; 5] = ["READY", "HALTED", "GREEN", "OVERDUE", "PASSED"];
    let mut toml = "v = 1\nname = \"ops\"\nabout = \"operations\"\nprompt = \"Say it.\"\n\n\
                    [syntax]\nfamily = \"line\"\n"
        .to_owned();
    for (row, verb) in VERBS.iter().enumerate() {
        for (column, noun) in NOUNS.iter().enumerate() {
            let end = ENDS[(row + column) % ENDS.len()];
            let name = format!("{verb}_{noun}_{end}");
            // Writing to a string cannot fail.
            let _ = write!(
                toml,
                "\n[[signals]]\nname = \"{name}\"\nmeaning = \"info\"\nsubject = \"required\"\n"
            );
        }
    }
    Dialect::from_toml(&toml).map_err(io::Error::other)
}

const CAW: [&str; 10] = [
    "EXPANSION",
    "INIT",
    "PLANNING",
    "EXECUTION",
    "QA",
    "REVIEW",
    "FIX",
    "CHECK",
    "REFLECT",
    "AUTO",
];
const DELIVERY: [&str; 14] = [
    "READY_FOR_REVIEW",
    "TASK_INCOMPLETE",
    "INFRA_BLOCKED",
    "REVIEW_PASSED",
    "REVIEW_FAILED",
    "AUDIT_PASSED",
    "AUDIT_FAILED",
    "AUDIT_BLOCKED",
    "EXPANDED_TASK_SPECIFICATION",
    "EXPERT_ADVICE",
    "EXPERT_UNSUCCESSFUL",
    "EXPERT_CREATED",
    "FILE CONFLICT",
    "CHECKPOINT",
];
const DELIVERY_ALONE: [&str; 5] = [
    "REMEDIATION_COMPLETE",
    "HEALTH_AUDIT: HEALTHY",
    "HEALTH_AUDIT: UNHEALTHY",
    "SEEKING_DIVINE_CLARIFICATION",
    "EXPERT_REQUEST",
];
/// Of the other seeds.
const TAGS_AND_FENCES: &str = "<chorus>(\\w+)(?::\\s*(.+?))?</chorus>|\
                               (?s:```pilot-signal\\s*\\n?(.*?)```)";
const TURN_AND_OLD_FORMS: &str = "TURN_COMPLETE\\s*$|NAVIGATOR_STATUS|EXIT_SIGNAL: true|\
                                  LOOP COMPLETE|TASK MODE COMPLETE|STAGNATION DETECTED";
/// The same without Unicode and captures.
const PLAIN: &str = "<chorus>\\w+(?::\\s*.+?)?</chorus>|TURN_COMPLETE\\s*\\z|\
                     ^```pilot-signal$|NAVIGATOR_STATUS";
/// What is beyond the seeds, as the tools that speak it look for it.
const BEYOND: &str = "<promise>COMPLETE</promise>|<<<RALPHEX:\\w+>>>|<event topic=\"[^\"]+\">|\
                      <axiom>\\w+(?::\\s*.+?)?</axiom>|^---RALPH_STATUS---$|^EXIT_SIGNAL:\\s*true|\
                      ^PHASE:\\s*\\S+|LOOP COMPLETE|TASK MODE COMPLETE|STAGNATION DETECTED|\
                      (?i:SIGNAL:\\s*PHASE_ERROR)|(?i:SIGNAL:\\s*TRANSITION_TO_\\w+)";

/// The reference patterns of the five seeds, exactly as they match in Python and JavaScript, joined
/// into one.
fn reference_patterns() -> String {
    let patterns = seed_patterns().into_iter().map(|pattern| format!("(?:{pattern})"));
    patterns.chain([TURN_AND_OLD_FORMS.to_owned()]).collect::<Vec<_>>().join("|")
}

/// The same as one would write them in Rust: its own case folding and classes, which the engine
/// knows how to search for.
fn rust_patterns() -> String {
    let caw = CAW.map(|name| format!(r"(?i:SIGNAL:\s*{name}_COMPLETE)")).join("|");
    let delivery = DELIVERY.map(|name| format!(r"(?m:^{name}:\s*(\S+))")).join("|");
    let alone = DELIVERY_ALONE.map(|name| format!("(?m:^{name}$)")).join("|");
    [&caw, &delivery, &alone, TAGS_AND_FENCES, TURN_AND_OLD_FORMS].join("|")
}

/// The patterns of all built-in dialects, helped along: ASCII, bytes, no captures. Nobody writes
/// them so; it is what the engine can do at best.
fn every_dialect() -> String {
    let caw = CAW.map(|name| format!("(?i:SIGNAL:\\s*{name}_COMPLETE)")).join("|");
    let delivery = DELIVERY.map(|name| format!("^{name}:\\s*\\S+")).join("|");
    let alone = DELIVERY_ALONE.map(|name| format!("^{name}$")).join("|");
    format!("(?m-u){caw}|{delivery}|{alone}|{PLAIN}|{BEYOND}")
}

/// Returns megabytes per second of the patterns of the first two seeds, run by Python itself.
fn python(text: &str) -> io::Result<f64> {
    let slice = &text[..text.floor_char_boundary(PYTHON_BYTES)];
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), slice)?;
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/reference/throughput.py");
    let output = Command::new("python3").arg(script).arg(file.path()).output()?;
    let seconds = String::from_utf8_lossy(&output.stdout).trim().parse::<f64>();
    let seconds = seconds.map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        io::Error::other(format!("python3 gave no time ({error}): {said}"))
    })?;
    Ok(rate(slice.len(), Duration::from_secs_f64(seconds)))
}

fn print(rates: &[f64], bytes: usize, signals: usize) -> io::Result<()> {
    let [_, packed, .., regex, _, _, python] = *rates else { return Ok(()) };
    let mut out = io::stdout().lock();
    let size = bytes as f64 / 1e6;
    writeln!(out, "{size:.0} MB of agent text, {signals} signals, every built-in dialect.\n")?;
    writeln!(out, "| | MB/s | % of packed | x `regex` | x Python |\n|---|---|---|---|---|")?;
    for (name, rate) in NAMES.iter().zip(rates) {
        let (share, times, python) = (100.0 * rate / packed, rate / regex, rate / python);
        writeln!(out, "| {name} | {rate:.0} | {share:.1} | {times:.1} | {python:.0} |")?;
    }
    Ok(())
}

fn bars(rates: &[f64]) -> Bars {
    let mut bars = Bars::default();
    let [_, packed, alone, whole, chunked, more, regex, .., python] = *rates else { return bars };
    for (name, rate, least) in [
        ("signals", alone, 50.0),
        ("signals and near misses", whole, 40.0),
        ("the same in chunks of 64 KiB", chunked, 40.0),
        ("the same with 100 more names", more, 30.0),
    ] {
        let share = 100.0 * rate / packed;
        let bar = format!("{name}: at least {least} % of the packed search");
        bars.add(&bar, format!("{share:.1} %"), share >= least);
    }
    for (name, slower, least) in
        [("one `regex` of the reference patterns", regex, 5.0), ("Python", python, 500.0)]
    {
        let times = whole / slower;
        bars.add(&format!("at least {least} x {name}"), format!("{times:.1} x"), times >= least);
    }
    bars
}
