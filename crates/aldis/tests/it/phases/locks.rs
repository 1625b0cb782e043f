//! What a hook does while it holds a lock: others wait for that, so it is little.

use std::fs;

use super::fault::has_strace;
use super::project::{Project, block, feed};
use crate::sandbox::ALDIS;

/// Calls the hook at a stop and returns its system calls, with the names of the files.
fn calls_of_stop(project: &Project, text: &str) -> Vec<String> {
    let log = project.root().join("calls");
    let mut command = project.command("strace");
    command
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["-f", "-y", "-qq", "-o"])
        .arg(&log)
        .args(["-e", "trace=flock,fsync,fdatasync,write,renameat,?renameat2,?rename"])
        .args([ALDIS, "hook", "claude-code"]);
    let done = feed(command, project.payload(text).to_string().as_bytes());
    assert!(done.code == 0 && done.stdout.contains("\"block\""), "{}", done.text());
    fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect()
}

/// The file that a `flock` is about.
fn locked_file(call: &str) -> &str {
    let (_, file) = call.split_once('<').unwrap();
    file.split_once('>').unwrap().0
}

#[test]
fn a_hook_holds_no_lock_while_it_answers_and_syncs_the_state_file() {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    project.start(&[]);
    for text in ["Not yet.", &block("expansion")] {
        let mut held: Vec<String> = Vec::new();
        let (mut answered, mut synced, mut replaced) = (0, 0, 0);
        for call in calls_of_stop(&project, text) {
            if call.contains("flock(") {
                let file = locked_file(&call).to_owned();
                held.retain(|other| *other != file);
                if call.contains("LOCK_EX") {
                    held.push(file);
                }
                continue;
            }
            let is_answer = call.contains("write(1<");
            let is_sync = call.contains("sync(") && call.contains("/project/.caw");
            if is_answer || is_sync {
                assert!(held.is_empty(), "{call}\nwhile holding {held:?}");
            }
            if call.contains("rename") && call.contains("auto-state.json") {
                // Else an older view could replace a newer one.
                assert!(held.iter().any(|file| file.contains("turns")), "{call}");
                replaced += 1;
            }
            answered += usize::from(is_answer);
            synced += usize::from(is_sync);
        }
        assert_eq!((answered, synced, replaced), (1, 2, 1), "was everything traced?");
    }
    project.assert_sound();
}
