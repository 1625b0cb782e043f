//! The environment variables that hosts set or that change what they do.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Host;

/// Variables, looked up once, so that nothing else asks the process for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Where temporary files are.
    pub temp: Option<PathBuf>,
    /// `CLAUDE_PROJECT_DIR`. Several hosts set it.
    pub claude_project_dir: Option<PathBuf>,
    /// `GEMINI_PROJECT_DIR`.
    pub gemini_project_dir: Option<PathBuf>,
    /// `CURSOR_PROJECT_DIR`.
    pub cursor_project_dir: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
    /// `CLAUDE_CODE_STOP_HOOK_BLOCK_CAP`.
    pub claude_block_cap: Option<String>,
    /// `QWEN_CODE_STOP_HOOK_BLOCK_CAP`.
    pub qwen_block_cap: Option<String>,
    /// `GOOSE_STOP_HOOK_BLOCK_CAP`.
    pub goose_block_cap: Option<String>,
}

impl Env {
    /// Looks up the variables of this process.
    pub fn of_process() -> Self {
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let found = Self::from_lookup(|name| env::var_os(name));
        Self { home: found.home.or(home), temp: Some(env::temp_dir()), ..found }
    }

    /// Looks up the variables wherever `get` finds them. Empty ones count as not set.
    pub fn from_lookup(get: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let text = |name: &str| set(name).and_then(|value| value.into_string().ok());
        Self {
            home: path("HOME"),
            temp: path("TMPDIR"),
            claude_project_dir: path("CLAUDE_PROJECT_DIR"),
            gemini_project_dir: path("GEMINI_PROJECT_DIR"),
            cursor_project_dir: path("CURSOR_PROJECT_DIR"),
            claude_config_dir: path("CLAUDE_CONFIG_DIR"),
            codex_home: path("CODEX_HOME"),
            claude_block_cap: text("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"),
            qwen_block_cap: text("QWEN_CODE_STOP_HOOK_BLOCK_CAP"),
            goose_block_cap: text("GOOSE_STOP_HOOK_BLOCK_CAP"),
        }
    }

    /// Returns the directories in which a host's transcripts may lie: the user's home, the host's
    /// own directory, the project and the place for temporary files.
    pub fn transcript_roots(&self, host: Host, project: Option<&Path>) -> Vec<PathBuf> {
        let adapter = host.adapter();
        // Named apart from the home it lies in: it may be a link to somewhere else.
        let config = self.home.as_ref().zip(adapter.config_dir_name());
        let config = config.map(|(home, name)| home.join(name));
        let roots = [
            self.home.clone(),
            config,
            adapter.config_dir(self),
            project.map(Path::to_owned),
            self.temp.clone(),
        ];
        roots.into_iter().flatten().collect()
    }

    /// Replaces a leading `~` by the home directory.
    pub(super) fn expand(&self, path: &str) -> PathBuf {
        let rest = path.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (rest, &self.home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            _ => PathBuf::from(path),
        }
    }
}
