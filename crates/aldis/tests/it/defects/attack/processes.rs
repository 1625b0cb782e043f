//! Defects of processes: commands, agents and git that hang, are left behind or start twice.

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::super::pin;
use super::{
    Cleanup, DONE, Slowed, agent, command, git, living_in, right_if, script, seen, send,
    wait_until, within,
};
use crate::phases::fault::has_strace;
use crate::phases::project::{Project, feed};
use crate::sandbox::ALDIS;

const RUN: &[&str] = &["run", "--task", "x", "--grace", "1", "--", "./agent.sh"];
const SHORT_RUN: &[&str] =
    &["run", "--task", "x", "--grace", "1", "--total-timeout", "2", "--", "./agent.sh"];
const DELIVERY: &[&str] = &["deliver", "plan.md", "--worktrees", "--", "./agent.sh"];
/// A busy machine may miss the race window.
const TRIES: usize = 3;

/// A command whose git hangs in a filter of the repository.
struct Hung {
    child: Child,
    filter: u32,
    _cleanup: Cleanup,
    project: Project,
}

impl Hung {
    /// `filter` is `clean` or `smudge`.
    fn start(filter: &str, args: &[&str]) -> Self {
        let project = Project::new();
        let pid_file = project.root().join("filter.pid");
        let program = project.root().join("filter.sh");
        let note = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'", pid_file.display());
        script(&program, &format!("{note}\nexec sleep 600"));
        agent(&project, DONE);
        for (name, text) in [
            ("file", "one\n"),
            (".gitattributes", "file filter=slow\n"),
            ("plan.md", "# One\n\n- [ ] csv: Write the CSV\n  - [ ] quotes are escaped\n"),
        ] {
            fs::write(project.path().join(name), text).unwrap();
        }
        git(&project, &["init", "-q", "."]);
        git(&project, &["add", "."]);
        git(&project, &["commit", "-qm", "first"]);
        git(&project, &["config", &format!("filter.slow.{filter}"), program.to_str().unwrap()]);
        fs::write(project.path().join("file"), "two\n").unwrap();
        let cleanup = Cleanup(project.root().to_owned());
        let mut command = command(&project, ALDIS);
        let command = command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        wait_until("git calls the filter", || pid_file.exists());
        let filter = fs::read_to_string(pid_file).unwrap().trim().parse().unwrap();
        Self { child, filter, _cleanup: cleanup, project }
    }

