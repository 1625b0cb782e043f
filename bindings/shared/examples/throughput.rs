//! Writes the text of the benchmark, or measures how fast Rust scans it: what the bindings are
//! compared with.
//!
//! ```sh
//! cargo run --release --example throughput -- write FILE
//! cargo run --release --example throughput -- measure FILE
//! ```

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::Instant;

use aldis_signal::{Rules, Scan};
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", file] => Ok(fs::write(file, text())?),
        ["measure", file] => measure(&fs::read(file)?),
        _ => Err("write FILE, or measure FILE".into()),
    }
}

/// The whole text at once, and cut into messages.
fn measure(text: &[u8]) -> Result<(), Box<dyn Error>> {
    let rules = Rules::builtin();
    let whole = rate(text.len(), || Scan::new(rules).run(text).len());
    let messages = rate(text.len(), || {
        text.chunks(MESSAGE).map(|message| Scan::new(rules).run(message).len()).sum()
    });
    let found = Scan::new(rules).run(text).len();
    let row = json!({ "whole": whole, "messages": messages, "found": found });
    Ok(writeln!(io::stdout(), "{row}")?)
}

/// MB per second.
fn rate(length: usize, scan: impl Fn() -> usize) -> f64 {
    let begin = Instant::now();
    black_box(scan());
    length as f64 / 1e6 / begin.elapsed().as_secs_f64()
}

/// Messages of an agent: words, code, and now and then a signal or something like one.
fn text() -> String {
    let mut text = String::with_capacity(LENGTH + MESSAGE);
    for number in 0_usize.. {
        text.push_str(PIECES[number % PIECES.len()]);
        if number.is_multiple_of(64) {
            let rare = SIGNALS[number / 64 % SIGNALS.len()];
            text.push_str(rare);
        }
        if text.len() >= LENGTH {
            break;
        }
    }
    text.truncate(LENGTH);
    text
}

const LENGTH: usize = 100_000_000;
const MESSAGE: usize = 8192;
// Plain ASCII, so that it can be cut anywhere.
const PIECES: [&str; 4] = [
    "I looked at the failing test first. It compares the dates as strings, which breaks as soon as\n\
     one of them has a time zone. The fix is in the parser, and the test now covers both forms.\n\n",
    "- `src/parse.rs`: the zone is read before the day\n- `tests/parse.rs`: four new cases\n\n",
    "    fn parse(text: &str) -> Result<Date, Error> {\n        let (day, zone) = split(text)?;\n    }\n\n",
    "Next I run the whole suite and look at what the build prints about the two warnings.\n\n",
];
const SIGNALS: [&str; 4] = [
    "<chorus>PROGRESS: 45</chorus>\n\n",
    "READY_FOR_REVIEW: task-7\n\n",
    "I will print <promise>COMPLETE</promise> when the suite is green.\n\n",
    "```pilot-signal\n{\"v\":2,\"type\":\"status\",\"phase\":\"IMPL\",\"progress\":40}\n```\n\n",
];
