//! Defects of the store: growth, full disks, retention.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::super::pin;
use super::{
    Cleanup, DONE, FAR, Slowed, agent, command, has_run, right_if, runs, seen, start_far_ahead,
    store_size, wait_until, within,
};
use crate::phases::fault::has_strace;
use crate::phases::project::{Answer, Project, feed};
use crate::sandbox::ALDIS;
use crate::serve::client::Server;

const RUN: &[&str] = &["run", "--task", "x", "--quiet", "--", "./agent.sh"];

/// Repeated progress is coalesced.
#[test]
fn d6_progress_is_coalesced() {
    const LINES: u64 = 20_000;
    let project = Project::new();
    let line = "<chorus>PROGRESS: 10%</chorus>\n";
    agent(
        &project,
        &format!(
            "awk 'BEGIN {{ for (i = 0; i < {LINES}; i++) print \"<chorus>PROGRESS: \" 10 + i % 90 \"%</chorus>\" }}'\n{DONE}"
        ),
    );
    let done = project.run(RUN);
    assert_eq!(done.code, 0, "{}", done.text());
    let (printed, stored) = (LINES * line.len() as u64, store_size(&project));
    pin("attack/D6", right_if(stored < printed / 2, format!("{stored} bytes for {printed}")));
}

/// Returns whether a small tmpfs can be mounted here, and says so if not.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
fn has_small_disks() -> bool {
    let tried = Command::new("unshare")
        .args(["-rm", "sh", "-c", "mount -t tmpfs -o size=1m none /tmp"])
        .output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("skipped: `unshare -rm` is missing or not allowed here");
    }
    works
}

/// A shell script for which the state directory is a tmpfs of eight megabytes, in a mount namespace
/// of its own. `fill` fills it, `free` frees it again, `$ALDIS` is the program.
fn on_small_disk(project: &Project, script: &str) -> Command {
    fs::create_dir(project.state_dir()).unwrap();
    fs::set_permissions(project.state_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    let mut command = command(project, "unshare");
    command.env("ALDIS", ALDIS).args(["-rm", "sh", "-c"]).arg(format!(
        "mount -t tmpfs -o size=8m,mode=700 none \"$ALDIS_STATE_DIR\" || exit 99\n\
         fill() {{ cat /dev/zero > \"$ALDIS_STATE_DIR/fill\"; }} 2>/dev/null\n\
         free() {{ rm \"$ALDIS_STATE_DIR/fill\"; }}\n{script}"
    ));
    command
}

/// A run waits for disk space as it waits for a rate limit.
#[test]
fn d7_a_run_waits_for_space() {
    if !has_small_disks() {
        return;
    }
    let project = Project::new();
    let _cleanup = Cleanup(project.path());
    agent(
        &project,
        &format!(
            "cat > /dev/null\n[ -e filled ] && {{ {DONE}; exit; }}\n\
             cat /dev/zero > '{}/fill' 2>/dev/null\ntouch filled\n\
             echo '<chorus>PROGRESS: 50%</chorus>'",
            project.state_dir().display()
        ),
    );
    let script = "(until [ -e filled ]; do sleep 0.1; done; sleep 2; free; touch freed) &\n\
                  exec \"$ALDIS\" run --task x -- ./agent.sh";
    let done = feed(on_small_disk(&project, script), b"");
    assert_ne!(done.code, 99, "{}", done.text());
    wait_until("there is space again", || project.path().join("freed").exists());
    assert!([0, 2].contains(&done.code), "{}", done.text());
    pin("attack/D7", right_if(done.code == 0, done.text()));
}

/// Calls three hooks of an active run on a full disk. Returns what they print, what `doctor` prints
/// then, and what `log` prints then and after there is space again.
fn hooks_on_a_full_disk() -> (String, Vec<Value>, String) {
    let project = Project::new();
    let payload = project.root().join("payload");
    fs::write(&payload, project.payload("Not yet.").to_string()).unwrap();
    let script = "set -e; cd ..; hook() { \"$ALDIS\" hook claude-code < payload >> \"$1\"; }\n\
                  (cd project; \"$ALDIS\" auto start x --session S1 > /dev/null)\n\
                  hook before; fill || true; hook full; hook full; hook full\n\
                  \"$ALDIS\" doctor --json > doctor || true\n\
                  \"$ALDIS\" log --json > log || true; free; \"$ALDIS\" log --json >> log\n\
                  hook after";
    let done = feed(on_small_disk(&project, script), b"");
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
    let read = |name: &str| fs::read_to_string(project.root().join(name)).unwrap();
    assert!(read("before").contains("\"block\"") && read("after").contains("\"block\""));
    let (full, doctor) = (read("full"), read("doctor"));
    assert!(!full.contains("\"block\""), "nothing can have been decided");
    let doctor = doctor.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (full, doctor, read("log"))
}

/// Hooks that fail on a full disk tell the user, and leave a record, at once or when there is space
/// again.
#[test]
fn d8a_hooks_on_a_full_disk_say_so() {
    if !has_small_disks() {
        return;
    }
    let (told, _, log) = hooks_on_a_full_disk();
    let mut wrong = Vec::new();
    if !log.lines().any(|line| line.contains("\"failure\"") && line.contains("space")) {
        wrong.push("three hooks failed without a record".to_owned());
    }
    if told.matches("systemMessage").count() != 3 || !told.contains("space") {
        wrong.push(format!("the user is told: {told}"));
    }
    pin("attack/D8a", seen(&wrong));
}

/// `doctor` reports a full disk.
#[test]
fn d8b_doctor_reports_a_full_disk() {
    if !has_small_disks() {
        return;
    }
    let (_, doctor, _) = hooks_on_a_full_disk();
    let ours: Vec<&Value> = doctor.iter().filter(|check| check["host"].is_null()).collect();
    assert!(!ours.is_empty(), "{doctor:?}");
    let failed = ours.iter().any(|check| check["status"] == "failed");
    pin("attack/D8b", right_if(failed, format!("{ours:?}")));
}

/// Writes a file until there is no space left.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    while file.write_all(&[0; 4_096]).is_ok() {}
}

