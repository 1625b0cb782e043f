//! A place to run the binary in: an empty directory and a cleared environment.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

/// A directory that goes away with the test.
pub(crate) struct Sandbox(TempDir);

/// What a command did.
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and the directories it needs.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn run(&self, args: &[&str]) -> Done {
        self.run_with(args, b"")
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> Done {
        let output = Command::new(ALDIS)
            .env_clear()
            .current_dir(self.path())
            .args(args)
            .write_stdin(stdin)
            .output()
            .unwrap();
        Done {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Done {
    /// Everything at once, for snapshots.
    pub(crate) fn text(&self) -> String {
        let Self { code, stdout, stderr } = self;
        format!("exit {code}\n-- stdout\n{stdout}-- stderr\n{stderr}")
    }

    /// Standard output as JSON lines.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The binary under test.
pub(crate) const ALDIS: &str = env!("CARGO_BIN_EXE_aldis");

/// An agent that follows a script, which cargo builds with the tests.
pub(crate) fn scripted_agent() -> String {
    let examples = Path::new(ALDIS).with_file_name("examples");
    examples.join("scripted-agent").display().to_string()
}

/// A message with one genuine signal.
pub(crate) const READY: &str =
    "All tests pass.\n\nREADY_FOR_REVIEW: task-1\nSummary: parser done\n";

/// A block that completes the phase `qa`.
pub(crate) const QA_COMPLETE: &str = "The suite is green.\n\n---\nSIGNAL: QA_COMPLETE\nPHASE: qa\n\
    STATUS: complete\nTIMESTAMP: 2026-03-02T10:00:00Z\nNEXT: review\n---\n";
