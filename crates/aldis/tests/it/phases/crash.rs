//! `kill -9` at every call that changes a file, at every step of a workflow: nothing that was
//! acknowledged is lost, nothing is done twice, and the next call needs no help.

use super::fault::{Act, Fault, Sight, Snapshot, has_strace};
use super::project::{Project, block};

/// Every call with which any of our processes changes a file, and `openat`, which creates them.
const CALLS: [&str; 10] = [
    "pwrite64",
    "write",
    "fsync",
    "fdatasync",
    "?rename,renameat,?renameat2",
    "?unlink",
    "unlinkat",
    "ftruncate",
    "?mkdir,mkdirat",
    "openat",
];
/// No step has more calls of one kind.
const CALLS_MAX: usize = 500;

/// Kills the process that does this step at every call, each time from the same beginning.
/// Returns how often it was killed.
fn kill_everywhere(project: &Project, name: &str, act: &Act) -> usize {
    let start = Snapshot::of(project.root());
    let before = project.look();
    let done = project.act(act);
    assert_eq!((done.code, &*done.stderr), (0, ""), "{name}: {}", done.text());
    let after = project.look();
    let end = Snapshot::of(project.root());
    let mut killed = 0;
    for calls in CALLS {
        for nth in 1..CALLS_MAX {
            start.restore();
            let fault = Fault { calls, what: "signal=KILL", when: &nth.to_string() };
            let done = project.act_with(act, fault);
            let place = format!("{name}, {calls} {nth}");
            if done.code == 0 {
                break;
            }
            assert_eq!((done.code, &*done.stderr), (-1, ""), "{place}: {}", done.text());
            killed += 1;
            check(project, act, &Ends { before: &before, after: &after, place }, &done.stdout);
        }
    }
    end.restore();
    killed
}

/// Where a step begins and ends when nobody is killed.
struct Ends<'a> {
    before: &'a Sight,
    after: &'a Sight,
    place: String,
}

/// Checks what a killed process left behind, and that the same call now goes through.
fn check(project: &Project, act: &Act, ends: &Ends<'_>, said: &str) {
    let Ends { before, after, place } = ends;
    let left = project.look();
    assert!(
        left.events == before.events || left.events == after.events,
        "{place}: half of it was written"
    );
    let committed = left.events == after.events;
    assert!(said.is_empty() || committed, "{place}: answered before it was durable: {said}");
    assert!(
        left.view == before.view || left.view == after.view,
        "{place}: the state file is torn: {left:?}"
    );

    let again = project.act(act);
    let hook = matches!(act, Act::Hook(_));
    // A command may find that it has done its work.
    assert!(again.code == 0 || committed && !hook && again.code == 1, "{place}: {}", again.text());
    assert!(!hook || again.stderr.is_empty(), "{place}: {}", again.text());
    let repeated = project.look();
    assert_eq!(repeated.runs, after.runs, "{place}: a run came twice or got lost");
    assert_eq!(repeated.progress(), after.progress(), "{place}: {}", repeated.state);
    let repeats = u64::from(committed && is_open_stop(act, after));
    assert_eq!(repeated.iteration(), after.iteration() + repeats, "{place}: the counter");
    assert!(repeated.events as u64 >= after.events as u64 + repeats, "{place}: a stop got lost");

    settle(project, &repeated, place);
}

/// Whether a second call is one more stop of the same run.
fn is_open_stop(act: &Act, after: &Sight) -> bool {
    let Act::Hook(payload) = act else { return false };
    payload["hook_event_name"] == "Stop" && after.state["active"] == true
}

/// Lets the agent stop once more; then the state file and the store say the same.
fn settle(project: &Project, before: &Sight, place: &str) {
    let active = before.state["active"] == true;
    let answer = project.stop("Not yet.");
    assert_eq!(answer.word(), if active { "block" } else { "allow" }, "{place}");
    let now = project.look();
    assert_eq!(now.runs, before.runs, "{place}: an ended run was begun again");
    let view = project.view();
    for member in ["phase", "iteration", "active", "exit_reason"] {
        assert_eq!(view[member], now.state[member], "{place}: {member} in the state file");
    }
    assert_eq!(project.alarms(), "", "{place}");
    let caw = project.path().join(".caw");
    assert_eq!(std::fs::read_dir(caw).unwrap().count(), 1, "{place}: something was left behind");
}

/// Goes through the workflow and kills the process of every step that is `wanted`.
#[expect(clippy::print_stderr, reason = "how much was tested is part of the result")]
fn kill_in_workflow(wanted: &[&str], least: usize) {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    let mut killed = 0;
    for (name, act) in project.workflow() {
        if wanted.contains(&name) {
            killed += kill_everywhere(&project, name, &act);
        } else {
            project.act(&act);
        }
    }
    eprintln!("killed {killed} times in {wanted:?}");
    assert!(killed >= least, "only {killed} processes were killed; was anything injected?");
    let id = project.look().id;
    let replay = project.run(&["replay", &id]);
    assert_eq!(replay.code, 0, "{}", replay.text());
}

#[test]
fn killed_while_starting() {
    kill_in_workflow(&["start", "start again"], 60);
}

#[test]
fn killed_while_refusing() {
    kill_in_workflow(&["refuse"], 30);
}

#[test]
fn killed_while_advancing() {
    kill_in_workflow(&["advance", "hand over"], 60);
}

#[test]
fn killed_while_listening() {
    kill_in_workflow(&["prompt", "delegate"], 60);
}

#[test]
fn killed_while_completing() {
    kill_in_workflow(&["complete"], 30);
}

#[test]
fn killed_while_a_human_decides() {
    kill_in_workflow(&["resume", "stop"], 60);
}

#[test]
fn killed_while_adopting() {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    project.write_view(&super::crowd::fresh_state().to_string());
    let killed = kill_everywhere(&project, "adopt", &project.stopping("Not yet."));
    assert!(killed >= 30, "only {killed} processes were killed");
}

/// Two steps in a row are written and never shown: the state file is two versions behind.
#[test]
fn killed_twice_before_the_state_file() {
    if !has_strace() {
        return;
    }
    let fault = Fault { calls: "?rename,renameat,?renameat2", what: "signal=KILL", when: "1" };
    for (first, second) in
        [("refuse", "refuse"), ("start", "refuse"), ("resume", "complete"), ("resume", "stop")]
    {
        let project = Project::new();
        let workflow = project.workflow();
        let at = |name: &str| workflow.iter().position(|(other, _)| *other == name).unwrap();
        for (_, act) in &workflow[..at(first)] {
            project.act(act);
        }
        let runs = project.look().runs + usize::from(first.starts_with("start"));
        for name in [first, second] {
            let done = project.act_with(&workflow[at(name)].1, fault);
            assert_eq!(done.code, -1, "{name}: {}", done.text());
        }
        let left = project.look();
        let place = format!("{first}, {second}");
        assert_eq!(left.runs, runs, "{place}");
        settle(&project, &left, &place);
        project.assert_sound();
    }
}

/// What a killed writer left beside the state file is no obstacle for the next one.
#[test]
fn a_torn_copy_is_replaced() {
    let project = Project::new();
    project.start(&[]);
    let next = project.path().join(".caw/.auto-state.json.next");
    std::fs::write(&next, "{\"active\": tr").unwrap();
    assert_eq!(project.stop(&block("expansion")).word(), "block");
    assert!(!next.exists());
    project.assert_sound();
}
