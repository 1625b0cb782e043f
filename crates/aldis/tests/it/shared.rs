//! The same commands on a PostgreSQL database that several machines share.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use aldis_testkit::postgres::Cluster;
use serde_json::{Value, json};

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};
use crate::serve::client::{self, Server};

/// Starts a server, or says that the test is skipped.
pub(crate) fn cluster() -> Option<Cluster> {
    let cluster = Cluster::start().unwrap();
    if cluster.is_none() {
        std::io::stderr().write_all(b"skipped: PostgreSQL is not installed\n").unwrap();
    }
    cluster
}

/// A machine that uses this store: a home and a state directory of its own.
struct Machine {
    project: Project,
    store: String,
}

impl Machine {
    fn new(store: &str) -> Self {
        Self { project: Project::new().patient(), store: store.to_owned() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(ALDIS);
        command.env("ALDIS_STORE", &self.store).env("PATH", "/usr/bin:/bin").args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        feed(self.command(args), b"")
    }

    #[track_caller]
    fn good(&self, args: &[&str]) -> String {
        let done = self.run(args);
        assert_eq!(done.code, 0, "{}", done.text());
        done.stdout
    }

    fn hook(&self, text: &str) -> Done {
        let payload = self.project.payload(text).to_string();
        feed(self.command(&["hook", "claude-code"]), payload.as_bytes())
    }

    fn runs(&self) -> Vec<Value> {
        self.run(&["status", "--all", "--json"]).json()
    }
}

#[test]
fn what_one_machine_does_the_other_sees() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address_of("team");
    let [one, other] = [Machine::new(&address), Machine::new(&address)];
    let agent = "cat > /dev/null; echo '<chorus>COMPLETE</chorus>'";
    one.good(&["run", "--task", "Add CSV export", "--quiet", "--", "/bin/sh", "-c", agent]);
    // No database was made here.
    assert!(!one.project.state_dir().join("aldis.db").exists());
    let runs = other.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let run = runs[0]["run"].as_str().unwrap();
    for args in [&["why", run][..], &["log", run], &["replay", run], &["report", run]] {
        other.good(args);
    }
    assert!(other.good(&["why", run]).contains("Add CSV export"));
    assert_eq!(cluster.sql("SELECT count(*) FROM team.runs WHERE NOT active").unwrap(), "1");
    assert!(
        other.good(&["store", "check"]).contains("1 run"),
        "{}",
        other.good(&["store", "check"])
    );
    // A human elsewhere ends what one machine began.
    one.good(&["auto", "start", "Another task", "--session", "S1", "--json"]);
    let active = other.runs().into_iter().find(|run| run["active"] == true);
    let id = active.unwrap()["run"].as_str().unwrap().to_owned();
    other.good(&["abort", &id]);
    assert!(one.runs().iter().all(|run| run["active"] == false), "{:?}", one.runs());
    let far = [("ALDIS_NOW", "2099-01-01T00:00:00Z")];
    let mut prune = one.command(&["store", "prune"]);
    assert!(
        feed(
            {
                prune.envs(far);
                prune
            },
            b""
        )
        .stdout
        .starts_with("Deleted 2 runs")
    );
}

#[test]
fn a_plan_is_delivered() {
    let Some(cluster) = cluster() else { return };
    let machine = Machine::new(&cluster.address_of("plan"));
    machine.good(&["demo", "--fast"]);
    let runs = machine.runs();
    assert_eq!((runs.len(), &runs[0]["machine"]), (1, &json!("delivery")), "{runs:?}");
    let id = runs[0]["run"].as_str().unwrap();
    assert!(machine.good(&["tasks", id]).contains("5 of 5 tasks complete"));
    machine.good(&["replay", id]);
    machine.good(&["store", "check"]);
}

