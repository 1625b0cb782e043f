//! Each stand-in agent of `testdata/hostile/agent_*.sh`, as its row there expects.

use std::fs;
use std::time::Duration;

use aldis_process::{Agent, Launch};

use crate::{
    PAUSE, assert_passes, end, end_within, everywhere, exited, hostile, in_own_process, killed,
    natively, read_to_end, read_until, run, script, wait_until,
};

const COMPLETE: &str = "<chorus>COMPLETE</chorus>\n";
const SIGKILL: i32 = 9;
const SIGSEGV: i32 = 11;
const SIGTERM: i32 = 15;
/// More than the pump, the pipe and a test harness need, and less than a flood.
const GROWTH_MAX: usize = 12 * 1024 * 1024;

#[test]
fn control() {
    everywhere(|way| {
        let record = run(&way(hostile("agent_00_control.sh")));
        assert_eq!((record.text().as_str(), record.exit), (COMPLETE, exited(0)));
    });
}

#[test]
fn one_that_ignores_sigterm_is_killed_after_the_grace_period() {
    everywhere(|way| {
        let agent = Agent::start(&way(hostile("agent_01_ignore_term.sh"))).unwrap();
        let pid = agent.identity().pid;
        // Before the trap is set the signal would end it.
        wait_until("the trap", || ignored_signals(pid) & (1 << (SIGTERM - 1)) != 0);
        assert_eq!(end_within(agent, Duration::from_millis(100)), killed(SIGKILL));
    });
}

#[test]
fn one_that_does_as_asked_is_not_killed() {
    everywhere(|way| {
        let polite = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
        let agent = Agent::start(&way(script(polite))).unwrap();
        read_until(&agent, |record| record.stdout == b"ready\n");
        let mut last = crate::Record::default();
        let ended = agent.end_with(Duration::from_secs(50), |output| last.add(output));
        assert_eq!((ended.exit, ended.survivors.len()), (exited(7), 0));
        assert_eq!(last.text(), "bye\n");
        assert!(last.closed);
    });
}

#[test]
fn a_grandchild_in_its_own_session_ends_with_the_agent() {
    everywhere(|way| {
        let agent = Agent::start(&way(hostile("agent_02_setsid_grandchild.sh"))).unwrap();
        read_until(&agent, |record| record.stdout == b"started\n");
        assert_eq!(end_within(agent, Duration::from_secs(50)), killed(SIGTERM));
    });
}

#[test]
fn a_grandchild_that_has_forgotten_its_parents_ends_with_the_agent() {
    natively(|way| {
        let forks = "(setsid env -i sh -c '(sleep 61 & echo $! >&3; exec >&- 2>&- 3>&-; sleep 61) & ' \
                     3>&1 &) ; sleep 61";
        let agent = Agent::start(&way(script(forks))).unwrap();
        let record = read_until(&agent, |record| record.stdout.ends_with(b"\n"));
        let grandchild = format!("/proc/{}", record.text().trim());
        assert!(fs::exists(&grandchild).unwrap());
        end(agent);
        assert!(!fs::exists(&grandchild).unwrap());
    });
}

#[test]
fn a_grandchild_that_holds_the_pipe_does_not_hold_the_end() {
    everywhere(|way| {
        let agent = Agent::start(&way(hostile("agent_03_holds_stdout.sh"))).unwrap();
        let record = read_to_end(&agent);
        assert_eq!((record.text().as_str(), record.exit), (COMPLETE, exited(0)));
        assert_eq!(*record.order.last().unwrap(), "closed");
        end(agent);
    });
}

#[test]
fn what_was_written_before_the_end_is_not_lost() {
    everywhere(|way| {
        // As much as a pipe holds, while a grandchild goes on writing.
        let text = "head -c 65536 /dev/zero; (setsid yes) & exit 3";
        let agent = Agent::start(&way(script(text))).unwrap();
        // Nobody reads before the agent has ended.
        wait_until("the end", || !is_running(agent.identity().pid));
        let record = read_to_end(&agent);
        assert_eq!(record.exit, exited(3));
        assert_eq!(record.stdout.iter().filter(|byte| **byte == 0).count(), 65536);
        end(agent);
    });
}

#[test]
fn a_flood_loses_nothing_and_grows_nothing() {
    let test = "hostile::a_flood_loses_nothing_and_grows_nothing";
    if let Some(command) = in_own_process(test) {
        return assert_passes(command);
    }
    everywhere(|way| {
        for (name, length) in
            [("agent_04_flood.sh", 20_000_000), ("agent_05_no_newline.sh", 5_000_000)]
        {
            let before = resident();
            let agent = Agent::start(&way(hostile(name))).unwrap();
            let (mut seen, mut most, mut done) = (0, 0, 0);
            while done < 2 {
                match agent.next(PAUSE) {
                    Some(aldis_process::Output::Stdout(bytes)) => seen += bytes.len(),
                    Some(_) => done += 1,
                    None => {}
                }
                most = most.max(resident());
            }
            assert_eq!(seen, length, "{name}");
            assert!(most.saturating_sub(before) < GROWTH_MAX, "{name}: {before} to {most}");
            end(agent);
        }
    });
}

