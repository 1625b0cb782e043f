//! What rules cost a program that has just started, as a hook does on every stop:
//! `cargo bench -p aldis-testkit --bench rules`.

mod measure;

use std::io::{self, Write as _};
use std::process::Command;
use std::time::Duration;

use aldis_signal::dialect::builtins;
use aldis_signal::{Dialect, Rules};
use measure::{Bars, Contender, medians, timed};

/// The first argument of a child.
const CHILD: &str = "build";
const ROUNDS: usize = 41;
const DIALECTS: [&str; 4] = ["caw", "chorus", "pilot", "all"];

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(CHILD) {
        let cost = build(&arguments.next().unwrap_or_default())?;
        return writeln!(io::stdout(), "{}", cost.as_nanos());
    }
    let contenders = DIALECTS.map(|dialect| -> Contender<'_> { Box::new(move || child(dialect)) });
    let costs = medians(ROUNDS, &mut Vec::from(contenders))?;
    let mut out = io::stdout().lock();
    writeln!(out, "Processor time in a new process.\n\n| rules of | µs |\n|---|---|")?;
    for (dialect, cost) in DIALECTS.iter().zip(&costs) {
        writeln!(out, "| {dialect} | {} |", cost.as_micros())?;
    }
    let mut bars = Bars::default();
    let caw = costs[0].as_micros();
    bars.add("rules of caw in 200 µs", format!("{caw} µs"), caw <= 200);
    drop(out);
    bars.report()
}

/// Builds the rules of one dialect or of all.
fn build(dialect: &str) -> io::Result<Duration> {
    timed(|| match Dialect::builtin(dialect) {
        Some(one) => Rules::new([one.clone()]),
        None => Rules::new(builtins().iter().cloned()),
    })
}

/// Returns what building costs a process that does nothing else.
fn child(dialect: &str) -> io::Result<Duration> {
    let output = Command::new(std::env::current_exe()?).args([CHILD, dialect]).output()?;
    let nanos = String::from_utf8_lossy(&output.stdout).trim().parse().map_err(io::Error::other)?;
    Ok(Duration::from_nanos(nanos))
}
