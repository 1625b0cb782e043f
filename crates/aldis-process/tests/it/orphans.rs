//! Finding and ending an agent whose supervisor was killed.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use aldis_process::{Agent, Found, Identity, Launch, Mark, Supervision, find, find_marked};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    PAUSE, assert_nothing_left, end, everywhere, exited, in_own_process, marked, natively,
    read_until, script, wait_until,
};

/// Where the supervisor that is to be killed says whom it supervises.
const TOLD: &str = "TEST_TOLD";
/// How it supervises.
const WAY: &str = "TEST_WAY";
const MARK: &str = "TEST_MARK";
const STUBBORN: &str = "trap '' TERM INT HUP; setsid sh -c \"trap '' TERM HUP; sleep 60\" & \
                        echo ready; sleep 60";

/// With a control group, where there can be one; without; and on the fallback.
const GROUPED: &str = "grouped";
const WALKED: &str = "walked";
const PORTABLE: &str = "portable";

/// Not a test of its own: the process that [`supervisor`] starts.
#[test]
fn supervises_until_it_is_killed() {
    if in_own_process("orphans::supervises_until_it_is_killed").is_some() {
        return;
    }
    let way = env::var(WAY).unwrap();
    let mark = env::var(MARK).ok().map(|mark| Mark::try_from(mark).unwrap());
    let launch = match &*way {
        GROUPED => script(STUBBORN),
        WALKED => Launch { control_group: false, ..script(STUBBORN) },
        PORTABLE => Launch { supervision: Supervision::Portable, ..script(STUBBORN) },
        other => panic!("{other}"),
    };
    let agent = Agent::start(&Launch { mark, ..launch }).unwrap();
    read_until(&agent, |record| record.stdout == b"ready\n");
    let told = env::var_os(TOLD).unwrap();
    let draft = Path::new(&told).with_extension("draft");
    fs::write(&draft, serde_json::to_vec(agent.identity()).unwrap()).unwrap();
    fs::rename(draft, told).unwrap();
    loop {
        agent.next(PAUSE);
    }
}

/// Starts a supervisor in a process of its own. Returns it and its agent.
fn supervisor(way: &str) -> (Child, Identity) {
    marked_supervisor(way, None)
}

fn marked_supervisor(way: &str, mark: Option<&Mark>) -> (Child, Identity) {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("identity");
    let mut command = in_own_process("orphans::supervises_until_it_is_killed").unwrap();
    command.env(TOLD, &told).env(WAY, way).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(mark) = mark {
        command.env(MARK, mark.as_str());
    }
    let child = command.spawn().unwrap();
    wait_until("being told", || told.exists());
    let identity = serde_json::from_slice(&fs::read(told).unwrap()).unwrap();
    (child, identity)
}

#[test]
fn a_killed_supervisor_leaves_nothing() {
    for way in [GROUPED, WALKED] {
        let (mut child, identity) = supervisor(way);
        wait_until("four processes", || marked(&identity.mark).len() >= 4);
        child.kill().unwrap();
        child.wait().unwrap();
        if let Found::Alive(orphan) = find(&identity) {
            assert_eq!(orphan.end(Duration::from_secs(5)), []);
        }
        assert_nothing_left(&identity);
        assert!(matches!(find(&identity), Found::Gone));
    }
}

#[test]
fn what_a_supervisor_without_a_reaper_leaves_is_found() {
    for by_mark in [false, true] {
        let (mut child, identity) = supervisor(PORTABLE);
        wait_until("four processes", || marked(&identity.mark).len() >= 4);
        child.kill().unwrap();
        child.wait().unwrap();
        let found = if by_mark { find_marked(&identity.mark) } else { find(&identity) };
        let Found::Alive(orphan) = found else { panic!("{found:?}") };
        assert_eq!(orphan.end(Duration::from_millis(50)), []);
        assert_nothing_left(&identity);
        assert!(matches!(find(&identity), Found::Gone));
        // Without a start time it is told by the mark alone, which not every system shows.
        let untold = Identity { started_at: None, start: None, ..identity };
        assert!(!matches!(find(&untold), Found::Alive(_)));
    }
}

#[test]
fn a_killed_supervisor_needs_nobody_to_continue() {
    for way in [GROUPED, WALKED] {
        let (mut child, identity) = supervisor(way);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("everybody's end", || marked(&identity.mark).is_empty());
        let group = identity.cgroup.as_ref();
        wait_until("the end of the group", || group.is_none_or(|group| !group.exists()));
    }
}

#[test]
fn what_a_killed_reaper_leaves_is_found_as_well() {
    for way in [GROUPED, WALKED] {
        let (mut child, identity) = supervisor(way);
        // Stopped first, so that it cannot do anything about it.
        kill(&child.id(), Signal::STOP);
        kill(&identity.reaper_pid.unwrap().unsigned_abs(), Signal::KILL);
        child.kill().unwrap();
        child.wait().unwrap();
        let Found::Alive(orphan) = find(&identity) else { panic!("nobody was found") };
        assert_eq!(orphan.end(Duration::from_millis(50)), []);
        assert_nothing_left(&identity);
    }
}

#[test]
fn a_killed_or_stopped_reaper_does_not_save_its_agent() {
    natively(|way| {
        for signal in [Signal::KILL, Signal::STOP] {
            let agent = Agent::start(&way(script(STUBBORN))).unwrap();
            read_until(&agent, |record| record.stdout == b"ready\n");
            kill(&agent.identity().reaper_pid.unwrap().unsigned_abs(), signal);
            if signal == Signal::KILL {
                let record = read_until(&agent, |record| record.exit.is_some());
                let exit = record.exit.unwrap();
                assert_eq!((exit.code, exit.signal), (None, None));
            }
            end(agent);
        }
    });
}

