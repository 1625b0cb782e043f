//! The shell blocks of the pages, run as a reader would.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::thread;

use crate::phases::project::{Project, feed};
use crate::sandbox::ALDIS;
use crate::tidy::docs::{blocks, pages};

/// Each page is a session of its own: in a new repository, from the first block to the last.
#[test]
fn the_blocks_of_every_page_run() {
    let sessions = pages().into_iter().filter_map(|(name, text)| {
        let mut script = String::new();
        for block in blocks(&text).into_iter().filter(|block| block.not_run.is_none()) {
            let _ = write!(script, "echo '-- {name}:{}' >&2\n{}", block.line, block.text);
        }
        (!script.is_empty()).then(|| (name, thread::spawn(move || play(&script))))
    });
    let sessions: Vec<_> = sessions.collect();
    assert!(sessions.len() > 5);
    let ended = sessions.into_iter().map(|(name, session)| (name, session.join().unwrap()));
    let failed: Vec<String> =
        ended.filter_map(|(name, failed)| Some(format!("{name}: {}", failed?))).collect();
    assert!(
        failed.is_empty(),
        "fix these blocks, or say why not above them, <!-- not run: REASON -->:\n{}",
        failed.join("\n")
    );
}

/// Returns what was printed if a command failed.
fn play(script: &str) -> Option<String> {
    let project = Project::new();
    let programs = project.root().join("programs");
    fs::create_dir(&programs).unwrap();
    symlink(ALDIS, programs.join("aldis")).unwrap();
    let path = [programs.into_os_string(), env::var_os("PATH").unwrap()].join(":".as_ref());
    let bash = |script: &str| {
        let mut command: Command = project.command("bash");
        command.env("PATH", &path).args(["-e", "-o", "pipefail", "-c", script]);
        command.stdin(Stdio::null());
        feed(command, b"")
    };
    let begin = "git init -q -b main . && git -c user.name=t -c user.email=t@t commit -q --allow-empty -m first";
    assert_eq!(bash(begin).code, 0);
    let done = bash(script);
    (done.code != 0).then(|| done.text())
}
