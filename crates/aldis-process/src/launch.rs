//! What to start, where, with what; and why it could not be started.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;

use crate::Mark;
use crate::os::{self, ProgramCheck};

/// The variable that carries the mark in the environment of every process of an agent.
pub(crate) const MARK_VARIABLE: &str = "ALDIS_SUPERVISED";
/// Our own variables that agents inherit all the same: their hooks must find the same state.
const OWN_PASSED: &[&str] = &["ALDIS_STATE_DIR", "ALDIS_NOW", "ALDIS_HOOK_LOG"];
/// The prefix of our own variables.
const OWN_PREFIX: &[u8] = b"ALDIS_";
/// The longest line that a terminal passes on in canonical mode.
const TERMINAL_LINE_MAX: usize = 4095;

/// What to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program, as a path or as a name to look up in the agent's `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What it inherits of our environment.
    pub environment: Environment,
    /// What it reads on standard input.
    pub input: Input,
    /// The mark of its processes; by default a random one. Who stores it before the start can find
    /// the agent with [`find_marked`](crate::find_marked) whenever the supervisor is killed.
    pub mark: Option<Mark>,
    /// A second mark, shared by all agents of one owner, such as a run. [`find_marked`] finds all of
    /// them, also one whose own mark nobody knows; ending one agent leaves the others alone.
    ///
    /// [`find_marked`]: crate::find_marked
    pub owner: Option<Mark>,
    /// Whether it runs on a terminal (of 1000 columns) instead of pipes. Then output and errors
    /// are one stream. Linux only.
    pub terminal: bool,
    /// Which implementation supervises it.
    pub supervision: Supervision,
    /// Whether to use a control group if the system allows it. Without one, walking the process
    /// tree does the same. Linux only; ignored elsewhere.
    pub control_group: bool,
    /// The program whose hidden command [`REAPER_COMMAND`](crate::REAPER_COMMAND) becomes the
    /// reaper; by default the running one. Linux only; ignored elsewhere.
    pub reaper: Option<PathBuf>,
}

impl Launch {
    /// Describes a program without arguments and input, on pipes, in the current directory.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: PathBuf::from("."),
            environment: Environment::default(),
            input: Input::Empty,
            mark: None,
            owner: None,
            terminal: false,
            supervision: Supervision::Native,
            control_group: true,
            reaper: None,
        }
    }
}

/// Which implementation supervises an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supervision {
    /// The strongest that this system has.
    #[default]
    Native,
    /// The fallback for systems that have no better one: process groups on Unix, job objects on
    /// Windows. On Linux it needs the cargo feature `portable` and is for testing it.
    Portable,
}

/// What an agent reads on its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing: it is at its end at once (on a terminal: nobody ever types).
    #[default]
    Empty,
    /// This, and then the end. On a terminal it is typed, so a line may have 4095 bytes.
    Text(Vec<u8>),
}

/// What an agent inherits of our environment.
///
/// By default everything but our own variables (`ALDIS_*`). Of those only `ALDIS_STATE_DIR`,
/// `ALDIS_NOW` and `ALDIS_HOOK_LOG` are passed on, for the hooks within the agent.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The names to inherit, if not all.
    pub inherit: Option<Vec<OsString>>,
    /// Variables to set, over inherited ones.
    pub set: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Returns the variables an agent starts with.
    pub(crate) fn resolve(&self, mark: &Mark, owner: Option<&Mark>) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> =
            env::vars_os().filter(|(name, _)| self.inherits(name)).collect();
        let set = self.set.iter().cloned();
        // An agent within an agent carries both marks.
        let outer = env::var_os(MARK_VARIABLE).map(|outer| outer.to_string_lossy().into_owned());
        let outer = owner.map(|owner| owner.below(outer.as_deref())).or(outer);
        let mark = mark.below(outer.as_deref());
        for (name, value) in set.chain([(MARK_VARIABLE.into(), mark.into())]) {
            variables.retain(|(known, _)| !os::same_variable(known, &name));
            variables.push((name, value));
        }
        variables
    }

    fn inherits(&self, name: &OsStr) -> bool {
        match &self.inherit {
            Some(names) => names.iter().any(|listed| os::same_variable(listed, name)),
            None => {
                !name.as_encoded_bytes().starts_with(OWN_PREFIX)
                    || OWN_PASSED.iter().any(|passed| os::same_variable(name, OsStr::new(passed)))
            }
        }
    }
}