#[test]
fn a_reaper_told_to_stop_ends_its_agent() {
    natively(|way| {
        let agent = Agent::start(&way(script(
            "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done",
        )))
        .unwrap();
        read_until(&agent, |record| record.stdout == b"ready\n");
        kill(&agent.identity().reaper_pid.unwrap().unsigned_abs(), Signal::TERM);
        assert_eq!(read_until(&agent, |record| record.exit.is_some()).exit, exited(3));
        end(agent);
    });
}

#[test]
fn a_number_used_again_is_somebody_else() {
    everywhere(|way| {
        let agent = Agent::start(&way(script("sleep 60"))).unwrap();
        let own = agent.identity();
        // The same numbers, and nothing else.
        let reused = Identity {
            start: own.start.map(|start| start - 1),
            started_at: own.started_at.map(|start| start - 60),
            reaper_start: own.reaper_start.map(|start| start - 1),
            mark: Mark::random().unwrap(),
            cgroup: None,
            ..own.clone()
        };
        assert!(matches!(find(&reused), Found::Gone));
        let other_boot = Identity { boot: Some("another".to_owned()), ..own.clone() };
        assert!(!matches!(find(&other_boot), Found::Alive(_)));
        assert!(matches!(find(own), Found::Alive(_)));
        assert_eq!(agent.next(Duration::ZERO), None);
        end(agent);
    });
}

/// Writes a stand-in for the reaper that starts something and then does this to itself, before it
/// has reported anything.
fn broken_reaper(folder: &Path, act: &str) -> PathBuf {
    let path = folder.join("reaper");
    let family = "sh -c \"trap '' TERM HUP; sleep 60\" & setsid sleep 60 & sleep 60 &";
    fs::write(&path, format!("#!/bin/sh\n{family}\n{act}\nsleep 60\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn a_reaper_lost_before_its_first_report_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // The last one stops again as often as it is continued.
    for act in ["kill -9 $$", "kill -STOP $$; exit 1", "while :; do kill -STOP $$; done"] {
        natively(|way| {
            let mark = Mark::random().unwrap();
            let reaper = Some(broken_reaper(folder.path(), act));
            let launch = Launch { mark: Some(mark.clone()), reaper, ..script("sleep 60") };
            let error = Agent::start(&way(launch)).unwrap_err();
            assert_eq!(error.to_string(), "the reaper process did not start `sh`", "{act}");
            assert_eq!(marked(&mark), [""; 0], "{act}");
        });
    }
}

#[test]
fn an_agent_that_kills_its_reaper_at_once_does_not_survive() {
    natively(|way| {
        for _ in 0..10 {
            let mark = Mark::random().unwrap();
            let text = "kill -9 $PPID; trap '' TERM; setsid sleep 60 & sleep 60";
            let launch = Launch { mark: Some(mark.clone()), ..script(text) };
            // Whether the report comes first is a matter of luck.
            if let Ok(agent) = Agent::start(&way(launch)) {
                end(agent);
            }
            assert_eq!(marked(&mark), [""; 0]);
        }
    });
}

#[test]
fn the_exit_of_an_agent_that_stops_its_reaper_is_reported() {
    natively(|way| {
        for _ in 0..5 {
            let agent = Agent::start(&way(script("kill -STOP $PPID; exit 3"))).unwrap();
            assert_eq!(read_until(&agent, |record| record.exit.is_some()).exit, exited(3));
            end(agent);
        }
    });
}

#[test]
fn an_agent_is_found_by_a_mark_that_was_chosen_before() {
    for way in [GROUPED, WALKED] {
        let mark = Mark::derive(&format!("{} {way}", std::process::id()));
        assert!(matches!(find_marked(&mark), Found::Gone));
        let (mut child, identity) = marked_supervisor(way, Some(&mark));
        assert_eq!(identity.mark, mark);
        // Nothing but the mark is known, as if it was killed before it could store the identity.
        child.kill().unwrap();
        child.wait().unwrap();
        if let Found::Alive(orphan) = find_marked(&mark) {
            assert_eq!(orphan.end(Duration::from_secs(5)), []);
        }
        assert_nothing_left(&identity);
        assert!(matches!(find_marked(&mark), Found::Gone));
    }
}

#[test]
fn the_mark_of_an_owner_finds_all_its_agents_and_ends_none_by_accident() {
    everywhere(|way| {
        let owner = Mark::random().unwrap();
        let start = || {
            let launch = Launch { owner: Some(owner.clone()), ..script(STUBBORN) };
            let agent = Agent::start(&way(launch)).unwrap();
            read_until(&agent, |record| record.stdout == b"ready\n");
            agent
        };
        let (first, second) = (start(), start());
        assert!(matches!(find_marked(&owner), Found::Alive(_)));
        end(first);
        assert_eq!(second.next(Duration::ZERO), None, "the other one goes on");
        let Found::Alive(orphan) = find_marked(&owner) else { panic!("nothing was found") };
        assert_eq!(orphan.end(Duration::from_millis(50)), []);
        assert_eq!(marked(&owner), [""; 0]);
        end(second);
    });
}

#[test]
fn a_mark_finds_what_a_killed_reaper_leaves() {
    for way in [GROUPED, WALKED] {
        let (mut child, identity) = supervisor(way);
        kill(&child.id(), Signal::STOP);
        kill(&identity.reaper_pid.unwrap().unsigned_abs(), Signal::KILL);
        child.kill().unwrap();
        child.wait().unwrap();
        let Found::Alive(orphan) = find_marked(&identity.mark) else { panic!("nothing was found") };
        assert_eq!(orphan.end(Duration::from_millis(50)), []);
        assert_eq!(marked(&identity.mark), [""; 0]);
    }
}

fn kill(pid: &u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap(), signal).unwrap();
}
