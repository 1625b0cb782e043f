//! Where the hosts keep their settings, and where programs are.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::Host;
use super::server::ServerPart;
use crate::error::CommandError;
use crate::hosts::Env;
use crate::hosts::spec::{HostSpec, Registration, SettingsFiles};
use crate::settings::system::System;

/// For whom the hook is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everybody who works on this project.
    Project,
    /// Me, in this project. Few hosts know the difference.
    Local,
    /// Me, in all projects.
    User,
}

impl Scope {
    /// Returns the name used in options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Local => "local",
            Self::User => "user",
        }
    }
}

/// What decides where files are.
#[derive(Clone, Debug)]
pub(crate) struct Locations {
    /// The current directory.
    pub(crate) cwd: PathBuf,
    /// The home directory.
    pub(crate) home: Option<PathBuf>,
    /// Where programs are looked for.
    pub(crate) path: OsString,
    env: Env,
    system: System,
    /// The endings of programs, where they have some.
    endings: Option<String>,
}

/// Where a host's registration is.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    /// For whom.
    pub(crate) scope: Scope,
    /// The folder that belongs to the project or to the user. Nothing outside is created.
    pub(crate) root: PathBuf,
    /// The files, in the order of the registration's.
    pub(crate) files: Vec<PathBuf>,
}

impl Locations {
    /// Reads the environment of this process.
    pub(crate) fn new() -> Result<Self, CommandError> {
        let cwd = crate::settings::project::current()?;
        Ok(Self::on(System::CURRENT, cwd, |name| env::var_os(name)))
    }

    /// The same on any system, with any environment.
    pub(crate) fn on(system: System, cwd: PathBuf, get: impl Fn(&str) -> Option<OsString>) -> Self {
        let env = Env::on(system, &get);
        let path = get("PATH").unwrap_or_default();
        let endings = get("PATHEXT").and_then(|endings| endings.to_str().map(str::to_owned));
        Self { cwd, home: env.home.clone(), path, env, system, endings }
    }

    /// Returns where a host looks for the registration of a scope.
    pub(crate) fn of(&self, host: Host, scope: Scope) -> Result<Location, CommandError> {
        let settings = &host.spec().settings;
        let root = match scope {
            Scope::Project | Scope::Local => self.project(settings),
            Scope::User => self.user_folder(settings)?,
        };
        let (folder, name) = match scope {
            Scope::User => (root.clone(), settings.file),
            Scope::Project => (self.system.below(&root, settings.project), settings.file),
            Scope::Local => match settings.local_file {
                Some(name) => (self.system.below(&root, settings.project), name),
                None => {
                    let title = host.title();
                    let message = format!("{title} has no per-project personal settings");
                    return Err(CommandError::new(message).with_help("use --project or --user"));
                }
            },
        };
        let place = self.system.below(&folder, name);
        let files = match host.spec().registration {
            Registration::Entries(_) => vec![place],
            Registration::Plugin { files, .. } => {
                files.iter().map(|file| self.system.below(&place, file.path)).collect()
            }
        };
        Ok(Location { scope, root, files })
    }

    /// Returns all places where a host looks.
    pub(crate) fn all_of(&self, host: Host) -> Vec<Location> {
        [Scope::Project, Scope::Local, Scope::User]
            .into_iter()
            .filter_map(|scope| self.of(host, scope).ok())
            .collect()
    }

    /// Returns what the MCP server needs in the files of a scope, where the host takes one.
    pub(crate) fn server_parts(&self, host: Host, scope: Scope) -> Vec<(PathBuf, ServerPart)> {
        (host.spec().server)(self, scope)
    }

    /// Returns whether the MCP server is registered with a host, in any of its files.
    pub(crate) fn has_server(&self, host: Host) -> bool {
        [Scope::Project, Scope::Local, Scope::User].into_iter().any(|scope| {
            self.server_parts(host, scope).iter().any(|(file, part)| {
                let starts = |part: &ServerPart| !matches!(part, ServerPart::Item { .. });
                let known = fs::read(file).ok().and_then(|text| part.program(&text).ok());
                starts(part) && known.flatten().is_some()
            })
        })
    }

    /// Returns where a host that keeps its servers in the folder of its hooks wants a part: in a file
    /// of that name, or in that of the hooks.
    pub(crate) fn beside_hooks(
        &self,
        spec: &HostSpec,
        scope: Scope,
        file: Option<&str>,
        part: ServerPart,
    ) -> Vec<(PathBuf, ServerPart)> {
        let SettingsFiles { project, file: hooks, .. } = spec.settings;
        let folder = match scope {
            Scope::Project => Some(self.system.below(&self.project(&spec.settings), project)),
            Scope::User => self.user_folder(&spec.settings).ok(),
            Scope::Local => None,
        };
        let file = folder.map(|folder| self.system.below(&folder, file.unwrap_or(hooks)));
        file.map(|file| (file, part)).into_iter().collect()
    }

    /// Returns the project: the nearest folder upwards with a repository or the host's own folder.
    pub(crate) fn project(&self, settings: &SettingsFiles) -> PathBuf {
        let marker = Path::new(settings.project).iter().next().unwrap_or_default();
        // In the home directory such a folder is the user's, not a project's.
        let is_home = |folder: &Path| self.home.as_deref() == Some(folder);
        let found = self.cwd.ancestors().find(|folder| {
            folder.join(".git").exists() || (folder.join(marker).is_dir() && !is_home(folder))
        });
        found.unwrap_or(&self.cwd).to_owned()
    }

    /// Returns the folder with the user's own settings of a host.
    pub(crate) fn user_folder(&self, settings: &SettingsFiles) -> Result<PathBuf, CommandError> {
        let own = settings.variable.and_then(|(name, below)| {
            // Joining nothing would leave a slash at the end.
            let folder = self.variable(name)?;
            Some(if below.is_empty() { folder } else { self.system.below(&folder, below) })
        });
        let home = self.home.as_ref().map(|home| self.system.below(home, settings.user));
        own.or(home).ok_or_else(|| {
            CommandError::new("the home directory is not known").with_help("set HOME")
        })
    }

    /// Returns the directory that a variable of a host names.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        self.env.path(name)
    }

    /// Looks a program up in PATH. Entries that are not absolute are passed over.
    pub(crate) fn find_program(&self, name: &str) -> Option<PathBuf> {
        let spellings = self.system.spellings(name, self.endings.as_deref());
        env::split_paths(&self.path)
            .filter(|folder| folder.is_absolute())
            .flat_map(|folder| spellings.iter().map(move |name| folder.join(name)))
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
}

/// Returns a path as it was given, and as it really is.
pub(crate) fn path_names(path: &Path) -> Vec<String> {
    let mut names = vec![path.display().to_string()];
    names.extend(fs::canonicalize(path).map(|path| path.display().to_string()));
    names.iter().flat_map(|name| System::CURRENT.written(name)).collect()
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
