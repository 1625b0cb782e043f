//! Prints how often reference and careful matching stop falsely or miss, as Markdown.
//!
//! `cargo run --release -p aldis-testkit --bin aldis-accuracy -- [--count N] [--seed N]
//! [--data DIR] [--show N]`. Exits with 1 if careful matching errs where no error is allowed, and
//! with 2 if it cannot measure. `--show` prints the first wrong messages to standard error.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use aldis_testkit::accuracy::{Matching, Report, accepted, labelled, refused};
use aldis_testkit::corpus::{Sample, samples};

struct Arguments {
    count: usize,
    seed: u64,
    data: PathBuf,
    show: usize,
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Arguments, Box<dyn Error>> {
    let mut options = Arguments { count: 100_000, seed: 1, data: default_data(), show: 0 };
    while let Some(flag) = args.next() {
        let value = args.next().ok_or_else(|| format!("`{flag}` needs a value"))?;
        match flag.as_str() {
            "--count" => options.count = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            "--data" => options.data = value.into(),
            "--show" => options.show = value.parse()?,
            _ => return Err(format!("unknown option `{flag}`").into()),
        }
    }
    Ok(options)
}

/// The labelled texts of this repository.
fn default_data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn show(out: &mut impl Write, sample: &Sample) -> io::Result<()> {
    let Sample { phenomenon, dialect, text, role, genuine, .. } = sample;
    let found = accepted(Matching::Careful, dialect, text.as_bytes(), *role);
    let found: Vec<_> = found.iter().map(|signal| (&signal.name, &signal.subject)).collect();
    let refused = refused(dialect, text.as_bytes(), *role);
    let start: String = text.chars().take(1_500).collect();
    writeln!(
        out,
        "{phenomenon} {dialect} {role} said {genuine:?} found {found:?} refused {refused:?}\n{start:?}\n"
    )
}

fn run() -> Result<bool, Box<dyn Error>> {
    let options = options(env::args().skip(1))?;
    let (mut out, mut log) = (io::stdout().lock(), io::stderr().lock());
    let mut report = Report::default();
    let (endings, hostile) = (labelled::endings(&options.data)?, labelled::hostile(&options.data)?);
    let mut wrong = report.labelled("conformance endings", &endings);
    wrong.extend(report.labelled("hostile texts", &hostile));
    for message in wrong {
        writeln!(log, "careful matching errs on {}", message.name)?;
    }
    report.hard(&labelled::hard_endings(&options.data)?);
    let mut shown = 0;
    for (index, sample) in samples(options.seed, options.count).enumerate() {
        let right = report.generated(&sample);
        if !right && shown < options.show {
            shown += 1;
            show(&mut log, &sample)?;
        }
        if (index + 1) % 10_000 == 0 {
            writeln!(log, "{} of {} messages", index + 1, options.count)?;
        }
    }
    write!(out, "{report}")?;
    out.flush()?;
    Ok(report.is_clean())
}

fn main() -> ExitCode {
    match run() {
        Ok(clean) => ExitCode::from(u8::from(!clean)),
        Err(error) => {
            // Nothing is left to do if this fails too.
            writeln!(io::stderr(), "failed to measure: {error}").ok();
            ExitCode::from(2)
        }
    }
}