/// A server that cannot write is not ready until it can.
#[test]
fn d8c_a_server_on_a_full_disk_is_not_ready() {
    if !has_small_disks() {
        return;
    }
    let project = Project::new();
    let mut command = on_small_disk(&project, "exec \"$ALDIS\" serve --listen 127.0.0.1:0");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap();
    // Its mount namespace is reached through its process.
    let state = project.state_dir();
    let disk = PathBuf::from(format!("/proc/{}/root{}", child.id(), state.display()));
    let server = Server::started(child, &disk);
    let channel = json!({ "channel": "c1", "agents": ["pm"] });
    assert_eq!(server.post("/v1/channels", &channel).status, 201);
    assert_eq!(server.get("/readyz").status, 200);
    fill(&disk.join("fill"));
    let message = json!({ "agent": "pm", "text": "some words of an agent ".repeat(1_000) });
    let say = || server.post("/v1/channels/c1/messages", &message).status;
    wait_until("a write that fails", || say() == 503);
    let is_ready = || {
        say();
        server.get("/readyz").status == 200 || server.get("/v1/health").json()["ok"] == true
    };
    let noticed = within(Duration::from_secs(3), || !is_ready());
    fs::remove_file(disk.join("fill")).unwrap();
    wait_until("writing again", || say() == 200);
    pin("attack/D8c", right_if(noticed, "ready while every write fails"));
}

/// A run without a living supervisor is not shown as working.
#[test]
fn d8d_a_run_without_a_supervisor_is_not_working() {
    let project = Project::new();
    let _cleanup = Cleanup(project.path());
    agent(&project, "exec sleep 600");
    let mut command = project.command(ALDIS);
    let command = command.args(RUN).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn().unwrap();
    let works = || runs(&project).first().is_some_and(|run| run["status"] == "working");
    wait_until("it works", works);
    super::send(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    let noticed = within(Duration::from_secs(6), || !works());
    assert_eq!(runs(&project).len(), 1);
    pin("attack/D8d", right_if(noticed, "`status` shows it as working"));
}

/// Creates ended runs.
fn end_runs(state: &Path, count: usize) {
    const CLIENTS: usize = 8;
    let server = Server::start(state);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let server = &server;
            scope.spawn(move || {
                for number in (client..count).step_by(CLIENTS) {
                    let name = format!("c{number}");
                    let channel = json!({ "channel": name, "agents": ["pm"] });
                    assert_eq!(server.post("/v1/channels", &channel).status, 201);
                    let path = format!("/v1/runs/{name}/abort");
                    assert_eq!(server.post(&path, &json!({})).status, 200);
                }
            });
        }
    });
}

/// Pruning releases the write lock between batches, so that hooks of other projects keep their
/// deadline.
#[test]
fn d12a_pruning_does_not_block_hooks() {
    const RUNS: usize = 1_200;
    const CALLS_MAX: usize = 6;
    if !has_strace() {
        return;
    }
    let project = Project::new();
    end_runs(&project.state_dir(), RUNS);
    project.start(&[]);
    assert_eq!(runs(&project).len(), RUNS + 1);
    // Another project, with the clock far ahead and a slow disk.
    let other = Project::new().at(FAR);
    let state = project.state_dir();
    let args = ["--state-dir", state.to_str().unwrap(), "auto", "start", "Later"];
    let slowed = Slowed::start(&other, "fsync,fdatasync", "200ms", &args);
    let (mut called, mut late) = (0, 0);
    while !slowed.has_ended() {
        // Fewer than the host's cap on consecutive blocks.
        if called < CALLS_MAX && late == 0 {
            called += 1;
            late += usize::from(project.stop("Not yet.") == Answer::Allow);
        }
        thread::sleep(Duration::from_millis(300));
    }
    assert_eq!(project.stop("Not yet.").word(), "block", "the run goes on");
    assert!(called > 0, "no hook ran during the pruning");
    pin("attack/D12a", right_if(late == 0, format!("hook {called} was late")));
}

