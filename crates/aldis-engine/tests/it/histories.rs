//! What 0.1.0 wrote is still read, decided in the same way, and gone on with.
//!
//! The files in `testdata/histories` were made with that release's own binary and are never changed.
//! Where today's machines decide otherwise, [`DIFFERENCES`] says so by name.

#[cfg(unix)]
mod database;
mod differences;
mod journal;

use std::collections::BTreeSet;
use std::sync::Arc;

use aldis_engine::{Difference, Engine};

use self::differences::DIFFERENCES;
use self::journal::{Journal, journals};

const VERSION: &str = "v0.1.0";

/// Takes a journal through today's machine and says where that decides otherwise. How the state is
/// laid out is another matter: today's machines know more.
fn differences(journal: &Journal) -> Vec<String> {
    let engine = Engine::new(Arc::new(journal.store()));
    let replay = engine.replay(&journal.id());
    let replay = replay.unwrap_or_else(|error| panic!("{}: {error}", journal.name));
    let named = replay.differences.into_iter().filter_map(|difference| match difference {
        Difference::Decision { number, member, .. } => Some(format!("{number}: {member}")),
        Difference::Missing { number, rule } => Some(format!("{number}: missing {rule}")),
        Difference::Added { number, rule } => Some(format!("today's {number}: {rule}")),
        Difference::State { .. } => None,
    });
    named.collect()
}

#[test]
fn every_history_is_decided_as_it_was() {
    let mut listed = BTreeSet::new();
    for (journal, whats, _) in DIFFERENCES {
        for what in *whats {
            assert!(listed.insert(format!("{journal}: {what}")), "twice: {journal}: {what}");
        }
    }
    let mut unlisted = Vec::new();
    for journal in journals(VERSION) {
        for what in differences(&journal) {
            let line = format!("{}: {what}", journal.name);
            if !listed.remove(&line) {
                unlisted.push(line);
            }
        }
    }
    assert_eq!(unlisted.join("\n"), "", "decided otherwise today, and not in DIFFERENCES");
    assert_eq!(listed, BTreeSet::new(), "decided as it was: take it out of DIFFERENCES");
}

/// A comparison that finds nothing would make the test above pass for ever.
#[test]
fn a_difference_is_found() {
    let journals = journals(VERSION);
    let mut journal = journals.into_iter().find(|journal| journal.name == "run-done").unwrap();
    assert_eq!(differences(&journal), [""; 0]);
    let first = journal.take_first_decision();
    assert_eq!(differences(&journal), [format!("today's 1: {first}")]);
}

/// All machines and all that can be stored about them.
#[test]
fn there_are_histories_of_every_machine() {
    let journals = journals(VERSION);
    let decided: usize = journals.iter().map(Journal::decisions).sum();
    assert!(decided > 1_000, "{decided}");
    for machine in aldis_engine::MACHINES {
        let count = journals.iter().filter(|journal| journal.header.machine == *machine).count();
        assert!(count >= 10, "{count} of {machine}");
    }
}
