//! Starting agents: input, environment, descriptors, terminal; and what can go wrong.

use std::cell::Cell;
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use aldis_process::{
    Agent, Environment, Interrupts, Launch, SignalCounts, Supervision, ignore_file_size_signal,
};
use nix::sys::resource::{Resource, setrlimit};
use rustix::process::{Signal, getpid, kill_process};

use crate::{
    REAPER, assert_passes, end, everywhere, exited, in_own_process, input, natively, read_to_end,
    read_until, run, script, wait_until,
};

const SIGXFSZ: u32 = 25;

#[test]
fn reads_its_input_to_the_end() {
    everywhere(|way| {
        let large = "line\n".repeat(100_000);
        for text in ["", "a", "a\n", "ü\0\n\n", &large] {
            let launch = Launch { input: input(text), ..script("cat") };
            assert_eq!(run(&way(launch)).text(), text);
        }
        assert_eq!(run(&way(script("cat"))).text(), "");
    });
}

#[test]
fn input_that_nobody_reads_hangs_nobody() {
    everywhere(|way| {
        let launch = Launch { input: input(&"x".repeat(1_000_000)), ..script("exit 4") };
        assert_eq!(run(&way(launch)).exit, exited(4));
        let launch = Launch { input: input(&"x".repeat(1_000_000)), ..script("sleep 60") };
        end(Agent::start(&way(launch)).unwrap());
    });
}

#[test]
fn output_and_errors_are_told_apart() {
    everywhere(|way| {
        let record = run(&way(script("echo out; echo err >&2; exit 5")));
        assert_eq!((record.stdout, record.stderr), (b"out\n".to_vec(), b"err\n".to_vec()));
        assert_eq!(record.exit, exited(5));
    });
}

#[test]
fn a_terminal_is_wide_silent_and_has_an_end() {
    natively(|way| {
        let terminal = |text: &str| Launch { terminal: true, ..way(script(text)) };
        assert_eq!(
            run(&terminal("stty size; tty >/dev/null && echo yes")).text(),
            "50 1000\nyes\n"
        );
        for (text, expected) in [("a\nb\n", "a\nb\n|"), ("a", "a|"), ("", "|")] {
            let launch = Launch { input: input(text), ..terminal("cat; echo '|'") };
            assert_eq!(run(&launch).text(), format!("{expected}\n"), "{text:?}");
        }
        let error = Agent::start(&Launch { input: input(&"x".repeat(5000)), ..terminal("cat") });
        assert!(error.unwrap_err().to_string().contains("5000"));
        // One that reads although nobody types waits, and can be ended.
        let agent = Agent::start(&terminal("echo ready; cat")).unwrap();
        read_until(&agent, |record| record.stdout == b"ready\n");
        end(agent);
    });
}

#[test]
fn the_fallback_has_no_terminals_and_says_so() {
    let launch =
        Launch { terminal: true, supervision: Supervision::Portable, ..script("echo hello") };
    let error = Agent::start(&launch).unwrap_err();
    assert_eq!(error.to_string(), "a terminal for agents: not supported on this system");
}

#[test]
fn no_controlling_terminal_of_ours_is_inherited() {
    everywhere(|way| {
        let record = run(&way(script("(: </dev/tty) 2>/dev/null || echo none")));
        assert_eq!(record.text(), "none\n");
    });
}

#[test]
fn only_what_is_listed_is_inherited() {
    // One that would be inherited by a plain child.
    let file = File::open("/dev/null").unwrap();
    let leaking = nix::unistd::dup(&file).unwrap();
    assert!(leaking.as_raw_fd() > 2);
    natively(|way| {
        let record = run(&way(script("for fd in /proc/$$/fd/*; do readlink $fd; done")));
        let text = record.text();
        let open: Vec<&str> = text.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(open, ["/dev/null", "pipe", "pipe"]);
    });
    everywhere(|way| {
        let environment = Environment {
            inherit: Some(vec!["PATH".into()]),
            set: vec![("GREETING".into(), "hello".into())],
        };
        let record = run(&way(Launch { environment, ..script("env") }));
        let text = record.text();
        let mut names: Vec<&str> =
            text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
        names.sort_unstable();
        assert_eq!(names, ["ALDIS_SUPERVISED", "GREETING", "PATH"]);
    });
}

#[test]
fn an_interrupt_asks() {
    everywhere(|way| {
        let text = "trap 'echo asked; exit 6' INT; echo ready; while :; do sleep 0.01; done";
        for suspended in [false, true] {
            let agent = Agent::start(&way(script(text))).unwrap();
            read_until(&agent, |record| record.stdout == b"ready\n");
            if suspended {
                agent.suspend();
            }
            agent.interrupt();
            let record = read_to_end(&agent);
            assert_eq!((record.text().as_str(), record.exit), ("asked\n", exited(6)));
            end(agent);
        }
    });
}

