//! The labelled messages that are not generated: conformance endings and hostile texts.
//!
//! They are files of `testdata`, or of another directory laid out like it.

use std::fs;
use std::io;
use std::path::Path;

use aldis_signal::dialect::Dialect;
use aldis_signal::{Role, Rules, Scan, Signal};
use serde_json::Value;

use super::{Matching, Score, accepted};

/// A labelled message.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Where it stands.
    pub name: String,
    /// The dialect it is read in.
    pub dialect: String,
    /// The message.
    pub text: Vec<u8>,
    want: Want,
}

#[derive(Clone, Debug)]
enum Want {
    /// Whether a claim is made.
    Claim(bool),
    /// Exactly these, each once.
    Labels(Vec<String>),
}

impl Labelled {
    /// Returns whether it holds a signal.
    pub fn is_genuine(&self) -> bool {
        match &self.want {
            Want::Claim(claim) => *claim,
            Want::Labels(labels) => !labels.is_empty(),
        }
    }

    /// Judges it.
    pub fn judge(&self, matching: Matching) -> Score {
        let found = accepted(matching, &self.dialect, &self.text, Role::Assistant);
        match &self.want {
            Want::Claim(claim) => {
                let claimed = found.iter().any(|signal| signal.meaning.is_claim());
                Score { false_stop: claimed && !claim, miss: !claimed && *claim }
            }
            Want::Labels(labels) => {
                let mut found = self.chosen(found).iter().map(label).collect::<Vec<_>>();
                found.sort_unstable();
                found.dedup();
                Score::of(labels.clone(), found)
            }
        }
    }

    /// The labels name what a machine takes: of several priorities only the most urgent.
    fn chosen(&self, mut found: Vec<Signal>) -> Vec<Signal> {
        let known = Dialect::builtin(&self.dialect);
        let priority = |signal: &Signal| {
            known.and_then(|known| known.signal(&signal.name)).map(|found| found.priority)
        };
        let first = found.iter().filter_map(&priority).min();
        found.retain(|signal| priority(signal) == first || first.is_none());
        found
    }
}

/// Writes a signal as the labels do.
fn label(signal: &Signal) -> String {
    let Signal { name, subject, progress, .. } = signal;
    match (&*signal.dialect, subject, progress) {
        ("pilot", ..) => {
            let legacy = signal.fields.get("legacy").is_some_and(|legacy| legacy == true);
            format!("{}{}", if legacy { "legacy_" } else { "" }, name.to_lowercase())
        }
        ("delivery", Some(subject), _) if &**name == "HEALTH_AUDIT" => subject.clone(),
        (_, Some(subject), _) => format!("{name}:{subject}"),
        (_, None, Some(progress)) => format!("{name}:{progress}"),
        (_, None, None) => name.to_string(),
    }
}

/// Reads `conformance/endings.jsonl`.
///
/// # Errors
///
/// Fails if the file cannot be read or is not what it should be.
pub fn endings(data: &Path) -> io::Result<Vec<Labelled>> {
    let rows = rows(&data.join("conformance/endings.jsonl"))?;
    let labelled = rows.into_iter().enumerate().map(|(index, row)| {
        Ok(Labelled {
            name: format!("ending {}", index + 1),
            dialect: member(&row, "dialect")?,
            text: member(&row, "text")?.into_bytes(),
            want: Want::Claim(row["claim"] == true),
        })
    });
    labelled.collect()
}

/// A message of `conformance/endings2.jsonl`, which are deliberately hard.
#[derive(Clone, Debug)]
pub struct HardEnding {
    dialect: String,
    text: String,
    /// Whether a claim is made.
    pub claim: bool,
    /// What a reader decides that by: structure or words.
    pub decided_by: String,
}

impl HardEnding {
    /// Returns whether careful matching takes it for a claim.
    pub fn claims(&self, strict: bool) -> bool {
        let rules = Rules::new(Dialect::builtin(&self.dialect).cloned()).strict(strict);
        let signals = Scan::new(&rules).signals(self.text.as_bytes());
        signals.iter().any(|signal| signal.meaning.is_claim())
    }
}

/// Reads those of `conformance/endings2.jsonl` that are scored.
///
/// # Errors
///
/// Fails if the file cannot be read or is not what it should be.
pub fn hard_endings(data: &Path) -> io::Result<Vec<HardEnding>> {
    let rows = rows(&data.join("conformance/endings2.jsonl"))?;
    let scored = rows.into_iter().filter(|row| row["cls"] == "core").map(|row| {
        Ok(HardEnding {
            dialect: member(&row, "dialect")?,
            text: member(&row, "text")?,
            claim: row["claim"] == true,
            decided_by: member(&row, "by")?,
        })
    });
    scored.collect()
}

/// Reads `hostile/scan.jsonl` and the files it names.
///
/// # Errors
///
/// Fails if a file cannot be read or is not what it should be.
pub fn hostile(data: &Path) -> io::Result<Vec<Labelled>> {
    let directory = data.join("hostile");
    let rows = rows(&directory.join("scan.jsonl"))?;
    let labelled = rows.into_iter().map(|row| {
        let name = member(&row, "file")?;
        let accept = member(&row, "accept")?;
        let labels = accept.split(',').map(str::trim).filter(|label| !label.is_empty());
        Ok(Labelled {
            text: fs::read(directory.join(&name))?,
            dialect: member(&row, "dialect")?,
            want: Want::Labels(labels.map(str::to_owned).collect()),
            name,
        })
    });
    labelled.collect()
}

fn rows(path: &Path) -> io::Result<Vec<Value>> {
    let text = fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))?;
    let rows = text.lines().filter(|line| !line.trim().is_empty());
    rows.map(|line| serde_json::from_str(line).map_err(io::Error::from)).collect()
}

fn member(row: &Value, key: &str) -> io::Result<String> {
    let text = row[key].as_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("no `{key}` in {row}")))
}
