//! The parts of a state: written with their step, read together.

use std::thread;

use super::{create, id, ok, record, refused, step};
use crate::record::Loaded;
use crate::step::{PartChange, RunRecord, Step};
use crate::store::Store;

fn set(key: &str, body: &str) -> PartChange {
    PartChange::Set { key: key.to_owned(), body: body.to_owned() }
}

fn clear(key: &str) -> PartChange {
    PartChange::Clear { key: key.to_owned() }
}

fn kept(store: &dyn Store, run: &str) -> Vec<(String, String)> {
    let parts = ok(store.load(&id(run))).map_or_else(Vec::new, |loaded| loaded.parts);
    parts.into_iter().map(|part| (part.key, part.body)).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|&(key, body)| (key.to_owned(), body.to_owned())).collect()
}

pub(super) fn parts_are_kept_until_they_change(store: &dyn Store) {
    assert_eq!(kept(store, "r"), []);
    let parts = vec![set("b", "1"), set("a", "2"), set("B", "3"), set("ä", "4")];
    ok(store.commit(&Step { parts, ..step("r", 0) }));
    ok(store.commit(&Step { parts: vec![set("a", "other run")], ..step("s", 0) }));
    let all = pairs(&[("B", "3"), ("a", "2"), ("b", "1"), ("ä", "4")]);
    assert_eq!(kept(store, "r"), all, "in the order of their bytes");
    ok(store.commit(&step("r", 1)));
    assert_eq!(kept(store, "r"), all, "a step that does not touch them leaves them");
    // In the order given: the last change counts.
    let parts = vec![set("a", "5"), clear("b"), clear("unknown"), clear("B"), set("B", "6")];
    ok(store.commit(&Step { parts, ..step("r", 2) }));
    assert_eq!(kept(store, "r"), pairs(&[("B", "6"), ("a", "5"), ("ä", "4")]));
    assert_eq!(kept(store, "s"), pairs(&[("a", "other run")]));
}

/// A writer that raises the state and its part together, and a reader that must never see only one.
pub(super) fn a_run_and_its_parts_are_of_one_step(store: &dyn Store) {
    const STEPS: u64 = 50;
    thread::scope(|scope| {
        scope.spawn(|| {
            for expected in 0..STEPS {
                let state = (expected + 1).to_string();
                let parts = vec![set("same", &state)];
                let record = RunRecord { state, ..record() };
                ok(store.commit(&Step { parts, record, ..step("r", expected) }));
            }
        });
        scope.spawn(|| {
            let mut seen = 0;
            while seen < STEPS {
                let Some(Loaded { run, parts }) = ok(store.load(&id("r"))) else { continue };
                assert_eq!(run.record.state, parts[0].body);
                assert_eq!(run.record.state, run.revision.to_string());
                seen = run.revision.0;
            }
        });
    });
    assert_eq!(ok(store.load(&id("none"))), None);
}

pub(super) fn a_refused_step_leaves_the_parts(store: &dyn Store) {
    create(store, "r");
    refused(store, &Step { parts: vec![set("a", "1")], ..step("r", 0) });
    refused(store, &Step { parts: vec![set("a", "1")], ..step("none", 3) });
    assert_eq!(kept(store, "r"), []);
    assert_eq!(kept(store, "none"), []);
}
