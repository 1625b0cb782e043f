//! Defects of runs: explained, controlled, kept, counted and supervised wrongly.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::installation::{
    BLOCKED, BUSY, DILIGENT, Installation, PLAN, Started, wait_until, within,
};
use super::{patience, pin, seen};
use crate::sandbox::ALDIS;
use crate::serve::client::Server;

/// When the run ended that everybody has forgotten.
const LONG_AGO: &str = "2020-01-01T00:00:00Z";
/// When everything that ended today is old.
const MUCH_LATER: &str = "2060-01-01T00:00:00Z";

fn run(task: &str) -> [&str; 5] {
    ["run", "--task", task, "--", "./agent.sh"]
}

const DELIVER: [&str; 4] = ["deliver", "plan.md", "--", "./agent.sh"];

/// Prepares a project for `aldis deliver`.
fn plan(installation: &Installation, project: &str) {
    installation.script(project, "agent.sh", DILIGENT);
    fs::write(installation.project(project).join("plan.md"), PLAN).unwrap();
}

/// Starts a run whose agent is at work; returns it with its name.
fn start_busy(installation: &Installation, project: &str) -> (Started, String) {
    installation.script(project, "agent.sh", BUSY);
    let started = installation.start(project, &run("Busy"));
    let here = installation.project(project).join("here");
    wait_until("the agent works", || here.exists());
    let id = installation.run_of(project).unwrap();
    (started, id)
}

#[test]
fn b1_why_explains_the_latest_run_of_this_project_whatever_its_kind() {
    let installation = Installation::new();
    installation.script("supervised", "agent.sh", BLOCKED);
    let done = installation.aldis("supervised", &run("Supervised"));
    assert_eq!(done.code, 3, "{}", done.text());
    plan(&installation, "delivered");
    let done = installation.aldis("delivered", &DELIVER);
    assert_eq!(done.code, 0, "{}", done.text());
    installation.start_phases("phased");
    installation.start_phases("elsewhere");

    let explained = |project: &str, args: &[&str]| {
        let done = installation.aldis(project, &[&["why", "--json"], args].concat());
        assert_eq!(done.code, 0, "{}", done.text());
        done.json()[0]["run"].as_str().unwrap().to_owned()
    };
    let mut wrong = Vec::new();
    for project in ["supervised", "delivered", "phased", "elsewhere"] {
        let own = installation.run_of(project).unwrap();
        assert_eq!(explained(project, &[&own]), own, "a run that is named is explained");
        let other = explained(project, &[]);
        let in_phases = ["phased", "elsewhere"].contains(&project);
        assert!(!in_phases || other == own, "{project}: {other} instead of {own}");
        wrong.extend((other != own).then(|| format!("{project}: {other} instead of {own}")));
    }
    pin("B1", seen(wrong));
}

#[test]
fn b2_phases_and_channels_are_controlled_by_command_as_over_http() {
    let installation = Installation::new();
    let server = installation.serve();
    let stands = |run: &str| {
        let shown = server.get(&format!("/v1/runs/{run}")).json();
        (shown["active"].clone(), shown["floor"] == "paused")
    };
    let [by_http, by_command] = ["by-http", "by-command"].map(|name| {
        let phases = installation.start_phases(name);
        let got = server.post("/v1/channels", &json!({ "channel": name, "agents": ["a", "b"] }));
        assert_eq!(got.status, 201, "{}", got.text);
        phases
    });
    let mut wrong = Vec::new();
    for (word, [reference, run], after) in [
        ("abort", [&*by_http, &*by_command], (json!(false), false)),
        ("pause", ["by-http", "by-command"], (json!(true), true)),
        ("resume", ["by-http", "by-command"], (json!(true), false)),
        ("abort", ["by-http", "by-command"], (json!(false), false)),
    ] {
        let got = server.post(&format!("/v1/runs/{reference}/{word}"), &json!({}));
        assert_eq!((got.status, stands(reference)), (200, after.clone()), "{word}: {}", got.text);
        let done = installation.aldis("by-command", &[word, run]);
        let good = done.code == 0 && stands(run) == after;
        wrong.extend((!good).then(|| format!("{word} {run}: {}", done.text())));
    }
    pin("B2", seen(wrong));
}

