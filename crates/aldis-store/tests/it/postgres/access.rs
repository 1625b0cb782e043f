//! Who gets in: certificates, passwords and roles, and what is said to those who do not.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{
    ClaimRequest, CommitError, PostgresAddress, PostgresStore, Prune, Step, Store as _, StoreError,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::{cluster, open, step};
use crate::cluster::Cluster;

fn try_open(address: &str) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(PostgresAddress::parse(address).unwrap())
}

#[test]
fn certificates_and_passwords_are_checked_and_passwords_never_shown() {
    let Some(mut cluster) = cluster() else { return };
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority).unwrap();
    let roots = cluster.write("ca.pem", &authority.pem()).unwrap();
    let certificate = cluster.write("server.pem", &server.pem()).unwrap();
    let key = cluster.write("server.key", &key.serialize_pem()).unwrap();
    let hba = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    let hba = cluster.write("hba.conf", hba).unwrap();
    cluster.sql("ALTER ROLE aldis PASSWORD 'geheim'").unwrap();
    let port = cluster
        .listen(&[
            "ssl=on".to_owned(),
            format!("ssl_cert_file={}", certificate.display()),
            format!("ssl_key_file={}", key.display()),
            format!("hba_file={}", hba.display()),
        ])
        .unwrap();
    cluster.kill().unwrap();
    cluster.restart().unwrap();
    let roots = roots.display();
    let address = |password: &str, host: &str, more: &str| {
        format!("postgres://aldis:{password}@{host}:{port}/postgres?{more}")
    };
    let checked = format!("sslrootcert={roots}");
    let store = try_open(&address("geheim", "localhost", &checked)).unwrap();
    store.commit(&step("r", 0)).unwrap();
    // Notifications come through the same protection.
    let stamp = store.change().unwrap();
    assert_eq!(store.wait_for_change(&stamp, Duration::ZERO).unwrap(), stamp);
    let ssl = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
               WHERE application_name = 'aldis'";
    assert_eq!(cluster.sql(ssl).unwrap(), "t");
    for (password, host, more, expected) in [
        // Not signed by anybody whom this machine knows.
        ("geheim", "localhost", "sslmode=require".to_owned(), "ertificate"),
        // Signed, but for another name.
        ("geheim", "127.0.0.1", checked.clone(), "ertificate"),
        ("falschgeheim", "localhost", checked, "password authentication failed"),
        ("geheim", "localhost", "sslmode=disable".to_owned(), "no encryption"),
    ] {
        let error = try_open(&address(password, host, &more)).map(drop).unwrap_err();
        let words = format!("{error} {error:?}");
        assert!(words.contains(expected), "{words}");
        assert!(!words.contains("geheim"), "{words}");
    }
    // The password may come from elsewhere.
    let without = PostgresAddress::parse(&format!(
        "postgres://aldis@localhost:{port}/postgres?sslrootcert={roots}"
    ));
    let store = PostgresStore::open(without.unwrap().with_password("geheim")).unwrap();
    assert!(!format!("{store:?}").contains("geheim"));
}

/// Makes the roles as the documentation says an administrator does. Returns the addresses of roles.
pub(super) fn documented_roles(cluster: &Cluster) -> impl Fn(&str) -> String {
    let page = std::fs::read_to_string("../../docs/store.md").unwrap();
    let blocks: Vec<&str> =
        page.split("```sql\n").skip(1).map(|block| block.split_once("```").unwrap().0).collect();
    let [roles, grants, project] = blocks[..] else { panic!("{} blocks", blocks.len()) };
    // One statement at a time: some cannot be part of a transaction.
    let run = |text: &str, database: &str| {
        for statement in text.split(";\n").filter(|statement| !statement.trim().is_empty()) {
            cluster.sql_in(database, statement).unwrap();
        }
    };
    run(roles, "postgres");
    let socket = cluster.socket().display().to_string();
    let as_role = move |role: &str| format!("postgres://{role}@/aldis?host={socket}");
    let error = try_open(&as_role("aldis_app")).map(drop).unwrap_err();
    assert!(matches!(error, StoreError::NotAllowed { .. }), "{error}");
    let owner = PostgresAddress::parse(&as_role("aldis_owner")).unwrap();
    assert_eq!(PostgresStore::migrate(owner).unwrap(), (0, 4));
    run(grants, "aldis");
    run(project, "aldis");
    as_role
}

#[test]
fn the_documented_roles_are_enough() {
    let Some(cluster) = cluster() else { return };
    let as_role = documented_roles(&cluster);
    let store = open(&as_role("aldis_app"));
    for expected in 0..2 {
        let done = vec![format!("again/{expected}")];
        store.commit(&Step { done, ..step("again", expected) }).unwrap();
    }
    let now = Timestamp::from_millis(0);
    let lease = store.acquire_lease(&super::id("again"), "me", now, Duration::ZERO).unwrap();
    assert!(store.release_lease(&lease).unwrap());
    drop(store.turn(&super::id("again")).unwrap());
    store.commit(&step("claimed", 0)).unwrap();
    let request = ClaimRequest::new(&[], "me", now, Duration::ZERO);
    assert!(store.done(&store.claim(&request).unwrap()[0]).unwrap());
    store.probe().unwrap();
    let everything = Prune { ended_before: now, limit: 9 };
    assert_eq!(store.prune(&everything).unwrap(), []);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    assert!(store.size().unwrap().bytes > 0);
    let read_only = open(&as_role("aldis_reader"));
    assert_eq!(read_only.run(&super::id("again")).unwrap().unwrap().revision.0, 2);
    let error = read_only.commit(&step("again", 2)).unwrap_err();
    assert!(matches!(error, CommitError::Store(StoreError::NotAllowed { .. })), "{error}");
    // Neither can change the tables.
    let alter = "SET ROLE aldis_app; ALTER TABLE aldis.runs ADD COLUMN mine text";
    assert!(cluster.sql_in("aldis", alter).unwrap_err().to_string().contains("must be owner"));
}
