//! Through PgBouncer in transaction mode, where no two statements need have the same connection.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, net, thread};

use aldis_store::{PostgresAddress, PostgresStore, Store as _, conformance};

use super::{cluster, id, step};

#[test]
fn everything_works_through_a_pooler() {
    let Some(cluster) = cluster() else { return };
    if Command::new("pgbouncer").arg("--version").output().is_err() {
        assert!(env::var_os("CI").is_none(), "pgbouncer is not installed");
        std::io::stderr().write_all(b"skipped: pgbouncer is not installed\n").unwrap();
        return;
    }
    let port = net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let users = cluster.write("users.txt", "\"aldis\" \"\"\n").unwrap();
    // Fewer connections than ours, so that they are really shared.
    let settings = format!(
        "[databases]\npostgres = host={} dbname=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
         listen_port = {port}\nunix_socket_dir =\nauth_type = any\nauth_file = {}\n\
         pool_mode = transaction\ndefault_pool_size = 6\nmax_client_conn = 300\n",
        cluster.socket().display(),
        users.display(),
    );
    let settings = settings.replace("dbname=postgres", "dbname=postgres user=aldis");
    let settings = cluster.write("pgbouncer.ini", &settings).unwrap();
    let mut pooler = cluster.program("pgbouncer").unwrap();
    let pooler = pooler.arg("-q").arg(settings).stdin(Stdio::null()).stderr(Stdio::null());
    let mut pooler = pooler.stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the pooler does not start");
        thread::sleep(Duration::from_millis(20));
    }
    let mut number = 0;
    let mut open = || {
        number += 1;
        let schema = format!("pooled{number}");
        let pooled = format!("postgres://aldis@127.0.0.1:{port}/postgres?schema={schema}");
        let direct = PostgresAddress::parse(&cluster.address_of(&schema)).unwrap();
        let address = PostgresAddress::parse(&pooled).unwrap().with_direct(direct);
        PostgresStore::open(address.with_callers_clock()).unwrap()
    };
    conformance::check(|_| Box::new(open()));
    let store = open();
    let stamp = store.change().unwrap();
    store.commit(&step("r", 0)).unwrap();
    assert_ne!(store.wait_for_change(&stamp, Duration::from_secs(60)).unwrap(), stamp);
    assert_eq!(store.run(&id("r")).unwrap().unwrap().revision.0, 1);
    drop(store);
    pooler.kill().unwrap();
    pooler.wait().unwrap();
}
