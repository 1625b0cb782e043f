//! Databases of every age, and files that are none.

use std::fs;
use std::path::Path;

use aldis_signal::time::Timestamp;
use aldis_store::{EffectFilter, RunFilter, SqliteStore, Store, StoreError};
use rusqlite::Connection;

use crate::child;

/// What version 1 was when it was released. Never edit: this is what users have.
const VERSION_1: &str = include_str!("../data/version-1.sql");

/// Writes `aldis.db` as some program left it.
pub(crate) fn database(directory: &Path, sql: &str) {
    let connection = Connection::open(directory.join("aldis.db")).unwrap();
    connection.execute_batch(sql).unwrap();
    drop(connection);
    keep_private(directory);
}

/// Writes `aldis.db` as no program of ours would.
fn file(directory: &Path, content: &str) {
    fs::write(directory.join("aldis.db"), content).unwrap();
    keep_private(directory);
}

/// Whatever the umask of this process is: a file that others can write to would be refused.
fn keep_private(directory: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(directory.join("aldis.db"), private).unwrap();
    }
}

/// What 0.1.0 left behind. Never edit.
pub(crate) const VERSION_2: &str = include_str!("../data/version-2.sql");

fn version(directory: &Path) -> u32 {
    let connection = Connection::open(directory.join("aldis.db")).unwrap();
    connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn version_1_opens_with_everything_in_it() {
    let directory = tempfile::tempdir().unwrap();
    database(directory.path(), VERSION_1);
    let store = SqliteStore::open(directory.path()).unwrap();
    let runs = store.list(&RunFilter::default()).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!((&*runs[0].title, runs[0].revision.0), ("An old run", 2));
    assert_eq!(store.events(&runs[0].id, 0, 10).unwrap().len(), 2);
    assert_eq!(store.effect("old-effect").unwrap().unwrap().body, "{}");
    child::count_once(&store, "new");
    store.check().unwrap();
    assert_eq!(store.load(&runs[0].id).unwrap().unwrap().parts, []);
    assert_eq!(version(directory.path()), 5);
}

#[test]
fn version_2_opens_with_everything_in_it() {
    let directory = tempfile::tempdir().unwrap();
    database(directory.path(), VERSION_2);
    let store = SqliteStore::open(directory.path()).unwrap();
    check_version_2(&store);
    child::count_once(&store, "new");
    store.check().unwrap();
    assert_eq!(version(directory.path()), 5);
}

/// Checks that everything of version 2 is there, as it is understood today.
pub(crate) fn check_version_2(store: &SqliteStore) {
    let runs = store.list(&RunFilter::default()).unwrap();
    let found: Vec<_> =
        runs.iter().map(|run| (run.id.as_str(), &*run.project, run.driver.as_str())).collect();
    assert_eq!(
        found,
        [
            ("plan", "/home/me/shop", "process"),
            ("served-phases", "", "server"),
            ("general", "", "server"),
            ("hooked", "/home/me/shop", "hook"),
            ("gone-before", "/home/me/shop", "process"),
        ]
    );
    let [plan, .., hooked, _] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((plan.fence, hooked.revision.0, hooked.last_event), (3, 2, 2));
    assert_eq!(store.run(&hooked.id).unwrap().unwrap().record.state, r#"{"iteration":2}"#);
    let lease = plan.lease.as_ref().unwrap();
    assert_eq!((&*lease.holder, lease.until), ("pid 17", Timestamp::from_millis(99)));
    assert_eq!(store.load(&plan.id).unwrap().unwrap().parts[0].body, r#"{"task":1}"#);
    let taken = store.event_by_source(&hooked.id, "stop-1").unwrap().unwrap();
    assert_eq!((taken.seq, &*taken.kind), (2, "stop"));
    assert_eq!((taken.revision, taken.digest), (None, None));
    // Decisions 1, 2 and 4 were pruned, 6 was the last.
    let of = |text: &str| store.continuity(&text.parse().unwrap()).unwrap();
    assert_eq!(
        [of("1"), of("2"), of("7")].map(|it| format!("{it:?}")),
        ["Pruned", "Complete", "Unknown"]
    );
    let pending = store.pending_effects(&EffectFilter::due_by(Timestamp::from_millis(99))).unwrap();
    assert_eq!(
        pending.iter().map(|effect| &*effect.key).collect::<Vec<_>>(),
        ["hooked/view/2", "general/1/0/all"]
    );
    assert_eq!(pending[1].error.as_deref(), Some("timed out"));
    assert_eq!([&*pending[0].lane, &*pending[1].lane], ["", "general/all"]);
    assert_eq!(store.next_timer().unwrap(), Some(Timestamp::from_millis(100)));
}

#[test]
fn the_released_schema_is_the_one_we_create() {
    let schema = |directory: &Path| -> Vec<String> {
        let connection = Connection::open(directory.join("aldis.db")).unwrap();
        let mut statement = connection
            .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
            .unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        // Comments and spaces inside a statement are kept by SQLite.
        rows.map(|sql| {
            let sql = sql.unwrap();
            let lines = sql.lines().map(|line| line.split("--").next().unwrap());
            lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
        })
        .collect()
    };
    let new = tempfile::tempdir().unwrap();
    drop(SqliteStore::open(new.path()).unwrap());
    for released in [VERSION_1, VERSION_2] {
        let old = tempfile::tempdir().unwrap();
        database(old.path(), released);
        drop(SqliteStore::open(old.path()).unwrap());
        assert_eq!(schema(old.path()), schema(new.path()));
    }
}

#[test]
fn an_empty_or_half_created_file_is_filled() {
    let directory = tempfile::tempdir().unwrap();
    file(directory.path(), "");
    child::count_once(&SqliteStore::open(directory.path()).unwrap(), "one");
    assert_eq!(child::verify(directory.path(), &["one".to_owned()]), 1);

    // Killed after the journal mode was set and before the first migration.
    let directory = tempfile::tempdir().unwrap();
    database(directory.path(), "PRAGMA journal_mode = WAL");
    child::count_once(&SqliteStore::open(directory.path()).unwrap(), "one");
    assert_eq!(child::verify(directory.path(), &["one".to_owned()]), 1);
}

#[test]
fn a_newer_version_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    database(directory.path(), VERSION_1);
    database(directory.path(), "PRAGMA user_version = 7");
    let before = fs::read(directory.path().join("aldis.db")).unwrap();
    let error = SqliteStore::open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::NewerSchema { found: 7, known: 5, .. }), "{error}");
    assert!(error.to_string().contains("update this program"), "{error}");
    assert!(error.to_string().contains("aldis.db"), "{error}");
    assert!(fs::read(directory.path().join("aldis.db")).unwrap() == before);
}

#[test]
fn what_is_not_ours_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    database(directory.path(), "CREATE TABLE recipes (name TEXT)");
    let error = SqliteStore::open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    let connection = Connection::open(directory.path().join("aldis.db")).unwrap();
    assert!(connection.prepare("SELECT name FROM recipes").is_ok());
    assert!(connection.prepare("SELECT id FROM runs").is_err());

    let directory = tempfile::tempdir().unwrap();
    file(directory.path(), &"no database, but long enough ".repeat(200));
    let error = SqliteStore::open(directory.path()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn a_damaged_row_is_reported_and_not_guessed_at() {
    let directory = tempfile::tempdir().unwrap();
    child::count_once(&SqliteStore::open(directory.path()).unwrap(), "one");
    for damage in ["UPDATE runs SET id = '../x'", "UPDATE runs SET id = 'ok', revision = -1"] {
        database(directory.path(), damage);
        let store = SqliteStore::open(directory.path()).unwrap();
        let error = store.list(&RunFilter::default()).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
}
