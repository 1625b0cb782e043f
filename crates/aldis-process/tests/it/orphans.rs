//! Finding and ending an agent whose supervisor was killed.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use aldis_process::{Agent, Found, Identity, Launch, find};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    PAUSE, assert_nothing_left, both_ways, end, exited, in_own_process, marked, read_until, script,
    wait_until,
};

/// Where the supervisor that is to be killed says whom it supervises.
const TOLD: &str = "TEST_TOLD";
const GROUPED: &str = "TEST_GROUPED";
const STUBBORN: &str = "trap '' TERM INT HUP; setsid sh -c \"trap '' TERM HUP; sleep 60\" & \
                        echo ready; sleep 60";

/// Not a test of its own: the process that [`supervisor`] starts.
#[test]
fn supervises_until_it_is_killed() {
    if in_own_process("orphans::supervises_until_it_is_killed").is_some() {
        return;
    }
    let control_group = env::var_os(GROUPED).is_some();
    let agent = Agent::start(&Launch { control_group, ..script(STUBBORN) }).unwrap();
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
fn supervisor(control_group: bool) -> (Child, Identity) {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("identity");
    let mut command = in_own_process("orphans::supervises_until_it_is_killed").unwrap();
    command.env(TOLD, &told).stdout(Stdio::null()).stderr(Stdio::null());
    if control_group {
        command.env(GROUPED, "1");
    }
    let child = command.spawn().unwrap();
    wait_until("being told", || told.exists());
    let identity = serde_json::from_slice(&fs::read(told).unwrap()).unwrap();
    (child, identity)
}

#[test]
fn a_killed_supervisor_leaves_nothing() {
    for control_group in [true, false] {
        let (mut child, identity) = supervisor(control_group);
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
fn a_killed_supervisor_needs_nobody_to_continue() {
    for control_group in [true, false] {
        let (mut child, identity) = supervisor(control_group);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("everybody's end", || marked(&identity.mark).is_empty());
        let group = identity.cgroup.as_ref();
        wait_until("the end of the group", || group.is_none_or(|group| !group.exists()));
    }
}

#[test]
fn what_a_killed_reaper_leaves_is_found_as_well() {
    for control_group in [true, false] {
        let (mut child, identity) = supervisor(control_group);
        // Stopped first, so that it cannot do anything about it.
        kill(&child.id(), Signal::STOP);
        kill(&identity.reaper_pid.unsigned_abs(), Signal::KILL);
        child.kill().unwrap();
        child.wait().unwrap();
        let Found::Alive(orphan) = find(&identity) else { panic!("nobody was found") };
        assert_eq!(orphan.end(Duration::from_millis(50)), []);
        assert_nothing_left(&identity);
    }
}

#[test]
fn a_killed_or_stopped_reaper_does_not_save_its_agent() {
    both_ways(|way| {
        for signal in [Signal::KILL, Signal::STOP] {
            let agent = Agent::start(&way(script(STUBBORN))).unwrap();
            read_until(&agent, |record| record.stdout == b"ready\n");
            kill(&agent.identity().reaper_pid.unsigned_abs(), signal);
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
    both_ways(|way| {
        let agent = Agent::start(&way(script(
            "trap 'exit 3' TERM; echo ready; while :; do sleep 0.01; done",
        )))
        .unwrap();
        read_until(&agent, |record| record.stdout == b"ready\n");
        kill(&agent.identity().reaper_pid.unsigned_abs(), Signal::TERM);
        assert_eq!(read_until(&agent, |record| record.exit.is_some()).exit, exited(3));
        end(agent);
    });
}

#[test]
fn a_number_used_again_is_somebody_else() {
    both_ways(|way| {
        let agent = Agent::start(&way(script("sleep 60"))).unwrap();
        let own = agent.identity();
        // The same numbers, and nothing else.
        let reused = Identity {
            start: own.start - 1,
            reaper_start: own.reaper_start - 1,
            mark: "0".repeat(own.mark.len()),
            cgroup: None,
            ..own.clone()
        };
        assert!(matches!(find(&reused), Found::Gone));
        let other_boot = Identity { boot: "another".to_owned(), ..own.clone() };
        assert!(matches!(find(&other_boot), Found::Gone));
        assert!(matches!(find(own), Found::Alive(_)));
        assert_eq!(agent.next(Duration::ZERO), None);
        end(agent);
    });
}

fn kill(pid: &u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap(), signal).unwrap();
}
