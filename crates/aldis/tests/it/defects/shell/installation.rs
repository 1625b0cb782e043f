//! One state directory and the projects that share it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::PATIENCE;
use crate::phases::project::feed;
use crate::sandbox::{ALDIS, Done};
use crate::serve::client::Server;

/// A plan with one task.
pub(super) const PLAN: &str = "# Export\n\n- [ ] csv: Write the CSV\n  - [ ] quotes are escaped\n";

/// An agent of a delivery that reports what its role should.
pub(super) const DILIGENT: &str = r#"#!/bin/sh
cat > /dev/null
echo "$ALDIS_ROLE" >> roles
case $ALDIS_ROLE in
developer) printf 'Done.\n\nREADY_FOR_REVIEW: %s\nSummary: done\n' "$ALDIS_TASK";;
critic) printf 'REVIEW_PASSED: %s\n' "$ALDIS_TASK";;
auditor) printf 'AUDIT_PASSED: %s\n' "$ALDIS_TASK";;
esac
"#;

/// An agent that is blocked.
pub(super) const BLOCKED: &str =
    "#!/bin/sh\ncat > /dev/null\necho '<chorus>BLOCKED: no database</chorus>'\n";

/// An agent that works until there is a file `go`, and notes when it is asked to stop.
pub(super) const BUSY: &str = "#!/bin/sh\ncat > /dev/null\ntrap 'touch asked; exit 0' INT TERM\n\
    touch here\nwhile [ ! -e go ]; do sleep 0.05; done\necho '<chorus>COMPLETE</chorus>'\n";

/// A state directory, a home, and projects.
pub(super) struct Installation {
    root: TempDir,
}

impl Installation {
    pub(super) fn new() -> Self {
        let root = TempDir::new().unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        Self { root }
    }

    pub(super) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    /// Returns the directory of a project, which is made if need be.
    pub(super) fn project(&self, name: &str) -> PathBuf {
        let path = fs::canonicalize(self.root.path()).unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Writes a file that can be run.
    pub(super) fn script(&self, project: &str, name: &str, text: &str) {
        let path = self.project(project).join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A command in a project, with nothing in its environment that it need not have.
    pub(super) fn command(&self, project: &str, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.root.path().join("home"))
            .env("ALDIS_STATE_DIR", self.state())
            .current_dir(self.project(project));
        command
    }

    pub(super) fn aldis(&self, project: &str, args: &[&str]) -> Done {
        let mut command = self.command(project, ALDIS);
        command.args(args);
        feed(command, b"")
    }

    /// Runs a short command at another time.
    pub(super) fn aldis_at(&self, now: &str, project: &str, args: &[&str]) -> Done {
        let mut command = self.command(project, ALDIS);
        command.env("ALDIS_NOW", now).args(args);
        feed(command, b"")
    }

    /// Starts a command that goes on.
    pub(super) fn start(&self, project: &str, args: &[&str]) -> Started {
        let mut command = self.command(project, ALDIS);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Started(command.spawn().unwrap())
    }

    pub(super) fn serve(&self) -> Server {
        Server::start(&self.state())
    }

    /// Begins phases under a Stop hook; returns the run.
    pub(super) fn start_phases(&self, project: &str) -> String {
        let done = self.aldis(project, &["auto", "start", project, "--replace", "--json"]);
        assert_eq!(done.code, 0, "{}", done.text());
        done.json()[0]["run"].as_str().unwrap().to_owned()
    }

    /// All runs, ended or not, as `status` lists them.
    pub(super) fn runs(&self) -> Vec<Value> {
        let done = self.aldis("home", &["status", "--all", "--json"]);
        assert!(done.code == 0 || done.stdout.is_empty(), "{}", done.text());
        done.json()
    }

    /// Returns whether a run is still listed.
    pub(super) fn lists(&self, run: &str) -> bool {
        self.runs().iter().any(|listed| listed["run"] == run)
    }

    /// Returns the only run of a project.
    pub(super) fn run_of(&self, project: &str) -> Option<String> {
        let path = self.project(project);
        let runs = self.runs();
        let mut own =
            runs.iter().filter(|run| run["project"].as_str().map(Path::new) == Some(&path));
        let run = own.next()?["run"].as_str().unwrap().to_owned();
        assert!(own.next().is_none(), "{project} has several runs: {runs:#?}");
        Some(run)
    }
}

/// A process that ends with the test.
pub(super) struct Started(pub(super) Child);

impl Started {
    /// Returns how it ended, if it does in this time.
    pub(super) fn ends_within(&mut self, time: Duration) -> Option<Option<i32>> {
        within(time, || self.0.try_wait().unwrap().map(|status| status.code()))
    }

    /// Waits for the end.
    #[track_caller]
    pub(super) fn end(mut self) -> Option<i32> {
        self.ends_within(PATIENCE).unwrap_or_else(|| panic!("it does not end"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Looks again and again until there is something, or the time is over.
pub(super) fn within<T>(time: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if began.elapsed() > time {
            return None;
        }
        thread::sleep(Duration::from_millis(25));
    }
}

/// Waits until something is so that must become so.
#[track_caller]
pub(super) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    assert!(within(PATIENCE, || holds().then_some(())).is_some(), "never: {what}");
}