/// Why an agent could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such program.
    #[error("there is no program `{program}`")]
    NotFound {
        /// As it was given.
        program: String,
        /// Whether it was looked up in `PATH`.
        searched: bool,
    },
    /// The file is there and may not be run.
    #[error("`{program}` is not executable")]
    NotExecutable {
        /// As it was given.
        program: String,
    },
    /// The system does not know how to run the file.
    #[error("`{program}` is not an executable for this system")]
    NotAProgram {
        /// As it was given.
        program: String,
    },
    /// The program that the first line of a script names is missing.
    #[error("the interpreter that `{program}` names is missing")]
    NoInterpreter {
        /// As it was given.
        program: String,
    },
    /// There is no such directory to work in.
    #[error("there is no directory `{}`", path.display())]
    NoDirectory {
        /// As it was given.
        path: PathBuf,
    },
    /// Arguments and environment are larger than the system allows.
    #[error("the arguments of `{program}` are too long")]
    TooLong {
        /// As it was given.
        program: String,
    },
    /// A line of the input is longer than a terminal passes on.
    #[error("a line of the input has {length} bytes and a terminal passes on {TERMINAL_LINE_MAX}")]
    LineTooLong {
        /// How long the line is.
        length: usize,
    },
    /// This system cannot do what is asked for.
    #[error("{what}: not supported on this system")]
    NotSupported {
        /// What is asked for.
        what: &'static str,
    },
    /// The reaper did not report that it has started the agent.
    #[error("the reaper process did not start `{program}`")]
    Reaper {
        /// As it was given.
        program: String,
    },
    /// Something else.
    #[error("`{program}` could not be started: {error}")]
    System {
        /// As it was given.
        program: String,
        /// What the system said.
        error: io::Error,
    },
}

impl StartError {
    /// Returns what to do about it.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Self::NotFound { searched: true, .. } => {
                "install it, or give its full path; names are looked up in PATH".to_owned()
            }
            Self::NotFound { searched: false, .. } => "check the path".to_owned(),
            Self::NotExecutable { program } => format!("run `chmod +x {program}`"),
            Self::NotAProgram { .. } => {
                "a script must start with a line such as `#!/bin/sh`".to_owned()
            }
            Self::NoInterpreter { .. } => {
                "install what the first line of the script names".to_owned()
            }
            Self::NoDirectory { .. } => "create it, or choose another".to_owned(),
            Self::TooLong { .. } => {
                "give the prompt on standard input or in a file instead".to_owned()
            }
            Self::LineTooLong { .. } => "use pipes, or give the prompt in a file".to_owned(),
            Self::Reaper { .. } => {
                "see whether `aldis --version` works, and whether memory is left".to_owned()
            }
            Self::NotSupported { .. } => "see docs/platforms.md".to_owned(),
            Self::System { .. } => return None,
        })
    }

    /// Says why the system refused to run a program that [`Launch::check`] has found.
    pub(crate) fn from_spawn(launch: &Launch, error: io::Error) -> Self {
        let program = launch.program.to_string_lossy().into_owned();
        match error.kind() {
            // The program itself was there when it was looked up.
            io::ErrorKind::NotFound => Self::NoInterpreter { program },
            io::ErrorKind::PermissionDenied => Self::NotExecutable { program },
            _ if os::is_not_a_program(&error) => Self::NotAProgram { program },
            _ => Self::from_io(launch, error),
        }
    }

    /// Says why what is needed beside the program could not be had.
    pub(crate) fn from_io(launch: &Launch, error: io::Error) -> Self {
        let program = launch.program.to_string_lossy().into_owned();
        match error.kind() {
            io::ErrorKind::ArgumentListTooLong => Self::TooLong { program },
            _ => Self::System { program, error },
        }
    }
}

