//! Compares a receipt with its key, the receipts before it, the repository and the store, offline.

use std::path::Path;

use aldis_store::{Revision, RunId, Store};
use serde_json::Value;

use super::build::Journal;
use super::canonical::{canonical, sha256};
use super::chain::{self, Chain};
use super::key::Key;
use crate::agents::git::Git;
use crate::error::CommandError;
use crate::view::time::counted;
use crate::view::wire::receipt::{
    Receipt, ReceiptFile, ReceiptPins, SealedReceipt, VerifiedLine, VerifiedPart,
};

/// How many differences of one kind are told.
const TOLD_MAX: usize = 5;

/// What a comparison came to.
enum Comparison {
    Same(String),
    Differs(String),
    /// There is nothing left to compare with.
    Unknown(String),
}

use Comparison::{Differs, Same, Unknown};

/// Compares a receipt with everything it can be compared with.
pub(crate) struct Verifier<'v> {
    state: &'v Path,
    store: &'v dyn Store,
    key: Option<Key>,
}

impl<'v> Verifier<'v> {
    /// Verifies with the key and the runs of this state directory.
    ///
    /// # Errors
    ///
    /// Fails if the key cannot be read.
    pub(crate) fn new(state: &'v Path, store: &'v dyn Store) -> Result<Self, CommandError> {
        Ok(Self { state, store, key: Key::read(state)? })
    }

    /// Verifies the receipt in a file.
    ///
    /// # Errors
    ///
    /// Fails if the file or the store cannot be read; whatever the file holds is a finding.
    pub(crate) fn file(&self, path: &Path) -> Result<VerifiedLine, CommandError> {
        let bytes = chain::read(path)?;
        let mut line = VerifiedLine {
            v: 1,
            kind: "verified".to_owned(),
            run: None,
            number: None,
            file: path.display().to_string(),
            ok: true,
            findings: Vec::new(),
        };
        match opened(&bytes) {
            Err(why) => line.add("form", Differs(why)),
            Ok((sealed, signed)) => {
                line.add("form", Same("one line of canonical JSON".to_owned()));
                line.run = Some(sealed.receipt.run.clone());
                line.number = Some(sealed.receipt.number);
                line.add("mac", self.mac(&sealed, &signed));
                line.add("chain", self.chain(&sealed, &bytes)?);
                let receipt = &sealed.receipt;
                line.add("commit", commit(receipt));
                if let Some(pins) = &receipt.protected {
                    line.add("protected", protected(receipt, pins));
                }
                line.add("decisions", self.decisions(receipt)?);
            }
        }
        Ok(line)
    }

    fn mac(&self, sealed: &SealedReceipt, signed: &str) -> Comparison {
        let Some(key) = &self.key else {
            return Differs("there is no key in the state directory".to_owned());
        };
        if key.signed(signed, &sealed.mac) {
            return Same("signed with the key of the state directory".to_owned());
        }
        Differs(match key.name() == sealed.receipt.key {
            true => "the receipt was edited: its MAC does not match".to_owned(),
            false => "the receipt was edited, or signed with another key".to_owned(),
        })
    }

    /// A receipt continues the one before it, and is the one that is kept under its number.
    fn chain(&self, sealed: &SealedReceipt, bytes: &[u8]) -> Result<Comparison, CommandError> {
        let receipt = &sealed.receipt;
        let Ok(run) = RunId::new(&*receipt.run) else {
            return Ok(Differs("it names no run".to_owned()));
        };
        let entries = Chain::of(self.state, &run).entries()?;
        if entries.is_empty() {
            return Ok(Unknown("the state directory has no receipts of this run".to_owned()));
        }
        let of = |number: u64| entries.iter().filter(move |it| it.name.number == number);
        let is_kept =
            of(receipt.number).any(|it| chain::read(&it.path).is_ok_and(|it| it == bytes));
        if !is_kept {
            let number = receipt.number;
            return Ok(Differs(format!("it is not receipt {number} of the state directory")));
        }
        let before = receipt.number.checked_sub(1).filter(|number| *number > 0);
        Ok(match (before, &receipt.previous) {
            (None, None) => Same("the first receipt of the run".to_owned()),
            (None, Some(_)) => Differs("the first receipt continues another one".to_owned()),
            (Some(before), previous) => {
                let macs = of(before).filter_map(|it| Some(chain::parse(&it.path).ok()?.mac));
                let macs: Vec<String> = macs.collect();
                match previous {
                    Some(previous) if macs.contains(previous) => {
                        Same(format!("continues receipt {before}"))
                    }
                    _ if macs.is_empty() => Differs(format!("receipt {before} is gone")),
                    _ => Differs(format!("receipt {before} is not the one it continues")),
                }
            }
        })
    }

