//! Full, failing and forbidden disks: a hook lets the agent go and leaves a note, a command says what
//! is wrong, and both work again as soon as the disk does.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::fault::{Act, Fault, START, Snapshot, has_strace};
use super::project::{Answer, Project};

/// What can fail while a step is written, and the errors with which disks do.
const CALLS: [&str; 4] = ["pwrite64", "fsync", "ftruncate", "write"];
const ERRORS: [&str; 3] = ["error=ENOSPC", "error=EIO", "error=EROFS"];
/// The files whose opening may fail. The rest is the loader's.
const FILES: [&str; 5] =
    ["aldis.db", "aldis.db-wal", "aldis.db-shm", "aldis.db.lock", "failures.jsonl"];
/// In the project, where paths are relative.
const VIEW_FILES: [&str; 3] = [".caw", "auto-state.json", ".auto-state.json.next"];

/// Lets every call fail, once and from then on, as long as the fault changes anything.
fn faults(calls: &str) -> Vec<(String, String)> {
    let mut faults = Vec::new();
    for nth in 1..=12 {
        for when in [nth.to_string(), format!("{nth}+")] {
            faults.push((calls.to_owned(), when));
        }
    }
    faults
}

#[test]
#[expect(clippy::print_stderr, reason = "how much was tested is part of the result")]
fn a_hook_on_a_failing_disk_lets_go_and_comes_back() {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    project.act(&START);
    let stop = project.stopping("Not yet.");
    // Not the first one, so that nothing is special.
    project.act(&stop);
    let start = Snapshot::of(project.root());
    let before = project.look();
    let (mut cases, mut failed) = (0, 0);
    for (calls, when) in CALLS.into_iter().flat_map(faults) {
        // The same call fails in the same way wherever it stands: one error each is enough.
        let what = ERRORS[cases % ERRORS.len()];
        start.restore();
        let fault = Fault { calls: &calls, what, when: &when };
        let place = format!("{calls} {what} {when}");
        let done = project.act_with(&stop, fault);
        assert_eq!((done.code, &*done.stderr), (0, ""), "{place}: {}", done.text());
        let left = project.look();
        assert!(left.events <= before.events + 1, "{place}");
        let committed = left.events > before.events;
        let answer: serde_json::Value = serde_json::from_str(&done.stdout).unwrap_or_default();
        let told = answer["systemMessage"].as_str();
        assert!(told.is_none_or(|told| told.contains("no space left")), "{place}: {told:?}");
        if !done.stdout.is_empty() && told.is_none() {
            assert_eq!(answer["decision"], "block", "{place}");
            assert!(committed, "{place}: answered and lost");
        } else if calls != "write" {
            failed += 1;
            assert!(project.alarms().contains("aldis.db"), "{place}: {}", project.alarms());
        }
        fs::remove_file(project.state_dir().join("failures.jsonl")).unwrap_or_default();
        assert_eq!(project.stop("Not yet.").word(), "block", "{place}");
        let now = project.look();
        assert_eq!(now.iteration(), before.iteration() + u64::from(committed) + 1, "{place}");
        assert_eq!(project.alarms(), "", "{place}");
        assert_eq!(project.view()["iteration"], now.iteration(), "{place}");
        cases += 1;
    }
    eprintln!("{cases} faults, {failed} of which left the stop undecided");
    assert!(failed >= 10, "only {failed} faults were felt; was anything injected?");
}

#[test]
fn a_hook_that_cannot_open_its_files_lets_go() {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    project.act(&START);
    let stop = project.stopping("Not yet.");
    let start = Snapshot::of(project.root());
    let mut silent = 0;
    for error in ["EACCES", "EMFILE", "EROFS", "ENOSPC", "EIO"] {
        for when in ["1", "2", "1+"] {
            for file in FILES {
                start.restore();
                let path = project.state_dir().join(file);
                let done = project.act_opening(&stop, &[path.to_str().unwrap()], error, when);
                let place = format!("{file} {error} {when}");
                assert_eq!((done.code, &*done.stderr), (0, ""), "{place}: {}", done.text());
                silent += usize::from(done.stdout.is_empty());
                assert_eq!(project.stop("Not yet.").word(), "block", "{place}");
            }
        }
    }
    assert!(silent >= 10, "only {silent} faults were felt; was anything injected?");
}

/// Where the state file cannot be written, the run goes on without it, for ever.
#[test]
fn a_run_goes_on_without_its_state_file() {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    let done = project.act_opening(&START, &VIEW_FILES, "EACCES", "1+");
    assert_eq!(done.code, 0, "{}", done.text());
    assert!(done.stderr.contains("the state file was not written"), "{}", done.text());
    for count in 1..=3 {
        let stop = project.stopping("Not yet.");
        let done = project.act_opening(&stop, &VIEW_FILES, "EACCES", "1+");
        assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
        assert!(done.stdout.contains("\"block\""), "stop {count}: {}", done.text());
        let look = project.look();
        assert_eq!((look.iteration(), look.view), (count, None));
    }
    // It appears when it can, and from then on deleting it ends the run.
    assert_eq!(project.stop("Not yet.").word(), "block");
    assert_eq!(project.view()["iteration"], 4);
    fs::remove_file(project.view_path()).unwrap();
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    assert_eq!(project.status()["exit_reason"], "user_cancelled");
}

