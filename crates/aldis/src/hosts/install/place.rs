//! Where the hosts keep their configuration.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Form, Host, Scope};
use crate::error::CommandError;

/// The part of the world that decides where files are.
#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The current directory.
    pub(crate) cwd: PathBuf,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// Where programs are looked for.
    pub(crate) path: OsString,
}

/// Where a host's registration is.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    /// For whom.
    pub(crate) scope: Scope,
    /// The folder that belongs to the project or to the user. Nothing outside is created.
    pub(crate) root: PathBuf,
    /// The files, each with its number in [`Form::Files`].
    pub(crate) files: Vec<PathBuf>,
}

impl World {
    /// Reads the environment of this process.
    pub(crate) fn new() -> Result<Self, CommandError> {
        let cwd = env::current_dir().map_err(|error| {
            CommandError::new(format!("there is no current directory: {error}"))
        })?;
        Ok(Self { cwd, home: folder("HOME"), path: env::var_os("PATH").unwrap_or_default() })
    }

    /// Returns where a host looks for the registration of a scope.
    pub(crate) fn spot(&self, host: Host, scope: Scope) -> Result<Spot, CommandError> {
        let root = match scope {
            Scope::Project | Scope::Local => self.project(host),
            Scope::User => self.user_folder(host)?,
        };
        let files = match (host, scope) {
            (Host::ClaudeCode, Scope::Project) => vec![root.join(".claude/settings.json")],
            (Host::ClaudeCode, Scope::Local) => vec![root.join(".claude/settings.local.json")],
            (_, Scope::Local) => {
                return Err(CommandError::new(format!(
                    "{} has no settings of one person for one project",
                    host.title()
                ))
                .with_help("use --project or --user"));
            }
            (_, Scope::Project) => self.below(host, &root.join(project_folder(host))),
            (_, Scope::User) => self.below(host, &root),
        };
        Ok(Spot { scope, root, files })
    }

    /// Returns all places where a host looks.
    pub(crate) fn spots(&self, host: Host) -> Vec<Spot> {
        [Scope::Project, Scope::Local, Scope::User]
            .into_iter()
            .filter_map(|scope| self.spot(host, scope).ok())
            .collect()
    }

    /// Returns the project: the nearest folder upwards with a repository or the host's own folder.
    pub(crate) fn project(&self, host: Host) -> PathBuf {
        let marker = Path::new(project_folder(host)).iter().next().unwrap_or_default();
        // In the home directory such a folder is the user's, not a project's.
        let is_home = |folder: &Path| self.home.as_deref() == Some(folder);
        let found = self.cwd.ancestors().find(|folder| {
            folder.join(".git").exists() || (folder.join(marker).is_dir() && !is_home(folder))
        });
        found.unwrap_or(&self.cwd).to_owned()
    }

    /// Returns the folder with the user's own configuration of a host.
    pub(crate) fn user_folder(&self, host: Host) -> Result<PathBuf, CommandError> {
        let own = match host {
            Host::ClaudeCode => folder("CLAUDE_CONFIG_DIR"),
            Host::Codex => folder("CODEX_HOME"),
            Host::Gemini => folder("GEMINI_CLI_HOME").map(|home| home.join(".gemini")),
            Host::Copilot => folder("COPILOT_HOME"),
            Host::OpenCode => folder("XDG_CONFIG_HOME").map(|config| config.join("opencode")),
            Host::OpenClaw => folder("OPENCLAW_STATE_DIR"),
            Host::Cursor | Host::Qwen | Host::Droid | Host::Goose => None,
        };
        let below_home = match host {
            Host::ClaudeCode => ".claude",
            Host::Codex => ".codex",
            Host::Gemini => ".gemini",
            Host::Cursor => ".cursor",
            Host::Copilot => ".copilot",
            Host::Qwen => ".qwen",
            Host::Droid => ".factory",
            Host::Goose => ".agents",
            Host::OpenCode => ".config/opencode",
            Host::OpenClaw => ".openclaw",
        };
        let home = self.home.as_ref().map(|home| home.join(below_home));
        own.or(home).ok_or_else(|| {
            CommandError::new("the home directory is not known").with_help("set HOME")
        })
    }

    /// Looks a program up in PATH. Entries that are not absolute are passed over.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        env::split_paths(&self.path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|path| is_executable(path))
    }

    /// Returns a path as people read it: relative to here, or to the home directory.
    pub(crate) fn shown(&self, path: &Path) -> String {
        if let Ok(path) = path.strip_prefix(&self.cwd) {
            return path.display().to_string();
        }
        match self.home.as_ref().and_then(|home| path.strip_prefix(home).ok()) {
            Some(path) => format!("~/{}", path.display()),
            None => path.display().to_string(),
        }
    }

    fn below(&self, host: Host, folder: &Path) -> Vec<PathBuf> {
        let name = match host {
            Host::ClaudeCode | Host::Gemini | Host::Qwen | Host::Droid => "settings.json",
            Host::Codex | Host::Cursor => "hooks.json",
            Host::Copilot => "hooks/aldis.json",
            Host::Goose | Host::OpenCode => "plugins",
            Host::OpenClaw => "extensions",
        };
        let place = folder.join(name);
        match host.form() {
            Form::Entries(_) => vec![place],
            Form::Files(files) => files.iter().map(|file| place.join(file.path)).collect(),
        }
    }
}

/// The folder of a host in a project.
fn project_folder(host: Host) -> &'static str {
    match host {
        Host::ClaudeCode => ".claude",
        Host::Codex => ".codex",
        Host::Gemini => ".gemini",
        Host::Cursor => ".cursor",
        Host::Copilot => ".github",
        Host::Qwen => ".qwen",
        Host::Droid => ".factory",
        Host::Goose => ".agents",
        Host::OpenCode => ".opencode",
        Host::OpenClaw => ".openclaw",
    }
}

/// A directory named by the environment. Empty is unset.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Whether a file can be run.
pub(crate) fn is_executable(path: &Path) -> bool {
    let Ok(meta) = path.metadata() else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        meta.is_file() && meta.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        meta.is_file()
    }
}