    fn interrupt(&self) {
        for signal in [Signal::SIGINT, Signal::SIGINT, Signal::SIGINT, Signal::SIGTERM] {
            send(self.child.id(), signal);
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The group of a process.
fn group(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(2).unwrap().to_owned()
}

/// A hanging git stops neither time limits nor interrupts, and ends with the command.
#[test]
fn d2_a_hanging_git_does_not_freeze_the_command() {
    let mut cases = [
        ("a run that is out of time", Hung::start("clean", SHORT_RUN)),
        ("a run that is interrupted", Hung::start("clean", RUN)),
        ("a delivery that is interrupted", Hung::start("smudge", DELIVERY)),
    ];
    cases[1..].iter().for_each(|(_, hung)| hung.interrupt());
    within(Duration::from_secs(10), || cases.iter_mut().all(|(_, hung)| hung.has_ended()));
    let mut wrong = Vec::new();
    for (name, hung) in &mut cases {
        if !hung.has_ended() {
            wrong.push(format!("{name} goes on"));
        } else if !within(Duration::from_secs(5), || living_in(hung.project.root()).is_empty()) {
            wrong.push(format!("{name} leaves {:?}", living_in(hung.project.root())));
        }
    }
    pin("attack/D2", seen(&wrong));
}

/// Git runs the repository's filters, but never prompts and has its own process group, so that a
/// deadline can end all of it.
#[test]
fn d11_git_has_its_own_process_group() {
    let hung = Hung::start("clean", RUN);
    // A process that was just started has no variables for a moment.
    let never_prompts = || {
        let variables = fs::read(format!("/proc/{}/environ", hung.filter)).unwrap();
        variables.split(|byte| *byte == 0).any(|it| it == b"GIT_TERMINAL_PROMPT=0")
    };
    assert!(within(Duration::from_secs(5), never_prompts), "git may prompt at the terminal");
    let (own, ours) = (group(hung.filter), group(hung.child.id()));
    pin("attack/D11", right_if(own != ours, "git runs in our process group"));
}

/// Names are escaped before they reach a terminal.
#[test]
fn d10_names_are_escaped_for_terminals() {
    let project = Project::new();
    let id = "\\u001b]52;c;cHduZWQ=\\u0007";
    let plan = format!(r#"{{"title":"x","tasks":[{{"id":"{id}","title":"t"}}]}}"#);
    fs::write(project.path().join("plan.json"), plan).unwrap();
    let strange = project.path().join("a\u{1b}]0;x\u{7}");
    fs::create_dir(&strange).unwrap();
    let mut wrong = Vec::new();
    for (args, directory, code) in [
        (&["deliver", "plan.json", "--", "true"][..], project.path(), 2),
        (&["auto", "status"], strange.clone(), 1),
        (&["auto", "stop"], strange.clone(), 1),
        (&["auto", "resume"], strange, 1),
    ] {
        let mut command = project.command(ALDIS);
        command.args(args).current_dir(directory);
        let done = feed(command, b"");
        assert_eq!(done.code, code, "{args:?}: {}", done.text());
        let unsafe_char = |c: char| c.is_control() && !"\n\t".contains(c);
        if (done.stdout + &done.stderr).contains(unsafe_char) {
            wrong.push(format!("`{}` prints control characters", args.join(" ")));
        }
    }
    pin("attack/D10", seen(&wrong));
}

/// Trust covers a file at its path, not symbolic links to it.
#[test]
fn d15_trust_does_not_follow_links() {
    let project = Project::new();
    let settings = project.path().join("aldis.toml");
    fs::write(&settings, "[run]\nverify = \"touch ran\"\n").unwrap();
    assert_eq!(project.run(&["trust"]).code, 0);
    let claim = ["--", "/bin/sh", "-c", "echo '<chorus>COMPLETE</chorus>'"];
    let args = [&["run", "--task", "x"][..], &claim].concat();
    let done = project.run(&args);
    assert!(done.code == 0 && project.path().join("ran").exists(), "{}", done.text());
    let other = project.root().join("other");
    fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(&settings, other.join("aldis.toml")).unwrap();
    let mut command = project.command(ALDIS);
    command.args(args).current_dir(&other);
    let done = feed(command, b"");
    let ran = other.join("ran").exists();
    assert!([0, 2].contains(&done.code), "{}", done.text());
    pin("attack/D15", right_if(!ran, "a check ran that was trusted for another project"));
}

/// Reported costs count, however soon the supervisor is killed.
#[test]
fn d16_costs_survive_a_kill() {
    let project = Project::new();
    let _cleanup = Cleanup(project.path());
    agent(
        &project,
        r#"cat > /dev/null
n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count
echo '{"type":"system","subtype":"init","cwd":".","session_id":"s","tools":["Bash"],"mcp_servers":[],"model":"m","permissionMode":"default"}'
[ $n -ge 4 ] && echo '{"type":"assistant","message":{"id":"m","role":"assistant","content":[{"type":"text","text":"<chorus>COMPLETE</chorus>"}]},"parent_tool_use_id":null}'
echo '{"type":"result","subtype":"success","is_error":false,"total_cost_usd":1.0,"usage":{"input_tokens":10},"session_id":"s"}'
touch reported.$n
[ $n -ge 4 ] || exec sleep 600"#,
    );
    let start = ["run", "--task", "x", "--max-cost", "2.5", "--quiet", "--", "./agent.sh"];
    let go_on = ["run", "--continue"];
    for round in 1..=3 {
        let args: &[&str] = if round == 1 { &start } else { &go_on };
        let mut command = project.command(ALDIS);
        let command = command.args(args).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let reported = project.path().join(format!("reported.{round}"));
        wait_until("the agent reports its cost", || reported.exists());
        // Long enough to read a line, and well before the next ten-second save.
        thread::sleep(Duration::from_secs(1));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let done = project.run(&go_on);
    let rounds = fs::read_to_string(project.path().join("count")).unwrap();
    // The third supervisor may have ended the run itself: then there is nothing to continue.
    let held = rounds.trim() == "3";
    assert!(if held { [2, 5].contains(&done.code) } else { done.code == 0 }, "{}", done.text());
    pin("attack/D16", right_if(held, "a fourth agent started after $3 of $2.50"));
}

/// A commit is progress, however short the iteration.
#[test]
fn d18_quick_iterations_count() {
    let project = Project::new();
    agent(
        &project,
        "cat > /dev/null\nn=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n > count\n\
         [ $n -ge 9 ] && { echo '<chorus>COMPLETE</chorus>'; exit; }\n\
         echo $n > work; git add work; git -c user.name=t -c user.email=t@t commit -qm $n",
    );
    fs::write(project.path().join(".gitignore"), "count\n").unwrap();
    git(&project, &["init", "-q", "."]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    let mut command = command(&project, ALDIS);
    command.args(["run", "--task", "x", "--", "./agent.sh"]);
    let done = feed(command, b"");
    assert!([0, 4].contains(&done.code), "{}", done.text());
    let commits = git(&project, &["rev-list", "--count", "HEAD"]);
    assert!(commits.trim().parse::<u32>().unwrap() >= 8, "{commits}: {}", done.text());
    pin("attack/D18", right_if(done.code == 0, "stagnated, with a commit in every iteration"));
}

/// Kills a supervisor between starting its agent and storing that. Returns whether `--continue`
/// started a second agent while the first was alive.
fn is_started_twice() -> bool {
    let project = Project::new();
    let _cleanup = Cleanup(project.path());
    // Creates the store, so that the delayed command need not.
    let begun = project.run(&["auto", "start", "x"]);
    assert_eq!((begun.code, project.run(&["auto", "stop"]).code), (0, 0), "{}", begun.text());
    // The first agent does not read its prompt, which the supervisor sends only later.
    agent(
        &project,
        "if [ -e first ]; then\n\
         kill -0 $(cat first) 2>/dev/null && touch beside\n\
         echo '<chorus>COMPLETE</chorus>'; exit\nfi\n\
         trap '' TERM INT HUP\necho $$ > first.new; mv first.new first\n\
         while :; do sleep 0.05; done",
    );
    let slowed = Slowed::start(&project, "pwrite64", "100ms", RUN);
    let first = project.path().join("first");
    wait_until("the first agent", || first.exists());
    slowed.kill();
    let done = project.run(&["run", "--continue"]);
    assert_eq!(done.code, 0, "{}", done.text());
    wait_until("the end of everybody", || living_in(&project.path()).is_empty());
    project.path().join("beside").exists()
}

/// One agent at a time, whenever the supervisor is killed.
#[test]
fn d19_continuing_starts_no_second_agent() {
    if !has_strace() {
        return;
    }
    let twice = (0..TRIES).any(|_| is_started_twice());
    pin("attack/D19", right_if(!twice, "two agents at once"));
}

/// An agent that kills its parent before its start was reported is ended all the same.
///
/// Not pinned: a parent that is stopped instead takes more than half a minute to notice, and leaves
/// the agent only sometimes.
#[test]
fn d20_an_agent_that_kills_its_parent_is_ended() {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    let _cleanup = Cleanup(project.path());
    agent(&project, "kill -9 $PPID; touch killed; exec sleep 600");
    let args = [&["run", "--task", "x", "--total-timeout", "3"][..], &RUN[3..]].concat();
    let slowed = Slowed::start(&project, "sendto,sendmsg", "300ms", &args);
    wait_until("the end of the run", || slowed.has_ended());
    drop(slowed);
    assert!(project.path().join("killed").exists(), "nobody was killed");
    let ended = within(Duration::from_secs(5), || living_in(&project.path()).is_empty());
    pin("attack/D20", right_if(ended, format!("left: {:?}", living_in(&project.path()))));
}
