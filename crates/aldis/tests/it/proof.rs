//! Checks that an agent cannot bend, with real processes and a real git.

mod deliveries;
mod judges;
mod runs;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::Value;

use crate::phases::project::{Project, feed};
use crate::sandbox::{ALDIS, Done};

/// A repository whose check is a script that looks for `needle` in `src.txt`, and counts as cargo does.
struct Stage(Project);

/// What the check runs: it prints how many tests there are, as the files in `tests` say.
const SCRIPT: &str = "#!/bin/sh\n\
    grep -q needle src.txt || { echo 'needle is missing'; exit 1; }\n\
    passed=$(cat tests/* 2>/dev/null | grep -c '^test')\n\
    skipped=$(cat tests/* 2>/dev/null | grep -c '^skip')\n\
    echo \"test result: ok. $passed passed; 0 failed; $skipped ignored; 0 measured\"\n";

impl Stage {
    fn new(agent: &str) -> Self {
        let stage = Self(Project::new());
        stage.script("scripts/test", SCRIPT);
        stage.write("tests/a.txt", "test one\ntest two\n");
        stage.write("src.txt", "hay\n");
        stage.write(".gitignore", "count\nprompt.*\n");
        stage.script("agent.sh", agent);
        stage.git(&["init", "-q", "-b", "trunk", "."]);
        stage.commit("first");
        stage
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn script(&self, name: &str, text: &str) {
        self.write(name, text);
        let path = self.0.path().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn git(&self, args: &[&str]) -> Output {
        let mut command = self.0.command("git");
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.args(["-c", "user.name=t", "-c", "user.email=t@t"]).args(args).output().unwrap()
    }

    fn commit(&self, message: &str) {
        assert!(self.git(&["add", "."]).status.success());
        assert!(self.git(&["commit", "-qm", message]).status.success());
    }

    fn aldis(&self, args: &[&str]) -> Done {
        let mut command = self.0.command(ALDIS);
        command.env("PATH", std::env::var_os("PATH").unwrap()).args(args);
        feed(command, b"")
    }

    fn why(&self) -> String {
        self.aldis(&["why"]).text()
    }

    fn log(&self) -> Vec<Value> {
        self.aldis(&["log", "--json"]).json()
    }

    /// The decisions by a rule, in order.
    fn decisions(&self, rule: &str) -> Vec<Value> {
        self.log().into_iter().filter(|line| line["rule"] == rule).collect()
    }

    fn status(&self) -> Value {
        self.aldis(&["status", "--json"]).json().remove(0)
    }

    /// Nothing of a clean checkout is left.
    #[track_caller]
    fn assert_no_checkout(&self) {
        let trees = String::from_utf8(self.git(&["worktree", "list"]).stdout).unwrap();
        assert!(!trees.contains("check"), "{trees}");
    }
}