#[test]
fn suspending_stops_everything_and_resuming_lets_it_go_on() {
    everywhere(|way| {
        let folder = tempfile::tempdir().unwrap();
        let count = "while :; do echo >>$0; done";
        let text = format!("setsid sh -c '{count}' a & exec sh -c '{count}' b");
        let launch = Launch { cwd: folder.path().to_owned(), ..script(&text) };
        let agent = Agent::start(&way(launch)).unwrap();
        let size = |name: &str| fs::metadata(folder.path().join(name)).map_or(0, |data| data.len());
        for name in ["a", "b"] {
            wait_until("counting", || size(name) > 0);
        }
        agent.suspend();
        let still = || {
            let before = (size("a"), size("b"));
            std::thread::sleep(Duration::from_millis(100));
            before == (size("a"), size("b"))
        };
        wait_until("standing still", still);
        assert!(still());
        assert_eq!(agent.next(Duration::ZERO), None, "that it was suspended is no news");
        agent.resume();
        let before = (size("a"), size("b"));
        wait_until("going on", || size("a") != before.0 && size("b") != before.1);
        // Whoever is suspended can be ended all the same.
        agent.suspend();
        end(agent);
    });
}

#[test]
fn other_children_keep_their_exit_codes() {
    everywhere(|way| {
        let agent = Agent::start(&way(script("sleep 60"))).unwrap();
        for code in 0..20 {
            let status = Command::new("sh").args(["-c", &format!("exit {code}")]).status().unwrap();
            assert_eq!(status.code(), Some(code));
        }
        end(agent);
    });
}

#[test]
fn dropping_an_agent_ends_it() {
    everywhere(|way| {
        let agent = Agent::start(&way(script("trap '' TERM; sleep 60 & sleep 60"))).unwrap();
        let identity = agent.identity().clone();
        drop(agent);
        crate::assert_nothing_left(&identity);
    });
}

#[test]
fn what_cannot_be_started_says_why_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str, mode: u32| {
        fs::write(folder.path().join(name), text).unwrap();
        fs::set_permissions(folder.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    write("plain", "#!/bin/sh\n", 0o644);
    write("no-head", "echo hello\n", 0o755);
    write("no-interpreter", "#!/no/such/interpreter\n", 0o755);
    let table = [
        ("no-such-agent", "there is no program `no-such-agent`", "PATH"),
        ("./no-such-agent", "there is no program `./no-such-agent`", "path"),
        ("./plain", "`./plain` is not executable", "chmod +x ./plain"),
        (
            "./no-interpreter",
            "the interpreter that `./no-interpreter` names is missing",
            "first line",
        ),
    ];
    let launch = |program: &str| {
        let reaper = Some(REAPER.into());
        Launch { cwd: folder.path().to_owned(), reaper, ..Launch::new(program) }
    };
    everywhere(|way| {
        for (program, message, help) in table {
            let error = Agent::start(&way(launch(program))).unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
            assert!(error.help().unwrap().contains(help), "{error:?}");
        }
        let long = Launch { args: vec!["x".repeat(200_000).into()], ..launch("sh") };
        let error = Agent::start(&way(long)).unwrap_err();
        assert_eq!(error.to_string(), "the arguments of `sh` are too long");
        let nowhere = Launch { cwd: folder.path().join("nowhere"), ..launch("sh") };
        let error = Agent::start(&way(nowhere)).unwrap_err();
        assert!(error.to_string().starts_with("there is no directory"), "{error}");
    });
    natively(|way| {
        // Elsewhere execvp(3) gives it to a shell.
        let error = Agent::start(&way(launch("./no-head"))).unwrap_err();
        let message = "`./no-head` is not an executable for this system";
        assert_eq!(error.to_string(), message);
        assert!(error.help().unwrap().contains("#!/bin/sh"));
        let without = Launch { reaper: Some("/bin/true".into()), ..launch("sh") };
        let error = Agent::start(&way(without)).unwrap_err();
        assert_eq!(error.to_string(), "the reaper process did not start `sh`");
    });
}

#[test]
fn every_interrupt_is_counted() {
    if let Some(command) = in_own_process("starting::every_interrupt_is_counted") {
        return assert_passes(command);
    }
    let interrupts = Interrupts::listen().unwrap();
    let expected = [
        (Signal::INT, 1, 0),
        (Signal::INT, 1, 0),
        (Signal::TERM, 0, 1),
        (Signal::HUP, 0, 1),
        (Signal::INT, 1, 0),
    ];
    for (signal, interrupt, terminate) in expected {
        assert_eq!(interrupts.take(), SignalCounts::default());
        kill_process(getpid(), signal).unwrap();
        // Another thread may be the one that is told.
        let found = Cell::new(SignalCounts::default());
        wait_until("being told", || {
            found.set(interrupts.take());
            found.get() != SignalCounts::default()
        });
        assert_eq!(found.get(), SignalCounts { interrupt, terminate });
    }
}

#[test]
fn a_file_size_limit_kills_agents_and_not_us() {
    let test = "starting::a_file_size_limit_kills_agents_and_not_us";
    if let Some(command) = in_own_process(test) {
        return assert_passes(command);
    }
    ignore_file_size_signal();
    let folder = tempfile::tempdir().unwrap();
    everywhere(|way| {
        let text = "grep SigIgn /proc/$$/status; ulimit -f 1; sh -c 'head -c 9999 /dev/zero >f'; \
                    kill -l $?";
        let launch = Launch { cwd: folder.path().to_owned(), ..script(text) };
        let text = run(&way(launch)).text();
        let (ignored, signal) = text.trim_start_matches("SigIgn:").split_once('\n').unwrap();
        let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
        assert_eq!(ignored & 1 << (SIGXFSZ - 1), 0, "it is not inherited");
        assert_eq!(signal, "XFSZ\n");
    });
    setrlimit(Resource::RLIMIT_FSIZE, 1, 1).unwrap();
    let error = fs::write(folder.path().join("g"), "long").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
}
