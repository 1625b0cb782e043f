//! Where the hosts are, once `scripts/install-hosts` has put them there.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of the hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Claude Code.
    pub claude: PathBuf,
    /// Codex.
    pub codex: PathBuf,
}

impl Installed {
    /// Installs the hosts unless they are there. Where npm is missing it says so and returns nothing:
    /// the test is skipped.
    ///
    /// # Panics
    ///
    /// If they cannot be installed, and under `CI=true` also if npm is missing: a test that is skipped
    /// where it matters has failed.
    pub fn find() -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/install-hosts");
        let output = Command::new(&script).output();
        let output = match output {
            Ok(output) => output,
            Err(error) => panic!("cannot run {}: {error}", script.display()),
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        if output.status.code() == Some(NPM_IS_MISSING) {
            let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!in_ci, "the tests with real hosts must not be skipped in CI: {errors}");
            say_skipped();
            return None;
        }
        assert!(output.status.success(), "cannot install the hosts: {errors}");
        let printed = String::from_utf8_lossy(&output.stdout);
        let path = |name: &str| {
            let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.map(PathBuf::from)
        };
        Some(Self { claude: path("claude")?, codex: path("codex")? })
    }
}

#[expect(clippy::print_stderr, reason = "the line is for whoever reads the output of the tests")]
fn say_skipped() {
    eprintln!("skipped: `npm` is not on the PATH, so there are no real hosts to test with");
}

const NPM_IS_MISSING: i32 = 2;