#[test]
fn an_agent_that_nobody_reads_blocks() {
    let check = |launch: &Launch| {
        let agent = Agent::start(launch).unwrap();
        let pid = agent.identity().pid;
        let mut before = 0;
        let mut rounds = 0;
        loop {
            std::thread::sleep(PAUSE * 5);
            let now = written(pid);
            if now == before && now > 0 {
                break;
            }
            before = now;
            rounds += 1;
            assert!(rounds < 1000, "it never had to wait");
        }
        assert!(before < 4 * 1024 * 1024, "{before}");
        end(agent);
    };
    everywhere(|way| check(&way(script("exec yes"))));
    natively(|way| check(&Launch { terminal: true, ..way(script("exec yes")) }));
}

#[test]
fn a_letter_split_by_time_arrives_whole() {
    everywhere(|way| {
        let record = run(&way(hostile("agent_07_split_utf8.sh")));
        assert_eq!(record.text(), format!("é\n{COMPLETE}"));
    });
}

#[test]
fn a_crash_after_a_signal_is_told() {
    everywhere(|way| {
        let record = run(&way(hostile("agent_08_signal_then_crash.sh")));
        assert_eq!((record.text().as_str(), record.exit), (COMPLETE, killed(SIGSEGV)));
    });
}

#[test]
fn one_that_works_on_after_its_signal_can_be_ended() {
    everywhere(|way| {
        let agent = Agent::start(&way(hostile("agent_09_signal_then_work.sh"))).unwrap();
        let record = read_until(&agent, |record| record.stdout.ends_with(b"\n"));
        assert_eq!((record.text().as_str(), record.exit), (COMPLETE, None));
        assert_eq!(end_within(agent, Duration::from_secs(50)), killed(SIGTERM));
    });
}

#[test]
fn the_end_of_output_is_not_the_end() {
    everywhere(|way| {
        let agent = Agent::start(&way(hostile("agent_11_closes_stdout.sh"))).unwrap();
        let record = read_until(&agent, |record| record.closed);
        assert_eq!((record.exit, record.stdout.len()), (None, 0));
        assert!(is_running(agent.identity().pid));
        assert_eq!(end(agent), killed(SIGKILL));
    });
}

#[test]
fn one_that_stops_itself_is_noticed_and_can_go_on_or_be_ended() {
    everywhere(|way| {
        let agent = Agent::start(&way(hostile("agent_12_stops_itself.sh"))).unwrap();
        read_until(&agent, |record| record.stopped);
        agent.resume();
        assert_eq!(read_to_end(&agent).exit, exited(0));
        end(agent);

        let agent = Agent::start(&way(hostile("agent_12_stops_itself.sh"))).unwrap();
        read_until(&agent, |record| record.stopped);
        assert_eq!(end_within(agent, Duration::from_secs(50)), killed(SIGTERM));
    });
}

#[test]
fn a_tree_of_forty_is_ended() {
    everywhere(|way| {
        let agent = Agent::start(&way(hostile("agent_13_fork_tree.sh"))).unwrap();
        let mark = agent.identity().mark.clone();
        // The agent, eight shells and their children.
        wait_until("forty", || crate::marked(&mark).len() > 8 + 32);
        end(agent);
    });
}

#[test]
fn one_that_writes_files_writes_them_where_it_works() {
    everywhere(|way| {
        let folder = tempfile::tempdir().unwrap();
        let launch =
            Launch { cwd: folder.path().to_owned(), ..hostile("agent_14_writes_state.sh") };
        assert_eq!(run(&way(launch)).text(), "tried\n");
        assert!(folder.path().join(".caw/auto-state.json").exists());
    });
}

#[test]
fn a_question_to_the_terminal_hangs_nobody() {
    everywhere(|way| {
        let record = run(&way(hostile("agent_16_tty_probe.sh")));
        assert_eq!((record.text().as_str(), record.exit), ("ok\n", exited(0)));
    });
    natively(|way| {
        let record = run(&Launch { terminal: true, ..way(hostile("agent_16_tty_probe.sh")) });
        assert_eq!((record.text().as_str(), record.exit), ("\x1b[6nok\n", exited(0)));
    });
}

#[test]
fn the_control_for_clock_steps_ends() {
    let record = run(&hostile("agent_19_clock.sh"));
    assert_eq!((record.text().lines().count(), record.exit), (2, exited(0)));
}

fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn status_field(pid: i32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(status.lines().find_map(|line| line.strip_prefix(name))?.trim().to_owned())
}

fn ignored_signals(pid: i32) -> u64 {
    let mask = status_field(pid, "SigIgn:").unwrap_or_default();
    u64::from_str_radix(&mask, 16).unwrap_or_default()
}

/// Returns how many bytes a process has written.
fn written(pid: i32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let field = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    field.map_or(0, |field| field.parse().unwrap())
}

/// Returns how much memory this process has.
fn resident() -> usize {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}
