//! Holders of leases in another PID namespace, as in two containers that share a state directory.

use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use aldis_process::{LeaseHolder, Liveness};

use crate::in_own_process;

/// The holder that the process in the other namespace looks at.
const OUTER: &str = "TEST_OUTER";
/// What the line with the holder starts with: the test harness writes to the same stream.
const PREFIX: &str = "holder: ";

#[test]
fn holders_in_other_namespaces_cannot_be_seen() {
    let test = "lease::holders_in_other_namespaces_cannot_be_seen";
    let Some(command) = in_own_process(test) else { return inside() };
    let Some(mut child) = start_elsewhere(&command) else {
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("skipped: this system does not let us make a PID namespace");
        }
        return;
    };
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines.find_map(|line| Some(line.ok()?.split_once(PREFIX)?.1.to_owned()));
    let holder: LeaseHolder = line.expect("its holder").parse().unwrap();
    assert_eq!(holder.liveness(), Liveness::Unknown, "{holder}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "it sees us as we see it");
    // Also when nobody of that namespace is left: our process numbers are not theirs.
    assert_eq!(holder.liveness(), Liveness::Unknown, "{holder}");
}

/// Runs in the other namespace: shows its holder, and looks at ours.
fn inside() {
    let me = LeaseHolder::me();
    assert_eq!(me.liveness(), Liveness::Alive, "{me}");
    let mut out = io::stdout();
    writeln!(out, "\n{PREFIX}{me}").unwrap();
    // Until the other side has looked.
    io::stdin().read_line(&mut String::new()).unwrap();
    let outer: LeaseHolder = env::var(OUTER).unwrap().parse().unwrap();
    assert_eq!(outer.liveness(), Liveness::Unknown, "{outer}");
}

/// Runs a command in a PID namespace of its own, if the system lets us.
fn start_elsewhere(command: &Command) -> Option<Child> {
    for options in [&["-pf", "--mount-proc"][..], &["-rpf", "--mount-proc"]] {
        let mut unshare = Command::new("unshare");
        unshare.args(options);
        let works = Command::new("unshare").args(options).arg("true").output();
        if !works.is_ok_and(|output| output.status.success()) {
            continue;
        }
        unshare.arg(command.get_program()).args(command.get_args());
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        unshare.envs(set).env(OUTER, LeaseHolder::me().to_string());
        unshare.stdin(Stdio::piped()).stdout(Stdio::piped());
        return Some(unshare.spawn().unwrap());
    }
    None
}