impl Launch {
    /// Finds the program as a start would, without starting anything.
    ///
    /// # Errors
    ///
    /// Fails with what would keep it from being started.
    pub fn find_program(&self) -> Result<PathBuf, StartError> {
        self.check(&env::vars_os().collect::<Vec<_>>())
    }

    /// Checks what can be checked before anything is started, and finds the program.
    pub(crate) fn check(&self, variables: &[(OsString, OsString)]) -> Result<PathBuf, StartError> {
        if !self.cwd.is_dir() {
            return Err(StartError::NoDirectory { path: self.cwd.clone() });
        }
        if let (true, Input::Text(text)) = (self.terminal, &self.input) {
            let length = text.split(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap_or(0);
            if length > TERMINAL_LINE_MAX {
                return Err(StartError::LineTooLong { length });
            }
        }
        let program = self.program.to_string_lossy().into_owned();
        let spellings = os::spellings(&self.program);
        if os::is_path(&self.program) {
            let check = |name: &&OsString| os::check_program(&self.cwd.join(name));
            let found = spellings.iter().find(|name| check(name) != ProgramCheck::Missing);
            return match (found, found.as_ref().map(check)) {
                (Some(name), Some(ProgramCheck::Executable)) => Ok(PathBuf::from(name)),
                (Some(_), Some(ProgramCheck::NotExecutable | ProgramCheck::Hidden)) => {
                    Err(StartError::NotExecutable { program })
                }
                _ => Err(StartError::NotFound { program, searched: false }),
            };
        }
        let is_path = |name: &OsStr| os::same_variable(name, OsStr::new("PATH"));
        let path = variables.iter().find(|(name, _)| is_path(name)).map(|(_, value)| value);
        let directories = path.into_iter().flat_map(env::split_paths);
        let candidates = directories.flat_map(|directory| {
            spellings.iter().map(|name| directory.join(name)).collect::<Vec<_>>()
        });
        let mut error = StartError::NotFound { program, searched: true };
        for candidate in candidates {
            match os::check_program(&self.cwd.join(&candidate)) {
                ProgramCheck::Executable => return Ok(candidate),
                ProgramCheck::NotExecutable => {
                    let program = candidate.to_string_lossy().into_owned();
                    error = StartError::NotExecutable { program };
                }
                // A directory of PATH that we may not search says nothing about the program.
                ProgramCheck::Hidden | ProgramCheck::Missing => {}
            }
        }
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_variables_stay_at_home() {
        let all = Environment::default();
        let some = Environment { inherit: Some(vec!["PATH".into()]), set: Vec::new() };
        let table = [
            ("PATH", true, true),
            ("HOME", true, false),
            ("ALDIS_STATE_DIR", true, false),
            ("ALDIS_SECRET", false, false),
        ];
        for (name, in_all, in_some) in table {
            assert_eq!(all.inherits(OsStr::new(name)), in_all, "{name}");
            assert_eq!(some.inherits(OsStr::new(name)), in_some, "{name}");
        }
    }

    #[test]
    fn what_is_set_wins_and_the_mark_wins_over_that() {
        let set = vec![
            ("A".into(), "1".into()),
            ("A".into(), "2".into()),
            (MARK_VARIABLE.into(), "forged".into()),
        ];
        let environment = Environment { inherit: Some(Vec::new()), set };
        let (mark, owner) = (Mark::derive("mark"), Mark::derive("owner"));
        let found = environment.resolve(&mark, Some(&owner));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], ("A".into(), "2".into()));
        let value = found[1].1.to_string_lossy();
        assert!(mark.is_in(&value) && owner.is_in(&value));
        let alone = environment.resolve(&mark, None);
        assert!(!owner.is_in(&alone[1].1.to_string_lossy()));
    }
}
