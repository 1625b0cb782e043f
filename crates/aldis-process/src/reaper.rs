//! The arguments of the reaper, the helper process that stands between supervisor and agent.
//!
//! Only Linux has one. The command line is portable all the same, so that the program that embeds
//! this crate offers the hidden command [`REAPER_COMMAND`] on every system.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use crate::os;

/// The hidden command with which a program becomes a reaper: its arguments are [`ReaperArgs`], and
/// it calls [`run_reaper`].
pub const REAPER_COMMAND: &str = "agent-reaper";

/// What the reaper is told on its command line. Directory and environment are inherited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaperArgs {
    /// Whether the agent's streams are a terminal (`--terminal`).
    pub terminal: bool,
    /// The control group to start the agent in (`--cgroup DIR`).
    pub cgroup: Option<PathBuf>,
    /// The program to start (`--program PATH`).
    pub program: PathBuf,
    /// The agent's `argv`, its name for itself first (after `--`).
    pub args: Vec<OsString>,
}

impl ReaperArgs {
    /// Reads what follows the name of the command, for programs without a parser of their own.
    /// Returns nothing if it is not what a supervisor passes.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut args = args.into_iter();
        let (mut terminal, mut cgroup, mut program) = (false, None, None);
        loop {
            match args.next()?.to_str()? {
                "--terminal" => terminal = true,
                "--cgroup" => cgroup = Some(args.next()?.into()),
                "--program" => program = Some(args.next()?.into()),
                "--" => break,
                _ => return None,
            }
        }
        let args: Vec<OsString> = args.collect();
        (!args.is_empty()).then_some(Self { terminal, cgroup, program: program?, args })
    }
}

/// Starts the agent and waits until it and all its descendants have ended. Standard input must be
/// the socket of a supervisor.
///
/// # Errors
///
/// Fails if standard input is not such a socket, and on systems without a reaper.
pub fn run_reaper(args: &ReaperArgs) -> io::Result<()> {
    os::run_reaper(args)
}

#[cfg(test)]
mod tests {
    //! The command line of the reaper.

    use super::*;

    #[test]
    fn reads_what_a_supervisor_passes_and_nothing_else() {
        let parse = |line: &str| ReaperArgs::parse(line.split(' ').map(OsString::from));
        let bare = ReaperArgs {
            terminal: false,
            cgroup: None,
            program: "/bin/sh".into(),
            args: vec!["sh".into(), "--terminal".into()],
        };
        assert_eq!(parse("--program /bin/sh -- sh --terminal"), Some(bare.clone()));
        let full = ReaperArgs { terminal: true, cgroup: Some("/g".into()), ..bare };
        assert_eq!(parse("--cgroup /g --terminal --program /bin/sh -- sh --terminal"), Some(full));
        for wrong in ["", "--program", "--program x", "--program x --", "-- x", "--help -- x"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
