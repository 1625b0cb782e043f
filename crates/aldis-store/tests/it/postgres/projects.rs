//! A role for each project: whatever it sends, it sees and changes nothing of others.

use std::time::Duration;

use aldis_signal::time::Timestamp;
use aldis_store::{
    ClaimRequest, CommitError, DecisionFilter, PostgresStore, Prune, RunFilter, Step, Store,
    Ticket, Tickets as _,
};

use super::access::documented_roles;
use super::{cluster, id, open, step};

/// A step of a run of a project, with something in every table.
fn of(project: &str, run: &str, expected: u64) -> Step {
    let mut step = step(run, expected);
    project.clone_into(&mut step.record.project);
    step
}

/// A database with runs of several projects, as whoever serves sees it.
fn furnished(as_role: &impl Fn(&str) -> String) -> PostgresStore {
    let all = open(&as_role("aldis_app"));
    for (project, run) in [("/srv/shop", "mine"), ("/srv/other", "theirs"), ("", "nobodys")] {
        all.commit(&of(project, run, 0)).unwrap();
    }
    all
}

#[test]
fn a_role_sees_its_project_and_nothing_else() {
    let Some(cluster) = cluster() else { return };
    let as_role = documented_roles(&cluster);
    let all = furnished(&as_role);
    let now = Timestamp::from_millis(0);
    let until = Timestamp::from_millis(1_000);
    let [kind, key, body] = ["token", "k", "{}"].map(str::to_owned);
    let ticket = Ticket { kind, key, created: now, until, body };
    assert!(all.put_ticket(&ticket).unwrap());
    assert_eq!(all.count(&RunFilter::default()).unwrap(), 3);

    let shop = open(&as_role("aldis_shop"));
    shop.commit(&of("/srv/shop", "mine", 1)).unwrap();
    shop.commit(&of("/srv/shop", "new", 0)).unwrap();
    let names: Vec<String> = shop
        .list(&RunFilter::default())
        .unwrap()
        .into_iter()
        .map(|run| run.id.as_str().to_owned())
        .collect();
    assert_eq!(names, ["new", "mine"]);
    for run in ["theirs", "nobodys"] {
        let run = id(run);
        assert!(shop.load(&run).unwrap().is_none());
        assert_eq!(shop.events(&run, 0, 9).unwrap(), []);
        let filter =
            DecisionFilter { run: Some(run.clone()), limit: 9, ..DecisionFilter::default() };
        assert_eq!(shop.decisions(&filter).unwrap(), []);
        assert!(shop.acquire_lease(&run, "me", now, Duration::ZERO).is_err());
    }
    let claims = shop
        .claim(&ClaimRequest { limit: 99, ..ClaimRequest::new(&[], "me", now, Duration::ZERO) });
    assert!(
        claims.unwrap().iter().all(|claim| ["mine", "new"].contains(&claim.effect.run.as_str()))
    );
    // A name that is taken is refused, at once; nor is a run taken out of its project.
    let taken = shop.commit(&of("/srv/shop", "theirs", 0)).unwrap_err();
    assert!(
        matches!(&taken, CommitError::Store(error) if error.to_string().contains("taken")),
        "{taken}"
    );
    for (project, run, expected) in [("/srv/other", "new2", 0), ("/srv/other", "mine", 2)] {
        let moved = shop.commit(&of(project, run, expected)).unwrap_err();
        assert!(matches!(moved, CommitError::Store(_)), "{moved}");
    }
    assert_eq!(shop.ticket("token", "k").unwrap(), None);
    assert!(shop.put_ticket(&Ticket { key: "mine".to_owned(), ..ticket }).is_err());
    let everything = Prune { ended_before: Timestamp::from_millis(i64::MAX), limit: 9 };
    drop(shop.prune(&everything));
    assert_eq!(all.count(&RunFilter::default()).unwrap(), 4, "nothing of others is gone");
}

#[test]
fn no_statement_of_a_role_reaches_other_projects() {
    let Some(cluster) = cluster() else { return };
    let as_role = documented_roles(&cluster);
    drop(furnished(&as_role));
    let as_shop = |sql: &str| cluster.sql_in("aldis", &format!("SET ROLE aldis_shop; {sql}"));
    let count = |sql: &str| as_shop(sql).unwrap().lines().last().unwrap_or_default().to_owned();
    for table in ["runs", "events", "decisions", "outbox", "timers", "parts"] {
        let key = if table == "runs" { "id" } else { "run" };
        let sql =
            format!("SELECT count(*) FROM aldis.{table} WHERE {key} IN ('theirs', 'nobodys')");
        assert_eq!(count(&sql), "0", "{table}");
        let kept = format!("SELECT count(*) FROM aldis.{table} WHERE {key} = 'theirs'");
        let before = cluster.sql_in("aldis", &kept).unwrap();
        as_shop(&format!("DELETE FROM aldis.{table} WHERE {key} = 'theirs'")).unwrap();
        assert_eq!(cluster.sql_in("aldis", &kept).unwrap(), before, "{table}");
    }
    assert_eq!(count("SET aldis.project = '/srv/other'; SELECT count(*) FROM aldis.runs"), "0");
    assert_eq!(count("SET aldis.project = ''; SELECT count(*) FROM aldis.runs"), "1");
    assert_eq!(count("SELECT count(*) FROM aldis.tickets"), "0");
    for sql in [
        "INSERT INTO aldis.members VALUES ('aldis_shop', '/srv/other')",
        "ALTER TABLE aldis.runs DISABLE ROW LEVEL SECURITY",
        "SET row_security = off; SELECT count(*) FROM aldis.runs",
        "SET ROLE aldis_app",
    ] {
        let refused =
            cluster.sql_in("aldis", &format!("SET SESSION AUTHORIZATION aldis_shop; {sql}"));
        assert!(refused.is_err(), "{sql}");
    }
    as_shop("DELETE FROM aldis.members").unwrap();
    assert_eq!(count("SELECT count(*) FROM aldis.runs"), "1", "it cannot free itself");
    // A server can limit itself by the setting.
    let narrow = "SET ROLE aldis_app; SET aldis.project = '/srv/other'; SELECT id FROM aldis.runs";
    assert_eq!(cluster.sql_in("aldis", narrow).unwrap().lines().last(), Some("theirs"));
}