/// Creates a run that ended years ago. Returns its id.
fn end_old_run(project: &Project) -> String {
    let run = |args: &[&str]| {
        let mut command = project.command(ALDIS);
        command.env("ALDIS_NOW", "2020-01-01T00:00:00Z").args(args);
        let done = feed(command, b"");
        assert_eq!(done.code, 0, "{}", done.text());
        done.json().remove(0)
    };
    let started = run(&["auto", "start", "Old", "--json"]);
    run(&["auto", "stop", "--json"]);
    started["run"].as_str().unwrap().to_owned()
}

/// `run`, `deliver` and `serve` prune, too.
#[test]
fn d12b_long_lived_commands_prune() {
    let project = Project::new();
    let old = end_old_run(&project);
    assert!(has_run(&project, &old));
    let mut wrong = Vec::new();
    agent(&project, DONE);
    let done = project.run(RUN);
    assert_eq!(done.code, 0, "{}", done.text());
    if has_run(&project, &old) {
        wrong.push("after `run`".to_owned());
    }
    let old = end_old_run(&project);
    agent(
        &project,
        "cat > /dev/null\ncase $ALDIS_ROLE in\n\
         developer) echo \"READY_FOR_REVIEW: $ALDIS_TASK\";;\n\
         critic) echo \"REVIEW_PASSED: $ALDIS_TASK\";;\n\
         auditor) echo \"AUDIT_PASSED: $ALDIS_TASK\";;\nesac",
    );
    let plan = "# One\n\n- [ ] csv: Write the CSV\n  - [ ] quotes are escaped\n";
    fs::write(project.path().join("plan.md"), plan).unwrap();
    let done = project.run(&["deliver", "plan.md", "--", "./agent.sh"]);
    assert_eq!(done.code, 0, "{}", done.text());
    if has_run(&project, &old) {
        wrong.push("after `deliver`".to_owned());
    }
    let old = end_old_run(&project);
    let server = Server::start(&project.state_dir());
    if !within(Duration::from_secs(3), || !has_run(&project, &old)) {
        wrong.push("beside `serve`".to_owned());
    }
    drop(server);
    pin("attack/D12b", seen(&wrong));
}

/// Pruning a run deletes its logs.
#[test]
fn d12c_logs_are_pruned_with_their_runs() {
    let project = Project::new();
    agent(&project, DONE);
    assert_eq!(project.run(RUN).code, 0);
    let run = runs(&project)[0]["run"].as_str().unwrap().to_owned();
    let logs = project.state_dir().join("logs");
    assert!(super::size(&logs) > 0, "nothing was written");
    start_far_ahead(&project);
    assert!(!has_run(&project, &run), "`auto start` did not prune it; prune in another way");
    let left = super::size(&logs);
    pin("attack/D12c", right_if(left == 0, format!("{left} bytes are left")));
}

/// Kills a supervisor right after its run ended. Returns whether the run is never pruned.
fn is_never_pruned() -> bool {
    let project = Project::new();
    let _cleanup = Cleanup(project.path());
    agent(&project, DONE);
    assert_eq!(project.run(RUN).code, 0);
    let other = runs(&project)[0]["run"].as_str().unwrap().to_owned();
    let slowed = Slowed::start(&project, "fsync,fdatasync", "200ms", RUN);
    let mut killed = None;
    wait_until("the end of the run", || {
        let all = runs(&project);
        let found = all.iter().find(|run| run["run"] != *other && run["active"] == false);
        killed = found.map(|run| run["run"].as_str().unwrap().to_owned());
        killed.is_some()
    });
    slowed.kill();
    start_far_ahead(&project);
    assert!(!has_run(&project, &other), "`auto start` did not prune; prune in another way");
    has_run(&project, &killed.unwrap())
}

/// An ended run is pruned even if its supervisor was killed before it performed the last effects.
#[test]
fn d26_a_run_killed_at_its_end_is_pruned() {
    // A busy machine may miss the race window.
    const TRIES: usize = 3;
    if !has_strace() {
        return;
    }
    let never = (0..TRIES).any(|_| is_never_pruned());
    pin("attack/D26", right_if(!never, "never pruned"));
}