#[test]
fn a_hook_decides_in_the_shared_store_and_fails_open_without_it() {
    let Some(mut cluster) = cluster() else { return };
    let address = cluster.address_of("hooks");
    let machine = Machine::new(&address);
    machine.good(&["auto", "start", "Add CSV export", "--session", "S1", "--json"]);
    let blocked = machine.hook("Not there yet.");
    assert_eq!((blocked.code, &*blocked.stderr), (0, ""), "{}", blocked.text());
    let answer: Value = serde_json::from_str(&blocked.stdout).unwrap();
    assert_eq!(answer["decision"], "block", "{answer}");
    cluster.kill().unwrap();
    let began = std::time::Instant::now();
    let let_go = machine.hook("Not there yet.");
    assert_eq!((let_go.code, &*let_go.stdout, &*let_go.stderr), (0, "", ""));
    assert!(began.elapsed() < std::time::Duration::from_secs(30), "{:?}", began.elapsed());
    let failures = fs::read_to_string(machine.project.state_dir().join("failures.jsonl")).unwrap();
    assert!(failures.contains("does not answer"), "{failures}");
    let status = machine.run(&["status"]);
    assert_eq!(status.code, 2);
    assert!(status.stderr.contains("does not answer"), "{}", status.text());
    // Back again, it goes on counting.
    cluster.restart().unwrap();
    let blocked = machine.hook("Not there yet.");
    let answer: Value = serde_json::from_str(&blocked.stdout).unwrap();
    assert_eq!(answer["decision"], "block", "{answer}");
}

#[test]
fn two_servers_serve_one_store() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address_of("replicas");
    let start = || {
        let (directory, state) = client::place();
        let mut command = client::command(&state, &[]);
        command.env("ALDIS_STORE", &address);
        (directory, Server::start_command(&state, command))
    };
    let [(_one_place, one), (_other_place, other)] = [start(), start()];
    let channel = json!({ "channel": "c1", "agents": ["pm", "dev"] });
    assert_eq!(one.post("/v1/channels", &channel).status, 201);
    for (server, agent) in [(&other, "pm"), (&one, "dev"), (&other, "pm")] {
        let message = json!({ "agent": agent, "text": "Done here. TURN_COMPLETE" });
        let sent = server.post("/v1/channels/c1/messages", &message);
        assert!(sent.status < 300, "{} {}", sent.status, sent.text);
    }
    let turns = [&one, &other].map(|server| server.get("/v1/channels/c1").json()["turn"].clone());
    assert_eq!(turns[0], turns[1]);
    assert!(turns[0].as_u64().unwrap() >= 4, "{turns:?}");
    for server in [one, other] {
        server.signal(nix::sys::signal::Signal::SIGTERM);
        assert!(server.end().success());
    }
}

#[test]
fn every_machine_of_a_release_is_copied_there_and_back() {
    let Some(cluster) = cluster() else { return };
    let project = crate::histories::unpacked("v0.1.0");
    let state = project.state_dir();
    let address = cluster.address_of("copy");
    let back = project.root().join("back");
    let (state, back) = (state.display().to_string(), back.display().to_string());
    // What is active was left by processes that are gone.
    let copy = |from: &str, to: &str| {
        let mut command = project.command(ALDIS);
        command.env("ALDIS_NOW", "2099-01-01T00:00:00Z").args(["store", "copy", from, to]);
        feed(command, b"")
    };
    let token = |args: &[&str]| {
        let mut command = project.command(ALDIS);
        // It must still be valid when it is copied.
        command.env("ALDIS_NOW", "2099-01-01T00:00:00Z").args([&["token"], args].concat());
        feed(command, b"").text()
    };
    token(&["new", "--scope", "observe", "--all-projects"]);
    let there = copy(&state, &address);
    assert_eq!((there.code, &*there.stderr), (0, ""), "{}", there.text());
    let count = cluster.sql("SELECT count(*) FROM copy.runs").unwrap();
    assert!(count.parse::<u32>().unwrap() > 100, "{count}");
    let machines = cluster.sql("SELECT count(DISTINCT machine) FROM copy.runs").unwrap();
    assert_eq!(machines, "4");
    assert!(
        there.stdout.starts_with(&format!("Copied {count} runs. Each was read back")),
        "{}",
        there.stdout
    );
    assert!(there.stdout.ends_with("1 token is valid there, too.\n"), "{}", there.stdout);
    let tokens = || cluster.sql("SELECT count(*) FROM copy.tickets WHERE kind = 'token'").unwrap();
    assert_eq!(tokens(), "1");
    // One that was revoked there stays so.
    cluster.sql("DELETE FROM copy.tickets").unwrap();
    let again = copy(&state, &address).stdout;
    assert_eq!(tokens(), "0");
    assert_eq!(again, format!("Copied 0 runs, {count} runs already there.\n"));
    // As if it had been interrupted.
    cluster.sql("DELETE FROM copy.runs WHERE number > 100").unwrap();
    assert_eq!(copy(&address, &back).code, 0);
    assert_eq!(copy(&state, &address).code, 0);
    let rest = copy(&address, &back);
    assert_eq!((rest.code, &*rest.stderr), (0, ""), "{}", rest.text());
    assert!(rest.stdout.contains("100 runs already there"), "{}", rest.stdout);
    let status = |store: &str| {
        let mut command = project.command(ALDIS);
        // Leases that were live when the database was recorded stay behind.
        command.env("ALDIS_NOW", "2099-01-01T00:00:00Z");
        command.args(["--state-dir", store, "status", "--all", "--json"]);
        let mut runs: Vec<String> =
            feed(command, b"").json().iter().map(ToString::to_string).collect();
        runs.sort();
        runs
    };
    assert_eq!(status(&back), status(&state));
    let mut check = project.command(ALDIS);
    check.args(["store", "check", &address]);
    let checked = feed(check, b"");
    assert!(checked.code == 0 && checked.stdout.contains("no problem found"), "{}", checked.text());
}

