//! Writes generated corpora, for other tools and other languages.
//!
//! * `aldis-corpus samples COUNT SEED`: JSON lines of `id` and `text`.
//! * `aldis-corpus text BYTES SEED`: agent-like text with a signal about every 50 KB.
//! * `aldis-corpus transcript BYTES SEED`: a transcript in the shape of Claude Code's.
//! * `aldis-corpus KIND BYTES 0`: one of the adversarial texts, by name.

use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use aldis_testkit::corpus::bulk::{ADVERSARIAL, adversarial, agent_text, claude_transcript};
use aldis_testkit::corpus::samples;

fn run() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [kind, size, seed] = args.as_slice() else {
        return Err("usage: aldis-corpus samples|text|transcript|KIND SIZE SEED".into());
    };
    let (size, seed): (usize, u64) = (size.parse()?, seed.parse()?);
    let mut out = BufWriter::new(io::stdout().lock());
    match kind.as_str() {
        "samples" => {
            for (index, sample) in samples(seed, size).enumerate() {
                let id = format!("{}/{}/{index}", sample.phenomenon, sample.dialect);
                writeln!(out, "{}", serde_json::json!({ "id": id, "text": sample.text }))?;
            }
        }
        "text" => out.write_all(agent_text(size, Some(50_000), seed).text.as_bytes())?,
        "transcript" => out.write_all(claude_transcript(size, 33, seed).text.as_bytes())?,
        name => {
            let known = ADVERSARIAL.iter().find(|known| known.name == name);
            let known = known.ok_or_else(|| format!("no adversarial text `{name}`"))?;
            out.write_all(adversarial(known, size).as_bytes())?;
        }
    }
    out.flush()?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do if this fails too.
            writeln!(io::stderr(), "failed to write the corpus: {error}").ok();
            ExitCode::from(2)
        }
    }
}