    /// The store still holds the decisions that led to it.
    fn decisions(&self, receipt: &Receipt) -> Result<Comparison, CommandError> {
        let run = RunId::new(&*receipt.run).ok();
        let known = run.filter(|run| matches!(self.store.run(run), Ok(Some(_))));
        let Some(run) = known else {
            return Ok(Unknown(format!("run {} is not in the store any more", receipt.run)));
        };
        let journal = Journal::until(self.store, &run, Revision(receipt.revision))?;
        let wrong: Vec<String> = receipt
            .decisions
            .iter()
            .filter(|listed| journal.digest(listed.seq) != Some(&listed.sha256))
            .map(|listed| format!("decision {} ({})", listed.seq, listed.rule))
            .collect();
        Ok(match journal.in_short() == receipt.journal {
            _ if !wrong.is_empty() => Differs(format!("the store has another {}", told(&wrong))),
            false => Differs(format!(
                "the store has {} decisions until then, the receipt {}, or other ones",
                journal.in_short().decisions,
                receipt.journal.decisions
            )),
            true => Same(format!("the {} decisions of the store", receipt.journal.decisions)),
        })
    }
}

impl VerifiedLine {
    fn add(&mut self, part: &str, found: Comparison) {
        let (result, detail) = match found {
            Same(detail) => ("ok", detail),
            Differs(detail) => ("differs", detail),
            Unknown(detail) => ("unknown", detail),
        };
        self.ok &= result != "differs";
        let (part, result) = (part.to_owned(), result.to_owned());
        self.findings.push(VerifiedPart { part, result, detail });
    }
}

/// Reads a receipt that must be written in the one way. Returns what was signed with it.
fn opened(bytes: &[u8]) -> Result<(SealedReceipt, String), String> {
    let unreadable = |error: serde_json::Error| format!("it is no receipt: {error}");
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no receipt: not UTF-8".to_owned())?;
    let value: Value = serde_json::from_str(text).map_err(unreadable)?;
    let other = || "it is not in the canonical form: somebody wrote it anew".to_owned();
    if text.strip_suffix('\n') != Some(&*canonical(&value).map_err(unreadable)?) {
        return Err(other());
    }
    let signed = value.get("receipt").map(canonical).transpose().map_err(unreadable)?;
    let members = value.as_object().map_or(0, serde_json::Map::len);
    let sealed: SealedReceipt = serde_json::from_value(value).map_err(unreadable)?;
    match signed {
        Some(signed) if members == 2 => Ok((sealed, signed)),
        _ => Err(other()),
    }
}

/// The repository still has the commit.
fn commit(receipt: &Receipt) -> Comparison {
    let Some(repository) = &receipt.repository else {
        return Unknown("the project had no repository".to_owned());
    };
    let Some(commit) = &repository.commit else {
        return Unknown("the repository had no commit".to_owned());
    };
    let Some(git) = Git::around(Path::new(&repository.root)) else {
        return Unknown(format!("there is no repository at {}", repository.root));
    };
    match git.has_object(commit) {
        true => Same(format!("{commit} is in the repository")),
        false => Differs(format!("{commit} is not in the repository any more")),
    }
}

/// The pinned files are in the commit as they were judged. Where there were uncommitted changes, the
/// commit may hold other versions.
fn protected(receipt: &Receipt, pins: &ReceiptPins) -> Comparison {
    let repository = receipt.repository.as_ref();
    let found = repository.and_then(|it| {
        let commit = it.commit.as_deref()?;
        let git = Git::around(Path::new(&it.root)).filter(|git| git.has_object(commit))?;
        Some((git, commit, it.clean))
    });
    let Some((git, commit, clean)) = found else {
        return Unknown("there is no commit to compare with".to_owned());
    };
    let project = Path::new(&receipt.project);
    let is_other = |file: &&ReceiptFile| {
        let path = project.join(&file.path);
        let path = path.strip_prefix(git.root()).unwrap_or_else(|_| Path::new(&file.path));
        git.file_at(commit, path).map(|bytes| sha256(&bytes)).as_ref() != Some(&file.sha256)
    };
    let other: Vec<String> = pins.files.iter().filter(is_other).map(|it| it.path.clone()).collect();
    match (&*other, clean) {
        ([], _) if pins.files.is_empty() => {
            Unknown("no whole file was pinned, so there is none to compare".to_owned())
        }
        ([], _) => Same(compared(pins)),
        (_, true) => Differs(format!("the commit has another version of {}", told(&other))),
        (_, false) => Unknown(format!("not committed when it was judged: {}", told(&other))),
    }
}

/// How many of the pinned files were compared: those of which the whole file is pinned.
fn compared(pins: &ReceiptPins) -> String {
    let whole = pins.files.len() as u64;
    if whole >= pins.count {
        return format!("{} as in the commit", counted(whole, "pinned file"));
    }
    let all = counted(pins.count, "pinned file");
    format!("{whole} of {all} as in the commit; a part of a file is not compared")
}

fn told(names: &[String]) -> String {
    let shown = names.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(TOLD_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_which_a_part_is_pinned_are_not_called_compared() {
        let file = |path: &str| ReceiptFile { path: path.to_owned(), sha256: String::new() };
        let mut pins = ReceiptPins {
            sha256: String::new(),
            count: 4,
            own: Vec::new(),
            files: vec![file("tests/sum.test.js")],
            changes: Vec::new(),
            more_changes: 0,
        };
        let partly = "1 of 4 pinned files as in the commit; a part of a file is not compared";
        assert_eq!(compared(&pins), partly);
        pins.count = 1;
        assert_eq!(compared(&pins), "1 pinned file as in the commit");
    }
}
