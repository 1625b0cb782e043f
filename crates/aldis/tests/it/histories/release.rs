//! The database of an older release, as its user has it on the disk when today's binary is installed.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;

use super::journal::{Journal, journals};
use crate::phases::project::{Project, feed, testdata};
use crate::sandbox::{ALDIS, Done};

/// Where all projects of the recording lay.
const RECORDED: &str = "/tmp/aldis-history";

/// A copy of a release's database, and its projects below a directory of the test's own.
pub(super) struct Release {
    pub(super) project: Project,
    pub(super) journals: Vec<Journal>,
    version: String,
}

impl Release {
    /// Copies the database as it was written.
    pub(super) fn new(version: &str) -> Self {
        let project = Project::new();
        let state = project.state_dir();
        fs::DirBuilder::new().mode(0o700).create(&state).unwrap();
        let packed = testdata("histories").join(version).join("store.db.gz");
        let database = state.join("aldis.db");
        let unpacked = Command::new("gzip")
            .args(["--decompress", "--stdout"])
            .stdin(fs::File::open(packed).unwrap())
            .stdout(fs::File::create(&database).unwrap())
            .stderr(Stdio::inherit())
            .status();
        assert!(unpacked.is_ok_and(|status| status.success()), "gzip must be on the PATH");
        fs::set_permissions(database, fs::Permissions::from_mode(0o600)).unwrap();
        Self { project, journals: journals(version), version: version.to_owned() }
    }

    /// Copies the database and moves the projects to where this test may write. The statements are
    /// for the schema of the recording, whatever today's is.
    pub(super) fn moved(version: &str) -> Self {
        let release = Self::new(version);
        let connection = Connection::open(release.project.state_dir().join("aldis.db")).unwrap();
        let root = release.root().display().to_string();
        for statement in [
            "UPDATE runs SET project = replace(project, ?1, ?2)",
            "UPDATE outbox SET body = replace(body, ?1, ?2) WHERE kind = 'view'",
        ] {
            assert!(connection.execute(statement, [RECORDED, &*root]).unwrap() > 0);
        }
        connection.close().unwrap();
        release
    }

    /// Where the projects are, free of links.
    fn root(&self) -> PathBuf {
        fs::canonicalize(self.project.root()).unwrap()
    }

    /// The journal of a scenario.
    pub(super) fn journal(&self, name: &str) -> &Journal {
        let found = self.journals.iter().find(|journal| journal.name() == name);
        found.unwrap_or_else(|| panic!("there is no history `{name}`"))
    }

    /// The run of a scenario.
    pub(super) fn id(&self, name: &str) -> &str {
        &self.journal(name).header.run
    }

    /// The project of a scenario; with the state file that the release had left there, if any.
    pub(super) fn directory(&self, name: &str) -> PathBuf {
        let directory = self.root().join(name);
        if !directory.exists() {
            let view = testdata("histories").join(&self.version).join("projects").join(name);
            fs::create_dir_all(directory.join(".caw")).unwrap();
            let left = Path::new(".caw/auto-state.json");
            if view.exists() {
                fs::copy(view.join(left), directory.join(left)).unwrap();
            }
        }
        directory
    }

    /// Runs a command in the project of a scenario, at a time after everything that was recorded.
    pub(super) fn run_in(&self, name: &str, args: &[&str], stdin: &[u8]) -> Done {
        let mut command = self.project.command(ALDIS);
        command.current_dir(self.directory(name)).args(args);
        if let Some(last) = self.journal(name).decisions.last() {
            let later = last.at.after(Duration::from_secs(60));
            command.env("ALDIS_NOW", later.to_string());
        }
        feed(command, stdin)
    }

    /// Writes a script into the project of a scenario.
    pub(super) fn script(&self, name: &str, text: &str) {
        let path = self.directory(name).join("agent.sh");
        fs::write(&path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}