/// Whoever takes an event for a run that a process or a hook drives either refuses it or sees to it
/// that what follows from it is done.
#[test]
fn b3_what_follows_from_a_posted_event_is_done_or_the_event_is_refused() {
    let installation = Installation::new();
    let server = installation.serve();
    let mut wrong = Vec::new();
    wrong.extend(posted_abort(&installation, &server));

    let id = installation.start_phases("phased");
    let got = server
        .post(&format!("/v1/runs/{id}/events"), &json!({ "event": "cancel", "by": "a test" }));
    assert!(got.status < 500, "{}", got.text);
    let view = installation.project("phased").join(".caw/auto-state.json");
    let view: Value = serde_json::from_str(&fs::read_to_string(view).unwrap()).unwrap();
    let active = &server.get(&format!("/v1/runs/{id}")).json()["active"];
    assert_eq!(*active, json!(got.status != 200), "{}", got.text);
    if view["active"] != *active {
        wrong.push(format!("phases: active is {active}, the state file has {}", view["active"]));
    }
    pin("B3", seen(wrong));
}

/// Ends a supervised run by an event; says what is wrong.
fn posted_abort(installation: &Installation, server: &Server) -> Option<String> {
    let (started, id) = start_busy(installation, "supervised");
    let project = installation.project("supervised");
    let event = json!({ "event": "abort", "by": "a test" });
    let got = server.post(&format!("/v1/runs/{id}/events"), &event);
    assert!(got.status < 500, "{}", got.text);
    let taken = got.status == 200;
    let asked = within(patience("B3"), || (!taken || project.join("asked").exists()).then_some(()));
    let status = server.get(&format!("/v1/runs/{id}")).json()["status"].clone();
    assert!(taken || status == "working", "refused, and still {status}: {}", got.text);
    fs::write(project.join("go"), "").unwrap();
    started.end();
    asked.is_none().then(|| format!("run: {status}, and the agent was not asked to stop"))
}

