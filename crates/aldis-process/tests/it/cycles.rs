//! Many starts and ends leave nothing behind.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use aldis_process::{Agent, Launch, Supervision};

use crate::{PAUSE, assert_passes, hostile, in_own_process, marked, script, wait_until};

const CYCLES: usize = 500;
const BACKGROUND: &str = "(setsid sh -c 'sleep 60 & sleep 60' &) ; echo started; exit 1";
const FAMILY: &str = "while :; do sleep 60 & setsid sleep 60 & echo born; sleep 0.001; done";

#[test]
fn nothing_is_left_of_many_agents() {
    let test = "cycles::nothing_is_left_of_many_agents";
    if let Some(mut command) = in_own_process(test) {
        let folder = tempfile::tempdir().unwrap();
        command.env("TMPDIR", folder.path());
        assert_passes(command);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        return;
    }
    let agents = [
        hostile("agent_01_ignore_term.sh"),
        hostile("agent_02_setsid_grandchild.sh"),
        hostile("agent_03_holds_stdout.sh"),
        hostile("agent_04_flood.sh"),
        hostile("agent_11_closes_stdout.sh"),
        hostile("agent_12_stops_itself.sh"),
        hostile("agent_13_fork_tree.sh"),
        script(BACKGROUND),
        script(FAMILY),
        Launch::new("no-such-agent"),
    ];
    let mut before = None;
    let mut marks = Vec::new();
    for cycle in 0..CYCLES {
        let launch = agents[cycle % agents.len()].clone();
        // The ways change more slowly than the agents, so that each meets each.
        let way = cycle / agents.len();
        let portable = way % 4 == 1;
        let launch = Launch {
            terminal: way % 4 == 3,
            control_group: way.is_multiple_of(2),
            supervision: if portable { Supervision::Portable } else { Supervision::Native },
            ..launch
        };
        match Agent::start(&launch) {
            Ok(agent) => {
                marks.push(agent.identity().mark.clone());
                // Some are read for a while, some are ended while they start.
                for _ in 0..way % 3 {
                    agent.next(PAUSE / 2);
                }
                if way % 5 == 4 {
                    agent.suspend();
                }
                let ended = agent.end(Duration::from_millis((way % 3) as u64 * 10));
                assert_eq!(ended.survivors, [], "cycle {cycle}");
            }
            Err(error) => assert!(error.to_string().contains("no-such-agent"), "{error}"),
        }
        // The first few open what stays open for good.
        if cycle + 1 == agents.len() {
            before = Some((descriptors(), threads()));
        }
    }
    // The threads of the fallback end when the pipes are closed.
    wait_until("the same descriptors and threads", || before == Some((descriptors(), threads())));
    assert_eq!(children(), [""; 0]);
    assert_eq!(groups(), [""; 0]);
    for mark in marks {
        assert_eq!(marked(&mark), [""; 0]);
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

/// Returns the children of this process, zombies included.
fn children() -> Vec<String> {
    let own = std::process::id().to_string();
    let stats = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.ok()?.path().join("stat")).ok());
    stats
        .filter(|stat| {
            let rest = stat.rsplit_once(") ").map(|(_, rest)| rest);
            rest.is_some_and(|rest| rest.split(' ').nth(1) == Some(&own))
        })
        .collect()
}

/// Returns the control groups that this process has made.
fn groups() -> Vec<String> {
    let prefix = format!("aldis-{}-", std::process::id());
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with(&prefix) {
                    found.push(name);
                }
                folders.push(entry.path());
            }
        }
    }
    found
}
