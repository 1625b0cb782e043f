//! `aldis run` in a repository: what must be committed, and what is kept when nothing was.

use std::process::Output;

use super::Stage;
use crate::phases::project::feed;
use crate::sandbox::{ALDIS, Done};

/// A stage under version control, with everything committed.
struct Repository(Stage);

impl Repository {
    fn new(script: &str) -> Self {
        let repository = Self(Stage::new(script));
        std::fs::write(repository.0.0.path().join(".gitignore"), "count\nprompt.*\n").unwrap();
        for args in [&["init", "-q", "."][..], &["add", "."], &["commit", "-qm", "first"]] {
            assert!(repository.git(args).status.success());
        }
        repository
    }

    fn git(&self, args: &[&str]) -> Output {
        let mut command = self.0.0.command("git");
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).output().unwrap()
    }

    fn says(&self, args: &[&str]) -> String {
        String::from_utf8(self.git(args).stdout).unwrap()
    }

    fn run(&self, options: &[&str]) -> Done {
        let mut command = self.0.0.command(ALDIS);
        command.env("PATH", std::env::var_os("PATH").unwrap()).args(Stage::arguments(options));
        feed(command, b"")
    }
}

/// What the agent left and what the user had staged stay as they are; the branch has all of it.
#[test]
fn partial_work_is_kept_on_a_branch() {
    let repository = Repository::new("echo work > new.txt; exit 3");
    std::fs::write(repository.0.0.path().join("staged.txt"), "staged\n").unwrap();
    assert!(repository.git(&["add", "staged.txt"]).status.success());
    let head = repository.says(&["rev-parse", "HEAD", "--abbrev-ref", "HEAD"]);
    let done = repository.run(&["--max-crashes", "0"]);
    assert_eq!(done.code, 1, "{}", done.text());
    let branch = format!("aldis/partial-{}", repository.0.status()["run"].as_str().unwrap());
    assert_eq!(repository.says(&["show", &format!("{branch}:new.txt")]), "work\n");
    assert_eq!(repository.says(&["show", &format!("{branch}:staged.txt")]), "staged\n");
    assert_eq!(repository.says(&["rev-parse", "HEAD", "--abbrev-ref", "HEAD"]), head);
    assert_eq!(repository.says(&["status", "--short"]), "A  staged.txt\n?? new.txt\n");
}

/// What was uncommitted before the run began is its owner's.
#[test]
fn a_run_that_changed_nothing_leaves_no_branch() {
    for (script, options) in
        [("exit 3", ["--max-crashes", "0"]), ("echo working", ["--max-iterations", "1"])]
    {
        let repository = Repository::new(script);
        std::fs::write(repository.0.0.path().join("mine.txt"), "mine\n").unwrap();
        let done = repository.run(&options);
        assert_ne!(done.code, 0, "{}", done.text());
        let branches = repository.says(&["branch", "--list", "aldis/*"]);
        assert_eq!(branches, "", "{script}: {}", done.text());
    }
}

/// A claim counts when the work tree is as it was asked for; the agent is told what is missing.
#[test]
fn what_is_required_of_the_work_tree_is_looked_at() {
    const WORK: &str =
        "echo '<chorus>COMPLETE</chorus>'\n[ $n = 1 ] && { echo $n > new.txt; exit 0; }\n";
    const COMMIT: &str = "git add . && git -c user.name=t -c user.email=t@t commit -qm work";
    for (option, remedy) in [
        ("--require-commit", COMMIT),
        ("--require-clean", COMMIT),
        ("--require-clean", "rm new.txt"),
    ] {
        let repository = Repository::new(&format!("{WORK}{remedy}"));
        let done = repository.run(&[option, "--max-iterations", "3"]);
        assert_eq!(done.code, 0, "{option}: {}", done.text());
        assert_eq!(repository.0.status()["iteration"], 2, "{option}, {remedy}: {}", done.text());
        let (first, second) = (repository.0.prompt(1), repository.0.prompt(2));
        assert!(second.contains("commit"), "{option}: {second}");
        assert_ne!(first, second);
    }
}