#[test]
fn b4_a_run_that_is_aborted_without_a_supervisor_leaves_nothing_to_do() {
    let installation = Installation::new();
    installation.script("ended", "agent.sh", BLOCKED);
    assert_eq!(installation.aldis("ended", &run("Ended")).code, 3);
    let ended = installation.run_of("ended").unwrap();
    let (mut started, lost) = start_busy(&installation, "lost");
    started.0.kill().unwrap();
    started.0.wait().unwrap();
    wait_until("the agent ends with its supervisor", || nobody_is_in(&installation, "lost"));
    let done = installation.aldis("lost", &["abort", &lost]);
    assert_eq!(done.code, 0, "{}", done.text());
    let listed = installation.runs();
    let active = listed.iter().find(|run| run["run"] == lost).map(|run| &run["active"]);
    assert_eq!(active, Some(&json!(false)));

    // What has something left to do is kept, however old it is.
    let done = installation.aldis_at(MUCH_LATER, "later", &["auto", "start", "Later"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(!installation.lists(&ended), "runs that ended by themselves are deleted");
    let kept = installation.lists(&lost);
    pin("B4", seen(kept.then(|| format!("{lost} is kept for ever"))));
}

/// Returns whether no process works in a project.
fn nobody_is_in(installation: &Installation, project: &str) -> bool {
    let project = installation.project(project);
    let works_in = |process: fs::DirEntry| fs::read_link(process.path().join("cwd"));
    let mut processes = fs::read_dir("/proc").unwrap().flatten();
    !processes.any(|process| works_in(process).is_ok_and(|cwd| cwd.starts_with(&project)))
}

/// Not looked at: events of channels that stay open, and work trees that were never merged. What is
/// right there is not decided: a work tree may be the only copy of somebody's work.
#[test]
fn b7_old_runs_go_with_all_that_belongs_to_them_whoever_opens_the_store() {
    type Act = fn(&Installation, &str);
    let acts: [(&str, Act); 4] = [
        ("auto start", |installation, _| drop(installation.start_phases("new"))),
        ("run", |installation, _| {
            installation.script("new", "agent.sh", BLOCKED);
            assert_eq!(installation.aldis("new", &run("New")).code, 3);
        }),
        ("deliver", |installation, _| {
            plan(installation, "new");
            assert_eq!(installation.aldis("new", &DELIVER).code, 0);
        }),
        ("serve", |installation, old| {
            let _server = installation.serve();
            within(patience("B7"), || (!installation.lists(old)).then_some(()));
        }),
    ];
    let mut wrong = Vec::new();
    for (name, act) in acts {
        let installation = Installation::new();
        let start = ["auto", "start", "Old", "--json"];
        let old = installation.aldis_at(LONG_AGO, "old", &start).json()[0]["run"].clone();
        let old = old.as_str().unwrap();
        assert_eq!(installation.aldis_at(LONG_AGO, "old", &["auto", "stop"]).code, 0);
        assert!(installation.lists(old));
        act(&installation, old);
        let kept = installation.lists(old);
        assert!(name != "auto start" || !kept, "one command deletes what is old");
        wrong.extend(kept.then(|| format!("`aldis {name}` keeps a run that ended in 2020")));
    }

    let installation = Installation::new();
    installation.script("old", "agent.sh", BLOCKED);
    assert_eq!(installation.aldis("old", &run("Old")).code, 3);
    let old = installation.run_of("old").unwrap();
    assert_ne!(files_of(&installation.state(), &old), [""; 0], "its output is kept");
    let done = installation.aldis_at(MUCH_LATER, "new", &["auto", "start", "New"]);
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(!installation.lists(&old));
    wrong
        .extend(files_of(&installation.state(), &old).iter().map(|file| format!("{file} is left")));
    pin("B7", seen(wrong));
}

/// Everything below a directory that has the name of a run.
fn files_of(directory: &Path, run: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_name().to_string_lossy().contains(run) {
            found.push(entry.path().display().to_string());
        } else if entry.path().is_dir() {
            found.extend(files_of(&entry.path(), run));
        }
    }
    found
}

#[test]
fn b8_every_view_rounds_the_cost_alike() {
    let installation = Installation::new();
    // Between one cent and two.
    let agent = "#!/bin/sh\ncat > /dev/null\n\
        echo '{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"s\",\"cwd\":\".\",\"tools\":[],\"mcp_servers\":[],\"model\":\"m\",\"permissionMode\":\"default\"}'\n\
        echo '{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"<chorus>COMPLETE</chorus>\"}]},\"parent_tool_use_id\":null,\"session_id\":\"s\"}'\n\
        echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"total_cost_usd\":0.015,\"usage\":{\"input_tokens\":10},\"session_id\":\"s\"}'\n";
    installation.script("project", "agent.sh", agent);
    let live = installation.aldis("project", &run("Costly"));
    assert_eq!(live.code, 0, "{}", live.text());
    let listed = installation.runs();
    assert_eq!(listed[0]["micro_dollars"], 15_000, "{listed:?}");
    let status = installation.aldis("project", &["status", listed[0]["run"].as_str().unwrap()]);
    let (live, status) = (amount(&live.stdout), amount(&status.stdout));
    let differ = (live != status).then(|| format!("{live} while it runs, {status} afterwards"));
    pin("B8", seen(differ));
}

/// The amount of money that a text names.
#[track_caller]
fn amount(text: &str) -> &str {
    let (_, rest) = text.split_once('$').unwrap_or_else(|| panic!("no money in {text}"));
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    rest[..end.unwrap_or(rest.len())].trim_end_matches('.')
}

/// Git answers at once, but for `status`, which waits as long as there is a file `hold`.
const HANGING_GIT: &str = "#!/bin/sh\nfor word in \"$@\"; do case $word in\n\
    rev-parse) case \"$*\" in *show-toplevel*) pwd; exit 0;; esac; exit 1;;\n\
    status) echo $$ > looking; while [ -e hold ]; do sleep 0.05; done; exit 0;;\n\
    esac; done\nexit 1\n";

fn start_while_git_hangs(installation: &Installation) -> Started {
    installation.script("project", "agent.sh", BUSY);
    installation.script("bin", "git", HANGING_GIT);
    fs::write(installation.project("project").join("hold"), "").unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", installation.project("bin").display());
    let mut command = installation.command("project", ALDIS);
    command.env("PATH", path).args(run("Git hangs")).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Started(command.spawn().unwrap())
}

#[test]
fn b11_a_run_can_be_interrupted_while_git_hangs() {
    let installation = Installation::new();
    let project = installation.project("project");
    let mut started = start_while_git_hangs(&installation);
    wait_until("git is asked", || project.join("looking").exists());
    let pid = Pid::from_raw(i32::try_from(started.0.id()).unwrap());
    kill(pid, Signal::SIGINT).unwrap();
    let ended = started.ends_within(patience("B11"));
    fs::remove_file(project.join("hold")).unwrap();
    let code = ended.unwrap_or_else(|| started.end());
    assert_eq!(code, Some(130), "interrupted, sooner or later");
    let late = ended.is_none().then(|| "Ctrl-C waits for git".to_owned());
    pin("B11", seen(late));
}

/// Nobody waits any more for a git whose supervisor was killed, and nobody else knows of it.
#[test]
fn a_git_that_hangs_is_ended_with_its_run() {
    let installation = Installation::new();
    let project = installation.project("project");
    let mut started = start_while_git_hangs(&installation);
    let asked = || fs::read_to_string(project.join("looking")).unwrap_or_default();
    wait_until("git is asked", || asked().ends_with('\n'));
    let git = asked().trim().to_owned();
    // One that nobody waits for yet has ended, and has no words any more.
    let works = || fs::read(format!("/proc/{git}/cmdline")).is_ok_and(|words| !words.is_empty());
    started.0.kill().unwrap();
    started.0.wait().unwrap();
    assert!(works(), "it outlives a supervisor that is killed");
    let id = installation.run_of("project").unwrap();
    let done = installation.aldis("project", &["abort", &id]);
    assert_eq!(done.code, 0, "{}", done.text());
    wait_until("git is ended", || !works());
}

/// Without a repository there are no work trees, and nothing that could be merged.
#[test]
fn s1_5_work_trees_are_refused_where_there_is_no_repository() {
    let installation = Installation::new();
    plan(&installation, "project");
    let roles = installation.project("project").join("roles");
    let args = ["deliver", "plan.md", "--worktrees", "--", "./agent.sh"];
    let done = installation.aldis("project", &args);
    let started = fs::read_to_string(roles).unwrap_or_default();
    let wrong = match installation.run_of("project") {
        Some(id) if !started.is_empty() => {
            let journal = installation.aldis("project", &["log", &id, "--json"]);
            let because = |line: &Value| line["because"].as_str().unwrap_or_default().to_owned();
            let reasons: Vec<String> = journal.json().iter().map(because).collect();
            Some(format!("exit {}, in the project itself: {reasons:?}", done.code))
        }
        _ => None,
    };
    assert!(wrong.is_some() || done.code == 2, "refused, so it says so: {}", done.text());
    pin("S1-5", seen(wrong));
    // The same plan is delivered where nobody asks for work trees.
    plan(&installation, "plain");
    let done = installation.aldis("plain", &DELIVER);
    assert_eq!(done.code, 0, "{}", done.text());
}