#[test]
fn a_run_that_goes_on_is_not_copied() {
    let Some(cluster) = cluster() else { return };
    let address = cluster.address_of("busy");
    let machine = Machine::new(&address);
    machine.good(&["auto", "start", "Add CSV export", "--session", "S1", "--json"]);
    cluster
        .sql("UPDATE busy.runs SET fence = 1, lease_holder = 'me', lease_until = 99999999999999")
        .unwrap();
    let target = machine.project.root().join("target").display().to_string();
    let refused = machine.run(&["store", "copy", &address, &target]);
    assert_eq!(refused.code, 2, "{}", refused.text());
    assert!(refused.stderr.contains("is being coordinated"), "{}", refused.stderr);
    let none = machine.run(&["store", "copy", "/nonexistent/place", &target]);
    assert_eq!(none.code, 2);
    assert!(none.stderr.contains("there is no store at"), "{}", none.stderr);
}

#[test]
fn nobody_shows_the_password() {
    let project = Project::new();
    let directory = project.home().join(".config/aldis");
    fs::create_dir_all(&directory).unwrap();
    let text = "[store]\nurl = \"postgres://me:geheim@127.0.0.1:1/work\"\n\
                direct_url = \"postgres://me:geheim@127.0.0.1:1/work?schema=x\"\n";
    fs::write(directory.join("aldis.toml"), text).unwrap();
    let mut seen = String::new();
    for args in [
        &["config", "show"][..],
        &["config", "show", "store", "--json", "--origin"],
        &["config", "check"],
        &["doctor"],
        &["doctor", "--json"],
        &["status"],
        &["store", "check"],
        &["store", "migrate"],
        &["store", "copy", "postgres://me:geheim@127.0.0.1:1/a", "postgres://me:geheim@/b"],
        &["run", "--task", "x", "--", "true"],
        &["init", "--yes"],
    ] {
        let mut command = project.command(ALDIS);
        command.env("ALDIS_LOG", "trace").env("RUST_LOG", "trace").args(args);
        seen += &feed(command, b"").text();
    }
    seen += &project
        .run_with(&["hook", "claude-code"], project.payload("x").to_string().as_bytes())
        .text();
    for file in [project.state_dir().join("failures.jsonl"), project.path().join("aldis.toml")] {
        seen += &fs::read_to_string(file).unwrap_or_default();
    }
    assert!(seen.contains("postgres://me@127.0.0.1:1/work"), "{seen}");
    assert!(!seen.contains("geheim"), "{seen}");
    // A repository may not say where runs are kept.
    fs::write(project.path().join("aldis.toml"), text.replace("work", "other")).unwrap();
    let refused = project.run(&["config", "check"]);
    assert_eq!(refused.code, 1, "{}", refused.text());
    assert!(refused.stderr.contains("about the runs of all projects"), "{}", refused.text());
    assert!(!refused.text().contains("geheim"));
}
