//! All backends do what every backend must do.

use aldis_store::{GroupStore, MemoryStore, SqliteStore, conformance};

#[test]
fn memory() {
    conformance::check(|_| Box::new(MemoryStore::new()));
}

#[test]
fn sqlite() {
    let directory = tempfile::tempdir().unwrap();
    conformance::check(|check| {
        Box::new(SqliteStore::open(&directory.path().join(check.name)).unwrap())
    });
}

#[test]
fn group() {
    let directory = tempfile::tempdir().unwrap();
    conformance::check(|check| {
        Box::new(GroupStore::open(&directory.path().join(check.name)).unwrap())
    });
}

#[cfg(all(feature = "postgres", target_os = "linux"))]
#[test]
fn postgres() {
    let Some(cluster) = crate::postgres::cluster() else { return };
    conformance::check(|_| Box::new(crate::postgres::open(&cluster.address())));
}

#[test]
fn checks_have_names_of_their_own() {
    let mut names: Vec<&str> = conformance::CHECKS.iter().map(|check| check.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
