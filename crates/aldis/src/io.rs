//! The streams of a command, so that tests can pass their own.

use std::env;
use std::fmt;
use std::io::{self, BufWriter, IsTerminal as _, Read, Write};
use std::path::PathBuf;

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// Always.
    Always,
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Never.
    Never,
}

/// What a command reads from and writes to.
pub struct Io {
    /// What `-` reads.
    pub stdin: Box<dyn Read + Send>,
    /// Where results go.
    pub stdout: Box<dyn Write>,
    /// Where errors go.
    pub stderr: Box<dyn Write>,
    /// Whether [`Color::Auto`] means colour on standard output.
    pub color_stdout: bool,
    /// Whether [`Color::Auto`] means colour on standard error.
    pub color_stderr: bool,
    /// Whether people want to see more than usual.
    pub verbose: bool,
    /// Where the state is kept, if not where the environment says.
    pub state_dir: Option<PathBuf>,
}

impl Io {
    /// Returns the streams of this process. Colour follows the terminal, `NO_COLOR` and `TERM`.
    pub fn standard() -> Self {
        let wanted = env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self {
            stdin: Box::new(io::stdin()),
            stdout: Box::new(BufWriter::with_capacity(STDOUT_BUFFER, io::stdout())),
            stderr: Box::new(io::stderr()),
            color_stdout: wanted && io::stdout().is_terminal(),
            color_stderr: wanted && io::stderr().is_terminal(),
            verbose: false,
            state_dir: None,
        }
    }

    /// Settles the question of colour for both streams.
    pub(crate) fn set_color(&mut self, color: Color) {
        match color {
            Color::Always => (self.color_stdout, self.color_stderr) = (true, true),
            Color::Auto => {}
            Color::Never => (self.color_stdout, self.color_stderr) = (false, false),
        }
    }
}

impl fmt::Debug for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Io")
            .field("color_stdout", &self.color_stdout)
            .field("color_stderr", &self.color_stderr)
            .finish_non_exhaustive()
    }
}

const STDOUT_BUFFER: usize = 64 * 1024;