#[test]
fn a_start_on_a_failing_disk_says_so() {
    if !has_strace() {
        return;
    }
    let project = Project::new();
    let empty = Snapshot::of(project.root());
    let mut refused = 0;
    for (calls, what, said, remedy) in [
        ("pwrite64", "error=ENOSPC", "no space left for", "free some and try again"),
        ("pwrite64", "error=EIO", "failed to", "check the disk"),
        ("fsync", "error=EIO", "failed to", "check the disk"),
        ("?mkdir,mkdirat", "error=ENOSPC", "no space left for", "free some and try again"),
        ("?mkdir,mkdirat", "error=EROFS", "cannot be written", "choose another directory"),
    ] {
        for when in ["1", "2", "3", "4", "6", "9", "1+", "3+", "9+"] {
            empty.restore();
            let place = format!("{calls} {what} {when}");
            let done = project.act_with(&START, Fault { calls, what, when });
            if done.code == 0 {
                // The fault came late, or SQLite could do without.
                assert_eq!(project.look().runs, 1, "{place}");
                continue;
            }
            refused += 1;
            assert_eq!((done.code, &*done.stdout), (2, ""), "{place}: {}", done.text());
            assert!(done.stderr.starts_with("error:"), "{place}: {}", done.text());
            assert!(done.stderr.contains("/state"), "{place}: {}", done.text());
            // Of one file SQLite does not say why it could not grow.
            let full = ("no space left for", "free some and try again");
            let told = |(said, remedy)| done.stderr.contains(said) && done.stderr.contains(remedy);
            assert!(told((said, remedy)) || told(full), "{place}: {}", done.text());
            let again = project.act(&START);
            assert!(again.code == 0 || project.look().runs == 1, "{place}: {}", again.text());
            assert_eq!(project.look().runs, 1, "{place}");
            assert_eq!(project.stop("Not yet.").word(), "block", "{place}");
        }
    }
    assert!(refused >= 10, "only {refused} faults were felt; was anything injected?");
}

#[test]
fn strange_state_directories_are_no_trap() {
    let project = Project::new();
    project.start(&[]);
    let (state, real) = (project.state_dir(), project.root().join("real"));

    // For everybody but root, who may write anywhere.
    fs::set_permissions(&state, fs::Permissions::from_mode(0o500)).unwrap();
    assert_ne!(project.stop("Not yet.").word(), "other");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    assert!(project.alarms().contains("chmod go-w"), "{}", project.alarms());
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();

    fs::rename(&state, &real).unwrap();
    symlink(&real, &state).unwrap();
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    fs::remove_file(&state).unwrap();
    fs::write(&state, "a file").unwrap();
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    fs::remove_file(&state).unwrap();
    fs::rename(&real, &state).unwrap();
    assert_eq!(project.stop("Not yet.").word(), "block");

    let project = Project::new();
    assert_eq!(project.stop("Not yet."), Answer::Allow);
    assert!(!project.state_dir().exists(), "nothing is created for nothing");
}

#[test]
fn without_a_home_there_is_nothing_to_say() {
    let project = Project::new();
    project.start(&[]);
    let Act::Hook(payload) = project.stopping("Not yet.") else { panic!("not a hook") };
    for home in [None, Some("")] {
        let mut command = project.command(crate::sandbox::ALDIS);
        command.env_remove("HOME").env_remove("ALDIS_STATE_DIR").args(["hook", "claude-code"]);
        command.envs(home.map(|home| ("HOME", home)));
        let done = super::project::feed(command, payload.to_string().as_bytes());
        assert_eq!((done.code, done.stdout, done.stderr), (0, String::new(), String::new()));
    }
}

/// SIGXFSZ kills whoever does not care for it.
#[test]
fn a_file_size_limit_is_like_a_full_disk() {
    let project = Project::new();
    project.start(&[]);
    let Act::Hook(payload) = project.stopping("Not yet.") else { panic!("not a hook") };
    let limited = |arguments: &str, input: &[u8]| {
        let mut command = project.command("/bin/sh");
        let script = format!("ulimit -f 0; exec \"$0\" {arguments}");
        command.args(["-c", &script, crate::sandbox::ALDIS]);
        super::project::feed(command, input)
    };
    let done = limited("hook claude-code", payload.to_string().as_bytes());
    assert_eq!((done.code, &*done.stderr), (0, ""), "{}", done.text());
    let done = limited("auto stop", b"");
    assert_eq!(done.code, 2, "{}", done.text());
    assert_eq!(project.stop("Not yet.").word(), "block");
}
